/* SPDX-License-Identifier: Apache-2.0 */
/* strategies.c - the table of strategies, and the planner, which takes the first one that applies to a loop.  A new
 * strategy is a row here, its functions, and a file in tests/golden/plan (README.md: "Adding a store strategy"). */
#include "codegen/gpu/grid.h"
#include "codegen/hold/hold.h"
#include "codegen/stores/names.h"
#include "codegen/stores/pieces.h"

/* --- strategies --------------------------------------------------------------------------------------------------- */

static bool is_edge(const cg_func *f, const cg_plan *plan)
{
    (void)f;
    return plan->is.edge;
}

static bool is_distributed(const cg_func *f, const cg_plan *plan)
{
    (void)f;
    return plan->is.distributed;
}

static bool is_of_tile(const cg_func *f, const cg_plan *plan)
{
    (void)f;
    return plan->tile != NULL;
}

static bool is_empty(const cg_func *f, const cg_plan *plan)
{
    (void)f;
    return plan->is.most == 0;
}

static void emit_nothing(cg_func *f, const cg_plan *plan)
{
    (void)f;
    (void)plan;
}

static bool is_of_two_rows(const cg_func *f, const cg_plan *plan)
{
    return f->stage->rows.copies > 0 && plan->is.around == f->stage->stage;
}

static void choose_two_rows(const cg_func *f, cg_plan *plan)
{
    plan->streams = f->stage->rows.copies;
}

static void choose_whole_blocks(const cg_func *f, cg_plan *plan)
{
    (void)f;
    plan->even = plan->copies;
}

static bool is_over_rows(const cg_func *f, const cg_plan *plan)
{
    (void)f;
    return plan->is.rows;
}

static bool is_vector(const cg_func *f, const cg_plan *plan)
{
    (void)f;
    return plan->is.lanes > 1;
}

static bool is_any(const cg_func *f, const cg_plan *plan)
{
    (void)f;
    (void)plan;
    return true;
}

static void choose_cuts(const cg_func *f, cg_plan *plan)
{
    opjit_cg_plan_cuts(f, plan, plan->is.least, plan->is.most, false);
}

const cg_strategy opjit_cg_strategies[] = {
    { "row_edge", is_edge, NULL, NULL, opjit_cg_row_edge },
    { "distribute", is_distributed, opjit_cg_choose_groups, NULL, opjit_cg_distribute },
    { "tile", is_of_tile, NULL, NULL, opjit_cg_put_tile },
    { "nothing", is_empty, NULL, NULL, emit_nothing },
    { "two_rows", is_of_two_rows, choose_two_rows, opjit_cg_put_two_rows, NULL },
    { "rows_in_lanes", opjit_cg_is_over_interleaved, opjit_cg_choose_over_interleaved, opjit_cg_put_over_interleaved,
      NULL },
    { "interleave", opjit_cg_is_interleaved, opjit_cg_choose_interleaved, opjit_cg_put_interleaved, NULL },
    { "short_run", opjit_cg_is_short_run, opjit_cg_choose_short_run, opjit_cg_put_short_run, NULL },
    { "whole_blocks", opjit_cg_is_whole_blocks, choose_whole_blocks, opjit_cg_put_whole_blocks, NULL },
    { "uniform_fill", opjit_cg_is_fill, opjit_cg_choose_fill, opjit_cg_put_fill, NULL },
    { "aligned_streams", opjit_cg_is_aligned_streams, opjit_cg_choose_even, opjit_cg_put_even, NULL },
    { "aligned_rounds", opjit_cg_is_aligned_rounds, opjit_cg_choose_even, opjit_cg_put_even, NULL },
    { "aligned", opjit_cg_seeks_alignment, opjit_cg_choose_aligned, opjit_cg_put_aligned, NULL },
    { "transpose", is_over_rows, choose_cuts, opjit_cg_put_cuts, NULL },
    { "vectors", is_vector, choose_cuts, opjit_cg_put_cuts, NULL },
    { "scalars", is_any, choose_cuts, opjit_cg_put_cuts, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

const char *opjit_cg_strategy_name(uint32_t index)
{
    return index + 1 < sizeof opjit_cg_strategies / sizeof *opjit_cg_strategies ? opjit_cg_strategies[index].name
                                                                                : NULL;
}

/* --- a loop ------------------------------------------------------------------------------------------------------- */

/* Copies per round. */
static uint32_t find_copies(const cg_func *f, const cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    uint32_t copies = is->unroll;
    if (f->peak && !is->rows && copies > CG_MANY_COPIES) /* more only amortise what quick does with the variable */
        copies = CG_PEAK_COPIES;
    if (f->peak && is->nontemporal && copies == CG_PEAK_COPIES && is->arithmetic)
        copies = CG_PEAK_COPIES / 2;
    if (plan->read_ahead > 0 && is->lanes > 1 && !f->peak && opjit_cg_read_ahead_copies(is) < copies)
        copies = opjit_cg_read_ahead_copies(is);
    if (!f->peak && is->calls > 0 && copies > is->calls)
        copies = is->calls;
    if (!f->peak && copies < CG_SHORT_COPIES && is->most >= 2 * (int64_t)is->lanes * CG_SHORT_COPIES &&
        opjit_cg_converts_shorts(f, is))
        copies = CG_SHORT_COPIES;
    return copies;
}

/* Where values that do not change in the loop are computed.  At quick, what another block computes goes to the stack,
 * which takes as long as storing a vector of the output.  If a loop is all that its iteration does, and its rounds are
 * long, this happens equally often either way. */
static cg_place_of place_of_still(const cg_func *f, const cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    if (is->store.value != 0 && plan->tabled == is->store.value)
        return CG_NOWHERE;
    if (!f->peak && !is->in_block && is->lanes > 1 && plan->copies > CG_PEAK_COPIES && is->alone &&
        !opjit_cg_is_fill(f, plan))
        return CG_IN_ROUNDS;
    return CG_BEFORE_LOOP;
}

/* More than two copies of a body with lets, such as mathematical functions have, need too many registers: then two by
 * two.  What is read from a table, and rows of a block, come one after the other. */
static uint32_t find_abreast(const cg_func *f, const cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    if (plan->tabled || is->in_block || is->lanes < 2)
        return 0;
    return f->peak           ? CG_MAX_SIDE_BY_SIDE
           : is->calls > 0 ? is->calls
           : ir_at(f->ir, is->body)->next != 0 ? CG_LETS_ABREAST : CG_MAX_SIDE_BY_SIDE;
}

static void find_modifiers(cg_func *f, cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    plan->read_ahead = opjit_cg_find_read_ahead(f, is);
    plan->copies = find_copies(f, plan);
    plan->prefetch = !f->cpu->grid && is->most > (int64_t)is->lanes * CG_PEAK_COPIES && is->arithmetic &&
                     (f->streams || is->updates);
    plan->early = f->stage->early && is->early;
    plan->point = opjit_cg_find_point(f, is);
    opjit_cg_make_table(f, plan);
    plan->binades = !plan->tabled && opjit_cg_is_in_binades(f, plan);
    plan->still = place_of_still(f, plan);
}

static void plan_loop(cg_func *f, cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    plan->copies = is->unroll;
    if (!is->edge && !is->distributed && is->most > 0)
        find_modifiers(f, plan);
    plan->abreast = find_abreast(f, plan);
    plan->strategy = opjit_cg_strategies;
    while (!plan->strategy->applies(f, plan))
        plan->strategy++;
    if (plan->strategy->choose)
        plan->strategy->choose(f, plan);
}

/* --- the stage ---------------------------------------------------------------------------------------------------- */

/* Whether some loop in the stage's iteration has a length that differs from row to row, and conditions for it. */
static bool is_ragged(const cg_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_FOR && !opjit_cg_is_short_run(f, f->plans[s]) && !f->plans[s]->is.fixed)
            return true;
    return false;
}

/* Iterations of the stage per round: several, if each is a few vectors that are stored without a condition, because at
 * quick every round also stores the loop variable. */
static int64_t iterations_at_once(const cg_func *f, ir_ref first)
{
    int64_t vectors = 0;
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next) {
        const ir_node *n = ir_at(f->ir, s);
        if (n->op == IR_LET)
            continue;
        const cg_facts *is = n->op == IR_FOR ? &f->plans[s]->is : NULL;
        if (!is || n->vec < 2 || n->imm != 1 || is->store.value == 0 ||
            f->info[is->store.value].weight > CG_AT_ONCE_WEIGHT || is->span == INT64_MAX)
            return 1;
        vectors += (is->span + n->vec - 1) / n->vec;
    }
    if (f->peak || f->stage->rows.copies > 0 || vectors == 0 || vectors > CG_ITERATIONS_AT_ONCE / 2 ||
        is_ragged(f, first))
        return 1;
    return vectors == 1 ? CG_ITERATIONS_AT_ONCE : vectors == 2 ? CG_ITERATIONS_AT_ONCE / 2 : 2;
}

static void plan_stage(cg_func *f, ir_ref stage)
{
    const ir_ref first = ir_at(f->ir, stage)->body;
    *f->stage = (cg_stage_plan){ .stage = stage, .at_once = 1 };
    f->stage->once = ir_index_value(f->ir, ir_operand(f->ir, stage, 1)) == 1;
    if (f->cpu->grid || f->stage->once)
        return;
    f->stage->early = !f->peak && !f->direct && is_ragged(f, first);
    f->stage->same = f->ir->first_dim != 0 && !f->peak;
    if (ir_at(f->ir, first)->op == IR_FOR)
        f->stage->rows = opjit_cg_find_two_rows(f, &f->plans[first]->is);
    if (ir_at(f->ir, first)->op == IR_FOR && f->stage->rows.copies == 0)
        f->stage->interleaved = opjit_cg_find_interleaved(f, &f->plans[first]->is);
    f->stage->at_once = f->stage->interleaved > 1 ? f->stage->interleaved : iterations_at_once(f, first);
}

/* Makes plans of all loops, with facts only. */
static opjit_status find_loops(cg_func *f, ir_ref around, uint32_t depth, bool in_block, cg_plan ***end)
{
    for (ir_ref s = ir_at(f->ir, around)->body; s != 0; s = ir_at(f->ir, s)->next) {
        if (ir_at(f->ir, s)->op != IR_FOR)
            continue;
        cg_plan *plan = ARENA_NEW(f->arena, cg_plan);
        if (!plan)
            return opjit_rt_no_memory(f->error);
        opjit_cg_find_facts(f, around, s, depth, in_block, &plan->is);
        if (in_block)
            f->plans[s]->blocked = plan;
        else
            f->plans[s] = plan;
        **end = plan;
        *end = &plan->next;
        TRY(find_loops(f, s, depth + 1, false, end));
        if (plan->is.rows)
            TRY(find_loops(f, s, depth + 1, true, end));
    }
    return OPJIT_OK;
}

opjit_status opjit_cg_plan(cg_func *f, ir_ref stage)
{
    cg_plan *first = NULL, **end = &first;
    f->plans = ARENA_ARRAY(f->arena, cg_plan *, f->ir->node_count);
    f->stage = ARENA_NEW(f->arena, cg_stage_plan);
    if (!f->plans || !f->stage)
        return opjit_rt_no_memory(f->error);
    TRY(find_loops(f, stage, 1, false, &end));
    f->failed = f->failed || !opjit_cg_find_tiles(f, stage);
    plan_stage(f, stage);
    for (cg_plan *plan = first; plan; plan = plan->next)
        plan_loop(f, plan);
    f->first_plan = first;
    return f->failed ? opjit_rt_no_memory(f->error) : OPJIT_OK;
}
