/* SPDX-License-Identifier: Apache-2.0 */
/* context_node.c - EPContext nodes: ONNX Runtime's form of what a provider has compiled.  Their attribute
 * ep_cache_context is the context (context.c), or names a file beside the model that has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/onnxruntime/provider.h"

static ort_status *no_memory(const ort_api *api)
{
    return opjit_ort_fail(api, ORT_FAIL, "there is no memory");
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

/* The node's attribute of that name and type in *out, as opjit_ort_read_attribute has it; NULL: it has none. */
static ort_status *find_attribute(const ort_api *api, const ort_node *node, const char *name, int type, void **out)
{
    size_t count = 0, size = 0;
    *out = NULL;
    ORT_TRY(api->Node_GetNumAttributes(node, &count));
    const ort_attribute **const attributes = calloc(count + 1, sizeof *attributes);
    if (attributes == NULL)
        return no_memory(api);
    ort_status *status = count == 0 ? NULL : api->Node_GetAttributes(node, attributes, count);
    for (size_t i = 0; i < count && status == NULL && *out == NULL; i++) {
        const char *other = NULL;
        int other_type = 0;
        if (attributes[i] == NULL)
            continue;
        status = api->OpAttr_GetName(attributes[i], &other);
        if (status == NULL)
            status = api->OpAttr_GetType(attributes[i], &other_type);
        if (status == NULL && other_type == type && strcmp(other, name) == 0)
            status = opjit_ort_read_attribute(api, attributes[i], type, out, &size);
    }
    free(attributes);
    return status;
}

ort_status *opjit_ort_is_context(const ort_api *api, const graph_node *n, bool *out)
{
    void *source = NULL;
    *out = false;
    if (strcmp(n->op, "EPContext") != 0 || strcmp(n->domain, "com.microsoft") != 0)
        return NULL;
    ORT_TRY(find_attribute(api, n->node, "source", ORT_ATTRIBUTE_STRING, &source));
    *out = source != NULL && strcmp(source, ORT_PROVIDER) == 0;
    free(source);
    return NULL;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* The length of the path's folder, its slash included. */
static size_t folder_length(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* Reads the file that lies beside the model. */
static ort_status *read_beside(const provider *p, const ort_graph *host, const graph_node *n, const char *name,
                               stored *out)
{
    const ort_api *const api = p->api;
    const char *model = NULL;
    char path[ORT_PATH];
    ORT_TRY(api->Graph_GetModelPath(host, &model));
    if (model == NULL || model[0] == '\0') /* of a model that was given as bytes */
        model = p->options.context_path;
    if (model[0] == '\0')
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT,
                              "node \"%.80s\": its context is in a file beside the model, whose path is not known: "
                              "ep.context_file_path has to say it",
                              n->name);
    if (name[0] == '\0' || strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT,
                              "node \"%.80s\": its context is in file \"%.80s\", "
                              "must be the name of one beside the model",
                              n->name, name);
    if (snprintf(path, sizeof path, "%.*s%s", (int)folder_length(model), model, name) >= (int)sizeof path)
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "node \"%.80s\": the path of its context is too long",
                              n->name);
    const char *const reason = opjit_ort_read_file(path, out);
    return reason == NULL ? NULL
                          : opjit_ort_fail(api, ORT_FAIL, "node \"%.80s\": its context is in file \"%.80s\": %s",
                                           n->name, name, reason);
}

static ort_status *read_embedded(const ort_api *api, const graph_node *n, const char *text, stored *out)
{
    bytes b;
    if (!opjit_ort_with_zeros(text, strlen(text), &b)) {
        free(b.data);
        return opjit_ort_fail(
            api, ORT_FAIL, "node \"%.80s\": its context can't be used: it is damaged, or there is no memory", n->name);
    }
    *out = (stored){ b.data, b.size, false };
    return NULL;
}

static ort_status *read_bytes(const provider *p, const ort_graph *host, const graph_node *n, stored *out)
{
    const ort_api *const api = p->api;
    void *mode = NULL, *text = NULL;
    ORT_TRY(find_attribute(api, n->node, "embed_mode", ORT_ATTRIBUTE_INT, &mode));
    const bool is_beside = mode != NULL && *(const int64_t *)mode == 0; /* embedded if nothing is said */
    free(mode);
    ORT_TRY(find_attribute(api, n->node, "ep_cache_context", ORT_ATTRIBUTE_STRING, &text));
    if (text == NULL)
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "node \"%.80s\" has no ep_cache_context", n->name);
    ort_status *const status = is_beside ? read_beside(p, host, n, text, out) : read_embedded(api, n, text, out);
    free(text);
    return status;
}

/* Whether the node's values are of the types that the model's are. */
static bool has_its_ports(const graph *g, const graph_node *n, const carried *c)
{
    if (n->input_count != c->input_count || n->output_count != c->output_count)
        return false;
    for (uint32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] == ORT_NONE || g->values[n->inputs[i]].type != c->types[i])
            return false;
    for (uint32_t i = 0; i < n->output_count; i++)
        if (n->outputs[i] == ORT_NONE || g->values[n->outputs[i]].type != c->types[c->input_count + i])
            return false;
    return true;
}

/* What the node notes of its context, so that a file of another model is not taken for it. */
static void note(uint64_t sum, char out[40])
{
    snprintf(out, 40, "context %016llx", (unsigned long long)sum);
}

/* Whether the context is the one that the node was made with, as far as the node says. */
static ort_status *is_noted(const ort_api *api, const graph_node *n, uint64_t sum, bool *out)
{
    char own[40];
    void *notes = NULL;
    note(sum, own);
    ORT_TRY(find_attribute(api, n->node, "notes", ORT_ATTRIBUTE_STRING, &notes));
    *out = notes == NULL || ((const char *)notes)[0] == '\0' || strcmp(notes, own) == 0;
    free(notes);
    return NULL;
}

ort_status *opjit_ort_open_context(const provider *p, const graph *g, const graph_node *n, arena *memory,
                                   stored *out_bytes, carried *out)
{
    ORT_TRY(read_bytes(p, g->host, n, out_bytes));
    const char *const reason = opjit_ort_unpack(out_bytes, memory, out);
    if (reason != NULL)
        return opjit_ort_fail(p->api, ORT_FAIL, "node \"%.80s\": its context can't be used: %s", n->name, reason);
    bool noted = false;
    ORT_TRY(is_noted(p->api, n, out->sum, &noted));
    if (!noted)
        return opjit_ort_fail(p->api, ORT_FAIL, "node \"%.80s\": its context can't be used: it is another model's",
                              n->name);
    if (!has_its_ports(g, n, out))
        return opjit_ort_fail(p->api, ORT_FAIL,
                              "node \"%.80s\": its context can't be used: it has other inputs or outputs", n->name);
    return NULL;
}

/* --- whose they are ----------------------------------------------------------------------------------------------- */

void opjit_ort_write_compatibility(const char *target, char *out, size_t size)
{
    opjit_build_info build = OPJIT_BUILD_INFO_INIT;
    opjit_error error;
    const bool known = opjit_get_build_info(&build, &error) == OPJIT_OK;
    snprintf(out, size, "opjit %s, build %s, target %s", known ? build.version : "", known ? build.id : "", target);
}

int opjit_ort_read_compatibility(const char *text)
{
    char own[256];
    opjit_error error;
    opjit_ort_write_compatibility("", own, sizeof own);
    const size_t length = strlen(own);
    return strncmp(text, own, length) == 0 && opjit_target_runs_here(text + length, &error) == OPJIT_OK
               ? ORT_OPTIMAL
               : ORT_PREFER_RECOMPILATION;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

/* The name of the file beside the context model, and its whole path. */
static ort_status *name_file(provider *p, const ort_graph *host, const char **out_name, char path[ORT_PATH])
{
    const ort_api *const api = p->api;
    const char *model = p->options.context_path, *tail = "";
    if (model[0] == '\0') { /* ONNX Runtime's own choice of a name */
        ORT_TRY(api->Graph_GetModelPath(host, &model));
        tail = "_ctx";
    }
    if (model == NULL || model[0] == '\0')
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT,
                              "ep.context_file_path has to name the context model, which files lie beside, "
                              "or ep.context_embed_mode be 1");
    const size_t folder = folder_length(model);
    const char *const dot = strrchr(model + folder, '.');
    const size_t stem = dot == NULL || dot == model + folder ? strlen(model) : (size_t)(dot - model);
    if (stem >= ORT_PATH ||
        snprintf(path, ORT_PATH, "%.*s%s_opjit_%u.bin", (int)stem, model, tail, p->context_files) >= ORT_PATH)
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "the path of the context model is too long");
    *out_name = path + folder;
    p->context_files++;
    return NULL;
}

/* The text of ep_cache_context, in *out or *path. */
static ort_status *place_context(provider *p, const ort_graph *host, const bytes *context, bytes *out,
                                 char path[ORT_PATH], const char **out_text)
{
    const ort_api *const api = p->api;
    if (p->options.embeds_context) {
        if (!opjit_ort_without_zeros(context, out))
            return no_memory(api);
        if (out->size >= INT32_MAX)
            return opjit_ort_fail(api, ORT_FAIL, "a context of %zu bytes is too large for ep.context_embed_mode 1",
                                  context->size);
        *out_text = (const char *)out->data;
        return NULL;
    }
    ORT_TRY(name_file(p, host, out_text, path));
    const char *const reason = opjit_ort_write_file(path, context->data, context->size);
    return reason == NULL ? NULL : opjit_ort_fail(api, ORT_FAIL, "context file \"%.200s\": %s", path, reason);
}

static ort_status *create_node(const provider *p, const ort_node *fused, const carried *c, const char *text,
                               const char *notes, const char *const *outputs, ort_node **out)
{
    enum { COUNT = 8 };
    const ort_api *const api = p->api;
    const int64_t main_context = 1, embed_mode = p->options.embeds_context;
    ort_attribute *made[COUNT] = { NULL };
    const char *name = NULL;
    ORT_TRY(api->Node_GetName(fused, &name)); /* by which ONNX Runtime puts this one into its place */
    const struct {
        const char *name, *text;
        const int64_t *number;
    } rows[COUNT] = { { "main_context", NULL, &main_context },
                      { "embed_mode", NULL, &embed_mode },
                      { "ep_cache_context", text, NULL },
                      { "ep_sdk_version", c->version, NULL },
                      { "partition_name", name, NULL },
                      { "source", ORT_PROVIDER, NULL },
                      { "hardware_architecture", c->target, NULL },
                      { "notes", notes, NULL } };
    ort_status *status = NULL;
    for (int i = 0; i < COUNT && status == NULL; i++)
        status = rows[i].text == NULL ? api->CreateOpAttr(rows[i].name, rows[i].number, 1, ORT_ATTRIBUTE_INT, &made[i])
                                      : api->CreateOpAttr(rows[i].name, rows[i].text, (int)strlen(rows[i].text),
                                                          ORT_ATTRIBUTE_STRING, &made[i]);
    if (status == NULL)
        status = api->CreateNode("EPContext", "com.microsoft", name, c->names, c->input_count, outputs, c->output_count,
                                 made, COUNT, out);
    for (int i = 0; i < COUNT; i++)
        if (made[i] != NULL) /* the host has not taken it */
            api->ReleaseOpAttr(made[i]);
    return status;
}

ort_status *opjit_ort_make_context_node(provider *p, const ort_graph *host, const ort_node *fused, const carried *c,
                                        const char *const *outputs, ort_node **out)
{
    bytes context, encoded = { NULL, 0, 0, false };
    const char *text = NULL;
    char path[ORT_PATH], notes[40];
    uint64_t sum = 0;
    if (p->api->CreateNode == NULL)
        return opjit_ort_fail(p->api, ORT_FAIL,
                              "this ONNX Runtime is built without making models: no context is written");
    ort_status *status =
        opjit_ort_pack(c, &context, &sum) ? place_context(p, host, &context, &encoded, path, &text) : no_memory(p->api);
    free(context.data);
    note(sum, notes);
    if (status == NULL)
        status = create_node(p, fused, c, text, notes, outputs, out);
    free(encoded.data);
    return status;
}
