/* SPDX-License-Identifier: Apache-2.0 */
/* key.c - the canonical key of an operator, written field by field from its row.  Equal keys lower to equal IR.
 *
 * Canonical means that the key omits what does not reach the IR: the stride of a dimension of size 1, whether packed
 * strides were given or left out, OWNED_BY_DML, bytes after a scalar's type, which non-zero value a BOOL has.  Floats
 * are stored as bits.  Values of late fields are parameters of the IR, so the key omits them as well.  Layout: type
 * u32, then every field; counts before contents. */
#include <string.h>

#include "frontend/frontend.h"

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

/* Sizes and strides are below 2^32 because the span is. */
void opjit_fe_tensor_key(const fe_tensor *t, rt_bytes *out)
{
    uint8_t key[3 + OPJIT_MAX_RANK * 2 * sizeof(uint32_t) + sizeof t->bytes + sizeof t->align] = { t->present };
    uint8_t *at = key + 3;

    if (!t->present) {
        opjit_rt_bytes_append(out, key, 1);
        return;
    }
    key[1] = (uint8_t)t->dtype;
    key[2] = (uint8_t)t->rank;
    for (uint32_t i = 0; i < t->rank; i++) {
        at = put_u32(at, (uint32_t)t->sizes[i]);
        at = put_u32(at, (uint32_t)t->strides[i]);
    }
    memcpy(at, &t->bytes, sizeof t->bytes);
    at = put_u32(at + sizeof t->bytes, t->align);
    opjit_rt_bytes_append(out, key, (size_t)(at - key));
}

static uint32_t u32_at(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Writes count numbers of 4 bytes from the pointer at `at`.  An absent array differs from an empty one. */
static void numbers_key(const uint8_t *at, uint32_t count, rt_bytes *out)
{
    const uint8_t *numbers;

    memcpy(&numbers, at, sizeof numbers);
    opjit_rt_bytes_u8(out, numbers != NULL);
    if (numbers == NULL)
        return;
    opjit_rt_bytes_u32(out, count);
    for (uint32_t i = 0; i < count; i++)
        opjit_rt_bytes_u32(out, u32_at(numbers + 4 * (size_t)i));
}

/* Writes the type and the floats of a fused activation, which has no other fields. */
static void activation_key(const DML_OPERATOR_DESC *activation, rt_bytes *out)
{
    opjit_rt_bytes_u32(out, activation == NULL ? 0 : (uint32_t)activation->Type);
    if (activation == NULL)
        return;
    const op_def *def = opjit_fe_op_find(activation->Type);
    for (uint32_t i = 0; i < def->field_count; i++)
        if (def->fields[i].kind == OP_FLOAT)
            opjit_rt_bytes_u32(out, u32_at((const uint8_t *)activation->Desc + def->fields[i].offset));
}

static void activations_key(const uint8_t *at, const uint8_t *count, rt_bytes *out)
{
    const DML_OPERATOR_DESC *activations;
    const uint32_t number = count == NULL ? 1 : u32_at(count);

    memcpy(&activations, at, sizeof activations);
    if (count != NULL)
        opjit_rt_bytes_u32(out, number);
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
        opjit_rt_bytes_u32(out, u32_at(count));
        for (uint32_t i = 0; i < u32_at(count); i++)
            opjit_fe_tensor_key(&op->inputs[(*inputs)++], out);
        break;
    case OP_OUTPUTS:
        opjit_rt_bytes_u32(out, u32_at(count));
        for (uint32_t i = 0; i < u32_at(count); i++)
            opjit_fe_tensor_key(&op->outputs[(*outputs)++], out);
        break;
    case OP_SCALAR: opjit_rt_bytes_u64(out, opjit_fe_scalar_bits(op, index)); break;
    case OP_BOOL: opjit_rt_bytes_u8(out, u32_at(at) != 0); break;
    case OP_DTYPE:
    case OP_INT:
    case OP_UINT:
    case OP_FLOAT:
    case OP_ENUM: opjit_rt_bytes_u32(out, u32_at(at)); break;
    case OP_UINTS:
    case OP_INTS:
    case OP_FLOATS: numbers_key(at, u32_at(count), out); break;
    case OP_SCALE_BIAS: numbers_key(at, sizeof(DML_SCALE_BIAS) / 4, out); break;
    case OP_ACTIVATION: activations_key(at, NULL, out); break;
    case OP_ACTIVATIONS: activations_key(at, count, out); break;
    case OP_SIZE_2D:
        opjit_rt_bytes_u32(out, u32_at(at));
        opjit_rt_bytes_u32(out, u32_at(at + offsetof(DML_SIZE_2D, Height)));
        break;
    }
}

void opjit_fe_operator_key(const opjit_operator *op, uint64_t late, rt_bytes *out)
{
    uint32_t inputs = 0, outputs = 0;

    opjit_rt_bytes_u32(out, (uint32_t)op->def->type);
    for (uint32_t i = 0; i < op->def->field_count; i++)
        if ((late >> i & 1) == 0)
            field_key(op, i, &inputs, &outputs, out);
}
