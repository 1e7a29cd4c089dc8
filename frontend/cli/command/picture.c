/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c - what the generators write, seen from their descriptors: ranges in numbers, a matrix as characters. '#'
 * value, '.' zero, '=' copied from the input; where one character stands for several elements, '+': some of both. */
#include <inttypes.h>
#include <string.h>

#include "frontend/cli/cli.h"

#define ROWS_MAX 16u
#define COLUMNS_MAX 32u

/* Diagonals t = x - y: filled for lo <= t < hi, or everywhere else. */
typedef struct band {
    int64_t lo, hi;
    bool inside;
    char rest; /* what stands where nothing is filled */
} band;

static bool find_band(const cli_operator *d, band *out)
{
    if (d->def->type == DML_OPERATOR_DIAGONAL_MATRIX1) {
        const DML_DIAGONAL_MATRIX1_OPERATOR_DESC *const desc = d->desc;
        const int64_t begin = desc->DiagonalFillBegin, end = desc->DiagonalFillEnd;
        *out = (band){ begin <= end ? begin : end, begin <= end ? end : begin, begin <= end,
                       desc->InputTensor != NULL ? '=' : '.' };
        return true;
    }
    if (d->def->type == DML_OPERATOR_DIAGONAL_MATRIX) {
        const DML_DIAGONAL_MATRIX_OPERATOR_DESC *const desc = d->desc;
        *out = (band){ desc->Offset, (int64_t)desc->Offset + 1, true, '.' };
        return true;
    }
    if (d->def->type == DML_OPERATOR_FILL_VALUE_CONSTANT || d->def->type == DML_OPERATOR_FILL_VALUE_SEQUENCE) {
        *out = (band){ 0, 0, false, '.' };
        return true;
    }
    return false;
}

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* Columns [*lo, *hi) of row y in which lo <= x - y < hi. */
static void row_range(const band *b, int64_t y, int64_t columns, int64_t *lo, int64_t *hi)
{
    *lo = clamp(b->lo + y, 0, columns);
    *hi = clamp(b->hi + y, *lo, columns);
}

/* The character of rows [y0, y1) and columns [x0, x1): its diagonals are all of those from the lower left corner's
 * to the upper right one's. */
static char cell(const band *b, int64_t y0, int64_t y1, int64_t x0, int64_t x1)
{
    const int64_t first = x0 - (y1 - 1), last = x1 - 1 - y0;
    const bool some_inside = b->lo <= last && first < b->hi && b->lo < b->hi;
    const bool all_inside = b->lo <= first && last < b->hi;
    const bool some = b->inside ? some_inside : !all_inside, every = b->inside ? all_inside : !some_inside;
    return every ? '#' : some ? '+' : b->rest;
}

static void draw(rt_bytes *out, const band *b, int64_t rows, int64_t columns)
{
    const int64_t high = rows < (int64_t)ROWS_MAX ? rows : (int64_t)ROWS_MAX;
    const int64_t wide = columns < (int64_t)COLUMNS_MAX ? columns : (int64_t)COLUMNS_MAX;
    for (int64_t r = 0; r < high; r++) {
        opjit_rt_bytes_append(out, "    ", 4);
        for (int64_t c = 0; c < wide; c++)
            opjit_rt_bytes_u8(out, (uint8_t)cell(b, r * rows / high, (r + 1) * rows / high, c * columns / wide,
                                                 (c + 1) * columns / wide));
        opjit_rt_bytes_u8(out, '\n');
    }
}

/* Elements filled in one matrix, and the bounds of its first, middle and last row. */
static void describe(rt_bytes *out, const band *b, int64_t rows, int64_t columns)
{
    const int64_t shown[3] = { 0, rows / 2, rows - 1 };
    uint64_t inside = 0;
    for (int64_t y = 0; y < rows; y++) {
        int64_t lo, hi;
        row_range(b, y, columns, &lo, &hi);
        inside += (uint64_t)(hi - lo);
    }
    const uint64_t all = (uint64_t)rows * (uint64_t)columns;
    opjit_rt_bytes_printf(out, "  filled: %" PRIu64 " of %" PRIu64 " elements of a matrix\n",
                          b->inside ? inside : all - inside, all);
    for (int i = 0; i < 3; i++) {
        int64_t lo, hi;
        if (i != 0 && shown[i] == shown[i - 1])
            continue;
        row_range(b, shown[i], columns, &lo, &hi);
        if (b->inside)
            opjit_rt_bytes_printf(out, "    row %" PRId64 ": columns [%" PRId64 ", %" PRId64 ")\n", shown[i], lo, hi);
        else
            opjit_rt_bytes_printf(out, "    row %" PRId64 ": columns [0, %" PRId64 ") and [%" PRId64 ", %" PRId64 ")\n",
                                  shown[i], lo, hi, columns);
    }
}

void opjit_cli_picture(rt_bytes *out, const cli_dispatchable *d)
{
    const cli_operator *const own = &d->own;
    band b;
    if (own->op == NULL || !find_band(own, &b))
        return;
    const opjit_tensor_info *const t = &own->outputs[0];
    const int64_t columns = (int64_t)t->sizes[t->rank - 1], rows = t->rank > 1 ? (int64_t)t->sizes[t->rank - 2] : 1;
    if (b.lo != b.hi || b.inside)
        describe(out, &b, rows, columns);
    opjit_rt_bytes_printf(
        out, "  picture of a matrix, %" PRId64 " rows of %" PRId64 " ('#' value, '.' zero, '=' input%s):\n", rows,
        columns, rows > (int64_t)ROWS_MAX || columns > (int64_t)COLUMNS_MAX ? ", '+' mixed" : "");
    draw(out, &b, rows, columns);
}
