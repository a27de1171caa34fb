"""minimum.py VERSION: fails where a dependency of the library, as locked, asks for a newer Rust than VERSION.

This needs no such toolchain, so it holds where none can be fetched. Dependencies of tests and of the program `selvedge`
may ask for more.
"""

import json
import subprocess
import sys


def number(text):
    return tuple(int(part) for part in text.split("."))


def main():
    wanted = sys.argv[1]
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--no-default-features"]
    metadata = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    pending, seen = [metadata["resolve"]["root"]], set()
    while pending:
        package = pending.pop()
        if package in seen:
            continue
        seen.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                pending.append(dependency["pkg"])
    asking = {packages[each]["name"]: packages[each]["rust_version"] for each in seen}
    newer = {name: version for name, version in asking.items() if version and number(version) > number(wanted)}
    if newer:
        sys.exit("these ask for a newer Rust: " + ", ".join(f"{name} {version}" for name, version in newer.items()))
    print(f"none of {len(asking)} packages asks for a Rust newer than {wanted}")


main()
