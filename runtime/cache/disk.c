/* SPDX-License-Identifier: Apache-2.0 */
/* disk.c - the disk cache's folder: finding, making and removing its files among processes that do the same.  What
 * is in a file is disk_file.c's; whether the folder may be used, disk_folder.c's.
 *
 * A file appears under its name whole, by linkat or rename, and never changes afterwards; so readers need no locks,
 * and whoever loses a race has written the same bytes.  Its modification time is when it was last used, to a
 * minute. */
#define _GNU_SOURCE
#include "runtime/cache/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "runtime/cache/disk_file.h"
#include "runtime/cache/disk_folder.h"
#include "runtime/image/image.h"

enum { USED_SECONDS = 60, MOST_TRIES = 4 };

struct rt_disk {
    rt_core *core;
    char *path;
    uint64_t capacity;
    rt_lock lock;         /* of all below, which stays right wherever a holder was when it was lost in a fork */
    int folder;           /* descriptor, or FOLDER_... */
    uid_t user;           /* whose the folder is: this process's when it was opened */
    bool measured;        /* bytes is known */
    bool warned;          /* that nothing can be written */
    uint64_t bytes;       /* of all files, as far as this process knows */
    uint32_t temporaries; /* names made */
};

static void warn(rt_disk *disk, const char *file, const char *reason)
{
    opjit_rt_event(disk->core, RT_WARNING(OPJIT_EVENT_DISK_CACHE, file[0] != '\0' ? file : disk->path, reason),
                   "warning,disk cache,%s%s%s,%s", disk->path, file[0] ? "/" : "", file, reason);
}

/* --- the folder --------------------------------------------------------------------------------------------------- */

/* The folder's descriptor, negative where there is none; make: it is made where it is missing. */
static int folder_of(rt_disk *disk, bool make)
{
    const char *reason = NULL;
    int folder;

    opjit_rt_lock(&disk->lock);
    if (disk->folder == FOLDER_UNKNOWN)
        disk->folder = opjit_rt_disk_folder_open(disk->path, make, &disk->user, &reason);
    folder = disk->folder;
    opjit_rt_unlock(&disk->lock);
    if (reason != NULL)
        warn(disk, "", reason);
    return folder;
}

opjit_status opjit_rt_disk_create(rt_core *core, const char *path, uint64_t capacity, rt_disk **out, opjit_error *error)
{
    const size_t length = strlen(path);
    rt_disk *disk = opjit_rt_allocate(&core->allocator, sizeof *disk, _Alignof(rt_disk));

    *out = NULL;
    if (disk == NULL)
        return opjit_rt_no_memory(error);
    *disk = (rt_disk){ .core = core, .capacity = capacity, .folder = FOLDER_UNKNOWN };
    disk->path = opjit_rt_allocate(&core->allocator, length + 1, 1);
    opjit_rt_lock_init(&disk->lock, &core->process);
    if (disk->path == NULL) {
        opjit_rt_release(&core->allocator, disk, sizeof *disk);
        return opjit_rt_no_memory(error);
    }
    memcpy(disk->path, path, length + 1);
    folder_of(disk, false); /* now, as a context is made once: the first kernel is there sooner */
    opjit_rt_code_pages_prepare(&core->pages);
    *out = disk;
    return OPJIT_OK;
}

uint64_t opjit_rt_disk_capacity(const rt_disk *disk)
{
    return disk->capacity;
}

void opjit_rt_disk_destroy(rt_disk *disk)
{
    rt_core *core;

    if (disk == NULL)
        return;
    core = disk->core;
    if (disk->folder >= 0)
        close(disk->folder);
    opjit_rt_release(&core->allocator, disk->path, strlen(disk->path) + 1);
    opjit_rt_release(&core->allocator, disk, sizeof *disk);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Opens one file of the folder.  Why it can't be used; NULL: it may be.  *out_file: to be closed, or negative; absent:
 * there is none. */
static const char *open_file(const rt_disk *disk, int folder, const char *name, int *out_file, struct stat *info,
                             bool *out_absent)
{
    const int file = *out_file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    memset(info, 0, sizeof *info);
    *out_absent = file < 0 && errno == ENOENT;
    if (file < 0)
        return errno == ELOOP ? "it is a link" : "it can't be opened";
    return fstat(file, info) == 0 ? opjit_rt_disk_stranger(info, disk->user) : "it can't be read";
}

/* For those that look for the least recently used; no matter if it fails. */
static void mark_used(int file, const struct stat *info)
{
    if (time(NULL) - info->st_mtime > USED_SECONDS)
        futimens(file, NULL);
}

/* Reads and checks one file of the folder; out's bytes hold *out_image.  absent: there is none. */
static const char *read_file(const rt_disk *disk, int folder, const char *name, const rt_disk_key *key, rt_bytes *out,
                             struct stat *info, const uint8_t **out_image, size_t *out_image_size, bool *out_absent)
{
    int file;
    const char *reason = open_file(disk, folder, name, &file, info, out_absent);

    if (reason == NULL)
        reason = opjit_rt_disk_file_read(file, info, out);
    if (reason == NULL)
        reason = opjit_rt_disk_file_check(out->data, out->size, key, out_image, out_image_size);
    if (reason == NULL && key != NULL)
        mark_used(file, info);
    if (file >= 0)
        close(file);
    return reason;
}

static rt_disk_result reject(rt_disk *disk, int folder, const char *name, const char *reason)
{
    unlinkat(folder, name, 0);
    warn(disk, name, reason);
    return RT_DISK_REJECTED;
}

rt_disk_result opjit_rt_disk_load(rt_disk *disk, const rt_disk_key *key, rt_bytes *image)
{
    const int folder = folder_of(disk, false);
    char name[DISK_FILE_NAME_SIZE];
    const uint8_t *start = NULL;
    const char *reason;
    struct stat info;
    size_t size = 0;
    bool absent;

    if (folder < 0)
        return RT_DISK_ABSENT;
    opjit_rt_disk_file_name(key->hash, name);
    reason = read_file(disk, folder, name, key, image, &info, &start, &size, &absent);
    if (reason == NULL) {
        memmove(image->data, start, size);
        image->size = size;
        return RT_DISK_FOUND;
    }
    absent = absent || image->failed; /* a good file must not go for lack of memory */
    opjit_rt_bytes_free(image);
    if (absent)
        return RT_DISK_ABSENT;
    return reject(disk, folder, name, reason);
}

rt_disk_result opjit_rt_disk_map(rt_disk *disk, const rt_disk_key *key, rt_disk_map *out)
{
    const int folder = folder_of(disk, false);
    char name[DISK_FILE_NAME_SIZE];
    struct stat info;
    bool absent;
    int file;

    *out = (rt_disk_map){ NULL, 0, NULL, 0 };
    if (folder < 0)
        return RT_DISK_ABSENT;
    opjit_rt_disk_file_name(key->hash, name);
    const char *reason = open_file(disk, folder, name, &file, &info, &absent);
    if (reason == NULL) {
        void *const base = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        absent = base == MAP_FAILED; /* a good file must not go for lack of memory */
        if (!absent)
            *out = (rt_disk_map){ base, (size_t)info.st_size, NULL, 0 };
    }
    if (out->base != NULL)
        reason = opjit_rt_disk_file_check(out->base, out->size, key, &out->content, &out->content_size);
    if (out->base != NULL && reason == NULL)
        mark_used(file, &info);
    if (file >= 0)
        close(file);
    if (out->base != NULL && reason == NULL)
        return RT_DISK_FOUND;
    opjit_rt_disk_unmap(out);
    return absent ? RT_DISK_ABSENT : reject(disk, folder, name, reason);
}

void opjit_rt_disk_unmap(rt_disk_map *map)
{
    if (map->base != NULL)
        munmap(map->base, map->size);
    *map = (rt_disk_map){ NULL, 0, NULL, 0 };
}

/* --- room --------------------------------------------------------------------------------------------------------- */

typedef struct listed {
    char name[DISK_FILE_NAME_SIZE];
    uint64_t bytes;
    int64_t used;
} listed;

static void list_file(int folder, const char *name, void *user)
{
    struct stat info;
    listed file;

    if (!opjit_rt_disk_is_file_name(name) || fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    memcpy(file.name, name, sizeof file.name);
    file.bytes = (uint64_t)info.st_size;
    file.used = info.st_mtime;
    opjit_rt_bytes_append(user, &file, sizeof file);
}

/* Appends a `listed` for each file of the cache.  false: not readable or no memory. */
static bool list_files(int folder, rt_bytes *out)
{
    return opjit_rt_disk_for_each_name(folder, list_file, out) && !out->failed;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const listed *)a)->name, ((const listed *)b)->name);
}

static int by_use(const void *a, const void *b)
{
    const listed *x = a, *y = b;
    return x->used != y->used ? (x->used > y->used) - (x->used < y->used) : by_name(a, b);
}

/* Counts the files' bytes and, where they are above the bound, removes the least recently used ones until a quarter of
 * it is free, so that it does not happen at every store.  How many went.  Called with the mutex held. */
static uint32_t make_room(rt_disk *disk)
{
    rt_bytes files;
    uint64_t bytes = 0;
    uint32_t gone = 0;

    opjit_rt_bytes_init(&files, &disk->core->allocator);
    if (list_files(disk->folder, &files) && files.size != 0) {
        listed *const list = (listed *)(void *)files.data;
        const size_t count = files.size / sizeof *list;
        for (size_t i = 0; i < count; i++)
            bytes += list[i].bytes;
        if (bytes > disk->capacity) {
            qsort(list, count, sizeof *list, by_use);
            for (size_t i = 0; i < count && bytes > disk->capacity - disk->capacity / 4; i++) {
                gone += unlinkat(disk->folder, list[i].name, 0) == 0;
                bytes -= list[i].bytes;
            }
        }
    }
    disk->bytes = bytes;
    disk->measured = true;
    opjit_rt_bytes_free(&files);
    return gone;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* A file without a name gets one once it is whole; a writer that dies leaves nothing.  false with errno. */
static bool store_unnamed(int folder, const char *name, const rt_disk_key *key, const void *image, size_t image_size)
{
    const int file = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    char self[40];
    bool good;
    int reason;

    if (file < 0)
        return false;
    snprintf(self, sizeof self, "/proc/self/fd/%d", file);
    good = opjit_rt_disk_file_write(file, key, image, image_size) &&
           (linkat(AT_FDCWD, self, folder, name, AT_SYMLINK_FOLLOW) == 0 || errno == EEXIST);
    reason = errno;
    close(file);
    errno = reason;
    return good;
}

/* A new file in the folder of unfinished ones, locked; negative with errno.  Whoever opens the cache between the two
 * steps takes the file for left over: then once more. */
static int begin_named(int folder, const char *temporary, int *out_unfinished)
{
    int file = -1;

    for (int i = 0; i < MOST_TRIES && file < 0; i++) {
        struct stat info;
        mkdirat(folder, DISK_UNFINISHED, 0700);
        *out_unfinished = openat(folder, DISK_UNFINISHED, FOLDER_HOW);
        file = openat(*out_unfinished, temporary, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file >= 0 && (flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(file, &info) == 0 &&
            info.st_nlink == 1)
            break;
        if (file >= 0)
            close(file);
        if (*out_unfinished >= 0)
            close(*out_unfinished);
        *out_unfinished = file = -1;
    }
    return file;
}

/* Where the file system has no such files.  false with errno. */
static bool store_renamed(int folder, const char *name, const char *temporary, const rt_disk_key *key,
                          const void *image, size_t image_size)
{
    int unfinished = -1;
    const int file = begin_named(folder, temporary, &unfinished);
    bool good;
    int reason;

    if (file < 0)
        return false;
    good = opjit_rt_disk_file_write(file, key, image, image_size) && renameat(unfinished, temporary, folder, name) == 0;
    reason = errno;
    if (!good)
        unlinkat(unfinished, temporary, 0);
    close(file);
    close(unfinished);
    errno = reason;
    return good;
}

bool opjit_rt_disk_store(rt_disk *disk, const rt_disk_key *key, const void *image, size_t image_size)
{
    const int folder = folder_of(disk, true);
    char name[DISK_FILE_NAME_SIZE], temporary[48];
    uint32_t gone = 0;
    bool good, first;
    int reason;

    if (folder < 0)
        return false;
    opjit_rt_disk_file_name(key->hash, name);
    opjit_rt_lock(&disk->lock);
    snprintf(temporary, sizeof temporary, "%ld-%u", (long)getpid(), disk->temporaries++);
    opjit_rt_unlock(&disk->lock);
    good = store_unnamed(folder, name, key, image, image_size);
    if (!good && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
        good = store_renamed(folder, name, temporary, key, image, image_size);
    reason = errno;

    opjit_rt_lock(&disk->lock);
    disk->bytes += good ? image_size + key->size : 0;
    if (good && (!disk->measured || disk->bytes > disk->capacity))
        gone = make_room(disk);
    first = !good && !disk->warned;
    disk->warned = disk->warned || first;
    opjit_rt_unlock(&disk->lock);
    if (gone != 0)
        opjit_rt_event(
            disk->core,
            &(const opjit_event){
                .kind = OPJIT_EVENT_EVICT, .subject = OPJIT_EVENT_DISK_CACHE, .name = disk->path, .file_count = gone },
            "evict,disk cache,%s,files=%u", disk->path, gone);
    if (first)
        warn(disk, "", strerror(reason));
    return good;
}

/* --- looking after it --------------------------------------------------------------------------------------------- */

/* Fills in what a file says that passed. */
static void describe(const uint8_t *file, const uint8_t *image, size_t size, rt_disk_entry *entry)
{
    const opjit_kernel_meta *meta;
    const uint8_t *code;
    size_t code_size;

    entry->kind = opjit_rt_disk_file_kind(file, &entry->name);
    if (entry->kind == RT_DISK_KERNEL &&
        opjit_rt_image_check(image, size, &meta, &code, &code_size, NULL) == OPJIT_OK) {
        entry->name = meta->name == 0 ? "" : (const char *)meta + meta->name;
        entry->target = meta->target == 0 ? "" : (const char *)meta + meta->target;
        entry->level = meta->level;
    }
}

static bool visit_file(rt_disk *disk, int folder, const listed *file, rt_disk_visit_fn visit, void *user)
{
    rt_disk_entry entry = { .name = "", .target = "", .bytes = file->bytes, .used = file->used };
    const uint8_t *image = NULL;
    struct stat info;
    size_t size = 0;
    rt_bytes bytes;
    bool absent, more = true;

    opjit_rt_disk_name_to_key(file->name, 32, &entry.key);
    opjit_rt_bytes_init(&bytes, &disk->core->allocator);
    entry.damaged = read_file(disk, folder, file->name, NULL, &bytes, &info, &image, &size, &absent);
    if (entry.damaged == NULL)
        describe(bytes.data, image, size, &entry);
    if (!absent)
        more = visit(user, &entry);
    opjit_rt_bytes_free(&bytes);
    return more;
}

/* The files with the key, or all, in order, as `listed` in *out; *out_folder negative: there are none. */
static opjit_status list_ordered(rt_disk *disk, const rt_hash *key, rt_bytes *out, int *out_folder, opjit_error *error)
{
    const int folder = *out_folder = folder_of(disk, false);
    char name[DISK_FILE_NAME_SIZE];

    opjit_rt_bytes_init(out, &disk->core->allocator);
    if (folder == FOLDER_UNKNOWN)
        return OPJIT_OK;
    if (folder < 0)
        return opjit_rt_refuse(
            error, OPJIT_IO,
            "{!context_options}{!cache_dir}cache folder {%.200s}: it is no folder of this user's alone", disk->path);
    if (key != NULL) {
        opjit_rt_disk_file_name(*key, name);
        list_file(folder, name, out);
    } else if (!list_files(folder, out) && !out->failed) {
        return opjit_rt_refuse(error, OPJIT_IO,
                               "{!context_options}{!cache_dir}cache folder {%.200s}: it can't be listed", disk->path);
    }
    if (out->failed)
        return opjit_rt_no_memory(error);
    if (out->size != 0)
        qsort(out->data, out->size / sizeof(listed), sizeof(listed), by_name);
    return OPJIT_OK;
}

opjit_status opjit_rt_disk_visit(rt_disk *disk, const rt_hash *key, rt_disk_visit_fn visit, void *user,
                                 opjit_error *error)
{
    rt_bytes files;
    int folder;
    const opjit_status status = list_ordered(disk, key, &files, &folder, error);
    const listed *const list = (const listed *)(const void *)files.data;
    bool more = status == OPJIT_OK;

    for (size_t i = 0; more && i < files.size / sizeof *list; i++)
        more = visit_file(disk, folder, &list[i], visit, user);
    opjit_rt_bytes_free(&files);
    return status;
}

opjit_status opjit_rt_disk_drop(rt_disk *disk, const rt_hash *key, uint32_t *out_count, opjit_error *error)
{
    rt_bytes files;
    int folder;
    opjit_status status = list_ordered(disk, key, &files, &folder, error);
    const listed *const list = (const listed *)(const void *)files.data;
    uint32_t left = 0;

    *out_count = 0;
    for (size_t i = 0; status == OPJIT_OK && i < files.size / sizeof *list; i++) {
        if (unlinkat(folder, list[i].name, 0) == 0)
            ++*out_count;
        else if (errno != ENOENT) /* another process's work */
            left++;
    }
    opjit_rt_bytes_free(&files);
    if (left != 0)
        status = opjit_rt_refuse(error, OPJIT_IO, "{!context_options}{!cache_dir}{%u} files can't be removed", left);
    return status;
}
