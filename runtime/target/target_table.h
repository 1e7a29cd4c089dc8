/* SPDX-License-Identifier: Apache-2.0 */
/* target_table.h - the tables behind target strings: architectures with their levels, features, named CPUs, tunings.
 * For the files of this folder; all others use target.h. */
#ifndef OPJIT_RUNTIME_TARGET_TARGET_TABLE_H
#define OPJIT_RUNTIME_TARGET_TARGET_TABLE_H

#include "runtime/target/target.h"

#define RT_FEATURE_BIT(feature) (UINT64_C(1) << (feature))

/* A level of an architecture: its name in target strings, and the defaults of a target of that level. */
typedef struct rt_level_row {
    rt_arch arch;
    uint32_t level;
    char name[12];
    uint32_t vector_bytes;
    uint64_t l1, l2, l3;
} rt_level_row;

typedef struct rt_feature_row {
    char name[16]; /* LLVM's spelling, also ours */
    rt_arch arch;
    uint32_t level;        /* lowest level of the architecture that has it; 0: none */
    uint64_t needs;        /* what its instructions build on */
    uint32_t vector_bytes; /* vector width that it promises beyond the level's; 0: none */
    bool ours;             /* unknown to LLVM */
} rt_feature_row;

/* Named CPUs.  l1 0: the level's cache sizes apply. */
typedef struct rt_cpu_row {
    char name[15];
    rt_arch arch;
    uint32_t level;
    uint64_t extra;
    uint64_t l1, l2, l3;
} rt_cpu_row;

extern const rt_feature_row opjit_rt_features[RT_FEATURE_COUNT];
const rt_level_row *opjit_rt_level(rt_arch arch, uint32_t level);
const rt_level_row *opjit_rt_named_level(uint32_t index); /* NULL at the end */
const rt_cpu_row *opjit_rt_named_cpu(uint32_t index);
/* The level's width of vectors, or the larger one that a feature promises. */
uint32_t opjit_rt_default_vector_bytes(const rt_target *t);
bool opjit_rt_tune_known(rt_arch arch, const char *name, size_t length);

#endif
