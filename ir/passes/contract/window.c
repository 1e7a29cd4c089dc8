/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - finds sums of products one factor of which is read through windows: its elements depend on
 * coordinates of the result and on digits of k only by p * stride + t * dilation, whatever else they are (padding,
 * casts), and the other factor moves with one other coordinate.  Part of place. */
#include "ir/passes/contract/window.h"

enum {
    LEAST_WORK = 16 * 16 * 16, /* products: less is not worth the code */
    LEAST_LINE = 2,            /* positions */
    FEW_POSITIONS = 6,
    LEAST_CHANNELS = 32,
    MOST_STEP = 4,     /* between elements that a vector is loaded of by shuffles */
    MOST_APART = 4096, /* elements of an image that one result is made of */
};

/* --- coordinates -------------------------------------------------------------------------------------------------- */

/* The dimension of the rows, for which the same steps take part: of those that the other factor moves with, the largest
 * that the windows don't have, or else the first; all others are a batch's.  -1: there is none. */
static int32_t find_rows(const window *w)
{
    int32_t rows = -1;
    bool alone = false;
    for (int32_t d = 0; d < (int32_t)w->c.out.rank; d++) {
        if (!opjit_ir_window_moves(w, w->values[1 - w->factor], d) ||
            (w->values[WINDOW_CONDITION] != 0 && opjit_ir_window_moves(w, w->values[WINDOW_CONDITION], d)))
            continue;
        const bool own = !opjit_ir_window_moves(w, w->values[w->factor], d);
        if (rows < 0 || (own && (!alone || w->c.out.sizes[d] > w->c.out.sizes[rows])))
            rows = d;
        alone = alone || own;
    }
    return rows;
}

/* One position: the factor that doesn't move with the last coordinate of more than one value has the windows, and
 * dimensions of one element are the axes. */
static bool find_single(window *w, int32_t last)
{
    uint32_t axes = 0;
    w->factor = opjit_ir_window_moves(w, w->values[0], last) ? 1 : 0;
    if (opjit_ir_window_moves(w, w->values[w->factor], last) ||
        !opjit_ir_window_moves(w, w->values[1 - w->factor], last))
        return false;
    w->rows = find_rows(w);
    for (int32_t d = (int32_t)w->c.out.rank - 1; d > w->rows && axes < WINDOW_AXES; d--)
        if (w->c.out.sizes[d] == 1) {
            w->axis[axes].stride = 0;
            w->axis[axes++].dimension = d;
        }
    return axes > 0;
}

/* The axis is this dimension of the result, whose size may follow from a dynamic one. */
static void set_axis(const window *w, window_axis *x, uint32_t dimension)
{
    const ir_varying *const own = place_varying(w->c.r->varying, &w->c.out, dimension);
    x->dimension = (int32_t)dimension;
    x->size = x->usual = (int64_t)w->c.out.sizes[dimension];
    x->stride = 0;
    if (own == NULL)
        return;
    x->varies = true;
    x->unit = (int64_t)own->unit;
    x->usual = (int64_t)own->usual;
}

/* The factors: one that moves with the last coordinate of more than one value, and one that doesn't. */
static bool find_factors(window *w)
{
    const uint32_t rank = ir_rank_in_use(&w->c.out);
    const int32_t last = rank > 0 ? (int32_t)rank - 1 : 0;
    for (w->factor = 0; w->factor < 2; w->factor++)
        if (opjit_ir_window_moves(w, w->values[w->factor], last) &&
            !opjit_ir_window_moves(w, w->values[1 - w->factor], last))
            break;
    w->axis[0] = w->axis[1] =
        (window_axis){ .dimension = -1, .digit = -1, .size = 1, .usual = 1, .taps = 1, .stride = 1 };
    if (w->single)
        return find_single(w, last);
    if (w->factor == 2)
        return false;
    w->rows = find_rows(w);
    uint32_t axes = 0, dimensions[WINDOW_AXES];
    for (int32_t d = last; d > w->rows && axes < WINDOW_AXES; d--)
        if (opjit_ir_window_moves(w, w->values[w->factor], d) && !opjit_ir_window_moves(w, w->values[1 - w->factor], d))
            dimensions[axes++] = (uint32_t)d;
    for (uint32_t a = 0; a < axes; a++) /* a single one is the outer one */
        set_axis(w, &w->axis[axes - 1 - a], dimensions[a]);
    return true;
}

/* Groups of rows for which the windows read the same: the coordinate is only read divided by one number. */
static void find_groups(window *w)
{
    ir_func *f = w->c.f;
    w->group = w->rows < 0 ? 1 : (int64_t)w->c.out.sizes[w->rows];
    w->groups = 1;
    if (w->rows < 0 || !opjit_ir_window_moves(w, w->probed, w->rows))
        return;
    const ir_ref var = opjit_ir_coordinate(f, w->c.statement, (uint32_t)w->rows);
    const ir_reach seen = opjit_ir_reach_one(f, w->probed);
    int64_t group = 0;
    for (uint32_t i = 0; i < seen.count && group != 1; i++) {
        const ir_node *n = ir_at(f, seen.nodes[i]);
        for (uint32_t o = 0; o < n->count; o++) {
            if (ir_operand(f, seen.nodes[i], o) != var)
                continue;
            const int64_t by = n->op == IR_IDIV && o == 0 ? ir_index_value(f, ir_operand(f, seen.nodes[i], 1)) : 1;
            group = (group == 0 || group == by) && w->group % by == 0 ? by : 1;
        }
    }
    w->groups = w->group / (group == 0 ? 1 : group);
    w->group = group == 0 ? 1 : group;
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

/* The axis of a digit of the only position: its own, or the first without one; -1: all have one. */
static int32_t axis_of(const window *w, int32_t digit)
{
    int32_t axis = w->digits[digit].axis;
    for (int32_t a = 0; a < WINDOW_AXES && axis < 0; a++)
        axis = w->axis[a].dimension >= 0 && w->axis[a].digit < 0 ? a : -1;
    return axis;
}

/* The axis whose coordinate the sum has, its factor and that of the only digit beside it; digits of other terms are
 * free.  false: no window is of that form. */
static bool take_root(window *w, ir_ref expr, uint32_t *free)
{
    const ir_func *f = w->c.f;
    ir_affine form = { 0 };
    int64_t stride = 0, dilation = 0;
    int32_t axis = -1, digit = -1;
    uint32_t digits = 0, own = 0;
    if (!opjit_ir_affine_add(f, &form, expr, 1))
        return false;
    for (int32_t a = 0; a < WINDOW_AXES; a++) {
        if (w->axis[a].dimension < 0)
            continue;
        const int64_t by =
            opjit_ir_affine_take(f, &form, opjit_ir_coordinate(f, w->c.statement, (uint32_t)w->axis[a].dimension));
        if (by != 0 && axis >= 0)
            return false;
        axis = by != 0 ? a : axis;
        stride = by != 0 ? by : stride;
    }
    for (uint32_t d = 0; d < w->digit_count; d++) {
        const int64_t by = opjit_ir_affine_take(f, &form, w->digits[d].probe);
        if (by == 0)
            continue;
        own++;
        digits |= 1u << d;
        digit = (int32_t)d;
        dilation = by;
    }
    if (w->single && own == 1 && dilation == 1 && (digit > 0 || w->digit_count == 1)) {
        axis = axis_of(w, digit);
        stride = 1;
    }
    for (uint32_t i = 0; i < form.count; i++) {
        for (uint32_t d = 0; d < w->digit_count; d++)
            if (opjit_ir_uses(f, form.atoms[i], w->digits[d].probe))
                *free |= 1u << d;
        for (uint32_t a = 0; a < WINDOW_AXES; a++)
            if (w->axis[a].dimension >= 0 && opjit_ir_window_moves(w, form.atoms[i], w->axis[a].dimension))
                return false;
    }
    if (axis < 0) { /* bounds of what is read in larger steps have no proof */
        *free |= digits;
        return own == 0 || dilation == 1 || (digits == 1 && form.count == 0);
    }
    window_axis *x = &w->axis[axis];
    if (own > 1 || stride < 0 || dilation < 0 ||
        (x->stride != 0 && (x->stride != stride || x->digit != digit || x->dilation != dilation)))
        return false;
    if (digit >= 0 && w->digits[digit].axis >= 0 && w->digits[digit].axis != axis)
        return false;
    x->stride = stride;
    x->dilation = dilation;
    x->digit = digit;
    if (digit >= 0) {
        w->digits[digit].axis = axis;
        x->taps = w->digits[digit].size;
    }
    return true;
}

/* Whether taps without axis move along a dimension of one element: all but one are outside, which has no proof where
 * the loop over them is cut. */
static bool taps_of_one(const window *w, const ir_reach *seen)
{
    const ir_func *f = w->c.f;
    for (uint32_t i = 0; i < seen->count; i++) {
        const ir_node *n = ir_at(f, seen->nodes[i]);
        for (uint32_t o = 0; n->op == IR_LOAD && o < n->count; o++)
            for (uint32_t d = 1; d < w->digit_count && f->tensors[n->ref].sizes[o] == 1; d++)
                if (w->digits[d].axis < 0 && opjit_ir_uses(f, ir_operand(f, seen->nodes[i], o), w->digits[d].probe))
                    return true;
    }
    return false;
}

/* Which taps read what lies in one plane: positions in steps of stride. */
static void set_classes(window_axis *x)
{
    const int64_t common = gcd(x->dilation, x->stride);
    x->period = x->stride / common;
    x->step = x->dilation / common;
    x->classes = x->period < x->taps ? x->period : x->taps;
    x->reach = (x->taps - 1) / x->period * x->step;
}

/* Whether what windows with a stride read along an axis is the same number of whole strides, and a rest that all sizes
 * have: of lines whose number is odd for some sizes the last window reads padding for these alone. */
static bool is_even(const window *w, const ir_reach *seen, const window_axis *x)
{
    const ir_func *f = w->c.f;
    const ir_ref var = opjit_ir_coordinate(f, w->c.statement, (uint32_t)x->dimension);
    bool even = seen->count != 0;
    for (uint32_t i = 0; i < seen->count && even; i++) {
        const ir_node *n = ir_at(f, seen->nodes[i]);
        for (uint32_t o = 0; n->op == IR_LOAD && o < n->count && even; o++) {
            const ir_varying *const read = place_varying(w->c.r->varying, &f->tensors[n->ref], o);
            even = !opjit_ir_uses(f, ir_operand(f, seen->nodes[i], o), var) ||
                   (read != NULL && (int64_t)read->unit % x->stride == 0);
        }
    }
    return even;
}

/* Taps are read from memory one by one. */
static void gather(window *w)
{
    w->gathers = true;
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        w->axis[a].classes = 1;
        w->axis[a].reach = 0;
    }
}

/* Whether the factor depends on the axes' coordinates in that form only. */
static bool find_windows(window *w)
{
    ir_func *f = w->c.f;
    const ir_reach seen = opjit_ir_reach_one(f, w->probed);
    uint32_t free = 0;
    for (uint32_t i = 0; i < seen.count; i++) {
        const ir_node *n = ir_at(f, seen.nodes[i]);
        if (n->op == IR_VAR || !ir_is_pure(f, seen.nodes[i]) || n->type == IR_INDEX)
            continue;
        for (uint32_t o = 0; o < n->count; o++) {
            const ir_ref operand = ir_operand(f, seen.nodes[i], o);
            if (ir_at(f, operand)->type == IR_INDEX && !take_root(w, operand, &free))
                return false;
        }
    }
    for (uint32_t d = 0; d < w->digit_count; d++)
        if (w->digits[d].axis >= 0 && (free >> d & 1))
            return false;
    if (taps_of_one(w, &seen))
        return false;
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        window_axis *x = &w->axis[a];
        x->stride = x->stride == 0 ? 1 : x->stride;
        set_classes(x);
        w->gathers = w->gathers || x->reach > INT32_MAX;
        x->uneven = x->varies && x->stride > 1 && !is_even(w, &seen, x);
    }
    if (w->gathers)
        gather(w);
    return seen.nodes != NULL;
}

/* --- the shape ---------------------------------------------------------------------------------------------------- */

/* Whether the factor is constants that a product of matrices keeps a copy of: two coordinates that it moves with
 * (directions and gates of a recurrent network) are then no reason to copy them at each call. */
static bool is_kept(const window *w, uint32_t factor)
{
    const place_rows_of *r = w->c.r;
    return r->once && opjit_ir_constant_bytes(w->c.f, r->sources, w->values[factor]) > 0;
}

/* Windows of a pool that don't slide are all of an image: lanes are images, one after the other. */
static void keep_one_axis(window *w)
{
    window_axis *only = &w->axis[0], *inner = &w->axis[1];
    if (!w->pool || window_has_taps(w) || inner->dimension < 0)
        return;
    *only = *inner;
    *inner = (window_axis){ .dimension = -1, .digit = -1, .size = 1, .usual = 1, .taps = 1, .stride = 1 };
    set_classes(inner);
}

/* Whether all elements lie apart from result to result, and are few enough to be copied for all lanes of a vector. */
static bool lies_apart(const window *w)
{
    const ir_func *f = w->c.f;
    const ir_reach seen = opjit_ir_reach_one(w->c.f, w->values[0]);
    const ir_ref var = opjit_ir_coordinate(f, w->c.statement, (uint32_t)w->axis[0].dimension);
    int64_t step;
    for (uint32_t i = 0; i < seen.count; i++)
        if (ir_at(f, seen.nodes[i])->op == IR_LOAD &&
            (!opjit_ir_step(f, seen.nodes[i], var, &step) || step <= MOST_STEP))
            return false;
    return seen.nodes != NULL && w->c.length <= MOST_APART;
}

/* Whether windows of a pool are large, or read elements that other ones read, or padding, or what a vector would be
 * loaded of one by one: else columns need no copy. */
static bool pays_as_pool(const window *w)
{
    bool pays = w->c.length > COLUMN_TAPS || ir_at(w->c.f, w->values[0])->op == IR_SELECT;
    for (uint32_t a = 0; a < WINDOW_AXES; a++)
        pays = pays || w->axis[a].stride > MOST_STEP || w->axis[a].taps > w->axis[a].stride;
    return w->axis[0].dimension >= 0 && (window_has_taps(w) ? pays : lies_apart(w)) &&
           w->axis[0].size * w->axis[1].size >= LEAST_LINE;
}

/* Whether it is worth it: a product of matrices has a form of its own, unless rows are in groups, and little work needs
 * none. */
static bool pays(const window *w, const ir_tiles *given)
{
    const bool grouped = w->groups > 1 && w->group > 1;
    const bool slides =
        window_has_taps(w) || (!w->single && (grouped || (w->axis[1].dimension >= 0 && !is_kept(w, w->factor))));
    const int64_t positions = w->axis[0].size * w->axis[1].size;
    const int64_t all = window_images(w) * w->groups * w->group * positions; /* of tensors: there is memory for them */
    const int64_t few = given != NULL ? 1 : FEW_POSITIONS;
    if (w->pool)
        return pays_as_pool(w);
    if (w->single && is_kept(w, w->factor)) /* of few positions */
        return false;
    /* Channels make better vectors than so few positions, where a product of matrices can keep its copy of
     * constants. */
    if (w->groups == 1 && positions <= few && (positions == 1 || w->group >= LEAST_CHANNELS) &&
        is_kept(w, 1 - w->factor))
        return false;
    return slides && (given != NULL || (all >= LEAST_WORK / w->c.length && (w->single || positions >= LEAST_LINE)));
}

/* The stage, with positions or rows as lanes.  other: what the rows' factor is; 0: words. */
static bool write(window *w, ir_ref other, const ir_tiles *given, int64_t lanes, const rt_target *target,
                  block *stages)
{
    (void)opjit_ir_window_by_rows(w, given, lanes, target);
    if (other != 0 && !w->pool)
        opjit_ir_window_find_direct(w, other);
    w->joins = w->later || (!w->plain && !w->lined && opjit_ir_window_may_join(w));
    window lines = *w;
    if (opjit_ir_window_write(w, stages))
        return true;
    lines.joins = false;
    return w->joins && !w->later && !w->c.f->failed && opjit_ir_window_write(&lines, stages);
}

/* The stage of what was found; other: what the rows' factor is. */
static bool make(window w, bool words, ir_ref other, const ir_tiles *given, const rt_target *target, block *stages)
{
    contraction *c = &w.c;
    const ir_func *f = c->f;
    const int64_t lanes = given != NULL ? given->columns : target->vector_bytes / opjit_ir_type_size(c->out.type);
    if (!opjit_ir_window_set_depth(&w))
        return false;
    w.alone = !w.gathers && !words && opjit_ir_window_is_alone(&w);
    if ((w.values[WINDOW_CONDITION] != 0 && (w.alone || w.gathers)) || (w.single && w.alone))
        return false;
    if (!opjit_ir_window_choose_sizes(&w, given, lanes, target))
        return false;
    const bool many = w.alone && w.blocks > 1 && w.axis[0].classes * w.axis[1].classes > WINDOW_CLASSES;
    if ((w.pool && !w.alone) || many)
        return false;
    c->side[CONTRACT_ROWS].dimension = w.rows;
    c->side[CONTRACT_ROWS].factor = 1 - w.factor;
    c->side[CONTRACT_COLUMNS].dimension = w.axis[w.axis[1].dimension < 0 ? 0 : 1].dimension;
    c->side[CONTRACT_COLUMNS].factor = w.factor;
    window channels = w, plain = w;
    if (!words && opjit_ir_window_choose_channels(&channels, given, lanes, target) &&
        write(&channels, other, given, lanes, target, stages))
        return true;
    if (!words && opjit_ir_window_choose_plain(&plain, given, lanes, target) &&
        write(&plain, other, given, lanes, target, stages))
        return true;
    const bool costly = plain.costly;
    plain = w;
    plain.later = costly;
    if (!f->failed && costly && opjit_ir_window_choose_plain(&plain, given, lanes, target) &&
        write(&plain, other, given, lanes, target, stages))
        return true;
    window lined = w;
    if (!f->failed && given == NULL && !words && opjit_ir_window_choose_lined(&lined, lanes, target) &&
        write(&lined, other, given, lanes, target, stages))
        return true;
    return !f->failed && write(&w, words ? 0 : other, given, lanes, target, stages);
}

/* Whether it is steps one after the other, of elements that tiles can have. */
static bool is_pool(const ir_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f, statement);
    return n->imm == 1 && !ir_kind_is_arg((ir_kind)n->kind) && ir_kind_op((ir_kind)n->kind) != IR_OP_NONE &&
           opjit_ir_scanned(f, statement) < 0 && !opjit_ir_is_counted(f, statement);
}

/* single: of one position. */
static bool place(place_rows_of *r, const ir_tiles *given, const rt_target *target, bool single, block *stages)
{
    ir_func *f = r->f;
    window w = { .c = { .r = r, .f = f, .statement = r->members[0].statement }, .single = single };
    contraction *c = &w.c;
    c->def = *ir_at(f, c->statement);
    if (c->def.op != IR_DEF)
        return false;
    w.pool = c->def.kind != IR_DOT;
    if (w.pool && (single || !is_pool(f, c->statement)))
        return false;
    c->out = f->tensors[c->def.ref];
    c->length = ir_index_value(f, ir_operand(f, c->statement, c->def.count - 1));
    const ir_ref pair = ir_operand(f, c->statement, 0), k = opjit_ir_reduced(f, c->statement);
    if (c->out.rank > 7 || c->length < 1 || !opjit_ir_window_find_digits(&w, pair, k))
        return false;
    if (w.pool)
        opjit_ir_window_take_pool(&w, pair);
    else
        opjit_ir_window_take_condition(&w, pair);
    if (!find_factors(&w))
        return false;
    ir_ref probes[WINDOW_DIGITS];
    ir_map map = { 0 };
    for (uint32_t d = 0; d < w.digit_count; d++)
        probes[d] = w.digits[d].probe;
    opjit_ir_window_map_digits(&w, probes, &map);
    opjit_ir_window_guard(&w, &map);
    w.probed = opjit_ir_remake(f, &map, w.values[w.factor]);
    const ir_ref other = w.pool ? 0 : opjit_ir_remake(f, &map, w.values[1 - w.factor]);
    if (f->failed || opjit_ir_uses(f, w.probed, k) || (!w.pool && opjit_ir_uses(f, other, k)) || !find_windows(&w) ||
        !opjit_ir_window_parts_fit(&w, &map))
        return false;
    find_groups(&w);
    keep_one_axis(&w);
    if (!opjit_ir_window_is_alone(&w) && w.axis[0].classes * w.axis[1].classes > WINDOW_CLASSES)
        gather(&w);
    c->batch = 1;
    for (uint32_t d = 0; d < c->out.rank; d++)
        c->batch *= (int32_t)d == w.rows || (int32_t)d == w.axis[0].dimension || (int32_t)d == w.axis[1].dimension
                        ? 1
                        : (int64_t)c->out.sizes[d];
    if (!pays(&w, given))
        return false;
    const bool words = !single && !w.pool && target->arch == RT_ARCH_X86_64 && opjit_ir_window_is_bytes(&w, target);
    if (make(w, words, other, given, target, stages))
        return true;
    if (f->failed || w.gathers || single || w.pool)
        return false;
    gather(&w); /* the copy has a loop for each class, too many for a stage */
    return make(w, words, other, given, target, stages);
}

bool opjit_ir_place_window(place_rows_of *r, const ir_tiles *given, const rt_target *target, block *stages)
{
    return place(r, given, target, false, stages) || (!r->f->failed && place(r, given, target, true, stages));
}
