"""The examples run and write what they say."""

import subprocess
import sys
import xml.etree.ElementTree


def test_the_raster_is_a_picture_of_spikes(repository, tmp_path):
    command = [sys.executable, repository / "python/examples/raster.py", tmp_path / "raster.svg"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    root = xml.etree.ElementTree.parse(tmp_path / "raster.svg").getroot()
    assert root.tag.endswith("svg") and len(root[1].attrib["d"]) > 1000
