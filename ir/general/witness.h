/* SPDX-License-Identifier: Apache-2.0 */
/* witness.h - the definitions of a graph for some sizes, and whether a generalization computes them. */
#ifndef OPJIT_IR_GENERAL_WITNESS_H
#define OPJIT_IR_GENERAL_WITNESS_H

#include "ir/general/general.h"

/* A function in value form, as a hash of everything but numbers, and its numbers. */
typedef struct ir_definition {
    uint64_t shape, work; /* work: elements and terms */
    rt_bytes numbers;     /* int64_t, in the order of the text */
    rt_bytes orders;      /* by reduction: 1: it has more values than a block; and 2 * (1 + lanes), of sums of more
                             than one value */
} ir_definition;
/* Into a fresh *out, which is to be freed in any case. */
opjit_status opjit_ir_define(const ir_func *f, ir_definition *out, opjit_error *error);
void opjit_ir_definition_free(ir_definition *d);

typedef enum ir_answer {
    IR_ANSWER_OTHER,
    IR_ANSWER_SAME,
    IR_ANSWER_UNKNOWN /* it is too much work to interpret */
} ir_answer;

/* What may be right that is too much work to interpret, and whose stages that differ are. */
typedef enum ir_trust {
    IR_TRUST_NONE,    /* nothing */
    IR_TRUST_SIZES,   /* sizes that are within the samples', of the samples' definition, or 1 */
    IR_TRUST_DEFINED, /* and sizes above, of the samples' definition */
    IR_TRUST_ONES     /* and sizes above where some dimension is 1, of which the same with larger ones are known */
} ir_trust;

/* Whether some dimensions are 1 and others larger than in all samples; *out: with the first sample's in place of 1. */
bool opjit_ir_exceeds_with_ones(const ir_samples *samples, const int64_t *values, int64_t *out);

/* Whether the generalization of the samples, whose definitions these are, computes `value`, the graph's definition for
 * these values.  same_loops: its loops are known to be right, if the definition is.  most_work: elements and terms that
 * are interpreted to find out.  *out_trusted: of IR_ANSWER_UNKNOWN: it may be right. */
opjit_status opjit_ir_witness(const ir_general *g, const ir_samples *samples, const ir_definition *const *definitions,
                              const int64_t *values, const ir_func *value, bool same_loops, uint64_t most_work,
                              ir_trust trust, ir_answer *out, bool *out_trusted, opjit_error *error);

/* Whether the instance for these values has the bits of the graph's own loops for them.  *work: elements and terms of
 * stages of each that the other lacks, which are interpreted: at most, and then how many there are, UINT64_MAX where
 * that is not known. */
opjit_status opjit_ir_replay(const ir_general *g, const int64_t *values, const ir_func *loops, uint64_t *work,
                             ir_answer *out, opjit_error *error);

#endif
