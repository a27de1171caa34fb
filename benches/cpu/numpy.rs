//! NumPy in a process of its own, on the core that this process is pinned to.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::python::{self, PythonProcess};
use crate::harness::report::Failure;

const PROGRAM: &str = include_str!("numpy_turns.py");
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    library: Option<String>,
    absent: Option<String>,
    seconds: Option<f64>,
    error: Option<String>,
}

/// The child, and the name and version of its library.
pub struct Numpy {
    python: PythonProcess,
    pub library: String,
}

impl Numpy {
    /// Starts the interpreter of [`python::interpreter`].
    pub fn start() -> Result<Numpy, Failure> {
        let mut command = python::interpreter()?;
        for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"] {
            command.env(variable, "1");
        }
        let mut python = PythonProcess::start(&mut command, PROGRAM, &[], PATIENCE)?;
        let answer: Answer = python.answer()?;
        if let Some(why) = answer.absent {
            return Err(why.into());
        }
        Ok(Numpy { python, library: answer.library.ok_or("it did not name itself")? })
    }

    /// Makes the inputs of a call, and returns the seconds of one call.
    pub fn prepare(&mut self, call: &str, inputs: &[Value]) -> Result<f64, Failure> {
        self.seconds(&json!({ "prepare": call, "inputs": inputs }))
    }

    /// Returns the seconds of a call, of the fastest of `blocks` of `calls`.
    pub fn time(&mut self, blocks: usize, calls: usize) -> Result<f64, Failure> {
        self.seconds(&json!({ "time": blocks, "calls": calls }))
    }

    fn seconds(&mut self, request: &Value) -> Result<f64, Failure> {
        let answer: Answer = self.python.ask(request)?;
        match answer {
            Answer { error: Some(why), .. } => Err(format!("NumPy: {why}").into()),
            Answer { seconds: Some(seconds), .. } => Ok(seconds),
            _ => Err("NumPy gave no time".into()),
        }
    }
}
