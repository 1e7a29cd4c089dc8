/* SPDX-License-Identifier: Apache-2.0 */
/* carried.c - memory for what the parts of a model hand on (parts.c): blocks, for one tensor after the other.
 *
 * A tensor is over when all names that it has were read, by nodes that are imported.  Parts are called in the order in
 * which they were cut, so its block is free when the part of the last of these nodes has been called.  A call of the
 * model calls the same parts in the same order, and its tensors begin and end likewise. */
#include "frontend/onnx/compute.h"

enum { BLOCK_LEAST = 4096 }; /* bytes of a tensor that has a block; others stay */
#define BLOCKS_MOST (UINT64_C(1) << 32) /* bytes: a loop that goes on for ever may keep a value of each round */

/* In front of the bytes. */
struct onnx_block {
    onnx_block *next_free;
    uint64_t bytes;
};
#define BLOCK_HEAD 64u

/* --- when tensors are over ---------------------------------------------------------------------------------------- */

void opjit_onnx_hold(onnx_carried *c, onnx_uses *uses)
{
    if (uses->count == 0 || uses->held != NULL)
        return;
    uses->held = c;
    c->users++;
}

void opjit_onnx_drop_use(onnx_import *m, onnx_uses *uses)
{
    onnx_carried *const c = uses->held;
    if (--uses->count != 0 || c == NULL || --c->users != 0 || c->is_listed)
        return;
    c->is_listed = true;
    c->next = m->computing->over;
    m->computing->over = c;
}

opjit_status opjit_onnx_add_given(onnx_import *m, onnx_uses *uses)
{
    if (m->computing == NULL)
        return OPJIT_OK;
    onnx_given *const g = ARENA_NEW(m->arena, onnx_given);
    if (g == NULL)
        return opjit_rt_no_memory(m->error);
    *g = (onnx_given){ m->computing->given, uses };
    m->computing->given = g;
    return OPJIT_OK;
}

static void end_given(onnx_import *m, onnx_given *g)
{
    if (g->uses != NULL)
        opjit_onnx_drop_use(m, g->uses);
    g->uses = NULL;
}

/* A state that no node of the round made may be one of those before. */
void opjit_onnx_end_round(onnx_import *m, onnx_given *before, const onnx_given *now, uint32_t first, uint32_t states)
{
    if (before == NULL)
        return;
    for (uint32_t i = 0; i < first; i++) {
        before = before->next;
        now = now->next;
    }
    for (uint32_t i = 0; i < states; i++, now = now->next)
        if (now->uses == NULL)
            return;
    for (uint32_t i = 0; i < states; i++, before = before->next)
        end_given(m, before);
}

void opjit_onnx_end_given(onnx_import *m, const onnx_given *mark)
{
    for (; m->computing != NULL && m->computing->given != mark; m->computing->given = m->computing->given->next)
        end_given(m, m->computing->given);
}

void opjit_onnx_list_over(onnx_computing *w, onnx_step *s)
{
    for (onnx_carried *c = w->over, *next; c != NULL; c = next) {
        next = c->next;
        c->is_listed = c->users == 0; /* else another name has come since */
        if (!c->is_listed)
            continue;
        c->next = s->over;
        s->over = c;
    }
    w->over = NULL;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static void free_block(onnx_computing *w, onnx_block *b)
{
    w->block_bytes -= b->bytes;
    opjit_rt_release(w->allocator, b, (size_t)(b->bytes + BLOCK_HEAD));
}

static void free_unused(onnx_computing *w)
{
    while (w->free_blocks != NULL) {
        onnx_block *const b = w->free_blocks;
        w->free_blocks = b->next_free;
        free_block(w, b);
    }
}

/* Takes the smallest free block that holds the bytes, and is not much larger.  NULL: there is none; then smaller ones
 * of that size together are given back, as what grows from part to part fits none of them. */
static onnx_block *take_free(onnx_computing *w, uint64_t bytes, bool *grows)
{
    onnx_block **best = NULL, *out = NULL;
    uint64_t freed = 0;
    for (onnx_block **b = &w->free_blocks; *b != NULL; b = &(*b)->next_free)
        if ((*b)->bytes >= bytes && (*b)->bytes / 4 <= bytes && (best == NULL || (*b)->bytes < (*best)->bytes))
            best = b;
    if (best != NULL) {
        out = *best;
        *best = out->next_free;
        return out;
    }
    for (onnx_block **b = &w->free_blocks; *b != NULL && freed < bytes;) {
        onnx_block *const small = *b;
        if (small->bytes >= bytes) {
            b = &small->next_free;
            continue;
        }
        freed += small->bytes;
        *grows = *grows || small->bytes > bytes / 2;
        *b = small->next_free;
        free_block(w, small);
    }
    return NULL;
}

static opjit_status place(onnx_computing *w, onnx_carried *c, opjit_error *error)
{
    bool grows = false;
    if (c->data != NULL)
        return OPJIT_OK;
    c->block = take_free(w, c->bytes, &grows);
    if (c->block == NULL) {
        const uint64_t bytes = c->bytes + (grows ? c->bytes / 4 : 0);
        if (bytes > BLOCKS_MOST - w->block_bytes)
            free_unused(w);
        if (bytes > BLOCKS_MOST - w->block_bytes)
            return opjit_rt_refuse(error, OPJIT_LIMIT,
                                   "{!values}more than %llu bytes of values that later nodes have yet to read, behind "
                                   "%u computed ones",
                                   (unsigned long long)BLOCKS_MOST, w->count);
        if (bytes <= SIZE_MAX - BLOCK_HEAD)
            c->block = opjit_rt_allocate(w->allocator, (size_t)(bytes + BLOCK_HEAD), 64);
        if (c->block == NULL)
            return opjit_rt_no_memory(error);
        c->block->bytes = bytes;
        w->block_bytes += bytes;
    }
    c->data = (uint8_t *)c->block + BLOCK_HEAD;
    return OPJIT_OK;
}

static void end(onnx_computing *w, onnx_carried *c)
{
    if (c->block == NULL || c->is_kept)
        return;
    c->block->next_free = w->free_blocks;
    w->free_blocks = c->block;
    c->block = NULL;
    c->data = NULL;
}

opjit_status opjit_onnx_prepare(onnx_import *m, onnx_carried *c)
{
    if (c->bytes >= BLOCK_LEAST)
        return OPJIT_OK;
    c->data = opjit_onnx_room(m, c->bytes);
    return m->error->status;
}

opjit_status opjit_onnx_call_step(onnx_computing *w, const onnx_step *s, opjit_error *error)
{
    opjit_call call = OPJIT_CALL_INIT;
    for (uint32_t i = 0; i < s->binding_count; i++) {
        if (s->carried[i] == NULL)
            continue;
        if (i >= s->input_count)
            TRY(place(w, s->carried[i], error));
        s->bindings[i].data = s->carried[i]->data;
    }
    call.bindings = s->bindings;
    call.binding_count = s->binding_count;
    return opjit_kernel_call(s->kernel, &call, error);
}

void opjit_onnx_end_step(onnx_computing *w, const onnx_step *s)
{
    for (onnx_carried *c = s->over; c != NULL; c = c->next)
        end(w, c);
}

void opjit_onnx_free_blocks(onnx_computing *w)
{
    for (onnx_step *s = w->first; s != NULL; s = s->next)
        for (uint32_t i = s->input_count; i < s->binding_count; i++)
            if (s->carried[i]->block != NULL) {
                free_block(w, s->carried[i]->block);
                s->carried[i]->block = NULL;
            }
    free_unused(w);
}
