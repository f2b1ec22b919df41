"""A scheduler of APScheduler 4, for the tests of adapters.

apscheduler_work.py URL setup     makes the tables, and puts a job and a schedule there
apscheduler_work.py URL work      works until it is ended; says "working" when a job has begun
"""

import asyncio
import sys

import asyncpg
from apscheduler import AsyncScheduler
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.triggers.cron import CronTrigger
from sqlalchemy.ext.asyncio import create_async_engine

url, what = sys.argv[1:3]


async def hang():
    print("working", flush=True)
    await asyncio.sleep(3600)


async def nightly():
    pass


async def main():
    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(url))
    async with AsyncScheduler(SQLAlchemyDataStore(engine), lease_duration=4, cleanup_interval=1) as scheduler:
        if what == "setup":
            await scheduler.add_schedule(nightly, CronTrigger.from_crontab("0 3 * * *"), id="nightly")
            await scheduler.add_job(hang)
        else:
            await scheduler.run_until_stopped()


asyncio.run(main())
