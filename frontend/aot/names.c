/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - C identifiers for the buffers and parameters of a shipped kernel, for the header and the JSON: made of what
 * opjit_fe_graph_label calls them. */
#include <stdio.h>
#include <string.h>

#include "frontend/aot/artifact.h"

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Keeps letters and digits and replaces what is between them by one underscore.  A name in capitals only is often a
 * macro, so it becomes lower case.  False: nothing is left that may begin a name. */
static bool identifier(const char *text, char out[static ARTIFACT_ARGUMENT_SIZE])
{
    size_t used = 0;
    bool gap = false, small = false;

    for (; *text != '\0' && used + 2 < ARTIFACT_ARGUMENT_SIZE; text++) {
        if (!is_letter_or_digit(*text)) {
            gap = used != 0;
            continue;
        }
        if (gap)
            out[used++] = '_';
        gap = false;
        small = small || (*text >= 'a' && *text <= 'z');
        out[used++] = *text;
    }
    out[used] = '\0';
    for (char *c = out; !small && *c != '\0'; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    return used != 0 && !(out[0] >= '0' && out[0] <= '9');
}

static bool is_type(const char *name)
{
    const size_t length = strlen(name);
    return length > 2 && strcmp(name + length - 2, "_t") == 0;
}

/* Whether the prototype can use the name beside those that are used. */
static bool is_free(const fe_shipped *k, const name_set *used, const char *name)
{
    const size_t length = strlen(k->name);

    if (opjit_fe_artifact_is_taken(name) || is_type(name) || strcmp(name, "workspace") == 0 ||
        (shipped_weights(k) != 0 && strcmp(name, "weights") == 0) ||
        (strncmp(name, k->name, length) == 0 && name[length] == '_')) /* a macro of the header */
        return false;
    return opjit_rt_name_set_find(used, name, strlen(name)) == NAME_SET_NONE;
}

/* Names of the prototype's arguments, one after the other: first those that the graph gives, then numbers for others,
 * so that no number is another one's name. */
typedef struct argument_names {
    rt_arena *arena;
    fe_shipped *k;
    name_set used;
    uint32_t count, all;
    bool by_number;
} argument_names;

static bool name_argument(argument_names *n, const char *text, const char *head, uint32_t number)
{
    char *const out = n->k->arguments[n->count++].text;

    if (!n->by_number && (text == NULL || !identifier(text, out) || !is_free(n->k, &n->used, out)))
        out[0] = '\0';
    if (n->by_number == (out[0] != '\0'))
        return true;
    for (; n->by_number; number += n->all) {
        snprintf(out, ARTIFACT_ARGUMENT_SIZE, "%s%u", head, (unsigned)number);
        if (opjit_rt_name_set_find(&n->used, out, strlen(out)) == NAME_SET_NONE)
            break;
    }
    return opjit_rt_name_set_add(&n->used, n->arena, out);
}

static bool name_all(argument_names *n)
{
    const fe_unit *const unit = n->k->versions[0].unit;
    const fe_graph *const graph = &unit->graph;
    bool good = true;

    n->count = 0;
    for (uint32_t i = 0; i < graph->input_count && good; i++)
        good = name_argument(n, graph->inputs[i].named ? graph->inputs[i].name : NULL, "in", i);
    for (uint32_t i = 0; i < graph->output_count && good; i++)
        good = name_argument(n, graph->outputs[i].named ? graph->outputs[i].name : NULL, "out", i);
    for (uint32_t i = 0; i < graph->late_count && good; i++)
        good = name_argument(n, graph->late[i].name, "param", i);
    for (uint32_t i = 0; i < unit->dim_count && good; i++)
        good = name_argument(n, unit->dim_names[i], "dim", i);
    return good;
}

opjit_status opjit_fe_artifact_arguments(rt_arena *arena, fe_shipped *k, opjit_error *error)
{
    const fe_unit *const unit = k->versions[0].unit;
    const fe_graph *const graph = &unit->graph;
    argument_names n = { .arena = arena, .k = k };

    n.all = graph->input_count + graph->output_count + graph->late_count + unit->dim_count;
    k->arguments = ARENA_ARRAY(arena, fe_argument, n.all);
    if (k->arguments == NULL)
        return opjit_rt_no_memory(error);
    bool good = name_all(&n);
    n.by_number = true;
    good = good && name_all(&n);
    return good ? OPJIT_OK : opjit_rt_no_memory(error);
}
