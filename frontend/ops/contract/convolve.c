/* SPDX-License-Identifier: Apache-2.0 */
/* convolve.c - sizes and coordinates of convolutions.
 *
 * Forward, step j of a window reads the input at y * stride + j * dilation - start padding.  Backward, an element of
 * the input adds to the outputs at i * stride + k * dilation - start padding; so an output's step j, of tap k = K - 1 -
 * j, reads i = (y + start padding - k * dilation) / stride, which ascends with j, and reads nothing where that is no
 * whole number.
 *
 * With a stride and no dilation, outputs y = m * stride + r of one remainder r (a phase) have the same taps that read
 * anything: k = (r + start padding) mod stride + n * stride.  So the sums are a tensor with the phases as dimensions of
 * their own, in front of the spatial ones, which have one m each: [batch, channel, r ..., m ...]. */
#include "frontend/ops/contract/convolve.h"

#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "ir/eval/numerics.h"

#include <string.h>

enum { BATCH, CHANNEL, SPACE }; /* dimensions */
/* Sizes larger than any legal one, small enough to be added and multiplied. */
#define HUGE_SIZE (UINT64_C(1) << 36)
/* OutputPadding below this keeps coordinates far from the end of an index's range. */
#define MOST_PADDING ((1u << 30) - 1)

static bool is_backward(const fe_convolution *c)
{
    return c->direction == DML_CONVOLUTION_DIRECTION_BACKWARD;
}

/* a * b + 1, at most HUGE_SIZE */
static uint64_t reach(uint64_t a, uint64_t b)
{
    const uint64_t product = a * b; /* factors are below 2^32 */

    return product < HUGE_SIZE ? product + 1 : HUGE_SIZE;
}

/* The output's size in spatial dimension i; 0: the window does not fit. */
static uint64_t size_of(const fe_convolution *c, uint32_t i, uint64_t input, uint64_t filter)
{
    const uint64_t window = reach(filter - 1, c->dilations[i]), cut = (uint64_t)c->start[i] + c->end[i];
    const uint64_t more = c->output == NULL ? 0 : c->output[i];

    if (is_backward(c)) {
        const uint64_t whole = reach(input - 1, c->strides[i]) + window - 1 + more;
        return whole > cut ? whole - cut : 0;
    }
    return input + cut < window ? 0 : (input + cut - window) / c->strides[i] + 1 + more;
}

/* --- validation --------------------------------------------------------------------------------------------------- */

static opjit_status check_fields(const opjit_operator *op, const fe_convolution *c, opjit_error *error)
{
    const uint32_t space = op->outputs[0].rank - SPACE;

    if (c->dimensions != space)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {DimensionCount}: {%u}, must be %u, the dimensions behind the channels",
                               op->def->name, c->dimensions, space);
    for (uint32_t i = 0; i < space; i++) {
        TRY(opjit_fe_check_entry(op, "Strides", i, c->strides[i], 1, UINT32_MAX, "", error));
        TRY(opjit_fe_check_entry(op, "Dilations", i, c->dilations[i], 1, UINT32_MAX, "", error));
        if (c->output != NULL)
            TRY(opjit_fe_check_entry(op, "OutputPadding", i, c->output[i], 0, MOST_PADDING, "", error));
    }
    return OPJIT_OK;
}

/* Channels of input, filter and output; all groups have as many. */
static opjit_status check_groups(const opjit_operator *op, const fe_convolution *c, uint32_t filter, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[0], *of = &op->inputs[filter], *out = &op->outputs[0];
    const uint64_t ins = in->sizes[CHANNEL], outs = out->sizes[CHANNEL];

    if (c->groups == 0 || ins % c->groups != 0 || outs % c->groups != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {GroupCount}: {%u}, must divide %u and %u, the channels of %s and OutputTensor",
                               op->def->name, c->groups, (unsigned)ins, (unsigned)outs, op->input_names[0]);
    const uint64_t first = is_backward(c) ? ins : outs, second = (is_backward(c) ? outs : ins) / c->groups;
    TRY(opjit_fe_check_size(op, op->input_names[filter], of, 0, first,
                            is_backward(c) ? ", InputTensor's channels" : ", OutputTensor's channels", error));
    return opjit_fe_check_size(
        op, op->input_names[filter], of, 1, second,
        is_backward(c) ? ", OutputTensor's channels of a group" : ", InputTensor's channels of a group", error);
}

opjit_status opjit_fe_check_convolution(const opjit_operator *op, const fe_convolution *c, uint32_t filter,
                                        opjit_error *error)
{
    const fe_tensor *in = &op->inputs[0], *of = &op->inputs[filter], *out = &op->outputs[0];

    TRY(opjit_fe_check_rank(op, op->input_names[0], in, out->rank, " as OutputTensor.DimensionCount", error));
    TRY(opjit_fe_check_rank(op, op->input_names[filter], of, out->rank, " as OutputTensor.DimensionCount", error));
    TRY(check_fields(op, c, error));
    TRY(opjit_fe_check_size(op, op->input_names[0], in, BATCH, out->sizes[BATCH], " as OutputTensor.Sizes", error));
    TRY(check_groups(op, c, filter, error));
    for (uint32_t i = 0; i < c->dimensions; i++) {
        const uint64_t size = size_of(c, i, in->sizes[SPACE + i], of->sizes[SPACE + i]);
        if (size == 0)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{%s} {%s.Sizes[%u]}: {%u}, which leaves nothing of OutputTensor", op->def->name,
                                   op->input_names[filter], SPACE + i, (unsigned)of->sizes[SPACE + i]);
        TRY(opjit_fe_check_size(op, "OutputTensor", out, SPACE + i, size, ", which follows from the other sizes",
                                error));
    }
    return OPJIT_OK;
}

opjit_status opjit_fe_check_channels(const opjit_operator *op, uint32_t i, uint64_t channels, bool or_one,
                                     opjit_error *error)
{
    const fe_tensor *t = &op->inputs[i];

    if (!t->present)
        return OPJIT_OK;
    TRY(opjit_fe_check_rank(op, op->input_names[i], t, op->outputs[0].rank, " as OutputTensor.DimensionCount", error));
    for (uint32_t d = 0; d < t->rank; d++)
        if (d != CHANNEL || !or_one || t->sizes[d] != 1)
            TRY(opjit_fe_check_size(op, op->input_names[i], t, d, d == CHANNEL ? channels : 1,
                                    d == CHANNEL ? ", the output's channels" : "", error));
    return OPJIT_OK;
}

void opjit_fe_infer_convolution(op_inference *s, const fe_convolution *c, uint32_t filter)
{
    const op_shape *in = &s->inputs[0], *of = &s->inputs[filter];
    op_shape made = *in;

    if (in->rank <= SPACE || of->rank != in->rank || c->dimensions != in->rank - SPACE)
        return;
    made.sizes[CHANNEL] = is_backward(c) ? of->sizes[1] * c->groups : of->sizes[0];
    for (uint32_t i = 0; i < c->dimensions; i++)
        made.sizes[SPACE + i] = c->strides[i] == 0 ? 0 : size_of(c, i, in->sizes[SPACE + i], of->sizes[SPACE + i]);
    infer_shape(&s->outputs[0], &made);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static uint64_t taps_of(const fe_tensor *filter)
{
    uint64_t taps = 1;

    for (uint32_t d = SPACE; d < filter->rank; d++)
        taps *= filter->sizes[d];
    return taps;
}

/* The input's channels in a group. */
static uint64_t depth_of(const op_lowering *l, const fe_convolution *c)
{
    return l->op->inputs[0].sizes[CHANNEL] / c->groups;
}

/* Whether outputs of dimension i are sorted by phases. */
static bool has_phases(const op_lowering *l, const fe_convolution *c, uint32_t filter, uint32_t i)
{
    return is_backward(c) && c->strides[i] > 1 && c->dilations[i] == 1 && l->op->outputs[0].sizes[SPACE + i] > 1 &&
           taps_of(&l->op->inputs[filter]) <= IR_REDUCE_BLOCK;
}

/* The taps along dimension i that an element's sum has. */
static uint64_t taps_along(const op_lowering *l, const fe_convolution *c, uint32_t filter, uint32_t i)
{
    const uint64_t taps = l->op->inputs[filter].sizes[SPACE + i];

    return has_phases(l, c, filter, i) ? (taps + c->strides[i] - 1) / c->strides[i] : taps;
}

/* The steps of a channel. */
static uint64_t steps_of(const op_lowering *l, const fe_convolution *c, uint32_t filter)
{
    uint64_t steps = 1;

    for (uint32_t i = 0; i < c->dimensions; i++)
        steps *= taps_along(l, c, filter, i);
    return steps;
}

uint64_t opjit_fe_convolution_steps(const op_lowering *l, const fe_convolution *c, uint32_t filter)
{
    return depth_of(l, c) * steps_of(l, c, filter);
}

/* Blocks of less than a channel only where a window is longer than any block may be. */
uint16_t opjit_fe_convolution_block(const op_lowering *l, const fe_convolution *c, uint32_t filter)
{
    const uint64_t taps = taps_of(&l->op->inputs[filter]), channels = taps < IR_DOT_BLOCK ? IR_DOT_BLOCK / taps : 1;
    const uint64_t steps = steps_of(l, c, filter) * channels;

    return (uint16_t)(steps < IR_REDUCE_BLOCK ? steps : IR_REDUCE_BLOCK);
}

static ir_ref over(ir_func *f, ir_ref x, uint64_t divisor)
{
    return ir_expr2(f, IR_IDIV, IR_INDEX, x, opjit_ir_index(f, (int64_t)divisor));
}

static ir_ref modulo(ir_func *f, ir_ref x, uint64_t divisor)
{
    return ir_expr2(f, IR_IMOD, IR_INDEX, x, opjit_ir_index(f, (int64_t)divisor));
}

void opjit_fe_convolution_sums(const op_lowering *l, const fe_convolution *c, uint32_t filter, fe_tensor *out)
{
    uint32_t phases = 0;

    *out = l->op->outputs[0];
    for (uint32_t i = 0; i < c->dimensions; i++)
        phases += has_phases(l, c, filter, i);
    out->rank += phases;
    for (uint32_t i = c->dimensions, p = SPACE + phases; i-- > 0;) {
        const uint64_t size = l->op->outputs[0].sizes[SPACE + i], stride = c->strides[i];
        out->sizes[SPACE + phases + i] = size;
        if (!has_phases(l, c, filter, i))
            continue;
        out->sizes[SPACE + phases + i] = (size + stride - 1) / stride;
        out->sizes[--p] = size < stride ? size : stride;
    }
}

void opjit_fe_convolution_at(op_lowering *l, const fe_convolution *c, uint32_t filter, const ir_ref *at, ir_ref *sums)
{
    uint32_t next = SPACE;

    memset(sums, 0, OPJIT_MAX_RANK * sizeof *sums);
    sums[BATCH] = at[BATCH];
    sums[CHANNEL] = at[CHANNEL];
    for (uint32_t i = 0; i < c->dimensions; i++)
        if (has_phases(l, c, filter, i))
            sums[next++] = modulo(l->f, at[SPACE + i], c->strides[i]);
    for (uint32_t i = 0; i < c->dimensions; i++)
        sums[next++] = has_phases(l, c, filter, i) ? over(l->f, at[SPACE + i], c->strides[i]) : at[SPACE + i];
}

/* Whether both are true; 0: the one that is. */
static ir_ref both(ir_func *f, ir_ref a, ir_ref b)
{
    return a == 0 ? b : b == 0 ? a : ir_expr2(f, IR_AND, IR_BOOL, a, b);
}

/* The same for step j of the outputs m * stride + phase. */
static void phase_tap(op_lowering *l, const fe_convolution *c, uint32_t filter, uint32_t i, ir_ref phase, ir_ref m,
                      ir_ref j, fe_tap *out)
{
    ir_func *f = l->f;
    const uint64_t taps = l->op->inputs[filter].sizes[SPACE + i], stride = c->strides[i];
    const int64_t last = (int64_t)taps_along(l, c, filter, i) - 1;
    const ir_ref from = moves_add(f, phase, c->start[i]);
    const ir_ref before = ir_expr2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, last), j);
    const ir_ref tap = ir_expr2(f, IR_IADD, IR_INDEX, modulo(f, from, stride), moves_mul(f, before, (int64_t)stride));
    const ir_ref x = ir_expr2(f, IR_ISUB, IR_INDEX, ir_expr2(f, IR_IADD, IR_INDEX, m, over(f, from, stride)), before);

    out->filter[SPACE + i] = c->mode != DML_CONVOLUTION_MODE_CONVOLUTION
                                 ? tap
                                 : ir_expr2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, (int64_t)taps - 1), tap);
    out->input[SPACE + i] = x;
    if (taps % stride != 0)
        out->inside = both(f, out->inside, ir_expr2(f, IR_LT, IR_BOOL, tap, opjit_ir_index(f, (int64_t)taps)));
    out->inside = both(f, out->inside, opjit_fe_between(f, x, 0, l->op->inputs[0].sizes[SPACE + i]));
}

/* Input and filter in spatial dimension i, for step j there of the output's element y. */
static void spatial_tap(op_lowering *l, const fe_convolution *c, uint32_t filter, uint32_t i, ir_ref y, ir_ref j,
                        fe_tap *out)
{
    ir_func *f = l->f;
    const uint64_t size = l->op->inputs[0].sizes[SPACE + i], taps = l->op->inputs[filter].sizes[SPACE + i];
    const ir_ref other = ir_expr2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, (int64_t)taps - 1), j);
    const bool flipped = (c->mode == DML_CONVOLUTION_MODE_CONVOLUTION) != is_backward(c);
    ir_ref x, inside;

    out->filter[SPACE + i] = flipped ? other : j;
    if (is_backward(c)) {
        const ir_ref from =
            ir_expr2(f, IR_ISUB, IR_INDEX, moves_add(f, y, c->start[i]), moves_mul(f, other, c->dilations[i]));
        const ir_ref rest = modulo(f, from, c->strides[i]);
        x = over(f, from, c->strides[i]);
        inside = ir_expr2(f, IR_AND, IR_BOOL, ir_expr2(f, IR_EQ, IR_BOOL, rest, opjit_ir_index(f, 0)),
                          opjit_fe_between(f, x, 0, size));
    } else {
        x = moves_add(f,
                      ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, y, c->strides[i]), moves_mul(f, j, c->dilations[i])),
                      -(int64_t)c->start[i]);
        inside = opjit_fe_between(f, x, 0, size);
    }
    out->input[SPACE + i] = x;
    out->inside = both(f, out->inside, inside);
}

void opjit_fe_convolution_tap(op_lowering *l, const fe_convolution *c, uint32_t filter, const ir_ref *at, ir_ref k,
                              fe_tap *out)
{
    ir_func *f = l->f;
    const uint64_t outs = l->op->outputs[0].sizes[CHANNEL] / c->groups, depth = depth_of(l, c);
    uint64_t below = steps_of(l, c, filter);
    const ir_ref channel = over(f, k, below), group = over(f, at[CHANNEL], outs);
    uint32_t phases = 0;

    out->inside = 0;
    out->input[BATCH] = at[BATCH];
    out->input[CHANNEL] = ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, group, (int64_t)depth), channel);
    out->filter[0] = is_backward(c) ? out->input[CHANNEL] : at[CHANNEL];
    out->filter[1] = is_backward(c) ? modulo(f, at[CHANNEL], outs) : channel;
    for (uint32_t i = 0; i < c->dimensions; i++)
        phases += has_phases(l, c, filter, i);
    for (uint32_t i = 0, p = SPACE; i < c->dimensions; i++) {
        const uint64_t taps = taps_along(l, c, filter, i);
        below /= taps;
        const ir_ref y = at[SPACE + phases + i], j = modulo(f, over(f, k, below), taps);
        if (has_phases(l, c, filter, i))
            phase_tap(l, c, filter, i, at[p++], y, j, out);
        else
            spatial_tap(l, c, filter, i, y, j, out);
    }
}
