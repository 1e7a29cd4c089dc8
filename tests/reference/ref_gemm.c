/* SPDX-License-Identifier: Apache-2.0 */
/* ref_gemm.c - GEMM, literally: each element is a chain of fma along K, in blocks of 256 that are added one after the
 * other, times Alpha, and Beta * C added.  RELU is the only activation. */
#include <math.h>
#include <string.h>

#include "tests/reference/reference.h"

typedef struct matrix {
    ref_tensor t;
    const void *base;
    bool transposed;
} matrix;

/* The element in this row and column of the matrix of the batch that `at` is in. */
static double element(const matrix *m, const uint32_t at[8], uint32_t row, uint32_t column)
{
    uint32_t own[8];
    memcpy(own, at, sizeof own);
    own[m->t.rank - 2] = m->transposed ? column : row;
    own[m->t.rank - 1] = m->transposed ? row : column;
    return ref_real(m->t.dtype, ref_get(&m->t, m->base, own));
}

static double step(DML_TENSOR_DATA_TYPE dtype, double x, double y, double sum)
{
    return dtype == DML_TENSOR_DATA_TYPE_FLOAT64 ? fma(x, y, sum) : (double)fmaf((float)x, (float)y, (float)sum);
}

static double product(const matrix *a, const matrix *b, const uint32_t at[8], uint32_t length)
{
    const DML_TENSOR_DATA_TYPE dtype = a->t.dtype;
    const uint32_t row = at[a->t.rank - 2], column = at[a->t.rank - 1];
    double total = 0;
    for (uint32_t first = 0; first < length; first += 256) {
        double sum = 0;
        for (uint32_t k = first; k < length && k < first + 256; k++)
            sum = step(dtype, element(a, at, row, k), element(b, at, k, column), sum);
        total = first == 0 ? sum : ref_rounded(dtype, total + sum);
    }
    return total;
}

void ref_gemm(const DML_GEMM_OPERATOR_DESC *desc, ref_inputs inputs, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const matrix a = { ref_tensor_of(desc->ATensor), inputs[0], desc->TransA != DML_MATRIX_TRANSFORM_NONE };
    const matrix b = { ref_tensor_of(desc->BTensor), inputs[1], desc->TransB != DML_MATRIX_TRANSFORM_NONE };
    const uint32_t length = a.t.sizes[a.t.rank - (a.transposed ? 2 : 1)];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t at[8];
        ref_tensor_coordinates(&out, e, at);
        double x = ref_rounded(out.dtype, (double)desc->Alpha * product(&a, &b, at, length));
        if (desc->CTensor != NULL) {
            const ref_tensor c = ref_tensor_of(desc->CTensor);
            const double added = (double)desc->Beta * ref_real(c.dtype, ref_get(&c, inputs[2], at));
            x = ref_rounded(out.dtype, x + ref_rounded(out.dtype, added));
        }
        if (desc->FusedActivation != NULL)
            x = x > 0 || x != x ? x : 0;
        ref_set(&out, output, at, ref_real_bits(out.dtype, x));
    }
}
