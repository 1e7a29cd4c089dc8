/* SPDX-License-Identifier: Apache-2.0 */
/* cold_empty.c - a program that does nothing, which bench_disk.c compares others with. */
int main(void)
{
    return 0;
}
