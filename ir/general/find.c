/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - finds the samples of a generalization, and has it proven.
 *
 * Passes cut loops by what sizes are: a size that is a multiple of a vector has no remainder, one below a threshold has
 * another schedule.  So samples are primes around the typical sizes, and those that agree in everything but numbers are
 * a group.  The generalization of a group may still be wrong for other sizes, where a pass used that a sample is large
 * enough, or what it leaves behind a multiple: the verifier then finds no proof for an instance there, and the next
 * group is tried. */
#include "ir/general/finder.h"

#include <string.h>

enum { GROUPS = 4 }; /* that are tried */

#define KINDS_TEXT "{!kernel}{!dims}sizes around {%s} have loops of too many kinds; give narrower bounds, or one size"

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* The largest group that was not tried yet, whose size becomes 0; UINT32_MAX: none is large enough. */
static uint32_t next_group(finder *x)
{
    const uint32_t best = opjit_ir_largest_group(x);

    if (best == UINT32_MAX || x->sizes[best] < LEAST_SAMPLES)
        return UINT32_MAX;
    x->sizes[best] = 0;
    return best;
}

/* With the node whose loops differ first. */
static opjit_status refuse_kinds(finder *x, opjit_error *error)
{
    const candidate *first = &x->candidates[0];

    for (uint32_t i = 1; i < x->candidate_count && x->origin == 0 && first->made; i++)
        if (x->candidates[i].made && x->candidates[i].shape != first->shape)
            x->origin = opjit_ir_blame_loops(&first->f, &x->candidates[i].f);
    return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, KINDS_TEXT,
                           opjit_ir_size_text(x->dims, x->typical, x->dim_count).text);
}

/* The node whose loops differ first between a sample and the sizes that were refused. */
static void blame_refused(trial *t, finder *x)
{
    ir_func value, loops;

    if (x->make(x->user, x->dims, t->refused, &value, &loops, NULL) != OPJIT_OK)
        return;
    x->origin = opjit_ir_blame_loops(t->samples->functions[0], &loops);
    opjit_ir_free(&value);
    opjit_ir_free(&loops);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static void keep_group(const finder *x, uint32_t group, ir_samples *samples, trial *t)
{
    for (uint32_t i = 0; i < x->candidate_count && samples->count < CHOSEN; i++) {
        const candidate *c = &x->candidates[i];
        if (!c->made || c->shape != x->groups[group])
            continue;
        samples->functions[samples->count] = &c->f;
        t->definitions[samples->count] = &c->definition;
        memcpy(samples->values[samples->count++], c->values, sizeof c->values);
    }
}

/* Whether the samples have enough sizes of each dimension to tell what follows from it. */
static bool are_varied(const finder *x, const ir_samples *samples)
{
    for (uint32_t d = 0; d < x->dim_count; d++) {
        uint32_t others = 0;
        for (uint32_t i = 1; i < samples->count; i++) {
            uint32_t k = 0;
            while (samples->values[k][d] != samples->values[i][d])
                k++;
            others += k == i;
        }
        if (others < LEAST_SAMPLES - 1 && x->dims[d].lo < x->dims[d].hi)
            return false;
    }
    return true;
}

/* How many sizes of its dimension the part with the typical one keeps. */
static int64_t width(const finder *x, const ir_cut *cut)
{
    const ir_dim *dim = &x->dims[cut->dim];
    return x->typical[cut->dim] <= cut->last ? cut->last - dim->lo : dim->hi - cut->last;
}

/* Where proofs end, at multiples of a block, there may be none for small sizes, either. */
static bool is_better(const finder *x, const ir_cut *cut, const ir_cut *other)
{
    if (other->dim == IR_CUT_NONE || cut->is_proven != other->is_proven)
        return other->dim == IR_CUT_NONE || cut->is_proven;
    return width(x, cut) > width(x, other);
}

/* One generalization.  UNSUPPORTED: *t has those sizes for which it is refused, and t->general says whether there is
 * one. */
static opjit_status try_one(finder *x, trial *t, ir_guess guess, ir_general *out, opjit_error *error)
{
    opjit_status status = opjit_ir_generalize(t->samples, guess, out, error);
    if (status != OPJIT_OK && error != NULL)
        x->origin = out->origin;
    TRY(status);
    t->general = out;
    t->floors = out->floors;
    status = opjit_ir_trial_prove(t, error);
    if (status == OPJIT_OK)
        status = opjit_ir_trial_ask_many(t, error);
    if (status == OPJIT_UNSUPPORTED && error != NULL)
        blame_refused(t, x);
    return status;
}

/* A better *out_cut by what was refused, if there is one. */
static opjit_status cut_refused(const finder *x, trial *t, ir_cut *out_cut)
{
    ir_cut cut = { .dim = IR_CUT_NONE };

    TRY(opjit_ir_trial_cut(t, &cut));
    if (cut.dim != IR_CUT_NONE && is_better(x, &cut, out_cut))
        *out_cut = cut;
    return OPJIT_OK;
}

/* Frees the generalizations of trials that were refused, and asks where each is right, if none was found. */
static opjit_status end_guesses(const finder *x, trial *trials, ir_general *generals, uint32_t count,
                                opjit_status status, ir_cut *out_cut)
{
    for (uint32_t i = 0; i < count; i++) {
        if (trials[i].general == NULL)
            continue;
        const opjit_status found = status == OPJIT_UNSUPPORTED ? cut_refused(x, &trials[i], out_cut) : OPJIT_OK;
        status = found != OPJIT_OK ? found : status;
        opjit_ir_general_free(&generals[i]);
    }
    return status;
}

/* Makes the loops for the values one more sample, if they have the group's shape.  false: nothing was learned. */
static opjit_status learn_at(finder *x, uint32_t group, ir_samples *samples, trial *t, const int64_t *values, bool *out)
{
    candidate *const c = &x->learned[x->learned_count];

    *out = false;
    memcpy(c->values, values, sizeof c->values);
    const opjit_status status = opjit_ir_candidate_make(x, c, NULL);
    bool is_known = status != OPJIT_OK || c->shape != x->groups[group];
    for (uint32_t i = 0; i < samples->count; i++)
        is_known = is_known || memcmp(samples->values[i], c->values, sizeof c->values) == 0;
    if (is_known) {
        opjit_ir_candidate_free(c);
        return is_over(status) ? status : OPJIT_OK;
    }
    const uint32_t i = samples->count++;
    x->learned_count++;
    samples->functions[i] = &c->f;
    t->definitions[i] = &c->definition;
    memcpy(samples->values[i], c->values, sizeof c->values);
    *out = true;
    return opjit_ir_count(&c->f, t->arena, &t->counts[i], NULL);
}

/* Of sizes that a trial was refused for; or else of an even one: of odd sizes, as samples are, halves rounded up are
 * linear. */
static opjit_status learn(finder *x, uint32_t group, ir_samples *samples, trial *t, const int64_t *refused, bool *out)
{
    *out = false;
    if (!t->learns)
        return OPJIT_OK;
    opjit_status status = learn_at(x, group, samples, t, refused, out);
    for (uint32_t d = 0; d < x->dim_count && status == OPJIT_OK && !*out; d++) {
        int64_t values[OPJIT_MAX_DIMS];
        memcpy(values, samples->values[0], sizeof values);
        if (values[d] % 2 == 0 || x->dims[d].lo == x->dims[d].hi)
            continue;
        opjit_ir_change_parity(x, values, d);
        status = learn_at(x, group, samples, t, values, out);
    }
    return status;
}

/* By one guess after the other; the first one's refusal is the message.  Where to cut is asked last: it is for nothing
 * where another guess is right, or where something was learned. */
static opjit_status try_guesses(finder *x, uint32_t group, ir_samples *samples, trial *all, ir_general *out,
                                ir_cut *out_cut, bool *out_learned, opjit_error *error)
{
    ir_general generals[IR_GUESSES];
    trial trials[IR_GUESSES];
    opjit_status status = OPJIT_UNSUPPORTED;
    uint32_t count = 0;
    bool differs = false;

    while (count < IR_GUESSES && (count != IR_GUESS_FLOORS || trials[IR_GUESS_WHOLE].floors) &&
           status == OPJIT_UNSUPPORTED && !differs) {
        trials[count] = *all;
        status = try_one(x, &trials[count], (ir_guess)count, &generals[count], count == 0 ? error : NULL);
        differs = trials[count++].differs;
    }
    if (status == OPJIT_OK) {
        *out = generals[--count];
        opjit_rt_error_clear(error);
    }
    *out_learned = false;
    const trial *const first = &trials[differs ? count - 1 : 0];
    opjit_status ended = status == OPJIT_UNSUPPORTED && first->general != NULL
                             ? learn(x, group, samples, all, first->refused, out_learned)
                             : OPJIT_OK;
    const bool is_last = ended == OPJIT_OK && status == OPJIT_UNSUPPORTED && !*out_learned;
    const opjit_status cut = end_guesses(x, trials, generals, count, is_last ? status : OPJIT_OK, out_cut);
    return is_last ? cut : ended != OPJIT_OK ? ended : status;
}

/* Sizes for which a function was refused become samples, too, where their loops are the samples' but for numbers; where
 * no number fits all of these any more, what the first ones say has to do, as far as it computes the same. */
static opjit_status try_samples(finder *x, uint32_t group, ir_samples *samples, trial *t, ir_general *out,
                                ir_cut *out_cut, opjit_error *error)
{
    const uint32_t chosen = samples->count;

    for (t->learns = true;;) {
        bool learned;
        const opjit_status status = try_guesses(x, group, samples, t, out, out_cut, &learned, error);
        if (status != OPJIT_UNSUPPORTED || (!learned && samples->count == chosen))
            return status;
        t->learns = learned && x->learned_count < LEARNED;
        samples->count = learned ? samples->count : chosen;
    }
}

static opjit_status try_group(finder *x, uint32_t group, ir_general *out, ir_cut *out_cut, opjit_error *error)
{
    ir_samples samples = { .dims = x->dims, .space = x->space, .has_lines = x->lines->count != 0 };
    trial t = { .x = x, .samples = &samples };
    opjit_status status = OPJIT_OK;
    rt_arena arena;

    keep_group(x, group, &samples, &t);
    if (!are_varied(x, &samples))
        return refuse_kinds(x, error);
    opjit_rt_arena_init(&arena, samples.functions[0]->allocator);
    t.arena = &arena;
    t.shape = opjit_ir_shape(samples.functions[0]);
    for (uint32_t i = 0; i < samples.count && status == OPJIT_OK; i++)
        status = opjit_ir_count(samples.functions[i], &arena, &t.counts[i], error);
    if (status == OPJIT_OK)
        status = try_samples(x, group, &samples, &t, out, out_cut, error);
    while (x->learned_count > 0)
        opjit_ir_candidate_free(&x->learned[--x->learned_count]);
    opjit_rt_arena_free(&arena);
    return status;
}

opjit_status opjit_ir_find_over(opjit_status status, opjit_error *error)
{
    opjit_rt_error_clear(error);
    return status == OPJIT_CANCELLED ? opjit_rt_cancelled(error) : opjit_rt_no_memory(error);
}

static opjit_status try_groups(finder *x, ir_general *out, ir_cut *out_cut, opjit_error *error)
{
    opjit_status status = OPJIT_OK;

    TRY(opjit_ir_candidates_group(x));
    for (uint32_t i = 0; i < GROUPS; i++) {
        const uint32_t group = next_group(x);
        if (group == UINT32_MAX)
            break;
        ir_cut cut = { .dim = IR_CUT_NONE };
        const bool first = status == OPJIT_OK; /* whose message it is */
        const opjit_status found = try_group(x, group, out, &cut, first ? error : NULL);
        if (found == OPJIT_OK || is_over(found))
            return found;
        if (out_cut->dim == IR_CUT_NONE)
            *out_cut = cut;
        status = first ? found : status;
    }
    return status != OPJIT_OK ? status : refuse_kinds(x, error);
}

/* Of a range of one size: its function, in which there is nothing to prove that a compile would not. */
static opjit_status make_only(finder *x, ir_general *out, opjit_error *error)
{
    ir_samples samples = { .dims = x->dims, .space = x->space, .count = 1 };
    candidate *c = &x->candidates[0];

    for (uint32_t d = 0; d < x->dim_count; d++)
        c->values[d] = samples.values[0][d] = x->dims[d].lo;
    TRY(opjit_ir_candidate_make(x, c, error));
    samples.functions[0] = &c->f;
    TRY(opjit_ir_generalize(&samples, false, out, error));
    const opjit_status status = opjit_ir_general_resize(out, samples.values[0], error);
    if (status == OPJIT_OK)
        opjit_ir_general_settle(out);
    else
        opjit_ir_general_free(out);
    return status;
}

static opjit_status find(finder *x, ir_general *out, ir_cut *out_cut, opjit_error *error)
{
    bool only = true;

    for (uint32_t d = 0; d < x->dim_count; d++)
        only = only && x->dims[d].lo == x->dims[d].hi;
    if (only)
        return make_only(x, out, error);
    TRY(opjit_ir_candidates_make(x, error));
    opjit_status status = try_groups(x, out, out_cut, error);
    if (status == OPJIT_UNSUPPORTED && out_cut->dim == IR_CUT_NONE) {
        const opjit_status found = opjit_ir_finder_cut(x, out_cut);
        status = found != OPJIT_OK ? found : status;
    }
    return is_over(status) ? opjit_ir_find_over(status, error) : status;
}

opjit_status opjit_ir_general_find(const ir_dim *dims, const int64_t *typical, uint32_t dim_count, ir_sample_fn make,
                                   void *user, const ir_lines *lines, ir_general *out, ir_cut *out_cut,
                                   opjit_error *error)
{
    static const ir_lines none = { .count = 0 };
    finder x = { .dims = dims,
                 .typical = typical,
                 .dim_count = dim_count,
                 .make = make,
                 .user = user,
                 .lines = lines == NULL ? &none : lines,
                 .space = { .dims = dim_count } };

    if (lines != NULL)
        x.space = lines->space;

    *out_cut = (ir_cut){ .dim = IR_CUT_NONE };
    const opjit_status status = find(&x, out, out_cut, error);
    out_cut->origin = x.origin;
    for (uint32_t i = 0; i < CANDIDATES + MORE; i++)
        opjit_ir_candidate_free(&x.candidates[i]);
    return status;
}
