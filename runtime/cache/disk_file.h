/* SPDX-License-Identifier: Apache-2.0 */
/* disk_file.h - a file of the disk cache as bytes, for disk.c and disk_file.c.
 *     header | key | zeros up to a multiple of 64 | content: image, code, what is known of a model
 * The header's checksum is over its own fields and the key, and over a content that is no image.  An image has its
 * own. */
#ifndef OPJIT_RUNTIME_CACHE_DISK_FILE_H
#define OPJIT_RUNTIME_CACHE_DISK_FILE_H

#include <sys/stat.h>

#include "runtime/cache/disk.h"

#define DISK_FILE_NAME_SIZE 40u /* 32 digits of the key's hash, ".opjit" and NUL */
#define DISK_FILE_END ".opjit"
#define DISK_UNFINISHED ".opjit-new" /* the folder of files that are being written, where files need names for that */

void opjit_rt_disk_file_name(rt_hash key, char name[static DISK_FILE_NAME_SIZE]);
bool opjit_rt_disk_is_file_name(const char *name);

/* Why a file is not to be read: it is not the user's alone, or no plain file; NULL: it is. */
const char *opjit_rt_disk_stranger(const struct stat *info, uid_t user);
/* Reads an open file whole into *out.  Why it could not be; NULL: it was. */
const char *opjit_rt_disk_file_read(int file, const struct stat *info, rt_bytes *out);
/* Finds the image in the bytes of a file made for key (NULL: for any).  Why it can't be used; NULL: it can. */
const char *opjit_rt_disk_file_check(const uint8_t *bytes, size_t size, const rt_disk_key *key,
                                     const uint8_t **out_image, size_t *out_image_size);
/* What a file is that passed; of one that is no kernel's, the name that its key begins with: *out_name. */
rt_disk_kind opjit_rt_disk_file_kind(const uint8_t *bytes, const char **out_name);
/* Writes a whole file; false with errno. */
bool opjit_rt_disk_file_write(int file, const rt_disk_key *key, const void *image, size_t image_size);

#endif
