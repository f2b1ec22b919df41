"""A worker of django-tasks-db, for the tests of adapters.

django_tasks_work.py URL setup SECONDS    makes the tables, and puts a task that takes so long into the queue
django_tasks_work.py URL work             works until it is ended; says "working" when a task has begun
"""

import sys
import time
from urllib.parse import parse_qs, urlsplit

import django
from django.conf import settings
from django.core.management import call_command

url, what = sys.argv[1:3]
parts = urlsplit(url)
options = {name: values[0] for name, values in parse_qs(parts.query).items()}
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts.path.lstrip("/"),
            "USER": parts.username,
            "HOST": options["host"],
            "PORT": options["port"],
        }
    },
    INSTALLED_APPS=["django_tasks_db"],
    TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}},
    USE_TZ=True,
)
django.setup()

from django.tasks import task  # noqa: E402


@task
def hang(seconds):
    print("working", flush=True)
    time.sleep(seconds)


if what == "setup":
    call_command("migrate", verbosity=0)
    hang.enqueue(float(sys.argv[3]))
else:
    call_command("db_worker", interval=0.2, startup_delay=False, reload=False, verbosity=0)
