/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ir_text.c - any bytes as IR text: what parses prints, and what is printed parses to the same text; the verifier
 * is total; a function that verifies and is small runs without leaving its memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ir/analysis/analysis.h"
#include "tests/support/fuzz.h"

enum { BUFFERS = 16, MEMORY = 1 << 16, STEPS = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
    test_require(condition, "ir_text");
}

static void check_text(const ir_func *f, const opjit_allocator *allocator)
{
    rt_bytes first, second;
    ir_func again;
    opjit_rt_bytes_init(&first, allocator);
    opjit_rt_bytes_init(&second, allocator);
    opjit_ir_print(f, &first);
    check(opjit_ir_parse((const char *)first.data, first.size, allocator, &again, NULL) == OPJIT_OK);
    opjit_ir_print(&again, &second);
    check(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    opjit_ir_free(&again);
    opjit_rt_bytes_free(&first);
    opjit_rt_bytes_free(&second);
}

/* An upper bound of the statements that a block runs, STEPS where there are more. */
static uint64_t steps_of(const ir_func *f, ir_ref first)
{
    uint64_t steps = 0;
    for (ir_ref s = first; s != 0 && steps < STEPS; s = ir_at(f, s)->next) {
        uint64_t trips = 1;
        if (ir_at(f, s)->op == IR_FOR || ir_at(f, s)->op == IR_STAGE) {
            const ir_interval lo = opjit_ir_interval(f, ir_operand(f, s, 0)),
                              hi = opjit_ir_interval(f, ir_operand(f, s, 1));
            const uint64_t most = hi.hi > lo.lo ? (uint64_t)hi.hi - (uint64_t)lo.lo : 0;
            trips = most < STEPS ? most : STEPS;
        }
        steps += trips * (1 + steps_of(f, ir_at(f, s)->body));
    }
    return steps < STEPS ? steps : STEPS;
}

static bool is_small(ir_func *f)
{
    if (f->phase < IR_PLACED || f->param_count > BUFFERS || f->node_count > 2000 ||
        opjit_ir_layout(f, NULL) != OPJIT_OK)
        return false;
    for (uint32_t t = 1; t < f->tensor_count; t++)
        if (f->tensors[t].slot >= BUFFERS || f->tensors[t].bytes > MEMORY)
            return false;
    return f->shared_size <= MEMORY && f->scratch_size <= MEMORY && steps_of(f, f->body) < STEPS;
}

/* Every buffer is a block of its own of exactly the needed size, so that a sanitizer sees each byte outside. */
static void run(const ir_func *f)
{
    uint64_t params[BUFFERS] = { 0 };
    void *buffers[BUFFERS] = { NULL };
    ir_run r = { .buffers = buffers,
                 .params = params,
                 .shared = calloc(1, (size_t)f->shared_size + 1),
                 .scratch = calloc(1, (size_t)f->scratch_size + 1) };
    for (uint32_t p = 1; p < f->param_count; p++)
        params[p - 1] = (uint64_t)f->params[p].lo;
    bool distinct = true;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_role role = f->tensors[t].role;
        if (role != IR_IN && role != IR_OUT && role != IR_CONSTANT)
            continue;
        void **slot = &buffers[f->tensors[t].slot];
        distinct = distinct && *slot == NULL;
        free(*slot);
        *slot = calloc(1, (size_t)f->tensors[t].bytes + 1);
    }
    for (ir_ref s = f->body; distinct && s != 0; s = ir_at(f, s)->next, r.stage++) {
        r.end = (uint64_t)ir_index_value(f, ir_operand(f, s, 1));
        check(opjit_ir_interpret(f, &r, NULL) == OPJIT_OK);
    }
    for (uint32_t i = 0; i < BUFFERS; i++)
        free(buffers[i]);
    free(r.shared);
    free(r.scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_meter meter;
    ir_func f;

    fuzz_meter_begin(&meter);
    if (opjit_ir_parse((const char *)data, size, &meter.memory.allocator, &f, NULL) == OPJIT_OK) {
        check_text(&f, &meter.memory.allocator);
        if (opjit_ir_verify(&f, NULL) == OPJIT_OK && is_small(&f))
            run(&f);
        opjit_ir_free(&f);
    }
    fuzz_meter_end(&meter, size, 1 << 20, 1024);
    return 0;
}
