"""A worker of Procrastinate, for the tests of adapters.

procrastinate_work.py URL setup          makes the tables, and puts two jobs with one lock into the queue
procrastinate_work.py URL work           works until it is ended; says "working" when a job has begun
procrastinate_work.py URL type TEXT      runs TEXT, which locktop has said to type, with `app` and `utils`
"""

import asyncio
import sys
import time

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector, utils

url, what = sys.argv[1:3]
app = App(connector=PsycopgConnector(conninfo=url) if what == "work" else SyncPsycopgConnector(conninfo=url))


@app.task(name="Hang", queue="q", lock="one")
def hang():
    print("working", flush=True)
    time.sleep(3600)


@app.task(name="Wait", queue="q", lock="one")
def wait():
    pass


async def work():
    async with app.open_async():
        await app.run_worker_async(
            queues=["q"],
            update_heartbeat_interval=1,
            stalled_worker_timeout=5,
            install_signal_handlers=False,
        )


if what == "work":
    asyncio.run(work())
else:
    with app.open():
        if what == "setup":
            app.schema_manager.apply_schema()
            hang.defer()
            wait.defer()
        else:
            exec(sys.argv[3], {"app": app, "utils": utils})  # noqa: S102
