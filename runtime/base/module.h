/* SPDX-License-Identifier: Apache-2.0 */
/* module.h - opjit's own libraries and programs, found and loaded when something first needs them. */
#ifndef OPJIT_RUNTIME_BASE_MODULE_H
#define OPJIT_RUNTIME_BASE_MODULE_H

#include "runtime/base/base.h"

typedef struct rt_module {
    const char *what;     /* "codegen", for messages */
    const char *file;     /* "libopjit-codegen.so" */
    const char *function; /* its one exported function */
    const char *variable; /* with its path; ignored in set-user-id programs.  NULL: the caller has read it */
    const char *advice;   /* what a user can do when it is missing */
} rt_module;

/* Loads the library at the path named (absolute; NULL: what the environment names, else beside the library or
 * program that this code is in, else in the libraries' folder as it lies from a program's, else in the configured one)
 * and finds its function.  It is never closed.  Beside a set-user-id program nothing is looked for.
 * *out_path names it in messages and events; it was loaded before where *out_fresh is false. */
enum { RT_MODULE_PATH = 4096 + 512 };
opjit_status opjit_rt_module_load(const rt_module *module, const char *named, void **out_function, bool *out_fresh,
                                  char path[static RT_MODULE_PATH], opjit_error *error);
/* Where that looks, for any file of opjit's: writes the path. */
opjit_status opjit_rt_module_find(const rt_module *module, const char *named, char path[static RT_MODULE_PATH],
                                  opjit_error *error);

#endif
