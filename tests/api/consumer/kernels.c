/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - a program that uses kernels compiled when it was built, and nothing else of opjit. */
#include "consumer_kernels.h"
#include "late_kernels.h"

int main(void)
{
    float matrix[4][5];
    int16_t numbers[4] = { 1, -2, 3, 4 };
    int wrong = 0;
    if (!eye_runs_here() || !negate_runs_here())
        return 1;
    eye(matrix[0]);
    negate(numbers, numbers); /* in place, as its header allows */
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 5; x++)
            wrong += matrix[y][x] != (x == y ? 1.0f : 0.0f);
    kernels_eye(matrix[0], 1); /* the late field Offset */
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 5; x++)
            wrong += matrix[y][x] != (x == y + 1 ? 1.0f : 0.0f);
    return wrong != 0 || numbers[0] != -1 || numbers[1] != 2 || numbers[2] != -3;
}
