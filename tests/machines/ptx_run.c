/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_run.c - launches: runs the blocks one after the other, their warps in turn, and in each the threads with the
 * lowest pc.  Synchronisation is in ptx_sync.c. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/ptx_internal.h"

bool ptx_fault(ptx_runner *r, const ptx_warp *w, const ptx_ins *ins, uint32_t lane, const char *format, ...)
{
    const uint32_t *block = r->launch->block, t = w == NULL ? 0 : w->number * LANES + lane;
    char text[220], where[160] = "";
    const char *line = "";
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    r->error->line = ins == NULL ? 0 : ins->line;
    if (ins != NULL && ins->line >= 1 && ins->line <= r->module->line_count)
        line = r->module->lines[ins->line - 1] + ins->column;
    if (ins != NULL)
        snprintf(where, sizeof where, "line %u: '%.*s': ", ins->line, (int)strcspn(line, ";"), line);
    for (char *c = where; *c != '\0'; c++)
        *c = *c == '\t' ? ' ' : *c;
    if (lane < LANES)
        snprintf(r->error->message, sizeof r->error->message, "%sthread (%u,%u,%u) of block (%u,%u,%u): %s", where,
                 t % block[0], t / block[0] % block[1], t / block[0] / block[1], r->block[0], r->block[1], r->block[2],
                 text);
    else
        snprintf(r->error->message, sizeof r->error->message, "%s%s", where, text);
    return false;
}

/* --- steps of a warp --------------------------------------------------------------------------------------------- */
static void copy_frames(ptx_runner *r, ptx_warp *w, uint32_t mask, uint32_t to, uint32_t from, uint32_t bytes)
{
    FOR_LANES (l, mask) {
        uint8_t *frames = w->frames + (uint64_t)l * r->frame_bytes;
        memcpy(frames + to, frames + from, bytes);
    }
}

static void call(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t mask)
{
    const ptx_call *c = &r->module->calls[ins->target];
    const ptx_function *f = &r->module->functions[c->function];

    for (uint32_t i = 0; i < c->count; i++)
        copy_frames(r, w, mask, r->frame_base[c->function] + f->params[i].offset,
                    r->frame_base[ins->function] + c->from[i], f->params[i].bytes);
    FOR_LANES (l, mask) {
        w->returns[c->function * LANES + l] = w->pc[l];
        w->pc[l] = f->first;
    }
}

static void come_back(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t mask)
{
    FOR_LANES (l, mask) {
        const uint32_t from = w->returns[ins->function * LANES + l];
        const ptx_ins *caller = &r->module->code[from];
        const ptx_call *c = &r->module->calls[caller->target];
        const ptx_function *f = &r->module->functions[ins->function];
        if (c->result != NO_SLOT)
            copy_frames(r, w, 1u << l, r->frame_base[caller->function] + c->result,
                        r->frame_base[ins->function] + f->result_offset, f->result_bytes);
        w->pc[l] = from + 1;
    }
}

/* Control flow of the lanes that pass the guard; sets their pcs in w->pc. */
static bool control(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t base, uint32_t mask)
{
    switch (ins->op) {
    case OP_BRA:
        FOR_LANES (l, mask)
            w->pc[l] = ins->target;
        return true;
    case OP_BRX: {
        const ptx_table *table = &r->module->tables[ins->target];
        FOR_LANES (l, mask) {
            const uint64_t index = w->regs[((uint64_t)base + ins->source[0]) * LANES + l];
            if (index >= table->count)
                return ptx_fault(r, w, ins, l, "index %llu of %u targets", (unsigned long long)index, table->count);
            w->pc[l] = table->targets[index];
        }
        return true;
    }
    case OP_CALL: call(r, w, ins, mask); return true;
    case OP_RET:
        if (!r->module->functions[ins->function].entry) {
            come_back(r, w, ins, mask);
            return true;
        }
        /* fall through */
    default: /* exit */
        w->alive &= ~mask;
        return mask == 0 || ptx_settle(r, w); /* others may have waited only for these */
    }
}

static uint32_t guarded(const ptx_warp *w, const ptx_ins *ins, uint32_t base, uint32_t mask)
{
    uint32_t active = 0;

    if (ins->guard == NO_SLOT)
        return mask;
    FOR_LANES (l, mask) {
        const bool value = w->regs[((uint64_t)base + ins->guard) * LANES + l] != 0;
        active |= (uint32_t)(value != ins->guard_not) << l;
    }
    return active;
}

/* Runs the lanes of mask, all at pc, up to where others wait (next) or the lanes diverge. */
static bool run_group(ptx_runner *r, ptx_warp *w, uint32_t pc, uint32_t mask, uint32_t next)
{
    for (; pc < next; pc++) {
        const ptx_ins *ins = &r->module->code[pc];
        const uint32_t base = r->slot_base[ins->function], active = guarded(w, ins, base, mask);
        const uint32_t lanes = (uint32_t)__builtin_popcount(mask);
        r->stats.issues++;
        r->stats.instructions += lanes;
        if (r->steps_left < lanes)
            return ptx_fault(r, w, ins, (uint32_t)__builtin_ctz(mask), "more than %llu instructions",
                             (unsigned long long)r->stats.instructions);
        r->steps_left -= lanes;
        switch (ins->op) {
        case OP_LD:
        case OP_ST:
            if (!ptx_access(r, w, ins, base, active))
                return false;
            break;
        case OP_CVTA:
            if (!ptx_convert_address(r, w, ins, base, active))
                return false;
            break;
        case OP_NOTHING: break;
        case OP_TRAP:
            if (active != 0)
                return ptx_fault(r, w, ins, (uint32_t)__builtin_ctz(active), "a trap");
            break;
        case OP_BRA:
        case OP_BRX:
        case OP_CALL:
        case OP_RET:
        case OP_EXIT:
            if ((ins->flags & F_UNI) != 0 && active != 0 && active != mask)
                return ptx_fault(r, w, ins, (uint32_t)__builtin_ctz(active), "threads part at .uni");
            FOR_LANES (l, mask)
                w->pc[l] = (active >> l & 1) != 0 ? pc : pc + 1;
            return control(r, w, ins, base, active);
        case OP_SHFL:
        case OP_VOTE:
        case OP_REDUX:
        case OP_WARPSYNC:
        case OP_BAR:
            FOR_LANES (l, mask)
                w->pc[l] = (active >> l & 1) != 0 ? pc : pc + 1;
            return active == 0 || ptx_arrive(r, w, ins, base, active);
        default:
            if (!ptx_compute(r, w, ins, base, active))
                return false;
            break;
        }
    }
    FOR_LANES (l, mask)
        w->pc[l] = pc;
    return true;
}

/* Runs until every lane has ended or waits. */
static bool run_warp(ptx_runner *r, ptx_warp *w)
{
    for (uint32_t ready = w->alive & ~w->waiting; ready != 0; ready = w->alive & ~w->waiting) {
        uint32_t lowest = UINT32_MAX, next = UINT32_MAX, mask = 0;
        FOR_LANES (l, ready) {
            if (w->pc[l] < lowest) {
                next = lowest;
                lowest = w->pc[l];
                mask = 0;
            } else if (w->pc[l] > lowest && w->pc[l] < next) {
                next = w->pc[l];
            }
            if (w->pc[l] == lowest)
                mask |= 1u << l;
        }
        if (!run_group(r, w, lowest, mask, next))
            return false;
    }
    return true;
}

/* --- a block ----------------------------------------------------------------------------------------------------- */
static uint64_t fill_value(const ptx_runner *r, const ptx_slot *s, uint32_t function, uint32_t warp, uint32_t lane)
{
    const uint32_t *block = r->launch->block, t = warp * LANES + lane, bit = 1u << lane;

    switch (s->fill) {
    case FILL_GLOBAL: return r->globals.address + s->value;
    case FILL_LOCAL: return r->local_base[function] + s->value;
    case FILL_CALL_PARAM: return CALL_PARAMS + r->frame_base[function] + s->value;
    case FILL_OWN_SHARED: return r->shared_base[function] + s->value;
    case FILL_DYNAMIC_SHARED: return r->dynamic_offset + s->value;
    case FILL_TID:
        return s->which == 0 ? t % block[0] : s->which == 1 ? t / block[0] % block[1] : t / block[0] / block[1];
    case FILL_NTID: return block[s->which];
    case FILL_CTAID: return r->block[s->which];
    case FILL_NCTAID: return r->launch->grid[s->which];
    case FILL_LANEID: return lane;
    case FILL_WARPID: return warp;
    case FILL_NWARPID: return r->warp_count;
    case FILL_LANEMASK: {
        const uint32_t masks[] = { bit, bit | (bit - 1), bit - 1, ~(bit - 1), ~(bit | (bit - 1)) };
        return masks[s->which];
    }
    case FILL_DYNAMIC_BYTES: return r->launch->shared_bytes;
    default: return s->value;
    }
}

static void begin_warp(ptx_runner *r, ptx_warp *w)
{
    const uint32_t left = r->threads - w->number * LANES;

    w->members = w->alive = left >= LANES ? UINT32_MAX : (1u << left) - 1;
    w->waiting = w->at_barrier = 0;
    w->epoch = 0;
    for (uint32_t l = 0; l < LANES; l++)
        w->pc[l] = r->entry->first;
    for (uint32_t f = 0; f < r->module->function_count; f++) {
        const ptx_function *function = &r->module->functions[f];
        for (uint32_t i = 0; i < function->slot_count && r->slot_base[f] != NO_SLOT; i++) {
            const ptx_slot *s = &function->slots[i];
            uint64_t *row = w->regs + ((uint64_t)r->slot_base[f] + i) * LANES;
            for (uint32_t l = 0; l < LANES && s->fill != FILL_NOTHING; l++)
                row[l] = fill_value(r, s, f, w->number, l);
        }
    }
}

static bool run_block(ptx_runner *r)
{
    bool done = false;

    r->epoch = 0;
    memset(r->arrived, 0, sizeof r->arrived);
    memset(r->shared, 0xa5, r->shared_bytes);
    ptx_traces_of_shared_clear(r);
    for (uint32_t i = 0; i < r->warp_count; i++)
        begin_warp(r, &r->warps[i]);
    while (!done) {
        done = true;
        for (uint32_t i = 0; i < r->warp_count; i++) {
            ptx_warp *w = &r->warps[r->launch->reversed ? r->warp_count - 1 - i : i];
            if (!run_warp(r, w))
                return false;
            done = done && w->alive == 0;
        }
        if (!done && !ptx_release(r))
            return false;
    }
    return true;
}

/* --- a launch ---------------------------------------------------------------------------------------------------- */
static void lay_out(ptx_runner *r, uint32_t function)
{
    const ptx_function *f = &r->module->functions[function];

    if (r->slot_base[function] != NO_SLOT)
        return;
    r->slot_base[function] = r->slot_count;
    r->frame_base[function] = r->frame_bytes;
    r->local_base[function] = r->local_bytes;
    r->shared_base[function] = r->shared_bytes;
    r->slot_count += f->slot_count;
    r->frame_bytes = (uint32_t)align_up(r->frame_bytes + f->frame_bytes, 16);
    r->local_bytes = (uint32_t)align_up(r->local_bytes + f->local_bytes, 16);
    r->shared_bytes = (uint32_t)align_up(r->shared_bytes + f->shared_bytes, 128);
    for (uint32_t i = 0; i < f->call_count; i++)
        lay_out(r, f->calls[i]);
}

static bool check_launch(ptx_runner *r)
{
    const ptx_launch *launch = r->launch;
    const ptx_function *f = r->entry;
    const uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];

    if (threads == 0 || threads > MOST_BLOCK || launch->block[2] > 64)
        return ptx_fault(r, NULL, NULL, LANES, "%s: a block of (%u,%u,%u) threads", f->name, launch->block[0],
                         launch->block[1], launch->block[2]);
    if (blocks == 0 || launch->grid[0] > INT32_MAX || launch->grid[1] > UINT16_MAX || launch->grid[2] > UINT16_MAX)
        return ptx_fault(r, NULL, NULL, LANES, "%s: a grid of (%u,%u,%u) blocks", f->name, launch->grid[0],
                         launch->grid[1], launch->grid[2]);
    if (f->reqntid[0] != 0 && memcmp(f->reqntid, launch->block, sizeof f->reqntid) != 0)
        return ptx_fault(r, NULL, NULL, LANES, "%s: a block of (%u,%u,%u) threads, .reqntid says (%u,%u,%u)", f->name,
                         launch->block[0], launch->block[1], launch->block[2], f->reqntid[0], f->reqntid[1],
                         f->reqntid[2]);
    if (f->maxntid != 0 && threads > f->maxntid)
        return ptx_fault(r, NULL, NULL, LANES, "%s: %llu threads, .maxntid says %u", f->name,
                         (unsigned long long)threads, f->maxntid);
    if (launch->races && threads * blocks > INT32_MAX)
        return ptx_fault(r, NULL, NULL, LANES, "%s: too many threads to look for races", f->name);
    for (uint32_t i = 0; i < f->param_count; i++) {
        if (launch->arguments == NULL || launch->arguments[i] == NULL)
            return ptx_fault(r, NULL, NULL, LANES, "%s: argument %u is NULL", f->name, i);
    }
    r->threads = (uint32_t)threads;
    r->warp_count = (r->threads + LANES - 1) / LANES;
    return true;
}

static bool allocate(ptx_runner *r)
{
    const uint32_t functions = r->module->function_count;

    r->shared = malloc(r->shared_bytes + 1);
    r->params = calloc(r->entry->entry_bytes + 1, 1);
    r->warps = calloc(r->warp_count, sizeof *r->warps);
    if (r->shared == NULL || r->params == NULL || r->warps == NULL)
        return false;
    for (uint32_t i = 0; i < r->warp_count; i++) {
        ptx_warp *w = &r->warps[i];
        const size_t regs = (size_t)r->slot_count * LANES;
        w->number = i;
        w->regs = malloc(regs * sizeof *w->regs);
        w->local = malloc((size_t)r->local_bytes * LANES + 1);
        w->frames = malloc((size_t)r->frame_bytes * LANES + 1);
        w->returns = calloc((size_t)functions * LANES, sizeof *w->returns);
        if (w->regs == NULL || w->local == NULL || w->frames == NULL || w->returns == NULL)
            return false;
        memset(w->regs, 0xa5, regs * sizeof *w->regs); /* registers that nobody wrote are not 0 */
        memset(w->local, 0xa5, (size_t)r->local_bytes * LANES);
        memset(w->frames, 0xa5, (size_t)r->frame_bytes * LANES);
    }
    return true;
}

static void release(ptx_runner *r)
{
    for (uint32_t i = 0; i < r->warp_count && r->warps != NULL; i++) {
        free(r->warps[i].regs);
        free(r->warps[i].local);
        free(r->warps[i].frames);
        free(r->warps[i].returns);
    }
    free(r->warps);
    free(r->params);
    free(r->shared);
    free(r->slot_base);
    ptx_traces_end(r);
}

static bool prepare(ptx_runner *r)
{
    const uint32_t functions = r->module->function_count,
                   limit = r->launch->shared_limit == 0 ? 49152 : r->launch->shared_limit;

    if (!check_launch(r))
        return false;
    r->slot_base = malloc(4 * functions * sizeof *r->slot_base);
    if (r->slot_base == NULL)
        return ptx_fault(r, NULL, NULL, LANES, "no memory");
    memset(r->slot_base, 0xff, 4 * functions * sizeof *r->slot_base);
    r->frame_base = r->slot_base + functions;
    r->local_base = r->frame_base + functions;
    r->shared_base = r->local_base + functions;
    r->shared_bytes = (uint32_t)align_up(r->module->shared_bytes, 128);
    lay_out(r, (uint32_t)(r->entry - r->module->functions));
    r->dynamic_offset = r->shared_bytes;
    if ((uint64_t)r->shared_bytes + r->launch->shared_bytes > limit)
        return ptx_fault(r, NULL, NULL, LANES, "%s: %u bytes of static and %u of dynamic shared memory; allowed: %u",
                         r->entry->name, r->shared_bytes, r->launch->shared_bytes, limit);
    r->shared_bytes += r->launch->shared_bytes;
    r->globals = (ptx_range){ (uint64_t)(uintptr_t)r->module->globals,
                              r->module->global_bytes,
                              r->module->globals,
                              NULL,
                              true,
                              "the module's variables" };
    if (!allocate(r) || (r->launch->races && !ptx_traces_begin(r)))
        return ptx_fault(r, NULL, NULL, LANES, "no memory");
    for (uint32_t i = 0; i < r->entry->param_count; i++)
        memcpy(r->params + r->entry->params[i].offset, r->launch->arguments[i], r->entry->params[i].bytes);
    return true;
}

static bool run_grid(ptx_runner *r)
{
    const uint32_t *grid = r->launch->grid;
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];

    for (uint64_t i = 0; i < blocks; i++) {
        const uint64_t b = r->launch->reversed ? blocks - 1 - i : i;
        r->block_number = (uint32_t)b;
        r->block[0] = (uint32_t)(b % grid[0]);
        r->block[1] = (uint32_t)(b / grid[0] % grid[1]);
        r->block[2] = (uint32_t)(b / grid[0] / grid[1]);
        if (!run_block(r))
            return false;
    }
    return true;
}

bool ptx_run(const ptx_module *module, uint32_t entry, ptx_memory *memory, const ptx_launch *launch,
             ptx_stats *out_stats, ptx_error *error)
{
    ptx_error ignored;
    ptx_runner r = { .module = module,
                     .entry = ptx_entry_function(module, entry),
                     .launch = launch,
                     .memory = memory,
                     .error = error == NULL ? &ignored : error };

    memset(r.error, 0, sizeof *r.error);
    r.steps_left = launch->step_limit == 0 ? UINT64_C(1) << 34 : launch->step_limit;
    if (r.entry == NULL)
        return ptx_fault(&r, NULL, NULL, LANES, "no entry %u", entry);
    const bool good = prepare(&r) && run_grid(&r);
    release(&r);
    if (out_stats != NULL)
        *out_stats = r.stats;
    return good;
}
