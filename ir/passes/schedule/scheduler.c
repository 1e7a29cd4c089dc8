/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.c - what schedule and its steps ask of the function and the stage: whether it exceeds the caches, what it
 * loads, how its tensors lie. */
#include "ir/passes/schedule/scheduler.h"

/* Whether stores should go around the caches: what is stored does not fit the last of them, which other cores use, too.
 * What a kernel only writes may take all of it.  What it reads evicts what it writes: as soon as inputs of a quarter
 * and outputs of a quarter meet there, stores around it are faster (bench_generators). */
bool opjit_ir_exceeds_caches(const ir_func *f, const rt_target *target)
{
    if (rt_target_team(target) > 0)
        return false; /* a GPU's stores have no such choice */
    const uint64_t cache = target->l3 != 0 ? target->l3 : target->l2;
    uint64_t in = 0, sum = 0;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        const bool is_in = tensor->role == IR_IN, is_out = tensor->role == IR_OUT && tensor->alias == 0;
        if ((is_in || is_out) && !checked_add(sum, tensor->bytes, &sum))
            return true;
        in += is_in ? tensor->bytes : 0;
    }
    return cache != 0 && (sum > cache || (in >= cache / 4 && sum >= cache / 2));
}

bool opjit_ir_find_loads(scheduler *s)
{
    ir_func *f = s->f;
    const ir_reach seen = opjit_ir_reach(f, ir_at(f, s->stage)->body);
    s->loaded = (ir_table){ 0 };
    for (uint32_t k = 0; k < seen.count; k++)
        if (ir_at(f, seen.nodes[k])->op == IR_LOAD)
            opjit_ir_table_set(f, &s->loaded, opjit_ir_root(f, ir_at(f, seen.nodes[k])->ref), 1);
    return !f->failed;
}

bool opjit_ir_loads_tensor(const scheduler *s, uint32_t tensor)
{
    const uint32_t root = opjit_ir_root(s->f, tensor);
    bool loaded = opjit_ir_table_get(&s->loaded, root) != 0;
    for (uint32_t i = 0; i < s->loaded.capacity && !loaded; i++)
        loaded = s->loaded.values[i] != 0 && opjit_ir_shares(s->f, root, (uint32_t)s->loaded.keys[i]);
    return loaded;
}

bool opjit_ir_rows_are_aligned(const ir_tensor *t, uint32_t vector_bytes)
{
    bool aligned = t->align >= vector_bytes;
    for (uint32_t d = 0; d < t->rank; d++)
        aligned = aligned && (t->strides[d] == 1 || t->strides[d] * opjit_ir_type_size(t->type) % vector_bytes == 0);
    return aligned;
}
