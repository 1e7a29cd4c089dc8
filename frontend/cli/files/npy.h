/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h - NumPy's array files: format versions 1.0, 2.0 and 3.0 in, 1.0 out; in either byte order, row-major or
 * column-major (fortran_order) in, little endian and row-major out; the 11 whole-byte element types, and bool as
 * UINT8. */
#ifndef OPJIT_CLI_NPY_H
#define OPJIT_CLI_NPY_H

#include "runtime/base/base.h"

#define NPY_MAX_RANK 32u

typedef struct npy_array {
    DML_TENSOR_DATA_TYPE dtype;
    uint32_t rank;
    uint64_t shape[NPY_MAX_RANK];
    uint64_t elements;
    size_t data_offset; /* in the file; the data go from there to its end */
    bool column_major, big_endian; /* where that makes a difference */
} npy_array;

/* Reads the header of a file's bytes; its data must be exactly what the shape says.  Any bytes are safe. */
opjit_status opjit_cli_npy_read(const uint8_t *file, size_t size, npy_array *out, opjit_error *error);

/* Whether the file has the elements as they are here, row-major and little endian. */
static inline bool opjit_cli_npy_is_plain(const npy_array *array)
{
    return !array->column_major && !array->big_endian;
}

/* Copies the elements out of the file's bytes, row-major and little endian. */
void opjit_cli_npy_copy(const npy_array *array, const uint8_t *file, void *out);

/* Appends magic, version and header, a multiple of 64 bytes, behind which the data go. */
void opjit_cli_npy_header(rt_bytes *out, DML_TENSOR_DATA_TYPE dtype, const uint64_t *shape, uint32_t rank);

#endif
