/* map.c - puts an image's code where it can run.  No page is ever writable and executable at one time: pages are filled
 * while writable, then flipped; where the system forbids that flip, a file in memory is mapped twice. */
#define _GNU_SOURCE
#include "runtime/image.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_FAULTS = 3 };

static size_t page_size(void)
{
    const long page = sysconf(_SC_PAGESIZE);

    return page > 0 ? (size_t)page : 4096;
}

static size_t mapping_size(size_t size)
{
    return (size_t)align_up(size, page_size());
}

static bool map_by_flip(const void *image, size_t size, rt_mapping *out)
{
    const size_t total = mapping_size(size);
    /* Populated: a system call for all pages is cheaper than a fault for each, unless they are few. */
    const int populate = total > MOST_FAULTS * page_size() ? MAP_POPULATE : 0;
    void *const base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);

    if (base == MAP_FAILED)
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
#if defined(MFD_EXEC)
    file = memfd_create("opjit", MFD_CLOEXEC | MFD_EXEC); /* systems where such files are not executable by default */
#endif
    return file >= 0 ? file : memfd_create("opjit", MFD_CLOEXEC);
}

/* Writes by write(2) calls, not through a writable mapping: none is ever needed. */
static bool fill_file(int file, const uint8_t *bytes, size_t size, size_t total)
{
    if (ftruncate(file, (off_t)total) != 0)
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

/* Security modules may forbid making written anonymous memory executable and still allow to map a file so. */
static bool map_by_file(const void *image, size_t size, rt_mapping *out)
{
    const size_t total = mapping_size(size);
    const int file = memory_file();
    void *base = MAP_FAILED;

    if (file < 0)
        return false;
    if (fill_file(file, image, size, total))
        base = mmap(NULL, total, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    close(file);
    if (base == MAP_FAILED)
        return false;
    *out = (rt_mapping){ base, total };
    return true;
}

opjit_status opjit_rt_map_code(const void *image, size_t size, rt_mapping *out, opjit_error *error)
{
    int reason;

    *out = (rt_mapping){ NULL, 0 };
    errno = 0;
    if (map_by_flip(image, size, out) || map_by_file(image, size, out)) {
        __builtin___clear_cache((char *)out->base, (char *)out->base + out->size);
        return OPJIT_OK;
    }
    reason = errno;
    if (reason == ENOMEM)
        return opjit_rt_no_memory(error);
    return opjit_rt_error_set(error, OPJIT_UNAVAILABLE,
                              "no executable memory for %zu bytes of code: the system refuses it (errno %d)", size,
                              reason);
}

void opjit_rt_unmap_code(rt_mapping *mapping)
{
    if (mapping->base != NULL)
        munmap(mapping->base, mapping->size);
    *mapping = (rt_mapping){ NULL, 0 };
}
