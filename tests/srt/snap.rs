//! Snapping to Z[φ], and the precision ramp.

use selvedge::Error;
use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::close;

#[test]
fn worked_numbers_are_snapped_bit_for_bit() {
    let table = [
        (0.5, 5, (-1, 1)),
        (0.5, 10, (-6, 4)),
        (0.5, 100, (-27, 17)),
        (1.618033988749895, 100, (0, 1)),
        (2.618033988749895, 100, (1, 1)),
        (-1.25, 10, (2, -2)),
        (2.5, 3, (1, 1)),
        (1e6, 10, (10, 10)),
        (-1e6, 10, (-10, -10)),
        (f64::MAX, 3, (3, 0)),
        (7.4, 0, (0, 0)),
        (-0.0, 10, (0, 0)),
        (f64::NAN, 10, (0, 0)),
        (f64::NEG_INFINITY, 10, (0, 0)),
    ];
    for (v, bound, wanted) in table {
        assert_eq!(GoldenInteger::snap(v, bound).unwrap(), wanted.into(), "{v} at {bound}");
        let values = Tensor::new([v], &Device::cpu()).unwrap();
        assert_eq!(snap(&values, bound).unwrap().to_vec().unwrap(), [wanted.into()], "{v} at {bound}");
    }
    let flux = [1.0, 0.5, -0.25, 0.125].map(|v| GoldenInteger::snap(v, 10).unwrap());
    assert_eq!(flux, [(1, 0), (-6, 4), (3, -2), (5, -3)].map(GoldenInteger::from));
}

/// The procedure as the specification has it: rounded first, then clamped.
fn by_definition(v: f64, bound: i64) -> (i64, i64) {
    let limit = bound as f64;
    let (mut best, mut least) = ((0, 0), f64::INFINITY);
    for b in std::iter::once(0).chain((1..=bound).flat_map(|b| [b, -b])) {
        let t = b as f64 * PHI;
        let a = (v - t).round_ties_even().max(-limit).min(limit);
        let error = ((a + t) - v).abs();
        if error < least {
            (best, least) = ((a as i64, b), error);
        }
    }
    best
}

#[test]
fn points_are_bounded_nearest_and_fixed() {
    let values: Vec<f64> = (-400..=400).map(|i| f64::from(i) * 0.0075003).collect();
    let tensor = Tensor::from_slice(&values, &[values.len()], &Device::cpu()).unwrap();
    let mut worst = vec![f64::INFINITY; values.len()];
    for (bound, distance) in
        [(0, f64::INFINITY), (1, f64::INFINITY), (5, f64::INFINITY), (10, 0.0451), (100, 0.00658)]
    {
        let points = snap(&tensor, bound).unwrap();
        for ((v, point), worst) in values.iter().zip(points.to_vec().unwrap()).zip(&mut worst) {
            assert_eq!(point, by_definition(*v, bound).into(), "{v} at {bound}");
            assert!(point.a.abs() <= bound && point.b.abs() <= bound);
            let error = (point.value() - v).abs();
            assert!(error <= *worst && error <= distance, "{v} at {bound}: {error}");
            *worst = error;
        }
        let again = snap(&points.values().unwrap(), bound).unwrap();
        assert_eq!(again.to_vec().unwrap(), points.to_vec().unwrap());
        let residuals = snap_residual(&tensor, &points).unwrap().to_vec::<f64>().unwrap();
        let sum: f64 = residuals.iter().map(|residual| residual * residual).sum();
        close(snap_distance(&tensor, &points).unwrap().item().unwrap(), sum.sqrt(), 1e-12);
    }
    // No larger bound has a larger error.
    let mut least = vec![f64::INFINITY; values.len()];
    for bound in 0..=40 {
        let points = snap(&tensor, bound).unwrap();
        let residuals = snap_residual(&tensor, &points).unwrap().abs().unwrap().to_vec::<f64>().unwrap();
        for (residual, least) in residuals.into_iter().zip(&mut least) {
            assert!(residual <= *least, "at {bound}: {residual} after {least}");
            *least = residual;
        }
    }
    // A large bound, on values out of its reach and on one of its points.
    let point = GoldenInteger::new(-161_803, 100_001);
    assert_eq!(GoldenInteger::snap(point.value(), 1 << 18).unwrap().value(), point.value());
}

#[test]
fn snapping_takes_any_layout_and_refuses_bad_arguments() {
    let cpu = Device::cpu();
    let matrix = Tensor::new([[0.5f64, 1.0], [2.5, -1.25]], &cpu).unwrap();
    let points = snap(&matrix.t().unwrap(), 10).unwrap();
    assert_eq!(**points.a().shape(), [2, 2]);
    assert_eq!(points.to_vec().unwrap()[0], (-6, 4).into());
    assert_eq!(points.to_vec().unwrap()[3], (2, -2).into());
    assert_eq!(snap(&Tensor::zeros(&[0, 3], DType::F64, &cpu).unwrap(), 10).unwrap().to_vec().unwrap(), []);
    for bound in [-1, (1 << 20) + 1, i64::MIN, i64::MAX] {
        assert!(matches!(snap(&matrix, bound), Err(Error::InvalidArgument { .. })), "{bound}");
        assert!(matches!(GoldenInteger::snap(0.5, bound), Err(Error::InvalidArgument { .. })), "{bound}");
    }
    let single = matrix.cast(DType::F32).unwrap();
    assert!(matches!(snap(&single, 10), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(snap_residual(&single, &points), Err(Error::DTypeMismatch { .. })));
}

#[test]
fn a_ramp_grows_by_phi_and_snaps_the_floats() {
    assert_eq!(precision_ramp(100, 100).unwrap(), [100, 162, 263, 426, 690, 1117]);
    assert_eq!(precision_ramp(100, 0).unwrap(), [100]);
    assert_eq!(precision_ramp(0, 100).unwrap(), [0]);
    assert_eq!(precision_ramp(1, 100).unwrap(), [1, 2, 4, 7, 12]);
    for first in [-1, (1 << 20) + 1, i64::MAX] {
        assert!(matches!(precision_ramp(first, 1), Err(Error::InvalidArgument { .. })), "{first}");
    }
    let values = Tensor::new([0.3f64, -2.2], &Device::cpu()).unwrap();
    let ramp = snap_ramp(&values, 10, 2).unwrap();
    assert_eq!(ramp.iter().map(|(bound, _)| *bound).collect::<Vec<_>>(), [10, 17, 28]);
    for (bound, points) in ramp {
        assert_eq!(points.to_vec().unwrap(), snap(&values, bound).unwrap().to_vec().unwrap());
    }
    let times = dwell(100.0, 0.8584177266443396);
    assert_eq!(times.d_phase, 100.0);
    close(times.h_phase, 151.14670884504525, 1e-12);
}
