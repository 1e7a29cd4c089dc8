/* SPDX-License-Identifier: Apache-2.0 */
/* emulated_wire.h - what a test and the program that runs code of another machine for it say to each other, through
 * pipes. Both are little endian with 64-bit words.  A request is: wire_request, the code, the parameters, a
 * wire_buffer each and its bytes; the answer: wire_answer, then the bytes of all buffers. */
#ifndef OPJIT_TEST_MACHINES_EMULATED_WIRE_H
#define OPJIT_TEST_MACHINES_EMULATED_WIRE_H

#include <stdint.h>

enum { WIRE_PAGE = 4096, WIRE_BUFFERS = 80, WIRE_PARAMS = 64 };

typedef struct wire_request {
    uint64_t code_size, entry;
    uint64_t begin, end;
    uint32_t param_count, buffer_count; /* buffers: the stage's by slot, then shared memory, then scratch */
} wire_request;

typedef struct wire_buffer {
    uint64_t size;
    uint32_t place;  /* what the address is beyond a multiple of WIRE_PAGE, if it can be */
    int32_t same_as; /* the buffer that this one is; -1: none; -2: there is no such slot */
} wire_buffer;

typedef struct wire_answer {
    uint32_t outside; /* buffers, but for the last two, beside which something was written */
} wire_answer;

#endif
