/* SPDX-License-Identifier: Apache-2.0 */
/* abi.h - the part of TVM FFI's C interface (0.1) that a function needs, in declarations of our own.
 * tests/hosts/tvm_ffi_layout.c holds them against the header of the package apache-tvm-ffi. */
#ifndef OPJIT_TVMFFI_ABI_H
#define OPJIT_TVMFFI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* An argument or result. */
typedef struct tvm_any {
    int32_t type;    /* TVM_... */
    uint32_t length; /* of a small text; else 0 */
    union {
        int64_t number;
        void *pointer;
        const char *text;
        char small[8];
    } value;
} tvm_any;

#define TVM_NONE 0
#define TVM_DLTENSOR 7      /* a DLTensor, borrowed */
#define TVM_RAW_TEXT 8      /* of the C kind */
#define TVM_BYTES_POINTER 9 /* a tvm_bytes, borrowed */
#define TVM_SMALL_TEXT 11
#define TVM_SMALL_BYTES 12
#define TVM_TEXT 65 /* an object: tvm_bytes behind its header, as of BYTES */
#define TVM_BYTES 66
#define TVM_FUNCTION 68
#define TVM_TENSOR 70 /* an object: a DLTensor behind its header */
#define TVM_OBJECT_HEADER 24

typedef struct tvm_bytes {
    const char *data;
    size_t size;
} tvm_bytes;

/* 0, or another number with the thread's error set. */
typedef int tvm_function(void *self, const tvm_any *args, int32_t count, tvm_any *result);

/* Of libtvm_ffi.so, which whoever calls has loaded: TVMFFIErrorSetRaisedFromCStr, TVMFFIFunctionCreate. */
typedef void tvm_raise_fn(const char *kind, const char *message);
typedef int tvm_make_fn(void *self, tvm_function *function, void (*destroy)(void *self), void **out);

#endif
