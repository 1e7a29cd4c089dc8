/* SPDX-License-Identifier: Apache-2.0 */
/* tile_code.c - the code of tiles and of mathematical functions (hold/hold.h).  Some targets write most of their tiles
 * without LLVM.  By LLVM, a tile needs its level less, whose register allocator keeps its registers, and takes longer
 * to compile than the rest of its kernel at quick.  So the tiles of a module are a module of their own, and their code,
 * which refers to nothing, becomes the functions' bytes in the module that calls them; that of large kernels, which are
 * several modules, has a place of its own (tile_set.c).  Functions have constants behind their instructions, so each is
 * a module.  What is compiled is kept (kept_code.h): kernels of other shapes have equal tiles. */
#include "codegen/direct/codegen_direct.h"
#include "codegen/driver/tiles.h"

#include <opjit/opjit.h>

#include <llvm-c/Analysis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a module of tiles -------------------------------------------------------------------------------------------- */

/* A batch on its way. */
typedef struct batch {
    const cg_tile_batch *tiles;
    uint64_t begin[CG_TILES_TOGETHER], end[CG_TILES_TOGETHER]; /* in the module's code */
} batch;

static opjit_status note_place(void *user, const cg_symbol *symbol)
{
    batch *b = user;
    const unsigned long i = strtoul(symbol->name + strlen("tile"), NULL, 10);
    if (i < b->tiles->count) {
        b->begin[i] = symbol->value;
        b->end[i] = symbol->value + symbol->size;
    }
    return OPJIT_OK;
}

/* f->entry is in front of what f->b makes. */
static void begin_body(cg_func *f)
{
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMPositionBuilderAtEnd(f->b, entry);
    LLVMPositionBuilderBefore(f->entry, LLVMBuildBr(f->b, start));
    LLVMPositionBuilderAtEnd(f->b, start);
}

/* Each begins at a line, as it does where it is alone, so that it has the same bytes. */
static opjit_status build(cg_llvm *m, const cg_tile_batch *b, rt_arena *arena, opjit_error *error)
{
    char name[16], *text = NULL;
    for (uint32_t i = 0; i < b->count; i++) {
        TRY(opjit_cg_check_cancelled(b->request, error));
        cg_func f = opjit_cg_llvm_function(m, b->cpu, b->tile[i]->target);
        f.arena = arena;
        f.error = error;
        f.peak = true;
        f.piece = &f.root;
        snprintf(name, sizeof(name), "tile%u", i);
        const cg_made *made = b->tile[i];
        f.fn = LLVMAddFunction(m->module, name,
                               made->tile ? LLVMFunctionType(f.type.none, &f.type.ptr, 1, 0)
                                          : opjit_cg_math_type(&f, &made->math));
        LLVMSetAlignment(f.fn, CG_LINE);
        opjit_cg_attributes(&f, f.fn);
        begin_body(&f);
        if (made->tile)
            opjit_cg_tile_body(&f, made->tile);
        else if (made->math.op == IR_ACC)
            opjit_cg_fold_body(&f, &made->math);
        else
            opjit_cg_math_body(&f, &made->math);
        if (f.failed)
            return opjit_rt_no_memory(error);
    }
    const bool broken = b->request->verify && LLVMVerifyModule(m->module, LLVMReturnStatusAction, &text);
    return opjit_cg_llvm_status(m, broken, "LLVM's verifier", text, error);
}

/* Takes each tile's code out of the module's, unless it has constants, which follow all code, and others beside it. */
static opjit_status take(const uint8_t *object, size_t size, const cg_tile_batch *tiles, opjit_error *error)
{
    batch b = { .tiles = tiles };
    rt_bytes all;
    opjit_rt_bytes_init(&all, tiles->request->allocator);
    opjit_status status = opjit_cg_link(object, size, NULL, &all, error);
    if (status == OPJIT_OK)
        status = opjit_cg_link_symbols(object, size, note_place, &b, error);
    for (uint32_t i = 0; i < tiles->count && status == OPJIT_OK; i++) {
        bool refers = false;
        status = opjit_cg_check_cancelled(tiles->request, error);
        if (status == OPJIT_OK)
            status = opjit_cg_link_refers(object, size, b.begin[i], b.end[i], &refers, error);
        if (status != OPJIT_OK || (refers && tiles->count > 1))
            continue;
        const uint64_t end = refers ? all.size : b.end[i];
        opjit_rt_bytes_append(&tiles->code[i]->bytes, all.data + b.begin[i], end - b.begin[i]);
        tiles->code[i]->align = refers && tiles->cpu->by_page ? CG_PAGE : CG_LINE;
    }
    opjit_rt_bytes_free(&all);
    return status;
}

/* Mathematical functions without LLVM's backend, as far as that knows what is in them. */
static bool emit_directly(const cg_llvm *m, const cg_tile_batch *b, rt_bytes *object,
                          cg_refusal *refusal)
{
    *refusal = (cg_refusal){ .why = "" };
    return !b->tile[0]->tile && !b->request->llvm_only &&
           opjit_cg_direct(m->module, b->tile[0]->target, b->request->allocator, object, refusal);
}

static opjit_status emit(cg_llvm *m, const cg_tile_batch *b, opjit_error *error)
{
    cg_refusal refusal;
    rt_bytes object;
    opjit_rt_bytes_init(&object, b->request->allocator);
    opjit_status status = OPJIT_OK;
    if (emit_directly(m, b, &object, &refusal))
        status = take(object.data, object.size, b, error);
    else if (strcmp(refusal.why, CG_DIRECT_NO_MEMORY) == 0)
        status = opjit_rt_no_memory(error);
    else
        status = opjit_cg_llvm_emit(m, LLVMObjectFile, error);
    if (status == OPJIT_OK && m->object)
        status = take((const uint8_t *)LLVMGetBufferStart(m->object), LLVMGetBufferSize(m->object), b, error);
    opjit_rt_bytes_free(&object);
    return status;
}

static opjit_status compile_batch(const cg_tile_batch *b, opjit_error *error)
{
    cg_llvm m = { .machine = NULL };
    rt_arena arena;
    TRY(opjit_cg_check_cancelled(b->request, error));
    opjit_rt_arena_init(&arena, b->request->allocator);
    opjit_status status = opjit_cg_llvm_open(&m, b->cpu, b->tile[0]->target, CG_LEVEL_TILE, "tiles", error);
    if (status == OPJIT_OK)
        status = build(&m, b, &arena, error);
    if (status == OPJIT_OK)
        status = emit(&m, b, error);
    opjit_cg_llvm_close(&m);
    opjit_rt_arena_free(&arena);
    return status;
}

bool opjit_cg_tiles_fit(const cg_made *a, const cg_made *b)
{
    return a->tile && b->tile && a->target == b->target; /* math has constants */
}

/* False: it is LLVM's. */
static bool write_tile(const cg_tile_batch *b, const cg_made *made, rt_arena *arena, cg_flat *code)
{
    const rt_arena_mark mark = rt_arena_position(arena);
    const bool written = b->cpu->tile && made->tile && b->cpu->tile(made->target, made->tile, arena, &code->bytes);
    opjit_rt_arena_rewind(arena, mark);
    code->align = CG_LINE;
    return written;
}

/* Tiles that the target writes itself leave the batch. */
static opjit_status write_tiles(cg_tile_batch *b, opjit_error *error)
{
    opjit_status status = OPJIT_OK;
    uint32_t left = 0;
    rt_arena arena;
    opjit_rt_arena_init(&arena, b->request->allocator);
    for (uint32_t i = 0; i < b->count && status == OPJIT_OK; i++) {
        status = opjit_cg_check_cancelled(b->request, error);
        const bool written = status == OPJIT_OK && write_tile(b, b->tile[i], &arena, b->code[i]);
        if (b->code[i]->bytes.failed)
            status = opjit_rt_no_memory(error);
        else if (written)
            opjit_cg_code_keep(b->tile[i], b->request, b->code[i]);
        b->tile[left] = b->tile[i];
        b->code[left] = b->code[i];
        left += !written;
    }
    b->count = left;
    opjit_rt_arena_free(&arena);
    return status;
}

/* Those with constants once more, each by itself. */
opjit_status opjit_cg_tiles_compile(cg_tile_batch *b, opjit_error *error)
{
    opjit_status status = write_tiles(b, error);
    if (status == OPJIT_OK && b->count > 0)
        status = compile_batch(b, error);
    for (uint32_t i = 0; i < b->count && status == OPJIT_OK; i++) {
        cg_tile_batch one = { b->request, b->cpu, .tile = { b->tile[i] }, .code = { b->code[i] }, .count = 1 };
        if (b->code[i]->bytes.size == 0 && !b->code[i]->bytes.failed)
            status = compile_batch(&one, error);
        if (b->code[i]->bytes.failed)
            status = opjit_rt_no_memory(error);
        else if (status == OPJIT_OK)
            opjit_cg_code_keep(b->tile[i], b->request, b->code[i]);
    }
    b->count = 0;
    return status;
}

/* --- in the module that calls them -------------------------------------------------------------------------------- */

static void put_tile(const cg_made *tile, const cg_flat *code, const cg_llvm *m, const cg_target *cpu)
{
    cg_func f = opjit_cg_llvm_function(m, cpu, tile->target);
    LLVMValueRef bytes = LLVMConstStringInContext2(m->context, (const char *)code->bytes.data, code->bytes.size, 1);
    opjit_cg_attributes(&f, tile->fn);
    LLVMSetLinkage(tile->fn, LLVMInternalLinkage);
    LLVMSetAlignment(tile->fn, code->align);
    LLVMSetPrologueData(tile->fn, bytes);
    LLVMPositionBuilderAtEnd(m->b, LLVMAppendBasicBlockInContext(m->context, tile->fn, ""));
    LLVMBuildUnreachable(m->b); /* the bytes return */
}

/* Each tile's code: what is kept, the rest compiled together as far as it can be. */
static opjit_status find_code(const cg_tiles *tiles, cg_flat *code, cg_tile_batch *b, opjit_error *error)
{
    uint32_t i = 0;
    for (const cg_made *tile = tiles->first; tile; tile = tile->next, i++) {
        if (opjit_cg_code_recall(tile, b->request, &code[i]))
            continue;
        if (b->count == CG_TILES_TOGETHER || (b->count > 0 && !opjit_cg_tiles_fit(b->tile[0], tile)))
            TRY(opjit_cg_tiles_compile(b, error));
        b->tile[b->count] = tile;
        b->code[b->count++] = &code[i];
    }
    return opjit_cg_tiles_compile(b, error);
}

opjit_status opjit_cg_put_tiles(const cg_tiles *tiles, cg_llvm *m, const cg_target *cpu, const codegen_request *request,
                                opjit_error *error)
{
    cg_tile_batch b = { .request = request, .cpu = cpu };
    uint32_t count = 0, i = 0;
    for (const cg_made *tile = tiles->first; tile; tile = tile->next)
        count++;
    cg_flat *code = count > 0 ? ARENA_ARRAY(tiles->arena, cg_flat, count) : NULL;
    if (count > 0 && !code)
        return opjit_rt_no_memory(error);
    for (i = 0; i < count; i++)
        opjit_rt_bytes_init(&code[i].bytes, request->allocator);
    opjit_status status = find_code(tiles, code, &b, error);
    for (i = 0; i < count; i++)
        if (code[i].bytes.failed && status == OPJIT_OK)
            status = opjit_rt_no_memory(error);
    i = 0;
    for (const cg_made *tile = tiles->first; tile && status == OPJIT_OK; tile = tile->next)
        put_tile(tile, &code[i++], m, cpu);
    for (i = 0; i < count; i++)
        opjit_rt_bytes_free(&code[i].bytes);
    return status;
}
