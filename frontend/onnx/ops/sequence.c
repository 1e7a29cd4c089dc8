/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.c - sequences and optional values, which exist while the model is read alone: a sequence is a list of
 * values whose length is known, an optional value is the value itself, or none.  What is done with a sequence is done
 * with its values; only these reach the graph. */
#include "frontend/onnx/ops/ops.h"

bool opjit_onnx_takes_lists(const onnx_row *row)
{
    static const onnx_row_fn rows[] = {
        opjit_onnx_same,           opjit_onnx_loop,           opjit_onnx_sequence_at,   opjit_onnx_sequence_construct,
        opjit_onnx_sequence_empty, opjit_onnx_sequence_erase, opjit_onnx_sequence_insert, opjit_onnx_sequence_length,
        opjit_onnx_split_to_sequence, opjit_onnx_concat_from_sequence, opjit_onnx_optional, opjit_onnx_optional_get,
        opjit_onnx_optional_has,
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (row->make == rows[i])
            return true;
    return false;
}

enum { COPY = 1, PART = 16 }; /* nodes that a value counts as, so that sequences which grow again and again end */

/* A sequence of `count` values, which are to be filled; NULL: it was refused. */
static onnx_value *new_values(onnx_import *m, const onnx_call *c, uint64_t count, uint32_t each)
{
    if (count > (ONNX_NODES - m->nodes) / each) {
        opjit_onnx_refuse(m, c, OPJIT_LIMIT, "more than %u nodes, with the values of sequences", ONNX_NODES);
        return NULL;
    }
    m->nodes += (uint32_t)count * each;
    onnx_value *const values = ARENA_ARRAY(m->arena, onnx_value, (size_t)count + 1);
    if (values == NULL)
        opjit_rt_no_memory(m->error);
    return values;
}

static opjit_status give_sequence(onnx_import *m, onnx_call *c, onnx_value *values, uint64_t count)
{
    onnx_sequence *const s = ARENA_NEW(m->arena, onnx_sequence);
    if (s == NULL || values == NULL)
        return m->error->status != OPJIT_OK ? m->error->status : opjit_rt_no_memory(m->error);
    for (uint64_t i = 0; i < count; i++)
        values[i].made = NULL; /* how many read it, is known where it was made */
    *s = (onnx_sequence){ values, count };
    return opjit_onnx_give_value(m, c, 0, &(onnx_value){ .type = ONNX_SEQUENCE, .sequence = s });
}

/* Input 0, a sequence. */
static opjit_status read_sequence(onnx_import *m, const onnx_call *c, const onnx_sequence **out)
{
    TRY(opjit_onnx_need(m, c, 1));
    *out = c->inputs[0]->sequence;
    return c->inputs[0]->type == ONNX_SEQUENCE
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input 0 is no sequence");
}

static opjit_status check_tensor(onnx_import *m, const onnx_call *c, uint32_t i)
{
    return c->inputs[i]->type < ONNX_SEQUENCE
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "input %u is no tensor, and sequences hold tensors", i);
}

/* A place in a sequence that input i says, from the end where it is negative; `count` places. */
static opjit_status read_place(onnx_import *m, const onnx_call *c, uint32_t i, uint64_t count, uint64_t otherwise,
                               uint64_t *out)
{
    int64_t at = (int64_t)otherwise;
    TRY(opjit_onnx_input_int(m, c, i, &at));
    *out = (uint64_t)(at < 0 ? at + (int64_t)count : at);
    return at >= -(int64_t)count && at < (int64_t)count
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "place %lld, must be one of %llu values",
                                   (long long)at, (unsigned long long)count);
}

/* --- sequences ---------------------------------------------------------------------------------------------------- */

opjit_status opjit_onnx_sequence_construct(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, c->input_count));
    onnx_value *const values = new_values(m, c, c->input_count, COPY);
    for (uint32_t i = 0; i < c->input_count && values != NULL; i++) {
        TRY(check_tensor(m, c, i));
        values[i] = *c->inputs[i];
    }
    return give_sequence(m, c, values, c->input_count);
}

opjit_status opjit_onnx_sequence_empty(onnx_import *m, onnx_call *c)
{
    return give_sequence(m, c, new_values(m, c, 0, COPY), 0);
}

opjit_status opjit_onnx_sequence_at(onnx_import *m, onnx_call *c)
{
    const onnx_sequence *s;
    uint64_t at;
    TRY(read_sequence(m, c, &s));
    TRY(opjit_onnx_need(m, c, 2));
    TRY(read_place(m, c, 1, s->count, 0, &at));
    return opjit_onnx_give_value(m, c, 0, &s->values[at]);
}

opjit_status opjit_onnx_sequence_length(onnx_import *m, onnx_call *c)
{
    const onnx_sequence *s;
    TRY(read_sequence(m, c, &s));
    int64_t *const count = opjit_onnx_memory(m, sizeof *count);
    if (count != NULL)
        *count = (int64_t)s->count;
    return opjit_onnx_give_data(m, c, 0, ONNX_INT64, 0, NULL, count);
}

opjit_status opjit_onnx_sequence_insert(onnx_import *m, onnx_call *c)
{
    const onnx_sequence *s;
    uint64_t at;
    TRY(read_sequence(m, c, &s));
    TRY(opjit_onnx_need(m, c, 2));
    TRY(check_tensor(m, c, 1));
    int64_t place = (int64_t)s->count;
    TRY(opjit_onnx_input_int(m, c, 2, &place));
    if (place < -(int64_t)s->count || place > (int64_t)s->count)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "place %lld, must be one among or behind %llu values",
                                 (long long)place, (unsigned long long)s->count);
    at = (uint64_t)(place < 0 ? place + (int64_t)s->count : place);
    onnx_value *const values = new_values(m, c, s->count + 1, COPY);
    for (uint64_t i = 0; i <= s->count && values != NULL; i++)
        values[i] = i == at ? *c->inputs[1] : s->values[i - (i > at)];
    return give_sequence(m, c, values, s->count + 1);
}

opjit_status opjit_onnx_sequence_erase(onnx_import *m, onnx_call *c)
{
    const onnx_sequence *s;
    uint64_t at;
    TRY(read_sequence(m, c, &s));
    TRY(read_place(m, c, 1, s->count, s->count - 1, &at));
    onnx_value *const values = new_values(m, c, s->count - 1, COPY);
    for (uint64_t i = 0; i + 1 < s->count && values != NULL; i++)
        values[i] = s->values[i + (i >= at)];
    return give_sequence(m, c, values, s->count - 1);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* Calls another operator for the node's, with its attributes: of constants alone it gives constants. */
static opjit_status call(onnx_import *m, const onnx_call *c, wire_bytes op, onnx_value **inputs, uint32_t input_count,
                         onnx_value *outputs, uint32_t output_count)
{
    static const wire_bytes any = { (const uint8_t *)"y", 1 };
    onnx_node node = *c->node;
    node.op = op;
    node.domain = (wire_bytes){ NULL, 0 };
    node.output_count = output_count;
    node.outputs = ARENA_ARRAY(m->arena, wire_bytes, (size_t)output_count + 1);
    if (node.outputs == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < output_count; i++)
        node.outputs[i] = any;
    onnx_call by = { .node = &node, .row = opjit_onnx_find_row(&node), .inputs = inputs, .outputs = outputs,
                     .input_count = input_count, .output_count = output_count };
    uint64_t total = 0;
    bool constant = true;
    for (uint32_t i = 0; i < input_count && constant; i++) {
        constant = onnx_is_constant(inputs[i]) && opjit_onnx_elements_of(inputs[i]) <= ONNX_NUMBERS;
        total += constant ? opjit_onnx_elements_of(inputs[i]) : 0;
    }
    return constant && total > 0 && total <= 65536 ? opjit_onnx_fold(m, &by) : by.row->make(m, &by);
}

/* The value with other sizes, in *v. */
static opjit_status reshape(onnx_import *m, onnx_call *c, onnx_value *v, uint32_t rank, const uint64_t *dims)
{
    onnx_call by = *c;
    onnx_value made = { .type = ONNX_UNDEFINED };
    by.outputs = &made;
    by.output_count = 1;
    TRY(opjit_onnx_give_reshaped(m, &by, v, rank, dims));
    *v = made;
    return OPJIT_OK;
}

/* Sizes of the parts of `size` elements: of input 1, or all 1. */
static opjit_status read_parts(onnx_import *m, const onnx_call *c, uint64_t size, int64_t **out, uint64_t *out_count)
{
    int64_t *given, each = 1;
    uint32_t count;
    TRY(opjit_onnx_input_ints(m, c, 1, &given, &count));
    if (onnx_input(c, 1) != NULL && c->inputs[1]->rank != 0) {
        *out = given;
        *out_count = count;
        return count != 0 ? OPJIT_OK
                          : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                              "input 1 has no elements, must have one for each part");
    }
    each = count == 0 ? 1 : given[0];
    if (each < 1 || size == 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "parts of %lld of size %llu, both must be at least 1",
                                 (long long)each, (unsigned long long)size);
    *out_count = size / (uint64_t)each + (size % (uint64_t)each != 0);
    if (*out_count > ONNX_NODES)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%llu parts, must be at most %u", (unsigned long long)*out_count,
                                 ONNX_NODES);
    *out = opjit_onnx_memory(m, *out_count * sizeof **out);
    for (uint64_t i = 0; i < *out_count && *out != NULL; i++)
        (*out)[i] = (int64_t)(i + 1 < *out_count ? (uint64_t)each : size - i * (uint64_t)each);
    return *out != NULL ? OPJIT_OK : m->error->status;
}

opjit_status opjit_onnx_split_to_sequence(onnx_import *m, onnx_call *c)
{
    uint32_t axis, rank = 0;
    uint64_t count = 0, dims[ONNX_RANK];
    int64_t *parts = NULL;
    TRY(opjit_onnx_need(m, c, 1));
    TRY(check_tensor(m, c, 0));
    onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 0), x->rank, &axis));
    TRY(read_parts(m, c, x->dims[axis], &parts, &count));
    onnx_value *const values = new_values(m, c, count, PART);
    if (values == NULL)
        return m->error->status;
    onnx_value sizes = { .type = ONNX_INT64, .rank = 1, .dims = { count }, .data = parts };
    onnx_value *inputs[2] = { x, &sizes };
    TRY(call(m, c, (wire_bytes){ (const uint8_t *)"Split", 5 }, inputs, 2, values, (uint32_t)count));
    for (uint32_t d = 0; d < x->rank; d++)
        if (d != axis)
            dims[rank++] = x->dims[d];
    if (onnx_input(c, 1) == NULL && opjit_onnx_int(m, c, "keepdims", 1) == 0)
        for (uint64_t i = 0; i < count; i++)
            TRY(reshape(m, c, &values[i], rank, dims));
    return give_sequence(m, c, values, count);
}

opjit_status opjit_onnx_concat_from_sequence(onnx_import *m, onnx_call *c)
{
    const onnx_sequence *s;
    const bool is_new = opjit_onnx_int(m, c, "new_axis", 0) != 0;
    TRY(read_sequence(m, c, &s));
    if (s->count == 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input 0 is a sequence without tensors, must have one");
    onnx_value *const values = new_values(m, c, s->count, PART);
    onnx_value **const inputs = ARENA_ARRAY(m->arena, onnx_value *, (size_t)s->count);
    if (values == NULL || inputs == NULL)
        return m->error->status != OPJIT_OK ? m->error->status : opjit_rt_no_memory(m->error);
    for (uint64_t i = 0; i < s->count; i++) {
        uint64_t dims[ONNX_RANK + 1];
        uint32_t axis = 0;
        onnx_value *const v = inputs[i] = &values[i];
        *v = s->values[i];
        if (v->type != s->values[0].type || v->rank != s->values[0].rank)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "value %llu has another type or rank than the first",
                                     (unsigned long long)i);
        if (!is_new)
            continue;
        TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 0), v->rank + 1, &axis));
        for (uint32_t d = 0; d <= v->rank; d++)
            dims[d] = d == axis ? 1 : v->dims[d - (d > axis)];
        if (v->rank == ONNX_RANK)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions, must be at most %u", ONNX_RANK + 1,
                                     ONNX_RANK);
        TRY(reshape(m, c, v, v->rank + 1, dims));
    }
    return call(m, c, (wire_bytes){ (const uint8_t *)"Concat", 6 }, inputs, (uint32_t)s->count, c->outputs,
                c->output_count == 0 ? 0 : 1);
}

/* --- optional values ---------------------------------------------------------------------------------------------- */

opjit_status opjit_onnx_optional(onnx_import *m, onnx_call *c)
{
    const onnx_value *const v = onnx_input(c, 0);
    return opjit_onnx_give_value(m, c, 0, v != NULL ? v : &(onnx_value){ .type = ONNX_NO_VALUE });
}

opjit_status opjit_onnx_optional_has(onnx_import *m, onnx_call *c)
{
    const onnx_value *const v = onnx_input(c, 0);
    uint8_t *const answer = opjit_onnx_memory(m, sizeof *answer);
    if (answer != NULL)
        *answer = v != NULL && v->type != ONNX_NO_VALUE;
    return opjit_onnx_give_data(m, c, 0, ONNX_BOOL, 0, NULL, answer);
}

opjit_status opjit_onnx_optional_get(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    return c->inputs[0]->type != ONNX_NO_VALUE
               ? opjit_onnx_give_value(m, c, 0, c->inputs[0])
               : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input 0 is an optional value without an element");
}
