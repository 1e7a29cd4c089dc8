/* SPDX-License-Identifier: Apache-2.0 */
/* element.h - elements in memory: bits as in CONST, in as many bytes as the type has. */
#ifndef OPJIT_IR_EVAL_ELEMENT_H
#define OPJIT_IR_EVAL_ELEMENT_H

#include <stdint.h>
#include <string.h>

static inline uint64_t ir_read_element(const uint8_t *from, uint32_t size)
{
    uint16_t half;
    uint32_t word;
    uint64_t bits;
    switch (size) {
    case 1: return *from;
    case 2: memcpy(&half, from, 2); return half;
    case 4: memcpy(&word, from, 4); return word;
    default: memcpy(&bits, from, 8); return bits;
    }
}

static inline void ir_write_element(uint8_t *to, uint32_t size, uint64_t bits)
{
    const uint8_t byte = (uint8_t)bits;
    const uint16_t half = (uint16_t)bits;
    const uint32_t word = (uint32_t)bits;
    memcpy(to,
           size == 1   ? (const void *)&byte
           : size == 2 ? (const void *)&half
           : size == 4 ? (const void *)&word
                       : &bits,
           size);
}

#endif
