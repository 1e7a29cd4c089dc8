/* SPDX-License-Identifier: Apache-2.0 */
/* loops.h - the references of compile time and code quality: an empty function emitted by LLVM, and the generators as
 * plain scalar loops that default<O2> optimises.  Uses LLVM's C API directly, not opjit's code generation. */
#ifndef OPJIT_TESTS_BENCH_LOOPS_H
#define OPJIT_TESTS_BENCH_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum loops_kind { LOOPS_CONSTANT, LOOPS_SEQUENCE, LOOPS_EYE, LOOPS_TRIANGLE, LOOPS_KINDS } loops_kind;

typedef void (*loops_fn)(float *out, const float *in);

/* Makes target machines for this CPU and a place to load code into; false (and a line on standard error) where LLVM
 * refuses. */
bool loops_start(void);
void loops_stop(void);

/* A measure_fn without an argument: context, module, one empty function, object code at code generation level none. */
void loops_emit_empty(void *unused);
/* The same for a kernel: PTX text, or an object for AMD GPUs; gpu points to which. */
typedef enum loops_gpu { LOOPS_PTX, LOOPS_CODE_OBJECT, LOOPS_GPUS } loops_gpu;
void loops_emit_empty_kernel(void *gpu);

/* Plain loops over rows x columns FLOAT32 elements through default<O2> and code generation at its default level: value
 * 3 where a constant is filled, 3 + 2 e in sequences, diagonal 1 of the identity matrix, zero above the diagonal.
 * NULL: LLVM refused.  out_ms: from text to object code. */
loops_fn loops_compile(loops_kind kind, uint32_t rows, uint32_t columns, double *out_ms);

#endif
