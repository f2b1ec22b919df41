"""An executor of DBOS, for the tests of adapters.

dbos_work.py URL work     runs a workflow until it is ended, and those that it finds; says "working" when one has begun
"""

import os
import sys
import time

from dbos import DBOS, SetWorkflowID

os.environ["DBOS__APPVERSION"] = "1"
DBOS(config={"name": "locktop-test", "system_database_url": sys.argv[1], "run_admin_server": False, "log_level": "ERROR"})


@DBOS.workflow(name="Hang")
def hang():
    print("working", flush=True)
    time.sleep(3600)


DBOS.launch()
with SetWorkflowID("hang-1"):
    DBOS.start_workflow(hang)
time.sleep(3600)
