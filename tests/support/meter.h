/* SPDX-License-Identifier: Apache-2.0 */
/* meter.h - an allocator hook that counts what goes through it.  For one thread. */
#ifndef OPJIT_TESTS_SUPPORT_METER_H
#define OPJIT_TESTS_SUPPORT_METER_H

#include <opjit/opjit.h>

typedef struct test_meter {
    opjit_allocator allocator; /* the hook; it leads back to the meter, so don't copy that */
    size_t live, peak;         /* bytes: now; at most since the last reset */
    size_t blocks, calls;      /* allocations: now; since the last reset */
} test_meter;

void test_meter_begin(test_meter *m);
void test_meter_reset(test_meter *m); /* peak and calls begin again */

#endif
