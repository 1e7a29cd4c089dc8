/* SPDX-License-Identifier: Apache-2.0 */
/* signal.c - windows, Fourier transforms, mel filters: tables that are computed here, and products with them. */
#include <math.h>

#include "frontend/onnx/ops/ops.h"

#define MOST_ENTRIES (UINT64_C(1) << 24) /* of a table */
#define TWO_PI 6.283185307179586476925286766559

/* Memory for a table of the type's numbers; NULL: it was refused, or there was none. */
static void *table(onnx_import *m, const onnx_call *c, int32_t type, uint64_t rows, uint64_t columns)
{
    if (!onnx_is_float(type)) {
        opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "elements of %s are not taken", opjit_onnx_type_name(type).text);
        return NULL;
    }
    if (rows != 0 && columns > MOST_ENTRIES / rows) {
        opjit_onnx_refuse(m, c, OPJIT_LIMIT, "a table of %llu by %llu numbers", (unsigned long long)rows,
                          (unsigned long long)columns);
        return NULL;
    }
    return opjit_onnx_memory(m, rows * columns * opjit_rt_dtype_size(opjit_onnx_dtype(type)) + 1);
}

static void put(void *data, int32_t type, uint64_t i, double value)
{
    if (type == ONNX_DOUBLE)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

/* An input that is one number of at least 1. */
static opjit_status read_count(onnx_import *m, const onnx_call *c, uint32_t i, int64_t *out)
{
    TRY(opjit_onnx_input_int(m, c, i, out));
    return *out >= 1 && *out <= UINT32_MAX
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u is %lld, must be 1 to 2^32 - 1", i,
                                   (long long)*out);
}

/* HannWindow, HammingWindow (arg 1), BlackmanWindow (arg 2). */
opjit_status opjit_onnx_window(onnx_import *m, onnx_call *c)
{
    static const double factors[3][3] = { { 0.5, 0.5, 0 }, { 25.0 / 46, 21.0 / 46, 0 }, { 0.42, 0.5, 0.08 } };
    const double *const f = factors[c->row->arg];
    const int32_t type = (int32_t)opjit_onnx_int(m, c, "output_datatype", ONNX_FLOAT);
    int64_t size = 0;
    TRY(opjit_onnx_need(m, c, 1));
    TRY(read_count(m, c, 0, &size));
    const uint64_t dims[1] = { (uint64_t)size };
    const double period = opjit_onnx_int(m, c, "periodic", 1) != 0 ? (double)size : (double)size - 1;
    void *const data = table(m, c, type, dims[0], 1);
    for (uint64_t i = 0; i < dims[0] && data != NULL; i++) {
        const double angle = period == 0 ? 0 : TWO_PI * (double)i / period;
        put(data, type, i, f[0] - f[1] * cos(angle) + f[2] * cos(2 * angle));
    }
    return data == NULL ? m->error->status : opjit_onnx_give_data(m, c, 0, type, 1, dims, data);
}

/* Filters {dft_length / 2 + 1, bins} out of bins, dft_length, sample rate, lowest and highest frequency. */
opjit_status opjit_onnx_mel_weights(onnx_import *m, onnx_call *c)
{
    const int32_t type = (int32_t)opjit_onnx_int(m, c, "output_datatype", ONNX_FLOAT);
    int64_t bins = 0, length = 0, rate = 0;
    double *edges[2];
    uint32_t count;
    TRY(opjit_onnx_need(m, c, 5));
    TRY(read_count(m, c, 0, &bins));
    TRY(read_count(m, c, 1, &length));
    TRY(read_count(m, c, 2, &rate));
    for (uint32_t i = 0; i < 2; i++) {
        TRY(opjit_onnx_input_floats(m, c, 3 + i, &edges[i], &count));
        if (count != 1 || !(edges[i][0] >= 0 && edges[i][0] <= (double)rate / 2))
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u, must be 0 to half the sample rate",
                                     3 + i);
    }
    const uint64_t dims[2] = { (uint64_t)length / 2 + 1, (uint64_t)bins };
    void *const data = table(m, c, type, dims[0], dims[1]);
    int64_t *const places = data == NULL ? NULL : ARENA_ARRAY(m->arena, int64_t, (size_t)bins + 2);
    if (places == NULL)
        return data == NULL ? m->error->status : opjit_rt_no_memory(m->error);
    const double low = 2595 * log10(1 + edges[0][0] / 700), high = 2595 * log10(1 + edges[1][0] / 700);
    for (int64_t i = 0; i < bins + 2; i++) {
        const double mel = low + (double)i * ((high - low) / (double)(bins + 2));
        const double hertz = 700 * (pow(10, mel / 2595) - 1);
        places[i] = (int64_t)floor((double)(length + 1) * hertz / (double)rate);
        places[i] = places[i] < 0 ? 0 : places[i] > length / 2 ? length / 2 : places[i];
    }
    for (uint64_t i = 0; i < dims[0] * dims[1]; i++)
        put(data, type, i, 0);
    for (int64_t i = 0; i < bins; i++) {
        const int64_t lower = places[i], center = places[i + 1], higher = places[i + 2];
        for (int64_t j = lower; j <= center; j++)
            put(data, type, (uint64_t)(j * bins + i),
                center == lower ? 1 : (double)(j - lower) / (double)(center - lower));
        for (int64_t j = center; j < higher; j++)
            put(data, type, (uint64_t)(j * bins + i), (double)(higher - j) / (double)(higher - center));
    }
    return opjit_onnx_give_data(m, c, 0, type, 2, dims, data);
}

/* --- Fourier transforms ------------------------------------------------------------------------------------------- */

/* What a transform of `length` numbers makes of the first `from` of them: a matrix {from * parts, to * 2}; parts: 2
 * where the numbers are complex. */
static opjit_tensor matrix(onnx_import *m, const onnx_call *c, int32_t type, uint64_t from, uint64_t parts, uint64_t to,
                           uint64_t length, bool inverse)
{
    onnx_value v = { .type = type, .rank = 2, .dims = { from * parts, to * 2 } };
    void *const data = table(m, c, type, v.dims[0], v.dims[1]);
    const double factor = inverse ? 1 / (double)length : 1;
    for (uint64_t i = 0; i < from && data != NULL; i++)
        for (uint64_t k = 0; k < to; k++) {
            const double angle = TWO_PI * (double)(i * k % length) / (double)length;
            const double re = cos(angle) * factor, im = (inverse ? 1 : -1) * sin(angle) * factor;
            const uint64_t at = i * parts * 2 * to + 2 * k;
            put(data, type, at, re);
            put(data, type, at + 1, im);
            if (parts == 2) {
                put(data, type, at + 2 * to, -im);
                put(data, type, at + 2 * to + 1, re);
            }
        }
    v.data = data;
    return data == NULL ? (opjit_tensor){ 0, 0 } : opjit_onnx_tensor(m, &v);
}

/* The axis is an attribute up to opset 19, input 2 from 20 on. */
opjit_status opjit_onnx_dft(onnx_import *m, onnx_call *c)
{
    const bool inverse = opjit_onnx_int(m, c, "inverse", 0) != 0, onesided = opjit_onnx_int(m, c, "onesided", 0) != 0;
    int64_t number = m->opset < 20 ? opjit_onnx_int(m, c, "axis", 1) : -2;
    uint32_t axis, order[ONNX_RANK], back[ONNX_RANK];
    uint64_t dims[ONNX_RANK], rows = 1;
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    if (m->opset >= 20)
        TRY(opjit_onnx_input_int(m, c, 2, &number));
    TRY(opjit_onnx_axis(m, c, number, x->rank, &axis));
    if (x->rank < 2 || axis + 1 == x->rank || x->dims[x->rank - 1] < 1 || x->dims[x->rank - 1] > 2)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "the last dimension must be 1 (real) or 2 (complex), and another than the axis");
    if (inverse && onesided)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "attributes inverse: 1 and onesided: 1 together are not taken");
    const uint32_t last = x->rank - 1;
    const uint64_t parts = x->dims[last];
    int64_t length = (int64_t)x->dims[axis];
    if (onnx_input(c, 1) != NULL)
        TRY(read_count(m, c, 1, &length));
    const uint64_t from = x->dims[axis] < (uint64_t)length ? x->dims[axis] : (uint64_t)length;
    const uint64_t to = onesided ? (uint64_t)length / 2 + 1 : (uint64_t)length;
    opjit_graph *const g = m->graph;
    opjit_tensor t = onnx_tensor_of(m, c, 0);
    if (from != x->dims[axis]) {
        uint32_t begin[ONNX_RANK] = { 0 }, sizes[ONNX_RANK];
        for (uint32_t d = 0; d <= last; d++)
            sizes[d] = (uint32_t)(d == axis ? from : x->dims[d]);
        t = opjit_graph_slice(g, t, begin, sizes, NULL);
    }
    for (uint32_t d = 0, k = 0; d <= last; d++) { /* the axis behind the others, before the parts */
        order[d] = d == last ? last : d + 1 == last ? axis : d < axis ? d : d + 1;
        if (d + 1 < last) {
            dims[k++] = x->dims[order[d]];
            rows *= x->dims[order[d]];
        }
    }
    for (uint32_t d = 0; d <= last; d++)
        back[order[d]] = d;
    t = opjit_onnx_reshape(m, opjit_graph_transpose(g, t, order), 2, (uint64_t[]){ rows, from * parts });
    t = opjit_graph_matrix_multiply(g, t, matrix(m, c, x->type, from, parts, to, (uint64_t)length, inverse), 0, 0);
    dims[last - 1] = to;
    dims[last] = 2;
    t = opjit_graph_transpose(g, opjit_onnx_reshape(m, t, x->rank, dims), back);
    return opjit_onnx_give(m, c, 0, t, x->type, x->rank);
}

/* Signal {batch, 1, samples} -> its frames {batch, frames, length}. */
static opjit_tensor frames_of(opjit_graph *g, opjit_tensor signal, uint32_t length, uint32_t step)
{
    static const uint32_t one[] = { 1 }, zero[] = { 0 }, rows[] = { 0, 2, 1 };
    const DML_UNFOLD_OPERATOR_DESC desc = { NULL, NULL, 1, &length, &step, one, zero, zero };
    return opjit_graph_transpose(g, opjit_graph_op(g, DML_OPERATOR_UNFOLD, &desc, &signal, 1), rows);
}

/* Signal {batch, samples, 1}, step, window, length of a frame: {batch, frames, frequencies, 2}. */
opjit_status opjit_onnx_stft(onnx_import *m, onnx_call *c)
{
    int64_t step = 0, length = 0;
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0], *const window = onnx_input(c, 2);
    TRY(read_count(m, c, 1, &step));
    if (window != NULL && window->rank == 1)
        length = (int64_t)window->dims[0];
    if (onnx_input(c, 3) != NULL)
        TRY(read_count(m, c, 3, &length));
    if ((x->rank != 2 && x->rank != 3) || (x->rank == 3 && x->dims[2] != 1))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "a signal that is not of real numbers {batch, samples, 1}");
    if (length < 1 || (uint64_t)length > x->dims[1] ||
        (window != NULL && opjit_onnx_elements_of(window) != (uint64_t)length))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "frames of %lld samples, must be 1 to %llu and as long as the window",
                                 (long long)length, (unsigned long long)x->dims[1]);
    const uint64_t frames = 1 + (x->dims[1] - (uint64_t)length) / (uint64_t)step;
    const bool onesided = opjit_onnx_int(m, c, "onesided", 1) != 0;
    const uint64_t to = onesided ? (uint64_t)length / 2 + 1 : (uint64_t)length;
    opjit_graph *const g = m->graph;
    opjit_tensor t = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 3, (uint64_t[]){ x->dims[0], 1, x->dims[1] });
    t = frames_of(g, t, (uint32_t)length, (uint32_t)step);
    t = opjit_onnx_reshape(m, t, 2, (uint64_t[]){ x->dims[0] * frames, (uint64_t)length });
    if (window != NULL)
        t = opjit_graph_multiply(g, t, opjit_onnx_vector(m, c, 2, 2, 1));
    const opjit_tensor factor = matrix(m, c, x->type, (uint64_t)length, 1, to, (uint64_t)length, false);
    t = opjit_graph_matrix_multiply(g, t, factor, 0, 0);
    return opjit_onnx_give_as(m, c, 0, t, x->type, 4, (uint64_t[]){ x->dims[0], frames, to, 2 });
}
