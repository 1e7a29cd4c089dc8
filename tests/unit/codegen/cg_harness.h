/* SPDX-License-Identifier: Apache-2.0 */
/* cg_harness.h - shared by the tests of codegen: compiles a function for a target, runs it, compares with the
 * interpreter.  Every buffer ends, or begins, directly at an inaccessible page, so that wrong loads are noticed,
 * too. */
#ifndef OPJIT_TESTS_UNIT_CG_HARNESS_H
#define OPJIT_TESTS_UNIT_CG_HARNESS_H

#include "codegen/codegen.h"

#include <opjit/abi.h>
#include <opjit/opjit.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/machines/emulated.h"
#include "tests/support/random.h"

enum { HARNESS_TENSORS = 8, HARNESS_PAGE = 4096 };

typedef struct harness_kernel {
    void *code; /* NULL: another machine's */
    size_t size;
    codegen_result result;
    rt_target target;
} harness_kernel;

static inline codegen_result harness_emit(const ir_func *f, const char *target, uint32_t level, codegen_emit what)
{
    rt_target t;
    opjit_error error = { .status = OPJIT_OK };
    codegen_result out;
    ck_assert_msg(opjit_rt_target_parse(target, &t, &error) == OPJIT_OK, "%s", error.message);
    const codegen_request request = { .variants = &f,
                                      .variant_count = 1,
                                      .target = &t,
                                      .level = level,
                                      .emit = what,
                                      .name = f->name,
                                      .allocator = &opjit_rt_default_allocator,
                                      .verify = true };
    const opjit_status status = opjit_codegen_query(CODEGEN_ABI)->compile(&request, &out, &error);
    ck_assert_msg(status == OPJIT_OK, "%s for %s: %s", f->name, target, error.message);
    return out;
}

static inline void harness_free_result(codegen_result *r)
{
    opjit_rt_release(&opjit_rt_default_allocator, r->entries, r->entry_count * sizeof(uint64_t));
    opjit_rt_bytes_free(&r->bytes);
}

static inline harness_kernel harness_compile(const ir_func *f, const char *target, uint32_t level)
{
    harness_kernel k = { .result = harness_emit(f, target, level, CODEGEN_CODE) };
    ck_assert(opjit_rt_target_parse(target, &k.target, NULL) == OPJIT_OK);
    if (test_is_foreign(&k.target))
        return k;
    k.size = (k.result.bytes.size + HARNESS_PAGE - 1) / HARNESS_PAGE * HARNESS_PAGE;
    k.code = mmap(NULL, k.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(k.code != MAP_FAILED);
    memcpy(k.code, k.result.bytes.data, k.result.bytes.size);
    ck_assert(mprotect(k.code, k.size, PROT_READ | PROT_EXEC) == 0);
    return k;
}

static inline opjit_stage_fn harness_stage(const harness_kernel *k, uint32_t stage)
{
    opjit_stage_fn fn;
    void *address = (uint8_t *)k->code + k->result.entries[stage];
    memcpy(&fn, &address, sizeof(fn));
    return fn;
}

static inline void harness_unload(harness_kernel *k)
{
    if (k->code)
        munmap(k->code, k->size);
    harness_free_result(&k->result);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

typedef struct harness_buffer {
    uint8_t *data, *mapping;
    size_t bytes, mapped;
} harness_buffer;

static inline harness_buffer harness_buffer_new(size_t bytes, bool at_end)
{
    harness_buffer b = { .bytes = bytes };
    const size_t room = (bytes + HARNESS_PAGE - 1) / HARNESS_PAGE * HARNESS_PAGE;
    b.mapped = room + 2 * HARNESS_PAGE;
    b.mapping = mmap(NULL, b.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(b.mapping != MAP_FAILED);
    ck_assert(mprotect(b.mapping + HARNESS_PAGE, room, PROT_READ | PROT_WRITE) == 0);
    b.data = b.mapping + HARNESS_PAGE + (at_end ? room - bytes : 0);
    return b;
}

static inline void harness_buffer_free(harness_buffer *b)
{
    munmap(b->mapping, b->mapped);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static inline uint64_t harness_special(ir_type type, test_random *r)
{
    static const uint64_t f64[] = { 0,
                                    1,
                                    0x8000000000000000,
                                    0x7ff0000000000000,
                                    0xfff0000000000000,
                                    0x7ff8000000000000,
                                    0xfff4000000000001,
                                    0x000fffffffffffff,
                                    0x0010000000000000,
                                    0x3ff0000000000000,
                                    0xbff0000000000000,
                                    0x4330000000000000,
                                    0x4340000000000001,
                                    0x41dfffffffc00000,
                                    0x43e0000000000000,
                                    0x43f0000000000000,
                                    0xc3e0000000000000,
                                    0x7fefffffffffffff,
                                    0x3fe0000000000000,
                                    0x3ff8000000000000,
                                    0x40efffe000000000,
                                    0x3e60000000000000,
                                    0x3e50000000000000,
                                    0x3fdfffffffffffff };
    static const uint64_t f32[] = { 0,          1,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                    0xffa00001, 0x007fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x4b000000,
                                    0x4b7fffff, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000,
                                    0x5f800000, 0x7f7fffff, 0x3f000000, 0x3fc00000, 0x477fefff, 0x477ff000,
                                    0x33000000, 0x33000001, 0x38800000, 0x387fc000, 0x3effffff };
    static const uint64_t f16[] = { 0,      1,      0x8000, 0x7c00, 0xfc00, 0x7e00, 0xfd01, 0x03ff, 0x0400,
                                    0x3c00, 0xbc00, 0x7bff, 0x3800, 0x3e00, 0x6400, 0x63ff, 0x37ff };
    static const uint64_t integers[] = {
        0,          1,         UINT64_MAX,         0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fffffff, 0x80000000,
        0xffffffff, INT64_MAX, 0x8000000000000000, 2,    7,    31,   32,     63,     64
    };
#define PICK(list) list[test_random_below(r, sizeof(list) / sizeof((list)[0]))]
    return type == IR_F64 ? PICK(f64) : type == IR_F32 ? PICK(f32) : type == IR_F16 ? PICK(f16) : PICK(integers);
#undef PICK
}

/* A third special, a third small numbers or exponents near each other, a third random bits. */
static inline uint64_t harness_value(ir_type type, test_random *r)
{
    const uint64_t bits = test_random_u64(r), kind = test_random_below(r, 3);
    if (kind == 0)
        return harness_special(type, r);
    if (kind == 1)
        return bits;
    switch (type) {
    case IR_F64: return (bits & 0x800fffffffffffff) | (uint64_t)(1023 - 32 + (bits >> 52 & 63)) << 52;
    case IR_F32: return (bits & 0x807fffff) | (uint64_t)(127 - 16 + (bits >> 32 & 31)) << 23;
    default: return (uint64_t)(int64_t)(int8_t)bits;
    }
}

static inline void harness_fill(uint8_t *data, size_t bytes, ir_type type, test_random *r)
{
    const size_t size = opjit_ir_type_size(type);
    for (size_t i = 0; i + size <= bytes; i += size) {
        const uint64_t v = harness_value(type, r);
        memcpy(data + i, &v, size);
    }
}

static inline bool harness_is_nan(ir_type type, const uint8_t *p)
{
    uint64_t bits = 0;
    memcpy(&bits, p, opjit_ir_type_size(type));
    return type == IR_F16   ? (bits & 0x7fff) > 0x7c00
           : type == IR_F32 ? (bits & 0x7fffffff) > 0x7f800000
                            : type == IR_F64 && (bits & INT64_MAX) > 0x7ff0000000000000;
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

typedef struct harness_run {
    uint64_t params[8];
    uint64_t begin, end; /* of every stage */
    bool any_nan;        /* outputs may hold different NaNs */
    bool at_end;         /* buffers end at the inaccessible page */
    const char *what;    /* for messages */
} harness_run;

static inline void harness_compare(const ir_func *f, const harness_run *run, uint32_t t, const uint8_t *want,
                                   const uint8_t *got)
{
    const ir_tensor *tensor = &f->tensors[t];
    const size_t size = opjit_ir_type_size(tensor->type);
    for (size_t i = 0; i + size <= tensor->bytes; i += size) {
        uint64_t a = 0, b = 0;
        memcpy(&a, want + i, size);
        memcpy(&b, got + i, size);
        if (a == b || (run->any_nan && harness_is_nan(tensor->type, want + i) && harness_is_nan(tensor->type, got + i)))
            continue;
        ck_abort_msg("%s: %s[%zu] is %0*llx, not %0*llx", run->what, tensor->name ? tensor->name : "tensor", i / size,
                     (int)size * 2, (unsigned long long)b, (int)size * 2, (unsigned long long)a);
    }
}

/* The arguments of a stage. */
typedef struct harness_call {
    void *const *buffers;
    void *shared, *scratch;
    uint64_t shared_size, scratch_size;
} harness_call;

/* False: the emulator gave up. */
static inline bool harness_run_stage(const ir_func *f, const harness_kernel *k, const harness_run *run, uint32_t stage,
                                     const harness_call *c)
{
    uint64_t sizes[HARNESS_TENSORS] = { 0 };
    char message[256];
    if (k->code) {
        harness_stage(k, stage)(c->buffers, run->params, c->shared, c->scratch, run->begin, run->end);
        return true;
    }
    uint32_t slots = 0;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        if (tensor->role != IR_IN && tensor->role != IR_OUT && tensor->role != IR_CONSTANT)
            continue;
        sizes[tensor->slot] = tensor->bytes;
        slots = tensor->slot >= slots ? tensor->slot + 1 : slots;
    }
    const emulated_stage s = { &k->target,
                               k->result.bytes.data,
                               k->result.bytes.size,
                               k->result.entries[stage],
                               c->buffers,
                               sizes,
                               slots,
                               run->params,
                               8,
                               c->shared,
                               c->scratch,
                               c->shared_size,
                               c->scratch_size,
                               run->begin,
                               run->end };
    const emulated_result result = test_emulated_run(&s, message, sizeof(message));
    ck_assert_msg(result != EMULATED_FAILED, "%s: %s", run->what, message);
    return result == EMULATED_RAN;
}

/* Runs all stages in the interpreter and compiled, on equal memory, which must be equal afterwards. */
static inline void harness_check(const ir_func *f, const harness_kernel *k, const harness_run *run, test_random *r)
{
    harness_buffer memory[2][HARNESS_TENSORS + 2] = { { { .data = NULL } } };
    void *buffers[2][HARNESS_TENSORS] = { { NULL } };
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        if (tensor->role != IR_IN && tensor->role != IR_OUT && tensor->role != IR_CONSTANT)
            continue;
        for (uint32_t side = 0; side < 2; side++) {
            memory[side][t] = harness_buffer_new(tensor->bytes, run->at_end);
            buffers[side][tensor->slot] = memory[side][t].data;
        }
        if (tensor->data)
            memcpy(memory[0][t].data, tensor->data, tensor->bytes);
        else
            harness_fill(memory[0][t].data, tensor->bytes, tensor->type, r);
        memcpy(memory[1][t].data, memory[0][t].data, tensor->bytes);
        if (tensor->role == IR_OUT && tensor->alias)
            for (uint32_t side = 0; side < 2; side++)
                buffers[side][tensor->slot] = memory[side][tensor->alias].data;
    }
    for (uint32_t side = 0; side < 2; side++) {
        memory[side][0] = harness_buffer_new(f->shared_size ? (f->shared_size + 63) / 64 * 64 : 64, run->at_end);
        memory[side][HARNESS_TENSORS] =
            harness_buffer_new(f->scratch_size ? (f->scratch_size + 63) / 64 * 64 : 64, run->at_end);
    }
    uint32_t stage = 0;
    bool ran = true;
    for (ir_ref s = f->body; s && ran; s = ir_at(f, s)->next, stage++) {
        opjit_error error;
        const ir_run interp = { .buffers = buffers[0],
                                .params = run->params,
                                .shared = memory[0][0].data,
                                .scratch = memory[0][HARNESS_TENSORS].data,
                                .stage = stage,
                                .begin = run->begin,
                                .end = run->end };
        ck_assert_msg(opjit_ir_interpret(f, &interp, &error) == OPJIT_OK, "%s: %s", run->what, error.message);
        const harness_call call = { buffers[1], memory[1][0].data, memory[1][HARNESS_TENSORS].data, memory[1][0].bytes,
                                    memory[1][HARNESS_TENSORS].bytes };
        ran = harness_run_stage(f, k, run, stage, &call);
    }
    for (uint32_t t = 1; t < f->tensor_count && ran; t++)
        if (memory[0][t].data)
            harness_compare(f, run, t, memory[0][t].data, memory[1][t].data);
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t t = 0; t < HARNESS_TENSORS + 2; t++)
            if (memory[side][t].data)
                harness_buffer_free(&memory[side][t]);
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

static inline uint32_t harness_tensor(ir_func *f, ir_role role, ir_type type, uint64_t rows, uint64_t columns,
                                      uint32_t slot, const char *name)
{
    ir_tensor t = {
        .role = role, .type = type, .rank = rows ? 2 : 1, .slot = slot, .align = opjit_ir_type_size(type), .name = name
    };
    t.sizes[0] = rows ? rows : columns;
    t.sizes[1] = rows ? columns : 0;
    t.bytes = (rows ? rows : 1) * columns * opjit_ir_type_size(type);
    opjit_ir_dense_strides(&t);
    return opjit_ir_tensor(f, &t);
}

/* A kernel from its text, scheduled for the target. */
static inline void harness_schedule(ir_func *f, const char *text, const char *name)
{
    rt_target target;
    opjit_error error;
    const ir_pass_env env = { .target = &target, .verify = true };
    ck_assert_msg(opjit_rt_target_parse(name, &target, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, f, &error) == OPJIT_OK, "%s: %s",
                  error.message, text);
    ck_assert_msg(opjit_ir_run_passes(f, &env, IR_SCHEDULED, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_ir_layout(f, &error) == OPJIT_OK, "%s", error.message);
}

static inline void harness_verify(const ir_func *f)
{
    opjit_error error;
    ck_assert(!f->failed);
    ck_assert_msg(opjit_ir_verify(f, &error) == OPJIT_OK, "%s: %s", f->name, error.message);
}

#endif
