/* SPDX-License-Identifier: Apache-2.0 */
/* cut.c - where a range of sizes is to be cut in two, so that each part may have a function of its own: by bisection
 * between sizes for which one generalization is right and others for which it isn't, or between sizes of two kinds of
 * loops. */
#include "ir/general/finder.h"

#include <string.h>

enum { CUT_WORK = 10000 }; /* as witnesses', but there are many sizes to ask */

/* The size of dimension d between both, without them, that samples may have and that is nearest to the middle; 0: none.
 * values: of the other dimensions. */
static int64_t sample_between(const finder *x, const int64_t *values, uint32_t d, int64_t a, int64_t b)
{
    const int64_t lo = a < b ? a : b, hi = a < b ? b : a, middle = lo + (hi - lo) / 2;
    int64_t own[OPJIT_MAX_DIMS];

    memcpy(own, values, sizeof own);
    for (int64_t k = 0; middle - k > lo || middle + k < hi; k++)
        for (int64_t sign = -1; sign <= 1; sign += 2) {
            own[d] = middle + sign * k;
            if (own[d] > lo && own[d] < hi && opjit_ir_is_sample_size(x, own, d))
                return own[d];
        }
    return 0;
}

static int64_t middle_of(int64_t a, int64_t b)
{
    const int64_t lo = a < b ? a : b, hi = a < b ? b : a;
    return hi - lo < 2 ? 0 : lo + (hi - lo) / 2;
}

/* The last size of the lower part, where one part ends with `good` and the other one begins with the size beside it. */
static int64_t last_of(int64_t good, int64_t bad)
{
    return good < bad ? good : good - 1;
}

/* --- by a generalization ------------------------------------------------------------------------------------------ */

static opjit_status is_right(trial *t, const int64_t *values, bool with_loops, bool *out)
{
    opjit_status status = opjit_ir_trial_prove_at(t, values, NULL);

    if (status == OPJIT_OK)
        status = opjit_ir_trial_ask(t, values, with_loops, NULL);
    *out = status == OPJIT_OK;
    return is_over(status) ? status : OPJIT_OK;
}

/* Moves values[d], which is right, and *bad, which is not, towards each other. */
static opjit_status bisect(trial *t, int64_t *values, uint32_t d, int64_t *bad, bool samples)
{
    int64_t good = values[d], next;

    while ((next = samples ? sample_between(t->x, values, d, good, *bad) : middle_of(good, *bad)) != 0) {
        bool right;
        values[d] = next;
        TRY(is_right(t, values, samples, &right));
        *(right ? &good : bad) = next;
    }
    values[d] = good;
    return OPJIT_OK;
}

/* Between primes, whose loops say all.  What is between the last two of these is no prime: where one is refused for its
 * definition or for want of a proof, the others tell, too; else they belong to those that were refused. */
static opjit_status cut_along(trial *t, int64_t *values, uint32_t d, int64_t bad, ir_cut *out)
{
    bool right;

    TRY(bisect(t, values, d, &bad, true));
    const int64_t good = values[d];
    values[d] = bad;
    TRY(is_right(t, values, false, &right));
    values[d] = good;
    if (!right)
        TRY(bisect(t, values, d, &bad, false));
    *out = (ir_cut){ d, last_of(values[d], bad), true, t->is_proven, 0 };
    return OPJIT_OK;
}

opjit_status opjit_ir_trial_cut(trial *t, ir_cut *out)
{
    const finder *x = t->x;
    int64_t values[OPJIT_MAX_DIMS] = { 0 }, refused[OPJIT_MAX_DIMS];
    bool right;

    t->most_work = CUT_WORK;
    t->learns = false;
    memcpy(refused, t->refused, sizeof refused);
    memcpy(values, x->typical, x->dim_count * sizeof *values);
    TRY(is_right(t, values, true, &right));
    for (uint32_t d = 0; d < x->dim_count && right; d++) { /* one after the other on the way to those */
        const int64_t good = values[d];
        if (refused[d] == good)
            continue;
        values[d] = refused[d];
        TRY(is_right(t, values, true, &right));
        if (right)
            continue;
        values[d] = good;
        return cut_along(t, values, d, refused[d], out);
    }
    return OPJIT_OK;
}

/* --- by loops ----------------------------------------------------------------------------------------------------- */

/* Whether the loops for these sizes are the first candidate's. */
static opjit_status is_alike(const finder *x, const int64_t *values, bool *out)
{
    candidate c = { .made = false };

    memcpy(c.values, values, sizeof c.values);
    const opjit_status status = opjit_ir_candidate_make(x, &c, NULL);
    *out = status == OPJIT_OK && c.shape == x->candidates[0].shape;
    opjit_ir_candidate_free(&c);
    return is_over(status) ? status : OPJIT_OK;
}

/* From the first candidate's size towards the end; *out stays as it is where all are alike. */
static opjit_status cut_towards(const finder *x, uint32_t d, int64_t end, ir_cut *out)
{
    int64_t values[OPJIT_MAX_DIMS], good, bad, next;
    bool alike;

    memcpy(values, x->candidates[0].values, sizeof values);
    good = values[d];
    bad = sample_between(x, values, d, good, end < good ? end - 1 : end + 1);
    for (next = bad; next != 0; next = sample_between(x, values, d, bad, end < good ? end - 1 : end + 1))
        bad = next;
    values[d] = bad;
    if (bad == 0)
        return OPJIT_OK;
    TRY(is_alike(x, values, &alike));
    if (alike)
        return OPJIT_OK;
    while ((next = sample_between(x, values, d, good, bad)) != 0) {
        values[d] = next;
        TRY(is_alike(x, values, &alike));
        *(alike ? &good : &bad) = next;
    }
    *out = (ir_cut){ .dim = d, .last = last_of(good, bad) };
    return OPJIT_OK;
}

opjit_status opjit_ir_finder_cut(const finder *x, ir_cut *out)
{
    for (uint32_t d = 0; d < x->dim_count && x->candidates[0].made; d++) {
        const ir_dim *dim = &x->dims[d];
        const int64_t own = x->candidates[0].values[d];
        if (own < dim->lo || own > dim->hi || dim->lo == dim->hi)
            continue;
        TRY(cut_towards(x, d, dim->hi, out));
        if (out->dim == IR_CUT_NONE)
            TRY(cut_towards(x, d, dim->lo, out));
        if (out->dim != IR_CUT_NONE)
            return OPJIT_OK;
    }
    return OPJIT_OK;
}
