/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - checks one DML_TENSOR_DESC completely and resolves it: strides, extent in memory, alignment.  Which ranks
 * and types an operator allows is checked in rules.c. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

/* Limit of a tensor's elements, and of the index of its last element + 1: indices fit in 32 bits everywhere, as in
 * DirectML. */
#define ELEMENTS_MAX UINT32_MAX

/* Which tensor it is, for messages. */
typedef struct place {
    const char *op, *tensor;
    opjit_error *error;
} place;

/* "{2,3,4}" of at most OPJIT_MAX_RANK values. */
static const char *list_text(const uint32_t *values, uint32_t count, char text[static 96])
{
    size_t used = 0;

    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, 96 - used, "%s%u", i == 0 ? "{" : ",", values[i]);
    snprintf(text + used, 96 - used, "}");
    return text;
}

static opjit_status check_head(const place *at, const DML_BUFFER_TENSOR_DESC *d, bool is_output)
{
    const uint32_t dtype = (uint32_t)d->DataType, flags = (uint32_t)d->Flags;

    if (opjit_rt_dtype_bytes(d->DataType, 1) == 0)
        return opjit_rt_refuse(at->error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.DataType}: {%u}, must be a DML_TENSOR_DATA_TYPE (1 to 13)", at->op, at->tensor,
                               dtype);
    if (is_output && flags == DML_TENSOR_FLAG_OWNED_BY_DML)
        return opjit_rt_refuse(at->error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.Flags}: {0x1} (OWNED_BY_DML), must be 0: an output can't be a constant",
                               at->op, at->tensor);
    if ((flags & ~(is_output ? 0u : (uint32_t)DML_TENSOR_FLAG_OWNED_BY_DML)) != 0)
        return opjit_rt_refuse(at->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.Flags}: {0x%x}, must be 0%s", at->op,
                               at->tensor, flags, is_output ? "" : " or 0x1 (OWNED_BY_DML)");
    if (d->DimensionCount < 1 || d->DimensionCount > OPJIT_MAX_RANK)
        return opjit_rt_refuse(at->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DimensionCount}: {%u}, must be 1 to %u",
                               at->op, at->tensor, d->DimensionCount, OPJIT_MAX_RANK);
    if (d->Sizes == NULL)
        return opjit_rt_refuse(at->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.Sizes}: {NULL}, must be an array of %u",
                               at->op, at->tensor, d->DimensionCount);
    return OPJIT_OK;
}

static opjit_status resolve_sizes(const place *at, const DML_BUFFER_TENSOR_DESC *d, fe_tensor *t)
{
    char text[96];

    t->elements = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        t->sizes[i] = d->Sizes[i];
        if (t->sizes[i] == 0)
            return opjit_rt_refuse(at->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.Sizes[%u]}: {0}, must be at least 1",
                                   at->op, at->tensor, i);
        if (fe_is_symbol(d->Sizes[i])) {
            snprintf(text, sizeof text, "%.80s.Sizes", at->tensor);
            return opjit_fe_refuse_symbol(at->op, text, i, d->Sizes[i], at->error);
        }
        t->elements *= t->sizes[i]; /* both factors are below 2^32 */
        if (t->elements > ELEMENTS_MAX)
            return opjit_rt_refuse(at->error, OPJIT_INVALID_ARGUMENT,
                                   "{%s} {%s.Sizes}: {%s} is more than %u elements, the most that are allowed", at->op,
                                   at->tensor, list_text(d->Sizes, t->rank, text), ELEMENTS_MAX);
    }
    return OPJIT_OK;
}

static opjit_status resolve_strides(const place *at, const DML_BUFFER_TENSOR_DESC *d, bool is_output, fe_tensor *t)
{
    uint64_t packed = 1;
    char text[96];

    t->span = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        const uint64_t stride = d->Strides == NULL ? packed : d->Strides[i];
        packed *= t->sizes[i];
        if (t->sizes[i] == 1)
            continue; /* its stride is never used: 0, so that equal layouts compare equal */
        if (is_output && stride == 0)
            return opjit_rt_refuse(
                at->error, OPJIT_INVALID_ARGUMENT,
                "{%s} {%s.Strides[%u]}: {0}, must be at least 1 in an output where the size (%u) is above 1", at->op,
                at->tensor, i, d->Sizes[i]);
        t->strides[i] = stride;
        t->span += (t->sizes[i] - 1) * stride; /* below 2^64: each term is at most ELEMENTS_MAX before the check */
        if (t->span > ELEMENTS_MAX)
            return opjit_rt_refuse(
                at->error, OPJIT_INVALID_ARGUMENT,
                "{%s} {%s.Strides}: {%s} puts the last element behind index %u, the last that is allowed", at->op,
                at->tensor, list_text(d->Strides, t->rank, text), ELEMENTS_MAX - 1);
    }
    return OPJIT_OK;
}

static opjit_status resolve_memory(const place *at, const DML_BUFFER_TENSOR_DESC *d, fe_tensor *t)
{
    const uint32_t element = (uint32_t)opjit_rt_dtype_bytes(t->dtype, 1), guaranteed = d->GuaranteedBaseOffsetAlignment;
    const uint64_t implied = align_up(opjit_rt_dtype_bytes(t->dtype, t->span), 4), total = d->TotalTensorSizeInBytes;

    if (total != 0 && (total < implied || total % 4 != 0))
        return opjit_rt_refuse(
            at->error, OPJIT_INVALID_ARGUMENT,
            "{%s} {%s.TotalTensorSizeInBytes}: {%llu}, must be 0 or a multiple of 4 that is at least %llu", at->op,
            at->tensor, (unsigned long long)total, (unsigned long long)implied);
    if (total > RT_TENSOR_BYTES_MAX)
        return opjit_rt_refuse(at->error, OPJIT_LIMIT,
                               "{%s} {%s.TotalTensorSizeInBytes}: {%llu}, must be at most %llu (1 TiB)", at->op,
                               at->tensor, (unsigned long long)total, (unsigned long long)RT_TENSOR_BYTES_MAX);
    if (guaranteed != 0 && (!is_power_of_two(guaranteed) || guaranteed < element))
        return opjit_rt_refuse(
            at->error, OPJIT_INVALID_ARGUMENT,
            "{%s} {%s.GuaranteedBaseOffsetAlignment}: {%u}, must be 0 or a power of two that is at least %u", at->op,
            at->tensor, guaranteed, element);
    t->bytes = total == 0 ? implied : total;
    t->align = guaranteed > element ? guaranteed : element;
    return OPJIT_OK;
}

static opjit_status check_overlap(const place *at, const DML_BUFFER_TENSOR_DESC *d, const fe_tensor *t)
{
    char sizes[96], strides[96];

    if (d->Strides == NULL)
        return OPJIT_OK;
    switch (opjit_fe_layout_overlap(t->rank, t->sizes, t->strides)) {
    case FE_DISJOINT: return OPJIT_OK;
    case FE_SHARED:
        return opjit_rt_refuse(
            at->error, OPJIT_INVALID_ARGUMENT,
            "{%s} {%s.Strides}: {%s} with Sizes %s, two coordinates of an output may not share an element", at->op,
            at->tensor, list_text(d->Strides, t->rank, strides), list_text(d->Sizes, t->rank, sizes));
    case FE_UNDECIDED: break;
    }
    return opjit_rt_refuse(
        at->error, OPJIT_LIMIT,
        "{%s} {%s.Strides}: {%s} with Sizes %s, %u steps don't decide whether coordinates share an element", at->op,
        at->tensor, list_text(d->Strides, t->rank, strides), list_text(d->Sizes, t->rank, sizes), FE_OVERLAP_STEPS);
}

static opjit_status resolve(const place *at, const DML_TENSOR_DESC *desc, bool is_output, fe_tensor *t)
{
    DML_BUFFER_TENSOR_DESC own; /* read once, so that what is checked is what is used */
    const DML_BUFFER_TENSOR_DESC *const d = &own;

    if (desc == NULL)
        return opjit_rt_refuse(at->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {NULL}, must be a tensor", at->op,
                               at->tensor);
    if (desc->Type != DML_TENSOR_TYPE_BUFFER)
        return opjit_rt_refuse(at->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.Type}: {%u}, must be 1 (BUFFER)", at->op,
                               at->tensor, (unsigned)desc->Type);
    if (desc->Desc == NULL)
        return opjit_rt_refuse(at->error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.Desc}: {NULL}, must be a DML_BUFFER_TENSOR_DESC", at->op, at->tensor);
    memcpy(&own, desc->Desc, sizeof own);
    TRY(check_head(at, d, is_output));
    t->present = true;
    t->broadcasts = false; /* its field says */
    t->dtype = d->DataType;
    t->flags = d->Flags;
    t->rank = d->DimensionCount;
    for (uint32_t i = 0; i < OPJIT_MAX_RANK; i++) {
        t->sizes[i] = 1;
        t->strides[i] = 0;
    }
    TRY(resolve_sizes(at, d, t));
    TRY(resolve_strides(at, d, is_output, t));
    TRY(resolve_memory(at, d, t));
    return is_output ? check_overlap(at, d, t) : OPJIT_OK;
}

opjit_status opjit_fe_tensor_resolve(const DML_TENSOR_DESC *desc, bool is_output, const char *op, const char *tensor,
                                     fe_tensor *out, opjit_error *error)
{
    /* A success sets every field, so nothing is cleared before: that would take as long as the checks. */
    const opjit_status status = resolve(&(place){ op, tensor, error }, desc, is_output, out);

    if (status != OPJIT_OK)
        *out = (fe_tensor){ 0 };
    return status;
}
