#pragma once

// Included before the text of a kernel, so that the same text runs on the CPU.

#include "emulated_atomics.h"
#include "emulated_language.h"
#include "emulated_math.h"
#include "emulated_module.h"
#include "emulated_sync.h"
