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

#define AARCH64 "aarch64-linux-gnu-gcc -std=c11"
#define RISCV "riscv64-linux-gnu-gcc -std=c11"
#define RUNNER "-x c $OPJIT_TEST_DATA/emulated/kernels.c -x none "

/* A mode is made into a library, or a program for another machine, by one compiler from one language. */
static const struct mode {
    const char *name, *targets[4];
    uint32_t target_count;
    opjit_level level;
    const char *compiler, *language;
    const char *kernels; /* what is linked to the program */
    unsigned percent;
    const char *emulator; /* NULL: this machine runs the code */
} modes[] = {
    /* clang-format off */
    { "v3, peak, gcc", { "cpu:x86-64-v3" }, 1, OPJIT_LEVEL_PEAK, "gcc -std=c11", "c", "*.o", 15, NULL },
    { "v3, quick, clang", { "cpu:x86-64-v3" }, 1, OPJIT_LEVEL_QUICK, "clang-22 -std=c11", "c", "libkernels.a", 100, NULL },
    { "v2, peak, g++", { "cpu:x86-64-v2" }, 1, OPJIT_LEVEL_PEAK, "g++ -std=c++17", "c++", "*.o", 6, NULL },
    { "v1, quick, clang++", { "cpu:x86-64-v1" }, 1, OPJIT_LEVEL_QUICK, "clang++-22 -std=c++17", "c++", "libkernels.a", 6,
      NULL },
    { "v1 to v4, quick, gcc", { "cpu:x86-64-v1", "cpu:x86-64-v4", "cpu:x86-64-v3", "cpu:x86-64-v2" }, 4,
      OPJIT_LEVEL_QUICK, "gcc -std=c11", "c", "libkernels.a", 5, NULL },
    { "AArch64", { "cpu:aarch64" }, 1, OPJIT_LEVEL_QUICK, AARCH64, "c", RUNNER "*.o", 8, "qemu-aarch64" },
    { "SVE", { "cpu:aarch64+sve256" }, 1, OPJIT_LEVEL_PEAK, AARCH64, "c", RUNNER "libkernels.a", 5,
      "qemu-aarch64 -cpu max,sve256=on" },
    { "RISC-V", { "cpu:rv64gc" }, 1, OPJIT_LEVEL_PEAK, RISCV, "c", RUNNER "*.o", 5, "qemu-riscv64" },
    { "V", { "cpu:rv64gcv+zvl256b" }, 1, OPJIT_LEVEL_QUICK, RISCV, "c", RUNNER "libkernels.a", 8,
      "qemu-riscv64 -cpu rv64,v=true,vlen=256,vext_spec=v1.0" },
    /* clang-format on */
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

static const char *c_type(uint32_t dtype)
{
    static const char *const names[] = {
        [DML_TENSOR_DATA_TYPE_FLOAT32] = "float",   [DML_TENSOR_DATA_TYPE_FLOAT16] = "uint16_t",
        [DML_TENSOR_DATA_TYPE_UINT32] = "uint32_t", [DML_TENSOR_DATA_TYPE_UINT16] = "uint16_t",
        [DML_TENSOR_DATA_TYPE_UINT8] = "uint8_t",   [DML_TENSOR_DATA_TYPE_INT32] = "int32_t",
        [DML_TENSOR_DATA_TYPE_INT16] = "int16_t",   [DML_TENSOR_DATA_TYPE_INT8] = "int8_t",
        [DML_TENSOR_DATA_TYPE_FLOAT64] = "double",  [DML_TENSOR_DATA_TYPE_UINT64] = "uint64_t",
        [DML_TENSOR_DATA_TYPE_INT64] = "int64_t",
    };
    return names[dtype];
}

/* A function with the packed entry's arguments that calls the typed one. */
static void write_typed(FILE *file, const aot_subject *s, bool has_workspace)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    const char *between = "";
    ck_assert_int_eq(opjit_kernel_get_info(s->oracle, &info, NULL), OPJIT_OK);
    fprintf(file, "static void typed_%s(void *const *buffers, const uint64_t *params, void *workspace)\n{\n", s->name);
    for (uint32_t i = 0; i < info.param_count; i++)
        fprintf(file, "    %s p%u;\n", c_type(info.params[i].dtype), i);
    for (uint32_t i = 0; i < info.param_count; i++)
        fprintf(file, "    memcpy(&p%u, &params[%u], sizeof p%u);\n", i, i, i);
    fprintf(file, "    (void)params, (void)workspace;\n    %s(", s->name);
    for (uint32_t i = 0; i < info.inputs + info.outputs; i++, between = ", ")
        fprintf(file, "%s(%s%s *)buffers[%u]", between, i < info.inputs ? "const " : "", c_type(info.buffers[i].dtype),
                i);
    for (uint32_t i = 0; i < info.param_count; i++)
        fprintf(file, ", p%u", i);
    fprintf(file, "%s);\n}\n", has_workspace ? ", workspace" : "");
}

/* A program that includes every header twice, and a table of all functions. */
static void write_program(const batch *b, const struct mode *mode, const aot_folder *folder, const uint64_t *workspaces)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(file);
    for (uint32_t i = 0; i < 2 * b->count; i++)
        fprintf(file, "#include \"%s.h\"\n", b->subjects[i % b->count].name);
    fprintf(file, "#include <string.h>\n");
    for (uint32_t i = 0; i < b->count; i++)
        write_typed(file, &b->subjects[i], workspaces[i] != 0);
    fprintf(file, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
                  "typedef void (*entry)(void *const *, const uint64_t *, void *);\n"
                  "extern const entry entries[];\nconst entry entries[] = {\n");
    for (uint32_t i = 0; i < b->count; i++)
        fprintf(file, "    typed_%s, %s_packed,\n", b->subjects[i].name, b->subjects[i].name);
    fprintf(file, "};\nextern int (*const checks[])(void);\nint (*const checks[])(void) = {\n");
    for (uint32_t i = 0; i < b->count; i++)
        fprintf(file, "    %s_runs_here,\n", b->subjects[i].name);
    fprintf(file, "};\n#ifdef __cplusplus\n}\n#endif\n");
    ck_assert_int_eq(fclose(file), 0);
    aot_write(folder, "all", strcmp(mode->language, "c") == 0 ? "c" : "cpp", text, size);
    free(text);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
typedef void (*entry)(void *const *, const uint64_t *, void *);
typedef int (*check)(void);

static void check_subject(batch *b, const aot_subject *s, const entry *entries, check runs, uint64_t workspace)
{
    ck_assert_int_ne(runs(), 0);
    for (uint32_t n = 0; n < 2 * CALLS; n++) {
        aot_memory m;
        aot_memory_begin(&m, &b->r, s, workspace);
        aot_memory_reset(&m);
        entries[n % 2](m.buffers, s->params, m.workspace);
        aot_memory_compare(&m, s, n % 2 == 0 ? "typed" : "packed");
        aot_memory_end(&m);
    }
}

static void check_program(batch *b, const aot_folder *folder, const uint64_t *workspaces)
{
    char path[128];
    snprintf(path, sizeof path, "%s/all.so", folder->path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    const entry *entries = dlsym(library, "entries");
    const check *checks = dlsym(library, "checks");
    ck_assert(entries != NULL && checks != NULL);
    for (uint32_t i = 0; i < b->count; i++)
        check_subject(b, &b->subjects[i], entries + 2 * i, checks[i], workspaces[i]);
    dlclose(library);
}

/* On another machine: all calls are written down, made there, and read. */
static void write_request(FILE *file, const aot_memory *m, const aot_subject *s, uint32_t kernel, uint64_t workspace)
{
    const uint32_t count = m->info.inputs + m->info.outputs;
    const uint32_t head[4] = { kernel, kernel % 2, count, s->late_count };
    fwrite(head, sizeof head, 1, file);
    fwrite(&workspace, sizeof workspace, 1, file);
    for (uint32_t i = 0; i < count; i++) {
        const opjit_buffer_info *info = &m->info.buffers[i];
        const int32_t shared = m->shared[i];
        fwrite(&info->bytes, sizeof info->bytes, 1, file);
        fwrite(&info->align, sizeof info->align, 1, file);
        fwrite(&shared, sizeof shared, 1, file);
        if (shared < 0)
            fwrite(m->before[i], (size_t)info->bytes, 1, file);
    }
    fwrite(s->params, sizeof *s->params, s->late_count, file);
}

static void read_answer(FILE *file, const aot_memory *m, const aot_subject *s, uint32_t kernel)
{
    for (uint32_t k = 0; k < m->info.inputs + m->info.outputs; k++)
        if (m->shared[k] < 0)
            ck_assert_uint_eq(fread(m->actual[k], (size_t)m->info.buffers[k].bytes, 1, file), 1);
    aot_memory_compare(m, s, kernel % 2 == 0 ? "typed, emulated" : "packed, emulated");
}

static FILE *open_file(const aot_folder *folder, const char *name, const char *mode)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *file = fopen(path, mode);
    ck_assert_ptr_nonnull(file);
    return file;
}

/* Kernels first to end - 1 in one process.  False: qemu 7.2 ended with an assertion of its own, as it does where vectors
 * are converted to integers. */
static bool check_in_process(batch *b, const struct mode *mode, const aot_folder *folder, const uint64_t *workspaces,
                             uint32_t first, uint32_t end)
{
    aot_memory *memory = calloc(end - first, sizeof *memory);
    FILE *file = open_file(folder, "requests", "wb");
    ck_assert_ptr_nonnull(memory);
    for (uint32_t i = first; i < end; i++) {
        aot_memory_begin(&memory[i - first], &b->r, &b->subjects[i], workspaces[i]);
        write_request(file, &memory[i - first], &b->subjects[i], i, workspaces[i]);
    }
    ck_assert_int_eq(fclose(file), 0);
    const bool ran = aot_shell(folder, "%s ./all <requests >answers 2>messages", mode->emulator);
    ck_assert_msg(ran || aot_shell(folder, "grep -q 'qemu.*Assertion' messages"), "%s, kernels %u to %u", mode->name,
                  first, end - 1);
    file = open_file(folder, "answers", "rb");
    for (uint32_t i = first; i < end; i++) {
        if (ran)
            read_answer(file, &memory[i - first], &b->subjects[i], i);
        aot_memory_end(&memory[i - first]);
    }
    fclose(file);
    free(memory);
    return ran;
}

static void check_emulated(batch *b, const struct mode *mode, const aot_folder *folder, const uint64_t *workspaces)
{
    uint32_t given_up = 0;
    if (check_in_process(b, mode, folder, workspaces, 0, b->count))
        return;
    for (uint32_t i = 0; i < b->count; i++) /* one by one, then */
        given_up += !check_in_process(b, mode, folder, workspaces, i, i + 1);
    printf("%s: qemu gave up at %u of %u kernels\n", mode->name, given_up, b->count);
    ck_assert_uint_lt(given_up, b->count / 4);
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
    aot_folder_begin(&folder);
    add_generators(b);
    add_pointwise(b);
    add_moves(b);
    add_reductions(b);
    add_constants(b, &graph);
    write_outputs(b, mode, &folder, workspaces);
    write_program(b, mode, &folder, workspaces);
    printf("%s: %u kernels\n", mode->name, b->count);
    ck_assert_msg(aot_shell(&folder, "! nm -A *.o | grep ' [UDdBbCGgSs] '"), "undefined or writable");
    ck_assert_msg(aot_shell(&folder, "%s %s -Wall -Wextra -Wpedantic -Werror -o %s all.%s %s", mode->compiler,
                            mode->emulator == NULL ? "-fPIC -shared -nostdlib" : "-static",
                            mode->emulator == NULL ? "all.so" : "all", extension, mode->kernels),
                  "%s", mode->compiler);
    if (mode->emulator == NULL) {
        check_library(b, &folder);
        check_program(b, &folder, workspaces);
    } else {
        check_emulated(b, mode, &folder, workspaces);
    }
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
    if (!test_have_codegen(b.context) || !aot_shell(&here, "%s --version >/dev/null 2>&1", compiler) ||
        (mode->emulator != NULL && !aot_shell(&here, "%s --version >/dev/null 2>&1", mode->emulator))) {
        printf("skipped: %s: no code generation, %s or emulator\n", mode->name, compiler);
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
