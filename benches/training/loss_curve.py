"""Trains GPT-2 124M with selvedge and with PyTorch from the same weights on the same batches, and compares their losses.

    loss_curve.py TEXT [--steps 200] [--batch 8] [--out curve.json]

It needs a GPU, this library's package, PyTorch and transformers. Ids are the bytes of TEXT. Both sides compute in bf16 with parameters,
gradients and moments in f32; a step clips the gradients' norm to 1, and AdamW decays matrices alone. Prints one line of JSON: the largest
difference of the means of ten steps, of a step, and both last losses. The status is 1 where the first exceeds 0.02. A step alone says
little: at a step where the loss jumps, roundings decide how far.
"""

import argparse
import json
import sys

import numpy as np
import selvedge as sv
import torch
from selvedge import nn
from transformers import GPT2Config, GPT2LMHeadModel

RATE, DECAY, BETAS, WARM_UP = 6e-4, 0.1, (0.9, 0.99), 20
LARGEST_DIFFERENCE = 0.02
# The steps of a mean.
WINDOW = 10


def rate_of(step):
    return RATE * min(1.0, (step + 1) / WARM_UP)


def batches(text, context, batch, steps):
    ids = np.frombuffer(open(text, "rb").read(), np.uint8).astype(np.int64)
    starts = np.random.default_rng(1).integers(0, len(ids) - context - 1, (steps, batch, 1))
    windows = ids[starts + np.arange(context + 1)]
    return windows[:, :, :-1].copy(), windows[:, :, 1:].copy()


def own_losses(model, inputs, targets):
    parameters = nn.Parameters(model)
    optimizer = nn.AdamW(parameters, lr=RATE, betas=BETAS, weight_decay=DECAY, min_decay_rank=2)
    step = nn.TrainingStep(parameters, optimizer, model.loss, max_norm=1.0)
    losses = []
    for at in range(len(inputs)):
        optimizer.lr = rate_of(at)
        losses.append(step(sv.Tensor(inputs[at], device="cuda"), sv.Tensor(targets[at], device="cuda")).item())
    return losses


def pytorch_losses(model, inputs, targets):
    of_rank = lambda is_matrix: [p for p in model.parameters() if (p.dim() >= 2) == is_matrix]  # noqa: E731
    groups = [{"params": of_rank(True), "weight_decay": DECAY}, {"params": of_rank(False), "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, fused=True)
    losses = []
    for at in range(len(inputs)):
        for group in optimizer.param_groups:
            group["lr"] = rate_of(at)
        x, y = (torch.from_numpy(part[at]).cuda() for part in (inputs, targets))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(x).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--out")
    options = parser.parse_args()
    config = nn.GptConfig(50257, context=1024, width=768, layers=12, heads=12, compute_dtype="bf16")
    model = nn.Gpt(config, seed=1, device="cuda")
    theirs = GPT2LMHeadModel(GPT2Config(attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0))
    weights = {name: torch.from_dlpack(value.to("cpu")).clone() for name, value in model.state_dict().items()}
    found = theirs.load_state_dict(weights, strict=False)
    if found.unexpected_keys or set(found.missing_keys) - {"lm_head.weight"}:
        sys.exit(f"the weights do not fit: {found}")
    inputs, targets = batches(options.text, config.context, options.batch, options.steps)
    own = own_losses(model, inputs, targets)
    reference = pytorch_losses(theirs.cuda().train(), inputs, targets)
    differences = np.subtract(own, reference)
    of_means = float(np.abs(np.convolve(differences, np.full(WINDOW, 1 / WINDOW), "valid")).max())
    of_steps = float(np.abs(differences).max())
    print(json.dumps({"of_means": of_means, "of_steps": of_steps, "own": own[-1], "pytorch": reference[-1]}))
    if options.out:
        with open(options.out, "w") as file:
            json.dump({"own": own, "pytorch": reference}, file)
    sys.exit(of_means > LARGEST_DIFFERENCE)


main()
