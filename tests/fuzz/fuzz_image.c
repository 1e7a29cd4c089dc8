/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_image.c - any bytes as a kernel's image: either the check accepts it, then nothing in it leads outside, and its
 * kernel loads with readable information; or it is refused with a message.  No code of an image is run, because nothing
 * can check that; so an image that passes the check and has stages for loading to run is not loaded.  The first byte
 * says whether the checksum is corrected first, without which few inputs would get any further. */
#include <stdlib.h>
#include <string.h>

#include "runtime/image/image.h"
#include "runtime/image/image_layout.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void read_bytes(const void *memory, size_t size)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += ((const uint8_t *)memory)[i];
    sink = sum;
}

static void read_text(const opjit_kernel_meta *meta, uint32_t offset)
{
    read_bytes((const char *)meta + offset, strlen((const char *)meta + offset) + 1);
}

/* Reads everything that a reader of metadata uses, so that a sanitizer notices what lies outside. */
static void read_meta(const opjit_kernel_meta *meta, size_t code_size)
{
    const uint8_t *const base = (const uint8_t *)meta;
    const opjit_buffer_info *buffers = (const opjit_buffer_info *)(base + meta->buffer_info);
    const opjit_param_info *params = (const opjit_param_info *)(base + meta->param_info);
    const opjit_step_info *steps = (const opjit_step_info *)(base + meta->step_info);
    const opjit_variant_info *variants = (const opjit_variant_info *)(base + meta->variant_info);
    read_text(meta, meta->name);
    read_text(meta, meta->target);
    for (uint32_t i = 0; i < meta->inputs + meta->outputs + meta->constants; i++) {
        read_bytes(&buffers[i], sizeof buffers[i]);
        read_text(meta, buffers[i].name);
        test_require(buffers[i].rank >= 1 && buffers[i].rank <= OPJIT_MAX_RANK, "a buffer of rank %u", buffers[i].rank);
    }
    for (uint32_t i = 0; i < meta->params; i++)
        read_text(meta, params[i].name);
    for (uint32_t i = 0; i < meta->steps; i++)
        test_require(steps[i].kind != OPJIT_STEP_STAGE || steps[i].entry < code_size || code_size == 0,
                     "a stage begins at %u of %zu bytes", steps[i].entry, code_size);
    for (uint32_t i = 0; i < meta->variants; i++)
        test_require((uint64_t)variants[i].first_step + variants[i].steps <= meta->steps,
                     "a variant has %u steps from %u", variants[i].steps, variants[i].first_step);
}

static void load(const void *image, size_t size)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };
    fuzz_meter meter;
    fuzz_meter_begin(&meter);
    options.allocator = &meter.memory.allocator;
    test_require(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    const opjit_status status = opjit_kernel_load(context, image, size, NULL, 0, &kernel, &error);
    fuzz_require_refusal(status, &error, kernel != NULL, "load");
    if (status == OPJIT_OK) {
        test_require(opjit_kernel_get_info(kernel, &info, &error) == OPJIT_OK, "%s", error.message);
        read_meta(info.meta, (size_t)info.code_bytes);
    }
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    fuzz_meter_end(&meter, size, 1 << 20, 64);
}

/* Corrects the checksum, because images with a wrong one are refused. */
static void fix_checksum(uint8_t *image, size_t size)
{
    image_header header;
    if (size < sizeof header)
        return;
    memcpy(&header, image, sizeof header);
    const rt_hash hash = opjit_rt_hash(image + HASHED_FROM, size - HASHED_FROM);
    header.hash_lo = hash.lo;
    header.hash_hi = hash.hi;
    memcpy(image, &header, sizeof header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const opjit_kernel_meta *meta;
    const uint8_t *code;
    size_t code_size;
    opjit_error error = { 0 };
    if (size < 1)
        return 0;
    const size_t image_size = size - 1;
    uint8_t *image = malloc(image_size != 0 ? image_size : 1); /* of exactly this size, for the sanitizer */
    test_require(image != NULL, "no memory");
    memcpy(image, data + 1, image_size);
    if ((data[0] & 1) != 0)
        fix_checksum(image, image_size);
    const opjit_status status = opjit_rt_image_check(image, image_size, &meta, &code, &code_size, &error);
    fuzz_require_refusal(status, &error, status == OPJIT_OK, "image");
    if (status == OPJIT_OK) {
        read_bytes(code, code_size);
        read_meta(meta, code_size);
    }
    if (status != OPJIT_OK || rt_meta_kept(meta) == 0)
        load(image, image_size);
    free(image);
    return 0;
}
