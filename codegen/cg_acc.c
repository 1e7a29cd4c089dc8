/* cg_acc.c - accumulators: lanes by k modulo their number, blocks of 4096 k, folds by halves; the order of
 * ir/README.md, whatever the vector width.  They live in memory of the stack frame; where speed matters a pass makes
 * them registers. */
#include "codegen/cg.h"

enum {
    BLOCK_SHIFT = 12,
    MOST_LANES = 32,
    SHORTEST = 128, /* bits of a vector */
};

/* A value and, for arg kinds, where it is and whether it is one: by lane, or one of each. */
typedef struct entry {
    LLVMValueRef value, where, some;
} entry;

/* Those in memory: lanes 0 are one, taken in order without blocks; and one is what a thread of several has. */
static uint32_t lanes_of(const ir_node *acc, const cg_acc *a)
{
    return acc->imm && !a->apart ? (uint32_t)acc->imm : 1;
}

static bool is_arg(const ir_node *acc)
{
    return acc->kind >= IR_ARGMIN;
}

/* Whether fast selection has no vectors of the steps: comparisons. */
static bool chooses(const ir_node *acc, const cg_acc *a)
{
    return is_arg(acc) || ((acc->kind == IR_KMIN || acc->kind == IR_KMAX) && ir_is_float(a->type));
}

static uint32_t bits_of(const cg_acc *a)
{
    return 8 * opjit_ir_type_size(a->type);
}

static LLVMValueRef number(cg_func *f, uint32_t bits, uint64_t value)
{
    return opjit_cg_number(f, bits, 1, value);
}

/* Whether the warps of a team, which is a block, have each a part of the values. */
static bool in_block(const cg_func *f, const cg_acc *a)
{
    return a->apart && f->launch.team > MOST_LANES;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static LLVMValueRef step(cg_func *f, const ir_node *acc, LLVMValueRef a, LLVMValueRef b)
{
    static const uint8_t ops[] = { [IR_SUM] = IR_ADD, [IR_PROD] = IR_MUL, [IR_KMIN] = IR_MIN, [IR_KMAX] = IR_MAX };
    return opjit_cg_as_bits(f, opjit_cg_arith(f, (ir_op)ops[acc->kind], (ir_type)acc->type, (LLVMValueRef[]){ a, b }));
}

/* y where it replaces x: the first NaN wins, then the better value, then the first or the last of equal ones. */
static entry step_arg(cg_func *f, const ir_node *acc, ir_type type, entry x, entry y)
{
    const bool least = acc->kind == IR_ARGMIN || acc->kind == IR_ARGMIN_LAST;
    const bool first = acc->kind == IR_ARGMIN || acc->kind == IR_ARGMAX;
    LLVMValueRef before = LLVMBuildICmp(f->b, first ? LLVMIntSLT : LLVMIntSGT, y.where, x.where, "");
    LLVMValueRef equal = opjit_cg_compare(f, IR_EQ, type, x.value, y.value);
    LLVMValueRef better =
        least ? opjit_cg_compare(f, IR_LT, type, y.value, x.value) : opjit_cg_compare(f, IR_LT, type, x.value, y.value);
    LLVMValueRef wins = LLVMBuildSelect(f->b, equal, before, better, "");
    if (ir_is_float(type)) {
        LLVMValueRef x_nan = opjit_cg_compare(f, IR_NE, type, x.value, x.value);
        LLVMValueRef y_nan = opjit_cg_compare(f, IR_NE, type, y.value, y.value);
        LLVMValueRef sooner = LLVMBuildICmp(f->b, LLVMIntSLT, y.where, x.where, "");
        LLVMValueRef nan = LLVMBuildAnd(f->b, y_nan, LLVMBuildOr(f->b, LLVMBuildNot(f->b, x_nan, ""), sooner, ""), "");
        wins = LLVMBuildSelect(f->b, LLVMBuildOr(f->b, x_nan, y_nan, ""), nan, wins, "");
    }
    wins = LLVMBuildAnd(f->b, y.some, LLVMBuildOr(f->b, wins, LLVMBuildNot(f->b, x.some, ""), ""), "");
    return (entry){ LLVMBuildSelect(f->b, wins, opjit_cg_as_bits(f, y.value), opjit_cg_as_bits(f, x.value), ""),
                    LLVMBuildSelect(f->b, wins, y.where, x.where, ""), LLVMBuildOr(f->b, x.some, y.some, "") };
}

static entry combine(cg_func *f, const ir_node *acc, const cg_acc *a, entry x, entry y)
{
    if (is_arg(acc))
        return step_arg(f, acc, a->type, x, y);
    return (entry){ .value = step(f, acc, x.value, y.value) };
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static LLVMValueRef at_lane(cg_func *f, LLVMValueRef array, uint32_t bits, LLVMValueRef lane)
{
    return opjit_cg_offset(f, opjit_cg_int(f, bits, 1), array, lane);
}

static LLVMValueRef read_as(cg_func *f, LLVMTypeRef type, LLVMValueRef array, uint32_t bits, LLVMValueRef lane)
{
    LLVMValueRef v = LLVMBuildLoad2(f->b, type, at_lane(f, array, bits, lane), "");
    LLVMSetAlignment(v, bits / 8);
    return v;
}

static LLVMValueRef read(cg_func *f, LLVMValueRef array, uint32_t bits, uint32_t lanes, LLVMValueRef lane)
{
    return read_as(f, opjit_cg_int(f, bits, lanes), array, bits, lane);
}

/* Floats as such, which they are computed as. */
static LLVMValueRef as_held(cg_func *f, const cg_acc *a, LLVMValueRef v)
{
    return a->type == IR_F32 || a->type == IR_F64 ? opjit_cg_as_float(f, v) : v;
}

/* Floats as such; but for GPUs in the type that is stored, since what is one scalar becomes a register. */
static LLVMValueRef read_values(cg_func *f, const cg_acc *a, LLVMValueRef array, uint32_t lanes, LLVMValueRef lane)
{
    const bool real = !f->cpu->grid && (a->type == IR_F32 || a->type == IR_F64);
    return read_as(f, real ? opjit_cg_float(f, a->type, lanes) : opjit_cg_int(f, bits_of(a), lanes), array, bits_of(a),
                   lane);
}

static void write(cg_func *f, LLVMValueRef array, uint32_t bits, LLVMValueRef lane, LLVMValueRef value)
{
    LLVMSetAlignment(LLVMBuildStore(f->b, value, at_lane(f, array, bits, lane)), bits / 8);
}

static LLVMValueRef is_set(cg_func *f, LLVMValueRef bytes)
{
    return LLVMBuildICmp(f->b, LLVMIntNE, bytes, opjit_cg_number(f, 8, opjit_cg_lanes(bytes), 0), "");
}

/* `lanes` lanes from `lane` on. */
static entry read_lanes(cg_func *f, const ir_node *acc, const cg_acc *a, uint32_t lanes, LLVMValueRef lane)
{
    entry e = { .value = read_values(f, a, a->lane, lanes, lane) };
    if (is_arg(acc)) {
        e.where = read(f, a->where, 64, lanes, lane);
        e.some = is_set(f, read(f, a->some, 8, lanes, lane));
    }
    return e;
}

static void write_lanes(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef lane, entry e)
{
    write(f, a->lane, bits_of(a), lane, e.value);
    if (is_arg(acc)) {
        write(f, a->where, 64, lane, e.where);
        write(f, a->some, 8, lane, opjit_cg_resize(f, e.some, 8, false));
    }
}

/* Lanes of a vector of the machine's: a longer one takes long to compile. */
static uint32_t part_of(const cg_func *f, uint32_t bits, uint32_t lanes)
{
    const uint32_t most = 8 * f->target->vector_bytes / bits;
    return lanes < most || most == 0 ? lanes : most;
}

static void reset_array(cg_func *f, LLVMValueRef array, uint32_t bits, uint32_t lanes, uint64_t value)
{
    const uint32_t part = part_of(f, bits, lanes);
    for (uint32_t i = 0; i < lanes; i += part)
        write(f, array, bits, number(f, 64, i), opjit_cg_kept(f, opjit_cg_number(f, bits, part, value)));
}

static void reset_lanes(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    const uint32_t lanes = lanes_of(acc, a);
    reset_array(f, a->lane, bits_of(a), lanes, is_arg(acc) ? 0 : opjit_ir_identity(a->type, (ir_kind)acc->kind));
    if (is_arg(acc)) {
        reset_array(f, a->where, 64, lanes, 0);
        reset_array(f, a->some, 8, lanes, 0);
    }
}

static LLVMValueRef array(cg_func *f, uint32_t bits, uint32_t count)
{
    LLVMTypeRef type = opjit_cg_int(f, bits, 1);
    LLVMValueRef slot = opjit_cg_alloca(f, count > 1 ? LLVMArrayType2(type, count) : type);
    LLVMSetAlignment(slot, 64);
    return slot;
}

void opjit_cg_acc(cg_func *f, ir_ref statement)
{
    const ir_node *acc = ir_at(f->ir, statement);
    cg_acc *a = &f->accs[statement];
    LLVMValueRef zero = number(f, 64, 0);
    const uint32_t lanes = lanes_of(acc, a), bits = bits_of(a);
    *a = (cg_acc){ .type = a->type,
                   .blocked = a->blocked || in_block(f, a),
                   .own = a->own,
                   .apart = a->apart,
                   .lane = array(f, bits, lanes) };
    f->accumulates = true;
    if (is_arg(acc)) {
        a->where = array(f, 64, lanes);
        a->some = array(f, 8, lanes);
    }
    reset_lanes(f, acc, a);
    if (!a->blocked)
        return;
    a->block = array(f, 64, 1);
    a->total = array(f, bits, 1);
    a->total_some = array(f, 8, 1);
    a->total_where = array(f, 64, 1);
    write(f, a->block, 64, zero, zero);
    write(f, a->total, bits, zero, number(f, bits, 0));
    write(f, a->total_some, 8, zero, number(f, 8, 0));
    write(f, a->total_where, 64, zero, zero);
}

/* --- folds -------------------------------------------------------------------------------------------------------- */

static LLVMValueRef half_of(cg_func *f, LLVMValueRef v, uint32_t from, uint32_t count)
{
    if (!v)
        return NULL;
    if (count == 1)
        return opjit_cg_lane(f, v, from);
    return LLVMBuildShuffleVector(f->b, v, LLVMGetPoison(LLVMTypeOf(v)), opjit_cg_iota(f, 32, count, from, 1), "");
}

static entry half_entry(cg_func *f, entry e, uint32_t from, uint32_t count)
{
    return (entry){ half_of(f, e.value, from, count), half_of(f, e.where, from, count),
                    half_of(f, e.some, from, count) };
}

/* What another thread has. */
static entry entry_from(cg_func *f, entry e, LLVMValueRef lane)
{
    e.value = opjit_cg_from(f, e.value, lane);
    if (e.where) {
        e.where = opjit_cg_from(f, e.where, lane);
        e.some = is_set(f, opjit_cg_from(f, opjit_cg_resize(f, e.some, 8, false), lane));
    }
    return e;
}

/* Halves of a vector through memory: fast selection knows no shuffles, and what it doesn't know takes all of its block
 * along.  So the block ends here, too: what comes next is often a vector of the result. */
static entry fold_in_memory(cg_func *f, const ir_node *acc, const cg_acc *a, entry e)
{
    const uint32_t bits = bits_of(a);
    uint32_t half = opjit_cg_lanes(e.value) / 2;
    LLVMValueRef slot = array(f, bits, 2 * half);
    entry one[MOST_LANES];
    for (; half * bits >= SHORTEST; half /= 2) {
        write(f, slot, bits, number(f, 64, 0), as_held(f, a, e.value));
        e.value = combine(f, acc, a, (entry){ .value = read_values(f, a, slot, half, number(f, 64, 0)) },
                          (entry){ .value = read_values(f, a, slot, half, number(f, 64, half)) })
                      .value;
    }
    write(f, slot, bits, number(f, 64, 0), as_held(f, a, e.value));
    for (uint32_t i = 0; i < 2 * half; i++)
        one[i].value = read_values(f, a, slot, 1, number(f, 64, i));
    for (; half > 0; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            one[i].value =
                combine(f, acc, a, (entry){ .value = one[i].value }, (entry){ .value = one[i + half].value }).value;
    opjit_cg_next_block(f);
    return (entry){ .value = one[0].value };
}

/* By halves: lane l takes what lane l + half has. */
static entry fold_lanes(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    const uint32_t lanes = lanes_of(acc, a), part = part_of(f, bits_of(a), lanes), parts = lanes / part;
    entry e[MOST_LANES];
    for (uint32_t i = 0; i < parts; i++)
        e[i] = read_lanes(f, acc, a, part, number(f, 64, i * part));
    for (uint32_t half = parts / 2; half > 0; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            e[i] = combine(f, acc, a, e[i], e[i + half]);
    if (part > 1 && !f->peak && !is_arg(acc) && bits_of(a) >= 32)
        return fold_in_memory(f, acc, a, e[0]);
    for (uint32_t half = part / 2; half > 0; half /= 2)
        e[0] = combine(f, acc, a, half_entry(f, e[0], 0, half), half_entry(f, e[0], half, half));
    return e[0];
}

/* Lanes by halves, those that threads have each one of too. */
static entry fold_all_lanes(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    entry e = fold_lanes(f, acc, a);
    for (uint32_t half = a->apart ? (uint32_t)acc->imm / 2 : 0; half > 0; half /= 2)
        e = combine(f, acc, a, e, entry_from(f, e, opjit_cg_lane_after(f, half)));
    if (a->apart) /* what the first thread has is right */
        e = entry_from(f, e, number(f, 32, 0));
    return e;
}

/* Of the blocks before. */
static entry total_of(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef *out_some)
{
    LLVMValueRef zero = number(f, 64, 0);
    entry total = { .value = read_values(f, a, a->total, 1, zero) };
    *out_some = is_set(f, read(f, a->total_some, 8, 1, zero));
    if (is_arg(acc)) {
        total.where = read(f, a->total_where, 64, 1, zero);
        total.some = *out_some;
    }
    return total;
}

/* A block's value after those of the blocks before. */
static entry after_total(cg_func *f, const ir_node *acc, const cg_acc *a, entry e)
{
    LLVMValueRef some;
    const entry total = total_of(f, acc, a, &some);
    if (is_arg(acc))
        return combine(f, acc, a, total, e);
    return (entry){ .value = LLVMBuildSelect(f->b, some, step(f, acc, total.value, e.value),
                                             opjit_cg_as_bits(f, e.value), "") };
}

static void write_total(cg_func *f, const ir_node *acc, const cg_acc *a, entry e)
{
    LLVMValueRef zero = number(f, 64, 0);
    write(f, a->total, bits_of(a), zero, e.value);
    if (is_arg(acc))
        write(f, a->total_where, 64, zero, e.where);
    write(f, a->total_some, 8, zero, is_arg(acc) ? opjit_cg_resize(f, e.some, 8, false) : number(f, 8, 1));
}

/* Lanes, then the blocks before; where a team is a block they are all. */
static entry fold(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    if (!in_block(f, a)) {
        const entry e = fold_all_lanes(f, acc, a);
        return a->blocked ? after_total(f, acc, a, e) : e;
    }
    LLVMValueRef some;
    entry total = total_of(f, acc, a, &some);
    if (!is_arg(acc))
        total.value = LLVMBuildSelect(f->b, some, opjit_cg_as_bits(f, total.value),
                                      number(f, bits_of(a), opjit_ir_identity(a->type, (ir_kind)acc->kind)), "");
    return total;
}

/* When k enters another block: the lanes go into the total and start anew. */
static void enter_block(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef k)
{
    LLVMValueRef zero = number(f, 64, 0), block = LLVMBuildAShr(f->b, k, number(f, 64, BLOCK_SHIFT), "");
    LLVMValueRef other = LLVMBuildICmp(f->b, LLVMIntNE, block, read(f, a->block, 64, 1, zero), "");
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, other);
    write_total(f, acc, a, fold(f, acc, a));
    reset_lanes(f, acc, a);
    write(f, a->block, 64, zero, block);
    opjit_cg_if_end(f, after);
}

LLVMValueRef opjit_cg_acc_value(cg_func *f, ir_ref statement)
{
    const ir_node *acc = ir_at(f->ir, statement);
    const cg_acc *a = &f->accs[statement];
    if (a->held_count > 0) /* one lane: V10 */
        return a->held[0];
    const entry e = fold(f, acc, a);
    if (!is_arg(acc))
        return opjit_cg_as_bits(f, e.value);
    return acc->type == IR_INDEX ? e.where : opjit_cg_convert(f, IR_I64, (ir_type)acc->type, e.where);
}

/* --- updates ------------------------------------------------------------------------------------------------------ */

/* `e` goes into the lanes from k modulo lanes on. */
static void update(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef k, uint32_t width, entry e)
{
    if (a->blocked)
        enter_block(f, acc, a, k);
    LLVMValueRef lane = number(f, 64, lanes_of(acc, a) - 1);
    if (lanes_of(acc, a) > 1)
        lane = LLVMBuildAnd(f->b, k, lane, "");
    if (!f->peak && width > 1 && chooses(acc, a)) /* what the value was made of is another block, see below */
        opjit_cg_next_block(f);
    write_lanes(f, acc, a, lane, combine(f, acc, a, read_lanes(f, acc, a, width, lane), e));
}

/* --- in registers ------------------------------------------------------------------------------------------------- */

static uint32_t lanes_of_upd(const cg_func *f, ir_ref s)
{
    return lanes_of(ir_at(f->ir, ir_at(f->ir, s)->ref), &f->accs[ir_at(f->ir, s)->ref]);
}

/* The accumulator of an UPD that rounds of `size` iterations from a multiple of its lanes on can hold; else NULL. */
static cg_acc *holdable(cg_func *f, ir_ref s, uint32_t lanes, uint64_t size)
{
    const ir_node *n = ir_at(f->ir, s), *acc = n->op == IR_UPD ? ir_at(f->ir, n->ref) : NULL;
    if (!acc || is_arg(acc) || f->accs[n->ref].blocked || acc->imm < lanes || size % acc->imm != 0 ||
        acc->imm / lanes > CG_MAX_HELD)
        return NULL;
    return &f->accs[n->ref];
}

bool opjit_cg_can_hold(cg_func *f, ir_ref body, ir_ref lo, uint32_t lanes, uint64_t size)
{
    bool any = false, all = lanes > 1;
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_UPD)
            f->accs[ir_at(f->ir, s)->ref].held_count = 0;
    for (ir_ref s = body; all && s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = holdable(f, s, lanes, size);
        uint64_t rest;
        if (ir_at(f->ir, s)->op != IR_UPD)
            continue;
        any = true;
        all = a && a->held_count == 0 && opjit_cg_residue(f, lo, lanes_of_upd(f, s), &rest) && rest == 0;
        if (all)
            a->held_count = lanes_of_upd(f, s) / lanes;
    }
    for (ir_ref s = body; !all && s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_UPD)
            f->accs[ir_at(f->ir, s)->ref].held_count = 0;
    return any && all;
}

bool opjit_cg_can_hold_one(cg_func *f, ir_ref body)
{
    bool any = false;
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const ir_node *n = ir_at(f->ir, s), *acc = n->op == IR_UPD ? ir_at(f->ir, n->ref) : NULL;
        if (!acc || is_arg(acc) || f->accs[n->ref].blocked || lanes_of_upd(f, s) > 1 || f->cpu->grid)
            continue;
        f->accs[n->ref].held_count = 1;
        any = true;
    }
    return any;
}

/* The accumulator that the statement updates, if it is held; else NULL. */
static cg_acc *held_by(cg_func *f, ir_ref s)
{
    cg_acc *const a = ir_at(f->ir, s)->op == IR_UPD ? &f->accs[ir_at(f->ir, s)->ref] : NULL;
    return a && a->held_count > 0 ? a : NULL;
}

static uint32_t held_lanes(const cg_func *f, ir_ref s, const cg_acc *a)
{
    return lanes_of_upd(f, s) / a->held_count;
}

void opjit_cg_hold_load(cg_func *f, ir_ref body)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = held_by(f, s);
        for (uint32_t i = 0; a && i < a->held_count; i++)
            a->held[i] =
                as_held(f, a, read_values(f, a, a->lane, held_lanes(f, s, a), number(f, 64, i * held_lanes(f, s, a))));
    }
}

void opjit_cg_hold_begin(cg_func *f, ir_ref body, LLVMBasicBlockRef before)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = held_by(f, s);
        for (uint32_t i = 0; a && i < a->held_count; i++) {
            a->phis[i] = LLVMBuildPhi(f->b, LLVMTypeOf(a->held[i]), "");
            LLVMAddIncoming(a->phis[i], &a->held[i], &before, 1);
            a->held[i] = a->phis[i];
        }
    }
}

void opjit_cg_hold_next(cg_func *f, ir_ref body)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b);
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = held_by(f, s);
        for (uint32_t i = 0; a && i < a->held_count; i++)
            LLVMAddIncoming(a->phis[i], &a->held[i], &latch, 1);
    }
}

void opjit_cg_hold_store(cg_func *f, ir_ref body)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = held_by(f, s);
        for (uint32_t i = 0; a && i < a->held_count; i++)
            write(f, a->lane, bits_of(a), number(f, 64, i * held_lanes(f, s, a)), a->held[i]);
        if (a)
            a->held_count = 0;
    }
}

/* --- a lane a thread ---------------------------------------------------------------------------------------------- */

static entry held_entry(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    entry e = { .value = a->held[0] };
    if (is_arg(acc)) {
        e.where = a->held[1];
        e.some = is_set(f, a->held[2]);
    }
    return e;
}

static void hold_entry(cg_func *f, const ir_node *acc, cg_acc *a, entry e)
{
    a->held[0] = e.value;
    if (is_arg(acc)) {
        a->held[1] = e.where;
        a->held[2] = opjit_cg_resize(f, e.some, 8, false);
    }
}

static void update_apart(cg_func *f, const ir_node *acc, cg_acc *a, entry e)
{
    hold_entry(f, acc, a, combine(f, acc, a, held_entry(f, acc, a), e));
}

/* The accumulator of statement s, if threads have its lanes and no statement of the body before s updates it; else
 * NULL. */
static cg_acc *apart_of(const cg_func *f, ir_ref body, ir_ref s)
{
    const ir_node *n = ir_at(f->ir, s);
    if (n->op != IR_UPD || !f->accs[n->ref].apart)
        return NULL;
    for (ir_ref r = body; r != s; r = ir_at(f->ir, r)->next)
        if (ir_at(f->ir, r)->op == IR_UPD && ir_at(f->ir, r)->ref == n->ref)
            return NULL;
    return &f->accs[n->ref];
}

static uint32_t parts_of(const cg_func *f, ir_ref s)
{
    return is_arg(ir_at(f->ir, ir_at(f->ir, s)->ref)) ? 3 : 1;
}

void opjit_cg_apart_load(cg_func *f, ir_ref body)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = apart_of(f, body, s);
        const ir_node *acc = ir_at(f->ir, ir_at(f->ir, s)->ref);
        if (a)
            hold_entry(f, acc, a, read_lanes(f, acc, a, 1, number(f, 64, 0)));
    }
}

void opjit_cg_apart_begin(cg_func *f, ir_ref body, LLVMBasicBlockRef before)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = apart_of(f, body, s);
        for (uint32_t i = 0; a && i < parts_of(f, s); i++) {
            a->phis[i] = LLVMBuildPhi(f->b, LLVMTypeOf(a->held[i]), "");
            LLVMAddIncoming(a->phis[i], &a->held[i], &before, 1);
            a->held[i] = a->phis[i];
        }
    }
}

void opjit_cg_apart_end(cg_func *f, ir_ref body, LLVMBasicBlockRef latch)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = apart_of(f, body, s);
        const ir_node *acc = ir_at(f->ir, ir_at(f->ir, s)->ref);
        for (uint32_t i = 0; a && i < parts_of(f, s); i++) {
            LLVMAddIncoming(a->phis[i], &a->held[i], &latch, 1);
            a->held[i] = a->phis[i];
        }
        if (a)
            write_lanes(f, acc, a, number(f, 64, 0), held_entry(f, acc, a));
    }
}

bool opjit_cg_apart_blocked(const cg_func *f, ir_ref body)
{
    bool blocked = false;
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const cg_acc *const a = apart_of(f, body, s);
        blocked = blocked || (a && a->blocked);
    }
    return blocked;
}

void opjit_cg_apart_enter(cg_func *f, ir_ref body, LLVMValueRef k)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const cg_acc *const a = apart_of(f, body, s);
        if (a && a->blocked)
            enter_block(f, ir_at(f->ir, ir_at(f->ir, s)->ref), a, k);
    }
}

/* --- a team that is a block --------------------------------------------------------------------------------------- */

void opjit_cg_apart_reset(cg_func *f, ir_ref body)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const cg_acc *const a = apart_of(f, body, s);
        if (a)
            reset_lanes(f, ir_at(f->ir, ir_at(f->ir, s)->ref), a);
    }
}

/* What each warp's lanes fold to, by warp: values, where they are, whether there is one. */
typedef struct folds {
    LLVMValueRef value, where, some;
} folds;

static entry read_fold(cg_func *f, const ir_node *acc, const cg_acc *a, const folds *p, LLVMValueRef warp)
{
    entry e = { .value = read(f, p->value, bits_of(a), 1, warp) };
    if (is_arg(acc)) {
        e.where = read(f, p->where, 64, 1, warp);
        e.some = is_set(f, read(f, p->some, 8, 1, warp));
    }
    return e;
}

static void write_fold(cg_func *f, const ir_node *acc, const cg_acc *a, const folds *p, LLVMValueRef warp)
{
    const entry e = fold_all_lanes(f, acc, a);
    LLVMValueRef lane = LLVMBuildAnd(f->b, f->thread, number(f, 64, MOST_LANES - 1), "");
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntEQ, lane, number(f, 64, 0), ""));
    write(f, p->value, bits_of(a), warp, opjit_cg_as_bits(f, e.value));
    if (is_arg(acc)) {
        write(f, p->where, 64, warp, e.where);
        write(f, p->some, 8, warp, opjit_cg_resize(f, e.some, 8, false));
    }
    opjit_cg_if_end(f, after);
}

static void meet(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef warp, LLVMValueRef k, LLVMValueRef hi)
{
    const uint64_t warps = f->launch.team / MOST_LANES;
    LLVMValueRef base = opjit_cg_grid_folds(f);
    const folds p = { base, opjit_cg_offset(f, f->type.i64, base, number(f, 64, warps)),
                      opjit_cg_offset(f, f->type.i64, base, number(f, 64, 2 * warps)) };
    write_fold(f, acc, a, &p, warp);
    f->cpu->grid->sync(f);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBuildBr(f->b, body);
    LLVMPositionBuilderAtEnd(f->b, body);
    LLVMValueRef at = LLVMBuildPhi(f->b, f->type.i64, "");
    LLVMAddIncoming(at, &k, &before, 1);
    LLVMValueRef which = LLVMBuildLShr(f->b, LLVMBuildSub(f->b, at, k, ""), number(f, 64, BLOCK_SHIFT), "");
    write_total(f, acc, a, after_total(f, acc, a, read_fold(f, acc, a, &p, which)));
    LLVMValueRef next = LLVMBuildAdd(f->b, at, number(f, 64, UINT64_C(1) << BLOCK_SHIFT), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b);
    LLVMAddIncoming(at, &next, &latch, 1);
    LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntSLT, next, hi, ""), body, after);
    LLVMMoveBasicBlockAfter(after, latch);
    LLVMPositionBuilderAtEnd(f->b, after);
    f->cpu->grid->sync(f); /* before the next ones are written */
}

void opjit_cg_apart_meet(cg_func *f, ir_ref body, LLVMValueRef warp, LLVMValueRef k, LLVMValueRef hi)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const cg_acc *const a = apart_of(f, body, s);
        if (a)
            meet(f, ir_at(f->ir, ir_at(f->ir, s)->ref), a, warp, k, hi);
    }
}

/* --- UPD ---------------------------------------------------------------------------------------------------------- */

static LLVMValueRef plus(cg_func *f, LLVMValueRef k, uint64_t more)
{
    return more ? LLVMBuildAdd(f->b, k, number(f, 64, more), "") : k;
}

/* Vectors that start at a multiple of their width stay in one block and don't wrap around the lanes. */
void opjit_cg_upd(cg_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f->ir, statement), *acc = ir_at(f->ir, n->ref);
    const cg_acc *a = &f->accs[n->ref];
    cg_loop *loop = &f->loops[f->loop_count - 1];
    entry all = { .value = opjit_cg_as_bits(f, opjit_cg_emit_lanes(f, ir_operand(f->ir, statement, 0), f->lanes)) };
    if (is_arg(acc)) {
        all.where = opjit_cg_index_lanes(f, ir_operand(f->ir, statement, 1), 64, f->lanes);
        all.some = opjit_cg_number(f, 1, f->lanes, 1);
    }
    if (a->apart) {
        update_apart(f, acc, &f->accs[n->ref], all);
        return;
    }
    if (a->held_count > 0) {
        LLVMValueRef *held = &f->accs[n->ref].held[(uint64_t)loop->offset / f->lanes % a->held_count];
        *held = as_held(f, a, step(f, acc, *held, all.value));
        return;
    }
    LLVMValueRef k = plus(f, opjit_cg_variable(f, loop), (uint64_t)loop->offset);
    const uint32_t lanes = lanes_of(acc, a);
    uint32_t width = f->lanes < lanes ? f->lanes : lanes;
    uint64_t rest;
    if (width > 1 && (loop->step != 1 || !opjit_cg_residue(f, loop->var, width, &rest) || rest != 0))
        width = 1;
    for (uint32_t i = 0; i < f->lanes; i += width)
        update(f, acc, a, plus(f, k, i), width, f->lanes == width ? all : half_entry(f, all, i, width));
}
