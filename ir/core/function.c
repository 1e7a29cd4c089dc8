/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - functions: memory, builders of nodes and statements, structural comparison.  Builders are literal: they
 * build what is asked for.  Folding is in analysis/simplify.c, substitution in rebuild.c. */
#include "ir/core/internal.h"
#include "ir/eval/numerics.h"

#include <string.h>

/* --- functions ---------------------------------------------------------------------------------------------------- */

opjit_status opjit_ir_init(ir_func *f, const opjit_allocator *allocator, const char *name, opjit_error *error)
{
    memset(f, 0, sizeof(*f));
    f->allocator = allocator;
    opjit_rt_arena_init(&f->arena, allocator);
    opjit_rt_arena_init(&f->scratch, allocator);
    f->node_capacity = 256;
    f->operand_capacity = 512;
    f->tensor_capacity = 16;
    f->param_capacity = 8;
    f->nodes = ARENA_ARRAY(&f->arena, ir_node, f->node_capacity);
    f->operands = ARENA_ARRAY(&f->arena, ir_ref, f->operand_capacity);
    f->tensors = ARENA_ARRAY(&f->arena, ir_tensor, f->tensor_capacity);
    f->params = ARENA_ARRAY(&f->arena, ir_param, f->param_capacity);
    f->name = opjit_rt_arena_string(&f->arena, name, strlen(name));
    if (!f->nodes || !f->operands || !f->tensors || !f->params || !f->name) {
        opjit_ir_free(f);
        return opjit_rt_no_memory(error);
    }
    f->node_count = f->tensor_count = f->param_count = 1; /* 0 is none */
    return OPJIT_OK;
}

void opjit_ir_free(ir_func *f)
{
    if (f->allocator) {
        opjit_ir_trim(f);
        opjit_rt_arena_free(&f->arena);
    }
    memset(f, 0, sizeof(*f));
}

/* Copies text into the arena of f; NULL stays NULL. */
static const char *copy_text(ir_func *f, const char *text)
{
    if (!text)
        return NULL;
    const char *copy = opjit_rt_arena_string(&f->arena, text, strlen(text));
    if (!copy)
        f->failed = true;
    return copy;
}

/* Copies count elements into the arena of f, with room for capacity. */
static void *copy_array(ir_func *f, const void *from, uint32_t count, uint32_t capacity, size_t size)
{
    void *copy = opjit_rt_arena_reserve(&f->arena, capacity * size);
    if (copy && count > 0)
        memcpy(copy, from, count * size);
    f->failed = f->failed || !copy;
    return copy;
}

static void copy_tensor_memory(ir_func *f, ir_tensor *tensor)
{
    tensor->name = copy_text(f, tensor->name);
    if (tensor->data && tensor->bytes <= SIZE_MAX) {
        tensor->data = opjit_rt_arena_copy(&f->arena, tensor->data, (size_t)tensor->bytes, 1);
        f->failed = f->failed || tensor->data == NULL;
    }
}

opjit_status opjit_ir_copy(const ir_func *f, ir_func *out, opjit_error *error)
{
    const opjit_status status = opjit_ir_init(out, f->allocator, f->name, error);
    if (status != OPJIT_OK)
        return status;
    rt_arena arena = out->arena, scratch = out->scratch;
    const char *name = out->name;
    *out = *f;
    out->arena = arena;
    out->scratch = scratch;
    out->walks = (ir_walks){ 0 };
    out->intervals = NULL;
    out->interval_count = 0;
    out->name = name;
    out->target = copy_text(out, f->target);
    out->nodes = copy_array(out, f->nodes, f->node_count, f->node_capacity, sizeof(ir_node));
    out->operands = copy_array(out, f->operands, f->operand_count, f->operand_capacity, sizeof(ir_ref));
    out->tensors = copy_array(out, f->tensors, f->tensor_count, f->tensor_capacity, sizeof(ir_tensor));
    out->params = copy_array(out, f->params, f->param_count, f->param_capacity, sizeof(ir_param));
    if (f->sections)
        out->sections = copy_array(out, f->sections, f->section_count, f->section_count, sizeof(ir_section));
    for (uint32_t i = 1; !out->failed && i < out->tensor_count; i++)
        copy_tensor_memory(out, &out->tensors[i]);
    for (uint32_t i = 1; !out->failed && i < out->param_count; i++)
        out->params[i].name = copy_text(out, out->params[i].name);
    if (out->failed) {
        opjit_ir_free(out);
        return opjit_rt_no_memory(error);
    }
    return OPJIT_OK;
}

/* --- growth ------------------------------------------------------------------------------------------------------- */

enum { GROWTH = 4 };

/* Makes room for `more` elements after count.  The old array stays valid, because the arena keeps it: so arrays grow to
 * four times what they were, of which the system gives what is written, and old ones are a third. */
static bool reserve(ir_func *f, void **array, uint32_t count, uint32_t *capacity, uint32_t more, size_t size)
{
    if (f->failed)
        return false;
    if (more <= *capacity - count)
        return true;
    uint64_t wanted = (uint64_t)*capacity * GROWTH;
    while (wanted < (uint64_t)count + more)
        wanted *= GROWTH;
    if (wanted > IR_LIMIT_NODES && (uint64_t)count + more <= IR_LIMIT_NODES)
        wanted = IR_LIMIT_NODES;
    void *grown = wanted > IR_LIMIT_NODES ? NULL : opjit_rt_arena_reserve(&f->arena, (size_t)wanted * size);
    if (!grown) {
        f->failed = true;
        return false;
    }
    memcpy(grown, *array, count * size);
    *array = grown;
    *capacity = (uint32_t)wanted;
    return true;
}

static bool reserve_operands(ir_func *f, uint32_t more)
{
    void *array = f->operands;
    const bool ok = reserve(f, &array, f->operand_count, &f->operand_capacity, more, sizeof(ir_ref));
    f->operands = array;
    return ok;
}

ir_ref opjit_ir_node_new(ir_func *f, const ir_node *like, uint32_t count, const ir_ref *operands)
{
    void *array = f->nodes;
    const bool ok = reserve(f, &array, f->node_count, &f->node_capacity, 1, sizeof(ir_node));
    f->nodes = array;
    if (!ok || !reserve_operands(f, count))
        return 0;
    ir_node *node = &f->nodes[f->node_count];
    *node = *like;
    node->count = count;
    node->first = f->operand_count;
    for (uint32_t i = 0; i < count; i++)
        f->operands[f->operand_count + i] = operands ? operands[i] : 0;
    f->operand_count += count;
    return f->node_count++;
}

/* --- tensors and parameters --------------------------------------------------------------------------------------- */

uint32_t opjit_ir_tensor(ir_func *f, const ir_tensor *tensor)
{
    void *array = f->tensors;
    const bool ok = reserve(f, &array, f->tensor_count, &f->tensor_capacity, 1, sizeof(ir_tensor));
    f->tensors = array;
    if (!ok)
        return 0;
    ir_tensor *copy = &f->tensors[f->tensor_count];
    *copy = *tensor;
    copy_tensor_memory(f, copy);
    return f->failed ? 0 : f->tensor_count++;
}

uint32_t opjit_ir_param_add(ir_func *f, ir_type type, int64_t lo, int64_t hi, const char *name)
{
    void *array = f->params;
    const bool ok = reserve(f, &array, f->param_count, &f->param_capacity, 1, sizeof(ir_param));
    f->params = array;
    if (!ok)
        return 0;
    f->params[f->param_count] = (ir_param){ .type = type, .lo = lo, .hi = hi, .name = copy_text(f, name) };
    return f->failed ? 0 : f->param_count++;
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

ir_ref opjit_ir_const(ir_func *f, ir_type type, uint64_t bits)
{
    const uint32_t size = opjit_ir_type_size(type);
    if (type == IR_BOOL)
        bits = bits != 0;
    else if (size < 8)
        bits &= ((uint64_t)1 << size * 8) - 1;
    return opjit_ir_node_new(f, &(ir_node){ .op = IR_CONST, .type = (uint8_t)type, .imm = bits }, 0, NULL);
}

ir_ref opjit_ir_index(ir_func *f, int64_t value)
{
    return opjit_ir_const(f, IR_INDEX, (uint64_t)value);
}

ir_ref opjit_ir_param(ir_func *f, uint32_t param)
{
    const uint8_t type = (uint8_t)(param < f->param_count ? f->params[param].type : IR_NONE);
    return opjit_ir_node_new(f, &(ir_node){ .op = IR_PARAM, .type = type, .ref = param }, 0, NULL);
}

ir_ref opjit_ir_get(ir_func *f, ir_ref let_or_acc)
{
    const uint8_t type = f->nodes[let_or_acc].type;
    return opjit_ir_node_new(f, &(ir_node){ .op = IR_GET, .type = type, .ref = let_or_acc }, 0, NULL);
}

ir_ref opjit_ir_load(ir_func *f, uint32_t tensor, const ir_ref *coordinates)
{
    const ir_tensor *t = &f->tensors[tensor];
    return opjit_ir_node_new(f, &(ir_node){ .op = IR_LOAD, .type = (uint8_t)t->type, .ref = tensor }, t->rank,
                             coordinates);
}

ir_ref opjit_ir_head(ir_func *f, uint32_t tensor, ir_ref element)
{
    return opjit_ir_node_new(f, &(ir_node){ .op = IR_HEAD, .type = IR_INDEX, .ref = tensor }, 1, &element);
}

ir_ref opjit_ir_expr(ir_func *f, ir_op op, ir_type type, uint32_t count, const ir_ref *operands)
{
    ir_node node = { .op = (uint8_t)op, .type = (uint8_t)type };
    switch (opjit_ir_op_infos[op].result) {
    case 'I': node.type = IR_INDEX; break;
    case 'B': node.type = IR_BOOL; break;
    case 'S': node.type = count > 0 ? f->nodes[operands[0]].type : IR_NONE; break;
    case 'A': node.type = count > 1 ? f->nodes[operands[1]].type : IR_NONE; break;
    default: /* T: the node says it */ break;
    }
    return opjit_ir_node_new(f, &node, count, operands);
}

/* --- statements --------------------------------------------------------------------------------------------------- */

ir_ref opjit_ir_var_new(ir_func *f, ir_ref owner, uint32_t which)
{
    return opjit_ir_node_new(f, &(ir_node){ .op = IR_VAR, .type = IR_INDEX, .ref = owner, .imm = which }, 0, NULL);
}

/* box: 3 operands per dimension, or NULL. */
static ir_ref new_definition(ir_func *f, ir_op op, uint32_t tensor, const ir_ref *box)
{
    const uint32_t rank = f->tensors[tensor].rank;
    const ir_node node = { .op = (uint8_t)op, .ref = tensor, .imm = box != NULL };
    const ir_ref statement = opjit_ir_node_new(f, &node, 1 + rank + (box ? 3 * rank : 0), NULL);
    if (statement && box)
        memcpy(&f->operands[f->nodes[statement].first + 1 + rank], box, 3 * rank * sizeof(ir_ref));
    for (uint32_t d = 0; statement && d < rank; d++) {
        const ir_ref var = opjit_ir_var_new(f, statement, d);
        f->operands[f->nodes[statement].first + 1 + d] = var;
    }
    return f->failed ? 0 : statement;
}

ir_ref opjit_ir_def(ir_func *f, uint32_t tensor)
{
    return new_definition(f, IR_DEF, tensor, NULL);
}

ir_ref opjit_ir_yield(ir_func *f, uint32_t tensor)
{
    return new_definition(f, IR_YIELD, tensor, NULL);
}

ir_ref opjit_ir_yield_box(ir_func *f, uint32_t tensor, const ir_ref *box)
{
    return new_definition(f, IR_YIELD, tensor, box);
}

ir_ref opjit_ir_reduce(ir_func *f, uint32_t tensor, ir_kind kind, uint32_t lanes, uint64_t size)
{
    const uint32_t rank = f->tensors[tensor].rank;
    const ir_node node = { .op = IR_DEF, .type = (uint8_t)f->tensors[tensor].type, .kind = (uint8_t)kind, .ref = tensor,
                           .block = ir_kind_block(kind), .imm = lanes };
    const ir_ref reduce = opjit_ir_node_new(f, &node, 3 + rank, NULL);
    for (uint32_t d = 0; reduce && d <= rank; d++) {
        const ir_ref var = opjit_ir_var_new(f, reduce, d);
        f->operands[f->nodes[reduce].first + 1 + d] = var;
    }
    const ir_ref extent = reduce ? opjit_ir_index(f, (int64_t)size) : 0;
    if (f->failed)
        return 0;
    f->operands[f->nodes[reduce].first + 2 + rank] = extent;
    return reduce;
}

ir_ref opjit_ir_scan(ir_func *f, uint32_t tensor, ir_kind kind, uint32_t dimension, bool exclusive)
{
    const ir_ref scan = opjit_ir_reduce(f, tensor, kind, 0, 1);
    const ir_ref own = f->failed ? 0 : opjit_ir_coordinate(f, scan, dimension);
    const ir_ref bound = exclusive || f->failed ? own : ir_expr2(f, IR_IADD, IR_INDEX, own, opjit_ir_index(f, 1));
    if (f->failed)
        return 0;
    f->operands[f->nodes[scan].first + f->nodes[scan].count - 1] = bound;
    return scan;
}

ir_ref opjit_ir_reduce_counted(ir_func *f, uint32_t tensor, ir_kind kind)
{
    return opjit_ir_reduce(f, tensor, kind, 0, 1);
}

void opjit_ir_set_count(ir_func *f, ir_ref reduce, ir_ref count)
{
    if (reduce != 0 && count != 0)
        f->operands[f->nodes[reduce].first + f->nodes[reduce].count - 1] = count;
}

bool opjit_ir_is_counted(const ir_func *f, ir_ref def)
{
    const ir_node *node = ir_at(f, def);
    return node->op == IR_DEF && node->kind && !ir_is_index_const(f, ir_operand(f, def, node->count - 1)) &&
           opjit_ir_scanned(f, def) < 0;
}

int32_t opjit_ir_scanned(const ir_func *f, ir_ref def)
{
    const ir_node *node = ir_at(f, def);
    if (node->op != IR_DEF || !node->kind)
        return -1;
    const ir_ref bound = ir_operand(f, def, node->count - 1);
    const ir_node *own = ir_at(f, bound);
    if (own->op == IR_IADD && ir_is_index_const(f, ir_operand(f, bound, 1)) &&
        ir_index_value(f, ir_operand(f, bound, 1)) == 1)
        own = ir_at(f, ir_operand(f, bound, 0));
    return own->op == IR_VAR && own->ref == def && own->imm < f->tensors[node->ref].rank ? (int32_t)own->imm : -1;
}

ir_ref opjit_ir_reduced(const ir_func *f, ir_ref reduce)
{
    const ir_node *node = ir_at(f, reduce);
    return node->op == IR_DEF && node->kind ? ir_operand(f, reduce, node->count - 2) : 0;
}

ir_ref opjit_ir_coordinate(const ir_func *f, ir_ref def_or_yield, uint32_t dimension)
{
    return def_or_yield ? ir_operand(f, def_or_yield, 1 + dimension) : 0;
}

void opjit_ir_set_value(ir_func *f, ir_ref def_or_yield, ir_ref value)
{
    if (def_or_yield)
        f->operands[f->nodes[def_or_yield].first] = value;
}

static ir_ref new_loop(ir_func *f, ir_op op, ir_ref lo, ir_ref hi, uint64_t imm)
{
    const ir_ref loop = opjit_ir_node_new(f, &(ir_node){ .op = (uint8_t)op, .imm = imm }, 2, (ir_ref[]){ lo, hi });
    const ir_ref var = loop ? opjit_ir_var_new(f, loop, 0) : 0;
    if (!var)
        return 0;
    f->nodes[loop].ref = var;
    return loop;
}

ir_ref opjit_ir_stage(ir_func *f, ir_ref lo, ir_ref hi, uint64_t grain)
{
    return new_loop(f, IR_STAGE, lo, hi, grain);
}

ir_ref opjit_ir_for(ir_func *f, ir_ref lo, ir_ref hi, uint64_t step)
{
    return new_loop(f, IR_FOR, lo, hi, step);
}

ir_ref opjit_ir_let(ir_func *f, ir_ref value)
{
    return opjit_ir_node_new(f, &(ir_node){ .op = IR_LET, .type = f->nodes[value].type }, 1, &value);
}

ir_ref opjit_ir_acc(ir_func *f, ir_type type, ir_kind kind, uint32_t lanes)
{
    const ir_node node = { .op = IR_ACC, .type = (uint8_t)type, .kind = (uint8_t)kind, .block = ir_kind_block(kind),
                           .imm = lanes };
    return opjit_ir_node_new(f, &node, 0, NULL);
}

ir_ref opjit_ir_upd(ir_func *f, ir_ref acc, ir_ref value, ir_ref at)
{
    return opjit_ir_node_new(f, &(ir_node){ .op = IR_UPD, .ref = acc }, at ? 2 : 1, (ir_ref[]){ value, at });
}

ir_ref opjit_ir_store(ir_func *f, uint32_t tensor, ir_ref value, const ir_ref *coordinates)
{
    const uint32_t rank = f->tensors[tensor].rank;
    const ir_ref store = opjit_ir_node_new(f, &(ir_node){ .op = IR_STORE, .ref = tensor }, 1 + rank, NULL);
    if (!store)
        return 0;
    ir_ref *operands = &f->operands[f->nodes[store].first];
    operands[0] = value;
    memcpy(operands + 1, coordinates, rank * sizeof(ir_ref));
    return store;
}

ir_ref opjit_ir_sync(ir_func *f)
{
    return opjit_ir_node_new(f, &(ir_node){ .op = IR_SYNC }, 0, NULL);
}

void opjit_ir_append(ir_func *f, ir_ref parent, ir_ref *tail, ir_ref statement)
{
    if (!statement)
        return;
    if (*tail)
        f->nodes[*tail].next = statement;
    else if (parent)
        f->nodes[parent].body = statement;
    else
        f->body = statement;
    *tail = statement;
}

/* --- comparison --------------------------------------------------------------------------------------------------- */

/* A naive walk over shared nodes can be exponentially long, so walks keep a small table of what they have seen, and
 * give the safe answer when their budget of steps is used up. */
enum { WALK_SLOTS = 64, WALK_BUDGET = 100000 };

typedef struct same_walk {
    const ir_func *f;
    uint32_t budget;
    ir_ref left[WALK_SLOTS], right[WALK_SLOTS]; /* pairs known to be equal */
} same_walk;

static bool same(same_walk *w, ir_ref a, ir_ref b)
{
    if (a == b)
        return true;
    const uint32_t slot = (a * 31 + b) % WALK_SLOTS;
    if (w->left[slot] == a && w->right[slot] == b)
        return true;
    const ir_node *x = ir_at(w->f, a), *y = ir_at(w->f, b);
    if (!a || !b || x->op != y->op || x->type != y->type || x->count != y->count || x->ref != y->ref ||
        x->imm != y->imm)
        return false;
    /* A VAR or a statement equals only itself. */
    if (x->op == IR_VAR || !(opjit_ir_op_infos[x->op].flags & IR_FLAG_P) || w->budget == 0)
        return false;
    w->budget--;
    for (uint32_t i = 0; i < x->count; i++)
        if (!same(w, ir_operand(w->f, a, i), ir_operand(w->f, b, i)))
            return false;
    w->left[slot] = a;
    w->right[slot] = b;
    return true;
}

bool opjit_ir_same(const ir_func *f, ir_ref a, ir_ref b)
{
    if (a == b || ir_at(f, a)->op != ir_at(f, b)->op || ir_at(f, a)->op == IR_VAR)
        return a == b; /* the common case, before the table */
    same_walk w = { .f = f, .budget = WALK_BUDGET };
    return same(&w, a, b);
}

typedef struct uses_walk {
    const ir_func *f;
    ir_ref what;
    uint32_t budget;
    ir_ref seen[WALK_SLOTS]; /* nodes known not to read it */
} uses_walk;

static bool uses(uses_walk *w, ir_ref expr)
{
    if (expr == w->what)
        return expr != 0;
    const ir_node *node = ir_at(w->f, expr);
    if (node->op == IR_GET && node->ref == w->what)
        return true;
    if (node->count == 0 || w->seen[expr % WALK_SLOTS] == expr)
        return false;
    if (w->budget == 0)
        return true;
    w->budget--;
    for (uint32_t i = 0; i < node->count; i++)
        if (uses(w, ir_operand(w->f, expr, i)))
            return true;
    w->seen[expr % WALK_SLOTS] = expr;
    return false;
}

bool opjit_ir_uses(const ir_func *f, ir_ref expr, ir_ref var_or_let)
{
    uses_walk w = { .f = f, .what = var_or_let, .budget = WALK_BUDGET };
    return uses(&w, expr);
}
