//! The proof that packed sums do not overflow.

use super::layout::COUNT_BITS;
use crate::burst::backend::Injection;

/// Events of one neuron in one burst that a packed sum cannot count any more.
const EVENTS: u64 = 1 << COUNT_BITS;
/// The magnitude that a packed sum cannot hold any more.
const MAGNITUDE: u64 = 1 << (63 - COUNT_BITS);
/// The largest contribution of one synapse, in thousandths.
const MAX_CONTRIBUTION: u64 = 255 * 255 * 1000;

/// The most that one neuron can get in one burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub events: u64,
    /// In thousandths.
    pub magnitude: u64,
}

impl Bounds {
    /// Of synapses: `in_degree` end in one neuron, with a sum of magnitudes up to `largest` where that is known.
    pub(super) fn of_synapses(in_degree: u64, largest: Option<u64>) -> Bounds {
        let by_degree = in_degree.saturating_mul(MAX_CONTRIBUTION);
        Bounds { events: in_degree, magnitude: by_degree.min(largest.unwrap_or(u64::MAX)) }
    }

    /// Of a list of injections, which is sorted by neuron where their sum over all neurons could be too much.
    pub(super) fn of_injections(injections: &mut [Injection], beside: Bounds) -> Bounds {
        let all =
            injections.iter().fold(Bounds::default(), |sum, injection| sum + one(injection.thousandths));
        if (all + beside).fit() {
            return all;
        }
        injections.sort_unstable_by_key(|injection| injection.id);
        let of_neurons = injections.chunk_by(|one, next| one.id == next.id).map(|of_neuron| {
            of_neuron.iter().fold(Bounds::default(), |sum, injection| sum + one(injection.thousandths))
        });
        of_neurons.fold(Bounds::default(), |most, next| Bounds {
            events: most.events.max(next.events),
            magnitude: most.magnitude.max(next.magnitude),
        })
    }

    /// Of one injection into each neuron.
    pub(super) fn of_pattern(amplitude: i64) -> Bounds {
        one(amplitude)
    }

    /// Returns true if a packed sum holds it.
    pub(super) fn fit(&self) -> bool {
        self.events < EVENTS && self.magnitude < MAGNITUDE
    }
}

fn one(thousandths: i64) -> Bounds {
    Bounds { events: 1, magnitude: thousandths.unsigned_abs() }
}

impl std::ops::Add for Bounds {
    type Output = Bounds;

    fn add(self, other: Bounds) -> Bounds {
        Bounds {
            events: self.events.saturating_add(other.events),
            magnitude: self.magnitude.saturating_add(other.magnitude),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_sums_are_used_only_where_no_neuron_can_overflow_them() {
        let synapses = |in_degree, largest| Bounds::of_synapses(in_degree, largest);
        assert!(synapses(135_272, None).fit());
        assert!(!synapses(135_273, None).fit());
        assert!(synapses((1 << 20) - 1, Some(1000)).fit());
        assert!(!synapses(1 << 20, Some(1000)).fit());
        let injection = |id, thousandths| Injection { id, thousandths };
        // Together too much, but no neuron gets too much.
        let mut spread: Vec<_> = (0..10).rev().map(|id| injection(id, 1 << 42)).collect();
        assert!(Bounds::of_injections(&mut spread, Bounds::default()).fit());
        let mut one_neuron = [injection(3, 1 << 42), injection(1, 0), injection(3, -(1 << 42))];
        assert!(!Bounds::of_injections(&mut one_neuron, Bounds::default()).fit());
        let mut many = vec![injection(5, 0); 1 << 20];
        assert!(!Bounds::of_injections(&mut many, Bounds::default()).fit());
        assert_eq!(Bounds::of_pattern(-7), Bounds { events: 1, magnitude: 7 });
    }
}
