//! The first elements of an array as text.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::Result;
use selvedge::io::HostArray;
use selvedge::types::{Bool, DType, Element, F8E4M3, F8E5M2};

/// The first `count` elements, each as the shortest text that reads back to it.
pub fn first(array: &HostArray, count: usize) -> Result<Vec<String>> {
    match array.dtype() {
        DType::Bool => texts(array, count, |value: &Bool| value.get().to_string()),
        DType::U8 => texts(array, count, u8::to_string),
        DType::I8 => texts(array, count, i8::to_string),
        DType::U16 => texts(array, count, u16::to_string),
        DType::I16 => texts(array, count, i16::to_string),
        DType::U32 => texts(array, count, u32::to_string),
        DType::I32 => texts(array, count, i32::to_string),
        DType::U64 => texts(array, count, u64::to_string),
        DType::I64 => texts(array, count, i64::to_string),
        DType::F16 => texts(array, count, |value: &f16| format!("{:?}", value.to_f32())),
        DType::BF16 => texts(array, count, |value: &bf16| format!("{:?}", value.to_f32())),
        DType::F32 => texts(array, count, |value: &f32| format!("{value:?}")),
        DType::F64 => texts(array, count, |value: &f64| format!("{value:?}")),
        DType::C64 => texts(array, count, Complex::<f32>::to_string),
        DType::C128 => texts(array, count, Complex::<f64>::to_string),
        DType::F8E4M3 => texts(array, count, |value: &F8E4M3| format!("{:#04x}", value.to_bits())),
        DType::F8E5M2 => texts(array, count, |value: &F8E5M2| format!("{:#04x}", value.to_bits())),
        // A dtype that is younger than this program.
        _ => Ok(Vec::new()),
    }
}

fn texts<T: Element>(array: &HostArray, count: usize, text: impl Fn(&T) -> String) -> Result<Vec<String>> {
    Ok(array.as_slice::<T>()?.iter().take(count).map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_a_text() {
        for dtype in DType::ALL {
            let array = HostArray::zeros(dtype, &[3]).unwrap();
            assert_eq!(first(&array, 8).unwrap().len(), 3, "{dtype}");
            assert_eq!(first(&array, 2).unwrap().len(), 2, "{dtype}");
        }
        let array = HostArray::from_slice(&[Complex::new(1.5f32, -2.0)], &[]).unwrap();
        assert_eq!(first(&array, 8).unwrap(), ["1.5-2i"]);
    }
}
