/* SPDX-License-Identifier: Apache-2.0 */
/* next.c - what the tiles of a loop prefetch to the second cache, a line in each round, because it is read next: memory
 * would otherwise be waited for where nothing else is done.  With loops `inner` in `outer` in `around` the tile, it is
 *
 *     where all tiles of inner load the same vectors: those that the tiles of outer's next iteration load, or
 *     where around begins with a copy: what its next iteration copies
 *
 * of which each tile has its part.  What is prefetched behind the last iteration is for nothing. */
#include "codegen/emit/access.h"
#include "codegen/hold/hold.h"

enum {
    ROUND = 4,     /* iterations; where a round has others, less or more is prefetched */
    FAR = 4,       /* memory of more than so large a part of the second cache is not in it by itself */
    MOST_LINES = 64 /* of a tile */
};

/* --- what it is --------------------------------------------------------------------------------------------------- */

/* Whether a load's tensor is far: no scratch, which was stored before. */
static bool is_far(const cg_func *f, uint32_t tensor)
{
    const ir_tensor *root = &f->ir->tensors[opjit_ir_root(f->ir, tensor)];
    return root->role != IR_SCRATCH && root->bytes > f->target->l2 / FAR;
}

/* Iterations of a loop with step 1, at most; 0: not known. */
static int64_t times_of(const cg_func *f, ir_ref loop)
{
    const ir_node *n = ir_at(f->ir, loop);
    int64_t times;
    return n->op == IR_FOR && n->imm == 1 &&
                   opjit_ir_span(f->ir, ir_operand(f->ir, loop, 0), ir_operand(f->ir, loop, 1), &times) && times > 0
               ? times
               : 0;
}

static bool starts_at_0(const cg_func *f, ir_ref loop) { return ir_is_index_0(f->ir, ir_operand(f->ir, loop, 0)); }

/* Whether the access reads whole lines, one iteration of the held loop after the other. */
static bool reads_lines(const cg_tile_builder *b, const cg_tile_access *a, const cg_access *load)
{
    const cg_tile *t = &b->plan->tile;
    const int64_t size = load->bits / 8;
    int64_t lanes = 0, by_k;
    for (uint32_t l = 1; l < t->loops; l++) {
        lanes = a->by[l] == size && t->loop[l].lanes > 1 ? (int64_t)t->loop[l].count * t->loop[l].lanes : lanes;
        if (a->by_arg[l] != 0 || (a->by[l] != 0 && a->by[l] != size))
            return false;
    }
    return a->across == 0 && a->each == 0 && lanes > 0 && lanes * size % IR_LINE == 0 &&
           opjit_cg_growth(b->f, load, b->plan->var[0], &by_k) && by_k == lanes;
}

/* The vectors of outer's next iteration. */
static void find_vectors(cg_tile_builder *b, int64_t rounds, ir_ref inner, ir_ref outer)
{
    cg_tile_plan *plan = b->plan;
    const ir_func *ir = b->f->ir;
    const int64_t tiles = times_of(b->f, inner);
    for (uint32_t i = 0; i < plan->tile.accesses; i++) {
        const cg_tile_access *a = &plan->tile.access[i];
        int64_t still, next;
        if (a->held || plan->arg[a->base].kind != CG_PASS_ADDRESS)
            continue;
        const cg_access load = opjit_cg_access_of(b->f, plan->arg[a->base].node);
        if (ir_at(ir, load.node)->op != IR_LOAD || !is_far(b->f, load.tensor) || !reads_lines(b, a, &load) ||
            !opjit_cg_growth(b->f, &load, ir_at(ir, inner)->ref, &still) || still != 0 ||
            !opjit_cg_growth(b->f, &load, ir_at(ir, outer)->ref, &next) || next <= 0 || next > INT32_MAX)
            continue;
        const int64_t bytes = next * (load.bits / 8), by = (bytes + tiles * rounds - 1) / (tiles * rounds);
        if (by > IR_LINE)
            continue;
        plan->fetch = (cg_tile_next){ .load = load.node, .by = bytes, .part = by * rounds };
        return;
    }
}

/* The load of a copy to scratch, whose loops are set; 0: it is none. */
static ir_ref find_copy(const cg_func *f, ir_ref loop, ir_ref *loops, uint32_t *count)
{
    const ir_func *ir = f->ir;
    ir_ref s = loop;
    for (*count = 0; ir_at(ir, s)->op == IR_FOR; s = ir_at(ir, s)->body) {
        if (*count == CG_TILE_NEXT_LOOPS || ir_at(ir, s)->body == 0 || ir_at(ir, ir_at(ir, s)->body)->next != 0 ||
            times_of(f, s) == 0 || !starts_at_0(f, s))
            return 0;
        loops[(*count)++] = s;
    }
    const ir_node *n = ir_at(ir, s);
    const ir_ref load = n->op == IR_STORE ? ir_operand(ir, s, 0) : 0;
    return load != 0 && *count > 1 && ir_at(ir, load)->op == IR_LOAD && is_far(f, ir_at(ir, load)->ref) &&
                   ir->tensors[opjit_ir_root(ir, n->ref)].role == IR_SCRATCH
               ? load
               : 0;
}

/* What the loop copies in around's next iteration: rows of a line or more, in whose loop are others that together read
 * a row. */
static void find_rows(cg_tile_builder *b, int64_t rounds, ir_ref loop, ir_ref around)
{
    const cg_func *f = b->f;
    ir_ref loops[CG_TILE_NEXT_LOOPS];
    uint32_t count;
    const ir_ref node = find_copy(f, loop, loops, &count);
    int64_t length = 1, step, row, next;
    if (node == 0)
        return;
    const cg_access load = opjit_cg_access_of(f, node);
    const int64_t size = load.bits / 8;
    for (uint32_t l = count; l-- > 1; length *= times_of(f, loops[l]))
        if (!opjit_cg_growth(f, &load, ir_at(f->ir, loops[l])->ref, &step) || step != length)
            return;
    if (length * size < IR_LINE || !opjit_cg_growth(f, &load, ir_at(f->ir, loop)->ref, &row) || row <= length ||
        row > INT32_MAX / size / 64 || !opjit_cg_growth(f, &load, ir_at(f->ir, around)->ref, &next) || next <= 0 ||
        next > INT32_MAX)
        return;
    b->plan->fetch = (cg_tile_next){ .load = node, .by = next * size, .row = row * size, .part = row * size * rounds,
                                     .lines = (length * size + IR_LINE - 1) / IR_LINE,
                                     .parts = (times_of(f, loop) + rounds - 1) / rounds, .vars = count };
    for (uint32_t l = 0; l < count; l++)
        b->plan->fetch.var[l] = ir_at(f->ir, loops[l])->ref;
}

void opjit_cg_tile_find_next(cg_tile_builder *b, ir_ref inner, ir_ref outer, ir_ref around)
{
    cg_tile_plan *plan = b->plan;
    const cg_func *f = b->f;
    const int64_t rounds = times_of(f, plan->loop) / ROUND, tiles = times_of(f, inner);
    if (rounds == 0 || rounds > MOST_LINES || tiles <= 1 || times_of(f, outer) == 0 || !starts_at_0(f, inner) ||
        !starts_at_0(f, outer))
        return;
    find_vectors(b, rounds, inner, outer);
    for (ir_ref s = ir_at(f->ir, around)->body; s != outer && plan->fetch.load == 0 && times_of(f, around) > 1;
         s = ir_at(f->ir, s)->next)
        find_rows(b, rounds, s, around);
    if (plan->fetch.load == 0)
        return;
    plan->fetch.inner = ir_at(f->ir, inner)->ref;
    plan->fetch.outer = ir_at(f->ir, outer)->ref;
    plan->fetch.tiles = tiles;
    const int64_t by = plan->fetch.row != 0 ? plan->fetch.row : plan->fetch.part / rounds;
    const uint32_t at = opjit_cg_tile_arg(b, &(cg_tile_arg){ .kind = CG_PASS_FETCH });
    const uint32_t moves = opjit_cg_tile_arg(b, &(cg_tile_arg){ .kind = CG_PASS_NUMBER, .number = by });
    if (at == UINT32_MAX || moves == UINT32_MAX) {
        plan->fetch.load = 0;
        return;
    }
    plan->tile.fetch = at + 1;
    plan->tile.fetch_by = moves + 1;
}

/* --- where it is -------------------------------------------------------------------------------------------------- */

/* Element offset of the first one that is read now. */
static LLVMValueRef offset_now(cg_func *f, const cg_tile_plan *plan, const cg_access *load)
{
    const cg_tile_next *n = &plan->fetch;
    const ir_ref *vars = n->row != 0 ? n->var : plan->var;
    const uint32_t count = n->row != 0 ? n->vars : plan->tile.loops, loops = f->loop_count;
    for (uint32_t l = 0; l < count; l++)
        f->loops[f->loop_count++] =
            (cg_loop){ .var = vars[l], .iv = opjit_cg_number(f, 64, 1, 0), .step = 1, .threads = 1 };
    LLVMValueRef elements = opjit_cg_lane0_offset(f, load, 0);
    f->loop_count = loops;
    return elements;
}

LLVMValueRef opjit_cg_next_address(cg_func *f, const cg_tile_plan *plan)
{
    const cg_tile_next *n = &plan->fetch;
    const cg_access load = opjit_cg_access_of(f, n->load);
    LLVMValueRef base = opjit_cg_base_pointer(f, load.tensor), tile = opjit_cg_emit(f, n->inner);
    LLVMValueRef now = opjit_cg_offset(f, opjit_cg_int(f, load.bits, 1), base, offset_now(f, plan, &load));
    LLVMValueRef bytes = opjit_cg_number(f, 64, 1, (uint64_t)n->by), part = tile;
    if (n->row != 0) { /* a line of the rows of a part, then the next line; tiles behind the last part repeat it */
        LLVMValueRef lines = opjit_cg_number(f, 64, 1, (uint64_t)n->lines);
        LLVMValueRef most = opjit_cg_number(f, 64, 1, (uint64_t)n->parts - 1);
        tile = opjit_cg_add(f, opjit_cg_times(f, opjit_cg_emit(f, n->outer), n->tiles), tile);
        part = LLVMBuildUDiv(f->b, tile, lines, "");
        LLVMValueRef line = opjit_cg_sub(f, tile, opjit_cg_times(f, part, n->lines));
        part = LLVMBuildSelect(f->b, LLVMBuildICmp(f->b, LLVMIntULT, part, most, ""), part, most, "");
        bytes = opjit_cg_add(f, bytes, opjit_cg_times(f, line, IR_LINE));
    }
    bytes = opjit_cg_add(f, bytes, opjit_cg_times(f, part, n->part));
    return opjit_cg_offset(f, f->type.i8, now, bytes);
}
