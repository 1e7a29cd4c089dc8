/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c - normalisation. */
#include <math.h>

#include "frontend/onnx/ops/ops.h"

/* The factor and the offset of each channel: (x - mean) / sqrt(variance + epsilon) * scale + bias is x * factor +
 * offset.  NULL: they are not known, or not computed in FLOAT32. */
static float *known_factors(onnx_import *m, const onnx_call *c, uint64_t channels, float **out_offsets)
{
    const float *of[4];
    for (uint32_t i = 0; i < 4; i++) {
        onnx_value *const v = c->inputs[1 + i];
        of[i] = onnx_is_single(v->type) && opjit_onnx_elements_of(v) == channels ? opjit_onnx_data(m, v) : NULL;
        if (of[i] == NULL)
            return NULL;
    }
    float *const factors = ARENA_ARRAY(m->arena, float, (size_t)channels * 2);
    const double epsilon = (double)opjit_onnx_float(m, c, "epsilon", 1e-5f);
    for (uint64_t i = 0; factors != NULL && i < channels; i++) {
        const double factor = (double)of[0][i] / sqrt((double)of[3][i] + epsilon);
        factors[i] = (float)factor;
        factors[channels + i] = (float)((double)of[1][i] - (double)of[2][i] * factor);
    }
    *out_offsets = factors == NULL ? NULL : factors + channels;
    return factors;
}

/* The convolution that made x with these in its filter and bias, if x has no other reader; status is set. */
static bool scale_convolution(onnx_import *m, onnx_call *c, const float *factors, const float *offsets,
                              opjit_status *status)
{
    const onnx_value *const x = c->inputs[0];
    if (onnx_maker(m, x, opjit_onnx_conv) == NULL || x->readers != 1)
        return false;
    onnx_call by = x->made->call;
    onnx_value *const old_bias = onnx_input(&by, 2);
    onnx_value *const weights = by.inputs[1];
    const uint8_t *const filter = weights->type == ONNX_FLOAT       ? opjit_onnx_stored(m, weights)
                                  : onnx_is_single(weights->type) ? opjit_onnx_data(m, weights)
                                                                  : NULL;
    const float *const bias = old_bias == NULL ? NULL : opjit_onnx_data(m, old_bias);
    const uint64_t channels = weights->dims[0], count = opjit_onnx_elements_of(weights);
    if (filter == NULL || (old_bias != NULL && bias == NULL) || channels != x->dims[1])
        return false;
    float *const scaled = opjit_onnx_room(m, count * sizeof(float));
    float *const moved = opjit_onnx_memory(m, channels * sizeof(float));
    onnx_value *const values = ARENA_ARRAY(m->arena, onnx_value, 2);
    onnx_value **const inputs = ARENA_ARRAY(m->arena, onnx_value *, 3);
    *status = OPJIT_OK;
    if (scaled == NULL || moved == NULL || values == NULL || inputs == NULL) {
        *status = opjit_rt_no_memory(m->error);
        return true;
    }
    for (uint64_t k = 0, i = 0; k < channels; k++) {
        const float factor = factors[k]; /* which no store below changes, as the compiler can't know */
        for (const uint64_t end = i + count / channels; i < end; i++) {
            float weight;
            memcpy(&weight, filter + i * sizeof weight, sizeof weight); /* it lies anywhere */
            scaled[i] = weight * factor;
        }
    }
    for (uint64_t i = 0; i < channels; i++)
        moved[i] = (bias == NULL ? 0 : bias[i]) * factors[i] + offsets[i];
    values[0] = (onnx_value){ .type = weights->type, .rank = weights->rank, .data = scaled };
    memcpy(values[0].dims, weights->dims, sizeof values[0].dims);
    values[1] = (onnx_value){ .type = weights->type, .rank = 1, .dims = { channels }, .data = moved };
    inputs[0] = by.inputs[0];
    inputs[1] = &values[0];
    inputs[2] = &values[1];
    by.inputs = inputs;
    by.input_count = 3;
    by.outputs = c->outputs;
    by.output_count = 1;
    *status = opjit_onnx_conv(m, &by);
    return true;
}

/* Means over the axes, and how far elements are apart from them; returns variances. */
static opjit_tensor variances(onnx_import *m, opjit_tensor t, const uint32_t *axes, uint32_t count, opjit_tensor *mean,
                              opjit_tensor *apart)
{
    opjit_graph *const g = m->graph;
    *mean = opjit_graph_reduce(g, t, DML_REDUCE_FUNCTION_AVERAGE, count, axes);
    *apart = opjit_graph_subtract(g, t, *mean);
    return opjit_graph_reduce(g, opjit_graph_multiply(g, *apart, *apart), DML_REDUCE_FUNCTION_AVERAGE, count, axes);
}

/* Scaled by the mean and the variance of each channel in this call; outputs 1 and 2: running ones, which go on from
 * inputs 3 and 4.  Before opset 14 there are two more: the mean, and by how much a distance from it is scaled. */
static opjit_status train_normalization(onnx_import *m, onnx_call *c)
{
    opjit_graph *const g = m->graph;
    const onnx_value *const x = c->inputs[0];
    const double momentum = (double)opjit_onnx_float(m, c, "momentum", 0.9f);
    uint32_t axes[ONNX_RANK], count = 0;
    if (m->opset < 9)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "training by opset %lld, is taken from 9 on",
                                 (long long)m->opset);
    for (uint32_t d = 0; d < x->rank; d++)
        if (d != 1)
            axes[count++] = d;
    opjit_tensor mean, apart;
    const opjit_tensor variance = variances(m, onnx_tensor_of(m, c, 0), axes, count, &mean, &apart);
    for (uint32_t i = 1; i < 3; i++) {
        if (!onnx_wants(c, i))
            continue;
        const int32_t type = c->inputs[2 + i]->type;
        const opjit_tensor now = opjit_onnx_cast(m, i == 1 ? mean : variance, x->type, type);
        const opjit_tensor before = opjit_onnx_vector(m, c, 2 + i, x->rank, 1);
        const opjit_tensor kept = opjit_graph_multiply(g, before, opjit_onnx_scalar(m, type, momentum));
        const opjit_tensor news = opjit_graph_multiply(g, now, opjit_onnx_scalar(m, type, 1 - momentum));
        TRY(opjit_onnx_give_as(m, c, i, opjit_graph_add(g, kept, news), type, 1, &x->dims[1]));
    }
    const opjit_tensor epsilon = opjit_onnx_scalar(m, x->type, (double)opjit_onnx_float(m, c, "epsilon", 1e-5f));
    const opjit_tensor deviation = opjit_graph_sqrt(g, opjit_graph_add(g, variance, epsilon));
    if (onnx_wants(c, 3))
        TRY(opjit_onnx_give_as(m, c, 3, mean, x->type, 1, &x->dims[1]));
    if (onnx_wants(c, 4))
        TRY(opjit_onnx_give_as(m, c, 4, opjit_graph_divide(g, opjit_onnx_scalar(m, x->type, 1), deviation), x->type, 1,
                               &x->dims[1]));
    const opjit_tensor scale = opjit_onnx_cast(m, opjit_onnx_vector(m, c, 1, x->rank, 1), c->inputs[1]->type, x->type);
    const opjit_tensor bias = opjit_onnx_cast(m, opjit_onnx_vector(m, c, 2, x->rank, 1), c->inputs[2]->type, x->type);
    const opjit_tensor y = opjit_graph_multiply(g, opjit_graph_divide(g, apart, deviation), scale);
    return opjit_onnx_give(m, c, 0, opjit_graph_add(g, y, bias), x->type, x->rank);
}

opjit_status opjit_onnx_batch_normalization(onnx_import *m, onnx_call *c)
{
    opjit_status status;
    float *offsets;
    TRY(opjit_onnx_need(m, c, 5));
    const onnx_value *const x = c->inputs[0];
    if (x->rank < 2)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions, must be at least 2", x->rank);
    if (opjit_onnx_int(m, c, "training_mode", 0) != 0 || onnx_wants(c, 1))
        return train_normalization(m, c);
    opjit_graph *const g = m->graph;
    opjit_tensor factor, offset;
    float *const factors = onnx_is_single(x->type) ? known_factors(m, c, x->dims[1], &offsets) : NULL;
    if (factors != NULL && scale_convolution(m, c, factors, offsets, &status))
        return status;
    if (factors != NULL) {
        onnx_value v[2];
        for (uint32_t i = 0; i < 2; i++) {
            v[i] = (onnx_value){ .type = ONNX_FLOAT, .rank = x->rank, .data = i == 0 ? factors : offsets };
            for (uint32_t d = 0; d < x->rank; d++)
                v[i].dims[d] = d == 1 ? x->dims[1] : 1;
        }
        factor = opjit_onnx_tensor(m, &v[0]);
        offset = opjit_onnx_tensor(m, &v[1]);
    } else {
        const opjit_tensor epsilon = opjit_onnx_scalar(m, c->inputs[4]->type, opjit_onnx_float(m, c, "epsilon", 1e-5f));
        const opjit_tensor variance = opjit_onnx_vector(m, c, 4, x->rank, 1);
        const opjit_tensor deviation = opjit_graph_sqrt(g, opjit_graph_add(g, variance, epsilon));
        factor = opjit_graph_divide(g, opjit_onnx_vector(m, c, 1, x->rank, 1), deviation);
        offset = opjit_graph_subtract(g, opjit_onnx_vector(m, c, 2, x->rank, 1),
                                      opjit_graph_multiply(g, opjit_onnx_vector(m, c, 3, x->rank, 1), factor));
    }
    const opjit_tensor y = opjit_graph_add(g, opjit_graph_multiply(g, onnx_tensor_of(m, c, 0), factor), offset);
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias over the axes; scale and bias may be null. */
static opjit_tensor normalized(onnx_import *m, opjit_tensor x, opjit_tensor scale, opjit_tensor bias,
                               const uint32_t *axes, uint32_t count, float epsilon)
{
    const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC desc = { NULL, NULL, NULL, NULL, count, axes, 1, epsilon,
                                                                  NULL };
    const opjit_tensor inputs[3] = { x, scale, bias };
    return opjit_graph_op(m->graph, DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, &desc, inputs, 3);
}

opjit_status opjit_onnx_instance_normalization(onnx_import *m, onnx_call *c)
{
    uint32_t axes[ONNX_RANK], count = 0;
    TRY(opjit_onnx_need(m, c, 3));
    const onnx_value *const x = c->inputs[0];
    if (x->rank < 3)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions, must be at least 3", x->rank);
    for (uint32_t d = 2; d < x->rank; d++)
        axes[count++] = d;
    opjit_graph *const g = m->graph;
    opjit_tensor_type type;
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    (void)opjit_graph_get_type(g, t, &type);
    const opjit_tensor y =
        normalized(m, t, opjit_graph_broadcast(g, opjit_onnx_vector(m, c, 1, x->rank, 1), type.rank, type.sizes),
                   opjit_graph_broadcast(g, opjit_onnx_vector(m, c, 2, x->rank, 1), type.rank, type.sizes), axes, count,
                   opjit_onnx_float(m, c, "epsilon", 1e-5f));
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}

/* The value broadcast to x's sizes; null where it is absent. */
static opjit_tensor broadcast_to(onnx_import *m, onnx_call *c, uint32_t i, opjit_tensor x)
{
    opjit_tensor_type type;
    if (onnx_input(c, i) == NULL)
        return (opjit_tensor){ 0, 0 };
    (void)opjit_graph_get_type(m->graph, x, &type);
    return opjit_graph_broadcast(m->graph, onnx_tensor_of(m, c, i), type.rank, type.sizes);
}

/* LayerNormalization's outputs 1 and 2: the mean, and one over the deviation; FLOAT32. */
static opjit_status give_moments(onnx_import *m, onnx_call *c, opjit_tensor t, const uint32_t *axes, uint32_t count)
{
    opjit_graph *const g = m->graph;
    const onnx_value *const x = c->inputs[0];
    if (!onnx_wants(c, 1) && !onnx_wants(c, 2))
        return OPJIT_OK;
    opjit_tensor mean, apart;
    const opjit_tensor variance =
        variances(m, opjit_onnx_cast(m, t, x->type, ONNX_FLOAT), axes, count, &mean, &apart);
    const opjit_tensor epsilon = opjit_onnx_scalar(m, ONNX_FLOAT, opjit_onnx_float(m, c, "epsilon", 1e-5f));
    if (onnx_wants(c, 1))
        TRY(opjit_onnx_give(m, c, 1, mean, ONNX_FLOAT, x->rank));
    if (!onnx_wants(c, 2))
        return OPJIT_OK;
    return opjit_onnx_give(m, c, 2, opjit_graph_recip(g, opjit_graph_sqrt(g, opjit_graph_add(g, variance, epsilon))),
                           ONNX_FLOAT, x->rank);
}

/* LayerNormalization; com.microsoft's SkipLayerNormalization (arg 1): of the sum of inputs 0, 1 and 4, scale and bias
 * behind them, the sum is output 3. */
opjit_status opjit_onnx_layer_normalization(onnx_import *m, onnx_call *c)
{
    const bool skip = c->row->arg == 1;
    uint32_t axes[ONNX_RANK], count = 0, axis;
    TRY(opjit_onnx_need(m, c, skip ? 3 : 2));
    const onnx_value *const x = c->inputs[0];
    opjit_tensor t = onnx_tensor_of(m, c, 0);
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", -1), x->rank, &axis));
    if (skip)
        t = opjit_graph_add(m->graph, t, onnx_tensor_of(m, c, 1));
    if (skip && onnx_input(c, 4) != NULL)
        t = opjit_graph_add(m->graph, t, onnx_tensor_of(m, c, 4));
    for (uint32_t d = axis; d < x->rank; d++)
        axes[count++] = d;
    const opjit_tensor y = normalized(m, t, broadcast_to(m, c, skip ? 2 : 1, t), broadcast_to(m, c, skip ? 3 : 2, t),
                                      axes, count, opjit_onnx_float(m, c, "epsilon", skip ? 1e-12f : 1e-5f));
    if (skip && onnx_wants(c, 3))
        TRY(opjit_onnx_give(m, c, 3, t, x->type, x->rank));
    TRY(give_moments(m, c, t, axes, count));
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}

/* The rows of input `table` that the numbers of input i say, {batch, rows, width}. */
static opjit_tensor embedded(onnx_import *m, const onnx_call *c, uint32_t i, uint32_t table)
{
    const onnx_value *const at = c->inputs[i], *const rows = c->inputs[table];
    const uint64_t flat[3] = { 1, 1, opjit_onnx_elements_of(at) }, whole[3] = { 1, rows->dims[0], rows->dims[1] };
    const uint64_t result[3] = { at->dims[0], at->dims[1], rows->dims[1] };
    const opjit_tensor t = opjit_graph_gather(m->graph, opjit_onnx_reshape(m, onnx_tensor_of(m, c, table), 3, whole),
                                              opjit_onnx_reshape(m, onnx_tensor_of(m, c, i), 3, flat), 1, 1);
    return opjit_onnx_reshape(m, t, 3, result);
}

/* com.microsoft's EmbedLayerNormalization: words, segments, their tables and that of positions, scale, bias, mask,
 * positions.  Output 1 is how many of the mask are set, output 2 what is normalised. */
opjit_status opjit_onnx_embed_normalization(onnx_import *m, onnx_call *c)
{
    enum { WORDS, SEGMENTS, WORD_TABLE, POSITION_TABLE, SEGMENT_TABLE, SCALE, BIAS, MASK, POSITIONS };
    static const uint32_t axes[1] = { 2 }, along[1] = { 1 };
    static const uint32_t tables[3] = { WORD_TABLE, POSITION_TABLE, SEGMENT_TABLE };
    static const uint32_t numbers[4] = { WORDS, SEGMENTS, MASK, POSITIONS };
    opjit_graph *const g = m->graph;
    if (onnx_input(c, WORDS) == NULL || onnx_input(c, WORD_TABLE) == NULL || onnx_input(c, POSITION_TABLE) == NULL)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "words or a table are missing");
    const onnx_value *const words = c->inputs[WORDS], *const places = c->inputs[POSITION_TABLE];
    for (uint32_t i = 0; i < 3; i++)
        if (onnx_input(c, tables[i]) != NULL && c->inputs[tables[i]]->rank != 2)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "a table of %u dimensions, must be 2",
                                     c->inputs[tables[i]]->rank);
    for (uint32_t i = 0; i < 4; i++)
        if (onnx_input(c, numbers[i]) != NULL && c->inputs[numbers[i]]->rank != 2)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "words, segments, mask or positions of %u "
                                                                   "dimensions, must be 2",
                                     c->inputs[numbers[i]]->rank);
    if (onnx_input(c, POSITIONS) == NULL && words->dims[1] > places->dims[0])
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%llu words, but %llu positions",
                                 (unsigned long long)words->dims[1], (unsigned long long)places->dims[0]);
    const uint32_t none[2] = { 0, 0 }, first[2] = { (uint32_t)words->dims[1], (uint32_t)places->dims[1] };
    const opjit_tensor position = onnx_input(c, POSITIONS) != NULL
                                      ? embedded(m, c, POSITIONS, POSITION_TABLE)
                                      : opjit_graph_slice(g, onnx_tensor_of(m, c, POSITION_TABLE), none, first, NULL);
    opjit_tensor t = opjit_graph_add(g, embedded(m, c, WORDS, WORD_TABLE), position);
    if (onnx_input(c, SEGMENTS) != NULL && onnx_input(c, SEGMENT_TABLE) != NULL)
        t = opjit_graph_add(g, t, embedded(m, c, SEGMENTS, SEGMENT_TABLE));
    const opjit_tensor y = normalized(m, t, broadcast_to(m, c, SCALE, t), broadcast_to(m, c, BIAS, t), axes, 1,
                                      opjit_onnx_float(m, c, "epsilon", 1e-12f));
    const uint64_t batch[1] = { words->dims[0] };
    const uint32_t sizes[1] = { (uint32_t)batch[0] };
    if (onnx_wants(c, 1))
        TRY(opjit_onnx_give_as(
            m, c, 1,
            onnx_input(c, MASK) == NULL
                ? opjit_graph_fill(g, DML_TENSOR_DATA_TYPE_INT32, 1, sizes, 0)
                : opjit_graph_reduce(g, onnx_tensor_of(m, c, MASK), DML_REDUCE_FUNCTION_SUM, 1, along),
            ONNX_INT32, 1, batch));
    if (onnx_wants(c, 2))
        TRY(opjit_onnx_give(m, c, 2, t, c->inputs[WORD_TABLE]->type, 3));
    return opjit_onnx_give(m, c, 0, y, c->inputs[WORD_TABLE]->type, 3);
}

/* x / sqrt(mean(x^2) + epsilon) * scale, from the axis on; com.microsoft's SkipSimplifiedLayerNormalization (arg 1) of
 * the sum of inputs 0 and 1. */
opjit_status opjit_onnx_rms_normalization(onnx_import *m, onnx_call *c)
{
    const bool skip = c->row->arg == 1;
    uint32_t axes[ONNX_RANK], count = 0, axis;
    TRY(opjit_onnx_need(m, c, skip ? 3 : 2));
    const onnx_value *const x = c->inputs[0];
    opjit_graph *const g = m->graph;
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", -1), x->rank, &axis));
    opjit_tensor t = onnx_tensor_of(m, c, 0);
    if (skip)
        t = opjit_graph_add(g, t, onnx_tensor_of(m, c, 1));
    if (skip && onnx_input(c, 3) != NULL)
        t = opjit_graph_add(g, t, onnx_tensor_of(m, c, 3));
    for (uint32_t d = axis; d < x->rank; d++)
        axes[count++] = d;
    const opjit_tensor mean =
        opjit_graph_reduce(g, opjit_graph_multiply(g, t, t), DML_REDUCE_FUNCTION_AVERAGE, count, axes);
    const float epsilon = opjit_onnx_float(m, c, "epsilon", 1e-5f);
    opjit_tensor y = opjit_graph_divide(
        g, t, opjit_graph_sqrt(g, opjit_graph_add(g, mean, opjit_onnx_scalar(m, x->type, epsilon))));
    y = opjit_graph_multiply(g, y, onnx_tensor_of(m, c, skip ? 2 : 1));
    if (skip && onnx_wants(c, 3))
        TRY(opjit_onnx_give(m, c, 3, t, x->type, x->rank));
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}

/* Groups of channels are normalised together; scale and bias are per channel (opset 21) or per group (18). */
opjit_status opjit_onnx_group_normalization(onnx_import *m, onnx_call *c)
{
    static const uint32_t axes[1] = { 2 };
    uint64_t flat[3];
    TRY(opjit_onnx_need(m, c, 3));
    const onnx_value *const x = c->inputs[0];
    const int64_t groups = opjit_onnx_int(m, c, "num_groups", 0);
    if (x->rank < 2 || x->dims[0] == 0 || groups < 1 || x->dims[1] % (uint64_t)groups != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute num_groups: %lld, must divide the channels",
                                 (long long)groups);
    opjit_graph *const g = m->graph;
    flat[0] = x->dims[0];
    flat[1] = (uint64_t)groups;
    flat[2] = opjit_onnx_elements_of(x) / flat[0] / flat[1];
    const opjit_tensor null = { 0, 0 };
    opjit_tensor y = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 3, flat);
    y = normalized(m, y, null, null, axes, 1, opjit_onnx_float(m, c, "epsilon", 1e-5f));
    for (uint32_t i = 1; i < 3; i++) {
        const bool by_group = opjit_onnx_elements_of(c->inputs[i]) == (uint64_t)groups && m->opset < 21;
        const uint32_t rank = by_group ? 3 : x->rank;
        y = opjit_onnx_reshape(m, y, rank, by_group ? flat : x->dims);
        const opjit_tensor v = opjit_onnx_vector(m, c, i, rank, 1);
        y = i == 1 ? opjit_graph_multiply(g, y, v) : opjit_graph_add(g, y, v);
    }
    return opjit_onnx_give_as(m, c, 0, y, x->type, x->rank, x->dims);
}

opjit_status opjit_onnx_mean_variance(onnx_import *m, onnx_call *c)
{
    uint32_t axes[ONNX_RANK], count;
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    const opjit_tensor null = { 0, 0 };
    TRY(opjit_onnx_axes(m, c, "axes", -1, x->rank, axes, &count));
    if (count == 0)
        for (uint32_t d = 0; d < x->rank; d++)
            if (d != 1)
                axes[count++] = d;
    const opjit_tensor y = normalized(m, onnx_tensor_of(m, c, 0), null, null, axes, count, 1e-9f);
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}

opjit_status opjit_onnx_lp_normalization(onnx_import *m, onnx_call *c)
{
    uint32_t axis;
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", -1), x->rank, &axis));
    /* The standard gives 0 where the norm is 0, so Epsilon is not 0. */
    const DML_LP_NORMALIZATION_OPERATOR_DESC desc = { NULL, NULL, axis, 1e-30f,
                                                      (uint32_t)opjit_onnx_int(m, c, "p", 2) };
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    return opjit_onnx_give(m, c, 0, opjit_graph_op(m->graph, DML_OPERATOR_LP_NORMALIZATION, &desc, &t, 1), x->type,
                           x->rank);
}

opjit_status opjit_onnx_lrn(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    const int64_t size = opjit_onnx_int(m, c, "size", 0);
    if (x->rank < 2 || size < 1 || size > INT32_MAX)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "attribute size: %lld, must be 1 to 2^31 - 1, of two dimensions or more",
                                 (long long)size);
    const DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC desc = {
        NULL, NULL, 1, (uint32_t)size, opjit_onnx_float(m, c, "alpha", 1e-4f), opjit_onnx_float(m, c, "beta", 0.75f),
        opjit_onnx_float(m, c, "bias", 1)
    };
    uint64_t four[4] = { x->dims[0], x->dims[1], 1, 1 };
    for (uint32_t d = 2; d < x->rank; d++)
        four[3] *= x->dims[d];
    const opjit_tensor t = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 4, four);
    return opjit_onnx_give_as(m, c, 0,
                              opjit_graph_op(m->graph, DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION, &desc, &t, 1),
                              x->type, x->rank, x->dims);
}
