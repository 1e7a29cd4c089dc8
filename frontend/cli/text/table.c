/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - see table.h.  Rows are written as they come, so that a long run shows what it has. */
#include "frontend/cli/text/table.h"

#include <math.h>

void opjit_cli_put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if ((unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

void opjit_cli_table_begin(table *t, FILE *out, bool json, const char *name, const char *target,
                           const table_column *columns, uint32_t count)
{
    *t = (table){ out, json, columns, count, 0 };
    if (json) {
        fprintf(out, "{\n  \"benchmark\": ");
        opjit_cli_put_string(out, name);
        fprintf(out, ",\n  \"target\": ");
        opjit_cli_put_string(out, target);
        fprintf(out, ",\n  \"rows\": [");
        return;
    }
    fprintf(out, "%s on %s\n", name, target);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%*s", i == 0 ? "" : "  ", columns[i].kind == TABLE_TEXT ? -columns[i].width : columns[i].width,
                columns[i].key);
    fputc('\n', out);
    fflush(out);
}

/* What people read: three or four digits. */
static void format(char text[static 32], table_kind kind, double x)
{
    if (isnan(x)) {
        snprintf(text, 32, "-");
        return;
    }
    switch (kind) {
    case TABLE_TIME:
        if (fabs(x) < 1e4)
            snprintf(text, 32, fabs(x) < 100 ? "%.2f ns" : "%.0f ns", x);
        else if (fabs(x) < 1e7)
            snprintf(text, 32, fabs(x) < 1e5 ? "%.2f us" : "%.1f us", x / 1e3);
        else
            snprintf(text, 32, "%.2f ms", x / 1e6);
        break;
    case TABLE_BYTES:
        if (x >= 1048576 && fmod(x, 1048576) == 0)
            snprintf(text, 32, "%.0f MiB", x / 1048576);
        else if (x >= 1024 && fmod(x, 1024) == 0)
            snprintf(text, 32, "%.0f KiB", x / 1024);
        else
            snprintf(text, 32, "%.0f B", x);
        break;
    case TABLE_RATE: snprintf(text, 32, "%.1f", x); break;
    case TABLE_COUNT: snprintf(text, 32, "%.0f", x); break;
    case TABLE_RATIO:
    case TABLE_TEXT: snprintf(text, 32, "%.3f", x); break;
    }
}

static void put_json(const table *t, const table_cell *cells)
{
    fprintf(t->out, "%s\n    {", t->rows == 0 ? "" : ",");
    for (uint32_t i = 0; i < t->count; i++) {
        fprintf(t->out, "%s", i == 0 ? "" : ", ");
        opjit_cli_put_string(t->out, t->columns[i].key);
        fprintf(t->out, ": ");
        if (t->columns[i].kind == TABLE_TEXT)
            opjit_cli_put_string(t->out, cells[i].text != NULL ? cells[i].text : "");
        else if (isfinite(cells[i].number))
            fprintf(t->out, "%.6g", cells[i].number);
        else
            fprintf(t->out, "null");
    }
    fprintf(t->out, "}");
}

/* At once: a row may take long. */
static bool is_written(FILE *out)
{
    return fflush(out) == 0 && !ferror(out);
}

bool opjit_cli_table_row(table *t, const table_cell *cells)
{
    if (t->json) {
        put_json(t, cells);
    } else {
        for (uint32_t i = 0; i < t->count; i++) {
            char number[32];

            format(number, t->columns[i].kind, cells[i].number);
            fprintf(t->out, "%s", i == 0 ? "" : "  ");
            if (t->columns[i].kind == TABLE_TEXT)
                fprintf(t->out, "%-*s", t->columns[i].width, cells[i].text != NULL ? cells[i].text : "");
            else
                fprintf(t->out, "%*s", t->columns[i].width, number);
        }
        fputc('\n', t->out);
    }
    t->rows++;
    return is_written(t->out);
}

bool opjit_cli_table_end(table *t)
{
    if (t->json)
        fprintf(t->out, "\n  ]\n}\n");
    return is_written(t->out);
}
