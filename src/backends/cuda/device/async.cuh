#pragma once

#include "pack.cuh"

// Copies from global to shared memory that go on while the thread works: the register file is not
// passed through. They are ordered in groups; a thread waits for its own copies, so that a barrier
// must follow before other threads read them. On devices before compute capability 8.0 they are
// ordinary copies.

/// Copies `bytes` (4, 8 or 16, to which both addresses are aligned), or writes zeros when there is
/// nothing to copy; `from` is not read then.
template <int bytes>
__device__ __forceinline__ void copy_async(void* to_shared, const void* from, bool present = true) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
#ifdef DAIS_EMULATED
  dais_emulation::copy_async(to_shared, from, bytes, present ? bytes : 0);
#elif __CUDA_ARCH__ >= 800
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
  const int valid = present ? bytes : 0;
  if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(bytes),
                 "r"(valid)
                 : "memory");
  }
#else
  using Word = typename PackWord<bytes>::Type;
  *static_cast<Word*>(to_shared) = present ? *static_cast<const Word*>(from) : Word{};
#endif
}

/// The copies since the last call are a group.
__device__ __forceinline__ void commit_copies() {
#ifdef DAIS_EMULATED
  dais_emulation::commit_async();
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most `groups` of this thread's latest groups are under way.
template <int groups>
__device__ __forceinline__ void wait_copies() {
#ifdef DAIS_EMULATED
  dais_emulation::wait_async(groups);
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}
