/* SPDX-License-Identifier: Apache-2.0 */
/* ort.h - what the provider knows of ONNX Runtime: its own declarations of opaque objects, of the functions that it
 * calls (slots.def) and of the structures that it hands over.  There is no header of ONNX Runtime to build with; the
 * tests hold these against two versions of it. */
#ifndef OPJIT_HOSTS_ONNXRUNTIME_ORT_H
#define OPJIT_HOSTS_ONNXRUNTIME_ORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORT_VERSION = 23 }; /* of the interface: that of ONNX Runtime 1.23 */

enum { ORT_FAIL = 1, ORT_INVALID_ARGUMENT = 2 };           /* OrtErrorCode */
enum { ORT_DEVICE_CPU = 0 };                               /* OrtHardwareDeviceType */
enum { ORT_WARNING = 2, ORT_ERROR = 3 };                   /* OrtLoggingLevel */
enum { ORT_ALLOCATOR_DEVICE = 0, ORT_MEMORY_DEFAULT = 0 }; /* OrtAllocatorType, OrtMemType */
enum { ORT_BOOL = 9, ORT_STRING = 8 };                     /* ONNXTensorElementDataType, which is ONNX's */
enum ort_attribute_type {
    ORT_ATTRIBUTE_INT = 1,
    ORT_ATTRIBUTE_INTS,
    ORT_ATTRIBUTE_FLOAT,
    ORT_ATTRIBUTE_FLOATS,
    ORT_ATTRIBUTE_STRING,
    ORT_ATTRIBUTE_STRINGS,
    ORT_ATTRIBUTE_GRAPH,
    ORT_ATTRIBUTE_TENSOR
};
enum { ORT_OPTIMAL = 1, ORT_PREFER_RECOMPILATION = 2 }; /* OrtCompiledModelCompatibility */

typedef void (*ort_function)(void);
typedef struct ort_status ort_status; /* NULL: no error */
typedef struct ort_env ort_env;
typedef struct ort_logger ort_logger;
typedef struct ort_session ort_session;
typedef struct ort_session_options ort_session_options;
typedef struct ort_pairs ort_pairs; /* of texts */
typedef struct ort_value ort_value;
typedef struct ort_value_info ort_value_info;
typedef struct ort_type_info ort_type_info;
typedef struct ort_tensor_info ort_tensor_info;
typedef struct ort_memory_info ort_memory_info;
typedef struct ort_graph ort_graph;
typedef struct ort_node ort_node;
typedef struct ort_attribute ort_attribute;
typedef struct ort_kernel_context ort_kernel_context;
typedef struct ort_compute_context ort_compute_context;
typedef struct ort_support_info ort_support_info;
typedef struct ort_hardware_device ort_hardware_device;
typedef struct ort_ep_device ort_ep_device;
typedef struct ort_ep ort_ep;
typedef struct ort_ep_factory ort_ep_factory;
typedef struct ort_compute_info ort_compute_info;

typedef struct ort_api_base {
    const ort_function *(*GetApi)(uint32_t version); /* NULL: the host is older */
    const char *(*GetVersionString)(void);
} ort_api_base;

typedef struct ort_fusion_options {
    uint32_t version;
    bool drop_constant_initializers; /* the provider keeps what it needs of them */
} ort_fusion_options;

/* The functions of slots.def. */
typedef struct ort_api {
#define SLOT(index, result, name, parameters) result(*name) parameters;
#define EP_SLOT SLOT
#define EDITOR_SLOT SLOT
#include "frontend/hosts/onnxruntime/slots.def"
#undef EDITOR_SLOT
#undef EP_SLOT
#undef SLOT
} ort_api;

/* A fused group's functions. */
struct ort_compute_info {
    uint32_t version;
    ort_status *(*CreateState)(ort_compute_info *, ort_compute_context *, void **out_state);
    ort_status *(*Compute)(ort_compute_info *, void *state, ort_kernel_context *);
    void (*ReleaseState)(ort_compute_info *, void *state);
};

/* A provider in a session. */
struct ort_ep {
    uint32_t version;
    const char *(*GetName)(const ort_ep *);
    ort_status *(*GetCapability)(ort_ep *, const ort_graph *, ort_support_info *);
    ort_status *(*Compile)(ort_ep *, const ort_graph **graphs, const ort_node **fused, size_t count,
                           ort_compute_info **out, ort_node **out_context_nodes);
    void (*ReleaseNodeComputeInfos)(ort_ep *, ort_compute_info **, size_t count);
    ort_function others[7]; /* NULL: the host does what is usual */
    const char *(*GetCompiledModelCompatibilityInfo)(ort_ep *, const ort_graph *);
    ort_function more[8];
};

struct ort_ep_factory {
    uint32_t version;
    const char *(*GetName)(const ort_ep_factory *);
    const char *(*GetVendor)(const ort_ep_factory *);
    ort_status *(*GetSupportedDevices)(ort_ep_factory *, const ort_hardware_device *const *, size_t count,
                                       ort_ep_device **out, size_t most, size_t *out_count);
    ort_status *(*CreateEp)(ort_ep_factory *, const ort_hardware_device *const *, const ort_pairs *const *metadata,
                            size_t count, const ort_session_options *, const ort_logger *, ort_ep **out);
    void (*ReleaseEp)(ort_ep_factory *, ort_ep *);
    uint32_t (*GetVendorId)(const ort_ep_factory *);
    const char *(*GetVersion)(const ort_ep_factory *);
    ort_status *(*ValidateCompiledModelCompatibilityInfo)(ort_ep_factory *, const ort_hardware_device *const *,
                                                          size_t count, const char *info, int *out);
    ort_status *(*CreateAllocator)(ort_ep_factory *, const ort_memory_info *, const ort_pairs *, void **out);
    void (*ReleaseAllocator)(ort_ep_factory *, void *);
    ort_status *(*CreateDataTransfer)(ort_ep_factory *, void **out);
    bool (*IsStreamAware)(const ort_ep_factory *);
    ort_status *(*CreateSyncStreamForDevice)(ort_ep_factory *, const void *, const ort_pairs *, void **out);
    ort_function more[16];
};

/* Returns the error of a call of ONNX Runtime from the function that it stands in. */
#define ORT_TRY(call)                       \
    do {                                    \
        ort_status *const ort_try = (call); \
        if (ort_try != NULL)                \
            return ort_try;                 \
    } while (0)

#endif
