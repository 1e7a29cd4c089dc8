/* SPDX-License-Identifier: Apache-2.0 */
/* debug.h - names for machine code: perf's map file and GDB's JIT interface.  Both are off unless asked for. */
#ifndef OPJIT_RUNTIME_DEBUG_DEBUG_H
#define OPJIT_RUNTIME_DEBUG_DEBUG_H

#include "runtime/base/context.h"
#include "runtime/image/image.h"

typedef struct rt_debug_entry rt_debug_entry; /* a registration; NULL: none */

/* Tells perf (map file) and GDB (an ELF file with one symbol per stage, through our own hidden descriptor) about the
 * code of *meta at code, as core->flags say.  Failures are warnings: the kernel works without. */
rt_debug_entry *opjit_rt_debug_register(rt_core *core, const opjit_kernel_meta *meta, const void *code,
                                        size_t code_size);
void opjit_rt_debug_unregister(rt_core *core, rt_debug_entry *entry);

#endif
