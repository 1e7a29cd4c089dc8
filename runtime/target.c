/* target.c - target descriptions: feature table, named CPUs, canonical text in and out.  Looks at no machine; that is
 * target_host.c. */
#include "runtime/target.h"

#include <stdio.h>
#include <string.h>

#define BIT(feature) (UINT64_C(1) << (feature))

/* What the feature's instructions build on; LLVM takes these for granted once it is told the feature. */
#define AVX512_BASE (BIT(RT_X86_AVX2) | BIT(RT_X86_F16C) | BIT(RT_X86_FMA))
#define AVX512_FP16_BASE (BIT(RT_X86_AVX512BW) | BIT(RT_X86_AVX512DQ) | BIT(RT_X86_AVX512VL))

static const struct feature_row {
    const char *name; /* LLVM's spelling, also ours */
    uint32_t level;   /* first x86-64 level that has it; 0: none */
    uint64_t needs;
} features[RT_FEATURE_COUNT] = {
    [RT_X86_SSE3] = { "sse3", 2, 0 },
    [RT_X86_SSSE3] = { "ssse3", 2, BIT(RT_X86_SSE3) },
    [RT_X86_SSE41] = { "sse4.1", 2, BIT(RT_X86_SSSE3) },
    [RT_X86_SSE42] = { "sse4.2", 2, BIT(RT_X86_SSE41) },
    [RT_X86_POPCNT] = { "popcnt", 2, 0 },
    [RT_X86_CX16] = { "cx16", 2, 0 },
    [RT_X86_LAHF] = { "sahf", 2, 0 },
    [RT_X86_AVX] = { "avx", 3, BIT(RT_X86_SSE42) },
    [RT_X86_AVX2] = { "avx2", 3, BIT(RT_X86_AVX) },
    [RT_X86_BMI] = { "bmi", 3, 0 },
    [RT_X86_BMI2] = { "bmi2", 3, 0 },
    [RT_X86_F16C] = { "f16c", 3, BIT(RT_X86_AVX) },
    [RT_X86_FMA] = { "fma", 3, BIT(RT_X86_AVX) },
    [RT_X86_LZCNT] = { "lzcnt", 3, 0 },
    [RT_X86_MOVBE] = { "movbe", 3, 0 },
    [RT_X86_XSAVE] = { "xsave", 3, 0 },
    [RT_X86_AVX512F] = { "avx512f", 4, AVX512_BASE },
    [RT_X86_AVX512BW] = { "avx512bw", 4, BIT(RT_X86_AVX512F) },
    [RT_X86_AVX512CD] = { "avx512cd", 4, BIT(RT_X86_AVX512F) },
    [RT_X86_AVX512DQ] = { "avx512dq", 4, BIT(RT_X86_AVX512F) },
    [RT_X86_AVX512VL] = { "avx512vl", 4, BIT(RT_X86_AVX512F) },
    [RT_X86_AVX512VNNI] = { "avx512vnni", 0, BIT(RT_X86_AVX512F) },
    [RT_X86_AVX512VBMI] = { "avx512vbmi", 0, BIT(RT_X86_AVX512BW) },
    [RT_X86_AVX512VBMI2] = { "avx512vbmi2", 0, BIT(RT_X86_AVX512BW) },
    [RT_X86_AVX512BITALG] = { "avx512bitalg", 0, BIT(RT_X86_AVX512BW) },
    [RT_X86_AVX512VPOPCNTDQ] = { "avx512vpopcntdq", 0, BIT(RT_X86_AVX512F) },
    [RT_X86_AVX512FP16] = { "avx512fp16", 0, AVX512_FP16_BASE },
    [RT_X86_CLZERO] = { "clzero", 0, 0 },
    [RT_X86_ERMS] = { "ermsb", 0, 0 },
    [RT_X86_FSRM] = { "fsrm", 0, 0 },
};

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define ZEN3_EXTRA (BIT(RT_X86_CLZERO) | BIT(RT_X86_ERMS) | BIT(RT_X86_FSRM))
#define ICELAKE_VECTOR                                                                                      \
    (BIT(RT_X86_AVX512VNNI) | BIT(RT_X86_AVX512VBMI) | BIT(RT_X86_AVX512VBMI2) | BIT(RT_X86_AVX512BITALG) | \
     BIT(RT_X86_AVX512VPOPCNTDQ))

/* Named targets.  Cache sizes 0: the level's defaults.  l3 is what cores of a typical part of the family share. */
static const struct named_row {
    const char *name, *tune;
    uint32_t level;
    uint64_t extra;
    uint64_t l1, l2, l3;
} named[] = {
    { "x86-64-v1", "generic", 1, 0, 0, 0, 0 },
    { "x86-64-v2", "generic", 2, 0, 0, 0, 0 },
    { "x86-64-v3", "generic", 3, 0, 0, 0, 0 },
    { "x86-64-v4", "generic", 4, 0, 0, 0, 0 },
    { "haswell", "haswell", 3, BIT(RT_X86_ERMS), 32 * KIB, 256 * KIB, 8 * MIB },
    { "skylake", "skylake", 3, BIT(RT_X86_ERMS), 32 * KIB, 256 * KIB, 8 * MIB },
    { "skylake-avx512", "skylake-avx512", 4, BIT(RT_X86_ERMS), 32 * KIB, 1 * MIB, 22 * MIB },
    { "icelake-server", "icelake-server", 4, ICELAKE_VECTOR | BIT(RT_X86_ERMS) | BIT(RT_X86_FSRM), 48 * KIB, 1280 * KIB,
      36 * MIB },
    { "sapphirerapids", "sapphirerapids", 4,
      ICELAKE_VECTOR | BIT(RT_X86_AVX512FP16) | BIT(RT_X86_ERMS) | BIT(RT_X86_FSRM), 48 * KIB, 2 * MIB, 60 * MIB },
    { "znver2", "znver2", 3, BIT(RT_X86_CLZERO), 32 * KIB, 512 * KIB, 16 * MIB },
    { "znver3", "znver3", 3, ZEN3_EXTRA, 32 * KIB, 512 * KIB, 32 * MIB },
    { "znver4", "znver4", 4, ICELAKE_VECTOR | ZEN3_EXTRA, 32 * KIB, 1 * MIB, 32 * MIB },
    { "znver5", "znver5", 4, ICELAKE_VECTOR | ZEN3_EXTRA, 48 * KIB, 1 * MIB, 32 * MIB },
};
enum { NAMED_COUNT = sizeof named / sizeof *named };

/* LLVM writes a warning to standard error for a tuning it does not know, so only these get through. */
static const char *const tunes[] = {
    "generic",      "nehalem",        "westmere",        "sandybridge", "ivybridge",      "haswell",
    "broadwell",    "skylake",        "skylake-avx512",  "cascadelake", "cooperlake",     "cannonlake",
    "tigerlake",    "icelake-client", "icelake-server",  "rocketlake",  "alderlake",      "raptorlake",
    "meteorlake",   "arrowlake",      "arrowlake-s",     "lunarlake",   "sapphirerapids", "emeraldrapids",
    "sierraforest", "graniterapids",  "graniterapids-d", "grandridge",  "gracemont",      "clearwaterforest",
    "silvermont",   "goldmont",       "goldmont-plus",   "tremont",     "bdver1",         "bdver2",
    "bdver3",       "bdver4",         "btver2",          "znver1",      "znver2",         "znver3",
    "znver4",       "znver5",
};

uint64_t opjit_rt_level_features(uint32_t level)
{
    uint64_t set = 0;
    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
        if (features[f].level != 0 && features[f].level <= level)
            set |= BIT(f);
    return set;
}

const char *opjit_rt_feature_name(rt_feature feature)
{
    return features[feature].name;
}

uint64_t opjit_rt_feature_needs(rt_feature feature)
{
    return features[feature].needs;
}

const char *opjit_rt_target_name(uint32_t index)
{
    return index < NAMED_COUNT ? named[index].name : NULL;
}

static uint32_t default_vector_bytes(uint32_t level)
{
    return level >= 4 ? 64 : level == 3 ? 32 : 16;
}

static uint64_t default_l2(uint32_t level)
{
    return level <= 2 ? 256 * KIB : 512 * KIB;
}

void opjit_rt_target_set_features(rt_target *target, uint64_t set)
{
    target->arch = RT_ARCH_X86_64;
    target->features = set;
    target->level = 1;
    for (uint32_t level = 2; level <= 4; level++) {
        const uint64_t wanted = opjit_rt_level_features(level);
        if ((set & wanted) == wanted)
            target->level = level;
    }
    target->vector_bytes = default_vector_bytes(target->level);
    target->l1 = 32 * KIB;
    target->l2 = default_l2(target->level);
    target->l3 = 8 * MIB;
}

/* --- text out ---------------------------------------------------------------------------------------------------- */

typedef struct text_writer {
    char *text;
    size_t size, used;
} text_writer;

static void write_part(text_writer *w, const char *before, const char *part)
{
    const int n = snprintf(w->text + w->used, w->size - w->used, "%s%s", before, part);
    if (n > 0)
        w->used = (size_t)n < w->size - w->used ? w->used + (size_t)n : w->size - 1;
}

static void write_number(text_writer *w, const char *before, uint64_t value)
{
    char digits[24];
    if (snprintf(digits, sizeof digits, "%llu", (unsigned long long)value) > 0)
        write_part(w, before, digits);
}

void opjit_rt_target_write_text(rt_target *t)
{
    text_writer w = { t->text, sizeof t->text, 0 };
    const uint64_t of_level = opjit_rt_level_features(t->level);

    write_number(&w, "cpu:x86-64-v", t->level);
    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
        if ((t->features & ~of_level & BIT(f)) != 0)
            write_part(&w, "+", features[f].name);
    if (strcmp(t->tune, "generic") != 0)
        write_part(&w, ",tune=", t->tune);
    if (t->vector_bytes != default_vector_bytes(t->level))
        write_number(&w, ",vec=", t->vector_bytes);
    if (t->l1 != 32 * KIB)
        write_number(&w, ",l1=", t->l1);
    if (t->l2 != default_l2(t->level))
        write_number(&w, ",l2=", t->l2);
    if (t->l3 != 8 * MIB)
        write_number(&w, ",l3=", t->l3);
}

void opjit_rt_target_features_text(const rt_target *t, char *text, size_t size)
{
    text_writer w = { text, size, 0 };

    if (size == 0)
        return;
    text[0] = '\0';
    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
        if ((t->features & BIT(f)) != 0)
            write_part(&w, w.used == 0 ? "+" : ",+", features[f].name);
}

/* --- text in ----------------------------------------------------------------------------------------------------- */

typedef struct span {
    const char *at;
    size_t length;
} span;

static bool span_is(span s, const char *text)
{
    return strlen(text) == s.length && memcmp(s.at, text, s.length) == 0;
}

static bool span_starts(span s, const char *text)
{
    return strlen(text) <= s.length && memcmp(s.at, text, strlen(text)) == 0;
}

/* Cuts s at the first stop character: returns what is before it and leaves it and the rest in *s. */
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

static opjit_status find_named(span name, rt_target *out, opjit_error *error)
{
    static const char *const other_machines[] = { "aarch64", "arm", "neoverse", "apple-", "riscv", "rv64", "rva" };

    if (span_is(name, "host")) {
        opjit_rt_target_host(out);
        if (out->arch != RT_ARCH_X86_64)
            return opjit_rt_error_set(error, OPJIT_UNSUPPORTED,
                                      "target cpu:host: this machine is no x86-64; name a target");
        return OPJIT_OK;
    }
    if (span_is(name, "x86-64"))
        name = (span){ named[0].name, strlen(named[0].name) };
    for (size_t i = 0; i < NAMED_COUNT; i++) {
        const struct named_row *row = &named[i];
        if (!span_is(name, row->name))
            continue;
        opjit_rt_target_set_features(out, opjit_rt_level_features(row->level) | row->extra);
        memcpy(out->tune, row->tune, strlen(row->tune) + 1);
        if (row->l1 != 0)
            out->l1 = row->l1, out->l2 = row->l2, out->l3 = row->l3;
        return OPJIT_OK;
    }
    for (size_t i = 0; i < sizeof other_machines / sizeof *other_machines; i++)
        if (span_starts(name, other_machines[i]))
            return opjit_rt_error_set(error, OPJIT_UNSUPPORTED, "target cpu:%.*s: only x86-64 machines are supported",
                                      SPAN(name));
    return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                              "target cpu:%.*s is unknown; known: host, x86-64, x86-64-v1 to -v4, haswell, skylake, "
                              "skylake-avx512, icelake-server, sapphirerapids, znver2 to znver5",
                              SPAN(name));
}

static opjit_status add_feature(span name, uint64_t *set, opjit_error *error)
{
    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++) {
        if (span_is(name, features[f].name)) {
            *set |= BIT(f);
            return OPJIT_OK;
        }
    }
    return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                              "target: feature +%.*s is unknown; known are LLVM's names up to those of AVX-512, e.g. "
                              "+avx2, +fma, +avx512vl, +clzero",
                              SPAN(name));
}

/* With every feature what it builds on, until nothing is added. */
static uint64_t close_features(uint64_t set)
{
    uint64_t before;
    do {
        before = set;
        for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
            if ((set & BIT(f)) != 0)
                set |= features[f].needs;
    } while (set != before);
    return set;
}

/* Adds "+feature..." to the named base.  Tuning and cache sizes of a named CPU stay; defaults follow the level. */
static opjit_status parse_features(span *rest, rt_target *out, opjit_error *error)
{
    const rt_target base = *out;
    uint64_t set = base.features;
    rt_target plain = { .arch = RT_ARCH_X86_64 };

    while (rest->length != 0 && rest->at[0] == '+') {
        rest->at++, rest->length--;
        TRY(add_feature(span_cut(rest, "+,"), &set, error));
    }
    opjit_rt_target_set_features(&plain, base.features);
    opjit_rt_target_set_features(out, close_features(set));
    if (base.l1 != plain.l1)
        out->l1 = base.l1;
    if (base.l2 != plain.l2)
        out->l2 = base.l2;
    if (base.l3 != plain.l3)
        out->l3 = base.l3;
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
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                                  "target: %.*s=%.*s is no number of bytes; allowed: %s%llu to %llu, decimal",
                                  SPAN(key), SPAN(text), span_is(key, "l3") ? "0 (none) or " : "",
                                  (unsigned long long)lowest, (unsigned long long)highest);
    *out = value;
    return OPJIT_OK;
}

static opjit_status parse_tune(span value, rt_target *out, opjit_error *error)
{
    for (size_t i = 0; i < sizeof tunes / sizeof *tunes; i++) {
        if (span_is(value, tunes[i])) {
            memcpy(out->tune, tunes[i], value.length + 1);
            return OPJIT_OK;
        }
    }
    return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                              "target: tune=%.*s is unknown; allowed are generic and LLVM's CPU names, e.g. znver3, "
                              "skylake-avx512, alderlake",
                              SPAN(value));
}

static opjit_status parse_vector(span value, rt_target *out, opjit_error *error)
{
    const uint32_t bytes = span_is(value, "16") ? 16 : span_is(value, "32") ? 32 : span_is(value, "64") ? 64 : 0;

    if (bytes == 0)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "target: vec=%.*s; allowed: 16, 32, 64", SPAN(value));
    if ((bytes == 32 && !rt_target_has(out, RT_X86_AVX)) || (bytes == 64 && !rt_target_has(out, RT_X86_AVX512F)))
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "target: vec=%u needs +%s", bytes,
                                  bytes == 32 ? "avx" : "avx512f");
    out->vector_bytes = bytes;
    return OPJIT_OK;
}

static opjit_status parse_option(span option, uint32_t *seen, rt_target *out, opjit_error *error)
{
    static const char *const keys[] = { "tune", "vec", "l1", "l2", "l3" };
    const span key = span_cut(&option, "=");
    uint32_t index = 0;

    while (index < sizeof keys / sizeof *keys && !span_is(key, keys[index]))
        index++;
    if (index == sizeof keys / sizeof *keys || option.length == 0)
        return opjit_rt_error_set(
            error, OPJIT_INVALID_ARGUMENT,
            "target: option '%.*s' is unknown; allowed: tune=NAME, vec=BYTES, l1=BYTES, l2=BYTES, "
            "l3=BYTES",
            SPAN(key));
    if ((*seen & 1u << index) != 0)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "target: option %s is given twice", keys[index]);
    *seen |= 1u << index;
    option.at++, option.length--; /* the '=' */
    switch (index) {
    case 0: return parse_tune(option, out, error);
    case 1: return parse_vector(option, out, error);
    case 2: return parse_bytes(key, option, KIB, &out->l1, error);
    case 3: return parse_bytes(key, option, KIB, &out->l2, error);
    default: return parse_bytes(key, option, 0, &out->l3, error);
    }
}

static opjit_status parse(const char *text, rt_target *out, opjit_error *error)
{
    span rest;
    uint32_t seen = 0;

    if (text == NULL || strcmp(text, "cpu") == 0)
        text = "cpu:host";
    if (strncmp(text, "cpu:", 4) != 0)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                                  "target '%.40s' does not begin with 'cpu:', e.g. cpu:host, cpu:x86-64-v3, cpu:znver4",
                                  text);
    rest = (span){ text + 4, strlen(text + 4) };
    TRY(find_named(span_cut(&rest, "+,"), out, error));
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

    memset(out, 0, sizeof *out); /* padding too: equal targets are equal bytes */
    memcpy(out->tune, "generic", sizeof "generic");
    status = parse(text, out, error);
    if (status != OPJIT_OK)
        memset(out, 0, sizeof *out);
    return status;
}
