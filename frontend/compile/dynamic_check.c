/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_check.c - what a caller says of dynamic dimensions, and what they exclude. */
#include <string.h>

#include "frontend/frontend.h"

#include <opjit/dynamic.h>

enum { NAME_MOST = 63, ZEROS_MOST = 2 };

static opjit_status check_dim(const opjit_dim *dim, uint32_t index, opjit_error *error)
{
    const size_t length = dim->name == NULL ? 0 : strlen(dim->name);

    if (length == 0 || length > NAME_MOST)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{dims[%u].name}: {%zu} characters, must be 1 to %u", index, length,
                               NAME_MOST);
    if (dim->hi < 1 || dim->hi > INT32_MAX || dim->lo > dim->hi)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{dims[%u]} (%s): bounds {%llu} to %llu, must be 0 to %d in order%s", index,
                               dim->name, (unsigned long long)dim->lo, (unsigned long long)dim->hi, INT32_MAX,
                               dim->hi == 0 ? ", and more than 0 alone" : "");
    const uint64_t least = dim->lo == 0 ? 1 : dim->lo;
    if (dim->typical < least || dim->typical > dim->hi)
        return opjit_rt_refuse(
            error, OPJIT_INVALID_ARGUMENT, "{!argument}{dims[%u].typical} (%s): {%llu}, must be %llu to %llu", index,
            dim->name, (unsigned long long)dim->typical, (unsigned long long)least, (unsigned long long)dim->hi);
    return OPJIT_OK;
}

opjit_status opjit_fe_dims_check(const opjit_dim *dims, uint32_t dim_count, opjit_error *error)
{
    uint32_t zeros = 0;

    if (dims == NULL)
        return opjit_rt_refuse_null(error, "dims");
    if (dim_count < 1 || dim_count > OPJIT_MAX_DIMS)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{dim_count}: {%u}, must be 1 to %u",
                               dim_count, OPJIT_MAX_DIMS);
    for (uint32_t d = 0; d < dim_count; d++) {
        TRY(check_dim(&dims[d], d, error));
        if (dims[d].lo == 0 && ++zeros > ZEROS_MOST)
            return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                   "{dims[%u]} (%s): more than %u dimensions begin with {0}, each of which doubles the "
                                   "kernel's functions",
                                   d, dims[d].name, ZEROS_MOST);
        for (uint32_t i = 0; i < d; i++)
            if (strcmp(dims[i].name, dims[d].name) == 0)
                return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                       "{!argument}{dims[%u].name}: {\"%s\"}, is the name of dims[%u], too", d,
                                       dims[d].name, i);
    }
    return OPJIT_OK;
}

opjit_status opjit_fe_dynamic_check(const fe_options *options, const opjit_compile_options *given, opjit_error *error)
{
    if (given != NULL && given->late_count != 0)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{options}.{late_count}: {%u}, must be 0 where dimensions are dynamic",
                               given->late_count);
    if (rt_target_team(options->target) > 0)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{options}.{target}: \"{%s}\", must be a CPU where dimensions are dynamic",
                               options->target->text);
    return OPJIT_OK;
}
