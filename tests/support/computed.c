/* SPDX-License-Identifier: Apache-2.0 */
/* computed.c - the rows: how each operator's descriptor is drawn, of the pieces of computed_draw.h. */
#include "tests/support/computed_draw.h"

/* --- running sums and products ------------------------------------------------------------------------------------ */

static void draw_running(computed_draw *d)
{
    const bool rows = chance(d, 40);
    draw_tensors(d, d->r != NULL && test_random_chance(d->r, 10) ? 12000 : 500, rows);
    d->c->desc.running = (DML_CUMULATIVE_SUMMATION_OPERATOR_DESC){ &d->c->inputs[0].desc, &d->c->output.desc,
                                                                   rows ? d->rank - 1 : below(d, d->rank),
                                                                   (DML_AXIS_DIRECTION)below(d, 2), chance(d, 50) };
}

static void running(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_cumulative(&c->desc.running, c->op.Type == DML_OPERATOR_CUMULATIVE_PRODUCT, inputs[0], outputs[0]);
}

/* --- normalizations ----------------------------------------------------------------------------------------------- */

static void draw_mvn1(computed_draw *d)
{
    draw_tensors(d, d->r != NULL && test_random_chance(d->r, 4) ? 5000 : 200, false);
    const DML_TENSOR_DESC *scale = draw_factor(d, 1), *bias = draw_factor(d, 2);
    const uint32_t count = draw_axes(d);
    d->c->desc.mvn1 = d->c->over_axes =
        (DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC){ &d->c->inputs[0].desc, scale,    bias,
                                                          &d->c->output.desc,    count,    d->c->axes,
                                                          chance(d, 70),         0x1p-10f, draw_activation(d) };
}

static void draw_mvn(computed_draw *d)
{
    draw_mvn1(d);
    DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC *same = &d->c->over_axes;
    const bool across = chance(d, 50);
    memcpy(d->c->axes, (const uint32_t[]){ 3, 2, 1 }, 3 * sizeof *d->c->axes);
    same->AxisCount = across ? 3 : 2;
    d->c->desc.mvn = (DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC){
        same->InputTensor,       same->ScaleTensor, same->BiasTensor,     same->OutputTensor, across,
        same->NormalizeVariance, same->Epsilon,     same->FusedActivation
    };
}

static void mvn(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_mean_variance_normalization1(&c->over_axes, inputs[0], inputs[1], inputs[2], outputs[0]);
}

static void draw_mvn2(computed_draw *d)
{
    draw_mvn1(d);
    const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC *same = &d->c->over_axes;
    d->c->desc.mvn2 = (DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC){ same->InputTensor,
                                                                        same->ScaleTensor,
                                                                        same->BiasTensor,
                                                                        same->OutputTensor,
                                                                        same->AxisCount,
                                                                        same->Axes,
                                                                        d->r != NULL && test_random_chance(d->r, 50),
                                                                        chance(d, 80),
                                                                        same->Epsilon,
                                                                        same->FusedActivation };
}

static void mvn2(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_mean_variance_normalization2(&c->desc.mvn2, inputs[0], inputs[1], inputs[2], outputs[0]);
}

static void draw_lp(computed_draw *d)
{
    draw_tensors(d, d->r != NULL && test_random_chance(d->r, 4) ? 12000 : 300, chance(d, 30));
    d->c->desc.lp = (DML_LP_NORMALIZATION_OPERATOR_DESC){ &d->c->inputs[0].desc, &d->c->output.desc, below(d, d->rank),
                                                          chance(d, 50) ? 0x1p-10f : 0, 1 + below(d, 2) };
}

static void lp(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_lp_normalization(&c->desc.lp, inputs[0], outputs[0]);
}

/* --- products of matrices ----------------------------------------------------------------------------------------- */

/* A matrix of the batch that the output is in, of any layout. */
static void draw_matrix(computed_draw *d, uint32_t i, bool transposed, uint32_t rows, uint32_t columns)
{
    test_tensor *t = &d->c->inputs[i];
    d->c->present[i] = true;
    test_tensor_link(t, d->type, d->rank);
    memcpy(t->sizes, d->c->output.sizes, sizeof t->sizes);
    t->sizes[d->rank - 2] = transposed ? columns : rows;
    t->sizes[d->rank - 1] = transposed ? rows : columns;
    lay_out(d, t, false);
}

static void draw_gemm(computed_draw *d)
{
    static const float factors[] = { 0, 1, -0.75f };
    const bool of_a = chance(d, 50), of_b = d->r != NULL && test_random_chance(d->r, 50),
               many = d->r != NULL && test_random_chance(d->r, 8);
    const uint32_t length = d->r == NULL ? 7 : 1 + below(d, many ? 1200 : chance(d, 20) ? 150 : 20);
    test_tensor *out = &d->c->output;
    test_tensor_link(out, d->type, d->rank);
    for (uint32_t i = 0; i < d->rank; i++) {
        const uint32_t most = i + 2 < d->rank ? 3 : many ? 24 : i + 1 < d->rank ? 40 : 70;
        out->sizes[i] = d->r == NULL ? 2 + i % 4 : 1 + below(d, most);
    }
    lay_out(d, out, true);
    const uint32_t rows = out->sizes[d->rank - 2], columns = out->sizes[d->rank - 1];
    draw_matrix(d, 0, of_a, rows, length);
    draw_matrix(d, 1, of_b, length, columns);
    const bool adds = chance(d, 60);
    if (adds)
        draw_matrix(d, 2, false, rows, columns);
    const float alpha = factors[below(d, 3)], beta = factors[below(d, 3)];
    d->c->desc.gemm = (DML_GEMM_OPERATOR_DESC){ &d->c->inputs[0].desc,
                                                &d->c->inputs[1].desc,
                                                adds ? &d->c->inputs[2].desc : NULL,
                                                &out->desc,
                                                of_a ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                                of_b ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                                alpha,
                                                beta,
                                                draw_activation(d) };
}

static void gemm(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_gemm(&c->desc.gemm, inputs, outputs[0]);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

#define ROW(NAME) .type = DML_OPERATOR_##NAME, .name = #NAME
/* clang-format off */
const computed_row computed_rows[] = {
    { ROW(CUMULATIVE_SUMMATION), { { 0x2100, 1, 8, "FL" }, { COMPUTED_NONE, 1, 8, "FLD" } }, draw_running, running },
    { ROW(CUMULATIVE_PRODUCT), { { 0x3100, 1, 8, "FL" }, { COMPUTED_NONE, 1, 8, "FLD" } }, draw_running, running },
    { ROW(MEAN_VARIANCE_NORMALIZATION), { { 0x1000, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } }, draw_mvn, mvn },
    { ROW(MEAN_VARIANCE_NORMALIZATION1),
      { { 0x2100, 4, 4, "F" }, { 0x3100, 1, 8, "F" }, { COMPUTED_NONE, 1, 8, "FD" } },
      draw_mvn1, mvn },
    { ROW(LP_NORMALIZATION), { { 0x1000, 4, 4, "F" }, { 0x3100, 1, 8, "F" }, { COMPUTED_NONE, 1, 8, "FD" } },
      draw_lp, lp },
    { ROW(MEAN_VARIANCE_NORMALIZATION2), { { 0x6300, 1, 8, "F" }, { COMPUTED_NONE, 1, 8, "FD" } }, draw_mvn2, mvn2 },
    { ROW(GEMM), { { 0x1000, 4, 4, "F" }, { 0x4000, 2, 4, "F" }, { COMPUTED_NONE, 2, 8, "FD" } }, draw_gemm, gemm },
    { ROW(MULTIHEAD_ATTENTION), { { 0x6100, 3, 5, "F" }, { COMPUTED_NONE, 3, 5, "FD" } },
      computed_draw_attention, computed_attention, .near = true },
    { ROW(MULTIHEAD_ATTENTION1), { { 0x6300, 3, 5, "F" }, { COMPUTED_NONE, 3, 5, "FD" } },
      computed_draw_attention1, computed_attention, .near = true },
    { ROW(AVERAGE_POOLING), { { 0x1000, 4, 5, "F" }, { COMPUTED_NONE, 4, 5, "FD" } }, computed_draw_average,
      computed_average },
    { ROW(AVERAGE_POOLING1), { { 0x6200, 4, 5, "F" }, { COMPUTED_NONE, 4, 5, "FD" } }, computed_draw_average,
      computed_average },
    { ROW(AVERAGE_POOLING_GRAD), { { 0x3000, 4, 5, "F" }, { COMPUTED_NONE, 4, 5, "FD" } }, computed_draw_average_grad,
      computed_average_grad },
    { ROW(QUANTIZED_LINEAR_AVERAGE_POOLING), { { 0x6200, 4, 5, "B" } }, computed_draw_quantized_average,
      computed_quantized_average },
    { ROW(LP_POOLING), { { 0x1000, 4, 5, "F" }, { COMPUTED_NONE, 4, 5, "FD" } }, computed_draw_lp_pooling,
      computed_lp_pooling },
    { ROW(LP_POOLING1), { { 0x6200, 4, 5, "F" }, { COMPUTED_NONE, 4, 5, "FD" } }, computed_draw_lp_pooling,
      computed_lp_pooling },
    { ROW(MAX_POOLING), { { 0x1000, 4, 5, "F" }, { 0x3000, 4, 5, "FB" }, { 0x5000, 4, 5, "FLSB" },
                          { COMPUTED_NONE, 4, 5, "FLSBD" } }, computed_draw_max, computed_max },
    { ROW(MAX_POOLING1), { { 0x2000, 4, 5, "F" }, { 0x3000, 4, 5, "FB" }, { 0x5000, 4, 5, "FLSB" },
                           { COMPUTED_NONE, 4, 5, "FLSBD" } }, computed_draw_max, computed_max },
    { ROW(MAX_POOLING2), { { 0x2100, 4, 5, "F" }, { 0x3000, 4, 5, "FB" }, { 0x5000, 4, 5, "FLSB" },
                           { COMPUTED_NONE, 4, 5, "FLSBD" } }, computed_draw_max, computed_max },
    { ROW(MAX_POOLING_GRAD), { { 0x3000, 4, 4, "F" }, { 0x4000, 4, 5, "F" }, { COMPUTED_NONE, 4, 5, "FD" } },
      computed_draw_max_grad, computed_max_grad },
    { ROW(RANDOM_GENERATOR), { { 0x3000, 4, 4, "U" }, { 0x4000, 1, 8, "U" } }, computed_draw_random_generator,
      computed_random_generator },
    { ROW(UPSAMPLE_2D), { { 0x1000, 4, 5, "F" }, { COMPUTED_NONE, 4, 5, "FD" } },
      computed_draw_upsample, computed_upsample },
    { ROW(RESAMPLE), { { 0x2000, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } },
      computed_draw_resample, computed_resample },
    { ROW(RESAMPLE1), { { 0x2100, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } },
      computed_draw_resample, computed_resample },
    { ROW(RESAMPLE2), { { 0x5100, 1, 4, "F" }, { 0x6200, 1, 4, "FB" }, { COMPUTED_NONE, 1, 4, "FBD" } },
      computed_draw_resample, computed_resample },
    { ROW(RESAMPLE3), { { 0x6400, 1, 4, "FB" }, { COMPUTED_NONE, 1, 4, "FBD" } },
      computed_draw_resample, computed_resample },
    { ROW(RESAMPLE_GRAD), { { 0x3000, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } },
      computed_draw_resample_grad, computed_resample_grad },
    { ROW(RESAMPLE_GRAD1), { { 0x5100, 1, 4, "F" }, { COMPUTED_NONE, 1, 4, "FD" } },
      computed_draw_resample_grad, computed_resample_grad },
    { ROW(UNFOLD), { { 0x6400, 3, 8, "FLSB" }, { COMPUTED_NONE, 3, 8, "FLSBD" } }, computed_draw_unfold,
      computed_unfold },
    { ROW(FOLD), { { 0x6400, 3, 8, "FLSB" }, { COMPUTED_NONE, 3, 8, "FLSBD" } }, computed_draw_fold, computed_fold },
    { ROW(ROI_POOLING), { { 0x1000, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } }, computed_draw_roi_pooling,
      computed_roi_pooling },
    { ROW(ROI_ALIGN), { { 0x3000, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } }, computed_draw_roi_align,
      computed_roi_align },
    { ROW(ROI_ALIGN1), { { 0x4000, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } }, computed_draw_roi_align,
      computed_roi_align },
    { ROW(ROI_ALIGN_GRAD), { { 0x4100, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } }, computed_draw_roi_align_grad,
      computed_roi_align_grad },
    { ROW(CONVOLUTION), { { 0x1000, 4, 5, "F" }, { 0x4000, 3, 5, "F" }, { COMPUTED_NONE, 3, 5, "FD" } },
      draw_convolution, run_convolution },
    { ROW(MATRIX_MULTIPLY_INTEGER), { { 0x2100, 4, 4, "B" }, { 0x4000, 2, 4, "B" }, { COMPUTED_NONE, 2, 8, "B" } },
      computed_draw_integer, computed_integer },
    { ROW(MATRIX_MULTIPLY_INTEGER_TO_FLOAT), { { 0x6200, 2, 4, "F" }, { COMPUTED_NONE, 2, 8, "FD" } },
      computed_draw_to_float, computed_to_float },
    { ROW(QUANTIZED_LINEAR_MATRIX_MULTIPLY), { { 0x2100, 4, 4, "B" }, { 0x4000, 2, 4, "B" },
                                               { COMPUTED_NONE, 2, 8, "B" } },
      computed_draw_quantized, computed_quantized },
    { ROW(CONVOLUTION_INTEGER), { { 0x2100, 4, 4, "B" }, { 0x4000, 3, 4, "B" }, { COMPUTED_NONE, 3, 5, "B" } },
      draw_convolution_integer, run_convolution_integer },
    { ROW(QUANTIZED_LINEAR_CONVOLUTION), { { 0x2100, 4, 4, "B" }, { COMPUTED_NONE, 3, 5, "B" } },
      draw_quantized_convolution, run_quantized_convolution },
    { ROW(BATCH_NORMALIZATION_TRAINING), { { 0x4100, 1, 8, "F" }, { COMPUTED_NONE, 1, 8, "FD" } },
      computed_draw_training, computed_training },
    { ROW(BATCH_NORMALIZATION_GRAD), { { 0x3100, 1, 8, "F" }, { COMPUTED_NONE, 1, 8, "FD" } },
      computed_draw_batch_grad, computed_batch_grad },
    { ROW(BATCH_NORMALIZATION_TRAINING_GRAD), { { 0x4100, 1, 8, "F" }, { COMPUTED_NONE, 1, 8, "FD" } },
      computed_draw_batch_grad, computed_batch_grad },
    { ROW(VALUE_SCALE_2D), { { 0x1000, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } },
      computed_draw_value_scale, computed_value_scale },
    { ROW(DYNAMIC_QUANTIZE_LINEAR), { { 0x4000, 1, 8, "F" }, { COMPUTED_NONE, 1, 8, "FD" } },
      computed_draw_dynamic, computed_dynamic },
    { ROW(QUANTIZE), { { 0x6300, 1, 8, "F" }, { COMPUTED_NONE, 1, 8, "FD" } }, computed_draw_quantize,
      computed_quantize },
    { ROW(DEQUANTIZE), { { 0x6300, 1, 8, "F" }, { COMPUTED_NONE, 1, 8, "FD" } }, computed_draw_quantize,
      computed_quantize },
    { ROW(LOCAL_RESPONSE_NORMALIZATION), { { 0x1000, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } },
      computed_draw_response, computed_response, .near = true },
    { ROW(LOCAL_RESPONSE_NORMALIZATION_GRAD), { { 0x3100, 4, 4, "F" }, { COMPUTED_NONE, 4, 4, "FD" } },
      computed_draw_response, computed_response, .near = true },
    { ROW(ADAM_OPTIMIZER), { { 0x3000, 4, 4, "F" }, { COMPUTED_NONE, 1, 8, "FD" } },
      computed_draw_adam, computed_adam, .near = true },
    { ROW(RNN), { { 0x1000, 4, 4, "F" } }, computed_draw_recurrent, computed_recurrent },
    { ROW(GRU), { { 0x1000, 4, 4, "F" } }, computed_draw_recurrent, computed_recurrent },
    { ROW(LSTM), { { 0x1000, 4, 4, "F" } }, computed_draw_recurrent, computed_recurrent },
    { .type = OPJIT_OPERATOR_DYNAMIC_QUANTIZE_LSTM, .name = "DYNAMIC_QUANTIZE_LSTM", { { COMPUTED_NONE, 4, 4, "F" } },
      computed_draw_quantized_lstm, computed_quantized_lstm },
    { ROW(TOP_K), { { 0x1000, 4, 4, "F" }, { 0x2100, 4, 4, "FWSB" }, { 0x3100, 1, 8, "FWSB" }, { 0x5000, 1, 8, "FLSB" },
                    { COMPUTED_NONE, 1, 8, "FLSBD" } }, computed_draw_top_k, computed_top_k },
    { ROW(TOP_K1), { { 0x2100, 4, 4, "FWSB" }, { 0x3100, 1, 8, "FWSB" }, { 0x5000, 1, 8, "FLSB" },
                     { COMPUTED_NONE, 1, 8, "FLSBD" } }, computed_draw_top_k, computed_top_k },
};
/* clang-format on */
const uint32_t computed_row_count = sizeof computed_rows / sizeof *computed_rows;

const computed_row *computed_row_of(DML_OPERATOR_TYPE type)
{
    for (uint32_t i = 0; i < computed_row_count; i++)
        if (computed_rows[i].type == type)
            return &computed_rows[i];
    return NULL;
}

static char class_of(DML_TENSOR_DATA_TYPE type)
{
    switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT32:
    case DML_TENSOR_DATA_TYPE_FLOAT16: return 'F';
    case DML_TENSOR_DATA_TYPE_FLOAT64: return 'D';
    case DML_TENSOR_DATA_TYPE_UINT64:
    case DML_TENSOR_DATA_TYPE_INT64:
    case DML_TENSOR_DATA_TYPE_UINT32:
    case DML_TENSOR_DATA_TYPE_INT32: return 'L';
    case DML_TENSOR_DATA_TYPE_UINT8:
    case DML_TENSOR_DATA_TYPE_INT8: return 'B';
    default: return 'S';
    }
}

static const computed_support *support_at(const computed_row *row, uint32_t level)
{
    const computed_support *found = NULL;
    for (uint32_t i = 0; i < sizeof row->support / sizeof *row->support && row->support[i].types != NULL; i++)
        if (row->support[i].level <= (level == 0 ? COMPUTED_NONE : level))
            found = &row->support[i];
    return found;
}

static bool has_type(const computed_support *s, DML_TENSOR_DATA_TYPE type)
{
    const bool word = class_of(type) == 'L' && ref_dtype_size(type) == 4;
    return strchr(s->types, class_of(type)) != NULL || (word && strchr(s->types, 'W') != NULL) ||
           (type == DML_TENSOR_DATA_TYPE_UINT32 && strchr(s->types, 'U') != NULL);
}

bool computed_allows(const computed_row *row, uint32_t level, uint32_t rank, DML_TENSOR_DATA_TYPE type)
{
    const computed_support *s = support_at(row, level);
    return s != NULL && rank >= s->rank_min && rank <= s->rank_max && has_type(s, type);
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

static void make(computed_draw *d, const computed_row *row)
{
    memset(d->c, 0, sizeof *d->c);
    d->c->op = (DML_OPERATOR_DESC){ row->type, &d->c->desc };
    row->draw(d);
}

void computed_case_random(test_random *r, const computed_row *row, computed_case *out)
{
    const computed_support *s = support_at(row, 0);
    computed_draw d = { .r = r, .c = out };
    do
        d.type = test_types[test_random_below(r, TEST_TYPE_COUNT)];
    while (!has_type(s, d.type));
    const uint32_t most = s->rank_max > s->rank_min + 4 && !test_random_chance(r, 10) ? s->rank_min + 3 : s->rank_max;
    d.rank = s->rank_min + (uint32_t)test_random_below(r, most - s->rank_min + 1);
    make(&d, row);
}

void computed_case_plain(const computed_row *row, uint32_t rank, DML_TENSOR_DATA_TYPE type, computed_case *out)
{
    make(&(computed_draw){ .c = out, .type = type, .rank = rank }, row);
}

operator_case computed_case_of(const computed_row *row, const computed_case *c)
{
    operator_case of = { .op = &c->op,
                         .outputs = { c->output_absent ? NULL : &c->output },
                         .low = -5,
                         .high = 7, /* products vanish or overflow slowly */
                         .whole = row->near || row->draw == computed_draw_recurrent || row->support[0].types[0] == 'B'
                                      ? 8
                                      : 1,
                         .reference = row->reference,
                         .near = row->near,
                         .user = c };
    for (uint32_t i = 0; i < OPERATOR_INPUTS; i++)
        of.inputs[i] = c->present[i] ? &c->inputs[i] : NULL;
    for (uint32_t i = 1; i < OPERATOR_OUTPUTS; i++)
        of.outputs[i] = c->more_present[i - 1] ? &c->more[i - 1] : NULL;
    return of;
}
