#pragma once

// Barriers, warp-wide operations and asynchronous copies.

#include "emulated_language.h"

#define DAIS_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

DAIS_UNSEEN inline void __syncthreads(DAIS_PLACE) {
  dais_emulation::hooks->barrier(0, {file, line});
}
DAIS_UNSEEN inline int __syncthreads_count(int predicate, DAIS_PLACE) {
  return dais_emulation::hooks->barrier(predicate, {file, line});
}
DAIS_UNSEEN inline int __syncthreads_or(int predicate, DAIS_PLACE) {
  return dais_emulation::hooks->barrier(predicate, {file, line}) != 0;
}
DAIS_UNSEEN inline int __syncthreads_and(int predicate, DAIS_PLACE) {
  return dais_emulation::hooks->barrier(!predicate, {file, line}) == 0;
}
DAIS_UNSEEN inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
DAIS_UNSEEN inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
DAIS_UNSEEN inline void __trap(DAIS_PLACE) { dais_emulation::hooks->trap("__trap", {file, line}); }

namespace dais_emulation {

/// What a lane brings to a warp-wide step and takes from it.
template <typename T>
struct Exchange {
  T given, taken;
  int source;  ///< the lane whose value it takes
};

template <typename T>
DAIS_UNSEEN void exchange(void* const* lanes, unsigned mask) {
  for (unsigned i = 0; i < abi::kWarp; ++i) {
    if (!(mask >> i & 1)) continue;
    auto* mine = static_cast<Exchange<T>*>(lanes[i]);
    const int from = mine->source;
    // A value of a lane that takes no part is undefined on the device: its own is as good.
    auto* other = lanes[from] ? static_cast<Exchange<T>*>(lanes[from]) : mine;
    mine->taken = other->given;
  }
}

template <typename T>
DAIS_UNSEEN T take(unsigned mask, T value, int source, abi::Place place) {
  Exchange<T> mine{value, value, source};
  hooks->warp(mask, &mine, exchange<T>, false, place);
  return mine.taken;
}

DAIS_UNSEEN inline int own_lane() { return static_cast<int>(lane().linear % abi::kWarp); }

/// The lane `to` when it lies in this lane's part of `width`, else this lane.
DAIS_UNSEEN inline int within(int to, int width) {
  const int own = own_lane(), first = own & ~(width - 1);
  return to < first || to >= first + width ? own : to;
}

template <typename T>
struct Joined {
  T value;
};

template <typename T, typename Operation>
DAIS_UNSEEN void join(void* const* lanes, unsigned mask) {
  Operation operation;
  T all = operation.start;
  for (unsigned i = 0; i < abi::kWarp; ++i)
    if (mask >> i & 1) all = operation(all, static_cast<Joined<T>*>(lanes[i])->value, i);
  for (unsigned i = 0; i < abi::kWarp; ++i)
    if (mask >> i & 1) static_cast<Joined<T>*>(lanes[i])->value = all;
}

template <typename Operation, typename T>
DAIS_UNSEEN T joined(unsigned mask, T value, abi::Place place) {
  Joined<T> mine{value};
  hooks->warp(mask, &mine, join<T, Operation>, false, place);
  return mine.value;
}

struct Ballot {
  unsigned start = 0;
  unsigned operator()(unsigned all, unsigned value, unsigned lane) const {
    return all | (value ? 1u << lane : 0u);
  }
};
#define DAIS_JOIN(name, type, first, expression)                           \
  struct name {                                                            \
    type start = first;                                                    \
    type operator()(type a, type b, unsigned) const { return expression; } \
  };
DAIS_JOIN(AddUnsigned, unsigned, 0, a + b)
DAIS_JOIN(MinUnsigned, unsigned, ~0u, a < b ? a : b)
DAIS_JOIN(MaxUnsigned, unsigned, 0, a > b ? a : b)
DAIS_JOIN(MinSigned, int, 0x7fffffff, a < b ? a : b)
DAIS_JOIN(MaxSigned, int, -0x7fffffff - 1, a > b ? a : b)
DAIS_JOIN(And, unsigned, ~0u, a& b)
DAIS_JOIN(Or, unsigned, 0, a | b)
DAIS_JOIN(Xor, unsigned, 0, a ^ b)
#undef DAIS_JOIN

template <typename T>
DAIS_UNSEEN void match(void* const* lanes, unsigned mask) {
  for (unsigned i = 0; i < abi::kWarp; ++i) {
    if (!(mask >> i & 1)) continue;
    auto* mine = static_cast<Exchange<T>*>(lanes[i]);
    unsigned same = 0;
    for (unsigned j = 0; j < abi::kWarp; ++j)
      if ((mask >> j & 1) && static_cast<Exchange<T>*>(lanes[j])->given == mine->given)
        same |= 1u << j;
    mine->source = static_cast<int>(same);
  }
}

}  // namespace dais_emulation

DAIS_UNSEEN inline void __syncwarp(unsigned mask = 0xffffffffu, DAIS_PLACE) {
  dais_emulation::hooks->warp(mask, nullptr, nullptr, true, {file, line});
}
template <typename T>
DAIS_UNSEEN T __shfl_sync(unsigned mask, T value, int source, int width = 32, DAIS_PLACE) {
  using namespace dais_emulation;
  const int first = own_lane() & ~(width - 1);
  return take(mask, value, first + (source & (width - 1)), {file, line});
}
template <typename T>
DAIS_UNSEEN T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, DAIS_PLACE) {
  using namespace dais_emulation;
  return take(mask, value, within(own_lane() - static_cast<int>(delta), width), {file, line});
}
template <typename T>
DAIS_UNSEEN T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, DAIS_PLACE) {
  using namespace dais_emulation;
  return take(mask, value, within(own_lane() + static_cast<int>(delta), width), {file, line});
}
template <typename T>
DAIS_UNSEEN T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, DAIS_PLACE) {
  using namespace dais_emulation;
  return take(mask, value, within(own_lane() ^ bits, width), {file, line});
}
DAIS_UNSEEN inline unsigned __ballot_sync(unsigned mask, int predicate, DAIS_PLACE) {
  return dais_emulation::joined<dais_emulation::Ballot>(mask, predicate ? 1u : 0u, {file, line});
}
DAIS_UNSEEN inline int __any_sync(unsigned mask, int predicate, DAIS_PLACE) {
  return dais_emulation::joined<dais_emulation::Or>(mask, predicate ? 1u : 0u, {file, line}) != 0;
}
DAIS_UNSEEN inline int __all_sync(unsigned mask, int predicate, DAIS_PLACE) {
  return dais_emulation::joined<dais_emulation::And>(mask, predicate ? 1u : 0u, {file, line}) != 0;
}
template <typename T>
DAIS_UNSEEN unsigned __match_any_sync(unsigned mask, T value, DAIS_PLACE) {
  dais_emulation::Exchange<T> mine{value, value, 0};
  dais_emulation::hooks->warp(mask, &mine, dais_emulation::match<T>, false, {file, line});
  return static_cast<unsigned>(mine.source);
}
#define DAIS_REDUCE(name, type, operation)                                               \
  DAIS_UNSEEN inline type name(unsigned mask, type value, DAIS_PLACE) {                  \
    return dais_emulation::joined<dais_emulation::operation>(mask, value, {file, line}); \
  }
DAIS_REDUCE(__reduce_add_sync, unsigned, AddUnsigned)
DAIS_REDUCE(__reduce_min_sync, unsigned, MinUnsigned)
DAIS_REDUCE(__reduce_max_sync, unsigned, MaxUnsigned)
DAIS_REDUCE(__reduce_min_sync, int, MinSigned)
DAIS_REDUCE(__reduce_max_sync, int, MaxSigned)
DAIS_REDUCE(__reduce_and_sync, unsigned, And)
DAIS_REDUCE(__reduce_or_sync, unsigned, Or)
DAIS_REDUCE(__reduce_xor_sync, unsigned, Xor)
#undef DAIS_REDUCE
DAIS_UNSEEN inline int __reduce_add_sync(unsigned mask, int value, DAIS_PLACE) {
  return static_cast<int>(dais_emulation::joined<dais_emulation::AddUnsigned>(
      mask, static_cast<unsigned>(value), {file, line}));
}

namespace dais_emulation {
DAIS_UNSEEN inline void copy_async(void* to, const void* from, unsigned bytes, unsigned valid) {
  hooks->copy_async(to, from, bytes, valid, __builtin_return_address(0));
}
DAIS_UNSEEN inline void commit_async() { hooks->commit_async(); }
DAIS_UNSEEN inline void wait_async(int groups_left) { hooks->wait_async(groups_left); }
}  // namespace dais_emulation
