/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - writes Chrome's trace event format: complete spans ("X") for compiles, their phases, loads, calls and their
 * steps, instants ("i") for the rest.  Commands compile and call on one thread, so spans nest by their times. */
#define _POSIX_C_SOURCE 200809L
#include "frontend/cli/command/trace.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frontend/cli/files/files.h"
#include "runtime/base/utf8.h"

void opjit_cli_trace_begin(cli_trace *trace, const cli_options *options, cli_options *out_traced)
{
    struct timespec now = { 0 };
    clock_gettime(CLOCK_MONOTONIC, &now);
    *trace = (cli_trace){ .path = options->trace, .start = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec };
    opjit_rt_bytes_init(&trace->text, &opjit_rt_default_allocator);
    *out_traced = *options;
    if (options->trace != NULL)
        out_traced->recorder = trace;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */
static void put(cli_trace *trace, const char *text)
{
    opjit_rt_bytes_append(&trace->text, text, strlen(text));
}

/* A string; what is no UTF-8 becomes '?'. */
static void put_string(cli_trace *trace, const char *text, size_t length)
{
    put(trace, "\"");
    for (size_t i = 0; i < length;) {
        const unsigned char c = (unsigned char)text[i];
        uint32_t character;
        const size_t bytes = rt_utf8_decode(text + i, length - i, &character);
        if (bytes == 0)
            put(trace, "?");
        else if (c == '"' || c == '\\' || c < 0x20 || c == 0x7f)
            opjit_rt_bytes_printf(&trace->text, c < 0x20 || c == 0x7f ? "\\u%04x" : "\\%c", c);
        else
            opjit_rt_bytes_append(&trace->text, text + i, bytes);
        i += bytes == 0 ? 1 : bytes;
    }
    put(trace, "\"");
}

/* Microseconds since the trace began. */
static double microseconds(const cli_trace *trace, uint64_t ns)
{
    return ((double)ns - (double)trace->start) / 1e3;
}

/* Begins an event, whose arguments and closing braces follow.  duration: microseconds, below 0: an instant. */
static void begin(cli_trace *trace, const char *name, size_t length, const char *category, double at, double duration)
{
    put(trace, trace->text.size == 0 ? "\n" : ",\n");
    put(trace, "{\"name\":");
    put_string(trace, name, length);
    opjit_rt_bytes_printf(&trace->text, ",\"cat\":\"%s\",\"pid\":%ld,\"tid\":1,\"ts\":%.3f", category, (long)getpid(),
                          at);
    if (duration >= 0)
        opjit_rt_bytes_printf(&trace->text, ",\"ph\":\"X\",\"dur\":%.3f,\"args\":{", duration);
    else
        put(trace, ",\"ph\":\"i\",\"s\":\"t\",\"args\":{");
}

static void phase(cli_trace *trace, const char *name, double *at, double ms)
{
    begin(trace, name, strlen(name), "phase", *at, ms * 1e3);
    put(trace, "}}");
    *at += ms * 1e3;
}

/* --- events ------------------------------------------------------------------------------------------------------- */
static void put_arguments(cli_trace *trace, const opjit_event *event)
{
    put(trace, "\"line\":");
    put_string(trace, event->line, strlen(event->line));
    if (event->compile_id != 0)
        opjit_rt_bytes_printf(&trace->text, ",\"compile\":%llu", (unsigned long long)event->compile_id);
    if ((event->key_hi | event->key_lo) != 0)
        opjit_rt_bytes_printf(&trace->text, ",\"key\":\"%016llx%016llx\"", (unsigned long long)event->key_hi,
                              (unsigned long long)event->key_lo);
    if (event->bytes != 0)
        opjit_rt_bytes_printf(&trace->text, ",\"bytes\":%llu", (unsigned long long)event->bytes);
    if (event->target[0] != '\0') {
        put(trace, ",\"target\":");
        put_string(trace, event->target, strlen(event->target));
    }
    if (event->reason[0] != '\0') {
        put(trace, ",\"reason\":");
        put_string(trace, event->reason, strlen(event->reason));
    }
    for (uint32_t i = 0; i < event->node_count; i++) {
        put(trace, i == 0 ? ",\"nodes\":[" : ",");
        put_string(trace, event->nodes[i], strlen(event->nodes[i]));
    }
    put(trace, event->node_count == 0 ? "}}" : "]}}");
}

void opjit_cli_trace_event(cli_trace *trace, const opjit_event *event)
{
    static const char *const categories[] = { "other", "compile", "hit", "miss", "load", "evict", "warning" };
    const uint32_t kind = (uint32_t)event->kind;
    const char *const category = categories[kind < sizeof categories / sizeof *categories ? kind : 0];
    const double end = microseconds(trace, event->time_ns);
    double at = end - event->total_ms * 1e3;
    begin(trace, event->name, strlen(event->name), category, at, event->total_ms > 0 ? end - at : -1);
    put_arguments(trace, event);
    if (event->kind != OPJIT_EVENT_COMPILE)
        return;
    phase(trace, "lower", &at, event->lower_ms);
    phase(trace, "passes", &at, event->passes_ms);
    if (event->codegen_ms > 0)
        phase(trace, "codegen", &at, event->codegen_ms);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
static void put_steps(cli_trace *trace, const char *name, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < trace->capacity; i++) {
        const opjit_step_time *const s = &trace->steps[i];
        char label[80];
        snprintf(label, sizeof label, "%.60s %u", name, (unsigned)s->step);
        begin(trace, label, strlen(label), "step", microseconds(trace, s->begin_ns),
              (double)(s->end_ns - s->begin_ns) / 1e3);
        opjit_rt_bytes_printf(&trace->text, "\"kind\":\"%s\",\"extent\":%llu}}",
                              s->kind == OPJIT_STEP_CUSTOM ? "custom" : "stage", (unsigned long long)s->extent);
    }
}

opjit_status opjit_cli_trace_call(cli_trace *trace, const char *name, size_t name_length, const opjit_kernel *kernel,
                                  const opjit_call *call, opjit_error *error)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    uint32_t count;
    TRY(opjit_kernel_get_info(kernel, &info, error));
    if (info.meta->steps > trace->capacity) { /* of all variants */
        opjit_rt_release(&opjit_rt_default_allocator, trace->steps, trace->capacity * sizeof *trace->steps);
        trace->capacity = info.meta->steps;
        trace->steps = opjit_rt_allocate(&opjit_rt_default_allocator, trace->capacity * sizeof *trace->steps,
                                         _Alignof(opjit_step_time));
        if (trace->steps == NULL) {
            trace->capacity = 0;
            return opjit_rt_no_memory(error);
        }
    }
    const opjit_status status = opjit_kernel_call_timed(kernel, call, trace->steps, trace->capacity, &count, error);
    if (count != 0 && count <= trace->capacity) {
        const uint64_t first = trace->steps[0].begin_ns, last = trace->steps[count - 1].end_ns;
        begin(trace, name, name_length, "call", microseconds(trace, first), (double)(last - first) / 1e3);
        put(trace, "\"kernel\":");
        put_string(trace, info.name, strlen(info.name));
        put(trace, "}}");
        put_steps(trace, info.name, count);
    }
    return status;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */
static opjit_status write_trace(const cli_trace *trace, opjit_error *error)
{
    static const char first[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", last[] = "\n]}\n";
    rt_bytes head;
    cli_file file;
    opjit_status status;
    TRY(opjit_cli_file_find("trace", trace->path, true, &file, error));
    opjit_rt_bytes_init(&head, &opjit_rt_default_allocator);
    opjit_rt_bytes_append(&head, first, sizeof first - 1);
    opjit_rt_bytes_append(&head, trace->text.data, trace->text.size);
    status = head.failed || trace->text.failed ? opjit_rt_no_memory(error)
                                               : opjit_cli_file_write(&file, &head, last, sizeof last - 1, error);
    opjit_rt_bytes_free(&head);
    opjit_cli_file_close(&file);
    return status;
}

int opjit_cli_trace_end(cli_trace *trace, int result)
{
    opjit_error error = { 0 };
    if (trace->path != NULL && write_trace(trace, &error) != OPJIT_OK)
        result = opjit_cli_complain(trace->path, NULL, &error);
    opjit_rt_bytes_free(&trace->text);
    opjit_rt_release(&opjit_rt_default_allocator, trace->steps, trace->capacity * sizeof *trace->steps);
    return result;
}
