/* SPDX-License-Identifier: Apache-2.0 */
/* many.c - the loops of all sizes of a range, or of some: whether they are what a generalization says. */
#include "ir/general/finder.h"

enum {
    MANY_NODES = 1 << 14, /* of loops for many sizes, all together, */
    MANY_WORK = 1 << 20   /* and of those of their stages that differ */
};

/* The sizes of number `at` of all, of which the first dimension's change fastest. */
static void nth_sizes(const finder *x, uint64_t at, int64_t *out)
{
    for (uint32_t d = 0; d < x->dim_count; d++) {
        const uint64_t width = (uint64_t)(x->dims[d].hi - x->dims[d].lo) + 1;
        out[d] = x->dims[d].lo + (int64_t)(at % width);
        at /= width;
    }
}

/* One of many sizes.  *left: work of stages that differ, which are interpreted; beyond that they are not looked at. */
static opjit_status ask_one(trial *t, const int64_t *values, uint64_t *left, opjit_error *error)
{
    ir_answer answer = IR_ANSWER_SAME;
    uint64_t work = *left;
    ir_func value, loops;
    bool right, trusted;

    TRY(t->x->make(t->x->user, t->x->dims, values, &value, &loops, error));
    opjit_status status = opjit_ir_trial_has_loops(t, values, &loops, &right, error);
    if (status == OPJIT_OK && !right) /* the order of sums, which bytes may not tell */
        status = opjit_ir_witness(t->general, t->samples, t->definitions, values, &value, false, 0, IR_TRUST_NONE,
                                  &answer, &trusted, error);
    const bool runs = status == OPJIT_OK && !right && answer == IR_ANSWER_UNKNOWN;
    if (runs)
        status = opjit_ir_replay(t->general, values, &loops, &work, &answer, error);
    if (runs && answer != IR_ANSWER_UNKNOWN)
        *left -= work;
    opjit_ir_free(&value);
    opjit_ir_free(&loops);
    TRY(status);
    return answer != IR_ANSWER_OTHER ? OPJIT_OK : opjit_ir_trial_refuse_other(t, values, error);
}

/* Samples that are close together have numbers of several forms.  So the loops of all sizes are looked at, if they are
 * few and the graph is small, or else those of some. */
opjit_status opjit_ir_trial_ask_many(trial *t, opjit_error *error)
{
    const finder *x = t->x;
    const uint64_t most = MANY_NODES / t->samples->functions[0]->node_count;
    uint64_t all = 1, left = MANY_WORK;

    for (uint32_t d = 0; d < x->dim_count; d++) /* what is above 2^32 is as good */
        all = all >> 32 != 0 ? all : all * ((uint64_t)(x->dims[d].hi - x->dims[d].lo) + 1);
    for (uint64_t i = 0; i < all && i < most; i++) {
        int64_t values[OPJIT_MAX_DIMS] = { 0 };
        nth_sizes(x, all <= most ? i : opjit_ir_hash(i, all) % all, values);
        TRY(ask_one(t, values, &left, error));
    }
    return OPJIT_OK;
}
