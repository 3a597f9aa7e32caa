# SPDX-License-Identifier: MIT
"""How fast is litequeue? Called by bench_sqlite:

    litequeue.py MODE 1 MILLISECONDS FILE

One thread puts a message, pops one and marks it as done, in turn. Prints the
number of cycles, and the seconds of wall and of processor time. litequeue has
one mode.
"""

import sys
import time

# This file has the name of the package: look for that elsewhere.
sys.path.pop(0)

from litequeue import LiteQueue  # noqa: E402

span = int(sys.argv[3]) / 1000
queue = LiteQueue(sys.argv[4])
n = 0
cpu = time.process_time()
begin = time.monotonic()
while time.monotonic() - begin < span:
    queue.put(f"namespace-{n % 1000:04d}/pod-{n:012d}")
    queue.done(queue.pop().message_id)
    n += 1
print(n, time.monotonic() - begin, time.process_time() - cpu)
