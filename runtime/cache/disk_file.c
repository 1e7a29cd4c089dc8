/* SPDX-License-Identifier: Apache-2.0 */
/* disk_file.c - how a file of the disk cache is laid out, checked and written.  Which files there are is disk.c's. */
#define _GNU_SOURCE
#include "runtime/cache/disk_file.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/image/image.h"
#include "runtime/base/limits.h"

enum { FORMAT = 1, MOST_BYTES = 1 << 30 };

typedef struct file_header {
    char magic[8];
    uint32_t format, key_size;
    uint64_t image_size;
    uint64_t checksum_lo, checksum_hi; /* of the fields above and the key; and of what is no image */
} file_header;
_Static_assert(sizeof(file_header) == 40, "the header is written as it lies in memory");

static const char magics[][8] = { [RT_DISK_KERNEL] = "opjitkc",
                                  [RT_DISK_FUNCTION] = "opjitfn",
                                  [RT_DISK_MODEL] = "opjitmd" };

/* --- names -------------------------------------------------------------------------------------------------------- */

void opjit_rt_disk_file_name(rt_hash key, char name[static DISK_FILE_NAME_SIZE])
{
    opjit_rt_hex(key.hi, 16, name);
    opjit_rt_hex(key.lo, 16, name + 16);
    memcpy(name + 32, DISK_FILE_END, sizeof DISK_FILE_END);
}

/* The number that 16 lower-case hexadecimal digits are; others have been refused. */
static uint64_t half_of(const char *digits)
{
    uint64_t value = 0;

    for (int i = 0; i < 16; i++)
        value = value << 4 | (uint64_t)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
    return value;
}

bool opjit_rt_disk_name_to_key(const char *digits, size_t length, rt_hash *out)
{
    if (length != 32 || strspn(digits, "0123456789abcdef") < 32)
        return false;
    *out = (rt_hash){ .hi = half_of(digits), .lo = half_of(digits + 16) };
    return true;
}

bool opjit_rt_disk_is_file_name(const char *name)
{
    return strspn(name, "0123456789abcdef") == 32 && strcmp(name + 32, DISK_FILE_END) == 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

const char *opjit_rt_disk_stranger(const struct stat *info, uid_t user)
{
    if (!S_ISREG(info->st_mode))
        return "it is no plain file";
    if (info->st_uid != user)
        return "another user owns it";
    if ((info->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "others may write to it";
    if (info->st_nlink > 1) /* none: removed or replaced since it was opened, and as good as before */
        return "it has another name elsewhere";
    if (info->st_size < (off_t)sizeof(file_header) || info->st_size > MOST_BYTES)
        return "its size is that of no kernel";
    return NULL;
}

const char *opjit_rt_disk_file_read(int file, const struct stat *info, rt_bytes *out)
{
    uint8_t *const to = opjit_rt_bytes_extend(out, (size_t)info->st_size);

    if (to == NULL)
        return "there is no memory for it";
    for (off_t done = 0; done < info->st_size;) {
        const ssize_t n = pread(file, to + done, (size_t)(info->st_size - done), done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? "it ends too early" : "it can't be read";
        done += n;
    }
    return NULL;
}

/* Images are read as structures, so they begin at a multiple of 64; the bytes between are zero. */
static size_t image_offset(size_t key_size)
{
    return (size_t)align_up(sizeof(file_header) + key_size, 64);
}

static file_header header_of(const rt_disk_key *key, const void *content, size_t content_size)
{
    file_header header = { .format = FORMAT, .key_size = (uint32_t)key->size, .image_size = content_size };
    rt_hash fields;

    memcpy(header.magic, magics[key->kind], sizeof header.magic);
    fields = opjit_rt_hash(&header, offsetof(file_header, checksum_lo));
    header.checksum_lo = fields.lo ^ key->hash.hi; /* crossed: equal halves must not cancel out */
    header.checksum_hi = fields.hi ^ key->hash.lo;
    if (key->kind != RT_DISK_KERNEL) {
        const rt_hash parts[] = { { header.checksum_lo, header.checksum_hi }, opjit_rt_hash(content, content_size) };
        const rt_hash all = opjit_rt_hash(parts, sizeof parts);
        header.checksum_lo = all.lo;
        header.checksum_hi = all.hi;
    }
    return header;
}

/* The kind of file that begins like this; false: none that is known. */
static bool find_kind(const file_header *header, rt_disk_kind *out)
{
    for (*out = RT_DISK_KERNEL; *out <= RT_DISK_MODEL; ++*out)
        if (memcmp(header->magic, magics[*out], sizeof header->magic) == 0)
            return header->format == FORMAT;
    return false;
}

/* What is wrong with the content of a file whose checksum is right; NULL: nothing. */
static const char *check_content(const rt_disk_key *key, const uint8_t *content, size_t size)
{
    const opjit_kernel_meta *meta;
    const uint8_t *code;
    size_t code_size;

    if (key->kind != RT_DISK_KERNEL)
        return key->size != 0 && memchr(key->bytes, '\0', key->size) != NULL ? NULL : "it has no name";
    return opjit_rt_image_check(content, size, &meta, &code, &code_size, NULL) == OPJIT_OK ? NULL
                                                                                           : "its image is damaged";
}

const char *opjit_rt_disk_file_check(const uint8_t *bytes, size_t size, const rt_disk_key *key,
                                     const uint8_t **out_image, size_t *out_image_size)
{
    file_header header, expected;
    rt_disk_key found;
    size_t offset;

    if (size < sizeof header)
        return "it ends too early";
    memcpy(&header, bytes, sizeof header);
    if (!find_kind(&header, &found.kind))
        return "it is of another format";
    offset = image_offset(header.key_size);
    if (offset > size || header.image_size != size - offset)
        return "its size is not what it says";
    found.bytes = bytes + sizeof header;
    found.size = header.key_size;
    found.hash = opjit_rt_hash(found.bytes, found.size);
    expected = header_of(&found, bytes + offset, size - offset);
    if (memcmp(&header, &expected, sizeof header) != 0)
        return "its checksum is wrong";
    if (key != NULL &&
        (found.kind != key->kind || found.size != key->size || memcmp(found.bytes, key->bytes, key->size) != 0))
        return "it was made for another key";
    for (size_t i = sizeof header + header.key_size; i < offset; i++)
        if (bytes[i] != 0)
            return "its padding is not empty";
    *out_image = bytes + offset;
    *out_image_size = size - offset;
    return check_content(&found, *out_image, *out_image_size);
}

rt_disk_kind opjit_rt_disk_file_kind(const uint8_t *bytes, const char **out_name)
{
    file_header header;
    rt_disk_kind kind;

    memcpy(&header, bytes, sizeof header);
    (void)find_kind(&header, &kind);
    if (kind != RT_DISK_KERNEL)
        *out_name = (const char *)bytes + sizeof header;
    return kind;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

bool opjit_rt_disk_file_write(int file, const rt_disk_key *key, const void *image, size_t image_size)
{
    file_header header = header_of(key, image, image_size);
    char zeros[64] = { 0 };
    struct iovec parts[] = { { &header, sizeof header },
                             { (void *)(uintptr_t)key->bytes, key->size },
                             { zeros, image_offset(key->size) - sizeof header - key->size },
                             { (void *)(uintptr_t)image, image_size } };
    size_t first = 0;

    if (!rt_file_may_have(image_offset(key->size) + image_size))
        return false;
    while (first < sizeof parts / sizeof *parts) {
        ssize_t n = writev(file, parts + first, (int)(sizeof parts / sizeof *parts - first));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        for (; first < sizeof parts / sizeof *parts && (size_t)n >= parts[first].iov_len; first++)
            n -= (ssize_t)parts[first].iov_len;
        if (n > 0) {
            parts[first].iov_base = (char *)parts[first].iov_base + n;
            parts[first].iov_len -= (size_t)n;
        }
    }
    return true;
}
