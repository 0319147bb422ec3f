// SPDX-License-Identifier: MIT
// hipRAND's host interface, for HIP sources: arrays of numbers, drawn on the device or on the host. Element n comes from
// subsequence n mod 1024 of the generator, so both draw the same; the order is not rocRAND's.
#pragma once

#include <new>
#include <type_traits>

#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <hiprand/hiprand_kernel.h>

#define HIPRAND_VERSION 300100
#define HIPRAND_DEFAULT_MAX_BLOCK_SIZE 256

enum hiprandStatus
{
    HIPRAND_STATUS_SUCCESS                   = 0,
    HIPRAND_STATUS_VERSION_MISMATCH          = 100,
    HIPRAND_STATUS_NOT_INITIALIZED           = 101,
    HIPRAND_STATUS_ALLOCATION_FAILED         = 102,
    HIPRAND_STATUS_TYPE_ERROR                = 103,
    HIPRAND_STATUS_OUT_OF_RANGE              = 104,
    HIPRAND_STATUS_LENGTH_NOT_MULTIPLE       = 105,
    HIPRAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
    HIPRAND_STATUS_LAUNCH_FAILURE            = 201,
    HIPRAND_STATUS_PREEXISTING_FAILURE       = 202,
    HIPRAND_STATUS_INITIALIZATION_FAILED     = 203,
    HIPRAND_STATUS_ARCH_MISMATCH             = 204,
    HIPRAND_STATUS_INTERNAL_ERROR            = 999,
    HIPRAND_STATUS_NOT_IMPLEMENTED           = 1000,
};
typedef hiprandStatus hiprandStatus_t;

enum hiprandRngType
{
    HIPRAND_RNG_PSEUDO_DEFAULT          = 400,
    HIPRAND_RNG_PSEUDO_XORWOW           = 401,
    HIPRAND_RNG_PSEUDO_MRG32K3A         = 402,
    HIPRAND_RNG_PSEUDO_MTGP32           = 403,
    HIPRAND_RNG_PSEUDO_MT19937          = 404,
    HIPRAND_RNG_PSEUDO_PHILOX4_32_10    = 405,
    HIPRAND_RNG_QUASI_DEFAULT           = 500,
    HIPRAND_RNG_QUASI_SOBOL32           = 501,
    HIPRAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 502,
    HIPRAND_RNG_QUASI_SOBOL64           = 503,
    HIPRAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 504,
};
typedef hiprandRngType hiprandRngType_t;

/// A generator: the states of its subsequences, once it has drawn, and where it draws.
struct hiprandGenerator_st
{
    hiprandRngType type;
    bool on_host;
    unsigned long long seed, offset = 0;
    hipStream_t stream = nullptr;
    void* states       = nullptr;
};
typedef hiprandGenerator_st* hiprandGenerator_t;

namespace cklang_random {

constexpr unsigned kThreads = 128, kStates = 1024;

template <typename State>
__global__ void begin(State* states, unsigned long long seed, unsigned long long offset)
{
    const unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
    states[me]        = State(seed, me, offset);
}

template <typename State, typename T, typename Draw>
__host__ __device__ void draw_every(State& state, unsigned first, T* values, size_t count, const Draw& draw)
{
    for(size_t n = first; n < count; n += kStates)
        values[n] = static_cast<T>(draw(state));
}

template <typename State, typename T, typename Draw>
__global__ void fill(State* states, T* values, size_t count, Draw draw)
{
    const unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
    State state       = states[me];
    draw_every(state, me, values, count, draw);
    states[me] = state;
}

/// What is drawn: a state gives one number.
struct Bits
{
    template <typename State>
    __host__ __device__ unsigned operator()(State& state) const
    {
        return state.bits();
    }
};
struct Unit
{
    template <typename State>
    __host__ __device__ float operator()(State& state) const
    {
        return state.unit();
    }
};
struct WideUnit
{
    template <typename State>
    __host__ __device__ double operator()(State& state) const
    {
        return state.wide_unit();
    }
};
template <typename T>
struct Normal
{
    T mean, deviation;
    template <typename State>
    __host__ __device__ T operator()(State& state) const
    {
        if constexpr(sizeof(T) == sizeof(float))
            return mean + deviation * normal(state);
        else
            return mean + deviation * wide_normal(state);
    }
};
template <typename T>
struct LogNormal
{
    Normal<T> of;
    template <typename State>
    __host__ __device__ T operator()(State& state) const
    {
        if constexpr(sizeof(T) == sizeof(float))
            return expf(of(state));
        else
            return exp(of(state));
    }
};
struct Poisson
{
    double mean;
    template <typename State>
    __host__ __device__ unsigned operator()(State& state) const
    {
        return poisson(state, mean);
    }
};

template <typename State>
hiprandStatus start(hiprandGenerator_st& generator)
{
    if(generator.states != nullptr)
        return HIPRAND_STATUS_SUCCESS;
    if(generator.on_host)
    {
        State* states = new(std::nothrow) State[kStates];
        if(states == nullptr)
            return HIPRAND_STATUS_ALLOCATION_FAILED;
        for(unsigned n = 0; n < kStates; ++n)
            states[n] = State(generator.seed, n, generator.offset);
        generator.states = states;
        return HIPRAND_STATUS_SUCCESS;
    }
    if(hipMalloc(&generator.states, kStates * sizeof(State)) != hipSuccess)
        return HIPRAND_STATUS_ALLOCATION_FAILED;
    begin<<<kStates / kThreads, kThreads, 0, generator.stream>>>(
        static_cast<State*>(generator.states), generator.seed, generator.offset);
    return hipGetLastError() == hipSuccess ? HIPRAND_STATUS_SUCCESS : HIPRAND_STATUS_LAUNCH_FAILURE;
}

template <typename State>
hiprandStatus forget(hiprandGenerator_st& generator)
{
    State* states = static_cast<State*>(generator.states);
    if(generator.on_host)
        delete[] states;
    else if(states != nullptr && hipFree(states) != hipSuccess)
        return HIPRAND_STATUS_INTERNAL_ERROR;
    generator.states = nullptr;
    return HIPRAND_STATUS_SUCCESS;
}

/// Calls `use` with a null pointer to the generator's kind of state.
template <typename Use>
hiprandStatus with_state(hiprandGenerator_t generator, Use use)
{
    if(generator == nullptr)
        return HIPRAND_STATUS_NOT_INITIALIZED;
    switch(generator->type)
    {
    case HIPRAND_RNG_PSEUDO_PHILOX4_32_10: return use(static_cast<Philox*>(nullptr));
    case HIPRAND_RNG_PSEUDO_MRG32K3A: return use(static_cast<Mrg32k3a*>(nullptr));
    default: return use(static_cast<Xorwow*>(nullptr));
    }
}

template <typename T, typename Draw>
hiprandStatus generate(hiprandGenerator_t generator, T* values, size_t count, const Draw& draw)
{
    return with_state(generator, [&](auto* kind) {
        using State = std::remove_pointer_t<decltype(kind)>;
        if(const hiprandStatus status = start<State>(*generator); status != HIPRAND_STATUS_SUCCESS)
            return status;
        State* states = static_cast<State*>(generator->states);
        if(generator->on_host)
        {
            for(unsigned n = 0; n < kStates; ++n)
                draw_every(states[n], n, values, count, draw);
            return HIPRAND_STATUS_SUCCESS;
        }
        fill<<<kStates / kThreads, kThreads, 0, generator->stream>>>(states, values, count, draw);
        return hipGetLastError() == hipSuccess ? HIPRAND_STATUS_SUCCESS
                                               : HIPRAND_STATUS_LAUNCH_FAILURE;
    });
}

inline hiprandStatus create(hiprandGenerator_t* generator, hiprandRngType type, bool on_host)
{
    if(generator == nullptr)
        return HIPRAND_STATUS_OUT_OF_RANGE;
    const bool philox = type == HIPRAND_RNG_PSEUDO_PHILOX4_32_10, mrg = type == HIPRAND_RNG_PSEUDO_MRG32K3A;
    if(!philox && !mrg && type != HIPRAND_RNG_PSEUDO_DEFAULT && type != HIPRAND_RNG_PSEUDO_XORWOW)
        return HIPRAND_STATUS_NOT_IMPLEMENTED;
    const unsigned long long seed = philox ? ROCRAND_PHILOX4x32_DEFAULT_SEED
                                    : mrg  ? ROCRAND_MRG32K3A_DEFAULT_SEED
                                           : ROCRAND_XORWOW_DEFAULT_SEED;
    *generator = new(std::nothrow) hiprandGenerator_st{type, on_host, seed};
    return *generator != nullptr ? HIPRAND_STATUS_SUCCESS : HIPRAND_STATUS_ALLOCATION_FAILED;
}

/// Begins anew: at another seed or offset.
inline hiprandStatus restart(hiprandGenerator_t generator)
{
    return with_state(generator, [&](auto* kind) {
        return forget<std::remove_pointer_t<decltype(kind)>>(*generator);
    });
}

} // namespace cklang_random

inline hiprandStatus hiprandCreateGenerator(hiprandGenerator_t* generator, hiprandRngType type)
{
    return cklang_random::create(generator, type, false);
}
inline hiprandStatus hiprandCreateGeneratorHost(hiprandGenerator_t* generator, hiprandRngType type)
{
    return cklang_random::create(generator, type, true);
}
inline hiprandStatus hiprandDestroyGenerator(hiprandGenerator_t generator)
{
    const hiprandStatus status = cklang_random::restart(generator);
    delete generator;
    return status;
}
inline hiprandStatus hiprandSetStream(hiprandGenerator_t generator, hipStream_t stream)
{
    if(generator == nullptr)
        return HIPRAND_STATUS_NOT_INITIALIZED;
    generator->stream = stream;
    return HIPRAND_STATUS_SUCCESS;
}
inline hiprandStatus hiprandSetPseudoRandomGeneratorSeed(hiprandGenerator_t generator, unsigned long long seed)
{
    const hiprandStatus status = cklang_random::restart(generator);
    if(status == HIPRAND_STATUS_SUCCESS)
        generator->seed = seed;
    return status;
}
inline hiprandStatus hiprandSetGeneratorOffset(hiprandGenerator_t generator, unsigned long long offset)
{
    const hiprandStatus status = cklang_random::restart(generator);
    if(status == HIPRAND_STATUS_SUCCESS)
        generator->offset = offset;
    return status;
}
/// States are made at the first number, or here.
inline hiprandStatus hiprandGenerateSeeds(hiprandGenerator_t generator)
{
    return cklang_random::with_state(generator, [&](auto* kind) {
        return cklang_random::start<std::remove_pointer_t<decltype(kind)>>(*generator);
    });
}
inline hiprandStatus hiprandGetVersion(int* version)
{
    if(version == nullptr)
        return HIPRAND_STATUS_OUT_OF_RANGE;
    *version = HIPRAND_VERSION;
    return HIPRAND_STATUS_SUCCESS;
}

inline hiprandStatus hiprandGenerate(hiprandGenerator_t generator, unsigned* values, size_t count)
{
    return cklang_random::generate(generator, values, count, cklang_random::Bits{});
}
inline hiprandStatus hiprandGenerateShort(hiprandGenerator_t generator, unsigned short* values, size_t count)
{
    return cklang_random::generate(generator, values, count, cklang_random::Bits{});
}
inline hiprandStatus hiprandGenerateChar(hiprandGenerator_t generator, unsigned char* values, size_t count)
{
    return cklang_random::generate(generator, values, count, cklang_random::Bits{});
}
inline hiprandStatus hiprandGenerateUniform(hiprandGenerator_t generator, float* values, size_t count)
{
    return cklang_random::generate(generator, values, count, cklang_random::Unit{});
}
inline hiprandStatus hiprandGenerateUniformDouble(hiprandGenerator_t generator, double* values, size_t count)
{
    return cklang_random::generate(generator, values, count, cklang_random::WideUnit{});
}
inline hiprandStatus hiprandGenerateUniformHalf(hiprandGenerator_t generator, half* values, size_t count)
{
    return cklang_random::generate(generator, values, count, cklang_random::Unit{});
}
inline hiprandStatus hiprandGenerateNormal(
    hiprandGenerator_t generator, float* values, size_t count, float mean, float deviation)
{
    return cklang_random::generate(generator, values, count, cklang_random::Normal<float>{mean, deviation});
}
inline hiprandStatus hiprandGenerateNormalDouble(
    hiprandGenerator_t generator, double* values, size_t count, double mean, double deviation)
{
    return cklang_random::generate(generator, values, count, cklang_random::Normal<double>{mean, deviation});
}
inline hiprandStatus
hiprandGenerateNormalHalf(hiprandGenerator_t generator, half* values, size_t count, half mean, half deviation)
{
    const cklang_random::Normal<float> draw{__half2float(mean), __half2float(deviation)};
    return cklang_random::generate(generator, values, count, draw);
}
inline hiprandStatus hiprandGenerateLogNormal(
    hiprandGenerator_t generator, float* values, size_t count, float mean, float deviation)
{
    const cklang_random::LogNormal<float> draw{{mean, deviation}};
    return cklang_random::generate(generator, values, count, draw);
}
inline hiprandStatus hiprandGenerateLogNormalDouble(
    hiprandGenerator_t generator, double* values, size_t count, double mean, double deviation)
{
    const cklang_random::LogNormal<double> draw{{mean, deviation}};
    return cklang_random::generate(generator, values, count, draw);
}
inline hiprandStatus
hiprandGeneratePoisson(hiprandGenerator_t generator, unsigned* values, size_t count, double mean)
{
    return cklang_random::generate(generator, values, count, cklang_random::Poisson{mean});
}
