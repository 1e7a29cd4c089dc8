/* SPDX-License-Identifier: Apache-2.0 */
/* tile_code.c - the code of tiles (hold/hold.h).  A tile needs LLVM's default level, whose register allocator keeps its
 * registers, and takes longer to compile than the rest of its kernel at quick.  So it is a module of its own, and its
 * code, which refers to nothing, becomes the function's bytes in the module that calls it.  The latest ones are kept
 * for the process: kernels of other shapes have equal tiles. */
#include "codegen/driver/driver.h"

#include <opjit/opjit.h>

#include <llvm-c/Analysis.h>
#include <pthread.h>
#include <string.h>

enum { MOST_KEPT = 64, MOST_BYTES = 8192 /* larger ones are compiled each time */ };

/* The alignment that code needs: a line; a page if constants follow its instructions, because code for AArch64
 * addresses them by their place in a page. */
enum { LINE = 64, PAGE = 4096 };
typedef struct flat {
    rt_bytes bytes;
    uint32_t align;
} flat;

/* --- kept code ---------------------------------------------------------------------------------------------------- */

/* Static memory, so nothing is left to free at the process's end; pages that no tile has reached are not mapped. */
typedef struct kept {
    rt_hash hash;
    uint32_t size, align; /* size 0: none */
    uint8_t code[MOST_BYTES];
} kept;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kept table[MOST_KEPT];
static uint32_t next_kept; /* the oldest one's place */

/* Sets *out, which is empty; false: it isn't kept.  The caller's allocator is not called under the lock. */
static bool recall(const rt_hash *hash, flat *out)
{
    uint8_t code[MOST_BYTES];
    uint32_t i = 0, size = 0;
    pthread_mutex_lock(&lock);
    while (i < MOST_KEPT && (table[i].size == 0 || memcmp(&table[i].hash, hash, sizeof *hash) != 0))
        i++;
    if (i < MOST_KEPT) {
        size = table[i].size;
        memcpy(code, table[i].code, size);
        out->align = table[i].align;
    }
    pthread_mutex_unlock(&lock);
    opjit_rt_bytes_append(&out->bytes, code, size);
    return size > 0;
}

static void keep(const rt_hash *hash, const flat *code)
{
    if (code->bytes.size > MOST_BYTES)
        return;
    pthread_mutex_lock(&lock);
    kept *k = &table[next_kept];
    next_kept = (next_kept + 1) % MOST_KEPT;
    k->hash = *hash;
    k->size = (uint32_t)code->bytes.size;
    k->align = code->align;
    memcpy(k->code, code->bytes.data, code->bytes.size);
    pthread_mutex_unlock(&lock);
}

/* --- a module of its own ------------------------------------------------------------------------------------------ */

static opjit_status note_size(void *user, const cg_symbol *symbol)
{
    *(uint64_t *)user = symbol->size;
    return OPJIT_OK;
}

static opjit_status build(cg_llvm *m, const cg_target *cpu, const cg_tile_made *tile, const codegen_request *request,
                          rt_arena *arena, opjit_error *error)
{
    cg_func f = opjit_cg_llvm_function(m, cpu, tile->target);
    char *text = NULL;
    f.arena = arena;
    f.error = error;
    f.peak = true;
    f.piece = &f.root;
    f.fn = LLVMAddFunction(m->module, "tile", LLVMFunctionType(f.type.none, &f.type.ptr, 1, 0));
    opjit_cg_attributes(&f, f.fn);
    opjit_cg_tile_body(&f, &tile->tile);
    if (f.failed)
        return opjit_rt_no_memory(error);
    const bool broken = request->verify && LLVMVerifyModule(m->module, LLVMReturnStatusAction, &text);
    return opjit_cg_llvm_status(m, broken, "LLVM's verifier", text, error);
}

/* Sets *out, which is empty, to the tile's code. */
static opjit_status compile(const cg_tile_made *tile, const cg_target *cpu, const codegen_request *request,
                            flat *out, opjit_error *error)
{
    cg_llvm m = { .machine = NULL };
    rt_arena arena;
    uint64_t size = 0;
    opjit_rt_arena_init(&arena, request->allocator);
    opjit_status status = opjit_cg_llvm_open(&m, cpu, tile->target, OPJIT_LEVEL_PEAK, "tile", error);
    if (status == OPJIT_OK)
        status = build(&m, cpu, tile, request, &arena, error);
    if (status == OPJIT_OK)
        status = opjit_cg_llvm_emit(&m, cpu, LLVMObjectFile, error);
    if (status == OPJIT_OK) {
        const uint8_t *object = (const uint8_t *)LLVMGetBufferStart(m.object);
        const size_t bytes = LLVMGetBufferSize(m.object);
        status = opjit_cg_link(object, bytes, &out->bytes, error);
        if (status == OPJIT_OK)
            status = opjit_cg_link_symbols(object, bytes, note_size, &size, error);
    }
    out->align = size == out->bytes.size ? LINE : PAGE;
    opjit_cg_llvm_close(&m, cpu);
    opjit_rt_arena_free(&arena);
    return status;
}

/* --- in the module that calls it ---------------------------------------------------------------------------------- */

static opjit_status put_tile(const cg_tile_made *tile, cg_llvm *m, const cg_target *cpu, const codegen_request *request,
                             opjit_error *error)
{
    opjit_status status = OPJIT_OK;
    flat code = { .align = LINE };
    opjit_rt_bytes_init(&code.bytes, request->allocator);
    if (!recall(&tile->hash, &code)) {
        status = compile(tile, cpu, request, &code, error);
        if (status == OPJIT_OK && !code.bytes.failed)
            keep(&tile->hash, &code);
    }
    if (status == OPJIT_OK && code.bytes.failed)
        status = opjit_rt_no_memory(error);
    if (status == OPJIT_OK) {
        cg_func f = opjit_cg_llvm_function(m, cpu, tile->target);
        LLVMValueRef bytes = LLVMConstStringInContext2(m->context, (const char *)code.bytes.data, code.bytes.size, 1);
        opjit_cg_attributes(&f, tile->fn);
        LLVMSetLinkage(tile->fn, LLVMInternalLinkage);
        LLVMSetAlignment(tile->fn, code.align);
        LLVMSetPrologueData(tile->fn, bytes);
        LLVMPositionBuilderAtEnd(m->b, LLVMAppendBasicBlockInContext(m->context, tile->fn, ""));
        LLVMBuildUnreachable(m->b); /* the bytes return */
    }
    opjit_rt_bytes_free(&code.bytes);
    return status;
}

opjit_status opjit_cg_put_tiles(const cg_tiles *tiles, cg_llvm *m, const cg_target *cpu, const codegen_request *request,
                                opjit_error *error)
{
    for (const cg_tile_made *tile = tiles->first; tile; tile = tile->next) {
        TRY(opjit_cg_check_cancelled(request, error));
        TRY(put_tile(tile, m, cpu, request, error));
    }
    return OPJIT_OK;
}
