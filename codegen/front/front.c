/* SPDX-License-Identifier: Apache-2.0 */
/* front.c - the exported function of libopjit-codegen.so and its table: requests that can do without LLVM's backend are
 * answered here, all others by libopjit-codegen-llvm.so, which lies beside it and is loaded when the first of them
 * comes.  From then on it gets them all, as it can do everything that this one can. */
#include "codegen/driver/driver.h"
#include "codegen/front/front.h"
#include "runtime/base/module.h"

#include <opjit/opjit.h>

#include <string.h>

#include "opjit_build_id.h"

static const opjit_codegen *_Atomic whole; /* NULL: it is not loaded */

static opjit_status load(const opjit_codegen **out, opjit_error *error)
{
    static const rt_module module = { "codegen", "libopjit-codegen-llvm.so", "opjit_codegen_query", NULL,
                                      "it is installed beside libopjit-codegen.so" };
    char path[RT_MODULE_PATH];
    opjit_codegen_query_fn query;
    void *symbol;
    bool fresh;
    *out = atomic_load(&whole);
    if (*out)
        return OPJIT_OK;
    TRY(opjit_rt_module_load(&module, NULL, &symbol, &fresh, path, error));
    memcpy(&query, &symbol, sizeof query); /* C has no cast from object to function pointers */
    const opjit_codegen *table = query(CODEGEN_ABI);
    if (!table || table->size < sizeof *table || strcmp(table->build_id, OPJIT_BUILD_ID) != 0)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                               "{!codegen library}{!path}{%s}: is of another build than the library beside it", path);
    atomic_store(&whole, table);
    *out = table;
    return OPJIT_OK;
}

/* Whether the request most likely needs no backend. */
static bool is_for_this(const codegen_request *r)
{
    const bool code = r->emit == CODEGEN_CODE && r->level == OPJIT_LEVEL_QUICK && !r->verify && !r->llvm_only;
    return !atomic_load(&whole) && !r->kernel && (r->emit == CODEGEN_PLAN || (code && opjit_cg_writes(r->target)));
}

static opjit_status compile(const codegen_request *request, codegen_result *out, opjit_error *error)
{
    const opjit_codegen *table;
    if (is_for_this(request)) {
        const unsigned before = atomic_load(&opjit_cg_wanted);
        opjit_error reason = { 0 };
        const opjit_status status = opjit_cg_compile(request, out, &reason);
        if (status == OPJIT_OK || status == OPJIT_CANCELLED || atomic_load(&opjit_cg_wanted) == before) {
            if (status != OPJIT_OK)
                opjit_rt_error_copy(error, &reason);
            return status;
        }
        opjit_rt_bytes_free(&out->bytes);
        opjit_rt_release(request->allocator, out->entries, out->entry_count * sizeof *out->entries);
    }
    *out = (codegen_result){ .entries = NULL };
    opjit_rt_bytes_init(&out->bytes, request->allocator);
    TRY(load(&table, error));
    return table->compile(request, out, error);
}

static opjit_status warm(const rt_target *target, const opjit_allocator *allocator, opjit_error *error)
{
    const opjit_codegen *table;
    if (opjit_cg_writes(target) && !atomic_load(&whole))
        return opjit_cg_warm(target, allocator, error);
    TRY(load(&table, error));
    return table->warm(target, allocator, error);
}

static opjit_status library(const codegen_library *request, rt_bytes *out, opjit_error *error)
{
    const opjit_codegen *table;
    TRY(load(&table, error));
    return table->library(request, out, error);
}

static const opjit_codegen front = CODEGEN_TABLE(compile, warm, library);

const opjit_codegen *opjit_codegen_query(uint32_t abi)
{
    return abi == CODEGEN_ABI ? &front : NULL;
}
