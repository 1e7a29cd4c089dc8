/* SPDX-License-Identifier: Apache-2.0 */
/* instance.c - what a generalization is for some values of its dimensions: sizes of its tensors, and the function. */
#include <string.h>

#include "ir/analysis/analysis.h"
#include "ir/general/general.h"
#include "ir/core/internal.h"
#include "ir/passes/pass.h"

void opjit_ir_general_free(ir_general *g)
{
    opjit_ir_free(&g->f);
    opjit_ir_free(&g->shaped);
    opjit_rt_arena_free(&g->arena);
    memset(g, 0, sizeof *g);
}

void opjit_ir_general_settle(ir_general *g)
{
    const opjit_allocator *const allocator = g->arena.allocator;

    opjit_ir_free(&g->shaped);
    opjit_rt_arena_free(&g->arena);
    *g = (ir_general){ .f = g->f, .space = g->space, .first_param = g->first_param };
    opjit_rt_arena_init(&g->arena, allocator);
}

static opjit_status refuse_bytes(opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_LIMIT, "{!kernel}{!dims}a tensor has {more than 2^63} bytes");
}

/* The number for just these values, or no less than for any up to them.  false: below 0, or more than 64 bits. */
static bool value_of(const ir_general *g, const ir_size_form *form, const int64_t *values, bool largest, uint64_t *out)
{
    int64_t value, whole;

    if (!opjit_ir_number_value(form, &g->space, values, &value))
        return false;
    if (largest && form->rest != 0 && opjit_ir_form_value(&form->form, &g->space, values, &whole) &&
        whole >= form->rest && !checked_addi(form->rest - 1, form->plus, &value))
        return false;
    *out = (uint64_t)value;
    return value >= 0;
}

/* The layout, for just these values, or as for the largest up to them.  Of a size of 0, which loops that do not run
 * have, 1 is made: there is no tensor without elements. */
static bool layout_of(const ir_general *g, uint32_t t, const int64_t *values, bool largest, ir_tensor *out)
{
    const ir_tensor_forms *forms = &g->tensors[t];
    uint64_t offset = 0;
    bool known = out->role != IR_VIEW || value_of(g, &forms->offset, values, largest, &offset);

    if (out->role == IR_VIEW)
        out->offset = (int64_t)offset;
    for (uint32_t d = 0; d < out->rank && known; d++) {
        known = value_of(g, &forms->sizes[d], values, largest, &out->sizes[d]) &&
                value_of(g, &forms->strides[d], values, largest, &out->strides[d]);
        out->sizes[d] += out->sizes[d] == 0;
        out->strides[d] = out->sizes[d] == 1 ? 0 : out->strides[d];
    }
    if (forms->bytes.form.divisor != 0)
        return known && value_of(g, &forms->bytes, values, largest, &out->bytes);
    known = known && opjit_ir_span_bytes(out, &out->bytes);
    out->bytes = forms->rounded ? align_up(out->bytes, BINDING_UNIT) : out->bytes;
    return known;
}

bool opjit_ir_general_layout(const ir_general *g, uint32_t t, const int64_t *values, ir_tensor *out)
{
    return layout_of(g, t, values, false, out);
}

opjit_status opjit_ir_general_resize(ir_general *g, const int64_t *values, opjit_error *error)
{
    for (uint32_t t = 1; t < g->tensor_count; t++) {
        const ir_size_form *elements = &g->tensors[t].elements;
        ir_tensor *own = &g->f.tensors[t], shaped = g->shaped.tensors[t];
        bool known = layout_of(g, t, values, true, &shaped);
        own->bytes = shaped.bytes;
        for (uint32_t d = 0; d < own->rank && elements->form.divisor == 0; d++)
            own->sizes[d] = shaped.sizes[d];
        if (elements->form.divisor != 0)
            known = known && value_of(g, elements, values, true, &own->sizes[0]);
        if (!known)
            return refuse_bytes(error);
        own->size_forms = NULL;
    }
    return OPJIT_OK;
}

/* Of an instance: all of its tensors' layouts. */
static opjit_status set_layouts(const ir_general *g, const int64_t *values, ir_func *f, opjit_error *error)
{
    for (uint32_t t = 1; t < g->tensor_count; t++)
        if (!layout_of(g, t, values, false, &f->tensors[t]))
            return refuse_bytes(error);
    return OPJIT_OK;
}

/* Index arithmetic on constants alone becomes a constant. */
static void fold_node(ir_func *f, ir_ref r)
{
    ir_node *n = &f->nodes[r];
    uint64_t args[3], value;

    if (n->type != IR_INDEX || n->count == 0 || n->count > 3 || n->op == IR_LOAD || n->op == IR_HEAD)
        return;
    for (uint32_t i = 0; i < n->count; i++) {
        const ir_ref operand = ir_operand(f, r, i);
        if (!ir_is_index_const(f, operand))
            return;
        args[i] = ir_at(f, operand)->imm;
    }
    if (opjit_ir_scalar((ir_op)n->op, IR_INDEX, IR_INDEX, args, &value))
        *n = (ir_node){ .op = IR_CONST, .type = IR_INDEX, .imm = value };
}

/* The variable of a loop that runs once is a constant now: what a loop with hold stored at it is one element. */
static void drop_hold(ir_func *f, ir_ref r)
{
    ir_node *n = &f->nodes[r];
    const bool known = n->op == IR_FOR && n->hold && ir_is_index_const(f, ir_operand(f, r, 0)) &&
                       ir_is_index_const(f, ir_operand(f, r, 1));

    if (known && ir_index_value(f, ir_operand(f, r, 1)) - ir_index_value(f, ir_operand(f, r, 0)) <= (int64_t)n->imm)
        n->hold = 0;
}

void opjit_ir_drop_idle_stages(ir_func *f)
{
    for (ir_ref *at = &f->body; *at != 0;) {
        ir_node *n = &f->nodes[*at];
        if (n->op == IR_STAGE && opjit_ir_runs_never(f, ir_operand(f, *at, 0), ir_operand(f, *at, 1)))
            *at = n->next;
        else
            at = &n->next;
    }
}

/* Simplifies all that statements read. */
static opjit_status remake(ir_func *f, opjit_error *error)
{
    ir_map nothing = { 0 };
    opjit_ir_remake_operands(f, &nothing, f->body);
    return f->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

opjit_status opjit_ir_general_instance(const ir_general *g, const int64_t *values, ir_func *out, opjit_error *error)
{
    TRY(opjit_ir_copy(&g->shaped, out, error));
    for (ir_ref r = 1; r < out->node_count; r++) { /* operands are older than their users */
        ir_node *n = &out->nodes[r];
        if (n->op == IR_PARAM && n->ref >= g->first_param && n->ref < g->first_param + g->space.dims)
            *n = (ir_node){ .op = IR_CONST, .type = IR_INDEX, .imm = (uint64_t)values[n->ref - g->first_param] };
        else
            fold_node(out, r);
        const bool by_size = n->op == IR_ISCALE || n->op == IR_IQUOT || n->op == IR_IREST;
        if (by_size && ir_is_index_const(out, ir_operand(out, r, 1)))
            n->op = n->op == IR_ISCALE ? IR_IMUL : n->op == IR_IQUOT ? IR_IDIV : IR_IMOD;
    }
    opjit_ir_drop_idle_stages(out); /* they may divide by a size that is 0 */
    opjit_status status = set_layouts(g, values, out, error);
    if (status == OPJIT_OK) /* quotients by 1 and the like, which a function for these values would not have */
        status = remake(out, error);
    for (ir_ref r = 1; r < out->node_count && status == OPJIT_OK; r++)
        drop_hold(out, r);
    opjit_ir_trim(out);
    if (status != OPJIT_OK)
        opjit_ir_free(out);
    return status;
}

bool opjit_ir_general_is_reached(const ir_general *g, uint32_t t, const int64_t *values)
{
    uint64_t size = 1;

    for (uint32_t d = 0; d < g->shaped.tensors[t].rank && size != 0; d++)
        if (!value_of(g, &g->tensors[t].sizes[d], values, false, &size))
            return false;
    return size != 0;
}

/* --- the same function -------------------------------------------------------------------------------------------- */

/* As the passes for one size leave it: without lets that need no name, and what has no effect. */
static void simplify(ir_func *f)
{
    for (ir_ref s = f->body; s != 0 && !f->failed; s = ir_at(f, s)->next) {
        ir_map nothing = { 0 };
        const ir_ref body = opjit_ir_remake_block(f, &nothing, ir_at(f, s)->body);
        f->nodes[s].body = body;
    }
    opjit_ir_remove_idle(f);
}

/* Without what differs in a copy for one size: dimensions, grains, and loops that never run. */
static void plain(ir_func *f, uint32_t params)
{
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        f->nodes[s].imm = 0;
    f->param_count = params;
    simplify(f);
}

static opjit_status spell(const ir_func *f, rt_bytes *out, opjit_error *error)
{
    opjit_rt_bytes_init(out, f->arena.allocator);
    opjit_ir_print(f, out);
    return out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

/* Brings both to what can be compared: without what only a generalization has, or only loops for one size. */
static opjit_status make_plain(ir_func *instance, ir_func *own, opjit_error *error)
{
    TRY(remake(own, error));
    for (ir_ref r = 1; r < own->node_count; r++)
        drop_hold(own, r);
    plain(instance, own->param_count);
    plain(own, own->param_count);
    return instance->failed || own->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

opjit_status opjit_ir_general_pair(const ir_general *g, const int64_t *values, const ir_func *loops,
                                   ir_func *out_instance, ir_func *out_own, opjit_error *error)
{
    TRY(opjit_ir_general_instance(g, values, out_instance, error));
    opjit_status status = opjit_ir_copy(loops, out_own, error);
    if (status != OPJIT_OK) {
        opjit_ir_free(out_instance);
        return status;
    }
    status = make_plain(out_instance, out_own, error);
    if (status != OPJIT_OK) {
        opjit_ir_free(out_instance);
        opjit_ir_free(out_own);
    }
    return status;
}

static opjit_status compare(ir_func *instance, ir_func *own, bool *out, opjit_error *error)
{
    rt_bytes a, b;

    const ir_same same = opjit_ir_are_same(instance, own);
    *out = same == IR_SAME;
    if (same != IR_SAME_UNKNOWN)
        return OPJIT_OK;
    opjit_status status = spell(instance, &a, error);
    if (status == OPJIT_OK)
        status = spell(own, &b, error);
    else
        opjit_rt_bytes_init(&b, own->arena.allocator);
    *out = status == OPJIT_OK && a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
    opjit_rt_bytes_free(&a);
    opjit_rt_bytes_free(&b);
    return status;
}

opjit_status opjit_ir_general_is(const ir_general *g, const int64_t *values, const ir_func *loops, bool *out,
                                 opjit_error *error)
{
    ir_func instance, own;

    *out = false;
    opjit_status status = opjit_ir_general_pair(g, values, loops, &instance, &own, error);
    if (status != OPJIT_OK) /* there is none for these values */
        return status == OPJIT_OUT_OF_MEMORY ? status : OPJIT_OK;
    status = compare(&instance, &own, out, error);
    opjit_ir_free(&own);
    opjit_ir_free(&instance);
    return status;
}
