"""PyTorch's side of benchmarks on the CPU: does one piece of work when it is its turn.

pytorch_on_cpu.rs starts it. A request and its answer are a line of JSON each: at the start {"library"}, or {"absent": why} and the
end; {"work": name, "arguments": of its maker, "count"} is answered by {"seconds": of one of that many}. The work of the last
request is there for the next one.
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


def make_attention(length, heads, dimension, is_causal, has_backward):
    """Attention of (1, heads, length, head dimension), whose positions are stored one after the other, with all heads each."""
    queries, keys, values, gradient = (torch.randn(1, length, heads, dimension).transpose(1, 2) for _ in range(4))
    inputs = [queries, keys, values]
    attention = torch.nn.functional.scaled_dot_product_attention
    if not has_backward:
        return lambda: attention(*inputs, is_causal=is_causal)
    inputs = [x.requires_grad_() for x in inputs]
    return lambda: torch.autograd.grad(attention(*inputs, is_causal=is_causal), inputs, gradient)


MAKE = {"step": make_step, "softmax": make_softmax, "attention": make_attention}
torch.set_num_threads(len(os.sched_getaffinity(0)))
answer(library=f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
made = run = None
for line in sys.stdin:
    request = json.loads(line)
    if made != (request["work"], request["arguments"]):
        made = request["work"], request["arguments"]
        run = MAKE[request["work"]](*request["arguments"])
    begun = time.perf_counter()
    for _ in range(request["count"]):
        run()
    answer(seconds=(time.perf_counter() - begun) / request["count"])
