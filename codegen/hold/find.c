/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - a stage's tiles: held loops, the loops before and after them that belong to them, and whether their
 * registers have to be stored to memory. */
#include "codegen/hold/hold.h"
#include "codegen/plan.h"

#include <inttypes.h>

enum { MOST_BEFORE = 8 /* loops before a held one that are looked at */ };

typedef struct finder {
    cg_func *f;
    cg_tile_builder *b;
    cg_tile_plan *first; /* the stage's, linked by `next` */
} finder;

/* --- what a tile begins and ends with ----------------------------------------------------------------------------- */

/* Notes the registers that the steps from `first` on store, in all iterations of their loops. */
static void mark_starts(cg_tile *t, uint32_t first, uint32_t *at)
{
    for (uint32_t s = first; s != 0; s = t->step[s - 1].next) {
        const cg_tile_step *step = &t->step[s - 1];
        if (step->what == CG_TILE_LOOP)
            for (at[step->at] = 0; at[step->at] < t->loop[step->at].count; at[step->at]++)
                mark_starts(t, step->inner, at);
        if (step->what != CG_TILE_STORE)
            continue;
        const cg_tile_access *a = &t->access[step->at];
        uint64_t r = a->base;
        for (uint32_t l = 1; l < t->loops; l++)
            r += a->by[l] ? (uint64_t)a->by[l] * at[l] : 0;
        t->starts |= UINT64_C(1) << r;
    }
}

/* Likewise what the body stores first, as long as these are constants. */
static void mark_own_starts(cg_tile *t, uint32_t *at)
{
    uint32_t s = t->part[CG_TILE_BODY];
    bool only = true; /* statement of its loop */
    while (s != 0 && t->step[s - 1].what == CG_TILE_LOOP && only) {
        s = t->step[s - 1].inner;
        only = s != 0 && t->step[s - 1].next == 0;
    }
    if (s != 0 && only && t->step[s - 1].what == CG_TILE_STORE &&
        t->access[t->step[s - 1].at].held && t->node[t->step[s - 1].value].what == CG_TILE_CONST) {
        const uint32_t first = t->part[CG_TILE_BODY], next = t->step[first - 1].next;
        t->step[first - 1].next = 0;
        mark_starts(t, first, at);
        t->step[first - 1].next = next;
    }
}

/* The condition on which the loops after the held one choose, where the caller knows it. */
static uint32_t find_choice(const cg_tile_builder *b)
{
    const cg_tile *t = &b->plan->tile;
    for (uint32_t i = 0; i < t->nodes; i++)
        if (b->part_of[i] == CG_TILE_END && t->node[i].what == CG_TILE_OP && t->node[i].op == IR_SELECT &&
            t->node[cg_tile_origin(t, t->node[i].a[0])].what == CG_TILE_ARG)
            return cg_tile_origin(t, t->node[i].a[0]) + 1;
    return 0;
}

/* Whether the loops before the held one set all registers. */
static bool starts_itself(const cg_tile *t)
{
    return t->starts == UINT64_MAX >> (CG_TILE_REGISTERS - t->registers);
}

/* --- loops -------------------------------------------------------------------------------------------------------- */

/* Makes the tile that of the loop and all loops inside. */
static void mark(finder *w, ir_ref loop, const cg_tile_plan *tile)
{
    w->f->plans[loop]->tile = tile;
    for (ir_ref s = ir_at(w->f->ir, loop)->body; s != 0; s = ir_at(w->f->ir, s)->next)
        if (ir_at(w->f->ir, s)->op == IR_FOR)
            mark(w, s, tile);
}

/* Whether it is a let whose value is the same anywhere in its block. */
static bool is_fixed_let(const cg_func *f, ir_ref s)
{
    return ir_at(f->ir, s)->op == IR_LET && !f->info[s].fresh;
}

/* Adds loops directly before the held one, of which the last of `before` is the nearest, and directly after it.  Lets
 * of what never changes may stand between them: the tile is called where the held loop is, so what any other let reads
 * would be too old, or too new. */
static void take_around(finder *w, const ir_ref *before, uint32_t count)
{
    const ir_func *ir = w->f->ir;
    cg_tile_plan *plan = w->b->plan;
    while (count > 0 && !w->f->plans[before[count - 1]]->tile &&
           opjit_cg_tile_take(w->b, before[count - 1], CG_TILE_BEGIN)) {
        mark(w, before[--count], plan);
        plan->before++;
    }
    for (ir_ref s = ir_at(ir, plan->loop)->next; s != 0; s = ir_at(ir, s)->next) {
        if (is_fixed_let(w->f, s))
            continue;
        if (ir_at(ir, s)->op != IR_FOR || !opjit_cg_tile_take(w->b, s, CG_TILE_END))
            break;
        mark(w, s, plan);
        plan->after++;
    }
}

/* around: the loop that it is in, and the two around that. */
static bool find_tile(finder *w, ir_ref loop, uint32_t depth, const ir_ref *before, uint32_t count,
                      const ir_ref *around)
{
    cg_func *f = w->f;
    uint32_t at[CG_TILE_LOOPS] = { 0 };
    if (!w->b) {
        w->b = ARENA_NEW(f->arena, cg_tile_builder);
        if (!w->b)
            return false;
        w->b->f = f;
        w->b->before = ARENA_NEW(f->arena, cg_tile_plan);
        w->b->number = ARENA_ARRAY(f->arena, uint32_t, f->ir->node_count);
        if (!w->b->before || !w->b->number)
            return false;
    }
    const rt_arena_mark position = rt_arena_position(f->arena);
    cg_tile_plan *plan = w->b->plan = ARENA_NEW(f->arena, cg_tile_plan);
    if (!plan)
        return false;
    if (!opjit_cg_tile_begin(w->b, loop, depth)) {
        opjit_rt_arena_rewind(f->arena, position);
        return true;
    }
    mark(w, loop, plan);
    take_around(w, before, count);
    mark_starts(&plan->tile, plan->tile.part[CG_TILE_BEGIN], at);
    mark_own_starts(&plan->tile, at);
    plan->tile.choice = find_choice(w->b);
    opjit_cg_tile_find_next(w->b, around[0], around[1], around[2]);
    plan->next = w->first;
    w->first = plan;
    return true;
}

/* around: of the loop whose statements they are, that loop, and the two around it. */
static bool find_in(finder *w, const ir_ref *around, uint32_t depth)
{
    const ir_func *ir = w->f->ir;
    ir_ref before[MOST_BEFORE];
    uint32_t count = 0;
    for (ir_ref s = ir_at(ir, around[0])->body; s != 0; s = ir_at(ir, s)->next) {
        const ir_node *n = ir_at(ir, s);
        if (n->op != IR_FOR) {
            count = is_fixed_let(w->f, s) ? count : 0;
            continue;
        }
        const ir_ref in[] = { s, around[0], around[1] };
        if (n->hold ? !find_tile(w, s, depth, before, count, around) : !find_in(w, in, depth + 1))
            return false;
        if (count == MOST_BEFORE)
            memmove(before, before + 1, --count * sizeof before[0]);
        before[count++] = s;
    }
    return true;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

typedef struct reads {
    const cg_func *f;
    const cg_tile_plan *tile; /* of the statement, which reads in registers what the tile holds; NULL: none */
    uint32_t walk, walks;     /* a tile's loop, or 1: what is outside of tiles */
    uint32_t *seen;           /* by node: the last walk that came to it */
    bool *read;               /* by tensor: in memory */
} reads;

static bool is_held(const cg_tile_plan *tile, uint32_t tensor)
{
    for (uint32_t i = 0; tile != NULL && i < tile->held_count; i++)
        if (tile->held[i].tensor == tensor)
            return true;
    return false;
}

/* Notes the tensors that an expression reads in memory. */
static void note_reads(reads *r, ir_ref node)
{
    const ir_func *ir = r->f->ir;
    const ir_node *n = ir_at(ir, node);
    if (r->seen[node] == r->walk)
        return;
    r->seen[node] = r->walk;
    if (n->op == IR_LOAD && !is_held(r->tile, n->ref))
        r->read[opjit_ir_root(ir, n->ref)] = true;
    for (uint32_t i = 0; i < n->count; i++)
        note_reads(r, ir_operand(ir, node, i)); /* as deep as the survey allows */
}

static void note_block(reads *r, ir_ref first)
{
    const ir_func *ir = r->f->ir;
    const cg_tile_plan *around = r->tile;
    const uint32_t walk = r->walk;
    for (ir_ref s = first; s != 0; s = ir_at(ir, s)->next) {
        const ir_node *n = ir_at(ir, s);
        if (n->op == IR_FOR && around == NULL && r->f->plans[s]->tile) {
            r->tile = r->f->plans[s]->tile;
            r->walk = ++r->walks;
        }
        for (uint32_t i = 0; i < n->count; i++)
            note_reads(r, ir_operand(ir, s, i));
        if (n->op == IR_FOR)
            note_block(r, n->body);
        r->tile = around;
        r->walk = walk;
    }
}

/* A tile stores its registers if a statement that is not of a tile that holds them, too, or a tile that begins with
 * what is in memory, reads their tensor. */
static bool find_stays(finder *w, ir_ref stage)
{
    bool *read = ARENA_ARRAY(w->f->arena, bool, w->f->ir->tensor_count);
    reads r = { .f = w->f,
                .walk = 1,
                .walks = 1,
                .seen = ARENA_ARRAY(w->f->arena, uint32_t, w->f->ir->node_count),
                .read = read };
    if (!r.seen || !read)
        return false;
    note_block(&r, ir_at(w->f->ir, stage)->body);
    for (const cg_tile_plan *p = w->first; p; p = p->next)
        for (uint32_t i = 0; i < p->held_count && !starts_itself(&p->tile); i++)
            read[p->held[i].tensor] = true;
    for (cg_tile_plan *p = w->first; p; p = p->next) {
        for (uint32_t i = 0; i < p->held_count; i++)
            p->tile.stays |= read[p->held[i].tensor];
        w->b->plan = p;
        if (p->tile.stays || !starts_itself(&p->tile))
            opjit_cg_tile_in_memory(w->b);
    }
    return true;
}

bool opjit_cg_find_tiles(cg_func *f, ir_ref stage)
{
    finder w = { .f = f };
    if (f->cpu->grid)
        return true;
    return find_in(&w, (ir_ref[]){ stage, stage, stage }, 1) && (!w.first || find_stays(&w, stage));
}

/* --- text --------------------------------------------------------------------------------------------------------- */

void opjit_cg_tile_text(const cg_tile_plan *plan, rt_bytes *out)
{
    const cg_tile *t = &plan->tile;
    for (uint32_t i = 0; i < plan->held_count; i++) {
        const cg_tile_held *h = &plan->held[i];
        opjit_rt_bytes_printf(out, ", %" PRIu32 " registers of", h->count);
        if (h->lanes > 1)
            opjit_rt_bytes_printf(out, " %" PRIu32, h->lanes);
        opjit_rt_bytes_printf(out, " %s", opjit_ir_type_name((ir_type)t->reg[h->first].type));
    }
    if (!starts_itself(t))
        opjit_rt_bytes_printf(out, " from memory");
    if (t->stays)
        opjit_rt_bytes_printf(out, " to memory");
    if (plan->before > 0)
        opjit_rt_bytes_printf(out, ", with %" PRIu32 " before", plan->before);
    if (plan->after > 0)
        opjit_rt_bytes_printf(out, ", with %" PRIu32 " after", plan->after);
    opjit_rt_bytes_printf(out, ", %" PRIu32 " arguments", t->args);
    if (plan->fetch.load != 0)
        opjit_rt_bytes_printf(out, ", fetches %s", plan->fetch.row != 0 ? "the next copy" : "the next one's");
}
