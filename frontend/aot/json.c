/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - the description of a kernel that is compiled ahead of time, for programs: what the header tells people and
 * what the metadata tells the runtime. */
#include "frontend/aot/artifact.h"

#include <inttypes.h>
#include <opjit/opjit.h>

static void put_string(rt_bytes *out, const char *text)
{
    opjit_rt_bytes_u8(out, '"');
    for (; *text != '\0'; text++) {
        const uint8_t c = (uint8_t)*text;
        if (c == '"' || c == '\\')
            opjit_rt_bytes_printf(out, "\\%c", c);
        else if (c < 0x20)
            opjit_rt_bytes_printf(out, "\\u%04x", c);
        else
            opjit_rt_bytes_u8(out, c); /* names are UTF-8 */
    }
    opjit_rt_bytes_u8(out, '"');
}

static void put_numbers(rt_bytes *out, const char *key, const uint64_t *numbers, uint32_t count)
{
    opjit_rt_bytes_printf(out, ", \"%s\": ", key);
    put_list(out, numbers, count);
}

/* least: the alignment that every buffer needs. */
static void put_buffers(rt_bytes *out, const fe_shipped *k, const char *key, uint32_t first, uint32_t count,
                        uint32_t least)
{
    const opjit_kernel_meta *m = shipped_meta(k, 0);
    const opjit_buffer_info *infos = (const opjit_buffer_info *)(const void *)((const char *)m + m->buffer_info);

    opjit_rt_bytes_printf(out, "  \"%s\": [", key);
    for (uint32_t i = first; i < first + count; i++) {
        const opjit_buffer_info *info = &infos[i];
        uint64_t aliases[32];
        uint32_t alias_count = 0;
        for (uint32_t input = 0; input < 32; input++)
            if ((info->alias_inputs >> input & 1) != 0)
                aliases[alias_count++] = input;
        opjit_rt_bytes_printf(out, "%s\n    { \"name\": ", i == first ? "" : ",");
        put_string(out, meta_text(m, info->name));
        if (info->role != OPJIT_BUFFER_CONSTANT)
            opjit_rt_bytes_printf(out, ", \"argument\": \"%s\"", k->arguments[i].text);
        opjit_rt_bytes_printf(out, ", \"type\": \"%s\"", opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)info->dtype));
        put_numbers(out, "sizes", info->sizes, info->rank);
        put_numbers(out, "strides", info->strides, info->rank);
        opjit_rt_bytes_printf(out, ", \"bytes\": %" PRIu64 ", \"alignment\": %" PRIu32, info->bytes,
                              info->align > least ? info->align : least);
        if (info->role == OPJIT_BUFFER_OUTPUT)
            put_numbers(out, "may_be_input", aliases, alias_count);
        opjit_rt_bytes_printf(out, " }");
    }
    opjit_rt_bytes_printf(out, "%s],\n", count == 0 ? "" : "\n  ");
}

static void put_params(rt_bytes *out, const fe_shipped *k)
{
    const opjit_kernel_meta *m = shipped_meta(k, 0);
    const opjit_param_info *infos = (const opjit_param_info *)(const void *)((const char *)m + m->param_info);

    opjit_rt_bytes_printf(out, "  \"params\": [");
    for (uint32_t i = 0; i < m->params; i++) {
        opjit_rt_bytes_printf(out, "%s\n    { \"name\": ", i == 0 ? "" : ",");
        put_string(out, meta_text(m, infos[i].name));
        opjit_rt_bytes_printf(out, ", \"argument\": \"%s\", \"type\": \"%s\"",
                              k->arguments[m->inputs + m->outputs + i].text,
                              opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)infos[i].dtype));
        if (i >= m->params - m->dims)
            opjit_rt_bytes_printf(out, ", \"dimension\": true, \"least\": %" PRId64 ", \"most\": %" PRId64, infos[i].lo,
                                  infos[i].hi);
        opjit_rt_bytes_printf(out, " }");
    }
    opjit_rt_bytes_printf(out, "%s],\n", m->params == 0 ? "" : "\n  ");
}

/* How a stage is launched. */
static void put_launch(rt_bytes *out, const ir_func *f, uint32_t stage)
{
    ir_launch launch;
    ir_ref s = f->body;

    while (stage-- > 0)
        s = ir_at(f, s)->next;
    opjit_ir_launch_of(f, s, &launch);
    opjit_rt_bytes_printf(out,
                          ", \"grid\": [%" PRIu64 ", 1, 1], \"block\": [%" PRIu32
                          ", 1, 1], \"team\": %" PRIu32 ", \"static_shared_bytes\": %" PRIu32,
                          launch.grid, launch.block, launch.team, launch.shared);
}

/* The arguments of kernels for GPUs, in order. */
static void put_arguments(rt_bytes *out, const opjit_kernel_meta *m)
{
    opjit_rt_bytes_printf(out, "  \"arguments\": [");
    for (uint32_t i = 0; i < m->inputs + m->outputs; i++)
        opjit_rt_bytes_printf(out, "%s{ \"%s\": %" PRIu32 " }, ", i == 0 ? " " : "",
                              i < m->inputs ? "input" : "output", i < m->inputs ? i : i - m->inputs);
    for (uint32_t i = 0; i < m->params; i++)
        opjit_rt_bytes_printf(out, "{ \"param\": %" PRIu32 " }, ", i);
    opjit_rt_bytes_printf(out, "\"workspace\" ],\n");
}

static void put_version(rt_bytes *out, const fe_version *version, const opjit_kernel_meta *m)
{
    const opjit_step_info *steps = (const opjit_step_info *)(const void *)((const char *)m + m->step_info);
    const opjit_variant_info *variants = (const opjit_variant_info *)(const void *)((const char *)m + m->variant_info);

    opjit_rt_bytes_printf(out, "\n    { \"target\": ");
    put_string(out, meta_text(m, m->target));
    opjit_rt_bytes_printf(out,
                          ", \"shared_bytes\": %" PRIu64 ", \"scratch_bytes\": %" PRIu64 ",\n      \"variants\": [",
                          m->shared_size, m->scratch_size);
    for (uint32_t v = 0; v < m->variants; v++) {
        opjit_rt_bytes_printf(out, "%s\n        { \"alias_mask\": %" PRIu64 ", \"stages\": [", v == 0 ? "" : ",",
                              variants[v].alias_mask);
        for (uint32_t i = 0; i < variants[v].steps; i++) {
            const opjit_step_info *step = &steps[variants[v].first_step + i];
            opjit_rt_bytes_printf(out, "%s{ \"symbol\": \"%s_v%" PRIu32 "_s%" PRIu32 "\", \"extent\": %" PRIu64,
                                  i == 0 ? " " : ", ", version->unit->name, v, i, step->extent);
            if (rt_target_team(version->unit->options.target) > 0)
                put_launch(out, &version->unit->program.variants[v], i);
            else
                opjit_rt_bytes_printf(out, ", \"grain\": %" PRIu64, step->grain);
            opjit_rt_bytes_printf(out, " }");
        }
        opjit_rt_bytes_printf(out, " ] }");
    }
    opjit_rt_bytes_printf(out, "\n      ] }");
}

void opjit_fe_artifact_json(const opjit_artifact *a, const fe_shipped *k, rt_bytes *out)
{
    const opjit_kernel_meta *m = shipped_meta(k, 0);
    const bool is_gpu = rt_target_team(&a->targets[0]) > 0;
    const uint32_t least = is_gpu ? OPJIT_GPU_ALIGNMENT : 0;

    opjit_rt_bytes_printf(out, "{\n  \"name\": \"%s\"", k->name);
    if (!is_gpu)
        opjit_rt_bytes_printf(out, ", \"entry\": \"%s\", \"packed\": \"%s_packed\", \"runs_here\": \"%s_runs_here\"",
                              k->name, k->name, k->name);
    opjit_rt_bytes_printf(out, ",\n");
    opjit_rt_bytes_printf(out, "  \"opjit\": \"%d.%d.%d\", \"abi\": %u, \"numerics\": %u, \"level\": \"%s\",\n",
                          OPJIT_VERSION_MAJOR, OPJIT_VERSION_MINOR, OPJIT_VERSION_PATCH, m->abi, m->numerics,
                          m->level == OPJIT_LEVEL_PEAK ? "peak" : "quick");
    put_buffers(out, k, "inputs", 0, m->inputs, least);
    put_buffers(out, k, "outputs", m->inputs, m->outputs, least);
    put_buffers(out, k, "constants", m->inputs + m->outputs, m->constants, least);
    put_params(out, k);
    if (is_gpu)
        put_arguments(out, m);
    if (shipped_weights(k) != 0)
        opjit_rt_bytes_printf(out, "  \"weights_bytes\": %" PRIu64 ",\n", shipped_weights(k));
    opjit_rt_bytes_printf(out, "  \"workspace_bytes\": %" PRIu64 ", \"workspace_alignment\": %u,\n", k->workspace,
                          OPJIT_WORKSPACE_ALIGNMENT);
    opjit_rt_bytes_printf(out,
                          "  \"bytes_read\": %" PRIu64 ", \"bytes_written\": %" PRIu64 ", \"flops\": %" PRIu64
                          ", \"unproven_bounds\": %u,\n",
                          m->bytes_read, m->bytes_written, m->flops, m->unproven_bounds);
    opjit_rt_bytes_printf(out, "  \"versions\": [");
    for (uint32_t i = 0; i < a->target_count; i++) {
        if (i != 0)
            opjit_rt_bytes_u8(out, ',');
        put_version(out, &k->versions[i], shipped_meta(k, i));
    }
    opjit_rt_bytes_printf(out, "\n  ]\n}\n");
}
