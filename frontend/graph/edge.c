/* SPDX-License-Identifier: Apache-2.0 */
/* edge.c - edges carry bytes: whether what a reader's layout asks for is what a writer's layout has put there.
 * Decided by the shapes where they allow it, else by looking at every element that is read, up to a bound. */
#include <string.h>

#include "frontend/frontend.h"

#define STEPS_MAX 4000000u /* elements looked at: some 40 ms */

/* Dimensions of more than one element, largest stride first; those that repeat elements are left out. */
typedef struct layout {
    uint32_t rank;
    uint64_t sizes[8], strides[8];
} layout;

static layout layout_of(const fe_tensor *t)
{
    layout out = { 0 };

    for (uint32_t d = 0; d < t->rank; d++) {
        uint32_t at = out.rank;
        if (t->sizes[d] == 1 || t->strides[d] == 0)
            continue;
        for (; at > 0 && out.strides[at - 1] < t->strides[d]; at--) {
            out.sizes[at] = out.sizes[at - 1];
            out.strides[at] = out.strides[at - 1];
        }
        out.sizes[at] = t->sizes[d];
        out.strides[at] = t->strides[d];
        out.rank++;
    }
    return out;
}

bool opjit_fe_same_layout(const fe_tensor *a, const fe_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->sizes[d] != b->sizes[d] || (a->sizes[d] > 1 && a->strides[d] != b->strides[d]))
            return false;
    return true;
}

/* Each dimension of r goes along one of w that has its stride and at least its size. */
static bool is_part(const layout *w, const layout *r)
{
    bool taken[8] = { false };

    for (uint32_t i = 0; i < r->rank; i++) {
        uint32_t k = 0;
        while (k < w->rank && (taken[k] || w->strides[k] != r->strides[i] || w->sizes[k] < r->sizes[i]))
            k++;
        if (k == w->rank)
            return false;
        taken[k] = true;
    }
    return true;
}

/* Whether each stride is larger than all that the dimensions below it can add: an address has one digit per
 * dimension. */
static bool has_digits(const layout *w)
{
    uint64_t below = 0;

    for (uint32_t i = w->rank; i-- > 0; below += (w->sizes[i] - 1) * w->strides[i])
        if (w->strides[i] <= below)
            return false;
    return true;
}

/* The digits of number in w; false: it is no element's place. */
static bool digits_of(const layout *w, uint64_t number, uint64_t digits[8])
{
    for (uint32_t i = 0; i < w->rank; i++) {
        digits[i] = number / w->strides[i];
        number %= w->strides[i];
        if (digits[i] >= w->sizes[i])
            return false;
    }
    return number == 0;
}

/* Whether the digits of r's strides add up without ever leaving w. */
static bool adds_without_carry(const layout *w, const layout *r)
{
    uint64_t last[8] = { 0 };

    for (uint32_t i = 0; i < r->rank; i++) {
        uint64_t digits[8];
        if (!digits_of(w, r->strides[i], digits))
            return false;
        for (uint32_t k = 0; k < w->rank; k++)
            last[k] += digits[k] * (r->sizes[i] - 1); /* below 2^32 each: spans are */
    }
    for (uint32_t k = 0; k < w->rank; k++)
        if (last[k] >= w->sizes[k])
            return false;
    return true;
}

static fe_edge look_at_all(const layout *w, const layout *r)
{
    uint64_t at[8] = { 0 }, offset = 0, count = 1, digits[8];

    for (uint32_t i = 0; i < r->rank; i++)
        count *= r->sizes[i]; /* below 2^32: elements of a tensor */
    if (count > STEPS_MAX)
        return FE_EDGE_UNDECIDED;
    for (; count > 0; count--) {
        if (!digits_of(w, offset, digits))
            return FE_EDGE_UNWRITTEN;
        for (uint32_t i = r->rank; i-- > 0;) {
            offset += r->strides[i];
            if (++at[i] < r->sizes[i])
                break;
            offset -= r->sizes[i] * r->strides[i];
            at[i] = 0;
        }
    }
    return FE_EDGE_FITS;
}

fe_edge opjit_fe_edge(const fe_tensor *writer, const fe_tensor *reader)
{
    layout w, r;

    if (writer->dtype != reader->dtype)
        return FE_EDGE_TYPE;
    if (reader->bytes > writer->bytes)
        return FE_EDGE_BYTES;
    if (reader->span > writer->span)
        return FE_EDGE_UNWRITTEN;
    if (writer->elements == writer->span || opjit_fe_same_layout(writer, reader))
        return FE_EDGE_FITS;
    w = layout_of(writer);
    r = layout_of(reader);
    if (is_part(&w, &r))
        return FE_EDGE_FITS;
    if (!has_digits(&w))
        return FE_EDGE_UNDECIDED;
    return adds_without_carry(&w, &r) ? FE_EDGE_FITS : look_at_all(&w, &r);
}
