//! Input of a run from an `.npy` file: rows of burst, id and potential.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use selvedge::Error;
use selvedge::io::{HostArray, npy};
use selvedge::types::DType;

use crate::failure::Failure;

/// The input of a run by burst.
#[derive(Debug, Default)]
pub struct Input {
    pub bursts: BTreeMap<u64, Vec<(u32, f32)>>,
    /// Rows of the file, and rows that the run uses.
    pub rows: u64,
    pub used: u64,
}

/// Reads the rows of a file for a run of these bursts. Every row is checked.
pub fn read(path: &Path, neurons: usize, bursts: RangeInclusive<u64>) -> Result<Input, Failure> {
    let array = npy::read(path)?;
    let refused = |found: String, wanted: String| -> Failure {
        Error::File { path: path.display().to_string(), found, wanted }.into()
    };
    let rows = match *array.shape() {
        [rows, 3] => rows,
        ref shape => {
            let wanted = "three columns: burst, id, potential".to_owned();
            return Err(refused(format!("an array of shape {shape:?}"), wanted));
        }
    };
    let Some(numbers) = numbers(&array)? else {
        let wanted = "an integer or floating-point type".to_owned();
        return Err(refused(format!("an array of {}", array.dtype()), wanted));
    };
    let mut input = Input { rows: rows as u64, ..Input::default() };
    for (at, row) in numbers.chunks_exact(3).enumerate() {
        let burst = whole(row[0], 1.0, u64::MAX as f64).ok_or_else(|| {
            refused(format!("burst {} in row {at}", row[0]), "a whole number from 1".into())
        })?;
        let id = whole(row[1], 0.0, neurons as f64 - 1.0).ok_or_else(|| {
            refused(format!("id {} in row {at}", row[1]), format!("a whole number below {neurons}"))
        })?;
        if !row[2].is_finite() {
            return Err(refused(format!("potential {} in row {at}", row[2]), "a finite number".into()));
        }
        if bursts.contains(&burst) {
            input.bursts.entry(burst).or_default().push((id as u32, row[2] as f32));
            input.used += 1;
        }
    }
    Ok(input)
}

/// Returns a whole number in a range.
fn whole(number: f64, least: f64, most: f64) -> Option<u64> {
    (number >= least && number <= most && number.fract() == 0.0).then_some(number as u64)
}

/// Returns the elements as f64, or none for another kind of type.
fn numbers(array: &HostArray) -> Result<Option<Vec<f64>>, Failure> {
    macro_rules! cast {
        ($type:ty) => {
            array.as_slice::<$type>()?.iter().map(|&number| number as f64).collect()
        };
    }
    Ok(Some(match array.dtype() {
        DType::F64 => array.as_slice::<f64>()?.to_vec(),
        DType::F32 => cast!(f32),
        DType::F16 => array.as_slice::<half::f16>()?.iter().map(|number| number.to_f64()).collect(),
        DType::BF16 => array.as_slice::<half::bf16>()?.iter().map(|number| number.to_f64()).collect(),
        DType::U8 => cast!(u8),
        DType::I8 => cast!(i8),
        DType::U16 => cast!(u16),
        DType::I16 => cast!(i16),
        DType::U32 => cast!(u32),
        DType::I32 => cast!(i32),
        DType::U64 => cast!(u64),
        DType::I64 => cast!(i64),
        _ => return Ok(None),
    }))
}
