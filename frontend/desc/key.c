/* SPDX-License-Identifier: Apache-2.0 */
/* key.c - the canonical key of an operator, written field by field from its row.  Equal keys lower to equal IR.
 *
 * Canonical means that the key omits what does not reach the IR: the stride of a dimension of size 1, whether packed
 * strides were given or left out, OWNED_BY_DML, bytes after a scalar's type, which non-zero value a BOOL has.  Floats
 * are stored as bits.  Values of late fields are parameters of the IR, so the key omits them as well.  Layout: type
 * u32, then every field, numbers in as few bytes as they need (rt_put_number); counts before contents. */
#include <string.h>

#include "frontend/frontend.h"

void opjit_fe_tensor_key(const fe_tensor *t, rt_bytes *out)
{
    uint8_t key[3 + (OPJIT_MAX_RANK * 2 + 2) * RT_NUMBER_MOST];
    uint8_t *at = key + 3;

    key[0] = t->present;
    if (!t->present) {
        opjit_rt_bytes_append(out, key, 1);
        return;
    }
    key[1] = (uint8_t)t->dtype;
    key[2] = (uint8_t)t->rank;
    for (uint32_t i = 0; i < t->rank; i++) {
        at = rt_put_number(at, t->sizes[i]);
        at = rt_put_number(at, t->strides[i]);
    }
    at = rt_put_number(at, t->bytes);
    at = rt_put_number(at, t->align);
    opjit_rt_bytes_append(out, key, (size_t)(at - key));
}

static void number_key(uint32_t value, rt_bytes *out)
{
    uint8_t key[RT_NUMBER_MOST];

    opjit_rt_bytes_append(out, key, (size_t)(rt_put_number(key, value) - key));
}

static uint32_t u32_at(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Writes count numbers from the pointer at `at`.  An absent array differs from an empty one. */
static void numbers_key(const uint8_t *at, uint32_t count, rt_bytes *out)
{
    const uint8_t *numbers;

    memcpy(&numbers, at, sizeof numbers);
    opjit_rt_bytes_u8(out, numbers != NULL);
    if (numbers == NULL)
        return;
    number_key(count, out);
    for (uint32_t i = 0; i < count; i++)
        number_key(u32_at(numbers + 4 * (size_t)i), out);
}

/* Writes the type and the floats of a fused activation, which has no other fields. */
static void activation_key(const DML_OPERATOR_DESC *activation, rt_bytes *out)
{
    number_key(activation == NULL ? 0 : (uint32_t)activation->Type, out);
    if (activation == NULL)
        return;
    const op_def *def = opjit_fe_op_find(activation->Type);
    for (uint32_t i = 0; i < def->field_count; i++)
        if (def->fields[i].kind == OP_FLOAT)
            number_key(u32_at((const uint8_t *)activation->Desc + def->fields[i].offset), out);
}

static void activations_key(const uint8_t *at, const uint8_t *count, rt_bytes *out)
{
    const DML_OPERATOR_DESC *activations;
    const uint32_t number = count == NULL ? 1 : u32_at(count);

    memcpy(&activations, at, sizeof activations);
    if (count != NULL)
        number_key(number, out);
    for (uint32_t i = 0; i < number; i++)
        activation_key(activations == NULL ? NULL : &activations[i], out);
}

static void field_key(const opjit_operator *op, uint32_t index, uint32_t *inputs, uint32_t *outputs, rt_bytes *out)
{
    const op_field *field = &op->def->fields[index];
    const uint8_t *at = (const uint8_t *)op->desc + field->offset;
    const uint8_t *count = (const uint8_t *)op->desc + field->count;

    switch ((op_field_kind)field->kind) {
    case OP_INPUT: opjit_fe_tensor_key(&op->inputs[(*inputs)++], out); break;
    case OP_OUTPUT: opjit_fe_tensor_key(&op->outputs[(*outputs)++], out); break;
    case OP_INPUTS:
        number_key(u32_at(count), out);
        for (uint32_t i = 0; i < u32_at(count); i++)
            opjit_fe_tensor_key(&op->inputs[(*inputs)++], out);
        break;
    case OP_OUTPUTS:
        number_key(u32_at(count), out);
        for (uint32_t i = 0; i < u32_at(count); i++)
            opjit_fe_tensor_key(&op->outputs[(*outputs)++], out);
        break;
    case OP_SCALAR: opjit_rt_bytes_u64(out, opjit_fe_scalar_bits(op, index)); break;
    case OP_BOOL: opjit_rt_bytes_u8(out, u32_at(at) != 0); break;
    case OP_DTYPE:
    case OP_INT:
    case OP_UINT:
    case OP_FLOAT:
    case OP_ENUM: number_key(u32_at(at), out); break;
    case OP_UINTS:
    case OP_INTS:
    case OP_FLOATS: numbers_key(at, u32_at(count), out); break;
    case OP_SCALE_BIAS: numbers_key(at, sizeof(DML_SCALE_BIAS) / 4, out); break;
    case OP_ACTIVATION: activations_key(at, NULL, out); break;
    case OP_ACTIVATIONS: activations_key(at, count, out); break;
    case OP_SIZE_2D:
        number_key(u32_at(at), out);
        number_key(u32_at(at + offsetof(DML_SIZE_2D, Height)), out);
        break;
    }
}

void opjit_fe_operator_key(const opjit_operator *op, uint64_t late, rt_bytes *out)
{
    uint32_t inputs = 0, outputs = 0;

    opjit_rt_bytes_u32(out, (uint32_t)op->def->type); /* where a graph's key has its kind */
    for (uint32_t i = 0; i < op->def->field_count; i++)
        if ((late >> i & 1) == 0)
            field_key(op, i, &inputs, &outputs, out);
}
