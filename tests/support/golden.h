/* SPDX-License-Identifier: Apache-2.0 */
/* golden.h - files of golden/ that hold an input, the line "; ---" and the text that must come of it.  Failures are
 * Check's. */
#ifndef OPJIT_TESTS_SUPPORT_GOLDEN_H
#define OPJIT_TESTS_SUPPORT_GOLDEN_H

#include <stddef.h>

/* The whole file with a final NUL; the caller frees it. */
char *golden_read(const char *path);
/* Bytes of the input: up to the line "; ---", or the whole text where it has none. */
size_t golden_input_size(const char *text);
/* What stands behind that line; NULL where there is none. */
const char *golden_output(const char *text);
/* Requires that `output` stands there; with OPJIT_UPDATE_GOLDEN writes it there instead.  what: "the plan is". */
void golden_check(const char *path, const char *text, const char *output, const char *what);

#endif
