//! Two runs of training against tests/data/training/reference.py, a program of NumPy in f64 that shares no code with this
//! crate. run.json there has the model and the options of both runs, losses.json what the program found.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use selvedge::nn::{Batches, CharTokenizer, GptConfig, Module, Split, TextFile, Trainer, TrainerOptions};
use selvedge::{DType, Device, Result, Tensor};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::common::repository;

/// The largest error of a loss over the loss: ten times the largest found. An eps of Adam of 1e-7 in place of 1e-8 changes the
/// losses by 4e-4, a decay of all parameters by 2e-2.
const LOSS_TOLERANCE: f64 = 1e-6;
/// The same for the norm of the gradients.
const NORM_TOLERANCE: f64 = 2e-5;

#[derive(Deserialize)]
struct Run {
    model: GptConfig,
    cases: BTreeMap<String, TrainerOptions>,
}

#[derive(Deserialize)]
struct Losses {
    losses: Vec<f64>,
    grad_norms: Vec<f64>,
}

fn file(name: &str) -> PathBuf {
    repository().join("tests/data/training").join(name)
}

fn read_json<T: DeserializeOwned>(name: &str) -> T {
    let text = fs::read_to_string(file(name)).expect("the file is in the repository");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn trainer(run: &Run, options: TrainerOptions) -> Result<Trainer> {
    let text = TextFile::read(file("text.txt"))?;
    let tokenizer = CharTokenizer::from_text(&text)?;
    Trainer::new(run.model, text, &tokenizer, options, &Device::cpu())
}

/// The parameters of a new run, and the ids of its batches as u8 of shape [batch, row, context + 1].
fn inputs(run: &Run) -> Result<(BTreeMap<String, Tensor>, Tensor)> {
    let device = Device::cpu();
    let all = || run.cases.values();
    let options = all().next().expect("a case");
    assert!(all().all(|other| (other.seed, other.batch) == (options.seed, options.batch)));
    let trainer = trainer(run, *options)?;
    let mut batches =
        Batches::new(trainer.text(), Split::Training, options.batch, run.model.context, options.seed)?;
    let count = all().map(|options| options.steps * options.accumulation as u64).max().unwrap_or(0);
    let mut ids = Vec::new();
    for _ in 0..count {
        let batch = batches.next_batch(&device)?;
        let last = batch.targets.narrow(1, run.model.context - 1, 1)?;
        ids.push(Tensor::cat(&[&batch.inputs, &last], 1)?.cast(DType::U8)?);
    }
    Ok((trainer.model().state_dict(), Tensor::stack(&ids.iter().collect::<Vec<_>>(), 0)?))
}

/// Writes what the program reads: `cargo test --all-features --test nn writes_the_inputs -- --ignored`, then
/// `python3 tests/data/training/reference.py`. Needed after a change of run.json, of the text, or of first weights.
#[test]
#[ignore = "writes files of the repository"]
fn writes_the_inputs_of_the_reference() -> Result<()> {
    let (weights, ids) = inputs(&read_json("run.json"))?;
    let weights: Vec<(&str, &Tensor)> =
        weights.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    Tensor::write_safetensors(file("weights.safetensors"), &weights, &[])?;
    Tensor::write_safetensors(file("batches.safetensors"), &[("ids", &ids)], &[])
}

#[test]
fn the_reference_starts_from_the_weights_and_batches_of_a_run() -> Result<()> {
    let (weights, ids) = inputs(&read_json("run.json"))?;
    let read = |name| -> Result<BTreeMap<String, Tensor>> {
        Ok(Tensor::read_safetensors(file(name), &Device::cpu())?.into_iter().collect())
    };
    let committed = read("weights.safetensors")?;
    assert_eq!(committed.keys().collect::<Vec<_>>(), weights.keys().collect::<Vec<_>>());
    for (name, tensor) in &weights {
        assert_eq!(tensor.shape(), committed[name].shape(), "{name}");
        assert!(tensor.to_bytes()? == committed[name].to_bytes()?, "{name}");
    }
    assert_eq!(ids.to_vec::<u8>()?, read("batches.safetensors")?["ids"].to_vec::<u8>()?);
    Ok(())
}

#[test]
fn losses_and_norms_of_fifty_steps_are_those_of_the_reference() -> Result<()> {
    let run: Run = read_json("run.json");
    let mut wanted: BTreeMap<String, Losses> = read_json("losses.json");
    let mut steps_taken = 0;
    for (case, options) in &run.cases {
        let Losses { losses, grad_norms } = wanted.remove(case).unwrap_or_else(|| panic!("no '{case}'"));
        let steps = options.steps as usize;
        assert_eq!((losses.len(), grad_norms.len()), (steps, steps), "{case}");
        steps_taken = steps_taken.max(steps);
        let mut trainer = trainer(&run, *options)?;
        let (mut far_loss, mut far_norm) = (0f64, 0f64);
        for (loss, norm) in losses.into_iter().zip(grad_norms) {
            let report = trainer.step()?;
            let found = report.grad_norm.expect("gradients are clipped");
            let (loss_error, norm_error) = ((report.loss / loss - 1.0).abs(), (found / norm - 1.0).abs());
            let at = format!("{case}: {report:?}, wanted a loss of {loss} and a norm of {norm}");
            assert!(loss_error < LOSS_TOLERANCE && norm_error < NORM_TOLERANCE, "{at}");
            (far_loss, far_norm) = (far_loss.max(loss_error), far_norm.max(norm_error));
        }
        println!("{case}: losses within {far_loss:.1e}, norms within {far_norm:.1e}");
    }
    assert_eq!(steps_taken, 50);
    assert!(wanted.is_empty(), "cases without options: {:?}", wanted.keys());
    Ok(())
}
