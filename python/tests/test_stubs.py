"""The stub names everything that the package has, with its parameters, and checkers of types take everyday lines."""

import ast
import importlib.util
import inspect
import os
import pathlib
import runpy
import subprocess
import sys

import pytest
import selvedge as sv


def parameters_of_stub(function):
    arguments = function.args
    names = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [name.arg for name in names if name is not None]


def names_of(body):
    """Returns the functions, properties and variables of a module or class, with the parameters of functions."""
    names = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            is_property = any(ast.unparse(decorator).split(".")[-1] in ["property", "setter"] for decorator in node.decorator_list)
            is_of_class = any(ast.unparse(decorator) == "classmethod" for decorator in node.decorator_list)
            names[node.name] = None if is_property else parameters_of_stub(node)[is_of_class:]
        elif isinstance(node, ast.ClassDef):
            names[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = None
        elif isinstance(node, ast.Assign):
            names[node.targets[0].id] = None
    return names


def public(name):
    return not name.startswith("_")


def compare(stub, owner, path):
    runtime = {name: value for name, value in vars(owner).items() if public(name) and not inspect.ismodule(value)}
    assert {name for name in stub if public(name)} == set(runtime), path
    for name, parameters in stub.items():
        if public(name) and parameters is not None:
            assert parameters == list(inspect.signature(getattr(owner, name)).parameters), f"{path}.{name}"


def read(repository, name):
    module = ast.parse((repository / "python/package/selvedge" / name).read_text())
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    aliases = {node.target.id for node in module.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"}
    return {name: value for name, value in names_of(module.body).items() if name not in aliases}, classes


STREAMS = ["Stream", "Event", "Graph", "ExecutableGraph"]


def test_stub_and_package_have_the_same_names_and_parameters(repository):
    stub, classes = read(repository, "__init__.pyi")
    compare(stub, sv, "selvedge")
    for name in ["Tensor", "Generator", "DType", "Device", "Expression", "Fused", "Kernel", "KernelOutput", "Decoder", "Tokenizer", "StreamDecoder", *STREAMS]:
        compare(names_of(classes[name].body), getattr(sv, name), name)
    for name, node in classes.items():
        if name.endswith("Error"):
            assert [base.__name__ for base in getattr(sv, name).__bases__] == [ast.unparse(base) for base in node.bases]


def test_stubs_of_modules_have_their_names_and_parameters(repository):
    for name in ["srt", "burst", "catalogue", "classifier", "nn", "io"]:
        module = getattr(sv, name)
        stub, classes = read(repository, f"{name}.pyi")
        assert {member for member in stub if public(member)} == set(module.__all__)
        for member, parameters in stub.items():
            if public(member) and parameters is not None:
                assert parameters == list(inspect.signature(getattr(module, member)).parameters), member
        for member, node in classes.items():
            compare(names_of(node.body), getattr(module, member), member)


def test_stubs_import_the_standard_library_alone(repository):
    for path in (repository / "python/package/selvedge").glob("*.pyi"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            else:
                names = [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names, path


def test_everyday_lines_run(repository):
    path = repository / "python/tests/typing/everyday.py"
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith(('"', "import"))]
    assert len(lines) >= 60
    runpy.run_path(str(path))


CHECKERS = {"mypy": ["--strict"], "pyright": ["--pythonpath", sys.executable]}


@pytest.mark.parametrize("checker", CHECKERS)
def test_checkers_of_types_take_everyday_lines(repository, tmp_path, checker):
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    package = pathlib.Path(sv.__file__).parents[1]
    environment = dict(os.environ, MYPYPATH=str(package), PYTHONPATH=str(package))
    checked = "python/tests/typing/everyday.py"

    def check(path):
        command = [sys.executable, "-m", checker, *CHECKERS[checker], str(path)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    done = check(repository / checked)
    assert done.returncode == 0, done.stdout + done.stderr
    # The checker reads the stubs: a line that is wrong is found.
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import selvedge as sv\n\nx: str = sv.ones((2,)).sum()\n")
    done = check(wrong)
    assert done.returncode == 1 and "wrong.py" in done.stdout, done.stdout + done.stderr
