/* SPDX-License-Identifier: Apache-2.0 */
/* aot.c - see aot.h. */
#define _GNU_SOURCE
#include "tests/support/aot.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"
#include "tests/support/guarded.h"

/* --- subjects ----------------------------------------------------------------------------------------------------- */
static opjit_compile_options options_of(const aot_subject *s)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.late = s->late;
    options.late_count = s->late_count;
    options.flags = s->flags;
    return options;
}

bool aot_subject_begin(aot_subject *s, opjit_context *context)
{
    opjit_compile_options options = options_of(s);
    opjit_error error = { 0 };
    options.flags |= OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE;
    const opjit_status status = s->op != NULL ? opjit_compile_operator(context, s->op, &options, &s->oracle, &error)
                                              : opjit_compile_graph(context, s->desc, &options, &s->oracle, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_LIMIT, "%s: %s", s->name, error.message);
    return status == OPJIT_OK;
}

void aot_subject_end(aot_subject *s)
{
    opjit_kernel_release(s->oracle);
    opjit_operator_release(s->op);
}

void aot_subject_add(const aot_subject *s, opjit_artifact *artifact, opjit_level level)
{
    opjit_compile_options options = options_of(s);
    opjit_error error = { 0 };
    options.name = s->name;
    options.level = level;
    const opjit_status status = s->op != NULL ? opjit_artifact_add_operator(artifact, s->op, &options, &error)
                                              : opjit_artifact_add_graph(artifact, s->desc, &options, &error);
    ck_assert_msg(status == OPJIT_OK, "%s: %s", s->name, error.message);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */
static void fill(test_random *r, const opjit_buffer_info *info, bool indices, uint8_t *data)
{
    const DML_TENSOR_DATA_TYPE type = (DML_TENSOR_DATA_TYPE)info->dtype;
    const uint32_t size = ref_dtype_size(type);
    const bool wild = test_random_chance(r, 30);
    test_random_fill(r, data, (size_t)info->bytes);
    for (uint64_t i = 0; (i + 1) * size <= info->bytes && !(wild && !indices); i++) {
        const uint64_t bits = ref_element_of_float(type, indices ? (float)test_random_between(r, 0, 3)
                                                                 : (float)test_random_between(r, -9, 12) / 4);
        memcpy(data + i * size, &bits, size);
    }
}

static void *copy_of(const void *data, uint64_t bytes, uint32_t align)
{
    void *memory = NULL;
    ck_assert_int_eq(posix_memalign(&memory, align < 64 ? 64 : align, (size_t)bytes), 0);
    return data == NULL ? memory : memcpy(memory, data, (size_t)bytes);
}

static void call_oracle(aot_memory *m, const aot_subject *s)
{
    const uint32_t count = m->info.inputs + m->info.outputs;
    opjit_binding bindings[AOT_BUFFERS];
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    for (uint32_t i = 0; i < count; i++)
        bindings[i] =
            (opjit_binding){ m->expected[m->shared[i] >= 0 ? m->shared[i] : (int)i], m->info.buffers[i].bytes };
    call.bindings = bindings;
    call.binding_count = count;
    call.params = s->params;
    call.param_count = s->late_count;
    ck_assert_msg(opjit_kernel_call(s->oracle, &call, &error) == OPJIT_OK, "%s: %s", s->name, error.message);
}

void aot_memory_begin(aot_memory *m, test_random *r, const aot_subject *s, uint64_t workspace_bytes)
{
    memset(m, 0, sizeof *m);
    m->info = (opjit_kernel_info)OPJIT_KERNEL_INFO_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(s->oracle, &m->info, NULL), OPJIT_OK);
    const uint32_t count = m->info.inputs + m->info.outputs;
    const bool in_place = test_random_chance(r, 40);
    uint32_t taken = 0;
    ck_assert_uint_le(count, AOT_BUFFERS);
    for (uint32_t i = 0; i < count; i++) {
        const opjit_buffer_info *info = &m->info.buffers[i];
        m->shared[i] = -1;
        for (uint32_t k = 0; in_place && i >= m->info.inputs && k < m->info.inputs && k < 32; k++)
            if (m->shared[i] < 0 && ((info->alias_inputs & ~taken) >> k & 1) != 0 &&
                info->align <= m->info.buffers[k].align && info->bytes <= m->info.buffers[k].bytes)
                m->shared[i] = (int)k;
        if (m->shared[i] >= 0) {
            taken |= 1u << m->shared[i];
            continue;
        }
        m->before[i] = copy_of(NULL, info->bytes, info->align);
        fill(r, info, (int)i == s->index_input, m->before[i]);
        m->expected[i] = copy_of(m->before[i], info->bytes, info->align);
        m->actual[i] = copy_of(m->before[i], info->bytes, info->align);
    }
    m->workspace = copy_of(NULL, workspace_bytes + 64, 64);
    test_random_fill(r, m->workspace, (size_t)workspace_bytes + 64);
    call_oracle(m, s);
}

void aot_memory_end(aot_memory *m)
{
    for (uint32_t i = 0; i < AOT_BUFFERS; i++) {
        free(m->before[i]);
        free(m->expected[i]);
        free(m->actual[i]);
    }
    free(m->workspace);
}

void aot_memory_reset(aot_memory *m)
{
    for (uint32_t i = 0; i < m->info.inputs + m->info.outputs; i++) {
        const uint32_t owner = m->shared[i] >= 0 ? (uint32_t)m->shared[i] : i;
        if (owner == i)
            memcpy(m->actual[i], m->before[i], (size_t)m->info.buffers[i].bytes);
        m->buffers[i] = m->actual[owner];
    }
}

/* Makes elements that are NaNs in both the same NaN. */
static void unify_nans(const opjit_buffer_info *info, uint8_t *a, uint8_t *b)
{
    const DML_TENSOR_DATA_TYPE type = (DML_TENSOR_DATA_TYPE)info->dtype;
    const uint32_t size = ref_dtype_size(type);
    for (uint64_t i = 0; ref_dtype_is_float(type) && (i + 1) * size <= info->bytes; i++) {
        uint64_t x = 0, y = 0;
        memcpy(&x, a + i * size, size);
        memcpy(&y, b + i * size, size);
        if (ref_is_nan(type, x) && ref_is_nan(type, y))
            memcpy(a + i * size, &y, size);
    }
}

void aot_memory_compare(const aot_memory *m, const aot_subject *s, const char *how)
{
    for (uint32_t i = 0; i < m->info.inputs + m->info.outputs; i++) {
        const opjit_buffer_info *info = &m->info.buffers[i];
        uint64_t at = 0;
        if (m->shared[i] >= 0)
            continue;
        unify_nans(info, m->actual[i], m->expected[i]);
        while (at < info->bytes && m->actual[i][at] == m->expected[i][at])
            at++;
        ck_assert_msg(at == info->bytes, "%s (%s), %s: buffer %u of type %u is wrong at byte %llu of %llu", s->name,
                      m->info.name, how, i, info->dtype, (unsigned long long)at, (unsigned long long)info->bytes);
    }
}

/* --- files -------------------------------------------------------------------------------------------------------- */
void aot_folder_begin(aot_folder *folder)
{
    strcpy(folder->path, "/tmp/opjit-aot-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder->path));
}

void aot_folder_end(const aot_folder *folder)
{
    aot_shell(folder, "rm -rf '%s'", folder->path);
}

void aot_write(const aot_folder *folder, const char *name, const char *extension, const void *data, uint64_t bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s.%s", folder->path, name, extension);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, (size_t)bytes, file), bytes);
    ck_assert_int_eq(fclose(file), 0);
}

bool aot_shell(const aot_folder *folder, const char *format, ...)
{
    char command[4096], *end = command + snprintf(command, sizeof command, "cd '%s' && ", folder->path);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(end, sizeof command - (size_t)(end - command), format, arguments);
    va_end(arguments);
    return system(command) == 0;
}
