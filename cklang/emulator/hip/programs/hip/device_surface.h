// SPDX-License-Identifier: MIT
// surf1Dread, surf2Dwrite and the other functions of surfaces. As everywhere in HIP x counts bytes. What lies outside
// reads as 0 and is not written; as in ROCm the boundary mode has no effect.
#pragma once

#include <hip/device_image.h>

#define CKLANG_SURFACE(name, parameters, y, z)                                                  \
    template <typename T>                                                                       \
    static __device__ __hip_img_chk__ void name##read(                                          \
        T* data, hipSurfaceObject_t surface, CKLANG_PACK parameters, int = hipBoundaryModeZero) \
    {                                                                                           \
        const cklang_hip::Image image = cklang_hip::image_of(surface);                         \
        const int element              = image.bytes * image.channels;                          \
        *data = cklang_hip::result_of<T>(                                                       \
            cklang_hip::load_texel(image, cklang_hip::column_of(x, element), y, z));            \
    }                                                                                           \
    template <typename T>                                                                       \
    static __device__ __hip_img_chk__ void name##write(                                         \
        T data, hipSurfaceObject_t surface, CKLANG_PACK parameters, int = hipBoundaryModeZero)  \
    {                                                                                           \
        const cklang_hip::Image image = cklang_hip::image_of(surface);                         \
        const int element              = image.bytes * image.channels;                          \
        cklang_hip::store_texel(                                                                \
            image, cklang_hip::texel_of(data), cklang_hip::column_of(x, element), y, z);        \
    }
#define CKLANG_PACK(...) __VA_ARGS__

namespace cklang_hip {
/// The element that byte `x` of a row lies in; negative ones lie outside.
__device__ inline int column_of(int x, int element) { return x < 0 ? kOutside : x / element; }
} // namespace cklang_hip

CKLANG_SURFACE(surf1D, (int x), 0, 0)
CKLANG_SURFACE(surf2D, (int x, int y), y, 0)
CKLANG_SURFACE(surf3D, (int x, int y, int z), y, z)
CKLANG_SURFACE(surf1DLayered, (int x, int layer), 0, layer)
CKLANG_SURFACE(surf2DLayered, (int x, int y, int layer), y, layer)

#undef CKLANG_SURFACE
#undef CKLANG_PACK
