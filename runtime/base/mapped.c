/* SPDX-License-Identifier: Apache-2.0 */
/* mapped.c - files of weights that are mapped. */
#define _GNU_SOURCE
#include "runtime/base/mapped.h"

#include <sys/mman.h>

void opjit_rt_mapped_init(rt_mapped_files *files, rt_process *process)
{
    opjit_rt_lock_init(&files->lock, process);
    files->first = NULL;
}

void opjit_rt_mapped_add(rt_mapped_files *files, rt_mapped *m)
{
    if (m->data == NULL)
        return;
    opjit_rt_lock(&files->lock);
    m->next = files->first;
    files->first = m;
    opjit_rt_unlock(&files->lock);
}

void opjit_rt_mapped_remove(rt_mapped_files *files, rt_mapped *m)
{
    opjit_rt_lock(&files->lock);
    for (rt_mapped **at = &files->first; *at != NULL; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    opjit_rt_unlock(&files->lock);
}

void opjit_rt_mapped_drop(rt_mapped_files *files)
{
    opjit_rt_lock(&files->lock);
    for (const rt_mapped *m = files->first; m != NULL; m = m->next)
        (void)madvise(m->data, m->bytes, MADV_DONTNEED); /* readers find the file's bytes there as before */
    opjit_rt_unlock(&files->lock);
}
