/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c - custom operators: a C function as an operator with a row of its own, which has a name and nothing else.
 * Where they stand in a kernel is parts.c's; how the function is called, runtime/call/ffi.c's. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

#define TENSORS_MAX 64u
#define ARGS_MAX 64u
#define NAME_MAX 64u
#define KEY_MAX 65536u
#define CUSTOM_KEY (UINT32_MAX - 1) /* where the key of any other operator has its type */

static opjit_status refuse(const char *name, const char *field, const char *what, opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%.64s} {%s}: {%s}", name, field, what);
}

static opjit_status check_count(const opjit_custom_desc *d, const char *field, uint32_t count, uint32_t least,
                                const void *array, opjit_error *error)
{
    if (count < least || count > TENSORS_MAX)
        return opjit_rt_refuse(error, count == 0 ? OPJIT_INVALID_ARGUMENT : OPJIT_LIMIT,
                               "{%.64s} {%s_count}: {%u}, must be %u to %u", d->name, field, count, least, TENSORS_MAX);
    if (count != 0 && array == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%.64s} {%ss}: {NULL}, must be an array of %u", d->name,
                               field, count);
    return OPJIT_OK;
}

static opjit_status check(const opjit_custom_desc *d, opjit_error *error)
{
    if (d->name == NULL || d->name[0] == '\0')
        return refuse("custom operator", "name", d->name == NULL ? "NULL, must be a text" : "empty", error);
    if (strlen(d->name) > NAME_MAX)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{%.64s}... {name}: {%zu} bytes, must be at most %u", d->name,
                               strlen(d->name), NAME_MAX);
    if ((d->flags & ~OPJIT_CUSTOM_RETURNS_STATUS) != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%.64s} {flags}: {0x%x}, must be 0 or RETURNS_STATUS (1)", d->name, (unsigned)d->flags);
    if (d->reserved != 0)
        return refuse(d->name, "reserved", "must be 0", error);
    if (d->function == NULL)
        return refuse(d->name, "function", "NULL, must be a function", error);
    if (d->key == NULL && d->key_bytes != 0)
        return refuse(d->name, "key", "NULL, must be key_bytes bytes", error);
    if (d->key_bytes > KEY_MAX)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{%.64s} {key_bytes}: {%llu}, must be at most %u", d->name,
                               (unsigned long long)d->key_bytes, KEY_MAX);
    if (d->arg_count != 0 && d->args == NULL)
        return refuse(d->name, "args", "NULL, must be an array of arg_count", error);
    TRY(check_count(d, "input", d->input_count, 0, d->inputs, error));
    return check_count(d, "output", d->output_count, 1, d->outputs, error);
}

/* One tensor as "inputs[2]". */
static opjit_status take_tensor(opjit_operator *op, const DML_TENSOR_DESC *given, const char *array, uint32_t i,
                                fe_tensor *out, const char **out_name, opjit_error *error)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%s[%u]", array, i);

    *out_name = opjit_rt_arena_string(&op->arena, text, (size_t)length);
    if (*out_name == NULL)
        return opjit_rt_no_memory(error);
    TRY(opjit_fe_tensor_resolve(given, array[0] == 'o', op->def->name, *out_name, out, error));
    if ((OP_TYPES_ALL >> out->dtype & 1) == 0)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{%s} {%s.DataType}: {%s}, must be a type of 8 bits or more",
                               op->def->name, *out_name, opjit_rt_dtype_name(out->dtype));
    return OPJIT_OK;
}

/* All that decides which function is called with what; floats of scalars as bits. */
static void write_key(const opjit_custom_desc *d, const opjit_operator *op, rt_bytes *out)
{
    opjit_rt_bytes_u32(out, CUSTOM_KEY);
    opjit_rt_bytes_u32(out, d->flags);
    opjit_rt_bytes_str(out, d->name);
    opjit_rt_bytes_u64(out, d->key_bytes);
    if (d->key_bytes != 0)
        opjit_rt_bytes_append(out, d->key, (size_t)d->key_bytes);
    opjit_rt_bytes_append(out, &d->function, sizeof d->function);
    opjit_rt_bytes_append(out, &d->user, sizeof d->user);
    opjit_rt_bytes_u32(out, d->input_count);
    opjit_rt_bytes_u32(out, d->output_count);
    for (uint32_t i = 0; i < d->input_count; i++)
        opjit_fe_tensor_key(&op->inputs[i], out);
    for (uint32_t i = 0; i < d->output_count; i++)
        opjit_fe_tensor_key(&op->outputs[i], out);
    opjit_rt_bytes_u32(out, d->arg_count);
    for (uint32_t i = 0; i < d->arg_count; i++) {
        const opjit_custom_arg *arg = &d->args[i];
        const bool scalar = arg->kind == OPJIT_CUSTOM_SCALAR;
        opjit_rt_bytes_u32(out, arg->kind);
        opjit_rt_bytes_u32(out, scalar ? (uint32_t)arg->dtype : arg->index);
        if (scalar)
            opjit_rt_bytes_append(out, &arg->value, opjit_rt_dtype_size(arg->dtype));
    }
}

static opjit_status fill(opjit_operator *op, const opjit_custom_desc *d, opjit_error *error)
{
    op_def *row = ARENA_NEW(&op->arena, op_def);
    char *name = opjit_rt_arena_string(&op->arena, d->name, strlen(d->name));

    if (row == NULL || name == NULL)
        return opjit_rt_no_memory(error);
    *row = (op_def){ .type = DML_OPERATOR_INVALID, .name = name, .formula = "custom" };
    op->def = row;
    for (uint32_t i = 0; i < d->input_count; i++)
        TRY(take_tensor(op, &d->inputs[i], "inputs", i, &op->inputs[i], &op->input_names[i], error));
    for (uint32_t i = 0; i < d->output_count; i++)
        TRY(take_tensor(op, &d->outputs[i], "outputs", i, &op->outputs[i], &op->output_names[i], error));
    TRY(opjit_rt_custom_make(d, &op->arena, &op->custom, error));
    write_key(d, op, &op->key);
    if (op->key.failed)
        return opjit_rt_no_memory(error);
    op->hash = opjit_rt_hash64(op->key.data, op->key.size);
    return OPJIT_OK;
}

static const rt_struct desc_sizes = { "opjit_custom_desc", { RT_SIZE_TO(opjit_custom_desc, user) } };
RT_STRUCT_ENDS_WITH(opjit_custom_desc, user);

opjit_status opjit_custom_create(opjit_context *context, const opjit_custom_desc *desc, opjit_operator **out_operator,
                                 opjit_error *error)
{
    static const op_def none = { .name = "" };
    opjit_custom_arg args[ARGS_MAX];
    opjit_custom_desc d;
    opjit_operator *op;
    opjit_status status;

    opjit_rt_error_clear(error);
    if (out_operator != NULL)
        *out_operator = NULL;
    if (context == NULL || desc == NULL || out_operator == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : desc == NULL ? "desc" : "out_operator");
    TRY(opjit_rt_struct_read(&desc_sizes, &d, desc, error));
    if (d.args != NULL && d.arg_count <= ARGS_MAX) /* what is checked is what is kept; more are refused unread */
        d.args = memcpy(args, d.args, d.arg_count * sizeof *args);
    TRY(check(&d, error));
    op = opjit_fe_operator_new(context->core, &none, d.input_count, d.output_count, "");
    if (op == NULL)
        return opjit_rt_no_memory(error);
    status = fill(op, &d, error);
    if (status != OPJIT_OK)
        opjit_operator_release(op);
    else
        *out_operator = op;
    return status;
}
