/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_list.c - `opjit ops`, `opjit targets`, `opjit version`: what this build holds. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/table.h"
#include "frontend/frontend.h"
#include "opjit_build_id.h"
#include "runtime/device/device.h"
#include "runtime/target/target.h"

/* --- ops ---------------------------------------------------------------------------------------------------------- */
const char *opjit_cli_kind_text(const op_field *field)
{
    static const char *const names[] = {
        [OP_INPUT] = "input tensor",
        [OP_OUTPUT] = "output tensor",
        [OP_INPUTS] = "input tensors",
        [OP_OUTPUTS] = "output tensors",
        [OP_DTYPE] = "data type",
        [OP_SCALAR] = "scalar of the data type above",
        [OP_INT] = "INT32",
        [OP_UINT] = "UINT32",
        [OP_FLOAT] = "FLOAT32",
        [OP_BOOL] = "true or false",
        [OP_ENUM] = "name",
        [OP_UINTS] = "UINT32 array",
        [OP_INTS] = "INT32 array",
        [OP_FLOATS] = "FLOAT32 array",
        [OP_SCALE_BIAS] = "Scale and Bias",
        [OP_ACTIVATION] = "fused activation",
    };
    return names[field->kind];
}

static void put_fields(const op_def *def)
{
    printf("  fields:\n");
    for (uint32_t i = 0; i < def->field_count; i++) {
        const op_field *const f = &def->fields[i];
        printf("    %-20s %s%s%s\n", f->name, opjit_cli_kind_text(f), (f->flags & OP_OPTIONAL) != 0 ? ", optional" : "",
               (f->flags & OP_LATE) != 0 ? ", may be bound at the call" : "");
        for (const op_enum_name *n = f->kind == OP_ENUM ? f->enumeration->names : NULL; n != NULL && n->name != NULL;
             n++)
            printf("    %-20s   %s\n", "", n->name + strlen(f->enumeration->prefix));
    }
}

static void put_support(const op_def *def)
{
    printf("  ranks and types:\n");
    for (uint32_t i = 0; i < def->support_count; i++) {
        const op_support *const s = &def->support[i];
        if (s->level != 0)
            printf("    from feature level %u.%u", (unsigned)(s->level >> 12), (unsigned)(s->level >> 8 & 15));
        else
            printf("    without a feature level");
        printf(", %s: rank %u to %u:", s->field != NULL ? s->field : "all tensors", (unsigned)s->rank_min,
               (unsigned)s->rank_max);
        for (int t = DML_TENSOR_DATA_TYPE_FLOAT32; t <= DML_TENSOR_DATA_TYPE_INT4; t++) {
            if ((s->types >> t & 1) != 0)
                printf(" %s", opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)t));
        }
        printf("\n");
    }
}

static int count_bits(uint32_t set)
{
    int count = 0;
    for (; set != 0; set &= set - 1)
        count++;
    return count;
}

/* Name, types of the tensor that has most of them, without a feature level, formula. */
static void put_line(const op_def *def)
{
    char types[FE_TYPES_TEXT];
    uint32_t most = 0;

    for (uint32_t i = 0; i < def->field_count && def->fields[i].kind <= OP_OUTPUTS; i++) {
        const uint32_t own = opjit_fe_op_support(def, def->fields[i].name, 0)->types;
        most = count_bits(own) > count_bits(most) ? own : most;
    }
    opjit_fe_types_text(most, types);
    printf("%-43s %-40s %s\n", def->name, types, def->formula);
}

static void put_detail(const op_def *def)
{
    printf("%s (DML_OPERATOR_%s, number %d, since feature level %u.%u)\n  %s\n", def->name, def->name, (int)def->type,
           (unsigned)(def->introduced >> 12), (unsigned)(def->introduced >> 8 & 15), def->formula);
    put_fields(def);
    put_support(def);
}

/* Whether the name begins at text or anywhere behind, in any case. */
static bool is_in(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (; *text != '\0'; text++)
        if (strncasecmp(text, name, length) == 0)
            return true;
    return length == 0;
}

/* The operator of that name, else all that it is a part of; "": all there are. */
int opjit_cli_ops(const cli_options *options)
{
    static const char prefix[] = "DML_OPERATOR_";
    const char *name = options->argument_count != 0 ? options->arguments[0] : "";
    const op_def *def, *exact = NULL;
    uint32_t found = 0;
    char meant[FE_SUGGEST_TEXT];
    opjit_error error;
    if (strncasecmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    for (uint32_t i = 0; (def = opjit_fe_op_at(i)) != NULL; i++)
        exact = strcasecmp(def->name, name) == 0 ? def : exact;
    if (exact != NULL && !options->json) {
        put_detail(exact);
        return EXIT_DONE;
    }
    for (uint32_t i = 0; (def = opjit_fe_op_at(i)) != NULL; i++) {
        if (exact != NULL ? def != exact : !is_in(def->name, name))
            continue;
        if (options->json)
            opjit_cli_put_op_json(def, found == 0);
        else
            put_line(def);
        found++;
    }
    if (found == 0) {
        opjit_rt_error_set(&error, OPJIT_NOT_FOUND, "the operator %.80s is not in this build%s", name,
                           opjit_cli_near_operator(name, strlen(name), meant));
        return opjit_cli_complain(NULL, NULL, &error);
    }
    if (options->json)
        printf("\n]\n");
    return EXIT_DONE;
}

/* --- targets and version ------------------------------------------------------------------------------------------ */
/* A line, or an object of the array "devices". */
static void put_device(const rt_devices *devices, const rt_driver *driver, const char *kind, uint32_t index, bool json,
                       uint32_t *count)
{
    const uint32_t version = devices->driver_version(driver);
    const bool cuda = strcmp(kind, "cuda") == 0;
    const unsigned major = version / (cuda ? 1000 : 10000000),
                   minor = cuda ? version % 1000 / 10 : version / 100000 % 100;
    rt_device_info info;
    opjit_error error;
    const bool good = devices->driver_info(driver, index, &info, &error) == OPJIT_OK;

    if (json) {
        printf("%s\n    { \"device\": \"%s:%u\", ", (*count)++ == 0 ? "" : ",", kind, index);
        printf(good ? "\"name\": " : "\"unusable\": ");
        opjit_cli_put_string(stdout, good ? info.name : error.message);
        if (good)
            printf(", \"arch\": \"%s\", \"memory_bytes\": %llu, \"driver\": \"%u.%u\"", info.arch,
                   (unsigned long long)info.memory_bytes, major, minor);
        printf(" }");
    } else if (!good) {
        printf("device  %s:%u: unusable, %s\n", kind, index, error.message);
    } else {
        printf("device  %s:%u %s, %s, %.1f GiB, driver %u.%u\n", kind, index, info.name, info.arch,
               (double)info.memory_bytes / 1073741824, major, minor);
    }
}

/* count: of the array so far. */
static void put_devices(const char *kind, bool json, uint32_t *count)
{
    const rt_devices *devices;
    rt_driver *driver;
    opjit_error error;

    if (opjit_rt_devices(&devices, &error) != OPJIT_OK ||
        devices->driver_open(&opjit_rt_default_allocator, kind, NULL, &driver, &error) != OPJIT_OK) {
        if (json) {
            printf("%s\n    { \"device\": \"%s\", \"absent\": ", (*count)++ == 0 ? "" : ",", kind);
            opjit_cli_put_string(stdout, error.message);
            printf(" }");
        } else {
            printf("device  %s: absent, %s\n", kind, error.message);
        }
        return;
    }
    for (uint32_t i = 0; i < devices->driver_devices(driver); i++)
        put_device(devices, driver, kind, i, json, count);
    devices->driver_close(driver);
}

static void put_target(const char *name, uint32_t index, bool json)
{
    rt_target target;
    opjit_error error;
    const bool here = opjit_rt_target_parse(name, &target, &error) == OPJIT_OK &&
                      opjit_rt_target_runs_here(&target, &error) == OPJIT_OK;
    if (!json) {
        printf("named   %-20s %s\n", name, here ? "runs here" : error.message);
        return;
    }
    printf("%s\n    { \"name\": \"%s\", \"runs_here\": %s", index == 0 ? "" : ",", name, here ? "true" : "false");
    if (!here) {
        printf(", \"reason\": ");
        opjit_cli_put_string(stdout, error.message);
    }
    printf(" }");
}

int opjit_cli_targets(const cli_options *options)
{
    rt_target host;
    char name[64];
    uint32_t devices = 0;
    opjit_rt_target_host(&host);
    printf(options->json ? "{\n  \"host\": \"%s\",\n  \"targets\": [" : "host    %s\n", host.text);
    for (uint32_t i = 0; opjit_rt_target_name(i, name, sizeof name); i++)
        put_target(name, i, options->json);
    if (options->json)
        printf("\n  ],\n  \"devices\": [");
    put_devices("cuda", options->json, &devices);
    put_devices("hip", options->json, &devices);
    if (options->json)
        printf("\n  ]\n}\n");
    return EXIT_DONE;
}

int opjit_cli_version(const cli_options *options)
{
    const bool has_codegen = opjit_fe_has_codegen();
    if (options->json)
        printf("{ \"opjit\": \"%s\", \"codegen\": %s, \"llvm\": \"%s\", \"build\": \"%s\", \"numerics\": %u, "
               "\"kernel_abi\": %u }\n",
               opjit_version(), has_codegen ? "true" : "false", OPJIT_LLVM_VERSION, OPJIT_BUILD_ID, OPJIT_NUMERICS,
               OPJIT_KERNEL_ABI);
    else
        printf("opjit %s\nLLVM %s (%s, %s)\nnumerics %u\nkernel ABI %u\n", opjit_version(), OPJIT_LLVM_VERSION,
               has_codegen ? "of the codegen library that belongs to this build" : "built without code generation",
               OPJIT_BUILD_ID, OPJIT_NUMERICS, OPJIT_KERNEL_ABI);
    return EXIT_DONE;
}
