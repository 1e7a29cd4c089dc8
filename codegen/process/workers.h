/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h - the worker processes of this process. */
#ifndef OPJIT_CODEGEN_PROCESS_WORKERS_H
#define OPJIT_CODEGEN_PROCESS_WORKERS_H

#include <sys/types.h>

#include "codegen/process/message.h"

/* What a worker has at its start: its socket, and memory that both processes see.  Its standard input and output are in
 * that memory, too, so nothing that LLVM prints reaches the host's. */
enum { CP_SOCKET = 3, CP_MEMORY = 4, CP_PAGE = 4096, CP_TEXT = 4096 };
typedef struct cp_page {
    atomic_bool cancel; /* set by the host: the compile that is under way is not wanted any more */
    atomic_bool begun;  /* set by the worker: it has the whole request */
    char room[CP_PAGE - 2 * sizeof(atomic_bool)];
    char text[CP_TEXT];                            /* what it printed since the last request */
    uint8_t request[CP_WINDOW], answer[CP_WINDOW]; /* frames; they take memory once one has been as large */
} cp_page;

typedef struct cp_worker {
    pid_t pid;  /* 0: none */
    int handle; /* of the process: its number may be another one's once it has ended; -1: the system has none */
    int socket;
    cp_page *page;
    uint32_t state, served; /* workers.c's; requests */
} cp_worker;

/* A worker that is idle, or a new one; where there are as many as there may be, waits for one.  The caller gives it
 * back.  what: for messages, of what is compiled.  UNAVAILABLE: there is no worker, or it can't work; CANCELLED. */
opjit_status opjit_cp_worker_take(const char *what, const atomic_bool *cancel, const opjit_allocator *allocator,
                                  cp_worker **out, opjit_error *error);
/* keep: it has answered, and holds that many bytes.  Otherwise it is ended. */
void opjit_cp_worker_give(cp_worker *worker, bool keep, uint64_t memory);
/* Of a worker that has closed its end: how it ended, and what it printed last.  Returns status.  It is still to be
 * given back. */
opjit_status opjit_cp_worker_report(cp_worker *worker, const char *what, opjit_status status, opjit_error *error);

#endif
