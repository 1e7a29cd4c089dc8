/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cuda_run.c - the fake driver's modules, streams, events and kernels.  Work is queued by stream and done when
 * somebody waits. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/fake_cuda.h"

/* --- work of fake.streams ---------------------------------------------------------------------------------------- */
static bool said(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && strcmp(value, "1") == 0;
}

static void run_kernel(device *d, work *w)
{
    ptx_error error;
    ptx_stats stats = { 0 };

    w->launch.arguments = w->arguments;
    w->launch.races = said("FAKE_CUDA_RACES");
    w->launch.reversed = said("FAKE_CUDA_REVERSED");
    if (!ptx_run(w->function->owner->ptx, w->function->entry, d->memory, &w->launch, &stats, &error)) {
        snprintf(fake.kernel_error, sizeof fake.kernel_error, "%s", error.message);
        d->failed =
            strstr(error.message, "no device memory") != NULL || strstr(error.message, "in no other memory") != NULL
                ? ILLEGAL_ADDRESS
                : LAUNCH_FAILED;
    }
    fake.clock += (double)stats.instructions * 1e-6;
}

static void perform(device *d, work *w)
{
    void *to = w->kind == COPY_OUT ? (void *)(uintptr_t)w->to : ptx_memory_host(d->memory, w->to, w->bytes);
    const void *from =
        w->kind == COPY_IN ? (const void *)(uintptr_t)w->from : ptx_memory_host(d->memory, w->from, w->bytes);

    if (d->failed != OK && w->kind != RECORD)
        return;
    switch (w->kind) {
    case COPY_IN:
    case COPY_OUT:
    case COPY_WITHIN:
        if (to == NULL || from == NULL)
            d->failed = ILLEGAL_ADDRESS; /* freed meanwhile */
        else
            memmove(to, from, w->bytes);
        break;
    case FILL:
        if (to == NULL)
            d->failed = ILLEGAL_ADDRESS;
        else
            memset(to, w->value, w->bytes);
        break;
    case LAUNCH: run_kernel(d, w); break;
    case RECORD:
        w->event->pending = false;
        w->event->milliseconds = fake.clock;
        break;
    }
}

static void release_work(work *w)
{
    for (uint32_t i = 0; w->arguments != NULL && w->arguments[i] != NULL; i++)
        free(w->arguments[i]);
    free(w->arguments);
    free(w);
}

int fake_flush(device *d, stream *s)
{
    while (s->first != NULL) {
        work *w = s->first;
        s->first = w->next;
        if (s->first == NULL)
            s->last = &s->first;
        perform(d, w);
        release_work(w);
    }
    return d->failed;
}

int fake_flush_all(device *d)
{
    fake_flush(d, &d->null);
    for (stream *s = fake.streams; s != NULL; s = s->next) {
        if (&fake.devices[s->device] == d)
            fake_flush(d, s);
    }
    return d->failed;
}

static stream *stream_of(void *handle)
{
    if (handle == NULL)
        return &fake_current()->null;
    for (stream *s = fake.streams; s != NULL; s = s->next) {
        if (s == handle && &fake.devices[s->device] == fake_current())
            return s;
    }
    return NULL;
}

/* NULL: no such stream, or no memory.  The default stream waits for all others. */
static work *add_work(void *handle, int kind)
{
    stream *s = stream_of(handle);
    work *w = s == NULL ? NULL : calloc(1, sizeof *w);

    if (w == NULL)
        return NULL;
    if (handle == NULL)
        fake_flush_all(fake_current());
    else
        fake_flush(fake_current(), &fake_current()->null);
    w->kind = kind;
    *s->last = w;
    s->last = &w->next;
    return w;
}

int fake_copy(void *handle, int kind, uint64_t to, uint64_t from, size_t bytes, int value, bool wait)
{
    work *w = add_work(handle, kind);

    if (w == NULL)
        return INVALID_HANDLE;
    w->to = to;
    w->from = from;
    w->bytes = bytes;
    w->value = value;
    return wait ? fake_flush_all(fake_current()) : OK;
}

/* --- modules ----------------------------------------------------------------------------------------------------- */
/* .target of a text; 0: none. */
static uint32_t target_of(const char *text)
{
    const char *at = strstr(text, ".target sm_");
    return at == NULL ? 0 : (uint32_t)strtoul(at + 11, NULL, 10);
}

API cuModuleLoadDataEx(void **out, const void *image, unsigned count, int *options, void **values)
{
    ENTER(CONTEXT);
    const char *text = image, *version = strstr(text, ".version ");
    char *log = NULL;
    size_t size = 0;
    ptx_error error = { 0 };
    int driver = getenv("FAKE_CUDA_VERSION") == NULL ? 13000 : atoi(getenv("FAKE_CUDA_VERSION"));
    /* PTX 7.0 came with 11.0, 8.0 with 12.0, 9.0 with 13.0. */
    const int most = driver / 1000 * 10 - 40 + driver % 1000 / 10;

    for (unsigned i = 0; i < count; i++) {
        log = options[i] == 5 ? values[i] : log; /* error log, its size */
        size = options[i] == 6 ? (size_t)(uintptr_t)values[i] : size;
    }
    REFUSE_IF(version != NULL && (int)(strtod(version + 9, NULL) * 10 + 0.5) > most, UNSUPPORTED_PTX);
    REFUSE_IF(target_of(text) > fake_current()->capability, NO_BINARY);
    module *m = calloc(1, sizeof *m);
    REFUSE_IF(m == NULL, OUT_OF_MEMORY);
    m->ptx = ptx_parse(text, &error);
    if (m->ptx == NULL) {
        if (log != NULL && size > 0)
            snprintf(log, size, "ptxas: %s\nptxas fatal: Ptx assembly aborted due to errors\n", error.message);
        free(m);
        return fake_leave(INVALID_PTX);
    }
    m->device = (int)(fake_current() - fake.devices);
    m->next = fake.modules;
    fake.modules = m;
    fake.live++;
    *out = m;
    return fake_leave(OK);
}

API cuModuleUnload(void *handle)
{
    ENTER(FREEING);
    fake_flush_all(fake_current());
    for (module **at = &fake.modules; *at != NULL; at = &(*at)->next) {
        module *m = *at;
        if (m != handle)
            continue;
        *at = m->next;
        ptx_free(m->ptx);
        while (m->functions != NULL) {
            function *next = m->functions->next;
            free(m->functions);
            m->functions = next;
        }
        free(m);
        fake.live--;
        return fake_leave(OK);
    }
    return fake_leave(INVALID_HANDLE);
}

API cuModuleGetFunction(void **out, void *handle, const char *name)
{
    ENTER(CONTEXT);
    module *m = fake.modules;
    while (m != NULL && m != handle)
        m = m->next;
    REFUSE_IF(m == NULL, INVALID_HANDLE);
    const int entry = ptx_find(m->ptx, name);
    REFUSE_IF(entry < 0, NOT_FOUND);
    function *f = calloc(1, sizeof *f);
    REFUSE_IF(f == NULL, OUT_OF_MEMORY);
    *f = (function){ m->functions, m, (uint32_t)entry, 49152 - ptx_entry_get(m->ptx, (uint32_t)entry).shared_bytes };
    m->functions = f;
    *out = f;
    return fake_leave(OK);
}

static function *function_of(const void *handle)
{
    for (module *m = fake.modules; m != NULL; m = m->next) {
        for (function *f = m->functions; f != NULL; f = f->next) {
            if (f == handle)
                return f;
        }
    }
    return NULL;
}

API cuFuncSetAttribute(void *handle, int attribute, int value)
{
    ENTER(CONTEXT);
    function *f = function_of(handle);
    REFUSE_IF(f == NULL, INVALID_HANDLE);
    REFUSE_IF(attribute != 8 || value < 0, INVALID_VALUE); /* most dynamic shared memory */
    REFUSE_IF((uint32_t)value + ptx_entry_get(f->owner->ptx, f->entry).shared_bytes > 166912, INVALID_VALUE);
    f->most_dynamic = (uint32_t)value;
    return fake_leave(OK);
}

/* --- kernels ----------------------------------------------------------------------------------------------------- */
static bool copy_arguments(work *w, const ptx_entry *e, void *const *arguments)
{
    w->arguments = calloc(e->param_count + 1, sizeof *w->arguments);
    for (uint32_t i = 0; w->arguments != NULL && i < e->param_count; i++) {
        w->arguments[i] = malloc(e->param_bytes[i]);
        if (w->arguments[i] == NULL)
            return false;
        memcpy(w->arguments[i], arguments[i], e->param_bytes[i]);
    }
    return w->arguments != NULL;
}

API cuLaunchKernel(void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream_handle, void **arguments, void **extra)
{
    ENTER(CONTEXT);
    function *f = function_of(handle);
    REFUSE_IF(f == NULL || stream_of(stream_handle) == NULL, INVALID_HANDLE);
    const ptx_entry e = ptx_entry_get(f->owner->ptx, f->entry);
    const uint64_t threads = (uint64_t)bx * by * bz;
    REFUSE_IF(extra != NULL || (e.param_count > 0 && arguments == NULL), INVALID_VALUE);
    REFUSE_IF(gx == 0 || gy == 0 || gz == 0 || gx > INT32_MAX || gy > 65535 || gz > 65535, INVALID_VALUE);
    REFUSE_IF(threads == 0 || threads > 1024 || bz > 64 || shared > f->most_dynamic, INVALID_VALUE);
    REFUSE_IF(e.reqntid[0] != 0 && (e.reqntid[0] != bx || e.reqntid[1] != by || e.reqntid[2] != bz), INVALID_VALUE);
    REFUSE_IF(e.maxntid != 0 && threads > e.maxntid, INVALID_VALUE);
    work *w = add_work(stream_handle, LAUNCH);
    REFUSE_IF(w == NULL || !copy_arguments(w, &e, arguments), OUT_OF_MEMORY);
    w->function = f;
    w->launch =
        (ptx_launch){ .grid = { gx, gy, gz }, .block = { bx, by, bz }, .shared_bytes = shared, .shared_limit = 166912 };
    return fake_leave(OK);
}

/* --- streams and events ------------------------------------------------------------------------------------------ */
API cuStreamCreate(void **out, unsigned flags)
{
    ENTER(CONTEXT);
    REFUSE_IF(flags > 1, INVALID_VALUE);
    stream *s = calloc(1, sizeof *s);
    REFUSE_IF(s == NULL, OUT_OF_MEMORY);
    s->last = &s->first;
    s->device = (int)(fake_current() - fake.devices);
    s->next = fake.streams;
    fake.streams = s;
    fake.live++;
    *out = s;
    return fake_leave(OK);
}

API cuStreamDestroy_v2(void *handle)
{
    ENTER(FREEING);
    for (stream **at = &fake.streams; *at != NULL; at = &(*at)->next) {
        stream *s = *at;
        if (s != handle)
            continue;
        fake_flush(&fake.devices[s->device], s);
        *at = s->next;
        free(s);
        fake.live--;
        return fake_leave(OK);
    }
    return fake_leave(INVALID_HANDLE);
}

API cuStreamSynchronize(void *handle)
{
    ENTER(CONTEXT);
    stream *s = stream_of(handle);
    REFUSE_IF(s == NULL, INVALID_HANDLE);
    return fake_leave(handle == NULL ? fake_flush_all(fake_current()) : fake_flush(fake_current(), s));
}

API cuStreamQuery(void *handle)
{
    ENTER(CONTEXT);
    const stream *s = stream_of(handle);
    REFUSE_IF(s == NULL, INVALID_HANDLE);
    return fake_leave(s->first == NULL ? OK : NOT_READY);
}

API cuEventCreate(void **out, unsigned flags)
{
    ENTER(CONTEXT);
    (void)flags;
    event *e = calloc(1, sizeof *e);
    REFUSE_IF(e == NULL, OUT_OF_MEMORY);
    fake.live++;
    *out = e;
    return fake_leave(OK);
}

API cuEventDestroy_v2(void *handle)
{
    ENTER(FREEING);
    event *e = handle;
    if (e->pending)
        fake_flush(fake_current(), e->stream);
    free(e);
    fake.live--;
    return fake_leave(OK);
}

API cuEventRecord(void *handle, void *stream_handle)
{
    ENTER(CONTEXT);
    event *e = handle;
    REFUSE_IF(stream_of(stream_handle) == NULL, INVALID_HANDLE);
    work *w = add_work(stream_handle, RECORD);
    REFUSE_IF(w == NULL, OUT_OF_MEMORY);
    w->event = e;
    e->recorded = e->pending = true;
    e->stream = stream_of(stream_handle);
    return fake_leave(OK);
}

API cuEventSynchronize(void *handle)
{
    ENTER(CONTEXT);
    const event *e = handle;
    return fake_leave(e->pending ? fake_flush(fake_current(), e->stream) : OK);
}

API cuStreamWaitEvent(void *handle, void *event_handle, unsigned flags)
{
    ENTER(CONTEXT);
    const event *e = event_handle;
    REFUSE_IF(stream_of(handle) == NULL || flags != 0, INVALID_VALUE);
    if (e->pending)
        fake_flush(fake_current(), e->stream);
    return fake_leave(OK);
}

API cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
    ENTER(CONTEXT);
    const event *a = from, *b = to;
    REFUSE_IF(!a->recorded || !b->recorded, INVALID_HANDLE);
    REFUSE_IF(a->pending || b->pending, NOT_READY);
    *milliseconds = (float)(b->milliseconds - a->milliseconds);
    return fake_leave(OK);
}

/* --- errors ------------------------------------------------------------------------------------------------------ */
typedef struct code {
    int code;
    const char *name, *text;
} code;
static const code codes[] = {
    { OK, "CUDA_SUCCESS", "no error" },
    { INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
    { INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device" },
    { INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
    { UNSUPPORTED_PTX, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
      "the provided PTX was compiled with an unsupported toolchain." },
    { INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
    { NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
    { ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", NULL },
    { OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch" },
    { LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", NULL },
};

static int say(int number, const char **out, bool name)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i].code == number)
            *out = name ? codes[i].name : codes[i].text == NULL ? fake.kernel_error : codes[i].text;
    }
    return *out == NULL ? INVALID_VALUE : OK;
}

API cuGetErrorName(int number, const char **out)
{
    return say(number, out, true);
}
API cuGetErrorString(int number, const char **out)
{
    return say(number, out, false);
}
API fake_cuda_live(void)
{
    return (int)fake.live;
}
