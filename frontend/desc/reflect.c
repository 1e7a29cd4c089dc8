/* SPDX-License-Identifier: Apache-2.0 */
/* reflect.c - opjit/reflect.h's questions about types of operators and about operators that were made, answered out of
 * the rows that validate and lower them.  What a kernel will need is compile/plan.c's. */
#include <opjit/reflect.h>

#include <string.h>

#include "frontend/frontend.h"

/* --- data types and feature levels -------------------------------------------------------------------------------- */

const char *opjit_data_type_name(DML_TENSOR_DATA_TYPE type)
{
    return opjit_rt_dtype_name(type);
}

uint32_t opjit_data_type_size(DML_TENSOR_DATA_TYPE type)
{
    return opjit_rt_dtype_size(type);
}

_Static_assert(OPJIT_DATA_TYPES_TEXT == FE_TYPES_TEXT, "one text");
void opjit_data_types_text(uint32_t types, char text[OPJIT_DATA_TYPES_TEXT])
{
    opjit_fe_types_text(types, text);
}

uint16_t opjit_float16_from_double(double value)
{
    return opjit_ir_f64_to_f16(value);
}

float opjit_float16_to_float(uint16_t bits)
{
    return opjit_ir_f16_to_f32(bits);
}

uint32_t opjit_feature_level_at(uint32_t index)
{
    return opjit_rt_feature_level(index);
}

/* --- types of operators ------------------------------------------------------------------------------------------- */

uint32_t opjit_operator_type_count(void)
{
    uint32_t count = 0;

    while (opjit_fe_op_at(count) != NULL)
        count++;
    return count;
}

DML_OPERATOR_TYPE opjit_operator_type_at(uint32_t index)
{
    const op_def *def = opjit_fe_op_at(index);

    return def == NULL ? DML_OPERATOR_INVALID : def->type;
}

DML_OPERATOR_TYPE opjit_operator_type_find(const char *name)
{
    const op_def *def = name == NULL ? NULL : opjit_fe_op_find_name(name, strlen(name));

    return def == NULL ? DML_OPERATOR_INVALID : def->type;
}

static const rt_struct type_sizes = { "opjit_operator_type_info", { RT_SIZE_TO(opjit_operator_type_info, reserved) } };
RT_STRUCT_ENDS_WITH(opjit_operator_type_info, reserved);

const char *opjit_operator_type_name(DML_OPERATOR_TYPE type)
{
    return opjit_fe_op_type_name(type);
}

opjit_status opjit_operator_type_get_info(DML_OPERATOR_TYPE type, opjit_operator_type_info *out_info,
                                          opjit_error *error)
{
    opjit_operator_type_info info = OPJIT_OPERATOR_TYPE_INFO_INIT;
    const op_def *def;

    opjit_rt_error_clear(error);
    if (out_info == NULL)
        return opjit_rt_refuse_null(error, "out_info");
    TRY(opjit_fe_op_require(type, &def, error));
    info.type = def->type;
    info.name = def->name;
    info.formula = def->formula;
    info.feature_level = def->introduced;
    info.desc_bytes = def->desc_size;
    info.field_count = def->field_count;
    info.support_count = def->support_count;
    info.flags = (def->element != NULL ? OPJIT_OPERATOR_POINTWISE : 0) |
                 ((def->traits & OP_FUSABLE) != 0 ? OPJIT_OPERATOR_FUSABLE : 0);
    return opjit_rt_struct_write(&type_sizes, out_info, &info, error);
}

/* --- fields ------------------------------------------------------------------------------------------------------- */

/* The public numbers are those of the rows. */
_Static_assert((int)OP_INPUT == OPJIT_FIELD_INPUT && (int)OP_OUTPUT == OPJIT_FIELD_OUTPUT &&
                   (int)OP_INPUTS == OPJIT_FIELD_INPUTS && (int)OP_OUTPUTS == OPJIT_FIELD_OUTPUTS &&
                   (int)OP_DTYPE == OPJIT_FIELD_DATA_TYPE && (int)OP_SCALAR == OPJIT_FIELD_SCALAR &&
                   (int)OP_INT == OPJIT_FIELD_INT32 && (int)OP_UINT == OPJIT_FIELD_UINT32 &&
                   (int)OP_FLOAT == OPJIT_FIELD_FLOAT32 && (int)OP_BOOL == OPJIT_FIELD_BOOL &&
                   (int)OP_ENUM == OPJIT_FIELD_ENUM && (int)OP_UINTS == OPJIT_FIELD_UINT32S &&
                   (int)OP_INTS == OPJIT_FIELD_INT32S && (int)OP_FLOATS == OPJIT_FIELD_FLOAT32S &&
                   (int)OP_SCALE_BIAS == OPJIT_FIELD_SCALE_BIAS && (int)OP_ACTIVATION == OPJIT_FIELD_ACTIVATION &&
                   (int)OP_SIZE_2D == OPJIT_FIELD_SIZE_2D &&
                   (int)OP_ACTIVATIONS == OPJIT_FIELD_ACTIVATIONS,
               "kinds");
_Static_assert(OP_OPTIONAL == OPJIT_FIELD_OPTIONAL && OP_LATE == OPJIT_FIELD_LATE && OP_COUNT == OPJIT_FIELD_COUNT &&
                   OP_NONZERO == OPJIT_FIELD_NONZERO && OP_ONE_UP == OPJIT_FIELD_ONE_UP &&
                   OP_BROADCAST == OPJIT_FIELD_BROADCAST,
               "flags");

static uint32_t count_values(const op_field *field)
{
    uint32_t count = 0;

    while (field->kind == OP_ENUM && field->enumeration->names[count].name != NULL)
        count++;
    return count;
}

static const rt_struct field_sizes = { "opjit_field_info", { RT_SIZE_TO(opjit_field_info, enum_prefix) } };
RT_STRUCT_ENDS_WITH(opjit_field_info, enum_prefix);

opjit_status opjit_operator_type_get_field(DML_OPERATOR_TYPE type, uint32_t index, opjit_field_info *out_info,
                                           opjit_error *error)
{
    opjit_field_info info = OPJIT_FIELD_INFO_INIT;
    const op_field *field;
    const op_def *def;

    opjit_rt_error_clear(error);
    if (out_info == NULL)
        return opjit_rt_refuse_null(error, "out_info");
    TRY(opjit_fe_op_require(type, &def, error));
    if (index >= def->field_count)
        return opjit_rt_refuse(error, OPJIT_NOT_FOUND, "{%s}: {!index}field {%u}, must be below %u", def->name, index,
                               def->field_count);
    field = &def->fields[index];
    info.kind = (opjit_field_kind)field->kind;
    info.name = field->name;
    info.flags = field->flags;
    info.offset = field->offset;
    info.count_offset = field->count;
    info.value_count = count_values(field);
    info.enum_prefix = field->kind == OP_ENUM ? field->enumeration->prefix : NULL;
    return opjit_rt_struct_write(&field_sizes, out_info, &info, error);
}

const char *opjit_field_value_at(DML_OPERATOR_TYPE type, uint32_t field, uint32_t index, int32_t *out_value)
{
    const op_def *def = opjit_fe_op_find(type);
    const op_field *row;

    if (def == NULL || field >= def->field_count || index >= count_values(&def->fields[field]))
        return NULL;
    row = &def->fields[field];
    if (out_value != NULL)
        *out_value = row->enumeration->names[index].value;
    return row->enumeration->names[index].name + strlen(row->enumeration->prefix);
}

/* --- ranks and data types ----------------------------------------------------------------------------------------- */

static const rt_struct support_sizes = { "opjit_support_info", { RT_SIZE_TO(opjit_support_info, reserved) } };
RT_STRUCT_ENDS_WITH(opjit_support_info, reserved);

static opjit_status put_support(const op_support *row, opjit_support_info *out_info, opjit_error *error)
{
    opjit_support_info info = OPJIT_SUPPORT_INFO_INIT;

    info.feature_level = row->level;
    info.tensor = row->field;
    info.rank_min = row->rank_min;
    info.rank_max = row->rank_max;
    info.types = row->types;
    return opjit_rt_struct_write(&support_sizes, out_info, &info, error);
}

opjit_status opjit_operator_type_get_support(DML_OPERATOR_TYPE type, uint32_t index, opjit_support_info *out_info,
                                             opjit_error *error)
{
    const op_def *def;

    opjit_rt_error_clear(error);
    if (out_info == NULL)
        return opjit_rt_refuse_null(error, "out_info");
    TRY(opjit_fe_op_require(type, &def, error));
    if (index >= def->support_count)
        return opjit_rt_refuse(error, OPJIT_NOT_FOUND, "{%s}: {!index}support row {%u}, must be below %u", def->name,
                               index, def->support_count);
    return put_support(&def->support[index], out_info, error);
}

/* The type's row at a level that has it. */
static opjit_status require_at(DML_OPERATOR_TYPE type, uint32_t level, const op_def **out, opjit_error *error)
{
    TRY(opjit_fe_op_require(type, out, error));
    TRY(opjit_rt_feature_level_check(level, error));
    if (op_is_at(*out, level))
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{%s}: {!feature_level}feature level {%s}, must be %s%s",
                           (*out)->name, opjit_fe_level_text(level).text, (*out)->introduced != 0 ? "at least " : "",
                           opjit_fe_level_text((*out)->introduced).text);
}

/* The tensor field of that name; NULL: the first output. */
static opjit_status find_tensor(const op_def *def, const char *name, const op_field **out, opjit_error *error)
{
    for (uint32_t i = 0; i < def->field_count; i++) {
        const op_field *field = &def->fields[i];
        *out = field;
        if (field->kind > OP_OUTPUTS)
            continue;
        if (name != NULL ? strcmp(field->name, name) == 0 : field->kind == OP_OUTPUT || field->kind == OP_OUTPUTS)
            return OPJIT_OK;
    }
    return opjit_rt_refuse(error, OPJIT_NOT_FOUND, "{%s}: {!tensor}\"{%.64s}\", must be one of its tensors", def->name,
                           name == NULL ? "" : name);
}

opjit_status opjit_operator_type_find_support(DML_OPERATOR_TYPE type, const char *tensor, uint32_t feature_level,
                                              opjit_support_info *out_info, opjit_error *error)
{
    const op_field *field;
    const op_def *def;

    opjit_rt_error_clear(error);
    if (out_info == NULL)
        return opjit_rt_refuse_null(error, "out_info");
    TRY(require_at(type, feature_level, &def, error));
    if (tensor != NULL)
        TRY(find_tensor(def, tensor, &field, error));
    return put_support(opjit_fe_op_support(def, tensor, feature_level), out_info, error);
}

opjit_status opjit_query_support(DML_OPERATOR_TYPE type, const char *tensor, DML_TENSOR_DATA_TYPE dtype, uint32_t rank,
                                 uint32_t feature_level, const char *target, opjit_error *error)
{
    const fe_tensor asked = { .dtype = dtype, .rank = rank };
    const op_field *field;
    const op_def *def;
    rt_target parsed;

    opjit_rt_error_clear(error);
    TRY(require_at(type, feature_level, &def, error));
    TRY(find_tensor(def, tensor, &field, error));
    if (opjit_rt_dtype_bytes(dtype, 1) == 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.DataType}: {%u}, must be a DML_TENSOR_DATA_TYPE (1 to 13)", def->name,
                               field->name, (unsigned)dtype);
    TRY(opjit_fe_check_support(def, field->name, field->name, feature_level, &asked, error));
    if (target == NULL)
        return OPJIT_OK;
    TRY(opjit_rt_target_parse(target, &parsed, error));
    return opjit_fe_has_codegen()
               ? OPJIT_OK
               : opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                                 "{!argument}{target} {%.100s}: this opjit was built without code generation", target);
}

/* --- operators that were made ------------------------------------------------------------------------------------- */

static const rt_struct info_sizes = { "opjit_operator_info", { RT_SIZE_TO(opjit_operator_info, reserved) } };
RT_STRUCT_ENDS_WITH(opjit_operator_info, reserved);

opjit_status opjit_operator_get_info(const opjit_operator *op, opjit_operator_info *out_info, opjit_error *error)
{
    opjit_operator_info info = OPJIT_OPERATOR_INFO_INIT;

    opjit_rt_error_clear(error);
    if (op == NULL || out_info == NULL)
        return opjit_rt_refuse_null(error, op == NULL ? "op" : "out_info");
    info.type = op->custom != NULL ? DML_OPERATOR_INVALID : op->def->type;
    info.name = op->def->name;
    info.input_count = op->input_count;
    info.output_count = op->output_count;
    info.feature_level = op->level;
    return opjit_rt_struct_write(&info_sizes, out_info, &info, error);
}

static const rt_struct tensor_sizes = { "opjit_tensor_info", { RT_SIZE_TO(opjit_tensor_info, reserved) } };
RT_STRUCT_ENDS_WITH(opjit_tensor_info, reserved);

opjit_status opjit_fe_put_tensor_info(opjit_tensor_info *out, const char *name, const fe_tensor *t, opjit_error *error)
{
    opjit_tensor_info info = OPJIT_TENSOR_INFO_INIT;

    info.name = name;
    if (t->present) {
        info.rank = t->rank;
        info.dtype = t->dtype;
        info.flags = t->flags;
        memcpy(info.sizes, t->sizes, sizeof info.sizes);
        memcpy(info.strides, t->strides, sizeof info.strides);
        info.elements = t->elements;
        info.bytes = t->bytes;
        info.align = t->align;
    }
    return opjit_rt_struct_write(&tensor_sizes, out, &info, error);
}

static opjit_status put_tensor(const opjit_operator *op, bool is_input, uint32_t index, opjit_tensor_info *out_info,
                               opjit_error *error)
{
    uint32_t count;

    opjit_rt_error_clear(error);
    if (op == NULL || out_info == NULL)
        return opjit_rt_refuse_null(error, op == NULL ? "op" : "out_info");
    count = is_input ? op->input_count : op->output_count;
    if (index >= count)
        return opjit_rt_refuse(error, OPJIT_NOT_FOUND, "{%s}: {!index}%s {%u}, must be below %u", op->def->name,
                               is_input ? "input" : "output", index, count);
    return opjit_fe_put_tensor_info(out_info, is_input ? op->input_names[index] : op->output_names[index],
                                    is_input ? &op->inputs[index] : &op->outputs[index], error);
}

opjit_status opjit_operator_get_input(const opjit_operator *op, uint32_t index, opjit_tensor_info *out_info,
                                      opjit_error *error)
{
    return put_tensor(op, true, index, out_info, error);
}

opjit_status opjit_operator_get_output(const opjit_operator *op, uint32_t index, opjit_tensor_info *out_info,
                                       opjit_error *error)
{
    return put_tensor(op, false, index, out_info, error);
}
