/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_process.c - compiling out of process: the same code as in this one, for whatever is compiled; and workers
 * that crash, hang, are missing or belong to another process cost a status and nothing else.  LLVM is compiled in
 * with a second context, in the same process, which shows that nothing but the place differs. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <opjit/artifact.h>
#include <opjit/async.h>
#include <opjit/graph_ops.h>

#include "frontend/frontend.h"
#include "tests/support/checker.h"

enum { KERNELS = 9, THREADS = 6, MOST_WORKERS = 64, LAYERS = 60, WAIT_MS = 5000 };

static opjit_context *inside, *outside;

static opjit_context *open_context(uint32_t flags, const char *codegen_path, const char *cache_dir)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_error error;

    options.flags = flags;
    options.codegen_path = codegen_path;
    options.cache_dir = cache_dir;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    return context;
}

static void setup(void)
{
    inside = open_context(0, NULL, NULL);
    outside = open_context(OPJIT_CONTEXT_OUT_OF_PROCESS, NULL, NULL);
}

static void teardown(void)
{
    opjit_context_destroy(outside);
    opjit_context_destroy(inside);
}

static void pause_ms(long ms)
{
    nanosleep(&(const struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* --- what is compiled --------------------------------------------------------------------------------------------- */

/* salt: another kernel each time, as it is in the sizes. */
static opjit_graph *make_graph(opjit_context *context, uint32_t which, uint32_t salt)
{
    const uint32_t sizes[2] = { 24, 40 + salt }, square[2] = { 20 + salt, 20 + salt };
    opjit_graph *g = NULL;
    opjit_tensor made;

    ck_assert_int_eq(opjit_graph_create(context, &g, NULL), OPJIT_OK);
    const opjit_tensor x = opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes);
    switch (which) {
    case 0: made = opjit_graph_fill_band(g, x, -1, 1, INT32_MAX); break;
    case 1: made = opjit_graph_eye(g, DML_TENSOR_DATA_TYPE_FLOAT16, 2, square, 0); break;
    case 2: made = opjit_graph_softmax(g, opjit_graph_fill_band(g, x, -INFINITY, 1, INT32_MAX), 1); break;
    case 3: made = opjit_graph_exp(g, x); break; /* a function that kernels share */
    case 4: {
        const opjit_tensor y = opjit_graph_input(g, "y", DML_TENSOR_DATA_TYPE_FLOAT32, 2, square);
        const opjit_tensor z = opjit_graph_input(g, "z", DML_TENSOR_DATA_TYPE_FLOAT32, 2, square);
        made = opjit_graph_matrix_multiply(g, y, z, 0, 0); /* tiles */
        break;
    }
    case 5: made = opjit_graph_reduce_sum(g, x, 1); break;
    case 6: { /* a constant of the kernel's own */
        static float data[24 * 64];
        made = opjit_graph_add(g, x,
                               opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, data,
                                                    (uint64_t)sizes[0] * sizes[1] * 4, 0));
        break;
    }
    case 7: made = opjit_graph_cast(g, opjit_graph_cumulative_sum(g, x, 1, 0), DML_TENSOR_DATA_TYPE_FLOAT16); break;
    default: /* many stages: groups, on several threads where there are some */
        made = x;
        for (uint32_t i = 0; i < LAYERS; i++)
            made = opjit_graph_softmax(g, opjit_graph_reduce_sum(g, opjit_graph_add(g, made, made), i % 2), 0),
            made = opjit_graph_add(g, x, opjit_graph_broadcast(g, made, 2, sizes));
    }
    opjit_graph_output(g, "made", made);
    return g;
}

static opjit_status compile(opjit_context *context, uint32_t which, uint32_t salt, opjit_level level,
                            const opjit_executor *executor, opjit_kernel **out, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_graph *const g = make_graph(context, which, salt);

    options.level = level;
    options.executor = executor;
    options.flags = OPJIT_COMPILE_NO_CACHE;
    const opjit_status status = opjit_graph_compile(g, &options, out, error);
    opjit_graph_destroy(g);
    return status;
}

static opjit_kernel *compiled(opjit_context *context, uint32_t which, uint32_t salt, opjit_level level,
                              const opjit_executor *executor)
{
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };

    ck_assert_msg(compile(context, which, salt, level, executor, &kernel, &error) == OPJIT_OK, "%u: %s", which,
                  error.message);
    return kernel;
}

static opjit_status try_one(uint32_t salt, opjit_error *error)
{
    opjit_kernel *kernel = NULL;
    const opjit_status status = compile(outside, 0, salt, OPJIT_LEVEL_QUICK, NULL, &kernel, error);

    opjit_kernel_release(kernel);
    return status;
}

static void check_one(uint32_t salt)
{
    opjit_error error = { 0 };
    ck_assert_msg(try_one(salt, &error) == OPJIT_OK, "%s", error.message);
}

static bool same(const opjit_kernel *a, const opjit_kernel *b)
{
    const void *images[2];
    uint64_t bytes[2];

    ck_assert_int_eq(opjit_kernel_get_image(a, &images[0], &bytes[0], NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_get_image(b, &images[1], &bytes[1], NULL), OPJIT_OK);
    return bytes[0] == bytes[1] && memcmp(images[0], images[1], (size_t)bytes[0]) == 0;
}

/* --- workers, as the system sees them ----------------------------------------------------------------------------- */

/* Children of this process with that program; zombies, too. */
static uint32_t list_workers(pid_t pids[static MOST_WORKERS])
{
    DIR *const folder = opendir("/proc");
    uint32_t count = 0;

    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[280], name[64] = "", state;
        int parent = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *const file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (file == NULL)
            continue;
        if (fscanf(file, "%*d (%63[^)]) %c %d", name, &state, &parent) == 3 && parent == (int)getpid() &&
            strcmp(name, "opjit-worker") == 0 && count < MOST_WORKERS)
            pids[count++] = (pid_t)atoi(entry->d_name);
        fclose(file);
    }
    closedir(folder);
    return count;
}

static pid_t the_worker(void)
{
    pid_t pids[MOST_WORKERS];
    ck_assert_uint_eq(list_workers(pids), 1);
    return pids[0];
}

static uint32_t open_descriptors(void)
{
    DIR *const folder = opendir("/proc/self/fd");
    uint32_t count = 0;

    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* --- the same code ------------------------------------------------------------------------------------------------ */

START_TEST(code_is_the_same)
{
    const opjit_level level = _i % 2 == 0 ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK;
    opjit_kernel *const far = compiled(outside, (uint32_t)_i / 2, 1, level, NULL);
    opjit_kernel *const near = compiled(inside, (uint32_t)_i / 2, 1, level, NULL);

    ck_assert(same(near, far));
    opjit_kernel_release(near);
    opjit_kernel_release(far);
}
END_TEST

START_TEST(code_is_the_same_on_threads)
{
    opjit_pool *pool = NULL;
    ck_assert_int_eq(opjit_pool_create(NULL, 3, &pool, NULL), OPJIT_OK);
    opjit_kernel *const far = compiled(outside, KERNELS - 1, 1, OPJIT_LEVEL_QUICK, opjit_pool_executor(pool));
    opjit_kernel *const near = compiled(inside, KERNELS - 1, 1, OPJIT_LEVEL_QUICK, NULL);

    ck_assert(same(near, far));
    opjit_kernel_release(near);
    opjit_kernel_release(far);
    opjit_pool_destroy(pool);
}
END_TEST

static opjit_artifact *make_artifact(opjit_context *context, const char *const *targets, uint32_t count, uint32_t flags)
{
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_artifact *artifact = NULL;
    opjit_error error;

    options.targets = targets;
    options.target_count = count;
    options.flags = flags;
    ck_assert_msg(opjit_artifact_create(context, &options, &artifact, &error) == OPJIT_OK, "%s", error.message);
    for (uint32_t i = 0; i + 1 < KERNELS; i++) {
        opjit_compile_options compile_options = OPJIT_COMPILE_OPTIONS_INIT;
        const DML_GRAPH_DESC *desc;
        char name[16];
        opjit_graph *const g = make_graph(context, i, 1);
        snprintf(name, sizeof name, "kernel%u", i);
        compile_options.name = name;
        ck_assert_msg(opjit_graph_get_desc(g, &desc, &error) == OPJIT_OK, "%s", error.message);
        ck_assert_msg(opjit_artifact_add_graph(artifact, desc, &compile_options, &error) == OPJIT_OK, "%s",
                      error.message);
        opjit_graph_destroy(g);
    }
    return artifact;
}

START_TEST(artifacts_are_the_same)
{
    static const char *const cpus[] = { "cpu:x86-64-v4", "cpu:x86-64-v2" }, *const ptx[] = { "nvptx:sm_80" },
                             *const spirv[] = { "spirv" };
    static const struct {
        const char *const *targets;
        uint32_t count, flags;
        opjit_artifact_kind kinds[7]; /* 0 after the last */
    } rows[] = {
        { cpus,
          2,
          0,
          { OPJIT_ARTIFACT_OBJECT, OPJIT_ARTIFACT_ASM, OPJIT_ARTIFACT_LLVM, OPJIT_ARTIFACT_ARCHIVE,
            OPJIT_ARTIFACT_SHARED, OPJIT_ARTIFACT_TVM_FFI } },
        { cpus, 1, OPJIT_ARTIFACT_WEIGHTS_APART, { OPJIT_ARTIFACT_OBJECT, OPJIT_ARTIFACT_WEIGHTS } },
        { ptx, 1, 0, { OPJIT_ARTIFACT_PTX, OPJIT_ARTIFACT_LLVM } },
        { spirv, 1, 0, { OPJIT_ARTIFACT_SPIRV } },
    };
    opjit_artifact *const near = make_artifact(inside, rows[_i].targets, rows[_i].count, rows[_i].flags);
    opjit_artifact *const far = make_artifact(outside, rows[_i].targets, rows[_i].count, rows[_i].flags);

    for (uint32_t i = 0; i < opjit_artifact_count(near); i++)
        for (uint32_t k = 0; rows[_i].kinds[k] != 0; k++) {
            const void *data[2];
            uint64_t bytes[2];
            opjit_error error[2] = { 0 };
            const opjit_status a = opjit_artifact_get(near, i, rows[_i].kinds[k], &data[0], &bytes[0], &error[0]);
            const opjit_status b = opjit_artifact_get(far, i, rows[_i].kinds[k], &data[1], &bytes[1], &error[1]);
            ck_assert_msg(a == b, "kind %d: %s, %s", (int)rows[_i].kinds[k], error[0].message, error[1].message);
            if (a == OPJIT_OK) {
                ck_assert_uint_eq(bytes[0], bytes[1]);
                ck_assert_msg(bytes[0] == 0 || memcmp(data[0], data[1], (size_t)bytes[0]) == 0, "kind %d",
                              (int)rows[_i].kinds[k]);
            } else {
                ck_assert_str_eq(error[0].message, error[1].message);
            }
        }
    opjit_artifact_destroy(near);
    opjit_artifact_destroy(far);
}
END_TEST

static void keep_plan(void *user, const char *stage, const char *text)
{
    char **const plan = user;
    if (strcmp(stage, "plan") == 0)
        *plan = strdup(text);
}

START_TEST(plans_are_the_same)
{
    opjit_context *const contexts[] = { inside, outside };
    char *plans[2] = { NULL, NULL };

    for (uint32_t i = 0; i < 2; i++) {
        const DML_GRAPH_DESC *desc;
        opjit_graph *const g = make_graph(contexts[i], 2, 1);
        ck_assert_int_eq(opjit_graph_get_desc(g, &desc, NULL), OPJIT_OK);
        ck_assert_int_eq(opjit_graph_explain(contexts[i], desc, NULL, keep_plan, &plans[i], NULL), OPJIT_OK);
        opjit_graph_destroy(g);
        ck_assert_ptr_nonnull(plans[i]);
    }
    ck_assert_str_eq(plans[0], plans[1]);
    ck_assert_ptr_nonnull(strstr(plans[0], "lanes"));
    free(plans[0]);
    free(plans[1]);
}
END_TEST

/* Functions that kernels share go through the host's disk cache: what one worker has kept, the next one finds. */
START_TEST(shared_functions_are_in_the_disk_cache)
{
    char folder[] = "/tmp/opjit-process-XXXXXX", command[64];
    struct dirent **names;
    int before, after;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    opjit_context *const context = open_context(OPJIT_CONTEXT_OUT_OF_PROCESS, NULL, folder);
    if (opjit_rt_target_calls_math(&context->target)) {
        for (uint32_t i = 0; i < 2; i++) {
            opjit_graph *const g = make_graph(context, 3, 8 + 16 * i); /* with the caches; rounds of whole vectors */
            opjit_kernel *kernel = NULL;
            before = i == 0 ? 0 : after;
            ck_assert_int_eq(opjit_graph_compile(g, NULL, &kernel, NULL), OPJIT_OK);
            after = scandir(folder, &names, NULL, NULL);
            for (int k = 0; k < after; k++)
                free(names[k]);
            free(names);
            if (i == 0) /* a kernel and a function, beside . and .. */
                ck_assert_int_ge(after, 4);
            else /* another kernel alone */
                ck_assert_int_eq(after, before + 1);
            opjit_kernel_release(kernel);
            opjit_graph_destroy(g);
            ck_assert_int_eq(kill(the_worker(), SIGKILL), 0); /* its memory has the function, too */
        }
    }
    opjit_context_destroy(context);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* --- crashes ------------------------------------------------------------------------------------------------------ */

/* A function that calls a tile, which the worker asks for: then it is struck. */
static const char struck[] =
    "kernel @struck after expand {\n in %a \"a\": f32[4,8]\n in %b \"b\": f32[8,16]\n out %o \"o\": f32[4,16]\n"
    " scratch %t: f32[4,16]\n stage @0 for %p in 0..1 {\n"
    " for %i0 in 0..4 { for %j0 in 0..16 vec 8 { store %t[%i0,%j0], f32 0x0p+0 } }\n"
    " for %k in 0..8 hold { for %i in 0..4 { for %j in 0..16 vec 8 {\n"
    "  store %t[%i,%j], fma(load %a[%i,%k], load %b[%k,%j], load %t[%i,%j]) } } }\n"
    " for %i1 in 0..4 { for %j1 in 0..16 vec 8 { store %o[%i1,%j1], load %t[%i1,%j1] } } }\n}\n";

typedef struct attack {
    int signal;
    uint32_t finds, keeps;
} attack;

static void strike(void *user, const void *key, size_t size, rt_bytes *out)
{
    attack *const a = user;
    (void)out;
    ck_assert(memchr(key, '\0', size) != NULL);
    a->finds++;
    if (a->signal != 0)
        ck_assert_int_eq(kill(the_worker(), a->signal), 0);
}

static void keep(void *user, const void *key, size_t key_size, const void *bytes, size_t size)
{
    attack *const a = user;
    (void)bytes;
    ck_assert(memchr(key, '\0', key_size) != NULL && size > 0);
    a->keeps++;
}

/* By the library itself, since its caller has the hook. */
static opjit_status compile_and_strike(int signal, opjit_error *error)
{
    const opjit_allocator *const memory = &opjit_rt_default_allocator;
    attack a = { .signal = signal };
    const codegen_functions functions = { &a, strike, keep };
    const opjit_codegen *codegen;
    codegen_result result;
    rt_target target;
    ir_func f;

    ck_assert_int_eq(opjit_fe_codegen(outside->core, &codegen, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_rt_target_parse("cpu:x86-64-v3", &target, NULL), OPJIT_OK);
    ck_assert_msg(opjit_ir_parse(struck, sizeof struck - 1, memory, &f, error) == OPJIT_OK, "%s", error->message);
    ck_assert_int_eq(opjit_ir_layout(&f, error), OPJIT_OK);
    ck_assert_int_eq(opjit_ir_pack(&f, error), OPJIT_OK);
    const ir_func *const variant = &f;
    const codegen_request request = { .variants = &variant,
                                      .variant_count = 1,
                                      .target = &target,
                                      .level = OPJIT_LEVEL_QUICK,
                                      .name = "struck",
                                      .allocator = memory,
                                      .verify = true,
                                      .functions = &functions };
    const opjit_status status = codegen->compile(&request, &result, error);
    ck_assert_uint_eq(a.finds, 1);
    ck_assert_uint_eq(a.keeps, status == OPJIT_OK);
    opjit_rt_release(memory, result.entries, result.entry_count * sizeof *result.entries);
    opjit_rt_bytes_free(&result.bytes);
    opjit_ir_free(&f);
    return status;
}

START_TEST(a_crash_is_a_status)
{
    static const struct {
        int signal;
        const char *text;
        opjit_retry retry;
    } rows[] = {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* which handle this one, and exit */
        { SIGSEGV, "ended with status ", OPJIT_RETRY_NEVER },
#else
        { SIGSEGV, "ended by signal 11 (segmentation fault)", OPJIT_RETRY_NEVER },
#endif
        { SIGABRT, "ended by signal 6 (aborted)", OPJIT_RETRY_NEVER },
        { SIGKILL, "ended by signal 9 (killed)", OPJIT_RETRY_LATER },
        { SIGUSR1, "ended by signal 10 (see signal(7))", OPJIT_RETRY_NEVER },
    };
    pid_t pids[MOST_WORKERS];

    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        opjit_error error = { 0 };
        check_one(i);
        const pid_t before = the_worker();
        ck_assert_int_eq(compile_and_strike(rows[i].signal, &error), OPJIT_CODEGEN);
        ck_assert_int_eq(strncmp(error.message, "kernel struck: the worker process that compiled it ended", 56), 0);
        ck_assert_msg(strstr(error.message, rows[i].text) != NULL, "%s", error.message);
        ck_assert_int_eq(error.retry, rows[i].retry);
        ck_assert_uint_eq(list_workers(pids), 0); /* no zombie */
        check_one(i);
        ck_assert_int_ne(the_worker(), before);
    }
    ck_assert_int_eq(compile_and_strike(0, &(opjit_error){ 0 }), OPJIT_OK);
}
END_TEST

START_TEST(an_idle_worker_that_ended_is_replaced)
{
    for (uint32_t i = 0; i < 4; i++) {
        check_one(i);
        const pid_t before = the_worker();
        ck_assert_int_eq(kill(before, i % 2 == 0 ? SIGKILL : SIGSEGV), 0);
        pause_ms(i / 2 * 20);
        check_one(i + 100);
        ck_assert_int_ne(the_worker(), before);
    }
}
END_TEST

START_TEST(a_host_that_ignores_its_children)
{
    opjit_error error = { 0 };

    ck_assert(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    check_one(1);
    ck_assert_int_eq(compile_and_strike(SIGSEGV, &error), OPJIT_CODEGEN);
    ck_assert_msg(strstr(error.message, "the worker process that compiled it ended") != NULL, "%s", error.message);
    check_one(3);
    ck_assert(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
    check_one(4);
}
END_TEST

/* Descriptors and workers stay as many, whatever happens. */
START_TEST(nothing_is_left_open)
{
    pid_t pids[MOST_WORKERS];
    opjit_error error;

    check_one(0);
    const uint32_t open = open_descriptors();
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_int_eq(compile_and_strike(SIGKILL, &error), OPJIT_CODEGEN);
        check_one(i + 10);
    }
    ck_assert_uint_eq(open_descriptors(), open);
    ck_assert_uint_eq(list_workers(pids), 1);
}
END_TEST

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static void *run_job(void *user)
{
    opjit_kernel *kernel = NULL;
    (void)!opjit_job_wait(user, &kernel, NULL);
    opjit_kernel_release(kernel);
    return NULL;
}

typedef struct task {
    void (*run)(void *arg);
    void *arg;
} task;

/* Whoever waits for the job runs it; the executor, when it is done. */
static opjit_status submit_late(void *user, void (*run)(void *arg), void *arg)
{
    *(task *)user = (task){ run, arg };
    return OPJIT_OK;
}

START_TEST(a_worker_that_hangs_is_cancelled)
{
    task late = { NULL, NULL };
    const opjit_async_executor executor = { &late, submit_late };
    opjit_async_desc desc = OPJIT_ASYNC_DESC_INIT;
    opjit_job *job = NULL;
    opjit_error error = { 0 };
    pthread_t thread;

    check_one(1);
    const pid_t before = the_worker();
    ck_assert_int_eq(kill(before, SIGSTOP), 0);
    opjit_graph *const g = make_graph(outside, 5, 9);
    desc.built = g;
    desc.executor = &executor;
    ck_assert_msg(opjit_compile_async(outside, &desc, &job, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(pthread_create(&thread, NULL, run_job, job), 0);
    pause_ms(50);
    opjit_job_cancel(job);
    ck_assert_int_eq(opjit_job_wait_for(job, (uint64_t)WAIT_MS * 1000000, NULL, &error), OPJIT_CANCELLED);
    ck_assert_str_eq(error.message, "the job was cancelled");
    pthread_join(thread, NULL);
    check_one(2);
    ck_assert_int_ne(the_worker(), before);
    late.run(late.arg);
    opjit_job_release(job);
    opjit_graph_destroy(g);
}
END_TEST

/* --- many --------------------------------------------------------------------------------------------------------- */

static void *compile_many(void *user)
{
    const uint32_t thread = (uint32_t)(uintptr_t)user;
    uint32_t wrong = 0;

    for (uint32_t i = 0; i < 2 * (KERNELS - 1); i++) {
        opjit_kernel *far = NULL, *near = NULL;
        const uint32_t which = (i + thread) % (KERNELS - 1), salt = 1 + thread % 2;
        wrong += compile(outside, which, salt, OPJIT_LEVEL_QUICK, NULL, &far, NULL) != OPJIT_OK ||
                 compile(inside, which, salt, OPJIT_LEVEL_QUICK, NULL, &near, NULL) != OPJIT_OK || !same(near, far);
        opjit_kernel_release(far);
        opjit_kernel_release(near);
    }
    return (void *)(uintptr_t)wrong;
}

START_TEST(many_threads_compile)
{
    pthread_t threads[THREADS];
    pid_t pids[MOST_WORKERS];

    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, compile_many, (void *)i), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        void *wrong;
        ck_assert(pthread_join(threads[i], &wrong) == 0 && wrong == NULL);
    }
    const uint32_t count = list_workers(pids);
    ck_assert(count >= 1 && count <= THREADS);
}
END_TEST

/* A child of fork has workers of its own, and leaves its parent's alone. */
START_TEST(children_have_their_own)
{
    int status;

    check_one(1);
    const pid_t ours = the_worker();
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        pid_t pids[MOST_WORKERS];
        opjit_error error;
        const bool none = list_workers(pids) == 0, done = try_one(2, &error) == OPJIT_OK;
        exit(none && done && list_workers(pids) == 1 && pids[0] != ours ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check_one(3);
    ck_assert_int_eq(the_worker(), ours);
}
END_TEST

static bool is_running(pid_t pid)
{
    char path[64], state = 'X';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *const file = fopen(path, "r");
    if (file == NULL)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'X';
    fclose(file);
    return state != 'Z' && state != 'X';
}

/* Killed, so that it can say nothing, with a child of its own that has its descriptors and lives on. */
START_TEST(workers_end_with_their_host)
{
    int pipes[2], status;
    pid_t worker = 0, heir = 0;

    ck_assert_int_eq(pipe(pipes), 0);
    const pid_t host = fork();
    ck_assert_int_ge(host, 0);
    if (host == 0) {
        pid_t pids[MOST_WORKERS] = { 0 };
        opjit_error error;
        if (try_one(1, &error) != OPJIT_OK || list_workers(pids) != 1)
            _exit(1);
        heir = fork();
        if (heir == 0) {
            for (int i = 0; i < 1000; i++)
                pause_ms(10);
            _exit(0);
        }
        if (write(pipes[1], &pids[0], sizeof pids[0]) < 0 || write(pipes[1], &heir, sizeof heir) < 0)
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(read(pipes[0], &worker, sizeof worker), sizeof worker);
    ck_assert_int_eq(read(pipes[0], &heir, sizeof heir), sizeof heir);
    ck_assert_int_eq(waitpid(host, &status, 0), host);
    ck_assert(WIFSIGNALED(status));
    for (int i = 0; i < WAIT_MS / 10 && is_running(worker); i++)
        pause_ms(10);
    ck_assert(!is_running(worker));
    ck_assert(is_running(heir));
    kill(heir, SIGKILL);
    close(pipes[0]);
    close(pipes[1]);
}
END_TEST

/* --- what is missing ---------------------------------------------------------------------------------------------- */

static void copy_file(const char *from, const char *folder, const char *name, mode_t mode)
{
    char path[256], bytes[65536];
    const int in = open(from, O_RDONLY);
    ssize_t size;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    ck_assert(in >= 0 && out >= 0);
    while ((size = read(in, bytes, sizeof bytes)) > 0)
        ck_assert_int_eq(write(out, bytes, (size_t)size), size);
    close(in);
    close(out);
}

static void write_program(const char *folder, const char *text, mode_t mode)
{
    char path[256];

    snprintf(path, sizeof path, "%s/opjit-worker", folder);
    unlink(path);
    const int out = open(path, O_WRONLY | O_CREAT, mode);
    ck_assert_int_eq(write(out, text, strlen(text)), strlen(text));
    ck_assert_int_eq(fchmod(out, mode), 0);
    close(out);
}

static opjit_status try_with(const char *path, uint32_t flags, opjit_error *error)
{
    opjit_context *const context = open_context(OPJIT_CONTEXT_OUT_OF_PROCESS | flags, path, NULL);
    opjit_kernel *kernel = NULL;
    const opjit_status status = compile(context, 0, 3, OPJIT_LEVEL_QUICK, NULL, &kernel, error);

    if (status == OPJIT_OK) {
        opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
        ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
        ck_assert((info.flags & OPJIT_KERNEL_INTERPRETED) != 0);
    }
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    return status;
}

START_TEST(missing_and_foreign_workers)
{
    const char *const library = getenv("OPJIT_CODEGEN");
    char folder[] = "/tmp/opjit-process-XXXXXX", path[256], link[256], client[512], command[64];
    opjit_error error = { 0 };

    ck_assert_int_eq(try_with("/nowhere/libopjit-codegen.so", 0, &error), OPJIT_UNAVAILABLE);
    ck_assert_int_eq(strncmp(error.message, "codegen library: /nowhere/libopjit-codegen-process.so: ", 55), 0);
    ck_assert_int_eq(try_with("/nowhere/libopjit-codegen.so", OPJIT_CONTEXT_ALLOW_INTERPRETER, &error), OPJIT_OK);

    ck_assert_ptr_nonnull(library);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(client, sizeof client, "%.*slibopjit-codegen-process.so", (int)(strrchr(library, '/') + 1 - library),
             library);
    snprintf(path, sizeof path, "%s/libopjit-codegen.so", folder);
    copy_file(client, folder, "libopjit-codegen-process.so", 0755);
    ck_assert_int_eq(try_with(path, 0, &error), OPJIT_UNAVAILABLE);
    ck_assert_msg(strstr(error.message, "no libopjit-codegen.so in ") != NULL, "%s", error.message);
    ck_assert_int_eq(symlink(library, path), 0);
    ck_assert_int_eq(try_with(path, 0, &error), OPJIT_UNAVAILABLE);
    ck_assert_msg(strstr(error.message, "no opjit-worker in ") != NULL, "%s", error.message);
    ck_assert_int_eq(try_with(path, OPJIT_CONTEXT_ALLOW_INTERPRETER, &error), OPJIT_OK);

    write_program(folder, "#!/bin/sh\nexit 3\n", 0644);
    ck_assert_int_eq(try_with(path, 0, &error), OPJIT_UNAVAILABLE);
    ck_assert_msg(strstr(error.message, "can't be started: ") != NULL, "%s", error.message);
    write_program(folder, "#!/bin/sh\necho no worker at all >&2\nexit 3\n", 0755);
    ck_assert_int_eq(try_with(path, 0, &error), OPJIT_UNAVAILABLE);
    ck_assert_msg(strstr(error.message, "ended with status 3: no worker at all") != NULL, "%s", error.message);
    write_program(folder, "#!/bin/sh\nhead -c 100000 /dev/zero >&3\n", 0755);
    ck_assert_int_eq(try_with(path, 0, &error), OPJIT_UNAVAILABLE);
    ck_assert_msg(strstr(error.message, "it is no worker of opjit's") != NULL, "%s", error.message);

    snprintf(link, sizeof link, "%s/libopjit-codegen.so", folder); /* a worker without its library */
    ck_assert_int_eq(unlink(link), 0);
    copy_file("/bin/sh", folder, "libopjit-codegen.so", 0755);
    snprintf(client, sizeof client, "%.*sopjit-worker", (int)(strrchr(library, '/') + 1 - library), library);
    copy_file(client, folder, "opjit-worker", 0755);
    ck_assert_int_eq(try_with(path, 0, &error), OPJIT_UNAVAILABLE);
    ck_assert_msg(strstr(error.message, "codegen library: ") != NULL, "%s", error.message);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* --- suite -------------------------------------------------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("fe.process");
    TCase *tcase = tcase_create("process");
    SRunner *runner;
    int failed;

    if (getenv("OPJIT_CODEGEN") == NULL) {
        printf("skipped: no code generation, or it is linked in\n");
        return 77;
    }
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, code_is_the_same, 0, 2 * KERNELS);
    tcase_add_test(tcase, code_is_the_same_on_threads);
    tcase_add_loop_test(tcase, artifacts_are_the_same, 0, 4);
    tcase_add_test(tcase, plans_are_the_same);
    tcase_add_test(tcase, shared_functions_are_in_the_disk_cache);
    tcase_add_test(tcase, a_crash_is_a_status);
    tcase_add_test(tcase, an_idle_worker_that_ended_is_replaced);
    tcase_add_test(tcase, a_host_that_ignores_its_children);
    tcase_add_test(tcase, nothing_is_left_open);
    tcase_add_test(tcase, a_worker_that_hangs_is_cancelled);
    tcase_add_test(tcase, many_threads_compile);
    tcase_add_test(tcase, children_have_their_own);
    tcase_add_test(tcase, workers_end_with_their_host);
    tcase_add_test(tcase, missing_and_foreign_workers);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
