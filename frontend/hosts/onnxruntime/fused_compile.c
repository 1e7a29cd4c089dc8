/* SPDX-License-Identifier: Apache-2.0 */
/* fused_compile.c - how a fused node is made: of nodes that were claimed, or of a context; and a context of it. */
#define _DEFAULT_SOURCE /* sysconf's number of cores */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/hosts/onnxruntime/fused.h"

/* --- ports and kernels -------------------------------------------------------------------------------------------- */

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
    if (opjit_ort_find_entry(f, shapes, NULL, &e, &error) != OPJIT_OK)
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
        if (opjit_ort_find_entry(f, c->kernels[i].shapes, why.message[0] == '\0' ? &from : NULL, &e, &error) !=
            OPJIT_OK)
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
    opjit_ort_init_fused(f, p, worker_count(p));
    ort_status *const status = compile_graph(f, p, &g, node, out_context_node);
    opjit_ort_free_graph(&g);
    if (status != NULL)
        opjit_ort_release_compute(&f->info);
    else
        *out = &f->info;
    return status;
}
