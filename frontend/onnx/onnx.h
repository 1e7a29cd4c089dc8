/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.h - an .onnx file as records: what read.c makes of its bytes.  Names, strings and elements borrow from the file;
 * the records are in an arena.  Field numbers are those of onnx.proto, version 1.23. */
#ifndef OPJIT_FRONTEND_ONNX_ONNX_H
#define OPJIT_FRONTEND_ONNX_ONNX_H

#include "frontend/onnx/wire.h"

#define ONNX_RANK 8u         /* of a tensor: opjit's */
#define ONNX_DEPTH 32u       /* of graphs in graphs, and of functions that use functions */
#define ONNX_NUMBERS 1000000 /* of an attribute */
#define ONNX_NODES 1000000u  /* that are imported */
#define ONNX_FOLLOWED 1000u  /* constants, each made of the one before, that follow from a dynamic dimension */
#define ONNX_OTHER_DOMAINS (-1) /* in place of an opset: operators of other domains alone are imported */

/* TensorProto.DataType. */
typedef enum onnx_type {
    ONNX_UNDEFINED = 0, ONNX_FLOAT = 1, ONNX_UINT8 = 2, ONNX_INT8 = 3, ONNX_UINT16 = 4, ONNX_INT16 = 5, ONNX_INT32 = 6,
    ONNX_INT64 = 7, ONNX_STRING = 8, ONNX_BOOL = 9, ONNX_FLOAT16 = 10, ONNX_DOUBLE = 11, ONNX_UINT32 = 12,
    ONNX_UINT64 = 13, ONNX_BFLOAT16 = 16, ONNX_UINT4 = 21, ONNX_INT4 = 22,
    ONNX_SEQUENCE = 64, /* of a value, no tensor's: a list of values */
    ONNX_NO_VALUE = 65, /* likewise: an optional one that there is not */
} onnx_type;
/* opjit's type of the elements in files, inputs and outputs, bool being UINT8; UNKNOWN: there is none. */
DML_TENSOR_DATA_TYPE opjit_onnx_stored_dtype(int32_t type);
/* The type that graphs compute them in: FLOAT32 for float16, which is rounded by casts and for outputs alone. */
DML_TENSOR_DATA_TYPE opjit_onnx_dtype(int32_t type);
/* "float32"; "type 99" for what has no name here. */
typedef struct onnx_type_text {
    char text[24];
} onnx_type_text;
onnx_type_text opjit_onnx_type_name(int32_t type);

/* A tensor whose elements are in the file, or in another one. */
typedef struct onnx_tensor {
    wire_bytes name;
    int32_t type; /* onnx_type */
    uint32_t rank;
    uint64_t dims[ONNX_RANK];
    uint64_t elements;
    wire_bytes raw;     /* elements, lowest byte first; data NULL: in typed fields */
    wire_bytes message; /* of the whole tensor, to find typed fields in */
    uint32_t field;     /* their number; 0: there are none */
    wire_bytes packed;  /* the last one of them */
    uint64_t typed;     /* how many these are */
    bool external;
    wire_bytes location; /* of the file, relative to the model's folder */
    uint64_t offset, length;
    bool has_length;
} onnx_tensor;

struct onnx_graph;

/* AttributeProto.AttributeType, by its numbers; UNSAID: an old file does not say. */
typedef enum onnx_attribute_type {
    ONNX_IS_UNSAID,
    ONNX_IS_FLOAT,
    ONNX_IS_INT,
    ONNX_IS_TEXT,
    ONNX_IS_TENSOR,
    ONNX_IS_GRAPH,
    ONNX_IS_FLOATS,
    ONNX_IS_INTS,
    ONNX_IS_TEXTS,
} onnx_attribute_type;

typedef struct onnx_attribute {
    wire_bytes name;
    int32_t type; /* onnx_attribute_type */
    float f;
    int64_t i;
    wire_bytes s;
    wire_bytes reference;    /* the name of the function's attribute whose value it has; size 0: none */
    onnx_tensor *tensor;     /* NULL: none */
    struct onnx_graph *graph; /* NULL: none */
    uint32_t count;          /* of one of the next three */
    int64_t *ints;
    float *floats;
    wire_bytes *strings;
} onnx_attribute;

typedef struct onnx_node {
    wire_bytes name, op, domain;
    wire_bytes *inputs, *outputs; /* names; size 0: absent */
    onnx_attribute *attributes;
    uint32_t input_count, output_count, attribute_count;
    uint32_t index; /* in its graph */
} onnx_node;

/* One size of an input or output: a number, a name, or neither. */
typedef struct onnx_dim {
    bool known;
    uint64_t size;
    wire_bytes name; /* size 0: none */
} onnx_dim;

/* An input or output of the graph. */
typedef struct onnx_port {
    wire_bytes name;
    int32_t type; /* onnx_type; 0: no tensor */
    bool has_shape;
    uint32_t rank;
    onnx_dim dims[ONNX_RANK];
} onnx_port;

typedef struct onnx_graph {
    wire_bytes name;
    onnx_node *nodes;
    onnx_tensor *initializers;
    onnx_port *inputs, *outputs;
    uint32_t node_count, initializer_count, input_count, output_count;
    bool sparse; /* it has sparse initializers */
} onnx_graph;

/* A function of the model: a node of that domain and name stands for its nodes. */
typedef struct onnx_function {
    wire_bytes name, domain;
    wire_bytes *inputs, *outputs, *attributes; /* names */
    onnx_attribute *defaults;                  /* of attributes that a node leaves out */
    onnx_node *nodes;
    uint32_t input_count, output_count, attribute_count, default_count, node_count;
    int64_t opset; /* of the default domain; not above 0: the model's */
    const struct onnx_function *next; /* one of the same name, in another domain */
} onnx_function;

typedef struct onnx_model {
    int64_t ir_version;
    int64_t opset; /* of the default domain; ONNX_OTHER_DOMAINS; 0: it imports none */
    onnx_graph *graph;
    onnx_function *functions;
    uint32_t function_count;
} onnx_model;

/* Reads the bytes of a file, which *out borrows from.  CORRUPT: it is no .onnx file, or a damaged one. */
opjit_status opjit_onnx_read(wire_bytes file, rt_arena *arena, onnx_model *out, opjit_error *error);
/* Whether the file has as many elements of a tensor, which is not external, as its sizes say; CORRUPT: it has not. */
opjit_status opjit_onnx_check_elements(const onnx_tensor *t, opjit_error *error);
/* The type that constants of the type are read as: FLOAT for bfloat16, eight bits for four. */
int32_t opjit_onnx_read_type(int32_t type);
/* Makes elements of that type of those that the file has, packed. */
void opjit_onnx_widen(const onnx_tensor *t, const void *packed, void *out);
/* Copies elements that were checked, packed, to out, which has room for them. */
void opjit_onnx_elements(const onnx_tensor *t, void *out);
/* Bytes of the elements in the file; the type has a size. */
uint64_t opjit_onnx_tensor_bytes(const onnx_tensor *t);

/* Names in messages: the beginning of a long one. */
#define ONNX_NAME "%.*s"
#define ONNX_SHOW(s) (int)((s).size > 80 ? 80 : (s).size), (s).size == 0 ? "" : (const char *)(s).data

#endif
