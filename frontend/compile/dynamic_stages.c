/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_stages.c - the passes of a graph for many sizes: a reading of it becomes loops, their generalization goes
 * through the last passes, how often each of its stages runs, and which forms an image can have. */
#include "frontend/frontend.h"

#include "frontend/compile/dynamic_made.h"
#include "ir/general/general.h"
#include "runtime/image/image.h"

opjit_status opjit_fe_make_loops(const ir_pass_env *env, const ir_func *value, bool unshared, ir_func *out,
                                 opjit_error *error)
{
    TRY(opjit_ir_copy(value, out, error));
    opjit_status status = opjit_ir_run_passes(out, env, IR_CLEANED, error);
    if (status == OPJIT_OK)
        status = opjit_ir_pack(out, error);
    if (status == OPJIT_OK && unshared)
        status = opjit_ir_unshare(out, error);
    if (status != OPJIT_OK)
        opjit_ir_free(out);
    else
        opjit_ir_trim(out);
    return status;
}

/* The later passes.  The last one puts stages that run once before the others, drops equal ones, and may make some, and
 * large functions are packed between passes: so forms of stages are read off what they became. */
opjit_status opjit_fe_expand_general(const ir_pass_env *own, struct ir_general *general, opjit_error *error)
{
    ir_func *f = &general->f;
    uint32_t total = 0;

    ir_pass_env env = *own;
    opjit_ir_drop_idle_stages(f);
    env.verify = false; /* of flat tensors there is no proof; instances have one */
    TRY(opjit_ir_run_passes(f, &env, opjit_ir_last_pass(env.target), error));
    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next)
        total++;
    general->extents = ARENA_ARRAY(&general->arena, opjit_size_form, total);
    if (general->extents == NULL)
        return opjit_rt_no_memory(error);
    general->extent_count = 0; /* other than before where stages were equal */
    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next)
        if (!opjit_ir_form_derive(f, ir_operand(f, r, 1), &general->extents[general->extent_count++]))
            return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                   "{graph}: {!dims}the iterations of a step follow from no dimension in a known way; "
                                   "compile each size by itself");
    return OPJIT_OK;
}

bool opjit_fe_form_is_bounded(const fe_dynamic *dynamic, const ir_space *space, const ir_range *range,
                              const opjit_size_form *form)
{
    const rt_space own = { space->dims, space->count, space->quotients };
    opjit_param_info dims[OPJIT_MAX_POWERS] = { 0 };
    uint64_t most;

    for (uint32_t d = 0; d < dynamic->dim_count; d++) {
        dims[d].lo = range != NULL ? range->lo[d] : (int64_t)dynamic->dims[d].lo;
        dims[d].hi = range != NULL ? range->hi[d] : (int64_t)dynamic->dims[d].hi;
    }
    return opjit_rt_quotient_ranges(&own, dims) && opjit_rt_form_range(form, &own, dims, &most);
}

opjit_status opjit_fe_check_stages(const fe_dynamic *dynamic, const ir_space *space, const ir_range *range,
                                   opjit_error *error)
{
    for (uint32_t i = 0; i < range->general.extent_count; i++)
        if (!opjit_fe_form_is_bounded(dynamic, space, range, &range->general.extents[i]))
            return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                   "{graph}: {!dims}the iterations of a step rise and fall with a dimension; compile "
                                   "each size by itself");
    return OPJIT_OK;
}
