/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - frames over a socket: a head with its own hash, then bytes whose hash it holds, or which are in memory
 * that both sides see.  Waiting can be cancelled, on either side, and neither side gets a signal when the other one
 * is gone. */
#define _GNU_SOURCE
#include "codegen/process/message.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/base/lock.h"

enum { LOOK_MS = 2 }; /* how often a wait looks at its flag */

typedef struct head {
    uint32_t magic, kind;
    uint64_t seen;       /* 1: the bytes are in memory that both see; 0: they follow */
    uint64_t size, hash; /* of the bytes */
    uint64_t own;        /* hash of all before it */
} head;

#define MAGIC 0x74696a6fu

static cp_outcome wait_for(cp_line *line, short events)
{
    struct pollfd polled[2] = { { .fd = line->socket, .events = events }, { .fd = line->other, .events = POLLIN } };
    for (;;) {
        const int most = line->cancel != NULL || line->end != 0 ? LOOK_MS : -1;
        const int count = poll(polled, line->other >= 0 ? 2 : 1, most);
        if (count > 0 && polled[0].revents != 0)
            return CP_DONE; /* an error or the end is what the next call reports */
        if (count > 0 || (count < 0 && errno != EINTR))
            return CP_ENDED;
        if (line->cancel != NULL && atomic_load(line->cancel)) {
            if (line->tell == NULL)
                return CP_CANCELLED;
            atomic_store(line->tell, true);
            line->end = opjit_rt_nanoseconds() + line->grace;
            line->cancel = NULL;
        }
        if (line->end != 0 && opjit_rt_nanoseconds() >= line->end)
            return CP_CANCELLED;
    }
}

static bool is_later(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

cp_outcome opjit_cp_send(cp_line *line, cp_kind kind, const void *data, size_t size)
{
    const bool seen = line->out != NULL && data == line->out;
    head h = { .magic = MAGIC, .kind = kind, .seen = seen, .size = size, .hash = opjit_rt_hash64(data, size) };
    struct iovec parts[2] = { { &h, sizeof h }, { (void *)(uintptr_t)data, seen ? 0 : size } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    h.own = opjit_rt_hash64(&h, offsetof(head, own));
    while (parts[0].iov_len + parts[1].iov_len > 0) {
        const ssize_t sent = sendmsg(line->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        size_t left = sent > 0 ? (size_t)sent : 0;
        if (sent < 0 && !is_later(errno))
            return CP_ENDED;
        for (uint32_t i = 0; i < 2; i++) {
            const size_t of_this = left < parts[i].iov_len ? left : parts[i].iov_len;
            parts[i].iov_base = (uint8_t *)parts[i].iov_base + of_this;
            parts[i].iov_len -= of_this;
            left -= of_this;
        }
        if (sent < 0) {
            const cp_outcome outcome = wait_for(line, POLLOUT);
            if (outcome != CP_DONE)
                return outcome;
        }
    }
    return CP_DONE;
}

static cp_outcome receive_bytes(cp_line *line, void *data, size_t size)
{
    uint8_t *at = data;
    while (size > 0) {
        const ssize_t got = recv(line->socket, at, size, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && !is_later(errno)))
            return CP_ENDED;
        if (got < 0) {
            const cp_outcome outcome = wait_for(line, POLLIN);
            if (outcome != CP_DONE)
                return outcome;
            continue;
        }
        at += got;
        size -= (size_t)got;
    }
    return CP_DONE;
}

static cp_outcome skip_bytes(cp_line *line, uint64_t size)
{
    uint8_t room[4096];
    cp_outcome outcome = CP_DONE;
    for (; outcome == CP_DONE && size > 0; size -= size < sizeof room ? size : sizeof room)
        outcome = receive_bytes(line, room, size < sizeof room ? (size_t)size : sizeof room);
    return outcome;
}

cp_outcome opjit_cp_receive(cp_line *line, cp_kind *out_kind, rt_bytes *out)
{
    head h;
    cp_outcome outcome = receive_bytes(line, &h, sizeof h);
    if (outcome != CP_DONE)
        return outcome;
    if (h.magic != MAGIC || h.own != opjit_rt_hash64(&h, offsetof(head, own)) || h.kind < CP_HELLO ||
        h.kind >= CP_KIND_END || h.size == 0 || h.size > (h.seen != 0 ? CP_WINDOW : CP_MOST_BYTES) ||
        (h.seen != 0 && line->in == NULL))
        return CP_DAMAGED;
    *out_kind = (cp_kind)h.kind;
    uint8_t *const data = opjit_rt_bytes_extend(out, (size_t)h.size);
    if (data == NULL) {
        outcome = h.seen != 0 ? CP_DONE : skip_bytes(line, h.size);
        return outcome == CP_DONE ? CP_NO_MEMORY : outcome;
    }
    if (h.seen != 0)
        memcpy(data, line->in, (size_t)h.size); /* before it is looked at, since the other side can still change it */
    else
        outcome = receive_bytes(line, data, (size_t)h.size);
    if (outcome == CP_DONE && opjit_rt_hash64(data, (size_t)h.size) != h.hash)
        outcome = CP_DAMAGED;
    return outcome;
}
