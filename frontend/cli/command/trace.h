/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - `--trace FILE`: what a command compiled, found and ran, as JSON for chrome://tracing and Perfetto. */
#ifndef OPJIT_CLI_TRACE_H
#define OPJIT_CLI_TRACE_H

#include "frontend/cli/cli.h"

typedef struct cli_trace {
    const char *path; /* NULL: nothing is traced */
    uint64_t start;   /* nanoseconds of CLOCK_MONOTONIC: the trace's 0 */
    rt_bytes text;
    opjit_step_time *steps; /* room for a call's */
    uint32_t capacity;
} cli_trace;

/* Begins a trace if options ask for one, and makes *out_traced of them, which the context is to be made with. */
void opjit_cli_trace_begin(cli_trace *trace, const cli_options *options, cli_options *out_traced);
/* Writes the file, also where the command failed.  The exit status, which is result where nothing goes wrong. */
int opjit_cli_trace_end(cli_trace *trace, int result);

void opjit_cli_trace_event(cli_trace *trace, const opjit_event *event);
/* opjit_kernel_call, its steps in the trace.  name: the dispatchable's. */
opjit_status opjit_cli_trace_call(cli_trace *trace, const char *name, size_t name_length, const opjit_kernel *kernel,
                                  const opjit_call *call, opjit_error *error);

#endif
