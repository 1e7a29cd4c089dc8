/* SPDX-License-Identifier: Apache-2.0 */
/* symbol.c - see symbol.h. */
#include "frontend/cli/text/symbol.h"

#include <inttypes.h>
#include <opjit/artifact.h>
#include <opjit/opjit.h>
#include <stdio.h>
#include <string.h>

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static size_t put(char *symbol, size_t used, char c)
{
    if (used < SYMBOL_SIZE - 1)
        symbol[used] = c;
    return used + 1;
}

/* Appends text, made a part of a name, as far as it fits in SYMBOL_SIZE - 1; returns the length of all of it. */
static size_t append(char *symbol, size_t used, const char *text, size_t length)
{
    bool gap = used != 0;

    for (size_t i = 0; i < length; i++) {
        if (!is_letter_or_digit(text[i])) {
            gap = used != 0;
            continue;
        }
        if (gap)
            used = put(symbol, used, '_');
        gap = false;
        if (used == 0 && text[i] >= '0' && text[i] <= '9')
            used = put(symbol, used, 'k');
        used = put(symbol, used, text[i]);
    }
    return used;
}

#define HASH_BEGIN UINT32_C(2166136261)
/* FNV-1a of what was hashed before and of this. */
static uint32_t hash_of(uint32_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT32_C(16777619);
    return hash;
}

/* The end of a name that is too long becomes its hash, so that names that begin alike stay apart. */
static size_t shorten(char *symbol, uint32_t hash)
{
    enum { DIGITS = 8 };
    size_t used = SYMBOL_SIZE - 1 - DIGITS - 1;

    while (symbol[used - 1] == '_')
        used--;
    return used + (size_t)snprintf(symbol + used, SYMBOL_SIZE - used, "_%08" PRIx32, hash);
}

opjit_status opjit_cli_symbol(const char *model, const char *name, size_t length, char symbol[static SYMBOL_SIZE],
                              opjit_error *error)
{
    size_t used = 0;
    uint32_t hash = HASH_BEGIN;

    if (model != NULL) {
        const char *slash = strrchr(model, '/'), *start = slash == NULL ? model : slash + 1;
        const char *dot = strrchr(start, '.');
        const size_t stem = dot == NULL || dot == start ? strlen(start) : (size_t)(dot - start);
        used = append(symbol, used, start, stem);
        hash = hash_of(hash, start, stem);
    }
    used = append(symbol, used, name, length);
    if (used >= SYMBOL_SIZE)
        used = shorten(symbol, hash_of(hash, name, length));
    if (used == 0) {
        memcpy(symbol, "kernel", 6);
        used = 6;
    }
    symbol[used] = '\0';
    if (opjit_artifact_check_name(symbol, NULL) != OPJIT_OK && used + 3 < SYMBOL_SIZE)
        memcpy(symbol + used, "_op", sizeof "_op");
    return opjit_artifact_check_name(symbol, error);
}
