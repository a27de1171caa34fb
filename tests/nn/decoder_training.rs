//! Training of decoders from loaded weights: losses against those of the logits, runs that continue, and folders of the result.

use std::path::Path;

use selvedge::nn::{
    Batch, Checkpoint, CrossEntropyOptions, Decoder, DecoderOptions, Gpt, GptConfig, LanguageModel,
    LossScale, Module, TextFile, TokenizedText, Tokenizer, Trainer, TrainerOptions, Variable, cross_entropy,
};
use selvedge::{DType, Device, Error, Result, Tensor};

use crate::decoder_cases::{NAMES, unpacked};

const TEXT: &str = "it was the best of times, it was the worst of times, it was the age of wisdom, ";

/// Printable ASCII less a space as ids, which all cases have.
#[derive(Debug)]
pub struct Ascii;

impl Tokenizer for Ascii {
    fn vocab_size(&self) -> usize {
        96
    }

    fn encode_bytes(&self, text: &[u8]) -> Result<Vec<u32>> {
        Ok(text.iter().map(|&byte| u32::from(byte) - 32).collect())
    }

    fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>> {
        Ok(ids.iter().map(|&id| id as u8 + 32).collect())
    }

    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "kind": "ascii" })
    }
}

pub fn options() -> TrainerOptions {
    TrainerOptions {
        steps: 12,
        batch: 2,
        context: Some(16),
        warmup_steps: 2,
        learning_rate: 3e-3,
        evaluation_batches: 2,
        ..TrainerOptions::default()
    }
}

pub fn text() -> Result<TokenizedText> {
    TokenizedText::new(TextFile::from_bytes(TEXT.repeat(12)), &Ascii)
}

pub fn load(folder: &Path, compute_dtype: Option<DType>) -> Result<Decoder> {
    let options = DecoderOptions { dtype: Some(DType::F32), compute_dtype };
    Decoder::load(folder, &Device::cpu(), &options)
}

fn trainer(model: Decoder, options: TrainerOptions) -> Result<Trainer<Decoder>> {
    Trainer::with_model(model, text()?, Some(&Ascii), options)
}

pub fn bits(model: &dyn Module) -> Result<Vec<(String, Vec<u8>)>> {
    let bytes = |(name, tensor): (String, Tensor)| Ok((name, tensor.to_bytes()?.to_vec()));
    model.state_dict().into_iter().map(bytes).collect()
}

#[test]
fn the_loss_and_its_gradients_are_those_of_the_logits() -> Result<()> {
    let cases = unpacked();
    let device = Device::cpu();
    let inputs = Tensor::new([[1i64, 5, 2, 7, 9], [3, 90, 4, 4, 8]], &device)?;
    let targets = Tensor::new([[5i64, 2, 7, 9, 11], [90, 4, 4, 8, 95]], &device)?;
    for name in NAMES {
        let options = DecoderOptions { dtype: Some(DType::F64), ..DecoderOptions::default() };
        let model = Decoder::load(cases.path().join(name), &device, &options)?;
        let logits = model.forward(&Variable::new(inputs.clone()))?.reshape(&[10, -1])?;
        let wanted = cross_entropy(&logits, &targets.reshape(&[-1])?, CrossEntropyOptions::default())?;
        wanted.backward()?;
        let gradients: Vec<_> = model.parameters().iter().map(Variable::take_grad).collect();
        let loss = model.loss(&Batch { inputs: inputs.clone(), targets: targets.clone() })?;
        let [found, wanted] = [&loss, &wanted].map(|loss| loss.tensor().item::<f64>());
        let (found, wanted) = (found?, wanted?);
        assert!((found - wanted).abs() < 1e-12 * wanted, "{name}: {found}, wanted {wanted}");
        loss.backward()?;
        for ((parameter, x), wanted) in model.named_parameters().into_iter().zip(gradients) {
            let (found, wanted) = (x.grad().expect("a gradient"), wanted.expect("a gradient"));
            let far = (&found - &wanted)?.abs()?.max_all()?.item::<f64>()?;
            assert!(far < 1e-12, "{name}: {parameter}: {far}");
        }
    }
    Ok(())
}

#[test]
fn training_lowers_the_loss_of_each_family() -> Result<()> {
    let cases = unpacked();
    for name in NAMES {
        let options = TrainerOptions { max_norm: Some(1.0), accumulation: 2, ..options() };
        let mut run = trainer(load(&cases.path().join(name), None)?, options)?;
        let before = run.evaluate()?;
        let first = run.step()?;
        assert!(first.grad_norm.is_some_and(|norm| norm > 0.0), "{name}");
        (1..12).try_for_each(|_| run.step().map(drop))?;
        let after = run.evaluate()?;
        assert!(after < before - 0.1, "{name}: {before} to {after}");
    }
    Ok(())
}

#[test]
fn a_run_that_continues_from_its_checkpoint_has_the_bits_of_one_that_was_not_stopped() -> Result<()> {
    let cases = unpacked();
    for (name, compute_dtype) in
        [("llama2", None), ("gpt2", Some(DType::BF16)), ("phi3", Some(DType::F16)), ("gemma2", None)]
    {
        let folder = cases.path().join(name);
        let loss_scale = (compute_dtype == Some(DType::F16)).then(LossScale::dynamic);
        let options = TrainerOptions { accumulation: 2, loss_scale, ..options() };
        let new = || trainer(load(&folder, compute_dtype)?, options);
        let (mut whole, mut first) = (new()?, new()?);
        let losses: Vec<f64> =
            (0..6).map(|_| whole.step().map(|report| report.loss)).collect::<Result<_>>()?;
        (0..3).try_for_each(|_| first.step().map(drop))?;
        first.evaluate()?;
        let checkpoint = first.checkpoint()?;
        let tensors = checkpoint.parameters.values();
        assert!(tensors.clone().all(|tensor| tensor.dtype() == DType::F32), "{name}");
        // The folder of the base is not needed.
        let Checkpoint { info, parameters, .. } = &checkpoint;
        let model = Decoder::from_checkpoint(&info.model, parameters, &Device::cpu())?;
        assert_eq!(model.compute_dtype(), compute_dtype, "{name}");
        assert_eq!(bits(&model)?, bits(first.model())?, "{name}");
        let mut second = trainer(model, options)?;
        second.resume(&checkpoint, false)?;
        for loss in &losses[3..] {
            assert_eq!(second.step()?.loss, *loss, "{name}");
        }
        assert_eq!(bits(whole.model())?, bits(second.model())?, "{name}");
    }
    Ok(())
}

#[test]
fn a_trained_decoder_is_saved_as_a_folder_that_loads() -> Result<()> {
    let cases = unpacked();
    let out = cases.path().join("trained");
    for name in ["gpt2", "qwen3"] {
        let folder = cases.path().join(name);
        let mut run = trainer(load(&folder, None)?, options())?;
        let before = bits(run.model())?;
        run.step()?;
        run.model().save(&out)?;
        let loaded = load(&out, None)?;
        assert_eq!(bits(&loaded)?, bits(run.model())?, "{name}");
        let changed = bits(&loaded)?.iter().zip(&before).filter(|(found, before)| found != before).count();
        assert_eq!(changed, before.len(), "{name}");
    }
    Ok(())
}

#[test]
fn bad_input_is_an_error_that_names_both_sides() -> Result<()> {
    let cases = unpacked();
    let folder = cases.path().join("llama2");
    let fails = |result: Result<()>, parts: &[&str]| {
        let error = result.expect_err("bad input");
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        let message = error.to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message} lacks one of {parts:?}");
    };
    let new = |options| trainer(load(&folder, None)?, options).map(drop);
    fails(new(TrainerOptions { context: Some(65), ..options() }), &["a context of 65", "64"]);
    fails(new(TrainerOptions { batch: 0, ..options() }), &["batch = 0"]);
    let large = TokenizedText::new(TextFile::from_bytes(vec![200; 900]), &Ascii)?;
    let run = Trainer::with_model(load(&folder, None)?, large, Some(&Ascii), options());
    fails(run.map(drop), &["the id 168", "below 128"]);
    let wide = selvedge::nn::ByteTokenizer;
    let run = Trainer::with_model(load(&folder, None)?, text()?, Some(&wide), options());
    fails(run.map(drop), &["a tokenizer of 256 ids", "128"]);

    // Checkpoints of other models.
    let mut run = trainer(load(&folder, None)?, options())?;
    let checkpoint = run.checkpoint()?;
    let mut other = trainer(load(&cases.path().join("mistral"), None)?, options())?;
    fails(other.resume(&checkpoint, false), &["a model", "llama", "mistral"]);
    fails(
        trainer(load(&folder, Some(DType::BF16))?, options())?.resume(&checkpoint, false),
        &["a model", r#""compute_dtype":"bf16""#],
    );
    let mut parameters = checkpoint.parameters.clone();
    let norm = parameters.remove("model.norm.weight").expect("a norm");
    parameters.insert("model.other.weight".to_owned(), norm);
    let found = Decoder::from_checkpoint(&checkpoint.info.model, &parameters, &Device::cpu());
    fails(found.map(drop), &["'model.norm.weight' is missing", "'model.other.weight' is extra"]);
    let config = GptConfig { layers: 1, width: 8, heads: 2, context: 8, ..GptConfig::tiny(11) };
    let gpt = LanguageModel::to_json(&Gpt::from_seed(config, 1, &Device::cpu())?);
    let found = Decoder::from_checkpoint(&gpt, &checkpoint.parameters, &Device::cpu());
    fails(found.map(drop), &["another model", "'config'"]);
    run.step().map(drop)
}
