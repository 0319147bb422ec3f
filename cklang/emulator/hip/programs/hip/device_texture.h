// SPDX-License-Identifier: MIT
// tex1D, tex2D and the other functions of textures: by object, and by reference.
#pragma once

#include <hip/device_image.h>

namespace cklang_hip {

__device__ inline Texel sample_1d(const Image& image, float x, int layer)
{
    return sample<1>(image, taps_at(image, x, image.width), taps_of(0), layer_of(image, layer));
}
__device__ inline Texel sample_2d(const Image& image, float x, float y, int layer)
{
    const Taps across = taps_at(image, x, image.width), down = taps_at(image, y, image.height);
    return sample<2>(image, across, down, layer_of(image, layer));
}
__device__ inline Texel sample_3d(const Image& image, float x, float y, float z)
{
    const Taps across = taps_at(image, x, image.width), down = taps_at(image, y, image.height);
    return sample<3>(image, across, down, taps_at(image, z, image.depth));
}

/// One channel of the four elements that a linear filter would read, counter-clockwise from the lower left.
__device__ inline Texel gather_2d(const Image& image, float x, float y, int channel)
{
    Image filtered  = image;
    filtered.linear = true;
    const Taps across = taps_at(filtered, x, image.width), down = taps_at(filtered, y, image.height);
    const auto at = [&](int column, int row) { return load_texel(image, column, row, 0).word[channel]; };
    return {{at(across.first, down.second),
             at(across.second, down.second),
             at(across.second, down.first),
             at(across.first, down.first)}};
}

} // namespace cklang_hip

// There is one level, so what names a level or slopes reads that one. Each function has a form that stores.
#define CKLANG_TEXTURE(name, parameters, arguments, texel)                                 \
    template <typename T>                                                                  \
    static __device__ __hip_img_chk__ T name(hipTextureObject_t texture, CKLANG_PACK parameters) \
    {                                                                                      \
        const cklang_hip::Image image = cklang_hip::image_of(texture);                    \
        return cklang_hip::result_of<T>(cklang_hip::texel);                                \
    }                                                                                      \
    template <typename T>                                                                  \
    static __device__ __hip_img_chk__ void name(                                           \
        T* result, hipTextureObject_t texture, CKLANG_PACK parameters)                     \
    {                                                                                      \
        *result = name<T>(texture, CKLANG_PACK arguments);                                 \
    }
#define CKLANG_PACK(...) __VA_ARGS__

CKLANG_TEXTURE(tex1Dfetch, (int x), (x), load_texel(image, x, 0, 0))
CKLANG_TEXTURE(tex1D, (float x), (x), sample_1d(image, x, 0))
CKLANG_TEXTURE(tex2D, (float x, float y), (x, y), sample_2d(image, x, y, 0))
CKLANG_TEXTURE(tex3D, (float x, float y, float z), (x, y, z), sample_3d(image, x, y, z))
CKLANG_TEXTURE(tex1DLayered, (float x, int layer), (x, layer), sample_1d(image, x, layer))
CKLANG_TEXTURE(tex2DLayered, (float x, float y, int layer), (x, y, layer), sample_2d(image, x, y, layer))
CKLANG_TEXTURE(tex1DLod, (float x, float), (x, 0), sample_1d(image, x, 0))
CKLANG_TEXTURE(tex2DLod, (float x, float y, float), (x, y, 0), sample_2d(image, x, y, 0))
CKLANG_TEXTURE(tex3DLod, (float x, float y, float z, float), (x, y, z, 0), sample_3d(image, x, y, z))
CKLANG_TEXTURE(tex1DLayeredLod, (float x, int layer, float), (x, layer, 0), sample_1d(image, x, layer))
CKLANG_TEXTURE(tex2DLayeredLod,
               (float x, float y, int layer, float),
               (x, y, layer, 0),
               sample_2d(image, x, y, layer))
CKLANG_TEXTURE(tex1DGrad, (float x, float, float), (x, 0, 0), sample_1d(image, x, 0))
CKLANG_TEXTURE(tex2DGrad, (float x, float y, float2, float2), (x, y, {}, {}), sample_2d(image, x, y, 0))
CKLANG_TEXTURE(tex3DGrad,
               (float x, float y, float z, float4, float4),
               (x, y, z, {}, {}),
               sample_3d(image, x, y, z))
CKLANG_TEXTURE(tex1DLayeredGrad,
               (float x, int layer, float, float),
               (x, layer, 0, 0),
               sample_1d(image, x, layer))
CKLANG_TEXTURE(tex2DLayeredGrad,
               (float x, float y, int layer, float2, float2),
               (x, y, layer, {}, {}),
               sample_2d(image, x, y, layer))
CKLANG_TEXTURE(tex2Dgather,
               (float x, float y, int channel = 0),
               (x, y, channel),
               gather_2d(image, x, y, channel))

#undef CKLANG_TEXTURE
#undef CKLANG_PACK

/// A texture that is a variable of the program, to which host code binds memory.
template <typename T, int Type = hipTextureType1D, hipTextureReadMode Mode = hipReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture : textureReference
{
    texture(int normalized_            = 0,
            hipTextureFilterMode filter   = hipFilterModePoint,
            hipTextureAddressMode address = hipAddressModeClamp)
        : texture(normalized_, filter, address, hipCreateChannelDesc<T>())
    {
    }
    texture(int normalized_,
            hipTextureFilterMode filter,
            hipTextureAddressMode address,
            hipChannelFormatDesc channels)
        : textureReference{
              normalized_, Mode, filter, {address, address, address}, channels, 0, 0, hipFilterModePoint, 0, 0, 0, nullptr, 0, {}}
    {
    }
};

namespace cklang_hip {

/// What reading a texture reference gives: its elements, or floats in their place.
template <typename T, hipTextureReadMode Mode>
struct ReadAs
{
    using type = T;
};
template <>
struct ReadAs<signed char, hipReadModeNormalizedFloat> { using type = float; };
template <>
struct ReadAs<char, hipReadModeNormalizedFloat> { using type = float; };
template <>
struct ReadAs<unsigned char, hipReadModeNormalizedFloat> { using type = float; };
template <>
struct ReadAs<short, hipReadModeNormalizedFloat> { using type = float; };
template <>
struct ReadAs<unsigned short, hipReadModeNormalizedFloat> { using type = float; };
#define CKLANG_FLOATS(name)                                                                 \
    template <>                                                                             \
    struct ReadAs<name##1, hipReadModeNormalizedFloat> { using type = float1; };            \
    template <>                                                                             \
    struct ReadAs<name##2, hipReadModeNormalizedFloat> { using type = float2; };            \
    template <>                                                                             \
    struct ReadAs<name##4, hipReadModeNormalizedFloat> { using type = float4; };
CKLANG_FLOATS(char)
CKLANG_FLOATS(uchar)
CKLANG_FLOATS(short)
CKLANG_FLOATS(ushort)
#undef CKLANG_FLOATS

template <typename T, hipTextureReadMode Mode>
using ReadResult = typename ReadAs<T, Mode>::type;

} // namespace cklang_hip

template <typename T, hipTextureReadMode Mode>
static __device__ __hip_img_chk__ cklang_hip::ReadResult<T, Mode>
tex1Dfetch(texture<T, hipTextureType1D, Mode> reference, int x)
{
    return tex1Dfetch<cklang_hip::ReadResult<T, Mode>>(reference.textureObject, x);
}
template <typename T, hipTextureReadMode Mode>
static __device__ __hip_img_chk__ cklang_hip::ReadResult<T, Mode>
tex1D(texture<T, hipTextureType1D, Mode> reference, float x)
{
    return tex1D<cklang_hip::ReadResult<T, Mode>>(reference.textureObject, x);
}
template <typename T, hipTextureReadMode Mode>
static __device__ __hip_img_chk__ cklang_hip::ReadResult<T, Mode>
tex2D(texture<T, hipTextureType2D, Mode> reference, float x, float y)
{
    return tex2D<cklang_hip::ReadResult<T, Mode>>(reference.textureObject, x, y);
}
template <typename T, hipTextureReadMode Mode>
static __device__ __hip_img_chk__ cklang_hip::ReadResult<T, Mode>
tex3D(texture<T, hipTextureType3D, Mode> reference, float x, float y, float z)
{
    return tex3D<cklang_hip::ReadResult<T, Mode>>(reference.textureObject, x, y, z);
}
template <typename T, hipTextureReadMode Mode>
static __device__ __hip_img_chk__ cklang_hip::ReadResult<T, Mode>
tex2DLayered(texture<T, hipTextureType2DLayered, Mode> reference, float x, float y, int layer)
{
    return tex2DLayered<cklang_hip::ReadResult<T, Mode>>(reference.textureObject, x, y, layer);
}

template <typename T, int Type, hipTextureReadMode Mode>
hipError_t hipBindTexture(size_t* offset,
                          const texture<T, Type, Mode>& reference,
                          const void* pointer,
                          size_t bytes = 0xffffffff)
{
    return hipBindTexture(offset, &reference, pointer, &reference.channelDesc, bytes);
}
template <typename T, int Type, hipTextureReadMode Mode>
hipError_t hipBindTexture(size_t* offset,
                          const texture<T, Type, Mode>& reference,
                          const void* pointer,
                          const hipChannelFormatDesc& channels,
                          size_t bytes = 0xffffffff)
{
    return hipBindTexture(offset, &reference, pointer, &channels, bytes);
}
template <typename T, int Type, hipTextureReadMode Mode>
hipError_t hipBindTexture2D(size_t* offset,
                            const texture<T, Type, Mode>& reference,
                            const void* pointer,
                            size_t width,
                            size_t height,
                            size_t pitch)
{
    return hipBindTexture2D(
        offset, &reference, pointer, &reference.channelDesc, width, height, pitch);
}
template <typename T, int Type, hipTextureReadMode Mode>
hipError_t hipBindTexture2D(size_t* offset,
                            const texture<T, Type, Mode>& reference,
                            const void* pointer,
                            const hipChannelFormatDesc& channels,
                            size_t width,
                            size_t height,
                            size_t pitch)
{
    return hipBindTexture2D(offset, &reference, pointer, &channels, width, height, pitch);
}
template <typename T, int Type, hipTextureReadMode Mode>
hipError_t hipBindTextureToArray(const texture<T, Type, Mode>& reference, hipArray_const_t array)
{
    return hipBindTextureToArray(&reference, array, &reference.channelDesc);
}
template <typename T, int Type, hipTextureReadMode Mode>
hipError_t hipBindTextureToArray(const texture<T, Type, Mode>& reference,
                                 hipArray_const_t array,
                                 const hipChannelFormatDesc& channels)
{
    return hipBindTextureToArray(&reference, array, &channels);
}
template <typename T, int Type, hipTextureReadMode Mode>
hipError_t hipUnbindTexture(const texture<T, Type, Mode>& reference)
{
    return hipUnbindTexture(&reference);
}
