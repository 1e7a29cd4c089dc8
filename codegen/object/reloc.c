/* SPDX-License-Identifier: Apache-2.0 */
/* reloc.c - PC-relative relocations of x86-64, AArch64, RISC-V and AMDGPU.  These are little endian, and so must the
 * machine be that runs this: cross links from big-endian hosts are not supported. */
#include "codegen/object/reloc.h"

#include <elf.h>
#include <string.h>

static bool fits(uint64_t distance, uint32_t bits)
{
    const int64_t d = (int64_t)distance, limit = (int64_t)1 << (bits - 1);
    return d >= -limit && d < limit;
}

static void put(uint8_t *at, uint32_t mask, uint32_t value)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    word = (word & ~mask) | (value & mask);
    memcpy(at, &word, sizeof word);
}

static cg_reloc_result put_number(uint8_t *at, uint32_t width, uint64_t distance)
{
    if (width == 4 && !fits(distance, 32))
        return CG_RELOC_FAR;
    memcpy(at, &distance, width);
    return CG_RELOC_DONE;
}

/* --- AArch64 ------------------------------------------------------------------------------------------------------ */

static cg_reloc_result put_adr(uint8_t *at, uint64_t distance)
{
    if (!fits(distance, 21))
        return CG_RELOC_FAR;
    put(at, 0x60ffffe0, (uint32_t)(distance & 3) << 29 | (uint32_t)(distance >> 2 & 0x7ffff) << 5);
    return CG_RELOC_DONE;
}

static cg_reloc_result put_branch(uint8_t *at, uint64_t distance)
{
    if (!fits(distance, 28))
        return CG_RELOC_FAR;
    put(at, 0x03ffffff, (uint32_t)(distance >> 2));
    return CG_RELOC_DONE;
}

static cg_reloc_result put_literal(uint8_t *at, uint64_t distance)
{
    if (!fits(distance, 21))
        return CG_RELOC_FAR;
    put(at, 0x00ffffe0, (uint32_t)(distance >> 2) << 5);
    return CG_RELOC_DONE;
}

/* The offset within a page, in units of 2^shift bytes. */
static cg_reloc_result put_page_offset(uint8_t *at, uint64_t value, uint32_t shift)
{
    put(at, 0x003ffc00, (uint32_t)((value & 0xfff) >> shift) << 10);
    return CG_RELOC_DONE;
}

static cg_reloc_result apply_aarch64(uint32_t type, uint64_t place, uint64_t value, uint8_t *at)
{
    switch (type) {
    case R_AARCH64_PREL64: return put_number(at, 8, value - place);
    case R_AARCH64_PREL32: return put_number(at, 4, value - place);
    case R_AARCH64_LD_PREL_LO19: return put_literal(at, value - place);
    case R_AARCH64_ADR_PREL_LO21: return put_adr(at, value - place);
    case R_AARCH64_ADR_PREL_PG_HI21: return put_adr(at, (value >> 12) - (place >> 12));
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return put_page_offset(at, value, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC: return put_page_offset(at, value, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC: return put_page_offset(at, value, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC: return put_page_offset(at, value, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC: return put_page_offset(at, value, 4);
    case R_AARCH64_JUMP26:
    case R_AARCH64_CALL26: return put_branch(at, value - place);
    default: return CG_RELOC_ADDRESS;
    }
}

/* --- RISC-V ------------------------------------------------------------------------------------------------------- */

static cg_reloc_result put_upper(uint8_t *at, uint64_t distance)
{
    if (!fits(distance + 0x800, 32))
        return CG_RELOC_FAR;
    put(at, 0xfffff000, (uint32_t)(distance + 0x800));
    return CG_RELOC_DONE;
}

/* The difference of two places comes as two relocations of the same bytes. */
static cg_reloc_result add_number(uint8_t *at, uint32_t width, uint64_t value)
{
    uint64_t sum = 0;
    memcpy(&sum, at, width);
    sum += value;
    memcpy(at, &sum, width);
    return CG_RELOC_DONE;
}

static cg_reloc_result apply_riscv(uint32_t type, uint64_t place, uint64_t value, uint8_t *at)
{
    const uint64_t distance = value - place;
    const uint32_t low = (uint32_t)distance & 0xfff;
    switch (type) {
    case R_RISCV_ADD32: return add_number(at, 4, value);
    case R_RISCV_SUB32: return add_number(at, 4, 0 - value);
    case R_RISCV_ADD64: return add_number(at, 8, value);
    case R_RISCV_SUB64: return add_number(at, 8, 0 - value);
    case R_RISCV_32_PCREL: return put_number(at, 4, distance);
    case R_RISCV_PCREL_HI20: return put_upper(at, distance);
    case R_RISCV_PCREL_LO12_I: put(at, 0xfff00000, low << 20); return CG_RELOC_DONE;
    case R_RISCV_PCREL_LO12_S: put(at, 0xfe000f80, (low >> 5) << 25 | (low & 31) << 7); return CG_RELOC_DONE;
    case R_RISCV_CALL:
    case R_RISCV_CALL_PLT: put(at + 4, 0xfff00000, low << 20); return put_upper(at, distance);
    default: return CG_RELOC_ADDRESS;
    }
}

/* --- AMDGPU, whose numbers glibc's <elf.h> lacks ----------------------------------------------------------------- */

enum { R_AMDGPU_REL32 = 4, R_AMDGPU_REL64 = 5, R_AMDGPU_REL32_LO = 10, R_AMDGPU_REL32_HI = 11 };

static cg_reloc_result apply_amdgpu(uint32_t type, uint64_t place, uint64_t value, uint8_t *at)
{
    const uint64_t distance = value - place;
    switch (type) {
    case R_AMDGPU_REL64: return put_number(at, 8, distance);
    case R_AMDGPU_REL32: return put_number(at, 4, distance);
    case R_AMDGPU_REL32_LO: put(at, UINT32_MAX, (uint32_t)distance); return CG_RELOC_DONE;
    case R_AMDGPU_REL32_HI: put(at, UINT32_MAX, (uint32_t)(distance >> 32)); return CG_RELOC_DONE;
    default: return CG_RELOC_ADDRESS;
    }
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

bool opjit_cg_reloc_machine(uint16_t machine)
{
    return machine == EM_X86_64 || machine == EM_AARCH64 || machine == EM_RISCV ||
           machine == EM_AMDGPU;
}

uint32_t opjit_cg_reloc_width(uint16_t machine, uint32_t type)
{
    if (machine == EM_X86_64)
        return type == R_X86_64_PC64 ? 8 : type == R_X86_64_PC32 || type == R_X86_64_PLT32 ? 4 : 0;
    if (machine == EM_AARCH64)
        return type == R_AARCH64_PREL64 ? 8 : 4;
    if (machine == EM_AMDGPU)
        return type == R_AMDGPU_REL64 ? 8 : 4;
    return type == R_RISCV_CALL || type == R_RISCV_CALL_PLT || type == R_RISCV_ADD64 || type == R_RISCV_SUB64 ? 8 : 4;
}

bool opjit_cg_reloc_is_low(uint16_t machine, uint32_t type)
{
    return machine == EM_RISCV && (type == R_RISCV_PCREL_LO12_I || type == R_RISCV_PCREL_LO12_S);
}

cg_reloc_result opjit_cg_reloc_apply(uint16_t machine, uint32_t type, uint64_t place, uint64_t value, uint8_t *at)
{
    const uint32_t width = opjit_cg_reloc_width(machine, type);
    if (width == 0)
        return CG_RELOC_ADDRESS;
    if (machine == EM_X86_64)
        return put_number(at, width, value - place);
    if (machine == EM_AMDGPU)
        return apply_amdgpu(type, place, value, at);
    return machine == EM_AARCH64 ? apply_aarch64(type, place, value, at) : apply_riscv(type, place, value, at);
}
