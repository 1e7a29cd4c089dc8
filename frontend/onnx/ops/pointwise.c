/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.c - operators that compute each element from the elements at its place. */
#include <float.h>
#include <math.h>

#include "frontend/onnx/ops/ops.h"

static DML_OPERATOR_TYPE type_of(const onnx_call *c)
{
    return (DML_OPERATOR_TYPE)c->row->arg;
}

/* Gives a tensor without elements where an input has none: they are constants, and computed by nobody. */
static bool give_empty(onnx_import *m, onnx_call *c, int32_t type)
{
    onnx_value y = { .type = type, .dims = { 1, 1, 1, 1, 1, 1, 1, 1 } };
    bool empty = false;
    for (uint32_t i = 0; i < c->input_count; i++) {
        const onnx_value *const v = onnx_input(c, i);
        for (uint32_t d = 0; v != NULL && d < v->rank; d++) {
            uint64_t *const size = &y.dims[ONNX_RANK - v->rank + d];
            *size = v->dims[d] == 1 ? *size : v->dims[d];
            empty = empty || v->dims[d] == 0;
        }
        y.rank = v != NULL && v->rank > y.rank ? v->rank : y.rank;
    }
    if (empty)
        (void)opjit_onnx_give_nothing(m, c, 0, type, y.rank, y.dims + ONNX_RANK - y.rank);
    return empty;
}

/* Output 0 is the operator over input 0, of the input's type. */
static opjit_status give_unary(onnx_import *m, onnx_call *c, DML_OPERATOR_TYPE type, const void *desc)
{
    TRY(opjit_onnx_need(m, c, 1));
    if (give_empty(m, c, c->inputs[0]->type))
        return m->error->status;
    const opjit_tensor x = onnx_tensor_of(m, c, 0);
    return opjit_onnx_give(m, c, 0, opjit_graph_op(m->graph, type, desc, &x, 1), c->inputs[0]->type,
                           c->inputs[0]->rank);
}

opjit_status opjit_onnx_unary(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const int32_t type = c->inputs[0]->type;
    if (type_of(c) == DML_OPERATOR_ELEMENT_WISE_ABS &&
        (type == ONNX_UINT8 || type == ONNX_UINT16 || type == ONNX_UINT32 || type == ONNX_UINT64))
        return opjit_onnx_give_value(m, c, 0, c->inputs[0]);
    TRY(give_unary(m, c, type_of(c), NULL));
    return type_of(c) == DML_OPERATOR_ACTIVATION_RELU ? opjit_onnx_remember(m, c) : OPJIT_OK;
}

/* A unary operator whose result is bool. */
opjit_status opjit_onnx_test(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    if (give_empty(m, c, ONNX_BOOL))
        return m->error->status;
    const opjit_tensor x = onnx_tensor_of(m, c, 0);
    return opjit_onnx_give(m, c, 0, opjit_graph_op1(m->graph, type_of(c), x), ONNX_BOOL, c->inputs[0]->rank);
}

opjit_status opjit_onnx_is_infinite(onnx_import *m, onnx_call *c)
{
    const bool negative = opjit_onnx_int(m, c, "detect_negative", 1) != 0;
    const bool positive = opjit_onnx_int(m, c, "detect_positive", 1) != 0;
    TRY(opjit_onnx_need(m, c, 1));
    if (give_empty(m, c, ONNX_BOOL))
        return m->error->status;
    const opjit_tensor x = onnx_tensor_of(m, c, 0);
    const DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC desc = {
        NULL,
        NULL,
        negative && positive ? DML_IS_INFINITY_MODE_EITHER
        : positive           ? DML_IS_INFINITY_MODE_POSITIVE
                             : DML_IS_INFINITY_MODE_NEGATIVE,
    };
    opjit_tensor y = opjit_graph_op(m->graph, DML_OPERATOR_ELEMENT_WISE_IS_INFINITY, &desc, &x, 1);
    if (!negative && !positive)
        y = opjit_graph_bit_xor(m->graph, y, y);
    return opjit_onnx_give(m, c, 0, y, ONNX_BOOL, c->inputs[0]->rank);
}

/* --- activations -------------------------------------------------------------------------------------------------- */

/* One number, whose default depends on the operator. */
opjit_status opjit_onnx_alpha(onnx_import *m, onnx_call *c)
{
    const DML_OPERATOR_TYPE type = type_of(c);
    const float otherwise = type == DML_OPERATOR_ACTIVATION_LEAKY_RELU ? 0.01f : 1.0f;
    const DML_ACTIVATION_ELU_OPERATOR_DESC desc = { NULL, NULL, opjit_onnx_float(m, c, "alpha", otherwise) };
    return give_unary(m, c, type, &desc); /* of one form: ELU, CELU, LEAKY_RELU, THRESHOLDED_RELU */
}

opjit_status opjit_onnx_hard_sigmoid(onnx_import *m, onnx_call *c)
{
    const DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC desc = { NULL, NULL, opjit_onnx_float(m, c, "alpha", 0.2f),
                                                             opjit_onnx_float(m, c, "beta", 0.5f) };
    return give_unary(m, c, DML_OPERATOR_ACTIVATION_HARD_SIGMOID, &desc);
}

opjit_status opjit_onnx_hard_swish(onnx_import *m, onnx_call *c)
{
    const DML_ACTIVATION_HARD_SWISH_OPERATOR_DESC desc = { NULL, NULL, 1.0f / 6, 0.5f };
    return give_unary(m, c, DML_OPERATOR_ACTIVATION_HARD_SWISH, &desc);
}

opjit_status opjit_onnx_selu(onnx_import *m, onnx_call *c)
{
    const DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC desc = {
        NULL, NULL, opjit_onnx_float(m, c, "alpha", 1.67326319217681884765625f),
        opjit_onnx_float(m, c, "gamma", 1.05070102214813232421875f)
    };
    return give_unary(m, c, DML_OPERATOR_ACTIVATION_SCALED_ELU, &desc);
}

opjit_status opjit_onnx_softplus(onnx_import *m, onnx_call *c)
{
    const DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC desc = { NULL, NULL, 1 };
    return give_unary(m, c, DML_OPERATOR_ACTIVATION_SOFTPLUS, &desc);
}

opjit_status opjit_onnx_shrink(onnx_import *m, onnx_call *c)
{
    const DML_ACTIVATION_SHRINK_OPERATOR_DESC desc = { NULL, NULL, opjit_onnx_float(m, c, "bias", 0),
                                                       opjit_onnx_float(m, c, "lambd", 0.5f) };
    return give_unary(m, c, DML_OPERATOR_ACTIVATION_SHRINK, &desc);
}

/* x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) */
static opjit_tensor gelu_by_tanh(onnx_import *m, opjit_tensor x, int32_t type)
{
    opjit_graph *const g = m->graph;
    const opjit_tensor cube = opjit_graph_multiply(g, x, opjit_graph_multiply(g, x, x));
    const opjit_tensor inner =
        opjit_graph_add(g, x, opjit_graph_multiply(g, cube, opjit_onnx_scalar(m, type, 0.044715)));
    const opjit_tensor t =
        opjit_graph_tanh(g, opjit_graph_multiply(g, inner, opjit_onnx_scalar(m, type, 0.79788456080286535588)));
    const opjit_tensor half = opjit_graph_multiply(g, x, opjit_onnx_scalar(m, type, 0.5));
    return opjit_graph_multiply(g, half, opjit_graph_add(g, t, opjit_onnx_scalar(m, type, 1)));
}

/* Gelu, FastGelu (input 1: a bias), BiasGelu (likewise); arg 1: always by tanh. */
opjit_status opjit_onnx_gelu(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const bool by_tanh = c->row->arg == 1 || opjit_onnx_text_is(m, c, "approximate", "tanh", "none");
    opjit_tensor x = onnx_tensor_of(m, c, 0);
    if (onnx_input(c, 1) != NULL)
        x = opjit_graph_add(m->graph, x, onnx_tensor_of(m, c, 1));
    const opjit_tensor y = by_tanh ? gelu_by_tanh(m, x, c->inputs[0]->type) : opjit_graph_gelu(m->graph, x);
    return opjit_onnx_give(m, c, 0, y, c->inputs[0]->type, c->inputs[0]->rank);
}

/* sigmoid(x); of float32 no denormal, but the least number that is none, and e^-|x| is none on the way.  What reads an
 * activation multiplies it hundreds of times, and on Intel's CPUs a product with a denormal takes a hundred times as
 * long as another one. */
static opjit_tensor sigmoid(onnx_import *m, opjit_tensor x, int32_t type)
{
    const float most = 87.33654f; /* -ln FLT_MIN */
    return opjit_graph_sigmoid(m->graph, onnx_is_single(type) ? opjit_graph_clip(m->graph, x, -most, most) : x);
}

opjit_status opjit_onnx_sigmoid(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const int32_t type = c->inputs[0]->type;
    if (give_empty(m, c, type))
        return m->error->status;
    return opjit_onnx_give(m, c, 0, sigmoid(m, onnx_tensor_of(m, c, 0), type), type, c->inputs[0]->rank);
}

/* Swish, QuickGelu: x * sigmoid(alpha * x) */
opjit_status opjit_onnx_swish(onnx_import *m, onnx_call *c)
{
    const float alpha = opjit_onnx_float(m, c, "alpha", wire_is(c->node->op, "Swish") ? 1.0f : 1.702f);
    const DML_ACTIVATION_SWISH_OPERATOR_DESC desc = { NULL, NULL, alpha };
    TRY(opjit_onnx_need(m, c, 1));
    const int32_t type = c->inputs[0]->type;
    if (!onnx_is_single(type) || opjit_onnx_elements_of(c->inputs[0]) == 0)
        return give_unary(m, c, DML_OPERATOR_ACTIVATION_SWISH, &desc);
    const opjit_tensor x = onnx_tensor_of(m, c, 0);
    const opjit_tensor scaled = alpha == 1 ? x : opjit_graph_multiply(m->graph, x, opjit_onnx_scalar(m, type, alpha));
    const opjit_tensor y = opjit_graph_multiply(m->graph, x, sigmoid(m, scaled, type));
    return opjit_onnx_give(m, c, 0, y, type, c->inputs[0]->rank);
}

/* x * tanh(ln(1 + e^x)) */
opjit_status opjit_onnx_mish(onnx_import *m, onnx_call *c)
{
    const DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC desc = { NULL, NULL, 1 };
    TRY(opjit_onnx_need(m, c, 1));
    const opjit_tensor x = onnx_tensor_of(m, c, 0);
    const opjit_tensor s = opjit_graph_op(m->graph, DML_OPERATOR_ACTIVATION_SOFTPLUS, &desc, &x, 1);
    const opjit_tensor y = opjit_graph_multiply(m->graph, x, opjit_graph_tanh(m->graph, s));
    return opjit_onnx_give(m, c, 0, y, c->inputs[0]->type, c->inputs[0]->rank);
}

/* --- of several operands ------------------------------------------------------------------------------------------ */

static uint32_t most_dimensions(const onnx_call *c)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < c->input_count; i++)
        if (c->inputs[i] != NULL && c->inputs[i]->rank > rank)
            rank = c->inputs[i]->rank;
    return rank;
}

static opjit_status give_binary(onnx_import *m, onnx_call *c, DML_OPERATOR_TYPE op, int32_t type)
{
    TRY(opjit_onnx_need(m, c, 2));
    if (m->opset < 7 && opjit_onnx_int(m, c, "broadcast", 0) != 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute broadcast of opset 6 is not taken");
    if (give_empty(m, c, type))
        return m->error->status;
    const opjit_tensor a = onnx_tensor_of(m, c, 0), b = onnx_tensor_of(m, c, 1);
    return opjit_onnx_give(m, c, 0, opjit_graph_op2(m->graph, op, a, b), type, most_dimensions(c));
}

opjit_status opjit_onnx_binary(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    TRY(give_binary(m, c, type_of(c), c->inputs[0]->type));
    return type_of(c) == DML_OPERATOR_ELEMENT_WISE_ADD ? opjit_onnx_remember(m, c) : OPJIT_OK;
}

/* Bits of integers, which the operators take unsigned. */
opjit_status opjit_onnx_bitwise(onnx_import *m, onnx_call *c)
{
    static const struct {
        int32_t type, by;
    } forms[] = {
        { ONNX_INT8, ONNX_UINT8 }, { ONNX_INT16, ONNX_UINT16 }, { ONNX_INT32, ONNX_UINT32 }, { ONNX_INT64, ONNX_UINT64 }
    };
    const uint32_t count = type_of(c) == DML_OPERATOR_ELEMENT_WISE_BIT_NOT ? 1 : 2;
    TRY(opjit_onnx_need(m, c, count));
    const int32_t type = c->inputs[0]->type;
    int32_t by = type;
    opjit_tensor inputs[2], y;
    if (give_empty(m, c, type))
        return m->error->status;
    for (uint32_t i = 0; i < sizeof forms / sizeof *forms; i++)
        by = forms[i].type == type ? forms[i].by : by;
    for (uint32_t i = 0; i < count; i++)
        inputs[i] = opjit_onnx_cast(m, onnx_tensor_of(m, c, i), type, by);
    y = count == 1 ? opjit_graph_op1(m->graph, type_of(c), inputs[0])
                   : opjit_graph_op2(m->graph, type_of(c), inputs[0], inputs[1]);
    return opjit_onnx_give(m, c, 0, opjit_onnx_cast(m, y, by, type), type, most_dimensions(c));
}

opjit_status opjit_onnx_compare(onnx_import *m, onnx_call *c)
{
    return give_binary(m, c, type_of(c), ONNX_BOOL);
}

opjit_status opjit_onnx_mod(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    return give_binary(m, c,
                       opjit_onnx_int(m, c, "fmod", 0) != 0 ? DML_OPERATOR_ELEMENT_WISE_MODULUS_TRUNCATE
                                                            : DML_OPERATOR_ELEMENT_WISE_MODULUS_FLOOR,
                       c->inputs[0]->type);
}

opjit_status opjit_onnx_bit_shift(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    const DML_OPERATOR_TYPE type = opjit_onnx_text_is(m, c, "direction", "LEFT", "LEFT")
                                       ? DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_LEFT
                                       : DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_RIGHT;
    return give_binary(m, c, type, c->inputs[0]->type);
}

opjit_tensor opjit_onnx_power(onnx_import *m, opjit_tensor x, int32_t type, double exponent)
{
    if (exponent == 2)
        return opjit_graph_multiply(m->graph, x, x);
    if (exponent == 3) /* as GELU has it; within one unit of the last place */
        return opjit_graph_multiply(m->graph, opjit_graph_multiply(m->graph, x, x), x);
    if (exponent == 0.5)
        return opjit_graph_sqrt(m->graph, x);
    return opjit_graph_pow(m->graph, x, opjit_onnx_scalar(m, type, exponent));
}

/* x^y; types that POW has not, and an exponent of another type, go through a type that holds both. */
opjit_status opjit_onnx_pow(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    const int32_t type = c->inputs[0]->type, exponent = c->inputs[1]->type;
    if (give_empty(m, c, type))
        return m->error->status;
    const bool wide = type == ONNX_INT64 || type == ONNX_UINT64 || (type == ONNX_INT32 && exponent != ONNX_INT32);
    const int32_t by = wide ? ONNX_DOUBLE : type;
    const opjit_tensor x = opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), type, by);
    double *values;
    uint32_t count = 0;
    if (onnx_is_constant(c->inputs[1]) && opjit_onnx_elements_of(c->inputs[1]) == 1 && !wide)
        TRY(opjit_onnx_input_floats(m, c, 1, &values, &count));
    const opjit_tensor y =
        count == 1 ? opjit_onnx_power(m, x, type, values[0])
                   : opjit_graph_pow(m->graph, x, opjit_onnx_cast(m, onnx_tensor_of(m, c, 1), exponent, by));
    return opjit_onnx_give(m, c, 0, opjit_onnx_cast(m, y, by, type), type, most_dimensions(c));
}

opjit_status opjit_onnx_prelu(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    return give_binary(m, c, DML_OPERATOR_ACTIVATION_PARAMETERIZED_RELU, c->inputs[0]->type);
}

/* Max, Min, Sum, Mean of one or more; arg: the operator of two, Mean divides by how many there are. */
opjit_status opjit_onnx_variadic(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, c->input_count == 0 ? 1 : c->input_count));
    const int32_t type = c->inputs[0]->type;
    const bool mean = wire_is(c->node->op, "Mean");
    if (give_empty(m, c, type))
        return m->error->status;
    opjit_tensor y = onnx_tensor_of(m, c, 0);
    for (uint32_t i = 1; i < c->input_count; i++)
        y = opjit_graph_op2(m->graph, type_of(c), y, onnx_tensor_of(m, c, i));
    if (mean && c->input_count > 1)
        y = opjit_graph_divide(m->graph, y, opjit_onnx_scalar(m, type, c->input_count));
    return opjit_onnx_give(m, c, 0, y, type, most_dimensions(c));
}

opjit_status opjit_onnx_where(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 3));
    if (give_empty(m, c, c->inputs[1]->type))
        return m->error->status;
    const opjit_tensor y =
        opjit_graph_where(m->graph, onnx_tensor_of(m, c, 0), onnx_tensor_of(m, c, 1), onnx_tensor_of(m, c, 2));
    return opjit_onnx_give(m, c, 0, y, c->inputs[1]->type, most_dimensions(c));
}

/* Attributes up to opset 10, inputs from 11 on: numbers or tensors. */
bool opjit_onnx_clip_bounds(onnx_import *m, const onnx_call *c, double bounds[2])
{
    const int32_t type = c->inputs[0]->type;
    bool numbers = onnx_is_single(type); /* which a float holds */
    bounds[0] = -INFINITY;
    bounds[1] = INFINITY;
    for (uint32_t i = 0; i < 2; i++) {
        const onnx_attribute *const a = opjit_onnx_attribute(m, c, i == 0 ? "min" : "max");
        onnx_value *const v = onnx_input(c, 1 + i);
        double *values;
        uint32_t count;
        if (a != NULL) {
            bounds[i] = a->f;
        } else if (v != NULL && onnx_is_constant(v)) {
            if (opjit_onnx_input_floats(m, c, 1 + i, &values, &count) != OPJIT_OK)
                return false;
            bounds[i] = count == 1 ? values[0] : bounds[i];
        } else if (v != NULL) {
            numbers = false;
        }
    }
    return numbers && bounds[0] <= bounds[1];
}

opjit_status opjit_onnx_clip(onnx_import *m, onnx_call *c)
{
    double bounds[2];
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    if (give_empty(m, c, x->type))
        return m->error->status;
    opjit_tensor y = onnx_tensor_of(m, c, 0);
    const bool numbers = opjit_onnx_clip_bounds(m, c, bounds);
    TRY(opjit_onnx_status(m));
    if (numbers) {
        y = opjit_graph_clip(m->graph, y, (float)bounds[0], (float)bounds[1]);
    } else {
        for (uint32_t i = 0; i < 2; i++) {
            if (onnx_input(c, 1 + i) == NULL && isinf(bounds[i]))
                continue;
            const opjit_tensor bound = onnx_input(c, 1 + i) != NULL ? onnx_tensor_of(m, c, 1 + i)
                                                                    : opjit_onnx_scalar(m, x->type, bounds[i]);
            y = i == 0 ? opjit_graph_max(m->graph, y, bound) : opjit_graph_min(m->graph, y, bound);
        }
    }
    TRY(opjit_onnx_give(m, c, 0, y, x->type, x->rank));
    return opjit_onnx_remember(m, c);
}

/* --- types -------------------------------------------------------------------------------------------------------- */

/* Cast, and CastLike (arg 1), whose type is input 1's. */
opjit_status opjit_onnx_cast_to(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, c->row->arg == 1 ? 2 : 1));
    onnx_value *const x = c->inputs[0];
    const int32_t to = c->row->arg == 1 ? c->inputs[1]->type : (int32_t)opjit_onnx_int(m, c, "to", 0);
    if (opjit_onnx_dtype(to) == DML_TENSOR_DATA_TYPE_UNKNOWN)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "a cast to %s is not taken", opjit_onnx_type_name(to).text);
    if (to == x->type)
        return opjit_onnx_give_value(m, c, 0, x);
    if (opjit_onnx_elements_of(x) == 0)
        return opjit_onnx_give_nothing(m, c, 0, to, x->rank, x->dims);
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    const opjit_tensor y =
        to == ONNX_FLOAT16 ? opjit_onnx_from_stored(m, opjit_graph_cast(m->graph, t, opjit_onnx_stored_dtype(to)), to)
                           : opjit_onnx_cast(m, t, x->type, to);
    return opjit_onnx_give(m, c, 0, y, to, x->rank);
}

opjit_status opjit_onnx_activate(onnx_import *m, onnx_call *c, const float *numbers)
{
    static const struct {
        const char *name;
        DML_OPERATOR_TYPE type;
    } taken[] = { { "Relu", DML_OPERATOR_ACTIVATION_RELU },
                  { "Tanh", DML_OPERATOR_ACTIVATION_TANH },
                  { "LeakyRelu", DML_OPERATOR_ACTIVATION_LEAKY_RELU },
                  { "HardSigmoid", DML_OPERATOR_ACTIVATION_HARD_SIGMOID } };
    const onnx_attribute *const name = opjit_onnx_attribute(m, c, "activation");
    const onnx_value *const v = &c->outputs[0];
    TRY(m->error->status);
    if (name == NULL)
        return OPJIT_OK;
    if (wire_is(name->s, "Clip"))
        return opjit_onnx_give(m, c, 0, opjit_graph_clip(m->graph, v->tensor, numbers[0], numbers[1]), v->type,
                               v->rank);
    if (wire_is(name->s, "Sigmoid"))
        return opjit_onnx_give(m, c, 0, sigmoid(m, v->tensor, v->type), v->type, v->rank);
    for (uint32_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        /* all others with up to two numbers behind the tensors */
        const DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC desc = { NULL, NULL, numbers[0], numbers[1] };
        if (wire_is(name->s, taken[i].name))
            return opjit_onnx_give(m, c, 0, opjit_graph_op(m->graph, taken[i].type, &desc, &v->tensor, 1), v->type,
                                   v->rank);
    }
    return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "activation " ONNX_NAME " is not taken", ONNX_SHOW(name->s));
}
