#pragma once

// Atomic operations. Each is one access that may meet others without a race.

#include "emulated_language.h"

namespace dais_emulation {

template <size_t bytes>
struct Bits;
template <>
struct Bits<2> {
  using Type = unsigned short;
};
template <>
struct Bits<4> {
  using Type = unsigned;
};
template <>
struct Bits<8> {
  using Type = unsigned long long;
};

inline __attribute__((always_inline)) void seen(void* address, unsigned bytes, const void* site) {
  hooks->access(address, bytes, abi::kWrite | abi::kAtomic, site);
}

/// Replaces *address by change(*address) at once; returns the old value.
template <typename T, typename Change>
__attribute__((always_inline, no_sanitize("thread"))) inline T update(T* address, Change change,
                                                                      const void* site) {
  using Word = typename Bits<sizeof(T)>::Type;
  seen(address, sizeof(T), site);
  auto* word = reinterpret_cast<Word*>(address);
  Word old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  for (;;) {
    const T value = __builtin_bit_cast(T, old);
    const Word wanted = __builtin_bit_cast(Word, static_cast<T>(change(value)));
    if (__atomic_compare_exchange_n(word, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return value;
  }
}

}  // namespace dais_emulation

#define DAIS_ATOMIC(name, expression)                                          \
  template <typename T>                                                        \
  DAIS_UNSEEN T name(T* address, dais_emulation::Same<T> value) {              \
    return dais_emulation::update(                                             \
        address,                                                               \
        [value](T old) __attribute__((always_inline, no_sanitize("thread"))) { \
          return static_cast<T>(expression);                                   \
        },                                                                     \
        __builtin_return_address(0));                                          \
  }
namespace dais_emulation {
template <typename T>
struct SameType {
  using Type = T;
};
/// T, but not deduced from: atomicAdd(float*, 1) is an addition of floats.
template <typename T>
using Same = typename SameType<T>::Type;
}  // namespace dais_emulation
DAIS_ATOMIC(atomicAdd, old + value)
DAIS_ATOMIC(atomicSub, old - value)
DAIS_ATOMIC(atomicExch, value)
DAIS_ATOMIC(atomicMin, old < value ? old : value)
DAIS_ATOMIC(atomicMax, old > value ? old : value)
DAIS_ATOMIC(atomicAnd, old& value)
DAIS_ATOMIC(atomicOr, old | value)
DAIS_ATOMIC(atomicXor, old ^ value)
DAIS_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
DAIS_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef DAIS_ATOMIC

template <typename T>
DAIS_UNSEEN T atomicCAS(T* address, dais_emulation::Same<T> expected,
                        dais_emulation::Same<T> value) {
  return dais_emulation::update(
      address,
      [=](T old) __attribute__((always_inline, no_sanitize("thread"))) {
        return old == expected ? value : old;
      },
      __builtin_return_address(0));
}
