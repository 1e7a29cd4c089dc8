/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_alike.c - whether a reading of a graph for some sizes is of the same graph as the one for the largest, as far
 * as its loops can't tell.  A reader may make less for a size of 1: a list of positions is one number then, and the
 * constant that it was a part of is not read.  So a reading may lack constants of the whole, whose numbers its own
 * get. */
#include <string.h>

#include "frontend/frontend.h"

static opjit_status refuse_other(const char *what, const fe_buffer *buffer, opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                           "{graph}: {!dims}for other sizes it has other %s%s%.48s%s, and one kernel has the same for "
                           "all",
                           what, buffer == NULL ? "" : ", such as \"", buffer == NULL ? "" : buffer->name,
                           buffer == NULL ? "" : "\"");
}

static bool is_folded(const fe_buffer *constant)
{
    return constant->bytes <= FE_FOLDED_BYTES;
}

static bool same_constant(const fe_buffer *a, const fe_buffer *b)
{
    return a->bytes == b->bytes && is_folded(a) && memcmp(a->data, b->data, (size_t)a->bytes) == 0;
}

/* Folded ones by their bytes, from behind the last one on: what the sample lacks is few, wherever it is. */
static opjit_status match_folded(const fe_graph *whole, const fe_graph *sample, uint32_t *map, opjit_error *error)
{
    const uint32_t count = whole->constant_count;
    uint32_t behind = 0;

    for (uint32_t i = 0; i < sample->constant_count; i++) {
        const fe_buffer *own = &sample->constants[i];
        if (!is_folded(own))
            continue;
        uint32_t tried = 0;
        while (tried < count && !same_constant(&whole->constants[(behind + tried) % count], own))
            tried++;
        if (tried == count)
            return refuse_other("constants", own, error);
        map[i] = (behind + tried) % count;
        behind = map[i] + 1;
    }
    return OPJIT_OK;
}

/* The others, of which the bytes are not here, in their order by how many bytes they have, from either end. */
static bool match_bound(const fe_graph *whole, const fe_graph *sample, bool forward, uint32_t *map)
{
    uint32_t at = 0;

    for (uint32_t k = 0; k < sample->constant_count; k++) {
        const uint32_t i = forward ? k : sample->constant_count - 1 - k;
        if (is_folded(&sample->constants[i]))
            continue;
        for (;; at++) {
            if (at == whole->constant_count)
                return false;
            map[i] = forward ? at : whole->constant_count - 1 - at;
            if (whole->constants[map[i]].bytes == sample->constants[i].bytes)
                break;
        }
        at++;
    }
    return true;
}

static void renumber(fe_graph *graph, fe_source_kind kind, const uint32_t *map)
{
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].op->input_count; i++)
            if (graph->nodes[n].sources[i].kind == kind)
                graph->nodes[n].sources[i].index = map[graph->nodes[n].sources[i].index];
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->results[i].kind == kind)
            graph->results[i].index = map[graph->results[i].index];
}

/* The sample reads the whole's constants.  Of those that it lacks there has to be no doubt. */
static opjit_status match_constants(const fe_graph *whole, fe_graph *sample, opjit_error *error)
{
    const uint32_t count = sample->constant_count;
    uint32_t *const map = ARENA_ARRAY(&sample->arena, uint32_t, 2u * count + 1u);

    if (map == NULL)
        return opjit_rt_no_memory(error);
    TRY(match_folded(whole, sample, map, error));
    memcpy(map + count, map, count * sizeof *map);
    if (!match_bound(whole, sample, true, map) || !match_bound(whole, sample, false, map + count) ||
        memcmp(map, map + count, count * sizeof *map) != 0)
        return refuse_other("constants", NULL, error);
    renumber(sample, FE_CONSTANT, map);
    sample->constants = whole->constants;
    sample->constant_count = whole->constant_count;
    return OPJIT_OK;
}

/* An input that has no elements for a size of 0, and that nothing reads then. */
static fe_buffer empty_of(const fe_buffer *input)
{
    fe_buffer own = *input;
    for (uint32_t d = 0; d < OPJIT_MAX_RANK; d++)
        own.tensor.sizes[d] = 1;
    memset(own.tensor.strides, 0, sizeof own.tensor.strides);
    own.tensor.elements = 1;
    own.tensor.span = 0;
    return own;
}

/* Gives the sample the whole's inputs, of which it reads some. */
static opjit_status put_inputs(const fe_graph *whole, fe_graph *sample, opjit_error *error)
{
    fe_buffer *const inputs = ARENA_ARRAY(&sample->arena, fe_buffer, whole->input_count);
    uint32_t *const map = ARENA_ARRAY(&sample->arena, uint32_t, sample->input_count + 1u), at = 0;

    if (inputs == NULL || map == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < whole->input_count; i++) {
        const bool is_read = at < sample->input_count && sample->inputs[at].given == whole->inputs[i].given;
        inputs[i] = is_read ? sample->inputs[at] : empty_of(&whole->inputs[i]);
        if (is_read)
            map[at++] = i;
    }
    if (at < sample->input_count)
        return refuse_other("inputs or outputs", &sample->inputs[at], error);
    renumber(sample, FE_INPUT, map);
    sample->inputs = inputs;
    sample->input_count = whole->input_count;
    return OPJIT_OK;
}

opjit_status opjit_fe_sample_read(const fe_graph *whole, fe_graph *sample, bool has_zero, opjit_error *error)
{
    if (sample->parts != NULL)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{graph}: {!dims}custom operators have no dynamic sizes");
    if (has_zero)
        TRY(put_inputs(whole, sample, error));
    if (whole->input_count != sample->input_count || whole->output_count != sample->output_count)
        return refuse_other("inputs or outputs", NULL, error);
    for (uint32_t i = 0; i < whole->output_count; i++)
        if (whole->outputs[i].tensor.rank != sample->outputs[i].tensor.rank)
            return refuse_other("ranks", &whole->outputs[i], error);
    return match_constants(whole, sample, error);
}
