//! The kernels of the first elements of rows without a GPU, held against the sort of the CPU.

use selvedge::DType;
use selvedge::driver::Stream;
use selvedge::sort::{SortKey, argsort_host, topk};

use super::build::Family;
use super::sort::bytes;
use super::{Outcome, emulate, family, with_seeds};
use crate::support::Fake;

/// Shared memory is a variable of the source, so one block runs at a time.
const TOPK: Family = family("topk.cu", &[], 1, 1);

/// Elements that a block reads at a time, of at most 4 bytes each.
const BATCH: usize = 4096;

fn check(stream: &Stream, dtype: DType, elements: &[u8], rows: usize, counts: &[usize]) -> Outcome {
    let length = elements.len() / dtype.size() / rows;
    let memory = stream.upload(elements)?;
    for descending in [false, true] {
        let key = SortKey::new("topk", dtype, descending)?;
        let mut sorted = vec![0; rows * length];
        argsort_host(key, elements, rows, &mut sorted)?;
        for k in counts {
            let wanted: Vec<i64> = sorted.chunks(length).flat_map(|row| &row[..*k]).copied().collect();
            let mut positions = stream.zeros::<i64>(rows * k)?;
            topk(stream, key, &memory, rows, *k, &mut positions)?;
            if stream.download(&positions)? != wanted {
                return Err(format!("{k} of {rows} rows of {length} {dtype}, descending {descending}").into());
            }
        }
    }
    Ok(())
}

fn random(stream: &Stream, dtype: DType, rows: usize, length: usize, mask: u8, counts: &[usize]) -> Outcome {
    check(stream, dtype, &bytes(rows * length * dtype.size(), mask), rows, counts)
}

/// Child: every kind and width of key, sizes around batches and segments, equal elements, and orders that fill the buffer often.
pub fn firsts(fake: &Fake) -> Outcome {
    emulate(fake, &[TOPK])?;
    with_seeds(1, |stream| {
        for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_complex() && !dtype.is_storage_only()) {
            random(stream, dtype, 2, 2049, 0xff, &[1, 33])?;
        }
        for length in [BATCH - 1, BATCH, BATCH + 1] {
            random(stream, DType::F32, 1, length, 0xff, &[1, 128, 129, 1024])?;
            random(stream, DType::F64, 1, length, 0xff, &[2, 513])?;
        }
        // Equal elements are taken by position, also those with the largest key.
        random(stream, DType::I32, 1, 2 * BATCH, 0, &[700])?;
        random(stream, DType::I16, 3, 3000, 1, &[1000])?;
        let nan: Vec<u8> = [f32::NAN, f32::INFINITY, -0.0, 0.0, -f32::NAN, f32::NEG_INFINITY]
            .into_iter()
            .cycle()
            .take(5000)
            .flat_map(f32::to_le_bytes)
            .collect();
        check(stream, DType::F32, &nan, 2, &[5, 1000])?;
        // Every element of one of the two orders is before the threshold.
        let rising: Vec<u8> = (0..5000i32).flat_map(i32::to_le_bytes).collect();
        check(stream, DType::I32, &rising, 1, &[1, 100, 1024])?;
        // Several segments, whose first elements take one launch more, and two more.
        random(stream, DType::F32, 2, 20_001, 0xff, &[50, 1024])?;
        random(stream, DType::U16, 1, 150_000, 0xff, &[1024])?;
        random(stream, DType::I64, 1, 17_000, 3, &[300])
    })
}
