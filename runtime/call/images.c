/* SPDX-License-Identifier: Apache-2.0 */
/* images.c - kernels as bytes: the image of one, given out and taken in, and whether it is whole. */
#include "runtime/call/kernel_object.h"

#include <string.h>

opjit_status opjit_kernel_get_image(const opjit_kernel *kernel, const void **out_image, uint64_t *out_bytes,
                                    opjit_error *error)
{
    const program *p;

    opjit_rt_error_clear(error);
    if (kernel == NULL || out_image == NULL || out_bytes == NULL)
        return opjit_rt_refuse_null(error, kernel == NULL ? "kernel" : out_image == NULL ? "out_image" : "out_bytes");
    *out_image = NULL;
    *out_bytes = 0;
    p = atomic_load(&kernel->active);
    if (p->owner != NULL)
        return opjit_kernel_get_image(p->owner, out_image, out_bytes, error);
    if ((p->mapping.base == NULL && p->launches == NULL) || kernel->hooks.customs != NULL)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{!argument}{kernel} {%s} is %s, so it has no image",
                               program_string(p, p->meta->name),
                               p->interpret != NULL            ? "interpreted"
                               : kernel->hooks.customs != NULL ? "one with custom operators"
                                                               : "a library's");
    *out_image = p->launches != NULL ? p->copy : p->mapping.base;
    *out_bytes = p->image_size;
    return OPJIT_OK;
}

opjit_status opjit_kernel_load(opjit_context *context, const void *image, uint64_t bytes, const void *const *constants,
                               uint32_t constant_count, opjit_kernel **out_kernel, opjit_error *error)
{
    opjit_status status;
    void *copy;

    opjit_rt_error_clear(error);
    if (out_kernel == NULL)
        return opjit_rt_refuse_null(error, "out_kernel");
    *out_kernel = NULL;
    if (context == NULL || image == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "image");
    if ((uintptr_t)image % 8 != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{image}: at {%p}, must be a multiple of 8",
                               image);
    if (bytes > RT_IMAGE_MOST)
        return opjit_rt_refuse(error, OPJIT_CORRUPT, "{image} {bytes}: {%llu}, more than any",
                               (unsigned long long)bytes);
    copy = opjit_rt_allocate(&context->core->allocator, (size_t)bytes, 16);
    if (copy == NULL)
        return opjit_rt_no_memory(error);
    memcpy(copy, image, (size_t)bytes); /* before anything is judged: the caller's memory may be shared with others */
    status = opjit_rt_kernel_create(context->core, copy, (size_t)bytes, (void *const *)(uintptr_t)constants,
                                    constant_count, NULL, NULL, out_kernel, error); /* kernels only read them */
    opjit_rt_release(&context->core->allocator, copy, (size_t)bytes);
    return status;
}

bool opjit_rt_kernel_is_whole(const opjit_kernel *kernel)
{
    const opjit_kernel_meta *meta;
    const uint8_t *code;
    size_t code_size;

    for (const program *p = atomic_load(&kernel->active); p != NULL; p = p->older) {
        const void *const image = p->mapping.base != NULL ? p->mapping.base : p->copy;
        if (image != NULL && opjit_rt_image_check(image, p->image_size, &meta, &code, &code_size, NULL) != OPJIT_OK)
            return false;
    }
    return true;
}
