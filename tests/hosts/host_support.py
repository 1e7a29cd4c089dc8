# SPDX-License-Identifier: Apache-2.0
"""What the tests of hosts share: how many cases, memory that stays, and many threads at once."""
import gc
import os
import pathlib
import threading


def cases(count):
    """OPJIT_CASES of them: a number, or a percentage."""
    text = os.environ.get("OPJIT_CASES", "")
    return max(1, count * int(text[:-1]) // 100) if text.endswith("%") else int(text or count)


def resident():
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def on_threads(work, count=8):
    """work(number) on each of so many threads; what they raised."""
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as e:  # noqa: a thread's failure is the test's
            failures.append(e)
    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return failures
