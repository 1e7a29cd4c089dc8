/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - the one decoder of UTF-8, for the library's messages and the program's JSON.  It needs nothing else. */
#ifndef OPJIT_RUNTIME_BASE_UTF8_H
#define OPJIT_RUNTIME_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the valid sequence at s, of which `left` bytes may be read, and its character in *out; 0: there is none.
 * Overlong forms, surrogates and what is beyond U+10FFFF are invalid.  A text that ends with a NUL may be read with
 * left 4: the NUL is no part of a longer sequence. */
static inline size_t rt_utf8_decode(const char *s, size_t left, uint32_t *out)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 }; /* by length */
    const unsigned char *const u = (const unsigned char *)s;
    const size_t length = u[0] < 0x80 ? 1 : u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
    uint32_t code;

    if (length == 1) {
        *out = u[0];
        return 1;
    }
    if (u[0] < 0xc2 || u[0] > 0xf4 || length > left)
        return 0;
    code = u[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (u[i] & 0x3fu);
    }
    if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *out = code;
    return length;
}

#endif
