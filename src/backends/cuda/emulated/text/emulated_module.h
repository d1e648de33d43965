#pragma once

// What a compiled module exports, and, in checked modules, the calls that the compiler puts before
// each access of memory (those of its thread sanitizer, whose library is not used).

#include "emulated_language.h"

namespace dais_emulation {

DAIS_UNSEEN inline void attach(const abi::Hooks* given) { hooks = given; }
inline thread_local unsigned char shared_anchor;
DAIS_UNSEEN inline void* shared() { return &shared_anchor; }

template <typename T>
struct Plain {
  using Type = T;
};
template <typename T>
struct Plain<const T> {
  using Type = T;
};

template <unsigned...>
struct Numbers {};
template <unsigned count, unsigned... rest>
struct Count : Count<count - 1, count - 1, rest...> {};
template <unsigned... rest>
struct Count<0, rest...> {
  using Type = Numbers<rest...>;
};

/// How a kernel is called with an array of pointers to its parameters.
template <auto kernel>
struct Entry;
template <typename... Parameters, void (*kernel)(Parameters...)>
struct Entry<kernel> {
  template <unsigned... i>
  DAIS_UNSEEN static void pass(void** parameters, Numbers<i...>) {
    kernel(*static_cast<typename Plain<Parameters>::Type*>(parameters[i])...);
  }
  DAIS_UNSEEN static void call(void** parameters) {
    pass(parameters, typename Count<sizeof...(Parameters)>::Type());
  }
  static constexpr unsigned bytes[sizeof...(Parameters) + 1] = {sizeof(Parameters)..., 0};
  static constexpr unsigned count = sizeof...(Parameters);
};

constexpr unsigned first_of(unsigned first = 1024, unsigned = 0, unsigned = 0) { return first; }

}  // namespace dais_emulation

#define DAIS_EXPORT extern "C" __attribute__((visibility("default"), used))
#define DAIS_KERNEL(name, ...) DAIS_KERNEL_NAMED(name, __VA_ARGS__)
#define DAIS_KERNEL_NAMED(name, ...)                                           \
  DAIS_EXPORT const ::dais::cuda::emulated::KernelInfo dais_kernel_##name = {  \
      dais_emulation::Entry<&name>::call, dais_emulation::Entry<&name>::count, \
      dais_emulation::Entry<&name>::bytes, dais_emulation::first_of(__VA_ARGS__)};

DAIS_EXPORT const ::dais::cuda::emulated::ModuleInfo dais_module = {
    ::dais::cuda::emulated::kAbiVersion,
#ifdef DAIS_CHECKED
    true,
#else
    false,
#endif
    dais_emulation::attach, dais_emulation::shared};

#ifdef DAIS_CHECKED
#define DAIS_SEEN(symbol, bytes, flags)                                             \
  __attribute__((noinline, no_sanitize("thread"), used)) static void dais_##symbol( \
      void* p) __asm__("__tsan_" #symbol);                                          \
  static void dais_##symbol(void* p) {                                              \
    dais_emulation::hooks->access(p, bytes, flags, __builtin_return_address(0));    \
  }
#define DAIS_SEEN_SIZE(bytes)      \
  DAIS_SEEN(read##bytes, bytes, 0) \
  DAIS_SEEN(write##bytes, bytes, ::dais::cuda::emulated::kWrite)
#define DAIS_SEEN_BYTEWISE(bytes)                                            \
  DAIS_SEEN(unaligned_read##bytes, bytes, ::dais::cuda::emulated::kBytewise) \
  DAIS_SEEN(unaligned_write##bytes, bytes,                                   \
            ::dais::cuda::emulated::kWrite | ::dais::cuda::emulated::kBytewise)
DAIS_SEEN_SIZE(1)
DAIS_SEEN_SIZE(2)
DAIS_SEEN_SIZE(4)
DAIS_SEEN_SIZE(8)
DAIS_SEEN_SIZE(16)
DAIS_SEEN_BYTEWISE(2)
DAIS_SEEN_BYTEWISE(4)
DAIS_SEEN_BYTEWISE(8)
DAIS_SEEN_BYTEWISE(16)
#undef DAIS_SEEN_BYTEWISE
#undef DAIS_SEEN_SIZE
#undef DAIS_SEEN
#define DAIS_SEEN_RANGE(symbol, flags)                                              \
  __attribute__((noinline, no_sanitize("thread"), used)) static void dais_##symbol( \
      void* p, unsigned long bytes) __asm__("__tsan_" #symbol);                     \
  static void dais_##symbol(void* p, unsigned long bytes) {                         \
    dais_emulation::hooks->access(p, static_cast<unsigned>(bytes),                  \
                                  (flags) | ::dais::cuda::emulated::kBytewise,      \
                                  __builtin_return_address(0));                     \
  }
DAIS_SEEN_RANGE(read_range, 0)
DAIS_SEEN_RANGE(write_range, ::dais::cuda::emulated::kWrite)
#undef DAIS_SEEN_RANGE
__attribute__((used)) static void dais_init() __asm__("__tsan_init");
static void dais_init() {}
#endif
