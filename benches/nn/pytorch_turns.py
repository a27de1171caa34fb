"""PyTorch's side of nn_cpu: training of a perceptron, and a softmax, on the CPU, when it is its turn.

on_cpu.rs starts it. A request and its answer are a line of JSON each: at the start {"library"}, or {"absent": why} and the
end; {"steps": count} and {"softmax": count} are answered by {"seconds": of one}.
"""

import json
import os
import sys
import time


def answer(**fields):
    print(json.dumps(fields), flush=True)


try:
    import torch
except ImportError as error:
    answer(absent=f"{sys.executable} has no PyTorch ({error})")
    sys.exit()


def make_step():
    torch.manual_seed(1)
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    model = torch.nn.Sequential(linear(784, 512), relu(), linear(512, 512), relu(), linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.randn(128, 784), torch.randint(10, (128,))

    def step():
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def make_softmax():
    x = torch.randn(4096, 4096)
    out = torch.empty_like(x)
    return lambda: torch.softmax(x, dim=1, out=out)


torch.set_num_threads(len(os.sched_getaffinity(0)))
run = {"steps": make_step(), "softmax": make_softmax()}
answer(library=f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
for line in sys.stdin:
    [(name, count)] = json.loads(line).items()
    begun = time.perf_counter()
    for _ in range(count):
        run[name]()
    answer(seconds=(time.perf_counter() - begun) / count)
