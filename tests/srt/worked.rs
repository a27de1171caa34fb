//! The worked numbers that `selvedge srt verify` checks.

use selvedge::tensor::Device;
use selvedge::types::DType;

use crate::cases::{Class, Computation, cases};

#[test]
fn every_worked_number_is_met_on_the_cpu_in_each_precision() {
    let mut in_f32 = 0;
    for case in cases() {
        for dtype in case.dtypes() {
            let found = case.compute(&Device::cpu(), *dtype).unwrap();
            let (error, is_good) = case.error(&found, *dtype);
            assert!(
                is_good,
                "{} ({}) in {dtype}: {found:?}, wanted {:?}, error {error:e}",
                case.operation, case.section, case.wanted
            );
            assert!(case.agrees(&found, &found, *dtype));
            in_f32 += usize::from(*dtype == DType::F32);
        }
        assert!(
            !case.class.name().is_empty()
                && case.is_on_host() == matches!(case.computation, Computation::Host(_))
        );
    }
    assert!(in_f32 > 80, "{in_f32}");
}

#[test]
fn a_class_allows_its_difference_and_no_more() {
    let next = |x: f64, ulps: u64| f64::from_bits(x.to_bits() + ulps);
    let next_f32 = |x: f32, ulps: u32| f64::from(f32::from_bits(x.to_bits() + ulps));
    let [double, single] = [DType::F64, DType::F32];
    for (dtype, class, allowed, refused) in [
        (double, Class::T0, 1.5, next(1.5, 1)),
        (double, Class::T1, next(1.5, 2), next(1.5, 4)),
        (double, Class::T2, 1.5 + 1e-14, 1.5 + 2e-14),
        (double, Class::T3(10), 1.5 + 1e-14, 1.5 + 3e-14),
        (double, Class::T4, 1.5, next(1.5, 1)),
        (double, Class::Relative(-13), 1.5 + 1e-13, 1.5 + 2e-13),
        (single, Class::T0, 1.5, next_f32(1.5, 1)),
        (single, Class::T1, next_f32(1.5, 2), next_f32(1.5, 4)),
        (single, Class::T2, 1.5 + 2e-6, 1.5 + 4e-6),
        (single, Class::T3(100), 1.5 + 1e-5, 1.5 + 3e-5),
        (single, Class::T4, 1.5, next_f32(1.5, 1)),
        (single, Class::Relative(-13), 1.5 + 2e-6, 1.5 + 4e-6),
    ] {
        assert!(class.agrees(dtype, allowed, 1.5, 1.5), "{class:?} of {dtype}");
        assert!(!class.agrees(dtype, refused, 1.5, 1.5), "{class:?} of {dtype}");
        assert!(class.agrees(dtype, f64::NAN, -f64::NAN, 1.0) && !class.agrees(dtype, f64::NAN, 1.0, 1.0));
    }
}
