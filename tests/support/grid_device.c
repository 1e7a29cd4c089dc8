/* grid_device.c - one launch on a device, by the driver's functions: buffers between guards there and back again. */
#include <opjit/abi.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device.h"
#include "tests/support/grid.h"

enum { GUARD = 256, PATTERN = 0xa5 };

/* One range on the device and beside it here: guard, where it lies, guard. */
typedef struct copy {
    uint64_t base;
    uint8_t *bytes;
    uint64_t size, begin; /* begin: of the range */
} copy;

static const rt_devices *devices;

/* Opened by the first launch of a process: a child of fork has no devices. */
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

static bool follows(const grid_launch *l, uint32_t i)
{
    return i < l->range_count && l->ranges[i].follows;
}

/* At an odd multiple of its alignment. */
static opjit_status send(rt_device *device, grid_launch *l, uint32_t i, copy *c, opjit_error *error)
{
    grid_range *r = &l->ranges[i];
    c->begin = GUARD + r->align;
    c->size = c->begin + (follows(l, i + 1) ? r[1].behind + r[1].bytes : r->bytes) + GUARD;
    c->bytes = malloc((size_t)c->size);
    if (c->bytes == NULL)
        return opjit_rt_no_memory(error);
    memset(c->bytes, PATTERN, (size_t)c->size);
    memcpy(c->bytes + c->begin, r->host, (size_t)r->bytes);
    TRY(devices->allocate(device, c->size, &c->base, error));
    r->at = c->base + c->begin;
    return devices->write(device, NULL, c->base, c->bytes, c->size, error);
}

static bool is_pattern(const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (bytes[i] != PATTERN)
            return false;
    return true;
}

static opjit_status take_back(rt_device *device, const grid_launch *l, uint32_t i, const copy *c, opjit_error *error)
{
    const grid_range *r = &l->ranges[i];
    const uint8_t *const here = c->bytes + c->begin;
    TRY(devices->read(device, NULL, c->bytes, c->base, c->size, error));
    if (!is_pattern(c->bytes, c->begin) || !is_pattern(c->bytes + c->size - GUARD, GUARD))
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "%s wrote beside %s", l->s->name, r->what);
    if (!r->writable && memcmp(here, r->host, (size_t)r->bytes) != 0)
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "%s wrote to %s that it reads", l->s->name, r->what);
    if (r->writable)
        memcpy(r->host, here, (size_t)r->bytes);
    return OPJIT_OK;
}

static opjit_status launch(rt_device *device, const grid_launch *l, opjit_error *error)
{
    uint64_t values[GRID_ARGUMENTS];
    void *pointers[GRID_ARGUMENTS];
    rt_device_code *code;
    const rt_launch one = { .grid = { (uint32_t)l->info.grid, 1, 1 }, .block = { l->info.block, 1, 1 } };
    const rt_launches how = { .launches = &one, .count = 1, .arguments = pointers };
    const rt_device_text text = { l->s->ptx, strlen(l->s->ptx) + 1, &l->s->name, 1 };
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
    copy copies[GRID_BUFFERS + 2] = { 0 };
    rt_device *device;
    rt_target best;
    if (open_device(&device, error) != OPJIT_OK)
        return error->status = OPJIT_INTERNAL; /* UNAVAILABLE excuses a case, and would excuse all of them */
    TRY(opjit_rt_device_target(devices->name(device), devices->info(device), &best, error));
    if (best.level < l->s->target->level)
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "%s runs no code for %s", best.text, l->s->target->text);
    opjit_status status = OPJIT_OK;
    for (uint32_t i = 0; i < l->range_count && status == OPJIT_OK; i++)
        if (!follows(l, i))
            status = send(device, l, i, &copies[i], error);
        else
            l->ranges[i].at = l->ranges[i - 1].at + l->ranges[i].behind;
    if (status == OPJIT_OK)
        status = launch(device, l, error);
    for (uint32_t i = 0; i < l->range_count && status == OPJIT_OK; i++)
        if (!follows(l, i))
            status = take_back(device, l, i, &copies[i], error);
    for (uint32_t i = 0; i < l->range_count; i++) {
        devices->free(device, copies[i].base);
        free(copies[i].bytes);
    }
    return status;
}
