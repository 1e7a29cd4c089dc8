/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - the operators of this build, by number and by name; the names of all operators of DirectML, for messages;
 * and what the rows say about types.  What an operator does is in its own file. */
#include <stdio.h>
#include <string.h>

#include "frontend/ops/op.h"

#define OPERATOR(name, NAME) extern const op_def opjit_fe_op_##name;
#include "frontend/ops/operators.def"
#undef OPERATOR

static const op_def *const operators[] = {
#define OPERATOR(name, NAME) &opjit_fe_op_##name,
#include "frontend/ops/operators.def"
#undef OPERATOR
};

/* By DML_OPERATOR_TYPE, because every create looks one up. */
static const op_def *const by_type[] = {
#define OPERATOR(name, NAME) [DML_OPERATOR_##NAME] = &opjit_fe_op_##name,
#include "frontend/ops/operators.def"
#undef OPERATOR
};

/* The names one after the other, and where each begins by DML_OPERATOR_TYPE: 0, the first one's, also where there is
 * none. */
static const struct names {
#define NAME(name) char name[sizeof #name];
#include "frontend/desc/names.def"
#undef NAME
} names = {
#define NAME(name) #name,
#include "frontend/desc/names.def"
#undef NAME
};
static const uint16_t name_offsets[] = {
#define NAME(name) [DML_OPERATOR_##name] = offsetof(struct names, name),
#include "frontend/desc/names.def"
#undef NAME
};

const op_def *opjit_fe_op_at(uint32_t index)
{
    return index < sizeof operators / sizeof *operators ? operators[index] : NULL;
}

const void *opjit_fe_field(const op_def *def, const void *desc, const char *name)
{
    for (uint32_t i = 0; i < def->field_count; i++)
        if (strcmp(def->fields[i].name, name) == 0)
            return (const uint8_t *)desc + def->fields[i].offset;
    return NULL;
}

const op_def *opjit_fe_op_find(DML_OPERATOR_TYPE type)
{
    const size_t index = (size_t)type;

    return index < sizeof by_type / sizeof *by_type ? by_type[index] : NULL;
}

const op_def *opjit_fe_op_find_name(const char *name, size_t length)
{
    static const char prefix[] = "DML_OPERATOR_";
    const op_def *def;

    if (length >= sizeof prefix - 1 && memcmp(name, prefix, sizeof prefix - 1) == 0) {
        name += sizeof prefix - 1;
        length -= sizeof prefix - 1;
    }
    for (uint32_t i = 0; (def = opjit_fe_op_at(i)) != NULL; i++)
        if (strlen(def->name) == length && memcmp(def->name, name, length) == 0)
            return def;
    return NULL;
}

const char *opjit_fe_op_type_name(DML_OPERATOR_TYPE type)
{
    const size_t index = (size_t)type;

    return index < sizeof name_offsets / sizeof *name_offsets && (index == 0 || name_offsets[index] != 0)
               ? (const char *)&names + name_offsets[index]
               : NULL;
}

/* --- support ------------------------------------------------------------------------------------------------------ */

static bool row_is_for(const op_support *row, const char *field)
{
    return row->field == NULL ? field == NULL : field != NULL && strcmp(row->field, field) == 0;
}

const op_support *opjit_fe_op_support(const op_def *def, const char *field, uint32_t level)
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
    return best != NULL || field == NULL ? best : opjit_fe_op_support(def, NULL, level);
}

void opjit_fe_types_text(uint32_t types, char text[static FE_TYPES_TEXT])
{
    static const char *const prefixes[] = { "FLOAT", "INT", "UINT" };
    const char *last = "";
    size_t used = 0;

    text[0] = '\0';
    if (types == OP_TYPES_ALL) {
        snprintf(text, FE_TYPES_TEXT, "all eleven");
        return;
    }
    for (int p = 0; p < 3; p++) {
        for (int width = 64; width >= 4; width /= 2) {
            char name[24];
            uint32_t t = DML_TENSOR_DATA_TYPE_FLOAT32;
            snprintf(name, sizeof name, "%s%d", prefixes[p], width);
            while (t <= DML_TENSOR_DATA_TYPE_INT4 && strcmp(opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)t), name) != 0)
                t++;
            if (t > DML_TENSOR_DATA_TYPE_INT4 || (types >> t & 1) == 0)
                continue;
            if (last == prefixes[p])
                used += (size_t)snprintf(text + used, FE_TYPES_TEXT - used, "/%d", width);
            else
                used += (size_t)snprintf(text + used, FE_TYPES_TEXT - used, "%s%s", used == 0 ? "" : ", ", name);
            last = prefixes[p];
        }
    }
}
