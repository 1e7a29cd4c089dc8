/* SPDX-License-Identifier: Apache-2.0 */
/* image_layout.h - the image's header as bytes, for the files that write, check and map images. */
#ifndef OPJIT_RUNTIME_IMAGE_IMAGE_LAYOUT_H
#define OPJIT_RUNTIME_IMAGE_IMAGE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define IMAGE_MAGIC "OPJITIMG" /* 8 bytes, no NUL */
#define IMAGE_FORMAT 3u
#define MOST_ITEMS 65536u     /* limit of buffers, parameters, steps and variants each: far above what a graph makes */
#define MOST_CODE 0x40000000u /* 1 GiB: offsets stay far below 2^32 */
#define MOST_THREADS 1024u    /* of a block of a GPU */
#define MOST_SHARED (UINT32_C(1) << 20)
#define MOST_WORKSPACE (UINT64_C(1) << 40)

/* Native byte order: an image of the other byte order has another format number.  The hash covers all bytes after
 * itself. */
typedef struct image_header {
    char magic[8];
    uint64_t hash_lo, hash_hi;
    uint32_t format, abi;
    uint64_t meta_size;   /* the metadata follows the header */
    uint64_t code_offset; /* the next multiple after the metadata that the architecture allows */
    uint64_t code_size;
    uint64_t reserved;
} image_header;
_Static_assert(sizeof(image_header) == 64, "metadata begins at a multiple of 64");

#define HASHED_FROM offsetof(image_header, format)

#endif
