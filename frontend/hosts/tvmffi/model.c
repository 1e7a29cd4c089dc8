/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - a kernel of a model's text, by the program's reader.  Nothing of the model's is a file. */
#include <stdio.h>
#include <string.h>

#include "frontend/cli/model/model.h"
#include "frontend/hosts/tvmffi/host.h"

/* By its name, or the only one. */
static opjit_status find(cli_model *m, const char *name, cli_dispatchable **out)
{
    *out = NULL;
    if (name == NULL && m->dispatchable_count == 1)
        *out = m->dispatchables;
    for (uint32_t i = 0; name != NULL && i < m->dispatchable_count; i++) {
        const json_value *const json = m->dispatchables[i].json;
        if (json->key_length == strlen(name) && memcmp(json->key, name, json->key_length) == 0)
            *out = &m->dispatchables[i];
    }
    if (*out != NULL)
        return OPJIT_OK;
    if (name == NULL)
        return opjit_cli_fail(m, m->root, OPJIT_INVALID_ARGUMENT, "has %u dispatchables: name one of them",
                              m->dispatchable_count);
    return opjit_cli_fail(m, m->root, OPJIT_NOT_FOUND, "has no dispatchable \"%.60s\"", name);
}

static opjit_status read(cli_model *m, const char *text, size_t size, const char *name, opjit_kernel **out)
{
    cli_dispatchable *d;
    opjit_rt_bytes_append(&m->text, text, size);
    opjit_rt_bytes_zero_end(&m->text);
    if (m->text.failed)
        return opjit_cli_no_memory(m, NULL);
    TRY(opjit_cli_model_parse(m));
    TRY(opjit_cli_read_resources(m));
    TRY(opjit_cli_read_dispatchables(m));
    TRY(find(m, name, &d));
    TRY(opjit_cli_compile(m, d, NULL));
    opjit_kernel_retain(d->kernel);
    *out = d->kernel;
    return OPJIT_OK;
}

opjit_status tvm_read_json(opjit_context *context, const char *text, size_t size, const char *name, opjit_kernel **out,
                           opjit_error *error)
{
    opjit_status status;
    cli_model m;
    opjit_cli_model_init(&m, "model", context);
    m.no_files = true;
    status = read(&m, text, size, name, out);
    if (status != OPJIT_OK) {
        *error = m.report.error;
        error->status = status;
        snprintf(error->message, sizeof error->message, "model%s%.90s: %.150s", m.report.place[0] != '\0' ? ": " : "",
                 m.report.place, m.report.error.message);
    }
    opjit_cli_model_free(&m);
    return status;
}
