//! The forward and the backward of bf16, in turns with cuDNN's and with PyTorch's flash kernels.

use std::time::Duration;

use selvedge::driver::Stream;
use selvedge::tensor::Device;
use selvedge::types::DType;

use crate::Options;
use crate::arrays::{Arrays, Case, POSITIONS};
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::program::is_wanted;
use crate::harness::pytorch::{Clock, Operand, Work};
use crate::harness::report::{Failure, GEOMETRIC_MEAN, Unit};
use crate::harness::turns::{Goal, Times, geometric_mean, speed};

const LENGTHS: [usize; 5] = [1024, 2048, 4096, 8192, 16384];
const DIMENSIONS: [usize; 2] = [64, 128];
/// The widest head dimension, which the forward has and the backward has not, and whose means are its own.
const WIDEST: usize = 256;
/// The time that the runs between two events take together, in microseconds, and the most of them.
const SAMPLE: f64 = 1000.0;
const MAX_RUNS: usize = 16;
/// The time in which the launches of a sample are queued.
const QUEUEING: Duration = Duration::from_millis(1);

/// Kernels of PyTorch, and what the geometric mean beside them, and the length of GPT-2, shall reach.
struct Reference {
    name: &'static str,
    mean: Goal,
    /// For a length of 1024, a head dimension of 64 and a causal mask.
    gpt2: Option<Goal>,
    /// For the geometric mean of [`WIDEST`].
    widest: Option<Goal>,
}

/// The forward or the backward.
struct Pass {
    report: &'static str,
    title: &'static str,
    /// The name in pytorch_attention.py.
    operation: &'static str,
    has_gradients: bool,
    /// The products of which its operations are counted.
    products: usize,
    references: &'static [Reference],
}

const FORWARD: Pass = Pass {
    report: "attention_forward",
    title: "Attention, forward, bf16",
    operation: "attention",
    has_gradients: false,
    products: 2,
    references: &[
        Reference {
            name: "cuDNN",
            mean: Goal(1.2, 1.05),
            gpt2: Some(Goal(1.1, 1.05)),
            widest: Some(Goal(1.05, 0.9)),
        },
        Reference { name: "flash", mean: Goal(2.1, 1.8), gpt2: None, widest: None },
    ],
};

const BACKWARD: Pass = Pass {
    report: "attention_backward",
    title: "Attention, backward, bf16",
    operation: "attention_backward",
    has_gradients: true,
    products: 5,
    references: &[
        Reference { name: "cuDNN", mean: Goal(1.07, 0.95), gpt2: Some(Goal(1.05, 0.95)), widest: None },
        Reference { name: "flash", mean: Goal(1.8, 1.6), gpt2: None, widest: None },
        Reference { name: "deterministic flash", mean: Goal(2.2, 1.8), gpt2: None, widest: None },
    ],
};

const METHOD: &str = "Device time of one run, by events around as many runs as take a millisecond, which are queued while the device \
     waits. Batch x length is 16384 and heads x head dimension 2048; queries, keys and values are normal random numbers in the order (batch, \
     length, heads, head dimension), 64 MiB each, which the L2 cache does not hold from one run to the next. Operations are 4 (forward) or 10 \
     (backward) x batch x heads x length^2 x head dimension, and half of that with a causal mask. PyTorch runs scaled_dot_product_attention \
     with one backend allowed, on arrays of its own of the same layout and distribution, in turns with ours. The last queries of the \
     first head are compared with f64 on the CPU.";

/// The forward of each case. Ours stores the LSE too; PyTorch's inputs have no gradients, so that it stores none.
pub fn forward(bare: &Bare, options: &Options) -> Result<(), Failure> {
    measure(bare, options, &FORWARD, METHOD)
}

/// The backward of each case, which gives the same bits on each run.
pub fn backward(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let own = "Ours gives the same bits on each run, as PyTorch's deterministic flash kernels do (torch.use_deterministic_algorithms), and its \
               others do not promise. PyTorch's time is that of torch.autograd.grad alone, of a graph that is recorded once.";
    measure(bare, options, &BACKWARD, &format!("{METHOD} {own}"))
}

fn lengths(options: &Options) -> Result<Vec<usize>, Failure> {
    let Some(text) = &options.file else { return Ok(LENGTHS.to_vec()) };
    let lengths: Vec<usize> =
        text.to_string_lossy().split(',').map(|length| length.parse()).collect::<Result<_, _>>()?;
    match lengths.iter().find(|length| !length.is_power_of_two() || **length > POSITIONS) {
        Some(length) => {
            Err(format!("--lengths has {length}: powers of two up to {POSITIONS} are wanted").into())
        }
        None => Ok(lengths),
    }
}

fn measure(bare: &Bare, options: &Options, pass: &Pass, method: &str) -> Result<(), Failure> {
    let lengths = lengths(options)?;
    let device = Device::cuda(0)?;
    let recorder = Recorder::new(bare, pass.report, pass.title, method)?;
    let own = OwnSide { bare, pass, arrays: Arrays::new(&device)?, stream: device.stream()? };
    let mut bench = PassBench { options, recorder, own };
    let measured = bench.figures(&lengths);
    options.pytorch().drop_operands();
    match measured? {
        0 => {
            println!("  left out: nothing to compare with, so no report is written");
            Ok(())
        }
        _ => bench.recorder.finish(&options.out),
    }
}

struct PassBench<'a> {
    options: &'a Options,
    recorder: Recorder,
    own: OwnSide<'a>,
}

/// Our kernels.
struct OwnSide<'a> {
    bare: &'a Bare,
    pass: &'a Pass,
    arrays: Arrays,
    stream: Stream,
}

/// Returns the name of a row; one of several lengths has the geometric mean in place of the length.
fn row(reference: &Reference, case: Option<(usize, &str)>, length: &str) -> String {
    match case {
        Some((dimension, mask)) => format!("beside {}, d {dimension}, {mask}, {length}", reference.name),
        None => format!("beside {}, {length}", reference.name),
    }
}

/// Returns the name of the row of a mean over masks and lengths.
fn row_of_mean(reference: &Reference, dimension: Option<usize>) -> String {
    match dimension {
        Some(dimension) => format!("beside {}, d {dimension}, {GEOMETRIC_MEAN}", reference.name),
        None => row(reference, None, GEOMETRIC_MEAN),
    }
}

impl PassBench<'_> {
    /// Measures each case beside each reference, then their means. Returns the number of comparisons.
    fn figures(&mut self, lengths: &[usize]) -> Result<usize, Failure> {
        let mut count = self
            .means(lengths, &DIMENSIONS, |reference| (row_of_mean(reference, None), Some(reference.mean)))?;
        if !self.own.pass.has_gradients {
            count += self.means(lengths, &[WIDEST], |reference| {
                (row_of_mean(reference, Some(WIDEST)), reference.widest)
            })?;
        }
        Ok(count)
    }

    /// Measures the cases of some head dimensions, the mean of each head dimension and mask, and the mean of all, which has this name
    /// and goal.
    fn means(
        &mut self,
        lengths: &[usize],
        dimensions: &[usize],
        of_all: impl Fn(&Reference) -> (String, Option<Goal>),
    ) -> Result<usize, Failure> {
        let pass = self.own.pass;
        // By reference, then by head dimension and mask.
        let mut all: Vec<Vec<Vec<Times>>> = vec![Vec::new(); pass.references.len()];
        let mut against = vec![String::new(); pass.references.len()];
        let mut groups = Vec::new();
        for &dimension in dimensions {
            for is_causal in [false, true] {
                groups.push((dimension, Case { dimension, length: 0, is_causal }.mask()));
                all.iter_mut().for_each(|groups| groups.push(Vec::new()));
                for &length in lengths {
                    let case = Case { dimension, length, is_causal };
                    for (index, call, times) in self.case(case)? {
                        against[index] = call;
                        all[index].last_mut().ok_or("no group")?.push(times);
                    }
                }
            }
        }
        for ((reference, all), against) in pass.references.iter().zip(&all).zip(&against) {
            // A mean of some of the cases has no name.
            if all.iter().any(|times| times.len() < lengths.len()) {
                continue;
            }
            for (group, times) in groups.iter().zip(all) {
                let name = row(reference, Some(*group), GEOMETRIC_MEAN);
                self.recorder.add(speed(&name, against, &geometric_mean(times), None)?);
            }
            let (name, goal) = of_all(reference);
            let goal = goal.filter(|_| lengths == LENGTHS);
            self.recorder.add(speed(&name, against, &geometric_mean(&all.concat()), goal)?);
        }
        Ok(all.iter().flatten().flatten().count())
    }

    /// Measures a case beside each reference that is there: its index, what it calls, and the times.
    fn case(&mut self, case: Case) -> Result<Vec<(usize, String, Times)>, Failure> {
        let PassBench { options, recorder, own } = self;
        let (pass, mask) = (own.pass, case.mask());
        let (length, group) = (format!("length {}", case.length), (case.dimension, mask));
        let mut found = Vec::new();
        let is_chosen = |reference: &Reference| is_wanted(&row(reference, Some(group), &length));
        if !pass.references.iter().any(is_chosen) {
            return Ok(found);
        }
        own.arrays.prepare(case)?;
        own.arrays.forward(case)?;
        if pass.has_gradients {
            own.arrays.backward(case)?;
        }
        let errors = own.arrays.check(case, pass.has_gradients)?;
        let errors: Vec<String> = errors.iter().map(|(name, share)| format!("{name} {share:.1e}")).collect();
        println!("  d {}, {mask}, {length}: errors beside f64: {}", case.dimension, errors.join(", "));
        let runs = ((SAMPLE / own.microseconds(case, 2)?).ceil() as usize).clamp(1, MAX_RUNS);
        let operations = case.operations(pass.products);
        for (index, reference) in pass.references.iter().enumerate().filter(|(_, one)| is_chosen(one)) {
            let name = row(reference, Some(group), &length);
            let operation = format!("{}, {}, {mask}", pass.operation, reference.name);
            let operands = [Operand::normal(DType::BF16, case.layout()?); 4];
            let operands = if pass.has_gradients { &operands[..] } else { &operands[..3] };
            let work = Work { operation: &operation, operands, output: None, axes: &[] };
            let clock = (Clock::Queued(runs), options.turns(3, 22));
            let ours = || own.microseconds(case, runs);
            let pairs = options.pytorch().pairs(recorder, (&name, Unit::Microseconds), &work, clock, ours)?;
            match pairs {
                Some((call, times)) => {
                    let is_gpt2 = case.length == 1024 && case.dimension == 64 && case.is_causal;
                    let goal = if is_gpt2 { reference.gpt2 } else { None };
                    let mut figure = speed(&name, &call, &times, goal)?;
                    figure.operations = Some(operations);
                    let rate = |median: f64| operations / median / 1e6;
                    let (ours, theirs) = (rate(figure.own.median), rate(figure.reference.median));
                    recorder.add(figure);
                    println!("    {ours:.0} TFLOP/s, {call} {theirs:.0}");
                    found.push((index, call, times));
                }
                None => {
                    let taken = own.microseconds(case, runs)?;
                    let rate = operations / taken / 1e6;
                    println!("  {name}: left out; own {taken:.1} us, {rate:.0} TFLOP/s");
                }
            }
        }
        Ok(found)
    }
}

impl OwnSide<'_> {
    /// Microseconds of one of so many runs, after one that is not counted.
    fn microseconds(&mut self, case: Case, runs: usize) -> Result<f64, Failure> {
        let OwnSide { bare, pass, arrays, stream } = self;
        let mut run = || match pass.has_gradients {
            true => arrays.backward(case),
            false => arrays.forward(case),
        };
        // A delay rather than a signal: a call that waits for the device would wait for the signal for ever.
        stream.on_complete(|| std::thread::sleep(QUEUEING))?;
        run()?;
        // SAFETY: the stream lives until the end of this function.
        let milliseconds = unsafe {
            bare.device_time(stream.as_raw(), || (0..runs).try_for_each(|_| run()).map_err(Failure::from))
        }?;
        Ok(milliseconds * 1e3 / runs as f64)
    }
}
