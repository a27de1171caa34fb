//! The golden cones: membership, projection, and the weight in eight dimensions.

use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;
use selvedge::{Error, Result};

use crate::rows::{Row, assert_close, distance, dot, random, rows, tensor};

type Operation<'a> = dyn Fn(&Tensor) -> Result<Tensor> + 'a;

const CONES: [GoldenCone; 2] = [GoldenCone::Pair, GoldenCone::Null];

fn is_in(v: &[Row], cone: GoldenCone, tolerance: f64) -> Vec<u8> {
    let found = golden_cone_test(&tensor(v), cone, tolerance).unwrap();
    assert_eq!(found.dtype(), DType::U8);
    found.to_vec().unwrap()
}

fn project(v: &[Row], cone: GoldenCone) -> Vec<Row> {
    rows(&golden_cone_project(&tensor(v), cone).unwrap())
}

fn roots() -> Vec<Row> {
    rows(&e8_roots(E8Roots::All, &Device::cpu()).unwrap())
}

#[test]
fn cones_hold_their_counts_of_roots() -> Result<()> {
    let count = |v: Vec<u8>| v.into_iter().filter(|inside| *inside == 1).count();
    // A positive tolerance leaves the roots inside of the pair cone.
    for (cone, tolerance, wanted) in [
        (GoldenCone::Pair, GoldenCone::Pair.tolerance(), 40),
        (GoldenCone::Pair, 1e-9, 8),
        (GoldenCone::Null, GoldenCone::Null.tolerance(), 36),
        (GoldenCone::Null, -6.9e-4, 36),
        (GoldenCone::Null, 6.9e-4, 36),
    ] {
        let found = is_in(&roots(), cone, tolerance);
        assert!(
            roots().iter().zip(&found).all(|(root, found)| cone.contains(root, tolerance) == (*found == 1))
        );
        assert_eq!(count(found), wanted, "{cone:?} at {tolerance}");
        let single = golden_cone_test(&tensor(&roots()).cast(DType::F32)?, cone, tolerance)?;
        assert_eq!(count(single.to_vec()?), wanted, "{cone:?} at {tolerance} in f32");
    }
    let mut bad = [roots()[0]; 3];
    bad[1][7] = f64::NAN;
    CONES.iter().for_each(|cone| assert_eq!(is_in(&bad, *cone, f64::NEG_INFINITY)[1], 0));
    Ok(())
}

#[test]
fn projections_are_the_worked_numbers() -> Result<()> {
    let v = [1.0, 1.0, 2.0, 1.0, 0.0, -1.0, -1.0, 0.0];
    let wanted =
        [1.170820393249937, 0.7236067977499789, 2.0, 1.0, 0.0, -1.0, -0.7236067977499789, -0.447213595499958];
    let found = project(&[v], GoldenCone::Pair)[0];
    assert_close(&found, &wanted, 1e-12);
    assert_eq!(found[2..6], v[2..6], "pairs in the cone are unchanged");
    let mut e0 = [0.0; 8];
    e0[0] = 1.0;
    let wanted = [
        0.9766665385445064,
        -0.04770930859881196,
        0.02943288415696502,
        -0.10577342977181231,
        0.0020328353947202944,
        0.08112232192956959,
        0.02343977746351326,
        0.03638863953222676,
    ];
    assert_close(&project(&[e0], GoldenCone::Null)[0], &wanted, 1e-10);
    let single = golden_cone_project(&tensor(&[e0]).cast(DType::F32)?, GoldenCone::Null)?;
    assert_close(&rows(&single.cast(DType::F64)?)[0], &wanted, 1e-7);
    Ok(())
}

#[test]
fn projections_are_the_nearest_points_of_the_cone() {
    let vectors = random(5, 400, 2.0);
    for cone in CONES {
        let points = project(&vectors, cone);
        assert_eq!(is_in(&points, cone, -1e-9), vec![1; points.len()], "{cone:?}");
        let again = project(&points, cone);
        for ((v, point), again) in vectors.iter().zip(&points).zip(&again) {
            assert_close(again, point, 1e-10);
            assert!(dot(point, point) <= dot(v, v) * (1.0 + 1e-12));
            // v - p is orthogonal to p, and has no positive product with any point of the cone.
            let rest: Row = std::array::from_fn(|k| v[k] - point[k]);
            assert!(dot(&rest, point).abs() < 1e-9);
            assert!(points.iter().all(|other| dot(&rest, other) < 1e-7), "{cone:?}: {v:?}");
        }
    }
}

#[test]
fn rows_in_the_cone_are_unchanged() {
    let mut inside = 0;
    for cone in CONES {
        // Roots at the boundary of the pair cone, 0 with either sign, and vectors inside.
        let mut all = roots();
        all.extend([[0.0; 8], [-0.0; 8]]);
        all.extend(random(6, 100, 5.0));
        let projected = project(&all, cone);
        for (v, point) in all.iter().zip(&projected) {
            if cone.contains(v, 0.0) || v.iter().all(|entry| *entry == 0.0) {
                assert_eq!(v.map(f64::to_bits), point.map(f64::to_bits), "{cone:?}");
                inside += 1;
            } else {
                assert!(distance(v, point) > 0.0, "{cone:?}: {v:?}");
            }
        }
    }
    assert!(inside >= 40 + 36 + 4);
}

#[test]
fn projections_take_rows_of_any_length() {
    for cone in CONES {
        let vectors = random(7, 50, 1.0);
        let points = project(&vectors, cone);
        for factor in [1e6, 1e100] {
            let long: Vec<Row> = vectors.iter().map(|v| v.map(|entry| entry * factor)).collect();
            for (long, point) in project(&long, cone).iter().zip(&points) {
                assert_close(&long.map(|entry| entry / factor), point, 1e-8);
            }
        }
        let mut bad = [[1.0; 8]; 3];
        bad[1][2] = f64::NAN;
        let found = project(&bad, cone);
        assert!(found[1].iter().all(|entry| entry.is_nan()));
        assert_eq!(found[0], found[2]);
        assert!(found[0].iter().all(|entry| entry.is_finite()));
    }
}

#[test]
fn weights_are_the_worked_numbers() -> Result<()> {
    let root = [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let mut bad = root;
    bad[5] = f64::NAN;
    let v = tensor(&[root, root.map(|entry| -entry), bad]);
    assert_close(&weight_8d(&v)?.to_vec::<f64>()?, &[1.7380892966614983, 1e-9, 1e-9], 1e-13);
    let single = weight_8d(&v.cast(DType::F32)?)?.to_vec::<f32>()?;
    assert!((single[0] - 1.738_089_3).abs() < 1e-6 && single[1..] == [1e-9; 2], "{single:?}");
    Ok(())
}

#[test]
fn bad_input_is_an_error() -> Result<()> {
    let cpu = Device::cpu();
    let narrow = Tensor::zeros(&[3, 7], DType::F64, &cpu)?;
    let half = Tensor::zeros(&[3, 8], DType::F16, &cpu)?;
    let none = tensor(&[]);
    for cone in CONES {
        let operations: [&Operation; 3] =
            [&|v| golden_cone_test(v, cone, 0.0), &|v| golden_cone_project(v, cone), &weight_8d];
        for operation in operations {
            assert!(matches!(operation(&narrow), Err(Error::InvalidArgument { .. })));
            assert!(matches!(operation(&half), Err(Error::DTypeMismatch { .. })));
            assert_eq!(operation(&none)?.count(), 0);
        }
        assert!(matches!(golden_cone_test(&none, cone, f64::NAN), Err(Error::InvalidArgument { .. })));
    }
    Ok(())
}
