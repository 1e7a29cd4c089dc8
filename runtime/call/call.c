/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - opjit_kernel_call: checks the bindings, picks the variant, runs its steps.
 * The plain road (no executor, no workspace) allocates nothing, locks nothing and looks nothing up. */
#include "runtime/call/kernel_object.h"

#include <string.h>

/* --- checks ------------------------------------------------------------------------------------------------------- */

/* Message for the first bad binding, found by the quick check. */
COLD static opjit_status check_binding(const opjit_kernel *k, const slot *s, uint32_t i, const opjit_binding *b,
                                       opjit_error *error)
{
    if (b->data == NULL && s->bytes != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{!bindings}binding %u (%s): data is {NULL}", i,
                               kernel_buffer_name(k, i));
    if (b->bytes < s->bytes)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!call}{!bindings}binding %u (%s): {%llu} bytes given, %llu needed", i,
                               kernel_buffer_name(k, i), (unsigned long long)b->bytes, (unsigned long long)s->bytes);
    if (((uintptr_t)b->data & s->align_mask) != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!call}{!bindings}binding %u (%s): data at {%p} is not aligned to %u bytes", i,
                               kernel_buffer_name(k, i), b->data, s->align_mask + 1);
    return OPJIT_OK;
}

COLD static opjit_status refuse_binding(const opjit_kernel *k, const slot *slots, const opjit_binding *bindings,
                                        opjit_error *error)
{
    for (uint32_t i = 0; i < k->bindings; i++)
        TRY(opjit_rt_place(error, check_binding(k, &slots[i], i, &bindings[i], error), NULL, NULL, (int32_t)i));
    return opjit_rt_refuse(error, OPJIT_INTERNAL, "{!call}{bindings} changed during the call");
}

COLD static opjit_status refuse_overlap(const opjit_kernel *k, void *const *buffers, uint32_t output, uint32_t other,
                                        opjit_error *error)
{
    const bool same = buffers[output] == buffers[other];
    opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{!bindings}%s overlaps {%s}%s",
                    kernel_buffer_name(k, output), kernel_buffer_name(k, other),
                    same ? ": this kernel can't work in place there"
                         : ": only the very same memory may be shared, and only where alias_inputs says so");
    return opjit_rt_place(error, OPJIT_INVALID_ARGUMENT, NULL, NULL, (int32_t)output);
}

/* The pairs that share memory, into *alias; pairs of outputs are looked at once. */
OUT_OF_LINE static opjit_status find_alias(const opjit_kernel *k, const slot *slots, void *const *buffers,
                                           uint64_t *alias, opjit_error *error)
{
    for (uint32_t o = k->inputs; o < k->bindings; o++) {
        const slot *s = &slots[o];
        for (uint32_t j = k->inputs != 0 ? 0 : o + 1; j < k->buffers; j = j + 1 == k->inputs ? o + 1 : j + 1) {
            if (!ranges_meet(buffers[o], s->bytes, buffers[j], slots[j].bytes) || s->bytes == 0 || slots[j].bytes == 0)
                continue;
            if (j >= k->inputs || j >= 32 || buffers[o] != buffers[j] || (s->alias_inputs >> j & 1) == 0)
                return refuse_overlap(k, buffers, o, j, error);
            if (o - k->inputs < 8 && j < 8)
                *alias |= UINT64_C(1) << ((o - k->inputs) * 8 + j);
        }
    }
    return OPJIT_OK;
}

/* Whether an output shares memory with any other buffer, or one of no bytes lies in another. */
OUT_OF_LINE static bool outputs_meet(const opjit_kernel *k, const slot *slots, void *const *buffers)
{
    for (uint32_t o = k->inputs; o < k->bindings; o++) {
        for (uint32_t j = 0; j < k->inputs; j++)
            if (ranges_meet(buffers[o], slots[o].bytes, buffers[j], slots[j].bytes))
                return true;
        for (uint32_t j = o + 1; j < k->buffers; j++)
            if (ranges_meet(buffers[o], slots[o].bytes, buffers[j], slots[j].bytes))
                return true;
    }
    return false;
}

/* Bytes for the pointers of a call, and behind them for what find_alias_of_many takes. */
static size_t buffer_room(const opjit_kernel *k)
{
    return k->pointers * sizeof(void *) + (k->buffers > STACK_BUFFERS ? 2 * (size_t)k->buffers * sizeof(rt_place) : 0);
}

/* Behind the pointers that the call holds is room for their places. */
OUT_OF_LINE static opjit_status find_alias_of_many(const opjit_kernel *k, const slot *slots, void **buffers,
                                                   uint64_t *alias, opjit_error *error)
{
    rt_place *const room = (rt_place *)(void *)(buffers + k->pointers);
    uint32_t output, other;

    return opjit_rt_overlaps_by_place(k, slots, buffers, room, alias, &output, &other)
               ? OPJIT_OK
               : refuse_overlap(k, buffers, output, other, error);
}

/* Adds the constants to the buffers, of which the bindings are there, and to *alias the pairs that share memory. */
static inline opjit_status check_overlaps(const opjit_kernel *k, const slot *slots, void **buffers, uint64_t *alias,
                                          opjit_error *error)
{
    for (uint32_t i = k->bindings; i < k->buffers; i++)
        buffers[i] = slots[i].constant;
    if (k->buffers == 1)
        return OPJIT_OK;
    if (k->buffers > STACK_BUFFERS)
        return find_alias_of_many(k, slots, buffers, alias, error);
    if (k->buffers == 2 ? !ranges_meet(buffers[0], slots[0].bytes, buffers[1], slots[1].bytes)
                        : !outputs_meet(k, slots, buffers))
        return OPJIT_OK;
    return find_alias(k, slots, buffers, alias, error);
}

/* Fills buffers with every pointer of the call and adds to *alias the pairs that share memory. */
static inline opjit_status bind(const opjit_kernel *k, const opjit_binding *bindings, void **buffers, uint64_t *alias,
                                opjit_error *error)
{
    uint64_t bad = 0;

    for (uint32_t i = 0; i < k->bindings; i++) {
        const slot *s = &k->slots[i];
        void *data = bindings[i].data;
        buffers[i] = data;
        bad |= (uint64_t)(data == NULL) | (uint64_t)(bindings[i].bytes < s->bytes) | ((uintptr_t)data & s->align_mask);
    }
    if (bad != 0)
        return refuse_binding(k, k->slots, bindings, error);
    return check_overlaps(k, k->slots, buffers, alias, error);
}

/* The same with the bytes of one call's sizes, of which there may be none: then there need be no pointer. */
OUT_OF_LINE static opjit_status bind_sized(const opjit_kernel *k, const slot *slots, const opjit_binding *bindings,
                                           void **buffers, uint64_t *alias, opjit_error *error)
{
    for (uint32_t i = 0; i < k->bindings; i++) {
        const opjit_binding b = bindings[i]; /* what is checked is what is used */
        TRY(opjit_rt_place(error, check_binding(k, &slots[i], i, &b, error), NULL, NULL, (int32_t)i));
        buffers[i] = b.data;
    }
    return check_overlaps(k, slots, buffers, alias, error);
}

static bool is_float(uint32_t dtype)
{
    return dtype == DML_TENSOR_DATA_TYPE_FLOAT16 || dtype == DML_TENSOR_DATA_TYPE_FLOAT32 ||
           dtype == DML_TENSOR_DATA_TYPE_FLOAT64;
}

static bool param_inside(const opjit_param_info *info, uint64_t value)
{
    if (is_float(info->dtype))
        return opjit_rt_dtype_size((DML_TENSOR_DATA_TYPE)info->dtype) == 8 ||
               value >> (8 * opjit_rt_dtype_size((DML_TENSOR_DATA_TYPE)info->dtype)) == 0;
    if (info->lo == INT64_MIN && info->hi == INT64_MAX) /* every bit pattern, UINT64 included */
        return true;
    if (info->dtype == DML_TENSOR_DATA_TYPE_UINT64 && value > INT64_MAX)
        return false;
    return (int64_t)value >= info->lo && (int64_t)value <= info->hi;
}

COLD static opjit_status refuse_param(const program *p, uint32_t i, uint64_t value, opjit_error *error)
{
    const opjit_param_info *info = &program_params(p)[i];
    const char *type = opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)info->dtype), *name = program_string(p, info->name);

    if (is_float(info->dtype))
        opjit_rt_refuse(
            error, OPJIT_INVALID_ARGUMENT,
            "{!call}{!params}parameter %u (%s): {0x%llx} is no %s; allowed: the value's bits, zero-extended", i, name,
            (unsigned long long)value, type);
    else
        opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                        "{!call}{!params}parameter %u (%s): {%lld} is outside of %lld to %lld (%s)", i, name,
                        (long long)value, (long long)info->lo, (long long)info->hi, type);
    return opjit_rt_place(error, OPJIT_INVALID_ARGUMENT, NULL, NULL, (int32_t)i);
}

OUT_OF_LINE static opjit_status check_params(const opjit_kernel *k, const uint64_t *params, opjit_error *error)
{
    const program *p = atomic_load(&k->active);
    const opjit_param_info *infos = program_params(p);

    for (uint32_t i = 0; i < k->params; i++)
        if (!param_inside(&infos[i], params[i]))
            return refuse_param(p, i, params[i], error);
    return OPJIT_OK;
}

COLD static opjit_status refuse_count(const opjit_kernel *k, uint32_t given, opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                           "{!call}{!binding_count}call: {%u} bindings given, %u needed (%u inputs, %u outputs)", given,
                           k->bindings, k->inputs, k->bindings - k->inputs);
}

COLD static opjit_status refuse_counts(const opjit_kernel *k, const opjit_call *call, opjit_error *error)
{
    if (call->reserved != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{!reserved}call: reserved is {%u}; allowed: 0",
                               call->reserved);
    if (call->reserved2 != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{!reserved2}call: reserved2 is {%u}; allowed: 0",
                               call->reserved2);
    if (call->binding_count != k->bindings)
        return refuse_count(k, call->binding_count, error);
    if (call->bindings == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{!bindings}call: bindings is {NULL}");
    if (call->param_count != k->params)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!call}{!param_count}call: {%u} parameters given, %u needed", call->param_count,
                               k->params);
    if (call->params == NULL && k->params != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{!params}call: params is {NULL}");
    return opjit_rt_refuse_dim_count(k, call->dim_count, error);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static inline const opjit_variant_info *pick_variant(const program *p, uint64_t alias)
{
    const opjit_variant_info *v = p->variants;
    while ((v->alias_mask & ~alias) != 0) /* the last one's mask is 0 */
        v++;
    return v;
}

/* The newest version; but a caller whose workspace was sized before opjit_kernel_optimize keeps the version it fits. */
static inline const program *pick_program(const opjit_kernel *k, const opjit_call *call)
{
    const program *newest = atomic_load_explicit(&k->active, memory_order_acquire);
    uint64_t needed;

    if (call->workspace.data != NULL)
        for (const program *p = newest; p != NULL; p = p->older)
            if (opjit_rt_workspace_needed(p, call_workers(call), &needed) && needed <= call->workspace.bytes)
                return p;
    return newest;
}

/* For devices: a workspace that the call brings is checked; what it doesn't is the stream's. */
OUT_OF_LINE static opjit_status call_device(const opjit_kernel *k, const program *p, const opjit_call *call,
                                            const opjit_variant_info *variant, void **buffers, opjit_error *error)
{
    if (call->executor != NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!call}{executor}: must be NULL, the kernel runs on a device");
    if (call->workspace.data == NULL && call->workspace.bytes != 0)
        return opjit_rt_refuse_no_workspace(call, error);
    if (call->workspace.data != NULL)
        TRY(opjit_rt_check_workspace(k, k->slots, call, buffers, p->meta->shared_size, error));
    return opjit_rt_call_on_device(k, p, call, variant, buffers, error);
}

/* Whether the call gives nothing but buffers and parameters, and p needs nothing else. */
static inline bool is_plain(const program *p, const opjit_call *call)
{
    return p->plain && call->executor == NULL && call->workspace.data == NULL && call->workspace.bytes == 0;
}

COLD static opjit_status refuse_stream(opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{stream}: must be NULL, the kernel runs on the CPU");
}

/* A call that the structure's size and counts are right of. */
static opjit_status call_with(const opjit_kernel *k, const program *p, const opjit_call *call, void **buffers,
                              rt_timing *timing, opjit_error *error)
{
    const opjit_variant_info *variant;
    uint64_t alias = 0;

    TRY(bind(k, call->bindings, buffers, &alias, error));
    buffers[k->buffers] = p->kept;
    if (k->params != 0)
        TRY(check_params(k, call->params, error));
    variant = pick_variant(p, alias);
    if (p->launches != NULL)
        return timing == NULL ? call_device(k, p, call, variant, buffers, error)
                              : opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                                "{!argument}{kernel} runs on {a device}: its stream has the times");
    if (call->stream != NULL)
        return refuse_stream(error);
    if (timing != NULL || !is_plain(p, call)) {
        rt_run r = {
            .kernel = k, .program = p, .slots = k->slots, .buffers = buffers, .params = call->params, .timing = timing
        };
        return opjit_rt_call_in_full(&r, call, variant, error);
    }
    for (const opjit_step_info *s = p->steps + variant->first_step, *last = s + variant->steps; s != last; s++)
        program_stage(p, s)(buffers, call->params, NULL, NULL, 0, s->extent);
    return OPJIT_OK;
}

/* Parameters are copied into values: what was checked is what the kernel reads, though an output lie over the
 * caller's. */
static opjit_status call_with_room(const opjit_kernel *k, const opjit_call *call, void **buffers, uint64_t *values,
                                   rt_timing *timing, opjit_error *error)
{
    opjit_call own;

    if (k->params != 0) {
        own = *call;
        own.params = memcpy(values, call->params, k->params * sizeof *values);
        call = &own;
    }
    return call_with(k, pick_program(k, call), call, buffers, timing, error);
}

COLD static opjit_status refuse_range(opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_CORRUPT, "{image} {ranges}: none has the {sizes} of the call");
}

/* The variant for sizes that are in the intervals of their dimensions; NULL: the image is wrong. */
static const opjit_variant_info *pick_range(const program *p, const uint64_t *dims, uint32_t count)
{
    for (uint32_t i = 0; i < p->meta->variants; i++)
        if (rt_range_has(&p->ranges[i], dims, count))
            return &p->variants[i];
    return NULL;
}

/* The same for a kernel with dynamic dimensions, whose sizes follow the parameters; slots: room for one a buffer. */
static opjit_status call_with_dims(const opjit_kernel *k, const opjit_call *call, void **buffers, uint64_t *values,
                                   slot *slots, rt_timing *timing, opjit_error *error)
{
    const program *p = pick_program(k, call);
    rt_run r = { .kernel = k, .program = p, .slots = slots, .buffers = buffers, .params = values, .timing = timing };
    uint64_t *const dims = values + k->params, alias = 0;

    if (k->params != 0)
        memcpy(values, call->params, k->params * sizeof *values);
    memcpy(dims, call->dims, k->dims * sizeof *dims);
    TRY(opjit_rt_check_dims(p, dims, error));
    opjit_status status;
    if (k->tiers != NULL && timing == NULL && k->tiers->call(k, call, dims, &status, error))
        return status;
    opjit_rt_size_slots(k, p, dims, slots);
    TRY(bind_sized(k, slots, call->bindings, buffers, &alias, error));
    buffers[k->buffers] = p->kept;
    if (k->params != 0)
        TRY(check_params(k, values, error));
    const opjit_variant_info *const variant =
        p->ranges == NULL ? pick_variant(p, alias) : pick_range(p, dims, k->dims);
    if (variant == NULL)
        return refuse_range(error);
    return call->stream != NULL ? refuse_stream(error) : opjit_rt_call_in_full(&r, call, variant, error);
}

OUT_OF_LINE static opjit_status call_of_many_sizes(const opjit_kernel *k, const opjit_call *call, opjit_error *error,
                                                   rt_timing *timing)
{
    void *on_stack[STACK_BUFFERS + 1];
    slot slots[STACK_BUFFERS];
    uint64_t values[STACK_PARAMS + OPJIT_MAX_DIMS];

    if (call->dims == NULL)
        return opjit_rt_refuse_dim_count(k, call->dim_count, error);
    if (k->pointers <= STACK_BUFFERS + 1 && k->params <= STACK_PARAMS)
        return call_with_dims(k, call, on_stack, values, slots, timing, error);
    const size_t first = buffer_room(k), second = first + k->buffers * sizeof *slots;
    const size_t room = second + ((size_t)k->params + k->dims) * sizeof *values;
    char *const memory = opjit_rt_allocate(&k->core->allocator, room, alignof(rt_place));
    if (memory == NULL)
        return opjit_rt_no_memory(error);
    const opjit_status status = call_with_dims(k, call, (void **)(void *)memory, (uint64_t *)(void *)(memory + second),
                                               (slot *)(void *)(memory + first), timing, error);
    opjit_rt_release(&k->core->allocator, memory, room);
    return status;
}

static const rt_struct call_sizes = { "opjit_call",
                                      { RT_SIZE_TO(opjit_call, executor), RT_SIZE_TO(opjit_call, stream),
                                        RT_SIZE_TO(opjit_call, reserved2) } };
RT_STRUCT_ENDS_WITH(opjit_call, reserved2);

/* The road of all calls but the simplest: wrong ones, of an older structure, not plain, of many buffers or several
 * steps. */
OUT_OF_LINE static opjit_status call_slowly(const opjit_kernel *kernel, const opjit_call *call, opjit_error *error,
                                            rt_timing *timing)
{
    void *on_stack[STACK_BUFFERS + 1];
    uint64_t values[STACK_PARAMS];
    opjit_call known;
    void **buffers;
    opjit_status status;

    if (kernel == NULL || call == NULL)
        return opjit_rt_refuse_null(error, kernel == NULL ? "kernel" : "call");
    if (call->struct_size != sizeof *call) {
        TRY(opjit_rt_struct_read(&call_sizes, &known, call, error));
        call = &known;
    }
    if ((call->reserved | call->reserved2 | (call->binding_count ^ kernel->bindings) |
         (call->param_count ^ kernel->params) | (call->dim_count ^ kernel->dims)) != 0 ||
        call->bindings == NULL || (call->params == NULL && kernel->params != 0))
        return refuse_counts(kernel, call, error);
    if (kernel->dims != 0)
        return call_of_many_sizes(kernel, call, error, timing);
    if (kernel->pointers <= STACK_BUFFERS + 1 && kernel->params <= STACK_PARAMS)
        return call_with_room(kernel, call, on_stack, values, timing, error);
    const size_t first = buffer_room(kernel), room = first + kernel->params * sizeof *values;
    buffers = opjit_rt_allocate(&kernel->core->allocator, room, alignof(rt_place));
    if (buffers == NULL)
        return opjit_rt_no_memory(error);
    status = call_with_room(kernel, call, buffers, (uint64_t *)(void *)((char *)buffers + first), timing, error);
    opjit_rt_release(&kernel->core->allocator, buffers, room);
    return status;
}

/* Whether the call is one that the shortest road is for: of this structure, with nothing but one buffer or two.  What
 * else the kernel may need, only_step says. */
static inline bool is_simple(const opjit_kernel *k, const opjit_call *call)
{
    return (call->struct_size ^ sizeof *call) == 0 && /* else there may be no stream */
           ((uintptr_t)call->executor | (uintptr_t)call->stream | (uintptr_t)call->workspace.data |
            call->workspace.bytes) == 0 &&
           ((call->binding_count ^ k->buffers) | (call->binding_count ^ k->bindings) | call->param_count |
            call->reserved | call->dim_count | call->reserved2) == 0 &&
           k->buffers - 1 < 2 && call->bindings != NULL;
}

static inline bool fits(const slot *s, const opjit_binding *b)
{
    return b->data != NULL && b->bytes >= s->bytes && ((uintptr_t)b->data & s->align_mask) == 0;
}

/* From a frame of its own, so that opjit_kernel_call needs none: each register that it saved would be a store more, and
 * what a kernel of 16 KiB stores takes 256 or 512. */
OUT_OF_LINE static opjit_status run_only_step(const program *p, void *first, void *second)
{
    void *buffers[2] = { first, second };

    program_stage(p, p->only_step)(buffers, NULL, NULL, NULL, 0, p->only_step->extent);
    return OPJIT_OK;
}

opjit_status opjit_kernel_call(const opjit_kernel *kernel, const opjit_call *call, opjit_error *error)
{
    const program *p;
    const opjit_binding *b;
    void *second = NULL;

    opjit_rt_error_clear(error);
    if (kernel == NULL || call == NULL || !is_simple(kernel, call))
        return call_slowly(kernel, call, error, NULL);
    b = call->bindings;
    if (!fits(&kernel->slots[0], &b[0]))
        return call_slowly(kernel, call, error, NULL);
    if (kernel->buffers == 2) {
        if (!fits(&kernel->slots[1], &b[1]) ||
            ranges_meet(b[0].data, kernel->slots[0].bytes, b[1].data, kernel->slots[1].bytes))
            return call_slowly(kernel, call, error, NULL);
        second = b[1].data;
    }
    p = atomic_load_explicit(&kernel->active, memory_order_acquire);
    return p->only_step != NULL ? run_only_step(p, b[0].data, second) : call_slowly(kernel, call, error, NULL);
}

opjit_status opjit_kernel_call_timed(const opjit_kernel *kernel, const opjit_call *call, opjit_step_time *steps,
                                     uint32_t capacity, uint32_t *out_count, opjit_error *error)
{
    rt_timing timing = { steps, capacity, 0 };
    opjit_status status;

    opjit_rt_error_clear(error);
    if (out_count != NULL)
        *out_count = 0;
    if (out_count == NULL || (steps == NULL && capacity != 0))
        return opjit_rt_refuse_null(error, out_count == NULL ? "out_count" : "steps");
    status = call_slowly(kernel, call, error, &timing);
    *out_count = timing.count;
    return status;
}

opjit_status opjit_kernel_check_overlaps(const opjit_kernel *kernel, const opjit_binding *bindings,
                                         uint32_t binding_count, opjit_error *error)
{
    void *on_stack[STACK_BUFFERS], **buffers = on_stack;
    uint64_t alias = 0;
    opjit_status status;

    opjit_rt_error_clear(error);
    if (kernel == NULL || bindings == NULL)
        return opjit_rt_refuse_null(error, kernel == NULL ? "kernel" : "bindings");
    if (binding_count != kernel->bindings)
        return refuse_count(kernel, binding_count, error);
    if (kernel->buffers > STACK_BUFFERS) {
        buffers = opjit_rt_allocate(&kernel->core->allocator, buffer_room(kernel), alignof(rt_place));
        if (buffers == NULL)
            return opjit_rt_no_memory(error);
    }
    for (uint32_t i = 0; i < binding_count; i++)
        buffers[i] = bindings[i].data;
    status = check_overlaps(kernel, kernel->slots, buffers, &alias, error);
    if (buffers != on_stack)
        opjit_rt_release(&kernel->core->allocator, buffers, buffer_room(kernel));
    return status;
}
