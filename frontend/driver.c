/* driver.c - the public functions that compile: options, key, cache; on a miss compile.c makes the kernel. */
#include <string.h>

#include "frontend/frontend.h"
#include "runtime/cache.h"

/* What a miss needs. */
typedef struct job {
    opjit_context *context;
    opjit_operator *op;
    const fe_options *options;
    const rt_key *key;
} job;

static opjit_status make(void *user, opjit_kernel **out_kernel, opjit_error *error)
{
    const job *j = user;
    rt_bytes key;
    opjit_status status;

    if (rt_wants_events(j->context->core) && (j->options->flags & OPJIT_COMPILE_NO_CACHE) == 0)
        opjit_rt_event(j->context->core, OPJIT_EVENT_MISS, "miss,%s", opjit_fe_label(j->op, j->options->target).text);
    opjit_rt_bytes_init(&key, &j->context->core->allocator);
    opjit_rt_bytes_append(&key, j->key->subject, j->key->subject_size);
    opjit_rt_bytes_append(&key, j->key->options, j->key->options_size);
    status = key.failed ? opjit_rt_no_memory(error)
                        : opjit_fe_compile(j->context, j->op, j->options, &key, out_kernel, error);
    opjit_rt_bytes_free(&key);
    return status;
}

/* Both halves of the key are bytes that their owner keeps; the hash of the first was made with the operator. */
static opjit_status find_or_make(job *j, const rt_bytes *subject, uint64_t subject_hash, opjit_kernel **out,
                                 opjit_error *error)
{
    uint8_t options_key[FE_OPTIONS_KEY_SIZE];
    const size_t options_size = opjit_fe_options_key(j->options, options_key);
    const uint64_t options_hash = opjit_rt_hash64(options_key, options_size);
    const rt_key key = {
        .subject = subject->data,
        .subject_size = subject->size,
        .options = options_key,
        .options_size = options_size,
        .hash = subject_hash ^ (options_hash << 1 | options_hash >> 63), /* turned: equal halves must not cancel out */
    };
    bool hit = false;

    j->key = &key;
    if ((j->options->flags & OPJIT_COMPILE_NO_CACHE) != 0)
        return make(j, out, error);
    TRY(opjit_rt_cache_get(j->context->cache, &key, make, j, out, &hit, error));
    if (hit && rt_wants_events(j->context->core))
        opjit_rt_event(j->context->core, OPJIT_EVENT_HIT, "hit,%s", opjit_fe_label(j->op, j->options->target).text);
    return OPJIT_OK;
}

/* With late fields the operator's key is that without their values: one kernel for all of them. */
static opjit_status find_or_make_late(job *j, opjit_kernel **out, opjit_error *error)
{
    uint8_t room[512];
    rt_bytes subject;
    opjit_status status;

    opjit_rt_bytes_init_in(&subject, &j->context->core->allocator, room, sizeof room);
    opjit_fe_operator_key(j->op, j->options->late_mask, &subject);
    if (subject.failed)
        status = opjit_rt_no_memory(error);
    else
        status = find_or_make(j, &subject, opjit_rt_hash64(subject.data, subject.size), out, error);
    opjit_rt_bytes_free(&subject);
    return status;
}

opjit_status opjit_compile_operator(opjit_context *context, opjit_operator *op, const opjit_compile_options *options,
                                    opjit_kernel **out_kernel, opjit_error *error)
{
    fe_options read;
    job j = { .context = context, .op = op, .options = &read };

    opjit_rt_error_clear(error);
    if (out_kernel == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "out_kernel is NULL");
    *out_kernel = NULL;
    if (context == NULL || op == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "%s is NULL", context == NULL ? "context" : "op");
    TRY(opjit_fe_options_read(context, op, options, &read, error));
    return read.late_count != 0 ? find_or_make_late(&j, out_kernel, error)
                                : find_or_make(&j, &op->key, op->hash, out_kernel, error);
}

opjit_status opjit_context_warm(opjit_context *context, opjit_error *error)
{
    const opjit_codegen *codegen;

    opjit_rt_error_clear(error);
    if (context == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "context is NULL");
    TRY(opjit_fe_codegen(context->core, &codegen, error));
    return codegen->warm(&context->target, &context->core->allocator, error);
}

/* --- explain ------------------------------------------------------------------------------------------------------ */

typedef struct explainer {
    opjit_explain_fn fn;
    void *user;
    bool failed; /* a text could not be printed for lack of memory */
} explainer;

static void explain_pass(void *user, const char *pass, const ir_func *f)
{
    explainer *e = user;
    rt_bytes text;

    opjit_rt_bytes_init(&text, f->allocator);
    opjit_ir_print(f, &text);
    opjit_rt_bytes_zero_end(&text);
    if (text.failed)
        e->failed = true;
    else
        e->fn(e->user, pass, (const char *)text.data);
    opjit_rt_bytes_free(&text);
}

opjit_status opjit_operator_explain(opjit_context *context, opjit_operator *op, const opjit_compile_options *options,
                                    opjit_explain_fn fn, void *user, opjit_error *error)
{
    explainer e = { fn, user, false };
    fe_options read;
    fe_program program;

    opjit_rt_error_clear(error);
    if (context == NULL || op == NULL || fn == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "%s is NULL",
                                  context == NULL ? "context"
                                  : op == NULL    ? "op"
                                                  : "fn");
    TRY(opjit_fe_options_read(context, op, options, &read, error));
    TRY(opjit_fe_program_make(op, &read, read.name == NULL ? "kernel" : read.name, &context->core->allocator,
                              explain_pass, &e, &program, error));
    opjit_fe_program_free(&program);
    return e.failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
