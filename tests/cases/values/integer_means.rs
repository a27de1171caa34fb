//! Means, variances and deviations of extreme integers, and statistics of long rows of 16-bit floats.

use selvedge::tensor::{Device, Generator, ScatterReduction, Tensor};
use selvedge::types::DType;

use DType::{Bool, I8, I16, I32, I64, U8, U16, U32, U64};

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

/// A dtype, an element of the tensor, elements that meet it, and their means without and with it, rounded down.
type IndexedCase = (DType, i128, &'static [i128], i128, i128);

const INDEXED_CASES: &[IndexedCase] = &[
    (U8, 0, &[200, 200, 200], 200, 150),
    (U8, 255, &[255; 1000], 255, 255),
    (I8, -128, &[-128, -127, -128], -128, -128),
    (I16, 30000, &[30000, 30000], 30000, 30000),
    (U16, 1, &[65535, 65535], 65535, 43690),
    (I32, -1, &[2_000_000_000; 3], 2_000_000_000, 1_499_999_999),
    (I32, 7, &[i32::MIN as i128, i32::MAX as i128], -1, 2),
    (U32, u32::MAX as i128, &[u32::MAX as i128; 5], u32::MAX as i128, u32::MAX as i128),
    (I64, i64::MIN as i128, &[i64::MAX as i128; 2], i64::MAX as i128, 3074457345618258602),
    (I64, 0, &[i64::MIN as i128; 3], i64::MIN as i128, -6917529027641081856),
    (I64, -5, &[i64::MAX as i128, i64::MIN as i128], -1, -2),
    (I64, 1, &[-1, -2, 4294967296, -4294967297], -1, -1),
    (I64, 12345678901, &[98765432109876, -7, 4294967295], 32923242359054, 24695518189016),
    (U64, 0, &[u64::MAX as i128; 4], u64::MAX as i128, 14757395258967641292),
    (U64, u64::MAX as i128, &[u64::MAX as i128, 0], 9223372036854775807, 12297829382473034410),
];

pub fn means_of_integers_by_index_and_segment_do_not_overflow(device: &Device) {
    INDEXED_CASES.iter().try_for_each(|case| check_indexed(case, device)).unwrap();
}

fn integers(dtype: DType, elements: &[i128], device: &Device) -> selvedge::Result<Tensor> {
    match dtype {
        U64 => Tensor::new(elements.iter().map(|&x| x as u64).collect::<Vec<_>>(), device),
        _ => Tensor::new(elements.iter().map(|&x| x as i64).collect::<Vec<_>>(), device)?.cast(dtype),
    }
}

fn check_indexed(
    &(dtype, own, elements, without, with): &IndexedCase,
    device: &Device,
) -> selvedge::Result<()> {
    let (own, elements, count) = (integers(dtype, &[own], device)?, elements, elements.len());
    let wanted = |mean: i128| integers(dtype, &[mean], &Device::cpu())?.to_bytes();
    let elements_there = integers(dtype, elements, device)?;
    let index = Tensor::zeros(&[count], I64, device)?;
    for (include_self, mean) in [(false, without), (true, with)] {
        let found = own.scatter_reduce(0, &index, &elements_there, ScatterReduction::Mean, include_self)?;
        assert_eq!(found.to_bytes()?, wanted(mean)?, "{dtype} {elements:?}, include_self {include_self}");
    }
    let lengths = Tensor::new([count as i64], device)?;
    let found = elements_there.segment_reduce(&lengths, ScatterReduction::Mean, 0)?;
    assert_eq!(found.to_bytes()?, wanted(without)?, "segments of {dtype} {elements:?}");
    Ok(())
}

pub fn covariances_of_more_elements_than_f16_counts_are_those_of_f64(device: &Device) {
    let check = |dtype: DType| -> selvedge::Result<()> {
        let x = Generator::new(3).uniform(1.0, 9.0, &[2, 70_000], DType::F32, device)?.cast(dtype)?;
        let exact = x.cast(DType::F64)?;
        let cases = [(x.cov(1)?, exact.cov(1)?), (x.corrcoef()?, exact.corrcoef()?)];
        for (found, wanted) in cases {
            assert_eq!(found.dtype(), dtype);
            let (found, wanted) = (super::numbers(&found), super::numbers(&wanted));
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 0.004 * b.abs() + 1e-5;
            assert!(found.iter().zip(&wanted).all(is_close), "{dtype}: {found:?}, not {wanted:?}");
        }
        Ok(())
    };
    [DType::F16, DType::BF16].into_iter().try_for_each(check).unwrap();
}
