//! New ids of decoder models on the CPU, in turns with PyTorch on the same cores.

use std::thread;
use std::time::Instant;

use selvedge::nn::{Decoder, DecoderConfig, Initializer};
use selvedge::tensor::Device;
use serde_json::json;

use crate::Options;
use crate::decoding::{GPT2, milliseconds};
use crate::harness::machine::Recorder;
use crate::harness::program::is_wanted;
use crate::harness::pytorch_on_cpu::PyTorchOnCpu;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

/// A Llama of 124 M parameters.
const LLAMA: &str = r#"{"model_type": "llama", "vocab_size": 32000, "hidden_size": 768, "intermediate_size": 2048,
    "num_hidden_layers": 12, "num_attention_heads": 12, "num_key_value_heads": 4, "hidden_act": "silu",
    "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
    "eos_token_id": null}"#;

/// The positions of each prompt.
const PROMPT: usize = 16;
/// The elements of the memory whose sum bounds the speed.
const ELEMENTS: usize = 125_000_000;

/// The name of a row, the model's name in pytorch_on_cpu.py, its configuration and the sequences.
const CASES: [(&str, &str, &str, usize); 4] = [
    ("GPT-2 124M, batch 1", "gpt2", GPT2, 1),
    ("GPT-2 124M, batch 8", "gpt2", GPT2, 8),
    ("Llama 124M, batch 1", "llama", LLAMA, 1),
    ("Llama 124M, batch 8", "llama", LLAMA, 8),
];

/// Every figure.
pub fn measure(options: &Options) -> Result<(), Failure> {
    let ids = match &options.file {
        Some(text) => text.to_string_lossy().parse::<usize>()?.max(1),
        None => 64,
    };
    let mut recorder = Recorder::on_host(
        "decoding_on_cpu",
        "New ids of decoder models on the CPU",
        "Milliseconds for a new id of each sequence: the most likely one. Random weights, f32. Each sample continues prompts of 16 \
         positions by 64 ids. PyTorch runs the same model by plain functions (linear, scaled_dot_product_attention), with a cache of \
         fixed memory, in a process of its own; both run on the processors that the benchmark may use.",
    );
    let mut pytorch = match PyTorchOnCpu::start() {
        Ok(pytorch) => Some(pytorch),
        Err(why) => {
            println!("  PyTorch is left out: {why}");
            None
        }
    };
    println!("  a sum of {} MB: {:.1} GB/s", ELEMENTS * 4 / 1_000_000, sum_bandwidth());
    let device = Device::cpu();
    let mut count = 0;
    for (name, model, config, batch) in CASES.into_iter().filter(|case| is_wanted(case.0)) {
        let config = DecoderConfig::from_json(config, None)?;
        let weights = 4.0 * config.parameter_count() as f64;
        let decoder = Decoder::new(config, &Initializer::new(&device).with_seed(1))?;
        let own = || milliseconds(&decoder, [batch, PROMPT, ids], false);
        let taken = own()?;
        println!(
            "  {name}: {taken:.2} ms an id, {:.1} ids/s; {:.1} GB/s of its weights",
            1e3 * batch as f64 / taken,
            weights / taken / 1e6
        );
        let Some(pytorch) = &mut pytorch else { continue };
        let library = pytorch.library.clone();
        let subject = Subject {
            name,
            against: &library,
            unit: Unit::Milliseconds,
            bytes: None,
            rule: Rule::Speed,
            goal: Some(2.0),
        };
        let arguments = [json!(model), json!(batch), json!(PROMPT), json!(ids)];
        let reference = || Ok(pytorch.microseconds("decoding", &arguments, 1)? / 1e3 / ids as f64);
        let mut figure = turns(options.turns(1, 20), &subject, own, reference)?;
        figure.resolve_at = Some(1.0);
        recorder.add(figure);
        count += 1;
    }
    match count {
        0 => {
            println!("  left out: nothing to compare with, so no report is written");
            Ok(())
        }
        _ => recorder.finish(&options.out),
    }
}

/// Returns the GB/s of plain sums over memory, half of it on each of two threads; the best of five.
fn sum_bandwidth() -> f64 {
    let memory = vec![1u32; ELEMENTS];
    let halves = memory.split_at(ELEMENTS / 2);
    let sum = |half: &[u32]| {
        let mut lanes = [0u32; 32];
        for chunk in half.chunks_exact(lanes.len()) {
            lanes.iter_mut().zip(chunk).for_each(|(lane, element)| *lane = lane.wrapping_add(*element));
        }
        std::hint::black_box(lanes);
    };
    let pass = || {
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| sum(halves.1));
            sum(halves.0);
        });
        ELEMENTS as f64 * 4.0 / start.elapsed().as_secs_f64() / 1e9
    };
    (0..5).map(|_| pass()).fold(0.0, f64::max)
}
