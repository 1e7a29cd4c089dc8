/* SPDX-License-Identifier: Apache-2.0 */
/* checker.h - makes a case's kernel in one of several ways, runs it between guards, and compares the whole memory with
 * the reference's. */
#ifndef OPJIT_TESTS_SUPPORT_CHECKER_H
#define OPJIT_TESTS_SUPPORT_CHECKER_H

#include <opjit/opjit.h>

#include "tests/support/cases.h"
#include "tests/support/guarded.h"

/* --- ways to run -------------------------------------------------------------------------------------------------- */
typedef enum test_how {
    TEST_CALL,                       /* opjit_kernel_call on this thread */
    TEST_PIECES,                     /* ... with an executor that runs random pieces in random order */
    TEST_THREADS,                    /* ... and one that runs them on two threads */
    TEST_CLOSURE                     /* a closure, called through opjit_typed_call */
} test_how;

typedef struct test_mode {
    const char *name;
    const char *target;              /* NULL: the context's */
    opjit_level level;
    uint32_t flags;                  /* OPJIT_COMPILE_... */
    test_how how;
    unsigned late;                   /* bit set of the scalar fields that are bound at the call */
    bool optimize;                   /* calls opjit_kernel_optimize between two calls */
} test_mode;

/* The modes that a test runs: its own; with OPJIT_TEST_FOREIGN=1 other machines whose code qemu-user runs (ctest's
 * foreign.*, present where some can be run); with OPJIT_TEST_GRID=1 simulated grids, or the device in
 * OPJIT_TEST_DEVICE. */
const test_mode *test_modes(const test_mode *own, size_t count, size_t *out_count);
/* Whether a call failed through no fault of opjit: the emulator gave up. */
bool test_excused(const test_mode *mode, opjit_status status);

typedef enum test_outcome {
    TEST_PASSED,
    TEST_FAILED,                     /* the message says why */
    TEST_REFUSED                     /* opjit refuses this layout or closure, which it may */
} test_outcome;

/* Runs the case and leaves it unchanged, although scalars that the mode binds late are taken out meanwhile. */
test_outcome test_check(opjit_context *context, test_random *r, test_case *c, const test_mode *mode, char *message,
                        size_t message_size);

/* --- random properties -------------------------------------------------------------------------------------------- */
typedef struct test_suite {
    const char *name;
    opjit_context *context;
    DML_OPERATOR_TYPE type;
    uint64_t cases;
    uint64_t most_elements;          /* of most cases, see test_case_random */
    const test_mode *modes;
    uint32_t mode_count;
    bool one_mode_each;              /* each case in one random mode; else in all of them */
} test_suite;

/* Draws and checks cases of one operator.  Ends the Check test at the first failure, after printing the seed, the
 * number and the descriptor as C. */
void test_suite_run(const test_suite *suite);

/* --- environment -------------------------------------------------------------------------------------------------- */
/* Ends the Check test if it can't. */
opjit_context *test_context_create(void);
/* Whether code can be generated; if not, prints the reason. */
bool test_have_codegen(opjit_context *context);

#endif
