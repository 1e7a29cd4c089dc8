/* SPDX-License-Identifier: Apache-2.0 */
/* aot_program.c - a program that calls kernels compiled ahead of time.  property.aot starts it (under qemu-user where
 * the code is for another machine), sends calls to standard input and gets back the memory that they leave.  The table
 * of kernels is generated. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*entry)(void *const *buffers, const uint64_t *params, void *workspace);
extern const entry entries[]; /* typed and packed, by kernel */
extern int (*const checks[])(void);

enum { MOST = 64 };

typedef struct request {
    uint32_t kernel, packed, buffers, params;
    uint64_t workspace;
} request;

typedef struct buffer {
    uint64_t bytes;
    uint32_t align;
    int32_t shared; /* the buffer whose memory it shares; -1: none */
} buffer;

static void must(int good)
{
    if (!good)
        exit(2);
}

static void *allocate(uint64_t bytes, uint32_t align)
{
    void *memory = NULL;
    must(posix_memalign(&memory, align < 64 ? 64 : align, bytes + 64) == 0);
    return memory;
}

static void answer(const request *r)
{
    buffer infos[MOST];
    void *memory[MOST], *workspace = allocate(r->workspace, 64);
    uint64_t params[MOST];
    must(r->buffers <= MOST && r->params <= MOST && checks[r->kernel]() != 0);
    for (uint32_t i = 0; i < r->buffers; i++) {
        must(fread(&infos[i], sizeof infos[i], 1, stdin) == 1);
        memory[i] = infos[i].shared >= 0 ? memory[infos[i].shared] : allocate(infos[i].bytes, infos[i].align);
        must(infos[i].shared >= 0 || fread(memory[i], infos[i].bytes, 1, stdin) == 1);
    }
    must(r->params == 0 || fread(params, sizeof *params, r->params, stdin) == r->params);
    entries[2 * r->kernel + r->packed](memory, params, workspace);
    for (uint32_t i = 0; i < r->buffers; i++) {
        if (infos[i].shared >= 0)
            continue;
        must(fwrite(memory[i], infos[i].bytes, 1, stdout) == 1);
        free(memory[i]);
    }
    free(workspace);
}

int main(void)
{
    request r;
    while (fread(&r, sizeof r, 1, stdin) == 1) {
        answer(&r);
        must(fflush(stdout) == 0); /* the emulator may end at the next call */
    }
    return 0;
}
