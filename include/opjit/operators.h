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

/* An LSTM whose products are of bytes, as ONNX Runtime's DynamicQuantizeLSTM: InputTensor becomes UINT8 by the range of
 * all of its elements, and the hidden values of each step and direction by the range of theirs, over the whole batch,
 * as DYNAMIC_QUANTIZE_LINEAR does that.  Fields, gates and sizes are LSTM's, but that weights are INT8 or UINT8, less a
 * zero point, times a scale.  These have Sizes { 1, 1, directions, 1 or 4 * hidden }; a scale has InputTensor's type, a
 * zero point (NULL: 0) that of its weights. */
#define OPJIT_OPERATOR_DYNAMIC_QUANTIZE_LSTM ((DML_OPERATOR_TYPE)254)
typedef struct OPJIT_DYNAMIC_QUANTIZE_LSTM_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *WeightTensor;
    const DML_TENSOR_DESC *RecurrenceTensor;
    const DML_TENSOR_DESC *BiasTensor;
    const DML_TENSOR_DESC *HiddenInitTensor;
    const DML_TENSOR_DESC *CellMemInitTensor;
    const DML_TENSOR_DESC *WeightScaleTensor;
    const DML_TENSOR_DESC *WeightZeroPointTensor;
    const DML_TENSOR_DESC *RecurrenceScaleTensor;
    const DML_TENSOR_DESC *RecurrenceZeroPointTensor;
    const DML_TENSOR_DESC *OutputSequenceTensor;
    const DML_TENSOR_DESC *OutputSingleTensor;
    const DML_TENSOR_DESC *OutputCellSingleTensor;
    uint32_t ActivationDescCount;
    const DML_OPERATOR_DESC *ActivationDescs;
    DML_RECURRENT_NETWORK_DIRECTION Direction;
} OPJIT_DYNAMIC_QUANTIZE_LSTM_OPERATOR_DESC;

#endif
