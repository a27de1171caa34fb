"""Pickles and copies of modules and optimizers, checkpoints of loops, and trainers that continue with the same bits."""

import _thread
import collections
import copy
import pickle
import sys
import threading
import zipfile

import numpy as np
import pytest
import selvedge as sv
from selvedge import nn

TEXT = "it was the best of times, it was the worst of times, it was the age of wisdom, " * 6


class Residual(nn.Module):
    def __init__(self, width, depth=2):
        self.layers = [nn.Linear(width, width) for _ in range(depth)]
        self.by_name = {"norm": nn.LayerNorm(width), "drop": nn.Dropout(0.25, generator=sv.Generator(3))}
        self.scale = nn.Parameter(np.arange(1, width + 1, dtype="f8"))
        self.shift = nn.Buffer(np.ones(width, "f4"))
        self.note = "kept"

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(self.by_name["norm"](x))
        return self.by_name["drop"](x) * self.scale.cast("f32") + self.shift


class Scaled(nn.Linear):
    def __init__(self, width, factor):
        super().__init__(width, width, bias=False, dtype="f64")
        self.factor = factor

    def forward(self, x):
        return super().forward(x) * self.factor


class Momentum(nn.SGD):
    def __new__(cls, params, note):
        return super().__new__(cls, params, lr=0.1, momentum=0.9)

    def __init__(self, params, note):
        self.note = note


def bits(tensors):
    return {name: (tensor.dtype, tensor.device, tensor.shape, tensor.numpy().tobytes()) for name, tensor in tensors.items()}


def through_pickle(value, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(value, protocol))


WAYS = {"pickle": through_pickle, "pickle 0": lambda value: through_pickle(value, 0), "deepcopy": copy.deepcopy}

LAYERS = {
    "Linear": lambda: nn.Linear(3, 2, bias=False, dtype="f64"),
    "Linear in bf16": lambda: nn.Linear(3, 2, initializer=nn.Initializer(seed=1, compute_dtype="bf16")),
    "Embedding": lambda: nn.Embedding(5, 3, dtype="f16"),
    "LayerNorm": lambda: nn.LayerNorm((2, 3), 1e-3),
    "RMSNorm": lambda: nn.RMSNorm(3),
    "BatchNorm1d": lambda: nn.BatchNorm1d(3, momentum=0.5),
    "BatchNorm2d": lambda: nn.BatchNorm2d(3),
    "Dropout": lambda: nn.Dropout(0.75, generator=sv.Generator(7)),
    "MultiHeadAttention": lambda: nn.MultiHeadAttention(8, 2, num_key_value_heads=1, is_causal=True),
    "FeedForward": lambda: nn.FeedForward(4, 6, activation="silu"),
    "TransformerBlock": lambda: nn.TransformerBlock(8, 2, 0.5, generator=sv.Generator(9), is_causal=True),
    "GELU": lambda: nn.GELU("tanh"),
    "ReLU": nn.ReLU,
    "Gpt": lambda: nn.Gpt(nn.GptConfig(11, 6, 8, 1, 2, dropout=0.5), seed=4),
}
INPUTS = collections.defaultdict(
    lambda: np.linspace(-1, 1, 24).reshape(2, 3, 4).astype("f4"),
    {
        "Linear": np.ones((2, 3)), "Linear in bf16": np.ones((2, 3), "f4"), "Embedding": np.array([[1, 4]]), "LayerNorm": np.ones((4, 2, 3), "f4"),
        "RMSNorm": np.ones((2, 3), "f4"), "BatchNorm1d": np.linspace(-1, 1, 12).reshape(4, 3).astype("f4"),
        "BatchNorm2d": np.linspace(-1, 1, 24).reshape(2, 3, 2, 2).astype("f4"),
        "MultiHeadAttention": np.linspace(-1, 1, 48).reshape(2, 3, 8).astype("f4"),
        "TransformerBlock": np.linspace(-1, 1, 48).reshape(2, 3, 8).astype("f4"), "Gpt": np.array([[1, 2, 3]]),
    },
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_come_back_with_their_bits_and_options(name, way):
    layer = LAYERS[name]()
    x = sv.Tensor(INPUTS[name])
    layer(x)
    other = WAYS[way](layer)
    assert type(other) is type(layer) and bits(other.state_dict()) == bits(layer.state_dict())
    # The mode, the options and the generators are the same, and apart.
    for _ in range(2):
        found, wanted = other(x), layer(x)
        assert found.dtype == wanted.dtype and found.data.equal(wanted.data)
    assert other.eval().training is False and layer.training is True
    with nn.no_grad():
        for _, parameter in other.named_parameters():
            parameter.copy_(sv.zeros_like(parameter.data) - 5)
    for _, parameter in layer.named_parameters():
        assert not (parameter.data == -5).any().item()


@pytest.mark.parametrize("way", WAYS)
def test_modules_of_users_come_back_with_all_attributes(way):
    model = Residual(3)
    model.by_name["drop"].eval()
    model.register_forward_hook(print_nothing)
    other = WAYS[way](model)
    assert [name for name, _ in other.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert bits(other.state_dict()) == bits(model.state_dict()) and other.note == "kept"
    assert other.training and not other.by_name["drop"].training
    x = sv.Tensor([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]], "f32")
    assert other(x).data.equal(model(x).data)
    other.layers[0] = nn.Linear(3, 3)
    assert not other(x).data.equal(model(x).data)
    scaled = WAYS[way](Scaled(3, 2.5))
    assert scaled.factor == 2.5 and scaled.weight.dtype == sv.f64 and scaled.bias is None
    sequence = WAYS[way](nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
    assert len(sequence) == 2 and sequence(x).shape == (2, 2)


def print_nothing(module, inputs, result):
    return None


def test_a_shallow_copy_shares_the_parameters():
    for model, x in [(nn.Linear(2, 2), sv.ones(1, 2)), (Residual(2), None), (nn.Gpt(nn.GptConfig(5, 4, 4, 1, 1), seed=1), sv.Tensor([[1]]))]:
        other = copy.copy(model)
        with nn.no_grad():
            for parameter in model.parameters():
                parameter.copy_(sv.zeros_like(parameter.data))
        assert all(not parameter.data.any().item() for parameter in other.parameters())
        if x is not None:
            assert other(x).data.equal(model(x).data)
    assert other.config == model.config


def test_variables_come_back_as_they_were():
    for variable in [nn.Parameter([1.0, 2.0], dtype="bf16"), nn.Parameter([1.0], requires_grad=False), nn.Buffer([1, 2]), nn.Variable([3.0], requires_grad=True)]:
        for other in [through_pickle(variable), copy.deepcopy(variable)]:
            assert type(other) is type(variable) and other.requires_grad == variable.requires_grad
            assert other.dtype == variable.dtype and other.data.equal(variable.data)
    shared = nn.Parameter([1.0])
    first, second = through_pickle([shared, shared])
    assert first is second
    with pytest.raises(sv.ArgumentError, match=r"a variable that recorded operations made; wanted x\.detach\(\)"):
        pickle.dumps(nn.Variable([3.0], requires_grad=True) * 2)


OPTIMIZERS = {
    "SGD": lambda params: nn.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda params: nn.Adam(params, lr=0.1, betas=(0.8, 0.95), eps=1e-6),
    "AdamW": lambda params: nn.AdamW(params, lr=0.1, min_decay_rank=2),
    "Lion": lambda params: nn.Lion(params, lr=0.01),
    "Adafactor": lambda params: nn.Adafactor(params, eps=(None, 1e-2), relative_step=False),
    "Muon": lambda params: nn.Muon(params, lr=0.01, ns_coefficients=(3.0, -3.2, 1.2), ns_steps=3, adjust_lr_fn="match_rms_adamw"),
    "a subclass": lambda params: Momentum(params, "mine"),
}
SOURCES = {"module": lambda model: model, "list": lambda model: model.parameters(), "iterator": lambda model: iter(model.parameters()), "Parameters": nn.Parameters}


def learn(model, optimizer, steps):
    x = sv.Tensor(np.linspace(-1, 1, 8).reshape(4, 2).astype("f4"))
    for _ in range(steps):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()


def small_model():
    return nn.Sequential(nn.Linear(2, 3, initializer=nn.Initializer(seed=1)), nn.Tanh(), nn.Linear(3, 1, initializer=nn.Initializer(seed=2)))


def matrices():
    """A model of matrices alone, which a Muon can have whole."""
    return nn.Sequential(nn.Linear(2, 3, bias=False, initializer=nn.Initializer(seed=1)), nn.Tanh(), nn.Linear(3, 1, bias=False, initializer=nn.Initializer(seed=2)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_come_back_with_their_state_and_share_the_parameters_of_their_model(name, source, way):
    model = matrices() if name == "Muon" else small_model()
    optimizer = OPTIMIZERS[name](SOURCES[source](model))
    learn(model, optimizer, 3)
    optimizer.lr = 0.05
    for order in [1, -1]:
        copies = WAYS[way]([model, optimizer][::order])
        other_model, other = copies[::order]
        assert type(other) is type(optimizer) and other.lr == 0.05
        assert bits(other.state_dict()) == bits(optimizer.state_dict())
        reference = WAYS["pickle"]([model, optimizer])
        learn(other_model, other, 3)
        learn(*reference, 3)
        assert bits(other_model.state_dict()) == bits(reference[0].state_dict()) != bits(model.state_dict())
    if name == "a subclass":
        assert other.note == "mine"


@pytest.mark.parametrize("way", WAYS)
def test_pairs_of_optimizers_come_back_with_their_optimizers(way):
    model = small_model()
    first, second = (nn.Muon([p for p in model.parameters() if p.ndim == 2], lr=0.1), nn.AdamW([p for p in model.parameters() if p.ndim != 2], lr=0.2))
    pair = nn.OptimizerPair(first, second)
    learn(model, pair, 3)
    other_model, other, other_second = WAYS[way]([model, pair, second])
    assert type(other) is nn.OptimizerPair and bits(other.state_dict()) == bits(pair.state_dict())
    # A step of the copy is one of its own optimizers, and none of the first pair's.
    before = bits(second.state_dict())
    other.lr = 0.05
    learn(other_model, other, 2)
    assert other_second.lr == 0.1 and second.lr == 0.2
    assert bits(second.state_dict()) == before != bits(other_second.state_dict())
    pair.lr = 0.05
    learn(model, pair, 2)
    assert bits(model.state_dict()) == bits(other_model.state_dict())


def test_classes_that_cannot_be_imported_are_named(monkeypatch):
    class Local(nn.Module):
        pass

    class LocalSgd(nn.SGD):
        pass

    with pytest.raises(sv.ArgumentError, match=r"the class .*test_saved_training\.test_classes.*<locals>\.Local, which cannot be imported"):
        pickle.dumps([Local()])
    with pytest.raises(sv.ArgumentError, match=r"<locals>\.LocalSgd, which cannot be imported.*wanted a class at the top level"):
        pickle.dumps(LocalSgd(nn.Linear(1, 1)))
    # A copy needs no import.
    assert type(copy.deepcopy(Local())) is Local
    assert type(copy.deepcopy(LocalSgd(nn.Linear(1, 1)))) is LocalSgd
    stored = pickle.dumps(Residual(2))
    monkeypatch.delattr(sys.modules[__name__], "Residual")
    with pytest.raises(sv.ArgumentError, match=r"test_saved_training\.Residual, which cannot be imported"):
        pickle.loads(stored)


def test_checkpoints_of_a_loop_continue_with_the_same_bits(tmp_path):
    def start(seed):
        model = nn.Sequential(nn.Linear(2, 4, initializer=nn.Initializer(seed=seed)), nn.Dropout(0.5, generator=(generator := sv.Generator(seed))), nn.Linear(4, 1, initializer=nn.Initializer(seed=seed)))
        return model, nn.AdamW(model, lr=0.1), generator

    model, optimizer, generator = start(1)
    learn(model, optimizer, 3)
    path = tmp_path / "runs/first"
    nn.save_checkpoint(path, model=model, optimizer=optimizer, generator=generator, step=3, loss=0.5, extra={"epoch": [1, None]})
    learn(model, optimizer, 3)
    other_model, other, other_generator = start(2)
    found = nn.load_checkpoint(path, model=other_model, optimizer=other, generator=other_generator)
    assert (found["step"], found["loss"], found["extra"], found["optimizer"]) == (3, 0.5, {"epoch": [1, None]}, "AdamW")
    assert set(found["parameters"]) == set(model.state_dict()) and set(found["optimizer_state"]) == set(other.state_dict())
    learn(other_model, other, 3)
    assert bits(other_model.state_dict()) == bits(model.state_dict())
    assert bits(other.state_dict()) == bits(optimizer.state_dict())


def test_checkpoints_that_do_not_fit_change_nothing_and_name_both_sides(tmp_path):
    model = small_model()
    optimizer = nn.AdamW(model)
    learn(model, optimizer, 1)
    path = tmp_path / "run"
    nn.save_checkpoint(path, model=model, optimizer=optimizer)
    before = bits(model.state_dict())
    learn(model, optimizer, 1)
    after = bits(model.state_dict())
    for class_ in [nn.Adam, nn.SGD, nn.Lion]:
        with pytest.raises(sv.ArgumentError, match=f"(?i)the state of the optimizer AdamW; wanted that of {class_.__name__}"):
            nn.load_checkpoint(path, model=model, optimizer=class_(model))
    with pytest.raises(sv.ArgumentError) as failure:
        nn.load_checkpoint(path, model=nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 5)))
    for name in ["'1.weight' is missing", "'1.bias' is missing", "'2.weight' is extra", "'2.bias' is extra"]:
        assert name in str(failure.value)
    nn.save_checkpoint(tmp_path / "without", model=model)
    with pytest.raises(sv.ArgumentError, match="a checkpoint without the state of an optimizer; wanted the state of the optimizer AdamW"):
        nn.load_checkpoint(tmp_path / "without", model=model, optimizer=optimizer)
    with pytest.raises(sv.ArgumentError, match="an optimizer without a model"):
        nn.load_checkpoint(path, optimizer=optimizer)
    with pytest.raises(sv.DTypeError, match="save_checkpoint wants a selvedge.nn.Module or a selvedge.Decoder, but found int"):
        nn.save_checkpoint(path, model=3)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(sv.FileError, match="a folder of other files"):
        nn.save_checkpoint(tmp_path, model=model)
    assert bits(model.state_dict()) == after != before
    nn.load_checkpoint(path, model=model, optimizer=optimizer)
    assert bits(model.state_dict()) == before
    with pytest.raises(sv.FileError, match="info.json"):
        nn.load_checkpoint(tmp_path / "nothing")


def test_parameters_in_buffers_and_replaced_ones_are_named():
    model = Residual(2)
    nn.Parameters(model)
    with pytest.raises(sv.ArgumentError, match=r"parameter 'layers\.0\.weight', which is in a buffer already"):
        nn.Parameters(model)
    # A copy is apart from the buffer.
    nn.Parameters(copy.deepcopy(model))
    optimizer = nn.SGD(model, lr=0.1)
    model.scale = nn.Parameter([1.0, 1.0])
    with pytest.raises(sv.ArgumentError, match="the parameter 'scale', which the module got after the optimizer was made"):
        optimizer.step()


def config(**options):
    return nn.GptConfig(256, 16, 16, 1, 2, **options)


OPTIONS = dict(steps=6, batch=4, lr=1e-2, warmup_steps=2)


def test_a_gpt_is_a_module_with_a_configuration(tmp_path):
    model = nn.Gpt(config(activation="silu", tied_head=False), seed=1)
    assert (model.config.width, model.config.activation, model.config.tied_head, model.dtype) == (16, "silu", False, sv.f32)
    assert model.config == nn.GptConfig.from_json(model.config.to_json()) == through_pickle(model.config) != config()
    assert sum(parameter.size for parameter in model.parameters()) == model.config.parameter_count
    ids = np.array([[1, 2, 3, 4]])
    logits = model(ids)
    assert logits.shape == (1, 4, 256)
    wanted = nn.cross_entropy(logits.reshape(-1, 256), np.array([2, 3, 4, 5]))
    assert abs(model.loss(ids, ids + 1).item() - wanted.item()) < 1e-5
    model.save(tmp_path / "model")
    again = nn.Gpt.load(tmp_path / "model")
    assert again.config == model.config and bits(again.state_dict()) == bits(model.state_dict())
    assert bits(nn.Gpt(config(), seed=1).state_dict()) == bits(nn.Gpt(config(), seed=1).state_dict())
    double = nn.Gpt(config(), dtype="f64")
    assert double.dtype == sv.f64
    model.eval()
    new = model.generate([1, 2], max_new_ids=20)
    assert len(new) == 20 and model.generate(np.array([1, 2]), max_new_ids=5) == new[:5]
    assert model.generate([1], max_new_ids=4, temperature=1.0, seed=3) == model.generate([1], max_new_ids=4, temperature=1.0, seed=3)
    for call, match in [
        (lambda: nn.GptConfig(5, width=7), "4 heads of a width of 7"),
        (lambda: nn.GptConfig(5, activation="step"), 'the activation "step"; wanted "gelu_tanh"'),
        (lambda: nn.Gpt(config(), seed=1, dtype="f64"), "a seed with a generator"),
        (lambda: nn.Gpt.__new__(nn.Gpt).config, "without __init__"),
        (lambda: model.generate([999]), "id 999"),
    ]:
        with pytest.raises(sv.ArgumentError, match=match):
            call()


def test_a_trainer_learns_and_reports_its_steps():
    trainer = nn.Trainer(nn.Gpt(config(), seed=1), TEXT, **{**OPTIONS, "steps": 60})
    assert abs(trainer.evaluate() - np.log(256)) < 0.3 and trainer.report is None and not trainer.model.training
    first = trainer.step()
    assert trainer.model.training and trainer.report.loss == first and (trainer.report.step, trainer.step_count) == (1, 1)
    seen = []
    last = trainer.run(lambda report: seen.append((report.step, report.loss, report.lr, report.grad_norm, report.is_skipped)))
    assert [step for step, *_ in seen] == list(range(2, 61)) and seen[-1][1] == last < 0.6 * first
    assert all(norm > 0 and not is_skipped for *_, norm, is_skipped in seen) and seen[0][2] > seen[-1][2]
    assert trainer.evaluate() < trainer.unigram_entropy < first
    assert trainer.run() is None and (trainer.steps, trainer.ids_per_step, trainer.is_captured) == (60, 64, False)
    assert trainer.options["batch"] == 4 and trainer.loss_scale is None and repr(trainer) == "Trainer(step 60 of 60)"
    # The model is the one that was given: its parameters are the trained ones.
    assert "".join(map(chr, trainer.model.eval().generate(list(b"it was the "), max_new_ids=3))).isascii()


@pytest.mark.parametrize("recompute", ["feed-forward", "blocks"])
def test_a_recomputation_changes_no_bit(recompute):
    def run(**options):
        trainer = nn.Trainer(nn.Gpt(config(dropout=0.1), seed=1), TEXT, **OPTIONS, **options)
        return [trainer.step() for _ in range(3)], trainer.options["recompute"]

    assert run(recompute=recompute) == (run()[0], recompute)


def test_a_callback_stops_a_run_and_raises_through_it():
    trainer = nn.Trainer(nn.Gpt(config(), seed=1), TEXT, **OPTIONS)
    trainer.run(lambda report: report.step < 2)
    assert trainer.step_count == 2

    def fail(report):
        # The trainer is free within a callback.
        assert trainer.evaluate() > 0
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trainer.run(fail)
    assert trainer.step_count == 3
    # Other threads run in the meantime.
    done = threading.Thread(target=trainer.run)
    done.start()
    done.join()
    assert trainer.step_count == 6


def test_an_interrupt_ends_a_long_run_between_steps():
    trainer = nn.Trainer(nn.Gpt(config(), seed=1), TEXT, **{**OPTIONS, "steps": 10**9})
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    timer.join()
    taken = trainer.step_count
    trainer.step()
    assert trainer.step_count == taken + 1 > 1


@pytest.mark.parametrize("tokenizer", [None, "bytes", "characters"])
def test_a_run_that_continues_has_the_bits_of_one_that_was_not_stopped(tmp_path, tokenizer):
    def start():
        return nn.Trainer(nn.Gpt(config(dropout=0.1), seed=1), TEXT, tokenizer=tokenizer, accumulation=2, shuffle=True, **OPTIONS)

    whole, first = start(), start()
    losses = []
    whole.run(lambda report: losses.append(report.loss))
    first.run(lambda report: report.step < 3)
    first.save(tmp_path / "run")
    loaded = nn.Trainer.load(tmp_path / "run", TEXT)
    resumed = start()
    resumed.resume(tmp_path / "run")
    for trainer in [loaded, resumed, first]:
        found = []
        assert trainer.step_count == 3
        trainer.run(lambda report: found.append(report.loss))
        assert found == losses[3:]
        assert bits(trainer.model.state_dict()) == bits(whole.model.state_dict())
    assert loaded.options == whole.options


def test_ids_and_files_are_texts(tmp_path):
    ids = np.frombuffer(TEXT.encode(), "u1")
    (tmp_path / "text.txt").write_text(TEXT)
    losses = set()
    files = sv.io.save_ids(tmp_path / "ids.bin", ids, shard_ids=300)
    (whole,) = sv.io.save_ids(tmp_path / "ids.npy", ids)
    for text in [TEXT, TEXT.encode(), tmp_path / "text.txt", files, whole, ids, sv.Tensor(ids.astype("i8")), ids.tolist()]:
        losses.add(nn.Trainer(nn.Gpt(config(), seed=1), text, **OPTIONS).step())
    assert len(losses) == 1


def test_schedules_are_names_or_objects():
    def rates(**options):
        found = []
        trainer = nn.Trainer(nn.Gpt(config(), seed=1), TEXT, batch=2, **options)
        trainer.run(lambda report: found.append(report.lr))
        return found

    assert rates(steps=3, lr=0.25, schedule="constant", warmup_steps=0) == [0.25] * 3
    schedule = nn.LearningRateSchedule("linear", 0.5, total_steps=4)
    assert rates(schedule=schedule) == rates(schedule=schedule, steps=4) == [schedule(step) for step in range(4)]


def test_arguments_that_do_not_fit_are_refused(tmp_path):
    model = nn.Gpt(config(), seed=1)
    schedule = nn.LearningRateSchedule("linear", 0.5, total_steps=4)
    for call, kind, match in [
        (lambda: nn.Trainer(nn.Linear(2, 2), TEXT), sv.DTypeError, "a selvedge.nn.Gpt or a selvedge.Decoder; selvedge.nn.TrainingStep trains any module, but found Linear"),
        (lambda: nn.Trainer(model, [1, 2, 300] * 30), sv.ArgumentError, "the id 300 in the text; wanted ids below 256"),
        (lambda: nn.Trainer(model, TEXT, context=17), sv.ArgumentError, "a context of 17; wanted at most the model's, 16"),
        (lambda: nn.Trainer(model, TEXT, batch=0), sv.ArgumentError, "batch = 0"),
        (lambda: nn.Trainer(model, TEXT, recompute="block"), sv.ArgumentError, "'block'; wanted nothing, feed-forward or blocks"),
        (lambda: nn.Trainer(model, TEXT, schedule="up"), sv.ArgumentError, '"up"; wanted "cosine"'),
        (lambda: nn.Trainer(model, TEXT, schedule=3), sv.DTypeError, "the name of a schedule"),
        (lambda: nn.Trainer(model, TEXT, schedule=schedule, lr=1.0), sv.ArgumentError, "a LearningRateSchedule with lr"),
        (lambda: nn.Trainer(model, TEXT, schedule=schedule, steps=5), sv.ArgumentError, "steps=5 and a schedule of 4 steps"),
        (lambda: nn.Trainer(model, TEXT, tokenizer="words"), sv.ArgumentError, 'the tokenizer "words"; wanted a selvedge.Tokenizer'),
        (lambda: nn.Trainer(model, [1, 2, 3], tokenizer="characters"), sv.ArgumentError, '"characters" for ids'),
        (lambda: nn.Trainer(model, tmp_path / "nothing.txt"), sv.FileError, "nothing.txt"),
        (lambda: nn.Trainer(model, TEXT, training_fraction=2.0), sv.ArgumentError, "a training fraction of 2"),
    ]:
        with pytest.raises(kind, match=match):
            call()
    trainer = nn.Trainer(model, TEXT, **OPTIONS)
    trainer.save(tmp_path / "run")
    with pytest.raises(sv.ArgumentError, match="a text with the hash .*; wanted the checkpoint's"):
        nn.Trainer.load(tmp_path / "run", TEXT * 2)
    assert nn.Trainer.load(tmp_path / "run", TEXT * 2, allow_other_text=True).step_count == 0
    other = nn.Trainer(nn.Gpt(config(bias=False), seed=1), TEXT, **OPTIONS)
    with pytest.raises(sv.ArgumentError, match="(?s)a model .*; wanted .*has_bias"):
        other.resume(tmp_path / "run")
    nn.save_checkpoint(tmp_path / "loop", model=nn.Linear(2, 2))
    with pytest.raises(sv.ArgumentError, match="a checkpoint without the options of a run"):
        nn.Trainer.load(tmp_path / "loop", TEXT)


@pytest.fixture(scope="session")
def decoder_folder(repository, tmp_path_factory):
    folder = tmp_path_factory.mktemp("decoders")
    with zipfile.ZipFile(repository / "tests/data/models/cases.zip") as archive:
        archive.extractall(folder)
    return folder / "llama3"


def test_decoders_train_whole_and_by_adapters(decoder_folder, tmp_path):
    ids = np.arange(400) % 23
    model = sv.Decoder.load(decoder_folder, dtype="f32")
    trainer = nn.Trainer(model, ids, batch=2, context=8, steps=4, lr=1e-2, warmup_steps=0)
    first = trainer.step()
    trainer.save(tmp_path / "run")
    assert trainer.run() < first
    again = nn.Trainer.load(tmp_path / "run", ids)
    again.run()
    assert isinstance(again.model, sv.Decoder) and bits(again.model.state_dict()) == bits(model.state_dict())

    base = sv.Decoder.load(decoder_folder, dtype="f32")
    before = base.logits([1, 2, 3])
    base.add_lora(2, layers=["q_proj", "v_proj"])
    assert base.lora_rank == 2 and all("lora" in name for name in base.state_dict())
    trainer = nn.Trainer(base, ids, batch=2, context=8, steps=3, lr=1e-1, warmup_steps=0)
    trainer.save(tmp_path / "adapters")
    trainer.run()
    with pytest.raises(sv.ArgumentError, match="merge_lora: found a model in use; wanted one that no Trainer"):
        base.merge_lora()
    other = sv.Decoder.load(decoder_folder, dtype="f32")
    with pytest.raises(sv.ArgumentError, match="a checkpoint of adapters, which has no weights"):
        nn.Trainer.load(tmp_path / "adapters", ids)
    other.add_lora(2, layers=["q_proj", "v_proj"], seed=9)
    second = nn.Trainer.load(tmp_path / "adapters", ids, model=other)
    second.run()
    assert bits(other.state_dict()) == bits(base.state_dict())
    base.save_lora(tmp_path / "lora", "base")
    fresh = sv.Decoder.load(decoder_folder, dtype="f32")
    fresh.load_lora(tmp_path / "lora")
    del trainer
    base.merge_lora()
    assert base.lora_rank is None and not base.logits([1, 2, 3]).equal(before)
    np.testing.assert_allclose(fresh.logits([1, 2, 3]).numpy(), base.logits([1, 2, 3]).numpy(), atol=1e-4)
