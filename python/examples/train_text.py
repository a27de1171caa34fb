"""Trains `nn.Gpt` on a text: `python train_text.py [steps [folder]]`. It writes the loss, stores a checkpoint, and continues from it."""

import pathlib
import sys
import tempfile

from selvedge import nn

TEXT = """Over and under, the shuttle goes through;
over and under, the green and the blue.
Under and over, the edge holds it tight:
the selvedge is finished and never unravels. """ * 8


def main(steps, folder):
    model = nn.Gpt(nn.GptConfig(256, context=32, width=64, layers=2, heads=4), seed=1)
    trainer = nn.Trainer(model, TEXT, steps=steps, batch=8, lr=3e-3, min_lr=3e-4, warmup_steps=10)

    def report(step):
        if step.step % 20 == 0 or step.step == steps:
            print(f"step {step.step}: loss {step.loss:.3f}, gradient norm {step.grad_norm:.3f}")
        if step.step == steps // 2:
            trainer.save(folder / "checkpoint")

    trainer.run(report)
    resumed = nn.Trainer.load(folder / "checkpoint", TEXT)
    resumed.run()
    trained, again = model.state_dict(), resumed.model.state_dict()
    print("the resumed run has the same bits:", all(trained[name].equal(again[name]) for name in trained))
    print(bytes([*b"Over", *model.eval().generate(list(b"Over"), max_new_ids=60)]).decode(errors="replace"))


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    if len(sys.argv) > 2:
        main(count, pathlib.Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(count, pathlib.Path(temporary))
