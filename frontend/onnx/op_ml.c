/* SPDX-License-Identifier: Apache-2.0 */
/* op_ml.c - operators of ai.onnx.ml: numbers scaled, replaced and picked before a model, linear models, and
 * support vectors. */
#include "frontend/onnx/ops.h"

opjit_status opjit_onnx_samples(onnx_import *m, const onnx_call *c, uint64_t sizes[2])
{
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    if (x->rank != 1 && x->rank != 2)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "an input of %u dimensions, 1 and 2 are taken", x->rank);
    sizes[0] = x->rank == 1 ? 1 : x->dims[0];
    sizes[1] = x->dims[x->rank - 1];
    return OPJIT_OK;
}

/* The input's elements as floats. */
static opjit_tensor floats_in(onnx_import *m, const onnx_call *c)
{
    return opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), c->inputs[0]->type, ONNX_FLOAT);
}

/* How many numbers an attribute has; floats, or ints where it has such. */
static uint32_t count_of(const onnx_import *m, const onnx_call *c, const char *name)
{
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, name);
    return a == NULL || (a->floats == NULL && a->ints == NULL) ? 0 : a->count;
}

/* An attribute's numbers, of which there are as many as the sizes say, as a tensor; null: they were refused. */
static opjit_tensor numbers(onnx_import *m, const onnx_call *c, const char *name, int32_t type, uint32_t rank,
                            const uint64_t *dims)
{
    const opjit_tensor null = { 0, 0 };
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, name);
    const void *const from = a == NULL ? NULL : type == ONNX_FLOAT ? (const void *)a->floats : a->ints;
    onnx_value v = { .type = type, .rank = rank };
    const size_t width = type == ONNX_FLOAT ? sizeof(float) : sizeof(int64_t);
    memcpy(v.dims, dims, rank * sizeof *dims);
    if (from == NULL || a->count == 0 || a->count != opjit_onnx_elements_of(&v)) {
        opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute %s: %u numbers, must be %llu %s", name,
                          a == NULL ? 0 : a->count, (unsigned long long)opjit_onnx_elements_of(&v),
                          type == ONNX_FLOAT ? "floats" : "integers");
        return null;
    }
    void *const copy = opjit_onnx_memory(m, a->count * width);
    if (copy == NULL)
        return null;
    memcpy(copy, from, a->count * width);
    v.data = copy;
    return opjit_onnx_tensor(m, &v);
}

/* Numbers of an attribute for each column, or one for all of them; a scalar where it is absent. */
static opjit_tensor for_columns(onnx_import *m, const onnx_call *c, const char *name, int32_t type, uint64_t columns,
                                double otherwise)
{
    const uint32_t count = count_of(m, c, name);
    if (opjit_onnx_attribute(m, c, name) == NULL)
        return opjit_onnx_scalar(m, type, otherwise);
    return numbers(m, c, name, type, 1, (uint64_t[]){ count == 1 ? 1 : columns });
}

static opjit_status give_like_input(onnx_import *m, onnx_call *c, opjit_tensor y, int32_t type)
{
    return opjit_onnx_give_as(m, c, 0, y, type, c->inputs[0]->rank, c->inputs[0]->dims);
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

opjit_status opjit_onnx_scaler(onnx_import *m, onnx_call *c)
{
    uint64_t sizes[2] = { 0, 0 };
    TRY(opjit_onnx_samples(m, c, sizes));
    const opjit_tensor offset = for_columns(m, c, "offset", ONNX_FLOAT, sizes[1], 0),
                       scale = for_columns(m, c, "scale", ONNX_FLOAT, sizes[1], 1);
    const opjit_tensor y = opjit_graph_subtract(m->graph, floats_in(m, c), offset);
    return give_like_input(m, c, opjit_graph_multiply(m->graph, y, scale), ONNX_FLOAT);
}

opjit_status opjit_onnx_binarizer(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const int32_t type = c->inputs[0]->type;
    const opjit_tensor least = opjit_onnx_scalar(m, type, opjit_onnx_float(m, c, "threshold", 0));
    const opjit_tensor y = opjit_graph_greater(m->graph, onnx_tensor_of(m, c, 0), least);
    return give_like_input(m, c, opjit_onnx_cast(m, y, ONNX_UINT8, type), type);
}

opjit_status opjit_onnx_imputer(onnx_import *m, onnx_call *c)
{
    uint64_t sizes[2] = { 0, 0 };
    TRY(opjit_onnx_samples(m, c, sizes));
    const int32_t type = c->inputs[0]->type;
    const opjit_tensor x = onnx_tensor_of(m, c, 0);
    opjit_tensor news, missing;
    if (type == ONNX_INT64) {
        news = for_columns(m, c, "imputed_value_int64s", type, sizes[1], 0);
        missing = opjit_graph_equals(
            m->graph, x, opjit_onnx_scalar(m, type, (double)opjit_onnx_int(m, c, "replaced_value_int64", 0)));
    } else if (type == ONNX_FLOAT) {
        const float replaced = opjit_onnx_float(m, c, "replaced_value_float", 0);
        news = for_columns(m, c, "imputed_value_floats", type, sizes[1], 0);
        missing = replaced != replaced ? opjit_graph_is_nan(m->graph, x)
                                       : opjit_graph_equals(m->graph, x, opjit_onnx_scalar(m, type, replaced));
    } else {
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "elements of %s, float and int64 are taken",
                                 opjit_onnx_type_name(type).text);
    }
    return give_like_input(m, c, opjit_graph_where(m->graph, missing, news, x), type);
}

/* Rows divided by their greatest element, or by a norm; rows of which that is 0 stay. */
opjit_status opjit_onnx_normalizer(onnx_import *m, onnx_call *c)
{
    uint64_t sizes[2] = { 0, 0 };
    TRY(opjit_onnx_samples(m, c, sizes));
    opjit_graph *const g = m->graph;
    const uint32_t axis = c->inputs[0]->rank - 1;
    const opjit_tensor x = floats_in(m, c);
    DML_REDUCE_FUNCTION function = DML_REDUCE_FUNCTION_MAX;
    if (opjit_onnx_text_is(m, c, "norm", "L1", "MAX"))
        function = DML_REDUCE_FUNCTION_L1;
    else if (opjit_onnx_text_is(m, c, "norm", "L2", "MAX"))
        function = DML_REDUCE_FUNCTION_L2;
    else if (!opjit_onnx_text_is(m, c, "norm", "MAX", "MAX"))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute norm is none of MAX, L1, L2");
    const opjit_tensor norm = opjit_graph_reduce(g, x, function, 1, &axis);
    const opjit_tensor none = opjit_graph_equals(g, norm, opjit_onnx_scalar(m, ONNX_FLOAT, 0));
    const opjit_tensor by = opjit_graph_where(g, none, opjit_onnx_scalar(m, ONNX_FLOAT, 1), norm);
    return give_like_input(m, c, opjit_graph_divide(g, x, by), ONNX_FLOAT);
}

/* Columns that input 1 says: known ones that the input has not are refused, of others the nearest one is taken. */
opjit_status opjit_onnx_array_feature_extractor(onnx_import *m, onnx_call *c)
{
    int64_t *columns;
    uint32_t count = 0;
    uint64_t dims[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0];
    if (onnx_is_constant(c->inputs[1]))
        TRY(opjit_onnx_input_ints(m, c, 1, &columns, &count));
    const uint64_t picked = opjit_onnx_elements_of(c->inputs[1]);
    if (x->rank == 0 || picked == 0 || x->dims[x->rank - 1] == 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%llu columns of %u dimensions",
                                 (unsigned long long)picked, x->rank);
    const uint64_t width = x->dims[x->rank - 1];
    for (uint32_t i = 0; i < count; i++)
        if (columns[i] < 0 || (uint64_t)columns[i] >= width)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "column %lld, must be below %llu",
                                     (long long)columns[i], (unsigned long long)width);
    dims[0] = 1;
    for (uint32_t d = 0; d + 1 < x->rank; d++)
        dims[d] = x->dims[d];
    const uint32_t rank = x->rank == 1 ? 2 : x->rank;
    dims[rank - 1] = picked;
    const uint64_t flat[2] = { opjit_onnx_elements_of(x) / width, width }, at[2] = { 1, picked };
    const opjit_tensor indices =
        opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 1), c->inputs[1]->type, ONNX_INT64), 2, at);
    const opjit_tensor y =
        opjit_graph_gather(m->graph, opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 2, flat), indices, 1, 1);
    return opjit_onnx_give_as(m, c, 0, y, x->type, rank, dims);
}

/* Columns of all inputs beside each other, as floats. */
opjit_status opjit_onnx_feature_vectorizer(onnx_import *m, onnx_call *c)
{
    opjit_tensor *const parts = ARENA_ARRAY(m->arena, opjit_tensor, c->input_count == 0 ? 1 : c->input_count);
    uint64_t sizes[2] = { 0, 0 };
    if (parts == NULL)
        return opjit_rt_no_memory(m->error);
    TRY(opjit_onnx_need(m, c, c->input_count == 0 ? 1 : c->input_count));
    for (uint32_t i = 0; i < c->input_count; i++) {
        const onnx_value *const x = c->inputs[i];
        const uint64_t dims[2] = { x->rank == 2 ? x->dims[0] : 1, x->rank == 0 ? 1 : x->dims[x->rank - 1] };
        if (x->rank > 2 || (i != 0 && dims[0] != sizes[0]))
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "input %u of %u dimensions and %llu rows", i, x->rank,
                                     (unsigned long long)dims[0]);
        sizes[0] = dims[0];
        sizes[1] += dims[1];
        parts[i] = opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, i), x->type, ONNX_FLOAT), 2, dims);
    }
    return opjit_onnx_give_as(m, c, 0, opjit_graph_join(m->graph, parts, c->input_count, 1), ONNX_FLOAT, 2, sizes);
}

/* --- linear models ------------------------------------------------------------------------------------------------ */

opjit_status opjit_onnx_transformed(onnx_import *m, const onnx_call *c, opjit_tensor *scores)
{
    if (opjit_onnx_text_is(m, c, "post_transform", "NONE", "NONE"))
        return OPJIT_OK;
    if (opjit_onnx_text_is(m, c, "post_transform", "LOGISTIC", "NONE")) {
        *scores = opjit_graph_sigmoid(m->graph, *scores);
        return OPJIT_OK;
    }
    if (opjit_onnx_text_is(m, c, "post_transform", "SOFTMAX", "NONE")) {
        *scores = opjit_graph_softmax(m->graph, *scores, 1);
        return OPJIT_OK;
    }
    if (!opjit_onnx_text_is(m, c, "post_transform", "SOFTMAX_ZERO", "NONE"))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "attribute post_transform: NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO are taken");
    /* Scores of 0 stay so. */
    opjit_graph *const g = m->graph;
    const opjit_tensor none = opjit_onnx_scalar(m, ONNX_FLOAT, 0);
    const opjit_tensor power =
        opjit_graph_exp(g, opjit_graph_subtract(g, *scores, opjit_graph_reduce_max(g, *scores, 1)));
    const opjit_tensor counted = opjit_graph_where(g, opjit_graph_equals(g, *scores, none), none, power);
    *scores = opjit_graph_divide(g, counted, opjit_graph_reduce_sum(g, counted, 1));
    return OPJIT_OK;
}

/* Rows times coefficients, a row for each target, and intercepts. */
static opjit_tensor linear(onnx_import *m, const onnx_call *c, const uint64_t sizes[2], uint64_t targets)
{
    const opjit_tensor x = opjit_onnx_reshape(m, floats_in(m, c), 2, sizes);
    const opjit_tensor w = numbers(m, c, "coefficients", ONNX_FLOAT, 2, (uint64_t[]){ targets, sizes[1] });
    const opjit_tensor y = opjit_graph_matrix_multiply(m->graph, x, w, 0, 1);
    if (count_of(m, c, "intercepts") == 0)
        return y;
    return opjit_graph_add(m->graph, y, numbers(m, c, "intercepts", ONNX_FLOAT, 1, &targets));
}

opjit_status opjit_onnx_linear_regressor(onnx_import *m, onnx_call *c)
{
    uint64_t sizes[2] = { 0, 0 };
    const int64_t targets = opjit_onnx_int(m, c, "targets", 1);
    TRY(opjit_onnx_samples(m, c, sizes));
    if (targets < 1 || targets > ONNX_NUMBERS)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute targets: %lld, must be 1 to %d",
                                 (long long)targets, ONNX_NUMBERS);
    opjit_tensor y = linear(m, c, sizes, (uint64_t)targets);
    TRY(opjit_onnx_status(m));
    TRY(opjit_onnx_transformed(m, c, &y));
    return opjit_onnx_give_as(m, c, 0, y, ONNX_FLOAT, 2, (uint64_t[]){ sizes[0], (uint64_t)targets });
}

/* Scores of at least two classes, and the label of the greatest one. */
opjit_status opjit_onnx_linear_classifier(onnx_import *m, onnx_call *c)
{
    uint64_t sizes[2] = { 0, 0 };
    TRY(opjit_onnx_samples(m, c, sizes));
    const uint64_t classes = count_of(m, c, "classlabels_ints");
    if (classes < 2 || sizes[1] == 0 || count_of(m, c, "coefficients") / sizes[1] != classes)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "%u coefficients for %llu integer labels: a row for each of two or more is taken",
                                 count_of(m, c, "coefficients"), (unsigned long long)classes);
    opjit_tensor scores = linear(m, c, sizes, classes);
    TRY(opjit_onnx_status(m));
    const opjit_tensor best = opjit_onnx_reshape(m, opjit_graph_argmax(m->graph, scores, 1), 1, &sizes[0]);
    const opjit_tensor labels =
        opjit_graph_gather(m->graph, numbers(m, c, "classlabels_ints", ONNX_INT64, 1, &classes), best, 0, 1);
    TRY(opjit_onnx_give_as(m, c, 0, labels, ONNX_INT64, 1, sizes));
    TRY(opjit_onnx_transformed(m, c, &scores));
    return opjit_onnx_give_as(m, c, 1, scores, ONNX_FLOAT, 2, (uint64_t[]){ sizes[0], classes });
}

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
    const opjit_tensor x = opjit_onnx_reshape(m, floats_in(m, c), 2, sizes);
    const opjit_tensor v = numbers(m, c, "support_vectors", ONNX_FLOAT, 2, (uint64_t[]){ vectors, sizes[1] });
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
    return kind == SIGMOID
               ? opjit_graph_tanh(g, y)
               : opjit_graph_op2(g, DML_OPERATOR_ELEMENT_WISE_POW, y, opjit_onnx_scalar(m, ONNX_FLOAT, (double)degree));
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
    const opjit_tensor k = vectors == 0 ? opjit_onnx_reshape(m, floats_in(m, c), 2, sizes)
                                        : kernel_of(m, c, sizes, (uint64_t)vectors, kind);
    opjit_tensor y = opjit_graph_matrix_multiply(g, k, numbers(m, c, "coefficients", ONNX_FLOAT, 2, row), 0, 1);
    y = opjit_graph_add(g, y, numbers(m, c, "rho", ONNX_FLOAT, 1, &one));
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
    p->classes = texts != NULL && texts->strings != NULL ? texts->count : count_of(m, c, "classlabels_ints");
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
                                 count_of(m, c, "coefficients"), (unsigned long long)p->vectors,
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

/* The class that most pairs vote for, and the scores of all pairs; of two classes s and -s. */
opjit_status opjit_onnx_support_classifier(onnx_import *m, onnx_call *c)
{
    opjit_graph *const g = m->graph;
    pairs p = { 0 };
    uint64_t sizes[2] = { 0, 0 };
    uint32_t kind;
    TRY(opjit_onnx_samples(m, c, sizes));
    TRY(read_kernel(m, c, &kind));
    TRY(read_pairs(m, c, &p));
    if (count_of(m, c, "prob_a") != 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute prob_a: probabilities are not taken");
    if (!opjit_onnx_text_is(m, c, "post_transform", "NONE", "NONE"))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute post_transform: NONE alone is taken");
    const opjit_tensor k = kernel_of(m, c, sizes, p.vectors, kind);
    const opjit_tensor weights = opjit_onnx_table(m, ONNX_FLOAT, p.vectors, p.count, p.weights);
    opjit_tensor s = opjit_graph_matrix_multiply(g, k, weights, 0, 0);
    s = opjit_graph_add(g, s, numbers(m, c, "rho", ONNX_FLOAT, 1, &p.count));
    TRY(opjit_onnx_status(m));
    if (onnx_wants(c, 0)) {
        const opjit_tensor first = opjit_graph_greater(g, s, opjit_onnx_scalar(m, ONNX_FLOAT, 0));
        const opjit_tensor for_each = opjit_onnx_table(m, ONNX_FLOAT, p.count, p.classes, p.votes);
        const opjit_tensor won =
            opjit_graph_matrix_multiply(g, opjit_onnx_cast(m, first, ONNX_UINT8, ONNX_FLOAT), for_each, 0, 0);
        const opjit_tensor votes = opjit_graph_add(g, won, opjit_onnx_table(m, ONNX_FLOAT, p.classes, 0, p.most));
        const opjit_tensor best = opjit_onnx_reshape(m, opjit_graph_argmax(g, votes, 1), 1, sizes);
        const opjit_tensor labels =
            opjit_graph_gather(g, numbers(m, c, "classlabels_ints", ONNX_INT64, 1, &p.classes), best, 0, 1);
        TRY(opjit_onnx_give_as(m, c, 0, labels, ONNX_INT64, 1, sizes));
    }
    const opjit_tensor pair[2] = { opjit_graph_negate(g, s), s };
    return opjit_onnx_give_as(m, c, 1, p.count == 1 ? opjit_graph_join(g, pair, 2, 1) : s, ONNX_FLOAT, 2,
                              (uint64_t[]){ sizes[0], p.count == 1 ? 2 : p.count });
}

/* --- labels ------------------------------------------------------------------------------------------------------- */

enum { FEW = 1024, FOR_EACH = 64 }; /* elements of a table of labels, and more for each key */

/* Integers or floats for integers: a table from the least key to the greatest one, and what is said for all others. */
opjit_status opjit_onnx_label_encoder(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_attribute *const keys = opjit_onnx_attribute(m, c, "keys_int64s");
    const onnx_attribute *const ints = opjit_onnx_attribute(m, c, "values_int64s");
    const onnx_attribute *const values = ints != NULL ? ints : opjit_onnx_attribute(m, c, "values_floats");
    const int32_t type = ints != NULL ? ONNX_INT64 : ONNX_FLOAT;
    const int64_t otherwise = opjit_onnx_int(m, c, "default_int64", -1);
    const float other_float = opjit_onnx_float(m, c, "default_float", -0.0f);
    if (c->inputs[0]->type != ONNX_INT64 || keys == NULL || keys->ints == NULL || values == NULL ||
        (type == ONNX_INT64 ? (void *)values->ints : (void *)values->floats) == NULL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "keys that are no integers, or texts for them, are not taken");
    if (keys->count != values->count || keys->count == 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u keys, but %u values", keys->count, values->count);
    int64_t least = keys->ints[0], most = keys->ints[0];
    for (uint32_t i = 1; i < keys->count; i++) {
        least = keys->ints[i] < least ? keys->ints[i] : least;
        most = keys->ints[i] > most ? keys->ints[i] : most;
    }
    const uint64_t room = FEW + FOR_EACH * (uint64_t)keys->count;
    if ((uint64_t)most - (uint64_t)least >= room)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%u keys from %lld to %lld, must be less than %llu apart",
                                 keys->count, (long long)least, (long long)most, (unsigned long long)room);
    const uint64_t size = (uint64_t)most - (uint64_t)least + 3; /* one at each end for all others */
    const size_t width = type == ONNX_INT64 ? sizeof otherwise : sizeof other_float;
    uint8_t *const table = opjit_onnx_memory(m, size * width);
    if (table == NULL)
        return m->error->status;
    for (uint64_t i = 0; i < size; i++)
        memcpy(table + i * width, type == ONNX_INT64 ? (const void *)&otherwise : &other_float, width);
    for (uint32_t i = keys->count; i-- > 0;)
        memcpy(table + ((uint64_t)keys->ints[i] - (uint64_t)least + 1) * width,
               type == ONNX_INT64 ? (const void *)&values->ints[i] : &values->floats[i], width);
    opjit_graph *const g = m->graph;
    int64_t *const bounds = opjit_onnx_memory(m, 2 * sizeof *bounds);
    if (bounds == NULL)
        return m->error->status;
    bounds[0] = least;
    bounds[1] = most;
    const uint64_t count = opjit_onnx_elements_of(c->inputs[0]);
    const opjit_tensor x = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 1, &count);
    const opjit_tensor first = opjit_onnx_table(m, ONNX_INT64, 1, 0, &bounds[0]);
    const opjit_tensor last = opjit_onnx_table(m, ONNX_INT64, 1, 0, &bounds[1]);
    const opjit_tensor inside = opjit_graph_min(g, opjit_graph_max(g, x, first), last);
    opjit_tensor at = opjit_graph_add(g, opjit_graph_subtract(g, inside, first), opjit_onnx_scalar(m, ONNX_INT64, 1));
    at = opjit_graph_where(g, opjit_graph_equals(g, inside, x), at, opjit_onnx_scalar(m, ONNX_INT64, 0));
    return give_like_input(m, c, opjit_graph_gather(g, opjit_onnx_table(m, type, size, 0, table), at, 0, 1), type);
}

/* Columns of 1 where the input is a category. */
opjit_status opjit_onnx_one_hot_encoder(onnx_import *m, onnx_call *c)
{
    uint64_t dims[ONNX_RANK + 1], categories = count_of(m, c, "cats_int64s");
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    if (categories == 0 || x->rank >= ONNX_RANK)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%llu integer categories of %u dimensions",
                                 (unsigned long long)categories, x->rank);
    if (opjit_onnx_int(m, c, "zeros", 1) == 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute zeros: 0, errors at run time are not taken");
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[x->rank] = 1;
    const opjit_tensor t =
        opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), x->type, ONNX_INT64), x->rank + 1, dims);
    dims[x->rank] = categories;
    const opjit_tensor y = opjit_graph_equals(m->graph, t, numbers(m, c, "cats_int64s", ONNX_INT64, 1, &categories));
    return opjit_onnx_give_as(m, c, 0, opjit_onnx_cast(m, y, ONNX_UINT8, ONNX_FLOAT), ONNX_FLOAT, x->rank + 1, dims);
}
