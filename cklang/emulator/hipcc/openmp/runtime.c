/* SPDX-License-Identifier: MIT
 * A small OpenMP runtime: what clang calls for `parallel`, `for` under every schedule, `sections`, `single`,
 * `master`, `critical`, `reduction`, `barrier`, `task`, `taskloop` and `teams` on the host. A parallel region
 * inside of another has one thread; tasks run at once, in the thread that meets them; a league has one
 * team. Not there: `ordered`, and `target`, which would offload. Plain C: it is compiled into each program.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "omp.h"

typedef void (*Region)(int32_t* thread, int32_t* bound, ...);
typedef struct Location Location;

enum
{
    MOST_THREADS   = 256,
    MOST_ARGUMENTS = 64,
    LOOPS          = 8, /* dynamic loops without a barrier that threads may be apart */
};
enum Schedule
{
    STATIC_CHUNKED     = 33,
    GUIDED             = 36,
    RUNTIME            = 37,
    GUIDED_ITERATIVE   = 42,
    BALANCED_CHUNKED   = 45,
    DISTRIBUTE_CHUNKED = 91,
    DISTRIBUTE         = 92,
    MONOTONIC          = 1 << 29,
    NONMONOTONIC       = 1 << 30,
};

/* A loop whose iterations threads take as they come; they are numbered from 0. */
typedef struct
{
    uint64_t number, next, count, chunk;
    int64_t lower, step;
    int guided, left; /* threads that still take part; 0: the place is free */
} Loop;

typedef struct
{
    int size;
    Region region;
    void* arguments[MOST_ARGUMENTS];
    pthread_mutex_t lock;
    pthread_cond_t passed;
    int waiting;
    uint64_t phase, singles;
    void* copied;
    Loop loop[LOOPS];
} Team;

typedef struct Thread Thread;
struct Thread
{
    int number;
    Team* team;
    int level, asked; /* threads that num_threads(n) asks for */
    uint64_t singles, loops;
    Thread* outer; /* what the thread was before a region that it runs without calling one */
};

static __thread Thread self;
static Team the_team = {.lock = PTHREAD_MUTEX_INITIALIZER, .passed = PTHREAD_COND_INITIALIZER};
static struct
{
    pthread_mutex_t busy, lock;
    pthread_cond_t work, done;
    int threads, wanted, left;
    uint64_t round;
} pool = {.busy = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};
static int default_threads;
static omp_sched_t runtime_schedule = omp_sched_dynamic;
static int runtime_chunk            = 1;

static int processors(void)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : (int)count;
}
static int clamped(int count) { return count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : count; }

static int usual_threads(void)
{
    if(default_threads == 0)
    {
        const char* text = getenv("OMP_NUM_THREADS");
        default_threads  = text && atoi(text) > 0 ? clamped(atoi(text)) : processors();
    }
    return default_threads;
}
static int team_size(void) { return self.team ? self.team->size : 1; }

/* Calls a region. The convention of x86-64 lets a function have more arguments than it takes. */
#define A(n) a[n], a[n + 1], a[n + 2], a[n + 3], a[n + 4], a[n + 5], a[n + 6], a[n + 7]
static void call(Region region, void** a)
{
    int32_t number = self.number, bound = self.number;
    region(&number, &bound, A(0), A(8), A(16), A(24), A(32), A(40), A(48), A(56));
}
#undef A

static void take_part(Team* team, int number)
{
    const Thread outer = self;
    self               = (Thread){.number = number, .team = team, .level = outer.level + 1};
    call(team->region, team->arguments);
    self = outer;
}

static void* worker(void* argument)
{
    const int number = (int)(intptr_t)argument;
    uint64_t round   = 0;
    pthread_mutex_lock(&pool.lock);
    for(;;)
    {
        while(pool.round == round || number >= pool.wanted)
        {
            round = pool.round;
            pthread_cond_wait(&pool.work, &pool.lock);
        }
        round = pool.round;
        pthread_mutex_unlock(&pool.lock);
        take_part(&the_team, number);
        pthread_mutex_lock(&pool.lock);
        if(--pool.left == 0)
            pthread_cond_signal(&pool.done);
    }
    return NULL;
}

/* Starts the team's other threads. Called with the pool's lock. */
static int summon(int size)
{
    for(; pool.threads < size - 1; ++pool.threads)
    {
        pthread_t thread;
        if(pthread_create(&thread, NULL, worker, (void*)(intptr_t)(pool.threads + 1)) != 0)
            break;
        pthread_detach(thread);
    }
    return pool.threads + 1 < size ? pool.threads + 1 : size;
}

static void run_team(int size)
{
    pthread_mutex_lock(&pool.lock);
    size             = summon(size);
    the_team.size    = size;
    the_team.waiting = 0;
    the_team.singles = 0;
    memset(the_team.loop, 0, sizeof the_team.loop);
    pool.wanted = size;
    pool.left   = size - 1;
    ++pool.round;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    take_part(&the_team, 0);
    pthread_mutex_lock(&pool.lock);
    while(pool.left != 0)
        pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

/* A region with the one thread that meets it: a team of its own, as single and loops count by team. */
static void run_alone(Region region, void** arguments)
{
    Team team = {.size = 1, .region = region, .lock = PTHREAD_MUTEX_INITIALIZER, .passed = PTHREAD_COND_INITIALIZER};
    memcpy(team.arguments, arguments, sizeof team.arguments);
    take_part(&team, 0);
}

static void fork_team(Region region, void** arguments)
{
    const int size = self.asked ? self.asked : usual_threads();
    self.asked     = 0;
    if(self.level > 0 || size == 1 || pthread_mutex_trylock(&pool.busy) != 0)
    {
        run_alone(region, arguments);
        return;
    }
    the_team.region = region;
    memcpy(the_team.arguments, arguments, sizeof the_team.arguments);
    run_team(size);
    pthread_mutex_unlock(&pool.busy);
}

#define READ_ARGUMENTS(count, last)                                                   \
    void* arguments[MOST_ARGUMENTS] = {0};                                            \
    if(count > MOST_ARGUMENTS)                                                        \
    {                                                                                 \
        fprintf(stderr, "openmp: a region shares %d variables, at most %d\n", count, MOST_ARGUMENTS); \
        abort();                                                                      \
    }                                                                                 \
    __builtin_va_list list;                                                           \
    __builtin_va_start(list, last);                                                   \
    for(int n = 0; n < count; ++n)                                                    \
        arguments[n] = __builtin_va_arg(list, void*);                                 \
    __builtin_va_end(list)

void __kmpc_fork_call(Location* at, int32_t count, Region region, ...)
{
    (void)at;
    READ_ARGUMENTS(count, region);
    fork_team(region, arguments);
}
void __kmpc_fork_call_if(Location* at, int32_t count, Region region, int32_t condition, void* argument)
{
    (void)at, (void)count;
    void* arguments[MOST_ARGUMENTS] = {argument};
    if(condition)
        fork_team(region, arguments);
    else
        run_alone(region, arguments);
}
void __kmpc_fork_teams(Location* at, int32_t count, Region region, ...)
{
    (void)at;
    READ_ARGUMENTS(count, region);
    call(region, arguments); /* a league of one team: its thread may begin a parallel region */
}
void __kmpc_serialized_parallel(Location* at, int32_t thread)
{
    (void)at, (void)thread;
    Thread* outer = malloc(sizeof *outer);
    Team* team    = calloc(1, sizeof *team);
    *outer        = self;
    team->size    = 1;
    pthread_mutex_init(&team->lock, NULL);
    self = (Thread){.team = team, .level = outer->level + 1, .outer = outer};
}
void __kmpc_end_serialized_parallel(Location* at, int32_t thread)
{
    (void)at, (void)thread;
    Thread* outer = self.outer;
    free(self.team);
    self = *outer;
    free(outer);
}
void __kmpc_push_num_threads(Location* at, int32_t thread, int32_t count)
{
    (void)at, (void)thread;
    self.asked = clamped(count);
}
void __kmpc_push_num_teams(Location* at, int32_t thread, int32_t teams, int32_t threads)
{
    (void)at, (void)thread, (void)teams;
    if(threads > 0)
        self.asked = clamped(threads);
}
void __kmpc_push_proc_bind(Location* at, int32_t thread, int bind) { (void)at, (void)thread, (void)bind; }
int32_t __kmpc_global_thread_num(Location* at) { return (void)at, self.number; }
int32_t __kmpc_global_num_threads(Location* at) { return (void)at, team_size(); }
int32_t __kmpc_bound_thread_num(Location* at) { return (void)at, self.number; }
int32_t __kmpc_bound_num_threads(Location* at) { return (void)at, team_size(); }
int32_t __kmpc_in_parallel(Location* at) { return (void)at, team_size() > 1; }
void __kmpc_flush(Location* at) { (void)at, __atomic_thread_fence(__ATOMIC_SEQ_CST); }

void __kmpc_barrier(Location* at, int32_t thread)
{
    (void)at, (void)thread;
    Team* team = self.team;
    if(team == NULL || team->size == 1)
        return;
    pthread_mutex_lock(&team->lock);
    const uint64_t phase = team->phase;
    if(++team->waiting == team->size)
    {
        team->waiting = 0;
        ++team->phase;
        pthread_cond_broadcast(&team->passed);
    }
    while(team->phase == phase)
        pthread_cond_wait(&team->passed, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

/* One thread of the team, or the first. */
int32_t __kmpc_single(Location* at, int32_t thread)
{
    (void)at, (void)thread;
    if(self.team == NULL)
        return 1;
    uint64_t before = self.singles++;
    return __atomic_compare_exchange_n(
        &self.team->singles, &before, before + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
void __kmpc_end_single(Location* at, int32_t thread) { (void)at, (void)thread; }
int32_t __kmpc_master(Location* at, int32_t thread) { return (void)at, (void)thread, self.number == 0; }
void __kmpc_end_master(Location* at, int32_t thread) { (void)at, (void)thread; }
int32_t __kmpc_masked(Location* at, int32_t thread, int32_t which)
{
    return (void)at, (void)thread, self.number == which;
}
void __kmpc_end_masked(Location* at, int32_t thread) { (void)at, (void)thread; }
void __kmpc_copyprivate(
    Location* at, int32_t thread, size_t size, void* data, void (*copy)(void*, void*), int32_t did)
{
    (void)size;
    if(did && self.team)
        self.team->copied = data;
    __kmpc_barrier(at, thread);
    if(!did)
        copy(data, self.team->copied);
    __kmpc_barrier(at, thread);
}

/* Locks are words: 0 when free. Names of critical sections are eight words that begin as 0. */
static void take(int* word)
{
    while(__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE) != 0)
        sched_yield();
}
static void give(int* word) { __atomic_store_n(word, 0, __ATOMIC_RELEASE); }
void __kmpc_critical(Location* at, int32_t thread, int* name) { (void)at, (void)thread, take(name); }
void __kmpc_critical_with_hint(Location* at, int32_t thread, int* name, uint32_t hint)
{
    (void)at, (void)thread, (void)hint, take(name);
}
void __kmpc_end_critical(Location* at, int32_t thread, int* name) { (void)at, (void)thread, give(name); }

/* Each thread adds what it has, one after the other. */
int32_t __kmpc_reduce_nowait(
    Location* at, int32_t thread, int32_t count, size_t size, void* data, void (*join)(void*, void*), int* name)
{
    (void)at, (void)thread, (void)count, (void)size, (void)data, (void)join, take(name);
    return 1;
}
void __kmpc_end_reduce_nowait(Location* at, int32_t thread, int* name) { (void)at, (void)thread, give(name); }
int32_t __kmpc_reduce(
    Location* at, int32_t thread, int32_t count, size_t size, void* data, void (*join)(void*, void*), int* name)
{
    return __kmpc_reduce_nowait(at, thread, count, size, data, join, name);
}
void __kmpc_end_reduce(Location* at, int32_t thread, int* name)
{
    give(name);
    __kmpc_barrier(at, thread);
}

/* Iterations from `lower` to `upper`, both included, `step` apart. */
static uint64_t trips(int64_t lower, int64_t upper, int64_t step, int is_unsigned)
{
    const uint64_t from = (uint64_t)lower, to = (uint64_t)upper;
    if(step > 0)
        return (is_unsigned ? from > to : lower > upper) ? 0 : (to - from) / (uint64_t)step + 1;
    return (is_unsigned ? from < to : lower < upper) ? 0 : (from - to) / (0 - (uint64_t)step) + 1;
}

typedef struct
{
    int64_t lower, upper, stride;
    int last;
} Share;
static Share share_of(int schedule, int64_t lower, int64_t upper, int64_t step, int64_t chunk, int is_unsigned)
{
    const int kind       = schedule & ~(MONOTONIC | NONMONOTONIC);
    const int alone      = kind == DISTRIBUTE || kind == DISTRIBUTE_CHUNKED;
    const uint64_t size  = alone ? 1 : (uint64_t)team_size(), number = alone ? 0 : (uint64_t)self.number;
    const uint64_t count = trips(lower, upper, step, is_unsigned);
    if(count == 0)
        return (Share){lower, upper, step, 0};
    if(kind == STATIC_CHUNKED || kind == BALANCED_CHUNKED || kind == DISTRIBUTE_CHUNKED)
    {
        const uint64_t piece = chunk < 1 ? 1 : (uint64_t)chunk;
        const int64_t span   = (int64_t)piece * step, first = lower + (int64_t)number * span;
        return (Share){first, first + span - step, span * (int64_t)size, (count - 1) / piece % size == number};
    }
    const uint64_t each = count / size, more = count % size;
    const uint64_t first = number * each + (number < more ? number : more);
    const uint64_t mine  = each + (number < more);
    const int64_t begin  = lower + (int64_t)first * step;
    if(mine == 0) /* nothing: the loop's end lies before its begin */
        return (Share){upper + step, upper, (int64_t)count, 0};
    return (Share){begin, begin + (int64_t)(mine - 1) * step, (int64_t)count, first + mine == count};
}

static Loop* join_loop(int schedule, int64_t lower, int64_t upper, int64_t step, int64_t chunk, int is_unsigned)
{
    static __thread Team alone = {.size = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    if(self.team == NULL)
        self.team = &alone;
    const int runtime     = (schedule & ~(MONOTONIC | NONMONOTONIC)) == RUNTIME;
    const int kind        = schedule & ~(MONOTONIC | NONMONOTONIC);
    const uint64_t number = ++self.loops;
    Loop* loop            = &self.team->loop[number % LOOPS];
    pthread_mutex_lock(&self.team->lock);
    while(loop->number != number && loop->left != 0)
    {
        pthread_mutex_unlock(&self.team->lock);
        sched_yield();
        pthread_mutex_lock(&self.team->lock);
    }
    if(loop->number != number)
    {
        const int64_t piece = runtime ? runtime_chunk : chunk;
        *loop = (Loop){.number = number,
                       .count  = trips(lower, upper, step, is_unsigned),
                       .chunk  = piece < 1 ? 1 : (uint64_t)piece,
                       .lower  = lower,
                       .step   = step,
                       .guided = kind == GUIDED || kind == GUIDED_ITERATIVE ||
                                 (runtime && runtime_schedule == omp_sched_guided),
                       .left   = self.team->size};
    }
    pthread_mutex_unlock(&self.team->lock);
    return loop;
}

/* The next piece of the loop that the thread is in; 0 when there is none, and the thread has left it. */
static int next_piece(Share* share)
{
    Team* team = self.team;
    Loop* loop = &team->loop[self.loops % LOOPS];
    pthread_mutex_lock(&team->lock);
    const uint64_t left = loop->count - loop->next;
    uint64_t size       = loop->chunk;
    if(loop->guided && left / (2 * (uint64_t)team->size) > size)
        size = left / (2 * (uint64_t)team->size);
    size         = size < left ? size : left;
    share->lower = loop->lower + (int64_t)loop->next * loop->step;
    share->upper = share->lower + (int64_t)(size - 1) * loop->step;
    share->stride = loop->step;
    loop->next += size;
    share->last = loop->next == loop->count;
    if(left == 0)
        --loop->left;
    pthread_mutex_unlock(&team->lock);
    return left != 0;
}

#define LOOPS_OF(suffix, T, S, is_unsigned)                                                                \
    void __kmpc_for_static_init_##suffix(Location* at, int32_t thread, int32_t schedule, int32_t* last,    \
                                         T* lower, T* upper, S* stride, S step, S chunk)                   \
    {                                                                                                      \
        (void)at, (void)thread;                                                                            \
        const Share share = share_of(schedule, (int64_t)*lower, (int64_t)*upper, step, chunk, is_unsigned); \
        *lower = (T)share.lower, *upper = (T)share.upper, *stride = (S)share.stride;                       \
        if(last)                                                                                           \
            *last = share.last;                                                                            \
    }                                                                                                      \
    void __kmpc_dist_for_static_init_##suffix(Location* at, int32_t thread, int32_t schedule,              \
                                              int32_t* last, T* lower, T* upper, T* whole, S* stride,      \
                                              S step, S chunk)                                             \
    {                                                                                                      \
        *whole = *upper;                                                                                   \
        __kmpc_for_static_init_##suffix(at, thread, schedule, last, lower, upper, stride, step, chunk);    \
    }                                                                                                      \
    void __kmpc_dispatch_init_##suffix(Location* at, int32_t thread, int32_t schedule, T lower, T upper,   \
                                       S step, S chunk)                                                    \
    {                                                                                                      \
        (void)at, (void)thread;                                                                            \
        join_loop(schedule, (int64_t)lower, (int64_t)upper, step, chunk, is_unsigned);                     \
    }                                                                                                      \
    int __kmpc_dispatch_next_##suffix(Location* at, int32_t thread, int32_t* last, T* lower, T* upper,     \
                                      S* stride)                                                           \
    {                                                                                                      \
        (void)at, (void)thread;                                                                            \
        Share share;                                                                                       \
        if(!next_piece(&share))                                                                            \
            return 0;                                                                                      \
        *lower = (T)share.lower, *upper = (T)share.upper, *stride = (S)share.stride;                       \
        if(last)                                                                                           \
            *last = share.last;                                                                            \
        return 1;                                                                                          \
    }                                                                                                      \
    void __kmpc_dispatch_fini_##suffix(Location* at, int32_t thread) { (void)at, (void)thread; }
LOOPS_OF(4, int32_t, int32_t, 0)
LOOPS_OF(4u, uint32_t, int32_t, 1)
LOOPS_OF(8, int64_t, int64_t, 0)
LOOPS_OF(8u, uint64_t, int64_t, 1)
void __kmpc_for_static_fini(Location* at, int32_t thread) { (void)at, (void)thread; }
void __kmpc_dispatch_deinit(Location* at, int32_t thread) { (void)at, (void)thread; }

/* Tasks run where they are met, so that nothing is left to wait for. */
typedef struct Task Task;
struct Task
{
    void* shared;
    int32_t (*body)(int32_t, Task*);
    int32_t part;
    void* data[2];
};
Task* __kmpc_omp_task_alloc(Location* at, int32_t thread, int32_t flags, size_t size, size_t shared,
                            int32_t (*body)(int32_t, Task*))
{
    (void)at, (void)thread, (void)flags;
    const size_t begin = (size + 15) / 16 * 16;
    Task* task         = calloc(1, begin + shared);
    task->body         = body;
    task->shared       = shared ? (char*)task + begin : NULL;
    return task;
}
int32_t __kmpc_omp_task(Location* at, int32_t thread, Task* task)
{
    (void)at;
    task->body(thread, task);
    free(task);
    return 0;
}
int32_t __kmpc_omp_task_with_deps(Location* at, int32_t thread, Task* task, int32_t count, void* depends,
                                  int32_t more, void* list)
{
    (void)count, (void)depends, (void)more, (void)list;
    return __kmpc_omp_task(at, thread, task);
}
void __kmpc_taskloop(Location* at, int32_t thread, Task* task, int condition, uint64_t* lower, uint64_t* upper,
                     int64_t step, int no_group, int schedule, uint64_t grain, void* copy)
{
    (void)condition, (void)lower, (void)upper, (void)step, (void)no_group, (void)schedule, (void)grain, (void)copy;
    __kmpc_omp_task(at, thread, task);
}
void __kmpc_omp_task_begin_if0(Location* at, int32_t thread, Task* task) { (void)at, (void)thread, (void)task; }
void __kmpc_omp_task_complete_if0(Location* at, int32_t thread, Task* task) { (void)at, (void)thread, free(task); }
void __kmpc_omp_wait_deps(Location* at, int32_t thread, int32_t count, void* depends, int32_t more, void* list)
{
    (void)at, (void)thread, (void)count, (void)depends, (void)more, (void)list;
}
int32_t __kmpc_omp_taskwait(Location* at, int32_t thread) { return (void)at, (void)thread, 0; }
int32_t __kmpc_omp_taskyield(Location* at, int32_t thread, int part) { return (void)at, (void)thread, (void)part, 0; }
void __kmpc_taskgroup(Location* at, int32_t thread) { (void)at, (void)thread; }
void __kmpc_end_taskgroup(Location* at, int32_t thread) { (void)at, (void)thread; }

/* Updates that the processor has no instruction for. */
static int atomic_word;
void __kmpc_atomic_start(void) { take(&atomic_word); }
void __kmpc_atomic_end(void) { give(&atomic_word); }

int omp_get_num_threads(void) { return team_size(); }
int omp_get_max_threads(void) { return usual_threads(); }
int omp_get_thread_num(void) { return self.number; }
int omp_get_num_procs(void) { return processors(); }
int omp_get_thread_limit(void) { return MOST_THREADS; }
int omp_in_parallel(void) { return team_size() > 1; }
int omp_get_level(void) { return self.level; }
int omp_get_active_level(void) { return team_size() > 1; }
int omp_get_max_active_levels(void) { return 1; }
int omp_get_dynamic(void) { return 0; }
int omp_get_nested(void) { return 0; }
int omp_get_num_teams(void) { return 1; }
int omp_get_team_num(void) { return 0; }
int omp_get_num_devices(void) { return 0; }
int omp_get_default_device(void) { return 0; }
int omp_is_initial_device(void) { return 1; }
omp_proc_bind_t omp_get_proc_bind(void) { return omp_proc_bind_false; }
void omp_get_schedule(omp_sched_t* kind, int* chunk) { *kind = runtime_schedule, *chunk = runtime_chunk; }
void omp_set_num_threads(int count) { default_threads = clamped(count); }
void omp_set_dynamic(int on) { (void)on; }
void omp_set_nested(int on) { (void)on; }
void omp_set_max_active_levels(int levels) { (void)levels; }
void omp_set_schedule(omp_sched_t kind, int chunk) { runtime_schedule = kind, runtime_chunk = chunk; }
void omp_set_default_device(int device) { (void)device; }
double omp_get_wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
double omp_get_wtick(void) { return 1e-9; }

void omp_init_lock(omp_lock_t* lock) { lock->word[0] = 0; }
void omp_destroy_lock(omp_lock_t* lock) { (void)lock; }
void omp_set_lock(omp_lock_t* lock) { take(&lock->word[0]); }
void omp_unset_lock(omp_lock_t* lock) { give(&lock->word[0]); }
int omp_test_lock(omp_lock_t* lock) { return __atomic_exchange_n(&lock->word[0], 1, __ATOMIC_ACQUIRE) == 0; }

/* Nested locks: the word, the thread that has it (from 1), and how often. */
void omp_init_nest_lock(omp_nest_lock_t* lock) { memset(lock, 0, sizeof *lock); }
void omp_destroy_nest_lock(omp_nest_lock_t* lock) { (void)lock; }
int omp_test_nest_lock(omp_nest_lock_t* lock)
{
    const int mine = self.number + 1;
    if(__atomic_load_n(&lock->word[1], __ATOMIC_ACQUIRE) != mine)
    {
        if(__atomic_exchange_n(&lock->word[0], 1, __ATOMIC_ACQUIRE) != 0)
            return 0;
        __atomic_store_n(&lock->word[1], mine, __ATOMIC_RELEASE);
    }
    return ++lock->word[2];
}
void omp_set_nest_lock(omp_nest_lock_t* lock)
{
    while(!omp_test_nest_lock(lock))
        sched_yield();
}
void omp_unset_nest_lock(omp_nest_lock_t* lock)
{
    if(--lock->word[2] != 0)
        return;
    __atomic_store_n(&lock->word[1], 0, __ATOMIC_RELEASE);
    give(&lock->word[0]);
}
