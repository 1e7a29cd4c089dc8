/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_driver.c - runs a fuzz target without libFuzzer: on each file of its corpus and on changed copies of it.  Not
 * guided by coverage: libFuzzer finds new inputs (-DOPJIT_FUZZ=ON); this keeps found ones from coming back.
 *
 *     fuzz_ir FILE-OR-FOLDER...
 *
 * OPJIT_SEED sets the seed of the changes, OPJIT_FUZZ_ROUNDS the number of changed copies per file. */
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct driver {
    uint64_t random;
    unsigned long rounds;
    unsigned long inputs;
} driver;

static uint64_t next_random(driver *d)
{
    d->random ^= d->random << 13;
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return d->random;
}

/* A fresh block of exactly size bytes, so that a sanitizer notices reads past its end. */
static uint8_t *copy_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size != 0 ? size : 1);
    if (copy == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    if (size != 0)
        memcpy(copy, data, size);
    return copy;
}

static void run(driver *d, const uint8_t *data, size_t size)
{
    uint8_t *copy = copy_of(data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    d->inputs++;
}

/* Makes one to four changes: replaces a byte, flips a bit, cuts off the end, or copies a piece to another place. */
static void run_changed(driver *d, const uint8_t *data, size_t size)
{
    uint8_t *copy = copy_of(data, size);
    for (uint64_t n = next_random(d) % 4 + 1; n != 0 && size != 0; n--) {
        const size_t at = next_random(d) % size;
        const size_t from = next_random(d) % size;
        const size_t longest = size - (at > from ? at : from);
        switch (next_random(d) % 4) {
        case 0: copy[at] = (uint8_t)next_random(d); break;
        case 1: copy[at] ^= (uint8_t)(1u << next_random(d) % 8); break;
        case 2: size = at; break;
        default: memmove(copy + at, copy + from, next_random(d) % longest + 1); break;
        }
    }
    run(d, copy, size);
    free(copy);
}

static int run_file(driver *d, const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0, capacity = 0, got;
    if (file == NULL) {
        perror(path);
        return 1;
    }
    do {
        if (size == capacity) {
            capacity = capacity * 2 + 4096;
            data = realloc(data, capacity);
            if (data == NULL) {
                fprintf(stderr, "%s: out of memory\n", path);
                exit(1);
            }
        }
        got = fread(data + size, 1, capacity - size, file);
        size += got;
    } while (got != 0);
    fclose(file);
    run(d, data, size);
    for (unsigned long i = 0; i < d->rounds; i++)
        run_changed(d, data, size);
    free(data);
    return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* In the order of names, so that a seed means the same run everywhere. */
static int run_folder(driver *d, const char *path)
{
    struct dirent **entries;
    const int count = scandir(path, &entries, NULL, by_name);
    int failed = 0;
    if (count < 0) {
        perror(path);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        char name[4096];
        const int length = snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && length > 0 && (size_t)length < sizeof name)
            failed |= run_file(d, name);
        free(entries[i]);
    }
    free(entries);
    return failed;
}

static unsigned long number_from(const char *variable, unsigned long otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoul(text, NULL, 0) : otherwise;
}

int main(int argc, char **argv)
{
    driver d = { number_from("OPJIT_SEED", 1), number_from("OPJIT_FUZZ_ROUNDS", 200), 0 };
    int failed = 0;
    printf("OPJIT_SEED=%lu OPJIT_FUZZ_ROUNDS=%lu\n", (unsigned long)d.random, d.rounds);
    fflush(stdout);
    if (d.random == 0)
        d.random = 1;   /* 0 is its own successor */
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode))
            failed |= run_folder(&d, argv[i]);
        else
            failed |= run_file(&d, argv[i]);
    }
    printf("%lu inputs\n", d.inputs);
    if (d.inputs == 0) {
        fprintf(stderr, "no input: a corpus has at least one file\n");
        return 1;
    }
    return failed;
}
