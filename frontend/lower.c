/* lower.c - one operator as IR in value form: declares tensors and parameters, then has the row write its formula.
 * What is literal here is made good by the passes. */
#include <string.h>

#include "frontend/frontend.h"

/* --- for lowerings ------------------------------------------------------------------------------------------------ */

ir_ref opjit_fe_output(op_lowering *l, uint32_t i)
{
    ir_func *f = l->f;
    const uint32_t tensor = l->outputs[i];
    ir_ref statement, tail = f->body;

    if (f->failed)
        return 0;
    statement = f->tensors[tensor].role == IR_OUT ? opjit_ir_yield(f, tensor) : opjit_ir_def(f, tensor);
    while (tail != 0 && ir_at(f, tail)->next != 0) /* as many statements as nodes of a graph: few */
        tail = ir_at(f, tail)->next;
    opjit_ir_append(f, 0, &tail, statement);
    return statement;
}

ir_type opjit_fe_output_type(const op_lowering *l, uint32_t i)
{
    return opjit_ir_type_of(l->op->outputs[i].dtype);
}

ir_ref opjit_fe_input_at(op_lowering *l, uint32_t i, ir_ref out)
{
    ir_ref coordinates[OPJIT_MAX_RANK];

    if (l->f->failed)
        return 0;
    for (uint32_t d = 0; d < l->op->inputs[i].rank; d++)
        coordinates[d] = opjit_ir_coordinate(l->f, out, d);
    return opjit_ir_load(l->f, l->inputs[i], coordinates);
}

/* Rows name their own fields, so the search always ends at one. */
static uint32_t field_index(const op_lowering *l, const char *name)
{
    uint32_t i = 0;

    while (strcmp(l->op->def->fields[i].name, name) != 0)
        i++;
    return i;
}

static uint32_t field_bits(const op_lowering *l, uint32_t field)
{
    uint32_t bits;
    memcpy(&bits, (const uint8_t *)l->op->desc + l->op->def->fields[field].offset, sizeof bits);
    return bits;
}

ir_ref opjit_fe_int(op_lowering *l, const char *field)
{
    const uint32_t i = field_index(l, field);
    return l->late[i] != 0 ? opjit_ir_param(l->f, l->late[i]) : opjit_ir_index(l->f, (int32_t)field_bits(l, i));
}

ir_ref opjit_fe_float(op_lowering *l, const char *field)
{
    const uint32_t i = field_index(l, field);
    return l->late[i] != 0 ? opjit_ir_param(l->f, l->late[i]) : opjit_ir_const(l->f, IR_F32, field_bits(l, i));
}

ir_ref opjit_fe_scalar(op_lowering *l, const char *field)
{
    const uint32_t i = field_index(l, field);
    const ir_type type = opjit_ir_type_of(opjit_fe_scalar_type(l->op, i));
    return l->late[i] != 0 ? opjit_ir_param(l->f, l->late[i])
                           : opjit_ir_const(l->f, type, opjit_fe_scalar_bits(l->op, i));
}

/* --- a function for one operator ---------------------------------------------------------------------------------- */

static uint32_t declare_tensor(ir_func *f, const fe_tensor *t, ir_role role, const char *name, uint32_t slot)
{
    ir_tensor tensor = {
        .role = role,
        .type = opjit_ir_type_of(t->dtype),
        .rank = t->rank,
        .bytes = t->bytes,
        .align = t->align,
        .slot = slot,
        .name = name,
    };

    memcpy(tensor.sizes, t->sizes, sizeof tensor.sizes);
    memcpy(tensor.strides, t->strides, sizeof tensor.strides);
    return opjit_ir_tensor(f, &tensor);
}

/* Inputs first, then outputs, as in the kernel's bindings. */
static void declare_tensors(op_lowering *l)
{
    const opjit_operator *op = l->op;
    uint32_t slot = 0;

    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i].present)
            l->inputs[i] = declare_tensor(l->f, &op->inputs[i], IR_IN, op->input_names[i], slot++);
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i].present)
            l->outputs[i] = declare_tensor(l->f, &op->outputs[i], IR_OUT, op->output_names[i], slot++);
}

static uint32_t declare_param(ir_func *f, const opjit_operator *op, uint32_t field)
{
    const op_field *row = &op->def->fields[field];

    switch (row->kind) {
    case OP_INT: return opjit_ir_param_add(f, IR_INDEX, INT32_MIN, INT32_MAX, row->name);
    case OP_FLOAT: return opjit_ir_param_add(f, IR_F32, 0, 0, row->name);
    default: /* OP_SCALAR: no other kind is ever marked OP_LATE */
        return opjit_ir_param_add(f, opjit_ir_type_of(opjit_fe_scalar_type(op, field)), 0, 0, row->name);
    }
}

static opjit_status lower(const opjit_operator *op, const fe_options *options, ir_func *f, opjit_error *error)
{
    uint32_t late[OP_FIELDS_MAX] = { 0 };
    op_lowering l = { .f = f, .op = op, .late = late, .flags = options->flags };

    l.inputs = ARENA_ARRAY(&f->arena, uint32_t, op->input_count);
    l.outputs = ARENA_ARRAY(&f->arena, uint32_t, op->output_count);
    f->target = opjit_rt_arena_string(&f->arena, options->target->text, strlen(options->target->text));
    if (l.inputs == NULL || l.outputs == NULL || f->target == NULL)
        return opjit_rt_no_memory(error);
    declare_tensors(&l);
    for (uint32_t i = 0; i < options->late_count; i++)
        late[options->late[i]] = declare_param(f, op, options->late[i]);
    if (!f->failed)
        op->def->lower(&l);
    if (f->failed)
        return opjit_rt_no_memory(error);
    return opjit_ir_verify(f, error);
}

opjit_status opjit_fe_lower(const opjit_operator *op, const fe_options *options, const char *name,
                            const opjit_allocator *allocator, ir_func *out, opjit_error *error)
{
    opjit_status status;

    TRY(opjit_ir_init(out, allocator, name, error));
    status = lower(op, options, out, error);
    if (status != OPJIT_OK)
        opjit_ir_free(out);
    return status;
}
