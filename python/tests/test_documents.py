"""Docstrings: every method has one, with a signature whose defaults can be read, and examples that run."""

import doctest
import inspect

import pytest
import selvedge as sv

METHODS = {name: getattr(sv.Tensor, name) for name in dir(sv.Tensor) if not name.startswith("_")}


def test_every_method_has_a_docstring():
    assert len(METHODS) > 230
    without = [name for name, method in METHODS.items() if not method.__doc__ or not method.__doc__.strip()]
    assert not without


def test_methods_of_rust_have_an_example():
    # Those with text of Python alone.
    python = set("astype cpu cuda data_ptr fill_ item numpy to to_device tolist".split())
    calls = {name for name, method in METHODS.items() if callable(method)}
    assert {name for name in calls if ">>> " not in METHODS[name].__doc__} == python
    assert ">>> sv.Tensor([[1.0, 2.0], [3.0, 4.0]]).sum(axis=0).tolist()\n[4.0, 6.0]" in sv.Tensor.sum.__doc__


OF_PACKAGE = {f"Tokenizer.{name}": getattr(sv.Tokenizer, name) for name in ["train"]} | {"StreamDecoder.push": sv.StreamDecoder.push}
MODULES = [sv.nn, sv.io, sv.catalogue, sv.classifier]
OF_MODULES = {f"{module.__name__.split('.')[-1]}.{name}": getattr(module, name) for module in MODULES for name in module.__all__}
# Numbers and tuples have the docstring of their type.
MEMBERS = {name: member for name, member in OF_MODULES.items() if callable(member)}
OF_CLASSES = {
    f"{owner}.{name}": member
    for owner, class_ in MEMBERS.items()
    if isinstance(class_, type)
    for name, member in vars(class_).items()
    if not name.startswith("_")
}
DOCUMENTED = {**MEMBERS, **OF_CLASSES, **OF_PACKAGE}


def test_everything_of_modules_has_a_docstring():
    assert len(DOCUMENTED) > 300
    assert not [name for name, member in DOCUMENTED.items() if not (member.__doc__ or "").strip()]
    for name, member in DOCUMENTED.items():
        for word in ["```", "](", "::", "[`", "# Errors", "&Device"]:
            assert word not in member.__doc__, f"{name}: {word}"


@pytest.mark.parametrize("name", [name for name, member in DOCUMENTED.items() if ">>> " in member.__doc__ and member not in METHODS.values()])
def test_examples_of_modules_give_what_they_show(name):
    example = doctest.DocTestParser().get_doctest(DOCUMENTED[name].__doc__, {"sv": sv}, name, None, 0)
    report = []
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)


def test_functions_of_catalogue_and_classifier_have_an_example():
    functions = {name: member for name, member in MEMBERS.items() if name.startswith(("catalogue.", "classifier."))}
    without = {name for name, member in functions.items() if not isinstance(member, type) and ">>> " not in member.__doc__}
    assert len(functions) > 40 and not without


@pytest.mark.parametrize("name", [name for name in METHODS if ">>> " in METHODS[name].__doc__])
def test_examples_give_what_they_show(name):
    example = doctest.DocTestParser().get_doctest(METHODS[name].__doc__, {"sv": sv}, name, None, 0)
    assert example.examples
    report = []
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)


def test_docstrings_are_texts_of_python():
    for name, method in METHODS.items():
        for word in ["```", "](", "::", "[`", "# Errors", "&Device"]:
            assert word not in method.__doc__, f"{name}: {word} in\n{method.__doc__}"


def test_no_signature_hides_a_default():
    callables = [*METHODS.values(), *(getattr(sv, name) for name in dir(sv) if not name.startswith("_"))]
    seen = 0
    for function in callables:
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            continue
        seen += 1
        assert not [parameter for parameter in parameters if parameter.default is ...], function
    assert seen > 230
