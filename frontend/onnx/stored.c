/* SPDX-License-Identifier: Apache-2.0 */
/* stored.c - what a model was found to be when it was read, in the disk cache: so that another process need not read
 * it.  An entry has the inputs and outputs, the key of the graph, and where its constants lie in the model's bytes or
 * in a file of weights, or the constants themselves.  identity.c names it. */
#include "frontend/onnx/model.h"

enum {
    CONTENT_MOST = 16 << 20, /* bytes of an entry */
    PORTS_MOST = 1 << 16,
    IN_MODEL = 0, IN_ENTRY = 1, IN_FILES = 2 /* where a constant lies: IN_FILES and the file's number */
};

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

/* Where the constant is read: small ones are part of a kernel, and lie where its code may expect them. */
static uint32_t place_of(const opjit_model *model, const void *data, uint64_t bytes, uint64_t *out_offset)
{
    wire_bytes in = model->named.bytes;
    uint32_t place = IN_MODEL;
    for (const onnx_file *f = model->files.first; bytes > FE_FOLDED_BYTES; f = f->next) {
        *out_offset = (uintptr_t)data - (uintptr_t)in.data;
        if (*out_offset <= in.size && bytes <= in.size - *out_offset)
            return place;
        if (f == NULL)
            break;
        in = f->bytes;
        place = place == IN_MODEL ? IN_FILES : place + 1;
    }
    return IN_ENTRY;
}

/* Constants: where each lies, and behind all those that lie in the entry. */
static void put_constants(const opjit_model *model, const fe_known *known, rt_bytes *out)
{
    uint64_t behind = 0, offset = 0;
    opjit_rt_bytes_u32(out, known->constant_count);
    for (uint32_t i = 0; i < known->constant_count; i++) {
        const uint64_t bytes = known->constants[i].bytes;
        const uint32_t place = place_of(model, known->constants[i].data, bytes, &offset);
        opjit_rt_bytes_u32(out, place);
        opjit_rt_bytes_u64(out, place == IN_ENTRY ? behind : offset);
        opjit_rt_bytes_u64(out, bytes);
        if (place == IN_ENTRY)
            behind += align_up(bytes, 64);
    }
    opjit_rt_bytes_align(out, 64);
    for (uint32_t i = 0; i < known->constant_count && behind <= CONTENT_MOST; i++) {
        if (place_of(model, known->constants[i].data, known->constants[i].bytes, &offset) != IN_ENTRY)
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
    if (model->stored.is_done || model->core->disk == NULL || model->graph == NULL || model->computing.count != 0)
        return;
    model->stored.is_done = true;
    opjit_rt_bytes_init(&name, &model->core->allocator);
    opjit_rt_bytes_init(&content, &model->core->allocator);
    if (opjit_onnx_name(&model->named, true, &name, &model->stored.known.identity) &&
        opjit_fe_know(model->context, model->graph, &model->arena, &known, &error) == OPJIT_OK) {
        model->stored.is_known = true;
        put_content(model, &known, &content);
        if (!content.failed && content.size <= CONTENT_MOST) {
            const rt_disk_key key = onnx_disk_key(name.data, name.size);
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
        const uint32_t place = take_u32(c);
        const wire_bytes in = place == IN_MODEL   ? model->named.bytes
                              : place == IN_ENTRY ? behind
                                                  : opjit_onnx_file_bytes(&model->files, place - IN_FILES);
        const uint64_t offset = take_u64(c), bytes = take_u64(c);
        if (in.data == NULL || offset > in.size || bytes > in.size - offset)
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
    if (model->core->disk == NULL || model->named.bytes.size == 0)
        return false;
    opjit_rt_bytes_init(&name, &model->core->allocator);
    if (opjit_onnx_name(&model->named, false, &name, &s->known.identity)) {
        const rt_disk_key key = onnx_disk_key(name.data, name.size);
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
