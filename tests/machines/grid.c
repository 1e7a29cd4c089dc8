/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c - one launch of one kernel: memory, arguments, the workspace; and running it in the PTX interpreter. */
#include "tests/machines/grid.h"

#include <opjit/abi.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/machines/ptx.h"

static uint32_t add_range(grid_launch *l, const grid_range *range)
{
    l->ranges[l->range_count] = *range;
    return l->range_count++;
}

/* Adds every slot's buffer, each memory once. */
static bool add_buffers(grid_launch *l)
{
    const ir_func *f = l->s->f;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        if (tensor->role != IR_IN && tensor->role != IR_OUT && tensor->role != IR_CONSTANT)
            continue;
        if (tensor->slot >= GRID_BUFFERS || l->range_count >= GRID_BUFFERS)
            return false;
        grid_range range = { .host = l->s->buffers[tensor->slot],
                             .bytes = tensor->bytes,
                             .align = OPJIT_GPU_ALIGNMENT,
                             .writable = tensor->role == IR_OUT,
                             .what = "a buffer" };
        uint32_t before = t;
        for (uint32_t i = 1; i < f->tensor_count; i++) {
            const ir_tensor *other = &f->tensors[i];
            if ((other->role != IR_IN && other->role != IR_OUT) || l->s->buffers[other->slot] != range.host)
                continue;
            before = i < before ? i : before;
            range.bytes = other->bytes > range.bytes ? other->bytes : range.bytes;
            range.writable = range.writable || other->role == IR_OUT;
        }
        l->arguments[tensor->slot].range =
            before < t ? l->arguments[f->tensors[before].slot].range : add_range(l, &range) + 1;
        l->count = tensor->slot >= l->count ? tensor->slot + 1 : l->count;
    }
    return true;
}

/* Adds the temps and, after them, the scratch. */
static bool add_workspace(grid_launch *l, void **scratch)
{
    const ir_func *f = l->s->f;
    *scratch = malloc((size_t)l->info.scratch + 1);
    l->arguments[l->count++].range =
        add_range(l,
                  &(grid_range){
                      .host = l->s->shared, .bytes = f->shared_size, .align = 64, .writable = true, .what = "temps" }) +
        1;
    add_range(l, &(grid_range){ .host = *scratch,
                                .bytes = l->info.scratch,
                                .behind = align_up(f->shared_size, 64),
                                .follows = true,
                                .writable = true,
                                .what = "scratch" });
    return *scratch != NULL;
}

/* --- by the interpreter of PTX ------------------------------------------------------------------------------------ */

/* Maps each range at an odd multiple of its alignment, so that no larger alignment holds by chance. */
static bool map_ranges(grid_launch *l, ptx_memory *memory)
{
    enum { GAP = 1 << 20 };
    uint64_t next = GAP;
    for (uint32_t i = 0; i < l->range_count; i++) {
        grid_range *r = &l->ranges[i];
        r->at = r->follows ? r[-1].at + r->behind : next + r->align;
        next = align_up(r->at + r->bytes + GAP, 4096);
        if (r->bytes > 0 && !ptx_memory_add(memory, r->at, r->host, (size_t)r->bytes, r->writable, r->what))
            return false;
    }
    return true;
}

static bool launch(const grid_launch *l, ptx_memory *memory, ptx_error *error)
{
    uint64_t values[GRID_ARGUMENTS];
    void *pointers[GRID_ARGUMENTS];
    ptx_module *module = ptx_parse(l->s->code, error);
    const int entry = module ? ptx_find(module, l->s->name) : -1;
    const ptx_launch how = { .grid = { (uint32_t)l->info.grid, 1, 1 },
                             .block = { l->info.block, 1, 1 },
                             .arguments = pointers,
                             .races = true,
                             .reversed = l->s->reversed };
    bool good = entry >= 0;
    test_grid_arguments(l, values, pointers);
    if (module && entry < 0)
        snprintf(error->message, sizeof error->message, "there is no kernel %s", l->s->name);
    if (good && ptx_entry_get(module, (uint32_t)entry).param_count != l->count) {
        snprintf(error->message, sizeof error->message, "%s has %u parameters, and not %u", l->s->name,
                 ptx_entry_get(module, (uint32_t)entry).param_count, l->count);
        good = false;
    }
    if (good && ptx_entry_get(module, (uint32_t)entry).shared_bytes != l->info.shared) {
        snprintf(error->message, sizeof error->message, "%s has not the shared memory that it is said to have",
                 l->s->name);
        good = false;
    }
    good = good && ptx_run(module, (uint32_t)entry, memory, &how, NULL, error);
    ptx_free(module);
    return good;
}

static opjit_status run_interpreted(grid_launch *l, opjit_error *error)
{
    ptx_memory *memory = ptx_memory_create();
    ptx_error said = { 0, "buffers can't be mapped" };
    const bool good = memory && map_ranges(l, memory) && launch(l, memory, &said);
    ptx_memory_destroy(memory);
    return good ? OPJIT_OK
                : opjit_rt_error_set(error, OPJIT_INTERNAL, "line %u of %s: %s", said.line, l->s->name, said.message);
}

/* ------------------------------------------------------------------------------------------------------------------ */

void test_grid_arguments(const grid_launch *l, uint64_t values[GRID_ARGUMENTS], void *pointers[GRID_ARGUMENTS])
{
    for (uint32_t i = 0; i < l->count; i++) {
        const grid_argument *a = &l->arguments[i];
        values[i] = a->range != 0 ? l->ranges[a->range - 1].at : a->value;
        pointers[i] = &values[i];
    }
}

opjit_status test_grid_run(const grid_stage *s, opjit_error *error)
{
    grid_launch l = { .s = s };
    ir_ref stage = s->f->body;
    void *scratch = NULL;
    for (uint32_t i = 0; i < s->stage; i++)
        stage = ir_at(s->f, stage)->next;
    opjit_ir_launch_of(s->f, stage, &l.info);
    if (!add_buffers(&l))
        return opjit_rt_error_set(error, OPJIT_LIMIT, "more than %d buffers", (int)GRID_BUFFERS);
    for (uint32_t i = 0; i + 1 < s->f->param_count; i++)
        l.arguments[l.count++].value = s->params[i];
    opjit_status status = !add_workspace(&l, &scratch)          ? opjit_rt_no_memory(error)
                          : s->target->arch == RT_ARCH_SPIRV    ? test_grid_run_on_opencl(&l, error)
                          : getenv("OPJIT_TEST_DEVICE") != NULL ? test_grid_run_on_device(&l, error)
                                                                : run_interpreted(&l, error);
    free(scratch);
    return status;
}
