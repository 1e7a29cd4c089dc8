/* SPDX-License-Identifier: Apache-2.0 */
/* generalizer.h - what the files of a generalization share. */
#ifndef OPJIT_IR_GENERAL_GENERALIZER_H
#define OPJIT_IR_GENERAL_GENERALIZER_H

#include "ir/general/general.h"

/* A number in which samples differ, and how it follows from the dimensions. */
typedef struct number {
    int64_t series[IR_SAMPLES];
    ir_size_form by; /* its divisor is 0: not known */
    ir_ref expr;     /* in the new function; 0: not built yet */
    uint32_t stage;  /* that it is a number of, counted from 1; 0: of tensors, and of any stage that has none itself */
    uint32_t whole;  /* of a stage's: the number that has this series and no stage */
    uint32_t uses;
} number;

/* What some number is left of a base by a divisor. */
typedef struct divided {
    uint32_t base;
    int64_t by;
} divided;

typedef struct generalizer {
    const ir_samples *s;
    const ir_func *base; /* the first sample */
    ir_general *out;
    ir_func *f;    /* that is written: &out->shaped, then &out->f */
    bool flattens; /* the latter */
    ir_guess guess;
    opjit_error *error;
    number *numbers; /* that differ, each once */
    uint32_t count, capacity;
    ir_table known;    /* by a hash of series and stage, or what follows it: the number + 1 */
    int64_t *divisors; /* constants that are the same in all samples, each once */
    uint32_t divisor_count, divisor_capacity;
    ir_table seen_divisors;
    divided *rests;
    uint32_t rest_count;
    ir_ref node;     /* of base, or else a tensor of it: what is looked at, for refusals */
    uint32_t tensor;
    uint32_t stage;  /* the node's, counted from 1; 0: none */
    ir_ref *map; /* by node of base: the new one */
    bool *flat;  /* by tensor */
} generalizer;

/* How much it counts for a number that others may be quotients of: that it is a size of what a stage stores, that a
 * position is subtracted from it; being there is 1. */
#define IR_USES_OF_SIZE 1000u
#define IR_USES_OF_LIMIT 10u

/* In all samples, into series. */
#define SERIES_OF_TENSOR(g, t, field, series)                      \
    for (uint32_t sample_ = 0; sample_ < (g)->s->count; sample_++) \
    (series)[sample_] = (int64_t)(g)->s->functions[sample_]->tensors[t].field

/* --- elements.c --------------------------------------------------------------------------------------------------- */
/* How a constant among elements follows from an integer: it is that, half of that, or 1 divided by it. */
typedef enum ir_element_rule { IR_WHOLE, IR_HALF, IR_INVERSE, IR_UNKNOWN } ir_element_rule;
/* The integers that the constant r follows from in all samples, into series. */
ir_element_rule opjit_ir_element_series(const generalizer *g, ir_ref r, int64_t *series);

/* --- numbers.c ---------------------------------------------------------------------------------------------------- */
bool opjit_ir_series_differs(const generalizer *g, const int64_t *series);
/* Whose numbers are entered and looked for; 0: of no stage. */
void opjit_ir_number_at(generalizer *g, ir_ref node);
/* Enters a number that differs, if it is new; a constant that is the same in all samples, which may be a divisor. */
void opjit_ir_number_add(generalizer *g, const int64_t *series, uint32_t uses);
void opjit_ir_divisor_add(generalizer *g, int64_t value);
/* Finds forms for those that are no sums: quotients and remainders of others. */
void opjit_ir_numbers_fit(generalizer *g);
/* The number, among those that were entered; NULL: it is the same in all samples. */
number *opjit_ir_number_find(generalizer *g, const int64_t *series);
/* The form of the series: a constant, or a number that was entered.  UNSUPPORTED: not known. */
opjit_status opjit_ir_number_form(generalizer *g, const char *what, const int64_t *series, ir_size_form *out);
/* Lists what has quotients and remainders in g->out. */
opjit_status opjit_ir_numbers_list(generalizer *g);
/* Writes all of them as expressions of g->f, before any other node, so that all may read them. */
void opjit_ir_numbers_build(generalizer *g);
opjit_status opjit_ir_refuse_number(const generalizer *g, const char *what, const int64_t *series);
opjit_status opjit_ir_refuse_shape(const generalizer *g, const char *what);

#endif
