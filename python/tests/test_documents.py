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


NN = {name: getattr(sv.nn, name) for name in sv.nn.__all__}
OF_CLASSES = {
    f"{owner}.{name}": member
    for owner, class_ in NN.items()
    if isinstance(class_, type)
    for name, member in vars(class_).items()
    if not name.startswith("_")
}
OF_NN = {**NN, **OF_CLASSES, **{name: getattr(sv.io, name) for name in sv.io.__all__}}


def test_everything_of_nn_and_io_has_a_docstring():
    assert len(OF_NN) > 200
    assert not [name for name, member in OF_NN.items() if not (member.__doc__ or "").strip()]
    for name, member in OF_NN.items():
        for word in ["```", "](", "::", "[`", "# Errors", "&Device"]:
            assert word not in member.__doc__, f"{name}: {word}"


@pytest.mark.parametrize("name", [name for name, member in OF_NN.items() if ">>> " in member.__doc__ and member not in METHODS.values()])
def test_examples_of_nn_give_what_they_show(name):
    example = doctest.DocTestParser().get_doctest(OF_NN[name].__doc__, {"sv": sv}, name, None, 0)
    report = []
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)


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
