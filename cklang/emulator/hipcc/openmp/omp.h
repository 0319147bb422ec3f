/* SPDX-License-Identifier: MIT
 * OpenMP's functions, for programs of `cklang hipcc -fopenmp` on machines without libomp.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct
{
    int word[2];
} omp_lock_t;
typedef struct
{
    int word[4];
} omp_nest_lock_t;
typedef enum
{
    omp_sched_static  = 1,
    omp_sched_dynamic = 2,
    omp_sched_guided  = 3,
    omp_sched_auto    = 4,
} omp_sched_t;
typedef enum
{
    omp_proc_bind_false  = 0,
    omp_proc_bind_true   = 1,
    omp_proc_bind_master = 2,
    omp_proc_bind_close  = 3,
    omp_proc_bind_spread = 4,
} omp_proc_bind_t;

int omp_get_num_threads(void);
int omp_get_max_threads(void);
int omp_get_thread_num(void);
int omp_get_num_procs(void);
int omp_get_thread_limit(void);
int omp_in_parallel(void);
int omp_get_level(void);
int omp_get_active_level(void);
int omp_get_max_active_levels(void);
int omp_get_dynamic(void);
int omp_get_nested(void);
int omp_get_num_teams(void);
int omp_get_team_num(void);
int omp_get_num_devices(void);
int omp_get_default_device(void);
int omp_is_initial_device(void);
omp_proc_bind_t omp_get_proc_bind(void);
void omp_get_schedule(omp_sched_t* kind, int* chunk);
void omp_set_num_threads(int count);
void omp_set_dynamic(int on);
void omp_set_nested(int on);
void omp_set_max_active_levels(int levels);
void omp_set_schedule(omp_sched_t kind, int chunk);
void omp_set_default_device(int device);
double omp_get_wtime(void);
double omp_get_wtick(void);

void omp_init_lock(omp_lock_t* lock);
void omp_destroy_lock(omp_lock_t* lock);
void omp_set_lock(omp_lock_t* lock);
void omp_unset_lock(omp_lock_t* lock);
int omp_test_lock(omp_lock_t* lock);
void omp_init_nest_lock(omp_nest_lock_t* lock);
void omp_destroy_nest_lock(omp_nest_lock_t* lock);
void omp_set_nest_lock(omp_nest_lock_t* lock);
void omp_unset_nest_lock(omp_nest_lock_t* lock);
int omp_test_nest_lock(omp_nest_lock_t* lock);

#ifdef __cplusplus
}
#endif
