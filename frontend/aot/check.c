/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - NAME_runs_here in generated headers: a declaration where the object defines it (x86-64, which has
 * instructions that tell), else a definition in C, because only the operating system can be asked. */
#include "frontend/aot/artifact.h"

/* The bits of AT_HWCAP that stand for single-letter RISC-V extensions. */
static uint64_t letters_of(const rt_target *t)
{
    static const struct {
        rt_feature feature;
        char letter;
    } rows[] = { { RT_RISCV_M, 'M' }, { RT_RISCV_A, 'A' }, { RT_RISCV_F, 'F' },
                 { RT_RISCV_D, 'D' }, { RT_RISCV_C, 'C' }, { RT_RISCV_V, 'V' } };
    uint64_t mask = 0;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rt_target_has(t, rows[i].feature))
            mask |= UINT64_C(1) << (rows[i].letter - 'A');
    return mask;
}

/* Whether a version needs a feature that older systems don't report. */
static bool has_other_extensions(const rt_target *t)
{
    const uint64_t all = (UINT64_C(1) << RT_RISCV_ZBA | UINT64_C(1) << RT_RISCV_ZBB | UINT64_C(1) << RT_RISCV_ZBS |
                          UINT64_C(1) << RT_RISCV_ZFHMIN | UINT64_C(1) << RT_RISCV_ZVFHMIN);
    return (t->features & all) != 0;
}

/* AArch64: whether every version needs SVE. */
static bool all_need_sve(const opjit_artifact *a)
{
    for (uint32_t i = 0; i < a->target_count; i++)
        if (!rt_target_has(&a->targets[i], RT_ARM_SVE))
            return false;
    return true;
}

void opjit_fe_artifact_check_includes(const opjit_artifact *a, rt_bytes *out)
{
    const bool sve = all_need_sve(a);

    if (a->targets[0].arch == RT_ARCH_RISCV64 || sve)
        opjit_rt_bytes_printf(out, "#include <sys/auxv.h>\n");
    if (sve)
        opjit_rt_bytes_printf(out, "#include <sys/prctl.h>\n");
}

/* Writes the test whether any version runs. */
static void put_arm(const opjit_artifact *a, rt_bytes *out)
{
    if (!all_need_sve(a)) {
        opjit_rt_bytes_printf(out, "    return 1; /* NEON: all of them */\n");
        return;
    }
    for (uint32_t i = 0; i < a->target_count; i++) {
        const rt_target *t = &a->targets[i];
        const unsigned bytes = rt_target_has(t, RT_ARM_SVE_512) ? 64 : rt_target_has(t, RT_ARM_SVE_256) ? 32 : 16;
        opjit_rt_bytes_printf(out,
                              "    if ((getauxval(16) >> 22 & 1) != 0%s &&\n"
                              "        (prctl(51) & 0xffff) >= %u) /* SVE%s with vectors of so many bytes */\n"
                              "        return 1;\n",
                              rt_target_has(t, RT_ARM_SVE2) ? " && (getauxval(26) >> 1 & 1) != 0" : "", bytes,
                              rt_target_has(t, RT_ARM_SVE2) ? "2" : "");
    }
    opjit_rt_bytes_printf(out, "    return 0;\n");
}

static void put_riscv(const rt_target *t, rt_bytes *out)
{
    const unsigned bytes = rt_target_has(t, RT_RISCV_ZVL512B) ? 64 : rt_target_has(t, RT_RISCV_ZVL256B) ? 32 : 16;

    if (has_other_extensions(t)) {
        opjit_rt_bytes_printf(out, "    return 0; /* not known: it has extensions that AT_HWCAP does not tell of */\n");
        return;
    }
    if (rt_target_has(t, RT_RISCV_V))
        opjit_rt_bytes_printf(out, "    unsigned long bytes = 0; /* of a vector register */\n");
    opjit_rt_bytes_printf(out,
                          "    if ((getauxval(16) & 0x%llxul) != 0x%llxul) /* letters of extensions */\n"
                          "        return 0;\n",
                          (unsigned long long)letters_of(t), (unsigned long long)letters_of(t));
    if (rt_target_has(t, RT_RISCV_V))
        opjit_rt_bytes_printf(out,
                              "    __asm__ volatile(\"csrr %%0, 0xc22\" : \"=r\"(bytes)); /* vlenb */\n"
                              "    return bytes >= %u;\n",
                              bytes);
    else
        opjit_rt_bytes_printf(out, "    return 1;\n");
}

void opjit_fe_artifact_check(const opjit_artifact *a, const char *name, rt_bytes *out)
{
    const rt_target *t = &a->targets[0];

    if (t->arch == RT_ARCH_X86_64) {
        opjit_rt_bytes_printf(out, "int %s_runs_here(void);\n\n", name);
        return;
    }
    opjit_rt_bytes_printf(out, "static inline int %s_runs_here(void)\n{\n", name);
    if (t->arch == RT_ARCH_AARCH64)
        put_arm(a, out);
    else
        put_riscv(t, out);
    opjit_rt_bytes_printf(out, "}\n\n");
}
