/* SPDX-License-Identifier: Apache-2.0 */
/* overlap.c - which of a call's buffers share memory, where there are many: sorted by address, so that a call of a
 * thousand outputs looks at each buffer once and not at half a million pairs. */
#include "runtime/call/kernel_object.h"

/* Ascending by address, then by number, in place of `from`; width by width, each run merged into `to` and back. */
static rt_place *sort_places(rt_place *from, rt_place *to, uint32_t count)
{
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t begin = 0; begin < count; begin += 2 * width) {
            const uint64_t middle = begin + width < count ? begin + width : count;
            const uint64_t end = middle + width < count ? middle + width : count;
            uint64_t a = begin, b = middle;
            for (uint64_t i = begin; i < end; i++)
                to[i] = a < middle && (b == end || from[a].at <= from[b].at) ? from[a++] : from[b++];
        }
        rt_place *const sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

/* Of what begins before the place at hand: the buffer that ends last. */
typedef struct reach {
    uintptr_t end;
    uint32_t buffer;
    bool any;
} reach;

static void extend(reach *r, uintptr_t end, uint32_t buffer)
{
    if (!r->any || end > r->end)
        *r = (reach){ end, buffer, true };
}

static bool is_output(const opjit_kernel *k, uint32_t buffer)
{
    return buffer >= k->inputs && buffer < k->bindings;
}

typedef struct sweep {
    const opjit_kernel *kernel;
    const slot *slots;
    const rt_place *places;
    reach all, outputs;
    uint64_t alias;
    uint32_t output, other; /* a pair that may not share memory */
} sweep;

/* What begins at an address ends there, or, as no buffer of this process does, behind the last address and goes on at
 * the first one. */
static void pass(sweep *s, const rt_place *p, bool wrapped)
{
    const uintptr_t end = p->at + (uintptr_t)s->slots[p->buffer].bytes;
    if (wrapped && end > p->at)
        return;
    extend(&s->all, end > p->at || wrapped ? end : UINTPTR_MAX, p->buffer);
    if (is_output(s->kernel, p->buffer))
        extend(&s->outputs, end > p->at || wrapped ? end : UINTPTR_MAX, p->buffer);
}

/* An output and another buffer; of two outputs the first one comes first. */
static bool refuse(sweep *s, uint32_t a, uint32_t b)
{
    const bool a_first = is_output(s->kernel, a) && (!is_output(s->kernel, b) || a < b);
    s->output = a_first ? a : b;
    s->other = a_first ? b : a;
    return false;
}

/* Places [begin, end), which have one address: at most one is an output's, and the others are of inputs that it
 * may share memory with. */
static bool check_together(sweep *s, uint32_t begin, uint32_t end)
{
    const opjit_kernel *k = s->kernel;
    uint32_t output = k->bindings;
    for (uint32_t i = begin; i < end && output == k->bindings; i++)
        if (is_output(k, s->places[i].buffer))
            output = s->places[i].buffer;
    for (uint32_t i = begin; i < end && output != k->bindings; i++) {
        const uint32_t j = s->places[i].buffer, o = output - k->inputs;
        if (j == output)
            continue;
        if (j >= k->inputs || j >= 32 || (s->slots[output].alias_inputs >> j & 1) == 0)
            return refuse(s, output, j);
        if (o < 8 && j < 8)
            s->alias |= UINT64_C(1) << (o * 8 + j);
    }
    return true;
}

/* Whether none of places [begin, end) is in what began before them. */
static bool check_before(sweep *s, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t j = s->places[i].buffer;
        const reach *before = is_output(s->kernel, j) ? &s->all : &s->outputs;
        if (before->any && s->places[i].at < before->end)
            return refuse(s, j, before->buffer);
    }
    return true;
}

bool opjit_rt_overlaps_by_place(const opjit_kernel *k, const slot *slots, void *const *buffers, rt_place *room,
                                uint64_t *alias, uint32_t *out_output, uint32_t *out_other)
{
    sweep s = { .kernel = k, .slots = slots };
    uint32_t count = 0;
    bool good = true;
    for (uint32_t i = 0; i < k->buffers; i++)
        if (slots[i].bytes != 0)
            room[count++] = (rt_place){ (uintptr_t)buffers[i], i };
    s.places = sort_places(room, room + k->buffers, count);
    for (uint32_t i = 0; i < count; i++)
        pass(&s, &s.places[i], true);
    for (uint32_t begin = 0, end; begin < count && good; begin = end) {
        for (end = begin + 1; end < count && s.places[end].at == s.places[begin].at;)
            end++;
        good = check_before(&s, begin, end) && check_together(&s, begin, end);
        for (uint32_t i = begin; i < end; i++)
            pass(&s, &s.places[i], false);
    }
    *alias |= s.alias;
    *out_output = s.output;
    *out_other = s.other;
    return good;
}
