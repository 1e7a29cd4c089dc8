/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - what a row of ops.def asks of its node: refusals, attributes, axes. */
#include <stdio.h>

#include "frontend/onnx/call.h"

opjit_status opjit_onnx_refuse(const onnx_import *m, const onnx_call *c, opjit_status status, const char *format, ...)
{
    char text[256];
    va_list arguments;
    if (m->error->status != OPJIT_OK)
        return m->error->status;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    opjit_rt_refuse(m->error, status, "{!" ONNX_NAME "}%s", ONNX_SHOW(c->node->op), text);
    return opjit_rt_at_node(m->error, status, c->node->index);
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

static const onnx_attribute *find_attribute(const onnx_attribute *list, uint32_t count, wire_bytes name)
{
    for (uint32_t i = 0; i < count; i++)
        if (wire_same(list[i].name, name))
            return &list[i];
    return NULL;
}

const onnx_attribute *opjit_onnx_attribute(const onnx_import *m, const onnx_call *c, const char *name)
{
    const wire_bytes wanted = { (const uint8_t *)name, strlen(name) };
    const onnx_attribute *found = find_attribute(c->node->attributes, c->node->attribute_count, wanted);
    for (const onnx_frame *f = m->frame; found != NULL && found->reference.size != 0 && f != NULL; f = f->outer) {
        const wire_bytes reference = found->reference;
        found = find_attribute(f->caller->attributes, f->caller->attribute_count, reference);
        if (found == NULL)
            return find_attribute(f->function->defaults, f->function->default_count, reference);
    }
    return found;
}

/* The attribute, held to the type that it has to have; NULL: absent, or refused. */
static const onnx_attribute *attribute_of(const onnx_import *m, const onnx_call *c, const char *name,
                                          onnx_attribute_type type)
{
    static const char *const kinds[] = { "none",    "a float", "an integer", "a text", "a tensor",
                                         "a graph", "floats",  "integers",   "texts" };
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, name);
    if (a == NULL || a->type == (int32_t)type || a->type == ONNX_IS_UNSAID)
        return a;
    const bool is_named = a->type > 0 && a->type < (int32_t)(sizeof kinds / sizeof *kinds);
    opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute %s is %s, must be %s", name,
                      is_named ? kinds[a->type] : "of another kind", kinds[type]);
    return NULL;
}

int64_t opjit_onnx_int(const onnx_import *m, const onnx_call *c, const char *name, int64_t otherwise)
{
    const onnx_attribute *const a = attribute_of(m, c, name, ONNX_IS_INT);
    return a == NULL ? otherwise : a->i;
}

float opjit_onnx_float(const onnx_import *m, const onnx_call *c, const char *name, float otherwise)
{
    const onnx_attribute *const a = attribute_of(m, c, name, ONNX_IS_FLOAT);
    return a == NULL ? otherwise : a->f;
}

bool opjit_onnx_text_is(const onnx_import *m, const onnx_call *c, const char *name, const char *text,
                        const char *otherwise)
{
    const onnx_attribute *const a = attribute_of(m, c, name, ONNX_IS_TEXT);
    return a == NULL ? strcmp(text, otherwise) == 0 : wire_is(a->s, text);
}

opjit_status opjit_onnx_spatial(onnx_import *m, const onnx_call *c, const char *name, uint32_t count,
                                uint32_t otherwise, uint32_t *out)
{
    const onnx_attribute *const a = attribute_of(m, c, name, ONNX_IS_INTS);
    for (uint32_t d = 0; d < count; d++)
        out[d] = otherwise;
    if (a == NULL || a->count == 0)
        return m->error->status;
    if (a->ints == NULL || a->count != count)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute %s: %u numbers, must be %u", name, a->count,
                                 count);
    for (uint32_t d = 0; d < count; d++) {
        if (a->ints[d] < 0 || a->ints[d] > INT32_MAX)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute %s: %lld, must be 0 to 2^31 - 1", name,
                                     (long long)a->ints[d]);
        out[d] = (uint32_t)a->ints[d];
    }
    return OPJIT_OK;
}

opjit_status opjit_onnx_axis(onnx_import *m, const onnx_call *c, int64_t axis, uint32_t rank, uint32_t *out)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "axis %lld, must be %d to %d", (long long)axis,
                                 -(int)rank, (int)rank - 1);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return OPJIT_OK;
}

opjit_status opjit_onnx_axes(onnx_import *m, const onnx_call *c, const char *name, int32_t input, uint32_t rank,
                             uint32_t *out, uint32_t *out_count)
{
    const onnx_attribute *const a = attribute_of(m, c, name, ONNX_IS_INTS);
    int64_t *axes = a == NULL ? NULL : a->ints;
    uint32_t count = a == NULL ? 0 : a->count;
    bool is_in[ONNX_RANK] = { false };
    TRY(m->error->status);
    if (a == NULL && input >= 0)
        TRY(opjit_onnx_input_ints(m, c, (uint32_t)input, &axes, &count));
    for (uint32_t i = 0; i < count && axes != NULL; i++) {
        uint32_t axis = 0;
        TRY(opjit_onnx_axis(m, c, axes[i], rank, &axis));
        is_in[axis] = true;
    }
    *out_count = 0;
    for (uint32_t d = 0; d < rank; d++)
        if (is_in[d])
            out[(*out_count)++] = d;
    return OPJIT_OK;
}
