/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - shared by the benchmark programs: options, rows, bars and verdicts. */
#ifndef OPJIT_TESTS_BENCH_REPORT_H
#define OPJIT_TESTS_BENCH_REPORT_H

#include <opjit/opjit.h>

#include "frontend/cli/measure/measure.h"
#include "frontend/cli/text/table.h"

#define REPORT_PAIRS 21u

typedef struct report {
    table table;
    bool json, quick, strict;
    const char *only;            /* run the cases whose names contain it; NULL: all */
    const char *yardstick;       /* path of an external yardstick; NULL: ours only */
    const char *child;           /* the task of a program that was started by itself */
    uint32_t pairs;
    uint32_t passed, open, failed;
} report;

/* Reads --json --quick --strict --only TEXT --yardstick FILE.  0, or the exit status after a usage message. */
int report_options(report *r, int argc, char **argv);
void report_begin(report *r, const char *name, const char *target);
/* Options, a context for $OPJIT_BENCH_TARGET (this CPU's if it is not set), and the head of the table.  0, or the exit
 * status; the caller destroys *out. */
int report_open(report *r, const char *name, int argc, char **argv, opjit_context **out);
bool report_wants(const report *r, const char *name);

typedef enum report_bar { BAR_NONE, BAR_AT_MOST, BAR_AT_LEAST } report_bar;

typedef struct report_row {
    const char *name;
    double ns, bytes;            /* NAN: has none */
    double memset_ratio;         /* time / that of memset over the same buffer; NAN: not measured */
    const char *reference;       /* what ratio is against */
    double ratio, lo, hi;        /* with its 95 % interval */
    report_bar bar;
    double limit;                /* of ratio, or of ns where in_ns is set */
    bool in_ns;
    double ns_lo, ns_hi;         /* interval of ns, where in_ns is set */
    const char *note;            /* instead of a verdict */
} report_row;

/* Verdicts: "ok" if the median keeps the bar; "open" if it does not but the interval reaches it, so that the run
 * decides nothing; otherwise "FAIL". */
void report_put(report *r, const report_row *row);
/* The row of a pair; limit: that the ratio is to stay below, 0: none. */
void report_put_pair(report *r, const char *name, const measure_pair *pair, const char *reference, double limit);
/* Ends the table and prints the counts.  Returns the exit status: 1 for a failed bar with --strict. */
int report_end(report *r);

#endif
