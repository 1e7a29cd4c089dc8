/* SPDX-License-Identifier: Apache-2.0 */
/* constants.c - the tables of a module that is being written: its constants, symbols, and what refers to them. */
#include "codegen/direct/module.h"

#include <string.h>

enum { FIRST_ROOM = 64, FIRST_POOL = 256 };

static void *grow(dx_module *m, void *array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return array;
    const uint32_t more = *room > 0 ? 2 * *room : FIRST_ROOM;
    void *larger = opjit_rt_arena_allocate(m->arena, more, size);
    m->failed = m->failed || !larger;
    if (!larger)
        return NULL;
    if (count > 0)
        memcpy(larger, array, count * size);
    *room = more;
    return larger;
}

void opjit_dx_fix(dx_module *m, uint64_t place, uint32_t symbol, int64_t addend)
{
    dx_fix *fixes = grow(m, m->fixes, m->fix_count, &m->fix_room, sizeof *fixes);
    if (!fixes)
        return;
    m->fixes = fixes;
    fixes[m->fix_count++] = (dx_fix){ place, symbol, addend };
}

/* --- constants ---------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const uint8_t *bytes, uint32_t size)
{
    uint64_t hash = 0xcbf29ce484222325u + size;
    for (uint32_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

static bool make_pool(dx_module *m)
{
    const uint32_t old_room = m->pool_room, room = old_room ? 2 * old_room : FIRST_POOL;
    uint32_t *old = m->pool, *old_size = m->pool_size;
    uint32_t *at = ARENA_ARRAY(m->arena, uint32_t, room), *size = ARENA_ARRAY(m->arena, uint32_t, room);
    m->failed = m->failed || !at || !size;
    if (!at || !size)
        return false;
    for (uint32_t i = 0; i < old_room; i++) {
        if (!old[i])
            continue;
        uint32_t k = (uint32_t)hash_of(m->data.data + old[i] - 1, old_size[i]) & (room - 1);
        while (at[k])
            k = (k + 1) & (room - 1);
        at[k] = old[i];
        size[k] = old_size[i];
    }
    m->pool = at;
    m->pool_size = size;
    m->pool_room = room;
    return true;
}

uint32_t opjit_dx_pool(dx_module *m, const void *bytes, uint32_t size)
{
    if (2 * (m->pool_count + 1) > m->pool_room && !make_pool(m))
        return 0;
    uint32_t i = (uint32_t)hash_of(bytes, size) & (m->pool_room - 1);
    while (m->pool[i] && (m->pool_size[i] != size || memcmp(m->data.data + m->pool[i] - 1, bytes, size) != 0))
        i = (i + 1) & (m->pool_room - 1);
    if (!m->pool[i]) {
        opjit_rt_bytes_align(&m->data, size >= DX_DATA_ALIGN ? DX_DATA_ALIGN : size >= 16 ? size : 16);
        const uint32_t place = (uint32_t)m->data.size;
        opjit_rt_bytes_append(&m->data, bytes, size);
        m->failed = m->failed || m->data.failed;
        if (m->failed)
            return 0;
        m->pool[i] = place + 1;
        m->pool_size[i] = size;
        m->pool_count++;
    }
    return m->pool[i] - 1;
}

/* --- symbols ------------------------------------------------------------------------------------------------------ */

uint32_t opjit_dx_symbol(dx_module *m, LLVMValueRef v)
{
    for (uint32_t i = m->symbol_count; i-- > 0;)
        if (m->symbols[i].of == v)
            return i;
    return UINT32_MAX;
}

static dx_symbol *add_symbol(dx_module *m, LLVMValueRef v)
{
    size_t length;
    dx_symbol *symbols = grow(m, m->symbols, m->symbol_count, &m->symbol_room, sizeof *symbols);
    if (!symbols)
        return NULL;
    m->symbols = symbols;
    const LLVMLinkage linkage = LLVMGetLinkage(v);
    symbols[m->symbol_count] =
        (dx_symbol){ .of = v,
                     .name = LLVMGetValueName2(v, &length),
                     .internal = linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage };
    return &symbols[m->symbol_count++];
}

/* The bytes of a constant of any shape, appended; false: unknown. */
static bool put_constant(dx_module *m, LLVMValueRef c, uint32_t depth)
{
    LLVMTypeRef type = LLVMTypeOf(c);
    const LLVMTypeKind kind = LLVMGetTypeKind(type);
    size_t size = 0;
    if (depth > 4)
        return false;
    if (LLVMIsAConstantDataArray(c) || LLVMIsAConstantDataVector(c)) {
        const char *bytes = LLVMGetRawDataValues(c, &size);
        opjit_rt_bytes_append(&m->data, bytes, size);
        return true;
    }
    if (LLVMIsAConstantInt(c) && kind == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) % 8 == 0 &&
        LLVMGetIntTypeWidth(type) <= 64) {
        const uint64_t bits = LLVMConstIntGetZExtValue(c);
        opjit_rt_bytes_append(&m->data, &bits, LLVMGetIntTypeWidth(type) / 8);
        return true;
    }
    if (kind == LLVMArrayTypeKind || kind == LLVMVectorTypeKind) {
        const uint64_t count = kind == LLVMArrayTypeKind ? LLVMGetArrayLength2(type) : LLVMGetVectorSize(type);
        for (uint64_t i = 0; i < count; i++) {
            LLVMValueRef e = LLVMGetAggregateElement(c, (unsigned)i);
            if (!e || !put_constant(m, e, depth + 1))
                return false;
        }
        return true;
    }
    if (LLVMIsNull(c) && (kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind)) {
        const uint64_t zero = 0;
        opjit_rt_bytes_append(&m->data, &zero, kind == LLVMFloatTypeKind ? 4 : 8);
        return true;
    }
    return false;
}

bool opjit_dx_globals(dx_module *m, LLVMModuleRef module)
{
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        dx_symbol *s = add_symbol(m, g);
        if (!s || !LLVMGetInitializer(g) || !LLVMIsGlobalConstant(g) || !s->internal ||
            LLVMGetAlignment(g) > DX_DATA_ALIGN)
            return false;
        opjit_rt_bytes_align(&m->data, DX_DATA_ALIGN);
        s->begin = m->data.size;
        s->defined = true;
        if (!put_constant(m, LLVMGetInitializer(g), 0) || m->data.failed)
            return false;
        s->size = m->data.size - s->begin;
    }
    return true;
}

bool opjit_dx_functions(dx_module *m, LLVMModuleRef module)
{
    for (LLVMValueRef fn = LLVMGetFirstFunction(module); fn; fn = LLVMGetNextFunction(fn)) {
        dx_symbol *s = add_symbol(m, fn);
        if (!s)
            return false;
        s->function = true;
        s->defined = !LLVMIsDeclaration(fn);
    }
    return LLVMGetFirstGlobalAlias(module) == NULL && LLVMGetFirstGlobalIFunc(module) == NULL;
}
