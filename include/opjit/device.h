/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/device.h - kernels on a GPU: memory there, copies, streams.
 *
 *     opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
 *     options.device = "cuda:0";                                            // or "hip:0": opjit_device_count
 *     opjit_context_create(&options, &context, &error);
 *     opjit_compile_operator(context, op, NULL, &kernel, &error);           // code for that GPU
 *     opjit_device_allocate(context, bytes, &binding.data, &error);
 *     opjit_device_write(context, NULL, binding.data, from, bytes, &error);
 *     opjit_kernel_call(kernel, &call, &error);                             // puts it into call.stream and returns
 *     opjit_device_read(context, NULL, to, binding.data, bytes, &error);    // waits
 *
 * A context with a device (opjit_context_options.device) makes kernels that run there.
 *   - Bindings are addresses on the device, at multiples of OPJIT_GPU_ALIGNMENT: of opjit_device_allocate, or of the
 *     driver's own functions in the device's primary context (cuMemAlloc, cudaMalloc, hipMalloc).
 *   - A call puts the kernel into its stream and returns.  The stream is one of opjit_stream_create or the driver's
 *     own (CUstream, hipStream_t); NULL is the default stream.  A failure while the kernel runs is reported by the next
 *     function that waits for the stream, unless another function of the driver reports it first.
 *   - The first call of a kernel brings its code and constants to the device.
 *   - A workspace that a call does not bring belongs to the stream and stays until opjit_stream_destroy, or until
 *     context and kernels are gone.  So a stream of the driver's own has to be empty when the application destroys it.
 *     The stream that each thread has of its own (CU_STREAM_PER_THREAD) needs a workspace in the call.
 *   - The last release of a kernel waits for the device.
 *   - Context and kernels share the device.  Memory and streams are to be freed before the context is destroyed.
 *   - A child of fork can use no device that it inherits: drivers don't allow it.
 * All of this is in libopjit-device, which is loaded where a context names a device; drivers are loaded, never linked.
 *
 * Every function here may be called from any thread; each comment ends with [threads, since].  Errors that all of them
 * have: UNSUPPORTED (the context has no device), INVALID_ARGUMENT (NULL), UNAVAILABLE (the driver failed; the message
 * has its words). */
#ifndef OPJIT_DEVICE_H
#define OPJIT_DEVICE_H

#include <opjit/opjit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- devices ------------------------------------------------------------------------------------------------------ */
typedef struct opjit_device_info {
    uint32_t struct_size;  /* set by its _INIT macro */
    uint32_t processors;   /* multiprocessors, compute units */
    uint64_t memory_bytes; /* of the device's own memory */
    uint32_t driver_major; /* of the driver's version, 13 of CUDA 13.0 */
    uint32_t driver_minor; /* likewise, 0 */
    char name[96];         /* as its vendor calls it */
    char arch[32];         /* "sm_90", "gfx90a" */
} opjit_device_info;
#define OPJIT_DEVICE_INFO_INIT { sizeof(opjit_device_info), 0, 0, 0, 0, "", "" }

/* How many devices of a kind, "cuda" or "hip", this machine has.  Neither this function nor the next needs a context;
 * both load the kind's driver.
 * Expected failures: INVALID_ARGUMENT: there is no such kind; UNAVAILABLE: no driver, no device, or the driver is too
 * old.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_device_count(const char *kind, uint32_t *out_count, opjit_error *error);
/* What the device kind:index is, as a context would name it.
 * Also: NOT_FOUND behind the last; UNAVAILABLE: the driver can't say.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_device_get_info(const char *kind, uint32_t index,
                                                             opjit_device_info *out_info, opjit_error *error);

/* --- memory ------------------------------------------------------------------------------------------------------- */
/* Memory of `bytes` bytes on the device in *out_memory, uninitialised, at a multiple of OPJIT_GPU_ALIGNMENT; the caller
 * frees it.
 * Also: OUT_OF_MEMORY.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_device_allocate(opjit_context *context, uint64_t bytes, void **out_memory,
                                                             opjit_error *error);

/* Frees memory of opjit_device_allocate, after waiting for the device's streams; NULL is fine.  [any thread, 0.1] */
OPJIT_API void opjit_device_free(opjit_context *context, void *memory);

/* Copies `bytes` bytes from the host's memory `from` to the device's memory `to`, behind all that stream (NULL: the
 * default one) holds, and returns when that is done.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_device_write(opjit_context *context, void *stream, void *to,
                                                          const void *from, uint64_t bytes, opjit_error *error);

/* Copies `bytes` bytes from the device's memory `from` to the host's memory `to`, likewise.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_device_read(opjit_context *context, void *stream, void *to,
                                                         const void *from, uint64_t bytes, opjit_error *error);

/* --- streams ------------------------------------------------------------------------------------------------------ */
/* A stream in *out_stream that runs beside all others, the default one too; the caller destroys it.  It is the driver's
 * CUstream or hipStream_t.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_stream_create(opjit_context *context, void **out_stream,
                                                           opjit_error *error);

/* Waits for the stream and destroys it, and frees its workspace; NULL is fine.  [any thread, 0.1] */
OPJIT_API void opjit_stream_destroy(opjit_context *context, void *stream);

/* Returns when all that the stream (NULL: the default one) holds is done, with the failure of a kernel that ran there.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_stream_wait(opjit_context *context, void *stream, opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
