/* SPDX-License-Identifier: Apache-2.0 */
/* symbol.c - see symbol.h. */
#include "frontend/cli/text/symbol.h"

#include <opjit/artifact.h>
#include <opjit/opjit.h>
#include <stdio.h>
#include <string.h>

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Appends text, made a part of a name; returns the length, which is above SYMBOL_SIZE where it does not fit. */
static size_t append(char *symbol, size_t used, const char *text, size_t length)
{
    bool gap = used != 0;

    for (size_t i = 0; i < length; i++) {
        if (!is_letter_or_digit(text[i])) {
            gap = used != 0;
            continue;
        }
        if (used + 2 >= SYMBOL_SIZE)
            return SYMBOL_SIZE + 1;
        if (gap)
            symbol[used++] = '_';
        gap = false;
        if (used == 0 && text[i] >= '0' && text[i] <= '9')
            symbol[used++] = 'k';
        symbol[used++] = text[i];
    }
    return used;
}

opjit_status opjit_cli_symbol(const char *model, const char *name, size_t length, char symbol[static SYMBOL_SIZE],
                              opjit_error *error)
{
    size_t used = 0;

    if (model != NULL) {
        const char *slash = strrchr(model, '/'), *start = slash == NULL ? model : slash + 1;
        const char *dot = strrchr(start, '.');
        used = append(symbol, used, start, dot == NULL || dot == start ? strlen(start) : (size_t)(dot - start));
    }
    if (used < SYMBOL_SIZE)
        used = append(symbol, used, name, length);
    if (used == 0) {
        memcpy(symbol, "kernel", 6);
        used = 6;
    }
    if (used >= SYMBOL_SIZE)
        return opjit_rt_error_set(error, OPJIT_LIMIT, "its name is too long for a symbol: at most %u characters",
                                  SYMBOL_SIZE - 1);
    symbol[used] = '\0';
    if (opjit_artifact_check_name(symbol, NULL) != OPJIT_OK && used + 3 < SYMBOL_SIZE)
        memcpy(symbol + used, "_op", sizeof "_op");
    return opjit_artifact_check_name(symbol, error);
}
