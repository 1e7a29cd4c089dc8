/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_target.c - target strings in and out, the host, and what may run here. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/target/target.h"

static const struct {
    const char *given, *want;
} texts[] = {
    { "cpu:x86-64", "cpu:x86-64-v1" },
    { "cpu:x86-64-v3", "cpu:x86-64-v3" },
    { "cpu:x86-64-v4,l3=8388608,vec=64,tune=generic", "cpu:x86-64-v4" }, /* defaults are not written */
    { "cpu:x86-64-v3,l1=49152,tune=znver3", "cpu:x86-64-v3,tune=znver3,l1=49152" },
    { "cpu:x86-64-v3,vec=16", "cpu:x86-64-v3,vec=16" },
    { "cpu:x86-64-v2+avx2", "cpu:x86-64-v2+avx+avx2" }, /* what it builds on is named */
    { "cpu:x86-64-v2+avx2+bmi+bmi2+f16c+fma+lzcnt+movbe+xsave", "cpu:x86-64-v3" },
    { "cpu:x86-64-v3+avx2+avx2", "cpu:x86-64-v3" },
    { "cpu:x86-64-v3,l3=0", "cpu:x86-64-v3,l3=0" },
    { "cpu:znver2", "cpu:x86-64-v3+clzero,tune=znver2,l3=16777216" },
    { "cpu:znver2,l3=8388608,tune=generic", "cpu:x86-64-v3+clzero" },
    { "cpu:haswell+avx512f", "cpu:x86-64-v3+avx512f+ermsb,tune=haswell,l2=262144" },
    { "cpu:graniterapids",
      "cpu:x86-64-v4+avx512vnni+avx512vbmi+avx512vbmi2+avx512bitalg+avx512vpopcntdq+avx512fp16+ermsb+fsrm,"
      "tune=graniterapids,l1=49152,l2=2097152,l3=301989888" },
    { "cpu:x86-64-v1,l2=262144", "cpu:x86-64-v1" },
    { "cpu:aarch64", "cpu:aarch64" },
    { "cpu:aarch64+sve2", "cpu:aarch64+sve+sve2" },
    { "cpu:aarch64+sve,vec=32", "cpu:aarch64+sve+sve256" }, /* the length is a feature */
    { "cpu:aarch64+sve+sve256,vec=16", "cpu:aarch64+sve+sve256,vec=16" },
    { "cpu:a64fx", "cpu:aarch64+sve+sve256+sve512,tune=a64fx,l1=65536,l2=8388608,l3=0" },
    { "cpu:neoverse-n1,l3=8388608", "cpu:aarch64,tune=neoverse-n1,l1=65536,l2=1048576" },
    { "cpu:rv64gc", "cpu:rv64gc" },
    { "cpu:rv64gc+v", "cpu:rv64gcv" },
    { "cpu:rv64gcv,vec=16", "cpu:rv64gcv" },
    { "cpu:rv64gcv,l1=65536,vec=64", "cpu:rv64gcv+zvl256b+zvl512b,l1=65536" },
    { "cpu:sifive-u74", "cpu:rv64gc+zba+zbb,tune=sifive-u74,l2=2097152,l3=0" },
    { "nvptx:sm_80", "nvptx:sm_80" },
    { "nvptx:sm_80+sm_90", "nvptx:sm_90" },
    { "spirv", "spirv:opencl" },
    { "spirv:opencl", "spirv:opencl" },
};

START_TEST(canonical_row)
{
    rt_target target, again;
    opjit_error error;
    ck_assert_msg(opjit_rt_target_parse(texts[_i].given, &target, &error) == OPJIT_OK, "%s: %s", texts[_i].given,
                  error.message);
    ck_assert_str_eq(target.text, texts[_i].want);
    ck_assert_int_eq(opjit_rt_target_parse(target.text, &again, &error), OPJIT_OK);
    ck_assert_mem_eq(&target, &again, sizeof target);
}
END_TEST

static const struct {
    const char *given;
    opjit_status status;
    const char *part; /* of the message */
} refusals[] = {
    { "", OPJIT_INVALID_ARGUMENT, "does not begin with 'cpu:'" },
    { "x86-64-v3", OPJIT_INVALID_ARGUMENT, "does not begin with 'cpu:'" },
    { "cpu:", OPJIT_INVALID_ARGUMENT, "is unknown" },
    { "cpu:sm_90", OPJIT_INVALID_ARGUMENT, "cpu:sm_90 is unknown" },
    { "nvptx:", OPJIT_INVALID_ARGUMENT, "known: sm_80, sm_90, sm_100, sm_120" },
    { "nvptx:host", OPJIT_INVALID_ARGUMENT, "nvptx:host is unknown" },
    { "nvptx:sm_90+avx", OPJIT_INVALID_ARGUMENT, "feature +avx is unknown" },
    { "nvptx:sm_90,vec=32", OPJIT_INVALID_ARGUMENT, "vec=32" },
    { "spirv:vulkan", OPJIT_INVALID_ARGUMENT, "known: opencl" },
    { "nvptx:sm_90,tune=znver3", OPJIT_INVALID_ARGUMENT, "tune=znver3" },
    { "cpu:foo", OPJIT_INVALID_ARGUMENT, "is unknown; known: host, x86-64, x86-64-v1," },
    { "cpu:a-name-of-more-than-forty-characters-is-cut", OPJIT_INVALID_ARGUMENT, "rv64gcv and CPUs such as znver3" },
    { "cpu:x86-64-v5", OPJIT_INVALID_ARGUMENT, "cpu:x86-64-v5 is unknown" },
    { "cpu: x86-64-v3", OPJIT_INVALID_ARGUMENT, "is unknown" },
    { "cpu:x86-64-v3+sve", OPJIT_INVALID_ARGUMENT, "feature +sve is unknown" },
    { "cpu:aarch64,vec=32", OPJIT_INVALID_ARGUMENT, "vec=32 needs +sve" },
    { "cpu:aarch64+avx", OPJIT_INVALID_ARGUMENT, "feature +avx is unknown" },
    { "cpu:aarch64,tune=znver3", OPJIT_INVALID_ARGUMENT, "tune=znver3" },
    { "cpu:rv64gc,vec=32", OPJIT_INVALID_ARGUMENT, "vec=32 needs +v" },
    { "cpu:x86-64-v3,vec=8", OPJIT_INVALID_ARGUMENT, "vec=8; allowed: 16, 32, 64" },
    { "cpu:x86-64-v3+", OPJIT_INVALID_ARGUMENT, "feature + is unknown" },
    { "cpu:x86-64-v3+avx3", OPJIT_INVALID_ARGUMENT, "feature +avx3 is unknown" },
    { "cpu:x86-64-v3,", OPJIT_INVALID_ARGUMENT, "option ''" },
    { "cpu:x86-64-v3,l4=1024", OPJIT_INVALID_ARGUMENT, "option 'l4'" },
    { "cpu:x86-64-v3,l1", OPJIT_INVALID_ARGUMENT, "option 'l1'" },
    { "cpu:x86-64-v3,l1=", OPJIT_INVALID_ARGUMENT, "l1=" },
    { "cpu:x86-64-v3,l1=32K", OPJIT_INVALID_ARGUMENT, "l1=32K" },
    { "cpu:x86-64-v3,l1=-1", OPJIT_INVALID_ARGUMENT, "l1=-1" },
    { "cpu:x86-64-v3,l1=032768", OPJIT_INVALID_ARGUMENT, "l1=032768" },
    { "cpu:x86-64-v3,l1=0", OPJIT_INVALID_ARGUMENT, "l1=0" },
    { "cpu:x86-64-v3,l3=99999999999999999999999", OPJIT_INVALID_ARGUMENT, "l3=9999" },
    { "cpu:x86-64-v3,l1=32768,l1=32768", OPJIT_INVALID_ARGUMENT, "l1 is given twice" },
    { "cpu:x86-64-v3,vec=24", OPJIT_INVALID_ARGUMENT, "vec=24" },
    { "cpu:x86-64-v3,vec=64", OPJIT_INVALID_ARGUMENT, "needs +avx512f" },
    { "cpu:x86-64-v2,vec=32", OPJIT_INVALID_ARGUMENT, "needs +avx" },
    { "cpu:x86-64-v3,tune=znver33", OPJIT_INVALID_ARGUMENT, "tune=znver33" },
    { "cpu:x86-64-v3,tune=", OPJIT_INVALID_ARGUMENT, "tune=" },
    { "cpu:x86-64-v3\n", OPJIT_INVALID_ARGUMENT, "cpu:x86-64-v3? is unknown" },
};

START_TEST(refusal_row)
{
    static const rt_target zero;
    rt_target target;
    opjit_error error;
    ck_assert_msg(opjit_rt_target_parse(refusals[_i].given, &target, &error) == refusals[_i].status, "%s",
                  refusals[_i].given);
    ck_assert_msg(strstr(error.message, refusals[_i].part) != NULL, "%s: '%s'", refusals[_i].given, error.message);
    ck_assert_msg(strlen(error.message) < sizeof error.message - 1, "%s: cut: '%s'", refusals[_i].given, error.message);
    ck_assert_mem_eq(&target, &zero, sizeof target);
}
END_TEST

/* The widths named are those of the target's own architecture. */
START_TEST(vectors_allowed)
{
    static const char *const rows[][2] = {
        { "nvptx:sm_90,vec=32", "target: vec=32; allowed: 16" },
        { "amdgpu:gfx942,vec=64", "target: vec=64; allowed: 16" },
        { "cpu:aarch64,vec=8", "target: vec=8; allowed: 16, 32, 64" },
    };
    rt_target target;
    opjit_error error;
    ck_assert_int_eq(opjit_rt_target_parse(rows[_i][0], &target, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, rows[_i][1]);
}
END_TEST

START_TEST(every_name)
{
    uint32_t count = 0;
    char text[64];
    for (; opjit_rt_target_name(count, text, sizeof text); count++) {
        rt_target target, again;
        opjit_error error;
        ck_assert_msg(opjit_rt_target_parse(text, &target, &error) == OPJIT_OK, "%s: %s", text, error.message);
        ck_assert_int_eq(opjit_rt_target_parse(target.text, &again, &error), OPJIT_OK);
        ck_assert_mem_eq(&target, &again, sizeof target);
        if (target.arch == RT_ARCH_X86_64)
            ck_assert_uint_eq(target.vector_bytes, target.level >= 4 ? 64 : target.level == 3 ? 32 : 16);
    }
    ck_assert_uint_ge(count, 32);
}
END_TEST

static bool is_of(rt_arch arch, unsigned feature)
{
    rt_target t;
    opjit_rt_target_set_features(&t, UINT64_C(1) << feature);
    return t.arch == arch;
}

/* Every single feature on every level, and all of them: the text is complete and fits. */
START_TEST(every_feature)
{
    static const struct {
        const char *name, *tune;
        rt_arch arch;
    } rows[] = {
        { "x86-64-v1", "clearwaterforest", RT_ARCH_X86_64 }, { "x86-64-v2", "clearwaterforest", RT_ARCH_X86_64 },
        { "x86-64-v3", "clearwaterforest", RT_ARCH_X86_64 }, { "x86-64-v4", "clearwaterforest", RT_ARCH_X86_64 },
        { "aarch64", "thunderx2t99", RT_ARCH_AARCH64 },      { "rv64gc", "xiangshan-kunminghu", RT_ARCH_RISCV64 },
    };
    const rt_arch arch = rows[_i].arch;
    for (unsigned f = 0; f <= RT_FEATURE_COUNT; f++) {
        char text[600];
        rt_target target, again;
        opjit_error error;
        if (f < RT_FEATURE_COUNT && !is_of(arch, f))
            continue;
        int used = snprintf(text, sizeof text, "cpu:%s", rows[_i].name);
        for (unsigned g = 0; g < RT_FEATURE_COUNT; g++) /* f == COUNT: all except popcnt, which keeps the level at 1 */
            if (is_of(arch, g) && (f == RT_FEATURE_COUNT ? g != RT_X86_POPCNT : g == f))
                used += snprintf(text + used, sizeof text - (size_t)used, "+%s", opjit_rt_feature_name((rt_feature)g));
        snprintf(text + used, sizeof text - (size_t)used,
                 ",tune=%s%s,l1=1099511627776,l2=1099511627776,l3=1099511627776", rows[_i].tune, ",vec=16");
        ck_assert_msg(opjit_rt_target_parse(text, &target, &error) == OPJIT_OK, "%s: %s", text, error.message);
        ck_assert_msg(opjit_rt_target_parse(target.text, &again, &error) == OPJIT_OK, "%s: %s", target.text,
                      error.message);
        ck_assert_mem_eq(&target, &again, sizeof target);
        ck_assert_int_eq(target.arch, arch);
        if (f < RT_FEATURE_COUNT)
            ck_assert(rt_target_has(&target, (rt_feature)f));
    }
}
END_TEST

START_TEST(features_text)
{
    rt_target target;
    char text[64];
    ck_assert_int_eq(opjit_rt_target_parse("cpu:x86-64-v1+avx", &target, NULL), OPJIT_OK);
    opjit_rt_target_features_text(&target, text, sizeof text);
    ck_assert_str_eq(text, "+sse3,+ssse3,+sse4.1,+sse4.2,+avx");
    opjit_rt_target_features_text(&target, text, 8);
    ck_assert_str_eq(text, "+sse3,+");
    ck_assert_int_eq(opjit_rt_target_parse("cpu:x86-64-v1", &target, NULL), OPJIT_OK);
    opjit_rt_target_features_text(&target, text, sizeof text);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(opjit_rt_target_parse("cpu:aarch64+sve512", &target, NULL), OPJIT_OK);
    opjit_rt_target_features_text(&target, text, sizeof text); /* the length is told in another way */
    ck_assert_str_eq(text, "+neon,+sve");
}
END_TEST

#if defined(__x86_64__)
START_TEST(this_machine)
{
    rt_target host, parsed, again;
    opjit_error error;
    opjit_rt_target_host(&host);
    ck_assert_uint_ge(host.level, 1);
    ck_assert_uint_ge(host.l1, 8192);
    ck_assert_int_eq(opjit_rt_target_runs_here(&host, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_rt_target_parse(NULL, &parsed, &error), OPJIT_OK);
    ck_assert_mem_eq(&host, &parsed, sizeof host);
    ck_assert_int_eq(opjit_rt_target_parse("cpu", &parsed, &error), OPJIT_OK);
    ck_assert_mem_eq(&host, &parsed, sizeof host);
    ck_assert_int_eq(opjit_rt_target_parse(host.text, &again, &error), OPJIT_OK);
    ck_assert_mem_eq(&host, &again, sizeof host);
    ck_assert_int_eq(rt_target_has(&host, RT_X86_AVX2), __builtin_cpu_supports("avx2") != 0);
    ck_assert_int_eq(rt_target_has(&host, RT_X86_FMA), __builtin_cpu_supports("fma") != 0);
    ck_assert_int_eq(rt_target_has(&host, RT_X86_AVX512VL), __builtin_cpu_supports("avx512vl") != 0);
    ck_assert_int_eq(rt_target_has(&host, RT_X86_BMI2), __builtin_cpu_supports("bmi2") != 0);
}
END_TEST

/* KiB of the data cache of that level, as the kernel tells it of one CPU; 0: it doesn't. */
static unsigned long long told_kib(unsigned cpu, unsigned level)
{
    unsigned long long kib = 0;
    for (unsigned index = 0; index < 8 && kib == 0; index++) {
        static const char *const names[] = { "level", "type", "size" };
        char text[3][32];
        unsigned good = 0;
        for (; good < 3; good++) {
            char path[96];
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/%s", cpu, index, names[good]);
            FILE *file = fopen(path, "r");
            const bool read = file != NULL && fgets(text[good], sizeof text[good], file) != NULL;
            if (file != NULL)
                fclose(file);
            if (!read)
                break;
        }
        if (good == 3 && strtoul(text[0], NULL, 10) == level && strncmp(text[1], "Instruction", 11) != 0)
            kib = strtoull(text[2], NULL, 10);
    }
    return kib;
}

/* CPUs of one machine may differ, and this thread may run on any.  Of a last cache that holds more for each thread than
 * any machine has, a guest's share counts. */
START_TEST(caches_of_this_machine)
{
    rt_target host;
    opjit_rt_target_host(&host);
    const unsigned level = (unsigned)_i + 1;
    const uint64_t found = level == 1 ? host.l1 : level == 2 ? host.l2 : host.l3;
    bool told = false, same = false;
    for (unsigned cpu = 0; cpu < 1024; cpu++) {
        const unsigned long long kib = told_kib(cpu, level);
        if (kib == 0)
            break;
        told = true;
        same = same || kib * 1024 == found || (level == 3 && kib * 1024 > found && found % (16 << 20) == 0);
    }
    ck_assert_msg(same || !told, "level %u: %llu bytes are not what /sys says", level, (unsigned long long)found);
    ck_assert_uint_le(host.l1, host.l2);
}
END_TEST

/* Sizes in the text win over the host's and over a named CPU's. */
START_TEST(caches_given)
{
    rt_target target;
    opjit_error error;
    ck_assert_int_eq(opjit_rt_target_parse("cpu:host,l1=16384,l2=131072,l3=1048576", &target, &error), OPJIT_OK);
    ck_assert_uint_eq(target.l1, 16384);
    ck_assert_uint_eq(target.l2, 131072);
    ck_assert_uint_eq(target.l3, 1048576);
    ck_assert_int_eq(opjit_rt_target_parse("cpu:znver3,l2=2097152", &target, &error), OPJIT_OK);
    ck_assert_uint_eq(target.l2, 2097152);
    ck_assert_uint_eq(target.l3, 33554432);
}
END_TEST

START_TEST(runs_here)
{
    rt_target all;
    opjit_error error;
    ck_assert_int_eq(opjit_rt_target_parse("cpu:x86-64", &all, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_rt_target_runs_here(&all, &error), OPJIT_OK);
    opjit_rt_target_set_features(&all, (UINT64_C(1) << RT_ARM_NEON) - 1);
    opjit_rt_target_write_text(&all);
    ck_assert_int_eq(opjit_rt_target_runs_here(&all, &error),
                     OPJIT_UNSUPPORTED); /* clzero and avx512fp16: no CPU has both */
    ck_assert_msg(strstr(error.message, "this CPU lacks ") == error.message, "%s", error.message);
    static const char *const foreign[] = { "cpu:aarch64", "cpu:neoverse-v1", "cpu:rv64gc", "cpu:rv64gcv,vec=32" };
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        ck_assert_int_eq(opjit_rt_target_parse(foreign[i], &all, &error), OPJIT_OK);
        ck_assert_int_eq(opjit_rt_target_runs_here(&all, &error), OPJIT_UNSUPPORTED);
        ck_assert_msg(strstr(error.message, "does not run on this machine, which is cpu:x86-64-v") != NULL, "%s",
                      error.message);
    }
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("rt.target");
    TCase *tc = tcase_create("target");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, canonical_row, 0, sizeof texts / sizeof *texts);
    tcase_add_loop_test(tc, refusal_row, 0, sizeof refusals / sizeof *refusals);
    tcase_add_loop_test(tc, vectors_allowed, 0, 3);
    tcase_add_test(tc, every_name);
    tcase_add_loop_test(tc, every_feature, 0, 6);
    tcase_add_test(tc, features_text);
#if defined(__x86_64__)
    tcase_add_test(tc, this_machine);
    tcase_add_loop_test(tc, caches_of_this_machine, 0, 3);
    tcase_add_test(tc, caches_given);
    tcase_add_test(tc, runs_here);
#endif
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
