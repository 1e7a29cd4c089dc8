/* SPDX-License-Identifier: Apache-2.0 */
/* equal_stages.c - finds equal stages: their code is made once.  Layers of a model differ in where their tensors are,
 * and variants in the few stages whose buffers share memory.  The code of stages that differ in places alone takes its
 * pointers from a table, which a function of each stage fills in (function.c).  A kernel of one stage is not worth that
 * call: there only stages of equal places, of several variants, are one. */
#include "codegen/driver/driver.h"

#include <string.h>

/* What was found by its text. */
typedef struct found {
    const void *text; /* NULL: none */
    size_t size;
    cg_single *stage;
} found;

typedef struct finder {
    rt_arena *arena;
    found *table; /* by hash */
    uint32_t mask;
    rt_bytes text;
    opjit_error *error;
} finder;

/* --- texts -------------------------------------------------------------------------------------------------------- */

static void put_place(const ir_tensor *t, rt_bytes *out)
{
    opjit_rt_bytes_u64(out, t->role == IR_TEMP || t->role == IR_KEPT ? (uint64_t)t->offset : t->slot);
}

static void put_tensor(const cg_single *s, uint32_t tensor, bool places, rt_bytes *out)
{
    const ir_tensor *t = &s->ir.tensors[tensor];
    const uint64_t fields[] = { t->role, t->type, t->rank, t->bytes, t->align, t->alias, t->of, s->aliased[tensor] };
    opjit_rt_bytes_append(out, fields, sizeof(fields));
    opjit_rt_bytes_append(out, t->sizes, t->rank * sizeof(t->sizes[0]));
    opjit_rt_bytes_append(out, t->strides, t->rank * sizeof(t->strides[0]));
    if (!cg_has_place(t))
        opjit_rt_bytes_u64(out, (uint64_t)t->offset);
    else if (places)
        put_place(t, out);
}

static void put_interval(const ir_param *p, rt_bytes *out)
{
    opjit_rt_bytes_u64(out, (uint64_t)p->lo);
    opjit_rt_bytes_u64(out, (uint64_t)p->hi);
}

/* Writes everything that the stage's code depends on, apart from what all stages have in common. */
static void put_stage(const cg_single *s, bool places, rt_bytes *out)
{
    const ir_func *ir = &s->ir;
    for (uint32_t i = 1; i < ir->node_count; i++) {
        opjit_rt_bytes_append(out, &ir->nodes[i], offsetof(ir_node, body) + sizeof(ir->nodes[i].body));
        opjit_rt_bytes_append(out, &ir->nodes[i].imm, sizeof(ir->nodes[i].imm));
        if (ir->nodes[i].op == IR_PARAM) /* a dimension's interval is its variant's */
            put_interval(&ir->params[ir->nodes[i].ref], out);
    }
    opjit_rt_bytes_append(out, ir->operands, ir->operand_count * sizeof(ir->operands[0]));
    for (uint32_t t = 1; t < ir->tensor_count; t++)
        put_tensor(s, t, places, out);
    opjit_rt_bytes_u32(out, ir->body);
    opjit_rt_bytes_u32(out, places);
}

/* Where its tensors are, and whose code it has. */
static void put_places(const cg_single *s, rt_bytes *out)
{
    opjit_rt_bytes_u32(out, s->first->variant);
    opjit_rt_bytes_u32(out, s->first->number);
    for (uint32_t t = 1; t < s->ir.tensor_count; t++)
        if (cg_has_place(&s->ir.tensors[t]))
            put_place(&s->ir.tensors[t], out);
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

/* Finds the first stage of the text; enters *stage where there is none before it.  The text is then empty. */
static opjit_status find(finder *f, cg_single *stage, cg_single **out)
{
    rt_bytes *text = &f->text;
    if (text->failed)
        return opjit_rt_no_memory(f->error);
    uint32_t i = (uint32_t)opjit_rt_hash(text->data, text->size).lo & f->mask;
    while (f->table[i].text &&
           (f->table[i].size != text->size || memcmp(f->table[i].text, text->data, text->size) != 0))
        i = (i + 1) & f->mask;
    if (!f->table[i].text)
        f->table[i] = (found){ opjit_rt_arena_copy(f->arena, text->data, text->size, 1), text->size, stage };
    *out = f->table[i].stage;
    text->size = 0;
    return f->table[i].text ? OPJIT_OK : opjit_rt_no_memory(f->error);
}

static void join(cg_single *s)
{
    cg_single *first = s->first;
    if (s != first)
        first->last->next = s;
    first->last = s;
    first->shared = first->shared || (s != first && s->same == s);
}

/* Each stage's `first` and `same`.  named: each stage has a function, by whose name it is found. */
static opjit_status find_all(finder *f, cg_stages *stages, bool named)
{
    for (uint32_t i = 0; i < stages->count; i++) {
        cg_single *s = &stages->at[i];
        const bool alone = stages->variants[s->variant + 1] - stages->variants[s->variant] == 1;
        s->first = s->same = s;
        if (!named || !alone) {
            put_stage(s, alone, &f->text);
            TRY(find(f, s, &s->first));
        }
        if (!named) {
            put_places(s, &f->text);
            TRY(find(f, s, &s->same));
        }
        join(s);
        if (s->first == s)
            stages->codes[stages->code_count++] = s;
    }
    return OPJIT_OK;
}

/* --- a list of stages --------------------------------------------------------------------------------------------- */

static opjit_status take_variant(cg_stages *stages, const ir_func *ir, uint32_t variant, rt_arena *arena,
                                 opjit_error *error)
{
    cg_whole whole;
    rt_arena own;
    opjit_rt_arena_init(&own, arena->allocator);
    opjit_status status = opjit_cg_whole_init(&whole, ir, &own, error);
    for (ir_ref s = ir->body; s != 0 && status == OPJIT_OK; s = ir_at(ir, s)->next) {
        cg_single *single = &stages->at[stages->count];
        status = opjit_cg_single(&whole, s, arena, single, error);
        single->variant = variant;
        single->number = stages->count++ - stages->variants[variant];
    }
    opjit_rt_arena_free(&own);
    return status;
}

static opjit_status find_equal(cg_stages *stages, bool named, rt_arena *arena, opjit_error *error)
{
    finder f = { .arena = arena, .error = error };
    uint32_t room = 2;
    while (room < 4 * (uint64_t)stages->count) /* two texts per stage */
        room *= 2;
    f.mask = room - 1;
    f.table = ARENA_ARRAY(arena, found, room);
    if (!f.table)
        return opjit_rt_no_memory(error);
    opjit_rt_bytes_init(&f.text, arena->allocator);
    const opjit_status status = find_all(&f, stages, named);
    opjit_rt_bytes_free(&f.text);
    return status;
}

opjit_status opjit_cg_stages_init(cg_stages *stages, const ir_func *const *variants, uint32_t count, cg_equal equal,
                                  rt_arena *arena, opjit_error *error)
{
    uint32_t *firsts = ARENA_ARRAY(arena, uint32_t, (size_t)count + 1);
    if (!firsts)
        return opjit_rt_no_memory(error);
    for (uint32_t v = 0; v < count; v++) {
        firsts[v + 1] = firsts[v];
        for (ir_ref s = variants[v]->body; s != 0; s = ir_at(variants[v], s)->next)
            firsts[v + 1]++;
    }
    *stages = (cg_stages){ .variants = firsts,
                           .variant_count = count,
                           .at = ARENA_ARRAY(arena, cg_single, firsts[count]),
                           .codes = ARENA_ARRAY(arena, cg_single *, firsts[count]) };
    if (!stages->at || !stages->codes)
        return opjit_rt_no_memory(error);
    for (uint32_t v = 0; v < count; v++)
        TRY(take_variant(stages, variants[v], v, arena, error));
    if (equal != CG_EQUAL_APART && stages->count > 1)
        return find_equal(stages, equal == CG_EQUAL_NAMED, arena, error);
    for (uint32_t i = 0; i < stages->count; i++) {
        cg_single *s = &stages->at[i];
        s->first = s->same = s->last = stages->codes[stages->code_count++] = s;
    }
    return OPJIT_OK;
}
