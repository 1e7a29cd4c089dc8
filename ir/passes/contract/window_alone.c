/* SPDX-License-Identifier: Apache-2.0 */
/* window_alone.c - sums of products through windows of which each row of the result has its own, as in a
 * depthwise convolution, and pools: there is nothing that two rows share, so a tile is lines of positions, and
 * positions are a vector's lanes.  Up to 64 taps are spelled out, so that what several lines of a tile read is loaded
 * once; of more, those of one line of the window, or of one channel.  Part of place.
 *
 *     copy what the block reads, with padding around it
 *     for each tile of some lines, with the tile in registers:
 *         tile = +0; for each tap: tile = fma(w, x, tile); store it
 *
 * Where a pool's windows are all of an image, positions are images, whose elements the copy has side by side.  Lines
 * that are a fraction of a vector are one long line, with the gaps between them.  Results are stored from the tile if
 * all tiles are whole, and what follows the sums is simple. */
#include "ir/passes/contract/window.h"

#include <string.h>

enum {
    MOST_TAPS = 64,      /* that are spelled out */
    MOST_VECTORS = 8,    /* of a tile */
    ALONE_CLASSES = 64,  /* of both axes */
    COPY_BYTES = 65536,
    LINES_BYTES = 8192,  /* of a copy that is made line by line: it stays in the first cache */
    ENOUGH_BLOCKS = 8,   /* for threads */
    VARYING_LINES = 8,   /* of a block, where the size of an axis follows from a dynamic dimension, */
    VARYING_POSITIONS = 512, /* or positions of a single axis */
    JOINED = 4,          /* lines are one where that takes less than so many */
    SEPARATE = 5         /* of so many parts of the vectors of separate ones */
};

/* Whether the copy can have all lines in order: then taps of the outer axis are at one distance, and there is one loop
 * over lines for all of them. */
static bool is_whole(const window *w)
{
    const window_axis *y = &w->axis[0];
    return w->axis[1].dimension >= 0 && y->stride > 1 && y->dilation == 1 && y->stride <= y->taps;
}

/* Whether taps that are too many to be spelled out at once are not too many along one line, and lines are at one
 * distance: the loop over lines stays.  Or over channels. */
static bool can_roll(const window *w)
{
    return w->digits[0].divide <= MOST_TAPS &&
           (w->digits[0].axis < 0 || (w->digits[0].axis == 0 && (w->axis[0].period == 1 || is_whole(w))));
}

bool opjit_ir_window_is_alone(const window *w)
{
    const bool slides = window_has_taps(w);
    bool alone = w->group == 1 && w->c.length <= (int64_t)w->c.def.block && (slides || w->pool);
    for (uint32_t d = 1; d < w->digit_count; d++)
        alone = alone && (w->digits[d].axis >= 0 || w->digits[d].size == 1 || !slides);
    return alone && (w->c.length <= MOST_TAPS || can_roll(w)) &&
           (is_whole(w) ? 1 : w->axis[0].classes) * w->axis[1].classes <= ALONE_CLASSES;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* The number in most / 2 + 1 .. most of which the fewest whole ones cover `size`. */
static int64_t best_part(int64_t size, int64_t most)
{
    int64_t best = size < most ? size : most;
    for (int64_t part = most; part > most / 2; part--)
        if (contract_parts(size, part) * part < contract_parts(size, best) * best)
            best = part;
    return best;
}

/* Whether what windows read is costly to compute: lines that two blocks read would be made twice, and lines in a block
 * of several have conditions. */
static bool is_costly(window *w)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    ir_ref at[9], digits[WINDOW_DIGITS];
    bool costly = false;
    for (uint32_t d = 0; d < c->out.rank; d++)
        at[d] = opjit_ir_coordinate(f, c->statement, d);
    for (uint32_t d = 0; d < w->digit_count; d++)
        digits[d] = w->digits[d].probe;
    w->of_group = opjit_ir_index(f, 0);
    c->in = (inliner){ .f = f, .sources = c->r->sources };
    const ir_ref made = opjit_ir_window_made(w, w->values[w->factor], digits, w->of_group, at);
    c->in = (inliner){ 0 };
    const ir_reach seen = opjit_ir_reach_one(f, made);
    for (uint32_t k = 0; k < seen.count; k++)
        costly = costly || ir_is_dear((ir_op)ir_at(f, seen.nodes[k])->op);
    return costly;
}

/* Lines of a block, whole tiles; if possible blocks of one size. */
static void choose_lines(window *w, const ir_tiles *given, int64_t tile)
{
    const int64_t size = w->axis[0].size;
    if (window_varies(w) && given == NULL) {
        w->block = contract_parts(w->axis[1].dimension < 0 ? VARYING_POSITIONS : VARYING_LINES, tile) * tile;
        w->block = w->axis[0].varies ? window_varying_lines(&w->axis[0], w->block) : w->block < size ? w->block : size;
        w->blocks = contract_parts(size, w->block);
        return;
    }
    const int64_t line = w->channels * w->slots * w->line * opjit_ir_type_size((ir_type)w->c.def.type);
    const int64_t bytes = w->by_lines && !is_costly(w) ? LINES_BYTES : COPY_BYTES;
    int64_t most = given != NULL ? given->block_columns / w->pitch : bytes / line;
    most = most < tile ? tile : most;
    for (int64_t even = most; w->by_lines && even > most / 2; even--)
        if (size % even == 0 && even % tile == 0) {
            most = even;
            break;
        }
    w->blocks = contract_parts(size, most);
    const int64_t others = window_images(w) * w->groups;
    if (given == NULL && others * w->blocks < ENOUGH_BLOCKS)
        w->blocks = contract_parts(ENOUGH_BLOCKS, others);
    w->block = contract_parts(contract_parts(size, w->blocks), tile) * tile;
    w->blocks = contract_parts(size, w->block);
    w->block = w->blocks == 1 ? size : w->block;
}

static void set_outer(window *w)
{
    window_axis *y = &w->axis[0];
    y->whole = is_whole(w);
    w->in_turn = w->axis[1].dimension >= 0 && !y->whole && y->stride > 1 && y->dilation == 1;
    if (!y->whole)
        return;
    y->classes = 1;
    y->reach = y->taps - 1;
}

void opjit_ir_window_alone_sizes(window *w, const ir_tiles *given, int64_t lanes)
{
    contract_side *rows = &w->c.side[CONTRACT_ROWS], *columns = &w->c.side[CONTRACT_COLUMNS];
    window_axis *y = &w->axis[0], *x = &w->axis[1];
    const int64_t vectors = contract_parts(x->size, lanes);
    set_outer(w);
    w->slots = w->free * (w->in_turn ? 1 : y->classes) * x->classes;
    const int64_t lines_apart = y->whole ? y->stride : w->in_turn ? y->classes : 1;
    const int64_t pitch = w->pitch - opjit_ir_window_zeros_of_lines(w);
    w->joined = x->dimension < 0 || (!x->varies && pitch * lines_apart * SEPARATE < vectors * lanes * JOINED);
    w->by_lines = (given == NULL || !window_varies(w)) && x->dimension >= 0 && x->usual >= lanes && w->free == 1 &&
                  y->classes == 1 && x->classes < WINDOW_MANY_CLASSES;
    if (w->joined)
        w->pitch = pitch;
    else if (w->by_lines && !x->varies) /* where it varies no number follows from its size by rounding */
        w->pitch = contract_parts(w->pitch, lanes) * lanes;
    w->line = w->pitch * lines_apart;
    rows->size = rows->block = rows->blocks = 1;
    rows->tile = 1;
    if (!w->joined) {
        const int64_t side = vectors % 2 == 0 && !x->varies ? 2 : 1;
        const int64_t most = given != NULL ? given->rows : MOST_VECTORS / side;
        rows->tile = y->varies ? window_varying_lines(y, most) : best_part(y->size, most);
        columns->tile = side * lanes;
    }
    choose_lines(w, given, x->dimension < 0 && given == NULL ? lanes : rows->tile); /* images of a pool are lanes */
    const int64_t lines = contract_parts(w->block, rows->tile) * rows->tile;
    int64_t end = 0; /* of the positions that tiles have */
    if (w->joined) {
        const int64_t all = contract_parts((w->block - 1) * w->line + x->size, lanes);
        columns->tile = best_part(all, MOST_VECTORS) * lanes;
        end = w->length = contract_parts(all * lanes, columns->tile) * columns->tile;
    } else {
        w->length = vectors * lanes;
        end = (lines - 1) * w->line + w->length;
        w->direct_results = !window_varies(w) && x->size == w->length && y->size % w->block == 0 &&
                            w->block % rows->tile == 0;
    }
    w->totals = w->joined ? w->length : lines * w->length;
    const int64_t below = w->in_turn ? y->taps - 1 : y->reach;
    w->plane = contract_parts(end + below * w->pitch + x->reach, w->line) * w->line;
    if (w->by_lines)
        opjit_ir_window_align(w, lanes, end + below * w->pitch + x->reach);
    w->lines = w->plane / (w->in_turn ? w->line : w->pitch);
    if (x->varies) {
        const int64_t step = w->line / w->pitch;
        w->lines = w->in_turn ? lines - 1 + contract_parts(below + 1, step) : (lines - 1) * step + below + 1;
        w->plane = w->lines * (w->in_turn ? w->line : w->pitch) + columns->tile + x->reach + w->shift;
    }
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

/* The steps of the tile that begins at element `first` of the copy's lines; of many taps, the loop over lines holds the
 * tile. */
static void add_taps(window *w, block *list, ir_ref first)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block loops[WINDOW_DIGITS], *last = list, inside;
    ir_ref digits[WINDOW_DIGITS], k = opjit_ir_index(f, 0), at[2], from[3], x[2];
    for (uint32_t d = 0; d < w->digit_count; d++) {
        digits[d] = opjit_ir_index(f, 0);
        if (w->digits[d].size == 1)
            continue;
        digits[d] = contract_loop(c, last, opjit_ir_index(f, w->digits[d].size), &loops[d]);
        last = &loops[d];
        if (d == 0 && c->length > MOST_TAPS)
            f->nodes[last->parent].hold = 1;
        k = contract_plus(c, k, contract_times(c, digits[d], w->digits[d].divide));
    }
    opjit_ir_contract_over_tile(c, last, at, &inside);
    opjit_ir_window_place(w, digits, from);
    const ir_ref own = contract_plus(c, contract_times(c, at[0], w->line), at[1]);
    from[2] = contract_plus(c, contract_plus(c, first, from[2]), own);
    x[w->factor] = opjit_ir_load(f, w->copy, from);
    const ir_ref before = opjit_ir_load(f, c->tile, at);
    const ir_type type = (ir_type)c->def.type;
    if (w->pool) {
        const ir_ref after = ir_expr2(f, ir_kind_op((ir_kind)c->def.kind), type, before, x[0]);
        opjit_ir_contract_store(c, &inside, c->tile, after, at);
        return;
    }
    x[1 - w->factor] = w->lies_well ? opjit_ir_window_direct(w, opjit_ir_index(f, 0), k)
                                    : opjit_ir_load(f, w->weights, (ir_ref[]){ opjit_ir_index(f, 0), k });
    opjit_ir_contract_store(c, &inside, c->tile, ir_dot_step(f, type, x[0], x[1], before), at);
}

/* The tile of lines from i on and positions from j on of the block, in the loop that holds it. */
static void add_tile(window *w, block *list, ir_ref i, ir_ref j)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    ir_ref at[2];
    block inside;
    if (c->length <= MOST_TAPS)
        f->nodes[list->parent].hold = 1;
    opjit_ir_contract_fill(c, list, c->tile, opjit_ir_index(f, c->side[CONTRACT_ROWS].tile),
                           opjit_ir_index(f, c->side[CONTRACT_COLUMNS].tile), opjit_ir_window_nothing(w));
    const ir_ref first = contract_plus(c, contract_times(c, i, w->line), j);
    add_taps(w, list, contract_plus(c, first, opjit_ir_index(f, w->shift)));
    opjit_ir_contract_over_tile(c, list, at, &inside);
    const ir_ref y = contract_plus(c, i, at[0]), x = contract_plus(c, j, at[1]), sum = opjit_ir_load(f, c->tile, at);
    if (w->direct_results) {
        c->at[w->axis[0].dimension] = contract_plus(c, w->first_position, y);
        w->direct_results = opjit_ir_contract_fits_tile(c, sum, w->of_group, x, false);
    }
    if (w->direct_results) {
        opjit_ir_contract_result(c, &inside, sum, w->of_group, x);
        return;
    }
    if (c->total == 0)
        c->total = opjit_ir_contract_scratch(c, 2, (int64_t[]){ 1, w->totals }, 0);
    const ir_ref to[2] = { opjit_ir_index(f, 0), contract_plus(c, contract_times(c, y, w->length), x) };
    opjit_ir_contract_store(c, &inside, c->total, sum, to);
}

/* Stores the results of the block from the totals. */
static void store_results(window *w, block *list, ir_ref lines)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block of_y, of_x, *last = &of_y;
    const ir_ref y = contract_loop(c, list, lines, &of_y);
    ir_ref own = contract_plus(c, w->first_position, y), from = contract_times(c, y, w->joined ? w->line : w->length);
    if (w->axis[1].dimension >= 0) {
        c->at[w->axis[0].dimension] = own;
        own = contract_loop(c, &of_y, opjit_ir_index(f, w->axis[1].size), &of_x);
        from = contract_plus(c, from, own);
        last = &of_x;
    }
    const ir_ref sum = opjit_ir_load(f, c->total, (ir_ref[]){ opjit_ir_index(f, 0), from });
    opjit_ir_contract_result(c, last, sum, w->of_group, own);
}

void opjit_ir_window_alone(window *w, block *list, ir_ref lines)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    block of_m, of_n;
    w->first_channel = c->first_k = opjit_ir_index(f, 0);
    w->here_channels = opjit_ir_index(f, w->channels);
    c->here_k = opjit_ir_index(f, c->length);
    opjit_ir_window_alone_copy(w, list);
    opjit_ir_window_weights(w, list);
    const ir_ref n = contract_loop(c, list, opjit_ir_index(f, w->length / columns->tile), &of_n);
    const ir_ref j = contract_times(c, n, columns->tile);
    if (w->joined || (w->axis[0].varies && w->block <= rows->tile)) { /* one tile of lines */
        add_tile(w, &of_n, opjit_ir_index(f, 0), j);
    } else {
        const ir_ref more = contract_plus(c, lines, opjit_ir_index(f, rows->tile - 1));
        const ir_ref tiles = ir_make2(f, IR_IDIV, IR_INDEX, more, opjit_ir_index(f, rows->tile));
        const ir_ref m = contract_loop(c, &of_n, opjit_ir_block_let(f, &of_n, tiles), &of_m);
        add_tile(w, &of_m, contract_times(c, m, rows->tile), j);
    }
    if (!w->direct_results)
        store_results(w, list, lines);
}
