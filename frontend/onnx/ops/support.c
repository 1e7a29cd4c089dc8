/* SPDX-License-Identifier: Apache-2.0 */
/* support.c - support vectors of ai.onnx.ml. */
#include "frontend/onnx/ops/ops.h"

/* The kernel function of rows and support vectors, {rows, vectors}; kind: where its name is in read_kernel's list. */
static opjit_tensor kernel_of(onnx_import *m, const onnx_call *c, const uint64_t sizes[2], uint64_t vectors,
                              uint32_t kind)
{
    enum { LINEAR, POLY, RBF, SIGMOID, AXIS = 2 };
    static const uint32_t axis = AXIS;
    opjit_graph *const g = m->graph;
    const onnx_attribute *const p = opjit_onnx_attribute(m, c, "kernel_params");
    const bool said = p != NULL && p->floats != NULL && p->count == 3;
    const float gamma = said ? p->floats[0] : 0, offset = said ? p->floats[1] : 0, degree = said ? p->floats[2] : 0;
    const uint64_t one[3] = { sizes[0], 1, sizes[1] }, all[3] = { 1, vectors, sizes[1] };
    const opjit_tensor x = opjit_onnx_reshape(m, opjit_onnx_sample_floats(m, c), 2, sizes);
    const opjit_tensor v =
        opjit_onnx_number_table(m, c, "support_vectors", ONNX_FLOAT, 2, (uint64_t[]){ vectors, sizes[1] });
    if (kind == RBF) {
        const opjit_tensor apart =
            opjit_graph_subtract(g, opjit_onnx_reshape(m, x, 3, one), opjit_onnx_reshape(m, v, 3, all));
        const opjit_tensor far =
            opjit_onnx_reshape(m, opjit_graph_reduce(g, apart, DML_REDUCE_FUNCTION_SUM_SQUARE, 1, &axis), 2,
                               (uint64_t[]){ sizes[0], vectors });
        return opjit_graph_exp(g, opjit_graph_multiply(g, far, opjit_onnx_scalar(m, ONNX_FLOAT, -(double)gamma)));
    }
    opjit_tensor y = opjit_graph_matrix_multiply(g, x, v, 0, 1);
    if (kind == LINEAR)
        return y;
    y = opjit_graph_add(g, opjit_graph_multiply(g, y, opjit_onnx_scalar(m, ONNX_FLOAT, (double)gamma)),
                        opjit_onnx_scalar(m, ONNX_FLOAT, (double)offset));
    return kind == SIGMOID ? opjit_graph_tanh(g, y) : opjit_onnx_power(m, y, ONNX_FLOAT, (double)degree);
}

/* Where kernel_type is in this list. */
static opjit_status read_kernel(onnx_import *m, const onnx_call *c, uint32_t *kind)
{
    static const char *const kinds[] = { "LINEAR", "POLY", "RBF", "SIGMOID" };
    for (*kind = 0; *kind < 4; ++*kind)
        if (opjit_onnx_text_is(m, c, "kernel_type", kinds[*kind], "LINEAR"))
            return OPJIT_OK;
    return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                             "attribute kernel_type is none of LINEAR, POLY, RBF, SIGMOID");
}

/* Coefficients times the kernel function of the support vectors, or, where there are none, times the row itself. */
opjit_status opjit_onnx_support_regressor(onnx_import *m, onnx_call *c)
{
    uint64_t sizes[2] = { 0, 0 };
    uint32_t kind;
    opjit_graph *const g = m->graph;
    const int64_t vectors = opjit_onnx_int(m, c, "n_supports", 0);
    TRY(opjit_onnx_samples(m, c, sizes));
    TRY(read_kernel(m, c, &kind));
    if (vectors < 0 || vectors > ONNX_NUMBERS)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute n_supports: %lld, must be 0 to %d",
                                 (long long)vectors, ONNX_NUMBERS);
    const uint64_t row[2] = { 1, vectors == 0 ? sizes[1] : (uint64_t)vectors }, one = 1;
    const opjit_tensor k = vectors == 0 ? opjit_onnx_reshape(m, opjit_onnx_sample_floats(m, c), 2, sizes)
                                        : kernel_of(m, c, sizes, (uint64_t)vectors, kind);
    opjit_tensor y =
        opjit_graph_matrix_multiply(g, k, opjit_onnx_number_table(m, c, "coefficients", ONNX_FLOAT, 2, row), 0, 1);
    y = opjit_graph_add(g, y, opjit_onnx_number_table(m, c, "rho", ONNX_FLOAT, 1, &one));
    if (opjit_onnx_int(m, c, "one_class", 0) != 0)
        y = opjit_graph_where(g, opjit_graph_greater(g, y, opjit_onnx_scalar(m, ONNX_FLOAT, 0)),
                              opjit_onnx_scalar(m, ONNX_FLOAT, 1), opjit_onnx_scalar(m, ONNX_FLOAT, -1));
    TRY(opjit_onnx_status(m));
    TRY(opjit_onnx_transformed(m, c, &y));
    return opjit_onnx_give_as(m, c, 0, y, ONNX_FLOAT, 2, (uint64_t[]){ sizes[0], 1 });
}

/* Two classes and more, each pair of which has a score: positive for the first one of the two. */
typedef struct pairs {
    uint64_t classes, count, vectors; /* vectors: those of class 0, then those of class 1, and so on */
    float *weights;                   /* {vectors, count}: of the kernel function, in a pair's score */
    float *votes;                     /* {count, classes}: 1 for the pair's first class, -1 for its second one */
    float *most;                      /* {classes}: how many pairs have it as the second one */
} pairs;

/* Row r of the coefficients has what a vector weighs against class r, or, if its own class is r or an earlier one,
 * against class r + 1. */
static opjit_status read_pairs(onnx_import *m, const onnx_call *c, pairs *p)
{
    const onnx_attribute *const counts = opjit_onnx_attribute(m, c, "vectors_per_class");
    const onnx_attribute *const texts = opjit_onnx_attribute(m, c, "classlabels_strings");
    const onnx_attribute *const coefficients = opjit_onnx_attribute(m, c, "coefficients");
    p->classes =
        texts != NULL && texts->strings != NULL ? texts->count : opjit_onnx_count_numbers(m, c, "classlabels_ints");
    p->count = p->classes * (p->classes - 1) / 2;
    if (p->classes < 2 || counts == NULL || counts->ints == NULL || counts->count != p->classes)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "%llu classes with %u counts of support vectors: two or more with one each are taken",
                                 (unsigned long long)p->classes, counts == NULL ? 0 : counts->count);
    for (uint32_t i = 0; i < counts->count; p->vectors += (uint64_t)counts->ints[i++])
        if (counts->ints[i] < 0 || counts->ints[i] > ONNX_NUMBERS)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute vectors_per_class: %lld, must be 0 to %d",
                                     (long long)counts->ints[i], ONNX_NUMBERS);
    if (p->vectors == 0 || p->vectors > ONNX_NUMBERS || p->vectors * p->count > UINT32_MAX / sizeof(float) ||
        coefficients == NULL || coefficients->floats == NULL || coefficients->count != p->vectors * (p->classes - 1))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u coefficients of %llu support vectors, %llu classes",
                                 opjit_onnx_count_numbers(m, c, "coefficients"), (unsigned long long)p->vectors,
                                 (unsigned long long)p->classes);
    p->weights = opjit_onnx_memory(m, p->vectors * p->count * sizeof(float));
    p->votes = opjit_onnx_memory(m, p->count * p->classes * sizeof(float));
    p->most = opjit_onnx_memory(m, p->classes * sizeof(float));
    if (p->weights == NULL || p->votes == NULL || p->most == NULL)
        return m->error->status;
    uint64_t pair = 0, first_i = 0;
    for (uint64_t i = 0; i < p->classes; first_i += (uint64_t)counts->ints[i++]) {
        uint64_t first_j = first_i + (uint64_t)counts->ints[i];
        for (uint64_t j = i + 1; j < p->classes; first_j += (uint64_t)counts->ints[j++], pair++) {
            for (uint64_t k = first_i; k < first_i + (uint64_t)counts->ints[i]; k++)
                p->weights[k * p->count + pair] = coefficients->floats[(j - 1) * p->vectors + k];
            for (uint64_t k = first_j; k < first_j + (uint64_t)counts->ints[j]; k++)
                p->weights[k * p->count + pair] = coefficients->floats[i * p->vectors + k];
            p->votes[pair * p->classes + i] = 1;
            p->votes[pair * p->classes + j] = -1;
            p->most[j] += 1;
        }
    }
    return OPJIT_OK;
}

/* --- probabilities ------------------------------------------------------------------------------------------------ */

enum { CLASSES_MOST = 8, ROUNDS = 6 };

/* What the rows of one class, or of two, have: {rows, 1}. */
typedef struct coupling {
    opjit_graph *graph;
    uint32_t classes;
    opjit_tensor q[CLASSES_MOST][CLASSES_MOST];
    opjit_tensor p[CLASSES_MOST]; /* probabilities so far */
    opjit_tensor qp[CLASSES_MOST], pqp;
} coupling;

/* r(i, j) is the probability of i where it is i or j: q(i, i) = sum of r(j, i)^2, q(i, j) = -r(j, i) r(i, j). */
static void couple(coupling *k, onnx_import *m, opjit_tensor scores, uint64_t rows, const float *a, const float *b)
{
    opjit_graph *const g = k->graph;
    const opjit_tensor one = opjit_onnx_scalar(m, ONNX_FLOAT, 1);
    opjit_tensor r[CLASSES_MOST][CLASSES_MOST];
    for (uint32_t i = 0, pair = 0; i < k->classes; i++)
        for (uint32_t j = i + 1; j < k->classes; j++, pair++) {
            const uint32_t begin[2] = { 0, pair }, sizes[2] = { (uint32_t)rows, 1 };
            opjit_tensor s = opjit_graph_slice(g, scores, begin, sizes, NULL);
            s = opjit_graph_multiply(g, s, opjit_onnx_scalar(m, ONNX_FLOAT, (double)a[pair]));
            s = opjit_graph_add(g, s, opjit_onnx_scalar(m, ONNX_FLOAT, (double)b[pair]));
            r[i][j] = opjit_graph_clip(g, opjit_graph_sigmoid(g, opjit_graph_negate(g, s)), 1e-7f, 1 - 1e-7f);
            r[j][i] = opjit_graph_subtract(g, one, r[i][j]);
        }
    for (uint32_t i = 0; i < k->classes; i++) {
        opjit_tensor sum = opjit_onnx_scalar(m, ONNX_FLOAT, 0);
        for (uint32_t j = 0; j < k->classes; j++) {
            if (j != i) {
                sum = opjit_graph_add(g, sum, opjit_graph_multiply(g, r[j][i], r[j][i]));
                k->q[i][j] = opjit_graph_negate(g, opjit_graph_multiply(g, r[j][i], r[i][j]));
            }
        }
        k->q[i][i] = sum;
    }
}

/* One round for the rows that are not yet there: each class's probability in its turn, and all divided by their sum. */
static void improve(coupling *k, onnx_import *m)
{
    opjit_graph *const g = k->graph;
    const opjit_tensor one = opjit_onnx_scalar(m, ONNX_FLOAT, 1);
    opjit_tensor before[CLASSES_MOST], error = opjit_onnx_scalar(m, ONNX_FLOAT, 0);
    for (uint32_t i = 0; i < k->classes; i++) {
        before[i] = k->p[i];
        for (uint32_t j = 0; j < k->classes; j++) {
            const opjit_tensor product = opjit_graph_multiply(g, k->q[i][j], k->p[j]);
            k->qp[i] = j == 0 ? product : opjit_graph_add(g, k->qp[i], product);
        }
        const opjit_tensor product = opjit_graph_multiply(g, k->p[i], k->qp[i]);
        k->pqp = i == 0 ? product : opjit_graph_add(g, k->pqp, product);
    }
    for (uint32_t i = 0; i < k->classes; i++)
        error = opjit_graph_max(g, error, opjit_graph_abs(g, opjit_graph_subtract(g, k->qp[i], k->pqp)));
    const opjit_tensor is_there = opjit_graph_less(g, error, opjit_onnx_scalar(m, ONNX_FLOAT, 0.005 / k->classes));
    for (uint32_t i = 0; i < k->classes; i++) {
        const opjit_tensor off = opjit_graph_divide(g, opjit_graph_subtract(g, k->pqp, k->qp[i]), k->q[i][i]);
        const opjit_tensor sum = opjit_graph_add(g, one, off);
        const opjit_tensor twice = opjit_graph_add(g, k->qp[i], k->qp[i]);
        const opjit_tensor more =
            opjit_graph_multiply(g, off, opjit_graph_add(g, opjit_graph_multiply(g, off, k->q[i][i]), twice));
        k->pqp = opjit_graph_divide(g, opjit_graph_divide(g, opjit_graph_add(g, k->pqp, more), sum), sum);
        k->p[i] = opjit_graph_add(g, k->p[i], off);
        for (uint32_t j = 0; j < k->classes; j++) {
            k->p[j] = opjit_graph_divide(g, k->p[j], sum);
            k->qp[j] =
                opjit_graph_divide(g, opjit_graph_add(g, k->qp[j], opjit_graph_multiply(g, off, k->q[i][j])), sum);
        }
    }
    for (uint32_t i = 0; i < k->classes; i++)
        k->p[i] = opjit_graph_where(g, is_there, before[i], k->p[i]);
}

/* What scores of pairs say of each class, by prob_a and prob_b: {rows, classes}.  The standard's loop ends when no
 * class is off by 0.005 / classes, after at most 4 rounds in all that was tried (of up to 100). */
static opjit_status probabilities(onnx_import *m, const onnx_call *c, opjit_tensor scores, uint64_t rows,
                                  const pairs *p, opjit_tensor *out)
{
    coupling k = { .graph = m->graph, .classes = (uint32_t)p->classes };
    if (p->classes > CLASSES_MOST)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "probabilities of %llu classes, up to %d are taken",
                                 (unsigned long long)p->classes, CLASSES_MOST);
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, "prob_a"), *const b =
                                                                              opjit_onnx_attribute(m, c, "prob_b");
    if (a->floats == NULL || b == NULL || b->floats == NULL || a->count != p->count || b->count != p->count)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attributes prob_a and prob_b: must have %llu floats",
                                 (unsigned long long)p->count);
    couple(&k, m, scores, rows, a->floats, b->floats);
    const uint32_t sizes[2] = { (uint32_t)rows, 1 };
    for (uint32_t i = 0; i < k.classes; i++)
        k.p[i] = opjit_graph_fill(m->graph, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, 1 / (double)k.classes);
    for (uint32_t round = 0; round < ROUNDS; round++)
        improve(&k, m);
    *out = opjit_graph_join(m->graph, k.p, k.classes, 1);
    return opjit_onnx_status(m);
}

/* The class that most pairs vote for, and probabilities, or the scores of all pairs; of two classes s and -s. */
opjit_status opjit_onnx_support_classifier(onnx_import *m, onnx_call *c)
{
    opjit_graph *const g = m->graph;
    pairs p = { 0 };
    uint64_t sizes[2] = { 0, 0 };
    uint32_t kind;
    TRY(opjit_onnx_samples(m, c, sizes));
    TRY(read_kernel(m, c, &kind));
    TRY(read_pairs(m, c, &p));
    if (!opjit_onnx_text_is(m, c, "post_transform", "NONE", "NONE"))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute post_transform: NONE alone is taken");
    const opjit_tensor k = kernel_of(m, c, sizes, p.vectors, kind);
    const opjit_tensor weights = opjit_onnx_table(m, ONNX_FLOAT, p.vectors, p.count, p.weights);
    opjit_tensor s = opjit_graph_matrix_multiply(g, k, weights, 0, 0);
    s = opjit_graph_add(g, s, opjit_onnx_number_table(m, c, "rho", ONNX_FLOAT, 1, &p.count));
    TRY(opjit_onnx_status(m));
    if (onnx_wants(c, 0)) {
        const opjit_tensor first = opjit_graph_greater(g, s, opjit_onnx_scalar(m, ONNX_FLOAT, 0));
        const opjit_tensor for_each = opjit_onnx_table(m, ONNX_FLOAT, p.count, p.classes, p.votes);
        const opjit_tensor won =
            opjit_graph_matrix_multiply(g, opjit_onnx_cast(m, first, ONNX_UINT8, ONNX_FLOAT), for_each, 0, 0);
        const opjit_tensor votes = opjit_graph_add(g, won, opjit_onnx_table(m, ONNX_FLOAT, p.classes, 0, p.most));
        const opjit_tensor best = opjit_onnx_reshape(m, opjit_graph_argmax(g, votes, 1), 1, sizes);
        const opjit_tensor labels = opjit_graph_gather(
            g, opjit_onnx_number_table(m, c, "classlabels_ints", ONNX_INT64, 1, &p.classes), best, 0, 1);
        TRY(opjit_onnx_give_as(m, c, 0, labels, ONNX_INT64, 1, sizes));
    }
    if (opjit_onnx_count_numbers(m, c, "prob_a") != 0) {
        TRY(probabilities(m, c, s, sizes[0], &p, &s));
        return opjit_onnx_give_as(m, c, 1, s, ONNX_FLOAT, 2, (uint64_t[]){ sizes[0], p.classes });
    }
    const opjit_tensor pair[2] = { opjit_graph_negate(g, s), s };
    return opjit_onnx_give_as(m, c, 1, p.count == 1 ? opjit_graph_join(g, pair, 2, 1) : s, ONNX_FLOAT, 2,
                              (uint64_t[]){ sizes[0], p.count == 1 ? 2 : p.count });
}
