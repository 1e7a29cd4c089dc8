/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cuda.h - shared by the fake driver's two files: fake_cuda.c has devices, contexts and memory, fake_cuda_run.c
 * modules, streams and kernels. */
#ifndef OPJIT_TEST_MACHINES_FAKE_CUDA_H
#define OPJIT_TEST_MACHINES_FAKE_CUDA_H

#include <stdint.h>

#include "tests/machines/ptx.h"

#define API __attribute__((visibility("default"))) int
enum {
    OK,
    INVALID_VALUE,
    OUT_OF_MEMORY,
    NOT_INITIALIZED,
    NO_DEVICE = 100,
    INVALID_DEVICE,
    INVALID_CONTEXT = 201,
    NO_BINARY = 209,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX = 222,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    OUT_OF_RESOURCES,
    LAUNCH_FAILED = 719,
    MOST_DEVICES = 8,
    MOST_STACK = 16,
    GUARD = 4096
};
#define RESERVED (UINT64_C(1) << 36)

typedef struct allocation {
    struct allocation *next;
    uint64_t address, bytes;
    void *host;
    int device;
} allocation;
typedef struct module {
    struct module *next;
    ptx_module *ptx;
    int device;
    struct function *functions;
} module;
typedef struct function {
    struct function *next;
    module *owner;
    uint32_t entry, most_dynamic;
} function;
typedef struct work {
    struct work *next;
    enum { COPY_IN, COPY_OUT, COPY_WITHIN, FILL, LAUNCH, RECORD } kind;
    uint64_t to, from;
    size_t bytes;
    int value;
    function *function;
    ptx_launch launch;
    void **arguments;
    struct event *event;
} work;
typedef struct stream {
    struct stream *next;
    work *first, **last;
    int device;
} stream;
typedef struct event {
    bool recorded, pending;
    stream *stream;
    double milliseconds;
} event;
typedef struct device {
    uint32_t capability, references;
    uint64_t used;
    int failed; /* an error of a kernel stays until the context is released */
    stream null;
    ptx_memory *memory;
} device;

typedef struct fake_driver { /* all of it, under its lock */
    bool initialized;
    const char *device_list; /* NULL: from the environment */
    device devices[MOST_DEVICES];
    int device_count;
    allocation *allocations;
    module *modules;
    stream *streams;
    uint32_t live;
    uint64_t reserved, next_address;
    char kernel_error[600];
    double clock; /* for events: million thread instructions executed */
} fake_driver;
extern fake_driver fake;

/* At the start of every function: takes the lock, returns an injected error, checks what the function needs. */
typedef enum need { NOTHING, INITIALIZED, CONTEXT, FREEING } need; /* freeing works after a kernel's error */
int fake_enter(const char *name, need what);
int fake_leave(int code);
device *fake_current(void);

int fake_flush(device *d, stream *s);
int fake_flush_all(device *d);
/* One copy or fill; wait: completes all streams first. */
int fake_copy(void *handle, int kind, uint64_t to, uint64_t from, size_t bytes, int value, bool wait);

#define ENTER(what)                                      \
    do {                                                 \
        const int entered_ = fake_enter(__func__, what); \
        if (entered_ != OK)                              \
            return fake_leave(entered_);                 \
    } while (0)
#define REFUSE_IF(condition, code)   \
    do {                             \
        if (condition)               \
            return fake_leave(code); \
    } while (0)

#endif
