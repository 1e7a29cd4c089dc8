/* provider.c - finds and loads the codegen library at the first miss, so that a process that only hits its caches
 * never pays for LLVM.  Knows nothing of what the library does.
 *
 * There is no state here: the dynamic loader knows which libraries are loaded, and asking it again for one costs about
 * a microsecond a miss.  So a failed search may succeed later, and contexts may use different libraries.  The library
 * is never closed: LLVM can't be unloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/frontend.h"

#include "opjit_build_id.h"

#define LIBRARY_NAME "libopjit-codegen.so"

opjit_status opjit_fe_codegen_check(const opjit_codegen *table, const char *path, opjit_error *error)
{
    if (table == NULL || table->abi != CODEGEN_ABI || table->size < sizeof *table)
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "%s: has no codegen interface %u", path, CODEGEN_ABI);
    if (strcmp(table->build_id, OPJIT_BUILD_ID) != 0)
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "%s: its build id is %.40s, must be %s", path,
                                  table->build_id, OPJIT_BUILD_ID);
    return OPJIT_OK;
}

#ifdef OPJIT_STATIC_CODEGEN

opjit_status opjit_fe_codegen(rt_core *core, const opjit_codegen **out, opjit_error *error)
{
    (void)core;
    *out = opjit_codegen_query(CODEGEN_ABI);
    return opjit_fe_codegen_check(*out, "linked codegen", error);
}

#else

/* Loads the library at path, which exists or was named by someone who means it. */
static opjit_status load(rt_core *core, const char *path, const opjit_codegen **out, opjit_error *error)
{
    const double start = opjit_fe_now();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    const bool loaded = library != NULL;
    opjit_codegen_query_fn query;
    void *symbol;

    if (path[0] != '/')
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "codegen library \"%s\": must be an absolute path", path);
    if (!loaded)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "codegen library: %s", dlerror());
    symbol = dlsym(library, "opjit_codegen_query");
    if (symbol == NULL)
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "%s: is no codegen library, opjit_codegen_query is missing",
                                  path);
    memcpy(&query, &symbol, sizeof query); /* C has no cast from object to function pointers */
    *out = query(CODEGEN_ABI);
    TRY(opjit_fe_codegen_check(*out, path, error));
    if (!loaded)
        opjit_rt_event(core, OPJIT_EVENT_LOAD, "load,codegen,%s,llvm=%s,ms=%.3f", path, (*out)->llvm_version,
                       opjit_fe_now() - start);
    return OPJIT_OK;
}

/* The directory of the library or program that this code is in, with its last slash; false: not known. */
static bool own_directory(char path[static PATH_MAX])
{
    static const char anchor; /* of this very object, unlike a function that another library might interpose */
    struct link_map *map = NULL;
    Dl_info info;
    char *slash;

    if (dladdr1(&anchor, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return false;
    if (map->l_name[0] == '\0') { /* the program itself: dli_fname is whatever it was called as */
        const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
        if (length < 0)
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

opjit_status opjit_fe_codegen(rt_core *core, const opjit_codegen **out, opjit_error *error)
{
    const char *named = core->codegen_path != NULL ? core->codegen_path : secure_getenv("OPJIT_CODEGEN");
    char beside[PATH_MAX + sizeof LIBRARY_NAME] = "", installed[] = OPJIT_LIBDIR "/" LIBRARY_NAME;

    *out = NULL;
    if (named != NULL && named[0] != '\0') /* that one and no other: a typing error should not pass unnoticed */
        return load(core, named, out, error);
    if (own_directory(beside)) {
        strcat(beside, LIBRARY_NAME);
        if (access(beside, F_OK) == 0)
            return load(core, beside, out, error);
    }
    if (access(installed, F_OK) == 0)
        return load(core, installed, out, error);
    return opjit_rt_error_set(
        error, OPJIT_UNAVAILABLE,
        "no codegen library at %.80s or %.80s; name one in OPJIT_CODEGEN or the context's codegen_path",
        beside[0] == '\0' ? "(own directory unknown)" : beside, installed);
}

#endif
