/* SPDX-License-Identifier: Apache-2.0 */
/* group_rows.c - finds definitions and outputs that one stage can make row by row: those that follow each other and
 * have the same rows, a reduction among them.  Part of place; rows.c writes the stage. */
#include "ir/passes/place/place.h"

#include <string.h>

enum {
    MOST_ROW_BYTES = 256 * 1024, /* of the rows that a stage keeps */
    MOST_ROW_LOOPS = 16,         /* of a stage over rows: some become two or three, as many as rule V16 allows */
};

/* Whether the root, with `rows` leading coordinates, fits the group; *length: elements of its row, which it reduces or
 * which are its last dimension. */
bool opjit_ir_fits_rows(const ir_func *f, ir_ref statement, const ir_tensor *first, int64_t *length)
{
    const ir_node *n = ir_at(f, statement);
    const ir_tensor *t = &f->tensors[n->ref];
    const uint32_t last = t->rank - 1;
    if (n->op == IR_SCATTER || t->rank != first->rank || t->rank < 2 || (n->op == IR_YIELD && n->imm != 0) ||
        memcmp(t->sizes, first->sizes, last * sizeof *t->sizes) != 0 || opjit_ir_is_counted(f, statement))
        return false;
    const int32_t along = opjit_ir_scanned(f, statement);
    if (n->kind != 0 && (along < 0 ? t->sizes[last] != 1 : along != (int32_t)last))
        return false;
    const int64_t own = n->kind != 0 && along < 0 ? ir_index_value(f, ir_operand(f, statement, n->count - 1))
                                                  : (int64_t)t->sizes[last];
    if (own > 1 && *length > 1 && own != *length)
        return false;
    *length = own > *length ? own : *length;
    return true;
}

/* Loops that make a member's row: a long reduction consists of blocks, and of what remains after the last one. */
static uint32_t loops_of(const ir_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f, statement);
    const ir_tensor *t = &f->tensors[n->ref];
    if (n->kind == 0 || opjit_ir_scanned(f, statement) >= 0)
        return t->sizes[t->rank - 1] > 1;
    return ir_index_value(f, ir_operand(f, statement, n->count - 1)) > n->block ? 3 : 1;
}

/* Whether the item must be stored if a group ends before item number `end`. */
static bool leaves(const ir_func *f, const item *x, uint32_t end)
{
    return ir_at(f, x->statement)->op == IR_YIELD || x->last_root >= end;
}

/* How many members a group that must be cut short should have: at least half of those that fit, so that the fewest
 * elements per row pass through memory. */
static uint32_t best_cut(const placer *p, const uint32_t *ends, uint32_t first, uint32_t count)
{
    const ir_func *f = p->f;
    uint64_t least = UINT64_MAX;
    uint32_t best = count;
    for (uint32_t c = count; c > count / 2; c--) {
        uint64_t elements = 0;
        for (uint32_t i = first; i < ends[c - 1]; i++) {
            const ir_node *n = ir_at(f, p->items[i].statement);
            if (p->items[i].is_root && n->op == IR_DEF && leaves(f, &p->items[i], ends[c - 1]))
                elements += f->tensors[n->ref].sizes[f->tensors[n->ref].rank - 1];
        }
        if (elements < least) {
            least = elements;
            best = c;
        }
    }
    return best;
}

/* Whether one more root fits the group in its rows and in size. */
static bool joins(const placer *p, ir_ref statement, const ir_tensor *first, int64_t *length, uint32_t *loops,
                  uint64_t *bytes, bool *full)
{
    const ir_func *f = p->f;
    const ir_node *n = ir_at(f, statement);
    if (!opjit_ir_fits_rows(f, statement, first, length))
        return false;
    if (n->kind == 0 || opjit_ir_scanned(f, statement) >= 0)
        *bytes += f->tensors[n->ref].sizes[first->rank - 1] * opjit_ir_type_size(f->tensors[n->ref].type);
    *loops += loops_of(f, statement);
    *full = *loops > MOST_ROW_LOOPS || *bytes > MOST_ROW_BYTES;
    return !*full;
}

/* Finds at most `most` roots from number `first` on that one stage can make row by row: with the same rows, one of them
 * a reduction.  Returns the item after the last of them; `first` if there is no group. */
static uint32_t find_group(const placer *p, uint32_t first, uint32_t most, place_rows_of *out)
{
    const ir_func *f = p->f;
    const ir_tensor *t = &f->tensors[ir_at(f, p->items[first].statement)->ref];
    uint32_t ends[ROW_MEMBERS], loops = 0;
    int64_t length = 1;
    uint64_t bytes = 0;
    bool reduces = false, full = false;
    out->count = 0;
    for (uint32_t i = first; i < p->count && out->count < most; i++) {
        const item *x = &p->items[i];
        if (!x->is_root)
            continue;
        if (x->recurrence != 0 || x->is_copy || !joins(p, x->statement, t, &length, &loops, &bytes, &full))
            break;
        out->members[out->count] = (row_member){ .statement = x->statement };
        ends[out->count++] = i + 1;
    }
    if (out->count > 0 && (full || out->count == ROW_MEMBERS))
        out->count = best_cut(p, ends, first, out->count);
    const uint32_t end = out->count > 0 ? ends[out->count - 1] : first;
    out->rows = t->rank - 1;
    for (uint32_t m = 0, i = first; i < end; i++) {
        const item *x = &p->items[i];
        if (!x->is_root)
            continue;
        reduces = reduces || ir_at(f, x->statement)->kind != 0;
        out->members[m++].outside = leaves(f, x, end);
    }
    return reduces && out->count > 1 ? end : first;
}

uint32_t opjit_ir_group_rows(placer *p, uint32_t first, block *stages)
{
    place_rows_of *rows = &p->rows;
    for (uint32_t most = ROW_MEMBERS; most > 1 && !p->f->failed; most = rows->refused) {
        const uint32_t end = find_group(p, first, most, rows);
        if (end == first)
            break;
        if (!p->threads && opjit_ir_place_row_lanes(rows, stages)) {
            ir_took(p->f, IR_STEP_ROW_LANES);
            return end;
        }
        if (opjit_ir_place_rows(rows, stages)) {
            ir_took(p->f, IR_STEP_GROUP_ROWS);
            return end;
        }
    }
    return first;
}
