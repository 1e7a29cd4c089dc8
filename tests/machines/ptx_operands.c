/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_operands.c - reads operands, and completes instructions whose operands have a form of their own (moves, memory,
 * conversions, comparisons, control).  What all instructions have in common is in ptx_decode.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/machines/ptx_parser.h"

/* --- reading ----------------------------------------------------------------------------------------------------- */
typedef struct special {
    const char *name;
    uint8_t fill, which;
} special;
static const special specials[] = {
    { "%tid.x", FILL_TID, 0 },
    { "%tid.y", FILL_TID, 1 },
    { "%tid.z", FILL_TID, 2 },
    { "%ntid.x", FILL_NTID, 0 },
    { "%ntid.y", FILL_NTID, 1 },
    { "%ntid.z", FILL_NTID, 2 },
    { "%ctaid.x", FILL_CTAID, 0 },
    { "%ctaid.y", FILL_CTAID, 1 },
    { "%ctaid.z", FILL_CTAID, 2 },
    { "%nctaid.x", FILL_NCTAID, 0 },
    { "%nctaid.y", FILL_NCTAID, 1 },
    { "%nctaid.z", FILL_NCTAID, 2 },
    { "%laneid", FILL_LANEID, 0 },
    { "%warpid", FILL_WARPID, 0 },
    { "%nwarpid", FILL_NWARPID, 0 },
    { "%lanemask_eq", FILL_LANEMASK, 0 },
    { "%lanemask_le", FILL_LANEMASK, 1 },
    { "%lanemask_lt", FILL_LANEMASK, 2 },
    { "%lanemask_ge", FILL_LANEMASK, 3 },
    { "%lanemask_gt", FILL_LANEMASK, 4 },
    { "%dynamic_smem_size", FILL_DYNAMIC_BYTES, 0 },
};

static bool is_name(const char *name, const ptx_token *t)
{
    return strlen(name) == t->length && memcmp(name, t->text, t->length) == 0;
}

static void find_name(const ptx_parser *p, ptx_atom *a)
{
    const ptx_token *t = &p->token;
    uint32_t index;
    const ptx_symbol *s = ptx_symbol_of(p, t->text, t->length, &index);

    a->kind = 'n';
    a->name = t->text;
    a->length = t->length;
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        if (is_name(specials[i].name, t)) {
            *a = (ptx_atom){ .kind = 's', .size = 4, .fill = specials[i].fill, .which = specials[i].which };
            return;
        }
    }
    if (s != NULL && s->fill == FILL_NOTHING) {
        *a = (ptx_atom){ .kind = 'r', .size = s->size, .slot = s->base + index * (s->size == 16 ? 2 : 1) };
        return;
    }
    if (s != NULL) {
        *a = (ptx_atom){ .kind = 'v', .fill = s->fill, .value = s->base, .bytes = s->bytes };
        return;
    }
    for (uint32_t i = 0; i < p->module->variable_count; i++) {
        const ptx_variable *v = &p->module->variables[i];
        if (is_name(v->name, t)) {
            *a = (ptx_atom){ .kind = 'v',
                             .value = v->offset,
                             .fill = v->space == SPACE_GLOBAL ? FILL_GLOBAL
                                     : v->dynamic             ? FILL_DYNAMIC_SHARED
                                                              : FILL_VALUE };
            return;
        }
    }
}

static bool read_atom(ptx_parser *p)
{
    ptx_atom *a = &p->atoms[p->atom_count];

    if (p->atom_count == MOST_ATOMS)
        return ptx_bad(p, p->token.line, "more than %d operands", MOST_ATOMS);
    memset(a, 0, sizeof *a);
    p->atom_count++;
    if (p->token.kind == TOKEN_NUMBER) {
        a->kind = 'i';
        a->number = p->token.number;
        a->value = p->token.value;
        return ptx_next(p);
    }
    if (p->token.kind != TOKEN_WORD || p->token.text[0] == '.')
        return ptx_bad(p, p->token.line, "'%.*s' as an operand", SAY(p->token));
    if (ptx_is(p, "_")) {
        a->kind = '_';
        return ptx_next(p);
    }
    find_name(p, a);
    if (a->kind == 'n' && a->name[0] == '%')
        return ptx_bad(p, p->token.line, "register %.*s is not declared", SAY(p->token));
    return ptx_next(p);
}

/* Reads + NUMBER after a variable or an address. */
static bool read_offset(ptx_parser *p, int64_t *out)
{
    if (!ptx_is(p, "+"))
        return true;
    if (!ptx_next(p))
        return false;
    if (p->token.kind != TOKEN_NUMBER || p->token.number != 'i')
        return ptx_bad(p, p->token.line, "'%.*s' as an offset", SAY(p->token));
    *out = (int64_t)p->token.value;
    return ptx_next(p);
}

static bool read_operand(ptx_parser *p)
{
    ptx_operand *o = &p->operands[p->operand_count];

    if (p->operand_count == MOST_OPERANDS)
        return ptx_bad(p, p->token.line, "more than %d operands", MOST_OPERANDS);
    p->operand_count++;
    *o = (ptx_operand){ 'a', 1, &p->atoms[p->atom_count], 0 };
    if (ptx_is(p, "[")) {
        o->kind = '[';
        return ptx_next(p) && read_atom(p) && read_offset(p, &o->offset) && ptx_take(p, "]");
    }
    if (ptx_is(p, "{") || ptx_is(p, "(")) {
        const char *close = ptx_is(p, "{") ? "}" : ")";
        o->kind = p->token.text[0];
        o->count = 0;
        if (!ptx_next(p))
            return false;
        while (!ptx_is(p, close)) {
            if (!read_atom(p) || (!ptx_is(p, close) && !ptx_take(p, ",")))
                return false;
            o->count++;
        }
        return ptx_next(p);
    }
    if (!read_atom(p))
        return false;
    if (ptx_is(p, "|")) {
        o->kind = '|';
        o->count = 2;
        return ptx_next(p) && read_atom(p);
    }
    if (o->atoms->kind != 'v')
        return true;
    int64_t offset = 0;
    if (!read_offset(p, &offset))
        return false;
    o->atoms->value += (uint64_t)offset;
    return true;
}

static ptx_operand part(const ptx_operand *o, uint32_t i)
{
    return (ptx_operand){ 'a', 1, &o->atoms[i], 0 };
}

static bool refuse(ptx_parser *p, const ptx_decoding *d, const char *why)
{
    return ptx_bad(p, d->ins.line, "'%.*s': %s", SAY(d->name), why);
}

/* --- forms ------------------------------------------------------------------------------------------------------- */
static bool decode_mov(ptx_parser *p, ptx_decoding *d)
{
    static const ptx_type bits[] = { [2] = T_B16, [4] = T_B32, [8] = T_B64 };
    const ptx_operand *to = &p->operands[0], *from = &p->operands[1];
    const ptx_type type = (ptx_type)d->ins.type;
    const uint32_t size = ptx_types[type].size, count = to->kind == '{' ? to->count : from->count;

    if (p->operand_count != 2)
        return ptx_wrong_count(p, d);
    if (to->kind == 'a' && from->kind == 'a') {
        if (type == T_B128 && from->atoms->kind != 'r')
            return refuse(p, d, "128 bits from no register");
        return ptx_add_dest(p, d, to, type, false) && ptx_add_source(p, d, from, type, false);
    }
    if (ptx_types[type].kind != 'b' || (to->kind == '{') == (from->kind == '{') || count < 2 || count > 4 ||
        size % count != 0 || size / count < 2 || size / count > 8 || !is_power_of_two(size / count))
        return refuse(p, d, "parts that do not make up the whole");
    const ptx_type piece = bits[size / count];
    d->ins.op = to->kind == '{' ? OP_UNPACK : OP_PACK;
    d->ins.vector = (uint8_t)count;
    if (d->ins.op == OP_PACK && !ptx_add_dest(p, d, to, type, false))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const ptx_operand o = part(d->ins.op == OP_PACK ? from : to, i);
        if (!(d->ins.op == OP_PACK ? ptx_add_source(p, d, &o, piece, false) : ptx_add_dest(p, d, &o, piece, false)))
            return false;
    }
    return d->ins.op == OP_PACK || ptx_add_source(p, d, from, type, false);
}

static bool add_address(ptx_parser *p, ptx_decoding *d, const ptx_operand *o)
{
    const ptx_operand base = part(o, 0);
    const ptx_atom *a = o->atoms;

    if (o->kind != '[')
        return refuse(p, d, "no address in brackets");
    if (a->kind == 'v') {
        const bool param = a->fill == FILL_CALL_PARAM;
        if (param && d->ins.space != SPACE_PARAM)
            return refuse(p, d, "a parameter in another space");
    }
    d->ins.offset = o->offset;
    return ptx_add_source(p, d, &base, T_B64, false);
}

/* ld TO, [A]   st [A], FROM */
static bool decode_memory(ptx_parser *p, ptx_decoding *d)
{
    const bool load = d->ins.op == OP_LD, larger = d->ins.type != T_B128;
    const ptx_operand *value = &p->operands[load ? 0 : 1];

    if (p->operand_count != 2)
        return ptx_wrong_count(p, d);
    if (d->ins.vector == 1 ? value->kind != 'a' : value->kind != '{' || value->count != d->ins.vector)
        return refuse(p, d, "not as many values as .v says");
    if (!load && !add_address(p, d, &p->operands[0]))
        return false;
    for (uint32_t i = 0; i < value->count; i++) {
        const ptx_operand o = part(value, i);
        if (!load && d->ins.source_count == MOST_SOURCES)
            return refuse(p, d, "too many values");
        if (!(load ? ptx_add_dest(p, d, &o, (ptx_type)d->ins.type, larger)
                   : ptx_add_source(p, d, &o, (ptx_type)d->ins.type, larger)))
            return false;
    }
    return !load || add_address(p, d, &p->operands[1]);
}

static bool cvt_is_legal(const ptx_ins *i)
{
    const ptx_type_info to = ptx_types[i->type], from = ptx_types[i->type2];
    const uint32_t round = i->flags & F_ROUND, integral = i->flags & F_INTEGRAL;

    if (i->type == T_F16X2)
        return i->type2 == T_F32 && is_power_of_two(round) && integral == 0 && (i->flags & F_SAT) == 0;
    if ((to.kind != 'u' && to.kind != 's' && to.kind != 'f') ||
        (from.kind != 'u' && from.kind != 's' && from.kind != 'f'))
        return false;
    if (to.kind != 'f')
        return from.kind == 'f' ? is_power_of_two(integral) && round == 0 : integral == 0 && round == 0;
    if (from.kind != 'f' || from.size > to.size)
        return is_power_of_two(round) && integral == 0;
    return round == 0 && (integral == 0 || (is_power_of_two(integral) && from.size == to.size));
}

static bool decode_cvt(ptx_parser *p, ptx_decoding *d)
{
    const bool pair = d->ins.type == T_F16X2;
    const ptx_type from = (ptx_type)d->ins.type2;

    if (d->type_count != 2 || !cvt_is_legal(&d->ins))
        return refuse(p, d, "no such conversion");
    if (p->operand_count != (pair ? 3 : 2))
        return ptx_wrong_count(p, d);
    for (uint32_t i = 1; i < p->operand_count; i++) {
        if (!ptx_add_source(p, d, &p->operands[i], from, ptx_types[from].kind != 'f'))
            return false;
    }
    return ptx_add_dest(p, d, &p->operands[0], (ptx_type)d->ins.type,
                        ptx_types[d->ins.type].kind == 'u' || ptx_types[d->ins.type].kind == 's');
}

static bool compares(ptx_compare compare, ptx_type type)
{
    switch (ptx_types[type].kind) {
    case 'b': return compare <= C_NE;
    case 's': return compare <= C_GE;
    case 'u': return compare <= C_HS;
    default: return compare <= C_GE || compare >= C_EQU;
    }
}

/* setp.CMP[.BOOL].TYPE P[|Q], a, b[, c]   set.CMP.TYPE.TYPE d, a, b */
static bool decode_compare(ptx_parser *p, ptx_decoding *d)
{
    const bool set = d->ins.op == OP_SET;
    const ptx_operand *to = &p->operands[0];
    const ptx_type type = set ? d->types[1] : d->types[0];

    if (!d->compared ||
        (set && (d->type_count != 2 || (d->ins.type != T_U32 && d->ins.type != T_S32 && d->ins.type != T_F32))) ||
        ptx_types[type].size == 1 || ptx_types[type].size > 8 || type == T_PRED ||
        (set && ptx_types[type].kind == 'x') || !compares((ptx_compare)d->ins.compare, type))
        return refuse(p, d, "no such comparison");
    d->ins.type2 = (uint8_t)type;
    if (p->operand_count != (d->ins.sub == SUB_NONE ? 3 : 4))
        return ptx_wrong_count(p, d);
    if ((type == T_F16X2) != (to->kind == '|') && (type == T_F16X2 || set))
        return refuse(p, d, "predicates that do not fit");
    for (uint32_t i = 0; i < to->count; i++) {
        const ptx_operand o = part(to, i);
        if (to->kind != 'a' && to->kind != '|')
            return refuse(p, d, "the result goes to no register");
        if (!ptx_add_dest(p, d, &o, set ? (ptx_type)d->ins.type : T_PRED, false))
            return false;
    }
    return ptx_add_source(p, d, &p->operands[1], type, false) && ptx_add_source(p, d, &p->operands[2], type, false) &&
           (d->ins.sub == SUB_NONE || ptx_add_source(p, d, &p->operands[3], T_PRED, false));
}

/* slct.TYPE.(s32|f32) d, a, b, c */
static bool decode_slct(ptx_parser *p, ptx_decoding *d)
{
    const ptx_type type = d->types[0];

    if (d->type_count != 2 || (d->ins.type2 != T_S32 && d->ins.type2 != T_F32) || ptx_types[type].size < 2 ||
        ptx_types[type].size > 8 || type == T_F16 || ptx_types[type].kind == 'x')
        return refuse(p, d, "no such selection");
    if (p->operand_count != 4)
        return ptx_wrong_count(p, d);
    return ptx_add_dest(p, d, &p->operands[0], type, false) && ptx_add_source(p, d, &p->operands[1], type, false) &&
           ptx_add_source(p, d, &p->operands[2], type, false) &&
           ptx_add_source(p, d, &p->operands[3], (ptx_type)d->ins.type2, false);
}

/* shfl.sync.MODE.b32 d[|p], a, b, c, mask   vote.sync.MODE.TYPE d, p, mask */
static bool decode_warp(ptx_parser *p, ptx_decoding *d)
{
    const bool shfl = d->ins.op == OP_SHFL;
    const ptx_operand *to = &p->operands[0];

    if (p->operand_count != (shfl ? 5 : 3))
        return ptx_wrong_count(p, d);
    for (uint32_t i = 0; i < to->count; i++) {
        const ptx_operand o = part(to, i);
        if (to->kind != 'a' && (to->kind != '|' || !shfl))
            return refuse(p, d, "the result goes to no register");
        if (!ptx_add_dest(p, d, &o, i == 1 ? T_PRED : (ptx_type)d->ins.type, false))
            return false;
    }
    for (uint32_t i = 1; i < p->operand_count; i++) {
        if (!ptx_add_source(p, d, &p->operands[i], shfl || i > 1 ? T_B32 : T_PRED, false))
            return false;
    }
    return true;
}

/* bar.sync a[, b]   bar.red.HOW.TYPE d, a[, b], p */
static bool decode_bar(ptx_parser *p, ptx_decoding *d)
{
    const uint32_t red = d->ins.type != T_NONE, end = p->operand_count - red;

    if (p->operand_count < 1 + 2 * red || p->operand_count > 2 + 2 * red ||
        (d->ins.sub == SUB_ARRIVE && p->operand_count != 2))
        return ptx_wrong_count(p, d);
    if (memcmp(d->name.text, "bar.", 4) == 0)
        d->ins.flags |= F_ALIGNED;
    if (red != 0 && !ptx_add_dest(p, d, &p->operands[0], (ptx_type)d->ins.type, false))
        return false;
    for (uint32_t i = red; i < end; i++) {
        if (!ptx_add_source(p, d, &p->operands[i], T_B32, false))
            return false;
    }
    return red == 0 || ptx_add_source(p, d, &p->operands[end], T_PRED, false);
}

static bool decode_branch(ptx_parser *p, ptx_decoding *d)
{
    const bool indexed = d->ins.op == OP_BRX;
    const ptx_operand *to = &p->operands[indexed ? 1 : 0];

    if (p->operand_count != (indexed ? 2 : 1))
        return ptx_wrong_count(p, d);
    if (to->kind != 'a' || to->atoms->kind != 'n')
        return refuse(p, d, "no label");
    p->fixups = ptx_grow(p->fixups, p->fixup_count, &p->fixup_capacity, sizeof *p->fixups);
    p->fixups[p->fixup_count++] =
        (ptx_fixup){ ptx_copy(to->atoms->name, to->atoms->length), d->ins.line, p->module->code_count, NO_SLOT, 0 };
    return !indexed || ptx_add_source(p, d, &p->operands[0], T_B32, false);
}

/* call [(RESULT),] NAME[, (PARAM, …)] */
static bool decode_call(ptx_parser *p, ptx_decoding *d)
{
    ptx_module *m = p->module;
    ptx_function *f = p->function;
    const uint32_t result = p->operands[0].kind == '(' ? 1 : 0;
    const ptx_operand *name = &p->operands[result], *list = &p->operands[result + 1];
    uint32_t callee = 0;

    if (p->operand_count < result + 1 || p->operand_count > result + 2 || name->kind != 'a' ||
        name->atoms->kind != 'n' || (p->operand_count == result + 2 && list->kind != '('))
        return refuse(p, d, "no call of a function by its name");
    while (callee < m->function_count &&
           (m->functions[callee].entry || strlen(m->functions[callee].name) != name->atoms->length ||
            memcmp(m->functions[callee].name, name->atoms->name, name->atoms->length) != 0))
        callee++;
    if (callee == m->function_count)
        return ptx_bad(p, d->ins.line, "no function %.*s", (int)name->atoms->length, name->atoms->name);
    const ptx_function *to = &m->functions[callee];
    const uint32_t count = p->operand_count == result + 2 ? list->count : 0;
    bool fits = count == to->param_count && (result != 0 ? p->operands[0].count : 0) == (to->result_bytes != 0);
    for (uint32_t i = 0; fits && i < count + result; i++) {
        const ptx_atom *a = i < count ? &list->atoms[i] : p->operands[0].atoms;
        fits = a->kind == 'v' && a->fill == FILL_CALL_PARAM &&
               a->bytes == (i < count ? to->params[i].bytes : to->result_bytes);
    }
    if (!fits)
        return ptx_bad(p, d->ins.line, "parameters that are not those of %s", to->name);
    m->calls = ptx_grow(m->calls, m->call_count, &m->call_capacity, sizeof *m->calls);
    ptx_call *call = &m->calls[m->call_count];
    *call = (ptx_call){ callee, count, calloc(count + 1, sizeof(uint32_t)), NO_SLOT };
    for (uint32_t i = 0; i < count; i++)
        call->from[i] = (uint32_t)list->atoms[i].value;
    if (result != 0)
        call->result = (uint32_t)p->operands[0].atoms->value;
    d->ins.target = m->call_count++;
    f->calls = ptx_grow(f->calls, f->call_count, &f->call_capacity, sizeof *f->calls);
    f->calls[f->call_count++] = callee;
    return true;
}

static bool decode_operands(ptx_parser *p, ptx_decoding *d)
{
    if (d->row->form[0] != '\0')
        return ptx_decode_form(p, d);
    switch (d->ins.op) {
    case OP_MOV: return decode_mov(p, d);
    case OP_LD:
    case OP_ST: return decode_memory(p, d);
    case OP_CVT: return decode_cvt(p, d);
    case OP_SETP:
    case OP_SET: return decode_compare(p, d);
    case OP_SLCT: return decode_slct(p, d);
    case OP_SHFL:
    case OP_VOTE: return decode_warp(p, d);
    case OP_BAR: return decode_bar(p, d);
    case OP_BRA:
    case OP_BRX: return decode_branch(p, d);
    case OP_CALL: return decode_call(p, d);
    default: return p->operand_count == 0 || ptx_wrong_count(p, d);
    }
}

static bool read_guard(ptx_parser *p, ptx_decoding *d)
{
    uint32_t index;

    d->ins.guard = NO_SLOT;
    if (!ptx_is(p, "@"))
        return true;
    if (!ptx_next(p))
        return false;
    if (ptx_is(p, "!")) {
        d->ins.guard_not = true;
        if (!ptx_next(p))
            return false;
    }
    const ptx_symbol *s = ptx_symbol_of(p, p->token.text, p->token.length, &index);
    if (s == NULL || s->fill != FILL_NOTHING || s->size != 0)
        return ptx_bad(p, p->token.line, "'%.*s' is no predicate", SAY(p->token));
    d->ins.guard = s->base + index;
    return ptx_next(p);
}

bool ptx_instruction(ptx_parser *p)
{
    ptx_module *m = p->module;
    ptx_decoding d = { 0 };

    p->operand_count = p->atom_count = 0;
    if (!read_guard(p, &d))
        return false;
    d.name = p->token;
    d.ins.line = p->token.line;
    while (p->token.text[-(ptrdiff_t)d.ins.column - 1] != '\n') /* the header stands before */
        d.ins.column++;
    d.ins.function = (uint32_t)(p->function - m->functions);
    if (p->token.kind != TOKEN_WORD)
        return ptx_bad(p, p->token.line, "'%.*s' instead of an instruction", SAY(p->token));
    if (!ptx_decode_words(p, &d) || !ptx_next(p))
        return false;
    while (!ptx_is(p, ";")) {
        if (p->operand_count != 0 && !ptx_take(p, ","))
            return false;
        if (!read_operand(p))
            return false;
    }
    if (!decode_operands(p, &d))
        return false;
    m->code = ptx_grow(m->code, m->code_count, &m->code_capacity, sizeof *m->code);
    m->code[m->code_count++] = d.ins;
    return ptx_next(p);
}
