/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - whether an array that a host was given is what a kernel's buffer takes: one checker, and one wording, for
 * all hosts.  It knows DLPack's view of an array, and of opjit the public headers alone. */
#ifndef OPJIT_HOSTS_CHECK_H
#define OPJIT_HOSTS_CHECK_H

#include <stdbool.h>

#include <opjit/opjit.h>

/* An array of somebody else's.  The layout is that of DLPack's DLTensor, to which a pointer may be cast. */
typedef struct host_tensor {
    void *data;
    int32_t device, device_id; /* HOST_DEVICE_... */
    int32_t rank;              /* sizes and strides have as many numbers */
    uint8_t code, bits;        /* of an element: HOST_CODE_... and its bits */
    uint16_t lanes;            /* 1; more are vectors */
    const int64_t *sizes;
    const int64_t *strides; /* elements; NULL: packed, row-major */
    uint64_t offset;        /* bytes behind data at which the array begins */
} host_tensor;

#define HOST_DEVICE_CPU 1
#define HOST_DEVICE_PINNED 3 /* memory of this machine that a GPU reads, too */

#define HOST_CODE_INT 0
#define HOST_CODE_UINT 1
#define HOST_CODE_FLOAT 2
#define HOST_CODE_BOOL 6
#define HOST_CODE_OTHER 255 /* of a host that says in words what its elements are */

/* What a buffer of a kernel takes. */
typedef struct host_port {
    const char *name; /* the kernel's */
    DML_TENSOR_DATA_TYPE dtype;
    uint8_t code, bits; /* the same for host_tensor */
    bool is_output;
    bool takes_bool; /* an array of bool will do: inputs of UINT8, and what is bool in a model */
    uint32_t rank;
    int64_t sizes[8];
    int64_t strides[8]; /* elements */
    uint64_t bytes;     /* of the memory that a call touches */
} host_port;

/* What DLPack calls elements of the type; HOST_CODE_OTHER for UNKNOWN. */
void opjit_host_elements(DML_TENSOR_DATA_TYPE type, uint8_t *code, uint8_t *bits);
/* Fills *out with buffer `index` of the kernel, an input or output. */
void opjit_host_port(const opjit_kernel_info *info, uint32_t index, host_port *out);

/* Whether the array is what the port takes; the way of every call, so it says nothing of what is wrong. */
static inline bool opjit_host_fits(const host_port *want, const host_tensor *given, bool read_only)
{
    bool fits = (given->device == HOST_DEVICE_CPU || given->device == HOST_DEVICE_PINNED) &&
                given->bits == want->bits && given->lanes == 1 && (uint32_t)given->rank == want->rank &&
                (given->code == want->code || (given->code == HOST_CODE_BOOL && want->takes_bool)) &&
                !(read_only && want->is_output) && given->data != NULL;
    for (uint32_t d = 0; fits && d < want->rank; d++)
        fits = given->sizes[d] == want->sizes[d];
    if (given->strides == NULL && fits) {
        int64_t packed = 1;
        for (uint32_t d = want->rank; fits && d-- > 0; packed *= want->sizes[d])
            fits = want->sizes[d] == 1 || want->strides[d] == packed;
    } else {
        for (uint32_t d = 0; fits && d < want->rank; d++)
            fits = want->sizes[d] == 1 || given->strides[d] == want->strides[d];
    }
    return fits;
}

/* The same, with what is wrong in *error as opjit_kernel_call would have it: "buffer 1: float32 [4, 5] expected,
 * float64 [4, 5] given".  index: of the binding.  type: what the elements are called where their code is OTHER. */
opjit_status opjit_host_check(const host_port *want, uint32_t index, const host_tensor *given, bool read_only,
                              const char *type, opjit_error *error);

#endif
