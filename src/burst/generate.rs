//! The generated networks G and S, defined by hashes alone, with the input that drives them.

use super::backend::Injection;
use super::cuda::InjectionPattern;
use super::draw::pcg;
use super::host_memory::check_generated;
use super::network::Network;
use super::neurons::Neurons;
use super::synapses::{MAX_NEURONS, SynapseArrays};
use crate::threads::{in_units, thread_count};
use crate::{Error, Result};

/// A network that every machine generates alike.
///
/// ```
/// use selvedge::burst::GeneratedNetwork;
///
/// # fn main() -> selvedge::Result<()> {
/// let g = GeneratedNetwork::g(1000, 20);
/// assert_eq!(g.network()?.synapses().len(), 20_000);
/// assert_eq!(g.injections(1).len(), 16);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratedNetwork {
    kind: GeneratedKind,
    neurons: u32,
    degree: u32,
    every: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GeneratedKind {
    Varied,
    Steady,
}

impl GeneratedNetwork {
    /// Returns network G: varied parameters of every kind, `degree` synapses a neuron. For tests of equality.
    pub fn g(neurons: u32, degree: u32) -> GeneratedNetwork {
        GeneratedNetwork { kind: GeneratedKind::Varied, neurons, degree, every: 50 }
    }

    /// Returns network S: one neuron in `every` fires in each burst for ever. For timing. The synapses alone hold a neuron at
    /// `25 * degree / every` on average, so with `degree` above some 30 times `every` they pass its threshold of 1000, and
    /// soon every neuron fires.
    pub fn s(neurons: u32, degree: u32, every: u32) -> GeneratedNetwork {
        GeneratedNetwork { kind: GeneratedKind::Steady, neurons, degree, every: every.max(1) }
    }

    /// Returns the number of neurons.
    pub fn neurons(&self) -> u32 {
        self.neurons
    }

    /// Returns the number of synapses of each neuron.
    pub fn degree(&self) -> u32 {
        self.degree
    }

    /// Returns true for a network S.
    pub(super) fn is_steady(&self) -> bool {
        self.kind == GeneratedKind::Steady
    }

    /// Returns the input of every burst.
    pub fn pattern(&self) -> InjectionPattern {
        let thousandths = if self.is_steady() { 2_000_000 } else { 150_500 };
        InjectionPattern { base: 100, modulus: self.every, thousandths }
    }

    /// Returns the input of a burst.
    pub fn injections(&self, burst: u64) -> Vec<Injection> {
        let InjectionPattern { base, thousandths, .. } = self.pattern();
        let column = (burst as u32).wrapping_add(base);
        let injected = |id: &u32| hash(*id, column).is_multiple_of(self.every);
        (0..self.neurons).filter(injected).map(|id| Injection { id, thousandths }).collect()
    }

    /// Generates the network on all processors.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more than 2^31 neurons or synapses that the host cannot count; [`Error::OutOfMemory`].
    pub fn network(&self) -> Result<Network> {
        let (neurons, degree) = (self.neurons as usize, self.degree as usize);
        let count = neurons.checked_mul(degree).filter(|_| neurons <= MAX_NEURONS).ok_or_else(|| {
            Error::invalid("a generated network", format!("{neurons} neurons"), "at most 2^31 neurons")
        })?;
        check_generated(neurons as u64, count as u64)?;
        let (weights, psps, inhibitory) = match self.kind {
            GeneratedKind::Varied => (12, 16, 5),
            GeneratedKind::Steady => (4, 4, 4),
        };
        let source = generate(count, &|at| (at / degree) as u32);
        let target = generate(count, &|at| hash(at as u32, 10) % self.neurons);
        let weight = generate(count, &|at| (1 + hash(at as u32, 11) % weights) as u8);
        let psp = generate(count, &|at| (1 + hash(at as u32, 12) % psps) as u8);
        let kind = generate(count, &|at| u8::from(hash(at as u32, 13).is_multiple_of(inhibitory)));
        let arrays =
            SynapseArrays { source: &source, target: &target, weight: &weight, psp: &psp, kind: &kind };
        Network::from_arrays(self.neuron_parameters(), &arrays)
    }

    fn neuron_parameters(&self) -> Neurons {
        let mut neurons = Neurons::new(self.neurons as usize);
        if self.kind == GeneratedKind::Steady {
            neurons.threshold.fill(1000.0);
            neurons.leak.fill(0.125);
            return neurons;
        }
        for at in 0..neurons.len() {
            let column = |column| hash(at as u32, column);
            neurons.threshold[at] = (40 + column(1) % 160) as f32;
            neurons.leak[at] = (column(2) % 4) as f32 / 8.0;
            neurons.rest[at] = (column(3) % 3) as f32 / 2.0;
            neurons.refractory[at] = (column(4) % 4) as u16;
            neurons.excitability[at] = if column(5) % 4 == 0 { 0.75 } else { 1.0 };
            neurons.fire_limit[at] = if column(6) % 3 == 2 { 3 } else { 0 };
            neurons.snooze[at] = (column(7) % 5) as u16;
            neurons.accumulates[at] = column(8) % 2 == 0;
            neurons.threshold_max[at] = if column(9) % 8 == 0 { 400.0 } else { f32::INFINITY };
        }
        neurons
    }
}

/// The hash of two numbers by which the networks are defined.
const fn hash(i: u32, j: u32) -> u32 {
    pcg(i ^ pcg(j))
}

/// Fills an array by index, in several threads.
fn generate<T: Copy + Default + Send>(count: usize, element: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    const ELEMENTS_OF_A_CHUNK: usize = 1 << 16;
    // `vec!` leaves the pages to the threads.
    let mut array = vec![T::default(); count];
    in_units(thread_count(), ELEMENTS_OF_A_CHUNK, &mut array, |first, chunk| {
        chunk.iter_mut().enumerate().for_each(|(at, value)| *value = element(first + at));
    });
    array
}
