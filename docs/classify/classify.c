/* SPDX-License-Identifier: Apache-2.0 */
/* classify.c - a model as a function of a C program: reads 12 lines of 12 characters, '#' or another, and says which
 * digit they show.  It needs no library, only what opjit made of digits.onnx:
 *
 *     opjit compile digits.onnx --dim batch=1 -o made
 *     cc -Imade classify.c made/digits.o -o classify
 *     ./classify < image.txt
 *
 * With `--weights made/digits.weights` the weights are in that file, which the program is given: ./classify FILE. */
#include <stdio.h>

#include "digits.h"

static float image[12 * 12], probability[10];
static _Alignas(digits_WORKSPACE_ALIGNMENT) unsigned char workspace[digits_WORKSPACE_BYTES + 1];

#ifdef digits_WEIGHTS_BYTES
static _Alignas(64) unsigned char weights[digits_WEIGHTS_BYTES]; /* or mapped, where they are many */

static int read_weights(const char *path)
{
    FILE *const file = path == NULL ? NULL : fopen(path, "rb");
    const size_t bytes = file == NULL ? 0 : fread(weights, 1, sizeof weights, file);
    if (file != NULL)
        fclose(file);
    return bytes == sizeof weights;
}
#endif

int main(int argc, char **argv)
{
    (void)argc;
    if (!digits_runs_here()) {
        fprintf(stderr, "%s: made for another CPU\n", argv[0]);
        return 1;
    }
    for (int i = 0; i < 12 * 12;) {
        const int c = getchar();
        if (c == EOF) {
            fprintf(stderr, "%s: the image has 12 lines of 12 characters\n", argv[0]);
            return 1;
        }
        if (c != '\n')
            image[i++] = c == '#';
    }
#ifdef digits_WEIGHTS_BYTES
    if (!read_weights(argv[1])) {
        fprintf(stderr, "%s: the weights can't be read\n", argv[0]);
        return 1;
    }
    digits(image, probability, weights, workspace);
#else
    digits(image, probability, workspace);
#endif
    int best = 0;
    for (int i = 1; i < 10; i++)
        best = probability[i] > probability[best] ? i : best;
    printf("%d (%.1f %%)\n", best, 100 * (double)probability[best]);
    return 0;
}
