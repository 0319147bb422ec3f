// SPDX-License-Identifier: MIT
// The functions that LLVM's conversion of printf to ROCDL calls, under their names in ROCm's device
// library. A message goes to the host as packets of up to seven words of each lane
// (hip/device_printf.h); its descriptor is the host's answer to the packet before.
#include <hip/hip_runtime.h>

namespace {

constexpr uint32_t packet_words = 7;

__device__ uint64_t send(uint64_t descriptor, const uint64_t* words, uint32_t count, bool last)
{
    using namespace cklang_hip;
    uint64_t packet[8] = {};
    for(uint32_t n = 0; n < count; ++n)
        packet[1 + n] = words[n];
    const uint64_t length = uint64_t{count} << message_count_shift;
    packet[0] = descriptor | length | (last ? message_end : 0);
    return call_host(host_prints, packet);
}

} // namespace

extern "C" __device__ uint64_t __ockl_printf_begin(uint64_t version)
{
    return send(cklang_hip::message_begin, &version, 1, false);
}

extern "C" __device__ uint64_t
__ockl_printf_append_args(uint64_t descriptor,
                          uint32_t count,
                          uint64_t a,
                          uint64_t b,
                          uint64_t c,
                          uint64_t d,
                          uint64_t e,
                          uint64_t f,
                          uint64_t g,
                          uint32_t last)
{
    const uint64_t words[packet_words] = {a, b, c, d, e, f, g};
    return send(descriptor, words, count, last != 0);
}

// `length` counts the zero at the end.
extern "C" __device__ uint64_t __ockl_printf_append_string_n(
    uint64_t descriptor, const char* text, uint64_t length, uint32_t last)
{
    do
    {
        uint64_t words[packet_words] = {};
        uint32_t count               = 0;
        for(; count < packet_words && length != 0; ++count)
            for(int n = 0; n < 8 && length != 0; ++n, --length)
                words[count] |= uint64_t{static_cast<unsigned char>(*text++)} << 8 * n;
        descriptor = send(descriptor, words, count, last != 0 && length == 0);
    } while(length != 0);
    return descriptor;
}
