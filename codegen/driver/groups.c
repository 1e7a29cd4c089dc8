/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - large kernels in groups of stages, each a module of its own: LLVM's memory stays that of a group, and
 * threads of the host's make several at a time.  Groups depend on the stages alone, so the code is the same for any
 * number of threads. */
#include "codegen/driver/driver.h"

enum {
    GROUP = 16,       /* stages: their compile takes many times what a module takes by itself */
    LARGE = 24,       /* stages from which on there are groups */
    CODE_LINE = 64,   /* what code and constants are aligned to, */
    CODE_PAGE = 4096, /* and where addresses are built of pages */
};

/* One group's result. */
typedef struct part {
    codegen_result code;
    opjit_status status;
    opjit_error error;
    bool made;
} part;

typedef struct groups {
    const codegen_request *request;
    cg_make_fn make;
    part *parts;
    uint32_t count;
} groups;

static uint32_t stage_count(const ir_func *f)
{
    uint32_t count = 0;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        count++;
    return count;
}

static uint32_t most_stages(const codegen_request *request)
{
    uint32_t most = 0;
    for (uint32_t v = 0; v < request->variant_count; v++) {
        const uint32_t count = stage_count(request->variants[v]);
        most = count > most ? count : most;
    }
    return most;
}

bool opjit_cg_is_large(const codegen_request *request)
{
    return request->emit == CODEGEN_CODE && !request->kernel && most_stages(request) >= LARGE;
}

static void make_groups(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    const groups *g = arg;
    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        part *p = &g->parts[i];
        p->made = true;
        p->status = g->make(g->request, (uint32_t)i * GROUP, (uint32_t)(i + 1) * GROUP, &p->code, &p->error);
    }
}

/* Appends the group's code, and enters its stages. */
static opjit_status take(const groups *g, const part *p, uint64_t align, codegen_result *out, opjit_error *error)
{
    if (!p->made)
        return opjit_rt_refuse(error, OPJIT_CANCELLED, "{!argument}the {executor} did not run all groups of stages");
    if (p->status != OPJIT_OK) {
        opjit_rt_error_copy(error, &p->error);
        return p->status;
    }
    opjit_rt_bytes_align(&out->bytes, align);
    const uint64_t begin = out->bytes.size;
    opjit_rt_bytes_append(&out->bytes, p->code.bytes.data, p->code.bytes.size);
    for (uint32_t i = 0; i < p->code.entry_count; i++)
        if (p->code.entries[i] != UINT64_MAX)
            out->entries[i] = begin + p->code.entries[i];
    out->build_ms += p->code.build_ms;
    out->emit_ms += p->code.emit_ms;
    out->link_ms += p->code.link_ms;
    (void)g;
    return out->bytes.failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

/* All groups' code as one. */
static opjit_status join(const groups *g, codegen_result *out, opjit_error *error)
{
    const codegen_request *r = g->request;
    const uint64_t align = r->target->arch == RT_ARCH_AARCH64 ? CODE_PAGE : CODE_LINE;
    opjit_status status = OPJIT_OK;
    for (uint32_t v = 0; v < r->variant_count; v++)
        out->entry_count += stage_count(r->variants[v]);
    out->entries = opjit_rt_allocate(r->allocator, out->entry_count * sizeof(uint64_t), sizeof(uint64_t));
    if (!out->entries)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < out->entry_count; i++)
        out->entries[i] = UINT64_MAX;
    for (uint32_t i = 0; i < g->count && status == OPJIT_OK; i++)
        status = take(g, &g->parts[i], align, out, error);
    return status;
}

opjit_status opjit_cg_compile_groups(const codegen_request *request, cg_make_fn make, codegen_result *out,
                                     opjit_error *error)
{
    const opjit_executor *executor = request->executor;
    groups g = { .request = request, .make = make, .count = (most_stages(request) + GROUP - 1) / GROUP };
    rt_arena arena;
    opjit_rt_arena_init(&arena, request->allocator);
    g.parts = ARENA_ARRAY(&arena, part, g.count);
    opjit_status status = g.parts ? OPJIT_OK : opjit_rt_no_memory(error);
    if (status == OPJIT_OK && executor)
        status = executor->run(executor->user, g.count, 1, make_groups, &g);
    else if (status == OPJIT_OK)
        make_groups(&g, 0, 0, g.count);
    if (status == OPJIT_OK)
        status = join(&g, out, error);
    for (uint32_t i = 0; g.parts && i < g.count; i++) {
        opjit_rt_release(request->allocator, g.parts[i].code.entries, g.parts[i].code.entry_count * sizeof(uint64_t));
        opjit_rt_bytes_free(&g.parts[i].code.bytes);
    }
    opjit_rt_arena_free(&arena);
    if (status != OPJIT_OK) {
        opjit_rt_release(request->allocator, out->entries, out->entry_count * sizeof(uint64_t));
        opjit_rt_bytes_free(&out->bytes);
        *out = (codegen_result){ .entries = NULL };
    }
    return status;
}
