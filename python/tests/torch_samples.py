"""Runs the samples of PyTorch's own operator tests on selvedge and prints a table: `python torch_samples.py [--device cuda] [NAME...]`.

For every operation that both have, each sample of `op_db` and a vector of special values go through DLPack, are computed by
both, and are compared: shape, dtype and values. A difference that torch_differences.py explains is counted and printed as such;
any other failure makes the exit status 1. It needs PyTorch with its testing modules, which CI has not.
"""

import argparse
import collections
import importlib.util
import sys
import types
import unittest
import warnings

if importlib.util.find_spec("expecttest") is None:
    # PyTorch's testing modules import it for tests of their own, and not every PyTorch comes with it.
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase

import torch
from torch.testing._internal.common_methods_invocations import op_db

import selvedge as sv
from torch_differences import choices_differ, explanation, is_nearer, left_open, on_cpu
from torch_names import NAMES, NotOffered

DTYPES = {"f32": torch.float32, "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128, "bf16": torch.bfloat16, "i64": torch.int64}
# Relative and absolute tolerance: some units in the last place of sums of a few hundred.
TOLERANCES = {torch.float32: (2e-5, 1e-5), torch.float64: (1e-10, 1e-10), torch.complex64: (1e-4, 2e-5), torch.complex128: (1e-9, 1e-9), torch.bfloat16: (3e-2, 2e-2)}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, float("inf"), -float("inf"), float("nan"), 1e-30, 1e30]
OUTCOMES = ("passed", "explained", "failed", "not offered")
# A parameter list that `sample_inputs` makes too large to be worth it.
MAX_SAMPLES = 60


def to_own(value):
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        return sv.from_dlpack(value.clone() if not value.is_contiguous() and value.numel() == 0 else value)
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, (list, tuple)):
        return type(value)(map(to_own, value)) if type(value) in (list, tuple) else tuple(map(to_own, value))
    return value


def to_torch(value):
    if isinstance(value, sv.Tensor):
        # PyTorch has no negative strides.
        return torch.from_dlpack(value.contiguous())
    if isinstance(value, (list, tuple)):
        return [to_torch(one) for one in value]
    return value


def compare(found, wanted):
    """Returns why two results differ, None if they do not."""
    if isinstance(wanted, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(wanted):
            return "another number of results"
        return next((reason for pair in zip(found, wanted) if pair[0] is not None and (reason := compare(*pair))), None)
    if not isinstance(wanted, torch.Tensor):
        same = found == wanted or (wanted != wanted and found != found)
        return None if same and type(found) is type(wanted) else f"{found} for {wanted}"
    if not isinstance(found, torch.Tensor):
        return "no tensor"
    if found.shape != wanted.shape:
        return f"shape {tuple(found.shape)} for {tuple(wanted.shape)}"
    if found.dtype != wanted.dtype:
        return f"dtype {found.dtype} for {wanted.dtype}"
    rtol, atol = TOLERANCES.get(wanted.dtype, (0, 0))
    try:
        found, wanted = found.cpu(), wanted.resolve_conj().resolve_neg().cpu()
        torch.testing.assert_close(found, wanted, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        return "values: " + " ".join(str(error).split())[:150]
    return None


def specials(op, dtype, device):
    """Returns samples of special values of operations of one and two operands."""
    kind = type(op).__name__
    if kind not in ("UnaryUfuncInfo", "BinaryUfuncInfo") or dtype == torch.int64:
        return
    values = torch.tensor(SPECIAL, dtype=torch.float64).to(dtype).to(device)
    if dtype.is_complex:
        # Infinities and NaN in one part have other results in every library.
        values = torch.tensor([0, 1, -1, 1j, -1j, 0.5 - 2j, 3 + 4j], dtype=dtype, device=device)
    yield (values,) if kind == "UnaryUfuncInfo" else (values[:, None], values[None, :])


def samples(op, dtype, device):
    for arguments in specials(op, dtype, device):
        yield arguments, {}
    for number, sample in enumerate(op.sample_inputs(device, dtype, requires_grad=False)):
        if number >= MAX_SAMPLES:
            return
        yield (sample.input, *sample.args), sample.kwargs


def outcome(op, call, dtype, arguments, keywords):
    """Returns how a sample ended, and why if it did not pass; None if PyTorch refuses the sample itself."""
    try:
        wanted = op.op(*arguments, **keywords)
    except Exception:
        return None
    try:
        found = to_torch(call(*map(to_own, arguments), **{key: to_own(value) for key, value in keywords.items()}))
        reason = compare(found, wanted)
    except NotOffered as error:
        return "not offered", str(error)
    except sv.DTypeError as error:
        # The operation has not this dtype, which docs/tensor-methods.md says.
        return "not offered", str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    else:
        if reason:
            # The explanations compare with PyTorch's own functions.
            found, wanted, arguments = on_cpu(found), on_cpu(wanted), on_cpu(arguments)
            keywords = {key: on_cpu(value) for key, value in keywords.items()}
        try:
            if reason and not choices_differ(op.name, arguments, keywords, found, wanted, compare):
                reason = None
            if reason and reason.startswith("values") and (meant := left_open(op.name, arguments, keywords, found, wanted)):
                return "explained", meant
            if reason and reason.startswith("values") and is_nearer(op, arguments, keywords, found, wanted):
                return "explained", "nearer to the result in 64 bits than PyTorch's"
        except Exception as error:
            reason += f"; its explanation ended with {type(error).__name__}: {error}"
    if reason and (meant := explanation(op.name, dtype, reason)):
        return "explained", meant
    return ("failed", reason) if reason else ("passed", None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--verbose", action="store_true", help="print each failure")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    totals, reasons, offered, missing = collections.Counter(), collections.defaultdict(collections.Counter), set(), []
    table = collections.defaultdict(collections.Counter)
    for op in op_db:
        if options.names and op.name not in options.names:
            continue
        call = NAMES.get(op.name)
        if call is None:
            missing.append(op.name)
            continue
        offered.add(op.name)
        for name, dtype in DTYPES.items():
            if dtype not in op.supported_dtypes(torch.device(options.device).type):
                continue
            for arguments, keywords in samples(op, dtype, options.device):
                ended = outcome(op, call, name, arguments, keywords)
                if ended is None:
                    continue
                kind, reason = ended
                table[op.name][kind] += 1
                if reason:
                    reasons[op.name][f"{name}: {reason}" if kind == "failed" else f"{kind}: {reason}"] += 1
                if kind == "failed" and options.verbose:
                    print(op.name, name, [getattr(x, "shape", x) for x in arguments], keywords, reason)
    print(f"{'operation':<28}" + "".join(f"{kind:>13}" for kind in OUTCOMES))
    for name in sorted(table):
        row = table[name]
        totals.update(row)
        print(f"{name:<28}" + "".join(f"{row[kind]:>13}" for kind in OUTCOMES))
        for reason, count in reasons[name].most_common(8):
            print(f"    {count} x {reason[:170]}")
    print(f"{len(offered)} operations on {options.device}: " + ", ".join(f"{totals[kind]} {kind}" for kind in OUTCOMES), end="; ")
    print(f"{len(set(missing))} operations of op_db are not of selvedge")
    if options.verbose:
        print(*sorted(set(missing)))
    return 1 if totals["failed"] or not totals["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
