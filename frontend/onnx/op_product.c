/* SPDX-License-Identifier: Apache-2.0 */
/* op_product.c - products of matrices. */
#include "frontend/onnx/ops.h"

/* Two factors as matrices in a batch that both have, and the sizes of the product by ONNX's rules for vectors. */
typedef struct factors {
    opjit_tensor a, b;
    uint32_t rank;             /* of the product */
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

/* Inputs a and b of the call as factors. */
static opjit_status read_factors(onnx_import *m, const onnx_call *c, uint32_t a, uint32_t b, factors *out)
{
    const onnx_value *const x = c->inputs[a], *const y = c->inputs[b];
    uint64_t batch[ONNX_RANK];
    if (x->rank == 0 || y->rank == 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "a scalar is no matrix");
    const uint32_t of_x = x->rank < 2 ? 0 : x->rank - 2, of_y = y->rank < 2 ? 0 : y->rank - 2;
    const uint32_t batch_rank = of_x > of_y ? of_x : of_y;
    for (uint32_t d = 0; d < batch_rank; d++) {
        const uint64_t p = d < batch_rank - of_x ? 1 : x->dims[d - (batch_rank - of_x)];
        const uint64_t q = d < batch_rank - of_y ? 1 : y->dims[d - (batch_rank - of_y)];
        batch[d] = p == 1 ? q : p;
        if (p != q && p != 1 && q != 1)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "sizes %llu and %llu of the batch",
                                     (unsigned long long)p, (unsigned long long)q);
        out->dims[d] = batch[d];
    }
    const uint64_t k = x->dims[x->rank - 1], of_b = y->dims[y->rank < 2 ? 0 : y->rank - 2];
    if (k != of_b)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%llu columns by %llu rows", (unsigned long long)k,
                                 (unsigned long long)of_b);
    out->rank = batch_rank;
    if (x->rank > 1)
        out->dims[out->rank++] = x->dims[x->rank - 2];
    if (y->rank > 1)
        out->dims[out->rank++] = y->dims[y->rank - 1];
    /* Many small products by the same matrix are one large one: leading sizes of a are rows. */
    if (of_y == 0 && of_x > 0 && y->rank == 2) {
        const uint64_t rows = opjit_onnx_elements_of(x) / k;
        out->a = opjit_onnx_reshape(m, onnx_tensor_of(m, c, a), 2, (uint64_t[]){ rows, k });
        out->b = onnx_tensor_of(m, c, b);
        return m->error->status;
    }
    out->a = factor(m, c, a, true, batch_rank, batch);
    out->b = factor(m, c, b, false, batch_rank, batch);
    return m->error->status;
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
    const opjit_tensor p = opjit_graph_multiply(g, opjit_onnx_reshape(m, f->a, rank, wide[0]),
                                                opjit_onnx_reshape(m, f->b, rank, wide[1]));
    const uint32_t axis = rank - 2;
    return opjit_graph_reduce(g, p, DML_REDUCE_FUNCTION_SUM, 1, &axis);
}

static bool is_float(int32_t type)
{
    return type == ONNX_FLOAT || type == ONNX_FLOAT16 || type == ONNX_DOUBLE;
}

opjit_status opjit_onnx_matmul(onnx_import *m, onnx_call *c)
{
    factors f;
    TRY(opjit_onnx_need(m, c, 2));
    TRY(read_factors(m, c, 0, 1, &f));
    const int32_t type = c->inputs[0]->type;
    if (!is_float(type) && f.rank > ONNX_RANK - 1)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "a product of integers of %u dimensions", f.rank);
    const opjit_tensor y =
        is_float(type) ? opjit_graph_matrix_multiply(m->graph, f.a, f.b, 0, 0) : integer_product(m, &f);
    return opjit_onnx_give_as(m, c, 0, y, type, f.rank, f.dims);
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
    const DML_GEMM_OPERATOR_DESC desc = { .TransA = DML_MATRIX_TRANSFORM_NONE, .TransB = DML_MATRIX_TRANSFORM_NONE,
                                          .Alpha = opjit_onnx_float(m, c, "alpha", 1) };
    const opjit_tensor pair[2] = { f.a, f.b };
    return opjit_onnx_give_as(m, c, 0, opjit_graph_op(m->graph, DML_OPERATOR_GEMM, &desc, pair, 2),
                              c->inputs[0]->type, f.rank, f.dims);
}

opjit_status opjit_onnx_gemm(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const a = c->inputs[0], *const b = c->inputs[1];
    const bool turn_a = opjit_onnx_int(m, c, "transA", 0) != 0, turn_b = opjit_onnx_int(m, c, "transB", 0) != 0;
    if (a->rank != 2 || b->rank != 2 || !is_float(a->type))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u and %u dimensions of %s", a->rank, b->rank,
                                 opjit_onnx_type_name(a->type).text);
    const DML_GEMM_OPERATOR_DESC desc = { .TransA = turn_a ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                          .TransB = turn_b ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                          .Alpha = opjit_onnx_float(m, c, "alpha", 1),
                                          .Beta = opjit_onnx_float(m, c, "beta", 1) };
    const uint32_t sizes[2] = { (uint32_t)a->dims[turn_a], (uint32_t)b->dims[!turn_b] };
    opjit_tensor inputs[3] = { onnx_tensor_of(m, c, 0), onnx_tensor_of(m, c, 1), onnx_tensor_of(m, c, 2) };
    if (inputs[2].index != 0)
        inputs[2] = opjit_graph_broadcast(m->graph, inputs[2], 2, sizes);
    return opjit_onnx_give(m, c, 0, opjit_graph_op(m->graph, DML_OPERATOR_GEMM, &desc, inputs, 3), a->type, 2);
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
    const opjit_tensor scale =
        opjit_graph_multiply(g, parameter(m, c, 2, rank, true), parameter(m, c, 3, rank, false));
    opjit_tensor y = opjit_graph_multiply(g, opjit_onnx_cast(m, sums, ONNX_INT32, c->inputs[2]->type), scale);
    if (onnx_input(c, 6) != NULL)
        y = opjit_graph_add(g, y, onnx_tensor_of(m, c, 6));
    return opjit_onnx_give_as(m, c, 0, y, c->inputs[2]->type, f.rank, f.dims);
}

opjit_status opjit_onnx_qlinear_matmul(onnx_import *m, onnx_call *c)
{
    factors f;
    TRY(opjit_onnx_need(m, c, 8));
    TRY(read_factors(m, c, 0, 3, &f));
    const uint32_t rank = rank_of(m, f.a);
    const opjit_tensor inputs[8] = { f.a, parameter(m, c, 1, rank, true), parameter(m, c, 2, rank, true),
                                     f.b, parameter(m, c, 4, rank, false), parameter(m, c, 5, rank, false),
                                     parameter(m, c, 6, rank, true), parameter(m, c, 7, rank, true) };
    const opjit_tensor y = opjit_graph_op(m->graph, DML_OPERATOR_QUANTIZED_LINEAR_MATRIX_MULTIPLY, NULL, inputs, 8);
    return opjit_onnx_give_as(m, c, 0, y, c->inputs[7]->type, f.rank, f.dims);
}
