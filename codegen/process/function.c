/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - a function of the IR as bytes, and back.  What comes back may be anything, so before somebody follows
 * its references it is checked that they lead somewhere and never in a circle: afterwards the verifier and code
 * generation can walk it, as if it had been parsed. */
#include "codegen/process/message.h"

enum { ALIGNMENT = 16, MOST_NESTED = 256, MOST_NODES = 1 << 26 /* as the IR's own limit */ };

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static void *take_bytes(cp_reader *r, size_t size)
{
    if (r->bad || size > r->size - r->at) {
        r->bad = true;
        return NULL;
    }
    r->at += size;
    return r->data + (r->at - size);
}

uint32_t opjit_cp_u32(cp_reader *r)
{
    uint32_t value = 0;
    const void *at = take_bytes(r, sizeof value);
    if (at)
        memcpy(&value, at, sizeof value);
    return value;
}

uint64_t opjit_cp_u64(cp_reader *r)
{
    uint64_t value = 0;
    const void *at = take_bytes(r, sizeof value);
    if (at)
        memcpy(&value, at, sizeof value);
    return value;
}

void *opjit_cp_array(cp_reader *r, uint64_t count, size_t size)
{
    uint64_t bytes;
    take_bytes(r, (size_t)(align_up(r->at, ALIGNMENT) - r->at));
    if (!checked_mul(count, size, &bytes) || bytes > SIZE_MAX) {
        r->bad = true;
        return NULL;
    }
    return take_bytes(r, (size_t)bytes);
}

const char *opjit_cp_text(cp_reader *r)
{
    const uint32_t size = opjit_cp_u32(r);
    const char *text = size == 0 ? NULL : take_bytes(r, size);
    if (text && memchr(text, '\0', size) != text + size - 1)
        r->bad = true;
    return r->bad ? NULL : text;
}

void opjit_cp_put_array(rt_bytes *out, const void *data, uint64_t count, size_t size)
{
    opjit_rt_bytes_align(out, ALIGNMENT);
    opjit_rt_bytes_append(out, data, (size_t)count * size);
}

void opjit_cp_put_text(rt_bytes *out, const char *text)
{
    const size_t size = text ? strlen(text) + 1 : 0;
    opjit_rt_bytes_u32(out, (uint32_t)size);
    opjit_rt_bytes_append(out, text, size);
}

/* --- to bytes ----------------------------------------------------------------------------------------------------- */

/* Code does not depend on what constants hold, so their bytes stay here. */
void opjit_cp_put_function(const ir_func *f, rt_bytes *out)
{
    const uint32_t counts[] = { f->phase,       f->node_count,    f->operand_count, f->tensor_count,
                                f->param_count, f->section_count, f->body };
    opjit_cp_put_text(out, f->name);
    opjit_cp_put_text(out, f->target);
    opjit_rt_bytes_append(out, counts, sizeof counts);
    opjit_rt_bytes_u64(out, f->shared_size);
    opjit_rt_bytes_u64(out, f->scratch_size);
    opjit_rt_bytes_u64(out, f->kept_size);
    opjit_cp_put_array(out, f->nodes, f->node_count, sizeof *f->nodes);
    opjit_cp_put_array(out, f->operands, f->operand_count, sizeof *f->operands);
    opjit_cp_put_array(out, f->sections, f->section_count, sizeof *f->sections);
    opjit_rt_bytes_align(out, ALIGNMENT);
    for (uint32_t i = 0; i < f->tensor_count; i++) {
        ir_tensor t = f->tensors[i];
        t.name = NULL;
        t.data = NULL;
        t.size_forms = NULL;
        opjit_rt_bytes_append(out, &t, sizeof t);
    }
    opjit_rt_bytes_align(out, ALIGNMENT);
    for (uint32_t i = 0; i < f->param_count; i++) {
        ir_param p = f->params[i];
        p.name = NULL;
        opjit_rt_bytes_append(out, &p, sizeof p);
    }
    for (uint32_t i = 1; i < f->tensor_count; i++)
        opjit_cp_put_text(out, f->tensors[i].name);
    for (uint32_t i = 1; i < f->param_count; i++)
        opjit_cp_put_text(out, f->params[i].name);
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static bool is_node(const ir_func *f, ir_ref r, ir_op op)
{
    return r > 0 && r < f->node_count && f->nodes[r].op == op;
}

static bool has_tensor(const ir_func *f, const ir_node *n, uint32_t beside)
{
    return n->ref > 0 && n->ref < f->tensor_count && n->count == f->tensors[n->ref].rank + beside;
}

static bool has_owner(const ir_func *f, ir_ref r)
{
    const ir_ref owner = f->nodes[r].ref;
    return (is_node(f, owner, IR_FOR) || is_node(f, owner, IR_STAGE)) && f->nodes[owner].ref == r;
}

/* Operands are as many as the table says. */
static bool check_expression(const ir_func *f, ir_ref r)
{
    const ir_node *n = &f->nodes[r];
    switch ((ir_op)n->op) {
    case IR_VAR: return n->count == 0 && has_owner(f, r);
    case IR_PARAM: return n->count == 0 && n->ref > 0 && n->ref < f->param_count;
    case IR_GET: return n->count == 0 && (is_node(f, n->ref, IR_LET) || is_node(f, n->ref, IR_ACC));
    case IR_LOAD: return has_tensor(f, n, 0);
    case IR_HEAD: return n->count == 1 && n->ref > 0 && n->ref < f->tensor_count;
    default: return n->count == strlen(opjit_ir_op_infos[n->op].operands);
    }
}

static bool check_statement(const ir_func *f, ir_ref r)
{
    const ir_node *n = &f->nodes[r];
    switch ((ir_op)n->op) {
    case IR_FOR:
    case IR_STAGE: return n->count == 2 && is_node(f, n->ref, IR_VAR) && f->nodes[n->ref].ref == r;
    case IR_LET: return n->count == 1;
    case IR_ACC: return n->count == 0;
    case IR_UPD: return n->count >= 1 && n->count <= 2 && is_node(f, n->ref, IR_ACC);
    case IR_STORE: return has_tensor(f, n, 1);
    case IR_SYNC: return n->count == 0;
    default: return false; /* of the value form, of which no code is made */
    }
}

static bool is_statement(const ir_node *n)
{
    return n->op != IR_OP_NONE && (opjit_ir_op_infos[n->op].flags & (IR_FLAG_S | IR_FLAG_K)) != 0;
}

static bool check_node(const ir_func *f, ir_ref r)
{
    const ir_node *n = &f->nodes[r];
    if (n->op == IR_OP_NONE || n->op >= IR_OP_COUNT || n->type >= IR_TYPE_COUNT || n->kind >= IR_KIND_COUNT ||
        n->first > f->operand_count || n->count > f->operand_count - n->first || n->next >= f->node_count ||
        n->body >= f->node_count)
        return false;
    for (uint32_t i = 0; i < n->count; i++) {
        const ir_ref operand = f->operands[n->first + i];
        if (operand == 0 || operand >= f->node_count || f->nodes[operand].op >= IR_OP_COUNT ||
            is_statement(&f->nodes[operand]))
            return false;
    }
    if (is_statement(n))
        return check_statement(f, r);
    return n->next == 0 && n->body == 0 && check_expression(f, r);
}

/* Whether the list and what is below is a tree: each statement is led to once. */
static bool check_list(const ir_func *f, ir_ref first, uint8_t *seen, uint32_t depth)
{
    for (ir_ref r = first; r != 0; r = f->nodes[r].next) {
        const ir_node *n = &f->nodes[r];
        if (seen[r] != 0 || (n->op == IR_STAGE) != (depth == 0) || !is_statement(n) || depth > MOST_NESTED)
            return false;
        seen[r] = 1;
        if (n->op != IR_FOR && n->op != IR_STAGE ? n->body != 0 : !check_list(f, n->body, seen, depth + 1))
            return false;
    }
    return true;
}

/* What a value is made of: operands, and behind the last one the statement whose value a get reads; 0: no more. */
static ir_ref part_of(const ir_func *f, ir_ref r, uint32_t index)
{
    const ir_node *n = &f->nodes[r];
    if (index < n->count)
        return f->operands[n->first + index];
    return index == n->count && n->op == IR_GET && f->nodes[n->ref].op == IR_LET ? n->ref : 0;
}

/* Whether no value is made of itself.  next: by node, the part to look at; path: room for all nodes.  seen: 2 where
 * that is known, 1 on the path. */
static bool check_values(const ir_func *f, uint8_t *seen, uint32_t *next, ir_ref *path)
{
    for (ir_ref root = 1; root < f->node_count; root++) {
        uint32_t depth = 0;
        if (seen[root] == 0)
            path[depth++] = root;
        while (depth > 0) {
            const ir_ref r = path[depth - 1], part = part_of(f, r, next[r]++);
            seen[r] = part == 0 ? 2 : 1;
            if (part == 0)
                depth--;
            else if (seen[part] == 1)
                return false;
            else if (seen[part] == 0)
                path[depth++] = part;
        }
    }
    return true;
}

static bool check_tensor(const ir_func *f, uint32_t index)
{
    const ir_tensor *t = &f->tensors[index];
    return (uint32_t)t->role >= IR_IN && (uint32_t)t->role <= IR_VIEW && (uint32_t)t->type < IR_TYPE_COUNT &&
           ir_is_element(t->type) && t->rank > 0 && t->rank <= 8 && t->alias < f->tensor_count &&
           t->fed_by < f->tensor_count && t->feeds < f->tensor_count && t->of < f->tensor_count &&
           (t->role == IR_VIEW) == (t->of != 0) && (t->alias == 0 || f->tensors[t->alias].role == IR_IN);
}

/* Views lead to what is no view.  seen: 2 where that is known, 1 on the way. */
static bool check_views(const ir_func *f, uint8_t *seen)
{
    for (uint32_t i = 1; i < f->tensor_count; i++) {
        uint32_t at = i;
        for (; f->tensors[at].role == IR_VIEW && seen[at] == 0; at = f->tensors[at].of)
            seen[at] = 1;
        if (f->tensors[at].role == IR_VIEW && seen[at] == 1)
            return false;
        for (at = i; f->tensors[at].role == IR_VIEW && seen[at] == 1; at = f->tensors[at].of)
            seen[at] = 2;
    }
    return true;
}

static bool check_sections(const ir_func *f)
{
    uint32_t end = 1;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const ir_section *s = &f->sections[i];
        if (s->first < end || s->end < s->first || s->end > f->node_count || s->stage < s->first ||
            s->stage >= s->end || f->nodes[s->stage].op != IR_STAGE)
            return false;
        end = s->end;
    }
    return true;
}

/* Tables with a place for each node, or each tensor. */
typedef struct tables {
    uint8_t *list, *values, *views;
    uint32_t *next;
    ir_ref *path;
} tables;

static bool check(const ir_func *f, const tables *t)
{
    for (uint32_t i = 1; i < f->tensor_count; i++)
        if (!check_tensor(f, i))
            return false;
    for (uint32_t i = 1; i < f->param_count; i++)
        if ((uint32_t)f->params[i].type >= IR_TYPE_COUNT)
            return false;
    for (ir_ref r = 1; r < f->node_count; r++)
        if (!check_node(f, r))
            return false;
    return check_sections(f) && check_list(f, f->body, t->list, 0) && check_values(f, t->values, t->next, t->path) &&
           check_views(f, t->views);
}

/* --- from bytes --------------------------------------------------------------------------------------------------- */

static bool is_count(uint32_t count)
{
    return count > 0 && count <= MOST_NODES;
}

static void take_arrays(cp_reader *r, ir_func *f)
{
    f->nodes = opjit_cp_array(r, f->node_count, sizeof *f->nodes);
    f->operands = opjit_cp_array(r, f->operand_count, sizeof *f->operands);
    f->sections = opjit_cp_array(r, f->section_count, sizeof *f->sections);
    f->tensors = opjit_cp_array(r, f->tensor_count, sizeof *f->tensors);
    f->params = opjit_cp_array(r, f->param_count, sizeof *f->params);
    if (r->bad)
        return;
    for (uint32_t i = 0; i < f->tensor_count; i++) {
        f->tensors[i].name = i == 0 ? NULL : opjit_cp_text(r);
        f->tensors[i].data = NULL;
        f->tensors[i].size_forms = NULL;
    }
    for (uint32_t i = 0; i < f->param_count; i++)
        f->params[i].name = i == 0 ? NULL : opjit_cp_text(r);
}

const ir_func *opjit_cp_take_function(cp_reader *r, rt_arena *arena, opjit_error *error)
{
    ir_func *f = ARENA_NEW(arena, ir_func);
    if (!f) {
        opjit_rt_no_memory(error);
        return NULL;
    }
    f->allocator = arena->allocator;
    f->name = opjit_cp_text(r);
    f->target = opjit_cp_text(r);
    const uint32_t phase = opjit_cp_u32(r);
    f->phase = (ir_phase)phase;
    f->node_capacity = f->node_count = opjit_cp_u32(r);
    f->operand_capacity = f->operand_count = opjit_cp_u32(r);
    f->tensor_capacity = f->tensor_count = opjit_cp_u32(r);
    f->param_capacity = f->param_count = opjit_cp_u32(r);
    f->section_count = opjit_cp_u32(r);
    f->body = opjit_cp_u32(r);
    f->shared_size = opjit_cp_u64(r);
    f->scratch_size = opjit_cp_u64(r);
    f->kept_size = opjit_cp_u64(r);
    r->bad = r->bad || !f->name || phase < IR_PLACED || phase >= IR_PHASE_COUNT || !is_count(f->node_count) ||
             f->operand_count > MOST_NODES || !is_count(f->tensor_count) || !is_count(f->param_count) ||
             f->section_count > f->node_count || f->body >= f->node_count;
    take_arrays(r, f);
    if (r->bad)
        return NULL;
    const tables t = { .list = ARENA_ARRAY(arena, uint8_t, f->node_count),
                       .values = ARENA_ARRAY(arena, uint8_t, f->node_count),
                       .views = ARENA_ARRAY(arena, uint8_t, f->tensor_count),
                       .next = ARENA_ARRAY(arena, uint32_t, f->node_count),
                       .path = ARENA_ARRAY(arena, ir_ref, f->node_count) };
    if (!t.list || !t.values || !t.views || !t.next || !t.path) {
        opjit_rt_no_memory(error);
        return NULL;
    }
    r->bad = !check(f, &t);
    return r->bad ? NULL : f;
}
