"""Packs a folder of tokenizers and their cases into cases.json.zst; README.md describes both. It runs zstd."""

import json
import pathlib
import subprocess
import sys

source = pathlib.Path(sys.argv[1])
packed = {}
for name in ["gpt2", "llama3", "llama2", "metaspace"]:
    cases = json.loads((source / f"{name}.cases.json").read_text(encoding="utf-8"))
    for case in cases["encode"]:
        del case["tokens"], case["offsets"]
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted((source / name).iterdir())}
    packed[name] = {"files": files, "cases": cases}
text = json.dumps(packed, ensure_ascii=True, separators=(",", ":"))
target = pathlib.Path(__file__).with_name("cases.json.zst")
subprocess.run(["zstd", "-19", "-q", "-f", "-o", str(target)], input=text.encode(), check=True)
