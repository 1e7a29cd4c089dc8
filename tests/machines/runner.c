/* SPDX-License-Identifier: Apache-2.0 */
/* runner.c - runs stage functions of another machine: built for that machine and started under qemu-user by a test,
 * which tells it through standard input what to run on which memory.  Each buffer begins at the page offset that the
 * test asks for, as near as possible before an inaccessible page; afterwards the bytes around it are checked. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/machines/emulated_wire.h"

enum { FILL = 0x5a, ERROR_INPUT = 3, ERROR_MEMORY = 4 };

typedef struct buffer {
    wire_buffer wire;
    uint8_t *mapping, *data;
    uint64_t room; /* between the inaccessible pages */
} buffer;

/* False: the input has ended. */
static int get(void *to, uint64_t size)
{
    for (uint8_t *p = to; size > 0;) {
        const ssize_t n = read(0, p, size);
        if (n <= 0)
            return 0;
        p += n;
        size -= (uint64_t)n;
    }
    return 1;
}

static void must_get(void *to, uint64_t size)
{
    if (!get(to, size))
        _exit(ERROR_INPUT);
}

static void put(const void *from, uint64_t size)
{
    for (const uint8_t *p = from; size > 0;) {
        const ssize_t n = write(1, p, size);
        if (n <= 0)
            _exit(ERROR_INPUT);
        p += n;
        size -= (uint64_t)n;
    }
}

static uint8_t *map(uint64_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        _exit(ERROR_MEMORY);
    return p;
}

static uint64_t pages(uint64_t size)
{
    return (size + WIRE_PAGE - 1) / WIRE_PAGE * WIRE_PAGE;
}

static void make_buffer(buffer *b, buffer *all)
{
    if (b->wire.same_as != -1) {
        b->data = b->wire.same_as >= 0 ? all[b->wire.same_as].data : NULL;
        return;
    }
    b->room = pages(b->wire.place + b->wire.size);
    b->mapping = map(b->room + 2 * WIRE_PAGE);
    mprotect(b->mapping, WIRE_PAGE, PROT_NONE);
    mprotect(b->mapping + WIRE_PAGE + b->room, WIRE_PAGE, PROT_NONE);
    memset(b->mapping + WIRE_PAGE, FILL, b->room);
    /* Moves up by as many lines as fit: only the remainder modulo 64 matters for alignment. */
    const uint64_t up = (b->room - b->wire.place - b->wire.size) / 64 * 64;
    b->data = b->mapping + WIRE_PAGE + b->wire.place + up;
    must_get(b->data, b->wire.size);
}

static int was_left_alone(const buffer *b)
{
    const uint8_t *first = b->mapping + WIRE_PAGE, *end = first + b->room;
    for (const uint8_t *p = first; p < end; p++)
        if ((p < b->data || p >= b->data + b->wire.size) && *p != FILL)
            return 0;
    return 1;
}

static void run(const wire_request *r, uint8_t *code, const uint64_t *params, buffer *buffers)
{
    typedef void (*stage)(void *const *, const uint64_t *, void *, void *, uint64_t, uint64_t);
    void *pointers[WIRE_BUFFERS];
    stage fn;
    const void *address = code + r->entry;
    for (uint32_t i = 0; i < r->buffer_count; i++)
        pointers[i] = buffers[i].data;
    memcpy(&fn, &address, sizeof fn);
    fn(pointers, params, pointers[r->buffer_count - 2], pointers[r->buffer_count - 1], r->begin, r->end);
}

static void serve(const wire_request *r)
{
    static buffer buffers[WIRE_BUFFERS];
    uint64_t params[WIRE_PARAMS];
    wire_answer answer = { 0 };
    if (r->param_count > WIRE_PARAMS || r->buffer_count > WIRE_BUFFERS || r->buffer_count < 2)
        _exit(ERROR_INPUT);
    uint8_t *code = map(pages(r->code_size));
    must_get(code, r->code_size);
    __builtin___clear_cache((char *)code, (char *)code + r->code_size);
    mprotect(code, pages(r->code_size), PROT_READ | PROT_EXEC);
    must_get(params, r->param_count * sizeof *params);
    memset(buffers, 0, sizeof buffers);
    for (uint32_t i = 0; i < r->buffer_count; i++) {
        must_get(&buffers[i].wire, sizeof buffers[i].wire);
        make_buffer(&buffers[i], buffers);
    }
    run(r, code, params, buffers);
    for (uint32_t i = 0; i + 2 < r->buffer_count; i++)
        answer.outside += buffers[i].mapping != NULL && !was_left_alone(&buffers[i]);
    put(&answer, sizeof answer);
    for (uint32_t i = 0; i < r->buffer_count; i++) {
        if (buffers[i].mapping == NULL)
            continue;
        put(buffers[i].data, buffers[i].wire.size);
        munmap(buffers[i].mapping, buffers[i].room + 2 * WIRE_PAGE);
    }
    munmap(code, pages(r->code_size));
}

int main(void)
{
    wire_request r;
    while (get(&r, sizeof r))
        serve(&r);
    return 0;
}
