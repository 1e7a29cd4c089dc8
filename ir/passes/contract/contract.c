/* SPDX-License-Identifier: Apache-2.0 */
/* contract.c - finds products of two matrices: definitions that sum products, each factor of which moves with one
 * coordinate of the result that the other one does not have.  These are rows and columns, the others are of a batch.
 * Part of place; decides the sizes of tiles and blocks, on which no bit depends. */
#include "ir/passes/contract/contract.h"

enum {
    LEAST_WORK = 16 * 16 * 16, /* products: less is not worth the code, */
    FEWEST_SUMS = 16,          /* of one matrix of a batch, which has as much work in all */
    FEW_ROWS = 16,             /* of columns that lie side by side in memory: they are best read once, in order, */
    FEWEST_ROWS = 2,           /* and in the second cache: as fast without a copy */
    ROWS_OF_DOTS = 2,          /* of columns that lie apart: their elements are read once or twice, as they lie */
    CHAINS = 8,                /* fma that don't wait for each other */
    ROWS_ACROSS = 24,          /* the same, transposed in registers for each tile of rows, */
    ROWS_ACROSS_OF_16 = 8,     /* with 16 vector registers; */
    ACROSS_STEPS = 16,         /* k in a round of their tiles, for vectors of as many or fewer */
    STREAM_BYTES = 16384,      /* of columns that are read in order, the more the better, */
    STREAM_LEAST = 2048,       /* and where they are too few for as many, */
    STREAM_STEPS = 16,         /* so many k at a time, */
    STREAM_STEPS_OF_16 = 8,    /* with 16 vector registers: lines at distances that are one set of the first cache */
    STREAMS = 4,               /* iterations */
    MOST_ROWS = 8,             /* of a tile */
    MOST_ROWS_OF_16 = 6,       /* with 16 vector registers, of which a factor of rows and two of columns need three */
    WASTE = 16,                /* one row in so many may be for nothing: a tile of more rows is faster by that */
    LEAST_ROWS = 4,
    MORE_SUMS = 20,         /* one in so many is worth what a wide tile loads less */
    TILE_VECTORS = 2,       /* of columns, */
    MOST_TILE_VECTORS = 3,  /* or of three, with 32 vector registers, where fewer columns are for nothing: */
    SAVED_COLUMNS = 40,     /* one in so many, by which a tile of two is faster */
    MOST_BLOCK = 512,       /* rows or columns */
    LINE_WORDS = 32,        /* k of bytes that are packed line by line, in fours, */
    MOST_LINE = 4096,       /* of at most so many columns */
    LEAST_COLUMNS = 128,    /* where the result would be few blocks: of columns, */
    LEAST_ROWS_SHARED = 64, /* and of rows whose columns are copied once for all */
    ENOUGH_BLOCKS = 8,      /* for threads */
};

/* The last coordinate of more than one element that `factor` of the pair moves with, and the other doesn't; -1:
 * none. */
static int32_t own_dimension(const contraction *c, uint32_t factor)
{
    const ir_func *f = c->f;
    const ir_ref pair = ir_operand(f, c->statement, 0);
    for (uint32_t d = c->out.rank; d-- > 0;) {
        const ir_ref var = opjit_ir_coordinate(f, c->statement, d);
        if (c->out.sizes[d] > 1 && opjit_ir_uses(f, ir_operand(f, pair, factor), var) &&
            !opjit_ir_uses(f, ir_operand(f, pair, 1 - factor), var))
            return (int32_t)d;
    }
    return -1;
}

/* Whether the dimension has as many elements as a vector, for some of the sizes that the function is for. */
static bool has_vector(const contraction *c, int32_t dimension, int64_t lanes)
{
    if (dimension < 0)
        return lanes <= 1;
    const uint64_t size = c->out.sizes[dimension];
    const ir_varying *const varying = place_varying(c->r->varying, &c->out, (uint32_t)dimension);
    return (int64_t)(varying != NULL && varying->most < size ? varying->most : size) >= lanes;
}

/* Finds rows and columns. */
static bool find_sides(contraction *c, int64_t lanes)
{
    const int32_t of[2] = { own_dimension(c, 0), own_dimension(c, 1) };
    uint32_t column = of[1] > of[0]; /* the factor with the columns */
    c->batch = 1;
    for (uint32_t d = 0; d < c->out.rank; d++)
        c->batch *= (int32_t)d == of[0] || (int32_t)d == of[1] ? 1 : (int64_t)c->out.sizes[d];
#define SIZE(factor) (of[factor] < 0 ? 1 : (int64_t)c->out.sizes[of[factor]])
    if (SIZE(column) < lanes && has_vector(c, of[1 - column], lanes))
        column = 1 - column;
    c->side[CONTRACT_COLUMNS] = (contract_side){ .dimension = of[column], .factor = column, .size = SIZE(column) };
    c->side[CONTRACT_ROWS] =
        (contract_side){ .dimension = of[1 - column], .factor = 1 - column, .size = SIZE(1 - column) };
#undef SIZE
    return true;
}

/* As many columns as chains, or blocks of k for the rest. */
static void choose_dots(contraction *c, const ir_tiles *given)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t whole = c->length / c->def.block;
    rows->tile = rows->block = rows->size;
    rows->blocks = 1;
    columns->tile = given != NULL ? given->columns : CHAINS;
    columns->tile = columns->tile > columns->size ? columns->size : columns->tile;
    columns->block = columns->tile;
    columns->blocks = contract_parts(columns->size, columns->tile);
    const int64_t together = given != NULL ? given->together : contract_parts(CHAINS, rows->tile * columns->tile);
    c->together = together > whole && whole > 0 ? whole : together;
}

/* As many rows of a tile as its sums have registers for, or fewer where that wastes much less. */
static int64_t rows_of_tile(const contraction *c, const rt_target *target)
{
    const int64_t most = rt_target_has_16_vectors(target) ? MOST_ROWS_OF_16 : MOST_ROWS;
    const int64_t rows = c->side[CONTRACT_ROWS].size;
    int64_t best = most;
    if (rows <= most || c->r->general)
        return rows <= most ? rows : most;
    for (int64_t r = most; r >= LEAST_ROWS; r--)
        if (contract_parts(rows, r) * r * WASTE < contract_parts(rows, best) * best * (WASTE - 1))
            best = r;
    return best;
}

static int64_t columns_of_tile(const contraction *c, int64_t lanes, const rt_target *target)
{
    const int64_t usual = TILE_VECTORS * lanes, most = MOST_TILE_VECTORS * lanes;
    const int64_t columns = c->side[CONTRACT_COLUMNS].size;
    if (columns <= lanes)
        return lanes;
    const bool three = !rt_target_has_16_vectors(target) && !c->r->general;
    const int64_t of_three = contract_parts(columns, most) * most, of_two = contract_parts(columns, usual) * usual;
    return three && of_three * SAVED_COLUMNS < of_two * (SAVED_COLUMNS - 1) ? most : usual;
}

/* Sums of all tiles of these sizes, those that are for nothing, too. */
static int64_t sums_of(const contraction *c, int64_t rows, int64_t columns)
{
    return contract_parts(c->side[CONTRACT_ROWS].size, rows) * rows *
           contract_parts(c->side[CONTRACT_COLUMNS].size, columns) * columns;
}

/* Whether tiles of so many rows and columns have few more sums; of any number of rows where the kernel is for many. */
static bool has_few_sums(const contraction *c, int64_t rows, int64_t columns)
{
    const int64_t all = c->side[CONTRACT_COLUMNS].size, tile = c->side[CONTRACT_COLUMNS].tile;
    if (c->r->general)
        return c->once &&
               contract_parts(all, columns) * columns * MORE_SUMS <= contract_parts(all, tile) * tile * (MORE_SUMS + 1);
    const int64_t sums = sums_of(c, c->side[CONTRACT_ROWS].tile, tile);
    return c->side[CONTRACT_ROWS].size >= rows && sums_of(c, rows, columns) <= sums + sums / MORE_SUMS;
}

static void choose_tile(contraction *c, int64_t lanes, const rt_target *target)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    rows->tile = rows_of_tile(c, target);
    columns->tile = columns_of_tile(c, lanes, target);
    const int64_t wide = CONTRACT_WIDE_VECTORS * lanes;
    if (!contract_may_be_wide(target, (ir_type)c->def.type) || c->bytes > 0 ||
        !has_few_sums(c, CONTRACT_WIDE_ROWS, wide))
        return;
    rows->tile = CONTRACT_WIDE_ROWS;
    columns->tile = wide;
    c->wide = true;
}

/* For set_blocks: however many there are. */
static const int64_t ALL = INT64_MAX / 2;

/* So many tiles of a block, or fewer, but more than half, if all blocks are equal then: tiles store the results. */
static int64_t equal_tiles(int64_t tiles, int64_t fit)
{
    for (int64_t some = fit; some > fit / 2; some--)
        if (tiles % some == 0)
            return some;
    return fit;
}

/* Blocks of about the same size, at most `most`, of whole tiles; of one size where the kernel is for many. */
static void set_blocks(const contraction *c, contract_side *s, int64_t most)
{
    const int64_t tiles = contract_parts(s->size, s->tile);
    int64_t fit = most / s->tile > 0 ? most / s->tile : 1;
    if (c->wide && !c->r->general)
        fit = s->size % s->tile == 0 ? equal_tiles(tiles, fit) : contract_parts(most, s->tile);
    s->blocks = contract_parts(tiles, fit);
    s->block = (c->r->general && most < ALL ? fit : contract_parts(tiles, s->blocks)) * s->tile;
    s->blocks = contract_parts(s->size, s->block);
}

/* Rows that are few: where the kernel is for many sizes, one block of any number of them. */
static void set_few_rows(const contraction *c, contract_side *rows)
{
    set_blocks(c, rows, c->r->general ? ALL : rows->size);
}

/* Whether a size of the result, or the length of the sums, differs from sample to sample. */
static bool side_varies(const contraction *c, const contract_side *s)
{
    return s->dimension >= 0 && place_varying(c->r->varying, &c->out, (uint32_t)s->dimension) != NULL;
}

static bool length_varies(const contraction *c)
{
    bool varies = false;
    for (uint32_t i = 0; c->r->varying != NULL && i < c->r->varying->count; i++)
        varies = varies || (int64_t)c->r->varying->list[i].size == c->length;
    return varies;
}

/* For many sizes.  No number may follow from two that are rounded to blocks: where rows and columns change, or columns
 * and k, all rows are a block, which copies its own columns; of many matrices all columns are one. */
static void choose_general_blocks(contraction *c, int64_t most_rows, int64_t most_columns)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const bool by_k = length_varies(c), by_rows = side_varies(c, rows);
    c->all_rows = side_varies(c, columns) && (by_k || (by_rows && c->batch == 1));
    /* as for the fewest blocks: more of them cost little */
    set_blocks(c, rows, c->all_rows ? ALL : most_rows < LEAST_ROWS_SHARED ? most_rows : LEAST_ROWS_SHARED);
    const bool all_columns = !c->all_rows && c->batch > 1 && rows->size > rows->tile;
    set_blocks(c, columns, all_columns ? ALL : most_columns < LEAST_COLUMNS ? most_columns : LEAST_COLUMNS);
}

/* Columns of a block of k are to fit half of the second cache, the totals the other half.  Smaller blocks, for threads,
 * have fewer rows if the columns are copied once for all, else fewer columns. */
static void choose_blocks(contraction *c, const rt_target *target)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t size = opjit_ir_type_size((ir_type)c->def.type);
    int64_t most_columns = MOST_BLOCK, most_rows = MOST_BLOCK;
    while (most_columns > LEAST_COLUMNS && most_columns * c->def.block * size > (int64_t)target->l2 / 2)
        most_columns /= 2;
    while (most_rows > LEAST_ROWS_SHARED && most_rows * most_columns * size > (int64_t)target->l2 / 2)
        most_rows /= 2;
    const bool shared = rows->size > most_rows && c->bytes == 0;
    if (c->r->general) {
        choose_general_blocks(c, most_rows, most_columns);
        return;
    }
    for (;;) {
        set_blocks(c, rows, most_rows);
        set_blocks(c, columns, most_columns);
        if (c->batch * rows->blocks * columns->blocks >= ENOUGH_BLOCKS || c->r->is_step)
            break;
        if (shared && rows->block > LEAST_ROWS_SHARED)
            most_rows = contract_parts(contract_parts(rows->size, rows->blocks + 1), rows->tile) * rows->tile;
        else if (most_columns > LEAST_COLUMNS)
            most_columns /= 2;
        else
            break;
    }
}

/* Few rows of columns that are read in order. */
static void choose_stream(contraction *c, int64_t lanes, const rt_target *target)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t size = opjit_ir_type_size((ir_type)c->def.type);
    rows->tile = rows_of_tile(c, target);
    columns->tile = lanes * (rows->size < LEAST_ROWS ? 2 * TILE_VECTORS : TILE_VECTORS);
    while (columns->tile > lanes && columns->size % columns->tile != 0)
        columns->tile /= 2;
    c->steps = rt_target_has_16_vectors(target) && columns->tile > lanes ? STREAM_STEPS_OF_16 : STREAM_STEPS;
    set_few_rows(c, rows);
    const int64_t part = c->split ? STREAM_BYTES : columns->size * size / STREAMS;
    const int64_t bytes = part > STREAM_BYTES ? STREAM_BYTES : part > STREAM_LEAST ? part : STREAM_LEAST;
    set_blocks(c, columns, bytes / size);
}

/* Few rows of columns that lie apart: a tile is a vector of columns, squares of which and k are transposed in registers
 * beside the sums.  Blocks are one tile, so that its lines are read in order. */
static void choose_across(contraction *c, const ir_tiles *given, const rt_target *target)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    rows->tile = given != NULL ? given->rows : rows_of_tile(c, target);
    columns->tile = given != NULL ? given->columns : c->lanes;
    c->across = given != NULL ? given->across : ACROSS_STEPS;
    set_few_rows(c, rows);
    set_blocks(c, columns, columns->tile);
}

/* Few k of many columns at a time, so that long parts of a line are read.  The order of integers' sums means nothing,
 * so a block of k may be shorter than the definition's. */
static void choose_lines(contraction *c)
{
    contract_side *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t half = contract_parts(columns->size, 2);
    c->def.block = LINE_WORDS;
    set_blocks(c, columns, half < MOST_LINE ? half : MOST_LINE);
}

static void choose_sizes(contraction *c, const ir_tiles *given, int64_t lanes, const rt_target *target)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    if (given != NULL) {
        rows->tile = given->rows;
        columns->tile = given->columns;
        set_blocks(c, rows, given->block_rows);
        set_blocks(c, columns, given->block_columns);
        c->steps = STREAM_STEPS;
    } else if (c->streams) {
        choose_stream(c, lanes, target);
    } else {
        choose_tile(c, lanes, target);
        choose_blocks(c, target);
    }
    c->side[CONTRACT_COLUMNS].lines = opjit_ir_contract_is_in_lines(c, given, target);
    if (c->side[CONTRACT_COLUMNS].lines && given == NULL)
        choose_lines(c);
}

/* Whether the first cache has room for what a tile reads in a block of k. */
static bool fits_first_cache(const contraction *c, const rt_target *target)
{
    const int64_t size = opjit_ir_type_size((ir_type)c->def.type);
    return (c->side[CONTRACT_ROWS].tile + c->side[CONTRACT_COLUMNS].tile) * c->def.block * size <= (int64_t)target->l1;
}

static bool is_dots(const contraction *c, const ir_tiles *given)
{
    return !c->streams && c->side[CONTRACT_ROWS].size <= ROWS_OF_DOTS && (given == NULL || given->together > 0) &&
           opjit_ir_contract_is_element(c) && opjit_ir_contract_lies_apart(c);
}

/* Whether they are few rows of such columns that lie apart, and code generation has tiles with squares of them. */
static bool is_across(const contraction *c, const ir_tiles *given, const rt_target *target)
{
    const int64_t tile = given != NULL ? given->columns : c->lanes, rows = c->side[CONTRACT_ROWS].size;
    const int64_t steps = given != NULL ? given->across : ACROSS_STEPS;
    const int64_t most = rt_target_has_16_vectors(target) ? ROWS_ACROSS_OF_16 : ROWS_ACROSS;
    const bool has_squares = target->arch == RT_ARCH_X86_64 && rt_target_has(target, RT_X86_FMA) &&
                             rt_target_has(target, RT_X86_F16C) && target->vector_bytes > 16;
    return !c->streams && !c->once && ir_is_float((ir_type)c->def.type) && c->side[CONTRACT_COLUMNS].dimension >= 0 &&
           steps > 0 && c->side[CONTRACT_COLUMNS].size >= tile && c->length >= steps &&
           opjit_ir_contract_is_widened_element(c) && opjit_ir_contract_lies_apart(c) &&
           (given != NULL || (has_squares && rows <= most));
}

static int64_t lanes_of(const contraction *c, const ir_tiles *given, const rt_target *target)
{
    return given != NULL ? given->columns : target->vector_bytes / opjit_ir_type_size(c->out.type);
}

/* Whether a copy of the columns can be kept, so that it costs no call anything. */
static bool is_kept(contraction *c)
{
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    const uint64_t bytes = (uint64_t)(s->size * c->length) * opjit_ir_type_size(opjit_ir_contract_column_type(c));
    const bool partial = c->bytes > 0 && c->bytes % c->in_word != 0; /* a word that is stored apart */
    if (!c->r->once || c->r->is_step || s->dimension < 0 || partial)
        return false;
    const ir_ref factor = ir_operand(c->f, ir_operand(c->f, c->statement, 0), s->factor);
    const uint64_t from = opjit_ir_constant_bytes(c->f, c->r->sources, factor);
    return from > 0 && opjit_ir_may_keep(bytes, from);
}

/* Whether the node of a factor's expression is known before the first step of a recurrence: all but what its stage
 * makes, of which only coordinates of its rows are allowed. */
static bool is_known_ahead(const contraction *c, ir_ref r)
{
    const ir_func *f = c->f;
    const ir_node *n = ir_at(f, r);
    bool own = r == opjit_ir_reduced(f, c->statement);
    if (n->op == IR_LOAD)
        return f->tensors[n->ref].role != IR_SCRATCH;
    for (uint32_t d = 0; d < c->out.rank && n->op == IR_VAR; d++)
        own = own || r == opjit_ir_coordinate(f, c->statement, d);
    for (uint32_t i = 0; i < c->r->around_count; i++)
        own = own || r == c->r->around[i];
    return own || (n->op != IR_VAR && n->op != IR_GET);
}

/* Whether the columns of a recurrence's step are copied before it. */
static bool is_ahead(contraction *c)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    if (!c->r->is_step || s->dimension < 0)
        return false;
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, ir_operand(f, c->statement, 0), s->factor));
    for (uint32_t k = 0; k < seen.count; k++)
        if (!is_known_ahead(c, seen.nodes[k]))
            return false;
    return seen.nodes != NULL;
}

bool opjit_ir_contract_find(contraction *c, place_rows_of *r, const ir_tiles *given, const rt_target *target)
{
    ir_func *f = r->f;
    *c = (contraction){ .r = r, .f = f, .statement = r->members[0].statement };
    c->def = *ir_at(f, c->statement);
    if (c->def.op != IR_DEF || c->def.kind != IR_DOT)
        return false;
    c->out = f->tensors[c->def.ref];
    c->length = ir_index_value(f, ir_operand(f, c->statement, c->def.count - 1));
    const int64_t lanes = lanes_of(c, given, target);
    c->lanes = given != NULL && lanes > 2 ? lanes / 2 : lanes;
    if (!find_sides(c, lanes))
        return false;
    const ir_ref pair = ir_operand(f, c->statement, 0), k = opjit_ir_reduced(f, c->statement);
    /* Columns that are copied once: all is read element by element into copies, under whatever conditions. */
    const bool copied = ir_is_float((ir_type)c->def.type) && is_kept(c);
    opjit_ir_contract_find_decoded(c);
    for (uint32_t i = 0; i < CONTRACT_SIDES; i++) {
        if (c->decoded > 0 && i == CONTRACT_COLUMNS)
            continue;
        const ir_ref own = c->side[i].dimension < 0 ? k : contract_coordinate(c, i);
        const ir_ref factor = ir_operand(f, pair, c->side[i].factor);
        if (!copied && (!opjit_ir_contract_reads_in_steps(c, factor, k, INT64_MAX) ||
                        !opjit_ir_contract_reads_in_steps(c, factor, own, INT64_MAX)))
            return false;
    }
    return true;
}

void opjit_ir_contract_cut_rows(contraction *c, const ir_tiles *given, const rt_target *target, int64_t most)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    rows->tile = given != NULL ? given->rows : rows_of_tile(c, target);
    columns->tile = given != NULL ? given->columns : columns_of_tile(c, lanes_of(c, given, target), target);
    set_blocks(c, rows, given != NULL ? given->block_rows : most);
    set_blocks(c, columns, ALL);
    c->by_columns = fits_first_cache(c, target);
    for (uint32_t i = 0; i < CONTRACT_SIDES; i++)
        c->side[i].packed = !opjit_ir_contract_lies_well(c, i, target);
    columns->turned = columns->packed && opjit_ir_contract_lies_apart(c);
    columns->shared = columns->packed && rows->blocks > 1 && (given == NULL || given->share);
}

/* One row of columns beyond the second cache, of several blocks of k: each of these is an iteration, which reads its
 * rows of columns in the order of memory, and there are enough of them for threads.  Their sums stay in that cache. */
static bool is_split(const contraction *c, const ir_tiles *given, const rt_target *target)
{
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t line = columns->size * opjit_ir_type_size((ir_type)c->def.type), l2 = (int64_t)target->l2;
    return c->length > c->def.block && !c->r->is_step &&
           (given != NULL
                ? given->split != 0
                : rows->size == 1 && line * c->length > l2 && line * contract_blocks_of_k(c) * c->batch <= l2);
}

static bool write(contraction *c, const ir_tiles *given, const rt_target *target, block *stages)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    c->streams = c->streams && c->bytes == 0;
    c->split = c->streams && is_split(c, given, target);
    if (c->decoded > 0)
        opjit_ir_contract_cut_decoded(c);
    else if (c->bytes == 0 && is_across(c, given, target))
        choose_across(c, given, target);
    else
        choose_sizes(c, given, lanes_of(c, given, target), target);
    c->by_columns = fits_first_cache(c, target);
    for (uint32_t i = 0; i < CONTRACT_SIDES; i++)
        c->side[i].packed = c->streams ? i == CONTRACT_ROWS &&
                                             (c->steps < STREAM_STEPS || opjit_ir_contract_is_computed(c, i))
                                       : c->bytes > 0 || !opjit_ir_contract_lies_well(c, i, target);
    columns->packed = columns->packed && c->across == 0 && c->decoded == 0;
    const bool tiles = !c->streams && c->bytes == 0 && c->across == 0 && c->decoded == 0;
    rows->packed = rows->packed || (tiles && opjit_ir_contract_rows_meet(c));
    rows->whole = rows->packed && (c->streams || (tiles && c->by_columns && !c->all_rows));
    columns->turned = columns->packed && c->bytes == 0 && opjit_ir_contract_lies_apart(c);
    const bool several = !c->r->is_step && c->bytes == 0 && rows->blocks > 1 && (given == NULL || given->share);
    columns->shared = columns->packed && (c->once || several);
    columns->lines = columns->lines || (columns->packed && !columns->shared && opjit_ir_contract_is_read_in_lines(c));
    return opjit_ir_contract_write(c, stages);
}

bool opjit_ir_place_contraction(place_rows_of *r, const ir_tiles *given, const rt_target *target, block *stages)
{
    ir_func *f = r->f;
    contraction c;
    if (!opjit_ir_contract_find(&c, r, given, target))
        return false;
    const ir_ref pair = ir_operand(f, c.statement, 0);
    const contract_side *columns = &c.side[CONTRACT_COLUMNS]; /* without a dimension: one element, as dots or not */
    const int64_t rows = c.side[CONTRACT_ROWS].size;
    const int64_t sums = rows * columns->size, all = sums < FEWEST_SUMS || r->general ? sums : c.batch * sums;
    if (given == NULL && all < LEAST_WORK / c.length)
        return false;
    const int64_t bytes = columns->size * c.length * opjit_ir_type_size((ir_type)c.def.type);
    const int64_t few = given != NULL ? given->few_rows : bytes > (int64_t)target->l2 ? FEW_ROWS : FEWEST_ROWS;
    c.streams = columns->dimension >= 0 && rows <= few &&
                opjit_ir_contract_reads_in_steps(&c, ir_operand(f, pair, columns->factor),
                                                 contract_coordinate(&c, CONTRACT_COLUMNS), 1);
    contraction words = c;
    if (columns->dimension >= 0 && (!c.streams || rows >= LEAST_ROWS || is_kept(&c) || is_ahead(&c)) &&
        target->arch == RT_ARCH_X86_64 && opjit_ir_contract_is_bytes(&words, target)) {
        words.once = is_kept(&words) || is_ahead(&words);
        if (write(&words, given, target, stages))
            return true;
    }
    c.once = c.decoded == 0 && is_kept(&c);
    c.streams = c.streams && !c.once; /* packed columns are in order, too, and their sums in registers */
    if (!f->failed && !c.once && !is_across(&c, given, target) && is_dots(&c, given)) {
        choose_dots(&c, given);
        return opjit_ir_contract_write(&c, stages);
    }
    return columns->dimension >= 0 && !f->failed && write(&c, given, target, stages);
}
