/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - how tensors lie in memory: strides, views and their roots, bytes; and where temps and scratch are: takes a
 * scheduled function, sets tensor offsets and the sizes of shared and scratch memory. */
#include "ir/core/internal.h"

#include <stdlib.h>
#include <string.h>

enum { MEMORY_ALIGN = 64 };
#define MOST_BYTES (UINT64_C(1) << 40) /* of all temps; of all scratch: times workers and teams it fits */

/* --- one tensor --------------------------------------------------------------------------------------------------- */

void opjit_ir_dense_strides(ir_tensor *tensor)
{
    uint64_t stride = 1;
    for (uint32_t d = tensor->rank; d-- > 0;) {
        tensor->strides[d] = tensor->sizes[d] == 1 ? 0 : stride;
        stride *= tensor->sizes[d];
    }
}

bool opjit_ir_is_dense(const ir_tensor *tensor)
{
    uint64_t stride = 1;
    for (uint32_t d = tensor->rank; d-- > 0; stride *= tensor->sizes[d])
        if (tensor->sizes[d] > 1 && tensor->strides[d] != stride)
            return false;
    return true;
}

uint64_t opjit_ir_count_elements(const ir_tensor *tensor)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < tensor->rank; d++)
        count *= tensor->sizes[d];
    return count;
}

/* A view shows an older tensor.  One that does not (text may say so) counts as its own root, for the verifier to
 * refuse. */
uint32_t opjit_ir_root(const ir_func *f, uint32_t tensor)
{
    while (f->tensors[tensor].role == IR_VIEW && f->tensors[tensor].of < tensor)
        tensor = f->tensors[tensor].of;
    return tensor;
}

bool opjit_ir_root_offset(const ir_func *f, uint32_t tensor, int64_t *out)
{
    const uint32_t root = opjit_ir_root(f, tensor);
    *out = 0;
    for (; tensor != root; tensor = f->tensors[tensor].of)
        if (!checked_addi(*out, f->tensors[tensor].offset, out))
            return false;
    return true;
}

bool opjit_ir_span_bytes(const ir_tensor *tensor, uint64_t *out)
{
    uint64_t last = 0, reach;
    for (uint32_t d = 0; d < tensor->rank; d++)
        if (tensor->sizes[d] == 0 || !checked_mul(tensor->sizes[d] - 1, tensor->strides[d], &reach) ||
            !checked_add(last, reach, &last))
            return false;
    return checked_add(last, 1, &last) && checked_mul(last, opjit_ir_type_size(tensor->type), out);
}

/* --- temporary memory --------------------------------------------------------------------------------------------- */

/* The first and last step that touch a tensor; first > last: none does.  For temps a step is a stage, because the
 * iterations of a stage run at the same time.  For scratch, which every iteration has for itself, a step is a statement
 * of the stage.  The threads of a team are at several statements at a time, so there, too, it is a stage. */
typedef struct span {
    uint32_t first, last;
} span;

static void touch(span *s, uint32_t stage)
{
    s->first = stage < s->first ? stage : s->first;
    s->last = stage > s->last ? stage : s->last;
}

typedef struct span_walk {
    const ir_func *f;
    span *spans;
    uint32_t *seen; /* by node: step of the last visit + 1 */
    uint32_t stage, step;
} span_walk;

static void touch_expr(span_walk *w, ir_ref expr)
{
    const ir_node *node = ir_at(w->f, expr);
    if (w->seen[expr] == w->step + 1)
        return;
    w->seen[expr] = w->step + 1;
    if (node->op == IR_LOAD || node->op == IR_STORE) {
        const uint32_t root = opjit_ir_root(w->f, node->ref);
        touch(&w->spans[root], w->f->tensors[root].role == IR_SCRATCH ? w->step : w->stage);
    }
    for (uint32_t i = 0; i < node->count; i++)
        touch_expr(w, ir_operand(w->f, expr, i));
}

/* own: each statement is a step of its own. */
static void touch_block(span_walk *w, ir_ref first, bool own)
{
    for (ir_ref s = first; s; s = ir_at(w->f, s)->next) {
        touch_expr(w, s);
        touch_block(w, ir_at(w->f, s)->body, false);
        w->step += own;
    }
}

/* The memory of one role as the steps pass: the free gaps below its end, lowest first. */
typedef struct gap {
    uint64_t begin, end;
} gap;
typedef struct area {
    gap *gaps; /* room for one more than there are tensors; neighbours are merged */
    uint32_t count;
    uint64_t end, size; /* end: of what is in use now; size: the most that ever was */
    uint32_t *ending;   /* by step: the first tensor that nothing reads after it */
    uint32_t *next;     /* by tensor: the next one that ends at the same step */
} area;

/* Places the tensor at the lowest free offset; false: too large. */
static bool take(area *a, ir_tensor *tensor)
{
    uint64_t size, end;
    uint32_t at = 0;
    if (!checked_add(tensor->bytes, MEMORY_ALIGN - 1, &size))
        return false;
    size -= size % MEMORY_ALIGN;
    while (at < a->count && a->gaps[at].end - a->gaps[at].begin < size)
        at++;
    const uint64_t offset = at < a->count ? a->gaps[at].begin : a->end;
    if (!checked_add(offset, size, &end) || offset + tensor->bytes > MOST_BYTES)
        return false;
    tensor->offset = (int64_t)offset;
    tensor->align = MEMORY_ALIGN;
    a->size = offset + tensor->bytes > a->size ? offset + tensor->bytes : a->size;
    if (at == a->count) {
        a->end = end;
        return true;
    }
    a->gaps[at].begin = end;
    if (a->gaps[at].begin == a->gaps[at].end)
        memmove(&a->gaps[at], &a->gaps[at + 1], (--a->count - at) * sizeof *a->gaps);
    return true;
}

static void give_back(area *a, const ir_tensor *tensor)
{
    const uint64_t begin = (uint64_t)tensor->offset, end = align_up(begin + tensor->bytes, MEMORY_ALIGN);
    uint32_t lo = 0, hi = a->count;
    if (begin == end)
        return;
    while (lo < hi) { /* the first gap after it */
        const uint32_t mid = lo + (hi - lo) / 2;
        if (a->gaps[mid].begin < begin)
            lo = mid + 1;
        else
            hi = mid;
    }
    const bool before = lo > 0 && a->gaps[lo - 1].end == begin, behind = lo < a->count && a->gaps[lo].begin == end;
    if (before && behind) {
        a->gaps[lo - 1].end = a->gaps[lo].end;
        memmove(&a->gaps[lo], &a->gaps[lo + 1], (--a->count - lo) * sizeof *a->gaps);
    } else if (before) {
        a->gaps[lo - 1].end = end;
    } else if (behind) {
        a->gaps[lo].begin = begin;
    } else {
        memmove(&a->gaps[lo + 1], &a->gaps[lo], (a->count++ - lo) * sizeof *a->gaps);
        a->gaps[lo] = (gap){ begin, end };
    }
    if (a->count > 0 && a->gaps[a->count - 1].end == a->end)
        a->end = a->gaps[--a->count].begin;
}

/* --- the largest first -------------------------------------------------------------------------------------------- */

/* Large tensors that come late find no gap among small ones that came first.  So a function's temps are placed once
 * more, the largest first, each at the lowest offset that is free while it lives; the smaller of the two layouts is
 * taken.  Its time is that of the pairs of tensors that live at one time, of which there are MOST_PAIRS per tensor. */
enum { MOST_PAIRS = 32 };

typedef struct pair {
    uint32_t with, next; /* a tensor's list; 0: its end */
} pair;
typedef struct sized {
    uint64_t bytes;
    uint32_t tensor;
} sized;
typedef struct by_size {
    ir_func *f;
    const span *spans;
    sized *order;
    uint32_t count, pair_count;
    pair *pairs;     /* [0] unused */
    uint32_t *lists; /* by tensor: its first pair */
    uint64_t *at;    /* by tensor: its offset; UINT64_MAX: none yet */
    gap *taken;      /* of the tensors that live with one */
} by_size;

static int by_offset(const void *a, const void *b)
{
    const gap *x = a, *y = b;
    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin) : (x->end > y->end) - (x->end < y->end);
}

static int largest_first(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
                                : (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* The pairs of tensors that live at one time; first, next: tensors by their first step.  false: too many. */
static bool find_pairs(by_size *b, const uint32_t *first, const uint32_t *next, uint32_t steps, uint32_t *live)
{
    uint32_t count = 0;
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < count; i++)
            if (b->spans[live[i]].last >= step)
                live[kept++] = live[i];
        count = kept;
        for (uint32_t t = first[step]; t != 0; t = next[t]) {
            if (b->pair_count + 2 * (uint64_t)count > 2 * MOST_PAIRS * (uint64_t)b->count)
                return false;
            for (uint32_t i = 0; i < count; i++) {
                b->pairs[++b->pair_count] = (pair){ live[i], b->lists[t] };
                b->lists[t] = b->pair_count;
                b->pairs[++b->pair_count] = (pair){ t, b->lists[live[i]] };
                b->lists[live[i]] = b->pair_count;
            }
            live[count++] = t;
        }
    }
    return true;
}

/* The lowest offset that no tensor has that lives with it. */
static uint64_t lowest(const by_size *b, uint32_t tensor)
{
    const uint64_t size = align_up(b->f->tensors[tensor].bytes, MEMORY_ALIGN);
    uint32_t count = 0;
    uint64_t offset = 0;
    for (uint32_t p = b->lists[tensor]; p != 0; p = b->pairs[p].next) {
        const uint32_t other = b->pairs[p].with;
        if (b->at[other] != UINT64_MAX)
            b->taken[count++] =
                (gap){ b->at[other], b->at[other] + align_up(b->f->tensors[other].bytes, MEMORY_ALIGN) };
    }
    qsort(b->taken, count, sizeof *b->taken, by_offset);
    for (uint32_t i = 0; i < count && b->taken[i].begin < offset + size; i++)
        offset = b->taken[i].end > offset ? b->taken[i].end : offset;
    return offset;
}

/* Takes that layout where it is smaller than *size. */
static void place_by_size(ir_func *f, const span *spans, const uint32_t *first, const uint32_t *next, uint32_t steps,
                          uint64_t *size)
{
    by_size b = { .f = f, .spans = spans };
    uint64_t most = 0;
    for (uint32_t step = 0; step < steps; step++)
        for (uint32_t t = first[step]; t != 0; t = next[t])
            b.count++;
    b.order = ARENA_ARRAY(&f->scratch, sized, b.count);
    b.pairs = ARENA_ARRAY(&f->scratch, pair, 2 * MOST_PAIRS * (size_t)b.count + 1);
    b.lists = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    b.at = ARENA_ARRAY(&f->scratch, uint64_t, f->tensor_count);
    b.taken = ARENA_ARRAY(&f->scratch, gap, b.count);
    uint32_t *live = ARENA_ARRAY(&f->scratch, uint32_t, b.count), count = 0;
    f->failed = f->failed || !b.order || !b.pairs || !b.lists || !b.at || !b.taken || !live;
    if (f->failed || !find_pairs(&b, first, next, steps, live))
        return;
    for (uint32_t step = 0; step < steps; step++)
        for (uint32_t t = first[step]; t != 0; t = next[t]) {
            b.at[t] = UINT64_MAX;
            b.order[count++] = (sized){ f->tensors[t].bytes, t };
        }
    qsort(b.order, count, sizeof *b.order, largest_first);
    for (uint32_t i = 0; i < count && most < *size; i++) {
        const uint32_t t = b.order[i].tensor;
        b.at[t] = lowest(&b, t);
        most = b.at[t] + b.order[i].bytes > most ? b.at[t] + b.order[i].bytes : most;
    }
    for (uint32_t i = 0; i < count && most < *size; i++)
        f->tensors[b.order[i].tensor].offset = (int64_t)b.at[b.order[i].tensor];
    *size = most < *size ? most : *size;
}

/* --- all tensors of a role ---------------------------------------------------------------------------------------- */

/* Places the tensors of the role in the order of the first steps that touch them.  A tensor that was last read in an
 * earlier step frees its memory. */
static bool place_role(ir_func *f, const span *spans, uint32_t steps, ir_role role, uint64_t *out_size)
{
    area a = { 0 };
    uint32_t *first = ARENA_ARRAY(&f->scratch, uint32_t, steps),
             *next = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    a.gaps = ARENA_ARRAY(&f->scratch, gap, (size_t)f->tensor_count + 1);
    a.ending = ARENA_ARRAY(&f->scratch, uint32_t, steps);
    a.next = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    f->failed = f->failed || !first || !next || !a.gaps || !a.ending || !a.next;
    for (uint32_t t = f->tensor_count; t-- > 1 && !f->failed;) {
        if (f->tensors[t].role != role || spans[t].first > spans[t].last)
            continue;
        next[t] = first[spans[t].first];
        first[spans[t].first] = t;
    }
    for (uint32_t step = 0; step < steps && !f->failed; step++) {
        for (uint32_t t = step > 0 ? a.ending[step - 1] : 0; t != 0; t = a.next[t])
            give_back(&a, &f->tensors[t]);
        for (uint32_t t = first[step]; t != 0; t = next[t]) {
            if (f->tensors[t].bytes > MOST_BYTES || !take(&a, &f->tensors[t]))
                return false;
            a.next[t] = a.ending[spans[t].last];
            a.ending[spans[t].last] = t;
        }
    }
    if (role == IR_TEMP && !f->failed)
        place_by_size(f, spans, first, next, steps, &a.size);
    *out_size = a.size;
    return true;
}

/* Nothing that is kept gives its memory back. */
static bool place_kept(ir_func *f)
{
    uint32_t slots = 0;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_role role = f->tensors[t].role;
        if ((role == IR_IN || role == IR_OUT || role == IR_CONSTANT) && f->tensors[t].slot >= slots)
            slots = f->tensors[t].slot + 1;
    }
    f->kept_size = 0;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        ir_tensor *tensor = &f->tensors[t];
        if (tensor->role != IR_KEPT)
            continue;
        if (tensor->bytes > MOST_BYTES || f->kept_size > MOST_BYTES)
            return false;
        tensor->offset = (int64_t)f->kept_size;
        tensor->align = MEMORY_ALIGN;
        tensor->slot = slots;
        f->kept_size = align_up(f->kept_size + tensor->bytes, MEMORY_ALIGN);
    }
    return f->kept_size <= MOST_BYTES;
}

opjit_status opjit_ir_layout(ir_func *f, opjit_error *error)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    span_walk w = { .f = f };
    w.spans = ARENA_ARRAY(&f->scratch, span, f->tensor_count);
    w.seen = ARENA_ARRAY(&f->scratch, uint32_t, f->node_count);
    if (!w.spans || !w.seen)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < f->tensor_count; i++)
        w.spans[i] = (span){ UINT32_MAX, 0 };
    for (ir_ref s = f->body; s; s = ir_at(f, s)->next, w.stage++) {
        touch_expr(&w, s);
        w.step++;
        touch_block(&w, ir_at(f, s)->body, ir_at(f, s)->vec == 0);
        w.step++;
    }
    f->shared_size = f->scratch_size = 0;
    const bool placed = place_kept(f) && place_role(f, w.spans, w.stage, IR_TEMP, &f->shared_size) &&
                        place_role(f, w.spans, w.step, IR_SCRATCH, &f->scratch_size);
    opjit_rt_arena_rewind(&f->scratch, mark);
    if (!placed)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{!kernel}{!workspace}temporary memory needs more than 2^40 bytes");
    return f->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
