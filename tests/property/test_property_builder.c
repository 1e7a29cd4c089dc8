/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_builder.c - whatever operator of the table, with random fields and shapes: the graph builder, which is
 * given handles and fields, makes the same kernel (the same key, and so the same bits) as a DML_GRAPH_DESC with all
 * tensors written out.  And random views of views hold the elements that a loop over coordinates says. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/graph.h>

#include "frontend/ops/op.h"
#include "tests/reference/pointwise.h"
#include "tests/support/computed.h"
#include "tests/support/graph_case.h"
#include "tests/support/moves.h"
#include "tests/support/pointwise_case.h"

enum { TENSORS = MOVE_TENSORS, DESC_BYTES = 256, ELEMENTS = 200 };

/* An operator with its tensors, described by hand, and what the builder gets instead. */
typedef struct built_case {
    DML_OPERATOR_TYPE type;
    const op_def *def;
    union {
        max_align_t align;
        unsigned char bytes[DESC_BYTES];
    } desc;                                 /* fields, with pointers to the hand's tensors */
    const DML_TENSOR_DESC *inputs[TENSORS]; /* the hand's; NULL: absent */
    test_tensor own[TENSORS];               /* what the builder's inputs are declared as */
    uint32_t input_count, output_count;
    bool has_gap; /* an output is absent before one that is there */
    opjit_tensor_type outputs[TENSORS], asked[TENSORS];
    pointwise_case pointwise;
    move_case move;
    test_case generator;
    computed_case computed;
    test_tensor tensors[2];
    uint32_t axes[8];
} built_case;

static opjit_context *context;

/* --- fields of a descriptor --------------------------------------------------------------------------------------- */

static bool is_tensor(const op_field *field)
{
    return field->kind <= OP_OUTPUTS;
}

static uint32_t read_u32(const built_case *c, size_t offset)
{
    uint32_t value;
    memcpy(&value, c->desc.bytes + offset, sizeof value);
    return value;
}

/* Tensors without gaps: what the builder makes of an output. */
static void pack(test_tensor *t)
{
    t->buffer.Strides = NULL;
    t->buffer.TotalTensorSizeInBytes = 0;
    t->buffer.GuaranteedBaseOffsetAlignment = 0;
}

static opjit_tensor_type type_of(const DML_TENSOR_DESC *desc)
{
    const DML_BUFFER_TENSOR_DESC *buffer = desc->Desc;
    opjit_tensor_type type = { .dtype = buffer->DataType, .rank = buffer->DimensionCount };
    memcpy(type.sizes, buffer->Sizes, type.rank * sizeof *type.sizes);
    return type;
}

/* Takes the tensors out of a whole descriptor; own is as they are. */
static void take_tensors(built_case *c, const DML_OPERATOR_DESC *op)
{
    bool absent = false;
    memcpy(c->desc.bytes, op->Desc, c->def->desc_size);
    c->input_count = c->output_count = 0;
    c->has_gap = false;
    for (uint32_t i = 0; i < c->def->field_count; i++) {
        const op_field *field = &c->def->fields[i];
        const bool is_array = field->kind == OP_INPUTS || field->kind == OP_OUTPUTS;
        const DML_TENSOR_DESC *given;
        if (!is_tensor(field))
            continue;
        memcpy(&given, c->desc.bytes + field->offset, sizeof given);
        for (uint32_t k = 0; k < (is_array ? read_u32(c, field->count) : 1); k++) {
            if (field->kind == OP_INPUT || field->kind == OP_INPUTS) {
                test_tensor *own = &c->own[c->input_count];
                c->inputs[c->input_count++] = given == NULL ? NULL : &given[k];
                if (given == NULL)
                    continue;
                own->buffer = *(const DML_BUFFER_TENSOR_DESC *)given[k].Desc;
                own->desc = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &own->buffer };
            } else if (given != NULL) {
                c->has_gap = c->has_gap || absent;
                c->outputs[c->output_count++] = type_of(&given[k]);
            } else {
                absent = true;
            }
        }
    }
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

/* Whether the operator itself broadcasts the input. */
static bool broadcasts(const built_case *c, uint32_t input)
{
    uint32_t position = 0;
    for (uint32_t i = 0; i < c->def->field_count; i++)
        if (c->def->fields[i].kind == OP_INPUT && position++ == input)
            return (c->def->fields[i].flags & OP_BROADCAST) != 0;
    return false;
}

/* Of some inputs the builder gets a smaller one that it has to broadcast. */
static void shrink_inputs(test_random *r, built_case *c)
{
    uint64_t whole = test_random_below(r, c->input_count);
    if (broadcasts(c, (uint32_t)whole))
        whole = 0;
    for (uint32_t i = 0; i < c->input_count; i++) {
        test_tensor *hand = &c->pointwise.inputs[i], *own = &c->own[i];
        uint32_t kept = 0, stride = 1;
        if (c->inputs[i] == NULL)
            continue;
        if (i == whole || c->inputs[whole] == NULL || broadcasts(c, i) || test_random_chance(r, 40)) {
            own->buffer = hand->buffer;
            continue;
        }
        const uint32_t rank = hand->buffer.DimensionCount;
        const uint32_t dropped = (uint32_t)test_random_below(r, rank); /* leading dimensions */
        test_tensor_link(own, hand->buffer.DataType, rank - dropped);
        for (uint32_t d = 0; d < rank; d++) {
            const bool repeats = d < dropped || test_random_chance(r, 40);
            hand->strides[d] = repeats ? 0 : 1;
            if (d >= dropped)
                own->sizes[kept++] = repeats ? 1 : hand->sizes[d];
        }
        for (uint32_t d = rank; d-- > dropped; stride *= own->sizes[d - dropped])
            hand->strides[d] *= stride;
        pack(hand);
        hand->buffer.Strides = hand->strides;
    }
}

static void draw_pointwise(test_random *r, built_case *c)
{
    const ref_pointwise_row *row = ref_pointwise_row_of(c->type, 0);
    ck_assert_msg(row != NULL, "%s has no case", c->def->name);
    pointwise_case_random(r, row, ELEMENTS, &c->pointwise);
    pack(&c->pointwise.output);
    take_tensors(c, &c->pointwise.op);
    shrink_inputs(r, c);
}

static void draw_move(test_random *r, built_case *c)
{
    move_case_random(r, c->type, ELEMENTS, &c->move);
    for (uint32_t i = 0; i < c->move.output_count; i++)
        pack(&c->move.outputs[i]);
    take_tensors(c, &c->move.op);
}

static void draw_generator(test_random *r, built_case *c)
{
    test_case_random(r, c->type, ELEMENTS, &c->generator);
    pack(&c->generator.output);
    take_tensors(c, &c->generator.op);
}

static void draw_computed(test_random *r, const computed_row *row, built_case *c)
{
    do { /* the builder's absent outputs are the last ones */
        computed_case_random(r, row, &c->computed);
        pack(&c->computed.output);
        for (uint32_t i = 0; i < OPERATOR_OUTPUTS - 1; i++)
            pack(&c->computed.more[i]);
        take_tensors(c, &c->computed.op);
    } while (c->has_gap);
}

/* Reductions and softmax: the fields by their names. */
static void draw_along_axes(test_random *r, built_case *c)
{
    static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_FLOAT64 };
    const uint32_t rank = (uint32_t)test_random_between(r, 1, 8);
    const uint32_t function = (uint32_t)test_random_below(r, 12);
    const bool arg = c->type == DML_OPERATOR_ARGMIN || c->type == DML_OPERATOR_ARGMAX ||
                     (c->type == DML_OPERATOR_REDUCE && function < 2);
    const bool reduces = arg || c->type == DML_OPERATOR_REDUCE;
    const uint32_t count = (uint32_t)test_random_between(r, 1, rank);
    test_tensor *in = &c->tensors[0], *out = &c->tensors[1];

    test_tensor_link(in, types[test_random_below(r, 3)], rank);
    test_tensor_random_sizes(r, in, ELEMENTS);
    for (uint32_t d = 0; d < rank; d++) { /* axes in random order, each once */
        const uint32_t at = (uint32_t)test_random_below(r, d + 1);
        c->axes[d] = c->axes[at];
        c->axes[at] = d;
    }
    test_tensor_link(out, arg ? DML_TENSOR_DATA_TYPE_UINT32 : in->buffer.DataType, rank);
    memcpy(out->sizes, in->sizes, sizeof out->sizes);
    for (uint32_t i = 0; reduces && i < count; i++)
        out->sizes[c->axes[i]] = 1;
    memset(c->desc.bytes, 0, sizeof c->desc.bytes);
    for (uint32_t i = 0; i < c->def->field_count; i++) {
        const op_field *field = &c->def->fields[i];
        unsigned char *at = c->desc.bytes + field->offset;
        const DML_TENSOR_DESC *desc = field->kind == OP_OUTPUT ? &out->desc : &in->desc;
        const uint32_t *axes = c->axes;
        const uint32_t number = strcmp(field->name, "AxisCount") == 0  ? count
                                : strcmp(field->name, "Axis") == 0     ? c->axes[0]
                                : strcmp(field->name, "Function") == 0 ? function
                                                                       : (uint32_t)test_random_below(r, 2);
        if (is_tensor(field))
            memcpy(at, &desc, sizeof desc);
        else if (field->kind == OP_UINTS)
            memcpy(at, &axes, sizeof axes);
        else
            memcpy(at, &number, sizeof number);
    }
    take_tensors(c, &(DML_OPERATOR_DESC){ c->type, memcpy(c->pointwise.desc.bytes, c->desc.bytes, DESC_BYTES) });
}

static bool is_one_of(DML_OPERATOR_TYPE type, const DML_OPERATOR_TYPE *types, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (types[i] == type)
            return true;
    return false;
}

static void draw(test_random *r, uint32_t index, built_case *c)
{
    memset(c, 0, sizeof *c);
    c->def = opjit_fe_op_at(index);
    c->type = c->def->type;
    ck_assert_uint_le(c->def->desc_size, DESC_BYTES);
    if (is_one_of(c->type, move_operators, MOVE_OPERATOR_COUNT))
        draw_move(r, c);
    else if (is_one_of(c->type, test_operators, TEST_OPERATOR_COUNT))
        draw_generator(r, c);
    else if (computed_row_of(c->type) != NULL)
        draw_computed(r, computed_row_of(c->type), c);
    else if (c->def->element != NULL)
        draw_pointwise(r, c);
    else
        draw_along_axes(r, c);
}

/* --- what follows, by the words of opjit/graph.h ------------------------------------------------------------------ */

/* The type of the first output where nobody asks for one; UNKNOWN: it has to be asked for. */
static DML_TENSOR_DATA_TYPE default_type(const built_case *c)
{
    const DML_TENSOR_DATA_TYPE first = c->inputs[0] == NULL ? 0 : c->own[0].buffer.DataType;
    switch (c->type) {
    case DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR: /* see ask */
    case DML_OPERATOR_CAST: return DML_TENSOR_DATA_TYPE_UNKNOWN;
    case DML_OPERATOR_ELEMENT_WISE_LOGICAL_EQUALS:
    case DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN:
    case DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN:
    case DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL:
    case DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL:
    case DML_OPERATOR_ELEMENT_WISE_BIT_COUNT:
    case DML_OPERATOR_ELEMENT_WISE_IS_NAN:
    case DML_OPERATOR_ELEMENT_WISE_IS_INFINITY: return DML_TENSOR_DATA_TYPE_UINT8;
    case DML_OPERATOR_ARGMIN:
    case DML_OPERATOR_NONZERO_COORDINATES:
    case DML_OPERATOR_ARGMAX: return DML_TENSOR_DATA_TYPE_UINT32;
    case DML_OPERATOR_REDUCE: return read_u32(c, 0) < 2 ? DML_TENSOR_DATA_TYPE_UINT32 : first; /* ARGMAX, ARGMIN */
    case DML_OPERATOR_ONE_HOT:
    case DML_OPERATOR_ELEMENT_WISE_IF:
    case DML_OPERATOR_ELEMENT_WISE_DEQUANTIZE_LINEAR: return c->own[1].buffer.DataType;
    case DML_OPERATOR_MATRIX_MULTIPLY_INTEGER:
    case DML_OPERATOR_CONVOLUTION_INTEGER: return DML_TENSOR_DATA_TYPE_INT32;
    case DML_OPERATOR_MATRIX_MULTIPLY_INTEGER_TO_FLOAT: return c->own[1].buffer.DataType;
    case DML_OPERATOR_QUANTIZED_LINEAR_MATRIX_MULTIPLY: return c->inputs[7] == NULL ? first : c->own[7].buffer.DataType;
    case DML_OPERATOR_QUANTIZE: return c->inputs[2] == NULL ? DML_TENSOR_DATA_TYPE_UINT8 : c->own[2].buffer.DataType;
    case DML_OPERATOR_DEQUANTIZE: return c->own[1].buffer.DataType;
    case DML_OPERATOR_QUANTIZED_LINEAR_CONVOLUTION: return c->inputs[8] == NULL ? first : c->own[8].buffer.DataType;
    case DML_OPERATOR_QUANTIZED_LINEAR_AVERAGE_POOLING: return c->inputs[4] == NULL ? first : c->own[4].buffer.DataType;
    case DML_OPERATOR_ELEMENT_WISE_QUANTIZE_LINEAR:
        return c->inputs[2] == NULL ? DML_TENSOR_DATA_TYPE_UINT8 : c->own[2].buffer.DataType;
    case DML_OPERATOR_FILL_VALUE_CONSTANT:
    case DML_OPERATOR_FILL_VALUE_SEQUENCE:
    case DML_OPERATOR_DIAGONAL_MATRIX1: return c->outputs[0].dtype; /* said by ValueDataType */
    default: return first;
    }
}

static bool sizes_follow(const built_case *c)
{
    switch (c->type) {
    case DML_OPERATOR_ONE_HOT:
    case DML_OPERATOR_SLICE_GRAD:
    case DML_OPERATOR_SPLIT:
    case DML_OPERATOR_AVERAGE_POOLING_GRAD:
    case DML_OPERATOR_FOLD:
    case DML_OPERATOR_RANDOM_GENERATOR:
    case DML_OPERATOR_ROI_ALIGN:
    case DML_OPERATOR_ROI_ALIGN1:
    case DML_OPERATOR_ROI_ALIGN_GRAD:
    case DML_OPERATOR_RESAMPLE:
    case DML_OPERATOR_RESAMPLE1:
    case DML_OPERATOR_RESAMPLE2:
    case DML_OPERATOR_RESAMPLE3:
    case DML_OPERATOR_RESAMPLE_GRAD:
    case DML_OPERATOR_RESAMPLE_GRAD1:
    case DML_OPERATOR_MAX_UNPOOLING:
    case DML_OPERATOR_DIAGONAL_MATRIX:
    case DML_OPERATOR_FILL_VALUE_CONSTANT:
    case DML_OPERATOR_FILL_VALUE_SEQUENCE: return false;
    case DML_OPERATOR_UNFOLD: return c->outputs[0].rank == 3;
    case DML_OPERATOR_NONZERO_COORDINATES: /* with all coordinates */
        return c->outputs[1].sizes[c->outputs[1].rank - 1] == c->outputs[1].rank;
    case DML_OPERATOR_DIAGONAL_MATRIX1: return c->inputs[0] != NULL;
    case DML_OPERATOR_MULTIHEAD_ATTENTION:
    case DML_OPERATOR_MULTIHEAD_ATTENTION1: /* without leading sizes; with PastSequenceLengths there may be more keys */
        for (uint32_t i = 0; i < c->output_count; i++)
            if (c->outputs[i].rank != (i == 0 ? 3 : 4))
                return false;
        return c->input_count < 12 || c->inputs[11] == NULL;
    default: return true;
    }
}

/* Asks for what does not follow, and now and then for what does. */
static void ask(test_random *r, built_case *c)
{
    for (uint32_t i = 0; i < c->output_count; i++) {
        const bool index = (c->type == DML_OPERATOR_MAX_POOLING1 || c->type == DML_OPERATOR_MAX_POOLING2 ||
                            c->type == DML_OPERATOR_TOP_K || c->type == DML_OPERATOR_TOP_K1) &&
                           i == 1;
        const bool dynamic =
            c->type == DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR && c->outputs[0].dtype == DML_TENSOR_DATA_TYPE_UINT8;
        const bool type_follows =
            dynamic || (index ? DML_TENSOR_DATA_TYPE_UINT32 : default_type(c)) == c->outputs[i].dtype;
        c->asked[i] = (opjit_tensor_type){ .dtype = DML_TENSOR_DATA_TYPE_UNKNOWN };
        if (!sizes_follow(c) || test_random_chance(r, 10))
            c->asked[i] = c->outputs[i];
        c->asked[i].dtype =
            type_follows && test_random_chance(r, 90) ? DML_TENSOR_DATA_TYPE_UNKNOWN : c->outputs[i].dtype;
    }
}

/* --- both ways ---------------------------------------------------------------------------------------------------- */

static opjit_compile_options interpreted(void)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.flags = OPJIT_COMPILE_INTERPRET;
    return options;
}

static opjit_kernel *compile_by_hand(const built_case *c, uint64_t n)
{
    const opjit_compile_options options = interpreted();
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    graph_case g;
    uint32_t inputs = 0;
    graph_begin(&g, context, TENSORS + 2);
    const uint32_t node = graph_operator(&g, c->type, c->desc.bytes, "");
    for (uint32_t i = 0; i < c->input_count; i++)
        if (c->inputs[i] != NULL)
            graph_input(&g, inputs++, node, i);
    for (uint32_t i = 0; i < c->output_count; i++)
        graph_output(&g, node, i, i);
    ck_assert_msg(opjit_compile_graph(context, &g.desc, &options, &kernel, &error) == OPJIT_OK,
                  "case %" PRIu64 ", %s: %s", n, c->def->name, error.message);
    graph_end(&g);
    return kernel;
}

/* The fields alone: tensors are NULL; now and then so are counts of arrays of them, and types of scalars. */
static void strip(test_random *r, built_case *c)
{
    for (uint32_t i = 0; i < c->def->field_count; i++) {
        const op_field *field = &c->def->fields[i];
        if (is_tensor(field))
            memset(c->desc.bytes + field->offset, 0, sizeof(void *));
        if ((field->kind == OP_INPUTS || field->kind == OP_OUTPUTS) && test_random_chance(r, 50))
            memset(c->desc.bytes + field->count, 0, sizeof(uint32_t));
        if (field->kind == OP_DTYPE && c->asked[0].dtype != DML_TENSOR_DATA_TYPE_UNKNOWN && test_random_chance(r, 50))
            memset(c->desc.bytes + field->offset, 0, sizeof(uint32_t));
    }
}

static opjit_kernel *compile_by_builder(test_random *r, built_case *c, uint64_t n)
{
    const opjit_compile_options options = interpreted();
    opjit_tensor inputs[TENSORS] = { { 0, 0 } }, outputs[TENSORS];
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    opjit_graph *g = NULL;
    ck_assert_int_eq(opjit_graph_create(context, &g, NULL), OPJIT_OK);
    for (uint32_t i = 0; i < c->input_count; i++)
        if (c->inputs[i] != NULL)
            inputs[i] = opjit_graph_input_desc(g, NULL, &c->own[i].desc);
    strip(r, c);
    node.type = c->type;
    node.desc = c->desc.bytes;
    node.inputs = inputs;
    node.input_count = c->input_count;
    node.output_count = c->output_count;
    node.output_types = c->asked;
    (void)opjit_graph_add_node(g, &node, outputs);
    for (uint32_t i = 0; i < c->output_count; i++) {
        opjit_tensor_type type;
        (void)opjit_graph_output(g, NULL, outputs[i]);
        if (opjit_graph_get_type(g, outputs[i], &type) == OPJIT_OK)
            ck_assert_msg(type.dtype == c->outputs[i].dtype && type.rank == c->outputs[i].rank &&
                              memcmp(type.sizes, c->outputs[i].sizes, type.rank * sizeof *type.sizes) == 0,
                          "case %" PRIu64 ", %s: output %u has another type or other sizes", n, c->def->name, i);
    }
    ck_assert_msg(opjit_graph_compile(g, &options, &kernel, &error) == OPJIT_OK, "case %" PRIu64 ", %s: %s", n,
                  c->def->name, error.message);
    opjit_graph_destroy(g);
    return kernel;
}

START_TEST(builder_is_hand)
{
    static built_case c;
    const uint32_t index = (uint32_t)_i;
    char name[80];
    snprintf(name, sizeof name, "builder.%s", opjit_fe_op_at(index)->name);
    const test_cases cases = test_cases_init(name, 40);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, index, n);
        draw(&r, index, &c);
        ask(&r, &c);
        opjit_kernel *hand = compile_by_hand(&c, n), *built = compile_by_builder(&r, &c, n);
        ck_assert_msg(hand == built, "case %" PRIu64 ", %s: another kernel", n, c.def->name);
        opjit_kernel_release(hand);
        opjit_kernel_release(built);
        ck_assert_int_eq(opjit_cache_clear(context, NULL), OPJIT_OK);
    }
}
END_TEST

/* --- views -------------------------------------------------------------------------------------------------------- */

/* A tensor and what its elements are, in row-major order. */
typedef struct viewed {
    opjit_tensor tensor;
    uint32_t rank, sizes[8];
    uint32_t elements[4 * ELEMENTS];
    uint32_t count;
} viewed;

/* Fills `to`, whose sizes are set: element c is from's at from_of(c). */
static void move(viewed *to, const viewed *from, void (*from_of)(const void *user, const uint32_t *at, uint32_t *out),
                 const void *user)
{
    uint32_t at[8] = { 0 }, other[8];
    to->count = 1;
    for (uint32_t d = 0; d < to->rank; d++)
        to->count *= to->sizes[d];
    for (uint32_t e = 0; e < to->count; e++) {
        uint32_t index = 0;
        from_of(user, at, other);
        for (uint32_t d = 0; d < from->rank; d++)
            index = index * from->sizes[d] + other[d];
        to->elements[e] = from->elements[index];
        for (uint32_t d = to->rank; d-- > 0 && ++at[d] == to->sizes[d];)
            at[d] = 0;
    }
}

static void transposed(const void *axes, const uint32_t *at, uint32_t *out)
{
    for (uint32_t d = 0; d < ((const viewed *)axes)->rank; d++)
        out[((const viewed *)axes)->elements[d]] = at[d];
}

static void transpose(test_random *r, opjit_graph *g, viewed *to, const viewed *from)
{
    static viewed axes;
    axes.rank = to->rank = from->rank;
    for (uint32_t d = 0; d < from->rank; d++) {
        const uint32_t at = (uint32_t)test_random_below(r, d + 1);
        axes.elements[d] = axes.elements[at];
        axes.elements[at] = d;
    }
    for (uint32_t d = 0; d < from->rank; d++)
        to->sizes[d] = from->sizes[axes.elements[d]];
    move(to, from, transposed, &axes);
    to->tensor = opjit_graph_transpose(g, from->tensor, axes.elements);
}

/* The coordinate in `from` of what broadcasting repeats. */
static void broadcasted(const void *from, const uint32_t *at, uint32_t *out)
{
    const viewed *v = from;
    const uint32_t ones = v->elements[0]; /* how many dimensions were added */
    for (uint32_t d = 0; d < v->rank; d++)
        out[d] = v->sizes[d] == 1 ? 0 : at[d + ones];
}

static void broadcast(test_random *r, opjit_graph *g, viewed *to, const viewed *from)
{
    static viewed user;
    uint64_t count = from->count;
    const uint32_t ones = from->rank < 6 ? (uint32_t)test_random_below(r, 3) : 0;
    to->rank = from->rank + ones;
    for (uint32_t d = 0; d < to->rank; d++) {
        const uint32_t own = d < ones ? 1 : from->sizes[d - ones];
        to->sizes[d] = own == 1 && count <= ELEMENTS ? (uint32_t)test_random_between(r, 1, 4) : own;
        count = count / own * to->sizes[d];
    }
    user.rank = from->rank;
    memcpy(user.sizes, from->sizes, sizeof user.sizes);
    user.elements[0] = ones;
    move(to, from, broadcasted, &user);
    to->tensor = opjit_graph_broadcast(g, from->tensor, to->rank, to->sizes);
}

typedef struct cut {
    uint32_t rank, offsets[8];
    int32_t strides[8];
    uint32_t sizes[8];
} cut;

static void sliced(const void *user, const uint32_t *at, uint32_t *out)
{
    const cut *c = user;
    for (uint32_t d = 0; d < c->rank; d++) {
        const uint32_t step = (uint32_t)(c->strides[d] < 0 ? -c->strides[d] : c->strides[d]);
        out[d] = c->offsets[d] + step * (c->strides[d] < 0 ? c->sizes[d] - 1 - at[d] : at[d]);
    }
}

static void slice(test_random *r, opjit_graph *g, viewed *to, const viewed *from)
{
    const bool from_begin = test_random_chance(r, 50), plain = test_random_chance(r, 30);
    cut c = { .rank = from->rank };
    to->rank = from->rank;
    for (uint32_t d = 0; d < from->rank; d++) {
        c.offsets[d] = from_begin ? 0 : (uint32_t)test_random_below(r, from->sizes[d]);
        const uint32_t step = plain ? 1 : (uint32_t)test_random_between(r, 1, 3);
        const uint32_t most = 1 + (from->sizes[d] - 1 - c.offsets[d]) / step;
        c.sizes[d] = to->sizes[d] = (uint32_t)test_random_between(r, 1, most);
        c.strides[d] = from_begin || plain || test_random_chance(r, 50) ? (int32_t)step : -(int32_t)step;
    }
    move(to, from, sliced, &c);
    to->tensor = opjit_graph_slice(g, from->tensor, c.offsets, c.sizes, plain ? NULL : c.strides);
}

static void reshape(test_random *r, opjit_graph *g, viewed *to, const viewed *from)
{
    uint32_t left = from->count, asked[8];
    *to = *from;
    to->rank = (uint32_t)test_random_between(r, 1, 6);
    for (uint32_t d = 0; d < to->rank; d++) {
        uint32_t size = (uint32_t)test_random_between(r, 1, left);
        while (left % size != 0)
            size--;
        to->sizes[d] = d + 1 == to->rank ? left : size;
        left /= to->sizes[d];
    }
    memcpy(asked, to->sizes, sizeof asked);
    if (test_random_chance(r, 30))
        asked[test_random_below(r, to->rank)] = 0;
    to->tensor = opjit_graph_reshape(g, from->tensor, to->rank, asked);
}

static void check_views(test_random *r, uint64_t n)
{
    static viewed chain[2];
    static uint32_t input[ELEMENTS], output[4 * ELEMENTS];
    const opjit_compile_options options = interpreted();
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    opjit_graph *g = NULL;
    test_tensor t;
    viewed *last = &chain[0], *next = &chain[1];

    test_tensor_link(&t, DML_TENSOR_DATA_TYPE_UINT32, (uint32_t)test_random_between(r, 1, 5));
    test_tensor_random_sizes(r, &t, ELEMENTS);
    last->rank = t.buffer.DimensionCount;
    last->count = 1;
    memcpy(last->sizes, t.sizes, sizeof last->sizes);
    for (uint32_t d = 0; d < last->rank; d++)
        last->count *= t.sizes[d];
    ck_assert_uint_le(last->count, ELEMENTS);
    for (uint32_t e = 0; e < last->count; e++)
        last->elements[e] = input[e] = 1000 + e;
    ck_assert_int_eq(opjit_graph_create(context, &g, NULL), OPJIT_OK);
    last->tensor = opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_UINT32, last->rank, last->sizes);
    for (uint64_t steps = test_random_below(r, 6); steps > 0; steps--) {
        viewed *const other = last;
        switch (test_random_below(r, 4)) {
        case 0: transpose(r, g, next, last); break;
        case 1: broadcast(r, g, next, last); break;
        case 2: slice(r, g, next, last); break;
        default: reshape(r, g, next, last); break;
        }
        last = next;
        next = other;
    }
    (void)opjit_graph_output(g, "y", last->tensor);
    ck_assert_msg(opjit_graph_compile(g, &options, &kernel, &error) == OPJIT_OK, "case %" PRIu64 ": %s", n,
                  error.message);
    call.bindings = (const opjit_binding[]){ { input, sizeof input }, { output, sizeof output } };
    call.binding_count = 2;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "case %" PRIu64 ": %s", n, error.message);
    for (uint32_t e = 0; e < last->count; e++)
        ck_assert_msg(output[e] == last->elements[e], "case %" PRIu64 ": element %u is %u, must be %u", n, e, output[e],
                      last->elements[e]);
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
}

START_TEST(views)
{
    const test_cases cases = test_cases_init("builder.views", 1500);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, 1000, n);
        check_views(&r, n);
    }
}
END_TEST

static void setup(void)
{
    ck_assert_int_eq(opjit_context_create(NULL, &context, NULL), OPJIT_OK);
}

static void teardown(void)
{
    opjit_context_destroy(context);
}

int main(void)
{
    Suite *suite = suite_create("property.builder");
    TCase *tcase = tcase_create("builder");
    SRunner *runner = srunner_create(suite);
    int failed, operators = 0;

    while (opjit_fe_op_at((uint32_t)operators) != NULL)
        operators++;
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, builder_is_hand, 0, operators);
    tcase_add_test(tcase, views);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
