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


DECODERS = {
    "gpt2": dict(vocabulary=50257, width=768, hidden=3072, layers=12, heads=12, key_heads=12),
    "llama": dict(vocabulary=32000, width=768, hidden=2048, layers=12, heads=12, key_heads=4),
}  # fmt: skip


def make_decoding(name, batch, prompt, ids):
    """New ids of a decoder with random weights and a cache of fixed memory, by plain functions: no module's call is in the way."""
    functional, sizes = torch.nn.functional, DECODERS[name]
    width, hidden, heads, key_heads = (sizes[size] for size in ("width", "hidden", "heads", "key_heads"))
    dimension, context, is_gpt2 = width // heads, prompt + ids + 1, name == "gpt2"
    torch.manual_seed(1)

    def weight(outputs, inputs):
        # GPT-2's files store the transpose.
        stored = torch.randn(inputs, outputs) if is_gpt2 else torch.randn(outputs, inputs)
        stored *= 0.02
        return stored.t() if is_gpt2 else stored

    def linear(outputs, inputs):
        return weight(outputs, inputs), torch.zeros(outputs) if is_gpt2 else None

    def norm():
        return torch.ones(width), torch.zeros(width)

    table = torch.randn(sizes["vocabulary"], width) * 0.02
    head = table if is_gpt2 else torch.randn(sizes["vocabulary"], width) * 0.02
    positions = torch.randn(context, width) * 0.02
    layers = [
        dict(
            norms=(norm(), norm()),
            packed=linear((heads + 2 * key_heads) * dimension, width),
            output=linear(width, width),
            up=linear(hidden if is_gpt2 else 2 * hidden, width),
            down=linear(width, hidden),
            cache=torch.zeros(2, batch, key_heads, context, dimension),
        )
        for _ in range(sizes["layers"])
    ]
    last_norm = norm()
    angles = torch.arange(context)[:, None] * 10000.0 ** (-torch.arange(0, dimension, 2) / dimension)
    cosines, sines = (torch.cat([part, part], -1) for part in (angles.cos(), angles.sin()))

    def normalized(x, parts):
        if is_gpt2:
            return functional.layer_norm(x, (width,), *parts)
        return functional.rms_norm(x, (width,), parts[0], 1e-5)

    def rotated(x, at):
        first, second = x.chunk(2, -1)
        return x * cosines[at] + torch.cat([-second, first], -1) * sines[at]

    def forward(latest, at):
        x = functional.embedding(latest, table)
        if is_gpt2:
            x = x + positions[at]
        for layer in layers:
            packed = functional.linear(normalized(x, layer["norms"][0]), *layer["packed"])
            packed = packed.view(batch, heads + 2 * key_heads, dimension)
            queries, keys, values = packed.split([heads, key_heads, key_heads], 1)
            if not is_gpt2:
                queries, keys = rotated(queries, at), rotated(keys, at)
            cache = layer["cache"]
            cache[0, :, :, at], cache[1, :, :, at] = keys, values
            attended = functional.scaled_dot_product_attention(
                queries[:, :, None], cache[0, :, :, : at + 1], cache[1, :, :, : at + 1], enable_gqa=heads != key_heads
            )
            x = x + functional.linear(attended.reshape(batch, width), *layer["output"])
            y = functional.linear(normalized(x, layer["norms"][1]), *layer["up"])
            if is_gpt2:
                y = functional.gelu(y, approximate="tanh")
            else:
                gate, up = y.chunk(2, -1)
                y = functional.silu(gate) * up
            x = x + functional.linear(y, *layer["down"])
        return functional.linear(normalized(x, last_norm), head).argmax(-1)

    def run():
        # Keys and values of the prompt are zeros: the time does not depend on them.
        with torch.inference_mode():
            latest = torch.zeros(batch, dtype=torch.int64)
            for at in range(prompt, prompt + ids):
                latest = forward(latest, at)
                # The host reads each id, as ours does.
                latest.tolist()

    return run


MAKE = {"step": make_step, "softmax": make_softmax, "attention": make_attention, "decoding": make_decoding}
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
