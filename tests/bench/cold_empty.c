/* SPDX-License-Identifier: Apache-2.0 */
/* cold_empty.c - the program that does nothing, which bench_disk.c measures others against. */
int main(void)
{
    return 0;
}
