/* operator.c - operators: validation and deep copy, once for all of them, from their rows of fields.
 * What one operator demands beyond its fields is in its own file; single tensors are checked in tensor.c. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

/* Tensors of one array field; a count beyond it is an uninitialised field and no operator. */
#define TENSORS_MAX 1024u

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

static bool row_is_for(const op_support *row, const char *field)
{
    return row->field == NULL ? field == NULL : field != NULL && strcmp(row->field, field) == 0;
}

/* The row that holds for field at level, by op_support's rule; NULL: none. */
static const op_support *support_of(const op_def *def, const char *field, uint32_t level)
{
    const op_support *best = NULL;

    for (uint32_t i = 0; i < def->support_count; i++) {
        const op_support *row = &def->support[i];
        if (!row_is_for(row, field))
            continue;
        if (level == 0 && row->level == 0)
            return row;
        if (row->level != 0 && (level == 0 || row->level <= level))
            best = row;
    }
    return best != NULL || field == NULL ? best : support_of(def, NULL, level);
}

/* "FLOAT32, FLOAT16 or UINT8" of a set of types. */
static void types_text(uint32_t types, char text[static 160])
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t t = 1; types >> t != 0; t++) {
        const bool last = types >> t == 1;
        if ((types >> t & 1) != 0)
            used += (size_t)snprintf(text + used, 160 - used, "%s%s", used == 0 ? "" : last ? " or " : ", ",
                                     opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)t));
    }
}

/* What no level has is wrong; what another level or none has is unsupported. */
static opjit_status check_support(const op_def *def, const char *field, const char *where, uint32_t level,
                                  const fe_tensor *tensor, opjit_error *error)
{
    const op_support *row = support_of(def, field, level), *newest = support_of(def, field, 0);
    char at[48] = "", allowed[160];

    if (level != 0)
        snprintf(at, sizeof at, " at feature level %s", opjit_fe_level_text(level).text);
    if (tensor->rank < row->rank_min || tensor->rank > row->rank_max) {
        const bool legal = tensor->rank >= newest->rank_min && tensor->rank <= newest->rank_max;
        if (row->rank_min == row->rank_max)
            snprintf(allowed, sizeof allowed, "%u", row->rank_min);
        else
            snprintf(allowed, sizeof allowed, "%u to %u", row->rank_min, row->rank_max);
        return opjit_rt_error_set(error, legal ? OPJIT_UNSUPPORTED : OPJIT_INVALID_ARGUMENT,
                                  "%s.DimensionCount: %u, must be %s%s", where, tensor->rank, allowed, at);
    }
    if ((row->types >> tensor->dtype & 1) == 0) {
        const bool legal = (newest->types >> tensor->dtype & 1) != 0;
        types_text(row->types, allowed);
        return opjit_rt_error_set(error, legal ? OPJIT_UNSUPPORTED : OPJIT_INVALID_ARGUMENT,
                                  "%s.DataType: %s, must be %s%s", where, opjit_rt_dtype_name(tensor->dtype), allowed, at);
    }
    return OPJIT_OK;
}

/* --- fields ---------------------------------------------------------------------------------------------------------- */

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
    return opjit_rt_error_set(w->error, OPJIT_INVALID_ARGUMENT, "%s %s: %s", w->op->def->name, field->name, text);
}

/* Counts the tensors and makes room for them. */
static opjit_status count_tensors(walk *w)
{
    opjit_operator *op = w->op;

    for (uint32_t i = 0; i < op->def->field_count; i++) {
        const op_field *field = &op->def->fields[i];
        uint32_t count = is_input(field) || is_output(field);
        if (is_tensor_array(field)) {
            count = read_u32(op->desc, field->count);
            if (count == 0 || count > TENSORS_MAX)
                return opjit_rt_error_set(w->error, OPJIT_INVALID_ARGUMENT, "%s %s: %u tensors, must be 1 to %u",
                                          op->def->name, field->name, count, TENSORS_MAX);
        }
        if (is_output(field))
            op->output_count += count;
        else
            op->input_count += count;
    }
    op->inputs = ARENA_ARRAY(&op->arena, fe_tensor, op->input_count);
    op->outputs = ARENA_ARRAY(&op->arena, fe_tensor, op->output_count);
    op->input_names = ARENA_ARRAY(&op->arena, const char *, op->input_count);
    op->output_names = ARENA_ARRAY(&op->arena, const char *, op->output_count);
    if (op->inputs == NULL || op->outputs == NULL || op->input_names == NULL || op->output_names == NULL)
        return opjit_rt_no_memory(w->error);
    return OPJIT_OK;
}

/* A copy of count elements from the arena; an absent array stays absent. */
static opjit_status copy_array(walk *w, const void *from, size_t count, size_t size, const void **out)
{
    void *copy;

    *out = NULL;
    if (from == NULL)
        return OPJIT_OK;
    copy = opjit_rt_arena_allocate(&w->op->arena, count, size);
    if (copy == NULL)
        return opjit_rt_no_memory(w->error);
    memcpy(copy, from, count * size);
    *out = copy;
    return OPJIT_OK;
}

/* Turns *desc, a tensor that has been checked, into one that points into the arena only. */
static opjit_status copy_tensor(walk *w, DML_TENSOR_DESC *desc)
{
    const DML_BUFFER_TENSOR_DESC *from = desc->Desc;
    DML_BUFFER_TENSOR_DESC *copy = ARENA_NEW(&w->op->arena, DML_BUFFER_TENSOR_DESC);
    const void *sizes, *strides;

    if (copy == NULL)
        return opjit_rt_no_memory(w->error);
    *copy = *from;
    TRY(copy_array(w, from->Sizes, from->DimensionCount, sizeof *from->Sizes, &sizes));
    TRY(copy_array(w, from->Strides, from->DimensionCount, sizeof *from->Strides, &strides));
    copy->Sizes = sizes;
    copy->Strides = strides;
    desc->Desc = copy;
    return OPJIT_OK;
}

/* One tensor, index of an array or -1, into the operator's next input or output.  desc is the operator's own copy of the
 * outer struct; NULL: absent. */
static opjit_status take_tensor(walk *w, const op_field *field, int64_t index, DML_TENSOR_DESC *desc)
{
    opjit_operator *op = w->op;
    const uint32_t position = is_output(field) ? w->outputs++ : w->inputs++;
    fe_tensor *tensor = is_output(field) ? &op->outputs[position] : &op->inputs[position];
    const char **names = (const char **)(is_output(field) ? op->output_names : op->input_names);
    char name[80], where[128];

    if (index < 0)
        snprintf(name, sizeof name, "%s", field->name);
    else
        snprintf(name, sizeof name, "%s[%u]", field->name, (unsigned)index);
    names[position] = opjit_rt_arena_string(&op->arena, name, strlen(name));
    if (names[position] == NULL)
        return opjit_rt_no_memory(w->error);
    if (desc == NULL && (field->flags & OP_OPTIONAL) != 0)
        return OPJIT_OK;
    snprintf(where, sizeof where, "%s %s", op->def->name, name);
    TRY(opjit_fe_tensor_resolve(desc, is_output(field), where, tensor, w->error));
    TRY(check_support(op->def, field->name, where, w->level, tensor, w->error));
    return copy_tensor(w, desc);
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

/* An array of numbers: its count is the descriptor's own business, a missing one is not. */
static opjit_status take_numbers(walk *w, const op_field *field)
{
    const void *given = read_pointer(w->op->desc, field);
    const uint32_t count = read_u32(w->op->desc, field->count);
    const void *copy;

    if (given == NULL && count != 0 && (field->flags & OP_OPTIONAL) == 0)
        return opjit_rt_error_set(w->error, OPJIT_INVALID_ARGUMENT, "%s %s: NULL, must be an array of %u", w->op->def->name,
                                  field->name, count);
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
    return opjit_rt_error_set(w->error, OPJIT_INVALID_ARGUMENT, "%s %s: %d, must be a %.*s (%d to %d)", w->op->def->name,
                              field->name, value, (int)strlen(field->enumeration->prefix) - 1, field->enumeration->prefix, lo,
                              hi);
}

static opjit_status take_activation(const walk *w, const op_field *field)
{
    const DML_OPERATOR_DESC *activation = read_pointer(w->op->desc, field);
    const char *name;

    if (activation == NULL)
        return (field->flags & OP_OPTIONAL) != 0 ? OPJIT_OK : field_error(w, field, "NULL, must be an activation");
    name = opjit_fe_op_type_name(activation->Type);
    return opjit_rt_error_set(w->error, OPJIT_UNSUPPORTED, "%s %s: operator type %u (%s) is not in this build",
                              w->op->def->name, field->name, (unsigned)activation->Type, name == NULL ? "unknown" : name);
}

static opjit_status take_field(walk *w, const op_field *field)
{
    const void *copy;

    switch ((op_field_kind)field->kind) {
    case OP_INPUT:
    case OP_OUTPUT:
    case OP_INPUTS:
    case OP_OUTPUTS:
        return take_tensors(w, field);
    case OP_UINTS:
    case OP_INTS:
    case OP_FLOATS:
        return take_numbers(w, field);
    case OP_SCALE_BIAS:
        if (read_pointer(w->op->desc, field) == NULL && (field->flags & OP_OPTIONAL) == 0)
            return field_error(w, field, "NULL, must be a DML_SCALE_BIAS");
        TRY(copy_array(w, read_pointer(w->op->desc, field), 1, sizeof(DML_SCALE_BIAS), &copy));
        write_pointer(w->op->desc, field, copy);
        return OPJIT_OK;
    case OP_ACTIVATION:
        return take_activation(w, field);
    case OP_ENUM:
        return check_enum(w, field);
    case OP_DTYPE: /* check_dtypes, once the outputs are known */
    case OP_SCALAR:
    case OP_INT:
    case OP_UINT:
    case OP_FLOAT:
    case OP_BOOL:
        break;
    }
    return OPJIT_OK;
}

static opjit_status check_dtypes(const walk *w)
{
    const op_def *def = w->op->def;

    for (uint32_t i = 0; i < def->field_count; i++) {
        const op_field *field = &def->fields[i];
        const uint32_t dtype = read_u32(w->op->desc, field->offset), want = (uint32_t)w->op->outputs[0].dtype;
        const char *name = opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)dtype);
        if (field->kind != OP_DTYPE || dtype == want)
            continue;
        return opjit_rt_error_set(w->error, OPJIT_INVALID_ARGUMENT, "%s %s: %u (%s), must be %u (%s) as %s.DataType",
                                  def->name, field->name, dtype, name, want,
                                  opjit_rt_dtype_name(w->op->outputs[0].dtype), w->op->output_names[0]);
    }
    return OPJIT_OK;
}

opjit_status opjit_fe_same_shape(const opjit_operator *op, uint32_t input, uint32_t output, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[input], *out = &op->outputs[output];
    const char *what = op->def->name, *name = op->input_names[input], *as = op->output_names[output];

    if (in->dtype != out->dtype)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "%s %s.DataType: %s, must be %s as %s.DataType", what, name,
                                  opjit_rt_dtype_name(in->dtype), opjit_rt_dtype_name(out->dtype), as);
    if (in->rank != out->rank)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "%s %s.DimensionCount: %u, must be %u as %s.DimensionCount",
                                  what, name, in->rank, out->rank, as);
    for (uint32_t i = 0; i < in->rank; i++)
        if (in->sizes[i] != out->sizes[i])
            return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "%s %s.Sizes[%u]: %u, must be %u as %s.Sizes[%u]", what,
                                      name, i, (unsigned)in->sizes[i], (unsigned)out->sizes[i], as, i);
    return OPJIT_OK;
}

/* --- scalars --------------------------------------------------------------------------------------------------------- */

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
    case 1:
        return value.UInt8;
    case 2:
        return value.UInt16;
    case 4:
        return value.UInt32;
    default:
        return value.UInt64;
    }
}

/* --- the object ------------------------------------------------------------------------------------------------------- */

static opjit_status fill(opjit_operator *op, uint32_t level, const void *desc, opjit_error *error)
{
    const op_def *def = op->def;
    walk w = { .op = op, .level = level, .error = error };

    if (desc == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "%s Desc: NULL, must be its descriptor struct", def->name);
    if (level != 0 && level < def->introduced)
        return opjit_rt_error_set(error, OPJIT_UNSUPPORTED, "%s needs feature level %s, this context has %s", def->name,
                                  opjit_fe_level_text(def->introduced).text, opjit_fe_level_text(level).text);
    op->desc = opjit_rt_arena_allocate(&op->arena, 1, def->desc_size);
    if (op->desc == NULL)
        return opjit_rt_no_memory(error);
    memcpy(op->desc, desc, def->desc_size);
    TRY(count_tensors(&w));
    for (uint32_t i = 0; i < def->field_count; i++)
        TRY(take_field(&w, &def->fields[i]));
    TRY(check_dtypes(&w));
    if (def->validate != NULL)
        TRY(def->validate(op, error));
    opjit_fe_operator_key(op, 0, &op->key);
    if (op->key.failed)
        return opjit_rt_no_memory(error);
    op->hash = opjit_rt_hash(op->key.data, op->key.size).lo;
    return OPJIT_OK;
}

opjit_status opjit_fe_operator_make(rt_core *core, uint32_t feature_level, const op_def *def, const void *desc,
                                    opjit_operator **out, opjit_error *error)
{
    opjit_operator *op = opjit_rt_allocate(&core->allocator, sizeof *op, _Alignof(opjit_operator));
    opjit_status status;

    *out = NULL;
    if (op == NULL)
        return opjit_rt_no_memory(error);
    memset(op, 0, sizeof *op);
    atomic_init(&op->references, 1);
    op->core = opjit_rt_core_retain(core);
    op->def = def;
    opjit_rt_arena_init(&op->arena, &core->allocator);
    opjit_rt_bytes_init(&op->key, &core->allocator);
    status = fill(op, feature_level, desc, error);
    if (status != OPJIT_OK) {
        opjit_operator_release(op);
        return status;
    }
    *out = op;
    return OPJIT_OK;
}

opjit_status opjit_operator_create(opjit_context *context, const DML_OPERATOR_DESC *desc, opjit_operator **out_operator,
                                   opjit_error *error)
{
    const op_def *def;
    const char *name;

    opjit_rt_error_clear(error);
    if (out_operator == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "out_operator is NULL");
    *out_operator = NULL;
    if (context == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "context is NULL");
    if (desc == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "desc is NULL");
    def = opjit_fe_op_find(desc->Type);
    name = opjit_fe_op_type_name(desc->Type);
    if (def == NULL && (name == NULL || desc->Type == DML_OPERATOR_INVALID))
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "operator type %u, must be a DML_OPERATOR_TYPE (1 to %u)",
                                  (unsigned)desc->Type, (unsigned)DML_OPERATOR_UNFOLD);
    if (def == NULL)
        return opjit_rt_error_set(error, OPJIT_UNSUPPORTED, "operator type %u (%s) is not in this build",
                                  (unsigned)desc->Type, name);
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

    if (op == NULL || atomic_fetch_sub_explicit(&op->references, 1, memory_order_acq_rel) != 1)
        return;
    core = op->core;
    opjit_rt_bytes_free(&op->key);
    opjit_rt_arena_free(&op->arena);
    opjit_rt_release(&core->allocator, op, sizeof *op);
    opjit_rt_core_release(core);
}
