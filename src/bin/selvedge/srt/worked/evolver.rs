//! The evolver: section 15.

use std::sync::{Arc, Mutex, PoisonError};

use selvedge::srt::{
    Evolver, EvolverOptions, GoldenTensor, PHI, Uniform, noise_stream, snap, syntony, uniform_noise,
};
use selvedge::{DType, Result, Tensor};

use super::{Case, CaseDevice, Class, Numbers, numbers, on_device, vector};

const SEED: u64 = 2024;
const POPULATION: usize = 4;
const SCALE: f64 = 0.5;
const BOUND: i64 = 10;

/// The parent.
fn state(device: &CaseDevice) -> Result<GoldenTensor> {
    snap(&vector(device, &[1.0, 0.5, -0.25, 0.125])?, BOUND)
}

fn evolver(device: &CaseDevice) -> Result<Evolver> {
    let options = EvolverOptions {
        seed: SEED,
        population: POPULATION,
        survivors: 2,
        mutation_scale: SCALE,
        bound: BOUND,
        ..EvolverOptions::default()
    };
    Evolver::new(&state(device)?, None, options)
}

/// The evolver of the worked example after one generation.
fn evolved(device: &CaseDevice) -> Result<(Evolver, (usize, f64))> {
    let mut evolver = evolver(device)?;
    // Without a winner the numbers are wrong, and the case fails.
    let winner = evolver.step()?.winner.unwrap_or((usize::MAX, f64::NAN));
    Ok((evolver, winner))
}

/// The syntonies of the candidates, mutated by the first step of the definition.
fn candidates(device: &CaseDevice) -> Result<Numbers> {
    let words = noise_stream(SEED, 0, 1);
    let u = uniform_noise(words, 0, Uniform::HalfOpen, &[POPULATION, 4, 2], device)?.sub(0.5)?.mul(SCALE)?;
    let mutations = u.select(-1, 0)?.add(&u.select(-1, 1)?.mul(PHI)?)?;
    let candidates = snap(&mutations, BOUND)?.add(&state(device)?)?.check()?;
    numbers([&syntony(&candidates.values()?, &norms(device)?)?])
}

fn norms(device: &CaseDevice) -> Result<Tensor> {
    vector(device, &[0.0, 1.0, 4.0, 9.0])
}

/// The values of the survivors after their phases and snapping, as a fitness of 0 sees them.
fn survivors(device: &CaseDevice) -> Result<Tensor> {
    let seen = Arc::new(Mutex::new(Tensor::zeros(&[0, 4], DType::F64, device)?));
    let here = seen.clone();
    let mut evolver = evolver(device)?.with_fitness(move |values| {
        *here.lock().unwrap_or_else(PoisonError::into_inner) = values.clone();
        Tensor::zeros(&[values.shape()[0]], DType::F64, &values.device())
    });
    evolver.step()?;
    let values = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(values)
}

pub fn cases() -> Vec<Case> {
    vec![
        on_device(
            "evolver, candidates",
            "15",
            Class::T3(4),
            candidates,
            vec![0.8491446136099946, 0.620158462030091, 0.8745681152888314, 0.8025216168566947],
        ),
        on_device(
            "evolver, survivors",
            "15",
            Class::T4,
            |d| {
                let points = snap(&survivors(d)?, BOUND)?;
                numbers([points.a(), points.b()])
            },
            vec![-5i128, 10, -10, 0, 4, 2, 8, 0, 4, -6, 6, 0, -2, -1, -5, 0],
        ),
        on_device(
            "evolver, syntonies of the survivors",
            "15",
            Class::T3(4),
            |d| numbers([&syntony(&survivors(d)?, &norms(d)?)?]),
            vec![0.9498561748020578, 0.8987245154119954],
        ),
        on_device(
            "evolver, history and winner",
            "15",
            Class::T4,
            |d| {
                let (evolver, (position, syntony)) = evolved(d)?;
                let mut found = evolver.history().to_vec();
                found.extend([position as f64, syntony]);
                Ok(Numbers::Floats(found))
            },
            vec![0.8653840969630858, 0.9498561748020578, 2.0, 0.9498561748020578],
        ),
        on_device(
            "evolver, best state",
            "15",
            Class::T4,
            |d| {
                let (evolver, _) = evolved(d)?;
                numbers([evolver.best().a(), evolver.best().b()])
            },
            vec![-5i128, 10, -10, 0, 4, -6, 6, 0],
        ),
    ]
}
