/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - a graph with custom operators, divided: parts without any, which are lowered like graphs, and the
 * calls behind each of them.  What crosses a boundary is a temporary of the kernel.
 *
 * A node is in the first part that stands behind all custom operators that it depends on; a custom operator is called
 * behind the first part that has what it reads.  Generators cost less than memory, and an addition may have to know
 * them (OPJIT_COMPILE_MASKS_ABSORB): each part that reads one makes it itself. */
#include <string.h>

#include "frontend/frontend.h"

#define OUTPUTS_MAX (1u << 24) /* of all nodes: slots are numbered in 32 bits */

typedef struct divider {
    fe_graph *graph;
    uint32_t *levels;     /* by node: its part, or the part that it is called behind */
    uint32_t *by_level;   /* nodes in the order of their levels, those of a level in their own */
    uint32_t *level_ends; /* by level: where its nodes end there */
    uint32_t **homes;     /* by node and output: 1 + the slot where others find it; 0: nobody else looks for it */
    uint32_t **results;   /* by node and output: how many outputs of the graph it is */
    uint32_t *by_part;    /* outputs of the graph in the order of the parts that make them */
    uint32_t *part_ends;  /* by part: where they end there */
    uint32_t first_temp;  /* slot */
    fe_tensor *temps;
    /* The part that is being collected: arrays with room for any. */
    fe_graph part;
    uint32_t index; /* of it */
    uint32_t *input_slots, *output_slots, *constant_slots;
    uint32_t *node_parts, *node_numbers;     /* by node: 1 + the part that it was put into last, and its number there */
    uint32_t *buffer_parts, *buffer_numbers; /* by slot: likewise */
    opjit_error *error;
} divider;

static bool is_custom(const divider *d, uint32_t node)
{
    return d->graph->nodes[node].op->custom != NULL;
}

static bool is_generator(const divider *d, uint32_t node)
{
    const opjit_operator *op = d->graph->nodes[node].op;

    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i].present)
            return false;
    return op->custom == NULL;
}

/* --- levels and homes --------------------------------------------------------------------------------------------- */

static uint32_t find_levels(divider *d)
{
    uint32_t parts = 1;

    for (uint32_t i = 0; i < d->graph->node_count; i++) {
        const fe_node *node = &d->graph->nodes[i];
        for (uint32_t k = 0; k < node->op->input_count; k++) {
            const fe_source *source = &node->sources[k];
            uint32_t least;
            if (source->kind != FE_NODE)
                continue;
            least = d->levels[source->index] + (is_custom(d, source->index) && !is_custom(d, i));
            d->levels[i] = least > d->levels[i] ? least : d->levels[i];
        }
        if (d->levels[i] + is_custom(d, i) >= parts)
            parts = d->levels[i] + is_custom(d, i) + 1;
    }
    return parts;
}

static opjit_status add_temp(divider *d, uint32_t node, uint32_t output)
{
    rt_custom_plan *plan = &d->graph->plan;
    fe_tensor *t = &d->temps[plan->temp_count];

    if (d->homes[node][output] != 0)
        return OPJIT_OK;
    *t = d->graph->nodes[node].op->outputs[output];
    t->align = t->align < OPJIT_WORKSPACE_ALIGNMENT ? t->align : OPJIT_WORKSPACE_ALIGNMENT;
    plan->offsets[plan->temp_count] = plan->temp_bytes;
    if (!checked_add(plan->temp_bytes, align_up(t->bytes, OPJIT_WORKSPACE_ALIGNMENT), &plan->temp_bytes) ||
        plan->temp_bytes > SIZE_MAX / 4)
        return opjit_rt_no_memory(d->error);
    d->homes[node][output] = 1 + d->first_temp + plan->temp_count++;
    return OPJIT_OK;
}

/* What custom operators write: an output of the graph where it is that once and nothing else, else a temporary. */
static opjit_status find_custom_homes(divider *d)
{
    for (uint32_t i = 0; i < d->graph->output_count; i++) {
        const fe_source *source = &d->graph->results[i];
        if (source->kind != FE_NODE || !is_custom(d, source->index))
            continue;
        if (d->homes[source->index][source->output] == 0 && d->results[source->index][source->output] == 1)
            d->homes[source->index][source->output] = 1 + d->graph->input_count + i;
    }
    for (uint32_t i = 0; i < d->graph->node_count; i++)
        for (uint32_t k = 0; is_custom(d, i) && k < d->graph->nodes[i].op->output_count; k++)
            TRY(add_temp(d, i, k));
    return OPJIT_OK;
}

static opjit_status find_homes(divider *d)
{
    for (uint32_t i = 0; i < d->graph->node_count; i++) {
        const fe_node *node = &d->graph->nodes[i];
        for (uint32_t k = 0; k < node->op->input_count; k++) {
            const fe_source *source = &node->sources[k];
            if (source->kind != FE_NODE)
                continue;
            if (is_custom(d, source->index) || is_custom(d, i) ||
                (d->levels[source->index] != d->levels[i] && !is_generator(d, source->index)))
                TRY(add_temp(d, source->index, source->output));
        }
    }
    return find_custom_homes(d);
}

/* The part that makes output i of the graph: its node's, or the one behind a custom operator, whose output it copies;
 * of what is no node the first. */
static uint32_t part_of_result(const divider *d, uint32_t i)
{
    const fe_source *source = &d->graph->results[i];

    return source->kind == FE_NODE ? d->levels[source->index] + is_custom(d, source->index) : 0;
}

static uint32_t level_of_node(const divider *d, uint32_t i)
{
    return d->levels[i];
}

/* Lists 0 .. count in the order of their parts: those of a part end at its element of ends. */
static void list_by_part(const divider *d, uint32_t (*part_of)(const divider *d, uint32_t i), uint32_t count,
                         uint32_t parts, uint32_t *list, uint32_t *ends)
{
    for (uint32_t i = 0; i < count; i++)
        if (part_of(d, i) + 1 < parts)
            ends[part_of(d, i) + 1]++;
    for (uint32_t p = 1; p < parts; p++) /* where each part begins; ... */
        ends[p] += ends[p - 1];
    for (uint32_t i = 0; i < count; i++) /* ... where it ends */
        list[ends[part_of(d, i)]++] = i;
}

static opjit_status list_parts(divider *d, uint32_t parts)
{
    rt_arena *arena = &d->graph->arena;

    d->by_level = ARENA_ARRAY(arena, uint32_t, d->graph->node_count);
    d->by_part = ARENA_ARRAY(arena, uint32_t, d->graph->output_count);
    d->level_ends = ARENA_ARRAY(arena, uint32_t, parts);
    d->part_ends = ARENA_ARRAY(arena, uint32_t, parts);
    if (d->by_level == NULL || d->by_part == NULL || d->level_ends == NULL || d->part_ends == NULL)
        return opjit_rt_no_memory(d->error);
    list_by_part(d, level_of_node, d->graph->node_count, parts, d->by_level, d->level_ends);
    list_by_part(d, part_of_result, d->graph->output_count, parts, d->by_part, d->part_ends);
    return OPJIT_OK;
}

/* --- one part ----------------------------------------------------------------------------------------------------- */

static fe_source input_at(divider *d, uint32_t slot)
{
    const uint32_t temp = slot - d->first_temp;

    if (d->buffer_parts[slot] != d->index + 1) {
        fe_buffer *buffer = &d->part.inputs[d->part.input_count];
        *buffer = slot < d->first_temp ? d->graph->inputs[slot] : (fe_buffer){ .tensor = d->temps[temp] };
        d->input_slots[d->part.input_count] = slot;
        d->buffer_parts[slot] = d->index + 1;
        d->buffer_numbers[slot] = d->part.input_count++;
    }
    return (fe_source){ FE_INPUT, d->buffer_numbers[slot], 0 };
}

static fe_source constant_at(divider *d, uint32_t index)
{
    const uint32_t slot = d->graph->input_count + d->graph->output_count + index;

    if (d->buffer_parts[slot] != d->index + 1) {
        d->part.constants[d->part.constant_count] = d->graph->constants[index];
        d->constant_slots[d->part.constant_count] = slot;
        d->buffer_parts[slot] = d->index + 1;
        d->buffer_numbers[slot] = d->part.constant_count++;
    }
    return (fe_source){ FE_CONSTANT, d->buffer_numbers[slot], 0 };
}

static fe_source source_in_part(divider *d, const fe_source *source)
{
    switch ((fe_source_kind)source->kind) {
    case FE_INPUT: return input_at(d, source->index);
    case FE_CONSTANT: return constant_at(d, source->index);
    case FE_NODE:
        if (d->node_parts[source->index] == d->index + 1)
            return (fe_source){ FE_NODE, d->node_numbers[source->index], source->output };
        return input_at(d, d->homes[source->index][source->output] - 1);
    case FE_ABSENT: break;
    }
    return *source;
}

static void number_node(divider *d, uint32_t node)
{
    if (d->node_parts[node] == d->index + 1)
        return;
    d->part.nodes[d->part.node_count] = d->graph->nodes[node];
    d->node_parts[node] = d->index + 1;
    d->node_numbers[node] = d->part.node_count++;
}

static opjit_status put_node(divider *d, uint32_t node)
{
    const fe_node *given = &d->graph->nodes[node];
    fe_source *sources = ARENA_ARRAY(&d->graph->arena, fe_source, given->op->input_count);

    if (sources == NULL)
        return opjit_rt_no_memory(d->error);
    for (uint32_t k = 0; k < given->op->input_count; k++)
        if (given->sources[k].kind == FE_NODE && is_generator(d, given->sources[k].index))
            number_node(d, given->sources[k].index); /* its sources are absent ones here, too */
    for (uint32_t k = 0; k < given->op->input_count; k++)
        sources[k] = source_in_part(d, &given->sources[k]);
    number_node(d, node);
    d->part.nodes[d->node_numbers[node]].sources = sources;
    return OPJIT_OK;
}

static void put_output(divider *d, uint32_t slot, const fe_tensor *tensor, fe_source from)
{
    d->output_slots[d->part.output_count] = slot;
    d->part.results[d->part.output_count] = from;
    d->part.outputs[d->part.output_count++] = (fe_buffer){ .tensor = *tensor };
}

/* A node's outputs that others find elsewhere, but for those of the graph. */
static void put_homes(divider *d, uint32_t node)
{
    for (uint32_t k = 0; k < d->graph->nodes[node].op->output_count; k++) {
        const uint32_t slot = d->homes[node][k] - 1;
        if (d->homes[node][k] != 0)
            put_output(d, slot, &d->temps[slot - d->first_temp], (fe_source){ FE_NODE, d->node_numbers[node], k });
    }
}

/* The outputs of the graph that this part makes: of its nodes, copies of custom operators' before it, and constants. */
static void put_results(divider *d)
{
    const fe_graph *graph = d->graph;

    for (uint32_t n = d->index == 0 ? 0 : d->part_ends[d->index - 1]; n < d->part_ends[d->index]; n++) {
        const uint32_t i = d->by_part[n], slot = graph->input_count + i;
        const fe_source *source = &graph->results[i];
        if (source->kind != FE_NODE || !is_custom(d, source->index) ||
            d->homes[source->index][source->output] != slot + 1)
            put_output(d, slot, &graph->outputs[i].tensor, source_in_part(d, source));
    }
}

/* A generator is put where it is read; into the first part where it is read from memory. */
static bool has_result(const divider *d, uint32_t node)
{
    for (uint32_t k = 0; k < d->graph->nodes[node].op->output_count; k++)
        if (d->homes[node][k] != 0 || d->results[node][k] != 0)
            return true;
    return false;
}

/* Makes the part that was collected one that lasts. */
static opjit_status keep_part(divider *d, fe_part *out)
{
    rt_arena *arena = &d->graph->arena;
    const fe_graph *from = &d->part;
    fe_graph *to = &out->graph;
    const uint32_t ins = from->input_count, outs = from->output_count, constants = from->constant_count;

    *to = *from;
    to->label = d->graph->label;
    to->nodes = opjit_rt_arena_copy(arena, from->nodes, from->node_count, sizeof *from->nodes);
    to->inputs = opjit_rt_arena_copy(arena, from->inputs, ins, sizeof *from->inputs);
    to->outputs = opjit_rt_arena_copy(arena, from->outputs, outs, sizeof *from->outputs);
    to->results = opjit_rt_arena_copy(arena, from->results, outs, sizeof *from->results);
    to->constants = opjit_rt_arena_copy(arena, from->constants, constants, sizeof *from->constants);
    to->late = opjit_rt_arena_copy(arena, d->graph->late, d->graph->late_count, sizeof *from->late);
    to->late_count = d->graph->late_count; /* all of them: parameters are the kernel's */
    out->slots = ARENA_ARRAY(arena, uint32_t, (size_t)ins + outs + constants);
    if (to->nodes == NULL || to->inputs == NULL || to->outputs == NULL || to->results == NULL ||
        to->constants == NULL || to->late == NULL || out->slots == NULL)
        return opjit_rt_no_memory(d->error);
    memcpy(out->slots, d->input_slots, ins * sizeof *out->slots);
    memcpy(out->slots + ins, d->output_slots, outs * sizeof *out->slots);
    memcpy(out->slots + ins + outs, d->constant_slots, constants * sizeof *out->slots);
    for (uint32_t i = 0; i < to->late_count; i++) {
        const uint32_t node = to->late[i].node;
        to->late[i].node = d->node_parts[node] == d->index + 1 ? d->node_numbers[node] : UINT32_MAX;
    }
    return OPJIT_OK;
}

static opjit_status make_part(divider *d, fe_part *out)
{
    d->part.node_count = d->part.input_count = d->part.output_count = d->part.constant_count = 0;
    for (uint32_t n = d->index == 0 ? 0 : d->level_ends[d->index - 1]; n < d->level_ends[d->index]; n++) {
        const uint32_t i = d->by_level[n];
        if (is_custom(d, i) || (is_generator(d, i) && !has_result(d, i)))
            continue;
        TRY(put_node(d, i));
        put_homes(d, i);
    }
    put_results(d);
    return keep_part(d, out);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static uint32_t slot_of(const divider *d, const fe_source *source)
{
    switch ((fe_source_kind)source->kind) {
    case FE_CONSTANT: return d->graph->input_count + d->graph->output_count + source->index;
    case FE_NODE: return d->homes[source->index][source->output] - 1;
    default: return source->index;
    }
}

static opjit_status add_call(divider *d, uint32_t node)
{
    const fe_node *given = &d->graph->nodes[node];
    const opjit_operator *op = given->op;
    const fe_node_text text = opjit_fe_node_text(op, given->name, given->given);
    uint32_t *slots = ARENA_ARRAY(&d->graph->arena, uint32_t, op->input_count + op->output_count);
    char *name = opjit_rt_arena_string(&d->graph->arena, text.text, strlen(text.text));

    if (slots == NULL || name == NULL)
        return opjit_rt_no_memory(d->error);
    for (uint32_t i = 0; i < op->input_count; i++)
        slots[i] = slot_of(d, &given->sources[i]);
    for (uint32_t i = 0; i < op->output_count; i++)
        slots[op->input_count + i] = d->homes[node][i] - 1;
    d->graph->plan.calls[d->graph->plan.call_count++] = (rt_custom_call){ op->custom, name, slots };
    return OPJIT_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static bool allocate_part(divider *d, uint32_t outputs)
{
    const fe_graph *graph = d->graph;
    rt_arena *arena = &d->graph->arena;
    const uint32_t slots = d->first_temp + outputs;

    d->part.nodes = ARENA_ARRAY(arena, fe_node, graph->node_count);
    d->part.inputs = ARENA_ARRAY(arena, fe_buffer, slots);
    d->part.outputs = ARENA_ARRAY(arena, fe_buffer, slots);
    d->part.results = ARENA_ARRAY(arena, fe_source, slots);
    d->part.constants = ARENA_ARRAY(arena, fe_buffer, graph->constant_count);
    d->input_slots = ARENA_ARRAY(arena, uint32_t, slots);
    d->output_slots = ARENA_ARRAY(arena, uint32_t, slots);
    d->constant_slots = ARENA_ARRAY(arena, uint32_t, graph->constant_count);
    d->node_parts = ARENA_ARRAY(arena, uint32_t, graph->node_count);
    d->node_numbers = ARENA_ARRAY(arena, uint32_t, graph->node_count);
    d->buffer_parts = ARENA_ARRAY(arena, uint32_t, slots);
    d->buffer_numbers = ARENA_ARRAY(arena, uint32_t, slots);
    return d->part.nodes != NULL && d->part.inputs != NULL && d->part.outputs != NULL && d->part.results != NULL &&
           d->part.constants != NULL && d->input_slots != NULL && d->output_slots != NULL &&
           d->constant_slots != NULL && d->node_parts != NULL && d->node_numbers != NULL && d->buffer_parts != NULL &&
           d->buffer_numbers != NULL;
}

static opjit_status allocate(divider *d, uint32_t customs)
{
    fe_graph *graph = d->graph;
    rt_arena *arena = &graph->arena;
    uint64_t outputs = 0;
    bool good;

    d->first_temp = graph->input_count + graph->output_count + graph->constant_count;
    d->levels = ARENA_ARRAY(arena, uint32_t, graph->node_count);
    d->homes = ARENA_ARRAY(arena, uint32_t *, graph->node_count);
    d->results = ARENA_ARRAY(arena, uint32_t *, graph->node_count);
    good = d->levels != NULL && d->homes != NULL && d->results != NULL;
    for (uint32_t i = 0; good && i < graph->node_count; i++) {
        d->homes[i] = ARENA_ARRAY(arena, uint32_t, graph->nodes[i].op->output_count);
        d->results[i] = ARENA_ARRAY(arena, uint32_t, graph->nodes[i].op->output_count);
        outputs += graph->nodes[i].op->output_count;
        good = d->homes[i] != NULL && d->results[i] != NULL;
    }
    if (!good)
        return opjit_rt_no_memory(d->error);
    if (outputs > OUTPUTS_MAX)
        return opjit_rt_refuse(
            d->error, OPJIT_LIMIT,
            "{graph}: {!Nodes}{%llu} outputs of all nodes, must be at most %u where there are custom operators",
            (unsigned long long)outputs, OUTPUTS_MAX);
    d->temps = ARENA_ARRAY(arena, fe_tensor, outputs + 1); /* add_temp looks at the next one */
    graph->plan.offsets = ARENA_ARRAY(arena, uint64_t, outputs);
    graph->plan.calls = ARENA_ARRAY(arena, rt_custom_call, customs);
    good = d->temps != NULL && graph->plan.offsets != NULL && graph->plan.calls != NULL &&
           allocate_part(d, (uint32_t)outputs);
    return good ? OPJIT_OK : opjit_rt_no_memory(d->error);
}

opjit_status opjit_fe_graph_divide(fe_graph *graph, opjit_error *error)
{
    divider d = { .graph = graph, .error = error };
    uint32_t customs = 0, count;
    fe_part *parts;

    for (uint32_t i = 0; i < graph->node_count; i++)
        customs += is_custom(&d, i);
    TRY(allocate(&d, customs));
    count = find_levels(&d);
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->results[i].kind == FE_NODE)
            d.results[graph->results[i].index][graph->results[i].output]++;
    TRY(find_homes(&d));
    TRY(list_parts(&d, count));
    parts = ARENA_ARRAY(&graph->arena, fe_part, count);
    if (parts == NULL)
        return opjit_rt_no_memory(error);
    for (d.index = 0; d.index < count; d.index++) {
        TRY(make_part(&d, &parts[d.index]));
        for (uint32_t n = d.index == 0 ? 0 : d.level_ends[d.index - 1]; n < d.level_ends[d.index]; n++)
            if (is_custom(&d, d.by_level[n])) {
                TRY(add_call(&d, d.by_level[n]));
                parts[d.index].calls++;
            }
    }
    graph->parts = parts;
    graph->part_count = count;
    return OPJIT_OK;
}
