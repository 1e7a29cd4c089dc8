/* SPDX-License-Identifier: Apache-2.0 */
/* operator.c - operators: validation and deep copy, once for all of them, from their rows of fields.
 * What one operator demands beyond its fields is in its own file; single tensors are checked in tensor.c. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

/* Tensors of one array field; a count beyond it is an uninitialised field and no operator. */
#define TENSORS_MAX 1024u
/* Numbers of one array field, likewise. */
#define NUMBERS_MAX 65536u

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

fe_level_text opjit_fe_level_text(uint32_t feature_level)
{
    fe_level_text text;
    snprintf(text.text, sizeof text.text, "%u.%u", feature_level >> 12 & 0xf, feature_level >> 8 & 0xf);
    return text;
}

/* --- what the level allows ---------------------------------------------------------------------------------------- */

/* "FLOAT32, FLOAT16 or UINT8" of a set of types. */
static void types_text(uint32_t types, char text[static 160])
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t t = 1; types >> t != 0; t++) {
        const bool last = types >> t == 1;
        if ((types >> t & 1) != 0)
            used += (size_t)snprintf(text + used, 160 - used, "%s%s",
                                     used == 0 ? ""
                                     : last    ? " or "
                                               : ", ",
                                     opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)t));
    }
}

/* What no level has is wrong; what another level or none has is unsupported. */
static opjit_status refuse_support(const op_def *def, const char *field, const char *name, uint32_t level,
                                   const fe_tensor *tensor, opjit_error *error)
{
    const op_support *row = opjit_fe_op_support(def, field, level), *newest = opjit_fe_op_support(def, field, 0);
    char at[48] = "", allowed[160];
    bool legal;

    if (level != 0)
        snprintf(at, sizeof at, " at feature level %s", opjit_fe_level_text(level).text);
    if (tensor->rank < row->rank_min || tensor->rank > row->rank_max) {
        legal = tensor->rank >= newest->rank_min && tensor->rank <= newest->rank_max;
        if (row->rank_min == row->rank_max)
            snprintf(allowed, sizeof allowed, "%u", row->rank_min);
        else
            snprintf(allowed, sizeof allowed, "%u to %u", row->rank_min, row->rank_max);
        return opjit_rt_refuse(error, legal ? OPJIT_UNSUPPORTED : OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.DimensionCount}: {%u}, must be %s%s", def->name, name, tensor->rank, allowed,
                               at);
    }
    legal = (newest->types >> tensor->dtype & 1) != 0;
    types_text(row->types, allowed);
    return opjit_rt_refuse(error, legal ? OPJIT_UNSUPPORTED : OPJIT_INVALID_ARGUMENT,
                           "{%s} {%s.DataType}: {%s}, must be %s%s", def->name, name,
                           opjit_rt_dtype_name(tensor->dtype), allowed, at);
}

opjit_status opjit_fe_check_support(const op_def *def, const char *field, const char *name, uint32_t level,
                                    const fe_tensor *tensor, opjit_error *error)
{
    const op_support *row = opjit_fe_op_support(def, field, level);

    if (tensor->rank >= row->rank_min && tensor->rank <= row->rank_max && (row->types >> tensor->dtype & 1) != 0)
        return OPJIT_OK;
    return refuse_support(def, field, name, level, tensor, error);
}

/* --- fields ------------------------------------------------------------------------------------------------------- */

/* State of the walk over an operator's fields. */
typedef struct walk {
    opjit_operator *op;
    uint32_t level;
    uint32_t inputs, outputs; /* tensors seen so far */
    opjit_error *error;
} walk;

static bool is_tensor_array(const op_field *field)
{
    return field->kind == OP_INPUTS || field->kind == OP_OUTPUTS;
}

static bool is_input(const op_field *field)
{
    return field->kind == OP_INPUT || field->kind == OP_INPUTS;
}

static bool is_output(const op_field *field)
{
    return field->kind == OP_OUTPUT || field->kind == OP_OUTPUTS;
}

static opjit_status field_error(const walk *w, const op_field *field, const char *text)
{
    return opjit_rt_refuse(w->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {%s}", w->op->def->name, field->name, text);
}

typedef struct tensor_counts {
    uint32_t inputs, outputs;
} tensor_counts;

opjit_status opjit_fe_check_count_of_tensors(const op_def *def, const op_field *field, uint32_t count,
                                             opjit_error *error)
{
    if (count != 0 && count <= TENSORS_MAX)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {%u} tensors, must be 1 to %u", def->name,
                           field->name, count, TENSORS_MAX);
}

static opjit_status count_tensors(const op_def *def, const void *desc, tensor_counts *out, opjit_error *error)
{
    *out = (tensor_counts){ 0, 0 };
    for (uint32_t i = 0; i < def->field_count; i++) {
        const op_field *field = &def->fields[i];
        uint32_t count = is_input(field) || is_output(field);
        if (is_tensor_array(field)) {
            count = read_u32(desc, field->count);
            TRY(opjit_fe_check_count_of_tensors(def, field, count, error));
        }
        *(is_output(field) ? &out->outputs : &out->inputs) += count;
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
    const uint32_t count = is_tensor_array(field) ? read_u32(w->op->desc, field->count) : 1;
    const void *copy;
    DML_TENSOR_DESC *tensors;

    TRY(copy_array(w, given, count, sizeof(DML_TENSOR_DESC), &copy));
    write_pointer(w->op->desc, field, copy);
    tensors = (DML_TENSOR_DESC *)copy; /* the arena's, so ours to change */
    if (tensors == NULL && is_tensor_array(field))
        return field_error(w, field, "NULL, must be an array of tensors");
    for (uint32_t i = 0; i < count; i++)
        TRY(take_tensor(w, field, is_tensor_array(field) ? (int64_t)i : -1, tensors == NULL ? NULL : &tensors[i]));
    return OPJIT_OK;
}

opjit_status opjit_fe_check_numbers(const op_def *def, const op_field *field, const void *given, uint32_t count,
                                    opjit_error *error)
{
    if (given == NULL && count != 0 && (field->flags & OP_OPTIONAL) == 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {NULL}, must be an array of %u", def->name,
                               field->name, count);
    if (given != NULL && count > NUMBERS_MAX)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: an array of {%u}, must be at most %u",
                               def->name, field->name, count, NUMBERS_MAX);
    return OPJIT_OK;
}

/* An array of numbers: its count is the descriptor's own business, a missing one is not. */
static opjit_status take_numbers(walk *w, const op_field *field)
{
    const void *given = read_pointer(w->op->desc, field);
    const uint32_t count = read_u32(w->op->desc, field->count);
    const void *copy;

    TRY(opjit_fe_check_numbers(w->op->def, field, given, count, w->error));
    TRY(copy_array(w, given, count, sizeof(uint32_t), &copy));
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

/* Which activation is legal where is said once, by OP_FUSABLE: every host takes the same ones, and all are there. */
static opjit_status find_activation(const walk *w, const op_field *field, DML_OPERATOR_TYPE type, const op_def **out)
{
    const char *name = opjit_fe_op_type_name(type);

    *out = opjit_fe_op_find(type);
    if (*out == NULL || ((*out)->traits & OP_FUSABLE) == 0)
        return opjit_rt_refuse(w->error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s}: operator type {%u} (%s), must be an activation that can be fused",
                               w->op->def->name, field->name, (unsigned)type, name == NULL ? "unknown" : name);
    if (w->level != 0 && w->level < (*out)->introduced)
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
static opjit_status take_activation(walk *w, const op_field *field)
{
    const DML_OPERATOR_DESC *given = read_pointer(w->op->desc, field);
    const op_def *def;
    const void *copy, *desc;

    if (given == NULL)
        return (field->flags & OP_OPTIONAL) != 0 ? OPJIT_OK : field_error(w, field, "NULL, must be an activation");
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
    TRY(copy_array(w, given->Desc, 1, def->desc_size, &desc));
    TRY(copy_array(w, &(DML_OPERATOR_DESC){ given->Type, desc }, 1, sizeof(DML_OPERATOR_DESC), &copy));
    write_pointer(w->op->desc, field, copy);
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
    case OP_ACTIVATION: return take_activation(w, field);
    case OP_ENUM: return check_enum(w, field);
    case OP_FLOAT: return check_float(w, w->op->def, field, w->op->desc);
    case OP_DTYPE: /* check_dtypes, once the outputs are known */
    case OP_SCALAR:
    case OP_INT:
    case OP_UINT:
    case OP_BOOL: break;
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

static opjit_status type_error(const opjit_operator *op, uint32_t input, DML_TENSOR_DATA_TYPE want, const char *as,
                               opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DataType}: {%s}, must be %s as %s.DataType",
                           op->def->name, op->input_names[input], opjit_rt_dtype_name(op->inputs[input].dtype),
                           opjit_rt_dtype_name(want), as);
}

opjit_status opjit_fe_same_type(const opjit_operator *op, uint32_t input, uint32_t output, opjit_error *error)
{
    const DML_TENSOR_DATA_TYPE want = op->outputs[output].dtype;

    if (op->inputs[input].dtype == want)
        return OPJIT_OK;
    return type_error(op, input, want, op->output_names[output], error);
}

opjit_status opjit_fe_same_input_type(const opjit_operator *op, uint32_t input, uint32_t as, opjit_error *error)
{
    const fe_tensor *a = &op->inputs[input], *b = &op->inputs[as];

    if (!a->present || !b->present || a->dtype == b->dtype)
        return OPJIT_OK;
    return type_error(op, input, b->dtype, op->input_names[as], error);
}

opjit_status opjit_fe_same_sizes(const opjit_operator *op, uint32_t input, uint32_t output, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[input], *out = &op->outputs[output];
    const char *what = op->def->name, *name = op->input_names[input], *as = op->output_names[output];

    if (in->rank != out->rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.DimensionCount}: {%u}, must be %u as %s.DimensionCount", what, name, in->rank,
                               out->rank, as);
    for (uint32_t i = 0; i < in->rank; i++)
        if (in->sizes[i] != out->sizes[i])
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{%s} {%s.Sizes[%u]}: {%u}, must be %u as %s.Sizes[%u]", what, name, i,
                                   (unsigned)in->sizes[i], (unsigned)out->sizes[i], as, i);
    return OPJIT_OK;
}

opjit_status opjit_fe_same_shape(const opjit_operator *op, uint32_t input, uint32_t output, opjit_error *error)
{
    TRY(opjit_fe_same_type(op, input, output, error));
    return opjit_fe_same_sizes(op, input, output, error);
}

opjit_status opjit_fe_broadcast_sizes(const opjit_operator *op, uint32_t input, opjit_error *error)
{
    const fe_tensor *t = &op->inputs[input], *in = &op->inputs[0];
    const char *what = op->def->name, *name = op->input_names[input], *as = op->input_names[0];

    if (t->rank != in->rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DimensionCount}: {%u}, must be %u as %s's",
                               what, name, t->rank, in->rank, as);
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->sizes[d] != 1 && t->sizes[d] != in->sizes[d])
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{%s} {%s.Sizes[%u]}: {%u}, must be 1 or %u as %s.Sizes", what, name, d,
                                   (unsigned)t->sizes[d], (unsigned)in->sizes[d], as);
    return OPJIT_OK;
}

/* --- scalars ------------------------------------------------------------------------------------------------------ */

DML_TENSOR_DATA_TYPE opjit_fe_scalar_type(const opjit_operator *op, uint32_t field)
{
    while (op->def->fields[field].kind != OP_DTYPE) /* rows put one before every scalar; a test checks it */
        field--;
    return (DML_TENSOR_DATA_TYPE)read_u32(op->desc, op->def->fields[field].offset);
}

uint64_t opjit_fe_scalar_bits(const opjit_operator *op, uint32_t field)
{
    DML_SCALAR_UNION value;

    memcpy(&value, field_at(op->desc, &op->def->fields[field]), sizeof value);
    switch (opjit_rt_dtype_size(opjit_fe_scalar_type(op, field))) {
    case 1: return value.UInt8;
    case 2: return value.UInt16;
    case 4: return value.UInt32;
    default: return value.UInt64;
    }
}

/* --- the object --------------------------------------------------------------------------------------------------- */

/* Bytes for a tensor's descriptor and for its part of the key, at rank 4 with strides; where more is needed the arena
 * and the key find it elsewhere. */
#define TENSOR_ROOM (align_up(sizeof(DML_TENSOR_DESC), 16) + align_up(sizeof(tensor_copy) + 32, 16))
#define TENSOR_KEY_ROOM 48u

/* Where the parts of an operator's one allocation begin. */
typedef struct parts {
    size_t desc, tensors, names, key, arena, size;
} parts;

static parts parts_of(const op_def *def, uint32_t tensors)
{
    parts p;

    p.desc = align_up(sizeof(opjit_operator), 16);
    p.tensors = p.desc + align_up(def->desc_size, 16);
    p.names = p.tensors + sizeof(fe_tensor) * (size_t)tensors;
    p.key = p.names + align_up(sizeof(char *) * (size_t)tensors, 16);
    p.arena = p.key + align_up(16 + 8 * (size_t)def->field_count + TENSOR_KEY_ROOM * (size_t)tensors, 16);
    p.size = p.arena + RT_ARENA_HEADER + TENSOR_ROOM * (size_t)tensors;
    return p;
}

opjit_operator *opjit_fe_operator_new(rt_core *core, const op_def *def, uint32_t inputs, uint32_t outputs,
                                      const void *desc)
{
    const parts at = parts_of(def, inputs + outputs);
    unsigned char *memory = opjit_rt_allocate(&core->allocator, at.size, 16);
    opjit_operator *op = (opjit_operator *)memory;

    if (op == NULL)
        return NULL;
    atomic_init(&op->references, 1);
    op->core_counter = opjit_rt_core_enter(core);
    op->core = core;
    op->size = at.size;
    op->def = def;
    op->level = 0;
    op->custom = NULL;
    op->desc = memcpy(memory + at.desc, desc, def->desc_size);
    op->input_count = inputs;
    op->output_count = outputs;
    op->inputs = (fe_tensor *)(memory + at.tensors);
    op->outputs = op->inputs + inputs;
    op->input_names = (const char **)(memory + at.names);
    op->output_names = op->input_names + inputs;
    opjit_rt_bytes_init_in(&op->key, &core->allocator, memory + at.key, at.arena - at.key);
    opjit_rt_arena_init_in(&op->arena, &core->allocator, memory + at.arena, at.size - at.arena);
    return op;
}

static opjit_status fill(opjit_operator *op, uint32_t level, opjit_error *error)
{
    const op_def *def = op->def;
    walk w = { .op = op, .level = level, .error = error };

    op->level = level;
    for (uint32_t i = 0; i < def->field_count; i++)
        TRY(take_field(&w, &def->fields[i]));
    TRY(check_dtypes(&w));
    if (def->validate != NULL)
        TRY(def->validate(op, error));
    opjit_fe_operator_key(op, 0, &op->key);
    if (op->key.failed)
        return opjit_rt_no_memory(error);
    op->hash = opjit_rt_hash64(op->key.data, op->key.size);
    return OPJIT_OK;
}

opjit_status opjit_fe_operator_make(rt_core *core, uint32_t feature_level, const op_def *def, const void *desc,
                                    opjit_operator **out, opjit_error *error)
{
    tensor_counts counts;
    opjit_operator *op;
    opjit_status status;

    *out = NULL;
    if (desc == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {Desc}: {NULL}, must be its descriptor struct",
                               def->name);
    if (feature_level != 0 && feature_level < def->introduced)
        return opjit_rt_place(
            error,
            opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{%s} needs feature level %s, this context has %s", def->name,
                            opjit_fe_level_text(def->introduced).text, opjit_fe_level_text(feature_level).text),
            NULL, "Type", -1);
    TRY(count_tensors(def, desc, &counts, error));
    op = opjit_fe_operator_new(core, def, counts.inputs, counts.outputs, desc);
    if (op == NULL)
        return opjit_rt_no_memory(error);
    status = fill(op, feature_level, error);
    if (status != OPJIT_OK) {
        opjit_operator_release(op);
        return status;
    }
    *out = op;
    return OPJIT_OK;
}

opjit_status opjit_fe_op_require(DML_OPERATOR_TYPE type, const op_def **out, opjit_error *error)
{
    const char *name = opjit_fe_op_type_name(type);

    *out = opjit_fe_op_find(type);
    if (*out != NULL)
        return OPJIT_OK;
    if (name == NULL || type == DML_OPERATOR_INVALID)
        opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{operator} {type} {%u}, must be a DML_OPERATOR_TYPE (1 to %u)",
                        (unsigned)type, (unsigned)DML_OPERATOR_UNFOLD);
    else
        opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{operator} {type} {%u} (%s) is not in this build", (unsigned)type,
                        name);
    return opjit_rt_place(error,
                          name == NULL || type == DML_OPERATOR_INVALID ? OPJIT_INVALID_ARGUMENT : OPJIT_UNSUPPORTED,
                          "DML_OPERATOR_DESC", "Type", -1);
}

opjit_status opjit_operator_create(opjit_context *context, const DML_OPERATOR_DESC *desc, opjit_operator **out_operator,
                                   opjit_error *error)
{
    const op_def *def;

    opjit_rt_error_clear(error);
    if (out_operator == NULL)
        return opjit_rt_refuse_null(error, "out_operator");
    *out_operator = NULL;
    if (context == NULL)
        return opjit_rt_refuse_null(error, "context");
    if (desc == NULL)
        return opjit_rt_refuse_null(error, "desc");
    TRY(opjit_fe_op_require(desc->Type, &def, error));
    return opjit_fe_operator_make(context->core, context->feature_level, def, desc->Desc, out_operator, error);
}

void opjit_operator_retain(opjit_operator *op)
{
    if (op != NULL)
        atomic_fetch_add_explicit(&op->references, 1, memory_order_relaxed);
}

void opjit_operator_release(opjit_operator *op)
{
    rt_core *core;
    uint32_t counter;

    /* The only reference is the caller's, so nobody can be taking another: no need to write. */
    if (op == NULL || (atomic_load_explicit(&op->references, memory_order_acquire) != 1 &&
                       atomic_fetch_sub_explicit(&op->references, 1, memory_order_acq_rel) != 1))
        return;
    core = op->core;
    counter = op->core_counter;
    opjit_rt_bytes_free(&op->key);
    opjit_rt_arena_free(&op->arena);
    opjit_rt_release(&core->allocator, op, op->size);
    opjit_rt_core_leave(core, counter);
}
