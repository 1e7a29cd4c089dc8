/* SPDX-License-Identifier: Apache-2.0 */
/* quantize.c - from numbers to small integers and back. */
#include <math.h>

#include "frontend/onnx/ops/ops.h"

/* A scale or zero point of x: one number, one along the axis, or one for each block of the axis; broadcast to x's
 * sizes.  Null where it is absent. */
static opjit_tensor parameter(onnx_import *m, const onnx_call *c, uint32_t i, const onnx_value *x)
{
    onnx_value *const v = onnx_input(c, i);
    uint64_t dims[ONNX_RANK + 1], result[ONNX_RANK];
    uint32_t sizes[ONNX_RANK + 1], axis = 0;
    if (v == NULL || m->error->status != OPJIT_OK)
        return (opjit_tensor){ 0, 0 };
    const uint64_t count = opjit_onnx_elements_of(v);
    const int64_t block = opjit_onnx_int(m, c, "block_size", 0);
    if (count != 1 && opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 1), x->rank, &axis) != OPJIT_OK)
        return (opjit_tensor){ 0, 0 };
    if (block > 0 && v->rank == x->rank && x->rank < ONNX_RANK) {
        /* Each number is repeated along the axis: {.., n, 1, ..} to {.., n, block, ..}, as {.., n * block, ..}. */
        for (uint32_t d = 0, of = 0; d <= x->rank; d++) {
            dims[d] = d == axis + 1 ? 1 : v->dims[of++];
            sizes[d] = d == axis + 1 ? (uint32_t)block : (uint32_t)dims[d];
        }
        for (uint32_t d = 0; d < x->rank; d++)
            result[d] = v->dims[d] * (d == axis ? (uint64_t)block : 1);
        const opjit_tensor each =
            opjit_onnx_repeat(m, opjit_onnx_tensor(m, v), x->rank + 1, dims, sizes, x->rank, result);
        if (result[axis] <= x->dims[axis] || result[axis] - x->dims[axis] >= (uint64_t)block)
            return each;
        for (uint32_t d = 0; d < x->rank; d++) /* the last block is shorter */
            sizes[d] = (uint32_t)(d == axis ? x->dims[d] : result[d]);
        return opjit_graph_slice(m->graph, each, (const uint32_t[ONNX_RANK]){ 0 }, sizes, NULL);
    }
    return opjit_onnx_vector(m, c, i, x->rank == 0 ? 1 : x->rank, axis);
}

/* --- between DequantizeLinear and QuantizeLinear ------------------------------------------------------------------ */

/* QLinearAdd: both by their scales over the result's, and the zero points as one number: what is half between two
 * numbers stays so. */
opjit_status opjit_onnx_qlinear_add(onnx_import *m, onnx_call *c)
{
    enum { A, B = 3, SCALE = 6, ZERO, INPUTS };
    const DML_ELEMENT_WISE_ROUND_OPERATOR_DESC round = { NULL, NULL, DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN };
    opjit_graph *const g = m->graph;
    opjit_tensor terms[2], offsets[2];
    if (onnx_input(c, A + 2) == NULL || onnx_input(c, B + 2) == NULL || onnx_input(c, ZERO) == NULL)
        return opjit_onnx_qlinear(m, c);
    TRY(opjit_onnx_need(m, c, INPUTS));
    const int32_t type = c->inputs[ZERO]->type;
    const onnx_value *const a = c->inputs[A], *const b = c->inputs[B];
    if (type != ONNX_UINT8 && type != ONNX_INT8)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "the zero point is of %s, must be of uint8 or int8",
                                 opjit_onnx_type_name(type).text);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t first = i == 0 ? A : B;
        const opjit_tensor ratio = opjit_graph_divide(g, onnx_tensor_of(m, c, first + 1), onnx_tensor_of(m, c, SCALE));
        terms[i] = opjit_graph_multiply(
            g, opjit_onnx_cast(m, onnx_tensor_of(m, c, first), c->inputs[first]->type, ONNX_FLOAT), ratio);
        offsets[i] = opjit_graph_multiply(
            g, opjit_onnx_cast(m, onnx_tensor_of(m, c, first + 2), c->inputs[first + 2]->type, ONNX_FLOAT), ratio);
    }
    const opjit_tensor zero = opjit_onnx_cast(m, onnx_tensor_of(m, c, ZERO), type, ONNX_FLOAT);
    const opjit_tensor fixed = opjit_graph_subtract(g, zero, opjit_graph_add(g, offsets[0], offsets[1]));
    opjit_tensor y = opjit_graph_add(g, opjit_graph_add(g, terms[0], fixed), terms[1]);
    y = opjit_graph_op(g, DML_OPERATOR_ELEMENT_WISE_ROUND, &round, &y, 1);
    y = opjit_graph_clip(g, y, type == ONNX_UINT8 ? 0 : -128, type == ONNX_UINT8 ? 255 : 127);
    return opjit_onnx_give(m, c, 0, opjit_onnx_cast(m, y, ONNX_FLOAT, type), type,
                           a->rank > b->rank ? a->rank : b->rank);
}

static bool is_byte(const onnx_value *v)
{
    return v != NULL && (v->type == ONNX_UINT8 || v->type == ONNX_INT8);
}

/* Elements, scale and zero point that the value was made of; the scale is one number, or one for each along the axis.
 * Constants are read anew: what the call read may lie in a graph of its own. */
static bool take_quantized(onnx_import *m, const onnx_value *v, uint32_t axis, onnx_value out[3])
{
    const onnx_call *const by = onnx_maker(m, v, opjit_onnx_dequantize);
    if (by == NULL || !is_byte(by->inputs[0]) || !is_byte(onnx_input(by, 2)) ||
        opjit_onnx_int(m, by, "block_size", 0) != 0)
        return false;
    const int64_t said = opjit_onnx_int(m, by, "axis", 1);
    if (opjit_onnx_elements_of(by->inputs[1]) != 1 && said != axis && said + (int64_t)v->rank != axis)
        return false;
    for (uint32_t i = 0; i < 3; i++) {
        out[i] = *by->inputs[i];
        if (onnx_is_constant(&out[i]))
            out[i].tensor = (opjit_tensor){ 0, 0 };
    }
    return true;
}

/* What a clip reads whose bounds become the least and the greatest number by the scale and zero point, so that it says
 * nothing; else the value itself. */
static const onnx_value *skip_clip(onnx_import *m, const onnx_value *x, onnx_value *scale, onnx_value *zero)
{
    const onnx_call *const relu = onnx_maker(m, x, opjit_onnx_unary);
    const onnx_call *const by = relu != NULL ? relu : onnx_maker(m, x, opjit_onnx_clip);
    double bounds[2] = { 0, INFINITY };
    if (by == NULL || x->readers != 1 || scale->type != ONNX_FLOAT || opjit_onnx_elements_of(zero) != 1)
        return x;
    const float *const step = opjit_onnx_data(m, scale);
    const void *const from = opjit_onnx_data(m, zero);
    if (step == NULL || from == NULL || (relu == NULL && !opjit_onnx_clip_bounds(m, by, bounds)))
        return x;
    const bool is_signed = zero->type == ONNX_INT8;
    const double at = is_signed ? *(const int8_t *)from : *(const uint8_t *)from, least = is_signed ? -128 : 0;
    return rint(bounds[0] / (double)*step) + at <= least && rint(bounds[1] / (double)*step) + at >= least + 255
               ? by->inputs[0]
               : x;
}

/* Whether the bias is INT32 at the scale of the sums that it is added to, from 0. */
static bool is_bias(onnx_import *m, const onnx_call *bias, onnx_value *x_scale, onnx_value *w_scale)
{
    onnx_value *const zero = onnx_input(bias, 2);
    const float *const b = opjit_onnx_data(m, bias->inputs[1]), *const x = opjit_onnx_data(m, x_scale);
    const float *const w = opjit_onnx_data(m, w_scale);
    const int32_t *const from = zero == NULL ? NULL : opjit_onnx_data(m, zero);
    const uint64_t count = opjit_onnx_elements_of(bias->inputs[1]), each = opjit_onnx_elements_of(w_scale);
    bool same = bias->inputs[0]->type == ONNX_INT32 && b != NULL && x != NULL && w != NULL &&
                bias->inputs[1]->type == ONNX_FLOAT && x_scale->type == ONNX_FLOAT && w_scale->type == ONNX_FLOAT &&
                (count == each || count == 1) && (zero == NULL || (from != NULL && zero->type == ONNX_INT32));
    for (uint64_t i = 0; i < each && same; i++)
        same = fabsf(b[i % count] - x[0] * w[i]) <= 1e-5f * fabsf(b[i % count]);
    for (uint64_t i = 0; zero != NULL && i < opjit_onnx_elements_of(zero) && same; i++)
        same = from[i] == 0;
    return same;
}

/* QuantizeLinear of a convolution, product or sum of what is dequantized is the operator of quantized tensors, which is
 * exact.  *done: it is made. */
static opjit_status quantize_product(onnx_import *m, onnx_call *c, bool *done)
{
    static const struct {
        onnx_row_fn of;
        onnx_row row;
        bool has_bias; /* in front of the result's scale, else behind its zero point */
    } forms[] = { { opjit_onnx_conv, { "", "QLinearConv", opjit_onnx_conv_quantized, 1, NULL }, false },
                  { opjit_onnx_matmul, { "", "QLinearMatMul", opjit_onnx_qlinear_matmul, 0, NULL }, false },
                  { opjit_onnx_gemm, { "com.microsoft", "QGemm", opjit_onnx_qgemm, 0, NULL }, true },
                  { opjit_onnx_binary, { "com.microsoft", "QLinearAdd", opjit_onnx_qlinear_add, 0, NULL }, false } };
    const onnx_value *x = c->inputs[0];
    onnx_value *const zero = onnx_input(c, 2);
    onnx_value values[9] = { { 0 } };
    onnx_value *inputs[9] = { &values[0], &values[1], &values[2], &values[3], &values[4], &values[5] };
    if (!is_byte(zero) || opjit_onnx_elements_of(c->inputs[1]) != 1)
        return OPJIT_OK;
    x = skip_clip(m, x, c->inputs[1], zero);
    for (uint32_t i = 0; i < sizeof forms / sizeof *forms && x->readers == 1; i++) {
        const onnx_call *const by = onnx_maker(m, x, forms[i].of);
        if (by == NULL)
            continue;
        const bool conv = forms[i].of == opjit_onnx_conv, sum = forms[i].of == opjit_onnx_binary;
        const uint32_t rows = conv || opjit_onnx_int(m, by, "transB", 0) != 0 ? 0 : 1; /* of the filter or factor */
        const onnx_call *const bias = onnx_maker(m, onnx_input(by, 2), opjit_onnx_dequantize);
        if (!take_quantized(m, by->inputs[0], UINT32_MAX, &values[0]) ||
            !take_quantized(m, by->inputs[1], sum ? UINT32_MAX : rows, &values[3]) ||
            (onnx_input(by, 2) != NULL && bias == NULL) ||
            (bias != NULL && !is_bias(m, bias, &values[1], &values[4])) ||
            (!conv && !sum && by->inputs[1]->rank != 2) || opjit_onnx_float(m, by, "alpha", 1) != 1 ||
            opjit_onnx_float(m, by, "beta", 1) != 1)
            return OPJIT_OK;
        if (bias != NULL) {
            values[6] = *bias->inputs[0];
            values[6].tensor = onnx_is_constant(&values[6]) ? (opjit_tensor){ 0, 0 } : values[6].tensor;
        }
        const uint32_t result = forms[i].has_bias ? 7 : 6;
        inputs[forms[i].has_bias ? 6 : 8] = bias == NULL ? NULL : &values[6];
        inputs[result] = c->inputs[1];
        inputs[result + 1] = zero;
        *done = true;
        return opjit_onnx_call_row(m, c, by->node, &forms[i].row, inputs, 9, &c->outputs[0]);
    }
    return OPJIT_OK;
}

/* As the standard has it: saturate(round(x / scale) + zero point). */
opjit_status opjit_onnx_quantize(onnx_import *m, onnx_call *c)
{
    bool done = false;
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0], *const zero = onnx_input(c, 2);
    if (zero != NULL && zero->source != NULL && zero->source->type != zero->type)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "elements of %s are not taken",
                                 opjit_onnx_type_name(zero->source->type).text);
    TRY(quantize_product(m, c, &done));
    if (done)
        return OPJIT_OK;
    const int32_t said = (int32_t)opjit_onnx_int(m, c, "output_dtype", 0);
    const int32_t type = zero != NULL ? zero->type : said != 0 ? said : ONNX_UINT8;
    static const struct {
        int32_t type;
        double least, most;
    } ranges[] = {
        { ONNX_UINT8, 0, 255 }, { ONNX_INT8, -128, 127 }, { ONNX_UINT16, 0, 65535 }, { ONNX_INT16, -32768, 32767 }
    };
    uint32_t range = 0;
    while (range < 4 && ranges[range].type != type)
        range++;
    if (range == 4)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "elements of %s are not taken",
                                 opjit_onnx_type_name(type).text);
    opjit_graph *const g = m->graph;
    const DML_ELEMENT_WISE_ROUND_OPERATOR_DESC round = { NULL, NULL, DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN };
    const int32_t given = c->inputs[1]->type; /* from opset 23 on the quotient's type, unless the node says another */
    const int64_t precision = m->opset < 23 ? ONNX_FLOAT : opjit_onnx_int(m, c, "precision", 0);
    const opjit_tensor wide = opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), x->type, ONNX_FLOAT);
    const opjit_tensor scale = opjit_onnx_cast(m, parameter(m, c, 1, x), given, ONNX_FLOAT);
    const int32_t of = precision == 0 ? given : (int32_t)precision;
    const opjit_tensor quotient =
        opjit_onnx_from_stored(m, opjit_onnx_to_stored(m, opjit_graph_divide(g, wide, scale), of), of);
    opjit_tensor y = opjit_graph_op(g, DML_OPERATOR_ELEMENT_WISE_ROUND, &round, &quotient, 1);
    if (zero != NULL)
        y = opjit_graph_add(g, y, opjit_onnx_cast(m, parameter(m, c, 2, x), type, ONNX_FLOAT));
    y = opjit_graph_clip(g, y, (float)ranges[range].least, (float)ranges[range].most);
    return opjit_onnx_give(m, c, 0, opjit_onnx_cast(m, y, ONNX_FLOAT, type), type, x->rank);
}

/* (x - zero point) * scale */
opjit_status opjit_onnx_dequantize(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0];
    const int32_t type = c->inputs[1]->type;
    opjit_tensor y = opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), x->type, ONNX_INT32);
    if (onnx_input(c, 2) != NULL)
        y = opjit_graph_subtract(m->graph, y,
                                 opjit_onnx_cast(m, parameter(m, c, 2, x), c->inputs[2]->type, ONNX_INT32));
    y = opjit_graph_multiply(m->graph, opjit_onnx_cast(m, y, ONNX_INT32, type), parameter(m, c, 1, x));
    TRY(opjit_onnx_give(m, c, 0, y, type, x->rank));
    return opjit_onnx_remember(m, c);
}

opjit_status opjit_onnx_dynamic_quantize(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    opjit_tensor results[3];
    opjit_onnx_add(m, DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR, NULL, &t, 1, results, 3);
    TRY(opjit_onnx_give(m, c, 0, results[0], ONNX_UINT8, x->rank));
    TRY(opjit_onnx_give(m, c, 1, results[1], ONNX_FLOAT, 0));
    return opjit_onnx_give(m, c, 2, results[2], ONNX_UINT8, 0);
}

/* --- com.microsoft's operators of quantized tensors --------------------------------------------------------------- */

/* What the value stands for, quantized again by the scale and zero point. */
static opjit_status quantize_again(onnx_import *m, const onnx_call *c, const onnx_node *node, onnx_value *value,
                                   const uint32_t parameters[2], onnx_value *out)
{
    static const onnx_row again = { "", "QuantizeLinear", opjit_onnx_quantize, 0, NULL };
    onnx_value *const parts[3] = { value, onnx_input(c, parameters[0]), onnx_input(c, parameters[1]) };
    if (parts[1] == NULL)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "the scale of the result is missing");
    return opjit_onnx_call_row(m, c, node, &again, (onnx_value **)(uintptr_t)parts, 3, out);
}

/* QLinearNAME: the operator NAME of what its inputs stand for, quantized again.  Inputs are elements, scale and zero
 * point; the result's scale and zero point are the last ones, or (Concat) the first.  A Concat moves elements, so that
 * each input is quantized before it, from byte to byte. */
opjit_status opjit_onnx_qlinear(onnx_import *m, onnx_call *c)
{
    static const onnx_row back = { "", "DequantizeLinear", opjit_onnx_dequantize, 0, NULL };
    enum { PREFIX = 7 }; /* "QLinear" */
    onnx_node node = *c->node;
    node.domain.size = 0;
    node.op.data += PREFIX;
    node.op.size -= PREFIX;
    const onnx_row *const row = opjit_onnx_find_row(&node);
    const uint32_t first = wire_is(node.op, "Concat") ? 2 : 0;
    const uint32_t count = c->input_count < 2 ? 0 : (c->input_count - 2) / 3;
    const bool moves = first > 0 && onnx_input(c, 0) != NULL && opjit_onnx_elements_of(c->inputs[0]) == 1;
    const uint32_t result[2] = { first == 0 ? 3 * count : 0, first == 0 ? 3 * count + 1 : 1 };
    if (row == NULL || row->make == NULL || count == 0 || c->input_count != 3 * count + 2)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "%u inputs, must be 2 and 3 for each operand, of an operator that opjit has",
                                 c->input_count);
    onnx_value *const values = ARENA_ARRAY(m->arena, onnx_value, (size_t)count + 1);
    onnx_value **const inputs = ARENA_ARRAY(m->arena, onnx_value *, (size_t)count + 1);
    if (values == NULL || inputs == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < count; i++) {
        onnx_value *const parts[3] = { onnx_input(c, first + 3 * i), onnx_input(c, first + 3 * i + 1),
                                       onnx_input(c, first + 3 * i + 2) };
        if (parts[0] == NULL || parts[1] == NULL)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u is missing", first + 3 * i);
        TRY(opjit_onnx_call_row(m, c, &node, &back, (onnx_value **)(uintptr_t)parts, 3, &values[i]));
        inputs[i] = &values[i];
        if (moves) {
            onnx_value real = values[i];
            TRY(quantize_again(m, c, &node, &real, result, &values[i]));
        }
    }
    const int64_t opset = m->opset;
    m->opset = wire_is(node.op, "Softmax") ? opjit_onnx_int(m, c, "opset", opset) : opset; /* whose Softmax it is */
    const opjit_status status =
        opjit_onnx_call_row(m, c, &node, row, inputs, count, moves ? &c->outputs[0] : &values[count]);
    m->opset = opset;
    TRY(status);
    return moves ? OPJIT_OK : quantize_again(m, c, &node, &values[count], result, &c->outputs[0]);
}
