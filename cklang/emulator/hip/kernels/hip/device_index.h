// SPDX-License-Identifier: MIT
// threadIdx, blockIdx, blockDim, gridDim: each field is read from the hardware when it is used.
#pragma once

#include <cstdint>
#include <hip/attributes.h>
#include <hip/vector_types.h>

namespace cklang_hip {

template <uint32_t (*Read)()>
struct Field
{
    __device__ __forceinline__ operator uint32_t() const { return Read(); }
};

template <uint32_t (*X)(), uint32_t (*Y)(), uint32_t (*Z)()>
struct Index
{
    [[no_unique_address]] Field<X> x;
    [[no_unique_address]] Field<Y> y;
    [[no_unique_address]] Field<Z> z;
    __device__ __forceinline__ operator dim3() const { return dim3(x, y, z); }
};

#define CKLANG_READ(name, value) \
    __device__ __forceinline__ uint32_t name() { return value; }

CKLANG_READ(thread_x, __builtin_amdgcn_workitem_id_x())
CKLANG_READ(thread_y, __builtin_amdgcn_workitem_id_y())
CKLANG_READ(thread_z, __builtin_amdgcn_workitem_id_z())
CKLANG_READ(block_x, __builtin_amdgcn_workgroup_id_x())
CKLANG_READ(block_y, __builtin_amdgcn_workgroup_id_y())
CKLANG_READ(block_z, __builtin_amdgcn_workgroup_id_z())
CKLANG_READ(block_size_x, __builtin_amdgcn_workgroup_size_x())
CKLANG_READ(block_size_y, __builtin_amdgcn_workgroup_size_y())
CKLANG_READ(block_size_z, __builtin_amdgcn_workgroup_size_z())
// HIP launches whole blocks, so the grid's threads divide evenly by the block's.
CKLANG_READ(grid_size_x, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x())
CKLANG_READ(grid_size_y, __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y())
CKLANG_READ(grid_size_z, __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z())

#undef CKLANG_READ

struct WarpSize
{
    __device__ __forceinline__ operator int() const { return __builtin_amdgcn_wavefrontsize(); }
};

} // namespace cklang_hip

static constexpr __device__
    cklang_hip::Index<cklang_hip::thread_x, cklang_hip::thread_y, cklang_hip::thread_z>
        threadIdx{};
static constexpr __device__
    cklang_hip::Index<cklang_hip::block_x, cklang_hip::block_y, cklang_hip::block_z>
        blockIdx{};
static constexpr __device__ cklang_hip::
    Index<cklang_hip::block_size_x, cklang_hip::block_size_y, cklang_hip::block_size_z>
        blockDim{};
static constexpr __device__ cklang_hip::
    Index<cklang_hip::grid_size_x, cklang_hip::grid_size_y, cklang_hip::grid_size_z>
        gridDim{};
static constexpr __device__ cklang_hip::WarpSize warpSize{};

// The names of HIP's first versions.
#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z
