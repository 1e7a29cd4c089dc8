/* SPDX-License-Identifier: Apache-2.0 */
/* shuffle.c - vectors from the lanes of others: joined, interleaved, transposed, every few lanes. */
#include "codegen/cg.h"

LLVMValueRef opjit_cg_shuffle(cg_func *f, LLVMValueRef a, LLVMValueRef b, const uint32_t *places, uint32_t count)
{
    LLVMValueRef mask[CG_MAX_LANES];
    for (uint32_t i = 0; i < count; i++)
        mask[i] = places[i] == UINT32_MAX ? LLVMGetPoison(f->type.i32) : LLVMConstInt(f->type.i32, places[i], 0);
    return LLVMBuildShuffleVector(f->b, a, b, LLVMConstVector(mask, count), "");
}

LLVMValueRef opjit_cg_part(cg_func *f, LLVMValueRef v, uint32_t first, uint32_t count)
{
    const uint32_t lanes = opjit_cg_lanes(v);
    uint32_t places[CG_MAX_LANES];
    if (lanes == count)
        return v;
    if (lanes == 1)
        return opjit_cg_splat(f, v, count);
    if (count == 1)
        return opjit_cg_lane(f, v, first);
    for (uint32_t i = 0; i < count; i++)
        places[i] = (first + i) % lanes;
    return opjit_cg_shuffle(f, v, LLVMGetPoison(LLVMTypeOf(v)), places, count);
}

/* The same at quick, where the target has an instruction for it.  Both have as many lanes. */
static LLVMValueRef permute(cg_func *f, LLVMValueRef a, LLVMValueRef b, const uint32_t *places, uint32_t count)
{
    LLVMValueRef all[CG_MAX_LANES], v = NULL;
    const uint32_t bits = opjit_cg_bits(a);
    if (!f->peak && f->cpu->permute && count > 1 && opjit_cg_lanes(a) == count) {
        for (uint32_t i = 0; i < count; i++)
            all[i] = opjit_cg_number(f, bits, 1, places[i] == UINT32_MAX ? 0 : places[i]);
        v = f->cpu->permute(f, a, b, opjit_cg_kept(f, LLVMConstVector(all, count)));
    }
    return v ? v : opjit_cg_shuffle(f, a, b, places, count);
}

/* Concatenates vectors, a power of two of them; overwrites parts. */
LLVMValueRef opjit_cg_join(cg_func *f, LLVMValueRef *parts, uint32_t count)
{
    uint32_t places[CG_MAX_LANES];
    for (; count > 1; count /= 2) {
        const uint32_t lanes = 2 * opjit_cg_lanes(parts[0]);
        for (uint32_t i = 0; i < lanes; i++)
            places[i] = i;
        for (uint32_t i = 0; i < count / 2; i++)
            parts[i] = opjit_cg_shuffle(f, parts[2 * i], parts[2 * i + 1], places, lanes);
    }
    return parts[0];
}

/* In each group of `size` lanes: interleaves the lanes of the lower or upper halves of a and b. */
static LLVMValueRef interleave(cg_func *f, LLVMValueRef a, LLVMValueRef b, uint32_t size, bool upper)
{
    const uint32_t lanes = opjit_cg_lanes(a);
    uint32_t places[CG_MAX_LANES];
    for (uint32_t i = 0; i < lanes; i++)
        places[i] = i / size * size + (upper ? size / 2 : 0) + i % size / 2 + (i % 2 ? lanes : 0);
    return opjit_cg_shuffle(f, a, b, places, lanes);
}

void opjit_cg_transpose_squares(cg_func *f, LLVMValueRef *v, uint32_t count)
{
    LLVMValueRef next[CG_MAX_LANES];
    for (uint32_t stage = 1; stage < count; stage *= 2) {
        for (uint32_t i = 0; i < count; i++)
            next[i] = interleave(f, v[i / 2], v[i / 2 + count / 2], count, i % 2);
        for (uint32_t i = 0; i < count; i++)
            v[i] = next[i];
    }
}

/* From blocks of `size` lanes of a and b: those of even number, or of odd number. */
static LLVMValueRef every_other(cg_func *f, LLVMValueRef a, LLVMValueRef b, uint32_t size, bool odd)
{
    const uint32_t lanes = opjit_cg_lanes(a);
    uint32_t places[CG_MAX_LANES];
    for (uint32_t i = 0; i < lanes; i++)
        places[i] = (2 * (i / size) + odd) * size + i % size;
    return opjit_cg_shuffle(f, a, b, places, lanes);
}

/* Likewise squares of blocks of `size` lanes: block j of v[i * apart] becomes block i of v[j * apart]. */
static void transpose_blocks(cg_func *f, LLVMValueRef *v, uint32_t apart, uint32_t size)
{
    LLVMValueRef next[CG_MAX_LANES];
    const uint32_t count = opjit_cg_lanes(v[0]) / size;
    /* vectors whose blocks have the same remainder by count / some */
    for (uint32_t some = count; some > 1; some /= 2) {
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t from = i / some * some + i % (some / 2) * 2;
            next[i] = every_other(f, v[from * apart], v[(from + 1) * apart], size, i % some >= some / 2);
        }
        for (uint32_t i = 0; i < count; i++)
            v[i * apart] = next[i];
    }
    for (uint32_t i = 0; i < count; i++) { /* they are in the order of the bits of their numbers, backwards */
        uint32_t turned = 0;
        for (uint32_t bit = 1; bit < count; bit *= 2)
            turned = 2 * turned + (i & bit ? 1 : 0);
        next[turned] = v[i * apart];
    }
    for (uint32_t i = 0; i < count; i++)
        v[i * apart] = next[i];
}

void opjit_cg_transpose_square(cg_func *f, LLVMValueRef *v)
{
    /* what shuffles work in everywhere */
    const uint32_t lanes = opjit_cg_lanes(v[0]), unit = 128 / opjit_cg_bits(v[0]);
    const uint32_t size = unit < lanes ? unit : lanes;
    for (uint32_t i = 0; i < lanes; i += size)
        opjit_cg_transpose_squares(f, v + i, size);
    for (uint32_t i = 0; i < size; i++)
        transpose_blocks(f, v + i, size, size);
}

LLVMValueRef opjit_cg_pick(cg_func *f, LLVMValueRef *parts, const uint32_t *starts, uint32_t step, uint32_t first)
{
    const uint32_t lanes = opjit_cg_lanes(parts[0]);
    LLVMValueRef v = NULL;
    uint32_t places[CG_MAX_LANES], done = 0;
    for (uint32_t k = 0; k < step; k += 2) { /* two parts at a time, then what remains */
        LLVMValueRef a = parts[k], b = k + 1 < step ? parts[k + 1] : parts[k];
        uint32_t end = done;
        for (; end < lanes && (k + 2 >= step || first + end * step < starts[k + 2]); end++) {
            const uint32_t at = first + end * step;
            places[end] = k + 1 < step && at >= starts[k + 1] ? lanes + at - starts[k + 1] : at - starts[k];
        }
        for (uint32_t i = 0; i < lanes; i++)
            places[i] = i >= done && i < end ? places[i] : UINT32_MAX;
        LLVMValueRef here = permute(f, a, b, places, lanes);
        for (uint32_t i = 0; i < lanes; i++)
            places[i] = i < done ? i : lanes + i;
        v = v ? permute(f, v, here, places, lanes) : here;
        done = end;
    }
    return v;
}

LLVMValueRef opjit_cg_zip(cg_func *f, LLVMValueRef *v, uint32_t count)
{
    uint32_t places[CG_MAX_LANES];
    for (; count > 1; count /= 2) {
        const uint32_t lanes = opjit_cg_lanes(v[0]);
        for (uint32_t i = 0; i < 2 * lanes; i++)
            places[i] = i / 2 + (i % 2 ? lanes : 0);
        for (uint32_t i = 0; i < count / 2; i++)
            v[i] = opjit_cg_shuffle(f, v[i], v[i + count / 2], places, 2 * lanes);
    }
    return v[0];
}
