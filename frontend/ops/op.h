/* SPDX-License-Identifier: Apache-2.0 */
/* op.h - operators as data: one row per operator drives validation, deep copy, key, JSON reading, printing and `opjit
 * ops`.  Adding an operator takes a line in operators.def, a file <name>.c with its row and lowering, its reference and
 * its golden (frontend/README.md).  The build names what is missing. */
#ifndef OPJIT_FRONTEND_OPS_OP_H
#define OPJIT_FRONTEND_OPS_OP_H

#include <stdatomic.h>

#include <opjit/operators.h>
#include <opjit/opjit.h>

#include "ir/ir.h"
#include "runtime/base/context.h"
#include "runtime/call/custom.h"

/* --- fields ------------------------------------------------------------------------------------------------------- */
typedef enum op_field_kind {
    OP_INPUT,        /* const DML_TENSOR_DESC * */
    OP_OUTPUT,       /* const DML_TENSOR_DESC * */
    OP_INPUTS,       /* const DML_TENSOR_DESC *, an array; count in the uint32_t at `count` */
    OP_OUTPUTS,
    OP_DTYPE,        /* DML_TENSOR_DATA_TYPE of the scalars after it: must be that of the operator's first output */
    OP_SCALAR,       /* DML_SCALAR_UNION, of the type that the last OP_DTYPE field before it names */
    OP_INT, OP_UINT, OP_FLOAT, OP_BOOL,
    OP_ENUM,         /* int32_t; names in `names` */
    OP_UINTS, OP_INTS, OP_FLOATS, /* const T *, an array; count in the uint32_t at `count` */
    OP_SCALE_BIAS,   /* const DML_SCALE_BIAS * */
    OP_ACTIVATION,   /* const DML_OPERATOR_DESC *, a fused activation: an operator with OP_FUSABLE, its tensors NULL */
    OP_SIZE_2D,      /* DML_SIZE_2D, in the descriptor itself */
    OP_ACTIVATIONS   /* const DML_OPERATOR_DESC *, an array of such; count in the uint32_t at `count` */
} op_field_kind;

enum {
    OP_OPTIONAL = 1, /* pointer may be NULL; absent in JSON */
    OP_LATE = 2,     /* may be bound at the call (opjit_compile_options.late) */
    OP_COUNT = 4,    /* OP_UINT that counts an array: JSON may omit it, and the array's length is used */
    OP_NONZERO = 8,  /* OP_FLOAT: 0 is refused */
    OP_ONE_UP = 16,  /* OP_FLOAT: less than 1 needs feature level 6.4 */
    OP_BROADCAST = 32 /* OP_INPUT: sizes of 1 stand for all that the first input has there */
};

/* Full DirectML spelling; ends with NULL. */
typedef struct op_enum_name { const char *name; int32_t value; } op_enum_name;
typedef struct op_enum {
    const char *prefix;              /* "DML_PADDING_MODE_": JSON accepts the name with and without it */
    const op_enum_name *names;
} op_enum;

extern const op_enum opjit_fe_axis_directions; /* of DML_AXIS_DIRECTION: moves.c */

typedef struct op_field {
    char name[28];
    uint8_t offset;                  /* in the descriptor struct */
    uint8_t kind, flags;
    uint8_t count;                   /* offset of the count field for arrays */
    const op_enum *enumeration;      /* OP_ENUM */
} op_field;

static inline bool op_is_input(const op_field *field)
{
    return field->kind == OP_INPUT || field->kind == OP_INPUTS;
}
static inline bool op_is_tensor_array(const op_field *field)
{
    return field->kind == OP_INPUTS || field->kind == OP_OUTPUTS;
}

/* The name's NUL has to fit, and so has the offset: no compiler warns of what doesn't. */
#define OP_FITS(type, member) \
    (sizeof #member <= sizeof(((op_field *)0)->name) && offsetof(type, member) <= UINT8_MAX)
#define OP_OFFSET(type, member) (offsetof(type, member) + 0 * sizeof(char[OP_FITS(type, member) ? 1 : -1]))
#define OP_FIELD(type, member, kind_, flags_)                    \
    {                                                            \
#member, OP_OFFSET(type, member), kind_, flags_, 0, NULL \
    }
#define OP_FIELD_ARRAY(type, member, count_member, kind_, flags_)                           \
    {                                                                                       \
#member, OP_OFFSET(type, member), kind_, flags_, OP_OFFSET(type, count_member), NULL \
    }
#define OP_FIELD_ENUM(type, member, enum_)                     \
    {                                                          \
#member, OP_OFFSET(type, member), OP_ENUM, 0, 0, enum_ \
    }

/* --- what is supported -------------------------------------------------------------------------------------------- */
#define OP_TYPES(t) (1u << DML_TENSOR_DATA_TYPE_##t)
#define OP_TYPES_FLOAT (OP_TYPES(FLOAT32) | OP_TYPES(FLOAT16))
#define OP_TYPES_INT_TO_32 \
    (OP_TYPES(INT32) | OP_TYPES(INT16) | OP_TYPES(INT8) | OP_TYPES(UINT32) | OP_TYPES(UINT16) | OP_TYPES(UINT8))
#define OP_TYPES_INT_8 (OP_TYPES(INT8) | OP_TYPES(UINT8))
#define OP_TYPES_INT_4 (OP_TYPES(INT4) | OP_TYPES(UINT4))
#define OP_TYPES_INT_64 (OP_TYPES(INT64) | OP_TYPES(UINT64))
#define OP_TYPES_ALL (OP_TYPES_FLOAT | OP_TYPES(FLOAT64) | OP_TYPES_INT_TO_32 | OP_TYPES_INT_64)

/* Ranks and types of `field` (NULL: all tensors of the operator) from feature level `level` on.  The rows of one field
 * are in ascending order; the last one at or below the context's level applies.  level 0 means no feature level (the
 * newest one plus opjit's extensions); without such a row the newest one applies. */
typedef struct op_support {
    const char *field;
    uint16_t level;
    uint8_t rank_min, rank_max;
    uint32_t types;                  /* bit DML_TENSOR_DATA_TYPE */
} op_support;

/* --- operators ---------------------------------------------------------------------------------------------------- */
/* A checked and resolved tensor of a descriptor. */
typedef struct fe_tensor {
    bool present, broadcasts;        /* broadcasts: an input with OP_BROADCAST */
    DML_TENSOR_DATA_TYPE dtype;
    DML_TENSOR_FLAGS flags;
    uint32_t rank;
    uint64_t sizes[8];
    uint64_t strides[8];             /* elements; packed row-major if none were given; 0 for dimensions of size 1 */
    uint64_t bytes;                  /* TotalTensorSizeInBytes, or the implied minimum rounded up to 4 */
    uint64_t span;                   /* index of the last element + 1 */
    uint64_t elements;
    uint32_t align;                  /* bytes: the larger of element size and GuaranteedBaseOffsetAlignment */
} fe_tensor;

typedef struct op_def op_def;

/* One allocation: the arena's first block, which holds everything that the pointers lead to, follows the struct. */
struct opjit_operator {
    atomic_uint references;
    uint32_t core_counter;           /* of the reference to core */
    rt_core *core;
    size_t size;                     /* of the allocation */
    const op_def *def;
    const rt_custom *custom;         /* the function of a custom operator, whose row is its own; else NULL */
    uint32_t level;                  /* the DML_FEATURE_LEVEL it was checked for, 0: none; for validate */
    void *desc;                      /* deep copy of the descriptor struct, pointers into arena */
    fe_tensor *inputs, *outputs;     /* by position among the tensors: arrays expanded, absent optional ones kept */
    const char **input_names, **output_names; /* "InputTensor" (from the row), "InputTensors[1]" */
    uint32_t input_count, output_count;
    rt_bytes key;                    /* in the arena while it fits; canonical: equal keys lower to equal IR */
    uint64_t hash;
    rt_arena arena;
};

/* What a lowering works with.  Inputs are IN tensors, constants, or the DEFs of other nodes; outputs are OUT tensors
 * (YIELD) or DEFs: the lowering need not know which. */
typedef struct op_lowering {
    ir_func *f;
    const opjit_operator *op;
    uint32_t *inputs;                /* IR tensor by input position; 0: absent */
    uint32_t *outputs;               /* IR tensor by output position */
    const uint32_t *late;            /* by field index: IR param, 0: a constant */
    uint32_t flags;                  /* opjit_compile_options.flags */
    uint64_t masks;                  /* bit i: a generator or constant produces input i, and masks_absorb is on */
    uint64_t unread;                 /* bit i: nobody reads output i */
    ir_ref last;                     /* a late statement of the function, from where its end is searched; 0: none */
} op_lowering;

/* What the formula of a pointwise operator works with (pointwise.h). */
typedef struct op_element {
    ir_func *f;
    const void *desc;                /* the descriptor struct; a fused activation's own */
    ir_type type;                    /* of the first input's values; FLOAT32 for FLOAT16 */
    ir_type result;                  /* of the output tensor */
    uint64_t masks;                  /* as in op_lowering */
} op_element;

/* A data type and sizes, without a layout. */
typedef struct op_shape {
    DML_TENSOR_DATA_TYPE dtype;      /* UNKNOWN: not known yet */
    uint32_t rank;                   /* 0: an absent input; an output whose sizes are not known yet */
    uint64_t sizes[OPJIT_MAX_RANK];
    bool broadcasts;                 /* an input with OP_BROADCAST: its sizes of 1 stay */
} op_shape;

/* What follows from the inputs of an operator whose outputs were not described (infer.h). */
typedef struct op_inference {
    const op_def *def;               /* the operator's row */
    const void *desc;                /* the descriptor struct: arrays are there if they are counted, tensors are not */
    op_shape *inputs; /* by position; a rule broadcasts sizes of 1, and leading ones, to the operator's */
    op_shape *outputs;               /* what the caller asked for stays as it is, a rule fills in the rest */
    uint32_t input_count, output_count;
} op_inference;

/* Traits of operators. */
enum {
    OP_FUSABLE = 1,                  /* may be a FusedActivation: pointwise, and its fields are tensors and OP_FLOATs */
    OP_KEEPS_BITS = 2                /* rounds nothing, so FLOAT16 is not widened unless there is a ScaleBias */
};

struct op_def {
    DML_OPERATOR_TYPE type;
    uint16_t desc_size;
    uint16_t introduced;             /* DML_FEATURE_LEVEL; 0: in none, opjit's own */
    const char *name;                /* "DIAGONAL_MATRIX1" */
    const char *formula;             /* one line for `opjit ops` */
    const op_field *fields;
    const op_support *support;
    uint8_t field_count, support_count;
    uint8_t traits; /* OP_FUSABLE ... */
    /* Checks what fields and support rows can't express: equal sizes, equal types.  NULL: nothing. */
    opjit_status (*validate)(const opjit_operator *op, opjit_error *error);
    /* What outputs are where the caller leaves that open.  It need not refuse anything: whatever it says is validated
     * as if the caller had said it.  NULL: nothing follows. */
    void (*infer)(op_inference *s);
    /* Writes the documented formula literally.  Fails only for lack of memory (l->f->failed). */
    void (*lower)(op_lowering *l);
    /* Pointwise operators: the formula for one element, x by input position (0: absent); else NULL. */
    ir_ref (*element)(const op_element *e, const ir_ref *x);
};

/* For rows: these arrays with their counts. */
#define OP_ROWS(fields_, support_)                                                                         \
    .fields = fields_, .field_count = (uint8_t)(sizeof(fields_) / sizeof *(fields_)), .support = support_, \
    .support_count = (uint8_t)(sizeof(support_) / sizeof *(support_))
#define OP_FIELDS_MAX 64u /* of one operator, because sets of fields are bits of a uint64_t */

/* A descriptor's field by its name, for what rows of a family share; NULL: this row has no such field. */
const void *opjit_fe_field(const op_def *def, const void *desc, const char *name);

/* What the tables call operators of opjit's own. */
#define DML_OPERATOR_SCATTER_REDUCE OPJIT_OPERATOR_SCATTER_REDUCE
#define DML_OPERATOR_DYNAMIC_QUANTIZE_LSTM OPJIT_OPERATOR_DYNAMIC_QUANTIZE_LSTM

/* Whether a feature level (0: none) has the operator. */
static inline bool op_is_at(const op_def *def, uint32_t level)
{
    return level == 0 || (def->introduced != 0 && level >= def->introduced);
}

/* operators.def has a line OPERATOR(diagonal_matrix1, DIAGONAL_MATRIX1) per row; rows are `const op_def
 * opjit_fe_op_<name>`. */
const op_def *opjit_fe_op_find(DML_OPERATOR_TYPE type);              /* NULL: no such type */
const op_def *opjit_fe_op_find_name(const char *name, size_t length);/* with or without DML_OPERATOR_; exact case */
const op_def *opjit_fe_op_at(uint32_t index);                        /* in operators.def's order; NULL past the end */
const char *opjit_fe_op_type_name(DML_OPERATOR_TYPE type);           /* any of DirectML's, such as "GEMM"; NULL: none */
/* What a feature level (0: none) allows for field (NULL: all tensors); NULL: the level lacks the operator. */
const op_support *opjit_fe_op_support(const op_def *def, const char *field, uint32_t level);
/* A set of types as text: "FLOAT32/16, UINT8", "all eleven". */
#define FE_TYPES_TEXT 80u
void opjit_fe_types_text(uint32_t types, char text[static FE_TYPES_TEXT]);

/* --- for rows' validate functions (rules.c) ----------------------------------------------------------------------- */
/* Input and output have the same DataType, DimensionCount and Sizes; the message is about the input. */
opjit_status opjit_fe_same_shape(const opjit_operator *op, uint32_t input, uint32_t output, opjit_error *error);
/* Parts of that check. */
opjit_status opjit_fe_same_sizes(const opjit_operator *op, uint32_t input, uint32_t output, opjit_error *error);
opjit_status opjit_fe_same_type(const opjit_operator *op, uint32_t input, uint32_t output, opjit_error *error);
/* Each size of an input with OP_BROADCAST is the first input's or 1. */
opjit_status opjit_fe_broadcast_sizes(const opjit_operator *op, uint32_t input, opjit_error *error);
/* Two inputs have the same DataType; an absent one matches any. */
opjit_status opjit_fe_same_input_type(const opjit_operator *op, uint32_t input, uint32_t as, opjit_error *error);

/* --- for lowerings (lower.c) -------------------------------------------------------------------------------------- */
/* Appends a statement, searching for the end from l->last on, and returns it; 0 where the function has failed. */
ir_ref opjit_fe_append(op_lowering *l, ir_ref statement);
/* Appends and returns the statement (DEF or YIELD) that makes output i; set its value with opjit_ir_set_value. */
ir_ref opjit_fe_output(op_lowering *l, uint32_t i);
/* The statement that makes a part of output i, which is memory (role IR_OUT): its coordinates start at offsets. */
ir_ref opjit_fe_output_box(op_lowering *l, uint32_t i, const uint64_t *offsets, const uint64_t *sizes);
ir_type opjit_fe_output_type(const op_lowering *l, uint32_t i);
/* Input i at the coordinates of statement `out` (same rank); 0 where an input with OP_BROADCAST has a size of 1. */
ir_ref opjit_fe_input_at(op_lowering *l, uint32_t i, ir_ref out);
/* Scalar fields as IR: a constant, or the parameter that the field is bound to late.  Fields by their names in the
 * descriptor struct. */
ir_ref opjit_fe_int(op_lowering *l, const char *field);              /* OP_INT: index */
ir_ref opjit_fe_float(op_lowering *l, const char *field);            /* OP_FLOAT: f32 */
ir_ref opjit_fe_scalar(op_lowering *l, const char *field);           /* OP_SCALAR: of its data type */

/* The sizes of the bytes of a tensor of a 4-bit type as a tensor: one dimension. */
static inline void opjit_fe_byte_sizes(const fe_tensor *t, uint64_t sizes[8])
{
    for (uint32_t d = 0; d < 8; d++)
        sizes[d] = d == 0 ? (t->span + 1) / 2 : 1;
}

/* --- tensors (tensor.c) ------------------------------------------------------------------------------------------- */
/* Checks one tensor descriptor completely and resolves it.  Messages begin with op and tensor, such as
 * "DIAGONAL_MATRIX1" and "OutputTensor". */
opjit_status opjit_fe_tensor_resolve(const DML_TENSOR_DESC *desc, bool is_output, const char *op, const char *tensor,
                                     fe_tensor *out, opjit_error *error);

#endif
