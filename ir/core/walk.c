/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - walks over a function: which nodes a walk has seen, what a statement reaches, substitution.  Each takes time
 * and memory in proportion to the nodes it visits, however many others the function has. */
#include "ir/core/internal.h"

#include <string.h>

/* --- what walks share --------------------------------------------------------------------------------------------- */

static void free_walks(ir_func *f)
{
    ir_walks *w = &f->walks;

    opjit_rt_release(f->allocator, w->stamp, w->count * sizeof *w->stamp);
    opjit_rt_release(f->allocator, w->memo, w->count * sizeof *w->memo);
    opjit_rt_release(f->allocator, w->stack, w->capacity * sizeof *w->stack);
    *w = (ir_walks){ 0 };
}

void opjit_ir_trim(ir_func *f)
{
    free_walks(f);
    opjit_rt_arena_free(&f->scratch);
}

/* Makes room for one stamp and one memo per node; keeps the old ones. */
static bool make_room(ir_func *f)
{
    ir_walks *w = &f->walks;
    const uint32_t count = f->node_capacity;
    uint32_t *stamp = opjit_rt_allocate(f->allocator, count * sizeof *stamp, _Alignof(uint32_t));
    ir_ref *memo = opjit_rt_allocate(f->allocator, count * sizeof *memo, _Alignof(ir_ref));

    if (stamp == NULL || memo == NULL) {
        opjit_rt_release(f->allocator, stamp, count * sizeof *stamp);
        opjit_rt_release(f->allocator, memo, count * sizeof *memo);
        f->failed = true;
        return false;
    }
    if (w->count > 0) {
        memcpy(stamp, w->stamp, w->count * sizeof *stamp);
        memcpy(memo, w->memo, w->count * sizeof *memo);
    }
    memset(stamp + w->count, 0, (count - w->count) * sizeof *stamp);
    opjit_rt_release(f->allocator, w->stamp, w->count * sizeof *stamp);
    opjit_rt_release(f->allocator, w->memo, w->count * sizeof *memo);
    w->stamp = stamp;
    w->memo = memo;
    w->count = count;
    return true;
}

uint32_t opjit_ir_walk_begin(ir_func *f)
{
    ir_walks *w = &f->walks;

    if (f->failed || (f->node_count > w->count && !make_room(f)))
        return 0;
    if (w->now == UINT32_MAX) { /* numbers start again, so old stamps must go */
        memset(w->stamp, 0, w->count * sizeof *w->stamp);
        w->now = 0;
    }
    return ++w->now;
}

static bool grow_stack(ir_func *f)
{
    ir_walks *w = &f->walks;
    const uint32_t capacity = w->capacity == 0 ? 256 : 2 * w->capacity;
    ir_ref *more = opjit_rt_allocate(f->allocator, capacity * sizeof *more, _Alignof(ir_ref));

    if (more == NULL) {
        f->failed = true;
        return false;
    }
    if (w->depth > 0)
        memcpy(more, w->stack, w->depth * sizeof *more);
    opjit_rt_release(f->allocator, w->stack, w->capacity * sizeof *more);
    w->stack = more;
    w->capacity = capacity;
    return true;
}

static inline void push(ir_func *f, ir_ref node)
{
    ir_walks *w = &f->walks;

    if (w->depth < w->capacity || grow_stack(f))
        w->stack[w->depth++] = node;
}

void opjit_ir_walk_push(ir_func *f, ir_ref node) { push(f, node); }

/* --- reach -------------------------------------------------------------------------------------------------------- */

static inline void visit(ir_func *f, uint32_t now, ir_ref node)
{
    if (node == 0 || f->walks.stamp[node] == now)
        return;
    f->walks.stamp[node] = now;
    push(f, node);
}

/* Visits everything below the nodes from place `next` of the stack on, and pushes it after them. */
static void visit_below(ir_func *f, uint32_t now, uint32_t next)
{
    for (; next < f->walks.depth && !f->failed; next++) {
        const ir_ref r = f->walks.stack[next];
        const ir_node *n = ir_at(f, r);
        const ir_ref *const operands = f->operands + n->first;
        for (uint32_t i = 0, count = n->count; i < count; i++)
            visit(f, now, operands[i]);
        if (n->op == IR_FOR || n->op == IR_STAGE)
            visit(f, now, n->ref);
        for (ir_ref s = n->body; s != 0; s = ir_at(f, s)->next)
            visit(f, now, s);
    }
}

/* Merge sort by runs.  Runs are long: nodes are mostly met in the order in which they were made, or in reverse. */
static void sort(ir_ref *items, ir_ref *spare, uint32_t count)
{
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t lo = 0; lo < count; lo += 2 * width) {
            const uint32_t mid = count - lo < width ? count : lo + width,
                           hi = count - lo < 2 * width ? count : lo + 2 * width;
            uint32_t a = lo, b = mid, to = lo;
            if (mid == count || items[mid - 1] < items[mid])
                continue;
            while (a < mid || b < hi)
                spare[to++] = b == hi || (a < mid && items[a] < items[b]) ? items[a++] : items[b++];
            memcpy(items + lo, spare + lo, (hi - lo) * sizeof *items);
        }
    }
}

/* Puts nodes from lo to hi in order, by a bit for each node between. */
static void put_in_order(ir_func *f, const ir_ref *found, uint32_t count, ir_ref lo, ir_ref hi, ir_ref *out)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    const uint32_t words = (hi - lo) / 64 + 1;
    uint64_t *const bits = ARENA_ARRAY(&f->scratch, uint64_t, words);
    if (bits == NULL) {
        f->failed = true;
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        bits[(found[i] - lo) / 64] |= (uint64_t)1 << (found[i] - lo) % 64;
    for (uint32_t w = 0; w < words; w++)
        for (uint64_t left = bits[w]; left != 0; left &= left - 1)
            *out++ = lo + 64 * w + (uint32_t)__builtin_ctzll(left);
    opjit_rt_arena_rewind(&f->scratch, mark);
}

/* Pops the nodes from place `base` of the stack on, oldest first.  Those of a stage mostly lie close to each other. */
static ir_reach take(ir_func *f, uint32_t base)
{
    enum { SPARSE = 64 }; /* nodes between two of them, for which a word of bits is less work than to sort */
    const uint32_t count = f->walks.depth - base;
    const ir_ref *const found = f->walks.stack + base;
    ir_ref lo = UINT32_MAX, hi = 0;

    for (uint32_t i = 0; i < count; i++) {
        lo = found[i] < lo ? found[i] : lo;
        hi = found[i] > hi ? found[i] : hi;
    }
    const bool close = count > 0 && hi - lo < SPARSE * (uint64_t)count;
    ir_ref *const nodes =
        f->failed ? NULL : opjit_rt_arena_reserve(&f->scratch, (close ? 1 : 2) * (size_t)count * sizeof *nodes);
    f->walks.depth = base;
    f->failed = f->failed || nodes == NULL;
    if (close && nodes != NULL) {
        put_in_order(f, found, count, lo, hi, nodes);
    } else if (count > 0 && nodes != NULL) {
        memcpy(nodes, found, count * sizeof *nodes);
        sort(nodes, nodes + count, count);
    }
    return f->failed ? (ir_reach){ NULL, 0 } : (ir_reach){ nodes, count };
}

ir_reach opjit_ir_reach(ir_func *f, ir_ref first)
{
    const uint32_t now = opjit_ir_walk_begin(f), base = f->walks.depth;

    for (ir_ref s = first; s != 0 && now != 0 && !f->failed; s = ir_at(f, s)->next)
        visit(f, now, s);
    visit_below(f, now, base);
    return take(f, base);
}

ir_reach opjit_ir_reach_one(ir_func *f, ir_ref node)
{
    const uint32_t now = opjit_ir_walk_begin(f), base = f->walks.depth;

    if (now != 0)
        visit(f, now, node);
    visit_below(f, now, base);
    return take(f, base);
}

const uint32_t *opjit_ir_reach_places(ir_func *f, const ir_reach *r)
{
    for (uint32_t k = 0; k < r->count; k++)
        f->walks.memo[r->nodes[k]] = k;
    return f->walks.memo;
}

uint32_t opjit_ir_count_updates(const ir_func *f, ir_ref first, ir_ref acc)
{
    uint32_t count = 0;

    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) /* as deep as loops nest: rule V16 */
        count += (ir_at(f, s)->op == IR_UPD && ir_at(f, s)->ref == acc) +
                 opjit_ir_count_updates(f, ir_at(f, s)->body, acc);
    return count;
}

uint32_t opjit_ir_reach_place(const ir_reach *r, ir_ref node)
{
    uint32_t lo = 0, hi = r->count;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (r->nodes[mid] < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < r->count && r->nodes[lo] == node ? lo : UINT32_MAX;
}

static bool is_size(const ir_func *f, ir_ref expr, uint32_t depth)
{
    const ir_node *node = ir_at(f, expr);
    bool size = node->op == IR_CONST || node->op == IR_PARAM || (node->count > 0 && node->op != IR_LOAD && depth > 0);

    for (uint32_t i = 0; i < node->count && size; i++)
        size = is_size(f, ir_operand(f, expr, i), depth - 1);
    return size;
}

bool opjit_ir_is_size(const ir_func *f, ir_ref index_expr)
{
    enum { DEPTH = 12 }; /* such an expression is a sum of two products, divided */
    return is_size(f, index_expr, DEPTH);
}
