//! The first use of an expression: one that this machine has never seen, and one that another process has used.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::Write;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use selvedge::driver::{Device, DeviceBuffer, Stream};
use selvedge::fuse::{DeviceInput, DeviceOutput, Expression, Graph, HostInput, HostOutput, Operation};
use selvedge::types::{DType, Layout};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

/// Makes this program a process that uses an expression for the first time: `first-use SEED`.
pub const ARGUMENT: &str = "first-use";

const COUNT: usize = 4096;
const OPERATIONS: usize = 10;
/// Any of them after any other is right bit for bit, and finite.
const CHOICES: [Operation; 5] =
    [Operation::Add, Operation::Sub, Operation::Mul, Operation::Minimum, Operation::Maximum];

/// Ten operations on three arrays, chosen by the seed: one of 15^10 texts.
fn expression(seed: u64) -> Result<Expression, Failure> {
    let mut random = Random::new(seed);
    let graph = Graph::new();
    let inputs = graph.inputs([DType::F32; 3]);
    let mut value = inputs[0];
    for _ in 0..OPERATIONS {
        let choice = (random.bits() >> 32) as usize;
        value = value.operation(CHOICES[choice % 5], &[inputs[choice / 5 % 3]]);
    }
    // Whatever was chosen, every input takes part.
    Ok(graph.expression(&[value + inputs[1] * inputs[2]])?)
}

/// The data of a first use, ready before the clock starts.
struct Data {
    stream: Stream,
    host: [Vec<f32>; 3],
    arrays: [DeviceBuffer<f32>; 3],
    output: DeviceBuffer<f32>,
}

impl Data {
    fn new() -> Result<Data, Failure> {
        let stream = Device::new(0)?.stream()?;
        let mut random = Random::new(31);
        let host = [random.floats(COUNT), random.floats(COUNT), random.floats(COUNT)];
        let arrays = [stream.upload(&host[0])?, stream.upload(&host[1])?, stream.upload(&host[2])?];
        let output = stream.zeros(COUNT)?;
        stream.synchronize()?;
        Ok(Data { stream, host, arrays, output })
    }

    /// Milliseconds from nothing but the data to the result, waited for, and whether that is the CPU's.
    fn first_use(&mut self, seed: u64) -> Result<(f64, bool), Failure> {
        let start = Instant::now();
        let expression = expression(seed)?;
        let layout = Layout::contiguous(&[COUNT])?;
        let [a, b, c] = &self.arrays;
        let inputs =
            [DeviceInput::new(a, layout)?, DeviceInput::new(b, layout)?, DeviceInput::new(c, layout)?];
        let result = DeviceOutput::new(&mut self.output, layout)?;
        expression.run(&self.stream, &inputs, &[], &mut [result])?;
        self.stream.synchronize()?;
        let taken = start.elapsed().as_secs_f64() * 1e3;

        let mut wanted = vec![0.0f32; COUNT];
        let [a, b, c] = &self.host;
        let inputs = [HostInput::new(a, layout)?, HostInput::new(b, layout)?, HostInput::new(c, layout)?];
        expression.run_host(&inputs, &[], &mut [HostOutput::new(&mut wanted, layout)?])?;
        let found = self.stream.download(&self.output)?;
        let right = found.iter().zip(&wanted).all(|(found, wanted)| found.to_bits() == wanted.to_bits());
        Ok((taken, right))
    }
}

/// The child: uses an expression, and prints how long that took in milliseconds, and whether the result is right.
pub fn child(arguments: &[String]) -> Result<(), Failure> {
    let [seed] = arguments else { return Err("a seed is wanted".into()) };
    let (taken, right) = Data::new()?.first_use(seed.parse()?)?;
    writeln!(std::io::stdout(), "{taken} {right}")?;
    Ok(())
}

/// The child's answer.
fn process(seed: u64) -> Result<(f64, bool), Failure> {
    let output = Command::new(std::env::current_exe()?).arg(ARGUMENT).arg(seed.to_string()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [taken, right] if output.status.success() => Ok((taken.parse()?, right.parse()?)),
        _ => Err(format!("{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// Both figures.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "fuse_first",
        "First use of an elementwise expression",
        "From three arrays on the device to the result of ten operations on them and two more, waited for: the expression is made, \
         written, assembled by the driver and run. Never seen: operations chosen anew by the time, in a process that has \
         assembled before; the reference loads the text of another such expression by cuModuleLoadDataEx alone. In a \
         second process: its first expression is one that the first process has used, so the driver's cache has it; the \
         reference is one never seen. The driver's cache is empty when the program starts. Results are compared with \
         the CPU's, bit for bit.",
    )?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    // Neighbouring seeds of this generator start alike, so they are spread.
    let mut seeds = (1u64..).map(|number| (now ^ number << 48).wrapping_mul(0xd134_2543_de82_ef95) >> 1);
    let mut next = || seeds.next().ok_or("no more seeds");
    let mut data = Data::new()?;
    let layout = Layout::contiguous(&[COUNT])?;
    let capability = Device::new(0)?.compute_capability();
    let mut wrong = 0;

    let (mut own_seeds, mut texts) = (VecDeque::new(), VecDeque::new());
    let rounds = options.turns(3, 30);
    for _ in 0..rounds.warm_up + rounds.rounds {
        own_seeds.push_back(next()?);
        let explanation = expression(next()?)?.explain(&[layout; 3], &[layout], capability)?;
        texts.extend(explanation.launches.into_iter().map(|launch| launch.ptx));
    }
    let never_seen = turns(
        rounds,
        &subject("never seen", "cuModuleLoadDataEx of as long a text", 30.0),
        || {
            let (taken, right) = data.first_use(own_seeds.pop_front().ok_or("no more seeds")?)?;
            wrong += usize::from(!right);
            Ok(taken)
        },
        || {
            let text = texts.pop_front().ok_or("no more texts")?;
            let start = Instant::now();
            bare.kernel(&text, "fused")?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        },
    )?;
    recorder.add(never_seen);

    // Both sides share what has been used; the one starts with one to take.
    let first = next()?;
    data.first_use(first)?;
    let known = RefCell::new(VecDeque::from([first]));
    let mut wrong_there = 0;
    let second = turns(
        options.turns(1, 20),
        &subject("in a second process", "an expression never seen", 3.0),
        || {
            let seed = known.borrow_mut().pop_front().ok_or("no expression was used before")?;
            let (taken, right) = process(seed)?;
            wrong_there += usize::from(!right);
            Ok(taken)
        },
        || {
            let seed = next()?;
            let (taken, right) = data.first_use(seed)?;
            wrong += usize::from(!right);
            known.borrow_mut().push_back(seed);
            Ok(taken)
        },
    )?;
    recorder.add(second);
    recorder.finish(&options.out)?;
    match (wrong, wrong_there) {
        (0, 0) => Ok(()),
        _ => Err(format!("{wrong} results are wrong, and {wrong_there} of the second processes'").into()),
    }
}

fn subject<'a>(name: &'a str, against: &'a str, goal: f64) -> Subject<'a> {
    Subject { name, against, unit: Unit::Milliseconds, bytes: None, rule: Rule::Own, goal: Some(goal) }
}
