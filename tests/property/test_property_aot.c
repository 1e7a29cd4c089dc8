/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_aot.c - kernels compiled ahead of time: every operator with every type, and random descriptors of all
 * operators, as objects that the system's compilers and linkers accept, in C and C++, called through their typed and
 * their packed entry.  They leave the memory that the interpreter leaves, which other properties compare with
 * references.  To run one batch of a failure again: OPJIT_SEED=<seed> ./property_aot. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/artifact.h>

#include "tests/support/aot_batch.h"
#include "tests/support/checker.h"
#include "tests/support/executors.h"

enum { CALLS = 2, FEW = 150 };

/* How a program is built from its source in one language. */
typedef struct toolchain {
    const char *compile, *link, *language, *kernels; /* kernels: what is linked to it */
} toolchain;

static const toolchain native[] = {
    { "gcc -std=c11", "gcc", "c", "*.o" },
    { "clang-22 -std=c11", "clang-22", "c", "libkernels.a" },
    { "g++ -std=c++17", "g++", "cpp", "libkernels.a" },
    { "clang++-22 -std=c++17", "clang++-22", "cpp", "*.o" },
    { NULL, NULL, NULL, NULL },
};
#define CROSS(name, machine)                                                                             \
    static const toolchain name[] = {                                                                    \
        { machine "-gcc -std=c11", machine "-gcc", "c", "*.o" },                                         \
        { "clang-22 --target=" machine " -std=c11", "clang-22 --target=" machine, "c", "libkernels.a" }, \
        { "clang++-22 --target=" machine " -std=c++17", machine "-gcc", "cpp", "*.o" },                  \
        { NULL, NULL, NULL, NULL },                                                                      \
    }
CROSS(aarch64, "aarch64-linux-gnu");
CROSS(riscv64, "riscv64-linux-gnu");

/* A mode's kernels are compiled once and linked by all toolchains into libraries, or into programs for another machine.
 * Modes of everything have each operator with each type of its tensors. */
static const struct mode {
    const char *name, *targets[4];
    uint32_t target_count;
    opjit_level level;
    const toolchain *toolchains;
    unsigned percent;
    const char *emulator; /* NULL: this machine runs the code */
} modes[] = {
    { "v3, quick", { "cpu:x86-64-v3" }, 1, OPJIT_LEVEL_QUICK, native, 100, NULL },
    { "v3, peak", { "cpu:x86-64-v3" }, 1, OPJIT_LEVEL_PEAK, native, 15, NULL },
    { "v2, peak", { "cpu:x86-64-v2" }, 1, OPJIT_LEVEL_PEAK, native, 6, NULL },
    { "v1, quick", { "cpu:x86-64-v1" }, 1, OPJIT_LEVEL_QUICK, native, 6, NULL },
    { "v1 to v4, quick",
      { "cpu:x86-64-v1", "cpu:x86-64-v4", "cpu:x86-64-v3", "cpu:x86-64-v2" },
      4,
      OPJIT_LEVEL_QUICK,
      native,
      5,
      NULL },
    { "AArch64", { "cpu:aarch64" }, 1, OPJIT_LEVEL_QUICK, aarch64, 100, "qemu-aarch64" },
    { "SVE", { "cpu:aarch64+sve256" }, 1, OPJIT_LEVEL_PEAK, aarch64, 100, "qemu-aarch64 -cpu max,sve256=on" },
    { "NEON or SVE",
      { "cpu:aarch64", "cpu:aarch64+sve256", "cpu:aarch64+sve512" },
      3,
      OPJIT_LEVEL_QUICK,
      aarch64,
      6,
      "qemu-aarch64 -cpu max,sve256=on,sve512=off,sve1024=off,sve2048=off" },
    { "RISC-V", { "cpu:rv64gc" }, 1, OPJIT_LEVEL_PEAK, riscv64, 100, "qemu-riscv64" },
    { "V",
      { "cpu:rv64gcv+zvl256b" },
      1,
      OPJIT_LEVEL_QUICK,
      riscv64,
      100,
      "qemu-riscv64 -cpu rv64,v=true,vlen=256,vext_spec=v1.0" },
};

/* --- files -------------------------------------------------------------------------------------------------------- */
static void write_libraries(opjit_artifact *artifact, const aot_folder *folder)
{
    static const struct {
        opjit_artifact_kind kind;
        const char *extension;
    } outputs[] = { { OPJIT_ARTIFACT_ARCHIVE, "a" }, { OPJIT_ARTIFACT_SHARED, "so" } };
    for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++) {
        opjit_error error = { 0 };
        const void *data;
        uint64_t bytes;
        ck_assert_msg(opjit_artifact_get(artifact, 0, outputs[k].kind, &data, &bytes, &error) == OPJIT_OK, "%s",
                      error.message);
        aot_write(folder, "libkernels", outputs[k].extension, data, bytes);
    }
}

static void write_outputs(const aot_batch *b, const struct mode *mode, const aot_folder *folder, uint64_t *workspaces)
{
    static const struct {
        opjit_artifact_kind kind;
        const char *extension;
    } outputs[] = { { OPJIT_ARTIFACT_OBJECT, "o" }, { OPJIT_ARTIFACT_HEADER, "h" } };
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_artifact *artifact;
    opjit_error error = { 0 };
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
        [DML_TENSOR_DATA_TYPE_UINT4] = "uint8_t",   [DML_TENSOR_DATA_TYPE_INT4] = "uint8_t",
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
static void write_program(const aot_batch *b, const toolchain *t, const aot_folder *folder, const uint64_t *workspaces)
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
    aot_write(folder, "all", t->language, text, size);
    free(text);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
typedef void (*entry)(void *const *, const uint64_t *, void *);
typedef int (*check)(void);

static void check_subject(aot_batch *b, const aot_subject *s, const entry *entries, check runs, uint64_t workspace)
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

static void check_program(aot_batch *b, const aot_folder *folder, const uint64_t *workspaces)
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

/* For another machine: writes all calls down, runs them there, and reads the answers. */
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

static FILE *open_file(const aot_folder *folder, const char *name, const char *mode)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *file = fopen(path, mode);
    ck_assert_ptr_nonnull(file);
    return file;
}

/* False: the program ended before it answered. */
static bool read_answer(FILE *file, const aot_memory *m, const aot_subject *s, uint32_t kernel)
{
    for (uint32_t k = 0; k < m->info.inputs + m->info.outputs; k++)
        if (m->shared[k] < 0 && fread(m->actual[k], (size_t)m->info.buffers[k].bytes, 1, file) != 1)
            return false;
    aot_memory_compare(m, s, kernel % 2 == 0 ? "typed, emulated" : "packed, emulated");
    return true;
}

/* Runs kernels from `first` on in one process.  Returns how far it got: to the end, or to one at which qemu 7.2 failed
 * an assertion of its own, as it does where vectors are converted to integers. */
static uint32_t run_emulated(const aot_batch *b, const struct mode *mode, const aot_folder *folder,
                             const aot_memory *memory, const long *at, uint32_t first)
{
    const bool ran =
        aot_shell(folder, "tail -c +%ld requests | %s ./all >answers 2>messages", at[first] + 1, mode->emulator);
    FILE *file = open_file(folder, "answers", "rb");
    uint32_t i = first;
    while (i < b->count && read_answer(file, &memory[i], &b->subjects[i], i))
        i++;
    fclose(file);
    ck_assert_msg(ran ? i == b->count : aot_shell(folder, "grep -q 'qemu.*Assertion' messages"), "%s, kernel %u",
                  mode->name, i);
    return i;
}

static void check_emulated(aot_batch *b, const struct mode *mode, const aot_folder *folder, const uint64_t *workspaces)
{
    aot_memory *memory = calloc(b->count, sizeof *memory);
    long *at = calloc(b->count, sizeof *at);
    FILE *file = open_file(folder, "requests", "wb");
    uint32_t given_up = 0;
    ck_assert(memory != NULL && at != NULL);
    for (uint32_t i = 0; i < b->count; i++) {
        at[i] = ftell(file);
        aot_memory_begin(&memory[i], &b->r, &b->subjects[i], workspaces[i]);
        write_request(file, &memory[i], &b->subjects[i], i, workspaces[i]);
    }
    ck_assert_int_eq(fclose(file), 0);
    for (uint32_t i = 0; i < b->count; i++) {
        i = run_emulated(b, mode, folder, memory, at, i);
        given_up += i < b->count;
    }
    if (given_up != 0)
        printf("%s: qemu gave up at %u of %u kernels\n", mode->name, given_up, b->count);
    ck_assert_uint_lt(given_up, 1 + b->count / 4);
    for (uint32_t i = 0; i < b->count; i++)
        aot_memory_end(&memory[i]);
    free(memory);
    free(at);
}

/* Through the runtime, from the library. */
static void check_in_library(aot_batch *b, opjit_library *library, const aot_subject *s)
{
    opjit_kernel *kernel;
    opjit_error error = { 0 };
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

static void check_library(aot_batch *b, const aot_folder *folder)
{
    opjit_library *library;
    opjit_error error = { 0 };
    char path[128];
    snprintf(path, sizeof path, "%s/libkernels.so", folder->path);
    ck_assert_msg(opjit_library_open(b->context, path, &library, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(opjit_library_count(library), b->count);
    for (uint32_t i = 0; i < b->count; i++)
        check_in_library(b, library, &b->subjects[i]);
    opjit_library_close(library);
}

/* --- the batches -------------------------------------------------------------------------------------------------- */
static bool is_there(const char *command)
{
    const aot_folder here = { "." };
    return aot_shell(&here, "%.*s --version >/dev/null 2>&1", (int)strcspn(command, " "), command);
}

static void run_toolchain(aot_batch *b, const struct mode *mode, const toolchain *t, const aot_folder *folder,
                          const uint64_t *workspaces)
{
    static const char flags[] = "-Wall -Wextra -Wpedantic -Werror";
    write_program(b, t, folder, workspaces);
    ck_assert_msg(aot_shell(folder, "%s %s -fPIC -c all.%s -o all.program", t->compile, flags, t->language), "%s",
                  t->compile);
    if (mode->emulator == NULL) {
        ck_assert_msg(aot_shell(folder, "%s -shared -nostdlib -o all.so all.program %s", t->link, t->kernels), "%s",
                      t->link);
        check_program(b, folder, workspaces);
    } else {
        ck_assert_msg(aot_shell(folder, "%s -static -o all all.program $OPJIT_TEST_DATA/machines/aot_program.c %s",
                                t->link, t->kernels),
                      "%s", t->link);
        check_emulated(b, mode, folder, workspaces);
    }
}

static void run_mode(aot_batch *b, const struct mode *mode)
{
    uint64_t *workspaces = calloc(AOT_BATCH_MOST, sizeof *workspaces);
    aot_folder folder;
    aot_folder_begin(&folder);
    ck_assert_ptr_nonnull(workspaces);
    aot_batch_begin(b);
    if (b->percent == 100)
        aot_batch_check_complete(b);
    write_outputs(b, mode, &folder, workspaces);
    printf("%s: %u kernels\n", mode->name, b->count);
    ck_assert_msg(aot_shell(&folder, "! nm -A *.o | grep ' [UDdBbCGgSsVvWw] '"), "undefined, weak or writable");
    if (mode->emulator == NULL)
        check_library(b, &folder);
    const uint32_t all = b->count;
    for (const toolchain *t = mode->toolchains; t->compile != NULL; t++) {
        if (mode->emulator != NULL && t != mode->toolchains && b->count > FEW)
            b->count = FEW; /* emulation is slow */
        if (is_there(t->compile) && is_there(t->link))
            run_toolchain(b, mode, t, &folder, workspaces);
        else
            printf("skipped: %s: no %s or %s\n", mode->name, t->compile, t->link);
    }
    b->count = all;
    aot_batch_end(b);
    aot_folder_end(&folder);
    free(workspaces);
}

/* OPJIT_CASES counts hundredths of all subjects. */
START_TEST(objects)
{
    const struct mode *mode = &modes[_i];
    const test_cases cases = test_cases_init(mode->name, mode->percent);
    aot_batch b = { .context = test_context_create(), .percent = (unsigned)(cases.end - cases.first) };
    if (!test_have_codegen(b.context) || (mode->emulator != NULL && !is_there(mode->emulator))) {
        printf("skipped: %s: no code generation or emulator\n", mode->name);
    } else {
        test_random_init(&b.r, cases.seed, (uint64_t)_i, 0);
        run_mode(&b, mode);
    }
    opjit_context_destroy(b.context);
}
END_TEST

/* With OPJIT_TEST_FOREIGN=1 (foreign.aot) the modes of other machines, otherwise those of this one. */
int main(void)
{
    const int count = (int)(sizeof modes / sizeof *modes);
    Suite *suite = suite_create("property.aot");
    TCase *tcase = tcase_create("objects");
    SRunner *runner = srunner_create(suite);
    int native_count = 0;
    while (modes[native_count].emulator == NULL)
        native_count++;
    tcase_set_timeout(tcase, 800);
    if (getenv("OPJIT_TEST_FOREIGN") == NULL)
        tcase_add_loop_test(tcase, objects, 0, native_count);
    else
        tcase_add_loop_test(tcase, objects, native_count, count);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
