/* SPDX-License-Identifier: Apache-2.0 */
/* tuning.h - the numbers of tuning.def by name. */
#ifndef OPJIT_CODEGEN_TUNING_H
#define OPJIT_CODEGEN_TUNING_H

enum {
#define TUNING(name, value, unit, benchmark, machine, what) name = (value),
#include "codegen/tuning.def"
#undef TUNING
};

#endif
