"""A worker of Chancy, for the tests of adapters.

chancy_work.py URL setup          makes the tables, and puts a job into the queue
chancy_work.py URL work           works until it is ended; says "working" when a job has begun
chancy_work.py URL type TEXT      runs TEXT, which locktop has said to type, with `chancy` and `Reference`
"""

import asyncio
import sys
import time

from chancy import Chancy, Queue, Worker, job
from chancy.job import Reference
from chancy.plugins.leadership import Leadership
from chancy.plugins.recovery import Recovery

url, what = sys.argv[1:3]


@job(queue="default", max_attempts=1)
def hang():
    print("working", flush=True)
    time.sleep(3600)


async def main():
    plugins = [Leadership(poll_interval=1, timeout=5), Recovery(poll_interval=2)]
    async with Chancy(url, plugins=plugins, no_default_plugins=True) as chancy:
        if what == "setup":
            await chancy.migrate()
            await chancy.declare(Queue("default", concurrency=1, executor="chancy.executors.thread.ThreadedExecutor"))
            await chancy.push(hang)
        elif what == "work":
            worker = Worker(chancy, heartbeat_poll_interval=1, heartbeat_timeout=5, queue_change_poll_interval=1, register_signal_handlers=False)
            async with worker:
                await asyncio.Event().wait()
        else:
            scope = {"chancy": chancy, "Reference": Reference}
            exec("async def typed():\n    " + sys.argv[3], scope)  # noqa: S102
            await scope["typed"]()


asyncio.run(main())
