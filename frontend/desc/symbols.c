/* SPDX-License-Identifier: Apache-2.0 */
/* symbols.c - descriptors in which OPJIT_DIM stands for sizes: a copy with the sizes themselves. */
#include <string.h>

#include "frontend/frontend.h"

#include <opjit/dynamic.h>

/* State of the walk over a descriptor's fields. */
typedef struct walk {
    rt_arena *arena;
    const uint64_t *dims;
    uint32_t dim_count;
} walk;

static bool is_symbol(const walk *w, uint32_t number)
{
    return number >= OPJIT_DIM(0) && number - OPJIT_DIM(0) < w->dim_count;
}

/* A copy of the numbers, with sizes in place of symbols; NULL: no memory. */
static const uint32_t *put_numbers(const walk *w, const uint32_t *from, uint32_t count, bool *has_symbol)
{
    uint32_t *const copy = opjit_rt_arena_copy(w->arena, from, count, sizeof *copy);

    for (uint32_t i = 0; copy != NULL && i < count; i++)
        if (is_symbol(w, copy[i])) {
            copy[i] = (uint32_t)w->dims[copy[i] - OPJIT_DIM(0)];
            *has_symbol = true;
        }
    return copy;
}

static bool put_tensor(const walk *w, DML_TENSOR_DESC *desc)
{
    DML_BUFFER_TENSOR_DESC *copy;
    bool has_symbol = false;

    if (desc->Type != DML_TENSOR_TYPE_BUFFER || desc->Desc == NULL)
        return true; /* refused by whoever makes the operator */
    copy = opjit_rt_arena_copy(w->arena, desc->Desc, 1, sizeof *copy);
    if (copy == NULL)
        return false;
    desc->Desc = copy;
    if (copy->Sizes == NULL || copy->DimensionCount > OPJIT_MAX_RANK)
        return true;
    copy->Sizes = put_numbers(w, copy->Sizes, copy->DimensionCount, &has_symbol);
    if (has_symbol)
        copy->TotalTensorSizeInBytes = 0;
    return copy->Sizes != NULL;
}

/* The field's array, read from the descriptor and replaced in its copy. */
static bool put_field(const walk *w, const op_field *field, uint8_t *desc)
{
    const bool is_tensor = field->kind <= OP_OUTPUTS, is_array = field->kind == OP_INPUTS || field->kind == OP_OUTPUTS;
    const void *from, *to;
    uint32_t count = 1;
    bool ignored;

    if (!is_tensor && field->kind != OP_UINTS)
        return true;
    memcpy(&from, desc + field->offset, sizeof from);
    if (is_array || !is_tensor)
        memcpy(&count, desc + field->count, sizeof count);
    if (from == NULL || count > FE_NUMBERS_MAX)
        return true; /* absent, or refused by whoever makes the operator */
    if (is_tensor) {
        DML_TENSOR_DESC *const copy = opjit_rt_arena_copy(w->arena, from, count, sizeof *copy);
        for (uint32_t i = 0; copy != NULL && i < count; i++)
            if (!put_tensor(w, &copy[i]))
                return false;
        to = copy;
    } else {
        to = put_numbers(w, from, count, &ignored);
    }
    memcpy(desc + field->offset, &to, sizeof to);
    return to != NULL;
}

opjit_status opjit_fe_put_sizes(const DML_OPERATOR_DESC *from, const uint64_t *dims, uint32_t dim_count,
                                rt_arena *arena, DML_OPERATOR_DESC *out, opjit_error *error)
{
    const walk w = { arena, dims, dim_count };
    const op_def *const def = opjit_fe_op_find(from->Type);

    *out = *from;
    if (def == NULL || from->Desc == NULL)
        return OPJIT_OK; /* refused by whoever makes the operator */
    uint8_t *const copy = opjit_rt_arena_copy(arena, from->Desc, 1, def->desc_size);
    for (uint32_t i = 0; copy != NULL && i < def->field_count; i++)
        if (!put_field(&w, &def->fields[i], copy))
            return opjit_rt_no_memory(error);
    out->Desc = copy;
    return copy == NULL ? opjit_rt_no_memory(error) : OPJIT_OK;
}

opjit_status opjit_fe_refuse_symbol(const char *op, const char *array, uint32_t index, uint32_t number,
                                    opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                           "{%s} {%s[%u]}: {OPJIT_DIM(%u)}, must be a number, or one of the dimensions that "
                           "opjit_compile_dynamic_desc is given",
                           op, array, index, number - OPJIT_DIM(0));
}
