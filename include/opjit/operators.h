/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/operators.h - operators of opjit's own, which DirectML lacks: numbers and descriptors as opjit/dml.h has them.
 * They are for contexts without a feature level, and everything that takes DirectML's operators takes them.  Since 0.1.
 *
 *   - Numbers count down from 255, which DirectML's never reached. */
#ifndef OPJIT_OPERATORS_H
#define OPJIT_OPERATORS_H

#include <opjit/dml.h>

/* Output = Input; then, in row-major order of the indices, the element at each index's coordinates, with the index in
 * place of the coordinate on Axis, becomes f(element, update): DML_REDUCE_FUNCTION_SUM, _MULTIPLY, _MIN or _MAX.
 * FLOAT16 is rounded at each step.  Indices mean what SCATTER_ELEMENTS takes them for, and so do all fields and
 * sizes. */
#define OPJIT_OPERATOR_SCATTER_REDUCE ((DML_OPERATOR_TYPE)255)
typedef struct OPJIT_SCATTER_REDUCE_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *IndicesTensor;
    const DML_TENSOR_DESC *UpdatesTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t Axis;
    DML_REDUCE_FUNCTION Function;
} OPJIT_SCATTER_REDUCE_OPERATOR_DESC;

#endif
