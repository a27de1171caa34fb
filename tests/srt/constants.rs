//! The constants are the nearest f64 of their definitions.

use selvedge::srt::*;

#[test]
fn constants_are_the_nearest_numbers() {
    let (pi, e) = (std::f64::consts::PI, std::f64::consts::E);
    let table = [
        (PHI, 0x3ff9_e377_9b97_f4a8u64, 0.5 * (1.0 + 5.0f64.sqrt())),
        (INVERSE_PHI, 0x3fe3_c6ef_372f_e950, PHI - 1.0),
        (INVERSE_PHI_SQUARED, 0x3fd8_7221_91a0_2d61, 2.0 - PHI),
        (SQRT5, 0x4001_e377_9b97_f4a8, 5.0f64.sqrt()),
        (LN_PHI, 0x3fde_cc2c_aec5_160a, PHI.ln()),
        (ESTAR, 0x4033_ffc5_0428_0d97, pi.exp() - pi),
        (Q_DEFICIT, 0x3f9c_0d79_305b_59e4, (2.0 * PHI + e / (2.0 * PHI * PHI)) / (PHI.powi(4) * ESTAR)),
        (PROJECTION_NORM, 0x3fe0_d2ca_0da1_530d, (1.0 + PHI * PHI).sqrt().recip()),
    ];
    for (constant, bits, formula) in table {
        assert_eq!(constant.to_bits(), bits, "{constant}");
        // The formula rounds several times.
        assert!((constant - formula).abs() <= 1e-15 * formula.abs(), "{constant}, {formula} by the formula");
    }
}
