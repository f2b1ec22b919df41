"""A reader of a queue of pgmq, for the tests of adapters. The SQL of pgmq comes with its client: no extension is installed.

pgmq_work.py URL setup         makes the tables, and puts a message into a queue
pgmq_work.py URL work VT       reads it for so many seconds, says "working", and works on it until it is ended
pgmq_work.py URL finish VT S   the same, and is done with it after so many seconds; says "deleted", or "gone" where it was not there any more
"""

import sys
import time

from pgmq import PGMQueue
from pgmq.install import get_embedded_install_sql, install_pgmq_sql
from psycopg_pool import ConnectionPool

url, what = sys.argv[1:3]
if what == "setup":
    install_pgmq_sql(get_embedded_install_sql(), dsn=url)
# It would not understand the address of a socket by itself.
queue = PGMQueue(pool=ConnectionPool(url, open=True), init_extension=False)
if what == "setup":
    queue.create_queue("mail")
    queue.send("mail", {"to": "a"})
else:
    while not (message := queue.read("mail", vt=int(sys.argv[3]))):
        time.sleep(0.2)
    print("working", flush=True)
    if what == "finish":
        time.sleep(float(sys.argv[4]))
        print("deleted" if queue.delete("mail", message.msg_id) else "gone", flush=True)
    time.sleep(3600)
