/* SPDX-License-Identifier: Apache-2.0 */
/* passes.c - the pipeline: what each pass does, step by step; the array of passes; and the runner, which verifies,
 * traces and looks for failed allocations, so that passes don't have to.
 *
 * Steps run in the order of their calls.  Where one is called if another one refuses, they are shapes: a root, a nest
 * or a loop gets the first that fits it, because what one made of it would no longer be what the next one looks for. */
#include "ir/passes/grid/grid.h"
#include "ir/passes/collapse/nest.h"
#include "ir/passes/place/place.h"
#include "ir/passes/schedule/scheduler.h"
#include "ir/passes/split/split.h"

#include <string.h>

static bool has_threads(const ir_pass_env *env)
{
    return env->target != NULL && rt_target_team(env->target) > 0;
}

static bool is_value_form(const ir_func *f)
{
    return f->body != 0 && ir_at(f, f->body)->op != IR_STAGE;
}

/* --- fold --------------------------------------------------------------------------------------------------------- */

/* Applies opjit_ir_make to every expression: constants, bool algebra, index identities, comparisons that intervals
 * decide.  Needs: any form.  Leaves: the same statements with the simplest operands; so a bound that no coordinate
 * reaches, such as INT32_MIN, is gone. */
static opjit_status fold(ir_func *f, const ir_pass_env *env, opjit_error *error)
{
    (void)error;
    opjit_ir_simplify_operands(f);
    if (is_value_form(f)) {
        if (env->target != NULL && rt_target_rounds(env->target))
            opjit_ir_round_nearest(f);
        if (!has_threads(env) && !f->failed)
            opjit_ir_look_up_bytes(f, env->target);
        opjit_ir_cut_sequences(f, !has_threads(env)); /* rest; arithmetic costs a GPU nothing */
        opjit_ir_remove_unread(f);
    }
    return OPJIT_OK;
}

/* --- place -------------------------------------------------------------------------------------------------------- */

/* The stage of root number `first` and of those that it includes, up to *out_end. */
static opjit_status place_root(placer *p, uint32_t first, block *stages, uint32_t *out_end)
{
    const bool reduces = opjit_ir_reduced(p->f, p->items[first].statement) != 0;
    if (ir_at(p->f, p->items[first].statement)->op == IR_SCATTER) {
        *out_end = opjit_ir_place_scatter(p, first, stages);
        return OPJIT_OK;
    }
    const bool dots = reduces && ir_at(p->f, p->items[first].statement)->kind == IR_DOT;
    *out_end = opjit_ir_group_recurrence(p, first, stages);
    if (dots && *out_end == first)
        *out_end = opjit_ir_group_contract_rows(p, first, stages);
    if (dots && *out_end == first) /* a matrix times a vector, too, which is no row's */
        *out_end = opjit_ir_group_tiles(p, first, stages);
    if (*out_end == first && reduces && ir_at(p->f, p->items[first].statement)->imm != 1) /* one lane has columns */
        *out_end = opjit_ir_group_short(p, first, true, stages);
    if (*out_end == first && reduces && !dots)
        *out_end = opjit_ir_group_tiles(p, first, stages);
    if (*out_end == first && reduces && ir_kind_is_arg((ir_kind)ir_at(p->f, p->items[first].statement)->kind))
        *out_end = opjit_ir_group_columns(p, first, stages); /* rather than one place after the other */
    if (*out_end == first)
        *out_end = opjit_ir_group_rows(p, first, stages);
    if (*out_end == first && reduces)
        *out_end = opjit_ir_group_columns(p, first, stages);
    if (*out_end == first && reduces)
        *out_end = opjit_ir_group_short(p, first, false, stages);
    if (*out_end == first && !reduces)
        *out_end = opjit_ir_group_alternatives(p, first, stages);
    if (*out_end > first)
        return OPJIT_OK;
    *out_end = first + 1;
    if (!reduces)
        return opjit_ir_place_nest(p, first, stages);
    *out_end = opjit_ir_place_lone_row(p, first, stages);
    return OPJIT_OK;
}

/* From value form to loop form: which definitions are computed where they are read, which get memory, which stages make
 * them.  Needs: value form.  Leaves: a stage for every output (or box of one) and for every definition that gets
 * memory, in the order of the items, so that memory is written before it is read.  A stage is a full nest of loops in
 * the order of the coordinates; in it lets for what is costly and shared, and one store.  Reductions are stages of
 * rows, of columns, or of tiles.  All of them write values by the steps inline and share. */
static opjit_status place(ir_func *f, const ir_pass_env *env, opjit_error *error)
{
    placer p = { .f = f, .error = error, .env = env, .threads = has_threads(env) };
    block stages = { 0 };
    if (!is_value_form(f))
        return OPJIT_OK;
    opjit_ir_shape_outputs(f);
    if (!p.threads && !f->failed)
        opjit_ir_orient(f);
    p.first_copy = p.copies_end = f->tensor_count;
    if (!p.threads && !f->failed)
        opjit_ir_channels(f);
    if (!p.threads && !f->failed)
        opjit_ir_line_up(f);
    if (!p.threads && env->target != NULL && env->once && !env->general && !f->failed)
        opjit_ir_copy_byte_columns(f, env->target);
    p.first_side = f->tensor_count;
    if (!p.threads && env->target != NULL && !f->failed)
        opjit_ir_side_by_side(f, env->target);
    p.copies_end = f->tensor_count;
    if (!p.threads && !f->failed)
        opjit_ir_find_extremes(f);
    if (!f->failed)
        opjit_ir_cut_reductions(f);
    if (f->failed)
        return OPJIT_OK;
    TRY(opjit_ir_list_items(&p));
    opjit_ir_materialize(&p);
    if (!f->failed)
        opjit_ir_find_recurrences(&p);
    if (f->failed)
        return OPJIT_OK;
    p.rows = (place_rows_of){ .f = f,
                              .sources = p.sources,
                              .private_views = p.roots > 1,
                              .once = env->once && !p.threads,
                              .general = env->general,
                              .low_tiles = env->general && env->low_tiles,
                              .varying = &env->varying,
                              .blocks = !p.threads };
    for (uint32_t i = 0, end; i < p.count; i = end) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        end = i + 1;
        if (p.items[i].is_root)
            TRY(place_root(&p, i, &stages, &end));
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    if (!f->failed)
        opjit_ir_join_dimensions(&p, stages.first);
    f->body = stages.first;
    return OPJIT_OK;
}

/* --- collapse ----------------------------------------------------------------------------------------------------- */

/* Makes few long loops of many short ones.  Needs: stages as place leaves them.  Leaves: a parallel loop made of all
 * outer coordinates, and one inner loop along the output's smallest stride; or tiles, or blocks of whole vectors.
 * Tensors are declared with the rank that is left after merging.  A nest that already has that form, or a form that is
 * unknown here, stays as it is. */
static opjit_status collapse(ir_func *f, const ir_pass_env *env, opjit_error *error)
{
    block stages = { 0 };
    if (f->phase >= IR_COLLAPSED)
        return OPJIT_OK; /* with merged layouts a nest would be measured anew, and quotients fold further */
    const uint8_t *uses = opjit_ir_stages_of(f);
    if (uses == NULL)
        return opjit_rt_no_memory(error);
    for (ir_ref s = f->body, next; s != 0; s = next) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        next = ir_at(f, s)->next;
        nest *n = opjit_ir_find_nest(f, has_threads(env), s, uses);
        if (n == NULL) {
            opjit_ir_block_add(f, &stages, s);
        } else {
            opjit_ir_tile(n);
            opjit_ir_nest_group(n);
            if (!opjit_ir_flatten(n, env, &stages))
                opjit_ir_coalesce(n, &stages); /* tiles, too */
        }
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    f->body = stages.first;
    return OPJIT_OK;
}

/* --- split -------------------------------------------------------------------------------------------------------- */

/* Turns conditions on a loop's variable into bounds of loops.  Needs: folded loop form.  Leaves: what is the same in
 * every iteration in a let; no condition that changes once in a loop, except what limits leave as a select. */
static opjit_status split(ir_func *f, const ir_pass_env *env, opjit_error *error)
{
    (void)env;
    (void)error;
    if (f->phase >= IR_SPLIT)
        return OPJIT_OK; /* what the limits left as a select stays one */
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        if (ir_at(f, s)->op != IR_STAGE)
            continue;
        stage_split stage = { .f = f, .root = s };
        stage.stores = opjit_ir_count_stores(f, s);
        stage.loops = opjit_ir_count_for(f, ir_at(f, s)->body);
        stage.has_conditions = opjit_ir_has_conditions(f, s);
        opjit_ir_cut_block(&stage, s); /* cut and hoist, block by block */
        opjit_ir_drop_known(&stage);   /* constant_rows */
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    return OPJIT_OK;
}

/* --- cleanup ------------------------------------------------------------------------------------------------------ */

static opjit_status cleanup(ir_func *f, const ir_pass_env *env, opjit_error *error)
{
    (void)env;
    (void)error;
    opjit_ir_remove_idle(f);
    return OPJIT_OK;
}

/* --- schedule ----------------------------------------------------------------------------------------------------- */

static void schedule_block(scheduler *s, ir_ref parent);

/* What is in a loop without vectors. */
static void schedule_body(scheduler *s, ir_ref loop)
{
    const uint32_t around = s->held_count;
    if ((around > 0 || ir_at(s->f, loop)->hold) && around < MAX_HELD)
        s->held[s->held_count++] = loop;
    schedule_block(s, loop); /* as deep as loops nest: rule V16 */
    s->held_count = around;
}

/* A loop that begins no row. */
static void schedule_loop(scheduler *s, block *out, ir_ref loop)
{
    work w;
    if (ir_is_serial(s->f, loop)) {
        const bool beyond_caches = s->beyond_caches;
        s->beyond_caches = false; /* what an update stores, another one may store again */
        schedule_block(s, loop);
        s->beyond_caches = beyond_caches;
        opjit_ir_block_add(s->f, out, loop);
        return;
    }
    const bool transposed = opjit_ir_transpose(s, out->parent, loop);
    const bool vectors = !transposed && (opjit_ir_find_work(s, loop, &w) || opjit_ir_turns_loads(s, loop, &w));
    if (vectors && opjit_ir_add_remainder(s, out, loop, &w))
        return;
    if (vectors)
        opjit_ir_set_vector(s, loop, &w, 0, false);        /* attributes */
    else if (!transposed && !opjit_ir_set_copies(s, loop)) /* attributes of a loop without vectors */
        schedule_body(s, loop);
    opjit_ir_block_add(s->f, out, loop);
}

static void schedule_block(scheduler *s, ir_ref parent)
{
    ir_func *f = s->f;
    block out = { .parent = parent };
    ir_ref next;
    for (ir_ref r = ir_at(f, parent)->body; r != 0; r = next) {
        next = ir_at(f, r)->next;
        if (ir_at(f, r)->op != IR_FOR)
            opjit_ir_block_add(f, &out, r);
        else if (!opjit_ir_add_row(s, &out, r, &next)) /* edges, boundaries */
            schedule_loop(s, &out, r);
    }
}

/* The target decides: lanes, unrolling, kinds of stores, and boundaries.  Needs: split loop form and a target.  Leaves:
 * the same values; teams of threads, `vec`, `unroll`, `store nt` and `tail mask` on loops, and no whole vector that is
 * written in two parts. */
static opjit_status schedule(ir_func *f, const ir_pass_env *env, opjit_error *error)
{
    if (f->phase >= IR_SCHEDULED)
        return OPJIT_OK; /* the loops of boundaries are not cut again */
    if (env->target == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!schedule}no {target} is given, and schedule needs one");
    scheduler s = { .f = f,
                    .target = env->target,
                    .threads = has_threads(env),
                    .beyond_caches = opjit_ir_exceeds_caches(f, env->target) };
    for (s.stage = f->body; s.stage != 0; s.stage = ir_at(f, s.stage)->next) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        if (ir_at(f, s.stage)->op != IR_STAGE)
            continue;
        s.loops = opjit_ir_count_for(f, ir_at(f, s.stage)->body);
        if (!opjit_ir_find_loads(&s))
            break;
        opjit_ir_choose_team(&s);
        schedule_block(&s, s.stage);
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    opjit_ir_remove_idle(f); /* bounds of pieces that became equal in their boundary */
    if (f->target == NULL) {
        f->target = opjit_rt_arena_string(&f->arena, env->target->text, strlen(env->target->text));
        f->failed = f->failed || f->target == NULL;
    }
    return OPJIT_OK;
}

/* --- expand ------------------------------------------------------------------------------------------------------- */

static opjit_status expand(ir_func *f, const ir_pass_env *env, opjit_error *error)
{
    if (!env->calls_math || has_threads(env))
        TRY(opjit_ir_expand_math(f, env->target, error));
    if (env->once && !has_threads(env) && f->phase < IR_EXPANDED)
        opjit_ir_mark_once(f);
    return OPJIT_OK;
}

/* --- grid --------------------------------------------------------------------------------------------------------- */

/* Stages for a grid of threads.  Needs: scheduled loops for a GPU.  Leaves: the same program; an iteration of a stage
 * is done by a team, or by one thread where nothing in it can be distributed. */
static opjit_status grid(ir_func *f, const ir_pass_env *env, opjit_error *error)
{
    if (f->phase >= IR_GRIDDED)
        return OPJIT_OK;
    if (!has_threads(env))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "pass {grid} is for GPUs, and the {target} is {%s}",
                               env->target != NULL ? env->target->text : "not given");
    gridder g = { .f = f, .target = env->target };
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        opjit_ir_distribute(f, s);
        opjit_ir_keep_attributes(&g, s);
        if (g.any && !f->failed) {
            opjit_ir_add_syncs(&g, s);
            opjit_ir_set_alone(&g, s);
        }
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    return OPJIT_OK;
}

/* --- the pipeline ------------------------------------------------------------------------------------------------- */

const ir_pass opjit_ir_passes[] = {
    { "fold", IR_FOLDED, fold },
    { "place", IR_PLACED, place },
    { "collapse", IR_COLLAPSED, collapse },
    { "split", IR_SPLIT, split },
    { "cleanup", IR_CLEANED, cleanup },
    { "schedule", IR_SCHEDULED, schedule },
    { "expand", IR_EXPANDED, expand },
    { "grid", IR_GRIDDED, grid },
    { NULL, IR_LOWERED, NULL },
};

const ir_step_info opjit_ir_steps[IR_STEP_COUNT] = {
#define IR_STEP(name, phase, text, what) { text, what, IR_##phase },
#include "ir/passes/steps.def"
#undef IR_STEP
};

enum { MANY_NODES = 4096 }; /* of a function that is packed between passes, so that unused nodes don't accumulate */

/* Whether f is a variant in which an output has an input's memory: a trial, which frontend/compile judges when it is
 * done, and leaves out where it is not proven. */
static bool is_trial(const ir_func *f)
{
    bool any = false;
    for (uint32_t t = 1; t < f->tensor_count && !any; t++)
        any = f->tensors[t].alias != 0;
    return any;
}

static opjit_status verify(const ir_func *f, const ir_pass_env *env, const char *when, const char *pass,
                           opjit_error *error)
{
    opjit_status status = env->verify ? opjit_ir_verify(f, error) : OPJIT_OK;
    if (status == OPJIT_LIMIT && (f->phase >= IR_SPLIT || is_trial(f))) { /* as far as we know it is right: go on */
        opjit_rt_error_clear(error);
        status = OPJIT_OK;
    }
    if (status != OPJIT_OK)
        opjit_rt_error_prefix(error, "%s %s", when, pass);
    return status;
}

opjit_status opjit_ir_run_passes(ir_func *f, const ir_pass_env *env, ir_phase last, opjit_error *error)
{
    if (f->failed)
        return opjit_rt_no_memory(error);
    TRY(verify(f, env, "before", "passes", error));
    if (env->trace != NULL && f->phase == IR_LOWERED)
        env->trace(env->user, "lower", f);
    for (const ir_pass *pass = opjit_ir_passes; pass->name != NULL && pass->leaves <= last; pass++) {
        if (pass->leaves <= f->phase)
            continue;
        if (env->cancel != NULL && atomic_load_explicit(env->cancel, memory_order_relaxed))
            return opjit_rt_cancelled(error);
        f->section_count = 0; /* a pass makes nodes anywhere */
        f->sections = NULL;
        memset(f->steps, 0, sizeof f->steps);
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        opjit_status status = pass->run(f, env, error);
        opjit_rt_arena_rewind(&f->scratch, mark);
        if (status == OPJIT_OK && f->failed)
            status = opjit_rt_no_memory(error);
        if (status != OPJIT_OK) {
            opjit_rt_error_prefix(error, "pass %s", pass->name);
            return status;
        }
        f->phase = pass->leaves;
        if (f->phase >= IR_PLACED && f->node_count > MANY_NODES && f->node_count / 2 >= f->packed)
            TRY(opjit_ir_pack(f, error)); /* most passes after the first one leave few of them */
        TRY(verify(f, env, "after", pass->name, error));
        if (env->trace != NULL)
            env->trace(env->user, pass->name, f);
    }
    return OPJIT_OK;
}
