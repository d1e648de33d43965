#include "backends/cuda/emulated/fibre.h"

#include <sys/mman.h>

#include <cstdint>

#include "base/error.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#if defined(__x86_64__)
asm(R"(
  .text
  .globl dais_switch_fibre
  .type dais_switch_fibre, @function
dais_switch_fibre:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size dais_switch_fibre, .-dais_switch_fibre
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl dais_switch_fibre
  .type dais_switch_fibre, %function
dais_switch_fibre:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size dais_switch_fibre, .-dais_switch_fibre
)");
#else
#error "the emulated device needs a context switch for this processor"
#endif

namespace dais::cuda::emulated {
namespace {
constexpr size_t kPage = 4096;
}

Stacks::Stacks(size_t most) : most_(most) {
  mapped_bytes_ = (most + 1) * kStackBytes;
  mapping_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED)
    throw Error(Code::exhausted, "no address space for the stacks of an emulated block");
  const auto address = reinterpret_cast<uintptr_t>(mapping_);
  first_ = static_cast<unsigned char*>(mapping_) + (-address & (kStackBytes - 1));
}

Stacks::~Stacks() { munmap(mapping_, mapped_bytes_); }

unsigned char* Stacks::take() {
  if (!free_.empty()) {
    unsigned char* stack = free_.back();
    free_.pop_back();
    return stack;
  }
  DAIS_CHECK(used_ < most_);
  unsigned char* stack = first_ + used_++ * kStackBytes;
  // The first page holds the pointer to the Lane; the second stops a stack that grows too far.
  mprotect(stack + kPage, kPage, PROT_NONE);
  return stack;
}

void Stacks::give(unsigned char* stack) {
#ifdef __SANITIZE_ADDRESS__
  // Frames that were left for good are still marked.
  __asan_unpoison_memory_region(stack, kStackBytes);
#endif
  free_.push_back(stack);
}

void* Stacks::prepare(unsigned char* stack, void (*start)()) {
  auto* top = reinterpret_cast<void**>(stack + kStackBytes - 128);
#if defined(__x86_64__)
  // Six registers, then the address to which the switch returns.
  top[0] = reinterpret_cast<void*>(start);
  top[1] = nullptr;
  return top - 6;
#else
  void** frame = top - 20;
  frame[11] = reinterpret_cast<void*>(start);
  return frame;
#endif
}

}  // namespace dais::cuda::emulated
