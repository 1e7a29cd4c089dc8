/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - the JSON reader.  Recursive descent over the text, one node a value, everything in the caller's arena. */
#include "frontend/cli/text/json.h"
#include "frontend/cli/text/utf8.h"

#include <string.h>

#include "runtime/base/utf8.h"

typedef struct reader {
    const char *text, *at, *end; /* *end is NUL: looking at one byte is always allowed */
    rt_arena *arena;
    opjit_error *error;
} reader;

static opjit_status refuse(reader *r, const char *message)
{
    return opjit_rt_error_set(r->error, OPJIT_INVALID_ARGUMENT, "%s", message);
}

static opjit_status skip_comment(reader *r)
{
    const bool block = r->at[1] == '*';
    const char *const start = r->at;
    if (!block && r->at[1] != '/')
        return refuse(r, "a '/' begins no comment here");
    for (r->at += 2; r->at < r->end;) {
        uint32_t character;
        const size_t n = rt_utf8_decode(r->at, (size_t)(r->end - r->at), &character);
        if (n == 0)
            return refuse(r, "this is not UTF-8");
        if (!block && *r->at == '\n')
            return OPJIT_OK;
        if (block && r->at[0] == '*' && r->at[1] == '/') {
            r->at += 2;
            return OPJIT_OK;
        }
        r->at += n;
    }
    if (!block)
        return OPJIT_OK;
    r->at = start;
    return refuse(r, "this comment has no end");
}

static opjit_status skip_space(reader *r)
{
    for (;;) {
        while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')
            r->at++;
        if (*r->at != '/')
            return OPJIT_OK;
        TRY(skip_comment(r));
    }
}

/* Four hexadecimal digits at s; -1 if they are none. */
static long hex4(const char *s, const char *end)
{
    long value = 0;
    for (int i = 0; i < 4; i++) {
        const char c = s + i < end ? s[i] : '\0';
        if (c >= '0' && c <= '9')
            value = value * 16 + (c - '0');
        else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
            value = value * 16 + ((c | 0x20) - 'a' + 10);
        else
            return -1;
    }
    return value;
}

/* The escape at r->at (a backslash) into *out. */
static opjit_status read_escape(reader *r, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *const simple = r->at[1] != '\0' ? strchr(from, r->at[1]) : NULL;
    long c, low;
    if (simple != NULL) {
        *(*out)++ = to[simple - from];
        r->at += 2;
        return OPJIT_OK;
    }
    if (r->at[1] != 'u')
        return refuse(r, "there is no such escape");
    c = hex4(r->at + 2, r->end);
    if (c < 0)
        return refuse(r, "\\u needs four hexadecimal digits");
    if (c >= 0xd800 && c <= 0xdfff) {
        low = c < 0xdc00 && r->end - r->at >= 12 && r->at[6] == '\\' && r->at[7] == 'u' ? hex4(r->at + 8, r->end) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return refuse(r, "half of a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        r->at += 6;
    }
    *out = opjit_cli_utf8_put(*out, (uint32_t)c);
    r->at += 6;
    return OPJIT_OK;
}

static opjit_status read_string(reader *r, const char **out_text, size_t *out_length)
{
    const char *const start = r->at;
    const char *close = r->at + 1;
    char *text, *out;
    while (close < r->end && *close != '"')
        close += *close == '\\' && close + 1 < r->end ? 2 : 1;
    if (close >= r->end)
        return refuse(r, "this string has no end");
    /* Decoding never makes text longer. */
    text = opjit_rt_arena_allocate(r->arena, 1, (size_t)(close - start));
    if (text == NULL)
        return opjit_rt_no_memory(r->error);
    out = text;
    for (r->at++; r->at < close;) {
        uint32_t character;
        const size_t n = rt_utf8_decode(r->at, (size_t)(close - r->at), &character);
        if (n == 0)
            return refuse(r, "this is not UTF-8");
        if ((unsigned char)*r->at < 0x20)
            return refuse(r, "a control character in a string has to be escaped");
        if (*r->at == '\\') {
            TRY(read_escape(r, &out));
            continue;
        }
        memcpy(out, r->at, n);
        out += n;
        r->at += n;
    }
    r->at = close + 1;
    *out_text = text;
    *out_length = (size_t)(out - text);
    return OPJIT_OK;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static opjit_status read_number(reader *r, json_value *value)
{
    const char *s = r->at;
    value->kind = JSON_NUMBER;
    value->text = s;
    s += *s == '-';
    if (!is_digit(*s) || (*s == '0' && is_digit(s[1])))
        return refuse(r, "this is no JSON number");
    while (is_digit(*s))
        s++;
    if (*s == '.') {
        if (!is_digit(s[1]))
            return refuse(r, "a digit has to follow the decimal point");
        while (is_digit(*++s))
            continue;
    }
    if (*s == 'e' || *s == 'E') {
        s += s[1] == '+' || s[1] == '-' ? 2 : 1;
        if (!is_digit(*s))
            return refuse(r, "a digit has to follow the exponent's letter");
        while (is_digit(*s))
            s++;
    }
    if ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '.' || *s == '_' || *s == '+' || *s == '-')
        return refuse(r, "this is no JSON number");
    value->length = (size_t)(s - r->at);
    r->at = s;
    return OPJIT_OK;
}

static opjit_status read_word(reader *r, json_value *value)
{
    static const struct {
        const char *text;
        json_kind kind;
    } words[] = {
        { "null", JSON_NULL },
        { "false", JSON_FALSE },
        { "true", JSON_TRUE },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i].text);
        if (strncmp(r->at, words[i].text, n) == 0) {
            value->kind = words[i].kind;
            r->at += n;
            return OPJIT_OK;
        }
    }
    return refuse(r, r->at >= r->end ? "the text ends here: a value is missing" : "a value was expected");
}

static opjit_status refuse_twice(reader *r, const json_value *member)
{
    r->at = r->text + member->offset;
    return opjit_rt_error_set(r->error, OPJIT_INVALID_ARGUMENT, "the key \"%.80s\" stands twice in one object",
                              member->key);
}

/* Makes the table of an object's names, where it has more than a few members, and refuses two of one name. */
static opjit_status name_members(reader *r, json_value *object)
{
    enum { FEW = 8 };
    size_t size = 4 * FEW;
    if (object->count <= FEW) {
        for (const json_value *m = object->first; m != NULL; m = m->next)
            if (opjit_cli_json_find(object, m->key, m->key_length) != m)
                return refuse_twice(r, m);
        return OPJIT_OK;
    }
    while (size < 2 * (size_t)object->count)
        size *= 2;
    object->names = size - 1 <= UINT32_MAX ? ARENA_ARRAY(r->arena, const json_value *, size) : NULL;
    if (object->names == NULL)
        return opjit_rt_no_memory(r->error);
    object->mask = (uint32_t)(size - 1);
    for (const json_value *m = object->first; m != NULL; m = m->next) {
        const json_value **const slot = opjit_cli_json_slot(object, m->key, m->key_length);
        if (*slot != NULL)
            return refuse_twice(r, m);
        *slot = m;
    }
    return OPJIT_OK;
}

static opjit_status read_value(reader *r, json_value *value, unsigned depth);

/* One element of value, with its key in an object. */
static opjit_status read_element(reader *r, json_value *value, json_value **tail, unsigned depth)
{
    json_value *element = ARENA_NEW(r->arena, json_value);
    if (element == NULL || value->count == UINT32_MAX)
        return opjit_rt_no_memory(r->error);
    element->parent = value;
    element->index = value->count;
    if (value->kind == JSON_OBJECT) {
        if (*r->at != '"')
            return refuse(r, "a key in double quotes, or '}', was expected");
        TRY(read_string(r, &element->key, &element->key_length));
        TRY(skip_space(r));
        if (*r->at != ':')
            return refuse(r, "a ':' was expected behind the key");
        r->at++;
        TRY(skip_space(r));
    }
    TRY(read_value(r, element, depth + 1));
    if (*tail == NULL)
        value->first = element;
    else
        (*tail)->next = element;
    *tail = element;
    value->count++;
    return skip_space(r);
}

static opjit_status read_container(reader *r, json_value *value, unsigned depth)
{
    const char close = *r->at == '{' ? '}' : ']';
    json_value *tail = NULL;
    if (depth > JSON_MAX_DEPTH)
        return opjit_rt_error_set(r->error, OPJIT_LIMIT, "nested deeper than %u", JSON_MAX_DEPTH);
    value->kind = close == '}' ? JSON_OBJECT : JSON_ARRAY;
    r->at++;
    TRY(skip_space(r));
    while (*r->at != close) {
        TRY(read_element(r, value, &tail, depth));
        if (*r->at == ',')
            r->at++;
        else if (*r->at != close)
            return refuse(r, close == '}' ? "a ',' or '}' was expected" : "a ',' or ']' was expected");
        TRY(skip_space(r));
    }
    if (value->kind == JSON_OBJECT)
        TRY(name_members(r, value));
    r->at++;
    return OPJIT_OK;
}

static opjit_status read_value(reader *r, json_value *value, unsigned depth)
{
    value->offset = (size_t)(r->at - r->text);
    switch (*r->at) {
    case '{':
    case '[': return read_container(r, value, depth);
    case '"': value->kind = JSON_STRING; return read_string(r, &value->text, &value->length);
    default: return *r->at == '-' || is_digit(*r->at) ? read_number(r, value) : read_word(r, value);
    }
}

opjit_status opjit_cli_json_read(const char *text, size_t length, rt_arena *arena, json_value **out_root,
                                 json_place *where, opjit_error *error)
{
    reader r = { text, text, text + length, arena, error };
    json_value *root = ARENA_NEW(arena, json_value);
    opjit_status status;
    *out_root = NULL;
    *where = (json_place){ 1, 1 };
    if (root == NULL)
        return opjit_rt_no_memory(error);
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        r.at += 3;
    status = skip_space(&r);
    if (status == OPJIT_OK)
        status = *r.at == '{' ? read_value(&r, root, 1) : refuse(&r, "a model is a JSON object: '{' was expected");
    if (status == OPJIT_OK) {
        *out_root = root;
        return OPJIT_OK;
    }
    for (const char *s = text; s < r.at; s++) {
        where->column = *s == '\n' ? 1 : where->column + 1;
        where->line += *s == '\n';
    }
    return status;
}
