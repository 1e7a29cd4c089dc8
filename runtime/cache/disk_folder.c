/* SPDX-License-Identifier: Apache-2.0 */
/* disk_folder.c - opens the disk cache's folder where it is the user's alone, up to the root, makes it where it is
 * missing, and removes what writers that died left in it. */
#define _GNU_SOURCE
#include "runtime/cache/disk_folder.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/cache/disk_file.h"

#define FOLDER_PLACE (O_PATH | O_DIRECTORY | O_CLOEXEC) /* to go on from, read or not */

/* Why the open folder is not to be used; NULL: it is. */
static const char *folder_stranger(int folder, uid_t user)
{
    struct stat info;

    if (fstat(folder, &info) != 0)
        return strerror(errno);
    if (info.st_uid != user)
        return "not used: another user owns it";
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "not used: others may write to it";
    return NULL;
}

/* Whether someone else could put another folder in the place of this one: owns it, or may rename in it.  A group of the
 * user's own number is the user alone. */
static bool is_others(const struct stat *info, uid_t user)
{
    return (info->st_uid != 0 && info->st_uid != user) ||
           ((info->st_mode & S_ISVTX) == 0 &&
            ((info->st_mode & S_IWOTH) != 0 ||
             ((info->st_mode & S_IWGRP) != 0 && info->st_gid != 0 && info->st_gid != user)));
}

/* Why an open folder's place is not to be relied on, from it up to the root; NULL: it is. */
static const char *way_stranger(int folder, uid_t user)
{
    struct stat info, below = { 0 };
    int at = openat(folder, ".", FOLDER_PLACE);

    while (at >= 0 && fstat(at, &info) == 0 && !is_others(&info, user)) {
        const int up = openat(at, "..", FOLDER_PLACE);
        close(at);
        at = up;
        if (info.st_dev == below.st_dev && info.st_ino == below.st_ino) { /* the root is above itself */
            close(at);
            return NULL;
        }
        below = info;
    }
    if (at < 0)
        return strerror(errno);
    close(at);
    return "not used: others may change a folder above it";
}

/* Makes the folders of path that are missing, for the user alone, each in the open one before.  Why not; NULL: it
 * did. */
static const char *make_folders(char *path, uid_t user)
{
    int at = open(path[0] == '/' ? "/" : ".", FOLDER_PLACE);
    const char *reason = NULL;

    for (char *name = path, *end; at >= 0 && reason == NULL && *name != '\0'; name = end) {
        name += strspn(name, "/");
        end = name + strcspn(name, "/");
        const char was = *end;
        *end = '\0';
        int next = openat(at, name[0] != '\0' ? name : ".", FOLDER_PLACE);
        if (next < 0 && errno == ENOENT && (reason = way_stranger(at, user)) == NULL) {
            mkdirat(at, name, 0700);
            next = openat(at, name, FOLDER_PLACE | O_NOFOLLOW);
        }
        *end = was;
        close(at);
        at = next;
    }
    if (at < 0)
        return reason != NULL ? reason : strerror(errno);
    close(at);
    return NULL;
}

bool opjit_rt_disk_for_each_name(int folder, void (*visit)(int folder, const char *name, void *user), void *user)
{
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with a position of its own */
    DIR *directory = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;

    if (directory == NULL) {
        if (own >= 0)
            close(own);
        return false;
    }
    while ((entry = readdir(directory)) != NULL)
        visit(folder, entry->d_name, user);
    closedir(directory);
    return true;
}

/* Writers hold a lock on what they write, so that what can be locked is left over from one that died. */
static void remove_leftover(int folder, const char *name, void *user)
{
    const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    (void)user;
    if (file < 0)
        return;
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0); /* refuses "." and ".." */
    close(file);
}

static void remove_leftovers(int folder)
{
    const int unfinished = openat(folder, DISK_UNFINISHED, FOLDER_HOW);

    if (unfinished < 0)
        return; /* the ordinary case: file systems with unnamed files have none */
    opjit_rt_disk_for_each_name(unfinished, remove_leftover, NULL);
    close(unfinished);
    unlinkat(folder, DISK_UNFINISHED, AT_REMOVEDIR); /* where it is empty */
}

int opjit_rt_disk_folder_open(char *path, bool make, uid_t *out_user, const char **out_reason)
{
    int folder = open(path, FOLDER_HOW);

    *out_reason = NULL;
    *out_user = geteuid();
    if (folder < 0 && errno == ENOENT) {
        if (!make)
            return FOLDER_UNKNOWN;
        *out_reason = make_folders(path, *out_user);
        folder = *out_reason == NULL ? open(path, FOLDER_HOW) : -1;
    }
    if (*out_reason == NULL && folder < 0)
        *out_reason = errno == ELOOP || errno == ENOTDIR ? "not used: it is no folder" : strerror(errno);
    if (*out_reason == NULL)
        *out_reason = folder_stranger(folder, *out_user);
    if (*out_reason == NULL)
        *out_reason = way_stranger(folder, *out_user);
    if (*out_reason == NULL)
        remove_leftovers(folder);
    else if (folder >= 0)
        close(folder);
    return *out_reason != NULL ? FOLDER_REFUSED : folder;
}
