"""Messages of the library in Python's `logging`."""

import os
import subprocess
import sys


def run(script, **variables):
    """Runs a script whose first operation of the process has messages."""
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=environment)


FIRST = "import selvedge as sv\nsv.ones(100_000).exp()\n"
# A value that the library warns of.
WRONG = {"SELVEDGE_CPU": "fast"}


def test_messages_have_a_logger_a_level_and_a_source():
    script = """
import logging, time
records = []
class Keep(logging.Handler):
    def emit(self, record):
        records.append(record)
logging.getLogger().addHandler(Keep())
logging.getLogger("selvedge").setLevel(logging.INFO)
""" + FIRST + """
record, = [record for record in records if record.name == "selvedge.fuse.cpu.backend"]
assert record.levelname == "INFO" and record.getMessage().startswith("expressions on the CPU")
assert record.pathname.endswith("backend.rs") and record.lineno > 0 and abs(time.time() - record.created) < 100
"""
    result = run(script)
    assert result.returncode == 0 and not result.stderr, result.stderr


def test_a_program_without_handlers_sees_warnings_alone():
    assert run(FIRST).stderr == ""
    result = run(FIRST, **WRONG)
    assert result.returncode == 0 and "fast is ignored" in result.stderr and len(result.stderr.splitlines()) == 1
    silent = "import logging\nlogging.getLogger('selvedge').setLevel(logging.ERROR)\n" + FIRST
    assert run(silent, **WRONG).stderr == ""


def test_the_program_shows_warnings_as_ever():
    command = [sys.executable, "-m", "selvedge", "demo", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **WRONG})
    assert "warning: " in result.stderr and "fast is ignored" in result.stderr, result


def test_messages_of_threads_come_on_the_main_thread_without_a_deadlock():
    script = """
import logging, threading
threads = []
class Keep(logging.Handler):
    def emit(self, record):
        threads.append(threading.current_thread())
logging.basicConfig(level=logging.DEBUG, handlers=[Keep()])
import selvedge as sv
def work():
    for _ in range(50):
        sv.ones(100_000).exp()
workers = [threading.Thread(target=work) for _ in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
assert threads and set(threads) == {threading.main_thread()}, threads
"""
    result = run(script)
    assert result.returncode == 0, result.stderr


def test_messages_before_the_end_of_the_interpreter_are_not_lost():
    script = """
import logging, threading
logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
import selvedge as sv
threading.Thread(target=lambda: sv.ones(100_000).exp()).start()
"""
    result = run(script)
    assert result.returncode == 0 and result.stderr.startswith("selvedge.fuse.cpu.backend expressions"), result.stderr


def test_an_exception_of_a_filter_is_unraisable_and_a_keyboard_interrupt_is_raised():
    script = """
import logging, sys
seen = []
sys.unraisablehook = lambda unraisable: seen.append(unraisable.exc_type)
class Refuse(logging.Filter):
    def filter(self, record):
        raise {kind}
logging.getLogger("selvedge.fuse.cpu.backend").addFilter(Refuse())
logging.basicConfig(level=logging.INFO)
try:
""" + "".join(f"    {line}\n" for line in FIRST.splitlines()) + """
    for _ in range(10): pass
except KeyboardInterrupt:
    seen.append(KeyboardInterrupt)
assert seen == [{kind}], seen
"""
    for kind in ["LookupError", "KeyboardInterrupt"]:
        result = run(script.replace("{kind}", kind))
        assert result.returncode == 0, result.stderr


def test_an_import_does_not_import_logging():
    result = run("import sys, selvedge\nassert 'logging' not in sys.modules")
    assert result.returncode == 0, result.stderr
