/* SPDX-License-Identifier: Apache-2.0 */
/* operator_case.h - random cases of operators with some inputs and a few computed outputs: made and run in any way, and
 * compared with a reference. */
#ifndef OPJIT_TESTS_SUPPORT_OPERATOR_CASE_H
#define OPJIT_TESTS_SUPPORT_OPERATOR_CASE_H

#include "tests/support/checker.h"

enum { OPERATOR_INPUTS = 12, OPERATOR_OUTPUTS = 3, OPERATOR_MODES = 6 };

typedef struct operator_case {
    const DML_OPERATOR_DESC *op;
    const test_tensor *inputs[OPERATOR_INPUTS];    /* NULL: absent */
    const test_tensor *outputs[OPERATOR_OUTPUTS];  /* likewise */
    int low, high;                                 /* the range of input elements, in quarters; sometimes anything */
    int whole;                                     /* that range times this one for integers; 0: 1 */
    /* Writes outputs; these and inputs in the order above. */
    void (*reference)(const void *user, const void *const *inputs, void *const *outputs);
    const void *user;
    bool near; /* the reference's floats are near ones: what is interpreted is compared within a tolerance, where inputs
                * are in the range; what is compiled has the interpreter's bits */
} operator_case;

/* Interpreted first, then compiled in several ways. */
extern const test_mode operator_modes[OPERATOR_MODES];

/* Makes the operator's kernel and calls it once. */
opjit_status operator_case_run(opjit_context *context, const operator_case *c, const test_mode *mode, test_random *r,
                               const test_buffer *inputs, const test_buffer *outputs, opjit_error *error);
/* Runs it in a random mode on random elements.  Fails the Check test, naming case n, where an output's memory differs
 * from the reference's in a bit, or an input has changed; NaNs may have any sign and payload. */
void operator_case_check(opjit_context *context, const operator_case *c, test_random *r, bool codegen, uint64_t n);

#endif
