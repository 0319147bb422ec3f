// SPDX-License-Identifier: MIT
// OpenMP on the host beside a kernel; prints what went wrong.
#include <hip/hip_runtime.h>
#include <omp.h>

#include <cstdio>
#include <vector>

__global__ void twice(int* x) { x[threadIdx.x] *= 2; }

static int failures = 0;
static void check(const char* what, bool right)
{
    if(!right)
        ++failures, std::printf("FAILED: %s\n", what);
}

template <class Index>
static void loops(const char* what)
{
    const Index n = 1000;
    std::vector<int> hits(n);
    long long sum = 0, backward = 0;
    double largest = -1;
#pragma omp parallel for reduction(+ : sum) reduction(max : largest)
    for(Index i = 0; i < n; ++i)
    {
        hits[i]++;
        sum += static_cast<long long>(i);
        largest = largest > i ? largest : i;
    }
// Threads that did not wait for a loop may be in the next one.
#pragma omp parallel
    {
#pragma omp for schedule(static, 7) nowait
        for(Index i = 3; i < n; i += 4)
        {
#pragma omp atomic
            hits[i]++;
        }
#pragma omp for schedule(dynamic, 3) nowait
        for(Index i = 0; i < n; ++i)
        {
#pragma omp atomic
            hits[i]++;
        }
#pragma omp for schedule(guided) nowait
        for(Index i = 0; i < n; ++i)
        {
#pragma omp atomic
            hits[i]++;
        }
#pragma omp for schedule(runtime) reduction(+ : backward)
        for(Index i = n; i > 1; i -= 3)
            backward += static_cast<long long>(i);
    }
    bool all = true;
    for(Index i = 0; i < n; ++i)
        all = all && hits[i] == (i % 4 == 3 ? 4 : 3);
    check(what, all && sum == 499500 && largest == 999);
    check("backward", backward == 333 * (1000 + 4) / 2);
}

int main()
{
    omp_set_num_threads(4);
    loops<int>("int");
    loops<unsigned>("unsigned");
    loops<long long>("long long");
    loops<unsigned long>("unsigned long");

    int threads = 0, singles = 0, masters = 0, critical = 0, atomic = 0, sections = 0, nested = 0;
    int shared = 0, copies = 0;
#pragma omp parallel num_threads(3)
    {
        int mine = 0;
#pragma omp atomic
        threads += omp_get_num_threads();
        for(int n = 0; n < 50; ++n)
        {
#pragma omp single nowait
            {
#pragma omp atomic
                ++singles;
            }
#pragma omp critical
            ++critical;
        }
#pragma omp single copyprivate(mine)
        mine = 7;
#pragma omp atomic
        copies += mine;
#pragma omp master
        ++masters;
#pragma omp barrier
#pragma omp atomic
        atomic += masters;
#pragma omp sections
        {
#pragma omp section
            {
#pragma omp atomic
                sections += 1;
            }
#pragma omp section
            {
#pragma omp atomic
                sections += 10;
            }
        }
#pragma omp parallel for if(omp_get_thread_num() < 0)
        for(int i = 0; i < 10; ++i)
        {
#pragma omp atomic
            ++nested;
        }
#pragma omp single
        {
            for(int i = 0; i < 20; ++i)
#pragma omp task firstprivate(i)
            {
#pragma omp atomic
                shared += i;
            }
#pragma omp taskwait
        }
    }
    check("num_threads", threads == 9);
    check("single", singles == 50 && copies == 21);
    check("critical", critical == 150);
    check("master and barrier", masters == 1 && atomic == 3);
    check("sections", sections == 11);
    check("nested", nested == 30);
    check("tasks", shared == 190);

    int league = 0;
#pragma omp teams distribute parallel for reduction(+ : league)
    for(int i = 0; i < 100; ++i)
        league += i;
    check("teams", league == 4950);

    omp_lock_t lock;
    omp_init_lock(&lock);
    int locked = 0;
#pragma omp parallel for
    for(int i = 0; i < 200; ++i)
    {
        omp_set_lock(&lock);
        ++locked;
        omp_unset_lock(&lock);
    }
    check("locks", locked == 200);

    int *device, host[64];
    for(int& x : host)
        x = 21;
    (void)hipMalloc(&device, sizeof host);
    (void)hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice);
    twice<<<1, 64>>>(device);
    (void)hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost);
    check("kernel", host[63] == 42);
    check("time", omp_get_wtime() > 0 && _OPENMP >= 201811);
    std::printf("%d failed\n", failures);
    return failures != 0;
}
