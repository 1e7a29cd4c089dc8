/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - finds opjit's own libraries, and loads them.
 *
 * Keeps no state: the dynamic loader knows which libraries are loaded and answers quickly when asked again.  So a
 * failed search may succeed later, and contexts may use different libraries. */
#define _GNU_SOURCE
#include "runtime/base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

_Static_assert(RT_MODULE_PATH >= PATH_MAX + sizeof OPJIT_LIBDIR_BESIDE + 64 &&
                   RT_MODULE_PATH >= sizeof OPJIT_LIBDIR + 64,
               "a directory, what leads from a program's to the libraries', and a file's name fit");

/* Returns the directory of the library or program that contains this code, with its trailing slash; false: unknown. */
static bool own_directory(char path[static PATH_MAX])
{
    static const char anchor; /* in this very object, unlike a function, which another library might interpose */
    struct link_map *map = NULL;
    Dl_info info;
    char *slash;

    if (dladdr1(&anchor, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return false;
    if (map->l_name[0] == '\0') { /* the program itself: dli_fname is the name it was called by */
        const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
        if (length < 0 ||
            getauxval(AT_SECURE) != 0) /* anyone may link to a set-user-id program from beside a library */
            return false;
        path[length] = '\0';
    } else if (realpath(map->l_name, path) == NULL) {
        return false;
    }
    slash = strrchr(path, '/');
    if (path[0] != '/' || slash == NULL)
        return false;
    slash[1] = '\0';
    return true;
}

/* If the caller named one, it is the only candidate: a typing error should not go unnoticed. */
opjit_status opjit_rt_module_find(const rt_module *m, const char *named, char path[static RT_MODULE_PATH],
                                  opjit_error *error)
{
    char own[PATH_MAX] = "";

    if (named == NULL && m->variable != NULL)
        named = secure_getenv(m->variable);
    if (named != NULL && named[0] != '\0') {
        if (named[0] != '/' || strlen(named) >= RT_MODULE_PATH)
            return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{%s library} {!path}\"{%s}\": must be an absolute path",
                                   m->what, named);
        strcpy(path, named);
        return OPJIT_OK;
    }
    if (own_directory(own)) {
        /* An installed tree may have been moved as a whole: programs in bin, libraries beside each other. */
        static const char *const ways[] = { "", OPJIT_LIBDIR_BESIDE "/" };
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            strcpy(path, own);
            strcat(path, ways[i]);
            strcat(path, m->file);
            if (access(path, F_OK) == 0)
                return OPJIT_OK;
        }
    }
    strcpy(path, OPJIT_LIBDIR "/");
    strcat(path, m->file);
    if (access(path, F_OK) == 0)
        return OPJIT_OK;
    return opjit_rt_refuse(
        error, OPJIT_UNAVAILABLE, "{!%s library}{!path}no {%s} in %.80s, in %.40s from there or in %.40s; %s", m->what,
        m->file, own[0] == '\0' ? "(own directory unknown)" : own, OPJIT_LIBDIR_BESIDE, OPJIT_LIBDIR, m->advice);
}

opjit_status opjit_rt_module_load(const rt_module *module, const char *named, void **out_function, bool *out_fresh,
                                  char path[static RT_MODULE_PATH], opjit_error *error)
{
    static atomic_uint loads; /* orders what the loader wrote, under its lock, for those who don't know that lock */
    void *library;

    *out_function = NULL;
    TRY(opjit_rt_module_find(module, named, path, error));
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    *out_fresh = library == NULL;
    if (library == NULL)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    atomic_fetch_add(&loads, 1);
    if (library == NULL)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{%s library}: {!path}{!%s}%s", module->what, path, dlerror());
    *out_function = dlsym(library, module->function);
    if (*out_function == NULL)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{!%s library}{!path}{%s}: is no %s library, %s is missing",
                               module->what, path, module->what, module->function);
    return OPJIT_OK;
}
