/* SPDX-License-Identifier: Apache-2.0 */
/* claim.c - which nodes the provider takes.  Nodes of opjit's operators form groups, each a run of nodes in one
 * topological order, so that nothing leaves a group and comes back.  A group is read as a model would be; the node that
 * the reader refuses is left to the host, and groups are formed anew. */
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/onnxruntime/provider.h"

enum { ROUNDS = 64 }; /* of forming groups */

/* Sizes that are tried, one after the other, for dimensions that are not known. */
static const int64_t guesses[] = { 64, 1, 128 };
enum { GUESSES = sizeof guesses / sizeof *guesses };

typedef struct claims {
    provider *p;
    graph g;
    bool *taken; /* nodes that may be in a group */
    group *groups;
    uint32_t group_count;
    uint32_t *room; /* nodes of all groups */
} claims;

static ort_status *no_memory(const claims *c)
{
    return opjit_ort_fail(c->p->api, ORT_FAIL, "there is no memory");
}

#define ARRAY(c, type, count) ((type *)opjit_ort_allocate(&(c)->g.memory, (size_t)(count) + 1, sizeof(type)))

/* --- operators ---------------------------------------------------------------------------------------------------- */

static bool is_taken(const graph_node *n)
{
    opjit_model_operator row = OPJIT_MODEL_OPERATOR_INIT;
    const char *const domain = strcmp(n->domain, "ai.onnx") == 0 ? "" : n->domain;
    if (n->has_graphs)
        return false;
    for (uint32_t i = 0; opjit_model_get_operator(i, &row, NULL) == OPJIT_OK; i++)
        if (strcmp(row.name, n->op) == 0 && strcmp(row.domain, domain) == 0)
            return row.is_taken != 0;
    return false;
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* Nodes whose makers are all placed, those of groups and others. */
typedef struct ready {
    uint32_t *waits;                 /* makers that are not placed yet, of each node */
    uint32_t *first, *next, *reader; /* lists of a value's readers */
    uint32_t *stacks[2], heights[2];
} ready;

#define END UINT32_MAX

static void add_reader(const claims *c, ready *r, int32_t value, uint32_t node, uint32_t *links)
{
    if (value == ORT_NONE || c->g.values[value].maker == ORT_NONE)
        return;
    r->reader[*links] = node;
    r->next[*links] = r->first[value];
    r->first[value] = (*links)++;
    r->waits[node]++;
}

static ort_status *find_ready(claims *c, ready *r)
{
    const graph *const g = &c->g;
    size_t total = 0;
    uint32_t links = 0;
    for (uint32_t i = 0; i < g->node_count; i++)
        total += g->nodes[i].input_count + g->nodes[i].implicit_count;
    r->waits = ARRAY(c, uint32_t, g->node_count);
    r->first = ARRAY(c, uint32_t, g->value_count);
    r->next = ARRAY(c, uint32_t, total);
    r->reader = ARRAY(c, uint32_t, total);
    r->stacks[0] = ARRAY(c, uint32_t, g->node_count);
    r->stacks[1] = ARRAY(c, uint32_t, g->node_count);
    if (r->waits == NULL || r->first == NULL || r->next == NULL || r->reader == NULL || r->stacks[0] == NULL ||
        r->stacks[1] == NULL)
        return no_memory(c);
    for (uint32_t i = 0; i < g->value_count; i++)
        r->first[i] = END;
    for (uint32_t i = 0; i < g->node_count; i++) {
        for (uint32_t k = 0; k < g->nodes[i].input_count; k++)
            add_reader(c, r, g->nodes[i].inputs[k], i, &links);
        for (uint32_t k = 0; k < g->nodes[i].implicit_count; k++)
            add_reader(c, r, g->nodes[i].implicit[k], i, &links);
    }
    for (uint32_t i = g->node_count; i-- > 0;)
        if (r->waits[i] == 0)
            r->stacks[c->taken[i]][r->heights[c->taken[i]]++] = i;
    return NULL;
}

/* Takes a ready node; its readers may become ready. */
static uint32_t place(const claims *c, ready *r, bool taken)
{
    const uint32_t node = r->stacks[taken][--r->heights[taken]];
    const graph_node *const n = &c->g.nodes[node];
    for (uint32_t k = 0; k < n->output_count; k++)
        for (uint32_t at = n->outputs[k] == ORT_NONE ? END : r->first[n->outputs[k]]; at != END; at = r->next[at]) {
            const uint32_t reader = r->reader[at];
            if (--r->waits[reader] == 0)
                r->stacks[c->taken[reader]][r->heights[c->taken[reader]]++] = reader;
        }
    return node;
}

static int compare_nodes(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Forms groups of the nodes that may be in one: as many of them as can be placed, then as many others, and so on. */
static ort_status *form_groups(claims *c)
{
    ready r = { 0 };
    uint32_t used = 0;
    ORT_TRY(find_ready(c, &r));
    c->group_count = 0;
    while (r.heights[0] + r.heights[1] > 0) {
        while (r.heights[0] > 0)
            (void)place(c, &r, false);
        group *const made = &c->groups[c->group_count];
        *made = (group){ .nodes = c->room + used };
        while (r.heights[1] > 0)
            made->nodes[made->node_count++] = place(c, &r, true);
        if (made->node_count == 0)
            continue;
        qsort(made->nodes, made->node_count, sizeof *made->nodes, compare_nodes);
        if (!opjit_ort_find_ports(&c->g, made))
            return no_memory(c);
        used += made->node_count;
        c->group_count++;
    }
    return NULL;
}

/* --- a group ------------------------------------------------------------------------------------------------------ */

void opjit_ort_choose_sizes(const provider *p, const graph *g, const group *of, int64_t guess, shape *out,
                            bool *out_known)
{
    *out_known = true;
    for (uint32_t i = 0; i < of->input_count; i++) {
        const graph_value *const v = &g->values[of->inputs[i]];
        out[i].rank = v->rank;
        for (uint32_t d = 0; d < v->rank; d++) {
            int64_t size = v->dims[d];
            for (uint32_t k = 0; k < p->options.dim_count && size < 0 && v->dim_names[d] != NULL; k++)
                if (strcmp(p->options.dims[k].name, v->dim_names[d]) == 0)
                    size = p->options.dims[k].size;
            *out_known = *out_known && size >= 0;
            out[i].sizes[d] = (uint64_t)(size < 0 ? guess : size);
        }
    }
}

typedef struct verdict {
    bool claim;
    int32_t refused; /* node of the graph that is at fault; ORT_NONE: none, the group as a whole */
} verdict;

/* Whether the group can be read as a model, for the first sizes that do.  *out_known as of opjit_ort_choose_sizes. */
static bool can_read(const claims *c, const group *of, const bytes *model, const char *const *names, shape *shapes,
                     bool *out_known, verdict *out)
{
    for (uint32_t k = 0; k < GUESSES; k++) {
        opjit_error error;
        entry *e = NULL;
        opjit_ort_choose_sizes(c->p, &c->g, of, guesses[k], shapes, out_known);
        if (opjit_ort_make(c->p, model, names, shapes, of->input_count, true, NULL, &e, &error) == OPJIT_OK) {
            opjit_ort_release_entry(e);
            return true;
        }
        if (k == 0 && error.node >= 0 && (uint32_t)error.node < of->node_count)
            out->refused = (int32_t)of->nodes[error.node];
        if (*out_known)
            return false;
    }
    return false;
}

/* A kernel is made of a group whose sizes are known, before it is claimed; the host's compile finds it in the cache.  A
 * verdict of before says that it could be made. */
static ort_status *judge_model(claims *c, const group *of, const bytes *model, shape *shapes, const char *const *names,
                               verdict *out)
{
    const bool measures = c->p->options.claim == CLAIM_GAIN;
    verdict_key key = { { 0, 0 } };
    bool known = true;
    opjit_error error;
    entry *e = NULL;
    opjit_ort_choose_sizes(c->p, &c->g, of, guesses[0], shapes, &known);
    if (measures && known) {
        key = opjit_ort_verdict_key(model, shapes, of->input_count);
        if (opjit_ort_find_verdict(c->p, &key, &out->claim))
            return NULL;
    }
    if (!can_read(c, of, model, names, shapes, &known, out))
        return NULL;
    if (!known) { /* nothing says that it would gain */
        out->claim = !measures;
        return NULL;
    }
    if (opjit_ort_make(c->p, model, names, shapes, of->input_count, false, NULL, &e, &error) != OPJIT_OK) {
        opjit_ort_warn(c->p, "%s", error.message);
        return NULL;
    }
    opjit_ort_release_entry(e);
    out->claim = !measures;
    if (measures && opjit_ort_measure(c->p, &c->g, of, model, shapes, &out->claim))
        opjit_ort_keep_verdict(c->p, &key, out->claim);
    else
        out->claim = !measures;
    return NULL;
}

static bool has_types(const claims *c, const group *of)
{
    for (uint32_t i = 0; i < of->input_count; i++)
        if (c->g.values[of->inputs[i]].type == 0)
            return false;
    for (uint32_t i = 0; i < of->output_count; i++)
        if (c->g.values[of->outputs[i]].type == 0)
            return false;
    return of->output_count > 0;
}

static ort_status *judge(claims *c, const group *of, verdict *out)
{
    bytes model = { NULL, 0, 0, false };
    shape *const shapes = ARRAY(c, shape, of->input_count);
    const char **const names = ARRAY(c, const char *, of->input_count);
    *out = (verdict){ false, ORT_NONE };
    if (shapes == NULL || names == NULL)
        return no_memory(c);
    if (!has_types(c, of))
        return NULL;
    for (uint32_t i = 0; i < of->input_count; i++)
        names[i] = c->g.values[of->inputs[i]].name;
    ort_status *status = opjit_ort_write_model(c->p->api, &c->g, of, &model);
    if (status == NULL)
        status = judge_model(c, of, &model, shapes, names, out);
    free(model.data);
    return status;
}

static ort_status *claim(const claims *c, const group *of, ort_support_info *support)
{
    static const ort_fusion_options options = { ORT_VERSION, true };
    const ort_node **const nodes = ARRAY((claims *)c, const ort_node *, of->node_count);
    if (nodes == NULL)
        return no_memory(c);
    for (uint32_t i = 0; i < of->node_count; i++)
        nodes[i] = c->g.nodes[of->nodes[i]].node;
    return c->p->api->EpGraphSupportInfo_AddNodesToFuse(support, nodes, of->node_count, &options);
}

/* Of the group's nodes by what they make; not 0. */
static size_t hash_group(const claims *c, const group *of)
{
    size_t h = of->node_count;
    for (uint32_t i = 0; i < of->output_count; i++)
        for (const char *at = c->g.values[of->outputs[i]].name; *at != '\0'; at++)
            h = h * 31 + (unsigned char)*at;
    return h == 0 ? 1 : h;
}

/* ONNX Runtime 1.23 gives all fused nodes of a session one name, and then refuses the session: one group is claimed,
 * the largest one of the first graph that has any, each time when the host asks. */
static void keep_one(const claims *c, bool *claimed)
{
    uint32_t largest = 0, most = 0;
    for (uint32_t i = 0; i < c->group_count; i++)
        if (claimed[i] && c->groups[i].node_count > most) {
            largest = i;
            most = c->groups[i].node_count;
        }
    for (uint32_t i = 0; i < c->group_count; i++)
        claimed[i] = claimed[i] && i == largest;
    if (most == 0)
        return;
    const size_t hash = hash_group(c, &c->groups[largest]);
    if (c->p->group_hash == 0)
        c->p->group_hash = hash;
    claimed[largest] = c->p->group_hash == hash;
}

static ort_status *claim_groups(claims *c, ort_support_info *support)
{
    bool *claimed = NULL;
    for (uint32_t round = 0, again = 1; round < ROUNDS && again; round++) {
        again = 0;
        ORT_TRY(form_groups(c));
        claimed = ARRAY(c, bool, c->group_count);
        if (claimed == NULL)
            return no_memory(c);
        for (uint32_t i = 0; i < c->group_count; i++) {
            verdict v;
            ORT_TRY(judge(c, &c->groups[i], &v));
            claimed[i] = v.claim;
            if (v.claim || v.refused == ORT_NONE)
                continue;
            c->taken[v.refused] = false;
            again = 1;
        }
    }
    if (c->p->one_group && claimed != NULL)
        keep_one(c, claimed);
    for (uint32_t i = 0; i < c->group_count && claimed != NULL; i++)
        if (claimed[i])
            ORT_TRY(claim(c, &c->groups[i], support));
    return NULL;
}

/* Claims the EPContext nodes of this provider, each as it is; *out_count: how many.  Where a model has any, who made it
 * has decided about its other nodes. */
static ort_status *claim_contexts(const claims *c, ort_support_info *support, uint32_t *out_count)
{
    static const ort_fusion_options options = { ORT_VERSION, false };
    const ort_api *const api = c->p->api;
    for (uint32_t i = 0; i < c->g.node_count; i++) {
        bool ours = false;
        ORT_TRY(opjit_ort_is_context(api, &c->g.nodes[i], &ours));
        if (!ours)
            continue;
        if (c->p->one_group && *out_count > 0)
            return opjit_ort_fail(api, ORT_FAIL, "the model has several contexts, and this ONNX Runtime takes one");
        ORT_TRY(api->EpGraphSupportInfo_AddNodesToFuse(support, &c->g.nodes[i].node, 1, &options));
        ++*out_count;
    }
    return NULL;
}

ort_status *opjit_ort_claim(provider *p, const ort_graph *host, ort_support_info *support)
{
    claims c = { .p = p };
    const ort_node *parent = NULL;
    uint32_t contexts = 0;
    ORT_TRY(p->api->Graph_GetParentNode(host, &parent));
    if (parent != NULL) /* a graph inside of a node: If, Loop and Scan are the host's */
        return NULL;
    ort_status *status = opjit_ort_read_graph(p->api, host, &c.g);
    if (status == NULL) {
        c.taken = ARRAY(&c, bool, c.g.node_count);
        c.groups = ARRAY(&c, group, c.g.node_count);
        c.room = ARRAY(&c, uint32_t, c.g.node_count);
        if (c.taken == NULL || c.groups == NULL || c.room == NULL)
            status = no_memory(&c);
    }
    for (uint32_t i = 0; i < c.g.node_count && status == NULL; i++)
        c.taken[i] = is_taken(&c.g.nodes[i]);
    if (status == NULL)
        status = claim_contexts(&c, support, &contexts);
    if (status == NULL && !c.g.is_inner && contexts == 0)
        status = claim_groups(&c, support);
    opjit_ort_free_graph(&c.g);
    return status;
}
