//! Fine-tuning of decoders on the fake driver: from its second step on, a step is a launch of one graph, with and without adapters.

use selvedge::DType;
use selvedge::nn::{
    ByteTokenizer, Decoder, DecoderConfig, Initializer, LoraOptions, Module, TextFile, TokenizedText,
    Trainer, TrainerOptions,
};
use selvedge::tensor::Device;

use super::support::{ChildOutcome, Fake, calls, check};
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

const GPT2: &str = r#"{"model_type": "gpt2", "vocab_size": 256, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}"#;
const GEMMA2: &str = r#"{"model_type": "gemma2", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 24,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "sliding_window": 8,
    "max_position_embeddings": 16, "rms_norm_eps": 1e-6, "rope_theta": 10000.0}"#;

/// Child: steps of two families, one with a soft cap.
pub fn child(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    for (config, dtype, rank) in
        [(GPT2, None, 0), (GPT2, Some(DType::BF16), 2), (GEMMA2, None, 2), (GEMMA2, Some(DType::BF16), 0)]
    {
        steps(fake, config, dtype, rank)?;
    }
    scenario::settle()?;
    let violations = fake.violations();
    check(violations.is_empty(), &violations.join("\n"))
}

fn steps(fake: &Fake, config: &str, dtype: Option<DType>, rank: usize) -> ChildOutcome {
    let device = Device::cuda(0)?;
    let initializer = Initializer::new(&device).with_seed(1);
    let initializer = dtype.into_iter().fold(initializer, Initializer::with_compute_dtype);
    let mut model = Decoder::new(DecoderConfig::from_json(config, None)?, &initializer)?;
    let weights = model.parameters();
    if rank > 0 {
        model.add_lora(&LoraOptions::new(rank), 1)?;
    }
    let text = TextFile::from_bytes("to be, or not to be, that is the question: ".repeat(9));
    let text = TokenizedText::new(text, &ByteTokenizer)?;
    let options = TrainerOptions { batch: 2, accumulation: 2, ..TrainerOptions::default() };
    let mut trainer = Trainer::with_model(model, text, Some(&ByteTokenizer), options)?;
    for number in 0..4 {
        let (launches, _) = calls(fake, "cuGraphLaunch", || trainer.step())?;
        let subject = format!("{config} in {dtype:?} with rank {rank}, step {number}");
        check(launches == u64::from(number > 0), &format!("{subject}: {launches} launches of a graph"))?;
        check(trainer.is_captured() == (number > 0), &subject)?;
    }
    // The weights under adapters have no gradients.
    let gradients = weights.iter().filter(|weight| weight.grad().is_some()).count();
    let wanted = if rank > 0 { 0 } else { weights.len() };
    check(gradients == wanted, &format!("{gradients} gradients of {} weights", weights.len()))
}

pub fn tests() -> Vec<Test> {
    vec![Test::new("fine_tuning::a_step_of_a_decoder_is_one_graph", || {
        children::must_succeed(&Variant::new(12040), "fine_tuning", &[], &[]).map(drop)
    })]
}
