/* SPDX-License-Identifier: Apache-2.0 */
/* resource.c - resources: buffers and what stands in them at first (lists, constants, sequences, files); dynamic
 * dimensions: their bounds, and the sizes that they have in this run. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "frontend/cli/files/files.h"
#include "frontend/cli/files/npy.h"
#include "frontend/cli/model/model.h"
#include "frontend/cli/text/number.h"

opjit_status opjit_cli_allocate(cli_model *m, const json_value *at, uint64_t bytes, uint8_t **out)
{
    if (bytes > m->max_bytes)
        return opjit_cli_fail(m, at, OPJIT_LIMIT,
                              "%" PRIu64 " bytes are more than a resource may have, %" PRIu64, bytes, m->max_bytes);
    if (bytes > m->max_total - m->total)
        return opjit_cli_fail(m, at, OPJIT_LIMIT,
                              "all resources together are more than the memory there is, %" PRIu64 " bytes",
                              m->max_total);
    *out = opjit_rt_allocate(&opjit_rt_default_allocator, (size_t)bytes, CLI_PAGE);
    if (*out == NULL)
        return opjit_cli_no_memory(m, at);
    m->total += bytes;
    memset(*out, 0, (size_t)bytes);
    return OPJIT_OK;
}

/* Allocates a resource for `bytes` initial bytes, with the size and offset that the model says. */
static opjit_status make_room(cli_model *m, cli_resource *resource, uint64_t bytes)
{
    const json_value *const size = opjit_cli_json_get(resource->json, "sizeInBytes");
    uint64_t end;
    TRY(opjit_cli_uint_member(m, resource->json, "initialValuesOffsetInBytes", UINT64_MAX, 0, &resource->first));
    if (!checked_add(resource->first, bytes, &end) || end > UINT64_MAX - 3)
        return opjit_cli_fail(m, opjit_cli_json_get(resource->json, "initialValuesOffsetInBytes"),
                              OPJIT_INVALID_ARGUMENT, "the offset is beyond the end of any memory");
    TRY(opjit_cli_uint_member(m, resource->json, "sizeInBytes", UINT64_MAX, end, &resource->said));
    if (resource->said < end)
        return opjit_cli_fail(m, size, OPJIT_INVALID_ARGUMENT,
                              "%" PRIu64 " bytes are not enough: the initial values end at %" PRIu64, resource->said,
                              end);
    if (resource->said == 0)
        return opjit_cli_fail(m, resource->json, OPJIT_INVALID_ARGUMENT, "the resource would have no bytes");
    resource->bytes = size != NULL ? resource->said : align_up(resource->said, 4);
    return opjit_cli_allocate(m, resource->json, resource->bytes, &resource->data);
}

static opjit_status make_room_for(cli_model *m, cli_resource *resource, uint64_t elements)
{
    uint64_t bytes;
    resource->elements = elements;
    if (!checked_mul(elements, opjit_data_type_size(resource->dtype), &bytes))
        return opjit_cli_fail(m, resource->json, OPJIT_LIMIT, "the initial values are longer than any memory");
    return make_room(m, resource, bytes);
}

/* --- values in the model ------------------------------------------------------------------------------------------ */
static opjit_status read_list(cli_model *m, cli_resource *resource, const json_value *values)
{
    const uint32_t size = opjit_data_type_size(resource->dtype);
    DML_SCALAR_UNION element;
    uint8_t *out;
    TRY(make_room_for(m, resource, values->count));
    out = resource->data + resource->first;
    for (const json_value *v = values->first; v != NULL; v = v->next, out += size) {
        TRY(opjit_cli_at(m, v, opjit_cli_element(v, resource->dtype, 0, &element, &m->report.error)));
        memcpy(out, &element, size);
    }
    return OPJIT_OK;
}

/* Values with a type each, one right behind the other: how constant buffers are written. */
static opjit_status read_mixed_list(cli_model *m, cli_resource *resource, const json_value *values)
{
    uint8_t *const types = ARENA_ARRAY(&m->arena, uint8_t, (size_t)values->count + 1);
    DML_SCALAR_UNION *const elements = ARENA_ARRAY(&m->arena, DML_SCALAR_UNION, (size_t)values->count + 1);
    uint64_t bytes = 0;
    uint32_t i = 0;
    uint8_t *out;
    if (types == NULL || elements == NULL)
        return opjit_cli_no_memory(m, values);
    for (const json_value *v = values->first; v != NULL; v = v->next, i++) {
        const json_value *member;
        int32_t type;
        if (v->kind != JSON_OBJECT)
            return opjit_cli_fail(m, v, OPJIT_INVALID_ARGUMENT,
                                  "without initialValuesDataType each value has to be an object "
                                  "with \"type\" and \"value\"");
        TRY(opjit_cli_member(m, v, "type", JSON_STRING, &member));
        TRY(opjit_cli_enum(m, member, &opjit_cli_data_types, &type));
        types[i] = (uint8_t)type;
        bytes += opjit_data_type_size((DML_TENSOR_DATA_TYPE)type);
        member = opjit_cli_json_get(v, "value");
        if (member == NULL)
            return opjit_cli_fail(m, v, OPJIT_INVALID_ARGUMENT, "\"value\" is missing");
        TRY(opjit_cli_at(m, member,
                         opjit_cli_element(member, (DML_TENSOR_DATA_TYPE)type, 0, &elements[i], &m->report.error)));
    }
    TRY(make_room(m, resource, bytes));
    resource->types = types;
    resource->elements = i;
    out = resource->data + resource->first;
    for (uint32_t k = 0; k < i; k++) {
        memcpy(out, &elements[k], opjit_data_type_size((DML_TENSOR_DATA_TYPE)types[k]));
        out += opjit_data_type_size((DML_TENSOR_DATA_TYPE)types[k]);
    }
    return OPJIT_OK;
}

/* a + b as the element type adds. */
static DML_SCALAR_UNION sum(DML_TENSOR_DATA_TYPE type, DML_SCALAR_UNION a, DML_SCALAR_UNION b)
{
    switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT16:
        a.UInt16 = opjit_float16_from_double((double)opjit_float16_to_float(a.UInt16) +
                                             (double)opjit_float16_to_float(b.UInt16));
        break;
    case DML_TENSOR_DATA_TYPE_FLOAT32: a.Float32 += b.Float32; break;
    case DML_TENSOR_DATA_TYPE_FLOAT64: a.Float64 += b.Float64; break;
    default: a.UInt64 += b.UInt64; break; /* little endian: the low bytes are right for every width */
    }
    return a;
}

static opjit_status read_scalar(cli_model *m, const cli_resource *resource, const json_value *object, const char *key,
                                DML_SCALAR_UNION *out)
{
    const json_value *const value = opjit_cli_json_get(object, key);
    if (value == NULL)
        return opjit_cli_fail(m, object, OPJIT_INVALID_ARGUMENT, "\"%s\" is missing", key);
    return opjit_cli_at(m, value, opjit_cli_element(value, resource->dtype, 0, out, &m->report.error));
}

/* {"valueCount", "value"} and {"valueCount", "valueStart", "valueDelta"}. */
static opjit_status read_generated(cli_model *m, cli_resource *resource, const json_value *values)
{
    const uint32_t size = opjit_data_type_size(resource->dtype);
    const bool constant = opjit_cli_json_get(values, "value") != NULL;
    const json_value *counted;
    DML_SCALAR_UNION value, delta = { { 0 } };
    uint64_t count;
    uint8_t *out;
    TRY(opjit_cli_member(m, values, "valueCount", JSON_NUMBER, &counted));
    TRY(opjit_cli_uint_member(m, values, "valueCount", UINT32_MAX, 0, &count));
    if (count == 0)
        return opjit_cli_fail(m, counted, OPJIT_INVALID_ARGUMENT, "valueCount has to be at least 1");
    TRY(read_scalar(m, resource, values, constant ? "value" : "valueStart", &value));
    if (!constant)
        TRY(read_scalar(m, resource, values, "valueDelta", &delta));
    TRY(make_room_for(m, resource, count));
    out = resource->data + resource->first;
    for (uint64_t i = 0; i < count; i++, out += size) {
        memcpy(out, &value, size);
        if (!constant)
            value = sum(resource->dtype, value, delta);
    }
    return OPJIT_OK;
}

/* --- values in a file --------------------------------------------------------------------------------------------- */
static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcasecmp(text + length - tail, end) == 0;
}

static opjit_status take_npy(cli_model *m, cli_resource *resource, const json_value *at, const rt_bytes *file)
{
    npy_array array;
    TRY(opjit_cli_at(m, at, opjit_cli_npy_read(file->data, file->size, &array, &m->report.error)));
    if (resource->dtype != DML_TENSOR_DATA_TYPE_UNKNOWN && resource->dtype != array.dtype)
        return opjit_cli_fail(m, opjit_cli_json_get(resource->json, "initialValuesDataType"), OPJIT_INVALID_ARGUMENT,
                              "%s does not fit the .npy file, which holds %s", opjit_data_type_name(resource->dtype),
                              opjit_data_type_name(array.dtype));
    resource->dtype = array.dtype;
    TRY(make_room_for(m, resource, array.elements));
    opjit_cli_npy_copy(&array, file->data, resource->data + resource->first);
    return OPJIT_OK;
}

static opjit_status take_raw(cli_model *m, cli_resource *resource, const json_value *at, const rt_bytes *file)
{
    const uint32_t size = opjit_data_type_size(resource->dtype);
    if (size != 0 && file->size % size != 0)
        return opjit_cli_fail(m, at, OPJIT_INVALID_ARGUMENT, "the file's %zu bytes are no whole number of %s elements",
                              file->size, opjit_data_type_name(resource->dtype));
    TRY(make_room(m, resource, file->size));
    resource->elements = size != 0 ? file->size / size : 0;
    if (file->size != 0)
        memcpy(resource->data + resource->first, file->data, file->size);
    return OPJIT_OK;
}

static opjit_status read_source(cli_model *m, cli_resource *resource, const json_value *values)
{
    const json_value *source;
    rt_bytes bytes;
    cli_file file;
    opjit_status status;
    char *path;
    TRY(opjit_cli_member(m, values, "sourcePath", JSON_STRING, &source));
    if (source->length == 0 || memchr(source->text, '\0', source->length) != NULL)
        return opjit_cli_fail(m, source, OPJIT_INVALID_ARGUMENT, "this is no path");
    if (ends_with(source->text, ".png") || ends_with(source->text, ".jpg") || ends_with(source->text, ".jpeg"))
        return opjit_cli_fail(m, source, OPJIT_UNSUPPORTED, "images are not read: give .npy or raw elements");
    if (m->no_files)
        return opjit_cli_fail(m, source, OPJIT_UNSUPPORTED, "files are not read here");
    path = opjit_cli_beside(&m->arena, m->path, source->text);
    if (path == NULL)
        return opjit_cli_no_memory(m, source);
    opjit_rt_bytes_init(&bytes, &opjit_rt_default_allocator);
    status = opjit_cli_file_find(m->path, source->text, m->outside, &file, &m->report.error);
    if (status == OPJIT_OK)
        status = opjit_cli_file_read(&file, m->max_bytes, &bytes, &m->report.error);
    opjit_cli_file_close(&file);
    status = opjit_cli_at_file(m, source, path, status);
    if (status == OPJIT_OK)
        status =
            ends_with(path, ".npy") ? take_npy(m, resource, source, &bytes) : take_raw(m, resource, source, &bytes);
    opjit_rt_bytes_free(&bytes);
    return status;
}

/* --- resources ---------------------------------------------------------------------------------------------------- */
/* Values in the model need to say what they are. */
static opjit_status need_type(cli_model *m, const cli_resource *resource)
{
    if (resource->dtype == DML_TENSOR_DATA_TYPE_UNKNOWN)
        return opjit_cli_fail(m, resource->json, OPJIT_INVALID_ARGUMENT, "\"initialValuesDataType\" is missing");
    return OPJIT_OK;
}

static opjit_status read_resource(cli_model *m, cli_resource *resource)
{
    const json_value *const values = opjit_cli_json_get(resource->json, "initialValues");
    const json_value *const type = opjit_cli_json_get(resource->json, "initialValuesDataType");
    int32_t number = DML_TENSOR_DATA_TYPE_UNKNOWN;
    if (resource->json->kind != JSON_OBJECT || values == NULL)
        return opjit_cli_fail(m, resource->json, OPJIT_INVALID_ARGUMENT,
                              "a resource has to be an object with \"initialValues\"");
    if (type != NULL)
        TRY(opjit_cli_enum(m, type, &opjit_cli_data_types, &number));
    resource->dtype = (DML_TENSOR_DATA_TYPE)number;
    if (number != DML_TENSOR_DATA_TYPE_UNKNOWN && opjit_data_type_size(resource->dtype) == 0)
        return opjit_cli_fail(m, type, OPJIT_UNSUPPORTED, "resources of type %.40s are not supported", type->text);
    if (opjit_cli_json_is(values, "deferred")) {
        resource->deferred = true;
        return OPJIT_OK;
    }
    if (values->kind == JSON_OBJECT && opjit_cli_json_get(values, "sourcePath") != NULL)
        return read_source(m, resource, values);
    if (values->kind == JSON_ARRAY && resource->dtype == DML_TENSOR_DATA_TYPE_UNKNOWN)
        return read_mixed_list(m, resource, values);
    if (values->kind != JSON_ARRAY && values->kind != JSON_OBJECT)
        return opjit_cli_fail(
            m, values, OPJIT_INVALID_ARGUMENT,
            "this has to be an array of values, an object with valueCount or sourcePath, or \"deferred\"");
    TRY(need_type(m, resource));
    return values->kind == JSON_ARRAY ? read_list(m, resource, values) : read_generated(m, resource, values);
}

opjit_status opjit_cli_read_resources(cli_model *m)
{
    const json_value *all;
    uint32_t i = 0;
    TRY(opjit_cli_member(m, m->root, "resources", JSON_OBJECT, &all));
    m->resources = ARENA_ARRAY(&m->arena, cli_resource, (size_t)all->count + 1);
    if (m->resources == NULL)
        return opjit_cli_no_memory(m, all);
    for (const json_value *v = all->first; v != NULL; v = v->next) {
        m->resources[i].json = v;
        m->resource_count = ++i;
        TRY(read_resource(m, &m->resources[i - 1]));
        m->resources[i - 1].written = !m->resources[i - 1].deferred;
    }
    return OPJIT_OK;
}

cli_resource *opjit_cli_find_resource(cli_model *m, const json_value *name)
{
    const json_value *const all = opjit_cli_json_get(m->root, "resources");
    const json_value *const found = opjit_cli_json_find(all, name->text, name->length);
    return found != NULL ? &m->resources[found->index] : NULL;
}

/* --- dynamic dimensions ------------------------------------------------------------------------------------------- */

static opjit_status read_dim(cli_model *m, const json_value *json)
{
    opjit_dim *const dim = &m->dims[m->dim_count];
    uint64_t numbers[3] = { 0 };
    uint32_t i = 0;
    if (m->dim_count == OPJIT_MAX_DIMS)
        return opjit_cli_fail(m, json, OPJIT_LIMIT, "more than %u dimensions", OPJIT_MAX_DIMS);
    if (json->key_length == 0 || json->key_length > 63 || strlen(json->key) != json->key_length)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT, "a dimension's name has 1 to 63 characters");
    if (json->kind != JSON_ARRAY || json->count < 2 || json->count > 3)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                              "this has to be an array of the least, the largest and a typical size");
    for (const json_value *v = json->first; v != NULL; v = v->next)
        TRY(opjit_cli_at(m, v, opjit_cli_unsigned(v, "INT32", INT32_MAX, &numbers[i++], &m->report.error)));
    if (numbers[0] < 1 || numbers[0] > numbers[1])
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                              "bounds %" PRIu64 " to %" PRIu64 ", must be at least 1, in order", numbers[0],
                              numbers[1]);
    if (json->count == 2)
        numbers[2] = (numbers[0] + numbers[1]) / 2;
    if (numbers[2] < numbers[0] || numbers[2] > numbers[1])
        return opjit_cli_fail(m, json->first->next->next, OPJIT_INVALID_ARGUMENT,
                              "%" PRIu64 " is outside of %" PRIu64 " to %" PRIu64, numbers[2], numbers[0], numbers[1]);
    *dim = (opjit_dim){ json->key, numbers[0], numbers[1], numbers[2] };
    m->dim_sizes[m->dim_count++] = numbers[2];
    return OPJIT_OK;
}

/* "n=5": the size in this run. */
static opjit_status set_size(cli_model *m, const char *text)
{
    const char *const sign = strchr(text, '=');
    const size_t length = sign == NULL ? strlen(text) : (size_t)(sign - text);
    char *end = NULL;
    for (uint32_t i = 0; i < m->dim_count; i++) {
        const opjit_dim *const dim = &m->dims[i];
        if (strlen(dim->name) != length || memcmp(dim->name, text, length) != 0)
            continue;
        const uint64_t size = sign != NULL && sign[1] >= '0' && sign[1] <= '9' ? strtoull(sign + 1, &end, 10) : 0;
        if (end == NULL || *end != '\0' || size < dim->lo || size > dim->hi)
            return opjit_cli_fail(m, m->dims_json, OPJIT_INVALID_ARGUMENT,
                                  "--dim %.80s: must be a size from %" PRIu64 " to %" PRIu64, text, dim->lo, dim->hi);
        m->dim_sizes[i] = size;
        m->dims_set |= 1u << i;
        return OPJIT_OK;
    }
    return opjit_cli_fail(m, m->dims_json, OPJIT_INVALID_ARGUMENT, "--dim %.80s: there is no dimension of this name",
                          text);
}

opjit_status opjit_cli_read_dims(cli_model *m)
{
    m->dims_json = opjit_cli_json_get(m->root, "dims");
    if (m->dims_json == NULL)
        return m->given_count == 0 || !m->given_to_one
                   ? OPJIT_OK
                   : opjit_cli_fail(m, m->root, OPJIT_INVALID_ARGUMENT, "--dim %.80s: the model has no \"dims\"",
                                    m->given_dims[0]);
    if (m->dims_json->kind != JSON_OBJECT)
        return opjit_cli_fail(m, m->dims_json, OPJIT_INVALID_ARGUMENT,
                              "this is %s, but has to be an object: dimensions by name",
                              opjit_cli_kind_name(m->dims_json->kind));
    for (const json_value *v = m->dims_json->first; v != NULL; v = v->next)
        TRY(read_dim(m, v));
    for (uint32_t i = 0; i < m->given_count; i++)
        TRY(set_size(m, m->given_dims[i]));
    return OPJIT_OK;
}

opjit_status opjit_cli_dim(cli_model *m, const json_value *name, uint32_t *out)
{
    for (uint32_t i = 0; i < m->dim_count; i++)
        if (opjit_cli_json_is(name, m->dims[i].name)) {
            *out = m->symbolic ? OPJIT_DIM(i) : (uint32_t)m->dim_sizes[i];
            m->uses_dims = true;
            return OPJIT_OK;
        }
    return opjit_cli_no_member(m, name, "dimension", m->dims_json);
}

bool opjit_cli_has_sizes(const cli_model *m)
{
    return m->dims_set == (1u << m->dim_count) - 1;
}
