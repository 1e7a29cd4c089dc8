/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_disk.c - any bytes as a file of the disk cache, a kernel's, a function's or a model's: what the check accepts
 * was written for exactly the key in it, and its image is sound; everything else is refused with a reason.  The first
 * byte says whether the checksums of the file and the image are corrected first. */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>

#include "runtime/cache/disk_file.h"
#include "runtime/image/image.h"
#include "runtime/image/image_layout.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER_BYTES = 40, KEY_SIZE_AT = 12, IMAGE_SIZE_AT = 16, CHECKSUM_AT = 24 };

static void fix_image(uint8_t *image, size_t size)
{
    if (size < sizeof(image_header))
        return;
    const rt_hash hash = opjit_rt_hash(image + HASHED_FROM, size - HASHED_FROM);
    memcpy(image + offsetof(image_header, hash_lo), &hash.lo, sizeof hash.lo);
    memcpy(image + offsetof(image_header, hash_hi), &hash.hi, sizeof hash.hi);
}

static void fix_checksums(uint8_t *file, size_t size)
{
    uint32_t key_size;
    if (size < HEADER_BYTES)
        return;
    memcpy(&key_size, file + KEY_SIZE_AT, sizeof key_size);
    const uint64_t offset = (HEADER_BYTES + (uint64_t)key_size + 63) / 64 * 64;
    if (offset > size)
        return;
    const uint64_t image_size = size - offset;
    memcpy(file + IMAGE_SIZE_AT, &image_size, sizeof image_size);
    fix_image(file + offset, (size_t)image_size);
    const rt_hash key = opjit_rt_hash(file + HEADER_BYTES, key_size), fields = opjit_rt_hash(file, CHECKSUM_AT);
    const rt_hash sums[] = { { fields.lo ^ key.hi, fields.hi ^ key.lo },
                             opjit_rt_hash(file + offset, (size_t)image_size) };
    const rt_hash sum = memcmp(file, "opjitkc", 8) != 0 ? opjit_rt_hash(sums, sizeof sums) : sums[0];
    memcpy(file + CHECKSUM_AT, &sum.lo, sizeof sum.lo);
    memcpy(file + CHECKSUM_AT + sizeof sum.lo, &sum.hi, sizeof sum.hi);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t other_bytes[] = "another key";
    const rt_disk_key other = { other_bytes, sizeof other_bytes, opjit_rt_hash(other_bytes, sizeof other_bytes),
                                RT_DISK_KERNEL };
    const opjit_kernel_meta *meta;
    const uint8_t *image = NULL, *code;
    size_t image_size = 0, code_size;
    if (size < 1)
        return 0;
    const size_t file_size = size - 1;
    uint8_t *file = malloc(file_size != 0 ? file_size : 1);
    test_require(file != NULL, "no memory");
    memcpy(file, data + 1, file_size);
    if ((data[0] & 1) != 0)
        fix_checksums(file, file_size);
    if (opjit_rt_disk_file_check(file, file_size, NULL, &image, &image_size) == NULL) {
        const char *name = NULL;
        const bool is_kernel = opjit_rt_disk_file_kind(file, &name) == RT_DISK_KERNEL;
        test_require(image >= file && image_size <= file_size && image + image_size == file + file_size,
                     "the image lies outside of the file");
        test_require(is_kernel || memchr(name, '\0', (size_t)(image - (const uint8_t *)name)) != NULL,
                     "the file is accepted, it has no name");
        test_require(!is_kernel ||
                         opjit_rt_image_check(image, image_size, &meta, &code, &code_size, NULL) == OPJIT_OK,
                     "the file is accepted, its image is not");
        test_require(opjit_rt_disk_file_check(file, file_size, &other, &image, &image_size) != NULL,
                     "a file is accepted for another key");
    }
    free(file);
    return 0;
}
