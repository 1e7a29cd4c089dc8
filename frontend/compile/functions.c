/* SPDX-License-Identifier: Apache-2.0 */
/* functions.c - gives the code generator the disk cache for the functions that kernels share. */
#include "frontend/frontend.h"
#include "runtime/cache/disk.h"

static rt_disk_key key_of(const void *key, size_t size)
{
    return (rt_disk_key){ key, size, opjit_rt_hash(key, size), RT_DISK_FUNCTION };
}

static void find(void *user, const void *key, size_t key_size, rt_bytes *out)
{
    const rt_disk_key whole = key_of(key, key_size);

    opjit_rt_disk_load(user, &whole, out);
}

static void keep(void *user, const void *key, size_t key_size, const void *bytes, size_t size)
{
    const rt_disk_key whole = key_of(key, key_size);

    opjit_rt_disk_store(user, &whole, bytes, size);
}

const codegen_functions *opjit_fe_functions(const rt_core *core, uint32_t flags, codegen_functions *out)
{
    if (core->disk == NULL || (flags & OPJIT_COMPILE_NO_CACHE) != 0)
        return NULL;
    *out = (codegen_functions){ core->disk, find, keep };
    return out;
}
