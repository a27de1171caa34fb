"""`python -m selvedge`, the program."""

import json
import subprocess
import sys


def run(*arguments):
    command = [sys.executable, "-m", "selvedge", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_program_prints_and_returns_its_exit_code():
    for arguments, code, stdout, stderr in [
        (["--version"], 0, "selvedge ", ""),
        (["--help"], 0, "Usage: selvedge", ""),
        (["nothing"], 2, "", "unrecognized subcommand"),
        (["run", "missing.cu", "--json"], 2, "", ""),
    ]:
        result = run(*arguments)
        assert result.returncode == code, result
        assert stdout in result.stdout and stderr in result.stderr, result


def test_json_of_the_program_is_one_object():
    version = json.loads(run("info", "--json").stdout)["version"]
    assert version in run("--version").stdout
    error = json.loads(run("nothing", "--json").stdout)["error"]
    assert error["exit_code"] == 2
