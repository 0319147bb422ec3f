// SPDX-License-Identifier: MIT
// Text on the GPU: words are counted and hashed into a table with linear probing; patterns are found with device lambdas.
#include <hip/hip_runtime.h>

#include <cctype>
#include <cstdio>
#include <map>
#include <string>

constexpr int kSlots = 1024;

struct Slot
{
    unsigned long long hash;
    int count, first;
};

__host__ __device__ inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
__host__ __device__ inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

__global__ void count_words(const char* text, int size, Slot* table)
{
    const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if(n >= size || !is_letter(text[n]) || (n > 0 && is_letter(text[n - 1])))
        return;
    unsigned long long hash = 0xcbf29ce484222325ull;
    for(int at = n; at < size && is_letter(text[at]); ++at)
        hash = (hash ^ static_cast<unsigned char>(lower(text[at]))) * 0x100000001b3ull;
    hash |= 1;
    for(unsigned slot = static_cast<unsigned>(hash >> 20) % kSlots;; slot = (slot + 1) % kSlots)
    {
        const unsigned long long before = atomicCAS(&table[slot].hash, 0ull, hash);
        if(before != 0 && before != hash)
            continue;
        atomicAdd(&table[slot].count, 1);
        atomicMin(&table[slot].first, n);
        return;
    }
}

template <typename Match>
__global__ void find_all(const char* text, int size, int* total, Match match)
{
    const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const bool hit = n < size && match(text, n, size);
    const int hits = __syncthreads_count(hit);
    if(threadIdx.x == 0)
        atomicAdd(total, hits);
}

int main()
{
    std::string text;
    const char* vocabulary[] = {"The", "wave", "the", "lane", "register", "WAVE", "scalar", "and", "vector", "load"};
    unsigned random = 1;
    for(int n = 0; n < 1500; ++n)
    {
        random = random * 1664525 + 1013904223;
        text += vocabulary[random >> 16 & 7];
        text += random >> 28 == 0 ? ".\n" : " ";
    }
    std::map<std::string, int> expected;
    for(size_t n = 0; n < text.size();)
    {
        std::string word;
        for(; n < text.size() && is_letter(text[n]); ++n)
            word += lower(text[n]);
        if(!word.empty())
            ++expected[word];
        else
            ++n;
    }
    const int size = static_cast<int>(text.size()), blocks = (size + 255) / 256;
    char* device;
    Slot* table;
    int* total;
    int failed = hipMalloc(&device, text.size()) + hipMallocManaged(&table, kSlots * sizeof(Slot)) + hipMallocManaged(&total, 2 * sizeof(int));
    failed += hipMemcpy(device, text.data(), text.size(), hipMemcpyHostToDevice);
    for(int n = 0; n < kSlots; ++n)
        table[n] = {0, 0, size};
    total[0] = total[1] = 0;
    count_words<<<blocks, 256>>>(device, size, table);
    const char initial = 'w';
    find_all<<<blocks, 256>>>(device, size, total, [=] __device__(const char* t, int n, int) { return lower(t[n]) == initial; });
    find_all<<<blocks, 256>>>(device, size, total + 1, [] __device__(const char* t, int n, int end) { return n + 1 < end && t[n] == '.' && t[n + 1] == '\n'; });
    failed += hipDeviceSynchronize();
    size_t words = 0;
    for(int n = 0; n < kSlots; ++n)
    {
        if(table[n].count == 0)
            continue;
        ++words;
        std::string word;
        for(int at = table[n].first; is_letter(text[at]); ++at)
            word += lower(text[at]);
        failed += expected[word] != table[n].count;
    }
    failed += words != expected.size() || total[0] != expected["wave"];
    int ends = 0;
    for(size_t at = text.find(".\n"); at != std::string::npos; at = text.find(".\n", at + 1))
        ++ends;
    failed += total[1] != ends;
    printf("%d failed\n", failed);
    return failed + hipFree(device) + hipFree(table) + hipFree(total);
}
