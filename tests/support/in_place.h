/* SPDX-License-Identifier: Apache-2.0 */
/* in_place.h - calls one kernel twice: with separate buffers, and with outputs in the memory of inputs wherever the
 * kernel allows it. */
#ifndef OPJIT_TESTS_SUPPORT_IN_PLACE_H
#define OPJIT_TESTS_SUPPORT_IN_PLACE_H

#include <inttypes.h>

#include "tests/support/checker.h"
#include "tests/support/graph_case.h"
#include "tests/support/guarded.h"

enum { IN_PLACE_BUFFERS = 16 };

typedef struct in_place_trial {
    test_random *r;
    const test_mode *mode;
    const char *what;
    uint64_t number;
    opjit_kernel *kernel;
    opjit_kernel_info info;
    uint32_t count; /* inputs and outputs */
    test_buffer apart[IN_PLACE_BUFFERS], together[IN_PLACE_BUFFERS];
    uint32_t home[IN_PLACE_BUFFERS]; /* the buffer that each input and output lies in */
} in_place_trial;

/* For Check's messages: which case it is. */
#define IN_PLACE_WHERE "%s, case %" PRIu64 ", %s: "
#define IN_PLACE_AT(t) (t)->what, (t)->number, (t)->mode->name

/* Takes the kernel and returns whether it was called in place.  Fails the Check test if the calls differ in a bit or
 * change anything else; NaNs may have any sign and payload. */
bool in_place_check(in_place_trial *t);
/* Checks that a call with separate buffers computes what the graph, whose tensors are packed, computes as lowered,
 * before any pass. */
void in_place_compare_lowered(in_place_trial *t, const graph_case *graph);

#endif
