//! One generation as tensor operations.

use std::sync::LazyLock;

use super::super::exact::{sum, value};
use super::super::noise::{Uniform, in_interval, index_from, noise_stream, word};
use super::super::operands::{check_devices, check_dtype};
use super::super::{
    GoldenTensor, PHI, argmax_syntony, gauss, h_phase_batch, resonant_d_phase_batch, snap, syntony,
};
use super::{Evolver, OPERATION};
use crate::error::{Error, Result};
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// The purposes of a generation's streams.
const MUTATION: u64 = 1;
const NOISE: u64 = 2;

/// Of 0, the stream and the scale: the mutation of each element of the candidates.
static MUTATIONS: LazyLock<Fused<3>> = LazyLock::new(|| {
    Fused::new(|[zero, seed, scale]| {
        let even = index_from(zero) * 2u64;
        let part = |index| (in_interval(word(seed, index), Uniform::HalfOpen) - 0.5) * scale;
        part(even) + part(even + 1u64) * PHI
    })
});
/// Of the parent and a snapped mutation: the value of their sum, NaN if i64 does not hold it. NaN makes the syntony of the whole
/// candidate NaN, which comes last in the order of survivors.
static CANDIDATES: LazyLock<Fused<4>> = LazyLock::new(|| {
    Fused::new(|[a, b, mutation_a, mutation_b]| {
        let ([a, a_overflows], [b, b_overflows]) = (sum(a, mutation_a), sum(b, mutation_b));
        a_overflows.logical_or(b_overflows).choose(f64::NAN, value(a, b))
    })
});
/// Of a survivor's syntonies before and after its phases: the score, NaN for a dropped candidate.
static SYNTONY_SCORES: LazyLock<Fused<2>> =
    LazyLock::new(|| Fused::new(|[before, after]| before.is_nan().choose(f64::NAN, after)));
/// Of these, the fitness and λ.
static SCORES: LazyLock<Fused<4>> = LazyLock::new(|| {
    Fused::new(|[before, after, fitness, lambda]| before.is_nan().choose(f64::NAN, fitness + after * lambda))
});
/// Of the winner's score and syntony, and the best syntony: the next best one, the winner's or NaN, and the acceptance.
static SYNTONIES: LazyLock<Fused<3, 3>> = LazyLock::new(|| {
    Fused::with_outputs(|[score, winner, best]| {
        let winner = score.is_nan().choose(f64::NAN, winner);
        let is_better = winner.gt(best);
        [is_better.choose(winner, best), winner, is_better]
    })
});
/// Of the acceptance, the winner and the best state.
static STATES: LazyLock<Fused<5, 2>> = LazyLock::new(|| {
    Fused::with_outputs(|[is_better, a, b, best_a, best_b]| {
        [is_better.choose(a, best_a), is_better.choose(b, best_b)]
    })
});

/// The state after a generation, on the device.
pub(super) struct NextState {
    pub best: GoldenTensor,
    pub best_syntony: Tensor,
    winner_syntony: Tensor,
    candidate: Tensor,
}

impl NextState {
    /// Returns the best syntony, the winner's or NaN, and the winner's position in the population. Waits for the device.
    pub fn numbers(&self) -> Result<[f64; 3]> {
        let candidate = self.candidate.cast(DType::F64)?;
        let numbers = Tensor::stack(&[&self.best_syntony, &self.winner_syntony, &candidate], 0)?;
        let numbers = numbers.to_vec::<f64>()?;
        let found = numbers.len();
        numbers.try_into().map_err(|_| Error::LengthMismatch { operation: OPERATION, wanted: 3, found })
    }
}

/// Runs the evolver's next generation.
pub(super) fn next(evolver: &Evolver) -> Result<NextState> {
    let Evolver { options, n2, best, best_syntony, .. } = evolver;
    let (device, n, generation) = (n2.device(), n2.count(), evolver.generation());
    let stream = |purpose| noise_stream(options.seed, generation, purpose);

    let shape = [options.population, n];
    let zero = Tensor::full(&[1, 1], 0u64, DType::U64, &device)?.expand(&shape)?;
    let mutations = snap(&MUTATIONS.run((&zero, stream(MUTATION), options.mutation_scale))?, options.bound)?;
    let candidates = CANDIDATES.run([best.a(), best.b(), mutations.a(), mutations.b()])?;

    let all = syntony(&candidates, n2)?;
    let survivors = options.survivors.min(options.population);
    let positions = all.neg()?.argsort(0, false)?.narrow(0, 0, survivors)?;
    let before = all.take_unchecked(&positions)?;
    let values = candidates.index_select_unchecked(0, &positions)?;

    let noise = gauss(stream(NOISE), 0, &[survivors, n], &device)?;
    let flux = resonant_d_phase_batch(&values, n2, &noise, &before, options.sigma)?;
    let points = snap(&h_phase_batch(&flux, n2, &before)?, options.bound)?;
    let values = points.values()?;
    let after = syntony(&values, n2)?;

    let scores = match &evolver.fitness {
        None => SYNTONY_SCORES.run([&before, &after])?,
        Some(fitness) => {
            let fitness = fitness(&values)?;
            check_fitness(&fitness, &after)?;
            SCORES.run((&before, &after, &fitness, options.lambda))?
        }
    };
    let (rank, score) = argmax_syntony(&scores)?;
    let (winner, candidate) = (after.take_unchecked(&rank)?, positions.take_unchecked(&rank)?);
    let [next_syntony, winner_syntony, is_better] = SYNTONIES.run_all([&score, &winner, best_syntony])?;
    let row = |of: &Tensor| of.index_select_unchecked(0, &rank)?.squeeze(0);
    let [a, b] = STATES.run_all([&is_better, &row(points.a())?, &row(points.b())?, best.a(), best.b()])?;
    Ok(NextState { best: GoldenTensor::new(a, b)?, best_syntony: next_syntony, winner_syntony, candidate })
}

fn check_fitness(fitness: &Tensor, wanted: &Tensor) -> Result<()> {
    check_dtype(OPERATION, DType::F64, fitness)?;
    check_devices(OPERATION, wanted, fitness)?;
    if fitness.shape() != wanted.shape() {
        let found = format!("a fitness of shape {}", fitness.shape());
        return Err(Error::invalid(
            OPERATION,
            found,
            format!("{}, a number for each survivor", wanted.shape()),
        ));
    }
    Ok(())
}
