/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - opjit/cache.h: enumerating, checking, pinning and dropping kernels of both caches.  Takes keys, gives
 * entries; the host is called without locks, with references of its own. */
#include <opjit/cache.h>

#include <string.h>

#include "runtime/cache/disk.h"
#include "runtime/cache/table.h"
#include "runtime/call/kernel_object.h"

/* --- the memory cache --------------------------------------------------------------------------------------------- */

/* An entry as it was, with a reference to its kernel. */
typedef struct held {
    opjit_kernel *kernel;
    rt_hash name;
    uint64_t bytes;
    bool pinned;
} held;

static void hold_entry(const cache_entry *e, rt_bytes *out)
{
    const held h = { e->kernel, e->name, e->bytes, e->pins != 0 };

    opjit_rt_bytes_append(out, &h, sizeof h);
    if (!out->failed)
        opjit_kernel_retain(e->kernel);
}

/* Appends a `held` for each kernel, that of one name or all.  false: no memory. */
static bool hold(rt_cache *cache, const rt_hash *name, rt_bytes *out)
{
    for (size_t i = 0; i < CACHE_SHARDS; i++) {
        cache_shard *s = &cache->shards[i];
        const cache_entry *named;
        cache_lock(s);
        if (name != NULL && (named = opjit_rt_cache_named(s, name)) != NULL)
            hold_entry(named, out);
        for (const cache_entry *e = name == NULL ? s->used.newest : NULL; e != NULL; e = e->older)
            hold_entry(e, out);
        for (const cache_entry *e = name == NULL ? s->pinned.newest : NULL; e != NULL; e = e->older)
            hold_entry(e, out);
        opjit_rt_unlock(&s->lock);
    }
    return !out->failed;
}

static void let_go(rt_bytes *held_ones)
{
    const held *const list = (const held *)(const void *)held_ones->data;

    for (size_t i = 0; i < held_ones->size / sizeof *list; i++)
        opjit_kernel_release(list[i].kernel);
    opjit_rt_bytes_free(held_ones);
}

/* The ready entry of that name, with the lock of its shard held; NULL: there is none, and no lock is. */
static cache_entry *find_locked(rt_cache *cache, const rt_hash *name, cache_shard **out_shard)
{
    for (size_t i = 0; i < CACHE_SHARDS; i++) {
        cache_shard *s = *out_shard = &cache->shards[i];
        cache_lock(s);
        cache_entry *e = opjit_rt_cache_named(s, name);
        if (e != NULL)
            return e;
        opjit_rt_unlock(&s->lock);
    }
    return NULL;
}

/* --- what visitors are given -------------------------------------------------------------------------------------- */

/* An enumeration on its way, or a check. */
typedef struct visitor {
    opjit_cache_visit_fn visit;
    void *user;
    bool checks, stopped;
    uint32_t count, damaged;
} visitor;

/* Whether to go on. */
static bool tell(visitor *v, const opjit_cache_entry *entry)
{
    v->count++;
    v->damaged += entry->damaged != NULL;
    if (v->visit != NULL)
        v->stopped = !v->visit(v->user, entry);
    return !v->stopped;
}

static opjit_cache_key key_of(rt_hash name)
{
    return (opjit_cache_key){ name.hi, name.lo };
}

static void tell_held(visitor *v, const held *h)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_cache_entry entry = {
        .struct_size = sizeof entry,
        .where = OPJIT_CACHE_MEMORY,
        .key = key_of(h->name),
        .bytes = h->bytes,
        .kernel = h->kernel,
        .flags = h->pinned ? OPJIT_CACHE_ENTRY_PINNED : 0,
        .name = "",
        .target = "",
    };

    if (opjit_kernel_get_info(h->kernel, &info, NULL) == OPJIT_OK) {
        entry.name = info.name;
        entry.target = info.target;
        entry.level = info.level;
        entry.flags |= (info.flags & OPJIT_KERNEL_INTERPRETED) != 0 ? OPJIT_CACHE_ENTRY_INTERPRETED : 0;
    }
    if (v->checks && !opjit_rt_kernel_is_whole(h->kernel))
        entry.damaged = "its image is damaged";
    tell(v, &entry);
}

static opjit_status tell_memory(opjit_context *context, const rt_hash *name, visitor *v, opjit_error *error)
{
    rt_bytes held_ones;
    opjit_status status;

    opjit_rt_bytes_init(&held_ones, &context->core->allocator);
    status = hold(context->cache, name, &held_ones) ? OPJIT_OK : opjit_rt_no_memory(error);
    const held *const list = (const held *)(const void *)held_ones.data;
    for (size_t i = 0; status == OPJIT_OK && i < held_ones.size / sizeof *list && !v->stopped; i++)
        tell_held(v, &list[i]);
    let_go(&held_ones);
    return status;
}

static bool tell_file(void *user, const rt_disk_entry *file)
{
    const opjit_cache_entry entry = {
        .struct_size = sizeof entry,
        .where = OPJIT_CACHE_DISK,
        .key = key_of(file->key),
        .name = file->name,
        .target = file->target,
        .damaged = file->damaged,
        .bytes = file->bytes,
        .used = file->used,
        .flags = file->kind == RT_DISK_FUNCTION ? OPJIT_CACHE_ENTRY_FUNCTION
                 : file->kind == RT_DISK_MODEL  ? OPJIT_CACHE_ENTRY_MODEL
                                                : 0,
        .level = file->level,
    };

    return tell(user, &entry);
}

static opjit_status tell_all(opjit_context *context, uint32_t where, const rt_hash *name, visitor *v,
                             opjit_error *error)
{
    if ((where & OPJIT_CACHE_MEMORY) != 0)
        TRY(tell_memory(context, name, v, error));
    if ((where & OPJIT_CACHE_DISK) == 0 || context->core->disk == NULL || v->stopped)
        return OPJIT_OK;
    return opjit_rt_disk_visit(context->core->disk, name, tell_file, v, error);
}

/* --- public functions --------------------------------------------------------------------------------------------- */

static opjit_status refuse_null(const char *name, opjit_error *error)
{
    return opjit_rt_refuse_null(error, name);
}

/* Of a function that takes a context and caches' names. */
static opjit_status check(const opjit_context *context, uint32_t where, opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (context == NULL)
        return refuse_null("context", error);
    if (where == 0 || (where & ~(OPJIT_CACHE_MEMORY | OPJIT_CACHE_DISK)) != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{where} is {0x%x}; allowed: OPJIT_CACHE_MEMORY, OPJIT_CACHE_DISK, or both",
                               where);
    return OPJIT_OK;
}

static opjit_status not_cached(rt_hash name, opjit_error *error)
{
    char text[OPJIT_CACHE_KEY_TEXT_SIZE];
    const opjit_cache_key key = key_of(name);

    opjit_cache_key_to_text(&key, text);
    return opjit_rt_refuse(error, OPJIT_NOT_FOUND, "{!argument}{key} {%s} is not in the cache", text);
}

void opjit_cache_key_to_text(const opjit_cache_key *key, char *text)
{
    opjit_rt_hex(key->hi, 16, text);
    opjit_rt_hex(key->lo, 16, text + 16);
    text[OPJIT_CACHE_KEY_TEXT_SIZE - 1] = '\0';
}

opjit_status opjit_cache_key_from_text(const char *text, opjit_cache_key *out_key, opjit_error *error)
{
    rt_hash name;

    opjit_rt_error_clear(error);
    if (text == NULL || out_key == NULL)
        return refuse_null(text == NULL ? "text" : "out_key", error);
    *out_key = (opjit_cache_key){ 0, 0 };
    if (!opjit_rt_disk_name_to_key(text, strlen(text), &name))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{!text}key \"{%.40s}\": must be 32 digits of 0123456789abcdef", text);
    *out_key = key_of(name);
    return OPJIT_OK;
}

opjit_status opjit_kernel_get_cache_key(const opjit_kernel *kernel, opjit_cache_key *out_key, opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (kernel == NULL || out_key == NULL)
        return opjit_rt_refuse_null(error, kernel == NULL ? "kernel" : "out_key");
    kernel = kernel_maker(kernel);
    *out_key = (opjit_cache_key){ kernel->hooks.key.hi, kernel->hooks.key.lo };
    if ((out_key->hi | out_key->lo) == 0)
        return opjit_rt_refuse(error, OPJIT_NOT_FOUND,
                               "{!argument}the {kernel} was not compiled here, so it has no cache key");
    return OPJIT_OK;
}

opjit_status opjit_cache_enumerate(opjit_context *context, uint32_t where, opjit_cache_visit_fn visit, void *user,
                                   opjit_error *error)
{
    visitor v = { .visit = visit, .user = user };

    TRY(check(context, where, error));
    return visit == NULL ? refuse_null("visit", error) : tell_all(context, where, NULL, &v, error);
}

opjit_status opjit_cache_verify(opjit_context *context, uint32_t where, const opjit_cache_key *key,
                                opjit_cache_visit_fn visit, void *user, opjit_error *error)
{
    visitor v = { .visit = visit, .user = user, .checks = true };
    const rt_hash name = key == NULL ? (rt_hash){ 0, 0 } : (rt_hash){ .lo = key->lo, .hi = key->hi };

    TRY(check(context, where, error));
    TRY(tell_all(context, where, key == NULL ? NULL : &name, &v, error));
    if (key != NULL && v.count == 0)
        return not_cached(name, error);
    return v.damaged == 0 ? OPJIT_OK
                          : opjit_rt_refuse(error, OPJIT_CORRUPT, "{!cache}{!kernels}{%u} of %u kernels are damaged",
                                            v.damaged, v.count);
}

/* Pins once more or once less. */
static opjit_status change_pins(opjit_context *context, const opjit_cache_key *key, bool pin, opjit_error *error)
{
    cache_shard *s;
    cache_entry *e;
    bool good;

    TRY(check(context, OPJIT_CACHE_MEMORY, error));
    if (key == NULL)
        return refuse_null("key", error);
    const rt_hash name = { .lo = key->lo, .hi = key->hi };
    e = find_locked(context->cache, &name, &s);
    if (e == NULL)
        return not_cached(name, error);
    good = pin ? e->pins != UINT32_MAX : e->pins != 0;
    if (good) {
        cache_list_remove(cache_list_of(s, e), e);
        e->pins += pin ? 1u : UINT32_MAX;
        cache_list_push(cache_list_of(s, e), e);
    }
    opjit_rt_unlock(&s->lock);
    if (!pin && good)
        opjit_rt_cache_evict(context->cache, (size_t)(s - context->cache->shards), NULL);
    return good ? OPJIT_OK
                : opjit_rt_refuse(error, pin ? OPJIT_LIMIT : OPJIT_INVALID_ARGUMENT, "{!argument}{!key}the kernel %s",
                                  pin ? "is pinned 4294967295 times" : "isn't pinned");
}

opjit_status opjit_cache_pin(opjit_context *context, const opjit_cache_key *key, opjit_error *error)
{
    return change_pins(context, key, true, error);
}

opjit_status opjit_cache_unpin(opjit_context *context, const opjit_cache_key *key, opjit_error *error)
{
    return change_pins(context, key, false, error);
}

opjit_status opjit_cache_drop(opjit_context *context, uint32_t where, const opjit_cache_key *key, uint32_t *out_count,
                              opjit_error *error)
{
    const rt_hash name = key == NULL ? (rt_hash){ 0, 0 } : (rt_hash){ .lo = key->lo, .hi = key->hi };
    const rt_hash *const only = key == NULL ? NULL : &name;
    opjit_status status = OPJIT_OK;
    uint32_t memory = 0, files = 0;

    if (out_count != NULL)
        *out_count = 0;
    TRY(check(context, where, error));
    if ((where & OPJIT_CACHE_MEMORY) != 0)
        memory = opjit_rt_cache_drop(context->cache, only, true);
    if ((where & OPJIT_CACHE_DISK) != 0 && context->core->disk != NULL)
        status = opjit_rt_disk_drop(context->core->disk, only, &files, error);
    if (out_count != NULL)
        *out_count = memory + files;
    return status;
}
