/* SPDX-License-Identifier: Apache-2.0 */
/* executors.h - executors that split work as unfavourably as they may. */
#ifndef OPJIT_TESTS_SUPPORT_EXECUTORS_H
#define OPJIT_TESTS_SUPPORT_EXECUTORS_H

#include <opjit/abi.h>

#include "tests/support/random.h"

typedef struct test_executor {
    opjit_executor executor;         /* give its address to the call */
    test_random *random;
    bool threads;                    /* two threads; else random pieces in random order on the calling one */
} test_executor;

/* The executor points to itself: don't copy it. */
void test_executor_init(test_executor *e, test_random *r, bool threads);

#endif
