/* SPDX-License-Identifier: Apache-2.0 */
/* ref_sum.c - floats as numbers, and their sums in the order that opjit documents: blocks of 4096 terms one after the
 * other; in a block term k in lane k modulo the lanes, which fold by halves. */
#include <math.h>
#include <string.h>

#include "tests/reference/reference.h"

double ref_real(DML_TENSOR_DATA_TYPE dtype, uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    double wide;
    float single;
    memcpy(&wide, &bits, 8);
    memcpy(&single, &word, 4);
    return dtype == DML_TENSOR_DATA_TYPE_FLOAT16   ? (double)ref_float_of_half((uint16_t)bits)
           : dtype == DML_TENSOR_DATA_TYPE_FLOAT32 ? (double)single
                                                   : wide;
}

uint64_t ref_real_bits(DML_TENSOR_DATA_TYPE dtype, double x)
{
    const float single = (float)x;
    uint32_t word;
    uint64_t bits;
    memcpy(&word, &single, 4);
    memcpy(&bits, &x, 8);
    return dtype == DML_TENSOR_DATA_TYPE_FLOAT16   ? ref_half_of_float(single)
           : dtype == DML_TENSOR_DATA_TYPE_FLOAT32 ? word
                                                   : bits;
}

/* Double has more than twice the digits of float, so rounding twice is rounding once. */
double ref_rounded(DML_TENSOR_DATA_TYPE dtype, double x)
{
    return dtype == DML_TENSOR_DATA_TYPE_FLOAT64 ? x : (double)(float)x;
}

uint32_t ref_sum_lanes(const ref_tensor *t, uint32_t axes)
{
    uint32_t lanes = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->sizes[d] > 1)
            lanes = (axes >> d & 1) != 0 ? 32 : 1;
    return lanes;
}

double ref_sum(DML_TENSOR_DATA_TYPE dtype, uint32_t lanes, uint64_t count, ref_term *term, void *user)
{
    double total = 0;
    for (uint64_t first = 0; first < count; first += 4096) {
        double lane[32] = { 0 };
        for (uint64_t k = first; k < count && k < first + 4096; k++)
            lane[k % lanes] = ref_rounded(dtype, lane[k % lanes] + term(user, k));
        for (uint32_t half = lanes / 2; half > 0; half /= 2)
            for (uint32_t i = 0; i < half; i++)
                lane[i] = ref_rounded(dtype, lane[i] + lane[i + half]);
        total = first == 0 ? lane[0] : ref_rounded(dtype, total + lane[0]);
    }
    return total;
}

double ref_dot_result(const ref_dot *d)
{
    return d->now == 0 ? d->sum : ref_rounded(d->dtype, d->total + d->sum);
}

void ref_dot_step(ref_dot *d, uint64_t k, double x, double y)
{
    for (; d->now < k / d->block; d->now++) {
        d->total = ref_dot_result(d);
        d->sum = 0;
    }
    d->sum =
        d->dtype == DML_TENSOR_DATA_TYPE_FLOAT64 ? fma(x, y, d->sum) : (double)fmaf((float)x, (float)y, (float)d->sum);
}
