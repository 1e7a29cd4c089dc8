/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c - a group of nodes as the bytes of an ONNX model, protobuf's wire format.  Lengths of what is nested have
 * five bytes, so that they are filled in when it is written; elements lie at multiples of 64 bytes, where kernels read
 * them in place. */
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/onnxruntime/provider.h"

/* Fields of ONNX's messages. */
enum { MODEL_IR_VERSION = 1, MODEL_GRAPH = 7, MODEL_OPSETS = 8, OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_T = 5,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS = 9,
    ATTRIBUTE_TYPE = 20
};
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9, TENSOR_DOC = 12 };
enum { INFO_NAME = 1, INFO_TYPE = 2, TYPE_TENSOR = 1, TENSOR_TYPE_ELEMENT = 1, TENSOR_TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1 };
enum { KIND_VARINT = 0, KIND_BYTES = 2, KIND_32_BITS = 5 };
enum { PLACE = 64, LENGTH_BYTES = 5 };

/* --- the wire ----------------------------------------------------------------------------------------------------- */

void opjit_ort_reserve(bytes *b, size_t more)
{
    if (b->failed || more <= b->capacity - b->size)
        return;
    const size_t wanted = (b->size + more + b->capacity / 2 + 4096) / PLACE * PLACE + PLACE;
    unsigned char *const grown = wanted > b->size + more ? aligned_alloc(PLACE, wanted) : NULL;
    b->failed = grown == NULL;
    if (b->failed)
        return;
    if (b->size > 0)
        memcpy(grown, b->data, b->size);
    free(b->data);
    b->data = grown;
    b->capacity = wanted;
}

void opjit_ort_put(bytes *b, const void *data, size_t size)
{
    opjit_ort_reserve(b, size);
    if (b->failed || size == 0)
        return;
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void put_varint(bytes *b, uint64_t value)
{
    unsigned char out[10];
    size_t count = 0;
    for (; value > 127; value >>= 7)
        out[count++] = (unsigned char)(value | 128);
    out[count++] = (unsigned char)value;
    opjit_ort_put(b, out, count);
}

static void put_key(bytes *b, uint32_t field, uint32_t kind)
{
    put_varint(b, field << 3 | kind);
}

static void put_int(bytes *b, uint32_t field, int64_t value)
{
    put_key(b, field, KIND_VARINT);
    put_varint(b, (uint64_t)value);
}

static void put_float(bytes *b, uint32_t field, float value)
{
    put_key(b, field, KIND_32_BITS);
    opjit_ort_put(b, &value, sizeof value);
}

static void put_data(bytes *b, uint32_t field, const void *data, size_t size)
{
    put_key(b, field, KIND_BYTES);
    put_varint(b, size);
    opjit_ort_put(b, data, size);
}

static void put_text(bytes *b, uint32_t field, const char *text)
{
    put_data(b, field, text, strlen(text));
}

/* Begins what is nested; the result is for close_message. */
static size_t open_message(bytes *b, uint32_t field)
{
    put_key(b, field, KIND_BYTES);
    opjit_ort_put(b, (const unsigned char[LENGTH_BYTES]){ 0 }, LENGTH_BYTES);
    return b->size;
}

static void close_message(bytes *b, size_t begin)
{
    uint64_t size = b->size - begin;
    if (b->failed)
        return;
    for (uint32_t i = 0; i < LENGTH_BYTES; i++, size >>= 7)
        b->data[begin - LENGTH_BYTES + i] = (unsigned char)((size & 127) | (i + 1 < LENGTH_BYTES ? 128 : 0));
    b->failed = size != 0; /* 2^35 bytes */
}

/* The elements at a multiple of 64: a text that nobody reads fills the room before them. */
static void put_elements(bytes *b, const void *data, size_t size)
{
    size_t after_length = 1;
    for (uint64_t rest = size; rest > 127; rest >>= 7)
        after_length++;
    if (size >= PLACE) { /* two bytes of that text's key and length, one of the key of the elements */
        const size_t at = b->size + 2 + 1 + after_length, room = (PLACE - at % PLACE) % PLACE;
        put_data(b, TENSOR_DOC, (const char[PLACE]){ 0 }, room);
    }
    put_data(b, TENSOR_RAW, data, size);
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

size_t opjit_ort_element_size(int type)
{
    static const unsigned char sizes[] = { [1] = 4,  [2] = 1,  [3] = 1,  [4] = 2,  [5] = 2,  [6] = 4,  [7] = 8, [9] = 1,
                                           [10] = 2, [11] = 8, [12] = 4, [13] = 8, [16] = 2, [21] = 1, [22] = 1 };
    return type < 0 || (size_t)type >= sizeof sizes ? 0 : sizes[type];
}

static ort_status *put_tensor(const ort_api *api, bytes *b, uint32_t field, const char *name, const ort_value *value)
{
    int64_t dims[ORT_RANK];
    size_t rank = 0, count = 1;
    int type = 0;
    void *data = NULL;
    ORT_TRY(opjit_ort_read_tensor(api, value, &type, dims, &rank));
    const size_t size = opjit_ort_element_size(type);
    const bool half_bytes = type == 21 || type == 22;
    if (size == 0 || rank > ORT_RANK)
        return opjit_ort_fail(api, ORT_FAIL, "constant \"%.80s\": type %d with %d dimensions is not taken", name, type,
                              (int)rank);
    ORT_TRY(api->GetTensorMutableData((ort_value *)value, &data));
    const size_t begin = open_message(b, field);
    for (size_t d = 0; d < rank; d++) {
        put_int(b, TENSOR_DIMS, dims[d]);
        count *= (size_t)dims[d];
    }
    put_int(b, TENSOR_TYPE, type);
    put_text(b, TENSOR_NAME, name);
    put_elements(b, data, half_bytes ? (count + 1) / 2 : count * size);
    close_message(b, begin);
    return NULL;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

ort_status *opjit_ort_read_attribute(const ort_api *api, const ort_attribute *a, int type, void **out, size_t *out_size)
{
    size_t size = 256;
    for (int tries = 0;; tries++) {
        size_t needed = 0;
        *out = calloc(1, size + 1);
        if (*out == NULL)
            return opjit_ort_fail(api, ORT_FAIL, "there is no memory");
        ort_status *const status = api->ReadOpAttr(a, type, *out, size, &needed);
        *out_size = needed;
        if (status == NULL)
            return NULL;
        free(*out);
        *out = NULL;
        if (needed <= size || tries > 0)
            return status;
        api->ReleaseStatus(status);
        size = needed;
    }
}

/* The values of an attribute that has no tensor. */
static void put_contents(bytes *b, int type, const char *data, size_t size)
{
    switch (type) {
    case ORT_ATTRIBUTE_INT: put_int(b, ATTRIBUTE_I, *(const int64_t *)data); break;
    case ORT_ATTRIBUTE_FLOAT: put_float(b, ATTRIBUTE_F, *(const float *)data); break;
    case ORT_ATTRIBUTE_STRING: put_data(b, ATTRIBUTE_S, data, size); break;
    case ORT_ATTRIBUTE_INTS:
        for (size_t i = 0; i < size / sizeof(int64_t); i++)
            put_int(b, ATTRIBUTE_INTS, ((const int64_t *)data)[i]);
        break;
    case ORT_ATTRIBUTE_FLOATS:
        for (size_t i = 0; i < size / sizeof(float); i++)
            put_float(b, ATTRIBUTE_FLOATS, ((const float *)data)[i]);
        break;
    default: /* texts, each with a byte of 0 behind it */
        for (size_t at = 0; at < size; at += strlen(data + at) + 1)
            put_text(b, ATTRIBUTE_STRINGS, data + at);
        break;
    }
}

static ort_status *put_attribute(const ort_api *api, bytes *b, const ort_attribute *a)
{
    /* AttributeProto.AttributeType of the host's types. */
    static const unsigned char types[] = {
        [ORT_ATTRIBUTE_INT] = 2,    [ORT_ATTRIBUTE_INTS] = 7,    [ORT_ATTRIBUTE_FLOAT] = 1, [ORT_ATTRIBUTE_FLOATS] = 6,
        [ORT_ATTRIBUTE_STRING] = 3, [ORT_ATTRIBUTE_STRINGS] = 8, [ORT_ATTRIBUTE_TENSOR] = 4
    };
    const char *name = NULL;
    int type = 0;
    ORT_TRY(api->OpAttr_GetName(a, &name));
    ORT_TRY(api->OpAttr_GetType(a, &type));
    if (type <= 0 || (size_t)type >= sizeof types || types[type] == 0)
        return opjit_ort_fail(api, ORT_FAIL, "attribute \"%.80s\": type %d is not taken", name, type);
    const size_t begin = open_message(b, NODE_ATTRIBUTE);
    put_text(b, ATTRIBUTE_NAME, name);
    put_int(b, ATTRIBUTE_TYPE, types[type]);
    if (type == ORT_ATTRIBUTE_TENSOR) {
        ort_value *value = NULL;
        ORT_TRY(api->OpAttr_GetTensorAttributeAsOrtValue(a, &value));
        ort_status *const status = put_tensor(api, b, ATTRIBUTE_T, name, value);
        api->ReleaseValue(value);
        ORT_TRY(status);
    } else {
        void *data = NULL;
        size_t size = 0;
        ORT_TRY(opjit_ort_read_attribute(api, a, type, &data, &size));
        put_contents(b, type, data, size);
        free(data);
    }
    close_message(b, begin);
    return NULL;
}

static ort_status *put_node(const ort_api *api, bytes *b, const graph *g, const graph_node *n)
{
    size_t count = 0;
    const size_t begin = open_message(b, GRAPH_NODE);
    for (uint32_t i = 0; i < n->input_count; i++)
        put_text(b, NODE_INPUT, n->inputs[i] == ORT_NONE ? "" : g->values[n->inputs[i]].name);
    for (uint32_t i = 0; i < n->output_count; i++)
        put_text(b, NODE_OUTPUT, n->outputs[i] == ORT_NONE ? "" : g->values[n->outputs[i]].name);
    put_text(b, NODE_NAME, n->name);
    put_text(b, NODE_OP, n->op);
    put_text(b, NODE_DOMAIN, n->domain);
    ORT_TRY(api->Node_GetNumAttributes(n->node, &count));
    const ort_attribute **const attributes = calloc(count + 1, sizeof *attributes);
    if (attributes == NULL)
        return opjit_ort_fail(api, ORT_FAIL, "there is no memory");
    ort_status *status = count == 0 ? NULL : api->Node_GetAttributes(n->node, attributes, count);
    for (size_t i = 0; i < count && status == NULL; i++)
        if (attributes[i] != NULL)
            status = put_attribute(api, b, attributes[i]);
    free(attributes);
    close_message(b, begin);
    return status;
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

/* What an input or output is; a host does not tell a scalar from what has no known rank, so neither has a shape. */
static void put_port(bytes *b, uint32_t field, const graph_value *v, bool with_sizes)
{
    const size_t whole = open_message(b, field);
    put_text(b, INFO_NAME, v->name);
    const size_t type = open_message(b, INFO_TYPE), tensor = open_message(b, TYPE_TENSOR);
    put_int(b, TENSOR_TYPE_ELEMENT, v->type);
    if (with_sizes && v->rank > 0) {
        const size_t sizes = open_message(b, TENSOR_TYPE_SHAPE);
        for (uint32_t d = 0; d < v->rank; d++) {
            const size_t dim = open_message(b, SHAPE_DIM);
            if (v->dims[d] >= 0)
                put_int(b, DIM_VALUE, v->dims[d]);
            close_message(b, dim);
        }
        close_message(b, sizes);
    }
    close_message(b, tensor);
    close_message(b, type);
    close_message(b, whole);
}

static ort_status *put_opsets(const ort_api *api, bytes *b, const graph *g)
{
    enum { MOST = 64 };
    const char *domains[MOST];
    int64_t versions[MOST], ir = 0;
    size_t count = 0;
    ORT_TRY(api->Graph_GetOnnxIRVersion(g->host, &ir));
    ORT_TRY(api->Graph_GetNumOperatorSets(g->host, &count));
    if (count > MOST)
        return opjit_ort_fail(api, ORT_FAIL, "%d sets of operators, must be at most %d", (int)count, MOST);
    ORT_TRY(api->Graph_GetOperatorSets(g->host, domains, versions, count));
    put_int(b, MODEL_IR_VERSION, ir);
    for (size_t i = 0; i < count; i++) {
        const size_t begin = open_message(b, MODEL_OPSETS);
        put_text(b, OPSET_DOMAIN, domains[i]);
        put_int(b, OPSET_VERSION, versions[i]);
        close_message(b, begin);
    }
    return NULL;
}

ort_status *opjit_ort_write_model(const ort_api *api, const graph *g, const group *nodes, bytes *out)
{
    *out = (bytes){ NULL, 0, 0, false };
    ORT_TRY(put_opsets(api, out, g));
    const size_t begin = open_message(out, MODEL_GRAPH);
    put_text(out, GRAPH_NAME, "group");
    for (uint32_t i = 0; i < nodes->constant_count; i++) {
        const graph_value *const v = &g->values[nodes->constants[i]];
        ORT_TRY(put_tensor(api, out, GRAPH_INITIALIZER, v->name, v->data));
    }
    for (uint32_t i = 0; i < nodes->node_count; i++)
        ORT_TRY(put_node(api, out, g, &g->nodes[nodes->nodes[i]]));
    for (uint32_t i = 0; i < nodes->input_count; i++)
        put_port(out, GRAPH_INPUT, &g->values[nodes->inputs[i]], true);
    for (uint32_t i = 0; i < nodes->output_count; i++)
        put_port(out, GRAPH_OUTPUT, &g->values[nodes->outputs[i]], false);
    close_message(out, begin);
    return out->failed ? opjit_ort_fail(api, ORT_FAIL, "there is no memory") : NULL;
}
