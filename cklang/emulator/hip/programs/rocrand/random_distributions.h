// SPDX-License-Identifier: MIT
// Normal numbers by Box and Muller's transformation, in rocRAND's order, and Poisson's: Knuth's products for small
// means, Atkinson's rejection (PA) for larger ones, rounded normal numbers above 4000.
#pragma once

#include <math.h>

#include <rocrand/random_engines.h>

namespace cklang_random {

template <typename Engine>
__host__ __device__ inline float2 normal_pair(Engine& engine)
{
    constexpr float turn = 6.2831855f;
    float u, angle;
    if constexpr(Engine::full_bits)
    {
        constexpr float part = turn * kUnit;
        u                    = engine.unit();
        angle                = part + engine.bits() * part;
    }
    else
    {
        u     = engine.unit();
        angle = engine.unit() * turn;
    }
    const float size = sqrtf(-2.0f * logf(u));
    return {sinf(angle) * size, cosf(angle) * size};
}

template <typename Engine>
__host__ __device__ inline double2 wide_normal_pair(Engine& engine)
{
    double u, half_turns;
    if constexpr(Engine::full_bits)
    {
        const auto bits = [&engine] {
            const unsigned long long low = engine.bits();
            return low ^ static_cast<unsigned long long>(engine.bits()) << 21;
        };
        u          = kWideUnit + bits() * kWideUnit;
        half_turns = 2 * kWideUnit + bits() * (2 * kWideUnit);
    }
    else
    {
        u          = engine.unit();
        half_turns = engine.unit() * 2.0;
    }
    const double size = sqrt(-2.0 * log(u)), angle = half_turns * 3.14159265358979323846;
    return {sin(angle) * size, cos(angle) * size};
}

template <typename Engine>
__host__ __device__ inline float normal(Engine& engine)
{
    Spare& spare = engine.spare;
    if(spare.has_single)
    {
        spare.has_single = false;
        return spare.single;
    }
    const float2 pair = normal_pair(engine);
    spare.has_single  = true;
    spare.single      = pair.y;
    return pair.x;
}

template <typename Engine>
__host__ __device__ inline double wide_normal(Engine& engine)
{
    Spare& spare = engine.spare;
    if(spare.has_wide)
    {
        spare.has_wide = false;
        return spare.wide;
    }
    const double2 pair = wide_normal_pair(engine);
    spare.has_wide     = true;
    spare.wide         = pair.y;
    return pair.x;
}

template <typename Engine>
__host__ __device__ inline unsigned int poisson_by_products(Engine& engine, double mean)
{
    const double limit = exp(-mean);
    unsigned int count = 0;
    for(double product = engine.wide_unit(); product > limit; product *= engine.wide_unit())
        ++count;
    return count;
}

/// Draws from a logistic distribution around the mean, and accepts as often as Poisson's asks for.
template <typename Engine>
__host__ __device__ inline unsigned int poisson_by_rejection(Engine& engine, double mean)
{
    const double beta = 3.14159265358979323846 / sqrt(3.0 * mean), alpha = beta * mean;
    const double scale = log(0.767 - 3.36 / mean) - mean - log(beta);
    for(;;)
    {
        const double u     = engine.wide_unit();
        const double x     = (alpha - log((1.0 - u) / u)) / beta;
        const double count = floor(x + 0.5);
        if(!(count >= 0))
            continue;
        const double v = engine.wide_unit(), y = alpha - beta * x, tail = 1.0 + exp(y);
        if(y + log(v / (tail * tail)) <= scale + count * log(mean) - lgamma(count + 1.0))
            return static_cast<unsigned int>(count);
    }
}

template <typename Engine>
__host__ __device__ inline unsigned int poisson(Engine& engine, double mean)
{
    if(mean < 64)
        return poisson_by_products(engine, mean);
    if(mean <= 4000)
        return poisson_by_rejection(engine, mean);
    return static_cast<unsigned int>(round(mean + sqrt(mean) * wide_normal(engine)));
}

} // namespace cklang_random
