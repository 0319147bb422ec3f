// SPDX-License-Identifier: MIT
// Elements of textures and surfaces, and how textures are sampled: in software, from a record in memory
// that the library has made. No image instruction is used.
#pragma once

#include <hip/hip_runtime_api.h>
#include <hip/texture_types.h>

// As in ROCm, code for a GPU that has no image instructions cannot call what follows.
#if defined(__HIP_NO_IMAGE_SUPPORT)
#define __hip_img_chk__ \
    __attribute__((unavailable("this GPU has no image instructions, so HIP has no textures and surfaces on it")))
#else
#define __hip_img_chk__
#endif

namespace cklang_hip {

/// What a texture or surface object points to; the layout is that of ckemu::Image in the library.
struct Image
{
    unsigned char* data;
    unsigned long pitch, slice; // bytes from row to row, and from plane or layer to the next
    int width, height, depth;   // elements; 1 where there is no such axis
    unsigned char kind, bytes, channels; // of an element: hipChannelFormatKind, bytes of a channel
    unsigned char address;               // hipTextureAddressMode
    bool linear, normalized, as_floats;
};
static_assert(sizeof(Image) == 48, "Image has the layout of the library");

/// The four channels of an element as the GPU's registers have them: integers of 32 bits, or floats.
struct Texel
{
    unsigned word[4];
};

/// Global memory, so that loads and stores need not ask what memory they go to.
template <typename T>
using Global = __attribute__((address_space(1))) T;

__device__ inline unsigned word_of(float value) { return __builtin_bit_cast(unsigned, value); }
__device__ inline float float_of(unsigned word) { return __builtin_bit_cast(float, word); }

/// One channel in memory, as a register has it.
__device__ inline unsigned load_channel(const Image& image, const Global<unsigned char>* from)
{
    const bool is_signed = image.kind == hipChannelFormatKindSigned;
    if(image.bytes == 4)
        return *(const Global<unsigned>*)from;
    if(image.bytes == 1)
        return is_signed ? static_cast<unsigned>(static_cast<signed char>(*from)) : *from;
    const unsigned short bits = *(const Global<unsigned short>*)from;
    if(image.kind == hipChannelFormatKindFloat)
        return word_of(static_cast<float>(__builtin_bit_cast(_Float16, bits)));
    return is_signed ? static_cast<unsigned>(static_cast<short>(bits)) : bits;
}

/// An integer of 8 or 16 bits as a part of the largest one.
__device__ inline unsigned normalized(const Image& image, unsigned word)
{
    const float largest = image.bytes == 1 ? 255.0f : 65535.0f;
    if(image.kind == hipChannelFormatKindUnsigned)
        return word_of(static_cast<float>(word) / largest);
    const float value = static_cast<float>(static_cast<int>(word)) / ((largest - 1) / 2);
    return word_of(__builtin_fmaxf(value, -1.0f));
}

__device__ inline bool inside(const Image& image, int x, int y, int z)
{
    return x >= 0 && x < image.width && y >= 0 && y < image.height && z >= 0 && z < image.depth;
}

__device__ inline Global<unsigned char>* place_of(const Image& image, int x, int y, int z)
{
    const unsigned long element = image.bytes * image.channels;
    return (Global<unsigned char>*)image.data + z * image.slice + y * image.pitch + x * element;
}

/// One element; 0 outside. Channels that it lacks are 0, the last one 1.
__device__ inline Texel load_texel(const Image& image, int x, int y, int z)
{
    if(!inside(image, x, y, z))
        return {};
    Texel texel{{0, 0, 0, image.as_floats ? word_of(1.0f) : 1}};
    const Global<unsigned char>* from = place_of(image, x, y, z);
    for(int channel = 0; channel < 4; ++channel)
    {
        if(channel >= image.channels)
            break;
        const unsigned word = load_channel(image, from + channel * image.bytes);
        const bool scaled   = image.as_floats && image.kind != hipChannelFormatKindFloat;
        texel.word[channel] = scaled ? normalized(image, word) : word;
    }
    return texel;
}

/// Writes one element; nothing outside.
__device__ inline void store_texel(const Image& image, const Texel& texel, int x, int y, int z)
{
    if(!inside(image, x, y, z))
        return;
    Global<unsigned char>* to = place_of(image, x, y, z);
    for(int channel = 0; channel < 4; ++channel)
    {
        if(channel >= image.channels)
            break;
        const unsigned word = texel.word[channel];
        Global<unsigned char>* at = to + channel * image.bytes;
        if(image.bytes == 4)
            *(Global<unsigned>*)at = word;
        else if(image.bytes == 1)
            *at = static_cast<unsigned char>(word);
        else if(image.kind == hipChannelFormatKindFloat)
            *(Global<_Float16>*)at = static_cast<_Float16>(float_of(word));
        else
            *(Global<unsigned short>*)at = static_cast<unsigned short>(word);
    }
}

/// Where a coordinate reads along one axis: two neighbours, and how much the second counts.
struct Taps
{
    int first, second;
    float weight;
};

constexpr int kOutside = -1;

/// The element that stands for number `n` of `size`.
__device__ inline int addressed(const Image& image, int n, int size)
{
    switch(image.address)
    {
    case hipAddressModeWrap: {
        const int rest = n % size;
        return rest < 0 ? rest + size : rest;
    }
    case hipAddressModeMirror: {
        const int rest = n % (2 * size), place = rest < 0 ? rest + 2 * size : rest;
        return place < size ? place : 2 * size - 1 - place;
    }
    case hipAddressModeClamp: return n < 0 ? 0 : n < size ? n : size - 1;
    default: return n >= 0 && n < size ? n : kOutside;
    }
}

/// Weights of a linear filter have eight fractional bits.
__device__ inline Taps taps_at(const Image& image, float x, int size)
{
    constexpr float far = 1 << 24, steps = 256;
    float place = image.normalized ? x * static_cast<float>(size) : x;
    if(image.linear)
        place -= 0.5f;
    place             = __builtin_fminf(__builtin_fmaxf(place, -far), far);
    const float below = __builtin_floorf(place);
    const int n       = static_cast<int>(below);
    const float part  = image.linear ? __builtin_rintf((place - below) * steps) / steps : 0.0f;
    return {addressed(image, n, size), addressed(image, n + 1, size), part};
}
__device__ inline Taps taps_of(int n) { return {n, n, 0.0f}; }

/// Layers are never filtered, and those outside are the nearest there is.
__device__ inline Taps layer_of(const Image& image, int layer)
{
    return taps_of(layer < 0 ? 0 : layer < image.depth ? layer : image.depth - 1);
}

/// What a texture is between the elements around a place: `Axes` of them count.
template <int Axes>
__device__ Texel sample(const Image& image, const Taps& x, const Taps& y, const Taps& z)
{
    if(!image.linear)
        return load_texel(image, x.first, y.first, z.first);
    float sum[4] = {};
    for(int corner = 0; corner < 1 << Axes; ++corner)
    {
        const bool right = corner & 1, low = corner & 2, back = corner & 4;
        const float weight = (right ? x.weight : 1 - x.weight) * (low ? y.weight : 1 - y.weight) *
                             (back ? z.weight : 1 - z.weight);
        const Texel texel =
            load_texel(image, right ? x.second : x.first, low ? y.second : y.first, back ? z.second : z.first);
        for(int channel = 0; channel < 4; ++channel)
            sum[channel] += weight * float_of(texel.word[channel]);
    }
    return {{word_of(sum[0]), word_of(sum[1]), word_of(sum[2]), word_of(sum[3])}};
}

/// A register as a value of type T: narrow integers keep their low bits, others all.
template <typename T>
__device__ T value_of(unsigned word)
{
    if constexpr(sizeof(T) < sizeof(unsigned))
        return static_cast<T>(word);
    else
        return __builtin_bit_cast(T, word);
}
template <typename T>
__device__ unsigned word_of_value(T value)
{
    if constexpr(sizeof(T) < sizeof(unsigned))
        return static_cast<unsigned>(static_cast<int>(value));
    else
        return __builtin_bit_cast(unsigned, value);
}

/// A number, or a vector of one, two or four, of an element's channels.
template <typename T>
__device__ T result_of(const Texel& texel)
{
    if constexpr(std::is_class_v<T>)
    {
        constexpr int count = Elements<T>::count;
        static_assert(count != 3, "elements of textures have one, two or four channels");
        T result{};
        result.x = value_of<Element<T>>(texel.word[0]);
        if constexpr(count > 1)
            result.y = value_of<Element<T>>(texel.word[1]);
        if constexpr(count > 2)
        {
            result.z = value_of<Element<T>>(texel.word[2]);
            result.w = value_of<Element<T>>(texel.word[3]);
        }
        return result;
    }
    else
        return value_of<T>(texel.word[0]);
}
template <typename T>
__device__ Texel texel_of(const T& value)
{
    if constexpr(std::is_class_v<T>)
    {
        constexpr int count = Elements<T>::count;
        static_assert(count != 3, "elements of surfaces have one, two or four channels");
        Texel texel{{word_of_value(value.x)}};
        if constexpr(count > 1)
            texel.word[1] = word_of_value(value.y);
        if constexpr(count > 2)
        {
            texel.word[2] = word_of_value(value.z);
            texel.word[3] = word_of_value(value.w);
        }
        return texel;
    }
    else
        return {{word_of_value(value)}};
}

/// The record behind a texture or surface object, behind 64 bytes that ROCm's headers read.
template <typename Handle>
__device__ Image image_of(Handle handle)
{
    typedef unsigned Part __attribute__((ext_vector_type(4)));
    struct Parts
    {
        Part first, second, third;
    };
    const auto* parts = (const Global<Part>*)handle + 4;
    return __builtin_bit_cast(Image, Parts{parts[0], parts[1], parts[2]});
}

} // namespace cklang_hip
