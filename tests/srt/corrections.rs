//! Correction factors, chains, special and suppression factors.

use selvedge::Error;
use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::close;

fn invalid<T>(result: selvedge::Result<T>) -> bool {
    matches!(result, Err(Error::InvalidArgument { .. }))
}

#[test]
fn factors_are_the_worked_numbers() {
    assert_eq!(q_deficit(), Q_DEFICIT);
    close(correction(248.0, 1).unwrap(), 1.0001104643020955, 1e-15);
    close(correction(24.0, -1).unwrap(), 0.9988585355450127, 1e-15);
    let dimensions: Vec<u32> = (0..8).map(|index| structure_dimension(index).unwrap()).collect();
    assert_eq!(dimensions, [248, 240, 120, 78, 36, 27, 24, 14]);
    close(special_correction(1, 1.0, 1, 1).unwrap(), 1.0443262788428653, 1e-15);
    close(special_correction(-1, 4.0, 1, 0).unwrap(), 0.8904194123212155, 1e-15);
    close(special_correction(1, 1.0, 2, -1).unwrap(), 1.0004638308465519, 1e-15);
    let suppressions = [
        0.9896443467147488,
        0.9833507585797379,
        0.9733353354823298,
        0.9575551436932337,
        0.9330782943790363,
        0.8960190463843524,
    ];
    for (k, wanted) in (-2..).zip(suppressions) {
        close(suppression(k).unwrap(), wanted, 1e-15);
    }
    let others = [
        1000.0, 720.0, 360.0, 133.0, 126.0, 72.0, 63.0, 56.0, 52.0, 32.0, 30.0, 28.0, 18.0, 16.0, 13.0, 12.0,
        9.0, 8.0, 7.0, 6.0, 4.0, 3.0, 2.0,
    ];
    for divisor in dimensions.into_iter().map(f64::from).chain(others) {
        let x = Q_DEFICIT / divisor;
        close(correction(divisor, 1).unwrap() * correction(divisor, -1).unwrap(), 1.0 - x * x, 1e-15);
    }
}

#[test]
fn batches_multiply_by_the_factor_of_each_element() {
    let cpu = Device::cpu();
    let values = Tensor::new([[1.0f64, -2.0], [3.0, 5.0]], &cpu).unwrap();
    let corrections = [
        Correction::from_structure(0, 1).unwrap(),
        Correction::new(24.0, -1).unwrap(),
        Correction::new(0.0, -1).unwrap(),
        Correction::new(-7.5, 1).unwrap(),
    ];
    let wanted =
        [1.0001104643020955, -2.0 * correction(24.0, -1).unwrap(), 3.0, 5.0 * (1.0 - Q_DEFICIT / 7.5)];
    let found = correct(&values, &corrections).unwrap();
    assert_eq!(found.to_vec::<f64>().unwrap(), wanted);
    assert_eq!(**found.shape(), [2, 2]);
    let single = correct(&values.cast(DType::F32).unwrap(), &corrections).unwrap();
    assert_eq!(single.dtype(), DType::F32);
    for (found, wanted) in single.to_vec::<f32>().unwrap().into_iter().zip(wanted) {
        close(f64::from(found), wanted, 2.0 * f64::from(f32::EPSILON));
    }
    let compound = compound_correction(&Tensor::new([1.0f64], &cpu).unwrap(), 240.0, 36.0).unwrap();
    close(compound.item().unwrap(), 0.9993530832794337, 1e-15);
}

#[test]
fn chains_apply_their_ranges_from_left_to_right() {
    let correction = |divisor: f64, sign| Correction::new(divisor, sign).unwrap();
    let all = [correction(248.0, 1), correction(36.0, -1), correction(0.0, 1), correction(8.0, 1)];
    let values = Tensor::new([100.0f64, 100.0, 100.0, f64::NAN], &Device::cpu()).unwrap();
    let found = correct_chain(&values, &all, &[0..4, 2..2, 1..3, 0..4]).unwrap().to_vec::<f64>().unwrap();
    close(found[0], 100.27715694061784, 1e-15);
    assert_eq!(found[0], 100.0 * all[0].factor() * all[1].factor() * all[3].factor());
    assert_eq!(found[1..3], [100.0, 100.0 * all[1].factor()]);
    assert!(found[3].is_nan());
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..5, 5..5, 3..2, 0..usize::MAX] {
        assert!(invalid(correct_chain(&values, &all, &[0..1, range, 0..1, 0..1])));
    }
    let error = correct_chain(&values, &all, &[0..1, 0..1]).err();
    assert!(matches!(error, Some(Error::LengthMismatch { wanted: 4, found: 2, .. })), "{error:?}");
}

#[test]
fn bad_arguments_are_refused() {
    assert!(invalid(correction(0.0, 1)) && invalid(correction(-0.0, 1)));
    assert!(invalid(correction(3.0, 0)) && invalid(correction(3.0, 2)) && invalid(correction(3.0, i32::MIN)));
    assert!(invalid(Correction::new(3.0, 5)) && invalid(Correction::from_structure(8, 1)));
    assert!(invalid(structure_dimension(8)) && invalid(structure_dimension(usize::MAX)));
    assert!(invalid(suppression(-3)) && invalid(suppression(4)));
    for (sign, coefficient, q_power, phi_power) in [
        (0, 1.0, 1, 0),
        (1, 2.0, 1, 0),
        (1, f64::NAN, 1, 0),
        (1, 1.0, 0, 0),
        (1, 1.0, 4, 0),
        (1, 1.0, 1, -3),
        (1, 1.0, 1, 6),
    ] {
        assert!(invalid(special_correction(sign, coefficient, q_power, phi_power)));
    }
    let values = Tensor::new([1.0f64], &Device::cpu()).unwrap();
    assert!(invalid(compound_correction(&values, 0.0, 3.0)));
    let whole = values.cast(DType::I32).unwrap();
    for result in
        [correct(&whole, &[]), compound_correction(&whole, 1.0, 1.0), correct_chain(&whole, &[], &[])]
    {
        assert!(matches!(result, Err(Error::DTypeMismatch { .. })));
    }
    assert!(matches!(correct(&values, &[]), Err(Error::LengthMismatch { wanted: 1, found: 0, .. })));
}
