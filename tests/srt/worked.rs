//! The worked numbers that `selvedge srt verify` checks.

use selvedge::tensor::Device;

use crate::cases::{Class, Computation, cases};

#[test]
fn every_worked_number_is_met_on_the_cpu() {
    for case in cases() {
        let found = case.compute(&Device::cpu()).unwrap();
        let (error, is_good) = case.error(&found);
        assert!(
            is_good,
            "{} ({}): {found:?}, wanted {:?}, error {error:e}",
            case.operation, case.section, case.wanted
        );
        assert!(case.agrees(&found, &found));
        assert!(
            !case.class.name().is_empty()
                && case.is_on_host() == matches!(case.computation, Computation::Host(_))
        );
    }
}

#[test]
fn a_class_allows_its_difference_and_no_more() {
    let next = |x: f64, ulps: u64| f64::from_bits(x.to_bits() + ulps);
    for (class, allowed, refused) in [
        (Class::T0, 1.5, next(1.5, 1)),
        (Class::T1, next(1.5, 2), next(1.5, 4)),
        (Class::T2, 1.5 + 1e-14, 1.5 + 2e-14),
        (Class::T3(10), 1.5 + 1e-14, 1.5 + 3e-14),
        (Class::T4, 1.5, next(1.5, 1)),
    ] {
        assert!(class.agrees(allowed, 1.5, 1.5), "{class:?}");
        assert!(!class.agrees(refused, 1.5, 1.5), "{class:?}");
        assert!(class.agrees(f64::NAN, -f64::NAN, 1.0) && !class.agrees(f64::NAN, 1.0, 1.0));
    }
}
