/* pass_fold.c - constants, bool algebra, index identities, comparisons that intervals decide: opjit_ir_make on every
 * expression of the function.
 * Needs: any form.  Leaves: the same statements with the simplest operands; so a bound that no coordinate reaches, such
 * as INT32_MIN, is gone.  Rewrites expressions only: no statement comes or goes. */
#include "ir/pass.h"

opjit_status opjit_ir_pass_fold(ir_func *f, const ir_pass_env *env, bool *out_changed, opjit_error *error)
{
    ir_map map;
    (void)env;
    if (opjit_ir_map_init(f, &map) != OPJIT_OK)
        return opjit_rt_no_memory(error);
    *out_changed = opjit_ir_remake_operands(f, &map, f->body);
    return f->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
