/* SPDX-License-Identifier: Apache-2.0 */
/* ir_passes.h - the passes on a function of a test: run one after the other, each checked by the interpreter. */
#ifndef OPJIT_TESTS_SUPPORT_IR_PASSES_H
#define OPJIT_TESTS_SUPPORT_IR_PASSES_H

#include "ir/ir.h"

/* The function's text, in *text, which the caller frees. */
const char *ir_passes_text(const ir_func *f, rt_bytes *text);
/* Runs the function; memory: by slot of inputs, outputs and constants.  Its workspace begins as garbage. */
void ir_passes_interpret(ir_func *f, void *const *memory);

/* Fails the test where the outputs in memory are wrong. */
typedef void ir_passes_check(const void *user, void *const *memory, const char *pass, const char *text);
/* Runs the passes up to this one, whose accesses have to have proofs, the function, whose outputs are checked, and the
 * pass once more, which has to change nothing. */
void ir_passes_run_to(ir_func *f, const ir_pass *pass, const ir_pass_env *env, void *const *memory,
                      ir_passes_check *check, const void *user);

#endif
