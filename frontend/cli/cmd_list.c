/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_list.c - `opjit targets`, `opjit version`: what this build makes code for, and which one it is. */
#include <stdio.h>
#include <string.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/table.h"
#include "opjit_build_id.h"
#include "runtime/device/device.h"
#include "runtime/target/target.h"

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
    const bool has_codegen = opjit_cli_has_codegen();
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
