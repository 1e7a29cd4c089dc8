/* SPDX-License-Identifier: Apache-2.0 */
/* library.h - libraries of kernels compiled ahead of time, for library*.c and tests. */
#ifndef OPJIT_RUNTIME_IMAGE_LIBRARY_H
#define OPJIT_RUNTIME_IMAGE_LIBRARY_H

#include <opjit/artifact.h>
#include <opjit/opjit.h>

#include "runtime/base/context.h"
#include "runtime/image/image.h"

/* Memory that a registry may lead to. */
typedef struct rt_span {
    const uint8_t *begin;
    size_t size;
    bool code; /* code may be run there */
} rt_span;

enum { RT_LIBRARY_SPANS = 16 };

/* Makes a library of the registry, which lies in the spans (copied) together with everything it leads to.  On success
 * it takes the mapping over; base NULL: none. */
opjit_status opjit_rt_library_make(rt_core *core, const void *registry, const rt_span *spans, uint32_t span_count,
                                   rt_mapping mapping, opjit_library **out, opjit_error *error);
/* Whether these bytes are an unchanged shared library that opjit wrote for a CPU such as this one.  *out_registry is
 * the offset of its registry. */
opjit_status opjit_rt_library_check_file(const uint8_t *bytes, size_t size, uint64_t *out_registry, opjit_error *error);

#endif
