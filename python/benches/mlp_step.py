"""Times a training step of an MLP from Python on a GPU, in turns with PyTorch, eager and as a CUDA graph.

    python python/benches/mlp_step.py [ROUNDS]

The layers are 784-512-512-10 with relu, in f32, a batch 128, and a step is forward, cross-entropy, backward and SGD on arrays that lie on
the device. PyTorch's products are IEEE f32, and its eager step has the fused optimizer. It prints medians and quartiles in
microseconds, of 200 steps each with one wait at their end.
"""

import statistics
import sys
import time

import numpy as np
import selvedge as sv
import torch
from selvedge import nn

SIZES, BATCH, RATE, STEPS = (784, 512, 512, 10), 128, 0.01, 200


def own(x, y):
    layers = []
    for inputs, outputs in zip(SIZES, SIZES[1:]):
        layers += [nn.Linear(inputs, outputs, device="cuda"), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    parameters = nn.Parameters(model)
    step = nn.TrainingStep(parameters, nn.SGD(parameters, lr=RATE), lambda x, y: nn.cross_entropy(model(x), y))
    x, y = sv.Tensor(x, device="cuda"), sv.Tensor(y, device="cuda")
    return lambda: step(x, y)


def pytorch_model():
    layers = []
    for inputs, outputs in zip(SIZES, SIZES[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1]).cuda()


def eager(x, y):
    model = pytorch_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, fused=True)
    x, y = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def graph(x, y):
    step = eager(x, y)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        step()
    # The graph reads the arrays of the step, which lives as long as this function.
    return lambda step=step: captured.replay()


def microseconds(step):
    begun = time.perf_counter()
    for _ in range(STEPS):
        step()
    sv.Device("cuda").synchronize()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) * 1e6 / STEPS


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    random = np.random.default_rng(1)
    x, y = random.standard_normal((BATCH, SIZES[0]), np.float32), random.integers(0, SIZES[-1], BATCH)
    sides = {"selvedge": own(x, y), "PyTorch, eager": eager(x, y), "PyTorch, CUDA graph": graph(x, y)}
    for step in sides.values():
        microseconds(step)
    times = {name: [] for name in sides}
    for turn in range(rounds):
        for name in list(sides) if turn % 2 else reversed(list(sides)):
            times[name].append(microseconds(sides[name]))
    for name, found in times.items():
        lower, median, upper = statistics.quantiles(found, n=4)
        print(f"{name:20} {median:8.1f} us ({lower:.1f} to {upper:.1f})")


main()
