/* SPDX-License-Identifier: Apache-2.0 */
/* yields.c - V6 in value form: one yield of everything, or boxes that are disjoint and together as large as the
 * output. */
#include "ir/verify/verifier.h"

/* Whether boxes of two yields share no coordinate, by one dimension: apart, or of different remainders of one step. */
static bool boxes_disjoint(const ir_func *f, ir_ref a, ir_ref b, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++) {
        int64_t x[3], y[3];
        bool constant = true;
        for (uint32_t i = 0; i < 3; i++) {
            const ir_ref left = ir_operand(f, a, 1 + rank + 3 * d + i), right = ir_operand(f, b, 1 + rank + 3 * d + i);
            constant = constant && ir_is_index_const(f, left) && ir_is_index_const(f, right);
            x[i] = ir_index_value(f, left);
            y[i] = ir_index_value(f, right);
        }
        if (!constant)
            continue;
        if (x[0] + (x[1] - 1) * x[2] < y[0] || y[0] + (y[1] - 1) * y[2] < x[0] ||
            (x[2] == y[2] && (x[0] - y[0]) % x[2] != 0))
            return true;
    }
    return false;
}

void opjit_ir_list_yields(verifier *v)
{
    for (ir_ref s = v->f->body; s; s = ir_at(v->f, s)->next) {
        const uint32_t tensor = ir_at(v->f, s)->ref;
        if (ir_at(v->f, s)->op != IR_YIELD)
            continue;
        if (v->last_store[tensor])
            v->next_store[v->last_store[tensor]] = s;
        else
            v->first_store[tensor] = s;
        v->last_store[tensor] = s;
    }
}

opjit_status opjit_ir_verify_yields(verifier *v, uint32_t tensor)
{
    const ir_func *f = v->f;
    const ir_tensor *t = &f->tensors[tensor];
    const uint64_t wanted = opjit_ir_count_elements(t);
    uint64_t stored = 0;
    for (ir_ref s = v->first_store[tensor]; s; s = v->next_store[s]) {
        uint64_t volume = 1;
        for (uint32_t d = 0; ir_at(f, s)->imm && d < t->rank; d++)
            volume *= (uint64_t)ir_index_value(f, ir_operand(f, s, 1 + t->rank + 3 * d + 1));
        stored += ir_at(f, s)->imm ? volume : wanted;
        for (ir_ref o = v->first_store[tensor]; o != s; o = v->next_store[o])
            if (!ir_at(f, o)->imm || !ir_at(f, s)->imm || !boxes_disjoint(f, o, s, t->rank))
                return opjit_ir_verify_fail(v, 6, s, "it is not disjoint from an earlier yield");
    }
    if (stored != wanted)
        return opjit_ir_verify_fail(v, 6, 0, "the yields of the output in slot %u store %llu of %llu elements", t->slot,
                                    (unsigned long long)stored, (unsigned long long)wanted);
    return OPJIT_OK;
}
