/* SPDX-License-Identifier: Apache-2.0 */
/* aot_batch.h - subjects for ahead-of-time tests: every operator with every type of each of its tensors, or a share of
 * them. */
#ifndef OPJIT_TESTS_SUPPORT_AOT_BATCH_H
#define OPJIT_TESTS_SUPPORT_AOT_BATCH_H

#include "tests/support/aot.h"
#include "tests/support/graph_case.h"

enum { AOT_BATCH_MOST = 2500, AOT_BATCH_OPERATORS = 256, AOT_BATCH_FIELDS = 24 };

typedef struct aot_batch {
    opjit_context *context;
    test_random r;
    unsigned percent; /* of what there is; 100: everything */
    aot_subject *subjects;
    uint32_t count;
    graph_case graph; /* of the last subject, which has constants */
    uint32_t missing[AOT_BATCH_OPERATORS][AOT_BATCH_FIELDS]; /* by field: types that no descriptor has had yet */
} aot_batch;

/* context, r and percent are set by the caller. */
void aot_batch_begin(aot_batch *b);
void aot_batch_end(aot_batch *b);
/* Fails the Check test, naming operator, tensor and type, if a type that a row allows was not drawn. */
void aot_batch_check_complete(const aot_batch *b);

#endif
