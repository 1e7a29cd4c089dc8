/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - the context that a host makes for its process, the same in all of them. */
#ifndef OPJIT_HOSTS_CONTEXT_H
#define OPJIT_HOSTS_CONTEXT_H

#include <stdlib.h>

#include <opjit/opjit.h>

/* Where there is no code generation kernels are interpreted.  OPJIT_CACHE_DIR names the disk cache's folder, unless it
 * is empty. */
static inline opjit_context_options host_context_options(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const char *const folder = getenv("OPJIT_CACHE_DIR");
    options.flags = OPJIT_CONTEXT_ALLOW_INTERPRETER;
    options.cache_dir = folder != NULL && folder[0] != '\0' ? folder : NULL;
    return options;
}

#endif
