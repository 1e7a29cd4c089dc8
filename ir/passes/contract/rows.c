/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - two products of matrices with rows between them, as attention has: a reduction (softmax's) reads
 * the rows of the first product's results, and what becomes of them is a factor of the second product.  Part of place.
 *
 *     for each block of rows, in parallel
 *         scores = the first product, in tiles; all columns of the block's rows stay in scratch
 *         for each row: what is between, one after the other; the last row takes the scores' place
 *         the second product, in tiles, and its results
 *
 * Every sum is made as in three stages, so the bits are theirs. */
#include "ir/passes/contract/contract.h"
#include "ir/passes/place/place.h"

enum {
    SHARE_OF_L2 = 4,           /* of which the scores of a block have one */
    LEAST_ROWS = 8,            /* of a block */
    LEAST_WORK = 16 * 16 * 16, /* products of each: less is not worth the code */
    ENOUGH_ROWS = 32,          /* of a block, where more would make few blocks */
    GENERAL_ROWS = 16,         /* of a block, where sizes are samples of many */
    ENOUGH_BLOCKS = 16,        /* for threads */
    DEEPEST = 4,               /* definitions in each other that a factor of the second product is made of */
};

typedef struct products {
    placer *p;
    contraction scores, results;
    place_rows_of rows, ends[2]; /* what is between; each product, the second with the output that alone reads it */
    uint32_t first, second, end; /* items */
    bool rest;                   /* rows of the second product are of one value in k beyond results.behind */
} products;

/* --- what belongs together ---------------------------------------------------------------------------------------- */

static uint32_t tensor_of(const ir_func *f, ir_ref statement)
{
    return ir_at(f, statement)->ref;
}

/* Whether load is of all of a row of `tensor`, at the product's own rows. */
static bool reads_row(const ir_func *f, ir_ref statement, ir_ref load, uint32_t tensor)
{
    const uint32_t last = f->tensors[tensor].rank - 1;
    if (ir_at(f, load)->op != IR_LOAD || ir_at(f, load)->ref != tensor)
        return false;
    for (uint32_t d = 0; d < last; d++)
        if (f->tensors[tensor].sizes[d] > 1 && ir_operand(f, load, d) != opjit_ir_coordinate(f, statement, d))
            return false;
    return ir_operand(f, load, last) == opjit_ir_reduced(f, statement);
}

/* Whether the definition is none of the group, and reads none of it: one that is written where it is read, of others
 * that were made before. */
static bool is_apart(const products *a, uint32_t number, uint32_t depth)
{
    const item *x = &a->p->items[number];
    bool apart = number < a->first || (!x->is_root && depth > 0);
    for (uint32_t i = 0; i < x->site_count && apart && number >= a->first; i++)
        apart = is_apart(a, a->p->sites[x->first_site + i].def, depth - 1);
    return apart;
}

/* Whether the item is the second product: a factor is the last member's row, and nothing else of the group is read. */
static bool is_second(const products *a, uint32_t number, int64_t length)
{
    const placer *p = a->p;
    const ir_func *f = p->f;
    const item *x = &p->items[number];
    const ir_node *n = ir_at(f, x->statement);
    const uint32_t last = tensor_of(f, a->rows.members[a->rows.count - 1].statement);
    const ir_ref pair = ir_operand(f, x->statement, 0);
    uint32_t found = 0;
    if (n->op != IR_DEF || n->kind != IR_DOT || f->tensors[n->ref].rank != f->tensors[last].rank ||
        ir_index_value(f, ir_operand(f, x->statement, n->count - 1)) != length)
        return false;
    for (uint32_t i = 0; i < x->site_count; i++) {
        const site *s = &p->sites[x->first_site + i];
        const bool own = (ir_operand(f, pair, 0) == s->load || ir_operand(f, pair, 1) == s->load) &&
                         reads_row(f, x->statement, s->load, last);
        found += own;
        if (!own && !is_apart(a, s->def, DEEPEST))
            return false;
    }
    return found == 1;
}

/* Finds the members from item `first` on, which is a dot. */
static bool find(products *a)
{
    const placer *p = a->p;
    const ir_func *f = p->f;
    const ir_tensor *t = &f->tensors[tensor_of(f, p->items[a->first].statement)];
    const int64_t all = (int64_t)t->sizes[t->rank - 1];
    int64_t length = all;
    bool reduces = false;
    for (uint32_t i = a->first + 1; i < p->count; i++) {
        const item *x = &p->items[i];
        if (!x->is_root)
            continue;
        if (x->recurrence != 0)
            return false;
        if (reduces && is_second(a, i, all)) {
            a->second = i;
            a->end = i + 1;
            break;
        }
        if (a->rows.count == ROW_MEMBERS || ir_at(f, x->statement)->op != IR_DEF ||
            !opjit_ir_fits_rows(f, x->statement, t, &length) || length != all)
            return false;
        reduces = reduces || ir_at(f, x->statement)->kind != 0;
        a->rows.members[a->rows.count++] = (row_member){ .statement = x->statement };
    }
    if (a->second == 0 || p->items[a->first].last_root >= a->second)
        return false;
    for (uint32_t i = a->first + 1, m = 0; i < a->second; i++) {
        if (!p->items[i].is_root)
            continue;
        const bool is_last = ++m == a->rows.count;
        a->rows.members[m - 1].outside = is_last && p->items[i].last_root > a->second;
        if (!is_last && p->items[i].last_root >= a->second)
            return false;
    }
    return true;
}

/* The products' rows are the last coordinate but one, and their columns the last one. */
static bool is_matrix(const contraction *c)
{
    const int32_t last = (int32_t)c->out.rank - 1;
    return c->side[CONTRACT_ROWS].dimension == last - 1 && c->side[CONTRACT_COLUMNS].dimension == last;
}

static bool find_products(products *a)
{
    placer *p = a->p;
    const uint32_t output = opjit_ir_output_of(p, a->second);
    const ir_tiles *given = p->env->tiles;
    contraction *c = &a->scores, *d = &a->results;
    for (uint32_t i = 0; i < 2; i++)
        a->ends[i] = (place_rows_of){
            .f = p->f, .sources = p->sources, .private_views = true, .general = p->rows.general, .count = 1
        };
    a->ends[0].members[0] = (row_member){ .statement = p->items[a->first].statement };
    a->ends[1].members[0] = (row_member){ .statement = p->items[a->second].statement, .outside = true };
    if (output != 0) {
        a->ends[1].members[a->ends[1].count++] = (row_member){ .statement = p->items[output].statement };
        a->end = output + 1;
    }
    return opjit_ir_contract_find(c, &a->ends[0], given, p->env->target) &&
           opjit_ir_contract_find(d, &a->ends[1], given, p->env->target) && is_matrix(c) && is_matrix(d) &&
           c->side[CONTRACT_ROWS].size == d->side[CONTRACT_ROWS].size && c->batch == d->batch &&
           c->out.type == d->out.type;
}

static bool is_worth(const contraction *c)
{
    return c->side[CONTRACT_ROWS].size * c->side[CONTRACT_COLUMNS].size >= LEAST_WORK / c->length;
}

/* Blocks of rows whose scores stay in the second cache; false: these would be too few. */
static bool cut(products *a)
{
    const rt_target *target = a->p->env->target;
    const ir_tiles *given = a->p->env->tiles;
    const int64_t size = opjit_ir_type_size(a->scores.out.type), rows = a->scores.side[CONTRACT_ROWS].size;
    int64_t most = (int64_t)target->l2 / SHARE_OF_L2 / (a->scores.side[CONTRACT_COLUMNS].size * size);
    if (given == NULL && (most < LEAST_ROWS || rows < LEAST_ROWS || !is_worth(&a->scores) || !is_worth(&a->results)))
        return false;
    if (a->scores.r->general) /* no size of a block follows from the number of columns */
        most = GENERAL_ROWS;
    while (most > ENOUGH_ROWS && a->scores.batch * ((rows + most - 1) / most) < ENOUGH_BLOCKS)
        most /= 2;
    opjit_ir_contract_cut_rows(&a->scores, given, target, most);
    opjit_ir_contract_cut_rows(&a->results, given, target, most);
    return a->scores.side[CONTRACT_ROWS].block == a->results.side[CONTRACT_ROWS].block;
}

/* --- the stage ---------------------------------------------------------------------------------------------------- */

/* Where all columns of a block's rows are. */
static uint32_t declare_scores(contraction *c)
{
    enum { APART = 16 }; /* elements behind a row, so that rows are not all in one set of a cache */
    const int64_t sizes[2] = { c->side[CONTRACT_ROWS].block, c->side[CONTRACT_COLUMNS].block };
    return opjit_ir_contract_scratch(c, 2, sizes, APART);
}

/* Whether statements in the block store to scratch what is computed of other elements of it. */
static bool mixes(const ir_func *f, ir_ref first, uint32_t scratch)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const ir_node *n = ir_at(f, s);
        if (n->op == IR_FOR && mixes(f, n->body, scratch)) /* as deep as loops nest: rule V16 */
            return true;
        if (n->op != IR_STORE || n->ref != scratch)
            continue;
        const ir_reach seen = opjit_ir_reach_one((ir_func *)f, s);
        for (uint32_t i = 0; i < seen.count; i++) {
            const ir_ref load = seen.nodes[i];
            if (ir_at(f, load)->op == IR_LOAD && ir_at(f, load)->ref == scratch &&
                (ir_operand(f, load, 0) != ir_operand(f, s, 1) || ir_operand(f, load, 1) != ir_operand(f, s, 2)))
                return true;
        }
    }
    return false;
}

/* What is between the products, for each row of the block. */
static bool add_rows(products *a, ir_ref p, block *list)
{
    contraction *c = &a->scores;
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS];
    inline_source *source = &a->p->sources[c->def.ref];
    block of_i;
    const ir_ref i = contract_loop(c, list, rows->here, &of_i);
    row_of_block row = { .number = i,
                         .loops = { p, i },
                         .extents = { (uint64_t)(c->batch * rows->blocks), (uint64_t)rows->block },
                         .tensor = tensor_of(f, a->rows.members[a->rows.count - 1].statement),
                         .scratch = c->total };
    for (uint32_t d = 0; d < a->rows.rows; d++)
        row.at[d] = c->at[d];
    row.at[rows->dimension] = opjit_ir_block_let(f, &of_i, contract_plus(c, rows->first, i));
    source->scratch = c->total;
    const bool written = opjit_ir_write_row(&a->rows, &row, &of_i);
    source->scratch = 0;
    if (written)
        c->masked = opjit_ir_contract_find_mask(f, of_i.parent, c->total, row.at[rows->dimension], &c->behind);
    const ir_ref number = row.at[rows->dimension];
    const int64_t columns = c->side[CONTRACT_COLUMNS].size;
    a->rest = written &&
              opjit_ir_contract_find_rest(f, of_i.parent, c->total, number, columns, &a->results.behind);
    if (written && !a->rest && opjit_ir_contract_guess_rest(f, of_i.parent, number, columns, &a->results.behind)) {
        opjit_ir_contract_look_behind(&a->results, &of_i, i, number);
        a->rest = a->results.not_zero != 0;
    }
    return written && !f->failed && !mixes(f, ir_at(f, of_i.parent)->body, c->total);
}

static bool write(products *a, block *stages)
{
    contraction *c = &a->scores, *d = &a->results;
    ir_func *f = c->f;
    block all = { 0 };
    c->in = d->in = (inliner){ .f = f, .sources = a->p->sources, .private_views = true };
    for (uint32_t i = 0; i < 2; i++) {
        opjit_ir_contract_declare_turn(i == 0 ? c : d);
        if ((i == 0 ? c : d)->side[CONTRACT_COLUMNS].shared)
            opjit_ir_contract_share_columns(i == 0 ? c : d, &all);
    }
    c->total = declare_scores(c);
    d->side[CONTRACT_ROWS].kept = c->total;
    d->side[CONTRACT_ROWS].packed = false;
    opjit_ir_contract_declare(c);
    opjit_ir_contract_declare(d);
    const ir_ref stage =
        opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, c->batch * c->side[CONTRACT_ROWS].blocks), 1);
    if (f->failed)
        return false;
    const ir_ref p = ir_at(f, stage)->ref;
    block body = { .parent = stage };
    opjit_ir_contract_set_block(c, &body, p, 1);
    block between = { 0 };
    if (!add_rows(a, p, &between))
        return false;
    if (a->rest)
        opjit_ir_contract_rest(d, &all);
    opjit_ir_contract_sums(c, &body);
    opjit_ir_block_move(f, &between, &body);
    opjit_ir_contract_set_block(d, &body, p, 1);
    opjit_ir_contract_sums(d, &body);
    opjit_ir_contract_results(d, &body);
    if (c->in.refused || d->in.refused || f->failed)
        return false;
    opjit_ir_block_add(f, &all, stage);
    opjit_ir_block_move(f, &all, stages);
    f->tensors[c->def.ref].role = IR_VALUE;
    if (a->ends[1].count > 1)
        f->tensors[d->def.ref].role = IR_VALUE;
    return true;
}

uint32_t opjit_ir_group_contract_rows(placer *p, uint32_t first, block *stages)
{
    const ir_node *n = ir_at(p->f, p->items[first].statement);
    if (p->threads || p->env->target == NULL || n->op != IR_DEF || n->kind != IR_DOT || p->f->tensors[n->ref].rank < 2)
        return first;
    products *a = opjit_rt_arena_allocate(&p->f->scratch, 1, sizeof *a);
    if (a == NULL) {
        p->f->failed = true;
        return first;
    }
    *a = (products){ .p = p, .first = first };
    a->rows = (place_rows_of){ .f = p->f,
                               .sources = p->sources,
                               .private_views = true,
                               .blocks = p->rows.blocks,
                               .rows = p->f->tensors[n->ref].rank - 1 };
    if (!find(a) || !find_products(a) || !cut(a))
        return first;
    if (!write(a, stages)) {
        for (uint32_t i = 0; i < a->rows.count; i++)
            p->f->tensors[tensor_of(p->f, a->rows.members[i].statement)].role = IR_TEMP;
        return first;
    }
    ir_took(p->f, IR_STEP_CONTRACT_ROWS);
    return a->end;
}
