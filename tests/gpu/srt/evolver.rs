//! Evolutions on a device and on the CPU from one seed.

use std::sync::{Arc, Mutex, PoisonError};

use selvedge::Result;
use selvedge::srt::{Evolver, EvolverOptions, GenerationReport, GoldenInteger, snap};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use super::CPU;
use crate::support::Outcome;

/// The choice of an evolution.
#[derive(Debug, PartialEq)]
struct Choices {
    /// The values of the survivors of each generation, in order.
    survivors: Vec<Vec<f64>>,
    reports: Vec<GenerationReport>,
    best: Vec<GoldenInteger>,
}

/// Runs generations on a device. The fitness of 0 sees the survivors; without one, the score is the syntony.
fn evolve(
    start: &Tensor,
    device: &Device,
    options: EvolverOptions,
    has_fitness: bool,
    generations: usize,
) -> Result<Choices> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut evolver = Evolver::new(&snap(&start.to(device)?, options.bound)?, None, options)?;
    if has_fitness {
        let survivors = seen.clone();
        evolver = evolver.with_fitness(move |values| {
            let list = values.to_vec::<f64>()?;
            survivors.lock().unwrap_or_else(PoisonError::into_inner).push(list);
            Tensor::zeros(&[values.shape()[0]], DType::F64, &values.device())
        });
    }
    let reports = (0..generations).map(|_| evolver.step()).collect::<Result<_>>()?;
    let best = evolver.best().to_vec()?;
    let survivors = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Choices { survivors, reports, best })
}

pub fn evolutions_have_the_survivors_and_winners_of_the_cpu() -> Outcome {
    let device = Device::cuda(0)?;
    for (size, generations, seeds, fitness) in [(64, 12, 3, &[true, false][..]), (512, 3, 1, &[true])] {
        for seed in 1..=seeds {
            let start = Generator::new(seed).randn(&[size], DType::F64, &CPU)?;
            for &has_fitness in fitness {
                let options = EvolverOptions { population: size, seed, ..EvolverOptions::default() };
                let run = |device| evolve(&start, device, options.clone(), has_fitness, generations);
                let (there, here) = (run(&device)?, run(&CPU)?);
                assert_eq!(there.survivors, here.survivors, "survivors, {size} points, seed {seed}");
                assert_eq!(there.reports, here.reports, "winners, {size} points, seed {seed}");
                assert_eq!(there.best, here.best, "best, {size} points, seed {seed}");
                assert!(here.reports.iter().all(|report| report.winner.is_some()), "a winner each time");
            }
        }
    }
    Ok(())
}
