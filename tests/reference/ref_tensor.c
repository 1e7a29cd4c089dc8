/* SPDX-License-Identifier: Apache-2.0 */
/* ref_tensor.c - the addresses of a tensor's elements: the text of DML_BUFFER_TENSOR_DESC as code. */
#include <string.h>

#include "tests/reference/reference.h"

ref_tensor ref_tensor_of(const DML_TENSOR_DESC *desc)
{
    const DML_BUFFER_TENSOR_DESC *buffer = desc->Desc;
    ref_tensor t = { buffer->DataType, buffer->DimensionCount, { 0 }, { 0 } };
    uint64_t packed = 1;
    for (uint32_t i = t.rank; i-- != 0;) {
        t.sizes[i] = buffer->Sizes[i];
        t.strides[i] = buffer->Strides != NULL ? buffer->Strides[i] : packed;
        packed *= t.sizes[i];
    }
    return t;
}

uint64_t ref_tensor_elements(const ref_tensor *t)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        elements *= t->sizes[i];
    return elements;
}

uint64_t ref_tensor_span(const ref_tensor *t)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        last += (t->sizes[i] - 1u) * t->strides[i];
    return last + 1;
}

void ref_tensor_coordinates(const ref_tensor *t, uint64_t element, uint32_t coordinates[8])
{
    for (uint32_t i = t->rank; i-- != 0;) {
        coordinates[i] = (uint32_t)(element % t->sizes[i]);
        element /= t->sizes[i];
    }
}

uint64_t ref_tensor_offset(const ref_tensor *t, const uint32_t coordinates[8])
{
    uint64_t offset = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        offset += coordinates[i] * t->strides[i];
    return offset;
}

static bool has_halves(const ref_tensor *t)
{
    return t->dtype == DML_TENSOR_DATA_TYPE_UINT4 || t->dtype == DML_TENSOR_DATA_TYPE_INT4;
}

uint64_t ref_load(const ref_tensor *t, const void *base, uint64_t offset)
{
    const uint32_t size = ref_dtype_size(t->dtype);
    uint64_t bits = 0;
    if (has_halves(t))
        return (uint64_t)((const uint8_t *)base)[offset / 2] >> (offset % 2 != 0 ? 4 : 0) & 15;
    memcpy(&bits, (const uint8_t *)base + offset * size, size);
    return bits;
}

void ref_store(const ref_tensor *t, void *base, uint64_t offset, uint64_t bits)
{
    const uint32_t size = ref_dtype_size(t->dtype);
    uint8_t *byte = (uint8_t *)base + offset / 2;
    if (has_halves(t))
        *byte = (uint8_t)(offset % 2 != 0 ? (*byte & 15) | (bits & 15) << 4 : (*byte & 240) | (bits & 15));
    else
        memcpy((uint8_t *)base + offset * size, &bits, size);
}

uint64_t ref_get(const ref_tensor *t, const void *base, const uint32_t coordinates[8])
{
    return ref_load(t, base, ref_tensor_offset(t, coordinates));
}

void ref_set(const ref_tensor *t, void *base, const uint32_t coordinates[8], uint64_t bits)
{
    ref_store(t, base, ref_tensor_offset(t, coordinates), bits);
}
