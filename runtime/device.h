/* device.h - devices that run code of their own kind on memory of their own: NVIDIA GPUs, by the CUDA driver's
 * functions. Knows texts of code, entries by name and launches; what they compute is nobody's business here.  The
 * driver's library is loaded when asked for and never linked to; once loaded it stays. All functions may be called
 * from any thread, but for destroying what others use.  They leave the thread's current CUDA context as it was.
 * After a fork the child has no devices. */
#ifndef OPJIT_RUNTIME_DEVICE_H
#define OPJIT_RUNTIME_DEVICE_H

#include "runtime/target.h"

typedef struct rt_driver rt_driver;           /* the library and its functions */
typedef struct rt_device rt_device;           /* one device, opened */
typedef struct rt_device_code rt_device_code; /* one text of code, loaded */

/* path is absolute, or NULL: $OPJIT_CUDA_DRIVER (absolute; not for set-user-id programs), else the system's
 * libcuda.so.1. UNAVAILABLE, and why, where there is no driver, no device or a driver that is too old. */
opjit_status opjit_rt_driver_open(const opjit_allocator *a, const char *path, rt_driver **out, opjit_error *error);
void opjit_rt_driver_close(rt_driver *driver); /* NULL is fine; devices may go on */
uint32_t opjit_rt_driver_devices(const rt_driver *driver);
uint32_t opjit_rt_driver_version(const rt_driver *driver); /* 13000: 13.0 */

typedef struct rt_device_info {
    char name[96];
    uint32_t major, minor; /* compute capability: 9.0 is sm_90 */
    uint32_t processors;   /* multiprocessors */
    uint32_t shared_bytes; /* shared memory that a block can have */
    uint64_t memory_bytes;
} rt_device_info;
opjit_status opjit_rt_driver_info(const rt_driver *driver, uint32_t index, rt_device_info *out, opjit_error *error);

/* name: "cuda:N", or "cuda" for cuda:0. */
opjit_status opjit_rt_device_open(const rt_driver *driver, const char *name, rt_device **out, opjit_error *error);
void opjit_rt_device_close(rt_device *device); /* after its code and memory; NULL is fine */
const rt_device_info *opjit_rt_device_info(const rt_device *device);

/* The best target that the device runs code for; UNSUPPORTED where it is too old for all. */
opjit_status opjit_rt_device_target(const rt_device *device, rt_target *out, opjit_error *error);

/* --- memory: addresses that mean something on the device only ---------------------------------------------------- */
opjit_status opjit_rt_device_allocate(rt_device *device, uint64_t bytes, uint64_t *out_address, opjit_error *error);
void opjit_rt_device_free(rt_device *device, uint64_t address); /* waits for all streams; 0 is fine */
/* In the order of the stream (NULL: the default one).  write and read return when host memory may be used again. */
opjit_status opjit_rt_device_write(rt_device *device, void *stream, uint64_t to, const void *from, uint64_t bytes,
                                   opjit_error *error);
opjit_status opjit_rt_device_read(rt_device *device, void *stream, void *to, uint64_t from, uint64_t bytes,
                                  opjit_error *error);
opjit_status opjit_rt_device_fill(rt_device *device, void *stream, uint64_t to, uint8_t value, uint64_t bytes,
                                  opjit_error *error);

/* --- streams: work in order, beside that of other streams -------------------------------------------------------- */
opjit_status opjit_rt_stream_create(rt_device *device, void **out, opjit_error *error);
void opjit_rt_stream_destroy(rt_device *device, void *stream);
/* Waits for what was put into it.  What a kernel did wrong is said here, at the latest. */
opjit_status opjit_rt_stream_wait(rt_device *device, void *stream, opjit_error *error);

/* --- code -------------------------------------------------------------------------------------------------------- */
/* Text of code (PTX), compiled by the driver, and its entries by name.  The same text with the same entries is compiled
 * once as long as somebody has it.  CODEGEN with the driver's words where it refuses the text. */
opjit_status opjit_rt_device_load(rt_device *device, const char *text, const char *const *entries, uint32_t entry_count,
                                  rt_device_code **out, opjit_error *error);
void opjit_rt_device_unload(rt_device_code *code); /* after its launches; NULL is fine */

typedef struct rt_launch {
    uint32_t entry; /* of the list given to load */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;  /* dynamic shared memory */
    void *const *arguments; /* a pointer to each; copied by the launch */
} rt_launch;
/* Puts launches into a stream, one after the other, and returns.  Which fails is said: "launch 2 of 3: ...". */
opjit_status opjit_rt_device_launch(rt_device_code *code, void *stream, const rt_launch *launches, uint32_t count,
                                    opjit_error *error);

#endif
