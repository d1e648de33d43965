#pragma once

// What a compiled kernel and the emulated device know of each other. Included by both sides: it
// uses nothing of the standard library and has the same layout on each.
namespace dais::cuda::emulated {

inline constexpr unsigned kWarp = 32;
/// Stacks of CUDA threads are this large and aligned to it: a stack's lowest word points to the
/// Lane that runs on it, so that a kernel finds its indices by the stack pointer alone.
inline constexpr unsigned long kStackBytes = 64 * 1024;

struct Index {
  unsigned x, y, z;
};

/// What a CUDA thread can ask about itself.
struct Lane {
  Index thread, block, block_size, grid_size;
  unsigned linear;  ///< number of the thread in its block
  unsigned char* dynamic_shared;
};

/// Flags of an access.
inline constexpr unsigned kWrite = 1;
inline constexpr unsigned kAtomic = 2;
/// The compiler assumed no alignment, so the access is really made of single bytes.
inline constexpr unsigned kBytewise = 4;

struct Place {
  const char* file;
  int line;
};

/// Runs when all lanes of `mask` have arrived: lanes[i] is what lane i passed, null for others.
using WarpAction = void (*)(void* const* lanes, unsigned mask);

struct Hooks {
  /// Before each access, when the kernel was compiled with checks. `site` is a code address.
  void (*access)(const void* address, unsigned bytes, unsigned flags, const void* site);
  /// __syncthreads; returns how many threads passed a predicate other than 0.
  int (*barrier)(int predicate, Place place);
  /// A step that the lanes of `mask` take together. `orders`: memory accesses before it happen
  /// before those after it, as __syncwarp promises and shuffles do not.
  void (*warp)(unsigned mask, void* mine, WarpAction action, bool orders, Place place);
  /// Copies at the wait that covers it, as late as the hardware may.
  void (*copy_async)(void* to, const void* from, unsigned bytes, unsigned valid, const void* site);
  void (*commit_async)();
  void (*wait_async)(int groups_left);
  void (*trap)(const char* reason, Place place);
};

struct KernelInfo {
  void (*entry)(void** parameters);
  unsigned parameters;
  const unsigned* parameter_bytes;
  unsigned most_threads;  ///< of a block, by __launch_bounds__
};

/// What a module exports under the name dais_module.
struct ModuleInfo {
  unsigned version;
  bool checked;  ///< compiled with checks
  void (*attach)(const Hooks* hooks);
  /// Makes the module's shared variables of the calling thread exist; returns an address in them.
  void* (*shared)();
};
inline constexpr unsigned kAbiVersion = 1;

}  // namespace dais::cuda::emulated
