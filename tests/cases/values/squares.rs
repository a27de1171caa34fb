//! Norms, deviations and normalisations whose squares leave the range of the dtype while the result does not.
//!
//! Wanted values are those of the same numbers in a wider range: norms are homogeneous, and normalised elements do not depend on a
//! factor.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use super::numbers;

/// Checks numbers to within a relative error.
fn assert_close(what: &str, found: &Tensor, wanted: &[f64], epsilon: f64) {
    let found = numbers(found);
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (&found, &wanted) in found.iter().zip(wanted) {
        let is_close = found == wanted || (found - wanted).abs() <= epsilon * wanted.abs();
        assert!(is_close || found.is_nan() && wanted.is_nan(), "{what}: {found:e}, not {wanted:e}");
    }
}

/// Factors of elements for each dtype, and an error.
fn factors(dtype: DType) -> (&'static [f64], f64) {
    match dtype {
        DType::F64 => (&[1.0, 1e154, 1e160, 1e300, 1e-160, 1e-170, 1e-300], 1e-15),
        DType::BF16 => (&[1.0, 1.5e19, 3e20, 1e35, 1e-25, 1e-30], 8e-3),
        _ => (&[1.0, 1.5e19, 3e20, 1e30, 1e35, 1e-21, 1e-30, 1e-36], 4e-7),
    }
}

fn scaled(elements: &[f64], factor: f64, dtype: DType, device: &Device) -> selvedge::Result<Tensor> {
    Tensor::new(elements.iter().map(|x| x * factor).collect::<Vec<_>>(), device)?.cast(dtype)
}

const DTYPES: [DType; 3] = [DType::F32, DType::F64, DType::BF16];

pub fn norms_of_elements_whose_squares_leave_the_range_are_right(device: &Device) {
    norms(device).unwrap();
}

fn norms(device: &Device) -> selvedge::Result<()> {
    for dtype in DTYPES {
        let (factors, error) = factors(dtype);
        for &factor in factors {
            let x = scaled(&[3.0, 4.0], factor, dtype, device)?;
            assert_close("norm", &x.norm_all(2.0)?, &[5.0 * factor], error);
            assert_close("normalize", &x.normalize(2.0, 0, 0.0)?, &[0.6, 0.8], error);
            // One row, a column beside others, and rows of several launches.
            for size in [2usize, 31, 1024, 1025, 70_000] {
                let both = [1.0, factor, 0.0, 1.0];
                let rows = Tensor::new(both, device)?.reshape(&[4, 1])?.expand(&[4, size])?.cast(dtype)?;
                let root = (size as f64).sqrt();
                let wanted = both.map(|x| x * root);
                assert_close("norm of rows", &rows.norm(2.0, 1)?, &wanted, error);
                assert_close("norm of columns", &rows.t()?.contiguous()?.norm(2.0, 0)?, &wanted, error);
                let all = rows.contiguous()?.narrow(0, 1, 1)?;
                assert_close("norm of all", &all.norm_all(2.0)?, &[factor * root], error);
            }
            let (a, b) = (x.reshape(&[1, 2])?, x.zeros_like()?.reshape(&[1, 2])?);
            assert_close("cdist", &a.cdist(&b, 2.0)?, &[5.0 * factor], error);
        }
    }
    // Norms beyond the range, of a group in registers and of longer ones.
    for (dtype, most, error) in
        [(DType::F32, 3e38, 4e-7), (DType::F64, 1.7e308, 1e-15), (DType::BF16, 3e38, 8e-3)]
    {
        for size in [2usize, 31, 1025, 70_000] {
            let signs = Tensor::arange(0.0, size as f64, 1.0, DType::F64, device)?.cos()?.sign()?;
            let x = (&signs * most)?.cast(dtype)?;
            let wanted = (&signs / (size as f64).sqrt())?;
            assert_close("normalize of the largest", &x.normalize(2.0, 0, 1e-12)?, &numbers(&wanted), error);
            assert_close(
                "rms_norm of the largest",
                &x.rms_norm(&[size], None, Some(1e-5))?,
                &numbers(&signs),
                error,
            );
        }
        let x = Tensor::new([most, -most], device)?.cast(dtype)?;
        assert_close(
            "layer_norm of the largest",
            &x.layer_norm(&[2], None, None, 1e-5)?,
            &[1.0, -1.0],
            error,
        );
        assert_close("standardize of the largest", &x.standardize(0)?, &[1.0, -1.0], error);
        let wanted = numbers(&x.max_all()?);
        assert_close("biased deviation of the largest", &x.std(0, 0)?, &wanted, error);
    }
    // An eps that the factor of small squares would make infinite.
    let x = Tensor::new([1e-36f32, 0.0], device)?;
    assert_close("normalize by a large eps", &x.normalize(2.0, 0, 1e10)?, &[0.0, 0.0], 0.0);
    assert_close("normalize of zeros", &x.zeros_like()?.normalize(2.0, 0, 1e-12)?, &[0.0, 0.0], 0.0);
    assert_close("normalize by eps", &x.normalize(2.0, 0, 1e-2)?, &[1e-34, 0.0], 4e-7);
    let x = Tensor::new([3e20f32, f32::INFINITY], device)?;
    assert_close("norm of an infinity", &x.norm_all(2.0)?, &[f64::INFINITY], 0.0);
    let x = Tensor::new([3e20f32, f32::NAN, f32::INFINITY], device)?;
    assert_close("norm of NaN", &x.norm_all(2.0)?, &[f64::NAN], 0.0);
    let x = Tensor::new([0.0f32, -0.0], device)?;
    assert_close("norm of zeros", &x.norm_all(2.0)?, &[0.0], 0.0);
    let x = Tensor::new([num_complex::Complex::new(3e20f32, 4e20); 4], device)?;
    assert_close("norm of complex numbers", &x.norm_all(2.0)?, &[1e21], 4e-7);
    Ok(())
}

pub fn deviations_of_elements_whose_squares_leave_the_range_are_right(device: &Device) {
    deviations(device).unwrap();
}

fn deviations(device: &Device) -> selvedge::Result<()> {
    for dtype in DTYPES {
        let (factors, error) = factors(dtype);
        for &factor in factors {
            let x = scaled(&[1.0, -1.0], factor, dtype, device)?;
            assert_close("std", &x.std(0, 1)?, &[2f64.sqrt() * factor], error);
            assert_close("std without correction", &x.std(0, 0)?, &[factor], error);
            let x = scaled(&[1.0, -1.0, 0.0, 2.0], factor, dtype, device)?;
            let root = 1.25f64.sqrt();
            let wanted = [0.5, -1.5, -0.5, 1.5].map(|x| x / root);
            assert_close("standardize", &x.standardize(0)?, &wanted, 4.0 * error);
            assert_close("layer_norm", &x.layer_norm(&[4], None, None, 0.0)?, &wanted, 4.0 * error);
            let channels = x.reshape(&[1, 2, 2])?;
            assert_close("group_norm", &channels.group_norm(1, None, None, 0.0)?, &wanted, 4.0 * error);
            let batch = x.reshape(&[4, 1])?;
            let found = batch.batch_norm_training(None, None, None, 0.1, 0.0)?;
            assert_close("batch_norm", &found, &wanted, 4.0 * error);
            let root = 1.5f64.sqrt();
            let wanted = [1.0, -1.0, 0.0, 2.0].map(|x| x / root);
            assert_close("rms_norm", &x.rms_norm(&[4], None, Some(0.0))?, &wanted, 4.0 * error);
        }
    }
    // Beside an eps, large elements are what counts, and small ones vanish.
    let x = Tensor::new(
        [[1e30f32, -1e30, 0.0, 2e30], [1e-30, -1e-30, 0.0, 2e-30], [1.0, -1.0, 0.0, 2.0]],
        device,
    )?;
    let root = 1.25f64.sqrt();
    let large = [0.5, -1.5, -0.5, 1.5].map(|x| x / root);
    let small = [0.5e-30, -1.5e-30, -0.5e-30, 1.5e-30].map(|x| x / 1e-5f64.sqrt());
    let usual = [0.5, -1.5, -0.5, 1.5].map(|x| x / (1.25f64 + 1e-5).sqrt());
    let wanted = [large, small, usual].concat();
    assert_close("layer_norm with eps", &x.layer_norm(&[4], None, None, 1e-5)?, &wanted, 2e-6);
    Ok(())
}

pub fn a_clip_of_elements_whose_squares_leave_the_range_is_right(device: &Device) {
    clips(device).unwrap();
}

fn clips(device: &Device) -> selvedge::Result<()> {
    let x = Tensor::new([3e20f32, 0.0], device)?;
    let y = Tensor::new([4e20f32], device)?;
    let (clipped, norm) = Tensor::clip_by_global_norm(&[&x, &y], 1.0)?;
    assert_close("norm", &norm, &[5e20], 4e-7);
    assert_close("clipped", &clipped[0], &[0.6, 0.0], 1e-6);
    assert_close("clipped", &clipped[1], &[0.8], 1e-6);
    let (clipped, _) = Tensor::clip_by_global_norm(&[&x, &y], f64::INFINITY)?;
    assert_close("not clipped", &clipped[0], &numbers(&x), 0.0);
    let endless = Tensor::new([f32::INFINITY, 2.0], device)?;
    let (clipped, _) = Tensor::clip_by_global_norm(&[&endless], f64::INFINITY)?;
    assert_close("not clipped", &clipped[0], &[f64::INFINITY, 2.0], 0.0);
    let missing = Tensor::new([f32::NAN, 2.0], device)?;
    let (clipped, _) = Tensor::clip_by_global_norm(&[&missing], f64::INFINITY)?;
    assert_close("not a number", &clipped[0], &[f64::NAN; 2], 0.0);
    Ok(())
}
