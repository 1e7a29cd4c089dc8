/* SPDX-License-Identifier: Apache-2.0 */
/* general.h - one function for many sizes.
 *
 * The passes work with sizes that are constants.  A graph whose sizes follow from dynamic dimensions is therefore
 * lowered and brought to loops for several samples, values of the dimensions that have no divisor in common with what
 * loops are cut by.  Where these functions differ in nothing but numbers, and each number follows from the dimensions,
 * their common generalization has an expression of parameters in place of each such number.  Later passes, code
 * generation and the interpreter know parameters.
 *
 * What a generalization does for a certain value is a function without parameters, its instance, which the verifier
 * proves like any other. */
#ifndef OPJIT_IR_GENERAL_GENERAL_H
#define OPJIT_IR_GENERAL_GENERAL_H

#include <opjit/abi.h>

#include "ir/ir.h"

#define IR_SAMPLES 16u /* functions that are compared: up to 12 that are chosen, and those that are learned */

/* Around the typical size: below the upper end, if there is room; wherever they are, for a range that is a part of a
 * wider one, whose sizes beyond it may well have the same loops; or inside; or a few small ones, each several times,
 * for a batch of a few beside a dimension that is wider. */
typedef enum ir_sampling { IR_SAMPLES_BELOW, IR_SAMPLES_AROUND, IR_SAMPLES_INSIDE, IR_SAMPLES_SMALL } ir_sampling;

typedef struct ir_dim {
    const char *name; /* for messages and texts */
    int64_t lo, hi;   /* both ends included; lo is 0 or more */
    ir_sampling from; /* which sizes samples have */
} ir_dim;

/* What the number is for these sizes.  false: more than 64 bits. */
bool opjit_ir_form_value(const opjit_size_form *form, const ir_space *space, const int64_t *values, int64_t *out);
/* Likewise, of what a quotient leaves, or plus something. */
bool opjit_ir_number_value(const ir_size_form *number, const ir_space *space, const int64_t *values, int64_t *out);
/* What the space has at k: the value of a dimension, or a quotient of one. */
int64_t opjit_ir_space_value(const ir_space *space, uint32_t k, const int64_t *values);

/* Functions of one graph at phase CLEANED, packed, each for its values of the dimensions.  The first is the one whose
 * sizes decide what depends on sizes in later passes. */
typedef struct ir_samples {
    const ir_func *functions[IR_SAMPLES];
    int64_t values[IR_SAMPLES][OPJIT_MAX_DIMS];
    const ir_dim *dims;
    uint32_t count;
    ir_space space; /* the dimensions, and what follows from them by quotients */
    bool has_lines; /* some sizes are sums: of past and past + 1 no sample tells which one a quotient is of */
} ir_samples;
/* The form that has series[s] for sample s, of which at least five are there.  false: none is known. */
bool opjit_ir_form_fit(const ir_samples *samples, const int64_t *series, opjit_size_form *out);

/* The form that an expression of f's dimensions is, by what it says.  false: it has none. */
bool opjit_ir_form_derive(const ir_func *f, ir_ref r, opjit_size_form *out);

/* Product `which`, counted from 0, of one or two dimensions, and what it is in samples; 0: too much.  false: there are
 * no more. */
bool opjit_ir_form_scale(const ir_samples *samples, uint32_t which, uint8_t powers[OPJIT_MAX_POWERS],
                         int64_t values[IR_SAMPLES]);

enum { BINDING_UNIT = 4 }; /* a binding has a multiple of so many bytes */

typedef struct ir_tensor_forms {
    ir_size_form sizes[8], strides[8], offset;
    ir_size_form bytes;       /* its divisor is 0: of the elements that sizes and strides reach, */
    bool rounded;             /* rounded up to a multiple of BINDING_UNIT */
    ir_size_form elements;    /* of a flat tensor; else its divisor is 0 */
} ir_tensor_forms;

/* Of a constant: which number it follows from, counted from 1 (0: it is the same in all samples), and how. */
typedef struct ir_node_number {
    uint32_t number : 30, rule : 2;
} ir_node_number;

typedef struct ir_general {
    ir_func f;      /* the dimensions are its last parameters */
    ir_func shaped; /* the same as it was generalized, with tensors as in the samples: for instances */
    ir_space space;
    uint32_t first_param;
    rt_arena arena;           /* owns what follows */
    ir_tensor_forms *tensors; /* by tensor, tensor_count of them */
    uint32_t tensor_count;
    opjit_size_form *extents; /* by stage: its iterations */
    uint32_t extent_count;
    ir_size_form *numbers;        /* in which samples differ */
    ir_node_number *node_numbers; /* by node of the first sample */
    ir_size_form *divided; /* each number that something is a quotient by `rest` of, or what that leaves */
    uint32_t divided_count;
    bool floors; /* of IR_GUESS_WHOLE: IR_GUESS_FLOORS has another quotient for some number */
    uint32_t origin; /* where there is none: the graph's node that the refusal is about, counted from 1, or 0 */
} ir_general;

/* Makes the function of the graph for these values: in value form in a fresh *out_value, and, unless out is NULL, at
 * phase CLEANED and packed in a fresh *out.  dims: the range that a function is looked for, which may lack the values;
 * a way that suits none of its sizes isn't taken.  A failure means that the graph can't have these sizes. */
typedef opjit_status (*ir_sample_fn)(void *user, const ir_dim *dims, const int64_t *values, ir_func *out_value,
                                     ir_func *out, opjit_error *error);
/* Where a range of sizes is to be cut: the lower part's sizes of the dimension end with `last`. */
#define IR_CUT_NONE UINT32_MAX
typedef struct ir_cut {
    uint32_t dim; /* IR_CUT_NONE: nothing is known */
    int64_t last;
    bool by_proof; /* one part has a function, up to there */
    bool is_proven; /* and nothing but the graph's definition refused it beyond */
    uint32_t origin; /* the graph's node that a refusal is about, counted from 1; 0: not known */
} ir_cut;
/* Sizes of tensors as they follow from dimensions, for finding samples. */
typedef struct ir_lines ir_lines;
/* Finds samples that agree in all but numbers, near the typical values and far enough from each other, generalizes them
 * into a fresh *out, has the verifier prove instances at both ends of the dimensions and between, and compares what the
 * graph is defined as there.  lines: NULL: primes are taken.
 * Expected failures: UNSUPPORTED: no such samples, no proof, or another definition, and *out_cut may help; what the
 * last sample failed with. */
opjit_status opjit_ir_general_find(const ir_dim *dims, const int64_t *typical, uint32_t dim_count, ir_sample_fn make,
                                   void *user, const ir_lines *lines, ir_general *out, ir_cut *out_cut,
                                   opjit_error *error);

/* One function, and the sizes that it is for. */
#define IR_RANGES 32u
typedef struct ir_range {
    ir_general general;
    int64_t lo[OPJIT_MAX_DIMS], hi[OPJIT_MAX_DIMS]; /* both ends included */
} ir_range;
typedef struct ir_search {
    uint32_t most;  /* ranges */
    bool quotients; /* sizes that are a quotient of a dimension are looked for, so that forms have powers of them */
} ir_search;
/* Functions for all sizes: one, or, where that can't be, one for each of at most `most` ranges, no two of which have a
 * size in common, into out; the last one is that of the typical sizes.  *out_space: what their forms have powers of.
 * Expected failures: UNSUPPORTED: as of one function, or too many ranges, and *out_origin is the graph's node that this
 * is about, counted from 1, or 0; what the last sample failed with. */
opjit_status opjit_ir_ranges_find(const ir_dim *dims, const int64_t *typical, uint32_t dim_count, ir_sample_fn make,
                                  void *user, ir_search how, ir_range out[static IR_RANGES], uint32_t *out_count,
                                  ir_space *out_space, uint32_t *out_origin, opjit_error *error);

/* What is taken of what samples leave open: they are no multiples, and few of them have two values of a quotient. */
typedef enum ir_guess {
    IR_GUESS_WHOLE,  /* a multiple of a block has nothing left; the first divisor that fits, rounded down or up */
    IR_GUESS_TAILS,  /* beside one block less, a last one that is whole is left; else the same */
    IR_GUESS_FLOORS, /* as WHOLE, but quotients are rounded down if any divisor fits so: n / 16, not (n + 31) / 32 */
    IR_GUESSES
} ir_guess;

/* unshare.c: gives each reader of a number in a packed function a node of its own. */
opjit_status opjit_ir_unshare(ir_func *f, opjit_error *error);

/* The samples' generalization, at phase CLEANED, in a fresh *out, which the caller frees.  Sizes of its tensors are the
 * first sample's until opjit_ir_general_resize.
 * Expected failures: UNSUPPORTED, with what differs and no dimension tells how. */
opjit_status opjit_ir_generalize(const ir_samples *samples, ir_guess guess, ir_general *out, opjit_error *error);
void opjit_ir_general_free(ir_general *g);
/* Drops all but f, which is for the sizes that it was given last. */
void opjit_ir_general_settle(ir_general *g);
/* Gives the tensors of f the sizes that they have for these values.  LIMIT: more than 64 bits. */
opjit_status opjit_ir_general_resize(ir_general *g, const int64_t *values, opjit_error *error);
/* Drops stages that have no iterations for any values of the function, such as those of whole blocks for few sizes. */
void opjit_ir_drop_idle_stages(ir_func *f);
/* The function for these values, at phase CLEANED, in a fresh *out: what it stores, and where, is what f stores. */
opjit_status opjit_ir_general_instance(const ir_general *g, const int64_t *values, ir_func *out, opjit_error *error);

/* The function for these values and a copy of this one, at phase CLEANED, both simplified, in fresh functions, which
 * the caller frees. */
opjit_status opjit_ir_general_pair(const ir_general *g, const int64_t *values, const ir_func *loops,
                                   ir_func *out_instance, ir_func *out_own, opjit_error *error);
/* Whether the function for these values is this one, at phase CLEANED, when both are simplified. */
opjit_status opjit_ir_general_is(const ir_general *g, const int64_t *values, const ir_func *loops, bool *out,
                                 opjit_error *error);

/* alike.c: whether these loops, which are of the first sample's shape, have the numbers that g says for the values. */
bool opjit_ir_general_has(const ir_general *g, const int64_t *values, const ir_func *sample, const ir_func *loops);
/* instance.c: gives a tensor of g->shaped its sizes for these values.  false: below 0, or more than 64 bits. */
bool opjit_ir_general_layout(const ir_general *g, uint32_t t, const int64_t *values, ir_tensor *out);

/* same.c: whether two functions in loop form have one text; UNKNOWN: all but names and layouts is the same. */
typedef enum ir_same { IR_SAME, IR_SAME_NOT, IR_SAME_UNKNOWN } ir_same;
ir_same opjit_ir_are_same(ir_func *a, const ir_func *b);

/* Whether loops run over the tensor for these values: a size of 0 is given as 1. */
bool opjit_ir_general_is_reached(const ir_general *g, uint32_t t, const int64_t *values);

#endif
