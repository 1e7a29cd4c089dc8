/* SPDX-License-Identifier: Apache-2.0 */
/* way.c - the way to a file that a model names, which a model must not choose freely: each part is opened by itself, so
 * that what was checked is what is used, whoever changes links and folders meanwhile. */
#define _GNU_SOURCE
#include "frontend/cli/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FOLDERS = 128, MOST_LINKS = 40 };
_Static_assert(sizeof((cli_file *)NULL)->name > NAME_MAX, "a name does not fit");

/* The part of a way that is done: folders, one in another from the root on, and the path that is left. */
typedef struct way {
    int folders[MOST_FOLDERS];
    uint32_t depth; /* of folders; at least 1, the root */
    uint32_t links; /* that were followed */
    char rest[PATH_MAX];
    opjit_error *error;
} way;

static opjit_status fail(way *w, int reason)
{
    return opjit_rt_error_set(w->error, OPJIT_IO, "can't be reached: %s", strerror(reason));
}

static void leave(way *w, uint32_t depth)
{
    while (w->depth > depth)
        close(w->folders[--w->depth]);
}

/* What is left of the way is path, with tail behind it. */
static opjit_status set_rest(way *w, const char *path, const char *tail)
{
    char rest[PATH_MAX];
    if (strlen(path) + strlen(tail) >= sizeof rest)
        return fail(w, ENAMETOOLONG);
    strcpy(rest, path);
    strcat(rest, tail); /* which may be the rest so far */
    strcpy(w->rest, rest);
    if (path[0] == '/')
        leave(w, 1);
    return OPJIT_OK;
}

/* Takes the first part of the rest into name, "" where there is none; *last: nothing follows it, no '/' either. */
static opjit_status take_part(way *w, char *name, bool *last)
{
    const char *const at = w->rest + strspn(w->rest, "/");
    const size_t length = strcspn(at, "/");
    if (length > NAME_MAX)
        return fail(w, ENAMETOOLONG);
    memcpy(name, at, length);
    name[length] = '\0';
    *last = at[length] == '\0';
    memmove(w->rest, at + length, strlen(at + length) + 1);
    return OPJIT_OK;
}

static opjit_status follow_link(way *w, int link)
{
    char target[PATH_MAX];
    const ssize_t length = readlinkat(link, "", target, sizeof target - 1);
    if (length <= 0)
        return fail(w, length == 0 ? ENOENT : errno);
    if (++w->links > MOST_LINKS)
        return fail(w, ELOOP);
    target[length] = '\0';
    return set_rest(w, target, w->rest);
}

/* Goes on by the part called name.  *out_there: this is the end of the way. */
static opjit_status go_down(way *w, const char *name, bool last, bool *out_there)
{
    const int part = openat(w->folders[w->depth - 1], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    opjit_status status = OPJIT_OK;
    *out_there = last;
    if (part < 0)
        return last && errno == ENOENT ? OPJIT_OK : fail(w, errno);
    if (fstat(part, &info) != 0) {
        status = fail(w, errno);
    } else if (S_ISLNK(info.st_mode)) {
        *out_there = false;
        status = follow_link(w, part);
    } else if (!last && !S_ISDIR(info.st_mode)) {
        status = fail(w, ENOTDIR);
    } else if (!last && w->depth == MOST_FOLDERS) {
        status = opjit_rt_error_set(w->error, OPJIT_LIMIT, "more than %d folders deep", MOST_FOLDERS);
    } else if (!last) {
        w->folders[w->depth++] = part;
        return OPJIT_OK;
    }
    close(part);
    return status;
}

static opjit_status walk(way *w, cli_file *out)
{
    bool last = false, there = false;
    while (!there) {
        TRY(take_part(w, out->name, &last));
        if (out->name[0] == '\0')
            return fail(w, EISDIR);
        if (strcmp(out->name, "..") == 0)
            leave(w, w->depth > 1 ? w->depth - 1 : 1);
        else if (strcmp(out->name, ".") != 0)
            TRY(go_down(w, out->name, last, &there));
    }
    return OPJIT_OK;
}

/* The folder of the file `base` from the root on, with a '/' at its end. */
static opjit_status folder_of(const char *base, char out[static PATH_MAX + 1], opjit_error *error)
{
    const char *const slash = strrchr(base, '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash - base) + 1;
    char folder[PATH_MAX] = ".";
    if (length >= sizeof folder)
        return opjit_rt_error_set(error, OPJIT_IO, "its path is too long");
    if (length != 0) {
        memcpy(folder, base, length);
        folder[length] = '\0';
    }
    if (realpath(folder, out) == NULL)
        return opjit_rt_error_set(error, OPJIT_IO, "its folder can't be found: %s", strerror(errno));
    strcat(out, "/");
    return OPJIT_OK;
}

/* Whether the way led into the folder. */
static bool is_inside(const way *w, const char *folder)
{
    struct stat wanted, info;
    if (stat(folder, &wanted) != 0)
        return false;
    for (uint32_t i = 0; i < w->depth; i++)
        if (fstat(w->folders[i], &info) == 0 && cli_is_same_file(&info, &wanted))
            return true;
    return false;
}

opjit_status opjit_cli_file_find(const char *base, const char *path, bool allow_outside, cli_file *out,
                                 opjit_error *error)
{
    char folder[PATH_MAX + 1];
    way w = { .error = error };
    opjit_status status;
    *out = (cli_file){ .folder = -1 };
    TRY(folder_of(base, folder, error));
    w.folders[0] = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w.folders[0] < 0)
        return fail(&w, errno);
    w.depth = 1;
    status = path[0] == '/' ? set_rest(&w, path, "") : set_rest(&w, folder, path);
    if (status == OPJIT_OK)
        status = walk(&w, out);
    if (status == OPJIT_OK && !allow_outside && !is_inside(&w, folder))
        status = opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                                    "outside of the model's folder, which only --allow-outside permits");
    if (status == OPJIT_OK)
        out->folder = w.folders[--w.depth];
    leave(&w, 0);
    return status;
}

void opjit_cli_file_close(cli_file *file)
{
    if (file->folder >= 0)
        close(file->folder);
    file->folder = -1;
}
