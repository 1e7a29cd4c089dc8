/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - names of status codes and the version of the loaded library. */
#include <opjit/opjit.h>

#include "runtime/base/base.h"

static const char *const status_names[] = {
    [OPJIT_OK] = "OK",
    [OPJIT_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [OPJIT_UNSUPPORTED] = "UNSUPPORTED",
    [OPJIT_OUT_OF_MEMORY] = "OUT_OF_MEMORY",
    [OPJIT_IO] = "IO",
    [OPJIT_CORRUPT] = "CORRUPT",
    [OPJIT_UNAVAILABLE] = "UNAVAILABLE",
    [OPJIT_CODEGEN] = "CODEGEN",
    [OPJIT_INTERNAL] = "INTERNAL",
    [OPJIT_CANCELLED] = "CANCELLED",
    [OPJIT_LIMIT] = "LIMIT",
    [OPJIT_NOT_FOUND] = "NOT_FOUND",
};

const char *opjit_status_name(opjit_status status)
{
    const size_t index = (size_t)status;
    return index < sizeof status_names / sizeof *status_names ? status_names[index] : "unknown";
}

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *opjit_version(void)
{
    return VERSION_TEXT(OPJIT_VERSION_MAJOR, OPJIT_VERSION_MINOR, OPJIT_VERSION_PATCH);
}

uint32_t opjit_version_number(void)
{
    return OPJIT_VERSION_NUMBER;
}
