/* SPDX-License-Identifier: Apache-2.0 */
/* bench_tiles.c - tiles of products (codegen/hold): the tile alone against a loop of nothing but as many fma; what a
 * kernel with a new tile takes to compile, and the next kernel with an equal one.  Tiles are IR texts here, so it is
 * what codegen makes of a tile that is measured, and no pass. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <opjit/opjit.h>

#include "codegen/codegen.h"
#include "tests/bench/fma.h"
#include "tests/bench/loops.h"
#include "tests/bench/report.h"

enum { TILES = 64, MOST_K = 256, TEXT = 4096, SAMPLE = 1000 /* us */, PAGE = 4096 };

/* M rows of N vectors of `lanes`; FLOAT32.  panels: rows of one factor lie side by side, as after packing; else as far
 * apart as in a matrix of 1000 columns. */
typedef struct tile {
    const char *name, *target;
    uint32_t rows, vectors, lanes, k;
    bool panels;
    double limit; /* time over that of the fma alone */
} tile;

static const tile tiles[] = {
    { "8x2, packed", "cpu:x86-64-v4,vec=64", 8, 2, 16, 256, true, 1.08 },
    { "8x2, rows as they lie", "cpu:x86-64-v4,vec=64", 8, 2, 16, 256, false, 1.08 },
    { "8x3, packed", "cpu:x86-64-v4,vec=64", 8, 3, 16, 256, true, 1.08 },
    { "6x4, packed", "cpu:x86-64-v4,vec=64", 6, 4, 16, 256, true, 1.08 },
    { "14x2, packed", "cpu:x86-64-v4,vec=64", 14, 2, 16, 256, true, 1.08 },
    { "8x2, 64 of k", "cpu:x86-64-v4,vec=64", 8, 2, 16, 64, true, 1.3 },
    { "6x2, AVX2, packed", "cpu:x86-64-v3", 6, 2, 8, 256, true, 1.08 },
    { "4x2, AVX2, packed", "cpu:x86-64-v3", 4, 2, 8, 256, true, 1.08 },
};

/* --- a kernel ----------------------------------------------------------------------------------------------------- */

typedef struct kernel {
    opjit_codegen_query_fn query;
    const tile *tile;
    uint32_t apart; /* rows of a factor, in elements */
    rt_target target;
    ir_func f;
    void *code;
    size_t size;
    uint64_t entry;
    void *buffers[3];
    double compile_ms;
} kernel;

/* A stage of TILES tiles of one product. */
static void put_text(const tile *t, uint32_t apart, char *out, size_t size)
{
    const uint32_t columns = t->vectors * t->lanes;
    snprintf(out, size,
             "kernel @tile after expand {\n in %%a: f32[%u,%u] stride [%u,1]\n in %%b: f32[%u,%u]\n"
             " out %%o: f32[%u,%u,%u]\n"
             " scratch %%t: f32[%u,%u]\n stage @0 for %%p in 0..%u {\n"
             "  for %%i0 in 0..%u { for %%j0 in 0..%u vec %u { store %%t[%%i0,%%j0], f32 0x0p+0 } }\n"
             "  for %%k in 0..%u hold { for %%i in 0..%u { for %%j in 0..%u vec %u {\n"
             "   store %%t[%%i,%%j], fma(load %%a[%%i,%%k], load %%b[%%k,%%j], load %%t[%%i,%%j]) } } }\n"
             "  for %%i1 in 0..%u { for %%j1 in 0..%u vec %u { store %%o[%%p,%%i1,%%j1], load %%t[%%i1,%%j1] } } } }\n",
             t->rows, t->k, apart, t->k, columns, TILES, t->rows, columns, t->rows, columns, TILES, t->rows, columns,
             t->lanes, t->k, t->rows, columns, t->lanes, t->rows, columns, t->lanes);
}

static bool parse(kernel *k)
{
    char text[TEXT];
    opjit_error error;
    put_text(k->tile, k->apart, text, sizeof text);
    if (opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, &k->f, &error) == OPJIT_OK &&
        opjit_ir_layout(&k->f, &error) == OPJIT_OK)
        return true;
    fprintf(stderr, "%s: %s\n", k->tile->name, error.message);
    return false;
}

static bool emit(const kernel *k, codegen_result *out)
{
    opjit_error error;
    const ir_func *const variant = &k->f;
    const codegen_request request = { .variants = &variant,
                                      .variant_count = 1,
                                      .target = &k->target,
                                      .level = OPJIT_LEVEL_QUICK,
                                      .emit = CODEGEN_CODE,
                                      .name = "tile",
                                      .allocator = &opjit_rt_default_allocator };
    if (k->query(CODEGEN_ABI)->compile(&request, out, &error) == OPJIT_OK)
        return true;
    fprintf(stderr, "%s: %s\n", k->tile->name, error.message);
    return false;
}

static void free_result(codegen_result *r)
{
    opjit_rt_release(&opjit_rt_default_allocator, r->entries, r->entry_count * sizeof(uint64_t));
    opjit_rt_bytes_free(&r->bytes);
}

static bool load(kernel *k)
{
    codegen_result r;
    if (!emit(k, &r))
        return false;
    k->size = (r.bytes.size + PAGE - 1) / PAGE * PAGE;
    k->code = mmap(NULL, k->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (k->code != MAP_FAILED) {
        memcpy(k->code, r.bytes.data, r.bytes.size);
        k->entry = r.entries[0];
    }
    free_result(&r);
    return k->code != MAP_FAILED && mprotect(k->code, k->size, PROT_READ | PROT_EXEC) == 0;
}

static void run_kernel(void *arg)
{
    const kernel *const k = arg;
    opjit_stage_fn fn;
    void *address = (uint8_t *)k->code + k->entry;
    memcpy(&fn, &address, sizeof fn);
    fn(k->buffers, NULL, NULL, NULL, 0, TILES);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static bool runs_here(const rt_target *t)
{
    rt_target host;
    opjit_rt_target_host(&host);
    return host.arch == t->arch && (t->features & ~host.features) == 0;
}

static bool measure_tile(report *r, kernel *k)
{
    const tile *const t = k->tile;
    const size_t bytes[] = { (size_t)t->rows * k->apart * 4, (size_t)t->k * t->vectors * t->lanes * 4,
                             (size_t)TILES * t->rows * t->vectors * t->lanes * 4 };
    measure_pair pair;
    bool ok = true;
    for (uint32_t i = 0; i < 3; i++) {
        k->buffers[i] = measure_buffer(bytes[i]);
        ok = ok && k->buffers[i];
        if (k->buffers[i])
            memset(k->buffers[i], 0, bytes[i]);
    }
    ok = ok && load(k);
    const uint64_t count = (uint64_t)TILES * t->rows * t->vectors * t->k;
    fma_alone p = { .rounds = count / FMA_CHAINS, .wide = t->lanes > 8 };
    if (ok) {
        measure_run(run_kernel, k, fma_alone_run, &p, r->pairs, SAMPLE, &pair);
        report_put(r, &(report_row){ .name = t->name, .ns = pair.a_ns / TILES, .bytes = NAN, .memset_ratio = NAN,
                                     .reference = "fma alone", .ratio = pair.ratio, .lo = pair.lo, .hi = pair.hi,
                                     .bar = BAR_AT_MOST, .limit = t->limit });
    }
    for (uint32_t i = 0; i < 3; i++)
        if (k->buffers[i])
            measure_buffer_free(k->buffers[i], bytes[i]);
    if (k->code && k->code != MAP_FAILED)
        munmap(k->code, k->size);
    return ok;
}

typedef struct compilation {
    kernel *kernel;
    bool failed;
} compilation;

static void compile_again(void *arg)
{
    compilation *const c = arg;
    codegen_result r;
    if (emit(c->kernel, &r))
        free_result(&r);
    else
        c->failed = true;
}

/* With rows of its panels, which are scratch then, at distances that no tile had lately. */
static void compile_new(void *arg)
{
    static uint64_t next = 1;
    enum { MOST = 32 };
    compilation *const c = arg;
    ir_func *const f = &c->kernel->f;
    f->tensors[1].role = f->tensors[2].role = IR_SCRATCH;
    f->tensors[1].strides[1] = f->tensors[1].sizes[0] + next % MOST;
    f->tensors[2].strides[0] = f->tensors[2].sizes[1] + next / MOST % MOST;
    f->tensors[1].strides[0] = 1;
    next++;
    compile_again(arg);
}

static bool measure_compile(report *r, kernel *k)
{
    const struct {
        const char *name;
        measure_fn run;
        double limit;
    } rows[] = { { "compile, an equal tile", compile_again, 1e6 }, { "compile, a new tile", compile_new, 5e6 } };
    bool ok = loops_start();
    for (uint32_t i = 0; i < 2 && ok; i++) {
        char name[96];
        measure_pair pair;
        compilation c = { .kernel = k };
        snprintf(name, sizeof name, "%s: %s", k->tile->name, rows[i].name);
        measure_run(rows[i].run, &c, loops_emit_empty, NULL, r->pairs, SAMPLE, &pair);
        ok = !c.failed;
        report_put(r, &(report_row){ .name = name, .ns = pair.a_ns, .bytes = NAN, .memset_ratio = NAN,
                                     .reference = "LLVM, empty", .ratio = pair.ratio, .lo = pair.lo, .hi = pair.hi,
                                     .bar = BAR_AT_MOST, .limit = rows[i].limit, .in_ns = true, .ns_lo = pair.a_ns,
                                     .ns_hi = pair.a_ns });
    }
    loops_stop();
    return ok;
}

static bool one(report *r, opjit_codegen_query_fn query, const tile *t, bool compiles)
{
    opjit_error error;
    kernel k = { .query = query, .tile = t, .apart = t->panels ? MOST_K + 16 : 1000 };
    if (opjit_rt_target_parse(t->target, &k.target, &error) != OPJIT_OK || !parse(&k))
        return false;
    bool ok = true;
    if (!runs_here(&k.target))
        printf("%s: not on this machine\n", t->name);
    else
        ok = measure_tile(r, &k);
    if (ok && compiles)
        ok = measure_compile(r, &k);
    opjit_ir_free(&k.f);
    return ok;
}

int main(int argc, char **argv)
{
    report r;
    opjit_codegen_query_fn query = NULL;
    const int status = report_options(&r, argc, argv);
    if (status != 0)
        return status;
    const char *path = getenv("OPJIT_CODEGEN");
    void *library = dlopen(path ? path : "libopjit-codegen.so", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "opjit_codegen_query") : NULL;
    memcpy(&query, &symbol, sizeof query);
    if (!query) {
        fprintf(stderr, "bench_tiles: no code generation library (OPJIT_CODEGEN)\n");
        return 1;
    }
    report_begin(&r, "tiles", "cpu");
    bool ok = true;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles && ok; i++)
        if (report_wants(&r, tiles[i].name))
            ok = one(&r, query, &tiles[i], i == 0 || tiles[i].lanes == 8);
    return ok ? report_end(&r) : 1;
}
