/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c - walks the fields of an operator's row: checks each and copies what it points to into the operator.  Single
 * tensors are checked in tensor.c, what a level allows in rules.c. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

static const void *field_at(const void *desc, const op_field *field)
{
    return (const uint8_t *)desc + field->offset;
}

static uint32_t read_u32(const void *desc, size_t offset)
{
    uint32_t value;
    memcpy(&value, (const uint8_t *)desc + offset, sizeof value);
    return value;
}

static const void *read_pointer(const void *desc, const op_field *field)
{
    const void *value;
    memcpy(&value, field_at(desc, field), sizeof value);
    return value;
}

static void write_pointer(void *desc, const op_field *field, const void *value)
{
    memcpy((uint8_t *)desc + field->offset, &value, sizeof value);
}

/* State of the walk over an operator's fields. */
typedef struct walk {
    opjit_operator *op;
    uint32_t level;
    uint32_t inputs, outputs; /* tensors seen so far */
    opjit_error *error;
} walk;

static bool is_output(const op_field *field)
{
    return field->kind == OP_OUTPUT || field->kind == OP_OUTPUTS;
}

static opjit_status field_error(const walk *w, const op_field *field, const char *text)
{
    return opjit_rt_refuse(w->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {%s}", w->op->def->name, field->name, text);
}

opjit_status opjit_fe_check_count_of_tensors(const op_def *def, const op_field *field, uint32_t count,
                                             opjit_error *error)
{
    if (count != 0 && count <= FE_TENSORS_MAX)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {%u} tensors, must be 1 to %u", def->name,
                           field->name, count, FE_TENSORS_MAX);
}

opjit_status opjit_fe_count_tensors(const op_def *def, const void *desc, uint32_t *out_inputs, uint32_t *out_outputs,
                                    opjit_error *error)
{
    *out_inputs = *out_outputs = 0;
    for (uint32_t i = 0; i < def->field_count; i++) {
        const op_field *field = &def->fields[i];
        uint32_t count = op_is_input(field) || is_output(field);
        if (op_is_tensor_array(field)) {
            count = read_u32(desc, field->count);
            TRY(opjit_fe_check_count_of_tensors(def, field, count, error));
        }
        *(is_output(field) ? out_outputs : out_inputs) += count;
    }
    return OPJIT_OK;
}

/* A copy of count elements in the arena; an absent array stays absent. */
static opjit_status copy_array(walk *w, const void *from, size_t count, size_t size, const void **out)
{
    *out = from == NULL ? NULL : opjit_rt_arena_copy(&w->op->arena, from, count, size);
    return from != NULL && *out == NULL ? opjit_rt_no_memory(w->error) : OPJIT_OK;
}

/* A tensor's descriptor with its lists behind it: sizes, then strides if there are any. */
typedef struct tensor_copy {
    DML_BUFFER_TENSOR_DESC desc;
    uint32_t lists[];
} tensor_copy;

/* Turns *desc into one that points into the arena only, and says what was checked: ranks and sizes are the tensor's. */
static opjit_status copy_tensor(walk *w, const fe_tensor *tensor, DML_TENSOR_DESC *desc)
{
    const DML_BUFFER_TENSOR_DESC *from = desc->Desc;
    const uint32_t rank = tensor->rank;
    tensor_copy *copy = opjit_rt_arena_allocate(&w->op->arena, 1, sizeof *copy + 2 * rank * sizeof *copy->lists);

    if (copy == NULL)
        return opjit_rt_no_memory(w->error);
    copy->desc = *from;
    copy->desc.DimensionCount = rank;
    copy->desc.Sizes = copy->lists;
    for (uint32_t i = 0; i < rank; i++)
        copy->lists[i] = (uint32_t)tensor->sizes[i];
    if (copy->desc.Strides != NULL) {
        const uint32_t *const strides = copy->desc.Strides;
        copy->desc.Strides = copy->lists + rank;
        for (uint32_t i = 0; i < rank; i++)
            copy->lists[rank + i] = strides[i];
    }
    desc->Desc = &copy->desc;
    return OPJIT_OK;
}

/* The name of a tensor, index of an array or -1; NULL: no memory. */
static const char *tensor_name(walk *w, const op_field *field, int64_t index)
{
    char text[80];
    int length;

    if (index < 0)
        return field->name;
    length = snprintf(text, sizeof text, "%s[%u]", field->name, (unsigned)index);
    return opjit_rt_arena_string(&w->op->arena, text, (size_t)length);
}

/* One tensor, index of an array or -1, into the operator's next input or output.  desc is the operator's own copy of
 * the outer struct; NULL: absent. */
static opjit_status take_tensor(walk *w, const op_field *field, int64_t index, DML_TENSOR_DESC *desc)
{
    opjit_operator *op = w->op;
    const uint32_t position = is_output(field) ? w->outputs++ : w->inputs++;
    fe_tensor *tensor = is_output(field) ? &op->outputs[position] : &op->inputs[position];
    const char *name = tensor_name(w, field, index);

    if (name == NULL)
        return opjit_rt_no_memory(w->error);
    (is_output(field) ? op->output_names : op->input_names)[position] = name;
    if (desc == NULL && (field->flags & OP_OPTIONAL) != 0) {
        *tensor = (fe_tensor){ 0 };
        return OPJIT_OK;
    }
    TRY(opjit_fe_tensor_resolve(desc, is_output(field), op->def->name, name, tensor, w->error));
    tensor->broadcasts = (field->flags & OP_BROADCAST) != 0;
    TRY(opjit_fe_check_support(op->def, field->name, name, w->level, tensor, w->error));
    return copy_tensor(w, tensor, desc);
}

static opjit_status take_tensors(walk *w, const op_field *field)
{
    const void *given = read_pointer(w->op->desc, field);
    const uint32_t count = op_is_tensor_array(field) ? read_u32(w->op->desc, field->count) : 1;
    const void *copy;
    DML_TENSOR_DESC *tensors;

    TRY(copy_array(w, given, count, sizeof(DML_TENSOR_DESC), &copy));
    write_pointer(w->op->desc, field, copy);
    tensors = (DML_TENSOR_DESC *)copy; /* the arena's, so ours to change */
    if (tensors == NULL && op_is_tensor_array(field))
        return field_error(w, field, "NULL, must be an array of tensors");
    for (uint32_t i = 0; i < count; i++)
        TRY(take_tensor(w, field, op_is_tensor_array(field) ? (int64_t)i : -1, tensors == NULL ? NULL : &tensors[i]));
    return OPJIT_OK;
}

opjit_status opjit_fe_check_numbers(const op_def *def, const op_field *field, const void *given, uint32_t count,
                                    opjit_error *error)
{
    if (given == NULL && count != 0 && (field->flags & OP_OPTIONAL) == 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {NULL}, must be an array of %u", def->name,
                               field->name, count);
    if (given != NULL && count > FE_NUMBERS_MAX)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: an array of {%u}, must be at most %u",
                               def->name, field->name, count, FE_NUMBERS_MAX);
    return OPJIT_OK;
}

/* An array of numbers, whose count the operator's own check judges. */
static opjit_status take_numbers(walk *w, const op_field *field)
{
    const void *given = read_pointer(w->op->desc, field);
    const uint32_t count = read_u32(w->op->desc, field->count);
    const void *copy;

    TRY(opjit_fe_check_numbers(w->op->def, field, given, count, w->error));
    TRY(copy_array(w, given, count, sizeof(uint32_t), &copy));
    for (uint32_t i = 0; field->kind == OP_UINTS && copy != NULL && i < count; i++)
        if (fe_is_symbol(((const uint32_t *)copy)[i]))
            return opjit_fe_refuse_symbol(w->op->def->name, field->name, i, ((const uint32_t *)copy)[i], w->error);
    write_pointer(w->op->desc, field, copy);
    return OPJIT_OK;
}

static opjit_status check_enum(const walk *w, const op_field *field)
{
    const int32_t value = (int32_t)read_u32(w->op->desc, field->offset);
    const op_enum_name *names = field->enumeration->names;
    int32_t lo = names[0].value, hi = names[0].value;

    for (const op_enum_name *n = names; n->name != NULL; n++) {
        if (n->value == value)
            return OPJIT_OK;
        lo = n->value < lo ? n->value : lo;
        hi = n->value > hi ? n->value : hi;
    }
    return opjit_rt_refuse(w->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {%d}, must be a %.*s (%d to %d)",
                           w->op->def->name, field->name, value, (int)strlen(field->enumeration->prefix) - 1,
                           field->enumeration->prefix, lo, hi);
}

/* All operators that take an activation take the same ones: those with OP_FUSABLE. */
static opjit_status find_activation(const walk *w, const op_field *field, DML_OPERATOR_TYPE type, const op_def **out)
{
    const char *name = opjit_fe_op_type_name(type);

    *out = opjit_fe_op_find(type);
    if (*out == NULL || ((*out)->traits & OP_FUSABLE) == 0)
        return opjit_rt_refuse(w->error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s}: operator type {%u} (%s), must be an activation that can be fused",
                               w->op->def->name, field->name, (unsigned)type, name == NULL ? "unknown" : name);
    if (!op_is_at(*out, w->level))
        return opjit_rt_refuse(w->error, OPJIT_UNSUPPORTED,
                               "{%s} {%s}: {%s} needs feature level %s, this context has %s", w->op->def->name,
                               field->name, name, opjit_fe_level_text((*out)->introduced).text,
                               opjit_fe_level_text(w->level).text);
    return OPJIT_OK;
}

static opjit_status check_float(const walk *w, const op_def *def, const op_field *field, const void *desc)
{
    float value;

    memcpy(&value, (const uint8_t *)desc + field->offset, sizeof value);
    if ((field->flags & OP_NONZERO) != 0 && value == 0)
        return opjit_rt_refuse(w->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {0}, must not be 0", def->name,
                               field->name);
    if ((field->flags & OP_ONE_UP) != 0 && value < 1 && w->level != 0 && w->level < DML_FEATURE_LEVEL_6_4)
        return opjit_rt_refuse(w->error, OPJIT_UNSUPPORTED,
                               "{%s} {%s}: {%g}, must be at least 1 before feature level 6.4", def->name, field->name,
                               (double)value);
    return OPJIT_OK;
}

/* A fused activation's descriptor has no tensors, and of its other fields a copy is kept. */
static opjit_status take_activation(walk *w, const op_field *field, const DML_OPERATOR_DESC *given,
                                    DML_OPERATOR_DESC *out)
{
    const op_def *def;

    TRY(find_activation(w, field, given->Type, &def));
    if (given->Desc == NULL)
        return field_error(w, field, "its Desc is NULL, must be its descriptor struct");
    for (uint32_t i = 0; i < def->field_count; i++) {
        const op_field *inner = &def->fields[i];
        if (inner->kind != OP_FLOAT && read_pointer(given->Desc, inner) != NULL)
            return opjit_rt_refuse(w->error, OPJIT_INVALID_ARGUMENT,
                                   "{%s} {%s}: its %s is {a tensor}, must be NULL in a fused %s", w->op->def->name,
                                   field->name, inner->name, def->name);
        if (inner->kind == OP_FLOAT)
            TRY(check_float(w, def, inner, given->Desc));
    }
    out->Type = given->Type;
    return copy_array(w, given->Desc, 1, def->desc_size, &out->Desc);
}

/* One activation, or an array of them. */
static opjit_status take_activations(walk *w, const op_field *field)
{
    const bool is_array = field->kind == OP_ACTIVATIONS;
    const DML_OPERATOR_DESC *given = read_pointer(w->op->desc, field);
    const uint32_t count = is_array ? read_u32(w->op->desc, field->count) : 1;
    const void *copy;

    if (given == NULL && (field->flags & OP_OPTIONAL) != 0)
        return OPJIT_OK;
    if (given == NULL)
        return field_error(w, field,
                           is_array ? "NULL, must be an array of activations" : "NULL, must be an activation");
    if (is_array)
        TRY(opjit_fe_check_numbers(w->op->def, field, given, count, w->error));
    TRY(copy_array(w, given, count, sizeof(DML_OPERATOR_DESC), &copy));
    write_pointer(w->op->desc, field, copy);
    for (uint32_t i = 0; i < count; i++)
        TRY(take_activation(w, field, &given[i], (DML_OPERATOR_DESC *)copy + i)); /* the arena's, so ours to change */
    return OPJIT_OK;
}

static opjit_status take_field(walk *w, const op_field *field)
{
    const void *copy;

    switch ((op_field_kind)field->kind) {
    case OP_INPUT:
    case OP_OUTPUT:
    case OP_INPUTS:
    case OP_OUTPUTS: return take_tensors(w, field);
    case OP_UINTS:
    case OP_INTS:
    case OP_FLOATS: return take_numbers(w, field);
    case OP_SCALE_BIAS:
        if (read_pointer(w->op->desc, field) == NULL && (field->flags & OP_OPTIONAL) == 0)
            return field_error(w, field, "NULL, must be a DML_SCALE_BIAS");
        TRY(copy_array(w, read_pointer(w->op->desc, field), 1, sizeof(DML_SCALE_BIAS), &copy));
        write_pointer(w->op->desc, field, copy);
        return OPJIT_OK;
    case OP_ACTIVATION:
    case OP_ACTIVATIONS: return take_activations(w, field);
    case OP_ENUM: return check_enum(w, field);
    case OP_FLOAT: return check_float(w, w->op->def, field, w->op->desc);
    case OP_DTYPE: /* check_dtypes, once the outputs are known */
    case OP_SCALAR:
    case OP_INT:
    case OP_UINT:
    case OP_BOOL:
    case OP_SIZE_2D: break;
    }
    return OPJIT_OK;
}

static opjit_status check_dtypes(const walk *w)
{
    const op_def *def = w->op->def;

    for (uint32_t i = 0; i < def->field_count; i++) {
        const op_field *field = &def->fields[i];
        const uint32_t dtype = read_u32(w->op->desc, field->offset), want = (uint32_t)w->op->outputs[0].dtype;
        if (field->kind != OP_DTYPE || dtype == want)
            continue;
        return opjit_rt_refuse(w->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {%u} (%s), must be %u (%s) as %s.DataType",
                               def->name, field->name, dtype, opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)dtype), want,
                               opjit_rt_dtype_name(w->op->outputs[0].dtype), w->op->output_names[0]);
    }
    return OPJIT_OK;
}

opjit_status opjit_fe_take_fields(opjit_operator *op, opjit_error *error)
{
    walk w = { .op = op, .level = op->level, .error = error };

    for (uint32_t i = 0; i < op->def->field_count; i++)
        TRY(take_field(&w, &op->def->fields[i]));
    return check_dtypes(&w);
}
