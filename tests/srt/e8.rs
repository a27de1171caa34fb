//! E8: roots, projections, the quadratic form, the nearest point and the theta sum.

use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;
use selvedge::{Error, Result};

use crate::rows::{Row, assert_close, distance, dot, random, rows, tensor};

const LAYOUTS: [E8Layout; 2] = [E8Layout::Offset4, E8Layout::Adjacent];
const E0_E1: Row = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];

fn roots(set: E8Roots) -> Vec<Row> {
    rows(&e8_roots(set, &Device::cpu()).unwrap())
}

/// All integers or all halves of odd integers, with an even sum.
fn is_in_e8(v: &Row) -> bool {
    let fraction = v[0].rem_euclid(1.0);
    (fraction == 0.0 || fraction == 0.5)
        && v.iter().all(|entry| entry.rem_euclid(1.0) == fraction)
        && v.iter().sum::<f64>().rem_euclid(2.0) == 0.0
}

#[test]
fn roots_are_counted_and_ordered() {
    let all = roots(E8Roots::All);
    assert!(all.iter().all(|root| dot(root, root) == 2.0 && is_in_e8(root)));
    let mut distinct: Vec<_> = all.iter().map(|root| root.map(|entry| (entry * 2.0) as i32)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 240);
    let first = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]];
    assert!(first.iter().zip(&all).all(|(signs, root)| root[..2] == *signs && root[2..] == [0.0; 6]));
    assert_eq!(all[4], [-1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!((all[112], all[239]), ([0.5; 8], [-0.5; 8]));
    assert_eq!(all[113], [-0.5, -0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);

    let e6 = roots(E8Roots::E6);
    assert_eq!(e6.iter().filter(|root| root.iter().find(|entry| **entry != 0.0).unwrap() > &0.0).count(), 36);
    for (set, count) in [
        (E8Roots::Positive, 120),
        (E8Roots::Cone(GoldenCone::Pair), 40),
        (E8Roots::Cone(GoldenCone::Null), 36),
        (E8Roots::E6, 72),
    ] {
        assert_eq!(roots(set).len(), count, "{set:?}");
    }
}

#[test]
fn weights_repeat_the_roots_in_growing_shells() {
    let all = roots(E8Roots::All);
    for n in [0, 1, 240, 241, 725] {
        let weights = rows(&e8_weights(n, &Device::cpu()).unwrap());
        let wanted = (0..n).map(|i| all[i % 240].map(|entry| entry * (1 + i / 240) as f64));
        assert_eq!(weights, wanted.collect::<Vec<_>>());
    }
}

#[test]
fn projections_are_the_worked_numbers() -> Result<()> {
    let v = tensor(&[E0_E1]);
    let project = |v: &Tensor, layout| -> Result<[Vec<f64>; 2]> {
        let (par, perp) = project_e8(v, layout)?;
        Ok([par.to_vec()?, perp.to_vec()?])
    };
    let [par, perp] = project(&v, E8Layout::Offset4)?;
    assert_close(&par, &[0.5257311121191336, 0.5257311121191336, 0.0, 0.0], 1e-15);
    assert_close(&perp, &[0.85065080835204, 0.85065080835204, 0.0, 0.0], 1e-15);
    let [par, perp] = project(&v, E8Layout::Adjacent)?;
    assert_close(&par, &[1.3763819204711736, 0.0, 0.0, 0.0], 1e-15);
    assert_close(&perp, &[-0.32491969623290634, 0.0, 0.0, 0.0], 1e-15);
    // Any leading dimensions, and f32.
    let (par, perp) = project_e8(&v.cast(DType::F32)?.reshape(&[1, 1, 8])?, E8Layout::Offset4)?;
    assert_eq!((&par.shape()[..], par.dtype()), (&[1, 1, 4][..], DType::F32));
    assert_close(
        &perp.cast(DType::F64)?.to_vec::<f64>()?,
        &[0.85065080835204, 0.85065080835204, 0.0, 0.0],
        2e-7,
    );
    Ok(())
}

#[test]
fn projectors_are_orthogonal() -> Result<()> {
    let identity: Vec<Row> = (0..8).map(|i| std::array::from_fn(|k| f64::from(u8::from(i == k)))).collect();
    let vectors = random(1, 50, 10.0);
    for layout in LAYOUTS {
        let joined = |v: &[Row]| -> Result<Vec<Row>> {
            let (par, perp) = project_e8(&tensor(v), layout)?;
            Ok(rows(&Tensor::cat(&[&par, &perp], -1)?))
        };
        let matrix = joined(&identity)?;
        for (i, one) in matrix.iter().enumerate() {
            let products: Vec<f64> = matrix.iter().map(|other| dot(one, other)).collect();
            assert_close(&products, &identity[i], 1e-15);
        }
        for (v, projected) in vectors.iter().zip(joined(&vectors)?) {
            assert_close(&[dot(&projected, &projected)], &[dot(v, v)], 1e-14);
        }
    }
    Ok(())
}

#[test]
fn quadratic_forms_are_the_worked_numbers() -> Result<()> {
    let examples = tensor(&[E0_E1, [0.5; 8]]);
    let all = tensor(&roots(E8Roots::All));
    let vectors = random(2, 50, 10.0);
    for (layout, wanted) in LAYOUTS.into_iter().zip([-0.8944271909999161, 1.788854381999832]) {
        let form = |v: &Tensor| quadratic_form(v, layout)?.to_vec::<f64>();
        assert_close(&form(&examples)?, &[wanted, 1.788854381999832], 1e-15);
        let mut counts = [0; 5];
        for q in form(&all)? {
            let whole = q * SQRT5;
            assert!((whole - whole.round()).abs() < 1e-14 && whole.round() % 2.0 == 0.0);
            counts[((whole.round() + 4.0) / 2.0) as usize] += 1;
        }
        assert_eq!(counts, [24, 24, 144, 24, 24], "{layout:?}");
        let (par, perp) = project_e8(&tensor(&vectors), layout)?;
        let difference = par.square()?.sum(-1)?.sub(&perp.square()?.sum(-1)?)?;
        for (v, (q, wanted)) in
            vectors.iter().zip(form(&tensor(&vectors))?.into_iter().zip(difference.to_vec::<f64>()?))
        {
            assert!((q - wanted).abs() <= 1e-13 * dot(v, v), "{q} instead of {wanted}");
        }
    }
    Ok(())
}

/// The squared distance of the nearest point among those whose entries are the two nearest of their coset.
fn least_distance(v: &Row) -> f64 {
    let mut least = f64::INFINITY;
    for shift in [0.0, 0.5] {
        for choice in 0u32..256 {
            let point: Row =
                std::array::from_fn(|k| (v[k] - shift).floor() + f64::from(choice >> k & 1) + shift);
            if point.iter().sum::<f64>().rem_euclid(2.0) == 0.0 {
                least = least.min(distance(v, &point));
            }
        }
    }
    least
}

#[test]
fn quantization_gives_the_worked_numbers() -> Result<()> {
    let mut deep_hole = [0.0; 8];
    deep_hole[0] = 1.0;
    let examples = [
        ([0.9, 0.1, -0.2, 0.3, 0.0, 1.2, 0.4, -0.65], [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -1.0], 0.6725),
        ([0.6, 0.4, 0.55, 0.45, 0.5, 0.7, 0.3, -0.45], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, -0.5, -0.5], 0.7075),
        (deep_hole, deep_hole.map(|entry| entry * 2.0), 1.0),
    ];
    let v = tensor(&examples.map(|(v, ..)| v));
    let found = rows(&e8_quantize(&v)?);
    for ((v, wanted, d2), found) in examples.into_iter().zip(&found) {
        assert_eq!(*found, wanted);
        assert_close(&[distance(&v, found)], &[d2], 1e-12);
    }
    // In f32 as in f64 of the same numbers, and of a view whose rows are not contiguous.
    let single = v.cast(DType::F32)?;
    let widened = rows(&e8_quantize(&single.cast(DType::F64)?)?);
    assert_eq!(rows(&e8_quantize(&single)?.cast(DType::F64)?), widened);
    let twice = Tensor::cat(&[&v, &v], -1)?.narrow(-1, 8, 8)?;
    assert_eq!(rows(&e8_quantize(&twice)?), found);
    Ok(())
}

#[test]
fn quantization_finds_the_nearest_lattice_point() -> Result<()> {
    let vectors = random(3, 400, 2.0);
    let points = rows(&e8_quantize(&tensor(&vectors))?);
    for (v, point) in vectors.iter().zip(&points) {
        assert!(is_in_e8(point) && distance(v, point) <= 1.0);
        assert_close(&[distance(v, point)], &[least_distance(v)], 1e-12);
    }
    // Lattice points stay, up to the largest magnitude.
    let weights = rows(&e8_weights(500, &Device::cpu())?);
    assert_eq!(rows(&e8_quantize(&tensor(&weights))?), weights);
    let far = (1u64 << 51) as f64 - 2.0;
    let corners =
        [[far, -far, far, -far, far, -far, far, -far], [far - 1.0, far, far, far, far, far, far, far]];
    let found = rows(&e8_quantize(&tensor(&corners))?);
    assert_eq!(found[0], corners[0]);
    assert_eq!((found[1][0], &found[1][1..]), (far, &corners[1][1..]));
    // A translation by a lattice point: the numbers are multiples of 2^-10, so that sums are exact.
    let exact: Vec<Row> = vectors.iter().map(|v| v.map(|entry| (entry * 1024.0).round() / 1024.0)).collect();
    let moved: Vec<Row> =
        exact.iter().zip(&weights).map(|(v, w)| std::array::from_fn(|k| v[k] + w[k])).collect();
    let (before, after) = (rows(&e8_quantize(&tensor(&exact))?), rows(&e8_quantize(&tensor(&moved))?));
    let mut unique = 0;
    for ((v, w), (before, after)) in exact.iter().zip(&weights).zip(before.iter().zip(&after)) {
        let back: Row = std::array::from_fn(|k| after[k] - w[k]);
        assert_eq!(distance(v, &back), distance(v, before));
        // Away from ties, where every other point is farther, it is the same point: the others differ by roots at least.
        let nearest = distance(v, before);
        let neighbours =
            roots(E8Roots::All).into_iter().map(|root| std::array::from_fn(|k| before[k] + root[k]));
        if neighbours.into_iter().all(|other| distance(v, &other) > nearest + 1e-12) {
            assert_eq!(back, *before);
            unique += 1;
        }
    }
    assert!(unique > 380, "{unique}");
    Ok(())
}

#[test]
fn quantization_scales_and_marks_rows_that_are_not_finite() -> Result<()> {
    let vectors = random(4, 2000, 3.0);
    let scaled: Vec<Row> = vectors.iter().map(|v| v.map(|entry| entry * 0.25)).collect();
    let wanted: Vec<Row> =
        rows(&e8_quantize(&tensor(&vectors))?).iter().map(|point| point.map(|entry| entry * 0.25)).collect();
    assert_eq!(rows(&e8_quantize_scaled(&tensor(&scaled), 0.25)?), wanted);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut v = [[0.9; 8]; 3];
        v[1][6] = bad;
        let found = rows(&e8_quantize(&tensor(&v))?);
        assert_eq!((found[0], found[2]), ([1.0; 8], [1.0; 8]));
        assert!(found[1].iter().all(|entry| entry.is_nan()));
    }
    Ok(())
}

#[test]
fn theta_sums_take_weights() -> Result<()> {
    let roots = e8_roots(E8Roots::Cone(GoldenCone::Null), &Device::cpu())?;
    let sum = |sum: Tensor| sum.item::<f64>();
    let one = sum(theta_sum(&roots, 1.0, 2.0, E8Layout::Offset4)?)?;
    assert_close(&[one], &[93.11969749001811], 1e-12);
    let weights = Tensor::full(&[36], 0.5, DType::F64, &Device::cpu())?;
    assert_close(&[sum(theta_sum(&roots, &weights, 2.0, E8Layout::Offset4)?)?], &[one / 2.0], 1e-14);
    let terms = quadratic_form(&roots, E8Layout::Adjacent)?.to_vec::<f64>()?;
    let wanted: f64 = terms.iter().map(|q| (-std::f64::consts::PI * q / 3.0).exp()).sum();
    assert_close(&[sum(theta_sum(&roots, 1.0, 3.0, E8Layout::Adjacent)?)?], &[wanted], 1e-13);
    assert_eq!(sum(theta_sum(&tensor(&[]), 1.0, 2.0, E8Layout::Offset4)?)?, 0.0);
    Ok(())
}

#[test]
fn empty_tensors_give_empty_results() -> Result<()> {
    let none = tensor(&[]);
    assert_eq!(e8_quantize(&none)?.shape()[..], [0, 8]);
    let (par, perp) = project_e8(&none, E8Layout::Adjacent)?;
    assert_eq!((&par.shape()[..], &perp.shape()[..]), (&[0, 4][..], &[0, 4][..]));
    assert_eq!(quadratic_form(&none, E8Layout::Offset4)?.shape()[..], [0]);
    Ok(())
}

#[test]
fn bad_input_is_an_error() -> Result<()> {
    let cpu = Device::cpu();
    let right = tensor(&[[0.0; 8]]);
    let narrow = Tensor::zeros(&[3, 7], DType::F64, &cpu)?;
    let scalar = Tensor::zeros(&[], DType::F64, &cpu)?;
    let whole = Tensor::zeros(&[3, 8], DType::I64, &cpu)?;
    let weights = Tensor::zeros(&[2], DType::F64, &cpu)?;
    let operations: [fn(&Tensor) -> Result<Tensor>; 4] = [
        e8_quantize,
        |v| Ok(project_e8(v, E8Layout::Offset4)?.0),
        |v| quadratic_form(v, E8Layout::Adjacent),
        |v| theta_sum(v, 1.0, 1.0, E8Layout::Offset4),
    ];
    for operation in operations {
        for v in [&narrow, &scalar] {
            let error = operation(v).unwrap_err();
            assert!(
                matches!(error, Error::InvalidArgument { .. }) && error.to_string().contains("8"),
                "{error}"
            );
        }
        assert!(matches!(operation(&whole), Err(Error::DTypeMismatch { .. })));
    }
    for number in [0.0, -1.0, f64::NAN] {
        for result in [e8_quantize_scaled(&right, number), theta_sum(&right, 1.0, number, E8Layout::Offset4)]
        {
            assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{number}");
        }
    }
    assert!(e8_quantize_scaled(&right, f64::INFINITY).is_err());
    let error = theta_sum(&right, &weights, 1.0, E8Layout::Offset4).unwrap_err();
    assert!(
        matches!(error, Error::InvalidArgument { .. }) && error.to_string().contains("weights"),
        "{error}"
    );
    Ok(())
}
