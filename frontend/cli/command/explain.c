/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - `opjit explain`: what each dispatchable is, how its IR changes pass by pass, and what the kernel
 * moves. Works without code generation. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "frontend/cli/command/late.h"
#include "frontend/cli/command/onnx.h"
#include "frontend/cli/command/steps.h"
#include "frontend/cli/text/number.h"

/* --- the descriptor ----------------------------------------------------------------------------------------------- */
static void put_numbers(rt_bytes *out, const char *name, const uint64_t *numbers, uint32_t count)
{
    opjit_rt_bytes_printf(out, "%s[", name);
    for (uint32_t i = 0; i < count; i++)
        opjit_rt_bytes_printf(out, "%s%" PRIu64, i != 0 ? ", " : "", numbers[i]);
    opjit_rt_bytes_printf(out, "]");
}

static void put_tensor(rt_bytes *out, const char *name, const opjit_tensor_info *t)
{
    if (t->rank == 0)
        return;
    opjit_rt_bytes_printf(out, "  %s: %s ", name, opjit_data_type_name(t->dtype));
    put_numbers(out, "", t->sizes, t->rank);
    put_numbers(out, ", strides ", t->strides, t->rank);
    opjit_rt_bytes_printf(out, ", %" PRIu64 " bytes%s\n", t->bytes,
                          (t->flags & DML_TENSOR_FLAG_OWNED_BY_DML) != 0 ? ", OWNED_BY_DML" : "");
}

static const char *enum_name(const cli_enum *names, int32_t value)
{
    for (const cli_enum_name *n = names->names; n->name != NULL; n++) {
        if (n->value == value)
            return n->name + strlen(names->prefix);
    }
    return "?";
}

static void put_size_2d(rt_bytes *out, const uint8_t *at)
{
    DML_SIZE_2D size;
    memcpy(&size, at, sizeof size);
    opjit_rt_bytes_printf(out, "%u x %u", (unsigned)size.Width, (unsigned)size.Height);
}

/* A field that is one value.  type: that of the OPJIT_FIELD_DATA_TYPE before it. */
static void put_value(rt_bytes *out, const cli_field *field, const uint8_t *at, DML_TENSOR_DATA_TYPE type)
{
    int32_t number;
    memcpy(&number, at, sizeof number);
    opjit_rt_bytes_printf(out, "  %s: ", field->name);
    switch (field->kind) {
    case OPJIT_FIELD_DATA_TYPE:
        opjit_rt_bytes_printf(out, "%s", opjit_data_type_name((DML_TENSOR_DATA_TYPE)number));
        break;
    case OPJIT_FIELD_SCALAR: opjit_cli_print_element(out, type, at); break;
    case OPJIT_FIELD_INT32: opjit_cli_print_element(out, DML_TENSOR_DATA_TYPE_INT32, at); break;
    case OPJIT_FIELD_UINT32: opjit_cli_print_element(out, DML_TENSOR_DATA_TYPE_UINT32, at); break;
    case OPJIT_FIELD_FLOAT32: opjit_cli_print_element(out, DML_TENSOR_DATA_TYPE_FLOAT32, at); break;
    case OPJIT_FIELD_SIZE_2D: put_size_2d(out, at); break;
    case OPJIT_FIELD_BOOL: opjit_rt_bytes_printf(out, "%s", number != 0 ? "true" : "false"); break;
    default: opjit_rt_bytes_printf(out, "%s", enum_name(field->enumeration, number)); break;
    }
    opjit_rt_bytes_u8(out, '\n');
}

static void put_operator(rt_bytes *out, const cli_operator *d)
{
    DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_UNKNOWN;
    opjit_rt_bytes_printf(out, "%s\n  %s\n", d->def->name, d->def->formula);
    for (uint32_t i = 0; i < d->input_count; i++)
        put_tensor(out, d->inputs[i].name, &d->inputs[i]);
    for (uint32_t i = 0; i < d->output_count; i++)
        put_tensor(out, d->outputs[i].name, &d->outputs[i]);
    for (uint32_t i = 0; i < d->def->field_count; i++) {
        const cli_field *const field = &d->def->fields[i];
        const uint8_t *const at = (const uint8_t *)d->desc + field->offset;
        if (field->kind == OPJIT_FIELD_DATA_TYPE)
            memcpy(&type, at, sizeof type);
        if (field->kind == OPJIT_FIELD_DATA_TYPE || field->kind == OPJIT_FIELD_SCALAR ||
            field->kind == OPJIT_FIELD_SIZE_2D || (field->kind >= OPJIT_FIELD_INT32 && field->kind <= OPJIT_FIELD_ENUM))
            put_value(out, field, at, type);
    }
}

static void put_name(rt_bytes *out, const json_value *member)
{
    opjit_rt_bytes_append(out, member->key, member->key_length);
}

/* One end of an edge: a string of the model. */
static void put_end(rt_bytes *out, const json_value *end)
{
    opjit_rt_bytes_append(out, end->text, end->length);
}

static void put_graph(rt_bytes *out, const cli_dispatchable *d)
{
    const json_value *node = d->graph->nodes->first, *edges = opjit_cli_json_get(d->json, "edges");
    opjit_rt_bytes_printf(out, "graph of %u nodes\n", d->graph->count);
    for (uint32_t i = 0; i < d->input_count; i++)
        put_tensor(out, d->ports[i].name, d->ports[i].tensor);
    for (uint32_t i = 0; i < d->output_count; i++)
        put_tensor(out, d->ports[d->input_count + i].name, d->ports[d->input_count + i].tensor);
    for (uint32_t i = 0; i < d->graph->count; i++, node = node->next) {
        opjit_rt_bytes_printf(out, "node ");
        put_name(out, node);
        opjit_rt_bytes_printf(out, ": ");
        if (d->graph->operators[i].op != NULL)
            put_operator(out, &d->graph->operators[i]);
        else
            opjit_rt_bytes_printf(out, "constant\n");
    }
    for (const json_value *edge = edges == NULL ? NULL : edges->first; edge != NULL; edge = edge->next) {
        opjit_rt_bytes_printf(out, "edge ");
        put_end(out, edge->first);
        opjit_rt_bytes_printf(out, " -> ");
        put_end(out, edge->first->next);
        opjit_rt_bytes_u8(out, '\n');
    }
}

static void put_descriptor(rt_bytes *out, const cli_dispatchable *d)
{
    opjit_rt_bytes_printf(out, "dispatchable ");
    put_name(out, d->json);
    opjit_rt_bytes_printf(out, ": ");
    if (d->graph != NULL)
        put_graph(out, d);
    else
        put_operator(out, &d->own);
}

/* --- passes and kernel -------------------------------------------------------------------------------------------- */
typedef struct passes {
    rt_bytes *out;
    rt_bytes before; /* text of the last pass, without its first line, which names the pass */
} passes;

static void put_pass(void *user, const char *stage, const char *text)
{
    passes *const p = user;
    if (strcmp(stage, "plan") == 0) {
        opjit_rt_bytes_printf(p->out, "plan:\n%s", text);
        return;
    }
    const char *const rest = strchr(text, '\n') != NULL ? strchr(text, '\n') : text;
    const char *const steps = strstr(text, " ; "); /* a comment at the end of the first line */
    const size_t length = strlen(rest);
    const bool same = p->before.size == length && memcmp(p->before.data, rest, length) == 0;
    opjit_rt_bytes_printf(p->out, "after %s%s\n", stage, same ? ": as before" : ":");
    if (!same && steps != NULL && steps < rest) {
        opjit_rt_bytes_printf(p->out, "steps: %.*s\n", (int)(rest - steps - 3), steps + 3);
        opjit_rt_bytes_append(p->out, text, (size_t)(steps - text));
        opjit_rt_bytes_append(p->out, rest, length);
    } else if (!same) {
        opjit_rt_bytes_append(p->out, text, strlen(text));
    }
    p->before.size = 0;
    opjit_rt_bytes_append(&p->before, rest, length);
}

/* Bytes of the elements of a tensor, repeated ones once. */
static uint64_t bytes_of(const opjit_tensor_info *t)
{
    uint64_t elements = t->rank != 0;
    for (uint32_t d = 0; d < t->rank; d++)
        elements *= t->sizes[d] == 1 || t->strides[d] != 0 ? t->sizes[d] : 1;
    return cli_bytes(t->dtype, elements);
}

/* What the nodes would move if each were a kernel of its own. */
static void put_node_by_node(rt_bytes *out, const cli_graph *graph, const opjit_kernel_info *info)
{
    uint64_t read = 0, written = 0;
    for (uint32_t i = 0; i < graph->count; i++) {
        const cli_operator *const op = &graph->operators[i]; /* a constant has no tensors */
        for (uint32_t k = 0; k < op->input_count; k++)
            read += bytes_of(&op->inputs[k]);
        for (uint32_t k = 0; k < op->output_count; k++)
            written += bytes_of(&op->outputs[k]);
    }
    opjit_rt_bytes_printf(
        out, "  bytes moved: %" PRIu64 "; node by node: %" PRIu64 " (%" PRIu64 " written, %" PRIu64 " read)\n",
        info->bytes_written + info->bytes_read, written + read, written, read);
}

/* What a call does. */
static void put_calls(rt_bytes *out, const opjit_kernel_info *info)
{
    const opjit_variant_info *const variants =
        (const opjit_variant_info *)(const void *)((const uint8_t *)info->meta + info->meta->variant_info);
    const uint32_t steps = variants[info->meta->variants - 1].steps; /* the last one is for buffers of their own */
    uint64_t input_bytes = 0;
    for (uint32_t i = 0; i < info->inputs; i++)
        input_bytes += info->buffers[i].bytes;
    opjit_rt_bytes_printf(out, "kernel for %s\n", info->target);
    opjit_rt_bytes_printf(
        out, "  a call writes %" PRIu64 " bytes and reads %" PRIu64 " of %" PRIu64 " input bytes, in %u step%s\n",
        info->bytes_written, info->bytes_read, input_bytes, steps, steps == 1 ? "" : "s");
}

/* What a kernel needs beside its buffers. */
static void put_memory(rt_bytes *out, const opjit_kernel_info *info)
{
    if (info->unproven_bounds != 0)
        opjit_rt_bytes_printf(out, "  not proven to stay inside of memory: %" PRIu64 "\n", info->unproven_bounds);
    if (info->workspace_bytes != 0)
        opjit_rt_bytes_printf(out, "  workspace: %" PRIu64 " bytes\n", info->workspace_bytes);
    if (info->kept_bytes != 0)
        opjit_rt_bytes_printf(out, "  kept: %" PRIu64 " bytes, made of constants once, in %u step%s\n",
                              info->kept_bytes, info->meta->once_steps, info->meta->once_steps == 1 ? "" : "s");
}

static void put_kernel(rt_bytes *out, const cli_dispatchable *d, const opjit_kernel_info *info)
{
    put_calls(out, info);
    if (d->graph != NULL)
        put_node_by_node(out, d->graph, info);
    put_memory(out, info);
    for (uint32_t i = info->inputs; i < info->buffer_count && i < info->inputs + info->outputs; i++) {
        for (uint32_t k = 0; k < info->inputs && k < 32; k++) {
            if ((info->buffers[i].alias_inputs >> k & 1) != 0)
                opjit_rt_bytes_printf(out, "  in place: %s may be the memory of %s\n",
                                      (const char *)info->meta + info->buffers[i].name,
                                      (const char *)info->meta + info->buffers[k].name);
        }
    }
    opjit_cli_picture(out, d);
}

static opjit_status explain(cli_model *m, cli_dispatchable *d, const cli_options *options, cli_late *late)
{
    opjit_compile_options compile = opjit_cli_compile_options(options);
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    rt_bytes out;
    passes p = { .out = &out };
    opjit_plan *plan = NULL;
    opjit_status status;
    TRY(opjit_cli_late_of(late, m, d, &compile));
    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    opjit_rt_bytes_init(&p.before, &opjit_rt_default_allocator);
    put_descriptor(&out, d);
    status = d->graph != NULL
                 ? opjit_graph_explain(m->context, &d->graph->desc, &compile, put_pass, &p, &m->report.error)
                 : opjit_operator_explain(m->context, d->own.op, &compile, put_pass, &p, &m->report.error);
    if (status == OPJIT_OK)
        status = d->graph != NULL ? opjit_plan_graph(m->context, &d->graph->desc, &compile, &plan, &m->report.error)
                                  : opjit_plan_operator(m->context, d->own.op, &compile, &plan, &m->report.error);
    if (status == OPJIT_OK)
        status = opjit_plan_get_info(plan, &info, &m->report.error);
    compile.flags |= OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE; /* the picture is what a kernel writes */
    if (status == OPJIT_OK)
        status = opjit_cli_compile(m, d, &compile);
    if (status == OPJIT_OK) {
        put_kernel(&out, d, &info);
        opjit_rt_bytes_u8(&out, '\n');
        if (!opjit_cli_put(&out))
            status = opjit_cli_no_output(&m->report.error);
    }
    opjit_plan_destroy(plan);
    opjit_rt_bytes_free(&p.before);
    opjit_rt_bytes_free(&out);
    return opjit_cli_at_dispatchable(m, d, status);
}

static opjit_status explain_model(cli_model *m, const cli_options *options)
{
    bool found = options->dispatchable == NULL;
    char meant[CLI_SUGGEST_TEXT];
    cli_late late;
    TRY(opjit_cli_late_begin(&late, options, &m->arena, &m->report.error));
    TRY(opjit_cli_model_load(m));
    TRY(opjit_cli_read_resources(m));
    TRY(opjit_cli_read_dispatchables(m));
    for (uint32_t i = 0; i < m->dispatchable_count; i++) {
        cli_dispatchable *const d = &m->dispatchables[i];
        if (options->dispatchable != NULL && strcmp(options->dispatchable, d->json->key) != 0)
            continue;
        found = true;
        TRY(explain(m, d, options, &late));
    }
    if (!found)
        return opjit_cli_fail(m, opjit_cli_json_get(m->root, "dispatchables"), OPJIT_NOT_FOUND,
                              "there is no dispatchable \"%.60s\"%s", options->dispatchable,
                              opjit_cli_near_dispatchable(m, options->dispatchable, meant));
    return opjit_cli_late_end(&late, &m->report.error);
}

/* Its inputs and outputs, then what `explain` shows of any graph. */
static opjit_status explain_onnx(const cli_options *options, cli_onnx *m, rt_bytes *out)
{
    opjit_compile_options compile = opjit_cli_compile_options(options);
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    passes p = { .out = out };
    const DML_GRAPH_DESC *desc;
    TRY(opjit_cli_onnx_open(options, options->arguments[0], NULL, true, m));
    TRY(opjit_graph_get_desc(opjit_model_graph(m->model), &desc, &m->error));
    opjit_rt_bytes_printf(out, "model of %u operators\n", desc->NodeCount);
    opjit_cli_onnx_put_dims(m, out);
    for (uint32_t i = 0; i < opjit_model_input_count(m->model) + opjit_model_output_count(m->model); i++) {
        const uint32_t inputs = opjit_model_input_count(m->model);
        opjit_model_port port = OPJIT_MODEL_PORT_INIT;
        TRY(i < inputs ? opjit_model_get_input(m->model, i, &port, &m->error)
                       : opjit_model_get_output(m->model, i - inputs, &port, &m->error));
        opjit_rt_bytes_printf(out, "  %s %s %s [", i < inputs ? "input" : "output", port.name,
                              opjit_data_type_name(port.dtype));
        for (uint32_t d = 0; d < port.rank; d++)
            opjit_rt_bytes_printf(out, "%s%" PRIu64, d == 0 ? "" : ",", port.sizes[d]);
        opjit_rt_bytes_printf(out, port.binding < 0 ? "], a constant or not read\n" : "]\n");
    }
    opjit_rt_bytes_init(&p.before, &opjit_rt_default_allocator);
    opjit_status status = opjit_graph_explain(m->context, desc, &compile, put_pass, &p, &m->error);
    opjit_rt_bytes_free(&p.before);
    if (status == OPJIT_OK)
        status = opjit_plan_graph(m->context, desc, &compile, &m->plan, &m->error);
    if (status == OPJIT_OK)
        status = opjit_plan_get_info(m->plan, &info, &m->error);
    if (status == OPJIT_OK) {
        opjit_cli_put_steps(out, m->plan, desc);
        put_calls(out, &info);
        put_memory(out, &info);
    }
    return status;
}

static int explain_onnx_model(const cli_options *options)
{
    cli_onnx m;
    rt_bytes out;
    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    opjit_status status = explain_onnx(options, &m, &out);
    if (status == OPJIT_OK && !opjit_cli_put(&out))
        status = opjit_cli_no_output(&m.error);
    if (status != OPJIT_OK)
        opjit_cli_complain(m.path, NULL, &m.error);
    opjit_rt_bytes_free(&out);
    opjit_cli_onnx_close(&m);
    return status == OPJIT_OK ? EXIT_DONE : EXIT_FAILED;
}

int opjit_cli_explain(const cli_options *options)
{
    if (opjit_cli_is_onnx(options->arguments[0]))
        return explain_onnx_model(options);
    return opjit_cli_with_model(options, explain_model);
}
