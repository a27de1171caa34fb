"""The stub names everything that the package has, with its parameters."""

import ast
import inspect

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
            is_property = any(isinstance(decorator, ast.Name) for decorator in node.decorator_list if decorator.id == "property")
            names[node.name] = None if is_property else parameters_of_stub(node)
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


def test_stub_and_package_have_the_same_names_and_parameters(repository):
    stub, classes = read(repository, "__init__.pyi")
    compare(stub, sv, "selvedge")
    for name in ["Tensor", "Generator", "DType", "Device", "Expression", "Fused", "Kernel", "KernelOutput"]:
        compare(names_of(classes[name].body), getattr(sv, name), name)
    for name, node in classes.items():
        if name.endswith("Error"):
            assert [base.__name__ for base in getattr(sv, name).__bases__] == [ast.unparse(base) for base in node.bases]


def test_stubs_of_modules_have_their_names_and_parameters(repository):
    for name, module in [("srt", sv.srt), ("burst", sv.burst)]:
        stub, classes = read(repository, f"{name}.pyi")
        assert set(stub) == set(module.__all__)
        for member, parameters in stub.items():
            if parameters is not None:
                assert parameters == list(inspect.signature(getattr(module, member)).parameters), member
        for member, node in classes.items():
            compare(names_of(node.body), getattr(module, member), member)
