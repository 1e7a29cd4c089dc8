/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - finds the samples of a generalization, and has it proven.
 *
 * Passes cut loops by what sizes are: a size that is a multiple of a vector has no remainder, one below a threshold has
 * another schedule.  So samples are primes around the typical sizes, and those that agree in everything but numbers are
 * a group.  The generalization of a group may still be wrong for other sizes, where a pass used that a sample is large
 * enough, or what it leaves behind a multiple: the verifier then finds no proof for an instance there, and the next
 * group is tried. */
#include "ir/general/witness.h"

#include <string.h>

enum {
    CANDIDATES = 14,
    LEAST_SAMPLES = 5, /* three determine a number, the others test it */
    GROUPS = 4,        /* that are tried */
    SMALL = 18,        /* sizes of which each is proven, from the least one on */
    CHECKED = 64,
    WITNESSES = 24 /* of a dimension */
};

typedef struct candidate {
    ir_func f; /* a zeroed one: the graph can't have these sizes */
    ir_definition definition;
    int64_t values[OPJIT_MAX_DIMS];
    uint64_t shape;
    bool made;
} candidate;

typedef struct finder {
    const ir_dim *dims;
    const int64_t *typical;
    uint32_t dim_count;
    ir_sample_fn make;
    void *user;
    candidate candidates[CANDIDATES];
    uint64_t groups[CANDIDATES]; /* shapes, */
    uint32_t sizes[CANDIDATES];  /* and how many candidates have them */
    uint32_t group_count;
} finder;

/* --- candidates --------------------------------------------------------------------------------------------------- */

static bool is_prime(int64_t n)
{
    for (int64_t k = 2; k * k <= n; k++)
        if (n % k == 0)
            return false;
    return n > 1;
}

/* The size that candidate `index` has for a dimension: a prime near a multiple of the typical size, if possible within
 * the bounds.  Dimensions of one kernel grow by different factors, so that their products are told apart. */
static int64_t size_of(const ir_dim *dim, int64_t typical, uint32_t index, uint32_t which)
{
    static const uint16_t percent[CANDIDATES] = { 100, 147, 193, 263, 71, 337, 121, 431, 229, 53, 167, 557, 83, 305 };
    int64_t size = typical / 100 * percent[(index * (1 + 2 * which) + which) % CANDIDATES] +
                   typical % 100 * percent[(index * (1 + 2 * which) + which) % CANDIDATES] / 100;

    if (size > dim->hi && dim->hi - dim->lo >= 8 * CANDIDATES) /* else the range has too few */
        size = dim->hi - dim->hi / 3 * (int64_t)index / CANDIDATES;
    size = size < 7 + 2 * (int64_t)index ? 7 + 2 * (int64_t)index : size;
    while (!is_prime(size) && size < INT32_MAX)
        size++;
    return size;
}

/* A hash of everything but numbers. */
static uint64_t shape_of(const ir_func *f)
{
    uint64_t hash = opjit_ir_hash(f->node_count, f->tensor_count);

    for (ir_ref r = 1; r < f->node_count; r++) {
        const ir_node *n = ir_at(f, r);
        hash = opjit_ir_hash(hash, (uint64_t)n->op << 40 | (uint64_t)n->type << 32 | n->ref);
        hash = opjit_ir_hash(hash, (uint64_t)n->count << 32 | n->flags);
        for (uint32_t i = 0; i < n->count; i++)
            hash = opjit_ir_hash(hash, ir_operand(f, r, i));
    }
    return hash;
}

static opjit_status make_candidate(finder *x, candidate *c, opjit_error *error)
{
    ir_func value;

    TRY(x->make(x->user, c->values, &value, &c->f, error));
    c->made = true;
    const opjit_status status = opjit_ir_define(&value, &c->definition, error);
    opjit_ir_free(&value);
    c->shape = opjit_ir_hash(shape_of(&c->f), c->definition.shape);
    for (size_t i = 0; i < c->definition.lengths.size; i++)
        c->shape = opjit_ir_hash(c->shape, c->definition.lengths.data[i]);
    return status;
}

/* Fills in the candidates.  Where none can be made, the last one's failure is the caller's. */
static opjit_status make_candidates(finder *x, opjit_error *error)
{
    opjit_status status = OPJIT_OK;
    bool made = false;

    for (uint32_t i = 0; i < CANDIDATES; i++) {
        candidate *c = &x->candidates[i];
        for (uint32_t d = 0; d < x->dim_count; d++)
            c->values[d] = size_of(&x->dims[d], x->typical[d], i, d);
        status = make_candidate(x, c, error);
        if (status == OPJIT_OUT_OF_MEMORY || status == OPJIT_CANCELLED)
            return status;
        made = made || c->made;
    }
    if (!made)
        return status;
    opjit_rt_error_clear(error);
    return OPJIT_OK;
}

static void find_groups(finder *x)
{
    for (uint32_t i = 0; i < CANDIDATES; i++) {
        uint32_t g = 0;
        if (!x->candidates[i].made)
            continue;
        while (g < x->group_count && x->groups[g] != x->candidates[i].shape)
            g++;
        x->groups[g] = x->candidates[i].shape;
        x->sizes[g]++;
        x->group_count += g == x->group_count;
    }
}

/* The largest group that was not tried yet, whose size becomes 0; UINT32_MAX: none is large enough. */
static uint32_t next_group(finder *x)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t g = 0; g < x->group_count; g++)
        if (x->sizes[g] >= LEAST_SAMPLES && (best == UINT32_MAX || x->sizes[g] > x->sizes[best]))
            best = g;
    if (best != UINT32_MAX)
        x->sizes[best] = 0;
    return best;
}

/* --- proofs ------------------------------------------------------------------------------------------------------- */

static int64_t within(const ir_dim *dim, int64_t size)
{
    return size < dim->lo ? dim->lo : size > dim->hi ? dim->hi : size;
}

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

static opjit_status prove_at(const ir_general *g, const int64_t *values, opjit_error *error)
{
    ir_func instance;
    uint32_t unproven = 0;

    TRY(opjit_ir_general_instance(g, values, &instance, error));
    opjit_status status = opjit_ir_count_unproven(&instance, &unproven, error);
    opjit_ir_free(&instance);
    if (status == OPJIT_OK && unproven != 0)
        status = opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                 "{!kernel}{!dims}no proof that one kernel serves sizes of %lld as well as others",
                                 (long long)values[0]);
    return status;
}

static opjit_status prove(const finder *x, const ir_general *g, opjit_error *error)
{
    int64_t sizes[OPJIT_MAX_DIMS][CHECKED], last[OPJIT_MAX_DIMS] = { 0 };
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
            if (memcmp(values, last, sizeof values) != 0)
                TRY(prove_at(g, values, error));
            memcpy(last, values, sizeof last);
        }
    return OPJIT_OK;
}

/* --- witnesses ---------------------------------------------------------------------------------------------------- */

/* Both ends, the largest prime, what is beside the least size, the typical one, and primes between, four times as large
 * each time. */
static uint32_t witnesses(const ir_dim *dim, int64_t typical, int64_t out[static WITNESSES])
{
    uint32_t count = 0;

    out[count++] = dim->hi;
    for (int64_t n = dim->hi; n > dim->lo && count < 2; n--)
        if (is_prime(n))
            out[count++] = n;
    out[count++] = dim->lo;
    out[count++] = within(dim, dim->lo + 1);
    out[count++] = typical;
    for (int64_t n = 5; n < dim->hi && count < WITNESSES; n *= 4) {
        int64_t prime = n;
        while (!is_prime(prime))
            prime++;
        if (prime > dim->lo && prime < dim->hi)
            out[count++] = prime;
    }
    return count;
}

static opjit_status ask(const finder *x, const ir_general *g, const ir_samples *samples,
                        const ir_definition *const *definitions, const int64_t *values, opjit_error *error)
{
    ir_func value, loops;
    bool same = false, primes = true;

    for (uint32_t d = 0; d < x->dim_count; d++)
        primes = primes && (is_prime(values[d]) || values[d] == x->typical[d]);
    TRY(x->make(x->user, values, &value, primes ? &loops : NULL, error));
    const bool same_loops = !primes || shape_of(&loops) == shape_of(samples->functions[0]);
    const opjit_status status = opjit_ir_witness(g, samples, definitions, values, &value, same_loops, &same, error);
    opjit_ir_free(&value);
    if (primes)
        opjit_ir_free(&loops);
    if (status == OPJIT_OK && !same)
        return opjit_rt_refuse(
            error, OPJIT_UNSUPPORTED,
            "{!kernel}{!dims}sizes of %lld have another kernel than those around %lld; give narrower "
            "bounds",
            (long long)values[0], (long long)x->typical[0]);
    return status;
}

/* All dimensions in step, and each alone beside the typical sizes of the others. */
static opjit_status ask_all(const finder *x, const ir_general *g, const ir_samples *samples,
                            const ir_definition *const *definitions, opjit_error *error)
{
    int64_t sizes[OPJIT_MAX_DIMS][WITNESSES], values[OPJIT_MAX_DIMS] = { 0 };
    uint32_t counts[OPJIT_MAX_DIMS], most = 0;

    for (uint32_t d = 0; d < x->dim_count; d++) {
        counts[d] = witnesses(&x->dims[d], x->typical[d], sizes[d]);
        most = counts[d] > most ? counts[d] : most;
    }
    for (uint32_t i = 0; i < most; i++) {
        for (uint32_t d = 0; d < x->dim_count; d++)
            values[d] = sizes[d][i % counts[d]];
        TRY(ask(x, g, samples, definitions, values, error));
    }
    for (uint32_t d = 0; d < x->dim_count && x->dim_count > 1; d++) {
        memcpy(values, x->typical, x->dim_count * sizeof *values);
        for (uint32_t i = 0; i < counts[d]; i++) {
            values[d] = sizes[d][i];
            TRY(ask(x, g, samples, definitions, values, error));
        }
    }
    return OPJIT_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static opjit_status try_group(const finder *x, uint32_t group, ir_general *out, opjit_error *error)
{
    ir_samples samples = { .dims = x->dims, .dim_count = x->dim_count };
    const ir_definition *definitions[IR_SAMPLES];

    for (uint32_t i = 0; i < CANDIDATES && samples.count < IR_SAMPLES; i++) {
        const candidate *c = &x->candidates[i];
        if (!c->made || c->shape != x->groups[group])
            continue;
        samples.functions[samples.count] = &c->f;
        definitions[samples.count] = &c->definition;
        memcpy(samples.values[samples.count++], c->values, sizeof c->values);
    }
    TRY(opjit_ir_generalize(&samples, out, error));
    opjit_status status = prove(x, out, error);
    if (status == OPJIT_OK)
        status = ask_all(x, out, &samples, definitions, error);
    if (status != OPJIT_OK)
        opjit_ir_general_free(out);
    return status;
}

static opjit_status find(finder *x, ir_general *out, opjit_error *error)
{
    opjit_status status = OPJIT_OK;
    bool tried = false;

    TRY(make_candidates(x, error));
    find_groups(x);
    for (uint32_t i = 0; i < GROUPS; i++) {
        const uint32_t group = next_group(x);
        if (group == UINT32_MAX)
            break;
        opjit_error *const own = tried ? NULL : error; /* the first group's message */
        const opjit_status found = try_group(x, group, out, own);
        if (found == OPJIT_OK || found == OPJIT_OUT_OF_MEMORY) {
            opjit_rt_error_clear(error);
            return found == OPJIT_OK ? OPJIT_OK : opjit_rt_no_memory(error);
        }
        if (found == OPJIT_CANCELLED)
            return found;
        status = tried ? status : found;
        tried = true;
    }
    return tried ? status
                 : opjit_rt_refuse(
                       error, OPJIT_UNSUPPORTED,
                       "{!kernel}{!dims}sizes around %s = {%lld} have kernels of too many kinds; give narrower bounds",
                       x->dims[0].name, (long long)x->typical[0]);
}

opjit_status opjit_ir_general_find(const ir_dim *dims, const int64_t *typical, uint32_t dim_count, ir_sample_fn make,
                                   void *user, ir_general *out, opjit_error *error)
{
    finder x = { .dims = dims, .typical = typical, .dim_count = dim_count, .make = make, .user = user };
    const opjit_status status = find(&x, out, error);

    for (uint32_t i = 0; i < CANDIDATES; i++) {
        if (!x.candidates[i].made)
            continue;
        opjit_ir_free(&x.candidates[i].f);
        opjit_ir_definition_free(&x.candidates[i].definition);
    }
    return status;
}
