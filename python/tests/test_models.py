"""Decoders and tokenizers of Hugging Face folders."""

import json
import zipfile

import numpy as np
import pytest
import selvedge as sv


@pytest.fixture(scope="session")
def models(repository, tmp_path_factory):
    """A folder with the small models of tests/data/models, each in a folder of its name."""
    folder = tmp_path_factory.mktemp("models")
    with zipfile.ZipFile(repository / "tests/data/models/cases.zip") as archive:
        archive.extractall(folder)
    return folder


def reference(folder):
    return json.loads((folder / "reference.json").read_text())


@pytest.mark.parametrize("name", ["gpt2", "llama3", "qwen3", "gemma3", "phi3"])
def test_continuations_are_those_of_transformers(models, name):
    model, wanted = sv.Decoder.load(models / name, dtype="f64"), reference(models / name)
    prompt = wanted["prompt"]
    assert model.generate(prompt, max_new_ids=20, end_ids=[]) == wanted["greedy"]
    assert model.generate(prompt, max_new_ids=20) == wanted["greedy_until_eos"]
    assert model.end_ids == wanted["eos"]
    prompts = [[id for id, is_id in zip(*row) if is_id] for row in zip(wanted["left_ids"], wanted["left_mask"])]
    found = model.generate(prompts, max_new_ids=14)
    assert all(row == of_batch[: len(row)] for row, of_batch in zip(found, wanted["left_new_ids"]))


def test_a_decoder_describes_itself_and_is_stored(models, tmp_path):
    model = sv.Decoder.load(models / "gpt2", dtype="f32")
    assert (model.vocab_size, model.context, model.parameter_count) == (131, 48, 54576)
    assert (model.device, model.dtype) == (sv.Device("cpu"), sv.f32)
    assert repr(model) == "Decoder(layers=3, width=36, vocab_size=131)"
    model.save(tmp_path / "saved")
    again = sv.Decoder.load(str(tmp_path / "saved"))
    ids = [[1, 2, 3], [4, 5, 6]]
    logits = model.logits(ids)
    assert logits.shape == (2, 3, 131) and again.logits(np.array(ids)).equal(logits)
    assert model.logits(ids[0]).shape == (3, 131)
    np.testing.assert_allclose(model.logits(ids[0]).numpy(), logits[0].numpy(), atol=1e-5)


def test_prompts_are_lists_arrays_and_tensors(models):
    model = sv.Decoder.load(models / "llama2")
    ids = [[30, 90, 62], [94, 16, 117]]
    wanted = model.generate(ids, max_new_ids=4)
    assert [len(row) for row in wanted] == [4, 4]
    for same in [np.array(ids), sv.Tensor(ids), tuple(map(tuple, ids)), [np.array(row) for row in ids], [sv.Tensor(row) for row in ids]]:
        assert model.generate(same, max_new_ids=4) == wanted
    for same in [ids[1], np.array(ids[1], "u2"), sv.Tensor(ids[1])]:
        assert model.generate(same, max_new_ids=4) == wanted[1]


def test_draws_follow_from_the_seed_and_the_options(models):
    model = sv.Decoder.load(models / "llama2")
    prompts = [[30, 90, 62, 35], [94]]
    drawn = model.generate(prompts, max_new_ids=8, temperature=5.0, seed=3)
    greedy = model.generate(prompts, max_new_ids=8)
    assert drawn == model.generate(prompts, max_new_ids=8, temperature=5.0, seed=3) != greedy
    assert model.generate(prompts[1], max_new_ids=8, temperature=5.0, seed=4) == drawn[1]
    assert model.generate(prompts, max_new_ids=8, temperature=5.0, top_k=1) == greedy
    assert model.generate(prompts, max_new_ids=8, temperature=5.0, top_p=1e-9) == greedy


def test_a_callback_gets_each_step_and_stops_the_generation(models):
    model = sv.Decoder.load(models / "gpt2", dtype="f64")
    prompts, steps = [[48, 61, 61], [106, 8, 90, 79, 90]], []
    found = model.generate(prompts, max_new_ids=14, callback=lambda step, ids: steps.append((step, ids)))
    assert [step for step, _ in steps] == list(range(14))
    assert [ids[0] for _, ids in steps] == found[0]
    assert [ids[1] for _, ids in steps] == found[1] + [None] * 4
    assert model.generate(prompts[1], max_new_ids=14, callback=lambda step, ids: step < 2) == found[1][:3]
    with pytest.raises(ZeroDivisionError):
        model.generate(prompts, max_new_ids=14, callback=lambda step, ids: 1 // 0)


def test_arguments_that_do_not_fit_are_refused(models, tmp_path):
    model = sv.Decoder.load(models / "gpt2")
    for ids, error, message in [
        ([], sv.ArgumentError, "prompt 0 without ids"), ([[1], []], sv.ArgumentError, "prompt 1 without ids"),
        ([131], sv.ArgumentError, "id 131"), ([-1], sv.ArgumentError, "id -1"), ([1.5], sv.DTypeError, "wants integers"),
        ([[[1]]], sv.ArgumentError, "a prompt of shape"),
    ]:
        with pytest.raises(error, match=message):
            model.generate(ids)
    for options, message in [
        ({"temperature": -1}, "temperature = -1"), ({"top_p": 0}, "top_p = 0"), ({"top_k": 0}, "top_k = 0"), ({"min_p": 2}, "min_p = 2"), ({"repetition_penalty": 0}, "repetition_penalty = 0"), ({"max_new_ids": 48}, "48 positions"),
    ]:
        with pytest.raises(sv.ArgumentError, match=message):
            model.generate([1, 2], **{"max_new_ids": 4, **options})
    with pytest.raises(sv.FileError):
        sv.Decoder.load(tmp_path)
    with pytest.raises(sv.ArgumentError, match="i32"):
        sv.Decoder.load(models / "gpt2", dtype="i32")


CHATML = "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"


@pytest.fixture
def tokenizer_folder(tmp_path):
    """A byte-level tokenizer of the characters of ASCII, `he` and an end token."""
    tokens = [chr(code) for code in range(33, 127)] + ["Ġ", "he"]
    model = {"type": "BPE", "vocab": {token: id for id, token in enumerate(tokens)}, "merges": [["h", "e"]]}
    end = {"id": len(tokens), "content": "<|end|>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    names = {"version": "1.0", "added_tokens": [end], "pre_tokenizer": byte_level, "decoder": byte_level, "model": model}
    (tmp_path / "tokenizer.json").write_text(json.dumps(names))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>", "chat_template": CHATML}))
    return tmp_path


def test_tokenizers_encode_and_decode(tokenizer_folder):
    tokenizer = sv.Tokenizer.load(tokenizer_folder)
    assert tokenizer.vocab_size == 97 and tokenizer.end_id == 96
    ids = tokenizer.encode("the he<|end|>")
    assert ids == [ord("t") - 33, 95, 94, 95, 96] == tokenizer.encode("the he<|end|>", add_special_tokens=False)
    assert tokenizer.decode(ids) == "the he<|end|>" and tokenizer.decode(ids, skip_special_tokens=True) == "the he"
    with pytest.raises(sv.Error, match="97"):
        tokenizer.decode([97])


def test_chat_templates_give_text(tokenizer_folder, models):
    tokenizer = sv.Tokenizer.load(tokenizer_folder)
    messages = [{"role": "user", "content": "hé \"you\""}]
    assert tokenizer.apply_chat_template(messages) == "<|user|>hé \"you\""
    assert tokenizer.apply_chat_template(messages, add_generation_prompt=True).endswith("<|assistant|>")
    (tokenizer_folder / "chat_template.jinja").write_text("{{ messages | length }} {{ mood }}")
    assert tokenizer.apply_chat_template(messages, mood="calm") == "1 calm"
    with pytest.raises(sv.FileError):
        sv.Tokenizer.load(models / "gpt2")


def test_the_perplexity_is_that_of_the_logits(models):
    model = sv.Decoder.load(models / "gpt2", dtype="f64")
    ids = [(7 * i * i + 3 * i) % 131 for i in range(100)]

    def losses(start, end):
        """-log p of the ids from start + 1 on, each after those from start on."""
        logits = model.logits(ids[start:end]).numpy()
        logits -= logits.max(axis=-1, keepdims=True)
        log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        return [-log_p[at - start - 1, ids[at]] for at in range(start + 1, end)]

    # Windows of 48 ids, the context: an id at the start of a window counts in none.
    whole = losses(0, 48) + losses(48, 96) + losses(96, 100)
    assert model.perplexity(ids) == pytest.approx(np.exp(np.mean(whole)))
    # Each id counts in the first window that has it.
    strided = losses(0, 40) + losses(30, 70)[9:] + losses(60, 100)[9:]
    assert model.perplexity(np.array(ids), context=40, stride=30) == pytest.approx(np.exp(np.mean(strided)))
    for call, message in [
        (lambda: model.perplexity([1]), "1 ids; wanted at least two ids"),
        (lambda: model.perplexity([1, 131]), "the id 131; wanted ids below 131"),
        (lambda: model.perplexity(ids, context=49), "a context of 49; wanted 2 to 48"),
        (lambda: model.perplexity(ids, context=8, stride=9), "a stride of 9; wanted 1 to the context, 8"),
        (lambda: model.perplexity(ids, stride=0), "a stride of 0"),
    ]:
        with pytest.raises(sv.ArgumentError, match=message):
            call()


TEXT = "to be, or not to be: that is the question. " * 30


def test_tokenizers_are_trained_and_stored(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    for texts in [TEXT, TEXT.encode(), tmp_path / "text.txt", [TEXT[:400], TEXT[400:].encode()]]:
        tokenizer = sv.Tokenizer.train(texts, vocab_size=280)
        ids = tokenizer.encode(TEXT)
        assert 257 < tokenizer.vocab_size <= 280 and len(ids) < len(TEXT) / 2
        assert tokenizer.decode(ids) == TEXT and tokenizer.end_id is not None
    tokenizer.save(tmp_path / "tokenizer")
    again = sv.Tokenizer.load(tmp_path / "tokenizer")
    assert again.encode(TEXT) == ids and again.end_id == tokenizer.end_id
    named = sv.Tokenizer.train(TEXT, vocab_size=260, pattern="llama3", min_count=3, end_token="<end>")
    assert named.decode([named.end_id]) == "<end>"
    for call, error, message in [
        (lambda: sv.Tokenizer.train(TEXT, vocab_size=200), sv.ArgumentError, "200 ids"),
        (lambda: sv.Tokenizer.train(TEXT, pattern="gpt5"), sv.ArgumentError, 'the pattern "gpt5"; wanted "gpt2"'),
        (lambda: sv.Tokenizer.train([3]), sv.DTypeError, "Tokenizer.train wants texts as str, bytes or pathlib.Path, but found int"),
        (lambda: sv.Tokenizer.train([]), sv.ArgumentError, "without a byte"),
        (lambda: sv.Tokenizer.train(tmp_path / "missing.txt"), sv.FileError, "missing.txt"),
        (lambda: named.apply_chat_template([]), sv.ArgumentError, "a tokenizer that was trained"),
    ]:
        with pytest.raises(error, match=message):
            call()


def test_the_text_of_a_generation_comes_in_whole_characters(models):
    tokenizer = sv.Tokenizer.train("plain text", vocab_size=257)
    text = "a\u00e9\u20ac\U0001f600z"
    ids = tokenizer.encode(text)
    stream = sv.StreamDecoder(tokenizer)
    parts = [stream.push(id) for id in ids]
    assert [part for part in parts if part] == list(text) and stream.finish() == ""
    assert stream.push(ids[:2]) == "a" and stream.finish() == "\ufffd"
    # A callback's ids, and a new text after `finish`.
    assert stream.push([ids[0], None]) == "a" and stream.push([None]) == "" and stream.finish() == ""
    del tokenizer
    assert stream.push(ids) == text
    with pytest.raises(sv.ArgumentError, match="found -1; wanted an integer from 0"):
        stream.push([-1])
    model, parts = sv.Decoder.load(models / "gpt2"), []
    trained = sv.Tokenizer.train("plain text", vocab_size=257)
    stream = sv.StreamDecoder(trained)
    found = model.generate([1, 2, 3], max_new_ids=8, end_ids=[], callback=lambda step, ids: parts.append(stream.push(ids)))
    assert "".join(parts) + stream.finish() == trained.decode(found)
