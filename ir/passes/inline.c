/* SPDX-License-Identifier: Apache-2.0 */
/* inline.c - values with the definitions that they read written in their place. A definition read at some
 * coordinates is an instance; a node in an instance is written once.  The work is linear in what is written and
 * does not recurse: chains of a thousand definitions are usual.  Equal nodes are one node, so that different
 * readers of one element share it. */
#include "ir/passes/pass.h"

#include <string.h>

struct inline_instance {
    ir_ref def;
    uint32_t next; /* another one with the same hash, + 1 */
    uint32_t count;
    const ir_ref *at; /* in place of the variables */
};

/* --- views ------------------------------------------------------------------------------------------------------ */

/* Elements from the root's first to the view's. */
static bool root_offset(const ir_func *f, uint32_t view, int64_t *out)
{
    *out = 0;
    for (; f->tensors[view].role == IR_VIEW; view = f->tensors[view].of)
        if (!checked_addi(*out, f->tensors[view].offset, out))
            return false;
    return true;
}

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

/* number = sum of digit[i] * stride of order[i]; false: it is none. */
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

/* Whether the root's elements fill its memory, so that an address has one quotient and remainder a dimension. */
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
    if (!root_offset(f, view, &offset) || offset < 0)
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

/* Whether b is x mod c with c the size of the dimension behind, and a is x / c, or that mod m: then both are one
 * coordinate, x, or x mod (c * m); 0 where not. */
static ir_ref join_coordinates(ir_func *f, ir_ref a, ir_ref b, int64_t c)
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

/* The layout of t with dimensions d and d + 1 as one. */
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

/* Takes dimensions together whose coordinates are quotient and remainder of one number; whether there were any. */
static bool join_dimensions(ir_func *f, ir_tensor *layout, ir_ref *at)
{
    bool any = false;
    for (uint32_t d = layout->rank - 1; d-- > 0;) {
        const uint64_t c = layout->sizes[d + 1];
        if (layout->strides[d] != layout->strides[d + 1] * c)
            continue;
        const ir_ref joined = join_coordinates(f, at[d], at[d + 1], (int64_t)c);
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

/* Where the address is a sum of multiples of the loops' variables: the layout in which the variables are the
 * coordinates, so that collapse can take loops together. */
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

/* A view of `tensor` with the layout, one for each stage. */
static uint32_t view_of(inliner *in, uint32_t tensor, const ir_tensor *layout, int64_t offset)
{
    ir_func *f = in->f;
    int64_t start;
    if (!root_offset(f, tensor, &start) || !checked_addi(start, offset, &start))
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

static ir_ref load_memory(inliner *in, uint32_t tensor, ir_ref *at)
{
    ir_func *f = in->f;
    ir_tensor layout = f->tensors[tensor];
    ir_ref joined_at[PASS_OPERANDS];
    int64_t offset = 0;
    if (in->sources[opjit_ir_root(f, tensor)].aliased) /* rule V15 compares its loads with stores */
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

/* --- one node a value ------------------------------------------------------------------------------------------- */

static bool equal_nodes(const ir_func *f, ir_ref a, ir_ref b)
{
    const ir_node *x = ir_at(f, a), *y = ir_at(f, b);
    return x->op == y->op && x->type == y->type && x->count == y->count && x->ref == y->ref && x->imm == y->imm &&
           memcmp(&f->operands[x->first], &f->operands[y->first], x->count * sizeof(ir_ref)) == 0;
}

/* r, or the node like it that there is already. */
static ir_ref unique(inliner *in, ir_ref r)
{
    const ir_func *f = in->f;
    if (ir_at(f, r)->op == IR_VAR)
        return r;
    const ir_node *n = ir_at(f, r);
    uint64_t key = opjit_ir_hash(n->op * 64u + n->type, n->imm);
    key = opjit_ir_hash(key, (uint64_t)n->ref << 8 | n->count);
    for (uint32_t i = 0; i < n->count; i++)
        key = opjit_ir_hash(key, ir_operand(f, r, i));
    const uint32_t known = opjit_ir_table_get(&in->known, key);
    if (known != 0 && equal_nodes(f, known, r))
        return known;
    if (known == 0)
        opjit_ir_table_set(in->f, &in->known, key, r);
    return r;
}

/* The same for what was made just now, nodes from `first` on, and their operands. */
static ir_ref unique_tree(inliner *in, ir_ref r, ir_ref first)
{
    ir_func *f = in->f;
    if (r < first)
        return r;
    for (uint32_t i = 0; i < ir_at(f, r)->count; i++) { /* as deep as one coordinate of a view */
        const ir_ref operand = unique_tree(in, ir_operand(f, r, i), first);
        f->operands[ir_at(f, r)->first + i] = operand;
    }
    return unique(in, r);
}

/* --- instances -------------------------------------------------------------------------------------------------- */

/* The number of the instance of def at these coordinates, + 1. */
static uint32_t instance_of(inliner *in, ir_ref def, uint32_t count, const ir_ref *at)
{
    ir_func *f = in->f;
    uint64_t key = opjit_ir_hash(def, count);
    for (uint32_t i = 0; i < count; i++)
        key = opjit_ir_hash(key, at[i]);
    const uint32_t first = opjit_ir_table_get(&in->instances, key);
    for (uint32_t i = first; i != 0; i = in->instance[i - 1].next)
        if (in->instance[i - 1].def == def && memcmp(in->instance[i - 1].at, at, count * sizeof *at) == 0)
            return i;
    if (in->instance_count == in->instance_capacity) {
        const uint32_t capacity = in->instance_capacity == 0 ? 16 : 2 * in->instance_capacity;
        struct inline_instance *more = ARENA_ARRAY(&f->scratch, struct inline_instance, capacity);
        if (more != NULL && in->instance_count > 0)
            memcpy(more, in->instance, in->instance_count * sizeof *more);
        f->failed = f->failed || more == NULL;
        in->instance = more;
        in->instance_capacity = capacity;
    }
    ir_ref *copy = f->failed ? NULL : opjit_rt_arena_copy(&f->scratch, at, count, sizeof *at);
    if (copy == NULL) {
        f->failed = true;
        return 0;
    }
    in->instance[in->instance_count++] = (struct inline_instance){ .def = def, .next = first, .count = count, .at = copy };
    opjit_ir_table_set(f, &in->instances, key, in->instance_count);
    return in->instance_count;
}

/* --- the walk --------------------------------------------------------------------------------------------------- */

static void push(inliner *in, uint32_t instance, ir_ref node)
{
    if (in->depth == in->capacity) {
        const uint32_t capacity = in->capacity == 0 ? 256 : 2 * in->capacity;
        uint64_t *more = ARENA_ARRAY(&in->f->scratch, uint64_t, capacity);
        if (more == NULL) {
            in->f->failed = true;
            return;
        }
        if (in->depth > 0)
            memcpy(more, in->stack, in->depth * sizeof *more);
        in->stack = more;
        in->capacity = capacity;
    }
    in->stack[in->depth++] = (uint64_t)instance << 32 | node;
}

enum { PENDING = 0x40000000 }; /* marks, in a memo's key, the instance whose value a load waits for */

static ir_ref written(const inliner *in, uint32_t instance, ir_ref node)
{
    return opjit_ir_table_get(&in->memo, (uint64_t)instance << 32 | node);
}

/* The variable of a dimension of one element as what it is. */
static ir_ref single_value(ir_func *f, ir_ref r)
{
    if (ir_at(f, r)->op != IR_VAR)
        return r;
    const ir_interval i = opjit_ir_interval(f, r);
    return i.lo == i.hi ? opjit_ir_index(f, i.lo) : r;
}

/* The instance that the load reads, + 1; 0: no memory. */
static uint32_t instance_read(inliner *in, ir_ref load, const ir_ref *coordinates)
{
    ir_func *f = in->f;
    const uint32_t tensor = ir_at(f, load)->ref, root = opjit_ir_root(f, tensor);
    const ir_ref first = f->node_count;
    ir_ref at[PASS_OPERANDS];
    bool divided;
    if (tensor == root)
        memcpy(at, coordinates, f->tensors[root].rank * sizeof *at);
    else if (!opjit_ir_view_coordinates(f, tensor, coordinates, at, &divided))
        f->failed = true; /* place asked before */
    for (uint32_t d = 0; d < f->tensors[root].rank && !f->failed; d++)
        at[d] = f->tensors[root].sizes[d] == 1 ? unique(in, opjit_ir_index(f, 0)) : unique_tree(in, at[d], first);
    return f->failed ? 0 : instance_of(in, in->sources[root].def, f->tensors[root].rank, at);
}

/* What a row of the same stage has at these coordinates; 0: the tensor has no row there. */
static ir_ref load_row(inliner *in, uint32_t tensor, const ir_ref *at)
{
    ir_func *f = in->f;
    const inline_source *s = &in->sources[opjit_ir_root(f, tensor)];
    if (s->row_value == 0 && s->scratch == 0)
        return 0;
    in->refused = in->refused || f->tensors[tensor].role == IR_VIEW;
    for (uint32_t d = 0; d < in->row_count && !in->refused; d++)
        in->refused = f->tensors[tensor].sizes[d] > 1 && at[d] != in->rows[d];
    if (in->refused || s->row_value != 0)
        return in->refused ? opjit_ir_const(f, f->tensors[tensor].type, 0) : opjit_ir_get(f, s->row_value);
    return opjit_ir_load(f, s->scratch, &at[f->tensors[tensor].rank - 1]);
}

/* A load, whose coordinates are written: of memory, or the value of a definition, which may have to be written
 * first (0). */
static ir_ref write_load(inliner *in, uint32_t reader, ir_ref load, const ir_ref *coordinates)
{
    ir_func *f = in->f;
    const uint32_t tensor = ir_at(f, load)->ref, root = opjit_ir_root(f, tensor);
    const ir_ref first = f->node_count;
    if (in->sources[root].def == 0) {
        ir_ref at[PASS_OPERANDS];
        memcpy(at, coordinates, f->tensors[tensor].rank * sizeof *at);
        const ir_ref row = load_row(in, tensor, at);
        if (row != 0)
            return unique(in, row);
        return unique_tree(in, load_memory(in, tensor, at), first);
    }
    const uint64_t key = (uint64_t)(reader | PENDING) << 32 | load;
    uint32_t instance = opjit_ir_table_get(&in->memo, key);
    if (instance == 0) {
        instance = instance_read(in, load, coordinates);
        ir_took(f, IR_STEP_INLINE);
        opjit_ir_table_set(f, &in->memo, key, instance);
    }
    if (instance == 0)
        return 0;
    const ir_ref value = ir_operand(f, in->sources[root].def, 0), known = written(in, instance, value);
    if (known == 0)
        push(in, instance, value);
    return known;
}

/* The node in the instance; 0 where something had to be put on the stack first. */
static ir_ref write_node(inliner *in, uint32_t instance, ir_ref r)
{
    ir_func *f = in->f;
    const ir_node n = *ir_at(f, r);
    if (n.op == IR_VAR && n.ref == in->instance[instance - 1].def)
        return in->instance[instance - 1].at[n.imm];
    if (n.count == 0)
        return unique(in, r);
    ir_ref operands[PASS_OPERANDS];
    const uint32_t before = in->depth;
    for (uint32_t i = n.count; i-- > 0;) {
        operands[i] = written(in, instance, ir_operand(f, r, i));
        if (operands[i] == 0)
            push(in, instance, ir_operand(f, r, i));
    }
    if (in->depth > before || f->failed)
        return 0;
    if (n.op == IR_LOAD)
        return write_load(in, instance, r, operands);
    for (uint32_t i = 0; i < n.count; i++)
        operands[i] = single_value(f, operands[i]);
    return unique(in, opjit_ir_make(f, (ir_op)n.op, (ir_type)n.type, n.count, operands));
}

ir_ref opjit_ir_inline(inliner *in, ir_ref statement, uint32_t count, const ir_ref *at)
{
    ir_func *f = in->f;
    const ir_ref value = ir_operand(f, statement, 0);
    const uint32_t instance = instance_of(in, statement, count, at);
    if (instance == 0)
        return 0;
    in->depth = 0;
    push(in, instance, value);
    while (in->depth > 0 && !f->failed) {
        const uint64_t top = in->stack[in->depth - 1];
        const uint32_t depth = in->depth;
        ir_ref made = opjit_ir_table_get(&in->memo, top);
        if (made == 0) {
            made = write_node(in, (uint32_t)(top >> 32), (ir_ref)top);
            opjit_ir_table_set(f, &in->memo, top, made);
        }
        if (made != 0 && in->depth == depth)
            in->depth--;
    }
    return written(in, instance, value);
}
