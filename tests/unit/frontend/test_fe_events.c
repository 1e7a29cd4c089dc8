/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_events.c - what events say in fields: one id a compile, keys, phases, node names; and in their lines. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <opjit/artifact.h>
#include <opjit/cache.h>

#include "tests/support/graph_case.h"

enum { MOST = 64 };

typedef struct kept {
    opjit_event event; /* without what it points to */
    char name[128], target[160], line[256], reason[128], nodes[128];
} kept;

static kept events[MOST];
static uint32_t count;
static opjit_context *context;

static void keep(void *user, const opjit_event *event)
{
    kept *k = &events[count++];
    (void)user;
    ck_assert_uint_lt(count, MOST);
    ck_assert_uint_eq(event->struct_size, sizeof *event);
    k->event = *event;
    snprintf(k->name, sizeof k->name, "%s", event->name);
    snprintf(k->target, sizeof k->target, "%s", event->target);
    snprintf(k->line, sizeof k->line, "%s", event->line);
    snprintf(k->reason, sizeof k->reason, "%s", event->reason);
    k->nodes[0] = '\0';
    for (uint32_t i = 0; i < event->node_count; i++)
        snprintf(k->nodes + strlen(k->nodes), sizeof k->nodes - strlen(k->nodes), "%s,", event->nodes[i]);
}

static void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    options.event = keep;
    count = 0;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
}

static void teardown(void)
{
    opjit_context_destroy(context);
}

/* The n-th event of the kind, from 0; NULL: there is none. */
static const kept *find(opjit_event_kind kind, opjit_event_subject subject, uint32_t n)
{
    for (uint32_t i = 0; i < count; i++)
        if (events[i].event.kind == kind && events[i].event.subject == (uint32_t)subject && n-- == 0)
            return &events[i];
    return NULL;
}

static graph_tensor tensor;

/* A labelled negation of an unlabelled one. */
static opjit_kernel *compile(uint32_t flags, opjit_level level)
{
    const DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC desc = { &tensor.desc, &tensor.desc };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    opjit_error error;
    graph_case g;
    graph_tensor_set(&tensor, DML_TENSOR_DATA_TYPE_INT32, 1, (uint32_t[]){ 8 }, NULL, 0);
    graph_begin(&g, context, 4);
    graph_operator(&g, DML_OPERATOR_ELEMENT_WISE_NEGATE, &desc, NULL);
    graph_operator(&g, DML_OPERATOR_ELEMENT_WISE_NEGATE, &desc, "second \"one\"");
    graph_input(&g, 0, 0, 0);
    graph_edge(&g, 0, 0, 1, 0);
    graph_output(&g, 1, 0, 0);
    options.flags = flags;
    options.level = level;
    const opjit_status status = opjit_compile_graph(context, &g.desc, &options, &kernel, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_UNAVAILABLE, "%s", error.message);
    graph_end(&g);
    return kernel;
}

static void check_key(const kept *k, const opjit_kernel *kernel)
{
    opjit_cache_key key;
    ck_assert_int_eq(opjit_kernel_get_cache_key(kernel, &key, NULL), OPJIT_OK);
    ck_assert(k->event.key_hi == key.hi && k->event.key_lo == key.lo);
}

START_TEST(one_compile_in_events)
{
    const bool code = _i == 1;
    struct timespec now;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *kernel = compile(code ? 0 : OPJIT_COMPILE_INTERPRET, OPJIT_LEVEL_QUICK), *again;
    const kept *miss = find(OPJIT_EVENT_MISS, OPJIT_EVENT_MEMORY_CACHE, 0), *hit;
    const kept *made = find(OPJIT_EVENT_COMPILE, code ? OPJIT_EVENT_CODE : OPJIT_EVENT_INTERPRETED, 0);
    if (kernel == NULL)
        return;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ck_assert(miss != NULL && made != NULL);
    ck_assert_uint_eq(miss->event.compile_id, 1);
    ck_assert_str_eq(miss->name, "graph");
    ck_assert_uint_eq(made->event.compile_id, 1);
    ck_assert_str_eq(made->name, info.name);
    ck_assert_str_eq(made->target, opjit_context_target(context));
    ck_assert_str_eq(made->nodes, "ELEMENT_WISE_NEGATE,second \"one\",");
    ck_assert_uint_eq(made->event.level, OPJIT_LEVEL_QUICK);
    check_key(made, kernel);
    ck_assert_double_gt(made->event.lower_ms, 0);
    ck_assert_double_gt(made->event.passes_ms, 0);
    ck_assert(!code || (made->event.codegen_ms > 0 && made->event.bytes > 0));
    ck_assert_double_ge(made->event.total_ms * 1.0001,
                        made->event.lower_ms + made->event.passes_ms + made->event.codegen_ms);
    clock_gettime(CLOCK_MONOTONIC, &now);
    ck_assert_uint_le(made->event.time_ns, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    ck_assert_uint_ge(made->event.time_ns, miss->event.time_ns);
    ck_assert_int_eq(strncmp(made->line, "opjit,compile,graph,i32,8,", 26), 0);
    if (code) {
        const kept *load = find(OPJIT_EVENT_LOAD, OPJIT_EVENT_CODE, 0);
        const kept *llvm = find(OPJIT_EVENT_LOAD, OPJIT_EVENT_CODEGEN, 0);
        ck_assert(load != NULL && load->event.compile_id == 1 && load->event.bytes == info.code_bytes);
        ck_assert_str_eq(load->name, info.name);
        check_key(load, kernel);
        ck_assert(llvm == NULL || llvm->name[0] == '/');
    }
    again = compile(code ? 0 : OPJIT_COMPILE_INTERPRET, OPJIT_LEVEL_QUICK);
    hit = find(OPJIT_EVENT_HIT, OPJIT_EVENT_MEMORY_CACHE, 0);
    ck_assert(hit != NULL && hit->event.compile_id == 0 && hit->event.bytes > 0);
    ck_assert_str_eq(hit->name, info.name);
    check_key(hit, kernel);
    opjit_kernel_release(again);
    opjit_kernel_release(compile(OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE, OPJIT_LEVEL_QUICK));
    ck_assert_uint_eq(find(OPJIT_EVENT_COMPILE, OPJIT_EVENT_INTERPRETED, code ? 0 : 1)->event.compile_id, 2);
    ck_assert_ptr_null(find(OPJIT_EVENT_MISS, OPJIT_EVENT_MEMORY_CACHE, 1));
    opjit_kernel_release(kernel);
}
END_TEST

START_TEST(peak_versions_and_artifacts)
{
    opjit_kernel *kernel = compile(0, OPJIT_LEVEL_QUICK);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    const DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC negate = { &tensor.desc, &tensor.desc };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_ELEMENT_WISE_NEGATE, &negate };
    opjit_artifact *artifact;
    opjit_operator *op;
    const void *data;
    uint64_t bytes;
    const kept *made;
    if (kernel == NULL)
        return;
    ck_assert_int_eq(opjit_kernel_optimize(kernel, NULL), OPJIT_OK);
    made = find(OPJIT_EVENT_COMPILE, OPJIT_EVENT_CODE, 1);
    ck_assert(made != NULL && made->event.level == OPJIT_LEVEL_PEAK);
    opjit_kernel_release(kernel);

    ck_assert_int_eq(opjit_operator_create(context, &desc, &op, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_create(context, NULL, &artifact, NULL), OPJIT_OK);
    options.name = "negate";
    ck_assert_int_eq(opjit_artifact_add_operator(artifact, op, &options, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_OBJECT, &data, &bytes, NULL), OPJIT_OK);
    made = find(OPJIT_EVENT_COMPILE, OPJIT_EVENT_ARTIFACT, 0);
    ck_assert(made != NULL && made->event.bytes == bytes && made->event.codegen_ms > 0 && made->event.passes_ms > 0);
    ck_assert_str_eq(made->name, "negate");
    ck_assert_str_eq(made->nodes, "ELEMENT_WISE_NEGATE,");
    opjit_artifact_destroy(artifact);
    opjit_operator_release(op);
}
END_TEST

START_TEST(evictions_and_warnings)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const kept *warning, *evicted;
    opjit_context_destroy(context);
    options.event = keep;
    options.cache_dir = "/dev/null";
    options.cache_bytes = 20000;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    warning = find(OPJIT_EVENT_WARNING, OPJIT_EVENT_DISK_CACHE, 0);
    ck_assert_ptr_nonnull(warning);
    ck_assert_str_eq(warning->name, "/dev/null");
    ck_assert_str_eq(warning->reason, "not used: it is no folder");
    ck_assert_str_eq(warning->line, "opjit,warning,disk cache,/dev/null,not used: it is no folder");
    for (uint32_t flags = 0; flags < 2; flags++)
        for (uint32_t level = 0; level < 2; level++) {
            opjit_kernel *kernel = compile(OPJIT_COMPILE_INTERPRET | flags, (opjit_level)level);
            opjit_kernel_release(kernel);
        }
    evicted = find(OPJIT_EVENT_EVICT, OPJIT_EVENT_MEMORY_CACHE, 0);
    ck_assert(evicted == NULL || (evicted->event.bytes > 0 && evicted->event.key_hi != 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.events");
    TCase *tcase = tcase_create("events");
    SRunner *runner = srunner_create(suite);
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, one_compile_in_events, 0, 2);
    tcase_add_test(tcase, peak_versions_and_artifacts);
    tcase_add_test(tcase, evictions_and_warnings);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
