/* SPDX-License-Identifier: Apache-2.0 */
/* bare_system.c - what runner.c asks of an operating system, on a PC that has none: files 0 and 1 are its disk, on
 * which either side writes once the other one has sent a byte through the serial port; memory is what lies above the
 * page tables of bare_start.S, and what may not be touched is not present there, so that the PC ends at an access. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/machines/emulated_wire.h"

int main(void);
void begin(void);

enum { PAGE = 4096, PAGES = 65536, FIRST = 0x400, PRESENT = 1, WRITABLE = 2 };
enum { SERIAL = 0x3f8, SERIAL_LINE = SERIAL + 3, SERIAL_STATE = SERIAL + 5 };
enum { CAN_READ = 1, CAN_WRITE = 32, BITS_8 = 3, SET_SPEED = 128 };
enum { DISK = 0x1f0, DISK_COUNT = DISK + 2, DISK_PLACE = DISK + 3, DISK_COMMAND = DISK + 7, SECTOR = 512 };
enum { READ_SECTOR = 0x20, WRITE_SECTOR = 0x30, BUSY = 128, DATA = 8 };

static volatile uint64_t *const table = (uint64_t *)0x203000; /* an entry per page */
static uint64_t next, taken;                                  /* pages */
static uint8_t sector[SECTOR];
static uint64_t at;  /* the byte of the disk that is read or written next */
static bool reading; /* rather than writing */

static void out(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static uint8_t in(uint16_t port)
{
    uint8_t value;
    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static void command(uint64_t number, uint8_t what)
{
    while ((in(DISK_COMMAND)&BUSY) != 0)
        continue;
    out(DISK_COUNT, 1);
    for (int i = 0; i < 3; i++)
        out((uint16_t)(DISK_PLACE + i), (uint8_t)(number >> 8 * i));
    out(DISK_PLACE + 3, 0xe0); /* the first disk, sectors by number */
    out(DISK_COMMAND, what);
    while ((in(DISK_COMMAND) & (BUSY | DATA)) != DATA)
        continue;
}

static void read_sector(uint64_t number)
{
    void *to = sector;
    uint64_t words = SECTOR / 2;
    command(number, READ_SECTOR);
    __asm__ volatile("rep insw" : "+D"(to), "+c"(words) : "d"(DISK) : "memory");
}

static void write_sector(uint64_t number)
{
    const void *from = sector;
    uint64_t words = SECTOR / 2;
    command(number, WRITE_SECTOR);
    __asm__ volatile("rep outsw" : "+S"(from), "+c"(words) : "d"(DISK) : "memory");
}

/* The disk is the other side's until it sends a byte. */
static void hand_over(void)
{
    if (at % SECTOR != 0)
        write_sector(at / SECTOR);
    while ((in(SERIAL_STATE)&CAN_WRITE) == 0)
        continue;
    out(SERIAL, WIRE_READY);
    while ((in(SERIAL_STATE)&CAN_READ) == 0)
        continue;
    in(SERIAL);
    at = 0;
    reading = true;
}

ssize_t read(int file, void *to, size_t size)
{
    (void)file;
    if (!reading)
        hand_over();
    if (at % SECTOR == 0)
        read_sector(at / SECTOR);
    const uint64_t rest = SECTOR - at % SECTOR, n = size < rest ? size : rest;
    memcpy(to, sector + at % SECTOR, n);
    at += n;
    return (ssize_t)n;
}

ssize_t write(int file, const void *from, size_t size)
{
    (void)file;
    at = reading ? 0 : at;
    reading = false;
    const uint64_t rest = SECTOR - at % SECTOR, n = size < rest ? size : rest;
    memcpy(sector + at % SECTOR, from, n);
    at += n;
    if (at % SECTOR == 0)
        write_sector(at / SECTOR - 1);
    return (ssize_t)n;
}

/* The emulator ends where this word is written to its port. */
void _exit(int status)
{
    (void)status;
    for (;;)
        for (const char *p = "Shutdown"; *p != '\0'; p++)
            out(0x8900, (uint8_t)*p);
}

int mprotect(void *at, size_t size, int how)
{
    for (uint64_t page = (uint64_t)at / PAGE; page < ((uint64_t)at + size) / PAGE; page++) {
        table[page] = page * PAGE | (how == PROT_NONE ? 0 : (how & PROT_WRITE) != 0 ? PRESENT | WRITABLE : PRESENT);
        __asm__ volatile("invlpg (%0)" : : "r"(page * PAGE) : "memory");
    }
    return 0;
}

/* One after the other; from the first page on again once none is taken. */
void *mmap(void *at, size_t size, int how, int flags, int file, off_t offset)
{
    (void)at, (void)how, (void)flags, (void)file, (void)offset;
    next = taken == 0 ? FIRST : next;
    if (size / PAGE > PAGES - next)
        return MAP_FAILED;
    void *const memory = (void *)(next * PAGE);
    next += size / PAGE;
    taken += size / PAGE;
    mprotect(memory, size, PROT_READ | PROT_WRITE);
    return memset(memory, 0, size);
}

int munmap(void *at, size_t size)
{
    (void)at;
    taken -= size / PAGE;
    return 0;
}

void *memset(void *to, int value, size_t size)
{
    void *p = to;
    __asm__ volatile("rep stosb" : "+D"(p), "+c"(size) : "a"(value) : "memory");
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    void *p = to;
    __asm__ volatile("rep movsb" : "+D"(p), "+S"(from), "+c"(size) : : "memory");
    return to;
}

void begin(void)
{
    out(SERIAL_LINE, SET_SPEED);
    out(SERIAL, 1); /* the highest */
    out(SERIAL + 1, 0);
    out(SERIAL_LINE, BITS_8);
    _exit(main());
}
