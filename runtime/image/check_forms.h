/* SPDX-License-Identifier: Apache-2.0 */
/* check_forms.h - what the checks of an image's metadata share. */
#ifndef OPJIT_RUNTIME_IMAGE_CHECK_FORMS_H
#define OPJIT_RUNTIME_IMAGE_CHECK_FORMS_H

#include "runtime/image/image.h"

/* Fields are called as in opjit/abi.h, and those of the image's header as in image_layout.h. */
#define CORRUPT(...) opjit_rt_refuse(error, OPJIT_CORRUPT, "{image} " __VA_ARGS__)

/* The size of the first version, without the fields added later. */
#define META_LEAST offsetof(opjit_kernel_meta, unproven_bounds)

/* Whether the array of count elements at offset is aligned and lies in the metadata. */
static inline bool rt_array_inside(const opjit_kernel_meta *meta, uint32_t offset, uint64_t count, uint64_t size)
{
    return offset % 8 == 0 && offset >= META_LEAST && offset <= meta->size && count * size <= meta->size - offset;
}

/* The field's value is one of first to last. */
opjit_status opjit_rt_check_range(const char *field, uint64_t value, uint64_t first, uint64_t last,
                                  opjit_error *error);

/* check_forms.c: dynamic dimensions, and what follows from their sizes.  After buffers, parameters, steps and variants
 * have been checked. */
opjit_status opjit_rt_check_forms(const opjit_kernel_meta *meta, opjit_error *error);

#endif
