/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - results of benchmarks, row by row: aligned text for people, or one JSON object for scripts.  Knows nothing
 * about what was measured. */
#ifndef OPJIT_CLI_TABLE_H
#define OPJIT_CLI_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum table_kind {
    TABLE_TEXT,  /* JSON: a string */
    TABLE_TIME,  /* nanoseconds; shown in ns, us or ms */
    TABLE_RATE,  /* bytes a nanosecond, which is GB/s */
    TABLE_RATIO,
    TABLE_BYTES, /* shown in KiB or MiB where that is a whole number */
    TABLE_COUNT
} table_kind;

typedef struct table_column {
    const char *key;   /* in JSON; of the heading too */
    table_kind kind;
    int width;         /* characters; text is aligned left, numbers right */
} table_column;

typedef struct table_cell {
    const char *text;  /* TABLE_TEXT; NULL: "" */
    double number;     /* all others; NAN: nothing was measured, "-" and null */
} table_cell;

typedef struct table {
    FILE *out;
    bool json;
    const table_column *columns;
    uint32_t count, rows;
} table;

/* Writes the head of a table called name, about the machine that `target` describes. */
void opjit_cli_table_begin(table *t, FILE *out, bool json, const char *name, const char *target,
                           const table_column *columns, uint32_t count);
/* Both: whether all of it so far has been written; errno says why not. */
bool opjit_cli_table_row(table *t, const table_cell *cells);
bool opjit_cli_table_end(table *t);

/* text as a string of JSON. */
void opjit_cli_put_string(FILE *out, const char *text);

#endif
