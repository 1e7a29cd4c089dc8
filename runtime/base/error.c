/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - errors: messages and the places that they name, and refusals of public structures by their size.  Compiled
 * for size, since it runs only where something is wrong. */
#include "runtime/base/base.h"
#include "runtime/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- errors ------------------------------------------------------------------------------------------------------ */

/* The length in bytes of the printable UTF-8 sequence at s; 0 where there is none.  Never reads past the NUL. */
static size_t printable_length(const char *s)
{
    uint32_t code = 0;
    const size_t length = rt_utf8_decode(s, 4, &code);

    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029) /* controls; separators */
        return 0;
    return length;
}

void opjit_rt_printable(char *text)
{
    while (*text != '\0') {
        const size_t length = printable_length(text);
        if (length == 0)
            *text = '?';
        text += length == 0 ? 1 : length;
    }
}

/* A message that does not fit ends in "...". */
static void put_text(char text[static OPJIT_ERROR_MESSAGE_SIZE], const char *format, va_list arguments)
{
    const int length = vsnprintf(text, OPJIT_ERROR_MESSAGE_SIZE, format, arguments);

    if (length < 0)
        text[0] = '\0';
    else if ((size_t)length >= OPJIT_ERROR_MESSAGE_SIZE)
        memcpy(text + OPJIT_ERROR_MESSAGE_SIZE - 4, "...", 4);
    opjit_rt_printable(text);
}

_Static_assert(sizeof(opjit_error) == 512, "the record's size is frozen");

/* What the status alone says of trying again. */
static opjit_retry retry_of(opjit_status status)
{
    return status == OPJIT_OUT_OF_MEMORY || status == OPJIT_IO || status == OPJIT_CANCELLED ? OPJIT_RETRY_LATER
                                                                                            : OPJIT_RETRY_NEVER;
}

opjit_status opjit_rt_error_set(opjit_error *error, opjit_status status, const char *format, ...)
{
    char text[OPJIT_ERROR_MESSAGE_SIZE]; /* arguments may point into *error */
    va_list arguments;

    if (error == NULL)
        return status;
    va_start(arguments, format);
    put_text(text, format, arguments);
    va_end(arguments);
    *error = (opjit_error){ .status = status, .retry = retry_of(status), .node = -1, .index = -1 };
    memcpy(error->message, text, sizeof text);
    return status;
}

/* --- places ------------------------------------------------------------------------------------------------------ */

/* Copies text, cut off where it is too long. */
static void copy_text(char *to, size_t room, const char *text)
{
    for (; *text != '\0' && room > 1; room--)
        *to++ = *text++;
    *to = '\0';
}

/* Fields end in "[3]" where one element is meant. */
static void take_index(opjit_error *error)
{
    char *const bracket = strrchr(error->field, '[');

    if (bracket == NULL || error->field[strlen(error->field) - 1] != ']')
        return;
    error->index = (int32_t)strtol(bracket + 1, NULL, 10);
    *bracket = '\0';
}

enum { FORMAT_MOST = 512, TEXT_MOST = 2 * FORMAT_MOST };

/* Stand for the braces of a format in the text that is made of it: bytes that no argument has. */
typedef struct brace_marks {
    char open, close;
} brace_marks;

/* Bytes of no format: of those that are no characters, the first two that the text lacks, which may have any in names
 * that a caller gave. */
static brace_marks absent_from(const char *text)
{
    brace_marks marks = { 1, 2 };
    uint32_t found = 0;

    for (int byte = 1; byte < 0x100 && found < 2; byte++) {
        if ((byte >= 0x20 && byte < 0x80) || strchr(text, byte) != NULL)
            continue;
        *(found == 0 ? &marks.open : &marks.close) = (char)byte;
        found++;
    }
    return marks;
}

/* Moves what is marked in text to op, field and value, and takes the marks and {!words} out of text. */
static void take_pieces(opjit_error *error, brace_marks marks, char *text)
{
    char *const pieces[] = { error->op, error->field, error->value }, *to = NULL, *message = text;
    const size_t sizes[] = { sizeof error->op, sizeof error->field, sizeof error->value };
    size_t room = 0, count = 0;
    bool shown = true;

    for (const char *at = text; *at != '\0'; at++) {
        if (*at == marks.open && count < 3) {
            room = sizes[count];
            to = pieces[count++];
            shown = at[1] != '!';
            at += !shown;
        } else if (*at == marks.close) {
            if (count == 2 && shown && at[1] == ':' && at[2] == ' ' &&
                (size_t)(message - text) < OPJIT_ERROR_MESSAGE_SIZE - 2)
                error->detail = (uint32_t)(message - text) + 2;
            to = NULL;
            shown = true;
        } else {
            if (to != NULL && room > 1) {
                *to++ = *at;
                room--;
            }
            if (shown)
                *message++ = *at;
        }
    }
    *message = '\0';
}

opjit_status opjit_rt_refuse(opjit_error *error, opjit_status status, const char *format, ...)
{
    char marked[FORMAT_MOST], text[TEXT_MOST], *comma;
    va_list arguments;
    size_t length = 0;
    opjit_error places = { .status = status };

    if (error == NULL)
        return status;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const brace_marks marks = absent_from(text);
    for (; format[length] != '\0' && length + 1 < sizeof marked; length++)
        marked[length] = format[length] == '{' ? marks.open : format[length] == '}' ? marks.close : format[length];
    marked[length] = '\0';
    va_start(arguments, format);
    vsnprintf(text, sizeof text, marked, arguments);
    va_end(arguments);
    take_pieces(&places, marks, text);
    opjit_rt_error_set(error, status, "%s", text);
    memcpy(error->op, places.op, offsetof(opjit_error, detail) + sizeof places.detail - offsetof(opjit_error, op));
    opjit_rt_printable(error->op);
    opjit_rt_printable(error->field);
    opjit_rt_printable(error->value);
    if ((comma = strstr(error->value, ", ")) != NULL) /* "NULL, must be a tensor" */
        *comma = '\0';
    take_index(error);
    return status;
}

opjit_status opjit_rt_refuse_null(opjit_error *error, const char *argument)
{
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{%s} is {NULL}", argument);
}

opjit_status opjit_rt_check_allocator(const opjit_allocator *a, opjit_error *error)
{
    return a->allocate != NULL && a->release != NULL
               ? OPJIT_OK
               : opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{allocator} {%s} is {NULL}",
                                 a->allocate == NULL ? "allocate" : "release");
}

opjit_status opjit_rt_place(opjit_error *error, opjit_status status, const char *op, const char *field, int32_t index)
{
    if (error == NULL || status == OPJIT_OK)
        return status;
    if (op != NULL)
        copy_text(error->op, sizeof error->op, op);
    if (field != NULL) { /* which the message need not have */
        copy_text(error->field, sizeof error->field, field);
        error->detail = 0;
    }
    error->index = index;
    return status;
}

opjit_status opjit_rt_later(opjit_error *error, opjit_status status)
{
    if (error != NULL && status != OPJIT_OK)
        error->retry = OPJIT_RETRY_LATER;
    return status;
}

opjit_status opjit_rt_error_copy(opjit_error *error, const opjit_error *from)
{
    if (error != NULL)
        *error = *from;
    return from->status;
}

opjit_status opjit_rt_at_node(opjit_error *error, opjit_status status, uint32_t node)
{
    if (error != NULL && status != OPJIT_OK)
        error->node = (int32_t)node;
    return status;
}

void opjit_rt_error_prefix(opjit_error *error, const char *format, ...)
{
    char text[OPJIT_ERROR_MESSAGE_SIZE];
    opjit_error both;
    va_list arguments;

    if (error == NULL)
        return;
    va_start(arguments, format);
    put_text(text, format, arguments);
    va_end(arguments);
    opjit_rt_error_set(&both, error->status, "%s: %s", text, error->message);
    memcpy(error->message, both.message, sizeof both.message);
    error->detail = 0;
}

opjit_status opjit_rt_no_memory(opjit_error *error)
{
    return opjit_rt_error_set(error, OPJIT_OUT_OF_MEMORY, "out of memory");
}

opjit_status opjit_rt_cancelled(opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_CANCELLED, "{!argument}the {job} was {cancelled}");
}

/* --- structures that may grow ------------------------------------------------------------------------------------- */

/* Finds the part of a structure with this struct_size that both sides know, and the structure's newest size. */
static opjit_status check_size(const rt_struct *type, uint32_t size, uint32_t *out_common, uint32_t *out_newest,
                               opjit_error *error)
{
    uint32_t newest = 0;

    *out_common = 0;
    for (size_t i = 0; i < sizeof type->sizes / sizeof *type->sizes && type->sizes[i] != 0; i++) {
        newest = type->sizes[i];
        *out_common = size == newest ? size : *out_common;
    }
    if (size > newest && size <= RT_STRUCT_MOST)
        *out_common = newest;
    *out_newest = newest;
    return *out_common != 0
               ? OPJIT_OK
               : opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                 "{%s}: {struct_size} {%u} is that of no version; set it with the _INIT macro (%u)",
                                 type->name, size, newest);
}

opjit_status opjit_rt_struct_read(const rt_struct *type, void *out, const void *given, opjit_error *error)
{
    const unsigned char *bytes = given;
    uint32_t size, common, newest;

    memcpy(&size, given, sizeof size);
    TRY(check_size(type, size, &common, &newest, error));
    for (uint32_t i = common; i < size; i++)
        if (bytes[i] != 0)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{%s}: {struct_size} {%u} is newer than this library's %u, and byte %u is not 0",
                                   type->name, size, common, i);
    memset(out, 0, newest);
    memcpy(out, given, common);
    return OPJIT_OK;
}

opjit_status opjit_rt_struct_write(const rt_struct *type, void *out, const void *full, opjit_error *error)
{
    uint32_t size, common, newest;

    memcpy(&size, out, sizeof size);
    TRY(check_size(type, size, &common, &newest, error));
    memcpy((char *)out + sizeof size, (const char *)full + sizeof size, common - sizeof size);
    return OPJIT_OK;
}
