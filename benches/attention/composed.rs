//! Forward and backward through `nn`, beside the same attention as two products and a softmax, which store the probabilities.

use selvedge::nn::{AttentionOptions, Variable, scaled_dot_product_attention};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::arrays::{Case, POSITIONS};
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::program::is_wanted;
use crate::harness::report::{Failure, Figure, Rule, Unit};
use crate::harness::turns::{Goal, Subject, figure, pairs, speed};

const CASE: Case = Case { dimension: 64, length: 4096, is_causal: true };
const AGAINST: &str = "two products and a softmax";
/// Runs that are timed together.
const RUNS: usize = 2;

/// Queries, keys and values, and the gradient of the result.
struct Inputs {
    variables: [Variable; 3],
    gradient: Tensor,
}

impl Inputs {
    fn new(device: &Device) -> selvedge::Result<Inputs> {
        let sizes = CASE.stored_sizes();
        let normal = |seed| Generator::new(seed).randn(&sizes, DType::BF16, device)?.transpose(1, 2);
        let variable = |seed| Variable::with_grad(normal(seed)?);
        Ok(Inputs { variables: [variable(1)?, variable(2)?, variable(3)?], gradient: normal(4)? })
    }

    /// Forward and backward. Each gives new gradients.
    fn run(&self, options: &AttentionOptions) -> selvedge::Result<()> {
        let [queries, keys, values] = &self.variables;
        self.variables.iter().for_each(Variable::zero_grad);
        scaled_dot_product_attention(queries, keys, values, options)?.backward_with(&self.gradient)
    }

    fn gradients(&self) -> Result<Vec<Tensor>, Failure> {
        self.variables.iter().map(|input| Ok(input.grad().ok_or("no gradient")?.cast(DType::F32)?)).collect()
    }
}

/// The time of forward and backward, and the peak of the memory that is asked for.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "attention_composed",
        "Attention beside two products and a softmax",
        "Forward and backward through nn of bf16, batch 4, 32 heads, head dimension 64, causal: device time of one run, by events around \
         two. The reference is the same call with the causal mask given as a tensor of bools, with which the probabilities are \
         stored; their gradients are compared. Memory is the peak of what is asked of the pool since the start of the process, \
         queries, keys, values and gradients included, in 20 runs of each, first those of ours.",
    )?;
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let inputs = Inputs::new(&device)?;
    let own = AttentionOptions { is_causal: true, ..AttentionOptions::default() };
    let (time_row, memory_row) = ("forward and backward, length 4096", "peak memory, length 4096");
    let peak = || stream.device().pool_statistics().peak_requested_bytes as f64 / f64::from(1 << 30);
    let peaks_of = |options: &AttentionOptions| -> selvedge::Result<Vec<f64>> {
        (0..20).map(|_| inputs.run(options).map(|()| peak())).collect()
    };
    let peak_at_start = peak();
    let own_peaks = peaks_of(&own)?;
    // Else the peak is that of earlier work.
    let is_own = own_peaks.first().is_some_and(|first| *first > peak_at_start);
    let mask = Tensor::ones(&[CASE.length, CASE.length], DType::Bool, &device)?.tril(0)?;
    let composed = AttentionOptions { mask: Some(Variable::new(mask)), ..AttentionOptions::default() };
    let composed_peaks = peaks_of(&composed)?;
    inputs.run(&own)?;
    let gradients = inputs.gradients()?;
    inputs.run(&composed)?;
    for ((found, wanted), name) in
        gradients.iter().zip(&inputs.gradients()?).zip(["queries", "keys", "values"])
    {
        compare(name, found, wanted)?;
    }
    drop(gradients);
    if is_wanted(time_row) {
        let time = |options: &AttentionOptions| -> Result<f64, Failure> {
            inputs.run(options)?;
            // SAFETY: the stream lives until the end of this function.
            let milliseconds = unsafe {
                bare.device_time(stream.as_raw(), || Ok((0..RUNS).try_for_each(|_| inputs.run(options))?))
            }?;
            Ok(milliseconds * 1e3 / RUNS as f64)
        };
        let times = pairs(options.turns(3, 22), || time(&own), || time(&composed))?;
        let mut found = speed(time_row, AGAINST, &times, Some(Goal(10.0, 5.0)))?;
        // Two products forward and five backward.
        found.operations = Some(CASE.operations(7));
        recorder.add(found);
    }
    if is_wanted(memory_row) && is_own {
        let subject = Subject {
            name: memory_row,
            against: AGAINST,
            unit: Unit::Gibibytes,
            bytes: None,
            rule: Rule::Memory,
            goal: None,
        };
        let peaks: Vec<(f64, f64)> = own_peaks.into_iter().zip(composed_peaks).collect();
        recorder.add(Figure { order: "counted, not timed".to_owned(), ..figure(&subject, &peaks)? });
    } else if is_wanted(memory_row) {
        recorder.skip("peak memory: more was in use before.");
    }
    recorder.finish(&options.out)
}

/// An error unless two gradients are equal but for what rounding to bf16 does.
fn compare(name: &str, found: &Tensor, wanted: &Tensor) -> Result<(), Failure> {
    let norm = |x: &Tensor| -> Result<f64, Failure> {
        Ok(f64::from((x * x)?.sum_all()?.to_vec::<f32>()?.first().copied().unwrap_or(f32::NAN)).sqrt())
    };
    let share = norm(&(found - wanted)?)? / norm(wanted)?;
    // Also false for NaN.
    if share <= 1e-2 {
        return Ok(());
    }
    Err(format!("the gradients of {name} differ by {share:e} at {POSITIONS} positions").into())
}
