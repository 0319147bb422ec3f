// SPDX-License-Identifier: MIT
// The types of arrays, textures and surfaces, in the layout of ROCm's.
#pragma once

#include <hip/driver_types.h>

typedef struct __hip_texture* hipTextureObject_t;
typedef struct __hip_surface* hipSurfaceObject_t;
typedef struct hipMipmappedArray* hipMipmappedArray_t;
typedef const struct hipArray* hipArray_const_t;
typedef struct hipArray hipArray;

#define hipArrayDefault 0x00
#define hipArrayLayered 0x01
#define hipArraySurfaceLoadStore 0x02
#define hipArrayCubemap 0x04
#define hipArrayTextureGather 0x08

#define hipTextureType1D 0x01
#define hipTextureType2D 0x02
#define hipTextureType3D 0x03
#define hipTextureTypeCubemap 0x0c
#define hipTextureType1DLayered 0xf1
#define hipTextureType2DLayered 0xf2
#define hipTextureTypeCubemapLayered 0xfc

enum hipChannelFormatKind
{
    hipChannelFormatKindSigned   = 0,
    hipChannelFormatKindUnsigned = 1,
    hipChannelFormatKindFloat    = 2,
    hipChannelFormatKindNone     = 3,
};
struct hipChannelFormatDesc
{
    int x, y, z, w;
    hipChannelFormatKind f;
};

enum hipArray_Format
{
    HIP_AD_FORMAT_UNSIGNED_INT8  = 0x01,
    HIP_AD_FORMAT_UNSIGNED_INT16 = 0x02,
    HIP_AD_FORMAT_UNSIGNED_INT32 = 0x03,
    HIP_AD_FORMAT_SIGNED_INT8    = 0x08,
    HIP_AD_FORMAT_SIGNED_INT16   = 0x09,
    HIP_AD_FORMAT_SIGNED_INT32   = 0x0a,
    HIP_AD_FORMAT_HALF           = 0x10,
    HIP_AD_FORMAT_FLOAT          = 0x20,
};
struct HIP_ARRAY_DESCRIPTOR
{
    size_t Width, Height;
    hipArray_Format Format;
    unsigned int NumChannels;
};
struct HIP_ARRAY3D_DESCRIPTOR
{
    size_t Width, Height, Depth;
    hipArray_Format Format;
    unsigned int NumChannels, Flags;
};

enum hipResourceType
{
    hipResourceTypeArray          = 0,
    hipResourceTypeMipmappedArray = 1,
    hipResourceTypeLinear         = 2,
    hipResourceTypePitch2D        = 3,
};
struct hipResourceDesc
{
    hipResourceType resType;
    union
    {
        struct
        {
            hipArray_t array;
        } array;
        struct
        {
            hipMipmappedArray_t mipmap;
        } mipmap;
        struct
        {
            void* devPtr;
            hipChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct
        {
            void* devPtr;
            hipChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
    } res;
};
static_assert(sizeof(hipResourceDesc) == 64, "hipResourceDesc has the layout of ROCm's");

enum hipResourceViewFormat
{
    hipResViewFormatNone           = 0,
    hipResViewFormatUnsignedChar1  = 1,
    hipResViewFormatUnsignedChar2  = 2,
    hipResViewFormatUnsignedChar4  = 3,
    hipResViewFormatSignedChar1    = 4,
    hipResViewFormatSignedChar2    = 5,
    hipResViewFormatSignedChar4    = 6,
    hipResViewFormatUnsignedShort1 = 7,
    hipResViewFormatUnsignedShort2 = 8,
    hipResViewFormatUnsignedShort4 = 9,
    hipResViewFormatSignedShort1   = 10,
    hipResViewFormatSignedShort2   = 11,
    hipResViewFormatSignedShort4   = 12,
    hipResViewFormatUnsignedInt1   = 13,
    hipResViewFormatUnsignedInt2   = 14,
    hipResViewFormatUnsignedInt4   = 15,
    hipResViewFormatSignedInt1     = 16,
    hipResViewFormatSignedInt2     = 17,
    hipResViewFormatSignedInt4     = 18,
    hipResViewFormatHalf1          = 19,
    hipResViewFormatHalf2          = 20,
    hipResViewFormatHalf4          = 21,
    hipResViewFormatFloat1         = 22,
    hipResViewFormatFloat2         = 23,
    hipResViewFormatFloat4         = 24,
};
struct hipResourceViewDesc
{
    hipResourceViewFormat format;
    size_t width, height, depth;
    unsigned int firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
};

enum hipTextureAddressMode
{
    hipAddressModeWrap   = 0,
    hipAddressModeClamp  = 1,
    hipAddressModeMirror = 2,
    hipAddressModeBorder = 3,
};
enum hipTextureFilterMode
{
    hipFilterModePoint  = 0,
    hipFilterModeLinear = 1,
};
enum hipTextureReadMode
{
    hipReadModeElementType     = 0,
    hipReadModeNormalizedFloat = 1,
};
enum hipSurfaceBoundaryMode
{
    hipBoundaryModeZero  = 0,
    hipBoundaryModeTrap  = 1,
    hipBoundaryModeClamp = 2,
};
struct hipTextureDesc
{
    hipTextureAddressMode addressMode[3];
    hipTextureFilterMode filterMode;
    hipTextureReadMode readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned int maxAnisotropy;
    hipTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
};

/// The untyped part of a texture reference.
struct textureReference
{
    int normalized;
    hipTextureReadMode readMode;
    hipTextureFilterMode filterMode;
    hipTextureAddressMode addressMode[3];
    hipChannelFormatDesc channelDesc;
    int sRGB;
    unsigned int maxAnisotropy;
    hipTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    hipTextureObject_t textureObject;
    int numChannels;
    hipArray_Format format;
};
