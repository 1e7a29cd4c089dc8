/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - __tvm_ffi_compile: compile(model, name) gives a function object of TVM FFI.  The model is a text as the
 * program reads it (cli/MODEL.md), or the bytes of an .onnx file; the name is that of a dispatchable. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/context.h"
#include "frontend/hosts/tvmffi/host.h"

/* --- the context, one for the process ----------------------------------------------------------------------------- */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opjit_context *context; /* made when it is first needed, again where that failed */

static opjit_status find_context(opjit_context **out, opjit_error *error)
{
    const opjit_context_options options = host_context_options();
    opjit_status status = OPJIT_OK;
    (void)pthread_mutex_lock(&lock);
    if (context == NULL)
        status = opjit_context_create(&options, &context, error);
    *out = context;
    (void)pthread_mutex_unlock(&lock);
    return status;
}

/* --- arguments ---------------------------------------------------------------------------------------------------- */
/* What the argument holds; whether it is a text, bytes (is_text false), or neither. */
static bool read_text(const tvm_any *any, tvm_bytes *out, bool *is_text)
{
    *is_text = any->type == TVM_RAW_TEXT || any->type == TVM_SMALL_TEXT || any->type == TVM_TEXT;
    switch (any->type) {
    case TVM_RAW_TEXT: *out = (tvm_bytes){ any->value.text, strlen(any->value.text) }; return true;
    case TVM_SMALL_TEXT:
    case TVM_SMALL_BYTES: *out = (tvm_bytes){ any->value.small, any->length }; return any->length <= 8;
    case TVM_BYTES_POINTER: memcpy(out, any->value.pointer, sizeof *out); return true;
    case TVM_TEXT:
    case TVM_BYTES: memcpy(out, (const char *)any->value.pointer + TVM_OBJECT_HEADER, sizeof *out); return true;
    default: return false;
    }
}

/* --- kinds of models ---------------------------------------------------------------------------------------------- */
static int compile_onnx(opjit_context *in, const tvm_bytes *model, tvm_any *result)
{
    opjit_model *read = NULL;
    opjit_kernel *kernel;
    opjit_error error;
    void *const copy = malloc(model->size + 1);
    if (copy == NULL)
        return tvm_raise("MemoryError", "out of memory");
    memcpy(copy, model->data, model->size);
    if (opjit_model_read(in, copy, model->size, NULL, &read, &error) == OPJIT_OK &&
        opjit_model_compile(read, NULL, &kernel, &error) == OPJIT_OK)
        return tvm_kernel_make(kernel, read, copy, result);
    opjit_model_close(read);
    free(copy);
    return tvm_raise_error(&error);
}

static int compile_json(opjit_context *in, const tvm_bytes *model, const char *name, tvm_any *result)
{
    opjit_kernel *kernel;
    opjit_error error;
    if (tvm_read_json(in, model->data, model->size, name, &kernel, &error) != OPJIT_OK)
        return tvm_raise_error(&error);
    return tvm_kernel_make(kernel, NULL, NULL, result);
}

OPJIT_API int __tvm_ffi_compile(void *self, const tvm_any *args, int32_t count, tvm_any *result);
OPJIT_API int __tvm_ffi_compile(void *self, const tvm_any *args, int32_t count, tvm_any *result)
{
    tvm_bytes model, name = { NULL, 0 };
    bool is_text, names = true;
    opjit_context *in;
    opjit_error error;
    char *text;
    int status;
    (void)self;
    *result = (tvm_any){ .type = TVM_NONE };
    if (count < 1 || count > 2 || !read_text(&args[0], &model, &is_text) ||
        (count == 2 && (!read_text(&args[1], &name, &names) || !names)))
        return tvm_raise("TypeError", "compile: a model's text, or the bytes of an .onnx file, is needed, and maybe a "
                                      "dispatchable's name");
    if (count == 2 && !is_text)
        return tvm_raise("TypeError", "compile: the bytes of an .onnx file have no dispatchables");
    if (find_context(&in, &error) != OPJIT_OK)
        return tvm_raise_error(&error);
    if (!is_text)
        return compile_onnx(in, &model, result);
    text = count == 2 ? strndup(name.data, name.size) : NULL;
    if (count == 2 && text == NULL)
        return tvm_raise("MemoryError", "out of memory");
    status = compile_json(in, &model, text, result);
    free(text);
    return status;
}
