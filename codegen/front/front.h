/* SPDX-License-Identifier: Apache-2.0 */
/* front.h - how the library without LLVM's backend notices that it needs one. */
#ifndef OPJIT_CODEGEN_FRONT_FRONT_H
#define OPJIT_CODEGEN_FRONT_FRONT_H

#include <stdatomic.h>

/* absent.c: counts whenever something asks for a part of LLVM that is not here. */
extern atomic_uint opjit_cg_wanted;

#endif
