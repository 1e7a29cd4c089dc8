/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - what the files of the module share. */
#ifndef OPJIT_TVMFFI_HOST_H
#define OPJIT_TVMFFI_HOST_H

#include <stdbool.h>

#include <opjit/model.h>

#include "frontend/hosts/check.h"
#include "frontend/hosts/tvmffi/abi.h"

/* A kernel as a function of TVM FFI: its self. */
typedef struct tvm_kernel {
    opjit_kernel *kernel;
    opjit_model *model; /* whose weights it reads; NULL: none */
    void *held;         /* the model's bytes */
    uint32_t inputs, outputs;
    host_port *ports; /* inputs, then outputs */
} tvm_kernel;

/* Sets the thread's error; gives -1.  kind: "ValueError", "TypeError" ... */
int tvm_raise(const char *kind, const char *message);
/* The same with the message of *error. */
int tvm_raise_error(const opjit_error *error);

/* A function of the kernel, which it takes over with the model and its bytes, also where it fails; 0, or -1 with the
 * error set. */
int tvm_kernel_make(opjit_kernel *kernel, opjit_model *model, void *held, tvm_any *out);

/* Of a model's text as the program reads it (cli/MODEL.md): a kernel of the dispatchable of that name, or of the only
 * one where name is NULL. */
opjit_status tvm_read_json(opjit_context *context, const char *text, size_t size, const char *name, opjit_kernel **out,
                           opjit_error *error);

#endif
