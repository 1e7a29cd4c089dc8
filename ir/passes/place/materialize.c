/* SPDX-License-Identifier: Apache-2.0 */
/* materialize.c - decides which definitions get memory.  Part of place.
 *
 * A definition is computed where it is read if that happens once per element (at the reader's own coordinates, for all
 * of its readers), or if it is cheap.  It gets memory (a temp, written by a stage before its readers') where it is
 * costly and read at several places, or read again by each row of a larger reader or by windows that overlap, or seen
 * through a view whose coordinates are no function of its own. */
#include "ir/passes/place/place.h"

#include <string.h>

enum {
    CHEAP = 12,         /* operations on elements that may be computed again */
    MAX_INSTANCES = 16, /* of a cheap definition in all stages */
    MAX_WEIGHT = 1000000,
    SET_BYTES = 1024, /* lines at this distance are in few sets of a cache */
    APART_BYTES = 64,
    MAX_LOOKUPS = 16, /* in an expression, each at the place that the next one says: lets can't share places */
    MAX_UNSAFE = 200, /* weight of a value that may only be computed under a select, so that lets can't share it */
};

/* --- what an item reads ----------------------------------------------------------------------------------------- */

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

/* Whether the load is at the item's own coordinates, except in dimensions of one element. */
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

/* Whether some coordinate of the item, with more than one value, occurs in none of the load's, or where all elements
 * are one: it is read repeatedly. */
static bool is_repeated(const ir_func *f, ir_ref statement, ir_ref load)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    for (uint32_t d = 0; d < f->tensors[ir_at(f, statement)->ref].rank; d++) {
        const ir_ref var = opjit_ir_coordinate(f, statement, d);
        const ir_interval range = opjit_ir_interval(f, var);
        bool used = range.lo == range.hi;
        for (uint32_t i = 0; !used && i < ir_at(f, load)->count; i++)
            used = t->strides[i] != 0 && opjit_ir_uses(f, ir_operand(f, load, i), var);
        if (!used)
            return true;
    }
    return false;
}

/* Whether an index of the load moves with what the item reduces and with one of its coordinates. */
static bool is_window(const ir_func *f, ir_ref statement, ir_ref load)
{
    const ir_ref k = opjit_ir_reduced(f, statement);
    for (uint32_t i = 0; k != 0 && i < ir_at(f, load)->count; i++) {
        const ir_ref index = ir_operand(f, load, i);
        if (!opjit_ir_uses(f, index, k))
            continue;
        for (uint32_t d = 0; d < f->tensors[ir_at(f, statement)->ref].rank; d++)
            if (opjit_ir_uses(f, index, opjit_ir_coordinate(f, statement, d)))
                return true;
    }
    return false;
}

/* How often such a load reads an element again, on average.  A product's factors are copied once by its tiles. */
static double reads_again(const ir_func *f, ir_ref statement, ir_ref load)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    if (ir_at(f, statement)->kind == IR_DOT || !is_window(f, statement, load))
        return 0;
    double reads = (double)opjit_ir_interval(f, opjit_ir_reduced(f, statement)).hi + 1;
    for (uint32_t d = 0; d < f->tensors[ir_at(f, statement)->ref].rank; d++)
        for (uint32_t i = 0; i < ir_at(f, load)->count; i++)
            if (opjit_ir_uses(f, ir_operand(f, load, i), opjit_ir_coordinate(f, statement, d))) {
                reads *= (double)f->tensors[ir_at(f, statement)->ref].sizes[d];
                break;
            }
    for (uint32_t d = 0; d < t->rank; d++)
        reads /= (double)t->sizes[d];
    return reads - 1;
}

static bool same_bytes(const ir_tensor *a, const ir_tensor *b)
{
    return a->rank == b->rank && memcmp(a->sizes, b->sizes, sizeof a->sizes) == 0 &&
           memcmp(a->strides, b->strides, sizeof a->strides) == 0;
}

static void add_site(placer *p, item *reader, ir_ref load)
{
    ir_func *f = p->f;
    const uint32_t tensor = ir_at(f, load)->ref, root = opjit_ir_root(f, tensor);
    const bool own = at_own(f, reader->statement, load);
    if (p->item_of[root] == 0) {
        reader->plain = reader->plain && own && opjit_ir_is_dense(&f->tensors[tensor]);
        return;
    }
    if (root == ir_at(f, reader->statement)->ref && ir_at(f, reader->statement)->op == IR_SCATTER) {
        reader->reads_itself = true;
        return;
    }
    site *s = new_site(p);
    if (s == NULL)
        return;
    *s = (site){ .load = load,
                 .def = p->item_of[root] - 1,
                 .identity = own,
                 .repeated = is_repeated(f, reader->statement, load),
                 .unsafe = !opjit_ir_in_bounds(f, load),
                 .across = opjit_ir_reduced(f, reader->statement) == 0 &&
                           opjit_ir_reads_across(f, reader->statement, load),
                 .window = is_window(f, reader->statement, load),
                 .again = reads_again(f, reader->statement, load) };
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
    x->dear = x->dear || ir_is_dear((ir_op)n->op);
    x->math = x->math || (opjit_ir_op_infos[n->op].flags & IR_FLAG_M) != 0;
    if (n->op == IR_TO_INDEX)
        x->lookups = 1;
    if (n->op == IR_LOAD)
        add_site(p, x, r);
    if (n->op == IR_LOAD || n->type == IR_INDEX || n->count == 0)
        return;
    x->weight++;
    x->work += n->type != IR_BOOL && n->op != IR_SELECT;
    for (uint32_t i = 0; i < n->count; i++)
        x->plain = x->plain && ir_at(f, ir_operand(f, r, i))->type != IR_INDEX;
}

/* Whether the value chooses between loads by the coordinate, as a Concat does. */
static bool is_joined_by(const ir_func *f, ir_ref value, ir_ref coordinate)
{
    if (ir_at(f, value)->op != IR_SELECT)
        return ir_at(f, value)->op == IR_LOAD;
    const ir_ref condition = ir_operand(f, value, 0);
    return ir_at(f, condition)->op == IR_LT && ir_operand(f, condition, 0) == coordinate &&
           ir_is_index_const(f, ir_operand(f, condition, 1)) && is_joined_by(f, ir_operand(f, value, 1), coordinate) &&
           is_joined_by(f, ir_operand(f, value, 2), coordinate);
}

/* Whether it joins what it reads along a dimension that lines have not: all of it is made for each line, though one
 * part is chosen. */
static bool joins_lines(const ir_func *f, ir_ref statement)
{
    const uint32_t last = ir_rank_in_use(&f->tensors[ir_at(f, statement)->ref]);
    const ir_ref value = ir_operand(f, statement, 0);
    bool joins = false;
    for (uint32_t d = 0; d + 1 < last && ir_at(f, value)->op == IR_SELECT; d++)
        joins = joins || is_joined_by(f, value, opjit_ir_coordinate(f, statement, d));
    return joins;
}

/* Whether the value is a load at the place that a byte in memory says, as byte_table makes it. */
static bool looks_up(const ir_func *f, ir_ref statement)
{
    const ir_ref value = ir_operand(f, statement, 0);
    if (ir_at(f, value)->op != IR_LOAD || ir_at(f, value)->count != 1 ||
        ir_at(f, ir_operand(f, value, 0))->op != IR_TO_INDEX)
        return false;
    ir_ref byte = ir_operand(f, ir_operand(f, value, 0), 0);
    byte = ir_at(f, byte)->op == IR_BITS ? ir_operand(f, byte, 0) : byte;
    return ir_at(f, byte)->op == IR_LOAD && opjit_ir_type_size((ir_type)ir_at(f, byte)->type) == 1;
}

/* Visits every node of the value, and of how many values it reduces, once. */
static void read_item(placer *p, uint32_t number)
{
    ir_func *f = p->f;
    item *x = &p->items[number];
    uint32_t depth = 0;
    x->first_site = p->site_count;
    x->plain = true;
    x->joins = !p->threads && joins_lines(f, x->statement);
    x->looks_up = !p->threads && looks_up(f, x->statement);
    p->stack[depth++] = ir_operand(f, x->statement, 0);
    if (ir_at(f, x->statement)->op == IR_SCATTER)
        for (uint32_t i = 0; i <= f->tensors[ir_at(f, x->statement)->ref].rank; i++)
            p->stack[depth++] = i == 0 ? opjit_ir_initial(f, x->statement) : opjit_ir_place(f, x->statement, i - 1);
    if (opjit_ir_is_counted(f, x->statement))
        p->stack[depth++] = ir_operand(f, x->statement, ir_at(f, x->statement)->count - 1);
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

/* Adds the weight of the definitions that it reads, except those that will get memory, as far as that is known. */
static void weigh_item(placer *p, item *x)
{
    const uint32_t own = x->lookups;
    for (uint32_t i = 0; i < x->site_count; i++) {
        const item *d = &p->items[p->sites[x->first_site + i].def];
        const bool apart = !d->same && !d->aligned && d->weight > CHEAP;
        x->weight += apart ? 1 : d->weight;
        x->work += apart ? 0 : d->work;
        x->dear = x->dear || (!apart && d->dear);
        x->math = x->math || (!apart && d->math);
        x->plain = x->plain && d->plain;
        if (d->lookups < MAX_LOOKUPS && own + d->lookups > x->lookups)
            x->lookups = own + d->lookups;
    }
    x->weight = x->weight < MAX_WEIGHT ? x->weight : MAX_WEIGHT;
    x->work = x->work < MAX_WEIGHT ? x->work : MAX_WEIGHT;
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

/* Whether it is a scatter whose updates are of single elements, each after the one before: none is in a vector. */
static bool changes_elements(const placer *p, ir_ref statement)
{
    const uint32_t rank = p->f->tensors[ir_at(p->f, statement)->ref].rank;
    return !p->threads && ir_at(p->f, statement)->op == IR_SCATTER && !opjit_ir_is_own(p->f, statement, rank - 1);
}

/* First walk: notes how the definition is read, item by item. */
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
    d->is_joined = d->is_joined || p->items[reader].joins;
    d->looked_up = d->looked_up || p->items[reader].looks_up;
    d->is_scattered = d->is_scattered || changes_elements(p, p->items[reader].statement);
    d->is_viewed = d->is_viewed || ir_at(p->f, s->load)->ref != ir_at(p->f, d->statement)->ref;
    d->is_across = d->is_across || s->across;
    d->in_windows = d->in_windows || s->window;
    d->again = s->again > d->again ? s->again : d->again;
    d->is_stepped = d->is_stepped || (p->items[reader].recurrence != 0 && d->recurrence == 0);
}

/* Second walk, last item first: from a decided item to what it reads. */
static void note_root(item *d, const site *s, const item *reader)
{
    const uint32_t first = reader->is_root ? reader->root : reader->first_root;
    const uint32_t last = reader->is_root ? reader->root : reader->last_root;
    d->last_root = d->instances == 0 || last > d->last_root ? last : d->last_root;
    d->first_root = d->instances == 0 || first < d->first_root ? first : d->first_root;
    d->mixed = d->first_root != d->last_root;
    d->root = first;
    d->aligned = d->aligned && reader->aligned;
    d->repeated = d->repeated || s->repeated || (reader->repeated && !reader->temp);
    d->instances += reader->instances;
    d->instances = d->instances < MAX_WEIGHT ? d->instances : MAX_WEIGHT;
}

/* What an item reads that is written where windows read it is read through them, too. */
static void note_windows(item *d, const item *reader)
{
    if (reader->is_root)
        return;
    d->in_windows = d->in_windows || reader->in_windows;
    d->again = reader->again > d->again ? reader->again : d->again;
}

/* Whether it alone reads a sum of products, at its own coordinates, or what ends one. */
static bool ends_product(const placer *p, const item *x)
{
    bool ends = false;
    for (uint32_t i = 0; i < x->site_count && opjit_ir_reduced(p->f, x->statement) == 0; i++) {
        const site *s = &p->sites[x->first_site + i];
        const item *d = &p->items[s->def];
        const bool product = opjit_ir_reduced(p->f, d->statement) != 0 && ir_at(p->f, d->statement)->kind == IR_DOT;
        ends = ends || (s->identity && d->same && d->aligned && (product || d->ends_product));
    }
    return ends;
}

static bool gets_memory(const item *d, uint32_t reader_instances)
{
    const bool single = (d->aligned && !d->mixed) || (d->same && reader_instances == 1);
    if (d->looks_up || d->looked_up)
        return true; /* a loop of lookups does nothing else */
    if (d->lookups == MAX_LOOKUPS)
        return true;
    if (d->opaque || (d->divided && !(d->plain && single)) || (d->unsafe && d->weight > MAX_UNSAFE))
        return true;
    if (d->is_stepped && (d->weight > 0 || !d->plain))
        return true; /* it would be computed again in each step */
    if (d->in_windows && d->ends_product)
        return true; /* instead of the products, which need none then */
    if (d->dear ? d->again > 0 : d->again * d->work > CHEAP)
        return true; /* each window would compute it again */
    if (d->is_joined && (d->dear || d->work > CHEAP / 2))
        return true; /* so would each of the others' lines */
    if (d->is_scattered && d->work > CHEAP)
        return true; /* each update would compute it by scalars */
    if (d->is_across && d->math)
        return true; /* tiles of it can't be transposed in registers */
    if (single)
        return d->dear && d->repeated;
    return d->dear || d->weight > CHEAP || d->instances > MAX_INSTANCES;
}

static void decide(placer *p, uint32_t number)
{
    item *x = &p->items[number];
    const bool is_def = ir_is_definition(p->f, x->statement);
    const uint32_t above = x->reads > 0 ? p->items[x->reader].instances : 1;
    const bool reduces = opjit_ir_reduced(p->f, x->statement) != 0 || ir_at(p->f, x->statement)->op == IR_SCATTER;
    const uint32_t tensor = ir_at(p->f, x->statement)->ref;
    x->is_copy = is_def && tensor >= p->first_copy && tensor < p->copies_end;
    x->temp = is_def && (x->recurrence != 0 || (x->reads > 0 && (reduces || x->is_copy || gets_memory(x, above))));
    x->is_root = !is_def || x->temp;
    x->by_element = x->reads > 0 && x->aligned && !x->mixed;
    if (x->temp)
        ir_took(p->f, IR_STEP_MATERIALIZE);
    if (x->is_root) {
        x->root = number;
        x->aligned = true;
        x->mixed = x->repeated = false;
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
        note_windows(&p->items[s->def], x);
    }
}

/* What every step of a recurrence reads stays in a cache: its rows are not all in one set of it. */
static void set_apart(ir_tensor *t)
{
    const uint64_t last = t->sizes[t->rank - 1];
    if (t->rank < 2 || last * opjit_ir_type_size(t->type) % SET_BYTES != 0)
        return;
    t->sizes[t->rank - 1] = last + APART_BYTES / opjit_ir_type_size(t->type);
    opjit_ir_dense_strides(t);
    t->sizes[t->rank - 1] = last;
    if (!opjit_ir_span_bytes(t, &t->bytes))
        t->bytes = UINT64_MAX; /* more than layout allows */
}

/* A temp, or to be written where it is read. */
static void give_memory(placer *p, const item *x)
{
    ir_tensor *t = &p->f->tensors[ir_at(p->f, x->statement)->ref];
    p->sources[ir_at(p->f, x->statement)->ref].def = x->temp ? 0 : x->statement;
    if (x->temp) {
        t->role = IR_TEMP;
        t->align = 64; /* as layout makes it */
        const bool is_side = x->is_copy && !p->env->general && ir_at(p->f, x->statement)->ref >= p->first_side;
        if ((x->is_stepped || is_side) && !x->is_viewed)
            set_apart(t);
    }
}

static void mark_recurrences(placer *p)
{
    ir_ref last = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (last == 0)
            last = opjit_ir_recurrence_last(p->f, p->items[i].statement);
        p->items[i].recurrence = last != 0;
        if (last == p->items[i].statement)
            last = 0;
    }
}

void opjit_ir_materialize(placer *p)
{
    ir_func *f = p->f;
    mark_recurrences(p);
    for (uint32_t i = 0; i < p->count; i++) {
        item *x = &p->items[i];
        read_item(p, i);
        for (uint32_t k = 0; k < x->site_count; k++)
            note_reader(p, &p->items[p->sites[x->first_site + k].def], &p->sites[x->first_site + k], i);
        if (ir_is_definition(f, x->statement))
            p->item_of[ir_at(f, x->statement)->ref] = i + 1;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        weigh_item(p, &p->items[i]);
        p->items[i].ends_product = !p->threads && ends_product(p, &p->items[i]);
    }
    for (uint32_t i = p->count; i-- > 0;)
        decide(p, i);
    for (uint32_t i = 0; i < p->count; i++)
        if (ir_is_definition(f, p->items[i].statement))
            give_memory(p, &p->items[i]);
}
