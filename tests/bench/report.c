/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see report.h. */
#include "tests/bench/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const table_column columns[] = {
    { "case", TABLE_TEXT, 34 },  { "bytes", TABLE_BYTES, 9 },    { "time", TABLE_TIME, 10 },
    { "GB/s", TABLE_RATE, 7 },   { "x memset", TABLE_RATIO, 8 }, { "reference", TABLE_TEXT, 22 },
    { "ratio", TABLE_RATIO, 7 }, { "lo", TABLE_RATIO, 7 },       { "hi", TABLE_RATIO, 7 },
    { "bar", TABLE_TEXT, 10 },   { "verdict", TABLE_TEXT, 7 },
};

int report_options(report *r, int argc, char **argv)
{
    *r = (report){ .pairs = REPORT_PAIRS };
    for (int i = 1; i < argc; i++) {
        const char **value = strcmp(argv[i], "--only") == 0        ? &r->only
                             : strcmp(argv[i], "--yardstick") == 0 ? &r->yardstick
                             : strcmp(argv[i], "--child") == 0     ? &r->child
                                                                   : NULL;

        if (value != NULL && i + 1 < argc) {
            *value = argv[++i];
        } else if (strcmp(argv[i], "--json") == 0) {
            r->json = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            r->quick = true;
        } else if (strcmp(argv[i], "--strict") == 0) {
            r->strict = true;
        } else {
            fprintf(stderr, "usage: %s [--json] [--quick] [--strict] [--only TEXT] [--yardstick FILE]\n", argv[0]);
            return 2;
        }
    }
    return 0;
}

void report_begin(report *r, const char *name, const char *target)
{
    opjit_cli_table_begin(&r->table, stdout, r->json, name, target, columns, sizeof columns / sizeof *columns);
}

int report_open(report *r, const char *name, int argc, char **argv, opjit_context **out)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_error error;
    const int status = report_options(r, argc, argv);
    *out = NULL;
    if (status != 0)
        return status;
    options.target = getenv("OPJIT_BENCH_TARGET");
    if (opjit_context_create(&options, out, &error) != OPJIT_OK) {
        fprintf(stderr, "%s: %s\n", name, error.message);
        return 1;
    }
    report_begin(r, name, opjit_context_target(*out));
    return 0;
}

bool report_wants(const report *r, const char *name)
{
    return r->only == NULL || strstr(name, r->only) != NULL;
}

static const char *verdict(report *r, const report_row *row)
{
    const double value = row->in_ns ? row->ns : row->ratio;
    const double reach =
        row->bar == BAR_AT_MOST ? (row->in_ns ? row->ns_lo : row->lo) : (row->in_ns ? row->ns_hi : row->hi);

    if (row->note != NULL)
        return row->note;
    if (row->bar == BAR_NONE)
        return "";
    if (row->bar == BAR_AT_MOST ? value <= row->limit : value >= row->limit) {
        r->passed++;
        return "ok";
    }
    if (row->bar == BAR_AT_MOST ? reach <= row->limit : reach >= row->limit) {
        r->open++;
        return "open";
    }
    r->failed++;
    return "FAIL";
}

void report_put(report *r, const report_row *row)
{
    char bar[32] = "";

    if (row->bar != BAR_NONE && row->in_ns)
        snprintf(bar, sizeof bar, "%s %g %s",
                 row->bar == BAR_AT_MOST ? "<=" : ">=", row->limit >= 1e6 ? row->limit / 1e6 : row->limit,
                 row->limit >= 1e6 ? "ms" : "ns");
    else if (row->bar != BAR_NONE)
        snprintf(bar, sizeof bar, "%s %g", row->bar == BAR_AT_MOST ? "<=" : ">=", row->limit);
    const table_cell cells[] = {
        { row->name, 0 }, { NULL, row->bytes }, { NULL, row->ns }, { NULL, row->bytes / row->ns },
        { NULL, row->memset_ratio }, { row->reference, 0 }, { NULL, row->ratio }, { NULL, row->lo }, { NULL, row->hi },
        { bar, 0 }, { verdict(r, row), 0 },
    };
    opjit_cli_table_row(&r->table, cells);
}

void report_put_pair(report *r, const char *name, const measure_pair *pair, const char *reference, double limit)
{
    report_put(r, &(report_row){ .name = name,
                                 .ns = pair->a_ns,
                                 .bytes = NAN,
                                 .memset_ratio = NAN,
                                 .reference = reference,
                                 .ratio = pair->ratio,
                                 .lo = pair->lo,
                                 .hi = pair->hi,
                                 .bar = limit > 0 ? BAR_AT_MOST : BAR_NONE,
                                 .limit = limit });
}

int report_end(report *r)
{
    opjit_cli_table_end(&r->table);
    if (!r->json)
        printf("%u bars kept, %u open, %u failed\n", (unsigned)r->passed, (unsigned)r->open, (unsigned)r->failed);
    return r->strict && r->failed != 0;
}
