/* SPDX-License-Identifier: Apache-2.0 */
/* verifier.c - how a rule fails: its message, and whether its failure ends the verifier or is counted. */
#include "ir/verify/verifier.h"

#include <stdio.h>

/* Rules that are proven by structure and intervals: code that fails them may still be right. */
static bool is_proof(uint32_t rule)
{
    return (rule >= 6 && rule <= 8) || rule == 12 || rule == 15;
}

opjit_status opjit_ir_verify_fail(const verifier *v, uint32_t rule, ir_ref node, const char *format, ...)
{
    char message[160], name[48] = "";
    ir_numbers numbers;
    va_list args;
    if (is_proof(rule) && v->unproven != NULL)
        return OPJIT_LIMIT; /* it will be counted: nobody reads the message */
    va_start(args, format);
    if (vsnprintf(message, sizeof(message), format, args) < 0)
        message[0] = '\0';
    va_end(args);
    if (node && node < v->original->node_count && opjit_ir_numbers_init(v->original, &numbers)) {
        opjit_ir_numbers_text(v->original, &numbers, node, name, sizeof(name));
        opjit_ir_numbers_free(&numbers);
    }
    return opjit_rt_refuse(v->error, is_proof(rule) ? OPJIT_LIMIT : OPJIT_INTERNAL, "{!IR}{V%u} %s%s%s", rule, name,
                           name[0] ? ": " : "", message);
}

opjit_status opjit_ir_verify_proof(const verifier *v, opjit_status status)
{
    if (status != OPJIT_LIMIT || v->unproven == NULL)
        return status;
    ++*v->unproven;
    opjit_rt_error_clear(v->error);
    return OPJIT_OK;
}
