/* SPDX-License-Identifier: Apache-2.0 */
/* target_host.c - detects this machine: cpuid or the kernel's hardware capabilities, saved register state, cache sizes,
 * tuning.  Done here and not by LLVM, so that the key of a cached kernel needs no LLVM. */
#include "runtime/target/target.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) || defined(__riscv)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#if defined(__x86_64__)

typedef struct regs {
    uint32_t a, b, c, d;
} regs;

static regs cpuid(uint32_t leaf, uint32_t subleaf)
{
    regs r = { 0, 0, 0, 0 };
    if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d))
        memset(&r, 0, sizeof r);
    return r;
}

/* The register state that the operating system saves.  Without it AVX instructions fault whatever cpuid says. */
static uint64_t saved_state(bool osxsave)
{
    uint32_t low = 0, high = 0;
    if (osxsave)
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static uint32_t reg_of(regs r, char name)
{
    return name == 'b' ? r.b : name == 'c' ? r.c : r.d;
}

static uint64_t read_features(void)
{
    uint32_t leaf = 1;
    regs r = cpuid(leaf, 0);
    const uint64_t state = saved_state((r.c >> 27 & 1) != 0);
    uint64_t set = 0;

    for (const rt_cpuid_bit *row = opjit_rt_cpuid_bits; row->leaf != 0; row++) {
        if (row->leaf != leaf) /* once per leaf, not per row: cpuid leaves a virtual machine */
            r = cpuid(leaf = row->leaf, 0);
        if ((reg_of(r, row->reg) >> row->bit & 1) != 0 && (state & row->state) == row->state)
            set |= UINT64_C(1) << row->feature;
    }
    return set;
}

/* --- tuning: family and model to LLVM's name ---------------------------------------------------------------------- */

static const struct model_row {
    char vendor; /* 'I' GenuineIntel, 'A' AuthenticAMD, 'H' HygonGenuine */
    uint8_t family;
    uint8_t first, last; /* models; the first matching row wins */
    char tune[17];
} models[] = {
    { 'A', 0x17, 0x00, 0x2f, "znver1" },       { 'A', 0x17, 0x30, 0xff, "znver2" },
    { 'H', 0x18, 0x00, 0xff, "znver1" },       { 'A', 0x19, 0x10, 0x1f, "znver4" },
    { 'A', 0x19, 0x60, 0x7f, "znver4" },       { 'A', 0x19, 0xa0, 0xaf, "znver4" },
    { 'A', 0x19, 0x00, 0xff, "znver3" },       { 'A', 0x1a, 0x00, 0xff, "znver5" },
    { 'A', 0x15, 0x02, 0x02, "bdver2" },       { 'A', 0x15, 0x00, 0x0f, "bdver1" },
    { 'A', 0x15, 0x10, 0x1f, "bdver2" },       { 'A', 0x15, 0x30, 0x3f, "bdver3" },
    { 'A', 0x15, 0x60, 0x7f, "bdver4" },       { 'A', 0x16, 0x00, 0xff, "btver2" },
    { 'I', 6, 0x1a, 0x1a, "nehalem" },         { 'I', 6, 0x1e, 0x1f, "nehalem" },
    { 'I', 6, 0x2e, 0x2e, "nehalem" },         { 'I', 6, 0x25, 0x25, "westmere" },
    { 'I', 6, 0x2c, 0x2c, "westmere" },        { 'I', 6, 0x2f, 0x2f, "westmere" },
    { 'I', 6, 0x2a, 0x2a, "sandybridge" },     { 'I', 6, 0x2d, 0x2d, "sandybridge" },
    { 'I', 6, 0x3a, 0x3a, "ivybridge" },       { 'I', 6, 0x3e, 0x3e, "ivybridge" },
    { 'I', 6, 0x3c, 0x3c, "haswell" },         { 'I', 6, 0x3f, 0x3f, "haswell" },
    { 'I', 6, 0x45, 0x46, "haswell" },         { 'I', 6, 0x3d, 0x3d, "broadwell" },
    { 'I', 6, 0x47, 0x47, "broadwell" },       { 'I', 6, 0x4f, 0x4f, "broadwell" },
    { 'I', 6, 0x56, 0x56, "broadwell" },       { 'I', 6, 0x4e, 0x4e, "skylake" },
    { 'I', 6, 0x5e, 0x5e, "skylake" },         { 'I', 6, 0x8e, 0x8e, "skylake" },
    { 'I', 6, 0x9e, 0x9e, "skylake" },         { 'I', 6, 0xa5, 0xa6, "skylake" },
    { 'I', 6, 0x55, 0x55, "skylake-avx512" },  { 'I', 6, 0x66, 0x66, "cannonlake" },
    { 'I', 6, 0x7d, 0x7e, "icelake-client" },  { 'I', 6, 0x6a, 0x6a, "icelake-server" },
    { 'I', 6, 0x6c, 0x6c, "icelake-server" },  { 'I', 6, 0x8c, 0x8d, "tigerlake" },
    { 'I', 6, 0xa7, 0xa7, "rocketlake" },      { 'I', 6, 0x97, 0x97, "alderlake" },
    { 'I', 6, 0x9a, 0x9a, "alderlake" },       { 'I', 6, 0xbe, 0xbe, "gracemont" },
    { 'I', 6, 0xb7, 0xb7, "raptorlake" },      { 'I', 6, 0xba, 0xba, "raptorlake" },
    { 'I', 6, 0xbf, 0xbf, "raptorlake" },      { 'I', 6, 0xaa, 0xaa, "meteorlake" },
    { 'I', 6, 0xac, 0xac, "meteorlake" },      { 'I', 6, 0xb5, 0xb5, "arrowlake" },
    { 'I', 6, 0xc5, 0xc5, "arrowlake" },       { 'I', 6, 0xc6, 0xc6, "arrowlake-s" },
    { 'I', 6, 0xbd, 0xbd, "lunarlake" },       { 'I', 6, 0x8f, 0x8f, "sapphirerapids" },
    { 'I', 6, 0xcf, 0xcf, "emeraldrapids" },   { 'I', 6, 0xad, 0xad, "graniterapids" },
    { 'I', 6, 0xae, 0xae, "graniterapids-d" }, { 'I', 6, 0xaf, 0xaf, "sierraforest" },
    { 'I', 6, 0xb6, 0xb6, "grandridge" },      { 'I', 6, 0xdd, 0xdd, "clearwaterforest" },
    { 'I', 6, 0x37, 0x37, "silvermont" },      { 'I', 6, 0x4d, 0x4d, "silvermont" },
    { 'I', 6, 0x5c, 0x5c, "goldmont" },        { 'I', 6, 0x5f, 0x5f, "goldmont" },
    { 'I', 6, 0x7a, 0x7a, "goldmont-plus" },   { 'I', 6, 0x86, 0x86, "tremont" },
    { 'I', 6, 0x96, 0x96, "tremont" },         { 'I', 6, 0x9c, 0x9c, "tremont" },
};

static const char *host_tune(uint64_t features)
{
    const regs vendor = cpuid(0, 0);
    const uint32_t signature = cpuid(1, 0).a;
    const char letter = vendor.b == 0x756e6547   ? 'I'
                        : vendor.b == 0x68747541 ? 'A'
                        : vendor.b == 0x6f677948 ? 'H'
                                                 : '?';
    uint32_t family = signature >> 8 & 0xf, model = signature >> 4 & 0xf;

    if (family == 6 || family == 15)
        model |= signature >> 12 & 0xf0;
    if (family == 15)
        family += signature >> 20 & 0xff;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const struct model_row *row = &models[i];
        if (row->vendor != letter || row->family != family || model < row->first || model > row->last)
            continue;
        if (strcmp(row->tune, "skylake-avx512") == 0 && (features >> RT_X86_AVX512VNNI & 1) != 0)
            return "cascadelake"; /* the same model number */
        return row->tune;
    }
    return "generic";
}

/* The most of a shared last-level cache that counts per thread.  A virtual machine with few threads may see its host's
 * whole cache, hundreds of megabytes, and shares it with others that it does not see. */
#define LARGEST_SHARE (UINT64_C(16) << 20)

/* The deterministic cache parameters: leaf 4 on Intel, 0x8000001d (same layout) on AMD. */
static void host_caches(uint64_t sizes[4])
{
    const bool intel = cpuid(0, 0).b == 0x756e6547;

    for (uint32_t sub = 0; sub < 16; sub++) {
        const regs r = cpuid(intel ? 4 : 0x8000001d, sub);
        const uint32_t type = r.a & 31, level = r.a >> 5 & 7;
        if (type == 0)
            break;
        const uint64_t size =
            ((uint64_t)(r.b >> 22) + 1) * ((r.b >> 12 & 0x3ff) + 1) * ((r.b & 0xfff) + 1) * ((uint64_t)r.c + 1);
        const uint64_t share = LARGEST_SHARE * ((r.a >> 14 & 0xfff) + 1);
        if (type != 2 && level >= 1 && level <= 3) /* 2: instructions */
            sizes[level] = size < share ? size : share;
    }
}

#else

/* A CPU without a row gets a tuning by its features. */
static const char *host_tune(uint64_t features)
{
    (void)features;
    return "generic";
}

static void host_caches(uint64_t sizes[4])
{
    (void)sizes;
}

#if defined(__aarch64__)
#ifndef PR_SVE_GET_VL
#define PR_SVE_GET_VL 51
#endif

/* Bits of AT_HWCAP and AT_HWCAP2 as in the kernel's asm/hwcap.h. */
static uint64_t read_features(void)
{
    uint64_t set = UINT64_C(1) << RT_ARM_NEON;
    const int length = (getauxval(AT_HWCAP) >> 22 & 1) != 0 ? prctl(PR_SVE_GET_VL) : -1;

    if (length < 0)
        return set;
    set |= UINT64_C(1) << RT_ARM_SVE;
    if ((getauxval(AT_HWCAP2) >> 1 & 1) != 0)
        set |= UINT64_C(1) << RT_ARM_SVE2;
    if ((length & 0xffff) >= 32)
        set |= UINT64_C(1) << RT_ARM_SVE_256;
    if ((length & 0xffff) >= 64)
        set |= UINT64_C(1) << RT_ARM_SVE_512;
    return set;
}

#else

/* One bit per letter.  Extensions with longer names are not detected. */
static uint64_t read_features(void)
{
    static const struct {
        char letter;
        rt_feature feature;
    } letters[] = { { 'M', RT_RISCV_M }, { 'A', RT_RISCV_A }, { 'F', RT_RISCV_F },
                    { 'D', RT_RISCV_D }, { 'C', RT_RISCV_C }, { 'V', RT_RISCV_V } };
    const unsigned long told = getauxval(AT_HWCAP);
    uint64_t set = 0, bytes = 0;

    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if ((told >> (letters[i].letter - 'A') & 1) != 0)
            set |= UINT64_C(1) << letters[i].feature;
    if ((set >> RT_RISCV_V & 1) != 0)
        __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes)); /* vlenb, by number for assemblers without V */
    if (bytes >= 32)
        set |= UINT64_C(1) << RT_RISCV_ZVL256B;
    if (bytes >= 64)
        set |= UINT64_C(1) << RT_RISCV_ZVL512B;
    return set;
}

#endif
#endif

/* --- caches ------------------------------------------------------------------------------------------------------- */

/* Reads the first line of a small file of /sys without its newline; false: there is none. */
static bool read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    bool good;

    if (file == NULL)
        return false;
    good = fgets(line, size, file) != NULL;
    fclose(file);
    if (good)
        line[strcspn(line, "\n")] = '\0';
    return good;
}

/* Fills in sizes that are still 0.  /sys may know them even in virtual machines whose cpuid hides the caches. */
static void sys_caches(uint64_t sizes[4])
{
    for (unsigned index = 0; index < 8; index++) {
        char path[96], type[32], line[32];
        unsigned level;
        unsigned long long kib;

        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/type", index);
        if (!read_line(path, type, sizeof type))
            break;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/level", index);
        if (strcmp(type, "Instruction") == 0 || !read_line(path, line, sizeof line) || sscanf(line, "%u", &level) != 1)
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/size", index);
        if (level >= 1 && level <= 3 && read_line(path, line, sizeof line) && sscanf(line, "%lluK", &kib) == 1 &&
            kib < UINT64_C(1) << 30)
            sizes[level] = kib * 1024;
    }
}

/* A virtual machine may hide a feature that others build on; those are dropped, too. */
static uint64_t host_features(void)
{
    uint64_t set = read_features(), before;

    do {
        before = set;
        for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
            if ((opjit_rt_feature_needs((rt_feature)f) & ~set) != 0)
                set &= ~(UINT64_C(1) << f);
    } while (set != before);
    return set;
}

static void detect(rt_target *out)
{
    uint64_t sizes[4] = { 0 };
    const char *tune;

    opjit_rt_target_set_features(out, host_features());
    tune = host_tune(out->features);
    memcpy(out->tune, tune, strlen(tune) + 1);
    host_caches(sizes);
    if (sizes[1] == 0)
        sys_caches(sizes);
    if (sizes[1] >= 1024 && sizes[2] >= 1024) { /* otherwise the level's defaults */
        out->l1 = sizes[1];
        out->l2 = sizes[2];
        out->l3 = sizes[3];
    }
    opjit_rt_target_write_text(out);
}

/* Once per process, because each cpuid leaves a virtual machine. */
static pthread_once_t host_once = PTHREAD_ONCE_INIT;
static rt_target host_target;

static void detect_once(void)
{
    detect(&host_target);
}

void opjit_rt_target_host(rt_target *out)
{
    pthread_once(&host_once, detect_once);
    memcpy(out, &host_target, sizeof *out);
}

opjit_status opjit_rt_target_runs_here(const rt_target *target, opjit_error *error)
{
    const rt_target *const host = &host_target;
    uint64_t missing;

    pthread_once(&host_once, detect_once);
    missing = target->features & ~host->features;
    if (host->arch == target->arch && missing == 0)
        return OPJIT_OK;
    if (host->arch != target->arch)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{!kernel}{!target}code for {%s} does not run on this machine, which is %.*s",
                               target->text, (int)strcspn(host->text, "+,"), host->text);
    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
        if ((missing >> f & 1) != 0)
            return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                   "{!kernel}{!target}this CPU lacks %s, which code for {%s} needs",
                                   opjit_rt_feature_name((rt_feature)f), target->text);
    return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                           "{!kernel}{!target}code for {%s} needs CPU features unknown here (%#llx)", target->text,
                           (unsigned long long)missing);
}
