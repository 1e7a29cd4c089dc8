/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_library.c - any bytes as a shared library that opjit wrote: either it is refused with a message, or everything
 * that its kernels' records lead to lies inside.  No code of it is run.  The first byte says whether the end of the
 * file (its magic, size and checksum) is corrected first. */
#define _POSIX_C_SOURCE 200809L

#include <opjit/abi.h>
#include <opjit/artifact.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/image/library.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void fix_trailer(uint8_t *file, size_t size)
{
    opjit_aot_trailer t;
    if (size < sizeof t)
        return;
    memcpy(&t, file + size - sizeof t, sizeof t);
    memcpy(t.magic, OPJIT_AOT_TRAILER_MAGIC, sizeof t.magic);
    t.abi = OPJIT_AOT_ABI;
    t.size = size;
    memcpy(file + size - sizeof t, &t, sizeof t);
    const rt_hash hash = opjit_rt_hash(file, size - sizeof t + offsetof(opjit_aot_trailer, hash_lo));
    t.hash_lo = hash.lo;
    t.hash_hi = hash.hi;
    memcpy(file + size - sizeof t, &t, sizeof t);
}

/* Reads every byte of a kernel's code and constants. */
static void read_kernel(const opjit_kernel *kernel)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    uint64_t sum = 0;
    test_require(opjit_kernel_get_info(kernel, &info, NULL) == OPJIT_OK, "a kernel has no information");
    sum += strlen(info.name) + strlen(info.target);
    for (uint32_t i = 0; i < info.meta->size; i++)
        sum += ((const uint8_t *)info.meta)[i];
    sink = sum;
}

static void find_all(opjit_library *library)
{
    opjit_error error = { 0 };
    for (uint32_t i = 0; i < opjit_library_count(library) && i < 64; i++) {
        const char *name = opjit_library_name(library, i);
        opjit_kernel *kernel = NULL;
        void (*function)(void) = NULL;
        test_require(name != NULL, "kernel %u has no name", i);
        opjit_status status = opjit_library_find(library, name, &kernel, &error);
        fuzz_require_refusal(status, &error, kernel != NULL, "find");
        if (kernel != NULL)
            read_kernel(kernel);
        opjit_kernel_release(kernel);
        status = opjit_library_entry(library, name, OPJIT_ENTRY_TYPED, &function, &error);
        test_require((status == OPJIT_OK) == (function != NULL), "an entry without a function");
    }
}

static void open_library(const uint8_t *file, size_t size)
{
    const rt_mapping none = { NULL, 0 };
    const rt_span span = { file, size, true };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_library *library = NULL;
    opjit_error error = { 0 };
    uint64_t registry = 0;
    fuzz_meter meter;
    fuzz_meter_begin(&meter);
    options.allocator = &meter.memory.allocator;
    test_require(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    opjit_status status = opjit_rt_library_check_file(file, size, &registry, &error);
    if (status == OPJIT_OK)
        status = opjit_rt_library_make(context->core, file + registry, &span, 1, none, &library, &error);
    fuzz_require_refusal(status, &error, library != NULL, "library");
    if (library != NULL)
        find_all(library);
    opjit_library_close(library);
    opjit_context_destroy(context);
    fuzz_meter_end(&meter, size, 1 << 20, 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    uint8_t *file = NULL;
    test_require(posix_memalign((void **)&file, 4096, size) == 0, "no memory");
    memcpy(file, data + 1, size - 1);
    if ((data[0] & 1) != 0)
        fix_trailer(file, size - 1);
    open_library(file, size - 1);
    free(file);
    return 0;
}
