/* SPDX-License-Identifier: Apache-2.0 */
/* alignment.c - what is known of the alignment of loads and stores.  Emits nothing. */
#include "codegen/emit/access.h"

/* The remainder modulo m, under the guess, of the element's position counted from the start of the line before HEAD. */
static bool place_after_head(const cg_residues *with, const cg_access *a, uint64_t m, uint64_t *out)
{
    const cg_func *f = with->f;
    uint64_t r = 0, sum = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        const uint64_t s = (uint64_t)cg_stride(f, a, d) % m;
        if (s != 0 && !opjit_cg_residue(with, cg_coordinate(f, a, d), m, &r))
            return false;
        sum += s * r;
    }
    if (!opjit_cg_residue(with, ir_operand(f->ir, f->head, 0), m, &r))
        return false;
    *out = (sum + m - r) % m;
    return true;
}

/* On GPUs whole vectors of the output that HEAD refers to begin where those of similar tensors do. */
static bool starts_alike(const cg_func *f, const cg_access *a, uint64_t m)
{
    const ir_tensor *t = &f->ir->tensors[a->tensor], *out = &f->ir->tensors[ir_at(f->ir, f->head)->ref];
    const uint32_t size = a->bits / 8;
    return f->cpu->grid && m * size <= OPJIT_GPU_ALIGNMENT && size == opjit_ir_type_size(out->type) &&
           (t->role != IR_VIEW || (uint64_t)t->offset * size % OPJIT_GPU_ALIGNMENT == 0);
}

/* Whether lane 0 is a whole number of lines from the end of HEAD; m elements make a line. */
static bool is_at_line(const cg_residues *known, const cg_access *a, uint64_t m)
{
    const cg_func *f = known->f;
    cg_residues with = *known;
    bool at_line = f->head != 0 && (ir_at(f->ir, f->head)->ref == a->tensor || starts_alike(f, a, m));
    for (uint32_t i = 0; i < CG_GUESSES && at_line; i++) {
        uint64_t place;
        with.guess = opjit_cg_guesses[i];
        at_line = place_after_head(&with, a, m, &place) && place == with.guess.head % m;
    }
    return at_line;
}

/* The alignment of element 0: as declared, and as callers of kernels on a GPU must ensure. */
static uint32_t base_alignment(const cg_func *f, const ir_tensor *t)
{
    const uint32_t least = f->cpu->grid && t->role != IR_VIEW ? OPJIT_GPU_ALIGNMENT : 0;
    return t->align > least ? t->align : least;
}

uint32_t opjit_cg_element_alignment(const cg_func *f, const cg_access *a)
{
    const uint32_t size = a->bits / 8, align = base_alignment(f, &f->ir->tensors[opjit_ir_root(f->ir, a->tensor)]);
    return align != 0 && align < size ? align : size;
}

/* The known alignment in bytes of lane 0 of `lanes`, at most a cache line. */
static uint32_t alignment_with(const cg_residues *with, const cg_access *a, uint32_t lanes)
{
    const cg_func *f = with->f;
    const ir_tensor *t = &f->ir->tensors[a->tensor];
    const uint32_t size = a->bits / 8;
    uint32_t base = base_alignment(f, t) ? base_alignment(f, t) : size;
    if (opjit_cg_element_alignment(f, a) < size)
        return opjit_cg_element_alignment(f, a);
    if (is_at_line(with, a, IR_LINE / size))
        return IR_LINE;
    if (lanes > 1 && is_at_line(with, a, lanes))
        return lanes * size;
    if (t->role == IR_VIEW) {
        const ir_tensor *of = &f->ir->tensors[opjit_ir_root(f->ir, a->tensor)];
        base = f->cpu->grid ? base_alignment(f, of) : of->align < base && of->align ? of->align : base;
        while (base > size && (uint64_t)t->offset * size % base != 0)
            base /= 2;
    }
    for (uint32_t bytes = base < IR_LINE ? base : IR_LINE; bytes > size; bytes /= 2) {
        const uint64_t m = bytes / size;
        uint64_t sum = 0;
        bool known = true;
        for (uint32_t d = 0; known && d < a->rank; d++) {
            const uint64_t s = (uint64_t)cg_stride(f, a, d) % m;
            uint64_t r = 0;
            known = s == 0 || opjit_cg_residue(with, cg_coordinate(f, a, d), m, &r);
            sum += s * r;
        }
        if (known && sum % m == 0)
            return bytes;
    }
    return size;
}

uint32_t opjit_cg_alignment(const cg_func *f, const cg_access *a)
{
    const cg_residues with = opjit_cg_residues(f);
    return alignment_with(&with, a, f->piece->lanes);
}

bool opjit_cg_is_aligned(const cg_func *f, ir_ref store, ir_ref var, uint32_t lanes)
{
    const cg_access a = opjit_cg_access_of(f, store);
    const cg_residues with = { .f = f, .moving = var, .lanes = lanes };
    return alignment_with(&with, &a, lanes) >= lanes * a.bits / 8;
}
