/* SPDX-License-Identifier: Apache-2.0 */
/* stored.c - what a model was found to be when it was read, in the disk cache: so that another process need not read
 * it.  An entry has the inputs and outputs, the key of the graph, and where its constants lie in the model's bytes, or
 * the constants themselves.  It is named after all bytes of the model and all options.
 *
 * Bytes are compared by a hash of 128 bits, which depends on a random number of the cache's own: who makes models does
 * not know it, so no model can be made to be taken for another one. */
#define _GNU_SOURCE
#include <sys/random.h>
#include <time.h>

#include "frontend/onnx/model.h"

enum {
    FORMAT = 1,
    CONTENT_MOST = 16 << 20, /* bytes of an entry */
    PORTS_MOST = 1 << 16,
    IN_MODEL = 0, IN_ENTRY = 1 /* where a constant lies */
};

/* --- names -------------------------------------------------------------------------------------------------------- */

static rt_disk_key disk_key(const void *bytes, size_t size)
{
    return (rt_disk_key){ bytes, size, opjit_rt_hash(bytes, size), RT_DISK_MODEL };
}

/* The cache's number; make: it gets one if it has none.  false: there is none. */
static bool find_secret(rt_disk *disk, bool make, uint64_t *out)
{
    static const char word[] = "secret";
    const rt_disk_key key = disk_key(word, sizeof word);
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

static int64_t time_now(void)
{
    struct timespec now = { 0 };
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The hash of the model's bytes.  Of a file it is remembered: then its stamp stands for the bytes, and nothing of it is
 * read. */
static rt_hash hash_model(opjit_model *model, uint64_t secret)
{
    onnx_stored *const s = &model->stored;
    const bool is_file = model->path != NULL && model->stamp.size == model->bytes.size;
    rt_disk_map map = { NULL, 0, NULL, 0 };
    rt_bytes name;
    if (s->is_hashed)
        return s->hash;
    opjit_rt_bytes_init(&name, &model->core->allocator);
    put_stamp(&model->stamp, secret, &name);
    const rt_disk_key key = disk_key(name.data, name.size);
    s->is_hashed = true;
    s->is_remembered = is_file && !name.failed &&
                       opjit_rt_disk_map(model->core->disk, &key, &map) == RT_DISK_FOUND &&
                       map.content_size == sizeof s->hash;
    if (s->is_remembered) {
        memcpy(&s->hash, map.content, sizeof s->hash);
    } else {
        s->hash = opjit_rt_hash_seeded(model->bytes.data, (size_t)model->bytes.size, secret);
        opjit_rt_mapped_drop(&model->core->mapped); /* all of it was read, once */
        if (is_file && !name.failed && opjit_onnx_stamp_holds(model->path, &model->stamp, time_now()))
            (void)opjit_rt_disk_store(model->core->disk, &key, &s->hash, sizeof s->hash);
    }
    opjit_rt_disk_unmap(&map);
    opjit_rt_bytes_free(&name);
    return s->hash;
}

/* All that decides what an entry says; *out_identity is the seeded hash of it. */
static bool put_name(opjit_model *model, bool make, rt_bytes *out, rt_hash *out_identity)
{
    const opjit_model_options *const o = &model->options;
    uint8_t build[FE_OPTIONS_KEY_SIZE];
    fe_options options;
    uint64_t secret;
    if (!find_secret(model->core->disk, make, &secret) ||
        opjit_fe_options_read(model->context, NULL, NULL, &options, NULL) != OPJIT_OK) /* default ones */
        return false;
    const rt_hash bytes = hash_model(model, secret);
    opjit_rt_bytes_append(out, "reading", sizeof "reading");
    opjit_rt_bytes_u32(out, FORMAT);
    opjit_rt_bytes_append(out, build, opjit_fe_options_key(&options, build));
    opjit_rt_bytes_u32(out, model->context->feature_level);
    opjit_rt_bytes_u64(out, model->bytes.size);
    opjit_rt_bytes_u64(out, bytes.lo);
    opjit_rt_bytes_u64(out, bytes.hi);
    opjit_rt_bytes_u32(out, o->dim_count);
    for (uint32_t i = 0; i < o->dim_count; i++) {
        put_text(out, o->dims[i].name);
        opjit_rt_bytes_u64(out, o->dims[i].size);
    }
    opjit_rt_bytes_u32(out, o->input_count);
    for (uint32_t i = 0; i < o->input_count; i++)
        put_input(out, &o->inputs[i]);
    if (!out->failed)
        *out_identity = opjit_rt_hash_seeded(out->data, out->size, secret);
    return !out->failed;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void put_port(rt_bytes *out, const onnx_model_port *port)
{
    opjit_rt_bytes_str(out, port->name);
    opjit_rt_bytes_u8(out, 0);
    opjit_rt_bytes_u32(out, (uint32_t)port->type);
    opjit_rt_bytes_u32(out, (uint32_t)port->binding);
    opjit_rt_bytes_u32(out, port->rank);
    for (uint32_t d = 0; d < port->rank; d++) {
        const wire_bytes name = port->record == NULL ? (wire_bytes){ NULL, 0 } : port->record->dims[d].name;
        opjit_rt_bytes_u64(out, port->dims[d]);
        opjit_rt_bytes_u32(out, (uint32_t)name.size);
        opjit_rt_bytes_append(out, name.data, (size_t)name.size);
    }
}

/* Whether the constant is read where the model has it: small ones are part of a kernel, and lie where its code may
 * expect them. */
static bool is_in_model(const opjit_model *model, const void *data, uint64_t bytes, uint64_t *out_offset)
{
    *out_offset = (uintptr_t)data - (uintptr_t)model->bytes.data;
    return bytes > FE_FOLDED_BYTES && *out_offset <= model->bytes.size && bytes <= model->bytes.size - *out_offset;
}

/* Constants: where each lies, and behind all what does not lie in the model. */
static void put_constants(const opjit_model *model, const fe_known *known, rt_bytes *out)
{
    uint64_t behind = 0, offset;
    opjit_rt_bytes_u32(out, known->constant_count);
    for (uint32_t i = 0; i < known->constant_count; i++) {
        const uint64_t bytes = known->constants[i].bytes;
        const bool in_model = is_in_model(model, known->constants[i].data, bytes, &offset);
        opjit_rt_bytes_u32(out, in_model ? IN_MODEL : IN_ENTRY);
        opjit_rt_bytes_u64(out, in_model ? offset : behind);
        opjit_rt_bytes_u64(out, bytes);
        if (!in_model)
            behind += align_up(bytes, 64);
    }
    opjit_rt_bytes_align(out, 64);
    for (uint32_t i = 0; i < known->constant_count && behind <= CONTENT_MOST; i++) {
        if (is_in_model(model, known->constants[i].data, known->constants[i].bytes, &offset))
            continue;
        opjit_rt_bytes_append(out, known->constants[i].data, (size_t)known->constants[i].bytes);
        opjit_rt_bytes_align(out, 64);
    }
    out->failed = out->failed || behind > CONTENT_MOST;
}

static void put_content(const opjit_model *model, const fe_known *known, rt_bytes *out)
{
    opjit_rt_bytes_u32(out, model->input_count);
    opjit_rt_bytes_u32(out, model->output_count);
    for (uint32_t i = 0; i < model->input_count; i++)
        put_port(out, &model->inputs[i]);
    for (uint32_t i = 0; i < model->output_count; i++)
        put_port(out, &model->outputs[i]);
    opjit_rt_bytes_u32(out, known->shape.present ? known->shape.rank : UINT32_MAX);
    opjit_rt_bytes_u32(out, (uint32_t)known->shape.dtype);
    for (uint32_t d = 0; known->shape.present && d < known->shape.rank; d++)
        opjit_rt_bytes_u64(out, known->shape.sizes[d]);
    opjit_rt_bytes_u64(out, known->key_hash);
    opjit_rt_bytes_u32(out, (uint32_t)known->key_size);
    opjit_rt_bytes_append(out, known->key, known->key_size);
    put_constants(model, known, out);
}

void opjit_onnx_store(opjit_model *model)
{
    opjit_error error = { 0 };
    fe_known known;
    rt_bytes name, content;
    if (model->stored.is_done || model->core->disk == NULL || model->graph == NULL || model->computing.count != 0 ||
        model->files.first != NULL)
        return;
    model->stored.is_done = true;
    opjit_rt_bytes_init(&name, &model->core->allocator);
    opjit_rt_bytes_init(&content, &model->core->allocator);
    if (put_name(model, true, &name, &model->stored.known.identity) &&
        opjit_fe_know(model->context, model->graph, &model->arena, &known, &error) == OPJIT_OK) {
        model->stored.is_known = true;
        put_content(model, &known, &content);
        if (!content.failed && content.size <= CONTENT_MOST) {
            const rt_disk_key key = disk_key(name.data, name.size);
            (void)opjit_rt_disk_store(model->core->disk, &key, content.data, content.size);
        }
    }
    opjit_rt_bytes_free(&content);
    opjit_rt_bytes_free(&name);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* An entry that is being read; what leads outside of it makes it bad. */
typedef struct cursor {
    const uint8_t *at;
    size_t left;
    bool bad;
} cursor;

static const uint8_t *take(cursor *c, size_t size)
{
    const uint8_t *const at = c->at;
    c->bad = c->bad || size > c->left;
    if (c->bad)
        return NULL;
    c->at += size;
    c->left -= size;
    return at;
}

static uint32_t take_u32(cursor *c)
{
    uint32_t value = 0;
    const uint8_t *const at = take(c, sizeof value);
    if (at != NULL)
        memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t take_u64(cursor *c)
{
    const uint64_t low = take_u32(c);
    return low | (uint64_t)take_u32(c) << 32;
}

static wire_bytes take_bytes(cursor *c)
{
    const uint32_t size = take_u32(c);
    return (wire_bytes){ take(c, size), size };
}

static bool take_port(cursor *c, uint32_t bindings, rt_arena *arena, onnx_model_port *out)
{
    onnx_port *const record = ARENA_NEW(arena, onnx_port);
    const wire_bytes name = take_bytes(c);
    const uint8_t *const end = take(c, 1);
    out->name = (const char *)name.data;
    out->type = (int32_t)take_u32(c);
    out->binding = (int32_t)take_u32(c);
    out->rank = take_u32(c);
    out->record = record;
    if (record == NULL || c->bad || *end != '\0' || out->rank > ONNX_RANK || out->binding < -1 ||
        (out->binding >= 0 && (uint32_t)out->binding >= bindings))
        return false;
    record->rank = out->rank;
    for (uint32_t d = 0; d < out->rank; d++) {
        out->dims[d] = take_u64(c);
        record->dims[d].name = take_bytes(c);
    }
    return !c->bad;
}

static bool take_ports(cursor *c, opjit_model *model)
{
    const uint32_t inputs = take_u32(c), outputs = take_u32(c);
    if (c->bad || inputs > PORTS_MOST || outputs > PORTS_MOST)
        return false;
    model->inputs = ARENA_ARRAY(&model->arena, onnx_model_port, (size_t)inputs + 1);
    model->outputs = ARENA_ARRAY(&model->arena, onnx_model_port, (size_t)outputs + 1);
    bool good = model->inputs != NULL && model->outputs != NULL;
    for (uint32_t i = 0; good && i < inputs; i++)
        good = take_port(c, inputs + outputs, &model->arena, &model->inputs[i]);
    for (uint32_t i = 0; good && i < outputs; i++)
        good = take_port(c, inputs + outputs, &model->arena, &model->outputs[i]);
    model->input_count = good ? inputs : 0;
    model->output_count = good ? outputs : 0;
    return good;
}

static bool take_constants(cursor *c, const opjit_model *model, rt_arena *arena, const rt_disk_map *map,
                           fe_known *out)
{
    const uint32_t count = take_u32(c);
    const size_t table = (size_t)count * 20;
    if (c->bad || table > c->left)
        return false;
    const size_t begin = (size_t)align_up((uint64_t)(c->at - map->content) + table, 64);
    if (begin > map->content_size)
        return false;
    const wire_bytes behind = { map->content + begin, map->content_size - begin };
    out->constants = opjit_rt_arena_allocate(arena, (size_t)count + 1, sizeof *out->constants);
    out->constant_count = count;
    if (out->constants == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const wire_bytes in = take_u32(c) == IN_MODEL ? model->bytes : behind;
        const uint64_t offset = take_u64(c), bytes = take_u64(c);
        if (offset > in.size || bytes > in.size - offset)
            return false;
        out->constants[i].data = in.data + offset;
        out->constants[i].bytes = bytes;
    }
    return !c->bad;
}

static bool take_known(cursor *c, const opjit_model *model, rt_arena *arena, const rt_disk_map *map, fe_known *out)
{
    fe_tensor *const shape = &out->shape;
    shape->rank = take_u32(c);
    shape->dtype = (DML_TENSOR_DATA_TYPE)take_u32(c);
    shape->present = shape->rank != UINT32_MAX;
    if (c->bad || (shape->present && shape->rank > 8))
        return false;
    for (uint32_t d = 0; shape->present && d < shape->rank; d++)
        shape->sizes[d] = take_u64(c);
    out->key_hash = take_u64(c);
    const wire_bytes key = take_bytes(c);
    out->key = key.data;
    out->key_size = (size_t)key.size;
    return !c->bad && take_constants(c, model, arena, map, out);
}

bool opjit_onnx_take_stored(opjit_model *model, const rt_disk_map *map)
{
    cursor c = { map->content, map->content_size, false };
    return take_ports(&c, model) && take_known(&c, model, &model->arena, map, &model->stored.known);
}

bool opjit_onnx_recall(opjit_model *model)
{
    onnx_stored *const s = &model->stored;
    rt_bytes name;
    if (model->core->disk == NULL || model->bytes.size == 0)
        return false;
    opjit_rt_bytes_init(&name, &model->core->allocator);
    if (put_name(model, false, &name, &s->known.identity)) {
        const rt_disk_key key = disk_key(name.data, name.size);
        s->is_found = opjit_rt_disk_map(model->core->disk, &key, &s->map) == RT_DISK_FOUND &&
                      opjit_onnx_take_stored(model, &s->map);
    }
    s->is_known = s->is_found;
    if (!s->is_found) {
        opjit_rt_disk_unmap(&s->map);
        model->input_count = model->output_count = 0;
    }
    opjit_rt_bytes_free(&name);
    return s->is_found;
}
