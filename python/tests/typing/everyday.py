"""Lines that people type. `test_stubs.py` runs them and checks their types by mypy and pyright."""

import numpy as np
import selvedge as sv
from selvedge import nn

x = sv.Tensor([[1.0, 2.0], [3.0, 4.0]], dtype="f32")
n: int = len(x)
rows, columns = x.shape
total: float = x.sum().item()
mean: sv.Tensor = x.mean(dim=0, keepdim=True)
also: sv.Tensor = x.mean(axis=0, keepdims=True)
spread = x.std(axis=-1, ddof=0)
biased = x.var(unbiased=False)
largest = x.max()
values, places = x.max_with_indices(axis=1)
middle: sv.Tensor = x.median()
middles, where = x.median(dim=1)
share: float = float(x.quantile(0.9))
bounded = x.clamp(min=0, max=1)
positive = x.clamp(min=0.0)
x[0, 1] = 5
x[x > 3] = 0.0
x[:, 0] = [1, 2]
row = x[0]
last = x[..., -1]
picked = x[[0, 1], [1, 0]]
first: float = x[0, 0].item()
x += 1
y = 2 * x - 1 / (x + 1)
z = -y @ x.T
w = abs(z) ** 0.5 % 3 // 1
same: bool = bool((y == y).all())
if x.any():
    n += 1
for line in x:
    n += line.size
text = f"{x.sum():.2f} {x}"
table: dict[sv.Tensor, str] = {x: "x"}
array = x.numpy()
back = sv.Tensor(array)
shared = sv.from_dlpack(np.arange(3.0))
seen = np.asarray(x)
view = memoryview(x)
steps: tuple[int, ...] = x.strides
address: int = x.data_ptr()
half = x.to("f16").astype(np.float32).cast(sv.f64)
there = x.to(sv.Device.best()).cpu()
zeros = sv.zeros((2, 3), dtype="f32")
zeros = sv.zeros(2, 3, dtype="f32")
count: int = zeros.numel() + zeros.dim()
ones = sv.ones_like(x)
filled = sv.full((2,), 7.5).fill_(1)
counted = sv.arange(0, 10, 2)
noise = sv.randn((2, 2), generator=sv.Generator(7))
noise = sv.randn(2, 2, generator=sv.Generator(7))
dice = sv.randint(1, 7, (5,))
both = sv.cat([x, x], dim=0)
pile = sv.stack([x, x], axis=0)
chosen = sv.where(x > 0, x, 0.0)
scores, ids = x.topk(1, dim=-1)
ordered, order = x.sort(dim=1, descending=True)
likely = x.softmax(dim=-1)
found = x.gather(1, sv.Tensor([[0], [1]]))
found = x.gather(dim=1, index=sv.Tensor([[0], [1]]))
flat = x.reshape(-1).flatten().tolist()
swapped = x.transpose(0, 1).permute(1, 0).contiguous()
wide = x.unsqueeze(dim=0).squeeze(0).expand(2, 2)
parts = x.split([1, 1], dim=1)
number: int = int(sv.Tensor(3)) + [10, 20][sv.Tensor(0)]
scaled = sv.fuse(lambda a, b: (a * b + 1).relu())
result = scaled(x, 2.0)
close: bool = x.allclose(x + 1e-9)


class Network(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = [nn.Linear(2, width), nn.Linear(width, 1)]
        self.scale = nn.Parameter(sv.ones(1))

    def forward(self, data: sv.Tensor | nn.Variable) -> nn.Variable:
        return self.layers[1](self.layers[0](data).relu()) * self.scale


model = Network(4)
model.train().eval().train()
layer = nn.Linear(2, 3, bias=False, initializer=nn.Initializer(seed=1, weights=("normal", 0.02)))
weight: nn.Parameter = layer.weight
sequential = nn.Sequential(layer, nn.LayerNorm(3), nn.GELU(approximate="tanh"), nn.Dropout(0.1))
inputs, targets = sv.ones(5, 2), sv.zeros(5, 1)
variable = nn.Variable([[1.0, 2.0]], requires_grad=True, dtype="f32")
doubled: nn.Variable = 2 * variable + variable @ sv.ones(2, 2) - variable[:, None, 0]
parameters = nn.Parameters(model)
optimizer = nn.AdamW(parameters, lr=1e-3, betas=(0.9, 0.99))
prediction: nn.Variable = model(inputs)
objective = nn.mse_loss(prediction, targets)
objective.backward()
gradient: sv.Tensor | None = model.scale.grad
norm: float = nn.clip_grad_norm_(model.parameters(), 1.0).item()
optimizer.step()
optimizer.zero_grad()
optimizer.lr = nn.LearningRateSchedule("cosine", peak=1e-3, total_steps=10)(3)
with nn.no_grad():
    variable.copy_(sv.zeros(1, 2))
derivatives: list[nn.Variable] = nn.grad((variable**3).sum(), [variable], create_graph=True)
training = nn.TrainingStep(parameters, optimizer, lambda x, y: nn.mse_loss(model(x), y), max_norm=1.0)
found_loss: float = training(inputs, targets).item()
state: dict[str, sv.Tensor] = model.state_dict()
model.load_state_dict(state)


@nn.no_grad()
def predict(data: sv.Tensor) -> nn.Variable:
    return sequential(data)


classes: sv.Tensor = predict(inputs).data.argmax(-1)

batches = nn.DataLoader((inputs, targets), batch_size=2, shuffle=True, seed=1)
for batch_inputs, batch_targets in batches:
    found_loss = nn.mse_loss(model(batch_inputs), batch_targets).item()
gpt = nn.Gpt(nn.GptConfig(256, context=8, width=8, layers=1, heads=2), seed=1)
trainer = nn.Trainer(gpt, "to be, or not to be. " * 20, steps=2, batch=2, tokenizer="bytes", schedule="linear")
step_loss: float = trainer.step()
last_loss: float | None = trainer.run(lambda report: print(report.step, report.loss, report.lr))
new_ids: list[int] = gpt.generate([1, 2], max_new_ids=2)
position: dict[str, int] = batches.state_dict()
batches.load_state_dict(position)
single_rows: list[sv.Tensor] = list(nn.DataLoader(inputs))
divergence: float = sv.catalogue.kl_divergence(sv.Tensor([0.5, 0.5]), sv.Tensor([0.25, 0.75])).item()
magnitude, phase = sv.catalogue.order_parameter(sv.zeros(3))
sample = sv.classifier.synthetic(40, seed=1, device="cpu")
classifier = sv.classifier.Classifier(hidden=(8,), device="cpu")
course: sv.classifier.TrainingReport = classifier.train(sample.features, sample.labels, epochs=1, callback=lambda epoch: print(epoch.epoch))
accuracy: float = classifier.evaluate(sample.features, sample.labels).accuracy
classifier.prior = [0.2] * 5


class Cube(nn.Function):
    @staticmethod
    def forward(context: nn.FunctionContext, x: sv.Tensor) -> sv.Tensor:
        context.save_for_backward(x)
        context.power = 3
        power: int = context.power
        return x**power

    @staticmethod
    def backward(context: nn.FunctionContext, gradient: sv.Tensor) -> sv.Tensor:
        (x,) = context.saved_tensors
        return 3 * x**2 * gradient


cubes: nn.Variable = Cube.apply(variable)
swish = sv.fuse(lambda x: x * x.sigmoid())
activated: nn.Variable = swish(variable)


def measure(x: sv.Tensor) -> float:
    stream, start, end = sv.Stream(x.device, priority=-1), sv.Event(enable_timing=True), sv.Event(True)
    graph, y = sv.Graph.capture(lambda x: x * 2, x, stream=stream)
    with stream:
        start.record()
        graph.instantiate().launch()
        end.record(stream)
    end.synchronize(timeout=1.0)
    borrowed: sv.Stream = sv.Stream.from_handle(stream)
    borrowed.wait_event(stream.record_event())
    return start.elapsed_time(end) if sv.Device("cuda").current_stream().query() else float(y.sum().item())
