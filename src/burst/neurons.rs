//! Neurons as a structure of arrays, and the constants that a backend computes with.

use crate::{Error, Result};

const OPERATION: &str = "the neurons of a network";

/// The neuron parameters of a network, one array per field, one element per neuron.
///
/// [`Neurons::new`] fills every field with its default; callers then write the fields that differ. All arrays must keep the
/// same length. [`Network::from_arrays`](super::Network::from_arrays) validates the values.
///
/// ```
/// use selvedge::burst::Neurons;
///
/// let mut neurons = Neurons::new(3);
/// neurons.threshold[2] = 50.0;
/// neurons.refractory.fill(2);
/// assert_eq!(neurons.len(), 3);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Neurons {
    /// Lower edge of the firing window. Default 1.
    pub threshold: Vec<f32>,
    /// Upper edge of the firing window, infinite for none. Default infinite.
    pub threshold_max: Vec<f32>,
    /// Fraction of the distance from rest that is lost per burst in which the neuron is touched, 0 to 1. Default 0.1.
    pub leak: Vec<f32>,
    /// Resting potential: leak goal, reset value and start value. Default 0.
    pub rest: Vec<f32>,
    /// Touched bursts for which the neuron is blocked after a spike. Default 0.
    pub refractory: Vec<u16>,
    /// Probability, 0 to 1, of a spike once the potential is inside the window. Default 1.
    pub excitability: Vec<f32>,
    /// Consecutive spikes after which the neuron must pause, 0 for no limit. Default 0.
    pub fire_limit: Vec<u16>,
    /// Additional blocked bursts once the consecutive-fire limit is reached. Default 0.
    pub snooze: Vec<u16>,
    /// True: the potential accumulates over bursts. False: every burst starts at rest. Default true.
    pub accumulates: Vec<bool>,
    /// 0 excitatory, 1 inhibitory. For information: a synapse's own kind decides its sign. Default 0.
    pub kind: Vec<u8>,
    /// Index of the neuron's area in the network's list of areas. Default 0.
    pub area: Vec<u32>,
    /// Coordinates in the area: x, y, z. Default 0.
    pub position: Vec<[u32; 3]>,
}

impl Neurons {
    /// Returns `count` neurons with default parameters.
    ///
    /// As with `vec!`, the process ends if there is no memory for them:
    /// [`check_host_memory`](super::check_host_memory) checks a count of others before.
    pub fn new(count: usize) -> Neurons {
        Neurons {
            threshold: vec![1.0; count],
            threshold_max: vec![f32::INFINITY; count],
            leak: vec![0.1; count],
            rest: vec![0.0; count],
            refractory: vec![0; count],
            excitability: vec![1.0; count],
            fire_limit: vec![0; count],
            snooze: vec![0; count],
            accumulates: vec![true; count],
            kind: vec![0; count],
            area: vec![0; count],
            position: vec![[0; 3]; count],
        }
    }

    /// Returns the number of neurons.
    pub fn len(&self) -> usize {
        self.threshold.len()
    }

    /// Returns true if there are no neurons.
    pub fn is_empty(&self) -> bool {
        self.threshold.is_empty()
    }

    /// Checks that all arrays have the same length.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub(super) fn check_lengths(&self) -> Result<()> {
        let wanted = self.len();
        let lengths = [
            self.threshold_max.len(),
            self.leak.len(),
            self.rest.len(),
            self.refractory.len(),
            self.excitability.len(),
            self.fire_limit.len(),
            self.snooze.len(),
            self.accumulates.len(),
            self.kind.len(),
            self.area.len(),
            self.position.len(),
        ];
        match lengths.iter().find(|&&length| length != wanted) {
            Some(&found) => Err(Error::LengthMismatch { operation: OPERATION, wanted, found }),
            None => Ok(()),
        }
    }

    /// Checks every value of a neuron of a network with so many areas, and returns its constants, without its area's flags.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the neuron, the field and the value.
    pub(super) fn checked(&self, id: usize, areas: usize) -> Result<NeuronParameters> {
        let parameters = self.parameters_of(id, &format_args!("neuron {id}"))?;
        let (kind, area) = (self.kind[id], self.area[id]);
        if kind > 1 {
            return Err(Error::invalid(OPERATION, format!("kind {kind} of neuron {id}"), "0 or 1"));
        }
        if area as usize >= areas {
            let found = format!("area {area} of neuron {id}");
            return Err(Error::invalid(OPERATION, found, format!("an area below {areas}")));
        }
        Ok(parameters)
    }

    /// Checks the values of one neuron and returns its constants, without its area's flags. `owner` names the neuron in
    /// errors.
    pub(super) fn parameters_of(&self, id: usize, owner: &dyn std::fmt::Display) -> Result<NeuronParameters> {
        let check = |field: &str, value: f32, allowed: bool, wanted: &str| {
            if allowed {
                return Ok(());
            }
            Err(Error::invalid(OPERATION, format!("{field} {value} of {owner}"), wanted))
        };
        let threshold_max = self.threshold_max[id];
        check("threshold", self.threshold[id], !self.threshold[id].is_nan(), "a number")?;
        check(
            "threshold_max",
            threshold_max,
            !threshold_max.is_nan(),
            "a number, or infinity for no upper edge",
        )?;
        check("leak", self.leak[id], (0.0..=1.0).contains(&self.leak[id]), "0 to 1")?;
        check("rest", self.rest[id], self.rest[id].is_finite(), "a finite number")?;
        let excitability = self.excitability[id];
        check("excitability", excitability, (0.0..=1.0).contains(&excitability), "0 to 1")?;
        Ok(self.parameters(id))
    }

    /// Returns the constants of one neuron, without its area's flags.
    fn parameters(&self, id: usize) -> NeuronParameters {
        let (chance, always) = firing_chance(self.excitability[id]);
        let mut flags = 0;
        if self.accumulates[id] {
            flags |= NeuronParameters::ACCUMULATES;
        }
        if always {
            flags |= NeuronParameters::ALWAYS_FIRES;
        }
        NeuronParameters {
            threshold: self.threshold[id],
            threshold_max: self.threshold_max[id],
            decay: 1.0 - self.leak[id],
            rest: self.rest[id],
            chance,
            area: self.area[id],
            refractory: self.refractory[id],
            fire_limit: self.fire_limit[id],
            snooze: self.snooze[id],
            flags,
        }
    }
}

/// Returns the 32-bit bound below which a draw makes the neuron fire, and true where every draw does.
fn firing_chance(excitability: f32) -> (u32, bool) {
    if excitability >= 0.999 {
        (u32::MAX, true)
    } else if excitability <= 0.0 {
        (0, false)
    } else {
        // Exact: a f32 below 1 times 2^32 is a f64 below 2^32.
        ((f64::from(excitability) * 4_294_967_296.0) as u32, false)
    }
}

/// The constants of one neuron as backends use them: 32 bytes, two 16-byte loads on a device.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(16))]
pub struct NeuronParameters {
    /// Lower edge of the firing window.
    pub threshold: f32,
    /// Upper edge of the firing window.
    pub threshold_max: f32,
    /// `1 - leak`: the part of the distance from rest that remains.
    pub decay: f32,
    /// Resting potential.
    pub rest: f32,
    /// Inside the window the neuron fires if its draw is below this, or if [`ALWAYS_FIRES`](Self::ALWAYS_FIRES) is set.
    pub chance: u32,
    /// The neuron's area.
    pub area: u32,
    /// Blocked bursts after a spike.
    pub refractory: u16,
    /// Consecutive-fire limit, 0 for none.
    pub fire_limit: u16,
    /// Additional blocked bursts at the limit.
    pub snooze: u16,
    /// The flags below, combined.
    pub flags: u16,
}

impl NeuronParameters {
    /// The potential accumulates over bursts.
    pub const ACCUMULATES: u16 = 1;
    /// The neuron fires whatever its draw is: its bound is 2^32.
    pub const ALWAYS_FIRES: u16 = 2;
    /// As a source: each contribution is divided by the number of outgoing synapses, toward zero.
    pub const SHARES: u16 = 4;
    /// As a source: the PSP of each synapse is the potential at which the neuron fired, rounded and limited to 0..=255.
    pub const POTENTIAL_DRIVEN: u16 = 8;

    /// Returns the constants of a slot that is not in use: no potential is inside the window, and an update without input changes
    /// nothing.
    pub(super) const fn of_removed(area: u32) -> NeuronParameters {
        NeuronParameters {
            threshold: f32::INFINITY,
            threshold_max: f32::NEG_INFINITY,
            decay: 1.0,
            rest: 0.0,
            chance: 0,
            area,
            refractory: 0,
            fire_limit: 0,
            snooze: 0,
            flags: NeuronParameters::ACCUMULATES,
        }
    }

    /// Returns true if a flag is set.
    #[inline]
    pub const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

// SAFETY: plain numbers; all zeros is a value.
unsafe impl bytemuck::Zeroable for NeuronParameters {}
// SAFETY: repr(C) of six 4-byte and four 2-byte numbers: 32 bytes, a multiple of the alignment, without padding.
unsafe impl bytemuck::Pod for NeuronParameters {}

/// Checks that ids are neurons.
pub(super) fn check_ids(mut ids: impl Iterator<Item = u32>, neurons: usize) -> Result<()> {
    match ids.find(|&id| id as usize >= neurons) {
        None => Ok(()),
        Some(id) => Err(Error::invalid(
            "the neurons of a burst",
            format!("id {id}"),
            format!("an id below {neurons}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firing_chances_have_no_float_comparison_left() {
        assert_eq!(firing_chance(1.0), (u32::MAX, true));
        assert_eq!(firing_chance(0.999), (u32::MAX, true));
        assert_eq!(firing_chance(0.5), (1 << 31, false));
        assert_eq!(firing_chance(0.0), (0, false));
        assert!(!firing_chance(0.998_999_95).1);
    }
}
