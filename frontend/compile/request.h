/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - what is to be compiled later: copies of all that the caller lent. */
#ifndef OPJIT_FRONTEND_REQUEST_H
#define OPJIT_FRONTEND_REQUEST_H

#include <opjit/async.h>

#include "frontend/frontend.h"

typedef struct fe_request {
    rt_core *core;
    rt_arena arena;
    opjit_operator *op;            /* retained; NULL: a graph */
    DML_GRAPH_DESC graph;          /* with operators retained */
    opjit_compile_options options;
    bool is_named;                 /* fe_ask.is_named */
    rt_constant **shared;          /* by node, of the arena: data of large constants; NULL: no graph */
} fe_request;

/* Reads a description of any version, and refuses what opjit_compile_operator or _graph would, as far as it follows
 * from the description.  out->graph is a built graph's, too; *ask says how it is to be asked for. */
opjit_status opjit_fe_request_read(opjit_context *context, const opjit_async_desc *given, opjit_async_desc *out,
                                   fe_ask *ask, opjit_error *error);
/* Copies a request that has been read.  *out is to be freed in any case. */
opjit_status opjit_fe_request_copy(rt_core *core, opjit_operator *op, const DML_GRAPH_DESC *graph,
                                   const opjit_compile_options *options, fe_request *out, opjit_error *error);
/* Once more is fine. */
void opjit_fe_request_free(fe_request *request);

/* --- jobs (async.c) ----------------------------------------------------------------------------------------------- */
/* What a job does that is no compile of a request.  cancel: set by whoever cancels it. */
typedef opjit_status (*fe_work_fn)(void *user, opjit_context *context, atomic_bool *cancel, opjit_error *error);
/* Submits a job of the context, which does the work, then calls done.  The context may be gone: CANCELLED.  executor:
 * NULL: whoever waits for the job runs it.  The caller releases *out.  Where this fails, neither function is called. */
opjit_status opjit_fe_job_submit(rt_core *core, opjit_context *context, const opjit_async_executor *executor,
                                 fe_work_fn work, opjit_job_fn done, void *user, opjit_job **out, opjit_error *error);

#endif
