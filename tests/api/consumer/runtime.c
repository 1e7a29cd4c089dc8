/* runtime.c - an application that ships kernels made elsewhere: it links opjit-runtime and no compiler. */
#include <stdio.h>

#include <opjit/opjit.h>

int main(void)
{
    opjit_context *context;
    opjit_error error;
    if (opjit_context_create(NULL, &context, &error) != OPJIT_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%s\n", opjit_context_target(context));
    opjit_context_destroy(context);
    return 0;
}
