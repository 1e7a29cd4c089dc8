/* SPDX-License-Identifier: Apache-2.0 */
/* ref_random_generator.c - Philox 4x32-10 as its authors wrote it: a block of four words at a time. */
#include <string.h>

#include "tests/reference/reference.h"

static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    memcpy(out, counter, 4 * sizeof *out);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        const uint64_t p = (uint64_t)out[0] * 0xD2511F53u, q = (uint64_t)out[2] * 0xCD9E8D57u;
        const uint32_t next[4] = { (uint32_t)(q >> 32) ^ out[1] ^ k0, (uint32_t)q, (uint32_t)(p >> 32) ^ out[3] ^ k1,
                                   (uint32_t)p };
        memcpy(out, next, sizeof next);
    }
}

void ref_random_generator(const DML_RANDOM_GENERATOR_OPERATOR_DESC *desc, const void *input, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputStateTensor), out = ref_tensor_of(desc->OutputTensor);
    uint32_t state[6], block[4] = { 0 }, at[8] = { 0 };
    for (uint32_t i = 0; i < 6; i++) {
        at[in.rank - 1] = i;
        state[i] = (uint32_t)ref_get(&in, input, at);
    }
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        if (e % 4 == 0) {
            philox(state, &state[4], block);
            for (int i = 0; i < 4 && ++state[i] == 0; i++)
                continue;
        }
        ref_tensor_coordinates(&out, e, at);
        ref_set(&out, outputs[0], at, block[e % 4]);
    }
    if (desc->OutputStateTensor == NULL)
        return;
    const ref_tensor after = ref_tensor_of(desc->OutputStateTensor);
    memset(at, 0, sizeof at);
    for (uint32_t i = 0; i < 6; i++) {
        at[after.rank - 1] = i;
        ref_set(&after, outputs[1], at, state[i]);
    }
}
