/* SPDX-License-Identifier: Apache-2.0 */
/* generalize.c - the common generalization of functions that differ in numbers: a copy of the first one, node by node,
 * in which numbers that differ are expressions of parameters.  Tensors whose strides differ become flat: an access
 * computes the element's place itself. */
#include "ir/general/generalizer.h"

#include "ir/core/internal.h"
#include "ir/passes/pass.h"

#include <string.h>

enum { IR_OPERANDS_MOST = 9 /* of a statement in loop form: a value and 8 coordinates */ };

/* --- what differs ------------------------------------------------------------------------------------------------- */

static void series_of_imm(const generalizer *g, ir_ref r, int64_t *series)
{
    for (uint32_t i = 0; i < g->s->count; i++)
        series[i] = (int64_t)ir_at(g->s->functions[i], r)->imm;
}

static bool same_tensor(const ir_tensor *a, const ir_tensor *b)
{
    const bool data = (a->data == NULL) == (b->data == NULL);
    return a->role == b->role && a->type == b->type && a->rank == b->rank && a->align == b->align &&
           a->slot == b->slot && a->alias == b->alias && a->shared == b->shared && a->of == b->of && data &&
           (a->data == NULL || (a->bytes == b->bytes && memcmp(a->data, b->data, (size_t)a->bytes) == 0));
}

/* Strides along dimension d.  Of one element any stride is as good, and samples have 0: it is the others', where these
 * have the same. */
static void series_of_stride(const generalizer *g, uint32_t t, uint32_t d, int64_t *series)
{
    int64_t common = 0;
    bool same = true;

    SERIES_OF_TENSOR(g, t, strides[d], series);
    for (uint32_t i = 0; i < g->s->count; i++) {
        if (g->s->functions[i]->tensors[t].sizes[d] == 1)
            continue;
        same = same && (common == 0 || common == series[i]);
        common = series[i];
    }
    for (uint32_t i = 0; i < g->s->count && same; i++)
        series[i] = common != 0 ? common : series[i];
}

/* Bytes up to the last element, of which the tensor's may be more: a binding's are rounded up. */
static void series_of_span(const generalizer *g, uint32_t t, int64_t *series)
{
    for (uint32_t i = 0; i < g->s->count; i++) {
        uint64_t span = 0;
        opjit_ir_span_bytes(&g->s->functions[i]->tensors[t], &span);
        series[i] = (int64_t)span;
    }
}

/* How many elements a tensor has, which no statement may say: a sum of all of them has blocks of so many. */
static void add_elements(generalizer *g)
{
    int64_t series[IR_SAMPLES];

    for (uint32_t t = 1; t < g->base->tensor_count; t++) {
        series_of_span(g, t, series);
        for (uint32_t i = 0; i < g->s->count; i++)
            series[i] /= opjit_ir_type_size(g->base->tensors[t].type);
        opjit_ir_number_add(g, series, 1);
    }
}

static opjit_status add_tensor(generalizer *g, uint32_t t)
{
    const ir_tensor *own = &g->base->tensors[t];
    int64_t series[IR_SAMPLES];
    bool flat = false;

    g->tensor = t;
    for (uint32_t i = 1; i < g->s->count; i++)
        if (!same_tensor(own, &g->s->functions[i]->tensors[t]))
            return opjit_ir_refuse_shape(g, "tensors or constants");
    for (uint32_t d = 0; d < own->rank; d++) {
        SERIES_OF_TENSOR(g, t, sizes[d], series);
        opjit_ir_number_add(g, series, 1);
        series_of_stride(g, t, d, series);
        opjit_ir_number_add(g, series, 1);
        flat = flat || opjit_ir_series_differs(g, series);
    }
    series_of_span(g, t, series);
    opjit_ir_number_add(g, series, 1);
    SERIES_OF_TENSOR(g, t, bytes, series);
    opjit_ir_number_add(g, series, 1);
    SERIES_OF_TENSOR(g, t, offset, series);
    opjit_ir_number_add(g, series, 1);
    g->flat[t] = flat || (own->role == IR_VIEW && opjit_ir_series_differs(g, series));
    return OPJIT_OK;
}

static bool same_node(const ir_node *a, const ir_node *b)
{
    return a->op == b->op && a->type == b->type && a->kind == b->kind && a->hold == b->hold && a->flags == b->flags &&
           a->block == b->block && a->vec == b->vec && a->unroll == b->unroll && a->count == b->count &&
           a->first == b->first && a->ref == b->ref && a->next == b->next && a->body == b->body;
}

/* A stage runs over what it stores: where several numbers have a quotient, it is of one of these. */
static void add_stored(generalizer *g, uint32_t t)
{
    int64_t series[IR_SAMPLES];

    for (uint32_t d = 0; d < g->base->tensors[t].rank && g->base->tensors[t].role != IR_SCRATCH; d++) {
        SERIES_OF_TENSOR(g, t, sizes[d], series);
        opjit_ir_number_add(g, series, IR_USES_OF_SIZE);
    }
}

static opjit_status add_node(generalizer *g, ir_ref r)
{
    const ir_node *own = ir_at(g->base, r);
    int64_t series[IR_SAMPLES];

    opjit_ir_number_at(g, r);
    for (uint32_t i = 1; i < g->s->count; i++)
        if (!same_node(own, ir_at(g->s->functions[i], r)))
            return opjit_ir_refuse_shape(g, "loops");
    series_of_imm(g, r, series);
    if (own->op == IR_FOR)
        opjit_ir_divisor_add(g, series[0]);
    if (own->op == IR_STORE)
        add_stored(g, own->ref);
    if (own->op == IR_ISUB && ir_is_index_const(g->base, ir_operand(g->base, r, 0))) {
        int64_t all[IR_SAMPLES]; /* what of all is left: it is what a loop has blocks of */
        series_of_imm(g, ir_operand(g->base, r, 0), all);
        opjit_ir_number_add(g, all, IR_USES_OF_LIMIT);
    }
    if (own->op == IR_CONST && own->type == IR_INDEX) {
        opjit_ir_number_add(g, series, 1);
        if (!opjit_ir_series_differs(g, series))
            opjit_ir_divisor_add(g, series[0]);
        return OPJIT_OK;
    }
    if (!opjit_ir_series_differs(g, series) || own->op == IR_STAGE) /* a grain: the first sample's */
        return OPJIT_OK;
    if (own->op != IR_CONST || opjit_ir_element_series(g, r, series) == IR_UNKNOWN)
        return opjit_ir_refuse_number(g, opjit_ir_op_infos[own->op].name, series);
    opjit_ir_number_add(g, series, 1);
    return OPJIT_OK;
}

/* Enters all numbers that differ, if nothing else does. */
static opjit_status compare(generalizer *g)
{
    for (uint32_t i = 1; i < g->s->count; i++) {
        const ir_func *other = g->s->functions[i];
        if (other->node_count != g->base->node_count || other->operand_count != g->base->operand_count ||
            other->tensor_count != g->base->tensor_count || other->param_count != g->base->param_count ||
            memcmp(other->operands, g->base->operands, g->base->operand_count * sizeof(ir_ref)) != 0)
            return opjit_ir_refuse_shape(g, "loops");
    }
    const ir_space *const space = &g->s->space;
    for (uint32_t d = 0; d < space->dims + space->count; d++) { /* whatever else there is: the dimensions themselves */
        int64_t series[IR_SAMPLES];
        for (uint32_t i = 0; i < g->s->count; i++)
            series[i] = opjit_ir_space_value(space, d, g->s->values[i]);
        opjit_ir_number_add(g, series, 1);
    }
    for (uint32_t t = 1; t < g->base->tensor_count; t++)
        TRY(add_tensor(g, t));
    for (ir_ref r = 1; r < g->base->node_count; r++)
        TRY(add_node(g, r));
    opjit_ir_number_at(g, 0);
    add_elements(g);
    opjit_ir_numbers_fit(g);
    return g->f->failed ? opjit_rt_no_memory(g->error) : OPJIT_OK;
}

/* --- the copy ----------------------------------------------------------------------------------------------------- */

/* Where an access of a flat tensor lies, counted from its first element. */
static opjit_status flat_place(generalizer *g, uint32_t t, const ir_ref *at, ir_ref *out)
{
    const ir_tensor *own = &g->base->tensors[t];
    ir_func *f = g->f;
    int64_t series[IR_SAMPLES];
    ir_ref sum = opjit_ir_index(f, 0);

    for (uint32_t d = 0; d < own->rank; d++) {
        series_of_stride(g, t, d, series);
        const number *n = opjit_ir_number_find(g, series);
        if (n != NULL && n->expr == 0)
            return opjit_ir_refuse_number(g, "a stride", series);
        const ir_ref term = n != NULL ? ir_expr2(f, IR_ISCALE, IR_INDEX, at[d], n->expr)
                                      : ir_make2(f, IR_IMUL, IR_INDEX, at[d], opjit_ir_index(f, series[0]));
        sum = ir_make2(f, IR_IADD, IR_INDEX, sum, term);
    }
    SERIES_OF_TENSOR(g, t, offset, series);
    const number *n = own->role == IR_VIEW ? opjit_ir_number_find(g, series) : NULL;
    if (n != NULL && n->expr == 0)
        return opjit_ir_refuse_number(g, "an offset", series);
    *out = n == NULL ? sum : ir_make2(f, IR_IADD, IR_INDEX, sum, n->expr);
    return OPJIT_OK;
}

static bool is_flat(const generalizer *g, uint32_t tensor)
{
    return g->flattens && g->flat[tensor];
}

/* A constant that differs, as an expression. */
static opjit_status copy_constant(generalizer *g, ir_ref r, ir_ref *out)
{
    const ir_type type = (ir_type)ir_at(g->base, r)->type;
    int64_t series[IR_SAMPLES];

    series_of_imm(g, r, series);
    const ir_element_rule rule = type == IR_INDEX ? IR_WHOLE : opjit_ir_element_series(g, r, series);
    const number *n = opjit_ir_number_find(g, series);
    if (n == NULL || n->expr == 0)
        return opjit_ir_refuse_number(g, "a number", series);
    g->out->node_numbers[r] = (ir_node_number){ (uint32_t)(n - g->numbers) + 1, (unsigned)rule & 3u };
    *out = n->expr;
    if (type == IR_INDEX)
        return OPJIT_OK;
    *out = opjit_ir_expr(g->f, IR_ELEM, type, 1, out);
    if (rule == IR_INVERSE)
        *out = ir_expr2(g->f, IR_DIV, type, opjit_ir_const(g->f, type, opjit_ir_element_of(type, 1)), *out);
    else if (rule == IR_HALF)
        *out = ir_expr2(g->f, IR_DIV, type, *out, opjit_ir_const(g->f, type, opjit_ir_element_of(type, 2)));
    return OPJIT_OK;
}

/* The op by a number that is no constant any more. */
static opjit_status general_op(generalizer *g, ir_node *n, ir_ref by)
{
    const ir_op op = (ir_op)n->op;

    if ((op != IR_IMUL && op != IR_IDIV && op != IR_IMOD && op != IR_DOWN && op != IR_UP) ||
        ir_is_index_const(g->f, by))
        return OPJIT_OK;
    if (op == IR_DOWN || op == IR_UP)
        return opjit_ir_refuse_shape(g, "roundings");
    n->op = op == IR_IMUL ? IR_ISCALE : op == IR_IDIV ? IR_IQUOT : IR_IREST;
    return OPJIT_OK;
}

static opjit_status copy_node(generalizer *g, ir_ref r)
{
    const ir_func *base = g->base;
    ir_func *f = g->f;
    ir_node n = *ir_at(base, r);
    ir_ref operands[IR_OPERANDS_MOST];
    int64_t series[IR_SAMPLES];

    opjit_ir_number_at(g, r);
    series_of_imm(g, r, series);
    if (n.op == IR_CONST && opjit_ir_series_differs(g, series))
        return copy_constant(g, r, &g->map[r]);
    if (n.count > IR_OPERANDS_MOST)
        return opjit_ir_refuse_shape(g, "operands");
    if (!ir_is_pure(base, r)) { /* its operands may be newer */
        n.count = n.op == IR_STORE && is_flat(g, n.ref) ? 2 : n.count;
        g->map[r] = opjit_ir_node_new(f, &n, n.count, NULL);
        return OPJIT_OK;
    }
    for (uint32_t i = 0; i < n.count; i++)
        operands[i] = g->map[ir_operand(base, r, i)];
    if (n.count == 2)
        TRY(general_op(g, &n, operands[1]));
    if (n.op == IR_LOAD && is_flat(g, n.ref)) {
        TRY(flat_place(g, n.ref, operands, &operands[0]));
        n.count = 1;
    } else if (n.op == IR_HEAD && is_flat(g, n.ref)) {
        return opjit_ir_refuse_shape(g, "lines");
    }
    g->map[r] = opjit_ir_node_new(f, &n, n.count, operands);
    return OPJIT_OK;
}

static opjit_status link_operands(generalizer *g, ir_ref r)
{
    const ir_node *own = ir_at(g->base, r);
    ir_ref operands[IR_OPERANDS_MOST];

    for (uint32_t i = 0; i < own->count; i++)
        operands[i] = g->map[ir_operand(g->base, r, i)];
    if (own->op == IR_STORE && is_flat(g, own->ref))
        TRY(flat_place(g, own->ref, operands + 1, &operands[1]));
    if (g->f->failed)
        return opjit_rt_no_memory(g->error);
    const ir_node *n = ir_at(g->f, g->map[r]);
    memcpy(&g->f->operands[n->first], operands, n->count * sizeof *operands);
    return OPJIT_OK;
}

/* What statements read, and nodes that a node names, all of which may be newer. */
static opjit_status link_nodes(generalizer *g)
{
    ir_func *f = g->f;

    for (ir_ref r = 1; r < g->base->node_count && !f->failed; r++) {
        const ir_node *own = ir_at(g->base, r);
        ir_node *n = &f->nodes[g->map[r]];
        opjit_ir_number_at(g, r);
        if (n->op != own->op) /* a constant that is none any more, or an op of general_op: it names none */
            continue;
        n->next = own->next != 0 ? g->map[own->next] : 0;
        n->body = own->body != 0 ? g->map[own->body] : 0;
        if (ir_names_node(own))
            n->ref = g->map[own->ref];
        if (!ir_is_pure(g->base, r))
            TRY(link_operands(g, r));
    }
    f->body = g->map[g->base->body];
    return OPJIT_OK;
}

/* Whether in all samples the tensor has the bytes that its elements reach, rounded up to a multiple of `unit`. */
static bool has_span(const generalizer *g, uint32_t t, uint64_t unit)
{
    uint64_t bytes;

    for (uint32_t i = 0; i < g->s->count; i++) {
        const ir_tensor *own = &g->s->functions[i]->tensors[t];
        if (!opjit_ir_span_bytes(own, &bytes) || align_up(bytes, unit) != own->bytes)
            return false;
    }
    return true;
}

/* As many elements as the bytes hold, unless they are rounded up; a view's reach to the end of what it shows. */
static opjit_status find_elements(generalizer *g, uint32_t t, ir_size_form *out)
{
    const ir_tensor *own = &g->base->tensors[t];
    const uint32_t root = opjit_ir_root(g->base, t);
    const int64_t size = opjit_ir_type_size(g->base->tensors[root].type);
    int64_t series[IR_SAMPLES], offsets[IR_SAMPLES];

    SERIES_OF_TENSOR(g, root, bytes, series);
    if (has_span(g, root, BINDING_UNIT))
        series_of_span(g, root, series);
    SERIES_OF_TENSOR(g, t, offset, offsets);
    TRY(opjit_ir_number_form(g, "bytes of a tensor", series, out));
    const bool whole = out->form.times % size == 0 && out->plus % size == 0;
    if (out->rest != 0 || (!whole && (out->form.times != 1 || out->plus != 0)))
        return opjit_ir_refuse_number(g, "bytes of a tensor", series);
    out->form.times /= whole ? size : 1;
    out->plus /= size;
    out->form.divisor *= whole ? 1 : size;
    if (own->role == IR_VIEW && !opjit_ir_series_differs(g, offsets))
        out->plus -= own->offset;
    return OPJIT_OK;
}

static opjit_status find_forms(generalizer *g, uint32_t t, ir_tensor_forms *out)
{
    const ir_tensor *own = &g->base->tensors[t];
    int64_t series[IR_SAMPLES];

    g->tensor = t;
    SERIES_OF_TENSOR(g, t, bytes, series);
    const bool exact = has_span(g, t, 1);
    out->rounded = !exact && has_span(g, t, BINDING_UNIT);
    if (!exact && !out->rounded)
        TRY(opjit_ir_number_form(g, "bytes of a tensor", series, &out->bytes));
    SERIES_OF_TENSOR(g, t, offset, series);
    TRY(opjit_ir_number_form(g, "an offset", series, &out->offset));
    for (uint32_t d = 0; d < own->rank; d++) {
        SERIES_OF_TENSOR(g, t, sizes[d], series);
        TRY(opjit_ir_number_form(g, "a size", series, &out->sizes[d]));
        series_of_stride(g, t, d, series);
        TRY(opjit_ir_number_form(g, "a stride", series, &out->strides[d]));
    }
    return g->flat[t] ? find_elements(g, t, &out->elements) : OPJIT_OK;
}

static opjit_status copy_tensors(generalizer *g)
{
    ir_general *out = g->out;

    for (uint32_t t = 1; t < out->tensor_count; t++) {
        ir_tensor own = g->base->tensors[t];
        int64_t series[IR_SAMPLES];
        for (uint32_t d = 0; d < own.rank; d++) {
            series_of_stride(g, t, d, series);
            own.strides[d] = (uint64_t)series[0];
        }
        SERIES_OF_TENSOR(g, t, offset, series);
        if (is_flat(g, t)) {
            own.offset = own.role == IR_VIEW && opjit_ir_series_differs(g, series) ? 0 : own.offset;
            own.rank = 1;
            own.strides[0] = 1;
        }
        if (g->flattens)
            own.size_forms = g->flat[t] ? &out->tensors[t].elements : out->tensors[t].sizes;
        opjit_ir_tensor(g->f, &own);
    }
    return g->f->failed ? opjit_rt_no_memory(g->error) : OPJIT_OK;
}

/* The forms of tensors and stages, which both functions share. */
static opjit_status find_all_forms(generalizer *g)
{
    ir_general *out = g->out;
    uint32_t count = 0;

    for (ir_ref s = g->base->body; s != 0; s = ir_at(g->base, s)->next)
        count++;
    out->tensor_count = g->base->tensor_count;
    out->tensors = ARENA_ARRAY(&out->arena, ir_tensor_forms, out->tensor_count);
    out->extents = ARENA_ARRAY(&out->arena, opjit_size_form, count);
    out->node_numbers = ARENA_ARRAY(&out->arena, ir_node_number, g->base->node_count);
    if (out->extents == NULL || out->tensors == NULL || out->node_numbers == NULL)
        return opjit_rt_no_memory(g->error);
    for (uint32_t t = 1; t < out->tensor_count; t++)
        TRY(find_forms(g, t, &out->tensors[t]));
    for (ir_ref s = g->base->body; s != 0; s = ir_at(g->base, s)->next) {
        int64_t series[IR_SAMPLES];
        series_of_imm(g, ir_operand(g->base, s, 1), series);
        ir_size_form form;
        opjit_ir_number_at(g, s);
        TRY(opjit_ir_number_form(g, "a stage's iterations", series, &form));
        if (form.rest != 0 || form.plus != 0)
            return opjit_ir_refuse_number(g, "a stage's iterations", series);
        out->extents[out->extent_count++] = form.form;
    }
    return OPJIT_OK;
}

/* Writes one of both functions. */
static opjit_status copy(generalizer *g, ir_func *f, bool flattens)
{
    g->f = f;
    g->flattens = flattens;
    for (uint32_t p = 1; p < g->base->param_count; p++) {
        const ir_param *own = &g->base->params[p];
        opjit_ir_param_add(f, own->type, own->lo, own->hi, own->name);
    }
    g->out->first_param = f->param_count;
    for (uint32_t d = 0; d < g->s->space.dims; d++)
        opjit_ir_param_add(f, IR_INDEX, g->s->dims[d].lo, g->s->dims[d].hi, g->s->dims[d].name);
    if (g->base->target != NULL)
        f->target = opjit_rt_arena_string(&f->arena, g->base->target, strlen(g->base->target));
    f->first_dim = g->out->first_param;
    f->space = g->s->space;
    f->phase = g->base->phase;
    opjit_ir_number_at(g, 0);
    TRY(copy_tensors(g));
    opjit_ir_numbers_build(g);
    for (ir_ref r = 1; r < g->base->node_count && !f->failed; r++)
        TRY(copy_node(g, r));
    if (!f->failed)
        TRY(link_nodes(g));
    return f->failed ? opjit_rt_no_memory(g->error) : OPJIT_OK;
}

/* --- what others call --------------------------------------------------------------------------------------------- */

static opjit_status generalize(generalizer *g, const ir_func *base, ir_general *out)
{
    rt_arena *scratch = &out->f.scratch; /* of what both functions need */

    g->f = &out->f;
    g->map = ARENA_ARRAY(scratch, ir_ref, base->node_count);
    g->flat = ARENA_ARRAY(scratch, bool, base->tensor_count);
    if (g->map == NULL || g->flat == NULL)
        return opjit_rt_no_memory(g->error);
    TRY(compare(g));
    TRY(find_all_forms(g));
    TRY(opjit_ir_numbers_list(g));
    TRY(copy(g, &out->shaped, false));
    return copy(g, &out->f, true);
}

opjit_status opjit_ir_generalize(const ir_samples *samples, ir_guess guess, ir_general *out, opjit_error *error)
{
    const ir_func *base = samples->functions[0];
    generalizer g = { .s = samples, .base = base, .out = out, .guess = guess, .error = error };
    opjit_status status;

    memset(out, 0, sizeof *out);
    out->space = samples->space;
    opjit_rt_arena_init(&out->arena, base->allocator);
    status = opjit_ir_init(&out->f, base->allocator, base->name, error);
    if (status == OPJIT_OK)
        status = opjit_ir_init(&out->shaped, base->allocator, base->name, error);
    if (status == OPJIT_OK)
        status = generalize(&g, base, out);
    opjit_ir_trim(&out->f);
    opjit_ir_trim(&out->shaped);
    if (status != OPJIT_OK) {
        const uint32_t origin = out->origin;
        opjit_ir_general_free(out);
        out->origin = origin;
    }
    return status;
}
