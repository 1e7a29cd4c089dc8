/* SPDX-License-Identifier: Apache-2.0 */
/* equal_stages.c - makes equal stages of several variants one function: variants differ only in the stages whose
 * buffers share memory, which are few of many. */
#include "codegen/driver/driver.h"

#include <string.h>

static void put_tensor(const cg_func *f, uint32_t tensor, rt_bytes *out)
{
    const ir_tensor *t = &f->ir->tensors[tensor];
    const uint64_t fields[] = { t->role, t->type, t->rank, t->bytes, t->align,
                                t->slot, t->alias, t->of, (uint64_t)t->offset, opjit_cg_may_be_output(f, tensor) };
    opjit_rt_bytes_append(out, fields, sizeof(fields));
    opjit_rt_bytes_append(out, t->sizes, t->rank * sizeof(t->sizes[0]));
    opjit_rt_bytes_append(out, t->strides, t->rank * sizeof(t->strides[0]));
}

/* Writes everything that the stage's code depends on, apart from what the variants have in common. */
static void put_stage(const cg_func *f, rt_bytes *out)
{
    const ir_func *ir = f->ir;
    for (uint32_t i = 1; i < ir->node_count; i++) {
        opjit_rt_bytes_append(out, &ir->nodes[i], offsetof(ir_node, body) + sizeof(ir->nodes[i].body));
        opjit_rt_bytes_append(out, &ir->nodes[i].imm, sizeof(ir->nodes[i].imm));
    }
    opjit_rt_bytes_append(out, ir->operands, ir->operand_count * sizeof(ir->operands[0]));
    for (uint32_t t = 1; t < ir->tensor_count; t++)
        put_tensor(f, t, out);
    opjit_rt_bytes_u32(out, ir->body);
}

bool opjit_cg_shared_init(cg_shared *s, rt_arena *arena, uint32_t stages, bool variants)
{
    uint32_t room = 2;
    while (variants && room < 2 * (uint64_t)stages)
        room *= 2;
    *s = (cg_shared){ .arena = arena,
                      .same = ARENA_ARRAY(arena, uint32_t, stages),
                      .made = ARENA_ARRAY(arena, cg_made, room),
                      .mask = variants ? room - 1 : 0 };
    return s->same && s->made;
}

static cg_made *place_of(const cg_shared *s, const rt_bytes *text, rt_hash hash)
{
    for (uint32_t i = (uint32_t)hash.lo & s->mask;; i = (i + 1) & s->mask) {
        const cg_made *m = &s->made[i];
        if (!m->text || (m->size == text->size && memcmp(m->text, text->data, text->size) == 0))
            return &s->made[i];
    }
}

opjit_status opjit_cg_share(cg_shared *s, const cg_func *f, bool *out_made)
{
    const uint32_t stage = s->count++;
    rt_bytes text;
    s->same[stage] = stage;
    *out_made = false;
    if (s->mask == 0)
        return OPJIT_OK;
    opjit_rt_bytes_init(&text, s->arena->allocator);
    put_stage(f, &text);
    opjit_status status = text.failed ? opjit_rt_no_memory(f->error) : OPJIT_OK;
    cg_made *m = status == OPJIT_OK ? place_of(s, &text, opjit_rt_hash(text.data, text.size)) : NULL;
    if (m && m->text) {
        s->same[stage] = m->stage;
        *out_made = true;
    } else if (m) {
        *m = (cg_made){ opjit_rt_arena_copy(s->arena, text.data, text.size, 1), text.size, stage };
        status = m->text ? OPJIT_OK : opjit_rt_no_memory(f->error);
    }
    opjit_rt_bytes_free(&text);
    return status;
}
