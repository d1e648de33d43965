#include "backends/cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace dais::cpu {
namespace {

#if defined(__x86_64__)

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

/// All zero when the processor does not have the leaf or its sub-leaf.
Leaf cpuid(unsigned leaf, unsigned subleaf) {
  Leaf out;
  if (!__get_cpuid_count(leaf, subleaf, &out.a, &out.b, &out.c, &out.d)) return {};
  return out;
}

bool has(unsigned word, std::initializer_list<int> bits) {
  return std::all_of(bits.begin(), bits.end(), [=](int bit) { return (word >> bit & 1) != 0; });
}

/// Register states the operating system saves on a task switch.
unsigned saved_states() {
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

constexpr unsigned avx_states = 0x6, avx512_states = 0xe6, amx_states = 0x60000;

/// Linux hands out the 8 KiB tile state only to processes that ask for it.
bool ask_for_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

Isa detect() {
  const Leaf first = cpuid(1, 0), seventh = cpuid(7, 0), seventh_1 = cpuid(7, 1);
  constexpr int fma = 12, osxsave = 27, avx = 28, f16c = 29, avx2 = 5;
  if (!has(first.c, {fma, osxsave, avx, f16c}) || !has(seventh.b, {avx2})) return Isa::plain;
  const unsigned states = saved_states();
  if ((states & avx_states) != avx_states) return Isa::plain;

  constexpr int f = 16, dq = 17, cd = 28, bw = 30, vl = 31, vnni = 11;
  if (!has(seventh.b, {f, dq, cd, bw, vl}) || !has(seventh.c, {vnni}) ||
      (states & avx512_states) != avx512_states)
    return Isa::avx2;

  constexpr int amx_bf16 = 22, amx_tile = 24, amx_int8 = 25, avx512_bf16 = 5;
  if (!has(seventh.d, {amx_bf16, amx_tile, amx_int8}) || !has(seventh_1.a, {avx512_bf16}) ||
      (states & amx_states) != amx_states || !ask_for_tiles())
    return Isa::avx512;
  return Isa::amx;
}

#else

Isa detect() { return Isa::plain; }

#endif

std::optional<Isa> read_cap() {
  const char* text = std::getenv("DAIS_MAX_ISA");
  if (text == nullptr || *text == '\0') return std::nullopt;
  std::vector<std::string> names;
  for (Isa level : {Isa::plain, Isa::avx2, Isa::avx512, Isa::amx}) {
    if (isa_name(level) == text) return level;
    names.emplace_back(isa_name(level));
  }
  const std::string near = nearest(text, names);
  throw Error(Code::invalid_argument, "'" + std::string(text) + "' is no instruction-set level",
              "environment variable DAIS_MAX_ISA",
              "Use plain, avx2, avx512 or amx" + (near.empty() ? "" : "; '" + near + "' is near"));
}

}  // namespace

Isa machine_isa() {
  static const Isa level = detect();
  return level;
}

std::optional<Isa> isa_cap() {
  static const std::optional<Isa> cap = read_cap();
  return cap;
}

Isa isa() { return std::min(machine_isa(), isa_cap().value_or(Isa::amx)); }

}  // namespace dais::cpu
