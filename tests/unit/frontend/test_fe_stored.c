/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_stored.c - models that the disk cache knows: another context, as in another process, gets inputs, outputs and
 * kernel without reading the model, and the bits are the same; nothing of it is taken for another model, other options
 * or other weights, whatever was done to the files. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static void on_event(void *user, const opjit_event *event)
{
    (void)user;
    warnings += event->kind == OPJIT_EVENT_WARNING;
}

static void setup(void)
{
    strcpy(folder, "/tmp/opjit-stored-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (int i = 0; i < INNER; i++)
        for (int k = 0; k < COLUMNS; k++)
            weights[i][k] = (float)((i * 131 + k * 71) % 257 - 128) / 64;
    warnings = 0;
}

static void teardown(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/* y = x exp(W) + b, of x { n, INNER }: W is bound, exp(W) kept, b part of the kernel. */
static rt_bytes product(void)
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

static opjit_context *begin(const opjit_allocator *allocator)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    options.cache_dir = folder;
    options.event = on_event;
    options.allocator = allocator;
    return opjit_context_create(&options, &context, NULL) == OPJIT_OK ? context : NULL;
}

static opjit_status call(const opjit_kernel *kernel, uint64_t rows, result *out)
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

static opjit_model_options options_of(opjit_model_dim *n, uint64_t rows)
{
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    *n = (opjit_model_dim){ "n", rows };
    options.dims = n;
    options.dim_count = 1;
    return options;
}

/* As a process of its own would: opens the model, compiles and calls it. */
static opjit_status run(const rt_bytes *file, uint64_t rows, uint32_t flags, const opjit_allocator *allocator,
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

static void expect(const rt_bytes *file, bool is_found, const result *bits)
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

static bool see(void *user, const opjit_cache_entry *entry)
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

static found find(void)
{
    found f = { .count = 0 };
    opjit_context *const context = begin(NULL);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_DISK, NULL, see, &f, NULL), OPJIT_OK);
    opjit_context_destroy(context);
    return f;
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

START_TEST(a_model_is_read_once)
{
    rt_bytes file = product();
    result first;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    ck_assert(!first.is_found && !first.from_disk);
    for (int i = 0; i < 3; i++) {
        result r;
        ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
        ck_assert(r.is_found && r.from_disk && memcmp(r.y, first.y, sizeof r.y) == 0);
    }
    const found f = find();
    ck_assert_uint_eq(f.readings, 1);
    ck_assert_uint_eq(f.weights, 1);
    ck_assert_uint_eq(f.secrets, 1);
    ck_assert_uint_eq(warnings, 0);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* One bit of the weights anywhere, sizes, or what is around the weights, is another model. */
START_TEST(another_model_is_not_found)
{
    static const size_t places[][2] = { { 0, 0 }, { 0, 1 }, { 40, 3 }, { INNER - 1, COLUMNS - 1 } };
    rt_bytes file = product();
    result first, other;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        float *const w = &weights[places[i][0]][places[i][1]];
        const float before = *w;
        *w += 0.5f;
        rt_bytes changed = product();
        ck_assert_int_eq(run(&changed, ROWS, 0, NULL, &other), OPJIT_OK);
        ck_assert(!other.is_found && memcmp(other.y, first.y, sizeof other.y) != 0);
        expect(&changed, true, &other);
        opjit_rt_bytes_free(&changed);
        *w = before;
    }
    ck_assert_int_eq(run(&file, 1, 0, NULL, &other), OPJIT_OK);
    ck_assert(!other.is_found && memcmp(other.y[0], first.y[0], sizeof other.y[0]) == 0);
    expect(&file, true, &first);
    opjit_rt_bytes_free(&file);
}
END_TEST

START_TEST(the_option_turns_it_off)
{
    rt_bytes file = product();
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_model *model;
    result r;
    ck_assert_int_eq(run(&file, ROWS, OPJIT_MODEL_NO_CACHE, NULL, &r), OPJIT_OK);
    ck_assert_uint_eq(find().count, 0);
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
    ck_assert_int_eq(run(&file, ROWS, OPJIT_MODEL_NO_CACHE, NULL, &r), OPJIT_OK);
    ck_assert(!r.is_found && r.from_disk);
    ck_assert_int_eq(run(&file, ROWS, OPJIT_MODEL_SAMPLE, NULL, &r), OPJIT_OK); /* another graph has other constants */
    ck_assert(!r.is_found);
    options.flags = 4;
    opjit_context *const context = begin(NULL);
    ck_assert_int_eq(opjit_model_read(context, file.data, file.size, &options, &model, NULL), OPJIT_INVALID_ARGUMENT);
    opjit_context_destroy(context);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* What was not read can be, when somebody asks for more than the kernel. */
START_TEST(all_else_of_it_works)
{
    rt_bytes file = product();
    result first, r;
    opjit_model_dim n;
    const opjit_model_options options = options_of(&n, ROWS);
    opjit_model_port in = OPJIT_MODEL_PORT_INIT, out = OPJIT_MODEL_PORT_INIT;
    const opjit_dim dim = { "n", 1, 64, 4 };
    opjit_kernel *kernel, *other;
    const DML_GRAPH_DESC *desc;
    opjit_model *model;
    opjit_error error;
    uint64_t size;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    opjit_context *const context = begin(NULL);
    ck_assert_int_eq(opjit_model_read(context, file.data, file.size, &options, &model, &error), OPJIT_OK);
    ck_assert(model->stored.is_found && model->graph == NULL);
    ck_assert_int_eq(opjit_model_get_input(model, 0, &in, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_model_get_output(model, 0, &out, &error), OPJIT_OK);
    ck_assert_str_eq(in.name, "x");
    ck_assert_str_eq(out.name, "y");
    ck_assert(in.binding == 0 && out.binding == 1 && in.rank == 2 && in.sizes[1] == INNER && out.sizes[0] == ROWS);
    ck_assert(opjit_model_get_dim(model, "n", &size, &error) == OPJIT_OK && size == ROWS);
    ck_assert_int_eq(opjit_model_get_dim(model, "m", &size, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_model_compile(model, NULL, &kernel, &error), OPJIT_OK);
    ck_assert_ptr_null(model->whole);
    ck_assert_msg(opjit_kernel_optimize(kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(call(kernel, ROWS, &r), OPJIT_OK);
    ck_assert(memcmp(r.y, first.y, sizeof r.y) == 0);
    opjit_kernel_release(kernel);

    ck_assert_int_eq(opjit_graph_get_desc(opjit_model_graph(model), &desc, &error), OPJIT_OK);
    ck_assert(!model->stored.is_found); /* the host may add to the graph, which then counts */
    ck_assert_int_eq(opjit_graph_compile(opjit_model_graph(model), NULL, &other, &error), OPJIT_OK);
    ck_assert_int_eq(call(other, ROWS, &r), OPJIT_OK);
    ck_assert(memcmp(r.y, first.y, sizeof r.y) == 0);
    opjit_kernel_release(other);
    opjit_compile_options interpret = OPJIT_COMPILE_OPTIONS_INIT;
    interpret.flags = OPJIT_COMPILE_INTERPRET;
    ck_assert_int_eq(opjit_model_compile(model, &interpret, &other, &error), OPJIT_OK);
    ck_assert_int_eq(call(other, ROWS, &r), OPJIT_OK);
    ck_assert(memcmp(r.y, first.y, sizeof r.y) == 0);
    opjit_kernel_release(other);
    ck_assert_msg(opjit_model_compile_dynamic(model, &dim, 1, NULL, &other, &error) == OPJIT_OK, "%s", error.message);
    opjit_kernel_release(other);
    opjit_model_close(model);
    opjit_context_destroy(context);
    opjit_rt_bytes_free(&file);
}
END_TEST

static void damage(const char *path, uint32_t number, bool cut)
{
    const int file = open(path, O_RDWR);
    struct stat about;
    uint8_t byte;
    ck_assert_int_eq(fstat(file, &about), 0);
    const off_t at = (off_t)number % about.st_size;
    ck_assert_int_eq(pread(file, &byte, 1, at), 1);
    byte ^= 16;
    ck_assert_int_eq(cut ? ftruncate(file, at) : pwrite(file, &byte, 1, at), cut ? 0 : 1);
    close(file);
}

/* Files that are cut, changed, or another's, are found out: the bits are right, and the files are written anew. */
START_TEST(damaged_files)
{
    rt_bytes file = product();
    uint32_t state = 4711, rejected = 0;
    result first;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    for (int round = 0; round < 60; round++) {
        result r;
        opjit_context *const context = begin(NULL);
        ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_DISK, NULL, NULL, NULL), OPJIT_OK);
        opjit_context_destroy(context);
        ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
        const found f = find();
        ck_assert_uint_eq(f.count, 3);
        state = state * 1664525 + 1013904223;
        const bool emptied = round < 3; /* each of the files */
        damage(f.paths[emptied ? (uint32_t)round : (state >> 16) % f.count], emptied ? 0 : state >> 4,
               emptied || round % 4 == 0);
        const uint32_t before = warnings;
        ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
        ck_assert(memcmp(r.y, first.y, sizeof r.y) == 0);
        rejected += warnings != before;
        ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
        ck_assert(r.is_found && memcmp(r.y, first.y, sizeof r.y) == 0);
    }
    ck_assert_uint_eq(rejected, 60);
    opjit_rt_bytes_free(&file);
}
END_TEST

START_TEST(nothing_can_be_written)
{
    rt_bytes file = product();
    const struct rlimit none = { 10, RLIM_INFINITY };
    struct rlimit old;
    result first, r;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    setrlimit(RLIMIT_FSIZE, &none);
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    setrlimit(RLIMIT_FSIZE, &old);
    ck_assert_uint_eq(warnings, 1);
    ck_assert_uint_eq(find().count, 0);
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
    ck_assert(!r.is_found && memcmp(r.y, first.y, sizeof r.y) == 0);
    expect(&file, true, &first);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* The n-th allocation fails: the right bits or OUT_OF_MEMORY, and nothing is lost, in memory or on disk. */
START_TEST(without_memory)
{
    rt_bytes file = product();
    counting memory;
    result first, r;
    uint32_t failed = 0;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    for (int at = 1;; at++) {
        const opjit_allocator allocator = counting_allocator(&memory, at);
        const opjit_status status = run(&file, ROWS, 0, &allocator, &r);
        ck_assert_int_eq(memory.live, 0);
        ck_assert(status == OPJIT_OUT_OF_MEMORY ||
                  (status == OPJIT_OK && memcmp(r.y, first.y, sizeof r.y) == 0));
        failed += status != OPJIT_OK;
        if (memory.calls < at)
            break;
    }
    ck_assert_uint_gt(failed, 5);
    expect(&file, true, &first);
    ck_assert_uint_eq(warnings, 0);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* --- files beside the model --------------------------------------------------------------------------------------- */

static void write_whole(const char *name, const void *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

/* W in a file, which is part of what the model is: the model is known as long as that file says the same. */
START_TEST(weights_in_another_file)
{
    rt_bytes g = new_message(), w = new_message(), at = new_message();
    put_int(&w, 1, INNER);
    put_int(&w, 1, COLUMNS);
    put_int(&w, 2, FLOAT);
    put_text(&w, 8, "W");
    put_text(&at, 1, "location");
    put_text(&at, 2, "weights.bin");
    put_message(&w, 13, at);
    put_int(&w, 14, 1);
    put_message(&g, 1, node("MatMul", "x", "W", "y"));
    put_message(&g, 5, w);
    put_message(&g, 11, port("x", FLOAT, "16 96"));
    put_message(&g, 12, port("y", FLOAT, "16 128"));
    rt_bytes file = model_of(g);
    result r[4];
    char path[128];
    opjit_error error;
    opjit_model *model;
    opjit_context *context;
    write_whole("model.onnx", file.data, file.size);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    for (int i = 0; i < 4; i++) {
        opjit_kernel *kernel;
        weights[1][1] += (float)(i == 2);
        write_whole("weights.bin", weights, sizeof weights);
        context = begin(NULL);
        ck_assert_msg(opjit_model_open(context, path, NULL, &model, &error) == OPJIT_OK, "%s", error.message);
        ck_assert_int_eq(model->stored.is_found, i == 1 || i == 3);
        ck_assert_int_eq(opjit_model_compile(model, NULL, &kernel, &error), OPJIT_OK);
        ck_assert_int_eq(call(kernel, ROWS, &r[i]), OPJIT_OK);
        opjit_kernel_release(kernel);
        opjit_model_close(model);
        opjit_context_destroy(context);
    }
    ck_assert(memcmp(r[0].y, r[1].y, sizeof r[0].y) == 0 && memcmp(r[0].y, r[2].y, sizeof r[0].y) != 0 &&
              memcmp(r[2].y, r[3].y, sizeof r[0].y) == 0);
    const found f = find();
    ck_assert_uint_eq(f.readings, 2);
    ck_assert_uint_eq(f.secrets, 1);
    for (int i = 0; i < 2; i++) { /* a file that is cut, or gone */
        write_whole("weights.bin", weights, sizeof weights / 2);
        snprintf(path + strlen(path) - 10, 16, "weights.bin");
        ck_assert_int_eq(i == 0 ? 0 : unlink(path), 0);
        snprintf(path + strlen(path) - 11, 16, "model.onnx");
        context = begin(NULL);
        ck_assert_int_eq(opjit_model_open(context, path, NULL, &model, &error),
                         i == 0 ? OPJIT_CORRUPT : OPJIT_UNAVAILABLE);
        opjit_context_destroy(context);
    }
    ck_assert_uint_eq(warnings, 0);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* --- stamps ------------------------------------------------------------------------------------------------------- */

/* A stamp holds as long as nobody wrote to the file, from when later writes must give it another one. */
START_TEST(stamps_tell_writes)
{
    const int64_t second = 1000000000;
    onnx_stamp stamp;
    wire_bytes bytes;
    char path[128];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    do {
        write_whole("model.onnx", "model", 5);
        ck_assert_int_eq(opjit_onnx_map(path, &bytes, &stamp, NULL), OPJIT_OK);
        opjit_onnx_unmap(bytes);
    } while (stamp.changed % second == 0);
    ck_assert_uint_eq(stamp.size, 5);
    ck_assert(!opjit_onnx_stamp_holds(path, &stamp, stamp.changed));
    ck_assert(!opjit_onnx_stamp_holds(path, &stamp, stamp.changed + 9 * second));
    ck_assert(opjit_onnx_stamp_holds(path, &stamp, stamp.changed + 11 * second));
    for (int i = 0; i < 5; i++) { /* each part of it counts */
        onnx_stamp other = stamp;
        (i == 0 ? &other.device : i == 1 ? &other.inode : &other.size)[0] += i < 3;
        (i == 3 ? &other.modified : &other.changed)[0] -= i >= 3;
        ck_assert(!opjit_onnx_stamp_holds(path, &other, stamp.changed + 11 * second));
    }
    stamp.changed -= stamp.changed % second; /* of a file system without parts of a second */
    ck_assert(!opjit_onnx_stamp_holds(path, &stamp, stamp.changed + 11 * second));
    ck_assert(!opjit_onnx_stamp_holds("/nowhere/model.onnx", &stamp, stamp.changed + 11 * second));
}
END_TEST

/* A file that nobody wrote to is hashed once, one that was just written each time: it may be written to again without
 * another stamp. */
START_TEST(old_files_are_hashed_once)
{
    rt_bytes file = product();
    char paths[2][256];
    write_whole("new.onnx", file.data, file.size);
    snprintf(paths[0], sizeof paths[0], "%s/new.onnx", folder);
    snprintf(paths[1], sizeof paths[1], "%s/fuzz/corpus/onnx/conv.onnx", getenv("OPJIT_TEST_DATA"));
    for (int is_old = 0; is_old < 2; is_old++)
        for (int i = 0; i < 3; i++) {
            opjit_model_dim n;
            const opjit_model_options options = options_of(&n, 1);
            opjit_context *const context = begin(NULL);
            opjit_kernel *kernel;
            opjit_model *model;
            opjit_error error;
            ck_assert_msg(opjit_model_open(context, paths[is_old], &options, &model, &error) == OPJIT_OK, "%s",
                          error.message);
            ck_assert_int_eq(opjit_model_compile(model, NULL, &kernel, &error), OPJIT_OK);
            ck_assert_int_eq(model->stored.is_found, i > 0);
            ck_assert(!model->named.is_remembered || (is_old && i > 0 && model->stored.is_found));
            /* If its file system has such stamps: */
            if (opjit_onnx_stamp_holds(paths[is_old], &model->named.stamp, INT64_MAX))
                ck_assert_int_eq(model->named.is_remembered, is_old && i > 0);
            opjit_kernel_release(kernel);
            opjit_model_close(model);
            opjit_context_destroy(context);
        }
    opjit_rt_bytes_free(&file);
}
END_TEST

/* --- processes ---------------------------------------------------------------------------------------------------- */

START_TEST(processes_at_the_same_time)
{
    rt_bytes file = product();
    pid_t children[6];
    result first;
    ck_assert_int_eq(run(&file, ROWS, OPJIT_MODEL_NO_CACHE, NULL, &first), OPJIT_OK);
    for (int i = 0; i < 6; i++) {
        children[i] = fork();
        ck_assert_int_ge(children[i], 0);
        if (children[i] != 0)
            continue;
        for (int k = 0; k < 5; k++) {
            result r;
            opjit_context *const context = begin(NULL);
            if (i == 5 && opjit_cache_drop(context, OPJIT_CACHE_DISK, NULL, NULL, NULL) != OPJIT_OK)
                _exit(2);
            opjit_context_destroy(context);
            if (run(&file, ROWS, 0, NULL, &r) != OPJIT_OK || memcmp(r.y, first.y, sizeof r.y) != 0)
                _exit(1);
        }
        _exit(warnings == 0 ? 0 : 3);
    }
    for (int i = 0; i < 6; i++) {
        int status;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    result r;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
    expect(&file, true, &first);
    opjit_rt_bytes_free(&file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.stored");
    TCase *tcase = tcase_create("stored");
    SRunner *runner;
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, a_model_is_read_once);
    tcase_add_test(tcase, another_model_is_not_found);
    tcase_add_test(tcase, the_option_turns_it_off);
    tcase_add_test(tcase, all_else_of_it_works);
    tcase_add_test(tcase, damaged_files);
    tcase_add_test(tcase, nothing_can_be_written);
    tcase_add_test(tcase, without_memory);
    tcase_add_test(tcase, weights_in_another_file);
    tcase_add_test(tcase, stamps_tell_writes);
    tcase_add_test(tcase, old_files_are_hashed_once);
    tcase_add_test(tcase, processes_at_the_same_time);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
