/* SPDX-License-Identifier: Apache-2.0 */
/* ir_samples.h - functions in value form for tests of the IR: the four generators as lowering writes them, built a
 * second time here so that tests of passes need no frontend. */
#ifndef OPJIT_TESTS_SUPPORT_IR_SAMPLES_H
#define OPJIT_TESTS_SUPPORT_IR_SAMPLES_H

#include "ir/ir.h"
#include "tests/support/random.h"

typedef enum ir_sample_kind {
    SAMPLE_DIAGONAL1, /* x - y in a band, or outside of it */
    SAMPLE_DIAGONAL,  /* y + offset == x */
    SAMPLE_SEQUENCE,
    SAMPLE_CONSTANT,
    SAMPLE_EXPRESSION, /* a random one of coordinates, conditions, selects and loads */
    SAMPLE_KINDS
} ir_sample_kind;

typedef struct ir_sample {
    ir_sample_kind kind;
    ir_type type;
    uint32_t rank;
    uint64_t sizes[8], out_strides[8], in_strides[8];
    bool has_input;     /* diagonals */
    bool in_place;      /* the input has the output's layout and is its memory */
    bool late;          /* scalars and bounds are parameters */
    int64_t begin, end; /* DIAGONAL1; begin: the offset of DIAGONAL */
    uint64_t value, delta; /* bits; value: the start of a sequence */
    uint64_t seed;         /* EXPRESSION */
} ir_sample;

/* Bytes from the start of element 0 to the end of the last one. */
uint64_t ir_sample_bytes(const ir_sample *s, const uint64_t *strides);
/* Builds the function in value form.  If late, its parameters are those of value, delta, begin, end that the kind has,
 * in this order. */
opjit_status ir_sample_build(const ir_sample *s, const opjit_allocator *allocator, ir_func *out, opjit_error *error);
/* The values of run.params for a late sample. */
void ir_sample_params(const ir_sample *s, uint64_t params[4]);
/* Draws layouts, sizes, bounds and types; at most about `elements` elements. */
void ir_sample_random(test_random *r, uint64_t elements, ir_sample *out);

#endif
