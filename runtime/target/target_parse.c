/* SPDX-License-Identifier: Apache-2.0 */
/* target_parse.c - text to target.  The tables are in target_table.c; what this machine is, in target_host.c. */
#include "runtime/target/target_text.h"

#include <stdio.h>
#include <string.h>

#define BIT(feature) RT_FEATURE_BIT(feature)

typedef struct span {
    const char *at;
    size_t length;
} span;

static bool span_is(span s, const char *text)
{
    return strlen(text) == s.length && memcmp(s.at, text, s.length) == 0;
}

/* Cuts s at the first stop character: returns the part before it and leaves the rest, stop character included, in
 * *s. */
static span span_cut(span *s, const char *stops)
{
    span head = { s->at, 0 };
    while (head.length < s->length && strchr(stops, s->at[head.length]) == NULL)
        head.length++;
    s->at += head.length;
    s->length -= head.length;
    return head;
}

#define SPAN(s) (int)((s).length > 40 ? 40 : (s).length), (s).at /* for %.*s, kept short in messages */

/* Adds the features that each feature of the set builds on, until nothing changes. */
static uint64_t close_features(uint64_t set)
{
    uint64_t before;
    do {
        before = set;
        for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
            if ((set & BIT(f)) != 0)
                set |= opjit_rt_features[f].needs;
    } while (set != before);
    return set;
}

/* Lists the levels; the named CPUs would not fit into a message. */
static opjit_status refuse_name(const char *family, span name, opjit_error *error)
{
    char known[160] = "";
    rt_text_writer w = { known, sizeof known, 0 };
    const bool is_cpu = strcmp(family, "cpu") == 0;
    const rt_level_row *level;

    if (is_cpu)
        opjit_rt_write_part(&w, "", "host, x86-64");
    for (uint32_t i = 0; (level = opjit_rt_named_level(i)) != NULL; i++)
        if (strcmp(opjit_rt_target_family(level->arch), family) == 0)
            opjit_rt_write_part(&w, w.used == 0 ? "" : ", ", level->name);
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{target} {!name}{%s:%.*s} is unknown; known: %s%s", family,
                           SPAN(name), known, is_cpu ? " and CPUs such as znver3" : "");
}

static opjit_status find_named(const char *family, span name, rt_target *out, opjit_error *error)
{
    const rt_level_row *level;
    const rt_cpu_row *cpu;

    const bool is_cpu = strcmp(family, "cpu") == 0;

    if (is_cpu && span_is(name, "host")) {
        opjit_rt_target_host(out);
        return OPJIT_OK;
    }
    if (is_cpu && span_is(name, "x86-64"))
        name = (span){ "x86-64-v1", sizeof "x86-64-v1" - 1 };
    for (uint32_t i = 0; (level = opjit_rt_named_level(i)) != NULL; i++)
        if (span_is(name, level->name) && strcmp(opjit_rt_target_family(level->arch), family) == 0) {
            opjit_rt_target_set_features(out, opjit_rt_level_features(level->arch, level->level));
            return OPJIT_OK;
        }
    for (uint32_t i = 0; (cpu = opjit_rt_named_cpu(i)) != NULL; i++) {
        if (!span_is(name, cpu->name) || strcmp(opjit_rt_target_family(cpu->arch), family) != 0)
            continue;
        opjit_rt_target_set_features(out, close_features(opjit_rt_level_features(cpu->arch, cpu->level) | cpu->extra));
        memcpy(out->tune, cpu->name, strlen(cpu->name) + 1);
        out->l1 = cpu->l1, out->l2 = cpu->l2, out->l3 = cpu->l3;
        return OPJIT_OK;
    }
    return refuse_name(family, name, error);
}

static opjit_status add_feature(span name, rt_arch arch, uint64_t *set, opjit_error *error)
{
    static const char *const examples[] = {
        [RT_ARCH_X86_64] = "up to those of AVX-512, e.g. +avx2, +fma, +avx512vl, +clzero",
        [RT_ARCH_AARCH64] = "+sve, +sve2, and +sve256 and +sve512 for longer vectors",
        [RT_ARCH_RISCV64] = "+v, +zvl256b, +zvl512b, +zba, +zbb, +zbs, +zfhmin, +zvfhmin",
        [RT_ARCH_NVPTX] = "+sm_90, which the name stands for, too",
        [RT_ARCH_AMDGPU] = "+gfx942, which the name stands for, too",
        [RT_ARCH_SPIRV] = "+opencl, which the name stands for, too",
    };

    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++) {
        if (opjit_rt_features[f].arch == arch && span_is(name, opjit_rt_features[f].name)) {
            *set |= BIT(f);
            return OPJIT_OK;
        }
    }
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                           "{target}: {feature} {+%.*s} is unknown; known are LLVM's names %s", SPAN(name),
                           examples[arch]);
}

/* Keeps the tuning and cache sizes of a named CPU; other defaults follow the level. */
static void set_features(rt_target *t, uint64_t set)
{
    const rt_target base = *t;
    const rt_level_row *row = opjit_rt_level(base.arch, base.level);

    opjit_rt_target_set_features(t, set);
    if (base.l1 != row->l1)
        t->l1 = base.l1;
    if (base.l2 != row->l2)
        t->l2 = base.l2;
    if (base.l3 != row->l3)
        t->l3 = base.l3;
}

/* Adds "+feature..." to the named base. */
static opjit_status parse_features(span *rest, rt_target *out, opjit_error *error)
{
    uint64_t set = out->features;

    while (rest->length != 0 && rest->at[0] == '+') {
        rest->at++, rest->length--;
        TRY(add_feature(span_cut(rest, "+,"), out->arch, &set, error));
    }
    set_features(out, close_features(set));
    return OPJIT_OK;
}

static opjit_status parse_bytes(span key, span text, uint64_t lowest, uint64_t *out, opjit_error *error)
{
    const uint64_t highest = UINT64_C(1) << 40;
    uint64_t value = 0;
    bool good = text.length != 0 && (text.length == 1 || text.at[0] != '0');

    for (size_t i = 0; good && i < text.length; i++) {
        good = text.at[i] >= '0' && text.at[i] <= '9' && value <= highest;
        if (good)
            value = value * 10 + (uint64_t)(text.at[i] - '0');
    }
    if (!good || value > highest || (value < lowest))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{target}: {%.*s}={%.*s} is no number of bytes; allowed: %s%llu to %llu, decimal",
                               SPAN(key), SPAN(text), span_is(key, "l3") ? "0 (none) or " : "",
                               (unsigned long long)lowest, (unsigned long long)highest);
    *out = value;
    return OPJIT_OK;
}

static opjit_status parse_tune(span value, rt_target *out, opjit_error *error)
{
    if (opjit_rt_tune_known(out->arch, value.at, value.length)) {
        memcpy(out->tune, value.at, value.length);
        out->tune[value.length] = '\0';
        return OPJIT_OK;
    }
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                           "{target}: {tune}={%.*s} is unknown; allowed are generic and LLVM's CPU names of the same "
                           "architecture, e.g. %s",
                           SPAN(value),
                           out->arch == RT_ARCH_X86_64    ? "znver3, skylake-avx512, alderlake"
                           : out->arch == RT_ARCH_AARCH64 ? "neoverse-n1, cortex-a72"
                           : out->arch == RT_ARCH_RISCV64 ? "sifive-u74, sifive-x280"
                                                          : "none");
}

/* needs: the features (as a set) without which such vectors don't exist; brings: the feature that promises their
 * length. */
static opjit_status parse_vector(span value, rt_target *out, opjit_error *error)
{
    static const struct {
        rt_arch arch;
        uint32_t bytes;
        uint64_t needs, brings;
    } rows[] = {
        { RT_ARCH_X86_64, 16, 0, 0 },
        { RT_ARCH_X86_64, 32, BIT(RT_X86_AVX), 0 },
        { RT_ARCH_X86_64, 64, BIT(RT_X86_AVX512F), 0 },
        { RT_ARCH_AARCH64, 16, 0, 0 },
        { RT_ARCH_AARCH64, 32, BIT(RT_ARM_SVE), BIT(RT_ARM_SVE_256) },
        { RT_ARCH_AARCH64, 64, BIT(RT_ARM_SVE), BIT(RT_ARM_SVE_512) },
        { RT_ARCH_RISCV64, 16, 0, 0 },
        { RT_ARCH_RISCV64, 32, BIT(RT_RISCV_V), BIT(RT_RISCV_ZVL256B) },
        { RT_ARCH_RISCV64, 64, BIT(RT_RISCV_V), BIT(RT_RISCV_ZVL512B) },
        { RT_ARCH_NVPTX, 16, 0, 0 },
        { RT_ARCH_AMDGPU, 16, 0, 0 },
        { RT_ARCH_SPIRV, 16, 0, 0 },
    };

    char allowed[16];
    rt_text_writer w = { allowed, sizeof allowed, 0 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char digits[8];
        if (rows[i].arch != out->arch)
            continue;
        snprintf(digits, sizeof digits, "%u", (unsigned)rows[i].bytes);
        opjit_rt_write_part(&w, w.used == 0 ? "" : ", ", digits);
        if (!span_is(value, digits))
            continue;
        for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
            if ((rows[i].needs & ~out->features & BIT(f)) != 0)
                return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{target}: {vec}={%s} needs +%s", digits,
                                       opjit_rt_features[f].name);
        set_features(out, close_features(out->features | rows[i].brings));
        out->vector_bytes = rows[i].bytes;
        return OPJIT_OK;
    }
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{target}: {vec}={%.*s}; allowed: %s", SPAN(value), allowed);
}

static opjit_status parse_option(span option, uint32_t *seen, rt_target *out, opjit_error *error)
{
    static const char *const keys[] = { "tune", "vec", "l1", "l2", "l3" };
    const span key = span_cut(&option, "=");
    uint32_t index = 0;

    while (index < sizeof keys / sizeof *keys && !span_is(key, keys[index]))
        index++;
    if (index == sizeof keys / sizeof *keys || option.length == 0)
        return opjit_rt_refuse(
            error, OPJIT_INVALID_ARGUMENT,
            "{target}: {option} '{%.*s}' is unknown; allowed: tune=NAME, vec=BYTES, l1=BYTES, l2=BYTES, "
            "l3=BYTES",
            SPAN(key));
    if ((*seen & 1u << index) != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{target}: {option} {%s} is given twice", keys[index]);
    *seen |= 1u << index;
    option.at++, option.length--; /* the '=' */
    switch (index) {
    case 0: return parse_tune(option, out, error);
    case 1: return parse_vector(option, out, error);
    case 2: return parse_bytes(key, option, 1024, &out->l1, error);
    case 3: return parse_bytes(key, option, 1024, &out->l2, error);
    default: return parse_bytes(key, option, 0, &out->l3, error);
    }
}

static opjit_status parse(const char *text, rt_target *out, opjit_error *error)
{
    const char *family = NULL;
    span rest;
    uint32_t seen = 0;

    if (text == NULL || strcmp(text, "cpu") == 0)
        text = "cpu:host";
    else if (strcmp(text, "spirv") == 0)
        text = "spirv:opencl";
    for (rt_arch arch = RT_ARCH_X86_64; family == NULL && arch < RT_ARCH_END; arch++) {
        const char *word = opjit_rt_target_family(arch);
        if (strncmp(text, word, strlen(word)) == 0 && text[strlen(word)] == ':')
            family = word;
    }
    if (family == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{target} {!name}'{%.40s}' does not begin with 'cpu:', 'nvptx:', 'amdgpu:' or 'spirv:', "
                               "e.g. cpu:host, cpu:x86-64-v3, nvptx:sm_90",
                               text);
    rest = (span){ text + strlen(family) + 1, strlen(text + strlen(family) + 1) };
    TRY(find_named(family, span_cut(&rest, "+,"), out, error));
    if (rest.length != 0 && rest.at[0] == '+')
        TRY(parse_features(&rest, out, error));
    while (rest.length != 0) {
        rest.at++, rest.length--; /* the ',' */
        TRY(parse_option(span_cut(&rest, ","), &seen, out, error));
    }
    opjit_rt_target_write_text(out);
    return OPJIT_OK;
}

opjit_status opjit_rt_target_parse(const char *text, rt_target *out, opjit_error *error)
{
    opjit_status status;

    memset(out, 0, sizeof *out); /* padding too: equal targets have equal bytes */
    memcpy(out->tune, "generic", sizeof "generic");
    status = parse(text, out, error);
    if (status != OPJIT_OK)
        memset(out, 0, sizeof *out);
    return status;
}
