/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npy.c - any bytes as a NumPy array file: what is accepted has exactly the data that its header describes, and
 * its header and elements, written and read again, are the same. */
#include <stdlib.h>
#include <string.h>

#include "frontend/cli/files/npy.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opjit_error error = { 0 };
    npy_array array, again;
    rt_bytes header;

    const opjit_status status = opjit_cli_npy_read(data, size, &array, &error);
    fuzz_require_refusal(status, &error, status == OPJIT_OK, "npy");
    if (status != OPJIT_OK)
        return 0;
    test_require(array.data_offset <= size && array.rank <= NPY_MAX_RANK, "the header leads outside");
    uint64_t elements = 1;
    for (uint32_t i = 0; i < array.rank; i++)
        elements *= array.shape[i];
    test_require(elements == array.elements &&
                     elements * opjit_rt_dtype_size(array.dtype) == (uint64_t)(size - array.data_offset),
                 "%llu elements of a file of %zu bytes", (unsigned long long)array.elements, size);
    opjit_rt_bytes_init(&header, &opjit_rt_default_allocator);
    opjit_cli_npy_header(&header, array.dtype, array.shape, array.rank);
    uint8_t *const copy = malloc(size - array.data_offset + 1);
    test_require(copy != NULL, "no memory");
    opjit_cli_npy_copy(&array, data, copy);
    opjit_rt_bytes_append(&header, copy, size - array.data_offset);
    free(copy);
    test_require(!header.failed && opjit_cli_npy_read(header.data, header.size, &again, &error) == OPJIT_OK,
                 "written again: %s", error.message);
    test_require(opjit_cli_npy_is_plain(&again), "written again it is in another order");
    test_require(again.dtype == array.dtype && again.rank == array.rank &&
                     memcmp(again.shape, array.shape, array.rank * sizeof *array.shape) == 0,
                 "written again it is another array");
    opjit_rt_bytes_free(&header);
    return 0;
}
