/* SPDX-License-Identifier: Apache-2.0 */
/* write_operand.c - where values are while code is written: registers, the stack, constants; and moves between them. */
#include "codegen/direct/machine.h"

enum { MOVE_LOAD = 0x8b, MOVE_STORE = 0x89, MASK_LOAD = 0x90, MASK_STORE = 0x91 };

static const uint8_t scratch_integers[] = { X86_AX, 10, 11 };

uint32_t opjit_dx_scratch(const dx_writer *w, dx_reg r, uint32_t which)
{
    switch (w->f->regs[r].kind) {
    case DX_INT: return scratch_integers[which];
    case DX_VEC: return (w->f->wide ? 30 : 14) + which;
    default: return DX_MASK_SCRATCH + which;
    }
}

dx_spot opjit_dx_spot(const dx_writer *w, dx_reg r)
{
    const dx_virtual *v = &w->f->regs[dx_root(w->f, r)];
    if (!v->spilled)
        return (dx_spot){ .reg = v->at < 0 ? 0 : (uint32_t)v->at };
    if (v->data)
        return (dx_spot){
            .in_memory = true, .data = true, .offset = v->data - 1, .mem = { .base = X86_RIP, .index = X86_NO_INDEX }
        };
    return (dx_spot){ .in_memory = true, .mem = { .base = X86_SP, .index = X86_NO_INDEX, .offset = (int32_t)v->slot } };
}

bool opjit_dx_same_spot(const dx_spot *a, const dx_spot *b)
{
    if (a->in_memory != b->in_memory || a->data != b->data)
        return false;
    return a->data ? a->offset == b->offset : a->in_memory ? a->mem.offset == b->mem.offset : a->reg == b->reg;
}

/* --- instructions with memory ------------------------------------------------------------------------------------- */

/* Behind an instruction's last byte come `behind` more that belong to it. */
static void fix_data(dx_writer *w, const dx_spot *spot, uint32_t behind)
{
    if (spot && spot->data)
        opjit_dx_fix(w->f->m, w->out->size - 4, DX_CONSTANTS, spot->offset - 4 - (int64_t)behind);
}

void opjit_dx_integer(dx_writer *w, x86_integer i, const dx_spot *spot, uint32_t behind)
{
    if (spot && spot->in_memory)
        i.mem = &spot->mem;
    else if (spot)
        i.rm = spot->reg;
    opjit_cg_x86_integer(w->out, &i);
    fix_data(w, spot, behind);
}

void opjit_dx_form(dx_writer *w, const dx_op *o, x86_vector v, const dx_spot *spot)
{
    const dx_form *form = &opjit_dx_forms[o->form];
    v.map = (x86_map)form->map;
    v.prefix = (x86_prefix)form->prefix;
    v.code = form->code;
    v.bytes = o->bytes;
    v.w = (form->flags & DX_W) != 0;
    v.avx_w = (form->flags & DX_AVX_W) != 0;
    v.avx512 = (form->flags & DX_ONLY_512) != 0;
    v.unit = form->flags & DX_NO_UNIT ? 0 : form->unit ? form->unit : o->bytes;
    if (spot && spot->in_memory)
        v.mem = &spot->mem;
    else if (spot)
        v.rm = spot->reg;
    opjit_cg_x86_vector(w->out, &v);
    const bool imm = (form->flags & DX_IMM) != 0;
    fix_data(w, spot, imm);
    if (imm)
        opjit_rt_bytes_u8(w->out, (uint8_t)o->imm);
}

/* --- moves -------------------------------------------------------------------------------------------------------- */

static void move_mask(dx_writer *w, const dx_spot *to, const dx_spot *from)
{
    const dx_spot *other = to->in_memory ? to : from;
    x86_vector v = { .map = X86_0F, .code = to->in_memory ? MASK_STORE : MASK_LOAD, .bytes = 16, .avx_w = true };
    v.reg = to->in_memory ? from->reg : to->reg;
    v.mem = other->in_memory ? &other->mem : NULL;
    v.rm = other->reg;
    opjit_cg_x86_vector(w->out, &v);
}

void opjit_dx_move(dx_writer *w, dx_class kind, const dx_spot *to, const dx_spot *from)
{
    const dx_spot *other = to->in_memory ? to : from;
    const uint32_t reg = to->in_memory ? from->reg : to->reg;
    if (opjit_dx_same_spot(to, from))
        return;
    if (kind == DX_INT) {
        opjit_dx_integer(w, (x86_integer){ .code = to->in_memory ? MOVE_STORE : MOVE_LOAD, .wide = true, .reg = reg },
                         other, 0);
    } else if (kind == DX_MASK) {
        move_mask(w, to, from);
    } else {
        const uint32_t bytes = w->f->vectors ? w->f->bytes : 16;
        const dx_op o = { .form = to->in_memory ? DX_F_STORE : DX_F_LOAD, .bytes = (uint8_t)bytes };
        opjit_dx_form(w, &o, (x86_vector){ .reg = reg }, other);
    }
}

uint32_t opjit_dx_in(dx_writer *w, dx_reg r, uint32_t scratch)
{
    const dx_spot from = opjit_dx_spot(w, r), to = { .reg = scratch };
    if (!from.in_memory)
        return from.reg;
    opjit_dx_move(w, (dx_class)w->f->regs[r].kind, &to, &from);
    return scratch;
}

uint32_t opjit_dx_out(const dx_writer *w, dx_reg r, uint32_t scratch)
{
    const dx_spot spot = opjit_dx_spot(w, r);
    return spot.in_memory ? scratch : spot.reg;
}

void opjit_dx_put_back(dx_writer *w, dx_reg r, uint32_t reg)
{
    const dx_virtual *v = &w->f->regs[r];
    const dx_spot to = opjit_dx_spot(w, v->copy_of ? v->copy_of : r), from = { .reg = reg };
    if (to.in_memory && !to.data)
        opjit_dx_move(w, (dx_class)v->kind, &to, &from);
}

dx_spot opjit_dx_spot_of(dx_writer *w, const dx_mem *mem)
{
    dx_spot spot = { .in_memory = true, .mem = { .index = X86_NO_INDEX, .shift = mem->shift } };
    spot.mem.offset = (int32_t)mem->offset;
    switch (mem->where) {
    case DX_AT_DATA:
        spot.data = true;
        spot.offset = mem->offset;
        spot.mem.base = X86_RIP;
        spot.mem.offset = 0;
        return spot;
    case DX_AT_FRAME: spot.mem.base = X86_SP; break;
    default: spot.mem.base = opjit_dx_in(w, mem->base, scratch_integers[1]); break;
    }
    if (mem->index)
        spot.mem.index = opjit_dx_in(w, mem->index, scratch_integers[2]);
    return spot;
}

/* --- groups of moves ---------------------------------------------------------------------------------------------- */

enum { MOST_MOVES = 64 };

typedef struct move {
    dx_spot to, from;
    dx_class kind;
} move;

static uint32_t read_moves(const dx_writer *w, uint32_t first, move *out)
{
    const dx_func *f = w->f;
    uint32_t count = 0;
    for (uint32_t i = first; i <= f->ops[first].end; i++) {
        const dx_op *o = &f->ops[i];
        if (o->kind != DX_MOVES)
            continue;
        move m = { .kind = (dx_class)f->regs[o->dst ? o->dst : o->a].kind };
        m.to = o->fixed == DX_TO_FIXED ? (dx_spot){ .reg = (uint32_t)o->imm } : opjit_dx_spot(w, o->dst);
        m.from = o->fixed == DX_FROM_FIXED ? (dx_spot){ .reg = (uint32_t)o->imm } : opjit_dx_spot(w, o->a);
        if (!opjit_dx_same_spot(&m.to, &m.from) && count < MOST_MOVES)
            out[count++] = m;
    }
    return count;
}

static void move_one(dx_writer *w, const move *m, uint32_t scratch)
{
    const dx_spot through = { .reg = scratch };
    if (!m->to.in_memory || !m->from.in_memory) {
        opjit_dx_move(w, m->kind, &m->to, &m->from);
        return;
    }
    opjit_dx_move(w, m->kind, &through, &m->from);
    opjit_dx_move(w, m->kind, &m->to, &through);
}

static uint32_t scratch_of(const dx_writer *w, dx_class kind, uint32_t which)
{
    return kind == DX_INT   ? scratch_integers[which]
           : kind == DX_VEC ? (w->f->wide ? 30 : 14) + which
                            : DX_MASK_SCRATCH + which;
}

static bool is_awaited(const move *moves, uint32_t count, uint32_t which)
{
    for (uint32_t i = 0; i < count; i++)
        if (i != which && moves[i].kind == moves[which].kind && opjit_dx_same_spot(&moves[i].from, &moves[which].to))
            return true;
    return false;
}

void opjit_dx_moves(dx_writer *w, uint32_t first)
{
    move moves[MOST_MOVES];
    uint32_t count = read_moves(w, first, moves);
    while (count > 0) {
        uint32_t i = 0;
        while (i < count && is_awaited(moves, count, i))
            i++;
        if (i == count) { /* a circle: the first one's destination is kept elsewhere for those that read it */
            const dx_spot kept = { .reg = scratch_of(w, moves[0].kind, 0) }, lost = moves[0].to;
            const move save = { .to = kept, .from = lost, .kind = moves[0].kind };
            move_one(w, &save, kept.reg);
            for (uint32_t k = 0; k < count; k++)
                if (moves[k].kind == save.kind && opjit_dx_same_spot(&moves[k].from, &lost))
                    moves[k].from = kept;
            continue;
        }
        move_one(w, &moves[i], scratch_of(w, moves[i].kind, 1));
        moves[i] = moves[--count];
    }
}
