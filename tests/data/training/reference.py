#!/usr/bin/env python3
"""The losses of a GPT's training in f64, from the formulas, with NumPy alone.

    reference.py            writes losses.json beside this file
    reference.py --check    compares the losses with that file, to 1e-9 of each

It reads the model and the cases of run.json, the parameters of the first step (weights.safetensors, f32) and the ids of
all batches (batches.safetensors, u8 of shape [batch, row, context + 1]). selvedge wrote both files, see
tests/nn/reference.rs; nothing else here comes from selvedge. Gradients are derived by hand.
"""

import json
import math
import struct
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
TOLERANCE = 1e-9


def read_safetensors(path):
    """The arrays of a file by name: a length of 8 bytes, a header in JSON, then the elements."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = {"F32": "<f4", "U8": "u1"}[entry["dtype"]]
        arrays[name] = np.frombuffer(data[begin:end], dtype).reshape(entry["shape"])
    return arrays


def linear(x, weight, bias):
    """y = x W + b along the last axis."""
    return x @ weight + bias


def linear_backward(dy, x, weight):
    """dx = dy Wᵀ, dW = xᵀ dy, db = Σ dy."""
    rows, gradients = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ weight.T, rows.T @ gradients, gradients.sum(0)


def layer_norm(x, weight, bias, eps):
    """y = x̂ w + b with x̂ = (x - mean) / sqrt(variance + eps) of the last axis. Also x̂ and the reciprocal of the root."""
    centred = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    return centred * scale * weight + bias, centred * scale, scale


def layer_norm_backward(dy, normal, scale, weight):
    """dx = scale (g - mean(g) - x̂ mean(g x̂)) with g = dy w; dw = Σ dy x̂, db = Σ dy."""
    g = dy * weight
    mean = (g * normal).mean(-1, keepdims=True)
    dx = scale * (g - g.mean(-1, keepdims=True) - normal * mean)
    axes = tuple(range(dy.ndim - 1))
    return dx, (dy * normal).sum(axes), dy.sum(axes)


ROOT = math.sqrt(2 / math.pi)


def gelu(x):
    """x (1 + tanh u) / 2 with u = sqrt(2/π) (x + 0.044715 x³)."""
    return 0.5 * x * (1 + np.tanh(ROOT * (x + 0.044715 * x**3)))


def gelu_backward(dy, x):
    """(1 + t) / 2 + x (1 - t²) u' / 2 with t = tanh u and u' = sqrt(2/π) (1 + 3 · 0.044715 x²)."""
    t = np.tanh(ROOT * (x + 0.044715 * x**3))
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * ROOT * (1 + 3 * 0.044715 * x**2))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def split_heads(x, heads):
    """(batch, length, width) as (batch, heads, length, width / heads)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def join_heads(x):
    batch, heads, length, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * size)


def attention(qkv, heads):
    """P V with P = softmax(Q Kᵀ / sqrt(d)) over the keys at and before each query. Also Q, K, V and P."""
    q, k, v = (split_heads(part, heads) for part in np.split(qkv, 3, axis=-1))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    later = np.triu(np.ones(scores.shape[-2:], bool), 1)
    p = softmax(np.where(later, -np.inf, scores))
    return join_heads(p @ v), (q, k, v, p)


def attention_backward(dy, saved, heads):
    """dV = Pᵀ G, dS = P (dP - Σ P dP) with dP = G Vᵀ, dQ = dS K / sqrt(d), dK = dSᵀ Q / sqrt(d)."""
    q, k, v, p = saved
    g = split_heads(dy, heads)
    dp = g @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) / math.sqrt(q.shape[-1])
    parts = ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g
    return np.concatenate([join_heads(part) for part in parts], axis=-1)


def loss_and_gradients(parameters, model, ids):
    """The mean cross-entropy of each id after those before it, and its gradient with respect to each parameter."""
    heads, eps, layers = model["n_head"], model["layer_norm_epsilon"], model["n_layer"]
    w = {name.removeprefix("transformer."): value for name, value in parameters.items()}
    inputs, targets = ids[:, :-1], ids[:, 1:]
    length = inputs.shape[1]
    saved = []
    x = w["wte.weight"][inputs] + w["wpe.weight"][:length]
    for layer in range(layers):
        def of(name, prefix=f"h.{layer}."):
            return w[f"{prefix}{name}.weight"], w[f"{prefix}{name}.bias"]

        first, *first_norm = layer_norm(x, *of("ln_1"), eps)
        mixed, heads_saved = attention(linear(first, *of("attn.c_attn")), heads)
        x = x + linear(mixed, *of("attn.c_proj"))
        second, *second_norm = layer_norm(x, *of("ln_2"), eps)
        wide = linear(second, *of("mlp.c_fc"))
        x = x + linear(gelu(wide), *of("mlp.c_proj"))
        saved.append((first, first_norm, mixed, heads_saved, second, second_norm, wide))
    last, *last_norm = layer_norm(x, w["ln_f.weight"], w["ln_f.bias"], eps)
    p = softmax(last @ w["wte.weight"].T)
    chosen = np.take_along_axis(p, targets[..., None], -1)
    loss = -np.log(chosen).mean()

    d = {}
    # The gradient of the logits: (P - one-hot) / number of ids.
    dlogits = p.copy()
    np.put_along_axis(dlogits, targets[..., None], chosen - 1, -1)
    dlogits /= targets.size
    width, vocab = last.shape[-1], p.shape[-1]
    # The embedding is the head too, so its gradient has two parts.
    d["wte.weight"] = dlogits.reshape(-1, vocab).T @ last.reshape(-1, width)
    dx, d["ln_f.weight"], d["ln_f.bias"] = layer_norm_backward(dlogits @ w["wte.weight"], *last_norm, w["ln_f.weight"])
    for layer in reversed(range(layers)):
        first, first_norm, mixed, heads_saved, second, second_norm, wide = saved[layer]

        def back(function, name, dy, *arguments, prefix=f"h.{layer}."):
            key = f"{prefix}{name}"
            dx, d[f"{key}.weight"], d[f"{key}.bias"] = function(dy, *arguments, w[f"{key}.weight"])
            return dx

        dwide = gelu_backward(back(linear_backward, "mlp.c_proj", dx, gelu(wide)), wide)
        dsecond = back(linear_backward, "mlp.c_fc", dwide, second)
        dx = dx + back(layer_norm_backward, "ln_2", dsecond, *second_norm)
        dqkv = attention_backward(back(linear_backward, "attn.c_proj", dx, mixed), heads_saved, heads)
        dfirst = back(linear_backward, "attn.c_attn", dqkv, first)
        dx = dx + back(layer_norm_backward, "ln_1", dfirst, *first_norm)
    np.add.at(d["wte.weight"], inputs, dx)
    d["wpe.weight"] = np.zeros_like(w["wpe.weight"])
    d["wpe.weight"][:length] = dx.sum(0)
    return loss, {name: d[name.removeprefix("transformer.")] for name in parameters}


def learning_rate(options, step):
    """A line from 0 to the peak, then half a cosine to the minimum. The first step is 0."""
    peak, minimum = options["learning_rate"], options["min_learning_rate"]
    warmup, total = options["warmup_steps"], options["steps"]
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / (total - warmup)
    return minimum + (peak - minimum) * (1 + math.cos(math.pi * progress)) / 2


def train(model, options, weights, batches):
    """The losses of a run's steps, and the norms of their gradients before clipping."""
    parameters = {name: value.astype(np.float64) for name, value in weights.items()}
    first = {name: np.zeros_like(value) for name, value in parameters.items()}
    second = {name: np.zeros_like(value) for name, value in parameters.items()}
    beta1, beta2 = options["betas"]
    count = options["accumulation"]
    losses, norms = [], []
    for step in range(options["steps"]):
        results = [loss_and_gradients(parameters, model, ids) for ids in batches[step * count : (step + 1) * count]]
        losses.append(float(sum(loss for loss, _ in results) / count))
        gradients = {name: sum(part[name] for _, part in results) / count for name in parameters}
        norm = math.sqrt(sum(float((gradient**2).sum()) for gradient in gradients.values()))
        norms.append(norm)
        clip = min(1.0, options["max_norm"] / (norm + 1e-6))
        rate = learning_rate(options, step)
        for name, gradient in gradients.items():
            g = gradient * clip
            first[name] = beta1 * first[name] + (1 - beta1) * g
            second[name] = beta2 * second[name] + (1 - beta2) * g**2
            mean = first[name] / (1 - beta1 ** (step + 1))
            square = second[name] / (1 - beta2 ** (step + 1))
            decay = options["weight_decay"] if gradient.ndim >= 2 else 0.0
            parameters[name] = parameters[name] * (1 - rate * decay) - rate * mean / (np.sqrt(square) + 1e-8)
    return {"losses": losses, "grad_norms": norms}


def main():
    run = json.loads((FOLDER / "run.json").read_text())
    weights = read_safetensors(FOLDER / "weights.safetensors")
    batches = read_safetensors(FOLDER / "batches.safetensors")["ids"].astype(np.int64)
    found = {name: train(run["model"], options, weights, batches) for name, options in run["cases"].items()}
    path = FOLDER / "losses.json"
    if sys.argv[1:] != ["--check"]:
        path.write_text(json.dumps(found, indent=1) + "\n")
        return
    wanted = json.loads(path.read_text())
    if wanted.keys() != found.keys():
        sys.exit(f"{path}: cases {sorted(wanted)}, but run.json has {sorted(found)}")
    for case, series in found.items():
        for name, values in series.items():
            listed = wanted[case][name]
            if len(listed) != len(values):
                sys.exit(f"{path}: {case} has {len(listed)} {name} for {len(values)} steps")
            far = max(abs(a - b) / abs(b) for a, b in zip(values, listed))
            print(f"{case}: {len(values)} {name}, at most {far:.1e} from {path.name}")
            if not far <= TOLERANCE:
                sys.exit(f"{case}: {name} differ by more than {TOLERANCE:.0e}")


main()
