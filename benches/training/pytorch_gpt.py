"""PyTorch's side of training: the same models, batches and optimizer as ours on random ids.

    pytorch_gpt.py [--model 124M|350M|774M|1558M|llama] [--device cuda|cpu] [--batch N] [--mode MODE] [--bf16] [--tf32] [--steps N]
                   [--generate N] [--layers N] [--width N] [--heads N] [--context N] [--vocabulary N]

Prints one line of JSON with ids a second and peak memory, or with --generate the new ids a second of a GPT. Sizes that are given
replace those of --model; without both the model is tiny. MODE is eager, or torch.compile of the model with its loss: compiled (as it
is), graphs (mode "reduce-overhead"), max-autotune, or max-autotune-no-cudagraphs. TORCHINDUCTOR_CACHE_DIR keeps compiled kernels and
autotuning from one process to the next.

A step is forward, backward, clipping of the gradients' norm and AdamW (fused). With --bf16 it runs under autocast, with parameters,
gradients and moments in f32; without it products are IEEE f32, or TF32 with --tf32. scaled_dot_product_attention may use the backend
alone whose forward and backward are the fastest for the model's shape. GPT-2's 50257 ids are padded to 50304.

    pytorch_gpt.py --serve [--device cuda|cpu]

takes turns with `cargo bench --features nn --bench training` (reference.rs). A request and its answer are a line of JSON each:

    (the start)                                          {"library"}, or {"absent": why} and the end
    {"prepare": {"model", "batch", "mode", "is_bf16"}}   {"call": a description of this side}, after steps that warm it up
    {"time": steps}                                      {"seconds": of one step, "loss": of the last one}
    {"peak": true}                                       {"peak_bytes": of allocated memory; null on the CPU}

or {"error": why}, after which it goes on.
"""

import argparse
import json
import math
import os
import statistics
import sys
import time
from dataclasses import dataclass, replace

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    if "--serve" not in sys.argv:
        raise
    print(json.dumps({"absent": f"python3 has no PyTorch ({error})"}), flush=True)
    sys.exit()


@dataclass(frozen=True)
class Sizes:
    """A GPT, or with the width of a gated feed-forward a Llama."""

    layers: int = 4
    width: int = 128
    heads: int = 4
    context: int = 128
    # Rows of the embedding and of the head.
    vocabulary: int = 72
    # Ids of the data, which are fewer than the rows of a padded vocabulary.
    ids: int | None = None
    kv_heads: int | None = None
    hidden: int | None = None

    @property
    def head_dimension(self):
        return self.width // self.heads


def gpt2(layers, width, heads):
    return Sizes(layers, width, heads, context=1024, vocabulary=50304, ids=50257)


MODELS = {
    "tiny": Sizes(),
    "124M": gpt2(12, 768, 12),
    "350M": gpt2(24, 1024, 16),
    "774M": gpt2(36, 1280, 20),
    "1558M": gpt2(48, 1600, 25),
    "llama": Sizes(22, 2048, 32, context=4096, vocabulary=32000, kv_heads=4, hidden=5632),
}
# The arguments of torch.compile by mode.
MODES = {
    "eager": None,
    "compiled": {},
    "graphs": {"mode": "reduce-overhead"},
    "max-autotune": {"mode": "max-autotune"},
    "max-autotune-no-cudagraphs": {"mode": "max-autotune-no-cudagraphs"},
}
# The modes whose memory is that of CUDA graphs.
GRAPHS = ("graphs", "max-autotune")
# The steps before the first one that counts: kernels are compiled, tuned and loaded, and graphs recorded.
WARM_UP = 5
NORM_EPS = 1e-5


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width = sizes.width
        self.heads = sizes.heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None):
        batch, length, width = x.shape
        heads = lambda part: part.view(batch, length, self.heads, -1).transpose(1, 2)  # noqa: E731
        q, k, v = (heads(part) for part in self.c_attn(self.ln_1(x)).split(width, -1))
        if cache is not None:
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = [k, v]
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.c_proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.c_out(functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(sizes.vocabulary, sizes.width), nn.Embedding(sizes.context, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.ln_f = nn.LayerNorm(sizes.width)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, ids, targets=None, past=0, caches=None):
        """The logits, or the loss of targets."""
        x = self.wte(ids) + self.wpe.weight[past : past + ids.shape[1]]
        for index, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[index])
        logits = functional.linear(self.ln_f(x), self.wte.weight)
        return logits if targets is None else cross_entropy(logits, targets)


class LlamaBlock(nn.Module):
    """Projections of the same input are one product."""

    def __init__(self, sizes):
        super().__init__()
        width, self.dimension = sizes.width, sizes.head_dimension
        self.heads, self.kv_heads = sizes.heads, sizes.kv_heads
        rows = (self.heads + 2 * self.kv_heads) * self.dimension
        self.norm_1, self.norm_2 = nn.RMSNorm(width, NORM_EPS), nn.RMSNorm(width, NORM_EPS)
        self.qkv, self.out = nn.Linear(width, rows, bias=False), nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * sizes.hidden, bias=False)
        self.down = nn.Linear(sizes.hidden, width, bias=False)

    def forward(self, x, cosines, sines):
        batch, length, width = x.shape
        counts = self.heads, self.kv_heads, self.kv_heads
        qkv = self.qkv(self.norm_1(x)).view(batch, length, -1, self.dimension).transpose(1, 2)
        q, k, v = qkv.split(counts, 1)
        q, k = rotated(q, cosines, sines), rotated(k, cosines, sines)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.gate_up(self.norm_2(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        self.blocks = nn.ModuleList(LlamaBlock(sizes) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.width, NORM_EPS)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        half = torch.arange(0, sizes.head_dimension, 2) / sizes.head_dimension
        angles = torch.outer(torch.arange(sizes.context), 10000.0**-half)
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def forward(self, ids, targets=None):
        """The logits, or the loss of targets."""
        x = self.embedding(ids)
        tables = self.cosines[: ids.shape[1]], self.sines[: ids.shape[1]]
        for block in self.blocks:
            x = block(x, *tables)
        logits = self.head(self.norm(x))
        return logits if targets is None else cross_entropy(logits, targets)


def rotated(x, cosines, sines):
    first, second = x.chunk(2, -1)
    return x * cosines.to(x.dtype) + torch.cat((-second, first), -1) * sines.to(x.dtype)


def cross_entropy(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def new_model(sizes, device):
    torch.manual_seed(1)
    with torch.device(device):
        return Llama(sizes) if sizes.hidden else Gpt(sizes)


def seconds_on_device(work, calls):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / calls


def allow_attention(name):
    """Lets scaled_dot_product_attention use one backend, or all for None."""
    cuda = torch.backends.cuda
    cuda.enable_cudnn_sdp(name in (None, "cuDNN"))
    cuda.enable_flash_sdp(name in (None, "flash"))
    cuda.enable_mem_efficient_sdp(name in (None, "memory-efficient"))
    cuda.enable_math_sdp(name is None)


def fastest_attention(sizes, batch, dtype):
    """The backend with the fastest forward and backward in the model's layout, or None if there is none for the shape."""

    def array(heads):
        return torch.randn(batch, sizes.context, heads, sizes.head_dimension, device="cuda", dtype=dtype).transpose(1, 2)

    kv_heads = sizes.kv_heads or sizes.heads
    inputs = [array(heads).requires_grad_() for heads in (sizes.heads, kv_heads, kv_heads)]
    gradient, options = array(sizes.heads), {"enable_gqa": True} if sizes.kv_heads else {}

    def work():
        y = functional.scaled_dot_product_attention(*inputs, is_causal=True, **options)
        torch.autograd.grad(y, inputs, gradient)

    times = {}
    for name in ("cuDNN", "flash", "memory-efficient"):
        allow_attention(name)
        try:
            seconds_on_device(work, 3)
            times[name] = seconds_on_device(work, 10)
        # This backend has no kernel for the shape or the dtype.
        except RuntimeError:
            pass
    return min(times, key=times.get, default=None)


class Training:
    """A model, its optimizer and its data."""

    def __init__(self, sizes, batch, mode, is_bf16, device):
        self.sizes, self.batch, self.mode, self.is_bf16, self.device = sizes, batch, mode, is_bf16, device
        self.attention = None
        if device == "cuda":
            self.attention = fastest_attention(sizes, batch, torch.bfloat16 if is_bf16 else torch.float32)
            allow_attention(self.attention)
        self.model = new_model(sizes, device)
        options = MODES[mode]
        self.forward = self.model if options is None else torch.compile(self.model, dynamic=False, **options)
        decayed = [p for p in self.model.parameters() if p.dim() >= 2]
        others = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.99), fused=True)
        self.data = torch.randint(sizes.ids or sizes.vocabulary, (200_000,))
        self.window = torch.arange(sizes.context + 1)

    def on_device(self, ids):
        ids = ids.contiguous()
        return ids.pin_memory().to("cuda", non_blocking=True) if self.device == "cuda" else ids

    def step(self):
        """Takes a step, and returns its loss, for which the host does not wait."""
        starts = torch.randint(len(self.data) - self.sizes.context - 1, (self.batch, 1))
        windows = self.data[starts + self.window]
        ids, targets = self.on_device(windows[:, :-1]), self.on_device(windows[:, 1:])
        self.optimizer.zero_grad(set_to_none=True)
        if self.mode in GRAPHS:
            torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast(self.device, torch.bfloat16, enabled=self.is_bf16):
            loss = self.forward(ids, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def seconds(self, steps):
        """The seconds of one of some steps, by events on a GPU, and the last loss."""
        last = None

        def work():
            nonlocal last
            last = self.step()

        self.synchronize()
        if self.device == "cuda":
            # Keeps the device busy until the timed steps are queued, so that no latency of the host is measured.
            work()
            seconds = seconds_on_device(work, steps)
        else:
            begun = time.perf_counter()
            for _ in range(steps):
                work()
            seconds = (time.perf_counter() - begun) / steps
        return seconds, last.item()


class Side:
    """The training that is prepared, of a process that takes turns."""

    def __init__(self, device):
        self.device = device
        self.training = None

    def prepare(self, request):
        wanted = request["prepare"]
        mode, is_bf16 = wanted["mode"], wanted["is_bf16"]
        if is_bf16:
            torch.set_float32_matmul_precision("high")
        self.training = Training(MODELS[wanted["model"]], wanted["batch"], mode, is_bf16, self.device)
        try:
            self.training.seconds(WARM_UP)
        except RuntimeError as error:
            if self.training.attention is None or isinstance(error, torch.OutOfMemoryError):
                raise
            # Not every backend can be compiled. Then the choice is PyTorch's.
            torch._dynamo.reset()
            self.training.attention = None
            allow_attention(None)
            self.training.seconds(WARM_UP)
        if self.device == "cuda" and mode not in GRAPHS:
            # Autotuning takes memory that a step does not. Memory in CUDA graphs is counted while they are recorded.
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        attention = self.training.attention or "default"
        return {"call": f"PyTorch {torch.__version__}, {mode}, {attention} attention"}

    def time(self, request):
        seconds, loss = self.prepared().seconds(request["time"])
        if not math.isfinite(loss):
            raise ValueError(f"the loss is {loss}")
        return {"seconds": seconds, "loss": loss}

    def peak(self, request):
        self.prepared()
        return {"peak_bytes": torch.cuda.max_memory_allocated() if self.device == "cuda" else None}

    def prepared(self):
        if self.training is None:
            raise RuntimeError("nothing is prepared")
        return self.training


def serve(device):
    # The output of libraries must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**fields):
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    if device == "cuda" and not torch.cuda.is_available():
        answer(absent=f"PyTorch {torch.__version__} finds no device")
        return
    answer(library=f"PyTorch {torch.__version__}")
    side = Side(device)
    for line in sys.stdin:
        request = json.loads(line)
        kind = next(kind for kind in ("prepare", "time", "peak") if kind in request)
        try:
            answer(**getattr(side, kind)(request))
        except Exception as error:  # One that this version cannot do does not take the others with it.
            lines = str(error).splitlines() or [""]
            answer(error=f"{type(error).__name__}: {lines[0]}")


def generate(sizes, count, device):
    """New ids a second of a GPT with a cache, after 20 that are not counted."""
    model = new_model(sizes, device).eval()
    with torch.inference_mode():
        for count in (20, count):
            caches, ids = [[] for _ in range(sizes.layers)], torch.zeros(1, 1, dtype=torch.long, device=device)
            begun, past = time.perf_counter(), 0
            for _ in range(count):
                if past == sizes.context:
                    caches, past = [[] for _ in range(sizes.layers)], 0
                logits = model(ids, past=past, caches=caches)[0, -1] / 0.8
                past += 1
                ids = torch.multinomial(torch.softmax(logits, -1), 1).view(1, 1)
                ids[0, 0].item()
            rate = count / (time.perf_counter() - begun)
    return {"generated_ids_per_second": rate, "device": device}


def measure(sizes, options):
    """Ids a second of whole steps on the host's clock, which reads each loss."""
    training = Training(sizes, options.batch, options.mode, options.bf16, options.device)
    for _ in range(max(WARM_UP, options.steps // 5)):
        training.step().item()
    times = []
    for _ in range(options.steps):
        training.synchronize()
        begun = time.perf_counter()
        training.step().item()
        times.append(time.perf_counter() - begun)
    return {
        "ids_per_second": options.batch * sizes.context / statistics.median(times),
        "peak_bytes": torch.cuda.max_memory_allocated() if options.device == "cuda" else None,
        "device": options.device,
        "mode": options.mode,
        "bf16": options.bf16,
        "batch": options.batch,
        "attention": training.attention,
        "torch": torch.__version__,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--model", choices=MODELS, default="tiny")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--mode", choices=MODES, default="eager")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--generate", type=int, default=0)
    for name in ("layers", "width", "heads", "context", "vocabulary"):
        parser.add_argument(f"--{name}", type=int)
    options = parser.parse_args()
    if options.serve:
        serve(options.device)
        return
    names = ("layers", "width", "heads", "context", "vocabulary")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if "vocabulary" in given:
        given["ids"] = None
    sizes = replace(MODELS[options.model], **given)
    if options.generate and sizes.hidden:
        parser.error("--generate is for a GPT")
    if options.tf32:
        torch.set_float32_matmul_precision("high")
    done = generate(sizes, options.generate, options.device) if options.generate else measure(sizes, options)
    print(json.dumps(done))


main()
