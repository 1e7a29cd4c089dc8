/* SPDX-License-Identifier: Apache-2.0 */
/* frontend.h - what the files of this layer share among themselves and nobody else needs: the overlap test, keys, the
 * checked compile options, and the steps of the driver.  Operators as data are in op.h. */
#ifndef OPJIT_FRONTEND_FRONTEND_H
#define OPJIT_FRONTEND_FRONTEND_H

#include <opjit/reflect.h>

#include <opjit/dynamic.h>
#include <opjit/graph.h>

#include "codegen/codegen.h"
#include "frontend/ops/op.h"
#include "runtime/cache/cache.h"
#include "runtime/call/kernel.h"

/* --- tensors (overlap.c) ------------------------------------------------------------------------------------------ */
#define FE_OVERLAP_STEPS 1000000u /* some 20 ms */
typedef enum fe_overlap { FE_DISJOINT, FE_SHARED, FE_UNDECIDED } fe_overlap;
/* Whether two coordinates of the layout have the same offset; UNDECIDED after FE_OVERLAP_STEPS.  strides of dimensions
 * of size 1 are not looked at; the span is below 2^32. */
fe_overlap opjit_fe_layout_overlap(uint32_t rank, const uint64_t *sizes, const uint64_t *strides);

/* --- operators (operator.c, fields.c, rules.c, key.c) ------------------------------------------------------------- */
/* opjit_operator_create for a row that need not be in the table: how tests reach field kinds that no operator has
 * yet. */
opjit_status opjit_fe_operator_make(rt_core *core, uint32_t feature_level, const op_def *def, const void *desc,
                                    opjit_operator **out, opjit_error *error);
/* The row of an operator of this build; INVALID_ARGUMENT: DirectML has no such type, UNSUPPORTED: this build hasn't. */
opjit_status opjit_fe_op_require(DML_OPERATOR_TYPE type, const op_def **out, opjit_error *error);
/* Whether the row takes a tensor of that rank and data type, one of DirectML's, as its field at the level.  name: the
 * field, with its index in an array; for the message. */
opjit_status opjit_fe_check_support(const op_def *def, const char *field, const char *name, uint32_t level,
                                    const fe_tensor *tensor, opjit_error *error);
/* Refuse counts that an array field can't have: of tensors, and of numbers, whose array may be absent where it is
 * optional or the count is 0. */
#define FE_TENSORS_MAX 1024u /* of one array field; a count beyond it is an uninitialised field and no operator */
opjit_status opjit_fe_check_count_of_tensors(const op_def *def, const op_field *field, uint32_t count,
                                             opjit_error *error);
#define FE_NUMBERS_MAX 65536u /* likewise */
opjit_status opjit_fe_check_numbers(const op_def *def, const op_field *field, const void *given, uint32_t count,
                                    opjit_error *error);
/* Whether OPJIT_DIM stands where a number should. */
static inline bool fe_is_symbol(uint32_t number)
{
    return number - OPJIT_DIM(0) < OPJIT_MAX_DIMS;
}
/* Refuses one: array[index] of the operator. */
opjit_status opjit_fe_refuse_symbol(const char *op, const char *array, uint32_t index, uint32_t number,
                                    opjit_error *error);
/* A copy of the descriptor with these sizes in place of OPJIT_DIM, as far as there are any, which borrows from `from`
 * and the arena.  Nothing is checked: what is wrong with it is wrong with the copy (symbols.c). */
opjit_status opjit_fe_put_sizes(const DML_OPERATOR_DESC *from, const uint64_t *dims, uint32_t dim_count,
                                rt_arena *arena, DML_OPERATOR_DESC *out, opjit_error *error);
/* How many tensors a descriptor has, absent ones counted. */
opjit_status opjit_fe_count_tensors(const op_def *def, const void *desc, uint32_t *out_inputs, uint32_t *out_outputs,
                                    opjit_error *error);
/* Checks the fields of op->desc, of which only the outer struct is a copy so far, and copies what they point to; fills
 * tensors and names in. */
opjit_status opjit_fe_take_fields(opjit_operator *op, opjit_error *error);
/* An operator with a copy of the outer struct at desc, which owns its core; tensors, names and key are the caller's to
 * fill.  NULL: no memory. */
opjit_operator *opjit_fe_operator_new(rt_core *core, const op_def *def, uint32_t inputs, uint32_t outputs,
                                      const void *desc);
/* What kernels and events are named after: a custom operator's own name may have any characters. */
static inline const char *opjit_fe_operator_label(const opjit_operator *op)
{
    return op->custom == NULL ? op->def->name : "custom";
}
/* "5.1"; 0: "none" */
typedef struct fe_level_text {
    char text[16];
} fe_level_text;
fe_level_text opjit_fe_level_text(uint32_t feature_level);
/* The value of a scalar field as bits of its type, zero-extended. */
uint64_t opjit_fe_scalar_bits(const opjit_operator *op, uint32_t field);
DML_TENSOR_DATA_TYPE opjit_fe_scalar_type(const opjit_operator *op, uint32_t field);

/* Writes what the tensor is into a structure of any version (reflect.c). */
opjit_status opjit_fe_put_tensor_info(opjit_tensor_info *out, const char *name, const fe_tensor *t, opjit_error *error);

/* Appends the canonical key: operators with equal keys lower to equal IR, if the fields whose bits are set in late
 * become parameters.  The values of those fields are not in it. */
void opjit_fe_operator_key(const opjit_operator *op, uint64_t late, rt_bytes *out);
/* The key's part for one tensor. */
void opjit_fe_tensor_key(const fe_tensor *t, rt_bytes *out);

struct fe_options;

/* --- graphs (graph.c, read.c, edge.c, key.c) ---------------------------------------------------------------------- */
/* A graph as the rest of this layer sees it: what reaches an output, in an order that follows from the graph alone
 * (each node after those that it reads) and not from the order in which it was described.  One operator is a graph
 * too. */
#define FE_FOLDED_BYTES 4096u /* constants up to this size are part of the key; larger ones are bound to the kernel */

typedef enum fe_source_kind { FE_ABSENT, FE_INPUT, FE_NODE, FE_CONSTANT } fe_source_kind;
typedef struct fe_source {
    uint32_t kind;   /* fe_source_kind */
    uint32_t index;  /* of the input, node or constant */
    uint32_t output; /* NODE: its output */
} fe_source;

typedef struct fe_node {
    opjit_operator *op;
    const char *name;   /* its label, "": none */
    uint32_t given;     /* DML_GRAPH_DESC.Nodes' index */
    fe_source *sources; /* by input position */
} fe_node;

/* An input, output or constant: what the kernel's metadata says of it. */
typedef struct fe_buffer {
    const char *name;
    fe_tensor tensor; /* of an input or constant: as its first reader sees it, with the bytes that all of them need */
    const void *data; /* CONSTANT; not kept where it is larger than FE_FOLDED_BYTES */
    uint64_t bytes;   /* CONSTANT: of data */
    bool named;       /* name is the caller's or an operator's (names.c); else it is a number */
    uint32_t given;   /* INPUT: its index among the graph's inputs; CONSTANT: of its node */
} fe_buffer;

typedef struct fe_late {
    uint32_t node, field;
    const char *name; /* as the caller gave it */
    const opjit_operator *op; /* the node's */
} fe_late;

struct fe_part;

typedef struct fe_graph {
    rt_arena arena;
    const char *label; /* "graph", or the operator's name */
    bool is_operator, kept;
    bool is_named; /* names of inputs and outputs are part of the key */
    fe_node *nodes;
    fe_buffer *inputs, *outputs, *constants; /* inputs: those that an edge leads from */
    fe_source *results;                      /* by output: where it comes from */
    fe_late *late;
    uint32_t node_count, input_count, output_count, constant_count, late_count;
    struct fe_part *parts; /* of a finished graph with custom operators; else NULL */
    uint32_t part_count;
    rt_custom_plan plan;
} fe_graph;

/* What lies between custom operators: a graph without any, whose other inputs and outputs are temporaries of the
 * whole's kernel; and the custom operators after it. */
typedef struct fe_part {
    fe_graph graph;      /* borrows; without outputs: there is nothing before the custom operators */
    uint32_t *slots;     /* by buffer of the part's: which of the whole's buffers and temporaries it is */
    uint32_t calls;      /* custom steps that follow */
} fe_part;
/* Divides a finished graph into parts, if it has custom operators (parts.c). */
opjit_status opjit_fe_graph_divide(fe_graph *graph, opjit_error *error);

/* A graph whose sizes follow from dynamic dimensions (compile/dynamic.c).  Borrowed until the compile returns. */
#define FE_DYNAMIC_KEY (UINT32_MAX - 2) /* where an operator's key has its type */
typedef struct fe_dynamic {
    opjit_context *context;
    const opjit_dim *dims;
    uint32_t dim_count;
    opjit_describe_fn describe; /* or build: the other one is NULL */
    opjit_build_fn build;
    void *user;
    bool binds; /* the last description is for the largest sizes: it has all inputs, and constants that are bound */
} fe_dynamic;
opjit_context *opjit_fe_artifact_context(const opjit_artifact *artifact); /* aot/artifact.c */
/* The subject's half of the key; refuses wrong dimensions. */
opjit_status opjit_fe_dynamic_key(fe_dynamic *dynamic, rt_bytes *key, opjit_error *error);
/* Names the graph's inputs and outputs as the description for the largest sizes does. */
opjit_status opjit_fe_dynamic_label(const fe_dynamic *dynamic, fe_graph *graph, opjit_error *error);
/* Reads the graph for the largest sizes, as opjit_fe_graph_read does, whose arena this makes ready. */
opjit_status opjit_fe_dynamic_read(const fe_dynamic *dynamic, bool keep, fe_graph *out, opjit_error *error);

/* What is compiled: an operator, or a graph as it was described. */
typedef struct fe_subject {
    const fe_dynamic *dynamic;  /* NULL: all sizes are known; else the others are not set */
    opjit_operator *op;         /* NULL: a graph */
    const DML_GRAPH_DESC *desc; /* borrowed, as late */
    const char *const *late;    /* a graph's late fields, "node.Field" */
    uint32_t late_count;
    uint64_t compile_id;        /* opjit_event's; 0: nobody wants events */
    bool is_named;              /* a graph's buffers have the names of its input and output edges, also in the key */
} fe_subject;

/* A graph with the late fields that options (may be NULL) name. */
opjit_status opjit_fe_graph_subject(const DML_GRAPH_DESC *desc, const opjit_compile_options *options, fe_subject *out,
                                    opjit_error *error);
/* Reads and checks a graph into *out, whose arena is ready.  keep: labels and folded constants are copied and operators
 * retained; else all is borrowed, tensors of buffers are not filled in, and that the bytes of live edges fit is not
 * checked: enough for the key, and equal keys pass or fail alike.  *out is to be freed in any case. */
opjit_status opjit_fe_graph_read(const opjit_context *context, const fe_subject *subject, bool keep, fe_graph *out,
                                 opjit_error *error);
/* Names inputs and outputs after the first of their edges that has a name; the others keep theirs.  subject: what the
 * graph was read from. */
opjit_status opjit_fe_graph_label(const fe_subject *subject, fe_graph *graph, opjit_error *error);
/* The same for a graph whose names are part of its key (keep.c). */
opjit_status opjit_fe_graph_name(const fe_subject *subject, fe_graph *graph, opjit_error *error);
/* What `keep` says above (keep.c). */
opjit_status opjit_fe_graph_keep(fe_graph *graph, opjit_error *error);
/* The graph of one operator, late fields out of options; kept. */
opjit_status opjit_fe_graph_of(opjit_operator *op, const struct fe_options *options, fe_graph *out,
                               opjit_error *error);
void opjit_fe_graph_free(fe_graph *graph);
/* Fills the tensors of buffers in, and checks that what edges carry fits. */
opjit_status opjit_fe_graph_finish(fe_graph *graph, opjit_error *error);
uint64_t opjit_fe_graph_key(const fe_graph *graph, rt_bytes *out); /* and the same hash for the same key */
bool opjit_fe_graph_binds(const fe_graph *graph);                  /* has constants that are no part of its key */
/* What the kernel knows of the address of a bound constant: nothing, where the target reads at any as fast, so that one
 * which the caller lends has to lie nowhere in particular. */
uint32_t opjit_fe_constant_align(const fe_graph *graph, const fe_buffer *constant, const rt_target *target);
/* What finish does for one edge, for those that no output depends on. */
void opjit_fe_graph_add_reader(fe_buffer *buffer, const fe_tensor *reader);
opjit_status opjit_fe_graph_check_edge(const fe_node *from, uint32_t output, const fe_node *to, uint32_t input,
                                       opjit_error *error);
opjit_status opjit_fe_graph_check_constant(const fe_buffer *constant, const fe_node *to, uint32_t input,
                                           opjit_error *error);
/* The tensor of output 0; NULL: it is a constant. */
const fe_tensor *opjit_fe_graph_shape(const fe_graph *graph);
/* For messages: node 2 "mask" (DIAGONAL_MATRIX1). */
typedef struct fe_node_text {
    char text[144];
} fe_node_text;
fe_node_text opjit_fe_node_text(const opjit_operator *op, const char *name, uint32_t given);

typedef enum fe_edge { FE_EDGE_FITS, FE_EDGE_TYPE, FE_EDGE_BYTES, FE_EDGE_UNWRITTEN, FE_EDGE_UNDECIDED } fe_edge;
/* Whether a tensor that is described as `reader` may be read out of the bytes that an output described as `writer`
 * has. */
fe_edge opjit_fe_edge(const fe_tensor *writer, const fe_tensor *reader);
/* Equal sizes and strides, where strides matter. */
bool opjit_fe_same_layout(const fe_tensor *a, const fe_tensor *b);

/* --- compile options (options.c) ---------------------------------------------------------------------------------- */
#define FE_NAME_SIZE 96u /* bytes of a kernel's name, NUL included */

typedef struct fe_options {
    const rt_target *target; /* the context's, or own */
    uint32_t level;          /* opjit_level, never AUTO */
    uint32_t flags;          /* OPJIT_COMPILE_... */
    uint32_t late_count;
    uint8_t late[OP_FIELDS_MAX]; /* field by parameter */
    uint64_t late_mask;          /* the same as a set */
    const atomic_bool *cancel;   /* set by another thread: give up; NULL: nobody may */
    const opjit_executor *executor; /* for the stages of large kernels; NULL: this thread */
    const void *image; /* loaded instead of compiling, where it is the kernel's; NULL: none */
    uint64_t image_bytes;
    bool once;                   /* stages of constants alone run when the kernel is bound to them */
    bool verify;                 /* the IR after every pass, and LLVM's after it: as the context says */
    const char *name;            /* the caller's, or NULL */
    rt_target own;               /* set only where target points to it */
} fe_options;

/* Copies options of any version; what they point to is not looked at. */
opjit_status opjit_fe_options_copy(const opjit_compile_options *options, opjit_compile_options *out,
                                   opjit_error *error);
/* Checks *options (may be NULL) for compiling op in context; op NULL: for a graph, whose late fields are left to
 * opjit_fe_graph_read.  *out borrows from all of them. */
opjit_status opjit_fe_options_read(const opjit_context *context, const opjit_operator *op,
                                   const opjit_compile_options *options, fe_options *out, opjit_error *error);
/* The late field `name` of def, the entry `index` of options.late. */
opjit_status opjit_fe_late_field(const op_def *def, const char *name, uint32_t index, uint32_t *out,
                                 opjit_error *error);
/* The second half of a cache key: everything but the operator that decides what the code is. */
#define FE_OPTIONS_KEY_SIZE 640u
size_t opjit_fe_options_key(const fe_options *options, uint8_t key[static FE_OPTIONS_KEY_SIZE]);
/* rt_key.hash of a subject's half and this one (driver.c). */
uint64_t opjit_fe_key_hash(uint64_t subject_hash, const uint8_t *options_key, size_t options_size);

/* --- from graph to IR (lower.c, lower_graph.c, program.c) --------------------------------------------------------- */
/* Writes a finished graph in value form into a fresh *out, whose name is name.  Verified. */
opjit_status opjit_fe_graph_lower(const fe_graph *graph, const fe_options *options, const char *name,
                                  const opjit_allocator *allocator, ir_func *out, opjit_error *error);

/* The outputs of a graph that has no inputs, each packed in memory of its bytes, computed at once by the interpreter;
 * for a few elements (evaluate.c).  *done is false, and nothing is computed, where that takes more elements and terms
 * than `most`. */
opjit_status opjit_fe_evaluate(opjit_context *context, const DML_GRAPH_DESC *desc, uint64_t most, void *const *outputs,
                               bool *done, opjit_error *error);

#define FE_VARIANTS_MAX 32u /* no fewer than IR_RANGES */

/* Scheduled and laid out IR of one graph: a step list for each output that may be an input's memory and saves work by
 * it, then the one for separate buffers. */
typedef struct fe_program {
    ir_func *variants; /* of a graph with custom operators: one function a part that has outputs, and no variants */
    uint64_t masks[FE_VARIANTS_MAX]; /* opjit_variant_info.alias_mask; the last is 0 */
    opjit_range_info ranges[FE_VARIANTS_MAX]; /* of dynamic dimensions: the sizes that a variant is for */
    uint32_t count, capacity;
    const opjit_allocator *allocator;
    uint32_t alias_inputs[8];                  /* by output: opjit_buffer_info.alias_inputs */
    uint64_t flops, bytes_read, bytes_written; /* estimates of one call of the last variant: program.c says which */
    uint32_t unproven_bounds;                  /* of all */
    uint64_t kept_size, kept_layout;           /* opjit_kernel_meta's */
    opjit_size_form *forms;                    /* likewise, form_count of them; NULL: there are no dynamic dimensions */
    uint32_t form_count, quotient_count;
    opjit_quotient quotients[OPJIT_MAX_POWERS]; /* opjit_kernel_meta's */
    double lower_ms, passes_ms;
} fe_program;

/* Nodes of the graph, as its description counts them, that a stage computes; of many, some. */
#define FE_ORIGINS_MOST 64u
typedef struct fe_origins {
    uint32_t nodes[FE_ORIGINS_MOST], count; /* ascending */
} fe_origins;
/* By stage of the finished function of the graph, into *out (origin.c). */
opjit_status opjit_fe_origins_find(const fe_graph *graph, const ir_func *f, rt_arena *arena, fe_origins *out,
                                   opjit_error *error);

typedef void (*fe_trace)(void *user, const char *pass, const ir_func *f);
/* trace is called with the last variant after lowering and after every pass; may be NULL. */
opjit_status opjit_fe_program_make(const fe_graph *graph, const fe_options *options, const char *name,
                                   const opjit_allocator *allocator, fe_trace trace, void *user, fe_program *out,
                                   opjit_error *error);
/* What stages that run once make is kept for all variants, as the last one has it: in others that would make something
 * else, such stages run at each call. */
opjit_status opjit_fe_share_kept(fe_program *program, opjit_error *error);
/* dynamic_sizes.c: sizes of a graph's tensors that follow from dynamic dimensions. */
typedef struct fe_sizes {
    rt_bytes noted, listed; /* what is known of each size; what was listed last, valid until the next list */
} fe_sizes;
void opjit_fe_sizes_init(fe_sizes *s, const opjit_allocator *allocator);
void opjit_fe_sizes_free(fe_sizes *s);
opjit_status opjit_fe_sizes_note(fe_sizes *s, const ir_func *value, opjit_error *error);
/* growth: as opjit_fe_sizes_growth has it (dynamic_made.h). */
opjit_status opjit_fe_sizes_list(fe_sizes *s, const ir_func *value, double growth, ir_sizes *out, opjit_error *error);
/* dynamic_alike.c: gives a reading the whole's constants.  UNSUPPORTED: it is of another graph. */
opjit_status opjit_fe_sample_read(const fe_graph *whole, fe_graph *sample, bool has_zero, opjit_error *error);
/* dynamic_stages.c: the loops of what was lowered, in a fresh *out; the last passes, after which general->extents are
 * those of the stages that there are then.  UNSUPPORTED: a stage's iterations are in no known form. */
struct ir_general;
opjit_status opjit_fe_make_loops(const ir_pass_env *, const ir_func *value, bool unshared, ir_func *out, opjit_error *);
opjit_status opjit_fe_expand_general(const ir_pass_env *own, struct ir_general *general, opjit_error *error);
/* The program for all sizes, without variants; graph: for the largest sizes. */
opjit_status opjit_fe_dynamic_program(const fe_dynamic *dynamic, const fe_graph *graph, const fe_options *options,
                                      const char *name, const opjit_allocator *allocator, fe_program *out,
                                      opjit_error *error);
void opjit_fe_program_free(fe_program *program);
/* Its functions as code generation takes them; NULL: no memory. */
const ir_func **opjit_fe_program_list(const fe_program *program, rt_arena *arena);
uint32_t opjit_fe_stage_count(const ir_func *f);

/* --- from IR to kernel (kernel_image.c, compile.c, provider.c, dump.c) -------------------------------------------- */
enum { FE_UNIT_ROOM = 1024 }; /* enough for most operators */
/* What a step of an interpreted kernel runs. */
typedef struct fe_step {
    const ir_func *f; /* NULL: a custom function */
    uint32_t stage;
} fe_step;

/* What is compiled.  Owned by the kernel that comes out of it, for the interpreter and for its peak version. */
typedef struct fe_unit {
    rt_core *core;
    fe_graph graph;
    fe_options options;      /* its target is own, its name is NULL or name */
    char name[FE_NAME_SIZE]; /* the kernel's */
    rt_hash key;
    uint64_t compile_id;     /* opjit_event's, as node_names; NULL: nobody wants events */
    const char *const *node_names;
    const void *subject_key; /* the subject's half of the key, in the graph's arena; NULL: nothing is put on disk */
    size_t subject_key_size;
    const fe_dynamic *dynamic;    /* while it is compiled; NULL: all sizes are known */
    const struct fe_known *known; /* how the graph is read, of which nothing is here but constants; NULL: it is here */
    opjit_param_info *dims;       /* in the graph's arena: dim_count of them, and their names */
    const char **dim_names;
    uint32_t dim_count;
    const opjit_codegen *codegen; /* NULL: none was needed so far */
    char refused[sizeof((codegen_result *)0)->refused];
    fe_program program;           /* interpreted kernels; else empty once the image is made */
    fe_step *steps;               /* interpreted kernels: in the graph's arena */
    _Alignas(16) uint8_t room[FE_UNIT_ROOM]; /* what the graph's arena begins with */
} fe_unit;

/* The hash that the subject's kernel has in the cache: part of its name (driver.c). */
opjit_status opjit_fe_subject_hash(opjit_context *context, const fe_subject *subject, const fe_options *options,
                                   rt_hash *out, opjit_error *error);
opjit_status opjit_fe_unit_new(opjit_context *context, const fe_subject *subject, const fe_options *options,
                               rt_hash key, fe_unit **out, opjit_error *error);
void opjit_fe_unit_destroy(void *unit);
/* The kernel of an image, with the unit's own constants, or without any where some are left to each caller. */
opjit_status opjit_fe_unit_kernel(fe_unit *unit, const rt_bytes *image, rt_kernel_hooks hooks,
                                  const rt_kernel_times *times, opjit_kernel **out, opjit_error *error);
/* rt_kernel_hooks.optimize.  The peak version has the key, so the name and the bytes, of a kernel that is compiled at
 * that level. */
opjit_status opjit_fe_unit_optimize(void *unit, const atomic_bool *cancel, rt_bytes *image, opjit_error *error);

/* The metadata of unit->program, in which no stage has a place yet. */
opjit_status opjit_fe_meta_make(const fe_unit *unit, rt_bytes *out, opjit_error *error);
/* Lays unit->program out as an image.  code: NULL for an interpreted kernel; else the program is freed on the way. */
opjit_status opjit_fe_image_make(fe_unit *unit, const codegen_result *code, rt_bytes *out, opjit_error *error);

/* How a kernel is asked for; NULL stands for none of it. */
typedef struct fe_ask {
    const atomic_bool *cancel; /* fe_options.cancel */
    bool is_named;             /* a graph: fe_subject.is_named */
    bool only_cached;          /* NOT_FOUND, without a message, where the memory cache doesn't have it */
    const void *image;         /* fe_options.image */
    uint64_t image_bytes;
} fe_ask;
opjit_status opjit_fe_compile_operator(opjit_context *context, opjit_operator *op, const opjit_compile_options *options,
                                       const fe_ask *ask, opjit_kernel **out, opjit_error *error);
opjit_status opjit_fe_compile_graph(opjit_context *context, const DML_GRAPH_DESC *desc,
                                    const opjit_compile_options *options, const fe_ask *ask, opjit_kernel **out,
                                    opjit_error *error);
opjit_status opjit_fe_dims_check(const opjit_dim *dims, uint32_t dim_count, opjit_error *error); /* dynamic_check.c */
/* What dynamic dimensions exclude; given: as the caller gave them, or NULL (dynamic_check.c). */
opjit_status opjit_fe_dynamic_check(const fe_options *options, const opjit_compile_options *given,
                                    opjit_error *error);
/* The kernel of a graph with dynamic dimensions, whose half of the key is key. */
opjit_status opjit_fe_compile_dynamic(const fe_dynamic *dynamic, const opjit_compile_options *options,
                                      const rt_bytes *key, opjit_kernel **out, opjit_error *error);
/* Replaces *kernel, whose constants may be NULL, by one that has the graph's; kept: as of opjit_rt_kernel_bind. */
opjit_status opjit_fe_bind_constants(rt_core *core, fe_graph *graph, const fe_options *options, const rt_kept *kept,
                                     opjit_kernel **kernel, opjit_error *error);

/* --- known graphs (known.c) --------------------------------------------------------------------------------------- */
/* What a kernel out of the caches needs of a graph, so that the graph need not be made.  It, and what it points to,
 * outlives the kernel. */
typedef struct fe_known {
    const uint8_t *key; /* the subject's half of the key, with opjit_fe_graph_key's hash */
    size_t key_size;
    uint64_t key_hash;
    fe_tensor shape;    /* for events: present, type, rank and sizes of opjit_fe_graph_shape */
    uint32_t constant_count;
    struct {
        const void *data;
        uint64_t bytes;
    } *constants;
    rt_hash identity;   /* equal ones have equal constants */
    /* Makes the graph, for a peak version: *out_owner is what release frees, also where it fails.  Any thread's. */
    opjit_status (*make)(void *user, opjit_graph **out_graph, void **out_owner, opjit_error *error);
    void (*release)(void *owner);
    void *user;
} fe_known;
/* Fills in all but identity and functions, as the graph has it; in the arena. */
opjit_status opjit_fe_know(opjit_context *context, opjit_graph *graph, rt_arena *arena, fe_known *out,
                           opjit_error *error);
/* The graph's kernel where one of the caches has it.  NOT_FOUND, without a message: else, or these options need the
 * graph. */
opjit_status opjit_fe_compile_known(opjit_context *context, const fe_known *known,
                                    const opjit_compile_options *options, opjit_kernel **out, opjit_error *error);
/* Writes what the kernel made of its constants to the disk cache, where the next process finds it. */
void opjit_fe_store_kept(rt_core *core, rt_hash identity, const opjit_kernel *kernel);

/* A graph that is being built, as it is now: its description, which it owns, and how that is to be asked for
 * (graph/build_desc.c). */
opjit_status opjit_fe_built(opjit_graph *graph, const DML_GRAPH_DESC **out_desc, fe_ask *out_ask, opjit_error *error);
opjit_context *opjit_fe_built_context(const opjit_graph *graph);
/* What its tensors' handles have as their graph. */
uint32_t opjit_fe_built_mark(const opjit_graph *graph);
/* Takes its outputs away, so that others can be asked for; its tensors stay. */
void opjit_fe_built_drop_outputs(opjit_graph *graph);
static inline bool fe_is_cancelled(const fe_options *options)
{
    return options->cancel != NULL && atomic_load_explicit(options->cancel, memory_order_relaxed);
}

/* Makes the kernel of a key that the memory cache doesn't have: from the disk cache, or new. */
opjit_status opjit_fe_compile(opjit_context *context, const fe_subject *subject, const fe_options *options,
                              const rt_key *key, opjit_kernel **out, opjit_error *error);
/* "diagonal_matrix1,f32,512x512,cpu:x86-64-v3": how events name an operator or "graph" and a target. */
typedef struct fe_label {
    char text[192];
} fe_label;
fe_label opjit_fe_label(const char *name, const fe_tensor *shape, const rt_target *target); /* shape: NULL: none */

/* Sends the event of a unit that was compiled, if anybody wants it; bytes: of its code. */
void opjit_fe_report_compile(const fe_unit *unit, opjit_event_subject subject, uint64_t bytes,
                             const rt_kernel_times *times);

/* The same, or that its image was found on disk. */
void opjit_fe_report_image(const fe_unit *unit, bool found, uint64_t bytes, const rt_kernel_times *times);
/* Whatever the host's locale: names are part of images, which are the same everywhere. */
char opjit_fe_lower_case(char c);

/* OPJIT_DUMP (dump.c): the intermediate forms of a compile, written to files. */
enum { FE_DUMP_GRAPH = 1, FE_DUMP_IR = 2, FE_DUMP_IR_ALL = 4, FE_DUMP_LLVM = 8, FE_DUMP_ASM = 16, FE_DUMP_OBJ = 32 };
typedef struct fe_dump {
    const fe_unit *unit;
    uint32_t kinds;  /* FE_DUMP_..., 0: nothing */
    uint32_t number; /* of the next file */
} fe_dump;
void opjit_fe_dump_begin(fe_dump *dump, const fe_unit *unit); /* reads the environment */
void opjit_fe_dump_pass(void *user, const char *pass, const ir_func *f);
void opjit_fe_dump_end(fe_dump *dump);
/* The unit's program, for its sizes or all of its dynamic dimensions'.  dump: of its passes; NULL: none (compile.c). */
opjit_status opjit_fe_unit_program(fe_unit *unit, fe_dump *dump, opjit_error *error);

/* Refuses a table of another interface or build: other data structures behind the same names.  path: for the
 * message. */
opjit_status opjit_fe_codegen_check(const opjit_codegen *table, const char *path, opjit_error *error);
/* functions.c: the disk cache as the place where codegen keeps functions, in *out; NULL: there is none, or a kernel
 * with these flags (OPJIT_COMPILE_...) uses none. */
const codegen_functions *opjit_fe_functions(const rt_core *core, uint32_t flags, codegen_functions *out);
/* Loads the codegen library into unit->codegen and calls work, on this thread: in the first large compile of a process
 * at the same time, if the request's executor has threads.  Where this fails, work may have been called. */
typedef opjit_status (*fe_make_fn)(void *user, opjit_error *error);
opjit_status opjit_fe_overlap(fe_unit *unit, fe_make_fn work, void *user, opjit_error *error);
/* The codegen library, loaded where it isn't yet. */
opjit_status opjit_fe_codegen(rt_core *core, const opjit_codegen **out, opjit_error *error);
/* false: this is a build without code generation, in which that always fails. */
bool opjit_fe_has_codegen(void);

#endif
