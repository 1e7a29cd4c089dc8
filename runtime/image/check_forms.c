/* SPDX-License-Identifier: Apache-2.0 */
/* check_forms.c - checks what an image's metadata says of dynamic dimensions: their intervals, the ranges that variants
 * are for, and the numbers that follow from sizes. */
#include "runtime/image/check_forms.h"

#include <string.h>

opjit_status opjit_rt_check_range(const char *field, uint64_t value, uint64_t first, uint64_t last, opjit_error *error)
{
    if (value >= first && value <= last)
        return OPJIT_OK;
    return first == last
               ? CORRUPT("{%s}: {%llu}, must be %llu", field, (unsigned long long)value, (unsigned long long)first)
               : CORRUPT("{%s}: {%llu}, must be %llu to %llu", field, (unsigned long long)value,
                         (unsigned long long)first, (unsigned long long)last);
}

/* One form, whose largest value for sizes in these intervals stands elsewhere in the metadata. */
static opjit_status check_form(const opjit_kernel_meta *meta, uint64_t i, const opjit_param_info *dims, uint64_t value,
                               opjit_error *error)
{
    const rt_space space = rt_meta_space(meta);
    uint64_t most;

    if (!opjit_rt_form_range(rt_meta_forms(meta) + i, &space, dims, &most))
        return CORRUPT("{forms[%llu]}: divides by less than 1, has powers above 4, overflows or can be negative",
                       (unsigned long long)i);
    if (most != value)
        return CORRUPT("{forms[%llu]}: {%llu} at its largest, must be %llu as the metadata says elsewhere",
                       (unsigned long long)i, (unsigned long long)most, (unsigned long long)value);
    return OPJIT_OK;
}

/* The parameters that are dynamic dimensions, in number and each. */
static opjit_status check_dims(const opjit_kernel_meta *meta, opjit_error *error)
{
    const opjit_param_info *params = (const opjit_param_info *)((const char *)meta + meta->param_info);

    const uint32_t most = meta->params < OPJIT_MAX_DIMS ? meta->params : OPJIT_MAX_DIMS;

    TRY(opjit_rt_check_range("dims", meta->dims, 0, most, error));
    for (uint32_t i = meta->params - meta->dims; i < meta->params; i++) {
        if (params[i].dtype != DML_TENSOR_DATA_TYPE_INT64)
            return CORRUPT("{param_info[%u].dtype}: {%u}, must be %u (INT64) of a dimension", i, params[i].dtype,
                           (unsigned)DML_TENSOR_DATA_TYPE_INT64);
        if (params[i].lo < 0)
            return CORRUPT("{param_info[%u].lo}: {%lld}, must be at least 0 of a dimension", i,
                           (long long)params[i].lo);
    }
    return OPJIT_OK;
}

/* Quotients of dimensions, whose intervals are put behind these. */
static opjit_status check_quotients(const opjit_kernel_meta *meta, opjit_param_info dims[OPJIT_MAX_POWERS],
                                    opjit_error *error)
{
    const rt_space space = rt_meta_space(meta);

    if (space.count == 0)
        return OPJIT_OK;
    TRY(opjit_rt_check_range("quotient_count", space.count, 1, OPJIT_MAX_POWERS - space.dims, error));
    if (!rt_array_inside(meta, meta->quotients, space.count, sizeof *space.quotients))
        return CORRUPT("{quotients}: {%u}, where not all entries lie in the metadata", meta->quotients);
    for (uint32_t k = 0; k < space.count; k++)
        if (space.quotients[k].dim >= space.dims)
            return CORRUPT("{quotients[%u].dim}: {%u}, must be below %u", k, space.quotients[k].dim, space.dims);
    return opjit_rt_quotient_ranges(&space, dims)
               ? OPJIT_OK
               : CORRUPT("{quotients}: {by} is below 1, or one can be negative or overflows");
}

static bool is_constant(const opjit_size_form *form)
{
    static const uint8_t none[OPJIT_MAX_POWERS];
    return form->factors[0] == 0 && form->factors[1] == 0 && memcmp(form->powers[1], none, sizeof none) == 0;
}

/* Ranges of sizes, in the intervals of the dimensions.  That they have all sizes, a call finds out. */
static opjit_status check_ranges(const opjit_kernel_meta *meta, const opjit_param_info *dims, opjit_error *error)
{
    const opjit_range_info *ranges = rt_meta_ranges(meta);

    if (ranges == NULL)
        return OPJIT_OK;
    if (!rt_array_inside(meta, meta->ranges, meta->variants, sizeof *ranges))
        return CORRUPT("{ranges}: {%u}, where not all entries lie in the metadata", meta->ranges);
    for (uint32_t i = 0; i < meta->variants; i++)
        for (uint32_t d = 0; d < meta->dims; d++)
            if (ranges[i].lo[d] < dims[d].lo || ranges[i].lo[d] > ranges[i].hi[d] || ranges[i].hi[d] > dims[d].hi)
                return CORRUPT("{ranges[%u].lo[%u]}: {%u}, to %u no range of %lld to %lld", i, d, ranges[i].lo[d],
                               ranges[i].hi[d], (long long)dims[d].lo, (long long)dims[d].hi);
    return OPJIT_OK;
}

/* The intervals of the dimensions and their quotients in the variant that has the step. */
static void dims_of_step(const opjit_kernel_meta *meta, uint32_t step, opjit_param_info out[OPJIT_MAX_POWERS])
{
    const opjit_variant_info *variants = (const opjit_variant_info *)((const char *)meta + meta->variant_info);
    const opjit_range_info *ranges = rt_meta_ranges(meta);

    for (uint32_t v = 0; v < meta->variants && ranges != NULL; v++)
        for (uint32_t d = 0; d < meta->dims && step - variants[v].first_step < variants[v].steps; d++) {
            out[d].lo = ranges[v].lo[d];
            out[d].hi = ranges[v].hi[d];
        }
    const rt_space space = rt_meta_space(meta);
    opjit_rt_quotient_ranges(&space, out); /* they are within those that were checked */
}

static opjit_status check_step_forms(const opjit_kernel_meta *meta, const opjit_param_info *dims, uint64_t first,
                                     opjit_error *error)
{
    const opjit_step_info *steps = (const opjit_step_info *)((const char *)meta + meta->step_info);

    for (uint32_t i = 0; i < meta->steps; i++) {
        opjit_param_info own[OPJIT_MAX_POWERS];
        memcpy(own, dims, sizeof own);
        dims_of_step(meta, i, own);
        TRY(check_form(meta, first + i, own, steps[i].extent, error));
        if (i - meta->once_first < meta->once_steps && !is_constant(rt_meta_forms(meta) + first + i))
            return CORRUPT("{forms[%llu]}: must be a constant, the step runs once", (unsigned long long)(first + i));
    }
    return OPJIT_OK;
}

opjit_status opjit_rt_check_forms(const opjit_kernel_meta *meta, opjit_error *error)
{
    const opjit_buffer_info *buffers = (const opjit_buffer_info *)((const char *)meta + meta->buffer_info);
    opjit_param_info dims[OPJIT_MAX_POWERS] = { { .dtype = 0 } };
    const uint32_t bindings = meta->inputs + meta->outputs;
    uint64_t form = 0;

    if (!rt_meta_has(meta, forms))
        return OPJIT_OK;
    TRY(check_dims(meta, error));
    if (meta->dims == 0)
        return opjit_rt_check_range("forms", meta->forms, 0, 0, error);
    if (!rt_array_inside(meta, meta->forms, rt_form_count(meta->inputs, meta->outputs, meta->steps),
                      sizeof(opjit_size_form)))
        return CORRUPT("{forms}: {%u}, where not all entries lie in the metadata", meta->forms);
    memcpy(dims, (const opjit_param_info *)((const char *)meta + meta->param_info) + (meta->params - meta->dims),
           meta->dims * sizeof *dims);
    TRY(check_quotients(meta, dims, error));
    TRY(check_ranges(meta, dims, error));
    for (uint32_t i = 0; i < bindings; i++) {
        TRY(check_form(meta, form++, dims, buffers[i].bytes, error));
        for (uint32_t d = 0; d < OPJIT_MAX_RANK; d++)
            TRY(check_form(meta, form++, dims, buffers[i].sizes[d], error));
    }
    return check_step_forms(meta, dims, form, error);
}
