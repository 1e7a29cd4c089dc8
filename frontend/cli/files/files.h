/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - whole files in, whole files out.  Messages do not name the file: it may be as long as a message, and
 * callers know it. */
#ifndef OPJIT_CLI_FILES_H
#define OPJIT_CLI_FILES_H

#include <sys/stat.h>

#include "runtime/base/base.h"

#define FILES_MAX_MODEL ((uint64_t)64 << 20) /* bytes of a model: its values take some 50 times as much memory */
#define FILES_MAX_DATA ((uint64_t)4 << 30)   /* bytes of a data file and of a resource */

/* A file's place: the folder that it lies in, open, and its name there.  There may be no such file yet. */
typedef struct cli_file {
    int folder;
    char name[256]; /* NAME_MAX and NUL */
} cli_file;

/* Finds what the model `base` calls path, relative to the folder that it lies in.  Links are followed; where the way
 * ends has to be inside of that folder, unless allow_outside.  The caller closes *out. */
opjit_status opjit_cli_file_find(const char *base, const char *path, bool allow_outside, cli_file *out,
                                 opjit_error *error);
void opjit_cli_file_close(cli_file *file);
static inline bool cli_is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Reads a regular file of at most limit bytes into *out, which is empty and gets a NUL behind its last byte. */
opjit_status opjit_cli_read_file(const char *path, uint64_t limit, rt_bytes *out, opjit_error *error);
/* Maps one instead: its bytes to read, at the beginning of a page; those behind its last one on that page are 0.
 * data NULL: none, or an empty file. */
typedef struct cli_mapped {
    const uint8_t *data;
    size_t size;
} cli_mapped;
opjit_status opjit_cli_map_file(const char *path, uint64_t limit, cli_mapped *out, opjit_error *error);
void opjit_cli_unmap(cli_mapped *file);
opjit_status opjit_cli_read_input(uint64_t limit, rt_bytes *out, opjit_error *error); /* likewise, standard input */
opjit_status opjit_cli_file_read(const cli_file *file, uint64_t limit, rt_bytes *out, opjit_error *error);

/* Whether the file may be written: it is a regular one, or none yet in a folder that may be written to. */
opjit_status opjit_cli_file_can_write(const cli_file *file, opjit_error *error);

/* Writes head and body to a new file that takes the place of the old one, and its rights, once it is on the disk:
 * whatever happens, the file is complete or as it was before. */
opjit_status opjit_cli_file_write(const cli_file *file, const rt_bytes *head, const void *body, size_t size,
                                  opjit_error *error);
/* Waits until what was written into the folder has its name on the disk, too. */
opjit_status opjit_cli_folder_sync(int folder, opjit_error *error);

/* path, if it is absolute, else behind the folder that the file `base` lies in: for messages.  From arena; NULL: no
 * memory. */
char *opjit_cli_beside(rt_arena *arena, const char *base, const char *path);

#endif
