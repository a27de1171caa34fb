//! Golden norms, and rows of eight numbers: E8 and golden cones.

use selvedge::Result;
use selvedge::srt::*;
use selvedge::tensor::{Generator, Tensor};
use selvedge::types::DType;

use super::normal;
use crate::support::Outcome;
use crate::support::compare::{Agreement, Case, check};

/// Images of 6 channels, and a factor and a sum for each.
fn images(dtype: DType) -> Result<Vec<Tensor>> {
    let generator = Generator::new(13);
    [&[8, 6, 9, 11][..], &[6], &[6]].into_iter().map(|shape| normal(&generator, shape, dtype)).collect()
}

fn norm(x: &[Tensor]) -> GoldenNorm<'_> {
    GoldenNorm { gamma: Some(&x[1]), beta: Some(&x[2]), ..GoldenNorm::default() }
}

/// A batch (B, F) of the images.
fn features(x: &[Tensor]) -> Result<Tensor> {
    x[0].permute(&[0, 2, 3, 1])?.reshape(&[-1, 6])
}

const NORMS: &[Case] = &[
    ("golden_batch_norm_1d", |x| {
        Ok(vec![
            golden_batch_norm_1d(&features(x)?, &GoldenNorm::default(), None)?,
            golden_batch_norm_1d(&features(x)?, &norm(x), None)?,
        ])
    }),
    ("golden_batch_norm_2d", |x| {
        let target = GoldenTarget::Custom(2.5);
        Ok(vec![
            golden_batch_norm_2d(&x[0], &norm(x), None)?,
            golden_batch_norm_2d(&x[0], &GoldenNorm { target, ..norm(x) }, None)?,
        ])
    }),
    ("golden_layer_norm", |x| {
        Ok(vec![
            golden_layer_norm(&features(x)?, &norm(x))?,
            golden_layer_norm(&x[0].reshape(&[8, -1])?, &GoldenNorm::default())?,
        ])
    }),
    ("running statistics", |x| {
        let mut running = RunningStatistics::new(6, 0.1, &x[0].device())?;
        let images = golden_batch_norm_2d(&x[0], &norm(x), Some(&mut running))?;
        let features = golden_batch_norm_1d(&features(x)?, &norm(x), Some(&mut running))?;
        let normalized = running.normalize(&x[0], &norm(x))?;
        Ok(vec![images, features, normalized, running.mean().clone(), running.variance().clone()])
    }),
    ("phi_residual_layer_norm", |x| {
        let (rows, residual) = (features(x)?, features(x)?.flip(&[0])?);
        Ok(vec![
            phi_residual_layer_norm(&rows, &residual, None, None, 1e-5)?,
            phi_residual_layer_norm(&rows, &residual, Some(&x[1]), Some(&x[2]), 1e-5)?,
        ])
    }),
];

pub fn norms_have_the_bits_of_the_cpu() -> Outcome {
    for dtype in [DType::F32, DType::F64] {
        check(NORMS, &images(dtype)?, Agreement::Bits)?;
    }
    Ok(())
}

const LAYOUTS: [E8Layout; 2] = [E8Layout::Offset4, E8Layout::Adjacent];
const CONES: [GoldenCone; 2] = [GoldenCone::Pair, GoldenCone::Null];

/// Of rows of eight, and a weight for each.
const ROWS: &[Case] = &[
    ("golden_weight_of_rows", |x| Ok(vec![golden_weight_of_rows(&x[0])?])),
    ("project_e8", |x| {
        let [first, second] = LAYOUTS.map(|layout| project_e8(&x[0], layout));
        let ((a, b), (c, d)) = (first?, second?);
        Ok(vec![a, b, c, d])
    }),
    ("quadratic_form", |x| LAYOUTS.into_iter().map(|layout| quadratic_form(&x[0], layout)).collect()),
    ("e8_quantize", |x| Ok(vec![e8_quantize(&x[0])?, e8_quantize_scaled(&x[0], 0.37)?])),
    ("theta_sum", |x| {
        LAYOUTS.into_iter().map(|layout| theta_sum(&x[0].mul(0.25)?, &x[1], 2.0, layout)).collect()
    }),
    ("golden_cone_test", |x| {
        CONES.into_iter().map(|cone| golden_cone_test(&x[0], cone, cone.tolerance())).collect()
    }),
    ("golden_cone_project", |x| CONES.into_iter().map(|cone| golden_cone_project(&x[0], cone)).collect()),
    ("weight_8d", |x| Ok(vec![weight_8d(&x[0])?])),
    ("roots and weights", |x| {
        let device = x[0].device();
        let sets = [
            E8Roots::All,
            E8Roots::Positive,
            E8Roots::Cone(GoldenCone::Pair),
            E8Roots::Cone(GoldenCone::Null),
            E8Roots::E6,
        ];
        let roots = sets.into_iter().map(|set| e8_roots(set, &device));
        roots.chain([e8_weights(1000, &device)]).collect()
    }),
];

pub fn rows_of_eight_have_the_bits_of_the_cpu() -> Outcome {
    for dtype in [DType::F32, DType::F64] {
        let generator = Generator::new(17);
        let operands = [normal(&generator, &[1003, 8], dtype)?, normal(&generator, &[1003], dtype)?];
        check(ROWS, &operands, Agreement::Bits)?;
    }
    Ok(())
}
