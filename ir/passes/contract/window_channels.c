/* SPDX-License-Identifier: Apache-2.0 */
/* window_channels.c - sums of products through windows of which each row of the result (channel) has its own, with
 * rows as a vector's lanes: for small images, whose lines fill vectors badly.  Part of place.
 *
 *     copy what a vector of rows reads, with padding around it, and their taps: transposed, an element of all rows
 *     side by side
 *     for each tile of some positions of a line, with the tile in registers:
 *         tile = +0; for each tap: tile = fma(w, x, tile)
 *     transpose the sums
 *
 * So no lane is for nothing, what tiles read begins at whole vectors, and a stride is a distance. */
#include "ir/passes/contract/window.h"

enum {
    MOST_TAPS = 64,         /* of a window */
    MOST_POSITIONS = 14,    /* of a tile, */
    MOST_OF_16 = 10,        /* with 16 registers; */
    MOST_STEPS = 512,       /* that are spelled out in one */
    COPY_BYTES = 64 << 10
};

static int64_t lanes_of(const window *w)
{
    return w->c.side[CONTRACT_ROWS].block;
}

/* Places of an axis that the taps of so many positions read. */
static int64_t places(const window_axis *x, int64_t positions)
{
    return (positions - 1) * x->stride + (x->taps - 1) * x->dilation + 1;
}

/* Whether each place of the copy is that of one position, or of one tap. */
static bool fits(const window_axis *x)
{
    return x->dimension >= 0 && !x->varies && (x->stride == 1 || (x->digit >= 0 && x->dilation == 1));
}

static void set_axis(window_axis *x)
{
    x->whole = x->stride > 1;
    x->classes = 1;
    x->reach = (x->taps - 1) * x->dilation;
    x->apart = false;
}

/* Positions of a tile: a line, or an equal part of one, if possible without any behind it. */
static int64_t tile_of(int64_t size, int64_t most)
{
    for (int64_t tile = size < most ? size : most; tile > most / 2; tile--)
        if (size % tile == 0)
            return tile;
    return contract_parts(size, contract_parts(size, most));
}

/* Whether it takes less time than lines of positions do, in cycles of a vector of rows: what is transposed takes
 * several for each vector, but lines that are copied, which are short, take longer. */
static bool pays(const window *w, int64_t lanes)
{
    enum { TRANSPOSED = 7, CALLED = 60, LINE = 10 };
    const window_axis *y = &w->axis[0], *x = &w->axis[1];
    const int64_t taps = (int64_t)w->c.length, positions = y->size * x->size, lines = places(y, y->size);
    const int64_t here = positions * taps + (lines * places(x, x->size) + positions + taps) * TRANSPOSED;
    const int64_t steps = w->blocks * w->totals / lanes * taps;
    return here < (steps + steps / 8 + CALLED + lines * x->classes * LINE) * lanes;
}

bool opjit_ir_window_choose_channels(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target)
{
    contract_side *rows = &w->c.side[CONTRACT_ROWS], *columns = &w->c.side[CONTRACT_COLUMNS];
    window_axis *y = &w->axis[0], *x = &w->axis[1];
    if (!w->alone || w->pool || w->rows < 0 || w->group != 1 || w->groups % lanes != 0 || lanes < 2 ||
        w->channels != 1 || w->free != 1 || w->c.length > MOST_TAPS || !fits(y) || !fits(x))
        return false;
    const int64_t held = rt_target_has_16_vectors(target) ? MOST_OF_16 : MOST_POSITIONS;
    const int64_t spelled = MOST_STEPS / (int64_t)w->c.length, most = held < spelled ? held : spelled;
    columns->tile = tile_of(x->size, given != NULL ? given->rows : most);
    w->pieces = contract_parts(x->size, columns->tile);
    const int64_t pitch = places(x, w->pieces * columns->tile), lines = places(y, y->size);
    if (given != NULL ? given->by_rows == 0
                      : w->c.def.type != IR_F32 || pitch * lines * lanes * 4 > COPY_BYTES || !pays(w, lanes))
        return false;
    set_axis(y);
    set_axis(x);
    w->by_channels = true;
    w->alone = false;
    w->pitch = pitch;
    w->lines = lines;
    w->block = y->size;
    w->blocks = 1;
    w->apart = w->pieces * columns->tile;
    w->groups /= lanes;
    w->group = lanes;
    rows->size = rows->block = rows->tile = lanes;
    rows->blocks = 1;
    return true;
}

void opjit_ir_window_channels_declare(window *w)
{
    contraction *c = &w->c;
    const int64_t lanes = lanes_of(w);
    w->copy = opjit_ir_contract_scratch(c, 3, (int64_t[]){ w->lines, w->pitch, lanes }, 0);
    w->weights = opjit_ir_contract_scratch(c, 2, (int64_t[]){ c->length, lanes }, 0);
    c->tile = opjit_ir_contract_scratch(c, 2, (int64_t[]){ c->side[CONTRACT_COLUMNS].tile, lanes }, 0);
    opjit_ir_window_rows_sums(w, w->block * w->apart);
}

/* The other factor, [taps, rows]. */
static void copy_weights(window *w, block *list)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    ir_ref digits[WINDOW_DIGITS];
    block of_k, of_lane;
    const ir_ref k = contract_loop(c, list, opjit_ir_index(f, c->length), &of_k);
    const ir_ref lane = contract_loop(c, &of_k, opjit_ir_index(f, lanes_of(w)), &of_lane);
    for (uint32_t d = 0; d < w->digit_count; d++) {
        digits[d] = ir_make2(f, IR_IDIV, IR_INDEX, k, opjit_ir_index(f, w->digits[d].divide));
        digits[d] = ir_make2(f, IR_IMOD, IR_INDEX, digits[d], opjit_ir_index(f, w->digits[d].size));
    }
    const ir_ref value = w->direct != 0 ? opjit_ir_window_direct(w, lane, k)
                                        : opjit_ir_window_weight(w, &of_lane, digits, lane);
    opjit_ir_contract_store(c, &of_lane, w->weights, value, (ir_ref[]){ k, lane });
}

/* The steps of the tile that begins at position x of line y, in the loop that holds it. */
static void add_taps(window *w, block *list, ir_ref y, ir_ref x)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block loops[WINDOW_DIGITS], *last = list, inside;
    ir_ref k = opjit_ir_index(f, 0), at[2], values[2];
    ir_ref place[WINDOW_AXES] = { contract_times(c, y, w->axis[0].stride), contract_times(c, x, w->axis[1].stride) };
    for (uint32_t d = 0; d < w->digit_count; d++) {
        const window_digit *digit = &w->digits[d];
        if (digit->size == 1)
            continue;
        const ir_ref tap = contract_loop(c, last, opjit_ir_index(f, digit->size), &loops[d]);
        last = &loops[d];
        k = contract_plus(c, k, contract_times(c, tap, digit->divide));
        const ir_ref apart = contract_times(c, tap, w->axis[digit->axis].dilation);
        place[digit->axis] = contract_plus(c, place[digit->axis], apart);
    }
    const ir_ref positions = opjit_ir_index(f, c->side[CONTRACT_COLUMNS].tile);
    opjit_ir_contract_loops(c, last, positions, opjit_ir_index(f, lanes_of(w)), at, &inside);
    const ir_ref own = contract_plus(c, place[1], contract_times(c, at[0], w->axis[1].stride));
    values[w->factor] = opjit_ir_load(f, w->copy, (ir_ref[]){ place[0], own, at[1] });
    values[1 - w->factor] = opjit_ir_load(f, w->weights, (ir_ref[]){ k, at[1] });
    const ir_ref before = opjit_ir_load(f, c->tile, at);
    const ir_type type = (ir_type)c->def.type;
    opjit_ir_contract_store(c, &inside, c->tile, ir_dot_step(f, type, values[0], values[1], before), at);
}

void opjit_ir_window_channels(window *w, block *list)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const ir_ref positions = opjit_ir_index(f, c->side[CONTRACT_COLUMNS].tile);
    const ir_ref lanes = opjit_ir_index(f, lanes_of(w));
    block of_n, of_y, inside;
    ir_ref at[2];
    w->first_channel = c->first_k = opjit_ir_index(f, 0);
    opjit_ir_window_channels_copy(w, list, lanes_of(w));
    copy_weights(w, list);
    const ir_ref n = contract_loop(c, list, opjit_ir_index(f, w->pieces), &of_n);
    const ir_ref x = contract_times(c, n, c->side[CONTRACT_COLUMNS].tile);
    const ir_ref y = contract_loop(c, &of_n, opjit_ir_index(f, w->block), &of_y);
    f->nodes[of_y.parent].hold = 1;
    opjit_ir_contract_fill(c, &of_y, c->tile, positions, lanes, 0);
    add_taps(w, &of_y, y, x);
    opjit_ir_contract_loops(c, &of_y, positions, lanes, at, &inside);
    const ir_ref first = contract_plus(c, contract_times(c, y, w->apart), x);
    const ir_ref to[2] = { contract_plus(c, first, at[0]), at[1] };
    opjit_ir_contract_store(c, &inside, w->sums, opjit_ir_load(f, c->tile, at), to);
    opjit_ir_window_rows_transpose(w, list);
}
