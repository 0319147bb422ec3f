// SPDX-License-Identifier: MIT
// printf and assert in device code. A wave asks the host through packets in shared memory, in the layout
// of ROCm's device library (see emulator/src/hostcall.h). Kernels that do not print get nothing of this.
#pragma once

#include <cstdint>
#include <cstdio>
#include <hip/attributes.h>
#include <hip/device_sync.h>
#include <type_traits>

namespace cklang_hip {

struct HostPacket
{
    uint64_t next, active;
    uint32_t service, control;
};

struct HostPayload
{
    uint64_t slots[64][8];
};

struct HostBuffer
{
    HostPacket* packets;
    HostPayload* payloads;
    uint64_t doorbell, free, ready, index_bits;
};

constexpr uint32_t host_prints   = 2;
constexpr uint32_t host_pending  = 1;
constexpr uint64_t message_begin = 1, message_end = 2;
constexpr uint32_t message_count_shift = 5;
constexpr uint64_t print_to_stderr     = 1;

__device__ inline HostBuffer& host_buffer()
{
    // Where code object version 5 has hidden_hostcall_buffer.
    using Hidden       = const __attribute__((address_space(4))) char*;
    const Hidden hidden = (Hidden)__builtin_amdgcn_implicitarg_ptr() + 80;
    return **(HostBuffer* const __attribute__((address_space(4)))*)hidden;
}

template <typename T>
__device__ inline T host_load(T& place)
{
    return __hip_atomic_load(&place, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}

__device__ inline bool host_replace(uint64_t& place, uint64_t& expected, uint64_t wanted)
{
    return __hip_atomic_compare_exchange_strong(
        &place, &expected, wanted, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}

__device__ inline HostPacket& host_packet(HostBuffer& buffer, uint64_t name)
{
    return buffer.packets[name & ((uint64_t{1} << buffer.index_bits) - 1)];
}

__device__ inline uint64_t pop_free_packet(HostBuffer& buffer)
{
    uint64_t top = host_load(buffer.free);
    for(;;)
    {
        if(top == 0)
        {
            __builtin_amdgcn_s_sleep(1);
            top = host_load(buffer.free);
        }
        else if(host_replace(buffer.free, top, host_packet(buffer, top).next))
            return top;
    }
}

__device__ inline void push_packet(HostBuffer& buffer, uint64_t& stack, uint64_t name)
{
    uint64_t top = host_load(stack);
    do
        host_packet(buffer, name).next = top;
    while(!host_replace(stack, top, name));
}

__device__ inline uint64_t of_first_lane(uint64_t value)
{
    const uint32_t low  = __builtin_amdgcn_readfirstlane(static_cast<uint32_t>(value));
    const uint32_t high = __builtin_amdgcn_readfirstlane(static_cast<uint32_t>(value >> 32));
    return uint64_t{high} << 32 | low;
}

// Sends 8 words of each active lane; the first word of the answer.
__device__ __noinline__ inline uint64_t call_host(uint32_t service, const uint64_t (&words)[8])
{
    HostBuffer& buffer  = host_buffer();
    const uint32_t lane = __lane_id();
    const bool first    = lane == __builtin_amdgcn_readfirstlane(lane);
    uint64_t name       = 0;
    if(first)
        name = pop_free_packet(buffer);
    name                 = of_first_lane(name);
    HostPacket& packet   = host_packet(buffer, name);
    uint64_t(&slot)[8]   = buffer.payloads[&packet - buffer.packets].slots[lane];
    const uint64_t lanes = __ballot(1);
    for(int n = 0; n < 8; ++n)
        slot[n] = words[n];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    if(first)
    {
        packet.active  = lanes;
        packet.service = service;
        packet.control = host_pending;
        push_packet(buffer, buffer.ready, name);
        while((host_load(packet.control) & host_pending) != 0)
            __builtin_amdgcn_s_sleep(1);
    }
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
    const uint64_t answer = *const_cast<volatile uint64_t*>(&slot[0]);
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    if(first)
    {
        const uint64_t next_use = name + (uint64_t{1} << buffer.index_bits);
        push_packet(buffer, buffer.free, next_use == 0 ? name : next_use);
    }
    return answer;
}

// A message of any length, sent seven words at a time.
class HostMessage
{
    public:
    __device__ explicit HostMessage(uint64_t control)
    {
        words_[0] = message_begin;
        word(control);
    }
    __device__ void word(uint64_t value)
    {
        if(count_ == 7)
            send(0);
        words_[++count_] = value;
    }
    __device__ void string(const char* text)
    {
        for(bool more = true; more;)
        {
            uint64_t packed = 0;
            for(int n = 0; n < 8 && more; ++n)
            {
                const auto letter = static_cast<unsigned char>(*text++);
                packed |= uint64_t{letter} << 8 * n;
                more = letter != 0;
            }
            word(packed);
        }
    }
    __device__ int end() { return static_cast<int>(send(message_end)); }

    // A value of a printf, as the format's conversions take it.
    template <typename T>
    __device__ void value(T given)
    {
        if constexpr(std::is_same_v<T, const char*> || std::is_same_v<T, char*>)
            string(given != nullptr ? given : "(null)");
        else if constexpr(std::is_pointer_v<T>)
            word(reinterpret_cast<uintptr_t>(given));
        else if constexpr(std::is_null_pointer_v<T>)
            word(0);
        else if constexpr(std::is_integral_v<T> || std::is_enum_v<T>)
            word(static_cast<uint64_t>(static_cast<int64_t>(given)));
        else if constexpr(std::is_class_v<T>)
            word(static_cast<uint32_t>(given)); // threadIdx.x and its like
        else
            word(__builtin_bit_cast(uint64_t, static_cast<double>(given)));
    }

    private:
    __device__ uint64_t send(uint64_t flags)
    {
        words_[0] |= flags | static_cast<uint64_t>(count_) << message_count_shift;
        words_[0] = call_host(host_prints, words_);
        count_    = 0;
        return words_[0];
    }

    uint64_t words_[8] = {};
    int count_         = 0;
};

template <typename... T>
__device__ inline int print(uint64_t control, const char* format, T... values)
{
    HostMessage message(control);
    message.string(format);
    (message.value(values), ...);
    return message.end();
}

} // namespace cklang_hip

// Chosen over the C library's in device code. A char pointer is a string: cast it to void* for %p.
template <typename... T>
__device__ inline int printf(const char* format, T... values)
{
    return cklang_hip::print(0, format, values...);
}

namespace std {
using ::printf;
}

// Without NDEBUG only: relocatable code keeps it in every kernel, called or not.
#if !defined(NDEBUG)
extern "C" __device__ __attribute__((noinline, noreturn, weak)) void
__assert_fail(const char* condition, const char* file, unsigned int line, const char* function) noexcept
{
    cklang_hip::print(cklang_hip::print_to_stderr,
                      "%s:%u: %s: Device-side assertion `%s' failed.\n",
                      file,
                      line,
                      function,
                      condition);
    __builtin_trap();
}
#endif
