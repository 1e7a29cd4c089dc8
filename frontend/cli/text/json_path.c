/* SPDX-License-Identifier: Apache-2.0 */
/* json_path.c - finding values in a model, and naming the place of one. */
#include <stdio.h>
#include <string.h>

#include "frontend/cli/text/json.h"

static bool has_name(const json_value *member, const char *key, size_t length)
{
    return member->key_length == length && memcmp(member->key, key, length) == 0;
}

const json_value **opjit_cli_json_slot(const json_value *object, const char *key, size_t length)
{
    uint32_t slot = (uint32_t)opjit_rt_hash64(key, length) & object->mask;
    while (object->names[slot] != NULL && !has_name(object->names[slot], key, length))
        slot = (slot + 1) & object->mask;
    return &object->names[slot];
}

const json_value *opjit_cli_json_find(const json_value *object, const char *key, size_t length)
{
    const json_value *m;
    if (object == NULL || object->kind != JSON_OBJECT)
        return NULL;
    if (object->names != NULL)
        return *opjit_cli_json_slot(object, key, length);
    for (m = object->first; m != NULL && !has_name(m, key, length); m = m->next)
        continue;
    return m;
}

const json_value *opjit_cli_json_get(const json_value *object, const char *key)
{
    return opjit_cli_json_find(object, key, strlen(key));
}

bool opjit_cli_json_is(const json_value *string, const char *text)
{
    const size_t length = strlen(text);
    return string != NULL && string->kind == JSON_STRING && string->length == length &&
           memcmp(string->text, text, length) == 0;
}

/* Whether a key can stand behind a dot as it is. */
static bool is_plain(const char *key, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char c = key[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
              c == '$'))
            return false;
    }
    return length != 0;
}

static void append(char *out, size_t size, const char *text, size_t length)
{
    const size_t used = strlen(out);
    const size_t room = size - 1 - used;
    if (length > room)
        length = room;
    memcpy(out + used, text, length);
    out[used + length] = '\0';
}

void opjit_cli_json_path(const json_value *at, char *out, size_t size)
{
    const json_value *chain[JSON_MAX_DEPTH + 2];
    size_t depth = 0;
    char number[32];
    out[0] = '\0';
    append(out, size, "$", 1);
    for (; at != NULL && at->parent != NULL && depth < sizeof chain / sizeof *chain; at = at->parent)
        chain[depth++] = at;
    while (depth-- != 0) {
        const json_value *v = chain[depth];
        if (v->key == NULL) {
            append(out, size, number, (size_t)snprintf(number, sizeof number, "[%u]", (unsigned)v->index));
            continue;
        }
        const bool plain = is_plain(v->key, v->key_length);
        append(out, size, plain ? "." : "[\"", plain ? 1 : 2);
        append(out, size, v->key, v->key_length);
        append(out, size, "\"]", plain ? 0 : 2);
    }
}

const char *opjit_cli_kind_name(json_kind kind)
{
    static const char *const names[] = { "null", "false", "true", "a number", "a string", "an array", "an object" };
    return names[kind];
}
