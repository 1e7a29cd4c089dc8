/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - the library of device drivers, libopjit-device.so, as a table (rt_devices): NVIDIA's GPUs through the CUDA
 * driver API, AMD's through HIP.  It knows code, entries by name and launches, and nothing of what kernels compute.
 * opjit loads it with the first device; the library loads a vendor's driver when asked for one of its devices, and
 * never unloads it.
 *
 * Any thread may call any function, except that nothing may be destroyed while others use it.  Functions restore the
 * thread's current context.  After a fork the child has no devices.  The functions below have linkage in that library
 * and in tests only. */
#ifndef OPJIT_RUNTIME_DEVICE_DEVICE_H
#define OPJIT_RUNTIME_DEVICE_DEVICE_H

#include "runtime/target/target.h"

typedef struct rt_driver rt_driver;           /* a vendor's driver and its functions */
typedef struct rt_device rt_device;           /* an open device */
typedef struct rt_device_code rt_device_code; /* loaded code */

/* Opens the driver of device, which is "cuda" or "hip" or one of these with ":N".  path is absolute; NULL:
 * $OPJIT_CUDA_DRIVER or $OPJIT_HIP_DRIVER (absolute; ignored in set-user-id programs), else the system's library.
 * UNAVAILABLE, with the reason, where there is no driver, no device or the driver is too old. */
opjit_status opjit_rt_driver_open(const opjit_allocator *a, const char *device, const char *path, rt_driver **out,
                                  opjit_error *error);
void opjit_rt_driver_close(rt_driver *driver); /* NULL is fine; open devices stay usable */
uint32_t opjit_rt_driver_devices(const rt_driver *driver);
uint32_t opjit_rt_driver_version(const rt_driver *driver); /* in the driver's own counting: CUDA's 13000 is 13.0 */

typedef struct rt_device_info {
    char name[96], arch[32]; /* "sm_90", "gfx90a" */
    uint32_t processors;     /* multiprocessors, compute units */
    uint32_t shared_bytes;   /* limit of shared memory per block */
    uint64_t memory_bytes;
} rt_device_info;
opjit_status opjit_rt_driver_info(const rt_driver *driver, uint32_t index, rt_device_info *out, opjit_error *error);

/* name: a device of the driver's kind; the default number is 0. */
opjit_status opjit_rt_device_open(const rt_driver *driver, const char *name, rt_device **out, opjit_error *error);
void opjit_rt_device_close(rt_device *device); /* after its code and memory; NULL is fine */
const rt_device_info *opjit_rt_device_info(const rt_device *device);
const char *opjit_rt_device_name(const rt_device *device); /* "cuda:0" */

/* --- memory: addresses that are valid on the device only --------------------------------------------------------- */
opjit_status opjit_rt_device_allocate(rt_device *device, uint64_t bytes, uint64_t *out_address, opjit_error *error);
void opjit_rt_device_free(rt_device *device, uint64_t address); /* waits for all streams; 0 is fine */
/* In the order of the stream (NULL: the default one); both return once the copy is done. */
opjit_status opjit_rt_device_write(rt_device *device, void *stream, uint64_t to, const void *from, uint64_t bytes,
                                   opjit_error *error);
opjit_status opjit_rt_device_read(rt_device *device, void *stream, void *to, uint64_t from, uint64_t bytes,
                                  opjit_error *error);

/* --- streams: each is an ordered queue of work; streams are independent of each other ---------------------------- */
opjit_status opjit_rt_stream_create(rt_device *device, void **out, opjit_error *error);
void opjit_rt_stream_destroy(rt_device *device, void *stream); /* waits for it */
/* Waits for the work in the stream.  A fault inside a kernel is reported here at the latest. */
opjit_status opjit_rt_stream_wait(rt_device *device, void *stream, opjit_error *error);

/* --- code -------------------------------------------------------------------------------------------------------- */
typedef struct rt_device_text {
    const void *data; /* CUDA: PTX, ending with a NUL, which the driver compiles; HIP: a code object */
    size_t bytes;
    const char *const *entries;
    uint32_t entry_count;
} rt_device_text;
/* Loads code.  The same code with the same entries is loaded once for as long as somebody holds it.  CODEGEN, with the
 * driver's own words, where the driver refuses the code. */
opjit_status opjit_rt_device_load(rt_device *device, const rt_device_text *text, rt_device_code **out,
                                  opjit_error *error);
void opjit_rt_device_unload(rt_device_code *code); /* the last reference waits for the device; NULL is fine */

typedef struct rt_launch {
    uint32_t entry; /* index into the list given to load */
    uint32_t grid[3], block[3];
} rt_launch;
/* What the launches of one call have in common. */
typedef struct rt_launches {
    const rt_launch *launches;
    uint32_t count;
    void **arguments;         /* a pointer per argument; copied by the launch */
    uint64_t *workspace;      /* one of the arguments, filled in unless workspace_bytes is 0 */
    uint64_t workspace_bytes; /* bytes of memory that calls in the stream use one after the other */
} rt_launches;
/* Puts the launches into a stream, in order, and returns.  A failure names its launch: "stage 2 of 3: ...". */
opjit_status opjit_rt_device_launch(rt_device_code *code, void *stream, const rt_launches *l, opjit_error *error);

/* --- the library (device.c) --------------------------------------------------------------------------------------- */
#define RT_DEVICES_ABI 1u
typedef struct rt_devices {
    uint32_t abi, size;
    char version[16]; /* opjit_version() of the library: structures of other versions may differ */
    opjit_status (*driver_open)(const opjit_allocator *, const char *, const char *, rt_driver **, opjit_error *);
    void (*driver_close)(rt_driver *);
    uint32_t (*driver_devices)(const rt_driver *);
    uint32_t (*driver_version)(const rt_driver *);
    opjit_status (*driver_info)(const rt_driver *, uint32_t, rt_device_info *, opjit_error *);
    opjit_status (*open)(const rt_driver *, const char *, rt_device **, opjit_error *);
    void (*close)(rt_device *);
    const rt_device_info *(*info)(const rt_device *);
    const char *(*name)(const rt_device *);
    opjit_status (*allocate)(rt_device *, uint64_t, uint64_t *, opjit_error *);
    void (*free)(rt_device *, uint64_t);
    opjit_status (*write)(rt_device *, void *, uint64_t, const void *, uint64_t, opjit_error *);
    opjit_status (*read)(rt_device *, void *, void *, uint64_t, uint64_t, opjit_error *);
    opjit_status (*stream_create)(rt_device *, void **, opjit_error *);
    void (*stream_destroy)(rt_device *, void *);
    opjit_status (*stream_wait)(rt_device *, void *, opjit_error *);
    opjit_status (*load)(rt_device *, const rt_device_text *, rt_device_code **, opjit_error *);
    void (*unload)(rt_device_code *);
    opjit_status (*launch)(rt_device_code *, void *, const rt_launches *, opjit_error *);
} rt_devices;
typedef const rt_devices *(*rt_device_query_fn)(uint32_t abi);
OPJIT_API const rt_devices *opjit_device_query(uint32_t abi); /* NULL where abi is not RT_DEVICES_ABI */

/* Loads the library if necessary, found like the codegen library: $OPJIT_DEVICE, beside opjit, the configured
 * folder. */
opjit_status opjit_rt_devices(const rt_devices **out, opjit_error *error);
/* Finds the best target that the device runs code for; UNSUPPORTED where the device is too old or opjit generates no
 * code for its architecture. */
opjit_status opjit_rt_device_target(const char *device, const rt_device_info *info, rt_target *out, opjit_error *error);
/* Whether code for *target runs on a device whose best target is *best. */
bool opjit_rt_device_runs(const rt_target *best, const rt_target *target);

#endif
