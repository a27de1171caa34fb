"""Operations whose forward and backward are functions of Python, and fused functions of variables."""

import threading

import numpy as np
import pytest
import selvedge as sv
from selvedge import nn


class Cube(nn.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return 3 * x**2 * gradient


class Scaled(nn.Function):
    """x · y · factor, whose factor is a number of Python."""

    @staticmethod
    def forward(context, x, y, factor, note=None):
        context.factor, context.note = factor, note
        context.save_for_backward(x, y)
        return x * y * factor

    @staticmethod
    def backward(context, gradient):
        x, y = context.saved_tensors
        needs = context.needs_input_grad
        found = [gradient * y * context.factor if needs[0] else None, gradient * x * context.factor if needs[1] else None]
        return (*found, *[None] * (len(needs) - 2))


class Exponential(nn.Function):
    """Saves its result."""

    @staticmethod
    def forward(context, x):
        result = x.exp()
        context.save_for_backward(result)
        return result

    @staticmethod
    def backward(context, gradient):
        return gradient * context.saved_tensors[0]


def of(forward, backward):
    return type("Written", (nn.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def variable(*numbers):
    return nn.Variable(list(numbers), requires_grad=True)


def test_a_function_has_the_gradient_of_its_backward():
    x = variable(1.0, -2.0)
    y = Cube.apply(x * 2)
    assert isinstance(y, nn.Variable) and y.tolist() == [8.0, -64.0] and not y.is_leaf
    y.backward(sv.Tensor([1.0, 0.5]))
    assert x.grad.tolist() == [24.0, 48.0]


def test_arguments_that_are_no_tensors_come_as_they_are_and_have_no_gradient():
    x, note = variable(2.0, 3.0), object()
    seen = []

    class Noting(Scaled):
        @staticmethod
        def backward(context, gradient):
            seen.append((context.note, context.needs_input_grad))
            return Scaled.backward(context, gradient)

    Noting.apply(x, sv.Tensor([5.0, 7.0]), 10.0, note).sum().backward()
    assert x.grad.tolist() == [50.0, 70.0]
    assert seen == [(note, (True, False, False, False))]


def test_without_a_gradient_the_result_is_a_constant_and_needs_no_backward():
    class Forward(nn.Function):
        @staticmethod
        def forward(context, x):
            assert context.needs_input_grad == (False,)
            return x + 1

    assert not Forward.apply(nn.Variable([1.0])).requires_grad
    assert Forward.apply(sv.Tensor([1.0])).tolist() == [2.0]
    with nn.no_grad():
        assert not Forward.apply(variable(1.0)).requires_grad
    with pytest.raises(sv.ArgumentError, match=r"no backward in the class; wanted a static method backward\(context, gradient\)"):
        Forward.apply(variable(1.0))
    with pytest.raises(sv.ArgumentError, match="no forward in the class"):
        nn.Function.apply(variable(1.0))


def test_a_saved_result_and_inputs_are_checked_for_changes_in_place():
    x = variable(0.0, 1.0)
    Exponential.apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([0.0, 1.0]))
    x = variable(1.0)
    y = Cube.apply(x)
    with nn.no_grad():
        x.copy_(sv.Tensor([2.0]))
    with pytest.raises(sv.Error, match="Cube"):
        y.backward()


def test_writes_of_the_forward_change_no_input():
    def forward(context, x):
        x += 1
        context.save_for_backward(x)
        return x * 1

    x = variable(1.0)
    of(forward, lambda context, gradient: gradient * context.saved_tensors[0]).apply(x).backward()
    assert x.tolist() == [1.0] and x.grad.tolist() == [2.0]


def test_a_retained_graph_runs_the_backward_again_and_a_freed_one_is_refused():
    x = variable(3.0)
    y = Cube.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [54.0]
    with pytest.raises(sv.Error, match="Cube"):
        y.backward()


def test_a_second_derivative_is_an_error_that_names_the_function():
    x = variable(3.0)
    with pytest.raises(sv.Error, match="Cube: .*no rule for second derivatives"):
        nn.grad(Cube.apply(x).sum(), [x], create_graph=True)
    assert nn.grad(Cube.apply(x).sum(), [x])[0].tolist() == [27.0]


@pytest.mark.parametrize(
    "backward, error, message",
    [
        (lambda context, gradient: (gradient, gradient), sv.Error, "2 gradients.*one for each of 1 argument"),
        (lambda context, gradient: "text", TypeError, "gradient of type str for argument 0"),
        (lambda context, gradient: sv.ones(3, 5), sv.Error, "Written"),
    ],
)
def test_wrong_results_of_a_backward_are_errors_of_the_backward(backward, error, message):
    y = of(lambda context, x: x * 1, backward).apply(variable(1.0, 2.0))
    with pytest.raises(error, match=message):
        y.sum().backward()


def test_a_gradient_for_an_object_and_a_result_that_is_no_tensor_are_errors():
    function = of(lambda context, x, factor: x * factor, lambda context, gradient: (gradient, gradient))
    with pytest.raises(sv.Error, match="gradient for argument 1, of type float.*None"):
        function.apply(variable(1.0), 2.0).backward()
    with pytest.raises(TypeError, match="found int.*|wants a selvedge.Tensor.*found int"):
        of(lambda context, x: 3, None).apply(nn.Variable([1.0]))
    with pytest.raises(TypeError, match="save_for_backward.*list"):
        of(lambda context, x: context.save_for_backward([x]), None).apply(nn.Variable([1.0]))


def test_exceptions_of_both_methods_reach_the_caller():
    def broken(context, *arguments):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        of(broken, broken).apply(variable(1.0))
    x = variable(1.0)
    y = of(lambda context, x: x * 2, broken).apply(x)
    with pytest.raises(LookupError, match="mine"):
        (y * 2).sum().backward()
    assert x.grad is None


def test_a_function_trains_a_module_and_repeats_in_a_checkpoint():
    layer = nn.Linear(2, 1)
    optimizer = nn.SGD(layer, lr=0.05)
    x, y = sv.Tensor([[1.0, 2.0], [3.0, -1.0]], "f32"), sv.Tensor([[1.0], [-1.0]], "f32")
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = nn.mse_loss(nn.checkpoint(lambda x: Scaled.apply(layer(x), sv.ones(1), 0.5), x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 10


def test_backwards_on_several_threads_take_turns(in_threads):
    shared, started = variable(1.0, 2.0), threading.Barrier(4)

    def work():
        started.wait()
        for _ in range(50):
            x = variable(1.0, 2.0)
            y = Cube.apply(Scaled.apply(x, shared, 2.0))
            y.sum().backward(retain_graph=True)
            y.sum().backward()
            assert x.grad.tolist() == [48.0, 1536.0]
            assert shared.grad is not None

    in_threads(work)


def test_a_context_frees_what_it_saved_with_the_graph():
    import gc
    import weakref

    class Marker:
        pass

    marks = []

    class Marking(Cube):
        @staticmethod
        def forward(context, x):
            context.mark = Marker()
            marks.append(weakref.ref(context.mark))
            return Cube.forward(context, x)

    y = Marking.apply(variable(1.0))
    gc.collect()
    assert marks[0]() is not None
    y.backward()
    gc.collect()
    assert marks[0]() is None


def test_a_fused_function_of_variables_has_gradients_of_every_order():
    cube = sv.fuse(lambda x, y: x**3 * y)
    x, y = variable(1.0, 2.0), variable(10.0)
    result = cube(x, y)
    assert isinstance(result, nn.Variable) and result.tolist() == [10.0, 80.0]
    first, of_y = nn.grad(result.sum(), [x, y], create_graph=True)
    assert first.tolist() == [30.0, 120.0] and of_y.tolist() == [9.0]
    (second,) = nn.grad(first.sum(), [x])
    assert second.tolist() == [60.0, 120.0]


def test_a_fused_function_takes_variables_beside_tensors_arrays_and_numbers():
    fused = sv.fuse(lambda x, y, z: (x * y + z, x > y))
    x = variable(1.0, 2.0)
    total, is_larger = fused(x, np.array([3.0, 4.0]), 0.5)
    (total * 2).sum().backward()
    assert x.grad.tolist() == [6.0, 8.0] and total.tolist() == [3.5, 8.5]
    assert is_larger.dtype == sv.DType("bool") and not is_larger.requires_grad
    assert isinstance(fused(sv.Tensor([1.0]), 2.0, 3.0)[0], sv.Tensor)
    with nn.no_grad():
        assert not fused(x, 1.0, 1.0)[0].requires_grad


def test_a_fused_function_of_variables_has_the_gradient_of_its_operations():
    function = lambda x, y: (x * y).tanh() + (x - y).sigmoid() * y
    found, wanted = [], []
    for gradients, run in [(found, sv.fuse(function)), (wanted, function)]:
        x, y = nn.Variable([[0.5, -1.0], [2.0, 0.25]], requires_grad=True), variable(0.75, -0.5)
        run(x, y).sum().backward()
        gradients += [x.grad.numpy(), y.grad.numpy()]
    for left, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)
