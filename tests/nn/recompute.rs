//! `Recompute`: the bits of losses, parameters and draws are those of a run that saves all activations.

use selvedge::nn::{
    Batch, ByteTokenizer, Decoder, Gpt, GptConfig, LanguageModel, LoraOptions, LossScale, Module, Recompute,
    TextFile, TokenizedText, Trainer, TrainerOptions, Variable,
};
use selvedge::{DType, Device, Error, Result, Tensor};

use crate::decoder_cases::{NAMES, unpacked};
use crate::decoder_training::{self, Ascii, bits, load};

const TEXT: &str = "it was the best of times, it was the worst of times, it was the age of wisdom, ";

fn config() -> GptConfig {
    GptConfig { layers: 2, width: 16, heads: 2, context: 16, dropout: 0.2, ..GptConfig::tiny(256) }
}

fn gpt_trainer(config: GptConfig, options: TrainerOptions) -> Result<Trainer> {
    Trainer::new(config, TextFile::from_bytes(TEXT.repeat(4)), &ByteTokenizer, options, &Device::cpu())
}

/// The bits of the losses of some steps, those of the parameters after them, and the place of the generator.
type Course = (Vec<u64>, Vec<(String, Vec<u8>)>, Option<u64>);

fn course<M: LanguageModel>(mut trainer: Trainer<M>) -> Result<Course> {
    let mut losses = Vec::new();
    for _ in 0..2 {
        losses.push(trainer.step()?.loss.to_bits());
    }
    losses.push(trainer.evaluate()?.to_bits());
    let place = trainer.model().generator().map(|generator| generator.state().offset);
    Ok((losses, bits(trainer.model())?, place))
}

#[test]
fn steps_of_a_gpt_with_dropout_have_the_same_bits() -> Result<()> {
    let f16 = (Some(DType::F16), Some(LossScale::dynamic()), true);
    for (compute_dtype, loss_scale, has_tied_head) in
        [(None, None, false), (Some(DType::BF16), None, true), f16]
    {
        let config = GptConfig { compute_dtype, has_tied_head, ..config() };
        let options = TrainerOptions {
            steps: 4,
            batch: 3,
            accumulation: 2,
            loss_scale,
            evaluation_batches: 1,
            ..TrainerOptions::default()
        };
        let of = |recompute| course(gpt_trainer(config, TrainerOptions { recompute, ..options })?);
        let wanted = of(Recompute::Nothing)?;
        assert!(wanted.2.is_some_and(|place| place > 0), "dropout draws");
        for recompute in [Recompute::FeedForward, Recompute::Blocks] {
            assert!(of(recompute)? == wanted, "{recompute}, {compute_dtype:?}, tied: {has_tied_head}");
        }
    }
    Ok(())
}

#[test]
fn steps_of_each_decoder_have_the_same_bits() -> Result<()> {
    let cases = unpacked();
    let mut cases_of_dtypes: Vec<_> = NAMES.into_iter().map(|name| (name, None, false)).collect();
    cases_of_dtypes.extend([("gemma2", Some(DType::BF16), false), ("llama3", Some(DType::BF16), true)]);
    for (name, compute_dtype, has_lora) in cases_of_dtypes {
        let of = |recompute| {
            let mut model = load(&cases.path().join(name), compute_dtype)?;
            if has_lora {
                model.add_lora(&LoraOptions::new(2), 1)?;
            }
            let options = TrainerOptions { recompute, ..decoder_training::options() };
            course(Trainer::with_model(model, decoder_training::text()?, Some(&Ascii), options)?)
        };
        let wanted = of(Recompute::Nothing)?;
        for recompute in [Recompute::FeedForward, Recompute::Blocks] {
            assert!(of(recompute)? == wanted, "{name}, {recompute}, {compute_dtype:?}, lora: {has_lora}");
        }
    }
    Ok(())
}

#[test]
fn a_choice_may_change_between_steps() -> Result<()> {
    let options = TrainerOptions { steps: 6, batch: 2, ..TrainerOptions::default() };
    let (mut plain, mut changing) = (gpt_trainer(config(), options)?, gpt_trainer(config(), options)?);
    for recompute in [Recompute::ALL, Recompute::ALL].concat() {
        changing.set_recompute(recompute);
        assert_eq!(changing.options().recompute, recompute);
        assert_eq!(changing.step()?.loss.to_bits(), plain.step()?.loss.to_bits(), "{recompute}");
    }
    // A checkpoint stores the choice, and a run with another one continues from it.
    let checkpoint = changing.checkpoint()?;
    assert_eq!(checkpoint.info.training["recompute"], "blocks");
    let mut resumed = gpt_trainer(config(), options)?;
    resumed.resume(&checkpoint, false)?;
    assert_eq!(bits(resumed.model())?, bits(plain.model())?);
    let mut older = serde_json::json!(options);
    older.as_object_mut().expect("an object").remove("recompute");
    let older: TrainerOptions =
        serde_json::from_value(older).expect("options of a version without the choice");
    assert_eq!(older.recompute, Recompute::Nothing);
    Ok(())
}

fn batch() -> Result<Batch> {
    let inputs = Tensor::new([[1i64, 5, 2, 7], [3, 90, 4, 8]], &Device::cpu())?;
    Ok(Batch { targets: inputs.clone(), inputs })
}

#[test]
fn a_recomputation_has_the_mode_of_its_forward() -> Result<()> {
    let gradients = |recompute| -> Result<Vec<Vec<u8>>> {
        let mut model = Gpt::from_seed(config(), 1, &Device::cpu())?;
        let loss = model.loss_with_recompute(&batch()?, recompute)?;
        model.eval();
        loss.backward()?;
        model.parameters().iter().map(|x| x.grad().expect("a gradient").to_bytes()).collect()
    };
    let wanted = gradients(Recompute::Nothing)?;
    for recompute in [Recompute::FeedForward, Recompute::Blocks] {
        assert!(gradients(recompute)? == wanted, "{recompute}");
    }
    Ok(())
}

/// A model without a choice of its own.
struct Plain(Decoder);

impl Module for Plain {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        self.0.forward(input)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        self.0.named_parameters()
    }
}

impl LanguageModel for Plain {
    fn loss(&self, batch: &Batch) -> Result<Variable> {
        self.0.loss(batch)
    }

    fn vocab_size(&self) -> usize {
        LanguageModel::vocab_size(&self.0)
    }

    fn context(&self) -> usize {
        LanguageModel::context(&self.0)
    }

    fn to_json(&self) -> serde_json::Value {
        self.0.to_json()
    }
}

#[test]
fn a_model_without_recomputation_refuses_all_but_nothing() -> Result<()> {
    let cases = unpacked();
    let options = TrainerOptions { recompute: Recompute::Blocks, ..decoder_training::options() };
    let model = Plain(load(&cases.path().join("llama2"), None)?);
    let text: TokenizedText = decoder_training::text()?;
    let mut trainer = Trainer::with_model(model, text, Some(&Ascii), options)?;
    let error = trainer.step().expect_err("no recomputation");
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    assert!(error.to_string().contains("recompute = blocks"), "{error}");
    trainer.set_recompute(Recompute::Nothing);
    trainer.step()?;
    Ok(())
}

#[test]
fn names_are_read_as_they_are_written() {
    for recompute in Recompute::ALL {
        assert_eq!(recompute.to_string().parse::<Recompute>().expect("a name"), recompute);
        assert_eq!(serde_json::json!(recompute), recompute.to_string());
    }
    let error = "block".parse::<Recompute>().expect_err("no such choice").to_string();
    assert!(error.contains("'block'") && error.contains("nothing, feed-forward or blocks"), "{error}");
}
