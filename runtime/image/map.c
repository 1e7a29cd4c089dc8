/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - puts an image's code where it can run.  No page is ever writable and executable at the same time: pages are
 * filled while writable, then become r-x; where the system forbids that change, the image goes through a memory file
 * that is mapped r-x. */
#define _GNU_SOURCE
#include "runtime/image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/limits.h"

enum { MOST_FAULTS = 3, CHUNK_PAGES = 16 };

static size_t mapping_size(size_t size)
{
    return (size_t)align_up(size, opjit_rt_page_size());
}

/* Returns NULL with errno set. */
static void *map_writable(size_t bytes, int populate)
{
    void *const base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);

    return base == MAP_FAILED ? NULL : base;
}

/* The lock is held. */
static bool map_chunk(rt_code_pages *pages)
{
    const size_t bytes = CHUNK_PAGES * opjit_rt_page_size();

    opjit_rt_code_pages_free(pages);
    pages->next = map_writable(bytes, 0);
    pages->left = pages->next == NULL ? 0 : bytes;
    return pages->next != NULL;
}

void opjit_rt_code_pages_prepare(rt_code_pages *pages)
{
    if (map_chunk(pages))
        *(volatile uint8_t *)pages->next = 0;
}

void opjit_rt_code_pages_free(rt_code_pages *pages)
{
    if (pages->left != 0)
        munmap(pages->next, pages->left);
    pages->next = NULL;
    pages->left = 0;
}

/* Takes the next pages; NULL with errno set. */
static void *take_pages(rt_code_pages *pages, size_t bytes)
{
    uint8_t *base = NULL;

    if (opjit_rt_lock(&pages->lock)) /* a thread of the parent may have been taking pages */
        pages->left = 0;
    if (pages->left >= bytes || map_chunk(pages)) {
        base = pages->next;
        pages->next += bytes;
        pages->left -= bytes;
    }
    opjit_rt_unlock(&pages->lock);
    return base;
}

static bool map_by_flip(rt_code_pages *pages, const void *image, size_t size, rt_mapping *out)
{
    const size_t total = mapping_size(size);
    const bool small = total <= MOST_FAULTS * opjit_rt_page_size();
    /* Populated, unless there are few pages: one system call for all of them is cheaper than a fault for each. */
    void *const base =
        small && pages != NULL ? take_pages(pages, total) : map_writable(total, small ? 0 : MAP_POPULATE);

    if (base == NULL)
        return false;
    memcpy(base, image, size);
    if (mprotect(base, total, PROT_READ | PROT_EXEC) != 0) {
        const int reason = errno;
        munmap(base, total);
        errno = reason;
        return false;
    }
    *out = (rt_mapping){ base, total };
    return true;
}

static int memory_file(void)
{
    int file = -1;
#if defined(MFD_EXEC) /* for systems where such files are not executable by default */
    file = memfd_create("opjit", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
#endif
    return file >= 0 ? file : memfd_create("opjit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* Writes by write(2), so that a writable mapping never exists. */
static bool fill_file(int file, const uint8_t *bytes, size_t size, size_t total)
{
    if (!rt_file_may_have(total) || ftruncate(file, (off_t)total) != 0)
        return false;
    for (size_t done = 0; done < size;) {
        const ssize_t n = pwrite(file, bytes + done, size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* Security modules may forbid making written anonymous memory executable and still allow mapping a file as executable.
 * The file is sealed: nobody who gets hold of it, and no child that shares its pages, can write into the code. */
static bool map_by_file(const void *image, size_t size, rt_mapping *out)
{
    const size_t total = mapping_size(size);
    const int file = memory_file(), seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    void *base = MAP_FAILED;

    if (file < 0)
        return false;
    if (fill_file(file, image, size, total) && fcntl(file, F_ADD_SEALS, seals) == 0)
        base = mmap(NULL, total, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    close(file);
    if (base == MAP_FAILED)
        return false;
    *out = (rt_mapping){ base, total };
    return true;
}

opjit_status opjit_rt_map_code(rt_code_pages *pages, const void *image, size_t size, rt_mapping *out,
                               opjit_error *error)
{
    int reason;

    *out = (rt_mapping){ NULL, 0 };
    errno = 0;
    if (map_by_flip(pages, image, size, out) || map_by_file(image, size, out)) {
        __builtin___clear_cache((char *)out->base, (char *)out->base + out->size);
        return OPJIT_OK;
    }
    reason = errno;
    if (reason == ENOMEM)
        return opjit_rt_no_memory(error);
    return opjit_rt_refuse(
        error, OPJIT_UNAVAILABLE,
        "{!code}{!bytes}no executable memory for {%zu} bytes of code: the system refuses it (errno %d)", size, reason);
}

void opjit_rt_unmap_code(rt_mapping *mapping)
{
    if (mapping->base != NULL)
        munmap(mapping->base, mapping->size);
    *mapping = (rt_mapping){ NULL, 0 };
}
