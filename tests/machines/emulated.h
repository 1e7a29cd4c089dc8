/* SPDX-License-Identifier: Apache-2.0 */
/* emulated.h - kernels for other machines: compiled as usual and called like any others, while their stages run in the
 * program built from tests/machines/runner.c, under qemu-user or, for AVX-512 where there is none, in Bochs. */
#ifndef OPJIT_TEST_MACHINES_EMULATED_H
#define OPJIT_TEST_MACHINES_EMULATED_H

#include <opjit/opjit.h>

#include "runtime/target/target.h"

/* One call of one stage. */
typedef struct emulated_stage {
    const rt_target *target;
    const void *code;
    uint64_t code_size, entry;
    void *const *buffers;  /* by slot; equal pointers are one buffer */
    const uint64_t *sizes; /* 0: no such buffer */
    uint32_t buffer_count;
    const uint64_t *params;
    uint32_t param_count;
    void *shared, *scratch;
    uint64_t shared_size, scratch_size;
    uint64_t begin, end;
} emulated_stage;

/* Whether code for the target runs on another machine than this one. */
bool test_is_foreign(const rt_target *target);
/* Whether code for the target runs on this machine itself. */
bool test_runs_here(const char *target);
/* Whether code for the target can run, here or in an emulator; if not, and `say` is set, prints the reason. */
bool test_can_run(const char *target, bool say);
typedef enum emulated_result {
    EMULATED_RAN,
    EMULATED_FAILED, /* the message says why */
    EMULATED_GAVE_UP /* the emulator has a fault of its own; qemu's, which end it, are printed */
} emulated_result;
/* Runs a stage. */
emulated_result test_emulated_run(const emulated_stage *stage, char *message, size_t message_size);

/* As opjit_compile_operator and opjit_compile_graph, but for other machines' targets as well; then a graph's constants
 * must be small enough to be folded, and it has no custom operators.  A call of such a kernel is UNAVAILABLE where qemu
 * gave up. */
opjit_status test_compile_operator(opjit_context *context, opjit_operator *op, const opjit_compile_options *options,
                                   opjit_kernel **out_kernel, opjit_error *error);
opjit_status test_compile_graph(opjit_context *context, const DML_GRAPH_DESC *desc,
                                const opjit_compile_options *options, opjit_kernel **out_kernel, opjit_error *error);

#endif
