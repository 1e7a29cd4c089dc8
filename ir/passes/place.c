/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - from value form to loop form: which definitions are computed where they are read, which get
 * memory. Needs: value form.  Leaves: a stage for every output (or box of one) and for every definition that gets
 * memory, each a full nest of loops in the order of the coordinates; in it lets for what is dear and shared, and
 * one store.
 *
 * A definition is computed where it is read if that happens once an element (at the reader's own coordinates, for
 * all of its readers), or if it is cheap.  It gets memory (a temp, written by a stage before its readers') where it
 * is dear and read at several places, or read again by each row of a larger reader, or seen through a view whose
 * coordinates are no function of its own. */
#include "ir/passes/pass.h"

#include <string.h>

enum {
    CHEAP = 12,          /* operations on elements that may be computed again */
    MAX_INSTANCES = 32,  /* of a cheap definition in all stages */
    MAX_WEIGHT = 1000000,
    MOST_ROW_BYTES = 256 * 1024, /* of the rows that a stage keeps */
    MOST_ROW_LOOPS = 16,         /* of a stage over rows: some become two or three, and rule V16 allows 24 */
    MAX_UNSAFE = 200,    /* weight of a value that may only be computed under a select, so can't be shared by lets */
};

/* A load of a definition in the value of an item. */
typedef struct site {
    ir_ref load;
    uint32_t def; /* item */
    bool identity, unsafe, spread, divided, opaque;
} site;

/* A DEF or YIELD, and what is known of its readers, all of which come after it. */
typedef struct item {
    ir_ref statement;
    uint32_t first_site, site_count;
    uint32_t weight;    /* operations on elements, with those of the definitions in it */
    bool dear, plain;   /* plain: nothing but elements of dense memory at its own coordinates */
    /* from readers, last to first */
    uint32_t reads, root, instances;
    uint32_t first_root, last_root; /* of all readers */
    ir_ref load;        /* the first of them */
    uint32_t reader;
    bool same, aligned, mixed, unsafe, spread, divided, opaque;
    bool temp, is_root; /* gets memory; gets a stage */
} item;

typedef struct placer {
    ir_func *f;
    opjit_error *error;
    item *items;
    uint32_t count;
    site *sites;
    uint32_t site_count, site_capacity;
    uint32_t *item_of; /* by tensor: its DEF's item + 1 */
    uint32_t *seen;    /* by node: item + 1 of the last visit */
    ir_ref *stack;
    inline_source *sources;
    uint32_t roots;
    bool threads; /* a GPU: a column of a reduction is a thread's, and needs no row of results */
} placer;

/* --- what an item reads ----------------------------------------------------------------------------------------- */

static bool is_dear(ir_op op)
{
    return op == IR_DIV || op == IR_REM || op == IR_SQRT || op == IR_IPOW || op == IR_TO_INDEX /* a gather's */ ||
           (opjit_ir_op_infos[op].flags & IR_FLAG_M) != 0;
}

static site *new_site(placer *p)
{
    if (p->site_count == p->site_capacity) {
        const uint32_t capacity = p->site_capacity == 0 ? 64 : 2 * p->site_capacity;
        site *more = ARENA_ARRAY(&p->f->scratch, site, capacity);
        if (more == NULL) {
            p->f->failed = true;
            return NULL;
        }
        if (p->site_count > 0)
            memcpy(more, p->sites, p->site_count * sizeof *more);
        p->sites = more;
        p->site_capacity = capacity;
    }
    return &p->sites[p->site_count++];
}

/* Whether the load is at the item's own coordinates, but for dimensions of one element. */
static bool at_own(const ir_func *f, ir_ref statement, ir_ref load)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref], *own = &f->tensors[ir_at(f, statement)->ref];
    if (t->rank != own->rank)
        return false;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->sizes[d] != 1 && ir_operand(f, load, d) != opjit_ir_coordinate(f, statement, d))
            return false;
    return true;
}

/* Whether some coordinate of the item, with more than one value, is in none of the load's: it is read again and
 * again. */
static bool is_spread(const ir_func *f, ir_ref statement, ir_ref load)
{
    for (uint32_t d = 0; d < f->tensors[ir_at(f, statement)->ref].rank; d++) {
        const ir_ref var = opjit_ir_coordinate(f, statement, d);
        const ir_interval range = opjit_ir_interval(f, var);
        bool used = range.lo == range.hi;
        for (uint32_t i = 0; !used && i < ir_at(f, load)->count; i++)
            used = opjit_ir_uses(f, ir_operand(f, load, i), var);
        if (!used)
            return true;
    }
    return false;
}

static bool same_bytes(const ir_tensor *a, const ir_tensor *b)
{
    return a->rank == b->rank && memcmp(a->sizes, b->sizes, sizeof a->sizes) == 0 &&
           memcmp(a->strides, b->strides, sizeof a->strides) == 0;
}

/* Whether all dimensions are one in memory. */
static bool is_row_major(const ir_tensor *t)
{
    uint64_t stride = 1;
    for (uint32_t d = t->rank; d-- > 0; stride *= t->sizes[d])
        if (t->sizes[d] > 1 && t->strides[d] != stride)
            return false;
    return true;
}

static void add_site(placer *p, item *reader, ir_ref load)
{
    ir_func *f = p->f;
    const uint32_t tensor = ir_at(f, load)->ref, root = opjit_ir_root(f, tensor);
    const bool own = at_own(f, reader->statement, load);
    if (p->item_of[root] == 0) {
        reader->plain = reader->plain && own && is_row_major(&f->tensors[tensor]);
        return;
    }
    site *s = new_site(p);
    if (s == NULL)
        return;
    *s = (site){ .load = load, .def = p->item_of[root] - 1, .identity = own, .spread = is_spread(f, reader->statement, load),
                 .unsafe = !opjit_ir_in_bounds(f, load) };
    if (tensor != root) {
        const bool shifted = f->tensors[tensor].of != root || f->tensors[tensor].offset != 0;
        s->identity = own && !shifted && same_bytes(&f->tensors[tensor], &f->tensors[root]);
        s->opaque = !opjit_ir_view_coordinates(f, tensor, NULL, NULL, &s->divided);
    }
    reader->plain = reader->plain && own && !s->divided;
    reader->site_count++;
}

static void visit_node(placer *p, item *x, ir_ref r)
{
    const ir_func *f = p->f;
    const ir_node *n = ir_at(f, r);
    x->dear = x->dear || is_dear((ir_op)n->op);
    if (n->op == IR_LOAD)
        add_site(p, x, r);
    if (n->op == IR_LOAD || n->type == IR_INDEX || n->count == 0)
        return;
    x->weight++;
    for (uint32_t i = 0; i < n->count; i++)
        x->plain = x->plain && ir_at(f, ir_operand(f, r, i))->type != IR_INDEX;
}

/* Visits every node of the value once. */
static void read_item(placer *p, uint32_t number)
{
    ir_func *f = p->f;
    item *x = &p->items[number];
    uint32_t depth = 0;
    x->first_site = p->site_count;
    x->plain = true;
    p->stack[depth++] = ir_operand(f, x->statement, 0);
    while (depth > 0 && !f->failed) {
        const ir_ref r = p->stack[--depth];
        if (p->seen[r] == number + 1)
            continue;
        p->seen[r] = number + 1;
        visit_node(p, x, r);
        for (uint32_t i = 0; i < ir_at(f, r)->count; i++)
            if (p->seen[ir_operand(f, r, i)] != number + 1)
                p->stack[depth++] = ir_operand(f, r, i);
    }
}

/* Adds what its definitions weigh, but for those that will get memory, as far as that can be said now. */
static void weigh_item(placer *p, item *x)
{
    for (uint32_t i = 0; i < x->site_count; i++) {
        const item *d = &p->items[p->sites[x->first_site + i].def];
        const bool apart = !d->same && !d->aligned && d->weight > CHEAP;
        x->weight += apart ? 1 : d->weight;
        x->dear = x->dear || (!apart && d->dear);
        x->plain = x->plain && d->plain;
    }
    x->weight = x->weight < MAX_WEIGHT ? x->weight : MAX_WEIGHT;
}

/* --- decisions -------------------------------------------------------------------------------------------------- */

static bool same_coordinates(const ir_func *f, ir_ref a, ir_ref b)
{
    if (ir_at(f, a)->ref != ir_at(f, b)->ref)
        return false;
    for (uint32_t d = 0; d < ir_at(f, a)->count; d++)
        if (!opjit_ir_same(f, ir_operand(f, a, d), ir_operand(f, b, d)))
            return false;
    return true;
}

/* First walk: how the definition is read, item by item. */
static void note_reader(const placer *p, item *d, const site *s, uint32_t reader)
{
    const bool first = d->reads++ == 0;
    if (first) {
        d->load = s->load;
        d->reader = reader;
        d->same = d->aligned = true;
    }
    d->same = d->same && d->reader == reader && (first || same_coordinates(p->f, d->load, s->load));
    d->aligned = d->aligned && s->identity;
    d->unsafe = d->unsafe || s->unsafe;
    d->divided = d->divided || s->divided;
    d->opaque = d->opaque || s->opaque;
}

/* Second walk, last item first: from an item that is decided to what it reads. */
static void note_root(item *d, const site *s, const item *reader)
{
    const uint32_t first = reader->is_root ? reader->root : reader->first_root;
    const uint32_t last = reader->is_root ? reader->root : reader->last_root;
    d->last_root = d->instances == 0 || last > d->last_root ? last : d->last_root;
    d->first_root = d->instances == 0 || first < d->first_root ? first : d->first_root;
    d->mixed = d->first_root != d->last_root;
    d->root = first;
    d->aligned = d->aligned && reader->aligned;
    d->spread = d->spread || s->spread || (reader->spread && !reader->temp);
    d->instances += reader->instances;
    d->instances = d->instances < MAX_WEIGHT ? d->instances : MAX_WEIGHT;
}

static bool gets_memory(const item *d, uint32_t reader_instances)
{
    const bool single = (d->aligned && !d->mixed) || (d->same && reader_instances == 1);
    if (d->opaque || (d->divided && !(d->plain && single)) || (d->unsafe && d->weight > MAX_UNSAFE))
        return true;
    if (single)
        return d->dear && d->spread;
    return d->dear || d->weight > CHEAP || d->instances > MAX_INSTANCES;
}

static void decide(placer *p, uint32_t number)
{
    item *x = &p->items[number];
    const bool is_def = ir_at(p->f, x->statement)->op == IR_DEF;
    const uint32_t above = x->reads > 0 ? p->items[x->reader].instances : 1;
    const bool reduces = opjit_ir_reduced(p->f, x->statement) != 0;
    x->temp = is_def && x->reads > 0 && (reduces || gets_memory(x, above));
    x->is_root = !is_def || x->temp;
    if (x->is_root) {
        x->root = number;
        x->aligned = true;
        x->mixed = x->spread = false;
        x->instances = 1;
        p->roots++;
    } else if ((x->aligned && !x->mixed) || (x->same && above == 1)) {
        x->aligned = x->aligned && !x->mixed;
        x->instances = 1;
    } else {
        x->aligned = false;
    }
    for (uint32_t i = 0; i < x->site_count; i++) {
        const site *s = &p->sites[x->first_site + i];
        note_root(&p->items[s->def], s, x);
    }
}

/* --- stages ----------------------------------------------------------------------------------------------------- */

static uint64_t box_size(const ir_func *f, ir_ref statement, uint32_t d)
{
    const ir_tensor *t = &f->tensors[ir_at(f, statement)->ref];
    return ir_at(f, statement)->imm != 0 ? (uint64_t)ir_index_value(f, ir_operand(f, statement, 1 + t->rank + 3 * d + 1))
                                         : t->sizes[d];
}

/* Where the element with these coordinates is stored: in a box, from its offset on. */
static opjit_status stored_at(placer *p, ir_ref statement, const ir_ref *vars, ir_ref *out)
{
    ir_func *f = p->f;
    const uint32_t tensor = ir_at(f, statement)->ref, rank = f->tensors[tensor].rank;
    memcpy(out, vars, rank * sizeof *out);
    for (uint32_t d = 0; d < rank && ir_at(f, statement)->imm != 0; d++) {
        const ir_ref offset = ir_operand(f, statement, 1 + rank + 3 * d), step = ir_operand(f, statement, 1 + rank + 3 * d + 2);
        if (ir_index_value(f, step) != 1)
            return opjit_rt_error_set(p->error, OPJIT_UNSUPPORTED,
                                      "output %u is written in steps of %lld; boxes of whole rows are placed", tensor,
                                      (long long)ir_index_value(f, step));
        out[d] = ir_make2(f, IR_IADD, IR_INDEX, vars[d], offset);
    }
    return OPJIT_OK;
}

static opjit_status place_nest(placer *p, const item *x, block *stages)
{
    ir_func *f = p->f;
    const ir_ref statement = x->statement;
    const uint32_t tensor = ir_at(f, statement)->ref, rank = f->tensors[tensor].rank;
    inliner in = { .f = f, .sources = p->sources, .private_views = p->roots > 1, .loop_count = rank };
    ir_ref parent = 0, at[8];
    for (uint32_t d = 0; d < rank; d++) {
        in.extents[d] = box_size(f, statement, d);
        const ir_ref lo = opjit_ir_index(f, 0), hi = opjit_ir_index(f, (int64_t)in.extents[d]);
        const ir_ref loop = d == 0 ? opjit_ir_stage(f, lo, hi, 1) : opjit_ir_for(f, lo, hi, 1);
        block inside = { .parent = parent };
        opjit_ir_block_add(f, d == 0 ? stages : &inside, loop);
        parent = loop;
        in.loops[d] = f->failed ? 0 : ir_at(f, loop)->ref;
    }
    if (f->failed)
        return opjit_rt_no_memory(p->error);
    TRY(stored_at(p, statement, in.loops, at));
    block innermost = { .parent = parent };
    const ir_ref value = opjit_ir_share(f, &innermost, opjit_ir_inline(&in, statement, rank, in.loops));
    if (!f->failed)
        opjit_ir_block_add(f, &innermost, opjit_ir_store(f, tensor, value, at));
    return f->failed ? opjit_rt_no_memory(p->error) : OPJIT_OK;
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

/* Elements of a row of the root, which has `rows` leading coordinates: what it reduces, or its last dimension. */
static bool fits_rows(const ir_func *f, ir_ref statement, const ir_tensor *first, int64_t *length)
{
    const ir_node *n = ir_at(f, statement);
    const ir_tensor *t = &f->tensors[n->ref];
    const uint32_t last = t->rank - 1;
    if (t->rank != first->rank || t->rank < 2 || (n->op == IR_YIELD && n->imm != 0) ||
        memcmp(t->sizes, first->sizes, last * sizeof *t->sizes) != 0)
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

/* Loops that make a member's row: a long reduction is made of blocks, and of what is behind the last one. */
static uint32_t loops_of(const ir_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f, statement);
    const ir_tensor *t = &f->tensors[n->ref];
    if (n->kind == 0 || opjit_ir_scanned(f, statement) >= 0)
        return t->sizes[t->rank - 1] > 1;
    return ir_index_value(f, ir_operand(f, statement, n->count - 1)) > IR_REDUCE_BLOCK ? 3 : 1;
}

/* Whether the item has to be stored where a group ends before item number `end`. */
static bool leaves(const ir_func *f, const item *x, uint32_t end)
{
    return ir_at(f, x->statement)->op == IR_YIELD || x->last_root >= end;
}

/* How many of a group that is cut short had better be one: not less than half of it, so that the fewest elements of a
 * row go from it to the rest by way of memory. */
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

/* What one more root would make of the group: whether it fits it in rows, and in size. */
static bool joins(const placer *p, ir_ref statement, const ir_tensor *first, int64_t *length, uint32_t *loops,
                  uint64_t *bytes, bool *full)
{
    const ir_func *f = p->f;
    const ir_node *n = ir_at(f, statement);
    if (!fits_rows(f, statement, first, length))
        return false;
    if (n->kind == 0 || opjit_ir_scanned(f, statement) >= 0)
        *bytes += f->tensors[n->ref].sizes[first->rank - 1] * opjit_ir_type_size(f->tensors[n->ref].type);
    *loops += loops_of(f, statement);
    *full = *loops > MOST_ROW_LOOPS || *bytes > MOST_ROW_BYTES;
    return !*full;
}

/* At most `most` roots from number `first` on that one stage can make row by row: of the same rows, one of them a
 * reduction. Gives the item after the last of them; `first` where there is no group. */
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
        if (!joins(p, x->statement, t, &length, &loops, &bytes, &full))
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

/* Makes a stage of the roots from number `first` on that are of one row; gives the item after the last, `first` where
 * there are none.  A root that reads other rows is left to a stage behind. */
static uint32_t place_group(const placer *p, uint32_t first, place_rows_of *rows, block *stages)
{
    for (uint32_t most = ROW_MEMBERS; most > 1 && !p->f->failed; most = rows->refused) {
        const uint32_t end = find_group(p, first, most, rows);
        if (end == first)
            break;
        if (opjit_ir_place_rows(rows, stages))
            return end;
    }
    return first;
}

/* The output that alone reads the reduction, element by element, and is the next root; 0: there is none. */
static uint32_t output_of(const placer *p, uint32_t number)
{
    const ir_func *f = p->f;
    const item *x = &p->items[number];
    uint32_t next = number + 1;
    while (next < p->count && !p->items[next].is_root)
        next++;
    if (next == p->count || x->reads == 0 || !x->aligned || x->first_root != next || x->last_root != next)
        return 0;
    const ir_node *n = ir_at(f, p->items[next].statement), *own = ir_at(f, x->statement);
    const ir_tensor *out = &f->tensors[n->ref], *t = &f->tensors[own->ref];
    return n->op == IR_YIELD && n->kind == 0 && n->imm == 0 && out->rank == t->rank &&
                   memcmp(out->sizes, t->sizes, t->rank * sizeof *t->sizes) == 0
               ? next
               : 0;
}

/* The stage of root number `first` and of those that it takes along, up to *out_end. */
static opjit_status place_root(placer *p, place_rows_of *rows, uint32_t first, block *stages, uint32_t *out_end)
{
    const ir_ref statement = p->items[first].statement;
    const uint32_t end = place_group(p, first, rows, stages);
    if (end > first) {
        *out_end = end;
        return OPJIT_OK;
    }
    if (opjit_ir_reduced(p->f, statement) == 0)
        return place_nest(p, &p->items[first], stages);
    const uint32_t output = output_of(p, first);
    rows->count = output != 0 ? 2 : 1;
    rows->rows = p->f->tensors[ir_at(p->f, statement)->ref].rank;
    rows->members[0] = (row_member){ .statement = statement, .outside = true };
    rows->members[1] = (row_member){ .statement = output != 0 ? p->items[output].statement : 0, .outside = true };
    if (!p->threads && opjit_ir_place_columns(rows, stages)) {
        *out_end = output != 0 ? output + 1 : first + 1;
        return OPJIT_OK;
    }
    rows->count = 1;
    opjit_ir_place_rows(rows, stages);
    return OPJIT_OK;
}

/* The stages in the order of the items, so that memory is written before it is read. */
static opjit_status place_all(placer *p)
{
    ir_func *f = p->f;
    block stages = { 0 };
    for (uint32_t i = 0; i < p->count; i++) {
        const item *x = &p->items[i];
        const uint32_t tensor = ir_at(f, x->statement)->ref;
        if (ir_at(f, x->statement)->op != IR_DEF)
            continue;
        p->sources[tensor].def = x->temp ? 0 : x->statement;
        if (x->temp) {
            f->tensors[tensor].role = IR_TEMP;
            f->tensors[tensor].align = 64; /* as layout makes it */
        }
    }
    place_rows_of p_rows = { .f = f, .sources = p->sources, .private_views = p->roots > 1, .blocks = !p->threads };
    for (uint32_t i = 0, end; i < p->count && !f->failed; i = end) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        end = i + 1;
        if (p->items[i].is_root)
            TRY(place_root(p, &p_rows, i, &stages, &end));
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    f->body = stages.first;
    return f->failed ? opjit_rt_no_memory(p->error) : OPJIT_OK;
}

static opjit_status begin(placer *p)
{
    ir_func *f = p->f;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        p->count++;
    p->items = ARENA_ARRAY(&f->scratch, item, p->count);
    p->item_of = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    p->sources = ARENA_ARRAY(&f->scratch, inline_source, f->tensor_count);
    p->seen = ARENA_ARRAY(&f->scratch, uint32_t, f->node_count);
    p->stack = ARENA_ARRAY(&f->scratch, ir_ref, f->operand_count + 1);
    if (p->items == NULL || p->item_of == NULL || p->sources == NULL || p->seen == NULL || p->stack == NULL)
        return opjit_rt_no_memory(p->error);
    for (uint32_t t = 1; t < f->tensor_count; t++)
        if (f->tensors[t].role == IR_OUT)
            p->sources[f->tensors[t].alias].aliased = true;
    p->count = 0;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        p->items[p->count++].statement = s;
    return OPJIT_OK;
}

opjit_status opjit_ir_pass_place(ir_func *f, const ir_pass_env *env, bool *out_changed, opjit_error *error)
{
    placer p = { .f = f,
                 .error = error,
                 .threads = env->target != NULL && rt_target_team(env->target) > 0 };
    *out_changed = false;
    if (f->body == 0 || ir_at(f, f->body)->op == IR_STAGE)
        return OPJIT_OK;
    *out_changed = true;
    opjit_ir_cut_reductions(f);
    if (f->failed)
        return opjit_rt_no_memory(error);
    TRY(begin(&p));
    for (uint32_t i = 0; i < p.count && !f->failed; i++) {
        item *x = &p.items[i];
        read_item(&p, i);
        for (uint32_t k = 0; k < x->site_count; k++)
            note_reader(&p, &p.items[p.sites[x->first_site + k].def], &p.sites[x->first_site + k], i);
        if (ir_at(f, x->statement)->op == IR_DEF)
            p.item_of[ir_at(f, x->statement)->ref] = i + 1;
    }
    for (uint32_t i = 0; i < p.count && !f->failed; i++)
        weigh_item(&p, &p.items[i]);
    for (uint32_t i = p.count; i-- > 0 && !f->failed;)
        decide(&p, i);
    if (f->failed)
        return opjit_rt_no_memory(error);
    return place_all(&p);
}
