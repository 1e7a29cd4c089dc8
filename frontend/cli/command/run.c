/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - `opjit run`: a model's commands, in order.  Nothing runs before all of the model is known to be good;
 * what can still fail then is writing. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <opjit/device.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/command/onnx.h"
#include "frontend/cli/command/trace.h"
#include "frontend/cli/files/files.h"
#include "frontend/cli/files/npy.h"
#include "frontend/cli/model/device.h"
#include "frontend/cli/text/number.h"

#define FLUSH_AT 65536u /* bytes of output that are gathered */

/* --- commands ----------------------------------------------------------------------------------------------------- */
static void put_name(rt_bytes *out, const json_value *named)
{
    const size_t start = out->size;
    opjit_rt_bytes_append(out, named->key, named->key_length);
    for (size_t i = start; i < out->size; i++) { /* one resource, one line */
        if (out->data[i] < 0x20 || out->data[i] == 0x7f)
            out->data[i] = '?';
    }
}

static opjit_status no_output(cli_model *m)
{
    m->report.place[0] = '\0';
    return opjit_cli_no_output(&m->report.error);
}

static opjit_status print(cli_model *m, const cli_command *c)
{
    const cli_resource *const r = c->resource;
    const uint8_t *at = r->data + r->first;
    rt_bytes out;
    bool good = true;
    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    opjit_rt_bytes_append(&out, "Resource '", 10);
    put_name(&out, r->json);
    opjit_rt_bytes_append(&out, "': ", 3);
    for (uint64_t i = 0; i < r->elements && good; i++) {
        const DML_TENSOR_DATA_TYPE type = r->types != NULL ? (DML_TENSOR_DATA_TYPE)r->types[i] : r->dtype;
        if (i != 0)
            opjit_rt_bytes_append(&out, ", ", 2);
        opjit_cli_print_element(&out, type, at);
        at += opjit_data_type_size(type);
        if (out.size >= FLUSH_AT)
            good = opjit_cli_put(&out);
    }
    opjit_rt_bytes_u8(&out, '\n');
    good = good && opjit_cli_put(&out) && fflush(stdout) == 0;
    opjit_rt_bytes_free(&out);
    return good ? OPJIT_OK : no_output(m);
}

/* Writes to where the model's path leads now; it was looked at before the first command. */
static opjit_status put_file(cli_model *m, const cli_command *c, const rt_bytes *head, const void *body, size_t size)
{
    const json_value *const path = opjit_cli_json_get(c->json, "targetPath");
    opjit_error *const error = &m->report.error;
    cli_file file;
    opjit_status status = opjit_cli_file_find(m->path, path->text, m->outside, &file, error);
    if (status == OPJIT_OK)
        status = opjit_cli_file_write(&file, head, body, size, error);
    if (status == OPJIT_OK)
        status = opjit_cli_folder_sync(file.folder, error);
    opjit_cli_file_close(&file);
    return opjit_cli_at_file(m, path, c->path, status);
}

static opjit_status write_file(cli_model *m, const cli_command *c)
{
    const cli_resource *const r = c->resource;
    const size_t length = strlen(c->path);
    const uint32_t size = opjit_data_type_size(r->dtype);
    uint64_t bytes = r->bytes, elements = 0;
    rt_bytes head;
    opjit_status status;
    opjit_rt_bytes_init(&head, &opjit_rt_default_allocator);
    if (length > 4 && strcasecmp(c->path + length - 4, ".npy") == 0) {
        elements = r->said / size;
        if (c->rank != 0) {
            elements = 1;
            for (uint32_t i = 0; i < c->rank; i++)
                elements *= c->shape[i];
        }
        bytes = elements * size;
        opjit_cli_npy_header(&head, r->dtype, c->rank != 0 ? c->shape : &elements, c->rank != 0 ? c->rank : 1);
    }
    status = head.failed ? opjit_cli_no_memory(m, c->json) : put_file(m, c, &head, r->data, (size_t)bytes);
    opjit_rt_bytes_free(&head);
    return status;
}

static opjit_status dispatch(cli_model *m, const cli_command *c, const opjit_executor *executor, cli_trace *trace)
{
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = c->bindings;
    call.binding_count = c->binding_count;
    call.executor = executor;
    const cli_dispatchable *const d = c->dispatchable;
    call.dims = d->uses_dims ? m->dim_sizes : NULL;
    call.dim_count = d->uses_dims ? m->dim_count : 0;
    return opjit_cli_at(m, c->json,
                        trace == NULL ? opjit_kernel_call(d->kernel, &call, &m->report.error)
                                      : opjit_cli_trace_call(trace, d->json->key, d->json->key_length, d->kernel, &call,
                                                             &m->report.error));
}

/* device: NULL: kernels run here.  trace: NULL: none. */
static opjit_status run_commands(cli_model *m, const opjit_executor *executor, const cli_device *device,
                                 cli_trace *trace)
{
    for (uint32_t i = 0; i < m->command_count; i++) {
        const cli_command *const c = &m->commands[i];
        if (device != NULL && c->kind != CLI_DISPATCH)
            TRY(opjit_cli_device_fetch(m, device, c));
        switch (c->kind) {
        case CLI_DISPATCH:
            TRY(device != NULL ? opjit_cli_device_dispatch(m, device, c) : dispatch(m, c, executor, trace));
            break;
        case CLI_PRINT: TRY(print(m, c)); break;
        case CLI_WRITE_FILE: TRY(write_file(m, c)); break;
        }
    }
    /* What nobody looks at may have gone wrong, too. */
    return device == NULL ? OPJIT_OK : opjit_cli_at(m, m->root, opjit_stream_wait(m->context, NULL, &m->report.error));
}

static opjit_status run_on_device(cli_model *m)
{
    cli_device *device;
    opjit_status status = opjit_cli_device_open(m, &device);

    if (status == OPJIT_OK)
        status = run_commands(m, NULL, device, NULL);
    opjit_cli_device_close(m, device);
    return status;
}

static opjit_status read_and_run(cli_model *m, const cli_options *options)
{
    opjit_compile_options compile = opjit_cli_compile_options(options);
    cli_progress p;
    opjit_pool *pool;
    opjit_status status;
    TRY(opjit_cli_model_load(m));
    TRY(opjit_cli_read_resources(m));
    TRY(opjit_cli_read_dispatchables(m));
    TRY(opjit_cli_read_commands(m));
    if (!opjit_cli_has_codegen() && !opjit_cli_on_device(options)) {
        if (!options->quiet && (compile.flags & OPJIT_COMPILE_INTERPRET) == 0)
            fprintf(
                stderr,
                "opjit: note: built without code generation (OPJIT_CODEGEN=none): the interpreter runs the model\n");
        compile.flags |= OPJIT_COMPILE_INTERPRET;
    }
    opjit_cli_progress_begin(&p, options);
    status = opjit_cli_model_compile(m, &compile, opjit_cli_progress_show, &p);
    opjit_cli_progress_end(&p);
    TRY(status);
    if (opjit_cli_on_device(options)) {
        if (options->recorder != NULL)
            opjit_cli_note(options, NULL, "--trace", "calls on a device are not timed: it has what was compiled");
        return run_on_device(m);
    }
    TRY(opjit_cli_pool(options, &pool, &m->report.error));
    status = run_commands(m, opjit_pool_executor(pool), NULL, options->recorder);
    opjit_pool_destroy(pool);
    return status;
}

int opjit_cli_run(const cli_options *options)
{
    cli_options traced;
    cli_trace trace;
    opjit_cli_trace_begin(&trace, options, &traced);
    return opjit_cli_trace_end(&trace, opjit_cli_is_onnx(options->arguments[0])
                                           ? opjit_cli_run_onnx(&traced)
                                           : opjit_cli_with_model(&traced, read_and_run));
}
