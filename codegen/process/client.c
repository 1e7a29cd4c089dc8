/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - the table of code generation, whose functions have a worker process do the work.  No LLVM here. */
#include "codegen/process/workers.h"

#include "opjit_build_id.h"

#define GRACE_NS 100000000u /* in which a compile that was cancelled ends by itself, as it does before each step */

/* One request on its way. */
typedef struct job {
    const char *name; /* of what is compiled */
    cp_kind kind;
    void (*put)(const void *request, rt_bytes *out);
    const void *request;
    const atomic_bool *cancel;
    const codegen_functions *functions;
    const opjit_allocator *allocator;
    codegen_result *result; /* its bytes are empty */
} job;

/* --- functions that kernels share --------------------------------------------------------------------------------- */

static cp_outcome find_nothing(const job *j, cp_line *line)
{
    uint8_t room[64];
    rt_bytes answer;
    opjit_rt_bytes_init_in(&answer, j->allocator, room, sizeof room);
    opjit_cp_put_pair(&(cp_pair){ .first = NULL }, &answer);
    return opjit_cp_send(line, CP_FOUND, answer.data, answer.size);
}

/* Where memory does not suffice, nothing is found. */
static cp_outcome answer_find(const job *j, cp_line *line, rt_bytes *message)
{
    cp_pair pair;
    rt_bytes found, answer;
    if (!opjit_cp_take_pair(message, &pair))
        return CP_DAMAGED;
    opjit_rt_bytes_init(&found, j->allocator);
    opjit_rt_bytes_init(&answer, j->allocator);
    if (j->functions)
        j->functions->find(j->functions->user, pair.first, pair.first_size, &found);
    opjit_cp_put_pair(&(cp_pair){ .first = found.data, .first_size = found.failed ? 0 : found.size }, &answer);
    const cp_outcome outcome =
        answer.failed ? find_nothing(j, line) : opjit_cp_send(line, CP_FOUND, answer.data, answer.size);
    opjit_rt_bytes_free(&found);
    opjit_rt_bytes_free(&answer);
    return outcome;
}

static cp_outcome keep(const job *j, rt_bytes *message)
{
    cp_pair pair;
    if (!opjit_cp_take_pair(message, &pair))
        return CP_DAMAGED;
    if (j->functions)
        j->functions->keep(j->functions->user, pair.first, pair.first_size, pair.second, pair.second_size);
    return CP_DONE;
}

/* --- exchange ----------------------------------------------------------------------------------------------------- */

/* Until the result is in *message, or passed over: NO_MEMORY. */
static cp_outcome listen_to(const job *j, cp_line *line, rt_bytes *message)
{
    for (;;) {
        cp_kind kind = CP_KIND_END;
        opjit_rt_bytes_free(message);
        opjit_rt_bytes_init(message, j->allocator);
        cp_outcome outcome = opjit_cp_receive(line, &kind, message);
        if ((outcome == CP_DONE || outcome == CP_NO_MEMORY) && kind == CP_RESULT)
            return outcome;
        if (outcome == CP_NO_MEMORY && kind == CP_FIND)
            outcome = find_nothing(j, line);
        else if (outcome == CP_NO_MEMORY && kind == CP_KEEP)
            outcome = CP_DONE;
        else if (outcome == CP_DONE)
            outcome = kind == CP_FIND ? answer_find(j, line, message) : kind == CP_KEEP ? keep(j, message) : CP_DAMAGED;
        if (outcome != CP_DONE)
            return outcome;
    }
}

/* What the worker made of the request in *bytes. */
static cp_outcome exchange(const job *j, cp_worker *w, const rt_bytes *bytes, uint64_t *out_memory,
                           opjit_status *out_status, opjit_error *error)
{
    cp_line line = { .socket = w->socket,
                     .other = -1,
                     .cancel = j->cancel,
                     .tell = &w->page->cancel,
                     .grace = GRACE_NS,
                     .out = w->page->request,
                     .in = w->page->answer };
    rt_bytes message;
    opjit_rt_bytes_init(&message, j->allocator);
    cp_outcome outcome = opjit_cp_send(&line, j->kind, bytes->data, bytes->size);
    if (outcome == CP_DONE)
        outcome = listen_to(j, &line, &message);
    if (outcome == CP_DONE)
        *out_status = opjit_cp_take_result(&message, j->result, out_memory, error);
    opjit_rt_bytes_free(&message);
    return outcome;
}

/* *out_idle: it ended before it had the whole request. */
static opjit_status ask(const job *j, cp_worker *w, bool *out_idle, opjit_error *error)
{
    uint64_t memory = UINT64_MAX;
    opjit_status status = OPJIT_CODEGEN;
    cp_outcome outcome = CP_NO_MEMORY;
    rt_bytes bytes;
    opjit_rt_bytes_init_in(&bytes, j->allocator, w->page->request, CP_WINDOW);
    j->put(j->request, &bytes);
    const bool large = bytes.size > CP_MOST_BYTES, sent = !bytes.failed && !large;
    if (sent)
        outcome = exchange(j, w, &bytes, &memory, &status, error);
    *out_idle = outcome == CP_ENDED && !atomic_load(&w->page->begun);
    switch (outcome) {
    case CP_DONE: break;
    case CP_ENDED: status = opjit_cp_worker_report(w, j->name, OPJIT_CODEGEN, error); break;
    case CP_CANCELLED: status = opjit_rt_cancelled(error); break;
    case CP_NO_MEMORY:
        status =
            !large
                ? opjit_rt_no_memory(error)
                : opjit_rt_refuse(error, OPJIT_LIMIT,
                                  "{kernel} {!name}{%.80s}: {!request}%zu bytes for its worker process, at most %llu",
                                  j->name, bytes.size, (unsigned long long)CP_MOST_BYTES);
        break;
    case CP_DAMAGED:
        status = opjit_rt_refuse(error, OPJIT_CORRUPT,
                                 "{kernel} {!name}{%.80s}: what its worker process sent is damaged", j->name);
    }
    opjit_rt_bytes_free(&bytes);
    opjit_cp_worker_give(w, outcome == CP_DONE || outcome == CP_NO_MEMORY, outcome == CP_DONE ? memory : 0);
    return status;
}

/* A worker that ended while it was idle costs nothing but a new one. */
static opjit_status run(const job *j, opjit_error *error)
{
    bool idle = true;
    opjit_status status = OPJIT_OK;
    for (uint32_t i = 0; i < 2 && idle; i++) {
        cp_worker *w;
        TRY(opjit_cp_worker_take(j->name, j->cancel, j->allocator, &w, error));
        status = ask(j, w, &idle, error);
    }
    return status;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void put_compile(const void *request, rt_bytes *out)
{
    opjit_cp_put_compile(request, out);
}

static opjit_status compile(const codegen_request *request, codegen_result *out, opjit_error *error)
{
    const job j = { .name = request->name,
                    .kind = CP_COMPILE,
                    .put = put_compile,
                    .request = request,
                    .cancel = request->cancel,
                    .functions = request->functions,
                    .allocator = request->allocator,
                    .result = out };
    *out = (codegen_result){ .entries = NULL };
    opjit_rt_bytes_init(&out->bytes, request->allocator);
    return run(&j, error);
}

static void put_warm(const void *target, rt_bytes *out)
{
    opjit_cp_put_warm(target, out);
}

static opjit_status warm(const rt_target *target, const opjit_allocator *allocator, opjit_error *error)
{
    codegen_result nothing = { .entries = NULL };
    const job j = {
        .name = "warm", .kind = CP_WARM, .put = put_warm, .request = target, .allocator = allocator, .result = &nothing
    };
    opjit_rt_bytes_init(&nothing.bytes, allocator);
    const opjit_status status = run(&j, error);
    opjit_rt_bytes_free(&nothing.bytes);
    return status;
}

static void put_library(const void *request, rt_bytes *out)
{
    opjit_cp_put_library(request, out);
}

static opjit_status library(const codegen_library *request, rt_bytes *out, opjit_error *error)
{
    codegen_result result = { .entries = NULL };
    const job j = { .name = request->name,
                    .kind = CP_LIBRARY,
                    .put = put_library,
                    .request = request,
                    .allocator = request->allocator,
                    .result = &result };
    opjit_rt_bytes_init(&result.bytes, request->allocator);
    const opjit_status status = run(&j, error);
    if (status == OPJIT_OK) {
        opjit_rt_bytes_free(out);
        *out = result.bytes;
    }
    return status;
}

static const opjit_codegen table = CODEGEN_TABLE(compile, warm, library);

const opjit_codegen *opjit_codegen_query(uint32_t abi)
{
    return abi == CODEGEN_ABI ? &table : NULL;
}
