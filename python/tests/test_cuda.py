"""Tensors on a CUDA device: transfers, exchange and errors. They also hold on the fake driver, whose kernels compute nothing and
write elsewhere, so no test looks at elements after a kernel."""

import pickle

import numpy as np
import pytest
import selvedge as sv
from selvedge import nn

pytestmark = pytest.mark.usefixtures("cuda")


def test_elements_survive_the_way_to_the_device_and_back():
    # Without a cast, which is a kernel.
    for data in [[[1, 2], [3, 4]], [0.5, -0.0, float("inf")], [1 + 2j], [True, False]]:
        tensor = sv.Tensor(data, device="cuda")
        assert str(tensor.device) == "cuda:0" and tensor.__dlpack_device__() == (2, 0)
        assert tensor.tolist() == data and tensor.cpu().tolist() == data
        np.testing.assert_array_equal(tensor.numpy(), np.array(data))
        assert tensor[-1:].tolist() == data[-1:] and pickle.loads(pickle.dumps(tensor)).tolist() == data
    with sv.device("cuda"):
        assert str(sv.Tensor([1.0]).device) == "cuda:0"
    assert sv.Tensor([1.0]).device == sv.Device("cpu")


def test_exports_name_the_device_and_refuse_streams_that_are_none():
    tensor = sv.Tensor([1.0, 2.0], device="cuda")
    shared = sv.from_dlpack(tensor)
    del tensor
    assert str(shared.device) == "cuda:0" and shared.tolist() == [1.0, 2.0]
    assert "dltensor_versioned" in repr(shared.__dlpack__(stream=-1, max_version=(1, 0)))
    for stream in [0, -2]:
        with pytest.raises(sv.ArgumentError, match=f"stream={stream}; wanted None, -1"):
            shared.__dlpack__(stream=stream)
    # Default streams: without a number and 1 the legacy one, 2 that of this thread.
    for arguments in [{}, {"stream": None}, {"stream": 1}, {"stream": 2}]:
        assert "dltensor_versioned" in repr(shared.__dlpack__(max_version=(1, 0), **arguments))
    with pytest.raises(BufferError, match=r"dl_device=\(2, 5\)"):
        shared.__dlpack__(stream=-1, max_version=(1, 0), dl_device=(2, 5))
    on_host = np.from_dlpack(shared, device="cpu")
    assert on_host.tolist() == [1.0, 2.0]


def test_imports_move_between_devices():
    host, there = np.arange(3.0), sv.Tensor([1.0, 2.0], device="cuda")
    moved = sv.from_dlpack(host, device="cuda")
    assert str(moved.device) == "cuda:0" and moved.tolist() == [0, 1, 2]
    assert sv.from_dlpack(there, device="cpu").device == sv.Device("cpu") and sv.from_dlpack(there).device == there.device
    with pytest.raises(BufferError, match="an array on cpu with copy=False; wanted device=cpu"):
        sv.from_dlpack(host, device="cuda", copy=False)


def test_errors_name_devices():
    tensor = sv.Tensor([1.0], device="cuda")
    with pytest.raises(sv.ArgumentError, match="cuda:0 and a tensor on cpu"):
        tensor + sv.Tensor([1.0])
    with pytest.raises(sv.DeviceError, match="no device 99"):
        sv.zeros(3, device="cuda:99")
    with pytest.raises(sv.ArgumentError, match=r"\[2\]"):
        sv.ones(2, device="cuda") + sv.ones(3, device="cuda")


def test_threads_launch_on_one_device(in_threads):
    def work():
        for _ in range(20):
            tensor = sv.Tensor([1.0, 2.0, 3.0], device="cuda")
            assert (tensor * 2 + tensor).shape == (3,) and len((tensor * 2).sum(keepdim=True).tolist()) == 1

    in_threads(work)


def test_a_training_step_of_a_function_of_python_is_captured(cuda):
    model, calls = nn.Sequential(nn.Linear(3, 4, device="cuda"), nn.ReLU(), nn.Linear(4, 1, device="cuda")), []
    parameters = nn.Parameters(model)
    optimizer = nn.AdamW(parameters, lr=0.1)

    def loss(x, y):
        calls.append(x.device)
        return nn.mse_loss(model(x), y)

    step = nn.TrainingStep(parameters, optimizer, loss, max_norm=1.0)
    x, y = sv.ones((2, 3), device="cuda"), sv.zeros((2, 1), device="cuda")
    for number in range(6):
        optimizer.lr = 0.1 / (number + 1)
        assert step(x, y).shape == ()
        assert step.is_captured == (number > 0)
    assert len(calls) == 2 and calls[0] == sv.Device("cuda") and step.uncaptured_reason is None
    uncaptured = nn.TrainingStep(parameters, optimizer, loss, capture=False)
    for _ in range(3):
        uncaptured(x, y)
    assert len(calls) == 5 and not uncaptured.is_captured and uncaptured.uncaptured_reason


def test_a_step_that_cannot_be_captured_runs_without_a_graph(cuda):
    model, calls = nn.Linear(3, 1, device="cuda"), []
    parameters = nn.Parameters(model)

    def loss(x):
        calls.append(model(x).sum().item())
        return model(x).sum()

    step = nn.TrainingStep(parameters, nn.SGD(parameters, lr=0.1), loss)
    for _ in range(4):
        step(sv.ones((2, 3), device="cuda"))
    assert not step.is_captured and step.uncaptured_reason and len(calls) >= 4
    with pytest.raises(ZeroDivisionError):
        nn.TrainingStep(parameters, nn.SGD(parameters, lr=0.1), lambda x: 1 / 0)(sv.ones((2, 3), device="cuda"))


def test_an_exception_in_a_capture_leaves_a_step_that_runs(cuda):
    model, calls = nn.Linear(3, 1, device="cuda"), []
    parameters = nn.Parameters(model)

    def loss(x):
        calls.append(1)
        if len(calls) == 2:
            raise LookupError("in the capture")
        return model(x).sum()

    step = nn.TrainingStep(parameters, nn.SGD(parameters, lr=0.1), loss)
    x = sv.ones((2, 3), device="cuda")
    step(x)
    before = step.state_dict()
    with pytest.raises(LookupError, match="in the capture"):
        step(x)
    assert len(calls) == 2 and step.state_dict().keys() == before.keys()
    assert step(x).shape == () and not step.is_captured and "in the capture" in step.uncaptured_reason


def test_a_module_on_two_devices_is_refused_with_the_names_of_its_parameters(cuda):
    class Two(nn.Module):
        def __init__(self):
            self.here = nn.Parameter([1.0])
            self.there = nn.Parameter([1.0], device="cuda")

    parameters = nn.Parameters(Two())
    with pytest.raises(sv.ArgumentError, match="cpu, of the parameter 'here'.*cuda:0, of the parameter 'there'"):
        nn.TrainingStep(parameters, nn.SGD(parameters, lr=0.1), lambda x: x)


def test_a_pickled_module_comes_back_on_its_device(cuda):
    layer = nn.Linear(2, 2, device="cuda", dtype="f64")
    other = pickle.loads(pickle.dumps(layer))
    assert (other.weight.device, other.weight.dtype, other.bias.shape) == (sv.Device("cuda"), sv.f64, (2,))


def test_a_pickled_module_has_its_elements_on_the_device(computing_cuda):
    layer = nn.Linear(2, 2, device="cuda")
    assert pickle.loads(pickle.dumps(layer)).weight.tolist() == layer.weight.tolist()
