/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - a model out of its messages.  Each message is gone through twice: to count what repeats, and to take it. */
#include "frontend/onnx/onnx.h"

typedef struct reading {
    rt_arena *arena;
    opjit_error *error;
    uint32_t depth; /* of graphs in attributes */
} reading;

static opjit_status damaged(const reading *r, const char *what)
{
    return opjit_rt_refuse(r->error, OPJIT_CORRUPT, "{!file}this is no .onnx file, or a damaged one: %s", what);
}

enum { PARTS = 32 /* field numbers of what repeats are below */, PARTS_MOST = 1 << 24 };

/* How many fields of each number the message has, which are messages or strings. */
static opjit_status count_parts(const reading *r, wire_bytes message, uint32_t counts[static PARTS])
{
    wire_reader in = wire_read(message);
    memset(counts, 0, PARTS * sizeof *counts);
    for (wire_field f; opjit_onnx_next(&in, &f);)
        if (f.number < PARTS && f.type == WIRE_BYTES && ++counts[f.number] > PARTS_MOST)
            return damaged(r, "too many parts");
    return in.bad ? damaged(r, "a field is longer than what it is part of") : OPJIT_OK;
}

/* An array for so many parts, zeroed. */
#define ARRAY_OF(r, type, out, count, status)                                                        \
    do {                                                                                             \
        (out) = ARENA_ARRAY((r)->arena, type, (size_t)(count) + 1);                                  \
        if ((out) == NULL)                                                                           \
            *(status) = opjit_rt_no_memory((r)->error);                                              \
    } while (0)

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* A number of bytes in decimal digits; false: it is none, or more than a file has. */
static bool read_decimal(wire_bytes text, uint64_t *out)
{
    *out = 0;
    for (uint64_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || *out > INT64_MAX / 16)
            return false;
        *out = *out * 10 + (text.data[i] - '0');
    }
    return text.size != 0;
}

/* One entry of external_data, a key and its value: which file has the elements, and where. */
static opjit_status read_external(const reading *r, wire_bytes entry, onnx_tensor *t)
{
    wire_reader in = wire_read(entry);
    wire_bytes key = { NULL, 0 }, value = { NULL, 0 };
    for (wire_field f; opjit_onnx_next(&in, &f);) {
        if (f.number == 1)
            key = f.bytes;
        if (f.number == 2)
            value = f.bytes;
    }
    if (wire_is(key, "location"))
        t->location = value;
    const bool is_length = wire_is(key, "length");
    if (!is_length && !wire_is(key, "offset"))
        return OPJIT_OK;
    t->has_length = t->has_length || is_length;
    if (!read_decimal(value, is_length ? &t->length : &t->offset))
        return opjit_rt_refuse(r->error, OPJIT_CORRUPT,
                               "{tensor} {\"" ONNX_NAME "\"}: external_data " ONNX_NAME ": \"" ONNX_NAME
                               "\", must be a number of bytes",
                               ONNX_SHOW(t->name), ONNX_SHOW(key), ONNX_SHOW(value));
    return OPJIT_OK;
}

static opjit_status read_dims(const reading *r, const wire_field *f, onnx_tensor *t)
{
    const uint64_t count = opjit_onnx_count(f, 0);
    if (count > ONNX_RANK - t->rank)
        return opjit_rt_refuse(r->error, OPJIT_LIMIT, "{tensor} {\"" ONNX_NAME "\"} has more than %u dimensions",
                                  ONNX_SHOW(t->name), ONNX_RANK);
    opjit_onnx_numbers(f, 0, t->dims + t->rank);
    t->rank += (uint32_t)count;
    return OPJIT_OK;
}

/* One field of typed elements: FLOAT32 and FLOAT64 have 4 and 8 bytes each, the others are varints. */
static void count_typed(const wire_field *f, onnx_tensor *t)
{
    if (t->field != f->number)
        t->typed = 0;
    t->field = f->number;
    t->packed = f->bytes;
    t->typed += opjit_onnx_count(f, f->number == 4 ? 4 : f->number == 10 ? 8 : 0);
}

static opjit_status read_tensor(const reading *r, wire_bytes message, onnx_tensor *t)
{
    wire_reader in = wire_read(message);
    *t = (onnx_tensor){ .message = message };
    for (wire_field f; opjit_onnx_next(&in, &f);)
        switch (f.number) {
        case 1: TRY(read_dims(r, &f, t)); break;
        case 2: t->type = (int32_t)f.value; break;
        case 4: case 5: case 6: case 7: case 10: case 11: count_typed(&f, t); break;
        case 8: t->name = f.bytes; break;
        case 9: t->raw = f.bytes; break;
        case 13: TRY(read_external(r, f.bytes, t)); break;
        case 14: t->external = f.value == 1; break;
        default: break;
        }
    if (in.bad)
        return damaged(r, "a tensor");
    t->elements = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->dims[d] > INT64_MAX || !checked_mul(t->elements, t->dims[d], &t->elements) ||
            t->elements > RT_TENSOR_BYTES_MAX)
            return damaged(r, "a tensor of more elements than memory has");
    /* All elements in one field of fixed size are what raw ones would be. */
    const uint32_t fixed = t->type == ONNX_FLOAT && t->field == 4     ? 4
                           : t->type == ONNX_DOUBLE && t->field == 10 ? 8
                                                                      : 0;
    if (t->raw.data == NULL && fixed != 0 && t->typed == t->elements && t->packed.size == t->elements * fixed)
        t->raw = t->packed;
    return OPJIT_OK;
}

/* --- attributes and nodes ----------------------------------------------------------------------------------------- */

static opjit_status read_graph(reading *r, wire_bytes message, onnx_graph *g);

/* Room for the numbers or strings of all fields of that number: they may stand in several. */
static opjit_status room_for(const reading *r, wire_bytes message, uint32_t number, uint32_t size, void **out)
{
    wire_reader in = wire_read(message);
    uint64_t count = 0;
    for (wire_field f; opjit_onnx_next(&in, &f);)
        if (f.number == number)
            count += number == 9 ? 1 : opjit_onnx_count(&f, size);
    if (count > INT32_MAX)
        return damaged(r, "an attribute of more numbers than memory has");
    *out = opjit_rt_arena_allocate(r->arena, (size_t)count + 1, number == 9 ? sizeof(wire_bytes) : 8);
    return *out == NULL ? opjit_rt_no_memory(r->error) : OPJIT_OK;
}

/* The numbers of a field, behind those that the attribute has. */
static opjit_status read_numbers(const reading *r, wire_bytes message, const wire_field *f, onnx_attribute *a)
{
    const uint32_t size = f->number == 7 ? 4 : 0;
    void *room;
    if (f->number == 7 ? a->floats == NULL : f->number == 8 ? a->ints == NULL : a->strings == NULL) {
        TRY(room_for(r, message, f->number, size, &room));
        a->count = 0;
        a->floats = f->number == 7 ? room : NULL;
        a->ints = f->number == 8 ? room : NULL;
        a->strings = f->number == 9 ? room : NULL;
    }
    if (f->number == 9) {
        a->strings[a->count++] = f->bytes;
        return OPJIT_OK;
    }
    const uint64_t count = opjit_onnx_count(f, size);
    if (f->number == 8) {
        opjit_onnx_numbers(f, 0, (uint64_t *)a->ints + a->count);
    } else {
        /* Read at 8 bytes each into the room, which has as many, from the end of what is there. */
        uint64_t *const wide = ARENA_ARRAY(r->arena, uint64_t, (size_t)count + 1);
        if (wide == NULL)
            return opjit_rt_no_memory(r->error);
        opjit_onnx_numbers(f, 4, wide);
        for (uint64_t i = 0; i < count; i++) {
            const uint32_t bits = (uint32_t)wide[i];
            memcpy(&a->floats[a->count + i], &bits, sizeof bits);
        }
    }
    a->count += (uint32_t)count;
    return OPJIT_OK;
}

static opjit_status read_subgraph(reading *r, wire_bytes message, onnx_attribute *a)
{
    a->graph = ARENA_NEW(r->arena, onnx_graph);
    if (a->graph == NULL)
        return opjit_rt_no_memory(r->error);
    if (r->depth == ONNX_DEPTH)
        return damaged(r, "graphs in graphs without end");
    r->depth++;
    const opjit_status status = read_graph(r, message, a->graph);
    r->depth--;
    return status;
}

static opjit_status read_attribute(reading *r, wire_bytes message, onnx_attribute *a)
{
    wire_reader in = wire_read(message);
    for (wire_field f; opjit_onnx_next(&in, &f);) {
        const uint32_t bits = (uint32_t)f.value;
        switch (f.number) {
        case 1: a->name = f.bytes; break;
        case 2: memcpy(&a->f, &bits, sizeof bits); break;
        case 3: a->i = (int64_t)f.value; break;
        case 4: a->s = f.bytes; break;
        case 5:
            a->tensor = ARENA_NEW(r->arena, onnx_tensor);
            if (a->tensor == NULL)
                return opjit_rt_no_memory(r->error);
            TRY(read_tensor(r, f.bytes, a->tensor));
            break;
        case 6: TRY(read_subgraph(r, f.bytes, a)); break;
        case 7: case 8: case 9: TRY(read_numbers(r, message, &f, a)); break;
        case 20: a->type = (int32_t)f.value; break;
        case 21: a->reference = f.bytes; break;
        default: break;
        }
    }
    return in.bad ? damaged(r, "an attribute") : OPJIT_OK;
}

static opjit_status read_node(reading *r, wire_bytes message, onnx_node *n)
{
    opjit_status status = OPJIT_OK;
    uint32_t counts[PARTS];
    TRY(count_parts(r, message, counts));
    ARRAY_OF(r, wire_bytes, n->inputs, counts[1], &status);
    ARRAY_OF(r, wire_bytes, n->outputs, counts[2], &status);
    ARRAY_OF(r, onnx_attribute, n->attributes, counts[5], &status);
    TRY(status);
    wire_reader in = wire_read(message);
    for (wire_field f; opjit_onnx_next(&in, &f);) {
        if (f.type != WIRE_BYTES)
            continue;
        switch (f.number) {
        case 1: n->inputs[n->input_count++] = f.bytes; break;
        case 2: n->outputs[n->output_count++] = f.bytes; break;
        case 3: n->name = f.bytes; break;
        case 4: n->op = f.bytes; break;
        case 5: TRY(read_attribute(r, f.bytes, &n->attributes[n->attribute_count++])); break;
        case 7: n->domain = wire_is(f.bytes, "ai.onnx") ? (wire_bytes){ NULL, 0 } : f.bytes; break;
        default: break;
        }
    }
    return OPJIT_OK;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* The field of that number in a message that has it once; size 0, data NULL: none. */
static wire_bytes part(wire_bytes message, uint32_t number)
{
    wire_bytes found = { NULL, 0 };
    wire_reader in = wire_read(message);
    for (wire_field f; opjit_onnx_next(&in, &f);)
        if (f.number == number && f.type == WIRE_BYTES)
            found = f.bytes;
    return found;
}

static opjit_status read_port(const reading *r, wire_bytes message, onnx_port *p)
{
    wire_reader in = wire_read(message);
    wire_bytes type = { NULL, 0 }, shape = { NULL, 0 };
    for (wire_field f; opjit_onnx_next(&in, &f);) {
        if (f.number == 1)
            p->name = f.bytes;
        if (f.number == 2)
            type = part(f.bytes, 1); /* TypeProto.tensor_type */
    }
    wire_reader of_type = wire_read(type);
    for (wire_field f; opjit_onnx_next(&of_type, &f);) {
        if (f.number == 1)
            p->type = (int32_t)f.value;
        if (f.number == 2) {
            shape = f.bytes;
            p->has_shape = true;
        }
    }
    wire_reader of_shape = wire_read(shape);
    for (wire_field f; opjit_onnx_next(&of_shape, &f);) {
        if (f.number != 1)
            continue;
        if (p->rank == ONNX_RANK)
            return opjit_rt_refuse(r->error, OPJIT_LIMIT, "{!input}\"" ONNX_NAME "\" has more than %u dimensions",
                                      ONNX_SHOW(p->name), ONNX_RANK);
        onnx_dim *const dim = &p->dims[p->rank++];
        wire_reader of_dim = wire_read(f.bytes);
        for (wire_field value; opjit_onnx_next(&of_dim, &value);) {
            if (value.number == 1) {
                dim->known = (int64_t)value.value >= 0; /* exporters write -1 for what they don't know */
                dim->size = value.value;
            }
            if (value.number == 2)
                dim->name = value.bytes;
        }
    }
    return in.bad || of_type.bad || of_shape.bad ? damaged(r, "an input or output") : OPJIT_OK;
}

/* The nodes, which have that number, of a graph or function; count: how many there are. */
static opjit_status read_nodes(reading *r, wire_bytes message, uint32_t number, uint32_t count, onnx_node **out,
                               uint32_t *out_count)
{
    opjit_status status = OPJIT_OK;
    ARRAY_OF(r, onnx_node, *out, count, &status);
    TRY(status);
    wire_reader in = wire_read(message);
    for (wire_field f; opjit_onnx_next(&in, &f);)
        if (f.number == number && f.type == WIRE_BYTES) {
            (*out)[*out_count].index = *out_count;
            TRY(read_node(r, f.bytes, &(*out)[(*out_count)++]));
        }
    return OPJIT_OK;
}

static opjit_status read_graph(reading *r, wire_bytes message, onnx_graph *g)
{
    opjit_status status = OPJIT_OK;
    uint32_t counts[PARTS];
    TRY(count_parts(r, message, counts));
    TRY(read_nodes(r, message, 1, counts[1], &g->nodes, &g->node_count));
    ARRAY_OF(r, onnx_tensor, g->initializers, counts[5], &status);
    ARRAY_OF(r, onnx_port, g->inputs, counts[11], &status);
    ARRAY_OF(r, onnx_port, g->outputs, counts[12], &status);
    TRY(status);
    wire_reader in = wire_read(message);
    for (wire_field f; opjit_onnx_next(&in, &f);) {
        if (f.type != WIRE_BYTES)
            continue;
        switch (f.number) {
        case 2: g->name = f.bytes; break;
        case 5: TRY(read_tensor(r, f.bytes, &g->initializers[g->initializer_count++])); break;
        case 11: TRY(read_port(r, f.bytes, &g->inputs[g->input_count++])); break;
        case 12: TRY(read_port(r, f.bytes, &g->outputs[g->output_count++])); break;
        case 15: g->sparse = true; break;
        default: break;
        }
    }
    return OPJIT_OK;
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

/* One entry of opset_import. */
static void read_opset(wire_bytes message, int64_t *opset)
{
    wire_bytes domain = { NULL, 0 };
    int64_t version = 0;
    wire_reader in = wire_read(message);
    for (wire_field f; opjit_onnx_next(&in, &f);) {
        if (f.number == 1)
            domain = f.bytes;
        if (f.number == 2)
            version = (int64_t)f.value;
    }
    if (domain.size == 0 || wire_is(domain, "ai.onnx"))
        *opset = version;
    else if (*opset == 0)
        *opset = ONNX_OTHER_DOMAINS;
}

static opjit_status read_function(reading *r, wire_bytes message, onnx_function *fn)
{
    opjit_status status = OPJIT_OK;
    uint32_t counts[PARTS];
    TRY(count_parts(r, message, counts));
    ARRAY_OF(r, wire_bytes, fn->inputs, counts[4], &status);
    ARRAY_OF(r, wire_bytes, fn->outputs, counts[5], &status);
    ARRAY_OF(r, wire_bytes, fn->attributes, counts[6], &status);
    ARRAY_OF(r, onnx_attribute, fn->defaults, counts[11], &status);
    TRY(status);
    TRY(read_nodes(r, message, 7, counts[7], &fn->nodes, &fn->node_count));
    wire_reader in = wire_read(message);
    for (wire_field f; opjit_onnx_next(&in, &f);) {
        if (f.type != WIRE_BYTES)
            continue;
        switch (f.number) {
        case 1: fn->name = f.bytes; break;
        case 4: fn->inputs[fn->input_count++] = f.bytes; break;
        case 5: fn->outputs[fn->output_count++] = f.bytes; break;
        case 6: fn->attributes[fn->attribute_count++] = f.bytes; break;
        case 9: read_opset(f.bytes, &fn->opset); break;
        case 10: fn->domain = wire_is(f.bytes, "ai.onnx") ? (wire_bytes){ NULL, 0 } : f.bytes; break;
        case 11: TRY(read_attribute(r, f.bytes, &fn->defaults[fn->default_count++])); break;
        default: break;
        }
    }
    return OPJIT_OK;
}

opjit_status opjit_onnx_read(wire_bytes file, rt_arena *arena, onnx_model *out, opjit_error *error)
{
    reading r = { arena, error, 0 };
    opjit_status status = OPJIT_OK;
    uint32_t counts[PARTS];
    *out = (onnx_model){ 0 };
    TRY(count_parts(&r, file, counts));
    ARRAY_OF(&r, onnx_function, out->functions, counts[25], &status);
    TRY(status);
    wire_reader in = wire_read(file);
    for (wire_field f; opjit_onnx_next(&in, &f);) {
        if (f.number == 1 && f.type == WIRE_VARINT)
            out->ir_version = (int64_t)f.value;
        if (f.type != WIRE_BYTES)
            continue;
        if (f.number == 7) {
            out->graph = ARENA_NEW(arena, onnx_graph);
            if (out->graph == NULL)
                return opjit_rt_no_memory(error);
            TRY(read_graph(&r, f.bytes, out->graph));
        }
        if (f.number == 8)
            read_opset(f.bytes, &out->opset);
        if (f.number == 25)
            TRY(read_function(&r, f.bytes, &out->functions[out->function_count++]));
    }
    if (in.bad || out->graph == NULL || out->ir_version == 0)
        return damaged(&r, in.bad ? "a field is longer than the file" : "it has no graph or no version");
    return OPJIT_OK;
}
