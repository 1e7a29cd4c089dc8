/* SPDX-License-Identifier: Apache-2.0 */
/* provider.h - what the provider's files share.  A graph of ONNX Runtime is read into records (graph.c), a group of its
 * nodes becomes the bytes of an ONNX model (bytes.c), and that a kernel for each set of sizes (kernel.c). */
#ifndef OPJIT_HOSTS_ONNXRUNTIME_PROVIDER_H
#define OPJIT_HOSTS_ONNXRUNTIME_PROVIDER_H

#include <stdatomic.h>

#include <opjit/model.h>

#include "frontend/hosts/onnxruntime/ort.h"

#define ORT_PROVIDER "OpjitExecutionProvider"
enum { ORT_RANK = 8, ORT_NONE = -1 };

typedef enum claim_rule {
    CLAIM_GAIN, /* what is measured to be faster */
    CLAIM_ALL   /* what opjit takes */
} claim_rule;

/* A dimension's name and a size to measure with. */
typedef struct claim_dim {
    char name[64];
    int64_t size;
} claim_dim;
enum { CLAIM_DIMS = 16 };

typedef struct provider_options {
    claim_rule claim;
    opjit_level level;
    uint32_t threads; /* at most as many of the host's; 0: all */
    uint32_t dim_count;
    claim_dim dims[CLAIM_DIMS];
    char cache_dir[1024]; /* "": none */
} provider_options;

/* What was found out about a group. */
typedef struct measured {
    uint64_t hash; /* of its model; 0: none */
    bool is_faster;
} measured;
enum { MEASURED = 64 };

/* A provider in a session. */
typedef struct provider {
    ort_ep ep;
    const ort_api *api;
    const ort_logger *logger;
    opjit_context *context;
    bool one_group;    /* a session of this host may have no more, */
    size_t group_hash; /* and this is it; 0: none yet */
    provider_options options;
    measured measured[MEASURED]; /* the last ones, in a circle */
    uint32_t next_measured;
} provider;

/* "opjit: " and the line, as a status; the call's text is cut where it is long. */
ort_status *opjit_ort_fail(const ort_api *api, int code, const char *format, ...);
/* Reads the session's options of this provider; a status names what is wrong. */
ort_status *opjit_ort_options(const ort_api *api, const ort_session_options *session, provider_options *out);

/* --- memory that is freed at once ------------------------------------------------------------------------------ */
typedef struct arena_block arena_block;
typedef struct arena {
    arena_block *blocks;
} arena;
/* Zeroed memory, or NULL. */
void *opjit_ort_allocate(arena *a, size_t count, size_t size);
void opjit_ort_free(arena *a);

/* --- graphs ------------------------------------------------------------------------------------------------------ */
typedef struct graph_value {
    const char *name;
    const ort_value *data; /* of a constant; NULL: none */
    int type;              /* of ONNX; 0: no tensor */
    uint32_t rank;
    int64_t dims[ORT_RANK]; /* -1: not known */
    const char *dim_names[ORT_RANK];
    uint32_t readers; /* inputs of nodes of this graph, and of graphs in them */
    int32_t maker;    /* the node; ORT_NONE: none of this graph */
    bool is_output;   /* of the graph */
    uint32_t inside;  /* readers in the group that is looked at */
    uint32_t mark;    /* the group that met it last */
} graph_value;

typedef struct graph_node {
    const ort_node *node;
    const char *op, *domain, *name;
    int32_t *inputs, *outputs; /* values; ORT_NONE: absent */
    uint32_t input_count, output_count;
    int32_t *implicit; /* what graphs inside of it read */
    uint32_t implicit_count;
    bool has_graphs;
} graph_node;

typedef struct graph {
    arena memory;
    const ort_graph *host;
    graph_node *nodes;
    graph_value *values;
    uint32_t node_count, value_count;
    uint32_t marks; /* groups that were looked at */
    bool is_inner;  /* it reads values of a graph around it */
} graph;

/* Reads the graph's records, which borrow from it.  The caller frees them, after an error, too. */
ort_status *opjit_ort_read_graph(const ort_api *api, const ort_graph *host, graph *out);
void opjit_ort_free_graph(graph *g);

/* Nodes that become one, with what they read and make, in the order in which they name it. */
typedef struct group {
    uint32_t *nodes, node_count; /* indices, ascending */
    int32_t *inputs, *outputs, *constants;
    uint32_t input_count, output_count, constant_count;
} group;

/* Fills in inputs, outputs and constants. */
bool opjit_ort_find_ports(graph *g, group *nodes);

/* A tensor's type of ONNX and its sizes; of more than ORT_RANK dimensions their number alone. */
ort_status *opjit_ort_read_tensor(const ort_api *api, const ort_value *value, int *type, int64_t dims[ORT_RANK],
                                  size_t *rank);

/* --- bytes of a model --------------------------------------------------------------------------------------------- */
typedef struct bytes {
    unsigned char *data; /* at a multiple of 64 */
    size_t size, capacity;
    bool failed; /* no memory */
} bytes;

/* Writes the group as a model; constants of a multiple of 64 bytes' place in it.  The caller frees out->data. */
ort_status *opjit_ort_write_model(const ort_api *api, const graph *g, const group *nodes, bytes *out);

/* --- kernels ------------------------------------------------------------------------------------------------------ */
typedef struct shape {
    uint32_t rank;
    uint64_t sizes[ORT_RANK];
} shape;

/* An input or output of a kernel: the fused node's that it is, and the binding; ORT_NONE: none. */
typedef struct port {
    int32_t binding;
    shape sizes;
} port;

/* A model of given sizes, its kernel, and how a call binds it. */
typedef struct entry {
    atomic_uint users;
    opjit_model *model;
    opjit_kernel *kernel; /* NULL: the model is only read */
    shape *shapes;        /* of the inputs: what it is found by */
    port *inputs, *outputs;
    uint32_t input_count, output_count, binding_count;
    uint64_t workspace_bytes, scratch_bytes; /* for one worker, for each further one */
} entry;

/* Makes a model of the bytes, and its kernel unless it is only read. */
opjit_status opjit_ort_make(const provider *p, const bytes *model, const char *const *names, const shape *shapes,
                            uint32_t input_count, bool only_read, entry **out, opjit_error *error);
void opjit_ort_release_entry(entry *e);

/* The functions of a fused node in *out, with a kernel for the sizes that are known. */
ort_status *opjit_ort_compile(provider *p, const ort_graph *host, const ort_node *fused, ort_compute_info **out);
void opjit_ort_release_compute(ort_compute_info *info);

/* --- claims ------------------------------------------------------------------------------------------------------- */
/* OrtEp's GetCapability. */
ort_status *opjit_ort_claim(provider *p, const ort_graph *host, ort_support_info *support);
/* Whether the model runs faster here than by the host's own kernels; sizes: of its inputs. */
ort_status *opjit_ort_is_faster(provider *p, const graph *g, const group *nodes, const bytes *model,
                                const shape *shapes, bool *out);

#endif
