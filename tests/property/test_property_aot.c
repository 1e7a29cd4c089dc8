/* test_property_aot.c - kernels compiled ahead of time: every operator with every type, and random descriptors of all
 * operators, as objects that the system's compilers and linkers take, in C and C++, called by their typed and their
 * packed entry: the memory afterwards is what the interpreter leaves, which other properties hold against references.
 * One batch of a failure again: OPJIT_SEED=<seed> ./property_aot. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/pointwise.h"
#include "tests/support/aot.h"
#include "tests/support/checker.h"
#include "tests/support/executors.h"
#include "tests/support/graph_case.h"
#include "tests/support/moves.h"
#include "tests/support/pointwise_case.h"

enum { MOST_SUBJECTS = 2000, CALLS = 2 };

typedef struct batch {
    opjit_context *context;
    test_random r;
    aot_subject *subjects;
    uint32_t count;
    unsigned percent; /* of what there is to draw from */
} batch;

/* A mode is made into a library by one compiler from one language. */
static const struct mode {
    const char *name, *targets[4];
    uint32_t target_count;
    opjit_level level;
    const char *compiler, *language;
    const char *kernels; /* what is linked to the program */
    unsigned percent;
} modes[] = {
    { "v3, peak, gcc", { "cpu:x86-64-v3" }, 1, OPJIT_LEVEL_PEAK, "gcc -std=c11", "c", "*.o", 15 },
    { "v3, quick, clang", { "cpu:x86-64-v3" }, 1, OPJIT_LEVEL_QUICK, "clang-22 -std=c11", "c", "libkernels.a", 100 },
    { "v2, peak, g++", { "cpu:x86-64-v2" }, 1, OPJIT_LEVEL_PEAK, "g++ -std=c++17", "c++", "*.o", 6 },
    { "v1, quick, clang++",
      { "cpu:x86-64-v1" },
      1,
      OPJIT_LEVEL_QUICK,
      "clang++-22 -std=c++17",
      "c++",
      "libkernels.a",
      6 },
    { "v1 to v4, quick, gcc",
      { "cpu:x86-64-v1", "cpu:x86-64-v4", "cpu:x86-64-v3", "cpu:x86-64-v2" },
      4,
      OPJIT_LEVEL_QUICK,
      "gcc -std=c11",
      "c",
      "libkernels.a",
      5 },
};

/* --- subjects ----------------------------------------------------------------------------------------------------- */
static aot_subject *add(batch *b, const DML_OPERATOR_DESC *desc, int index_input)
{
    aot_subject *s = &b->subjects[b->count];
    opjit_error error = { OPJIT_OK, "" };
    ck_assert_uint_lt(b->count, MOST_SUBJECTS);
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "kernel%u", b->count);
    s->index_input = index_input;
    const opjit_status status = opjit_operator_create(b->context, desc, &s->op, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_LIMIT, "%s", error.message);
    if (status != OPJIT_OK)
        return NULL;
    b->count++;
    return s;
}

static void keep(batch *b, aot_subject *s)
{
    if (s != NULL && !aot_subject_begin(s, b->context)) {
        aot_subject_end(s);
        b->count--;
    }
}

static void add_pointwise(batch *b)
{
    pointwise_case c;
    for (uint32_t i = 0; i < ref_pointwise_row_count; i++) {
        const ref_pointwise_row *row = &ref_pointwise_rows[i];
        if (ref_pointwise_row_of(row->type, 0) != row)
            continue;
        for (int letter = 0; letter < 2 && row->types[letter] != NULL; letter++)
            for (int k = 0; k < TEST_TYPE_COUNT; k++) {
                DML_TENSOR_DATA_TYPE types[2] = { DML_TENSOR_DATA_TYPE_UNKNOWN, DML_TENSOR_DATA_TYPE_UNKNOWN };
                for (int other = 0; other < 2 && row->types[other] != NULL; other++)
                    for (int t = TEST_TYPE_COUNT; t-- > 0;)
                        if (ref_pointwise_allows(row, (char)('a' + other), 0, test_types[t]))
                            types[other] = test_types[t];
                types[letter] = test_types[k];
                if (!ref_pointwise_allows(row, (char)('a' + letter), 0, test_types[k]) ||
                    !test_random_chance(&b->r, b->percent))
                    continue;
                pointwise_case_plain(row, types, 1 + (uint32_t)k % 4, &c);
                keep(b, add(b, &c.op, -1));
            }
        if (test_random_chance(&b->r, b->percent)) {
            pointwise_case_random(&b->r, row, 300, &c);
            keep(b, add(b, &c.op, -1));
        }
    }
}

static void add_generators(batch *b)
{
    for (uint32_t i = 0; i < TEST_OPERATOR_COUNT; i++)
        for (uint32_t n = 0; n < 4 + b->percent / 10; n++) {
            test_case c;
            test_late late;
            test_case_random(&b->r, test_operators[i], 500, &c);
            test_case_take_late(&b->r, &c, (unsigned)test_random_below(&b->r, 1u << test_case_scalars(&c)), &late);
            aot_subject *s = add(b, &c.op, -1);
            if (s == NULL)
                continue;
            s->late_count = late.count;
            memcpy(s->late, late.names, sizeof late.names);
            memcpy(s->params, late.values, sizeof late.values);
            keep(b, s);
        }
}

static void add_moves(batch *b)
{
    move_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (uint32_t i = 0; i < MOVE_OPERATOR_COUNT; i++)
        for (uint32_t n = 0; n < 1 + b->percent / 30; n++) {
            move_case_random(&b->r, move_operators[i], 500, c);
            keep(b, add(b, &c->op, c->index_input));
        }
    free(c);
}

/* Operators over axes, packed: the input's type and what its result has. */
static void add_over_axes(batch *b, DML_OPERATOR_TYPE type, DML_REDUCE_FUNCTION function, DML_TENSOR_DATA_TYPE of)
{
    const bool arg = type == DML_OPERATOR_ARGMIN || type == DML_OPERATOR_ARGMAX ||
                     (type == DML_OPERATOR_REDUCE && function <= DML_REDUCE_FUNCTION_ARGMIN);
    const bool sum = type == DML_OPERATOR_CUMULATIVE_SUMMATION;
    const uint32_t axes[1] = { (uint32_t)test_random_below(&b->r, 3) };
    test_tensor input, output;
    test_tensor_link(&input, of, 3);
    test_tensor_link(&output, arg ? DML_TENSOR_DATA_TYPE_UINT32 : of, 3);
    for (uint32_t d = 0; d < 3; d++)
        input.sizes[d] = output.sizes[d] = 1 + (uint32_t)test_random_below(&b->r, d == 2 ? 70 : 5);
    if (arg || type == DML_OPERATOR_REDUCE)
        output.sizes[axes[0]] = 1;
    const DML_REDUCE_OPERATOR_DESC reduce = { function, &input.desc, &output.desc, 1, axes };
    const DML_ARGMAX_OPERATOR_DESC arg_desc = { &input.desc, &output.desc, 1, axes, DML_AXIS_DIRECTION_INCREASING };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { &input.desc, &output.desc, 1, axes };
    const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC running = { &input.desc, &output.desc, axes[0],
                                                             DML_AXIS_DIRECTION_INCREASING, 0 };
    const void *desc = type == DML_OPERATOR_REDUCE                      ? (const void *)&reduce
                       : sum || type == DML_OPERATOR_CUMULATIVE_PRODUCT ? (const void *)&running
                       : arg                                            ? (const void *)&arg_desc
                                                                        : (const void *)&softmax;
    keep(b, add(b, &(DML_OPERATOR_DESC){ type, desc }, -1));
}

static void add_reductions(batch *b)
{
    static const DML_TENSOR_DATA_TYPE reals[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_FLOAT64 };
    for (int k = 0; k < TEST_TYPE_COUNT; k++) {
        add_over_axes(b, DML_OPERATOR_ARGMIN, DML_REDUCE_FUNCTION_SUM, test_types[k]);
        add_over_axes(b, DML_OPERATOR_ARGMAX, DML_REDUCE_FUNCTION_SUM, test_types[k]);
        add_over_axes(b, DML_OPERATOR_REDUCE, DML_REDUCE_FUNCTION_MAX, test_types[k]);
        add_over_axes(b, DML_OPERATOR_REDUCE, DML_REDUCE_FUNCTION_ARGMAX, test_types[k]);
    }
    for (int k = 0; k < 3; k++) {
        for (int f = DML_REDUCE_FUNCTION_ARGMAX; f <= DML_REDUCE_FUNCTION_SUM_SQUARE; f++)
            add_over_axes(b, DML_OPERATOR_REDUCE, (DML_REDUCE_FUNCTION)f, reals[k]);
        add_over_axes(b, DML_OPERATOR_ACTIVATION_SOFTMAX1, DML_REDUCE_FUNCTION_SUM, reals[k]);
        add_over_axes(b, DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, DML_REDUCE_FUNCTION_SUM, reals[k]);
        add_over_axes(b, DML_OPERATOR_ACTIVATION_HARDMAX1, DML_REDUCE_FUNCTION_SUM, reals[k]);
        add_over_axes(b, DML_OPERATOR_CUMULATIVE_SUMMATION, DML_REDUCE_FUNCTION_SUM, reals[k]);
        add_over_axes(b, DML_OPERATOR_CUMULATIVE_PRODUCT, DML_REDUCE_FUNCTION_SUM, reals[k]);
    }
}

/* y = x + c + d, where c is larger than what is folded and d is not. */
static void add_constants(batch *b, graph_case *g)
{
    static const uint32_t sizes[2] = { 40, 64 }, strides[2] = { 0, 1 };
    static float large[40 * 64], small[64];
    graph_tensor whole, row;
    const DML_TENSOR_DESC *x = graph_tensor_set(&whole, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, NULL, 0);
    const DML_TENSOR_DESC *r = graph_tensor_set(&row, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, strides, 0);
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC plain = { x, x, x }, rows = { x, r, x };
    for (uint32_t i = 0; i < 40 * 64; i++)
        large[i] = (float)i / 8;
    for (uint32_t i = 0; i < 64; i++)
        small[i] = -(float)i;
    graph_begin(g, b->context, 8);
    const uint32_t first = graph_operator(g, DML_OPERATOR_ELEMENT_WISE_ADD, &plain, "first");
    const uint32_t second = graph_operator(g, DML_OPERATOR_ELEMENT_WISE_ADD, &rows, "second");
    const uint32_t c = graph_constant(g, large, sizeof large, "large");
    const uint32_t d = graph_constant(g, small, sizeof small, "small");
    graph_input(g, 0, first, 0);
    graph_edge(g, c, 0, first, 1);
    graph_edge(g, first, 0, second, 0);
    graph_edge(g, d, 0, second, 1);
    graph_output(g, second, 0, 0);
    aot_subject *s = &b->subjects[b->count++];
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "with_constants");
    s->desc = &g->desc;
    s->index_input = -1;
    keep(b, s);
}

/* --- files -------------------------------------------------------------------------------------------------------- */
static void write_libraries(opjit_artifact *artifact, const aot_folder *folder)
{
    static const struct {
        opjit_artifact_kind kind;
        const char *extension;
    } outputs[] = { { OPJIT_ARTIFACT_ARCHIVE, "a" }, { OPJIT_ARTIFACT_SHARED, "so" } };
    for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++) {
        opjit_error error = { OPJIT_OK, "" };
        const void *data;
        uint64_t bytes;
        ck_assert_msg(opjit_artifact_get(artifact, 0, outputs[k].kind, &data, &bytes, &error) == OPJIT_OK, "%s",
                      error.message);
        aot_write(folder, "libkernels", outputs[k].extension, data, bytes);
    }
}

static void write_outputs(const batch *b, const struct mode *mode, const aot_folder *folder, uint64_t *workspaces)
{
    static const struct {
        opjit_artifact_kind kind;
        const char *extension;
    } outputs[] = { { OPJIT_ARTIFACT_OBJECT, "o" }, { OPJIT_ARTIFACT_HEADER, "h" } };
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_artifact *artifact;
    opjit_error error = { OPJIT_OK, "" };
    options.targets = mode->targets;
    options.target_count = mode->target_count;
    ck_assert_msg(opjit_artifact_create(b->context, &options, &artifact, &error) == OPJIT_OK, "%s", error.message);
    for (uint32_t i = 0; i < b->count; i++) {
        aot_subject_add(&b->subjects[i], artifact, mode->level);
        for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++) {
            const void *data;
            uint64_t bytes;
            ck_assert_msg(opjit_artifact_get(artifact, i, outputs[k].kind, &data, &bytes, &error) == OPJIT_OK, "%s: %s",
                          b->subjects[i].name, error.message);
            aot_write(folder, b->subjects[i].name, outputs[k].extension, data, bytes);
            if (outputs[k].kind == OPJIT_ARTIFACT_HEADER) {
                char key[96];
                snprintf(key, sizeof key, "%s_WORKSPACE_BYTES UINT64_C(", b->subjects[i].name);
                const char *at = memmem(data, (size_t)bytes, key, strlen(key));
                ck_assert_ptr_nonnull(at);
                workspaces[i] = strtoull(at + strlen(key), NULL, 10);
            }
        }
    }
    write_libraries(artifact, folder);
    opjit_artifact_destroy(artifact);
}

/* A program that includes every header twice and names every function. */
static void write_program(const batch *b, const struct mode *mode, const aot_folder *folder)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(file);
    for (uint32_t i = 0; i < 2 * b->count; i++)
        fprintf(file, "#include \"%s.h\"\n", b->subjects[i % b->count].name);
    fprintf(file, "typedef void (*function)(void);\nextern const function all[];\nconst function all[] = {\n");
    for (uint32_t i = 0; i < b->count; i++)
        fprintf(file, "    (function)%s, (function)%s_packed, (function)%s_runs_here,\n", b->subjects[i].name,
                b->subjects[i].name, b->subjects[i].name);
    fprintf(file, "};\n");
    ck_assert_int_eq(fclose(file), 0);
    aot_write(folder, "all", strcmp(mode->language, "c") == 0 ? "c" : "cpp", text, size);
    free(text);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
static void (*find(void *library, const char *name, const char *suffix))(void)
{
    char symbol[96];
    void (*function)(void);
    snprintf(symbol, sizeof symbol, "%s%s", name, suffix);
    void *address = dlsym(library, symbol);
    ck_assert_msg(address != NULL, "%s", symbol);
    memcpy(&function, &address, sizeof function);
    return function;
}

/* False: there are no typed calls in this build. */
static bool call_typed(const aot_subject *s, aot_memory *m, void (*function)(void), bool has_workspace)
{
    const uint32_t count = m->info.inputs + m->info.outputs;
    DML_TENSOR_DATA_TYPE types[AOT_BUFFERS + 5];
    void *values[AOT_BUFFERS + 5];
    uint64_t params[4];
    opjit_error error = { OPJIT_OK, "" };
    uint32_t at = 0;
    for (; at < count; at++) {
        types[at] = DML_TENSOR_DATA_TYPE_UNKNOWN;
        values[at] = &m->buffers[at];
    }
    memcpy(params, s->params, sizeof params);
    for (uint32_t i = 0; i < s->late_count; i++, at++) {
        types[at] = (DML_TENSOR_DATA_TYPE)m->info.params[i].dtype;
        values[at] = &params[i]; /* little endian: the low bytes come first */
    }
    types[at] = DML_TENSOR_DATA_TYPE_UNKNOWN;
    values[at] = &m->workspace;
    const opjit_status status = opjit_typed_call(function, at + has_workspace, types, values, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_UNAVAILABLE, "%s", error.message);
    return status == OPJIT_OK;
}

static void check_subject(batch *b, void *library, const aot_subject *s, uint64_t workspace)
{
    void (*typed)(void) = find(library, s->name, ""), (*packed)(void) = find(library, s->name, "_packed");
    void (*runs)(void) = find(library, s->name, "_runs_here");
    ck_assert_int_ne(((int (*)(void))runs)(), 0);
    for (uint32_t n = 0; n < CALLS; n++) {
        aot_memory m;
        aot_memory_begin(&m, &b->r, s, workspace);
        aot_memory_reset(&m);
        ((void (*)(void *const *, const uint64_t *, void *))packed)(m.buffers, s->params, m.workspace);
        aot_memory_compare(&m, s, "packed");
        if (m.info.inputs + m.info.outputs + s->late_count + 1 <= 64) {
            aot_memory_reset(&m);
            if (call_typed(s, &m, typed, workspace != 0))
                aot_memory_compare(&m, s, "typed");
        }
        aot_memory_end(&m);
    }
}

/* By the runtime, out of the library. */
static void check_in_library(batch *b, opjit_library *library, const aot_subject *s)
{
    opjit_kernel *kernel;
    opjit_error error = { OPJIT_OK, "" };
    opjit_binding bindings[AOT_BUFFERS];
    opjit_call call = OPJIT_CALL_INIT;
    test_executor executor;
    aot_memory m;
    ck_assert_msg(opjit_library_find(library, s->name, &kernel, &error) == OPJIT_OK, "%s", error.message);
    aot_memory_begin(&m, &b->r, s, 0);
    aot_memory_reset(&m);
    call.binding_count = m.info.inputs + m.info.outputs;
    for (uint32_t i = 0; i < call.binding_count; i++)
        bindings[i] = (opjit_binding){ m.buffers[i], m.info.buffers[i].bytes };
    call.bindings = bindings;
    call.params = s->params;
    call.param_count = s->late_count;
    test_executor_init(&executor, &b->r, false);
    call.executor = test_random_chance(&b->r, 50) ? &executor.executor : NULL;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s: %s", s->name, error.message);
    aot_memory_compare(&m, s, "runtime");
    aot_memory_end(&m);
    opjit_kernel_release(kernel);
}

static void check_library(batch *b, const aot_folder *folder)
{
    opjit_library *library;
    opjit_error error = { OPJIT_OK, "" };
    char path[128];
    snprintf(path, sizeof path, "%s/libkernels.so", folder->path);
    ck_assert_msg(opjit_library_open(b->context, path, &library, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(opjit_library_count(library), b->count);
    for (uint32_t i = 0; i < b->count; i++)
        check_in_library(b, library, &b->subjects[i]);
    opjit_library_close(library);
}

/* --- the batches -------------------------------------------------------------------------------------------------- */
static void run_mode(batch *b, const struct mode *mode)
{
    uint64_t *workspaces = calloc(MOST_SUBJECTS, sizeof *workspaces);
    const char *extension = strcmp(mode->language, "c") == 0 ? "c" : "cpp";
    graph_case graph;
    aot_folder folder;
    char path[128];
    aot_folder_begin(&folder);
    add_generators(b);
    add_pointwise(b);
    add_moves(b);
    add_reductions(b);
    add_constants(b, &graph);
    write_outputs(b, mode, &folder, workspaces);
    write_program(b, mode, &folder);
    printf("%s: %u kernels\n", mode->name, b->count);
    ck_assert_msg(aot_shell(&folder, "! nm -A *.o | grep ' [UDdBbCGgSs] '"), "undefined or writable");
    ck_assert_msg(aot_shell(&folder, "%s -Wall -Wextra -Wpedantic -Werror -fPIC -shared -nostdlib -o all.so all.%s %s",
                            mode->compiler, extension, mode->kernels),
                  "%s", mode->compiler);
    check_library(b, &folder);
    snprintf(path, sizeof path, "%s/all.so", folder.path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    for (uint32_t i = 0; i < b->count; i++)
        check_subject(b, library, &b->subjects[i], workspaces[i]);
    dlclose(library);
    for (uint32_t i = 0; i < b->count; i++)
        aot_subject_end(&b->subjects[i]);
    graph_end(&graph);
    aot_folder_end(&folder);
    free(workspaces);
}

START_TEST(objects)
{
    const struct mode *mode = &modes[_i];
    const test_cases cases = test_cases_init(mode->name, 1);
    batch b = { .context = test_context_create(), .percent = mode->percent };
    char compiler[32];
    snprintf(compiler, sizeof compiler, "%.*s", (int)strcspn(mode->compiler, " "), mode->compiler);
    aot_folder here = { "." };
    if (!test_have_codegen(b.context) || !aot_shell(&here, "%s --version >/dev/null 2>&1", compiler)) {
        printf("skipped: %s: no code generation, or no %s\n", mode->name, compiler);
        opjit_context_destroy(b.context);
        return;
    }
    b.subjects = calloc(MOST_SUBJECTS, sizeof *b.subjects);
    ck_assert_ptr_nonnull(b.subjects);
    test_random_init(&b.r, cases.seed, (uint64_t)_i, 0);
    run_mode(&b, mode);
    free(b.subjects);
    opjit_context_destroy(b.context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.aot");
    TCase *tcase = tcase_create("objects");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 280);
    tcase_add_loop_test(tcase, objects, 0, (int)(sizeof modes / sizeof *modes));
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
