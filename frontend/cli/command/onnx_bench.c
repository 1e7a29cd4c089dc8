/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_bench.c - `opjit bench MODEL.onnx`: how long it takes to read, to compile and to run, and where the time
 * goes. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "frontend/cli/command/onnx.h"
#include "frontend/cli/command/steps.h"
#include "frontend/cli/measure/measure.h"
#include "frontend/cli/text/table.h"

enum { CALLS_LEAST = 11, CALLS_MOST = 1001, TIMED_CALLS = 12 };
static const double CALLS_MS = 1000; /* in all, unless that is less than CALLS_LEAST calls */

typedef struct timing {
    double first_ms, run_ms; /* the first call; the median of the others */
    uint32_t calls;
    opjit_step_time *steps; /* of each step its shortest run in some calls */
    uint32_t step_count;
    double peak_bytes;
    const DML_GRAPH_DESC *desc; /* for the steps' nodes */
} timing;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What the model was read with is computed anew, as it would be for other inputs. */
static opjit_status call_model(cli_onnx *m, const opjit_call *call)
{
    if (opjit_model_computed_count(m->model) != 0)
        TRY(opjit_model_compute(m->model, &m->error));
    return opjit_kernel_call(m->kernel, call, &m->error);
}

static uint64_t length_ns(const opjit_step_time *s)
{
    return s->end_ns - s->begin_ns;
}

/* Every call has the same steps.  What else the machine does makes some of them longer, so one call says little. */
static opjit_status time_steps(cli_onnx *m, const opjit_call *call, timing *out)
{
    uint32_t count = 0;
    TRY(opjit_kernel_call_timed(m->kernel, call, NULL, 0, &count, &m->error));
    out->steps = ARENA_ARRAY(&m->arena, opjit_step_time, (size_t)count + 1);
    opjit_step_time *const now = ARENA_ARRAY(&m->arena, opjit_step_time, (size_t)count + 1);
    if (out->steps == NULL || now == NULL)
        return opjit_rt_no_memory(&m->error);
    const double begin = measure_now_ns();
    for (int k = 0; k < TIMED_CALLS && (k < 4 || (measure_now_ns() - begin) / 1e6 < CALLS_MS); k++) {
        TRY(opjit_kernel_call_timed(m->kernel, call, now, count, &out->step_count, &m->error));
        for (uint32_t i = 0; i < count; i++)
            if (k == 0 || length_ns(&now[i]) < length_ns(&out->steps[i]))
                out->steps[i] = now[i];
    }
    return OPJIT_OK;
}

static opjit_status time_calls(cli_onnx *m, const opjit_executor *executor, bool quick, timing *out)
{
    opjit_call call = opjit_cli_onnx_call(m);
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    double *const samples = ARENA_ARRAY(&m->arena, double, CALLS_MOST);
    call.executor = executor;
    TRY(opjit_kernel_get_info(m->kernel, &info, &m->error));
    /* One workspace for all calls, as a program has it that calls often. */
    const uint32_t workers = executor == NULL ? 1 : executor->workers;
    const size_t bytes = (size_t)((info.workspace_bytes + (workers - 1) * info.meta->scratch_size + 63) / 64 * 64);
    void *const workspace = bytes == 0 ? NULL : aligned_alloc(64, bytes);
    if (samples == NULL || (bytes != 0 && workspace == NULL))
        return opjit_rt_no_memory(&m->error);
    call.workspace = (opjit_binding){ workspace, bytes };
    opjit_status status = OPJIT_OK;
    double begin = measure_now_ns(), total = 0;
    status = call_model(m, &call);
    out->first_ms = (measure_now_ns() - begin) / 1e6;
    const double most = quick ? CALLS_MS / 10 : CALLS_MS;
    while (status == OPJIT_OK && out->calls < CALLS_MOST && (out->calls < CALLS_LEAST || total < most)) {
        begin = measure_now_ns();
        status = call_model(m, &call);
        samples[out->calls] = (measure_now_ns() - begin) / 1e6;
        total += samples[out->calls++];
    }
    qsort(samples, out->calls, sizeof *samples, by_value);
    out->run_ms = samples[out->calls / 2];
    if (status == OPJIT_OK)
        status = time_steps(m, &call, out);
    free(workspace);
    return status;
}

/* Of this program: what getrusage says is at least what the process had that started it. */
static double peak_bytes(void)
{
    struct rusage usage;
    char line[128];
    unsigned long long kib = 0;
    FILE *const status = fopen("/proc/self/status", "r");
    while (status != NULL && kib == 0 && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmHWM: %llu kB", &kib) != 1)
            kib = 0;
    if (status != NULL)
        fclose(status);
    return kib != 0 ? (double)kib * 1024 : getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024 : 0;
}

static void put_nodes(const cli_onnx *m, const timing *t, uint32_t step)
{
    const cli_step nodes = opjit_cli_step(m->plan, t->desc, step);
    printf(", \"nodes\": %" PRIu32, nodes.count);
    if (nodes.count == 0)
        return;
    printf(", \"first\": ");
    opjit_cli_put_string(stdout, nodes.first);
    printf(", \"last\": ");
    opjit_cli_put_string(stdout, nodes.last);
}

static void put_json(const cli_onnx *m, const timing *t)
{
    printf("{ \"model\": { ");
    for (uint32_t i = 0; i < m->range_count; i++) {
        printf(i == 0 ? "\"dims\": { " : ", ");
        opjit_cli_put_string(stdout, m->ranges[i].name);
        printf(": %" PRIu64 "%s", m->dims[i], i + 1 == m->range_count ? " }, " : "");
    }
    printf("\"read_ms\": %.3f, \"compile_ms\": %.3f, \"first_ms\": %.3f, \"run_ms\": %.4f, "
           "\"calls\": %" PRIu32 ", \"computed\": %" PRIu32 ", \"peak_bytes\": %.0f,\n  \"kernels\": [",
           m->read_ms, m->compile_ms, m->read_ms + m->compile_ms + t->first_ms, t->run_ms, t->calls,
           opjit_model_computed_count(m->model), t->peak_bytes);
    for (uint32_t i = 0; i < t->step_count; i++) {
        printf("%s\n    { \"step\": %" PRIu32 ", \"extent\": %" PRIu64 ", \"us\": %.3f", i == 0 ? "" : ",",
               t->steps[i].step, t->steps[i].extent, (double)length_ns(&t->steps[i]) / 1e3);
        if (m->plan != NULL)
            put_nodes(m, t, t->steps[i].step);
        printf(" }");
    }
    printf(" ] } }\n");
}

static int by_time(const void *a, const void *b)
{
    const opjit_step_time *const x = a, *const y = b;
    const uint64_t p = length_ns(x), q = length_ns(y);
    return (p < q) - (p > q);
}

static void put_text(const cli_onnx *m, timing *t)
{
    for (uint32_t i = 0; i < m->range_count; i++)
        printf("dimension %s: %" PRIu64 " to %" PRIu64 ", %" PRIu64 " here\n", m->ranges[i].name, m->ranges[i].lo,
               m->ranges[i].hi, m->dims[i]);
    printf("read %.2f ms, compile %.2f ms, first result %.2f ms after that\n", m->read_ms, m->compile_ms, t->first_ms);
    printf("run %.3f ms, the median of %" PRIu32 " calls; peak memory %.1f MiB\n", t->run_ms, t->calls,
           t->peak_bytes / 1048576);
    if (opjit_model_computed_count(m->model) != 0)
        printf("%" PRIu32 " values that the model has to know are computed in each call, by kernels of their own\n",
               opjit_model_computed_count(m->model));
    qsort(t->steps, t->step_count, sizeof *t->steps, by_time);
    printf("%" PRIu32 " steps, the longest:\n", t->step_count);
    for (uint32_t i = 0; i < t->step_count && i < 12; i++)
        printf("  step %-4" PRIu32 " %10.1f us, %" PRIu64 " iterations  %s\n", t->steps[i].step,
               (double)length_ns(&t->steps[i]) / 1e3, t->steps[i].extent,
               m->plan == NULL ? "" : opjit_cli_step_text(m->plan, t->desc, t->steps[i].step).text);
}

/* After all is measured: a plan takes the time of the passes. */
static opjit_status find_nodes(const cli_options *o, cli_onnx *m, timing *t)
{
    const opjit_compile_options compile = opjit_cli_compile_options(o);
    t->peak_bytes = peak_bytes();
    if (m->range_count != 0)
        return OPJIT_OK; /* a plan is of one size, whose steps may be others */
    TRY(opjit_graph_get_desc(opjit_model_graph(m->model), &t->desc, &m->error));
    return opjit_plan_graph(m->context, t->desc, &compile, &m->plan, &m->error);
}

int opjit_cli_bench_onnx(const cli_options *o)
{
    cli_onnx m;
    timing t = { 0 };
    opjit_pool *pool = NULL;
    cli_options without_disk = *o; /* unless it is named, a disk cache would be measured in place of compiling */
    without_disk.no_cache = o->no_cache || !o->cache_named;
    opjit_status status = opjit_cli_onnx_open(&without_disk, o->arguments[0], NULL, true, &m);
    if (status == OPJIT_OK)
        status = opjit_cli_onnx_prepare(&without_disk, &m, true);
    if (status == OPJIT_OK && m.is_empty)
        status = opjit_rt_error_set(&m.error, OPJIT_UNSUPPORTED, "no output has elements: there is nothing to measure");
    if (status == OPJIT_OK)
        status = opjit_cli_pool(o, &pool, &m.error);
    if (status == OPJIT_OK)
        status = time_calls(&m, opjit_pool_executor(pool), o->quick, &t);
    if (status == OPJIT_OK)
        status = find_nodes(o, &m, &t);
    if (status != OPJIT_OK)
        opjit_cli_complain(m.path, NULL, &m.error);
    else if (o->json)
        put_json(&m, &t);
    else
        put_text(&m, &t);
    opjit_pool_destroy(pool);
    opjit_cli_onnx_close(&m);
    return status == OPJIT_OK ? EXIT_DONE : EXIT_FAILED;
}
