//! The kernels of sorts and searches without a GPU, held against the CPU exactly.

use selvedge::DType;
use selvedge::driver::Stream;
use selvedge::sort::{
    SortKey, argsort, argsort_host, search, search_host, sort, sort_values, sort_values_host,
};

use super::build::Family;
use super::{Outcome, emulate, family, with_seeds};
use crate::support::Fake;

/// Shared memory is a variable of the source, so one block runs at a time.
const SORT: Family = family("sort.cu", &[], 1, 1);

/// Elements of the smallest tile, which rows have that fill no device.
const TILE: usize = 384 * 4;

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
    check_elements(stream, dtype, rows, &bytes(rows * length * dtype.size(), mask), None)
}

/// Sorts in both directions, to elements, positions and both, and compares with the CPU.
fn check_elements(
    stream: &Stream,
    dtype: DType,
    rows: usize,
    elements: &[u8],
    bound: Option<u64>,
) -> Outcome {
    let size = dtype.size();
    let count = elements.len() / size;
    let memory = stream.upload(elements)?;
    for descending in [false, true] {
        let key = SortKey::new("sort", dtype, descending)?;
        let mut wanted = vec![0; count];
        argsort_host(key, elements, rows, &mut wanted)?;
        let key = bound.map_or(key, |bound| key.with_bound(bound));
        let mut bounded = vec![0; count];
        argsort_host(key, elements, rows, &mut bounded)?;
        let mut positions = stream.zeros::<i64>(count)?;
        argsort(stream, key, &memory, rows, &mut positions)?;
        let mut sorted = stream.zeros::<u8>(elements.len())?;
        let mut others = stream.zeros::<i64>(count)?;
        sort(stream, key, &memory, rows, &mut sorted, &mut others)?;
        let length = count / rows;
        let moved = wanted.iter().enumerate().flat_map(|(at, position)| {
            let from = (at / length * length + *position as usize) * size;
            &elements[from..from + size]
        });
        let moved: Vec<u8> = moved.copied().collect();
        let mut alone = stream.zeros::<u8>(elements.len())?;
        sort_values(stream, key, &memory, rows, &mut alone)?;
        let mut on_host = vec![0; elements.len()];
        sort_values_host(key, elements, rows, &mut on_host)?;
        let is_moved = [stream.download(&sorted)?, stream.download(&alone)?, on_host].map(|x| x == moved);
        let are_equal =
            [bounded, stream.download(&positions)?, stream.download(&others)?].map(|x| x == wanted);
        if is_moved != [true; 3] || are_equal != [true; 3] {
            let found = format!("elements {is_moved:?}, positions {are_equal:?}");
            return Err(format!("{rows} rows of {length} {dtype}, descending {descending}: {found}").into());
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
        check_sort(stream, DType::Bool, 2, 2 * TILE + 1, 1)?;
        check_sort(stream, DType::I8, 3, 3 * TILE - 1, 0xff)?;
        check_sort(stream, DType::F16, 2, 2 * TILE + 33, 0xff)?;
        check_sort(stream, DType::I16, 1, 4 * TILE, 0xff)?;
        check_sort(stream, DType::I32, 3, 2 * TILE, 3)?;
        check_sort(stream, DType::F32, 2, 3 * TILE - 1, 0xff)?;
        check_sort(stream, DType::F64, 2, 2 * TILE + 1, 0xff)?;
        check_sort(stream, DType::U64, 1, TILE + TILE / 2, 1)?;
        // Zeros of both signs, infinities and NaN of both signs and with payloads.
        let special = [0, 1 << 31, 1, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0xffc0_0001, 0x7f80_0001u32];
        let elements: Vec<u8> = bytes(2 * TILE + 5, 0xff)
            .iter()
            .flat_map(|x| special[usize::from(x % 8)].to_ne_bytes())
            .collect();
        check_elements(stream, DType::F32, 1, &elements, None)?;
        // Bounds that leave one pass, two and three of eight.
        for bound in [1, 256, 300, 70_000] {
            let numbers = bytes(8 * 2500, 0xff);
            let numbers =
                numbers.chunks_exact(8).map(|x| i64::from_ne_bytes(x.try_into().unwrap_or_default()));
            let elements: Vec<u8> = numbers.flat_map(|x| x.rem_euclid(bound).to_ne_bytes()).collect();
            check_elements(stream, DType::I64, 1, &elements, Some(bound as u64))?;
        }

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
