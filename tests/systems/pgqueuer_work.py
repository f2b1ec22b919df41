"""A worker of PgQueuer, for the tests of adapters.

pgqueuer_work.py URL setup        makes the tables, and puts a job and a schedule there
pgqueuer_work.py URL work         works until it is ended; says "working" when a job has begun
"""

import asyncio
import sys
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

url, what = sys.argv[1:3]


async def main():
    driver = AsyncpgDriver(await asyncpg.connect(url))
    if what == "setup":
        queries = Queries(driver)
        await queries.install()
        await queries.enqueue("Hang", None)
        return
    pgq = PgQueuer(driver)

    @pgq.entrypoint("Hang")
    async def hang(_job):
        print("working", flush=True)
        await asyncio.sleep(3600)

    @pgq.schedule("nightly", "0 3 * * *")
    async def nightly(_schedule):
        pass

    await pgq.run(dequeue_timeout=timedelta(seconds=1), heartbeat_timeout=timedelta(seconds=4))


asyncio.run(main())
