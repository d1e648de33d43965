#pragma once

/// Stands before each function of a text that the CPU and devices share (ops/*/*.cuh): number.cuh
/// defines it for devices. Such a text names what both sides know: double, long long, floorf.
#define DAIS_SHARED inline
