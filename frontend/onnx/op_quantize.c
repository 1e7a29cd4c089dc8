/* SPDX-License-Identifier: Apache-2.0 */
/* op_quantize.c - from numbers to small integers and back. */
#include "frontend/onnx/ops.h"

/* A scale or zero point of x: one number, one along the axis, or one for each block of the axis; broadcast to x's
 * sizes.  Null where it is absent. */
static opjit_tensor parameter(onnx_import *m, const onnx_call *c, uint32_t i, const onnx_value *x)
{
    onnx_value *const v = onnx_input(c, i);
    uint64_t dims[ONNX_RANK + 1];
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
        const opjit_tensor apart = opjit_onnx_reshape(m, opjit_onnx_tensor(m, v), x->rank + 1, dims);
        const opjit_tensor wide = opjit_graph_broadcast(m->graph, apart, x->rank + 1, sizes);
        for (uint32_t d = 0; d < x->rank; d++)
            dims[d] = v->dims[d] * (d == axis ? (uint64_t)block : 1);
        return opjit_onnx_reshape(m, wide, x->rank, dims);
    }
    return opjit_onnx_vector(m, c, i, x->rank == 0 ? 1 : x->rank, axis);
}

/* As the standard has it: saturate(round(x / scale) + zero point). */
opjit_status opjit_onnx_quantize(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0], *const zero = onnx_input(c, 2);
    const int32_t said = (int32_t)opjit_onnx_int(m, c, "output_dtype", 0);
    const int32_t type = zero != NULL ? zero->type : said != 0 ? said : ONNX_UINT8;
    static const struct {
        int32_t type;
        double least, most;
    } ranges[] = { { ONNX_UINT8, 0, 255 },
                   { ONNX_INT8, -128, 127 },
                   { ONNX_UINT16, 0, 65535 },
                   { ONNX_INT16, -32768, 32767 } };
    uint32_t range = 0;
    while (range < 4 && ranges[range].type != type)
        range++;
    if (range == 4)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "elements of %s are not taken",
                                 opjit_onnx_type_name(type).text);
    opjit_graph *const g = m->graph;
    const DML_ELEMENT_WISE_ROUND_OPERATOR_DESC round = { NULL, NULL, DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN };
    const opjit_tensor wide = opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), x->type, ONNX_FLOAT);
    const opjit_tensor scale = opjit_onnx_cast(m, parameter(m, c, 1, x), c->inputs[1]->type, ONNX_FLOAT);
    const opjit_tensor quotient = opjit_graph_divide(g, wide, scale);
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
    return opjit_onnx_give(m, c, 0, y, type, x->rank);
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

/* QLinearNAME: the operator NAME of what its inputs stand for, quantized again.  Inputs are elements, scale and zero
 * point; the result's scale and zero point are the last ones, or (Concat) the first. */
opjit_status opjit_onnx_qlinear(onnx_import *m, onnx_call *c)
{
    static const onnx_row back = { "", "DequantizeLinear", opjit_onnx_dequantize, 0, NULL };
    static const onnx_row again = { "", "QuantizeLinear", opjit_onnx_quantize, 0, NULL };
    enum { PREFIX = 7 }; /* "QLinear" */
    onnx_node node = *c->node;
    node.domain.size = 0;
    node.op.data += PREFIX;
    node.op.size -= PREFIX;
    const onnx_row *const row = opjit_onnx_find_row(&node);
    const uint32_t first = wire_is(node.op, "Concat") ? 2 : 0;
    const uint32_t count = c->input_count < 2 ? 0 : (c->input_count - 2) / 3;
    if (row == NULL || row->make == NULL || count == 0 || c->input_count != 3 * count + 2)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u inputs are not taken", c->input_count);
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
    }
    TRY(opjit_onnx_call_row(m, c, &node, row, inputs, count, &values[count]));
    onnx_value *const result[3] = { &values[count], onnx_input(c, first == 0 ? 3 * count : 0),
                                    onnx_input(c, first == 0 ? 3 * count + 1 : 1) };
    if (result[1] == NULL)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "the scale of the result is missing");
    return opjit_onnx_call_row(m, c, &node, &again, (onnx_value **)(uintptr_t)result, 3, &c->outputs[0]);
}
