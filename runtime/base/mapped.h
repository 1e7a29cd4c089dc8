/* SPDX-License-Identifier: Apache-2.0 */
/* mapped.h - files of weights that are mapped.  What a process read of them counts as its memory until it says that it
 * is done; what it reads then comes from the system's cache of files again. */
#ifndef OPJIT_RUNTIME_BASE_MAPPED_H
#define OPJIT_RUNTIME_BASE_MAPPED_H

#include <stddef.h>

#include "runtime/base/lock.h"

/* A private mapping of a file that nobody writes to; its owner has this beside it. */
typedef struct rt_mapped {
    struct rt_mapped *next;
    void *data; /* NULL: none */
    size_t bytes;
} rt_mapped;

typedef struct rt_mapped_files {
    rt_lock lock; /* of the list */
    rt_mapped *first;
} rt_mapped_files;

void opjit_rt_mapped_init(rt_mapped_files *files, rt_process *process);
void opjit_rt_mapped_add(rt_mapped_files *files, rt_mapped *m);
/* Before it is unmapped; one that was not added is fine. */
void opjit_rt_mapped_remove(rt_mapped_files *files, rt_mapped *m);
/* Gives back the memory of what was read of all of them. */
void opjit_rt_mapped_drop(rt_mapped_files *files);

#endif
