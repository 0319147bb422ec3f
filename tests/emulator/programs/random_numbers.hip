// SPDX-License-Identifier: MIT
// random_numbers GENERATOR SEED SUBSEQUENCE OFFSET SKIPS MEAN OUT: what each of 64 threads draws, on the device and on
// the host; thread t begins at subsequence SUBSEQUENCE + t, and skips OFFSET numbers another SKIPS times.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <hip/hip_runtime.h>
#include <hiprand/hiprand_kernel.h>
#include <rocrand/rocrand_kernel.h>

constexpr int threads = 64, many = 256;

struct Drawn
{
    unsigned int bits[16];
    float unit[4];
    double wide_unit[4];
    float normal[6];
    double wide_normal[6];
    float log_normal[4];
    unsigned int after_sequence[2];
    float normals[many];
    unsigned int poissons[many];
};

struct Request
{
    unsigned long long seed, subsequence, offset;
    int skips;
    double mean;
};

template <typename State>
__host__ __device__ void draw(Request request, int thread, Drawn& out)
{
    State state;
    hiprand_init(request.seed, request.subsequence + thread, request.offset, &state);
    for(int n = 0; n < request.skips; ++n)
        skipahead(request.offset, &state);
    for(int n = 0; n < 8; ++n)
        out.bits[n] = n % 2 ? rocrand(&state) : hiprand(&state);
    for(int n = 8; n < 16; n += 4)
    {
        const uint4 four = hiprand4(&state);
        out.bits[n] = four.x, out.bits[n + 1] = four.y, out.bits[n + 2] = four.z, out.bits[n + 3] = four.w;
    }
    State other = state;
    out.unit[0] = hiprand_uniform(&other);
    const float2 units = hiprand_uniform2(&other);
    out.unit[1] = units.x, out.unit[2] = units.y, out.unit[3] = rocrand_uniform4(&other).x;
    other            = state;
    out.wide_unit[0] = hiprand_uniform_double(&other), out.wide_unit[1] = rocrand_uniform_double(&other);
    const double2 wide_units = hiprand_uniform2_double(&other);
    out.wide_unit[2] = wide_units.x, out.wide_unit[3] = wide_units.y;
    other         = state;
    out.normal[0] = hiprand_normal(&other), out.normal[1] = hiprand_normal(&other);
    const float4 normals = rocrand_normal4(&other);
    out.normal[2] = normals.x, out.normal[3] = normals.y, out.normal[4] = normals.z, out.normal[5] = normals.w;
    other              = state;
    out.wide_normal[0] = hiprand_normal_double(&other), out.wide_normal[1] = hiprand_normal_double(&other);
    const double4 wide_normals = hiprand_normal4_double(&other);
    out.wide_normal[2] = wide_normals.x, out.wide_normal[3] = wide_normals.y;
    out.wide_normal[4] = wide_normals.z, out.wide_normal[5] = wide_normals.w;
    other             = state;
    out.log_normal[0] = hiprand_log_normal(&other, 0.5f, 0.25f), out.log_normal[1] = hiprand_log_normal(&other, 0.5f, 0.25f);
    out.log_normal[2] = static_cast<float>(rocrand_log_normal_double2(&other, 0.5, 0.25).x);
    out.log_normal[3] = hiprand_log_normal4(&other, 0.5f, 0.25f).w;
    other             = state;
    skipahead_sequence(1, &other);
    out.after_sequence[0] = hiprand(&other);
    skipahead_subsequence(3, &other);
    out.after_sequence[1] = hiprand(&other);
    for(int n = 0; n < many; ++n)
        out.normals[n] = hiprand_normal(&state);
    for(int n = 0; n < many; ++n)
        out.poissons[n] = hiprand_poisson(&state, request.mean);
}

template <typename State>
__global__ void draw_all(Request request, Drawn* out)
{
    draw<State>(request, static_cast<int>(threadIdx.x), out[threadIdx.x]);
}

template <typename State>
void run(const Request& request, Drawn* device, Drawn* host)
{
    draw_all<State><<<1, threads>>>(request, device);
    hipDeviceSynchronize();
    for(int thread = 0; thread < threads; ++thread)
        draw<State>(request, thread, host[thread]);
}

int main(int, char** words)
{
    const Request request{std::strtoull(words[2], nullptr, 0), std::strtoull(words[3], nullptr, 0),
                          std::strtoull(words[4], nullptr, 0), std::atoi(words[5]), std::atof(words[6])};
    Drawn* device;
    if(hipMallocManaged(&device, threads * sizeof(Drawn)) != hipSuccess)
        return 1;
    std::vector<Drawn> host(threads);
    if(std::strcmp(words[1], "philox") == 0)
        run<hiprandStatePhilox4_32_10_t>(request, device, host.data());
    else if(std::strcmp(words[1], "xorwow") == 0)
        run<hiprandState_t>(request, device, host.data());
    else
        run<hiprandStateMRG32k3a_t>(request, device, host.data());
    std::FILE* file = std::fopen(words[7], "wb");
    std::fwrite(device, sizeof(Drawn), threads, file);
    std::fwrite(host.data(), sizeof(Drawn), threads, file);
    std::fclose(file);
    return hipGetLastError() != hipSuccess;
}
