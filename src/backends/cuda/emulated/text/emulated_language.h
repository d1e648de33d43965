#pragma once

// The language extensions of CUDA C++ on the CPU: qualifiers, built-in variables and vector types.
// A block runs on one operating-system thread, so that its __shared__ variables are that thread's.

#include "emulated_abi.h"

#define DAIS_EMULATED 1
#define __CUDACC__ 1
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
// constinit: GCC guards arrays of vectors otherwise, and the guard would lie among them.
#define __shared__ static thread_local __constinit
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict

// Code of the emulation itself: never observed, and a call of its own, so that what it reports as
// its caller is the kernel's line.
#define DAIS_UNSEEN __attribute__((noinline, no_sanitize("thread"), unused))

using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr));
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
#ifdef __INT64_TYPE__
using int64_t = __INT64_TYPE__;
using uint64_t = __UINT64_TYPE__;
#endif
using uintptr_t = __UINTPTR_TYPE__;

extern "C" {
void* memcpy(void*, const void*, size_t) noexcept;
void* memset(void*, int, size_t) noexcept;
int printf(const char*, ...);
}

namespace dais_emulation {
namespace abi = ::dais::cuda::emulated;

inline const abi::Hooks* hooks = nullptr;

inline __attribute__((always_inline)) const abi::Lane& lane() {
  uintptr_t stack;
#ifdef __aarch64__
  asm("mov %0, sp" : "=r"(stack));
#else
  asm("mov %%rsp, %0" : "=r"(stack));
#endif
  stack &= ~(abi::kStackBytes - 1);
  const abi::Lane* found;
#ifdef __aarch64__
  asm("ldr %0, %1" : "=r"(found) : "m"(*reinterpret_cast<const uintptr_t*>(stack)));
#else
  asm("mov %1, %0" : "=r"(found) : "m"(*reinterpret_cast<const uintptr_t*>(stack)));
#endif
  return *found;
}

/// Reads a word of the emulation's own without its being observed as an access of the kernel.
inline __attribute__((always_inline)) unsigned quiet(const unsigned& word) {
  unsigned value;
#ifdef __aarch64__
  asm("ldr %w0, %1" : "=r"(value) : "m"(word));
#else
  asm("movl %1, %0" : "=r"(value) : "m"(word));
#endif
  return value;
}

template <size_t bytes>
struct Whole {
  typedef unsigned char Type __attribute__((vector_size(bytes), may_alias));
};

/// Moves a vector by one access, as the device does, where the compiler would take its members
/// apart.
template <size_t bytes>
inline __attribute__((always_inline)) void move_whole(void* to, const void* from) {
  using Type = typename Whole<bytes>::Type;
  *static_cast<Type*>(to) = *static_cast<const Type*>(from);
}

}  // namespace dais_emulation

#define DAIS_VECTOR_COPIES(name)                                                      \
  name() = default;                                                                   \
  name(const name& other) { dais_emulation::move_whole<sizeof(name)>(this, &other); } \
  name& operator=(const name& other) {                                                \
    dais_emulation::move_whole<sizeof(name)>(this, &other);                           \
    return *this;                                                                     \
  }
#define DAIS_VECTORS(T, name)                                        \
  struct name##1 {                                                   \
    T x;                                                             \
  };                                                                 \
  struct alignas(2 * sizeof(T)) name##2 {                            \
    T x, y;                                                          \
    name##2(T a, T b) : x(a), y(b) {}                                \
    DAIS_VECTOR_COPIES(name##2)                                      \
  };                                                                 \
  struct name##3 {                                                   \
    T x, y, z;                                                       \
  };                                                                 \
  struct alignas(sizeof(T) > 4 ? 16 : 4 * sizeof(T)) name##4 {       \
    T x, y, z, w;                                                    \
    name##4(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}          \
    DAIS_VECTOR_COPIES(name##4)                                      \
  };                                                                 \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

DAIS_VECTORS(signed char, char)
DAIS_VECTORS(unsigned char, uchar)
DAIS_VECTORS(short, short)
DAIS_VECTORS(unsigned short, ushort)
DAIS_VECTORS(int, int)
DAIS_VECTORS(unsigned, uint)
DAIS_VECTORS(long long, longlong)
DAIS_VECTORS(unsigned long long, ulonglong)
DAIS_VECTORS(float, float)
DAIS_VECTORS(double, double)
#undef DAIS_VECTORS
#undef DAIS_VECTOR_COPIES

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

namespace dais_emulation {
inline __attribute__((always_inline)) uint3 three(const abi::Index& index) {
  return {quiet(index.x), quiet(index.y), quiet(index.z)};
}
}  // namespace dais_emulation

#define threadIdx (::dais_emulation::three(::dais_emulation::lane().thread))
#define blockIdx (::dais_emulation::three(::dais_emulation::lane().block))
#define blockDim (::dais_emulation::three(::dais_emulation::lane().block_size))
#define gridDim (::dais_emulation::three(::dais_emulation::lane().grid_size))
inline constexpr int warpSize = 32;

namespace dais_emulation {
DAIS_UNSEEN inline unsigned char* dynamic_shared() { return lane().dynamic_shared; }
}  // namespace dais_emulation
