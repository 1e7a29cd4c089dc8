/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c - see suggest.h. */
#include "frontend/cli/text/suggest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool equal(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Whether a may be a misspelt b, given how many characters differ. */
static bool near(uint32_t distance, size_t a_length, size_t b_length)
{
    return distance * 3 <= (a_length > b_length ? a_length : b_length);
}

/* The edit distance: characters to insert, delete, replace or swap with their neighbour; three rows of the usual
 * table. */
static uint32_t edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    uint32_t rows[3][CLI_SUGGEST_LONGEST + 1];

    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = (uint32_t)j;
    for (size_t i = 1; i <= a_length; i++) {
        uint32_t *const row = rows[i % 3], *const last = rows[(i + 2) % 3], *const before = rows[(i + 1) % 3];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= b_length; j++) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = least(least(row[j - 1], last[j]) + 1, last[j - 1] + !same);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

void opjit_cli_suggest_begin(cli_suggestion *s, const char *given, size_t length)
{
    *s = (cli_suggestion){ .given = given, .given_length = length, .distance = UINT32_MAX };
}

/* The distance to the nearest part of name: its beginning, or its end after an underscore; UINT32_MAX: none is near. */
static uint32_t part_distance(const cli_suggestion *s, const char *name, size_t length)
{
    uint32_t best = UINT32_MAX;

    if (s->given_length < 3)
        return best;
    if (length >= s->given_length && equal(name, s->given, s->given_length))
        best = 0;
    for (size_t i = 0; i < length; i++) {
        if (name[i] != '_')
            continue;
        const uint32_t distance = edits(s->given, s->given_length, name + i + 1, length - i - 1);
        if (near(distance, s->given_length, length - i - 1))
            best = least(best, distance);
    }
    return best;
}

void opjit_cli_suggest(cli_suggestion *s, const char *name, size_t length)
{
    uint32_t distance;

    if (length > CLI_SUGGEST_LONGEST || s->given_length > CLI_SUGGEST_LONGEST || s->given_length == 0 || length == 0)
        return;
    distance = edits(s->given, s->given_length, name, length);
    if (!near(distance, s->given_length, length)) {
        distance = part_distance(s, name, length);
        if (distance == UINT32_MAX)
            return;
        distance += CLI_SUGGEST_LONGEST; /* ranks after all names that are near as a whole */
    }
    if (distance >= s->distance)
        return;
    s->best = name;
    s->best_length = length;
    s->distance = distance;
}

const char *opjit_cli_suggest_text(const cli_suggestion *s, const char *before, const char *after,
                                  char text[static CLI_SUGGEST_TEXT])
{
    text[0] = '\0';
    if (s->best != NULL)
        snprintf(text, CLI_SUGGEST_TEXT, "; did you mean %s%.*s%s?", before, (int)s->best_length, s->best, after);
    return text;
}
