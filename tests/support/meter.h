/* SPDX-License-Identifier: Apache-2.0 */
/* meter.h - an allocator hook that counts the calls and bytes that go through it.  For one thread. */
#ifndef OPJIT_TESTS_SUPPORT_METER_H
#define OPJIT_TESTS_SUPPORT_METER_H

#include <opjit/opjit.h>

typedef struct test_meter {
    opjit_allocator allocator; /* the hook, which refers to the meter, so don't copy it */
    size_t live, peak;         /* bytes: currently; at most since the last reset */
    size_t blocks, calls;      /* allocations: currently; since the last reset */
} test_meter;

void test_meter_begin(test_meter *m);
void test_meter_reset(test_meter *m); /* peak and calls start again */

#endif
