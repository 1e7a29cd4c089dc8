/* SPDX-License-Identifier: Apache-2.0 */
/* form.c - numbers that follow from the sizes of dynamic dimensions: their range when an image is checked, their value
 * at each call. */
#include "runtime/image/image.h"

enum { MOST_POWER = 4 };

/* The product of what the powers are of, times `by`. */
static int64_t product(const rt_space *space, const uint8_t *powers, const uint64_t *dims, int64_t by)
{
    for (uint32_t k = 0; k < space->dims; k++)
        for (uint32_t power = 0; power < powers[k]; power++)
            by *= (int64_t)dims[k];
    for (uint32_t k = 0; k < space->count; k++) {
        const opjit_quotient *const q = &space->quotients[k];
        for (uint32_t power = 0; power < powers[space->dims + k]; power++)
            by *= rt_quotient(q, (int64_t)dims[q->dim]);
    }
    return by;
}

uint64_t opjit_rt_form_value(const rt_space *space, const opjit_size_form *form, const uint64_t *dims)
{
    int64_t value = form->constant;

    for (uint32_t i = 0; i < 2; i++)
        if (form->factors[i] != 0)
            value += product(space, form->powers[i], dims, form->factors[i]);
    value = form->divisor == 1 ? value : value / form->divisor; /* not negative, so that is the floor */
    value *= form->times;
    return (uint64_t)(form->factors[1] == 0 ? product(space, form->powers[1], dims, value) : value);
}

bool opjit_rt_quotient_ranges(const rt_space *space, opjit_param_info dims[OPJIT_MAX_POWERS])
{
    for (uint32_t k = 0; k < space->count; k++) {
        const opjit_quotient *const q = &space->quotients[k];
        int64_t lo, hi;
        if (q->by < 1 || __builtin_add_overflow(dims[q->dim].lo, q->plus, &lo) || lo < 0 ||
            __builtin_add_overflow(dims[q->dim].hi, q->plus, &hi))
            return false;
        dims[space->dims + k] = (opjit_param_info){ .lo = lo / q->by, .hi = hi / q->by };
    }
    return true;
}

/* A term with all sizes at one end of their intervals; each step towards it is smaller than it, so that none of them
 * overflows unless it does. */
static bool term_at(const opjit_size_form *form, uint32_t i, const opjit_param_info *dims, uint32_t count, bool at_hi,
                    int64_t *out)
{
    *out = form->factors[i];
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t power = 0; power < form->powers[i][k]; power++)
            if (!checked_muli(*out, at_hi ? dims[k].hi : dims[k].lo, out))
                return false;
    return true;
}

static bool powers_sane(const opjit_size_form *form, uint32_t i, uint32_t count)
{
    for (uint32_t k = 0; k < OPJIT_MAX_POWERS; k++)
        if (form->powers[i][k] > (k < count && (form->factors[i] != 0 || i == 1) ? MOST_POWER : 0))
            return false;
    return true;
}

/* Does a difference of products, as m n - n or n n - 2 n, rise with every size?  The product that is taken away divides
 * the other one.  With a size, of powers p and q in them, it rises where p times the product that is added is at least
 * q times the other one: everywhere if that holds of the least sizes.  Least and largest value are then those of the
 * least and largest sizes. */
static bool rises(const opjit_size_form *form, const opjit_param_info *dims, uint32_t count)
{
    const uint32_t up = form->factors[0] > 0 ? 0 : 1, down = 1 - up;
    int64_t quotient = form->factors[up], risen, fallen;

    if (form->factors[up] <= 0 || form->factors[down] >= 0)
        return false;
    for (uint32_t k = 0; k < count; k++) {
        if (form->powers[up][k] < form->powers[down][k])
            return false;
        for (uint32_t power = form->powers[down][k]; power < form->powers[up][k]; power++)
            if (!checked_muli(quotient, dims[k].lo, &quotient))
                return false;
    }
    for (uint32_t k = 0; k < count; k++)
        if (!checked_muli(quotient, form->powers[up][k], &risen) ||
            !checked_muli(form->factors[down], form->powers[down][k], &fallen) || risen + fallen < 0)
            return false;
    return true;
}

/* A dimension less a quotient of it, as n - n / 3, that both terms have times the same: where no more is taken away of
 * the quotient than there is of the dimension, a step of that never takes away more than it adds.  It rises with all
 * sizes if it is nowhere below 0. */
static bool rises_over_quotient(const opjit_size_form *form, const rt_space *space, const opjit_param_info *dims)
{
    const uint32_t up = form->factors[0] > 0 ? 0 : 1, down = 1 - up;
    const uint8_t *const more = form->powers[up], *const less = form->powers[down];
    int64_t added, taken;

    if (form->factors[up] <= 0 || form->factors[down] >= 0 || form->factors[up] + form->factors[down] < 0)
        return false;
    for (uint32_t q = 0; q < space->count; q++) {
        const uint32_t own = space->dims + q, dim = space->quotients[q].dim;
        bool same = more[dim] == less[dim] + 1 && less[own] == more[own] + 1;
        for (uint32_t k = 0; k < space->dims + space->count && same; k++)
            same = k == own || k == dim || more[k] == less[k];
        if (same)
            return checked_muli(form->factors[up], dims[dim].lo, &added) &&
                   checked_muli(form->factors[down], dims[own].lo, &taken) && added + taken >= 0;
    }
    return false;
}

bool opjit_rt_form_range(const opjit_size_form *form, const rt_space *space, const opjit_param_info *dims,
                         uint64_t *most)
{
    const uint32_t count = space->dims + space->count;
    const bool all_rise = rises(form, dims, count) || rises_over_quotient(form, space, dims);
    int64_t least = form->constant, largest = form->constant;

    for (uint32_t i = 0; i < 2; i++) { /* of factor 0 both are 0 */
        const bool negative = form->factors[i] < 0 && !all_rise;
        int64_t low, high;
        if (!powers_sane(form, i, count) || !term_at(form, i, dims, count, negative, &low) ||
            !term_at(form, i, dims, count, !negative, &high) || !checked_addi(least, low, &least) ||
            !checked_addi(largest, high, &largest))
            return false;
    }
    if (form->divisor < 1 || form->times < 1 || least < 0 ||
        !checked_muli(largest / form->divisor, form->times, &largest))
        return false;
    for (uint32_t k = 0; k < count && form->factors[1] == 0; k++)
        for (uint32_t power = 0; power < form->powers[1][k]; power++)
            if (!checked_muli(largest, dims[k].hi, &largest))
                return false;
    *most = (uint64_t)largest;
    return true;
}
