/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - steps of training (ai.onnx.preview.training): new values of parameters by their gradients.  Inputs are
 * the learning rate R, the count of steps T, and then all parameters X, all gradients G, and all values of each kind of
 * state; outputs all new parameters and states. */
#include "frontend/onnx/ops/ops.h"

/* What one parameter's step needs. */
typedef struct training {
    int32_t type;
    opjit_tensor rate, steps;                  /* R, and T in the parameter's type */
    opjit_tensor x, gradient, first, second;   /* X, G with its regularization, and up to two states */
    opjit_tensor new_x, new_first, new_second; /* outputs */
} training;

static opjit_tensor times(onnx_import *m, const training *t, opjit_tensor x, double factor)
{
    return opjit_graph_multiply(m->graph, x, opjit_onnx_scalar(m, t->type, factor));
}

static opjit_tensor plus(onnx_import *m, const training *t, opjit_tensor x, double summand)
{
    return opjit_graph_add(m->graph, x, opjit_onnx_scalar(m, t->type, summand));
}

/* 1 - number^T */
static opjit_tensor less_power(onnx_import *m, const training *t, double number)
{
    const opjit_tensor power =
        opjit_graph_op2(m->graph, DML_OPERATOR_ELEMENT_WISE_POW, opjit_onnx_scalar(m, t->type, number), t->steps);
    return opjit_graph_subtract(m->graph, opjit_onnx_scalar(m, t->type, 1), power);
}

/* a where this is not the first step, else b. */
static opjit_tensor later(onnx_import *m, const training *t, opjit_tensor a, opjit_tensor b)
{
    return opjit_graph_where(m->graph, opjit_graph_greater(m->graph, t->steps, opjit_onnx_scalar(m, t->type, 0)), a, b);
}

static void adam(onnx_import *m, const onnx_call *c, training *t)
{
    const double alpha = (double)opjit_onnx_float(m, c, "alpha", 0.9f);
    const double beta = (double)opjit_onnx_float(m, c, "beta", 0.999f);
    const double epsilon = (double)opjit_onnx_float(m, c, "epsilon", 1e-6f);
    opjit_graph *const g = m->graph;
    const opjit_tensor square = opjit_graph_multiply(g, t->gradient, t->gradient);
    t->new_first = opjit_graph_add(g, times(m, t, t->first, alpha), times(m, t, t->gradient, 1 - alpha));
    t->new_second = opjit_graph_add(g, times(m, t, t->second, beta), times(m, t, square, 1 - beta));
    const opjit_tensor root = plus(m, t, opjit_graph_sqrt(g, t->new_second), epsilon);
    const opjit_tensor adjusted =
        opjit_graph_divide(g, opjit_graph_multiply(g, t->rate, opjit_graph_sqrt(g, less_power(m, t, beta))),
                           less_power(m, t, alpha));
    const opjit_tensor step = opjit_graph_multiply(g, later(m, t, adjusted, t->rate), t->new_first);
    t->new_x = times(m, t, opjit_graph_subtract(g, t->x, opjit_graph_divide(g, step, root)),
                     1 - (double)opjit_onnx_float(m, c, "norm_coefficient_post", 0));
}

static void adagrad(onnx_import *m, const onnx_call *c, training *t)
{
    opjit_graph *const g = m->graph;
    const double decay = (double)opjit_onnx_float(m, c, "decay_factor", 0);
    const double epsilon = (double)opjit_onnx_float(m, c, "epsilon", 1e-6f);
    const opjit_tensor rate = opjit_graph_divide(g, t->rate, plus(m, t, times(m, t, t->steps, decay), 1));
    t->new_first = opjit_graph_add(g, t->first, opjit_graph_multiply(g, t->gradient, t->gradient));
    const opjit_tensor root = plus(m, t, opjit_graph_sqrt(g, t->new_first), epsilon);
    t->new_x = opjit_graph_subtract(g, t->x, opjit_graph_divide(g, opjit_graph_multiply(g, rate, t->gradient), root));
}

static void momentum(onnx_import *m, const onnx_call *c, training *t)
{
    opjit_graph *const g = m->graph;
    const double alpha = (double)opjit_onnx_float(m, c, "alpha", 0), beta = (double)opjit_onnx_float(m, c, "beta", 0);
    const opjit_tensor scale =
        later(m, t, opjit_onnx_scalar(m, t->type, beta), opjit_onnx_scalar(m, t->type, 1));
    t->new_first = opjit_graph_add(g, times(m, t, t->first, alpha), opjit_graph_multiply(g, scale, t->gradient));
    opjit_tensor step = t->new_first;
    if (opjit_onnx_text_is(m, c, "mode", "nesterov", "standard"))
        step = opjit_graph_add(g, t->gradient, times(m, t, t->new_first, alpha));
    t->new_x = opjit_graph_subtract(g, t->x, opjit_graph_multiply(g, t->rate, step));
}

typedef void (*step_fn)(onnx_import *m, const onnx_call *c, training *t);

/* One step of each parameter, which has that many states. */
static opjit_status train(onnx_import *m, onnx_call *c, uint32_t states, step_fn step)
{
    const uint32_t kinds = 2 + states;
    if (c->input_count < 2 + kinds || (c->input_count - 2) % kinds != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u inputs, must be 2 and %u for each parameter",
                                 c->input_count, kinds);
    TRY(opjit_onnx_need(m, c, c->input_count));
    const uint32_t count = (c->input_count - 2) / kinds;
    for (uint32_t i = 0; i < count; i++) {
        const onnx_value *const x = c->inputs[2 + i];
        training t = { .type = x->type };
        const opjit_tensor regular =
            times(m, &t, onnx_tensor_of(m, c, 2 + i), (double)opjit_onnx_float(m, c, "norm_coefficient", 0));
        t.rate = opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), c->inputs[0]->type, x->type);
        t.steps = opjit_onnx_cast(m, onnx_tensor_of(m, c, 1), c->inputs[1]->type, x->type);
        t.x = onnx_tensor_of(m, c, 2 + i);
        t.gradient = opjit_graph_add(m->graph, regular, onnx_tensor_of(m, c, 2 + count + i));
        t.first = onnx_tensor_of(m, c, 2 + 2 * count + i);
        t.second = states == 2 ? onnx_tensor_of(m, c, 2 + 3 * count + i) : t.second;
        step(m, c, &t);
        TRY(opjit_onnx_give(m, c, i, t.new_x, x->type, x->rank));
        TRY(opjit_onnx_give(m, c, count + i, t.new_first, x->type, x->rank));
        if (states == 2)
            TRY(opjit_onnx_give(m, c, 2 * count + i, t.new_second, x->type, x->rank));
    }
    return OPJIT_OK;
}

opjit_status opjit_onnx_adam(onnx_import *m, onnx_call *c)
{
    return train(m, c, 2, adam);
}

opjit_status opjit_onnx_adagrad(onnx_import *m, onnx_call *c)
{
    return train(m, c, 1, adagrad);
}

opjit_status opjit_onnx_momentum(onnx_import *m, onnx_call *c)
{
    return train(m, c, 1, momentum);
}
