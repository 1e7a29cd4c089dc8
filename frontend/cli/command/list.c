/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - `opjit targets`, `opjit version`: what this build makes code for, and which one it is. */
#include <opjit/device.h>
#include <opjit/reflect.h>
#include <stdio.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/text/table.h"

/* A line, or an object of the array "devices". */
static void put_device(const char *kind, uint32_t index, bool json, uint32_t *count)
{
    opjit_device_info info = OPJIT_DEVICE_INFO_INIT;
    opjit_error error;
    const bool good = opjit_device_get_info(kind, index, &info, &error) == OPJIT_OK;

    if (json) {
        printf("%s\n    { \"device\": \"%s:%u\", ", (*count)++ == 0 ? "" : ",", kind, index);
        printf(good ? "\"name\": " : "\"unusable\": ");
        opjit_cli_put_string(stdout, good ? info.name : error.message);
        if (good)
            printf(", \"arch\": \"%s\", \"memory_bytes\": %llu, \"driver\": \"%u.%u\"", info.arch,
                   (unsigned long long)info.memory_bytes, (unsigned)info.driver_major, (unsigned)info.driver_minor);
        printf(" }");
    } else if (!good) {
        printf("device  %s:%u: unusable, %s\n", kind, index, error.message);
    } else {
        printf("device  %s:%u %s, %s, %.1f GiB, driver %u.%u\n", kind, index, info.name, info.arch,
               (double)info.memory_bytes / 1073741824, (unsigned)info.driver_major, (unsigned)info.driver_minor);
    }
}

/* count: of the array so far. */
static void put_devices(const char *kind, bool json, uint32_t *count)
{
    uint32_t devices;
    opjit_error error;

    if (opjit_device_count(kind, &devices, &error) != OPJIT_OK) {
        if (json) {
            printf("%s\n    { \"device\": \"%s\", \"absent\": ", (*count)++ == 0 ? "" : ",", kind);
            opjit_cli_put_string(stdout, error.message);
            printf(" }");
        } else {
            printf("device  %s: absent, %s\n", kind, error.message);
        }
        return;
    }
    for (uint32_t i = 0; i < devices; i++)
        put_device(kind, i, json, count);
}

static void put_target(const char *name, uint32_t index, bool json)
{
    opjit_error error;
    const bool here = opjit_target_runs_here(name, &error) == OPJIT_OK;
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
    char host[OPJIT_TARGET_TEXT], name[OPJIT_TARGET_TEXT];
    uint32_t devices = 0;
    opjit_error error;
    if (opjit_target_get_text(NULL, host, &error) != OPJIT_OK)
        return opjit_cli_complain(NULL, NULL, &error);
    printf(options->json ? "{\n  \"host\": \"%s\",\n  \"targets\": [" : "host    %s\n", host);
    for (uint32_t i = 0; opjit_target_name_at(i, name) != 0; i++)
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
    opjit_build_info b = OPJIT_BUILD_INFO_INIT;
    opjit_error error;
    if (opjit_get_build_info(&b, &error) != OPJIT_OK)
        return opjit_cli_complain(NULL, NULL, &error);
    if (options->json)
        printf("{ \"opjit\": \"%s\", \"codegen\": %s, \"llvm\": \"%s\", \"build\": \"%s\", \"numerics\": %u, "
               "\"kernel_abi\": %u }\n",
               b.version, b.has_codegen != 0 ? "true" : "false", b.llvm, b.id, (unsigned)b.numerics,
               (unsigned)b.kernel_abi);
    else
        printf("opjit %s\nLLVM %s (%s, %s)\nnumerics %u\nkernel ABI %u\n", b.version, b.llvm,
               b.has_codegen != 0 ? "of the codegen library that belongs to this build"
                                  : "built without code generation",
               b.id, (unsigned)b.numerics, (unsigned)b.kernel_abi);
    return EXIT_DONE;
}
