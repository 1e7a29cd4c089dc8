/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_made.c - what was made of a graph for some values of its dimensions, as long as it may be asked for again.
 * It is a function of its key alone, so a copy is what would be made. */
#include "frontend/compile/dynamic_made.h"

#include <string.h>

#define MOST_BYTES (UINT64_C(32) << 20)

static uint64_t bytes_of(const ir_func *f)
{
    uint64_t bytes = f->node_capacity * sizeof *f->nodes + f->operand_capacity * sizeof *f->operands;

    for (uint32_t t = 1; t < f->tensor_count; t++)
        bytes += sizeof *f->tensors + (f->tensors[t].data != NULL ? f->tensors[t].bytes : 0);
    return bytes;
}

static bool is_for(const fe_made_for *a, const fe_made_for *b, bool with_loops)
{
    return memcmp(a->values, b->values, sizeof a->values) == 0 &&
           (!with_loops || (!(a->growth < b->growth) && !(a->growth > b->growth) && a->version == b->version));
}

opjit_status opjit_fe_made_find(const fe_made *made, const fe_made_for *key, ir_func *out_value, ir_func *out,
                                bool *out_found, opjit_error *error)
{
    uint32_t i = 0;

    while (i < FE_MADE && (made->list[i].value.nodes == NULL || !is_for(&made->list[i].key, key, out != NULL) ||
                           (out != NULL && made->list[i].loops.nodes == NULL)))
        i++;
    *out_found = i < FE_MADE;
    if (!*out_found)
        return OPJIT_OK;
    TRY(opjit_ir_copy(&made->list[i].value, out_value, error));
    const opjit_status status = out != NULL ? opjit_ir_copy(&made->list[i].loops, out, error) : OPJIT_OK;
    if (status != OPJIT_OK)
        opjit_ir_free(out_value);
    return status;
}

static void drop(fe_made *made, uint32_t i)
{
    opjit_ir_free(&made->list[i].value);
    opjit_ir_free(&made->list[i].loops);
    made->bytes -= made->list[i].bytes;
    made->list[i].bytes = 0;
}

opjit_status opjit_fe_made_keep(fe_made *made, const fe_made_for *key, ir_func *value, ir_func *loops,
                                opjit_error *error)
{
    const uint64_t bytes = bytes_of(value) + (loops != NULL ? bytes_of(loops) : 0);

    if (bytes > MOST_BYTES)
        return OPJIT_OK;
    const uint32_t i = made->count++ % FE_MADE;
    drop(made, i);
    for (uint32_t k = 1; k < FE_MADE && made->bytes + bytes > MOST_BYTES; k++)
        drop(made, (i + k) % FE_MADE); /* oldest first */
    made->list[i].key = *key;
    made->list[i].bytes = bytes;
    made->bytes += bytes;
    opjit_status status = opjit_ir_copy(value, &made->list[i].value, error);
    if (status == OPJIT_OK && loops != NULL)
        status = opjit_ir_copy(loops, &made->list[i].loops, error);
    if (status == OPJIT_OK)
        return OPJIT_OK;
    drop(made, i);
    opjit_ir_free(value);
    if (loops != NULL)
        opjit_ir_free(loops);
    return status;
}

void opjit_fe_made_free(fe_made *made)
{
    for (uint32_t i = 0; i < FE_MADE; i++)
        drop(made, i);
}
