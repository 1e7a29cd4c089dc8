/* SPDX-License-Identifier: Apache-2.0 */
/* tiers.c - makes kernels of one size beside a kernel with dynamic dimensions: by jobs of its executor for sizes that
 * calls want, and for whoever asks for one.  Which there are, and calls of them: runtime/call/tiers.c. */
#include <pthread.h>
#include <string.h>

#include <opjit/dynamic.h>

#include "frontend/compile/request.h"
#include "runtime/call/tiers.h"

enum { CALLS = 1000, KERNELS = 16 };

/* What all of them are made of: the user of rt_tiers. */
typedef struct maker {
    opjit_describe_fn describe;
    void *user;
    void (*release)(void *user); /* or NULL */
    rt_core *core;
    opjit_context *context; /* valid in a job */
    fe_request request;     /* of no graph: the options */
    opjit_async_executor executor;
    atomic_uint pending;       /* the process that has a job of the executor under way; 0: none */
    rt_lock making;            /* a description stays until the next one, so they are made one after the other */
    _Atomic(uintptr_t) thread; /* that holds it; 0: none */
    rt_lock lock;              /* of what follows */
    bool closed;               /* the kernel went */
    atomic_bool *cancel;       /* of the job that has `making`; NULL: none */
} maker;

/* One kernel that is to be made. */
typedef struct order {
    rt_tiers *tiers; /* with a reference */
    bool is_wanted;  /* by calls: maker.pending is set */
    uint64_t dims[OPJIT_MAX_DIMS];
} order;

/* --- making ------------------------------------------------------------------------------------------------------- */

/* Whether this thread is describing, or compiling, and would wait for itself. */
static bool is_making(maker *m)
{
    return atomic_load(&m->thread) == (uintptr_t)pthread_self() && rt_lock_is_held(&m->making);
}

static opjit_status compile(maker *m, const order *o, opjit_context *context, const atomic_bool *cancel,
                            opjit_kernel **out, opjit_error *error)
{
    const fe_ask ask = { .cancel = cancel };
    const DML_GRAPH_DESC *desc = NULL;

    const opjit_status status = m->describe(m->user, o->dims, &desc, error);
    if (status != OPJIT_OK && error->status != status)
        return opjit_rt_refuse(error, status, "{!argument}{describe} returned {%s}", opjit_status_name(status));
    if (status != OPJIT_OK)
        return status;
    if (desc == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{describe}: its description is {NULL}");
    return opjit_fe_compile_graph(context, desc, &m->request.options, &ask, out, error);
}

/* With `making` held.  What fails is not tried again; what was cancelled, or found no room, is. */
static opjit_status make(maker *m, const order *o, opjit_context *context, const atomic_bool *cancel,
                         opjit_error *error)
{
    opjit_kernel *fixed = NULL;
    opjit_status status;

    if (opjit_rt_tiers_have(o->tiers, o->dims)) /* another thread has made it meanwhile */
        return OPJIT_OK;
    status = compile(m, o, context, cancel, &fixed, error);
    bool is_final = status != OPJIT_OK && status != OPJIT_CANCELLED;
    if (status == OPJIT_OK) {
        status = opjit_rt_tiers_put(o->tiers, o->dims, fixed, error);
        is_final = status != OPJIT_OK && status != OPJIT_UNAVAILABLE;
    }
    if (status != OPJIT_OK)
        opjit_rt_tiers_give_up(o->tiers, o->dims, is_final);
    return status;
}

/* False: the kernel went. */
static bool begin(maker *m, atomic_bool *cancel)
{
    opjit_rt_lock(&m->lock);
    const bool closed = m->closed;
    m->cancel = cancel;
    opjit_rt_unlock(&m->lock);
    return !closed;
}

/* A job's work. */
static opjit_status work(void *user, opjit_context *context, atomic_bool *cancel, opjit_error *error)
{
    const order *o = user;
    maker *m = opjit_rt_tiers_user(o->tiers);
    opjit_status status;

    opjit_rt_lock(&m->making);
    atomic_store(&m->thread, (uintptr_t)pthread_self());
    status = begin(m, cancel) ? make(m, o, context, cancel, error) : opjit_rt_cancelled(error);
    begin(m, NULL);
    atomic_store(&m->thread, 0);
    opjit_rt_unlock(&m->making);
    return status;
}

static opjit_status order_new(maker *m, rt_tiers *tiers, const uint64_t *dims, uint32_t count, order **out,
                              opjit_error *error)
{
    order *o = opjit_rt_allocate(&m->core->allocator, sizeof *o, _Alignof(order));

    if (o == NULL)
        return opjit_rt_no_memory(error);
    *o = (order){ .tiers = tiers };
    memcpy(o->dims, dims, count * sizeof *dims);
    opjit_rt_tiers_retain(tiers);
    *out = o;
    return OPJIT_OK;
}

static void order_free(order *o)
{
    rt_tiers *const tiers = o->tiers;
    maker *m = opjit_rt_tiers_user(tiers);

    if (o->is_wanted)
        atomic_store(&m->pending, 0);
    opjit_rt_release(&m->core->allocator, o, sizeof *o);
    opjit_rt_tiers_release(tiers);
}

static void done(void *user, opjit_job *job)
{
    (void)job;
    order_free(user);
}

static opjit_status submit(maker *m, order *o, const opjit_async_executor *executor, opjit_job **out,
                           opjit_error *error)
{
    const opjit_status status = opjit_fe_job_submit(m->core, m->context, executor, work, done, o, out, error);

    if (status != OPJIT_OK)
        order_free(o);
    return status;
}

/* --- sizes that calls want ---------------------------------------------------------------------------------------- */

static bool take_pending(maker *m)
{
    const uint32_t process = rt_process_number(&m->core->process);
    uint32_t seen = atomic_load(&m->pending);

    return seen != process && atomic_compare_exchange_strong(&m->pending, &seen, process);
}

static bool want(void *user, rt_tiers *tiers, const uint64_t *dims, uint32_t count)
{
    maker *m = user;
    opjit_job *job;
    order *o;

    if (m->executor.submit == NULL || is_making(m) || !take_pending(m))
        return false;
    if (order_new(m, tiers, dims, count, &o, NULL) != OPJIT_OK) {
        atomic_store(&m->pending, 0);
        return false;
    }
    o->is_wanted = true;
    if (submit(m, o, &m->executor, &job, NULL) != OPJIT_OK)
        return false;
    opjit_job_release(job);
    return true;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void close(void *user)
{
    maker *m = user;

    opjit_rt_lock(&m->lock);
    m->closed = true;
    if (m->cancel != NULL)
        atomic_store(m->cancel, true);
    opjit_rt_unlock(&m->lock);
}

/* Without what the host is to be told. */
static void maker_free(maker *m)
{
    rt_core *const core = m->core;

    opjit_fe_request_free(&m->request);
    opjit_rt_release(&core->allocator, m, sizeof *m);
    opjit_rt_core_release(core);
}

static void destroy(void *user)
{
    maker *m = user;

    if (m->release != NULL)
        m->release(m->user);
    maker_free(m);
}

static const rt_struct tiers_sizes = { "opjit_tiers", { RT_SIZE_TO(opjit_tiers, release) } };
RT_STRUCT_ENDS_WITH(opjit_tiers, release);

static opjit_status read_tiers(const opjit_tiers *given, opjit_tiers *out, opjit_error *error)
{
    TRY(opjit_rt_struct_read(&tiers_sizes, out, given, error));
    if (out->kernels == 0)
        out->kernels = KERNELS;
    if (out->calls == 0)
        out->calls = CALLS;
    if (out->kernels > RT_TIERS_MOST)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{tiers}.{kernels}: {%u}, must be at most %u",
                               out->kernels, RT_TIERS_MOST);
    if (out->calls > RT_TIER_CALLS_MOST)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{tiers}.{calls}: {%u}, must be at most %u", out->calls,
                               RT_TIER_CALLS_MOST);
    if ((uint32_t)out->level > OPJIT_LEVEL_PEAK)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{tiers}.{level}: {%u}, must be an opjit_level (0 to %u)",
                               (unsigned)out->level, (unsigned)OPJIT_LEVEL_PEAK);
    if (out->executor != NULL && out->executor->submit == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{tiers}.{executor.submit}: {NULL}");
    return OPJIT_OK;
}

static opjit_status maker_new(opjit_context *context, opjit_describe_fn describe, void *user,
                              const opjit_compile_options *options, const opjit_tiers *tiers, maker **out,
                              opjit_error *error)
{
    rt_core *const core = context->core;
    maker *m = opjit_rt_allocate(&core->allocator, sizeof *m, _Alignof(maker));

    if (m == NULL)
        return opjit_rt_no_memory(error);
    memset(m, 0, sizeof *m);
    m->core = opjit_rt_core_retain(core);
    m->context = context;
    m->describe = describe;
    m->user = user;
    m->release = tiers->release;
    if (tiers->executor != NULL)
        m->executor = *tiers->executor;
    opjit_rt_lock_init(&m->making, &core->process);
    opjit_rt_lock_init(&m->lock, &core->process);
    const opjit_status status =
        opjit_fe_request_copy(core, NULL, &(DML_GRAPH_DESC){ .NodeCount = 0 }, options, &m->request, error);
    if (tiers->level != OPJIT_LEVEL_AUTO)
        m->request.options.level = tiers->level;
    if (status == OPJIT_OK)
        *out = m;
    else
        maker_free(m);
    return status;
}

opjit_status opjit_compile_tiered(opjit_context *context, const opjit_dim *dims, uint32_t dim_count,
                                  opjit_describe_fn describe, void *user, const opjit_compile_options *options,
                                  const opjit_tiers *tiers, opjit_kernel **out_kernel, opjit_error *error)
{
    opjit_kernel *kernel;
    opjit_tiers known;
    maker *m = NULL;

    opjit_rt_error_clear(error);
    if (out_kernel == NULL)
        return opjit_rt_refuse_null(error, "out_kernel");
    *out_kernel = NULL;
    if (tiers == NULL)
        return opjit_rt_refuse_null(error, "tiers");
    TRY(read_tiers(tiers, &known, error));
    TRY(opjit_compile_dynamic(context, dims, dim_count, describe, user, options, &kernel, error));
    opjit_status status = maker_new(context, describe, user, options, &known, &m, error);
    if (status == OPJIT_OK) {
        const rt_tiers_desc desc = { known.kernels, known.calls, m, want, close, destroy };
        status = opjit_rt_kernel_set_tiers(&kernel, &desc, error);
        if (status != OPJIT_OK)
            maker_free(m);
    }
    if (status == OPJIT_OK)
        *out_kernel = kernel;
    else
        opjit_kernel_release(kernel);
    return status;
}

/* --- kernels that are asked for ----------------------------------------------------------------------------------- */

opjit_status opjit_kernel_specialize(opjit_kernel *kernel, const uint64_t *dims, uint32_t dim_count, opjit_error *error)
{
    uint64_t own[OPJIT_MAX_DIMS], sizes[OPJIT_MAX_RANK], bytes;
    opjit_status status;
    opjit_job *job;
    order *o;

    opjit_rt_error_clear(error);
    if (kernel == NULL || dims == NULL)
        return opjit_rt_refuse_null(error, kernel == NULL ? "kernel" : "dims");
    rt_tiers *const tiers = opjit_rt_kernel_tiers(kernel);
    if (tiers == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{kernel}: {no tiers}, must be one of opjit_compile_tiered");
    memcpy(own, dims, (dim_count < OPJIT_MAX_DIMS ? dim_count : OPJIT_MAX_DIMS) * sizeof *own);
    TRY(opjit_kernel_sizes(kernel, own, dim_count, 0, sizes, &bytes, error)); /* checks them */
    maker *m = opjit_rt_tiers_user(tiers);
    if (is_making(m))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{!kernel}this thread is making a kernel of one size for it already");
    TRY(order_new(m, tiers, own, dim_count, &o, error));
    TRY(submit(m, o, NULL, &job, error));
    status = opjit_job_wait(job, NULL, error);
    opjit_job_release(job);
    return status;
}
