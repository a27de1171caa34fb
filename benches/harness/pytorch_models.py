"""Decoder models for pytorch.py: new ids by transformers.

pytorch.rs puts this file before pytorch.py. An operation's name is "decoding, MODEL, FORM, BATCH, PROMPT, IDS", whose call continues
prompts by so many ids, or "prefill, MODEL, BATCH, PROMPT", whose call reads them. Weights are random; the operands are not used.
"""

MODELS = {
    "gpt2": dict(vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12, use_cache=True),
    "llama": dict(
        vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
        num_key_value_heads=4, max_position_embeddings=2048, rms_norm_eps=1e-5, tie_word_embeddings=False, use_cache=True,
    ),
}  # fmt: skip
made = {}


def transformers_model(name):
    import torch
    import transformers

    if name not in made:
        made.clear()
        make = {"gpt2": transformers.GPT2Config, "llama": transformers.LlamaConfig}[name]
        config = make(**MODELS[name])
        config._attn_implementation = "sdpa"
        torch.manual_seed(1)
        with torch.device("cuda"):
            model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        made[name] = model.eval().cuda()
    return made[name]


def decoding(name, form, batch, prompt, ids):
    """A call that continues the prompts in a cache, which stays."""

    def make(operands, output, axes):
        import torch
        import transformers
        from transformers import DynamicCache, StaticCache

        model = transformers_model(name)
        config = model.config
        rows = torch.arange(batch, device="cuda")[:, None] * 7919
        prompts = (rows + torch.arange(prompt, device="cuda")[None] * 104729) % config.vocab_size
        positions = torch.arange(prompt + ids + 1, device="cuda")
        is_static = form == "compiled"
        if is_static:
            cache = StaticCache(config=config, max_cache_len=prompt + ids + 1)
            # The graphs of a step read their inputs at fixed addresses.
            step = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True, dynamic=False)
        else:
            cache, step = DynamicCache(config=config), model.forward
        with torch.inference_mode():
            first = model(prompts, past_key_values=cache, use_cache=True, logits_to_keep=1)
            first = first.logits[:, -1].argmax(-1, keepdim=True)

        def work():
            with torch.inference_mode():
                latest = first.clone()
                if not is_static:
                    cache.crop(prompt)
                for at in range(ids):
                    place = positions[prompt + at : prompt + at + 1]
                    arguments = dict(position_ids=place[None].expand(batch, 1))
                    if is_static:
                        torch.compiler.cudagraph_mark_step_begin()
                        set_length(cache, place)
                        arguments["cache_position"] = place
                    result = step(latest, past_key_values=cache, use_cache=True, **arguments)
                    latest = result.logits[:, -1].argmax(-1, keepdim=True).clone()
                    # The host reads each id, as ours does.
                    latest.tolist()

        work()
        work()
        return f"transformers {transformers.__version__}, {form}", work

    return make


def prefill(name, batch, prompt):
    """A call that reads prompts into a cache."""

    def make(operands, output, axes):
        import torch
        import transformers
        from transformers import StaticCache

        model = transformers_model(name)
        config = model.config
        rows = torch.arange(batch, device="cuda")[:, None] * 7919
        prompts = (rows + torch.arange(prompt, device="cuda")[None] * 104729) % config.vocab_size
        cache = StaticCache(config=config, max_cache_len=prompt)
        torch.set_float32_matmul_precision("high")
        forward = torch.compile(model.forward, dynamic=False)
        place = torch.arange(prompt, device="cuda")

        def work():
            with torch.inference_mode():
                cache.reset()
                forward(prompts, past_key_values=cache, use_cache=True, logits_to_keep=1, cache_position=place)
                torch.cuda.synchronize()

        work()
        work()
        return f"transformers {transformers.__version__}, compiled", work

    return make


def set_length(cache, position):
    """A StaticCache of newer transformers counts its positions itself."""
    for layer in getattr(cache, "layers", []):
        counted = getattr(layer, "cumulative_length", None)
        if counted is not None and hasattr(counted, "copy_"):
            counted.copy_(position[0])
        elif counted is not None:
            layer.cumulative_length = int(position[0])


def model_operation(operation):
    """The maker of an operation's call, or None if it is not one of these."""
    kind, *parts = operation.split(", ")
    if kind == "prefill":
        name, batch, prompt = parts
        return prefill(name, int(batch), int(prompt))
    if kind != "decoding":
        return None
    name, form, batch, prompt, ids = parts
    return decoding(name, form, int(batch), int(prompt), int(ids))
