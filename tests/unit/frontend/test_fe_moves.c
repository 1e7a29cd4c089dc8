/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_moves.c - the operators that move elements: messages of what they refuse, one wrong number at a time; what
 * feature levels have; what they are lowered to. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/descriptors.h"
#include "tests/support/moves.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
#define F64 DML_TENSOR_DATA_TYPE_FLOAT64
#define I32 DML_TENSOR_DATA_TYPE_INT32
#define U32 DML_TENSOR_DATA_TYPE_UINT32
#define U16 DML_TENSOR_DATA_TYPE_UINT16

/* A valid operator: its tensors by position, inputs first, and its other numbers. */
typedef struct plain {
    DML_OPERATOR_TYPE type;
    uint32_t inputs, rank;
    uint32_t sizes[4][4];
    uint32_t a[4], b[4]; /* arrays, or two numbers in a[0] and a[1] */
    int32_t s[4];
} plain;

static const plain plains[] = {
    { DML_OPERATOR_SLICE, 1, 2, { { 4, 6 }, { 2, 2 } }, { 1, 2 }, { 2, 2 }, { 1, 2 } },
    { DML_OPERATOR_SLICE1, 1, 2, { { 4, 6 }, { 3, 2 } }, { 1, 2 }, { 3, 4 }, { 1, -2 } },
    { DML_OPERATOR_SLICE_GRAD, 1, 2, { { 3, 2 }, { 4, 6 } }, { 1, 2 }, { 3, 4 }, { 1, -2 } },
    { DML_OPERATOR_JOIN, 2, 2, { { 2, 3 }, { 2, 4 }, { 2, 7 } }, { 1 }, { 0 }, { 0 } },
    { DML_OPERATOR_SPLIT, 1, 2, { { 2, 7 }, { 2, 3 }, { 2, 4 } }, { 1 }, { 0 }, { 0 } },
    { DML_OPERATOR_TILE, 1, 2, { { 2, 3 }, { 4, 9 } }, { 2, 3 }, { 0 }, { 0 } },
    { DML_OPERATOR_PADDING, 1, 2, { { 2, 3 }, { 3, 5 } }, { 1, 0 }, { 0, 2 }, { 0 } },
    { DML_OPERATOR_PADDING1, 1, 2, { { 2, 3 }, { 3, 5 } }, { 1, 0 }, { 0, 2 }, { 0 } },
    { DML_OPERATOR_REVERSE_SUBSEQUENCES, 2, 2, { { 2, 3 }, { 2, 1 }, { 2, 3 } }, { 1 }, { 0 }, { 0 } },
    { DML_OPERATOR_SPACE_TO_DEPTH, 1, 4, { { 1, 2, 4, 6 }, { 1, 8, 2, 3 } }, { 2 }, { 0 }, { 0 } },
    { DML_OPERATOR_SPACE_TO_DEPTH1, 1, 4, { { 1, 2, 4, 6 }, { 1, 8, 2, 3 } }, { 2 }, { 0 }, { 0 } },
    { DML_OPERATOR_DEPTH_TO_SPACE, 1, 4, { { 1, 8, 2, 3 }, { 1, 2, 4, 6 } }, { 2 }, { 0 }, { 0 } },
    { DML_OPERATOR_DEPTH_TO_SPACE1, 1, 4, { { 1, 8, 2, 3 }, { 1, 2, 4, 6 } }, { 2 }, { 0 }, { 0 } },
    { DML_OPERATOR_GATHER, 2, 2, { { 5, 3 }, { 1, 4 }, { 4, 3 } }, { 0, 1 }, { 0 }, { 0 } },
    { DML_OPERATOR_GATHER_ELEMENTS, 2, 2, { { 5, 3 }, { 4, 3 }, { 4, 3 } }, { 0 }, { 0 }, { 0 } },
    { DML_OPERATOR_GATHER_ND, 2, 2, { { 5, 3 }, { 4, 2 }, { 1, 4 } }, { 2, 2 }, { 0 }, { 0 } },
    { DML_OPERATOR_GATHER_ND1, 2, 3, { { 2, 5, 3 }, { 2, 4, 1 }, { 2, 4, 3 } }, { 3, 3, 1 }, { 0 }, { 0 } },
    { DML_OPERATOR_ONE_HOT, 2, 2, { { 2, 1 }, { 1, 2 }, { 2, 4 } }, { 1 }, { 0 }, { 0 } },
    { DML_OPERATOR_SCATTER_ELEMENTS, 3, 2, { { 5, 3 }, { 4, 3 }, { 4, 3 }, { 5, 3 } }, { 0 }, { 0 }, { 0 } },
    { DML_OPERATOR_SCATTER_ND, 3, 2, { { 5, 3 }, { 4, 1 }, { 4, 3 }, { 5, 3 } }, { 2, 2 }, { 0 }, { 0 } },
    { OPJIT_OPERATOR_SCATTER_REDUCE, 3, 2, { { 5, 3 }, { 4, 3 }, { 4, 3 }, { 5, 3 } }, { 0 }, { 0 }, { 0 } },
    { DML_OPERATOR_MAX_UNPOOLING, 2, 4, { { 1, 2, 2, 3 }, { 1, 2, 2, 3 }, { 1, 2, 4, 6 } }, { 0 }, { 0 }, { 0 } },
    { DML_OPERATOR_NONZERO_COORDINATES, 1, 4, { { 1, 2, 3, 2 }, { 1, 1, 1, 1 }, { 1, 1, 12, 3 } }, { 0 }, { 0 },
      { 0 } },
};

typedef struct built {
    plain p;
    uint32_t count; /* of arrays, tensors or numbers */
    uint32_t ranks[4];
    DML_TENSOR_DATA_TYPE types[4];
    int32_t mode; /* or order */
    DML_BUFFER_TENSOR_DESC buffers[4];
    DML_TENSOR_DESC tensors[4];
    move_case c;
} built;

static const plain *plain_of(DML_OPERATOR_TYPE type)
{
    const plain *p = plains;
    while (p->type != type)
        p++;
    return p;
}

static void build(built *b, DML_OPERATOR_TYPE type)
{
    memset(b, 0, sizeof *b);
    b->p = *plain_of(type);
    b->count = type == DML_OPERATOR_JOIN || type == DML_OPERATOR_SPLIT ? 2 : b->p.rank;
    for (int i = 0; i < 4; i++) {
        b->ranks[i] = b->p.rank;
        b->types[i] = F32;
    }
    if (type == DML_OPERATOR_ONE_HOT)
        b->types[0] = I32;
    else if (type == DML_OPERATOR_MAX_UNPOOLING)
        b->types[1] = U32;
    else if (type == DML_OPERATOR_NONZERO_COORDINATES)
        b->types[1] = b->types[2] = U32;
    else if (b->p.inputs >= 2 && type != DML_OPERATOR_JOIN)
        b->types[1] = I32;
}

static void fill_windows(built *b)
{
    const plain *p = &b->p;
    const DML_TENSOR_DESC *t = b->tensors;
    if (p->type == DML_OPERATOR_SLICE)
        b->c.desc.slice =
            (DML_SLICE_OPERATOR_DESC){ &t[0], &t[1], b->count, p->a, p->b, (const uint32_t *)(const void *)p->s };
    else /* SLICE_GRAD has the same fields */
        b->c.desc.slice1 = (DML_SLICE1_OPERATOR_DESC){ &t[0], &t[1], b->count, p->a, p->b, p->s };
}

static void fill_padding(built *b)
{
    const plain *p = &b->p;
    const DML_TENSOR_DESC *t = b->tensors;
    if (p->type == DML_OPERATOR_PADDING)
        b->c.desc.padding =
            (DML_PADDING_OPERATOR_DESC){ &t[0], &t[1], (DML_PADDING_MODE)b->mode, 1, b->count, p->a, p->b };
    else
        b->c.desc.padding1 = (DML_PADDING1_OPERATOR_DESC){
            &t[0], &t[1], (DML_PADDING_MODE)b->mode, b->types[1], { .UInt64 = 0 }, b->count, p->a, p->b,
        };
}

/* The descriptor that b describes now. */
static void finish(built *b)
{
    const plain *p = &b->p;
    const DML_TENSOR_DESC *t = b->tensors;
    for (int i = 0; i < 4; i++) {
        b->buffers[i] =
            (DML_BUFFER_TENSOR_DESC){ .DataType = b->types[i], .DimensionCount = b->ranks[i], .Sizes = p->sizes[i] };
        b->tensors[i] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &b->buffers[i] };
    }
    b->c.op = (DML_OPERATOR_DESC){ p->type, &b->c.desc };
    if (p->type == OPJIT_OPERATOR_SCATTER_REDUCE) {
        const uint32_t function = (uint32_t)DML_REDUCE_FUNCTION_MAX + (uint32_t)b->mode; /* a mode may be any number */
        b->c.desc.scatter_reduce = (OPJIT_SCATTER_REDUCE_OPERATOR_DESC){ &t[0], &t[1], &t[2], &t[3], p->a[0],
                                                                         (DML_REDUCE_FUNCTION)function };
        return;
    }
    switch (p->type) {
    case DML_OPERATOR_SLICE:
    case DML_OPERATOR_SLICE1:
    case DML_OPERATOR_SLICE_GRAD: fill_windows(b); break;
    case DML_OPERATOR_JOIN: b->c.desc.join = (DML_JOIN_OPERATOR_DESC){ b->count, t, &t[2], p->a[0] }; break;
    case DML_OPERATOR_SPLIT: b->c.desc.split = (DML_SPLIT_OPERATOR_DESC){ &t[0], b->count, &t[1], p->a[0] }; break;
    case DML_OPERATOR_TILE: b->c.desc.tile = (DML_TILE_OPERATOR_DESC){ &t[0], &t[1], b->count, p->a }; break;
    case DML_OPERATOR_PADDING:
    case DML_OPERATOR_PADDING1: fill_padding(b); break;
    case DML_OPERATOR_SPACE_TO_DEPTH:
    case DML_OPERATOR_SPACE_TO_DEPTH1:
    case DML_OPERATOR_DEPTH_TO_SPACE:
    case DML_OPERATOR_DEPTH_TO_SPACE1: /* the four agree in their fields */
        b->c.desc.to_depth1 =
            (DML_SPACE_TO_DEPTH1_OPERATOR_DESC){ &t[0], &t[1], p->a[0], (DML_DEPTH_SPACE_ORDER)b->mode };
        break;
    case DML_OPERATOR_SCATTER_ELEMENTS: /* SCATTER_ND has one field more */
    case DML_OPERATOR_SCATTER_ND:
        b->c.desc.scatter_nd = (DML_SCATTER_ND_OPERATOR_DESC){ &t[0], &t[1], &t[2], &t[3], p->a[0], p->a[1] };
        break;
    case DML_OPERATOR_MAX_UNPOOLING:
    case DML_OPERATOR_NONZERO_COORDINATES: /* three tensors */
        b->c.desc.max_unpooling = (DML_MAX_UNPOOLING_OPERATOR_DESC){ &t[0], &t[1], &t[2] };
        break;
    default: /* three tensors, then numbers */
        b->c.desc.gather_nd1 = (DML_GATHER_ND1_OPERATOR_DESC){ &t[0], &t[1], &t[2], p->a[0], p->a[1], p->a[2] };
        break;
    }
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */
typedef enum place {
    RANK_OF = 8,
    TYPE_OF,
    ARRAY_A,
    ARRAY_B,
    ARRAY_S,
    COUNT,
    MODE
} place; /* below 8: sizes of tensor */

#define BAD OPJIT_INVALID_ARGUMENT
#define NOT_HERE OPJIT_UNSUPPORTED
static const struct {
    DML_OPERATOR_TYPE type;
    uint32_t level;
    uint32_t where, index;
    int64_t value;
    opjit_status status;
    const char *message;
} refusals[] = {
    { DML_OPERATOR_SLICE, 0, COUNT, 0, 3, BAD, "SLICE DimensionCount: 3, must be 2 as InputTensor.DimensionCount" },
    { DML_OPERATOR_SLICE, 0, COUNT, 0, 70000, BAD, "SLICE Offsets: an array of 70000, must be at most 65536" },
    { DML_OPERATOR_SLICE, 0, TYPE_OF, 1, U16, BAD,
      "SLICE OutputTensor.DataType: UINT16, must be FLOAT32 as InputTensor.DataType" },
    { DML_OPERATOR_SLICE, 0, RANK_OF, 1, 3, BAD, "SLICE OutputTensor.Sizes[2]: 0, must be at least 1" },
    { DML_OPERATOR_SLICE, 0, RANK_OF, 1, 1, BAD,
      "SLICE OutputTensor.DimensionCount: 1, must be 2 as InputTensor.DimensionCount" },
    { DML_OPERATOR_SLICE, 0, ARRAY_A, 0, 4, BAD,
      "SLICE Offsets[0]: 4, must be at most 3, the last one of InputTensor" },
    { DML_OPERATOR_SLICE, 0, ARRAY_A, 0, 0xffffffff, BAD,
      "SLICE Offsets[0]: 4294967295, must be at most 3, the last one of InputTensor" },
    { DML_OPERATOR_SLICE, 0, ARRAY_B, 1, 3, BAD,
      "SLICE Sizes[1]: 3, must be at most 2, as many as InputTensor has there" },
    { DML_OPERATOR_SLICE, 0, ARRAY_B, 1, 0, BAD, "SLICE Sizes[1]: 0, must be at least 1" },
    { DML_OPERATOR_SLICE, 0, ARRAY_B, 1, 1, BAD, "SLICE OutputTensor.Sizes[1]: 2, must be 1 as in Sizes" },
    { DML_OPERATOR_SLICE, 0, ARRAY_S, 1, 0, BAD, "SLICE Strides[1]: 0, must be at least 1" },
    { DML_OPERATOR_SLICE, 0, ARRAY_S, 1, -2, BAD,
      "SLICE Sizes[1]: 2, must be at most 1, as many as InputTensor has there" },
    { DML_OPERATOR_SLICE1, 0x2000, MODE, 0, 0, NOT_HERE, "SLICE1 needs feature level 2.1, this context has 2.0" },
    { DML_OPERATOR_SLICE1, 0, ARRAY_A, 1, 6, BAD,
      "SLICE1 InputWindowOffsets[1]: 6, must be at most 5, the last one of InputTensor" },
    { DML_OPERATOR_SLICE1, 0, ARRAY_B, 1, 5, BAD,
      "SLICE1 InputWindowSizes[1]: 5, must be at most 4, as many as InputTensor has there" },
    { DML_OPERATOR_SLICE1, 0, ARRAY_B, 0, 0, BAD, "SLICE1 InputWindowSizes[0]: 0, must be at least 1" },
    { DML_OPERATOR_SLICE1, 0, ARRAY_S, 1, 0, BAD, "SLICE1 InputWindowStrides[1]: 0, must not be 0" },
    { DML_OPERATOR_SLICE1, 0, ARRAY_S, 1, INT32_MIN, BAD,
      "SLICE1 OutputTensor.Sizes[1]: 2, must be 1, 1 + (window size - 1) / |stride|" },
    { DML_OPERATOR_SLICE_GRAD, 0, 0, 1, 3, BAD,
      "SLICE_GRAD InputGradientTensor.Sizes[1]: 3, must be 2, 1 + (window size - 1) / |stride|" },
    { DML_OPERATOR_SLICE_GRAD, 0, ARRAY_A, 0, 9, BAD,
      "SLICE_GRAD InputWindowOffsets[0]: 9, must be at most 3, the last one of OutputGradientTensor" },
    { DML_OPERATOR_JOIN, 0, COUNT, 0, 0, BAD, "JOIN InputTensors: 0 tensors, must be 1 to 1024" },
    { DML_OPERATOR_JOIN, 0, COUNT, 0, 1, BAD,
      "JOIN OutputTensor.Sizes[1]: 7, must be 3, the sum of InputTensors' sizes on Axis" },
    { DML_OPERATOR_JOIN, 0, ARRAY_A, 0, 2, BAD, "JOIN Axis: 2, must be below 2, InputTensors[0].DimensionCount" },
    { DML_OPERATOR_JOIN, 0, 1, 0, 3, BAD, "JOIN InputTensors[1].Sizes[0]: 3, must be 2 as in OutputTensor" },
    { DML_OPERATOR_JOIN, 0, TYPE_OF, 1, U16, BAD,
      "JOIN InputTensors[1].DataType: UINT16, must be FLOAT32 as OutputTensor.DataType" },
    { DML_OPERATOR_JOIN, 0, RANK_OF, 1, 1, BAD,
      "JOIN InputTensors[1].DimensionCount: 1, must be 2 as OutputTensor.DimensionCount" },
    { DML_OPERATOR_JOIN, 0, 2, 1, 8, BAD,
      "JOIN OutputTensor.Sizes[1]: 8, must be 7, the sum of InputTensors' sizes on Axis" },
    { DML_OPERATOR_SPLIT, 0, COUNT, 0, 1, BAD,
      "SPLIT InputTensor.Sizes[1]: 7, must be 3, the sum of OutputTensors' sizes on Axis" },
    { DML_OPERATOR_SPLIT, 0, ARRAY_A, 0, 7, BAD, "SPLIT Axis: 7, must be below 2, InputTensor.DimensionCount" },
    { DML_OPERATOR_SPLIT, 0, 2, 0, 3, BAD, "SPLIT OutputTensors[1].Sizes[0]: 3, must be 2 as in InputTensor" },
    { DML_OPERATOR_SPLIT, 0, TYPE_OF, 2, I32, BAD,
      "SPLIT OutputTensors[1].DataType: INT32, must be FLOAT32 as InputTensor.DataType" },
    { DML_OPERATOR_TILE, 0, COUNT, 0, 1, BAD, "TILE RepeatsCount: 1, must be 2 as InputTensor.DimensionCount" },
    { DML_OPERATOR_TILE, 0, ARRAY_A, 1, 0, BAD, "TILE Repeats[1]: 0, must be at least 1" },
    { DML_OPERATOR_TILE, 0, ARRAY_A, 1, 0xffffffff, BAD,
      "TILE OutputTensor.Sizes[1]: 9, must be 12884901885 as InputTensor's times Repeats" },
    { DML_OPERATOR_PADDING, 0, ARRAY_A, 0, 0xffffffff, BAD,
      "PADDING OutputTensor.Sizes[0]: 3, must be 4294967297 as InputTensor's with padding" },
    { DML_OPERATOR_PADDING, 0, MODE, 0, 5, BAD, "PADDING PaddingMode: 5, must be a DML_PADDING_MODE (0 to 4)" },
    { DML_OPERATOR_PADDING, 0x2100, MODE, 0, 3, NOT_HERE, "PADDING PaddingMode: SYMMETRIC needs feature level 3.0" },
    { DML_OPERATOR_PADDING, 0x6300, MODE, 0, 4, NOT_HERE, "PADDING PaddingMode: WRAP needs feature level 6.4" },
    { DML_OPERATOR_PADDING1, 0x6300, MODE, 0, 4, NOT_HERE, "PADDING1 PaddingMode: WRAP needs feature level 6.4" },
    { DML_OPERATOR_PADDING1, 0, TYPE_OF, 1, I32, BAD,
      "PADDING1 OutputTensor.DataType: INT32, must be FLOAT32 as InputTensor.DataType" },
    { DML_OPERATOR_PADDING1, 0x5100, TYPE_OF, 0, F64, NOT_HERE,
      "PADDING1 InputTensor.DataType: FLOAT64, must be FLOAT32, FLOAT16, UINT32, UINT16, UINT8, INT32, INT16, INT8, "
      "UINT64 or INT64 at feature level 5.1" },
    { DML_OPERATOR_REVERSE_SUBSEQUENCES, 0, ARRAY_A, 0, 2, BAD,
      "REVERSE_SUBSEQUENCES Axis: 2, must be below 2, InputTensor.DimensionCount" },
    { DML_OPERATOR_REVERSE_SUBSEQUENCES, 0, 1, 1, 3, BAD,
      "REVERSE_SUBSEQUENCES SequenceLengthsTensor.Sizes[1]: 3, must be 1 on Axis" },
    { DML_OPERATOR_REVERSE_SUBSEQUENCES, 0, TYPE_OF, 1, U16, BAD,
      "REVERSE_SUBSEQUENCES SequenceLengthsTensor.DataType: UINT16, must be UINT32, INT32, UINT64 or INT64" },
    { DML_OPERATOR_SPACE_TO_DEPTH, 0, ARRAY_A, 0, 0, BAD, "SPACE_TO_DEPTH BlockSize: 0, must be 1 to 65535" },
    { DML_OPERATOR_SPACE_TO_DEPTH, 0, ARRAY_A, 0, 0x80000000, BAD,
      "SPACE_TO_DEPTH BlockSize: 2147483648, must be 1 to 65535" },
    { DML_OPERATOR_SPACE_TO_DEPTH, 0, ARRAY_A, 0, 4, BAD,
      "SPACE_TO_DEPTH InputTensor.Sizes[3]: 6, must be a multiple of 4 by BlockSize" },
    { DML_OPERATOR_SPACE_TO_DEPTH, 0, RANK_OF, 0, 3, BAD, "SPACE_TO_DEPTH InputTensor.DimensionCount: 3, must be 4" },
    { DML_OPERATOR_SPACE_TO_DEPTH1, 0, MODE, 0, 2, BAD,
      "SPACE_TO_DEPTH1 Order: 2, must be a DML_DEPTH_SPACE_ORDER (0 to 1)" },
    { DML_OPERATOR_DEPTH_TO_SPACE, 0, 0, 1, 6, BAD,
      "DEPTH_TO_SPACE InputTensor.Sizes[1]: 6, must be a multiple of 4 by BlockSize" },
    { DML_OPERATOR_DEPTH_TO_SPACE1, 0, 1, 2, 5, BAD,
      "DEPTH_TO_SPACE1 OutputTensor.Sizes[2]: 5, must be 4 by InputTensor.Sizes[2] and BlockSize" },
    { DML_OPERATOR_GATHER, 0, ARRAY_A, 0, 2, BAD, "GATHER Axis: 2, must be below 2, InputTensor.DimensionCount" },
    { DML_OPERATOR_GATHER, 0, ARRAY_A, 1, 3, BAD,
      "GATHER IndexDimensions: 3, must be at most 2, IndicesTensor.DimensionCount" },
    { DML_OPERATOR_GATHER, 0, ARRAY_A, 1, 0, BAD,
      "GATHER IndicesTensor.Sizes[1]: 4, must be 1, it is not one of the last IndexDimensions" },
    { DML_OPERATOR_GATHER, 0, 2, 0, 5, BAD,
      "GATHER OutputTensor.Sizes[0]: 5, must be 4, by InputTensor's and IndicesTensor's sizes" },
    { DML_OPERATOR_GATHER, 0, TYPE_OF, 1, F32, BAD,
      "GATHER IndicesTensor.DataType: FLOAT32, must be UINT32, INT32, UINT64 or INT64" },
    { DML_OPERATOR_GATHER, 0, RANK_OF, 1, 1, BAD,
      "GATHER IndicesTensor.DimensionCount: 1, must be 2 as InputTensor.DimensionCount" },
    { DML_OPERATOR_GATHER_ELEMENTS, 0, 1, 1, 2, BAD,
      "GATHER_ELEMENTS IndicesTensor.Sizes[1]: 2, must be 3 as OutputTensor.Sizes[1]" },
    { DML_OPERATOR_GATHER_ELEMENTS, 0, 0, 1, 2, BAD,
      "GATHER_ELEMENTS IndicesTensor.Sizes[1]: 3, must be at most 2, InputTensor.Sizes[1]" },
    { DML_OPERATOR_GATHER_ND, 0, ARRAY_A, 0, 3, BAD,
      "GATHER_ND InputDimensionCount: 3, must be 1 to 2, the tensor's DimensionCount" },
    { DML_OPERATOR_GATHER_ND, 0, ARRAY_A, 1, 0, BAD,
      "GATHER_ND IndicesDimensionCount: 0, must be 1 to 2, the tensor's DimensionCount" },
    { DML_OPERATOR_GATHER_ND, 0, ARRAY_A, 0, 1, BAD,
      "GATHER_ND InputTensor.Sizes[0]: 5, must be 1, it is not one of the last InputDimensionCount" },
    { DML_OPERATOR_GATHER_ND, 0, 1, 1, 3, BAD,
      "GATHER_ND IndicesTensor.Sizes[1]: 3, must be at most 2, the dimensions that can be indexed" },
    { DML_OPERATOR_GATHER_ND1, 0, ARRAY_A, 2, 3, BAD,
      "GATHER_ND1 BatchDimensionCount: 3, must be below InputDimensionCount (3) and IndicesDimensionCount (3)" },
    { DML_OPERATOR_GATHER_ND1, 0, 1, 0, 3, BAD,
      "GATHER_ND1 IndicesTensor.Sizes[0]: 3, must be 2 as InputTensor's batch dimension" },
    { DML_OPERATOR_GATHER_ND1, 0, ARRAY_A, 2, 0, BAD,
      "GATHER_ND1 OutputTensor.DimensionCount: 3, must be 4 for a result of size 2 first" },
    { DML_OPERATOR_ONE_HOT, 0, 0, 1, 4, BAD, "ONE_HOT IndicesTensor.Sizes[1]: 4, must be 1 on Axis" },
    { DML_OPERATOR_ONE_HOT, 0, 1, 1, 1, BAD, "ONE_HOT ValuesTensor.Sizes[1]: 1, must be 2: off and on value" },
    { DML_OPERATOR_ONE_HOT, 0, TYPE_OF, 1, I32, BAD,
      "ONE_HOT ValuesTensor.DataType: INT32, must be FLOAT32 as OutputTensor.DataType" },
    { DML_OPERATOR_SCATTER_ELEMENTS, 0, ARRAY_A, 0, 2, BAD,
      "SCATTER_ELEMENTS Axis: 2, must be below 2, InputTensor.DimensionCount" },
    { DML_OPERATOR_SCATTER_ELEMENTS, 0, 1, 1, 2, BAD,
      "SCATTER_ELEMENTS IndicesTensor.Sizes[1]: 2, must be 3 as InputTensor.Sizes" },
    { DML_OPERATOR_SCATTER_ELEMENTS, 0, 2, 0, 5, BAD,
      "SCATTER_ELEMENTS UpdatesTensor.Sizes[0]: 5, must be 4 as IndicesTensor.Sizes" },
    { DML_OPERATOR_SCATTER_ELEMENTS, 0, 3, 0, 6, BAD,
      "SCATTER_ELEMENTS InputTensor.Sizes[0]: 5, must be 6 as OutputTensor.Sizes[0]" },
    { DML_OPERATOR_SCATTER_ELEMENTS, 0, TYPE_OF, 2, I32, BAD,
      "SCATTER_ELEMENTS UpdatesTensor.DataType: INT32, must be FLOAT32 as InputTensor.DataType" },
    { DML_OPERATOR_SCATTER_ELEMENTS, 0, TYPE_OF, 1, U16, BAD,
      "SCATTER_ELEMENTS IndicesTensor.DataType: UINT16, must be UINT32, INT32, UINT64 or INT64" },
    { DML_OPERATOR_SCATTER_ELEMENTS, 0, RANK_OF, 2, 1, BAD,
      "SCATTER_ELEMENTS UpdatesTensor.DimensionCount: 1, must be 2 as InputTensor.DimensionCount" },
    { OPJIT_OPERATOR_SCATTER_REDUCE, 0, ARRAY_A, 0, 2, BAD,
      "SCATTER_REDUCE Axis: 2, must be below 2, InputTensor.DimensionCount" },
    { OPJIT_OPERATOR_SCATTER_REDUCE, 0, MODE, 0, 4, BAD,
      "SCATTER_REDUCE Function: 11, must be a DML_REDUCE_FUNCTION (7 to 10)" },
    { OPJIT_OPERATOR_SCATTER_REDUCE, 0, 2, 0, 5, BAD,
      "SCATTER_REDUCE UpdatesTensor.Sizes[0]: 5, must be 4 as IndicesTensor.Sizes" },
    { OPJIT_OPERATOR_SCATTER_REDUCE, 0x6400, MODE, 0, 0, NOT_HERE,
      "SCATTER_REDUCE needs feature level none, this context has 6.4" },
    { DML_OPERATOR_SCATTER_ND, 0, ARRAY_A, 0, 3, BAD,
      "SCATTER_ND InputDimensionCount: 3, must be 1 to 2, the tensor's DimensionCount" },
    { DML_OPERATOR_SCATTER_ND, 0, ARRAY_A, 1, 0, BAD,
      "SCATTER_ND IndicesDimensionCount: 0, must be 1 to 2, the tensor's DimensionCount" },
    { DML_OPERATOR_SCATTER_ND, 0, ARRAY_A, 0, 1, BAD,
      "SCATTER_ND InputTensor.Sizes[0]: 5, must be 1, it is not one of the last dimensions" },
    { DML_OPERATOR_SCATTER_ND, 0, 1, 1, 3, BAD,
      "SCATTER_ND IndicesTensor.Sizes[1]: 3, must be at most 2, InputDimensionCount" },
    { DML_OPERATOR_SCATTER_ND, 0, 2, 1, 2, BAD,
      "SCATTER_ND UpdatesTensor.Sizes[1]: 2, must be 3, by InputTensor's and IndicesTensor's sizes" },
    { DML_OPERATOR_MAX_UNPOOLING, 0, 1, 3, 4, BAD,
      "MAX_UNPOOLING IndicesTensor.Sizes[3]: 4, must be 3 as InputTensor.Sizes" },
    { DML_OPERATOR_MAX_UNPOOLING, 0, TYPE_OF, 1, I32, BAD,
      "MAX_UNPOOLING IndicesTensor.DataType: INT32, must be UINT32 or UINT64" },
    { DML_OPERATOR_MAX_UNPOOLING, 0, TYPE_OF, 2, I32, BAD,
      "MAX_UNPOOLING OutputTensor.DataType: INT32, must be FLOAT32 as InputTensor.DataType" },
    { DML_OPERATOR_MAX_UNPOOLING, 0, RANK_OF, 2, 3, BAD, "MAX_UNPOOLING OutputTensor.DimensionCount: 3, must be 4" },
    { DML_OPERATOR_NONZERO_COORDINATES, 0, 1, 2, 2, BAD,
      "NONZERO_COORDINATES OutputCountTensor.Sizes[2]: 2, must be 1, it is one number" },
    { DML_OPERATOR_NONZERO_COORDINATES, 0, 2, 2, 11, BAD,
      "NONZERO_COORDINATES OutputCoordinatesTensor.Sizes[2]: 11, must be 12, the elements of InputTensor" },
    { DML_OPERATOR_NONZERO_COORDINATES, 0, 2, 1, 2, BAD,
      "NONZERO_COORDINATES OutputCoordinatesTensor.Sizes[1]: 2, must be 1, it is none of the last two" },
    { DML_OPERATOR_NONZERO_COORDINATES, 0, 2, 3, 2, BAD,
      "NONZERO_COORDINATES OutputCoordinatesTensor.Sizes[3]: 2, must be 3 to 4: InputTensor's dimensions without "
      "leading ones, up to all" },
    { DML_OPERATOR_NONZERO_COORDINATES, 0, TYPE_OF, 1, I32, BAD,
      "NONZERO_COORDINATES OutputCountTensor.DataType: INT32, must be UINT32" },
};

static void spoil(built *b, uint32_t where, uint32_t index, int64_t value)
{
    switch (where) {
    case RANK_OF: b->ranks[index] = (uint32_t)value; break;
    case TYPE_OF: b->types[index] = (DML_TENSOR_DATA_TYPE)value; break;
    case ARRAY_A: b->p.a[index] = (uint32_t)value; break;
    case ARRAY_B: b->p.b[index] = (uint32_t)value; break;
    case ARRAY_S: b->p.s[index] = (int32_t)value; break;
    case COUNT: b->count = (uint32_t)value; break;
    case MODE: b->mode = (int32_t)value; break;
    default: b->p.sizes[where][index] = (uint32_t)value; break;
    }
}

START_TEST(refusal_row)
{
    opjit_context *context = test_context_at(refusals[_i].level);
    opjit_operator *op = (opjit_operator *)(uintptr_t)1;
    opjit_error error = { 0 };
    built b;

    build(&b, refusals[_i].type);
    spoil(&b, refusals[_i].where, refusals[_i].index, refusals[_i].value);
    finish(&b);
    const opjit_status status = opjit_operator_create(context, &b.c.op, &op, &error);
    ck_assert_str_eq(error.message, refusals[_i].message);
    ck_assert_int_eq(status, refusals[_i].status);
    ck_assert_ptr_null(op);
    opjit_context_destroy(context);
}
END_TEST

/* --- what is legal ------------------------------------------------------------------------------------------------ */

START_TEST(plain_operators_are_legal_from_their_level_on)
{
    static const uint32_t levels[] = { 0,      0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100,
                                       0x5000, 0x5100, 0x5200, 0x6000, 0x6100, 0x6200, 0x6300, 0x6400 };
    opjit_context *context = test_context_at(levels[_i]);

    for (size_t i = 0; i < sizeof plains / sizeof *plains; i++) {
        const DML_OPERATOR_TYPE type = plains[i].type;
        const bool scatters = type == DML_OPERATOR_SCATTER_ELEMENTS || type == DML_OPERATOR_SCATTER_ND;
        const uint32_t since = type == OPJIT_OPERATOR_SCATTER_REDUCE ? UINT32_MAX
                               : scatters                            ? 0x3000 /* with two dimensions */
                               : type >= 153 ? 0x5000
                               : type >= 121 ? 0x3000
                               : type >= 97  ? 0x2100
                               : type >= 79  ? 0x2000
                                             : 0x1000;
        opjit_operator *op;
        opjit_error error;
        built b;
        build(&b, type);
        finish(&b);
        const opjit_status status = opjit_operator_create(context, &b.c.op, &op, &error);
        ck_assert_msg(status == (levels[_i] == 0 || levels[_i] >= since ? OPJIT_OK : OPJIT_UNSUPPORTED), "%s at %x: %s",
                      move_operator_name(type), (unsigned)levels[_i], error.message);
        opjit_operator_release(op);
    }
    opjit_context_destroy(context);
}
END_TEST

/* Makes every number of every descriptor wrong in turn: refused or legal, never a crash; the message names the
 * operator. */
START_TEST(any_number_is_refused_or_legal)
{
    static const int64_t values[] = { 0, 1, 2, 5, 255, 0x7fffffff, 0x80000000, 0xffffffff };
    opjit_context *context = test_context_at(0);
    unsigned refused = 0;

    for (size_t i = 0; i < sizeof plains / sizeof *plains; i++) {
        for (uint32_t where = 0; where <= MODE; where++) {
            for (uint32_t index = 0; index < 4; index++) {
                for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                    opjit_operator *op;
                    opjit_error error;
                    built b;
                    if ((where >= 4 && where < RANK_OF) || (where <= TYPE_OF && where >= RANK_OF && index == 4) ||
                        (where == COUNT && values[v] > 4 && values[v] <= 65536))
                        continue; /* no such tensor, or an array that is longer than ours */
                    build(&b, plains[i].type);
                    spoil(&b, where, index, values[v]);
                    if (b.count > 2 && (plains[i].type == DML_OPERATOR_JOIN || plains[i].type == DML_OPERATOR_SPLIT) &&
                        b.count <= 1024)
                        continue;
                    if (b.ranks[0] > 4 || b.ranks[1] > 4 || b.ranks[2] > 4 || b.ranks[3] > 4)
                        continue;
                    finish(&b);
                    if (opjit_operator_create(context, &b.c.op, &op, &error) != OPJIT_OK) {
                        const char *name = move_operator_name(plains[i].type);
                        ck_assert_msg(strncmp(error.message, name, strlen(name)) == 0, "%s: %s", name, error.message);
                        refused++;
                    }
                    opjit_operator_release(op);
                }
            }
        }
    }
    ck_assert_uint_ge(refused, 1500);
    opjit_context_destroy(context);
}
END_TEST

/* --- what they are lowered to ------------------------------------------------------------------------------------- */

/* golden/lower/<operator>.ir: every mode or order, one after the other (OPJIT_UPDATE_GOLDEN=1 rewrites it). */
START_TEST(lowered)
{
    const DML_OPERATOR_TYPE type = plains[_i].type;
    const bool is_padding = type == DML_OPERATOR_PADDING || type == DML_OPERATOR_PADDING1;
    const bool has_order = type == DML_OPERATOR_SPACE_TO_DEPTH1 || type == DML_OPERATOR_DEPTH_TO_SPACE1;
    const bool reduces = type == OPJIT_OPERATOR_SCATTER_REDUCE;
    opjit_context *context = test_context_at(0);
    rt_bytes out;

    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    for (int mode = 0; mode < (is_padding ? 5 : reduces ? 4 : has_order ? 2 : 1); mode++) {
        built b;
        build(&b, type);
        b.mode = mode;
        finish(&b);
        test_append_lowered(context, &b.c.op, &out);
    }
    test_compare_lowered(move_operator_name(type), &out);
    opjit_rt_bytes_free(&out);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.moves");
    TCase *tcase = tcase_create("descriptors");
    tcase_add_loop_test(tcase, refusal_row, 0, sizeof refusals / sizeof *refusals);
    tcase_add_loop_test(tcase, plain_operators_are_legal_from_their_level_on, 0, 16);
    tcase_add_loop_test(tcase, lowered, 0, sizeof plains / sizeof *plains);
    tcase_add_test(tcase, any_number_is_refused_or_legal);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
