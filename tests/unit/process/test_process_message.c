/* SPDX-License-Identifier: Apache-2.0 */
/* test_process_message.c - what a host and its worker process send each other: functions come back as they were sent,
 * and whatever is damaged is refused, by either side, without a step out of its bytes.  Workers are lent and
 * replaced. */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <opjit/opjit.h>

#include "codegen/process/workers.h"
#include "runtime/base/lock.h"
#include "tests/support/ir_graphs.h"
#include "tests/support/ir_samples.h"

#include "opjit_build_id.h"

enum { FUNCTIONS = 40, MUTATIONS = 400 };

static const opjit_allocator *const memory = &opjit_rt_default_allocator;
static rt_target target;

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* As compiles have them: through all passes, laid out and packed.  false: this one is refused by some pass. */
static bool make_function(test_random *r, ir_func *f)
{
    const ir_pass_env env = { .target = &target, .calls_math = true, .once = true };
    ir_sample sample;
    opjit_error error;

    ir_sample_random(r, 2000, &sample);
    const opjit_status made = test_random_below(r, 2) == 0 ? ir_graph_random(r, memory, f, &error)
                                                           : ir_sample_build(&sample, memory, f, &error);
    ck_assert_msg(made == OPJIT_OK, "%s", error.message);
    if (opjit_ir_run_passes(f, &env, opjit_ir_last_pass(&target), &error) == OPJIT_OK &&
        opjit_ir_layout(f, &error) == OPJIT_OK && opjit_ir_pack(f, &error) == OPJIT_OK)
        return true;
    opjit_ir_free(f);
    return false;
}

static void print(const ir_func *f, rt_bytes *out)
{
    opjit_rt_bytes_init(out, memory);
    opjit_ir_print(f, out);
    ck_assert(!out->failed);
}

static void put_request(const ir_func *f, rt_bytes *out)
{
    const codegen_request request = {
        .variants = &f, .variant_count = 1, .target = &target, .level = OPJIT_LEVEL_QUICK, .name = "sent"
    };
    opjit_rt_bytes_init(out, memory);
    opjit_cp_put_compile(&request, out);
    ck_assert(!out->failed);
}

/* A copy, as a frame would bring it: taking a request writes to it. */
static rt_bytes copy_of(const rt_bytes *from, size_t size)
{
    rt_bytes copy;
    opjit_rt_bytes_init(&copy, memory);
    opjit_rt_bytes_append(&copy, from->data, size);
    ck_assert(!copy.failed);
    return copy;
}

START_TEST(functions_come_back)
{
    test_random r;
    uint32_t made = 0;

    test_random_init(&r, (uint64_t)_i, 0, 0);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        rt_bytes sent, before, after;
        rt_arena arena;
        cp_compile taken;
        opjit_error error = { 0 };
        ir_func f;
        if (!make_function(&r, &f))
            continue;
        made++;
        put_request(&f, &sent);
        opjit_rt_arena_init(&arena, memory);
        ck_assert_msg(opjit_cp_take_compile(&sent, &arena, &taken, &error) == OPJIT_OK, "%s", error.message);
        const ir_func *const back = taken.request.variants[0];
        print(&f, &before);
        print(back, &after);
        ck_assert(before.size == after.size && memcmp(before.data, after.data, after.size) == 0);
        ck_assert(back->shared_size == f.shared_size && back->scratch_size == f.scratch_size &&
                  back->kept_size == f.kept_size && back->section_count == f.section_count);
        ck_assert_str_eq(taken.request.target->text, target.text);
        opjit_rt_arena_free(&arena);
        opjit_rt_bytes_free(&sent);
        opjit_rt_bytes_free(&before);
        opjit_rt_bytes_free(&after);
        opjit_ir_free(&f);
    }
    ck_assert_uint_gt(made, FUNCTIONS / 2);
}
END_TEST

START_TEST(cut_requests_are_refused)
{
    test_random r;
    rt_bytes sent;
    ir_func f;

    test_random_init(&r, 1, 0, 0);
    while (!make_function(&r, &f))
        ;
    put_request(&f, &sent);
    for (size_t size = 0; size < sent.size; size++) {
        rt_bytes cut = copy_of(&sent, size);
        rt_arena arena;
        cp_compile taken;
        opjit_error error;
        opjit_rt_arena_init(&arena, memory);
        ck_assert_int_eq(opjit_cp_take_compile(&cut, &arena, &taken, &error), OPJIT_CORRUPT);
        ck_assert_ptr_nonnull(strstr(error.message, "damaged at byte"));
        opjit_rt_arena_free(&arena);
        opjit_rt_bytes_free(&cut);
    }
    opjit_rt_bytes_free(&sent);
    opjit_ir_free(&f);
}
END_TEST

/* What is taken is a function that the verifier can walk, whatever it says of it. */
START_TEST(changed_requests_are_functions_or_refused)
{
    static const uint8_t values[] = { 0, 1, 2, 3, 4, 7, 8, 15, 16, 63, 64, 127, 128, 255 };
    uint32_t taken_count = 0, refused = 0;
    test_random r;
    rt_bytes sent;
    ir_func f;

    test_random_init(&r, (uint64_t)_i + 1000, 0, 0);
    while (!make_function(&r, &f))
        ;
    put_request(&f, &sent);
    for (uint32_t i = 0; i < MUTATIONS; i++) {
        rt_bytes changed = copy_of(&sent, sent.size);
        rt_arena arena;
        cp_compile taken;
        opjit_error error;
        const uint32_t changes = 1 + (uint32_t)test_random_below(&r, 3);
        for (uint32_t k = 0; k < changes; k++)
            changed.data[test_random_below(&r, changed.size)] = values[test_random_below(&r, sizeof values)];
        opjit_rt_arena_init(&arena, memory);
        const opjit_status status = opjit_cp_take_compile(&changed, &arena, &taken, &error);
        ck_assert_msg(status == OPJIT_OK || status == OPJIT_CORRUPT, "%s", opjit_status_name(status));
        taken_count += status == OPJIT_OK;
        refused += status == OPJIT_CORRUPT;
        if (status == OPJIT_OK)
            (void)opjit_ir_verify(taken.request.variants[0], &error);
        opjit_rt_arena_free(&arena);
        opjit_rt_bytes_free(&changed);
    }
    ck_assert(taken_count > 0 && refused > 0);
    opjit_rt_bytes_free(&sent);
    opjit_ir_free(&f);
}
END_TEST

/* Nodes in circles, and references to nothing, each in a function that is whole otherwise. */
START_TEST(circles_are_refused)
{
    static const char text[] = "kernel @k after expand {\n in %a \"a\": f32[64]\n out %o \"o\": f32[64]\n"
                               " stage @0 for %p in 0..64 {\n let %x = add(load %a[%p], load %a[%p])\n"
                               " store %o[%p], mul(%x, %x) }\n}\n";
    ir_func f;
    opjit_error error;
    uint32_t whole = 0, tried = 0;

    ck_assert_msg(opjit_ir_parse(text, sizeof text - 1, memory, &f, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_ir_layout(&f, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_ir_pack(&f, &error), OPJIT_OK);
    for (uint32_t i = 0; i < f.operand_count; i++)
        for (ir_ref to = 0; to <= f.node_count; to++) {
            const ir_ref old = f.operands[i];
            rt_bytes sent;
            rt_arena arena;
            cp_compile taken;
            f.operands[i] = to;
            put_request(&f, &sent);
            opjit_rt_arena_init(&arena, memory);
            const opjit_status status = opjit_cp_take_compile(&sent, &arena, &taken, &error);
            ck_assert(status == OPJIT_CORRUPT || (to > 0 && to < f.node_count));
            if (status == OPJIT_OK)
                (void)opjit_ir_verify(taken.request.variants[0], &error);
            whole += status == OPJIT_OK;
            tried++;
            opjit_rt_arena_free(&arena);
            opjit_rt_bytes_free(&sent);
            f.operands[i] = old;
        }
    for (ir_ref r = 1; r < f.node_count; r++) /* each statement behind each other one */
        for (ir_ref to = 1; to < f.node_count; to++) {
            const ir_node old = f.nodes[r];
            rt_bytes sent;
            rt_arena arena;
            cp_compile taken;
            f.nodes[r].next = to;
            put_request(&f, &sent);
            opjit_rt_arena_init(&arena, memory);
            if (old.next != to)
                ck_assert_int_eq(opjit_cp_take_compile(&sent, &arena, &taken, &error), OPJIT_CORRUPT);
            opjit_rt_arena_free(&arena);
            opjit_rt_bytes_free(&sent);
            f.nodes[r] = old;
        }
    ck_assert(whole > 0 && whole < tried);
    opjit_ir_free(&f);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------- */

static long countdown, live;

static void *allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    if (countdown > 0 && --countdown == 0)
        return NULL;
    live++;
    return aligned_alloc(alignment < 16 ? 16 : alignment, (size + 63) / 64 * 64);
}

static void release(void *user, void *block, size_t size)
{
    (void)user;
    (void)size;
    live--;
    free(block);
}

START_TEST(a_request_needs_memory)
{
    const opjit_allocator failing = { NULL, allocate, release };
    opjit_status status = OPJIT_OUT_OF_MEMORY;
    test_random r;
    ir_func f;
    rt_bytes sent;

    test_random_init(&r, 3, 0, 0);
    while (!make_function(&r, &f))
        ;
    put_request(&f, &sent);
    for (long fail_at = 1; status == OPJIT_OUT_OF_MEMORY; fail_at++) {
        rt_bytes copy = copy_of(&sent, sent.size);
        rt_arena arena;
        cp_compile taken;
        opjit_error error;
        opjit_rt_arena_init(&arena, &failing);
        countdown = fail_at;
        status = opjit_cp_take_compile(&copy, &arena, &taken, &error);
        ck_assert_msg(status == OPJIT_OK ? fail_at > 1 : status == OPJIT_OUT_OF_MEMORY, "%s", error.message);
        countdown = 0;
        opjit_rt_arena_free(&arena);
        opjit_rt_bytes_free(&copy);
        ck_assert_int_eq(live, 0);
    }
    opjit_rt_bytes_free(&sent);
    opjit_ir_free(&f);
}
END_TEST

/* --- frames ------------------------------------------------------------------------------------------------------- */

static cp_outcome receive_on(cp_line *line, rt_bytes *out)
{
    cp_kind kind;
    opjit_rt_bytes_init(out, memory);
    return opjit_cp_receive(line, &kind, out);
}

static cp_outcome receive(int socket, rt_bytes *out)
{
    return receive_on(&(cp_line){ .socket = socket, .other = -1 }, out);
}

/* The bytes of a frame. */
static size_t record(uint8_t *bytes, size_t room, const void *data, size_t size)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    cp_line line = { .socket = pair[0], .other = -1 };
    ck_assert_int_eq(opjit_cp_send(&line, CP_COMPILE, data, size), CP_DONE);
    const ssize_t got = recv(pair[1], bytes, room, 0);
    ck_assert_int_gt(got, (ssize_t)size);
    close(pair[0]);
    close(pair[1]);
    return (size_t)got;
}

START_TEST(frames_are_whole_or_refused)
{
    static const char data[] = "what is sent";
    uint8_t frame[256];
    const size_t size = record(frame, sizeof frame, data, sizeof data);

    for (size_t changed = 0; changed <= size; changed++) { /* each byte in turn; at last none */
        int pair[2];
        rt_bytes got;
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        frame[changed] ^= 0x40;
        ck_assert_int_eq(write(pair[0], frame, size), size);
        frame[changed] ^= 0x40;
        ck_assert_int_eq(receive(pair[1], &got), changed < size ? CP_DAMAGED : CP_DONE);
        if (changed == size)
            ck_assert(got.size == sizeof data && memcmp(got.data, data, sizeof data) == 0);
        opjit_rt_bytes_free(&got);
        close(pair[0]);
        close(pair[1]);
    }
    for (size_t cut = 0; cut < size; cut++) { /* and the end in the middle of it */
        int pair[2];
        rt_bytes got;
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        ck_assert_int_eq(write(pair[0], frame, cut), cut);
        close(pair[0]);
        ck_assert_int_eq(receive(pair[1], &got), CP_ENDED);
        opjit_rt_bytes_free(&got);
        close(pair[1]);
    }
}
END_TEST

static void *send_large(void *user)
{
    const int socket = *(const int *)user;
    cp_line line = { .socket = socket, .other = -1 };
    const size_t size = (size_t)8 << 20;
    uint8_t *const data = malloc(size);
    memset(data, 7, size);
    const cp_outcome outcome = opjit_cp_send(&line, CP_RESULT, data, size);
    free(data);
    return outcome == CP_DONE ? user : NULL;
}

START_TEST(large_frames_pass_and_waits_are_cancelled)
{
    atomic_bool cancel = false, told = false;
    int pair[2];
    pthread_t thread;
    void *sent;
    rt_bytes got;
    cp_kind kind;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, send_large, &pair[0]), 0);
    ck_assert_int_eq(receive(pair[1], &got), CP_DONE);
    ck_assert(pthread_join(thread, &sent) == 0 && sent != NULL && got.size == (size_t)8 << 20);
    opjit_rt_bytes_free(&got);
    opjit_rt_bytes_init(&got, memory);
    atomic_store(&cancel, true);
    cp_line line = { .socket = pair[1], .other = -1, .cancel = &cancel, .tell = &told, .grace = 1000000 };
    ck_assert_int_eq(opjit_cp_receive(&line, &kind, &got), CP_CANCELLED);
    ck_assert(atomic_load(&told));
    line = (cp_line){ .socket = pair[1], .other = -1, .cancel = &cancel };
    ck_assert_int_eq(opjit_cp_receive(&line, &kind, &got), CP_CANCELLED);
    close(pair[0]);
    ck_assert_int_eq(opjit_cp_send(&line, CP_RESULT, "x", 1), CP_ENDED); /* and no signal */
    opjit_rt_bytes_free(&got);
    close(pair[1]);
}
END_TEST

/* --- the worker --------------------------------------------------------------------------------------------------- */

typedef struct worker {
    pid_t pid;
    cp_line line;
} worker;

static void path_of(char *path, size_t size, const char *name)
{
    const char *const library = getenv("OPJIT_CODEGEN");
    ck_assert_ptr_nonnull(library);
    snprintf(path, size, "%.*s/%s", (int)(strrchr(library, '/') - library), library, name);
}

static worker start(void)
{
    const int shared = memfd_create("test", 0);
    cp_page *page;
    char program[1024], library[1024], host[16];
    char *arguments[] = { program, library, host, NULL };
    int pair[2];
    worker w;
    rt_bytes hello;
    opjit_error error;

    path_of(program, sizeof program, "opjit-worker");
    path_of(library, sizeof library, "libopjit-codegen.so");
    snprintf(host, sizeof host, "%d", (int)getpid());
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(ftruncate(shared, sizeof *page), 0);
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
    ck_assert(page != MAP_FAILED);
    w.pid = fork();
    ck_assert_int_ge(w.pid, 0);
    if (w.pid == 0) {
        if (dup2(shared, 20) < 0 || dup2(pair[1], 21) < 0 || dup2(20, CP_MEMORY) < 0 || dup2(21, CP_SOCKET) < 0)
            _exit(1);
        execv(program, arguments);
        _exit(1);
    }
    close(pair[1]);
    close(shared);
    w.line = (cp_line){ .socket = pair[0], .other = -1, .out = page->request, .in = page->answer };
    ck_assert_int_eq(receive_on(&w.line, &hello), CP_DONE);
    ck_assert_msg(opjit_cp_take_hello(&hello, OPJIT_BUILD_ID, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_cp_take_hello(&hello, "another build", &error), OPJIT_UNAVAILABLE);
    opjit_rt_bytes_free(&hello);
    return w;
}

/* Its exit status, once it has seen that nobody is there. */
static int end(worker *w)
{
    int status;
    close(w->line.socket);
    munmap(w->line.out - offsetof(cp_page, request), sizeof(cp_page));
    ck_assert_int_eq(waitpid(w->pid, &status, 0), w->pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static opjit_status ask(worker *w, cp_kind kind, const void *data, size_t size, opjit_error *error)
{
    codegen_result result = { .entries = NULL };
    uint64_t used;
    rt_bytes answer;
    ck_assert_int_eq(opjit_cp_send(&w->line, kind, data, size), CP_DONE);
    ck_assert_int_eq(receive_on(&w->line, &answer), CP_DONE);
    opjit_rt_bytes_init(&result.bytes, memory);
    const opjit_status status = opjit_cp_take_result(&answer, &result, &used, error);
    ck_assert((status == OPJIT_OK) == (result.bytes.size > 0) || kind == CP_WARM);
    ck_assert_uint_gt(used, 0);
    opjit_rt_release(memory, result.entries, result.entry_count * sizeof *result.entries);
    opjit_rt_bytes_free(&result.bytes);
    opjit_rt_bytes_free(&answer);
    return status;
}

START_TEST(a_worker_refuses_what_is_damaged)
{
    static const uint8_t garbage[5000] = { 1, 2, 3 };
    uint8_t frame[256];
    rt_bytes request;
    opjit_error error;
    test_random r;
    ir_func f;
    worker w = start();

    test_random_init(&r, 5, 0, 0);
    while (!make_function(&r, &f))
        ;
    put_request(&f, &request);
    for (uint32_t kind = CP_COMPILE; kind <= CP_LIBRARY; kind++) /* and it goes on */
        ck_assert_int_eq(ask(&w, (cp_kind)kind, garbage, sizeof garbage, &error), OPJIT_CORRUPT);
    ck_assert_int_eq(ask(&w, CP_COMPILE, request.data, request.size / 2, &error), OPJIT_CORRUPT);
    ck_assert_msg(ask(&w, CP_COMPILE, request.data, request.size, &error) == OPJIT_OK, "%s", error.message);
    memcpy(w.line.out, request.data, request.size); /* by memory that both see; and what is there, but not whole */
    ck_assert_msg(ask(&w, CP_COMPILE, w.line.out, request.size, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(ask(&w, CP_COMPILE, w.line.out, request.size - 16, &error), OPJIT_CORRUPT);
    opjit_rt_bytes_free(&request);
    ck_assert_int_eq(end(&w), 0);

    w = start(); /* a frame that is none: what follows can't be told, so it ends */
    const size_t size = record(frame, sizeof frame, "x", 1);
    frame[0] ^= 1;
    ck_assert_int_eq(write(w.line.socket, frame, size), size);
    ck_assert_int_eq(receive_on(&w.line, &request), CP_ENDED);
    opjit_rt_bytes_free(&request);
    ck_assert_int_eq(end(&w), CP_DAMAGED);

    w = start();
    ck_assert_int_eq(opjit_cp_send(&w.line, CP_FOUND, "x", 1), CP_DONE);
    ck_assert_int_eq(end(&w), CP_DAMAGED);
    opjit_ir_free(&f);
}
END_TEST

START_TEST(workers_are_lent_and_replaced)
{
    enum { MOST = 8, SERVED = 10000 };
    atomic_bool cancel = true;
    cp_worker *w[MOST + 1];
    opjit_error error;
    uint32_t served = 0;

    for (uint32_t i = 0; i < MOST; i++) {
        ck_assert_msg(opjit_cp_worker_take("lent", NULL, memory, &w[i], &error) == OPJIT_OK, "%s", error.message);
        for (uint32_t k = 0; k < i; k++)
            ck_assert_int_ne(w[i]->pid, w[k]->pid);
    }
    ck_assert_int_eq(opjit_cp_worker_take("one more", &cancel, memory, &w[MOST], &error), OPJIT_CANCELLED);
    const pid_t last = w[MOST - 1]->pid;
    opjit_cp_worker_give(w[MOST - 1], true, 1);
    ck_assert_int_eq(opjit_cp_worker_take("again", &cancel, memory, &w[MOST - 1], &error), OPJIT_OK);
    ck_assert_int_eq(w[MOST - 1]->pid, last);
    for (uint32_t i = 1; i < MOST; i++)
        opjit_cp_worker_give(w[i], false, 0);
    const pid_t first = w[0]->pid;
    opjit_cp_worker_give(w[0], true, (uint64_t)1 << 40); /* it holds too much */
    ck_assert_int_eq(opjit_cp_worker_take("small", NULL, memory, &w[0], &error), OPJIT_OK);
    const pid_t second = w[0]->pid;
    ck_assert_int_ne(second, first);
    for (; w[0]->pid == second && served <= SERVED; served++) {
        opjit_cp_worker_give(w[0], true, 0);
        ck_assert_int_eq(opjit_cp_worker_take("often", NULL, memory, &w[0], &error), OPJIT_OK);
    }
    ck_assert_uint_eq(served, SERVED);
    opjit_cp_worker_give(w[0], false, 0);
}
END_TEST

/* --- suite -------------------------------------------------------------------------------------------------------- */

static void setup(void)
{
    ck_assert_int_eq(opjit_rt_target_parse("cpu:x86-64-v3", &target, NULL), OPJIT_OK);
}

int main(void)
{
    Suite *suite = suite_create("process.message");
    TCase *tcase = tcase_create("message");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_loop_test(tcase, functions_come_back, 0, 8);
    tcase_add_test(tcase, cut_requests_are_refused);
    tcase_add_loop_test(tcase, changed_requests_are_functions_or_refused, 0, 30);
    tcase_add_test(tcase, circles_are_refused);
    tcase_add_test(tcase, a_request_needs_memory);
    tcase_add_test(tcase, frames_are_whole_or_refused);
    tcase_add_test(tcase, large_frames_pass_and_waits_are_cancelled);
    tcase_add_test(tcase, a_worker_refuses_what_is_damaged);
    tcase_add_test(tcase, workers_are_lent_and_replaced);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
