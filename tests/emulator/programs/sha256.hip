// SPDX-License-Identifier: MIT
// SHA-256 of many messages, one a thread: published digests, and a chain of hashes in which each is the next message.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
__constant__ unsigned kRound[64];
static unsigned host_round[64], initial[8];

static void constants()
{
    int count = 0;
    for(int n = 2; count < 64; ++n)
    {
        bool prime = true;
        for(int d = 2; d * d <= n; ++d)
            prime = prime && n % d != 0;
        if(!prime)
            continue;
        const long double cube = cbrtl(static_cast<long double>(n)), square = sqrtl(static_cast<long double>(n));
        if(count < 8)
            initial[count] = static_cast<unsigned>((square - floorl(square)) * 4294967296.0L);
        host_round[count++] = static_cast<unsigned>((cube - floorl(cube)) * 4294967296.0L);
    }
}

struct Digest
{
    unsigned word[8];
};

__host__ __device__ inline unsigned turned(unsigned x, int n) { return x >> n | x << (32 - n); }

__host__ __device__ inline void compress(Digest& state, const unsigned char* block, const unsigned* round)
{
    unsigned w[64];
    for(int n = 0; n < 16; ++n)
        w[n] = block[4 * n] << 24 | block[4 * n + 1] << 16 | block[4 * n + 2] << 8 | block[4 * n + 3];
    for(int n = 16; n < 64; ++n)
    {
        const unsigned a = turned(w[n - 15], 7) ^ turned(w[n - 15], 18) ^ w[n - 15] >> 3;
        const unsigned b = turned(w[n - 2], 17) ^ turned(w[n - 2], 19) ^ w[n - 2] >> 10;
        w[n]             = w[n - 16] + a + w[n - 7] + b;
    }
    Digest s = state;
    auto& v  = s.word;
    for(int n = 0; n < 64; ++n)
    {
        const unsigned sum1 = turned(v[4], 6) ^ turned(v[4], 11) ^ turned(v[4], 25), choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        const unsigned one  = v[7] + sum1 + choice + round[n] + w[n];
        const unsigned sum0 = turned(v[0], 2) ^ turned(v[0], 13) ^ turned(v[0], 22);
        const unsigned two  = sum0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        for(int k = 7; k > 0; --k)
            v[k] = v[k - 1];
        v[4] += one;
        v[0] = one + two;
    }
    for(int n = 0; n < 8; ++n)
        state.word[n] += v[n];
}

__host__ __device__ inline Digest hash(const unsigned char* text, unsigned length, Digest state, const unsigned* round)
{
    unsigned char block[64];
    const unsigned blocks = (length + 8) / 64 + 1;
    for(unsigned b = 0; b < blocks; ++b)
    {
        for(unsigned n = 0; n < 64; ++n)
        {
            const unsigned at = b * 64 + n;
            block[n]          = at < length ? text[at] : at == length ? 0x80 : 0;
        }
        if(b == blocks - 1)
            for(int n = 0; n < 4; ++n)
                block[63 - n] = static_cast<unsigned char>(length * 8 >> 8 * n);
        compress(state, block, round);
    }
    return state;
}

__global__ void digests(const unsigned char* texts, const unsigned* begins, Digest first, Digest* results, int count, int chain)
{
    const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if(n >= count)
        return;
    Digest result = hash(texts + begins[n], begins[n + 1] - begins[n], first, kRound);
    for(int link = 0; link < chain; ++link)
    {
        unsigned char bytes[32];
        for(int k = 0; k < 32; ++k)
            bytes[k] = static_cast<unsigned char>(result.word[k / 4] >> (24 - 8 * (k % 4)));
        result = hash(bytes, 32, first, kRound);
    }
    results[n] = result;
}

static std::string text_of(const Digest& digest)
{
    std::string text;
    char word[9];
    for(const unsigned value : digest.word)
    {
        snprintf(word, sizeof word, "%08x", value);
        text += word;
    }
    return text;
}

int main()
{
    constants();
    Digest first;
    std::memcpy(first.word, initial, sizeof initial);
    std::vector<std::string> messages{"", "abc", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"};
    for(int n = 0; n < 70; ++n)
        messages.emplace_back(static_cast<size_t>(n + 40), static_cast<char>('a' + n % 26));
    std::string all;
    std::vector<unsigned> begins{0};
    for(const auto& message : messages)
    {
        all += message;
        begins.push_back(static_cast<unsigned>(all.size()));
    }
    unsigned char* texts;
    unsigned* places;
    Digest* results;
    const int count = static_cast<int>(messages.size());
    int failed      = hipMalloc(&texts, all.size()) + hipMalloc(&places, begins.size() * 4) + hipHostMalloc(&results, count * sizeof(Digest));
    failed += hipMemcpyToSymbol(HIP_SYMBOL(kRound), host_round, sizeof host_round);
    failed += hipMemcpy(texts, all.data(), all.size(), hipMemcpyHostToDevice);
    failed += hipMemcpy(places, begins.data(), begins.size() * 4, hipMemcpyHostToDevice);
    hipLaunchKernelGGL(digests, dim3(2), dim3(64), 0, 0, texts, places, first, results, count, 0);
    failed += hipDeviceSynchronize();
    failed += text_of(results[0]) != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    failed += text_of(results[1]) != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    failed += text_of(results[2]) != "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
    for(int n = 3; n < count; ++n)
    {
        const auto* text = reinterpret_cast<const unsigned char*>(messages[n].data());
        failed += text_of(results[n]) != text_of(hash(text, static_cast<unsigned>(messages[n].size()), first, host_round));
    }
    printf("%d failed\n", failed);
    return failed + hipFree(texts) + hipFree(places) + hipHostFree(results);
}
