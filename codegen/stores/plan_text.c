/* SPDX-License-Identifier: Apache-2.0 */
/* plan_text.c - plans as text, one line for the stage and one for each of its loops:
 *     stage: rounds of 8
 *       %5: uniform_fill, 16 lanes, rounds of 16, rounds of 8, read ahead 256 B
 * Copies are of vectors, and of single elements in scalars; the cuts that follow do what remains after the rounds.
 */
#include "codegen/hold/hold.h"
#include "codegen/plan.h"

#include <inttypes.h>

static void put_name(const cg_func *f, const uint32_t *numbers, ir_ref var, rt_bytes *out)
{
    const uint32_t number = numbers ? numbers[f->nodes[var]] : 0;
    if (number > 0)
        opjit_rt_bytes_printf(out, "%%%" PRIu32, number - 1);
    else
        opjit_rt_bytes_printf(out, "loop");
}

/* How the copies of a round come. */
static const char *order_of(const cg_plan *plan, const cg_cut *cut)
{
    if (plan->abreast == 0 || cut->lanes < 2 || cut->copies < 2 || cut->copies > CG_MAX_SIDE_BY_SIDE)
        return "";
    return plan->abreast < cut->copies ? " two by two" : " side by side";
}

static void put_cut(const cg_plan *plan, const cg_cut *cut, bool after_part, rt_bytes *out)
{
    static const char *const places[] = { "", " with accumulators in registers per round",
                                          " with accumulators in registers" };
    switch (cut->kind) {
    case CG_CUT_ROUNDS:
        opjit_rt_bytes_printf(out, ", rounds of %" PRIu32 "%s%s%s", cut->copies, order_of(plan, cut),
                              cut->binades ? " in a binade" : "", places[cut->accumulators]);
        break;
    case CG_CUT_ONCE:
        opjit_rt_bytes_printf(out, ", once %" PRIu32 "%s%s", cut->copies, order_of(plan, cut),
                              places[cut->accumulators]);
        break;
    case CG_CUT_STREAMS: opjit_rt_bytes_printf(out, ", two streams of %" PRIu32, cut->copies / 2); break;
    case CG_CUT_TAILED:
        opjit_rt_bytes_printf(out, ", once %" PRIu32 "%s, remainder masked to %" PRId64, cut->copies,
                              order_of(plan, cut), cut->rest);
        break;
    case CG_CUT_MASKED: opjit_rt_bytes_printf(out, ", remainder masked"); break;
    case CG_CUT_OVERLAP: opjit_rt_bytes_printf(out, ", remainder overlap"); break;
    case CG_CUT_PART: opjit_rt_bytes_printf(out, after_part ? " %" PRIu32 : ", remainder %" PRIu32, cut->lanes); break;
    }
}

static void put_groups(const cg_groups *groups, rt_bytes *out)
{
    opjit_rt_bytes_printf(out, ", groups of %" PRIu32 " for %" PRIu32 " threads in turn", groups->lanes,
                          groups->threads);
    if (groups->several > 0)
        opjit_rt_bytes_printf(out, groups->exact ? ", exactly %" PRIu32 " each" : ", rounds of %" PRIu32,
                              groups->several);
    opjit_rt_bytes_printf(out, "%s%s%s", groups->one ? ", at most one each" : "", groups->single ? ", rounds of 1" : "",
                          groups->rest ? ", then single ones" : "");
}

static void put_modifiers(const cg_plan *plan, rt_bytes *out)
{
    const char *const flags[] = {
        plan->is.nontemporal ? ", around the caches" : "",
        plan->prefetch ? ", prefetch" : "",
        plan->point ? ", one element apart" : "",
        plan->still == CG_IN_ROUNDS ? ", sunk into rounds" : "",
        plan->early ? ", early bounds" : "",
    };
    if (plan->read_ahead > 0)
        opjit_rt_bytes_printf(out, ", read ahead %" PRIu32 " B", plan->read_ahead);
    if (plan->tabled)
        opjit_rt_bytes_printf(out, ", table of %zu B%s", plan->table_bytes,
                              plan->tabled == plan->is.store.value ? "" : " for a part");
    if (plan->table_period > 0)
        opjit_rt_bytes_printf(out, " in %" PRIu32 " registers", plan->table_period);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        opjit_rt_bytes_printf(out, "%s", flags[i]);
}

static void put_loop(const cg_func *f, const cg_plan *plan, const uint32_t *numbers, rt_bytes *out)
{
    const cg_facts *is = &plan->is;
    opjit_rt_bytes_printf(out, "%*s", 2 * (int)is->depth, "");
    put_name(f, numbers, is->var, out);
    opjit_rt_bytes_printf(out, "%s: %s", is->in_block ? " in a block" : "", plan->strategy->name);
    if (plan->tile && plan->tile->loop == is->loop)
        opjit_cg_tile_text(plan->tile, out);
    if (is->lanes > 1)
        opjit_rt_bytes_printf(out, ", %" PRIu32 " lanes", is->lanes);
    if (is->rows)
        opjit_rt_bytes_printf(out, ", blocks of %" PRIu32 " rows", is->unroll);
    if (is->edge)
        opjit_rt_bytes_printf(out, ", %s line", ir_at(f->ir, is->loop)->flags & IR_FOR_HEAD ? "first" : "last");
    if (is->distributed)
        put_groups(&plan->groups, out);
    if (plan->part > 0)
        opjit_rt_bytes_printf(out, ", parts of %" PRIu32, plan->part);
    if (plan->least_part > 0 && plan->least_part < plan->part)
        opjit_rt_bytes_printf(out, " to %" PRIu32, plan->least_part);
    if (plan->long_end > 0)
        opjit_rt_bytes_printf(out, ", long runs that end with %" PRIu32 " or %" PRIu32, plan->long_end,
                              2 * plan->long_end);
    if (plan->interleaved > 0)
        opjit_rt_bytes_printf(out, ", vectors of %" PRIu32 " rows", plan->interleaved);
    if (plan->streams > 0)
        opjit_rt_bytes_printf(out, ", two streams of %" PRIu32, plan->streams / 2);
    else if (plan->even > 0)
        opjit_rt_bytes_printf(out, ", rounds of %" PRIu32, plan->even);
    for (uint32_t i = 0; i < plan->cut_count; i++)
        put_cut(plan, &plan->cuts[i], i > 0 && plan->cuts[i - 1].kind == CG_CUT_PART, out);
    put_modifiers(plan, out);
    opjit_rt_bytes_u8(out, '\n');
}

/* Whether the loop over the rows of blocks does some of them one by one. */
static bool has_single_rows(const cg_plan *rows)
{
    bool single = false;
    for (uint32_t i = 0; i < rows->cut_count; i++)
        single = single || rows->cuts[i].copies == 1;
    return single;
}

void opjit_cg_plan_text(const cg_func *f, const uint32_t *numbers, uint32_t index, rt_bytes *out)
{
    const cg_stage_plan *stage = f->stage;
    opjit_rt_bytes_printf(out, "stage @%" PRIu32 ":", index);
    if (f->cpu->grid)
        opjit_rt_bytes_printf(out, " an iteration a team");
    else if (stage->once)
        opjit_rt_bytes_printf(out, " once");
    else if (stage->rows.copies > 0)
        opjit_rt_bytes_printf(out, " two rows at a time");
    else
        opjit_rt_bytes_printf(out, " rounds of %" PRId64, stage->at_once);
    opjit_rt_bytes_printf(out, "%s\n", stage->early ? ", early bounds" : "");
    const cg_plan *rows = NULL;
    for (const cg_plan *plan = f->first_plan; plan; plan = plan->next) {
        rows = plan->is.rows ? plan : rows;
        if (!plan->blocked || has_single_rows(rows))
            put_loop(f, plan, numbers, out);
    }
}
