/* SPDX-License-Identifier: Apache-2.0 */
/* lower_graph.c - a graph as IR in value form: declares buffers and parameters, has the row of each node write its
 * formula, and wires the nodes up.
 *
 * A node's output is a yield where it is nothing but one output of the graph, else a definition laid out as its
 * descriptor says.  A reader whose descriptor differs reads a view of those bytes. */
#include <string.h>

#include "frontend/frontend.h"

typedef struct lowering {
    const fe_graph *graph;
    const fe_options *options;
    ir_func *f;
    uint32_t *inputs, *outputs; /* IR tensor by input and output of the graph */
    uint32_t **values;          /* by node: IR tensor by output */
    uint32_t *params;           /* by late field: IR param */
    uint32_t **readers;         /* by node and output: inputs and graph outputs that it leads to */
    ir_ref last;
} lowering;

/* --- tensors ------------------------------------------------------------------------------------------------------ */

static uint32_t declare(ir_func *f, const fe_tensor *t, const ir_tensor *rest)
{
    ir_tensor tensor = *rest;

    tensor.type = opjit_ir_type_of(t->dtype);
    tensor.rank = t->rank;
    tensor.align = t->align;
    tensor.bytes = t->bytes;
    memcpy(tensor.sizes, t->sizes, sizeof tensor.sizes);
    memcpy(tensor.strides, t->strides, sizeof tensor.strides);
    if (rt_dtype_is_half_byte(t->dtype)) { /* its bytes: rows find the halves (half_byte.h) */
        tensor.type = IR_U8;
        tensor.rank = 1;
        opjit_fe_byte_sizes(t, tensor.sizes);
        opjit_ir_dense_strides(&tensor);
    }
    return opjit_ir_tensor(f, &tensor);
}

/* The bytes of tensor `of` as t describes them. */
static uint32_t view(ir_func *f, uint32_t of, const fe_tensor *t)
{
    const ir_tensor rest = { .role = IR_VIEW, .of = of };

    return f->failed ? 0 : declare(f, t, &rest);
}

static uint32_t constant(const lowering *l, uint32_t index, const fe_tensor *t)
{
    const fe_buffer *buffer = &l->graph->constants[index];
    fe_tensor known = *t;
    const ir_tensor rest = { .role = IR_CONSTANT,
                             .slot = l->graph->input_count + l->graph->output_count + index,
                             .data = buffer->data };

    known.bytes = buffer->bytes;
    known.align = opjit_fe_constant_align(l->graph, buffer, l->options->target);
    return declare(l->f, &known, &rest);
}

/* Inputs first, then outputs, as in the kernel's bindings. */
static void declare_buffers(lowering *l)
{
    uint32_t slot = 0;

    for (uint32_t i = 0; i < l->graph->input_count; i++) {
        const fe_buffer *buffer = &l->graph->inputs[i];
        const ir_tensor rest = { .role = IR_IN, .slot = slot++, .name = buffer->name };
        l->inputs[i] = declare(l->f, &buffer->tensor, &rest);
    }
    for (uint32_t i = 0; i < l->graph->output_count; i++) {
        const fe_buffer *buffer = &l->graph->outputs[i];
        const ir_tensor rest = { .role = IR_OUT, .slot = slot++, .name = buffer->name };
        l->outputs[i] = declare(l->f, &buffer->tensor, &rest);
    }
}

static void declare_params(lowering *l)
{
    for (uint32_t i = 0; i < l->graph->late_count; i++) {
        const fe_late *late = &l->graph->late[i];
        const opjit_operator *op = late->op;
        const op_field *row = &op->def->fields[late->field];
        ir_type type = IR_F32; /* OP_FLOAT */
        if (row->kind == OP_INT)
            type = IR_INDEX;
        else if (row->kind == OP_SCALAR) /* no other kind is ever marked OP_LATE */
            type = opjit_ir_type_of(opjit_fe_scalar_type(op, late->field));
        l->params[i] = opjit_ir_param_add(l->f, type, type == IR_INDEX ? INT32_MIN : 0,
                                          type == IR_INDEX ? INT32_MAX : 0, late->name);
    }
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* The IR tensor that input `input` of the node reads. */
static uint32_t tensor_of_input(const lowering *l, const fe_node *node, uint32_t input)
{
    const fe_source *source = &node->sources[input];
    const fe_tensor *wanted = &node->op->inputs[input], *given;
    uint32_t tensor;

    if (source->kind == FE_CONSTANT)
        return constant(l, source->index, wanted);
    if (source->kind == FE_ABSENT)
        return 0;
    if (source->kind == FE_INPUT) {
        given = &l->graph->inputs[source->index].tensor;
        tensor = l->inputs[source->index];
    } else {
        given = &l->graph->nodes[source->index].op->outputs[source->output];
        tensor = l->values[source->index][source->output];
    }
    return opjit_fe_same_layout(given, wanted) ? tensor : view(l->f, tensor, wanted);
}

/* Whether nothing that is bound at the call decides what the source holds: a constant, or a generator. */
static bool is_mask(const fe_graph *graph, const fe_source *source)
{
    const opjit_operator *op;

    if (source->kind != FE_NODE)
        return source->kind == FE_CONSTANT;
    op = graph->nodes[source->index].op;
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i].present)
            return false;
    return true;
}

static opjit_status lower_node(lowering *l, uint32_t index, opjit_error *error)
{
    const fe_node *node = &l->graph->nodes[index];
    const opjit_operator *op = node->op;
    uint32_t late[OP_FIELDS_MAX] = { 0 };
    op_lowering row = { .f = l->f, .op = op, .late = late, .flags = l->options->flags, .last = l->last };
    const ir_tensor rest = { .role = IR_VALUE };

    row.inputs = ARENA_ARRAY(&l->f->arena, uint32_t, op->input_count);
    row.outputs = l->values[index];
    if (row.inputs == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < op->input_count; i++)
        row.inputs[i] = tensor_of_input(l, node, i);
    for (uint32_t i = 0; (l->options->flags & OPJIT_COMPILE_MASKS_ABSORB) != 0 && i < op->input_count && i < 64; i++)
        row.masks |= (uint64_t)is_mask(l->graph, &node->sources[i]) << i;
    for (uint32_t i = 0; i < op->output_count && i < 64; i++)
        row.unread |= (uint64_t)(l->readers[index][i] == 0) << i;
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i].present && row.outputs[i] == 0) /* else it is an output of the graph */
            row.outputs[i] = declare(l->f, &op->outputs[i], &rest);
    for (uint32_t i = 0; i < l->graph->late_count; i++)
        if (l->graph->late[i].node == index)
            late[l->graph->late[i].field] = l->params[i];
    const uint32_t first = l->f->tensor_count;
    if (!l->f->failed)
        op->def->lower(&row);
    for (uint32_t t = first; t < l->f->tensor_count; t++)
        l->f->tensors[t].origin = index + 1;
    for (uint32_t i = 0; i < op->output_count; i++)
        l->f->tensors[row.outputs[i]].origin = row.outputs[i] == 0 ? 0 : index + 1;
    l->last = row.last;
    return OPJIT_OK;
}

/* Who reads what, and which outputs of nodes are outputs of the graph and nothing else. */
static void count_readers(lowering *l)
{
    const fe_graph *graph = l->graph;

    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].op->input_count; k++) {
            const fe_source *source = &graph->nodes[i].sources[k];
            if (source->kind == FE_NODE)
                l->readers[source->index][source->output]++;
        }
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->results[i].kind == FE_NODE)
            l->readers[graph->results[i].index][graph->results[i].output]++;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const fe_source *source = &graph->results[i];
        if (source->kind == FE_NODE && l->readers[source->index][source->output] == 1)
            l->values[source->index][source->output] = l->outputs[i];
    }
}

/* An output that is read inside as well, or there twice, or is a constant, or an input (of a part of a graph): a
 * copy. */
static void yield_copy(lowering *l, uint32_t output)
{
    const fe_source *source = &l->graph->results[output];
    ir_func *f = l->f;
    ir_ref coordinates[OPJIT_MAX_RANK], statement;
    op_lowering end = { .f = f };
    uint32_t from;

    if (source->kind == FE_CONSTANT)
        from = constant(l, source->index, &l->graph->outputs[output].tensor);
    else if (source->kind == FE_INPUT)
        from = l->inputs[source->index];
    else
        from = l->values[source->index][source->output];
    if (f->failed || from == l->outputs[output])
        return;
    statement = opjit_ir_yield(f, l->outputs[output]);
    for (uint32_t d = 0; !f->failed && d < f->tensors[from].rank; d++)
        coordinates[d] = opjit_ir_coordinate(f, statement, d);
    if (!f->failed)
        opjit_ir_set_value(f, statement, opjit_ir_load(f, from, coordinates));
    end.last = l->last;
    opjit_fe_append(&end, statement);
    l->last = end.last;
}

/* --- what nobody reads -------------------------------------------------------------------------------------------- */

typedef struct sweep {
    const ir_func *f;
    uint8_t *used; /* by tensor */
    uint8_t *seen; /* by node */
    ir_ref *stack; /* a node a place */
} sweep;

/* Marks the tensors that an expression reads.  Definitions share nothing with coordinates, so each node is visited once
 * in total. */
static void mark_used(sweep *s, ir_ref expr)
{
    uint32_t depth = 0;

    s->stack[depth++] = expr;
    s->seen[expr] = 1;
    while (depth > 0) {
        const ir_ref top = s->stack[--depth];
        const ir_node *node = ir_at(s->f, top);
        for (uint32_t t = node->op == IR_LOAD ? node->ref : 0; t != 0 && !s->used[t];) {
            s->used[t] = 1;
            t = s->f->tensors[t].role == IR_VIEW ? s->f->tensors[t].of : 0;
        }
        for (uint32_t i = 0; i < node->count; i++) {
            const ir_ref operand = ir_operand(s->f, top, i);
            if (operand != 0 && s->seen[operand] == 0) {
                s->seen[operand] = 1;
                s->stack[depth++] = operand;
            }
        }
    }
}

/* Takes out definitions that no output depends on: those of a node's outputs that lead nowhere. */
static opjit_status drop_unread(ir_func *f, opjit_error *error)
{
    sweep s = { .f = f };
    ir_ref *statements, next = 0;
    uint32_t count = 0;

    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next)
        count++;
    s.used = ARENA_ARRAY(&f->scratch, uint8_t, f->tensor_count);
    s.seen = ARENA_ARRAY(&f->scratch, uint8_t, f->node_count);
    s.stack = ARENA_ARRAY(&f->scratch, ir_ref, f->node_count);
    statements = ARENA_ARRAY(&f->scratch, ir_ref, count);
    if (s.used == NULL || s.seen == NULL || s.stack == NULL || statements == NULL)
        return opjit_rt_no_memory(error);
    count = 0;
    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next)
        statements[count++] = r;
    while (count-- > 0) { /* readers before what they read */
        const ir_ref statement = statements[count];
        const ir_tensor *t = &f->tensors[ir_at(f, statement)->ref];
        if (ir_is_definition(f, statement) && s.used[ir_at(f, statement)->ref] == 0 && !ir_is_of_recurrence(t))
            continue;
        mark_used(&s, statement);
        f->nodes[statement].next = next;
        next = statement;
    }
    f->body = next;
    return OPJIT_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static bool allocate(lowering *l)
{
    const fe_graph *graph = l->graph;
    rt_arena *arena = &l->f->arena;
    bool good;

    l->inputs = ARENA_ARRAY(arena, uint32_t, graph->input_count);
    l->outputs = ARENA_ARRAY(arena, uint32_t, graph->output_count);
    l->params = ARENA_ARRAY(arena, uint32_t, graph->late_count);
    l->values = ARENA_ARRAY(arena, uint32_t *, graph->node_count);
    l->readers = ARENA_ARRAY(arena, uint32_t *, graph->node_count);
    good = l->inputs != NULL && l->outputs != NULL && l->params != NULL && l->values != NULL && l->readers != NULL;
    for (uint32_t i = 0; good && i < graph->node_count; i++) {
        const uint32_t outputs = graph->nodes[i].op->output_count;
        l->values[i] = ARENA_ARRAY(arena, uint32_t, outputs);
        l->readers[i] = ARENA_ARRAY(arena, uint32_t, outputs);
        good = l->values[i] != NULL && l->readers[i] != NULL;
    }
    return good;
}

static opjit_status lower(lowering *l, opjit_error *error)
{
    const char *target = l->options->target->text;
    ir_func *f = l->f;

    f->target = opjit_rt_arena_string(&f->arena, target, strlen(target));
    if (f->target == NULL || !allocate(l))
        return opjit_rt_no_memory(error);
    declare_buffers(l);
    declare_params(l);
    count_readers(l);
    for (uint32_t i = 0; i < l->graph->node_count && !f->failed; i++)
        TRY(lower_node(l, i, error));
    for (uint32_t i = 0; i < l->graph->output_count && !f->failed; i++)
        yield_copy(l, i);
    if (f->failed)
        return opjit_rt_no_memory(error);
    TRY(drop_unread(f, error));
    return opjit_ir_verify(f, error);
}

opjit_status opjit_fe_graph_lower(const fe_graph *graph, const fe_options *options, const char *name,
                                  const opjit_allocator *allocator, ir_func *out, opjit_error *error)
{
    lowering l = { .graph = graph, .options = options, .f = out };
    opjit_status status;

    TRY(opjit_ir_init(out, allocator, name, error));
    status = lower(&l, error);
    if (status != OPJIT_OK)
        opjit_ir_free(out);
    return status;
}
