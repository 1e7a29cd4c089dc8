/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_texts.h - whether the real assembler accepts the PTX texts of tests, where there is one. */
#ifndef OPJIT_TEST_MACHINES_PTX_TEXTS_H
#define OPJIT_TEST_MACHINES_PTX_TEXTS_H

#include <stdbool.h>

/* Fails the running test where ptxas ($OPJIT_TEST_PTXAS, set by the build where one is found) refuses text for
 * sm_<arch>.  False: there is no ptxas. */
bool ptx_texts_assemble(const char *arch, const char *text);
/* The same, optimised: also fails where ptxas warns or spills registers. */
bool ptx_texts_good(const char *arch, const char *text);

#endif
