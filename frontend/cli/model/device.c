/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - `opjit run` on a GPU: every resource has a twin in the device's memory, which dispatches work on;
 * what is printed or written comes back first. */
#include <string.h>

#include <opjit/device.h>

#include "frontend/cli/model/device.h"

/* The twin of [host, host + bytes). */
typedef struct cli_twin {
    const uint8_t *host;
    uint64_t bytes;
    void *there;
} cli_twin;

/* A binding that begins where kernels on a device can't: its bytes are moved here before the dispatch, and back
 * after it. */
typedef struct cli_aside {
    const cli_command *command;
    uint8_t *host; /* the same bytes here, by way of which they are moved */
    uint64_t bytes;
    void *there, *twin;
} cli_aside;

struct cli_device {
    cli_twin *twins;
    cli_aside *asides;
    uint32_t count, aside_count;
};

static opjit_status add_twin(cli_model *m, cli_device *d, const json_value *json, const uint8_t *host, uint64_t bytes)
{
    opjit_error *const error = &m->report.error;
    cli_twin *const twin = &d->twins[d->count];

    *twin = (cli_twin){ host, bytes, NULL };
    TRY(opjit_cli_at(m, json, opjit_device_allocate(m->context, bytes, &twin->there, error)));
    d->count++;
    return opjit_cli_at(m, json, opjit_device_write(m->context, NULL, twin->there, host, bytes, error));
}

static opjit_status add_twins(cli_model *m, cli_device *d)
{
    for (uint32_t i = 0; i < m->resource_count; i++) {
        const cli_resource *r = &m->resources[i];
        if (r->data != NULL)
            TRY(add_twin(m, d, r->json, r->data, r->bytes));
    }
    for (uint32_t i = 0; i < m->dispatchable_count; i++) {
        const cli_dispatchable *const one = &m->dispatchables[i];
        for (uint32_t k = 0; one->constants != NULL && k < one->input_count; k++)
            if (one->constants[k].copy != NULL)
                TRY(add_twin(m, d, one->json, one->constants[k].copy, one->constants[k].bytes));
    }
    return OPJIT_OK;
}

/* One place for the bindings of a command that begin at the same byte, which are one in place. */
static opjit_status put_aside(cli_model *m, cli_device *d, const cli_command *c, opjit_binding *binding, void *twin)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < d->aside_count; i++) {
        if (d->asides[i].command != c || d->asides[i].twin != twin)
            continue;
        binding->data = d->asides[i].there;
        return OPJIT_OK;
    }
    cli_aside *const aside = &d->asides[d->aside_count];
    for (uint32_t i = 0; i < c->binding_count; i++)
        if (c->bindings[i].data == binding->data && c->bindings[i].bytes > bytes)
            bytes = c->bindings[i].bytes;
    *aside = (cli_aside){ c, binding->data, bytes, NULL, twin };
    TRY(opjit_cli_at(m, c->json, opjit_device_allocate(m->context, bytes, &aside->there, &m->report.error)));
    d->aside_count++;
    binding->data = aside->there;
    return OPJIT_OK;
}

/* Makes the bindings of a dispatch those of the device. */
static opjit_status bind(cli_model *m, cli_device *d, cli_command *c)
{
    for (uint32_t i = 0; i < c->binding_count; i++) {
        const uint8_t *const host = c->bindings[i].data;
        const cli_twin *twin = d->twins;
        while (host < twin->host || host >= twin->host + twin->bytes)
            twin++; /* every binding lies in a resource or a constant */
        const uint64_t offset = (uint64_t)(host - twin->host);
        void *const there = (uint8_t *)twin->there + offset;
        if (offset % OPJIT_GPU_ALIGNMENT != 0)
            TRY(put_aside(m, d, c, &c->bindings[i], there));
        else
            c->bindings[i].data = there;
    }
    return OPJIT_OK;
}

opjit_status opjit_cli_device_open(cli_model *m, cli_device **out)
{
    uint32_t most = m->resource_count, bindings = 0;

    *out = NULL;
    for (uint32_t i = 0; i < m->command_count; i++)
        bindings += m->commands[i].binding_count;
    for (uint32_t i = 0; i < m->dispatchable_count; i++)
        most += m->dispatchables[i].input_count;
    cli_device *const d = ARENA_NEW(&m->arena, cli_device);
    if (d == NULL || (d->twins = ARENA_ARRAY(&m->arena, cli_twin, (size_t)most + 1)) == NULL ||
        (d->asides = ARENA_ARRAY(&m->arena, cli_aside, (size_t)bindings + 1)) == NULL)
        return opjit_rt_no_memory(&m->report.error);
    *out = d;
    TRY(add_twins(m, d));
    for (uint32_t i = 0; i < m->command_count; i++)
        if (m->commands[i].kind == CLI_DISPATCH)
            TRY(bind(m, d, &m->commands[i]));
    return OPJIT_OK;
}

/* Between the twin and the aside, one way or the other. */
static opjit_status move(cli_model *m, const cli_aside *aside, void *to, const void *from)
{
    opjit_error *const error = &m->report.error;

    TRY(opjit_device_read(m->context, NULL, aside->host, from, aside->bytes, error));
    return opjit_device_write(m->context, NULL, to, aside->host, aside->bytes, error);
}

opjit_status opjit_cli_device_dispatch(cli_model *m, const cli_device *d, const cli_command *c)
{
    opjit_call call = OPJIT_CALL_INIT;
    opjit_status status = OPJIT_OK;

    call.bindings = c->bindings;
    call.binding_count = c->binding_count;
    for (uint32_t i = 0; i < d->aside_count && status == OPJIT_OK; i++)
        if (d->asides[i].command == c)
            status = move(m, &d->asides[i], d->asides[i].there, d->asides[i].twin);
    if (status == OPJIT_OK)
        status = opjit_kernel_call(c->dispatchable->kernel, &call, &m->report.error);
    for (uint32_t i = 0; i < d->aside_count && status == OPJIT_OK; i++)
        if (d->asides[i].command == c)
            status = move(m, &d->asides[i], d->asides[i].twin, d->asides[i].there);
    return opjit_cli_at(m, c->json, status);
}

opjit_status opjit_cli_device_fetch(cli_model *m, const cli_device *d, const cli_command *c)
{
    for (uint32_t i = 0; i < d->count; i++)
        if (d->twins[i].host == c->resource->data)
            return opjit_cli_at(m, c->json,
                                opjit_device_read(m->context, NULL, c->resource->data, d->twins[i].there,
                                                  c->resource->bytes, &m->report.error));
    return OPJIT_OK; /* without storage */
}

void opjit_cli_device_close(cli_model *m, cli_device *d)
{
    for (uint32_t i = 0; d != NULL && i < d->count; i++)
        opjit_device_free(m->context, d->twins[i].there);
    for (uint32_t i = 0; d != NULL && i < d->aside_count; i++)
        opjit_device_free(m->context, d->asides[i].there);
}
