/* SPDX-License-Identifier: Apache-2.0 */
/* stored_model.h - shared by the tests of models that the disk cache knows: a model, the folder, a run as of a process
 * of its own, and which files the cache has. */
#ifndef OPJIT_TESTS_UNIT_STORED_MODEL_H
#define OPJIT_TESTS_UNIT_STORED_MODEL_H

#include <check.h>
#include <unistd.h>

#include <opjit/cache.h>
#include <opjit/model.h>

#include "frontend/onnx/model.h"
#include "tests/support/onnx_write.h"
#include "tests/unit/runtime/rt_sample.h"

enum { ROWS = 16, INNER = 96, COLUMNS = 128, MOST_FILES = 64 };

static char folder[64];
static float weights[INNER][COLUMNS];
static uint32_t warnings;

static inline void on_event(void *user, const opjit_event *event)
{
    (void)user;
    warnings += event->kind == OPJIT_EVENT_WARNING;
}

static inline void setup(void)
{
    strcpy(folder, "/tmp/opjit-stored-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (int i = 0; i < INNER; i++)
        for (int k = 0; k < COLUMNS; k++)
            weights[i][k] = (float)((i * 131 + k * 71) % 257 - 128) / 64;
    warnings = 0;
}

static inline void teardown(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/* y = x exp(W) + b, of x { n, INNER }: W is bound, exp(W) kept, b part of the kernel. */
static inline rt_bytes product(void)
{
    rt_bytes g = new_message(), w = new_message();
    float b[COLUMNS];
    for (int k = 0; k < COLUMNS; k++)
        b[k] = (float)k;
    put_int(&w, 1, INNER);
    put_int(&w, 1, COLUMNS);
    put_int(&w, 2, FLOAT);
    put_text(&w, 8, "W");
    put_data(&w, 9, weights, sizeof weights);
    put_message(&g, 1, node("Exp", "W", NULL, "made once"));
    put_message(&g, 1, node("MatMul", "x", "made once", "product"));
    put_message(&g, 1, node("Add", "product", "b", "y"));
    put_message(&g, 5, w);
    put_message(&g, 5, initializer("b", FLOAT, COLUMNS, b, sizeof b));
    put_message(&g, 11, port("x", FLOAT, "n 96"));
    put_message(&g, 12, port("y", FLOAT, "n 128"));
    return model_of(g);
}

typedef struct result {
    bool is_found, from_disk;
    float y[ROWS][COLUMNS];
} result;

static inline opjit_context *begin(const opjit_allocator *allocator)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    options.cache_dir = folder;
    options.event = on_event;
    options.allocator = allocator;
    return opjit_context_create(&options, &context, NULL) == OPJIT_OK ? context : NULL;
}

static inline opjit_status call(const opjit_kernel *kernel, uint64_t rows, result *out)
{
    float x[ROWS][INNER];
    for (int i = 0; i < ROWS * INNER; i++)
        x[i / INNER][i % INNER] = (float)(i % 37 - 18) / 8;
    memset(out->y, 0, sizeof out->y);
    const opjit_binding bindings[] = { { x, rows * sizeof x[0] }, { out->y, rows * sizeof out->y[0] } };
    opjit_call c = OPJIT_CALL_INIT;
    c.bindings = bindings;
    c.binding_count = 2;
    return opjit_kernel_call(kernel, &c, NULL);
}

static inline opjit_model_options options_of(opjit_model_dim *n, uint64_t rows)
{
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    *n = (opjit_model_dim){ "n", rows };
    options.dims = n;
    options.dim_count = 1;
    return options;
}

/* As a process of its own would: opens the model, compiles and calls it. */
static inline opjit_status run(const rt_bytes *file, uint64_t rows, uint32_t flags, const opjit_allocator *allocator,
                               result *out)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_model_dim n;
    opjit_model_options options = options_of(&n, rows);
    opjit_context *const context = begin(allocator);
    opjit_kernel *kernel = NULL;
    opjit_model *model = NULL;
    memset(out, 0, sizeof *out);
    if (context == NULL)
        return OPJIT_OUT_OF_MEMORY;
    options.flags = flags;
    opjit_status status = opjit_model_read(context, file->data, file->size, &options, &model, NULL);
    out->is_found = status == OPJIT_OK && model->stored.is_found;
    if (status == OPJIT_OK)
        status = opjit_model_compile(model, NULL, &kernel, NULL);
    if (status == OPJIT_OK)
        status = opjit_kernel_get_info(kernel, &info, NULL);
    if (status == OPJIT_OK)
        status = call(kernel, rows, out);
    out->from_disk = (info.flags & OPJIT_KERNEL_FROM_DISK) != 0;
    opjit_kernel_release(kernel);
    opjit_model_close(model);
    opjit_context_destroy(context);
    return status;
}

static inline void expect(const rt_bytes *file, bool is_found, const result *bits)
{
    result r;
    ck_assert_int_eq(run(file, ROWS, 0, NULL, &r), OPJIT_OK);
    ck_assert_int_eq(r.is_found, is_found);
    ck_assert(memcmp(r.y, bits->y, sizeof r.y) == 0);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

typedef struct found {
    char paths[MOST_FILES][128];
    uint32_t count, readings, weights, secrets;
} found;

static inline bool see(void *user, const opjit_cache_entry *entry)
{
    found *const f = user;
    char digits[OPJIT_CACHE_KEY_TEXT_SIZE];
    if ((entry->flags & OPJIT_CACHE_ENTRY_MODEL) == 0 || f->count == MOST_FILES)
        return true;
    f->readings += strcmp(entry->name, "reading") == 0;
    f->weights += strcmp(entry->name, "weights") == 0;
    f->secrets += strcmp(entry->name, "secret") == 0;
    opjit_cache_key_to_text(&entry->key, digits);
    snprintf(f->paths[f->count++], sizeof f->paths[0], "%s/%s.opjit", folder, digits);
    return true;
}

static inline found find(void)
{
    found f = { .count = 0 };
    opjit_context *const context = begin(NULL);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_DISK, NULL, see, &f, NULL), OPJIT_OK);
    opjit_context_destroy(context);
    return f;
}

static inline void write_whole(const char *name, const void *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

#endif
