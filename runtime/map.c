/* map.c - puts an image's code where it can run.  No page is ever writable and executable at one time: pages are filled
 * while writable, then flipped; where the system forbids that flip, a file in memory is mapped twice. */
#define _GNU_SOURCE
#include "runtime/image.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/image_layout.h"

/* Size of the mapping and of its leading part without code: metadata is never executable. */
static void mapping_sizes(const void *image, size_t size, size_t *out_total, size_t *out_data)
{
    const long page = sysconf(_SC_PAGESIZE);
    const size_t unit = page > 0 ? (size_t)page : IMAGE_PAGE;
    image_header header;

    memcpy(&header, image, sizeof header);
    *out_total = (size_t)align_up(size, unit);
    *out_data =
        (size_t)header.code_offset / unit * unit; /* with pages above IMAGE_PAGE, metadata shares the code's page */
}

static bool protect(uint8_t *base, size_t total, size_t data)
{
    return (data == 0 || mprotect(base, data, PROT_READ) == 0) &&
           (total == data || mprotect(base + data, total - data, PROT_READ | PROT_EXEC) == 0);
}

static bool map_by_flip(const void *image, size_t size, rt_mapping *out)
{
    size_t total, data;
    void *base;

    mapping_sizes(image, size, &total, &data);
    base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return false;
    memcpy(base, image, size);
    if (!protect(base, total, data)) {
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
    uint8_t *base = MAP_FAILED;
    size_t total, data;
    const int file = memory_file();

    if (file < 0)
        return false;
    mapping_sizes(image, size, &total, &data);
    if (fill_file(file, image, size, total))
        base = mmap(NULL, total, PROT_READ, MAP_SHARED, file, 0);
    if (base != MAP_FAILED && mmap(base + data, total - data, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, file,
                                   (off_t)data) == MAP_FAILED) {
        munmap(base, total);
        base = MAP_FAILED;
    }
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
