/* SPDX-License-Identifier: Apache-2.0 */
/* aot_batch.c - see aot_batch.h. */
#include "tests/support/aot_batch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/ops/op.h"
#include "tests/support/computed.h"
#include "tests/support/moves.h"
#include "tests/support/pointwise_case.h"

/* --- what is covered ---------------------------------------------------------------------------------------------- */
static bool is_tensor(const op_field *field)
{
    return field->kind == OP_INPUT || field->kind == OP_OUTPUT || field->kind == OP_INPUTS || field->kind == OP_OUTPUTS;
}

static uint32_t index_of(const op_def *def)
{
    uint32_t i = 0;
    while (opjit_fe_op_at(i) != def)
        i++;
    return i;
}

static void need_everything(aot_batch *b)
{
    const op_def *def;
    for (uint32_t i = 0; (def = opjit_fe_op_at(i)) != NULL; i++) {
        ck_assert(i < AOT_BATCH_OPERATORS && def->field_count <= AOT_BATCH_FIELDS);
        for (uint32_t f = 0; f < def->field_count; f++)
            if (is_tensor(&def->fields[f]))
                b->missing[i][f] = opjit_fe_op_support(def, def->fields[f].name, 0)->types;
    }
}

static bool is_complete(const aot_batch *b, uint32_t index)
{
    for (uint32_t f = 0; f < AOT_BATCH_FIELDS; f++)
        if (b->missing[index][f] != 0)
            return false;
    return true;
}

/* Removes the operator's types from the missing ones; returns whether any was missing. */
static bool cover(aot_batch *b, const opjit_operator *op)
{
    uint32_t *missing = b->missing[index_of(op->def)];
    bool any = false;
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const bool input = i < op->input_count;
        const uint32_t at = input ? i : i - op->input_count;
        const fe_tensor *t = input ? &op->inputs[at] : &op->outputs[at];
        const char *name = input ? op->input_names[at] : op->output_names[at];
        for (uint32_t f = 0; f < op->def->field_count && t->present; f++) {
            const size_t length = strcspn(name, "[");
            if (is_tensor(&op->def->fields[f]) && strlen(op->def->fields[f].name) == length &&
                memcmp(op->def->fields[f].name, name, length) == 0) {
                any = any || (missing[f] >> t->dtype & 1) != 0;
                missing[f] &= ~(1u << t->dtype);
            }
        }
    }
    return any;
}

void aot_batch_check_complete(const aot_batch *b)
{
    const op_def *def;
    uint32_t count = 0;
    for (uint32_t i = 0; (def = opjit_fe_op_at(i)) != NULL; i++)
        for (uint32_t f = 0; f < def->field_count; f++)
            for (uint32_t t = 0; t < 32; t++)
                if ((b->missing[i][f] >> t & 1) != 0) {
                    printf("not drawn: %s with %s of %s\n", def->name, def->fields[f].name,
                           test_type_name((DML_TENSOR_DATA_TYPE)t));
                    count++;
                }
    ck_assert_msg(count == 0, "%u types of tensors were not drawn", count);
}

/* --- subjects ----------------------------------------------------------------------------------------------------- */
typedef struct offer {
    const DML_OPERATOR_DESC *desc;
    int index_input;
    const test_late *late; /* NULL: none */
    bool if_missing;       /* only if it has a type that is missing */
} offer;

static void take(aot_batch *b, const offer *o, opjit_operator *op)
{
    aot_subject *s = &b->subjects[b->count];
    ck_assert_uint_lt(b->count + 1, AOT_BATCH_MOST);
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "kernel%u", b->count);
    s->index_input = o->index_input;
    s->op = op;
    if (o->late != NULL) {
        s->late_count = o->late->count;
        memcpy(s->late, o->late->names, sizeof o->late->names);
        memcpy(s->params, o->late->values, sizeof o->late->values);
    }
    if (aot_subject_begin(s, b->context))
        b->count++;
    else
        aot_subject_end(s);
}

/* Skips the draw if it is not legal. */
static void consider(aot_batch *b, const offer *o)
{
    opjit_operator *op;
    if (opjit_operator_create(b->context, o->desc, &op, NULL) != OPJIT_OK)
        return;
    if ((cover(b, op) || !o->if_missing) && test_random_chance(&b->r, b->percent))
        take(b, o, op);
    else
        opjit_operator_release(op);
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */
/* A reduction or a softmax, packed. */
typedef struct axes_case {
    DML_OPERATOR_DESC op;
    union {
        DML_REDUCE_OPERATOR_DESC reduce;
        DML_ARGMAX_OPERATOR_DESC arg;
        DML_ACTIVATION_SOFTMAX_OPERATOR_DESC softmax;
        DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax1;
    } desc;
    test_tensor input, output;
    uint32_t axis;
} axes_case;

static void axes_case_random(test_random *r, DML_OPERATOR_TYPE type, axes_case *c)
{
    static const DML_TENSOR_DATA_TYPE indices[] = { DML_TENSOR_DATA_TYPE_UINT32, DML_TENSOR_DATA_TYPE_INT32,
                                                    DML_TENSOR_DATA_TYPE_UINT64, DML_TENSOR_DATA_TYPE_INT64 };
    const uint32_t rank = 3;
    const DML_REDUCE_FUNCTION function = (DML_REDUCE_FUNCTION)test_random_below(r, DML_REDUCE_FUNCTION_SUM_SQUARE + 1);
    const bool reduces = type == DML_OPERATOR_REDUCE || type == DML_OPERATOR_ARGMIN || type == DML_OPERATOR_ARGMAX;
    const bool arg = reduces && (type != DML_OPERATOR_REDUCE || function == DML_REDUCE_FUNCTION_ARGMAX ||
                                 function == DML_REDUCE_FUNCTION_ARGMIN);
    const DML_TENSOR_DATA_TYPE of = test_types[test_random_below(r, TEST_TYPE_COUNT)];
    const DML_TENSOR_DESC *in = &c->input.desc, *out = &c->output.desc;
    c->axis = (uint32_t)test_random_below(r, rank);
    test_tensor_link(&c->input, of, rank);
    test_tensor_link(&c->output, arg ? indices[test_random_below(r, 4)] : of, rank);
    for (uint32_t d = 0; d < rank; d++)
        c->input.sizes[d] = c->output.sizes[d] = 1 + (uint32_t)test_random_below(r, d + 1 == rank ? 70 : 5);
    if (reduces)
        c->output.sizes[c->axis] = 1;
    c->op = (DML_OPERATOR_DESC){ type, &c->desc };
    switch (type) {
    case DML_OPERATOR_REDUCE: c->desc.reduce = (DML_REDUCE_OPERATOR_DESC){ function, in, out, 1, &c->axis }; break;
    case DML_OPERATOR_ARGMIN: /* ARGMAX's structure has the same fields */
    case DML_OPERATOR_ARGMAX:
        c->desc.arg = (DML_ARGMAX_OPERATOR_DESC){ in, out, 1, &c->axis, DML_AXIS_DIRECTION_DECREASING };
        break;
    case DML_OPERATOR_ACTIVATION_SOFTMAX1:
    case DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1:
    case DML_OPERATOR_ACTIVATION_HARDMAX1:
        c->desc.softmax1 = (DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC){ in, out, 1, &c->axis };
        break;
    default: c->desc.softmax = (DML_ACTIVATION_SOFTMAX_OPERATOR_DESC){ in, out };
    }
}

typedef struct drawn {
    test_case generator;
    test_late late;
    move_case move;
    pointwise_case pointwise;
    computed_case computed;
    axes_case axes;
} drawn;

static bool is_one_of(DML_OPERATOR_TYPE type, const DML_OPERATOR_TYPE *types, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (types[i] == type)
            return true;
    return false;
}

static void consider_random(aot_batch *b, DML_OPERATOR_TYPE type, drawn *d, bool if_missing)
{
    const ref_pointwise_row *row = ref_pointwise_row_of(type, 0);
    offer o = { .index_input = -1, .if_missing = if_missing };
    if (row != NULL) {
        pointwise_case_random(&b->r, row, 300, &d->pointwise);
        o.desc = &d->pointwise.op;
    } else if (is_one_of(type, test_operators, TEST_OPERATOR_COUNT)) {
        test_case_random(&b->r, type, 500, &d->generator);
        test_case_take_late(&b->r, &d->generator,
                            (unsigned)test_random_below(&b->r, 1u << test_case_scalars(&d->generator)), &d->late);
        o.desc = &d->generator.op;
        o.late = &d->late;
    } else if (is_one_of(type, move_operators, MOVE_OPERATOR_COUNT)) {
        move_case_random(&b->r, type, 500, &d->move);
        o.desc = &d->move.op;
        o.index_input = d->move.index_input;
    } else if (computed_row_of(type) != NULL) {
        computed_case_random(&b->r, computed_row_of(type), &d->computed);
        o.desc = &d->computed.op;
    } else {
        axes_case_random(&b->r, type, &d->axes);
        o.desc = &d->axes.op;
    }
    consider(b, &o);
}

/* Packed tensors, one subject per type of each letter. */
static void consider_plain(aot_batch *b, const ref_pointwise_row *row, pointwise_case *c)
{
    for (int letter = 0; letter < 2 && row->types[letter] != NULL; letter++)
        for (int k = 0; k < TEST_TYPE_COUNT; k++) {
            DML_TENSOR_DATA_TYPE types[2] = { DML_TENSOR_DATA_TYPE_UNKNOWN, DML_TENSOR_DATA_TYPE_UNKNOWN };
            for (int other = 0; other < 2 && row->types[other] != NULL; other++)
                for (int t = TEST_TYPE_COUNT; t-- > 0;)
                    if (ref_pointwise_allows(row, (char)('a' + other), 0, test_types[t]))
                        types[other] = test_types[t];
            types[letter] = test_types[k];
            if (!ref_pointwise_allows(row, (char)('a' + letter), 0, test_types[k]))
                continue;
            pointwise_case_plain(row, types, 1 + (uint32_t)k % 4, c);
            consider(b, &(offer){ .desc = &c->op, .index_input = -1 });
        }
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */
/* y = x + c + d, where c is too large to be folded and d is not. */
static void add_constants(aot_batch *b)
{
    static const uint32_t sizes[2] = { 40, 64 }, strides[2] = { 0, 1 };
    static float large[40 * 64], small[64];
    graph_case *const g = &b->graph;
    graph_tensor whole, row;
    const DML_TENSOR_DESC *x = graph_tensor_set(&whole, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, NULL, 0);
    const DML_TENSOR_DESC *r = graph_tensor_set(&row, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, strides, 0);
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC plain = { x, x, x }, rows = { x, r, x };
    for (uint32_t i = 0; i < 40 * 64; i++)
        large[i] = (float)i / 8;
    for (uint32_t i = 0; i < 64; i++)
        small[i] = -(float)i;
    graph_begin(g, b->context, 8);
    const uint32_t first = graph_operator(g, DML_OPERATOR_ELEMENT_WISE_ADD, &plain, "first");
    const uint32_t second = graph_operator(g, DML_OPERATOR_ELEMENT_WISE_ADD, &rows, "second");
    const uint32_t c = graph_constant(g, large, sizeof large, "large");
    const uint32_t d = graph_constant(g, small, sizeof small, "small");
    graph_input(g, 0, first, 0);
    graph_edge(g, c, 0, first, 1);
    graph_edge(g, first, 0, second, 0);
    graph_edge(g, d, 0, second, 1);
    graph_output(g, second, 0, 0);
    aot_subject *s = &b->subjects[b->count++];
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "with_constants");
    s->desc = &g->desc;
    s->index_input = -1;
    ck_assert(aot_subject_begin(s, b->context));
}

/* --- the batch ---------------------------------------------------------------------------------------------------- */
void aot_batch_begin(aot_batch *b)
{
    enum { TRIES = 3000, MORE = 2 };
    drawn *d = malloc(sizeof *d);
    const op_def *def;
    b->subjects = calloc(AOT_BATCH_MOST, sizeof *b->subjects);
    ck_assert(d != NULL && b->subjects != NULL);
    need_everything(b);
    for (uint32_t i = 0; (def = opjit_fe_op_at(i)) != NULL; i++) {
        const ref_pointwise_row *row = ref_pointwise_row_of(def->type, 0);
        if (row != NULL)
            consider_plain(b, row, &d->pointwise);
        for (uint32_t n = 0; n < TRIES && !is_complete(b, i); n++)
            consider_random(b, def->type, d, true);
        for (uint32_t n = 0; n < MORE - (row != NULL); n++)
            consider_random(b, def->type, d, false);
    }
    free(d);
    add_constants(b);
}

void aot_batch_end(aot_batch *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        aot_subject_end(&b->subjects[i]);
    graph_end(&b->graph);
    free(b->subjects);
}
