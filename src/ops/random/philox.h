#pragma once

#include "base/philox.h"
