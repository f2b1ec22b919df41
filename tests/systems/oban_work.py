"""A worker of Oban for Python, for the tests of adapters.

oban_work.py URL setup NUMBER SECONDS ATTEMPTS   makes the tables, and puts so many jobs into the queue, of which so many attempts take so long
oban_work.py URL work [RESCUE_AFTER]             works until it is ended; says "ready", and "working" when a job has begun

Each run of a job is a row of the table runs.
"""

import asyncio
import os
import sys

from oban import Oban, worker

url, what = sys.argv[1:3]
pool = None


async def run(sql, *values):
    async with pool.connection() as connection:
        await connection.execute(sql, values)


@worker(queue="q", max_attempts=5)
class Hang:
    async def process(self, job):
        await run("INSERT INTO runs (job, attempt, pid) VALUES (%s, %s, %s)", job.id, job.attempt, os.getpid())
        print("working", flush=True)
        if job.attempt <= job.args["attempts"]:
            await asyncio.sleep(job.args["seconds"])
        await run("UPDATE runs SET has_ended = true WHERE job = %s AND attempt = %s", job.id, job.attempt)


async def setup(number, seconds, attempts):
    from oban import schema

    await schema.install(pool)
    await run("CREATE TABLE runs (job bigint, attempt int, pid int, begun_at timestamptz DEFAULT now(), has_ended bool NOT NULL DEFAULT false)")
    async with Oban(pool=pool) as oban:
        for _ in range(number):
            await oban.enqueue(Hang.new({"seconds": seconds, "attempts": attempts}))


async def work(rescue_after):
    oban = Oban(
        pool=pool,
        queues={"q": 40},
        refresher={"interval": 0.5, "max_age": 3.0},
        lifeline={"interval": 1.0, "rescue_after": rescue_after},
    )
    # It has no option for the time for which a leader leads.
    oban._leader._interval = 2.0
    async with oban:
        print("ready", flush=True)
        await asyncio.Event().wait()


async def main():
    global pool
    pool = await Oban.create_pool(url, min_size=1, max_size=20)
    if what == "setup":
        await setup(int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
    else:
        await work(float(sys.argv[3]) if len(sys.argv) > 3 else 300.0)
    await pool.close()


asyncio.run(main())
