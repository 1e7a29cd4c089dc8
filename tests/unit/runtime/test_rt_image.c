/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_image.c - images: built ones read back, damaged and forged ones are refused and never lead outside. */
#define _GNU_SOURCE
#include <check.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "runtime/image/image_layout.h"
#include "runtime/target/target.h"
#include "tests/support/require.h"
#include "tests/unit/runtime/rt_sample.h"

static rt_bytes image;
static sample made;

static void setup(void)
{
    opjit_error error;
    sample_init(&made);
    sample_use_param(&made);
    made.source.flops = 5;
    made.source.unproven_bounds = 3;
    made.source.shared_size = 1;
    ck_assert_msg(sample_build(&made, &image, &opjit_rt_default_allocator, &error) == OPJIT_OK, "%s", error.message);
}

static void teardown(void)
{
    opjit_rt_bytes_free(&image);
}

static opjit_status check(const void *bytes, size_t size, opjit_error *error)
{
    const opjit_kernel_meta *meta;
    const uint8_t *code;
    size_t code_size;
    return opjit_rt_image_check(bytes, size, &meta, &code, &code_size, error);
}

/* Makes the checksum true again, as who forges an image would. */
static void seal(uint8_t *bytes, size_t size)
{
    const rt_hash hash = opjit_rt_hash(bytes + HASHED_FROM, size - HASHED_FROM);
    memcpy(bytes + offsetof(image_header, hash_lo), &hash.lo, 8);
    memcpy(bytes + offsetof(image_header, hash_hi), &hash.hi, 8);
}

START_TEST(reads_back)
{
    const opjit_kernel_meta *meta;
    const uint8_t *code;
    size_t code_size;
    const opjit_buffer_info *buffers;
    const opjit_param_info *params;
    opjit_error error;

    ck_assert_int_eq(opjit_rt_image_check(image.data, image.size, &meta, &code, &code_size, &error), OPJIT_OK);
    ck_assert_uint_eq(code_size, sizeof sample_code);
    ck_assert_mem_eq(code, sample_code, sizeof sample_code);
    ck_assert_uint_eq((size_t)(code - image.data) % 64, 0);
    ck_assert_str_eq((const char *)meta + meta->name, "sample");
    ck_assert_str_eq((const char *)meta + meta->target, "cpu:x86-64-v1");
    ck_assert_uint_eq(meta->flops, 5);
    ck_assert_uint_eq(meta->unproven_bounds, 3);
    ck_assert_uint_eq(meta->kept_size, 0);
    ck_assert_uint_eq(meta->shared_size, 64); /* rounded: workers' scratch follows */
    buffers = (const opjit_buffer_info *)((const char *)meta + meta->buffer_info);
    params = (const opjit_param_info *)((const char *)meta + meta->param_info);
    ck_assert_str_eq((const char *)meta + buffers[1].name, "OutputTensor");
    ck_assert_str_eq((const char *)meta + params[0].name, "Begin");
    ck_assert_int_eq(params[0].lo, -3);
}
END_TEST

/* Metadata that ends earlier, at unproven_bounds as the first version or behind it, inside of what says what a kernel
 * keeps, too: all behind lies so much nearer to the begin, and nothing is kept. */
enum {
    FIRST_END = offsetof(opjit_kernel_meta, unproven_bounds),
    THIRD_END = offsetof(opjit_kernel_meta, dims),
    ENDS = (sizeof(opjit_kernel_meta) - FIRST_END) / 8
};
START_TEST(earlier_version)
{
    const uint32_t first = FIRST_END + 8 * (uint32_t)_i, more = sizeof(opjit_kernel_meta) - first;
    rt_bytes built;

    opjit_rt_bytes_init(&built, &opjit_rt_default_allocator);
    ck_assert_int_eq(opjit_rt_meta_build(&made.source, &built, NULL), OPJIT_OK);
    memmove(built.data + first, built.data + first + more, built.size - first - more);
    opjit_kernel_meta *const meta = (opjit_kernel_meta *)(void *)built.data;
    uint32_t *const offsets[] = { &meta->size,       &meta->name,      &meta->target,      &meta->buffer_info,
                                  &meta->param_info, &meta->step_info, &meta->variant_info };
    for (uint32_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        *offsets[i] -= more;
    opjit_buffer_info *const buffers = (opjit_buffer_info *)(void *)(built.data + meta->buffer_info);
    opjit_param_info *const params = (opjit_param_info *)(void *)(built.data + meta->param_info);
    for (uint32_t i = 0; i < meta->inputs + meta->outputs + meta->constants; i++)
        buffers[i].name -= buffers[i].name == 0 ? 0 : more;
    for (uint32_t i = 0; i < meta->params; i++)
        params[i].name -= params[i].name == 0 ? 0 : more;
    ck_assert_uint_lt(meta->buffer_info, sizeof *meta);
    if (first > offsetof(opjit_kernel_meta, kept_size) && first < THIRD_END)
        meta->kept_size = 64;
    ck_assert_uint_eq(rt_meta_kept(meta), 0);
    ck_assert_uint_eq(rt_meta_dims(meta), 0);
    ck_assert_int_eq(opjit_rt_meta_check(meta, meta->size, sizeof sample_code, NULL), OPJIT_OK);
    meta->buffer_info = FIRST_END - 8;
    ck_assert_int_eq(opjit_rt_meta_check(meta, meta->size, sizeof sample_code, NULL), OPJIT_CORRUPT);
    opjit_rt_bytes_free(&built);
}
END_TEST

START_TEST(deterministic)
{
    rt_bytes second;
    opjit_error error;
    ck_assert_int_eq(sample_build(&made, &second, &opjit_rt_default_allocator, &error), OPJIT_OK);
    ck_assert_uint_eq(second.size, image.size);
    ck_assert_mem_eq(second.data, image.data, image.size);
    opjit_rt_bytes_free(&second);
}
END_TEST

/* Code of AArch64 has its constants by their distance in pages, so it begins at one; that of others at a line. */
START_TEST(code_is_aligned)
{
    static const struct {
        rt_arch arch;
        size_t alignment;
    } rows[] = { { RT_ARCH_X86_64, 64 }, { RT_ARCH_AARCH64, 4096 }, { RT_ARCH_RISCV64, 64 } };
    const opjit_kernel_meta *meta;
    const uint8_t *code;
    size_t code_size;
    rt_bytes built;
    sample s;

    sample_init(&s);
    s.source.features[0] = opjit_rt_level_features(rows[_i].arch, 1);
    ck_assert_int_eq(sample_build(&s, &built, &opjit_rt_default_allocator, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_rt_image_check(built.data, built.size, &meta, &code, &code_size, NULL), OPJIT_OK);
    const size_t end = (size_t)((const uint8_t *)meta - built.data) + meta->size;
    const size_t at = (size_t)(code - built.data);
    ck_assert_uint_eq(at % rows[_i].alignment, 0);
    ck_assert(at >= end && at - end < rows[_i].alignment);
    ck_assert_mem_eq(code, sample_code, sizeof sample_code);
    ck_assert_uint_eq(at + sizeof sample_code, built.size);
    for (size_t i = end; i < at; i++)
        ck_assert_uint_eq(built.data[i], 0);
    /* the same bytes for a CPU whose code would have to lie elsewhere */
    const uint64_t other =
        opjit_rt_level_features(rows[_i].arch == RT_ARCH_AARCH64 ? RT_ARCH_X86_64 : RT_ARCH_AARCH64, 1);
    memcpy(built.data + sizeof(image_header) + offsetof(opjit_kernel_meta, features), &other, sizeof other);
    seal(built.data, built.size);
    ck_assert_int_eq(check(built.data, built.size, NULL), OPJIT_CORRUPT);
    opjit_rt_bytes_free(&built);
}
END_TEST

START_TEST(every_truncation)
{
    for (size_t size = 0; size < image.size; size++) {
        uint8_t *copy = malloc(size == 0 ? 1 : size); /* exact memory, so that a sanitizer sees a read past the end */
        opjit_error error;
        if (copy == NULL)
            ck_abort_msg("no memory");
        memcpy(copy, image.data, size);
        if (check(copy, size, &error) != OPJIT_CORRUPT)
            ck_abort_msg("%zu bytes are taken for an image", size);
        test_require_place(&error);
        ck_assert_str_eq(error.field, "bytes");
        free(copy);
    }
}
END_TEST

START_TEST(every_bit)
{
    opjit_error error;
    for (size_t bit = 0; bit < image.size * 8; bit++) {
        image.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (check(image.data, image.size, &error) != OPJIT_CORRUPT) /* an assertion a bit would take seconds */
            ck_abort_msg("bit %zu may be flipped", bit);
        test_require_place(&error);
        image.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    ck_assert_int_eq(check(image.data, image.size, &error), OPJIT_OK);
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Everything that readers of checked metadata follow. */
static uint64_t walk(const opjit_kernel_meta *meta, const uint8_t *code, size_t code_size)
{
    const char *base = (const char *)meta;
    const opjit_step_info *steps = (const opjit_step_info *)(base + meta->step_info);
    const opjit_variant_info *v = (const opjit_variant_info *)(base + meta->variant_info);
    uint64_t sum = strlen(base + meta->name) + strlen(base + meta->target);
    for (uint32_t i = 0; i < meta->inputs + meta->outputs + meta->constants; i++)
        sum += strlen(base + ((const opjit_buffer_info *)(base + meta->buffer_info))[i].name);
    for (uint32_t i = 0; i < meta->params; i++)
        sum += strlen(base + ((const opjit_param_info *)(base + meta->param_info))[i].name);
    do {
        for (uint32_t i = 0; i < v->steps; i++)
            sum += code_size == 0 ? 0 : code[steps[v->first_step + i].entry];
    } while (v++->alias_mask != 0);
    return sum;
}

/* Random damage under a true checksum: refused, or harmless to every reader (a sanitizer build sees to that). */
START_TEST(forged)
{
    uint64_t seed = 12345;
    unsigned good = 0, bad = 0;
    for (int round = 0; round < 20000; round++) {
        const size_t meta_end = sizeof(image_header) + ((const image_header *)(void *)image.data)->meta_size;
        uint8_t *copy = malloc(image.size);
        const opjit_kernel_meta *meta;
        const uint8_t *code;
        size_t code_size;
        opjit_error error;
        if (copy == NULL)
            ck_abort_msg("no memory");
        memcpy(copy, image.data, image.size);
        for (uint64_t n = 1 + next_random(&seed) % 3; n != 0; n--) {
            static const uint32_t values[] = { 0, 1, 8, 0x40, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff8 };
            const size_t at = HASHED_FROM + next_random(&seed) % (meta_end - HASHED_FROM - 4);
            const uint32_t value = values[next_random(&seed) % 8];
            if (next_random(&seed) % 2 == 0)
                memcpy(copy + (at & ~(size_t)3), &value, 4);
            else
                copy[at] = (uint8_t)next_random(&seed);
        }
        seal(copy, image.size);
        if (opjit_rt_image_check(copy, image.size, &meta, &code, &code_size, &error) == OPJIT_OK) {
            walk(meta, code, code_size);
            good++;
        } else {
            bad += error.status == OPJIT_CORRUPT;
            test_require_place(&error);
        }
        free(copy);
    }
    ck_assert_uint_gt(good, 100); /* else the walk above proved nothing */
    ck_assert_uint_gt(bad, 1000);
    ck_assert_uint_eq(good + bad, 20000);
}
END_TEST

enum { META, BUFFER0, BUFFER1, PARAM, STEP, VARIANT };
static const struct {
    const char *name, *field; /* field: where the error says that it is */
    int where;
    size_t offset, size;
    uint64_t value;
} forgeries[] = {
    { "abi", "abi", META, offsetof(opjit_kernel_meta, abi), 4, 3 },
    { "numerics", "numerics", META, offsetof(opjit_kernel_meta, numerics), 4, 9 },
    { "size", "size", META, offsetof(opjit_kernel_meta, size), 4, 8 },
    { "name offset", "name", META, offsetof(opjit_kernel_meta, name), 4, 0xfffffff0 },
    { "name in the struct", "name", META, offsetof(opjit_kernel_meta, name), 4, 4 },
    { "no output", "outputs", META, offsetof(opjit_kernel_meta, outputs), 4, 0 },
    { "inputs", "inputs", META, offsetof(opjit_kernel_meta, inputs), 4, 0xffffffff },
    { "params", "param_info", META, offsetof(opjit_kernel_meta, params), 4, 0x10000000 },
    { "steps", "step_info", META, offsetof(opjit_kernel_meta, steps), 4, 0x7fffffff },
    { "no variant", "variants", META, offsetof(opjit_kernel_meta, variants), 4, 0 },
    { "array misaligned", "step_info", META, offsetof(opjit_kernel_meta, step_info), 4, 0xd1 },
    { "array outside", "step_info", META, offsetof(opjit_kernel_meta, step_info), 4, 0xfffffff8 },
    { "shared size", "shared_size", META, offsetof(opjit_kernel_meta, shared_size), 8, 63 },
    { "kept size", "kept_size", META, offsetof(opjit_kernel_meta, kept_size), 8, 63 },
    { "kept by no step", "once_steps", META, offsetof(opjit_kernel_meta, kept_size), 8, 64 },
    { "once, first", "once_first", META, offsetof(opjit_kernel_meta, once_first), 4, 3 },
    { "once, steps", "once_steps", META, offsetof(opjit_kernel_meta, once_steps), 4, 0xffffffff },
    { "scratch size", "scratch_size", META, offsetof(opjit_kernel_meta, scratch_size), 8, UINT64_MAX - 63 },
    { "role", "buffer_info[0].role", BUFFER0, offsetof(opjit_buffer_info, role), 4, OPJIT_BUFFER_OUTPUT },
    { "dtype", "buffer_info[0].dtype", BUFFER0, offsetof(opjit_buffer_info, dtype), 4, DML_TENSOR_DATA_TYPE_INT4 + 1 },
    { "dtype number", "buffer_info[0].dtype", BUFFER0, offsetof(opjit_buffer_info, dtype), 4, 0xffffffff },
    { "rank 0", "buffer_info[0].rank", BUFFER0, offsetof(opjit_buffer_info, rank), 4, 0 },
    { "rank 9", "buffer_info[0].rank", BUFFER0, offsetof(opjit_buffer_info, rank), 4, 9 },
    { "alignment", "buffer_info[0].align", BUFFER0, offsetof(opjit_buffer_info, align), 4, 3 },
    { "alignment 0", "buffer_info[0].align", BUFFER0, offsetof(opjit_buffer_info, align), 4, 0 },
    { "size 0", "buffer_info[0].bytes", BUFFER0, offsetof(opjit_buffer_info, sizes), 8, 0 },
    { "size beyond bytes", "buffer_info[0].bytes", BUFFER0, offsetof(opjit_buffer_info, sizes), 8, 17 },
    { "span overflow", "buffer_info[0].bytes", BUFFER0, offsetof(opjit_buffer_info, strides), 8, UINT64_MAX },
    { "unused size", "buffer_info[0].bytes", BUFFER0, offsetof(opjit_buffer_info, sizes) + 56, 8, 2 },
    { "bytes", "buffer_info[0].bytes", BUFFER0, offsetof(opjit_buffer_info, bytes), 8, 15 },
    { "bytes beyond every tensor's", "buffer_info[0].bytes", BUFFER0, offsetof(opjit_buffer_info, bytes), 8,
      (UINT64_C(1) << 40) + 1 },
    { "input aliases", "buffer_info[0].alias_inputs", BUFFER0, offsetof(opjit_buffer_info, alias_inputs), 4, 1 },
    { "alias of no input", "buffer_info[1].alias_inputs", BUFFER1, offsetof(opjit_buffer_info, alias_inputs), 4, 2 },
    { "buffer name", "buffer_info[1].name", BUFFER1, offsetof(opjit_buffer_info, name), 4, 0x7fffffff },
    { "param dtype", "param_info[0].dtype", PARAM, offsetof(opjit_param_info, dtype), 4, 0 },
    { "param interval", "param_info[0].lo", PARAM, offsetof(opjit_param_info, lo), 8, 101 },
    { "param beyond its type", "param_info[0].lo", PARAM, offsetof(opjit_param_info, hi), 8, 0x80000000 },
    { "step kind", "step_info[0].kind", STEP, offsetof(opjit_step_info, kind), 4, 2 },
    { "step entry", "step_info[0].entry", STEP, offsetof(opjit_step_info, entry), 4, sizeof sample_code },
    { "step extent", "step_info[0].extent", STEP, offsetof(opjit_step_info, extent), 8, 0 },
    { "step grain", "step_info[0].grain", STEP, offsetof(opjit_step_info, grain), 8, 0 },
    { "variant mask", "variant_info[0].alias_mask", VARIANT, offsetof(opjit_variant_info, alias_mask), 8, 1 },
    { "variant first", "variant_info[0].first_step", VARIANT, offsetof(opjit_variant_info, first_step), 4, 3 },
    { "variant steps", "variant_info[0].steps", VARIANT, offsetof(opjit_variant_info, steps), 4, 0xffffffff },
};

START_TEST(forgery_row)
{
    uint8_t *meta_bytes = image.data + sizeof(image_header);
    const opjit_kernel_meta *meta = (const opjit_kernel_meta *)(void *)meta_bytes;
    const size_t bases[] = { 0,
                             meta->buffer_info,
                             meta->buffer_info + sizeof(opjit_buffer_info),
                             meta->param_info,
                             meta->step_info,
                             meta->variant_info };
    const uint32_t narrow = (uint32_t)forgeries[_i].value;
    opjit_error error;

    memcpy(meta_bytes + bases[forgeries[_i].where] + forgeries[_i].offset,
           forgeries[_i].size == 4 ? (const void *)&narrow : &forgeries[_i].value, forgeries[_i].size);
    seal(image.data, image.size);
    ck_assert_msg(check(image.data, image.size, &error) == OPJIT_CORRUPT, "%s", forgeries[_i].name);
    ck_assert_str_eq(error.op, "image");
    ck_assert_str_eq(error.field, forgeries[_i].field);
    ck_assert_int_eq(error.retry, OPJIT_RETRY_NEVER);
    test_require_place(&error);
}
END_TEST

/* --- images for GPUs ---------------------------------------------------------------------------------------------- */
static opjit_launch_info launch = { .shared_bytes = 64, .grid = { 3, 1, 1 }, .block = { 128, 1, 1 } };
static const char *launch_name = "sample_v0_s0";

static opjit_status build_launch(rt_bytes *out, opjit_error *error)
{
    static const char text[] = ".version 7.0";
    opjit_rt_bytes_free(&image);
    sample_init(&made);
    made.steps[0].kind = OPJIT_STEP_LAUNCH;
    made.source.features[0] = UINT64_C(1) << RT_NV_SM80;
    made.source.launches = &launch;
    made.source.launch_names = &launch_name;
    made.source.buffers = made.buffers;
    made.source.buffer_names = made.names;
    made.source.step_infos = made.steps;
    made.source.variant_infos = made.variants;
    opjit_rt_bytes_init(out, &opjit_rt_default_allocator);
    return opjit_rt_image_build(&made.source, text, sizeof text, out, error);
}

START_TEST(launches_read_back)
{
    const opjit_kernel_meta *meta;
    const uint8_t *code;
    size_t code_size;
    opjit_error error;
    ck_assert_msg(build_launch(&image, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_rt_image_check(image.data, image.size, &meta, &code, &code_size, &error), OPJIT_OK);
    ck_assert_str_eq((const char *)code, ".version 7.0");
    const opjit_step_info *step = (const opjit_step_info *)(const void *)((const char *)meta + meta->step_info);
    const opjit_launch_info *l = (const opjit_launch_info *)(const void *)((const char *)meta + step->entry);
    ck_assert_uint_eq(step->kind, OPJIT_STEP_LAUNCH);
    ck_assert_str_eq((const char *)meta + l->name, launch_name);
    ck_assert(l->shared_bytes == 64 && l->grid[0] == 3 && l->grid[2] == 1 && l->block[0] == 128 && l->block[1] == 1);
}
END_TEST

/* Fields of the launch (where 0), of the step (1), and the last byte of the text (2). */
static const struct {
    const char *name;
    uint32_t where, offset, value;
} forged_launches[] = {
    { "no blocks", 0, offsetof(opjit_launch_info, grid), 0 },
    { "a grid of no driver's", 0, offsetof(opjit_launch_info, grid), UINT32_MAX },
    { "layers of no driver's", 0, offsetof(opjit_launch_info, grid) + 8, 65536 },
    { "no threads", 0, offsetof(opjit_launch_info, block), 0 },
    { "a block too large", 0, offsetof(opjit_launch_info, block), 1025 },
    { "a block too large by its depth", 0, offsetof(opjit_launch_info, block) + 8, 9 },
    { "threads that overflow", 0, offsetof(opjit_launch_info, block) + 4, 0x80000000 },
    { "shared memory of no device's", 0, offsetof(opjit_launch_info, shared_bytes), 0x7fffffff },
    { "no name", 0, offsetof(opjit_launch_info, name), 0 },
    { "a name outside", 0, offsetof(opjit_launch_info, name), 0x10000 },
    { "a stage", 1, offsetof(opjit_step_info, kind), OPJIT_STEP_STAGE },
    { "a call", 1, offsetof(opjit_step_info, kind), OPJIT_STEP_CUSTOM },
    { "another kind", 1, offsetof(opjit_step_info, kind), 3 },
    { "a launch outside", 1, offsetof(opjit_step_info, entry), 0x7ffffff8 },
    { "a launch at an odd place", 1, offsetof(opjit_step_info, entry), 121 },
    { "a text without an end", 2, 0, 'x' },
};

START_TEST(forged_launch)
{
    opjit_error error;
    ck_assert_int_eq(build_launch(&image, &error), OPJIT_OK);
    uint8_t *meta_bytes = image.data + sizeof(image_header);
    const opjit_kernel_meta *meta = (const opjit_kernel_meta *)(void *)meta_bytes;
    const opjit_step_info *step = (const opjit_step_info *)(void *)(meta_bytes + meta->step_info);
    uint8_t *at = forged_launches[_i].where == 0   ? meta_bytes + step->entry
                  : forged_launches[_i].where == 1 ? meta_bytes + meta->step_info
                                                   : image.data + image.size - 1;
    memcpy(at + forged_launches[_i].offset, &forged_launches[_i].value, forged_launches[_i].where == 2 ? 1 : 4);
    seal(image.data, image.size);
    ck_assert_msg(check(image.data, image.size, &error) == OPJIT_CORRUPT, "%s", forged_launches[_i].name);
    ck_assert_str_eq(error.field, forged_launches[_i].where == 2 ? "code"
                                  : forged_launches[_i].where == 0 || forged_launches[_i].offset != 0
                                      ? "step_info[0].entry"
                                      : "step_info[0].kind");
    test_require_place(&error);
}
END_TEST

/* A launch is nothing for a CPU. */
START_TEST(launch_on_cpu)
{
    const opjit_kernel_meta *meta = (const opjit_kernel_meta *)(void *)(image.data + sizeof(image_header));
    const uint32_t kind = OPJIT_STEP_LAUNCH;
    opjit_error error;
    memcpy(image.data + sizeof(image_header) + meta->step_info, &kind, sizeof kind);
    seal(image.data, image.size);
    ck_assert_int_eq(check(image.data, image.size, &error), OPJIT_CORRUPT);
    ck_assert_str_eq(error.message, "image step_info[0].kind: 2, must be 0 or 1 on this target");
}
END_TEST

START_TEST(build_refuses)
{
    rt_bytes out;
    opjit_error error;
    made.buffers[1].rank = 0;
    ck_assert_int_eq(sample_build(&made, &out, &opjit_rt_default_allocator, &error), OPJIT_INTERNAL);
    ck_assert_int_eq(error.status, OPJIT_INTERNAL);
    opjit_rt_bytes_free(&out);
    sample_init(&made);
    made.source.steps = 1u << 20;
    ck_assert_int_eq(sample_build(&made, &out, &opjit_rt_default_allocator, &error), OPJIT_LIMIT);
    ck_assert_str_eq(error.message, "kernel steps: 1048576, must be at most 65536");
    ck_assert_str_eq(error.op, "kernel");
    ck_assert_str_eq(error.field, "steps");
    opjit_rt_bytes_free(&out);
    ck_assert_int_eq(check(image.data + 1, image.size - 1, &error), OPJIT_INVALID_ARGUMENT); /* misaligned */
}
END_TEST

START_TEST(build_without_memory)
{
    bool done = false;
    for (int fail_at = 1; !done; fail_at++) {
        counting c;
        const opjit_allocator a = counting_allocator(&c, fail_at);
        rt_bytes out;
        const opjit_status status = sample_build(&made, &out, &a, NULL);
        done = status == OPJIT_OK;
        ck_assert(done || status == OPJIT_OUT_OF_MEMORY);
        opjit_rt_bytes_free(&out);
        ck_assert_int_eq(c.live, 0);
    }
}
END_TEST

#if defined(__x86_64__)
static void run_mapped(const rt_mapping *mapping)
{
    uint8_t in[4] = { 1, 2, 3, 255 }, out[4] = { 0 };
    void *buffers[2] = { in, out };
    const uint8_t *entry = (const uint8_t *)mapping->base + ((const image_header *)mapping->base)->code_offset;
    opjit_stage_fn stage;
    memcpy(&stage, &entry, sizeof stage);
    stage(buffers, NULL, NULL, NULL, 1, 4);
    ck_assert(out[0] == 0 && out[1] == 3 && out[2] == 4 && out[3] == 0);
}

START_TEST(maps_and_runs)
{
    rt_mapping mapping;
    opjit_error error;
    ck_assert_int_eq(opjit_rt_map_code(NULL, image.data, image.size, &mapping, &error), OPJIT_OK);
    run_mapped(&mapping);
    opjit_rt_unmap_code(&mapping);
    ck_assert_ptr_null(mapping.base);
    opjit_rt_unmap_code(&mapping);
}
END_TEST

/* More images than a chunk of pages holds, taken away in another order; a large one has a mapping of its own. */
START_TEST(maps_in_pages)
{
    enum { COUNT = 40 };
    rt_code_pages pages = { .next = NULL };
    static uint8_t large[64 * 4096];
    rt_mapping mappings[COUNT], other;
    rt_process process;
    opjit_error error;

    opjit_rt_process_init(&process);
    opjit_rt_lock_init(&pages.lock, &process);
    opjit_rt_code_pages_prepare(&pages);
    ck_assert_ptr_nonnull(pages.next);
    const uint8_t *const prepared = pages.next;
    for (unsigned i = 0; i < COUNT; i++) {
        ck_assert_int_eq(opjit_rt_map_code(&pages, image.data, image.size, &mappings[i], &error), OPJIT_OK);
        ck_assert(i != 0 || mappings[i].base == prepared);
        for (unsigned k = 0; k < i; k++)
            ck_assert((uint8_t *)mappings[k].base + mappings[k].size <= (uint8_t *)mappings[i].base ||
                      (uint8_t *)mappings[i].base + mappings[i].size <= (uint8_t *)mappings[k].base);
    }
    const uint8_t *const next = pages.next;
    ck_assert_int_eq(opjit_rt_map_code(&pages, large, sizeof large, &other, &error), OPJIT_OK);
    ck_assert_ptr_eq(pages.next, next);
    opjit_rt_unmap_code(&other);
    for (unsigned i = 0; i < COUNT; i += 2)
        opjit_rt_unmap_code(&mappings[i]);
    opjit_rt_code_pages_free(&pages);
    for (unsigned i = 1; i < COUNT; i += 2) {
        run_mapped(&mappings[i]);
        opjit_rt_unmap_code(&mappings[i]);
    }
    opjit_rt_process_free(&process);
}
END_TEST

/* A process that may not make written memory executable (Check forks: the setting ends with the test). */
START_TEST(maps_without_flip)
{
    rt_mapping mapping;
    rt_process process;
    opjit_error error;
#if defined(PR_SET_MDWE)
    const int setting = PR_SET_MDWE;
#else
    const int setting = 65;
#endif
    if (prctl(setting, 1UL, 0UL, 0UL, 0UL) != 0)
        return; /* an older kernel */
    rt_code_pages pages = { .next = NULL };
    opjit_rt_process_init(&process);
    opjit_rt_lock_init(&pages.lock, &process);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_msg(opjit_rt_map_code(i == 0 ? NULL : &pages, image.data, image.size, &mapping, &error) == OPJIT_OK,
                      "%s", error.message);
        run_mapped(&mapping);
        opjit_rt_unmap_code(&mapping);
    }
    opjit_rt_code_pages_free(&pages);
    opjit_rt_process_free(&process);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("rt.image");
    TCase *tc = tcase_create("image");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, reads_back);
    tcase_add_loop_test(tc, earlier_version, 0, ENDS);
    tcase_add_test(tc, deterministic);
    tcase_add_loop_test(tc, code_is_aligned, 0, 3);
    tcase_add_test(tc, every_truncation);
    tcase_add_test(tc, every_bit);
    tcase_add_test(tc, forged);
    tcase_add_loop_test(tc, forgery_row, 0, sizeof forgeries / sizeof *forgeries);
    tcase_add_test(tc, launches_read_back);
    tcase_add_loop_test(tc, forged_launch, 0, sizeof forged_launches / sizeof *forged_launches);
    tcase_add_test(tc, launch_on_cpu);
    tcase_add_test(tc, build_refuses);
    tcase_add_test(tc, build_without_memory);
#if defined(__x86_64__)
    tcase_add_test(tc, maps_and_runs);
    tcase_add_test(tc, maps_in_pages);
    tcase_add_test(tc, maps_without_flip);
#endif
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
