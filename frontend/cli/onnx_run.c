/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_run.c - `opjit run MODEL.onnx`: one call, and its outputs in files or printed. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <opjit/reflect.h>

#include "frontend/cli/files.h"
#include "frontend/cli/onnx.h"
#include "frontend/cli/trace.h"

#define PRINTED 8u /* elements */

static opjit_status call_model(const cli_options *o, cli_onnx *m)
{
    opjit_call call = OPJIT_CALL_INIT;
    opjit_pool *pool;
    TRY(opjit_cli_pool(o, &pool, &m->error));
    call.bindings = m->bindings;
    call.binding_count = m->binding_count;
    call.executor = opjit_pool_executor(pool);
    const opjit_status status = o->recorder == NULL
                                    ? opjit_kernel_call(m->kernel, &call, &m->error)
                                    : opjit_cli_trace_call(o->recorder, m->path, strlen(m->path), m->kernel, &call,
                                                           &m->error);
    opjit_pool_destroy(pool);
    return status;
}

static double float_at(const void *data, DML_TENSOR_DATA_TYPE dtype, uint64_t i)
{
    return dtype == DML_TENSOR_DATA_TYPE_FLOAT32   ? (double)((const float *)data)[i]
           : dtype == DML_TENSOR_DATA_TYPE_FLOAT64 ? ((const double *)data)[i]
                                                   : (double)opjit_float16_to_float(((const uint16_t *)data)[i]);
}

static void print_element(const void *data, DML_TENSOR_DATA_TYPE dtype, uint64_t i)
{
    switch (dtype) {
    case DML_TENSOR_DATA_TYPE_INT64: printf("%" PRId64, ((const int64_t *)data)[i]); break;
    case DML_TENSOR_DATA_TYPE_INT32: printf("%" PRId32, ((const int32_t *)data)[i]); break;
    case DML_TENSOR_DATA_TYPE_INT16: printf("%d", ((const int16_t *)data)[i]); break;
    case DML_TENSOR_DATA_TYPE_INT8: printf("%d", ((const int8_t *)data)[i]); break;
    case DML_TENSOR_DATA_TYPE_UINT64: printf("%" PRIu64, ((const uint64_t *)data)[i]); break;
    case DML_TENSOR_DATA_TYPE_UINT32: printf("%" PRIu32, ((const uint32_t *)data)[i]); break;
    case DML_TENSOR_DATA_TYPE_UINT16: printf("%u", ((const uint16_t *)data)[i]); break;
    case DML_TENSOR_DATA_TYPE_UINT8: printf("%u", ((const uint8_t *)data)[i]); break;
    default: printf("%.6g", float_at(data, dtype, i)); break;
    }
}

/* scores FLOAT32 [1,1000]: 0.1, 0.2, ... */
static void print_output(const opjit_model_port *port, const opjit_binding *binding)
{
    char name[128];
    const uint64_t elements = opjit_cli_onnx_bytes(port) / opjit_data_type_size(port->dtype);
    snprintf(name, sizeof name, "%s", port->name);
    opjit_rt_printable(name);
    printf("%s %s [", name, opjit_data_type_name(port->dtype));
    for (uint32_t d = 0; d < port->rank; d++)
        printf("%s%" PRIu64, d == 0 ? "" : ",", port->sizes[d]);
    printf("]:");
    for (uint64_t i = 0; i < elements && i < PRINTED; i++) {
        printf(i == 0 ? " " : ", ");
        print_element(binding->data, port->dtype, i);
    }
    printf(elements > PRINTED ? ", ...\n" : "\n");
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
    if (o->output_dir != NULL)
        (void)mkdir(o->output_dir, 0777); /* what is wrong with it, writing says */
    for (uint32_t i = 0; i < opjit_model_output_count(m->model); i++) {
        opjit_model_port port = OPJIT_MODEL_PORT_INIT;
        TRY(opjit_model_get_output(m->model, i, &port, &m->error));
        if (o->output_dir == NULL)
            print_output(&port, &m->bindings[port.binding]);
        else
            TRY(write_output(m, o->output_dir, &port, &m->bindings[port.binding]));
    }
    return OPJIT_OK;
}

int opjit_cli_run_onnx(const cli_options *o)
{
    cli_onnx m;
    opjit_status status = opjit_cli_onnx_open(o, o->arguments[0], NULL, &m);
    if (status == OPJIT_OK)
        status = opjit_cli_onnx_bind(&m, false);
    if (status == OPJIT_OK)
        status = opjit_cli_onnx_compile(o, &m);
    if (status == OPJIT_OK)
        status = call_model(o, &m);
    if (status == OPJIT_OK)
        status = give_outputs(o, &m);
    if (status != OPJIT_OK)
        opjit_cli_complain(m.path, NULL, &m.error);
    opjit_cli_onnx_close(&m);
    return status == OPJIT_OK ? EXIT_DONE : EXIT_FAILED;
}
