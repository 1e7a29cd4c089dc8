/* SPDX-License-Identifier: Apache-2.0 */
/* moves.c - draws descriptors of the operators that move elements, and runs their reference. */
#include "tests/support/moves.h"

#include <string.h>

/* clang-format off */
static const struct { DML_OPERATOR_TYPE type; const char *name; } names[MOVE_OPERATOR_COUNT] = {
#define ROW(name) { DML_OPERATOR_##name, #name }
    ROW(SLICE), ROW(SLICE1), ROW(SLICE_GRAD), ROW(JOIN), ROW(SPLIT), ROW(TILE), ROW(PADDING), ROW(PADDING1),
    ROW(REVERSE_SUBSEQUENCES), ROW(SPACE_TO_DEPTH), ROW(SPACE_TO_DEPTH1), ROW(DEPTH_TO_SPACE), ROW(DEPTH_TO_SPACE1),
    ROW(GATHER), ROW(GATHER_ELEMENTS), ROW(GATHER_ND), ROW(GATHER_ND1), ROW(ONE_HOT),
    ROW(SCATTER_ELEMENTS), ROW(SCATTER_ND), ROW(MAX_UNPOOLING), ROW(NONZERO_COORDINATES),
#undef ROW
    { OPJIT_OPERATOR_SCATTER_REDUCE, "SCATTER_REDUCE" },
};
const DML_OPERATOR_TYPE move_operators[MOVE_OPERATOR_COUNT] = {
    DML_OPERATOR_SLICE, DML_OPERATOR_SLICE1, DML_OPERATOR_SLICE_GRAD, DML_OPERATOR_JOIN, DML_OPERATOR_SPLIT,
    DML_OPERATOR_TILE, DML_OPERATOR_PADDING, DML_OPERATOR_PADDING1, DML_OPERATOR_REVERSE_SUBSEQUENCES,
    DML_OPERATOR_SPACE_TO_DEPTH, DML_OPERATOR_SPACE_TO_DEPTH1, DML_OPERATOR_DEPTH_TO_SPACE,
    DML_OPERATOR_DEPTH_TO_SPACE1, DML_OPERATOR_GATHER, DML_OPERATOR_GATHER_ELEMENTS, DML_OPERATOR_GATHER_ND,
    DML_OPERATOR_GATHER_ND1, DML_OPERATOR_ONE_HOT, DML_OPERATOR_SCATTER_ELEMENTS, DML_OPERATOR_SCATTER_ND,
    DML_OPERATOR_MAX_UNPOOLING, DML_OPERATOR_NONZERO_COORDINATES, OPJIT_OPERATOR_SCATTER_REDUCE,
};
/* clang-format on */

const char *move_operator_name(DML_OPERATOR_TYPE type)
{
    uint32_t i = 0;
    while (names[i].type != type)
        i++;
    return names[i].name;
}

/* What one draw works with. */
typedef struct draw {
    test_random *r;
    move_case *c;
    DML_TENSOR_DATA_TYPE type;
    uint32_t rank;
    uint64_t elements;
} draw;

static uint32_t below(draw *d, uint64_t bound)
{
    return (uint32_t)test_random_below(d->r, bound);
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */
static test_tensor *add(draw *d, bool is_output, DML_TENSOR_DATA_TYPE type, const uint32_t *sizes)
{
    move_case *c = d->c;
    test_tensor *t = is_output ? &c->outputs[c->output_count++] : &c->inputs[c->input_count++];
    test_tensor_link(t, type, d->rank);
    if (sizes != NULL)
        memcpy(t->sizes, sizes, d->rank * sizeof *sizes);
    else
        test_tensor_random_sizes(d->r, t, d->elements);
    test_tensor_random_layout(d->r, t, is_output);
    return t;
}

static DML_TENSOR_DATA_TYPE index_type(draw *d)
{
    static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_INT32, DML_TENSOR_DATA_TYPE_INT64,
                                                  DML_TENSOR_DATA_TYPE_UINT32, DML_TENSOR_DATA_TYPE_UINT64 };
    return types[below(d, 4)];
}

static test_tensor *add_index(draw *d, const uint32_t *sizes, uint32_t limit)
{
    d->c->index_input = (int)d->c->input_count;
    d->c->index_limit = limit;
    return add(d, false, index_type(d), sizes);
}

/* --- windows ------------------------------------------------------------------------------------------------------ */
static void draw_slice(draw *d)
{
    move_case *c = d->c;
    const test_tensor *in = add(d, false, d->type, NULL);
    for (uint32_t i = 0; i < d->rank; i++) {
        const uint32_t n = in->sizes[i];
        c->offsets[i] = test_random_chance(d->r, 50) ? 0 : below(d, n);
        c->strides[i] = test_random_chance(d->r, 60) ? 1 : 1 + below(d, test_random_chance(d->r, 80) ? 4 : 1u << 20);
        c->windows[i] = 1 + (n - 1 - c->offsets[i]) / c->strides[i];
        if (test_random_chance(d->r, 40))
            c->windows[i] = 1 + below(d, c->windows[i]);
    }
    c->desc.slice =
        (DML_SLICE_OPERATOR_DESC){ &in->desc, &add(d, true, d->type, c->windows)->desc, d->rank, c->offsets, c->windows,
                                   c->strides };
}

/* A window of `whole`; length receives the sizes of its slice. */
static void draw_window(draw *d, const test_tensor *whole, uint32_t length[8])
{
    move_case *c = d->c;
    for (uint32_t i = 0; i < d->rank; i++) {
        const uint32_t n = whole->sizes[i];
        uint32_t stride = test_random_chance(d->r, 60) ? 1 : 1 + below(d, test_random_chance(d->r, 90) ? 5 : INT32_MAX);
        c->offsets[i] = test_random_chance(d->r, 50) ? 0 : below(d, n);
        c->windows[i] = n - c->offsets[i];
        if (test_random_chance(d->r, 40))
            c->windows[i] = 1 + below(d, c->windows[i]);
        c->signed_strides[i] = test_random_chance(d->r, 35) ? -(int32_t)stride : (int32_t)stride;
        if (below(d, 200) == 0) {
            stride = 0x80000000u;
            c->signed_strides[i] = INT32_MIN;
        }
        length[i] = 1 + (c->windows[i] - 1) / stride;
    }
}

static void draw_slice1(draw *d)
{
    move_case *c = d->c;
    uint32_t length[8];
    const test_tensor *in = add(d, false, d->type, NULL);
    draw_window(d, in, length);
    c->desc.slice1 = (DML_SLICE1_OPERATOR_DESC){ &in->desc,  &add(d, true, d->type, length)->desc,
                                                 d->rank,    c->offsets,
                                                 c->windows, c->signed_strides };
}

static void draw_slice_grad(draw *d)
{
    move_case *c = d->c;
    uint32_t length[8];
    const test_tensor *out = add(d, true, d->type, NULL);
    draw_window(d, out, length);
    c->desc.slice_grad = (DML_SLICE_GRAD_OPERATOR_DESC){
        &add(d, false, d->type, length)->desc, &out->desc, d->rank, c->offsets, c->windows, c->signed_strides,
    };
}

/* --- parts -------------------------------------------------------------------------------------------------------- */
/* The whole tensor, and parts of it along *out_axis. */
static const test_tensor *draw_parts(draw *d, bool parts_are_outputs, uint32_t *out_axis, uint32_t *out_count)
{
    move_case *c = d->c;
    test_tensor *whole;
    uint32_t sizes[8], left;
    d->elements = 1 + d->elements / 2;
    whole = add(d, !parts_are_outputs, d->type, NULL);
    memcpy(sizes, whole->sizes, sizeof sizes);
    *out_axis = below(d, d->rank);
    left = sizes[*out_axis];
    for (*out_count = 0; left != 0; ++*out_count) {
        sizes[*out_axis] = *out_count + 1 == MOVE_TENSORS || test_random_chance(d->r, 15) ? left : 1 + below(d, left);
        left -= sizes[*out_axis];
        c->array[*out_count] = add(d, parts_are_outputs, d->type, sizes)->desc;
    }
    return whole;
}

static void draw_join(draw *d)
{
    uint32_t axis, count;
    const test_tensor *whole = draw_parts(d, false, &axis, &count);
    d->c->desc.join = (DML_JOIN_OPERATOR_DESC){ count, d->c->array, &whole->desc, axis };
}

static void draw_split(draw *d)
{
    uint32_t axis, count;
    const test_tensor *whole = draw_parts(d, true, &axis, &count);
    d->c->desc.split = (DML_SPLIT_OPERATOR_DESC){ &whole->desc, count, d->c->array, axis };
}

/* --- repetition --------------------------------------------------------------------------------------------------- */
static void draw_tile(draw *d)
{
    move_case *c = d->c;
    uint64_t room = d->elements;
    uint32_t sizes[8];
    d->elements = 1 + d->elements / 8;
    const test_tensor *in = add(d, false, d->type, NULL);
    for (uint32_t i = 0; i < d->rank; i++)
        room /= in->sizes[i];
    for (uint32_t i = 0; i < d->rank; i++) {
        c->strides[i] = test_random_chance(d->r, 50) ? 1 : 1 + below(d, room < 6 ? room + 1 : 6);
        room /= c->strides[i];
        sizes[i] = in->sizes[i] * c->strides[i];
    }
    c->desc.tile = (DML_TILE_OPERATOR_DESC){ &in->desc, &add(d, true, d->type, sizes)->desc, d->rank, c->strides };
}

static float padding_value(draw *d)
{
    static const float values[] = { 0.0f, -0.0f, 1.0f, -1.5f, 300.0f, -129.5f, 3e9f, -3e9f, 1e30f, 65520.0f, 1e-8f };
    DML_SCALAR_UNION any = { .UInt32 = (uint32_t)test_random_u64(d->r) };
    return test_random_chance(d->r, 60) ? values[below(d, sizeof values / sizeof *values)]
           : any.Float32 == any.Float32 ? any.Float32
                                        : 7.0f;
}

static void draw_padding(draw *d, bool typed)
{
    move_case *c = d->c;
    const DML_PADDING_MODE mode = (DML_PADDING_MODE)below(d, 5);
    uint32_t sizes[8];
    d->elements = 1 + d->elements / 3;
    const test_tensor *in = add(d, false, d->type, NULL);
    for (uint32_t i = 0; i < d->rank; i++) {
        const uint32_t most = d->rank > 4 ? 2 : test_random_chance(d->r, 80) ? 7 : 40;
        c->offsets[i] = test_random_chance(d->r, 40) ? 0 : below(d, most);
        c->windows[i] = test_random_chance(d->r, 40) ? 0 : below(d, most);
        sizes[i] = in->sizes[i] + c->offsets[i] + c->windows[i];
    }
    const test_tensor *out = add(d, true, d->type, sizes);
    if (typed)
        c->desc.padding1 = (DML_PADDING1_OPERATOR_DESC){
            &in->desc, &out->desc, mode, d->type, { .UInt64 = test_random_u64(d->r) }, d->rank, c->offsets, c->windows,
        };
    else
        c->desc.padding = (DML_PADDING_OPERATOR_DESC){ &in->desc, &out->desc, mode,      padding_value(d),
                                                       d->rank,   c->offsets, c->windows };
}

static void draw_depth_space(draw *d, bool to_depth)
{
    move_case *c = d->c;
    const uint32_t b = 1 + below(d, 4);
    const DML_DEPTH_SPACE_ORDER order = (DML_DEPTH_SPACE_ORDER)below(d, 2);
    uint32_t space[8], depth[8];
    d->rank = 4;
    d->elements = 1 + d->elements / (b * b);
    test_tensor small = { .interleaved = false };
    test_tensor_link(&small, d->type, 4);
    test_tensor_random_sizes(d->r, &small, d->elements);
    memcpy(space, small.sizes, sizeof space);
    memcpy(depth, small.sizes, sizeof depth);
    depth[1] *= b * b;
    space[2] *= b;
    space[3] *= b;
    const test_tensor *in = add(d, false, d->type, to_depth ? space : depth);
    const test_tensor *out = add(d, true, d->type, to_depth ? depth : space);
    if (to_depth) /* the form without Order has the same first fields */
        c->desc.to_depth1 = (DML_SPACE_TO_DEPTH1_OPERATOR_DESC){ &in->desc, &out->desc, b, order };
    else
        c->desc.to_space1 = (DML_DEPTH_TO_SPACE1_OPERATOR_DESC){ &in->desc, &out->desc, b, order };
}

/* --- indices ------------------------------------------------------------------------------------------------------ */
static void draw_reverse(draw *d)
{
    move_case *c = d->c;
    const test_tensor *in = add(d, false, d->type, NULL);
    const uint32_t axis = below(d, d->rank);
    uint32_t sizes[8];
    memcpy(sizes, in->sizes, sizeof sizes);
    sizes[axis] = 1;
    const test_tensor *lengths = add_index(d, sizes, in->sizes[axis]);
    c->desc.reverse = (DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC){
        &in->desc,
        &lengths->desc,
        &add(d, true, d->type, in->sizes)->desc,
        axis,
    };
}

static void draw_gather_elements(draw *d)
{
    const test_tensor *in = add(d, false, d->type, NULL);
    const uint32_t axis = below(d, d->rank);
    uint32_t sizes[8];
    for (uint32_t i = 0; i < 8; i++)
        sizes[i] = i < d->rank && below(d, 3) == 0 ? 1 + below(d, in->sizes[i]) : in->sizes[i];
    sizes[axis] = 1 + below(d, 12);
    const test_tensor *indices = add_index(d, sizes, in->sizes[axis]);
    d->c->desc.gather_elements = (DML_GATHER_ELEMENTS_OPERATOR_DESC){
        &in->desc,
        &indices->desc,
        &add(d, true, d->type, sizes)->desc,
        axis,
    };
}

static void draw_one_hot(draw *d)
{
    uint32_t sizes[8], values[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    const test_tensor *out = add(d, true, d->type, NULL);
    const uint32_t axis = below(d, d->rank);
    memcpy(sizes, out->sizes, sizeof sizes);
    sizes[axis] = 1;
    values[d->rank - 1] = 2;
    const test_tensor *indices = add_index(d, sizes, out->sizes[axis]);
    d->c->desc.one_hot =
        (DML_ONE_HOT_OPERATOR_DESC){ &indices->desc, &add(d, false, d->type, values)->desc, &out->desc, axis };
}

/* Small sizes for the last `count` dimensions, ones before them. */
static void small_sizes(draw *d, uint32_t sizes[8], uint32_t count)
{
    uint64_t room = 1 + d->elements / 16;
    for (uint32_t i = 0; i < d->rank; i++) {
        sizes[i] = i + count < d->rank ? 1 : 1 + below(d, room < 9 ? room : 9);
        room /= sizes[i];
        room += room == 0;
    }
}

/* The result's dimensions, aligned to the right; false if they don't fit. */
static bool aligned(draw *d, const uint32_t *result, uint32_t count, uint32_t sizes[8])
{
    for (uint32_t i = 0; i + d->rank < count; i++)
        if (result[i] != 1)
            return false;
    for (uint32_t i = 0; i < d->rank; i++)
        sizes[i] = i + count < d->rank ? 1 : result[i + count - d->rank];
    return true;
}

static bool draw_gather(draw *d)
{
    move_case *c = d->c;
    uint32_t in[8], index[8], result[16], sizes[8], count = 0;
    const uint32_t in_rank = 1 + below(d, d->rank), axis = d->rank - 1 - below(d, in_rank), k = below(d, d->rank + 1);
    small_sizes(d, in, in_rank);
    small_sizes(d, index, k);
    for (uint32_t i = 0; i < axis; i++)
        result[count++] = in[i];
    for (uint32_t i = d->rank - k; i < d->rank; i++)
        result[count++] = index[i];
    for (uint32_t i = axis + 1; i < d->rank; i++)
        result[count++] = in[i];
    if (!aligned(d, result, count, sizes))
        return false;
    const test_tensor *input = add(d, false, d->type, in), *indices = add_index(d, index, in[axis]);
    c->desc.gather =
        (DML_GATHER_OPERATOR_DESC){ &input->desc, &indices->desc, &add(d, true, d->type, sizes)->desc, axis, k };
    return true;
}

static bool draw_gather_nd(draw *d, bool batched)
{
    move_case *c = d->c;
    uint32_t in[8], index[8], result[16], sizes[8], count = 0;
    const uint32_t n = 1 + below(d, d->rank), q = 1 + below(d, d->rank), least = n < q ? n : q;
    const uint32_t batch = batched ? below(d, least) : 0, tuple = 1 + below(d, n - batch);
    small_sizes(d, in, n);
    small_sizes(d, index, q);
    for (uint32_t i = 0; i < batch; i++)
        index[d->rank - q + i] = in[d->rank - n + i];
    index[d->rank - 1] = tuple;
    for (uint32_t i = d->rank - q; i + 1 < d->rank; i++)
        result[count++] = index[i];
    for (uint32_t i = d->rank - n + batch + tuple; i < d->rank; i++)
        result[count++] = in[i];
    if (!aligned(d, result, count, sizes))
        return false;
    const test_tensor *input = add(d, false, d->type, in), *indices = add_index(d, index, 6);
    /* without batches the fields are those of GATHER_ND */
    c->desc.gather_nd1 = (DML_GATHER_ND1_OPERATOR_DESC){
        &input->desc, &indices->desc, &add(d, true, d->type, sizes)->desc, n, q, batch,
    };
    return true;
}

/* SCATTER_REDUCE has one field more. */
static void draw_scatter_elements(draw *d)
{
    static const DML_REDUCE_FUNCTION functions[] = { DML_REDUCE_FUNCTION_SUM, DML_REDUCE_FUNCTION_MULTIPLY,
                                                     DML_REDUCE_FUNCTION_MIN, DML_REDUCE_FUNCTION_MAX };
    uint32_t sizes[8];
    const test_tensor *in = add(d, false, d->type, NULL);
    const uint32_t axis = below(d, d->rank);
    memcpy(sizes, in->sizes, sizeof sizes);
    sizes[axis] = 1 + below(d, test_random_chance(d->r, 80) ? 12 : 100);
    const test_tensor *indices = add_index(d, sizes, in->sizes[axis]), *updates = add(d, false, d->type, sizes);
    d->c->desc.scatter_reduce = (OPJIT_SCATTER_REDUCE_OPERATOR_DESC){
        &in->desc, &indices->desc,         &updates->desc, &add(d, true, d->type, in->sizes)->desc,
        axis,      functions[below(d, 4)],
    };
}

static bool draw_scatter_nd(draw *d)
{
    uint32_t in[8], index[8], result[16], sizes[8], count = 0;
    const uint32_t n = 1 + below(d, d->rank), q = 1 + below(d, d->rank), tuple = 1 + below(d, n);
    small_sizes(d, in, n);
    small_sizes(d, index, q);
    index[d->rank - 1] = tuple;
    for (uint32_t i = d->rank - q; i + 1 < d->rank; i++)
        result[count++] = index[i];
    for (uint32_t i = d->rank - n + tuple; i < d->rank; i++)
        result[count++] = in[i];
    if (!aligned(d, result, count, sizes))
        return false;
    const test_tensor *input = add(d, false, d->type, in), *indices = add_index(d, index, 6);
    const test_tensor *updates = add(d, false, d->type, sizes);
    d->c->desc.scatter_nd = (DML_SCATTER_ND_OPERATOR_DESC){
        &input->desc, &indices->desc, &updates->desc, &add(d, true, d->type, in)->desc, n, q,
    };
    return true;
}

static void draw_max_unpooling(draw *d)
{
    d->rank = 4;
    const test_tensor *in = add(d, false, d->type, NULL);
    d->c->index_input = 1;
    const DML_TENSOR_DATA_TYPE wide = test_random_chance(d->r, 50) ? DML_TENSOR_DATA_TYPE_UINT64
                                                                    : DML_TENSOR_DATA_TYPE_UINT32;
    const test_tensor *indices = add(d, false, wide, in->sizes), *out = add(d, true, d->type, NULL);
    d->c->index_limit = out->sizes[0] * out->sizes[1] * out->sizes[2] * out->sizes[3];
    d->c->desc.max_unpooling = (DML_MAX_UNPOOLING_OPERATOR_DESC){ &in->desc, &indices->desc, &out->desc };
}

static void draw_nonzero(draw *d)
{
    uint32_t ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 }, rows[8] = { 1, 1, 1, 1, 1, 1, 1, 1 }, leading = 0, count = 1;
    d->rank = d->rank < 2 ? 2 : d->rank;
    d->elements = 1 + d->elements / 4;
    d->c->index_input = 0;
    d->c->index_limit = 1;
    const test_tensor *in = add(d, false, d->type, NULL);
    for (uint32_t i = 0; i < d->rank; i++) {
        leading += leading == i && in->sizes[i] == 1;
        count *= in->sizes[i];
    }
    const uint32_t least = leading == d->rank ? 1 : d->rank - leading;
    rows[d->rank - 2] = count;
    rows[d->rank - 1] = least + below(d, d->rank - least + 1);
    const test_tensor *number = add(d, true, DML_TENSOR_DATA_TYPE_UINT32, ones);
    d->c->desc.nonzero = (DML_NONZERO_COORDINATES_OPERATOR_DESC){
        &in->desc,
        &number->desc,
        &add(d, true, DML_TENSOR_DATA_TYPE_UINT32, rows)->desc,
    };
}

void move_case_indices(test_random *r, const move_case *c, void *binding)
{
    const ref_tensor t = ref_tensor_of(&c->inputs[c->index_input].desc);
    const int64_t n = c->index_limit;
    for (uint64_t e = 0; e < ref_tensor_elements(&t); e++) {
        uint32_t at[8];
        uint64_t bits = test_random_u64(r);
        ref_tensor_coordinates(&t, e, at);
        switch (test_random_below(r, 8)) {
        case 0: break;
        case 1: bits = (uint64_t)test_random_between(r, -n - 2, -n + 1); break;
        case 2: bits = (uint64_t)test_random_between(r, n - 1, n + 2); break;
        case 3: bits = test_random_chance(r, 50) ? UINT64_C(1) << 63 : UINT64_C(0x7fffffffffffffff); break;
        case 4: bits = test_random_chance(r, 50) ? UINT64_C(0xffffffff80000000) : UINT64_C(0x7fffffff); break;
        default: bits = (uint64_t)test_random_between(r, -n, n - 1); break;
        }
        ref_set(&t, binding, at, bits);
    }
}

bool move_case_computes(const move_case *c)
{
    return c->op.Type == OPJIT_OPERATOR_SCATTER_REDUCE;
}

void move_case_tame(const move_case *c, uint32_t input, void *binding)
{
    const ref_tensor t = ref_tensor_of(&c->inputs[input].desc);
    const uint64_t top = t.dtype == DML_TENSOR_DATA_TYPE_FLOAT16   ? 0x4000 /* of the exponent */
                         : t.dtype == DML_TENSOR_DATA_TYPE_FLOAT32 ? 0x40000000
                         : t.dtype == DML_TENSOR_DATA_TYPE_FLOAT64 ? 0x4000000000000000
                                                                   : 0;
    for (uint64_t e = 0; top != 0 && e < ref_tensor_elements(&t); e++) {
        uint32_t at[8];
        ref_tensor_coordinates(&t, e, at);
        ref_set(&t, binding, at, ref_get(&t, binding, at) & ~top);
    }
}

/* --- cases -------------------------------------------------------------------------------------------------------- */
static bool draw_case(draw *d)
{
    if (d->c->op.Type == OPJIT_OPERATOR_SCATTER_REDUCE) {
        draw_scatter_elements(d);
        return true;
    }
    switch (d->c->op.Type) {
    case DML_OPERATOR_SLICE: draw_slice(d); break;
    case DML_OPERATOR_SLICE1: draw_slice1(d); break;
    case DML_OPERATOR_SLICE_GRAD: draw_slice_grad(d); break;
    case DML_OPERATOR_JOIN: draw_join(d); break;
    case DML_OPERATOR_SPLIT: draw_split(d); break;
    case DML_OPERATOR_TILE: draw_tile(d); break;
    case DML_OPERATOR_PADDING: draw_padding(d, false); break;
    case DML_OPERATOR_PADDING1: draw_padding(d, true); break;
    case DML_OPERATOR_REVERSE_SUBSEQUENCES: draw_reverse(d); break;
    case DML_OPERATOR_SPACE_TO_DEPTH:
    case DML_OPERATOR_SPACE_TO_DEPTH1: draw_depth_space(d, true); break;
    case DML_OPERATOR_DEPTH_TO_SPACE:
    case DML_OPERATOR_DEPTH_TO_SPACE1: draw_depth_space(d, false); break;
    case DML_OPERATOR_GATHER: return draw_gather(d);
    case DML_OPERATOR_GATHER_ELEMENTS: draw_gather_elements(d); break;
    case DML_OPERATOR_GATHER_ND: return draw_gather_nd(d, false);
    case DML_OPERATOR_GATHER_ND1: return draw_gather_nd(d, true);
    case DML_OPERATOR_SCATTER_ELEMENTS: draw_scatter_elements(d); break;
    case DML_OPERATOR_SCATTER_ND: return draw_scatter_nd(d);
    case DML_OPERATOR_MAX_UNPOOLING: draw_max_unpooling(d); break;
    case DML_OPERATOR_NONZERO_COORDINATES: draw_nonzero(d); break;
    default: draw_one_hot(d); break;
    }
    return true;
}

void move_case_random(test_random *r, DML_OPERATOR_TYPE type, uint64_t most_elements, move_case *c)
{
    bool drawn;
    do {
        draw d = { .r = r, .c = c, .type = test_types[test_random_below(r, TEST_TYPE_COUNT)] };
        memset(c, 0, sizeof *c);
        c->op = (DML_OPERATOR_DESC){ type, &c->desc };
        c->index_input = -1;
        d.rank = 1 + (uint32_t)test_random_below(r, test_random_chance(r, 60) ? 4 : 8);
        d.elements = 1 + (most_elements >> (2 * test_random_below(r, 3)));
        drawn = draw_case(&d);
    } while (!drawn);
}

void move_case_reference(const move_case *c, ref_inputs inputs, ref_outputs outputs)
{
    DML_SPACE_TO_DEPTH1_OPERATOR_DESC to_depth = c->desc.to_depth1;
    DML_DEPTH_TO_SPACE1_OPERATOR_DESC to_space = c->desc.to_space1;
    if (c->op.Type == OPJIT_OPERATOR_SCATTER_REDUCE) {
        ref_scatter_reduce(&c->desc.scatter_reduce, inputs, outputs);
        return;
    }
    switch (c->op.Type) {
    case DML_OPERATOR_SLICE: ref_slice(&c->desc.slice, inputs, outputs); break;
    case DML_OPERATOR_SLICE1: ref_slice1(&c->desc.slice1, inputs, outputs); break;
    case DML_OPERATOR_SLICE_GRAD: ref_slice_grad(&c->desc.slice_grad, inputs, outputs); break;
    case DML_OPERATOR_JOIN: ref_join(&c->desc.join, inputs, outputs); break;
    case DML_OPERATOR_SPLIT: ref_split(&c->desc.split, inputs, outputs); break;
    case DML_OPERATOR_TILE: ref_tile(&c->desc.tile, inputs, outputs); break;
    case DML_OPERATOR_PADDING: ref_padding(&c->desc.padding, inputs, outputs); break;
    case DML_OPERATOR_PADDING1: ref_padding1(&c->desc.padding1, inputs, outputs); break;
    case DML_OPERATOR_REVERSE_SUBSEQUENCES: ref_reverse_subsequences(&c->desc.reverse, inputs, outputs); break;
    case DML_OPERATOR_SPACE_TO_DEPTH: to_depth.Order = DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW; /* fallthrough */
    case DML_OPERATOR_SPACE_TO_DEPTH1: ref_space_to_depth1(&to_depth, inputs, outputs); break;
    case DML_OPERATOR_DEPTH_TO_SPACE: to_space.Order = DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW; /* fallthrough */
    case DML_OPERATOR_DEPTH_TO_SPACE1: ref_depth_to_space1(&to_space, inputs, outputs); break;
    case DML_OPERATOR_GATHER: ref_gather(&c->desc.gather, inputs, outputs); break;
    case DML_OPERATOR_GATHER_ELEMENTS: ref_gather_elements(&c->desc.gather_elements, inputs, outputs); break;
    case DML_OPERATOR_GATHER_ND: /* drawn with a batch of 0 */
    case DML_OPERATOR_GATHER_ND1: ref_gather_nd1(&c->desc.gather_nd1, inputs, outputs); break;
    case DML_OPERATOR_SCATTER_ELEMENTS: ref_scatter_elements(&c->desc.scatter_elements, inputs, outputs); break;
    case DML_OPERATOR_SCATTER_ND: ref_scatter_nd(&c->desc.scatter_nd, inputs, outputs); break;
    case DML_OPERATOR_MAX_UNPOOLING: ref_max_unpooling(&c->desc.max_unpooling, inputs, outputs); break;
    case DML_OPERATOR_NONZERO_COORDINATES: ref_nonzero_coordinates(&c->desc.nonzero, inputs, outputs); break;
    default: ref_one_hot(&c->desc.one_hot, inputs, outputs); break;
    }
}

static void print_tensor(FILE *file, const char *role, uint32_t i, const test_tensor *t)
{
    fprintf(file, "    %s %u: %s sizes", role, i, test_type_name(t->buffer.DataType));
    for (uint32_t k = 0; k < t->buffer.DimensionCount; k++)
        fprintf(file, " %u", t->sizes[k]);
    fprintf(file, t->buffer.Strides != NULL ? " strides" : " packed");
    for (uint32_t k = 0; t->buffer.Strides != NULL && k < t->buffer.DimensionCount; k++)
        fprintf(file, " %u", t->strides[k]);
    fprintf(file, ", alignment %u\n", t->alignment);
}

void move_case_print(FILE *file, const move_case *c)
{
    fprintf(file, "%s\n", move_operator_name(c->op.Type));
    for (uint32_t i = 0; i < c->input_count; i++)
        print_tensor(file, "input", i, &c->inputs[i]);
    for (uint32_t i = 0; i < c->output_count; i++)
        print_tensor(file, "output", i, &c->outputs[i]);
    for (uint32_t k = 0; k < c->outputs[0].buffer.DimensionCount; k++)
        fprintf(file, "    [%u]: offset or start %u, window or end %u, stride or repeats %u or %d\n", k, c->offsets[k],
                c->windows[k], c->strides[k], c->signed_strides[k]);
    fprintf(file,
            "    JOIN or SPLIT axis %u %u; padding mode %u %u; block or axis %u, order or index dimensions %u, "
            "batch %u\n",
            c->desc.join.Axis, c->desc.split.Axis, (unsigned)c->desc.padding.PaddingMode,
            (unsigned)c->desc.padding1.PaddingMode, c->desc.gather_nd1.InputDimensionCount,
            c->desc.gather_nd1.IndicesDimensionCount, c->desc.gather_nd1.BatchDimensionCount);
}
