"""Trains a small GPT to recite a verse: `python train_gpt.py [steps]`. It writes the loss, and what the model says after a word."""

import sys

import numpy as np
import selvedge as sv
from selvedge import nn

TEXT = """Over and under, the shuttle goes through;
over and under, the green and the blue.
Under and over, the edge holds it tight:
the selvedge is finished and never unravels. """ * 8


class Gpt(nn.Module):
    def __init__(self, symbols, length, width, heads, blocks, seed):
        super().__init__()
        initializer = nn.Initializer(seed=seed, weights=("normal", 0.02), residual_weights=("normal", 0.02 / (2 * blocks) ** 0.5))
        self.tokens = nn.Embedding(symbols, width, initializer=initializer)
        self.positions = nn.Embedding(length, width, initializer=initializer)
        self.blocks = [nn.TransformerBlock(width, heads, is_causal=True, initializer=initializer) for _ in range(blocks)]
        self.norm = nn.LayerNorm(width, initializer=initializer)
        self.head = nn.Linear(width, symbols, bias=False, initializer=initializer)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(sv.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


@nn.no_grad()
def recite(model, ids, count, length):
    for _ in range(count):
        logits = model(sv.Tensor([ids[-length:]]))
        ids = [*ids, int(logits[0, -1].data.argmax())]
    return ids


def main(steps):
    symbols = sorted(set(TEXT))
    ids = np.array([symbols.index(letter) for letter in TEXT])
    length, batch = 32, 8
    model = Gpt(len(symbols), length, width=64, heads=4, blocks=2, seed=1)
    parameters = nn.Parameters(model)
    optimizer = nn.AdamW(parameters, lr=3e-3, weight_decay=0.1, min_decay_rank=2)
    schedule = nn.LearningRateSchedule("cosine", 3e-3, minimum=3e-4, warmup_steps=10, total_steps=steps)

    def loss(inputs, targets):
        logits = model(inputs)
        return nn.cross_entropy(logits.reshape(-1, len(symbols)), targets.reshape(-1))

    # On a CUDA device the step is captured as one graph.
    step = nn.TrainingStep(parameters, optimizer, loss, max_norm=1.0)
    random = np.random.default_rng(1)
    for number in range(steps):
        optimizer.lr = schedule(number)
        starts = random.integers(0, len(ids) - length - 1, batch)
        rows = np.stack([ids[start : start + length + 1] for start in starts])
        found = step(rows[:, :-1].copy(), rows[:, 1:].copy())
        if number % 20 == 0 or number == steps - 1:
            print(f"step {number}: loss {found.item():.3f}, gradient norm {step.grad_norm.item():.3f}")
    start = [symbols.index(letter) for letter in "Over"]
    print("".join(symbols[place] for place in recite(model.eval(), start, 60, length)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
