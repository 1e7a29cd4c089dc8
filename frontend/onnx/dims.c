/* SPDX-License-Identifier: Apache-2.0 */
/* dims.c - sizes that follow from others: "past + 1", as a model may call a dimension, or as options say it of one. */
#include "frontend/onnx/dims.h"

#include "runtime/base/base.h"

typedef struct reader {
    const opjit_model_options *options;
    const onnx_sizes *sample; /* NULL: none */
    const char *at, *end;
} reader;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_of_name(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

bool opjit_onnx_dim_is(const char *name, wire_bytes own, uint64_t *out_step)
{
    const char *at = name == NULL ? NULL : strrchr(name, '/');

    *out_step = 1;
    if (name == NULL || wire_is(own, name))
        return name != NULL;
    if (at == NULL || own.size == 0 || own.size != (uint64_t)(at - name) || memcmp(own.data, name, own.size) != 0)
        return false;
    for (*out_step = 0, at++; is_digit(*at) && *out_step <= INT32_MAX; at++)
        *out_step = *out_step * 10 + (uint64_t)(*at - '0');
    return *at == '\0' && *out_step != 0 && *out_step <= INT32_MAX;
}

bool opjit_onnx_dim_size(const char *name, uint64_t size, wire_bytes own, uint64_t *out)
{
    uint64_t step;

    if (!opjit_onnx_dim_is(name, own, &step))
        return false;
    if (!checked_mul(size, step, out))
        *out = UINT64_MAX;
    return true;
}

static void skip_spaces(reader *r)
{
    while (r->at < r->end && *r->at == ' ')
        r->at++;
}

static bool takes(reader *r, char c)
{
    skip_spaces(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

/* The size that is given for the name. */
static bool find(const reader *r, wire_bytes name, uint64_t *out)
{
    for (uint32_t i = 0; r->sample != NULL && i < r->sample->count; i++)
        if (opjit_onnx_dim_size(r->sample->dims[i].name, r->sample->sizes[i], name, out))
            return true;
    for (uint32_t i = 0; i < r->options->dim_count; i++)
        if (opjit_onnx_dim_size(r->options->dims[i].name, r->options->dims[i].size, name, out))
            return true;
    return false;
}

/* A number or a name. */
static bool read_one(reader *r, uint64_t *out)
{
    bool digits = true;

    skip_spaces(r);
    const char *const first = r->at;
    *out = 0;
    for (; r->at < r->end && is_of_name(*r->at); r->at++) {
        digits = digits && is_digit(*r->at);
        *out = digits ? *out * 10 + (uint64_t)(*r->at - '0') : 0;
        if (*out > UINT32_MAX)
            return false;
    }
    if (r->at == first)
        return false;
    return digits || find(r, (wire_bytes){ (const uint8_t *)first, (uint64_t)(r->at - first) }, out);
}

static bool read_product(reader *r, uint64_t *out)
{
    uint64_t by;

    if (!read_one(r, out))
        return false;
    while (takes(r, '*'))
        if (!read_one(r, &by) || !checked_mul(*out, by, out))
            return false;
    return true;
}

bool opjit_onnx_follow_size(wire_bytes text, const opjit_model_options *o, const onnx_sizes *sample, uint64_t *out)
{
    reader r = { o, sample, (const char *)text.data, (const char *)text.data + text.size };
    uint64_t term;

    if (!read_product(&r, out))
        return false;
    for (;;) {
        const bool plus = takes(&r, '+');
        if (!plus && !takes(&r, '-'))
            break;
        if (!read_product(&r, &term) || (plus ? !checked_add(*out, term, out) : term > *out))
            return false;
        *out -= plus ? 0 : term;
    }
    skip_spaces(&r);
    return r.at == r.end;
}

bool opjit_onnx_reads_dim(wire_bytes text, wire_bytes name)
{
    const char *const end = (const char *)text.data + text.size;

    for (const char *at = (const char *)text.data, *first; at < end; at++) {
        for (first = at; at < end && is_of_name(*at); at++)
            continue;
        if (wire_same((wire_bytes){ (const uint8_t *)first, (uint64_t)(at - first) }, name))
            return name.size != 0;
    }
    return false;
}

bool opjit_onnx_solve_size(wire_bytes text, const opjit_model_options *o, const char *name, uint64_t size,
                           uint64_t *out)
{
    const opjit_dim dim = { .name = name };
    uint64_t one, two, again, at = 1;
    const onnx_sizes sample = { &dim, &at, 1 };

    if (!opjit_onnx_follow_size(text, o, &sample, &one))
        return false;
    at = 2;
    if (!opjit_onnx_follow_size(text, o, &sample, &two) || two <= one || size < one)
        return false;
    *out = at = 1 + (size - one) / (two - one);
    return opjit_onnx_follow_size(text, o, &sample, &again) && again == size;
}

bool opjit_onnx_split_dim(const char *name, wire_bytes *out_name, wire_bytes *out_text)
{
    const char *const sign = name == NULL ? NULL : strchr(name, '=');
    if (sign == NULL)
        return false;
    *out_name = (wire_bytes){ (const uint8_t *)name, (uint64_t)(sign - name) };
    *out_text = (wire_bytes){ (const uint8_t *)sign + 1, strlen(sign + 1) };
    return true;
}
