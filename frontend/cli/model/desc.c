/* SPDX-License-Identifier: Apache-2.0 */
/* desc.c - JSON to descriptor structs, for every operator from its row's field table.  Only the form is checked
 * here (kinds, number ranges, lengths that belong together); what values mean is opjit_operator_create's to judge. */
#include <string.h>

#include "frontend/cli/model/model.h"
#include "frontend/cli/text/number.h"

static const cli_enum_name tensor_flag_names[] = {
    { "DML_TENSOR_FLAG_NONE", DML_TENSOR_FLAG_NONE },
    { "DML_TENSOR_FLAG_OWNED_BY_DML", DML_TENSOR_FLAG_OWNED_BY_DML },
    { NULL, 0 },
};
static const cli_enum tensor_flags = { "DML_TENSOR_FLAG_", tensor_flag_names };

static const cli_enum_name tensor_type_names[] = { { "DML_TENSOR_TYPE_BUFFER", DML_TENSOR_TYPE_BUFFER }, { NULL, 0 } };
static const cli_enum tensor_types = { "DML_TENSOR_TYPE_", tensor_type_names };

/* What one descriptor is read with. */
typedef struct desc_reader {
    cli_model *m;
    const cli_type *def;
    const json_value *json;
    uint8_t *desc;
    bool fused; /* a fused activation: its tensors may be left out */
} desc_reader;

static opjit_status read_fields(desc_reader *r);

/* --- arrays of numbers -------------------------------------------------------------------------------------------- */
static opjit_status need_array(cli_model *m, const json_value *value)
{
    if (value->kind != JSON_ARRAY)
        return opjit_cli_fail(m, value, OPJIT_INVALID_ARGUMENT, "this has to be an array");
    return OPJIT_OK;
}

/* Elements of 4 bytes of the given type; UINT32 may be dimensions by name. */
static opjit_status read_words(cli_model *m, const json_value *array, DML_TENSOR_DATA_TYPE type, const uint32_t **out,
                               uint32_t *out_count)
{
    DML_SCALAR_UNION element;
    uint32_t *words, i = 0;
    TRY(need_array(m, array));
    words = ARENA_ARRAY(&m->arena, uint32_t, array->count + 1);
    if (words == NULL)
        return opjit_cli_no_memory(m, array);
    for (const json_value *v = array->first; v != NULL; v = v->next) {
        if (type == DML_TENSOR_DATA_TYPE_UINT32 && v->kind == JSON_STRING && m->dims_json != NULL) {
            TRY(opjit_cli_dim(m, v, &words[i++]));
            continue;
        }
        TRY(opjit_cli_at(m, v, opjit_cli_element(v, type, 0, &element, &m->report.error)));
        words[i++] = element.UInt32;
    }
    *out = words;
    *out_count = i;
    return OPJIT_OK;
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */
static opjit_status read_sizes(cli_model *m, const json_value *json, DML_BUFFER_TENSOR_DESC *t)
{
    const json_value *const strides = opjit_cli_json_get(json, "Strides");
    const json_value *sizes;
    uint64_t rank;
    uint32_t count;
    TRY(opjit_cli_member(m, json, "Sizes", JSON_ARRAY, &sizes));
    TRY(read_words(m, sizes, DML_TENSOR_DATA_TYPE_UINT32, &t->Sizes, &t->DimensionCount));
    TRY(opjit_cli_uint_member(m, json, "DimensionCount", UINT32_MAX, t->DimensionCount, &rank));
    if (rank != t->DimensionCount)
        return opjit_cli_fail(m, opjit_cli_json_get(json, "DimensionCount"), OPJIT_INVALID_ARGUMENT,
                              "%u does not fit Sizes, which has %u elements", (unsigned)rank, t->DimensionCount);
    if (strides == NULL || strides->kind == JSON_NULL)
        return OPJIT_OK;
    TRY(read_words(m, strides, DML_TENSOR_DATA_TYPE_UINT32, &t->Strides, &count));
    if (count != t->DimensionCount)
        return opjit_cli_fail(m, strides, OPJIT_INVALID_ARGUMENT, "Strides has %u element%s, Sizes has %u", count,
                              count == 1 ? "" : "s", t->DimensionCount);
    return OPJIT_OK;
}

static opjit_status read_tensor(cli_model *m, const json_value *json, void *out)
{
    const json_value *wrapped = opjit_cli_json_get(json, "Desc"), *type = opjit_cli_json_get(json, "Type"), *member;
    DML_BUFFER_TENSOR_DESC *t = ARENA_NEW(&m->arena, DML_BUFFER_TENSOR_DESC);
    int32_t number;
    uint64_t alignment;
    if (t == NULL)
        return opjit_cli_no_memory(m, json);
    if (type != NULL)
        TRY(opjit_cli_enum(m, type, &tensor_types, &number));
    if (wrapped != NULL)
        json = wrapped;
    if (json->kind != JSON_OBJECT)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT, "a tensor has to be an object with DataType and Sizes");
    TRY(opjit_cli_member(m, json, "DataType", JSON_STRING, &member));
    TRY(opjit_cli_enum(m, member, &opjit_cli_data_types, &number));
    t->DataType = (DML_TENSOR_DATA_TYPE)number;
    if ((member = opjit_cli_json_get(json, "Flags")) != NULL) {
        TRY(opjit_cli_flags(m, member, &tensor_flags, &number));
        t->Flags = (DML_TENSOR_FLAGS)number;
    }
    TRY(read_sizes(m, json, t));
    TRY(opjit_cli_uint_member(m, json, "TotalTensorSizeInBytes", UINT64_MAX, 0, &t->TotalTensorSizeInBytes));
    TRY(opjit_cli_uint_member(m, json, "GuaranteedBaseOffsetAlignment", UINT32_MAX, 0, &alignment));
    t->GuaranteedBaseOffsetAlignment = (uint32_t)alignment;
    *(DML_TENSOR_DESC *)out = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, t };
    return OPJIT_OK;
}

/* The structures of `size` bytes that the elements of an array describe, or that one value describes. */
static opjit_status read_each(cli_model *m, const json_value *json, size_t size,
                              opjit_status (*read)(cli_model *, const json_value *, void *), const void **out,
                              uint32_t *out_count)
{
    const bool array = json->kind == JSON_ARRAY;
    const uint32_t count = array ? json->count : 1;
    uint8_t *const all = opjit_rt_arena_allocate(&m->arena, (size_t)count + 1, size), *at = all;
    if (all == NULL)
        return opjit_cli_no_memory(m, json);
    for (const json_value *v = array ? json->first : json; v != NULL; v = array ? v->next : NULL, at += size)
        TRY(read(m, v, at));
    *out = all;
    *out_count = count;
    return OPJIT_OK;
}

/* --- scalars ------------------------------------------------------------------------------------------------------ */
static const struct {
    const char *name;
    DML_TENSOR_DATA_TYPE type;
} union_members[] = {
    { "Int8", DML_TENSOR_DATA_TYPE_INT8 },       { "UInt8", DML_TENSOR_DATA_TYPE_UINT8 },
    { "Int16", DML_TENSOR_DATA_TYPE_INT16 },     { "UInt16", DML_TENSOR_DATA_TYPE_UINT16 },
    { "Int32", DML_TENSOR_DATA_TYPE_INT32 },     { "UInt32", DML_TENSOR_DATA_TYPE_UINT32 },
    { "Int64", DML_TENSOR_DATA_TYPE_INT64 },     { "UInt64", DML_TENSOR_DATA_TYPE_UINT64 },
    { "Float32", DML_TENSOR_DATA_TYPE_FLOAT32 }, { "Float64", DML_TENSOR_DATA_TYPE_FLOAT64 },
};

/* {"UInt16": 15360}: a member of the union by its name.  It must have the type's size, so that all bits are given. */
static opjit_status read_union(cli_model *m, const json_value *json, DML_TENSOR_DATA_TYPE type, DML_SCALAR_UNION *out)
{
    const json_value *found = NULL;
    size_t which = 0;
    for (size_t i = 0; i < sizeof union_members / sizeof *union_members; i++) {
        const json_value *member = opjit_cli_json_get(json, union_members[i].name);
        if (member != NULL && found != NULL)
            return opjit_cli_fail(m, member, OPJIT_INVALID_ARGUMENT, "a scalar has one member, here are two");
        if (member != NULL) {
            found = member;
            which = i;
        }
    }
    if (found == NULL)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                              "a scalar has one of the members Int8 to Int64, UInt8 to UInt64, Float32, Float64");
    if (opjit_data_type_size(union_members[which].type) != opjit_data_type_size(type))
        return opjit_cli_fail(m, found, OPJIT_INVALID_ARGUMENT, "%s has %u bytes, the scalar is %s and has %u",
                              union_members[which].name, opjit_data_type_size(union_members[which].type),
                              opjit_data_type_name(type), opjit_data_type_size(type));
    return opjit_cli_at(m, found, opjit_cli_element(found, union_members[which].type, 0, out, &m->report.error));
}

static opjit_status read_scalar(const desc_reader *r, const cli_field *field, const json_value *json,
                                DML_SCALAR_UNION *out)
{
    DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_UNKNOWN;
    uint32_t flags = 0;
    /* The data type is the nearest DATA_TYPE field before the scalar in the struct; in the JSON it may stand
     * anywhere. */
    for (const cli_field *f = r->def->fields; f != field; f++) {
        if (f->kind == OPJIT_FIELD_DATA_TYPE)
            memcpy(&type, r->desc + f->offset, sizeof type);
    }
    /* The document's own example has -2 for UINT8, which means 254. */
    if (r->def->type == DML_OPERATOR_FILL_VALUE_SEQUENCE && strcmp(field->name, "ValueDelta") == 0)
        flags = NUMBER_WRAPS;
    if (json->kind == JSON_OBJECT)
        return read_union(r->m, json, type, out);
    return opjit_cli_at(r->m, json, opjit_cli_element(json, type, flags, out, &r->m->report.error));
}

static opjit_status read_scale_bias(cli_model *m, const json_value *json, const void **out)
{
    DML_SCALE_BIAS *pair = ARENA_NEW(&m->arena, DML_SCALE_BIAS);
    DML_SCALAR_UNION value;
    if (pair == NULL)
        return opjit_cli_no_memory(m, json);
    for (int i = 0; i < 2; i++) {
        const char *const key = i == 0 ? "Scale" : "Bias";
        const json_value *const member = opjit_cli_json_get(json, key);
        if (member == NULL)
            return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                                  "this has to be an object with Scale and Bias: no %s", key);
        TRY(opjit_cli_at(m, member,
                         opjit_cli_element(member, DML_TENSOR_DATA_TYPE_FLOAT32, 0, &value, &m->report.error)));
        *(i == 0 ? &pair->Scale : &pair->Bias) = value.Float32;
    }
    *out = pair;
    return OPJIT_OK;
}

/* An object of two numbers, as DxDispatch has it. */
static opjit_status read_size_2d(cli_model *m, const json_value *json, DML_SIZE_2D *out)
{
    static const char *const keys[] = { "Width", "Height" };
    DML_SCALAR_UNION value;
    for (int i = 0; i < 2; i++) {
        const json_value *const member = opjit_cli_json_get(json, keys[i]);
        if (member == NULL)
            return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                                  "this has to be an object with Width and Height: no %s", keys[i]);
        TRY(opjit_cli_at(m, member,
                         opjit_cli_element(member, DML_TENSOR_DATA_TYPE_UINT32, 0, &value, &m->report.error)));
        *(i == 0 ? &out->Width : &out->Height) = value.UInt32;
    }
    return OPJIT_OK;
}

static opjit_status read_activation(cli_model *m, const json_value *json, void *out)
{
    const json_value *type, *wrapped = opjit_cli_json_get(json, "Desc");
    desc_reader r = { .m = m, .fused = true };
    TRY(opjit_cli_member(m, json, "Type", JSON_STRING, &type));
    TRY(opjit_cli_find_operator(m, type, &r.def));
    if (wrapped != NULL && wrapped->kind != JSON_OBJECT)
        return opjit_cli_fail(m, wrapped, OPJIT_INVALID_ARGUMENT,
                              "this has to be an object with the operator's fields");
    r.json = wrapped != NULL ? wrapped : json;
    r.desc = opjit_rt_arena_allocate(&m->arena, 1, r.def->desc_size);
    if (r.desc == NULL)
        return opjit_cli_no_memory(m, json);
    TRY(read_fields(&r));
    *(DML_OPERATOR_DESC *)out = (DML_OPERATOR_DESC){ r.def->type, r.desc };
    return OPJIT_OK;
}

/* --- fields ------------------------------------------------------------------------------------------------------- */
static bool is_array(const cli_field *field)
{
    return field->kind == OPJIT_FIELD_INPUTS || field->kind == OPJIT_FIELD_OUTPUTS ||
           field->kind == OPJIT_FIELD_UINT32S || field->kind == OPJIT_FIELD_INT32S ||
           field->kind == OPJIT_FIELD_FLOAT32S || field->kind == OPJIT_FIELD_ACTIVATIONS;
}

/* An array's length belongs to its count field.  JSON may give that too, and other arrays may share it: all must
 * agree. */
static opjit_status set_count(const desc_reader *r, const cli_field *field, const json_value *json, uint32_t count)
{
    memcpy(r->desc + field->count, &count, sizeof count);
    for (uint32_t i = 0; i < r->def->field_count; i++) {
        const cli_field *const other = &r->def->fields[i];
        const json_value *const value = opjit_cli_json_get(r->json, other->name);
        uint64_t given;
        if (other == field || value == NULL || value->kind == JSON_NULL)
            continue;
        if (other->kind == OPJIT_FIELD_UINT32 && other->offset == field->count) {
            TRY(opjit_cli_at(r->m, value,
                             opjit_cli_unsigned(value, "UINT32", UINT32_MAX, &given, &r->m->report.error)));
        } else if (is_array(other) && other->count == field->count && value->kind == JSON_ARRAY) {
            given = value->count;
        } else {
            continue;
        }
        if (given != count)
            return opjit_cli_fail(r->m, json, OPJIT_INVALID_ARGUMENT, "%s has %u element%s, but %s says %u",
                                  field->name, count, count == 1 ? "" : "s", other->name, (unsigned)given);
    }
    return OPJIT_OK;
}

static opjit_status read_array(const desc_reader *r, const cli_field *field, const json_value *json)
{
    const void *data = NULL;
    const uint32_t *words = NULL;
    uint32_t count = 0;
    switch (field->kind) {
    case OPJIT_FIELD_UINT32S: TRY(read_words(r->m, json, DML_TENSOR_DATA_TYPE_UINT32, &words, &count)); break;
    case OPJIT_FIELD_INT32S: TRY(read_words(r->m, json, DML_TENSOR_DATA_TYPE_INT32, &words, &count)); break;
    case OPJIT_FIELD_FLOAT32S: TRY(read_words(r->m, json, DML_TENSOR_DATA_TYPE_FLOAT32, &words, &count)); break;
    case OPJIT_FIELD_ACTIVATIONS:
        TRY(need_array(r->m, json));
        TRY(read_each(r->m, json, sizeof(DML_OPERATOR_DESC), read_activation, &data, &count));
        break;
    default:
        TRY(need_array(r->m, json));
        TRY(read_each(r->m, json, sizeof(DML_TENSOR_DESC), read_tensor, &data, &count));
        break;
    }
    if (words != NULL)
        data = words;
    memcpy(r->desc + field->offset, &data, sizeof data);
    return set_count(r, field, json, count);
}

/* A field of one 4-byte number. */
static opjit_status read_number(const desc_reader *r, const cli_field *field, const json_value *json)
{
    DML_SCALAR_UNION value;
    const DML_TENSOR_DATA_TYPE type = field->kind == OPJIT_FIELD_INT32    ? DML_TENSOR_DATA_TYPE_INT32
                                      : field->kind == OPJIT_FIELD_UINT32 ? DML_TENSOR_DATA_TYPE_UINT32
                                                                          : DML_TENSOR_DATA_TYPE_FLOAT32;
    TRY(opjit_cli_at(r->m, json, opjit_cli_element(json, type, 0, &value, &r->m->report.error)));
    memcpy(r->desc + field->offset, &value, sizeof(uint32_t));
    return OPJIT_OK;
}

static opjit_status read_field(const desc_reader *r, const cli_field *field, const json_value *json)
{
    void *const at = r->desc + field->offset;
    const void *pointer = NULL;
    int32_t number = 0;
    uint32_t count;
    switch (field->kind) {
    case OPJIT_FIELD_INPUT:
    case OPJIT_FIELD_OUTPUT:
        if (json->kind == JSON_ARRAY)
            return opjit_cli_fail(r->m, json, OPJIT_INVALID_ARGUMENT, "%s is one tensor, not an array", field->name);
        TRY(read_each(r->m, json, sizeof(DML_TENSOR_DESC), read_tensor, &pointer, &count));
        break;
    case OPJIT_FIELD_SCALE_BIAS: TRY(read_scale_bias(r->m, json, &pointer)); break;
    case OPJIT_FIELD_ACTIVATION:
        if (json->kind == JSON_ARRAY)
            return opjit_cli_fail(r->m, json, OPJIT_INVALID_ARGUMENT, "%s is one activation, not an array",
                                  field->name);
        TRY(read_each(r->m, json, sizeof(DML_OPERATOR_DESC), read_activation, &pointer, &count));
        break;
    case OPJIT_FIELD_INPUTS:
    case OPJIT_FIELD_OUTPUTS:
    case OPJIT_FIELD_UINT32S:
    case OPJIT_FIELD_INT32S:
    case OPJIT_FIELD_FLOAT32S:
    case OPJIT_FIELD_ACTIVATIONS: return read_array(r, field, json);
    case OPJIT_FIELD_SCALAR: return read_scalar(r, field, json, at);
    case OPJIT_FIELD_SIZE_2D: return read_size_2d(r->m, json, at);
    case OPJIT_FIELD_INT32:
    case OPJIT_FIELD_UINT32:
    case OPJIT_FIELD_FLOAT32: return read_number(r, field, json);
    case OPJIT_FIELD_DATA_TYPE: TRY(opjit_cli_enum(r->m, json, &opjit_cli_data_types, &number)); break;
    case OPJIT_FIELD_ENUM: TRY(opjit_cli_enum(r->m, json, field->enumeration, &number)); break;
    case OPJIT_FIELD_BOOL:
        if (json->kind != JSON_TRUE && json->kind != JSON_FALSE)
            return opjit_cli_fail(r->m, json, OPJIT_INVALID_ARGUMENT, "%s is true or false", field->name);
        number = json->kind == JSON_TRUE;
        break;
    }
    if (pointer != NULL)
        memcpy(at, &pointer, sizeof pointer);
    else
        memcpy(at, &number, sizeof number);
    return OPJIT_OK;
}

static opjit_status read_fields(desc_reader *r)
{
    for (uint32_t i = 0; i < r->def->field_count; i++) {
        const cli_field *const field = &r->def->fields[i];
        const json_value *const json = opjit_cli_json_get(r->json, field->name);
        const bool tensor = field->kind == OPJIT_FIELD_INPUT || field->kind == OPJIT_FIELD_OUTPUT;
        if (json == NULL || json->kind == JSON_NULL) {
            if ((field->flags & (OPJIT_FIELD_OPTIONAL | OPJIT_FIELD_COUNT)) != 0 || (tensor && r->fused))
                continue;
            return opjit_cli_missing_field(r->m, r->def, field, json != NULL ? json : r->json);
        }
        TRY(read_field(r, field, json));
    }
    return OPJIT_OK;
}

opjit_status opjit_cli_read_desc(cli_model *m, const cli_type *def, const json_value *json, void **out)
{
    desc_reader r = { .m = m, .def = def, .json = json };
    r.desc = opjit_rt_arena_allocate(&m->arena, 1, def->desc_size);
    if (r.desc == NULL)
        return opjit_cli_no_memory(m, json);
    TRY(read_fields(&r));
    *out = r.desc;
    return OPJIT_OK;
}
