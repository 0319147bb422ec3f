// SPDX-License-Identifier: MIT
// Conjugate gradients for a sparse system: a wave a row, reductions by shuffles, a cooperative kernel with one grid for
// all iterations, in double precision.
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

constexpr int kSide = 20, kRows = kSide * kSide, kThreads = 128;

struct System
{
    const int *begins, *columns;
    const double* values;
    double *x, *r, *p, *q, *sums;
    int iterations;
};

__device__ double reduced(double value)
{
    for(int distance = warpSize / 2; distance > 0; distance /= 2)
        value += __shfl_down(value, distance);
    return value;
}

__device__ void add_dot(const double* a, const double* b, double* sum, int first, int stride)
{
    double part = 0;
    for(int n = first; n < kRows; n += stride)
        part += a[n] * b[n];
    part = reduced(part);
    if(threadIdx.x % warpSize == 0)
        atomicAdd(sum, part);
}

__global__ void solve(System s)
{
    const cg::grid_group grid = cg::this_grid();
    const int first = static_cast<int>(grid.thread_rank()), stride = static_cast<int>(grid.size());
    const int lane = static_cast<int>(threadIdx.x) % warpSize, wave = first / warpSize, waves = stride / warpSize;
    add_dot(s.r, s.r, &s.sums[0], first, stride);
    grid.sync();
    for(int n = 0; n < s.iterations; ++n)
    {
        double* sums = s.sums + 2 * n;  // r·r, p·q, and the next r·r
        for(int row = wave; row < kRows; row += waves)
        {
            double part = 0;
            for(int k = s.begins[row] + lane; k < s.begins[row + 1]; k += warpSize)
                part += s.values[k] * s.p[s.columns[k]];
            part = reduced(part);
            if(lane == 0)
                s.q[row] = part;
        }
        grid.sync();
        add_dot(s.p, s.q, &sums[1], first, stride);
        grid.sync();
        const double alpha = sums[0] / sums[1];
        for(int row = first; row < kRows; row += stride)
        {
            s.x[row] += alpha * s.p[row];
            s.r[row] -= alpha * s.q[row];
        }
        grid.sync();
        add_dot(s.r, s.r, &sums[2], first, stride);
        grid.sync();
        const double beta = sums[2] / sums[0];
        for(int row = first; row < kRows; row += stride)
            s.p[row] = s.r[row] + beta * s.p[row];
        grid.sync();
    }
}

template <typename T>
static T* to_device(const std::vector<T>& values, int& failed)
{
    T* memory = nullptr;
    failed += hipMalloc(&memory, values.size() * sizeof(T)) + hipMemcpy(memory, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice);
    return memory;
}

int main()
{
    std::vector<int> begins{0}, columns;
    std::vector<double> values, b(kRows), zeros(kRows), solution(kRows);
    for(int row = 0; row < kRows; ++row)
    {
        const int x = row % kSide, y = row / kSide;
        const auto add = [&](bool there, int column, double value) {
            if(!there)
                return;
            columns.push_back(column);
            values.push_back(value);
        };
        add(y > 0, row - kSide, -1);
        add(x > 0, row - 1, -1);
        add(true, row, 4.5);
        add(x + 1 < kSide, row + 1, -1);
        add(y + 1 < kSide, row + kSide, -1);
        begins.push_back(static_cast<int>(columns.size()));
        b[row] = std::sin(0.1 * row) + 1;
    }
    int failed = 0, blocks = 0;
    const int iterations = 60;
    System s{to_device(begins, failed), to_device(columns, failed), to_device(values, failed), to_device(zeros, failed), to_device(b, failed), to_device(b, failed), to_device(zeros, failed),
             to_device(std::vector<double>(2 * iterations + 1), failed), iterations};
    failed += hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, solve, kThreads, 0);
    failed += blocks < 1;
    void* arguments[] = {&s};
    failed += hipLaunchCooperativeKernel(solve, dim3(3), dim3(kThreads), arguments, 0, nullptr);
    failed += hipMemcpy(solution.data(), s.x, kRows * sizeof(double), hipMemcpyDeviceToHost);
    double worst = 0;
    for(int row = 0; row < kRows; ++row)
    {
        double sum = -b[row];
        for(int k = begins[row]; k < begins[row + 1]; ++k)
            sum += values[k] * solution[columns[k]];
        worst = std::fmax(worst, std::fabs(sum));
    }
    printf("%d failed, residual %s\n", failed, worst < 1e-8 ? "small" : "large");
    for(const void* memory : {static_cast<const void*>(s.begins), static_cast<const void*>(s.columns), static_cast<const void*>(s.values)})
        failed += hipFree(const_cast<void*>(memory));
    for(double* memory : {s.x, s.r, s.p, s.q, s.sums})
        failed += hipFree(memory);
    return failed;
}
