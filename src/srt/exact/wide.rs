//! [`Wide`], an integer of any size with the few operations that comparisons and roundings need.

use std::cmp::Ordering;

/// An integer. The magnitude has 64 bits a limb, lowest first, and no zero limb at its end; zero is not negative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wide {
    negative: bool,
    magnitude: Vec<u64>,
}

impl Wide {
    fn new(negative: bool, mut magnitude: Vec<u64>) -> Wide {
        while magnitude.last() == Some(&0) {
            magnitude.pop();
        }
        Wide { negative: negative && !magnitude.is_empty(), magnitude }
    }

    pub(super) fn product(&self, other: &Wide) -> Wide {
        let mut limbs = vec![0u64; self.magnitude.len() + other.magnitude.len()];
        for (at, x) in self.magnitude.iter().enumerate() {
            let mut carry = 0;
            let targets = limbs.iter_mut().skip(at);
            for (limb, y) in targets.zip(other.magnitude.iter().chain([&0])) {
                let sum = u128::from(*x) * u128::from(*y) + u128::from(*limb) + carry;
                (*limb, carry) = (sum as u64, sum >> 64);
            }
        }
        Wide::new(self.negative != other.negative, limbs)
    }

    pub(super) fn negated(&self) -> Wide {
        Wide::new(!self.negative, self.magnitude.clone())
    }

    pub(super) fn sum(&self, other: &Wide) -> Wide {
        let by_size = compared(&self.magnitude, &other.magnitude);
        let (large, small) = if by_size == Ordering::Less { (other, self) } else { (self, other) };
        let subtracts = self.negative != other.negative;
        let mut carry = false;
        let mut limbs = Vec::with_capacity(large.magnitude.len() + 1);
        for (at, x) in large.magnitude.iter().enumerate() {
            let y = small.magnitude.get(at).copied().unwrap_or(0);
            let step = if subtracts { u64::overflowing_sub } else { u64::overflowing_add };
            let (partial, first) = step(*x, y);
            let (limb, second) = step(partial, u64::from(carry));
            limbs.push(limb);
            carry = first || second;
        }
        limbs.push(u64::from(carry));
        Wide::new(large.negative, limbs)
    }

    /// Returns -1, 0 or 1.
    pub(super) fn sign(&self) -> i32 {
        match (self.magnitude.is_empty(), self.negative) {
            (true, _) => 0,
            (_, true) => -1,
            _ => 1,
        }
    }

    /// Returns the nearest f64, ties to even. The magnitude is below 2^960.
    pub(super) fn to_f64(&self) -> f64 {
        // The highest three limbs have at least 129 bits. All below count as one bit, which decides ties as they would.
        let start = self.magnitude.len().saturating_sub(3);
        let (rest, high) = self.magnitude.split_at(start);
        let limb = |at: usize| u128::from(high.get(at).copied().unwrap_or(0));
        let (low, top) = (limb(0), limb(2) << 64 | limb(1));
        let sticky = u128::from(rest.iter().any(|limb| *limb != 0));
        let value = if top >> 64 == 0 {
            // Two limbs at most.
            (top << 64 | low) as f64
        } else {
            (top | u128::from(low != 0) | sticky) as f64 * 2f64.powi(64)
        };
        let value = value * 2f64.powi(64 * start as i32);
        if self.negative { -value } else { value }
    }
}

impl From<i128> for Wide {
    fn from(number: i128) -> Wide {
        let magnitude = number.unsigned_abs();
        Wide::new(number < 0, vec![magnitude as u64, (magnitude >> 64) as u64])
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Wide) -> Ordering {
        self.sum(&other.negated()).sign().cmp(&0)
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Wide) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares magnitudes.
fn compared(x: &[u64], y: &[u64]) -> Ordering {
    x.len().cmp(&y.len()).then_with(|| x.iter().rev().cmp(y.iter().rev()))
}
