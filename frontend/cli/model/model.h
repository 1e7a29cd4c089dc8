/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - a model: DxDispatch's JSON (resources, dispatchables, commands) read, checked and made ready to run.
 * Everything lives in the model's arena but for resources' memory, operators and kernels, which opjit_cli_model_free
 * gives back.  Each function that fails leaves the place and the message in model->report. */
#ifndef OPJIT_CLI_MODEL_H
#define OPJIT_CLI_MODEL_H

#include <opjit/dynamic.h>

#include "frontend/cli/model/type.h"
#include "frontend/cli/text/json.h"
#include "frontend/cli/text/suggest.h"

#define CLI_TYPES 512u /* above all DML_OPERATOR_TYPEs */
#define CLI_PAGE 4096u /* alignment of resources' memory */

#define CLI_PLACE 400u /* bytes of a place in a model */
typedef struct cli_report {
    /* "$.dispatchables.eye", or "line 3, column 7", and a path; "": the file as a whole */
    char place[CLI_PLACE + 4096 + 2];
    opjit_error error;
} cli_report;

typedef struct cli_resource {
    const json_value *json;
    DML_TENSOR_DATA_TYPE dtype; /* of the elements; UNKNOWN: see types */
    const uint8_t *types;       /* values with types of their own: DML_TENSOR_DATA_TYPE by element; else NULL */
    uint64_t first, elements;   /* the initialised ones: byte of the first, and how many */
    uint64_t said, bytes;       /* size as the model says it; size of data (rounded up where no size was said) */
    uint8_t *data;              /* NULL: no storage yet */
    bool deferred, written;     /* deferred: storage comes with the first dispatch that writes it */
} cli_resource;

/* Bytes of a resource that are bound to a tensor; resource NULL: nothing is bound. */
typedef struct cli_range {
    const json_value *json;
    cli_resource *resource;
    uint64_t offset, bytes;
    uint8_t *copy; /* OWNED_BY_DML: the bytes as they were before the first command */
} cli_range;

/* A tensor that is bound: an operator's, or an input or output of a graph. */
typedef struct cli_port {
    const char *name;
    const opjit_tensor_info *tensor;
    bool unused; /* a graph's input that leads nowhere: may be bound, and is not looked at */
} cli_port;

/* An operator as a dispatchable of its own, or as a node of a graph. */
typedef struct cli_operator {
    const cli_type *def;
    void *desc; /* the descriptor struct */
    DML_OPERATOR_DESC symbolic; /* with OPJIT_DIM for sizes; only where the model has dimensions */
    opjit_operator *op;
    const opjit_tensor_info *inputs, *outputs; /* by position; rank 0: absent */
    uint32_t input_count, output_count;
} cli_operator;

/* The nodes of a graph, and the description made of them. */
typedef struct cli_graph {
    DML_GRAPH_DESC desc;
    const json_value *nodes; /* their object */
    cli_operator *operators; /* by node; op NULL: a constant */
    uint32_t count;
} cli_graph;

typedef struct cli_dispatchable {
    const json_value *json;
    const char *what; /* the operator's name, or "graph" */
    cli_operator own; /* op NULL: a graph */
    cli_graph *graph; /* NULL: an operator */
    cli_port *ports;  /* inputs, then outputs, by position */
    uint32_t input_count, output_count;
    bool uses_dims;       /* a size of it is a dimension: the kernel is one for all sizes */
    opjit_kernel *kernel; /* NULL until opjit_cli_model_compile */
    cli_range *constants; /* by input position: OWNED_BY_DML inputs */
} cli_dispatchable;

typedef enum cli_command_kind { CLI_DISPATCH, CLI_PRINT, CLI_WRITE_FILE } cli_command_kind;

typedef struct cli_command {
    cli_command_kind kind;
    const json_value *json;
    cli_dispatchable *dispatchable; /* DISPATCH */
    cli_range *ranges;              /* DISPATCH: inputs, then outputs, by position */
    opjit_binding *bindings;        /* DISPATCH: what the kernel takes; made by opjit_cli_model_compile */
    uint32_t binding_count;
    cli_resource *resource; /* PRINT, WRITE_FILE */
    char *path;             /* WRITE_FILE */
    uint64_t shape[32];
    uint32_t rank; /* 0: no "dimensions" */
} cli_command;

typedef struct cli_model {
    const char *path;       /* for messages and relative paths */
    bool no_files;          /* refuse everything that touches files (fuzzing) */
    bool outside;           /* files outside of the model's folder are allowed */
    uint64_t max_bytes;     /* of a resource */
    uint64_t max_total;     /* of all resources */
    opjit_context *context; /* not owned */
    rt_arena arena;
    rt_bytes text;
    json_value *root;
    cli_resource *resources;
    uint32_t resource_count;
    cli_dispatchable *dispatchables;
    uint32_t dispatchable_count;
    cli_command *commands;
    uint32_t command_count;
    uint64_t total; /* bytes of all resources so far */
    const char *const *given_dims; /* "n=5", of the command line: given_count of them */
    bool given_to_one;             /* given_dims are for this model alone: what it does not have is refused */
    uint32_t given_count, dim_count, dims_set; /* dims_set: bits of those whose size was given */
    const json_value *dims_json;               /* NULL: the model has no dynamic dimensions */
    opjit_dim dims[OPJIT_MAX_DIMS];
    uint64_t dim_sizes[OPJIT_MAX_DIMS]; /* in this run: what was given, or typical */
    bool symbolic, uses_dims; /* descriptors are read with OPJIT_DIM in place of sizes; the last one had a dimension */
    const cli_type *types[CLI_TYPES]; /* by DML_OPERATOR_TYPE; NULL: not read yet */
    cli_report report;
} cli_model;

/* --- model.c ------------------------------------------------------------------------------------------------------ */
void opjit_cli_model_init(cli_model *m, const char *path, opjit_context *context);
void opjit_cli_model_free(cli_model *m);
opjit_status opjit_cli_model_load(cli_model *m);         /* reads path ("-": standard input) into text, and the JSON */
opjit_status opjit_cli_model_parse(cli_model *m);        /* the JSON in m->text */
opjit_status opjit_cli_read_resources(cli_model *m);     /* resource.c */
opjit_status opjit_cli_read_dispatchables(cli_model *m); /* dispatchable.c; operators, not kernels */
opjit_status opjit_cli_read_commands(cli_model *m);      /* command.c; needs both */

/* "dims", when the JSON is there (resource.c). */
opjit_status opjit_cli_read_dims(cli_model *m);
/* The size, or OPJIT_DIM, of the dimension that the string names. */
opjit_status opjit_cli_dim(cli_model *m, const json_value *name, uint32_t *out);
/* Whether the sizes of all dimensions were given. */
bool opjit_cli_has_sizes(const cli_model *m);
/* Adds a dispatchable with dimensions to an artifact; sizes that were given are not dynamic (bind.c). */
opjit_status opjit_cli_add_dynamic(cli_model *m, cli_dispatchable *d, opjit_artifact *artifact,
                                   const opjit_compile_options *options);

/* Called before each dispatchable is compiled. */
typedef void (*cli_progress_fn)(void *user, uint32_t done, uint32_t total, const char *name);
/* Compiles every dispatchable and checks every dispatch against its kernel (bind.c). */
opjit_status opjit_cli_model_compile(cli_model *m, const opjit_compile_options *options, cli_progress_fn progress,
                                     void *user);

/* --- for the readers ---------------------------------------------------------------------------------------------- */
/* Sets the report: at's path as the place and the message; returns status. */
opjit_status opjit_cli_fail(cli_model *m, const json_value *at, opjit_status status, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* Sets the place for an error that is already in m->report.error; OPJIT_OK passes through. */
opjit_status opjit_cli_at(cli_model *m, const json_value *at, opjit_status status);
/* The same for an error about a file, which the message then names. */
opjit_status opjit_cli_at_file(cli_model *m, const json_value *at, const char *path, opjit_status status);
opjit_status opjit_cli_no_memory(cli_model *m, const json_value *at);
/* How a message quotes a string of the model: its beginning where it is long. */
#define CLI_QUOTED "\"%.*s%s\""
#define CLI_QUOTE(json) \
    (int)((json)->length > 60 ? 57 : (json)->length), (json)->text, (json)->length > 60 ? "..." : ""
/* The same of a member's key. */
#define CLI_QUOTE_KEY(json) \
    (int)((json)->key_length > 60 ? 57 : (json)->key_length), (json)->key, (json)->key_length > 60 ? "..." : ""
/* Refusals of names, with the nearest one that there is (near.c).  A name that object has no member of: */
opjit_status opjit_cli_no_member(cli_model *m, const json_value *name, const char *what, const json_value *object);
/* For one of --dispatchable that the model lacks. */
const char *opjit_cli_near_dispatchable(const cli_model *m, const char *name, char text[static CLI_SUGGEST_TEXT]);
opjit_status opjit_cli_missing(cli_model *m, const json_value *object, const char *key); /* a member of object */
opjit_status opjit_cli_missing_field(cli_model *m, const cli_type *def, const cli_field *field, const json_value *json);
const char *opjit_cli_near_operator(const char *name, size_t length, char text[static CLI_SUGGEST_TEXT]);
opjit_status opjit_cli_no_operator(cli_model *m, const json_value *name);
/* An end of an edge, whose first length characters name no node. */
opjit_status opjit_cli_no_node(cli_model *m, const json_value *end, size_t length, const json_value *nodes);
/* end names no tensor of node, whose operator is op; NULL: it is a constant. */
opjit_status opjit_cli_no_tensor(cli_model *m, const json_value *end, const json_value *node, const cli_operator *op,
                                 bool is_input);
/* The member key of object, which must be there and of that kind (found by its JSON name in the message). */
opjit_status opjit_cli_member(cli_model *m, const json_value *object, const char *key, json_kind kind,
                              const json_value **out);
/* An unsigned member; otherwise where it is missing. */
opjit_status opjit_cli_uint_member(cli_model *m, const json_value *object, const char *key, uint64_t hi,
                                   uint64_t otherwise, uint64_t *out);
/* An enum's name, full or short, in exact case. */
opjit_status opjit_cli_enum(cli_model *m, const json_value *value, const cli_enum *names, int32_t *out);
/* Flags: one name or an array of names, or-ed together. */
opjit_status opjit_cli_flags(cli_model *m, const json_value *value, const cli_enum *names, int32_t *out);
extern const cli_enum opjit_cli_data_types;

/* The descriptor struct of def out of a JSON object (desc.c).  The result borrows from the arena. */
opjit_status opjit_cli_read_desc(cli_model *m, const cli_type *def, const json_value *json, void **out);
/* The place of a dispatchable's error: the graph's node that it names, else the dispatchable. */
opjit_status opjit_cli_at_dispatchable(cli_model *m, const cli_dispatchable *d, opjit_status status);
/* An operator out of an object with "desc"; type: its name. */
opjit_status opjit_cli_read_operator(cli_model *m, const json_value *json, const json_value *type, cli_operator *out);
/* The rest of a dispatchable of type "graph" (graph.c). */
opjit_status opjit_cli_read_graph(cli_model *m, cli_dispatchable *d);
/* A kernel of the dispatchable into d->kernel, which is NULL. */
opjit_status opjit_cli_compile(cli_model *m, cli_dispatchable *d, const opjit_compile_options *options);
/* An operator's type by its JSON name; at is the string's place. */
opjit_status opjit_cli_find_operator(cli_model *m, const json_value *name, const cli_type **out);

/* Memory of a resource or a copy of one, zeroed, which is held to the bounds; at is the place that asks for it. */
opjit_status opjit_cli_allocate(cli_model *m, const json_value *at, uint64_t bytes, uint8_t **out);
cli_resource *opjit_cli_find_resource(cli_model *m, const json_value *name); /* a string; NULL: none */
/* Reads "bindings" into ranges, by position inputs then outputs.  owned: those of OWNED_BY_DML inputs, else all
 * others. */
opjit_status opjit_cli_read_bindings(cli_model *m, cli_dispatchable *d, const json_value *owner, bool owned,
                                     cli_range *ranges);

#endif
