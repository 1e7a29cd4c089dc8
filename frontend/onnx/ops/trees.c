/* SPDX-License-Identifier: Apache-2.0 */
/* trees.c - decision trees out of the attributes of ai.onnx.ml's operators: nodes that lead to nodes, checked to be
 * trees, and a table of what their leaves say. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "frontend/onnx/ops/trees.h"

/* --- attributes --------------------------------------------------------------------------------------------------- */

opjit_status opjit_onnx_read_numbers(onnx_import *m, const onnx_call *c, const char *name, double **out,
                                     uint32_t *count)
{
    char longer[64];
    const onnx_attribute *a = opjit_onnx_attribute(m, c, name);
    snprintf(longer, sizeof longer, "%s_as_tensor", name);
    a = a == NULL ? opjit_onnx_attribute(m, c, longer) : a;
    *count = 0;
    *out = NULL;
    if (a == NULL)
        return OPJIT_OK;
    onnx_value v = { .type = ONNX_FLOAT, .rank = 1, .dims = { a->count }, .data = a->floats };
    if (a->tensor != NULL) {
        v = (onnx_value){ .type = opjit_onnx_read_type(a->tensor->type), .rank = a->tensor->rank, .source = a->tensor };
        memcpy(v.dims, a->tensor->dims, sizeof v.dims);
    } else if (a->floats == NULL) {
        return a->count == 0 ? OPJIT_OK
                             : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute %s has no floats", name);
    }
    onnx_value *input = &v;
    const onnx_call by = { .node = c->node, .row = c->row, .inputs = &input, .input_count = 1 };
    return opjit_onnx_elements_of(&v) == 0 ? OPJIT_OK : opjit_onnx_input_floats(m, &by, 0, out, count);
}

/* As many integers as *count says, which is set where it is 0. */
static opjit_status read_ints(onnx_import *m, const onnx_call *c, const char *name, const int64_t **out,
                              uint32_t *count)
{
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, name);
    const uint32_t have = a == NULL || a->ints == NULL ? 0 : a->count;
    *out = have == 0 ? NULL : a->ints;
    if (have == 0 || (*count != 0 && have != *count))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute %s: %u integers, must be %u", name, have,
                                 *count);
    *count = have;
    return OPJIT_OK;
}

/* The same of an attribute that may be absent: NULL. */
static opjit_status read_optional(onnx_import *m, const onnx_call *c, const char *name, const int64_t **out,
                                  uint32_t count)
{
    *out = NULL;
    return opjit_onnx_attribute(m, c, name) == NULL ? OPJIT_OK : read_ints(m, c, name, out, &count);
}

static opjit_status allocate(onnx_import *m, const onnx_call *c, trees *t, uint32_t count)
{
    t->count = count;
    t->nodes = ARENA_ARRAY(m->arena, tree_node, (size_t)count + 1);
    t->used = ARENA_ARRAY(m->arena, bool, (size_t)t->targets + 1);
    t->roots = ARENA_ARRAY(m->arena, uint32_t, (size_t)count + 1);
    t->positive = true;
    if (t->targets == 0 || t->targets * count > WEIGHTS_MOST)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%u nodes for %llu results", count, (unsigned long long)t->targets);
    if (t->nodes == NULL || t->used == NULL || t->roots == NULL)
        return opjit_rt_no_memory(m->error);
    return OPJIT_OK;
}

static opjit_status check_feature(onnx_import *m, const onnx_call *c, const trees *t, int64_t feature)
{
    return feature >= 0 && (uint64_t)feature < t->columns
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "feature %lld, must be below %llu", (long long)feature,
                                   (unsigned long long)t->columns);
}

/* A leaf adds the weight to a result. */
static opjit_status add_weight(onnx_import *m, const onnx_call *c, trees *t, int64_t node, int64_t target,
                               double weight, bool whole)
{
    if (target < 0 || (uint64_t)target >= t->targets)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "result %lld, must be below %llu", (long long)target,
                                 (unsigned long long)t->targets);
    double *const w = &t->weights[(uint64_t)node * t->targets + (uint64_t)target];
    *w = whole ? weight : *w + weight;
    t->used[target] = true;
    t->positive = t->positive && weight >= 0;
    return OPJIT_OK;
}

/* --- nodes by the numbers of their tree and of their own ---------------------------------------------------------- */

typedef struct tree_key {
    int64_t tree, node;
    uint32_t index;
} tree_key;

static int compare_keys(const void *a, const void *b)
{
    const tree_key *const p = a, *const q = b;
    if (p->tree != q->tree)
        return p->tree < q->tree ? -1 : 1;
    return p->node < q->node ? -1 : p->node > q->node;
}

static int64_t find_node(const tree_key *keys, uint32_t count, int64_t tree, int64_t node)
{
    const tree_key wanted = { tree, node, 0 };
    const tree_key *const k = bsearch(&wanted, keys, count, sizeof *keys, compare_keys);
    return k == NULL ? NOWHERE : (int64_t)k->index;
}

static branch mode_of(wire_bytes text)
{
    static const char *const names[] = { "BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF" };
    uint32_t i = 0;
    while (i <= LEAF && !wire_is(text, names[i]))
        i++;
    return (branch)i;
}

/* Nodes of TreeEnsembleRegressor and TreeEnsembleClassifier; a tree's root is the node that no other one leads to. */
static opjit_status read_nodes(onnx_import *m, const onnx_call *c, trees *t, tree_key **out_keys)
{
    const int64_t *tree, *node, *feature, *yes, *no, *missing;
    const onnx_attribute *const modes = opjit_onnx_attribute(m, c, "nodes_modes");
    double *values;
    uint32_t count = 0, value_count;
    TRY(read_ints(m, c, "nodes_treeids", &tree, &count));
    TRY(read_ints(m, c, "nodes_nodeids", &node, &count));
    TRY(read_ints(m, c, "nodes_featureids", &feature, &count));
    TRY(read_ints(m, c, "nodes_truenodeids", &yes, &count));
    TRY(read_ints(m, c, "nodes_falsenodeids", &no, &count));
    TRY(read_optional(m, c, "nodes_missing_value_tracks_true", &missing, count));
    TRY(opjit_onnx_read_numbers(m, c, "nodes_values", &values, &value_count));
    if (modes == NULL || modes->strings == NULL || modes->count != count || value_count != count)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u modes and %u values of %u nodes",
                                 modes == NULL || modes->strings == NULL ? 0 : modes->count, value_count, count);
    TRY(allocate(m, c, t, count));
    tree_key *const keys = ARENA_ARRAY(m->arena, tree_key, (size_t)count);
    bool *const led_to = ARENA_ARRAY(m->arena, bool, (size_t)count);
    if (keys == NULL || led_to == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (tree_key){ tree[i], node[i], i };
    qsort(keys, count, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < count; i++) {
        const branch mode = mode_of(modes->strings[i]);
        if (mode > LEAF || mode == MEMBER)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "mode " ONNX_NAME " of a node is not taken",
                                     ONNX_SHOW(modes->strings[i]));
        if (i > 0 && compare_keys(&keys[i - 1], &keys[i]) == 0)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "node %lld of tree %lld is there twice",
                                     (long long)keys[i].node, (long long)keys[i].tree);
        t->nodes[i] = (tree_node){ .mode = mode,
                                   .missing_is_true = missing != NULL && missing[i] != 0,
                                   .value = values[i],
                                   .yes = NOWHERE,
                                   .no = NOWHERE };
        if (mode == LEAF)
            continue;
        TRY(check_feature(m, c, t, feature[i]));
        t->nodes[i].feature = (uint32_t)feature[i];
        t->nodes[i].yes = find_node(keys, count, tree[i], yes[i]);
        t->nodes[i].no = find_node(keys, count, tree[i], no[i]);
        if (t->nodes[i].yes < 0 || t->nodes[i].no < 0)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "node %lld of tree %lld leads to none",
                                     (long long)node[i], (long long)tree[i]);
        led_to[t->nodes[i].yes] = led_to[t->nodes[i].no] = true;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!led_to[i])
            t->roots[t->root_count++] = i;
    *out_keys = keys;
    return OPJIT_OK;
}

/* What leaves say: attributes whose names begin with "target" or "class". */
static opjit_status read_weights(onnx_import *m, const onnx_call *c, trees *t, const tree_key *keys, const char *what)
{
    char name[32];
    const int64_t *tree, *node, *target;
    double *weights;
    uint32_t count = 0, weight_count;
    snprintf(name, sizeof name, "%s_treeids", what);
    TRY(read_ints(m, c, name, &tree, &count));
    snprintf(name, sizeof name, "%s_nodeids", what);
    TRY(read_ints(m, c, name, &node, &count));
    snprintf(name, sizeof name, "%s_ids", what);
    TRY(read_ints(m, c, name, &target, &count));
    snprintf(name, sizeof name, "%s_weights", what);
    TRY(opjit_onnx_read_numbers(m, c, name, &weights, &weight_count));
    if (weight_count != count)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute %s: %u numbers, must be %u", name,
                                 weight_count, count);
    t->weights = ARENA_ARRAY(m->arena, double, (size_t)(t->count * t->targets));
    if (t->weights == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t at = find_node(keys, t->count, tree[i], node[i]);
        if (at < 0 || t->nodes[at].mode != LEAF)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "node %lld of tree %lld is no leaf",
                                     (long long)node[i], (long long)tree[i]);
        TRY(add_weight(m, c, t, at, target[i], weights[i], false));
    }
    return OPJIT_OK;
}

/* --- nodes and leaves of TreeEnsemble ----------------------------------------------------------------------------- */

/* Each node of mode MEMBER has a run of numbers, which NaN ends. */
static opjit_status read_members(onnx_import *m, const onnx_call *c, trees *t, uint32_t count)
{
    double *values;
    uint32_t value_count, at = 0;
    TRY(opjit_onnx_read_numbers(m, c, "membership_values", &values, &value_count));
    for (uint32_t i = 0; i < count; i++) {
        if (t->nodes[i].mode != MEMBER)
            continue;
        t->nodes[i].members = values + at;
        while (at < value_count && !isnan(values[at]))
            at++, t->nodes[i].member_count++;
        at++;
        if (t->nodes[i].member_count == 0)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "membership_values: none of node %u", i);
    }
    return OPJIT_OK;
}

static opjit_status read_child(onnx_import *m, const onnx_call *c, uint32_t inner, uint32_t leaves, int64_t at,
                               int64_t is_leaf, int64_t *out)
{
    if (at < 0 || at >= (is_leaf != 0 ? leaves : inner))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "a node leads to %s %lld of %u",
                                 is_leaf != 0 ? "leaf" : "node", (long long)at, is_leaf != 0 ? leaves : inner);
    *out = at + (is_leaf != 0 ? inner : 0);
    return OPJIT_OK;
}

/* Leaves come behind all other nodes. */
static opjit_status read_all(onnx_import *m, const onnx_call *c, trees *t)
{
    const int64_t *roots, *feature, *yes, *no, *yes_leaf, *no_leaf, *missing, *targets;
    double *modes, *values, *weights;
    uint32_t count = 0, mode_count, value_count, root_count = 0, leaves = 0, weight_count;
    TRY(read_ints(m, c, "nodes_featureids", &feature, &count));
    TRY(read_ints(m, c, "nodes_truenodeids", &yes, &count));
    TRY(read_ints(m, c, "nodes_falsenodeids", &no, &count));
    TRY(read_ints(m, c, "nodes_trueleafs", &yes_leaf, &count));
    TRY(read_ints(m, c, "nodes_falseleafs", &no_leaf, &count));
    TRY(read_optional(m, c, "nodes_missing_value_tracks_true", &missing, count));
    TRY(read_ints(m, c, "tree_roots", &roots, &root_count));
    TRY(read_ints(m, c, "leaf_targetids", &targets, &leaves));
    TRY(opjit_onnx_read_numbers(m, c, "nodes_modes", &modes, &mode_count));
    TRY(opjit_onnx_read_numbers(m, c, "nodes_splits", &values, &value_count));
    TRY(opjit_onnx_read_numbers(m, c, "leaf_weights", &weights, &weight_count));
    if (mode_count != count || value_count != count || weight_count != leaves || root_count > count)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "%u nodes have %u modes and %u splits, %u leaves %u weights",
                                 count, mode_count, value_count, leaves, weight_count);
    TRY(allocate(m, c, t, count + leaves));
    for (uint32_t i = 0; i < count; i++) {
        if (!(modes[i] >= LEQ && modes[i] <= MEMBER))
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "mode %g of node %u", modes[i], i);
        TRY(check_feature(m, c, t, feature[i]));
        t->nodes[i] = (tree_node){ .mode = (branch)(int)modes[i],
                                   .missing_is_true = missing != NULL && missing[i] != 0,
                                   .feature = (uint32_t)feature[i],
                                   .value = values[i] };
        TRY(read_child(m, c, count, leaves, yes[i], yes_leaf[i], &t->nodes[i].yes));
        TRY(read_child(m, c, count, leaves, no[i], no_leaf[i], &t->nodes[i].no));
    }
    TRY(read_members(m, c, t, count));
    for (uint32_t i = 0; i < root_count; i++) {
        int64_t at = 0;
        TRY(read_child(m, c, count, 0, roots[i], 0, &at));
        t->roots[t->root_count++] = (uint32_t)at;
    }
    t->weights = ARENA_ARRAY(m->arena, double, (size_t)(t->count * t->targets));
    if (t->weights == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < leaves; i++) {
        t->nodes[count + i] = (tree_node){ .mode = LEAF, .yes = NOWHERE, .no = NOWHERE };
        TRY(add_weight(m, c, t, count + i, targets[i], weights[i], true));
    }
    return OPJIT_OK;
}

/* --- trees -------------------------------------------------------------------------------------------------------- */

/* Comparisons that a node takes, one after the other. */
static uint32_t cost_of(const tree_node *n)
{
    return n->mode == LEAF ? 0 : n->mode == MEMBER ? 2 * n->member_count : n->mode == EQ || n->mode == NEQ ? 2 : 1;
}

/* Goes through the trees from their roots: the number of steps, and the room that all nodes take. */
static opjit_status measure(onnx_import *m, const onnx_call *c, trees *t)
{
    uint32_t *const queue = ARENA_ARRAY(m->arena, uint32_t, (size_t)t->count + 1);
    uint32_t first = 0, last = 0;
    uint64_t room = t->count;
    if (queue == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < t->root_count; i++) {
        if (t->nodes[t->roots[i]].seen)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "node %u is the root of two trees", t->roots[i]);
        t->nodes[t->roots[i]].seen = true;
        queue[last++] = t->roots[i];
    }
    while (first < last) {
        const tree_node *const n = &t->nodes[queue[first++]];
        const uint64_t below = (uint64_t)n->depth + cost_of(n);
        room += n->mode == LEAF ? 0 : cost_of(n) - 1;
        if (below > STEPS_MOST || room > NODES_MOST || room * t->targets > WEIGHTS_MOST)
            return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "trees of more than %d levels, or %d nodes", STEPS_MOST,
                                     NODES_MOST);
        t->steps = below > t->steps ? (uint32_t)below : t->steps;
        for (uint32_t k = 0; k < 2 && n->mode != LEAF; k++) {
            const uint32_t at = (uint32_t)(k == 0 ? n->yes : n->no);
            tree_node *const child = &t->nodes[at];
            if (child->mode != LEAF && child->seen)
                return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "two nodes lead to node %u", at);
            child->depth = below > child->depth ? (uint32_t)below : child->depth;
            if (!child->seen && child->mode != LEAF)
                queue[last++] = at;
            child->seen = true;
        }
    }
    t->room = (uint32_t)room;
    return t->root_count > 0 ? OPJIT_OK : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "no tree has a root");
}

opjit_status opjit_onnx_read_trees(onnx_import *m, const onnx_call *c, trees *t, const char *what)
{
    tree_key *keys = NULL;
    TRY(read_nodes(m, c, t, &keys));
    TRY(read_weights(m, c, t, keys, what));
    return measure(m, c, t);
}

opjit_status opjit_onnx_read_ensemble(onnx_import *m, const onnx_call *c, trees *t)
{
    TRY(read_all(m, c, t));
    return measure(m, c, t);
}
