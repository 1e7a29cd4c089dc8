/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_hsaco.c - kernels for AMD GPUs as artifacts: every pointwise operator with every type of its tensors,
 * reductions and softmax become code objects whose headers, symbols and kernel descriptors are what a loader expects,
 * and which LLVM's own tools read without a warning; outputs for other targets are refused.  Pass grid is tested by
 * ir.grid and grid.*. */
#define _GNU_SOURCE
#include <check.h>
#include <elf.h>
#include <opjit/artifact.h>
#include <opjit/opjit.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/checker.h"
#include "tests/support/gpu_artifact.h"

static const char *const targets[] = { "amdgpu:gfx90a", "amdgpu:gfx942", "amdgpu:gfx1100", "amdgpu:gfx1201" };
static opjit_error error;

/* --- code objects ------------------------------------------------------------------------------------------------- */

typedef struct code_object {
    const uint8_t *data;
    size_t bytes;
    Elf64_Ehdr header;
    Elf64_Shdr sections[16];
} code_object;

/* NULL: there is none. */
static const Elf64_Shdr *section_of(const code_object *o, uint32_t type)
{
    for (uint32_t i = 0; i < o->header.e_shnum; i++)
        if (o->sections[i].sh_type == type)
            return &o->sections[i];
    return NULL;
}

static uint64_t symbol_of(const code_object *o, const char *name)
{
    const Elf64_Shdr *table = section_of(o, SHT_DYNSYM);
    ck_assert_ptr_nonnull(table);
    const char *names = (const char *)o->data + o->sections[table->sh_link].sh_offset;
    for (uint64_t i = 1; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, o->data + table->sh_offset + i * sizeof symbol, sizeof symbol);
        ck_assert_uint_ne(symbol.st_shndx, SHN_UNDEF);
        if (strcmp(names + symbol.st_name, name) == 0)
            return symbol.st_value;
    }
    ck_abort_msg("no symbol %s", name);
    return 0;
}

/* The kernel descriptor (AMDGPU's user guide, "Kernel Descriptor"): bytes 4 to 8 hold each thread's memory, 16 to 24
 * the distance to the code. */
static void check_descriptor(const code_object *o, const char *kernel, uint32_t most_private)
{
    char name[64];
    uint32_t private_bytes;
    int64_t distance;
    snprintf(name, sizeof name, "%s.kd", kernel);
    const uint64_t at = symbol_of(o, name), code = symbol_of(o, kernel);
    ck_assert_uint_eq(at % 64, 0);
    ck_assert_uint_eq(code % 256, 0);
    ck_assert_uint_le(at + 64, o->bytes); /* addresses are offsets */
    memcpy(&private_bytes, o->data + at + 4, 4);
    memcpy(&distance, o->data + at + 16, 8);
    ck_assert_int_eq(distance, (int64_t)(code - at));
    ck_assert_uint_le(private_bytes, most_private);
}

static void check_object(code_object *o, const char *kernel, uint32_t most_private)
{
    ck_assert_uint_gt(o->bytes, sizeof o->header);
    memcpy(&o->header, o->data, sizeof o->header);
    ck_assert(memcmp(o->header.e_ident, ELFMAG, SELFMAG) == 0 && o->header.e_type == ET_DYN &&
              o->header.e_machine == EM_AMDGPU && o->header.e_ident[EI_OSABI] == 64);
    ck_assert_uint_le(o->header.e_shnum, 16);
    ck_assert_uint_eq(o->header.e_shoff + o->header.e_shnum * sizeof(Elf64_Shdr), o->bytes);
    memcpy(o->sections, o->data + o->header.e_shoff, o->header.e_shnum * sizeof(Elf64_Shdr));
    const Elf64_Shdr *note = section_of(o, SHT_NOTE);
    ck_assert(note != NULL && memmem(o->data + note->sh_offset, note->sh_size, kernel, strlen(kernel)) != NULL);
    check_descriptor(o, kernel, most_private);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* most_private: limit of a thread's memory in bytes. */
static code_object get(opjit_artifact *artifact, uint32_t most_private)
{
    const void *data;
    uint64_t bytes;
    ck_assert_msg(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_HSACO, &data, &bytes, &error) == OPJIT_OK, "%s",
                  error.message);
    code_object o = { .data = data, .bytes = (size_t)bytes };
    check_object(&o, "made_v0_s0", most_private);
    return o;
}

/* fmod and trigonometric functions of large angles are functions that are called. */
static void check_pointwise(opjit_artifact *artifact, const DML_OPERATOR_DESC *desc, void *user)
{
    const bool is_modulus = desc->Type == DML_OPERATOR_ELEMENT_WISE_MODULUS_TRUNCATE ||
                            desc->Type == DML_OPERATOR_ELEMENT_WISE_MODULUS_FLOOR;
    const bool is_angle = desc->Type == DML_OPERATOR_ELEMENT_WISE_SIN || desc->Type == DML_OPERATOR_ELEMENT_WISE_COS ||
                          desc->Type == DML_OPERATOR_ELEMENT_WISE_TAN;
    get(artifact, is_modulus || is_angle ? 16 : 0);
    (void)user;
}

START_TEST(pointwise)
{
    opjit_context *context = test_context_create();
    if (test_have_codegen(context))
        gpu_artifact_pointwise(context, &ref_pointwise_rows[_i], targets, 4, (uint32_t)_i, check_pointwise, NULL);
    opjit_context_destroy(context);
}
END_TEST

typedef struct reading {
    const char *target;
    bool read; /* whether the tools have read it */
} reading;

/* Rows by teams, with shuffles and shared memory; columns by threads; stores of 16 bytes. */
static void check_other(opjit_artifact *artifact, const DML_OPERATOR_DESC *desc, void *user)
{
    static char said[1 << 20];
    reading *r = user;
    const code_object o = get(artifact, 0);
    r->read =
        gpu_artifact_read_by("OPJIT_TEST_READELF", "--all --notes", o.data, o.bytes, said, sizeof said) && r->read;
    if (r->read)
        ck_assert_ptr_nonnull(strstr(said, r->target + strlen("amdgpu:")));
    r->read = gpu_artifact_read_by("OPJIT_TEST_OBJDUMP", "-d --disassemble-symbols=made_v0_s0", o.data, o.bytes, said,
                                   sizeof said) &&
              r->read;
    if (r->read && desc->Type == DML_OPERATOR_DIAGONAL_MATRIX)
        ck_assert_msg(strstr(said, "global_store_dwordx4") != NULL || strstr(said, "global_store_b128") != NULL,
                      "%.3000s", said);
    ck_assert(!r->read || strstr(said, "<unknown>") == NULL);
}

START_TEST(others)
{
    opjit_context *context = test_context_create();
    reading r = { targets[_i], true };
    if (test_have_codegen(context))
        gpu_artifact_others(context, targets[_i], check_other, &r);
    if (!r.read)
        printf("skipped: nothing is read by llvm-readelf and llvm-objdump, because they were not found\n");
    opjit_context_destroy(context);
}
END_TEST

static const struct {
    const char *target;
    opjit_artifact_kind what;
    const char *message;
} refusals[] = {
    { "amdgpu:gfx942", OPJIT_ARTIFACT_PTX,
      "ptx is not for target amdgpu:gfx942, which has llvm, asm, ir, json, hsaco" },
    { "amdgpu:gfx1100", OPJIT_ARTIFACT_OBJECT,
      "obj is not for target amdgpu:gfx1100, which has llvm, asm, ir, json, hsaco" },
    { "nvptx:sm_90", OPJIT_ARTIFACT_HSACO,
      "hsaco is not for target nvptx:sm_90, which has llvm, asm, ir, json, ptx, cubin" },
    { "cpu:x86-64-v3", OPJIT_ARTIFACT_HSACO,
      "hsaco is not for target cpu:x86-64-v3, which has obj, header, lib, llvm, asm, ir, json, tvmffi" },
};

START_TEST(refused)
{
    const DML_BUFFER_TENSOR_DESC buffer = {
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, (const uint32_t[]){ 4, 5 }, NULL, 0, 0
    };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_DIAGONAL_MATRIX_OPERATOR_DESC eye = { &tensor, 0, 1.0f };
    opjit_context *context = test_context_create();
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX, &eye };
    opjit_artifact *artifact = gpu_artifact_make(context, &desc, refusals[_i].target);
    const void *data;
    uint64_t bytes;
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, refusals[_i].what, &data, &bytes, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, refusals[_i].message);
    opjit_artifact_destroy(artifact);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.hsaco");
    TCase *t = tcase_create("code objects");
    tcase_add_loop_test(t, pointwise, 0, (int)ref_pointwise_row_count);
    tcase_add_loop_test(t, others, 0, 4);
    tcase_add_loop_test(t, refused, 0, (int)(sizeof refusals / sizeof *refusals));
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
