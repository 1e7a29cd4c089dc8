/* SPDX-License-Identifier: Apache-2.0 */
/* target_text.h - text in memory of a fixed size, for target_text.c, which writes targets, and target_parse.c, which
 * lists what it would have understood. */
#ifndef OPJIT_RUNTIME_TARGET_TARGET_TEXT_H
#define OPJIT_RUNTIME_TARGET_TARGET_TEXT_H

#include "runtime/target/target_table.h"

typedef struct rt_text_writer {
    char *text; /* always NUL-terminated */
    size_t size, used;
} rt_text_writer;

/* Appends both, as far as there is room. */
void opjit_rt_write_part(rt_text_writer *w, const char *before, const char *part);

#endif
