/* SPDX-License-Identifier: Apache-2.0 */
/* grid_device.c - one launch on a device, through the driver's functions. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/device.h"
#include "tests/machines/grid.h"

static const rt_devices *devices;

/* Opened by the first launch of a process, because a child of fork has no devices. */
static opjit_status open_device(rt_device **out, opjit_error *error)
{
    static rt_device *device;
    const char *const name = getenv("OPJIT_TEST_DEVICE");
    *out = device;
    if (device != NULL)
        return OPJIT_OK;
    rt_driver *driver;
    TRY(opjit_rt_devices(&devices, error));
    TRY(devices->driver_open(&opjit_rt_default_allocator, name, NULL, &driver, error));
    const opjit_status status = devices->open(driver, name, &device, error);
    devices->driver_close(driver);
    *out = device;
    return status;
}

static opjit_status allocate(void *device, uint64_t bytes, uint64_t *out, opjit_error *error)
{
    return devices->allocate(device, bytes, out, error);
}

static void release(void *device, uint64_t base)
{
    devices->free(device, base);
}

static opjit_status write(void *device, uint64_t base, const void *bytes, uint64_t size, opjit_error *error)
{
    return devices->write(device, NULL, base, bytes, size, error);
}

static opjit_status read(void *device, void *bytes, uint64_t base, uint64_t size, opjit_error *error)
{
    return devices->read(device, NULL, bytes, base, size, error);
}

static opjit_status launch(void *device, const grid_launch *l, opjit_error *error)
{
    uint64_t values[GRID_ARGUMENTS];
    void *pointers[GRID_ARGUMENTS];
    rt_device_code *code;
    const rt_launch one = { .grid = { (uint32_t)l->info.grid, 1, 1 }, .block = { l->info.block, 1, 1 } };
    const rt_launches how = { .launches = &one, .count = 1, .arguments = pointers };
    const rt_device_text text = { l->s->code, strlen(l->s->code) + 1, &l->s->name, 1 };
    test_grid_arguments(l, values, pointers);
    TRY(devices->load(device, &text, &code, error));
    opjit_status status = devices->launch(code, NULL, &how, error);
    if (status == OPJIT_OK)
        status = devices->stream_wait(device, NULL, error);
    devices->unload(code);
    return status;
}

opjit_status test_grid_run_on_device(grid_launch *l, opjit_error *error)
{
    grid_memory memory = { NULL, allocate, release, write, read, launch };
    rt_device *device;
    rt_target best;
    if (open_device(&device, error) != OPJIT_OK)
        return error->status = OPJIT_INTERNAL; /* UNAVAILABLE would excuse this case, and then all of them */
    TRY(opjit_rt_device_target(devices->name(device), devices->info(device), &best, error));
    if (best.level < l->s->target->level)
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "%s runs no code for %s", best.text, l->s->target->text);
    memory.device = device;
    return test_grid_run_copied(&memory, l, error);
}
