"""A worker of dramatiq-pg, for the tests of adapters.

dramatiq_work.py URL setup        makes the tables, and puts a message into the queue
dramatiq_work.py URL work         works until it is ended; says "working" when a message has begun
"""

import sys
import time

import dramatiq
import psycopg2
from dramatiq.worker import Worker
from dramatiq_pg import PostgresBroker
from dramatiq_pg.schema import generate_init_sql

url, what = sys.argv[1:3]
dramatiq.set_broker(PostgresBroker(url=url, results=False))


@dramatiq.actor(actor_name="Hang", queue_name="mail", time_limit=7200_000)
def hang():
    print("working", flush=True)
    time.sleep(3600)


if what == "setup":
    connection = psycopg2.connect(url)
    connection.autocommit = True
    connection.cursor().execute(generate_init_sql())
    hang.send()
else:
    Worker(dramatiq.get_broker(), worker_threads=1).start()
    time.sleep(3600)
