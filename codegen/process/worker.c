/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - the program opjit-worker: loads the code generator, and answers one request after the other until its host
 * is gone.  Started by workers.c alone:  opjit-worker LIBRARY HOST, with a socket and memory where workers.h says. */
#define _GNU_SOURCE
#include "codegen/process/workers.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <opjit/opjit.h>

#include "runtime/base/module.h"

#include "opjit_build_id.h"

enum {
    MOST_HELD = 32 << 20, /* bytes */
    ASK_EVERY = 16        /* requests: asking for its memory takes as long as a tenth of one */
};

typedef struct server {
    cp_line line;
    cp_page *page;
    const opjit_codegen *codegen;
    const opjit_allocator *allocator;
    opjit_pool *pool; /* of that many threads; NULL: none yet */
    uint32_t pool_threads;
    uint32_t served;       /* requests */
    uint64_t memory;       /* of its own, when that was last asked for */
    pthread_mutex_t lock; /* of the line, while several threads compile */
} server;

/* --- functions that kernels share: the host has them -------------------------------------------------------------- */

static void find(void *user, const void *key, size_t key_size, rt_bytes *out)
{
    server *s = user;
    rt_bytes question, answer;
    cp_pair pair = { .first = key, .first_size = key_size };
    cp_kind kind = CP_KIND_END;
    opjit_rt_bytes_init(&question, s->allocator);
    opjit_rt_bytes_init(&answer, s->allocator);
    opjit_cp_put_pair(&pair, &question);
    pthread_mutex_lock(&s->lock);
    const bool answered = !question.failed &&
                          opjit_cp_send(&s->line, CP_FIND, question.data, question.size) == CP_DONE &&
                          opjit_cp_receive(&s->line, &kind, &answer) == CP_DONE;
    pthread_mutex_unlock(&s->lock);
    if (answered && kind == CP_FOUND && opjit_cp_take_pair(&answer, &pair))
        opjit_rt_bytes_append(out, pair.first, pair.first_size);
    opjit_rt_bytes_free(&question);
    opjit_rt_bytes_free(&answer);
}

static void keep(void *user, const void *key, size_t key_size, const void *bytes, size_t size)
{
    server *s = user;
    rt_bytes message;
    opjit_rt_bytes_init(&message, s->allocator);
    opjit_cp_put_pair(&(cp_pair){ key, bytes, key_size, size }, &message);
    pthread_mutex_lock(&s->lock);
    if (!message.failed)
        (void)opjit_cp_send(&s->line, CP_KEEP, message.data, message.size); /* an end is seen by the next one */
    pthread_mutex_unlock(&s->lock);
    opjit_rt_bytes_free(&message);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* NULL: none, or no memory: the code is the same. */
static const opjit_executor *executor_of(server *s, uint32_t threads)
{
    if (threads < 2)
        return NULL;
    if (s->pool_threads != threads) {
        opjit_pool_destroy(s->pool);
        s->pool = NULL;
        s->pool_threads = opjit_pool_create(s->allocator, threads, &s->pool, NULL) == OPJIT_OK ? threads : 0;
    }
    return opjit_pool_executor(s->pool);
}

static opjit_status compile(server *s, rt_bytes *request, rt_arena *arena, codegen_result *out, opjit_error *error)
{
    const codegen_functions functions = { s, find, keep };
    cp_compile c;
    TRY(opjit_cp_take_compile(request, arena, &c, error));
    for (uint32_t i = 0; c.request.verify && i < c.request.variant_count; i++)
        TRY(opjit_ir_verify(c.request.variants[i], error));
    c.request.allocator = s->allocator;
    c.request.cancel = &s->page->cancel;
    c.request.functions = c.has_functions ? &functions : NULL;
    c.request.executor = executor_of(s, c.threads);
    return s->codegen->compile(&c.request, out, error);
}

static opjit_status warm(server *s, rt_bytes *request, opjit_error *error)
{
    const rt_target *target;
    TRY(opjit_cp_take_warm(request, &target, error));
    return s->codegen->warm(target, s->allocator, error);
}

static opjit_status library(server *s, rt_bytes *request, rt_arena *arena, rt_bytes *out, opjit_error *error)
{
    codegen_library l;
    TRY(opjit_cp_take_library(request, arena, &l, error));
    l.allocator = s->allocator;
    return s->codegen->library(&l, out, error);
}

/* What of this process's memory is its own, in bytes; 0: unknown. */
static uint64_t own_memory(void)
{
    unsigned long all = 0, resident = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    const int count = fscanf(file, "%lu %lu %lu", &all, &resident, &shared);
    fclose(file);
    return count == 3 && resident > shared ? (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static cp_outcome serve(server *s, cp_kind kind, rt_bytes *request)
{
    codegen_result result = { .entries = NULL };
    opjit_error error = { .node = -1, .index = -1 };
    rt_arena arena;
    rt_bytes answer;
    opjit_rt_arena_init(&arena, s->allocator);
    opjit_rt_bytes_init(&result.bytes, s->allocator);
    opjit_rt_bytes_init_in(&answer, s->allocator, s->page->answer, CP_WINDOW);
    memset(s->page->text, 0, sizeof s->page->text);
    lseek(STDERR_FILENO, CP_PAGE, SEEK_SET);
    opjit_status status;
    if (request->failed)
        status = opjit_rt_no_memory(&error);
    else if (kind == CP_COMPILE)
        status = compile(s, request, &arena, &result, &error);
    else if (kind == CP_WARM)
        status = warm(s, request, &error);
    else
        status = library(s, request, &arena, &result.bytes, &error);
    error.status = status;
    if (s->served++ % ASK_EVERY == 0)
        s->memory = own_memory();
    opjit_cp_put_result(&error, &result, s->memory, &answer);
    const cp_outcome outcome =
        answer.failed ? CP_NO_MEMORY : opjit_cp_send(&s->line, CP_RESULT, answer.data, answer.size);
    opjit_rt_release(s->allocator, result.entries, result.entry_count * sizeof *result.entries);
    opjit_rt_bytes_free(&result.bytes);
    opjit_rt_bytes_free(&answer);
    opjit_rt_arena_free(&arena);
    return outcome;
}

static int serve_all(server *s)
{
    for (;;) {
        cp_kind kind = CP_KIND_END;
        rt_bytes request;
        opjit_rt_bytes_init(&request, s->allocator);
        cp_outcome outcome = opjit_cp_receive(&s->line, &kind, &request);
        if (outcome == CP_NO_MEMORY) /* which is the answer */
            outcome = CP_DONE;
        if (outcome == CP_DONE && kind != CP_COMPILE && kind != CP_WARM && kind != CP_LIBRARY)
            outcome = CP_DAMAGED;
        if (outcome == CP_DONE) {
            atomic_store(&s->page->begun, true);
            outcome = serve(s, kind, &request);
        }
        opjit_rt_bytes_free(&request);
        if (outcome == CP_ENDED)
            return 0;
        if (outcome != CP_DONE)
            return (int)outcome;
    }
}

/* --- start -------------------------------------------------------------------------------------------------------- */

static opjit_status load(server *s, const char *path, opjit_error *error)
{
    static const rt_module module = { "codegen", "libopjit-codegen.so", "opjit_codegen_query", NULL, "" };
    char found[RT_MODULE_PATH];
    opjit_codegen_query_fn query;
    void *symbol;
    bool fresh;
    TRY(opjit_rt_module_load(&module, path, &symbol, &fresh, found, error));
    memcpy(&query, &symbol, sizeof query); /* C has no cast from object to function pointers */
    s->codegen = query(CODEGEN_ABI);
    if (!s->codegen || s->codegen->size < sizeof *s->codegen || strcmp(s->codegen->build_id, OPJIT_BUILD_ID) != 0)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{!codegen library}{!path}{%s}: is not of the build %s", path,
                               OPJIT_BUILD_ID);
    return OPJIT_OK;
}

/* Readable once the host has ended, even where a child of its still has this process's socket; -1: the system can't. */
static int watch(long host)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, host, 0);
#else
    (void)host;
    return -1;
#endif
}

static cp_outcome greet(server *s, const opjit_error *answer)
{
    rt_bytes hello;
    opjit_rt_bytes_init(&hello, s->allocator);
    opjit_cp_put_hello(answer, OPJIT_BUILD_ID, &hello);
    const cp_outcome outcome = hello.failed ? CP_NO_MEMORY : opjit_cp_send(&s->line, CP_HELLO, hello.data, hello.size);
    opjit_rt_bytes_free(&hello);
    return outcome;
}

int main(int count, char **arguments)
{
    server s = { .allocator = &opjit_rt_default_allocator, .lock = PTHREAD_MUTEX_INITIALIZER };
    opjit_error error = { .node = -1, .index = -1 };
    const long host = count == 3 ? atol(arguments[2]) : 0;
    void *page = mmap(NULL, sizeof(cp_page), PROT_READ | PROT_WRITE, MAP_SHARED, CP_MEMORY, 0);
    if (host <= 0 || page == MAP_FAILED) {
        static const char text[] = "opjit-worker: started by opjit alone, for contexts that compile out of process\n";
        return write(STDERR_FILENO, text, sizeof text - 1) < 0 ? 3 : 2;
    }
#ifdef SYS_close_range
    syscall(SYS_close_range, CP_MEMORY, ~0u, 0); /* what the host forgot to close, and the memory, which is mapped */
#endif
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, MOST_HELD); /* what a compile frees stays for the next one */
    mallopt(M_TRIM_THRESHOLD, MOST_HELD);
#endif
    s.page = page;
    s.line = (cp_line){ .socket = CP_SOCKET, .other = watch(host), .out = s.page->answer, .in = s.page->request };
    if (getppid() != host)
        return 0;
    error.status = load(&s, arguments[1], &error);
    if (greet(&s, &error) != CP_DONE || error.status != OPJIT_OK)
        return 0;
    const int status = serve_all(&s);
    opjit_pool_destroy(s.pool);
    return status;
}
