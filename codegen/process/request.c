/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - requests and results of codegen.h as bytes, and back.  What is read is checked as far as memory goes:
 * sizes, texts, numbers of tables.  Functions are in function.c. */
#include "codegen/process/message.h"

static opjit_status refuse(const cp_reader *r, const char *what, opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_CORRUPT, "{compile worker} {%s}: damaged at byte %zu of %zu", what, r->at,
                           r->size);
}

static cp_reader reader_of(rt_bytes *bytes)
{
    return (cp_reader){ .data = bytes->data, .size = bytes->size, .bad = bytes->failed };
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static const rt_target *take_target(cp_reader *r)
{
    const rt_target *t = opjit_cp_array(r, 1, sizeof *t);
    if (r->bad)
        return NULL;
    r->bad = (uint32_t)t->arch < RT_ARCH_X86_64 || (uint32_t)t->arch >= RT_ARCH_END ||
             !memchr(t->tune, '\0', sizeof t->tune) || !memchr(t->text, '\0', sizeof t->text) ||
             (t->vector_bytes != 16 && t->vector_bytes != 32 && t->vector_bytes != 64);
    return r->bad ? NULL : t;
}

static void put_functions(const ir_func *const *functions, uint32_t count, rt_bytes *out)
{
    opjit_rt_bytes_u32(out, count);
    for (uint32_t i = 0; i < count; i++)
        opjit_cp_put_function(functions[i], out);
}

/* A table of things that take `least` bytes each at least, so that a number which was never sent asks for no memory. */
static void *take_table(cp_reader *r, rt_arena *arena, uint32_t count, size_t size, size_t least, opjit_error *error)
{
    r->bad = r->bad || count > (r->size - r->at) / least;
    void *table = r->bad ? NULL : opjit_rt_arena_allocate(arena, count, size);
    if (!table && !r->bad)
        opjit_rt_no_memory(error);
    return table;
}

/* NULL: no memory, which *error says, or bad. */
static const ir_func *const *take_functions(cp_reader *r, rt_arena *arena, uint32_t *out_count, opjit_error *error)
{
    *out_count = opjit_cp_u32(r);
    const ir_func **functions = take_table(r, arena, *out_count, sizeof *functions, sizeof(ir_node), error);
    for (uint32_t i = 0; functions && i < *out_count; i++) {
        functions[i] = opjit_cp_take_function(r, arena, error);
        if (!functions[i])
            return NULL;
    }
    return functions;
}

/* Of a reader that is bad, or that had no memory, which *error says. */
static opjit_status failure(const cp_reader *r, const char *what, opjit_error *error)
{
    return r->bad ? refuse(r, what, error) : OPJIT_OUT_OF_MEMORY;
}

/* --- kernels for other programs ----------------------------------------------------------------------------------- */

static void put_kernel(const codegen_kernel *k, rt_bytes *out)
{
    const uint32_t constants = k->constants ? k->versions[0].meta->constants : 0;
    opjit_rt_bytes_u32(out, k->version_count);
    opjit_rt_bytes_u32(out, k->weights_apart);
    for (uint32_t i = 0; i < k->version_count; i++) {
        const codegen_version *v = &k->versions[i];
        opjit_cp_put_text(out, v->name);
        opjit_cp_put_array(out, v->target, 1, sizeof *v->target);
        opjit_rt_bytes_u32(out, v->meta->size);
        opjit_cp_put_array(out, v->meta, 1, v->meta->size);
        put_functions(v->variants, v->variant_count, out);
    }
    opjit_rt_bytes_u32(out, constants);
    for (uint32_t i = 0; i < constants; i++) {
        const codegen_data *c = &k->constants[i];
        opjit_rt_bytes_u64(out, c->bytes);
        opjit_rt_bytes_u32(out, c->data != NULL);
        if (c->data)
            opjit_cp_put_array(out, c->data, c->bytes, 1);
    }
}

static bool take_version(cp_reader *r, rt_arena *arena, codegen_version *v, opjit_error *error)
{
    v->name = opjit_cp_text(r);
    v->target = take_target(r);
    const uint32_t size = opjit_cp_u32(r);
    v->meta = opjit_cp_array(r, 1, size);
    r->bad = r->bad || !v->name || size < offsetof(opjit_kernel_meta, unproven_bounds) || v->meta->size != size;
    if (r->bad)
        return false;
    v->variants = take_functions(r, arena, &v->variant_count, error);
    return v->variants != NULL;
}

static opjit_status take_kernel(cp_reader *r, rt_arena *arena, codegen_kernel *k, opjit_error *error)
{
    k->version_count = opjit_cp_u32(r);
    k->weights_apart = opjit_cp_u32(r) != 0;
    r->bad = r->bad || k->version_count == 0;
    codegen_version *versions = take_table(r, arena, k->version_count, sizeof *versions, sizeof(rt_target), error);
    for (uint32_t i = 0; versions && i < k->version_count; i++)
        if (!take_version(r, arena, &versions[i], error))
            return failure(r, "a version", error);
    const uint32_t count = opjit_cp_u32(r);
    codegen_data *constants = versions ? take_table(r, arena, count, sizeof *constants, 12, error) : NULL;
    if (!constants)
        return failure(r, "constants", error);
    for (uint32_t i = 0; i < count; i++) {
        constants[i].bytes = opjit_cp_u64(r);
        if (opjit_cp_u32(r) != 0)
            constants[i].data = opjit_cp_array(r, constants[i].bytes, 1);
        r->bad = r->bad || (!constants[i].data && !k->weights_apart);
    }
    r->bad = r->bad || count != (count == 0 ? 0 : versions[0].meta->constants);
    k->versions = versions;
    k->constants = count > 0 ? constants : NULL;
    return r->bad ? refuse(r, "a constant", error) : OPJIT_OK;
}

/* --- compiles ----------------------------------------------------------------------------------------------------- */

static uint32_t threads_of(const opjit_executor *executor)
{
    const uint32_t threads = executor ? executor->workers : 1;
    return threads < 1 ? 1 : threads > CP_MOST_THREADS ? CP_MOST_THREADS : threads;
}

void opjit_cp_put_compile(const codegen_request *request, rt_bytes *out)
{
    const bool numbers = request->node_numbers && !request->kernel && request->variant_count > 0;
    const uint32_t fields[] = { request->level,
                                request->emit,
                                request->verify,
                                request->llvm_only,
                                request->functions != NULL,
                                threads_of(request->executor),
                                request->kernel != NULL,
                                numbers };
    opjit_cp_put_text(out, request->name);
    opjit_rt_bytes_append(out, fields, sizeof fields);
    if (request->kernel) {
        put_kernel(request->kernel, out);
        return;
    }
    opjit_cp_put_array(out, request->target, 1, sizeof *request->target);
    put_functions(request->variants, request->variant_count, out);
    if (numbers)
        opjit_cp_put_array(out, request->node_numbers, request->variants[0]->node_count, sizeof(uint32_t));
}

opjit_status opjit_cp_take_compile(rt_bytes *bytes, rt_arena *arena, cp_compile *out, opjit_error *error)
{
    cp_reader r = reader_of(bytes);
    codegen_request *q = &out->request;
    *out = (cp_compile){ .threads = 1 };
    q->name = opjit_cp_text(&r);
    q->level = opjit_cp_u32(&r);
    q->emit = (codegen_emit)opjit_cp_u32(&r); /* of level and emit code generation refuses what there is not */
    q->verify = opjit_cp_u32(&r) != 0;
    q->llvm_only = opjit_cp_u32(&r) != 0;
    out->has_functions = opjit_cp_u32(&r) != 0;
    out->threads = opjit_cp_u32(&r);
    const bool kernel = opjit_cp_u32(&r) != 0, numbers = opjit_cp_u32(&r) != 0;
    r.bad = r.bad || !q->name || out->threads < 1 || out->threads > CP_MOST_THREADS;
    if (r.bad)
        return refuse(&r, "a request", error);
    if (kernel) {
        TRY(take_kernel(&r, arena, &out->kernel, error));
        q->kernel = &out->kernel;
    } else {
        q->target = take_target(&r);
        q->variants = r.bad ? NULL : take_functions(&r, arena, &q->variant_count, error);
        if (!q->variants)
            return failure(&r, "a function", error);
        if (numbers && q->variant_count > 0)
            q->node_numbers = opjit_cp_array(&r, q->variants[0]->node_count, sizeof(uint32_t));
    }
    r.bad = r.bad || r.at != r.size;
    return r.bad ? refuse(&r, "a request", error) : OPJIT_OK;
}

void opjit_cp_put_warm(const rt_target *target, rt_bytes *out)
{
    opjit_cp_put_array(out, target, 1, sizeof *target);
}

opjit_status opjit_cp_take_warm(rt_bytes *bytes, const rt_target **out, opjit_error *error)
{
    cp_reader r = reader_of(bytes);
    *out = take_target(&r);
    return r.bad || r.at != r.size ? refuse(&r, "a target", error) : OPJIT_OK;
}

/* --- libraries ---------------------------------------------------------------------------------------------------- */

void opjit_cp_put_library(const codegen_library *request, rt_bytes *out)
{
    opjit_cp_put_text(out, request->name);
    opjit_cp_put_array(out, request->target, 1, sizeof *request->target);
    opjit_rt_bytes_u32(out, request->kind);
    opjit_rt_bytes_u32(out, request->member_count);
    for (uint32_t i = 0; i < request->member_count; i++) {
        const codegen_member *m = &request->members[i];
        opjit_cp_put_text(out, m->name);
        opjit_rt_bytes_u32(out, m->version_count);
        for (uint32_t v = 0; v < m->version_count; v++)
            opjit_cp_put_text(out, m->versions[v]);
        opjit_rt_bytes_u64(out, m->bytes);
        opjit_cp_put_array(out, m->object, m->bytes, 1);
    }
}

static bool take_member(cp_reader *r, rt_arena *arena, codegen_member *m, opjit_error *error)
{
    m->name = opjit_cp_text(r);
    m->version_count = opjit_cp_u32(r);
    const char **versions = take_table(r, arena, m->version_count, sizeof *versions, 4, error);
    for (uint32_t v = 0; versions && v < m->version_count; v++) {
        versions[v] = opjit_cp_text(r);
        r->bad = r->bad || !versions[v];
    }
    const uint64_t size = opjit_cp_u64(r);
    m->versions = versions;
    m->bytes = (size_t)size;
    m->object = opjit_cp_array(r, size, 1);
    r->bad = r->bad || !m->name;
    return versions && !r->bad;
}

opjit_status opjit_cp_take_library(rt_bytes *bytes, rt_arena *arena, codegen_library *out, opjit_error *error)
{
    cp_reader r = reader_of(bytes);
    *out = (codegen_library){ .name = opjit_cp_text(&r) };
    out->target = take_target(&r);
    const uint32_t kind = opjit_cp_u32(&r);
    out->kind = (codegen_library_kind)kind;
    out->member_count = opjit_cp_u32(&r);
    r.bad = r.bad || !out->name || kind > CODEGEN_SHARED;
    codegen_member *members = take_table(&r, arena, out->member_count, sizeof *members, 16, error);
    if (!members)
        return failure(&r, "a library", error);
    for (uint32_t i = 0; i < out->member_count; i++)
        if (!take_member(&r, arena, &members[i], error))
            return failure(&r, "a library's object", error);
    out->members = members;
    return r.at != r.size ? refuse(&r, "a library", error) : OPJIT_OK;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static bool has_end(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* The answer's record.  It is one by its bytes; its texts end. */
static const opjit_error *take_answer(cp_reader *r)
{
    const opjit_error *e = opjit_cp_array(r, 1, sizeof *e);
    if (r->bad)
        return NULL;
    r->bad = (uint32_t)e->status > OPJIT_NOT_FOUND || !has_end(e->message, sizeof e->message) ||
             !has_end(e->op, sizeof e->op) || !has_end(e->field, sizeof e->field) ||
             !has_end(e->value, sizeof e->value) || (e->status != OPJIT_OK && e->detail >= sizeof e->message);
    return r->bad ? NULL : e;
}

void opjit_cp_put_result(const opjit_error *answer, const codegen_result *result, uint64_t memory, rt_bytes *out)
{
    const double times[] = { result->build_ms, result->emit_ms, result->link_ms };
    opjit_cp_put_array(out, answer, 1, sizeof *answer);
    opjit_rt_bytes_u64(out, memory);
    opjit_rt_bytes_append(out, times, sizeof times);
    opjit_rt_bytes_u32(out, result->modules);
    opjit_rt_bytes_u32(out, result->direct);
    opjit_cp_put_text(out, result->refused);
    opjit_rt_bytes_u32(out, result->entry_count);
    opjit_rt_bytes_u64(out, result->bytes.size);
    opjit_cp_put_array(out, result->entries, result->entry_count, sizeof *result->entries);
    opjit_cp_put_array(out, result->bytes.data, result->bytes.size, 1);
}

opjit_status opjit_cp_take_result(rt_bytes *bytes, codegen_result *result, uint64_t *out_memory, opjit_error *error)
{
    cp_reader r = reader_of(bytes);
    const opjit_allocator *a = result->bytes.allocator;
    const opjit_error *answer = take_answer(&r);
    double times[3] = { 0 };
    *out_memory = opjit_cp_u64(&r);
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t bits = opjit_cp_u64(&r);
        memcpy(&times[i], &bits, sizeof bits);
    }
    const uint32_t modules = opjit_cp_u32(&r), direct = opjit_cp_u32(&r);
    const char *refused = opjit_cp_text(&r);
    const uint32_t count = opjit_cp_u32(&r);
    const uint64_t size = opjit_cp_u64(&r);
    const uint64_t *entries = opjit_cp_array(&r, count, sizeof *entries);
    const void *code = opjit_cp_array(&r, size, 1);
    if (r.bad || r.at != r.size || !refused || strlen(refused) >= sizeof result->refused)
        return refuse(&r, "a result", error);
    if (answer->status != OPJIT_OK)
        return opjit_rt_error_copy(error, answer);
    for (uint32_t i = 0; i < count; i++)
        if (entries[i] >= size)
            return refuse(&r, "an entry", error);
    if (count > 0) {
        result->entries = opjit_rt_allocate(a, count * sizeof *entries, sizeof *entries);
        if (!result->entries)
            return opjit_rt_no_memory(error);
        memcpy(result->entries, entries, count * sizeof *entries);
        result->entry_count = count;
    }
    opjit_rt_bytes_append(&result->bytes, code, (size_t)size);
    if (result->bytes.failed) {
        opjit_rt_release(a, result->entries, count * sizeof *entries);
        result->entries = NULL;
        result->entry_count = 0;
        return opjit_rt_no_memory(error);
    }
    result->modules = modules;
    result->direct = direct;
    memcpy(result->refused, refused, strlen(refused) + 1);
    result->build_ms = times[0];
    result->emit_ms = times[1];
    result->link_ms = times[2];
    return OPJIT_OK;
}

void opjit_cp_put_pair(const cp_pair *pair, rt_bytes *out)
{
    opjit_rt_bytes_u64(out, pair->first_size);
    opjit_rt_bytes_u64(out, pair->second_size);
    opjit_cp_put_array(out, pair->first, pair->first_size, 1);
    opjit_cp_put_array(out, pair->second, pair->second_size, 1);
}

bool opjit_cp_take_pair(rt_bytes *bytes, cp_pair *out)
{
    cp_reader r = reader_of(bytes);
    const uint64_t first = opjit_cp_u64(&r), second = opjit_cp_u64(&r);
    out->first_size = (size_t)first;
    out->second_size = (size_t)second;
    out->first = opjit_cp_array(&r, first, 1);
    out->second = opjit_cp_array(&r, second, 1);
    return !r.bad && r.at == r.size;
}

void opjit_cp_put_hello(const opjit_error *answer, const char *build, rt_bytes *out)
{
    opjit_cp_put_array(out, answer, 1, sizeof *answer);
    opjit_cp_put_text(out, build);
}

opjit_status opjit_cp_take_hello(rt_bytes *bytes, const char *build, opjit_error *error)
{
    cp_reader r = reader_of(bytes);
    const opjit_error *answer = take_answer(&r);
    const char *its = opjit_cp_text(&r);
    if (r.bad || !its)
        return refuse(&r, "its first message", error);
    if (strcmp(its, build) != 0)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                               "{compile worker}: {!build}its build id is {%.40s}, must be %s", its, build);
    return answer->status == OPJIT_OK ? OPJIT_OK : opjit_rt_error_copy(error, answer);
}
