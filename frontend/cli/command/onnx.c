/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.c - .onnx models on the command line. */
#define _POSIX_C_SOURCE 200809L

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/reflect.h>

#include "frontend/cli/command/onnx.h"
#include "frontend/cli/files/files.h"
#include "frontend/cli/measure/measure.h"

#define CONSTANT_ELEMENTS 64u /* at most, of an input that may become a constant */
#define ALIGNMENT 64u         /* bytes, of what a kernel reads and writes */

bool opjit_cli_is_onnx(const char *path)
{
    const size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".onnx") == 0;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* The name before the first '='; NULL: no memory. */
static const char *name_of(cli_onnx *m, const char *text, const char **value)
{
    const char *const sign = strchr(text, '=');
    *value = sign + 1;
    return opjit_rt_arena_string(&m->arena, text, (size_t)(sign - text));
}

/* A number, and what follows it. */
static opjit_status read_size(cli_onnx *m, const char *option, const char **text, uint64_t *out)
{
    char *end;
    const bool digits = **text >= '0' && **text <= '9';
    *out = digits ? strtoull(*text, &end, 10) : 0;
    if (!digits || *out > UINT32_MAX)
        return opjit_rt_error_set(&m->error, OPJIT_INVALID_ARGUMENT, "%s: \"%.40s\" is no size from 0 to 2^32 - 1",
                                  option, *text);
    *text = end;
    return OPJIT_OK;
}

/* A range of multiples: the dimension "height/32", of sizes that are so many times 32. */
static opjit_status divide_range(cli_onnx *m, uint64_t step, opjit_dim *range)
{
    uint64_t *const sizes[] = { &range->lo, &range->hi, &range->typical };
    rt_bytes text;
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (step == 0 || *sizes[i] % step != 0)
            return opjit_rt_error_set(&m->error, OPJIT_INVALID_ARGUMENT, "--dim %.40s: %llu is no multiple of %llu",
                                      range->name, (unsigned long long)*sizes[i], (unsigned long long)step);
        *sizes[i] /= step;
    }
    opjit_rt_bytes_init(&text, &opjit_rt_default_allocator);
    opjit_rt_bytes_printf(&text, "%s/%llu", range->name, (unsigned long long)step);
    range->name = text.failed ? NULL : opjit_rt_arena_string(&m->arena, (const char *)text.data, text.size);
    opjit_rt_bytes_free(&text);
    return range->name == NULL ? opjit_rt_no_memory(&m->error) : OPJIT_OK;
}

/* "1..4096:512": the least, the largest and a typical size; without the last one the middle.  "32..640:320/32": the
 * multiples of 32 among them.  text: behind the least. */
static opjit_status read_range(cli_onnx *m, const char *name, uint64_t lo, const char *text)
{
    opjit_dim range = { .name = name, .lo = lo };
    uint64_t step = 1;
    text += 2;
    TRY(read_size(m, "--dim", &text, &range.hi));
    const char *const behind = strchr(text, '/');
    if (behind != NULL) {
        const char *number = behind + 1;
        TRY(read_size(m, "--dim", &number, &step));
        if (*number != '\0')
            return opjit_rt_error_set(&m->error, OPJIT_INVALID_ARGUMENT, "--dim: \"%.40s\" behind the step", number);
    }
    const uint64_t middle = step == 0 ? 0 : (lo + range.hi) / 2 / step * step;
    range.typical = middle == 0 ? step : middle;
    if (*text == ':') {
        text++;
        TRY(read_size(m, "--dim", &text, &range.typical));
    }
    if (*text != '\0' && text != behind)
        return opjit_rt_error_set(&m->error, OPJIT_INVALID_ARGUMENT, "--dim: \"%.40s\" behind the range", text);
    if (m->range_count == OPJIT_MAX_DIMS)
        return opjit_rt_error_set(&m->error, OPJIT_LIMIT, "--dim: more than %u ranges", OPJIT_MAX_DIMS);
    if (behind != NULL)
        TRY(divide_range(m, step, &range));
    m->ranges[m->range_count++] = range;
    return OPJIT_OK;
}

/* Sizes, and behind them the typical ones of ranges, which dim_count doesn't count. */
static opjit_status read_dims(const cli_options *o, cli_onnx *m, opjit_model_options *out)
{
    opjit_model_dim *const dims = ARENA_ARRAY(&m->arena, opjit_model_dim, (size_t)o->dim_count + 1);
    if (dims == NULL)
        return opjit_rt_no_memory(&m->error);
    for (uint32_t i = 0; i < o->dim_count; i++) {
        const char *value;
        uint64_t size;
        const char *const name = name_of(m, o->dims[i], &value);
        if (name == NULL)
            return opjit_rt_no_memory(&m->error);
        if (*value < '0' || *value > '9' || strpbrk(value, "+-*") != NULL) { /* "past + 1" */
            const char *const whole = opjit_rt_arena_string(&m->arena, o->dims[i], strlen(o->dims[i]));
            dims[out->dim_count++] = (opjit_model_dim){ whole, 0 };
            if (whole == NULL)
                return opjit_rt_no_memory(&m->error);
            continue;
        }
        TRY(read_size(m, "--dim", &value, &size));
        if (strncmp(value, "..", 2) == 0)
            TRY(read_range(m, name, size, value));
        else if (*value != '\0')
            return opjit_rt_error_set(&m->error, OPJIT_INVALID_ARGUMENT, "--dim: \"%.40s\" behind the size", value);
        else
            dims[out->dim_count++] = (opjit_model_dim){ name, size };
    }
    for (uint32_t i = 0; i < m->range_count; i++)
        dims[out->dim_count + i] = (opjit_model_dim){ m->ranges[i].name, m->ranges[i].typical };
    out->dims = dims;
    return OPJIT_OK;
}

static opjit_status read_shape(cli_onnx *m, const char *text, opjit_model_input *out)
{
    uint64_t *const sizes = ARENA_ARRAY(&m->arena, uint64_t, 8);
    out->name = name_of(m, text, &text);
    if (sizes == NULL || out->name == NULL)
        return opjit_rt_no_memory(&m->error);
    out->sizes = sizes;
    while (*text != '\0') {
        if (out->rank == 8)
            return opjit_rt_error_set(&m->error, OPJIT_LIMIT, "--shape %.40s: more than 8 sizes", out->name);
        TRY(read_size(m, "--shape", &text, &sizes[out->rank++]));
        if (*text == ',' && text[1] != '\0')
            text++;
        else if (*text != '\0')
            return opjit_rt_error_set(&m->error, OPJIT_INVALID_ARGUMENT, "--shape %.40s: \"%.40s\" between sizes",
                                      out->name, text);
    }
    return OPJIT_OK;
}

static bool is_integer(DML_TENSOR_DATA_TYPE dtype)
{
    return dtype != DML_TENSOR_DATA_TYPE_FLOAT16 && dtype != DML_TENSOR_DATA_TYPE_FLOAT32 &&
           dtype != DML_TENSOR_DATA_TYPE_FLOAT64;
}

static opjit_status read_file(cli_onnx *m, const char *text)
{
    const char *path;
    cli_onnx_file *const f = &m->files[m->file_count];
    f->name = name_of(m, text, &path);
    if (f->name == NULL)
        return opjit_rt_no_memory(&m->error);
    m->file_count++;
    opjit_status status = opjit_cli_map_file(path, FILES_MAX_DATA, &f->bytes, &m->error);
    if (status == OPJIT_OK)
        status = opjit_cli_npy_read(f->bytes.data, f->bytes.size, &f->array, &m->error);
    if (status == OPJIT_OK && f->array.rank > 8)
        status = opjit_rt_error_set(&m->error, OPJIT_LIMIT, "more than 8 dimensions");
    if (status != OPJIT_OK) {
        opjit_rt_error_prefix(&m->error, "--input %.60s: %.200s", f->name, path);
        return status;
    }
    f->elements = f->bytes.data + f->array.data_offset;
    f->size = f->bytes.size - f->array.data_offset;
    if (!opjit_cli_npy_is_plain(&f->array)) {
        uint8_t *const copy = opjit_rt_arena_reserve(&m->arena, (size_t)f->size);
        if (copy == NULL)
            return opjit_rt_no_memory(&m->error);
        opjit_cli_npy_copy(&f->array, f->bytes.data, copy);
        f->elements = copy;
    }
    return OPJIT_OK;
}

/* The elements that a model is told of its inputs' files, as far as they are few: integers of at most one dimension,
 * which are sizes, rates and switches; all integers; floats, too.  Or those numbers, and all else as what one call
 * alone brings. */
typedef enum told { TOLD_NUMBERS, TOLD_INTEGERS, TOLD_ALL, TOLD_CALL } told;

static told least_told(const npy_array *a)
{
    return !is_integer(a->dtype) ? TOLD_ALL : a->rank > 1 ? TOLD_INTEGERS : TOLD_NUMBERS;
}

/* What the model is told of a file: its sizes, and perhaps its elements. */
static opjit_status describe(cli_onnx *m, const cli_onnx_file *f, told elements, opjit_model_input *out)
{
    const bool is_few = f->array.elements <= CONSTANT_ELEMENTS;
    *out = (opjit_model_input){ f->name, f->array.shape, NULL, 0, f->array.rank, f->array.dtype, 0, 0 };
    if (elements == TOLD_CALL && !(is_few && least_told(&f->array) == TOLD_NUMBERS)) {
        out->flags = OPJIT_MODEL_INPUT_OF_CALL;
        out->value = f->elements;
        out->bytes = f->size;
    } else if (elements >= least_told(&f->array) && is_few) {
        out->bytes = f->size;
        out->value = opjit_rt_arena_copy(&m->arena, f->elements, f->size, 1);
        if (out->value == NULL)
            return opjit_rt_no_memory(&m->error);
    }
    return OPJIT_OK;
}

/* How sizes are given here, behind a message that asks for them. */
static opjit_status add_hint(cli_onnx *m)
{
    char text[OPJIT_ERROR_MESSAGE_SIZE];
    const opjit_status status = m->error.status;
    if (strcmp(m->error.op, "input") != 0 || strcmp(m->error.value, "unknown") != 0)
        return status;
    snprintf(text, sizeof text, "%s", m->error.message);
    return opjit_rt_error_set(&m->error, status, "%s, by --dim NAME=N or --shape INPUT=A,B,...", text);
}

/* Elements become constants of the kernel: those of more dimensions, and floats, such as scales of Resize, are told
 * only to a model that can't do without. */
static opjit_status open_model(cli_onnx *m, const opjit_model_options *options, opjit_model_input *inputs)
{
    opjit_status status = OPJIT_UNSUPPORTED;
    for (told elements = TOLD_NUMBERS; elements <= TOLD_ALL && status == OPJIT_UNSUPPORTED; elements++) {
        for (uint32_t i = 0; i < m->file_count; i++)
            TRY(describe(m, &m->files[i], elements, &inputs[i]));
        status = opjit_model_open(m->context, m->path, options, &m->model, &m->error);
    }
    return status;
}

/* Files say what sizes dynamic dimensions have in this call; those that none says are typical. */
static opjit_status open_dynamic(cli_onnx *m, opjit_model_options *options, opjit_model_input *inputs)
{
    opjit_status status = open_model(m, options, inputs);
    if ((status == OPJIT_UNSUPPORTED || status == OPJIT_INVALID_ARGUMENT) && m->range_count != 0) { /* "3*k": invalid */
        const opjit_error first = m->error;
        options->dim_count += m->range_count;
        const opjit_status second = open_model(m, options, inputs);
        if (second == OPJIT_INVALID_ARGUMENT && status == OPJIT_INVALID_ARGUMENT)
            m->error = first; /* of what is given, not of the typical sizes beside it */
        status = second;
    }
    for (uint32_t i = 0; i < m->range_count && status == OPJIT_OK; i++)
        status = opjit_model_get_dim(m->model, m->ranges[i].name, &m->dims[i], &m->error);
    return status;
}

static opjit_compile_options compile_options(const cli_options *o)
{
    opjit_compile_options options = opjit_cli_compile_options(o);
    if (!opjit_cli_has_codegen())
        options.flags |= OPJIT_COMPILE_INTERPRET;
    return options;
}

/* A model that has to know more than that, such as how long a sound is that it makes, is read for the files' elements
 * alone. */
static opjit_status open_for_call(const cli_options *o, cli_onnx *m, opjit_model_options *options,
                                  opjit_model_input *inputs)
{
    opjit_compile_options compile = compile_options(o);
    opjit_pool *pool;
    for (uint32_t i = 0; i < m->file_count; i++)
        TRY(describe(m, &m->files[i], TOLD_CALL, &inputs[i]));
    TRY(opjit_pool_create(NULL, 0, &pool, &m->error)); /* as many threads as there are cores */
    compile.executor = opjit_pool_executor(pool);
    options->computing = &compile;
    const opjit_status status = opjit_model_open(m->context, m->path, options, &m->model, &m->error);
    options->computing = NULL;
    opjit_pool_destroy(pool);
    return status;
}

opjit_status opjit_cli_onnx_open(const cli_options *o, const char *path, opjit_context *context, bool one_call,
                                 cli_onnx *m)
{
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    *m = (cli_onnx){
        .path = path, .context = context, .borrows_context = context != NULL
    };
    opjit_rt_arena_init(&m->arena, &opjit_rt_default_allocator);
    if (context == NULL)
        TRY(opjit_cli_context(o, &m->context, &m->error));
    const double begin = measure_now_ns();
    opjit_model_input *const inputs =
        ARENA_ARRAY(&m->arena, opjit_model_input, (size_t)o->input_count + o->shape_count + 1);
    m->files = ARENA_ARRAY(&m->arena, cli_onnx_file, (size_t)o->input_count + 1);
    if (inputs == NULL || m->files == NULL)
        return opjit_rt_no_memory(&m->error);
    TRY(read_dims(o, m, &options));
    for (uint32_t i = 0; i < o->input_count; i++)
        TRY(read_file(m, o->inputs[i]));
    for (uint32_t i = 0; i < o->shape_count; i++)
        TRY(read_shape(m, o->shapes[i], &inputs[o->input_count + i]));
    options.inputs = inputs;
    options.input_count = o->input_count + o->shape_count;
    opjit_status status = open_dynamic(m, &options, inputs);
    if (status == OPJIT_UNSUPPORTED && one_call && m->range_count == 0 && m->file_count != 0)
        status = open_for_call(o, m, &options, inputs);
    m->read_ms = (measure_now_ns() - begin) / 1e6;
    return status == OPJIT_UNSUPPORTED ? add_hint(m) : status;
}

/* --- kernel and memory -------------------------------------------------------------------------------------------- */

/* An executor that says how far it is; one piece of it runs at a time per worker, of which the first one prints. */
typedef struct watched {
    const opjit_executor *executor;
    void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end);
    void *arg;
    const char *path;
    atomic_uint done;
    uint32_t total;
    cli_progress progress;
} watched;

static void watch_piece(void *user, uint32_t worker, uint64_t begin, uint64_t end)
{
    watched *const w = user;
    if (worker == 0)
        opjit_cli_progress_show(&w->progress, atomic_load(&w->done), w->total, w->path);
    w->body(w->arg, worker, begin, end);
    atomic_fetch_add(&w->done, (uint32_t)(end - begin));
}

static opjit_status watch(void *user, uint64_t extent, uint64_t grain,
                          void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    watched *const w = user;
    w->body = body;
    w->arg = arg;
    w->total = (uint32_t)extent;
    atomic_store(&w->done, 0);
    return w->executor->run(w->executor->user, extent, grain, watch_piece, w);
}

opjit_status opjit_cli_onnx_compile(const cli_options *o, cli_onnx *m)
{
    opjit_compile_options options = compile_options(o);
    if (m->is_empty)
        return OPJIT_OK;
    const double begin = measure_now_ns();
    opjit_pool *pool;
    TRY(opjit_pool_create(NULL, 0, &pool, &m->error)); /* as many threads as there are cores */
    watched w = { .executor = opjit_pool_executor(pool), .path = m->path };
    const opjit_executor executor = { &w, w.executor->workers, watch };
    options.executor = &executor;
    opjit_cli_progress_begin(&w.progress, o);
    const opjit_status status = m->range_count == 0 ? opjit_model_compile(m->model, &options, &m->kernel, &m->error)
                                                    : opjit_model_compile_dynamic(m->model, m->ranges, m->range_count,
                                                                                  &options, &m->kernel, &m->error);
    opjit_cli_progress_end(&w.progress);
    opjit_pool_destroy(pool);
    m->compile_ms = (measure_now_ns() - begin) / 1e6;
    return status;
}

opjit_call opjit_cli_onnx_call(const cli_onnx *m)
{
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = m->bindings;
    call.binding_count = m->binding_count;
    call.dims = m->range_count == 0 ? NULL : m->dims;
    call.dim_count = m->range_count;
    return call;
}

void opjit_cli_onnx_put_dims(const cli_onnx *m, rt_bytes *out)
{
    for (uint32_t i = 0; i < m->range_count; i++)
        opjit_rt_bytes_printf(out, "dimension %s: %llu to %llu, %llu here\n", m->ranges[i].name,
                              (unsigned long long)m->ranges[i].lo, (unsigned long long)m->ranges[i].hi,
                              (unsigned long long)m->dims[i]);
}

uint64_t opjit_cli_onnx_bytes(const opjit_model_port *port)
{
    uint64_t bytes = opjit_data_type_size(port->dtype);
    for (uint32_t d = 0; d < port->rank; d++)
        bytes *= port->sizes[d];
    return bytes;
}

/* As DirectML counts them.  What a file lacks of that is on its last page. */
static uint64_t binding_bytes(const opjit_model_port *port)
{
    const uint64_t elements = opjit_cli_onnx_bytes(port);
    return elements == 0 ? 4 : (elements + 3) / 4 * 4;
}

/* Memory for a binding; what is behind its elements is 0. */
static opjit_status allocate(cli_onnx *m, const opjit_model_port *port)
{
    const uint64_t bytes = binding_bytes(port);
    void *const memory = opjit_rt_allocate(&opjit_rt_default_allocator, (size_t)bytes, ALIGNMENT);
    if (memory == NULL)
        return opjit_rt_no_memory(&m->error);
    memset((uint8_t *)memory + opjit_cli_onnx_bytes(port), 0, (size_t)(bytes - opjit_cli_onnx_bytes(port)));
    m->allocated[port->binding] = memory;
    m->bindings[port->binding] = (opjit_binding){ memory, bytes };
    return OPJIT_OK;
}

static opjit_status bind_input(cli_onnx *m, const opjit_model_port *port, bool fill)
{
    for (uint32_t i = 0; i < m->file_count; i++) {
        const cli_onnx_file *const f = &m->files[i];
        if (strcmp(f->name, port->name) != 0)
            continue;
        if (f->array.elements != 0 && f->array.data_offset % ALIGNMENT == 0 &&
            opjit_cli_npy_is_plain(&f->array)) { /* as NumPy writes them */
            m->bindings[port->binding] = (opjit_binding){ (void *)(uintptr_t)f->elements, binding_bytes(port) };
            return OPJIT_OK;
        }
        TRY(allocate(m, port));
        memcpy(m->allocated[port->binding], f->elements, (size_t)opjit_cli_onnx_bytes(port));
        return OPJIT_OK;
    }
    if (!fill)
        return opjit_rt_error_set(&m->error, OPJIT_INVALID_ARGUMENT,
                                  "input \"%.80s\" is missing: give --input %.80s=FILE.npy", port->name, port->name);
    TRY(allocate(m, port));
    memset(m->allocated[port->binding], 0, (size_t)opjit_cli_onnx_bytes(port));
    if (port->dtype == DML_TENSOR_DATA_TYPE_FLOAT32) {
        float *const x = m->allocated[port->binding];
        for (uint64_t i = 0; i < opjit_cli_onnx_bytes(port) / sizeof *x; i++)
            x[i] = (float)((i * 2654435761u >> 8) % 2001) / 1000 - 1;
    }
    return OPJIT_OK;
}

static opjit_status bind(cli_onnx *m, bool fill)
{
    const uint32_t inputs = opjit_model_input_count(m->model), outputs = opjit_model_output_count(m->model);
    const uint32_t carried = opjit_model_carried_count(m->model);
    m->bindings = ARENA_ARRAY(&m->arena, opjit_binding, (size_t)inputs + carried + outputs + 1);
    m->allocated = ARENA_ARRAY(&m->arena, void *, (size_t)inputs + carried + outputs + 1);
    if (m->bindings == NULL || m->allocated == NULL)
        return opjit_rt_no_memory(&m->error);
    m->is_empty = true;
    for (uint32_t i = 0; i < inputs + outputs; i++) {
        for (uint32_t k = 0; i == inputs && k < carried; k++)
            TRY(opjit_model_get_carried(m->model, k, &m->bindings[m->binding_count++], &m->error));
        opjit_model_port port = OPJIT_MODEL_PORT_INIT;
        TRY(i < inputs ? opjit_model_get_input(m->model, i, &port, &m->error)
                       : opjit_model_get_output(m->model, i - inputs, &port, &m->error));
        if (port.binding < 0)
            continue;
        m->is_empty = m->is_empty && i < inputs;
        m->binding_count++;
        TRY(i < inputs ? bind_input(m, &port, fill) : allocate(m, &port));
    }
    return OPJIT_OK;
}

opjit_status opjit_cli_onnx_prepare(const cli_options *o, cli_onnx *m, bool fill)
{
    if (m->range_count == 0) /* a file that is missing is found before it takes long */
        TRY(bind(m, fill));
    TRY(opjit_cli_onnx_compile(o, m));
    return m->range_count == 0 ? OPJIT_OK : bind(m, fill); /* which has inputs that have no elements for this size */
}

void opjit_cli_onnx_close(cli_onnx *m)
{
    for (uint32_t i = 0; i < m->binding_count; i++)
        if (m->allocated[i] != NULL)
            opjit_rt_release(&opjit_rt_default_allocator, m->allocated[i], (size_t)m->bindings[i].bytes);
    for (uint32_t i = 0; i < m->file_count; i++)
        opjit_cli_unmap(&m->files[i].bytes);
    opjit_plan_destroy(m->plan);
    opjit_kernel_release(m->kernel);
    opjit_model_close(m->model);
    if (!m->borrows_context)
        opjit_context_destroy(m->context);
    opjit_rt_arena_free(&m->arena);
}
