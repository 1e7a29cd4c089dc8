/* SPDX-License-Identifier: Apache-2.0 */
/* ref_range.c - arithmetic on ranges of floats.  A float operation done in double and then rounded to float is rounded
 * correctly, because doubles have more than twice the digits. */
#include "tests/reference/range.h"

#include <math.h>

double ref_round(ref_floats f, double value)
{
    return f.is_double ? value : (double)(float)value;
}

ref_range ref_exactly(double value)
{
    return (ref_range){ value, value };
}

/* The range from the smallest to the largest of four results; equal ones keep the first one's sign of zero.  If only
 * some are NaN, as for inf times something that may be 0, so may the result be. */
static ref_range around(ref_floats f, const double results[4])
{
    ref_range range = ref_exactly(ref_round(f, results[0]));
    bool nan = false;
    for (int i = 0; i < 4; i++) {
        const double value = ref_round(f, results[i]);
        nan = nan || isnan(value);
        if (value < range.lo || isnan(range.lo))
            range.lo = value;
        if (value > range.hi || isnan(range.hi))
            range.hi = value;
    }
    return nan ? (ref_range){ NAN, range.hi } : range;
}

ref_range ref_add(ref_floats f, ref_range a, ref_range b)
{
    const double results[4] = { a.lo + b.lo, a.lo + b.hi, a.hi + b.lo, a.hi + b.hi };
    return around(f, results);
}

ref_range ref_sub(ref_floats f, ref_range a, ref_range b)
{
    const double results[4] = { a.lo - b.lo, a.lo - b.hi, a.hi - b.lo, a.hi - b.hi };
    return around(f, results);
}

ref_range ref_mul(ref_floats f, ref_range a, ref_range b)
{
    const double results[4] = { a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi };
    return around(f, results);
}

ref_range ref_div(ref_floats f, ref_range a, ref_range b)
{
    const double results[4] = { a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi };
    return around(f, results);
}

static double greater(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static double less(double a, double b)
{
    return a < b || isnan(a) ? a : b;
}

ref_range ref_max(ref_range a, ref_range b)
{
    return (ref_range){ greater(a.lo, b.lo), greater(a.hi, b.hi) };
}

ref_range ref_min(ref_range a, ref_range b)
{
    return (ref_range){ less(a.lo, b.lo), less(a.hi, b.hi) };
}

/* The neighbour of value in the direction of to, but on the same side of zero. */
static double next(ref_floats f, double value, double to)
{
    if (value == 0 && signbit(value) != signbit(to))
        return value;
    return f.is_double ? nextafter(value, to) : (double)nextafterf((float)value, (float)to);
}

/* The bounds of ir/README.md, or more: one unit, three in FLOAT64. */
static ref_range with_margin(ref_floats f, long double least, long double greatest)
{
    const double lo = f.is_double ? (double)least : (double)(float)least;
    const double hi = f.is_double ? (double)greatest : (double)(float)greatest;
    if (isnan(lo) || isnan(hi))
        return (ref_range){ NAN, hi };
    ref_range range = { lo, hi };
    for (int i = 0; i < (f.is_double ? 3 : 1); i++)
        range = (ref_range){ next(f, range.lo, -INFINITY), next(f, range.hi, INFINITY) };
    return range;
}

/* Results for 0 and infinities that are whole have no margin: e^0 is 1. */
static bool is_special(double x, long double value)
{
    return (x == 0 || isinf(x)) && (isinf(value) || truncl(value) == value);
}

ref_range ref_function(ref_floats f, long double (*function)(long double), ref_range x)
{
    const long double least = function(x.lo), greatest = function(x.hi);
    if (x.lo == x.hi && is_special(x.lo, least))
        return ref_exactly((double)least);
    return with_margin(f, least, greatest);
}

ref_range ref_function2(ref_floats f, long double (*function)(long double, long double), double x, double y)
{
    const long double value = function(x, y);
    return with_margin(f, value, value);
}
