//! PyTorch in turns with our side: a program in Python that is started once, and does one thing at a time when it is asked.
//!
//! It is another process on the same device, so nothing of it can slow down, or speed up, our side but by working at the
//! same time. It never does: our side waits for each answer, and it for each request. Without an interpreter, PyTorch or
//! a device for it, a report says so in place of the comparison.

use std::cell::Cell;
use std::process::Command;
use std::time::Duration;

use selvedge::types::{DType, Layout};
use serde::Deserialize;
use serde_json::{Value, json};

use super::beside_copy::BATCH;
use super::machine::Recorder;
use super::python::{self, PythonProcess};
use super::report::{Failure, Figure, Rule, Unit};
use super::turns::{Subject, Times, Turns, figure, pairs};

const PROGRAM: &str = concat!(
    include_str!("pytorch_attention.py"),
    "\n\n",
    include_str!("pytorch_models.py"),
    "\n\n",
    include_str!("pytorch.py")
);
/// No answer takes longer: the longest are the import, and the first use of what PyTorch compiles.
const PATIENCE: Duration = Duration::from_secs(300);
/// As fast, and what counts as that: between two runs on two machines the same kernels stand up to 1.1 % otherwise beside the
/// same copy.
const GOAL: f64 = 1.0;
const RESOLVE_AT: f64 = 0.99;

/// The values of an operand.
#[derive(Clone, Copy)]
enum Values {
    Numbers,
    Normal,
    Permutation,
    Nothing,
}

/// An array that PyTorch shall make.
#[derive(Clone, Copy)]
pub struct Operand {
    dtype: DType,
    layout: Layout,
    values: Values,
}

impl Operand {
    /// Random numbers: of half to two with either sign, and integers of any bits.
    pub fn numbers(dtype: DType, layout: Layout) -> Operand {
        Operand { dtype, layout, values: Values::Numbers }
    }

    /// Normal random numbers with a mean of 0 and a variance of 1.
    pub fn normal(dtype: DType, layout: Layout) -> Operand {
        Operand { dtype, layout, values: Values::Normal }
    }

    /// The indices below a count, each once, in random order.
    pub fn permutation(count: usize) -> Result<Operand, Failure> {
        Ok(Operand { dtype: DType::I64, layout: Layout::contiguous(&[count])?, values: Values::Permutation })
    }

    /// An operand that is only written.
    pub fn nothing(dtype: DType, layout: Layout) -> Operand {
        Operand { dtype, layout, values: Values::Nothing }
    }

    fn to_json(self) -> Value {
        let values = match self.values {
            Values::Numbers => "numbers",
            Values::Normal => "normal",
            Values::Permutation => "permutation",
            Values::Nothing => "nothing",
        };
        let shape: &[usize] = self.layout.shape();
        json!({
            "dtype": self.dtype.to_string(),
            "shape": shape,
            "strides": self.layout.strides(),
            "offset": self.layout.offset(),
            "values": values,
        })
    }
}

/// An operation for PyTorch to run.
pub struct Work<'a> {
    /// By the name in pytorch.py's table.
    pub operation: &'a str,
    pub operands: &'a [Operand],
    /// The destination of the result. Without it each call allocates its own.
    pub output: Option<Operand>,
    pub axes: &'a [usize],
}

/// The clock that times a call.
#[derive(Clone, Copy)]
pub enum Clock {
    /// Some runs between two events.
    Device,
    /// So many runs between two events, queued while the device waits, so that no time of the host is measured.
    Queued(usize),
    /// So many calls on the host's clock.
    Host(usize),
}

impl Clock {
    /// Few rounds on the device, whose times hardly vary.
    fn turns(self) -> Turns {
        match self {
            Clock::Device | Clock::Queued(_) => Turns { warm_up: 2, rounds: 10 },
            Clock::Host(_) => Turns { warm_up: 20, rounds: 200 },
        }
    }
}

/// One answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    library: Option<String>,
    absent: Option<String>,
    call: Option<String>,
    seconds: Option<f64>,
    error: Option<String>,
}

/// The child, or why there is none.
pub struct PyTorch {
    state: State,
    /// The longest wait for an answer.
    pub patience: Duration,
}

enum State {
    NotStarted(Command),
    Running(Process),
    Absent(String),
}

struct Process {
    python: PythonProcess,
    library: String,
}

impl PyTorch {
    /// By the interpreter of [`python::interpreter`].
    pub fn new() -> PyTorch {
        match python::interpreter() {
            Ok(interpreter) => PyTorch::by(interpreter),
            Err(why) => PyTorch { state: State::Absent(why), patience: PATIENCE },
        }
    }

    /// By an interpreter, which is started when something is first asked of it.
    pub fn by(interpreter: Command) -> PyTorch {
        PyTorch { state: State::NotStarted(interpreter), patience: PATIENCE }
    }

    /// Measures `own`, which returns one time in the figure's unit, in turns with PyTorch doing the same work, and puts that
    /// beside the figure. Skips operations that PyTorch does not have; any other failure goes to the recorder.
    pub fn beside(
        &mut self,
        recorder: &mut Recorder,
        measured: &mut Figure,
        work: &Work,
        clock: Clock,
        own: impl FnMut() -> Result<f64, Failure>,
    ) -> Result<(), Failure> {
        let name = format!("{}, beside PyTorch", measured.name);
        let unit = measured.unit;
        let Some((call, times)) = self.pairs(recorder, (&name, unit), work, (clock, clock.turns()), own)?
        else {
            return Ok(());
        };
        let subject =
            Subject { name: &name, against: &call, unit, bytes: None, rule: Rule::Speed, goal: Some(GOAL) };
        let mut beside = figure(&subject, &times)?;
        beside.resolve_at = Some(RESOLVE_AT);
        measured.beside = Some(Box::new(beside));
        if let State::Running(process) = &self.state {
            recorder.name_library(&process.library);
        }
        Ok(())
    }

    /// Measures `own`, which returns one time in the unit, in turns with PyTorch doing the same work. Returns PyTorch's name of the
    /// work and the times (own, PyTorch) of each round; `None` if PyTorch does not have the operation or fails, which goes to the
    /// recorder.
    pub fn pairs(
        &mut self,
        recorder: &mut Recorder,
        (name, unit): (&str, Unit),
        work: &Work,
        (clock, turns): (Clock, Turns),
        own: impl FnMut() -> Result<f64, Failure>,
    ) -> Result<Option<(String, Times)>, Failure> {
        let call = match self.prepare(work) {
            Ok(Some(call)) => call,
            Ok(None) => return Ok(None),
            Err(why) => {
                self.skip(recorder, name, &why);
                return Ok(None);
            }
        };
        // The library's failure leaves the figure as it is; our own is one of the benchmark.
        let lost = Cell::new(None);
        let library = || {
            self.time(clock).map(|seconds| seconds * unit.per_second()).map_err(|why| {
                lost.set(Some(why));
                Failure::from("no answer")
            })
        };
        let times = pairs(turns, own, library);
        if let Some(why) = lost.take() {
            self.skip(recorder, name, &why);
            return Ok(None);
        }
        Ok(Some((call, times?)))
    }

    /// Gives up the operands' memory.
    pub fn drop_operands(&mut self) {
        // If it fails, the child is gone, and with it the memory.
        if matches!(self.state, State::Running(_)) {
            let _ = self.ask(&json!({ "drop": true }));
        }
    }

    /// Returns the name of PyTorch's function for the work; `None` if it has none.
    pub fn prepare(&mut self, work: &Work) -> Result<Option<String>, String> {
        let operands: Vec<Value> = work.operands.iter().map(|operand| operand.to_json()).collect();
        let output = work.output.map(Operand::to_json);
        let request = json!({
            "prepare": work.operation, "operands": operands, "output": output, "axes": work.axes,
        });
        Ok(self.ask(&request)?.call)
    }

    /// Seconds of one call of what was prepared.
    pub fn time(&mut self, clock: Clock) -> Result<f64, String> {
        let request = match clock {
            Clock::Device => json!({ "time": "device", "calls": BATCH }),
            Clock::Queued(calls) => json!({ "time": "queued", "calls": calls }),
            Clock::Host(calls) => json!({ "time": "host", "calls": calls }),
        };
        self.ask(&request)?.seconds.ok_or_else(|| "it gave no time".to_owned())
    }

    /// One line for all figures where there is no PyTorch, and a line of its own where this figure failed.
    fn skip(&self, recorder: &mut Recorder, name: &str, why: &str) {
        match &self.state {
            State::Absent(why) => recorder.skip(format!("beside PyTorch: {why}.")),
            _ => recorder.skip(format!("{name}: {why}.")),
        }
    }

    /// Sends a request, and waits for its answer.
    fn ask(&mut self, request: &Value) -> Result<Answer, String> {
        if let State::NotStarted(interpreter) = &mut self.state {
            self.state = match Process::start(interpreter, self.patience) {
                Ok(process) => State::Running(process),
                Err(why) => State::Absent(why),
            };
        }
        let process = match &mut self.state {
            State::Running(process) => process,
            State::Absent(why) => return Err(why.clone()),
            State::NotStarted(_) => return Err("it was not started".to_owned()),
        };
        match process.python.ask(request) {
            Ok(Answer { error: Some(why), .. }) => Err(why),
            Ok(answer) => Ok(answer),
            // Later output might be the answer to an earlier request.
            Err(why) => {
                self.state = State::Absent(why.clone());
                Err(why)
            }
        }
    }
}

impl Process {
    fn start(interpreter: &mut Command, patience: Duration) -> Result<Process, String> {
        let mut python = PythonProcess::start(interpreter, PROGRAM, &[], patience)?;
        let Answer { library, absent, .. } = python.answer()?;
        if let Some(why) = absent {
            return Err(why);
        }
        Ok(Process { python, library: library.ok_or("it did not name itself")? })
    }
}
