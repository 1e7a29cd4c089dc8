/* SPDX-License-Identifier: Apache-2.0 */
/* library.h - libraries of kernels that were compiled ahead of time, from inside: for library*.c and tests. */
#ifndef OPJIT_RUNTIME_IMAGE_LIBRARY_H
#define OPJIT_RUNTIME_IMAGE_LIBRARY_H

#include <opjit/opjit.h>

#include "runtime/base/context.h"
#include "runtime/image/image.h"

/* Memory that a registry may lead to. */
typedef struct rt_span {
    const uint8_t *begin;
    size_t size;
    bool code; /* may be run, too */
} rt_span;

enum { RT_LIBRARY_SPANS = 16 };

/* A library around the registry, which lies in the spans (copied), as all does that it leads to.  mapping: taken over
 * where this succeeds; base NULL: none. */
opjit_status opjit_rt_library_make(rt_core *core, const void *registry, const rt_span *spans, uint32_t span_count,
                                   rt_mapping mapping, opjit_library **out, opjit_error *error);
/* Whether these are the bytes of a shared library that opjit wrote, for a CPU such as this one, unchanged.
 * *out_registry is its registry's offset. */
opjit_status opjit_rt_library_check_file(const uint8_t *bytes, size_t size, uint64_t *out_registry, opjit_error *error);

#endif
