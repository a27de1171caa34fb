//! PyTorch on the CPU in turns with our side, in a process of its own on the same processors.

use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::python::{self, PythonProcess};

const PROGRAM: &str = include_str!("pytorch_on_cpu.py");
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    library: Option<String>,
    absent: Option<String>,
    seconds: Option<f64>,
}

/// The child.
pub struct PyTorchOnCpu {
    python: PythonProcess,
    /// Its version and its number of threads.
    pub library: String,
}

impl PyTorchOnCpu {
    /// Starts the interpreter of [`python::interpreter`].
    pub fn start() -> Result<PyTorchOnCpu, String> {
        PyTorchOnCpu::by(&mut python::interpreter()?)
    }

    /// Starts an interpreter.
    pub fn by(interpreter: &mut Command) -> Result<PyTorchOnCpu, String> {
        let mut python = PythonProcess::start(interpreter, PROGRAM, &[], PATIENCE)?;
        match python.answer()? {
            Answer { absent: Some(why), .. } => Err(why),
            Answer { library, .. } => {
                Ok(PyTorchOnCpu { python, library: library.ok_or("PyTorch did not name itself")? })
            }
        }
    }

    /// Microseconds of one of `count` runs of some work, by its name in pytorch_on_cpu.py and its maker's arguments.
    pub fn microseconds(&mut self, work: &str, arguments: &[Value], count: usize) -> Result<f64, String> {
        let request = json!({ "work": work, "arguments": arguments, "count": count });
        let answer: Answer = self.python.ask(&request)?;
        Ok(answer.seconds.ok_or("PyTorch gave no time")? * 1e6)
    }
}
