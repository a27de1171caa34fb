//! Golden normalisation and the evolver: sections 5 and 15.

use selvedge::srt::{
    Evolver, EvolverOptions, GoldenNorm, RunningStatistics, golden_batch_norm_1d, golden_batch_norm_2d,
    golden_layer_norm, snap,
};
use selvedge::{Device, Result, Tensor};

use super::{Case, Class, Numbers, numbers, on_device, tensor, vector};

/// The running statistics of a batch [[1, 10], [2, 10], [3, 10]], and the batch normalised with them.
fn running(device: &Device) -> Result<[Tensor; 3]> {
    let batch = tensor(device, &[3, 2], &[1.0, 10.0, 2.0, 10.0, 3.0, 10.0])?;
    let mut running = RunningStatistics::new(2, RunningStatistics::MOMENTUM, device)?;
    let y = golden_batch_norm_1d(&batch, &GoldenNorm::default(), Some(&mut running))?;
    Ok([y, running.mean().clone(), running.variance().clone()])
}

/// The evolver of the worked example after one generation.
fn evolved(device: &Device) -> Result<(Evolver, (usize, f64))> {
    let options = EvolverOptions {
        seed: 2024,
        population: 4,
        survivors: 2,
        mutation_scale: 0.5,
        bound: 10,
        ..EvolverOptions::default()
    };
    let state = snap(&vector(device, &[1.0, 0.5, -0.25, 0.125])?, 10)?;
    let mut evolver = Evolver::new(&state, None, options)?;
    // Without a winner the numbers are wrong, and the case fails.
    let winner = evolver.step()?.winner.unwrap_or((usize::MAX, f64::NAN));
    Ok((evolver, winner))
}

pub fn cases() -> Vec<Case> {
    let root = 0.9628276468655639;
    vec![
        on_device(
            "golden_batch_norm_1d",
            "5.1",
            Class::T3(3),
            |d| running(d).and_then(|[y, ..]| numbers([&y])),
            vec![-root, 0.0, 0.0, 0.0, root, 0.0],
        ),
        on_device(
            "golden_batch_norm_2d",
            "5.2",
            Class::T3(4),
            |d| {
                let v = tensor(d, &[2, 1, 1, 2], &[1.0, 3.0, 5.0, 7.0])?;
                let (gamma, beta) = (vector(d, &[2.0])?, vector(d, &[1.0])?);
                let norm = GoldenNorm { gamma: Some(&gamma), beta: Some(&beta), ..GoldenNorm::default() };
                numbers([&golden_batch_norm_2d(&v, &norm, None)?])
            },
            vec![-1.1094633960625164, 0.29684553464582786, 1.7031544653541721, 3.1094633960625164],
        ),
        on_device(
            "golden_layer_norm",
            "5.3",
            Class::T3(4),
            |d| numbers([&golden_layer_norm(&vector(d, &[1.0, 2.0, 3.0, 4.0])?, &GoldenNorm::default())?]),
            vec![-1.0547285338567312, -0.3515761779522437, 0.3515761779522437, 1.0547285338567312],
        ),
        on_device(
            "running statistics",
            "5.4",
            Class::T3(3),
            |d| running(d).and_then(|[_, mean, variance]| numbers([&mean, &variance])),
            vec![0.2, 1.0, 0.9 + 0.1 * 2.0 / 3.0, 0.9],
        ),
        on_device(
            "evolver, syntonies",
            "15.1",
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
            "15.1",
            Class::T4,
            |d| {
                let (evolver, _) = evolved(d)?;
                numbers([evolver.best().a(), evolver.best().b()])
            },
            vec![-5i128, 10, -10, 0, 4, -6, 6, 0],
        ),
    ]
}
