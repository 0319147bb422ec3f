// SPDX-License-Identifier: MIT
// rocRAND's device functions for three of its generators.
#pragma once

#include <hip/attributes.h>

CKLANG_BEGIN_LIBRARY

#include <rocrand/random_distributions.h>

#define ROCRAND_PHILOX4x32_DEFAULT_SEED 0xdeadbeefdeadbeefULL
#define ROCRAND_XORWOW_DEFAULT_SEED 0ULL
#define ROCRAND_MRG32K3A_DEFAULT_SEED 12345ULL

using rocrand_state_philox4x32_10 = cklang_random::Philox;
using rocrand_state_xorwow        = cklang_random::Xorwow;
using rocrand_state_mrg32k3a      = cklang_random::Mrg32k3a;

#define CKLANG_RANDOM template <typename State> __forceinline__ __host__ __device__

CKLANG_RANDOM void skipahead(unsigned long long count, State* state) { state->skip(count); }
CKLANG_RANDOM void skipahead_sequence(unsigned long long count, State* state) { state->skip_sequences(count); }
CKLANG_RANDOM void skipahead_subsequence(unsigned long long count, State* state)
{
    state->skip_subsequences(count);
}

// Functions of a library by its prefix: the suffixes of one, two and four numbers are its own.
#define CKLANG_RANDOM_LIBRARY(name, wide, wide2, wide4)                                              \
    CKLANG_RANDOM void name##_init(                                                                  \
        unsigned long long seed, unsigned long long subsequence, unsigned long long offset, State* state) \
    {                                                                                                \
        *state = State(seed, subsequence, offset);                                                   \
    }                                                                                                \
    CKLANG_RANDOM unsigned int name(State* state) { return state->bits(); }                          \
    CKLANG_RANDOM uint4 name##4(State* state)                                                        \
    {                                                                                                \
        return {state->bits(), state->bits(), state->bits(), state->bits()};                         \
    }                                                                                                \
    CKLANG_RANDOM_ONE(name##_uniform, name##_uniform##wide, state->unit(), state->wide_unit(), (State* state)) \
    CKLANG_RANDOM float2 name##_uniform2(State* state) { return {state->unit(), state->unit()}; }    \
    CKLANG_RANDOM float4 name##_uniform4(State* state)                                               \
    {                                                                                                \
        return {state->unit(), state->unit(), state->unit(), state->unit()};                         \
    }                                                                                                \
    CKLANG_RANDOM double2 name##_uniform##wide2(State* state)                                        \
    {                                                                                                \
        return {state->wide_unit(), state->wide_unit()};                                             \
    }                                                                                                \
    CKLANG_RANDOM double4 name##_uniform##wide4(State* state)                                        \
    {                                                                                                \
        return {state->wide_unit(), state->wide_unit(), state->wide_unit(), state->wide_unit()};     \
    }                                                                                                \
    CKLANG_RANDOM_ONE(name##_normal, name##_normal##wide, cklang_random::normal(*state),             \
                      cklang_random::wide_normal(*state), (State* state))                            \
    CKLANG_RANDOM float2 name##_normal2(State* state) { return cklang_random::normal_pair(*state); } \
    CKLANG_RANDOM double2 name##_normal##wide2(State* state)                                         \
    {                                                                                                \
        return cklang_random::wide_normal_pair(*state);                                              \
    }                                                                                                \
    CKLANG_RANDOM_FOUR(float4, name##_normal4, name##_normal2(state), (State* state))                \
    CKLANG_RANDOM_FOUR(double4, name##_normal##wide4, name##_normal##wide2(state), (State* state))   \
    CKLANG_RANDOM_ONE(name##_log_normal, name##_log_normal##wide,                                    \
                      expf(static_cast<float>(mean) + static_cast<float>(deviation) * name##_normal(state)), \
                      exp(mean + deviation * name##_normal##wide(state)),                            \
                      (State* state, double mean, double deviation))                                 \
    CKLANG_RANDOM float2 name##_log_normal2(State* state, float mean, float deviation)               \
    {                                                                                                \
        const float2 x = name##_normal2(state);                                                      \
        return {expf(mean + deviation * x.x), expf(mean + deviation * x.y)};                         \
    }                                                                                                \
    CKLANG_RANDOM double2 name##_log_normal##wide2(State* state, double mean, double deviation)      \
    {                                                                                                \
        const double2 x = name##_normal##wide2(state);                                               \
        return {exp(mean + deviation * x.x), exp(mean + deviation * x.y)};                           \
    }                                                                                                \
    CKLANG_RANDOM_FOUR(float4, name##_log_normal4, name##_log_normal2(state, mean, deviation),       \
                       (State* state, float mean, float deviation))                                  \
    CKLANG_RANDOM_FOUR(double4, name##_log_normal##wide4, name##_log_normal##wide2(state, mean, deviation), \
                       (State* state, double mean, double deviation))                                \
    CKLANG_RANDOM unsigned int name##_poisson(State* state, double mean)                             \
    {                                                                                                \
        return cklang_random::poisson(*state, mean);                                                 \
    }                                                                                                \
    CKLANG_RANDOM uint4 name##_poisson4(State* state, double mean)                                   \
    {                                                                                                \
        return {name##_poisson(state, mean), name##_poisson(state, mean), name##_poisson(state, mean), \
                name##_poisson(state, mean)};                                                        \
    }

#define CKLANG_RANDOM_ONE(single, wide, single_value, wide_value, parameters) \
    CKLANG_RANDOM float single parameters { return single_value; }            \
    CKLANG_RANDOM double wide parameters { return wide_value; }
#define CKLANG_RANDOM_FOUR(type, name, pair, parameters)  \
    CKLANG_RANDOM type name parameters                    \
    {                                                     \
        const auto first = pair, second = pair;           \
        return {first.x, first.y, second.x, second.y};    \
    }

CKLANG_RANDOM_LIBRARY(rocrand, _double, _double2, _double4)

CKLANG_END_LIBRARY
