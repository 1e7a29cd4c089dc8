/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - the two drivers as data: CUDA's for NVIDIA's GPUs, HIP's for AMD's.  Nothing of either vendor is needed to
 * build opjit: names, numbers and the one structure are written down here. */
#include <stdio.h>
#include <string.h>

#include "runtime/drivers/driver.h"

/* --- CUDA --------------------------------------------------------------------------------------------------------- */
enum { CU_PROCESSORS = 16, CU_MAJOR = 75, CU_MINOR = 76, CU_SHARED = 97 }; /* CUdevice_attribute */

static opjit_status ask_cuda(const rt_api *api, const rt_functions *f, const char *who, int device, rt_device_info *out,
                             opjit_error *error)
{
    int major, minor, processors, shared;

    RT_CHECK(api, f, who, device_attribute, (&major, CU_MAJOR, device));
    RT_CHECK(api, f, who, device_attribute, (&minor, CU_MINOR, device));
    RT_CHECK(api, f, who, device_attribute, (&processors, CU_PROCESSORS, device));
    RT_CHECK(api, f, who, device_attribute, (&shared, CU_SHARED, device));
    snprintf(out->arch, sizeof out->arch, "sm_%d", 10 * major + minor);
    out->processors = (uint32_t)processors;
    out->shared_bytes = (uint32_t)shared;
    return OPJIT_OK;
}

static const char cuda_names[] = /* one string, because pointers would need relocation */
#define F(member, cuda, hip, parameters) cuda "\0"
    RT_DRIVER_FUNCTIONS(F);
#undef F
const rt_api opjit_rt_cuda = { .word = "cuda",
                               .title = "CUDA",
                               .library = "libcuda.so.1",
                               .variable = "OPJIT_CUDA_DRIVER",
                               .names = cuda_names,
                               .has_log = true,
                               .ask = ask_cuda };

/* --- HIP ---------------------------------------------------------------------------------------------------------- */
/* hipDeviceProp_t since ROCm 6, as far as we read it.  Nothing else gives the full name of the architecture. */
typedef struct hip_properties {
    char unread0[296];
    size_t shared_bytes;
    char unread1[84];
    int processors;
    char unread2[768];
    char arch[256];  /* "gfx90a:sramecc+:xnack-" */
    char rest[1024]; /* fields that we don't read, and room for more */
} hip_properties;
_Static_assert(offsetof(hip_properties, processors) == 388 && offsetof(hip_properties, arch) == 1160, "as HIP has it");

static opjit_status ask_hip(const rt_api *api, const rt_functions *f, const char *who, int device, rt_device_info *out,
                            opjit_error *error)
{
    hip_properties p = { .processors = 0 };

    RT_CHECK(api, f, who, device_properties, (&p, device));
    p.arch[sizeof p.arch - 1] = '\0';
    snprintf(out->arch, sizeof out->arch, "%.*s", (int)strcspn(p.arch, ":"), p.arch);
    out->processors = (uint32_t)p.processors;
    out->shared_bytes = (uint32_t)p.shared_bytes;
    return OPJIT_OK;
}

static const char hip_names[] =
#define F(member, cuda, hip, parameters) hip "\0"
    RT_DRIVER_FUNCTIONS(F);
#undef F
const rt_api opjit_rt_hip = { .word = "hip",
                              .title = "HIP",
                              .library = "libamdhip64.so.7",
                              .older = "libamdhip64.so.6",
                              .variable = "OPJIT_HIP_DRIVER",
                              .names = hip_names,
                              .ask = ask_hip };
