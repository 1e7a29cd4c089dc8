/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - the public functions that say which devices there are. */
#include <opjit/device.h>

#include "runtime/device/device.h"

static const rt_struct info_sizes = { "opjit_device_info", { RT_SIZE_TO(opjit_device_info, arch) } };
RT_STRUCT_ENDS_WITH(opjit_device_info, arch);

static opjit_status open_driver(const char *kind, const rt_devices **out_devices, rt_driver **out, opjit_error *error)
{
    TRY(opjit_rt_devices(out_devices, error));
    return (*out_devices)->driver_open(&opjit_rt_default_allocator, kind, NULL, out, error);
}

opjit_status opjit_device_count(const char *kind, uint32_t *out_count, opjit_error *error)
{
    const rt_devices *devices;
    rt_driver *driver;

    opjit_rt_error_clear(error);
    if (kind == NULL || out_count == NULL)
        return opjit_rt_refuse_null(error, kind == NULL ? "kind" : "out_count");
    *out_count = 0;
    TRY(open_driver(kind, &devices, &driver, error));
    *out_count = devices->driver_devices(driver);
    devices->driver_close(driver);
    return OPJIT_OK;
}

/* The driver's own counting of versions: CUDA's 13020 is 13.2, HIP's 60342131 is 6.3. */
static void put_version(opjit_device_info *info, const char *kind, uint32_t version)
{
    const bool cuda = strncmp(kind, "cuda", 4) == 0;

    info->driver_major = version / (cuda ? 1000 : 10000000);
    info->driver_minor = cuda ? version % 1000 / 10 : version / 100000 % 100;
}

static opjit_status read_info(const rt_devices *devices, const rt_driver *driver, const char *kind, uint32_t index,
                              opjit_device_info *out, opjit_error *error)
{
    const uint32_t count = devices->driver_devices(driver);
    rt_device_info info;

    if (index >= count)
        return opjit_rt_refuse(error, OPJIT_NOT_FOUND, "{argument} {index}: {%u}, must be below %u (%s devices)", index,
                               count, kind);
    TRY(devices->driver_info(driver, index, &info, error));
    out->processors = info.processors;
    out->memory_bytes = info.memory_bytes;
    put_version(out, kind, devices->driver_version(driver));
    _Static_assert(sizeof out->name == sizeof info.name && sizeof out->arch == sizeof info.arch, "the same texts");
    memcpy(out->name, info.name, sizeof out->name);
    memcpy(out->arch, info.arch, sizeof out->arch);
    return OPJIT_OK;
}

opjit_status opjit_device_get_info(const char *kind, uint32_t index, opjit_device_info *out_info, opjit_error *error)
{
    opjit_device_info info = OPJIT_DEVICE_INFO_INIT;
    const rt_devices *devices;
    rt_driver *driver;
    opjit_status status;

    opjit_rt_error_clear(error);
    if (kind == NULL || out_info == NULL)
        return opjit_rt_refuse_null(error, kind == NULL ? "kind" : "out_info");
    TRY(open_driver(kind, &devices, &driver, error));
    status = read_info(devices, driver, kind, index, &info, error);
    devices->driver_close(driver);
    return status == OPJIT_OK ? opjit_rt_struct_write(&info_sizes, out_info, &info, error) : status;
}
