/* SPDX-License-Identifier: Apache-2.0 */
/* bare.c - see bare.h. */
#include "tests/bench/bare.h"

#include <string.h>

#include "runtime/call/kernel_object.h"

bare bare_of(const opjit_kernel *kernel, const opjit_call *call)
{
    const program *const code = atomic_load(&kernel->active);
    const opjit_step_info *const step = &code->steps[code->variants[code->meta->variants - 1].first_step];
    const uint8_t *const entry = code->code + step->entry;
    bare b = { .extent = step->extent };

    memcpy(&b.fn, &entry, sizeof b.fn); /* object pointer to function pointer, without the cast that C lacks */
    for (uint32_t i = 0; i < call->binding_count && i < 2; i++)
        b.buffers[i] = call->bindings[i].data;
    return b;
}

void bare_run(void *arg)
{
    const bare *const b = arg;

    b->fn(b->buffers, NULL, NULL, NULL, 0, b->extent);
}
