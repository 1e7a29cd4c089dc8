/* SPDX-License-Identifier: Apache-2.0 */
/* json_path.c - finding values in a model, and naming the place of one. */
#include <stdio.h>
#include <string.h>

#include "frontend/cli/json.h"

const json_value *opjit_cli_json_get(const json_value *object, const char *key)
{
    const size_t length = strlen(key);
    if (object == NULL || object->kind != JSON_OBJECT)
        return NULL;
    for (const json_value *m = object->first; m != NULL; m = m->next) {
        if (m->key_length == length && memcmp(m->key, key, length) == 0)
            return m;
    }
    return NULL;
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
            append(out, size, number, (size_t)snprintf(number, sizeof number, "[%llu]", (unsigned long long)v->index));
            continue;
        }
        const bool plain = is_plain(v->key, v->key_length);
        append(out, size, plain ? "." : "[\"", plain ? 1 : 2);
        append(out, size, v->key, v->key_length);
        append(out, size, "\"]", plain ? 0 : 2);
    }
}
