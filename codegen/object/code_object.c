/* SPDX-License-Identifier: Apache-2.0 */
/* code_object.c - makes the code object that ROCm's loader accepts from an AMDGPU object: kernels and their descriptors
 * (NAME and NAME.kd) in flat code, with LLVM's note about the arguments before it. */
#include "codegen/object/code_object.h"

#include "codegen/object/elf.h"
#include "codegen/object/link.h"

#include <string.h>

static opjit_status take_symbol(void *user, const cg_symbol *symbol)
{
    opjit_cg_elf_symbol(user, symbol->name, symbol->type, CG_ELF_TEXT, symbol->value, symbol->size);
    return OPJIT_OK;
}

static opjit_status build(cg_elf *file, const uint8_t *object, size_t size, rt_bytes *out, opjit_error *error)
{
    const uint8_t *note;
    size_t note_size;
    TRY(opjit_cg_link(object, size, NULL, &file->text, error));
    TRY(opjit_cg_link_note(object, size, &note, &note_size, error));
    TRY(opjit_cg_link_symbols(object, size, take_symbol, file, error));
    memcpy(&file->like, object, sizeof(file->like)); /* linking has checked that there is one */
    file->head_is_note = true;
    TRY(opjit_cg_elf_place(file, note_size, error));
    return opjit_cg_elf_write(file, note, out, error);
}

opjit_status opjit_cg_code_object(const opjit_allocator *allocator, const uint8_t *object, size_t size, rt_bytes *out,
                                  opjit_error *error)
{
    cg_elf file;
    opjit_cg_elf_init(&file, allocator);
    const opjit_status status = build(&file, object, size, out, error);
    opjit_cg_elf_free(&file);
    return status;
}
