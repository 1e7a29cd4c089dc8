/* SPDX-License-Identifier: Apache-2.0 */
/* target_text.c - target to text: the canonical string, and the features by LLVM's names. */
#include "runtime/target/target_text.h"

#include <stdio.h>
#include <string.h>

#define BIT(feature) RT_FEATURE_BIT(feature)

void opjit_rt_write_part(rt_text_writer *w, const char *before, const char *part)
{
    const char *const parts[] = { before, part };
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(parts[i]), room = w->size - 1 - w->used, taken = length < room ? length : room;
        memcpy(w->text + w->used, parts[i], taken);
        w->used += taken;
    }
    w->text[w->used] = '\0';
}

static void write_number(rt_text_writer *w, const char *before, uint64_t value)
{
    char digits[24];
    if (snprintf(digits, sizeof digits, "%llu", (unsigned long long)value) > 0)
        opjit_rt_write_part(w, before, digits);
}

void opjit_rt_target_write_text(rt_target *t)
{
    rt_text_writer w = { t->text, sizeof t->text, 0 };
    const uint64_t of_level = opjit_rt_level_features(t->arch, t->level);
    const rt_level_row *row = opjit_rt_level(t->arch, t->level);

    opjit_rt_write_part(&w, opjit_rt_target_family(t->arch), ":");
    opjit_rt_write_part(&w, "", row->name);
    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
        if ((t->features & ~of_level & BIT(f)) != 0)
            opjit_rt_write_part(&w, "+", opjit_rt_features[f].name);
    if (strcmp(t->tune, "generic") != 0)
        opjit_rt_write_part(&w, ",tune=", t->tune);
    if (t->vector_bytes != opjit_rt_default_vector_bytes(t))
        write_number(&w, ",vec=", t->vector_bytes);
    if (t->l1 != row->l1)
        write_number(&w, ",l1=", t->l1);
    if (t->l2 != row->l2)
        write_number(&w, ",l2=", t->l2);
    if (t->l3 != row->l3)
        write_number(&w, ",l3=", t->l3);
}

void opjit_rt_target_features_text(const rt_target *t, char *text, size_t size)
{
    rt_text_writer w = { text, size, 0 };

    if (size == 0)
        return;
    text[0] = '\0';
    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
        if ((t->features & BIT(f)) != 0 && !opjit_rt_features[f].ours)
            opjit_rt_write_part(&w, w.used == 0 ? "+" : ",+", opjit_rt_features[f].name);
}
