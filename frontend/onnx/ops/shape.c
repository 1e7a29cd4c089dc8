/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c - operators that give sizes, or the same elements by other sizes. */
#include <math.h>

#include "frontend/onnx/ops/ops.h"

/* A constant of INT64 numbers. */
static opjit_status give_numbers(onnx_import *m, onnx_call *c, const uint64_t *numbers, uint32_t count, uint32_t rank)
{
    const uint64_t dims[1] = { count };
    return opjit_onnx_give_data(m, c, 0, ONNX_INT64, rank, dims,
                                opjit_rt_arena_copy(m->arena, numbers, (size_t)count + 1, sizeof *numbers));
}

opjit_status opjit_onnx_shape(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    const int64_t rank = x->rank;
    int64_t start = opjit_onnx_int(m, c, "start", 0), end = opjit_onnx_int(m, c, "end", rank);
    uint64_t dims[ONNX_RANK + 1] = { 0 };
    memcpy(dims, x->dims, sizeof x->dims);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    return give_numbers(m, c, dims + start, (uint32_t)(end - start), 1);
}

opjit_status opjit_onnx_size(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const uint64_t count[2] = { opjit_onnx_elements_of(c->inputs[0]), 0 };
    return give_numbers(m, c, count, 1, 0);
}

opjit_status opjit_onnx_same(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    return opjit_onnx_give_value(m, c, 0, c->inputs[0]);
}

/* As in inference: the elements themselves, and a mask of nothing but true; before opset 12, as in ONNX Runtime, of
 * nothing but 0, and before 10 of the elements' type. */
opjit_status opjit_onnx_dropout(onnx_import *m, onnx_call *c)
{
    int64_t training = 0;
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_input_int(m, c, 2, &training));
    if (training != 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "training is not taken");
    TRY(opjit_onnx_give_value(m, c, 0, x));
    if (!onnx_wants(c, 1))
        return OPJIT_OK;
    uint32_t sizes[ONNX_RANK] = { 1 };
    for (uint32_t d = 0; d < x->rank; d++)
        sizes[d] = (uint32_t)x->dims[d];
    const int32_t type = m->opset < 10 ? x->type : ONNX_BOOL;
    const opjit_tensor mask = opjit_graph_fill(m->graph, opjit_onnx_dtype(type), x->rank == 0 ? 1 : x->rank, sizes,
                                               m->opset < 12 ? 0 : 1);
    return opjit_onnx_give_as(m, c, 1, mask, type, x->rank, x->dims);
}

opjit_status opjit_onnx_constant(onnx_import *m, onnx_call *c)
{
    const uint64_t one[1] = { 1 };
    const onnx_attribute *const a = c->node->attribute_count == 0 ? NULL : &c->node->attributes[0];
    const onnx_attribute *const value = opjit_onnx_attribute(m, c, "value");
    if (value != NULL && value->tensor != NULL) {
        onnx_value v = { .type = opjit_onnx_read_type(value->tensor->type), .rank = value->tensor->rank,
                         .source = value->tensor };
        memcpy(v.dims, value->tensor->dims, sizeof v.dims);
        return opjit_onnx_give_value(m, c, 0, &v);
    }
    if (a == NULL)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute value is missing");
    const onnx_attribute *number = opjit_onnx_attribute(m, c, "value_int");
    if (number != NULL)
        return opjit_onnx_give_data(m, c, 0, ONNX_INT64, 0, one, &number->i);
    number = opjit_onnx_attribute(m, c, "value_float");
    if (number != NULL)
        return opjit_onnx_give_data(m, c, 0, ONNX_FLOAT, 0, one, &number->f);
    number = opjit_onnx_attribute(m, c, "value_ints");
    const uint64_t count[1] = { number == NULL ? 0 : number->count };
    if (number != NULL && number->ints != NULL)
        return opjit_onnx_give_data(m, c, 0, ONNX_INT64, 1, count, number->ints);
    number = opjit_onnx_attribute(m, c, "value_floats");
    const uint64_t floats[1] = { number == NULL ? 0 : number->count };
    if (number != NULL && number->floats != NULL)
        return opjit_onnx_give_data(m, c, 0, ONNX_FLOAT, 1, floats, number->floats);
    return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "a constant of attribute " ONNX_NAME " is not taken",
                             ONNX_SHOW(a->name));
}

/* --- the same elements -------------------------------------------------------------------------------------------- */

opjit_status opjit_onnx_reshape_to(onnx_import *m, onnx_call *c)
{
    int64_t *sizes;
    uint32_t count;
    uint64_t dims[ONNX_RANK], known = 1;
    int32_t open = -1;
    TRY(opjit_onnx_need(m, c, 2));
    onnx_value *const x = c->inputs[0];
    const bool zero_is_zero = opjit_onnx_int(m, c, "allowzero", 0) != 0;
    TRY(opjit_onnx_input_ints(m, c, 1, &sizes, &count));
    if (count > ONNX_RANK)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%u dimensions, must be at most %u", count, ONNX_RANK);
    for (uint32_t d = 0; d < count; d++) {
        dims[d] = sizes[d] == 0 && !zero_is_zero && d < x->rank ? x->dims[d] : (uint64_t)sizes[d];
        if (sizes[d] == -1 && open >= 0)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "sizes %d and %u of input 1 are -1, one may be",
                                     open, d);
        if (sizes[d] == -1)
            open = (int32_t)d;
        else if (sizes[d] < 0 || sizes[d] > UINT32_MAX)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "size %u of input 1: %lld, must be -1 to 2^32 - 1",
                                     d, (long long)sizes[d]);
        else if (!checked_mul(known, dims[d], &known))
            known = UINT64_MAX; /* more than there are */
    }
    const uint64_t elements = opjit_onnx_elements_of(x);
    if (open >= 0)
        dims[open] = known == 0 ? 0 : elements / known;
    if ((open >= 0 ? dims[open] * known : known) != elements)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%llu elements, but the sizes of input 1 are for %s%llu",
                                 (unsigned long long)elements, open >= 0 ? "a multiple of " : "",
                                 (unsigned long long)known);
    return opjit_onnx_give_reshaped(m, c, x, count, dims);
}

opjit_status opjit_onnx_flatten(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    onnx_value *const x = c->inputs[0];
    int64_t axis = opjit_onnx_int(m, c, "axis", 1);
    uint64_t dims[2] = { 1, 1 };
    axis = axis < 0 ? axis + x->rank : axis;
    if (axis < 0 || axis > x->rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute axis: %lld, must be %d to %u",
                                 (long long)opjit_onnx_int(m, c, "axis", 1), -(int)x->rank, x->rank);
    for (uint32_t d = 0; d < x->rank; d++)
        dims[d >= axis] *= x->dims[d];
    return opjit_onnx_give_reshaped(m, c, x, 2, dims);
}

opjit_status opjit_onnx_squeeze(onnx_import *m, onnx_call *c)
{
    uint32_t axes[ONNX_RANK], count, rank = 0;
    uint64_t dims[ONNX_RANK];
    bool drop[ONNX_RANK] = { false };
    TRY(opjit_onnx_need(m, c, 1));
    onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_axes(m, c, "axes", 1, x->rank, axes, &count));
    for (uint32_t i = 0; i < count; i++)
        drop[axes[i]] = true;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (count == 0)
            drop[d] = x->dims[d] == 1;
        if (drop[d] && x->dims[d] != 1)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "size %u is %llu, must be 1 to be left out", d,
                                     (unsigned long long)x->dims[d]);
        if (!drop[d])
            dims[rank++] = x->dims[d];
    }
    return opjit_onnx_give_reshaped(m, c, x, rank, dims);
}

opjit_status opjit_onnx_unsqueeze(onnx_import *m, onnx_call *c)
{
    uint64_t dims[ONNX_RANK];
    bool is_new[ONNX_RANK] = { false };
    int64_t *axes = NULL;
    uint32_t count = 0;
    TRY(opjit_onnx_need(m, c, 1));
    onnx_value *const x = c->inputs[0];
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, "axes");
    if (a != NULL && a->ints != NULL) {
        axes = a->ints;
        count = a->count;
    } else {
        TRY(opjit_onnx_input_ints(m, c, 1, &axes, &count));
    }
    const uint32_t rank = x->rank + count;
    if (count > ONNX_RANK || rank > ONNX_RANK)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%u dimensions, must be at most %u", rank, ONNX_RANK);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        TRY(opjit_onnx_axis(m, c, axes[i], rank, &axis));
        if (is_new[axis])
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "axis %u is given twice", axis);
        is_new[axis] = true;
    }
    for (uint32_t d = 0, of = 0; d < rank; d++)
        dims[d] = is_new[d] ? 1 : x->dims[of++];
    return opjit_onnx_give_reshaped(m, c, x, rank, dims);
}

opjit_tensor opjit_onnx_transpose_tensor(onnx_import *m, opjit_tensor x, uint32_t rank, const uint32_t *axes)
{
    return rank == 0 ? x : opjit_graph_transpose(m->graph, x, axes);
}

opjit_status opjit_onnx_transpose(onnx_import *m, onnx_call *c)
{
    uint32_t axes[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, "perm");
    bool seen[ONNX_RANK] = { false };
    if (a != NULL && a->count != x->rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute perm: %u numbers, must be %u", a->count,
                                 x->rank);
    for (uint32_t d = 0; d < x->rank; d++) {
        axes[d] = x->rank - 1 - d;
        if (a != NULL && a->ints != NULL)
            TRY(opjit_onnx_axis(m, c, a->ints[d], x->rank, &axes[d]));
        if (seen[axes[d]])
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute perm: %u is given twice", axes[d]);
        seen[axes[d]] = true;
    }
    if (opjit_onnx_elements_of(x) == 0) {
        uint64_t dims[ONNX_RANK];
        for (uint32_t d = 0; d < x->rank; d++)
            dims[d] = x->dims[axes[d]];
        return opjit_onnx_give_nothing(m, c, 0, x->type, x->rank, dims);
    }
    const opjit_tensor y = opjit_onnx_transpose_tensor(m, onnx_tensor_of(m, c, 0), x->rank, axes);
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}

/* The sizes that x and `sizes` have when broadcast to each other. */
static opjit_status broadcast_sizes(onnx_import *m, const onnx_call *c, const onnx_value *x, const int64_t *sizes,
                                    uint32_t count, uint64_t *dims, uint32_t *out_rank)
{
    const uint32_t rank = x->rank > count ? x->rank : count;
    if (rank > ONNX_RANK)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%u dimensions, must be at most %u", rank, ONNX_RANK);
    for (uint32_t d = 0; d < rank; d++) {
        const uint64_t have = d < rank - x->rank ? 1 : x->dims[d - (rank - x->rank)];
        const int64_t want = d < rank - count ? 1 : sizes[d - (rank - count)];
        dims[d] = have == 1 ? (uint64_t)want : have;
        if (want < 0 || (have != 1 && want != 1 && have != (uint64_t)want))
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "size %u is %llu, which can't become %lld", d,
                                     (unsigned long long)have, (long long)want);
        if (dims[d] > UINT32_MAX)
            return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "size %u is %llu, must be 0 to 2^32 - 1", d,
                                     (unsigned long long)dims[d]);
    }
    *out_rank = rank;
    return OPJIT_OK;
}

opjit_status opjit_onnx_expand(onnx_import *m, onnx_call *c)
{
    int64_t *sizes;
    uint32_t count, rank = 0, narrow[ONNX_RANK] = { 1 };
    uint64_t dims[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 2));
    onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_input_ints(m, c, 1, &sizes, &count));
    TRY(broadcast_sizes(m, c, x, sizes, count, dims, &rank));
    bool is_empty = false;
    for (uint32_t d = 0; d < rank; d++) {
        narrow[d] = (uint32_t)dims[d];
        is_empty = is_empty || dims[d] == 0;
    }
    if (is_empty)
        return opjit_onnx_give_nothing(m, c, 0, x->type, rank, dims);
    const opjit_tensor y = opjit_graph_broadcast(m->graph, onnx_tensor_of(m, c, 0), rank == 0 ? 1 : rank, narrow);
    return opjit_onnx_give(m, c, 0, y, x->type, rank);
}

/* --- made of numbers ---------------------------------------------------------------------------------------------- */

opjit_status opjit_onnx_constant_of_shape(onnx_import *m, onnx_call *c)
{
    static const float zero = 0;
    int64_t *sizes;
    uint32_t count;
    uint64_t dims[ONNX_RANK], elements = 1;
    TRY(opjit_onnx_need(m, c, 1));
    TRY(opjit_onnx_input_ints(m, c, 0, &sizes, &count));
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, "value");
    onnx_value v = { .type = ONNX_FLOAT, .data = &zero };
    if (a != NULL && a->tensor != NULL)
        v = (onnx_value){ .type = opjit_onnx_read_type(a->tensor->type), .source = a->tensor };
    if (count > ONNX_RANK || opjit_onnx_dtype(v.type) == DML_TENSOR_DATA_TYPE_UNKNOWN)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "%u dimensions of %s, must be at most 8 of a type that opjit has", count,
                                 opjit_onnx_type_name(v.type).text);
    for (uint32_t d = 0; d < count; d++) {
        if (sizes[d] < 0 || sizes[d] > UINT32_MAX || !checked_mul(elements, (uint64_t)sizes[d], &elements))
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "size %u of input 0: %lld, must be 0 to 2^32 - 1", d,
                                     (long long)sizes[d]);
        dims[d] = (uint64_t)sizes[d];
    }
    if (elements == 0)
        return opjit_onnx_give_nothing(m, c, 0, v.type, count, dims);
    if (v.source != NULL && v.source->elements != 1)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute value: %llu elements, must be 1",
                                 (unsigned long long)v.source->elements);
    return opjit_onnx_give_everywhere(m, c, 0, opjit_onnx_tensor(m, &v), v.type, count, dims);
}

opjit_status opjit_onnx_range(onnx_import *m, onnx_call *c)
{
    double *numbers[3];
    uint32_t count;
    TRY(opjit_onnx_need(m, c, 3));
    for (uint32_t i = 0; i < 3; i++) {
        TRY(opjit_onnx_input_floats(m, c, i, &numbers[i], &count));
        if (count != 1)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u has %u elements, must be 1", i, count);
    }
    const double start = numbers[0][0], step = numbers[2][0];
    const double length = step == 0 ? -1 : ceil((numbers[1][0] - start) / step);
    if (step == 0 || !(length <= UINT32_MAX)) /* or a NaN */
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "from %g to %g by %g are none or 2^32 elements and more",
                                 start, numbers[1][0], step);
    const uint64_t dims[1] = { length > 0 ? (uint64_t)length : 0 };
    const int32_t type = c->inputs[0]->type;
    if (dims[0] == 0)
        return opjit_onnx_give_data(m, c, 0, type, 1, dims, numbers[0]);
    const uint32_t size[1] = { (uint32_t)dims[0] };
    return opjit_onnx_give_as(m, c, 0, opjit_graph_sequence(m->graph, opjit_onnx_dtype(type), 1, size, start, step),
                              type, 1, dims);
}

opjit_status opjit_onnx_eye_like(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    const int32_t type = (int32_t)opjit_onnx_int(m, c, "dtype", x->type);
    const int64_t k = opjit_onnx_int(m, c, "k", 0);
    if (x->rank != 2 || opjit_onnx_dtype(type) == DML_TENSOR_DATA_TYPE_UNKNOWN || k < -INT32_MAX || k >= INT32_MAX)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions of %s, diagonal %lld", x->rank,
                                 opjit_onnx_type_name(type).text, (long long)k);
    const uint32_t sizes[2] = { (uint32_t)x->dims[0], (uint32_t)x->dims[1] };
    return opjit_onnx_give(m, c, 0, opjit_graph_eye(m->graph, opjit_onnx_dtype(type), 2, sizes, (int32_t)k), type, 2);
}

opjit_status opjit_onnx_trilu(onnx_import *m, onnx_call *c)
{
    int64_t k = 0;
    TRY(opjit_onnx_need(m, c, 1));
    TRY(opjit_onnx_input_int(m, c, 1, &k));
    const onnx_value *const x = c->inputs[0];
    const int32_t diagonal = k > INT32_MAX - 1 ? INT32_MAX - 1 : k < -INT32_MAX ? -INT32_MAX : (int32_t)k;
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    const opjit_tensor y = opjit_onnx_int(m, c, "upper", 1) != 0 ? opjit_graph_upper_triangle(m->graph, t, diagonal)
                                                                : opjit_graph_lower_triangle(m->graph, t, diagonal);
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}
