/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - loads through views, and of memory: where an element lies in the tensor whose bytes a view shows; and loads
 * by coordinates that collapse can take together.  Part of inline. */
#include "ir/passes/pass.h"

#include <string.h>

/* --- views ------------------------------------------------------------------------------------------------------ */

/* The root's dimensions of more than one element, largest stride first. */
static uint32_t sorted(const ir_tensor *t, uint32_t order[8])
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (t->sizes[d] == 1)
            continue;
        uint32_t at = count++;
        for (; at > 0 && t->strides[order[at - 1]] < t->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    return count;
}

typedef struct view_map {
    uint32_t order[8], count;
    uint64_t factor[8][8]; /* by position in order and dimension of the view */
    uint64_t constant[8];
} view_map;

/* number = sum of digit[i] * stride of order[i]; false: it is not. */
static bool digits(const ir_tensor *root, const view_map *m, uint64_t number, uint64_t *digit)
{
    for (uint32_t i = 0; i < m->count; i++) {
        digit[i] = number / root->strides[m->order[i]];
        number %= root->strides[m->order[i]];
    }
    return number == 0;
}

/* Whether each coordinate of the root is a sum of multiples of the view's, none of which carries into the next one. */
static bool is_linear(const ir_tensor *root, const ir_tensor *view, view_map *m)
{
    uint64_t last[8];
    memcpy(last, m->constant, sizeof last);
    for (uint32_t d = 0; d < view->rank; d++) {
        uint64_t digit[8] = { 0 };
        if (view->sizes[d] > 1 && !digits(root, m, view->strides[d], digit))
            return false;
        for (uint32_t i = 0; i < m->count; i++) {
            uint64_t most;
            m->factor[i][d] = digit[i];
            if (!checked_mul(digit[i], view->sizes[d] - 1, &most) || !checked_add(last[i], most, &last[i]))
                return false;
        }
    }
    for (uint32_t i = 0; i < m->count; i++)
        if (last[i] >= root->sizes[m->order[i]])
            return false;
    return true;
}

/* Whether the root's elements fill its memory, so that an address has one quotient and remainder per dimension. */
static bool is_dense(const ir_tensor *root, const view_map *m)
{
    uint64_t stride = 1;
    for (uint32_t i = m->count; i-- > 0; stride *= root->sizes[m->order[i]])
        if (root->strides[m->order[i]] != stride)
            return false;
    return true;
}

static ir_ref plus_times(ir_func *f, ir_ref sum, ir_ref x, uint64_t factor)
{
    const ir_ref product = ir_make2(f, IR_IMUL, IR_INDEX, x, opjit_ir_index(f, (int64_t)factor));
    return factor == 0 ? sum : ir_make2(f, IR_IADD, IR_INDEX, sum, product);
}

static ir_ref linear_coordinate(ir_func *f, const view_map *m, uint32_t i, uint32_t rank, const ir_ref *at)
{
    ir_ref sum = opjit_ir_index(f, (int64_t)m->constant[i]);
    for (uint32_t d = 0; d < rank; d++)
        sum = plus_times(f, sum, at[d], m->factor[i][d]);
    return sum;
}

bool opjit_ir_view_coordinates(ir_func *f, uint32_t view, const ir_ref *at, ir_ref *out, bool *out_divided)
{
    const ir_tensor v = f->tensors[view], root = f->tensors[opjit_ir_root(f, view)];
    int64_t offset;
    view_map m = { 0 };
    m.count = sorted(&root, m.order);
    if (!opjit_ir_root_offset(f, view, &offset) || offset < 0)
        return false;
    const bool linear = digits(&root, &m, (uint64_t)offset, m.constant) && is_linear(&root, &v, &m);
    *out_divided = !linear;
    if (!linear && !is_dense(&root, &m))
        return false;
    if (at == NULL)
        return true;
    for (uint32_t d = 0; d < root.rank; d++)
        out[d] = opjit_ir_index(f, 0);
    ir_ref address = opjit_ir_index(f, offset);
    for (uint32_t d = 0; d < v.rank && !linear; d++)
        address = plus_times(f, address, at[d], v.strides[d]);
    for (uint32_t i = 0; i < m.count; i++) {
        const uint32_t d = m.order[i];
        if (linear) {
            out[d] = linear_coordinate(f, &m, i, v.rank, at);
            continue;
        }
        out[d] = ir_make2(f, IR_IDIV, IR_INDEX, address, opjit_ir_index(f, (int64_t)root.strides[d]));
        out[d] = ir_make2(f, IR_IMOD, IR_INDEX, out[d], opjit_ir_index(f, (int64_t)root.sizes[d]));
    }
    return true;
}

/* --- loads of memory -------------------------------------------------------------------------------------------- */

/* y / k */
typedef struct quotient {
    ir_ref y;
    int64_t k;
} quotient;

static quotient quotient_of(const ir_func *f, ir_ref r)
{
    return ir_at(f, r)->op == IR_IDIV ? (quotient){ ir_operand(f, r, 0), ir_index_value(f, ir_operand(f, r, 1)) }
                                      : (quotient){ r, 1 };
}

ir_ref opjit_ir_join_coordinates(ir_func *f, ir_ref a, ir_ref b, int64_t c)
{
    int64_t m = 0, whole;
    if (ir_at(f, b)->op != IR_IMOD || ir_index_value(f, ir_operand(f, b, 1)) != c)
        return 0;
    if (ir_at(f, a)->op == IR_IMOD) {
        m = ir_index_value(f, ir_operand(f, a, 1));
        a = ir_operand(f, a, 0);
    }
    const ir_ref x = ir_operand(f, b, 0);
    const quotient high = quotient_of(f, a), low = quotient_of(f, x);
    if (!opjit_ir_same(f, high.y, low.y) || !checked_muli(low.k, c, &whole) || high.k != whole)
        return 0;
    if (m == 0)
        return x;
    return checked_muli(m, c, &whole) ? ir_make2(f, IR_IMOD, IR_INDEX, x, opjit_ir_index(f, whole)) : 0;
}

/* The layout of t with dimensions d and d + 1 merged. */
static ir_tensor joined_layout(const ir_tensor *t, uint32_t d)
{
    ir_tensor out = *t;
    out.sizes[d] *= out.sizes[d + 1];
    out.strides[d] = out.strides[d + 1];
    out.rank--;
    for (uint32_t i = d + 1; i < out.rank; i++) {
        out.sizes[i] = out.sizes[i + 1];
        out.strides[i] = out.strides[i + 1];
    }
    return out;
}

static void drop_single(ir_tensor *layout, ir_ref *at)
{
    uint32_t rank = 0;
    for (uint32_t d = 0; d < layout->rank; d++) {
        if (layout->sizes[d] == 1 && (rank > 0 || d + 1 < layout->rank))
            continue;
        layout->sizes[rank] = layout->sizes[d];
        layout->strides[rank] = layout->strides[d];
        at[rank++] = at[d];
    }
    layout->rank = rank;
}

/* Merges dimensions whose coordinates are quotient and remainder of one number; returns whether there were any. */
static bool join_dimensions(ir_func *f, ir_tensor *layout, ir_ref *at)
{
    bool any = false;
    for (uint32_t d = layout->rank - 1; d-- > 0;) {
        const uint64_t c = layout->sizes[d + 1];
        if (layout->strides[d] != layout->strides[d + 1] * c)
            continue;
        const ir_ref joined = opjit_ir_join_coordinates(f, at[d], at[d + 1], (int64_t)c);
        if (joined == 0)
            continue;
        if (!opjit_ir_within(f, joined, layout->sizes[d] * c))
            continue;
        *layout = joined_layout(layout, d);
        at[d] = joined;
        memmove(at + d + 1, at + d + 2, (layout->rank - d - 1) * sizeof *at);
        any = true;
    }
    return any;
}

/* If the address is a sum of multiples of the loops' variables: the layout whose coordinates are these variables, so
 * that collapse can merge loops. */
static bool by_variables(const inliner *in, ir_tensor *layout, ir_ref *at, int64_t *offset)
{
    const ir_func *f = in->f;
    ir_tensor out = *layout;
    ir_affine form = { 0 };
    bool identity = layout->rank == in->loop_count;
    for (uint32_t d = 0; d < layout->rank; d++) {
        identity = identity && (at[d] == in->loops[d] || layout->sizes[d] == 1);
        if (!opjit_ir_within(f, at[d], layout->sizes[d]) ||
            !opjit_ir_affine_add(f, &form, at[d], (int64_t)layout->strides[d]))
            return false;
    }
    for (uint32_t d = 0; d < in->loop_count; d++) {
        const int64_t factor = opjit_ir_affine_take(f, &form, in->loops[d]);
        if (factor < 0)
            return false;
        out.sizes[d] = in->extents[d];
        out.strides[d] = in->extents[d] == 1 ? 0 : (uint64_t)factor;
    }
    out.rank = in->loop_count;
    while (in->row_count > 0 && out.rank > 1 && out.strides[out.rank - 1] == 0)
        out.rank--; /* the same for the whole row, in each of the stage's loops over it, and over its blocks */
    if (identity || form.count > 0 || form.constant < 0 || out.rank == 0)
        return false;
    memcpy(at, in->loops, out.rank * sizeof *at);
    *offset = form.constant;
    *layout = out;
    return true;
}

/* A view of `tensor` with the layout, one per stage. */
static uint32_t view_of(inliner *in, uint32_t tensor, const ir_tensor *layout, int64_t offset)
{
    ir_func *f = in->f;
    int64_t start;
    if (!opjit_ir_root_offset(f, tensor, &start) || !checked_addi(start, offset, &start))
        return 0;
    uint64_t key = opjit_ir_hash(opjit_ir_hash(opjit_ir_root(f, tensor), layout->rank), (uint64_t)start);
    for (uint32_t d = 0; d < layout->rank; d++)
        key = opjit_ir_hash(opjit_ir_hash(key, layout->sizes[d]), layout->strides[d]);
    const uint32_t known = opjit_ir_table_get(&in->views, key);
    if (known != 0)
        return known;
    ir_tensor view = { .role = IR_VIEW, .type = layout->type, .rank = layout->rank, .bytes = layout->bytes,
                       .align = f->tensors[opjit_ir_root(f, tensor)].align, .of = opjit_ir_root(f, tensor),
                       .offset = start };
    memcpy(view.sizes, layout->sizes, sizeof view.sizes);
    memcpy(view.strides, layout->strides, sizeof view.strides);
    if (!opjit_ir_span_bytes(&view, &view.bytes))
        return 0;
    const uint32_t made = opjit_ir_tensor(f, &view);
    opjit_ir_table_set(f, &in->views, key, made);
    return made;
}

ir_ref opjit_ir_load_memory(inliner *in, uint32_t tensor, ir_ref *at)
{
    ir_func *f = in->f;
    ir_tensor layout = f->tensors[tensor];
    ir_ref joined_at[PASS_OPERANDS];
    int64_t offset = 0;
    /* Rule V15 compares loads of what is aliased with stores; scratch is of one stage, and is stored in it. */
    if (in->sources[opjit_ir_root(f, tensor)].aliased || layout.role == IR_SCRATCH)
        return opjit_ir_load(f, tensor, at);
    memcpy(joined_at, at, layout.rank * sizeof *at);
    drop_single(&layout, joined_at);
    bool changed = join_dimensions(f, &layout, joined_at);
    if (changed)
        memcpy(at, joined_at, layout.rank * sizeof *at);
    else
        layout = f->tensors[tensor];
    changed = by_variables(in, &layout, at, &offset) || changed;
    if (changed || in->private_views)
        tensor = view_of(in, tensor, &layout, offset);
    f->failed = f->failed || tensor == 0;
    return opjit_ir_load(f, tensor, at);
}
