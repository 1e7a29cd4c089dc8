/* SPDX-License-Identifier: Apache-2.0 */
/* reloc.h - the relocations of position-independent code, machine by machine.  Knows neither LLVM nor files. */
#ifndef OPJIT_CODEGEN_OBJECT_RELOC_H
#define OPJIT_CODEGEN_OBJECT_RELOC_H

#include "runtime/base/base.h"

typedef enum cg_reloc_result {
    CG_RELOC_DONE,
    CG_RELOC_ADDRESS, /* would need an address, or is unknown */
    CG_RELOC_FAR      /* what it refers to is too far away */
} cg_reloc_result;

bool opjit_cg_reloc_machine(uint16_t machine); /* whether EM_... is known */
/* Bytes that a relocation of this type changes at most; 0: an unknown type. */
uint32_t opjit_cg_reloc_width(uint16_t machine, uint32_t type);
/* Whether it takes the lower bits of a distance whose upper bits are in the relocation at its symbol (RISC-V). */
bool opjit_cg_reloc_is_low(uint16_t machine, uint32_t type);
/* Changes the bytes at `at`, which lie at `place` in a piece that starts at a multiple of 4096, to refer to `value` in
 * that piece.  For a low one, `place` is that of its upper half. */
cg_reloc_result opjit_cg_reloc_apply(uint16_t machine, uint32_t type, uint64_t place, uint64_t value, uint8_t *at);

#endif
