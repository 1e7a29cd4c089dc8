/* SPDX-License-Identifier: Apache-2.0 */
/* disk_folder.h - the disk cache's folder, for disk.c. */
#ifndef OPJIT_RUNTIME_DISK_FOLDER_H
#define OPJIT_RUNTIME_DISK_FOLDER_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/types.h>

enum { FOLDER_UNKNOWN = -1, FOLDER_REFUSED = -2 };
#define FOLDER_HOW (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The folder's descriptor; FOLDER_UNKNOWN: it isn't there, and was not to be made; FOLDER_REFUSED: *out_reason
 * says why it is not used.  *out_user: whose it has to be, this process's.  path is as it was when this returns. */
int opjit_rt_disk_folder_open(char *path, bool make, uid_t *out_user, const char **out_reason);
/* Calls visit for each name in the folder, which stays open.  false: it can't be read. */
bool opjit_rt_disk_for_each_name(int folder, void (*visit)(int folder, const char *name, void *user), void *user);

#endif
