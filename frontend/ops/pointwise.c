/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.c - everything about a pointwise operator except its formula: validation, loads, FLOAT16 computed in
 * FLOAT32, ScaleBias, fused activations.  The formulas are in element_wise_*.c and the other files of rows. */
#include "frontend/ops/pointwise.h"

#include <string.h>

#include "frontend/frontend.h"

/* --- numbers ------------------------------------------------------------------------------------------------------ */

ir_ref opjit_fe_number(const op_element *e, float value)
{
    uint32_t bits;
    ir_ref number;

    memcpy(&bits, &value, sizeof bits);
    number = opjit_ir_const(e->f, IR_F32, bits);
    return e->type == IR_F32 ? number : cast_to(e, e->type, number);
}

ir_ref opjit_fe_whole(const op_element *e, ir_type type, int64_t value)
{
    return opjit_ir_const(e->f, type, opjit_ir_element_of(type, value));
}

/* The bits of a whole number modulo 2^64; false: value is fractional, infinite or a NaN. */
static bool whole_bits(float value, uint64_t *out)
{
    uint32_t bits, exponent, shift;
    uint64_t mantissa;

    memcpy(&bits, &value, sizeof bits);
    exponent = bits >> 23 & 255;
    mantissa = (bits & 0x7fffffu) | (exponent != 0 ? 0x800000u : 0);
    if (exponent == 255)
        return false;
    if (exponent < 150) { /* mantissa * 2^(exponent - 150) */
        shift = 150 - exponent;
        if (mantissa != 0 && (shift > 23 || (mantissa & ((UINT64_C(1) << shift) - 1)) != 0))
            return false;
        mantissa = mantissa == 0 ? 0 : mantissa >> shift;
    } else {
        shift = exponent - 150;
        mantissa = shift > 63 ? 0 : mantissa << shift;
    }
    *out = bits >> 31 != 0 ? 0 - mantissa : mantissa;
    return true;
}

/* --- ScaleBias ---------------------------------------------------------------------------------------------------- */

/* The operator's ScaleBias; NULL: not given, or the operator has no such field. */
static const DML_SCALE_BIAS *scale_bias_of(const op_def *def, const void *desc)
{
    const DML_SCALE_BIAS *pair = NULL;

    for (uint32_t i = 0; i < def->field_count; i++)
        if (def->fields[i].kind == OP_SCALE_BIAS)
            memcpy(&pair, (const uint8_t *)desc + def->fields[i].offset, sizeof pair);
    return pair;
}

static opjit_status check_scale_bias(const opjit_operator *op, opjit_error *error)
{
    const DML_SCALE_BIAS *pair = scale_bias_of(op->def, op->desc);
    const DML_TENSOR_DATA_TYPE type = op->inputs[0].dtype;
    uint64_t bits;

    if (pair == NULL || ir_is_float(opjit_ir_type_of(type)))
        return OPJIT_OK;
    for (int i = 0; i < 2; i++) {
        const float value = i == 0 ? pair->Scale : pair->Bias;
        if (!whole_bits(value, &bits))
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{%s} {ScaleBias.%s}: {%g}, must be a whole number for %s tensors", op->def->name,
                                   i == 0 ? "Scale" : "Bias", (double)value, opjit_rt_dtype_name(type));
    }
    return OPJIT_OK;
}

/* Scale or Bias; for integers its bits modulo 2^N. */
static ir_ref factor(const op_element *e, float value)
{
    uint64_t bits = 0;

    if (ir_is_float(e->type))
        return opjit_fe_number(e, value);
    whole_bits(value, &bits);
    return opjit_ir_const(e->f, e->type, bits);
}

/* --- validation --------------------------------------------------------------------------------------------------- */

opjit_status opjit_fe_validate_sizes(const opjit_operator *op, opjit_error *error)
{
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i].present)
            TRY(op->inputs[i].broadcasts ? opjit_fe_broadcast_sizes(op, i, error)
                                         : opjit_fe_same_sizes(op, i, 0, error));
    return check_scale_bias(op, error);
}

opjit_status opjit_fe_validate_pointwise(const opjit_operator *op, opjit_error *error)
{
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i].present)
            TRY(opjit_fe_same_type(op, i, 0, error));
    return opjit_fe_validate_sizes(op, error);
}

/* --- lowering ----------------------------------------------------------------------------------------------------- */

#define INPUTS_MAX 8u /* of a pointwise operator: QUANTIZED_LINEAR_ADD has as many */

ir_ref opjit_fe_activate(const op_element *e, const DML_OPERATOR_DESC *activation, ir_ref x)
{
    op_element inner = *e;

    if (activation == NULL)
        return x;
    inner.desc = activation->Desc;
    return opjit_fe_op_find(activation->Type)->element(&inner, &x);
}

void opjit_fe_lower_pointwise(op_lowering *l)
{
    const opjit_operator *op = l->op;
    const DML_SCALE_BIAS *pair = scale_bias_of(op->def, op->desc);
    const bool widens = (op->def->traits & OP_KEEPS_BITS) == 0 || pair != NULL;
    const ir_ref out = opjit_fe_output(l, 0);
    op_element e = { .f = l->f, .desc = op->desc, .result = opjit_fe_output_type(l, 0), .masks = l->masks };
    ir_ref x[INPUTS_MAX] = { 0 }, value;

    for (uint32_t i = op->input_count; i-- > 0;) { /* backwards, so that e.type ends as the first input's */
        if (!op->inputs[i].present)
            continue;
        e.type = opjit_ir_type_of(op->inputs[i].dtype);
        x[i] = opjit_fe_input_at(l, i, out);
        if (e.type == IR_F16 && widens)
            x[i] = cast_to(&e, e.type = IR_F32, x[i]);
    }
    if (pair != NULL)
        x[0] = op2(&e, IR_ADD, op2(&e, IR_MUL, x[0], factor(&e, pair->Scale)), factor(&e, pair->Bias));
    value = op->def->element(&e, x);
    if (l->f->failed)
        return;
    if (ir_at(l->f, value)->type != e.result) /* FLOAT16 is rounded here, once; a bool becomes 0 or 1 */
        value = cast_to(&e, e.result, value);
    opjit_ir_set_value(l->f, out, value);
}
