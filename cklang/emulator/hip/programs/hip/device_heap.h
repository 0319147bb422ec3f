// SPDX-License-Identifier: MIT
// malloc, free, new and delete in device code: blocks of powers of two from a heap of 8 MiB, ROCm's default. A
// program that does not call them does not contain the heap. Each source file has a heap of its own, so memory
// goes back in the file that took it.
#pragma once

#include <hip/attributes.h>
#include <hip/device_atomic.h>

#include <cstddef>

namespace cklang_hip {

constexpr size_t heap_bytes = size_t{8} << 20, heap_unit = 16;
constexpr unsigned heap_classes = 24; // blocks of 2^5 to 2^23 bytes

struct Heap
{
    unsigned long long taken; // bytes of blocks that were ever cut
    // Of each size the first free block: its number of units + 1 below, above a count of all changes, so that a
    // block that was taken and came back is not mistaken for one that stayed.
    unsigned long long free[heap_classes];
    alignas(heap_unit) unsigned char memory[heap_bytes];
};

/// What stands before the bytes of the program.
struct alignas(heap_unit) HeapBlock
{
    unsigned size_class;
    unsigned next; // of the free ones
};

#if defined(__HIP__)
static __device__ Heap heap;

__device__ inline HeapBlock* heap_block(unsigned units)
{
    return reinterpret_cast<HeapBlock*>(heap.memory + (units - 1) * heap_unit);
}

__device__ inline void* heap_take(size_t bytes)
{
    if(bytes > heap_bytes / 2 - sizeof(HeapBlock))
        return nullptr;
    const unsigned long long all = bytes + sizeof(HeapBlock);
    const unsigned size_class    = all <= 32 ? 5 : 64 - __builtin_clzll(all - 1);
    unsigned long long* first    = &heap.free[size_class];
    unsigned long long head      = __hip_atomic_load(first, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
    while(static_cast<unsigned>(head) != 0)
    {
        HeapBlock* block = heap_block(static_cast<unsigned>(head));
        const unsigned next = __hip_atomic_load(&block->next, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        const unsigned long long rest = ((head >> 32) + 1) << 32 | next;
        if(__hip_atomic_compare_exchange_strong(
               first, &head, rest, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT))
            return block + 1;
    }
    const unsigned long long size = 1ull << size_class;
    const unsigned long long at =
        __hip_atomic_fetch_add(&heap.taken, size, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    if(at + size > heap_bytes)
    {
        __hip_atomic_fetch_sub(&heap.taken, size, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        return nullptr;
    }
    HeapBlock* block  = heap_block(static_cast<unsigned>(at / heap_unit) + 1);
    block->size_class = size_class;
    return block + 1;
}

__device__ inline void heap_give(void* pointer)
{
    if(pointer == nullptr)
        return;
    HeapBlock* block          = static_cast<HeapBlock*>(pointer) - 1;
    const unsigned number     = static_cast<unsigned>(
        (reinterpret_cast<unsigned char*>(block) - heap.memory) / heap_unit + 1);
    unsigned long long* first = &heap.free[block->size_class];
    unsigned long long head   = __hip_atomic_load(first, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    unsigned long long mine;
    do
    {
        __hip_atomic_store(
            &block->next, static_cast<unsigned>(head), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        mine = ((head >> 32) + 1) << 32 | number;
    } while(!__hip_atomic_compare_exchange_strong(
        first, &head, mine, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT));
}
#endif

} // namespace cklang_hip

#if defined(__HIP__)
extern "C" {
__device__ inline void* malloc(size_t bytes) { return cklang_hip::heap_take(bytes); }
__device__ inline void free(void* pointer) { cklang_hip::heap_give(pointer); }
}

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winline-new-delete"
__device__ inline void* operator new(size_t bytes) { return cklang_hip::heap_take(bytes); }
__device__ inline void* operator new[](size_t bytes) { return cklang_hip::heap_take(bytes); }
__device__ inline void operator delete(void* pointer) noexcept { cklang_hip::heap_give(pointer); }
__device__ inline void operator delete[](void* pointer) noexcept { cklang_hip::heap_give(pointer); }
__device__ inline void operator delete(void* pointer, size_t) noexcept { cklang_hip::heap_give(pointer); }
__device__ inline void operator delete[](void* pointer, size_t) noexcept { cklang_hip::heap_give(pointer); }
#pragma clang diagnostic pop
#endif
