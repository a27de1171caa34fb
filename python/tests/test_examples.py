"""The examples run and write what they say."""

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pytest


def test_the_raster_is_a_picture_of_spikes(repository, tmp_path):
    command = [sys.executable, repository / "python/examples/raster.py", tmp_path / "raster.svg"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    root = xml.etree.ElementTree.parse(tmp_path / "raster.svg").getroot()
    assert root.tag.endswith("svg") and len(root[1].attrib["d"]) > 1000


def test_the_gpt_learns(repository):
    command = [sys.executable, repository / "python/examples/train_gpt.py", "60"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    *steps, verse = result.stdout.splitlines()
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in steps if line.startswith("step")]
    assert len(losses) == 4 and losses[0] > 3 and losses[-1] < 1.6 and result.stdout.count("Over") == 1


def test_a_text_is_trained_stored_and_continued(repository, tmp_path):
    command = [sys.executable, repository / "python/examples/train_text.py", "40", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in result.stdout.splitlines() if line.startswith("step")]
    assert len(losses) == 2 and losses[1] < losses[0] < 5.6
    assert "the resumed run has the same bits: True" in result.stdout and (tmp_path / "checkpoint/SHA256SUMS").exists()


def test_training_ends_with_the_bits_of_rust(repository):
    program, digits = repository / "examples/languages/train.py", repository / "data/digits/digits.npz"
    if not program.exists() or shutil.which("cargo") is None:
        pytest.skip("the program of Rust needs the source tree and cargo")
    # With the features of both packages, as those of the Python package's build, cargo compiles one file.
    build = ["cargo", "build", "--quiet", "--package=selvedge-python", "--package=selvedge-program", "--example=languages-beside-python"]
    result = subprocess.run([*build, "--message-format=json"], cwd=repository, capture_output=True, text=True, timeout=1800)
    assert result.returncode == 0, result.stderr
    executables = [json.loads(line).get("executable") for line in result.stdout.splitlines()]
    (rust,) = filter(None, executables)
    found, wanted = (
        subprocess.run([*command, digits], capture_output=True, text=True, timeout=300, check=True).stdout
        for command in ([sys.executable, program], [rust])
    )
    assert found == wanted and len(wanted.splitlines()) == 3
