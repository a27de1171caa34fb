//! The kernels of sorts and searches without a GPU, held against the CPU exactly.

use selvedge::DType;
use selvedge::driver::Stream;
use selvedge::sort::{SortKey, argsort, argsort_host, search, search_host};

use super::build::Family;
use super::{Outcome, emulate, family, with_seeds};
use crate::support::Fake;

/// Shared memory is a variable of the source, so one block runs at a time.
const SORT: Family = family("sort.cu", &[], 1, 1);

/// Elements of a tile of 32-bit keys; one of 64-bit keys has half of them.
const TILE: usize = 4096;

/// Bytes of a linear congruential generator; `mask` makes equal elements frequent.
pub fn bytes(count: usize, mask: u8) -> Vec<u8> {
    let mut state = count as u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8 & mask
    };
    (0..count).map(|_| next()).collect()
}

fn check_sort(stream: &Stream, dtype: DType, rows: usize, length: usize, mask: u8) -> Outcome {
    let elements = bytes(rows * length * dtype.size(), mask);
    let memory = stream.upload(&elements)?;
    for descending in [false, true] {
        let key = SortKey::new("sort", dtype, descending)?;
        let mut wanted = vec![0; rows * length];
        argsort_host(key, &elements, rows, &mut wanted)?;
        let mut positions = stream.zeros::<i64>(rows * length)?;
        argsort(stream, key, &memory, rows, &mut positions)?;
        if stream.download(&positions)? != wanted {
            return Err(format!("{rows} rows of {length} {dtype}, mask {mask:x}, {descending}").into());
        }
    }
    Ok(())
}

/// Child: sorts around the sizes at which the kernels change, with all kinds and widths of keys; searches.
pub fn sorts(fake: &Fake) -> Outcome {
    emulate(fake, &[SORT])?;
    with_seeds(1, |stream| {
        // One block a row: every kind of key, and sizes around powers of two.
        for dtype in
            [DType::Bool, DType::I8, DType::F16, DType::BF16, DType::U32, DType::F32, DType::I64, DType::F64]
        {
            check_sort(stream, dtype, 3, 33, 0xff)?;
        }
        for length in [1, 2, 64, 65, 300, 2048] {
            check_sort(stream, DType::I32, 2, length, 1)?;
            check_sort(stream, DType::F64, 1, length, 0xff)?;
        }
        // Tiles that are whole or not, in one row and several; one pass, two, four and eight.
        check_sort(stream, DType::U8, 1, 2049, 0xff)?;
        check_sort(stream, DType::F16, 2, TILE + 1, 0xff)?;
        check_sort(stream, DType::I32, 3, TILE, 3)?;
        check_sort(stream, DType::F32, 2, 2 * TILE - 1, 0xff)?;
        check_sort(stream, DType::F64, 2, TILE / 2 + 31, 0xff)?;

        let key = SortKey::new("search", DType::I16, false)?;
        let sequences: Vec<u8> = (0..300i16).flat_map(|x| (x % 150 / 3 * 500 - 9000).to_ne_bytes()).collect();
        let values = bytes(2 * 600, 0xff);
        let (sequence_memory, value_memory) = (stream.upload(&sequences)?, stream.upload(&values)?);
        for right in [false, true] {
            let mut wanted = vec![0; 600];
            search_host(key, &sequences, &values, 2, right, &mut wanted)?;
            let mut found = stream.zeros::<i64>(600)?;
            search(stream, key, &sequence_memory, &value_memory, 2, right, &mut found)?;
            if stream.download(&found)? != wanted {
                return Err(format!("a search, right {right}").into());
            }
        }
        Ok(())
    })
}
