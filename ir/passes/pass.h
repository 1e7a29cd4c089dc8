/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h - shared by the passes: reach and rebuild, lists of statements, values written in place.
 *
 * Nothing here recurses over expressions: operands are always older than their users, so a sweep over the node array in
 * order of age visits every expression after its parts.  Statements do nest, but rule V16 bounds them. */
#ifndef OPJIT_IR_PASSES_PASS_H
#define OPJIT_IR_PASSES_PASS_H

#include "ir/analysis/analysis.h"
#include "ir/core/internal.h"
#include "ir/eval/numerics.h"

enum { PASS_OPERANDS = 9 /* a value and 8 coordinates */ };

/* --- reach and rebuild ------------------------------------------------------------------------------------------ */
/* By tensor: how many stages load, store or (an input) share memory with it, 2 for more.  NULL: no memory. */
uint8_t *opjit_ir_stages_of(ir_func *f);

/* Replacements of nodes; a node that is not in it keeps its place. */
typedef struct ir_map {
    ir_table to;
} ir_map;
static inline ir_ref ir_map_get(const ir_map *map, ir_ref from)
{
    return opjit_ir_table_get(&map->to, from);
}
static inline void ir_map_set(ir_func *f, ir_map *map, ir_ref from, ir_ref to)
{
    opjit_ir_table_set(f, &map->to, from, to);
}

/* expr under the map, rebuilt with opjit_ir_make where anything in it changes or can be simplified. */
ir_ref opjit_ir_remake(ir_func *f, ir_map *map, ir_ref expr);
/* The variable of a loop or dimension of one as its value; everything else as it is. */
ir_ref opjit_ir_single_value(ir_func *f, ir_ref r);
/* A copy of the statement list under the map; its loops, lets and accumulators are new and entered in the map. */
ir_ref opjit_ir_remake_block(ir_func *f, ir_map *map, ir_ref first);
/* What an index is without bounds that are numbers: those of a tensor, where what is outside is not chosen; also in the
 * terms of sums, as where one dimension has the positions of several, as deep as that. */
ir_ref opjit_ir_without_bounds(ir_func *f, ir_ref index, uint32_t depth);
/* Rebuilds the operands of every statement in the list and below, in place, under the map. */
void opjit_ir_remake_operands(ir_func *f, ir_map *map, ir_ref first);
/* The same, statement by statement: the map may grow between them by what no statement before has read. */
typedef struct rebuild {
    ir_func *f;
    ir_map *map;
    uint32_t count; /* nodes at the start: only these are walked */
    uint32_t now;   /* the walk that the memos belong to */
} rebuild;
bool opjit_ir_rebuild_begin(ir_func *f, ir_map *map, rebuild *b); /* false: no memory */
void opjit_ir_rebuild_operands(rebuild *b, ir_ref statement);

/* A list that is being built: the block of parent (0: a detached list, whose head is first). */
typedef struct block {
    ir_ref parent, first, tail;
} block;

/* --- definitions written where they are read (inline.c) ---------------------------------------------------- */
/* What place decided about a tensor, for writing values. */
typedef struct inline_source {
    ir_ref def;       /* its DEF, to be written where the tensor is read; 0: it is read from memory */
    ir_ref row_value; /* LET or ACC that has the row's single element */
    uint32_t scratch; /* memory that has the row */
    bool aliased;     /* an input that shares an output's memory, or what updates both read and change */
    int32_t joined;   /* the stage that stores it has one coordinate for this dimension and the one before; 0: no */
    uint64_t constant; /* bytes of the constants that it is made of alone; 0: of something else, too */
} inline_source;

typedef struct inliner {
    ir_func *f;
    const inline_source *sources; /* by tensor */
    bool private_views;           /* memory is read through the stage's own views, so that collapse may change them */
    ir_ref loops[8];              /* variables around the store, outermost first */
    uint64_t extents[8];
    uint32_t loop_count;
    ir_ref rows[8]; /* of a stage over rows: the row's coordinates, row_count of them */
    uint32_t row_count;
    ir_ref number; /* of the row in scratch that has several */
    bool by_lane;  /* scratch has the row's number as its last coordinate; of one coordinate: an element of each row */
    bool refused;                           /* a row other than the current one would have to be read */
    ir_table memo, known, instances, views; /* see inline.c */
    struct inline_instance *instance;
    uint32_t instance_count, instance_capacity;
    uint64_t *stack;
    uint32_t depth, capacity;
} inliner;
/* Roots that one stage makes row by row (rows.c).  The leading coordinates are the rows. */
enum { ROW_MEMBERS = 24 };
typedef struct row_member {
    ir_ref statement;
    bool outside; /* an output, or read by another stage: it is stored */
} row_member;
typedef struct place_rows_of {
    ir_func *f;
    inline_source *sources;
    bool private_views;
    row_member members[ROW_MEMBERS];
    uint32_t count, rows; /* rows: leading coordinates */
    uint32_t refused;     /* if place_rows returns false: the first member that reads rows other than its own */
    bool is_step;         /* it is made again in each step of a recurrence, by one thread; */
    block *ahead;         /* stages that are made before it, */
    ir_ref around[8];     /* coordinates of the recurrence's rows, as its stage has them, */
    int64_t around_sizes[8];
    uint32_t around_count;
    bool once;            /* what is made of constants alone is made once */
    bool general;         /* sizes are samples: blocks of products have a size of their own, */
    bool low_tiles;       /* and a lower tile for the last rows */
    const ir_sizes *varying; /* sizes that differ from sample to sample; NULL: none */
    bool blocks;          /* long reductions are loops over their blocks; not for GPUs, whose threads have the lanes */
} place_rows_of;
/* What is known of a size of t that differs from sample to sample; NULL: it is the same in all. */
static inline const ir_varying *place_varying(const ir_sizes *sizes, const ir_tensor *t, uint32_t dimension)
{
    for (uint32_t i = 0; sizes != NULL && i < sizes->count; i++)
        if (sizes->list[i].size == t->sizes[dimension] && sizes->list[i].rank == t->rank &&
            sizes->list[i].dimension == dimension)
            return &sizes->list[i];
    return NULL;
}
/* false: a member reads rows that are not its own, and nothing changed; or there is no memory. */
bool opjit_ir_place_rows(place_rows_of *r, block *stages);
/* row_lanes.c: likewise of many short rows, each of them a lane. */
bool opjit_ir_place_row_lanes(place_rows_of *r, block *stages);
/* A row of a block of rows that a stage of another shape makes. */
typedef struct row_of_block {
    ir_ref at[8];     /* coordinates of the row */
    ir_ref number;    /* of it in the block */
    ir_ref loops[2];  /* variables around it, outermost first */
    uint64_t extents[2];
    uint32_t tensor, scratch; /* this member's rows are in this scratch, [rows of the block, elements] */
} row_of_block;
/* Writes the members for this row at the end of the list.  false: as above. */
bool opjit_ir_write_row(place_rows_of *r, const row_of_block *row, block *list);
/* columns.c: the first member, a reduction, as columns side by side, and, if there are two, the output that reads each
 * column's result; false: another shape, or another element is read, and nothing changed. */
bool opjit_ir_place_columns(place_rows_of *r, block *stages);
enum { COLUMN_TAPS = 25 /* the most steps of a window whose columns are one expression */ };

/* contract.c: likewise a sum of products as tiles of a product of matrices; given: their sizes, NULL: as suits the
 * target. */
bool opjit_ir_place_contraction(place_rows_of *r, const ir_tiles *given, const rt_target *target, block *stages);
/* contract/window.c: likewise a sum of products one factor of which is read through windows, as a convolution's. */
bool opjit_ir_place_window(place_rows_of *r, const ir_tiles *given, const rt_target *target, block *stages);

/* The value of statement (a DEF or YIELD) with `at` in place of its variables. */
ir_ref opjit_ir_inline(inliner *in, ir_ref statement, uint32_t count, const ir_ref *at);
/* Likewise another expression of the statement. */
ir_ref opjit_ir_inline_part(inliner *in, ir_ref statement, ir_ref value, uint32_t count, const ir_ref *at);
/* Where an element of view lies in the tensor whose bytes it shows, by coordinates; *out_divided: quotients and
 * remainders were needed.  false: the layouts don't allow it.  coordinates NULL: only asks. */
bool opjit_ir_view_coordinates(ir_func *f, uint32_t view, const ir_ref *coordinates, ir_ref *out, bool *out_divided);
/* If b is x mod c, with c the size of its dimension, and a is x / c, or that mod m, both are one coordinate: x, or x
 * mod (c * m); else 0. */
ir_ref opjit_ir_join_coordinates(ir_func *f, ir_ref a, ir_ref b, int64_t c);
/* A load of memory at these coordinates, of a view by which collapse may take dimensions together; *at changes. */
ir_ref opjit_ir_load_memory(inliner *in, uint32_t tensor, ir_ref *at);

/* --- lists of statements ---------------------------------------------------------------------------------------- */
void opjit_ir_block_add(ir_func *f, block *list, ir_ref statement); /* removes it from its previous list */
void opjit_ir_block_move(ir_func *f, block *from, block *to);       /* all of `from`, to the end of `to` */
/* A read of a let of expr in the list, appended if there is none; constants, variables and reads of lets need none and
 * are returned as they are. */
ir_ref opjit_ir_block_let(ir_func *f, block *list, ir_ref expr);
static inline bool ir_needs_let(ir_op op)
{
    return op != IR_CONST && op != IR_VAR && op != IR_PARAM && op != IR_GET;
}
static inline bool ir_is_comparison(ir_op op)
{
    return op == IR_EQ || op == IR_NE || op == IR_LT || op == IR_LE;
}
/* Operations that take much longer than a sum. */
static inline bool ir_is_dear(ir_op op)
{
    return op == IR_DIV || op == IR_REM || op == IR_SQRT || op == IR_IPOW || op == IR_TO_INDEX /* a gather's */ ||
           (opjit_ir_op_infos[op].flags & IR_FLAG_M) != 0;
}

/* Puts what is costly and used again, and what is nested too deep, into lets at the end of list; returns the rest. */
ir_ref opjit_ir_share(ir_func *f, block *list, ir_ref value);
uint32_t opjit_ir_count_for(const ir_func *f, ir_ref first); /* FOR statements in the list and below */
ir_ref opjit_ir_loop_of(const ir_func *f, ir_ref first,
                        ir_ref var); /* the one of them with that variable; 0: none */

/* The only statement of the block; 0: there are none or more. */
static inline ir_ref ir_only(const ir_func *f, ir_ref first)
{
    return first != 0 && f->nodes[first].next == 0 ? first : 0;
}
static inline bool ir_is_pure(const ir_func *f, ir_ref r)
{
    return (opjit_ir_op_infos[f->nodes[r].op].flags & IR_FLAG_P) != 0;
}

/* Dimensions up to the last one of more than one element: what lines are along. */
static inline uint32_t ir_rank_in_use(const ir_tensor *t)
{
    uint32_t rank = t->rank;
    while (rank > 0 && t->sizes[rank - 1] == 1)
        rank--;
    return rank;
}
static inline bool ir_is_serial(const ir_func *f, ir_ref loop)
{
    return f->nodes[loop].op == IR_FOR && (f->nodes[loop].flags & IR_FOR_SERIAL) != 0;
}

/* One step more of a dot of this type. */
static inline ir_ref ir_dot_step(ir_func *f, ir_type type, ir_ref x, ir_ref y, ir_ref before)
{
    return ir_is_float(type) ? ir_expr3(f, IR_FMA, type, x, y, before)
                             : ir_expr2(f, IR_ADD, type, before, ir_expr2(f, IR_MUL, type, x, y));
}

/* What blocks of a dot are added to, the first of them too, and changes nothing: -0, as a block may be -0; 0. */
static inline uint64_t ir_dot_total(ir_type type)
{
    return ir_is_float(type) ? UINT64_C(1) << (8 * opjit_ir_type_size(type) - 1) : 0;
}

/* The step has changed something. */
static inline void ir_took(ir_func *f, ir_step step)
{
    f->steps[step]++;
}

/* --- steps over a function ---------------------------------------------------------------------------------------- */
/* fold.c: an output that is a sequence of floats becomes a constant from where it is one; may_cut: for part of it. */
void opjit_ir_cut_sequences(ir_func *f, bool may_cut);
void opjit_ir_simplify_operands(ir_func *f); /* fold.c: all expressions, and who reads what is one constant */
void opjit_ir_round_nearest(ir_func *f);  /* nearest.c */
void opjit_ir_look_up_bytes(ir_func *f, const rt_target *target); /* byte_table.c; NULL: any target */
void opjit_ir_remove_unread(ir_func *f);  /* fold.c: definitions */
/* extremes.c: the places of extremes of long rows by two reductions that vectors make. */
void opjit_ir_find_extremes(ir_func *f);
/* cut_reductions.c: cuts few long reductions into blocks that can be computed in parallel. */
void opjit_ir_cut_reductions(ir_func *f);
/* orient.c: definitions take the order of coordinates in which what they read lies. */
void opjit_ir_orient(ir_func *f);
/* channels.c: definitions that read places from data take the order in which neighbours have one place. */
void opjit_ir_channels(ir_func *f);
/* shape_outputs.c: outputs take the shapes of the definitions that they show. */
void opjit_ir_shape_outputs(ir_func *f);
/* line_up.c: copies what rows read across memory; the only tensors that it makes are the copies. */
void opjit_ir_line_up(ir_func *f);
/* Whether the statement's lines take their elements from far apart, where others of the tensor are between them. */
bool opjit_ir_reads_across(const ir_func *f, ir_ref statement, ir_ref load);
/* byte_columns.c: copies the constant bytes of matrices that few rows are multiplied by; the only tensors that it makes
 * are the copies and their views. */
void opjit_ir_copy_byte_columns(ir_func *f, const rt_target *target);
/* side_by_side.c: copies short rows so that they are columns; the only tensors that it makes are the copies. */
void opjit_ir_side_by_side(ir_func *f, const rt_target *target);
/* cleanup.c: loops, lets, accumulators, updates and stores without effect. */
void opjit_ir_remove_idle(ir_func *f);
/* expand.c: mathematical functions become their sequences. */
opjit_status opjit_ir_expand_math(ir_func *f, const rt_target *target, opjit_error *error);
/* once.c: marks stages that run once. */
void opjit_ir_mark_once(ir_func *f);
/* Bytes of the constants that expr is made of; 0: something else is in it, too, or nothing. */
uint64_t opjit_ir_constant_bytes(ir_func *f, const inline_source *sources, ir_ref expr);
/* Whether so many bytes may be kept of what is made of `from`. */
bool opjit_ir_may_keep(uint64_t bytes, uint64_t from);

#endif
