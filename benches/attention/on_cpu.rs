//! Attention of f32 on the CPU, in turns with PyTorch on the same cores.

use std::time::Instant;

use selvedge::nn::{self, Variable};
use selvedge::tensor::{AttentionOptions, Device, Generator, Tensor};
use selvedge::types::DType;
use serde_json::json;

use crate::Options;
use crate::harness::machine::Recorder;
use crate::harness::program::is_wanted;
use crate::harness::pytorch_on_cpu::PyTorchOnCpu;
use crate::harness::report::{Failure, Spread};
use crate::harness::turns::{Goal, pairs, speed};

const HEADS: usize = 12;
const DIMENSION: usize = 64;
/// Lengths, and how many runs are timed together.
const LENGTHS: [(usize, usize); 2] = [(1024, 4), (4096, 1)];
const GOAL: Goal = Goal(1.2, 0.8);

/// Forward, and forward with backward, of each length.
pub fn measure(options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::on_host(
        "attention_cpu",
        "Attention on the CPU, f32",
        "One run of a batch of 1, 12 heads and a head dimension of 64, as the mean of 4 runs of length 1024, and as one of length 4096. Queries, \
         keys and values are normal random numbers in the order (batch, length, heads, head dimension). PyTorch computes \
         scaled_dot_product_attention of arrays of its own in a process of its own; both run on the processors that the benchmark \
         may use. Operations are 4 (forward) or 14 (with backward) x heads x length^2 x head dimension, and half of that with a causal mask.",
    );
    let mut pytorch = PyTorchOnCpu::start();
    if let Err(why) = &pytorch {
        recorder.skip(format!("beside PyTorch: {why}."));
    }
    let mut measured = 0;
    for (length, runs) in LENGTHS {
        for is_causal in [false, true] {
            for has_backward in [false, true] {
                let pass = if has_backward { "forward and backward" } else { "forward" };
                let mask = if is_causal { "causal" } else { "full" };
                let name = format!("{pass}, {mask}, length {length}");
                if !is_wanted(&name) {
                    continue;
                }
                let mut run = attention(length, is_causal, has_backward)?;
                let mut own = || -> Result<f64, Failure> {
                    let start = Instant::now();
                    (0..runs).try_for_each(|_| run())?;
                    Ok(start.elapsed().as_secs_f64() * 1e6 / runs as f64)
                };
                let products = if has_backward { 14 } else { 4 };
                let all = (products * HEADS * length * length * DIMENSION) as f64;
                let operations = if is_causal { all / 2.0 } else { all };
                let turns = options.turns(1, 20);
                let Ok(pytorch) = &mut pytorch else {
                    let times: Vec<f64> = (0..5).map(|_| own()).collect::<Result<_, _>>()?;
                    let median = Spread::of(&times).median;
                    let rate = operations / median / 1e3;
                    println!("  {name}: left out; own {median:.0} us, {rate:.1} GFLOP/s");
                    continue;
                };
                let against = pytorch.library.clone();
                let arguments =
                    [json!(length), json!(HEADS), json!(DIMENSION), json!(is_causal), json!(has_backward)];
                let reference = || Ok(pytorch.microseconds("attention", &arguments, runs)?);
                let mut figure = speed(&name, &against, &pairs(turns, own, reference)?, Some(GOAL))?;
                figure.operations = Some(operations);
                recorder.add(figure);
                measured += 1;
            }
        }
    }
    if measured == 0 {
        println!("  left out: nothing to compare with, so no report is written");
        return Ok(());
    }
    recorder.finish(&options.out)
}

type Run = Box<dyn FnMut() -> selvedge::Result<()>>;

fn attention(length: usize, is_causal: bool, has_backward: bool) -> selvedge::Result<Run> {
    let normal = |seed| -> selvedge::Result<Tensor> {
        let sizes = [1, length, HEADS, DIMENSION];
        Generator::new(seed).randn(&sizes, DType::F32, &Device::cpu())?.transpose(1, 2)
    };
    let [queries, keys, values] = [normal(1)?, normal(2)?, normal(3)?];
    if !has_backward {
        let options = AttentionOptions { is_causal, ..AttentionOptions::default() };
        return Ok(Box::new(move || {
            queries.scaled_dot_product_attention(&keys, &values, &options).map(drop)
        }));
    }
    let gradient = normal(4)?;
    let inputs = [Variable::with_grad(queries)?, Variable::with_grad(keys)?, Variable::with_grad(values)?];
    let options = nn::AttentionOptions { is_causal, ..AttentionOptions::default() };
    Ok(Box::new(move || {
        inputs.iter().for_each(Variable::zero_grad);
        let [queries, keys, values] = &inputs;
        nn::scaled_dot_product_attention(queries, keys, values, &options)?.backward_with(&gradient)
    }))
}
