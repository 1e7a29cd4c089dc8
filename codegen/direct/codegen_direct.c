/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_direct.c - all functions of a module, one after the other, with its constants and the bytes of its tiles. */
#include "codegen/direct/codegen_direct.h"

#include "codegen/direct.h"

enum { AVX2_BYTES = 32 };

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* A tile's bytes (driver/tile_code.c). */
static bool put_bytes(dx_module *m, dx_symbol *s, LLVMValueRef data)
{
    size_t size = 0;
    if (!LLVMIsAConstantDataArray(data))
        return false;
    const char *bytes = LLVMGetRawDataValues(data, &size);
    opjit_cg_x86_align(&m->code, DX_DATA_ALIGN);
    s->begin = m->code.size;
    opjit_rt_bytes_append(&m->code, bytes, size);
    s->size = size;
    return LLVMGetAlignment(s->of) <= DX_DATA_ALIGN;
}

static const char *put_function(dx_module *m, uint32_t symbol, const rt_target *target, rt_arena *arena)
{
    dx_func f = { .m = m, .target = target, .arena = arena, .fn = m->symbols[symbol].of };
    f.wide = rt_target_has_avx512(target) && rt_target_has(target, RT_X86_AVX512DQ);
    f.bytes = f.wide || target->vector_bytes < AVX2_BYTES ? target->vector_bytes : AVX2_BYTES;
    opjit_dx_read(&f);
    if (!f.refused)
        opjit_dx_live(&f);
    if (!f.refused)
        opjit_dx_allocate(&f);
    if (f.refused)
        return f.why;
    opjit_cg_x86_align(&m->code, DX_CODE_ALIGN);
    m->symbols[symbol].begin = m->code.size;
    opjit_dx_write(&f);
    m->symbols[symbol].size = m->code.size - m->symbols[symbol].begin;
    return f.refused ? f.why : NULL;
}

static cg_refusal put_functions(dx_module *m, const rt_target *target, const opjit_allocator *allocator)
{
    rt_arena arena;
    const char *why = NULL;
    cg_refusal out = { .function = "" };
    opjit_rt_arena_init(&arena, allocator);
    for (uint32_t i = 0; i < m->symbol_count && !why; i++) {
        dx_symbol *s = &m->symbols[i];
        out.function = s->name;
        if (!s->function || !s->defined)
            continue;
        if (LLVMHasPrologueData(s->of)) {
            if (!put_bytes(m, s, LLVMGetPrologueData(s->of)))
                why = "tile";
            continue;
        }
        const rt_arena_mark mark = rt_arena_position(&arena);
        why = put_function(m, i, target, &arena);
        opjit_rt_arena_rewind(&arena, mark);
    }
    opjit_rt_arena_free(&arena);
    out.why = why;
    return out;
}

bool opjit_cg_direct_knows(const rt_target *target)
{
    enum { LEAST_LEVEL = 3 };
    return target->arch == RT_ARCH_X86_64 && target->level >= LEAST_LEVEL;
}

bool opjit_cg_direct(LLVMModuleRef module, const rt_target *target, const opjit_allocator *allocator, rt_bytes *object,
                     cg_refusal *refusal)
{
    rt_arena arena;
    dx_module m = { .arena = &arena };
    *refusal = (cg_refusal){ .function = "" };
    if (!opjit_cg_direct_knows(target))
        refusal->why = "target";
    opjit_rt_arena_init(&arena, allocator);
    opjit_rt_bytes_init(&m.code, allocator);
    opjit_rt_bytes_init(&m.data, allocator);
    if (!refusal->why && (!opjit_dx_globals(&m, module) || !opjit_dx_functions(&m, module)))
        refusal->why = "global";
    if (!refusal->why)
        *refusal = put_functions(&m, target, allocator);
    if (!refusal->why && !m.failed)
        opjit_dx_object(&m, object);
    if (m.failed || m.code.failed || m.data.failed || object->failed)
        refusal->why = CG_DIRECT_NO_MEMORY;
    opjit_rt_bytes_free(&m.code);
    opjit_rt_bytes_free(&m.data);
    opjit_rt_arena_free(&arena);
    if (refusal->why)
        opjit_rt_bytes_free(object);
    return !refusal->why;
}
