//! The first use of an expression or a row program: one that this machine has never seen, and one that another process has
//! used.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::Write;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use selvedge::driver::{Device, DeviceBuffer, Stream};
use selvedge::fuse::{
    DeviceInput, DeviceOutput, Expression, Graph, HostInput, HostOutput, Operation, RowLaunches, RowProgram,
};
use selvedge::types::{DType, Layout};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

/// Makes this program a process that uses a program for the first time: `first-use KIND SEED`.
pub const ARGUMENT: &str = "first-use";

const COUNT: usize = 4096;
/// The elements as rows.
const ROWS: [usize; 2] = [4, COUNT / 4];
/// Any of them after any other is right bit for bit, and finite.
const CHOICES: [Operation; 5] =
    [Operation::Add, Operation::Sub, Operation::Mul, Operation::Minimum, Operation::Maximum];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Elementwise,
    Softmax,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Elementwise => "elementwise",
            Kind::Softmax => "softmax",
        }
    }

    /// Operations before the last two: one of 15^10 or 15^4 texts. Numbers are no part of a text.
    fn operations(self) -> usize {
        match self {
            Kind::Elementwise => 10,
            Kind::Softmax => 4,
        }
    }

    fn layout(self) -> Result<Layout, Failure> {
        Ok(match self {
            Kind::Elementwise => Layout::contiguous(&[COUNT])?,
            Kind::Softmax => Layout::contiguous(&ROWS)?,
        })
    }
}

/// A program that no process has used before, unless it had the same seed.
enum Program {
    Elementwise(Expression),
    Rows(RowProgram),
}

impl Program {
    /// Operations on three arrays, chosen by the seed; for rows, the softmax of the result.
    fn new(kind: Kind, seed: u64) -> Result<Program, Failure> {
        let mut random = Random::new(seed);
        let graph = Graph::new();
        let inputs = graph.inputs([DType::F32; 3]);
        let mut value = inputs[0];
        for _ in 0..kind.operations() {
            let choice = (random.bits() >> 32) as usize;
            value = value.operation(CHOICES[choice % 5], &[inputs[choice / 5 % 3]]);
        }
        // Whatever was chosen, every input takes part.
        let value = value + inputs[1] * inputs[2];
        Ok(match kind {
            Kind::Elementwise => Program::Elementwise(graph.expression(&[value])?),
            Kind::Softmax => {
                let powers = (value - value.max_group()).exp();
                Program::Rows(graph.row_program(&[powers / powers.sum_group()])?)
            }
        })
    }

    fn run(
        &self,
        stream: &Stream,
        inputs: &[DeviceInput<'_>],
        output: DeviceOutput<'_>,
    ) -> Result<(), Failure> {
        match self {
            Program::Elementwise(expression) => expression.run(stream, inputs, &[], &mut [output])?,
            Program::Rows(program) => program.run(stream, inputs, &[], &[-1], &mut [output])?,
        }
        Ok(())
    }

    fn run_host(&self, inputs: &[HostInput<'_>], output: HostOutput<'_>) -> Result<(), Failure> {
        match self {
            Program::Elementwise(expression) => expression.run_host(inputs, &[], &mut [output])?,
            Program::Rows(program) => program.run_host(inputs, &[], &[-1], &mut [output])?,
        }
        Ok(())
    }

    /// The kernel's text.
    fn kernel(&self, layout: Layout, capability: (i32, i32)) -> Result<String, Failure> {
        match self {
            Program::Elementwise(expression) => {
                let explanation = expression.explain(&[layout; 3], &[layout], capability)?;
                let launch =
                    explanation.launches.into_iter().next().ok_or("an expression without a launch")?;
                Ok(launch.ptx)
            }
            Program::Rows(program) => {
                let explanation = program.explain(&[layout; 3], &[-1], &[layout], capability)?;
                match explanation.kernels.into_iter().next().map(|kernel| kernel.launches) {
                    Some(RowLaunches::Rows(launch)) => Ok(launch.ptx),
                    _ => Err("a row program in several kernels".into()),
                }
            }
        }
    }
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
    fn first_use(&mut self, kind: Kind, seed: u64) -> Result<(f64, bool), Failure> {
        let start = Instant::now();
        let program = Program::new(kind, seed)?;
        let layout = kind.layout()?;
        let [a, b, c] = &self.arrays;
        let inputs =
            [DeviceInput::new(a, layout)?, DeviceInput::new(b, layout)?, DeviceInput::new(c, layout)?];
        let result = DeviceOutput::new(&mut self.output, layout)?;
        program.run(&self.stream, &inputs, result)?;
        self.stream.synchronize()?;
        let taken = start.elapsed().as_secs_f64() * 1e3;

        let mut wanted = vec![0.0f32; COUNT];
        let [a, b, c] = &self.host;
        let inputs = [HostInput::new(a, layout)?, HostInput::new(b, layout)?, HostInput::new(c, layout)?];
        program.run_host(&inputs, HostOutput::new(&mut wanted, layout)?)?;
        let found = self.stream.download(&self.output)?;
        let right = found.iter().zip(&wanted).all(|(found, wanted)| found.to_bits() == wanted.to_bits());
        Ok((taken, right))
    }
}

/// The child: uses a program, and prints how long that took in milliseconds, and whether the result is right.
pub fn child(arguments: &[String]) -> Result<(), Failure> {
    let [kind, seed] = arguments else { return Err("a kind and a seed are wanted".into()) };
    let kind = [Kind::Elementwise, Kind::Softmax].into_iter().find(|known| known.word() == kind);
    let (taken, right) = Data::new()?.first_use(kind.ok_or("an unknown kind")?, seed.parse()?)?;
    writeln!(std::io::stdout(), "{taken} {right}")?;
    Ok(())
}

/// The child's answer.
fn process(kind: Kind, seed: u64) -> Result<(f64, bool), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args([ARGUMENT, kind.word(), &seed.to_string()]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [taken, right] if output.status.success() => Ok((taken.parse()?, right.parse()?)),
        _ => Err(format!("{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "fuse_first",
        "First use of expressions and row programs",
        "From three arrays on the device to the result of ten operations on them and two more, or to the softmax of four and two in \
         rows of 1024, waited for: the program is made, written, assembled by the driver and run. Never seen: operations chosen \
         anew by the time, in a process that has assembled before; the reference loads the text of another such program by \
         cuModuleLoadDataEx alone. In a second process: its first program is one that the first process has used, so the \
         driver's cache has it; the reference is one never seen. The driver's cache is empty when the program starts. Results \
         are compared with the CPU's, bit for bit.",
    )?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    // Neighbouring seeds of this generator start alike, so they are spread.
    let mut seeds = (1u64..).map(|number| (now ^ number << 48).wrapping_mul(0xd134_2543_de82_ef95) >> 1);
    let mut next = || seeds.next().ok_or("no more seeds");
    let mut data = Data::new()?;
    let expression = FirstUse {
        kind: Kind::Elementwise,
        never_seen: subject("never seen", "cuModuleLoadDataEx of as long a text", 30.0),
        second: subject("in a second process", "an expression never seen", 3.0),
        resolve_at: [None, None],
    };
    let softmax = FirstUse {
        kind: Kind::Softmax,
        never_seen: subject("softmax, never seen", "cuModuleLoadDataEx of as long a text", 20.0),
        second: subject("softmax, in a second process", "a softmax never seen", 0.5),
        resolve_at: [Some(40.0), Some(3.0)],
    };
    let mut wrong = 0;
    for first_use in [expression, softmax] {
        wrong += first_use.measure(bare, options, &mut data, &mut next, &mut recorder)?;
    }
    recorder.finish(&options.out)?;
    match wrong {
        0 => Ok(()),
        _ => Err(format!("{wrong} results are wrong").into()),
    }
}

struct FirstUse<'a> {
    kind: Kind,
    never_seen: Subject<'a>,
    second: Subject<'a>,
    resolve_at: [Option<f64>; 2],
}

impl FirstUse<'_> {
    /// Records both figures, and returns the wrong results.
    fn measure(
        &self,
        bare: &Bare,
        options: &Options,
        data: &mut Data,
        next: &mut impl FnMut() -> Result<u64, &'static str>,
        recorder: &mut Recorder,
    ) -> Result<usize, Failure> {
        let kind = self.kind;
        let layout = kind.layout()?;
        let capability = Device::new(0)?.compute_capability();
        let wrong = Cell::new(0);
        let count = |(taken, right): (f64, bool)| {
            wrong.set(wrong.get() + usize::from(!right));
            taken
        };

        let (mut own_seeds, mut texts) = (VecDeque::new(), VecDeque::new());
        let rounds = options.turns(3, 30);
        for _ in 0..rounds.warm_up + rounds.rounds {
            own_seeds.push_back(next()?);
            texts.push_back(Program::new(kind, next()?)?.kernel(layout, capability)?);
        }
        let mut never_seen = turns(
            rounds,
            &self.never_seen,
            || Ok(count(data.first_use(kind, own_seeds.pop_front().ok_or("no more seeds")?)?)),
            || {
                let text = texts.pop_front().ok_or("no more texts")?;
                let start = Instant::now();
                bare.kernel(&text, "fused")?;
                Ok(start.elapsed().as_secs_f64() * 1e3)
            },
        )?;
        never_seen.resolve_at = self.resolve_at[0];
        recorder.add(never_seen);

        // Both sides share what has been used; the one starts with one to take.
        let first = next()?;
        data.first_use(kind, first)?;
        let known = RefCell::new(VecDeque::from([first]));
        let mut second = turns(
            options.turns(1, 20),
            &self.second,
            || {
                let seed = known.borrow_mut().pop_front().ok_or("no program was used before")?;
                Ok(count(process(kind, seed)?))
            },
            || {
                let seed = next()?;
                known.borrow_mut().push_back(seed);
                Ok(count(data.first_use(kind, seed)?))
            },
        )?;
        second.resolve_at = self.resolve_at[1];
        recorder.add(second);
        Ok(wrong.get())
    }
}

fn subject<'a>(name: &'a str, against: &'a str, goal: f64) -> Subject<'a> {
    Subject { name, against, unit: Unit::Milliseconds, bytes: None, rule: Rule::Own, goal: Some(goal) }
}
