//! Residual connections.

use selvedge::srt::*;
use selvedge::types::DType;

use crate::common::*;

const X: [f64; 4] = [1.0, -1.0, 0.5, -2.0];
const R: [f64; 4] = [1.0, 2.0, -3.0, 1.0];

#[test]
fn residuals_have_the_worked_numbers() {
    let (x, r) = (vector(&X), vector(&R));
    let phi = [1.618033988749895, 0.2360679774997898, -1.3541019662496847, -1.381966011250105];
    let symmetric = [1.2360679774997898, 0.6180339887498949, -1.5450849718747373, -0.6180339887498949];
    let standard = [2.0, 1.0, -2.5, -1.0];
    let gelu = [1.5323808892233788, 0.14006051781202092, -0.1191940454667957, -0.1156152353135927];
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 2e-6)] {
        let (x, r) = (x.cast(dtype).unwrap(), r.cast(dtype).unwrap());
        for (mode, wanted) in [
            (ResidualMode::Phi, phi),
            (ResidualMode::PhiSymmetric, symmetric),
            (ResidualMode::Standard, standard),
        ] {
            let residual = phi_residual(&x, &r, mode).unwrap();
            assert_eq!(residual.dtype(), dtype);
            assert_close(&residual, &wanted, tolerance);
            let positive = wanted.map(|v: f64| v.max(0.0));
            assert_close(&phi_residual_relu(&x, &r, mode).unwrap(), &positive, tolerance);
        }
        assert_close(&phi_residual_gelu(&x, &r).unwrap(), &gelu, 10.0 * tolerance);
    }
}

#[test]
fn a_phi_residual_is_one_fused_multiply_add() {
    let (x, r) = (sequence(1000, 1), sequence(1000, 2));
    let wanted: Vec<f64> = x.iter().zip(&r).map(|(x, r)| r.mul_add(INVERSE_PHI, *x)).collect();
    let found = phi_residual(&vector(&x), &vector(&r), ResidualMode::Phi).unwrap();
    assert_eq!(found.to_vec::<f64>().unwrap(), wanted);
    let single = |list: &[f64]| list.iter().map(|x| *x as f32).collect::<Vec<f32>>();
    let (x, r) = (single(&x), single(&r));
    let wanted: Vec<f32> = x.iter().zip(&r).map(|(x, r)| r.mul_add(INVERSE_PHI as f32, *x)).collect();
    let found = phi_residual(&tensor(&x, &[1000]), &tensor(&r, &[1000]), ResidualMode::Phi).unwrap();
    assert_eq!(found.to_vec::<f32>().unwrap(), wanted);
}

#[test]
fn relu_turns_nan_and_minus_zero_into_zero_unless_nan_is_kept() {
    let (x, zero) = (vector(&[f64::NAN, -0.0, f64::INFINITY, -1.0]), vector(&[-0.0; 4]));
    for mode in [ResidualMode::Phi, ResidualMode::PhiSymmetric, ResidualMode::Standard] {
        let relu = phi_residual_relu(&x, &zero, mode).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(relu.iter().map(|x| x.to_bits()).collect::<Vec<_>>()[..2], [0, 0]);
        assert_eq!(relu[2..], [f64::INFINITY, 0.0]);
        let kept = phi_residual_relu_keeping_nan(&x, &zero, mode).unwrap().to_vec::<f64>().unwrap();
        assert!(kept[0].is_nan() && kept[1].to_bits() == 0 && kept[2..] == relu[2..], "{kept:?}");
    }
    let large = phi_residual_gelu(&vector(&[1e3, -1e3, f64::NAN]), &vector(&[0.0; 3])).unwrap();
    let large = large.to_vec::<f64>().unwrap();
    assert!(large[0] == 1e3 && large[1].to_bits() == (-0.0f64).to_bits() && large[2].is_nan(), "{large:?}");
}

#[test]
fn layer_norm_has_the_worked_numbers_and_poisons_its_own_row() {
    let wanted = [1.4740363266779406, 0.3660461942780231, -0.9088712727004656, -0.9312112482554981];
    let (x, r) = (vector(&X), vector(&R));
    assert_worked(&phi_residual_layer_norm(&x, &r, None, None, 1e-5).unwrap(), &wanted);
    let single = |x: &selvedge::Tensor| x.cast(DType::F32).unwrap();
    let found = phi_residual_layer_norm(&single(&x), &single(&r), None, None, 1e-5).unwrap();
    assert_eq!(found.dtype(), DType::F32);
    assert_close(&found, &wanted, 1e-5);

    let (gamma, beta) = (vector(&[2.0, 1.0, 0.5, -1.0]), vector(&[0.5, 0.0, 0.0, 1.0]));
    let rows = [&X[..], &[f64::NAN, 1.0, 2.0, 3.0], &[5.0; 4]].concat();
    let residuals = [&R[..], &[0.0; 8]].concat();
    let (rows, residuals) = (tensor(&rows, &[3, 4]), tensor(&residuals, &[3, 4]));
    let found = phi_residual_layer_norm(&rows, &residuals, Some(&gamma), Some(&beta), 1e-5).unwrap();
    let affine: Vec<f64> =
        (0..4).map(|i| [2.0, 1.0, 0.5, -1.0][i] * wanted[i] + [0.5, 0.0, 0.0, 1.0][i]).collect();
    // A constant row is beta exactly.
    let wanted = [&affine[..], &[f64::NAN; 4], &[0.5, 0.0, 0.0, 1.0]].concat();
    assert_worked(&found, &wanted);
}

#[test]
fn residuals_refuse_operands_that_do_not_match() {
    let (x, r) = (vector(&X), vector(&R));
    assert_invalid(phi_residual(&x, &vector(&[1.0]), ResidualMode::Phi), &["[4]", "[1]"]);
    assert_dtype_error(phi_residual_relu(&x, &r.cast(DType::F32).unwrap(), ResidualMode::Phi));
    assert_dtype_error(phi_residual_gelu(&x.cast(DType::I64).unwrap(), &r.cast(DType::I64).unwrap()));
    let empty = vector(&[]);
    assert_eq!(phi_residual(&empty, &empty, ResidualMode::Phi).unwrap().count(), 0);
    assert_invalid(phi_residual_layer_norm(&empty, &empty, None, None, 1e-5), &["[0]"]);
    assert_invalid(phi_residual_layer_norm(&x, &r, None, None, f64::NAN), &["NaN"]);
    assert_invalid(
        phi_residual_layer_norm(&x, &r, Some(&vector(&[1.0])), None, 1e-5),
        &["gamma", "[1]", "[4]"],
    );
    let beta = vector(&R).cast(DType::F32).unwrap();
    assert_dtype_error(phi_residual_layer_norm(&x, &r, None, Some(&beta), 1e-5));
}
