/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_load.c - kernels as images: what opjit_kernel_get_image hands out comes back by opjit_kernel_load, and
 * nothing that is damaged, foreign or misses its constants does. */
#include <check.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdalign.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/image/image_layout.h"
#include "runtime/target/target.h"
#include "tests/support/random.h"
#include "tests/unit/runtime/rt_sample.h"

static counting memory;
static opjit_context *context;
static opjit_kernel *kernel;
static sample s;
static rt_bytes image;
static opjit_error error;

static void setup(void)
{
    const opjit_allocator a = counting_allocator(&memory, 0);
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    options.allocator = &a;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    sample_init(&s);
    s.source.features[0] = opjit_rt_level_features(RT_ARCH_X86_64, 1);
    ck_assert_int_eq(sample_build(&s, &image, &context->core->allocator, NULL), OPJIT_OK);
    kernel = NULL;
}

static void teardown(void)
{
    opjit_kernel_release(kernel);
    opjit_rt_bytes_free(&image);
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

static opjit_status load(const void *bytes, size_t size)
{
    return opjit_kernel_load(context, bytes, size, NULL, 0, &kernel, &error);
}

static void expect_sum(void)
{
    uint8_t in[SAMPLE_ELEMENTS] = { 1, 2, 3, 255 }, out[SAMPLE_ELEMENTS] = { 0 };
    const opjit_binding bindings[] = { { in, sizeof in }, { out, sizeof out } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (int i = 0; i < SAMPLE_ELEMENTS; i++)
        ck_assert_uint_eq(out[i], (uint8_t)(in[i] + 1));
}

/* Into another context, after the first is gone. */
START_TEST(comes_back)
{
    const void *bytes;
    uint64_t size;
    rt_bytes copy;
    ck_assert_msg(load(image.data, image.size) == OPJIT_OK, "%s", error.message);
    expect_sum();
    ck_assert_int_eq(opjit_kernel_get_image(kernel, &bytes, &size, &error), OPJIT_OK);
    ck_assert_uint_eq(size, image.size);
    ck_assert_mem_eq(bytes, image.data, image.size);
    opjit_rt_bytes_init(&copy, &opjit_rt_default_allocator);
    opjit_rt_bytes_append(&copy, bytes, (size_t)size);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(load(copy.data, copy.size), OPJIT_OK);
    opjit_rt_bytes_free(&copy); /* the kernel has its own */
    expect_sum();
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK);
    expect_sum();
}
END_TEST

START_TEST(no_mutation_is_loaded)
{
    test_random r;
    uint8_t *const copy = malloc(image.size);
    ck_assert_ptr_nonnull(copy);
    for (uint64_t n = 0; n < 10000; n++) {
        size_t size = image.size;
        test_random_init(&r, 1, 0, n);
        memcpy(copy, image.data, size);
        if (test_random_chance(&r, 20))
            size = (size_t)test_random_below(&r, size);
        else
            for (uint64_t i = test_random_below(&r, 4) + 1; i-- > 0;)
                copy[test_random_below(&r, size)] ^= (uint8_t)(1 + test_random_below(&r, 255));
        if (size == image.size && memcmp(copy, image.data, size) == 0)
            continue;
        ck_assert_msg(load(copy, size) == OPJIT_CORRUPT, "mutation %d", (int)n);
        ck_assert_ptr_null(kernel);
    }
    free(copy);
}
END_TEST

static void rebuild(void)
{
    opjit_rt_bytes_free(&image);
    ck_assert_int_eq(sample_build(&s, &image, &context->core->allocator, NULL), OPJIT_OK);
}

START_TEST(what_is_refused)
{
    _Alignas(8) uint8_t odd[64] = { 0 };
    ck_assert_int_eq(load(odd + 4, sizeof odd - 4), OPJIT_INVALID_ARGUMENT);
    s.source.features[0] = opjit_rt_level_features(RT_ARCH_AARCH64, 1);
    rebuild();
    ck_assert_int_eq(load(image.data, image.size), OPJIT_UNSUPPORTED);
    s.source.features[0] = 0;
    s.source.features[1] = 1;
    rebuild();
    ck_assert_int_eq(load(image.data, image.size), OPJIT_UNSUPPORTED);
    s.source.features[1] = 0;
    s.steps[0].kind = OPJIT_STEP_CUSTOM;
    rebuild();
    ck_assert_int_eq(load(image.data, image.size), OPJIT_UNSUPPORTED);
    s.steps[0].kind = OPJIT_STEP_STAGE;
    s.code_size = 0; /* nothing here could interpret it */
    rebuild();
    ck_assert_int_eq(load(image.data, image.size), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(kernel);
}
END_TEST

START_TEST(constants)
{
    static const uint8_t table[SAMPLE_ELEMENTS];
    const void *pointers[2] = { NULL, NULL };
    s.source.constants = 1;
    rebuild();
    ck_assert_int_eq(load(image.data, image.size), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "constant_count: 0, the image has 1");
    for (uint32_t count = 0; count <= 2; count++)
        ck_assert_int_eq(opjit_kernel_load(context, image.data, image.size, pointers, count, &kernel, &error),
                         OPJIT_INVALID_ARGUMENT);
    pointers[0] = table;
    ck_assert_int_eq(opjit_kernel_load(context, image.data, image.size, pointers, 1, &kernel, &error), OPJIT_OK);
    expect_sum();
}
END_TEST

#if defined(__x86_64__)
/* Calls k with memory of its own for each buffer; false: it would take too much. */
static bool call_loaded(const opjit_kernel *k)
{
    static alignas(64) uint8_t pages[1 << 20];
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_binding bindings[64];
    uint64_t params[64], at = 0;

    ck_assert_int_eq(opjit_kernel_get_info(k, &info, &error), OPJIT_OK);
    ck_assert_uint_eq(strlen(info.name) + strlen(info.target) < image.size, true);
    if (info.inputs + info.outputs > 64 || info.param_count > 64 || info.workspace_bytes > sizeof pages)
        return false;
    for (uint32_t i = 0; i < info.inputs + info.outputs; i++) {
        if (info.buffers[i].bytes > sizeof pages - at || info.buffers[i].align > 64)
            return false;
        bindings[i] = (opjit_binding){ pages + at, info.buffers[i].bytes };
        at = (at + info.buffers[i].bytes + 63) / 64 * 64;
    }
    for (uint32_t i = 0; i < info.param_count; i++)
        params[i] = (uint64_t)info.params[i].lo;
    call.bindings = bindings;
    call.binding_count = info.inputs + info.outputs;
    call.params = params;
    call.param_count = info.param_count;
    ck_assert_msg(opjit_kernel_call(k, &call, &error) == OPJIT_OK, "%s", error.message);
    return true;
}

/* Metadata that is damaged under a right checksum, above code that only returns: refused, or a kernel that can be asked
 * and called (the address sanitizer sees what is read outside). */
START_TEST(mutated_metadata)
{
    const test_cases cases = test_cases_init("mutated metadata", 20000);
    const size_t meta_size = ((const opjit_kernel_meta *)(const void *)(image.data + sizeof(image_header)))->size;
    uint64_t refused = 0, called = 0;
    uint8_t *copy;

    sample_use_param(&s);
    s.source.variants = 2;
    s.source.shared_size = 64;
    s.buffers[1].alias_inputs = 1;
    s.variants[0] = (opjit_variant_info){ 1, 0, 2 };
    s.variants[1] = (opjit_variant_info){ 0, 1, 1 };
    rebuild();
    memset(image.data + image.size - sizeof sample_code, 0xc3, sizeof sample_code);
    copy = malloc(image.size);
    ck_assert_ptr_nonnull(copy);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, 5, n);
        memcpy(copy, image.data, image.size);
        for (uint64_t i = test_random_below(&r, 3) + 1; i-- > 0;) {
            static const uint64_t corners[] = { 0,   1,     2,         3,          8,         64,
                                                255, 65536, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX };
            const uint64_t value = corners[test_random_below(&r, sizeof corners / sizeof *corners)];
            const size_t bytes = (size_t)1 << test_random_below(&r, 4);
            memcpy(copy + sizeof(image_header) + test_random_below(&r, meta_size / bytes) * bytes, &value, bytes);
        }
        const rt_hash hash = opjit_rt_hash(copy + HASHED_FROM, image.size - HASHED_FROM);
        memcpy(copy + offsetof(image_header, hash_lo), &hash.lo, 8);
        memcpy(copy + offsetof(image_header, hash_hi), &hash.hi, 8);
        if (load(copy, image.size) == OPJIT_OK)
            called += call_loaded(kernel);
        else
            refused++;
        opjit_kernel_release(kernel);
        kernel = NULL;
    }
    printf("%llu images refused, %llu kernels called\n", (unsigned long long)refused, (unsigned long long)called);
    if (cases.end - cases.first > 100)
        ck_assert(refused > 0 && called > 0);
    free(copy);
}
END_TEST
#endif

/* Another image in the caller's memory, from the given call of the allocator on: somebody else writes there, too. */
static struct changing {
    const uint8_t *other;
    int calls, at;
} changing;

static void *change_and_allocate(void *user, size_t size, size_t alignment)
{
    if (changing.other != NULL && changing.calls++ == changing.at)
        memcpy(image.data, changing.other, image.size);
    return opjit_rt_default_allocator.allocate(user, size, alignment);
}

static void release_memory(void *user, void *at, size_t size)
{
    opjit_rt_default_allocator.release(user, at, size);
}

START_TEST(memory_that_changes_while_it_is_loaded)
{
    const opjit_allocator a = { NULL, change_and_allocate, release_memory };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    static const uint8_t table[SAMPLE_ELEMENTS];
    const void *pointers[2] = { table, NULL };
    opjit_context *theirs;
    rt_bytes before, after;

    options.allocator = &a;
    ck_assert_int_eq(opjit_context_create(&options, &theirs, NULL), OPJIT_OK);
    s.source.outputs = 2; /* as many buffers, so as many bytes */
    s.buffers[2] = sample_buffer(OPJIT_BUFFER_OUTPUT, SAMPLE_ELEMENTS);
    ck_assert_int_eq(sample_build(&s, &after, &opjit_rt_default_allocator, NULL), OPJIT_OK);
    s.source.outputs = 1;
    s.source.constants = 1;
    s.buffers[2] = sample_buffer(OPJIT_BUFFER_CONSTANT, SAMPLE_ELEMENTS);
    ck_assert_int_eq(sample_build(&s, &before, &opjit_rt_default_allocator, NULL), OPJIT_OK);
    ck_assert_uint_eq(before.size, after.size);
    for (changing.at = 0; changing.at < 8; changing.at++) {
        opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
        rebuild();
        ck_assert_mem_eq(image.data, before.data, before.size);
        changing.calls = 0;
        changing.other = after.data;
        const opjit_status status = opjit_kernel_load(theirs, image.data, image.size, pointers, 1, &kernel, &error);
        changing.other = NULL;
        if (changing.at == 0) { /* before the copy was made: the other image, as a whole */
            ck_assert_int_eq(status, OPJIT_INVALID_ARGUMENT);
            ck_assert_str_eq(error.message, "constant_count: 1, the image has 0");
            continue;
        }
        ck_assert_msg(status == OPJIT_OK, "%s", error.message);
        ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
        ck_assert(info.outputs == 1 && info.meta->constants == 1);
        opjit_kernel_release(kernel);
        kernel = NULL;
    }
    opjit_rt_bytes_free(&before);
    opjit_rt_bytes_free(&after);
    opjit_context_destroy(theirs);
}
END_TEST

/* From now on memory that was written can't be made executable, for this process and its children. */
static bool forbid_flips(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof code / sizeof *code, code };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Code that is mapped as a file is its process's own: a child can't change what its parent runs. */
START_TEST(children_cannot_write_into_code)
{
    const void *bytes;
    uint64_t size;
    int status;

    if (!forbid_flips()) {
        puts("skipped: no seccomp filters here");
        return;
    }
    ck_assert_msg(load(image.data, image.size) == OPJIT_OK, "%s", error.message);
    expect_sum();
    ck_assert_int_eq(opjit_kernel_get_image(kernel, &bytes, &size, &error), OPJIT_OK);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (mprotect((void *)(uintptr_t)bytes, 1, PROT_READ | PROT_WRITE) == 0)
            memset((void *)(uintptr_t)bytes, 0, (size_t)size);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_mem_eq(bytes, image.data, image.size);
    expect_sum();
}
END_TEST

static opjit_status interpret(void *user, uint32_t step, void *const *buffers, const uint64_t *params, void *shared,
                              void *scratch, uint64_t begin, uint64_t end, opjit_error *e)
{
    (void)user, (void)step, (void)buffers, (void)params, (void)shared, (void)scratch, (void)begin, (void)end, (void)e;
    return OPJIT_OK;
}

START_TEST(interpreted_kernels_have_no_image)
{
    const rt_kernel_hooks hooks = { .interpret = interpret };
    const void *bytes = &hooks;
    uint64_t size = 1;
    s.code_size = 0;
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, &hooks, &kernel, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_get_image(kernel, &bytes, &size, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "kernel sample is interpreted, so it has no image");
    ck_assert(bytes == NULL && size == 0);
}
END_TEST

START_TEST(without_memory)
{
    bool done = false;
    for (int fail_at = 1; !done; fail_at++) {
        memory.calls = 0;
        memory.fail_at = fail_at;
        const opjit_status status = load(image.data, image.size);
        done = memory.calls < fail_at;
        memory.fail_at = 0;
        ck_assert_int_eq(status, done ? OPJIT_OK : OPJIT_OUT_OF_MEMORY);
    }
    expect_sum();
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("rt.load");
    TCase *const tcase = tcase_create("load");
    SRunner *const runner = srunner_create(suite);
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, comes_back);
    tcase_add_test(tcase, no_mutation_is_loaded);
    tcase_add_test(tcase, what_is_refused);
    tcase_add_test(tcase, constants);
#if defined(__x86_64__)
    tcase_add_test(tcase, mutated_metadata);
#endif
    tcase_add_test(tcase, memory_that_changes_while_it_is_loaded);
    tcase_add_test(tcase, children_cannot_write_into_code);
    tcase_add_test(tcase, interpreted_kernels_have_no_image);
    tcase_add_test(tcase, without_memory);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
