/* SPDX-License-Identifier: Apache-2.0 */
/* window_sizes.c - the sizes of blocks and tiles of sums that are read through windows, and where a block's
 * lines lie in its copy.  Part of place.  No bit depends on a size. */
#include "ir/passes/contract/window.h"

#include <math.h>

enum {
    MOST_ROWS = 256,       /* of a block */
    MOST_BYTES = 8 << 20,  /* of scratch */
    ENOUGH_BLOCKS = 8,     /* for threads, */
    LEAST_POSITIONS = 256, /* but not blocks of fewer than so many */
    MUCH_WORK = 1 << 20,   /* products: threads share them */
    MOST_ZEROS = 8,        /* at both ends of a line of the copy */
    MOST_TRIED = 32,       /* numbers of lines of a block */
    PARTS = 4,             /* totals may take one of so many parts of the second cache */
    TILE_ROWS = 8,         /* sums that are held, in rows and vectors */
    TILE_ROWS_OF_16 = 6,   /* where there are 16 vector registers */
    TILE_VECTORS = 2,
    LINE_SUMS = 28, /* likewise, in vectors, of tiles of one line */
    LINE_SUMS_OF_16 = 12,
    LEAST_ROWS = 4, /* of such tiles */
    LEAST_TILE = 4, /* positions */
    MOST_DEPTH = 4096,
    MOST_VARYING = 256, /* positions of a block of the only axis, if it follows from a dynamic dimension */
};

/* Blocks of k are whole values of digit 0.  The order of integers' sums means nothing: they may be longer. */
bool opjit_ir_window_set_depth(window *w)
{
    const int64_t depth = w->depth = w->digits[0].divide, in_order = w->c.def.block;
    const bool ordered = ir_is_float((ir_type)w->c.def.type) || depth > MOST_DEPTH;
    const int64_t most = ordered || depth < in_order ? in_order : depth;
    const bool whole = w->c.length <= most;
    w->most = ordered ? most : most / depth * depth;
    w->channels = w->digits[0].axis >= 0 ? 1 : whole ? w->digits[0].size : w->most / depth;
    if (!whole && (w->digits[0].axis >= 0 || w->most % depth != 0))
        return false;
    w->free = 1;
    for (uint32_t d = 1; d < w->digit_count; d++)
        w->free *= w->digits[d].axis < 0 ? w->digits[d].size : 1;
    w->slots = w->free * w->axis[0].classes * w->axis[1].classes;
    w->bare =
        w->values[WINDOW_CONDITION] == 0 && !w->gathers && w->free == 1 && w->axis[0].digit < 0 && w->axis[1].digit < 0;
    ir_ref element = w->probed;
    while (ir_at(w->c.f, element)->op == IR_CAST)
        element = ir_operand(w->c.f, element, 0);
    w->of_memory = ir_at(w->c.f, element)->op == IR_LOAD || (w->bytes > 0 && w->flat_bytes);
    return true;
}

/* What depends on how many lines of positions a block has. */
static void set_lines(window *w, int64_t lines)
{
    const int64_t columns = w->c.side[CONTRACT_COLUMNS].tile;
    w->blocks = contract_parts(w->axis[0].size, lines);
    w->block = contract_parts(w->axis[0].size, w->blocks);
    w->blocks = contract_parts(w->axis[0].size, w->block);
    const int64_t length = (w->block - 1) * w->pitch + w->axis[1].size;
    w->tiles = w->lined ? w->block * w->pieces : contract_parts(length, columns);
    w->totals = w->tiles * columns;
    w->plane = w->lined ? length : w->totals;
    w->plane += w->axis[0].reach * w->pitch + w->axis[1].reach;
    w->flat = !window_varies(w) && w->bare && w->of_memory && w->axis[0].stride == 1 && w->axis[1].stride == 1 &&
              w->axis[1].dimension >= 0 && w->axis[0].size % w->block == 0;
    if (!w->flat)
        w->plane = contract_parts(w->plane, w->pitch) * w->pitch;
    w->lines = w->plane / w->pitch;
}

/* So many lines, where sizes of axes vary: no other number follows from these by rounding. */
static void set_varying_lines(window *w, int64_t lines)
{
    const window_axis *y = &w->axis[0];
    const int64_t columns = w->c.side[CONTRACT_COLUMNS].tile;
    set_lines(w, lines);
    w->block = y->varies ? lines : w->block;
    w->blocks = contract_parts(y->size, w->block);
    w->totals = (w->block - 1) * w->pitch + w->axis[1].size + columns; /* the last tile begins before the last one */
    w->tiles = contract_parts(w->totals - columns, columns);
    w->lines = w->block + y->reach;
    w->plane = w->lines * w->pitch + columns + w->axis[1].reach;
}

window opjit_ir_window_usual(const window *w)
{
    window usual = *w;
    usual.pitch += w->axis[1].usual - w->axis[1].size;
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        usual.axis[a].size = usual.axis[a].usual;
        usual.axis[a].varies = false;
    }
    return usual;
}

/* As many as an image of typical sizes has; positions of the only axis, of so many. */
static void choose_varying_lines(window *w, int64_t usual, int64_t positions)
{
    const window_axis *y = &w->axis[0];
    const int64_t columns = w->c.side[CONTRACT_COLUMNS].tile;
    const int64_t fit = (positions < MOST_VARYING ? positions : MOST_VARYING) / columns * columns;
    if (w->axis[1].dimension < 0)
        set_varying_lines(w, window_varying_lines(y, fit > 0 ? fit : columns));
    else
        set_varying_lines(w, y->varies ? window_near_lines(y, usual) : usual);
}

/* About how long the block's stage takes, in steps of sums and elements that are copied. */
static double cost_of(const window *w)
{
    enum { COPIED = 6, PACKED = 2 }; /* steps that take as long as an element of the copy, and of the other factor */
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const double taps = (double)w->depth;
    const double steps = (double)(w->tiles * w->c.side[CONTRACT_COLUMNS].tile * rows->block) * taps;
    const double copied = (double)w->slots * (double)w->plane * COPIED;
    return (double)w->blocks * (steps + copied + (double)rows->block * taps * PACKED);
}

double opjit_ir_window_cost(const window *w)
{
    enum { SIDE_BY_SIDE = 64, BY_TOTALS = 8 }; /* as many steps as a result takes that is stored and loaded between */
    const double blocks = (double)w->c.side[CONTRACT_ROWS].blocks, tiles = (double)(w->blocks * w->tiles);
    const double length = (double)w->c.length;
    if (w->plain)
        return blocks * (double)(w->blocks * w->tiled * w->c.side[CONTRACT_ROWS].block) *
               (w->later ? (length + BY_TOTALS) / length : 1);
    return blocks * (cost_of(w) + (w->bare ? 0 : tiles * (double)w->depth * SIDE_BY_SIDE));
}

/* How much longer `threads` threads take for so many equal blocks than for as much work that they share evenly. */
static double uneven(int64_t blocks, int64_t threads)
{
    return (double)(contract_parts(blocks, threads) * threads) / (double)blocks;
}

double opjit_ir_window_for_threads(const window *w, double cost)
{
    const double many = 0.01; /* what 8 threads count beside one and two */
    const contraction *c = &w->c;
    const int64_t blocks = window_images(w) * w->groups * c->side[CONTRACT_ROWS].blocks * w->blocks;
    const double positions = (double)w->axis[0].size * (double)w->axis[1].size;
    const double work = (double)(window_images(w) * w->groups * w->group) * positions * (double)c->length;
    return work < MUCH_WORK ? cost : cost * (1 + uneven(blocks, 2) + many * uneven(blocks, 8));
}

/* Lines of positions: as many as fit, fewer where there would be few iterations, and of those to half as many the
 * best. */
static void choose_lines(window *w, int64_t most, int64_t others)
{
    most = window_lines(w, most);
    while (most > 1 && others * contract_parts(w->axis[0].size, most) < ENOUGH_BLOCKS &&
           most * w->pitch >= 2 * LEAST_POSITIONS)
        most--;
    int64_t best = most;
    double least = INFINITY;
    for (int64_t lines = most; lines >= most / 2 && lines > 0 && lines > most - MOST_TRIED; lines--) {
        set_lines(w, lines);
        const double cost = cost_of(w) * (others * w->blocks > 1 ? uneven(others * w->blocks, 2) : 1);
        if (cost < least) {
            least = cost;
            best = lines;
        }
    }
    set_lines(w, best);
}

static void choose_rows(window *w, const rt_target *target)
{
    contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const int64_t most = rt_target_has_16_vectors(target) ? TILE_ROWS_OF_16 : TILE_ROWS;
    rows->tile = w->group < most ? w->group : most;
    for (int64_t r = most; r > most / 2; r--)
        if (contract_parts(w->group, r) * r < contract_parts(w->group, rows->tile) * rows->tile)
            rows->tile = r;
}

/* Positions of a tile, of so many in all: two vectors, one, or a fraction of one. */
static int64_t tile_of(int64_t positions, int64_t lanes)
{
    int64_t tile = TILE_VECTORS * lanes;
    while (tile > LEAST_TILE && tile > lanes / 2 && tile / 2 >= positions)
        tile /= 2;
    return tile;
}

/* Sums of all tiles of these sizes, those that are for nothing, too. */
static int64_t sums_of(const window *w, int64_t positions, int64_t rows, int64_t columns)
{
    return contract_parts(w->group, rows) * rows * contract_parts(positions, columns) * columns;
}

bool opjit_ir_window_widen(window *w, int64_t lanes, const rt_target *target)
{
    contract_side *rows = &w->c.side[CONTRACT_ROWS];
    if (!contract_may_be_wide(target, (ir_type)w->c.def.type) || w->alone || w->bytes > 0 ||
        w->values[WINDOW_CONDITION] != 0)
        return false;
    rows->tile = w->group < CONTRACT_WIDE_ROWS ? w->group : CONTRACT_WIDE_ROWS;
    w->c.side[CONTRACT_COLUMNS].tile = CONTRACT_WIDE_VECTORS * lanes;
    return true;
}

/* Rows and positions of a tile, of so many positions in all. */
static void choose_tile(window *w, int64_t positions, int64_t lanes, const rt_target *target)
{
    enum { MORE = 20 }; /* tiles of three vectors may have one of so many sums more */
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    contract_side *columns = &w->c.side[CONTRACT_COLUMNS];
    const bool lone = w->axis[1].dimension < 0; /* a block then has a power of two of vectors, where it varies */
    choose_rows(w, target);
    columns->tile = window_varies(w) ? TILE_VECTORS * lanes : tile_of(positions, lanes);
    const int64_t sums = sums_of(w, positions, rows->tile, columns->tile);
    window wide = *w;
    if (!(lone && window_varies(w)) && opjit_ir_window_widen(&wide, lanes, target) &&
        sums_of(w, positions, wide.c.side[CONTRACT_ROWS].tile, wide.c.side[CONTRACT_COLUMNS].tile) <=
            sums + sums / MORE)
        *w = wide;
}

static double cost_of_threads(const window *w)
{
    return opjit_ir_window_for_threads(w, opjit_ir_window_cost(w));
}

/* Two blocks in place of one, if threads gain by it: of lines, which may need more tiles, or of rows, both of which
 * copy what windows read. */
static void halve(window *w)
{
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const int64_t half = contract_parts(contract_parts(w->group, rows->tile), 2) * rows->tile;
    window lines = *w, other = *w;

    if (window_images(w) * w->groups * rows->blocks * w->blocks > 1)
        return;
    set_lines(&lines, contract_parts(w->axis[0].size, 2));
    other.c.side[CONTRACT_ROWS].block = half;
    other.c.side[CONTRACT_ROWS].blocks = contract_parts(w->group, half);
    if (cost_of_threads(&lines) < cost_of_threads(w))
        *w = lines;
    if (cost_of_threads(&other) < cost_of_threads(w))
        *w = other;
}

int64_t opjit_ir_window_zeros_of_lines(window *w)
{
    const window_axis *x = &w->axis[1];
    int64_t count = 0;
    if (w->gathers || w->single || w->bytes > 0 || w->values[WINDOW_CONDITION] != 0 || x->dimension < 0 ||
        x->digit < 0 || x->stride != 1 || x->apart || x->unit != 0)
        return 0;
    while (count < x->reach && count < MOST_ZEROS && opjit_ir_window_is_padding(w, 1, 0, count) &&
           opjit_ir_window_is_padding(w, 1, 0, x->size + x->reach - 1 - count))
        count++;
    return count;
}

/* Rows in tiles and blocks; positions so that totals fit their part of the second cache. */
static bool choose_form(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target)
{
    contract_side *rows = &w->c.side[CONTRACT_ROWS], *columns = &w->c.side[CONTRACT_COLUMNS];
    const int64_t size = opjit_ir_type_size((ir_type)w->c.def.type);
    int64_t most = MOST_ROWS, part = (int64_t)target->l2 / PARTS;
    w->pitch = w->axis[1].size + w->axis[1].reach - (w->alone ? 0 : opjit_ir_window_zeros_of_lines(w));
    w->pitch += w->axis[1].uneven && !w->gathers; /* lines of all sizes have padding behind them */
    if (given != NULL) {
        rows->tile = given->rows;
        columns->tile = given->columns;
        most = given->block_rows;
    } else {
        const int64_t line = w->pitch - w->axis[1].size + w->axis[1].usual;
        choose_tile(w, (w->axis[0].usual - 1) * line + w->axis[1].usual, lanes, target);
    }
    const int64_t fit = w->groups > 1           ? contract_parts(w->group, rows->tile)
                        : most / rows->tile > 0 ? most / rows->tile
                                                : 1;
    rows->size = w->group;
    rows->blocks = contract_parts(contract_parts(w->group, rows->tile), fit);
    rows->block = contract_parts(contract_parts(w->group, rows->tile), rows->blocks) * rows->tile;
    rows->blocks = contract_parts(w->group, rows->block);
    if (w->pitch > INT32_MAX || w->slots > INT32_MAX / w->channels || rows->block > INT32_MAX)
        return false;
    const int64_t lines = given != NULL ? given->block_columns / w->pitch : part / size / rows->block / w->pitch;
    const bool varies = given == NULL && !w->alone && window_varies(w);
    window usual = opjit_ir_window_usual(w);
    if (varies && !choose_form(&usual, NULL, lanes, target))
        return false;
    if (w->alone)
        opjit_ir_window_alone_sizes(w, given, lanes);
    else if (given != NULL)
        set_lines(w, window_lines(w, lines));
    else if (varies)
        choose_varying_lines(w, usual.block, part / size / rows->block);
    else
        choose_lines(w, lines, window_images(w) * w->groups * rows->blocks);
    if (given == NULL && !w->alone && !window_varies(w))
        halve(w);
    const double copied = w->gathers ? 0 : (double)w->channels * (double)w->slots * (double)w->plane;
    const double bytes = (copied + (double)rows->block * (double)w->totals) * (double)size;
    return bytes <= MOST_BYTES;
}

/* Dilated taps get planes of their own, without what lies between them. */
static bool set_apart(window *w)
{
    bool any = false;
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        window_axis *x = &w->axis[a];
        x->apart = x->stride == 1 && x->dilation > 1 && x->taps > 1 && x->taps <= WINDOW_CLASSES;
        x->classes = x->apart ? x->taps : x->classes;
        x->reach = x->apart ? 0 : x->reach;
        any = any || x->apart;
    }
    w->slots = w->free * w->axis[0].classes * w->axis[1].classes;
    return any && w->axis[0].classes * w->axis[1].classes <= WINDOW_CLASSES;
}

/* Sizes, with taps in one plane or in planes of their own. */
static bool choose_planes(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target)
{
    window apart = *w;
    const bool fits = choose_form(w, given, lanes, target);
    if (w->alone || w->single || w->gathers || window_varies(w) || !set_apart(&apart) ||
        !choose_form(&apart, given, lanes, target) || (fits && cost_of(w) <= cost_of(&apart)))
        return fits;
    *w = apart;
    return true;
}

bool opjit_ir_window_choose_lined(window *w, int64_t lanes, const rt_target *target)
{
    contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const int64_t sums = rt_target_has_16_vectors(target) ? LINE_SUMS_OF_16 : LINE_SUMS;
    const int64_t vectors = w->axis[1].size / lanes;
    if (w->slots == 1 || w->bare || w->alone || w->single || w->gathers || w->pool || w->bytes > 0 ||
        w->c.length > w->most || w->values[WINDOW_CONDITION] != 0 || w->axis[1].dimension < 0 ||
        w->axis[1].size % lanes != 0 || w->group % rows->block != 0 || window_varies(w) || w->c.r->is_step)
        return false;
    for (int64_t v = sums / LEAST_ROWS; v > 1; v--) {
        int64_t tile = sums / v < rows->block ? sums / v : rows->block;
        while (tile > 0 && rows->block % tile != 0)
            tile--;
        if (vectors % v != 0 || tile < LEAST_ROWS)
            continue;
        rows->tile = tile;
        w->c.side[CONTRACT_COLUMNS].tile = v * lanes;
        w->pieces = vectors / v;
        w->lined = true;
        set_lines(w, w->block);
        return true;
    }
    return false;
}

bool opjit_ir_window_choose_sizes(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target)
{
    if (!choose_planes(w, given, lanes, target))
        return false;
    w->apart = w->pitch;
    return true;
}
