/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.h - helpers for tests of descriptors: whether an operator is created, with which message it is refused,
 * and what it is lowered to. */
#ifndef OPJIT_TESTS_SUPPORT_DESCRIPTORS_H
#define OPJIT_TESTS_SUPPORT_DESCRIPTORS_H

#include <opjit/opjit.h>

#include "frontend/frontend.h"

/* A context of a feature level (0: none) for x86-64-v1, which the lowered text names.  Ends the test if it can't be
 * made. */
opjit_context *test_context_at(uint32_t level);
/* Fails the test unless creating the operator gives this message; "": it succeeds. */
void test_expect_operator(uint32_t level, const DML_OPERATOR_DESC *desc, const char *message);
/* The value form of the operator, in a fresh *out. */
void test_lower(opjit_operator *op, const fe_options *options, const char *name, ir_func *out);
/* Appends the value form of the operator. */
void test_append_lowered(opjit_context *context, const DML_OPERATOR_DESC *desc, rt_bytes *out);
/* Fails the test unless the text equals golden/lower/<name>.ir, name in lower case; OPJIT_UPDATE_GOLDEN=1 rewrites the
 * file. */
void test_compare_lowered(const char *name, rt_bytes *text);

#endif
