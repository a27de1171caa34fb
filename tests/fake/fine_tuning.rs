//! Fine-tuning of decoders on the fake driver: a capture takes a whole step, with and without adapters.

use selvedge::DType;
use selvedge::nn::{
    AdamW, Batch, Decoder, DecoderConfig, Initializer, LoraOptions, Module, Optimizer, Parameters,
};
use selvedge::tensor::{Device, Tensor};

use super::support::{ChildOutcome, Fake, check};
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

const GPT2: &str =
    r#"{"model_type": "gpt2", "vocab_size": 11, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}"#;
const GEMMA2: &str = r#"{"model_type": "gemma2", "vocab_size": 11, "hidden_size": 16, "intermediate_size": 24,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "sliding_window": 8,
    "max_position_embeddings": 16, "rms_norm_eps": 1e-6, "rope_theta": 10000.0}"#;

/// Child: steps of two families, one with a soft cap.
pub fn child(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    for (config, dtype, rank) in
        [(GPT2, None, 0), (GPT2, Some(DType::BF16), 2), (GEMMA2, None, 2), (GEMMA2, Some(DType::BF16), 0)]
    {
        step(config, dtype, rank)?;
    }
    scenario::settle()?;
    let violations = fake.violations();
    check(violations.is_empty(), &violations.join("\n"))
}

fn step(config: &str, dtype: Option<DType>, rank: usize) -> ChildOutcome {
    let device = Device::cuda(0)?;
    let initializer = Initializer::new(&device).with_seed(1);
    let initializer = dtype.into_iter().fold(initializer, Initializer::with_compute_dtype);
    let mut model = Decoder::new(DecoderConfig::from_json(config, None)?, &initializer)?;
    let weights = model.named_parameters();
    if rank > 0 {
        model.add_lora(&LoraOptions::new(rank), 1)?;
    }
    let parameters = Parameters::new(&model)?;
    let mut optimizer = AdamW::new(parameters.variables(), 0.1)?.with_min_decay_rank(2);
    let inputs = Tensor::new([[1i64, 2, 3, 2], [0, 4, 4, 4]], &device)?;
    let batch = Batch { targets: inputs.clone(), inputs };
    // The fake computes nothing, so a backward that reads the number of an index's runs cannot run before the capture.
    model.loss(&batch)?;
    for parameter in parameters.variables() {
        parameter.backward_with(&parameter.tensor().zeros_like()?)?;
    }
    optimizer.advance()?;
    optimizer.apply()?;
    let stream = device.stream()?;
    let (graph, loss) = stream.capture(|_| {
        parameters.zero_grad();
        let loss = model.loss(&batch)?;
        loss.backward()?;
        parameters.clip_grad_norm(1.0)?;
        optimizer.apply()?;
        Ok(loss.tensor())
    })?;
    let graph = graph.instantiate()?;
    let subject = format!("{config} in {dtype:?} with rank {rank}");
    let bytes =
        || -> selvedge::Result<Vec<Vec<u8>>> { parameters.buffers().iter().map(Tensor::to_bytes).collect() };
    let before = bytes()?;
    optimizer.advance()?;
    graph.launch(&stream)?;
    check(bytes()? != before, &format!("{subject}: the launch wrote nothing"))?;
    check(loss.count() == 1 && loss.dtype() == DType::F32, &format!("{subject}: {loss:?}"))?;
    // The weights under adapters have no gradients.
    let gradients = weights.iter().filter(|(_, weight)| weight.grad().is_some()).count();
    let wanted = if rank > 0 { 0 } else { weights.len() };
    check(gradients == wanted, &format!("{subject}: {gradients} gradients of {} weights", weights.len()))
}

pub fn tests() -> Vec<Test> {
    vec![Test::new("fine_tuning::a_step_of_a_decoder_is_captured", || {
        children::must_succeed(&Variant::new(12040), "fine_tuning", &[], &[]).map(drop)
    })]
}
