/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - `opjit bench`: compile time by phase, cache hit, call, and bytes per second beside memset and memcpy
 * of as many bytes in the same run.  With a model its dispatchables, else the generators: operator x type x size x
 * alignment x threads.  Before them, what the process took to its first result, and its memory.  Whether the numbers
 * are good is not said here: tests/bench has the yardstick and the bars. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/command/onnx.h"
#include "frontend/cli/measure/baseline.h"
#include "frontend/cli/measure/measure.h"
#include "frontend/cli/measure/subject.h"
#include "frontend/cli/text/table.h"

#define MIB (UINT64_C(1) << 20)
#define LARGEST (64 * MIB)
#define COMPILES 5u /* the median one is shown */
#define PAIRS 9u
#define SAMPLE_US 200.0

static const table_column columns[] = {
    { "case", TABLE_TEXT, 20 },  { "type", TABLE_TEXT, 4 },      { "bytes", TABLE_BYTES, 9 },
    { "align", TABLE_COUNT, 5 }, { "threads", TABLE_COUNT, 7 },  { "compile", TABLE_TIME, 9 },
    { "lower", TABLE_TIME, 8 },  { "passes", TABLE_TIME, 8 },    { "codegen", TABLE_TIME, 9 },
    { "load", TABLE_TIME, 8 },   { "hit", TABLE_TIME, 8 },       { "call", TABLE_TIME, 8 },
    { "GB/s", TABLE_RATE, 6 },   { "x memset", TABLE_RATIO, 8 }, { "x zero", TABLE_RATIO, 7 },
    { "x nt", TABLE_RATIO, 7 },  { "x memcpy", TABLE_RATIO, 8 },
};

enum { BYTES_COLUMN = 2, CALL_COLUMN = 11 };

typedef struct bench {
    const cli_options *options;
    opjit_context *context;
    opjit_compile_options compile; /* as asked for; flags are changed */
    opjit_pool *pool;              /* NULL: one thread */
    table table;
    char *in, *out; /* `bytes` each */
    uint64_t bytes;
    double resident_start;          /* bytes, before the first kernel */
    opjit_error error;
} bench;

/* --- one row ------------------------------------------------------------------------------------------------------ */
typedef struct row {
    const char *name;
    DML_TENSOR_DATA_TYPE type;
    double align, threads;
    uint64_t written, moved; /* bytes of the outputs; with those of the inputs, for GB/s */
    opjit_operator *op;      /* NULL: the graph */
    const DML_GRAPH_DESC *graph;
    opjit_kernel *kernel; /* NULL: never called */
    const opjit_call *call;
    double compile_ns, lower_ns, passes_ns, codegen_ns, load_ns, hit_ns;
    bench *bench;
    opjit_status status;
} row;

static int by_time(const void *a, const void *b)
{
    const double x = ((const opjit_kernel_info *)a)->compile_ms, y = ((const opjit_kernel_info *)b)->compile_ms;

    return x < y ? -1 : x > y;
}

static opjit_status compile(const row *r, opjit_kernel **out)
{
    bench *const b = r->bench;

    return r->op == NULL ? opjit_compile_graph(b->context, r->graph, &b->compile, out, &b->error)
                         : opjit_compile_operator(b->context, r->op, &b->compile, out, &b->error);
}

/* Compiles it again and again, past the caches. */
static opjit_status time_compiles(bench *b, row *r)
{
    opjit_kernel_info infos[COMPILES];

    b->compile.flags |= OPJIT_COMPILE_NO_CACHE;
    for (unsigned i = 0; i < COMPILES; i++) {
        opjit_kernel *kernel;
        double start = measure_cpu_ns();

        infos[i] = (opjit_kernel_info)OPJIT_KERNEL_INFO_INIT;
        TRY(compile(r, &kernel));
        start = measure_cpu_ns() - start;
        r->status = opjit_kernel_get_info(kernel, &infos[i], &b->error);
        infos[i].compile_ms = start / 1e6;
        opjit_kernel_release(kernel);
        TRY(r->status);
    }
    qsort(infos, COMPILES, sizeof *infos, by_time);
    r->compile_ns = infos[COMPILES / 2].compile_ms * 1e6;
    r->lower_ns = infos[COMPILES / 2].lower_ms * 1e6;
    r->passes_ns = infos[COMPILES / 2].passes_ms * 1e6;
    r->codegen_ns = infos[COMPILES / 2].codegen_ms * 1e6;
    r->load_ns = infos[COMPILES / 2].load_ms * 1e6;
    return OPJIT_OK;
}

static void hit(void *arg)
{
    row *const r = arg;
    opjit_kernel *kernel;
    const opjit_status status = compile(r, &kernel);

    if (status == OPJIT_OK)
        opjit_kernel_release(kernel);
    else
        r->status = status;
}

static void call(void *arg)
{
    row *const r = arg;

    if (r->status == OPJIT_OK)
        r->status = opjit_kernel_call(r->kernel, r->call, &r->bench->error);
}

static void run_memset(void *arg)
{
    const row *const r = arg;

    memset(r->bench->out, 0x5a, r->written);
}

static void run_zero(void *arg)
{
    const row *const r = arg;

    memset(r->bench->out, 0, r->written);
}

static void run_nt(void *arg)
{
    const row *const r = arg;

    baseline_get()->fill_nt(r->bench->out, 0x5a, (r->written + 63) / 64 * 64);
}

static void run_memcpy(void *arg)
{
    const row *const r = arg;

    memcpy(r->bench->out, r->bench->in, r->written);
}

/* Measures and prints it.  The row's kernel writes wherever its call says; memset and the others write bench.out. */
static opjit_status run_row(bench *b, row *r)
{
    static const measure_fn others[] = { run_memset, run_zero, run_nt, run_memcpy };
    const char *const name = opjit_data_type_name(r->type);
    double call_ns = NAN, ratios[] = { NAN, NAN, NAN, NAN };
    measure_pair pair;
    char type[16];

    r->bench = b;
    TRY(time_compiles(b, r));
    b->compile.flags &= ~OPJIT_COMPILE_NO_CACHE;
    measure_run(hit, r, hit, r, PAIRS, SAMPLE_US, &pair);
    r->hit_ns = pair.a_ns;
    TRY(r->status);
    for (int i = 0; i < 4 && r->kernel != NULL; i++) {
        (r->call->executor != NULL ? measure_run_wall : measure_run)(call, r, others[i], r, PAIRS, SAMPLE_US, &pair);
        call_ns = i == 0 ? pair.a_ns : call_ns;
        ratios[i] = pair.ratio;
        TRY(r->status);
    }
    /* "f32" of "FLOAT32" */
    snprintf(type, sizeof type, "%c%s", name[0] | 0x20, name + strcspn(name, "0123456789"));
    const table_cell cells[] = {
        { r->name, 0 },
        { type, 0 },
        { NULL, (double)r->moved },
        { NULL, r->align },
        { NULL, r->threads },
        { NULL, r->compile_ns },
        { NULL, r->lower_ns },
        { NULL, r->passes_ns },
        { NULL, r->codegen_ns },
        { NULL, r->load_ns },
        { NULL, r->hit_ns },
        { NULL, call_ns },
        { NULL, (double)r->moved / call_ns },
        { NULL, ratios[0] },
        { NULL, ratios[1] },
        { NULL, ratios[2] },
        { NULL, ratios[3] },
    };
    return opjit_cli_table_row(&b->table, cells) ? OPJIT_OK : opjit_cli_no_output(&b->error);
}

static bool get_buffers(bench *b, uint64_t bytes)
{
    b->bytes = bytes;
    b->in = measure_buffer(bytes);
    b->out = measure_buffer(bytes);
    return b->in != NULL && b->out != NULL;
}

static void begin(bench *b, const char *name)
{
    opjit_cli_table_begin(&b->table, stdout, b->options->json, name, opjit_context_target(b->context), columns,
                          sizeof columns / sizeof *columns);
}

/* Rows of the process itself: what it took to its first result, or to all kernels of a model, and its memory then. */
static void put_process(bench *b, const char *what)
{
    const double ns = measure_process_ns(), resident = measure_resident();
    const struct { const char *name; double bytes, ns; } rows[] = {
        { what, NAN, ns }, { "resident at start", b->resident_start, NAN }, { "resident with kernels", resident, NAN }
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        table_cell cells[sizeof columns / sizeof *columns] = { { rows[i].name, 0 }, { "", 0 } };

        for (size_t k = 2; k < sizeof cells / sizeof *cells; k++)
            cells[k].number = k == BYTES_COLUMN ? rows[i].bytes : k == CALL_COLUMN ? rows[i].ns : NAN;
        opjit_cli_table_row(&b->table, cells);
    }
}

/* --- the generators ----------------------------------------------------------------------------------------------- */
enum { GENERATORS = 4 };

static const char *describe(subject_desc *d, int generator, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns_)
{
    switch (generator) {
    case 0: subject_constant(d, type, rows, columns_, 3); return "FILL_VALUE_CONSTANT";
    case 1: subject_sequence(d, type, rows, columns_, 3, 2); return "FILL_VALUE_SEQUENCE";
    case 2: subject_eye(d, type, rows, columns_, 1, 1); return "DIAGONAL_MATRIX";
    default: subject_band(d, type, rows, columns_, 1, INT32_MAX, 0); return "DIAGONAL_MATRIX1";
    }
}

/* One operator, type and size: aligned and not, on one thread and on as many as were asked for. */
static opjit_status run_generator(bench *b, int generator, DML_TENSOR_DATA_TYPE type, uint64_t bytes)
{
    const uint32_t element = opjit_data_type_size(type);
    const uint32_t threads = b->options->threads;
    uint32_t height, width;
    subject_desc d;
    subject s;
    opjit_status status = OPJIT_OK;
    const char *name;

    subject_shape(bytes, element, &height, &width);
    name = describe(&d, generator, type, height, width);
    if (!subject_make(b->context, &d, b->compile.level, &b->compile, &s))
        return opjit_rt_error_set(&b->error, OPJIT_INTERNAL, "%s %s can't be compiled", name,
                                  opjit_data_type_name(type));
    for (unsigned i = 0; i < 4 && status == OPJIT_OK; i++) {
        const uint64_t offset = (i & 1) != 0 ? element : 0;
        const bool many = (i & 2) != 0;
        row r = { .name = name,
                  .type = type,
                  .align = (i & 1) != 0 ? element : 64,
                  .threads = many ? threads : 1,
                  .written = bytes,
                  .moved = generator == 3 ? bytes + bytes / 2 : bytes,
                  .op = s.op,
                  .kernel = s.kernel,
                  .call = &s.call };

        if ((many && threads == 1) || ((i & 1) != 0 && b->options->quick))
            continue;
        subject_bind(&s, generator == 3 ? b->in + offset : NULL, b->out + offset, bytes,
                     many ? opjit_pool_executor(b->pool) : NULL);
        status = run_row(b, &r);
    }
    subject_free(&s);
    return status;
}

/* The first result of this process: a small kernel, compiled and called. */
static opjit_status run_first(bench *b)
{
    _Alignas(64) float out[16];
    subject_desc d;
    subject s;

    subject_eye(&d, DML_TENSOR_DATA_TYPE_FLOAT32, 4, 4, 0, 1);
    if (!subject_make(b->context, &d, b->compile.level, &b->compile, &s))
        return opjit_rt_error_set(&b->error, OPJIT_INTERNAL, "the first kernel can't be compiled");
    subject_bind(&s, NULL, out, sizeof out, NULL);
    subject_run(&s);
    begin(b, "bench");
    put_process(b, "first result");
    subject_free(&s);
    return OPJIT_OK;
}

static opjit_status run_generators(bench *b)
{
    static const uint64_t sizes[] = { 16384, MIB, 8 * MIB, LARGEST };
    const unsigned types = b->options->quick ? 2 : SUBJECT_TYPES, last = b->options->quick ? 2 : 4;

    TRY(run_first(b));
    if (!get_buffers(b, LARGEST + CLI_PAGE))
        return opjit_rt_no_memory(&b->error);
    for (int generator = 0; generator < GENERATORS; generator++) {
        for (unsigned t = 0; t < types; t++) {
            for (unsigned i = 0; i < last; i++)
                TRY(run_generator(b, generator, subject_types[t], sizes[i]));
        }
    }
    return OPJIT_OK;
}

/* --- a model ------------------------------------------------------------------------------------------------------ */
/* The first command that runs it; NULL: none does. */
static const cli_command *find_dispatch(const cli_model *m, const cli_dispatchable *d)
{
    for (uint32_t i = 0; i < m->command_count; i++) {
        if (m->commands[i].kind == CLI_DISPATCH && m->commands[i].dispatchable == d)
            return &m->commands[i];
    }
    return NULL;
}

static opjit_status run_dispatchable(bench *b, const cli_model *m, const cli_dispatchable *d)
{
    const cli_command *const c = find_dispatch(m, d);
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_call bound = OPJIT_CALL_INIT;
    row r = { .name = d->json->key, .align = NAN, .threads = b->options->threads, .op = d->own.op, .call = &bound };

    r.graph = d->graph == NULL ? NULL : &d->graph->desc;
    TRY(opjit_kernel_get_info(d->kernel, &info, &b->error));
    r.type = d->ports[d->input_count].tensor->dtype;
    r.written = info.bytes_written;
    r.moved = info.bytes_written + info.bytes_read;
    if (c != NULL) {
        bound.bindings = c->bindings;
        bound.binding_count = c->binding_count;
        bound.executor = opjit_pool_executor(b->pool);
        r.kernel = d->kernel;
    }
    return run_row(b, &r);
}

/* Reads it and compiles it; what fails is in the model's report. */
static opjit_status prepare(bench *b, cli_model *m)
{
    TRY(opjit_cli_model_load(m));
    TRY(opjit_cli_read_resources(m));
    TRY(opjit_cli_read_dispatchables(m));
    TRY(opjit_cli_read_commands(m));
    return opjit_cli_model_compile(m, &b->compile, NULL, NULL);
}

static opjit_status run_model(bench *b, cli_model *m)
{
    uint64_t most = 1;

    for (uint32_t i = 0; i < m->dispatchable_count; i++) {
        opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;

        TRY(opjit_kernel_get_info(m->dispatchables[i].kernel, &info, &b->error));
        most = info.bytes_written > most ? info.bytes_written : most;
    }
    begin(b, m->path);
    put_process(b, "all kernels");
    if (!get_buffers(b, most + CLI_PAGE))
        return opjit_rt_no_memory(&b->error);
    for (uint32_t i = 0; i < m->dispatchable_count; i++)
        TRY(run_dispatchable(b, m, &m->dispatchables[i]));
    return OPJIT_OK;
}

/* --- the command -------------------------------------------------------------------------------------------------- */
static int finish(bench *b, opjit_status status)
{
    if (b->table.out != NULL && !opjit_cli_table_end(&b->table) && status == OPJIT_OK)
        status = opjit_cli_no_output(&b->error);
    measure_buffer_free(b->in, b->bytes);
    measure_buffer_free(b->out, b->bytes);
    return status == OPJIT_OK ? EXIT_DONE : opjit_cli_complain(NULL, NULL, &b->error);
}

int opjit_cli_bench(const cli_options *options)
{
    if (options->argument_count != 0 && opjit_cli_is_onnx(options->arguments[0]))
        return opjit_cli_bench_onnx(options);
    cli_options without_disk = *options; /* a disk cache would be measured in place of compiling */
    bench b = { .options = options,
                .compile = opjit_cli_compile_options(options),
                .resident_start = measure_resident() };
    int result;

    without_disk.no_cache = true;
    if (opjit_cli_context(&without_disk, &b.context, &b.error) != OPJIT_OK ||
        opjit_cli_pool(options, &b.pool, &b.error) != OPJIT_OK) {
        opjit_context_destroy(b.context);
        return opjit_cli_complain(NULL, NULL, &b.error);
    }
    if (options->argument_count == 0) {
        result = finish(&b, run_generators(&b));
    } else {
        cli_model m;

        opjit_cli_model_init(&m, options->arguments[0], b.context);
        m.outside = options->allow_outside;
        if (prepare(&b, &m) != OPJIT_OK)
            result = opjit_cli_complain(m.path, m.report.place, &m.report.error);
        else
            result = finish(&b, run_model(&b, &m));
        opjit_cli_model_free(&m);
    }
    opjit_pool_destroy(b.pool);
    opjit_context_destroy(b.context);
    return result;
}
