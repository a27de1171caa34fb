//! Runs of training: the loss falls, runs follow from their options bit for bit, and continue from checkpoints.

use std::collections::BTreeMap;

use selvedge::nn::{
    Batch, Batches, ByteTokenizer, CharTokenizer, GptConfig, Module, Split, TextFile, TokenFiles,
    TokenFormat, TokenWriter, TokenizedText, Trainer, TrainerOptions, Variable,
};
use selvedge::{DType, Device, Error, Result, Tensor};

const TEXT: &str = "it was the best of times, it was the worst of times, it was the age of wisdom, it was the age of \
     foolishness, it was the epoch of belief, it was the epoch of incredulity, ";

fn config(vocab_size: usize) -> GptConfig {
    GptConfig { layers: 1, width: 16, heads: 2, context: 16, ..GptConfig::tiny(vocab_size) }
}

fn options() -> TrainerOptions {
    TrainerOptions { steps: 40, batch: 4, warmup_steps: 4, learning_rate: 1e-2, ..TrainerOptions::default() }
}

fn text() -> TextFile {
    TextFile::from_bytes(TEXT.repeat(3))
}

fn trainer(config: GptConfig, options: TrainerOptions) -> Result<Trainer> {
    Trainer::new(config, text(), &CharTokenizer::from_text(text())?, options, &Device::cpu())
}

fn vocab_size() -> Result<usize> {
    Ok(CharTokenizer::from_text(TEXT)?.vocabulary().len())
}

fn bits(trainer: &Trainer) -> Result<Vec<Vec<u8>>> {
    trainer
        .model()
        .state_dict()
        .values()
        .map(|tensor| tensor.to_bytes().map(|bytes| bytes.to_vec()))
        .collect()
}

#[test]
fn the_loss_falls_below_the_entropy_of_single_ids() -> Result<()> {
    let mut trainer = trainer(config(vocab_size()?), options())?;
    let first = trainer.evaluate()?;
    assert!((first - (vocab_size()? as f64).ln()).abs() < 0.2, "{first}");
    let mut last = 0.0;
    for step in 1..=40 {
        let report = trainer.step()?;
        assert_eq!((report.step, trainer.step_count()), (step, step));
        assert!(report.grad_norm.is_some_and(|norm| norm > 0.0) && report.learning_rate <= 1e-2);
        last = report.loss;
    }
    let entropy = trainer.text().unigram_entropy();
    assert!(last < entropy && trainer.evaluate()? < entropy, "{last}, {entropy}");
    Ok(())
}

#[test]
fn a_run_that_continues_has_the_bits_of_one_that_was_not_stopped() -> Result<()> {
    let config = GptConfig { dropout: 0.1, ..config(vocab_size()?) };
    let options = TrainerOptions { accumulation: 2, ..options() };
    let (mut whole, mut first, mut second) =
        (trainer(config, options)?, trainer(config, options)?, trainer(config, options)?);
    let losses: Vec<f64> = (0..6).map(|_| whole.step().map(|report| report.loss)).collect::<Result<_>>()?;
    for loss in &losses[..3] {
        assert_eq!(first.step()?.loss, *loss);
    }
    // An evaluation draws nothing from the generators of the run.
    first.evaluate()?;
    second.resume(&first.checkpoint()?, false)?;
    for loss in &losses[3..] {
        assert_eq!(second.step()?.loss, *loss);
    }
    assert_eq!(bits(&whole)?, bits(&second)?);
    let other = trainer(config, TrainerOptions { seed: 2, ..options })?.step()?.loss;
    assert_ne!(other, losses[0]);
    Ok(())
}

#[test]
fn a_run_in_bf16_has_masters_of_f32_and_a_loss_near_that_of_f32() -> Result<()> {
    let plain = config(vocab_size()?);
    let narrow = GptConfig { compute_dtype: Some(DType::BF16), ..plain };
    let (mut f32_run, mut run, mut second) =
        (trainer(plain, options())?, trainer(narrow, options())?, trainer(narrow, options())?);
    // One run, and one that stops at half and continues.
    let mut last = [0.0; 2];
    for step in 1..=40 {
        let found = run.step()?.loss;
        last = [f32_run.step()?.loss, found];
        let other = if step == 21 {
            let checkpoint = second.checkpoint()?;
            let tensors = checkpoint.parameters.values().chain(checkpoint.optimizer.values());
            assert!(tensors.filter(|tensor| tensor.rank() > 0).all(|tensor| tensor.dtype() == DType::F32));
            second = trainer(narrow, options())?;
            second.resume(&checkpoint, false)?;
            second.step()?.loss
        } else {
            second.step()?.loss
        };
        assert_eq!(found.to_bits(), other.to_bits(), "step {step}");
    }
    assert_eq!(bits(&run)?, bits(&second)?);
    let ids = Tensor::new([[0i64, 1], [2, 3]], &Device::cpu())?;
    assert_eq!(run.model().forward(&Variable::new(ids.clone()))?.dtype(), DType::BF16);
    assert_eq!(run.model().loss(&Batch { inputs: ids.clone(), targets: ids })?.dtype(), DType::F32);
    let [of_f32, of_bf16] = last;
    assert!(of_bf16 != of_f32 && (of_bf16 - of_f32).abs() < 0.05, "{of_bf16} in bf16, {of_f32} in f32");
    let [of_f32, of_bf16] = [f32_run.evaluate()?, run.evaluate()?];
    assert!((of_bf16 - of_f32).abs() < 0.05, "{of_bf16} in bf16, {of_f32} in f32");
    Ok(())
}

#[test]
fn accumulated_batches_are_averaged() -> Result<()> {
    // Both steps read the same windows: batches 0 and 1 of 2 rows draw what one batch of 4 rows does.
    let options = TrainerOptions { steps: 1, warmup_steps: 0, max_norm: None, ..options() };
    let mut two = trainer(config(vocab_size()?), TrainerOptions { batch: 2, accumulation: 2, ..options })?;
    let mut one = trainer(config(vocab_size()?), TrainerOptions { batch: 4, ..options })?;
    let (two, one) = (two.step()?.loss, one.step()?.loss);
    assert!((two - one).abs() < 1e-5, "{two}, {one}");
    Ok(())
}

#[test]
fn bad_input_is_an_error_that_names_both_sides() -> Result<()> {
    let size = vocab_size()?;
    let fails = |result: Result<()>, parts: &[&str]| {
        let Err(error @ Error::InvalidArgument { .. }) = &result else {
            panic!("{result:?} in place of an invalid argument about {parts:?}");
        };
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}: wanted {parts:?}");
    };
    let new = |options| trainer(config(size), options).map(drop);
    fails(new(TrainerOptions { batch: 0, ..options() }), &["batch = 0"]);
    fails(new(TrainerOptions { accumulation: 0, ..options() }), &["accumulation = 0"]);
    for (max_norm, found) in [(f64::NAN, "max_norm = NaN"), (-1.0, "max_norm = -1")] {
        fails(new(TrainerOptions { max_norm: Some(max_norm), ..options() }), &[found]);
    }
    fails(new(TrainerOptions { learning_rate: f64::NAN, ..options() }), &["learning_rate = NaN"]);
    fails(new(TrainerOptions { context: Some(17), ..options() }), &["17", "16"]);
    fails(trainer(GptConfig { context: 1000, ..config(size) }, options()).map(drop), &["1001"]);
    fails(trainer(config(size - 1), options()).map(drop), &["tokenizer"]);

    let wide = GptConfig { compute_dtype: Some(DType::F64), ..config(size) };
    fails(trainer(wide, options()).map(drop), &["compute_dtype = f64", "bf16, f16"]);

    let mut run = trainer(config(size), options())?;
    run.step()?;
    let checkpoint = run.checkpoint()?;
    let resume = |trainer: Result<Trainer>, any_text| trainer?.resume(&checkpoint, any_text);
    fails(resume(trainer(GptConfig { layers: 2, ..config(size) }, options()), false), &["n_layer"]);
    let narrow = GptConfig { compute_dtype: Some(DType::BF16), ..config(size) };
    fails(resume(trainer(narrow, options()), false), &[r#""compute_dtype":"bf16""#]);
    fails(resume(trainer(config(size), TrainerOptions { seed: 9, ..options() }), false), &["a seed 1", "9"]);
    let other = || {
        let other = TextFile::from_bytes(TEXT.repeat(4));
        Trainer::new(config(size), other, &CharTokenizer::from_text(TEXT)?, options(), &Device::cpu())
    };
    fails(resume(other(), false), &["hash"]);
    resume(other(), true)?;
    let bytes = Trainer::new(config(256), text(), &ByteTokenizer, options(), &Device::cpu());
    fails(resume(bytes, false), &["vocab_size"]);
    Ok(())
}

#[test]
fn a_loss_that_is_not_finite_stops_the_run_before_the_parameters_change() -> Result<()> {
    let mut run = trainer(config(vocab_size()?), options())?;
    let weights = run.model().state_dict();
    let mut broken = weights.clone();
    let name = "transformer.ln_f.weight";
    broken.insert(name.to_owned(), (&weights[name] * f64::INFINITY)?);
    run.model_mut().load_state_dict(&broken)?;
    let before = bits(&run)?;
    let error = run.step().expect_err("the loss is NaN").to_string();
    assert!(error.contains("step 1"), "{error}");
    assert_eq!((bits(&run)?, run.step_count()), (before, 0));
    Ok(())
}

/// The ids of a file without a tokenizer.
fn ids(folder: &std::path::Path) -> Result<TokenizedText> {
    let path = folder.join("ids.bin");
    let mut writer = TokenWriter::create(&path, TokenFormat::Llmc, DType::U16, None)?;
    writer.write(&(0..700u32).map(|at| at * 13 % 83).collect::<Vec<_>>())?;
    writer.finish()?;
    TokenizedText::from_files(TokenFiles::read([&path])?)
}

#[test]
fn a_run_on_token_files_takes_shuffled_windows_and_continues_to_the_same_bits() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let (text, config) = (ids(folder.path())?, config(83));
    let options = TrainerOptions { is_shuffled: true, ..options() };
    let trainer = |options| Trainer::from_tokens(config, text.clone(), None, options, &Device::cpu());
    let (mut whole, mut first, mut second) = (trainer(options)?, trainer(options)?, trainer(options)?);
    let batch =
        Batches::new(&text, Split::Training, 4, 16, options.seed)?.shuffled().batch(0, &Device::cpu())?;
    let wanted = whole.model().loss(&batch)?.tensor().item::<f32>()?;
    let losses: Vec<f64> = (0..12).map(|_| whole.step().map(|report| report.loss)).collect::<Result<_>>()?;
    assert_eq!(losses[0], f64::from(wanted));
    // An epoch has nine batches, so the run continues in the second one.
    for loss in &losses[..10] {
        assert_eq!(first.step()?.loss, *loss);
    }
    let checkpoint = first.checkpoint()?;
    assert_eq!(checkpoint.info.tokenizer, serde_json::Value::Null);
    assert_eq!(checkpoint.info.training["is_shuffled"], true);
    second.resume(&checkpoint, false)?;
    for loss in &losses[10..] {
        assert_eq!(second.step()?.loss, *loss);
    }
    assert_eq!(bits(&whole)?, bits(&second)?);
    let random = TrainerOptions { is_shuffled: false, ..options };
    assert_ne!(trainer(random)?.step()?.loss, losses[0]);
    let small = GptConfig { vocab_size: 82, ..config };
    let error = Trainer::from_tokens(small, text, None, options, &Device::cpu()).map(drop).unwrap_err();
    assert!(error.to_string().contains("the id 82") && error.to_string().contains("ids below 82"), "{error}");
    Ok(())
}

#[test]
fn weight_decay_changes_matrices_alone() -> Result<()> {
    let after = |weight_decay| -> Result<BTreeMap<String, Tensor>> {
        let mut run = trainer(config(vocab_size()?), TrainerOptions { weight_decay, ..options() })?;
        run.step()?;
        Ok(run.model().state_dict())
    };
    let (with, without) = (after(0.5)?, after(0.0)?);
    let mut ranks = [0; 2];
    for (name, tensor) in with {
        let is_matrix = tensor.rank() > 1;
        ranks[usize::from(is_matrix)] += 1;
        assert_eq!(tensor.to_bytes()? != without[&name].to_bytes()?, is_matrix, "{name}");
    }
    assert!(ranks.iter().all(|&count| count > 3), "{ranks:?}");
    Ok(())
}
