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

/// A goal, and the value at which it counts as reached in practice.
#[derive(Clone, Copy)]
pub struct Goal(pub f64, pub f64);

/// Measures both sides in turns; each returns one time in the subject's unit.
pub fn measure(
    turns: Turns,
    subject: &Subject,
    own: impl FnMut() -> Result<f64, Failure>,
    reference: impl FnMut() -> Result<f64, Failure>,
) -> Result<Figure, Failure> {
    figure(subject, &pairs(turns, own, reference)?)
}

/// The times (own, reference) of each round.
pub type Times = Vec<(f64, f64)>;

/// The times (own, reference) of each round that counts.
pub fn pairs(
    turns: Turns,
    mut own: impl FnMut() -> Result<f64, Failure>,
    mut reference: impl FnMut() -> Result<f64, Failure>,
) -> Result<Times, Failure> {
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
        operations: None,
        beside: None,
    };
    let compared: Vec<f64> = pairs.iter().map(|(own, reference)| figure.compare(*own, *reference)).collect();
    figure.comparison = Spread::of(&compared);
    Ok(figure)
}

/// The figure of pairs of microseconds (own, reference), compared as speeds.
pub fn speed(name: &str, against: &str, pairs: &[(f64, f64)], goal: Option<Goal>) -> Result<Figure, Failure> {
    let subject = Subject {
        name,
        against,
        unit: Unit::Microseconds,
        bytes: None,
        rule: Rule::Speed,
        goal: goal.map(|goal| goal.0),
    };
    let mut figure = figure(&subject, pairs)?;
    figure.resolve_at = goal.map(|goal| goal.1);
    Ok(figure)
}

/// The geometric mean of the pairs of several measurements, round by round.
pub fn geometric_mean(all: &[Times]) -> Times {
    let rounds = all.iter().map(Vec::len).min().unwrap_or(0);
    let root = |sum: f64| (sum / all.len() as f64).exp();
    (0..rounds)
        .map(|round| {
            let logarithms = all.iter().map(|pairs| (pairs[round].0.ln(), pairs[round].1.ln()));
            let (own, reference) = logarithms.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
            (root(own), root(reference))
        })
        .collect()
}
