/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - pass place and its steps: the definitions and outputs of a function, and what is decided about them. */
#ifndef OPJIT_IR_PASSES_PLACE_PLACE_H
#define OPJIT_IR_PASSES_PLACE_PLACE_H

#include "ir/passes/pass.h"

/* A load of a definition in the value of an item. */
typedef struct site {
    ir_ref load;
    uint32_t def; /* item */
    bool identity, unsafe, repeated, divided, opaque;
    bool across; /* lines of what is no reduction read it so */
    bool window; /* an index moves with what the reader reduces and with a coordinate: elements are read again */
    double again; /* of a window whose values a reduction takes one by one: reads of an element after its first */
} site;

/* A DEF or YIELD, and facts about its readers, all of which come after it. */
typedef struct item {
    ir_ref statement;
    uint32_t first_site, site_count;
    uint32_t weight;    /* operations on elements, including those of the definitions in it */
    uint32_t work;      /* those that are neither conditions nor choices, which ends of loops may decide */
    bool dear, plain;   /* plain: only elements of dense memory at its own coordinates */
    bool math;          /* a mathematical function is in it */
    uint32_t lookups;   /* one in the other, at places from data */
    /* found from its readers, last to first */
    uint32_t reads, root, instances;
    uint32_t first_root, last_root; /* of all readers */
    ir_ref load;        /* the first of them */
    uint32_t reader;
    bool same, aligned, mixed, unsafe, repeated, divided, opaque;
    bool temp, is_root; /* gets memory; gets a stage */
    bool is_stepped;    /* a recurrence reads it, and it is outside of it */
    bool is_viewed;     /* it is read through a view */
    bool by_element;    /* one root reads it, at its own coordinates alone */
    bool in_windows;    /* it is read so */
    double again;       /* the most of its sites */
    bool ends_product;  /* it alone reads a sum of products, element by element, and can be stored in its place */
    bool joins;          /* it chooses between loads by a coordinate other than the last one */
    bool is_joined;      /* such an item reads it: it would be computed for the elements of others, too */
    bool is_across;      /* a site is */
    bool is_copy;        /* line_up, byte_columns or side_by_side has made it */
    bool looks_up;       /* it is a load at the place that a byte says */
    bool reads_itself;   /* updates read what those before have left */
    bool looked_up;      /* such an item reads it: the byte, or the table */
    bool is_scattered;   /* a scatter reads it that changes one element after the other */
    uint32_t recurrence; /* of which it is a member, from 1 on; 0: none */
} item;

typedef struct recurrence recurrence;

typedef struct placer {
    ir_func *f;
    opjit_error *error;
    item *items;
    uint32_t count;
    site *sites;
    uint32_t site_count, site_capacity;
    uint32_t *item_of; /* by tensor: its DEF's item + 1 */
    uint32_t *seen;    /* by node: item + 1 of the last visit */
    ir_ref *stack;
    inline_source *sources;
    uint32_t source_count;
    place_rows_of rows; /* of the stage that is made */
    uint32_t roots;
    recurrence *recurrences;
    const ir_pass_env *env;
    uint32_t first_copy, copies_end; /* tensors that line_up has made, which have memory and stages of their own; */
    uint32_t first_side;             /* from here on side_by_side has */
    bool threads; /* a GPU: a column of a reduction is a thread's, and needs no row of results */
} placer;

/* Lists definitions and outputs in *p, of which f, error, env and threads are given. */
opjit_status opjit_ir_list_items(placer *p);
/* materialize.c: decides which definitions get memory; the others are written where they are read.  A definition with
 * memory, or an output, is a root: some stage makes it. */
void opjit_ir_materialize(placer *p);

/* recurrence.c: finds recurrences, and gives their definitions scratch. */
void opjit_ir_find_recurrences(placer *p);
/* Its stage; returns the item after its members, `first` where no recurrence begins there. */
uint32_t opjit_ir_group_recurrence(placer *p, uint32_t first, block *stages);

/* The shapes of a root's stage, appended to stages.  Both groups return the item after the last that they make; `first`
 * if the root does not fit.
 * group_rows.c: the roots from number `first` on that have the same rows.  One that reads other rows goes into a later
 * stage. */
uint32_t opjit_ir_group_rows(placer *p, uint32_t first, block *stages);
/* contract/rows.c: two products of matrices, and the rows between them. */
uint32_t opjit_ir_group_contract_rows(placer *p, uint32_t first, block *stages);
/* Whether the root, with the first dimensions of `first`, is a row's or reduces one; *length: the row's elements, as
 * far as they are known. */
bool opjit_ir_fits_rows(const ir_func *f, ir_ref statement, const ir_tensor *first, int64_t *length);
/* place.c: the output, or definition with memory, that alone reads the reduction, element by element, and is the next
 * root; 0: there is none. */
uint32_t opjit_ir_output_of(const placer *p, uint32_t number);
/* A product of two matrices, and the output that alone reads it. */
uint32_t opjit_ir_group_tiles(placer *p, uint32_t first, block *stages);
/* A reduction whose columns lie side by side, and the output that alone reads it. */
uint32_t opjit_ir_group_columns(placer *p, uint32_t first, block *stages);
/* short.c: a reduction of few values, each result one expression, and the output that alone reads it, if there is one;
 * with_output: there has to be. */
uint32_t opjit_ir_group_short(placer *p, uint32_t first, bool with_output, block *stages);
/* What the reduction makes of its steps' values, in the order of its accumulator; part changes. */
ir_ref opjit_ir_fold_parts(ir_func *f, const ir_node *reduction, ir_ref *part, int64_t steps);
/* alternatives.c: a definition whose first coordinate chooses one of a few expressions. */
uint32_t opjit_ir_group_alternatives(placer *p, uint32_t first, block *stages);
/* Any other reduction: a row with an accumulator for each of its elements; the output that alone reads one that is
 * counted.  Returns as the groups do. */
uint32_t opjit_ir_place_lone_row(placer *p, uint32_t first, block *stages);
/* scatter.c: initial values and updates, in the memory of the output that alone reads the result as it is, if there is
 * one.  Returns the item after the last that it makes. */
uint32_t opjit_ir_place_scatter(placer *p, uint32_t first, block *stages);
/* Reads what several of the parts have in common once, in lets at the end of the list: loads, and what is made of them,
 * but none of `tensor`, which is stored between the parts (common.c). */
void opjit_ir_share_between(ir_func *f, block *list, uint32_t tensor, ir_ref *parts, uint32_t count);
/* What is no reduction: a loop for each coordinate. */
opjit_status opjit_ir_place_nest(placer *p, uint32_t number, block *stages);
/* join.c: dimensions that stages store by one coordinate. */
void opjit_ir_join_dimensions(placer *p, ir_ref stages);

#endif
