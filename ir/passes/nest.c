/* SPDX-License-Identifier: Apache-2.0 */
/* nest.c - what collapse and its shapes ask of a nest: sizes, how coordinates step, what is worth a call. */
#include "ir/passes/nest.h"

bool opjit_ir_nest_joins(const nest *n, uint32_t tensor, uint32_t a, uint32_t b)
{
    uint64_t whole;
    return checked_mul(nest_stride(n, tensor, b), (uint64_t)n->extents[b], &whole) &&
           nest_stride(n, tensor, a) == whole;
}

bool opjit_ir_nest_factors(const nest *n, ir_affine *form, int64_t factors[NEST_RANK])
{
    for (uint32_t d = 0; d < n->rank; d++)
        factors[d] = opjit_ir_affine_take(n->f, form, n->vars[d]);
    for (uint32_t i = 0; i < form->count; i++)
        for (uint32_t d = 0; d < n->rank; d++)
            if (opjit_ir_uses(n->f, form->atoms[i], n->vars[d]))
                return false;
    return true;
}

bool opjit_ir_nest_root(const nest *n, ir_ref root, ir_affine *rest, int64_t factors[NEST_RANK])
{
    *rest = (ir_affine){ 0 };
    return opjit_ir_affine_add(n->f, rest, root, 1) && opjit_ir_nest_factors(n, rest, factors);
}

bool opjit_ir_nest_factors_join(const nest *n, const int64_t factors[NEST_RANK], uint32_t a, uint32_t b)
{
    int64_t whole;
    return checked_muli(factors[b], n->extents[b], &whole) && factors[a] == whole;
}

int64_t opjit_ir_nest_extent(const nest *n, uint32_t first, uint32_t end)
{
    int64_t product = 1; /* of sizes of one tensor: at most its elements */
    for (uint32_t i = first; i < end; i++)
        product *= n->extents[n->order[i]];
    return product;
}

static uint64_t rows_until(uint64_t row, uint64_t unit)
{
    uint64_t a = row, b = unit;
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return unit / a;
}

uint64_t opjit_ir_nest_grain(uint64_t row, int64_t iterations)
{
    const uint64_t all = (uint64_t)iterations, least = (NEST_PIECE_BYTES + row - 1) / row;
    const uint64_t page = rows_until(row, 4096), unit = page <= least ? page : rows_until(row, NEST_LINE);
    const uint64_t grain = (least + unit - 1) / unit * unit;
    return grain > all ? all : grain;
}
