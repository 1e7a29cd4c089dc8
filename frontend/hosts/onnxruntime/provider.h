/* SPDX-License-Identifier: Apache-2.0 */
/* provider.h - what the provider's files share.  A graph of ONNX Runtime is read into records (graph.c), a group of its
 * nodes becomes the bytes of an ONNX model (bytes.c), and that a kernel for each set of sizes (kernel.c).  A context
 * model carries both (context.c). */
#ifndef OPJIT_HOSTS_ONNXRUNTIME_PROVIDER_H
#define OPJIT_HOSTS_ONNXRUNTIME_PROVIDER_H

#include <stdatomic.h>

#include <opjit/model.h>
#include <opjit/reflect.h>

#include "frontend/hosts/onnxruntime/ort.h"

#define ORT_PROVIDER "OpjitExecutionProvider"
enum { ORT_RANK = 8, ORT_NONE = -1, ORT_PATH = 4096 };
enum { ORT_ENTRIES = 32 }; /* kernels of a fused node that are kept */

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
    char cache_dir[1024];           /* "": none */
    char target[OPJIT_TARGET_TEXT]; /* "": this CPU */
    bool writes_context, embeds_context;
    char context_path[ORT_PATH]; /* of the context model; "": not said */
} provider_options;

/* A group's model, with sizes. */
typedef struct verdict_key {
    uint64_t hash[2];
} verdict_key;

/* What was found out about a group. */
typedef struct measured {
    verdict_key key; /* zeros: none */
    bool is_faster;
} measured;
enum { MEASURED = 64 };

/* A provider in a session. */
typedef struct provider {
    ort_ep ep;
    const ort_api *api;
    const ort_logger *logger;
    const char *host_version;
    opjit_context *context;
    bool one_group;    /* a session of this host may have no more, */
    size_t group_hash; /* and this is it; 0: none yet */
    provider_options options;
    measured measured[MEASURED]; /* the last ones, in a circle */
    uint32_t next_measured;
    uint32_t context_files;  /* that were written */
    char compatibility[800]; /* what context models say of who made them */
} provider;

/* "opjit: " and the line, as a status; the call's text is cut where it is long. */
ort_status *opjit_ort_fail(const ort_api *api, int code, const char *format, ...);
/* "opjit: " and the line, as a warning in the host's log. */
void opjit_ort_warn(const provider *p, const char *format, ...);
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

/* Bytes of an element, of which those of 4 bits have two; 0: no type that is taken. */
size_t opjit_ort_element_size(int type);

/* --- bytes of a model --------------------------------------------------------------------------------------------- */
typedef struct bytes {
    unsigned char *data; /* at a multiple of 64 */
    size_t size, capacity;
    bool failed; /* no memory */
} bytes;

/* Room for so many more bytes; those bytes.  Without memory out->failed is set. */
void opjit_ort_reserve(bytes *b, size_t more);
void opjit_ort_put(bytes *b, const void *data, size_t size);
/* Reads the attribute's contents into *out, `*out_size` bytes which the caller frees, with a byte of 0 behind. */
ort_status *opjit_ort_read_attribute(const ort_api *api, const ort_attribute *a, int type, void **out,
                                     size_t *out_size);
/* Writes the group as a model; constants of a multiple of 64 bytes' place in it.  The caller frees out->data. */
ort_status *opjit_ort_write_model(const ort_api *api, const graph *g, const group *nodes, bytes *out);

/* --- kernels ------------------------------------------------------------------------------------------------------ */
typedef struct shape {
    uint32_t rank;
    uint64_t sizes[ORT_RANK];
} shape;

/* An input or output of a kernel, and its binding; ORT_NONE: nothing reads it, or it has no elements. */
typedef struct port {
    int32_t binding;
    shape sizes;
} port;

/* A model of given sizes, its kernel, and how a call binds it. */
typedef struct entry {
    atomic_uint users;
    opjit_model *model;
    opjit_kernel *kernel; /* NULL: the model is only read, or no output has elements */
    shape *shapes;        /* of the inputs: what it is found by */
    port *inputs, *outputs;
    uint32_t input_count, output_count, binding_count;
    uint64_t workspace_bytes, scratch_bytes; /* for one worker, for each further one */
} entry;

/* The image of a kernel that may be at hand, and what it was made with. */
typedef struct image {
    const void *data;
    uint64_t bytes;
    opjit_level level;
    const char *target; /* which runs here */
} image;

/* Makes a model of the bytes, and its kernel unless it is only read: of the image where that is this kernel's, else it
 * is compiled.  from may be NULL. */
opjit_status opjit_ort_make(const provider *p, const bytes *model, const char *const *names, const shape *shapes,
                            uint32_t input_count, bool only_read, const image *from, entry **out, opjit_error *error);
void opjit_ort_release_entry(entry *e);

/* The functions of a fused node in *out, with a kernel for the sizes that are known.  out_context_node: an EPContext
 * node that carries them; NULL: none is asked for. */
ort_status *opjit_ort_compile(provider *p, const ort_graph *host, const ort_node *fused, ort_compute_info **out,
                              ort_node **out_context_node);
void opjit_ort_release_compute(ort_compute_info *info);

/* --- files -------------------------------------------------------------------------------------------------------- */
/* Bytes at a multiple of 64. */
typedef struct stored {
    unsigned char *data;
    size_t size;
    bool is_mapped;
} stored;

/* Of what comes behind bytes whose hash is `before`, of a number that is a multiple of 8; 0: behind nothing. */
uint64_t opjit_ort_hash(uint64_t before, const void *data, size_t size);
/* These two say why not; NULL: it is done.  A reader meets a whole file. */
const char *opjit_ort_read_file(const char *path, stored *out);
const char *opjit_ort_write_file(const char *path, const void *data, size_t size);
void opjit_ort_free_stored(stored *s);

/* --- contexts ----------------------------------------------------------------------------------------------------- */
typedef struct carried_kernel {
    const void *image;
    uint64_t bytes;
    const shape *shapes; /* of the inputs */
} carried_kernel;

/* What a context carries. */
typedef struct carried {
    uint64_t sum; /* of one that was read */
    const void *model;
    uint64_t model_bytes;
    const char *const *names; /* of the model's inputs */
    const int32_t *types;     /* of its inputs, then of its outputs, as ONNX numbers them */
    uint32_t input_count, output_count, kernel_count;
    carried_kernel kernels[ORT_ENTRIES];
    opjit_level level; /* of the kernels, as their target */
    const char *target, *version, *build;
} carried;

/* As bytes, which the caller frees, with their checksum; false: there is no memory. */
bool opjit_ort_pack(const carried *c, bytes *out, uint64_t *out_sum);
/* Borrows from the bytes, which may be anybody's.  Why not; NULL: it is done. */
const char *opjit_ort_unpack(const stored *s, arena *memory, carried *out);
/* Bytes as a text, and back; false: there is no memory, or the text is none of these. */
bool opjit_ort_without_zeros(const bytes *from, bytes *out);
bool opjit_ort_with_zeros(const void *text, size_t size, bytes *out);

/* What context models say of who makes them with code for the target, and whether they are for this CPU and library,
 * an OrtCompiledModelCompatibility. */
void opjit_ort_write_compatibility(const char *target, char *out, size_t size);
int opjit_ort_read_compatibility(const char *text);
/* Whether the node is an EPContext node of this provider. */
ort_status *opjit_ort_is_context(const ort_api *api, const graph_node *n, bool *out);
/* What the graph's node carries, in *out, which borrows from *out_bytes and *memory. */
ort_status *opjit_ort_open_context(const provider *p, const graph *g, const graph_node *n, arena *memory,
                                   stored *out_bytes, carried *out);
/* An EPContext node in the place of the fused one, and the file beside the context model, if there is to be one. */
ort_status *opjit_ort_make_context_node(provider *p, const ort_graph *host, const ort_node *fused, const carried *c,
                                        const char *const *outputs, ort_node **out);

/* --- claims ------------------------------------------------------------------------------------------------------- */
/* The sizes of the group's inputs, where they are not known those of the option dims, and else the guess.  *out_known:
 * none was guessed. */
void opjit_ort_choose_sizes(const provider *p, const graph *g, const group *of, int64_t guess, shape *out,
                            bool *out_known);
/* OrtEp's GetCapability. */
ort_status *opjit_ort_claim(provider *p, const ort_graph *host, ort_support_info *support);
/* Measures whether the model runs faster here than by the host's own kernels; sizes: of its inputs.  false: it can't be
 * measured. */
bool opjit_ort_measure(const provider *p, const graph *g, const group *nodes, const bytes *model, const shape *shapes,
                       bool *out);

/* What was measured before, here or by a process with the same cache_dir. */
verdict_key opjit_ort_verdict_key(const bytes *model, const shape *shapes, uint32_t count);
bool opjit_ort_find_verdict(provider *p, const verdict_key *key, bool *out);
void opjit_ort_keep_verdict(provider *p, const verdict_key *key, bool is_faster);

#endif
