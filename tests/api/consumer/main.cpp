/* SPDX-License-Identifier: Apache-2.0 */
// main.cpp - the same interface from C++17: headers, linkage and a refused descriptor.
#include <cstdio>
#include <string_view>

#include <opjit/opjit.h>

int main()
{
    opjit_context *context = nullptr;
    opjit_error error;
    if (opjit_context_create(nullptr, &context, &error) != OPJIT_OK) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    const DML_OPERATOR_DESC nothing = { DML_OPERATOR_INVALID, nullptr };
    opjit_operator *op = nullptr;
    const opjit_status status = opjit_operator_create(context, &nothing, &op, &error);
    opjit_context_destroy(context);
    if (status == OPJIT_OK || op != nullptr || std::string_view(error.message).empty()) {
        std::fprintf(stderr, "an invalid operator was taken\n");
        return 1;
    }
    return 0;
}
