/* SPDX-License-Identifier: Apache-2.0 */
/* ml.c - operators of ai.onnx.ml: numbers scaled, replaced and picked before a model, linear models, labels. */
#include "frontend/onnx/ops/ops.h"

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

opjit_tensor opjit_onnx_sample_floats(onnx_import *m, const onnx_call *c)
{
    return opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), c->inputs[0]->type, ONNX_FLOAT);
}

uint32_t opjit_onnx_count_numbers(const onnx_import *m, const onnx_call *c, const char *name)
{
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, name);
    return a == NULL || (a->floats == NULL && a->ints == NULL) ? 0 : a->count;
}

opjit_tensor opjit_onnx_number_table(onnx_import *m, const onnx_call *c, const char *name, int32_t type, uint32_t rank,
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
    const uint32_t count = opjit_onnx_count_numbers(m, c, name);
    if (opjit_onnx_attribute(m, c, name) == NULL)
        return opjit_onnx_scalar(m, type, otherwise);
    return opjit_onnx_number_table(m, c, name, type, 1, (uint64_t[]){ count == 1 ? 1 : columns });
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
    const opjit_tensor y = opjit_graph_subtract(m->graph, opjit_onnx_sample_floats(m, c), offset);
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
    const opjit_tensor x = opjit_onnx_sample_floats(m, c);
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
    return opjit_onnx_give_as(m, c, 0, opjit_onnx_join(m, parts, c->input_count, 1), ONNX_FLOAT, 2, sizes);
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
    const opjit_tensor x = opjit_onnx_reshape(m, opjit_onnx_sample_floats(m, c), 2, sizes);
    const opjit_tensor w =
        opjit_onnx_number_table(m, c, "coefficients", ONNX_FLOAT, 2, (uint64_t[]){ targets, sizes[1] });
    const opjit_tensor y = opjit_graph_matrix_multiply(m->graph, x, w, 0, 1);
    if (opjit_onnx_count_numbers(m, c, "intercepts") == 0)
        return y;
    return opjit_graph_add(m->graph, y, opjit_onnx_number_table(m, c, "intercepts", ONNX_FLOAT, 1, &targets));
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
    const uint64_t classes = opjit_onnx_count_numbers(m, c, "classlabels_ints");
    if (classes < 2 || sizes[1] == 0 || opjit_onnx_count_numbers(m, c, "coefficients") / sizes[1] != classes)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "%u coefficients for %llu integer labels: a row for each of two or more is taken",
                                 opjit_onnx_count_numbers(m, c, "coefficients"), (unsigned long long)classes);
    opjit_tensor scores = linear(m, c, sizes, classes);
    TRY(opjit_onnx_status(m));
    const opjit_tensor best = opjit_onnx_reshape(m, opjit_graph_argmax(m->graph, scores, 1), 1, &sizes[0]);
    const opjit_tensor labels = opjit_graph_gather(
        m->graph, opjit_onnx_number_table(m, c, "classlabels_ints", ONNX_INT64, 1, &classes), best, 0, 1);
    TRY(opjit_onnx_give_as(m, c, 0, labels, ONNX_INT64, 1, sizes));
    TRY(opjit_onnx_transformed(m, c, &scores));
    return opjit_onnx_give_as(m, c, 1, scores, ONNX_FLOAT, 2, (uint64_t[]){ sizes[0], classes });
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
    uint64_t dims[ONNX_RANK + 1], categories = opjit_onnx_count_numbers(m, c, "cats_int64s");
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
    const opjit_tensor y =
        opjit_graph_equals(m->graph, t, opjit_onnx_number_table(m, c, "cats_int64s", ONNX_INT64, 1, &categories));
    return opjit_onnx_give_as(m, c, 0, opjit_onnx_cast(m, y, ONNX_UINT8, ONNX_FLOAT), ONNX_FLOAT, x->rank + 1, dims);
}
