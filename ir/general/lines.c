/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - sizes of tensors that are linear in the dimensions (past + 1, rows + columns), and which values of the
 * dimensions make none of them a multiple of what loops are cut by.
 *
 * Where a size is a dimension or a multiple of it, primes do.  But of a prime past, past + 1 is even, and often a
 * multiple of a vector or a block; loops over it then have no remainder for some samples, and samples of many kinds
 * are left.  So values are taken by all sizes that follow, those that many tensors have first. */
#include "ir/general/finder.h"

#include <string.h>

enum {
    WINDOW = 24,      /* values that are looked at for a sample */
    MOST_FACTOR = 61, /* primes up to it are small */
    BLOCK = 8,        /* of lines of images */
    TAKEN = 16,       /* what it counts that another sample has the size */
    MISSED = 4        /* as so many small factors counts a size that shall be even, and is not */
};

/* --- finding ------------------------------------------------------------------------------------------------------ */

opjit_status opjit_ir_sizes_read(const finder *x, const int64_t *values, rt_bytes *out, opjit_error *error)
{
    ir_func value;

    TRY(x->make(x->user, x->dims, values, &value, NULL, error));
    opjit_rt_bytes_init(out, value.arena.allocator);
    for (uint32_t t = 1; t < value.tensor_count; t++)
        opjit_rt_bytes_append(out, value.tensors[t].sizes, value.tensors[t].rank * sizeof value.tensors[t].sizes[0]);
    opjit_ir_free(&value);
    return out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

int64_t opjit_ir_size_at(const rt_bytes *sizes, size_t k)
{
    uint64_t size;
    memcpy(&size, sizes->data + k * sizeof size, sizeof size);
    return (int64_t)size;
}

int64_t opjit_ir_line_value(const ir_line *line, uint32_t dims, const int64_t *values)
{
    int64_t sum = line->constant;
    for (uint32_t d = 0; d < dims; d++)
        sum += line->slopes[d] * values[d];
    return sum / line->by;
}

static void add_line(ir_lines *lines, const ir_line *line)
{
    uint32_t i = 0;

    while (i < lines->count && (lines->list[i].constant != line->constant || lines->list[i].by != line->by ||
                                memcmp(lines->list[i].slopes, line->slopes, sizeof line->slopes) != 0))
        i++;
    if (i == IR_LINES)
        return;
    if (i == lines->count)
        lines->list[lines->count++] = *line;
    lines->list[i].weight++;
}

/* Whether it is more than a multiple of one dimension. */
static bool is_shifted(const ir_line *line, uint32_t dims)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < dims; d++)
        count += line->slopes[d] != 0;
    return count > 1 || (count == 1 && line->constant != 0);
}

/* By the sizes for the typical values, for these with a step of each dimension, and for others, which are a test. */
static void fit_lines(const finder *x, const rt_bytes *sizes, const int64_t *steps, const int64_t *others,
                      ir_lines *out)
{
    const uint32_t dims = x->dim_count;
    bool shifted = false;

    for (size_t k = 0; k < sizes[0].size / sizeof(uint64_t); k++) {
        ir_line line = { .by = 1 };
        bool depends = false;
        for (uint32_t d = 0; d < dims; d++) {
            const int64_t rise = opjit_ir_size_at(&sizes[1 + d], k) - opjit_ir_size_at(&sizes[0], k);
            line.slopes[d] = steps[d] == 0 ? 0 : rise / steps[d];
            depends = depends || line.slopes[d] != 0;
        }
        const int64_t rest = opjit_ir_line_value(&line, dims, x->typical); /* the constant is still 0 */
        line.constant = opjit_ir_size_at(&sizes[0], k) - rest;
        if (depends && opjit_ir_line_value(&line, dims, others) == opjit_ir_size_at(&sizes[1 + dims], k))
            add_line(out, &line);
    }
    for (uint32_t i = 0; i < out->count; i++)
        shifted = shifted || is_shifted(&out->list[i], dims);
    out->count = shifted ? out->count : 0;
}

static opjit_status probe(const finder *x, rt_bytes *sizes, ir_lines *out, opjit_error *error)
{
    int64_t values[OPJIT_MAX_DIMS] = { 0 }, others[OPJIT_MAX_DIMS] = { 0 }, steps[OPJIT_MAX_DIMS] = { 0 };
    bool same = true;

    memcpy(values, x->typical, x->dim_count * sizeof *values);
    TRY(opjit_ir_sizes_read(x, values, &sizes[0], error));
    for (uint32_t d = 0; d < x->dim_count; d++) {
        const ir_dim *dim = &x->dims[d];
        steps[d] = dim->lo == dim->hi ? 0 : values[d] < dim->hi ? 1 : -1;
        others[d] = dim->hi - values[d] > values[d] - dim->lo ? dim->hi : dim->lo + (dim->hi - dim->lo) / 3;
        values[d] += steps[d];
        TRY(opjit_ir_sizes_read(x, values, &sizes[1 + d], error));
        values[d] -= steps[d];
    }
    TRY(opjit_ir_sizes_read(x, others, &sizes[1 + x->dim_count], error));
    for (uint32_t i = 1; i < x->dim_count + 2; i++)
        same = same && sizes[i].size == sizes[0].size;
    if (same)
        fit_lines(x, sizes, steps, others, out);
    return OPJIT_OK;
}

/* A dimension that has quotients, and these: samples shall be multiples of nothing in all of them. */
static void add_quotients(ir_lines *lines)
{
    const ir_space *const space = &lines->space;

    for (uint32_t k = 0; k < space->count; k++) {
        const opjit_quotient *const q = &space->quotients[k];
        ir_line line = { .by = 1 };
        line.slopes[q->dim] = 1;
        add_line(lines, &line);
        line.constant = q->plus;
        line.by = q->by;
        add_line(lines, &line);
        lines->window = q->by > lines->window ? q->by : lines->window;
    }
}

opjit_status opjit_ir_lines_find(const finder *x, bool quotients, ir_lines *out)
{
    rt_bytes sizes[OPJIT_MAX_DIMS + 2] = { { .allocator = NULL } };

    *out = (ir_lines){ .space = { .dims = x->dim_count } };
    opjit_status status = probe(x, sizes, out, NULL);
    for (uint32_t i = 0; i < x->dim_count + 2; i++)
        if (sizes[i].allocator != NULL)
            opjit_rt_bytes_free(&sizes[i]);
    if (!is_over(status) && quotients)
        status = opjit_ir_quotients_find(x, &out->space, NULL);
    if (!is_over(status))
        add_quotients(out);
    return is_over(status) ? status : OPJIT_OK; /* others are found again where samples are made */
}

/* --- values of samples -------------------------------------------------------------------------------------------- */

bool opjit_ir_is_prime(int64_t n)
{
    for (int64_t k = 2; k * k <= n; k++)
        if (n % k == 0)
            return false;
    return n > 1;
}

/* By how many small primes the size can be divided.  2 counts once: of past, where past + 1 is odd, samples shall have
 * all remainders by larger powers. */
static uint32_t factors_of(int64_t size)
{
    uint32_t count = 0;

    for (int64_t k = 2; k <= MOST_FACTOR && k < size; k++)
        count += size % k == 0 && opjit_ir_is_prime(k);
    return count;
}

uint64_t opjit_ir_lines_score(const ir_lines *lines, uint32_t dims, const int64_t *values)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < lines->count; i++)
        sum += (uint64_t)lines->list[i].weight * factors_of(opjit_ir_line_value(&lines->list[i], dims, values));
    return sum;
}

bool opjit_ir_are_sample_sizes(const finder *x, const int64_t *values)
{
    bool are = x->lines->count == 0 || opjit_ir_lines_score(x->lines, x->dim_count, values) <= x->most_score;
    for (uint32_t d = 0; d < x->dim_count && are && x->lines->count == 0; d++)
        are = opjit_ir_is_prime(values[d]) || values[d] == x->typical[d];
    return are;
}

bool opjit_ir_is_sample_size(const finder *x, const int64_t *values, uint32_t d)
{
    return x->lines->count == 0 ? opjit_ir_is_prime(values[d]) : opjit_ir_are_sample_sizes(x, values);
}

/* How bad the size is; mixed: a quotient is as good even as odd: if all were odd, one would follow from the other. */
static uint64_t badness(const ir_line *line, int64_t size, bool even, bool mixed)
{
    if (line->by > 1 && mixed)
        return factors_of(size) - (size % 2 == 0) + (size % BLOCK == 0 ? MISSED : 0);
    if (even)
        return size % 2 == 0 ? factors_of(size / 2) : MISSED;
    return factors_of(size) + (line->by > 1 && size % BLOCK == 0 ? MISSED : 0);
}

/* The score, where lines of `even` shall be twice what has few factors; 0: and no others even. */
static uint64_t score_with(const ir_lines *lines, uint32_t dims, const int64_t *values, uint32_t even)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < lines->count; i++) {
        const int64_t size = opjit_ir_line_value(&lines->list[i], dims, values);
        const bool own = (even >> i & 1) != 0;
        sum += (uint64_t)lines->list[i].weight * badness(&lines->list[i], size, own, even != 0);
    }
    return sum;
}

/* Whether another candidate has the size: of few sizes of a dimension nothing is told from constants. */
static bool is_taken(const finder *x, uint32_t d, const int64_t *values)
{
    for (uint32_t i = 0; i < x->candidate_count; i++)
        if (x->candidates[i].values != values && x->candidates[i].values[d] == values[d])
            return true;
    return false;
}

/* Of two that are as good the odd one, or the nearer one. */
void opjit_ir_lines_choose(const finder *x, uint32_t d, int64_t parity, uint32_t even, int64_t *values)
{
    const int64_t wanted = values[d], hi = x->dims[d].hi;
    int64_t best = wanted;
    uint64_t least = UINT64_MAX;

    for (int64_t k = 0; k < WINDOW + 2 * x->lines->window; k++) {
        const bool beyond = wanted + k > hi && wanted <= hi; /* then on the other side */
        values[d] = beyond ? hi - k : wanted + k;
        if (values[d] < 2 || (parity != IR_ANY_PARITY && values[d] % 2 != parity))
            continue;
        const uint64_t score = 2 * score_with(x->lines, x->dim_count, values, even) + (values[d] % 2 == 0) +
                               (x->space.count != 0 && is_taken(x, d, values) ? TAKEN : 0);
        best = score < least ? values[d] : best;
        least = score < least ? score : least;
    }
    values[d] = best;
}
