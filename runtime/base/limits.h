/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - what the system lets this process do. */
#ifndef OPJIT_RUNTIME_BASE_LIMITS_H
#define OPJIT_RUNTIME_BASE_LIMITS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* Whether it may write a file of so many bytes; false with EFBIG.  It is asked before, since writing beyond the limit
 * (ulimit -f) sends a signal that ends the host. */
static inline bool rt_file_may_have(uint64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}

#endif
