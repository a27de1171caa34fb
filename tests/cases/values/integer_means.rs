//! Means, variances and deviations of extreme integers.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use DType::{Bool, I8, I32, I64, U8, U16, U32, U64};

/// A dtype, elements, their mean, and their variance without a correction.
type Case = (DType, &'static [i128], f64, f64);

const CASES: &[Case] = &[
    (I64, &[i64::MAX as i128; 2], 9.223372036854776e18, 0.0),
    (I64, &[i64::MIN as i128; 3], -9.223372036854776e18, 0.0),
    (I64, &[i64::MAX as i128, i64::MIN as i128], 0.0, 8.507059173023461e37),
    (U64, &[u64::MAX as i128; 4], 1.8446744073709552e19, 0.0),
    (U32, &[u32::MAX as i128; 5], 4294967295.0, 0.0),
    (I32, &[i32::MIN as i128, i32::MAX as i128], -0.5, 4.611686016279904e18),
    (U16, &[65535, 65533], 65534.0, 1.0),
    (I8, &[-128, 127, 127, -128], -0.5, 16256.25),
    (U8, &[255; 1000], 255.0, 0.0),
    (Bool, &[1, 0, 1, 1], 0.75, 0.1875),
];

pub fn means_of_integers_do_not_overflow(device: &Device) {
    CASES.iter().try_for_each(|case| check(case, device)).unwrap();
}

/// Checks the three statistics of a case.
fn check(&(dtype, elements, mean, variance): &Case, device: &Device) -> selvedge::Result<()> {
    let x = match dtype {
        U64 => Tensor::new(elements.iter().map(|&x| x as u64).collect::<Vec<_>>(), device)?,
        _ => Tensor::new(elements.iter().map(|&x| x as i64).collect::<Vec<_>>(), device)?,
    };
    let x = x.cast(dtype)?;
    let statistics =
        [("mean", x.mean(0)?, mean), ("var", x.var(0, 0)?, variance), ("std", x.std(0, 0)?, variance.sqrt())];
    for (name, found, wanted) in statistics {
        assert_eq!(found.dtype(), DType::F32, "{name} of {dtype}");
        assert_eq!(found.item::<f32>()?, wanted as f32, "{name} of {dtype} {elements:?}");
    }
    Ok(())
}
