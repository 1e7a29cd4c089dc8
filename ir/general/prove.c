/* SPDX-License-Identifier: Apache-2.0 */
/* prove.c - whether a generalization is right: the verifier proves its instances at many sizes, and the graph's
 * definition and loops at others, the witnesses, have to be what it says (witness.c). */
#include "ir/general/finder.h"

#include <string.h>

enum {
    SMALL = 18,     /* sizes of which each is proven, from the least one on */
    CHECKED = 64,   /* of a dimension, */
    MULTIPLES = 64, /* and of those that are multiples, or one less */
    WITNESSES = 24,
    MOST_WORK = 400000, /* that is interpreted for each */
    EVENS = 2,           /* even sizes that are interpreted, */
    EVEN_WORK = 2000000, /* and the work of each */
    REPLAY_WORK = 1 << 20, /* of the stages that differ from the graph's own; four times as much for some sizes, */
    REPLAY_MORE = 1 << 23, /* as long as there is so much for all */
    WHOLE = 16,          /* positions of whole vectors */
    NARROW = 8           /* sizes of a range whose loops are asked one by one */
};

/* Remembers these sizes, and gives the status on. */
static opjit_status refused(trial *t, const int64_t *values, opjit_status status)
{
    if (is_over(status))
        return status;
    memcpy(t->refused, values, sizeof t->refused);
    return OPJIT_UNSUPPORTED;
}

/* --- proofs ------------------------------------------------------------------------------------------------------- */

/* Sizes that are proven: the least ones, powers of two and what is beside them, the typical one, the largest ones. */
static uint32_t sizes_to_check(const ir_dim *dim, int64_t typical, int64_t out[static CHECKED])
{
    uint32_t count = 0;

    for (int64_t n = dim->lo; n < dim->lo + SMALL; n++)
        out[count++] = within(dim, n);
    for (int64_t n = 32; n <= dim->hi && count + 6 < CHECKED; n *= n < 1024 ? 2 : 4) {
        out[count++] = within(dim, n - 1);
        out[count++] = within(dim, n);
        out[count++] = within(dim, n + 1);
    }
    out[count++] = within(dim, typical);
    out[count++] = within(dim, dim->hi - 1);
    out[count++] = dim->hi;
    return count;
}

/* Runs the instance and the graph's own loops for these values beside each other. */
static opjit_status replay(trial *t, const int64_t *values, const ir_func *loops, ir_answer *out, opjit_error *error)
{
    uint64_t work = REPLAY_WORK;

    TRY(opjit_ir_replay(t->general, values, loops, &work, out, error));
    if (*out != IR_ANSWER_UNKNOWN || work > 4 * REPLAY_WORK || work > t->replay_left)
        return OPJIT_OK;
    t->replay_left -= work;
    return opjit_ir_replay(t->general, values, loops, &work, out, error);
}

/* By the loops for just these values, of which those stages that differ are interpreted, or else as a witness says.
 * loops: NULL: they are the samples'. */
static opjit_status decide(trial *t, const int64_t *values, const ir_func *value, const ir_func *loops, uint64_t most,
                           ir_trust trust, bool *out, opjit_error *error)
{
    ir_answer answer = IR_ANSWER_UNKNOWN;
    bool trusted = false;
    ir_func again, own;

    TRY(opjit_ir_witness(t->general, t->samples, t->definitions, values, value, loops == NULL, loops == NULL ? most : 0,
                         trust, &answer, &trusted, error));
    if (answer == IR_ANSWER_UNKNOWN && loops != NULL) { /* sums have the samples' order, which bytes may not tell */
        TRY(replay(t, values, loops, &answer, error));
        if (answer == IR_ANSWER_UNKNOWN)
            TRY(opjit_ir_witness(t->general, t->samples, t->definitions, values, value, false, most, trust, &answer,
                                 &trusted, error));
    }
    if (answer == IR_ANSWER_UNKNOWN && loops == NULL) {
        TRY(t->x->make(t->x->user, t->x->dims, values, &again, &own, error));
        const opjit_status status = replay(t, values, &own, &answer, error);
        opjit_ir_free(&again);
        opjit_ir_free(&own);
        TRY(status);
    }
    *out = answer == IR_ANSWER_SAME || (answer == IR_ANSWER_UNKNOWN && trusted);
    return OPJIT_OK;
}

/* Whether its sums have as many terms as the graph's own loops for these values.  Tiles that reach beyond a line have
 * surplus ones, whose number may be a form of odd sizes alone.  Where those loops are others, as of small sizes, the
 * instance is interpreted, if that is little work. */
static opjit_status sums_as_loops(trial *t, const int64_t *values, const ir_counts *own, bool *out, opjit_error *error)
{
    ir_func value, loops;
    ir_counts counts;

    *out = false;
    opjit_status status = t->x->make(t->x->user, t->x->dims, values, &value, &loops, error);
    if (status != OPJIT_OK)
        return status;
    status = opjit_ir_count(&loops, t->arena, &counts, error);
    *out = status == OPJIT_OK && opjit_ir_counts_sum(t->samples, t->counts, values, own, &counts);
    if (status == OPJIT_OK && !*out)
        status = decide(t, values, &value, &loops, t->most_work, IR_TRUST_NONE, out, error);
    opjit_ir_free(&value);
    opjit_ir_free(&loops);
    return status;
}

/* Whether the instance computes all that samples do, as far as that can be counted. */
static opjit_status count(trial *t, const int64_t *values, const ir_func *instance, uint32_t *out_wrong,
                          opjit_error *error)
{
    ir_counts own;
    const rt_arena_mark mark = rt_arena_position(t->arena);

    opjit_status status = opjit_ir_count(instance, t->arena, &own, error);
    bool right = status == OPJIT_OK && opjit_ir_counts_write(t->general, t->samples, t->counts, values, instance, &own);
    if (right && !opjit_ir_counts_sum(t->samples, t->counts, values, &own, NULL))
        status = sums_as_loops(t, values, &own, &right, error);
    *out_wrong = status == OPJIT_OK && !right;
    opjit_rt_arena_rewind(t->arena, mark);
    return status;
}

static bool has_proof(const trial *t, const int64_t *values)
{
    const size_t size = t->x->dim_count * sizeof *values;
    uint32_t i = 0;
    while (i < t->proven_count && memcmp(t->proven[i], values, size) != 0)
        i++;
    return i < t->proven_count;
}

opjit_status opjit_ir_trial_prove_at(trial *t, const int64_t *values, opjit_error *error)
{
    ir_func instance;
    uint32_t unproven = 0;

    if (has_proof(t, values))
        return OPJIT_OK;
    opjit_status status = opjit_ir_general_instance(t->general, values, &instance, error);
    if (status != OPJIT_OK)
        return refused(t, values, status);
    instance.phase = IR_SPLIT; /* a let that nothing reads for these sizes is no fault */
    status = opjit_ir_count_unproven(&instance, &unproven, error);
    if (status == OPJIT_INTERNAL) { /* a quotient by what is 0 for these values */
        opjit_rt_error_clear(error);
        unproven = 1;
        status = OPJIT_OK;
    }
    if (status == OPJIT_OK && unproven == 0)
        status = count(t, values, &instance, &unproven, error);
    opjit_ir_free(&instance);
    if (status == OPJIT_OK && unproven != 0)
        status = opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                 "{!kernel}{!dims}no proof that one kernel serves {%s} as well as others; give "
                                 "narrower bounds, or one size",
                                 opjit_ir_size_text(t->x->dims, values, t->x->dim_count).text);
    if (status == OPJIT_OK && t->proven_count < PROVEN)
        memcpy(t->proven[t->proven_count++], values, t->x->dim_count * sizeof *values);
    return status == OPJIT_OK ? OPJIT_OK : refused(t, values, status);
}

static opjit_status prove(trial *t, opjit_error *error)
{
    const finder *x = t->x;
    int64_t sizes[OPJIT_MAX_DIMS][CHECKED];
    uint32_t counts[OPJIT_MAX_DIMS], most = 0;

    for (uint32_t d = 0; d < x->dim_count; d++) {
        counts[d] = sizes_to_check(&x->dims[d], x->typical[d], sizes[d]);
        most = counts[d] > most ? counts[d] : most;
    }
    for (uint32_t turn = 0; turn < x->dim_count; turn++) /* all in step; then each against the others' order */
        for (uint32_t i = 0; i < most; i++) {
            int64_t values[OPJIT_MAX_DIMS] = { 0 };
            for (uint32_t d = 0; d < x->dim_count; d++)
                values[d] = sizes[d][(turn == 0 || turn == d ? i : counts[d] - 1 - i % counts[d]) % counts[d]];
            TRY(opjit_ir_trial_prove_at(t, values, error));
        }
    return OPJIT_OK;
}

/* The least size from which on the dimension, beside typical ones, makes the number a multiple of what divides it
 * (before = 0), or 1 less (1); below its range: there is none. */
static int64_t find_multiple_of(const finder *x, const ir_size_form *number, uint32_t d, int64_t before)
{
    int64_t values[OPJIT_MAX_DIMS] = { 0 }, value;

    memcpy(values, x->typical, x->dim_count * sizeof *values);
    for (int64_t n = x->dims[d].lo; n <= x->dims[d].hi && n <= x->dims[d].lo + number->rest; n++) {
        values[d] = n;
        if (opjit_ir_form_value(&number->form, &x->space, values, &value) && (value + before) % number->rest == 0)
            return n;
    }
    return x->dims[d].lo - 1;
}

/* Samples are no multiples of what blocks have, and small sizes not of all of them: so sizes are proven at which a
 * number is a multiple of what divides it, and those before. */
static opjit_status prove_multiples(trial *t, opjit_error *error)
{
    const finder *x = t->x;

    for (uint32_t d = 0; d < x->dim_count; d++) {
        int64_t values[OPJIT_MAX_DIMS] = { 0 }, proven[MULTIPLES];
        uint32_t count = 0;
        memcpy(values, x->typical, x->dim_count * sizeof *values);
        for (uint32_t i = 0; i < 2 * t->general->divided_count && count < MULTIPLES; i++) {
            const ir_size_form *number = &t->general->divided[i / 2];
            uint32_t k = 0;
            if (number->form.powers[0][d] == 0 && number->form.powers[1][d] == 0)
                continue;
            values[d] = find_multiple_of(x, number, d, i % 2);
            while (k < count && proven[k] != values[d])
                k++;
            if (k < count || values[d] < x->dims[d].lo)
                continue;
            TRY(opjit_ir_trial_prove_at(t, values, error));
            proven[count++] = values[d];
        }
    }
    return OPJIT_OK;
}

/* --- witnesses ---------------------------------------------------------------------------------------------------- */

static bool is_sample_size(const finder *x, uint32_t d, int64_t size)
{
    int64_t values[OPJIT_MAX_DIMS] = { 0 };

    memcpy(values, x->typical, x->dim_count * sizeof *values);
    values[d] = size;
    return opjit_ir_is_sample_size(x, values, d);
}

/* Both ends, the largest size that samples may have, what is beside the least size, the typical one, and sizes of
 * samples between, four times as large each time. */
static uint32_t witnesses(const finder *x, uint32_t d, int64_t out[static WITNESSES])
{
    const ir_dim *dim = &x->dims[d];
    uint32_t count = 0;

    out[count++] = dim->hi;
    for (int64_t n = dim->hi; n > dim->lo && count < 2; n--)
        if (is_sample_size(x, d, n))
            out[count++] = n;
    out[count++] = dim->lo;
    out[count++] = within(dim, dim->lo + 1);
    out[count++] = x->typical[d];
    for (int64_t n = 5; n < dim->hi && count < WITNESSES; n *= 4) {
        int64_t size = n;
        while (size < dim->hi && !is_sample_size(x, d, size))
            size++;
        if (size > dim->lo && size < dim->hi)
            out[count++] = size;
    }
    return count;
}

opjit_status opjit_ir_trial_refuse_other(trial *t, const int64_t *values, opjit_error *error)
{
    return refused(t, values,
                   opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                   "{!kernel}{!dims}sizes of {%s} have another kernel than those around %s; give "
                                   "narrower bounds, or one size",
                                   opjit_ir_size_text(t->x->dims, values, t->x->dim_count).text,
                                   opjit_ir_size_text(t->x->dims, t->x->typical, t->x->dim_count).text));
}

/* Whether the loops for these values are what the generalization is for them, number by number where they have the
 * samples' shape, or else when both are simplified.  UNSUPPORTED: they are one more sample, of which it is learned. */
opjit_status opjit_ir_trial_has_loops(trial *t, const int64_t *values, const ir_func *loops, bool *out,
                                      opjit_error *error)
{
    t->alike = opjit_ir_shape(loops) == t->shape;
    *out = t->alike && opjit_ir_general_has(t->general, values, t->samples->functions[0], loops);
    if (!*out)
        TRY(opjit_ir_general_is(t->general, values, loops, out, error));
    t->differs = t->alike && t->learns && !*out;
    return t->differs ? opjit_ir_trial_refuse_other(t, values, error) : OPJIT_OK;
}

opjit_status opjit_ir_trial_ask(trial *t, const int64_t *values, bool with_loops, opjit_error *error)
{
    const finder *x = t->x;
    ir_func value, loops;
    int64_t others[OPJIT_MAX_DIMS] = { 0 };
    ir_trust trust = IR_TRUST_SIZES;
    bool same = false;

    if (opjit_ir_exceeds_with_ones(t->samples, values, others)) { /* else what is too much work is refused */
        TRY(opjit_ir_trial_ask(t, others, with_loops, error));
        trust = IR_TRUST_ONES;
    }

    TRY(x->make(x->user, x->dims, values, &value, with_loops ? &loops : NULL, error));
    bool same_loops = true;
    opjit_status status = with_loops ? opjit_ir_trial_has_loops(t, values, &loops, &same_loops, error) : OPJIT_OK;
    if (!same_loops && !t->alike && trust == IR_TRUST_SIZES && !opjit_ir_are_sample_sizes(x, values))
        trust = IR_TRUST_DEFINED; /* a multiple of a block has loops of another kind, which may do the same */
    if (status == OPJIT_OK)
        status = decide(t, values, &value, same_loops ? NULL : &loops, t->most_work, trust, &same, error);
    opjit_ir_free(&value);
    if (with_loops)
        opjit_ir_free(&loops);
    if (status != OPJIT_OK || same)
        return status;
    return opjit_ir_trial_refuse_other(t, values, error);
}

/* All dimensions in step, and each alone beside the typical sizes of the others. */
static opjit_status ask_all(trial *t, opjit_error *error)
{
    const finder *x = t->x;
    int64_t sizes[OPJIT_MAX_DIMS][WITNESSES], values[OPJIT_MAX_DIMS] = { 0 };
    uint32_t counts[OPJIT_MAX_DIMS], most = 0;

    for (uint32_t d = 0; d < x->dim_count; d++) {
        counts[d] = witnesses(x, d, sizes[d]);
        most = counts[d] > most ? counts[d] : most;
    }
    for (uint32_t i = 0; i < most; i++) {
        for (uint32_t d = 0; d < x->dim_count; d++)
            values[d] = sizes[d][i % counts[d]];
        TRY(opjit_ir_trial_ask(t, values, true, error));
    }
    for (uint32_t d = 0; d < x->dim_count && x->dim_count > 1; d++) {
        memcpy(values, x->typical, x->dim_count * sizeof *values);
        for (uint32_t i = 0; i < counts[d]; i++) {
            values[d] = sizes[d][i];
            TRY(opjit_ir_trial_ask(t, values, true, error));
        }
    }
    return OPJIT_OK;
}

void opjit_ir_change_parity(const finder *x, int64_t *values, uint32_t d)
{
    if (x->lines->count != 0) {
        opjit_ir_lines_choose(x, d, 1 - values[d] % 2, 0, values);
        return;
    }
    const int64_t half = values[d] / 2, most = values[d] > x->dims[d].hi ? INT64_MAX : x->dims[d].hi / 2;
    values[d] = half;
    while (values[d] <= most && (!opjit_ir_is_prime(values[d]) || values[d] == 2))
        values[d]++;
    if (values[d] > most)
        for (values[d] = half; !opjit_ir_is_prime(values[d]) && values[d] > 1;)
            values[d]--;
    values[d] *= 2;
}

/* Interprets what the graph is for these values, unless its loops are known.  exact: with all of their numbers; and
 * what is more work than `most` to interpret, stages that differ included, may be right. */
static opjit_status ask_loops(trial *t, const int64_t *values, ir_trust trust, uint64_t most, opjit_error *error)
{
    ir_func value, loops;
    bool right;

    TRY(t->x->make(t->x->user, t->x->dims, values, &value, &loops, error));
    opjit_status status = opjit_ir_trial_has_loops(t, values, &loops, &right, error);
    if (status == OPJIT_OK && !right)
        status = decide(t, values, &value, &loops, most, trust, &right, error);
    opjit_ir_free(&value);
    opjit_ir_free(&loops);
    TRY(status);
    return right ? OPJIT_OK : opjit_ir_trial_refuse_other(t, values, error);
}

/* Samples are odd: of twice a size they never tell that a block of four leaves nothing.  So an even size has to have
 * the samples' loops; else small ones are interpreted. */
static opjit_status ask_even(trial *t, uint32_t d, opjit_error *error)
{
    const finder *x = t->x;
    int64_t values[OPJIT_MAX_DIMS] = { 0 };
    ir_func value, loops;
    bool same = false;

    memcpy(values, t->samples->values[0], sizeof values);
    const int64_t parity = 1 - values[d] % 2;
    opjit_ir_change_parity(x, values, d);
    opjit_status status = x->make(x->user, x->dims, values, &value, &loops, NULL);
    if (is_over(status))
        return status;
    if (status == OPJIT_OK) { /* else it is below the range, of sizes for which there is no graph */
        status = opjit_ir_trial_has_loops(t, values, &loops, &same, error);
        opjit_ir_free(&value);
        opjit_ir_free(&loops);
        TRY(status);
    }
    for (uint32_t i = 0; i < EVENS && !same; i++) {
        for (uint32_t k = 0; k < x->dim_count; k++)
            values[k] = x->dims[k].lo;
        values[d] = x->dims[d].lo + (x->dims[d].lo % 2 != parity) + 2 * i;
        if (values[d] > x->dims[d].hi)
            break;
        TRY(ask_loops(t, values, IR_TRUST_NONE, EVEN_WORK, error));
    }
    return OPJIT_OK;
}

/* The size of the dimension nearest to the typical one for which the line is a multiple of 256, or else of less. */
static bool find_multiple(const finder *x, uint32_t d, const ir_line *line, int64_t *values)
{
    for (int64_t by = 256; by >= 16; by /= 2)
        for (int64_t k = 0; k < by; k++)
            for (int64_t sign = -1; sign <= 1; sign += 2) {
                values[d] = x->typical[d] + sign * k;
                const int64_t size = opjit_ir_line_value(line, x->dim_count, values);
                if (values[d] >= x->dims[d].lo && values[d] <= x->dims[d].hi && size >= by && size % by == 0)
                    return true;
            }
    return false;
}

/* Samples don't tell past from past + 1 where one has a quotient by 256, say, as neither is a multiple.  Where one is,
 * the loops have to be just what the generalization says; else they are interpreted, if that is little work. */
static opjit_status ask_multiples(trial *t, opjit_error *error)
{
    const finder *x = t->x;

    for (uint32_t i = 0; i < x->lines->count; i++)
        for (uint32_t d = 0; d < x->dim_count; d++) {
            int64_t values[OPJIT_MAX_DIMS] = { 0 };
            memcpy(values, x->typical, x->dim_count * sizeof *values);
            if (x->lines->list[i].slopes[d] != 0 && find_multiple(x, d, &x->lines->list[i], values))
                TRY(ask_loops(t, values, IR_TRUST_SIZES, EVEN_WORK, error));
        }
    return OPJIT_OK;
}

/* Whether a number of the generalization has a quotient of what follows from the dimension. */
static bool is_divided(const trial *t, uint32_t d)
{
    for (uint32_t i = 0; i < t->general->divided_count; i++) {
        const ir_size_form *const number = &t->general->divided[i];
        if (number->form.powers[0][d] != 0 || number->form.powers[1][d] != 0)
            return true;
    }
    return false;
}

/* Samples are no multiples of a vector, so that a line of them that is padded to whole ones has the padding of others.
 * A small multiple has to have the loops that the generalization says; else they are interpreted. */
static opjit_status ask_whole(trial *t, uint32_t d, opjit_error *error)
{
    const finder *x = t->x;
    int64_t values[OPJIT_MAX_DIMS] = { 0 };

    for (uint32_t k = 0; k < x->dim_count; k++)
        values[k] = x->dims[k].lo;
    values[d] = (x->dims[d].lo / WHOLE + 1) * WHOLE;
    return values[d] <= x->dims[d].hi ? ask_loops(t, values, IR_TRUST_SIZES, MOST_WORK, error) : OPJIT_OK;
}

/* Samples of a narrow range lie beyond it and may be few, so that quotients by 7, rounded down, and by 8, rounded up,
 * are equal in all of them.  Each of its sizes has to have the loops that the generalization says, or is compared. */
static opjit_status ask_each(trial *t, uint32_t d, opjit_error *error)
{
    const finder *x = t->x;
    int64_t values[OPJIT_MAX_DIMS] = { 0 };

    memcpy(values, x->typical, x->dim_count * sizeof *values);
    if (x->dims[d].hi - x->dims[d].lo >= NARROW)
        return OPJIT_OK;
    for (values[d] = x->dims[d].lo; values[d] <= x->dims[d].hi; values[d]++)
        TRY(ask_loops(t, values, IR_TRUST_SIZES, EVEN_WORK, error));
    return OPJIT_OK;
}

opjit_status opjit_ir_trial_prove(trial *t, opjit_error *error)
{
    t->most_work = MOST_WORK;
    t->replay_left = REPLAY_MORE;
    t->is_proven = false;
    TRY(prove(t, error));
    TRY(prove_multiples(t, error));
    t->is_proven = true;
    TRY(ask_all(t, error));
    for (uint32_t d = 0; d < t->x->dim_count; d++)
        if (t->x->dims[d].lo < t->x->dims[d].hi)
            TRY(ask_even(t, d, error));
    for (uint32_t d = 0; d < t->x->dim_count; d++)
        if (is_divided(t, d)) {
            TRY(ask_whole(t, d, error));
            TRY(ask_each(t, d, error));
        }
    return ask_multiples(t, error);
}
