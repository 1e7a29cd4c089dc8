/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - the image: metadata and final machine code in one flat, position-independent, relocated byte string.  The
 * same bytes stand in memory, in a cache file and in an AOT object's data.  A GPU's code is whatever its driver takes.
 *     header | kernel meta | zeros up to a multiple of 64 | code and its constants
 * The header holds format, ABI, sizes and an XXH3 checksum of everything after itself. */
#ifndef OPJIT_RUNTIME_IMAGE_IMAGE_H
#define OPJIT_RUNTIME_IMAGE_IMAGE_H

#include <opjit/abi.h>

#include "runtime/base/base.h"
#include "runtime/base/lock.h"

/* What the compiler knows about a kernel, before it is laid out as opjit_kernel_meta. */
typedef struct rt_meta_source {
    uint8_t key[16];
    const char *name, *target;
    uint32_t level;
    uint64_t features[4];
    uint32_t inputs, outputs, constants, params, steps, variants;
    const opjit_buffer_info *buffers;       /* inputs, outputs, constants; .name is ignored */
    const char *const *buffer_names;        /* one per buffer; entries may be NULL */
    const opjit_param_info *param_infos;    /* .name is ignored */
    const char *const *param_names;
    const opjit_step_info *step_infos;      /* .entry of a launch is ignored */
    const opjit_launch_info *launches;      /* one per step, for GPUs; NULL: no step is a launch. .name is ignored */
    const char *const *launch_names;        /* one per launch */
    const opjit_variant_info *variant_infos;
    uint64_t shared_size, scratch_size, flops, bytes_read, bytes_written;
    uint32_t unproven_bounds, once_first, once_steps;
    uint64_t kept_size, kept_layout;
    uint32_t dims;                          /* of params the last ones */
    const opjit_size_form *forms;           /* as opjit_kernel_meta.forms; not looked at where dims is 0 */
    const opjit_range_info *ranges;         /* one per variant; NULL: one variant has all sizes */
    const opjit_quotient *quotients;        /* of dimensions, quotient_count of them */
    uint32_t quotient_count;
} rt_meta_source;

/* Whether metadata, which earlier versions wrote shorter, has the field. */
#define rt_meta_has(meta, field)                                                                                       \
    ((meta)->buffer_info >= offsetof(opjit_kernel_meta, field) + sizeof((meta)->field))
static inline uint64_t rt_meta_kept(const opjit_kernel_meta *meta)
{
    return rt_meta_has(meta, kept_layout) ? meta->kept_size : 0;
}
/* Dynamic dimensions; 0: all sizes are known. */
static inline uint32_t rt_meta_dims(const opjit_kernel_meta *meta)
{
    return rt_meta_has(meta, forms) ? meta->dims : 0;
}
/* The metadata's forms: those of inputs and outputs, then those of steps; NULL: it has none. */
static inline const opjit_size_form *rt_meta_forms(const opjit_kernel_meta *meta)
{
    return rt_meta_dims(meta) == 0 ? NULL
                                   : (const opjit_size_form *)(const void *)((const char *)meta + meta->forms);
}
/* By variant; NULL: one has all sizes. */
static inline const opjit_range_info *rt_meta_ranges(const opjit_kernel_meta *meta)
{
    return !rt_meta_has(meta, reserved2) || meta->ranges == 0
               ? NULL
               : (const opjit_range_info *)(const void *)((const char *)meta + meta->ranges);
}
/* What forms have powers of: dynamic dimensions, then quotients of these. */
typedef struct rt_space {
    uint32_t dims, count; /* of quotients */
    const opjit_quotient *quotients;
} rt_space;
static inline rt_space rt_meta_space(const opjit_kernel_meta *meta)
{
    const bool has = rt_meta_dims(meta) != 0 && rt_meta_has(meta, quotient_count) && meta->quotient_count != 0;
    return (rt_space){ rt_meta_dims(meta), has ? meta->quotient_count : 0,
                       has ? (const opjit_quotient *)(const void *)((const char *)meta + meta->quotients) : NULL };
}
static inline int64_t rt_quotient(const opjit_quotient *q, int64_t size)
{
    return (size + q->plus) / q->by;
}
/* Whether the sizes of `count` dimensions are in the range. */
static inline bool rt_range_has(const opjit_range_info *range, const uint64_t *dims, uint32_t count)
{
    for (uint32_t d = 0; d < count; d++)
        if (dims[d] - range->lo[d] > range->hi[d] - range->lo[d]) /* below lo it wraps */
            return false;
    return true;
}
static inline uint64_t rt_form_count(uint32_t inputs, uint32_t outputs, uint32_t steps)
{
    return ((uint64_t)inputs + outputs) * OPJIT_BUFFER_FORMS + steps;
}

#define RT_IMAGE_MOST UINT64_C(0x80000000) /* bytes: more than the largest code plus the largest metadata */

/* Appends an image to *out, which must be empty. */
opjit_status opjit_rt_image_build(const rt_meta_source *source, const void *code, size_t code_size, rt_bytes *out,
                                  opjit_error *error);

/* Appends the metadata alone to *out, which must be empty. */
opjit_status opjit_rt_meta_build(const rt_meta_source *source, rt_bytes *out, opjit_error *error);

/* Checks metadata alone, of size bytes, for code of code_size bytes: nothing in it leads outside. */
opjit_status opjit_rt_meta_check(const void *meta, size_t size, uint64_t code_size, opjit_error *error);
/* Checks the checksum and every offset and count.  After OPJIT_OK nothing in *image leads outside of it, entry points
 * included.  size may be anything; CORRUPT says what is wrong.  *out_meta and *out_code point into image. */
opjit_status opjit_rt_image_check(const void *image, size_t size, const opjit_kernel_meta **out_meta,
                                  const uint8_t **out_code, size_t *out_code_size, opjit_error *error);

/* --- form.c ------------------------------------------------------------------------------------------------------- */
/* The value of a checked form for sizes inside of the intervals that it was checked with. */
uint64_t opjit_rt_form_value(const rt_space *space, const opjit_size_form *form, const uint64_t *dims);
/* Appends the intervals of quotients to those of the dimensions; none of them is below 0. */
bool opjit_rt_quotient_ranges(const rt_space *space, opjit_param_info dims[OPJIT_MAX_POWERS]);
/* Whether a form is good for all sizes of dimensions and quotients inside their intervals: nothing
 * in it overflows and no result is negative.  *most is then what no result is above: each term by itself at the end of
 * the intervals where it is largest. */
bool opjit_rt_form_range(const opjit_size_form *form, const rt_space *space, const opjit_param_info *dims,
                         uint64_t *most);

/* An executable mapping of an image's bytes.  No page is ever writable and executable at the same time. */
typedef struct rt_mapping {
    void *base;      /* the image header; NULL: not mapped */
    size_t size;     /* of the mapping */
} rt_mapping;
/* Writable pages that small kernels' images take one after another: one mapping serves many. */
typedef struct rt_code_pages {
    rt_lock lock;  /* guards the other fields */
    uint8_t *next;         /* NULL: nothing mapped */
    size_t left;           /* bytes */
} rt_code_pages;
/* Maps pages before the first image needs them and lets the system zero the first one.  Failing for lack of memory is
 * harmless. */
void opjit_rt_code_pages_prepare(rt_code_pages *pages);
void opjit_rt_code_pages_free(rt_code_pages *pages); /* unmaps the pages that no image took */

/* Copies the (checked) image into pages, or, if it is large or pages is NULL, into a fresh anonymous mapping, and makes
 * that r-x.  Where the system forbids the change to r-x, writes the image into a memfd and maps that r-x; else
 * UNAVAILABLE.  Metadata and code of a small kernel share a page. */
opjit_status opjit_rt_map_code(rt_code_pages *pages, const void *image, size_t size, rt_mapping *out,
                               opjit_error *error);
void opjit_rt_unmap_code(rt_mapping *mapping);

#endif
