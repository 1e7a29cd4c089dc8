/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - the image: metadata and final machine code in one flat, position-independent, pre-relocated byte
 * string. The same bytes stand in memory, in a cache file and in an AOT object's data.  A GPU's code is what its
 * driver is given.
 *     header | kernel meta | zeros up to a multiple of 64 | code and its constants
 * The header holds format, ABI, sizes and an XXH3 checksum over all that follows it. */
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
    const char *const *buffer_names;        /* as many; entries may be NULL */
    const opjit_param_info *param_infos;    /* .name is ignored */
    const char *const *param_names;
    const opjit_step_info *step_infos;      /* .entry of a launch is ignored */
    const opjit_launch_info *launches;      /* one a step, for GPUs; NULL: no step is a launch.  .name is ignored */
    const char *const *launch_names;        /* as many */
    const opjit_variant_info *variant_infos;
    uint64_t shared_size, scratch_size, flops, bytes_read, bytes_written;
    uint32_t unproven_bounds;
} rt_meta_source;

#define RT_IMAGE_MOST UINT64_C(0x80000000) /* bytes: more than the most code and the metadata of the most items */

/* Appends an image to *out (which must be empty). */
opjit_status opjit_rt_image_build(const rt_meta_source *source, const void *code, size_t code_size, rt_bytes *out, opjit_error *error);

/* Appends the metadata alone to *out (which must be empty). */
opjit_status opjit_rt_meta_build(const rt_meta_source *source, rt_bytes *out, opjit_error *error);

/* The same for metadata alone, which is given size bytes, and code of code_size: nothing in it leads outside. */
opjit_status opjit_rt_meta_check(const void *meta, size_t size, uint64_t code_size, opjit_error *error);
/* Checks every offset, count and the checksum: after OPJIT_OK nothing in *image can lead outside of it, entry points
 * included.  size may be anything; CORRUPT says what is wrong.  *out_meta and *out_code point into image. */
opjit_status opjit_rt_image_check(const void *image, size_t size, const opjit_kernel_meta **out_meta, const uint8_t **out_code,
                                  size_t *out_code_size, opjit_error *error);

/* Executable mapping of an image's bytes; no page is ever writable and executable at one time. */
typedef struct rt_mapping {
    void *base;      /* the image header; NULL: none */
    size_t size;     /* of the mapping */
} rt_mapping;
/* Writable pages for the images of small kernels, one after another: one mapping serves many. */
typedef struct rt_code_pages {
    rt_lock lock;  /* of the rest */
    uint8_t *next;         /* NULL: none are mapped */
    size_t left;           /* bytes */
} rt_code_pages;
/* Maps pages before the first image needs them, and has the first one filled with zeros by the system; no matter if
 * there is no memory. */
void opjit_rt_code_pages_prepare(rt_code_pages *pages);
void opjit_rt_code_pages_free(rt_code_pages *pages); /* those that no image took */

/* Copies the (checked) image into pages, or if it is large or pages is NULL into a fresh anonymous mapping, then makes
 * that r-x; where this flip is forbidden, a memfd that is written as a file and mapped r-x; else UNAVAILABLE.  Metadata
 * and code of a small kernel share one page. */
opjit_status opjit_rt_map_code(rt_code_pages *pages, const void *image, size_t size, rt_mapping *out,
                               opjit_error *error);
void opjit_rt_unmap_code(rt_mapping *mapping);

#endif
