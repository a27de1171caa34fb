//! Tests in processes of their own: this executable again, with a hidden argument that names the test.

use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use super::{DeviceTest, Outcome};

const ARGUMENT: &str = "--selvedge-child";
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs one test and nothing else, where this process was started for that.
pub fn run_if_asked(device_tests: &[DeviceTest]) -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(ARGUMENT) {
        return None;
    }
    let name = arguments.next().unwrap_or_default();
    let Some(test) = device_tests.iter().find(|test| test.name == name) else {
        eprintln!("there is no test '{name}'");
        return Some(ExitCode::FAILURE);
    };
    match (test.run)() {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(failed) => {
            eprintln!("{}", failed.message().unwrap_or("failed"));
            Some(ExitCode::FAILURE)
        }
    }
}

/// Runs a test in a process of its own.
pub fn run(name: &str, environment: &[(&str, &str)]) -> Outcome {
    let output = start(&[ARGUMENT, name], environment)?;
    if output.status.success() {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!("its process ended with {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
        .into())
}

/// Starts this executable again and waits for it; what it prints must be short.
pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Output, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let started = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if started.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("the process of {arguments:?} did not end in {PATIENCE:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().map_err(|error| error.to_string())
}
