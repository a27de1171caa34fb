//! Own and reference in turns.
//!
//! A GPU's clocks, the host's caches and the neighbours of a machine all drift while a benchmark runs. Two blocks of
//! measurements, one a side, would see different machines; here each round measures both sides, and the side that
//! goes first changes every round, so that a drift, or being first, touches both alike.

use super::report::{Failure, Figure, Rule, Spread, Unit};

/// The order, in the words that the report shows.
pub const ORDER: &str = "alternating, own first in every other round";

/// How often to measure.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// Rounds whose figures are thrown away: first touches, caches, clocks that rise.
    pub warm_up: usize,
    /// Rounds that count, at least 20.
    pub rounds: usize,
}

/// The description of a figure.
pub struct Subject<'a> {
    /// The operation that is timed.
    pub name: &'a str,
    /// The reference's name.
    pub against: &'a str,
    /// The unit that both sides return.
    pub unit: Unit,
    /// Bytes that each side's operation moves, own first.
    pub bytes: Option<(u64, u64)>,
    /// How the sides are compared.
    pub rule: Rule,
    /// The goal of the comparison.
    pub goal: Option<f64>,
}

/// Measures both sides in turns; each returns one time in the subject's unit.
pub fn measure(
    turns: Turns,
    subject: &Subject,
    own: impl FnMut() -> Result<f64, Failure>,
    reference: impl FnMut() -> Result<f64, Failure>,
) -> Result<Figure, Failure> {
    figure(subject, &pairs(turns, own, reference)?)
}

/// The times (own, reference) of each round that counts.
pub fn pairs(
    turns: Turns,
    mut own: impl FnMut() -> Result<f64, Failure>,
    mut reference: impl FnMut() -> Result<f64, Failure>,
) -> Result<Vec<(f64, f64)>, Failure> {
    let mut pairs = Vec::with_capacity(turns.rounds);
    for round in 0..turns.warm_up + turns.rounds {
        let pair = if round % 2 == 0 {
            let first = own()?;
            (first, reference()?)
        } else {
            let first = reference()?;
            (own()?, first)
        };
        if round >= turns.warm_up {
            pairs.push(pair);
        }
    }
    Ok(pairs)
}

/// The figure of pairs (own, reference) that were measured in turns.
pub fn figure(subject: &Subject, pairs: &[(f64, f64)]) -> Result<Figure, Failure> {
    if pairs.is_empty() {
        return Err(format!("{}: no rounds", subject.name).into());
    }
    let side = |pick: fn(&(f64, f64)) -> f64| Spread::of(&pairs.iter().map(pick).collect::<Vec<_>>());
    let mut figure = Figure {
        name: subject.name.to_owned(),
        against: subject.against.to_owned(),
        unit: subject.unit,
        rounds: pairs.len(),
        order: ORDER.to_owned(),
        own: side(|pair| pair.0),
        reference: side(|pair| pair.1),
        own_bytes: subject.bytes.map(|bytes| bytes.0),
        reference_bytes: subject.bytes.map(|bytes| bytes.1),
        rule: subject.rule,
        comparison: Spread { lower: 0.0, median: 0.0, upper: 0.0 },
        goal: subject.goal,
        resolve_at: None,
        beside: None,
    };
    let compared: Vec<f64> = pairs.iter().map(|(own, reference)| figure.compare(*own, *reference)).collect();
    figure.comparison = Spread::of(&compared);
    Ok(figure)
}
