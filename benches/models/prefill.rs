//! Prompts of a decoder model, in turns with transformers.

use std::time::Instant;

use selvedge::Tensor;
use selvedge::nn::{Decoder, DecoderCache, DecoderConfig, Initializer, no_grad};
use selvedge::tensor::Device;
use selvedge::types::{DType, Layout};

use super::decoding::LLAMA;
use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::program::is_wanted;
use crate::harness::pytorch::{Clock, Operand, Work};
use crate::harness::report::{Failure, Figure, Unit};
use crate::harness::turns::{Goal, speed};

/// Sequences, and the ids of each.
const BATCH: usize = 8;
const LENGTH: usize = 2048;
/// The ids of each sequence that a pass in parts reads.
const PART: usize = 512;

const METHOD: &str = "Milliseconds of the host's clock for the logits behind 8 prompts of 2048 ids, with their keys and values in a cache. \
     Llama of 1.1 B, random weights, bf16. transformers runs torch.compile(forward, dynamic=False) with a StaticCache and \
     logits_to_keep=1.";

pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(bare, "prefill", "Prompts of decoder models", METHOD)?;
    let name = "Llama 1.1B, 8 x 2048 ids";
    if !is_wanted(name) {
        return Ok(());
    }
    let device = Device::cuda(0)?;
    let initializer = Initializer::new(&device).with_seed(1).with_dtype(DType::BF16);
    let model = Decoder::new(DecoderConfig::from_json(LLAMA, None)?, &initializer)?;
    let whole = || milliseconds(&model, DecoderCache::new(), LENGTH);
    for (form, cache, part) in [
        ("at once", DecoderCache::new as fn() -> DecoderCache, LENGTH),
        ("in parts of 512", DecoderCache::new, PART),
        ("batch-invariant", DecoderCache::batch_invariant, LENGTH),
    ] {
        let times = (0..4).map(|_| milliseconds(&model, cache(), part)).collect::<Result<Vec<_>, _>>()?;
        let taken = times.into_iter().fold(f64::INFINITY, f64::min);
        println!("  {name}, {form}: {taken:.2} ms, {:.0} ids/s", 1e3 * (BATCH * LENGTH) as f64 / taken);
    }
    let operation = format!("prefill, llama, {BATCH}, {LENGTH}");
    let operands = [Operand::normal(DType::BF16, Layout::contiguous(&[1])?)];
    let work = Work { operation: &operation, operands: &operands, output: None, axes: &[] };
    let clock = (Clock::Host(1), options.turns(2, 20));
    let subject = (name, Unit::Milliseconds);
    match options.pytorch().pairs(&mut recorder, subject, &work, clock, whole)? {
        Some((call, times)) => {
            let goal = Some(Goal(1.1, 0.9));
            let figure = Figure { unit: Unit::Milliseconds, ..speed(name, &call, &times, goal)? };
            println!(
                "    {name}: {:.2} ms, {call} {:.2}: {:.2}",
                figure.own.median,
                figure.reference.median,
                figure.reference.median / figure.own.median
            );
            recorder.add(figure);
            recorder.finish(&options.out)
        }
        None => {
            println!("  left out: nothing to compare with, so no report is written");
            Ok(())
        }
    }
}

/// Returns the time of prompts that are read in parts.
fn milliseconds(model: &Decoder, mut cache: DecoderCache, part: usize) -> Result<f64, Failure> {
    let vocab_size = model.config().vocab_size();
    let ids = (0..BATCH)
        .flat_map(|row| (0..LENGTH).map(move |at| ((row * 7919 + at * 104_729) % vocab_size) as i64))
        .collect();
    let ids = Tensor::from_vec(ids, &[BATCH, LENGTH], &model.device())?;
    cache.reserve(LENGTH);
    model.device().synchronize()?;
    let start = Instant::now();
    for first in (0..LENGTH).step_by(part) {
        let ids = ids.narrow(1, first, part)?;
        no_grad(|| model.prefill(&ids, &[part; BATCH], &mut cache))?;
    }
    model.device().synchronize()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
