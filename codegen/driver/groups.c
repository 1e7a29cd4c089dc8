/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - large kernels in groups, each a module of its own with some codes and the functions of all stages that
 * have them: LLVM's memory stays that of a group, and threads of the host's make several at a time.  Groups depend on
 * the stages alone, so the code is the same for any number of threads. */
#include "codegen/driver/driver.h"

enum {
    GROUP = 16,       /* codes: their compile takes many times what a module takes by itself */
    LARGE = 24,       /* codes from which on there are groups */
    CODE_LINE = 64,   /* what code and constants are aligned to, */
    CODE_PAGE = 4096, /* and where addresses are built of pages */
};

/* One group's result. */
typedef struct part {
    codegen_result code; /* its entries are the whole request's */
    opjit_status status;
    opjit_error error;
    bool made;
} part;

typedef struct groups {
    const codegen_request *request;
    const cg_stages *stages;
    cg_make_fn make;
    part *parts;
    uint32_t count;
} groups;

bool opjit_cg_is_large(const codegen_request *request, const cg_stages *stages)
{
    return request->emit == CODEGEN_CODE && !request->kernel && stages->code_count >= LARGE;
}

static void make_groups(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    const groups *g = arg;
    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        part *p = &g->parts[i];
        p->made = true;
        p->status = g->make(g->request, g->stages, (uint32_t)i * GROUP, (uint32_t)(i + 1) * GROUP, &p->code, &p->error);
    }
}

/* Appends the group's code: its stages' entries move with it. */
static opjit_status take(const groups *g, uint32_t index, uint64_t align, codegen_result *out, opjit_error *error)
{
    const part *p = &g->parts[index];
    if (!p->made)
        return opjit_rt_refuse(error, OPJIT_CANCELLED, "{!argument}the {executor} did not run all groups of stages");
    if (p->status != OPJIT_OK) {
        opjit_rt_error_copy(error, &p->error);
        return p->status;
    }
    opjit_rt_bytes_align(&out->bytes, align);
    const uint64_t begin = out->bytes.size;
    opjit_rt_bytes_append(&out->bytes, p->code.bytes.data, p->code.bytes.size);
    for (uint32_t c = index * GROUP; c < (index + 1) * GROUP && c < g->stages->code_count; c++)
        for (const cg_single *s = g->stages->codes[c]; s; s = s->next)
            if (out->entries[s - g->stages->at] != UINT64_MAX)
                out->entries[s - g->stages->at] += begin;
    out->build_ms += p->code.build_ms;
    out->emit_ms += p->code.emit_ms;
    out->link_ms += p->code.link_ms;
    return out->bytes.failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

opjit_status opjit_cg_compile_groups(const codegen_request *request, const cg_stages *stages, cg_make_fn make,
                                     codegen_result *out, opjit_error *error)
{
    const opjit_executor *executor = request->executor;
    const uint64_t align = request->target->arch == RT_ARCH_AARCH64 ? CODE_PAGE : CODE_LINE;
    groups g = { .request = request, .stages = stages, .make = make,
                 .count = (stages->code_count + GROUP - 1) / GROUP };
    rt_arena arena;
    opjit_rt_arena_init(&arena, request->allocator);
    g.parts = ARENA_ARRAY(&arena, part, g.count);
    opjit_status status = g.parts ? OPJIT_OK : opjit_rt_no_memory(error);
    for (uint32_t i = 0; g.parts && i < g.count; i++)
        g.parts[i].code.entries = out->entries;
    if (status == OPJIT_OK && executor)
        status = executor->run(executor->user, g.count, 1, make_groups, &g);
    else if (status == OPJIT_OK)
        make_groups(&g, 0, 0, g.count);
    for (uint32_t i = 0; i < g.count && status == OPJIT_OK; i++)
        status = take(&g, i, align, out, error);
    for (uint32_t i = 0; g.parts && i < g.count; i++)
        opjit_rt_bytes_free(&g.parts[i].code.bytes);
    opjit_rt_arena_free(&arena);
    return status;
}
