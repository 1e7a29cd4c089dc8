/* SPDX-License-Identifier: Apache-2.0 */
/* accumulator.c - accumulators: lanes by k modulo their number, blocks of k (4096, of a dot 256), folds by halves, in
 * the order of ir/README.md whatever the vector width.  They live in memory of the stack frame; where speed matters a
 * pass turns them into registers.  Accumulators whose lanes are threads of a GPU are in team.c. */
#include "codegen/reduce/accumulator.h"
#include "codegen/gpu/grid.h"
#include "codegen/softops/kept.h"

#include <stdio.h>

/* Whether fast selection lacks vectors for the steps, because they are comparisons. */
static bool chooses(const ir_node *acc, const cg_acc *a)
{
    return cg_acc_is_arg(acc) || ((acc->kind == IR_KMIN || acc->kind == IR_KMAX) && ir_is_float(a->type));
}

static LLVMValueRef number(cg_func *f, uint32_t bits, uint64_t value)
{
    return opjit_cg_number(f, bits, 1, value);
}

/* Whether the warps of a team that is a block each have a part of the values. */
static bool in_block(const cg_func *f, const cg_acc *a)
{
    return a->apart && f->launch.team > IR_REDUCE_LANES;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static LLVMValueRef step(cg_func *f, const ir_node *acc, LLVMValueRef a, LLVMValueRef b)
{
    const ir_op op = ir_kind_op((ir_kind)acc->kind);
    return opjit_cg_as_bits(f, opjit_cg_arith(f, op, (ir_type)acc->type, (LLVMValueRef[]){ a, b }));
}

/* y if it replaces x: the first NaN wins, then the better value, then the first or last of equal ones. */
static cg_part step_arg(cg_func *f, const ir_node *acc, ir_type type, cg_part x, cg_part y)
{
    const bool least = ir_arg_is_least((ir_kind)acc->kind);
    const bool first = ir_arg_is_first((ir_kind)acc->kind);
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
    return (cg_part){ LLVMBuildSelect(f->b, wins, opjit_cg_as_bits(f, y.value), opjit_cg_as_bits(f, x.value), ""),
                      LLVMBuildSelect(f->b, wins, y.where, x.where, ""), LLVMBuildOr(f->b, x.some, y.some, "") };
}

cg_part opjit_cg_acc_combine(cg_func *f, const ir_node *acc, const cg_acc *a, cg_part x, cg_part y)
{
    if (cg_acc_is_arg(acc))
        return step_arg(f, acc, a->type, x, y);
    if (y.where != NULL && ir_is_integer((ir_type)acc->type)) { /* a step of a dot */
        LLVMValueRef product = LLVMBuildMul(f->b, y.value, y.where, "");
        return (cg_part){ .value = LLVMBuildAdd(f->b, x.value, product, "") };
    }
    if (y.where != NULL) {
        LLVMValueRef args[] = { y.value, y.where, x.value };
        return (cg_part){ .value = opjit_cg_as_bits(f, opjit_cg_arith(f, IR_FMA, (ir_type)acc->type, args)) };
    }
    return (cg_part){ .value = step(f, acc, x.value, y.value) };
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

LLVMValueRef opjit_cg_array_read(cg_func *f, LLVMValueRef array, uint32_t bits, uint32_t lanes, LLVMValueRef lane)
{
    return read_as(f, opjit_cg_int(f, bits, lanes), array, bits, lane);
}

LLVMValueRef opjit_cg_acc_values(cg_func *f, const cg_acc *a, LLVMValueRef array, uint32_t lanes, LLVMValueRef lane)
{
    const bool real = !f->cpu->grid && (a->type == IR_F32 || a->type == IR_F64);
    const uint32_t bits = cg_acc_bits(a);
    LLVMValueRef v =
        read_as(f, real ? opjit_cg_float(f, a->type, lanes) : opjit_cg_int(f, bits, lanes), array, bits, lane);
    if (a->whole && lanes > 1)
        LLVMSetVolatile(v, 1);
    return v;
}

void opjit_cg_array_write(cg_func *f, LLVMValueRef array, uint32_t bits, LLVMValueRef lane, LLVMValueRef value)
{
    LLVMSetAlignment(LLVMBuildStore(f->b, value, at_lane(f, array, bits, lane)), bits / 8);
}

cg_part opjit_cg_acc_read(cg_func *f, const ir_node *acc, const cg_acc *a, uint32_t lanes, LLVMValueRef lane)
{
    cg_part e = { .value = opjit_cg_acc_values(f, a, a->lane, lanes, lane) };
    if (cg_acc_is_arg(acc)) {
        e.where = opjit_cg_array_read(f, a->where, 64, lanes, lane);
        e.some = cg_is_set(f, opjit_cg_array_read(f, a->some, 8, lanes, lane));
    }
    return e;
}

void opjit_cg_acc_write(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef lane, cg_part e)
{
    opjit_cg_array_write(f, a->lane, cg_acc_bits(a), lane, e.value);
    if (cg_acc_is_arg(acc)) {
        opjit_cg_array_write(f, a->where, 64, lane, e.where);
        opjit_cg_array_write(f, a->some, 8, lane, opjit_cg_resize(f, e.some, 8, false));
    }
}

/* The lanes of one machine vector: a longer vector takes long to compile. */
static uint32_t part_of(const cg_func *f, uint32_t bits, uint32_t lanes)
{
    const uint32_t most = 8 * f->target->vector_bytes / bits;
    return lanes < most || most == 0 ? lanes : most;
}

static void reset_array(cg_func *f, LLVMValueRef array, uint32_t bits, uint32_t lanes, uint64_t value)
{
    const uint32_t part = part_of(f, bits, lanes);
    for (uint32_t i = 0; i < lanes; i += part)
        opjit_cg_array_write(f, array, bits, number(f, 64, i), opjit_cg_kept(f, opjit_cg_number(f, bits, part, value)));
}

void opjit_cg_acc_reset(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    const uint32_t lanes = cg_acc_lanes(acc, a);
    const bool arg = cg_acc_is_arg(acc);
    reset_array(f, a->lane, cg_acc_bits(a), lanes, arg ? 0 : opjit_ir_identity(a->type, (ir_kind)acc->kind));
    if (arg) {
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
    cg_acc *a = f->accs[statement];
    LLVMValueRef zero = number(f, 64, 0);
    const uint32_t lanes = cg_acc_lanes(acc, a), bits = cg_acc_bits(a);
    *a = (cg_acc){ .type = a->type,
                   .blocked = a->blocked || in_block(f, a),
                   .own = a->own,
                   .apart = a->apart,
                   .whole = !f->peak && !f->cpu->grid && chooses(acc, a),
                   .lane = array(f, bits, lanes) };
    f->accumulates = true;
    if (cg_acc_is_arg(acc)) {
        a->where = array(f, 64, lanes);
        a->some = array(f, 8, lanes);
    }
    opjit_cg_acc_reset(f, acc, a);
    if (!a->blocked)
        return;
    a->block = array(f, 64, 1);
    a->total = array(f, bits, 1);
    a->total_some = array(f, 8, 1);
    a->total_where = array(f, 64, 1);
    opjit_cg_array_write(f, a->block, 64, zero, zero);
    opjit_cg_array_write(f, a->total, bits, zero, number(f, bits, 0));
    opjit_cg_array_write(f, a->total_some, 8, zero, number(f, 8, 0));
    opjit_cg_array_write(f, a->total_where, 64, zero, zero);
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

static cg_part half_entry(cg_func *f, cg_part e, uint32_t from, uint32_t count)
{
    return (cg_part){ half_of(f, e.value, from, count), half_of(f, e.where, from, count),
                      half_of(f, e.some, from, count) };
}

/* The entry of another thread. */
static cg_part entry_from(cg_func *f, cg_part e, LLVMValueRef lane)
{
    e.value = opjit_cg_from(f, e.value, lane);
    if (e.where) {
        e.where = opjit_cg_from(f, e.where, lane);
        e.some = cg_is_set(f, opjit_cg_from(f, opjit_cg_resize(f, e.some, 8, false), lane));
    }
    return e;
}

/* Halves of a vector through memory: fast selection knows no shuffles, and what it doesn't know takes its whole block
 * along.  So the block ends here, too: the next operation is often a vector made of the result. */
static cg_part fold_in_memory(cg_func *f, const ir_node *acc, const cg_acc *a, cg_part e)
{
    const uint32_t bits = cg_acc_bits(a);
    uint32_t half = opjit_cg_lanes(e.value) / 2;
    LLVMValueRef slot = array(f, bits, 2 * half);
    cg_part one[IR_REDUCE_LANES];
    for (; half * bits >= CG_FOLD_BITS; half /= 2) {
        opjit_cg_array_write(f, slot, bits, number(f, 64, 0), cg_as_held(f, a, e.value));
        e.value = opjit_cg_acc_combine(f, acc, a,
                                       (cg_part){ .value = opjit_cg_acc_values(f, a, slot, half, number(f, 64, 0)) },
                                       (cg_part){ .value = opjit_cg_acc_values(f, a, slot, half, number(f, 64, half)) })
                      .value;
    }
    opjit_cg_array_write(f, slot, bits, number(f, 64, 0), cg_as_held(f, a, e.value));
    for (uint32_t i = 0; i < 2 * half; i++)
        one[i].value = opjit_cg_acc_values(f, a, slot, 1, number(f, 64, i));
    for (; half > 0; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            one[i].value = opjit_cg_acc_combine(f, acc, a, (cg_part){ .value = one[i].value },
                                                (cg_part){ .value = one[i + half].value })
                               .value;
    opjit_cg_next_block(f);
    return (cg_part){ .value = one[0].value };
}

/* The fold by a function whose code is compiled once for the process.  The block ends here, as above. */
static cg_part fold_by_call(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    char prefix[48];
    cg_made *made;
    const cg_math m = { .op = IR_ACC, .type = a->type, .lanes = cg_acc_lanes(acc, a), .kind = acc->kind };
    LLVMTypeRef type = opjit_cg_math_type(f, &m);
    snprintf(prefix, sizeof prefix, "fold.%s_%sx%u", opjit_ir_kind_name((ir_kind)m.kind), opjit_ir_type_name(a->type),
             m.lanes);
    LLVMValueRef fn = opjit_cg_kept_function(f, prefix, &m, sizeof m, type, &made), lanes = a->lane;
    if (made)
        made->math = m;
    LLVMValueRef value = LLVMBuildCall2(f->b, type, fn, &lanes, 1, "");
    opjit_cg_next_block(f);
    return (cg_part){ .value = value };
}

/* Folds by halves: lane l takes lane l + half. */
static cg_part fold_lanes(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    const uint32_t places = cg_acc_is_arg(acc) ? 8 * rt_target_place_bytes(f->target) : 0;
    const uint32_t bits = cg_acc_bits(a) > places ? cg_acc_bits(a) : places;
    const uint32_t lanes = cg_acc_lanes(acc, a), part = part_of(f, bits, lanes), parts = lanes / part;
    cg_part e[IR_REDUCE_LANES];
    if (part > 1 && !f->peak && !cg_acc_is_arg(acc) && cg_acc_bits(a) >= 32 && opjit_rt_target_calls_math(f->target))
        return fold_by_call(f, acc, a);
    for (uint32_t i = 0; i < parts; i++)
        e[i] = opjit_cg_acc_read(f, acc, a, part, number(f, 64, i * part));
    for (uint32_t half = parts / 2; half > 0; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            e[i] = opjit_cg_acc_combine(f, acc, a, e[i], e[i + half]);
    if (part > 1 && !f->peak && !cg_acc_is_arg(acc) && cg_acc_bits(a) >= 32)
        return fold_in_memory(f, acc, a, e[0]);
    for (uint32_t half = part / 2; half > 0; half /= 2) {
        e[0].value = cg_as_held(f, a, e[0].value); /* a lane of integers would go through another kind of register */
        e[0] = opjit_cg_acc_combine(f, acc, a, half_entry(f, e[0], 0, half), half_entry(f, e[0], half, half));
    }
    return e[0];
}

void opjit_cg_fold_body(cg_func *f, const cg_math *m)
{
    const ir_node acc = { .op = IR_ACC, .kind = (uint8_t)m->kind, .type = (uint8_t)m->type, .imm = m->lanes };
    const cg_acc a = { .type = (ir_type)m->type, .lane = LLVMGetParam(f->fn, 0) };
    LLVMBuildRet(f->b, cg_as_held(f, &a, fold_lanes(f, &acc, &a).value));
}

cg_part opjit_cg_acc_fold(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    cg_part e = fold_lanes(f, acc, a);
    for (uint32_t half = a->apart ? (uint32_t)acc->imm / 2 : 0; half > 0; half /= 2)
        e = opjit_cg_acc_combine(f, acc, a, e, entry_from(f, e, opjit_cg_lane_after(f, half)));
    if (a->apart) /* the first thread has the right result */
        e = entry_from(f, e, number(f, 32, 0));
    return e;
}

/* The total of the previous blocks. */
static cg_part total_of(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef *out_some)
{
    LLVMValueRef zero = number(f, 64, 0);
    cg_part total = { .value = opjit_cg_acc_values(f, a, a->total, 1, zero) };
    *out_some = cg_is_set(f, opjit_cg_array_read(f, a->total_some, 8, 1, zero));
    if (cg_acc_is_arg(acc)) {
        total.where = opjit_cg_array_read(f, a->total_where, 64, 1, zero);
        total.some = *out_some;
    }
    return total;
}

/* Adds a block's value to those of the previous blocks. */
static cg_part after_total(cg_func *f, const ir_node *acc, const cg_acc *a, cg_part e)
{
    LLVMValueRef some;
    const cg_part total = total_of(f, acc, a, &some);
    if (cg_acc_is_arg(acc))
        return opjit_cg_acc_combine(f, acc, a, total, e);
    return (cg_part){ .value = LLVMBuildSelect(f->b, some, step(f, acc, total.value, e.value),
                                               opjit_cg_as_bits(f, e.value), "") };
}

static void write_total(cg_func *f, const ir_node *acc, const cg_acc *a, cg_part e)
{
    LLVMValueRef zero = number(f, 64, 0);
    const bool arg = cg_acc_is_arg(acc);
    opjit_cg_array_write(f, a->total, cg_acc_bits(a), zero, e.value);
    if (arg)
        opjit_cg_array_write(f, a->total_where, 64, zero, e.where);
    opjit_cg_array_write(f, a->total_some, 8, zero, arg ? opjit_cg_resize(f, e.some, 8, false) : number(f, 8, 1));
}

void opjit_cg_acc_add_block(cg_func *f, const ir_node *acc, const cg_acc *a, cg_part e)
{
    write_total(f, acc, a, after_total(f, acc, a, e));
}

/* Folds the lanes, then adds the previous blocks; in a team that is a block, the total has everything already. */
static cg_part fold(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    if (!in_block(f, a)) {
        const cg_part e = opjit_cg_acc_fold(f, acc, a);
        return a->blocked ? after_total(f, acc, a, e) : e;
    }
    LLVMValueRef some;
    cg_part total = total_of(f, acc, a, &some);
    if (!cg_acc_is_arg(acc))
        total.value = LLVMBuildSelect(f->b, some, opjit_cg_as_bits(f, total.value),
                                      number(f, cg_acc_bits(a), opjit_ir_identity(a->type, (ir_kind)acc->kind)), "");
    return total;
}

void opjit_cg_acc_enter_block(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef k)
{
    LLVMValueRef zero = number(f, 64, 0), block = opjit_cg_floor_div(f, k, acc->block, false);
    LLVMValueRef other = LLVMBuildICmp(f->b, LLVMIntNE, block, opjit_cg_array_read(f, a->block, 64, 1, zero), "");
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, other);
    write_total(f, acc, a, fold(f, acc, a));
    opjit_cg_acc_reset(f, acc, a);
    opjit_cg_array_write(f, a->block, 64, zero, block);
    opjit_cg_if_end(f, after);
}

LLVMValueRef opjit_cg_acc_value(cg_func *f, ir_ref statement)
{
    const ir_node *acc = ir_at(f->ir, statement);
    const cg_acc *a = f->accs[statement];
    if (a->held_count > 0) /* of one lane: rule V10 allows no other to be read where it is in registers */
        return a->held[0];
    const cg_part e = fold(f, acc, a);
    if (!cg_acc_is_arg(acc))
        return opjit_cg_as_bits(f, e.value);
    return acc->type == IR_INDEX ? e.where : opjit_cg_convert(f, IR_I64, (ir_type)acc->type, e.where);
}

/* --- updates ------------------------------------------------------------------------------------------------------ */

/* The values of `width` lanes from `at` on among `lanes` that would change nothing. */
static LLVMValueRef among(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef values, uint32_t width,
                          uint32_t at, uint32_t lanes)
{
    const uint64_t identity = opjit_ir_identity(a->type, (ir_kind)acc->kind);
    LLVMValueRef mask[CG_MAX_LANES];
    if (width == 1)
        return LLVMBuildInsertElement(f->b, opjit_cg_number(f, cg_acc_bits(a), lanes, identity), values,
                                      number(f, 32, at), "");
    for (uint32_t i = 0; i < lanes; i++)
        mask[i] = number(f, 32, i >= at && i < at + width ? i - at : width + i % width);
    return LLVMBuildShuffleVector(f->b, values, opjit_cg_number(f, cg_acc_bits(a), width, identity),
                                  LLVMConstVector(mask, lanes), "");
}

/* At quick lanes are in memory, and a fold that reads a whole vector waits long for parts of it that were stored alone:
 * a part whose place is known becomes a whole vector.  Returns its lanes. */
static uint32_t make_whole(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef *lane, uint32_t width,
                           cg_part *e)
{
    const uint32_t part = part_of(f, cg_acc_bits(a), cg_acc_lanes(acc, a));
    if (f->peak || f->cpu->grid || cg_acc_is_arg(acc) || width >= part || cg_acc_bits(a) < 32 || !LLVMIsConstant(*lane))
        return width;
    const uint32_t at = (uint32_t)LLVMConstIntGetZExtValue(*lane) % part;
    opjit_cg_next_block(f); /* what is before a shuffle leaves fast selection with it */
    e->value = among(f, acc, a, opjit_cg_as_bits(f, e->value), width, at, part);
    *lane = number(f, 64, LLVMConstIntGetZExtValue(*lane) - at);
    return part;
}

/* Updates the lanes from k modulo lanes on with `e`. */
static void update(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef k, uint32_t width, cg_part e)
{
    if (a->blocked)
        opjit_cg_acc_enter_block(f, acc, a, k);
    LLVMValueRef lane = number(f, 64, cg_acc_lanes(acc, a) - 1);
    if (cg_acc_lanes(acc, a) > 1)
        lane = LLVMBuildAnd(f->b, k, lane, "");
    if (!f->peak && width > 1 && chooses(acc, a)) /* what is before a comparison leaves fast selection with it */
        opjit_cg_next_block(f);
    width = make_whole(f, acc, a, &lane, width, &e);
    opjit_cg_acc_write(f, acc, a, lane, opjit_cg_acc_combine(f, acc, a, opjit_cg_acc_read(f, acc, a, width, lane), e));
}

/* --- UPD ---------------------------------------------------------------------------------------------------------- */

static LLVMValueRef plus(cg_func *f, LLVMValueRef k, uint64_t more)
{
    return more ? LLVMBuildAdd(f->b, k, number(f, 64, more), "") : k;
}

static LLVMValueRef lanes_as_bits(cg_func *f, ir_ref value)
{
    return opjit_cg_as_bits(f, opjit_cg_emit_lanes(f, value, f->piece->lanes));
}

/* A vector that starts at a multiple of its width is in one block of k and does not wrap around the lanes: it is one
 * update.  Other vectors are updated lane by lane. */
void opjit_cg_upd(cg_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f->ir, statement), *acc = ir_at(f->ir, n->ref);
    cg_acc *const a = f->accs[n->ref];
    cg_loop *loop = &f->loops[f->loop_count - 1];
    const ir_ref value = ir_operand(f->ir, statement, 0);
    const bool dot = acc->kind == IR_DOT;
    cg_part all = { .value = lanes_as_bits(f, dot ? ir_operand(f->ir, value, 0) : value) };
    if (dot)
        all.where = lanes_as_bits(f, ir_operand(f->ir, value, 1));
    if (cg_acc_is_arg(acc)) {
        all.where = opjit_cg_index_lanes(f, ir_operand(f->ir, statement, 1), 64, f->piece->lanes);
        all.some = opjit_cg_number(f, 1, f->piece->lanes, 1);
    }
    if (f->piece->mask) /* of a remainder: beside it what changes nothing */
        all.value = opjit_cg_choose(f, f->piece->mask, all.value,
                                    opjit_cg_number(f, cg_acc_bits(a), f->piece->lanes,
                                                    opjit_ir_identity(a->type, (ir_kind)acc->kind)));
    if (a->apart) {
        opjit_cg_apart_update(f, acc, a, all);
        return;
    }
    if (a->held_count > 0) {
        const uint64_t place = (uint64_t)loop->offset / f->piece->lanes % a->held_count;
        const bool apart = f->piece->lanes > 1 && (acc->kind == IR_KMIN || acc->kind == IR_KMAX);
        LLVMValueRef *held = apart ? &a->waits[place] : &a->held[place];
        if (*held)
            all = opjit_cg_acc_combine(f, acc, a, (cg_part){ .value = *held }, all);
        *held = cg_as_held(f, a, all.value);
        return;
    }
    LLVMValueRef k = plus(f, opjit_cg_variable(f, loop), (uint64_t)loop->offset);
    const uint32_t lanes = cg_acc_lanes(acc, a);
    const cg_residues with = opjit_cg_residues(f);
    uint32_t width = f->piece->lanes < lanes ? f->piece->lanes : lanes;
    uint64_t rest;
    if (width > 1 && (loop->step != 1 || !opjit_cg_residue(&with, loop->var, width, &rest) || rest != 0))
        width = 1;
    for (uint32_t i = 0; i < f->piece->lanes; i += width)
        update(f, acc, a, plus(f, k, i), width, f->piece->lanes == width ? all : half_entry(f, all, i, width));
}
