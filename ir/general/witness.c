/* SPDX-License-Identifier: Apache-2.0 */
/* witness.c - whether a generalization computes, for other sizes than its samples, what the graph is defined as there.
 *
 * The verifier proves that an instance reads and writes what it may; it knows nothing of values.  Where a mask begins
 * to hide something, a padding becomes none, or a sum gets another order, the graph's definition changes.  So
 * witnesses, sizes between the bounds, are lowered, which is cheap: their definitions have to be the samples' with
 * other numbers, and each number has to be what its form says.  Passes, too, know by sizes that a mask hides nothing:
 * where a witness is a prime, as samples are, its loops have to be the samples'.  Where a definition or the loops are
 * others (of size 1, say, whose coordinate is known) both the definition and the instance are interpreted, if that is
 * little work. */
#include "ir/general/witness.h"

#include "ir/core/internal.h"
#include "ir/eval/numerics.h"

#include <string.h>

enum {
    STEPS = 65536,        /* of one expression; what is behind is not looked at */
    MOST_WORK = 1 << 30,  /* elements and terms that are counted */
    MOST_BYTES = 1 << 20, /* of buffers of what is interpreted */
};

/* --- texts -------------------------------------------------------------------------------------------------------- */

typedef struct speller {
    const ir_func *f;
    ir_definition *out;
    ir_ref *stack;
    uint32_t depth;
} speller;

static void put(speller *s, uint64_t x)
{
    s->out->shape = opjit_ir_hash(s->out->shape, x);
}

static void put_number(speller *s, int64_t x)
{
    opjit_rt_bytes_append(&s->out->numbers, &x, sizeof x);
}

static void put_tensor(speller *s, const ir_tensor *t)
{
    put(s, (uint64_t)t->role << 32 | (uint64_t)t->type << 16 | t->rank);
    put(s, (uint64_t)t->slot << 32 | t->of);
    put(s, (uint64_t)t->fed_by << 32 | t->feeds);
    for (uint32_t d = 0; d < t->rank; d++) {
        put_number(s, (int64_t)t->sizes[d]);
        put_number(s, (int64_t)t->strides[d]);
    }
    if (t->role == IR_VIEW)
        put_number(s, t->offset);
    if (t->data != NULL) /* else bytes follow from sizes and strides, rounded up */
        put_number(s, (int64_t)t->bytes);
}

/* A constant that is no index has no form, but follows from numbers that have one. */
static void put_expression(speller *s, ir_ref root)
{
    const ir_func *f = s->f;

    s->depth = 0;
    s->stack[s->depth++] = root;
    for (uint32_t steps = 0; s->depth > 0 && steps < STEPS; steps++) {
        const ir_ref r = s->stack[--s->depth];
        const ir_node *n = ir_at(f, r);
        put(s, (uint64_t)n->op << 56 | (uint64_t)n->type << 48 | n->count);
        if (n->op == IR_CONST && n->type == IR_INDEX)
            put_number(s, (int64_t)n->imm);
        if (n->op == IR_VAR)
            put(s, n->imm);
        if (n->op == IR_LOAD || n->op == IR_PARAM)
            put(s, n->ref);
        for (uint32_t i = 0; i < n->count && s->depth < STEPS; i++)
            s->stack[s->depth++] = ir_operand(f, r, i);
    }
}

static void put_statement(speller *s, ir_ref r)
{
    const ir_node *n = ir_at(s->f, r);
    const ir_tensor *t = &s->f->tensors[n->ref];
    uint64_t work = 1;

    put(s, (uint64_t)n->op << 56 | (uint64_t)n->kind << 48 | (uint64_t)n->block << 32 | n->count);
    put(s, (uint64_t)n->ref << 32 | (uint32_t)n->imm);
    for (uint32_t i = 0; i < n->count; i++)
        put_expression(s, ir_operand(s->f, r, i));
    if (opjit_ir_reduced(s->f, r) != 0) {
        const ir_ref length = ir_operand(s->f, r, n->count - 1u);
        const int64_t most =
            ir_is_index_const(s->f, length) ? ir_index_value(s->f, length) : (int64_t)t->sizes[t->rank - 1];
        const bool is_long = most > (n->kind == IR_DOT && n->block > 0 ? n->block : IR_REDUCE_BLOCK);
        const bool ordered = most > 1 && (n->kind == IR_SUM || n->kind == IR_PROD); /* of up to 32 lanes */
        const uint8_t order = (uint8_t)((ordered ? 2 * ((uint32_t)n->imm + 1) : 0) + is_long);
        opjit_rt_bytes_append(&s->out->orders, &order, 1);
        work = most > 1 ? (uint64_t)most : 1;
    }
    for (uint32_t d = 0; d < t->rank && work <= MOST_WORK; d++)
        work *= t->sizes[d] > 0 ? t->sizes[d] : 1;
    s->out->work += work;
}

opjit_status opjit_ir_define(const ir_func *f, ir_definition *out, opjit_error *error)
{
    speller s = { .f = f, .out = out };

    *out = (ir_definition){ .shape = opjit_ir_hash(f->tensor_count, f->param_count) };
    opjit_rt_bytes_init(&out->numbers, f->arena.allocator);
    opjit_rt_bytes_init(&out->orders, f->arena.allocator);
    s.stack = opjit_rt_allocate(f->arena.allocator, STEPS * sizeof *s.stack, _Alignof(ir_ref));
    if (s.stack == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t t = 1; t < f->tensor_count; t++)
        put_tensor(&s, &f->tensors[t]);
    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next)
        put_statement(&s, r);
    opjit_rt_release(f->arena.allocator, s.stack, STEPS * sizeof *s.stack);
    return out->numbers.failed || out->orders.failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

void opjit_ir_definition_free(ir_definition *d)
{
    opjit_rt_bytes_free(&d->numbers);
    opjit_rt_bytes_free(&d->orders);
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static int64_t number_of(const ir_definition *d, size_t k)
{
    int64_t x;
    memcpy(&x, d->numbers.data + k * sizeof x, sizeof x);
    return x;
}

/* Whether sums have the order that the samples' have: these may be of several blocks where there is one.  Sums of one
 * term have any. */
static bool same_order(const ir_definition *sample, const ir_definition *own)
{
    for (size_t i = 0; i < own->orders.size && own->orders.size == sample->orders.size; i++) {
        const uint8_t theirs = sample->orders.data[i], mine = own->orders.data[i];
        if (mine % 2 > theirs % 2 || (mine > 1 && theirs > 1 && mine / 2 != theirs / 2))
            return false;
    }
    return true;
}

static bool follows(const ir_samples *samples, const ir_definition *const *definitions, const int64_t *values,
                    const ir_definition *own)
{
    const size_t count = own->numbers.size / sizeof(int64_t);

    if (own->shape != definitions[0]->shape || own->numbers.size != definitions[0]->numbers.size ||
        own->orders.size != definitions[0]->orders.size || !same_order(definitions[0], own))
        return false;
    for (size_t k = 0; k < count; k++) {
        int64_t series[IR_SAMPLES] = { 0 }, value;
        opjit_size_form form;
        bool changes = false;
        for (uint32_t i = 0; i < samples->count; i++) {
            series[i] = number_of(definitions[i], k);
            changes = changes || series[i] != series[0];
        }
        if (!changes
                ? number_of(own, k) != series[0]
                : opjit_ir_form_fit(samples, series, &form) &&
                      (!opjit_ir_form_value(&form, &samples->space, values, &value) || value != number_of(own, k)))
            return false;
    }
    return true;
}

/* --- interpreting ------------------------------------------------------------------------------------------------- */

/* Small whole numbers, of any type; of what is written, bytes. */
static void fill(const ir_tensor *t, uint8_t *data)
{
    const uint32_t size = opjit_ir_type_size(t->type);

    memset(data, 0x5a, (size_t)t->bytes);
    for (uint64_t i = 0; i < t->bytes / size && t->role != IR_OUT; i++) {
        const uint64_t bits =
            opjit_ir_element_of(t->type, (int64_t)((i * 2654435761u >> 7) % 13) - (i % 3 == 0 ? 6 : 0));
        memcpy(data + i * size, &bits, size);
    }
}

/* The bindings of f; NULL entries: there is no such slot. */
static opjit_status make_buffers(const ir_func *f, uint32_t slots, rt_arena *arena, void ***out, opjit_error *error)
{
    void **list = ARENA_ARRAY(arena, void *, slots + 1u);

    for (uint32_t t = 1; list != NULL && t < f->tensor_count; t++) {
        const ir_tensor *own = &f->tensors[t];
        if ((own->role != IR_IN && own->role != IR_OUT && own->role != IR_CONSTANT) || own->slot >= slots)
            continue;
        list[own->slot] = ARENA_ARRAY(arena, uint8_t, own->bytes + 1);
        if (list[own->slot] == NULL)
            return opjit_rt_no_memory(error);
        fill(own, list[own->slot]);
        if (own->data != NULL)
            memcpy(list[own->slot], own->data, (size_t)own->bytes);
    }
    *out = list;
    return list == NULL ? opjit_rt_no_memory(error) : OPJIT_OK;
}

/* Memory of the kernel's own, which holds nothing at first: what is read of it before it is written is no number. */
static void *undefined(rt_arena *arena, uint64_t bytes)
{
    void *const memory = ARENA_ARRAY(arena, uint8_t, bytes + 1);
    if (memory != NULL)
        memset(memory, 0xff, (size_t)bytes);
    return memory;
}

static opjit_status run_instance(ir_func *f, void **buffers, rt_arena *arena, opjit_error *error)
{
    TRY(opjit_ir_pack(f, error));
    TRY(opjit_ir_layout(f, error));
    ir_run run = { .buffers = buffers,
                   .shared = undefined(arena, f->shared_size),
                   .scratch = undefined(arena, f->scratch_size) };

    if (run.shared == NULL || run.scratch == NULL)
        return opjit_rt_no_memory(error);
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next) {
        run.end = (uint64_t)ir_index_value(f, ir_operand(f, s, 1));
        TRY(opjit_ir_interpret(f, &run, error));
        run.stage++;
    }
    return OPJIT_OK;
}

static opjit_status run_both(const ir_func *value, ir_func *instance, rt_arena *arena, bool *out_same,
                             opjit_error *error)
{
    uint32_t slots = 0;
    void **expected, **given;

    for (uint32_t t = 1; t < value->tensor_count; t++)
        slots = value->tensors[t].slot + 1 > slots ? value->tensors[t].slot + 1 : slots;
    TRY(make_buffers(value, slots, arena, &expected, error));
    TRY(make_buffers(value, slots, arena, &given, error));
    TRY(opjit_ir_interpret(value, &(ir_run){ .buffers = expected }, error));
    const opjit_status status = run_instance(instance, given, arena, error);
    if (status == OPJIT_OUT_OF_MEMORY)
        return status;
    *out_same = status == OPJIT_OK;
    for (uint32_t t = 1; t < value->tensor_count && *out_same; t++) {
        const ir_tensor *own = &value->tensors[t];
        *out_same = own->role != IR_OUT || memcmp(expected[own->slot], given[own->slot], (size_t)own->bytes) == 0;
    }
    return OPJIT_OK;
}

static uint64_t bytes_of(const ir_func *f)
{
    uint64_t sum = 0;
    for (uint32_t t = 1; t < f->tensor_count; t++)
        sum += f->tensors[t].bytes < MOST_BYTES ? f->tensors[t].bytes : MOST_BYTES;
    return sum;
}

/* Whether both have the same bytes in each binding: else one of them would read what is not there. */
static bool same_bindings(const ir_func *value, const ir_func *instance)
{
    for (uint32_t t = 1; t < value->tensor_count; t++)
        for (uint32_t i = 1; i < instance->tensor_count; i++) {
            const ir_tensor *a = &value->tensors[t], *b = &instance->tensors[i];
            if (a->role == b->role && (a->role == IR_IN || a->role == IR_OUT || a->role == IR_CONSTANT) &&
                a->slot == b->slot && a->bytes != b->bytes)
                return false;
        }
    return true;
}

static opjit_status compare(const ir_general *g, const int64_t *values, const ir_func *value, bool *out_same,
                            opjit_error *error)
{
    ir_func instance;
    rt_arena arena;

    *out_same = false;
    TRY(opjit_ir_general_instance(g, values, &instance, error));
    opjit_rt_arena_init(&arena, value->arena.allocator);
    opjit_status status = OPJIT_OK;
    if (same_bindings(value, &instance))
        status = run_both(value, &instance, &arena, out_same, error);
    opjit_rt_arena_free(&arena);
    opjit_ir_free(&instance);
    return status;
}

/* Whether passes may know more for these values than for all samples: some are larger. */
static bool exceeds_samples(const ir_samples *samples, const int64_t *values)
{
    bool above = false;
    for (uint32_t d = 0; d < samples->space.dims && !above; d++) {
        above = true;
        for (uint32_t i = 0; i < samples->count; i++)
            above = above && samples->values[i][d] < values[d];
    }
    return above;
}

static bool has_one(const ir_samples *samples, const int64_t *values)
{
    for (uint32_t d = 0; d < samples->space.dims; d++)
        if (values[d] == 1 && samples->values[0][d] != 1)
            return true;
    return false;
}

bool opjit_ir_exceeds_with_ones(const ir_samples *samples, const int64_t *values, int64_t *out)
{
    for (uint32_t d = 0; d < samples->space.dims; d++)
        out[d] = values[d] == 1 ? samples->values[0][d] : values[d];
    return has_one(samples, values) && exceeds_samples(samples, values);
}

opjit_status opjit_ir_witness(const ir_general *g, const ir_samples *samples, const ir_definition *const *definitions,
                              const int64_t *values, const ir_func *value, bool same_loops, uint64_t most_work,
                              ir_trust trust, ir_answer *out, bool *out_trusted, opjit_error *error)
{
    ir_definition own;
    bool same = false;
    opjit_status status = opjit_ir_define(value, &own, error);
    const bool defined = status == OPJIT_OK && follows(samples, definitions, values, &own);

    *out = IR_ANSWER_OTHER;
    /* a coordinate of one value is known: the definition is shorter, and otherwise the same */
    *out_trusted = trust == IR_TRUST_ONES || (trust == IR_TRUST_DEFINED && defined) ||
                   (trust != IR_TRUST_NONE && !exceeds_samples(samples, values) &&
                    (defined || has_one(samples, values)));
    if (defined && same_loops) {
        *out = IR_ANSWER_SAME;
    } else if (status == OPJIT_OK && same_order(definitions[0], &own)) {
        const bool is_little = own.work <= most_work && bytes_of(value) < MOST_BYTES;
        status = is_little ? compare(g, values, value, &same, error) : OPJIT_OK;
        *out = same ? IR_ANSWER_SAME : is_little ? IR_ANSWER_OTHER : IR_ANSWER_UNKNOWN;
    }
    opjit_ir_definition_free(&own);
    return status;
}
