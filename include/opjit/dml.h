/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/dml.h - DirectML's descriptor structures under DirectML's own names, for any C11 or C++17 compiler.
 *
 * Everything here is DirectML's public API struct for struct (the set of target version 0x6400, its last): same
 * names, field names, field order, layout and enum values, so that code which fills DirectML descriptors compiles
 * against this header unchanged.  The interfaces are documented under learn.microsoft.com, "Direct Machine Learning
 * (DirectML)"; what opjit does with a descriptor, and which ones it supports, is opjit's own documentation.
 *
 *   - Fields have fixed-width C types.  A host that spells UINT, FLOAT, BOOL ... itself defines OPJIT_DML_WIN32_TYPES
 *     before the include and gets those names too (unless a Windows header has already brought them).
 *   - Enums are stored as 32-bit integers.  BOOL is int32_t: 0 is false, anything else true.
 *   - A structure borrows what it points to; opjit copies what it needs before the call returns.
 *   - A zero-filled descriptor is a defined state: it is refused with a message, or means what the zeros say.
 *   - Left out, because they are nothing without Direct3D 12: DML_BINDING_DESC, DML_BUFFER_BINDING and
 *     DML_BUFFER_ARRAY_BINDING (ID3D12Resource), DML_BINDING_TABLE_DESC (IDMLDispatchable, descriptor handles), the
 *     device interfaces and the structures of their feature queries.  opjit_call takes plain pointers instead.
 *
 * Where the real DirectML.h was included first, this header defines OPJIT_DML_EXTERNAL and nothing else: its types
 * have this layout, but its IDMLOperator is a COM interface, so cast opjit_operator pointers at graph nodes.  The
 * other way round (this header, then DirectML.h in the same translation unit) can't work. */
#ifndef OPJIT_DML_H
#define OPJIT_DML_H

/* DML_DECLARE_INTERFACE is defined by every DirectML.h, early and last.  DML_TARGET_VERSION is not asked: builds set
 * it on the command line, and the early header had none.  Nor is the guard DIRECTML_H: it stays defined
 * where the API partition left the header empty.  __DirectML_h__ is the guard that MIDL would write. */
#if defined(DML_DECLARE_INTERFACE) || defined(__DirectML_h__)
#define OPJIT_DML_EXTERNAL 1
#else

#include <stddef.h>
#include <stdint.h>

/* All types, enumerators and macros below begin with DML_, but fields don't, and two of those are one letter: a
 * host's macros P and K are set aside here and put back at the end. */
#pragma push_macro("K")
#pragma push_macro("P")
#undef K
#undef P

#ifdef __cplusplus
extern "C" {
#endif

/* The version whose structures these are.  Nothing below is hidden when a build asks for an older one. */
#ifndef DML_TARGET_VERSION
#define DML_TARGET_VERSION 0x6400
#endif

/* --- Win32 spellings (on request) ----------------------------------------------------------------------------- */
#if defined(OPJIT_DML_WIN32_TYPES) && !defined(_WINDEF_) && !defined(_MINWINDEF_)
/* A name that is already a macro is left alone: a typedef of it would not compile. */
#ifndef BYTE
typedef uint8_t BYTE;
#endif
#ifndef INT8
typedef int8_t INT8;
#endif
#ifndef UINT8
typedef uint8_t UINT8;
#endif
#ifndef INT16
typedef int16_t INT16;
#endif
#ifndef UINT16
typedef uint16_t UINT16;
#endif
#ifndef INT
typedef int32_t INT;
#endif
#ifndef INT32
typedef int32_t INT32;
#endif
#ifndef UINT
typedef uint32_t UINT;
#endif
#ifndef UINT32
typedef uint32_t UINT32;
#endif
#ifndef INT64
typedef int64_t INT64;
#endif
#ifndef UINT64
typedef uint64_t UINT64;
#endif
#ifndef SIZE_T
typedef size_t SIZE_T;
#endif
#ifndef FLOAT
typedef float FLOAT;
#endif
#ifndef DOUBLE
typedef double DOUBLE;
#endif
#ifndef BOOL
typedef int32_t BOOL;
#endif
#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif
#endif

/* --- constants ------------------------------------------------------------------------------------------------ */
#define DML_TENSOR_DIMENSION_COUNT_MAX      5u   /* dimensions of a tensor before target version 0x3000 */
#define DML_TENSOR_DIMENSION_COUNT_MAX1     8u   /* dimensions of a tensor */
#define DML_TEMPORARY_BUFFER_ALIGNMENT      256u /* bytes */
#define DML_PERSISTENT_BUFFER_ALIGNMENT     256u /* bytes */
#define DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT 16u  /* bytes */

/* --- tensors -------------------------------------------------------------------------------------------------- */
/* The type of a tensor's elements. */
typedef enum DML_TENSOR_DATA_TYPE {
    DML_TENSOR_DATA_TYPE_UNKNOWN = 0,
    DML_TENSOR_DATA_TYPE_FLOAT32 = 1,
    DML_TENSOR_DATA_TYPE_FLOAT16 = 2,  /* IEEE binary16 */
    DML_TENSOR_DATA_TYPE_UINT32  = 3,
    DML_TENSOR_DATA_TYPE_UINT16  = 4,
    DML_TENSOR_DATA_TYPE_UINT8   = 5,
    DML_TENSOR_DATA_TYPE_INT32   = 6,
    DML_TENSOR_DATA_TYPE_INT16   = 7,
    DML_TENSOR_DATA_TYPE_INT8    = 8,
    DML_TENSOR_DATA_TYPE_FLOAT64 = 9,
    DML_TENSOR_DATA_TYPE_UINT64  = 10,
    DML_TENSOR_DATA_TYPE_INT64   = 11,
    DML_TENSOR_DATA_TYPE_UINT4   = 12, /* FL 6.3; two elements per byte, the first in its lower half */
    DML_TENSOR_DATA_TYPE_INT4    = 13  /* FL 6.3; two elements per byte */
} DML_TENSOR_DATA_TYPE;

/* What DML_TENSOR_DESC::Desc points to. */
typedef enum DML_TENSOR_TYPE {
    DML_TENSOR_TYPE_INVALID = 0,
    DML_TENSOR_TYPE_BUFFER  = 1 /* Desc is a DML_BUFFER_TENSOR_DESC */
} DML_TENSOR_TYPE;

typedef enum DML_TENSOR_FLAGS {
    DML_TENSOR_FLAG_NONE         = 0x0,
    DML_TENSOR_FLAG_OWNED_BY_DML = 0x1 /* an input that is constant: bound once, when the kernel is compiled */
} DML_TENSOR_FLAGS;

/* A tensor in a linear buffer.  Element c of the tensor lies sum(c[i] * Strides[i]) elements behind the start of the
 * binding.  The implied minimum size is (1 + sum((Sizes[i] - 1) * Strides[i])) * element size, rounded up to 4 bytes.
 * Sizes and Strides are the tensor's logical dimensions, outermost first; neither they nor the span (the index of
 * the last element + 1) may exceed 2^32 - 1 elements.  No operator broadcasts by itself: strides of 0 do. */
typedef struct DML_BUFFER_TENSOR_DESC {
    DML_TENSOR_DATA_TYPE DataType;
    DML_TENSOR_FLAGS     Flags;
    uint32_t             DimensionCount;         /* 1 to 8; an operator may allow less */
    const uint32_t      *Sizes;                  /* [DimensionCount] in elements, each at least 1 */
    const uint32_t      *Strides;                /* [DimensionCount] in elements; NULL: packed, row-major.  0
                                                    broadcasts, on inputs only: no two coordinates of an output may
                                                    share an element.  Not looked at where the size is 1 */
    uint64_t             TotalTensorSizeInBytes; /* 0: the implied minimum; else at least that, and a multiple of 4.
                                                    Padding inside an output keeps its content */
    uint32_t             GuaranteedBaseOffsetAlignment; /* bytes, 0 or a power of two.  The binding's address must be
                                                    aligned to the larger of this and the element size */
} DML_BUFFER_TENSOR_DESC;

/* Where an operator's tensor is optional, a null pointer to this structure leaves it out. */
typedef struct DML_TENSOR_DESC {
    DML_TENSOR_TYPE Type;
    const void     *Desc; /* DML_BUFFER_TENSOR_DESC */
} DML_TENSOR_DESC;

/* --- operators: values and enumerations ----------------------------------------------------------------------- */
/* One element of any type, told apart by a data type next to it in the descriptor.  FLOAT16 has no member of its
 * own: put the half's 16 bits into UInt16.  Bytes behind the element are not looked at. */
typedef union DML_SCALAR_UNION {
    uint8_t  Bytes[8];
    int8_t   Int8;
    uint8_t  UInt8;
    int16_t  Int16;
    uint16_t UInt16;
    int32_t  Int32;
    uint32_t UInt32;
    int64_t  Int64;
    uint64_t UInt64;
    float    Float32;
    double   Float64;
} DML_SCALAR_UNION;

/* Applied to an operator's input before its function: x becomes Scale * x + Bias. */
typedef struct DML_SCALE_BIAS {
    float Scale;
    float Bias;
} DML_SCALE_BIAS;

/* Elements. */
typedef struct DML_SIZE_2D {
    uint32_t Width;
    uint32_t Height;
} DML_SIZE_2D;

typedef enum DML_REDUCE_FUNCTION {
    DML_REDUCE_FUNCTION_ARGMAX      = 0,
    DML_REDUCE_FUNCTION_ARGMIN      = 1,
    DML_REDUCE_FUNCTION_AVERAGE     = 2,
    DML_REDUCE_FUNCTION_L1          = 3, /* sum of |x| */
    DML_REDUCE_FUNCTION_L2          = 4, /* sqrt(sum of x^2) */
    DML_REDUCE_FUNCTION_LOG_SUM     = 5, /* ln(sum of x) */
    DML_REDUCE_FUNCTION_LOG_SUM_EXP = 6, /* ln(sum of e^x) */
    DML_REDUCE_FUNCTION_MAX         = 7,
    DML_REDUCE_FUNCTION_MIN         = 8,
    DML_REDUCE_FUNCTION_MULTIPLY    = 9,
    DML_REDUCE_FUNCTION_SUM         = 10,
    DML_REDUCE_FUNCTION_SUM_SQUARE  = 11 /* sum of x^2 */
} DML_REDUCE_FUNCTION;

typedef enum DML_MATRIX_TRANSFORM {
    DML_MATRIX_TRANSFORM_NONE      = 0,
    DML_MATRIX_TRANSFORM_TRANSPOSE = 1
} DML_MATRIX_TRANSFORM;

typedef enum DML_CONVOLUTION_MODE {
    DML_CONVOLUTION_MODE_CONVOLUTION       = 0, /* the filter is flipped */
    DML_CONVOLUTION_MODE_CROSS_CORRELATION = 1  /* it is not: what ONNX calls Conv */
} DML_CONVOLUTION_MODE;

typedef enum DML_CONVOLUTION_DIRECTION {
    DML_CONVOLUTION_DIRECTION_FORWARD  = 0,
    DML_CONVOLUTION_DIRECTION_BACKWARD = 1 /* transposed convolution */
} DML_CONVOLUTION_DIRECTION;

typedef enum DML_PADDING_MODE {
    DML_PADDING_MODE_CONSTANT   = 0,
    DML_PADDING_MODE_EDGE       = 1, /* repeats the edge element */
    DML_PADDING_MODE_REFLECTION = 2, /* mirrors, the edge element once */
    DML_PADDING_MODE_SYMMETRIC  = 3, /* FL 3.0; mirrors, the edge element twice */
    DML_PADDING_MODE_WRAP       = 4  /* FL 6.4; periodic */
} DML_PADDING_MODE;

typedef enum DML_INTERPOLATION_MODE {
    DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR = 0,
    DML_INTERPOLATION_MODE_LINEAR           = 1
} DML_INTERPOLATION_MODE;

typedef enum DML_RECURRENT_NETWORK_DIRECTION {
    DML_RECURRENT_NETWORK_DIRECTION_FORWARD       = 0,
    DML_RECURRENT_NETWORK_DIRECTION_BACKWARD      = 1,
    DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL = 2
} DML_RECURRENT_NETWORK_DIRECTION;

typedef enum DML_ROUNDING_MODE {
    DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN = 0,
    DML_ROUNDING_MODE_TOWARD_ZERO            = 1,
    DML_ROUNDING_MODE_TOWARD_INFINITY        = 2 /* to nearest, halves away from zero */
} DML_ROUNDING_MODE;

typedef enum DML_IS_INFINITY_MODE {
    DML_IS_INFINITY_MODE_EITHER   = 0,
    DML_IS_INFINITY_MODE_POSITIVE = 1,
    DML_IS_INFINITY_MODE_NEGATIVE = 2
} DML_IS_INFINITY_MODE;

typedef enum DML_AXIS_DIRECTION {
    DML_AXIS_DIRECTION_INCREASING = 0,
    DML_AXIS_DIRECTION_DECREASING = 1
} DML_AXIS_DIRECTION;

typedef enum DML_DEPTH_SPACE_ORDER {
    DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW = 0,
    DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH = 1
} DML_DEPTH_SPACE_ORDER;

typedef enum DML_RANDOM_GENERATOR_TYPE {
    DML_RANDOM_GENERATOR_TYPE_PHILOX_4X32_10 = 0
} DML_RANDOM_GENERATOR_TYPE;

typedef enum DML_MULTIHEAD_ATTENTION_MASK_TYPE {
    DML_MULTIHEAD_ATTENTION_MASK_TYPE_NONE                                = 0,
    DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_LENGTH                 = 1,
    DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_END_START              = 2,
    DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_QUERY_SEQUENCE_LENGTH_START_END = 3,
    DML_MULTIHEAD_ATTENTION_MASK_TYPE_BOOLEAN                             = 4
} DML_MULTIHEAD_ATTENTION_MASK_TYPE;

typedef enum DML_QUANTIZATION_TYPE {
    DML_QUANTIZATION_TYPE_NONE             = 0,
    DML_QUANTIZATION_TYPE_SCALE            = 1,
    DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT = 2
} DML_QUANTIZATION_TYPE;

/* --- operator types ------------------------------------------------------------------------------------------- */
typedef enum DML_OPERATOR_TYPE {
    DML_OPERATOR_INVALID                                    = 0,
    /* FL 1.0: element-wise */
    DML_OPERATOR_ELEMENT_WISE_IDENTITY                      = 1,
    DML_OPERATOR_ELEMENT_WISE_ABS                           = 2,
    DML_OPERATOR_ELEMENT_WISE_ACOS                          = 3,
    DML_OPERATOR_ELEMENT_WISE_ADD                           = 4,
    DML_OPERATOR_ELEMENT_WISE_ASIN                          = 5,
    DML_OPERATOR_ELEMENT_WISE_ATAN                          = 6,
    DML_OPERATOR_ELEMENT_WISE_CEIL                          = 7,
    DML_OPERATOR_ELEMENT_WISE_CLIP                          = 8,
    DML_OPERATOR_ELEMENT_WISE_COS                           = 9,
    DML_OPERATOR_ELEMENT_WISE_DIVIDE                        = 10,
    DML_OPERATOR_ELEMENT_WISE_EXP                           = 11,
    DML_OPERATOR_ELEMENT_WISE_FLOOR                         = 12,
    DML_OPERATOR_ELEMENT_WISE_LOG                           = 13,
    DML_OPERATOR_ELEMENT_WISE_LOGICAL_AND                   = 14,
    DML_OPERATOR_ELEMENT_WISE_LOGICAL_EQUALS                = 15,
    DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN          = 16,
    DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN             = 17,
    DML_OPERATOR_ELEMENT_WISE_LOGICAL_NOT                   = 18,
    DML_OPERATOR_ELEMENT_WISE_LOGICAL_OR                    = 19,
    DML_OPERATOR_ELEMENT_WISE_LOGICAL_XOR                   = 20,
    DML_OPERATOR_ELEMENT_WISE_MAX                           = 21,
    DML_OPERATOR_ELEMENT_WISE_MEAN                          = 22,
    DML_OPERATOR_ELEMENT_WISE_MIN                           = 23,
    DML_OPERATOR_ELEMENT_WISE_MULTIPLY                      = 24,
    DML_OPERATOR_ELEMENT_WISE_POW                           = 25,
    DML_OPERATOR_ELEMENT_WISE_CONSTANT_POW                  = 26,
    DML_OPERATOR_ELEMENT_WISE_RECIP                         = 27,
    DML_OPERATOR_ELEMENT_WISE_SIN                           = 28,
    DML_OPERATOR_ELEMENT_WISE_SQRT                          = 29,
    DML_OPERATOR_ELEMENT_WISE_SUBTRACT                      = 30,
    DML_OPERATOR_ELEMENT_WISE_TAN                           = 31,
    DML_OPERATOR_ELEMENT_WISE_THRESHOLD                     = 32,
    DML_OPERATOR_ELEMENT_WISE_QUANTIZE_LINEAR               = 33,
    DML_OPERATOR_ELEMENT_WISE_DEQUANTIZE_LINEAR             = 34,
    /* FL 1.0: activations */
    DML_OPERATOR_ACTIVATION_ELU                             = 35,
    DML_OPERATOR_ACTIVATION_HARDMAX                         = 36,
    DML_OPERATOR_ACTIVATION_HARD_SIGMOID                    = 37,
    DML_OPERATOR_ACTIVATION_IDENTITY                        = 38,
    DML_OPERATOR_ACTIVATION_LEAKY_RELU                      = 39,
    DML_OPERATOR_ACTIVATION_LINEAR                          = 40,
    DML_OPERATOR_ACTIVATION_LOG_SOFTMAX                     = 41,
    DML_OPERATOR_ACTIVATION_PARAMETERIZED_RELU              = 42,
    DML_OPERATOR_ACTIVATION_PARAMETRIC_SOFTPLUS             = 43,
    DML_OPERATOR_ACTIVATION_RELU                            = 44,
    DML_OPERATOR_ACTIVATION_SCALED_ELU                      = 45,
    DML_OPERATOR_ACTIVATION_SCALED_TANH                     = 46,
    DML_OPERATOR_ACTIVATION_SIGMOID                         = 47,
    DML_OPERATOR_ACTIVATION_SOFTMAX                         = 48,
    DML_OPERATOR_ACTIVATION_SOFTPLUS                        = 49,
    DML_OPERATOR_ACTIVATION_SOFTSIGN                        = 50,
    DML_OPERATOR_ACTIVATION_TANH                            = 51,
    DML_OPERATOR_ACTIVATION_THRESHOLDED_RELU                = 52,
    /* FL 1.0: convolution, matrix product, reduction, pooling */
    DML_OPERATOR_CONVOLUTION                                = 53,
    DML_OPERATOR_GEMM                                       = 54,
    DML_OPERATOR_REDUCE                                     = 55,
    DML_OPERATOR_AVERAGE_POOLING                            = 56,
    DML_OPERATOR_LP_POOLING                                 = 57,
    DML_OPERATOR_MAX_POOLING                                = 58,
    DML_OPERATOR_ROI_POOLING                                = 59,
    /* FL 1.0: data movement and conversion */
    DML_OPERATOR_SLICE                                      = 60,
    DML_OPERATOR_CAST                                       = 61,
    DML_OPERATOR_SPLIT                                      = 62,
    DML_OPERATOR_JOIN                                       = 63,
    DML_OPERATOR_PADDING                                    = 64,
    DML_OPERATOR_VALUE_SCALE_2D                             = 65,
    DML_OPERATOR_UPSAMPLE_2D                                = 66,
    DML_OPERATOR_GATHER                                     = 67,
    DML_OPERATOR_SPACE_TO_DEPTH                             = 68,
    DML_OPERATOR_DEPTH_TO_SPACE                             = 69,
    DML_OPERATOR_TILE                                       = 70,
    DML_OPERATOR_TOP_K                                      = 71,
    /* FL 1.0: normalisation */
    DML_OPERATOR_BATCH_NORMALIZATION                        = 72,
    DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION                = 73,
    DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION               = 74,
    DML_OPERATOR_LP_NORMALIZATION                           = 75,
    /* FL 1.0: recurrent networks */
    DML_OPERATOR_RNN                                        = 76,
    DML_OPERATOR_LSTM                                       = 77,
    DML_OPERATOR_GRU                                        = 78,
    /* FL 2.0: element-wise */
    DML_OPERATOR_ELEMENT_WISE_SIGN                          = 79,
    DML_OPERATOR_ELEMENT_WISE_IS_NAN                        = 80,
    DML_OPERATOR_ELEMENT_WISE_ERF                           = 81,
    DML_OPERATOR_ELEMENT_WISE_SINH                          = 82,
    DML_OPERATOR_ELEMENT_WISE_COSH                          = 83,
    DML_OPERATOR_ELEMENT_WISE_TANH                          = 84,
    DML_OPERATOR_ELEMENT_WISE_ASINH                         = 85,
    DML_OPERATOR_ELEMENT_WISE_ACOSH                         = 86,
    DML_OPERATOR_ELEMENT_WISE_ATANH                         = 87,
    DML_OPERATOR_ELEMENT_WISE_IF                            = 88,
    DML_OPERATOR_ELEMENT_WISE_ADD1                          = 89,
    /* FL 2.0: activation, pooling, diagonal, scatter, one-hot, resample */
    DML_OPERATOR_ACTIVATION_SHRINK                          = 90,
    DML_OPERATOR_MAX_POOLING1                               = 91,
    DML_OPERATOR_MAX_UNPOOLING                              = 92,
    DML_OPERATOR_DIAGONAL_MATRIX                            = 93,
    DML_OPERATOR_SCATTER_ELEMENTS                           = 94,
    DML_OPERATOR_SCATTER                                    = 94, /* older name of SCATTER_ELEMENTS */
    DML_OPERATOR_ONE_HOT                                    = 95,
    DML_OPERATOR_RESAMPLE                                   = 96,
    /* FL 2.1: element-wise */
    DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_LEFT                = 97,
    DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_RIGHT               = 98,
    DML_OPERATOR_ELEMENT_WISE_ROUND                         = 99,
    DML_OPERATOR_ELEMENT_WISE_IS_INFINITY                   = 100,
    DML_OPERATOR_ELEMENT_WISE_MODULUS_TRUNCATE              = 101,
    DML_OPERATOR_ELEMENT_WISE_MODULUS_FLOOR                 = 102,
    /* FL 2.1: fills and scans */
    DML_OPERATOR_FILL_VALUE_CONSTANT                        = 103,
    DML_OPERATOR_FILL_VALUE_SEQUENCE                        = 104,
    DML_OPERATOR_CUMULATIVE_SUMMATION                       = 105,
    /* FL 2.1: indexing, pooling, data movement, normalisation */
    DML_OPERATOR_REVERSE_SUBSEQUENCES                       = 106,
    DML_OPERATOR_GATHER_ELEMENTS                            = 107,
    DML_OPERATOR_GATHER_ND                                  = 108,
    DML_OPERATOR_SCATTER_ND                                 = 109,
    DML_OPERATOR_MAX_POOLING2                               = 110,
    DML_OPERATOR_SLICE1                                     = 111,
    DML_OPERATOR_TOP_K1                                     = 112,
    DML_OPERATOR_DEPTH_TO_SPACE1                            = 113,
    DML_OPERATOR_SPACE_TO_DEPTH1                            = 114,
    DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1               = 115,
    DML_OPERATOR_RESAMPLE1                                  = 116,
    /* FL 2.1: integer and quantized products */
    DML_OPERATOR_MATRIX_MULTIPLY_INTEGER                    = 117,
    DML_OPERATOR_QUANTIZED_LINEAR_MATRIX_MULTIPLY           = 118,
    DML_OPERATOR_CONVOLUTION_INTEGER                        = 119,
    DML_OPERATOR_QUANTIZED_LINEAR_CONVOLUTION               = 120,
    /* FL 3.0: element-wise */
    DML_OPERATOR_ELEMENT_WISE_BIT_AND                       = 121,
    DML_OPERATOR_ELEMENT_WISE_BIT_OR                        = 122,
    DML_OPERATOR_ELEMENT_WISE_BIT_XOR                       = 123,
    DML_OPERATOR_ELEMENT_WISE_BIT_NOT                       = 124,
    DML_OPERATOR_ELEMENT_WISE_BIT_COUNT                     = 125,
    DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL = 126,
    DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL    = 127,
    /* FL 3.0: activation, gradients, random numbers, indices */
    DML_OPERATOR_ACTIVATION_CELU                            = 128,
    DML_OPERATOR_ACTIVATION_RELU_GRAD                       = 129,
    DML_OPERATOR_AVERAGE_POOLING_GRAD                       = 130,
    DML_OPERATOR_MAX_POOLING_GRAD                           = 131,
    DML_OPERATOR_RANDOM_GENERATOR                           = 132,
    DML_OPERATOR_NONZERO_COORDINATES                        = 133,
    DML_OPERATOR_RESAMPLE_GRAD                              = 134,
    DML_OPERATOR_SLICE_GRAD                                 = 135,
    DML_OPERATOR_ADAM_OPTIMIZER                             = 136,
    DML_OPERATOR_ARGMIN                                     = 137,
    DML_OPERATOR_ARGMAX                                     = 138,
    DML_OPERATOR_ROI_ALIGN                                  = 139,
    DML_OPERATOR_GATHER_ND1                                 = 140,
    /* FL 3.1 */
    DML_OPERATOR_ELEMENT_WISE_ATAN_YX                       = 141,
    DML_OPERATOR_ELEMENT_WISE_CLIP_GRAD                     = 142,
    DML_OPERATOR_ELEMENT_WISE_DIFFERENCE_SQUARE             = 143,
    DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION_GRAD          = 144,
    DML_OPERATOR_CUMULATIVE_PRODUCT                         = 145,
    DML_OPERATOR_BATCH_NORMALIZATION_GRAD                   = 146,
    /* FL 4.0 */
    DML_OPERATOR_ELEMENT_WISE_QUANTIZED_LINEAR_ADD          = 147,
    DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR                    = 148,
    DML_OPERATOR_ROI_ALIGN1                                 = 149,
    /* FL 4.1: training */
    DML_OPERATOR_ROI_ALIGN_GRAD                             = 150,
    DML_OPERATOR_BATCH_NORMALIZATION_TRAINING               = 151,
    DML_OPERATOR_BATCH_NORMALIZATION_TRAINING_GRAD          = 152,
    /* FL 5.0 */
    DML_OPERATOR_ELEMENT_WISE_CLIP1                         = 153,
    DML_OPERATOR_ELEMENT_WISE_CLIP_GRAD1                    = 154,
    DML_OPERATOR_PADDING1                                   = 155,
    DML_OPERATOR_ELEMENT_WISE_NEGATE                        = 156,
    /* FL 5.1: activations, resample, diagonal */
    DML_OPERATOR_ACTIVATION_GELU                            = 157,
    DML_OPERATOR_ACTIVATION_SOFTMAX1                        = 158,
    DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1                    = 159,
    DML_OPERATOR_ACTIVATION_HARDMAX1                        = 160,
    DML_OPERATOR_RESAMPLE2                                  = 161,
    DML_OPERATOR_RESAMPLE_GRAD1                             = 162,
    DML_OPERATOR_DIAGONAL_MATRIX1                           = 163,
    /* FL 6.1 */
    DML_OPERATOR_MULTIHEAD_ATTENTION                        = 164,
    /* FL 6.2 */
    DML_OPERATOR_LP_POOLING1                                = 165,
    DML_OPERATOR_AVERAGE_POOLING1                           = 166,
    DML_OPERATOR_ACTIVATION_SWISH                           = 167,
    DML_OPERATOR_ACTIVATION_HARD_SWISH                      = 168,
    DML_OPERATOR_QUANTIZED_LINEAR_AVERAGE_POOLING           = 169,
    DML_OPERATOR_MATRIX_MULTIPLY_INTEGER_TO_FLOAT           = 170,
    /* FL 6.3 */
    DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION2               = 171,
    DML_OPERATOR_MULTIHEAD_ATTENTION1                       = 172,
    DML_OPERATOR_QUANTIZE                                   = 173,
    DML_OPERATOR_DEQUANTIZE                                 = 174,
    /* FL 6.4 */
    DML_OPERATOR_RESAMPLE3                                  = 175,
    DML_OPERATOR_FOLD                                       = 176,
    DML_OPERATOR_UNFOLD                                     = 177
} DML_OPERATOR_TYPE;

/* An operator: Desc points to the structure that belongs to Type, DML_<TYPE>_OPERATOR_DESC below. */
typedef struct DML_OPERATOR_DESC {
    DML_OPERATOR_TYPE Type;
    const void       *Desc;
} DML_OPERATOR_DESC;

/* The descriptors, in the order of their types.  The line above each gives its number, the feature level that added
 * it, and its formula: x is InputTensor (dx and dy its gradient and the incoming one), a and b are ATensor and
 * BTensor, y the output; i and j are row and column, the last two coordinates; act is FusedActivation, the identity
 * where it is NULL (its own tensors are NULL).  Where ScaleBias is given, Scale * x + Bias takes the place of x. */

/* --- descriptors, FL 1.0: element-wise ------------------------------------------------------------------------ */

/* 1, FL 1.0: y = x; with strides also the copy, reshape, broadcast and transpose primitive */
typedef struct DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC;

/* 2, FL 1.0: y = |x| */
typedef struct DML_ELEMENT_WISE_ABS_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_ABS_OPERATOR_DESC;

/* 3, FL 1.0: y = acos(x) */
typedef struct DML_ELEMENT_WISE_ACOS_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_ACOS_OPERATOR_DESC;

/* 4, FL 1.0: y = a + b */
typedef struct DML_ELEMENT_WISE_ADD_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_ADD_OPERATOR_DESC;

/* 5, FL 1.0: y = asin(x) */
typedef struct DML_ELEMENT_WISE_ASIN_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_ASIN_OPERATOR_DESC;

/* 6, FL 1.0: y = atan(x) */
typedef struct DML_ELEMENT_WISE_ATAN_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_ATAN_OPERATOR_DESC;

/* 7, FL 1.0: y = ceil(x) */
typedef struct DML_ELEMENT_WISE_CEIL_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_CEIL_OPERATOR_DESC;

/* 8, FL 1.0: y = min(max(x, Min), Max), float bounds for every data type */
typedef struct DML_ELEMENT_WISE_CLIP_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
    float                  Min;
    float                  Max;
} DML_ELEMENT_WISE_CLIP_OPERATOR_DESC;

/* 9, FL 1.0: y = cos(x) */
typedef struct DML_ELEMENT_WISE_COS_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_COS_OPERATOR_DESC;

/* 10, FL 1.0: y = a / b; integers truncate toward zero */
typedef struct DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC;

/* 11, FL 1.0: y = e^x */
typedef struct DML_ELEMENT_WISE_EXP_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_EXP_OPERATOR_DESC;

/* 12, FL 1.0: y = floor(x) */
typedef struct DML_ELEMENT_WISE_FLOOR_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_FLOOR_OPERATOR_DESC;

/* 13, FL 1.0: y = ln(x) */
typedef struct DML_ELEMENT_WISE_LOG_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_LOG_OPERATOR_DESC;

/* 14, FL 1.0: y = a && b; 0 or 1 */
typedef struct DML_ELEMENT_WISE_LOGICAL_AND_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_LOGICAL_AND_OPERATOR_DESC;

/* 15, FL 1.0: y = a == b; 0 or 1 in UINT8 or UINT32 */
typedef struct DML_ELEMENT_WISE_LOGICAL_EQUALS_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_LOGICAL_EQUALS_OPERATOR_DESC;

/* 16, FL 1.0: y = a > b; 0 or 1 in UINT8 or UINT32 */
typedef struct DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OPERATOR_DESC;

/* 17, FL 1.0: y = a < b; 0 or 1 in UINT8 or UINT32 */
typedef struct DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OPERATOR_DESC;

/* 18, FL 1.0: y = !x; 0 or 1 */
typedef struct DML_ELEMENT_WISE_LOGICAL_NOT_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_LOGICAL_NOT_OPERATOR_DESC;

/* 19, FL 1.0: y = a || b; 0 or 1 */
typedef struct DML_ELEMENT_WISE_LOGICAL_OR_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_LOGICAL_OR_OPERATOR_DESC;

/* 20, FL 1.0: y = !a != !b; 0 or 1 */
typedef struct DML_ELEMENT_WISE_LOGICAL_XOR_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_LOGICAL_XOR_OPERATOR_DESC;

/* 21, FL 1.0: y = max(a, b) */
typedef struct DML_ELEMENT_WISE_MAX_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_MAX_OPERATOR_DESC;

/* 22, FL 1.0: y = (a + b) / 2 */
typedef struct DML_ELEMENT_WISE_MEAN_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_MEAN_OPERATOR_DESC;

/* 23, FL 1.0: y = min(a, b) */
typedef struct DML_ELEMENT_WISE_MIN_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_MIN_OPERATOR_DESC;

/* 24, FL 1.0: y = a * b */
typedef struct DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC;

/* 25, FL 1.0: y = x^e, e taken from ExponentTensor */
typedef struct DML_ELEMENT_WISE_POW_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *ExponentTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_POW_OPERATOR_DESC;

/* 26, FL 1.0: y = x^Exponent */
typedef struct DML_ELEMENT_WISE_CONSTANT_POW_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
    float                  Exponent;
} DML_ELEMENT_WISE_CONSTANT_POW_OPERATOR_DESC;

/* 27, FL 1.0: y = 1 / x */
typedef struct DML_ELEMENT_WISE_RECIP_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_RECIP_OPERATOR_DESC;

/* 28, FL 1.0: y = sin(x) */
typedef struct DML_ELEMENT_WISE_SIN_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_SIN_OPERATOR_DESC;

/* 29, FL 1.0: y = sqrt(x) */
typedef struct DML_ELEMENT_WISE_SQRT_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_SQRT_OPERATOR_DESC;

/* 30, FL 1.0: y = a - b */
typedef struct DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC;

/* 31, FL 1.0: y = tan(x) */
typedef struct DML_ELEMENT_WISE_TAN_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_TAN_OPERATOR_DESC;

/* 32, FL 1.0: y = max(x, Min) */
typedef struct DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
    float                  Min;
} DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC;

/* 33, FL 1.0: y = clamp(round(x / scale) + zero point); ZeroPointTensor is optional from 6.2 */
typedef struct DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *ScaleTensor;
    const DML_TENSOR_DESC *ZeroPointTensor; /* optional */
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC;

/* 34, FL 1.0: y = (x - zero point) * scale; ZeroPointTensor is optional from 6.2 */
typedef struct DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *ScaleTensor;
    const DML_TENSOR_DESC *ZeroPointTensor; /* optional */
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC;

/* --- descriptors, FL 1.0: activations ------------------------------------------------------------------------- */

/* 35, FL 1.0: y = x >= 0 ? x : Alpha * (e^x - 1) */
typedef struct DML_ACTIVATION_ELU_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Alpha;
} DML_ACTIVATION_ELU_OPERATOR_DESC;

/* 36, FL 1.0: y = 1 at the first maximum of the last dimension, else 0 */
typedef struct DML_ACTIVATION_HARDMAX_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ACTIVATION_HARDMAX_OPERATOR_DESC;

/* 37, FL 1.0: y = max(0, min(Alpha * x + Beta, 1)) */
typedef struct DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Alpha;
    float                  Beta;
} DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC;

/* 38, FL 1.0: y = x */
typedef struct DML_ACTIVATION_IDENTITY_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ACTIVATION_IDENTITY_OPERATOR_DESC;

/* 39, FL 1.0: y = x >= 0 ? x : Alpha * x */
typedef struct DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Alpha;
} DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC;

/* 40, FL 1.0: y = Alpha * x + Beta */
typedef struct DML_ACTIVATION_LINEAR_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Alpha;
    float                  Beta;
} DML_ACTIVATION_LINEAR_OPERATOR_DESC;

/* 41, FL 1.0: y = ln(softmax(x)) over the last dimension */
typedef struct DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC;

/* 42, FL 1.0: y = x >= 0 ? x : slope * x, slope taken from SlopeTensor */
typedef struct DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *SlopeTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC;

/* 43, FL 1.0: y = Alpha * ln(1 + e^(Beta * x)) */
typedef struct DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Alpha;
    float                  Beta;
} DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC;

/* 44, FL 1.0: y = max(0, x) */
typedef struct DML_ACTIVATION_RELU_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ACTIVATION_RELU_OPERATOR_DESC;

/* 45, FL 1.0: y = x > 0 ? Gamma * x : Gamma * (Alpha * e^x - Alpha) */
typedef struct DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Alpha;
    float                  Gamma;
} DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC;

/* 46, FL 1.0: y = Alpha * tanh(Beta * x) */
typedef struct DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Alpha;
    float                  Beta;
} DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC;

/* 47, FL 1.0: y = 1 / (1 + e^-x) */
typedef struct DML_ACTIVATION_SIGMOID_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ACTIVATION_SIGMOID_OPERATOR_DESC;

/* 48, FL 1.0: y = e^x / sum of e^x over the last dimension */
typedef struct DML_ACTIVATION_SOFTMAX_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ACTIVATION_SOFTMAX_OPERATOR_DESC;

/* 49, FL 1.0: y = ln(1 + e^(Steepness * x)) / Steepness; Steepness < 1 from 6.4 */
typedef struct DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Steepness;
} DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC;

/* 50, FL 1.0: y = x / (1 + |x|) */
typedef struct DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC;

/* 51, FL 1.0: y = tanh(x) */
typedef struct DML_ACTIVATION_TANH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ACTIVATION_TANH_OPERATOR_DESC;

/* 52, FL 1.0: y = x > Alpha ? x : 0 */
typedef struct DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Alpha;
} DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC;

/* --- descriptors, FL 1.0: convolution, matrix product, reduction, pooling ------------------------------------- */

/* 53, FL 1.0: convolution, transposed where Direction is BACKWARD; groups, dilations, fused activation */
typedef struct DML_CONVOLUTION_OPERATOR_DESC {
    const DML_TENSOR_DESC    *InputTensor;
    const DML_TENSOR_DESC    *FilterTensor;
    const DML_TENSOR_DESC    *BiasTensor;      /* optional */
    const DML_TENSOR_DESC    *OutputTensor;
    DML_CONVOLUTION_MODE      Mode;
    DML_CONVOLUTION_DIRECTION Direction;
    uint32_t                  DimensionCount;
    const uint32_t           *Strides;         /* [DimensionCount] */
    const uint32_t           *Dilations;       /* [DimensionCount] */
    const uint32_t           *StartPadding;    /* [DimensionCount] */
    const uint32_t           *EndPadding;      /* [DimensionCount] */
    const uint32_t           *OutputPadding;   /* [DimensionCount] */
    uint32_t                  GroupCount;
    const DML_OPERATOR_DESC  *FusedActivation; /* optional */
} DML_CONVOLUTION_OPERATOR_DESC;

/* 54, FL 1.0: y = act(Alpha * op(A) * op(B) + Beta * C); leading dimensions are batch */
typedef struct DML_GEMM_OPERATOR_DESC {
    const DML_TENSOR_DESC   *ATensor;
    const DML_TENSOR_DESC   *BTensor;
    const DML_TENSOR_DESC   *CTensor;         /* optional */
    const DML_TENSOR_DESC   *OutputTensor;
    DML_MATRIX_TRANSFORM     TransA;
    DML_MATRIX_TRANSFORM     TransB;
    float                    Alpha;
    float                    Beta;
    const DML_OPERATOR_DESC *FusedActivation; /* optional */
} DML_GEMM_OPERATOR_DESC;

/* 55, FL 1.0: Function over Axes; the rank is kept, reduced dimensions become 1 */
typedef struct DML_REDUCE_OPERATOR_DESC {
    DML_REDUCE_FUNCTION    Function;
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               AxisCount;
    const uint32_t        *Axes; /* [AxisCount] */
} DML_REDUCE_OPERATOR_DESC;

/* 56, FL 1.0: mean over a sliding window; IncludePadding counts the padding as elements */
typedef struct DML_AVERAGE_POOLING_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Strides;        /* [DimensionCount] */
    const uint32_t        *WindowSize;     /* [DimensionCount] */
    const uint32_t        *StartPadding;   /* [DimensionCount] */
    const uint32_t        *EndPadding;     /* [DimensionCount] */
    int32_t                IncludePadding; /* BOOL */
} DML_AVERAGE_POOLING_OPERATOR_DESC;

/* 57, FL 1.0: (sum of |x|^P)^(1/P) over a sliding window */
typedef struct DML_LP_POOLING_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Strides;      /* [DimensionCount] */
    const uint32_t        *WindowSize;   /* [DimensionCount] */
    const uint32_t        *StartPadding; /* [DimensionCount] */
    const uint32_t        *EndPadding;   /* [DimensionCount] */
    uint32_t               P;
} DML_LP_POOLING_OPERATOR_DESC;

/* 58, FL 1.0: maximum over a sliding window */
typedef struct DML_MAX_POOLING_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Strides;      /* [DimensionCount] */
    const uint32_t        *WindowSize;   /* [DimensionCount] */
    const uint32_t        *StartPadding; /* [DimensionCount] */
    const uint32_t        *EndPadding;   /* [DimensionCount] */
} DML_MAX_POOLING_OPERATOR_DESC;

/* 59, FL 1.0: maximum over each bin of regions scaled by SpatialScale and cut into PooledSize bins */
typedef struct DML_ROI_POOLING_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *ROITensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  SpatialScale;
    DML_SIZE_2D            PooledSize;
} DML_ROI_POOLING_OPERATOR_DESC;

/* --- descriptors, FL 1.0: data movement and conversion -------------------------------------------------------- */

/* 60, FL 1.0: y = the strided window of x at Offsets; Sizes are the output's, Strides >= 1 */
typedef struct DML_SLICE_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Offsets; /* [DimensionCount] */
    const uint32_t        *Sizes;   /* [DimensionCount] */
    const uint32_t        *Strides; /* [DimensionCount] */
} DML_SLICE_OPERATOR_DESC;

/* 61, FL 1.0: y = x converted to the output's data type */
typedef struct DML_CAST_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_CAST_OPERATOR_DESC;

/* 62, FL 1.0: the slices of x along Axis, one an output */
typedef struct DML_SPLIT_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    uint32_t               OutputCount;
    const DML_TENSOR_DESC *OutputTensors; /* [OutputCount] */
    uint32_t               Axis;
} DML_SPLIT_OPERATOR_DESC;

/* 63, FL 1.0: the inputs one after another along Axis */
typedef struct DML_JOIN_OPERATOR_DESC {
    uint32_t               InputCount;
    const DML_TENSOR_DESC *InputTensors; /* [InputCount] */
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               Axis;
} DML_JOIN_OPERATOR_DESC;

/* 64, FL 1.0: x with a border by PaddingMode; float PaddingValue for every data type */
typedef struct DML_PADDING_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_PADDING_MODE       PaddingMode;
    float                  PaddingValue;
    uint32_t               DimensionCount;
    const uint32_t        *StartPadding; /* [DimensionCount] */
    const uint32_t        *EndPadding;   /* [DimensionCount] */
} DML_PADDING_OPERATOR_DESC;

/* 65, FL 1.0: y = x * Scale + Bias[channel] */
typedef struct DML_VALUE_SCALE_2D_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Scale;
    uint32_t               ChannelCount;
    const float           *Bias; /* [ChannelCount] */
} DML_VALUE_SCALE_2D_OPERATOR_DESC;

/* 66, FL 1.0: x enlarged by whole factors ScaleSize in height and width */
typedef struct DML_UPSAMPLE_2D_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_SIZE_2D            ScaleSize;
    DML_INTERPOLATION_MODE InterpolationMode;
} DML_UPSAMPLE_2D_OPERATOR_DESC;

/* 67, FL 1.0: y[.., i.., ..] = x[.., indices[i..], ..] along Axis; the last IndexDimensions of the indices count */
typedef struct DML_GATHER_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *IndicesTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               Axis;
    uint32_t               IndexDimensions;
} DML_GATHER_OPERATOR_DESC;

/* 68, FL 1.0: blocks of BlockSize x BlockSize pixels become channels */
typedef struct DML_SPACE_TO_DEPTH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               BlockSize;
} DML_SPACE_TO_DEPTH_OPERATOR_DESC;

/* 69, FL 1.0: channels become blocks of BlockSize x BlockSize pixels */
typedef struct DML_DEPTH_TO_SPACE_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               BlockSize;
} DML_DEPTH_TO_SPACE_OPERATOR_DESC;

/* 70, FL 1.0: x repeated Repeats[i] times along dimension i */
typedef struct DML_TILE_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               RepeatsCount;
    const uint32_t        *Repeats; /* [RepeatsCount] */
} DML_TILE_OPERATOR_DESC;

/* 71, FL 1.0: the K largest values along Axis with their UINT32 indices */
typedef struct DML_TOP_K_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputValueTensor;
    const DML_TENSOR_DESC *OutputIndexTensor;
    uint32_t               Axis;
    uint32_t               K;
} DML_TOP_K_OPERATOR_DESC;

/* --- descriptors, FL 1.0: normalisation ----------------------------------------------------------------------- */

/* 72, FL 1.0: y = act(scale * (x - mean) / sqrt(variance + Epsilon) + bias) */
typedef struct DML_BATCH_NORMALIZATION_OPERATOR_DESC {
    const DML_TENSOR_DESC   *InputTensor;
    const DML_TENSOR_DESC   *MeanTensor;
    const DML_TENSOR_DESC   *VarianceTensor;
    const DML_TENSOR_DESC   *ScaleTensor;
    const DML_TENSOR_DESC   *BiasTensor;
    const DML_TENSOR_DESC   *OutputTensor;
    int32_t                  Spatial;         /* BOOL */
    float                    Epsilon;
    const DML_OPERATOR_DESC *FusedActivation; /* optional */
} DML_BATCH_NORMALIZATION_OPERATOR_DESC;

/* 73, FL 1.0: 4-D NCHW: normalises by mean and variance over CHW (CrossChannel) or HW */
typedef struct DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC {
    const DML_TENSOR_DESC   *InputTensor;
    const DML_TENSOR_DESC   *ScaleTensor;       /* optional */
    const DML_TENSOR_DESC   *BiasTensor;        /* optional */
    const DML_TENSOR_DESC   *OutputTensor;
    int32_t                  CrossChannel;      /* BOOL */
    int32_t                  NormalizeVariance; /* BOOL */
    float                    Epsilon;
    const DML_OPERATOR_DESC *FusedActivation;   /* optional */
} DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC;

/* 74, FL 1.0: y = x / (Bias + Alpha * mean of x^2 over LocalSize neighbours)^Beta */
typedef struct DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    int32_t                CrossChannel; /* BOOL */
    uint32_t               LocalSize;
    float                  Alpha;
    float                  Beta;
    float                  Bias;
} DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC;

/* 75, FL 1.0: y = x / the P-norm of x along Axis */
typedef struct DML_LP_NORMALIZATION_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               Axis;
    float                  Epsilon;
    uint32_t               P;
} DML_LP_NORMALIZATION_OPERATOR_DESC;

/* --- descriptors, FL 1.0: recurrent networks ------------------------------------------------------------------ */

/* 76, FL 1.0: simple recurrent network, one activation a direction */
typedef struct DML_RNN_OPERATOR_DESC {
    const DML_TENSOR_DESC          *InputTensor;
    const DML_TENSOR_DESC          *WeightTensor;
    const DML_TENSOR_DESC          *RecurrenceTensor;
    const DML_TENSOR_DESC          *BiasTensor;            /* optional */
    const DML_TENSOR_DESC          *HiddenInitTensor;      /* optional */
    const DML_TENSOR_DESC          *SequenceLengthsTensor; /* optional */
    const DML_TENSOR_DESC          *OutputSequenceTensor;  /* optional */
    const DML_TENSOR_DESC          *OutputSingleTensor;    /* optional */
    uint32_t                        ActivationDescCount;
    const DML_OPERATOR_DESC        *ActivationDescs;       /* [ActivationDescCount] */
    DML_RECURRENT_NETWORK_DIRECTION Direction;
} DML_RNN_OPERATOR_DESC;

/* 77, FL 1.0: long short-term memory network, three activations a direction */
typedef struct DML_LSTM_OPERATOR_DESC {
    const DML_TENSOR_DESC          *InputTensor;
    const DML_TENSOR_DESC          *WeightTensor;
    const DML_TENSOR_DESC          *RecurrenceTensor;
    const DML_TENSOR_DESC          *BiasTensor;             /* optional */
    const DML_TENSOR_DESC          *HiddenInitTensor;       /* optional */
    const DML_TENSOR_DESC          *CellMemInitTensor;      /* optional */
    const DML_TENSOR_DESC          *SequenceLengthsTensor;  /* optional */
    const DML_TENSOR_DESC          *PeepholeTensor;         /* optional */
    const DML_TENSOR_DESC          *OutputSequenceTensor;   /* optional */
    const DML_TENSOR_DESC          *OutputSingleTensor;     /* optional */
    const DML_TENSOR_DESC          *OutputCellSingleTensor; /* optional */
    uint32_t                        ActivationDescCount;
    const DML_OPERATOR_DESC        *ActivationDescs;        /* [ActivationDescCount] */
    DML_RECURRENT_NETWORK_DIRECTION Direction;
    float                           ClipThreshold;
    int32_t                         UseClipThreshold;       /* BOOL */
    int32_t                         CoupleInputForget;      /* BOOL */
} DML_LSTM_OPERATOR_DESC;

/* 78, FL 1.0: gated recurrent unit network, two activations a direction */
typedef struct DML_GRU_OPERATOR_DESC {
    const DML_TENSOR_DESC          *InputTensor;
    const DML_TENSOR_DESC          *WeightTensor;
    const DML_TENSOR_DESC          *RecurrenceTensor;
    const DML_TENSOR_DESC          *BiasTensor;            /* optional */
    const DML_TENSOR_DESC          *HiddenInitTensor;      /* optional */
    const DML_TENSOR_DESC          *SequenceLengthsTensor; /* optional */
    const DML_TENSOR_DESC          *OutputSequenceTensor;  /* optional */
    const DML_TENSOR_DESC          *OutputSingleTensor;    /* optional */
    uint32_t                        ActivationDescCount;
    const DML_OPERATOR_DESC        *ActivationDescs;       /* [ActivationDescCount] */
    DML_RECURRENT_NETWORK_DIRECTION Direction;
    int32_t                         LinearBeforeReset;     /* BOOL */
} DML_GRU_OPERATOR_DESC;

/* --- descriptors, FL 2.0: element-wise ------------------------------------------------------------------------ */

/* 79, FL 2.0: y = -1, 0 or +1 */
typedef struct DML_ELEMENT_WISE_SIGN_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_SIGN_OPERATOR_DESC;

/* 80, FL 2.0: y = x is NaN; 0 or 1 in UINT8 */
typedef struct DML_ELEMENT_WISE_IS_NAN_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_IS_NAN_OPERATOR_DESC;

/* 81, FL 2.0: y = erf(x) */
typedef struct DML_ELEMENT_WISE_ERF_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_ERF_OPERATOR_DESC;

/* 82, FL 2.0: y = sinh(x) */
typedef struct DML_ELEMENT_WISE_SINH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_SINH_OPERATOR_DESC;

/* 83, FL 2.0: y = cosh(x) */
typedef struct DML_ELEMENT_WISE_COSH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_COSH_OPERATOR_DESC;

/* 84, FL 2.0: y = tanh(x) */
typedef struct DML_ELEMENT_WISE_TANH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_TANH_OPERATOR_DESC;

/* 85, FL 2.0: y = asinh(x) */
typedef struct DML_ELEMENT_WISE_ASINH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_ASINH_OPERATOR_DESC;

/* 86, FL 2.0: y = acosh(x) */
typedef struct DML_ELEMENT_WISE_ACOSH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_ACOSH_OPERATOR_DESC;

/* 87, FL 2.0: y = atanh(x) */
typedef struct DML_ELEMENT_WISE_ATANH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
} DML_ELEMENT_WISE_ATANH_OPERATOR_DESC;

/* 88, FL 2.0: y = condition ? a : b; the condition is UINT8 */
typedef struct DML_ELEMENT_WISE_IF_OPERATOR_DESC {
    const DML_TENSOR_DESC *ConditionTensor;
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_IF_OPERATOR_DESC;

/* 89, FL 2.0: y = act(a + b); an activation for floats only */
typedef struct DML_ELEMENT_WISE_ADD1_OPERATOR_DESC {
    const DML_TENSOR_DESC   *ATensor;
    const DML_TENSOR_DESC   *BTensor;
    const DML_TENSOR_DESC   *OutputTensor;
    const DML_OPERATOR_DESC *FusedActivation; /* optional */
} DML_ELEMENT_WISE_ADD1_OPERATOR_DESC;

/* --- descriptors, FL 2.0: activation, pooling, diagonal, scatter, one-hot, resample --------------------------- */

/* 90, FL 2.0: y = x > Threshold ? x - Bias : x < -Threshold ? x + Bias : 0 */
typedef struct DML_ACTIVATION_SHRINK_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Bias;
    float                  Threshold;
} DML_ACTIVATION_SHRINK_OPERATOR_DESC;

/* 91, FL 2.0: MAX_POOLING with the indices of the maxima */
typedef struct DML_MAX_POOLING1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_TENSOR_DESC *OutputIndicesTensor; /* optional */
    uint32_t               DimensionCount;
    const uint32_t        *Strides;             /* [DimensionCount] */
    const uint32_t        *WindowSize;          /* [DimensionCount] */
    const uint32_t        *StartPadding;        /* [DimensionCount] */
    const uint32_t        *EndPadding;          /* [DimensionCount] */
} DML_MAX_POOLING1_OPERATOR_DESC;

/* 92, FL 2.0: y = x put back at the indices of MAX_POOLING1, 0 elsewhere */
typedef struct DML_MAX_UNPOOLING_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *IndicesTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_MAX_UNPOOLING_OPERATOR_DESC;

/* 93, FL 2.0: y[.., i, j] = i + Offset == j ? Value : 0 */
typedef struct DML_DIAGONAL_MATRIX_OPERATOR_DESC {
    const DML_TENSOR_DESC *OutputTensor;
    int32_t                Offset;
    float                  Value;
} DML_DIAGONAL_MATRIX_OPERATOR_DESC;

/* 94, FL 2.0: y = x, then overwritten by the updates along Axis; duplicate targets: any of them */
typedef struct DML_SCATTER_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *IndicesTensor;
    const DML_TENSOR_DESC *UpdatesTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               Axis;
} DML_SCATTER_OPERATOR_DESC;

typedef DML_SCATTER_OPERATOR_DESC DML_SCATTER_ELEMENTS_OPERATOR_DESC;

/* 95, FL 2.0: y = the index matches the coordinate on Axis ? Values[1] : Values[0] */
typedef struct DML_ONE_HOT_OPERATOR_DESC {
    const DML_TENSOR_DESC *IndicesTensor;
    const DML_TENSOR_DESC *ValuesTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               Axis;
} DML_ONE_HOT_OPERATOR_DESC;

/* 96, FL 2.0: x scaled by Scales, nearest or linear */
typedef struct DML_RESAMPLE_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_INTERPOLATION_MODE InterpolationMode;
    uint32_t               ScaleCount;
    const float           *Scales; /* [ScaleCount] */
} DML_RESAMPLE_OPERATOR_DESC;

/* --- descriptors, FL 2.1: element-wise ------------------------------------------------------------------------ */

/* 97, FL 2.1: y = a << b */
typedef struct DML_ELEMENT_WISE_BIT_SHIFT_LEFT_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_BIT_SHIFT_LEFT_OPERATOR_DESC;

/* 98, FL 2.1: y = a >> b, logical */
typedef struct DML_ELEMENT_WISE_BIT_SHIFT_RIGHT_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_BIT_SHIFT_RIGHT_OPERATOR_DESC;

/* 99, FL 2.1: y = x rounded: halves to even, toward zero, or halves away from zero (TOWARD_INFINITY) */
typedef struct DML_ELEMENT_WISE_ROUND_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_ROUNDING_MODE      RoundingMode;
} DML_ELEMENT_WISE_ROUND_OPERATOR_DESC;

/* 100, FL 2.1: y = x is infinite, of the sign InfinityMode wants; 0 or 1 in UINT8 */
typedef struct DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_IS_INFINITY_MODE   InfinityMode;
} DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC;

/* 101, FL 2.1: y = a - b * trunc(a / b): the sign of a, as in C */
typedef struct DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC;

/* 102, FL 2.1: y = a - b * floor(a / b): the sign of b, as in Python */
typedef struct DML_ELEMENT_WISE_MODULUS_FLOOR_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_MODULUS_FLOOR_OPERATOR_DESC;

/* --- descriptors, FL 2.1: fills and scans --------------------------------------------------------------------- */

/* 103, FL 2.1: y = Value */
typedef struct DML_FILL_VALUE_CONSTANT_OPERATOR_DESC {
    const DML_TENSOR_DESC *OutputTensor;
    DML_TENSOR_DATA_TYPE   ValueDataType;
    DML_SCALAR_UNION       Value;
} DML_FILL_VALUE_CONSTANT_OPERATOR_DESC;

/* 104, FL 2.1: y[e] = ValueStart + e * ValueDelta, e = row-major logical index */
typedef struct DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC {
    const DML_TENSOR_DESC *OutputTensor;
    DML_TENSOR_DATA_TYPE   ValueDataType;
    DML_SCALAR_UNION       ValueStart;
    DML_SCALAR_UNION       ValueDelta;
} DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC;

/* 105, FL 2.1: running sum along Axis; HasExclusiveSum leaves out the element itself */
typedef struct DML_CUMULATIVE_SUMMATION_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               Axis;
    DML_AXIS_DIRECTION     AxisDirection;
    int32_t                HasExclusiveSum; /* BOOL */
} DML_CUMULATIVE_SUMMATION_OPERATOR_DESC;

/* --- descriptors, FL 2.1: indexing, pooling, data movement, normalisation ------------------------------------- */

/* 106, FL 2.1: the first length elements along Axis reversed, the rest copied */
typedef struct DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *SequenceLengthsTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               Axis;
} DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC;

/* 107, FL 2.1: y[c] = x[c with its coordinate on Axis replaced by indices[c]] */
typedef struct DML_GATHER_ELEMENTS_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *IndicesTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               Axis;
} DML_GATHER_ELEMENTS_OPERATOR_DESC;

/* 108, FL 2.1: y[i.., rest..] = x[indices[i..], rest..], whole coordinates in the last dimension of the indices */
typedef struct DML_GATHER_ND_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *IndicesTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               InputDimensionCount;
    uint32_t               IndicesDimensionCount;
} DML_GATHER_ND_OPERATOR_DESC;

/* 109, FL 2.1: y = x, then overwritten by the updates at whole coordinates */
typedef struct DML_SCATTER_ND_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *IndicesTensor;
    const DML_TENSOR_DESC *UpdatesTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               InputDimensionCount;
    uint32_t               IndicesDimensionCount;
} DML_SCATTER_ND_OPERATOR_DESC;

/* 110, FL 2.1: MAX_POOLING1 with dilations */
typedef struct DML_MAX_POOLING2_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_TENSOR_DESC *OutputIndicesTensor; /* optional */
    uint32_t               DimensionCount;
    const uint32_t        *Strides;             /* [DimensionCount] */
    const uint32_t        *WindowSize;          /* [DimensionCount] */
    const uint32_t        *StartPadding;        /* [DimensionCount] */
    const uint32_t        *EndPadding;          /* [DimensionCount] */
    const uint32_t        *Dilations;           /* [DimensionCount] */
} DML_MAX_POOLING2_OPERATOR_DESC;

/* 111, FL 2.1: strided window of x; sizes are the window's, a negative stride starts at the window's end */
typedef struct DML_SLICE1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *InputWindowOffsets; /* [DimensionCount] */
    const uint32_t        *InputWindowSizes;   /* [DimensionCount] */
    const int32_t         *InputWindowStrides; /* [DimensionCount] */
} DML_SLICE1_OPERATOR_DESC;

/* 112, FL 2.1: the K largest (DECREASING) or smallest (INCREASING) values along Axis with their UINT32 indices */
typedef struct DML_TOP_K1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputValueTensor;
    const DML_TENSOR_DESC *OutputIndexTensor;
    uint32_t               Axis;
    uint32_t               K;
    DML_AXIS_DIRECTION     AxisDirection;
} DML_TOP_K1_OPERATOR_DESC;

/* 113, FL 2.1: DEPTH_TO_SPACE with a choice of channel order */
typedef struct DML_DEPTH_TO_SPACE1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               BlockSize;
    DML_DEPTH_SPACE_ORDER  Order;
} DML_DEPTH_TO_SPACE1_OPERATOR_DESC;

/* 114, FL 2.1: SPACE_TO_DEPTH with a choice of channel order */
typedef struct DML_SPACE_TO_DEPTH1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               BlockSize;
    DML_DEPTH_SPACE_ORDER  Order;
} DML_SPACE_TO_DEPTH1_OPERATOR_DESC;

/* 115, FL 2.1: y = act(scale * (x - mean) / sqrt(variance + Epsilon) + bias), mean and variance over Axes */
typedef struct DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC {
    const DML_TENSOR_DESC   *InputTensor;
    const DML_TENSOR_DESC   *ScaleTensor;       /* optional */
    const DML_TENSOR_DESC   *BiasTensor;        /* optional */
    const DML_TENSOR_DESC   *OutputTensor;
    uint32_t                 AxisCount;
    const uint32_t          *Axes;              /* [AxisCount] */
    int32_t                  NormalizeVariance; /* BOOL */
    float                    Epsilon;
    const DML_OPERATOR_DESC *FusedActivation;   /* optional */
} DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC;

/* 116, FL 2.1: RESAMPLE with y's pixel = (x's pixel + InputPixelOffset) * Scale + OutputPixelOffset */
typedef struct DML_RESAMPLE1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_INTERPOLATION_MODE InterpolationMode;
    uint32_t               DimensionCount;
    const float           *Scales;             /* [DimensionCount] */
    const float           *InputPixelOffsets;  /* [DimensionCount] */
    const float           *OutputPixelOffsets; /* [DimensionCount] */
} DML_RESAMPLE1_OPERATOR_DESC;

/* --- descriptors, FL 2.1: integer and quantized products ------------------------------------------------------ */

/* 117, FL 2.1: y = (A - zero point) * (B - zero point) in INT32 */
typedef struct DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *AZeroPointTensor; /* optional */
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *BZeroPointTensor; /* optional */
    const DML_TENSOR_DESC *OutputTensor;
} DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC;

/* 118, FL 2.1: y = quantize(dequantize(A) * dequantize(B)); OutputScale and OutputZeroPoint are inputs */
typedef struct DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *AScaleTensor;
    const DML_TENSOR_DESC *AZeroPointTensor;      /* optional */
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *BScaleTensor;
    const DML_TENSOR_DESC *BZeroPointTensor;      /* optional */
    const DML_TENSOR_DESC *OutputScaleTensor;     /* an input */
    const DML_TENSOR_DESC *OutputZeroPointTensor; /* optional, an input */
    const DML_TENSOR_DESC *OutputTensor;
} DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC;

/* 119, FL 2.1: convolution of (x - zero point) with (filter - zero point) in INT32 */
typedef struct DML_CONVOLUTION_INTEGER_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *InputZeroPointTensor;  /* optional */
    const DML_TENSOR_DESC *FilterTensor;
    const DML_TENSOR_DESC *FilterZeroPointTensor; /* optional */
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Strides;               /* [DimensionCount] */
    const uint32_t        *Dilations;             /* [DimensionCount] */
    const uint32_t        *StartPadding;          /* [DimensionCount] */
    const uint32_t        *EndPadding;            /* [DimensionCount] */
    uint32_t               GroupCount;
} DML_CONVOLUTION_INTEGER_OPERATOR_DESC;

/* 120, FL 2.1: y = quantize(convolution of dequantized x and filter); OutputScale and OutputZeroPoint are inputs */
typedef struct DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *InputScaleTensor;
    const DML_TENSOR_DESC *InputZeroPointTensor;  /* optional */
    const DML_TENSOR_DESC *FilterTensor;
    const DML_TENSOR_DESC *FilterScaleTensor;
    const DML_TENSOR_DESC *FilterZeroPointTensor; /* optional */
    const DML_TENSOR_DESC *BiasTensor;            /* optional */
    const DML_TENSOR_DESC *OutputScaleTensor;     /* an input */
    const DML_TENSOR_DESC *OutputZeroPointTensor; /* optional, an input */
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Strides;               /* [DimensionCount] */
    const uint32_t        *Dilations;             /* [DimensionCount] */
    const uint32_t        *StartPadding;          /* [DimensionCount] */
    const uint32_t        *EndPadding;            /* [DimensionCount] */
    uint32_t               GroupCount;
} DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC;

/* --- descriptors, FL 3.0: element-wise ------------------------------------------------------------------------ */

/* 121, FL 3.0: y = a & b */
typedef struct DML_ELEMENT_WISE_BIT_AND_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_BIT_AND_OPERATOR_DESC;

/* 122, FL 3.0: y = a | b */
typedef struct DML_ELEMENT_WISE_BIT_OR_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_BIT_OR_OPERATOR_DESC;

/* 123, FL 3.0: y = a ^ b */
typedef struct DML_ELEMENT_WISE_BIT_XOR_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_BIT_XOR_OPERATOR_DESC;

/* 124, FL 3.0: y = ~x */
typedef struct DML_ELEMENT_WISE_BIT_NOT_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_BIT_NOT_OPERATOR_DESC;

/* 125, FL 3.0: y = number of bits set in x; the output's type may differ */
typedef struct DML_ELEMENT_WISE_BIT_COUNT_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_BIT_COUNT_OPERATOR_DESC;

/* 126, FL 3.0: y = a >= b; 0 or 1 in UINT8 or UINT32 */
typedef struct DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL_OPERATOR_DESC;

/* 127, FL 3.0: y = a <= b; 0 or 1 in UINT8 or UINT32 */
typedef struct DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL_OPERATOR_DESC;

/* --- descriptors, FL 3.0: activation, gradients, random numbers, indices -------------------------------------- */

/* 128, FL 3.0: y = max(0, x) + min(0, Alpha * (e^(x / Alpha) - 1)) */
typedef struct DML_ACTIVATION_CELU_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Alpha;
} DML_ACTIVATION_CELU_OPERATOR_DESC;

/* 129, FL 3.0: dx = x > 0 ? dy : 0 */
typedef struct DML_ACTIVATION_RELU_GRAD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
} DML_ACTIVATION_RELU_GRAD_OPERATOR_DESC;

/* 130, FL 3.0: gradient of AVERAGE_POOLING */
typedef struct DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Strides;        /* [DimensionCount] */
    const uint32_t        *WindowSize;     /* [DimensionCount] */
    const uint32_t        *StartPadding;   /* [DimensionCount] */
    const uint32_t        *EndPadding;     /* [DimensionCount] */
    int32_t                IncludePadding; /* BOOL */
} DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC;

/* 131, FL 3.0: gradient of MAX_POOLING2: dy goes to each window's maximum */
typedef struct DML_MAX_POOLING_GRAD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Strides;      /* [DimensionCount] */
    const uint32_t        *WindowSize;   /* [DimensionCount] */
    const uint32_t        *StartPadding; /* [DimensionCount] */
    const uint32_t        *EndPadding;   /* [DimensionCount] */
    const uint32_t        *Dilations;    /* [DimensionCount] */
} DML_MAX_POOLING_GRAD_OPERATOR_DESC;

/* 132, FL 3.0: random bits by Philox 4x32-10; state = 128-bit counter, 64-bit key in six UINT32 */
typedef struct DML_RANDOM_GENERATOR_OPERATOR_DESC {
    const DML_TENSOR_DESC    *InputStateTensor;
    const DML_TENSOR_DESC    *OutputTensor;
    const DML_TENSOR_DESC    *OutputStateTensor; /* optional */
    DML_RANDOM_GENERATOR_TYPE Type;
} DML_RANDOM_GENERATOR_OPERATOR_DESC;

/* 133, FL 3.0: the number of non-zero elements and their coordinates */
typedef struct DML_NONZERO_COORDINATES_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputCountTensor;
    const DML_TENSOR_DESC *OutputCoordinatesTensor;
} DML_NONZERO_COORDINATES_OPERATOR_DESC;

/* 134, FL 3.0: gradient of RESAMPLE1 */
typedef struct DML_RESAMPLE_GRAD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
    DML_INTERPOLATION_MODE InterpolationMode;
    uint32_t               DimensionCount;
    const float           *Scales;             /* [DimensionCount] */
    const float           *InputPixelOffsets;  /* [DimensionCount] */
    const float           *OutputPixelOffsets; /* [DimensionCount] */
} DML_RESAMPLE_GRAD_OPERATOR_DESC;

/* 135, FL 3.0: gradient of SLICE1: dy scattered into the window, 0 elsewhere */
typedef struct DML_SLICE_GRAD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
    uint32_t               DimensionCount;
    const uint32_t        *InputWindowOffsets; /* [DimensionCount] */
    const uint32_t        *InputWindowSizes;   /* [DimensionCount] */
    const int32_t         *InputWindowStrides; /* [DimensionCount] */
} DML_SLICE_GRAD_OPERATOR_DESC;

/* 136, FL 3.0: one step of the Adam optimizer */
typedef struct DML_ADAM_OPTIMIZER_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputParametersTensor;
    const DML_TENSOR_DESC *InputFirstMomentTensor;
    const DML_TENSOR_DESC *InputSecondMomentTensor;
    const DML_TENSOR_DESC *GradientTensor;
    const DML_TENSOR_DESC *TrainingStepTensor;
    const DML_TENSOR_DESC *OutputParametersTensor;
    const DML_TENSOR_DESC *OutputFirstMomentTensor;
    const DML_TENSOR_DESC *OutputSecondMomentTensor;
    float                  LearningRate;
    float                  Beta1;
    float                  Beta2;
    float                  Epsilon;
} DML_ADAM_OPTIMIZER_OPERATOR_DESC;

/* 137, FL 3.0: index of the minimum over Axes, counted in ascending axis order; ties: INCREASING the first */
typedef struct DML_ARGMIN_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               AxisCount;
    const uint32_t        *Axes; /* [AxisCount] */
    DML_AXIS_DIRECTION     AxisDirection;
} DML_ARGMIN_OPERATOR_DESC;

/* 138, FL 3.0: index of the maximum over Axes, otherwise as ARGMIN */
typedef struct DML_ARGMAX_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               AxisCount;
    const uint32_t        *Axes; /* [AxisCount] */
    DML_AXIS_DIRECTION     AxisDirection;
} DML_ARGMAX_OPERATOR_DESC;

/* 139, FL 3.0: regions sampled with interpolation, samples reduced by AVERAGE or MAX */
typedef struct DML_ROI_ALIGN_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *ROITensor;
    const DML_TENSOR_DESC *BatchIndicesTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_REDUCE_FUNCTION    ReductionFunction;
    DML_INTERPOLATION_MODE InterpolationMode;
    float                  SpatialScaleX;
    float                  SpatialScaleY;
    float                  OutOfBoundsInputValue;
    uint32_t               MinimumSamplesPerOutput;
    uint32_t               MaximumSamplesPerOutput;
} DML_ROI_ALIGN_OPERATOR_DESC;

/* 140, FL 3.0: GATHER_ND with leading batch dimensions */
typedef struct DML_GATHER_ND1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *IndicesTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               InputDimensionCount;
    uint32_t               IndicesDimensionCount;
    uint32_t               BatchDimensionCount;
} DML_GATHER_ND1_OPERATOR_DESC;

/* --- descriptors, FL 3.1 -------------------------------------------------------------------------------------- */

/* 141, FL 3.1: y = atan2(a, b): a is y, b is x */
typedef struct DML_ELEMENT_WISE_ATAN_YX_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_ATAN_YX_OPERATOR_DESC;

/* 142, FL 3.1: dx = x <= Min || x >= Max ? 0 : dy */
typedef struct DML_ELEMENT_WISE_CLIP_GRAD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
    float                  Min;
    float                  Max;
} DML_ELEMENT_WISE_CLIP_GRAD_OPERATOR_DESC;

/* 143, FL 3.1: y = (a - b)^2 */
typedef struct DML_ELEMENT_WISE_DIFFERENCE_SQUARE_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_DIFFERENCE_SQUARE_OPERATOR_DESC;

/* 144, FL 3.1: gradient of LOCAL_RESPONSE_NORMALIZATION */
typedef struct DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
    int32_t                CrossChannel; /* BOOL */
    uint32_t               LocalSize;
    float                  Alpha;
    float                  Beta;
    float                  Bias;
} DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC;

/* 145, FL 3.1: running product along Axis; HasExclusiveProduct leaves out the element itself */
typedef struct DML_CUMULATIVE_PRODUCT_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               Axis;
    DML_AXIS_DIRECTION     AxisDirection;
    int32_t                HasExclusiveProduct; /* BOOL */
} DML_CUMULATIVE_PRODUCT_OPERATOR_DESC;

/* 146, FL 3.1: gradients of BATCH_NORMALIZATION to x, scale and bias */
typedef struct DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *MeanTensor;
    const DML_TENSOR_DESC *VarianceTensor;
    const DML_TENSOR_DESC *ScaleTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
    const DML_TENSOR_DESC *OutputScaleGradientTensor; /* an output */
    const DML_TENSOR_DESC *OutputBiasGradientTensor;
    float                  Epsilon;
} DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC;

/* --- descriptors, FL 4.0 -------------------------------------------------------------------------------------- */

/* 147, FL 4.0: y = quantize(dequantize(a) + dequantize(b)); OutputScale and OutputZeroPoint are inputs */
typedef struct DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *AScaleTensor;
    const DML_TENSOR_DESC *AZeroPointTensor;      /* optional */
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *BScaleTensor;
    const DML_TENSOR_DESC *BZeroPointTensor;      /* optional */
    const DML_TENSOR_DESC *OutputScaleTensor;     /* an input */
    const DML_TENSOR_DESC *OutputZeroPointTensor; /* optional, an input */
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD_OPERATOR_DESC;

/* 148, FL 4.0: scale and zero point found from x, which is then quantized; all three are outputs */
typedef struct DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_TENSOR_DESC *OutputScaleTensor;     /* an output */
    const DML_TENSOR_DESC *OutputZeroPointTensor; /* an output */
} DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC;

/* 149, FL 4.0: ROI_ALIGN with pixel offsets and a choice of corner alignment */
typedef struct DML_ROI_ALIGN1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *ROITensor;
    const DML_TENSOR_DESC *BatchIndicesTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_REDUCE_FUNCTION    ReductionFunction;
    DML_INTERPOLATION_MODE InterpolationMode;
    float                  SpatialScaleX;
    float                  SpatialScaleY;
    float                  InputPixelOffset;
    float                  OutputPixelOffset;
    float                  OutOfBoundsInputValue;
    uint32_t               MinimumSamplesPerOutput;
    uint32_t               MaximumSamplesPerOutput;
    int32_t                AlignRegionsToCorners; /* BOOL */
} DML_ROI_ALIGN1_OPERATOR_DESC;

/* --- descriptors, FL 4.1: training ---------------------------------------------------------------------------- */

/* 150, FL 4.1: gradients of ROI_ALIGN1 to x and to the regions */
typedef struct DML_ROI_ALIGN_GRAD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;             /* optional */
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *ROITensor;
    const DML_TENSOR_DESC *BatchIndicesTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;    /* optional */
    const DML_TENSOR_DESC *OutputROIGradientTensor; /* optional */
    DML_REDUCE_FUNCTION    ReductionFunction;
    DML_INTERPOLATION_MODE InterpolationMode;
    float                  SpatialScaleX;
    float                  SpatialScaleY;
    float                  InputPixelOffset;
    float                  OutputPixelOffset;
    uint32_t               MinimumSamplesPerOutput;
    uint32_t               MaximumSamplesPerOutput;
    int32_t                AlignRegionsToCorners;   /* BOOL */
} DML_ROI_ALIGN_GRAD_OPERATOR_DESC;

/* 151, FL 4.1: BATCH_NORMALIZATION that also computes mean and variance; FusedAddTensor is added before act */
typedef struct DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC {
    const DML_TENSOR_DESC   *InputTensor;
    const DML_TENSOR_DESC   *ScaleTensor;
    const DML_TENSOR_DESC   *BiasTensor;
    const DML_TENSOR_DESC   *FusedAddTensor;  /* optional */
    const DML_TENSOR_DESC   *OutputTensor;
    const DML_TENSOR_DESC   *OutputMeanTensor;
    const DML_TENSOR_DESC   *OutputVarianceTensor;
    float                    Epsilon;
    const DML_OPERATOR_DESC *FusedActivation; /* optional */
} DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC;

/* 152, FL 4.1: gradients of BATCH_NORMALIZATION_TRAINING to x, scale and bias */
typedef struct DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *MeanTensor;
    const DML_TENSOR_DESC *VarianceTensor;
    const DML_TENSOR_DESC *ScaleTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
    const DML_TENSOR_DESC *OutputScaleGradientTensor; /* an output */
    const DML_TENSOR_DESC *OutputBiasGradientTensor;
    float                  Epsilon;
} DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC;

/* --- descriptors, FL 5.0 -------------------------------------------------------------------------------------- */

/* 153, FL 5.0: CLIP with bounds of the tensor's own type (MinMaxDataType) */
typedef struct DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    const DML_SCALE_BIAS  *ScaleBias; /* optional */
    DML_TENSOR_DATA_TYPE   MinMaxDataType;
    DML_SCALAR_UNION       Min;
    DML_SCALAR_UNION       Max;
} DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC;

/* 154, FL 5.0: CLIP_GRAD with bounds of the tensor's own type */
typedef struct DML_ELEMENT_WISE_CLIP_GRAD1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
    DML_TENSOR_DATA_TYPE   MinMaxDataType;
    DML_SCALAR_UNION       Min;
    DML_SCALAR_UNION       Max;
} DML_ELEMENT_WISE_CLIP_GRAD1_OPERATOR_DESC;

/* 155, FL 5.0: PADDING with a value of the tensor's own type; WRAP from 6.4 */
typedef struct DML_PADDING1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_PADDING_MODE       PaddingMode;
    DML_TENSOR_DATA_TYPE   PaddingValueDataType;
    DML_SCALAR_UNION       PaddingValue;
    uint32_t               DimensionCount;
    const uint32_t        *StartPadding; /* [DimensionCount] */
    const uint32_t        *EndPadding;   /* [DimensionCount] */
} DML_PADDING1_OPERATOR_DESC;

/* 156, FL 5.0: y = -x */
typedef struct DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC;

/* --- descriptors, FL 5.1: activations, resample, diagonal ----------------------------------------------------- */

/* 157, FL 5.1: y = x * (1 + erf(x / sqrt(2))) / 2 */
typedef struct DML_ACTIVATION_GELU_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
} DML_ACTIVATION_GELU_OPERATOR_DESC;

/* 158, FL 5.1: y = e^x / sum of e^x over Axes */
typedef struct DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               AxisCount;
    const uint32_t        *Axes; /* [AxisCount] */
} DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC;

/* 159, FL 5.1: y = ln(softmax(x)) over Axes */
typedef struct DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               AxisCount;
    const uint32_t        *Axes; /* [AxisCount] */
} DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC;

/* 160, FL 5.1: y = 1 at the first maximum over Axes, else 0 */
typedef struct DML_ACTIVATION_HARDMAX1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               AxisCount;
    const uint32_t        *Axes; /* [AxisCount] */
} DML_ACTIVATION_HARDMAX1_OPERATOR_DESC;

/* 161, FL 5.1: RESAMPLE1 with a direction for rounding to the nearest pixel */
typedef struct DML_RESAMPLE2_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_INTERPOLATION_MODE InterpolationMode;
    DML_AXIS_DIRECTION     RoundingDirection;
    uint32_t               DimensionCount;
    const float           *Scales;             /* [DimensionCount] */
    const float           *InputPixelOffsets;  /* [DimensionCount] */
    const float           *OutputPixelOffsets; /* [DimensionCount] */
} DML_RESAMPLE2_OPERATOR_DESC;

/* 162, FL 5.1: gradient of RESAMPLE2 */
typedef struct DML_RESAMPLE_GRAD1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputGradientTensor;
    const DML_TENSOR_DESC *OutputGradientTensor;
    DML_INTERPOLATION_MODE InterpolationMode;
    DML_AXIS_DIRECTION     RoundingDirection;
    uint32_t               DimensionCount;
    const float           *Scales;             /* [DimensionCount] */
    const float           *InputPixelOffsets;  /* [DimensionCount] */
    const float           *OutputPixelOffsets; /* [DimensionCount] */
} DML_RESAMPLE_GRAD1_OPERATOR_DESC;

/* 163, FL 5.1: t = j - i; (Begin <= End ? Begin <= t < End : t < End || t >= Begin) ? Value : x or 0 */
typedef struct DML_DIAGONAL_MATRIX1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor; /* optional */
    const DML_TENSOR_DESC *OutputTensor;
    DML_TENSOR_DATA_TYPE   ValueDataType;
    DML_SCALAR_UNION       Value;
    int32_t                DiagonalFillBegin;
    int32_t                DiagonalFillEnd;
} DML_DIAGONAL_MATRIX1_OPERATOR_DESC;

/* --- descriptors, FL 6.1 -------------------------------------------------------------------------------------- */

/* 164, FL 6.1: y = softmax(Q * K^T * Scale + mask + bias) * V, with past and present keys and values */
typedef struct DML_MULTIHEAD_ATTENTION_OPERATOR_DESC {
    const DML_TENSOR_DESC            *QueryTensor;                /* optional */
    const DML_TENSOR_DESC            *KeyTensor;                  /* optional */
    const DML_TENSOR_DESC            *ValueTensor;                /* optional */
    const DML_TENSOR_DESC            *StackedQueryKeyTensor;      /* optional */
    const DML_TENSOR_DESC            *StackedKeyValueTensor;      /* optional */
    const DML_TENSOR_DESC            *StackedQueryKeyValueTensor; /* optional */
    const DML_TENSOR_DESC            *BiasTensor;                 /* optional */
    const DML_TENSOR_DESC            *MaskTensor;                 /* optional */
    const DML_TENSOR_DESC            *RelativePositionBiasTensor; /* optional */
    const DML_TENSOR_DESC            *PastKeyTensor;              /* optional */
    const DML_TENSOR_DESC            *PastValueTensor;            /* optional */
    const DML_TENSOR_DESC            *OutputTensor;
    const DML_TENSOR_DESC            *OutputPresentKeyTensor;     /* optional */
    const DML_TENSOR_DESC            *OutputPresentValueTensor;   /* optional */
    float                             Scale;
    float                             MaskFilterValue;
    uint32_t                          HeadCount;
    DML_MULTIHEAD_ATTENTION_MASK_TYPE MaskType;
} DML_MULTIHEAD_ATTENTION_OPERATOR_DESC;

/* --- descriptors, FL 6.2 -------------------------------------------------------------------------------------- */

/* 165, FL 6.2: LP_POOLING with dilations */
typedef struct DML_LP_POOLING1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Strides;      /* [DimensionCount] */
    const uint32_t        *WindowSize;   /* [DimensionCount] */
    const uint32_t        *StartPadding; /* [DimensionCount] */
    const uint32_t        *EndPadding;   /* [DimensionCount] */
    const uint32_t        *Dilations;    /* [DimensionCount] */
    uint32_t               P;
} DML_LP_POOLING1_OPERATOR_DESC;

/* 166, FL 6.2: AVERAGE_POOLING with dilations */
typedef struct DML_AVERAGE_POOLING1_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Strides;        /* [DimensionCount] */
    const uint32_t        *WindowSize;     /* [DimensionCount] */
    const uint32_t        *StartPadding;   /* [DimensionCount] */
    const uint32_t        *EndPadding;     /* [DimensionCount] */
    const uint32_t        *Dilations;      /* [DimensionCount] */
    int32_t                IncludePadding; /* BOOL */
} DML_AVERAGE_POOLING1_OPERATOR_DESC;

/* 167, FL 6.2: y = x * sigmoid(SigmoidInputScale * x) */
typedef struct DML_ACTIVATION_SWISH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  SigmoidInputScale;
} DML_ACTIVATION_SWISH_OPERATOR_DESC;

/* 168, FL 6.2: y = x * max(0, min(Alpha * x + Beta, 1)) */
typedef struct DML_ACTIVATION_HARD_SWISH_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    float                  Alpha;
    float                  Beta;
} DML_ACTIVATION_HARD_SWISH_OPERATOR_DESC;

/* 169, FL 6.2: y = quantize(mean of dequantized x); OutputScale and OutputZeroPoint are inputs */
typedef struct DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *InputScaleTensor;
    const DML_TENSOR_DESC *InputZeroPointTensor;  /* optional */
    const DML_TENSOR_DESC *OutputScaleTensor;     /* an input */
    const DML_TENSOR_DESC *OutputZeroPointTensor; /* optional, an input */
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *Strides;               /* [DimensionCount] */
    const uint32_t        *WindowSize;            /* [DimensionCount] */
    const uint32_t        *StartPadding;          /* [DimensionCount] */
    const uint32_t        *EndPadding;            /* [DimensionCount] */
    const uint32_t        *Dilations;             /* [DimensionCount] */
    int32_t                IncludePadding;        /* BOOL */
} DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC;

/* 170, FL 6.2: y = dequantize(A) * dequantize(B) + bias in floats */
typedef struct DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC {
    const DML_TENSOR_DESC *ATensor;
    const DML_TENSOR_DESC *AScaleTensor;
    const DML_TENSOR_DESC *AZeroPointTensor; /* optional */
    const DML_TENSOR_DESC *BTensor;
    const DML_TENSOR_DESC *BScaleTensor;
    const DML_TENSOR_DESC *BZeroPointTensor; /* optional */
    const DML_TENSOR_DESC *BiasTensor;       /* optional */
    const DML_TENSOR_DESC *OutputTensor;
} DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC;

/* --- descriptors, FL 6.3 -------------------------------------------------------------------------------------- */

/* 171, FL 6.3: MEAN_VARIANCE_NORMALIZATION1 with mean and variance each optional (RMS norm: UseMean 0) */
typedef struct DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC {
    const DML_TENSOR_DESC   *InputTensor;
    const DML_TENSOR_DESC   *ScaleTensor;     /* optional */
    const DML_TENSOR_DESC   *BiasTensor;      /* optional */
    const DML_TENSOR_DESC   *OutputTensor;
    uint32_t                 AxisCount;
    const uint32_t          *Axes;            /* [AxisCount] */
    int32_t                  UseMean;         /* BOOL */
    int32_t                  UseVariance;     /* BOOL */
    float                    Epsilon;
    const DML_OPERATOR_DESC *FusedActivation; /* optional */
} DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC;

/* 172, FL 6.3: MULTIHEAD_ATTENTION with past lengths and separate query and key/value head counts */
typedef struct DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC {
    const DML_TENSOR_DESC            *QueryTensor;                /* optional */
    const DML_TENSOR_DESC            *KeyTensor;                  /* optional */
    const DML_TENSOR_DESC            *ValueTensor;                /* optional */
    const DML_TENSOR_DESC            *StackedQueryKeyTensor;      /* optional */
    const DML_TENSOR_DESC            *StackedKeyValueTensor;      /* optional */
    const DML_TENSOR_DESC            *StackedQueryKeyValueTensor; /* optional */
    const DML_TENSOR_DESC            *BiasTensor;                 /* optional */
    const DML_TENSOR_DESC            *MaskTensor;                 /* optional */
    const DML_TENSOR_DESC            *RelativePositionBiasTensor; /* optional */
    const DML_TENSOR_DESC            *PastKeyTensor;              /* optional */
    const DML_TENSOR_DESC            *PastValueTensor;            /* optional */
    const DML_TENSOR_DESC            *PastSequenceLengthsTensor;  /* optional */
    const DML_TENSOR_DESC            *OutputTensor;
    const DML_TENSOR_DESC            *OutputPresentKeyTensor;     /* optional */
    const DML_TENSOR_DESC            *OutputPresentValueTensor;   /* optional */
    float                             Scale;
    float                             MaskFilterValue;
    uint32_t                          QueryHeadCount;
    uint32_t                          KeyValueHeadCount;
    DML_MULTIHEAD_ATTENTION_MASK_TYPE MaskType;
} DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC;

/* 173, FL 6.3: y = clamp(round(x / scale) + zero point), a scale and zero point for each block */
typedef struct DML_QUANTIZE_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    DML_QUANTIZATION_TYPE  QuantizationType;
    uint32_t               QuantizationTensorCount;
    const DML_TENSOR_DESC *QuantizationTensors; /* [QuantizationTensorCount] */
    const DML_TENSOR_DESC *OutputTensor;
} DML_QUANTIZE_OPERATOR_DESC;

/* 174, FL 6.3: y = (x - zero point) * scale, a scale and zero point for each block; takes 4-bit types */
typedef struct DML_DEQUANTIZE_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    DML_QUANTIZATION_TYPE  QuantizationType;
    uint32_t               QuantizationTensorCount;
    const DML_TENSOR_DESC *QuantizationTensors; /* [QuantizationTensorCount] */
    const DML_TENSOR_DESC *OutputTensor;
} DML_DEQUANTIZE_OPERATOR_DESC;

/* --- descriptors, FL 6.4 -------------------------------------------------------------------------------------- */

/* 175, FL 6.4: RESAMPLE2 with antialiasing when shrinking */
typedef struct DML_RESAMPLE3_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    DML_INTERPOLATION_MODE InterpolationMode;
    DML_AXIS_DIRECTION     RoundingDirection;
    uint32_t               DimensionCount;
    const float           *Scales;             /* [DimensionCount] */
    const float           *InputPixelOffsets;  /* [DimensionCount] */
    const float           *OutputPixelOffsets; /* [DimensionCount] */
    int32_t                Antialiased;        /* BOOL */
} DML_RESAMPLE3_OPERATOR_DESC;

/* 176, FL 6.4: overlapping windows added up into a tensor: the inverse layout of UNFOLD */
typedef struct DML_FOLD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *WindowSizes;  /* [DimensionCount] */
    const uint32_t        *Strides;      /* [DimensionCount] */
    const uint32_t        *Dilations;    /* [DimensionCount] */
    const uint32_t        *StartPadding; /* [DimensionCount] */
    const uint32_t        *EndPadding;   /* [DimensionCount] */
} DML_FOLD_OPERATOR_DESC;

/* 177, FL 6.4: the sliding windows of x, a column each */
typedef struct DML_UNFOLD_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t               DimensionCount;
    const uint32_t        *WindowSizes;  /* [DimensionCount] */
    const uint32_t        *Strides;      /* [DimensionCount] */
    const uint32_t        *Dilations;    /* [DimensionCount] */
    const uint32_t        *StartPadding; /* [DimensionCount] */
    const uint32_t        *EndPadding;   /* [DimensionCount] */
} DML_UNFOLD_OPERATOR_DESC;

/* --- graphs --------------------------------------------------------------------------------------------------- */
/* Nodes carry operators that were made before (opjit_operator_create); the graph borrows them.  In the edges a node
 * is its index in DML_GRAPH_DESC::Nodes, and a node's input or output its position among the descriptor's input or
 * output tensors, arrays expanded, absent optional ones counted.  Names are labels for messages and may be NULL. */
typedef struct opjit_operator opjit_operator;
typedef struct opjit_operator IDMLOperator;

typedef enum DML_GRAPH_NODE_TYPE {
    DML_GRAPH_NODE_TYPE_INVALID  = 0,
    DML_GRAPH_NODE_TYPE_OPERATOR = 1, /* Desc is a DML_OPERATOR_GRAPH_NODE_DESC */
    DML_GRAPH_NODE_TYPE_CONSTANT = 2  /* FL 6.2; Desc is a DML_CONSTANT_DATA_GRAPH_NODE_DESC */
} DML_GRAPH_NODE_TYPE;

typedef struct DML_GRAPH_NODE_DESC {
    DML_GRAPH_NODE_TYPE Type;
    const void         *Desc;
} DML_GRAPH_NODE_DESC;

typedef struct DML_OPERATOR_GRAPH_NODE_DESC {
    IDMLOperator *Operator;
    const char   *Name; /* optional */
} DML_OPERATOR_GRAPH_NODE_DESC;

/* FL 6.2: a tensor that is known now.  Its one output is number 0; the edge's consumer gives it type and shape. */
typedef struct DML_CONSTANT_DATA_GRAPH_NODE_DESC {
    const void *Data;
    size_t      DataSize; /* bytes */
    const char *Name;     /* optional */
} DML_CONSTANT_DATA_GRAPH_NODE_DESC;

typedef enum DML_GRAPH_EDGE_TYPE {
    DML_GRAPH_EDGE_TYPE_INVALID      = 0,
    DML_GRAPH_EDGE_TYPE_INPUT        = 1, /* graph input to node input */
    DML_GRAPH_EDGE_TYPE_OUTPUT       = 2, /* node output to graph output */
    DML_GRAPH_EDGE_TYPE_INTERMEDIATE = 3  /* node output to node input */
} DML_GRAPH_EDGE_TYPE;

typedef struct DML_GRAPH_EDGE_DESC {
    DML_GRAPH_EDGE_TYPE Type;
    const void         *Desc; /* DML_INPUT_, DML_OUTPUT_ or DML_INTERMEDIATE_GRAPH_EDGE_DESC */
} DML_GRAPH_EDGE_DESC;

typedef struct DML_INPUT_GRAPH_EDGE_DESC {
    uint32_t    GraphInputIndex;
    uint32_t    ToNodeIndex;
    uint32_t    ToNodeInputIndex;
    const char *Name; /* optional */
} DML_INPUT_GRAPH_EDGE_DESC;

typedef struct DML_OUTPUT_GRAPH_EDGE_DESC {
    uint32_t    FromNodeIndex;
    uint32_t    FromNodeOutputIndex;
    uint32_t    GraphOutputIndex;
    const char *Name; /* optional */
} DML_OUTPUT_GRAPH_EDGE_DESC;

typedef struct DML_INTERMEDIATE_GRAPH_EDGE_DESC {
    uint32_t    FromNodeIndex;
    uint32_t    FromNodeOutputIndex;
    uint32_t    ToNodeIndex;
    uint32_t    ToNodeInputIndex;
    const char *Name; /* optional */
} DML_INTERMEDIATE_GRAPH_EDGE_DESC;

/* InputCount and OutputCount are the numbers of bindings of the compiled graph; input indices may have gaps.  A graph
 * input can't be wired straight to a graph output: put an ELEMENT_WISE_IDENTITY between them. */
typedef struct DML_GRAPH_DESC {
    uint32_t                   InputCount;
    uint32_t                   OutputCount;
    uint32_t                   NodeCount;
    const DML_GRAPH_NODE_DESC *Nodes;             /* [NodeCount] */
    uint32_t                   InputEdgeCount;
    const DML_GRAPH_EDGE_DESC *InputEdges;        /* [InputEdgeCount], optional */
    uint32_t                   OutputEdgeCount;
    const DML_GRAPH_EDGE_DESC *OutputEdges;       /* [OutputEdgeCount] */
    uint32_t                   IntermediateEdgeCount;
    const DML_GRAPH_EDGE_DESC *IntermediateEdges; /* [IntermediateEdgeCount], optional */
} DML_GRAPH_DESC;

/* --- devices and bindings ------------------------------------------------------------------------------------- */
/* What is left of DirectML's device side without Direct3D 12; for hosts that carry these values in their own code. */

/* The DirectML releases that added operators, data types or ranks (5.2 and 6.0 added no operator). */
typedef enum DML_FEATURE_LEVEL {
    DML_FEATURE_LEVEL_1_0 = 0x1000,
    DML_FEATURE_LEVEL_2_0 = 0x2000,
    DML_FEATURE_LEVEL_2_1 = 0x2100,
    DML_FEATURE_LEVEL_3_0 = 0x3000,
    DML_FEATURE_LEVEL_3_1 = 0x3100,
    DML_FEATURE_LEVEL_4_0 = 0x4000,
    DML_FEATURE_LEVEL_4_1 = 0x4100,
    DML_FEATURE_LEVEL_5_0 = 0x5000,
    DML_FEATURE_LEVEL_5_1 = 0x5100,
    DML_FEATURE_LEVEL_5_2 = 0x5200,
    DML_FEATURE_LEVEL_6_0 = 0x6000,
    DML_FEATURE_LEVEL_6_1 = 0x6100,
    DML_FEATURE_LEVEL_6_2 = 0x6200,
    DML_FEATURE_LEVEL_6_3 = 0x6300,
    DML_FEATURE_LEVEL_6_4 = 0x6400
} DML_FEATURE_LEVEL;

typedef enum DML_FEATURE {
    DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT = 0,
    DML_FEATURE_FEATURE_LEVELS           = 1
} DML_FEATURE;

typedef enum DML_EXECUTION_FLAGS {
    DML_EXECUTION_FLAG_NONE                             = 0x0,
    DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION = 0x1,
    DML_EXECUTION_FLAG_DISABLE_META_COMMANDS            = 0x2,
    DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE             = 0x4
} DML_EXECUTION_FLAGS;

typedef enum DML_CREATE_DEVICE_FLAGS {
    DML_CREATE_DEVICE_FLAG_NONE  = 0x0,
    DML_CREATE_DEVICE_FLAG_DEBUG = 0x1
} DML_CREATE_DEVICE_FLAGS;

typedef enum DML_BINDING_TYPE {
    DML_BINDING_TYPE_NONE         = 0,
    DML_BINDING_TYPE_BUFFER       = 1,
    DML_BINDING_TYPE_BUFFER_ARRAY = 2
} DML_BINDING_TYPE;

typedef struct DML_BINDING_PROPERTIES {
    uint32_t RequiredDescriptorCount;
    uint64_t TemporaryResourceSize;  /* bytes */
    uint64_t PersistentResourceSize; /* bytes */
} DML_BINDING_PROPERTIES;

#ifdef __cplusplus
} /* extern "C" */

/* In C++ an enum does not combine to itself: these let flags be joined and tested as they can be with DirectML.h. */
#define OPJIT_DML_FLAG_OPERATORS(flags)                                                                      \
    constexpr flags operator|(flags a, flags b) { return flags(static_cast<int>(a) | static_cast<int>(b)); } \
    constexpr flags operator&(flags a, flags b) { return flags(static_cast<int>(a) & static_cast<int>(b)); } \
    inline flags &operator|=(flags &a, flags b) { return a = a | b; }                                        \
    inline flags &operator&=(flags &a, flags b) { return a = a & b; }
OPJIT_DML_FLAG_OPERATORS(DML_TENSOR_FLAGS)
OPJIT_DML_FLAG_OPERATORS(DML_EXECUTION_FLAGS)
OPJIT_DML_FLAG_OPERATORS(DML_CREATE_DEVICE_FLAGS)
#undef OPJIT_DML_FLAG_OPERATORS

static_assert(sizeof(DML_OPERATOR_TYPE) == 4, "enums must be 32 bits wide (no -fshort-enums)");
static_assert(sizeof(DML_SCALAR_UNION) == 8, "DML_SCALAR_UNION must be 8 bytes");
#else
_Static_assert(sizeof(DML_OPERATOR_TYPE) == 4 && sizeof(DML_TENSOR_FLAGS) == 4,
               "enums must be 32 bits wide (no -fshort-enums)");
_Static_assert(sizeof(DML_SCALAR_UNION) == 8, "DML_SCALAR_UNION must be 8 bytes");
#endif

#pragma pop_macro("P")
#pragma pop_macro("K")

#endif /* no DirectML.h */
#endif /* OPJIT_DML_H */
