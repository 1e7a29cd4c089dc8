/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_run.c - `opjit run MODEL.onnx`: one call, and its outputs in files or printed. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <opjit/reflect.h>

#include "frontend/cli/command/onnx.h"
#include "frontend/cli/command/trace.h"
#include "frontend/cli/files/files.h"
#include "frontend/cli/text/number.h"

#define PRINTED 8u /* elements */

static opjit_status call_model(const cli_options *o, cli_onnx *m)
{
    opjit_call call = opjit_cli_onnx_call(m);
    opjit_pool *pool;
    if (m->is_empty)
        return OPJIT_OK;
    TRY(opjit_cli_pool(o, &pool, &m->error));
    call.executor = opjit_pool_executor(pool);
    const opjit_status status = o->recorder == NULL
                                    ? opjit_kernel_call(m->kernel, &call, &m->error)
                                    : opjit_cli_trace_call(o->recorder, m->path, strlen(m->path), m->kernel, &call,
                                                           &m->error);
    opjit_pool_destroy(pool);
    return status;
}

/* scores FLOAT32 [1,1000]: 0.1, 0.2, ... */
static opjit_status print_output(const opjit_model_port *port, const opjit_binding *binding, opjit_error *error)
{
    char name[128];
    rt_bytes out;
    const uint32_t size = opjit_data_type_size(port->dtype);
    const uint64_t elements = opjit_cli_onnx_bytes(port) / size;
    snprintf(name, sizeof name, "%s", port->name);
    opjit_rt_printable(name);
    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    opjit_rt_bytes_printf(&out, "%s %s [", name, opjit_data_type_name(port->dtype));
    for (uint32_t d = 0; d < port->rank; d++)
        opjit_rt_bytes_printf(&out, "%s%" PRIu64, d == 0 ? "" : ",", port->sizes[d]);
    opjit_rt_bytes_printf(&out, "]:");
    for (uint64_t i = 0; i < elements && i < PRINTED; i++) {
        opjit_rt_bytes_printf(&out, i == 0 ? " " : ", ");
        opjit_cli_print_element(&out, port->dtype, (const uint8_t *)binding->data + i * size);
    }
    opjit_rt_bytes_printf(&out, elements > PRINTED ? ", ...\n" : "\n");
    const opjit_status status = opjit_cli_put(&out) ? OPJIT_OK : opjit_cli_no_output(error);
    opjit_rt_bytes_free(&out);
    return status;
}

/* The file of an output: characters other than letters, digits, '.', '_', '-' become '_'. */
static opjit_status write_output(cli_onnx *m, const char *folder, const opjit_model_port *port,
                                 const opjit_binding *binding)
{
    cli_file file;
    rt_bytes path, head;
    opjit_rt_bytes_init(&path, &opjit_rt_default_allocator);
    opjit_rt_bytes_printf(&path, "%s/", folder);
    const size_t begin = path.size;
    opjit_rt_bytes_printf(&path, "%.200s.npy", port->name);
    opjit_rt_bytes_zero_end(&path);
    for (size_t i = begin; !path.failed && i < path.size; i++) {
        const char c = (char)path.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
              c == '-'))
            path.data[i] = '_';
    }
    if (!path.failed && path.data[begin] == '.')
        path.data[begin] = '_';
    opjit_status status = path.failed ? opjit_rt_no_memory(&m->error) : OPJIT_OK;
    opjit_rt_bytes_init(&head, &opjit_rt_default_allocator);
    opjit_cli_npy_header(&head, port->dtype, port->sizes, port->rank);
    if (status == OPJIT_OK)
        status = opjit_cli_file_find((const char *)path.data, (const char *)path.data + begin, true, &file, &m->error);
    if (status == OPJIT_OK) {
        status = opjit_cli_file_write(&file, &head, binding->data, (size_t)opjit_cli_onnx_bytes(port), &m->error);
        if (status == OPJIT_OK)
            status = opjit_cli_folder_sync(file.folder, &m->error);
        opjit_cli_file_close(&file);
    }
    if (status != OPJIT_OK)
        opjit_rt_error_prefix(&m->error, "%.200s", path.failed ? folder : (const char *)path.data);
    opjit_rt_bytes_free(&head);
    opjit_rt_bytes_free(&path);
    return status;
}

static opjit_status give_outputs(const cli_options *o, cli_onnx *m)
{
    const opjit_binding none = { "", 0 }; /* of an output without elements */
    if (o->output_dir != NULL)
        (void)mkdir(o->output_dir, 0777); /* what is wrong with it, writing says */
    for (uint32_t i = 0; i < opjit_model_output_count(m->model); i++) {
        opjit_model_port port = OPJIT_MODEL_PORT_INIT;
        TRY(opjit_model_get_output(m->model, i, &port, &m->error));
        const opjit_binding *const memory = port.binding < 0 ? &none : &m->bindings[port.binding];
        if (o->output_dir == NULL)
            TRY(print_output(&port, memory, &m->error));
        else
            TRY(write_output(m, o->output_dir, &port, memory));
    }
    return OPJIT_OK;
}

int opjit_cli_run_onnx(const cli_options *o)
{
    cli_onnx m;
    opjit_status status = opjit_cli_onnx_open(o, o->arguments[0], NULL, true, &m);
    if (status == OPJIT_OK)
        status = opjit_cli_onnx_prepare(o, &m, false);
    if (status == OPJIT_OK)
        status = call_model(o, &m);
    if (status == OPJIT_OK)
        status = give_outputs(o, &m);
    if (status != OPJIT_OK)
        opjit_cli_complain(m.path, NULL, &m.error);
    opjit_cli_onnx_close(&m);
    return status == OPJIT_OK ? EXIT_DONE : EXIT_FAILED;
}
