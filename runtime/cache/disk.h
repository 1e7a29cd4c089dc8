/* SPDX-License-Identifier: Apache-2.0 */
/* disk.h - disk cache: one file for a kernel's image, for the code of a function that kernels share, or for what is
 * known of a model, in a folder of the user's own that any number of processes share.  Nothing in it is trusted: a file
 * is used only if it is the user's alone, whole, and made for exactly the key; whatever else lies there is removed and
 * made again.  Knows no IR and no LLVM. */
#ifndef OPJIT_RUNTIME_CACHE_DISK_H
#define OPJIT_RUNTIME_CACHE_DISK_H

#include "runtime/base/context.h"

/* Opens the folder at path if it is there; the first store makes it.  capacity: bound of all files' bytes, above
 * which the least recently used ones go.  Thread safe from here on. */
opjit_status opjit_rt_disk_create(rt_core *core, const char *path, uint64_t capacity, rt_disk **out,
                                  opjit_error *error);
void opjit_rt_disk_destroy(rt_disk *disk); /* NULL is fine */

typedef enum rt_disk_result {
    RT_DISK_ABSENT,   /* also where the folder can't be used: a warning event said so once */
    RT_DISK_FOUND,
    RT_DISK_REJECTED  /* there was a file, which is gone now: a warning event says why */
} rt_disk_result;
typedef enum rt_disk_kind {
    RT_DISK_KERNEL,  /* the file's content is an image */
    RT_DISK_FUNCTION, /* code for the code generator; its key begins with the function's name and a NUL */
    RT_DISK_MODEL    /* what is known of a model; its key begins with a word for that and a NUL */
} rt_disk_kind;
/* What a file is made for and named after. */
typedef struct rt_disk_key {
    const void *bytes; size_t size;
    rt_hash hash; /* of the bytes */
    rt_disk_kind kind;
} rt_disk_key;
/* Puts the image or code of the key into *image, which is empty and stays so unless found.  A found image has passed
 * opjit_rt_image_check, found code the test of its checksum. */
rt_disk_result opjit_rt_disk_load(rt_disk *disk, const rt_disk_key *key, rt_bytes *image);
/* The content of a model's file where it is mapped, read-only, at a multiple of 64: also when the file has gone from
 * the folder. */
typedef struct rt_disk_map {
    void *base; /* NULL: nothing is mapped */
    size_t size;
    const uint8_t *content;
    size_t content_size;
} rt_disk_map;
/* The same as opjit_rt_disk_load without a copy.  *out is mapped where the file was found. */
rt_disk_result opjit_rt_disk_map(rt_disk *disk, const rt_disk_key *key, rt_disk_map *out);
void opjit_rt_disk_unmap(rt_disk_map *map); /* once more is fine */
/* Writes the file of a key that has none, whole or not at all.  false: not written, a warning event said why once. */
bool opjit_rt_disk_store(rt_disk *disk, const rt_disk_key *key, const void *image, size_t image_size);

/* --- looking after it --------------------------------------------------------------------------------------------- */
typedef struct rt_disk_entry {
    rt_hash key;
    const char *name, *target; /* of the kernel; "" where damaged is set.  Other kinds have a name alone */
    rt_disk_kind kind;         /* KERNEL where damaged is set */
    const char *damaged;       /* why load would reject it; NULL: it would not */
    uint64_t bytes;
    int64_t used;              /* seconds since 1970 */
    uint32_t level;            /* opjit_level; 0 where damaged is set, and of other kinds */
} rt_disk_entry;
/* The bound of all files. */
uint64_t opjit_rt_disk_capacity(const rt_disk *disk);
/* Called for each file of the cache in order of their keys; entry is valid during the call only.  false: no more. */
typedef bool (*rt_disk_visit_fn)(void *user, const rt_disk_entry *entry);
/* Visits the file with the key, or all files (key NULL).  OPJIT_OK for a folder that isn't there.  IO: it can't be
 * used or read. */
opjit_status opjit_rt_disk_visit(rt_disk *disk, const rt_hash *key, rt_disk_visit_fn visit, void *user,
                                 opjit_error *error);
/* Removes the file with the key, or all files (key NULL); *out_count: how many.  IO: not all. */
opjit_status opjit_rt_disk_drop(rt_disk *disk, const rt_hash *key, uint32_t *out_count, opjit_error *error);
/* The key that 32 digits stand for; false: they are none. */
bool opjit_rt_disk_name_to_key(const char *digits, size_t length, rt_hash *out);

#endif
