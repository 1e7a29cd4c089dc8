/* SPDX-License-Identifier: Apache-2.0 */
/* entry_packed.c - the packed function of a version: runs the stages of the variant that fits the call, by which
 * buffers share memory or by the sizes of dynamic dimensions, which it checks. */
#include "codegen/driver/entry.h"

/* The caller's pointers, then those of the kernel's constants: its own, or out of the caller's weights. */
static LLVMValueRef all_buffers(cg_func *f, const cg_kernel *k, const opjit_kernel_meta *m, LLVMValueRef given)
{
    if (m->constants == 0)
        return given;
    LLVMValueRef all = LLVMBuildAlloca(f->b, LLVMArrayType2(f->type.ptr, bindings(m) + m->constants), "");
    for (uint32_t i = 0; i < bindings(m); i++)
        LLVMBuildStore(f->b, load_pointer(f, given, i), at(f, f->type.ptr, all, i));
    LLVMValueRef weights = has_weights(k->request) ? load_pointer(f, given, bindings(m)) : NULL;
    uint64_t offset = 0;
    for (uint32_t i = 0; i < m->constants; i++) {
        LLVMValueRef constant = weights != NULL ? at(f, f->type.i8, weights, offset) : k->constants[i];
        LLVMBuildStore(f->b, constant, at(f, f->type.ptr, all, bindings(m) + i));
        offset = align_up(offset + k->request->constants[i].bytes, 64);
    }
    return all;
}

/* What a version's packed function uses. */
typedef struct packed {
    cg_func *f;
    const opjit_kernel_meta *meta;
    const LLVMValueRef *stages; /* by step */
    LLVMTypeRef stage_type;
    LLVMValueRef buffers, params, shared, scratch;
} packed;

/* The size of dynamic dimension d. */
static LLVMValueRef dim_at(const packed *p, uint32_t d)
{
    cg_func *f = p->f;
    return LLVMBuildLoad2(f->b, f->type.i64, at(f, f->type.i64, p->params, p->meta->params - p->meta->dims + d), "");
}

/* What forms have powers of: dimension k, or, behind these, a quotient of one. */
static LLVMValueRef size_at(const packed *p, uint32_t k)
{
    const opjit_kernel_meta *m = p->meta;
    cg_func *f = p->f;
    if (k < m->dims)
        return dim_at(p, k);
    const opjit_quotient *q = (const opjit_quotient *)(const void *)((const char *)m + m->quotients) + (k - m->dims);
    LLVMValueRef sum = LLVMBuildAdd(f->b, dim_at(p, q->dim), opjit_cg_number(f, 64, 1, (uint64_t)q->plus), "");
    return LLVMBuildUDiv(f->b, sum, opjit_cg_number(f, 64, 1, (uint64_t)q->by), "");
}

/* The number for the sizes of the call, which are in bounds: no sum of it is below 0 then. */
static LLVMValueRef form_value(const packed *p, const opjit_size_form *form)
{
    cg_func *f = p->f;
    LLVMValueRef sum = opjit_cg_number(f, 64, 1, (uint64_t)form->constant);
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef term = opjit_cg_number(f, 64, 1, (uint64_t)form->factors[i]);
        for (uint32_t d = 0; d < OPJIT_MAX_POWERS && form->factors[i] != 0; d++)
            for (uint32_t k = 0; k < form->powers[i][d]; k++)
                term = LLVMBuildMul(f->b, term, size_at(p, d), "");
        sum = LLVMBuildAdd(f->b, sum, term, "");
    }
    sum = LLVMBuildUDiv(f->b, sum, opjit_cg_number(f, 64, 1, (uint64_t)form->divisor), "");
    sum = LLVMBuildMul(f->b, sum, opjit_cg_number(f, 64, 1, (uint64_t)form->times), "");
    for (uint32_t d = 0; d < OPJIT_MAX_POWERS && form->factors[1] == 0; d++)
        for (uint32_t k = 0; k < form->powers[1][d]; k++)
            sum = LLVMBuildMul(f->b, sum, size_at(p, d), "");
    return sum;
}

/* The iterations of a step in this call. */
static LLVMValueRef extent_of(const packed *p, uint32_t step)
{
    const opjit_kernel_meta *m = p->meta;
    const opjit_size_form *forms = (const opjit_size_form *)(const void *)((const char *)m + m->forms);
    return has_dims(m) ? form_value(p, &forms[bindings(m) * OPJIT_BUFFER_FORMS + step])
                       : opjit_cg_number(p->f, 64, 1, step_at(m, step)->extent);
}

static void return_status(const packed *p, uint64_t status)
{
    if (has_dims(p->meta))
        LLVMBuildRet(p->f->b, opjit_cg_number(p->f, 32, 1, status));
    else
        LLVMBuildRetVoid(p->f->b);
}

/* Runs the variant and returns. */
static void run_variant(const packed *p, const opjit_variant_info *variant)
{
    cg_func *f = p->f;
    for (uint32_t i = 0; i < variant->steps; i++) {
        const uint32_t step = variant->first_step + i;
        LLVMValueRef args[6] = {
            p->buffers, p->params, p->shared, p->scratch, opjit_cg_number(f, 64, 1, 0), extent_of(p, step)
        };
        LLVMBuildCall2(f->b, p->stage_type, p->stages[step], args, 6, "");
    }
    return_status(p, 0);
}

/* Whether lo <= size <= hi. */
static LLVMValueRef is_between(const packed *p, uint32_t d, uint64_t lo, uint64_t hi)
{
    cg_func *f = p->f;
    LLVMValueRef from = LLVMBuildSub(f->b, dim_at(p, d), opjit_cg_number(f, 64, 1, lo), "");
    return LLVMBuildICmp(f->b, LLVMIntULE, from, opjit_cg_number(f, 64, 1, hi - lo), "");
}

/* Goes on where the condition holds; else what is written next is done. */
static LLVMBasicBlockRef go_on_if(const packed *p, LLVMValueRef condition)
{
    cg_func *f = p->f;
    LLVMBasicBlockRef on = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef other = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBuildCondBr(f->b, condition, on, other);
    LLVMPositionBuilderAtEnd(f->b, other);
    return on;
}

static void check_dims(const packed *p)
{
    const opjit_kernel_meta *m = p->meta;
    for (uint32_t d = 0; d < m->dims; d++) {
        const opjit_param_info *info = param_at(m, m->params - m->dims + d);
        LLVMBasicBlockRef on = go_on_if(p, is_between(p, d, (uint64_t)info->lo, (uint64_t)info->hi));
        return_status(p, 1 + d);
        LLVMPositionBuilderAtEnd(p->f->b, on);
    }
}

/* Runs the variant that the sizes are in the range of: those that none of the others has are the last one's. */
static void run_ranges(const packed *p)
{
    cg_func *f = p->f;
    const opjit_kernel_meta *m = p->meta;
    const opjit_range_info *ranges = (const opjit_range_info *)(const void *)((const char *)m + m->ranges);
    for (uint32_t v = 0; v + 1 < m->variants; v++) {
        LLVMValueRef inside = opjit_cg_number(f, 1, 1, 1);
        for (uint32_t d = 0; d < m->dims; d++)
            inside = LLVMBuildAnd(f->b, inside, is_between(p, d, ranges[v].lo[d], ranges[v].hi[d]), "");
        LLVMBasicBlockRef next = go_on_if(p, LLVMBuildNot(f->b, inside, ""));
        run_variant(p, variant_at(m, v));
        LLVMPositionBuilderAtEnd(f->b, next);
    }
    run_variant(p, variant_at(m, m->variants - 1));
}

/* Whether the two buffers of every pair in the mask are the same pointer. */
static LLVMValueRef mask_holds(const packed *p, uint64_t mask)
{
    cg_func *f = p->f;
    LLVMValueRef all = NULL;
    for (uint32_t bit = 0; bit < 64; bit++) {
        if ((mask >> bit & 1) == 0)
            continue;
        LLVMValueRef output = load_pointer(f, p->buffers, p->meta->inputs + bit / 8);
        LLVMValueRef same = LLVMBuildICmp(f->b, LLVMIntEQ, output, load_pointer(f, p->buffers, bit % 8), "");
        all = all ? LLVMBuildAnd(f->b, all, same, "") : same;
    }
    return all;
}

LLVMValueRef opjit_cg_emit_packed(cg_func *f, const cg_kernel *k, const codegen_version *version,
                                  const LLVMValueRef *stages)
{
    const opjit_kernel_meta *m = version->meta;
    LLVMValueRef fn = begin(f, version->name, ".packed", k->packed_type);
    leave_plain(f, fn, m->constants == 0 ? 0 : bindings(m) + m->constants);
    LLVMValueRef workspace = LLVMGetParam(fn, 2);
    packed p = { .f = f,
                 .meta = m,
                 .stages = stages,
                 .stage_type = opjit_cg_stage_type(f),
                 .buffers = all_buffers(f, k, m, LLVMGetParam(fn, 0)),
                 .params = LLVMGetParam(fn, 1),
                 .shared = workspace };
    p.scratch = at(f, f->type.i8, workspace, m->shared_size);
    check_dims(&p);
    if (m->ranges != 0) {
        run_ranges(&p);
        return fn;
    }
    for (uint32_t v = 0; v < m->variants; v++) {
        const opjit_variant_info *variant = variant_at(m, v);
        LLVMBasicBlockRef taken, next;
        if (variant->alias_mask == 0) { /* the last one: its mask always holds */
            run_variant(&p, variant);
            break;
        }
        taken = LLVMAppendBasicBlockInContext(f->llvm, fn, "");
        next = LLVMAppendBasicBlockInContext(f->llvm, fn, "");
        LLVMBuildCondBr(f->b, mask_holds(&p, variant->alias_mask), taken, next);
        LLVMPositionBuilderAtEnd(f->b, taken);
        run_variant(&p, variant);
        LLVMPositionBuilderAtEnd(f->b, next);
    }
    return fn;
}
