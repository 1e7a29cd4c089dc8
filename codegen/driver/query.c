/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - the one exported function and its table. */
#include "codegen/driver/driver.h"

#include "opjit_build_id.h"

static const opjit_codegen table = CODEGEN_TABLE(opjit_cg_compile, opjit_cg_warm, opjit_cg_library);

const opjit_codegen *opjit_codegen_query(uint32_t abi)
{
    return abi == CODEGEN_ABI ? &table : NULL;
}
