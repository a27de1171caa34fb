//! The bursts of a run, and its recovery on the CPU from a device that is lost on the way.

use selvedge::Error;
use selvedge::burst::{Cpu, Simulation};

use super::input::Input;
use crate::failure::{FAILED, Failure};
use crate::output::{Progress, Style, grouped};

/// Bursts between two updates of the progress bar.
const BURSTS_OF_A_STEP: u64 = 64;

/// A device that failed in mid-run.
#[derive(Debug)]
pub struct LostDevice {
    pub error: Error,
    /// The last burst that was finished there.
    pub after: u64,
}

/// Runs bursts in groups, each of which begins where there is input. After an error of the device the simulation is on the CPU
/// behind the last finished burst, where the run goes on if `goes_on`, and otherwise ends.
pub fn run_bursts(
    simulation: &mut Simulation,
    first: u64,
    last: u64,
    input: &Input,
    goes_on: bool,
) -> Result<Option<LostDevice>, Failure> {
    let progress = Progress::of_steps("bursts", last - first + 1);
    let (mut next, mut is_staged, mut lost) = (first, false, None);
    while next <= last {
        let following = input.bursts.range(next + 1..).next().map_or(last + 1, |(burst, _)| *burst);
        let end = following.min(next + BURSTS_OF_A_STEP).min(last + 1);
        let mut advance = || {
            if let Some(injections) = input.bursts.get(&next).filter(|_| !is_staged) {
                simulation.inject(injections)?;
            }
            is_staged = true;
            simulation.run(end - next)?;
            // A device that is lost right behind the last burst loses nothing either.
            if end > last { simulation.state().map(drop) } else { Ok(()) }
        };
        match advance() {
            Ok(()) => (next, is_staged) = (end, false),
            Err(error) => {
                let loss = recover(simulation, error)?;
                // The simulation keeps the input of a burst that was not finished.
                is_staged &= loss.after + 1 == next;
                next = loss.after + 1;
                let warning = format!(
                    "{} after burst {}: {}",
                    Style::of_stderr().error("warning: the device failed"),
                    grouped(loss.after),
                    loss.error
                );
                progress.suspend(|| eprintln!("{warning}"));
                lost = Some(loss);
                if !goes_on {
                    break;
                }
            }
        }
        progress.set(next - first);
    }
    Ok(lost)
}

/// Moves a simulation to the CPU after an error of its device. Other errors end the run.
fn recover(simulation: &mut Simulation, error: Error) -> Result<LostDevice, Failure> {
    let failure = Failure::from(error.clone());
    if failure.code != FAILED {
        return Err(failure);
    }
    let recovered = simulation.recover(Box::new(Cpu::new())).and_then(|()| simulation.state());
    match recovered {
        Ok(state) => Ok(LostDevice { error, after: state.burst }),
        Err(other) => {
            Err(Failure::failed(format!("{}; the run cannot continue on the CPU: {other}", failure.message)))
        }
    }
}

#[cfg(test)]
#[path = "../../../../tests/burst/losable.rs"]
mod losable;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use selvedge::burst::{Backend, GeneratedNetwork};

    use super::*;
    use losable::{BackendCall, Losable};

    /// Returns a device that is lost after so many calls. To load a network and to begin several bursts do not count.
    fn losable(mut calls: u64) -> Box<dyn Backend> {
        let before = move |call: BackendCall| {
            if matches!(call, BackendCall::Load | BackendCall::Bursts) {
                return Ok(());
            }
            calls = calls.checked_sub(1).ok_or(Error::ContextLost { device: 3, cause: "a fault".into() })?;
            Ok(())
        };
        Box::new(Losable { cpu: Cpu::with_threads(1), before })
    }

    /// Input in bursts 1, 2, 40, 41 and 150 of a run to burst 170.
    fn input(generated: &GeneratedNetwork) -> Input {
        let bursts = [1, 2, 40, 41, 150]
            .into_iter()
            .map(|burst| (burst, generated.injections(burst).iter().map(|one| (one.id, 150.5)).collect()));
        Input { bursts: bursts.collect(), ..Input::default() }
    }

    fn start(generated: &GeneratedNetwork, backend: Box<dyn Backend>) -> Simulation {
        let network = Arc::new(generated.network().unwrap());
        let mut simulation = Simulation::new(network, backend, 7).unwrap();
        simulation.record_spikes(true);
        simulation
    }

    #[test]
    fn a_run_whose_device_is_lost_in_any_call_goes_on_or_ends_complete() {
        let generated = GeneratedNetwork::g(200, 5);
        let input = input(&generated);
        let mut whole = start(&generated, Box::new(Cpu::with_threads(1)));
        assert!(run_bursts(&mut whole, 1, 170, &input, false).unwrap().is_none());
        let state = whole.state().unwrap();
        let (bursts, ids) = whole.spikes();
        let mut ends = Vec::new();
        for calls in 0.. {
            let mut simulation = start(&generated, losable(calls));
            let lost = run_bursts(&mut simulation, 1, 170, &input, true).unwrap();
            assert_eq!((simulation.spikes(), simulation.totals()), (whole.spikes(), whole.totals()));
            if lost.is_some() {
                assert_eq!(simulation.state().unwrap(), state);
            }

            let mut simulation = start(&generated, losable(calls));
            let Some(lost) = run_bursts(&mut simulation, 1, 170, &input, false).unwrap() else { break };
            assert!(matches!(lost.error, Error::ContextLost { device: 3, .. }));
            let done = bursts.partition_point(|burst| *burst <= lost.after);
            assert_eq!(simulation.spikes(), (&bursts[..done], &ids[..done]));
            assert_eq!(simulation.state().unwrap().burst, lost.after);
            ends.push(lost.after);
        }
        ends.dedup();
        assert!(ends.first() == Some(&0) && ends.last() == Some(&170) && ends.len() > 6, "{ends:?}");
    }

    #[test]
    fn input_that_is_refused_ends_the_run_as_bad_input() {
        let generated = GeneratedNetwork::g(200, 5);
        let mut simulation = start(&generated, losable(u64::MAX));
        let input = Input { bursts: [(3, vec![(0, 2e9)])].into(), ..Input::default() };
        let failure = run_bursts(&mut simulation, 1, 5, &input, true).unwrap_err();
        assert_eq!(failure.code, crate::failure::BAD_INPUT, "{}", failure.message);
    }
}
