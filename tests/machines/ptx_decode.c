/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_decode.c - decodes PTX instructions.  A row of a table says which types, modifiers and operands an operation has;
 * an operation that differs from the rows' form has a function. */
#include <stdlib.h>
#include <string.h>

#include "tests/machines/ptx_parser.h"

#define BIT(t) (1u << (t))
enum {
    I16 = BIT(T_U16) | BIT(T_S16),
    I32 = BIT(T_U32) | BIT(T_S32),
    I64 = BIT(T_U64) | BIT(T_S64),
    INTS = I16 | I32 | I64,
    PAIRS = BIT(T_U16X2) | BIT(T_S16X2),
    BITS = BIT(T_B16) | BIT(T_B32) | BIT(T_B64),
    WORDS = BIT(T_B32) | BIT(T_B64),
    SINGLES = BIT(T_F32) | BIT(T_F64),
    HALVES = BIT(T_F16) | BIT(T_F16X2),
    FLOATS = SINGLES | HALVES,
    ANY = INTS | BITS | SINGLES,
    LOGIC = BITS | BIT(T_PRED),
    MEMORY = ANY | BIT(T_B8) | BIT(T_U8) | BIT(T_S8) | BIT(T_B128)
};

/* form, one letter per operand: d destination and a source of the type, o such a source that is optional, W and w the
 * same for .wide at twice the width, m a source of the second type if there is one, D destination and u source of 32
 * bits, p predicate; empty: a function of its own. */
static const ptx_row rows[] = {
    { "add", OP_ADD, 0, "dma", INTS | PAIRS | FLOATS | BIT(T_F32X2), F_RN | F_CC, 0 },
    { "sub", OP_SUB, 0, "dma", INTS | FLOATS | BIT(T_F32X2), F_RN | F_CC, 0 },
    { "addc", OP_ADDC, 0, "daa", I32 | I64, F_CC, 0 },
    { "subc", OP_SUBC, 0, "daa", I32 | I64, F_CC, 0 },
    { "mul", OP_MUL, 0, "Waa", INTS | FLOATS | BIT(T_F32X2), F_RN | F_LO | F_HI | F_WIDE, 0 },
    { "mad", OP_MAD, 0, "Waaw", INTS, F_LO | F_HI | F_WIDE, 0 },
    { "fma", OP_FMA, 0, "dmma", FLOATS | BIT(T_F32X2), F_RN, F_RN },
    { "div", OP_DIV, 0, "daa", INTS | SINGLES, F_RN, 0 },
    { "rem", OP_REM, 0, "daa", INTS, 0, 0 },
    { "min", OP_MIN, 0, "daao", INTS | PAIRS | FLOATS, F_NAN, 0 },
    { "max", OP_MAX, 0, "daao", INTS | PAIRS | FLOATS, F_NAN, 0 },
    { "neg", OP_NEG, 0, "da", BIT(T_S16) | BIT(T_S32) | BIT(T_S64) | FLOATS, 0, 0 },
    { "abs", OP_ABS, 0, "da", BIT(T_S16) | BIT(T_S32) | BIT(T_S64) | FLOATS, 0, 0 },
    { "sqrt", OP_SQRT, 0, "da", SINGLES, F_RN, F_RN },
    { "rcp", OP_RCP, 0, "da", SINGLES, F_RN, F_RN },
    { "copysign", OP_COPYSIGN, 0, "daa", SINGLES, 0, 0 },
    { "testp", OP_TESTP, 0, "Pa", SINGLES, 0, 0 },
    { "and", OP_AND, 0, "daa", LOGIC, 0, 0 },
    { "or", OP_OR, 0, "daa", LOGIC, 0, 0 },
    { "xor", OP_XOR, 0, "daa", LOGIC, 0, 0 },
    { "not", OP_NOT, 0, "da", LOGIC, 0, 0 },
    { "shl", OP_SHL, 0, "dau", BITS, 0, 0 },
    { "shr", OP_SHR, 0, "dau", BITS | INTS, 0, 0 },
    { "shf", OP_SHF, 0, "daau", BIT(T_B32), F_LEFT | F_RIGHT | F_CLAMP | F_WRAP, 0 },
    { "popc", OP_POPC, 0, "Da", WORDS, 0, 0 },
    { "clz", OP_CLZ, 0, "Da", WORDS, 0, 0 },
    { "brev", OP_BREV, 0, "da", WORDS, 0, 0 },
    { "bfe", OP_BFE, 0, "dauu", I32 | I64, 0, 0 },
    { "bfi", OP_BFI, 0, "daauu", WORDS, 0, 0 },
    { "prmt", OP_PRMT, 0, "daaa", BIT(T_B32), 0, 0 },
    { "lop3", OP_LOP3, 0, "daaau", BIT(T_B32), 0, 0 },
    { "selp", OP_SELP, 0, "daap", ANY, 0, 0 },
    { "setp", OP_SETP, 0, "", ANY | HALVES, 0, 0 },
    { "set", OP_SET, 0, "", 0, 0, 0 },
    { "slct", OP_SLCT, 0, "", 0, 0, 0 },
    { "cvt", OP_CVT, 0, "", 0, F_ROUND | F_INTEGRAL | F_SAT, 0 },
    { "cvta", OP_CVTA, 0, "da", BIT(T_U64), F_TO, 0 },
    { "mov", OP_MOV, 0, "", ANY | BIT(T_PRED) | BIT(T_B128) | BIT(T_F16), 0, 0 },
    { "ld", OP_LD, 0, "", MEMORY, F_NC, 0 },
    { "st", OP_ST, 0, "", MEMORY, 0, 0 },
    { "bra", OP_BRA, 0, "", 0, F_UNI, 0 },
    { "brx.idx", OP_BRX, 0, "", 0, F_UNI, 0 },
    { "call", OP_CALL, 0, "", 0, F_UNI, 0 },
    { "ret", OP_RET, 0, "", 0, F_UNI, 0 },
    { "exit", OP_EXIT, 0, "", 0, 0, 0 },
    { "trap", OP_TRAP, 0, "", 0, 0, 0 },
    { "activemask", OP_ACTIVEMASK, 0, "d", BIT(T_B32), 0, 0 },
    { "shfl.sync", OP_SHFL, 0, "", BIT(T_B32), 0, 0 },
    { "vote.sync", OP_VOTE, 0, "", BIT(T_PRED) | BIT(T_B32), 0, 0 },
    { "redux.sync", OP_REDUX, 0, "dau", BIT(T_U32) | BIT(T_S32) | BIT(T_B32), 0, 0 },
    { "bar.warp.sync", OP_WARPSYNC, 0, "u", 0, 0, 0 },
    { "bar.sync", OP_BAR, SUB_SYNC, "", 0, 0, 0 },
    { "bar.cta.sync", OP_BAR, SUB_SYNC, "", 0, 0, 0 },
    { "barrier.sync", OP_BAR, SUB_SYNC, "", 0, F_ALIGNED, 0 },
    { "barrier.cta.sync", OP_BAR, SUB_SYNC, "", 0, F_ALIGNED, 0 },
    { "bar.arrive", OP_BAR, SUB_ARRIVE, "", 0, 0, 0 },
    { "bar.cta.arrive", OP_BAR, SUB_ARRIVE, "", 0, 0, 0 },
    { "barrier.arrive", OP_BAR, SUB_ARRIVE, "", 0, F_ALIGNED, 0 },
    { "barrier.cta.arrive", OP_BAR, SUB_ARRIVE, "", 0, F_ALIGNED, 0 },
    { "bar.red", OP_BAR, 0, "", BIT(T_U32) | BIT(T_PRED), 0, 0 },
    { "bar.cta.red", OP_BAR, 0, "", BIT(T_U32) | BIT(T_PRED), 0, 0 },
    { "barrier.red", OP_BAR, 0, "", BIT(T_U32) | BIT(T_PRED), F_ALIGNED, 0 },
    { "barrier.cta.red", OP_BAR, 0, "", BIT(T_U32) | BIT(T_PRED), F_ALIGNED, 0 },
    { "membar", OP_NOTHING, 0, "", 0, 0, 0 },
    { "fence", OP_NOTHING, 0, "", 0, 0, 0 },
};

typedef struct word {
    const char *name;
    uint32_t value;
} word;
static const word flag_words[] = {
    { "rn", F_RN },   { "rz", F_RZ },           { "rm", F_RM },       { "rp", F_RP },     { "rni", F_RNI },
    { "rzi", F_RZI }, { "rmi", F_RMI },         { "rpi", F_RPI },     { "sat", F_SAT },   { "lo", F_LO },
    { "hi", F_HI },   { "wide", F_WIDE },       { "NaN", F_NAN },     { "uni", F_UNI },   { "cc", F_CC },
    { "l", F_LEFT },  { "r", F_RIGHT },         { "clamp", F_CLAMP }, { "wrap", F_WRAP }, { "nc", F_NC },
    { "to", F_TO },   { "aligned", F_ALIGNED },
};
static const char *const compare_words[C_COUNT] = { "eq", "ne",  "lt",  "le",  "gt",  "ge",  "lo",  "ls",  "hi",
                                                    "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan" };
static const word space_words[] = { { "global", SPACE_GLOBAL },      { "shared", SPACE_SHARED },
                                    { "shared::cta", SPACE_SHARED }, { "local", SPACE_LOCAL },
                                    { "const", SPACE_CONST },        { "param", SPACE_PARAM },
                                    { "param::func", SPACE_PARAM },  { "param::entry", SPACE_PARAM } };
/* Words that matter to caches and weak memory only, and are ignored here. */
static const char *const idle_words[] = { "weak",
                                          "volatile",
                                          "relaxed",
                                          "acquire",
                                          "release",
                                          "cta",
                                          "gpu",
                                          "sys",
                                          "ca",
                                          "cg",
                                          "cs",
                                          "lu",
                                          "cv",
                                          "wb",
                                          "wt",
                                          "L1::evict_first",
                                          "L1::evict_last",
                                          "L1::no_allocate",
                                          "L1::evict_normal",
                                          "L1::evict_unchanged",
                                          "L2::64B",
                                          "L2::128B",
                                          "L2::256B" };
static const char *const fence_words[] = { "sc", "acq_rel", "cta", "gpu", "gl", "sys" };
typedef struct sub_word {
    uint8_t op, sub;
    const char *name;
} sub_word;
static const sub_word sub_words[] = {
    { OP_SHFL, SUB_UP, "up" },          { OP_SHFL, SUB_DOWN, "down" },
    { OP_SHFL, SUB_BFLY, "bfly" },      { OP_SHFL, SUB_IDX, "idx" },
    { OP_VOTE, SUB_ALL, "all" },        { OP_VOTE, SUB_ANY, "any" },
    { OP_VOTE, SUB_VOTE_UNI, "uni" },   { OP_VOTE, SUB_BALLOT, "ballot" },
    { OP_BAR, SUB_POPC, "popc" },       { OP_BAR, SUB_AND, "and" },
    { OP_BAR, SUB_OR, "or" },           { OP_REDUX, SUB_ADD, "add" },
    { OP_REDUX, SUB_MIN, "min" },       { OP_REDUX, SUB_MAX, "max" },
    { OP_REDUX, SUB_AND, "and" },       { OP_REDUX, SUB_OR, "or" },
    { OP_REDUX, SUB_XOR, "xor" },       { OP_SETP, SUB_AND, "and" },
    { OP_SETP, SUB_OR, "or" },          { OP_SETP, SUB_XOR, "xor" },
    { OP_TESTP, SUB_FINITE, "finite" }, { OP_TESTP, SUB_INFINITE, "infinite" },
    { OP_TESTP, SUB_NUMBER, "number" }, { OP_TESTP, SUB_NOTANUMBER, "notanumber" },
    { OP_TESTP, SUB_NORMAL, "normal" }, { OP_TESTP, SUB_SUBNORMAL, "subnormal" },
};
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* --- the operation's words --------------------------------------------------------------------------------------- */
static bool is_one_of(const char *const *words, size_t count, const char *text, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0)
            return true;
    }
    return false;
}

static const word *word_of(const word *words, size_t count, const char *text, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i].name) == length && memcmp(words[i].name, text, length) == 0)
            return &words[i];
    }
    return NULL;
}

static bool take_compare(ptx_decoding *d, const char *text, size_t length)
{
    for (uint32_t i = 0; i < C_COUNT; i++) {
        if (strlen(compare_words[i]) == length && memcmp(compare_words[i], text, length) == 0) {
            d->ins.compare = (uint8_t)i;
            return d->compared = true;
        }
    }
    return false;
}

static bool take_sub(ptx_decoding *d, const char *text, size_t length)
{
    for (size_t i = 0; i < COUNT(sub_words); i++) {
        const sub_word *s = &sub_words[i];
        if (s->op == d->row->op && strlen(s->name) == length && memcmp(s->name, text, length) == 0 &&
            d->ins.sub == SUB_NONE) {
            d->ins.sub = s->sub;
            return true;
        }
    }
    return false;
}

static bool take_memory_word(ptx_decoding *d, const char *text, size_t length)
{
    const word *space = d->spaced ? NULL : word_of(space_words, COUNT(space_words), text, length);

    if (space != NULL) {
        d->ins.space = (uint8_t)space->value;
        return d->spaced = true;
    }
    if (d->row->op == OP_CVTA)
        return false;
    if (length == 2 && text[0] == 'v' && (text[1] == '2' || text[1] == '4' || text[1] == '8') && d->ins.vector == 1) {
        d->ins.vector = (uint8_t)(text[1] - '0');
        return true;
    }
    return is_one_of(idle_words, COUNT(idle_words), text, length);
}

static bool take_word(ptx_decoding *d, const char *text, size_t length)
{
    const ptx_row *r = d->row;
    const word *flag = word_of(flag_words, COUNT(flag_words), text, length);
    const uint32_t fits = d->type_count == 0 ? r->types : 0;
    ptx_type type = T_NONE;

    if (ptx_type_of(text, length, &type) &&
        (d->type_count < 2 && (r->op == OP_CVT || r->op == OP_SET || r->op == OP_SLCT) ? true
                                                                                       : (fits >> type & 1) != 0)) {
        d->types[d->type_count++] = type;
        return true;
    }
    if (type == T_F16 && d->type_count == 1 && d->types[0] == T_F32 && strchr(r->form, 'm') != NULL) {
        d->types[d->type_count++] = type; /* sum of a half and a float */
        return true;
    }
    if ((r->op == OP_SETP || r->op == OP_SET) && !d->compared && take_compare(d, text, length))
        return true;
    if (take_sub(d, text, length))
        return true;
    if (flag != NULL && (flag->value & r->words) != 0 && (flag->value & d->ins.flags) == 0) {
        d->ins.flags |= flag->value;
        return true;
    }
    if (r->op == OP_LD || r->op == OP_ST || r->op == OP_CVTA)
        return take_memory_word(d, text, length);
    return r->op == OP_NOTHING && is_one_of(fence_words, COUNT(fence_words), text, length);
}

static const ptx_row *row_of(const ptx_token *t)
{
    const ptx_row *best = NULL;

    for (size_t i = 0; i < COUNT(rows); i++) {
        const size_t length = strlen(rows[i].name);
        if (length <= t->length && memcmp(rows[i].name, t->text, length) == 0 &&
            (length == t->length || t->text[length] == '.') && (best == NULL || length > strlen(best->name)))
            best = &rows[i];
    }
    return best;
}

static bool one_of(uint32_t flags, uint32_t set)
{
    return is_power_of_two(flags & set);
}

/* Checks what the row does not say about modifiers. */
static bool check_words(ptx_parser *p, const ptx_decoding *d)
{
    const ptx_ins *i = &d->ins;
    const ptx_type_info type = ptx_types[i->type];
    const bool floats = type.kind == 'f' || i->type == T_F16X2 || i->type == T_F32X2;
    bool good = true;

    switch (i->op) {
    case OP_ADD:
    case OP_SUB: /* without .rn it may become part of an fma */
        if (floats && (i->flags & F_RN) == 0)
            return ptx_bad(p, i->line, "'%.*s' without .rn may be contracted", SAY(d->name));
        good = floats
                   ? i->flags == F_RN
                   : (i->flags & F_RN) == 0 && (i->flags == 0 || type.size >= 4) && (type.kind != 'x' || i->flags == 0);
        break;
    case OP_MUL:
        if (floats && (i->flags & F_RN) == 0)
            return ptx_bad(p, i->line, "'%.*s' without .rn may be contracted", SAY(d->name));
        good = floats ? i->flags == F_RN
                      : (i->flags & F_RN) == 0 && one_of(i->flags, F_LO | F_HI | F_WIDE) &&
                            ((i->flags & F_WIDE) == 0 || type.size < 8);
        break;
    case OP_MAD: good = one_of(i->flags, F_LO | F_HI | F_WIDE) && ((i->flags & F_WIDE) == 0 || type.size < 8); break;
    case OP_DIV: good = floats == ((i->flags & F_RN) != 0); break;
    case OP_MIN:
    case OP_MAX: good = i->flags == 0 || (floats && i->type != T_F64); break;
    case OP_SHF: good = one_of(i->flags, F_LEFT | F_RIGHT) && one_of(i->flags, F_CLAMP | F_WRAP); break;
    case OP_TESTP:
    case OP_SHFL: good = i->sub != SUB_NONE; break;
    case OP_REDUX: good = i->sub >= SUB_AND ? i->type == T_B32 : i->sub != SUB_NONE && i->type != T_B32; break;
    case OP_BAR: good = i->sub != SUB_NONE && (i->type == T_NONE || (i->sub == SUB_POPC) == (i->type == T_U32)); break;
    case OP_VOTE: good = i->sub != SUB_NONE && (i->sub == SUB_BALLOT) == (i->type == T_B32); break;
    case OP_CVTA: good = d->spaced; break;
    case OP_LD:
    case OP_ST:
        good = type.size * i->vector <= 32 && (type.size < 16 || i->vector == 1) &&
               (i->op == OP_LD || i->space != SPACE_CONST) && ((i->flags & F_NC) == 0 || i->space == SPACE_GLOBAL);
        break;
    default: break;
    }
    return good || ptx_bad(p, i->line, "'%.*s': modifiers that do not go together", SAY(d->name));
}

bool ptx_decode_words(ptx_parser *p, ptx_decoding *d)
{
    const ptx_token t = d->name;
    const char *c, *end = t.text + t.length;

    d->row = row_of(&t);
    if (d->row == NULL)
        return ptx_bad(p, t.line, "unknown instruction '%.*s'", SAY(t));
    d->ins.op = d->row->op;
    d->ins.sub = d->row->sub;
    d->ins.vector = 1;
    for (c = t.text + strlen(d->row->name); c < end;) {
        const char *from = ++c; /* behind the dot */
        while (c < end && *c != '.')
            c++;
        if (!take_word(d, from, (size_t)(c - from)))
            return ptx_bad(p, t.line, "'.%.*s' of '%.*s' is not known here", (int)(c - from), from, SAY(t));
    }
    d->ins.type = (uint8_t)d->types[0];
    d->ins.type2 = (uint8_t)d->types[1];
    if (d->type_count == 0 && d->row->types != 0)
        return ptx_bad(p, t.line, "'%.*s' has no type", SAY(t));
    if ((d->ins.flags & d->row->need) != d->row->need)
        return ptx_bad(p, t.line, "'%.*s' without .rn", SAY(t));
    return check_words(p, d);
}

/* --- operands in use --------------------------------------------------------------------------------------------- */
static bool number_fits(const ptx_atom *a, ptx_type type)
{
    const ptx_type_info t = ptx_types[type];
    const uint32_t bits = 8u * t.size;

    if (a->number != 'i')
        return t.size == (a->number == 'f' ? 4 : 8) && t.kind != 'u' && t.kind != 's';
    if (t.kind == 'f' && t.size > 2)
        return false;
    return bits >= 64 || a->value >> bits == 0 || (int64_t)a->value >> (bits - 1) == -1;
}

/* The slot of a source of type; larger: a wider register is accepted. */
static bool use(ptx_parser *p, const ptx_decoding *d, const ptx_operand *o, ptx_type type, bool larger, uint32_t *out)
{
    const ptx_atom *a = o->atoms;
    const uint8_t size = ptx_types[type].size;

    if (o->kind == 'a' && (a->kind == 'r' || a->kind == 's')) {
        *out = a->kind == 'r' ? a->slot : ptx_constant(p->function, a->fill, a->which, a->size, 0);
        const bool predicate = a->size == 0 || type == T_PRED;
        if (predicate ? a->size == 0 && type == T_PRED : larger ? a->size >= size && a->size <= 8 : a->size == size)
            return true;
        return ptx_bad(p, d->ins.line, "'%.*s': a register of %u bits for .%s", SAY(d->name), a->size * 8u,
                       ptx_types[type].name);
    }
    if (o->kind == 'a' && a->kind == 'i' && type != T_PRED && size <= 8 && number_fits(a, type)) {
        const uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size) - 1;
        *out = ptx_constant(p->function, FILL_VALUE, 0, 8, a->value & mask);
        return true;
    }
    if (o->kind == 'a' && a->kind == 'i' && type == T_PRED && a->number == 'i' &&
        a->value + 1 <= 2) { /* -1 is true too */
        *out = ptx_constant(p->function, FILL_VALUE, 0, 8, a->value != 0);
        return true;
    }
    if (o->kind == 'a' && a->kind == 'v' && size == 8) {
        *out = ptx_constant(p->function, a->fill, 0, 8, a->value);
        return true;
    }
    return ptx_bad(p, d->ins.line, "'%.*s': an operand that is no .%s", SAY(d->name), ptx_types[type].name);
}

bool ptx_add_source(ptx_parser *p, ptx_decoding *d, const ptx_operand *o, ptx_type type, bool larger)
{
    return use(p, d, o, type, larger, &d->ins.source[d->ins.source_count++]);
}

bool ptx_add_dest(ptx_parser *p, ptx_decoding *d, const ptx_operand *o, ptx_type type, bool larger)
{
    const ptx_atom *a = o->atoms;
    const uint8_t size = ptx_types[type].size;

    if (o->kind == 'a' && a->kind == '_') {
        d->ins.dest[d->ins.dest_count++] = SLOT_SINK;
        if (d->ins.dest_size == 0)
            d->ins.dest_size = size;
        return true;
    }
    if (o->kind != 'a' || a->kind != 'r')
        return ptx_bad(p, d->ins.line, "'%.*s': the result goes to no register", SAY(d->name));
    d->ins.dest[d->ins.dest_count++] = a->slot;
    d->ins.dest_size = a->size;
    const bool predicate = a->size == 0 || type == T_PRED;
    if (predicate ? a->size == 0 && type == T_PRED : larger ? a->size >= size && (a->size <= 8) : a->size == size)
        return true;
    return ptx_bad(p, d->ins.line, "'%.*s': a register of %u bits for .%s", SAY(d->name), a->size * 8u,
                   ptx_types[type].name);
}

static ptx_type wider(ptx_type type)
{
    static const ptx_type to[T_COUNT] = { [T_U16] = T_U32, [T_S16] = T_S32, [T_U32] = T_U64, [T_S32] = T_S64 };

    return to[type];
}

bool ptx_wrong_count(ptx_parser *p, const ptx_decoding *d)
{
    return ptx_bad(p, d->ins.line, "'%.*s' with %u operands", SAY(d->name), p->operand_count);
}

bool ptx_decode_form(ptx_parser *p, ptx_decoding *d)
{
    const ptx_type type = (ptx_type)d->ins.type, wide = (d->ins.flags & F_WIDE) != 0 ? wider(type) : type;
    const char *form = d->row->form;
    uint32_t i = 0;

    for (; *form != '\0'; form++, i++) {
        if (i == p->operand_count && *form == 'o')
            break;
        if (i == p->operand_count)
            return ptx_wrong_count(p, d);
        const ptx_operand *o = &p->operands[i];
        bool good;
        switch (*form) {
        case 'd': good = ptx_add_dest(p, d, o, type, false); break;
        case 'W': good = ptx_add_dest(p, d, o, wide, false); break;
        case 'D': good = ptx_add_dest(p, d, o, T_B32, false); break;
        case 'P': good = ptx_add_dest(p, d, o, T_PRED, false); break;
        case 'w': good = ptx_add_source(p, d, o, wide, false); break;
        case 'u': good = ptx_add_source(p, d, o, T_B32, false); break;
        case 'm': good = ptx_add_source(p, d, o, d->types[1] == T_NONE ? type : d->types[1], false); break;
        case 'p': good = ptx_add_source(p, d, o, T_PRED, false); break;
        default: good = ptx_add_source(p, d, o, type, false); break;
        }
        if (!good)
            return false;
    }
    return i == p->operand_count || ptx_wrong_count(p, d);
}
