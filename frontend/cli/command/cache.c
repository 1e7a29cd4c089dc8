/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - `opjit cache list|verify|clear`: the files of the disk cache, by opjit/cache.h: kernels, functions
 * that kernels share, and what is known of models. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <opjit/cache.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/text/table.h"

typedef struct tally {
    bool json;
    uint32_t files, functions, models, damaged; /* functions, models: of the files */
    uint64_t bytes;
} tally;

static uint32_t kernels_of(const tally *t)
{
    return t->files - t->functions - t->models;
}

/* Where there are no functions, nothing is said of them; nor of models. */
static void put_tally(const tally *t, const char *end)
{
    printf("%" PRIu32 " kernels", kernels_of(t));
    if (t->functions != 0)
        printf(", %" PRIu32 " functions", t->functions);
    if (t->models != 0)
        printf(", %" PRIu32 " of models", t->models);
    printf(", %" PRIu64 " bytes%s\n", t->bytes, end);
}

typedef struct file_text {
    char text[OPJIT_CACHE_KEY_TEXT_SIZE + 8];
} file_text;

static file_text file_of(const opjit_cache_entry *entry)
{
    file_text file;
    opjit_cache_key_to_text(&entry->key, file.text);
    strcat(file.text, ".opjit");
    return file;
}

static bool count_one(void *user, const opjit_cache_entry *entry)
{
    tally *const t = user;
    t->files++;
    t->functions += (entry->flags & OPJIT_CACHE_ENTRY_FUNCTION) != 0;
    t->models += (entry->flags & OPJIT_CACHE_ENTRY_MODEL) != 0;
    t->bytes += entry->bytes;
    return true;
}

static bool list_one(void *user, const opjit_cache_entry *entry)
{
    const tally *const t = user;
    const time_t used = (time_t)entry->used;
    const file_text file = file_of(entry);
    char when[32] = "";
    struct tm parts;
    if (gmtime_r(&used, &parts) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (t->json) {
        printf("%s\n    { \"used\": \"%s\", \"bytes\": %" PRIu64 ", \"file\": ", t->files == 0 ? "" : ",", when,
               entry->bytes);
        opjit_cli_put_string(stdout, file.text);
        printf(entry->damaged != NULL ? ", \"damaged\": " : ", \"name\": ");
        opjit_cli_put_string(stdout, entry->damaged != NULL ? entry->damaged : entry->name);
        printf(" }");
    } else {
        printf("%s  %8" PRIu64 "  %s  %s%s\n", when, entry->bytes, file.text,
               entry->damaged != NULL ? "damaged: " : entry->name, entry->damaged != NULL ? entry->damaged : "");
    }
    return count_one(user, entry);
}

static opjit_status list(opjit_context *context, tally *t, opjit_error *error)
{
    if (t->json)
        printf("{\n  \"files\": [");
    TRY(opjit_cache_enumerate(context, OPJIT_CACHE_DISK, list_one, t, error));
    if (t->json)
        printf("\n  ],\n  \"kernels\": %" PRIu32 ", \"functions\": %" PRIu32 ", \"models\": %" PRIu32
               ", \"bytes\": %" PRIu64 "\n}\n",
               kernels_of(t), t->functions, t->models, t->bytes);
    else
        put_tally(t, "");
    return OPJIT_OK;
}

static bool verify_one(void *user, const opjit_cache_entry *entry)
{
    tally *const t = user;
    if (entry->damaged != NULL)
        printf("%s: %s\n", file_of(entry).text, entry->damaged);
    t->damaged += entry->damaged != NULL;
    return count_one(user, entry);
}

static opjit_status verify(opjit_context *context, tally *t, opjit_error *error)
{
    const opjit_status status = opjit_cache_verify(context, OPJIT_CACHE_DISK, NULL, verify_one, t, error);
    if (status != OPJIT_OK && status != OPJIT_CORRUPT)
        return status;
    put_tally(t, "");
    return status == OPJIT_OK
               ? OPJIT_OK
               : opjit_rt_error_set(error, status, "cache verify: %" PRIu32 " of %" PRIu32 " files are damaged",
                                    t->damaged, t->files);
}

static opjit_status clear(opjit_context *context, tally *t, opjit_error *error)
{
    uint32_t gone;
    TRY(opjit_cache_enumerate(context, OPJIT_CACHE_DISK, count_one, t, error));
    const opjit_status status = opjit_cache_drop(context, OPJIT_CACHE_DISK, NULL, &gone, error);
    const uint32_t others = t->functions + t->models;
    t->files = gone > others ? gone : others; /* other processes may have added some since */
    put_tally(t, " removed");
    if (status != OPJIT_OK)
        opjit_rt_error_prefix(error, "cache clear");
    return status;
}

static opjit_status look_after(const cli_options *options, opjit_context *context, opjit_error *error)
{
    static const struct {
        const char *name;
        opjit_status (*run)(opjit_context *context, tally *t, opjit_error *error);
    } commands[] = { { "list", list }, { "verify", verify }, { "clear", clear } };
    const char *const what = options->arguments[0];
    tally t = { .json = options->json };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, what) != 0)
            continue;
        if (options->cache_dir == NULL || options->no_cache)
            return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                                      "cache %s: no folder is named by --cache-dir, "
                                      "OPJIT_CACHE_DIR, XDG_CACHE_HOME or HOME",
                                      what);
        if (t.json && commands[i].run != list)
            return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "cache %s: --json is for list", what);
        return commands[i].run(context, &t, error);
    }
    return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "cache %.40s: must be list, verify or clear", what);
}

int opjit_cli_cache(const cli_options *options)
{
    opjit_context *context = NULL;
    opjit_error error = { 0 };
    opjit_status status = opjit_cli_context(options, &context, &error);
    if (status == OPJIT_OK)
        status = look_after(options, context, &error);
    opjit_context_destroy(context);
    return status == OPJIT_OK ? EXIT_DONE : opjit_cli_complain(NULL, NULL, &error);
}
