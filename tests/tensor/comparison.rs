//! Comparisons within a tolerance, against NumPy's rule.

use selvedge::tensor::{Device, Tensor};
use selvedge::{Complex, DType, Result};

#[test]
fn isclose_is_numpys_rule() -> Result<()> {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    // x, y, rtol, atol, close.
    let table = [
        (1.0, 1.0, 0.0, 0.0, true),
        (1.0, 1.1, 0.0, 0.2, true),
        (1.0, 1.1, 0.0, 0.05, false),
        (100.0, 101.0, 0.01, 0.0, true),
        (101.0, 100.0, 0.01, 0.0, true),
        (102.0, 100.0, 0.01, 0.0, false),
        (0.0, 1e-9, 1e-5, 1e-8, true),
        (0.0, 1e-7, 1e-5, 1e-8, false),
        (inf, inf, 1e-5, 1e-8, true),
        (inf, -inf, 1e-5, 1e-8, false),
        (1.0, inf, 1e-5, 1e-8, false),
        (inf, 1.0, 1e-5, 1e-8, false),
        (nan, nan, 1e-5, 1e-8, false),
        (-0.0, 0.0, 0.0, 0.0, true),
    ];
    for (x, y, rtol, atol, wanted) in table {
        let [left, right] = [x, y].map(|number| Tensor::new([number], &Device::cpu()).unwrap());
        assert_eq!(left.isclose(&right, rtol, atol)?.to_vec::<bool>()?, [wanted], "{x} {y} {rtol} {atol}");
        assert_eq!(left.allclose(&right, rtol, atol)?, wanted, "{x} {y}");
    }
    Ok(())
}

#[test]
fn allclose_takes_all_dtypes_and_broadcasts() -> Result<()> {
    let cpu = Device::cpu();
    let x = Tensor::new([[1u8, 2], [1, 2]], &cpu)?;
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool) {
        let row = Tensor::new([1.0f32, 2.0], &cpu)?.cast(dtype)?;
        assert!(x.allclose(&row, 0.0, 0.0)?, "{dtype}");
        assert!(!x.allclose(&row.flip(&[0])?, 0.0, 0.5)?, "{dtype}");
    }
    let z = Tensor::new([Complex::new(1.0f32, 2.0)], &cpu)?;
    let near = Tensor::new([Complex::new(1.0f64, 2.0 + 1e-9)], &cpu)?;
    assert!(z.allclose(&near, 0.0, 1e-8)?);
    assert!(!z.allclose(&z.real()?, 0.0, 1e-8)?);
    let none = Tensor::zeros(&[0], DType::F32, &cpu)?;
    assert!(none.allclose(&none, 0.0, 0.0)?);
    let error = x.allclose(&Tensor::new([1, 2, 3], &cpu)?, 0.0, 0.0).unwrap_err().to_string();
    assert!(error.starts_with("allclose: found shapes [2, 2] and [3]"), "{error}");
    Ok(())
}
