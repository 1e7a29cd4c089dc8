/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_cache.c - `opjit cache list|verify|clear`: the files of the disk cache. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/table.h"
#include "runtime/cache/disk.h"

typedef struct tally {
    rt_disk *disk;
    bool json;
    uint32_t files, damaged, left; /* left: could not be removed */
    uint64_t bytes;
} tally;

static void list_one(void *user, const rt_disk_entry *entry)
{
    tally *const t = user;
    const time_t used = (time_t)entry->used;
    char when[32] = "";
    struct tm parts;
    if (gmtime_r(&used, &parts) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (t->json) {
        printf("%s\n    { \"used\": \"%s\", \"bytes\": %" PRIu64 ", \"file\": ", t->files == 0 ? "" : ",", when,
               entry->bytes);
        opjit_cli_put_string(stdout, entry->file);
        printf(entry->damaged != NULL ? ", \"damaged\": " : ", \"name\": ");
        opjit_cli_put_string(stdout, entry->damaged != NULL ? entry->damaged : entry->name);
        printf(" }");
        t->files++;
        t->bytes += entry->bytes;
        return;
    }
    printf("%s  %8" PRIu64 "  %s  %s%s\n", when, entry->bytes, entry->file,
           entry->damaged != NULL ? "damaged: " : entry->name, entry->damaged != NULL ? entry->damaged : "");
    t->files++;
    t->bytes += entry->bytes;
}

static void verify_one(void *user, const rt_disk_entry *entry)
{
    tally *const t = user;
    if (entry->damaged != NULL) {
        printf("%s: %s\n", entry->file, entry->damaged);
        t->damaged++;
    }
    t->files++;
    t->bytes += entry->bytes;
}

static void clear_one(void *user, const rt_disk_entry *entry)
{
    tally *const t = user;
    if (!opjit_rt_disk_remove(t->disk, entry->file))
        t->left++;
    t->files++;
    t->bytes += entry->bytes;
}

static opjit_status look_after(const opjit_context *context, const char *what, tally *t, opjit_error *error)
{
    const rt_disk_visit_fn visit = strcmp(what, "list") == 0     ? list_one
                                   : strcmp(what, "verify") == 0 ? verify_one
                                   : strcmp(what, "clear") == 0  ? clear_one
                                                                 : NULL;
    if (visit == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "cache %.40s: must be list, verify or clear", what);
    if (context->core->disk == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                                  "cache %s: no folder is named by --cache-dir, "
                                  "OPJIT_CACHE_DIR, XDG_CACHE_HOME or HOME",
                                  what);
    if (t->json && visit != list_one)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "cache %s: --json is for list", what);
    t->disk = context->core->disk;
    if (t->json)
        printf("{\n  \"files\": [");
    TRY(opjit_rt_disk_visit(context->core->disk, visit, t, error));
    if (t->json) {
        printf("\n  ],\n  \"kernels\": %" PRIu32 ", \"bytes\": %" PRIu64 "\n}\n", t->files, t->bytes);
        return OPJIT_OK;
    }
    printf("%" PRIu32 " kernels, %" PRIu64 " bytes%s\n", t->files - t->left, t->bytes,
           visit == clear_one ? " removed" : "");
    if (t->left != 0)
        return opjit_rt_error_set(error, OPJIT_IO, "cache clear: %" PRIu32 " files can't be removed", t->left);
    if (t->damaged != 0)
        return opjit_rt_error_set(error, OPJIT_CORRUPT, "cache verify: %" PRIu32 " of %" PRIu32 " files are damaged",
                                  t->damaged, t->files);
    return OPJIT_OK;
}

int opjit_cli_cache(const cli_options *options)
{
    opjit_context *context = NULL;
    opjit_error error = { OPJIT_OK, "" };
    tally t = { .json = options->json };
    opjit_status status = opjit_cli_context(options, &context, &error);
    if (status == OPJIT_OK)
        status = look_after(context, options->arguments[0], &t, &error);
    opjit_context_destroy(context);
    return status == OPJIT_OK ? EXIT_DONE : opjit_cli_complain(NULL, NULL, &error);
}
