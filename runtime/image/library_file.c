/* SPDX-License-Identifier: Apache-2.0 */
/* library_file.c - where a library's registry comes from: a file that `opjit compile` wrote, or this program itself.  A
 * file is not given to the dynamic loader, which would trust it: it is read, checked as a whole and mapped like an
 * image, which needs no relocation.  The program's own memory is known from its program headers. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/cache/disk_file.h"
#include "runtime/image/library.h"

#define MOST_BYTES 0x80000000u /* the largest library: its offsets have 32 bits */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_RISCV
#endif

#define CORRUPT(...) opjit_rt_refuse(error, OPJIT_CORRUPT, "{library} " __VA_ARGS__)

/* --- files -------------------------------------------------------------------------------------------------------- */

opjit_status opjit_rt_library_check_file(const uint8_t *bytes, size_t size, uint64_t *out_registry, opjit_error *error)
{
    opjit_aot_trailer trailer;
    rt_hash hash;

    if (size < sizeof trailer)
        return CORRUPT("{bytes}: {%zu}, must be at least %zu", size, sizeof trailer);
    memcpy(&trailer, bytes + size - sizeof trailer, sizeof trailer);
    if (memcmp(trailer.magic, OPJIT_AOT_TRAILER_MAGIC, sizeof trailer.magic) != 0)
        return CORRUPT("{trailer.magic}: does not end as a library that opjit wrote");
    if (trailer.abi != OPJIT_AOT_ABI)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{library} {trailer.abi}: {%u}, must be %u", trailer.abi,
                               OPJIT_AOT_ABI);
    if (trailer.size != size)
        return CORRUPT("{trailer.size}: {%llu}, must be %zu", (unsigned long long)trailer.size, size);
    hash = opjit_rt_hash(bytes, size - sizeof trailer + offsetof(opjit_aot_trailer, hash_lo));
    if (hash.lo != trailer.hash_lo || hash.hi != trailer.hash_hi)
        return CORRUPT("{trailer.hash_lo}: the checksum differs");
    if (trailer.machine != MACHINE)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{library} {trailer.machine}: {%u}, must be %u, this machine's", trailer.machine,
                               MACHINE);
    if (trailer.registry > size)
        return CORRUPT("{trailer.registry}: {%llu}, lies outside", (unsigned long long)trailer.registry);
    *out_registry = trailer.registry;
    return OPJIT_OK;
}

static opjit_status read_file(const char *path, rt_bytes *out, opjit_error *error)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *problem = NULL;
    struct stat info;

    if (file < 0 || fstat(file, &info) != 0) {
        const int reason = errno;
        if (file >= 0)
            close(file);
        return opjit_rt_refuse(error, reason == ENOENT ? OPJIT_NOT_FOUND : OPJIT_IO,
                               "{library} {path}: {%.59s}, can't be opened: %s", path, strerror(reason));
    }
    if (!S_ISREG(info.st_mode))
        problem = "it is no plain file";
    else if (info.st_size > (off_t)MOST_BYTES)
        problem = "it has more than 2 GiB";
    else if (info.st_size != 0)
        problem = opjit_rt_disk_file_read(file, &info, out);
    close(file);
    if (out->failed)
        return opjit_rt_no_memory(error);
    return problem == NULL ? OPJIT_OK
                           : opjit_rt_refuse(error, OPJIT_IO, "{library} {path}: {%.59s}, %s", path, problem);
}

static opjit_status open_bytes(rt_core *core, const rt_bytes *bytes, opjit_library **out, opjit_error *error)
{
    rt_mapping mapping;
    uint64_t registry;
    opjit_status status;

    TRY(opjit_rt_library_check_file(bytes->data, bytes->size, &registry, error));
    TRY(opjit_rt_map_code(NULL, bytes->data, bytes->size, &mapping, error));
    const rt_span span = { mapping.base, bytes->size, true };
    status = opjit_rt_library_make(core, (const uint8_t *)mapping.base + registry, &span, 1, mapping, out, error);
    if (status != OPJIT_OK)
        opjit_rt_unmap_code(&mapping);
    return status;
}

opjit_status opjit_library_open(opjit_context *context, const char *path, opjit_library **out_library,
                                opjit_error *error)
{
    opjit_status status;
    rt_bytes bytes;

    opjit_rt_error_clear(error);
    if (out_library != NULL)
        *out_library = NULL;
    if (context == NULL || path == NULL || out_library == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : path == NULL ? "path" : "out_library");
    opjit_rt_bytes_init(&bytes, &context->core->allocator);
    status = read_file(path, &bytes, error);
    if (status == OPJIT_OK) {
        status = open_bytes(context->core, &bytes, out_library, error);
        if (status != OPJIT_OK)
            opjit_rt_error_prefix(error, "%.200s", path);
    }
    if (status == OPJIT_OK)
        opjit_rt_event(
            context->core,
            &(const opjit_event){
                .kind = OPJIT_EVENT_LOAD, .subject = OPJIT_EVENT_LIBRARY, .name = path, .bytes = bytes.size },
            "load,library,%.200s,kernels=%u,bytes=%zu", path, opjit_library_count(*out_library), bytes.size);
    opjit_rt_bytes_free(&bytes);
    return status;
}

/* --- this program ------------------------------------------------------------------------------------------------- */

typedef struct search {
    uintptr_t address;
    rt_span spans[RT_LIBRARY_SPANS];
    uint32_t count;
} search;

/* Collects the segments of the object that contains the address. */
static int look_at_object(struct dl_phdr_info *info, size_t size, void *user)
{
    search *s = user;
    bool found = false;

    (void)size;
    s->count = 0;
    for (unsigned i = 0; i < info->dlpi_phnum && s->count < RT_LIBRARY_SPANS; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uintptr_t begin = (uintptr_t)info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_R) == 0)
            continue;
        s->spans[s->count++] =
            (rt_span){ (const uint8_t *)begin, (size_t)segment->p_memsz, (segment->p_flags & PF_X) != 0 };
        found = found || s->address - begin < segment->p_memsz;
    }
    return found;
}

opjit_status opjit_library_of(opjit_context *context, const struct opjit_aot_registry *registry,
                              opjit_library **out_library, opjit_error *error)
{
    const rt_mapping none = { NULL, 0 };
    search s = { .address = (uintptr_t)registry };

    opjit_rt_error_clear(error);
    if (out_library != NULL)
        *out_library = NULL;
    if (context == NULL || registry == NULL || out_library == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : registry == NULL ? "registry" : "out_library");
    if (dl_iterate_phdr(look_at_object, &s) == 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{registry}: at {%p}, where no program or library is loaded",
                               (const void *)registry);
    return opjit_rt_library_make(context->core, registry, s.spans, s.count, none, out_library, error);
}
