/* SPDX-License-Identifier: Apache-2.0 */
/* contract.h - shared by the files of this folder: a product of two matrices as loops over tiles.  An iteration of the
 * stage makes a block of rows and columns: for each block of k it packs what it reads of both factors, and adds tile
 * after tile to totals; the results are read from the last tile or the totals. */
#ifndef OPJIT_IR_PASSES_CONTRACT_CONTRACT_H
#define OPJIT_IR_PASSES_CONTRACT_CONTRACT_H

#include "ir/passes/pass.h"

enum { CONTRACT_ROWS, CONTRACT_COLUMNS, CONTRACT_SIDES }; /* columns are a vector's lanes */

/* One factor: what one side of the tiles reads. */
typedef struct contract_side {
    int32_t dimension;   /* of the result; -1: it has one element */
    uint32_t factor;     /* operand of the pair */
    int64_t size;        /* rows or columns of the result */
    int64_t tile, block; /* of them; a block is whole tiles */
    int64_t blocks;
    bool packed;      /* into scratch; else it is read as it lies */
    bool turned;      /* columns that lie apart, whose k are neighbours: rows of k are copied on the way */
    bool lines;       /* columns that lie side by side: packed in the order of memory, across tiles */
    bool apart;       /* shared ones of that kind, without such rows: tile by tile, in squares */
    uint32_t kept;    /* rows: scratch that has all of the block's, [rows, all k]; then they are not packed */
    bool shared;      /* columns: into a temp, by a stage before; all blocks of rows read it, or all calls */
    bool whole;       /* packed rows: those of the block, before all of its tiles */
    uint32_t scratch; /* rows: [rows of a tile, k], or of a block; of k of a round where columns stream; columns:
                         [tiles, k, columns of a tile]; of a temp [matrices, blocks of k] before these */
    ir_ref first;     /* of the stage's block */
    ir_ref first_tile;
    ir_ref here;      /* how many the stage's block has */
    ir_ref start;     /* columns: where tiles begin: `again` before `first` where the last tile would be partial */
    ir_ref again;     /* 0: none */
    /* of bytes: less a zero point; moved by 128, so that they are signed, or not, as is_signed says */
    bool zero, moved;
    bool is_signed;
    uint32_t sums;    /* of bytes: scratch with the sums of each column, or in parts of each row; 0: not needed */
} contract_side;

typedef struct contraction {
    place_rows_of *r; /* the definition, and the output that alone reads it, if there are two members */
    ir_func *f;
    inliner in;
    ir_ref statement;
    ir_node def;
    ir_tensor out;
    contract_side side[CONTRACT_SIDES];
    bool masked;            /* results of columns beyond the row's number + behind are not read */
    int64_t behind;         /* with `rest`: kept rows have one value each in k beyond that */
    uint32_t rest;          /* temp of rest.c; 0: all k are steps */
    uint32_t not_zero;      /* with `rest`: scratch, [rows of the block]: other than 0 where the row's values beyond are
                               not all +0; 0: these are one value, and the last is looked at */
    int64_t together;       /* blocks of k whose sums are made side by side, by dots.c; 0: another form */
    int64_t across;         /* few rows of columns that lie apart, which are read as they lie: k in a round of a tile,
                               whose squares of columns and k code generation transposes in registers; 0: another
                               form */
    bool once;              /* columns are copied when the kernel gets them, as they are constants, not at each call; or
                               before a recurrence, not in each step */
    int64_t decoded;        /* columns are computed of bytes, as they are read: columns of a tile; 0: another form */
    int64_t decoded_k;      /* and k of a block that shares what else they are computed of */
    bool by_columns;        /* a tile of columns stays in the first cache for all tiles of rows that lie in memory */
    bool wide;              /* tiles of three vectors, with 16 registers */
    bool all_rows;          /* for many sizes: one block has all rows, however many, and copies its own columns */
    bool streams;           /* few rows: columns are read as they lie, by stream.c */
    int64_t steps;          /* with `streams`: k that a tile of sums takes at a time */
    bool split;             /* with `streams`: a stage before makes the sums of each block of k, */
    uint32_t parts;         /* which are this temp, [matrices, blocks of k, rows, columns] */
    int64_t lanes;          /* of a vector */
    int64_t length, batch;  /* k; results of all other coordinates */
    uint32_t sums;          /* scratch of streams: sums of a block of k */
    uint32_t turn;          /* scratch of turned columns: [some columns, k] */
    uint32_t tile, total;   /* scratch: sums of a block of k, and of all; total 0: what is in the tile is the result */
    bool low_tiles;         /* for many sizes: the last tile is as low as its rows allow */
    uint32_t column_sums;   /* of bytes: temp with the sums of shared columns */
    int64_t bytes;          /* k of bytes, whose words are the k of all other members; 0: no bytes */
    int64_t in_word;        /* of which so many: four, or two, which steps multiply in 16 bits */
    ir_ref at[9];           /* coordinates of the result, 0 for the sides' and for k */
    bool is_ahead;          /* what is written is a stage before the recurrence, with these for its rows' */
    ir_ref around[8];
    bool direct;            /* results are read nowhere else: tiles may store them */
    ir_ref first_k, here_k; /* of the block of k */
    bool ends;              /* it is the last one, whose tiles make the results of their sums and the totals */
    ir_ref matrix, q;       /* of a temp: which one this block of the result reads; the number of the block of k */
} contraction;

/* parts.c.  Scratch of these sizes, with `apart` elements behind each row of two dimensions; of columns' elements. */
uint32_t opjit_ir_contract_scratch(contraction *c, uint32_t rank, const int64_t *sizes, int64_t apart);
uint32_t opjit_ir_contract_column_scratch(contraction *c, uint32_t rank, const int64_t *sizes);
/* Two loops over as many rows and columns; *at: their variables. */
void opjit_ir_contract_loops(contraction *c, block *list, ir_ref rows, ir_ref columns, ir_ref *at, block *out);
void opjit_ir_contract_store(contraction *c, block *list, uint32_t tensor, ir_ref value, const ir_ref *at);
void opjit_ir_contract_fill(contraction *c, block *list, uint32_t tensor, ir_ref rows, ir_ref columns, uint64_t bits);
/* Digit p / below of a number, which has `size` values. */
ir_ref opjit_ir_contract_digit(const contraction *c, ir_ref p, int64_t below, int64_t size);
/* Sets where block `number` of a side begins, and how much of it there is. */
void opjit_ir_contract_set_side(contraction *c, block *list, uint32_t side, ir_ref number);
/* Likewise block q of k; how much of k a block has that begins at first_k. */
void opjit_ir_contract_set_k(contraction *c, block *list, ir_ref q);
ir_ref opjit_ir_contract_steps(const contraction *c, ir_ref first_k);
/* The side's factor in row or column `own`, for k, as an expression; 0: a failure. */
ir_ref opjit_ir_contract_factor_at(contraction *c, uint32_t side, ir_ref own, ir_ref k);
/* Its value, of which equal parts are computed once in the list. */
ir_ref opjit_ir_contract_factor(contraction *c, block *list, uint32_t side, ir_ref own, ir_ref k);
/* Stores the result in row i and column j, which is `sum`, in memory or as the output that reads it. */
void opjit_ir_contract_result(contraction *c, block *list, ir_ref sum, ir_ref i, ir_ref j);
/* Whether results are made of what code generation does in registers: more (a mathematical function) would take the
 * tile out of them.  plainly: without choices and casts, for which a tile takes ten milliseconds more to compile. */
bool opjit_ir_contract_fits_tile(contraction *c, ir_ref sum, ir_ref i, ir_ref j, bool plainly);

/* pack.c: copies what the tiles of the block read to scratch: all columns, or a tile of rows; where
 * columns stream, all rows.  share: the stage that copies all columns to a temp. */
void opjit_ir_contract_pack_columns(contraction *c, block *list);
void opjit_ir_contract_share_columns(contraction *c, block *stages);
/* Which matrix of the temp the block of the result reads. */
void opjit_ir_contract_set_matrix(contraction *c, block *list);
/* Where an element of the block's columns is copied to, in up to five coordinates; the element there. */
void opjit_ir_contract_copied_at(contraction *c, ir_ref n, ir_ref k, ir_ref j, ir_ref *at);
ir_ref opjit_ir_contract_copied(contraction *c, ir_ref n, ir_ref k, ir_ref j);
void opjit_ir_contract_pack_rows(contraction *c, block *list, ir_ref first, ir_ref in_block);
/* dots.c: the totals of columns that are read as they lie. */
void opjit_ir_contract_dots(contraction *c, block *list);
/* tile.c, stream.c: what a block of k adds. */
void opjit_ir_contract_tiles(contraction *c, block *list);
/* tile.c: two loops over a whole tile; *at: their variables. */
void opjit_ir_contract_over_tile(contraction *c, block *list, ir_ref *at, block *out);
/* The loop over here_k, with the tile in registers; i, j: its first row and column in the whole (i: in the block, where
 * rows are kept), n: of packed columns. */
void opjit_ir_contract_products(contraction *c, block *list, ir_ref i, ir_ref j, ir_ref n);
void opjit_ir_contract_stream(contraction *c, block *list);
/* decode.c: finds c->decoded; tiles and blocks of such columns. */
void opjit_ir_contract_find_decoded(contraction *c);
void opjit_ir_contract_cut_decoded(contraction *c);
/* What the block of k adds to the tile of rows from i on. */
void opjit_ir_contract_decode(contraction *c, block *list, ir_ref i);
/* stream.c, with `split`: the stage that makes the parts; what the stage behind it adds to the totals. */
void opjit_ir_contract_make_parts(contraction *c, block *stages);
void opjit_ir_contract_add_parts(contraction *c, block *list);
/* mask.c: whether what the loop over rows reads of scratch `scores`, [rows of the block, columns], is in
 * columns up to the row's number + *out_behind alone. */
bool opjit_ir_contract_find_mask(ir_func *f, ir_ref loop, uint32_t scores, ir_ref row, int64_t *out_behind);
/* Whether what the loop over rows leaves of them in `scores` is one value in columns beyond the row's number +
 * *out_behind; columns: of the rows. */
bool opjit_ir_contract_find_rest(ir_func *f, ir_ref loop, uint32_t scores, ir_ref row, int64_t columns,
                                 int64_t *out_behind);
/* Likewise beyond which number of columns a select in the loop takes another arm: what is behind may be anything. */
bool opjit_ir_contract_guess_rest(ir_func *f, ir_ref loop, ir_ref row, int64_t columns, int64_t *out_behind);
/* rest.c: looks through row i of the block, the result's row `row`, behind c->behind; before contract_rest. */
void opjit_ir_contract_look_behind(contraction *c, block *list, ir_ref i, ir_ref row);
/* rest.c, where kept rows are of one value in k beyond c->behind: declares c->rest and puts the stage that
 * makes it, if that is worth it. */
void opjit_ir_contract_rest(contraction *c, block *stages);
/* What totals start at instead of -0. */
void opjit_ir_contract_start_rest(contraction *c, block *list);
/* How many k of the block of k are steps of the tile of rows from i on. */
ir_ref opjit_ir_contract_rest_k(contraction *c, block *list, ir_ref i);
/* tile.c: how many tiles the side of the block has. */
ir_ref opjit_ir_contract_tiles_of(contraction *c, block *list, const contract_side *s);
/* pack.c: coordinates of matrix p of those that the columns' factor has; how many these are. */
void opjit_ir_contract_at_matrix(contraction *c, ir_ref p, int64_t below);
int64_t opjit_ir_contract_matrices(const contraction *c);
/* layout.c.  Whether what the factor reads lies in equal steps along var, at most `most` elements apart, and is there
 * for all elements of the product, whatever conditions say. */
bool opjit_ir_contract_reads_in_steps(const contraction *c, ir_ref factor, ir_ref var, int64_t most);
/* Whether the columns' factor is an element of memory as it is; or FLOAT16 as FLOAT32; whether a side's is more. */
bool opjit_ir_contract_is_element(const contraction *c);
bool opjit_ir_contract_is_widened_element(const contraction *c);
bool opjit_ir_contract_is_computed(const contraction *c, uint32_t side);
/* Whether columns lie apart, and their k side by side. */
bool opjit_ir_contract_lies_apart(const contraction *c);
/* Whether columns are packed in the order of memory: bytes of far more than the second cache; elements. */
bool opjit_ir_contract_is_in_lines(const contraction *c, const ir_tiles *given, const rt_target *target);
bool opjit_ir_contract_is_read_in_lines(const contraction *c);
/* Whether a side is read as it lies; whether rows had better be packed all the same. */
bool opjit_ir_contract_lies_well(const contraction *c, uint32_t side, const rt_target *target);
bool opjit_ir_contract_rows_meet(const contraction *c);
/* contract.c: whether the first member is a product of two matrices; fills *c, except what stands below. */
bool opjit_ir_contract_find(contraction *c, place_rows_of *r, const ir_tiles *given, const rt_target *target);
/* Tiles, and blocks of at most so many rows and of all columns. */
void opjit_ir_contract_cut_rows(contraction *c, const ir_tiles *given, const rt_target *target, int64_t most);
/* stage.c: the stage.  false: another element is read, and nothing changed. */
bool opjit_ir_contract_write(contraction *c, block *stages);
/* What that is made of: scratch, unless c->total is set already; which block iteration p makes; the sums of all blocks
 * of k; the results of those that are not stored from tiles. */
void opjit_ir_contract_declare_turn(contraction *c); /* before share_columns: of columns that are transposed */
void opjit_ir_contract_declare(contraction *c);
void opjit_ir_contract_set_block(contraction *c, block *list, ir_ref p, int64_t parts); /* each block: so often */
void opjit_ir_contract_sums(contraction *c, block *list);
void opjit_ir_contract_results(contraction *c, block *list);

/* bytes.c.  Whether both factors are bytes, less zero points; then it changes c. */
bool opjit_ir_contract_is_bytes(contraction *c, const rt_target *target);
/* Part i of a word: the number of a byte, of 16 bits, less its zero point (0: none), or of 8. */
ir_ref opjit_ir_contract_part(ir_func *f, ir_ref byte, ir_ref zero, bool halves, int64_t i);
/* Whether a zero point is so small that a byte less it has 16 bits. */
bool opjit_ir_contract_is_small(const ir_func *f, ir_ref zero);
/* Whether a zero point is constants that are all 0, as quantized models have it for filters: there is none. */
bool opjit_ir_contract_is_nothing(const ir_func *f, ir_ref zero);
/* What packed columns are: for dot2 the two bytes of a word, as 16 bits. */
ir_type opjit_ir_contract_column_type(const contraction *c);
/* A step of the products in a tile, of bytes or not. */
ir_ref opjit_ir_contract_step(contraction *c, ir_ref row, ir_ref column, ir_ref sum);
/* Declares the sums over rows and columns that are needed, and sets them to 0; before the loop over blocks of k. */
void opjit_ir_contract_byte_sums(contraction *c, block *list);
/* The sums of shared columns, to a temp of [matrices, tiles, columns of a tile]: a stage after those that copy them. */
void opjit_ir_contract_share_sums(contraction *c, block *stages, int64_t matrices, int64_t tiles);
/* Tile n of the columns; past: those behind the last one are zeros. */
void opjit_ir_contract_pack_column_words(contraction *c, block *list, ir_ref n, bool past);
/* So many whole tiles of the block, in the order of memory. */
void opjit_ir_contract_pack_lines_of_words(contraction *c, block *list, ir_ref tiles);
/* A tile of rows, from `first` of the result and in_block of the block on. */
void opjit_ir_contract_pack_row_words(contraction *c, block *list, ir_ref first, ir_ref in_block);
/* After all blocks of k.  What results of row i of the block need of it, in lets; the result in column j that has this
 * sum of products of words. */
typedef struct contract_zeros {
    ir_ref zero; /* its zero point; 0: columns need none */
    ir_ref sum;  /* of its bytes less their zero points; 0: columns have no zero points */
} contract_zeros;
void opjit_ir_contract_row_zeros(contraction *c, block *list, ir_ref i, contract_zeros *out);
ir_ref opjit_ir_contract_less_zeros(contraction *c, ir_ref sum, const contract_zeros *row, ir_ref j);

/* A loop from lo to hi in the list; *out: its empty block.  Returns the variable. */
static inline ir_ref contract_loop_from(contraction *c, block *list, ir_ref lo, ir_ref hi, block *out)
{
    const ir_ref loop = opjit_ir_for(c->f, lo, hi, 1);
    *out = (block){ .parent = loop };
    opjit_ir_block_add(c->f, list, loop);
    return ir_at(c->f, loop)->ref;
}
static inline ir_ref contract_loop(contraction *c, block *list, ir_ref hi, block *out)
{
    return contract_loop_from(c, list, opjit_ir_index(c->f, 0), hi, out);
}
static inline ir_ref contract_loop_in_steps(contraction *c, block *list, ir_ref hi, int64_t step, block *out)
{
    const ir_ref loop = opjit_ir_for(c->f, opjit_ir_index(c->f, 0), hi, step);
    *out = (block){ .parent = loop };
    opjit_ir_block_add(c->f, list, loop);
    return ir_at(c->f, loop)->ref;
}
static inline ir_ref contract_plus(const contraction *c, ir_ref a, ir_ref b)
{
    return ir_make2(c->f, IR_IADD, IR_INDEX, a, b);
}
static inline ir_ref contract_times(const contraction *c, ir_ref a, int64_t b)
{
    return ir_make2(c->f, IR_IMUL, IR_INDEX, a, opjit_ir_index(c->f, b));
}

enum { CONTRACT_SQUARE = 4 };
/* The most k of a block, with a few behind the last one where columns are transposed. */
static inline int64_t contract_most_k(const contraction *c)
{
    const int64_t k = c->length < c->def.block ? c->length : c->def.block;
    return c->side[CONTRACT_COLUMNS].turned ? (k + CONTRACT_SQUARE - 1) / CONTRACT_SQUARE * CONTRACT_SQUARE : k;
}

/* How many blocks of k there are. */
static inline int64_t contract_blocks_of_k(const contraction *c)
{
    return (c->length + c->def.block - 1) / c->def.block;
}

/* Whether the tiles of the first block of k set the totals, instead of adding to what these start at. */
static inline bool contract_sets_totals(const contraction *c)
{
    return !c->streams && !c->split && !c->masked && c->rest == 0;
}

static inline ir_ref contract_coordinate(const contraction *c, uint32_t side)
{
    return opjit_ir_coordinate(c->f, c->statement, (uint32_t)c->side[side].dimension);
}

/* How many parts of `of` are in size, the last one whole or not. */
static inline int64_t contract_parts(int64_t size, int64_t of)
{
    return (size + of - 1) / of;
}

/* Whether all blocks are equal, and all of their tiles whole. */
static inline bool contract_is_even(const contract_side *s)
{
    return s->blocks * s->block == s->size;
}

/* Rows by which lower tiles are lower than each other: one row takes as long as two. */
enum { CONTRACT_LOWER = 2 };

/* A tile of few rows and three vectors, which has room in 16 vector registers and loads less for each sum than one of
 * more rows and two. */
enum { CONTRACT_WIDE_ROWS = 4, CONTRACT_WIDE_VECTORS = 3 };
static inline bool contract_may_be_wide(const rt_target *target, ir_type type)
{
    return rt_target_has_16_vectors(target) && rt_target_has(target, RT_X86_FMA) && type == IR_F32;
}

#endif
