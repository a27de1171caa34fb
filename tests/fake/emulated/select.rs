//! The kernels of selections without a GPU, held against the definition.

use selvedge::DType;
use selvedge::driver::Stream;
use selvedge::sort::Selection;

use super::build::Family;
use super::sort::bytes;
use super::{Outcome, emulate, family, with_seeds};
use crate::support::Fake;

/// Shared memory is a variable of the source, so one block runs at a time.
const SELECT: Family = family("select.cu", &[], 1, 1);

/// Elements of a tile.
const TILE: usize = 16384;

/// The positions of the elements whose bits other than those of `ignored`, which are in each element's last byte, are not 0.
fn positions(elements: &[u8], size: usize, ignored: u8) -> Vec<i64> {
    let is_selected = |element: &[u8]| {
        let (last, others) = element.split_last().unwrap_or((&0, &[]));
        others.iter().any(|byte| *byte != 0) || last & !ignored != 0
    };
    let all = elements.chunks(size).enumerate();
    all.filter(|(_, element)| is_selected(element)).map(|(at, _)| at as i64).collect()
}

/// Elements of bytes of which most are 0, then their positions, and elements of another array at those.
fn check(stream: &Stream, dtype: DType, elements: &[u8], skipped: usize) -> Outcome {
    let size = dtype.size();
    let length = elements.len() / size;
    let memory = stream.upload(&[&bytes(skipped * size, 0xff), elements].concat())?;
    let selection = Selection::new(stream, "select", dtype, memory.slice(skipped * size..)?)?;
    let wanted = positions(elements, size, if dtype.is_float() { 0x80 } else { 0 });
    let case = || format!("{length} of {dtype} behind {skipped}, {} selected", wanted.len());
    if selection.count() != wanted.len() {
        return Err(format!("{}: {} found", case(), selection.count()).into());
    }
    let mut found = stream.zeros::<i64>(wanted.len())?;
    selection.coordinates(stream, &[length], &mut found)?;
    if stream.download(&found)? != wanted {
        return Err(format!("positions of {}", case()).into());
    }
    for size in [1, 2, 4, 8, 16] {
        // A copy of each size from an array of few elements would take long here.
        if length > 300 && size != dtype.size() && size != 16 {
            continue;
        }
        let source = bytes(length * size, 0xff);
        let selected = |at: &i64| source[*at as usize * size..][..size].to_vec();
        let wanted: Vec<u8> = wanted.iter().flat_map(selected).collect();
        let (source, mut found) = (stream.upload(&source)?, stream.zeros::<u8>(wanted.len())?);
        selection.elements(stream, size, &source, &mut found)?;
        if stream.download(&found)? != wanted {
            return Err(format!("elements of {size} bytes of {}", case()).into());
        }
    }
    Ok(())
}

/// Child: selections around the sizes of words, batches and tiles, of every width, dense and empty.
pub fn selections(fake: &Fake) -> Outcome {
    emulate(fake, &[SELECT])?;
    with_seeds(1, |stream| {
        for length in [0, 1, 31, 32, 33, 255, 256, 257] {
            for mask in [0, 1, 3] {
                check(stream, DType::Bool, &bytes(length, mask), 0)?;
            }
            check(stream, DType::U8, &vec![200; length], 0)?;
        }
        // Zeros of both signs, and NaN, whose last byte is that of infinity.
        let floats = [0.0, -0.0, 1.0, f32::NAN, -f32::NAN, f32::MIN_POSITIVE, -1e-45];
        let floats: Vec<u8> = floats.into_iter().cycle().take(100).flat_map(f32::to_le_bytes).collect();
        check(stream, DType::F32, &floats, 3)?;
        for dtype in [DType::F16, DType::BF16, DType::I16, DType::F64, DType::U64] {
            check(stream, dtype, &bytes(70 * dtype.size(), 0x80), 1)?;
        }
        // Bytes are read by 16 in whole tiles of aligned memory.
        for length in [TILE - 1, TILE, 2 * TILE + 1] {
            check(stream, DType::Bool, &bytes(length, 1), 0)?;
        }
        check(stream, DType::U8, &bytes(TILE, 0x81), 1)?;
        check(stream, DType::I32, &bytes((TILE + 40) * 4, 0x10), 0)?;
        // The sums of more tiles than threads take one after another.
        let mut sparse = vec![0; 2100 * TILE];
        for at in [5, TILE * 7 + 3, TILE * 2049 + 1, TILE * 2100 - 1] {
            sparse[at] = 1;
        }
        let selection = Selection::new(stream, "select", DType::Bool, &stream.upload(&sparse)?)?;
        if selection.count() != 4 {
            return Err(format!("{} of many tiles", selection.count()).into());
        }

        // Coordinates, the last of which varies fastest.
        let sizes = [3usize, 1, 7, 5];
        let elements = bytes(105, 1);
        let selection = Selection::new(stream, "select", DType::Bool, &stream.upload(&elements)?)?;
        let coordinates = |at: i64| [at / 35, 0, at / 5 % 7, at % 5];
        let wanted: Vec<i64> = positions(&elements, 1, 0).into_iter().flat_map(coordinates).collect();
        let mut found = stream.zeros::<i64>(wanted.len())?;
        selection.coordinates(stream, &sizes, &mut found)?;
        if stream.download(&found)? != wanted {
            return Err("coordinates".into());
        }
        Ok(())
    })
}
