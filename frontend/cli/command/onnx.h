/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.h - .onnx models on the command line: their sizes and inputs by options, compiled and bound. */
#ifndef OPJIT_CLI_ONNX_H
#define OPJIT_CLI_ONNX_H

#include <opjit/dynamic.h>
#include <opjit/model.h>
#include <opjit/reflect.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/files/files.h"
#include "frontend/cli/files/npy.h"

/* An input that a .npy file holds. */
typedef struct cli_onnx_file {
    const char *name; /* of the input */
    cli_mapped bytes; /* of the file */
    npy_array array;
    const uint8_t *elements; /* in the file, or a copy where it has them in another order */
    uint64_t size;           /* of them, in bytes */
} cli_onnx_file;

typedef struct cli_onnx {
    const char *path;
    rt_arena arena;
    opjit_context *context;
    bool borrows_context;
    opjit_model *model;
    opjit_kernel *kernel;
    opjit_plan *plan; /* for what its steps compute; NULL: not made */
    cli_onnx_file *files;
    uint32_t file_count;
    opjit_dim ranges[OPJIT_MAX_DIMS]; /* dimensions that stay dynamic, and their sizes in the call */
    uint64_t dims[OPJIT_MAX_DIMS];
    uint32_t range_count;
    opjit_binding *bindings; /* inputs, then outputs; owned: allocated[], else a file's */
    void **allocated;
    uint32_t binding_count;
    bool is_empty; /* no output has elements: there is nothing to call */
    double read_ms, compile_ms;
    opjit_error error;
} cli_onnx;

/* Whether the path is an .onnx model's. */
bool opjit_cli_is_onnx(const char *path);
/* Reads the model with the sizes and inputs that the options say, into *out, which is to be closed in any case.
 * context NULL: one of its own.  one_call: the kernel may be for these inputs' values alone. */
opjit_status opjit_cli_onnx_open(const cli_options *options, const char *path, opjit_context *context, bool one_call,
                                 cli_onnx *out);
/* Compiles it. */
opjit_status opjit_cli_onnx_compile(const cli_options *options, cli_onnx *m);
/* Compiles it, and makes memory for all bindings; a file's elements are read where they lie, if they can be.
 * Inputs without a file are refused, or (fill) small numbers. */
opjit_status opjit_cli_onnx_prepare(const cli_options *options, cli_onnx *m, bool fill);
/* What a call brings: bindings and dimensions. */
opjit_call opjit_cli_onnx_call(const cli_onnx *m);
/* A line for each dynamic dimension; nothing where there is none. */
void opjit_cli_onnx_put_dims(const cli_onnx *m, rt_bytes *out);
/* Bytes of its elements. */
uint64_t opjit_cli_onnx_bytes(const opjit_model_port *port);
void opjit_cli_onnx_close(cli_onnx *m);

/* Commands with an .onnx model; they give the exit status. */
int opjit_cli_run_onnx(const cli_options *options);
int opjit_cli_bench_onnx(const cli_options *options);

#endif
