/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - the context and the core that kernels and operators share with it.  The environment is read here, once
 * per context; options take precedence. */
#define _GNU_SOURCE
#include "runtime/base/context.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cache/cache.h"
#include "runtime/cache/disk.h"

#define DEFAULT_CACHE_BYTES (UINT64_C(64) << 20)
#define DEFAULT_DISK_BYTES (UINT64_C(256) << 20)
#ifdef NDEBUG
#define ALWAYS_VERIFY false
#else
#define ALWAYS_VERIFY true
#endif
#define KNOWN_FLAGS                                                                                                    \
    (OPJIT_CONTEXT_ALLOW_INTERPRETER | OPJIT_CONTEXT_PERF_MAP | OPJIT_CONTEXT_GDB | OPJIT_CONTEXT_OUT_OF_PROCESS)

/* --- core --------------------------------------------------------------------------------------------------------- */

static bool environment_says(const char *name)
{
    const char *value = secure_getenv(name); /* NULL in a set-user-id program */
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

static void release_text(const opjit_allocator *a, char *text)
{
    if (text != NULL)
        opjit_rt_release(a, text, strlen(text) + 1);
}

static rt_core *core_create(const opjit_context_options *options)
{
    const opjit_allocator allocator = options->allocator == NULL ? opjit_rt_default_allocator : *options->allocator;
    rt_core *core = opjit_rt_allocate(&allocator, sizeof *core, alignof(rt_core));

    if (core == NULL)
        return NULL;
    memset(core, 0, sizeof *core);
    opjit_rt_process_init(&core->process);
    opjit_rt_lock_init(&core->pages.lock, &core->process);
    atomic_init(&core->references, 1 + RT_CORE_COUNTERS);
    for (uint32_t i = 0; i < RT_CORE_COUNTERS; i++)
        atomic_init(&core->counters[i].references, 1);
    core->allocator = allocator;
    opjit_rt_lock_init(&core->jobs.lock, &core->process);
    opjit_rt_mapped_init(&core->mapped, &core->process);
    core->jobs.list = 1;
    opjit_rt_constants_init(&core->constants, &core->process, &core->allocator);
    core->event = options->event;
    core->event_user = options->event_user;
    core->verbose = options->event == NULL && environment_says("OPJIT_VERBOSE");
    core->flags = options->flags;
    if (environment_says("OPJIT_PERF_MAP"))
        core->flags |= OPJIT_CONTEXT_PERF_MAP;
    if (environment_says("OPJIT_GDB"))
        core->flags |= OPJIT_CONTEXT_GDB;
    if (environment_says("OPJIT_OUT_OF_PROCESS"))
        core->flags |= OPJIT_CONTEXT_OUT_OF_PROCESS;
    return core;
}

void opjit_rt_workspace_drop(rt_core *core)
{
    rt_spare *const spare = atomic_exchange(&core->spare, NULL);

    opjit_rt_release(&core->allocator, spare, spare == NULL ? 0 : spare->bytes);
}

void *opjit_rt_workspace_take(rt_core *core, size_t *bytes)
{
    rt_spare *const spare = atomic_exchange(&core->spare, NULL);

    if (spare != NULL && spare->bytes >= *bytes) {
        *bytes = spare->bytes;
        return spare;
    }
    opjit_rt_release(&core->allocator, spare, spare == NULL ? 0 : spare->bytes);
    return opjit_rt_allocate_data(&core->allocator, *bytes, OPJIT_WORKSPACE_ALIGNMENT);
}

void opjit_rt_workspace_give(rt_core *core, void *memory, size_t bytes)
{
    rt_spare *const spare = memory, *none = NULL;

    if (bytes < sizeof *spare || bytes > RT_SPARE_MOST) {
        opjit_rt_release(&core->allocator, memory, bytes);
        return;
    }
    spare->bytes = bytes;
    if (!atomic_compare_exchange_strong(&core->spare, &none, spare))
        opjit_rt_release(&core->allocator, memory, bytes);
}

rt_core *opjit_rt_core_retain(rt_core *core)
{
    atomic_fetch_add_explicit(&core->references, 1, memory_order_relaxed);
    return core;
}

void opjit_rt_core_release(rt_core *core)
{
    if (core != NULL && atomic_fetch_sub_explicit(&core->references, 1, memory_order_acq_rel) == 1) {
        const opjit_allocator allocator = core->allocator;
        opjit_rt_disk_destroy(core->disk);
        if (core->device != NULL)
            core->devices->close(core->device);
        release_text(&allocator, core->codegen_path);
        release_text(&allocator, core->dump);
        release_text(&allocator, core->dump_dir);
        opjit_rt_workspace_drop(core);
        opjit_rt_code_pages_free(&core->pages);
        opjit_rt_constants_free(&core->constants);
        opjit_rt_process_free(&core->process);
        opjit_rt_release(&allocator, core, sizeof *core);
    }
}

uint32_t opjit_rt_core_enter(rt_core *core)
{
    const uint32_t counter = rt_thread_hash() % RT_CORE_COUNTERS;

    atomic_fetch_add_explicit(&core->counters[counter].references, 1, memory_order_relaxed);
    return counter;
}

void opjit_rt_core_leave(rt_core *core, uint32_t counter)
{
    if (atomic_fetch_sub_explicit(&core->counters[counter].references, 1, memory_order_acq_rel) == 1)
        opjit_rt_core_release(core);
}

/* Gives up the context's own references. */
static void core_close(rt_core *core)
{
    for (uint32_t i = 0; i < RT_CORE_COUNTERS; i++)
        opjit_rt_core_leave(core, i);
    opjit_rt_core_release(core);
}

/* The library's only output: one write per line, so that lines of several threads don't mix. */
static void print_line(char *line, size_t length)
{
    ssize_t written;

    line[length] = '\n';
    written = write(STDERR_FILENO, line, length + 1);
    (void)written; /* there is nobody to report a failure to */
}

/* Hosts never see NULL in an event's texts. */
static const char *text_or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

void opjit_rt_event(rt_core *core, const opjit_event *event, const char *format, ...)
{
    static const char start[] = "opjit,";
    char line[1024];
    va_list arguments;

    if (!rt_wants_events(core))
        return;
    memcpy(line, start, sizeof start);
    va_start(arguments, format);
    if (vsnprintf(line + sizeof start - 1, sizeof line - sizeof start, format, arguments) < 0)
        line[sizeof start - 1] = '\0';
    va_end(arguments);
    opjit_rt_printable(line);
    if (core->event != NULL) {
        opjit_event full = *event;
        full.struct_size = sizeof full;
        full.line = line;
        full.time_ns = opjit_rt_nanoseconds();
        full.name = text_or_empty(full.name);
        full.target = text_or_empty(full.target);
        full.reason = text_or_empty(full.reason);
        core->event(core->event_user, &full);
    } else {
        print_line(line, strlen(line));
    }
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static const rt_struct options_sizes = { "opjit_context_options",
                                         { RT_SIZE_TO(opjit_context_options, reserved),
                                           RT_SIZE_TO(opjit_context_options, disk_bytes),
                                           RT_SIZE_TO(opjit_context_options, device_driver) } };
RT_STRUCT_ENDS_WITH(opjit_context_options, device_driver);

uint32_t opjit_rt_feature_level(uint32_t index)
{
    static const uint32_t levels[] = {
        DML_FEATURE_LEVEL_1_0, DML_FEATURE_LEVEL_2_0, DML_FEATURE_LEVEL_2_1, DML_FEATURE_LEVEL_3_0,
        DML_FEATURE_LEVEL_3_1, DML_FEATURE_LEVEL_4_0, DML_FEATURE_LEVEL_4_1, DML_FEATURE_LEVEL_5_0,
        DML_FEATURE_LEVEL_5_1, DML_FEATURE_LEVEL_5_2, DML_FEATURE_LEVEL_6_0, DML_FEATURE_LEVEL_6_1,
        DML_FEATURE_LEVEL_6_2, DML_FEATURE_LEVEL_6_3, DML_FEATURE_LEVEL_6_4,
    };

    return index < sizeof levels / sizeof *levels ? levels[index] : 0;
}

opjit_status opjit_rt_feature_level_check(uint32_t level, opjit_error *error)
{
    char allowed[180];
    size_t used = 0;
    uint32_t index = 0;

    while (opjit_rt_feature_level(index) != level && opjit_rt_feature_level(index) != 0)
        index++;
    if (opjit_rt_feature_level(index) == level) /* or 0, the end of the list: no level is asked for */
        return OPJIT_OK;
    for (uint32_t i = 0; opjit_rt_feature_level(i) != 0; i++)
        used += (size_t)snprintf(allowed + used, sizeof allowed - used, ", 0x%x", opjit_rt_feature_level(i));
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!context_options}{feature_level} {0x%x}; allowed: 0%s",
                           level, allowed);
}

static opjit_status read_options(const opjit_context_options *given, opjit_context_options *out, opjit_error *error)
{
    *out = (opjit_context_options)OPJIT_CONTEXT_OPTIONS_INIT;
    if (given != NULL)
        TRY(opjit_rt_struct_read(&options_sizes, out, given, error));
    if (out->allocator != NULL && (out->allocator->allocate == NULL || out->allocator->release == NULL))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!context_options}{allocator}: allocate or release is NULL");
    if ((out->flags & ~KNOWN_FLAGS) != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!context_options}{flags} {0x%x}; allowed are the bits of 0x%x", out->flags,
                               KNOWN_FLAGS);
    if (out->reserved != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!context_options}{reserved} is {%u}; allowed: 0",
                               out->reserved);
    if (out->codegen_path != NULL && out->codegen_path[0] != '/')
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!context_options}{codegen_path} '{%.100s}' is no absolute path", out->codegen_path);
    if (out->cache_dir != NULL && out->cache_dir[0] == '\0')
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!context_options}{cache_dir} is empty; NULL means none");
    return opjit_rt_feature_level_check(out->feature_level, error);
}

/* --- context ------------------------------------------------------------------------------------------------------ */

static opjit_status copy_text(const opjit_allocator *a, const char *text, char **out, opjit_error *error)
{
    if (text == NULL)
        return OPJIT_OK;
    *out = opjit_rt_allocate(a, strlen(text) + 1, 1);
    if (*out == NULL)
        return opjit_rt_no_memory(error);
    memcpy(*out, text, strlen(text) + 1);
    return OPJIT_OK;
}

/* Copies what compiles need of the environment, since the host may change it later.  An empty text counts as none. */
static opjit_status copy_environment(rt_core *core, const opjit_context_options *options, opjit_error *error)
{
    const char *const codegen = secure_getenv("OPJIT_CODEGEN"), *const verify = secure_getenv("OPJIT_VERIFY");
    const char *const direct = secure_getenv("OPJIT_DIRECT");
    const opjit_allocator *a = &core->allocator;

    core->llvm_only = direct != NULL && strcmp(direct, "0") == 0;
    core->verify = ALWAYS_VERIFY || (verify != NULL && strcmp(verify, "1") == 0);
    TRY(copy_text(a, secure_getenv("OPJIT_DUMP"), &core->dump, error));
    TRY(copy_text(a, secure_getenv("OPJIT_DUMP_DIR"), &core->dump_dir, error));
    if (options->codegen_path != NULL)
        return copy_text(a, options->codegen_path, &core->codegen_path, error);
    return copy_text(a, codegen != NULL && codegen[0] != '\0' ? codegen : NULL, &core->codegen_path, error);
}

void opjit_context_destroy(opjit_context *context)
{
    void (*close)(rt_core *core);
    rt_core *core;

    if (context == NULL)
        return;
    core = context->core;
    opjit_rt_lock(&core->jobs.lock);
    core->jobs.closed = true;
    close = core->jobs.close;
    opjit_rt_unlock(&core->jobs.lock);
    if (close != NULL)
        close(core);
    opjit_rt_cache_destroy(context->cache);
    opjit_rt_release(&core->allocator, context, sizeof *context);
    core_close(core);
}

/* Opens the device that the options name, and finds the target of code for it. */
static opjit_status open_device(opjit_context *context, const opjit_context_options *options, opjit_error *error)
{
    rt_core *core = context->core;
    rt_driver *driver;

    TRY(opjit_rt_devices(&core->devices, error));
    TRY(core->devices->driver_open(&core->allocator, options->device, options->device_driver, &driver, error));
    const opjit_status status = core->devices->open(driver, options->device, &core->device, error);
    core->devices->driver_close(driver);
    TRY(status);
    TRY(opjit_rt_device_target(core->devices->name(core->device), core->devices->info(core->device),
                               &core->device_target, error));
    if (options->target == NULL)
        context->target = core->device_target;
    else if (!opjit_rt_device_runs(&core->device_target, &context->target))
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{!context_options}{target} {%s} is not for device %s, which runs %s",
                               context->target.text, options->device, core->device_target.text);
    return OPJIT_OK;
}

/* Opens the disk cache by an absolute path, so that a later change of the current directory doesn't move it. */
static opjit_status open_disk(rt_core *core, const opjit_context_options *options, opjit_error *error)
{
    const uint64_t bytes = options->disk_bytes == 0 ? DEFAULT_DISK_BYTES : options->disk_bytes;
    const char *const given = options->cache_dir;
    char here[PATH_MAX], *path;
    opjit_status status;
    size_t size;

    if (given[0] == '/')
        return opjit_rt_disk_create(core, given, bytes, &core->disk, error);
    if (getcwd(here, sizeof here) == NULL)
        return opjit_rt_refuse(error, OPJIT_IO,
                               "{!context_options}{cache_dir} '{%.100s}': there is no current directory (errno %d)",
                               given, errno);
    size = strlen(here) + strlen(given) + 2;
    path = opjit_rt_allocate(&core->allocator, size, 1);
    if (path == NULL)
        return opjit_rt_no_memory(error);
    snprintf(path, size, "%s/%s", here, given);
    status = opjit_rt_disk_create(core, path, bytes, &core->disk, error);
    opjit_rt_release(&core->allocator, path, size);
    return status;
}

/* Fills a zeroed context that owns its core. */
static opjit_status context_fill(opjit_context *context, const opjit_context_options *options, opjit_error *error)
{
    TRY(opjit_rt_place(error, opjit_rt_target_parse(options->target, &context->target, error), "context_options",
                       "target", -1));
    if (options->device != NULL)
        TRY(open_device(context, options, error));
    context->feature_level = options->feature_level;
    TRY(copy_environment(context->core, options, error));
    if (options->cache_dir != NULL)
        TRY(open_disk(context->core, options, error));
    return opjit_rt_cache_create(context->core, options->cache_bytes == 0 ? DEFAULT_CACHE_BYTES : options->cache_bytes,
                                 &context->cache, error);
}

/* Whether a program built with that version of opjit.h may use this library (opjit.h, stability). */
static opjit_status check_header(uint32_t header, opjit_error *error)
{
    const uint32_t major = header / 10000, minor = header / 100 % 100;

    if (major == OPJIT_VERSION_MAJOR && (major != 0 || minor == OPJIT_VERSION_MINOR))
        return OPJIT_OK;
    return opjit_rt_refuse(
        error, OPJIT_UNSUPPORTED,
        "{!argument}{header}: {%u.%u.%u}, must be of the loaded library's version, which is %s: the program was "
        "built with other headers than it runs with",
        major, minor, header % 100, opjit_version());
}

opjit_status opjit_context_create_for(uint32_t header, const opjit_context_options *options,
                                      opjit_context **out_context, opjit_error *error)
{
    opjit_context_options known;
    opjit_context *context;
    rt_core *core;
    opjit_status status;

    opjit_rt_error_clear(error);
    if (out_context == NULL)
        return opjit_rt_refuse_null(error, "out_context");
    *out_context = NULL;
    TRY(check_header(header, error));
    TRY(read_options(options, &known, error));
    core = core_create(&known);
    if (core == NULL)
        return opjit_rt_no_memory(error);
    context = opjit_rt_allocate(&core->allocator, sizeof *context, alignof(opjit_context));
    if (context == NULL) {
        core_close(core);
        return opjit_rt_no_memory(error);
    }
    memset(context, 0, sizeof *context);
    context->core = core;
    status = context_fill(context, &known, error);
    if (status != OPJIT_OK) {
        opjit_context_destroy(context);
        return status;
    }
    *out_context = context;
    return OPJIT_OK;
}

const char *opjit_context_target(const opjit_context *context)
{
    return context == NULL ? NULL : context->target.text;
}
