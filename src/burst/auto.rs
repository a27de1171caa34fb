//! The backend that chooses between the CPU and a CUDA device by measuring both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::backend::{Backend, BurstResult, Injection, WeightChange};
use super::network::Network;
use super::neurons::NeuronParameters;
use super::state::{NetworkState, Spike};
use crate::{Error, Result};

/// Bursts with events or input that are measured before the choice.
const MEASURED_BURSTS: u32 = 8;

/// A backend that runs the first bursts of a network on two backends and goes on with the faster one.
///
/// Both give the same results bit for bit, so the choice changes no result; it is logged. The measurement counts bursts that
/// have input or events, and leaves out the first of them, which pays for what is done once. Later calls of
/// [`load`](Backend::load) measure again.
///
/// ```
/// use std::sync::Arc;
/// use selvedge::burst::{Auto, Backend, Cpu, GeneratedNetwork};
///
/// # fn main() -> selvedge::Result<()> {
/// let generated = GeneratedNetwork::g(1000, 20);
/// let one_thread = Box::new(Cpu::with_threads(1));
/// let mut auto = Auto::new(Box::new(Cpu::new()), one_thread);
/// auto.load(&Arc::new(generated.network()?), 7)?;
/// for burst in 1..=12 {
///     auto.inject(&generated.injections(burst))?;
///     auto.run_burst()?;
/// }
/// assert!(auto.chosen().is_some());
/// # Ok(())
/// # }
/// ```
pub struct Auto {
    backends: [Box<dyn Backend>; 2],
    measured: u32,
    times: [Duration; 2],
    chosen: Option<usize>,
}

impl Auto {
    /// Returns a backend that chooses between these two.
    pub fn new(one: Box<dyn Backend>, other: Box<dyn Backend>) -> Auto {
        Auto { backends: [one, other], measured: 0, times: [Duration::ZERO; 2], chosen: None }
    }

    /// Returns the name of the chosen backend, or None while both are measured.
    pub fn chosen(&self) -> Option<String> {
        self.chosen.map(|chosen| self.backends[chosen].name())
    }

    /// The backends in use.
    fn in_use(&mut self) -> &mut [Box<dyn Backend>] {
        match self.chosen {
            Some(chosen) => &mut self.backends[chosen..=chosen],
            None => &mut self.backends,
        }
    }

    fn for_each(&mut self, mut work: impl FnMut(&mut dyn Backend) -> Result<()>) -> Result<()> {
        self.in_use().iter_mut().try_for_each(|backend| work(&mut **backend))
    }

    /// Runs a burst on both.
    fn measure_burst(&mut self) -> Result<BurstResult> {
        let mut results = Vec::with_capacity(2);
        let mut times = [Duration::ZERO; 2];
        for (backend, time) in self.backends.iter_mut().zip(&mut times) {
            let start = Instant::now();
            results.push(backend.run_burst()?);
            *time = start.elapsed();
        }
        let (Some(second), Some(first)) = (results.pop(), results.pop()) else {
            return Err(Error::invalid("a burst", "no result", "one of each backend"));
        };
        if first != second {
            let found = format!(
                "burst {} differs on {} and {}",
                first.burst,
                self.backends[0].name(),
                self.backends[1].name()
            );
            return Err(Error::invalid("choosing a backend", found, "equal results"));
        }
        if first.counts.candidates > 0 {
            if self.measured > 0 {
                self.times[0] += times[0];
                self.times[1] += times[1];
            }
            self.measured += 1;
        }
        if self.measured > MEASURED_BURSTS {
            self.choose();
        }
        Ok(first)
    }

    fn choose(&mut self) {
        let chosen = usize::from(self.times[1] < self.times[0]);
        let of_burst = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(MEASURED_BURSTS);
        log::info!(
            "burst: {} goes on: {:.3} ms a burst, and {:.3} ms on {}",
            self.backends[chosen].name(),
            of_burst(self.times[chosen]),
            of_burst(self.times[1 - chosen]),
            self.backends[1 - chosen].name()
        );
        self.chosen = Some(chosen);
    }
}

impl Backend for Auto {
    fn name(&self) -> String {
        match self.chosen {
            Some(chosen) => self.backends[chosen].name(),
            None => format!("{} or {}", self.backends[0].name(), self.backends[1].name()),
        }
    }

    fn can_be_lost(&self) -> bool {
        match self.chosen {
            Some(chosen) => self.backends[chosen].can_be_lost(),
            None => self.backends.iter().any(|backend| backend.can_be_lost()),
        }
    }

    fn load(&mut self, network: &Arc<Network>, seed: u32) -> Result<()> {
        (self.measured, self.times, self.chosen) = (0, [Duration::ZERO; 2], None);
        self.for_each(|backend| backend.load(network, seed))
    }

    fn reload(&mut self, network: &Arc<Network>, seed: u32) -> Result<()> {
        // The measurement and the choice stay: edits of a run would start them anew for ever.
        self.for_each(|backend| backend.reload(network, seed))
    }

    fn inject(&mut self, injections: &[Injection]) -> Result<()> {
        self.for_each(|backend| backend.inject(injections))
    }

    fn run_burst(&mut self) -> Result<BurstResult> {
        match self.chosen {
            Some(chosen) => self.backends[chosen].run_burst(),
            None => self.measure_burst(),
        }
    }

    fn run_bursts(&mut self, count: usize) -> Result<Vec<BurstResult>> {
        let mut results = Vec::new();
        while results.len() < count {
            match self.chosen {
                Some(chosen) => results.extend(self.backends[chosen].run_bursts(count - results.len())?),
                None => results.push(self.measure_burst()?),
            }
        }
        Ok(results)
    }

    fn set_dense(&mut self, dense: bool) -> Result<()> {
        self.for_each(|backend| backend.set_dense(dense))
    }

    fn set_fired(&mut self, fired: &[Spike]) -> Result<()> {
        self.for_each(|backend| backend.set_fired(fired))
    }

    fn state(&mut self) -> Result<NetworkState> {
        let chosen = self.chosen.unwrap_or(0);
        self.backends[chosen].state()
    }

    fn potentials(&mut self, ids: &[u32]) -> Result<Vec<f32>> {
        let chosen = self.chosen.unwrap_or(0);
        self.backends[chosen].potentials(ids)
    }

    fn set_state(&mut self, state: &NetworkState) -> Result<()> {
        self.for_each(|backend| backend.set_state(state))
    }

    fn set_parameters(&mut self, changes: &[(u32, NeuronParameters)]) -> Result<()> {
        self.for_each(|backend| backend.set_parameters(changes))
    }

    fn weights(&mut self) -> Result<Vec<u16>> {
        let chosen = self.chosen.unwrap_or(0);
        self.backends[chosen].weights()
    }

    fn set_weights(&mut self, changes: &[WeightChange]) -> Result<()> {
        self.for_each(|backend| backend.set_weights(changes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::{Cpu, GeneratedNetwork, SpikeHash};

    /// A CPU that takes longer.
    struct Slow(Cpu);

    impl Backend for Slow {
        fn name(&self) -> String {
            "slow".to_owned()
        }
        fn load(&mut self, network: &Arc<Network>, seed: u32) -> Result<()> {
            self.0.load(network, seed)
        }
        fn inject(&mut self, injections: &[Injection]) -> Result<()> {
            self.0.inject(injections)
        }
        fn run_burst(&mut self) -> Result<BurstResult> {
            std::thread::sleep(Duration::from_millis(30));
            self.0.run_burst()
        }
        fn set_dense(&mut self, dense: bool) -> Result<()> {
            self.0.set_dense(dense)
        }
        fn set_fired(&mut self, fired: &[Spike]) -> Result<()> {
            self.0.set_fired(fired)
        }
        fn state(&mut self) -> Result<NetworkState> {
            self.0.state()
        }
        fn set_state(&mut self, state: &NetworkState) -> Result<()> {
            self.0.set_state(state)
        }
        fn set_parameters(&mut self, changes: &[(u32, NeuronParameters)]) -> Result<()> {
            self.0.set_parameters(changes)
        }
        fn weights(&mut self) -> Result<Vec<u16>> {
            self.0.weights()
        }
        fn set_weights(&mut self, changes: &[WeightChange]) -> Result<()> {
            self.0.set_weights(changes)
        }
    }

    #[test]
    fn auto_goes_on_with_the_faster_backend_and_changes_no_result() {
        let generated = GeneratedNetwork::g(300, 10);
        let network = Arc::new(generated.network().unwrap());
        let mut auto = Auto::new(Box::new(Slow(Cpu::with_threads(1))), Box::new(Cpu::with_threads(1)));
        let mut cpu = Cpu::with_threads(1);
        for seed in [7, 8] {
            auto.load(&network, seed).unwrap();
            cpu.load(&network, seed).unwrap();
            let mut hashes = [SpikeHash::new(); 2];
            for burst in 1..=20 {
                // Nothing is measured before there is input.
                if burst > 3 {
                    auto.inject(&generated.injections(burst)).unwrap();
                    cpu.inject(&generated.injections(burst)).unwrap();
                }
                assert_eq!(auto.chosen().is_some(), burst > 12, "{burst}");
                hashes[0].add(burst, &auto.run_burst().unwrap().fired);
                hashes[1].add(burst, &cpu.run_burst().unwrap().fired);
            }
            assert_eq!(hashes[0], hashes[1]);
            assert_eq!(auto.chosen().unwrap(), cpu.name());
            assert_eq!(auto.state().unwrap(), cpu.state().unwrap());
            // Edits of a run keep the choice.
            auto.reload(&network, seed).unwrap();
            assert_eq!(auto.chosen().unwrap(), cpu.name());
        }
    }

    #[test]
    fn auto_refuses_backends_that_differ() {
        let generated = GeneratedNetwork::g(300, 10);
        let network = Arc::new(generated.network().unwrap());
        let (mut one, mut other) = (Cpu::with_threads(1), Cpu::with_threads(1));
        one.load(&network, 1).unwrap();
        other.load(&network, 1).unwrap();
        other.inject(&[Injection { id: 5, thousandths: 1_000_000 }]).unwrap();
        let mut auto = Auto::new(Box::new(one), Box::new(other));
        let error = auto.run_burst().unwrap_err();
        assert!(error.to_string().contains("burst 1 differs"), "{error}");
    }
}
