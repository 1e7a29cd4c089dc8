/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_call.c - bytes as the structures of a call: struct_size, bindings, parameters, workspace, and an executor that
 * keeps or breaks its contract.  Either the call is refused with a message and nothing has changed, or it writes to its
 * outputs and its workspace only; if the executor kept its contract, the outputs are right. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/fuzz.h"
#include "tests/support/graph_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 12, COLUMNS = 24, TABLE = 64, CONSTANT_BYTES = TABLE * COLUMNS * 4, ARENA = 1 << 14 };
enum { KERNELS = 6, BINDINGS = 6, PARAMS = 4 };

static _Alignas(64) uint8_t constant[CONSTANT_BYTES];

/* --- kernels: made once ------------------------------------------------------------------------------------------- */

static opjit_kernel *compile_one(opjit_context *context, DML_OPERATOR_TYPE type, const void *fields,
                                 const opjit_compile_options *options)
{
    const DML_OPERATOR_DESC desc = { type, fields };
    opjit_operator *op = NULL;
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };
    test_require(opjit_operator_create(context, &desc, &op, &error) == OPJIT_OK &&
                     opjit_compile_operator(context, op, options, &kernel, &error) == OPJIT_OK,
                 "%s", error.message);
    opjit_operator_release(op);
    return kernel;
}

static const DML_TENSOR_DESC *matrix(graph_tensor *t)
{
    return graph_tensor_set(t, DML_TENSOR_DATA_TYPE_FLOAT32, 2, (uint32_t[]){ ROWS, COLUMNS }, NULL, 0);
}

/* With late parameters; may work in place. */
static opjit_kernel *band(opjit_context *context, uint32_t flags)
{
    static const char *const late[] = { "DiagonalFillBegin", "DiagonalFillEnd" };
    graph_tensor t;
    const DML_TENSOR_DESC *d = matrix(&t);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.flags = flags;
    options.late = late;
    options.late_count = 2;
    return compile_one(
        context, DML_OPERATOR_DIAGONAL_MATRIX1,
        &(DML_DIAGONAL_MATRIX1_OPERATOR_DESC){ d, d, DML_TENSOR_DATA_TYPE_FLOAT32, { .Float32 = 1 }, 0, 1 }, &options);
}

/* Softmax over rows of a table in a constant above 4 KiB, selected by an input of indices; then sums of its columns, so
 * that there is a workspace. */
static opjit_kernel *table(opjit_context *context, uint32_t flags)
{
    static const uint32_t axes[] = { 1 }, columns[] = { 0 };
    graph_tensor data, index, rows, sums;
    const DML_TENSOR_DESC *d =
        graph_tensor_set(&data, DML_TENSOR_DATA_TYPE_FLOAT32, 2, (uint32_t[]){ TABLE, COLUMNS }, NULL, 0);
    const DML_TENSOR_DESC *i =
        graph_tensor_set(&index, DML_TENSOR_DATA_TYPE_UINT32, 2, (uint32_t[]){ 1, ROWS }, NULL, 0);
    const DML_TENSOR_DESC *r = matrix(&rows);
    const DML_TENSOR_DESC *s =
        graph_tensor_set(&sums, DML_TENSOR_DATA_TYPE_FLOAT32, 2, (uint32_t[]){ 1, COLUMNS }, NULL, 0);
    const DML_GATHER_OPERATOR_DESC gather = { d, i, r, 0, 1 };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { r, r, 1, axes };
    const DML_REDUCE_OPERATOR_DESC reduce = { DML_REDUCE_FUNCTION_SUM, r, s, 1, columns };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    graph_case g;
    graph_begin(&g, context, 4);
    const uint32_t held = graph_constant(&g, constant, sizeof constant, "table");
    const uint32_t pick = graph_operator(&g, DML_OPERATOR_GATHER, &gather, "pick");
    const uint32_t soft = graph_operator(&g, DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax, "soft");
    const uint32_t sum = graph_operator(&g, DML_OPERATOR_REDUCE, &reduce, "sum");
    graph_edge(&g, held, 0, pick, 0);
    graph_input(&g, 0, pick, 1);
    graph_edge(&g, pick, 0, soft, 0);
    graph_edge(&g, soft, 0, sum, 0);
    graph_output(&g, sum, 0, 0);
    options.flags = flags | OPJIT_COMPILE_BORROW_CONSTANTS;
    test_require(opjit_compile_graph(context, &g.desc, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    graph_end(&g);
    return kernel;
}

/* Pointwise; may work in place. */
static opjit_kernel *add(opjit_context *context, uint32_t flags)
{
    graph_tensor t;
    const DML_TENSOR_DESC *d = matrix(&t);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.flags = flags;
    return compile_one(context, DML_OPERATOR_ELEMENT_WISE_ADD, &(DML_ELEMENT_WISE_ADD_OPERATOR_DESC){ d, d, d },
                       &options);
}

static opjit_kernel *const *kernels(void)
{
    static opjit_kernel *made[KERNELS];
    opjit_context *context = NULL;
    if (made[0] != NULL)
        return made;
    for (size_t i = 0; i < sizeof constant / 4; i++)
        memcpy(constant + 4 * i, &(float){ (float)(i % 13) }, 4);
    test_require(opjit_context_create(NULL, &context, NULL) == OPJIT_OK, "no context");
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t flags = i == 0 ? OPJIT_COMPILE_INTERPRET : 0;
        made[i] = band(context, flags);
        made[2 + i] = table(context, flags);
        made[4 + i] = add(context, flags);
    }
    opjit_context_destroy(context);
    return made;
}

/* --- executors ---------------------------------------------------------------------------------------------------- */
typedef struct hostile {
    fuzz_reader *r;
    bool kept; /* its contract, so far */
} hostile;

static opjit_status run_any(void *user, uint64_t extent, uint64_t grain,
                            void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    hostile *h = user;
    switch (fuzz_choose(h->r, 5)) {
    case 0: body(arg, 0, 0, extent); return OPJIT_OK;
    case 1:
        for (uint64_t at = 0; at < extent; at += grain)
            body(arg, (uint32_t)(at / grain % 2), at, extent - at < grain ? extent : at + grain);
        return OPJIT_OK;
    case 2: h->kept = false; return OPJIT_OK; /* nothing was done */
    case 3:
        h->kept = false;
        body(arg, 0, 0, extent);
        return OPJIT_CANCELLED;
    default:
        h->kept = false;
        for (uint32_t n = fuzz_choose(h->r, 4); n != 0; n--) {
            const uint64_t begin = fuzz_take(h->r, 1 + fuzz_choose(h->r, 8));
            body(arg, (uint32_t)fuzz_take(h->r, 1 + fuzz_choose(h->r, 4)), begin,
                 fuzz_take(h->r, 1 + fuzz_choose(h->r, 8)));
        }
        return (opjit_status)fuzz_take(h->r, 1);
    }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
typedef struct memory {
    _Alignas(64) uint8_t arena[ARENA];
} memory;

/* A place in the arena, or an invalid one. */
static opjit_binding take_binding(fuzz_reader *r, memory *m, const opjit_kernel_info *info, uint64_t bytes, uint32_t i)
{
    opjit_binding b = { m->arena + (2048 * (size_t)i + 64) % ARENA, bytes };
    switch (fuzz_choose(r, 8)) {
    case 1: b.data = m->arena + fuzz_choose(r, ARENA / 4) * 4; break;
    case 2: b.data = m->arena + fuzz_choose(r, ARENA); break;
    case 3: b.bytes = fuzz_take(r, 1 + fuzz_choose(r, 8)); break;
    case 4: b.data = fuzz_sometimes(r, 128) ? NULL : (void *)(uintptr_t)fuzz_take(r, 8); break;
    case 5: /* memory that this kernel has borrowed; for others it is any memory */
        if (info->meta->constants != 0)
            b.data = constant + fuzz_choose(r, CONSTANT_BYTES / 4) * 4;
        break;
    default: break;
    }
    return b;
}

static bool in_arena(const memory *m, const void *at, uint64_t bytes)
{
    const uintptr_t offset = (uintptr_t)at - (uintptr_t)m->arena;
    return offset <= ARENA && bytes <= ARENA - offset;
}

/* Whether everything that the call would touch if it were accepted belongs to this test. */
static bool is_ours(const memory *m, const opjit_kernel_info *info, const opjit_call *call)
{
    if (call->binding_count != info->inputs + info->outputs || call->bindings == NULL)
        return true; /* refused because of its count */
    for (uint32_t i = 0; i < call->binding_count; i++) {
        const opjit_binding *b = &call->bindings[i];
        const uintptr_t at = (uintptr_t)b->data - (uintptr_t)constant;
        if (b->data != NULL && !in_arena(m, b->data, info->buffers[i].bytes) &&
            (at > CONSTANT_BYTES || info->buffers[i].bytes > CONSTANT_BYTES - at))
            return false;
    }
    return call->workspace.data == NULL || in_arena(m, call->workspace.data, info->workspace_bytes) ||
           (uintptr_t)call->workspace.data - (uintptr_t)constant < CONSTANT_BYTES;
}

/* Every byte that changed lies in an output or in the workspace. */
static void check_writes(const memory *m, const memory *before, const opjit_kernel_info *info, const opjit_call *call)
{
    for (size_t i = 0; i < ARENA; i++) {
        bool may = m->arena[i] == before->arena[i] ||
                   (uintptr_t)&m->arena[i] - (uintptr_t)call->workspace.data < call->workspace.bytes;
        for (uint32_t o = info->inputs; o < info->inputs + info->outputs && !may; o++)
            may = (uintptr_t)&m->arena[i] - (uintptr_t)call->bindings[o].data < info->buffers[o].bytes;
        test_require(may, "byte %zu of the memory around the buffers has changed", i);
    }
}

/* The same call on separate memory, in order, by the interpreted kernel. */
static void check_outputs(opjit_kernel *reference, const memory *before, const memory *after,
                          const opjit_kernel_info *info, const opjit_call *call)
{
    opjit_binding bindings[BINDINGS];
    opjit_call own = OPJIT_CALL_INIT;
    for (uint32_t i = 0; i < call->binding_count; i++) {
        const uint64_t bytes = info->buffers[i].bytes;
        const uint8_t *from = call->bindings[i].data;
        bindings[i] = (opjit_binding){ aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64), bytes };
        if (in_arena(after, from, bytes))
            from = before->arena + (from - after->arena);
        memcpy(bindings[i].data, from, (size_t)bytes);
    }
    own.bindings = bindings;
    own.binding_count = call->binding_count;
    own.params = call->params;
    own.param_count = call->param_count;
    test_require(opjit_kernel_call(reference, &own, NULL) == OPJIT_OK, "the same call is refused elsewhere");
    for (uint32_t o = info->inputs; o < call->binding_count; o++)
        test_require(memcmp(bindings[o].data, call->bindings[o].data, (size_t)info->buffers[o].bytes) == 0,
                     "output %u is wrong", o - info->inputs);
    for (uint32_t i = 0; i < call->binding_count; i++)
        free(bindings[i].data);
}

static void take_call(fuzz_reader *r, memory *m, const opjit_kernel_info *info, opjit_binding *bindings,
                      uint64_t *params, opjit_executor *executor, opjit_call *call)
{
    *call = (opjit_call)OPJIT_CALL_INIT;
    call->binding_count = info->inputs + info->outputs;
    for (uint32_t i = 0; i < call->binding_count; i++)
        bindings[i] = take_binding(r, m, info, info->buffers[i].bytes, i);
    call->param_count = info->param_count;
    for (uint32_t i = 0; i < PARAMS; i++)
        params[i] = (uint64_t)(int64_t)(int8_t)fuzz_take(r, 1);
    if (fuzz_sometimes(r, 32))
        params[fuzz_choose(r, PARAMS)] = fuzz_take(r, 8);
    call->bindings = fuzz_sometimes(r, 8) ? NULL : bindings;
    call->params = fuzz_sometimes(r, 8) ? NULL : params;
    if (fuzz_sometimes(r, 64))
        call->workspace = take_binding(r, m, info, info->workspace_bytes, 5);
    if (fuzz_sometimes(r, 96)) {
        executor->workers = fuzz_sometimes(r, 32) ? (uint32_t)fuzz_take(r, 4) % 4096 : 2;
        call->executor = executor;
    }
    if (fuzz_sometimes(r, 8))
        call->binding_count = (uint32_t)fuzz_take(r, 1);
    if (fuzz_sometimes(r, 8))
        call->param_count = (uint32_t)fuzz_take(r, 1) % (PARAMS + 1);
    if (fuzz_sometimes(r, 8))
        call->reserved = (uint32_t)fuzz_take(r, 4);
    if (fuzz_sometimes(r, 16))
        call->struct_size = (uint32_t)fuzz_take(r, 1 + fuzz_choose(r, 2));
}

/* As many bytes as struct_size says, so that a sanitizer notices reads past them. */
static void *copy_struct(const opjit_call *call)
{
    uint8_t *copy = malloc(call->struct_size > 4 ? call->struct_size : 4);
    test_require(copy != NULL, "no memory");
    memset(copy, 0, call->struct_size > 4 ? call->struct_size : 4);
    memcpy(copy, call, call->struct_size > sizeof *call ? sizeof *call : call->struct_size > 4 ? call->struct_size : 4);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static memory m, before;
    static uint8_t constant_before[CONSTANT_BYTES];
    opjit_kernel *const *const made = kernels();
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_error error = { 0 };
    opjit_binding bindings[256];
    uint64_t params[PARAMS];
    fuzz_reader r = { data, size };
    hostile h = { &r, true };
    opjit_executor executor = { &h, 2, run_any };
    opjit_call call;

    const uint32_t which = fuzz_choose(&r, KERNELS);
    memset(bindings, 0, sizeof bindings);
    for (size_t i = 0; i < ARENA; i += 4)
        memcpy(m.arena + i,
               which / 2 == 1 ? (const void *)&(uint32_t){ (uint32_t)i % 40 } : &(float){ (float)(i % 64) }, 4);
    memcpy(&before, &m, sizeof m);
    memcpy(constant_before, constant, sizeof constant);
    test_require(opjit_kernel_get_info(made[which], &info, NULL) == OPJIT_OK, "no information");
    take_call(&r, &m, &info, bindings, params, &executor, &call);
    if (!is_ours(&m, &info, &call))
        return 0;
    void *const given = copy_struct(&call);
    const opjit_status status = opjit_kernel_call(made[which], given, &error);
    free(given);
    test_require((status == OPJIT_OK) == (error.message[0] == '\0') || !h.kept, "%s with the message \"%s\"",
                 opjit_status_name(status), error.message);
    test_require(memcmp(constant, constant_before, sizeof constant) == 0, "the kernel's own constant has changed");
    if (status == OPJIT_INVALID_ARGUMENT && h.kept)
        test_require(memcmp(&m, &before, sizeof m) == 0, "a refused call has written: %s", error.message);
    else
        check_writes(&m, &before, &info, &call);
    if (status == OPJIT_OK && h.kept)
        check_outputs(made[which / 2 * 2], &before, &m, &info, &call);
    return 0;
}
