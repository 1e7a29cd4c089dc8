/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_module.c - a parsed module: creation, queries, release.  ptx_parse.c makes it from text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/ptx_parser.h"

static void split_lines(ptx_module *m, const char *text)
{
    uint32_t capacity = 0;

    for (;;) {
        const size_t length = strcspn(text, "\n");
        m->lines = ptx_grow(m->lines, m->line_count, &capacity, sizeof *m->lines);
        m->lines[m->line_count++] = ptx_copy(text, length);
        if (text[length] == '\0')
            return;
        text += length + 1;
    }
}

/* state: 0 not seen, 1 in progress, 2 done. */
static bool recursive(const ptx_module *m, uint32_t function, uint8_t *state)
{
    if (state[function] != 0)
        return state[function] == 1;
    state[function] = 1;
    for (uint32_t i = 0; i < m->functions[function].call_count; i++) {
        if (recursive(m, m->functions[function].calls[i], state))
            return true;
    }
    state[function] = 2;
    return false;
}

static bool check_functions(ptx_parser *p)
{
    ptx_module *m = p->module;
    uint8_t *state = calloc(m->function_count + 1, 1);
    bool good = state != NULL;

    for (uint32_t i = 0; good && i < m->function_count; i++) {
        ptx_function *f = &m->functions[i];
        if (!f->defined)
            good = ptx_bad(p, f->line, "%s has no body", f->name);
        else if (recursive(m, i, state))
            good = ptx_bad(p, f->line, "%s calls itself, if by others", f->name);
        f->param_bytes = calloc(f->param_count + 1, sizeof *f->param_bytes);
        for (uint32_t k = 0; k < f->param_count && f->param_bytes != NULL; k++)
            f->param_bytes[k] = f->params[k].bytes;
    }
    free(state);
    return good;
}

static void forget(ptx_parser *p)
{
    for (uint32_t i = 0; i < p->symbol_count; i++)
        free(p->symbols[i].name);
    for (uint32_t i = 0; i < p->label_count; i++)
        free(p->labels[i].name);
    for (uint32_t i = 0; i < p->fixup_count; i++)
        free(p->fixups[i].name);
    free(p->symbols);
    free(p->labels);
    free(p->fixups);
    free(p);
}

ptx_module *ptx_parse(const char *text, ptx_error *error)
{
    ptx_parser *p = calloc(1, sizeof *p);
    ptx_module *m = calloc(1, sizeof *m);
    ptx_error ignored;

    if (error == NULL)
        error = &ignored;
    memset(error, 0, sizeof *error);
    if (p == NULL || m == NULL) {
        snprintf(error->message, sizeof error->message, "no memory");
        free(p);
        free(m);
        return NULL;
    }
    p->module = m;
    p->at = text;
    p->line = 1;
    p->error = error;
    split_lines(m, text);
    const bool good = ptx_read_module(p) && check_functions(p);
    forget(p);
    if (good)
        return m;
    ptx_free(m);
    return NULL;
}

void ptx_free(ptx_module *m)
{
    if (m == NULL)
        return;
    for (uint32_t i = 0; i < m->line_count; i++)
        free(m->lines[i]);
    for (uint32_t i = 0; i < m->function_count; i++) {
        free(m->functions[i].name);
        free(m->functions[i].slots);
        free(m->functions[i].params);
        free(m->functions[i].param_bytes);
        free(m->functions[i].calls);
    }
    for (uint32_t i = 0; i < m->variable_count; i++)
        free(m->variables[i].name);
    for (uint32_t i = 0; i < m->call_count; i++)
        free(m->calls[i].from);
    for (uint32_t i = 0; i < m->table_count; i++)
        free(m->tables[i].targets);
    free(m->lines);
    free(m->code);
    free(m->functions);
    free(m->variables);
    free(m->calls);
    free(m->tables);
    free(m->globals);
    free(m->constants);
    free(m);
}

const ptx_function *ptx_entry_function(const ptx_module *m, uint32_t entry)
{
    for (uint32_t i = 0; i < m->function_count; i++) {
        if (m->functions[i].entry && entry-- == 0)
            return &m->functions[i];
    }
    return NULL;
}

uint32_t ptx_entry_count(const ptx_module *m)
{
    uint32_t count = 0;

    while (ptx_entry_function(m, count) != NULL)
        count++;
    return count;
}

ptx_entry ptx_entry_get(const ptx_module *m, uint32_t entry)
{
    const ptx_function *f = ptx_entry_function(m, entry);
    ptx_entry e = { 0 };

    if (f == NULL)
        return e;
    e.name = f->name;
    e.param_count = f->param_count;
    e.param_bytes = f->param_bytes;
    e.shared_bytes = m->shared_bytes + f->shared_bytes;
    memcpy(e.reqntid, f->reqntid, sizeof e.reqntid);
    e.maxntid = f->maxntid;
    return e;
}

int ptx_find(const ptx_module *m, const char *name)
{
    for (uint32_t i = 0; i < ptx_entry_count(m); i++) {
        if (strcmp(ptx_entry_function(m, i)->name, name) == 0)
            return (int)i;
    }
    return -1;
}
