//! New ids of decoder models, in turns with transformers.

use std::time::Instant;

use selvedge::nn::{Decoder, DecoderConfig, DecoderGeneration, GenerationOptions, Initializer};
use selvedge::tensor::Device;
use selvedge::types::{DType, Layout};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::program::is_wanted;
use crate::harness::pytorch::{Clock, Operand, Work};
use crate::harness::report::{Failure, Figure, Unit};
use crate::harness::turns::{Goal, Times, pairs, speed};

/// GPT-2 of 124 M parameters, as its `config.json` has it.
pub const GPT2: &str = r#"{"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "eos_token_id": null}"#;
/// A Llama of 1.1 B parameters, as TinyLlama's `config.json` has it.
pub const LLAMA: &str = r#"{"model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632,
    "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "hidden_act": "silu",
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
    "eos_token_id": null}"#;

/// A model, the sequences and their prompts' lengths, and what to reach beside transformers' forms.
struct Case {
    name: &'static str,
    model: &'static str,
    config: &'static str,
    batch: usize,
    prompt: usize,
    references: &'static [(&'static str, Option<Goal>)],
}

const CASES: [Case; 3] = [
    Case {
        name: "GPT-2 124M, batch 1",
        model: "gpt2",
        config: GPT2,
        batch: 1,
        prompt: 16,
        references: &[("eager", Some(Goal(8.0, 5.0))), ("compiled", Some(Goal(2.0, 1.2)))],
    },
    Case {
        name: "Llama 1.1B, batch 1",
        model: "llama",
        config: LLAMA,
        batch: 1,
        prompt: 16,
        references: &[("eager", None), ("compiled", None)],
    },
    Case {
        name: "Llama 1.1B, batch 64, 1024 positions before",
        model: "llama",
        config: LLAMA,
        batch: 64,
        prompt: 1024,
        references: &[("compiled", Some(Goal(3.0, 1.5)))],
    },
];

const METHOD: &str = "Milliseconds of the host's clock for a new id of each sequence: the most likely one, which the host reads. Random \
     weights, bf16. Each sample continues the prompts by 64 ids, after two that are not counted. transformers runs its model's forward and an \
     argmax for each id: eager with a DynamicCache, compiled with a StaticCache and torch.compile(mode=\"reduce-overhead\", \
     fullgraph=True), which captures graphs.";

pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let ids = match &options.file {
        Some(text) => text.to_string_lossy().parse::<usize>()?.max(1),
        None => 64,
    };
    let mut recorder = Recorder::new(bare, "decoding", "New ids of decoder models", METHOD)?;
    let device = Device::cuda(0)?;
    let mut count = 0;
    for case in &CASES {
        let row = |reference: &str| format!("{}, beside {reference}", case.name);
        if !case.references.iter().any(|(reference, _)| is_wanted(&row(reference))) {
            continue;
        }
        let config = DecoderConfig::from_json(case.config, None)?;
        let model = Decoder::new(config, &Initializer::new(&device).with_seed(1).with_dtype(DType::BF16))?;
        let parameters = model.config().parameter_count();
        let taken = milliseconds(&model, [case.batch, case.prompt, ids], false)?;
        let weights = 2.0 * parameters as f64;
        println!(
            "  {}: {taken:.3} ms an id, {:.0} ids/s; {:.2} TB/s of its weights",
            case.name,
            1e3 * case.batch as f64 / taken,
            weights / taken / 1e9
        );
        for (reference, goal) in case.references {
            let name = row(reference);
            let operation =
                format!("decoding, {}, {reference}, {}, {}, {ids}", case.model, case.batch, case.prompt);
            let operands = [Operand::normal(DType::BF16, Layout::contiguous(&[1])?)];
            let work = Work { operation: &operation, operands: &operands, output: None, axes: &[] };
            let clock = (Clock::Host(1), options.turns(1, 20));
            let ours = || milliseconds(&model, [case.batch, case.prompt, ids], false);
            // PyTorch's call is of all ids.
            let theirs =
                options.pytorch().pairs(&mut recorder, (&name, Unit::Milliseconds), &work, clock, ours)?;
            if let Some((call, times)) = theirs {
                let times: Times = times.into_iter().map(|(own, all)| (own, all / ids as f64)).collect();
                let figure = Figure { unit: Unit::Milliseconds, ..speed(&name, &call, &times, *goal)? };
                println!(
                    "    {name}: {:.3} ms an id, {call} {:.3}: {:.2}",
                    figure.own.median,
                    figure.reference.median,
                    figure.reference.median / figure.own.median
                );
                recorder.add(figure);
                count += 1;
            }
        }
        options.pytorch().drop_operands();
    }
    match count {
        0 => {
            println!("  left out: nothing to compare with, so no report is written");
            Ok(())
        }
        _ => recorder.finish(&options.out),
    }
}

const INVARIANCE_METHOD: &str = "As decoding; ours with batch invariance beside ours without it.";

/// Measures what batch invariance costs.
pub fn measure_invariance(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder =
        Recorder::new(bare, "batch_invariance", "New ids with batch invariance", INVARIANCE_METHOD)?;
    let device = Device::cuda(0)?;
    for case in &CASES {
        let name = format!("{}, batch-invariant", case.name);
        if !is_wanted(&name) {
            continue;
        }
        let config = DecoderConfig::from_json(case.config, None)?;
        let model = Decoder::new(config, &Initializer::new(&device).with_seed(1).with_dtype(DType::BF16))?;
        let time = |is_invariant| milliseconds(&model, [case.batch, case.prompt, 64], is_invariant);
        let times = pairs(options.turns(1, 20), || time(true), || time(false))?;
        let goal = (case.batch > 1).then_some(Goal(1.0 / 1.08, 1.0 / 1.2));
        let against = "ours without batch invariance";
        let figure = Figure { unit: Unit::Milliseconds, ..speed(&name, against, &times, goal)? };
        println!(
            "  {name}: {:.3} ms an id, without it {:.3}: {:.2} times as long",
            figure.own.median,
            figure.reference.median,
            figure.own.median / figure.reference.median
        );
        recorder.add(figure);
    }
    recorder.finish(&options.out)
}

/// Returns the time of one new id of each sequence, of a batch with prompts of a length that is continued by so many ids.
pub fn milliseconds(
    model: &Decoder,
    [batch, prompt, ids]: [usize; 3],
    is_batch_invariant: bool,
) -> Result<f64, Failure> {
    let vocab_size = model.config().vocab_size();
    let prompts: Vec<Vec<u32>> = (0..batch)
        .map(|row| (0..prompt).map(|at| ((row * 7919 + at * 104_729) % vocab_size) as u32).collect())
        .collect();
    let options = GenerationOptions {
        max_new_ids: ids + 3,
        end_ids: Some(vec![]),
        is_batch_invariant,
        ..Default::default()
    };
    let mut generation = DecoderGeneration::new(model, &prompts, &options)?;
    // The prompt, the step that loads kernels, and the one that is captured.
    for _ in 0..3 {
        generation.next().ok_or("no step")??;
    }
    let start = Instant::now();
    for _ in 0..ids {
        generation.next().ok_or("no step")??;
    }
    Ok(start.elapsed().as_secs_f64() * 1e3 / ids as f64)
}
