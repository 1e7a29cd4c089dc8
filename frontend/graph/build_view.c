/* SPDX-License-Identifier: Apache-2.0 */
/* build_view.c - views in graphs that are being built: other sizes and strides of the same bytes, from where these
 * begin. What strides can't say becomes an operator. */
#include "frontend/graph/build.h"

/* A view that begins as t: the new tensor is no longer all that its source makes, in its layout. */
static opjit_tensor add_view(opjit_graph *g, const build_tensor *t, build_tensor *view)
{
    bool same = view->rank == t->rank;

    for (uint32_t d = 0; same && d < t->rank; d++)
        same = view->sizes[d] == t->sizes[d] && (view->strides[d] == t->strides[d] || t->sizes[d] == 1);
    view->whole = t->whole && same;
    return opjit_fe_build_add(g, view);
}

/* --- reshape ------------------------------------------------------------------------------------------------------ */

/* Fills in the size that is 0, if there is one; the sizes have as many elements as t. */
static opjit_status complete(opjit_graph *g, const build_tensor *t, build_tensor *view)
{
    uint64_t elements = 1, known = 1;
    uint32_t open = OPJIT_MAX_RANK;

    for (uint32_t d = 0; d < t->rank; d++)
        elements *= t->sizes[d];
    for (uint32_t d = 0; d < view->rank; d++) {
        if (view->sizes[d] == 0 && open != OPJIT_MAX_RANK)
            return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT,
                                   "{graph_reshape} {sizes[%u]}: {0}, as sizes[%u]: one may be 0", d, open);
        if (view->sizes[d] == 0)
            open = d;
        else if (!checked_mul(known, view->sizes[d], &known))
            known = UINT64_MAX / 2; /* no count of elements, and divides none */
    }
    if (open != OPJIT_MAX_RANK && elements % known == 0) {
        view->sizes[open] = (uint32_t)(elements / known);
        known = elements;
    }
    if (known == elements)
        return OPJIT_OK;
    return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT,
                           "{graph_reshape} {sizes}: {%llu} elements, must be %s%llu", (unsigned long long)known,
                           open == OPJIT_MAX_RANK ? "" : "a divisor of ", (unsigned long long)elements);
}

/* Strides of view's sizes over t's elements in row-major order; false: there are none.  Goes over groups of dimensions
 * of both that have equally many elements; within a group t must run as one dimension does. */
static bool restride(const build_tensor *t, build_tensor *view)
{
    uint32_t from = 0, to = 0;

    while (from < t->rank || to < view->rank) {
        const uint32_t first_from = from, first_to = to;
        uint64_t a = from < t->rank ? t->sizes[from++] : 1, b = to < view->rank ? view->sizes[to++] : 1;
        uint64_t next = 0;
        bool found = false;
        while (a != b) {
            if (a < b)
                a *= t->sizes[from++]; /* equal counts of elements: there is one left */
            else
                b *= view->sizes[to++];
        }
        for (uint32_t d = from; d-- > first_from;) {
            if (t->sizes[d] == 1)
                continue;
            if (found && t->strides[d] != next)
                return false;
            if (!found)
                view->strides[to - 1] = t->strides[d];
            found = true;
            next = (uint64_t)t->strides[d] * t->sizes[d];
        }
        for (uint32_t d = to; d-- > first_to + 1;)
            view->strides[d - 1] = view->strides[d] * view->sizes[d];
    }
    return true;
}

opjit_tensor opjit_graph_reshape(opjit_graph *graph, opjit_tensor tensor, uint32_t rank, const uint32_t *sizes)
{
    const build_tensor *t;
    build_tensor view;

    if (!build_goes_on(graph))
        return build_null;
    t = opjit_fe_build_tensor(graph, tensor, "graph_reshape", "tensor");
    if (t == NULL || opjit_fe_build_check_sizes(graph, "graph_reshape", rank, sizes) != OPJIT_OK)
        return build_null;
    view = *t;
    view.rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        view.sizes[d] = sizes[d];
        view.strides[d] = 0;
    }
    if (complete(graph, t, &view) != OPJIT_OK)
        return build_null;
    if (restride(t, &view))
        return add_view(graph, t, &view);
    tensor = opjit_fe_build_copy(graph, tensor);
    return tensor.index == 0 ? build_null : opjit_graph_reshape(graph, tensor, rank, view.sizes);
}

/* --- transpose, broadcast ----------------------------------------------------------------------------------------- */

opjit_tensor opjit_graph_transpose(opjit_graph *graph, opjit_tensor tensor, const uint32_t *axes)
{
    const build_tensor *t;
    build_tensor view;
    uint32_t seen = 0;

    if (!build_goes_on(graph))
        return build_null;
    t = opjit_fe_build_tensor(graph, tensor, "graph_transpose", "tensor");
    if (t == NULL)
        return build_null;
    if (axes == NULL) {
        opjit_rt_refuse(&graph->error, OPJIT_INVALID_ARGUMENT,
                        "{graph_transpose} {axes}: {NULL}, must be an array of %u", t->rank);
        return build_null;
    }
    view = *t;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (axes[d] >= t->rank || (seen >> axes[d] & 1) != 0) {
            opjit_rt_refuse(&graph->error, OPJIT_INVALID_ARGUMENT,
                            "{graph_transpose} {axes[%u]}: {%u}, must be below %u and there once", d, axes[d], t->rank);
            return build_null;
        }
        seen |= 1u << axes[d];
        view.sizes[d] = t->sizes[axes[d]];
        view.strides[d] = t->strides[axes[d]];
    }
    return add_view(graph, t, &view);
}

opjit_tensor opjit_graph_broadcast(opjit_graph *graph, opjit_tensor tensor, uint32_t rank, const uint32_t *sizes)
{
    const build_tensor *t;
    build_tensor view;

    if (!build_goes_on(graph))
        return build_null;
    t = opjit_fe_build_tensor(graph, tensor, "graph_broadcast", "tensor");
    if (t == NULL || opjit_fe_build_check_sizes(graph, "graph_broadcast", rank, sizes) != OPJIT_OK)
        return build_null;
    if (rank < t->rank) {
        opjit_rt_refuse(&graph->error, OPJIT_INVALID_ARGUMENT, "{graph_broadcast} {rank}: {%u}, must be at least %u",
                        rank, t->rank);
        return build_null;
    }
    view = *t;
    view.rank = rank;
    uint64_t elements = 1;
    for (uint32_t d = 0; d < rank; d++) {
        const uint32_t ones = rank - t->rank, own = d < ones ? 1 : t->sizes[d - ones];
        if (sizes[d] == 0 || (own != 1 && own != sizes[d])) {
            opjit_rt_refuse(&graph->error, OPJIT_INVALID_ARGUMENT, "{graph_broadcast} {sizes[%u]}: {%u}, must be %u%s",
                            d, sizes[d], own, own == 1 ? " or more" : "");
            return build_null;
        }
        elements *= sizes[d]; /* both factors are below 2^32 */
        if (elements > UINT32_MAX) {
            opjit_rt_refuse(&graph->error, OPJIT_INVALID_ARGUMENT,
                            "{graph_broadcast} {sizes[%u]}: {%u}, makes more than %u elements, which is the limit", d,
                            sizes[d], UINT32_MAX);
            return build_null;
        }
        view.sizes[d] = sizes[d];
        view.strides[d] = own == 1 ? 0 : t->strides[d - ones];
    }
    return add_view(graph, t, &view);
}

/* --- slice -------------------------------------------------------------------------------------------------------- */

/* Whether the slice begins where t does and lies in it. */
static bool is_view(const build_tensor *t, const uint32_t *offsets, const uint32_t *sizes, const int32_t *strides)
{
    for (uint32_t d = 0; d < t->rank; d++) {
        const int64_t stride = strides == NULL ? 1 : strides[d];
        if (offsets[d] != 0 || sizes[d] == 0 || stride < 1 ||
            (uint64_t)(sizes[d] - 1) * (uint64_t)stride > t->sizes[d] - 1)
            return false;
    }
    return true;
}

/* The slice by SLICE1, which is given the windows that the elements lie in. */
static opjit_tensor slice_by_operator(opjit_graph *g, opjit_tensor tensor, uint32_t rank, const uint32_t *offsets,
                                      const uint32_t *sizes, const int32_t *strides)
{
    static const int32_t ones[OPJIT_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    uint32_t windows[OPJIT_MAX_RANK];
    const DML_SLICE1_OPERATOR_DESC desc = {
        NULL, NULL, rank, offsets, windows, strides == NULL ? ones : strides,
    };

    for (uint32_t d = 0; d < rank; d++) {
        const int64_t stride = strides == NULL ? 1 : strides[d];
        const uint64_t step = (uint64_t)(stride < 0 ? -stride : stride);
        const uint64_t window = sizes[d] == 0 ? 0 : 1 + (uint64_t)(sizes[d] - 1) * step;
        windows[d] = window > UINT32_MAX ? UINT32_MAX : (uint32_t)window; /* either is refused */
    }
    return opjit_graph_op(g, DML_OPERATOR_SLICE1, &desc, &tensor, 1);
}

opjit_tensor opjit_graph_slice(opjit_graph *graph, opjit_tensor tensor, const uint32_t *offsets, const uint32_t *sizes,
                               const int32_t *strides)
{
    const build_tensor *t;
    build_tensor view;

    if (!build_goes_on(graph))
        return build_null;
    t = opjit_fe_build_tensor(graph, tensor, "graph_slice", "tensor");
    if (t == NULL)
        return build_null;
    if (offsets == NULL || sizes == NULL) {
        opjit_rt_refuse(&graph->error, OPJIT_INVALID_ARGUMENT, "{graph_slice} {%s}: {NULL}, must be an array of %u",
                        offsets == NULL ? "offsets" : "sizes", t->rank);
        return build_null;
    }
    if (!is_view(t, offsets, sizes, strides))
        return slice_by_operator(graph, tensor, t->rank, offsets, sizes, strides);
    view = *t;
    for (uint32_t d = 0; d < t->rank; d++) {
        const uint64_t stride = (uint64_t)t->strides[d] * (strides == NULL ? 1 : (uint32_t)strides[d]);
        view.sizes[d] = sizes[d];
        view.strides[d] = sizes[d] == 1 ? 0 : (uint32_t)stride; /* of two elements or more: within the tensor's span */
    }
    return add_view(graph, t, &view);
}
