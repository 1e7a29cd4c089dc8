/* SPDX-License-Identifier: Apache-2.0 */
/* computed_draw.h - what draws of computed.c's rows are made of.  What is drawn by chance is, in the plain case, the
 * most there can be. */
#ifndef OPJIT_TESTS_SUPPORT_COMPUTED_DRAW_H
#define OPJIT_TESTS_SUPPORT_COMPUTED_DRAW_H

#include <string.h>

#include "tests/support/computed.h"

static inline bool chance(computed_draw *d, unsigned percent)
{
    return d->r == NULL || test_random_chance(d->r, percent);
}

static inline uint32_t below(computed_draw *d, uint32_t bound)
{
    return d->r == NULL ? bound - 1 : (uint32_t)test_random_below(d->r, bound);
}

static inline void lay_out(computed_draw *d, test_tensor *t, bool is_output)
{
    if (d->r == NULL)
        test_tensor_measure(t);
    else
        test_tensor_random_layout(d->r, t, is_output);
}

/* Input 0 and the output: of one shape. */
static inline void draw_tensors(computed_draw *d, uint64_t most, bool rows)
{
    test_tensor *in = &d->c->inputs[0], *out = &d->c->output;
    d->c->present[0] = true;
    test_tensor_link(in, d->type, d->rank);
    test_tensor_link(out, d->type, d->rank);
    for (uint32_t i = 0; i < d->rank && d->r == NULL; i++)
        in->sizes[i] = 2 + i % 4;
    if (d->r != NULL)
        test_tensor_random_sizes(d->r, in, most);
    if (d->r != NULL && rows) { /* around the length of a round, or of several */
        for (uint32_t i = 0; i + 1 < d->rank; i++)
            in->sizes[i] = 1 + below(d, d->rank > 4 ? 2 : 3);
        in->sizes[d->rank - 1] = 1 + below(d, chance(d, 70) ? 40 : 300);
    }
    memcpy(out->sizes, in->sizes, sizeof out->sizes);
    lay_out(d, in, false);
    lay_out(d, out, true);
}

/* An input some of whose sizes are 1 where input 0's are not; NULL: it is absent. */
static inline const DML_TENSOR_DESC *draw_factor(computed_draw *d, uint32_t i)
{
    test_tensor *t = &d->c->inputs[i];
    d->c->present[i] = chance(d, 60);
    if (!d->c->present[i])
        return NULL;
    test_tensor_link(t, d->type, d->rank);
    for (uint32_t k = 0; k < d->rank; k++)
        t->sizes[k] = (d->r == NULL ? k == 0 : chance(d, 50)) ? 1 : d->c->inputs[0].sizes[k];
    lay_out(d, t, false);
    return &t->desc;
}

/* Some axes, at least one, the last first; how many. */
static inline uint32_t draw_axes(computed_draw *d)
{
    uint32_t count = 0;
    for (uint32_t k = d->rank; k-- > 0;)
        if (d->r == NULL ? k > 0 || d->rank == 1 : chance(d, 50) || (k == 0 && count == 0))
            d->c->axes[count++] = k;
    return count;
}

/* RELU or none, which is all that references know. */
static inline const DML_OPERATOR_DESC *draw_activation(computed_draw *d)
{
    d->c->relu = (DML_OPERATOR_DESC){ DML_OPERATOR_ACTIVATION_RELU, &d->c->relu_desc };
    return chance(d, 30) ? &d->c->relu : NULL;
}

/* --- random numbers (computed_random.c) --------------------------------------------------------------------------- */
void computed_draw_random_generator(computed_draw *d);
void computed_random_generator(const void *user, const void *const *inputs, void *const *outputs);

/* --- resampling (computed_resample.c) ----------------------------------------------------------------------------- */
void computed_draw_upsample(computed_draw *d);
void computed_upsample(const void *user, const void *const *inputs, void *const *outputs);
void computed_draw_resample(computed_draw *d);
void computed_draw_resample_grad(computed_draw *d);
void computed_resample(const void *user, const void *const *inputs, void *const *outputs);
void computed_resample_grad(const void *user, const void *const *inputs, void *const *outputs);

/* --- quantized blocks (computed_quantize.c) ----------------------------------------------------------------------- */
void computed_draw_quantize(computed_draw *d);
void computed_quantize(const void *user, const void *const *inputs, void *const *outputs);

/* --- regions (computed_roi.c) ------------------------------------------------------------------------------------- */
void computed_draw_roi_pooling(computed_draw *d);
void computed_roi_pooling(const void *user, const void *const *inputs, void *const *outputs);
void computed_draw_roi_align(computed_draw *d);
void computed_roi_align(const void *user, const void *const *inputs, void *const *outputs);
void computed_draw_roi_align_grad(computed_draw *d);
void computed_roi_align_grad(const void *user, const void *const *inputs, void *const *outputs);

/* --- windows (computed_window.c) ---------------------------------------------------------------------------------- */
void computed_draw_average(computed_draw *d);
void computed_draw_average_grad(computed_draw *d);
void computed_draw_quantized_average(computed_draw *d);
void computed_draw_lp_pooling(computed_draw *d);
void computed_draw_max(computed_draw *d);
void computed_draw_max_grad(computed_draw *d);
void computed_draw_unfold(computed_draw *d);
void computed_draw_fold(computed_draw *d);
void computed_average(const void *user, const void *const *inputs, void *const *outputs);
void computed_average_grad(const void *user, const void *const *inputs, void *const *outputs);
void computed_quantized_average(const void *user, const void *const *inputs, void *const *outputs);
void computed_lp_pooling(const void *user, const void *const *inputs, void *const *outputs);
void computed_max(const void *user, const void *const *inputs, void *const *outputs);
void computed_max_grad(const void *user, const void *const *inputs, void *const *outputs);
void computed_unfold(const void *user, const void *const *inputs, void *const *outputs);
void computed_fold(const void *user, const void *const *inputs, void *const *outputs);

/* --- recurrent networks (computed_recurrent.c) -------------------------------------------------------------------- */
void computed_draw_recurrent(computed_draw *d);
void computed_recurrent(const void *user, const void *const *inputs, void *const *outputs);
void computed_draw_quantized_lstm(computed_draw *d);
void computed_quantized_lstm(const void *user, const void *const *inputs, void *const *outputs);

/* --- rows whose draws have files of their own --------------------------------------------------------------------- */
void draw_convolution(computed_draw *d);
void draw_convolution_integer(computed_draw *d);
void draw_quantized_convolution(computed_draw *d);
void computed_draw_integer(computed_draw *d);
void computed_draw_to_float(computed_draw *d);
void computed_draw_quantized(computed_draw *d);
void run_convolution(const void *user, const void *const *inputs, void *const *outputs);
void run_convolution_integer(const void *user, const void *const *inputs, void *const *outputs);
void run_quantized_convolution(const void *user, const void *const *inputs, void *const *outputs);
void computed_integer(const void *user, const void *const *inputs, void *const *outputs);
void computed_to_float(const void *user, const void *const *inputs, void *const *outputs);
void computed_quantized(const void *user, const void *const *inputs, void *const *outputs);

/* --- attention (computed_attention.c) ----------------------------------------------------------------------------- */
void computed_draw_attention(computed_draw *d);
void computed_draw_attention1(computed_draw *d);
void computed_attention(const void *user, const void *const *inputs, void *const *outputs);

/* --- normalizations for training, and the like (computed_batch.c) ------------------------------------------------- */
void computed_draw_training(computed_draw *d);
void computed_draw_batch_grad(computed_draw *d);
void computed_draw_value_scale(computed_draw *d);
void computed_draw_dynamic(computed_draw *d);
void computed_draw_response(computed_draw *d);
void computed_draw_adam(computed_draw *d);
void computed_draw_top_k(computed_draw *d);
void computed_training(const void *user, const void *const *inputs, void *const *outputs);
void computed_batch_grad(const void *user, const void *const *inputs, void *const *outputs);
void computed_value_scale(const void *user, const void *const *inputs, void *const *outputs);
void computed_dynamic(const void *user, const void *const *inputs, void *const *outputs);
void computed_response(const void *user, const void *const *inputs, void *const *outputs);
void computed_adam(const void *user, const void *const *inputs, void *const *outputs);
void computed_top_k(const void *user, const void *const *inputs, void *const *outputs);

#endif
