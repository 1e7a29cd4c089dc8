/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - what a host and its worker process send each other: frames over a socket, which hold requests and
 * results of codegen.h as bytes.  Both sides are of one build, so structures without pointers travel as they are.
 * Nobody trusts what arrives: frames are bounded and hashed, and whatever is read from one is checked before it is
 * used. */
#ifndef OPJIT_CODEGEN_PROCESS_MESSAGE_H
#define OPJIT_CODEGEN_PROCESS_MESSAGE_H

#include "codegen/codegen.h"

/* --- frames (frame.c) --------------------------------------------------------------------------------------------- */

typedef enum cp_kind {
    CP_HELLO = 1, /* worker, once: an error, and the build */
    CP_COMPILE,   /* host: opjit_codegen.compile */
    CP_WARM,      /* host: .warm */
    CP_LIBRARY,   /* host: .library */
    CP_FIND,      /* worker, during a compile: codegen_functions.find; the host answers with FOUND */
    CP_FOUND,
    CP_KEEP,   /* worker, during a compile: codegen_functions.keep; no answer */
    CP_RESULT, /* worker: the answer to a request */
    CP_KIND_END
} cp_kind;

#define CP_MOST_BYTES ((uint64_t)1 << 32) /* of one frame */

typedef enum cp_outcome {
    CP_DONE = 0,
    CP_ENDED, /* the other process is not there any more, or has closed its end */
    CP_CANCELLED,
    CP_DAMAGED, /* what came is no frame, or its bytes are not those that were sent */
    CP_NO_MEMORY
} cp_outcome;

typedef struct cp_line {
    int socket;
    int other;                 /* once it is readable, the other process has ended; -1: there is no such descriptor */
    const atomic_bool *cancel; /* looked at while waiting; NULL: nobody cancels, or somebody has */
    atomic_bool *tell;   /* set once that is: then the other process has `grace` nanoseconds to answer.  NULL: none */
    uint64_t grace, end; /* end: of waiting, as opjit_rt_nanoseconds counts; 0: none yet */
    uint8_t *out, *in;   /* memory of CP_WINDOW bytes that both processes see, for what is sent and received */
} cp_line;

enum { CP_WINDOW = 1 << 20 };

/* Data that were made at line->out need not pass through the socket: for frames that the other side has received before
 * the next one of that kind is made, requests and results. */
cp_outcome opjit_cp_send(cp_line *line, cp_kind kind, const void *data, size_t size);
/* Waits for a frame.  *out is empty, of an allocator that aligns to 16; the caller frees it in any case.  NO_MEMORY:
 * the frame, of that kind, is passed over. */
cp_outcome opjit_cp_receive(cp_line *line, cp_kind *out_kind, rt_bytes *out);

/* --- requests and results (request.c) ----------------------------------------------------------------------------- */

enum { CP_MOST_THREADS = 16 }; /* of a worker, for one request */

/* Appended to *out; out->failed: no memory. */
void opjit_cp_put_compile(const codegen_request *request, rt_bytes *out);
void opjit_cp_put_warm(const rt_target *target, rt_bytes *out);
void opjit_cp_put_library(const codegen_library *request, rt_bytes *out);

typedef struct cp_compile {
    codegen_request request; /* without executor, cancel and functions */
    codegen_kernel kernel;
    uint32_t threads; /* that the host's executor has; 1: none */
    bool has_functions;
} cp_compile;
/* The same of a frame's bytes, which *out points into: they must stay, and are written to.  Tables are in the arena.
 * CORRUPT: the bytes are not such a request, or a function in it can't be one. */
opjit_status opjit_cp_take_compile(rt_bytes *bytes, rt_arena *arena, cp_compile *out, opjit_error *error);
opjit_status opjit_cp_take_warm(rt_bytes *bytes, const rt_target **out, opjit_error *error);
opjit_status opjit_cp_take_library(rt_bytes *bytes, rt_arena *arena, codegen_library *out, opjit_error *error);

/* An error and what was made; memory: bytes that the worker holds. */
void opjit_cp_put_result(const opjit_error *answer, const codegen_result *result, uint64_t memory, rt_bytes *out);
/* Copies into *result, with the allocator of result->bytes, which is empty.  CORRUPT, OUT_OF_MEMORY, or the answer. */
opjit_status opjit_cp_take_result(rt_bytes *bytes, codegen_result *result, uint64_t *out_memory, opjit_error *error);

/* Two byte strings: key and code. */
typedef struct cp_pair {
    const void *first, *second;
    size_t first_size, second_size;
} cp_pair;
void opjit_cp_put_pair(const cp_pair *pair, rt_bytes *out);
bool opjit_cp_take_pair(rt_bytes *bytes, cp_pair *out);

/* The worker's build: an error where it can't work, and its id. */
void opjit_cp_put_hello(const opjit_error *answer, const char *build, rt_bytes *out);
opjit_status opjit_cp_take_hello(rt_bytes *bytes, const char *build, opjit_error *error);

/* --- functions of the IR (function.c) ----------------------------------------------------------------------------- */

/* A reader of a frame's bytes.  What is not there is 0 or NULL, and bad from then on. */
typedef struct cp_reader {
    uint8_t *data;
    size_t size, at;
    bool bad;
} cp_reader;
uint32_t opjit_cp_u32(cp_reader *r);
uint64_t opjit_cp_u64(cp_reader *r);
void *opjit_cp_array(cp_reader *r, uint64_t count, size_t size); /* at a multiple of 16; NULL: bad */
const char *opjit_cp_text(cp_reader *r);                         /* NULL: none, or bad */
void opjit_cp_put_array(rt_bytes *out, const void *data, uint64_t count, size_t size);
void opjit_cp_put_text(rt_bytes *out, const char *text);

void opjit_cp_put_function(const ir_func *f, rt_bytes *out);
/* Its arrays stay in the reader's bytes.  NULL: no memory, or it is bad: a reference to what is not there, a circle, an
 * operand too many. */
const ir_func *opjit_cp_take_function(cp_reader *r, rt_arena *arena, opjit_error *error);

#endif
