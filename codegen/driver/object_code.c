/* SPDX-License-Identifier: Apache-2.0 */
/* object_code.c - extracts the code of an object, and the offset of each stage's function in it. */
#include "codegen/driver/driver.h"

#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct search {
    const codegen_request *request;
    const uint32_t *firsts; /* entry of each variant's first stage, and one more */
    uint64_t *entries;
    opjit_error *error;
} search;

/* Accepts NAME_v<variant>_s<stage>; other functions of the module are internal. */
static opjit_status take_entry(void *user, const cg_symbol *symbol)
{
    const search *s = user;
    const size_t length = strlen(s->request->name);
    char *end = NULL;
    if (strncmp(symbol->name, s->request->name, length) != 0 || strncmp(symbol->name + length, "_v", 2) != 0)
        return OPJIT_OK;
    const unsigned long variant = strtoul(symbol->name + length + 2, &end, 10);
    const unsigned long stage = strncmp(end, "_s", 2) == 0 ? strtoul(end + 2, &end, 10) : ULONG_MAX;
    if (*end != '\0' || variant >= s->request->variant_count || stage >= s->firsts[variant + 1] - s->firsts[variant])
        return OPJIT_OK;
    if (symbol->type != STT_FUNC)
        return opjit_rt_refuse(s->error, OPJIT_CODEGEN, "{!object}{symbol} {%s} is no function of the code",
                               symbol->name);
    s->entries[s->firsts[variant] + stage] = symbol->value;
    return OPJIT_OK;
}

static opjit_status find_entries(const codegen_request *request, const cg_shared *stages, rt_arena *arena,
                                 const uint8_t *object, size_t size, uint64_t *entries, opjit_error *error)
{
    uint32_t *firsts = ARENA_ARRAY(arena, uint32_t, (size_t)request->variant_count + 1);
    if (!firsts)
        return opjit_rt_no_memory(error);
    for (uint32_t v = 0; v < request->variant_count; v++) {
        firsts[v + 1] = firsts[v];
        for (ir_ref s = request->variants[v]->body; s != 0; s = ir_at(request->variants[v], s)->next)
            firsts[v + 1]++;
    }
    for (uint32_t i = 0; i < stages->count; i++)
        entries[i] = UINT64_MAX;
    search s = { request, firsts, entries, error };
    TRY(opjit_cg_link_symbols(object, size, take_entry, &s, error));
    for (uint32_t i = 0; i < stages->count; i++)
        entries[i] = entries[stages->same[i]]; /* which is this one, or an earlier one */
    return OPJIT_OK;
}

opjit_status opjit_cg_check_entries(const codegen_result *code, opjit_error *error)
{
    for (uint32_t i = 0; i < code->entry_count; i++)
        if (code->entries[i] == UINT64_MAX)
            return opjit_rt_refuse(error, OPJIT_CODEGEN, "{!object}{stage} {%u} is missing from the code", i);
    return OPJIT_OK;
}

opjit_status opjit_cg_code(const codegen_request *request, const cg_shared *stages, rt_arena *arena,
                           const void *object, size_t size, codegen_result *out, opjit_error *error)
{
    TRY(opjit_cg_link(object, size, &out->bytes, error));
    out->entry_count = stages->count;
    out->entries = opjit_rt_allocate(request->allocator, out->entry_count * sizeof(uint64_t), sizeof(uint64_t));
    return out->entries ? find_entries(request, stages, arena, object, size, out->entries, error)
                        : opjit_rt_no_memory(error);
}
