"""A worker of Absurd, for the tests of adapters.

absurd_work.py URL setup    makes the tables, with a queue, and puts a task into it
absurd_work.py URL work     works until it is ended, with claims of 10 s; says "working" when a task has begun
"""

import os
import subprocess
import sys
import time

from absurd_sdk import Absurd

url, what = sys.argv[1:3]
if what == "setup":
    tool = os.path.join(os.path.dirname(sys.executable), "absurdctl")
    for command in (["init"], ["create-queue", "mail"]):
        subprocess.run([tool, command[0], "-d", url, *command[1:]], check=True, stdout=subprocess.DEVNULL)
app = Absurd(url, queue_name="mail")


@app.register_task("Hang")
def hang(params, context):
    print("working", flush=True)
    time.sleep(3600)


if what == "setup":
    app.spawn("Hang", {})
else:
    app.start_worker(claim_timeout=10)
