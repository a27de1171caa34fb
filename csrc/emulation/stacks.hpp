// Stacks, and switches between them: what the threads of an emulated device are made of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace emulated {

// The saved stack of a coroutine. Written by hand, because `swapcontext` calls the kernel each time.
typedef void* Stopped;

// Leaves this stack, whose place is put into `from`, for that of `to`.
extern "C" void emulated_switch(Stopped* from, Stopped to);
#if defined(__x86_64__)
asm(R"(
.text
.type emulated_switch, @function
emulated_switch:
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
)");
enum : size_t { kept_words = 6 };
#elif defined(__aarch64__)
asm(R"(
.text
.type emulated_switch, %function
emulated_switch:
    sub sp, sp, #160
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp d8, d9, [sp, #80]
    stp d10, d11, [sp, #96]
    stp d12, d13, [sp, #112]
    stp d14, d15, [sp, #128]
    stp x29, x30, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp d8, d9, [sp, #80]
    ldp d10, d11, [sp, #96]
    ldp d12, d13, [sp, #112]
    ldp d14, d15, [sp, #128]
    ldp x29, x30, [sp, #144]
    add sp, sp, #160
    ret
)");
enum : size_t { kept_words = 19 };
#else
#error "no switch between stacks is written down for this processor"
#endif

// A stack whose first switch enters the function, which never returns.
inline Stopped begin_at(unsigned char* stack, size_t bytes, void (*function)()) {
    // A switch returns to the function's address. At its beginning the stack is 8 past a multiple of 16 on x86-64, as behind
    // a call, and a multiple of 16 on Arm.
    void** top = (void**)((uintptr_t)(stack + bytes) / 16 * 16) - 4 - kept_words % 2;
    top[0] = (void*)function;
    top[1] = nullptr;
    void** start = top - kept_words;
    memset(start, 0, kept_words * sizeof *start);
    return start;
}

}  // namespace emulated
