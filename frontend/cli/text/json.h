/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - a small JSON reader for models: hands out raw number text, decoded strings and positions, so that nothing is
 * changed on the way and every message can name its place.  Not a JSON library: it can't write, and knows no numbers.
 *
 * Beyond JSON: comments (two slashes, or slash-star) and a comma after the last element.  The text must be one object;
 * what stands behind its closing brace is ignored.  Refused: duplicate keys, nesting beyond 64, invalid UTF-8, lone
 * surrogates, control characters in strings. */
#ifndef OPJIT_CLI_JSON_H
#define OPJIT_CLI_JSON_H

#include "runtime/base/base.h"

#define JSON_MAX_DEPTH 64u

typedef enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json_value json_value;
struct json_value {
    json_kind kind;
    uint32_t count;   /* ARRAY, OBJECT: elements */
    const char *text; /* NUMBER: as written, what follows is no part of a number; STRING: decoded, NUL-terminated */
    size_t length;    /* of text; a string may hold NUL bytes */
    const char *key;  /* member of an object: its name, else NULL */
    size_t key_length;
    uint32_t index;           /* position in the array or object */
    uint32_t mask;            /* of names: its size - 1 */
    const json_value **names; /* OBJECT: hash table of its members; NULL: there are few */
    size_t offset;            /* in the file */
    json_value *first, *next; /* ARRAY, OBJECT: elements; the next one of the same parent */
    const json_value *parent; /* NULL: the root */
};

typedef struct json_place {
    size_t line, column;
} json_place; /* from 1; columns count bytes */

/* Reads text, which must be followed by a NUL byte at text[length] and stay as long as the values do.  Everything made
 * lives in arena.  On failure *where is the place of the error. */
opjit_status opjit_cli_json_read(const char *text, size_t length, rt_arena *arena, json_value **out_root,
                                 json_place *where, opjit_error *error);

/* The member of object called key, or NULL; also where object is no object.  Takes the same time in any object, so that
 * things which are named in a model are found by their place: the member's index. */
const json_value *opjit_cli_json_find(const json_value *object, const char *key, size_t length);
const json_value *opjit_cli_json_get(const json_value *object, const char *key); /* key ends with a NUL */
/* The place of key in object->names, empty where it is no member.  For the two functions above and the reader. */
const json_value **opjit_cli_json_slot(const json_value *object, const char *key, size_t length);
bool opjit_cli_json_is(const json_value *string, const char *text); /* a string of exactly that text */
const char *opjit_cli_kind_name(json_kind kind);                    /* "a number" */

/* Writes "$.dispatchables.eye.desc.Sizes[2]" into out (NUL-terminated, cut where it doesn't fit); at NULL: "$". */
void opjit_cli_json_path(const json_value *at, char *out, size_t size);

#endif
