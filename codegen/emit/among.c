/* SPDX-License-Identifier: Apache-2.0 */
/* among.c - loads of a loop that read every second to fourth element, each what lies between another one's lanes: real
 * and imaginary parts, the colours of a pixel, both columns of a window with a step.  They are found once for a loop;
 * one of them that is emitted loads the vectors that all of them need (stride.c), and the others are remembered. */
#include "codegen/emit/access.h"
#include "codegen/plan.h"

enum { MOST_APART = 16, MOST_NODES = 256 /* that are looked at */ };

typedef struct apart_load {
    ir_ref load;
    uint32_t step, family; /* family: the first one at a known distance */
    int64_t at;            /* elements behind that one */
    uint32_t group;        /* the first one of its group */
} apart_load;

typedef struct cg_apart {
    ir_ref loop;
    uint32_t count, nodes;
    apart_load load[MOST_APART];
} cg_apart;

/* Elements from one load of a tensor to another one; false: not always the same. */
static bool find_distance(const cg_func *f, const cg_access *from, const cg_access *to, int64_t *out)
{
    int64_t part;
    *out = 0;
    for (uint32_t d = 0; d < from->rank; d++)
        if (cg_stride(f, from, d) != 0 &&
            (!opjit_ir_distance(f->ir, cg_coordinate(f, to, d), cg_coordinate(f, from, d), &part) ||
             !checked_muli(part, cg_stride(f, from, d), &part) || !checked_addi(*out, part, out)))
            return false;
    return true;
}

/* chosen: under a select, which may be what keeps it in bounds. */
static void add_load(cg_func *f, cg_apart *list, ir_ref node, bool chosen)
{
    const cg_access a = opjit_cg_access_of(f, node);
    const cg_loop *vec = &f->loops[f->piece->vec];
    const cg_info *info = &f->info[node];
    int64_t grow, at;
    for (uint32_t i = 0; i < list->count; i++)
        if (list->load[i].load == node)
            return;
    if (list->count == MOST_APART || info->fresh || (chosen && info->guarded) ||
        !opjit_cg_growth(f, &a, vec->var, &grow) || grow * vec->step < 2 || grow * vec->step > CG_MOST_STEP)
        return;
    apart_load *const own = &list->load[list->count];
    *own = (apart_load){ .load = node, .step = (uint32_t)(grow * vec->step), .family = list->count };
    for (uint32_t i = 0; i < list->count; i++) {
        const cg_access other = opjit_cg_access_of(f, list->load[i].load);
        if (list->load[i].family == i && other.tensor == a.tensor && list->load[i].step == own->step &&
            find_distance(f, &other, &a, &at)) {
            own->family = i;
            own->at = at;
            break;
        }
    }
    list->count++;
}

static void add_loads(cg_func *f, cg_apart *list, ir_ref node, bool chosen)
{
    const ir_node *n = ir_at(f->ir, node);
    if (list->nodes == 0 || !opjit_cg_varies(f, node) || n->type == IR_INDEX)
        return;
    list->nodes--;
    if (n->op == IR_LOAD)
        add_load(f, list, node, chosen);
    for (uint32_t i = 0; i < n->count && n->op != IR_LOAD; i++) /* as deep as emission, see the survey */
        add_loads(f, list, ir_operand(f->ir, node, i), chosen || (n->op == IR_SELECT && i > 0));
}

/* In order; a group is those that lie fewer than `step` elements behind its first one. */
static void make_groups(cg_apart *list)
{
    for (uint32_t i = 1; i < list->count; i++)
        for (uint32_t j = i; j > 0; j--) {
            const apart_load before = list->load[j - 1], own = list->load[j];
            if (before.family < own.family || (before.family == own.family && before.at <= own.at))
                break;
            list->load[j - 1] = own;
            list->load[j] = before;
        }
    for (uint32_t i = 0, group = 0; i < list->count; i++) {
        const apart_load *const first = &list->load[group], *const own = &list->load[i];
        if (own->family != first->family || own->at - first->at >= own->step || i - group == CG_MOST_STEP)
            group = i;
        list->load[i].group = group;
    }
}

static const cg_apart *loads_of_loop(cg_func *f)
{
    const cg_plan *plan = f->loops[f->piece->vec].plan;
    if (!plan || plan->is.nested)
        return NULL;
    if (!f->apart && !(f->apart = ARENA_NEW(f->arena, cg_apart))) {
        f->failed = true;
        return NULL;
    }
    if (f->apart->loop == plan->is.loop)
        return f->apart;
    *f->apart = (cg_apart){ .loop = plan->is.loop, .nodes = MOST_NODES };
    for (ir_ref s = plan->is.body; s != 0; s = ir_at(f->ir, s)->next)
        for (uint32_t i = 0; i < ir_at(f->ir, s)->count; i++)
            add_loads(f, f->apart, ir_operand(f->ir, s, i), false);
    make_groups(f->apart);
    return f->apart;
}

/* The group of the load, if there are others in it. */
static bool find_group(cg_func *f, ir_ref load, cg_among *out)
{
    const cg_apart *list = loads_of_loop(f);
    uint32_t i = 0;
    while (list && i < list->count && list->load[i].load != load)
        i++;
    if (!list || i == list->count)
        return false;
    const uint32_t group = list->load[i].group;
    *out = (cg_among){ .step = list->load[i].step };
    for (i = group; i < list->count && list->load[i].group == group; i++) {
        out->load[out->count] = list->load[i].load;
        out->at[out->count++] = (uint32_t)(list->load[i].at - list->load[group].at);
    }
    return out->count > 1;
}

LLVMValueRef opjit_cg_load_together(cg_func *f, ir_ref node, bool masked)
{
    cg_among g;
    LLVMValueRef out[CG_MOST_STEP], own = NULL;
    if (f->piece->block.on || (masked && f->piece->mask != f->piece->iterations) || !find_group(f, node, &g))
        return NULL;
    const cg_access a = opjit_cg_access_of(f, g.load[0]);
    if (masked && !(f->cpu->masked && f->cpu->masked(f->target, a.bits)))
        return NULL;
    LLVMValueRef first = opjit_cg_lane0(f, &a);
    if (!masked || opjit_cg_is_rest(f))
        opjit_cg_load_among(f, &a, &g, first, masked ? f->piece->first : f->piece->lanes, out);
    else if (!opjit_cg_load_among_rest(f, &a, &g, first, out))
        return NULL;
    for (uint32_t i = 0; i < g.count; i++) {
        own = g.load[i] == node ? out[i] : own;
        opjit_cg_remember(f, CG_VALUE, g.load[i], f->piece->copy_scope, out[i]);
    }
    return own;
}
