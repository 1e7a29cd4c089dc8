/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - between which numbers an element is, where it is no NaN.  Ends are those of exact arithmetic, moved
 * outward by more than its results are rounded. */
#include "ir/analysis/analysis.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 64, MOST_NODES = 512, MOST_BYTES = 1 << 16 /* of a constant */ };

typedef struct limits_walk {
    const ir_func *f;
    const ir_ref *defs;
    uint32_t nodes, depth;
} limits_walk;

static bool walk(limits_walk *w, ir_ref expr, ir_limits *out);

/* --- ends --------------------------------------------------------------------------------------------------------- */

static ir_limits between(double a, double b)
{
    return (ir_limits){ a < b ? a : b, a < b ? b : a };
}

static ir_limits around(ir_limits a, ir_limits b)
{
    return (ir_limits){ a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi };
}

static ir_limits product(ir_limits a, ir_limits b)
{
    return around(between(a.lo * b.lo, a.lo * b.hi), between(a.hi * b.lo, a.hi * b.hi));
}

/* All numbers of a type; false: of none of the types that are looked at. */
static bool of_type(ir_type type, ir_limits *out)
{
    const uint32_t bits = 8 * opjit_ir_type_size(type);
    if (!ir_is_integer(type) || bits > 32)
        return false;
    const double numbers = (double)((uint64_t)1 << bits);
    *out = ir_is_signed(type) ? (ir_limits){ -numbers / 2, numbers / 2 - 1 } : (ir_limits){ 0, numbers - 1 };
    return true;
}

/* What a result of that type is, if it is `exact` before it is rounded or wraps. */
static bool as_type(ir_type type, ir_limits exact, ir_limits *out)
{
    ir_limits all;
    if (of_type(type, &all)) {
        *out = exact.lo >= all.lo && exact.hi <= all.hi ? exact : all;
        return true;
    }
    const double part = type == IR_F16 ? 0x1p-9 : type == IR_F32 ? 0x1p-20 : 0x1p-40;
    const double most = type == IR_F16 ? 0x1p15 : type == IR_F32 ? 0x1p126 : 0x1p1000;
    const double size = fmax(fabs(exact.lo), fabs(exact.hi));
    *out = (ir_limits){ exact.lo - size * part, exact.hi + size * part };
    return ir_is_float(type) && size <= most; /* false of a NaN, too */
}

/* --- leaves ------------------------------------------------------------------------------------------------------- */

static bool of_bits(ir_type type, uint64_t bits, ir_limits *out)
{
    uint64_t wide = 0;
    double x = 0;
    if (!ir_is_element(type) || !opjit_ir_scalar(IR_CAST, IR_F64, type, &bits, &wide))
        return false;
    memcpy(&x, &wide, sizeof x);
    *out = (ir_limits){ x, x };
    return isfinite(x);
}

/* Of all elements of a constant whose bytes are known. */
static bool of_constant(const ir_tensor *t, ir_limits *out)
{
    const uint32_t size = opjit_ir_type_size(t->type);
    const uint8_t *data = t->data;
    if (data == NULL || t->bytes > MOST_BYTES || t->bytes < size)
        return false;
    for (uint64_t at = 0; at + size <= t->bytes; at += size) {
        uint64_t bits = 0;
        ir_limits one;
        memcpy(&bits, data + at, size);
        if (!of_bits(t->type, bits, &one))
            return false;
        *out = at == 0 ? one : around(*out, one);
    }
    return true;
}

static bool of_load(limits_walk *w, ir_ref expr, ir_limits *out)
{
    const ir_node *n = ir_at(w->f, expr);
    const uint32_t root = opjit_ir_root(w->f, n->ref);
    const ir_tensor *t = &w->f->tensors[root];
    const ir_ref def = w->defs[root];
    if (t->role == IR_CONSTANT && t->type == n->type && of_constant(t, out))
        return true;
    if (def != 0 && ir_at(w->f, def)->kind == 0 && t->type == n->type && walk(w, ir_operand(w->f, def, 0), out))
        return true;
    return of_type((ir_type)n->type, out);
}

/* --- operations --------------------------------------------------------------------------------------------------- */

static bool of_cast(ir_type type, bool known, ir_limits a, ir_limits *out)
{
    ir_limits all;
    if (!of_type(type, &all))
        return known && as_type(type, a, out);
    *out = known ? (ir_limits){ fmin(fmax(trunc(a.lo), all.lo), all.hi), fmin(fmax(trunc(a.hi), all.lo), all.hi) }
                 : all;
    return true;
}

/* From the operands' limits. */
static bool of_op(const ir_node *n, const ir_limits *a, ir_limits *out)
{
    ir_limits x;
    switch ((ir_op)n->op) {
    case IR_ADD: x = (ir_limits){ a[0].lo + a[1].lo, a[0].hi + a[1].hi }; break;
    case IR_SUB: x = (ir_limits){ a[0].lo - a[1].hi, a[0].hi - a[1].lo }; break;
    case IR_MUL: x = product(a[0], a[1]); break;
    case IR_FMA:
        x = product(a[0], a[1]);
        x = (ir_limits){ x.lo + a[2].lo, x.hi + a[2].hi };
        break;
    case IR_DIV:
        if (!ir_is_float((ir_type)n->type) || (a[1].lo <= 0 && a[1].hi >= 0))
            return false;
        x = product(a[0], between(1 / a[1].lo, 1 / a[1].hi));
        break;
    case IR_MIN: x = (ir_limits){ fmin(a[0].lo, a[1].lo), fmin(a[0].hi, a[1].hi) }; break;
    case IR_MAX: x = (ir_limits){ fmax(a[0].lo, a[1].lo), fmax(a[0].hi, a[1].hi) }; break;
    case IR_NEG: x = (ir_limits){ -a[0].hi, -a[0].lo }; break;
    case IR_ABS: x = (ir_limits){ 0, fmax(fabs(a[0].lo), fabs(a[0].hi)) }; break;
    case IR_RINT:
    case IR_FLOOR:
    case IR_CEIL:
    case IR_TRUNC: x = (ir_limits){ floor(a[0].lo), ceil(a[0].hi) }; break;
    case IR_EXP: x = (ir_limits){ exp(a[0].lo), exp(a[0].hi) }; break;
    case IR_TANH:
    case IR_ERF: x = (ir_limits){ -1, 1 }; break;
    case IR_SELECT: x = around(a[1], a[2]); break;
    default: return false;
    }
    return as_type((ir_type)n->type, x, out);
}

static bool walk(limits_walk *w, ir_ref expr, ir_limits *out)
{
    const ir_node *n = ir_at(w->f, expr);
    ir_limits a[3] = { { 0, 0 } };
    bool known = n->count <= 3;
    if (w->depth == MOST_DEPTH || w->nodes == MOST_NODES)
        return of_type((ir_type)n->type, out);
    if (n->op == IR_CONST)
        return of_bits((ir_type)n->type, n->imm, out);
    w->nodes++;
    w->depth++;
    bool is_known = false;
    if (n->op == IR_LOAD) {
        is_known = of_load(w, expr, out);
    } else {
        for (uint32_t i = n->op == IR_SELECT; i < n->count && known; i++)
            known = walk(w, ir_operand(w->f, expr, i), &a[i]);
        if (n->op == IR_CAST)
            is_known = of_cast((ir_type)n->type, known, a[0], out);
        else
            is_known = (known && of_op(n, a, out)) || of_type((ir_type)n->type, out);
    }
    w->depth--;
    return is_known;
}

bool opjit_ir_limits(const ir_func *f, const ir_ref *defs, ir_ref expr, ir_limits *out)
{
    limits_walk w = { .f = f, .defs = defs };
    return walk(&w, expr, out);
}
