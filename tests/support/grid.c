/* grid.c - one launch of one kernel: device addresses, arguments, the workspace. */
#include "tests/support/grid.h"

#include <opjit/abi.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/ptx.h"

enum { MOST_ARGUMENTS = 96, GAP = 1 << 20 };

typedef struct launch {
    const grid_stage *s;
    ptx_memory *memory;
    uint64_t next; /* device address that is free; odd multiples of the least alignment, so that no more is there by chance */
    uint64_t arguments[MOST_ARGUMENTS];
    uint32_t count;
} launch;

static uint64_t place(launch *l, uint64_t bytes, uint64_t align)
{
    const uint64_t at = l->next;
    l->next = align_up(at + bytes + GAP, 2 * align > 4096 ? 2 * align : 4096) + align;
    return at;
}

/* Every slot's buffer, each memory once. */
static bool add_buffers(launch *l)
{
    const ir_func *f = l->s->f;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        if (tensor->role != IR_IN && tensor->role != IR_OUT && tensor->role != IR_CONSTANT)
            continue;
        void *const host = l->s->buffers[tensor->slot];
        uint64_t at = 0, bytes = tensor->bytes;
        bool writable = tensor->role == IR_OUT;
        for (uint32_t i = 1; i < f->tensor_count; i++) {
            const ir_tensor *other = &f->tensors[i];
            if ((other->role != IR_IN && other->role != IR_OUT) || l->s->buffers[other->slot] != host)
                continue;
            at = i < t && at == 0 ? l->arguments[other->slot] : at;
            bytes = other->bytes > bytes ? other->bytes : bytes;
            writable = writable || other->role == IR_OUT;
        }
        if (tensor->slot >= MOST_ARGUMENTS - 32)
            return false;
        if (at == 0) {
            at = place(l, bytes, OPJIT_GPU_ALIGNMENT);
            if (!ptx_memory_add(l->memory, at, host, (size_t)bytes, writable, "a buffer"))
                return false;
        }
        l->arguments[tensor->slot] = at;
        l->count = tensor->slot >= l->count ? tensor->slot + 1 : l->count;
    }
    return true;
}

static bool add_workspace(launch *l, const ir_launch *info, void **scratch)
{
    const ir_func *f = l->s->f;
    const uint64_t behind = align_up(f->shared_size, 64);
    l->next = align_up(l->next, 128) + 64;
    l->arguments[l->count++] = l->next;
    *scratch = malloc((size_t)info->scratch + 1);
    return *scratch &&
           (f->shared_size == 0 ||
            ptx_memory_add(l->memory, l->next, l->s->shared, (size_t)f->shared_size, true, "temps")) &&
           (info->scratch == 0 ||
            ptx_memory_add(l->memory, l->next + behind, *scratch, (size_t)info->scratch, true, "scratch"));
}

static bool run(launch *l, const ir_launch *info, ptx_error *error)
{
    void *pointers[MOST_ARGUMENTS];
    ptx_module *module = ptx_parse(l->s->ptx, error);
    const int entry = module ? ptx_find(module, l->s->name) : -1;
    const ptx_launch how = { .grid = { (uint32_t)info->grid, 1, 1 },
                             .block = { info->block, 1, 1 },
                             .arguments = pointers,
                             .races = true,
                             .reversed = l->s->reversed };
    bool good = entry >= 0;
    for (uint32_t i = 0; i < l->count; i++)
        pointers[i] = &l->arguments[i];
    if (module && entry < 0)
        snprintf(error->message, sizeof error->message, "there is no kernel %s", l->s->name);
    if (good && ptx_entry_get(module, (uint32_t)entry).param_count != l->count) {
        snprintf(error->message, sizeof error->message, "%s has %u parameters, and not %u", l->s->name,
                 ptx_entry_get(module, (uint32_t)entry).param_count, l->count);
        good = false;
    }
    if (good && ptx_entry_get(module, (uint32_t)entry).shared_bytes != info->shared) {
        snprintf(error->message, sizeof error->message, "%s has not the shared memory that it is said to have",
                 l->s->name);
        good = false;
    }
    good = good && ptx_run(module, (uint32_t)entry, l->memory, &how, NULL, error);
    ptx_free(module);
    return good;
}

bool test_grid_run(const grid_stage *s, char *message, size_t message_size)
{
    launch l = { .s = s, .memory = ptx_memory_create(), .next = GAP + OPJIT_GPU_ALIGNMENT };
    ir_launch info;
    ir_ref stage = s->f->body;
    void *scratch = NULL;
    ptx_error error = { 0, "buffers can't be mapped" };
    for (uint32_t i = 0; i < s->stage; i++)
        stage = ir_at(s->f, stage)->next;
    opjit_ir_launch_of(s->f, stage, &info);
    bool good = l.memory && add_buffers(&l);
    for (uint32_t i = 0; i + 1 < s->f->param_count; i++)
        l.arguments[l.count++] = s->params[i];
    good = good && add_workspace(&l, &info, &scratch) && run(&l, &info, &error);
    if (!good)
        snprintf(message, message_size, "line %u of %s: %s", error.line, s->name, error.message);
    ptx_memory_destroy(l.memory);
    free(scratch);
    return good;
}
