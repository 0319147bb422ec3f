// SPDX-License-Identifier: MIT
// Generators of random bits, from their papers: Philox4x32-10 (Salmon et al. 2011), XORWOW (Marsaglia 2003) and
// MRG32k3a (L'Ecuyer 1999). Seeds, subsequences and the order of numbers are rocRAND's.
#pragma once

#include <hip/hip_runtime.h>

namespace cklang_random {

/// The second number of the last pair of normal ones, if nobody has asked for it yet.
struct Spare
{
    bool has_single = false, has_wide = false;
    float single = 0;
    double wide = 0;
};

/// What all engines are, and what they share.
struct Engine
{
    Spare spare;
};

constexpr float kUnit      = 0x1p-32f;
constexpr double kWideUnit = 0x1p-53;

/// Numbers above 0 up to 1 of 32 and 53 random bits.
__host__ __device__ inline float unit_of(unsigned int bits) { return kUnit + bits * kUnit; }
__host__ __device__ inline double unit_of(unsigned int low, unsigned int high)
{
    const unsigned long long bits = low | static_cast<unsigned long long>(high >> 11) << 32;
    return kWideUnit + bits * kWideUnit;
}

/// A counter of 128 bits, enciphered: the upper half is the subsequence, the lower one counts groups of four.
class Philox : public Engine
{
  public:
    static constexpr bool full_bits = true;

    __host__ __device__ Philox(unsigned long long seed = 0xdeadbeefdeadbeef,
                               unsigned long long subsequence = 0,
                               unsigned long long offset      = 0)
        : high(subsequence), key{static_cast<unsigned int>(seed), static_cast<unsigned int>(seed >> 32)}
    {
        skip(offset);
    }

    __host__ __device__ unsigned int next()
    {
        const unsigned int bits = group[place];
        if(++place == 4)
        {
            place = 0;
            advance(1);
            encipher();
        }
        return bits;
    }
    __host__ __device__ unsigned int bits() { return next(); }
    __host__ __device__ float unit() { return unit_of(next()); }
    __host__ __device__ double wide_unit()
    {
        const unsigned int first = next();
        return unit_of(first, next());
    }
    __host__ __device__ void skip(unsigned long long count)
    {
        place += static_cast<unsigned int>(count % 4);
        advance(count / 4 + place / 4);
        place %= 4;
        encipher();
    }
    __host__ __device__ void skip_subsequences(unsigned long long count)
    {
        high += count;
        encipher();
    }
    __host__ __device__ void skip_sequences(unsigned long long count) { skip_subsequences(count); }

  private:
    __host__ __device__ void advance(unsigned long long groups)
    {
        low += groups;
        high += low < groups ? 1 : 0;
    }
    __host__ __device__ void encipher()
    {
        unsigned int word[4] = {static_cast<unsigned int>(low),
                                static_cast<unsigned int>(low >> 32),
                                static_cast<unsigned int>(high),
                                static_cast<unsigned int>(high >> 32)};
        unsigned int round_key[2] = {key[0], key[1]};
        for(int round = 0; round < 10; ++round)
        {
            const unsigned long long first  = 0xd2511f53ull * word[0];
            const unsigned long long second = 0xcd9e8d57ull * word[2];
            word[0] = static_cast<unsigned int>(second >> 32) ^ word[1] ^ round_key[0];
            word[1] = static_cast<unsigned int>(second);
            word[2] = static_cast<unsigned int>(first >> 32) ^ word[3] ^ round_key[1];
            word[3] = static_cast<unsigned int>(first);
            round_key[0] += 0x9e3779b9; // the golden ratio
            round_key[1] += 0xbb67ae85; // the root of 3, less 1
        }
        for(int n = 0; n < 4; ++n)
            group[n] = word[n];
    }

    unsigned long long low = 0, high;
    unsigned int key[2];
    unsigned int group[4];
    unsigned int place = 0; // of the next number in its group
};

/// A polynomial over the integers modulo 2, of degree below 160: bit i of all words is the coefficient of x^i.
struct Polynomial
{
    unsigned int word[5];

    __host__ __device__ unsigned int bit(int n) const { return word[n / 32] >> n % 32 & 1; }
    /// Multiply by x, modulo the characteristic polynomial of XORWOW's shift register.
    __host__ __device__ void shift()
    {
        const unsigned int over = 0u - (word[4] >> 31);
        for(int n = 4; n > 0; --n)
            word[n] = word[n] << 1 | word[n - 1] >> 31;
        word[0] <<= 1;
        constexpr unsigned int low[5] = {0x60001, 0x8610030, 0x62121, 0xf3c0035, 0xf0e};
        for(int n = 0; n < 5; ++n)
            word[n] ^= over & low[n];
    }
    __host__ __device__ void add(const Polynomial& other, unsigned int whether)
    {
        for(int n = 0; n < 5; ++n)
            word[n] ^= other.word[n] & (0u - whether);
    }
};

__host__ __device__ inline Polynomial operator*(const Polynomial& a, const Polynomial& b)
{
    Polynomial product = {};
    for(int n = 159; n >= 0; --n)
    {
        product.shift();
        product.add(a, b.bit(n));
    }
    return product;
}

/// A shift register of 160 bits, plus a counter. A subsequence has 2^67 numbers.
class Xorwow : public Engine
{
  public:
    static constexpr bool full_bits = true;

    __host__ __device__ Xorwow(unsigned long long seed        = 0,
                               unsigned long long subsequence = 0,
                               unsigned long long offset      = 0)
    {
        const unsigned int low  = 1228688033u * (static_cast<unsigned int>(seed) ^ 0x2c7f967f);
        const unsigned int high = 2073658381u * (static_cast<unsigned int>(seed >> 32) ^ 0xa03697cb);
        state.word[0] += low;
        state.word[1] ^= low;
        state.word[2] += high;
        state.word[3] ^= high;
        state.word[4] += low;
        counter += high + low;
        skip_subsequences(subsequence);
        skip(offset);
    }

    __host__ __device__ unsigned int next()
    {
        step(state);
        counter += kStep;
        return counter + state.word[4];
    }
    __host__ __device__ unsigned int bits() { return next(); }
    __host__ __device__ float unit() { return unit_of(next()); }
    __host__ __device__ double wide_unit()
    {
        const unsigned int first = next();
        return unit_of(first, next());
    }
    __host__ __device__ void skip(unsigned long long count)
    {
        counter += static_cast<unsigned int>(count) * kStep;
        if(count >= kFew)
            return jump({{2}}, count); // x: one step
        for(; count > 0; --count)
            step(state);
    }
    __host__ __device__ void skip_subsequences(unsigned long long count)
    {
        // x^(2^67); 2^67 steps leave the counter as it is.
        jump({{0x26294934, 0x77bbc248, 0x1a87dad0, 0x930052d4, 0x947e6dd2}}, count);
    }
    __host__ __device__ void skip_sequences(unsigned long long count) { skip_subsequences(count); }

  private:
    static constexpr unsigned int kStep      = 362437;
    static constexpr unsigned long long kFew = 1024; // steps that are quicker than a jump

    __host__ __device__ static void step(Polynomial& x)
    {
        const unsigned int first = x.word[0] ^ x.word[0] >> 2, last = x.word[4];
        for(int n = 0; n < 4; ++n)
            x.word[n] = x.word[n + 1];
        x.word[4] = last ^ last << 4 ^ first ^ first << 1;
    }
    /// What `count` times the steps that a power of x stands for make of the state: a sum of its first 160 successors.
    __host__ __device__ void jump(Polynomial power, unsigned long long count)
    {
        if(count == 0)
            return;
        Polynomial all = {{1}};
        for(; count > 0; count >>= 1)
        {
            if(count & 1)
                all = all * power;
            if(count > 1)
                power = power * power;
        }
        Polynomial sum = {}, successor = state;
        for(int n = 0; n < 160; ++n)
        {
            sum.add(successor, all.bit(n));
            step(successor);
        }
        state = sum;
    }

    Polynomial state     = {{123456789, 362436069, 521288629, 88675123, 5783321}};
    unsigned int counter = 6615241;
};

/// One of the two linear recurrences of MRG32k3a: s[n] = a s[n-1] + b s[n-2] - c s[n-3] modulo 2^32 - less.
template <unsigned long long less, unsigned long long a, unsigned long long b, unsigned long long c>
struct Recurrence
{
    static constexpr unsigned long long modulus = (1ull << 32) - less;
    unsigned int last[3];

    struct Matrix
    {
        unsigned int at[3][3];
    };
    static constexpr Matrix one_step = {
        {{0, 1, 0}, {0, 0, 1}, {static_cast<unsigned int>(modulus - c), static_cast<unsigned int>(b), static_cast<unsigned int>(a)}}};

    __host__ __device__ unsigned int next()
    {
        const unsigned long long sum = a * last[2] + b * last[1] + c * static_cast<unsigned int>(modulus - last[0]);
        last[0]                      = last[1];
        last[1]                      = last[2];
        return last[2] = static_cast<unsigned int>(sum % modulus);
    }
    __host__ __device__ void jump(Matrix power, unsigned long long count)
    {
        for(; count > 0; count >>= 1)
        {
            if(count & 1)
                apply(power);
            if(count > 1)
                power = square(power);
        }
    }
    /// x * y as rocRAND folds it, which differs from the remainder where y has more than 49 bits.
    __host__ __device__ static unsigned int product(unsigned int x, unsigned long long y)
    {
        return static_cast<unsigned int>(folded((folded((x >> 17) * y) << 17) + folded((x & 0x1ffff) * y)));
    }

  private:
    __host__ __device__ static unsigned long long folded(unsigned long long x)
    {
        for(int n = 0; n < (less < 1024 ? 1 : 2); ++n)
            x = less * (x >> 32) + (x & 0xffffffff);
        return x >= modulus ? x - modulus : x;
    }
    __host__ __device__ void apply(const Matrix& m)
    {
        unsigned int result[3];
        for(int row = 0; row < 3; ++row)
            result[row] = row_times(m, row, last[0], last[1], last[2]);
        for(int n = 0; n < 3; ++n)
            last[n] = result[n];
    }
    __host__ __device__ static Matrix square(const Matrix& m)
    {
        Matrix result;
        for(int row = 0; row < 3; ++row)
            for(int n = 0; n < 3; ++n)
                result.at[row][n] = row_times(m, row, m.at[0][n], m.at[1][n], m.at[2][n]);
        return result;
    }
    __host__ __device__ static unsigned int row_times(
        const Matrix& m, int row, unsigned long long x, unsigned long long y, unsigned long long z)
    {
        const unsigned int* at = m.at[row];
        return static_cast<unsigned int>((at[0] * x % modulus + at[1] * y % modulus + at[2] * z % modulus) % modulus);
    }
};

/// Two recurrences of order 3. A subsequence has 2^76 numbers, a sequence 2^127.
class Mrg32k3a : public Engine
{
  public:
    static constexpr bool full_bits = false;

    __host__ __device__ Mrg32k3a(unsigned long long seed        = 0,
                                 unsigned long long subsequence = 0,
                                 unsigned long long offset      = 0)
    {
        seed                 = seed == 0 ? 12345 : seed;
        const unsigned int x = static_cast<unsigned int>(seed) ^ 0x55555555;
        const unsigned int y = static_cast<unsigned int>(seed >> 32) ^ 0xaaaaaaaa;
        for(int n = 0; n < 3; ++n)
        {
            first.last[n]  = First::product(n == 1 ? y : x, seed);
            second.last[n] = Second::product(n == 1 ? x : y, seed);
        }
        skip_subsequences(subsequence);
        skip(offset);
    }

    /// From 1 to 2^32 - 209.
    __host__ __device__ unsigned int next()
    {
        const unsigned int x = first.next(), y = second.next();
        return x - y + (x <= y ? static_cast<unsigned int>(First::modulus) : 0);
    }
    __host__ __device__ unsigned int bits()
    {
        return static_cast<unsigned int>((next() - 1) * 1.000000048661607); // to all of 32 bits
    }
    __host__ __device__ float unit() { return static_cast<float>(wide_unit()); }
    __host__ __device__ double wide_unit() { return next() * 2.3283065498378288e-10; } // 1 / (2^32 - 209)
    __host__ __device__ void skip(unsigned long long count)
    {
        first.jump(First::one_step, count);
        second.jump(Second::one_step, count);
    }
    __host__ __device__ void skip_subsequences(unsigned long long count)
    {
        first.jump({{{82758667, 1871391091, 4127413238}, {3672831523, 69195019, 1871391091}, {3672091415, 3528743235, 69195019}}}, count);
        second.jump({{{1511326704, 3759209742, 1610795712}, {4292754251, 1511326704, 3889917532}, {3859662829, 4292754251, 3708466080}}}, count);
    }
    __host__ __device__ void skip_sequences(unsigned long long count)
    {
        first.jump({{{2427906178, 3580155704, 949770784}, {226153695, 1230515664, 3580155704}, {1988835001, 986791581, 1230515664}}}, count);
        second.jump({{{1464411153, 277697599, 1610723613}, {32183930, 1464411153, 1022607788}, {2824425944, 32183930, 2093834863}}}, count);
    }

  private:
    using First  = Recurrence<209, 0, 1403580, 810728>;
    using Second = Recurrence<22853, 527612, 0, 1370589>;
    First first;
    Second second;
};

} // namespace cklang_random
