/* SPDX-License-Identifier: Apache-2.0 */
/* form.c - finds how a number follows from dimensions: a constant and up to two products of dimensions, by the values
 * that it has in some samples.  All samples have to agree; those in which a product differs determine its factor, the
 * others are a test. */
#include "ir/general/general.h"

#include <string.h>

enum { MONOMIALS = 320 }; /* of two images that are halved six times each, and a batch; all of eight dimensions */

__extension__ typedef __int128 wide;

/* --- products of dimensions ------------------------------------------------------------------------------------- */

typedef struct monomial {
    uint8_t powers[OPJIT_MAX_POWERS];
    int64_t values[IR_SAMPLES]; /* by sample */
} monomial;

int64_t opjit_ir_space_value(const ir_space *space, uint32_t k, const int64_t *values)
{
    if (k < space->dims)
        return values[k];
    const opjit_quotient *const q = &space->quotients[k - space->dims];
    const int64_t sum = values[q->dim] + q->plus;
    return sum / q->by - (sum % q->by < 0);
}

static bool product_of(const uint8_t *powers, const ir_space *space, const int64_t *values, int64_t *out)
{
    *out = 1;
    for (uint32_t d = 0; d < space->dims + space->count; d++)
        for (uint32_t k = 0; k < powers[d]; k++)
            if (__builtin_mul_overflow(*out, opjit_ir_space_value(space, d, values), out))
                return false;
    return true;
}

static uint32_t dimension_of(const ir_space *space, uint32_t k)
{
    return k < space->dims ? k : space->quotients[k - space->dims].dim;
}

/* Whether a product has both.  Of many the products are those of sizes that tensors have together: of each dimension
 * itself or one of its quotients. */
static bool go_together(const ir_space *space, uint32_t a, uint32_t b)
{
    return a == b || space->dims + space->count <= OPJIT_MAX_DIMS || dimension_of(space, a) != dimension_of(space, b);
}

static void add_monomial(const ir_samples *s, monomial *list, uint32_t *count, const uint32_t *dims, uint32_t degree)
{
    monomial *m = &list[*count];

    if (*count == MONOMIALS)
        return;
    memset(m->powers, 0, OPJIT_MAX_POWERS);
    for (uint32_t i = 0; i < degree; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (!go_together(&s->space, dims[k], dims[i]))
                return;
        m->powers[dims[i]]++;
    }
    for (uint32_t i = 0; i < s->count; i++)
        if (!product_of(m->powers, &s->space, s->values[i], &m->values[i]))
            return;
    ++*count;
}

bool opjit_ir_form_scale(const ir_samples *s, uint32_t which, uint8_t powers[OPJIT_MAX_POWERS],
                         int64_t values[IR_SAMPLES])
{
    const uint32_t dims = s->space.dims + s->space.count;
    uint32_t count = 0;

    for (uint32_t a = 0; a < dims; a++)
        for (uint32_t b = a; b <= dims; b++) { /* a product, or a dimension alone */
            if (count++ != which)
                continue;
            memset(powers, 0, OPJIT_MAX_POWERS);
            powers[a]++;
            if (b < dims)
                powers[b]++;
            for (uint32_t i = 0; i < s->count; i++)
                if (!product_of(powers, &s->space, s->values[i], &values[i]))
                    values[i] = 0;
            return true;
        }
    return false;
}

/* Products of up to three dimensions, the simple ones first. */
static uint32_t list_monomials(const ir_samples *s, monomial list[static MONOMIALS])
{
    const uint32_t dims = s->space.dims + s->space.count;
    uint32_t count = 0;

    for (uint32_t a = 0; a < dims; a++)
        add_monomial(s, list, &count, (const uint32_t[]){ a }, 1);
    for (uint32_t a = 0; a < dims; a++)
        for (uint32_t b = a; b < dims; b++)
            add_monomial(s, list, &count, (const uint32_t[]){ a, b }, 2);
    for (uint32_t a = 0; a < dims; a++)
        for (uint32_t b = a; b < dims; b++)
            for (uint32_t c = b; c < dims; c++)
                add_monomial(s, list, &count, (const uint32_t[]){ a, b, c }, 3);
    return count;
}

/* --- fitting ------------------------------------------------------------------------------------------------------ */

static bool agrees(const ir_samples *s, const int64_t *series, const opjit_size_form *form)
{
    for (uint32_t i = 0; i < s->count; i++) {
        int64_t value;
        if (!opjit_ir_form_value(form, &s->space, s->values[i], &value) || value != series[i])
            return false;
    }
    return true;
}

static bool narrow(wide x, int64_t *out)
{
    *out = (int64_t)x;
    return *out == x;
}

/* The first sample in which the values are others than in sample 0; 0: there is none. */
static uint32_t other_than_first(const ir_samples *s, const int64_t *values)
{
    for (uint32_t i = 1; i < s->count; i++)
        if (values[i] != values[0])
            return i;
    return 0;
}

/* series = constant + factor * m, by two samples in which m differs. */
static bool fit_one(const ir_samples *s, const int64_t *series, const monomial *m, opjit_size_form *out)
{
    const uint32_t i = other_than_first(s, m->values);
    const wide by = (wide)m->values[i] - m->values[0], rise = (wide)series[i] - series[0];

    if (by == 0 || rise % by != 0 || !narrow(rise / by, &out->factors[0]) ||
        !narrow(series[0] - rise / by * m->values[0], &out->constant))
        return false;
    memcpy(out->powers[0], m->powers, OPJIT_MAX_POWERS);
    return agrees(s, series, out);
}

/* series = constant + factors[0] * a + factors[1] * b, by samples 0, i and k. */
static bool fit_two_by(const ir_samples *s, const int64_t *series, const monomial *a, const monomial *b, uint32_t i,
                       uint32_t k, opjit_size_form *out, bool *out_tells)
{
    const wide a1 = (wide)a->values[i] - a->values[0], a2 = (wide)a->values[k] - a->values[0],
               b1 = (wide)b->values[i] - b->values[0], b2 = (wide)b->values[k] - b->values[0],
               y1 = (wide)series[i] - series[0], y2 = (wide)series[k] - series[0], most = (wide)1 << 62;
    *out_tells = true;
    if (a1 > most || a2 > most || b1 > most || b2 > most || a1 < -most || a2 < -most || b1 < -most || b2 < -most)
        return false;
    const wide det = a1 * b2 - a2 * b1;
    *out_tells = det != 0;
    if (det == 0 || (y1 * b2 - y2 * b1) % det != 0 || (a1 * y2 - a2 * y1) % det != 0)
        return false;
    const wide x = (y1 * b2 - y2 * b1) / det, y = (a1 * y2 - a2 * y1) / det;
    if (x == 0 || y == 0 || !narrow(x, &out->factors[0]) || !narrow(y, &out->factors[1]) ||
        !narrow(series[0] - x * a->values[0] - y * b->values[0], &out->constant))
        return false;
    memcpy(out->powers[0], a->powers, OPJIT_MAX_POWERS);
    memcpy(out->powers[1], b->powers, OPJIT_MAX_POWERS);
    return agrees(s, series, out);
}

/* By the first three samples that tell both products from each other. */
static bool fit_two(const ir_samples *s, const int64_t *series, const monomial *a, const monomial *b,
                    opjit_size_form *out)
{
    const uint32_t i = other_than_first(s, a->values);
    bool tells = i == 0;
    for (uint32_t k = 1; k < s->count && !tells; k++)
        if (k != i && fit_two_by(s, series, a, b, i, k, out, &tells))
            return true;
    return false;
}

bool opjit_ir_form_value(const opjit_size_form *form, const ir_space *space, const int64_t *values, int64_t *out)
{
    int64_t sum = form->constant, product, term;

    for (uint32_t i = 0; i < 2; i++)
        if (form->factors[i] != 0 &&
            (!product_of(form->powers[i], space, values, &product) ||
             __builtin_mul_overflow(form->factors[i], product, &term) || __builtin_add_overflow(sum, term, &sum)))
            return false;
    if (!checked_muli(sum / form->divisor - (sum % form->divisor < 0), form->times, out))
        return false;
    return form->factors[1] != 0 ||
           (product_of(form->powers[1], space, values, &product) && checked_muli(*out, product, out));
}

bool opjit_ir_number_value(const ir_size_form *number, const ir_space *space, const int64_t *values, int64_t *out)
{
    if (!opjit_ir_form_value(&number->form, space, values, out))
        return false;
    if (number->rest != 0)
        *out = (*out % number->rest + number->rest) % number->rest;
    return checked_addi(*out, number->plus, out);
}

bool opjit_ir_form_fit(const ir_samples *samples, const int64_t *series, opjit_size_form *out)
{
    monomial list[MONOMIALS];
    bool changes = false;

    *out = (opjit_size_form){ .constant = series[0], .divisor = 1, .times = 1 };
    for (uint32_t i = 1; i < samples->count; i++)
        changes = changes || series[i] != series[0];
    if (!changes)
        return true;
    const uint32_t count = list_monomials(samples, list);
    for (uint32_t i = 0; i < count; i++) {
        *out = (opjit_size_form){ .divisor = 1, .times = 1 };
        if (fit_one(samples, series, &list[i], out))
            return true;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = i + 1; k < count; k++) {
            *out = (opjit_size_form){ .divisor = 1, .times = 1 };
            if (fit_two(samples, series, &list[i], &list[k], out))
                return true;
        }
    return false;
}
