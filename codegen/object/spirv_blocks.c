/* SPDX-License-Identifier: Apache-2.0 */
/* spirv_blocks.c - gives the basic blocks of LLVM's SPIR-V numbers of their own.  LLVM 22 keeps the numbers of blocks
 * in one table per process, by the address of a function that is freed after each compile: a later function at the same
 * address gets numbers that other values of its module have as well.  The position of a number tells whether it is a
 * block's, so all of them can be told apart, except two blocks of one function with one number: then the module must be
 * compiled again at other addresses. */
#include "codegen/cg.h"

#include "codegen/object/spirv_blocks.h"

#include <string.h>

enum {
    HEADER = 5, /* words: magic, version, generator, bound, 0 */
    MAGIC = 0x07230203,
    BOUND = 3,
    OP_NAME = 5,
    OP_FUNCTION = 54,
    OP_PHI = 245,
    OP_LOOP_MERGE = 246,
    OP_SELECTION_MERGE = 247,
    OP_LABEL = 248,
    OP_BRANCH = 249,
    OP_BRANCH_CONDITIONAL = 250,
    OP_SWITCH = 251,
};

typedef struct spirv {
    uint32_t *words;
    size_t count;
    uint32_t most;    /* all block numbers are below it */
    uint32_t *labels; /* by old number: the block's new one in function `owner`, which is counted from 1 */
    uint32_t *owner;
    uint32_t next;
    opjit_error *error;
} spirv;

static opjit_status broken(const spirv *s, const char *what)
{
    return opjit_rt_refuse(s->error, OPJIT_CODEGEN, "{LLVM}'s {SPIR-V}: %s", what);
}

/* The length of the instruction at word `at`; 0: there is no such instruction. */
static uint32_t length_at(const spirv *s, size_t at)
{
    const uint32_t length = s->words[at] >> 16;
    return length <= s->count - at ? length : 0;
}

static opjit_status name_label(spirv *s, uint32_t label, uint32_t function)
{
    if (s->owner[label] == function)
        return opjit_rt_refuse(s->error, OPJIT_UNAVAILABLE, "{LLVM} gave two {!blocks}blocks of a function one number");
    s->owner[label] = function;
    s->labels[label] = s->next++;
    return OPJIT_OK;
}

static opjit_status replace(const spirv *s, uint32_t *label, uint32_t function)
{
    if (*label >= s->most || s->owner[*label] != function)
        return broken(s, "a branch to no block of its function");
    *label = s->labels[*label];
    return OPJIT_OK;
}

/* Replaces every step-th word from `first` to `last`. */
static opjit_status replace_all(const spirv *s, uint32_t *i, uint32_t first, uint32_t last, uint32_t step,
                                uint32_t function)
{
    if (last >= i[0] >> 16)
        return broken(s, "an instruction is too short");
    for (uint32_t w = first; w <= last; w += step)
        TRY(replace(s, &i[w], function));
    return OPJIT_OK;
}

static opjit_status replace_in(const spirv *s, uint32_t *i, uint32_t function)
{
    const uint32_t length = i[0] >> 16;
    switch (i[0] & 0xffff) {
    case OP_LABEL: i[1] = s->labels[i[1]]; return OPJIT_OK;
    case OP_BRANCH:
    case OP_SELECTION_MERGE: return replace_all(s, i, 1, 1, 1, function);
    case OP_LOOP_MERGE: return replace_all(s, i, 1, 2, 1, function);
    case OP_BRANCH_CONDITIONAL: return replace_all(s, i, 2, 3, 1, function);
    case OP_PHI: return replace_all(s, i, 4, length - 1, 2, function);
    case OP_SWITCH: return broken(s, "a switch");
    default: return OPJIT_OK;
    }
}

/* Numbers the blocks of the function that begins at word `at`, then replaces their old numbers; sets *at to its end. */
static opjit_status relabel(spirv *s, size_t *at, uint32_t function)
{
    size_t end = *at + length_at(s, *at);
    for (; end < s->count && (s->words[end] & 0xffff) != OP_FUNCTION; end += length_at(s, end))
        if ((s->words[end] & 0xffff) == OP_LABEL)
            TRY(name_label(s, s->words[end + 1], function));
    for (; *at < end; *at += length_at(s, *at))
        TRY(replace_in(s, &s->words[*at], function));
    return OPJIT_OK;
}

/* Old numbers may be anything; new ones start at the bound. */
static opjit_status make_tables(spirv *s, rt_arena *arena)
{
    enum { LIMIT = 0x3fffff }; /* SPIR-V's */
    for (size_t at = HEADER; at < s->count; at += length_at(s, at)) {
        const uint32_t *i = &s->words[at];
        if (length_at(s, at) == 0)
            return broken(s, "an instruction is cut off");
        if ((i[0] & 0xffff) == OP_LABEL && (i[0] >> 16 != 2 || i[1] > LIMIT))
            return broken(s, "a block without a number");
        if ((i[0] & 0xffff) == OP_LABEL && i[1] >= s->most)
            s->most = i[1] + 1;
    }
    s->next = s->words[BOUND];
    s->labels = ARENA_ARRAY(arena, uint32_t, s->most + 1);
    s->owner = ARENA_ARRAY(arena, uint32_t, s->most + 1);
    return s->labels && s->owner ? OPJIT_OK : opjit_rt_no_memory(s->error);
}

static opjit_status relabel_all(spirv *s)
{
    uint32_t function = 0;
    for (size_t at = HEADER; at < s->count;)
        if ((s->words[at] & 0xffff) == OP_FUNCTION)
            TRY(relabel(s, &at, ++function));
        else
            at += length_at(s, at);
    s->words[BOUND] = s->next;
    return OPJIT_OK;
}

/* Appends everything except names, which may be a block's. */
static void append(const spirv *s, rt_bytes *out)
{
    opjit_rt_bytes_append(out, s->words, HEADER * sizeof(uint32_t));
    for (size_t at = HEADER; at < s->count; at += length_at(s, at))
        if ((s->words[at] & 0xffff) != OP_NAME)
            opjit_rt_bytes_append(out, &s->words[at], length_at(s, at) * sizeof(uint32_t));
}

opjit_status opjit_cg_spirv(const opjit_allocator *allocator, const uint8_t *object, size_t size, rt_bytes *out,
                            opjit_error *error)
{
    spirv s = { .count = size / sizeof(uint32_t), .error = error };
    rt_arena arena;
    opjit_status status = OPJIT_OK;
    opjit_rt_arena_init(&arena, allocator);
    s.words = ARENA_ARRAY(&arena, uint32_t, s.count + 1);
    if (s.words)
        memcpy(s.words, object, s.count * sizeof(uint32_t));
    if (s.words && (s.count < HEADER || s.words[0] != MAGIC))
        status = broken(&s, "its header");
    if (!s.words)
        status = opjit_rt_no_memory(error);
    if (status == OPJIT_OK)
        status = make_tables(&s, &arena);
    if (status == OPJIT_OK)
        status = relabel_all(&s);
    if (status == OPJIT_OK) {
        append(&s, out);
        status = out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
    }
    opjit_rt_arena_free(&arena);
    return status;
}
