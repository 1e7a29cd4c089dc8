/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - whether an instance computes what the graph's own loops for the same sizes do, where these are others.
 *
 * Most of their stages are the same but for names, and those that do most of the work as a rule are.  What such a pair
 * of stages computes needs no look: of the same inputs both make the same outputs.  So both functions are run, stage by
 * stage, side by side: where two stages are the same, all that they read and write has to have the same bytes in both,
 * and what they write then gets any values, the same in both; all other stages are interpreted.  In the end all results
 * have to be the same. */
#include "ir/general/count.h"
#include "ir/general/witness.h"

#include "ir/analysis/analysis.h"
#include "ir/core/internal.h"
#include "ir/eval/numerics.h"

#include <string.h>

enum {
    DEEPEST = 256,       /* expressions in each other */
    AHEAD = 24,          /* stages that are skipped to find two that are the same */
    MOST_BYTES = 1 << 28 /* of what stages that are interpreted read and write */
};
#define OWN UINT64_MAX

typedef struct stage {
    ir_ref node;
    uint64_t hash;
    uint64_t work;                   /* elements and terms; UINT64_MAX: not known */
    uint32_t *tensors, tensor_count; /* that it reads or writes, as it names them first */
    bool *written;                   /* by these */
} stage;

typedef struct side {
    ir_func *f;
    stage *stages;
    uint32_t count;
    uint32_t *match;    /* by stage: the other side's that is the same, counted from 1; 0: none */
    bool *is_used;      /* by tensor that is no view: a stage that is interpreted reads or writes it */
    uint64_t *versions; /* by such a tensor: the pair that wrote it last, counted from 1; 0: none; OWN: another stage */
    void **buffers;
    ir_run run;
} side;

/* --- what a stage is ---------------------------------------------------------------------------------------------- */

typedef struct speller {
    const ir_func *f;
    uint64_t *hashes;  /* by node: of an expression; the number of a statement or loop's variable */
    uint32_t *tensors; /* by tensor: its number in the stage, counted from 1 */
    uint64_t hash;
    stage *out;     /* its lists have room for all tensors */
    uint32_t names; /* of statements and variables */
    bool failed;    /* too deep */
} speller;

static bool is_bound(const ir_tensor *t)
{
    return t->role == IR_IN || t->role == IR_OUT || t->role == IR_CONSTANT;
}

/* Its number in the stage.  A tensor that only views show has any sizes. */
static uint64_t number_of(speller *s, uint32_t t)
{
    const ir_tensor *own = &s->f->tensors[t];
    uint64_t hash = opjit_ir_hash((uint64_t)own->role, own->type);

    if (s->tensors[t] != 0)
        return s->tensors[t];
    if (own->role == IR_VIEW)
        hash = opjit_ir_hash(opjit_ir_hash(hash, number_of(s, own->of)), (uint64_t)own->offset);
    else
        hash = opjit_ir_hash(hash, own->bytes);
    if (is_bound(own))
        hash = opjit_ir_hash(hash, own->data == NULL ? own->slot : UINT32_MAX);
    s->hash = opjit_ir_hash(s->hash, hash);
    s->out->tensors[s->out->tensor_count++] = t;
    s->tensors[t] = s->out->tensor_count;
    return s->tensors[t];
}

static uint64_t name_tensor(speller *s, uint32_t t)
{
    const ir_tensor *own = &s->f->tensors[t];
    uint64_t hash = opjit_ir_hash(number_of(s, t), own->rank);

    for (uint32_t d = 0; d < own->rank; d++)
        hash = opjit_ir_hash(opjit_ir_hash(hash, own->sizes[d]), own->strides[d]);
    return hash;
}

static uint64_t node_hash(const ir_node *n)
{
    uint64_t hash =
        opjit_ir_hash((uint64_t)n->op << 48 | (uint64_t)n->type << 32 | (uint64_t)n->kind << 16 | n->hold, n->imm);
    hash = opjit_ir_hash(hash, (uint64_t)n->flags << 32 | n->block);
    return opjit_ir_hash(opjit_ir_hash(hash, (uint64_t)n->vec << 32 | n->unroll), n->count);
}

static uint64_t hash_of(speller *s, ir_ref r, uint32_t depth)
{
    const ir_func *f = s->f;
    const ir_node *n = ir_at(f, r);

    if (s->hashes[r] != 0)
        return s->hashes[r];
    s->failed = s->failed || depth == DEEPEST || n->op == IR_VAR;
    uint64_t hash = node_hash(n);
    if (n->op == IR_GET)
        hash = opjit_ir_hash(hash, s->hashes[n->ref]);
    else if (n->op == IR_LOAD || n->op == IR_HEAD)
        hash = opjit_ir_hash(hash, name_tensor(s, n->ref));
    else
        hash = opjit_ir_hash(hash, n->ref);
    for (uint32_t i = 0; i < n->count && !s->failed; i++)
        hash = opjit_ir_hash(hash, hash_of(s, ir_operand(f, r, i), depth + 1));
    s->hashes[r] = hash + (hash == 0);
    return s->hashes[r];
}

static void spell_block(speller *s, ir_ref first);

static void spell_one(speller *s, ir_ref r)
{
    const ir_func *f = s->f;
    const ir_node *n = ir_at(f, r);
    uint64_t hash = node_hash(n);
    s->hashes[r] = ++s->names;
    if (n->op == IR_STORE) {
        hash = opjit_ir_hash(hash, name_tensor(s, n->ref));
        for (uint32_t t = opjit_ir_root(f, n->ref), i = 0; i < s->out->tensor_count; i++)
            s->out->written[i] = s->out->written[i] || s->out->tensors[i] == t;
    } else if (n->op == IR_UPD) {
        hash = opjit_ir_hash(hash, s->hashes[n->ref]);
    }
    for (uint32_t i = 0; i < n->count; i++)
        hash = opjit_ir_hash(hash, hash_of(s, ir_operand(f, r, i), 0));
    s->hash = opjit_ir_hash(s->hash, hash);
    if (n->op != IR_FOR && n->op != IR_STAGE)
        return;
    s->hashes[n->ref] = ++s->names;
    spell_block(s, n->body);
    s->hash = opjit_ir_hash(s->hash, 0); /* its end */
}

static void spell_block(speller *s, ir_ref first)
{
    for (ir_ref r = first; r != 0 && !s->failed; r = ir_at(s->f, r)->next)
        spell_one(s, r);
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* How many statements the list runs at most, by what the bounds of its loops are at most. */
static uint64_t most_work(const ir_func *f, ir_ref first)
{
    uint64_t sum = 0;

    for (ir_ref r = first; r != 0; r = ir_at(f, r)->next) { /* as deep as loops nest: rule V16 */
        uint64_t own = 1;
        if (ir_at(f, r)->body != 0) {
            const int64_t lo = opjit_ir_interval(f, ir_operand(f, r, 0)).lo;
            const int64_t hi = opjit_ir_interval(f, ir_operand(f, r, 1)).hi;
            const uint64_t inner = sum_of(most_work(f, ir_at(f, r)->body), 1),
                           times = hi > lo ? (uint64_t)(hi - lo) : 0;
            own = lo < 0 || times > UINT32_MAX || inner > UINT32_MAX ? UINT64_MAX : times * inner;
        }
        sum = sum_of(sum, own);
    }
    return sum;
}

/* Elements and terms. */
static uint64_t work_of(const ir_func *f, const stage *s, const ir_counts *counts, uint32_t at)
{
    uint64_t work = counts->results[at] + counts->terms[at] + counts->products[at];

    for (uint32_t i = 0; i < s->tensor_count; i++)
        if (f->tensors[s->tensors[i]].role == IR_SCRATCH && counts->stage_of[s->tensors[i]] == at)
            work += counts->stores[s->tensors[i]];
    return counts->lost[at] ? most_work(f, ir_at(f, s->node)->body) : work;
}

/* With lists of its own length: a function has many stages, and many tensors, but each stage few. */
static opjit_status keep(const stage *own, rt_arena *arena, stage *out, opjit_error *error)
{
    *out = *own;
    out->tensors = ARENA_ARRAY(arena, uint32_t, own->tensor_count + 1u);
    out->written = ARENA_ARRAY(arena, bool, own->tensor_count + 1u);
    if (out->tensors == NULL || out->written == NULL)
        return opjit_rt_no_memory(error);
    memcpy(out->tensors, own->tensors, own->tensor_count * sizeof *own->tensors);
    memcpy(out->written, own->written, own->tensor_count * sizeof *own->written);
    return OPJIT_OK;
}

/* f is packed, so that no two stages share a node. */
static opjit_status spell(ir_func *f, rt_arena *arena, side *out, opjit_error *error)
{
    speller s = { .f = f };
    stage all = { 0 };
    ir_counts counts;

    *out = (side){ .f = f };
    TRY(opjit_ir_count(f, arena, &counts, error));
    s.hashes = ARENA_ARRAY(arena, uint64_t, f->node_count);
    s.tensors = ARENA_ARRAY(arena, uint32_t, f->tensor_count);
    all.tensors = ARENA_ARRAY(arena, uint32_t, f->tensor_count);
    all.written = ARENA_ARRAY(arena, bool, f->tensor_count);
    out->stages = ARENA_ARRAY(arena, stage, counts.stage_count + 1u);
    if (s.hashes == NULL || s.tensors == NULL || all.tensors == NULL || all.written == NULL || out->stages == NULL)
        return opjit_rt_no_memory(error);
    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next) {
        stage own = { .node = r, .tensors = all.tensors, .written = all.written };
        s.hash = s.names = 0;
        s.out = &own;
        spell_one(&s, r);
        own.hash = s.failed ? opjit_ir_hash((uintptr_t)f, r) : s.hash;
        own.work = work_of(f, &own, &counts, out->count);
        for (uint32_t i = 0; i < own.tensor_count; i++)
            s.tensors[own.tensors[i]] = 0;
        TRY(keep(&own, arena, &out->stages[out->count++], error));
        memset(all.written, 0, own.tensor_count * sizeof *all.written);
    }
    return OPJIT_OK;
}

/* --- which stages are the same ------------------------------------------------------------------------------------ */

/* In order: where two differ, the next two that are the same, if they are not far. */
static opjit_status find_matches(side *a, side *b, rt_arena *arena, opjit_error *error)
{
    a->match = ARENA_ARRAY(arena, uint32_t, a->count + 1u);
    b->match = ARENA_ARRAY(arena, uint32_t, b->count + 1u);
    if (a->match == NULL || b->match == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0, k = 0; i < a->count && k < b->count; i++, k++) {
        uint32_t skipped = 0, first = 0;
        bool found = false;
        for (; skipped <= AHEAD && !found; skipped += !found)
            for (first = 0; first <= skipped && !found; first += !found)
                found = i + first < a->count && k + skipped - first < b->count &&
                        a->stages[i + first].hash == b->stages[k + skipped - first].hash;
        if (!found)
            continue;
        i += first;
        k += skipped - first;
        a->match[i] = k + 1;
        b->match[k] = i + 1;
    }
    return OPJIT_OK;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Numbers that sums round, of elements that are no integers; else small whole ones.  Other ones for each salt. */
static void fill(const ir_tensor *t, uint8_t *data, uint64_t salt)
{
    const uint32_t size = opjit_ir_type_size(t->type);
    const uint64_t seven = opjit_ir_element_of(t->type, 7);

    for (uint64_t i = 0; i < t->bytes / size; i++) {
        const int64_t any = (int64_t)(opjit_ir_hash(i, salt) >> 32 & 1023);
        uint64_t args[2] = { opjit_ir_element_of(t->type, ir_is_float((ir_type)t->type) ? any - 400 : any % 16 - 5),
                             seven };
        if (ir_is_float((ir_type)t->type))
            opjit_ir_scalar(IR_DIV, t->type, t->type, args, &args[0]);
        memcpy(data + i * size, &args[0], size);
    }
}

/* Where a tensor that is used lies; NULL: nowhere. */
static uint8_t *memory_of(const side *s, uint32_t t)
{
    const ir_tensor *own = &s->f->tensors[t];

    if (!s->is_used[t])
        return NULL;
    return own->role == IR_TEMP ? (uint8_t *)s->run.shared + own->offset : s->buffers[own->slot];
}

/* Memory for all that is used, each tensor of its own.  false: too much. */
static opjit_status make_memory(side *s, rt_arena *arena, bool *out, opjit_error *error)
{
    ir_func *f = s->f;
    uint64_t temps = 0, all = 0;
    uint32_t slots = 0;

    TRY(opjit_ir_layout(f, error));
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        ir_tensor *own = &f->tensors[t];
        slots = is_bound(own) && own->slot >= slots ? own->slot + 1 : slots;
        *out = *out && own->role != IR_KEPT;
        if (!s->is_used[t] || (!is_bound(own) && own->role != IR_TEMP))
            continue;
        all += own->bytes < MOST_BYTES ? own->bytes : MOST_BYTES;
        if (own->role == IR_TEMP && all < MOST_BYTES) {
            own->offset = (int64_t)temps;
            temps += align_up(own->bytes, 64);
        }
    }
    *out = *out && all < MOST_BYTES && f->scratch_size < MOST_BYTES;
    if (!*out)
        return OPJIT_OK;
    f->shared_size = temps;
    s->buffers = ARENA_ARRAY(arena, void *, slots + 1u);
    s->run.shared = ARENA_ARRAY(arena, uint8_t, temps + 1);
    s->run.scratch = ARENA_ARRAY(arena, uint8_t, f->scratch_size + 1);
    if (s->buffers == NULL || s->run.shared == NULL || s->run.scratch == NULL)
        return opjit_rt_no_memory(error);
    memset(s->run.shared, 0xff, (size_t)temps); /* no number */
    memset(s->run.scratch, 0xff, (size_t)f->scratch_size);
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *own = &f->tensors[t];
        if (!s->is_used[t] || !is_bound(own) || s->buffers[own->slot] != NULL)
            continue;
        uint8_t *const data = ARENA_ARRAY(arena, uint8_t, own->bytes + 1);
        if (data == NULL)
            return opjit_rt_no_memory(error);
        fill(own, data, own->slot);
        if (own->role == IR_OUT)
            memset(data, 0x5a, (size_t)own->bytes);
        else if (own->data != NULL)
            memcpy(data, own->data, (size_t)own->bytes);
        s->buffers[own->slot] = data;
    }
    s->run.buffers = s->buffers;
    return OPJIT_OK;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static bool same_bytes(const side *a, uint32_t t, const side *b, uint32_t u)
{
    const ir_tensor *own = &a->f->tensors[t], *other = &b->f->tensors[u];

    if (own->role == IR_SCRATCH || own->role == IR_VIEW)
        return true;
    if (own->bytes != other->bytes)
        return false;
    if (own->role == IR_CONSTANT && own->data != NULL)
        return other->data != NULL && memcmp(own->data, other->data, (size_t)own->bytes) == 0;
    if (a->versions[t] == b->versions[u] && a->versions[t] != OWN)
        return true;
    const uint8_t *const x = memory_of(a, t), *const y = memory_of(b, u);
    return x != NULL && y != NULL && memcmp(x, y, (size_t)own->bytes) == 0;
}

/* A pair: whether it has the same inputs, and writes on the same; its outputs are any. */
static bool pass_over(side *a, uint32_t i, side *b, uint32_t k, uint64_t version)
{
    const stage *own = &a->stages[i], *other = &b->stages[k];

    for (uint32_t n = 0; n < own->tensor_count; n++)
        if (!same_bytes(a, own->tensors[n], b, other->tensors[n]))
            return false;
    for (uint32_t n = 0; n < own->tensor_count; n++) {
        const uint32_t t = own->tensors[n], u = other->tensors[n];
        if (!own->written[n] || a->f->tensors[t].role == IR_SCRATCH)
            continue;
        a->versions[t] = b->versions[u] = version;
        if (memory_of(a, t) != NULL)
            fill(&a->f->tensors[t], memory_of(a, t), version + UINT32_MAX);
        if (memory_of(b, u) != NULL)
            fill(&b->f->tensors[u], memory_of(b, u), version + UINT32_MAX);
    }
    return true;
}

/* Interprets stages up to the next one of a pair.  false: one of them is wrong. */
static opjit_status run_to_pair(side *s, uint32_t *at, bool *out, opjit_error *error)
{
    for (; *at < s->count && s->match[*at] == 0 && *out; ++*at) {
        const stage *own = &s->stages[*at];
        s->run.stage = *at;
        s->run.end = (uint64_t)ir_index_value(s->f, ir_operand(s->f, own->node, 1));
        const opjit_status status = opjit_ir_interpret(s->f, &s->run, error);
        if (status == OPJIT_OUT_OF_MEMORY)
            return status;
        *out = status == OPJIT_OK;
        for (uint32_t i = 0; i < own->tensor_count; i++)
            if (own->written[i])
                s->versions[own->tensors[i]] = OWN;
    }
    return OPJIT_OK;
}

static bool same_results(const side *a, const side *b)
{
    for (uint32_t t = 1; t < a->f->tensor_count; t++)
        for (uint32_t u = 1; a->f->tensors[t].role == IR_OUT && u < b->f->tensor_count; u++)
            if (b->f->tensors[u].role == IR_OUT && a->f->tensors[t].slot == b->f->tensors[u].slot &&
                !same_bytes(a, t, b, u))
                return false;
    return true;
}

static opjit_status run_both(side *a, side *b, bool *out, opjit_error *error)
{
    uint32_t i = 0, k = 0;

    for (uint64_t version = 1; *out; version++) {
        TRY(run_to_pair(a, &i, out, error));
        TRY(run_to_pair(b, &k, out, error));
        if (!*out || i == a->count || k == b->count)
            break;
        *out = pass_over(a, i++, b, k++, version);
    }
    *out = *out && same_results(a, b);
    return OPJIT_OK;
}

/* Which tensors stages that are interpreted use, and how much work these are. */
static opjit_status list_used(side *s, rt_arena *arena, uint64_t *out_work, opjit_error *error)
{
    *out_work = 0;
    s->is_used = ARENA_ARRAY(arena, bool, s->f->tensor_count);
    s->versions = ARENA_ARRAY(arena, uint64_t, s->f->tensor_count);
    if (s->is_used == NULL || s->versions == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < s->count; i++) {
        const stage *own = &s->stages[i];
        if (s->match[i] != 0)
            continue;
        *out_work = sum_of(*out_work, ir_is_index_const(s->f, ir_operand(s->f, own->node, 1)) ? own->work : UINT64_MAX);
        for (uint32_t n = 0; n < own->tensor_count; n++)
            s->is_used[own->tensors[n]] = true;
    }
    return OPJIT_OK;
}

static opjit_status replay(side *a, side *b, uint64_t *work, rt_arena *arena, ir_answer *out, opjit_error *error)
{
    const uint64_t most = *work;
    bool known = true, same = true;
    uint64_t other;

    TRY(find_matches(a, b, arena, error));
    TRY(list_used(a, arena, work, error));
    TRY(list_used(b, arena, &other, error));
    *work = *work > other ? *work : other;
    known = *work <= most;
    if (known)
        TRY(make_memory(a, arena, &known, error));
    if (known)
        TRY(make_memory(b, arena, &known, error));
    if (known)
        TRY(run_both(a, b, &same, error));
    *out = !known ? IR_ANSWER_UNKNOWN : same ? IR_ANSWER_SAME : IR_ANSWER_OTHER;
    return OPJIT_OK;
}

/* After it was simplified: it has nodes of no section. */
static opjit_status pack_again(ir_func *f, opjit_error *error)
{
    f->section_count = f->packed = 0;
    return opjit_ir_pack(f, error);
}

opjit_status opjit_ir_replay(const ir_general *g, const int64_t *values, const ir_func *loops, uint64_t *work,
                             ir_answer *out, opjit_error *error)
{
    ir_func instance, own;
    rt_arena arena;
    side a, b;

    *out = IR_ANSWER_OTHER;
    opjit_status status = opjit_ir_general_pair(g, values, loops, &instance, &own, error);
    if (status != OPJIT_OK) /* there is none for these values */
        return status == OPJIT_OUT_OF_MEMORY ? status : OPJIT_OK;
    opjit_rt_arena_init(&arena, own.arena.allocator);
    status = pack_again(&instance, error);
    if (status == OPJIT_OK)
        status = pack_again(&own, error);
    if (status == OPJIT_OK)
        status = spell(&own, &arena, &a, error);
    if (status == OPJIT_OK)
        status = spell(&instance, &arena, &b, error);
    if (status == OPJIT_OK)
        status = replay(&a, &b, work, &arena, out, error);
    opjit_rt_arena_free(&arena);
    opjit_ir_free(&instance);
    opjit_ir_free(&own);
    return status;
}
