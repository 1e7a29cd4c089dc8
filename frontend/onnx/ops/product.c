/* SPDX-License-Identifier: Apache-2.0 */
/* product.c - products of matrices. */
#include "frontend/onnx/ops/ops.h"

/* Two factors as matrices in a batch that both have, and the sizes of the product by ONNX's rules for vectors. */
typedef struct factors {
    opjit_tensor a, b;
    uint32_t rank; /* of the product */
    uint64_t dims[ONNX_RANK];
} factors;

/* A factor with the batch's sizes; a vector is a row (first) or a column. */
static opjit_tensor factor(onnx_import *m, const onnx_call *c, uint32_t i, bool first, uint32_t batch_rank,
                           const uint64_t *batch)
{
    const onnx_value *const v = c->inputs[i];
    uint64_t dims[ONNX_RANK];
    uint32_t sizes[ONNX_RANK];
    const uint32_t own = v->rank < 2 ? 0 : v->rank - 2, rank = batch_rank + 2;
    for (uint32_t d = 0; d < batch_rank; d++) {
        dims[d] = d < batch_rank - own ? 1 : v->dims[d - (batch_rank - own)];
        sizes[d] = (uint32_t)batch[d];
    }
    dims[batch_rank] = v->rank == 1 ? (first ? 1 : v->dims[0]) : v->dims[v->rank - 2];
    dims[batch_rank + 1] = v->rank == 1 ? (first ? v->dims[0] : 1) : v->dims[v->rank - 1];
    sizes[batch_rank] = (uint32_t)dims[batch_rank];
    sizes[batch_rank + 1] = (uint32_t)dims[batch_rank + 1];
    const opjit_tensor t = opjit_onnx_reshape(m, onnx_tensor_of(m, c, i), rank, dims);
    return opjit_graph_broadcast(m->graph, t, rank, sizes);
}

/* Sizes of the product of inputs a and b, the first *batch_rank of which are the batch's. */
static opjit_status read_sizes(onnx_import *m, const onnx_call *c, uint32_t a, uint32_t b, factors *out,
                               uint32_t *batch_rank)
{
    const onnx_value *const x = c->inputs[a], *const y = c->inputs[b];
    if (x->rank == 0 || y->rank == 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "inputs 0 and 1 have %u and %u dimensions, must be at least 1", x->rank, y->rank);
    const uint32_t of_x = x->rank < 2 ? 0 : x->rank - 2, of_y = y->rank < 2 ? 0 : y->rank - 2;
    out->rank = *batch_rank = of_x > of_y ? of_x : of_y;
    for (uint32_t d = 0; d < out->rank; d++) {
        const uint64_t p = d < out->rank - of_x ? 1 : x->dims[d - (out->rank - of_x)];
        const uint64_t q = d < out->rank - of_y ? 1 : y->dims[d - (out->rank - of_y)];
        if (p != q && p != 1 && q != 1)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                     "the batches have sizes %llu and %llu, must be equal or 1", (unsigned long long)p,
                                     (unsigned long long)q);
        out->dims[d] = p == 1 ? q : p;
    }
    const uint64_t k = x->dims[x->rank - 1], of_b = y->dims[y->rank < 2 ? 0 : y->rank - 2];
    if (k != of_b)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "input 0 has rows of %llu elements, input 1 columns of %llu: must be equal",
                                 (unsigned long long)k, (unsigned long long)of_b);
    if (x->rank > 1)
        out->dims[out->rank++] = x->dims[x->rank - 2];
    if (y->rank > 1)
        out->dims[out->rank++] = y->dims[y->rank - 1];
    return OPJIT_OK;
}

/* Inputs a and b of the call as factors. */
static opjit_status read_factors(onnx_import *m, const onnx_call *c, uint32_t a, uint32_t b, factors *out)
{
    const onnx_value *const x = c->inputs[a], *const y = c->inputs[b];
    uint32_t batch_rank;
    TRY(read_sizes(m, c, a, b, out, &batch_rank));
    if (opjit_onnx_elements_of(x) == 0 || opjit_onnx_elements_of(y) == 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "a product of tensors without elements");
    /* Many small products by the same matrix are one large one: leading sizes of a are rows. */
    if (x->rank > 2 && y->rank == 2) {
        const uint64_t k = x->dims[x->rank - 1], rows = opjit_onnx_elements_of(x) / k;
        out->a = opjit_onnx_reshape(m, onnx_tensor_of(m, c, a), 2, (uint64_t[]){ rows, k });
        out->b = onnx_tensor_of(m, c, b);
        return opjit_onnx_status(m);
    }
    out->a = factor(m, c, a, true, batch_rank, out->dims);
    out->b = factor(m, c, b, false, batch_rank, out->dims);
    return opjit_onnx_status(m);
}

/* The product of integers: every pair of elements, summed. */
static opjit_tensor integer_product(onnx_import *m, const factors *f)
{
    opjit_tensor_type a, b;
    opjit_graph *const g = m->graph;
    uint64_t wide[2][ONNX_RANK];
    (void)opjit_graph_get_type(g, f->a, &a);
    (void)opjit_graph_get_type(g, f->b, &b);
    const uint32_t rank = a.rank + 1;
    for (uint32_t d = 0; d + 2 < a.rank; d++) {
        wide[0][d] = a.sizes[d];
        wide[1][d] = b.sizes[d];
    }
    wide[0][rank - 3] = a.sizes[a.rank - 2];
    wide[0][rank - 2] = a.sizes[a.rank - 1];
    wide[0][rank - 1] = 1;
    wide[1][rank - 3] = 1;
    wide[1][rank - 2] = b.sizes[b.rank - 2];
    wide[1][rank - 1] = b.sizes[b.rank - 1];
    const opjit_tensor p =
        opjit_graph_multiply(g, opjit_onnx_reshape(m, f->a, rank, wide[0]), opjit_onnx_reshape(m, f->b, rank, wide[1]));
    const uint32_t axis = rank - 2;
    return opjit_graph_reduce(g, p, DML_REDUCE_FUNCTION_SUM, 1, &axis);
}

static bool is_empty(const factors *f)
{
    for (uint32_t d = 0; d < f->rank; d++)
        if (f->dims[d] == 0)
            return true;
    return false;
}

opjit_status opjit_onnx_matmul(onnx_import *m, onnx_call *c)
{
    factors f;
    uint32_t batch_rank;
    TRY(opjit_onnx_need(m, c, 2));
    TRY(read_sizes(m, c, 0, 1, &f, &batch_rank));
    const int32_t type = c->inputs[0]->type;
    if (opjit_onnx_elements_of(c->inputs[0]) == 0 || opjit_onnx_elements_of(c->inputs[1]) == 0) /* sums of nothing */
        return is_empty(&f) ? opjit_onnx_give_nothing(m, c, 0, type, f.rank, f.dims)
                            : opjit_onnx_give_everywhere(m, c, 0, opjit_onnx_scalar(m, type, 0), type, f.rank, f.dims);
    TRY(read_factors(m, c, 0, 1, &f));
    if (!onnx_is_float(type) && f.rank > ONNX_RANK - 1)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%u dimensions of integers, must be at most %u", f.rank,
                                 ONNX_RANK - 1);
    const opjit_tensor y =
        onnx_is_float(type) ? opjit_graph_matrix_multiply(m->graph, f.a, f.b, 0, 0) : integer_product(m, &f);
    TRY(opjit_onnx_give_as(m, c, 0, y, type, f.rank, f.dims));
    return opjit_onnx_remember(m, c);
}

/* com.microsoft's FusedMatMul: alpha, and transposed last two dimensions. */
opjit_status opjit_onnx_fused_matmul(onnx_import *m, onnx_call *c)
{
    factors f;
    uint32_t axes[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 2));
    onnx_value turned[2];
    onnx_value *inputs[2] = { &turned[0], &turned[1] };
    for (uint32_t i = 0; i < 2; i++) {
        turned[i] = *c->inputs[i];
        if (opjit_onnx_int(m, c, i == 0 ? "transA" : "transB", 0) == 0 || turned[i].rank < 2)
            continue;
        const uint32_t last = turned[i].rank - 1;
        for (uint32_t d = 0; d <= last; d++)
            axes[d] = d == last ? last - 1 : d == last - 1 ? last : d;
        turned[i].tensor = opjit_onnx_transpose_tensor(m, onnx_tensor_of(m, c, i), last + 1, axes);
        turned[i].data = NULL;
        turned[i].source = NULL;
        turned[i].dims[last] = c->inputs[i]->dims[last - 1];
        turned[i].dims[last - 1] = c->inputs[i]->dims[last];
    }
    const onnx_call by = { .node = c->node, .row = c->row, .inputs = inputs, .input_count = 2 };
    TRY(read_factors(m, &by, 0, 1, &f));
    const DML_GEMM_OPERATOR_DESC desc = { .TransA = DML_MATRIX_TRANSFORM_NONE,
                                          .TransB = DML_MATRIX_TRANSFORM_NONE,
                                          .Alpha = opjit_onnx_float(m, c, "alpha", 1) };
    const opjit_tensor pair[2] = { f.a, f.b };
    return opjit_onnx_give_as(m, c, 0, opjit_graph_op(m->graph, DML_OPERATOR_GEMM, &desc, pair, 2), c->inputs[0]->type,
                              f.rank, f.dims);
}

opjit_status opjit_onnx_gemm(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const a = c->inputs[0], *const b = c->inputs[1];
    const bool turn_a = opjit_onnx_int(m, c, "transA", 0) != 0, turn_b = opjit_onnx_int(m, c, "transB", 0) != 0;
    if (a->rank != 2 || b->rank != 2 || !onnx_is_float(a->type))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u and %u dimensions of %s, must be 2 and 2 of floats",
                                 a->rank, b->rank, opjit_onnx_type_name(a->type).text);
    const DML_GEMM_OPERATOR_DESC desc = { .TransA = turn_a ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                          .TransB = turn_b ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                          .Alpha = opjit_onnx_float(m, c, "alpha", 1),
                                          .Beta = opjit_onnx_float(m, c, "beta", 1) };
    const uint32_t sizes[2] = { (uint32_t)a->dims[turn_a], (uint32_t)b->dims[!turn_b] };
    opjit_tensor inputs[3] = { onnx_tensor_of(m, c, 0), onnx_tensor_of(m, c, 1), onnx_tensor_of(m, c, 2) };
    if (inputs[2].index != 0)
        inputs[2] = opjit_graph_broadcast(m->graph, inputs[2], 2, sizes);
    TRY(opjit_onnx_give(m, c, 0, opjit_graph_op(m->graph, DML_OPERATOR_GEMM, &desc, inputs, 3), a->type, 2));
    return opjit_onnx_remember(m, c);
}

/* com.microsoft's FusedGemm: an activation of Gemm, whose numbers have names. */
opjit_status opjit_onnx_fused_gemm(onnx_import *m, onnx_call *c)
{
    static const char *const names[2] = { "activation_alpha", "activation_beta" };
    float numbers[2];
    TRY(opjit_onnx_gemm(m, c));
    for (uint32_t i = 0; i < 2; i++)
        numbers[i] = opjit_onnx_float(m, c, names[i], 0);
    return opjit_onnx_activate(m, c, numbers);
}

/* --- of quantized matrices ---------------------------------------------------------------------------------------- */

/* A zero point or scale as the operators take it: one number, one for each row, or one for each column. */
static opjit_tensor parameter(onnx_import *m, const onnx_call *c, uint32_t i, uint32_t rank, bool of_rows)
{
    return opjit_onnx_vector(m, c, i, rank, of_rows ? rank - 2 : rank - 1);
}

static uint32_t rank_of(const onnx_import *m, opjit_tensor t)
{
    opjit_tensor_type type;
    (void)opjit_graph_get_type(m->graph, t, &type);
    return type.rank;
}

opjit_status opjit_onnx_matmul_integer(onnx_import *m, onnx_call *c)
{
    factors f;
    TRY(opjit_onnx_need(m, c, 2));
    TRY(read_factors(m, c, 0, 1, &f));
    const uint32_t rank = rank_of(m, f.a);
    const opjit_tensor inputs[4] = { f.a, parameter(m, c, 2, rank, true), f.b, parameter(m, c, 3, rank, false) };
    const opjit_tensor y = opjit_graph_op(m->graph, DML_OPERATOR_MATRIX_MULTIPLY_INTEGER, NULL, inputs, 4);
    return opjit_onnx_give_as(m, c, 0, y, ONNX_INT32, f.rank, f.dims);
}

/* com.microsoft's MatMulIntegerToFloat: a, b, scales, zero points, bias. */
opjit_status opjit_onnx_matmul_to_float(onnx_import *m, onnx_call *c)
{
    factors f;
    TRY(opjit_onnx_need(m, c, 4));
    TRY(read_factors(m, c, 0, 1, &f));
    const uint32_t rank = rank_of(m, f.a);
    opjit_graph *const g = m->graph;
    const opjit_tensor inputs[4] = { f.a, parameter(m, c, 4, rank, true), f.b, parameter(m, c, 5, rank, false) };
    const opjit_tensor sums = opjit_graph_op(g, DML_OPERATOR_MATRIX_MULTIPLY_INTEGER, NULL, inputs, 4);
    const opjit_tensor scale = opjit_graph_multiply(g, parameter(m, c, 2, rank, true), parameter(m, c, 3, rank, false));
    opjit_tensor y = opjit_graph_multiply(g, opjit_onnx_cast(m, sums, ONNX_INT32, c->inputs[2]->type), scale);
    if (onnx_input(c, 6) != NULL)
        y = opjit_graph_add(g, y, onnx_tensor_of(m, c, 6));
    return opjit_onnx_give_as(m, c, 0, y, c->inputs[2]->type, f.rank, f.dims);
}

/* com.microsoft's DynamicQuantizeMatMul: floats, which become 8 bits by their range, by b, its scale and zero point,
 * bias. */
opjit_status opjit_onnx_matmul_dynamic(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 3));
    const opjit_tensor x = onnx_tensor_of(m, c, 0);
    opjit_tensor parts[3]; /* elements, scale, zero point */
    opjit_onnx_add(m, DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR, NULL, &x, 1, parts, 3);
    onnx_value values[3] = { onnx_value_of(c->inputs[0], ONNX_UINT8, parts[0]),
                             { .type = ONNX_FLOAT, .tensor = parts[1] },
                             { .type = ONNX_UINT8, .tensor = parts[2] } };
    onnx_value *inputs[7] = { &values[0], c->inputs[1],     &values[1],      c->inputs[2],
                              &values[2], onnx_input(c, 3), onnx_input(c, 4) };
    onnx_call by = { .node = c->node,
                     .row = c->row,
                     .inputs = inputs,
                     .outputs = c->outputs,
                     .input_count = 7,
                     .output_count = c->output_count };
    return opjit_onnx_matmul_to_float(m, &by);
}

/* com.microsoft's QGemm: a, b and y with a scale and a zero point each, c of INT32; without y's scale it is FLOAT. */
opjit_status opjit_onnx_qgemm(onnx_import *m, onnx_call *c)
{
    static const onnx_row again = { "", "QuantizeLinear", opjit_onnx_quantize, 0, NULL };
    static const uint32_t turned[2] = { 1, 0 };
    TRY(opjit_onnx_need(m, c, 6));
    opjit_graph *const g = m->graph;
    opjit_tensor pair[2];
    for (uint32_t i = 0; i < 2; i++) {
        if (c->inputs[3 * i]->rank != 2)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u dimensions, must be 2", c->inputs[3 * i]->rank);
        pair[i] = onnx_tensor_of(m, c, 3 * i);
        if (opjit_onnx_int(m, c, i == 0 ? "transA" : "transB", 0) != 0)
            pair[i] = opjit_onnx_transpose_tensor(m, pair[i], 2, turned);
    }
    const opjit_tensor inputs[4] = { pair[0], parameter(m, c, 2, 2, true), pair[1], parameter(m, c, 5, 2, false) };
    opjit_tensor y = opjit_graph_op(g, DML_OPERATOR_MATRIX_MULTIPLY_INTEGER, NULL, inputs, 4);
    if (onnx_input(c, 6) != NULL)
        y = opjit_graph_add(g, y, onnx_tensor_of(m, c, 6));
    opjit_tensor scale = opjit_graph_multiply(g, opjit_onnx_scalar(m, ONNX_FLOAT, opjit_onnx_float(m, c, "alpha", 1)),
                                              parameter(m, c, 1, 2, true));
    scale = opjit_graph_multiply(g, scale, parameter(m, c, 4, 2, false));
    if (onnx_input(c, 7) != NULL) /* quantized again by one factor, so that halves stay halves */
        scale = opjit_graph_divide(g, scale, parameter(m, c, 7, 2, true));
    y = opjit_graph_multiply(g, opjit_onnx_cast(m, y, ONNX_INT32, ONNX_FLOAT), scale);
    TRY(opjit_onnx_give(m, c, 0, y, ONNX_FLOAT, 2));
    if (onnx_input(c, 7) == NULL)
        return OPJIT_OK;
    static const float one = 1;
    onnx_value sums = c->outputs[0], whole = { .type = ONNX_FLOAT, .data = &one };
    onnx_value *quantized[3] = { &sums, &whole, onnx_input(c, 8) };
    return opjit_onnx_call_row(m, c, c->node, &again, quantized, 3, &c->outputs[0]);
}

opjit_status opjit_onnx_qlinear_matmul(onnx_import *m, onnx_call *c)
{
    factors f;
    TRY(opjit_onnx_need(m, c, 8));
    TRY(read_factors(m, c, 0, 3, &f));
    const uint32_t rank = rank_of(m, f.a);
    const opjit_tensor inputs[8] = { f.a,
                                     parameter(m, c, 1, rank, true),
                                     parameter(m, c, 2, rank, true),
                                     f.b,
                                     parameter(m, c, 4, rank, false),
                                     parameter(m, c, 5, rank, false),
                                     parameter(m, c, 6, rank, true),
                                     parameter(m, c, 7, rank, true) };
    const opjit_tensor y = opjit_graph_op(m->graph, DML_OPERATOR_QUANTIZED_LINEAR_MATRIX_MULTIPLY, NULL, inputs, 8);
    return opjit_onnx_give_as(m, c, 0, y, c->inputs[7]->type, f.rank, f.dims);
}

/* Bytes {rows, blocks, bytes} with two numbers each, the first one in the low half, as {rows, blocks, 2 * bytes}. */
static opjit_tensor halves(onnx_import *m, opjit_tensor t, const uint64_t *dims)
{
    opjit_graph *const g = m->graph;
    const uint64_t wide[4] = { dims[0], dims[1], dims[2], 1 }, result[3] = { dims[0], dims[1], 2 * dims[2] };
    const opjit_tensor bytes = opjit_onnx_reshape(m, t, 4, wide);
    const opjit_tensor parts[2] = { opjit_graph_bit_and(g, bytes, opjit_onnx_scalar(m, ONNX_UINT8, 15)),
                                    opjit_graph_op2(g, DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_RIGHT, bytes,
                                                    opjit_onnx_scalar(m, ONNX_UINT8, 4)) };
    return opjit_onnx_reshape(m, opjit_graph_join(g, parts, 2, 3), 3, result);
}

/* The first `size` of the last dimension of {rows, columns}. */
static opjit_tensor first_columns(onnx_import *m, opjit_tensor t, uint64_t rows, uint64_t columns, uint64_t size)
{
    const uint32_t begin[2] = { 0, 0 }, sizes[2] = { (uint32_t)rows, (uint32_t)size };
    return columns == size ? t : opjit_graph_slice(m->graph, t, begin, sizes, NULL);
}

/* com.microsoft's MatMulNBits: a {.., k} by the rows of b, whose k numbers of 4 or 8 bits have a scale, and a zero
 * point, for each block of them. */
opjit_status opjit_onnx_matmul_bits(onnx_import *m, onnx_call *c)
{
    const int64_t bits = opjit_onnx_int(m, c, "bits", 4), k = opjit_onnx_int(m, c, "K", 0);
    const int64_t n = opjit_onnx_int(m, c, "N", 0), block = opjit_onnx_int(m, c, "block_size", 0);
    uint64_t dims[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 3));
    const onnx_value *const a = c->inputs[0], *const b = c->inputs[1], *const zero = onnx_input(c, 3);
    const int32_t type = a->type;
    if ((bits != 4 && bits != 8) || onnx_input(c, 4) != NULL || k < 1 || n < 1 || block < 2 || block % 2 != 0 ||
        k > INT32_MAX || n > INT32_MAX || block > INT32_MAX)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "bits %lld, must be 4 or 8; block_size %lld, must be even; g_idx is not taken",
                                 (long long)bits, (long long)block);
    const uint64_t rows = (uint64_t)n, blocks = ((uint64_t)k + (uint64_t)block - 1) / (uint64_t)block;
    const uint64_t packed[3] = { rows, blocks, (uint64_t)block * (uint64_t)bits / 8 };
    const uint64_t by_block[3] = { rows, blocks, 1 }, numbers[2] = { rows, blocks * (uint64_t)block };
    const uint64_t zero_bytes = bits == 8 ? blocks : (blocks + 1) / 2;
    const bool real = zero != NULL && zero->type != ONNX_UINT8;
    if (a->rank < 1 || a->dims[a->rank - 1] != (uint64_t)k || b->type != ONNX_UINT8 ||
        opjit_onnx_elements_of(b) != rows * blocks * packed[2] ||
        opjit_onnx_elements_of(c->inputs[2]) != rows * blocks ||
        (zero != NULL && opjit_onnx_elements_of(zero) != rows * (real ? blocks : zero_bytes)))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "the inputs' sizes are not those of N = %lld by K = %lld numbers", (long long)n,
                                 (long long)k);
    opjit_graph *const g = m->graph;
    opjit_tensor t = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 1), 3, packed), from;
    t = opjit_onnx_cast(m, bits == 4 ? halves(m, t, packed) : t, ONNX_UINT8, type);
    if (zero == NULL) {
        from = opjit_onnx_scalar(m, type, bits == 4 ? 8 : 128);
    } else {
        from = onnx_tensor_of(m, c, 3);
        if (!real && bits == 4) {
            const uint64_t of_zero[3] = { rows, 1, zero_bytes }, flat[2] = { rows, 2 * zero_bytes };
            from = opjit_onnx_reshape(m, halves(m, opjit_onnx_reshape(m, from, 3, of_zero), of_zero), 2, flat);
            from = first_columns(m, from, rows, 2 * zero_bytes, blocks);
        }
        from = opjit_onnx_reshape(m, opjit_onnx_cast(m, from, zero->type, type), 3, by_block);
    }
    const opjit_tensor scale = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 2), 3, by_block);
    t = opjit_graph_multiply(g, opjit_graph_subtract(g, t, from), scale);
    t = first_columns(m, opjit_onnx_reshape(m, t, 2, numbers), rows, numbers[1], (uint64_t)k);
    const uint64_t flat[2] = { opjit_onnx_elements_of(a) / (uint64_t)k, (uint64_t)k };
    opjit_tensor y = opjit_graph_matrix_multiply(g, opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 2, flat), t, 0, 1);
    if (onnx_input(c, 5) != NULL)
        y = opjit_graph_add(g, y, opjit_onnx_vector(m, c, 5, 2, 1));
    memcpy(dims, a->dims, sizeof dims);
    dims[a->rank - 1] = rows;
    return opjit_onnx_give_as(m, c, 0, y, type, a->rank, dims);
}
