"""Three models trained from their seeds: an MLP on a cubic, a small GPT on a verse, and a classifier of handwritten digits.

The programs beside this one do the same in Rust, C and C++. Each prints the bits of the last loss and the FNV-1a hash of all
parameters, which are equal in the four languages: `python train.py [digits.npz]`.
"""

import struct
import sys

import selvedge as sv
from selvedge import nn

VERSE = """Over and under, the shuttle goes through;
over and under, the green and the blue.
Under and over, the edge holds it tight:
the selvedge is finished and never unravels.
"""


def line(name, loss, model):
    """Returns the bits of a model's last loss, and the FNV-1a hash of its parameters' bytes in their order."""
    value = 0xCBF29CE484222325
    for _, parameter in model.named_parameters():
        for byte in parameter.numpy().tobytes():
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{name}: loss {struct.pack('>f', loss).hex()}, parameters {value:016x}"


def mlp():
    """Fits y = x³ - x at 65 points by 100 steps on all of them."""
    # Multiples of 1/32, whose cubes are exact.
    points = sv.arange(-32.0, 33.0, dtype="float32").reshape(65, 1) / 32
    values = points * points * points - points

    initializer = nn.Initializer(seed=4)
    model = nn.Sequential(
        nn.Linear(1, 32, initializer=initializer),
        nn.Tanh(),
        nn.Linear(32, 32, initializer=initializer),
        nn.Tanh(),
        nn.Linear(32, 1, initializer=initializer),
    )
    optimizer = nn.AdamW(model.parameters(), lr=0.01)

    for _ in range(100):
        loss = nn.mse_loss(model(points), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return line("mlp", loss.item(), model)


def gpt():
    """Trains a transformer of two blocks on the verse's bytes for 12 steps."""
    config = nn.GptConfig(256, context=32, width=32, layers=2, heads=4, dropout=0.1)
    trainer = nn.Trainer(nn.Gpt(config, seed=2), VERSE * 4, steps=12, batch=4, lr=3e-3, min_lr=3e-4, warmup_steps=3, seed=2)
    return line("gpt", trainer.run(), trainer.model)


def digits(path):
    """Trains on images of 8 x 8 pixels in two epochs of 28 batches, in a new order each, with dropout."""
    arrays = sv.io.load(path)
    images = arrays["images"].astype("float32").flatten(1, -1) / 16
    labels = arrays["labels"].astype("int64")

    # One generator draws the weights and then the dropout, another the orders.
    generator, orders = sv.Generator(7), sv.Generator(8)
    initializer = nn.Initializer(generator=generator)
    model = nn.Sequential(
        nn.Linear(64, 32, initializer=initializer),
        nn.ReLU(),
        nn.Dropout(0.1, generator=generator),
        nn.Linear(32, 10, initializer=initializer),
    )
    optimizer = nn.AdamW(model.parameters(), lr=0.005)

    for _ in range(2):
        order = sv.permutation(len(labels), generator=orders)
        for batch in range(28):
            rows = order[64 * batch : 64 * (batch + 1)]
            loss = nn.cross_entropy(model(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return line("digits", loss.item(), model)


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "data/digits/digits.npz"
    print(mlp(), gpt(), digits(path), sep="\n")
