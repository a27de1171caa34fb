"""PyTorch's side of `selvedge train`: the same model, batch and optimizer on random ids, in ids a second.

    pytorch_gpt.py [--device cuda|cpu] [--batch N] [--mode eager|compiled|graphs] [--bf16] [--steps N] [--generate N]
                   [--layers N] [--width N] [--heads N] [--context N] [--vocabulary N]

GPT-2 124M is `--layers 12 --width 768 --heads 12 --context 1024`. Prints one line of JSON. `graphs` is torch.compile with mode "reduce-overhead" of the model, which runs CUDA graphs. A step is
forward, backward, clipping of the gradients' norm and AdamW (fused). Attention is scaled_dot_product_attention.
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY = 4, 128, 4, 128, 72


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.c_fc, self.c_out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, cache=None):
        batch, length, _ = x.shape
        heads = lambda part: part.view(batch, length, HEADS, -1).transpose(1, 2)  # noqa: E731
        q, k, v = (heads(part) for part in self.c_attn(self.ln_1(x)).split(WIDTH, -1))
        if cache is not None:
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = [k, v]
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.c_proj(y.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.c_out(functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks, self.ln_f = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, ids, past=0, caches=None):
        x = self.wte(ids) + self.wpe.weight[past : past + ids.shape[1]]
        for index, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[index])
        return functional.linear(self.ln_f(x), self.wte.weight)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--mode", default="eager")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--generate", type=int, default=0)
    for name in ("layers", "width", "heads", "context", "vocabulary"):
        parser.add_argument(f"--{name}", type=int, default=globals()[name.upper()])
    options = parser.parse_args()
    globals().update({name: getattr(options, name.lower()) for name in ("LAYERS", "WIDTH", "HEADS", "CONTEXT", "VOCABULARY")})
    device, on_gpu = options.device, options.device == "cuda"
    synchronize = torch.cuda.synchronize if on_gpu else lambda: None
    torch.manual_seed(1)
    model = Gpt().to(device)
    if options.generate:
        model.eval()
        with torch.inference_mode():
            for count in (20, options.generate):
                caches, ids = [[] for _ in range(LAYERS)], torch.zeros(1, 1, dtype=torch.long, device=device)
                begun, past = time.perf_counter(), 0
                for _ in range(count):
                    if past == CONTEXT:
                        caches, past = [[] for _ in range(LAYERS)], 0
                    logits = model(ids, past, caches)[0, -1] / 0.8
                    past += 1
                    ids = torch.multinomial(torch.softmax(logits, -1), 1).view(1, 1)
                    ids[0, 0].item()
                rate = count / (time.perf_counter() - begun)
        print(json.dumps({"generated_ids_per_second": rate, "device": device}))
        return
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.99), fused=True)
    forward = {
        "eager": model,
        "compiled": torch.compile(model) if options.mode == "compiled" else None,
        "graphs": torch.compile(model, mode="reduce-overhead") if options.mode == "graphs" else None,
    }[options.mode]
    data = torch.randint(VOCABULARY, (200_000,))

    def step():
        starts = torch.randint(len(data) - CONTEXT - 1, (options.batch,))
        windows = torch.stack([data[start : start + CONTEXT + 1] for start in starts.tolist()]).to(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=options.bf16):
            logits = forward(windows[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    for _ in range(max(5, options.steps // 5)):
        step()
    times = []
    for _ in range(options.steps):
        synchronize()
        begun = time.perf_counter()
        step()
        times.append(time.perf_counter() - begun)
    rate = options.batch * CONTEXT / statistics.median(times)
    peak = torch.cuda.max_memory_allocated() if on_gpu else None
    print(json.dumps({"ids_per_second": rate, "peak_bytes": peak, "device": device, "mode": options.mode, "bf16": options.bf16, "batch": options.batch, "torch": torch.__version__}))


main()
