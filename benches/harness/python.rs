//! A program in Python that is started once, and answers one request at a time: a line of JSON each.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The interpreter that `SELVEDGE_BENCH_PYTHON` names, or `python3`; `none` is as if there were none.
pub fn interpreter() -> Result<Command, String> {
    match std::env::var_os("SELVEDGE_BENCH_PYTHON") {
        Some(name) if name == "none" => Err("SELVEDGE_BENCH_PYTHON is none".to_owned()),
        name => Ok(Command::new(name.unwrap_or_else(|| "python3".into()))),
    }
}

/// The child process.
pub struct PythonProcess {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    patience: Duration,
}

impl Drop for PythonProcess {
    fn drop(&mut self) {
        // It may be at work, and has nothing to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl PythonProcess {
    /// Starts the program with arguments. No answer may take longer than `patience`.
    pub fn start(
        interpreter: &mut Command,
        program: &str,
        arguments: &[&str],
        patience: Duration,
    ) -> Result<PythonProcess, String> {
        let name = interpreter.get_program().to_string_lossy().into_owned();
        let failed = |why: &dyn Display| format!("{name} could not be started ({why})");
        let mut child = interpreter
            .args(["-c", program])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|why| failed(&why))?;
        let (Some(requests), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(&"no pipe"));
        };
        // A thread reads, because only so a wait for a line can have an end.
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(PythonProcess { child, requests, answers, patience })
    }

    /// Sends a request, and waits for its answer.
    pub fn ask<A: DeserializeOwned>(&mut self, request: &Value) -> Result<A, String> {
        let sent = writeln!(self.requests, "{request}").and_then(|()| self.requests.flush());
        // The child's last output says more than a closed pipe.
        let answer = self.answer();
        if answer.is_ok() {
            sent.map_err(|why| format!("the child took no request ({why})"))?;
        }
        answer
    }

    /// Waits for an answer.
    pub fn answer<A: DeserializeOwned>(&mut self) -> Result<A, String> {
        let line = match self.answers.recv_timeout(self.patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("the child did not answer within {:?}", self.patience));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let how = self.child.wait().map_or_else(|why| why.to_string(), |status| status.to_string());
                return Err(format!("the child ended ({how})"));
            }
        };
        serde_json::from_str(&line).map_err(|why| format!("the child said '{line}' ({why})"))
    }
}
