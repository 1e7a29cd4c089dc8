/* SPDX-License-Identifier: Apache-2.0 */
/* window.h - shared by the files window*.c: sums of products one factor of which is read through
 * windows that slide along one or two coordinates of the result, as convolutions do.  An iteration of the stage makes
 * some rows of positions of some rows of the result (channels): for each block of k it copies what the windows read to
 * scratch, where each tap lies at a constant distance from every position, and adds tile after tile to totals. */
#ifndef OPJIT_IR_PASSES_CONTRACT_WINDOW_H
#define OPJIT_IR_PASSES_CONTRACT_WINDOW_H

#include "ir/passes/contract/contract.h"

enum { WINDOW_AXES = 2, WINDOW_DIGITS = 6, WINDOW_CONDITION = 2 };
enum { WINDOW_CLASSES = 16 /* of both axes: each is a nest of loops */ };
enum { WINDOW_PHASES = 8 /* at most */ };
enum { WINDOW_MOST_TIMES = 2 /* tiles of rows that read positions from wherever they lie */ };
enum { WINDOW_MANY_CLASSES = 4 /* for a loop over them: a block that is transposed has as many rows */ };
enum { WINDOW_FORMS = 5 /* of tiles with some of the taps: likewise */ };

/* A digit of k, size values of k / divide.  Number 0 is the highest. */
typedef struct window_digit {
    int64_t divide, size;
    ir_ref probe; /* a variable with these values, of a loop that is in no block */
    int32_t axis; /* along which it moves the window; -1: none */
} window_digit;

/* A coordinate of the result along which windows slide: position p and tap t read what only p * stride + t * dilation
 * decides. */
typedef struct window_axis {
    int32_t dimension; /* of the result; -1: none, there is one position */
    int32_t digit;     /* the taps; -1: there is one */
    int64_t size, taps, stride, dilation;
    int64_t period;  /* taps t and t + period have one remainder of what they read by stride, and what the second one */
    int64_t step;    /* reads is the first one's, so many positions further on */
    int64_t classes; /* remainders that occur: of taps 0 to period - 1; apart: taps */
    int64_t reach;   /* positions behind the last one that the copy has */
    bool apart;      /* each tap is a class, with a plane of its own */
    int64_t unit;    /* what its size, which varies, is a multiple of in all samples; 0: it does not vary */
    int64_t usual;   /* its size, for typical sizes if it varies */
    bool varies;     /* its size follows from a dynamic dimension, and no other size from it */
    bool uneven;     /* likewise, and the last window may have other padding for other sizes */
    bool whole;      /* the copy has all that is read, in order, and positions are `stride` elements (lines) apart */
} window_axis;

/* Which taps of an axis take part in the sums of each value of another dimension of the result; -1: all in all. */
typedef struct window_phase {
    int32_t dimension;
    int64_t lo[WINDOW_PHASES], count[WINDOW_PHASES];
} window_phase;

typedef struct window {
    contraction c; /* columns are positions of a block, rows those of a group */
    bool pool;        /* values are summed, or compared, not products: there is no other factor */
    uint32_t factor;  /* that is read through windows */
    ir_ref values[3]; /* of both factors, and whether a step takes part (WINDOW_CONDITION; 0: all do) */
    int32_t rows;    /* dimension; -1: one row */
    int64_t groups, group; /* the dimension's groups, and rows of one, for which windows read the same */
    window_digit digits[WINDOW_DIGITS];
    uint32_t digit_count;
    window_axis axis[WINDOW_AXES]; /* outer, inner */
    ir_ref probed;                 /* the factor with probes in place of digits */
    int64_t most, channels, depth; /* k of a block; values of digit 0 in it, and k of one of them */
    bool single;                   /* there is one position: axes are dimensions of one element */
    int64_t bytes;                 /* k of bytes, whose words are the k of all other members; 0: no bytes */
    int64_t in_word;               /* of which so many are channels: all four, or as many as there are */
    bool halves;                   /* words are one or two numbers of 16 bits, less zero points */
    bool zero[2], moved[2], flat_bytes; /* [1]: of windows, [0]: of rows; less a zero point; moved by 128; no padding */
    uint32_t row_sums, window_sums; /* temp, scratch: sums of the bytes of words; 0: not needed */
    bool alone;                    /* window_alone.c makes it, and uses the next ones */
    /* lines of the copy's remainders along the outer axis follow each other in a plane */
    bool in_turn;
    bool joined;                   /* all lines of a block are one, with what lies between them */
    bool direct_results;           /* they are stored from the tile */
    bool by_lines;                 /* the copy is made line by line, with padding only between them */
    int64_t shift;                 /* elements of the copy before its first line */
    int64_t line;                  /* elements of the copy from a line of positions to the next */
    int64_t length;                /* positions of a line that tiles have */
    int64_t totals;                /* positions of a block's totals, with those that tiles reach beyond lines */
    bool by_channels;              /* lanes are rows that have windows of their own: window_channels.c */
    ir_ref lane;                   /* which row of the group the copy is of; 0: the first one, of all rows */
    bool gathers;                  /* taps are read from memory one by one: there is no copy */
    bool bare;                     /* without taps: tiles read the copy itself */
    bool in_place;                 /* tiles read the taps of a channel from the copy itself */
    bool of_memory;                /* the windows' factor is elements that are loaded, widened at most */
    bool flat;                     /* and the copy of whole lines of memory is one line */
    bool lies_well;                /* tiles read the other factor as it lies, by `direct` */
    int64_t pitch;                 /* of a row of positions; rows share zeros at their ends */
    int64_t block, blocks;         /* rows of positions of an iteration */
    int64_t free;                  /* values of the digits without axis, but for digit 0 */
    int64_t slots;                 /* planes of the copy for a value of digit 0: so many for each class */
    int64_t plane;                 /* elements of one */
    int64_t lines;                 /* of the copy, and what is behind them in a plane, for the last tile: zeros */
    int64_t tiles;                 /* of positions */
    bool by_rows;                  /* lanes are rows, not positions: window_rows.c, which uses the next four */
    int64_t pieces;                /* tiles of a line */
    contraction other;             /* the rows' factor as columns, which a stage before copies to a temp */
    uint32_t sums;                 /* scratch: totals before they are transposed, [positions, rows] */
    int64_t apart;                 /* totals from one line to the next; without by_rows: pitch */
    bool may_skip;                 /* taps along lines are in one plane, with all padding */
    bool skips;                    /* tiles leave out padding: window_skip.c, which uses the next ones */
    double steps;                  /* the part of all steps that tiles have then */
    int64_t inside[WINDOW_AXES][2]; /* places before the first one and from the second one on are padding */
    uint32_t forms;
    int64_t form[WINDOW_FORMS][WINDOW_AXES]; /* numbers of taps along the axes; the first one: all */
    uint32_t least;                /* temp: how small the other factor's elements are */
    ir_ref tile_line, tile_first;  /* where axes vary: line and position of the tile in the block */
    ir_ref all_steps;              /* 1: no step of the block of k may be left out; else 0 */
    ir_ref first_tap[WINDOW_AXES], tap_count[WINDOW_AXES]; /* of the tile */
    int64_t taps[WINDOW_AXES];     /* of the form; 0: all */
    ir_ref from_tap[WINDOW_AXES];
    bool parted;                   /* window_phases.c, which uses the last ones, too */
    window_phase phase[WINDOW_AXES];
    ir_ref phase_taps[WINDOW_AXES]; /* of this block's phase */
    bool chooses;                  /* the tile that is written chooses by the condition */
    bool lined;                    /* a tile's positions are of one line: results are stored from it */
    bool joins;                    /* results are stored by one coordinate for both dimensions of positions */
    bool plain;                    /* window_plain.c, which uses the next seven */
    bool costly;                   /* found: results take more than a tile has */
    bool later;                    /* results are made of totals, behind all tiles */
    bool beside;                   /* positions of a tile are copied to `panel`, */
    bool ahead;                    /* and those of all tiles before they are used */
    int64_t last_tile, tiled;      /* positions of a block's last tile, if it is another one, and of all tiles */
    uint32_t short_tile;           /* scratch: sums of a last tile that is shorter than the others */
    uint32_t copy, weights;        /* scratch: [channels, slots, plane], [rows, k] */
    uint32_t panel;                /* scratch: [k, positions of a tile]; plain: [tiles, k, positions] */
    uint32_t parts, part;          /* of bytes, which steps take part: [k of a value of digit 0, positions], and like
                                      panel; 0: all */
    uint32_t direct; /* a view of the other factor's memory, [its rows, k]; 0: its elements are computed one by one */
    ir_ref first_channel, here_channels; /* of the block of k */
    ir_ref of_group, first_row;          /* the stage's group, and rows in it before the block */
    ir_ref first_position;               /* rows of positions before the block */
    ir_ref number;                       /* of the block of k; 0: there is one */
} window;

/* window_digits.c: finds the digits that the expressions below `pair` take of k, the highest first.  false: it
 * is used in another way, or there is no memory. */
bool opjit_ir_window_find_digits(window *w, ir_ref pair, ir_ref k);
/* Enters what replaces k and quotients of it, where its digits have these values. */
void opjit_ir_window_map_digits(const window *w, const ir_ref *values, ir_map *map);
/* window_sizes.c: blocks of k, and what each has; false: it can't be made in blocks. */
bool opjit_ir_window_set_depth(window *w);
/* The same for typical sizes of dimensions, as if these were all. */
window opjit_ir_window_usual(const window *w);
/* Sizes, with positions or rows as lanes, taps in one plane or in planes of their own; false: too much scratch. */
bool opjit_ir_window_choose_sizes(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target);
/* Sets a tile of few rows and three vectors, which loads less for each sum; false: registers or the type don't fit. */
bool opjit_ir_window_widen(window *w, int64_t lanes, const rt_target *target);
/* How many elements of padding at the end of each line of the copy are those at the beginning of the next one. */
int64_t opjit_ir_window_zeros_of_lines(window *w);
/* Tiles of whole vectors of one line, if it has no other positions and sums have one block of k. */
bool opjit_ir_window_choose_lined(window *w, int64_t lanes, const rt_target *target);
/* window_stage.c: the stage.  false: another element is read, and nothing changed. */
bool opjit_ir_window_write(window *w, block *stages);
/* window_alone.c: whether each row of the result has windows of its own, of a few taps and nothing else
 * (depthwise convolutions): no tiles, but vectors of positions whose steps are written out. */
bool opjit_ir_window_is_alone(const window *w);
void opjit_ir_window_alone_sizes(window *w, const ir_tiles *given, int64_t lanes);
/* Stores the results of a block of `lines` lines of positions. */
void opjit_ir_window_alone(window *w, block *list, ir_ref lines);
/* window_alone_copy.c: what padding is: of sums 0, of pools what changes no result. */
uint64_t opjit_ir_window_nothing(const window *w);
/* Sets where the lines of the copy begin, which is at whole vectors, and its size, for at least so many elements. */
void opjit_ir_window_align(window *w, int64_t lanes, int64_t least);
void opjit_ir_window_alone_copy(window *w, block *list);
/* window_channels.c: the same with rows as lanes.  Sizes; false: that is no form for it, or slower. */
bool opjit_ir_window_choose_channels(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target);
void opjit_ir_window_channels_declare(window *w);
void opjit_ir_window_channels(window *w, block *list);
/* window_alone_copy.c: what they read, [lines, places, rows]. */
void opjit_ir_window_channels_copy(window *w, block *list, int64_t lanes);
/* window_copy.c: what a block of k reads, to scratch: the windows' factor, for the rows of positions from
 * first_position on, and the other one. */
void opjit_ir_window_copy(window *w, block *list);
void opjit_ir_window_weights(window *w, block *list);
/* window_varying.c: whether the windows' factor is padding at this position (of a whole axis: place) for taps of this
 * remainder, whatever the other coordinates are; the positions from the first to the last one where it is not, of which
 * there may be none. */
typedef struct window_span {
    int64_t lo, hi;
} window_span;
bool opjit_ir_window_is_padding(window *w, uint32_t axis, int64_t class, int64_t position);
window_span opjit_ir_window_inside_of(window *w, uint32_t axis, int64_t class);
/* Where, of `count` lines from `first` on, those of the remainder that are no padding begin and end, in lets; both are
 * counted from `from` on. */
void opjit_ir_window_lines_inside(window *w, block *list, int64_t class, ir_ref first, int64_t count, int64_t from,
                                  ir_ref *begin, ir_ref *end);
/* What taps of these remainders read at such a line and place; digits: of what is no axis. */
ir_ref opjit_ir_window_inside_value(window *w, block *list, const int64_t *class, const ir_ref *digits, ir_ref all_y,
                                    ir_ref x);
/* The copy where sizes vary, over padding, or with the padding around it if there is one remainder. */
bool opjit_ir_window_fills_around(const window *w);
void opjit_ir_window_copy_varying(window *w, block *list, const ir_ref *digits, ir_ref first, const ir_ref *row);
/* What is in a factor, or a part of it, for these digits of k, with nothing shared. */
ir_ref opjit_ir_window_made(window *w, ir_ref of, const ir_ref *digits, ir_ref row, ir_ref *at);
/* A factor's value in row `row` of the group, for these digits of k; at: the other coordinates, some of which it
 * sets. */
ir_ref opjit_ir_window_factor(window *w, block *list, uint32_t factor, const ir_ref *digits, ir_ref row, ir_ref *at);
/* The other factor in row `row` of the group, for these digits of k. */
ir_ref opjit_ir_window_weight(window *w, block *list, const ir_ref *digits, ir_ref row);
/* Where the copy has the taps of these digits, in front of the position's own place; at: its coordinates. */
void opjit_ir_window_place(const window *w, const ir_ref *digits, ir_ref *at);
/* Sets `direct`, a view of the other factor's memory as rows of k, if it is elements of memory, which may be
 * widened. */
void opjit_ir_window_find_direct(window *w, ir_ref factor);
/* The other factor's element in row `row` of the group, for k of the block, by the view `direct`. */
ir_ref opjit_ir_window_direct(window *w, ir_ref row, ir_ref k);
/* window_rows.c: lanes are rows, whose factor is constants of which a copy is kept, and a tile is positions of
 * one line: no lane is for nothing where lines are short.  Sizes; false: that is no form for it, or slower than *w. */
bool opjit_ir_window_by_rows(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target);
/* About how long the stage takes, in steps of sums. */
double opjit_ir_window_cost(const window *w);
/* Such a time for comparisons: of one thread and of several, which wait for each other where blocks are few. */
double opjit_ir_window_for_threads(const window *w, double cost);
/* The stage that copies the rows' factor; scratch. */
void opjit_ir_window_rows_share(window *w, block *stages);
void opjit_ir_window_rows_declare(window *w);
/* Scratch for the totals of so many positions, before and after they are transposed. */
void opjit_ir_window_rows_sums(window *w, int64_t positions);
/* The factor in lane `lane` of the tile of rows from row i of the block on, for k of the block of k. */
ir_ref opjit_ir_window_rows_factor(window *w, ir_ref i, ir_ref k, ir_ref lane);
/* Where tile n of positions begins in the copy. */
ir_ref opjit_ir_window_rows_place(const window *w, block *list, ir_ref n);
/* Where sizes of axes vary, and lines are not joined: a loop over the tiles of so many lines; returns where the tile
 * begins in the copy, and sets *to, where it does in the totals. */
ir_ref opjit_ir_window_rows_lines(window *w, block *list, ir_ref lines, block *out, ir_ref *to);
/* The totals, transposed to those of other windows. */
void opjit_ir_window_rows_transpose(window *w, block *list);
/* window_skip.c: tiles, with rows as lanes, that leave out taps of padding.  Whether windows may have any, in
 * planes whose sizes it sets; and, with all other sizes, whether it is worth it: then it sets `skips` and the forms. */
bool opjit_ir_window_may_skip(window *w);
bool opjit_ir_window_find_skips(window *w);
/* About how many elements a block copies to a plane. */
double opjit_ir_window_inside(const window *w);
/* The stage that finds the smallest element of the rows' factor, after the one that copies it. */
void opjit_ir_window_share_least(window *w, block *stages);
/* Sets the copy to zeros, once for all blocks of k; copies what is no padding, and finds the smallest of it. */
void opjit_ir_window_clear_copy(window *w, block *list);
void opjit_ir_window_copy_inside(window *w, block *list);
/* Which taps tile n has; the loop that runs if the tile has this form, whose block it returns. */
void opjit_ir_window_skip(window *w, block *list, ir_ref n);
block *opjit_ir_window_form(window *w, block *list, uint32_t form, block *out);
bool opjit_ir_window_add_form(window *w, int64_t lines, int64_t taps);
/* Looks for the smallest element of all of the copy. */
void opjit_ir_window_look_at_copy(window *w, block *list);
/* window_plain.c: windows without taps that are read, and whose results are stored, as they lie in memory.  Sizes;
 * false: that is no form for it. */
bool opjit_ir_window_choose_plain(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target);
void opjit_ir_window_declare_plain(window *w);
/* Whether totals have the results' own order of positions in memory, across lines. */
bool opjit_ir_window_may_join(const window *w);
/* Sets the coordinates of a position of the block, counted across lines; returns the inner one. */
ir_ref opjit_ir_window_set_position(const window *w, ir_ref position, ir_ref *at);
/* Whether what the list makes of a loop's variable takes no quotients of it, which are no vectors; and whether the
 * store at its end has one coordinate for both dimensions of positions. */
bool opjit_ir_window_is_in_order(window *w, const block *list, ir_ref variable);
/* All of a block; c->in.refused: results are no elements in the order of memory, or take more than tiles can do. */
void opjit_ir_window_plain(window *w, block *list);
/* window_phases.c: sums some of whose steps take no part, with rows as lanes.  Whether it can make them: then
 * it sets `parted` and the forms. */
bool opjit_ir_window_find_phases(window *w);
/* How many copies of the rows' factor there are, one for each phase. */
int64_t opjit_ir_window_matrices(const window *w);
/* Puts the factors without their condition into the statement, and returns what was there, for the second one. */
ir_ref opjit_ir_window_bare_factors(window *w);
void opjit_ir_window_own_factors(window *w, ir_ref pair);
/* The phase of the stage's block; whether tiles of the block of k have its form, or choose, in the loop that the third
 * one opens: whether position i of tile n takes part in the step of these digits. */
void opjit_ir_window_set_phase(window *w, block *list);
void opjit_ir_window_choose_way(window *w, block *list);
block *opjit_ir_window_open_chosen(window *w, block *list, block *out);
ir_ref opjit_ir_window_takes_part(window *w, const ir_ref *digits, ir_ref n, ir_ref i);
/* window_parts.c: whether an expression moves with a coordinate of the result. */
bool opjit_ir_window_moves(const window *w, ir_ref expr, int32_t dimension);
/* Factors that are -0 and +0 under one condition, and then change no sum, whatever they are multiplied by otherwise:
 * their values without it, and the condition. */
void opjit_ir_window_take_condition(window *w, ir_ref pair);
/* The value of a pool's step, without bounds of indices where its own condition has them. */
void opjit_ir_window_take_pool(window *w, ir_ref value);
/* Keeps loads of steps that take no part inside of their tensors. */
void opjit_ir_window_guard(window *w, ir_map *map);
/* Whether which steps take part is the same for all values of digit 0, if these are channels. */
bool opjit_ir_window_parts_fit(const window *w, ir_map *map);
/* window_copy.c: which taps of the block's positions take part in sums. */
void opjit_ir_window_parts(window *w, block *list);
/* The taps of the tile that begins at position `first` of the block, side by side. */
void opjit_ir_window_panel(window *w, block *list, ir_ref first);

/* window_bytes.c.  Whether both factors are bytes, less zero points, with up to four channels or a multiple of
 * four, or in halves any number; then it changes w: k are words. */
bool opjit_ir_window_is_bytes(window *w, const rt_target *target);
/* The word of a factor, as opjit_ir_window_factor. */
ir_ref opjit_ir_window_word(window *w, uint32_t factor, const ir_ref *digits, ir_ref row, ir_ref *at);
/* The stage that packs the words of all rows to a temp; false: no memory, or too large. */
bool opjit_ir_window_pack_rows(window *w, block *stages);
/* The word of row i of the block, for k of the block of k. */
ir_ref opjit_ir_window_row_word(window *w, ir_ref i, ir_ref k);
/* Sums of windows, if they are needed: sets them to 0; adds those of the tile from position `first` on. */
void opjit_ir_window_start_sums(window *w, block *list);
void opjit_ir_window_add_sums(window *w, block *list, ir_ref first);
/* What results of row i of the block need, in lets; the result at a place of the block that has this sum of words. */
typedef struct window_zeros {
    ir_ref row; /* the row's zero point; 0: none */
    ir_ref all; /* what is subtracted from all of the row; 0: nothing */
} window_zeros;
void opjit_ir_window_row_zeros(window *w, block *list, ir_ref i, window_zeros *out);
ir_ref opjit_ir_window_less_zeros(window *w, ir_ref sum, const window_zeros *zeros, ir_ref place);

/* Whether so many tiles of rows read a tile of positions that these are put side by side first: on few pages, in all
 * sets of the first cache, and not at distances at which results are stored. */
static inline bool window_is_read_often(const window *w)
{
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    return rows->block > WINDOW_MOST_TIMES * rows->tile;
}

/* Whether windows have more than one position's element along an axis: they slide. */
static inline bool window_has_taps(const window *w)
{
    return w->axis[0].digit >= 0 || w->axis[1].digit >= 0;
}

/* Positions of an axis that the taps of a class read, where these are not apart. */
static inline int64_t window_positions(const window_axis *x, int64_t class)
{
    if (x->whole)
        return (x->size - 1) * x->stride + x->taps;
    return x->size + (x->apart ? 0 : (x->taps - 1 - class) / x->period * x->step);
}

/* Whether the size of an axis follows from a dynamic dimension. */
static inline bool window_varies(const window *w)
{
    return w->axis[0].varies || w->axis[1].varies;
}

/* Lines of a block of an axis that varies, at most `most`: a power of two.  Most samples are odd multiples of the unit,
 * of which the number of blocks of two units looks as if it were linear in the dimension. */
static inline int64_t window_varying_lines(const window_axis *x, int64_t most)
{
    int64_t lines = 1;
    while (lines * 2 <= most)
        lines *= 2;
    return x->unit % lines != 0 && x->unit % (lines / 2) == 0 ? lines / 2 : lines;
}

/* Likewise, about as many. */
static inline int64_t window_near_lines(const window_axis *x, int64_t lines)
{
    const int64_t near = window_varying_lines(x, lines + lines / 2);
    return near * 2 <= lines ? window_varying_lines(x, lines * 2) : near;
}

/* Images of the batch, as far as blocks depend on their number: where the kernel is for many sizes, and there are
 * several, they are enough for threads, so that the blocks of an image don't depend on it. */
static inline int64_t window_images(const window *w)
{
    enum { MANY = 1024 };
    return w->c.r->general && w->c.batch > 1 ? MANY : w->c.batch;
}

/* Elements of the copy from a position to the next along the axis. */
static inline int64_t window_step(const window_axis *x)
{
    return x->whole ? x->stride : 1;
}

/* Elements of the copy from a position of a line to the next. */
static inline int64_t window_line_step(const window *w)
{
    return window_step(&w->axis[w->axis[1].dimension < 0 ? 0 : 1]);
}

/* So many lines of positions, at least one and at most all. */
static inline int64_t window_lines(const window *w, int64_t lines)
{
    return lines < 1 ? 1 : lines > w->axis[0].size ? w->axis[0].size : lines;
}

/* Where position i of a tile that begins at `first` lies in the copy. */
static inline ir_ref window_position(const window *w, ir_ref first, ir_ref i)
{
    return contract_plus(&w->c, first, contract_times(&w->c, i, window_line_step(w)));
}

#endif
