"""Runs a generated network of spiking neurons and draws its spikes as an SVG.

    python python/examples/raster.py [OUTPUT.svg]

Each step stands alone, as a cell of a notebook.
"""

# %% A network, and 200 bursts with its own input.
import sys

import selvedge as sv
from selvedge.burst import Network

network = Network.generated("G", 400, 20, seed=1)
network.run(200, generated_input=True)
bursts, ids = network.spikes
print(f"{ids.size} spikes of {network.neurons} neurons in {network.burst} bursts")

# %% The mean rate of windows of ten bursts, as one fused kernel over the spikes.
window = sv.fuse(lambda burst: (burst - 1).floor_divide(10))
counts = window(bursts.cast("i64")).bincount(20)
rates = (counts.cast("f64") / (10 * network.neurons)).tolist()
print("highest rate of a window:", max(rates))

# %% A picture: a dot for each spike, and a line of the rates below.
WIDTH, RASTER, HEIGHT = 800, 400, 520
x = (bursts.cast("f64") - 0.5) * (WIDTH / 200)
y = ids.cast("f64") * (RASTER / network.neurons)
dots = "".join(f"M{at:.1f} {top:.1f}h1.5" for at, top in zip(x.tolist(), y.tolist()))
points = " ".join(f"{(number + 0.5) * WIDTH / 20:.1f},{HEIGHT - 10 - rate * 90 / max(rates):.1f}" for number, rate in enumerate(rates))
svg = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">'
    f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    f'<path d="{dots}" stroke="#1f77b4" stroke-width="1.5"/>'
    f'<polyline points="{points}" fill="none" stroke="#d62728" stroke-width="2"/></svg>'
)
path = sys.argv[1] if len(sys.argv) > 1 else "raster.svg"
with open(path, "w", encoding="utf-8") as file:
    file.write(svg)
print("wrote", path)
