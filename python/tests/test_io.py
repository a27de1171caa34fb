"""`selvedge.io`: files that NumPy and safetensors read and write, and errors of names and contents."""

import json

import numpy as np
import pytest
import selvedge as sv
from selvedge import io, nn


def test_npy_files_are_numpys(tmp_path):
    array = np.arange(6, dtype="f4").reshape(2, 3)
    io.save(tmp_path / "a.npy", sv.Tensor(array))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), array)
    np.save(tmp_path / "b.npy", array.T)
    np.testing.assert_array_equal(io.load(str(tmp_path / "b.npy"), device="cpu").numpy(), array.T)


@pytest.mark.parametrize("compressed", [False, True])
def test_npz_files_are_numpys(tmp_path, compressed):
    arrays = {"x": np.arange(3), "y": np.eye(2), "z": np.zeros((0, 4), "f2")}
    io.save(tmp_path / "a.npz", arrays, compressed=compressed)
    (np.savez_compressed if compressed else np.savez)(tmp_path / "b.npz", **arrays)
    with np.load(tmp_path / "a.npz") as found:
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype
    found = io.load(tmp_path / "b.npz")
    assert list(found) == list(arrays) and all((found[name].numpy() == array).all() for name, array in arrays.items())


def test_safetensors_files_hold_state_dicts(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    path = tmp_path / "model.safetensors"
    io.save(path, model.state_dict(), metadata={"format": "pt"})
    contents = path.read_bytes()
    header = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
    assert header["__metadata__"] == {"format": "pt"} and header["0.weight"]["shape"] == [3, 2] and header["1.num_batches_tracked"]["dtype"] == "I64"
    other = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    other.load_state_dict(io.load(path))
    assert all(tensor.equal(model.state_dict()[name]) for name, tensor in other.state_dict().items())
    io.save(path, {"half": nn.Variable([1.5]).to("bf16"), "list": [1, 2]})
    found = io.load(path)
    assert found["half"].dtype == sv.bf16 and found["half"].tolist() == [1.5] and found["list"].tolist() == [1, 2]


def test_bad_names_and_contents_are_errors(tmp_path):
    x = sv.ones(2)
    for call, error, match in [
        (lambda: io.save(tmp_path / "a.pt", x), sv.ArgumentError, r"a.pt; wanted a name that ends in .npy, .npz or .safetensors"),
        (lambda: io.load(tmp_path / "a"), sv.ArgumentError, "wanted a name that ends"),
        (lambda: io.load(tmp_path / "missing.npy"), sv.FileError, "missing.npy"),
        (lambda: io.save(tmp_path / "a.npz", x), sv.DTypeError, "a dict of tensors by name"),
        (lambda: io.save(tmp_path / "a.npy", x, compressed=True), sv.ArgumentError, "wanted a .npz file"),
        (lambda: io.save(tmp_path / "a.npz", {}, metadata={"a": "b"}), sv.ArgumentError, "wanted a .safetensors file"),
        (lambda: io.save(tmp_path / "no" / "a.npy", x), sv.FileError, "a.npy"),
        (lambda: io.save(tmp_path / "a.npz", {1: x}), TypeError, "int"),
    ]:
        with pytest.raises(error, match=match):
            call()
    (tmp_path / "damaged.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(sv.FileError, match="damaged"):
        io.load(tmp_path / "damaged.safetensors")


def test_state_dicts_go_to_pytorch_and_back(tmp_path):
    torch = pytest.importorskip("torch")
    model, reference = nn.Linear(3, 2), torch.nn.Linear(3, 2)
    # PyTorch's weight is the transpose.
    state = reference.state_dict()
    model.load_state_dict({"weight": state["weight"].T.contiguous(), "bias": state["bias"]})
    x = np.ones((4, 3), "f4")
    np.testing.assert_allclose(model(x).numpy(), reference(torch.from_numpy(x)).detach().numpy(), rtol=1e-6)
    back = model.state_dict()
    reference.load_state_dict({"weight": torch.from_dlpack(back["weight"]).T, "bias": torch.from_dlpack(back["bias"])})
    np.testing.assert_allclose(model(x).numpy(), reference(torch.from_numpy(x)).detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("ending", ["bin", "npy"])
def test_files_of_ids_are_written_and_read(tmp_path, ending):
    path, ids = tmp_path / f"train.{ending}", [3, 1, 4, 1, 5, 65535]
    assert sv.io.save_ids(path, ids) == [path]
    found = sv.io.load_ids(path)
    assert found.dtype == sv.i64 and found.tolist() == ids
    assert sv.io.save_ids(str(path), np.array([70_000, 2])) == [path] and sv.io.load_ids(path).tolist() == [70_000, 2]
    shards = sv.io.save_ids(path, sv.Tensor(ids), dtype="u32", shard_ids=4)
    assert [shard.name for shard in shards] == [f"train_00000{number}.{ending}" for number in [0, 1]]
    assert sv.io.load_ids(shards).tolist() == ids and sv.io.load_ids(shards[1]).tolist() == ids[4:]
    for call, error, message in [
        (lambda: sv.io.save_ids(tmp_path / "train.txt", ids), sv.ArgumentError, "a name that ends in .bin or .npy"),
        (lambda: sv.io.save_ids(path, [70_000], dtype="u16"), sv.ArgumentError, "the id 70000"),
        (lambda: sv.io.save_ids(path, []), sv.ArgumentError, "no ids"),
        (lambda: sv.io.save_ids(path, [0.5]), sv.DTypeError, "f64"),
        (lambda: sv.io.load_ids(tmp_path / f"missing.{ending}"), sv.FileError, "missing"),
    ]:
        with pytest.raises(error, match=message):
            call()
