//! Golden normalisation: section 5.

use selvedge::srt::{
    GoldenNorm, RunningStatistics, golden_batch_norm_1d, golden_batch_norm_2d, golden_layer_norm,
};
use selvedge::{Result, Tensor};

use super::{Case, CaseDevice, Class, numbers, on_device, tensor, vector};

/// The running statistics of a batch [[1, 10], [2, 10], [3, 10]], and the batch normalised with them.
fn running(device: &CaseDevice) -> Result<[Tensor; 3]> {
    let batch = tensor(device, &[3, 2], &[1.0, 10.0, 2.0, 10.0, 3.0, 10.0])?;
    let mut running = RunningStatistics::new(2, RunningStatistics::MOMENTUM, device)?;
    let y = golden_batch_norm_1d(&batch, &GoldenNorm::default(), Some(&mut running))?;
    Ok([y, running.mean().clone(), running.variance().clone()])
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
        )
        .in_f32_within(1e-5, 0.0),
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
        )
        .in_f32_within(1e-5, 0.0),
        on_device(
            "golden_layer_norm",
            "5.3",
            Class::T3(4),
            |d| numbers([&golden_layer_norm(&vector(d, &[1.0, 2.0, 3.0, 4.0])?, &GoldenNorm::default())?]),
            vec![-1.0547285338567312, -0.3515761779522437, 0.3515761779522437, 1.0547285338567312],
        )
        .in_f32_within(1e-5, 0.0),
        on_device(
            "running statistics",
            "5.4",
            Class::T3(3),
            |d| running(d).and_then(|[_, mean, variance]| numbers([&mean, &variance])),
            vec![0.2, 1.0, 0.9 + 0.1 * 2.0 / 3.0, 0.9],
        )
        .in_f32(),
    ]
}
