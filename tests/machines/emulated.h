/* SPDX-License-Identifier: Apache-2.0 */
/* emulated.h - kernels for other machines, compiled as usual, their stages run under qemu-user by the program that
 * tests/machines/runner.c is built to.  They are called like any others. */
#ifndef OPJIT_TEST_MACHINES_EMULATED_H
#define OPJIT_TEST_MACHINES_EMULATED_H

#include <opjit/opjit.h>

#include "runtime/target/target.h"

/* One call of one stage. */
typedef struct emulated_stage {
    const rt_target *target;
    const void *code;
    uint64_t code_size, entry;
    void *const *buffers;  /* by slot; equal ones are one buffer */
    const uint64_t *sizes; /* 0: there is no such buffer */
    uint32_t buffer_count;
    const uint64_t *params;
    uint32_t param_count;
    void *shared, *scratch;
    uint64_t shared_size, scratch_size;
    uint64_t begin, end;
} emulated_stage;

/* Whether the target is another machine's than this one. */
bool test_is_foreign(const rt_target *target);
/* Whether code for the target can be run, here or under qemu-user; says on standard output why not, if `say`. */
bool test_can_run(const char *target, bool say);
typedef enum emulated_result {
    EMULATED_RAN,
    EMULATED_FAILED, /* what went wrong is in the message */
    EMULATED_GAVE_UP /* an assertion of qemu's own; said on standard output */
} emulated_result;
/* Runs a stage. */
emulated_result test_emulated_run(const emulated_stage *stage, char *message, size_t message_size);

/* As opjit_compile_operator and opjit_compile_graph, for other machines' targets too.  A graph's constants must be
 * small enough to be folded then, and there are no custom operators.  A call of such a kernel is UNAVAILABLE where
 * qemu gave up. */
opjit_status test_compile_operator(opjit_context *context, opjit_operator *op, const opjit_compile_options *options,
                                   opjit_kernel **out_kernel, opjit_error *error);
opjit_status test_compile_graph(opjit_context *context, const DML_GRAPH_DESC *desc,
                                const opjit_compile_options *options, opjit_kernel **out_kernel, opjit_error *error);

#endif
