/* SPDX-License-Identifier: Apache-2.0 */
/* operator.c - the object opjit_operator: one allocation with a copy of the descriptor, its tensors, names and key.
 * fields.c checks and copies the fields; what one operator demands beyond its fields is in its own file. */
#include <string.h>

#include "frontend/frontend.h"

/* Bytes for a tensor's descriptor and for its part of the key, at rank 4 with strides; where more is needed the arena
 * and the key find it elsewhere. */
#define TENSOR_ROOM (align_up(sizeof(DML_TENSOR_DESC), 16) + align_up(sizeof(DML_BUFFER_TENSOR_DESC) + 32, 16))
#define TENSOR_KEY_ROOM 48u

/* Where the parts of an operator's one allocation begin. */
typedef struct parts {
    size_t desc, tensors, names, key, arena, size;
} parts;

static parts parts_of(const op_def *def, uint32_t tensors)
{
    parts p;

    p.desc = align_up(sizeof(opjit_operator), 16);
    p.tensors = p.desc + align_up(def->desc_size, 16);
    p.names = p.tensors + sizeof(fe_tensor) * (size_t)tensors;
    p.key = p.names + align_up(sizeof(char *) * (size_t)tensors, 16);
    p.arena = p.key + align_up(16 + 8 * (size_t)def->field_count + TENSOR_KEY_ROOM * (size_t)tensors, 16);
    p.size = p.arena + RT_ARENA_HEADER + TENSOR_ROOM * (size_t)tensors;
    return p;
}

opjit_operator *opjit_fe_operator_new(rt_core *core, const op_def *def, uint32_t inputs, uint32_t outputs,
                                      const void *desc)
{
    const parts at = parts_of(def, inputs + outputs);
    unsigned char *memory = opjit_rt_allocate(&core->allocator, at.size, 16);
    opjit_operator *op = (opjit_operator *)memory;

    if (op == NULL)
        return NULL;
    atomic_init(&op->references, 1);
    op->core_counter = opjit_rt_core_enter(core);
    op->core = core;
    op->size = at.size;
    op->def = def;
    op->level = 0;
    op->custom = NULL;
    op->desc = memcpy(memory + at.desc, desc, def->desc_size);
    op->input_count = inputs;
    op->output_count = outputs;
    op->inputs = (fe_tensor *)(memory + at.tensors);
    op->outputs = op->inputs + inputs;
    op->input_names = (const char **)(memory + at.names);
    op->output_names = op->input_names + inputs;
    opjit_rt_bytes_init_in(&op->key, &core->allocator, memory + at.key, at.arena - at.key);
    opjit_rt_arena_init_in(&op->arena, &core->allocator, memory + at.arena, at.size - at.arena);
    return op;
}

static opjit_status fill(opjit_operator *op, uint32_t level, opjit_error *error)
{
    op->level = level;
    TRY(opjit_fe_take_fields(op, error));
    if (op->def->validate != NULL)
        TRY(op->def->validate(op, error));
    opjit_fe_operator_key(op, 0, &op->key);
    if (op->key.failed)
        return opjit_rt_no_memory(error);
    op->hash = opjit_rt_hash64(op->key.data, op->key.size);
    return OPJIT_OK;
}

opjit_status opjit_fe_operator_make(rt_core *core, uint32_t feature_level, const op_def *def, const void *desc,
                                    opjit_operator **out, opjit_error *error)
{
    uint32_t inputs, outputs;
    opjit_operator *op;
    opjit_status status;

    *out = NULL;
    if (desc == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {Desc}: {NULL}, must be its descriptor struct",
                               def->name);
    if (!op_is_at(def, feature_level))
        return opjit_rt_place(
            error,
            opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{%s} needs feature level %s, this context has %s", def->name,
                            opjit_fe_level_text(def->introduced).text, opjit_fe_level_text(feature_level).text),
            NULL, "Type", -1);
    TRY(opjit_fe_count_tensors(def, desc, &inputs, &outputs, error));
    op = opjit_fe_operator_new(core, def, inputs, outputs, desc);
    if (op == NULL)
        return opjit_rt_no_memory(error);
    status = fill(op, feature_level, error);
    if (status != OPJIT_OK) {
        opjit_operator_release(op);
        return status;
    }
    *out = op;
    return OPJIT_OK;
}

opjit_status opjit_fe_op_require(DML_OPERATOR_TYPE type, const op_def **out, opjit_error *error)
{
    *out = opjit_fe_op_find(type);
    if (*out != NULL)
        return OPJIT_OK;
    opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{operator} {type} {%u}, must be a DML_OPERATOR_TYPE (1 to %u)",
                    (unsigned)type, (unsigned)DML_OPERATOR_UNFOLD);
    return opjit_rt_place(error, OPJIT_INVALID_ARGUMENT, "DML_OPERATOR_DESC", "Type", -1);
}

opjit_status opjit_operator_create(opjit_context *context, const DML_OPERATOR_DESC *desc, opjit_operator **out_operator,
                                   opjit_error *error)
{
    const op_def *def;

    opjit_rt_error_clear(error);
    if (out_operator == NULL)
        return opjit_rt_refuse_null(error, "out_operator");
    *out_operator = NULL;
    if (context == NULL)
        return opjit_rt_refuse_null(error, "context");
    if (desc == NULL)
        return opjit_rt_refuse_null(error, "desc");
    TRY(opjit_fe_op_require(desc->Type, &def, error));
    return opjit_fe_operator_make(context->core, context->feature_level, def, desc->Desc, out_operator, error);
}

void opjit_operator_retain(opjit_operator *op)
{
    if (op != NULL)
        atomic_fetch_add_explicit(&op->references, 1, memory_order_relaxed);
}

void opjit_operator_release(opjit_operator *op)
{
    rt_core *core;
    uint32_t counter;

    /* The only reference is the caller's, so nobody can be taking another: no need to write. */
    if (op == NULL || (atomic_load_explicit(&op->references, memory_order_acquire) != 1 &&
                       atomic_fetch_sub_explicit(&op->references, 1, memory_order_acq_rel) != 1))
        return;
    core = op->core;
    counter = op->core_counter;
    opjit_rt_bytes_free(&op->key);
    opjit_rt_arena_free(&op->arena);
    opjit_rt_release(&core->allocator, op, op->size);
    opjit_rt_core_leave(core, counter);
}
