/* SPDX-License-Identifier: Apache-2.0 */
/* object_code.c - extracts the code of an object, and the offset of each stage's function in it. */
#include "codegen/driver/driver.h"

#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct search {
    const codegen_request *request;
    const cg_stages *stages;
    uint64_t *entries;
    opjit_error *error;
} search;

/* Accepts NAME_v<variant>_s<stage>; other functions of the module are internal. */
static opjit_status take_entry(void *user, const cg_symbol *symbol)
{
    const search *s = user;
    const uint32_t *firsts = s->stages->variants;
    const size_t length = strlen(s->request->name);
    char *end = NULL;
    if (strncmp(symbol->name, s->request->name, length) != 0 || strncmp(symbol->name + length, "_v", 2) != 0)
        return OPJIT_OK;
    const unsigned long variant = strtoul(symbol->name + length + 2, &end, 10);
    const unsigned long stage = strncmp(end, "_s", 2) == 0 ? strtoul(end + 2, &end, 10) : ULONG_MAX;
    if (*end != '\0' || variant >= s->stages->variant_count || stage >= firsts[variant + 1] - firsts[variant])
        return OPJIT_OK;
    if (symbol->type != STT_FUNC)
        return opjit_rt_refuse(s->error, OPJIT_CODEGEN, "{!object}{symbol} {%s} is no function of the code",
                               symbol->name);
    s->entries[firsts[variant] + stage] = symbol->value;
    return OPJIT_OK;
}

opjit_status opjit_cg_end_entries(const cg_stages *stages, codegen_result *out, opjit_error *error)
{
    for (uint32_t i = 0; i < stages->count; i++) {
        out->entries[i] = out->entries[stages->at[i].same - stages->at]; /* which is this one, or an earlier one */
        if (out->entries[i] == UINT64_MAX)
            return opjit_rt_refuse(error, OPJIT_CODEGEN, "{!object}{stage} {%u} is missing from the code", i);
    }
    return OPJIT_OK;
}

opjit_status opjit_cg_code(const codegen_request *request, const cg_stages *stages, const void *object, size_t size,
                           const cg_outside *outside, codegen_result *out, opjit_error *error)
{
    search s = { request, stages, out->entries, error };
    TRY(opjit_cg_link(object, size, outside, &out->bytes, error));
    return opjit_cg_link_symbols(object, size, take_entry, &s, error);
}
