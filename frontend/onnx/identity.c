/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - what a model's entries in the disk cache are named after: all bytes of the model and of its files, and
 * all options.
 *
 * Bytes are compared by a hash of 128 bits, which depends on a random number of the cache's own: who makes models does
 * not know it, so no model can be made to be taken for another one.  The hash of a file is remembered by its stamp. */
#define _GNU_SOURCE
#include <sys/random.h>
#include <time.h>

#include "frontend/frontend.h"
#include "frontend/onnx/identity.h"

enum {
    FORMAT = 3,
    PART = 16 << 20, /* bytes of a file that are in memory to be hashed */
    FILES_MOST = 1024 /* of a model with an identity */
};

/* --- hashes ------------------------------------------------------------------------------------------------------- */

/* The cache's number; make: it gets one if it has none.  false: there is none. */
static bool find_secret(rt_disk *disk, bool make, uint64_t *out)
{
    static const char word[] = "secret";
    const rt_disk_key key = onnx_disk_key(word, sizeof word);
    for (int i = 0; i < 2; i++) {
        rt_disk_map map;
        const bool found = opjit_rt_disk_map(disk, &key, &map) == RT_DISK_FOUND && map.content_size == sizeof *out;
        if (found)
            memcpy(out, map.content, sizeof *out);
        opjit_rt_disk_unmap(&map);
        if (found || !make || i != 0) /* another process may have been sooner: its number counts */
            return found;
        if (getrandom(out, sizeof *out, GRND_NONBLOCK) != (ssize_t)sizeof *out ||
            !opjit_rt_disk_store(disk, &key, out, sizeof *out))
            return false;
    }
    return false;
}

static void put_stamp(const onnx_stamp *stamp, uint64_t secret, rt_bytes *out)
{
    opjit_rt_bytes_append(out, "stamp", sizeof "stamp");
    opjit_rt_bytes_u32(out, FORMAT);
    opjit_rt_bytes_u64(out, secret);
    opjit_rt_bytes_u64(out, stamp->device);
    opjit_rt_bytes_u64(out, stamp->inode);
    opjit_rt_bytes_u64(out, stamp->size);
    opjit_rt_bytes_u64(out, (uint64_t)stamp->modified);
    opjit_rt_bytes_u64(out, (uint64_t)stamp->changed);
}

/* The hash of the hashes of parts. */
static bool hash_parts(rt_core *core, wire_bytes bytes, uint64_t secret, bool is_mapped, rt_hash *out)
{
    rt_bytes parts;
    opjit_rt_bytes_init(&parts, &core->allocator);
    for (uint64_t at = 0; at < bytes.size; at += PART) {
        const wire_bytes part = { bytes.data + at, bytes.size - at < PART ? bytes.size - at : PART };
        const rt_hash hash = opjit_rt_hash_seeded(part.data, (size_t)part.size, secret);
        opjit_rt_bytes_append(&parts, &hash, sizeof hash);
        if (is_mapped)
            opjit_onnx_drop(part);
    }
    const bool done = !parts.failed;
    if (done)
        *out = opjit_rt_hash_seeded(parts.data, parts.size, secret);
    opjit_rt_bytes_free(&parts);
    return done;
}

/* The hash of bytes.  Of a file (path NULL: they are none's) it is remembered: then its stamp stands for the bytes, and
 * nothing of it is read.  *out_remembered: so it was. */
static bool hash_bytes(rt_core *core, wire_bytes bytes, const char *path, const onnx_stamp *stamp, uint64_t secret,
                       rt_hash *out, bool *out_remembered)
{
    const bool is_file = path != NULL && stamp->size == bytes.size;
    rt_disk_map map = { NULL, 0, NULL, 0 };
    rt_bytes name;
    opjit_rt_bytes_init(&name, &core->allocator);
    put_stamp(stamp, secret, &name);
    const rt_disk_key key = onnx_disk_key(name.data, name.size);
    bool done = is_file && !name.failed && opjit_rt_disk_map(core->disk, &key, &map) == RT_DISK_FOUND &&
                map.content_size == sizeof *out;
    *out_remembered = done;
    if (done) {
        memcpy(out, map.content, sizeof *out);
    } else {
        done = hash_parts(core, bytes, secret, path != NULL, out);
        if (done && is_file && !name.failed && opjit_onnx_stamp_holds(path, stamp, time(NULL) * INT64_C(1000000000)))
            (void)opjit_rt_disk_store(core->disk, &key, out, sizeof *out);
    }
    opjit_rt_disk_unmap(&map);
    opjit_rt_bytes_free(&name);
    return done;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Maps those that the cache says such a model reads.  false: one of them is not there any more. */
static bool recall_files(const onnx_named *n, const rt_disk_key *key)
{
    opjit_error error;
    rt_disk_map map;
    if (opjit_rt_disk_map(n->context->core->disk, key, &map) != RT_DISK_FOUND)
        return true; /* it reads none, or nobody knows */
    bool good = true;
    for (size_t at = 0, size; good && at < map.content_size; at += size + 1) {
        size = strnlen((const char *)map.content + at, map.content_size - at);
        const wire_bytes name = { opjit_rt_arena_copy(n->files->arena, map.content + at, size, 1), size };
        good = at + size < map.content_size && name.data != NULL &&
               opjit_onnx_file(n->files, name, &error) != NULL;
    }
    opjit_rt_disk_unmap(&map);
    return good;
}

/* Their names, each with a NUL, which none has in it. */
static void store_files(const onnx_named *n, const rt_disk_key *key)
{
    rt_bytes content;
    opjit_rt_bytes_init(&content, &n->context->core->allocator);
    for (const onnx_file *f = n->files->first; f != NULL; f = f->next) {
        opjit_rt_bytes_append(&content, f->name.data, (size_t)f->name.size);
        opjit_rt_bytes_u8(&content, 0);
    }
    if (!content.failed && content.size != 0)
        (void)opjit_rt_disk_store(n->context->core->disk, key, content.data, content.size);
    opjit_rt_bytes_free(&content);
}

/* The files behind the rest of the name, by which the cache knows their names. */
static bool put_files(const onnx_named *n, bool make, uint64_t secret, rt_bytes *out)
{
    rt_bytes word;
    opjit_rt_bytes_init(&word, &n->context->core->allocator);
    opjit_rt_bytes_append(&word, "files", sizeof "files");
    opjit_rt_bytes_append(&word, out->data, out->size);
    const rt_disk_key key = onnx_disk_key(word.data, word.size);
    bool good = !word.failed && !out->failed;
    if (good && make)
        store_files(n, &key);
    else if (good)
        good = recall_files(n, &key);
    opjit_rt_bytes_free(&word);
    uint32_t count = 0;
    for (const onnx_file *f = n->files->first; good && f != NULL; f = f->next) {
        rt_hash hash = { 0, 0 };
        bool remembered;
        good = count++ < FILES_MOST &&
               hash_bytes(n->context->core, f->bytes, f->path, &f->stamp, secret, &hash, &remembered);
        opjit_rt_bytes_u64(out, f->name.size);
        opjit_rt_bytes_append(out, f->name.data, (size_t)f->name.size);
        opjit_rt_bytes_u64(out, f->bytes.size);
        opjit_rt_bytes_u64(out, hash.lo);
        opjit_rt_bytes_u64(out, hash.hi);
    }
    return good;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static void put_text(rt_bytes *out, const char *text)
{
    opjit_rt_bytes_u8(out, text != NULL);
    opjit_rt_bytes_str(out, text);
}

static void put_input(rt_bytes *out, const opjit_model_input *in)
{
    const bool is_constant = in->value != NULL && (in->flags & OPJIT_MODEL_INPUT_OF_CALL) == 0;
    put_text(out, in->name);
    opjit_rt_bytes_u32(out, in->sizes != NULL ? in->rank : UINT32_MAX);
    for (uint32_t d = 0; in->sizes != NULL && d < in->rank; d++)
        opjit_rt_bytes_u64(out, in->sizes[d]);
    opjit_rt_bytes_u32(out, (uint32_t)in->dtype);
    opjit_rt_bytes_u32(out, in->flags);
    opjit_rt_bytes_u8(out, in->value != NULL);
    opjit_rt_bytes_u64(out, in->value != NULL ? in->bytes : 0);
    if (is_constant)
        opjit_rt_bytes_append(out, in->value, (size_t)in->bytes);
}

bool opjit_onnx_name(onnx_named *n, bool make, rt_bytes *out, rt_hash *out_identity)
{
    const opjit_model_options *const o = n->options;
    rt_core *const core = n->context->core;
    uint8_t build[FE_OPTIONS_KEY_SIZE];
    fe_options options;
    uint64_t secret;
    if (!find_secret(core->disk, make, &secret) ||
        opjit_fe_options_read(n->context, NULL, NULL, &options, NULL) != OPJIT_OK) /* default ones */
        return false;
    if (!n->is_hashed)
        n->is_hashed = hash_bytes(core, n->bytes, n->path, &n->stamp, secret, &n->hash, &n->is_remembered);
    opjit_rt_bytes_append(out, "reading", sizeof "reading");
    opjit_rt_bytes_u32(out, FORMAT);
    opjit_rt_bytes_append(out, build, opjit_fe_options_key(&options, build));
    opjit_rt_bytes_u32(out, n->context->feature_level);
    opjit_rt_bytes_u32(out, o->flags);
    opjit_rt_bytes_u64(out, n->bytes.size);
    opjit_rt_bytes_u64(out, n->hash.lo);
    opjit_rt_bytes_u64(out, n->hash.hi);
    opjit_rt_bytes_u32(out, o->dim_count);
    for (uint32_t i = 0; i < o->dim_count; i++) {
        put_text(out, o->dims[i].name);
        opjit_rt_bytes_u64(out, o->dims[i].size);
    }
    opjit_rt_bytes_u32(out, o->input_count);
    for (uint32_t i = 0; i < o->input_count; i++)
        put_input(out, &o->inputs[i]);
    if (!n->is_hashed || !put_files(n, make, secret, out) || out->failed)
        return false;
    *out_identity = opjit_rt_hash_seeded(out->data, out->size, secret);
    return true;
}
