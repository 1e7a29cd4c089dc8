/* SPDX-License-Identifier: Apache-2.0 */
/* once.c - stages that run once.  Part of expand, its last step: a stage that reads constants alone, or what such
 * stages store, and stores one temp, makes the same bytes at each call.  It is marked and moved to the front, and what
 * other stages read of it is kept.  Of equal ones, which the steps of a recurrence have, one is left.
 * Needs: scheduled loop form for a CPU.  Leaves: rule V22. */
#include "ir/passes/pass.h"

#include <string.h>

enum {
    MOST_GROWTH = 4,         /* what is kept, in bytes, for each byte that it is made of, */
    LEAST_LIMIT = 64 * 1024, /* and always as much */
};

typedef struct finder {
    ir_func *f;
    uint32_t *stores, *once; /* by temp: stages that store it, and those of them that run once */
    uint32_t *read;          /* by tensor: the last stage that read it, counted from 1 */
    uint32_t stage;
} finder;

bool opjit_ir_may_keep(uint64_t bytes, uint64_t from)
{
    return bytes <= LEAST_LIMIT || bytes / MOST_GROWTH <= from;
}

uint64_t opjit_ir_constant_bytes(ir_func *f, const inline_source *sources, ir_ref expr)
{
    const ir_reach seen = opjit_ir_reach_one(f, expr);
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        const uint32_t root = n->op == IR_LOAD ? opjit_ir_root(f, n->ref) : 0;
        const uint64_t own = f->tensors[root].role == IR_CONSTANT ? f->tensors[root].bytes : sources[root].constant;
        if (n->op == IR_PARAM || (n->op == IR_LOAD && own == 0))
            return 0;
        bytes = n->op == IR_LOAD && own > bytes ? own : bytes;
    }
    return bytes;
}

/* Sets *temp, 0 before, to the one temp that the statements store.  false: they store something else. */
static bool find_stored(const ir_func *f, ir_ref first, uint32_t *temp)
{
    for (ir_ref r = first; r != 0; r = ir_at(f, r)->next) {
        const ir_node *n = ir_at(f, r);
        if (!find_stored(f, n->body, temp)) /* as deep as loops nest: rule V16 */
            return false;
        if (n->op != IR_STORE || f->tensors[n->ref].role == IR_SCRATCH)
            continue;
        if (f->tensors[n->ref].role != IR_TEMP || (*temp != 0 && *temp != n->ref))
            return false;
        *temp = n->ref;
    }
    return true;
}

/* Temps that the statements store are none of a stage that runs once. */
static void rule_out(finder *s, ir_ref first)
{
    for (ir_ref r = first; r != 0; r = ir_at(s->f, r)->next) {
        rule_out(s, ir_at(s->f, r)->body);
        if (ir_at(s->f, r)->op == IR_STORE)
            s->stores[ir_at(s->f, r)->ref] = UINT32_MAX / 2;
    }
}

/* Whether all that the stage reads is there before any call; *bytes: how much that is. */
static bool reads_constants(finder *s, const ir_reach *seen, uint32_t own, uint64_t *bytes)
{
    const ir_func *f = s->f;
    *bytes = 0;
    for (uint32_t k = 0; k < seen->count; k++) {
        const ir_node *n = ir_at(f, seen->nodes[k]);
        if (n->op == IR_PARAM || n->op == IR_HEAD)
            return false;
        if (n->op != IR_LOAD)
            continue;
        const uint32_t root = opjit_ir_root(f, n->ref);
        const ir_tensor *t = &f->tensors[root];
        if (t->role == IR_SCRATCH || root == own)
            continue;
        if (t->role != IR_CONSTANT && (t->role != IR_TEMP || s->stores[root] == 0 || s->once[root] < s->stores[root]))
            return false;
        if (s->read[root] != s->stage && !checked_add(*bytes, t->bytes, bytes))
            return false;
        s->read[root] = s->stage;
    }
    return true;
}

/* Of a stage that stores the temp. */
static bool is_once(finder *s, ir_ref stage, uint32_t temp)
{
    const rt_arena_mark mark = rt_arena_position(&s->f->scratch);
    const ir_reach seen = opjit_ir_reach_one(s->f, stage);
    uint64_t bytes;
    const bool once = seen.nodes != NULL && reads_constants(s, &seen, temp, &bytes) &&
                      opjit_ir_may_keep(s->f->tensors[temp].bytes, bytes);
    opjit_rt_arena_rewind(&s->f->scratch, mark);
    return once;
}

/* By stage, first the temp that it alone stores, then 0 where it runs at each call. */
static void find_temps(finder *s, uint32_t *temps)
{
    uint32_t at = 0;
    for (ir_ref r = s->f->body; r != 0; r = ir_at(s->f, r)->next) {
        uint32_t temp = 0;
        if (!find_stored(s->f, ir_at(s->f, r)->body, &temp))
            temp = 0;
        if (temp == 0)
            rule_out(s, ir_at(s->f, r)->body);
        temps[at++] = temp;
        s->stores[temp]++;
    }
}

static void find_once(finder *s, uint32_t *temps)
{
    for (ir_ref r = s->f->body; r != 0; r = ir_at(s->f, r)->next, s->stage++) {
        uint32_t *const temp = &temps[s->stage - 1];
        if (*temp != 0 && !is_once(s, r, *temp))
            *temp = 0;
        s->once[*temp]++;
    }
}

/* Temps that stages of each call read. */
static void keep(ir_func *f, ir_ref stage, const bool *made)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    const ir_reach seen = opjit_ir_reach_one(f, stage);
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        const uint32_t root = n->op == IR_LOAD ? opjit_ir_root(f, n->ref) : 0;
        if (made[root])
            f->tensors[root].role = IR_KEPT;
    }
    opjit_rt_arena_rewind(&f->scratch, mark);
}

/* --- equal ones --------------------------------------------------------------------------------------------------- */

/* Temps by the texts of the stages that make them, and what takes the place of those that are made again. */
typedef struct merger {
    ir_func *f;
    struct {
        const void *text; /* NULL: none */
        size_t size;
        uint32_t temp;
    } *table; /* by hash */
    uint32_t mask;
    uint32_t *instead; /* by tensor: the one with the same bytes; 0: itself */
    uint32_t *local;   /* by tensor: its number in the text at hand, if `group` is that one's */
    uint32_t *group;
    uint32_t now, locals;
    bool all_local; /* no tensor but constants is known by its number in the function */
    rt_bytes text;
} merger;

/* Constants are known by their slots; what the stage itself writes, by where it is met first.  Where memory of a call
 * lies does not matter. */
static void put_tensor(merger *m, uint32_t tensor, uint32_t own)
{
    const ir_tensor *t = &m->f->tensors[tensor];
    const bool is_local = tensor == own || t->role == IR_SCRATCH || (m->all_local && t->role != IR_CONSTANT);
    if (t->role == IR_VIEW)
        put_tensor(m, t->of, own);
    if (m->group[tensor] != m->now) {
        m->group[tensor] = m->now;
        m->local[tensor] = m->locals++;
    }
    const uint32_t number = is_local || t->role == IR_VIEW ? m->local[tensor]
                            : t->role == IR_CONSTANT       ? t->slot
                            : m->instead[tensor] != 0      ? m->instead[tensor]
                                                           : tensor;
    const uint64_t offset = t->role == IR_SCRATCH || t->role == IR_TEMP ? 0 : (uint64_t)t->offset;
    const uint64_t fields[] = { t->role, t->type, t->rank, t->bytes, t->align, offset, is_local, number };
    opjit_rt_bytes_append(&m->text, fields, sizeof fields);
    opjit_rt_bytes_append(&m->text, t->sizes, t->rank * sizeof t->sizes[0]);
    opjit_rt_bytes_append(&m->text, t->strides, t->rank * sizeof t->strides[0]);
}

/* Appends what the stage does, whatever its nodes' numbers are. */
static void put_stage(merger *m, ir_ref stage, uint32_t own)
{
    ir_func *f = m->f;
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    const ir_reach seen = opjit_ir_reach_one(f, stage);
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_ref r = seen.nodes[k];
        const ir_node *n = ir_at(f, r);
        const bool of_tensor = n->op == IR_LOAD || n->op == IR_STORE;
        const bool of_node = n->ref != 0 && !of_tensor;
        const uint64_t fields[] = { n->op, n->type, n->kind, n->hold, n->flags, n->block, n->vec, n->unroll, n->count,
                                    n->imm, of_node ? opjit_ir_reach_place(&seen, n->ref) : 0,
                                    n->body != 0 ? opjit_ir_reach_place(&seen, n->body) : 0,
                                    n->next != 0 && r != stage ? opjit_ir_reach_place(&seen, n->next) : 0 };
        opjit_rt_bytes_append(&m->text, fields, sizeof fields);
        for (uint32_t i = 0; i < n->count; i++)
            opjit_rt_bytes_u32(&m->text, opjit_ir_reach_place(&seen, ir_operand(f, r, i)));
        if (of_tensor)
            put_tensor(m, n->ref, own);
    }
    opjit_rt_arena_rewind(&f->scratch, mark);
}

/* Enters temp, whose stages the text is of.  Where others make the same bytes, their temp is taken instead. */
static void find_equal(merger *m, uint32_t temp)
{
    uint32_t i = (uint32_t)opjit_rt_hash(m->text.data, m->text.size).lo & m->mask;
    while (m->table[i].text != NULL &&
           (m->table[i].size != m->text.size || memcmp(m->table[i].text, m->text.data, m->text.size) != 0))
        i = (i + 1) & m->mask;
    if (m->table[i].text != NULL) {
        m->instead[temp] = m->table[i].temp < temp ? m->table[i].temp : 0; /* what a view shows is older than it */
        return;
    }
    m->table[i].text = opjit_rt_arena_copy(&m->f->scratch, m->text.data, m->text.size, 1);
    m->table[i].size = m->text.size;
    m->table[i].temp = temp;
    m->f->failed = m->f->failed || m->table[i].text == NULL;
}

static bool begin_merging(merger *m, ir_func *f, uint32_t stages)
{
    uint32_t size = 16;
    while (size < 2 * stages)
        size *= 2;
    *m = (merger){ .f = f, .mask = size - 1 };
    m->table = opjit_rt_arena_allocate(&f->scratch, size, sizeof *m->table);
    m->instead = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    m->local = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    m->group = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    opjit_rt_bytes_init(&m->text, f->allocator);
    f->failed = f->failed || m->table == NULL || m->instead == NULL || m->local == NULL || m->group == NULL;
    return !f->failed;
}

/* The stages of one temp after the other, in the order in which the last of each comes. */
static void merge_all(merger *m, const finder *s, const uint32_t *temps, uint32_t count)
{
    ir_func *f = m->f;
    ir_ref *const stages = ARENA_ARRAY(&f->scratch, ir_ref, count);
    uint32_t *const before = ARENA_ARRAY(&f->scratch, uint32_t, count); /* the stage of the same temp, + 1 */
    uint32_t *const last = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    uint32_t *const seen = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    uint32_t at = 0;
    f->failed = f->failed || stages == NULL || before == NULL || last == NULL || seen == NULL;
    for (ir_ref r = f->failed ? 0 : f->body; r != 0 && !f->failed; r = ir_at(f, r)->next, at++) {
        const uint32_t temp = temps[at];
        stages[at] = r;
        before[at] = last[temp];
        last[temp] = at + 1;
        if (temp == 0 || s->once[temp] < s->stores[temp] || ++seen[temp] < s->stores[temp])
            continue;
        m->text.size = 0;
        m->locals = 0;
        m->now++;
        for (uint32_t k = at + 1; k != 0; k = before[k - 1])
            put_stage(m, stages[k - 1], temp);
        f->failed = f->failed || m->text.failed;
        if (!f->failed)
            find_equal(m, temp);
    }
}

/* All that read such a temp read the other one. */
static void end_merging(merger *m)
{
    ir_func *f = m->f;
    opjit_rt_bytes_free(&m->text);
    if (f->failed)
        return;
    for (ir_ref r = 1; r < f->node_count; r++)
        if (f->nodes[r].op == IR_LOAD && m->instead[f->nodes[r].ref] != 0)
            f->nodes[r].ref = m->instead[f->nodes[r].ref];
    for (uint32_t t = 1; t < f->tensor_count; t++)
        if (f->tensors[t].role == IR_VIEW && m->instead[f->tensors[t].of] != 0)
            f->tensors[t].of = m->instead[f->tensors[t].of];
}

/* --- marking ------------------------------------------------------------------------------------------------------ */

void opjit_ir_mark_once(ir_func *f)
{
    finder s = { .f = f, .stage = 1 };
    block first = { 0 }, rest = { 0 };
    uint32_t count = 0, at = 0;
    merger equal;
    ir_ref next;
    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next)
        count++;
    s.stores = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    s.once = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    s.read = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    uint32_t *const temps = ARENA_ARRAY(&f->scratch, uint32_t, count);
    bool *const made = ARENA_ARRAY(&f->scratch, bool, f->tensor_count);
    f->failed = f->failed || !s.stores || !s.once || !s.read || !temps || !made;
    if (f->failed || !begin_merging(&equal, f, count))
        return;
    find_temps(&s, temps);
    find_once(&s, temps);
    merge_all(&equal, &s, temps, count);
    for (ir_ref r = f->body; r != 0; r = next, at++) {
        const uint32_t temp = temps[at];
        next = ir_at(f, r)->next;
        if (temp == 0 || s.once[temp] < s.stores[temp]) {
            opjit_ir_block_add(f, &rest, r);
            continue;
        }
        if (equal.instead[temp] != 0)
            continue;
        f->nodes[r].flags |= IR_STAGE_ONCE;
        made[temp] = true;
        opjit_ir_block_add(f, &first, r);
        ir_took(f, IR_STEP_ONCE);
    }
    end_merging(&equal);
    if (f->failed || first.first == 0)
        return;
    for (ir_ref r = rest.first; r != 0; r = ir_at(f, r)->next)
        keep(f, r, made);
    f->nodes[first.tail].next = rest.first;
    f->body = first.first;
}

/* --- what is made of them ----------------------------------------------------------------------------------------- */

static bool is_marked(const ir_func *f, ir_ref stage)
{
    return stage != 0 && ir_at(f, stage)->op == IR_STAGE && (ir_at(f, stage)->flags & IR_STAGE_ONCE) != 0;
}

uint32_t opjit_ir_once_count(const ir_func *f)
{
    uint32_t count = 0;
    for (ir_ref r = f->body; is_marked(f, r); r = ir_at(f, r)->next)
        count++;
    return count;
}

opjit_status opjit_ir_take_once(const ir_func *f, ir_func *out, opjit_error *error)
{
    const uint32_t count = opjit_ir_once_count(f);
    TRY(opjit_ir_copy(f, out, error));
    out->nodes[f->sections[count - 1].stage].next = 0;
    out->section_count = count;
    return OPJIT_OK;
}

void opjit_ir_remove_once(ir_func *f)
{
    const uint32_t count = opjit_ir_once_count(f);
    f->sections += count;
    f->section_count -= count;
    f->body = f->section_count > 0 ? f->sections[0].stage : 0;
}

void opjit_ir_drop_once(ir_func *f)
{
    for (ir_ref r = f->body; is_marked(f, r); r = ir_at(f, r)->next)
        f->nodes[r].flags &= (uint16_t)~IR_STAGE_ONCE;
    for (uint32_t t = 1; t < f->tensor_count; t++)
        if (f->tensors[t].role == IR_KEPT)
            f->tensors[t].role = IR_TEMP;
}

void opjit_ir_spell_once(ir_func *f, rt_bytes *out)
{
    merger all;
    if (opjit_ir_once_count(f) == 0)
        return;
    out->failed = !begin_merging(&all, f, 0);
    all.all_local = true;
    all.now = 1;
    for (ir_ref r = f->body; is_marked(f, r) && !f->failed; r = ir_at(f, r)->next)
        put_stage(&all, r, 0);
    for (uint32_t t = 1; t < f->tensor_count && !f->failed; t++)
        if (all.group[t] != 0 && f->tensors[t].role == IR_CONSTANT && f->tensors[t].data != NULL)
            opjit_rt_bytes_append(&all.text, f->tensors[t].data, (size_t)f->tensors[t].bytes);
    opjit_rt_bytes_append(out, all.text.data, all.text.size);
    out->failed = out->failed || f->failed || all.text.failed;
    opjit_rt_bytes_free(&all.text);
    opjit_ir_trim(f);
}
