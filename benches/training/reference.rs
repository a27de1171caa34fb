//! PyTorch's side: pytorch_gpt.py in a process of its own on the same device.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::python::{self, PythonProcess};
use crate::rows::{Reference, Row};

const PROGRAM: &str = include_str!("pytorch_gpt.py");
/// No answer takes longer: the longest is the autotuning of a large model.
const PATIENCE: Duration = Duration::from_secs(900);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    library: Option<String>,
    absent: Option<String>,
    call: Option<String>,
    seconds: Option<f64>,
    peak_bytes: Option<u64>,
    error: Option<String>,
}

/// The child, whose end gives all of its memory back.
pub struct PyTorchTraining {
    python: PythonProcess,
    /// PyTorch's version, the mode, and the kernels of attention.
    pub call: String,
}

impl PyTorchTraining {
    /// Starts the interpreter of [`python::interpreter`], and warms a training up.
    pub fn start(row: &Row, reference: &Reference) -> Result<PyTorchTraining, String> {
        let mut python = PythonProcess::start(&mut python::interpreter()?, PROGRAM, &["--serve"], PATIENCE)?;
        match python.answer()? {
            Answer { absent: Some(why), .. } => return Err(why),
            Answer { library: None, .. } => return Err("PyTorch did not name itself".to_owned()),
            Answer { library: Some(_), .. } => {}
        }
        let mut side = PyTorchTraining { python, call: String::new() };
        let answer = side.ask(&json!({ "prepare": {
            "model": row.model.reference_name(),
            "batch": row.batch,
            "mode": reference.mode,
            "is_bf16": row.is_bf16,
        } }))?;
        side.call = answer.call.ok_or("PyTorch did not describe its side")?;
        Ok(side)
    }

    /// Milliseconds of one of some steps, by events on the device.
    pub fn milliseconds(&mut self, steps: usize) -> Result<f64, String> {
        let answer = self.ask(&json!({ "time": steps }))?;
        Ok(1e3 * answer.seconds.ok_or("PyTorch gave no time")?)
    }

    /// The peak of allocated bytes.
    pub fn peak_bytes(&mut self) -> Result<u64, String> {
        self.ask(&json!({ "peak": true }))?.peak_bytes.ok_or_else(|| "PyTorch gave no peak".to_owned())
    }

    fn ask(&mut self, request: &Value) -> Result<Answer, String> {
        match self.python.ask(request)? {
            Answer { error: Some(why), .. } => Err(why),
            answer => Ok(answer),
        }
    }
}
