/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_parse.c - parses directives, declarations and labels of PTX into a module.  Tokens are in ptx_lex.c, instructions
 * in ptx_decode.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/machines/ptx_parser.h"

/* --- names ------------------------------------------------------------------------------------------------------- */
static bool same(const char *name, const char *text, uint32_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

ptx_symbol *ptx_symbol_of(const ptx_parser *p, const char *name, uint32_t length, uint32_t *out_index)
{
    uint32_t stem = length;
    uint64_t number = 0;

    while (stem > 1 && ptx_is_digit(name[stem - 1]))
        stem--;
    for (uint32_t i = stem; i < length && number < UINT32_MAX; i++)
        number = number * 10 + (uint64_t)(name[i] - '0');
    for (uint32_t i = p->symbol_count; i-- > 0;) {
        ptx_symbol *s = &p->symbols[i];
        *out_index = 0;
        if (!s->row && same(s->name, name, length))
            return s;
        if (s->row && stem < length && number < s->count && same(s->name, name, stem)) {
            *out_index = (uint32_t)number;
            return s;
        }
    }
    return NULL;
}

ptx_label *ptx_label_of(ptx_parser *p, const char *name, uint32_t length)
{
    for (uint32_t i = 0; i < p->label_count; i++) {
        if (same(p->labels[i].name, name, length))
            return &p->labels[i];
    }
    p->labels = ptx_grow(p->labels, p->label_count, &p->label_capacity, sizeof *p->labels);
    p->labels[p->label_count] = (ptx_label){ ptx_copy(name, length), NO_SLOT, NO_SLOT, 0 };
    return &p->labels[p->label_count++];
}

static uint32_t add_slot(ptx_function *f, ptx_slot slot)
{
    f->slots = ptx_grow(f->slots, f->slot_count, &f->slot_capacity, sizeof *f->slots);
    f->slots[f->slot_count] = slot;
    return f->slot_count++;
}

uint32_t ptx_constant(ptx_function *f, ptx_fill fill, uint32_t which, uint8_t size, uint64_t value)
{
    for (uint32_t i = SLOT_FIRST; i < f->slot_count; i++) {
        const ptx_slot *s = &f->slots[i];
        if (s->fill == fill && s->which == which && s->value == value)
            return i;
    }
    return add_slot(f, (ptx_slot){ (uint8_t)fill, (uint8_t)which, size, value });
}

static ptx_symbol *add_symbol(ptx_parser *p, char *name)
{
    p->symbols = ptx_grow(p->symbols, p->symbol_count, &p->symbol_capacity, sizeof *p->symbols);
    p->symbols[p->symbol_count] = (ptx_symbol){ .name = name };
    return &p->symbols[p->symbol_count++];
}

static void leave_scope(ptx_parser *p, uint32_t symbols)
{
    while (p->symbol_count > symbols)
        free(p->symbols[--p->symbol_count].name);
}

/* --- declarations ------------------------------------------------------------------------------------------------ */
/* .reg .TYPE NAME<COUNT>, NAME …; */
static bool read_registers(ptx_parser *p)
{
    ptx_type type;
    char *name;
    uint64_t count;

    if (!ptx_next(p) || !ptx_take_type(p, &type))
        return false;
    if (ptx_types[type].size == 1)
        return ptx_bad(p, p->token.line, "registers of 8 bits");
    do {
        if (!ptx_take_name(p, &name))
            return false;
        ptx_symbol *s = add_symbol(p, name);
        s->count = 1;
        s->size = ptx_types[type].size;
        s->base = p->function->slot_count;
        if (ptx_is(p, "<")) {
            if (!ptx_next(p) || !ptx_take_number(p, 1u << 20, &count) || !ptx_take(p, ">"))
                return false;
            s->row = true;
            s->count = (uint32_t)count;
        }
        for (uint32_t i = 0; i < s->count * (s->size == 16 ? 2 : 1); i++)
            add_slot(p->function, (ptx_slot){ FILL_NOTHING, 0, s->size, 0 });
    } while (ptx_is(p, ",") && ptx_next(p));
    return ptx_take(p, ";");
}

typedef struct declaration {
    ptx_type type;
    uint64_t align, count;
    bool array, open;
    char *name;
} declaration;

/* [.align N] .TYPE [.ptr [.SPACE] [.align N]] NAME [ '[' [COUNT] ']' ] */
static bool read_declaration(ptx_parser *p, declaration *d)
{
    uint64_t ignored;

    memset(d, 0, sizeof *d);
    d->count = 1;
    if (ptx_is(p, ".align") && (!ptx_next(p) || !ptx_take_number(p, 4096, &d->align)))
        return false;
    if (!ptx_take_type(p, &d->type))
        return false;
    if (ptx_types[d->type].size == 0 || ptx_types[d->type].size > 8)
        return ptx_bad(p, p->token.line, "a variable of type .%s", ptx_types[d->type].name);
    if (ptx_is(p, ".ptr")) {
        if (!ptx_next(p))
            return false;
        if ((ptx_is(p, ".global") || ptx_is(p, ".shared") || ptx_is(p, ".local") || ptx_is(p, ".const")) &&
            !ptx_next(p))
            return false;
        if (ptx_is(p, ".align") && (!ptx_next(p) || !ptx_take_number(p, 4096, &ignored)))
            return false;
    }
    if (d->align == 0)
        d->align = ptx_types[d->type].size;
    if (!is_power_of_two(d->align))
        return ptx_bad(p, p->token.line, "an alignment that is no power of two");
    if (!ptx_take_name(p, &d->name))
        return false;
    if (!ptx_is(p, "["))
        return true;
    d->array = true;
    if (!ptx_next(p))
        return false;
    if (ptx_is(p, "]"))
        d->open = true, d->count = 0;
    else if (!ptx_take_number(p, 1u << 28, &d->count))
        return false;
    return ptx_take(p, "]");
}

static uint64_t declared_bytes(const declaration *d)
{
    return d->count * ptx_types[d->type].size;
}

static uint32_t place(uint32_t *end, const declaration *d)
{
    const uint32_t offset = (uint32_t)align_up(*end, d->align);
    *end = offset + (uint32_t)declared_bytes(d);
    return offset;
}

/* .local, .shared or .param within a body. */
static bool read_local(ptx_parser *p)
{
    const bool local = ptx_is(p, ".local"), shared = ptx_is(p, ".shared");
    ptx_function *f = p->function;
    declaration d = { 0 };

    if (!ptx_next(p) || !read_declaration(p, &d)) {
        free(d.name);
        return false;
    }
    ptx_symbol *s = add_symbol(p, d.name);
    s->fill = local ? FILL_LOCAL : shared ? FILL_OWN_SHARED : FILL_CALL_PARAM;
    s->bytes = (uint32_t)declared_bytes(&d);
    s->base = place(local ? &f->local_bytes : shared ? &f->shared_bytes : &f->frame_bytes, &d);
    if (s->bytes == 0)
        return ptx_bad(p, p->token.line, "a variable without size: %s", s->name);
    return ptx_take(p, ";");
}

static bool read_values(ptx_parser *p, uint8_t *to, const declaration *d)
{
    const uint8_t size = ptx_types[d->type].size;
    uint64_t i = 0;

    if (d->array && !ptx_take(p, "{"))
        return false;
    do {
        const ptx_token t = p->token;
        if (t.kind != TOKEN_NUMBER || (t.number == 'f' && size != 4) || (t.number == 'd' && size != 8))
            return ptx_bad(p, t.line, "'%.*s' as a value of %s", SAY(t), d->name);
        if (i == d->count)
            return ptx_bad(p, t.line, "%s: more than %llu values", d->name, (unsigned long long)d->count);
        memcpy(to + i++ * size, &t.value, size); /* little endian, as the device */
        if (!ptx_next(p))
            return false;
    } while (d->array && ptx_is(p, ",") && ptx_next(p));
    return !d->array || ptx_take(p, "}");
}

static uint8_t *enlarge(uint8_t *data, uint64_t from, uint64_t to)
{
    data = realloc(data, to);
    if (data == NULL)
        abort();
    memset(data + from, 0, to - from);
    return data;
}

/* .global, .const or .shared outside of functions. */
static bool read_variable(ptx_parser *p, bool external)
{
    ptx_module *m = p->module;
    ptx_variable v = { .space = ptx_is(p, ".global")  ? SPACE_GLOBAL
                                : ptx_is(p, ".const") ? SPACE_CONST
                                                      : SPACE_SHARED };
    declaration d = { 0 };

    if (!ptx_next(p) || !read_declaration(p, &d)) {
        free(d.name);
        return false;
    }
    v.name = d.name;
    v.bytes = declared_bytes(&d);
    v.dynamic = d.open;
    m->variables = ptx_grow(m->variables, m->variable_count, &m->variable_capacity, sizeof v);
    m->variables[m->variable_count] = v;
    ptx_variable *kept = &m->variables[m->variable_count++];
    if (external != d.open || (d.open && v.space != SPACE_SHARED))
        return ptx_bad(p, p->token.line, "%s: only .extern .shared %s[] is defined elsewhere, and it must be", v.name,
                       v.name);
    if (v.space == SPACE_SHARED) {
        if (!d.open)
            kept->offset = place(&m->shared_bytes, &d);
        return ptx_take(p, ";");
    }
    uint8_t **data = v.space == SPACE_GLOBAL ? &m->globals : &m->constants;
    uint64_t *end = v.space == SPACE_GLOBAL ? &m->global_bytes : &m->constant_bytes;
    kept->offset = align_up(*end, d.align);
    *data = enlarge(*data, *end, kept->offset + v.bytes);
    *end = kept->offset + v.bytes;
    if (ptx_is(p, "=") && (!ptx_next(p) || !read_values(p, *data + kept->offset, &d)))
        return false;
    return ptx_take(p, ";");
}

/* --- functions --------------------------------------------------------------------------------------------------- */
/* ( .param …, .param … ), of an entry or function; also a function's result. */
static bool read_params(ptx_parser *p, ptx_function *f, bool result)
{
    if (!ptx_take(p, "("))
        return false;
    while (!ptx_is(p, ")")) {
        declaration d = { 0 };
        if (!ptx_take(p, ".param") || !read_declaration(p, &d)) {
            free(d.name);
            return false;
        }
        ptx_symbol *s = add_symbol(p, d.name);
        s->bytes = (uint32_t)declared_bytes(&d);
        s->base = place(f->entry ? &f->entry_bytes : &f->frame_bytes, &d);
        s->fill = f->entry ? FILL_VALUE : FILL_CALL_PARAM;
        if (result) {
            if (f->result_bytes != 0)
                return ptx_bad(p, p->token.line, "more than one result");
            f->result_offset = s->base;
            f->result_bytes = s->bytes;
        } else {
            f->params = ptx_grow(f->params, f->param_count, &f->param_capacity, sizeof *f->params);
            f->params[f->param_count++] = (ptx_param){ s->base, s->bytes };
        }
        if (s->bytes == 0)
            return ptx_bad(p, p->token.line, "a parameter without size: %s", s->name);
        if (ptx_is(p, ",") ? !ptx_next(p) : !ptx_is(p, ")"))
            return ptx_is(p, ",") ? false : ptx_take(p, ")");
    }
    return ptx_next(p);
}

static bool read_triple(ptx_parser *p, uint32_t out[3])
{
    uint64_t value;

    out[0] = out[1] = out[2] = 1;
    if (!ptx_next(p))
        return false;
    for (int i = 0; i < 3; i++) {
        if (!ptx_take_number(p, 1024, &value))
            return false;
        if (value == 0)
            return ptx_bad(p, p->token.line, "a block without threads");
        out[i] = (uint32_t)value;
        if (!ptx_is(p, ","))
            return true;
        if (i < 2 && !ptx_next(p))
            return false;
    }
    return true;
}

static bool read_directives(ptx_parser *p, ptx_function *f)
{
    uint32_t most[3];
    uint64_t ignored;

    while (!ptx_is(p, "{") && !ptx_is(p, ";")) {
        if (ptx_is(p, ".reqntid")) {
            if (!read_triple(p, f->reqntid))
                return false;
        } else if (ptx_is(p, ".maxntid")) {
            if (!read_triple(p, most))
                return false;
            f->maxntid = most[0] * most[1] * most[2];
        } else if (ptx_is(p, ".minnctapersm") || ptx_is(p, ".maxnreg")) {
            if (!ptx_next(p) || !ptx_take_number(p, 1024, &ignored))
                return false;
        } else if (!ptx_is(p, ".noreturn") || !ptx_next(p)) {
            return ptx_bad(p, p->token.line, "directive '%.*s'", SAY(p->token));
        }
    }
    return true;
}

/* NAME: , or NAME: .branchtargets NAME, NAME …; */
static bool read_label(ptx_parser *p, ptx_token name)
{
    ptx_module *m = p->module;
    ptx_label *label = ptx_label_of(p, name.text, name.length);

    if (label->at != NO_SLOT || label->table != NO_SLOT)
        return ptx_bad(p, name.line, "label %.*s is there twice", SAY(name));
    label->line = name.line;
    if (!ptx_is(p, ".branchtargets")) {
        label->at = m->code_count;
        return true;
    }
    m->tables = ptx_grow(m->tables, m->table_count, &m->table_capacity, sizeof *m->tables);
    const uint32_t number = label->table = m->table_count++;
    ptx_table *table = &m->tables[number];
    do {
        if (!ptx_next(p))
            return false;
        table->targets = ptx_grow(table->targets, table->count, &table->capacity, sizeof *table->targets);
        p->fixups = ptx_grow(p->fixups, p->fixup_count, &p->fixup_capacity, sizeof *p->fixups);
        p->fixups[p->fixup_count++] = (ptx_fixup){ NULL, p->token.line, 0, number, table->count++ };
        if (!ptx_take_name(p, &p->fixups[p->fixup_count - 1].name))
            return false;
    } while (ptx_is(p, ","));
    return ptx_take(p, ";");
}

static bool settle_labels(ptx_parser *p)
{
    ptx_module *m = p->module;

    for (uint32_t i = 0; i < p->fixup_count; i++) {
        const ptx_fixup *x = &p->fixups[i];
        const ptx_label *label = ptx_label_of(p, x->name, (uint32_t)strlen(x->name));
        const bool table = x->table == NO_SLOT && m->code[x->ins].op == OP_BRX;
        const uint32_t to = table ? label->table : label->at;
        if (to == NO_SLOT)
            return ptx_bad(p, x->line, "no label %s in this function", x->name);
        if (x->table != NO_SLOT)
            m->tables[x->table].targets[x->index] = to;
        else
            m->code[x->ins].target = to;
    }
    return true;
}

static void forget_labels(ptx_parser *p)
{
    for (uint32_t i = 0; i < p->fixup_count; i++)
        free(p->fixups[i].name);
    for (uint32_t i = 0; i < p->label_count; i++)
        free(p->labels[i].name);
    p->fixup_count = p->label_count = 0;
}

static bool read_statement(ptx_parser *p)
{
    if (ptx_is(p, ".reg"))
        return read_registers(p);
    if (ptx_is(p, ".local") || ptx_is(p, ".shared") || ptx_is(p, ".param"))
        return read_local(p);
    if (ptx_is(p, ".pragma")) {
        if (!ptx_next(p))
            return false;
        if (p->token.kind != TOKEN_STRING)
            return ptx_bad(p, p->token.line, ".pragma without a string");
        return ptx_next(p) && ptx_take(p, ";");
    }
    if (p->token.kind == TOKEN_WORD && p->token.text[0] != '.') {
        const ptx_token name = p->token;
        const char *after = p->at;
        while (*after == ' ' || *after == '\t')
            after++;
        if (*after == ':')
            return ptx_next(p) && ptx_next(p) && read_label(p, name);
    } else if (!ptx_is(p, "@")) {
        return ptx_bad(p, p->token.line, "'%.*s' in a function", SAY(p->token));
    }
    return ptx_instruction(p);
}

static bool read_block(ptx_parser *p)
{
    const uint32_t symbols = p->symbol_count;

    if (!ptx_take(p, "{"))
        return false;
    while (!ptx_is(p, "}")) {
        if (p->token.kind == TOKEN_END)
            return ptx_bad(p, p->token.line, "a function that does not end");
        if (!(ptx_is(p, "{") ? read_block(p) : read_statement(p)))
            return false;
    }
    leave_scope(p, symbols);
    return ptx_next(p);
}

static bool read_body(ptx_parser *p, ptx_function *f)
{
    ptx_module *m = p->module;

    if (f->defined)
        return ptx_bad(p, p->token.line, "%s is there twice", f->name);
    f->defined = true;
    f->first = m->code_count;
    p->function = f;
    add_slot(f, (ptx_slot){ .size = 8 });
    add_slot(f, (ptx_slot){ .size = 8 });
    if (!read_block(p) || !settle_labels(p))
        return false;
    m->code = ptx_grow(m->code, m->code_count, &m->code_capacity, sizeof *m->code);
    m->code[m->code_count++] = (ptx_ins){ .op = f->entry ? OP_EXIT : OP_RET,
                                          .guard = NO_SLOT,
                                          .line = p->token.line,
                                          .function = (uint32_t)(f - m->functions) };
    f->end = m->code_count;
    forget_labels(p);
    p->function = NULL;
    return true;
}

static ptx_function *function_named(ptx_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->function_count; i++) {
        if (strcmp(m->functions[i].name, name) == 0)
            return &m->functions[i];
    }
    return NULL;
}

/* A prototype and its definition must agree; the definition is kept. */
static bool merge(ptx_parser *p, ptx_function *f, ptx_function *now)
{
    bool equal = f->param_count == now->param_count && f->result_bytes == now->result_bytes && f->entry == now->entry;

    for (uint32_t i = 0; equal && i < f->param_count; i++)
        equal = f->params[i].bytes == now->params[i].bytes && f->params[i].offset == now->params[i].offset;
    free(now->params);
    free(now->name);
    return equal || ptx_bad(p, p->token.line, "%s differs from its prototype", f->name);
}

static bool read_function(ptx_parser *p)
{
    ptx_module *m = p->module;
    ptx_function now = { .entry = ptx_is(p, ".entry"), .line = p->token.line };
    bool good = ptx_next(p);

    if (good && ptx_is(p, ".noreturn"))
        good = ptx_next(p);
    if (good && !now.entry && ptx_is(p, "("))
        good = read_params(p, &now, true);
    good = good && ptx_take_name(p, &now.name);
    if (good && ptx_is(p, "("))
        good = read_params(p, &now, false);
    good = good && read_directives(p, &now);
    if (!good) {
        free(now.name);
        free(now.params);
        return false;
    }
    ptx_function *f = function_named(m, now.name);
    if (f == NULL) {
        m->functions = ptx_grow(m->functions, m->function_count, &m->function_capacity, sizeof now);
        f = &m->functions[m->function_count++];
        *f = now;
    } else if (!merge(p, f, &now)) {
        return false;
    }
    if (ptx_is(p, ";") ? !ptx_next(p) : !read_body(p, f))
        return false;
    leave_scope(p, 0);
    return true;
}

/* --- the whole text ---------------------------------------------------------------------------------------------- */
/* .version A.B .target sm_NN .address_size 64 */
static bool read_header(ptx_parser *p)
{
    unsigned long version, target;
    char *end;

    if (!ptx_next(p))
        return false;
    if (!ptx_is(p, ".version"))
        return ptx_bad(p, p->token.line, "'.version' is missing before '%.*s'", SAY(p->token));
    version = strtoul(p->at, &end, 10);
    if (*end != '.' || !ptx_is_digit(end[1]) || version < 6 || version > 9)
        return ptx_bad(p, p->token.line, ".version: not 6.0 to 9.9");
    strtoul(end + 1, &end, 10);
    p->at = end;
    if (!ptx_next(p) || !ptx_take(p, ".target"))
        return false;
    target = p->token.length > 3 && memcmp(p->token.text, "sm_", 3) == 0 ? strtoul(p->token.text + 3, NULL, 10) : 0;
    if (target < 70 || target > 129)
        return ptx_bad(p, p->token.line, "target '%.*s', not sm_70 to sm_129", SAY(p->token));
    if (!ptx_next(p) || !ptx_take(p, ".address_size"))
        return false;
    if (p->token.kind != TOKEN_NUMBER || p->token.value != 64)
        return ptx_bad(p, p->token.line, "addresses of '%.*s' bits, not 64", SAY(p->token));
    return ptx_next(p);
}

bool ptx_read_module(ptx_parser *p)
{
    if (!read_header(p))
        return false;
    while (p->token.kind != TOKEN_END) {
        bool external = false;
        while (ptx_is(p, ".visible") || ptx_is(p, ".extern") || ptx_is(p, ".weak")) {
            external = external || ptx_is(p, ".extern");
            if (!ptx_next(p))
                return false;
        }
        if (ptx_is(p, ".entry") || ptx_is(p, ".func")) {
            if (!read_function(p))
                return false;
        } else if (ptx_is(p, ".global") || ptx_is(p, ".const") || ptx_is(p, ".shared")) {
            if (!read_variable(p, external))
                return false;
        } else {
            return ptx_bad(p, p->token.line, "'%.*s' outside of functions", SAY(p->token));
        }
    }
    return true;
}
