/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_graph.c - random graphs against their nodes' references run one after the other, with a buffer for each
 * value that its readers see through their own descriptors: reshaped, transposed, broadcast, in part.  As lowered,
 * through the passes, as code.  To run one case of a failure again: OPJIT_SEED=<seed> OPJIT_CASE=<number>
 * ./property_graph. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/reflect.h>

#include "tests/machines/emulated.h"
#include "tests/reference/pointwise.h"
#include "tests/support/checker.h"
#include "tests/support/executors.h"
#include "tests/support/graph_case.h"

enum {
    CASES = 250,
    INPUTS = 3,
    CONSTANTS = 2,
    NODES_MAX = 12,
    VALUES_MAX = INPUTS + CONSTANTS + NODES_MAX,
    OUTPUTS_MAX = 3,
    ELEMENTS_MAX = 128,
    FOLDED_MOST = 4096, /* bytes of a constant that is part of the kernel */
    POISON = 0xa5
};

static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_INT32, DML_TENSOR_DATA_TYPE_FLOAT32,
                                              DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_DATA_TYPE_UINT8 };
static const DML_OPERATOR_TYPE binary[] = { DML_OPERATOR_ELEMENT_WISE_ADD, DML_OPERATOR_ELEMENT_WISE_SUBTRACT,
                                            DML_OPERATOR_ELEMENT_WISE_MULTIPLY, DML_OPERATOR_ELEMENT_WISE_MAX,
                                            DML_OPERATOR_ELEMENT_WISE_MIN };

typedef enum value_kind { INPUT, CONSTANT, NODE } value_kind;

/* What a tensor's bytes are after the run. */
typedef struct value {
    value_kind kind;
    uint32_t index; /* of the graph's input, or of the node */
    bool used;      /* INPUT: some edge leads from it */
    test_tensor tensor;
    uint8_t *data;
    uint8_t *lent;  /* CONSTANT: where the kernel gets it from, if not from data */
    bool *written; /* by element of the span */
} value;

typedef struct trial {
    test_random *r;
    DML_TENSOR_DATA_TYPE type;
    uint32_t size; /* of an element */
    graph_case graph;
    value values[VALUES_MAX];
    uint32_t count;
    uint32_t outputs[OUTPUTS_MAX], output_count; /* values */
    bool lends;                                  /* some constant is above 4 KiB */
} trial;

static const test_mode modes[] = {
    { .name = "interpreted", .flags = OPJIT_COMPILE_INTERPRET },
    { .name = "quick", .level = OPJIT_LEVEL_QUICK },
    { .name = "peak", .level = OPJIT_LEVEL_PEAK },
    { .name = "x86-64-v1", .level = OPJIT_LEVEL_QUICK, .target = "cpu:x86-64-v1" },
    { .name = "quick, pieces", .level = OPJIT_LEVEL_QUICK, .how = TEST_PIECES },
};

/* --- values ------------------------------------------------------------------------------------------------------- */

static void *memory(size_t bytes)
{
    void *p = malloc(bytes);
    ck_assert_ptr_nonnull(p);
    return memset(p, POISON, bytes);
}

static value *new_value(trial *t, value_kind kind, uint32_t index)
{
    value *v = &t->values[t->count++];

    v->kind = kind;
    v->index = index;
    v->used = false;
    v->lent = NULL;
    test_tensor_measure(&v->tensor);
    v->data = memory(v->tensor.bytes);
    v->written = calloc(v->tensor.span, 1);
    ck_assert_ptr_nonnull(v->written);
    return v;
}

/* Marks what a writer of this layout writes. */
static void mark_written(value *v)
{
    const ref_tensor t = ref_tensor_of(&v->tensor.desc);
    uint32_t at[8];

    for (uint64_t i = 0; i < ref_tensor_elements(&t); i++) {
        ref_tensor_coordinates(&t, i, at);
        v->written[ref_tensor_offset(&t, at)] = true;
    }
}

/* Small numbers; their sums and products need not stay small. */
static void fill(trial *t, value *v)
{
    const ref_tensor tensor = ref_tensor_of(&v->tensor.desc);

    for (uint64_t i = 0; i < v->tensor.span; i++) {
        const float number = (float)test_random_between(t->r, -8, 8) / 4;
        uint64_t bits = 0;
        if (t->type == DML_TENSOR_DATA_TYPE_FLOAT32)
            memcpy(&bits, &number, sizeof number);
        else if (t->type == DML_TENSOR_DATA_TYPE_FLOAT16) /* exact: a quarter of a small number */
            bits = (uint64_t[]){ 0, 0x3400, 0xb800, 0x3c00, 0xc000, 0x3e00 }[test_random_below(t->r, 6)];
        else
            bits = test_random_u64(t->r);
        ref_store(&tensor, v->data, i, bits);
        v->written[i] = true;
    }
}

/* --- what a reader sees ------------------------------------------------------------------------------------------- */

static bool is_readable(const value *v, const test_tensor *t)
{
    const ref_tensor tensor = ref_tensor_of(&t->desc);
    uint32_t at[8];

    for (uint64_t i = 0; i < ref_tensor_elements(&tensor); i++) {
        ref_tensor_coordinates(&tensor, i, at);
        const uint64_t offset = ref_tensor_offset(&tensor, at);
        if (offset >= v->tensor.span || !v->written[offset])
            return false;
    }
    return true;
}

static uint32_t stride_of(const value *v, uint32_t d)
{
    return (uint32_t)ref_tensor_of(&v->tensor.desc).strides[d];
}

static void link_view(const trial *t, test_tensor *out, uint32_t rank)
{
    test_tensor_link(out, t->type, rank);
    out->buffer.Strides = out->strides;
}

/* The value as it is, with its dimensions permuted, some repeated, or its elements as if they were packed. */
static void draw_shape(trial *t, const value *v, test_tensor *out)
{
    const uint32_t rank = v->tensor.buffer.DimensionCount;

    link_view(t, out, rank);
    for (uint32_t d = 0; d < rank; d++) {
        out->sizes[d] = v->tensor.sizes[d];
        out->strides[d] = stride_of(v, d);
    }
    if (test_random_chance(t->r, 30)) { /* another order */
        const uint32_t a = (uint32_t)test_random_below(t->r, rank), b = (uint32_t)test_random_below(t->r, rank);
        const uint32_t size = out->sizes[a], stride = out->strides[a];
        out->sizes[a] = out->sizes[b];
        out->strides[a] = out->strides[b];
        out->sizes[b] = size;
        out->strides[b] = stride;
    }
    if (test_random_chance(t->r, 20)) /* broadcast */
        out->strides[test_random_below(t->r, rank)] = 0;
    if (test_random_chance(t->r, 30)) { /* reshape */
        const uint32_t count = (uint32_t)v->tensor.span, inner = (uint32_t)test_random_between(t->r, 1, 7);
        link_view(t, out, 2);
        out->sizes[1] = inner < count ? inner : count;
        out->sizes[0] = count / out->sizes[1];
        out->strides[0] = out->sizes[1];
        out->strides[1] = 1;
    }
    if (!is_readable(v, out))
        draw_shape(t, v, out); /* eventually it is drawn as it is */
}

/* Strides for the given sizes; 0 everywhere where nothing better is found. */
static void draw_strides(trial *t, const value *v, const test_tensor *like, test_tensor *out)
{
    const uint32_t rank = like->buffer.DimensionCount;

    link_view(t, out, rank);
    memcpy(out->sizes, like->sizes, sizeof out->sizes);
    for (int attempt = 0; attempt < 12; attempt++) {
        uint32_t packed = 1;
        for (uint32_t d = rank; d-- > 0; packed *= out->sizes[d]) {
            switch (attempt == 0 ? 0 : test_random_below(t->r, 4)) {
            case 0: out->strides[d] = d < v->tensor.buffer.DimensionCount ? stride_of(v, d) : 0; break;
            case 1: out->strides[d] = 0; break;
            case 2: out->strides[d] = packed; break;
            default: out->strides[d] = stride_of(v, (uint32_t)test_random_below(t->r, v->tensor.buffer.DimensionCount));
            }
        }
        if (is_readable(v, out))
            return;
    }
    memset(out->strides, 0, sizeof out->strides);
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static void connect(trial *t, value *from, uint32_t to, uint32_t input)
{
    from->used = true;
    if (from->kind == INPUT)
        graph_input(&t->graph, from->index, to, input);
    else
        graph_edge(&t->graph, from->index, 0, to, input);
}

static void random_layout(trial *t, test_tensor *out)
{
    test_tensor_random_layout(t->r, out, true);
    if (out->interleaved) { /* no address alone tells which element it is; test_fe_graph_refused.c has that case */
        out->buffer.Strides = NULL;
        out->buffer.TotalTensorSizeInBytes = 0;
    }
    out->buffer.GuaranteedBaseOffsetAlignment = 0;
}

static void add_generator(trial *t)
{
    test_tensor *out = &t->values[t->count].tensor;
    const uint32_t rank = (uint32_t)test_random_between(t->r, 2, 4);

    test_tensor_link(out, t->type, rank);
    test_tensor_random_sizes(t->r, out, ELEMENTS_MAX);
    random_layout(t, out);
    const DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC sequence = { &out->desc, t->type, { .UInt16 = 0 }, { .UInt16 = 0 } };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC band = {
        NULL, &out->desc, t->type, { .UInt16 = 0x3c00 }, (int32_t)test_random_between(t->r, -3, 3), INT32_MAX
    };
    const bool is_band = test_random_chance(t->r, 50);
    const uint32_t node = is_band ? graph_operator(&t->graph, DML_OPERATOR_DIAGONAL_MATRIX1, &band, "band")
                                  : graph_operator(&t->graph, DML_OPERATOR_FILL_VALUE_SEQUENCE, &sequence, NULL);
    value *v = new_value(t, NODE, node);
    if (is_band)
        ref_diagonal_matrix1(&band, NULL, v->data);
    else
        ref_fill_value_sequence(&sequence, v->data);
    mark_written(v);
}

static void add_reader(trial *t)
{
    value *a = &t->values[test_random_below(t->r, t->count)], *b = &t->values[test_random_below(t->r, t->count)];
    test_tensor *out = &t->values[t->count].tensor, left, right;
    uint32_t node;

    draw_shape(t, a, &left);
    draw_strides(t, b, &left, &right);
    test_tensor_link(out, t->type, left.buffer.DimensionCount);
    memcpy(out->sizes, left.sizes, sizeof out->sizes);
    random_layout(t, out);
    if (left.buffer.DimensionCount >= 2 && test_random_chance(t->r, 25)) {
        const DML_DIAGONAL_MATRIX1_OPERATOR_DESC band = {
            &left.desc, &out->desc, t->type, { .UInt16 = 0x4000 }, (int32_t)test_random_between(t->r, -3, 3), 2
        };
        node = graph_operator(&t->graph, DML_OPERATOR_DIAGONAL_MATRIX1, &band, NULL);
        connect(t, a, node, 0);
        value *v = new_value(t, NODE, node);
        ref_diagonal_matrix1(&band, a->data, v->data);
        mark_written(v);
        return;
    }
    const DML_OPERATOR_TYPE type = binary[test_random_below(t->r, sizeof binary / sizeof *binary)];
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = { &left.desc, &right.desc, &out->desc }; /* as the others */
    const DML_OPERATOR_DESC op = { type, &desc };
    const ref_argument arguments[REF_INPUTS_MAX] = { { &left.desc, a->data }, { &right.desc, b->data } };
    node = graph_operator(&t->graph, type, &desc, "binary");
    connect(t, a, node, 0);
    connect(t, b, node, 1);
    value *v = new_value(t, NODE, node);
    ref_pointwise(&op, arguments, &out->desc, v->data, v->data);
    mark_written(v);
}

/* --- nodes whose outputs have another shape, or need more than an element of their input -------------------------- */

/* The input `in`, which is value a, and the output, whose sizes are the input's until the node changes them. */
typedef struct mover {
    trial *t;
    value *a;
    test_tensor in, *out;
    uint32_t rank, axis;
} mover;

/* The node's own value, still without elements. */
static void *moved(mover *m, DML_OPERATOR_TYPE type, const void *desc, uint32_t inputs)
{
    const uint32_t node = graph_operator(&m->t->graph, type, desc, "mover");

    for (uint32_t i = 0; i < inputs; i++)
        connect(m->t, m->a, node, i);
    value *v = new_value(m->t, NODE, node);
    mark_written(v);
    return v->data;
}

static void add_scan(mover *m)
{
    test_random *r = m->t->r;
    const bool product = test_random_chance(r, 30);
    const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC desc = {
        &m->in.desc, &m->out->desc, m->axis, (DML_AXIS_DIRECTION)test_random_below(r, 2), test_random_chance(r, 50)
    };

    random_layout(m->t, m->out);
    void *const out = moved(
        m, product ? DML_OPERATOR_CUMULATIVE_PRODUCT : DML_OPERATOR_CUMULATIVE_SUMMATION, &desc, 1);
    ref_cumulative(&desc, product, m->a->data, out);
}

static void add_reduction(mover *m)
{
    static const DML_REDUCE_FUNCTION functions[] = { DML_REDUCE_FUNCTION_MAX, DML_REDUCE_FUNCTION_MIN,
                                                     DML_REDUCE_FUNCTION_SUM };
    const uint32_t known = m->t->type == DML_TENSOR_DATA_TYPE_UINT8 ? 2 : 3;
    const uint32_t axes[] = { m->axis, (m->axis + 1) % m->rank };
    const DML_REDUCE_OPERATOR_DESC desc = { functions[test_random_below(m->t->r, known)], &m->in.desc, &m->out->desc,
                                            m->rank > 1 && test_random_chance(m->t->r, 30) ? 2 : 1, axes };

    for (uint32_t i = 0; i < desc.AxisCount; i++)
        m->out->sizes[axes[i]] = 1;
    random_layout(m->t, m->out);
    void *const out = moved(m, DML_OPERATOR_REDUCE, &desc, 1);
    ref_reduce(&desc, m->a->data, out);
}

static void add_padding(mover *m)
{
    uint32_t before[8] = { 0 }, after[8] = { 0 };
    const DML_PADDING_MODE mode = (DML_PADDING_MODE)test_random_below(m->t->r, 4);
    const DML_PADDING1_OPERATOR_DESC desc = { &m->in.desc, &m->out->desc, mode, m->t->type, { .UInt16 = 0x3c00 },
                                              m->rank, before, after };
    const void *const inputs[] = { m->a->data };

    for (uint32_t d = 0; d < m->rank; d++) {
        const uint32_t most = mode == DML_PADDING_MODE_REFLECTION ? m->in.sizes[d] - 1 : m->in.sizes[d];
        before[d] = (uint32_t)test_random_below(m->t->r, (most < 3 ? most : 3) + 1);
        after[d] = (uint32_t)test_random_below(m->t->r, (most < 3 ? most : 3) + 1);
        m->out->sizes[d] += before[d] + after[d];
    }
    random_layout(m->t, m->out);
    void *const out[] = { moved(m, DML_OPERATOR_PADDING1, &desc, 1) };
    ref_padding1(&desc, inputs, out);
}

static void add_slice(mover *m)
{
    uint32_t offsets[8], windows[8];
    int32_t strides[8];
    const DML_SLICE1_OPERATOR_DESC desc = { &m->in.desc, &m->out->desc, m->rank, offsets, windows, strides };
    const void *const inputs[] = { m->a->data };

    for (uint32_t d = 0; d < m->rank; d++) {
        offsets[d] = (uint32_t)test_random_below(m->t->r, m->in.sizes[d]);
        windows[d] = (uint32_t)test_random_between(m->t->r, 1, m->in.sizes[d] - offsets[d]);
        strides[d] = (int32_t)test_random_between(m->t->r, 1, 3) * (test_random_chance(m->t->r, 30) ? -1 : 1);
        m->out->sizes[d] = (windows[d] - 1) / (uint32_t)abs(strides[d]) + 1;
    }
    random_layout(m->t, m->out);
    void *const out[] = { moved(m, DML_OPERATOR_SLICE1, &desc, 1) };
    ref_slice1(&desc, inputs, out);
}

static void add_join(mover *m)
{
    const DML_TENSOR_DESC both[] = { m->in.desc, m->in.desc };
    const DML_JOIN_OPERATOR_DESC desc = { 2, both, &m->out->desc, m->axis };
    const void *const inputs[] = { m->a->data, m->a->data };

    m->out->sizes[m->axis] *= 2;
    random_layout(m->t, m->out);
    void *const out[] = { moved(m, DML_OPERATOR_JOIN, &desc, 2) };
    ref_join(&desc, inputs, out);
}

static void add_mover(trial *t)
{
    static void (*const kinds[])(mover *) = { add_reduction, add_padding, add_slice, add_join, add_scan };
    const uint32_t known = t->type == DML_TENSOR_DATA_TYPE_UINT8 ? 4 : 5; /* scans have wide types only */
    mover m = { .t = t, .a = &t->values[test_random_below(t->r, t->count)], .out = &t->values[t->count].tensor };

    if (m.a->tensor.span > 8 * ELEMENTS_MAX)
        m.a = &t->values[0]; /* graphs must stay small */
    draw_shape(t, m.a, &m.in);
    m.rank = m.in.buffer.DimensionCount;
    m.axis = (uint32_t)test_random_below(t->r, m.rank);
    test_tensor_link(m.out, t->type, m.rank);
    memcpy(m.out->sizes, m.in.sizes, sizeof m.out->sizes);
    kinds[test_random_below(t->r, known)](&m);
}

/* So many bytes that the kernel is bound to them, at any address, of which readers need the first ones. */
static uint8_t *lend(trial *t, value *v, size_t *bytes)
{
    const size_t at = test_random_below(t->r, 16);

    *bytes = v->tensor.bytes + FOLDED_MOST + 1;
    v->lent = memory(*bytes + at);
    t->lends = true;
    return memcpy(v->lent + at, v->data, v->tensor.bytes);
}

static void add_source(trial *t, uint32_t i)
{
    const uint8_t *data;
    size_t bytes;
    test_tensor *tensor = &t->values[t->count].tensor;
    value *v;

    test_tensor_link(tensor, t->type, 2);
    tensor->sizes[0] = (uint32_t)test_random_between(t->r, 1, 8);
    tensor->sizes[1] = (uint32_t)test_random_between(t->r, 1, 16);
    v = new_value(t, i < INPUTS ? INPUT : CONSTANT, i);
    fill(t, v);
    if (v->kind != CONSTANT)
        return;
    data = v->data;
    bytes = v->tensor.bytes;
    if (test_random_chance(t->r, 40))
        data = lend(t, v, &bytes);
    v->index = graph_constant(&t->graph, data, bytes, "constant");
}

static void begin_trial(trial *t, opjit_context *context)
{
    const uint32_t nodes = (uint32_t)test_random_between(t->r, 1, NODES_MAX);

    t->type = types[test_random_below(t->r, sizeof types / sizeof *types)];
    t->size = ref_dtype_size(t->type);
    t->count = 0;
    t->lends = false;
    graph_begin(&t->graph, context, 64);
    for (uint32_t i = 0; i < INPUTS + CONSTANTS; i++)
        add_source(t, i);
    for (uint32_t i = 0; i < nodes; i++) {
        if (test_random_chance(t->r, 25))
            add_generator(t);
        else if (test_random_chance(t->r, 35))
            add_mover(t);
        else
            add_reader(t);
    }
    t->output_count = (uint32_t)test_random_between(t->r, 1, OUTPUTS_MAX);
    for (uint32_t i = 0; i < t->output_count; i++) {
        t->outputs[i] = i == 0 ? t->count - 1 : (uint32_t)test_random_between(t->r, INPUTS + CONSTANTS, t->count - 1);
        graph_output(&t->graph, t->values[t->outputs[i]].index, 0, i);
    }
}

static void end_trial(trial *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        free(t->values[i].data);
        free(t->values[i].lent);
        free(t->values[i].written);
    }
    graph_end(&t->graph);
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

/* Binds the used inputs and fresh outputs. */
static uint32_t bind(const trial *t, opjit_binding *bindings)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < INPUTS; i++)
        if (t->values[i].used)
            bindings[count++] = (opjit_binding){ t->values[i].data, t->values[i].tensor.bytes };
    for (uint32_t i = 0; i < t->output_count; i++) {
        const uint64_t bytes = t->values[t->outputs[i]].tensor.bytes;
        bindings[count++] = (opjit_binding){ memory(bytes), bytes };
    }
    return count;
}

static void compare(const trial *t, const opjit_binding *out, const char *mode, uint64_t number)
{
    for (uint32_t i = 0; i < t->output_count; i++) {
        const value *v = &t->values[t->outputs[i]];
        const ref_tensor tensor = ref_tensor_of(&v->tensor.desc);
        for (uint64_t at = 0; at < v->tensor.span; at++) {
            const uint64_t got = ref_load(&tensor, out[i].data, at), want = ref_load(&tensor, v->data, at);
            const bool nan = ref_is_nan(t->type, got) && ref_is_nan(t->type, want) && v->written[at];
            ck_assert_msg(got == want || nan,
                          "case %" PRIu64 ", %s: output %u, element %" PRIu64 ": %" PRIx64 ", not %" PRIx64, number,
                          mode, i, at, got, want);
        }
        free(out[i].data);
    }
}

static void check_lowered(const trial *t, uint64_t number)
{
    opjit_binding bindings[INPUTS + OUTPUTS_MAX];
    void *buffers[INPUTS + OUTPUTS_MAX];
    const uint32_t count = bind(t, bindings);
    opjit_error error = { 0 };

    for (uint32_t i = 0; i < count; i++)
        buffers[i] = bindings[i].data;
    ck_assert_msg(graph_run_lowered(&t->graph, buffers, &error) == OPJIT_OK, "case %" PRIu64 ": %s", number,
                  error.message);
    compare(t, bindings + count - t->output_count, "lowered", number);
}

/* What opjit_check_graph says of inputs and outputs is what the kernel's buffers became. */
static void check_tensors(const trial *t, const opjit_kernel *kernel, uint64_t number)
{
    opjit_tensor_info tensors[INPUTS + OUTPUTS_MAX];
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_error error;
    const uint32_t inputs = t->graph.desc.InputCount, all = inputs + t->output_count;
    uint32_t buffer = 0;

    for (uint32_t i = 0; i < all; i++)
        tensors[i] = (opjit_tensor_info)OPJIT_TENSOR_INFO_INIT;
    ck_assert_msg(opjit_check_graph(t->graph.context, &t->graph.desc, tensors, tensors + inputs, &error) == OPJIT_OK,
                  "case %" PRIu64 ": %s", number, error.message);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    for (uint32_t i = 0; i < all; i++) {
        const opjit_tensor_info *const tensor = &tensors[i];
        ck_assert_int_eq(tensor->rank != 0, i >= inputs || t->values[i].used);
        if (tensor->rank == 0)
            continue;
        const opjit_buffer_info *const b = &info.buffers[buffer++];
        ck_assert_msg((uint32_t)tensor->dtype == b->dtype && tensor->rank == b->rank && tensor->bytes == b->bytes &&
                          tensor->align <= b->align && memcmp(tensor->sizes, b->sizes, sizeof b->sizes) == 0,
                      "case %" PRIu64 ", buffer %u: rank %u, %" PRIu64 " bytes; the kernel's has %u, %" PRIu64, number,
                      buffer - 1, tensor->rank, tensor->bytes, b->rank, b->bytes);
    }
    ck_assert_uint_eq(buffer, info.inputs + info.outputs);
}

static void check_mode(const trial *t, const test_mode *mode, uint64_t number)
{
    opjit_binding bindings[INPUTS + OUTPUTS_MAX];
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel;
    test_executor executor;

    options.flags = mode->flags | OPJIT_COMPILE_BORROW_CONSTANTS;
    options.level = mode->level;
    options.target = mode->target;
    ck_assert_msg(test_compile_graph(t->graph.context, &t->graph.desc, &options, &kernel, &error) == OPJIT_OK,
                  "case %" PRIu64 ", %s: %s", number, mode->name, error.message);
    check_tensors(t, kernel, number);
    test_executor_init(&executor, t->r, false);
    call.bindings = bindings;
    call.binding_count = bind(t, bindings);
    call.executor = mode->how == TEST_PIECES ? &executor.executor : NULL;
    const opjit_status status = opjit_kernel_call(kernel, &call, &error);
    ck_assert_msg(status == OPJIT_OK || test_excused(mode, status), "case %" PRIu64 ", %s: %s", number, mode->name,
                  error.message);
    opjit_kernel_release(kernel);
    if (status == OPJIT_OK)
        compare(t, bindings + call.binding_count - t->output_count, mode->name, number);
}

START_TEST(graphs_are_their_nodes)
{
    const test_cases cases = test_cases_init("graph", CASES);
    opjit_context *context = test_context_create();
    const bool codegen = test_have_codegen(context);

    for (uint64_t i = cases.first; i < cases.end; i++) {
        test_random r;
        trial t = { .r = &r };
        test_random_init(&r, cases.seed, 0, i);
        begin_trial(&t, context);
        if (!t.lends) /* else it is the kernel that knows which slots constants have */
            check_lowered(&t, i);
        check_mode(&t, &modes[0], i);
        size_t count;
        const test_mode *list = test_modes(modes + 1, sizeof modes / sizeof *modes - 1, &count);
        if (codegen && (!t.lends || list == modes + 1)) /* other machines are lent nothing */
            check_mode(&t, &list[i % count], i);
        end_trial(&t);
    }
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.graph");
    TCase *tcase = tcase_create("graph");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 280);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, graphs_are_their_nodes);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
