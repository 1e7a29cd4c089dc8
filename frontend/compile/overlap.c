/* SPDX-License-Identifier: Apache-2.0 */
/* overlap.c - the first compile of a process: another thread of the host's executor loads the code generator and makes
 * its state while the caller makes the program.  Whatever the executor does, the caller does the rest. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "frontend/frontend.h"

enum {
    LARGE = 24,   /* nodes of a graph whose passes take longer than starting a thread */
    PIECES = 1024 /* many, each of which may be nothing: a pool starts its threads when after the first one so much is
                     left */
};

typedef struct overlap {
    fe_unit *unit;
    fe_make_fn make;
    void *user;
    opjit_error *error; /* of make */
    pthread_t caller;
    uint32_t pieces; /* that the caller was given */
    bool made;
    opjit_status status; /* of make */
    atomic_bool taken;   /* a thread loads */
} overlap;

static atomic_bool is_warm; /* the process has begun this once */

static void make(overlap *o)
{
    o->made = true;
    o->status = o->make(o->user, o->error);
}

/* The caller meets an error again, and reports it. */
static void load(const overlap *o)
{
    const fe_unit *unit = o->unit;
    const opjit_codegen *codegen;
    opjit_error ignored = { 0 };
    opjit_status status = opjit_fe_codegen(unit->core, &codegen, &ignored);

    if (status == OPJIT_OK)
        status = codegen->warm(unit->options.target, &unit->core->allocator, &ignored);
    (void)status;
}

static void take_piece(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    overlap *o = arg;

    (void)worker;
    (void)begin;
    (void)end;
    if (!pthread_equal(o->caller, pthread_self())) {
        if (!atomic_exchange(&o->taken, true))
            load(o);
    } else if (o->pieces++ == 1) {
        make(o);
    }
}

opjit_status opjit_fe_overlap(fe_unit *unit, fe_make_fn work, void *user, opjit_error *error)
{
    const opjit_executor *executor = unit->options.executor;
    overlap o = { .unit = unit, .make = work, .user = user, .error = error, .caller = pthread_self() };
    opjit_error reason = { 0 };

    if (unit->codegen == NULL && executor != NULL && executor->workers > 1 && unit->graph.node_count >= LARGE &&
        !atomic_exchange(&is_warm, true))
        (void)executor->run(executor->user, PIECES, 1, take_piece, &o); /* what it did not do is done below */
    if (unit->codegen == NULL) {
        const opjit_status status = opjit_fe_codegen(unit->core, &unit->codegen, &reason);
        if (status != OPJIT_OK) {
            opjit_rt_error_copy(error, &reason);
            return status;
        }
    }
    if (!o.made)
        make(&o);
    return o.status;
}
