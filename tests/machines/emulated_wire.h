/* SPDX-License-Identifier: Apache-2.0 */
/* emulated_wire.h - the messages between a test and the program that runs another machine's code for it, through pipes.
 * Both sides are little endian with 64-bit words.  A request is a wire_request, the code, the parameters, and for each
 * buffer a wire_buffer and its bytes; the answer is a wire_answer and the bytes of all buffers.  A PC
 * has a disk instead of pipes: it says WIRE_READY through its serial port when it waits for a request there. */
#ifndef OPJIT_TEST_MACHINES_EMULATED_WIRE_H
#define OPJIT_TEST_MACHINES_EMULATED_WIRE_H

#include <stdint.h>

enum { WIRE_PAGE = 4096, WIRE_BUFFERS = 80, WIRE_PARAMS = 64, WIRE_READY = '!',
       WIRE_SECTORS = 130 * 16 * 63 /* of 512 bytes */ };

typedef struct wire_request {
    uint64_t code_size, entry;
    uint64_t begin, end;
    uint32_t param_count, buffer_count; /* buffers: the stage's by slot, then shared memory, then scratch */
} wire_request;

typedef struct wire_buffer {
    uint64_t size;
    uint32_t place;  /* the address modulo WIRE_PAGE, if it can be had */
    int32_t same_as; /* the buffer that shares its memory; -1: none; -2: there is no such slot */
} wire_buffer;

typedef struct wire_answer {
    uint32_t outside; /* buffers, except the last two, beside which something was written */
} wire_answer;

#endif
