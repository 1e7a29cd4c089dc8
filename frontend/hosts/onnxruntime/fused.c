/* SPDX-License-Identifier: Apache-2.0 */
/* fused.c - a fused node: a kernel for each set of sizes that its calls have, the last few of them kept, and calls; one
 * that is a context, and one that becomes one. */
#define _DEFAULT_SOURCE /* sysconf's number of cores */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/hosts/onnxruntime/provider.h"

/* Memory of one call, kept for the next. */
typedef struct frame {
    struct frame *next;
    shape *shapes;
    opjit_binding *bindings;
    void *workspace;
    uint64_t workspace_bytes;
} frame;

typedef struct fused {
    ort_compute_info info;
    const provider *p;
    bytes model;    /* in `context`, if there is one */
    stored context; /* of an EPContext node */
    arena memory;
    const char *const *names;   /* of inputs */
    uint32_t *inputs, *outputs; /* the fused node's, of the model's */
    int *types;                 /* of inputs */
    uint32_t input_count, output_count;
    uint32_t workers;
    pthread_mutex_t lock; /* of what follows */
    frame *frames;
    entry *entries[ORT_ENTRIES]; /* the last used first */
    uint32_t entry_count;
} fused;

/* --- kernels that are kept ---------------------------------------------------------------------------------------- */

static bool same_shapes(const shape *a, const shape *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].rank != b[i].rank || memcmp(a[i].sizes, b[i].sizes, a[i].rank * sizeof *a->sizes) != 0)
            return false;
    return true;
}

/* The kept entry of these sizes, with a reference for the caller, or NULL.  The lock is held. */
static entry *find_kept(fused *f, const shape *shapes)
{
    for (uint32_t i = 0; i < f->entry_count; i++) {
        entry *const e = f->entries[i];
        if (!same_shapes(e->shapes, shapes, f->input_count))
            continue;
        memmove(f->entries + 1, f->entries, i * sizeof *f->entries);
        f->entries[0] = e;
        atomic_fetch_add(&e->users, 1);
        return e;
    }
    return NULL;
}

/* Keeps the entry, unless another thread was first; the one used longest ago gives way. */
static entry *keep(fused *f, entry *made)
{
    entry *dropped = NULL;
    pthread_mutex_lock(&f->lock);
    entry *kept = find_kept(f, made->shapes);
    if (kept != NULL) {
        dropped = made;
    } else {
        if (f->entry_count == ORT_ENTRIES)
            dropped = f->entries[--f->entry_count];
        memmove(f->entries + 1, f->entries, f->entry_count * sizeof *f->entries);
        f->entries[0] = kept = made;
        f->entry_count++;
        atomic_fetch_add(&made->users, 1);
    }
    pthread_mutex_unlock(&f->lock);
    opjit_ort_release_entry(dropped);
    return kept;
}

/* from: the image of the entry's kernel; NULL: there is none. */
static opjit_status find_entry(fused *f, const shape *shapes, const image *from, entry **out, opjit_error *error)
{
    entry *made = NULL;
    pthread_mutex_lock(&f->lock);
    *out = find_kept(f, shapes);
    pthread_mutex_unlock(&f->lock);
    if (*out != NULL)
        return OPJIT_OK;
    const opjit_status status =
        opjit_ort_make(f->p, &f->model, f->names, shapes, f->input_count, false, from, &made, error);
    if (status == OPJIT_OK)
        *out = keep(f, made);
    return status;
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

static void free_frame(frame *m)
{
    if (m == NULL)
        return;
    free(m->shapes);
    free(m->bindings);
    free(m->workspace);
    free(m);
}

static frame *take_frame(fused *f)
{
    pthread_mutex_lock(&f->lock);
    frame *m = f->frames;
    if (m != NULL)
        f->frames = m->next;
    pthread_mutex_unlock(&f->lock);
    if (m != NULL)
        return m;
    m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->shapes = calloc((size_t)f->input_count + 1, sizeof *m->shapes);
    m->bindings = calloc((size_t)f->input_count + f->output_count + 1, sizeof *m->bindings);
    if (m->shapes == NULL || m->bindings == NULL) {
        free_frame(m);
        return NULL;
    }
    return m;
}

static void give_frame(fused *f, frame *m)
{
    pthread_mutex_lock(&f->lock);
    m->next = f->frames;
    f->frames = m;
    pthread_mutex_unlock(&f->lock);
}

/* --- the host's threads ------------------------------------------------------------------------------------------- */

typedef struct work {
    const ort_api *api;
    ort_kernel_context *context;
    void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end);
    void *arg;
    uint64_t extent, piece;
    atomic_uint_fast64_t next;
} work;

static void do_pieces(void *user, size_t worker)
{
    work *const w = user;
    for (;;) {
        const uint64_t begin = atomic_fetch_add(&w->next, w->piece);
        if (begin >= w->extent)
            return;
        w->body(w->arg, (uint32_t)worker, begin, w->extent - begin < w->piece ? w->extent : begin + w->piece);
    }
}

typedef struct host_threads {
    const ort_api *api;
    ort_kernel_context *context;
    uint32_t workers;
} host_threads;

/* opjit_executor.run: four pieces for each thread, in units of the grain. */
static opjit_status run_on_host(void *user, uint64_t extent, uint64_t grain,
                                void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    const host_threads *const h = user;
    const uint64_t units = extent / grain + (extent % grain != 0), pieces = 4 * (uint64_t)h->workers;
    work w = { .body = body, .arg = arg, .extent = extent, .piece = (units + pieces - 1) / pieces * grain };
    atomic_init(&w.next, 0);
    if (units < 2) {
        do_pieces(&w, 0);
        return OPJIT_OK;
    }
    ort_status *const status =
        h->api->KernelContext_ParallelFor(h->context, do_pieces, units < h->workers ? units : h->workers, 0, &w);
    if (status == NULL)
        return OPJIT_OK;
    h->api->ReleaseStatus(status);
    return OPJIT_UNAVAILABLE;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Input i's memory, and its sizes in *out. */
static ort_status *read_input(const fused *f, ort_kernel_context *context, uint32_t i, shape *out,
                              opjit_binding *memory)
{
    const ort_api *const api = f->p->api;
    const ort_value *value = NULL;
    int64_t dims[ORT_RANK] = { 0 };
    size_t rank = 0;
    int type = 0;
    ORT_TRY(api->KernelContext_GetInput(context, f->inputs[i], &value));
    if (value == NULL)
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "input \"%.80s\": no value is given", f->names[i]);
    ORT_TRY(opjit_ort_read_tensor(api, value, &type, dims, &rank));
    if (type != f->types[i] || rank > ORT_RANK)
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "input \"%.80s\": type %d with %d dimensions, must be type %d",
                              f->names[i], type, (int)rank, f->types[i]);
    out->rank = (uint32_t)rank;
    for (size_t d = 0; d < rank; d++)
        out->sizes[d] = (uint64_t)dims[d];
    memory->bytes = UINT64_MAX;
    return api->GetTensorMutableData((ort_value *)value, &memory->data);
}

/* Output i's memory. */
static ort_status *make_output(const fused *f, ort_kernel_context *context, const entry *e, uint32_t i,
                               opjit_binding *memory)
{
    const ort_api *const api = f->p->api;
    const port *const out = &e->outputs[i];
    int64_t dims[ORT_RANK];
    ort_value *value = NULL;
    for (uint32_t d = 0; d < out->sizes.rank; d++)
        dims[d] = (int64_t)out->sizes.sizes[d];
    ORT_TRY(api->KernelContext_GetOutput(context, f->outputs[i], dims, out->sizes.rank, &value));
    if (value == NULL)
        return opjit_ort_fail(api, ORT_FAIL, "output %u: the host gives no memory", i);
    memory->bytes = UINT64_MAX;
    return api->GetTensorMutableData(value, &memory->data);
}

static bool have_workspace(frame *m, const entry *e, uint32_t workers)
{
    const uint64_t needed = (e->workspace_bytes + (workers - 1) * e->scratch_bytes + 63) / 64 * 64;
    if (needed <= m->workspace_bytes)
        return true;
    free(m->workspace);
    m->workspace = aligned_alloc(64, needed);
    m->workspace_bytes = m->workspace == NULL ? 0 : needed;
    return m->workspace != NULL;
}

static ort_status *call_entry(fused *f, ort_kernel_context *context, const entry *e, frame *m)
{
    const ort_api *const api = f->p->api;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error;
    host_threads threads = { api, context, f->workers };
    const opjit_executor executor = { &threads, f->workers, run_on_host };
    for (uint32_t i = 0; i < e->input_count; i++) /* bindings are numbered in order, so none is overwritten before */
        if (e->inputs[i].binding >= 0)
            m->bindings[e->inputs[i].binding] = m->bindings[i];
    for (uint32_t i = 0; i < e->output_count; i++)
        ORT_TRY(make_output(f, context, e, i, &m->bindings[e->outputs[i].binding]));
    if (!have_workspace(m, e, f->workers))
        return opjit_ort_fail(api, ORT_FAIL, "there is no memory for a workspace of %llu bytes",
                              (unsigned long long)e->workspace_bytes);
    call.binding_count = e->binding_count;
    call.bindings = m->bindings;
    if (m->workspace_bytes > 0)
        call.workspace = (opjit_binding){ m->workspace, m->workspace_bytes };
    call.executor = f->workers > 1 ? &executor : NULL;
    if (opjit_kernel_call(e->kernel, &call, &error) != OPJIT_OK)
        return opjit_ort_fail(api, ORT_FAIL, "%s", error.message);
    return NULL;
}

static ort_status *call_fused(fused *f, ort_kernel_context *context, frame *m)
{
    opjit_error error;
    entry *e = NULL;
    for (uint32_t i = 0; i < f->input_count; i++)
        ORT_TRY(read_input(f, context, i, &m->shapes[i], &m->bindings[i]));
    if (find_entry(f, m->shapes, NULL, &e, &error) != OPJIT_OK)
        return opjit_ort_fail(f->p->api, ORT_FAIL, "%s", error.message);
    ort_status *const status = call_entry(f, context, e, m);
    opjit_ort_release_entry(e);
    return status;
}

static ort_status *compute(ort_compute_info *info, void *state, ort_kernel_context *context)
{
    fused *const f = (fused *)info;
    frame *const m = take_frame(f);
    (void)state;
    if (m == NULL)
        return opjit_ort_fail(f->p->api, ORT_FAIL, "there is no memory");
    ort_status *const status = call_fused(f, context, m);
    give_frame(f, m);
    return status;
}

/* --- fused nodes -------------------------------------------------------------------------------------------------- */

static ort_status *create_state(ort_compute_info *info, ort_compute_context *context, void **out)
{
    (void)context;
    *out = info;
    return NULL;
}

static void release_state(ort_compute_info *info, void *state)
{
    (void)info;
    (void)state;
}

void opjit_ort_release_compute(ort_compute_info *info)
{
    fused *const f = (fused *)info;
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < f->entry_count; i++)
        opjit_ort_release_entry(f->entries[i]);
    while (f->frames != NULL) {
        frame *const next = f->frames->next;
        free_frame(f->frames);
        f->frames = next;
    }
    pthread_mutex_destroy(&f->lock);
    opjit_ort_free(&f->memory);
    if (f->context.data == NULL)
        free(f->model.data);
    opjit_ort_free_stored(&f->context);
    free(f);
}

/* Where among `count` values of the fused node the named one is. */
static ort_status *find_port(const ort_api *api, const ort_value_info *const *infos, size_t count, const char *name,
                             uint32_t *out)
{
    for (size_t i = 0; i < count; i++) {
        const char *other = NULL;
        if (infos[i] == NULL)
            continue;
        ORT_TRY(api->GetValueInfoName(infos[i], &other));
        if (strcmp(other, name) == 0) {
            *out = (uint32_t)i;
            return NULL;
        }
    }
    return opjit_ort_fail(api, ORT_FAIL, "the fused node has no value \"%.80s\"", name);
}

/* Which of the fused node's inputs and outputs the model's are. */
static ort_status *match_ports(fused *f, const graph *g, const group *nodes, const ort_node *host)
{
    const ort_api *const api = f->p->api;
    size_t inputs = 0, outputs = 0;
    ORT_TRY(api->Node_GetNumInputs(host, &inputs));
    ORT_TRY(api->Node_GetNumOutputs(host, &outputs));
    const ort_value_info **const infos = opjit_ort_allocate(&f->memory, inputs + outputs + 1, sizeof *infos);
    f->inputs = opjit_ort_allocate(&f->memory, nodes->input_count, sizeof *f->inputs);
    f->outputs = opjit_ort_allocate(&f->memory, nodes->output_count, sizeof *f->outputs);
    f->types = opjit_ort_allocate(&f->memory, nodes->input_count, sizeof *f->types);
    const char **const names = opjit_ort_allocate(&f->memory, nodes->input_count, sizeof *names);
    if (infos == NULL || f->inputs == NULL || f->outputs == NULL || f->types == NULL || names == NULL)
        return opjit_ort_fail(api, ORT_FAIL, "there is no memory");
    ORT_TRY(inputs == 0 ? NULL : api->Node_GetInputs(host, infos, inputs));
    ORT_TRY(outputs == 0 ? NULL : api->Node_GetOutputs(host, infos + inputs, outputs));
    for (uint32_t i = 0; i < nodes->input_count; i++) {
        const graph_value *const v = &g->values[nodes->inputs[i]];
        char *const name = opjit_ort_allocate(&f->memory, strlen(v->name) + 1, 1);
        if (name == NULL)
            return opjit_ort_fail(api, ORT_FAIL, "there is no memory");
        memcpy(name, v->name, strlen(v->name) + 1);
        names[i] = name;
        f->types[i] = v->type;
        ORT_TRY(find_port(api, infos, inputs, v->name, &f->inputs[i]));
    }
    for (uint32_t i = 0; i < nodes->output_count; i++)
        ORT_TRY(find_port(api, infos + inputs, outputs, g->values[nodes->outputs[i]].name, &f->outputs[i]));
    f->names = names;
    f->input_count = nodes->input_count;
    f->output_count = nodes->output_count;
    return NULL;
}

/* Makes the kernel now if all sizes are known; what has no known rank looks like a scalar, and is none or is found so
 * by the first call.  For a context a kernel of what looks so is worth having. */
static ort_status *compile_known(fused *f, const graph *g, const group *nodes, bool for_context)
{
    opjit_error error;
    entry *e = NULL;
    bool known = true, sure = true;
    shape *const shapes = opjit_ort_allocate(&f->memory, nodes->input_count, sizeof *shapes);
    if (shapes == NULL)
        return opjit_ort_fail(f->p->api, ORT_FAIL, "there is no memory");
    opjit_ort_choose_sizes(f->p, g, nodes, 1, shapes, &known);
    for (uint32_t i = 0; i < nodes->input_count; i++) {
        const graph_value *const v = &g->values[nodes->inputs[i]];
        sure = sure && v->rank > 0;
        for (uint32_t d = 0; d < v->rank; d++)
            sure = sure && v->dims[d] >= 0;
    }
    if (!known || !(sure || for_context))
        return NULL;
    if (find_entry(f, shapes, NULL, &e, &error) != OPJIT_OK)
        return sure ? opjit_ort_fail(f->p->api, ORT_FAIL, "%s", error.message) : NULL;
    opjit_ort_release_entry(e);
    return NULL;
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

/* Why the kernels' images are not to be loaded; "": they are. */
static void check_images(const carried *c, const opjit_build_info *build, opjit_error *out)
{
    if (strcmp(c->build, build->id) != 0)
        snprintf(out->message, sizeof out->message, "made by opjit %.30s, another build than this one, %s", c->version,
                 build->version);
    else if (opjit_target_runs_here(c->target, out) == OPJIT_OK)
        out->message[0] = '\0';
}

/* Makes the kernels that the context carries: of their images, or anew where this CPU or library is another one. */
static ort_status *load_kernels(fused *f, const char *node, const carried *c)
{
    opjit_build_info build = OPJIT_BUILD_INFO_INIT;
    opjit_error why, error;
    if (opjit_get_build_info(&build, &error) != OPJIT_OK)
        return opjit_ort_fail(f->p->api, ORT_FAIL, "%s", error.message);
    check_images(c, &build, &why);
    if (why.message[0] != '\0' && c->kernel_count > 0)
        opjit_ort_warn(f->p, "node \"%.80s\": its kernels are compiled anew: %s", node, why.message);
    for (uint32_t i = 0; i < c->kernel_count; i++) {
        const image from = { c->kernels[i].image, c->kernels[i].bytes, c->level, c->target };
        entry *e = NULL;
        if (find_entry(f, c->kernels[i].shapes, why.message[0] == '\0' ? &from : NULL, &e, &error) != OPJIT_OK)
            return opjit_ort_fail(f->p->api, ORT_FAIL, "node \"%.80s\": %s%s%s", node, error.message,
                                  why.message[0] == '\0' ? "" : "; its kernels are ", why.message);
        opjit_ort_release_entry(e);
    }
    return NULL;
}

/* Opens the context that the graph's only node is. */
static ort_status *open_context(fused *f, const graph *g, const ort_node *host)
{
    const graph_node *const n = &g->nodes[0];
    group nodes = {
        .inputs = n->inputs, .outputs = n->outputs, .input_count = n->input_count, .output_count = n->output_count
    };
    carried c;
    ORT_TRY(match_ports(f, g, &nodes, host));
    ORT_TRY(opjit_ort_open_context(f->p, g, n, &f->memory, &f->context, &c));
    f->model = (bytes){ (unsigned char *)c.model, (size_t)c.model_bytes, 0, false };
    f->names = c.names; /* the values around may have others by now */
    return load_kernels(f, n->name, &c);
}

/* What the fused node is, as an EPContext node in its place. */
static ort_status *make_context(const fused *f, provider *p, graph *g, const group *nodes, const ort_node *host,
                                ort_node **out)
{
    opjit_build_info build = OPJIT_BUILD_INFO_INIT;
    opjit_error error;
    carried c = { .model = f->model.data,
                  .model_bytes = f->model.size,
                  .names = f->names,
                  .input_count = f->input_count,
                  .output_count = f->output_count,
                  .level = p->options.level,
                  .target = opjit_context_target(p->context) };
    int32_t *const types = opjit_ort_allocate(&g->memory, (size_t)f->input_count + f->output_count, sizeof *types);
    const char **const outputs = opjit_ort_allocate(&g->memory, f->output_count, sizeof *outputs);
    if (types == NULL || outputs == NULL)
        return opjit_ort_fail(p->api, ORT_FAIL, "there is no memory");
    if (opjit_get_build_info(&build, &error) != OPJIT_OK)
        return opjit_ort_fail(p->api, ORT_FAIL, "%s", error.message);
    c.version = build.version;
    c.build = build.id;
    c.types = types;
    for (uint32_t i = 0; i < f->input_count; i++)
        types[i] = f->types[i];
    for (uint32_t i = 0; i < f->output_count; i++) {
        types[f->input_count + i] = g->values[nodes->outputs[i]].type;
        outputs[i] = g->values[nodes->outputs[i]].name;
    }
    for (uint32_t i = 0; i < f->entry_count; i++) {
        carried_kernel *const k = &c.kernels[c.kernel_count];
        k->shapes = f->entries[i]->shapes;
        c.kernel_count += opjit_kernel_get_image(f->entries[i]->kernel, &k->image, &k->bytes, &error) == OPJIT_OK;
    }
    return opjit_ort_make_context_node(p, g->host, host, &c, outputs, out);
}

/* --- compiling ---------------------------------------------------------------------------------------------------- */

static uint32_t worker_count(const provider *p)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t most = cores < 1 ? 1 : cores > 64 ? 64 : (uint32_t)cores;
    return p->options.threads == 0 || p->options.threads > most ? most : p->options.threads;
}

static ort_status *compile_graph(fused *f, provider *p, graph *g, const ort_node *node, ort_node **out_context_node)
{
    const ort_api *const api = p->api;
    group nodes = { NULL, 0, NULL, NULL, NULL, 0, 0, 0 };
    bool is_context = false;
    ORT_TRY(opjit_ort_read_graph(api, g->host, g));
    if (g->node_count == 1)
        ORT_TRY(opjit_ort_is_context(api, &g->nodes[0], &is_context));
    if (is_context && out_context_node != NULL)
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT,
                              "node \"%.80s\" is a context already: ep.context_enable has nothing to do here",
                              g->nodes[0].name);
    if (is_context)
        return open_context(f, g, node);
    nodes.node_count = g->node_count;
    nodes.nodes = opjit_ort_allocate(&g->memory, g->node_count, sizeof *nodes.nodes);
    for (uint32_t i = 0; i < g->node_count && nodes.nodes != NULL; i++)
        nodes.nodes[i] = i;
    if (nodes.nodes == NULL || !opjit_ort_find_ports(g, &nodes))
        return opjit_ort_fail(api, ORT_FAIL, "there is no memory");
    ORT_TRY(match_ports(f, g, &nodes, node));
    ORT_TRY(opjit_ort_write_model(api, g, &nodes, &f->model));
    ORT_TRY(compile_known(f, g, &nodes, out_context_node != NULL));
    return out_context_node == NULL ? NULL : make_context(f, p, g, &nodes, node, out_context_node);
}

ort_status *opjit_ort_compile(provider *p, const ort_graph *host, const ort_node *node, ort_compute_info **out,
                              ort_node **out_context_node)
{
    graph g = { .host = host };
    fused *const f = calloc(1, sizeof *f);
    if (f == NULL)
        return opjit_ort_fail(p->api, ORT_FAIL, "there is no memory");
    f->info = (ort_compute_info){ ORT_VERSION, create_state, compute, release_state };
    f->p = p;
    f->workers = worker_count(p);
    pthread_mutex_init(&f->lock, NULL);
    ort_status *const status = compile_graph(f, p, &g, node, out_context_node);
    opjit_ort_free_graph(&g);
    if (status != NULL)
        opjit_ort_release_compute(&f->info);
    else
        *out = &f->info;
    return status;
}
