/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - inputs that are stored across the output: tiles instead of columns; rows of a few elements, as rows and
 * columns of a loop of their own.  Part of collapse: reorders its nest, and makes the loops.
 *
 * A row of the output reads one element from each of many lines of such an input, and the next row reads the elements
 * beside them, when the lines may have left the cache.  So the two coordinates are walked in tiles: a few lines of
 * input wide, so that what is fetched is used while it is in the cache, and a few lines of output long, so that stores
 * complete them. */
#include "ir/passes/collapse/nest.h"

enum {
    TILE_LINES = 4, /* of input per tile: neighbours share a page, and are fetched together */
    TRANSPOSE_LINES =
        16, /* the same where tiles are transposed in registers: longer ones are predicted better */
    TRANSPOSE_ROWS = 16,   /* rows per block there, or fewer; a band has at least as many, if possible */
    TRANSPOSE_BYTES = 512, /* of output: shorter tiles don't pay */
    LEAST_COLUMNS = 4,     /* the narrowest tile */
    NEAR_STEP = 4,         /* elements from column to column: those of a few rows share each line */
    NEAR_BYTES = 16384,    /* of output per tile of such rows */
    WAYS = 8,              /* lines at one set of the first cache, on most machines */
    WAY = 4096,            /* bytes from one line of a set to the next */
    WORTH_BYTES = 4096,    /* of output: less stays in the cache in any order */
    NARROW_COLUMNS = 4,    /* rows that code generation stores in turn, a vector of each column's at a time, */
    NARROW_ROWS = 4,       /* of as many rows or more */
};

/* The position of the coordinate in which some input has its smallest stride, if that isn't the output's; count:
 * none. */
static uint32_t find_across(const nest *n)
{
    const uint32_t last = n->count - 1;
    for (uint32_t i = 0; i < n->load_count; i++) {
        const uint32_t t = ir_at(n->f, n->loads[i])->ref;
        uint64_t least = nest_stride(n, t, n->order[last]);
        uint32_t across = n->count;
        for (uint32_t k = 0; k < last; k++) {
            const uint64_t stride = nest_stride(n, t, n->order[k]);
            if (stride != 0 && stride < least) {
                least = stride;
                across = k;
            }
        }
        if (across < n->count)
            return across;
    }
    return n->count;
}

static int64_t line_elements(const nest *n)
{
    return IR_LINE / opjit_ir_type_size(n->f->tensors[nest_output(n)].type);
}

/* Whether columns of all inputs are so near to each other that a tile may be long: what it reads is one piece. */
static bool is_near(const nest *n)
{
    for (uint32_t i = 0; i < n->load_count; i++)
        if (nest_stride(n, ir_at(n->f, n->loads[i])->ref, n->order[n->count - 1]) > NEAR_STEP)
            return false;
    return true;
}

/* The length of a tile in elements of output: at most a line, and no more lines of any input than the cache holds,
 * which are few if their distance is a large power of two. */
static int64_t tile_length(const nest *n)
{
    const int64_t line = line_elements(n);
    int64_t length = line > WAYS ? line : WAYS;
    if (is_near(n))
        return NEAR_BYTES / IR_LINE * line;
    for (uint32_t i = 0; i < n->load_count && !n->plain; i++) {
        const uint32_t t = ir_at(n->f, n->loads[i])->ref;
        const uint64_t pitch = nest_stride(n, t, n->order[n->count - 1]) * (uint64_t)(IR_LINE / line);
        uint64_t apart = pitch == 0 ? 1 : WAY; /* the largest power of two in the distance */
        while (pitch % apart != 0)
            apart /= 2;
        if (WAYS * (WAY / (int64_t)apart) < length)
            length = WAYS * (WAY / (int64_t)apart);
    }
    return length;
}

/* The width of a band in rows of output. */
static int64_t band_width(const nest *n, int64_t rows)
{
    const int64_t line = line_elements(n);
    int64_t width = (n->plain ? TRANSPOSE_LINES : TILE_LINES) * line;
    while (n->plain && width < rows && rows % width != 0 && rows % width < TRANSPOSE_ROWS)
        width += line;
    return width;
}

/* Whether all inputs have one element for a whole row. */
static bool repeats(const nest *n)
{
    bool once = n->load_count > 0;
    for (uint32_t i = 0; i < n->load_count; i++)
        once = once && nest_stride(n, ir_at(n->f, n->loads[i])->ref, n->order[n->count - 1]) == 0;
    return once;
}

/* Whether rows are of a few elements that lie along columns of the input, or are one of it, and the parallel loop over
 * all of them would take the rows' coordinate apart, so that neighbours were not seen. */
static bool is_narrow(const nest *n, uint32_t across)
{
    const uint32_t last = n->count - 1;
    if (across + 1 != last || n->root_count > 0 || n->extents[n->order[last]] > NARROW_COLUMNS ||
        n->extents[n->order[across]] < NARROW_ROWS)
        return false;
    for (uint32_t i = 0; i < n->load_count; i++)
        for (uint32_t k = 0; k + 1 < last; k++)
            if (!opjit_ir_nest_joins(n, ir_at(n->f, n->loads[i])->ref, n->order[k], n->order[k + 1]))
                return true;
    return false;
}

bool opjit_ir_tile(nest *n)
{
    if (n->threads || n->count < 2 || !n->regular)
        return false;
    const uint32_t last = n->count - 1;
    uint32_t across = find_across(n);
    if (across == n->count && repeats(n) && is_narrow(n, last - 1))
        across = last - 1;
    if (across == n->count)
        return false;
    const uint32_t d = n->order[across];
    n->plain = n->root_count == 0 && n->extents[n->order[last]] >= LEAST_COLUMNS;
    n->narrow = is_narrow(n, across);
    const int64_t elements = n->extents[d] * n->extents[n->order[last]];
    if (!n->narrow && elements * (IR_LINE / line_elements(n)) <= (n->plain ? TRANSPOSE_BYTES : WORTH_BYTES))
        return false;
    for (uint32_t k = across; k + 1 < last; k++)
        n->order[k] = n->order[k + 1];
    n->order[last - 1] = d;
    n->inner = last - 1;
    n->tiled = true;
    ir_took(n->f, IR_STEP_TILE);
    return true;
}

/* Tile number `tile` of [0, extent). */
static void bounds(ir_func *f, ir_ref tile, int64_t size, int64_t extent, ir_ref *lo, ir_ref *hi)
{
    *lo = ir_make2(f, IR_IMUL, IR_INDEX, tile, opjit_ir_index(f, size));
    *hi = ir_make2(f, IR_IMIN, IR_INDEX, ir_make2(f, IR_IADD, IR_INDEX, *lo, opjit_ir_index(f, size)),
                   opjit_ir_index(f, extent));
}

static ir_ref nested_for(ir_func *f, block *around, ir_ref lo, ir_ref hi)
{
    const ir_ref loop = opjit_ir_for(f, lo, hi, 1);
    opjit_ir_block_add(f, around, loop);
    *around = (block){ .parent = loop };
    return loop;
}

ir_ref opjit_ir_tile_loops(nest *n, ir_ref *out_top, ir_ref *out_loop)
{
    ir_func *f = n->f;
    const ir_ref zero = opjit_ir_index(f, 0);
    const int64_t rows = n->extents[n->order[n->inner]], columns = n->extents[n->order[n->inner + 1]];
    const int64_t width = n->narrow ? rows : band_width(n, rows), length = tile_length(n);
    const int64_t outer = opjit_ir_nest_extent(n, 0, n->inner), bands = (rows + width - 1) / width;
    const uint64_t band_bytes = (uint64_t)(width < rows ? width : rows) * (uint64_t)columns * (uint64_t)IR_LINE;
    const uint64_t bytes = band_bytes / (uint64_t)line_elements(n) * (n->inner > 0 ? (uint64_t)bands : 1);
    const int64_t extent = n->inner > 0 ? outer : bands;
    const ir_ref stage = opjit_ir_stage(f, zero, opjit_ir_index(f, extent), opjit_ir_nest_grain(bytes, extent));
    block around = { 0 }; /* what is added first is the top */
    ir_ref band = stage != 0 ? ir_at(f, stage)->ref : 0, row_lo, row_hi, lo = zero, hi = opjit_ir_index(f, columns);
    if (stage == 0)
        return 0;
    if (n->inner > 0 && !n->narrow) {
        *out_top = nested_for(f, &around, zero, opjit_ir_index(f, bands));
        band = *out_top != 0 ? ir_at(f, *out_top)->ref : 0;
    } else if (n->inner > 0) {
        band = zero;
    }
    ir_ref top = 0;
    if (columns > length && !f->failed) {
        top = nested_for(f, &around, zero, opjit_ir_index(f, (columns + length - 1) / length));
        bounds(f, ir_at(f, top)->ref, length, columns, &lo, &hi);
    }
    bounds(f, band, width, rows, &row_lo, &row_hi);
    const ir_ref row = nested_for(f, &around, row_lo, row_hi);
    *out_loop = nested_for(f, &around, lo, hi);
    if (n->inner == 0 || n->narrow)
        *out_top = top != 0 ? top : row;
    n->row_var = ir_at(f, row)->ref;
    return stage;
}
