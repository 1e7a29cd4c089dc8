/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/reflect.h - what this build of opjit can do, as data: operators, their fields, the names of their enumerations,
 * the ranks and data types that each feature level allows; what an operator that was made looks like; and what a kernel
 * will need before any code is made; what this build and this machine are.  Since 0.1.
 *
 *     for (uint32_t i = 0; i < opjit_operator_type_count(); i++) {
 *         opjit_operator_type_info info = OPJIT_OPERATOR_TYPE_INFO_INIT;
 *         opjit_operator_type_get_info(opjit_operator_type_at(i), &info, NULL);
 *         if (opjit_query_support(info.type, NULL, DML_TENSOR_DATA_TYPE_FLOAT16, 4, 0, NULL, NULL) == OPJIT_OK)
 *             printf("%s: %s\n", info.name, info.formula);
 *     }
 *
 * A graph compiler asks opjit_query_support before it gives a node to opjit, walks the fields to fill descriptors from
 * a format of its own, and asks a plan for the workspace and for the outputs that may share memory with an input.
 *
 * Rules of this header, beside those of opjit/opjit.h:
 *   - Everything before "operators that were made" answers from constant tables: no context, no allocation, no lock.
 *   - Strings and arrays of those functions are static: they live as long as the library is loaded.
 *   - The same rows drive opjit_operator_create, the graph builder, JSON models and `opjit ops`, so they can't differ.
 *   - Feature levels are DML_FEATURE_LEVEL's numbers; 0 stands for none: the newest one plus opjit's extensions. */
#ifndef OPJIT_REFLECT_H
#define OPJIT_REFLECT_H

#include <opjit/opjit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- data types and feature levels -------------------------------------------------------------------------------- */
/* "FLOAT32"; "unknown" for what is no data type. [any thread, 0.1] */
OPJIT_API const char *opjit_data_type_name(DML_TENSOR_DATA_TYPE type);
/* Bytes of one element; 0 for UNKNOWN, for the types of 4 bits, which have two in a byte, and for what is none.
 * [any thread, 0.1] */
OPJIT_API uint32_t opjit_data_type_size(DML_TENSOR_DATA_TYPE type);
#define OPJIT_DATA_TYPES_TEXT 80 /* bytes of any text of opjit_data_types_text, final NUL included */
/* A set of types, bit DML_TENSOR_DATA_TYPE, for people: "FLOAT32/16, UINT8", or "all eleven".  [any thread, 0.1] */
OPJIT_API void opjit_data_types_text(uint32_t types, char text[OPJIT_DATA_TYPES_TEXT]);
/* The bits of the FLOAT16 that is nearest, ties to even: what CAST gives.  A finite value that would round beyond 65504
 * becomes an infinity, a NaN stays one.  [any thread, 0.1] */
OPJIT_API uint16_t opjit_float16_from_double(double value);
/* The value of a FLOAT16's bits, which every float can hold.  [any thread, 0.1] */
OPJIT_API float opjit_float16_to_float(uint16_t bits);
/* The feature levels, ascending: DML_FEATURE_LEVEL_1_0 first; 0 behind the last. [any thread, 0.1] */
OPJIT_API uint32_t opjit_feature_level_at(uint32_t index);

/* --- types of operators ------------------------------------------------------------------------------------------- */
/* How many operators this build has, and the index-th of them; DML_OPERATOR_INVALID behind the last.
 * [any thread, 0.1] */
OPJIT_API uint32_t opjit_operator_type_count(void);
OPJIT_API DML_OPERATOR_TYPE opjit_operator_type_at(uint32_t index);
/* The operator of this build with that name, as "GATHER" or "DML_OPERATOR_GATHER", exact case; DML_OPERATOR_INVALID:
 * there is none.  NULL is fine. [any thread, 0.1] */
OPJIT_API DML_OPERATOR_TYPE opjit_operator_type_find(const char *name);

/* "GATHER", also of DirectML's operators that this build lacks; NULL: there is none of that number.
 * [any thread, 0.1] */
OPJIT_API const char *opjit_operator_type_name(DML_OPERATOR_TYPE type);

#define OPJIT_OPERATOR_POINTWISE 1u /* an output element is a formula over the input elements at its coordinates */
#define OPJIT_OPERATOR_FUSABLE 2u   /* may be a FusedActivation of other operators */

typedef struct opjit_operator_type_info {
    uint32_t struct_size; /* set by its _INIT macro */
    DML_OPERATOR_TYPE type;  /* its number */
    const char *name;        /* "DIAGONAL_MATRIX1" */
    const char *formula;     /* one line for people */
    uint32_t feature_level;  /* the first that has it; 0: none, it is one of opjit/operators.h */
    uint32_t desc_bytes;     /* size of its DML_..._OPERATOR_DESC */
    uint32_t field_count;    /* fields of that structure */
    uint32_t support_count;  /* rows of ranks and data types */
    uint32_t flags;          /* OPJIT_OPERATOR_... */
    uint32_t reserved;       /* 0 */
} opjit_operator_type_info;
#define OPJIT_OPERATOR_TYPE_INFO_INIT \
    { sizeof(opjit_operator_type_info), DML_OPERATOR_INVALID, NULL, NULL, 0, 0, 0, 0, 0, 0 }

/* Expected failures: INVALID_ARGUMENT for what is no DML_OPERATOR_TYPE, UNSUPPORTED for one that this build lacks.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_type_get_info(DML_OPERATOR_TYPE type,
                                                                    opjit_operator_type_info *out_info,
                                                                    opjit_error *error);

/* --- fields ------------------------------------------------------------------------------------------------------- */
typedef enum opjit_field_kind {
    OPJIT_FIELD_INPUT = 0,      /* const DML_TENSOR_DESC * */
    OPJIT_FIELD_OUTPUT = 1,     /* const DML_TENSOR_DESC * */
    OPJIT_FIELD_INPUTS = 2,     /* const DML_TENSOR_DESC *, an array */
    OPJIT_FIELD_OUTPUTS = 3,    /* const DML_TENSOR_DESC *, an array */
    OPJIT_FIELD_DATA_TYPE = 4,  /* DML_TENSOR_DATA_TYPE of the scalars behind it: the first output's */
    OPJIT_FIELD_SCALAR = 5,     /* DML_SCALAR_UNION of the type that the last DATA_TYPE field before it names */
    OPJIT_FIELD_INT32 = 6,
    OPJIT_FIELD_UINT32 = 7,
    OPJIT_FIELD_FLOAT32 = 8,
    OPJIT_FIELD_BOOL = 9,       /* int32_t: anything but 0 is true */
    OPJIT_FIELD_ENUM = 10,      /* int32_t: one of opjit_field_value_at's */
    OPJIT_FIELD_UINT32S = 11,   /* const uint32_t *, an array */
    OPJIT_FIELD_INT32S = 12,    /* const int32_t *, an array */
    OPJIT_FIELD_FLOAT32S = 13,  /* const float *, an array */
    OPJIT_FIELD_SCALE_BIAS = 14, /* const DML_SCALE_BIAS * */
    OPJIT_FIELD_ACTIVATION = 15, /* const DML_OPERATOR_DESC *: an operator that is FUSABLE, its tensors NULL */
    OPJIT_FIELD_SIZE_2D = 16,   /* DML_SIZE_2D, in the descriptor itself */
    OPJIT_FIELD_ACTIVATIONS = 17 /* const DML_OPERATOR_DESC *, an array of such */
} opjit_field_kind;

#define OPJIT_FIELD_OPTIONAL 1u /* the pointer may be NULL */
#define OPJIT_FIELD_LATE 2u     /* may be bound at the call: opjit_compile_options.late */
#define OPJIT_FIELD_COUNT 4u    /* UINT32 that counts the elements of an array field */
#define OPJIT_FIELD_NONZERO 8u  /* FLOAT32: 0 is refused */
#define OPJIT_FIELD_ONE_UP 16u  /* FLOAT32: less than 1 needs feature level 6.4 */
#define OPJIT_FIELD_BROADCAST 32u /* INPUT: each size is the first input's or 1, which stands for all of them */

typedef struct opjit_field_info {
    uint32_t struct_size; /* set by its _INIT macro */
    opjit_field_kind kind;   /* what the member is */
    const char *name;        /* "InputTensor": the member of the structure */
    uint32_t flags;          /* OPJIT_FIELD_OPTIONAL ... */
    uint32_t offset;         /* bytes, in the structure */
    uint32_t count_offset;   /* arrays: bytes, of the uint32_t that counts their elements; else 0 */
    uint32_t value_count;    /* ENUM: how many values it may have */
    const char *enum_prefix; /* ENUM: what all its values' names begin with, "DML_PADDING_MODE_"; else NULL */
} opjit_field_info;
#define OPJIT_FIELD_INFO_INIT { sizeof(opjit_field_info), OPJIT_FIELD_INPUT, NULL, 0, 0, 0, 0, NULL }

/* The index-th field of the type's structure, in the order of its members.
 * Expected failures: those of opjit_operator_type_get_info; NOT_FOUND behind the last field. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_type_get_field(DML_OPERATOR_TYPE type, uint32_t index,
                                                                     opjit_field_info *out_info, opjit_error *error);
/* The name of the index-th value of an ENUM field without its prefix ("EDGE"), and the value in *out_value, which may
 * be NULL.  NULL: there is no such value or no such field. [any thread, 0.1] */
OPJIT_API const char *opjit_field_value_at(DML_OPERATOR_TYPE type, uint32_t field, uint32_t index, int32_t *out_value);

/* --- ranks and data types ----------------------------------------------------------------------------------------- */
/* Of the tensor `tensor` (NULL: of all that have no rows of their own) from `feature_level` on, up to the tensor's next
 * row; 0: without a feature level, where that is more than the newest level's row. */
typedef struct opjit_support_info {
    uint32_t struct_size; /* set by its _INIT macro */
    uint32_t feature_level;     /* DML_FEATURE_LEVEL, or 0 */
    const char *tensor;         /* "IndicesTensor", or NULL */
    uint32_t rank_min, rank_max; /* dimensions, both included */
    uint32_t types;             /* bit DML_TENSOR_DATA_TYPE */
    uint32_t reserved;          /* 0 */
} opjit_support_info;
#define OPJIT_SUPPORT_INFO_INIT { sizeof(opjit_support_info), 0, NULL, 0, 0, 0, 0 }

/* The index-th row as it stands.  Expected failures: as opjit_operator_type_get_field. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_type_get_support(DML_OPERATOR_TYPE type, uint32_t index,
                                                                       opjit_support_info *out_info,
                                                                       opjit_error *error);
/* The row that holds for a tensor field of the type at a feature level.  tensor: NULL: all without rows of their own.
 * Expected failures: those of opjit_operator_type_get_info; NOT_FOUND: no such tensor; UNSUPPORTED: the level has no
 * such operator. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_type_find_support(DML_OPERATOR_TYPE type, const char *tensor,
                                                                        uint32_t feature_level,
                                                                        opjit_support_info *out_info,
                                                                        opjit_error *error);

/* Whether the operator takes a tensor of that data type and rank.
 *   tensor         the field's name ("IndicesTensor"); NULL: the operator's first output
 *   rank           1 to OPJIT_MAX_RANK
 *   feature_level  as above
 *   target         "cpu:x86-64-v3" or any other target string; NULL: not looked at
 * OPJIT_OK: there are descriptors with such a tensor that opjit_operator_create accepts at that level, and this build
 * makes code for the target.  Sizes, and types of tensors that depend on each other, are that function's business.
 * Otherwise: INVALID_ARGUMENT: no level has it, or the target is none; UNSUPPORTED: other levels or builds have it;
 * NOT_FOUND: no such tensor; UNAVAILABLE: a build without code generation was asked about a target.  The message says
 * what was given and what is allowed. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_query_support(DML_OPERATOR_TYPE type, const char *tensor,
                                                           DML_TENSOR_DATA_TYPE dtype, uint32_t rank,
                                                           uint32_t feature_level, const char *target,
                                                           opjit_error *error);

/* --- operators that were made ------------------------------------------------------------------------------------- */
typedef struct opjit_operator_info {
    uint32_t struct_size; /* set by its _INIT macro */
    DML_OPERATOR_TYPE type;             /* DML_OPERATOR_INVALID: a custom operator */
    const char *name;                   /* "GATHER", or a custom operator's own; owned by the operator */
    uint32_t input_count, output_count; /* positions: arrays expanded, absent optional tensors counted */
    uint32_t feature_level;             /* that it was checked for */
    uint32_t reserved;                  /* 0 */
} opjit_operator_info;
#define OPJIT_OPERATOR_INFO_INIT { sizeof(opjit_operator_info), DML_OPERATOR_INVALID, NULL, 0, 0, 0, 0 }

/* What the operator is.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_get_info(const opjit_operator *op, opjit_operator_info *out_info,
                                                               opjit_error *error);

/* A tensor of an operator, as it was resolved. */
typedef struct opjit_tensor_info {
    uint32_t struct_size; /* set by its _INIT macro */
    uint32_t rank;              /* 1 to 8; 0: an absent optional tensor, of which only the name is said */
    const char *name;           /* "InputTensor", "InputTensors[1]"; owned by the operator */
    DML_TENSOR_DATA_TYPE dtype; /* of its elements */
    DML_TENSOR_FLAGS flags;     /* OWNED_BY_DML or 0 */
    uint64_t sizes[8];          /* elements; unused ones 1 */
    uint64_t strides[8];        /* elements, packed ones where none were given; 0 where the size is 1 */
    uint64_t elements;          /* the product of the sizes */
    uint64_t bytes;             /* a binding must have at least this many */
    uint32_t align;             /* bytes; what a binding's address must be a multiple of */
    uint32_t reserved;          /* 0 */
} opjit_tensor_info;
#define OPJIT_TENSOR_INFO_INIT \
    { sizeof(opjit_tensor_info), 0, NULL, DML_TENSOR_DATA_TYPE_UNKNOWN, DML_TENSOR_FLAG_NONE, { 0 }, { 0 }, 0, 0, 0, 0 }

/* The index-th input or output.  NOT_FOUND behind the last. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_get_input(const opjit_operator *op, uint32_t index,
                                                                opjit_tensor_info *out_info, opjit_error *error);
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_get_output(const opjit_operator *op, uint32_t index,
                                                                 opjit_tensor_info *out_info, opjit_error *error);

/* --- graphs ------------------------------------------------------------------------------------------------------- */
/* Checks the description of a graph as opjit_compile_graph does, but lowers nothing; the time is linear in the graph.
 * Writes what the inputs and outputs are into two arrays of as many elements as desc->InputCount and OutputCount, whose
 * struct_size is set in each; either may be NULL.
 *   input   the tensor of one of its readers, with the bytes and the alignment that all of them need, OWNED_BY_DML
 *           where one of them is; rank 0: no edge leads from it
 *   output  the tensor of the node that writes it; a constant is as many UINT8 as it has bytes
 * Their names are NULL: edges have names.  The operators belong to the caller as before.
 * Expected failures: those of opjit_compile_graph.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_check_graph(opjit_context *context, const DML_GRAPH_DESC *desc,
                                                         opjit_tensor_info *inputs, opjit_tensor_info *outputs,
                                                         opjit_error *error);

/* --- plans -------------------------------------------------------------------------------------------------------- */
/* What a kernel will be, known before its code is made: buffers with their sizes and which of them may share memory,
 * parameters, workspace, stages, estimates.  Takes the time of lowering and passes, and no LLVM. */
typedef struct opjit_plan opjit_plan;

/* Plans what opjit_compile_operator, and opjit_compile_graph, would compile; both borrow what they get until they
 * return, and have the expected failures of those but for what code generation may refuse.  The caller destroys the
 * plan; nothing is cached. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_plan_operator(opjit_context *context, opjit_operator *op,
                                                           const opjit_compile_options *options, opjit_plan **out_plan,
                                                           opjit_error *error);
OPJIT_API OPJIT_NODISCARD opjit_status opjit_plan_graph(opjit_context *context, const DML_GRAPH_DESC *desc,
                                                        const opjit_compile_options *options, opjit_plan **out_plan,
                                                        opjit_error *error);
/* Which nodes step `step` of opjit_kernel_info.meta computes, by index in the graph's description and ascending: those
 * whose results it stores, and those before them that no other step stores; of more than 64, 64.  A step that only
 * prepares what another one reads has a node of that one.  The plan owns them.  0: none, of a step of another variant
 * than the last, of a graph with custom operators, or of NULL.  [any thread, 0.1] */
OPJIT_API uint32_t opjit_plan_step_nodes(const opjit_plan *plan, uint32_t step, const uint32_t **out_nodes);
OPJIT_API void opjit_plan_destroy(opjit_plan *plan); /* NULL is fine; the context may be gone */

/* As opjit_kernel_get_info of the kernel, except that flags, code_bytes and times are 0; the plan owns the strings and
 * arrays.  workspace_bytes is what a call needs; buffers[i].alias_inputs, of an output, has bit k where it may be the
 * memory of buffer k. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_plan_get_info(const opjit_plan *plan, opjit_kernel_info *out_info,
                                                           opjit_error *error);

/* --- this build -------------------------------------------------------------------------------------------------- */
/* What a bug report should name, and what a host needs to know before it uses kernels that another build made. */
typedef struct opjit_build_info {
    uint32_t struct_size; /* set by its _INIT macro */
    uint32_t numerics;    /* OPJIT_NUMERICS: builds with the same number give the same bits */
    uint32_t kernel_abi;  /* OPJIT_KERNEL_ABI: builds with the same number load each other's kernels */
    uint32_t has_codegen; /* 0: it was built without code generation, so it loads kernels or interprets */
    const char *version;  /* opjit_version() */
    const char *id;       /* a hash of all sources that decide what a kernel is: part of every kernel's key */
    const char *llvm;     /* the version of LLVM that it was built for, "none" without code generation */
} opjit_build_info;
#define OPJIT_BUILD_INFO_INIT { sizeof(opjit_build_info), 0, 0, 0, NULL, NULL, NULL }

/* Strings are static.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_get_build_info(opjit_build_info *out_info, opjit_error *error);

/* --- targets ------------------------------------------------------------------------------------------------------ */
#define OPJIT_TARGET_TEXT 384 /* bytes of any text of the functions below, final NUL included */

/* Writes the index-th named target ("cpu:x86-64-v3", "cpu:znver4", "nvptx:sm_80") and gives its length; 0, and "",
 * behind the last.  Each name may be followed by features and options: opjit_context_options.target.
 * [any thread, 0.1] */
OPJIT_API uint32_t opjit_target_name_at(uint32_t index, char name[OPJIT_TARGET_TEXT]);
/* The canonical text of a target, which says its features, tuning and cache sizes: equal targets have equal texts, and
 * the text is part of every kernel's key.  NULL or "cpu" is the CPU that this runs on.
 * Expected failures: INVALID_ARGUMENT: it is no target; the message says what is allowed.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_target_get_text(const char *target, char text[OPJIT_TARGET_TEXT],
                                                             opjit_error *error);
/* Whether the CPU that this runs on executes code for the target.
 * Expected failures: those of opjit_target_get_text; UNSUPPORTED: another machine's, or a feature is missing, which the
 * message names.  A GPU's target is never this CPU's; opjit/device.h lists devices.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_target_runs_here(const char *target, opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
