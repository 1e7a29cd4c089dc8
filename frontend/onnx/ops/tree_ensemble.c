/* SPDX-License-Identifier: Apache-2.0 */
/* tree_ensemble.c - ensembles of decision trees (ai.onnx.ml).  All trees of all rows take a step at a time: a node is a
 * row of tables, which say what element of the input to compare with what, and where to go on; a leaf stays where it
 * is.  After as many steps as the deepest tree has, results are sums of what the leaves say. */
#include <math.h>

#include "frontend/onnx/ops/trees.h"

/* --- tables ------------------------------------------------------------------------------------------------------- */

/* Nodes as tables.  What stands in one is in one cache line: of a large forest each node is a miss.  Where to go on is
 * where that node's words begin. */
enum { FEATURE, MOST, MORE, MISSING, NODE_WORDS = 1 << 2, NODE_SHIFT = 2 }; /* the element that is compared; where to */

typedef struct tables {
    uint32_t *words; /* {nodes, NODE_WORDS} */
    double *values;
    bool missing_is_most, missing_is_more; /* of all nodes: one comparison is enough */
} tables;

/* The greatest number below, of the type that is compared. */
static double below(const trees *t, double value)
{
    return t->type == ONNX_DOUBLE ? nextafter(value, -INFINITY) : (double)nextafterf((float)value, -INFINITY);
}

static void set_node(tables *to, uint32_t at, const tree_node *n, double value, uint32_t most, uint32_t more,
                     uint32_t missing)
{
    uint32_t *const words = &to->words[(size_t)at * NODE_WORDS];
    to->values[at] = value;
    to->missing_is_most = to->missing_is_most && missing == most;
    to->missing_is_more = to->missing_is_more && missing == more;
    words[FEATURE] = n->feature;
    words[MOST] = most * NODE_WORDS;
    words[MORE] = more * NODE_WORDS;
    words[MISSING] = missing * NODE_WORDS;
}

/* The node as comparisons of at most: x < v is x <= the number below v; x == v is x <= v, and not x <= that one. */
static void write_node(const trees *t, tables *to, uint32_t at, uint32_t *next)
{
    const tree_node *const n = &t->nodes[at];
    const uint32_t yes = (uint32_t)n->yes, no = (uint32_t)n->no;
    const bool turned = n->mode == NEQ;
    const uint32_t equal = turned ? no : yes, other = turned ? yes : no;
    const uint32_t missing = n->missing_is_true || turned ? yes : no;
    const uint32_t count = n->mode == MEMBER ? n->member_count : 1;
    switch (n->mode) {
    case LEAF: set_node(to, at, n, 0, at, at, at); return;
    case LEQ: set_node(to, at, n, n->value, yes, no, missing); return;
    case LT: set_node(to, at, n, below(t, n->value), yes, no, missing); return;
    case GT: set_node(to, at, n, n->value, no, yes, missing); return;
    case GTE: set_node(to, at, n, below(t, n->value), no, yes, missing); return;
    case EQ:
    case NEQ:
    case MEMBER:
        for (uint32_t i = 0; i < count; i++) {
            const double value = n->mode == MEMBER ? n->members[i] : n->value;
            const uint32_t second = (*next)++, rest = i + 1 < count ? (*next)++ : other;
            set_node(to, at, n, value, second, rest, missing);
            set_node(to, second, n, below(t, value), rest, equal, missing);
            at = rest;
        }
        return;
    }
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* A table of numbers of the trees' type. */
static opjit_tensor numbers_of(onnx_import *m, const trees *t, uint64_t count, uint64_t width, const double *data)
{
    const uint64_t all = count * (width == 0 ? 1 : width);
    if (t->type == ONNX_DOUBLE)
        return opjit_onnx_table(m, t->type, count, width, data);
    float *const floats = opjit_onnx_memory(m, all * sizeof *floats);
    for (uint64_t i = 0; i < all && floats != NULL; i++)
        floats[i] = (float)data[i];
    return floats == NULL ? (opjit_tensor){ 0, 0 } : opjit_onnx_table(m, t->type, count, width, floats);
}

/* Which of a node's words says where to go on. */
static opjit_tensor way_of(onnx_import *m, const tables *from, opjit_tensor element, opjit_tensor value)
{
    opjit_graph *const g = m->graph;
    const opjit_tensor most = opjit_onnx_scalar(m, ONNX_UINT32, MOST), more = opjit_onnx_scalar(m, ONNX_UINT32, MORE);
    if (!from->missing_is_more && from->missing_is_most)
        return opjit_graph_where(g, opjit_graph_greater(g, element, value), more, most);
    const opjit_tensor missing = opjit_onnx_scalar(m, ONNX_UINT32, MISSING);
    const opjit_tensor other = from->missing_is_more
                                   ? more
                                   : opjit_graph_where(g, opjit_graph_greater(g, element, value), more, missing);
    return opjit_graph_where(g, opjit_graph_less_or_equal(g, element, value), most, other);
}

/* The leaves that rows reach, {rows * trees}. */
static opjit_tensor walk(onnx_import *m, const onnx_call *c, const trees *t)
{
    opjit_graph *const g = m->graph;
    const opjit_tensor null = { 0, 0 };
    const uint64_t word_count = (uint64_t)t->room * NODE_WORDS;
    tables to = { opjit_onnx_memory(m, word_count * sizeof *to.words),
                  opjit_onnx_memory(m, t->room * sizeof *to.values), true, true };
    uint32_t *const roots = opjit_onnx_memory(m, t->root_count * sizeof *roots), next = t->count;
    if (to.words == NULL || to.values == NULL || roots == NULL)
        return null;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->nodes[i].seen) /* others no row comes to */
            write_node(t, &to, i, &next);
    for (uint32_t i = 0; i < t->root_count; i++)
        roots[i] = t->roots[i] * NODE_WORDS;
    const uint64_t flat = t->rows * t->root_count, wide[2] = { t->rows, t->root_count }, all = t->rows * t->columns;
    const uint32_t sizes[2] = { (uint32_t)t->rows, t->root_count }, column[2] = { (uint32_t)t->rows, 1 };
    const DML_TENSOR_DATA_TYPE index = DML_TENSOR_DATA_TYPE_UINT32;
    const opjit_tensor nodes = opjit_onnx_table(m, ONNX_UINT32, word_count, 0, to.words);
    const opjit_tensor values = numbers_of(m, t, t->room, 0, to.values);
    const opjit_tensor x =
        opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), c->inputs[0]->type, t->type), 1, &all);
    const opjit_tensor begin =
        opjit_graph_broadcast(g, opjit_graph_sequence(g, index, 2, column, 0, (double)t->columns), 2, sizes);
    const opjit_tensor shift = opjit_onnx_scalar(m, ONNX_UINT32, NODE_SHIFT);
    opjit_tensor at = opjit_graph_broadcast(
        g,
        opjit_onnx_reshape(m, opjit_onnx_table(m, ONNX_UINT32, t->root_count, 0, roots), 2,
                           (uint64_t[]){ 1, t->root_count }),
        2, sizes);
    at = opjit_onnx_reshape(m, at, 1, &flat);
    for (uint32_t i = 0; i < t->steps && m->error->status == OPJIT_OK; i++) {
        const opjit_tensor feature = opjit_onnx_reshape(m, opjit_graph_gather(g, nodes, at, 0, 1), 2, wide);
        const opjit_tensor element =
            opjit_graph_gather(g, x, opjit_onnx_reshape(m, opjit_graph_add(g, begin, feature), 1, &flat), 0, 1);
        const opjit_tensor value = opjit_graph_gather(g, values, opjit_graph_shift_right(g, at, shift), 0, 1);
        at = opjit_graph_gather(g, nodes, opjit_graph_add(g, at, way_of(m, &to, element, value)), 0, 1);
    }
    return opjit_graph_shift_right(g, at, shift);
}

/* How leaves' numbers become results. */
typedef enum aggregate { AVERAGE, SUM, MIN, MAX } aggregate;

/* Results {rows, targets}, without base values. */
static opjit_tensor add_leaves(onnx_import *m, const onnx_call *c, trees *t, aggregate how)
{
    static const DML_REDUCE_FUNCTION functions[] = { DML_REDUCE_FUNCTION_AVERAGE, DML_REDUCE_FUNCTION_SUM,
                                                     DML_REDUCE_FUNCTION_MIN, DML_REDUCE_FUNCTION_MAX };
    opjit_graph *const g = m->graph;
    const uint64_t apart[3] = { t->rows, t->root_count, t->targets }, result[2] = { t->rows, t->targets };
    const uint32_t axis = 1;
    const opjit_tensor at = walk(m, c, t);
    const opjit_tensor said = opjit_graph_gather(g, numbers_of(m, t, t->count, t->targets, t->weights), at, 0, 1);
    const opjit_tensor y = opjit_graph_reduce(g, opjit_onnx_reshape(m, said, 3, apart), functions[how], 1, &axis);
    return opjit_onnx_reshape(m, y, 2, result);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static opjit_status read_input(onnx_import *m, const onnx_call *c, trees *t)
{
    uint64_t sizes[2];
    TRY(opjit_onnx_samples(m, c, sizes));
    t->rows = sizes[0];
    t->columns = sizes[1];
    t->type = c->inputs[0]->type == ONNX_DOUBLE ? ONNX_DOUBLE : ONNX_FLOAT;
    return t->rows != 0 ? OPJIT_OK
                        : opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "input 0 has no rows, must have at least one");
}

/* Base values, one for each result, are added; *count says how many the node has. */
static opjit_status add_base(onnx_import *m, const onnx_call *c, const trees *t, opjit_tensor *y, uint32_t *count)
{
    double *base;
    TRY(opjit_onnx_read_numbers(m, c, "base_values", &base, count));
    if (*count != 0 && *count != t->targets && *count != 1)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u base values, must be 0, 1 or %llu", *count,
                                 (unsigned long long)t->targets);
    if (*count != 0)
        *y = opjit_graph_add(m->graph, *y, numbers_of(m, t, *count, 0, base));
    return OPJIT_OK;
}

static opjit_status check_targets(onnx_import *m, const onnx_call *c, trees *t, aggregate how)
{
    const int64_t targets = opjit_onnx_int(m, c, "n_targets", 1);
    t->targets = targets < 1 || targets > ONNX_NUMBERS ? 0 : (uint64_t)targets;
    return t->targets < 2 || how == AVERAGE || how == SUM
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "the least or greatest of %llu results each",
                                   (unsigned long long)t->targets);
}

opjit_status opjit_onnx_tree_regressor(onnx_import *m, onnx_call *c)
{
    static const char *const names[] = { "AVERAGE", "SUM", "MIN", "MAX" };
    trees t = { 0 };
    uint32_t how = AVERAGE, bases;
    while (how <= MAX && !opjit_onnx_text_is(m, c, "aggregate_function", names[how], "SUM"))
        how++;
    if (how > MAX)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "attribute aggregate_function is none of AVERAGE, SUM, MIN, MAX");
    TRY(read_input(m, c, &t));
    TRY(check_targets(m, c, &t, (aggregate)how));
    TRY(opjit_onnx_read_trees(m, c, &t, "target"));
    opjit_tensor y = add_leaves(m, c, &t, (aggregate)how);
    TRY(opjit_onnx_status(m));
    TRY(add_base(m, c, &t, &y, &bases));
    y = opjit_onnx_cast(m, y, t.type, ONNX_FLOAT);
    TRY(opjit_onnx_transformed(m, c, &y));
    return opjit_onnx_give_as(m, c, 0, y, ONNX_FLOAT, 2, (uint64_t[]){ t.rows, t.targets });
}

opjit_status opjit_onnx_tree_ensemble(onnx_import *m, onnx_call *c)
{
    const int64_t how = opjit_onnx_int(m, c, "aggregate_function", SUM);
    trees t = { 0 };
    if (how < AVERAGE || how > MAX || opjit_onnx_int(m, c, "post_transform", 0) != 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "attribute aggregate_function: %lld, must be 0 to 3, and post_transform must be 0",
                                 (long long)how);
    TRY(read_input(m, c, &t));
    TRY(check_targets(m, c, &t, (aggregate)how));
    TRY(opjit_onnx_read_ensemble(m, c, &t));
    const opjit_tensor y = add_leaves(m, c, &t, (aggregate)how);
    TRY(opjit_onnx_status(m));
    return opjit_onnx_give_as(m, c, 0, opjit_onnx_cast(m, y, t.type, c->inputs[0]->type), c->inputs[0]->type, 2,
                              (uint64_t[]){ t.rows, t.targets });
}

/* Scores of two classes of which leaves score one alone, of FLOAT, in *y; *best the class.  The other
 * one's is 1 - y, or where leaves have weights below 0, -y; a score of class 1 stands beside 0 (as in onnxruntime). */
static opjit_status score_two(onnx_import *m, const onnx_call *c, const trees *t, opjit_tensor *y, opjit_tensor *best)
{
    opjit_graph *const g = m->graph;
    const uint32_t begin[2] = { 0, t->used[1] ? 1 : 0 }, sizes[2] = { (uint32_t)t->rows, 1 };
    const opjit_tensor none = opjit_onnx_scalar(m, t->type, 0);
    const opjit_tensor score = opjit_graph_slice(g, *y, begin, sizes, NULL);
    uint32_t bases;
    opjit_tensor pair[2] = { { 0, 0 }, score };
    TRY(add_base(m, c, t, &pair[1], &bases));
    if (bases > 1 || (bases == 1 && t->used[1]))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u base values of one score", bases);
    *best = opjit_graph_greater(g, pair[1], opjit_onnx_scalar(m, t->type, t->positive ? 0.5 : 0));
    if (t->used[1]) {
        pair[0] = opjit_graph_multiply(g, score, none);
        *y = opjit_onnx_cast(m, opjit_graph_join(g, pair, 2, 1), t->type, ONNX_FLOAT);
        return opjit_onnx_transformed(m, c, y);
    }
    pair[1] = opjit_onnx_cast(m, pair[1], t->type, ONNX_FLOAT);
    const bool logistic = opjit_onnx_text_is(m, c, "post_transform", "LOGISTIC", "NONE");
    pair[0] = t->positive && !logistic ? opjit_graph_subtract(g, opjit_onnx_scalar(m, ONNX_FLOAT, 1), pair[1])
                                       : opjit_graph_negate(g, pair[1]);
    for (uint32_t i = 0; i < 2 && logistic; i++)
        pair[i] = opjit_graph_sigmoid(g, pair[i]);
    *y = opjit_graph_join(g, pair, 2, 1);
    return OPJIT_OK;
}

/* Labels, and scores of two classes or more. */
opjit_status opjit_onnx_tree_classifier(onnx_import *m, onnx_call *c)
{
    const onnx_attribute *const ints = opjit_onnx_attribute(m, c, "classlabels_int64s");
    const onnx_attribute *const texts = opjit_onnx_attribute(m, c, "classlabels_strings");
    const bool named = texts != NULL && texts->strings != NULL;
    trees t = { 0 };
    uint32_t bases;
    opjit_tensor best;
    TRY(read_input(m, c, &t));
    t.targets = named ? texts->count : ints == NULL || ints->ints == NULL ? 0 : ints->count;
    if (t.targets < 2 || (named && onnx_wants(c, 0)))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 named ? "labels that are texts are not taken"
                                       : "labels of less than two classes are not taken");
    TRY(opjit_onnx_read_trees(m, c, &t, "class"));
    opjit_tensor y = add_leaves(m, c, &t, SUM);
    TRY(opjit_onnx_status(m));
    if (t.targets == 2 && t.used[0] != t.used[1]) {
        TRY(score_two(m, c, &t, &y, &best));
    } else {
        TRY(add_base(m, c, &t, &y, &bases));
        best = opjit_graph_argmax(m->graph, y, 1);
        y = opjit_onnx_cast(m, y, t.type, ONNX_FLOAT);
        TRY(opjit_onnx_transformed(m, c, &y));
    }
    TRY(opjit_onnx_give_as(m, c, 1, y, ONNX_FLOAT, 2, (uint64_t[]){ t.rows, t.targets }));
    if (named)
        return OPJIT_OK;
    const opjit_tensor which =
        opjit_onnx_reshape(m, opjit_graph_cast(m->graph, best, DML_TENSOR_DATA_TYPE_UINT32), 1, &t.rows);
    const opjit_tensor labels =
        opjit_graph_gather(m->graph, opjit_onnx_table(m, ONNX_INT64, t.targets, 0, ints->ints), which, 0, 1);
    return opjit_onnx_give_as(m, c, 0, labels, ONNX_INT64, 1, &t.rows);
}
