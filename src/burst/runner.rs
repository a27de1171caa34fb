//! A thread that runs a simulation at a set frequency.

use std::any::Any;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::backend::BurstResult;
use super::simulation::Simulation;
use crate::{Error, Result};

/// The result of a call, whose type its caller knows.
type Answer = Box<dyn Any + Send>;
type Call = Box<dyn FnOnce(&mut Simulation) -> Answer + Send>;

enum Command {
    Call(Call, Sender<Answer>),
    Period(Duration),
    Pause,
    Resume,
    Stop,
}

/// A thread that runs bursts at a set frequency.
///
/// Dropping a runner stops its thread after the burst in progress and waits for it.
///
/// ```
/// use selvedge::burst::{BurstRunner, Cpu, GeneratedNetwork, Simulation};
///
/// # fn main() -> selvedge::Result<()> {
/// let network = GeneratedNetwork::g(100, 5).network()?;
/// let simulation = Simulation::new(network.into(), Box::new(Cpu::with_threads(1)), 7)?;
/// let (sender, bursts) = std::sync::mpsc::channel();
/// let runner = BurstRunner::start(simulation, Some(1000.0), move |result| {
///     let _ = sender.send(result.burst);
/// })?;
/// runner.call(|simulation| simulation.inject(&[(3, 1e6)]))??;
/// assert_eq!(bursts.recv().unwrap(), 1);
/// let stopped = runner.stop()?;
/// assert!(stopped.error.is_none());
/// # Ok(())
/// # }
/// ```
pub struct BurstRunner {
    commands: Sender<Command>,
    statistics: Arc<Mutex<RunnerStatistics>>,
    thread: Option<JoinHandle<StoppedRun>>,
}

/// The figures of a [`BurstRunner`].
#[derive(Debug, Clone, Default)]
pub struct RunnerStatistics {
    /// Bursts done.
    pub bursts: u64,
    /// Bursts that began after their time because the one before took too long.
    pub late: u64,
    /// Time spent in bursts.
    pub busy: Duration,
    /// The longest burst.
    pub longest: Duration,
    /// The error that ended the run.
    pub error: Option<Error>,
}

/// The simulation of a runner that has stopped.
pub struct StoppedRun {
    /// The simulation, after its last finished burst.
    pub simulation: Simulation,
    /// The error that ended the run, if one did.
    pub error: Option<Error>,
}

impl BurstRunner {
    /// Starts a thread that runs `frequency` bursts a second, or as many as it can without one, and calls `on_burst` after
    /// each.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a frequency that is not above 0, or if the thread cannot be started.
    pub fn start(
        simulation: Simulation,
        frequency: Option<f64>,
        on_burst: impl FnMut(&BurstResult) + Send + 'static,
    ) -> Result<BurstRunner> {
        let period = period_of(frequency)?;
        let (commands, received) = channel();
        let statistics = Arc::new(Mutex::new(RunnerStatistics::default()));
        let shared = statistics.clone();
        let run = move || run(simulation, period, &received, &shared, on_burst);
        let thread = std::thread::Builder::new()
            .name("burst runner".to_owned())
            .spawn(run)
            .map_err(|error| Error::invalid("a burst runner", error, "a thread that can be started"))?;
        Ok(BurstRunner { commands, statistics, thread: Some(thread) })
    }

    /// Checks a frequency without a simulation.
    #[cfg(feature = "capi")]
    pub(crate) fn check_frequency(frequency: Option<f64>) -> Result<()> {
        period_of(frequency).map(drop)
    }

    /// Sets the frequency in bursts a second from the next burst on, none for as many as possible.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a frequency that is not above 0, or if the run has ended.
    pub fn set_frequency(&self, frequency: Option<f64>) -> Result<()> {
        self.send(Command::Period(period_of(frequency)?))
    }

    /// Pauses before the next burst. Calls are still served.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the run has ended.
    pub fn pause(&self) -> Result<()> {
        self.send(Command::Pause)
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the run has ended.
    pub fn resume(&self) -> Result<()> {
        self.send(Command::Resume)
    }

    /// Calls a function with the simulation between two bursts, and returns its result.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the run has ended.
    pub fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Simulation) -> R + Send + 'static,
    ) -> Result<R> {
        let answer = self.call_erased(Box::new(move |simulation| Box::new(call(simulation))))?;
        answer.downcast().map(|answer| *answer).map_err(|_| ended())
    }

    /// [`call`](Self::call) of any type of result, of which the library has one copy.
    fn call_erased(&self, call: Call) -> Result<Answer> {
        let (answer, answered) = channel();
        self.send(Command::Call(call, answer))?;
        answered.recv().map_err(|_| ended())
    }

    /// Returns the figures so far.
    pub fn statistics(&self) -> RunnerStatistics {
        self.statistics.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Stops after the burst in progress and returns the simulation.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the thread panicked in a function of the caller.
    pub fn stop(mut self) -> Result<StoppedRun> {
        // A thread that has ended by an error no longer receives.
        let _ = self.commands.send(Command::Stop);
        let joined = self.thread.take().map(JoinHandle::join);
        match joined {
            Some(Ok(stopped)) => Ok(stopped),
            _ => {
                Err(Error::invalid("a burst runner", "a panic of its thread", "functions that do not panic"))
            }
        }
    }

    fn send(&self, command: Command) -> Result<()> {
        self.commands.send(command).map_err(|_| ended())
    }
}

impl Drop for BurstRunner {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Neither a thread that has ended nor one that panicked needs more.
            let _ = self.commands.send(Command::Stop);
            let _ = thread.join();
        }
    }
}

fn ended() -> Error {
    Error::invalid("a burst runner", "a run that has ended", "BurstRunner::stop for its simulation and error")
}

fn period_of(frequency: Option<f64>) -> Result<Duration> {
    match frequency {
        None => Ok(Duration::ZERO),
        Some(frequency) => {
            Duration::try_from_secs_f64(1.0 / frequency).ok().filter(|_| frequency > 0.0).ok_or_else(|| {
                let wanted = "a frequency above 0 whose period can be counted";
                Error::invalid("a burst runner", format!("{frequency} bursts a second"), wanted)
            })
        }
    }
}

fn run(
    mut simulation: Simulation,
    mut period: Duration,
    commands: &Receiver<Command>,
    statistics: &Mutex<RunnerStatistics>,
    mut on_burst: impl FnMut(&BurstResult),
) -> StoppedRun {
    let mut paused = false;
    let mut due = Instant::now();
    loop {
        // Waits for the next burst, or during a pause for ever, and serves commands meanwhile.
        let command = if paused {
            commands.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            match due.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero()) {
                None => commands.try_recv(),
                Some(wait) => commands.recv_timeout(wait).map_err(|error| match error {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                }),
            }
        };
        match command {
            Ok(Command::Call(call, answer)) => {
                // The caller may have ended; nobody waits for the answer then.
                let _ = answer.send(call(&mut simulation));
            }
            Ok(Command::Period(new)) => (period, due) = (new, Instant::now()),
            Ok(Command::Pause) => paused = true,
            Ok(Command::Resume) => (paused, due) = (false, Instant::now()),
            Ok(Command::Stop) | Err(TryRecvError::Disconnected) => {
                return StoppedRun { simulation, error: None };
            }
            Err(TryRecvError::Empty) => {
                let begun = Instant::now();
                let result = simulation.run_burst();
                let took = begun.elapsed();
                {
                    let mut statistics = statistics.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    match &result {
                        Ok(_) => {
                            statistics.bursts += 1;
                            statistics.busy += took;
                            statistics.longest = statistics.longest.max(took);
                        }
                        Err(error) => statistics.error = Some(error.clone()),
                    }
                    due = due.checked_add(period).unwrap_or(due);
                    if !period.is_zero() && due < Instant::now() {
                        statistics.late += 1;
                    }
                }
                // Time that is lost is not made up for.
                due = due.max(Instant::now());
                match result {
                    Ok(result) => on_burst(&result),
                    Err(error) => return StoppedRun { simulation, error: Some(error) },
                }
            }
        }
    }
}
