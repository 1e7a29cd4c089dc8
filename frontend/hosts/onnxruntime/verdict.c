/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - whether a group gains, as it was found out before: by this provider, or by another process with the same
 * folder of kernels.  A file holds all that the verdict depends on, and then the verdict; one that does not say so word
 * for word is not looked at. */
#define _DEFAULT_SOURCE /* sysconf's number of cores */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/hosts/onnxruntime/provider.h"

static const char *const answers[] = { "slower\n", "faster\n" };

verdict_key opjit_ort_verdict_key(const bytes *model, const shape *shapes, uint32_t count)
{
    verdict_key key = { { 1, 2 } };
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t rank = shapes[i].rank;
            key.hash[k] = opjit_ort_hash(key.hash[k], &rank, sizeof rank);
            key.hash[k] = opjit_ort_hash(key.hash[k], shapes[i].sizes, shapes[i].rank * sizeof *shapes[i].sizes);
        }
        key.hash[k] = opjit_ort_hash(key.hash[k], model->data, model->size);
    }
    return key;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* What a verdict depends on, as text, and the path of its file. */
typedef struct place {
    size_t length;
    char text[1024], path[ORT_PATH];
} place;

/* Whether the folder is this user's alone, as the kernels beside have it, too. */
static bool is_own(const char *folder)
{
    struct stat info;
    return stat(folder, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool find_place(const provider *p, const verdict_key *key, place *out)
{
    opjit_build_info build = OPJIT_BUILD_INFO_INIT;
    opjit_error error;
    if (p->options.cache_dir[0] == '\0' || !is_own(p->options.cache_dir) ||
        opjit_get_build_info(&build, &error) != OPJIT_OK)
        return false;
    const int length = snprintf(
        out->text, sizeof out->text,
        "group %016llx%016llx\nopjit %s\nonnxruntime %s\ntarget %s\nlevel %d\nthreads %u of %ld\n",
        (unsigned long long)key->hash[0], (unsigned long long)key->hash[1], build.id, p->host_version,
        opjit_context_target(p->context), (int)p->options.level, p->options.threads, sysconf(_SC_NPROCESSORS_ONLN));
    if (length < 0 || (size_t)length >= sizeof out->text)
        return false;
    out->length = (size_t)length;
    return snprintf(out->path, sizeof out->path, "%s/onnxruntime-%016llx.verdict", p->options.cache_dir,
                    (unsigned long long)opjit_ort_hash(0, out->text, out->length)) < (int)sizeof out->path;
}

static bool read_file(const place *at, bool *out)
{
    stored file;
    bool found = false;
    if (opjit_ort_read_file(at->path, &file) != NULL)
        return false;
    for (int k = 0; k < 2 && !found; k++) {
        found = file.size == at->length + strlen(answers[k]) && memcmp(file.data, at->text, at->length) == 0 &&
                memcmp(file.data + at->length, answers[k], strlen(answers[k])) == 0;
        *out = k == 1;
    }
    opjit_ort_free_stored(&file);
    return found;
}

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

static void remember(provider *p, const verdict_key *key, bool is_faster)
{
    p->measured[p->next_measured++ % MEASURED] = (measured){ *key, is_faster };
}

bool opjit_ort_find_verdict(provider *p, const verdict_key *key, bool *out)
{
    place at;
    for (uint32_t i = 0; i < MEASURED; i++)
        if (memcmp(&p->measured[i].key, key, sizeof *key) == 0) { /* the host asks twice */
            *out = p->measured[i].is_faster;
            return true;
        }
    if (!find_place(p, key, &at) || !read_file(&at, out))
        return false;
    remember(p, key, *out);
    return true;
}

void opjit_ort_keep_verdict(provider *p, const verdict_key *key, bool is_faster)
{
    place at;
    remember(p, key, is_faster);
    if (!find_place(p, key, &at) || at.length + strlen(answers[is_faster]) >= sizeof at.text)
        return;
    memcpy(at.text + at.length, answers[is_faster], strlen(answers[is_faster]));
    (void)opjit_ort_write_file(at.path, at.text, at.length + strlen(answers[is_faster])); /* or it is measured again */
}
