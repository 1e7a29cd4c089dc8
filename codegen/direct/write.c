/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - operations as code: the frame, vectors, branches, calls. */
#include "codegen/direct/machine.h"

enum { FRAME_ALIGN = 64, LOOP_ALIGN = 16 };

typedef struct dx_jump {
    size_t place; /* behind the jump */
    uint32_t label;
} dx_jump;

/* --- vectors ------------------------------------------------------------------------------------------------------ */

static void put_zero(dx_writer *w, const dx_op *o)
{
    const uint32_t reg = opjit_dx_out(w, o->dst, opjit_dx_scratch(w, o->dst, 0));
    const dx_op zero = { .form = DX_F_PXOR, .bytes = 16 };
    const dx_spot self = { .reg = reg };
    opjit_dx_form(w, &zero, (x86_vector){ .reg = reg, .second = reg }, &self);
    opjit_dx_put_back(w, o->dst, reg);
}

/* RM gets the result of REG. */
static void put_reversed(dx_writer *w, const dx_op *o)
{
    const uint32_t b = opjit_dx_in(w, o->b, opjit_dx_scratch(w, o->b, 1));
    const uint32_t reg = opjit_dx_out(w, o->dst, opjit_dx_scratch(w, o->dst, 0));
    const dx_spot to = { .reg = reg };
    opjit_dx_form(w, o, (x86_vector){ .reg = b }, &to);
    opjit_dx_put_back(w, o->dst, reg);
}

/* The instruction clears its mask, so that it gets a copy. */
static void put_gather(dx_writer *w, const dx_op *o)
{
    const dx_spot mask = opjit_dx_spot(w, o->mask), copy = { .reg = DX_MASK_SCRATCH };
    dx_spot spot = opjit_dx_spot_of(w, &w->f->mems[o->mem - 1]);
    x86_vector v = { .reg = opjit_dx_in(w, o->dst, opjit_dx_scratch(w, o->dst, 0)), .mask = DX_MASK_SCRATCH };
    opjit_dx_move(w, DX_MASK, &copy, &mask);
    spot.mem.index = opjit_dx_in(w, o->a, opjit_dx_scratch(w, o->a, 1));
    spot.mem.shift = o->code;
    spot.mem.lanes = true;
    opjit_dx_form(w, o, v, &spot);
    opjit_dx_put_back(w, o->dst, v.reg);
}

static void put_vector(dx_writer *w, const dx_op *o)
{
    const dx_virtual *d = &w->f->regs[dx_root(w->f, o->dst)];
    x86_vector v = { .zero = o->zero, .splat = o->splat };
    dx_spot spot = { .reg = 0 };
    if (d->spilled && d->data) /* it is read where it lies */
        return;
    if (opjit_dx_forms[o->form].flags & DX_REVERSED) {
        put_reversed(w, o);
        return;
    }
    if (o->form == DX_F_GATHERD || o->form == DX_F_GATHERQ) {
        put_gather(w, o);
        return;
    }
    const uint32_t scratch = opjit_dx_scratch(w, o->dst, 0);
    v.reg = o->tied ? opjit_dx_in(w, o->dst, scratch) : opjit_dx_out(w, o->dst, scratch);
    if (o->a)
        v.second = opjit_dx_in(w, o->a, opjit_dx_scratch(w, o->a, 1));
    if (o->mem)
        spot = opjit_dx_spot_of(w, &w->f->mems[o->mem - 1]);
    else if (opjit_dx_may_read_memory(w->f, o))
        spot = opjit_dx_spot(w, o->b);
    else
        spot.reg = opjit_dx_in(w, o->b, opjit_dx_scratch(w, o->b, 0));
    dx_op whole = *o;
    if (opjit_dx_forms[o->form].flags & DX_THIRD) /* the result is written last */
        whole.imm = (int64_t)opjit_dx_in(w, o->mask, opjit_dx_scratch(w, o->mask, 0)) << 4;
    else if (o->mask)
        v.mask = opjit_dx_in(w, o->mask, opjit_dx_scratch(w, o->mask, 1));
    const uint32_t result = v.reg;
    if (opjit_dx_is_shift(o->form)) {
        v.second = v.reg;
        v.reg = o->code;
    }
    opjit_dx_form(w, &whole, v, &spot);
    opjit_dx_put_back(w, o->dst, result);
}

static void put_store(dx_writer *w, const dx_op *o)
{
    x86_vector v = { .reg = opjit_dx_in(w, o->a, opjit_dx_scratch(w, o->a, 0)) };
    const dx_spot spot = opjit_dx_spot_of(w, &w->f->mems[o->mem - 1]);
    if (o->mask)
        v.mask = opjit_dx_in(w, o->mask, opjit_dx_scratch(w, o->mask, 1));
    if (o->b) /* a mask of AVX2 */
        v.second = opjit_dx_in(w, o->b, opjit_dx_scratch(w, o->b, 1));
    opjit_dx_form(w, o, v, &spot);
}

static void put_copy(dx_writer *w, const dx_op *o)
{
    const dx_spot to = opjit_dx_spot(w, o->dst), from = opjit_dx_spot(w, o->a);
    const dx_class kind = (dx_class)w->f->regs[o->dst].kind;
    if (opjit_dx_same_spot(&to, &from) && to.in_memory)
        return;
    const uint32_t reg = opjit_dx_in(w, o->a, opjit_dx_out(w, o->dst, opjit_dx_scratch(w, o->dst, 0)));
    const dx_spot through = { .reg = reg };
    opjit_dx_move(w, kind, &to, &through);
    if (!to.in_memory)
        opjit_dx_put_back(w, o->dst, to.reg);
}

/* --- the frame ---------------------------------------------------------------------------------------------------- */

static void clear_upper(dx_writer *w)
{
    static const uint8_t vzeroupper[] = { 0xc5, 0xf8, 0x77 };
    if (w->f->vectors)
        opjit_rt_bytes_append(w->out, vzeroupper, sizeof vzeroupper);
}

static void begin(dx_writer *w)
{
    static const uint8_t frame[] = { 0x48, 0x89, 0xe5 };                      /* mov rbp, rsp */
    static const uint8_t align[] = { 0x48, 0x83, 0xe4, 0x100 - FRAME_ALIGN }; /* and rsp, -64 */
    bool used[DX_MOST_REGISTERS] = { false };
    const dx_func *f = w->f;
    for (dx_reg r = 1; r < f->reg_count; r++)
        if (f->regs[r].kind == DX_INT && f->regs[r].at >= 0)
            used[f->regs[r].at] = true;
    w->framed = f->frame > 0 || f->calls;
    if (w->framed) {
        opjit_cg_x86_push(w->out, X86_BP);
        opjit_rt_bytes_append(w->out, frame, sizeof frame);
    }
    for (uint32_t reg = 0; reg < 16; reg++)
        if (used[reg] && (reg == X86_BX || reg >= 12)) {
            w->saved[w->saved_count++] = reg;
            opjit_cg_x86_push(w->out, reg);
        }
    if (w->framed) {
        opjit_cg_x86_immediate(w->out, 5, X86_SP, (int32_t)f->frame);
        opjit_rt_bytes_append(w->out, align, sizeof align);
    }
}

static void end(dx_writer *w, const dx_op *o)
{
    const x86_mem top = { .base = X86_BP, .index = X86_NO_INDEX, .offset = -8 * (int32_t)w->saved_count };
    if (!o->code)
        clear_upper(w);
    if (w->framed)
        opjit_cg_x86_memory(w->out, 0x8d, X86_SP, &top);
    for (uint32_t i = w->saved_count; i-- > 0;)
        opjit_cg_x86_pop(w->out, w->saved[i]);
    if (w->framed)
        opjit_cg_x86_pop(w->out, X86_BP);
    opjit_rt_bytes_u8(w->out, 0xc3);
}

/* --- flow --------------------------------------------------------------------------------------------------------- */

static void jump(dx_writer *w, uint32_t code, uint32_t label)
{
    const size_t place = opjit_cg_x86_jump(w->out, code);
    w->jumps[w->jump_count++] = (dx_jump){ place, label };
}

static bool moves_nothing(const dx_writer *w, uint32_t first)
{
    const dx_func *f = w->f;
    for (uint32_t i = first; i <= f->ops[first].end; i++) {
        if (f->ops[i].kind != DX_MOVES)
            continue;
        const dx_spot to = opjit_dx_spot(w, f->ops[i].dst), from = opjit_dx_spot(w, f->ops[i].a);
        if (f->ops[i].fixed || !opjit_dx_same_spot(&to, &from))
            return false;
    }
    return true;
}

/* The next operation from i on that makes code. */
static uint32_t skip(const dx_writer *w, uint32_t i)
{
    const dx_func *f = w->f;
    while (i < f->op_count) {
        if (f->ops[i].kind == DX_MOVES && moves_nothing(w, i))
            i = f->ops[i].end + 1;
        else if (f->ops[i].kind == DX_NOTHING)
            i++;
        else
            break;
    }
    return i;
}

/* Whether the code behind operation i is at that label. */
static bool is_next(const dx_writer *w, uint32_t i, uint32_t label)
{
    const dx_func *f = w->f;
    for (i = skip(w, i); i < f->op_count && f->ops[i].kind == DX_LABEL; i = skip(w, i + 1))
        if (f->ops[i].imm == label)
            return true;
    return false;
}

/* A branch around nothing but a jump is that jump, if the condition is the other one.  Returns the last operation that
 * is done. */
static uint32_t branch(dx_writer *w, uint32_t i)
{
    const dx_op *o = &w->f->ops[i];
    const uint32_t next = skip(w, i + 1);
    opjit_dx_write_integer(w, o);
    if (next < w->f->op_count && w->f->ops[next].kind == DX_JUMP && is_next(w, next + 1, o->first)) {
        jump(w, 0x80u + (o->cc ^ 1u), (uint32_t)w->f->ops[next].imm);
        return next;
    }
    jump(w, 0x80u + o->cc, o->first);
    return i;
}

static void put_label(dx_writer *w, const dx_op *o)
{
    const dx_func *f = w->f;
    const uint32_t loop = o->imm < f->block_count ? f->blocks[o->imm].loop : 0;
    if (loop && f->loops[loop - 1].inner && f->loops[loop - 1].first == o->imm)
        opjit_cg_x86_align(w->out, LOOP_ALIGN);
    w->labels[o->imm] = w->out->size + 1;
}

static void call(dx_writer *w, const dx_op *o)
{
    if (o->code)
        clear_upper(w);
    opjit_rt_bytes_u8(w->out, 0xe8);
    opjit_rt_bytes_u32(w->out, 0);
    opjit_dx_fix(w->f->m, w->out->size - 4, (uint32_t)o->imm, -4);
}

static void fetch(dx_writer *w, const dx_op *o)
{
    const dx_spot spot = opjit_dx_spot_of(w, &w->f->mems[o->mem - 1]);
    opjit_dx_integer(w, (x86_integer){ .map = X86_0F, .code = 0x18, .reg = o->code }, &spot, 0);
}

/* Writes operation i; returns the last one that is done. */
static uint32_t write_one(dx_writer *w, uint32_t i)
{
    static const uint8_t fence[] = { 0x0f, 0xae, 0xf8 };
    const dx_op *o = &w->f->ops[i];
    if (o->reloads)
        opjit_dx_reload(w, i);
    switch (o->kind) {
    case DX_NOTHING: break;
    case DX_VECTOR: put_vector(w, o); break;
    case DX_PUT: put_store(w, o); break;
    case DX_COPY: put_copy(w, o); break;
    case DX_NUMBER:
        if (w->f->regs[o->dst].kind == DX_VEC)
            put_zero(w, o);
        else
            opjit_dx_write_integer(w, o);
        break;
    case DX_BRANCH: return branch(w, i);
    case DX_JUMP:
        if (!is_next(w, i + 1, (uint32_t)o->imm))
            jump(w, X86_JUMP, (uint32_t)o->imm);
        break;
    case DX_LABEL: put_label(w, o); break;
    case DX_MOVES: opjit_dx_moves(w, o->first); return o->end;
    case DX_CALL: call(w, o); break;
    case DX_RETURN: end(w, o); break;
    case DX_FETCH: fetch(w, o); break;
    case DX_FENCE: opjit_rt_bytes_append(w->out, fence, sizeof fence); break;
    default: opjit_dx_write_integer(w, o); break;
    }
    return i;
}

void opjit_dx_write(dx_func *f)
{
    dx_writer w = { .f = f, .out = &f->m->code };
    w.labels = ARENA_ARRAY(f->arena, size_t, f->label_count + 1);
    w.jumps = ARENA_ARRAY(f->arena, dx_jump, f->op_count + 1);
    if (!w.labels || !w.jumps) {
        opjit_dx_refuse(f, "no memory");
        return;
    }
    begin(&w);
    for (uint32_t i = 0; i < f->op_count; i++)
        i = write_one(&w, i);
    for (uint32_t i = 0; i < w.jump_count && !w.out->failed; i++) {
        if (w.labels[w.jumps[i].label] == 0)
            opjit_dx_refuse(f, "label");
        else
            opjit_cg_x86_land(w.out, w.jumps[i].place, w.labels[w.jumps[i].label] - 1);
    }
}
