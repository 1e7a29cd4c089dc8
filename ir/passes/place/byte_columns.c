/* SPDX-License-Identifier: Apache-2.0 */
/* byte_columns.c - few rows times a matrix that is computed of constant bytes: numbers of 4 or 8 bits less zero points,
 * times scales of blocks of k.  The matrix would be read four times as long as its bytes, and is computed in fewer
 * operations than these take.  So the bytes are copied by a stage that runs once, tile by tile of columns, in each of
 * which a line has the columns of one k, and what is the same for a block of k likewise; the product reads both, and
 * computes its columns as it goes (contract/decode.c).  A step of place, for CPUs. */
#include "ir/passes/pass.h"

enum {
    MOST_ROWS = 4,       /* of sums in registers, */
    MOST_ROWS_OF_16 = 2, /* where there are 16 of these */
    TILE_VECTORS = 4,    /* of columns, or fewer */
    LEAST_COLUMNS = 64,
    LEAST_ELEMENTS = 1 << 16, /* of the matrix */
    MOST_OPERATIONS = 5,      /* for an element */
    MOST_DEPTH = 16,
};

typedef struct byte_columns {
    ir_func *f;
    const rt_target *target;
    ir_map map;     /* factors, and what takes their place */
    ir_ref *defs;   /* by tensor: its definition, if each element is a value */
    bool *constant; /* by tensor: it follows from constants alone */
    uint32_t count; /* tensors before */
    block list;     /* the function's definitions */
    /* the product at hand */
    ir_tensor matrix; /* [columns, k], or [columns, blocks of k, k of a block], and dimensions of one element */
    int32_t of_column, of_block, of_k; /* its dimensions; of_block -1: none */
    ir_ref column, k;                  /* the product's coordinates */
    uint64_t tile;                     /* columns of one */
    uint32_t operations, bytes;
    bool writes; /* else it only looks whether there is such a form */
} byte_columns;

/* --- what the product reads --------------------------------------------------------------------------------------- */

/* Whether the load is of the matrix's sizes, at its statement's own coordinates. */
static bool is_at_own(const byte_columns *b, ir_ref statement, ir_ref load)
{
    const ir_func *f = b->f;
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->rank != b->matrix.rank || t->sizes[d] != b->matrix.sizes[d] ||
            (t->sizes[d] > 1 && ir_operand(f, load, d) != opjit_ir_coordinate(f, statement, d)))
            return false;
    return t->rank == b->matrix.rank;
}

/* A copy of what the load reads, of bytes [tiles, k, columns of a tile], else [tiles, blocks of k, columns of a tile];
 * returns what the product reads of it. */
static ir_ref copy(byte_columns *b, ir_ref statement, ir_ref load, bool is_bytes)
{
    ir_func *f = b->f;
    const ir_tensor m = b->matrix;
    ir_tensor t = { .role = IR_VALUE, .type = (ir_type)ir_at(f, load)->type, .align = 64 };
    const uint64_t blocks = b->of_block < 0 ? 1 : m.sizes[b->of_block], each = m.sizes[b->of_k];
    t.sizes[t.rank++] = m.sizes[b->of_column] / b->tile;
    if (is_bytes || b->of_block >= 0)
        t.sizes[t.rank++] = is_bytes ? blocks * each : blocks;
    t.sizes[t.rank++] = b->tile;
    t.bytes = opjit_ir_count_elements(&t) * opjit_ir_type_size(t.type);
    opjit_ir_dense_strides(&t);
    const uint32_t tensor = opjit_ir_tensor(f, &t);
    const ir_ref def = opjit_ir_def(f, tensor), zero = opjit_ir_index(f, 0), tile = opjit_ir_index(f, (int64_t)b->tile);
    const ir_ref in_block = opjit_ir_index(f, (int64_t)each), last = opjit_ir_coordinate(f, def, t.rank - 1);
    const ir_ref k = t.rank == 3 ? opjit_ir_coordinate(f, def, 1) : zero;
    ir_map here = { 0 };
    for (uint32_t d = 0; d < m.rank; d++)
        ir_map_set(f, &here, opjit_ir_coordinate(f, statement, d), zero);
    const ir_ref column =
        ir_make2(f, IR_IADD, IR_INDEX, ir_make2(f, IR_IMUL, IR_INDEX, opjit_ir_coordinate(f, def, 0), tile), last);
    ir_map_set(f, &here, opjit_ir_coordinate(f, statement, (uint32_t)b->of_column), column);
    if (b->of_block >= 0)
        ir_map_set(f, &here, opjit_ir_coordinate(f, statement, (uint32_t)b->of_block),
                   is_bytes ? ir_make2(f, IR_IDIV, IR_INDEX, k, in_block) : k);
    if (is_bytes)
        ir_map_set(f, &here, opjit_ir_coordinate(f, statement, (uint32_t)b->of_k),
                   b->of_block >= 0 ? ir_make2(f, IR_IMOD, IR_INDEX, k, in_block) : k);
    opjit_ir_set_value(f, def, opjit_ir_remake(f, &here, load));
    opjit_ir_block_add(f, &b->list, def);
    ir_took(f, IR_STEP_BYTE_COLUMNS);
    const ir_ref number = ir_make2(f, IR_IDIV, IR_INDEX, b->column, tile);
    ir_ref from[3] = { number, is_bytes ? b->k : ir_make2(f, IR_IDIV, IR_INDEX, b->k, in_block) };
    from[t.rank - 1] = ir_make2(f, IR_IMOD, IR_INDEX, b->column, tile);
    return opjit_ir_load(f, tensor, from);
}

/* What the product computes in place of the statement's value r; 0: it has another form. */
static ir_ref rewrite(byte_columns *b, ir_ref statement, ir_ref r, uint32_t depth)
{
    ir_func *f = b->f;
    const ir_node *n = ir_at(f, r);
    if (n->op == IR_CONST || f->failed)
        return r;
    if (depth == MOST_DEPTH)
        return 0;
    if (n->op == IR_LOAD) {
        const uint32_t tensor = n->ref, root = opjit_ir_root(f, tensor);
        const ir_tensor *t = &f->tensors[tensor];
        const bool is_byte = opjit_ir_type_size((ir_type)n->type) == 1, by_block = t->strides[b->of_k] == 0;
        const bool constant = root < b->count && (f->tensors[root].role == IR_CONSTANT || b->constant[root]);
        if (!constant || !is_at_own(b, statement, r))
            return 0;
        if (tensor == root && b->defs[root] != 0 && !is_byte && !by_block)
            return rewrite(b, b->defs[root], ir_operand(f, b->defs[root], 0), depth + 1);
        b->bytes += !by_block;
        if (!by_block && !is_byte)
            return 0;
        return b->writes ? copy(b, statement, r, !by_block) : r;
    }
    if (n->op != IR_CAST && n->op != IR_ADD && n->op != IR_SUB && n->op != IR_MUL)
        return 0;
    const ir_op op = (ir_op)n->op;
    const ir_type type = (ir_type)n->type;
    const uint32_t count = n->count;
    ir_ref operands[2] = { 0 };
    b->operations++;
    for (uint32_t i = 0; i < count; i++) {
        operands[i] = rewrite(b, statement, ir_operand(f, r, i), depth + 1);
        if (operands[i] == 0)
            return 0;
    }
    return b->writes ? opjit_ir_make(f, op, type, count, operands) : r;
}

/* Whether the factor is a matrix that a definition makes: its columns the last dimension but one, its k the last. */
static bool is_matrix(byte_columns *b, ir_ref statement, ir_ref factor)
{
    const ir_func *f = b->f;
    if (ir_at(f, factor)->op != IR_LOAD || ir_at(f, factor)->type != IR_F32)
        return false;
    const uint32_t root = opjit_ir_root(f, ir_at(f, factor)->ref);
    const ir_tensor *seen = &f->tensors[ir_at(f, factor)->ref], *own = &f->tensors[root];
    const ir_tensor *out = &f->tensors[ir_at(f, statement)->ref];
    int32_t last[4] = { -1, -1, -1, -1 };
    uint32_t dimensions = 0;
    if (root >= b->count || b->defs[root] == 0 || !b->constant[root] || seen->rank < 2 || seen->offset != 0 ||
        (seen->role == IR_VIEW && seen->of != root) || !opjit_ir_is_dense(seen) || !opjit_ir_is_dense(own))
        return false;
    for (uint32_t d = own->rank; d-- > 0;)
        if (own->sizes[d] > 1 && dimensions < 4)
            last[dimensions++] = (int32_t)d;
    for (uint32_t d = 0; d + 2 < seen->rank; d++)
        if (seen->sizes[d] > 1)
            return false;
    b->matrix = *own;
    b->of_k = last[0];
    b->of_block = dimensions == 3 ? last[1] : -1;
    b->of_column = dimensions == 3 ? last[2] : last[1];
    b->k = ir_operand(f, factor, seen->rank - 1);
    b->column = ir_operand(f, factor, seen->rank - 2);
    const uint64_t columns = dimensions < 2 ? 0 : own->sizes[b->of_column];
    const uint64_t lanes = b->target->vector_bytes / sizeof(float);
    const bool has_16 = rt_target_has_16_vectors(b->target);
    for (b->tile = TILE_VECTORS * lanes; b->tile > lanes && columns % b->tile != 0;)
        b->tile /= 2;
    if (dimensions < 2 || dimensions > 3 || columns % b->tile != 0 || b->k != opjit_ir_reduced(f, statement) ||
        own->sizes[b->of_column] != seen->sizes[seen->rank - 2])
        return false;
    for (uint32_t d = 0; d < out->rank; d++)
        if (b->column == opjit_ir_coordinate(f, statement, d))
            return out->sizes[d] == own->sizes[b->of_column] && out->sizes[d] >= LEAST_COLUMNS &&
                   opjit_ir_count_elements(out) <= (has_16 ? MOST_ROWS_OF_16 : MOST_ROWS) * out->sizes[d] &&
                   opjit_ir_count_elements(own) >= LEAST_ELEMENTS;
    return false;
}

static void take(byte_columns *b, ir_ref statement)
{
    ir_func *f = b->f;
    const ir_ref pair = ir_operand(f, statement, 0);
    for (uint32_t i = 0; i < 2; i++) {
        const ir_ref factor = ir_operand(f, pair, i);
        if (!is_matrix(b, statement, factor) || opjit_ir_uses(f, ir_operand(f, pair, 1 - i), b->column))
            continue;
        const ir_ref def = b->defs[opjit_ir_root(f, ir_at(f, factor)->ref)];
        b->operations = b->bytes = 0;
        b->writes = false;
        if (rewrite(b, def, ir_operand(f, def, 0), 0) == 0 || b->bytes != 1 || b->operations > MOST_OPERATIONS)
            continue;
        b->writes = true;
        ir_map_set(f, &b->map, factor, rewrite(b, def, ir_operand(f, def, 0), 0));
    }
}

/* --- the function ------------------------------------------------------------------------------------------------- */

static bool is_product(const ir_func *f, ir_ref s)
{
    return ir_at(f, s)->op == IR_DEF && ir_at(f, s)->kind == IR_DOT && ir_at(f, s)->type == IR_F32 &&
           !ir_is_of_recurrence(&f->tensors[ir_at(f, s)->ref]);
}

/* Notes the definition, and whether it follows from constants alone. */
static void note(byte_columns *b, ir_ref s)
{
    ir_func *f = b->f;
    const uint32_t own = ir_at(f, s)->ref;
    if (ir_at(f, s)->op != IR_DEF || ir_is_of_recurrence(&f->tensors[own]))
        return;
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, s, 0));
    bool constant = seen.nodes != NULL;
    for (uint32_t k = 0; k < seen.count && constant; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        const uint32_t root = n->op == IR_LOAD ? opjit_ir_root(f, n->ref) : 0;
        constant =
            n->op != IR_PARAM &&
            (n->op != IR_LOAD || (root < b->count && (f->tensors[root].role == IR_CONSTANT || b->constant[root])));
    }
    b->constant[own] = constant && !opjit_ir_is_counted(f, s);
    b->defs[own] = ir_at(f, s)->kind == 0 ? s : 0;
}

void opjit_ir_copy_byte_columns(ir_func *f, const rt_target *target)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    byte_columns b = { .f = f, .target = target, .count = f->tensor_count };
    ir_ref next, s = f->body;
    while (s != 0 && !is_product(f, s))
        s = ir_at(f, s)->next;
    if (s == 0)
        return;
    b.defs = ARENA_ARRAY(&f->scratch, ir_ref, b.count);
    b.constant = ARENA_ARRAY(&f->scratch, bool, b.count);
    f->failed = f->failed || b.defs == NULL || b.constant == NULL;
    for (s = f->body; s != 0 && !f->failed; s = next) {
        next = ir_at(f, s)->next;
        if (is_product(f, s))
            take(&b, s);
        note(&b, s);
        opjit_ir_block_add(f, &b.list, s);
    }
    f->body = b.list.first;
    if (f->steps[IR_STEP_BYTE_COLUMNS] > 0 && !f->failed) {
        const uint32_t before = f->steps[IR_STEP_UNREAD];
        opjit_ir_remake_operands(f, &b.map, f->body);
        opjit_ir_remove_unread(f);
        f->steps[IR_STEP_UNREAD] = before; /* a part of this step */
    }
    opjit_rt_arena_rewind(&f->scratch, mark);
}
