/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - files that are mapped. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/onnx/files.h"

static opjit_status no_file(const char *path, opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{!file}%s: %s", path, strerror(errno));
}

opjit_status opjit_onnx_map(const char *path, wire_bytes *out, onnx_stamp *out_stamp, opjit_error *error)
{
    struct stat about;
    *out = (wire_bytes){ NULL, 0 };
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not waited for */
    if (file < 0)
        return no_file(path, error);
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(file);
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{!file}%s: no regular file", path);
    }
    *out_stamp = opjit_onnx_stamp(&about);
    if (about.st_size > 0) {
        void *const memory = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (memory == MAP_FAILED) {
            close(file);
            return no_file(path, error);
        }
        *out = (wire_bytes){ memory, (uint64_t)about.st_size };
    }
    close(file);
    return OPJIT_OK;
}

void opjit_onnx_unmap(wire_bytes file)
{
    if (file.data != NULL)
        munmap((void *)(uintptr_t)file.data, (size_t)file.size);
}

const char *opjit_onnx_folder(rt_arena *arena, const char *path)
{
    const char *const slash = strrchr(path, '/');
    if (slash == NULL)
        return ".";
    return opjit_rt_arena_string(arena, path, slash == path ? 1 : (size_t)(slash - path));
}

void opjit_onnx_drop(wire_bytes part)
{
    const uintptr_t page = opjit_rt_page_size();
    const uintptr_t begin = align_up((uintptr_t)part.data, page);
    const uintptr_t end = ((uintptr_t)part.data + (uintptr_t)part.size) / page * page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* of a private mapping that nobody wrote to */
}

void opjit_onnx_copied(const onnx_files *files, wire_bytes elements)
{
    const uintptr_t first = (uintptr_t)files->model.data, begin = (uintptr_t)elements.data;
    if (first != 0 && begin >= first && begin + elements.size <= first + files->model.size)
        opjit_onnx_drop(elements);
}

void opjit_onnx_files_close(onnx_files *files)
{
    for (onnx_file *f = files->first; f != NULL; f = f->next) {
        opjit_rt_mapped_remove(files->mapped, &f->mapped);
        opjit_onnx_unmap(f->bytes);
    }
}

/* Whether the name is that of a file below the folder: relative, and at no place above it. */
static bool stays_inside(wire_bytes name)
{
    if (name.size == 0 || name.size > 4000 || name.data[0] == '/' || memchr(name.data, 0, (size_t)name.size) != NULL)
        return false;
    int64_t depth = 0;
    for (uint64_t i = 0, end; i < name.size && depth >= 0; i = end + 1) {
        for (end = i; end < name.size && name.data[end] != '/'; end++)
            ;
        const bool up = end - i == 2 && memcmp(name.data + i, "..", 2) == 0;
        if (up)
            depth--;
        else if (end != i && !(end - i == 1 && name.data[i] == '.'))
            depth++;
    }
    return depth > 0;
}

/* Whether a file without links in its path lies below the folder, or below the folder that a file lies in. */
static bool lies_in(const char *real, const char *folder, bool beside)
{
    char whole[PATH_MAX];
    if (folder == NULL || realpath(folder, whole) == NULL)
        return false;
    if (beside)
        *strrchr(whole, '/') = '\0';
    const size_t length = strlen(whole);
    return strncmp(real, whole, length) == 0 && (real[length] == '/' || (length > 0 && whole[length - 1] == '/'));
}

static opjit_status refuse_outside(const onnx_tensor *t, opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                           "{tensor} {\"" ONNX_NAME "\"}: its file \"" ONNX_NAME
                           "\" is not inside of the model's folder",
                           ONNX_SHOW(t->name), ONNX_SHOW(t->location));
}

/* Maps the file that the path leads to.  Links may lead to files below the folder, or, as ONNX Runtime has it, below
 * that of the file which the model's own path leads to, as in caches of models by content. */
static opjit_status map_inside(const onnx_files *files, const char *path, const onnx_tensor *t, onnx_file *out,
                               opjit_error *error)
{
    char real[PATH_MAX];
    if (realpath(path, real) == NULL)
        return no_file(path, error);
    if (!lies_in(real, files->folder, false) && !lies_in(real, files->path, true))
        return refuse_outside(t, error);
    out->path = opjit_rt_arena_string(files->arena, real, strlen(real));
    if (out->path == NULL)
        return opjit_rt_no_memory(error);
    return opjit_onnx_map(real, &out->bytes, &out->stamp, error);
}

static const onnx_file *open_file(onnx_files *files, const onnx_tensor *t, opjit_error *error)
{
    const wire_bytes name = t->location;
    onnx_file **end = &files->first;
    if (files->folder == NULL || !stays_inside(name)) {
        refuse_outside(t, error);
        return NULL;
    }
    for (; *end != NULL; end = &(*end)->next)
        if (wire_same((*end)->name, name))
            return *end;
    const size_t folder = strlen(files->folder);
    char *const path = ARENA_ARRAY(files->arena, char, folder + (size_t)name.size + 2);
    onnx_file *const f = ARENA_NEW(files->arena, onnx_file);
    if (path == NULL || f == NULL) {
        opjit_rt_no_memory(error);
        return NULL;
    }
    memcpy(path, files->folder, folder);
    path[folder] = '/';
    memcpy(path + folder + 1, name.data, (size_t)name.size);
    if (map_inside(files, path, t, f, error) != OPJIT_OK)
        return NULL;
    f->mapped = (rt_mapped){ NULL, (void *)(uintptr_t)f->bytes.data, (size_t)f->bytes.size };
    opjit_rt_mapped_add(files->mapped, &f->mapped);
    f->name = name;
    *end = f;
    return f;
}

const onnx_file *opjit_onnx_file(onnx_files *files, wire_bytes name, opjit_error *error)
{
    const onnx_tensor t = { .location = name };
    return open_file(files, &t, error);
}

wire_bytes opjit_onnx_file_bytes(const onnx_files *files, uint32_t number)
{
    const onnx_file *f = files->first;
    for (; f != NULL && number > 0; number--)
        f = f->next;
    return f != NULL ? f->bytes : (wire_bytes){ NULL, 0 };
}

const void *opjit_onnx_external(onnx_files *files, const onnx_tensor *t, opjit_error *error)
{
    const uint64_t bytes = opjit_onnx_tensor_bytes(t);
    const onnx_file *const f = open_file(files, t, error);
    if (f == NULL)
        return NULL;
    if ((t->has_length && t->length != bytes) || t->offset > f->bytes.size || bytes > f->bytes.size - t->offset) {
        opjit_rt_refuse(error, OPJIT_CORRUPT,
                           "{tensor} {\"" ONNX_NAME "\"}: %llu bytes from %llu on, but \"" ONNX_NAME "\" has %llu",
                           ONNX_SHOW(t->name), (unsigned long long)bytes, (unsigned long long)t->offset,
                           ONNX_SHOW(t->location), (unsigned long long)f->bytes.size);
        return NULL;
    }
    return f->bytes.data == NULL ? (const uint8_t *)"" : f->bytes.data + t->offset;
}
