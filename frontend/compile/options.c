/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - reads opjit_compile_options and writes their half of the cache key. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

#include "opjit_build_id.h"

/* Changes whenever the bytes of a key mean something else. */
#define KEY_FORMAT 2u
#define KNOWN_FLAGS \
    (OPJIT_COMPILE_MASKS_ABSORB | OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE | OPJIT_COMPILE_BORROW_CONSTANTS)
/* Flags that decide what the kernel is. */
#define KEY_FLAGS (OPJIT_COMPILE_MASKS_ABSORB | OPJIT_COMPILE_INTERPRET)

/* "Value, DiagonalFillBegin or DiagonalFillEnd": the fields of def that may be late. */
static void late_names(const op_def *def, char text[static 160])
{
    uint32_t left = 0;
    size_t used = 0;

    for (uint32_t i = 0; i < def->field_count; i++)
        left += (def->fields[i].flags & OP_LATE) != 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < def->field_count && used < 160; i++) {
        if ((def->fields[i].flags & OP_LATE) == 0)
            continue;
        left--;
        used += (size_t)snprintf(text + used, 160 - used, "%s%s",
                                 used == 0   ? ""
                                 : left == 0 ? " or "
                                             : ", ",
                                 def->fields[i].name);
    }
}

opjit_status opjit_fe_late_field(const op_def *def, const char *name, uint32_t index, uint32_t *out, opjit_error *error)
{
    char allowed[160];
    uint32_t field = 0;

    while (field < def->field_count &&
           ((def->fields[field].flags & OP_LATE) == 0 || strcmp(def->fields[field].name, name) != 0))
        field++;
    *out = field;
    if (field < def->field_count)
        return OPJIT_OK;
    late_names(def, allowed);
    if (allowed[0] == '\0')
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{late[%u]}: \"{%.64s}\", but %s has no late field", index, name, def->name);
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{options}.{late[%u]}: \"{%.64s}\", must be %s for %s", index,
                           name, allowed, def->name);
}

static opjit_status read_late(const op_def *def, const opjit_compile_options *options, fe_options *out,
                              opjit_error *error)
{
    for (uint32_t i = 0; i < options->late_count; i++) {
        const char *name = options->late[i];
        uint32_t field;
        TRY(opjit_fe_late_field(def, name, i, &field, error));
        if ((out->late_mask >> field & 1) != 0)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{options}.{late[%u]}: \"{%s}\" is there twice", i,
                                   name);
        out->late_mask |= UINT64_C(1) << field;
        out->late[out->late_count++] = (uint8_t)field; /* distinct fields, so at most OP_FIELDS_MAX */
    }
    return OPJIT_OK;
}

static opjit_status check_late(const opjit_compile_options *options, opjit_error *error)
{
    if (options->late_count != 0 && options->late == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{options}.{late}: {NULL}, must be an array of %u names",
                               options->late_count);
    for (uint32_t i = 0; i < options->late_count; i++)
        if (options->late[i] == NULL)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{options}.{late[%u]}: {NULL}, must be a field's name", i);
    return OPJIT_OK;
}

/* A C identifier: the name becomes a symbol and part of file names. */
static bool is_name(const char *name)
{
    size_t length = 0;

    for (; name[length] != '\0'; length++) {
        const char c = name[length];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (length >= FE_NAME_SIZE - 1 || !(letter || (length > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return length > 0;
}

static const rt_struct options_sizes = { "opjit_compile_options", { RT_SIZE_TO(opjit_compile_options, name),
                                                                      RT_SIZE_TO(opjit_compile_options, executor) } };
RT_STRUCT_ENDS_WITH(opjit_compile_options, executor);

opjit_status opjit_fe_options_copy(const opjit_compile_options *options, opjit_compile_options *out, opjit_error *error)
{
    return opjit_rt_struct_read(&options_sizes, out, options, error);
}

opjit_status opjit_fe_options_read(const opjit_context *context, const opjit_operator *op,
                                   const opjit_compile_options *options, fe_options *out, opjit_error *error)
{
    opjit_compile_options given;

    out->target = &context->target;
    out->level = OPJIT_LEVEL_QUICK;
    out->flags = 0;
    out->late_count = 0;
    out->late_mask = 0;
    out->name = NULL;
    out->once = true;
    out->verify = context->core->verify;
    out->cancel = NULL;
    out->executor = NULL;
    out->image = NULL;
    out->image_bytes = 0;
    if (options == NULL)
        return OPJIT_OK;
    TRY(opjit_fe_options_copy(options, &given, error));
    if ((given.flags & ~KNOWN_FLAGS) != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{flags}: {0x%x}, must be a sum of flags out of 0x%x", given.flags,
                               KNOWN_FLAGS);
    if ((uint32_t)given.level > OPJIT_LEVEL_PEAK)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{level}: {%u}, must be an opjit_level (0 to %u)", (unsigned)given.level,
                               (unsigned)OPJIT_LEVEL_PEAK);
    if (given.name != NULL && !is_name(given.name))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{name}: \"{%.96s}\", must be a C identifier of at most %u characters",
                               given.name, FE_NAME_SIZE - 1);
    if (given.target != NULL) {
        TRY(opjit_rt_place(error, opjit_rt_target_parse(given.target, &out->own, error), "options", "target", -1));
        out->target = &out->own;
    }
    /* AUTO is quick, whatever the operator: these kernels are bound by memory and peak code gains little on them. */
    if (given.level != OPJIT_LEVEL_AUTO)
        out->level = (uint32_t)given.level;
    if ((given.flags & OPJIT_COMPILE_INTERPRET) != 0)
        out->level = OPJIT_LEVEL_QUICK; /* nothing is compiled: one key for all levels */
    out->flags = given.flags;
    out->name = given.name;
    out->executor = given.executor;
    TRY(check_late(&given, error));
    return op == NULL ? OPJIT_OK : read_late(op->def, &given, out, error);
}

/* --- key ---------------------------------------------------------------------------------------------------------- */

/* The key of options is bounded, so it is written on the stack: a cache hit allocates nothing. */
typedef struct writer {
    uint8_t *at;
} writer;

static inline void put(writer *w, const void *data, size_t size)
{
    memcpy(w->at, data, size);
    w->at += size;
}

static inline void put_u8(writer *w, uint32_t value)
{
    *w->at++ = (uint8_t)value;
}

/* Texts here are shorter than 65536 bytes, each by its own bound.  Inline: the build id's length is a constant, and
 * most kernels have no name. */
static inline void put_text(writer *w, const char *text)
{
    const size_t length = text == NULL ? 0 : strlen(text);
    put_u8(w, length & 0xff);
    put_u8(w, (uint32_t)(length >> 8));
    if (length != 0)
        put(w, text, length);
}

_Static_assert(6 + 3 * 2 + sizeof OPJIT_BUILD_ID + RT_TARGET_TEXT_SIZE + FE_NAME_SIZE + OP_FIELDS_MAX <=
                   FE_OPTIONS_KEY_SIZE,
               "the longest key fits");

size_t opjit_fe_options_key(const fe_options *options, uint8_t key[static FE_OPTIONS_KEY_SIZE])
{
    writer w = { key };

    put_u8(&w, KEY_FORMAT);
    put_u8(&w, OPJIT_NUMERICS);
    put_u8(&w, OPJIT_KERNEL_ABI);
    put_text(&w, OPJIT_BUILD_ID); /* sources and LLVM version */
    put_u8(&w, options->level);
    put_u8(&w, options->flags & KEY_FLAGS);
    put_text(&w, options->target->text);
    put_text(&w, options->name);
    put_u8(&w, options->late_count);
    if (options->late_count != 0)
        put(&w, options->late, options->late_count);
    return (size_t)(w.at - key);
}
