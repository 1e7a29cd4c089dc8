/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - whole files in, whole files out.  Messages do not name the file: it may be as long as a message, and
 * callers know it. */
#ifndef OPJIT_CLI_FILES_H
#define OPJIT_CLI_FILES_H

#include "runtime/base.h"

#define FILES_MAX_MODEL ((uint64_t)64 << 20) /* bytes of a model: its values take some 50 times as much memory */
#define FILES_MAX_DATA ((uint64_t)4 << 30)   /* bytes of a data file and of a resource */

/* Reads a regular file of at most limit bytes into *out, which is empty and gets a NUL behind its last byte. */
opjit_status opjit_cli_read_input(uint64_t limit, rt_bytes *out, opjit_error *error); /* likewise, standard input */
opjit_status opjit_cli_read_file(const char *path, uint64_t limit, rt_bytes *out, opjit_error *error);

/* Whether a file can be put at path: its folder is there and may be written to, and path is no folder. */
opjit_status opjit_cli_can_write(const char *path, opjit_error *error);

/* Writes head and body to a temporary file beside path and renames it: path is complete or as it was before. */
opjit_status opjit_cli_write_file(const char *path, const rt_bytes *head, const void *body, size_t size,
                                  opjit_error *error);

/* path, if it is absolute, else relative to the folder that the file `base` lies in; from arena.  NULL: no memory. */
char *opjit_cli_beside(rt_arena *arena, const char *base, const char *path);

#endif
