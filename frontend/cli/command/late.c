/* SPDX-License-Identifier: Apache-2.0 */
/* late.c - --late: which of the named fields a dispatchable has, for opjit_compile_options.late.  A name holds for
 * every dispatchable that has the field; one that none has is refused at the end. */
#include <string.h>

#include "frontend/cli/command/late.h"

opjit_status opjit_cli_late_begin(cli_late *late, const cli_options *options, rt_arena *arena, opjit_error *error)
{
    *late = (cli_late){ .count = options->late_count, .names = ARENA_ARRAY(arena, cli_late_name, options->late_count) };
    if (late->names == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < late->count; i++) {
        const char *const dot = strrchr(options->late[i], '.');
        cli_late_name *const name = &late->names[i];
        name->text = options->late[i];
        name->field = dot == NULL ? name->text : dot + 1;
        opjit_cli_suggest_begin(&name->near, name->field, strlen(name->field));
    }
    return OPJIT_OK;
}

static bool has_field(const cli_type *def, cli_late_name *name)
{
    bool found = false;
    for (uint32_t i = 0; i < def->field_count; i++) {
        if ((def->fields[i].flags & OPJIT_FIELD_LATE) == 0)
            continue;
        found = found || strcmp(def->fields[i].name, name->field) == 0;
        opjit_cli_suggest(&name->near, def->fields[i].name, strlen(def->fields[i].name));
    }
    return found;
}

/* Whether the dispatchable has the field: an operator by its name, a graph as "node.Field". */
static bool has(const cli_dispatchable *d, cli_late_name *name)
{
    const size_t length = name->field == name->text ? 0 : (size_t)(name->field - name->text) - 1;
    const json_value *node = d->graph == NULL ? NULL : d->graph->nodes->first;
    if (d->graph == NULL)
        return length == 0 && has_field(d->own.def, name);
    for (uint32_t i = 0; i < d->graph->count && length != 0; i++, node = node->next)
        if (node->key_length == length && memcmp(node->key, name->text, length) == 0)
            return d->graph->operators[i].op != NULL && has_field(d->graph->operators[i].def, name);
    return false;
}

opjit_status opjit_cli_late_of(cli_late *late, cli_model *m, const cli_dispatchable *d, opjit_compile_options *out)
{
    const char **const names = ARENA_ARRAY(&m->arena, const char *, late->count);
    if (names == NULL)
        return opjit_cli_no_memory(m, d->json);
    out->late = names;
    for (uint32_t i = 0; i < late->count; i++) {
        if (!has(d, &late->names[i]))
            continue;
        late->names[i].used = true;
        names[out->late_count++] = late->names[i].text;
    }
    return OPJIT_OK;
}

opjit_status opjit_cli_late_end(const cli_late *late, opjit_error *error)
{
    char meant[CLI_SUGGEST_TEXT];
    for (uint32_t i = 0; i < late->count; i++)
        if (!late->names[i].used)
            return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                                      "--late: no dispatchable has a field \"%.80s\" that can be given at a call%s",
                                      late->names[i].text, opjit_cli_suggest_text(&late->names[i].near, "", "", meant));
    return OPJIT_OK;
}
