/* pass_place.c - from value form to loop form: every output becomes a stage of its own.
 * Needs: value form.  Leaves: stages, each a full nest of loops in the order of the coordinates around one store; the
 * stage's own loop is the first coordinate.  A definition with one reader is computed where it is read; whatever would
 * need memory between stages is refused. */
#include "ir/pass.h"

typedef struct placer {
    ir_func *f;
    opjit_error *error;
    ir_ref *def_of;    /* by tensor: its DEF, 0 for memory */
    uint32_t *readers; /* by tensor: loads of it */
} placer;

/* Counts the loads of every tensor in the values of the kernel's statements. */
static opjit_status count_readers(placer *p)
{
    ir_func *f = p->f;
    const uint8_t *seen = opjit_ir_reach(f, f->body);
    const uint32_t count = f->node_count;
    if (seen == NULL)
        return opjit_rt_no_memory(p->error);
    for (ir_ref r = 1; r < count; r++)
        if (seen[r] && ir_at(f, r)->op == IR_LOAD)
            p->readers[ir_at(f, r)->ref]++;
    for (uint32_t t = 1; t < f->tensor_count; t++)
        if (p->readers[t] > 0 && f->tensors[t].role == IR_VIEW)
            return opjit_rt_error_set(p->error, OPJIT_UNSUPPORTED, "tensor %u is a view; views are not placed", t);
    return OPJIT_OK;
}

/* The value of the definition that `load` reads, at the coordinates of the load under the map. */
static ir_ref inlined(placer *p, ir_map *map, ir_ref load)
{
    ir_func *f = p->f;
    const uint32_t tensor = ir_at(f, load)->ref;
    const ir_ref def = p->def_of[tensor];
    ir_map at;
    if (opjit_ir_map_init(f, &at) != OPJIT_OK) {
        f->failed = true;
        return 0;
    }
    for (uint32_t d = 0; d < f->tensors[tensor].rank; d++) {
        const ir_ref coordinate = opjit_ir_remake(f, map, ir_operand(f, load, d));
        opjit_ir_map_set(f, &at, opjit_ir_coordinate(f, def, d), coordinate);
    }
    return opjit_ir_remake(f, &at, ir_operand(f, def, 0));
}

/* The value of a DEF or YIELD under the map, with the definitions that it reads written in its place. */
static opjit_status place_value(placer *p, ir_map *map, ir_ref statement, ir_ref *out)
{
    ir_func *f = p->f;
    const ir_ref value = ir_operand(f, statement, 0);
    const uint8_t *seen = opjit_ir_reach_one(f, value);
    const uint32_t count = f->node_count;
    if (seen == NULL)
        return opjit_rt_no_memory(p->error);
    for (ir_ref r = 1; r < count && !f->failed; r++) { /* operands first, so loads inside coordinates are done */
        if (!seen[r] || ir_at(f, r)->op != IR_LOAD || p->def_of[ir_at(f, r)->ref] == 0)
            continue;
        if (p->readers[ir_at(f, r)->ref] > 1)
            return opjit_rt_error_set(p->error, OPJIT_UNSUPPORTED,
                                      "tensor %u has %u readers; a value between operators may have one",
                                      ir_at(f, r)->ref, p->readers[ir_at(f, r)->ref]);
        opjit_ir_map_set(f, map, r, inlined(p, map, r));
    }
    *out = opjit_ir_remake(f, map, value);
    return f->failed ? opjit_rt_no_memory(p->error) : OPJIT_OK;
}

static opjit_status place_yield(placer *p, ir_ref yield, ir_ref *out_stage)
{
    ir_func *f = p->f;
    const uint32_t tensor = ir_at(f, yield)->ref, rank = f->tensors[tensor].rank;
    ir_map map;
    ir_ref vars[8], parent = 0, value;
    if (ir_at(f, yield)->imm != 0)
        return opjit_rt_error_set(p->error, OPJIT_UNSUPPORTED, "output %u is written in parts; that is not placed", tensor);
    if (opjit_ir_map_init(f, &map) != OPJIT_OK)
        return opjit_rt_no_memory(p->error);
    for (uint32_t d = 0; d < rank; d++) {
        const ir_ref lo = opjit_ir_index(f, 0), hi = opjit_ir_index(f, (int64_t)f->tensors[tensor].sizes[d]);
        const ir_ref loop = d == 0 ? opjit_ir_stage(f, lo, hi, 1) : opjit_ir_for(f, lo, hi, 1);
        block inside = { .parent = parent };
        if (d == 0)
            *out_stage = loop;
        else
            opjit_ir_block_add(f, &inside, loop);
        parent = loop;
        vars[d] = ir_at(f, loop)->ref;
        opjit_ir_map_set(f, &map, opjit_ir_coordinate(f, yield, d), vars[d]);
    }
    TRY(place_value(p, &map, yield, &value));
    block innermost = { .parent = parent };
    opjit_ir_block_add(f, &innermost, opjit_ir_store(f, tensor, value, vars));
    return f->failed ? opjit_rt_no_memory(p->error) : OPJIT_OK;
}

/* Writes what a definition reads into it, so that its readers find a value that loads memory only. */
static opjit_status place_def(placer *p, ir_ref def)
{
    ir_func *f = p->f;
    ir_map map;
    ir_ref value;
    if (opjit_ir_map_init(f, &map) != OPJIT_OK)
        return opjit_rt_no_memory(p->error);
    TRY(place_value(p, &map, def, &value));
    opjit_ir_set_value(f, def, value);
    p->def_of[ir_at(f, def)->ref] = def;
    return OPJIT_OK;
}

opjit_status opjit_ir_pass_place(ir_func *f, const ir_pass_env *env, bool *out_changed, opjit_error *error)
{
    placer p = { .f = f, .error = error, .def_of = ARENA_ARRAY(&f->arena, ir_ref, f->tensor_count),
                 .readers = ARENA_ARRAY(&f->arena, uint32_t, f->tensor_count) };
    (void)env;
    *out_changed = false;
    if (p.def_of == NULL || p.readers == NULL)
        return opjit_rt_no_memory(error);
    TRY(count_readers(&p));
    block stages = { 0 };
    for (ir_ref s = f->body, next; s != 0; s = next) {
        ir_ref stage = s;
        next = ir_at(f, s)->next;
        if (ir_at(f, s)->op == IR_DEF) {
            *out_changed = true;
            TRY(place_def(&p, s));
            continue;
        }
        if (ir_at(f, s)->op == IR_YIELD) {
            *out_changed = true;
            TRY(place_yield(&p, s, &stage));
        }
        opjit_ir_block_add(f, &stages, stage);
    }
    f->body = stages.first;
    return f->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
