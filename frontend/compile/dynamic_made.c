/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_made.c - what was made of a graph for some values of its dimensions, as long as it may be asked for again.
 * It is a function of its key alone, so a copy is what would be made.  Functions for other values are the same as a
 * rule, but for numbers: of these only the words that differ are kept. */
#include "frontend/compile/dynamic_made.h"

#include <string.h>

#define MOST_BYTES (UINT64_C(32) << 20)

/* Of the nodes, and behind these of the tensors. */
typedef struct made_word {
    uint64_t at, word;
} made_word;

_Static_assert(sizeof(ir_node) % sizeof(uint64_t) == 0 && sizeof(ir_tensor) % sizeof(uint64_t) == 0, "whole words");
enum { NODE_WORDS = sizeof(ir_node) / sizeof(uint64_t), TENSOR_WORDS = sizeof(ir_tensor) / sizeof(uint64_t) };

static uint64_t bytes_of(const ir_func *f)
{
    uint64_t bytes = f->node_capacity * sizeof *f->nodes + f->operand_capacity * sizeof *f->operands;

    for (uint32_t t = 1; t < f->tensor_count; t++)
        bytes += sizeof *f->tensors + (f->tensors[t].data != NULL ? f->tensors[t].bytes : 0);
    return bytes;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Whether nothing but numbers of nodes and of tensors may differ. */
static bool is_like(const ir_func *a, const ir_func *b)
{
    if (a->node_count != b->node_count || a->operand_count != b->operand_count || a->tensor_count != b->tensor_count ||
        a->param_count != 1 || b->param_count != 1 || a->phase != b->phase || a->body != b->body ||
        a->packed != b->packed || a->section_count != b->section_count || !same_text(a->target, b->target) ||
        (a->section_count != 0 && memcmp(a->sections, b->sections, a->section_count * sizeof *a->sections) != 0) ||
        memcmp(a->operands, b->operands, a->operand_count * sizeof *a->operands) != 0)
        return false;
    for (uint32_t t = 1; t < a->tensor_count; t++) {
        const ir_tensor *x = &a->tensors[t], *y = &b->tensors[t];
        if (!same_text(x->name, y->name) || (x->data == NULL) != (y->data == NULL) ||
            (x->data != NULL && (x->bytes != y->bytes || memcmp(x->data, y->data, (size_t)x->bytes) != 0)))
            return false;
    }
    return true;
}

static void put_words(const void *whole, const void *own, uint64_t count, uint64_t at, rt_bytes *out)
{
    for (uint64_t i = 0; i < count; i++) {
        made_word of_whole = { 0, 0 }, of_own = { at + i, 0 };
        memcpy(&of_whole.word, (const uint8_t *)whole + i * sizeof(uint64_t), sizeof(uint64_t));
        memcpy(&of_own.word, (const uint8_t *)own + i * sizeof(uint64_t), sizeof(uint64_t));
        if (of_own.word != of_whole.word)
            opjit_rt_bytes_append(out, &of_own, sizeof of_own);
    }
}

static void put_differences(const ir_func *whole, const ir_func *f, rt_bytes *out)
{
    const uint64_t nodes = (uint64_t)f->node_count * NODE_WORDS;

    put_words(whole->nodes, f->nodes, nodes, 0, out);
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        ir_tensor own = f->tensors[t];
        own.name = whole->tensors[t].name;
        own.data = whole->tensors[t].data;
        put_words(&whole->tensors[t], &own, TENSOR_WORDS, nodes + (uint64_t)t * TENSOR_WORDS, out);
    }
}

static void apply(const rt_bytes *differs, ir_func *f)
{
    const uint64_t nodes = (uint64_t)f->node_count * NODE_WORDS;

    for (size_t i = 0; i < differs->size; i += sizeof(made_word)) {
        made_word own;
        memcpy(&own, differs->data + i, sizeof own);
        uint8_t *const to = own.at < nodes ? (uint8_t *)f->nodes + own.at * sizeof own.word
                                           : (uint8_t *)f->tensors + (own.at - nodes) * sizeof own.word;
        memcpy(to, &own.word, sizeof own.word);
    }
}

opjit_status opjit_fe_made_find(const fe_made *made, const fe_made_for *key, ir_func *out, bool *out_found,
                                opjit_error *error)
{
    uint32_t i = 0;

    while (i < made->count && (made->list[i].key.loops != key->loops ||
                               memcmp(made->list[i].key.values, key->values, sizeof key->values) != 0))
        i++;
    *out_found = i < made->count;
    if (!*out_found)
        return OPJIT_OK;
    TRY(opjit_ir_copy(&made->whole[made->list[i].whole], out, error));
    apply(&made->list[i].differs, out);
    return OPJIT_OK;
}

opjit_status opjit_fe_made_keep(fe_made *made, const fe_made_for *key, const ir_func *f, opjit_error *error)
{
    uint32_t w = 0;

    if (made->count == FE_MADE || made->bytes > MOST_BYTES)
        opjit_fe_made_free(made);
    while (w < made->whole_count && !is_like(&made->whole[w], f))
        w++;
    if (w == FE_MADE_WHOLE) {
        opjit_fe_made_free(made);
        w = 0;
    }
    if (w == made->whole_count) {
        TRY(opjit_ir_copy(f, &made->whole[w], error));
        made->whole_count++;
        made->bytes += bytes_of(f);
    }
    const uint32_t i = made->count++;
    made->list[i].key = *key;
    made->list[i].whole = w;
    opjit_rt_bytes_init(&made->list[i].differs, f->allocator);
    put_differences(&made->whole[w], f, &made->list[i].differs);
    made->bytes += made->list[i].differs.capacity;
    return made->list[i].differs.failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

void opjit_fe_made_free(fe_made *made)
{
    if (made == NULL)
        return;
    for (uint32_t i = 0; i < made->count; i++)
        opjit_rt_bytes_free(&made->list[i].differs);
    for (uint32_t w = 0; w < made->whole_count; w++)
        opjit_ir_free(&made->whole[w]);
    made->count = made->whole_count = 0;
    made->bytes = 0;
}
