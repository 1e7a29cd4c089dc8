/* SPDX-License-Identifier: Apache-2.0 */
/* build_node.c - operators of graphs that are being built: from handles and what a caller says of a descriptor to a
 * whole one, of which the operator is made like any other.  Outputs that nobody described follow by the row's rule
 * (ops/infer.h); whether they and all else are legal only opjit_fe_operator_make decides. */
#include <string.h>

#include "frontend/graph/build.h"

/* A tensor's descriptor with all it points to, but for its DML_TENSOR_DESC. */
typedef struct described {
    DML_BUFFER_TENSOR_DESC buffer;
    uint32_t sizes[OPJIT_MAX_RANK], strides[OPJIT_MAX_RANK];
} described;

/* The operator that is being added; arrays are of the graph's scratch memory, by position. */
typedef struct job {
    opjit_graph *g;
    const op_def *def;
    const opjit_graph_node *node;
    unsigned char *desc; /* the descriptor, a copy */
    op_inference follows;
    const build_tensor **from; /* NULL: absent */
    bool *is_given;            /* inputs, then outputs: the caller described it */
    DML_TENSOR_DESC *descs;    /* likewise */
    described *made;           /* likewise */
} job;

static uint32_t read_u32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static const void *read_pointer(const unsigned char *at)
{
    const void *value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* How many tensors the field has. */
static uint32_t tensors_of(const job *j, const op_field *field)
{
    return field->kind > OP_OUTPUTS ? 0 : op_is_tensor_array(field) ? read_u32(j->desc + field->count) : 1;
}

/* --- the descriptor's own fields ---------------------------------------------------------------------------------- */

/* An array's count of tensors is that of the handles where the caller left it 0. */
static opjit_status count_array(const job *j, const op_field *field)
{
    uint32_t count = read_u32(j->desc + field->count);
    uint32_t others = 0;

    for (uint32_t i = 0; i < j->def->field_count; i++)
        others += j->def->fields[i].kind == (op_is_input(field) ? OP_INPUT : OP_OUTPUT);
    if (count == 0) {
        const uint32_t given = op_is_input(field) ? j->node->input_count : j->node->output_count;
        count = given > others ? given - others : 0;
        memcpy(j->desc + field->count, &count, sizeof count);
    }
    return opjit_fe_check_count_of_tensors(j->def, field, count, &j->g->error);
}

/* Arrays are there where they are counted, as rules that infer outputs read them. */
static opjit_status check_arrays(const job *j)
{
    for (uint32_t i = 0; i < j->def->field_count; i++) {
        const op_field *field = &j->def->fields[i];
        if (op_is_tensor_array(field))
            TRY(count_array(j, field));
        if (field->kind == OP_UINTS || field->kind == OP_INTS || field->kind == OP_FLOATS)
            TRY(opjit_fe_check_numbers(j->def, field, read_pointer(j->desc + field->offset),
                                       read_u32(j->desc + field->count), &j->g->error));
    }
    return OPJIT_OK;
}

static opjit_status begin(job *j)
{
    opjit_graph *g = j->g;
    op_inference *f = &j->follows;
    uint32_t all;

    j->desc = opjit_rt_arena_allocate(&g->scratch, 1, j->def->desc_size);
    if (j->desc == NULL)
        return opjit_rt_no_memory(&g->error);
    if (j->node->desc != NULL)
        memcpy(j->desc, j->node->desc, j->def->desc_size);
    TRY(check_arrays(j));
    for (uint32_t i = 0; i < j->def->field_count; i++)
        *(op_is_input(&j->def->fields[i]) ? &f->input_count : &f->output_count) += tensors_of(j, &j->def->fields[i]);
    all = f->input_count + f->output_count;
    f->def = j->def;
    f->desc = j->desc;
    f->inputs = ARENA_ARRAY(&g->scratch, op_shape, f->input_count);
    f->outputs = ARENA_ARRAY(&g->scratch, op_shape, f->output_count);
    j->from = ARENA_ARRAY(&g->scratch, const build_tensor *, f->input_count);
    j->is_given = ARENA_ARRAY(&g->scratch, bool, all);
    j->descs = ARENA_ARRAY(&g->scratch, DML_TENSOR_DESC, all);
    j->made = ARENA_ARRAY(&g->scratch, described, all);
    if (f->inputs == NULL || f->outputs == NULL || j->from == NULL || j->is_given == NULL || j->descs == NULL ||
        j->made == NULL)
        return opjit_rt_no_memory(&g->error);
    return OPJIT_OK;
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static op_shape shape_of(const build_tensor *t)
{
    op_shape shape = { .dtype = t->dtype, .rank = t->rank };

    for (uint32_t d = 0; d < t->rank; d++)
        shape.sizes[d] = t->sizes[d];
    return shape;
}

/* A tensor that the caller describes: its shape, and the descriptor as it stands. */
static opjit_status take_given(job *j, const op_field *field, const DML_TENSOR_DESC *given, uint32_t position,
                               op_shape *shape)
{
    fe_tensor resolved;

    TRY(opjit_fe_tensor_resolve(given, !op_is_input(field), j->def->name, field->name, &resolved, &j->g->error));
    shape->dtype = resolved.dtype;
    shape->rank = resolved.rank;
    memcpy(shape->sizes, resolved.sizes, sizeof shape->sizes);
    j->is_given[position] = true;
    j->descs[position] = *given;
    return OPJIT_OK;
}

static opjit_status take_input(job *j, const op_field *field, const DML_TENSOR_DESC *given, uint32_t position)
{
    const opjit_graph_node *node = j->node;
    op_shape *shape = &j->follows.inputs[position];

    if (position < node->input_count && node->inputs[position].index != 0) {
        const build_tensor *t = opjit_fe_build_tensor(j->g, node->inputs[position], j->def->name, field->name);
        if (t == NULL)
            return j->g->error.status;
        j->from[position] = t;
        *shape = shape_of(t);
        shape->broadcasts = (field->flags & OP_BROADCAST) != 0;
    } else if ((field->flags & OP_OPTIONAL) == 0) {
        return opjit_rt_refuse(&j->g->error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s}: {a null handle}, must be a tensor of the graph", j->def->name, field->name);
    } else if (given != NULL) {
        return opjit_rt_refuse(&j->g->error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s}: {described}, but its handle is null, must be a tensor of the graph or NULL",
                               j->def->name, field->name);
    }
    return given == NULL ? OPJIT_OK : take_given(j, field, given, position, shape);
}

static opjit_status take_output(job *j, const op_field *field, const DML_TENSOR_DESC *given, uint32_t output)
{
    const opjit_tensor_type *asked =
        output < j->node->output_count && j->node->output_types != NULL ? &j->node->output_types[output] : NULL;
    op_shape *shape = &j->follows.outputs[output];

    if (given != NULL)
        return take_given(j, field, given, j->follows.input_count + output, shape);
    if (asked == NULL)
        return OPJIT_OK;
    shape->dtype = asked->dtype;
    if (asked->rank > OPJIT_MAX_RANK)
        return opjit_rt_refuse(&j->g->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DimensionCount}: {%u}, must be 1 to %u",
                               j->def->name, field->name, asked->rank, OPJIT_MAX_RANK);
    shape->rank = asked->rank;
    for (uint32_t d = 0; d < asked->rank; d++)
        shape->sizes[d] = asked->sizes[d];
    return OPJIT_OK;
}

static opjit_status take_tensors(job *j)
{
    uint32_t inputs = 0, outputs = 0;

    for (uint32_t i = 0; i < j->def->field_count; i++) {
        const op_field *field = &j->def->fields[i];
        const uint32_t count = tensors_of(j, field);
        const DML_TENSOR_DESC *given = count == 0 ? NULL : read_pointer(j->desc + field->offset);
        for (uint32_t k = 0; k < count; k++) {
            const DML_TENSOR_DESC *one = given == NULL ? NULL : &given[k];
            TRY(op_is_input(field) ? take_input(j, field, one, inputs++) : take_output(j, field, one, outputs++));
        }
    }
    if (j->node->input_count > inputs)
        return opjit_rt_refuse(&j->g->error, OPJIT_INVALID_ARGUMENT, "{%s} {inputs}: {%u}, must be at most %u",
                               j->def->name, j->node->input_count, inputs);
    return OPJIT_OK;
}

/* Scalars have the first output's type: where one of the two is given, the other follows. */
static void join_scalar_types(const job *j, bool tell_fields)
{
    op_shape *output = &j->follows.outputs[0];

    for (uint32_t i = 0; i < j->def->field_count; i++) {
        unsigned char *at = j->desc + j->def->fields[i].offset;
        const uint32_t type = (uint32_t)output->dtype;
        if (j->def->fields[i].kind != OP_DTYPE)
            continue;
        if (!tell_fields && type == 0)
            output->dtype = (DML_TENSOR_DATA_TYPE)read_u32(at);
        if (tell_fields && read_u32(at) == 0)
            memcpy(at, &type, sizeof type);
    }
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */

/* The tensor as the operator takes it: sizes that it has, or that it is repeated to by strides of 0. */
static void lay_out(const build_tensor *t, const op_shape *as, described *out)
{
    const uint32_t rank = as->rank < t->rank ? t->rank : as->rank, ones = rank - t->rank;

    for (uint32_t d = 0; d < rank; d++) {
        const bool own = d >= ones && (t->sizes[d - ones] != 1 || as->sizes[d] == 1);
        out->sizes[d] = own ? t->sizes[d - ones] : (uint32_t)as->sizes[d];
        out->strides[d] = own ? t->strides[d - ones] : 0;
    }
    out->buffer = (DML_BUFFER_TENSOR_DESC){ t->dtype, DML_TENSOR_FLAG_NONE, rank, out->sizes, out->strides, 0, 0 };
}

static void describe_input(const job *j, uint32_t position)
{
    const build_tensor *t = j->from[position];
    described *out = &j->made[position];

    if (t == NULL || j->is_given[position])
        return;
    lay_out(t, &j->follows.inputs[position], out);
    if (t->source.kind == FE_INPUT) {
        const build_input *input = &((const build_input *)j->g->inputs.items)[t->source.index];
        out->buffer.Flags = input->desc.Flags;
        out->buffer.TotalTensorSizeInBytes = input->desc.TotalTensorSizeInBytes;
        out->buffer.GuaranteedBaseOffsetAlignment = input->desc.GuaranteedBaseOffsetAlignment;
    }
    j->descs[position] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &out->buffer };
}

static opjit_status describe_output(const job *j, const op_field *field, uint32_t output)
{
    const uint32_t position = j->follows.input_count + output;
    const op_shape *shape = &j->follows.outputs[output];
    described *out = &j->made[position];

    if (j->is_given[position] || ((field->flags & OP_OPTIONAL) != 0 && output >= j->node->output_count))
        return OPJIT_OK; /* nobody asks for an optional one that is behind those counted */
    if (shape->dtype == DML_TENSOR_DATA_TYPE_UNKNOWN)
        return opjit_rt_refuse(&j->g->error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.DataType}: {UNKNOWN}, must be given: it does not follow from the inputs",
                               j->def->name, field->name);
    if (shape->rank == 0)
        return opjit_rt_refuse(&j->g->error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.Sizes}: {none}, must be given: they do not follow from the inputs",
                               j->def->name, field->name);
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (shape->sizes[d] > UINT32_MAX)
            return opjit_rt_refuse(&j->g->error, OPJIT_INVALID_ARGUMENT,
                                   "{%s} {%s.Sizes[%u]}: {%llu}, must be at most %u", j->def->name, field->name, d,
                                   (unsigned long long)shape->sizes[d], UINT32_MAX);
        out->sizes[d] = (uint32_t)shape->sizes[d];
    }
    out->buffer = (DML_BUFFER_TENSOR_DESC){ shape->dtype, DML_TENSOR_FLAG_NONE, shape->rank, out->sizes, NULL, 0, 0 };
    j->descs[position] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &out->buffer };
    return OPJIT_OK;
}

/* Puts all tensors into the descriptor; absent ones stay NULL. */
static opjit_status describe(const job *j)
{
    uint32_t inputs = 0, outputs = 0;

    for (uint32_t i = 0; i < j->def->field_count; i++) {
        const op_field *field = &j->def->fields[i];
        const uint32_t count = tensors_of(j, field);
        const uint32_t first = op_is_input(field) ? inputs : j->follows.input_count + outputs;
        const DML_TENSOR_DESC *descs = &j->descs[first];
        for (uint32_t k = 0; k < count; k++) {
            if (op_is_input(field))
                describe_input(j, inputs++);
            else
                TRY(describe_output(j, field, outputs++));
        }
        if (count != 0 && (op_is_tensor_array(field) || descs->Desc != NULL))
            memcpy(j->desc + field->offset, &descs, sizeof descs);
    }
    return OPJIT_OK;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* Takes the operator over, if it succeeds. */
static opjit_status put_node(opjit_graph *g, opjit_operator *op, const char *name, const build_tensor *const *from,
                             opjit_tensor *out, uint32_t out_count)
{
    fe_source *sources = ARENA_ARRAY(&g->arena, fe_source, op->input_count);
    build_node *node;

    name = name == NULL || name[0] == '\0' ? g->label : opjit_fe_build_text(g, name);
    if (sources == NULL)
        return opjit_rt_no_memory(&g->error);
    if (name == NULL)
        return g->error.status;
    for (uint32_t i = 0; i < op->input_count; i++)
        if (from[i] != NULL)
            sources[i] = from[i]->source;
    node = opjit_fe_build_item(g, &g->nodes, sizeof *node); /* from's tensors may move from here on */
    if (node == NULL)
        return g->error.status;
    *node = (build_node){ op, name, sources };
    for (uint32_t i = 0; i < op->output_count && i < out_count; i++) {
        const fe_tensor *made = &op->outputs[i];
        build_tensor t = { .source = { FE_NODE, g->nodes.count - 1, i }, .dtype = made->dtype, .whole = true };
        if (!made->present)
            continue;
        t.rank = made->rank;
        for (uint32_t d = 0; d < t.rank; d++) {
            t.sizes[d] = (uint32_t)made->sizes[d];
            t.strides[d] = (uint32_t)made->strides[d];
        }
        out[i] = opjit_fe_build_add(g, &t);
    }
    return OPJIT_OK; /* with the node in its place the operator is the graph's, whatever became of the handles */
}

static opjit_status add_node(job *j, opjit_tensor *out)
{
    opjit_graph *g = j->g;
    opjit_operator *op;
    opjit_status status;

    TRY(opjit_fe_op_require(j->node->type, &j->def, &g->error));
    if (j->node->input_count != 0 && j->node->inputs == NULL)
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT, "{%s} {inputs}: {NULL}, must be an array of %u",
                               j->def->name, j->node->input_count);
    TRY(begin(j));
    TRY(take_tensors(j));
    join_scalar_types(j, false);
    if (j->def->infer != NULL)
        j->def->infer(&j->follows);
    join_scalar_types(j, true);
    TRY(describe(j));
    TRY(opjit_fe_operator_make(g->core, g->context->feature_level, j->def, j->desc, &op, &g->error));
    status = put_node(g, op, j->node->name, j->from, out, j->node->output_count);
    if (status != OPJIT_OK)
        opjit_operator_release(op);
    return g->error.status;
}

static const rt_struct node_sizes = { "opjit_graph_node", { RT_SIZE_TO(opjit_graph_node, name) } };
RT_STRUCT_ENDS_WITH(opjit_graph_node, name);

opjit_status opjit_graph_add_node(opjit_graph *graph, const opjit_graph_node *node, opjit_tensor *out_tensors)
{
    opjit_graph_node given;
    job j = { .g = graph, .node = &given };
    rt_arena_mark mark;

    if (!build_goes_on(graph))
        return graph == NULL ? OPJIT_INVALID_ARGUMENT : graph->error.status;
    if (node == NULL)
        return opjit_rt_refuse(&graph->error, OPJIT_INVALID_ARGUMENT,
                               "{graph_add_node} {node}: {NULL}, must be a node");
    TRY(opjit_rt_struct_read(&node_sizes, &given, node, &graph->error));
    if (given.output_count != 0 && out_tensors == NULL)
        return opjit_rt_refuse(&graph->error, OPJIT_INVALID_ARGUMENT,
                               "{graph_add_node} {out_tensors}: {NULL}, must be an array of %u", given.output_count);
    for (uint32_t i = 0; i < given.output_count; i++)
        out_tensors[i] = build_null;
    mark = rt_arena_position(&graph->scratch);
    const opjit_status status = add_node(&j, out_tensors);
    if (status != OPJIT_OK)
        graph->error.node = (int32_t)graph->nodes.count; /* the index that it would have had */
    opjit_rt_arena_rewind(&graph->scratch, mark);
    return status;
}

opjit_tensor opjit_fe_build_op(opjit_graph *g, DML_OPERATOR_TYPE type, const void *desc, const opjit_tensor *inputs,
                               uint32_t input_count, const opjit_tensor_type *output)
{
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    opjit_tensor made = build_null;

    node.type = type;
    node.desc = desc;
    node.inputs = inputs;
    node.input_count = input_count;
    node.output_count = 1;
    node.output_types = output;
    return opjit_graph_add_node(g, &node, &made) == OPJIT_OK ? made : build_null;
}

opjit_tensor opjit_graph_op(opjit_graph *graph, DML_OPERATOR_TYPE type, const void *desc, const opjit_tensor *inputs,
                            uint32_t input_count)
{
    return opjit_fe_build_op(graph, type, desc, inputs, input_count, NULL);
}

opjit_tensor opjit_fe_build_copy(opjit_graph *g, opjit_tensor tensor)
{
    return opjit_fe_build_op(g, DML_OPERATOR_ELEMENT_WISE_IDENTITY, NULL, &tensor, 1, NULL);
}

/* --- operators that were made already ----------------------------------------------------------------------------- */

static opjit_status check_operator(opjit_graph *g, const opjit_operator *op, const opjit_tensor *inputs,
                                   uint32_t input_count, const opjit_tensor *out, uint32_t output_count)
{
    if (op == NULL)
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT,
                               "{graph_add_operator} {op}: {NULL}, must be an operator");
    if (input_count != op->input_count)
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT, "{%s} {input_count}: {%u}, must be %u", op->def->name,
                               input_count, op->input_count);
    if (output_count != op->output_count)
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT, "{%s} {output_count}: {%u}, must be %u",
                               op->def->name, output_count, op->output_count);
    if ((inputs == NULL && input_count != 0) || out == NULL)
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {NULL}, must be an array of %u",
                               op->def->name, out == NULL ? "out_tensors" : "inputs",
                               out == NULL ? output_count : input_count);
    return OPJIT_OK;
}

static opjit_status add_operator(opjit_graph *g, opjit_operator *op, const char *name, const opjit_tensor *inputs,
                                 opjit_tensor *out)
{
    const build_tensor **from = ARENA_ARRAY(&g->scratch, const build_tensor *, op->input_count);
    opjit_status status;

    if (from == NULL)
        return opjit_rt_no_memory(&g->error);
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (!op->inputs[i].present)
            continue;
        from[i] = opjit_fe_build_tensor(g, inputs[i], opjit_fe_operator_label(op), op->input_names[i]);
        if (from[i] == NULL)
            return g->error.status;
    }
    opjit_operator_retain(op);
    status = put_node(g, op, name, from, out, op->output_count);
    if (status != OPJIT_OK)
        opjit_operator_release(op);
    return g->error.status;
}

opjit_status opjit_graph_add_operator(opjit_graph *graph, opjit_operator *op, const char *name,
                                      const opjit_tensor *inputs, uint32_t input_count, opjit_tensor *out_tensors,
                                      uint32_t output_count)
{
    rt_arena_mark mark;

    for (uint32_t i = 0; out_tensors != NULL && i < output_count; i++)
        out_tensors[i] = build_null;
    if (!build_goes_on(graph))
        return graph == NULL ? OPJIT_INVALID_ARGUMENT : graph->error.status;
    TRY(check_operator(graph, op, inputs, input_count, out_tensors, output_count));
    mark = rt_arena_position(&graph->scratch);
    const opjit_status status = add_operator(graph, op, name, inputs, out_tensors);
    opjit_rt_arena_rewind(&graph->scratch, mark);
    return status;
}
