/* SPDX-License-Identifier: Apache-2.0 */
/* dims.c - kernels with dynamic dimensions, which are compiled once for many sizes: the sizes of a call, and what its
 * buffers then need. */
#include "runtime/call/kernel_object.h"

#include <string.h>

COLD opjit_status opjit_rt_refuse_dim_count(const opjit_kernel *k, uint32_t given, opjit_error *error)
{
    return given == k->dims
               ? opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{!dims}call: dims is {NULL}")
               : opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                 "{!call}{!dim_count}call: {%u} dimensions given, %u needed", given, k->dims);
}

COLD static opjit_status refuse_dim(const program *p, uint32_t i, uint64_t value, opjit_error *error)
{
    const opjit_param_info *info = &program_dims(p)[i];

    opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{!dims}dimension %u (%s): {%llu} is outside of %lld to %lld",
                    i, program_string(p, info->name), (unsigned long long)value, (long long)info->lo,
                    (long long)info->hi);
    return opjit_rt_place(error, OPJIT_INVALID_ARGUMENT, NULL, NULL, (int32_t)i);
}

opjit_status opjit_rt_check_dims(const program *p, const uint64_t *dims, opjit_error *error)
{
    const opjit_param_info *infos = program_dims(p);
    const uint32_t count = rt_meta_dims(p->meta);

    for (uint32_t i = 0; i < count; i++)
        if (dims[i] < (uint64_t)infos[i].lo || dims[i] > (uint64_t)infos[i].hi) /* neither is below 0 */
            return refuse_dim(p, i, dims[i], error);
    return OPJIT_OK;
}

void opjit_rt_size_slots(const opjit_kernel *k, const program *p, const uint64_t *dims, slot *slots)
{
    const opjit_size_form *forms = rt_meta_forms(p->meta);
    const rt_space space = rt_meta_space(p->meta);

    memcpy(slots, k->slots, k->buffers * sizeof *slots);
    for (uint32_t i = 0; i < k->bindings; i++)
        slots[i].bytes = opjit_rt_form_value(&space, &forms[i * OPJIT_BUFFER_FORMS], dims);
}

opjit_status opjit_kernel_sizes(const opjit_kernel *kernel, const uint64_t *dims, uint32_t dim_count, uint32_t buffer,
                                uint64_t sizes[8], uint64_t *bytes, opjit_error *error)
{
    uint64_t own[OPJIT_MAX_DIMS];

    opjit_rt_error_clear(error);
    if (bytes != NULL)
        *bytes = 0;
    if (sizes != NULL)
        memset(sizes, 0, OPJIT_MAX_RANK * sizeof *sizes);
    if (kernel == NULL || sizes == NULL || bytes == NULL)
        return opjit_rt_refuse_null(error, kernel == NULL ? "kernel" : sizes == NULL ? "sizes" : "bytes");
    if (dim_count != kernel->dims || (dims == NULL && dim_count != 0))
        return opjit_rt_refuse_dim_count(kernel, dim_count, error);
    if (buffer >= kernel->bindings)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{buffer}: {%u}, must be below %u, the inputs and outputs", buffer,
                               kernel->bindings);
    const program *p = atomic_load(&kernel->active);
    const opjit_buffer_info *info = &program_buffers(p)[buffer];
    if (dim_count == 0) {
        memcpy(sizes, info->sizes, sizeof info->sizes);
        *bytes = info->bytes;
        return OPJIT_OK;
    }
    memcpy(own, dims, dim_count * sizeof *own); /* what is checked is what is used */
    TRY(opjit_rt_check_dims(p, own, error));
    const opjit_size_form *forms = rt_meta_forms(p->meta) + (size_t)buffer * OPJIT_BUFFER_FORMS;
    const rt_space space = rt_meta_space(p->meta);
    *bytes = opjit_rt_form_value(&space, forms, own);
    for (uint32_t d = 0; d < OPJIT_MAX_RANK; d++)
        sizes[d] = opjit_rt_form_value(&space, &forms[1 + d], own);
    return OPJIT_OK;
}
