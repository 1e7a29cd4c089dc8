/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - the strategies by name, for tests: without LLVM's headers. */
#ifndef OPJIT_CODEGEN_STORES_NAMES_H
#define OPJIT_CODEGEN_STORES_NAMES_H

#include <stdint.h>

const char *opjit_cg_strategy_name(uint32_t index); /* in the order of the table; NULL: there are no more */

#endif
