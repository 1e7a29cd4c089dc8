/* SPDX-License-Identifier: Apache-2.0 */
/* device_call.c - calls a kernel on a device through the public functions only. */
#include <opjit/device.h>

#include "tests/support/device_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BUFFERS = 64, GUARD = 256, PATTERN = 0xa5 };

/* A buffer on the device with guards, at an odd multiple of its alignment, and its contents as sent. */
typedef struct twin {
    uint8_t *sent, *back;
    uint64_t size, begin, bytes;
    void *there;
} twin;

opjit_status test_device_context(opjit_context **out, opjit_error *error)
{
    static opjit_context *context; /* one per process: a child of fork has no devices */
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    options.device = getenv("OPJIT_TEST_DEVICE");
    if (context == NULL && opjit_context_create(&options, &context, error) != OPJIT_OK)
        return OPJIT_INTERNAL; /* UNAVAILABLE would excuse this case, and then all of them */
    *out = context;
    return OPJIT_OK;
}

static opjit_status refuse(opjit_error *error, opjit_status status, const char *text, uint32_t index)
{
    error->status = status;
    snprintf(error->message, sizeof error->message, "buffer %u: %s", (unsigned)index, text);
    return status;
}

static opjit_status make_twin(opjit_context *context, twin *t, const void *host, uint64_t bytes, uint64_t align,
                              opjit_error *error)
{
    t->bytes = bytes;
    t->size = bytes + 2 * GUARD + 2 * align;
    t->sent = malloc(t->size);
    t->back = malloc(t->size);
    if (t->sent == NULL || t->back == NULL)
        return refuse(error, OPJIT_OUT_OF_MEMORY, "no memory", 0);
    const opjit_status status = opjit_device_allocate(context, t->size, &t->there, error);
    if (status != OPJIT_OK)
        return status;
    const uint64_t base = (uintptr_t)t->there, first = (base + GUARD + align - 1) / align;
    t->begin = (first | 1) * align - base;
    memset(t->sent, PATTERN, t->size);
    memcpy(t->sent + t->begin, host, bytes);
    return opjit_device_write(context, NULL, t->there, t->sent, t->size, error);
}

/* Buffers at the same address are one buffer. */
static opjit_status send(opjit_context *context, const opjit_kernel_info *info, void *const *buffers, twin *twins,
                         opjit_binding *bindings, opjit_error *error)
{
    for (uint32_t i = 0; i < info->inputs + info->outputs; i++) {
        uint64_t bytes = 0, align = 1;
        uint32_t same = 0;
        while (buffers[same] != buffers[i])
            same++;
        for (uint32_t k = i; k < info->inputs + info->outputs; k++) {
            if (buffers[k] != buffers[i])
                continue;
            bytes = info->buffers[k].bytes > bytes ? info->buffers[k].bytes : bytes;
            align = info->buffers[k].align > align ? info->buffers[k].align : align;
        }
        if (same == i) {
            const opjit_status status = make_twin(context, &twins[i], buffers[i], bytes, align, error);
            if (status != OPJIT_OK)
                return status;
        }
        bindings[i] = (opjit_binding){ (uint8_t *)twins[same].there + twins[same].begin, info->buffers[i].bytes };
    }
    return OPJIT_OK;
}

static bool is_output(const opjit_kernel_info *info, void *const *buffers, uint32_t index)
{
    for (uint32_t i = info->inputs; i < info->inputs + info->outputs; i++)
        if (buffers[i] == buffers[index])
            return true;
    return false;
}

static opjit_status take_back(opjit_context *context, const opjit_kernel_info *info, void *const *buffers, twin *twins,
                              opjit_error *error)
{
    for (uint32_t i = 0; i < info->inputs + info->outputs; i++) {
        const twin *t = &twins[i];
        const uint64_t end = t->begin + t->bytes;
        if (t->there == NULL)
            continue;
        const opjit_status status = opjit_device_read(context, NULL, t->back, t->there, t->size, error);
        if (status != OPJIT_OK)
            return status;
        if (memcmp(t->sent, t->back, t->begin) != 0 || memcmp(t->sent + end, t->back + end, t->size - end) != 0)
            return refuse(error, OPJIT_INTERNAL, "written beside", i);
        if (is_output(info, buffers, i))
            memcpy(buffers[i], t->back + t->begin, t->bytes);
        else if (memcmp(t->sent, t->back, t->size) != 0)
            return refuse(error, OPJIT_INTERNAL, "is read only, and was written to", i);
    }
    return OPJIT_OK;
}

opjit_status test_device_call(const opjit_kernel *kernel, void *const *buffers, const uint64_t *params,
                              opjit_error *error)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_binding bindings[MOST_BUFFERS];
    twin twins[MOST_BUFFERS] = { { NULL, NULL, 0, 0, 0, NULL } };
    opjit_call call = OPJIT_CALL_INIT;
    opjit_context *context;
    opjit_status status = test_device_context(&context, error);
    if (status == OPJIT_OK)
        status = opjit_kernel_get_info(kernel, &info, error);
    if (status != OPJIT_OK)
        return status;
    if (info.inputs + info.outputs > MOST_BUFFERS || (info.flags & OPJIT_KERNEL_ON_DEVICE) == 0)
        return refuse(error, OPJIT_INTERNAL, "too many of them, or a kernel for the CPU", 0);
    status = send(context, &info, buffers, twins, bindings, error);
    call.bindings = bindings;
    call.binding_count = info.inputs + info.outputs;
    call.params = params;
    call.param_count = info.param_count;
    if (status == OPJIT_OK)
        status = opjit_kernel_call(kernel, &call, error);
    if (status == OPJIT_OK)
        status = take_back(context, &info, buffers, twins, error);
    for (uint32_t i = 0; i < info.inputs + info.outputs; i++) {
        opjit_device_free(context, twins[i].there);
        free(twins[i].sent);
        free(twins[i].back);
    }
    return status;
}

bool test_device_begins(const opjit_kernel *kernel, uint32_t step)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    if (opjit_kernel_get_info(kernel, &info, NULL) != OPJIT_OK)
        return false;
    const opjit_variant_info *variants =
        (const opjit_variant_info *)(const void *)((const char *)info.meta + info.meta->variant_info);
    for (uint32_t i = 0; i < info.meta->variants; i++)
        if (variants[i].first_step == step)
            return true;
    return false;
}
