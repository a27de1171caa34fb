//! Golden norms and their running statistics.

use selvedge::Tensor;
use selvedge::srt::*;
use selvedge::tensor::Device;
use selvedge::types::DType;

use crate::common::*;

/// A norm on its tensor.
type Apply = fn(&Tensor, &GoldenNorm<'_>) -> selvedge::Result<Tensor>;

const NORM_1D: Apply = |v, norm| golden_batch_norm_1d(v, norm, None);
const NORM_2D: Apply = |v, norm| golden_batch_norm_2d(v, norm, None);
const PRECISIONS: [(DType, f64); 2] = [(DType::F64, 1e-12), (DType::F32, 1e-5)];

#[test]
fn norms_have_the_worked_numbers() {
    for (dtype, tolerance) in PRECISIONS {
        let cast = |list: &[f64], shape: &[usize]| tensor(list, shape).cast(dtype).unwrap();
        let close = |found: selvedge::Result<Tensor>, wanted: &[f64]| {
            let found = found.unwrap();
            assert_eq!(found.dtype(), dtype);
            assert_close(&found, wanted, tolerance);
        };
        let golden = GoldenNorm::default();
        let v = cast(&[1.0, 10.0, 2.0, 10.0, 3.0, 10.0], &[3, 2]);
        let y = 0.9628276468655639;
        close(NORM_1D(&v, &golden), &[-y, 0.0, 0.0, 0.0, y, 0.0]);

        let (gamma, beta) = (cast(&[2.0], &[1]), cast(&[1.0], &[1]));
        let affine = GoldenNorm { gamma: Some(&gamma), beta: Some(&beta), ..golden };
        let v = cast(&[1.0, 3.0, 5.0, 7.0], &[2, 1, 1, 2]);
        let wanted = [-1.1094633960625164, 0.29684553464582786, 1.7031544653541721, 3.1094633960625164];
        close(NORM_2D(&v, &affine), &wanted);

        let v = cast(&[1.0, 2.0, 3.0, 4.0], &[4]);
        let wanted = [-1.0547285338567312, -0.3515761779522437, 0.3515761779522437, 1.0547285338567312];
        close(golden_layer_norm(&v, &golden), &wanted);
        // The standard and a custom target scale by the root of their quotient to 1/φ.
        for (target, tau) in [(GoldenTarget::Standard, 1.0), (GoldenTarget::Custom(2.5), 2.5)] {
            let wanted = wanted.map(|y| y * (tau / INVERSE_PHI).sqrt());
            close(golden_layer_norm(&v, &GoldenNorm { target, ..golden }), &wanted);
        }
    }
}

/// Mean and biased variance.
fn moments(list: &[f64]) -> [f64; 2] {
    let mean = list.iter().sum::<f64>() / list.len() as f64;
    [mean, list.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / list.len() as f64]
}

#[test]
fn results_have_the_mean_beta_and_the_scaled_target_variance() {
    let (gamma, beta) = ([1.5, -0.5, 2.0], [0.25, -3.0, 0.0]);
    let (gamma_tensor, beta_tensor) = (vector(&gamma), vector(&beta));
    let [gamma_f32, beta_f32] = [&gamma_tensor, &beta_tensor].map(|x| x.cast(DType::F32).unwrap());
    // A large mean beside the deviations, which sums of squares without the mean would lose.
    let v: Vec<f64> = sequence(4 * 3 * 2 * 5, 3).iter().map(|x| 3.0 * x + 1000.0).collect();
    for (target, tau) in [(GoldenTarget::Golden, INVERSE_PHI), (GoldenTarget::Custom(4.0), 4.0)] {
        for (dtype, tolerance) in [(DType::F64, 1e-10), (DType::F32, 1e-5)] {
            let is_single = dtype == DType::F32;
            let (gamma_tensor, beta_tensor) =
                if is_single { (&gamma_f32, &beta_f32) } else { (&gamma_tensor, &beta_tensor) };
            let eps = 0.5;
            let norm = GoldenNorm { target, gamma: Some(gamma_tensor), beta: Some(beta_tensor), eps };
            let images = tensor(&v, &[4, 3, 2, 5]).cast(dtype).unwrap();
            // The features of a batch (B, F), and the transposed layout of channels.
            let features = images.permute(&[0, 2, 3, 1]).unwrap().reshape(&[40, 3]).unwrap();
            let from_1d = NORM_1D(&features, &norm).unwrap();
            let from_2d = NORM_2D(&images, &norm).unwrap();
            for channel in 0..3 {
                let of = |x: &Tensor| numbers(&x.select(1, channel as isize).unwrap());
                let [_, variance] = moments(&of(&images));
                let [g, b] = [gamma[channel], beta[channel]];
                for y in [of(&from_1d), of(&from_2d)] {
                    let [mean, spread] = moments(&y);
                    assert!((mean - b).abs() < tolerance * 10.0, "{dtype}: {mean}, wanted {b}");
                    crate::close(spread, g * g * tau * variance / (variance + eps), 20.0 * tolerance);
                }
            }
            // Of rows, with one γ and one β.
            let rows = images.reshape(&[12, 10]).unwrap();
            let [gamma_row, beta_row] = [gamma[0], beta[1]].map(|x| vector(&[x; 10]).cast(dtype).unwrap());
            let norm = GoldenNorm { gamma: Some(&gamma_row), beta: Some(&beta_row), ..norm };
            let normed = golden_layer_norm(&rows, &norm).unwrap();
            for row in 0..12 {
                let of = |x: &Tensor| moments(&numbers(&x.select(0, row).unwrap()));
                let ([_, variance], [mean, spread]) = (of(&rows), of(&normed));
                assert!((mean - beta[1]).abs() < tolerance * 10.0, "{dtype}: {mean}, wanted {}", beta[1]);
                let wanted = gamma[0] * gamma[0] * tau * variance / (variance + eps);
                crate::close(spread, wanted, 20.0 * tolerance);
            }
        }
    }
}

#[test]
fn large_and_small_elements_neither_overflow_nor_vanish() {
    let norm = GoldenNorm { eps: 0.0, ..GoldenNorm::default() };
    let values = [1.0, 10.0, 2.0, -10.0, 3.0, 5.0];
    for (dtype, tolerance) in PRECISIONS {
        let normalized = |factor: f64| {
            let v = tensor(&values.map(|x| x * factor), &[3, 2]).cast(dtype).unwrap();
            numbers(&NORM_1D(&v, &norm).unwrap())
        };
        let wanted = normalized(1.0);
        for factor in [1e30, 1e-30] {
            let close = |(x, y): (&f64, &f64)| (x - y).abs() <= tolerance * y.abs().max(0.1);
            assert!(normalized(factor).iter().zip(&wanted).all(close), "{dtype} times {factor}");
        }
    }
}

#[test]
fn constant_channels_are_beta_exactly_and_nan_stays_in_its_own() {
    let beta = [0.1, -7.0, 3.5];
    for dtype in [DType::F64, DType::F32] {
        let cast = |x: Tensor| x.cast(dtype).unwrap();
        let shift = cast(vector(&beta));
        for eps in [1e-5, 0.0] {
            let norm = GoldenNorm { beta: Some(&shift), eps, ..GoldenNorm::default() };
            // 0.1 three times adds up to more than 0.3.
            for count in [1, 3, 7, 1000] {
                let v = cast(tensor(&[0.1, 1e-3 / 3.0, 1e20 / 7.0].repeat(count), &[count, 3]));
                assert_eq!(numbers(&NORM_1D(&v, &norm).unwrap()), numbers(&shift).repeat(count), "{count}");
            }
            let rows = cast(tensor(&[[0.1; 3], [1e-3 / 3.0; 3]].concat(), &[2, 3]));
            assert_eq!(numbers(&golden_layer_norm(&rows, &norm).unwrap()), numbers(&shift).repeat(2));
        }
        let v = [[1.0, f64::NAN, 4.0], [2.0, 5.0, 4.0], [3.0, 6.0, 4.0]].concat();
        let found = numbers(&NORM_1D(&cast(tensor(&v, &[3, 3])), &GoldenNorm::default()).unwrap());
        for (at, y) in found.iter().enumerate() {
            assert_eq!(y.is_nan(), at % 3 == 1, "{found:?}");
        }
        let found = numbers(&golden_layer_norm(&cast(tensor(&v, &[3, 3])), &GoldenNorm::default()).unwrap());
        for (at, y) in found.iter().enumerate() {
            assert_eq!(y.is_nan(), at < 3, "{found:?}");
        }
    }
}

#[test]
fn running_statistics_move_by_the_momentum_and_serve_inference() {
    for (dtype, tolerance) in PRECISIONS {
        let mut running = RunningStatistics::new(2, RunningStatistics::MOMENTUM, &Device::cpu()).unwrap();
        assert_eq!((numbers(running.mean()), numbers(running.variance())), (vec![0.0; 2], vec![1.0; 2]));
        let norm = GoldenNorm::default();
        let v = tensor(&[1.0, 10.0, 2.0, 10.0, 3.0, 10.0], &[3, 2]).cast(dtype).unwrap();
        let trained = golden_batch_norm_1d(&v, &norm, Some(&mut running)).unwrap();
        assert_eq!(numbers(&trained), numbers(&NORM_1D(&v, &norm).unwrap()));
        // Biased: the variance of 1, 2, 3 is 2/3.
        assert_worked(running.mean(), &[0.2, 1.0]);
        // The variance is the sum of squares in the dtype of the elements.
        assert_close(running.variance(), &[0.9 + 0.1 * 2.0 / 3.0, 0.9], tolerance);
        let images = tensor(&[0.0, 4.0, 1.0, 1.0], &[1, 2, 1, 2]).cast(dtype).unwrap();
        golden_batch_norm_2d(&images, &norm, Some(&mut running)).unwrap();
        let (mean, variance) = ([0.38, 1.0], [0.9 * (0.9 + 0.1 * 2.0 / 3.0) + 0.4, 0.81]);
        assert_worked(running.mean(), &mean);
        assert_close(running.variance(), &variance, tolerance);

        let wanted = |x: f64, at: usize| (x - mean[at]) * (INVERSE_PHI / (variance[at] + 1e-5)).sqrt();
        let found = running.normalize(&images, &norm).unwrap();
        let values = [wanted(0.0, 0), wanted(4.0, 0), wanted(1.0, 1), wanted(1.0, 1)];
        assert!(
            numbers(&found).iter().zip(values).all(|(x, y)| (x - y).abs() <= tolerance * y.abs().max(1.0))
        );
        let found = numbers(&running.normalize(&v, &norm).unwrap());
        crate::close(found[1], wanted(10.0, 1), tolerance);
    }
}

#[test]
fn norms_refuse_bad_operands_and_leave_statistics_alone() {
    let golden = GoldenNorm::default();
    let (v, images) = (tensor(&sequence(6, 1), &[3, 2]), tensor(&sequence(8, 1), &[2, 2, 1, 2]));
    assert_invalid(NORM_1D(&images, &golden), &["[2, 2, 1, 2]", "(B, F)"]);
    assert_invalid(NORM_2D(&v, &golden), &["[3, 2]", "(B, C, H, W)"]);
    assert_invalid(
        golden_layer_norm(&v.select(0, 0).unwrap().select(0, 0).unwrap(), &golden),
        &["dimensions"],
    );
    for shape in [[0, 2], [2, 0]] {
        assert_invalid(NORM_1D(&tensor::<f64>(&[], &shape), &golden), &["elements"]);
        assert_invalid(golden_layer_norm(&tensor::<f64>(&[], &shape), &golden), &["elements"]);
    }
    assert_invalid(NORM_2D(&tensor::<f64>(&[], &[2, 2, 0, 2]), &golden), &["elements"]);
    for tau in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let norm = GoldenNorm { target: GoldenTarget::Custom(tau), ..golden };
        assert_invalid(NORM_1D(&v, &norm), &["target variance"]);
        assert_invalid(golden_layer_norm(&v, &norm), &["target variance"]);
    }
    for eps in [-1e-5, f64::NAN, f64::INFINITY] {
        assert_invalid(NORM_1D(&v, &GoldenNorm { eps, ..golden }), &["eps"]);
    }
    let (three, single) = (vector(&[1.0; 3]), vector(&[1.0; 2]).cast(DType::F32).unwrap());
    let norms: [(Apply, &Tensor); 3] = [(NORM_1D, &v), (NORM_2D, &images), (golden_layer_norm, &v)];
    for (apply, v) in norms {
        assert_invalid(apply(v, &GoldenNorm { gamma: Some(&three), ..golden }), &["gamma", "[3]", "[2]"]);
        assert_invalid(apply(v, &GoldenNorm { beta: Some(&three), ..golden }), &["beta", "[3]", "[2]"]);
        assert_dtype_error(apply(v, &GoldenNorm { gamma: Some(&single), ..golden }));
        assert_dtype_error(apply(&v.cast(DType::I64).unwrap(), &golden));
        assert_dtype_error(apply(&v.cast(DType::C128).unwrap(), &golden));
    }

    let new = |momentum| RunningStatistics::new(3, momentum, &Device::cpu());
    for momentum in [-0.1, 1.1, f64::NAN] {
        assert_invalid(new(momentum), &["momentum"]);
    }
    let from = RunningStatistics::from_tensors;
    assert_invalid(from(three.clone(), vector(&[1.0]), 0.1), &["[3]", "[1]"]);
    assert_dtype_error(from(single.clone(), single, 0.1));
    let mut running = new(0.1).unwrap();
    assert_invalid(golden_batch_norm_1d(&v, &golden, Some(&mut running)), &["3 channels", "[3, 2]"]);
    assert_invalid(running.normalize(&v, &golden), &["3 channels", "[3, 2]"]);
    assert_invalid(running.normalize(&three, &golden), &["[3]"]);
    assert_eq!(numbers(running.mean()), [0.0; 3]);
}
