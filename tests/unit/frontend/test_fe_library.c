/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_library.c - libraries of kernels compiled ahead of time, as the runtime uses them: found by name, best
 * version first, called in every way; and damaged or foreign ones refused.  Ten thousand mutations of a library's file
 * are all noticed, and registries damaged before their checksum was computed lead nowhere. */
#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/artifact.h>
#include <opjit/ffi.h>

#include "runtime/call/kernel_object.h"
#include "runtime/image/library.h"
#include "tests/support/aot.h"
#include "tests/support/checker.h"
#include "tests/support/graph_case.h"
#include "tests/support/require.h"

enum { ROWS = 70, COLUMNS = 48, ELEMENTS = ROWS * COLUMNS };

typedef struct fixture {
    opjit_context *context;
    aot_folder folder;
    char path[128];
    uint8_t *bytes; /* of the library */
    size_t size;
} fixture;

/* --- the library -------------------------------------------------------------------------------------------------- */
static const DML_TENSOR_DESC *tensor_of(graph_tensor *t)
{
    static const uint32_t sizes[2] = { ROWS, COLUMNS };
    return graph_tensor_set(t, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, NULL, 0);
}

static void add_operator(fixture *f, opjit_artifact *artifact, const char *name, DML_OPERATOR_TYPE type,
                         const void *desc, const char *late)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_operator *op;
    opjit_error error = { 0 };
    options.name = name;
    options.late = &late;
    options.late_count = late != NULL;
    options.level = OPJIT_LEVEL_QUICK;
    ck_assert_int_eq(opjit_operator_create(f->context, &(DML_OPERATOR_DESC){ type, desc }, &op, &error), OPJIT_OK);
    ck_assert_msg(opjit_artifact_add_operator(artifact, op, &options, &error) == OPJIT_OK, "%s", error.message);
    opjit_operator_release(op);
}

/* x + c, where the kernel binds c itself. */
static void add_graph(fixture *f, opjit_artifact *artifact)
{
    static float constant[ELEMENTS];
    graph_tensor t;
    const DML_TENSOR_DESC *x = tensor_of(&t);
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC add = { x, x, x };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    graph_case g;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        constant[i] = (float)i;
    graph_begin(&g, f->context, 4);
    const uint32_t node = graph_operator(&g, DML_OPERATOR_ELEMENT_WISE_ADD, &add, "add");
    graph_input(&g, 0, node, 0);
    graph_edge(&g, graph_constant(&g, constant, sizeof constant, "c"), 0, node, 1);
    graph_output(&g, node, 0, 0);
    g.inputs[0].Name = "Query";
    g.outputs[0].Name = "Sum";
    options.name = "plus_constant";
    ck_assert_msg(opjit_artifact_add_graph(artifact, &g.desc, &options, &error) == OPJIT_OK, "%s", error.message);
    graph_end(&g);
}

static void make_library(fixture *f, const char *const *targets, uint32_t count)
{
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_artifact *artifact;
    graph_tensor t;
    const DML_TENSOR_DESC *x = tensor_of(&t);
    static const uint32_t axes[1] = { 1 };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC band = { .InputTensor = x,
                                                      .OutputTensor = x,
                                                      .ValueDataType = DML_TENSOR_DATA_TYPE_FLOAT32,
                                                      .Value.Float32 = -1,
                                                      .DiagonalFillBegin = 1,
                                                      .DiagonalFillEnd = INT32_MAX };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { x, x, 1, axes };
    const DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC modulus = { x, x, x }; /* calls functions of its module */
    opjit_error error = { 0 };
    const void *data;
    uint64_t bytes;
    options.targets = targets;
    options.target_count = count;
    options.name = "tests";
    ck_assert_msg(opjit_artifact_create(f->context, &options, &artifact, &error) == OPJIT_OK, "%s", error.message);
    add_operator(f, artifact, "softmax", DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax, NULL);
    add_operator(f, artifact, "band", DML_OPERATOR_DIAGONAL_MATRIX1, &band, NULL);
    add_operator(f, artifact, "moving_band", DML_OPERATOR_DIAGONAL_MATRIX1, &band, "DiagonalFillBegin");
    add_operator(f, artifact, "fma_f32", DML_OPERATOR_ELEMENT_WISE_MODULUS_TRUNCATE, &modulus, NULL);
    add_graph(f, artifact);
    ck_assert_msg(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_SHARED, &data, &bytes, &error) == OPJIT_OK, "%s",
                  error.message);
    aot_write(&f->folder, "libtests", "so", data, bytes);
    f->size = (size_t)bytes;
    f->bytes = malloc(f->size);
    ck_assert_ptr_nonnull(f->bytes);
    memcpy(f->bytes, data, f->size);
    opjit_artifact_destroy(artifact);
}

/* False: no code can be generated here. */
static bool begin(fixture *f, const char *const *targets, uint32_t count)
{
    f->context = test_context_create();
    if (!test_have_codegen(f->context)) {
        opjit_context_destroy(f->context);
        return false;
    }
    aot_folder_begin(&f->folder);
    snprintf(f->path, sizeof f->path, "%s/libtests.so", f->folder.path);
    make_library(f, targets, count);
    return true;
}

static void end(fixture *f)
{
    aot_folder_end(&f->folder);
    free(f->bytes);
    opjit_context_destroy(f->context);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
static float x[ELEMENTS], y[ELEMENTS];

static void fill(void)
{
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        x[i] = (float)(i % 7);
        y[i] = 99;
    }
}

static opjit_status call(const opjit_kernel *kernel, const float *in, float *out, const uint64_t *param,
                         const opjit_executor *executor)
{
    const opjit_binding bindings[] = { { (void *)(uintptr_t)in, sizeof x }, { out, sizeof y } };
    opjit_call c = OPJIT_CALL_INIT;
    c.bindings = bindings;
    c.binding_count = 2;
    c.params = param;
    c.param_count = param != NULL;
    c.executor = executor;
    return opjit_kernel_call(kernel, &c, NULL);
}

/* Modulus of two inputs: the first one, and half of it plus one. */
static opjit_status call3(const opjit_kernel *kernel, const float *in, float *out)
{
    static float divisor[ELEMENTS];
    const opjit_binding bindings[] = { { (void *)(uintptr_t)in, sizeof x },
                                       { divisor, sizeof divisor },
                                       { out, sizeof y } };
    opjit_call c = OPJIT_CALL_INIT;
    c.bindings = bindings;
    c.binding_count = 3;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        divisor[i] = 1.25f + in[i] / 2;
    const opjit_status status = opjit_kernel_call(kernel, &c, NULL);
    for (uint32_t i = 0; i < ELEMENTS && status == OPJIT_OK; i++)
        ck_assert(out[i] == fmodf(in[i], divisor[i]));
    return status;
}

static void check_band(const float *out, int32_t first)
{
    for (int32_t row = 0; row < ROWS; row++)
        for (int32_t column = 0; column < COLUMNS; column++)
            ck_assert(out[row * COLUMNS + column] ==
                      (column - row >= first ? -1.0f : (float)((row * COLUMNS + column) % 7)));
}

static opjit_kernel *find(opjit_library *library, const char *name)
{
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };
    ck_assert_msg(opjit_library_find(library, name, &kernel, &error) == OPJIT_OK, "%s: %s", name, error.message);
    return kernel;
}

static void use_library(opjit_library *library)
{
    opjit_pool *pool;
    void (*function)(void);
    const void *in = x;
    void *out = y;
    int32_t begin = 3;
    const uint64_t param = 2;
    opjit_kernel *band = find(library, "band"), *moving = find(library, "moving_band");
    opjit_kernel *modulus = find(library, "fma_f32"), *plus = find(library, "plus_constant"),
                 *softmax = find(library, "softmax");
    ck_assert_int_eq(opjit_pool_create(NULL, 2, &pool, NULL), OPJIT_OK);
    fill();
    ck_assert_int_eq(call(band, x, y, NULL, NULL), OPJIT_OK);
    check_band(y, 1);
    ck_assert_int_eq(call(band, x, x, NULL, opjit_pool_executor(pool)), OPJIT_OK); /* in place */
    check_band(x, 1);
    fill();
    ck_assert_int_eq(call(moving, x, y, &param, NULL), OPJIT_OK);
    check_band(y, 2);
    ck_assert_int_eq(opjit_library_entry(library, "moving_band", OPJIT_ENTRY_TYPED, &function, NULL), OPJIT_OK);
    const opjit_status typed =
        opjit_typed_call(function, 3,
                         (DML_TENSOR_DATA_TYPE[]){ DML_TENSOR_DATA_TYPE_UNKNOWN, DML_TENSOR_DATA_TYPE_UNKNOWN,
                                                   DML_TENSOR_DATA_TYPE_INT32 },
                         (void *[]){ &in, &out, &begin }, NULL);
    if (typed != OPJIT_UNAVAILABLE)
        check_band(y, 3);
    ck_assert_int_eq(opjit_library_entry(library, "band", OPJIT_ENTRY_PACKED, &function, NULL), OPJIT_OK);
    ((void (*)(void *const *, const uint64_t *, void *))function)((void *[]){ x, y }, NULL, NULL);
    check_band(y, 1);
    ck_assert_int_eq(call(plus, x, y, NULL, opjit_pool_executor(pool)), OPJIT_OK);
    for (uint32_t i = 0; i < ELEMENTS; i++)
        ck_assert(y[i] == (float)i + x[i]);
    ck_assert_int_eq(call(softmax, x, y, NULL, opjit_pool_executor(pool)), OPJIT_OK);
    for (uint32_t row = 0; row < ROWS; row++) {
        double sum = 0;
        for (uint32_t column = 0; column < COLUMNS; column++)
            sum += y[row * COLUMNS + column];
        ck_assert(sum > 0.9999 && sum < 1.0001);
    }
    ck_assert_int_eq(call3(modulus, x, y), OPJIT_OK);
    opjit_library_close(library); /* kernels stay */
    ck_assert_int_eq(call(band, x, y, NULL, NULL), OPJIT_OK);
    check_band(y, 1);
    opjit_pool_destroy(pool);
    opjit_kernel_release(band);
    opjit_kernel_release(moving);
    opjit_kernel_release(plus);
    opjit_kernel_release(modulus);
    opjit_kernel_release(softmax);
}

START_TEST(opened)
{
    static const char *const names[] = { "band", "fma_f32", "moving_band", "plus_constant", "softmax" };
    fixture f;
    opjit_library *library;
    opjit_kernel *kernel;
    void (*function)(void);
    opjit_error error = { 0 };
    if (!begin(&f, (const char *[]){ "cpu:x86-64-v1", "cpu:x86-64-v4", "cpu:x86-64-v2" }, 3))
        return;
    ck_assert_msg(opjit_library_open(f.context, f.path, &library, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(opjit_library_count(library), 5);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_str_eq(opjit_library_name(library, i), names[i]);
    ck_assert_ptr_null(opjit_library_name(library, 5));
    ck_assert_int_eq(opjit_library_find(library, "ban", &kernel, &error), OPJIT_NOT_FOUND);
    ck_assert_str_eq(error.message, "library: there is no kernel \"ban\"");
    ck_assert_str_eq(error.value, "ban");
    test_require_place(&error);
    ck_assert_ptr_null(kernel);
    ck_assert_int_eq(opjit_library_find(library, "zebra", &kernel, &error), OPJIT_NOT_FOUND);
    ck_assert_int_eq(opjit_library_find(library, NULL, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_library_entry(library, "band", (opjit_entry)3, &function, &error), OPJIT_INVALID_ARGUMENT);
    use_library(library);
    end(&f);
}
END_TEST

/* Kernels name their buffers and parameters, which messages use.  A kernel that needs nothing else takes the call's
 * short path, as if it were compiled here. */
START_TEST(named)
{
    fixture f;
    opjit_library *library;
    opjit_kernel *kernel;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    opjit_binding bindings[2] = { { y, sizeof y }, { y, 4 } };
    if (!begin(&f, (const char *[]){ "cpu:x86-64-v1" }, 1))
        return;
    ck_assert_msg(opjit_library_open(f.context, f.path, &library, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_library_find(library, "plus_constant", &kernel, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_str_eq(opjit_kernel_buffer_name(&info, 0), "Query");
    ck_assert_str_eq(opjit_kernel_buffer_name(&info, 1), "Sum");
    ck_assert_ptr_null(opjit_kernel_buffer_name(&info, 3));
    ck_assert_ptr_null(opjit_kernel_param_name(&info, 0));
    call.bindings = bindings;
    call.binding_count = 2;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "binding 1 (Sum): 4 bytes given, 13440 needed");
    ck_assert_ptr_nonnull(atomic_load(&kernel->active)->only_step);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_library_find(library, "moving_band", &kernel, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_str_eq(opjit_kernel_buffer_name(&info, 0), "InputTensor");
    ck_assert_str_eq(opjit_kernel_param_name(&info, 0), "DiagonalFillBegin");
    ck_assert(atomic_load(&kernel->active)->plain);
    opjit_kernel_release(kernel);
    opjit_library_close(library);
    end(&f);
}
END_TEST

/* The same through the system's loader, which finds functions as well. */
START_TEST(loaded)
{
    fixture f;
    opjit_library *library;
    opjit_error error = { 0 };
    void (*band)(const float *, float *);
    int (*runs)(void);
    if (!begin(&f, (const char *[]){ "cpu:x86-64-v1", "cpu:x86-64-v4", "cpu:x86-64-v2" }, 3))
        return;
    void *handle = dlopen(f.path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    void *registry = dlsym(handle, "tests_registry"), *symbol = dlsym(handle, "band"),
         *check = dlsym(handle, "band_runs_here");
    ck_assert(registry != NULL && symbol != NULL && check != NULL);
    memcpy(&band, &symbol, sizeof band);
    memcpy(&runs, &check, sizeof runs);
    ck_assert_int_ne(runs(), 0);
    fill();
    band(x, y);
    check_band(y, 1);
    ck_assert_msg(opjit_library_of(f.context, registry, &library, &error) == OPJIT_OK, "%s", error.message);
    use_library(library);
    dlclose(handle);
    end(&f);
}
END_TEST

/* --- refusals ----------------------------------------------------------------------------------------------------- */
static opjit_status open_bytes(fixture *f, const void *bytes, size_t size, opjit_error *error)
{
    opjit_library *library = NULL;
    aot_write(&f->folder, "other", "so", bytes, size);
    char path[128];
    snprintf(path, sizeof path, "%s/other.so", f->folder.path);
    const opjit_status status = opjit_library_open(f->context, path, &library, error);
    ck_assert_int_eq(library == NULL, status != OPJIT_OK);
    opjit_library_close(library);
    return status;
}

/* Replaces the trailer's checksum by that of the current bytes. */
static void seal(uint8_t *bytes, size_t size)
{
    opjit_aot_trailer trailer;
    memcpy(&trailer, bytes + size - sizeof trailer, sizeof trailer);
    const rt_hash hash = opjit_rt_hash(bytes, size - sizeof trailer + offsetof(opjit_aot_trailer, hash_lo));
    trailer.hash_lo = hash.lo;
    trailer.hash_hi = hash.hi;
    memcpy(bytes + size - sizeof trailer, &trailer, sizeof trailer);
}

START_TEST(refused)
{
    fixture f;
    opjit_library *library = (opjit_library *)(uintptr_t)1;
    opjit_error error = { 0 };
    opjit_aot_trailer trailer;
    static const struct opjit_aot_registry empty = { .magic = "nothing" };
    if (!begin(&f, NULL, 0))
        return;
    ck_assert_int_eq(opjit_library_open(f.context, "/nowhere/at/all.so", &library, &error), OPJIT_NOT_FOUND);
    ck_assert_ptr_null(library);
    ck_assert_str_eq(error.message, "library path: /nowhere/at/all.so, can't be opened: No such file or directory");
    test_require_place(&error);
    ck_assert_int_eq(opjit_library_open(f.context, "/tmp", &library, &error), OPJIT_IO);
    ck_assert_str_eq(error.message, "library path: /tmp, it is no plain file");
    ck_assert_int_eq(error.retry, OPJIT_RETRY_LATER);
    test_require_place(&error);
    ck_assert_int_eq(opjit_library_open(f.context, NULL, &library, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(open_bytes(&f, "", 0, &error), OPJIT_CORRUPT);
    ck_assert_int_eq(open_bytes(&f, f.bytes, f.size - 1, &error), OPJIT_CORRUPT);
    ck_assert_ptr_nonnull(
        strstr(error.message, "/other.so: library trailer.magic: does not end as a library that opjit wrote"));
    ck_assert_int_eq(open_bytes(&f, f.bytes, f.size, &error), OPJIT_OK);
    uint8_t *const end_of = f.bytes + f.size - sizeof trailer;
    memcpy(&trailer, end_of, sizeof trailer);
    opjit_aot_trailer other = trailer;
    other.machine = 40;
    memcpy(end_of, &other, sizeof other);
    seal(f.bytes, f.size);
    ck_assert_int_eq(open_bytes(&f, f.bytes, f.size, &error), OPJIT_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "library trailer.machine: 40, must be "));
    ck_assert_str_eq(error.op, "library");
    ck_assert_str_eq(error.field, "trailer.machine");
    ck_assert_str_eq(error.value, "40");
    other = trailer;
    other.abi = OPJIT_AOT_ABI + 1;
    memcpy(end_of, &other, sizeof other);
    ck_assert_int_eq(open_bytes(&f, f.bytes, f.size, &error), OPJIT_UNSUPPORTED);
    ck_assert_int_eq(opjit_library_of(f.context, (const struct opjit_aot_registry *)(void *)f.bytes, &library, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_library_of(f.context, &empty, &library, &error), OPJIT_CORRUPT);
    ck_assert_int_eq(opjit_library_of(f.context, NULL, &library, &error), OPJIT_INVALID_ARGUMENT);
    end(&f);
}
END_TEST

/* A CPU without AVX-512 gets a message about what it lacks; one with it runs the kernel. */
START_TEST(runs_nowhere_here)
{
    fixture f;
    opjit_library *library;
    opjit_kernel *kernel;
    opjit_error error = { 0 };
    if (!begin(&f, (const char *[]){ "cpu:x86-64-v4+avx512fp16" }, 1))
        return;
    ck_assert_int_eq(opjit_library_open(f.context, f.path, &library, &error), OPJIT_OK);
    const opjit_status status = opjit_library_find(library, "band", &kernel, &error);
    ck_assert(status == OPJIT_OK || status == OPJIT_UNSUPPORTED);
    if (status == OPJIT_UNSUPPORTED) {
        const char head[] = "library: no version of band runs here: this CPU lacks avx512";
        ck_assert_msg(strncmp(error.message, head, sizeof head - 1) == 0, "%s", error.message);
        test_require_place(&error);
    }
    opjit_kernel_release(kernel);
    opjit_library_close(library);
    end(&f);
}
END_TEST

/* --- mutations ---------------------------------------------------------------------------------------------------- */

/* Changes a few bytes of [first, first + size). */
static void mutate(test_random *r, uint8_t *bytes, size_t first, size_t size)
{
    const uint64_t count = 1 + test_random_below(r, 3);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *at = bytes + first + test_random_below(r, size);
        const uint8_t was = *at;
        switch (test_random_below(r, 3)) {
        case 0: *at ^= (uint8_t)(1u << test_random_below(r, 8)); break;
        case 1: *at = (uint8_t)test_random_u64(r); break;
        default: *at = test_random_chance(r, 50) ? 0xff : 0; break;
        }
        if (*at == was)
            *at ^= 1;
    }
}

/* Any change of a library's file is noticed, and so is any change of its length. */
START_TEST(mutated_files)
{
    fixture f;
    uint64_t registry;
    const test_cases cases = test_cases_init("mutated libraries", 10000);
    if (!begin(&f, (const char *[]){ "cpu:x86-64-v1" }, 1))
        return;
    uint8_t *copy = malloc(f.size);
    ck_assert_ptr_nonnull(copy);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        size_t size = f.size;
        test_random_init(&r, cases.seed, 1, n);
        memcpy(copy, f.bytes, f.size);
        if (test_random_chance(&r, 10))
            size = (size_t)test_random_below(&r, f.size);
        else if (test_random_chance(&r, 20))
            mutate(&r, copy, f.size - 64, 64); /* its end */
        else
            mutate(&r, copy, 0, f.size);
        if (memcmp(copy, f.bytes, f.size) == 0 && size == f.size) /* two changes may cancel each other */
            continue;
        opjit_error error;
        ck_assert_int_ne(opjit_rt_library_check_file(copy, size, &registry, &error), OPJIT_OK);
        test_require_place(&error);
        if (n % 100 == 0)
            ck_assert_int_ne(open_bytes(&f, copy, size, &error), OPJIT_OK);
    }
    free(copy);
    end(&f);
}
END_TEST

/* Damage that no checksum reveals, as in a program's own memory: every kernel is found or refused, and nothing outside
 * is read (which the address sanitizer would notice). */
START_TEST(mutated_registries)
{
    fixture f;
    uint64_t registry, found = 0, useless = 0;
    const test_cases cases = test_cases_init("mutated registries", 10000);
    static const char *const names[] = { "band", "fma_f32", "moving_band", "plus_constant", "softmax" };
    if (!begin(&f, (const char *[]){ "cpu:x86-64-v1", "cpu:x86-64-v2" }, 2))
        return;
    ck_assert_int_eq(opjit_rt_library_check_file(f.bytes, f.size, &registry, NULL), OPJIT_OK);
    uint8_t *copy = aligned_alloc(4096, (f.size + 4095) / 4096 * 4096);
    ck_assert_ptr_nonnull(copy);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        const rt_span span = { copy, f.size, true };
        opjit_library *library;
        opjit_kernel *kernel;
        opjit_error error;
        test_random r;
        test_random_init(&r, cases.seed, 2, n);
        memcpy(copy, f.bytes, f.size);
        if (test_random_chance(&r, 50)) /* the registry, else any data or code */
            mutate(&r, copy, (size_t)registry, 128);
        else
            mutate(&r, copy, (size_t)registry, f.size - (size_t)registry);
        if (opjit_rt_library_make(f.context->core, copy + registry, &span, 1, (rt_mapping){ NULL, 0 }, &library,
                                  &error) != OPJIT_OK) {
            test_require_place(&error);
            useless++;
            continue;
        }
        for (int i = 0; i < 5; i++) {
            if (opjit_library_find(library, names[i], &kernel, &error) != OPJIT_OK) {
                test_require_place(&error);
                continue;
            }
            opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
            ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
            found += strlen(info.name) > 0;
            opjit_kernel_release(kernel);
        }
        opjit_library_close(library);
    }
    printf("%llu registries refused, %llu kernels found\n", (unsigned long long)useless, (unsigned long long)found);
    if (cases.end - cases.first > 100)
        ck_assert(useless > 0 && found > 0);
    free(copy);
    end(&f);
}
END_TEST

/* The entries of a kernel that claims to have no code could be anywhere. */
START_TEST(kernels_without_code)
{
    fixture f;
    uint64_t registry;
    opjit_library *library;
    opjit_kernel *kernel;
    opjit_error error;

    if (!begin(&f, (const char *[]){ "cpu:x86-64-v1" }, 1))
        return;
    ck_assert_int_eq(opjit_rt_library_check_file(f.bytes, f.size, &registry, NULL), OPJIT_OK);
    uint8_t *copy = aligned_alloc(4096, (f.size + 4095) / 4096 * 4096);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, f.bytes, f.size);
    opjit_aot_entry *entry = (opjit_aot_entry *)(void *)(copy + registry + sizeof(opjit_aot_registry));
    opjit_aot_kernel *record = (opjit_aot_kernel *)(void *)((uint8_t *)entry + entry->kernel);
    const rt_span span = { copy, f.size, true };
    record->code_size = 0;
    ck_assert_int_eq(
        opjit_rt_library_make(f.context->core, copy + registry, &span, 1, (rt_mapping){ NULL, 0 }, &library, NULL),
        OPJIT_OK);
    ck_assert_int_eq(opjit_library_find(library, opjit_library_name(library, 0), &kernel, &error), OPJIT_CORRUPT);
    ck_assert_str_eq(error.message, "image code_size: 0, must be 1 to 4294967295");
    opjit_library_close(library);
    free(copy);
    end(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.library");
    TCase *tcase = tcase_create("libraries");
    SRunner *runner = srunner_create(suite);
    tcase_add_test(tcase, opened);
    tcase_add_test(tcase, named);
    tcase_add_test(tcase, loaded);
    tcase_add_test(tcase, refused);
    tcase_add_test(tcase, runs_nowhere_here);
    tcase_add_test(tcase, mutated_files);
    tcase_add_test(tcase, mutated_registries);
    tcase_add_test(tcase, kernels_without_code);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
