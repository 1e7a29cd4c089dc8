/* SPDX-License-Identifier: Apache-2.0 */
/* computed_random.c - draws of RANDOM_GENERATOR, for its row of computed.c. */
#include "tests/support/computed_draw.h"

static void draw_state(computed_draw *d, test_tensor *t, uint32_t rank, bool is_output)
{
    test_tensor_link(t, d->type, rank);
    for (uint32_t i = 0; i < rank; i++)
        t->sizes[i] = i + 1 == rank ? 6 : 1;
    lay_out(d, t, is_output);
}

void computed_draw_random_generator(computed_draw *d)
{
    computed_case *c = d->c;
    const uint32_t rank = d->r == NULL ? d->rank : 1 + below(d, 8);
    const bool after = chance(d, 70);
    test_tensor_link(&c->output, d->type, d->rank);
    for (uint32_t i = 0; i < d->rank && d->r == NULL; i++)
        c->output.sizes[i] = 2 + i % 4;
    if (d->r != NULL)
        test_tensor_random_sizes(d->r, &c->output, 400);
    lay_out(d, &c->output, true);
    draw_state(d, &c->inputs[0], rank, false);
    draw_state(d, &c->more[0], rank, true);
    c->present[0] = true;
    c->more_present[0] = after;
    c->desc.random =
        (DML_RANDOM_GENERATOR_OPERATOR_DESC){ &c->inputs[0].desc, &c->output.desc, after ? &c->more[0].desc : NULL,
                                              DML_RANDOM_GENERATOR_TYPE_PHILOX_4X32_10 };
}

void computed_random_generator(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_random_generator(&c->desc.random, inputs[0], outputs);
}
