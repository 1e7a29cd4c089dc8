/* SPDX-License-Identifier: Apache-2.0 */
/* interpreter.c - runs a function, scalar and literal: the oracle of passes and targets, and an executor where no code
 * may be made.  Takes a function that verifies.  Every load and store is checked; a wrong one is not carried out and
 * stops the run with the statement's name.  After pass grid it simulates the grid and also checks which thread does
 * what (race.c). */
#include "ir/eval/machine.h"

#include "ir/eval/arithmetic.h"
#include "ir/eval/element.h"

#include <string.h>

/* --- memory ------------------------------------------------------------------------------------------------------- */

static memory in_area(const ir_tensor *tensor, void *area, uint64_t area_size)
{
    uint64_t end;
    if (area && tensor->offset >= 0 && checked_add((uint64_t)tensor->offset, tensor->bytes, &end) && end <= area_size)
        return (memory){ .base = (uint8_t *)area + tensor->offset, .bytes = tensor->bytes };
    return (memory){ .base = NULL };
}

/* Finds where the tensor lies.  If that can't be said, the result has no memory, and every load is refused. */
static memory find_memory(const machine *m, uint32_t t)
{
    const ir_func *f = m->f;
    const ir_tensor *tensor = &f->tensors[t];
    uint64_t skip;
    switch (tensor->role) {
    case IR_CONSTANT:
        if (tensor->data) /* never stored to: rule V1 */
            return (memory){ .base = (uint8_t *)(uintptr_t)tensor->data, .bytes = tensor->bytes };
        return (memory){ .base = m->run->buffers[tensor->slot], .bytes = tensor->bytes };
    case IR_IN:
    case IR_OUT: return (memory){ .base = m->run->buffers[tensor->slot], .bytes = tensor->bytes };
    case IR_TEMP: return in_area(tensor, m->run->shared, f->shared_size);
    case IR_KEPT: return in_area(tensor, m->run->buffers[tensor->slot], f->kept_size);
    case IR_SCRATCH: return in_area(tensor, m->run->scratch, f->scratch_size);
    case IR_VALUE: return (memory){ .base = m->owned ? m->owned[t] : NULL, .bytes = m->owned ? tensor->bytes : 0 };
    case IR_VIEW: break;
    }
    if (tensor->of >= t || tensor->offset < 0 ||
        !checked_mul((uint64_t)tensor->offset, opjit_ir_type_size(tensor->type), &skip))
        return (memory){ .base = NULL };
    const memory of = find_memory(m, tensor->of); /* of an older tensor */
    return skip > of.bytes ? (memory){ .base = NULL } : (memory){ .base = of.base + skip, .bytes = of.bytes - skip };
}

const memory *opjit_ir_m_find(machine *m, uint32_t t)
{
    memory *known = &m->recent[t % RECENT];
    *known = find_memory(m, t);
    known->tensor = t;
    known->size = opjit_ir_type_size(m->f->tensors[t].type);
    known->elements = known->bytes / known->size;
    return known;
}

/* Most operands are variables and constants, which need no call. */
static inline uint64_t eval(machine *m, ir_ref expr)
{
    const ir_node *node = ir_at(m->f, expr);
    return node->op == IR_VAR ? *value_of(m, expr) : node->op == IR_CONST ? node->imm : opjit_ir_m_eval(m, expr);
}

/* The address of the element at the coordinates operands first... of node; NULL, with m->wrong set, where there is
 * none. */
static uint8_t *element(machine *m, ir_ref node, uint32_t first)
{
    const uint32_t t = ir_at(m->f, node)->ref;
    const ir_tensor *tensor = &m->f->tensors[t];
    const ir_ref *coordinates = &m->f->operands[ir_at(m->f, node)->first + first];
    const uint64_t elements = opjit_ir_m_memory(m, t)->elements;
    uint64_t offset = 0;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        const int64_t x = (int64_t)eval(m, coordinates[d]);
        if (m->wrong)
            return NULL;
        /* The offset stays below 2^63 if each coordinate is inside its size: the layout's span was checked. */
        offset += (uint64_t)x * tensor->strides[d];
        if (x < 0 || (uint64_t)x >= tensor->sizes[d] || offset >= elements) {
            m->wrong = node;
            m->wrong_dimension = d;
            m->wrong_coordinate = x;
            return NULL;
        }
    }
    /* Only now, because coordinates may contain loads. */
    const memory *const place = opjit_ir_m_memory(m, t);
    uint8_t *const at = place->base + offset * place->size;
    if (m->race && !opjit_ir_race_access(m->race, t, at, ir_at(m->f, node)->op == IR_STORE)) {
        m->wrong = node;
        m->why = "a race: another thread touches the element, and no sync is between them";
        return NULL;
    }
    return at;
}

static void fail(machine *m, ir_ref statement, const char *why)
{
    if (m->wrong)
        return;
    m->wrong = statement;
    m->why = why;
}

void opjit_ir_m_store(machine *m, ir_ref node, uint32_t first, uint64_t bits)
{
    uint8_t *to = m->wrong ? NULL : element(m, node, first);
    if (to)
        ir_write_element(to, opjit_ir_m_memory(m, ir_at(m->f, node)->ref)->size, bits);
}

/* --- accumulators ------------------------------------------------------------------------------------------------- */

static uint64_t step_dot(machine *m, const ir_node *acc, uint64_t before, ir_ref pair)
{
    const uint64_t x = opjit_ir_m_eval(m, ir_operand(m->f, pair, 0)), y = opjit_ir_m_eval(m, ir_operand(m->f, pair, 1));
    return opjit_ir_acc_step_dot(acc, before, x, y);
}

/* One step of acc, which is an ACC or a DEF that reduces; k is in m->innermost. */
void opjit_ir_m_update(machine *m, ir_ref acc_ref, ir_ref value_expr, ir_ref where_expr)
{
    const ir_func *f = m->f;
    const ir_node *acc = ir_at(f, acc_ref);
    accumulator *a = &m->accumulators[*value_of(m, acc_ref)];
    const bool dot = acc->kind == IR_DOT;
    const uint64_t value = dot ? 0 : opjit_ir_m_eval(m, value_expr);
    const int64_t block = ir_block_of(acc, m->innermost);
    const uint32_t lane = acc->imm ? (uint32_t)((uint64_t)m->innermost % acc->imm) : 0;
    if (m->race && !a->own) {
        const bool apart = m->race->lane != RACE_ALL && m->race->threads > 1;
        a->apart = a->apart || apart;
        a->alike = a->alike || !apart;
        if (a->apart && (a->alike || acc->imm <= 1 || lane != m->race->lane % acc->imm))
            fail(m, acc_ref, "a lane is updated by a thread that doesn't have it");
    }
    if (acc->imm && block != a->block) {
        accumulator folded;
        opjit_ir_acc_fold(acc, a, &folded);
        *a = folded;
        opjit_ir_acc_reset(a, acc);
        a->block = block;
    }
    if (!ir_kind_is_arg((ir_kind)acc->kind)) {
        a->lane[lane] = dot ? step_dot(m, acc, a->lane[lane], value_expr)
                            : opjit_ir_acc_step(acc, a->lane[lane], value);
        return;
    }
    const int64_t where = (int64_t)opjit_ir_m_eval(m, where_expr);
    a->value_type = (ir_type)ir_at(f, value_expr)->type;
    opjit_ir_acc_update_arg(acc, a->value_type, &a->lane[lane], &a->where[lane], &a->some[lane], value, where);
}

void opjit_ir_m_start(machine *m, ir_ref statement)
{
    accumulator *a = &m->accumulators[*value_of(m, statement)];
    *a = (accumulator){ .block = 0, .own = m->race && m->race->lane != RACE_ALL };
    opjit_ir_acc_reset(a, ir_at(m->f, statement));
}

uint64_t opjit_ir_m_get(machine *m, const ir_node *acc, ir_ref statement)
{
    const accumulator *a = &m->accumulators[*value_of(m, statement)];
    accumulator folded;
    if (m->race && a->apart && m->race->lane != RACE_ALL)
        fail(m, statement, "one thread folds what all of them have");
    if (acc->imm <= 1 && !ir_kind_is_arg((ir_kind)acc->kind))
        return a->total_some ? opjit_ir_acc_step(acc, a->total, a->lane[0]) : a->lane[0];
    opjit_ir_acc_fold(acc, a, &folded);
    if (!ir_kind_is_arg((ir_kind)acc->kind))
        return folded.total;
    return acc->type == IR_INDEX ? (uint64_t)folded.total_where
                                 : opjit_ir_element_of((ir_type)acc->type, folded.total_where);
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

static uint64_t eval_leaf(machine *m, ir_ref expr, const ir_node *node)
{
    const ir_func *f = m->f;
    switch ((ir_op)node->op) {
    case IR_PARAM: {
        const uint32_t shift = 64 - 8 * opjit_ir_type_size((ir_type)node->type);
        return m->run->params[node->ref - 1] << shift >> shift;
    }
    case IR_GET:
        return ir_at(f, node->ref)->op == IR_LET ? *value_of(m, node->ref)
                                                 : opjit_ir_m_get(m, ir_at(f, node->ref), node->ref);
    case IR_LOAD: {
        const uint8_t *from = element(m, expr, 0);
        return from ? ir_read_element(from, opjit_ir_m_memory(m, node->ref)->size) : 0;
    }
    default: return node->imm;
    }
}

/* A function of mathematics takes a hundred operations, and arguments are often few: the elements that instances are
 * compared with are a dozen small numbers. */
static uint64_t eval_math(machine *m, ir_op op, ir_type type, const uint64_t *args)
{
    known_value *k = &m->known[args[0] * UINT64_C(0x9e3779b97f4a7c15) >> 57 & (KNOWN - 1)];
    if (k->op != op || k->type != type || k->args[0] != args[0] || k->args[1] != args[1]) {
        *k = (known_value){ .op = op, .type = type, .args = { args[0], args[1] } };
        opjit_ir_scalar(op, type, type, args, &k->out);
    }
    return k->out;
}

uint64_t opjit_ir_m_eval(machine *m, ir_ref expr)
{
    const ir_func *f = m->f;
    const ir_node *node = ir_at(f, expr);
    const ir_ref *operands = &f->operands[node->first];
    uint64_t args[3] = { 0, 0, 0 }, out = 0;
    if (m->wrong)
        return 0;
    switch ((ir_op)node->op) {
    case IR_VAR: return *value_of(m, expr);
    case IR_CONST:
    case IR_PARAM:
    case IR_GET:
    case IR_LOAD: return eval_leaf(m, expr, node);
    case IR_SELECT: return eval(m, operands[eval(m, operands[0]) ? 1 : 2]);
    case IR_HEAD: {
        const uint64_t size = opjit_ir_type_size(f->tensors[node->ref].type);
        const uint64_t base = (uint64_t)(uintptr_t)opjit_ir_m_memory(m, node->ref)->base;
        const uint64_t at = base + opjit_ir_m_eval(m, operands[0]) * size;
        return (IR_LINE - at % IR_LINE) / size;
    }
    case IR_IADD: return eval(m, operands[0]) + eval(m, operands[1]);
    case IR_ISUB: return eval(m, operands[0]) - eval(m, operands[1]);
    case IR_IMUL: return eval(m, operands[0]) * eval(m, operands[1]);
    default: break;
    }
    for (uint32_t i = 0; i < node->count && i < 3; i++)
        args[i] = eval(m, operands[i]);
    const ir_op op = (ir_op)node->op;
    const ir_type type = (ir_type)node->type, from = (ir_type)ir_at(f, operands[0])->type;
    if (opjit_ir_op_infos[op].flags & IR_FLAG_M)
        return eval_math(m, op, from, args);
    if (!opjit_ir_arithmetic(op, type, from, args, &out))
        opjit_ir_scalar(op, type, from, args, &out);
    return out;
}

/* --- loop form ---------------------------------------------------------------------------------------------------- */

static void run_block(machine *m, ir_ref first);

static void run_loop(machine *m, ir_ref statement, int64_t lo, int64_t hi, uint64_t step_size)
{
    const ir_node *loop = ir_at(m->f, statement);
    const int64_t outer = m->innermost;
    const uint32_t lane = m->race ? m->race->lane : 0;
    for (int64_t i = lo; i < hi && !m->wrong;) {
        *value_of(m, loop->ref) = (uint64_t)i;
        m->innermost = i;
        if (m->race && loop->op == IR_STAGE)
            m->race->team = (uint64_t)i + 1;
        else if (m->race && (loop->flags & IR_FOR_DISTRIBUTE))
            m->race->lane = opjit_ir_race_lane(m->race, statement, lo, i);
        run_block(m, loop->body);
        if ((uint64_t)hi - (uint64_t)i <= step_size) /* unsigned: the next i may not exist */
            break;
        i += (int64_t)step_size;
    }
    if (m->race)
        m->race->lane = lane;
    m->innermost = outer;
}

static void run_block(machine *m, ir_ref first)
{
    const ir_func *f = m->f;
    for (ir_ref s = first; s && !m->wrong; s = ir_at(f, s)->next) {
        const ir_node *node = ir_at(f, s);
        switch ((ir_op)node->op) {
        case IR_FOR:
            run_loop(m, s, (int64_t)opjit_ir_m_eval(m, ir_operand(f, s, 0)),
                     (int64_t)opjit_ir_m_eval(m, ir_operand(f, s, 1)), node->imm);
            break;
        case IR_LET: *value_of(m, s) = opjit_ir_m_eval(m, ir_operand(f, s, 0)); break;
        case IR_ACC: opjit_ir_m_start(m, s); break;
        case IR_UPD:
            opjit_ir_m_update(m, node->ref, ir_operand(f, s, 0), node->count > 1 ? ir_operand(f, s, 1) : 0);
            break;
        case IR_STORE: opjit_ir_m_store(m, s, 1, opjit_ir_m_eval(m, ir_operand(f, s, 0))); break;
        case IR_SYNC:
            if (m->race && m->race->lane != RACE_ALL && m->race->threads > 1)
                fail(m, s, "threads wait that not all come to");
            if (m->race)
                m->race->epoch++;
            break;
        default: break;
        }
    }
}

static opjit_status map_race(machine *m, ir_race *race, uint32_t threads, opjit_error *error)
{
    const ir_func *f = m->f;
    TRY(opjit_ir_race_init(race, f, threads, error));
    m->race = race;
    for (ir_ref r = m->section.first; r < m->section.end; r++)
        if (ir_at(f, r)->op == IR_LOAD || ir_at(f, r)->op == IR_STORE)
            opjit_ir_race_touch(race, ir_at(f, r)->ref);
    for (uint32_t t = 1; t < f->tensor_count; t++)
        TRY(opjit_ir_race_map(race, t, find_memory(m, t).base, find_memory(m, t).bytes, error));
    return OPJIT_OK;
}

static opjit_status run_stage(machine *m, opjit_error *error)
{
    const ir_func *f = m->f;
    const ir_ref stage = m->section.stage;
    ir_race race = { .f = NULL };
    opjit_status status = OPJIT_OK;
    if (!stage)
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "there is no stage %u", m->run->stage);
    const int64_t hi = (int64_t)opjit_ir_m_eval(m, ir_operand(f, stage, 1));
    if (hi < 0 || m->run->end > (uint64_t)hi)
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "stage %u ends at %lld, not at %llu", m->run->stage,
                                  (long long)hi, (unsigned long long)m->run->end);
    if (f->phase >= IR_GRIDDED)
        status = map_race(m, &race, ir_at(f, stage)->vec, error);
    if (status == OPJIT_OK && m->run->begin < m->run->end)
        run_loop(m, stage, (int64_t)m->run->begin, (int64_t)m->run->end, 1);
    if (m->race)
        opjit_ir_race_free(m->race);
    m->race = NULL;
    return status;
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static void free_machine(machine *m)
{
    const opjit_allocator *allocator = m->f->allocator;
    for (uint32_t t = 1; m->owned && t < m->f->tensor_count; t++)
        opjit_rt_release(allocator, m->owned[t], (size_t)m->f->tensors[t].bytes);
    opjit_rt_release(allocator, m->owned, m->f->tensor_count * sizeof *m->owned);
    opjit_rt_release(allocator, m->values, (m->section.end - m->section.first) * sizeof(uint64_t));
    opjit_rt_release(allocator, m->accumulators, (m->accumulator_count + 1) * sizeof(accumulator));
}

static ir_section find_section(const ir_func *f, uint32_t stage)
{
    ir_section all = { .stage = f->body, .first = 1, .end = f->node_count };
    if (stage < f->section_count)
        return f->sections[stage];
    for (uint32_t i = 0; all.stage && i < stage; i++)
        all.stage = ir_at(f, all.stage)->next;
    return all;
}

static bool has_accumulator(const ir_node *n) { return n->op == IR_ACC || (n->op == IR_DEF && n->kind != 0); }

static opjit_status init_machine(machine *m, opjit_error *error)
{
    const ir_func *f = m->f;
    m->section = find_section(f, f->phase >= IR_PLACED ? m->run->stage : 0);
    const uint32_t nodes = m->section.end - m->section.first;
    for (ir_ref r = m->section.first; r < m->section.end; r++)
        m->accumulator_count += has_accumulator(ir_at(f, r));
    m->values = opjit_rt_allocate(f->allocator, nodes * sizeof(uint64_t), 16);
    m->accumulators = opjit_rt_allocate(f->allocator, (m->accumulator_count + 1) * sizeof(accumulator), 16);
    if (!m->values || !m->accumulators)
        return opjit_rt_no_memory(error);
    memset(m->values, 0, nodes * sizeof(uint64_t));
    uint32_t count = 0;
    for (ir_ref r = m->section.first; r < m->section.end; r++)
        if (has_accumulator(ir_at(f, r)))
            *value_of(m, r) = count++;
    return f->phase < IR_PLACED ? opjit_ir_m_own_values(m, error) : OPJIT_OK;
}

static opjit_status report_wrong(const machine *m, opjit_error *error)
{
    const ir_tensor *tensor;
    const uint32_t d = m->wrong_dimension;
    char text[48] = "statement";
    ir_numbers numbers;
    if (opjit_ir_numbers_init(m->f, &numbers)) {
        opjit_ir_numbers_text(m->f, &numbers, m->wrong, text, sizeof(text));
        opjit_ir_numbers_free(&numbers);
    }
    if (m->why)
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "%s: %s", text, m->why);
    tensor = &m->f->tensors[ir_at(m->f, m->wrong)->ref];
    if (m->wrong_coordinate < 0 || (uint64_t)m->wrong_coordinate >= tensor->sizes[d])
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "%s: coordinate %u is %lld, size %llu", text, d,
                                  (long long)m->wrong_coordinate, (unsigned long long)tensor->sizes[d]);
    return opjit_rt_error_set(error, OPJIT_INTERNAL, "%s: the element lies outside the tensor's %llu bytes of memory",
                              text, (unsigned long long)find_memory(m, ir_at(m->f, m->wrong)->ref).bytes);
}

opjit_status opjit_ir_interpret(const ir_func *f, const ir_run *run, opjit_error *error)
{
    machine m = { .f = f, .run = run };
    opjit_status status = init_machine(&m, error);
    if (status == OPJIT_OK && f->phase >= IR_PLACED)
        status = run_stage(&m, error);
    else if (status == OPJIT_OK)
        opjit_ir_m_run_values(&m);
    if (status == OPJIT_OK && m.wrong)
        status = report_wrong(&m, error);
    free_machine(&m);
    return status;
}
