//! Sequences whose numbers in device memory do not fit: both passes report them, and read and write nothing outside of the arrays.

use selvedge::attention::Sequences;

use super::*;

const HEADS: usize = 2;
const QUERIES: usize = 150;
const KEYS: usize = 140;
const DIMENSION: usize = 64;
/// Elements before and after each array.
const MARGIN: usize = 8 * DIMENSION;

/// First query, queries, first key and keys of a sequence.
type Numbers4 = [i32; 4];

/// Two sequences each, and a part of the error; none where they fit.
const PACKED: [([Numbers4; 2], &str); 12] = [
    ([[0, 70, 0, 60], [80, 70, 60, 80]], ""),
    ([[150, 0, 140, 0], [150, 0, 140, 0]], ""),
    (
        [[0, 70, 0, 60], [151, 0, 60, 80]],
        "a first query of 151 in sequence 1; wanted a first query of 0 to 150",
    ),
    (
        [[-1, 70, 0, 60], [80, 70, 60, 80]],
        "a first query of -1 in sequence 0; wanted a first query of 0 to 150",
    ),
    (
        [[0, 71, 0, 60], [80, 71, 60, 80]],
        "a number of queries of 71 in sequence 1; wanted a number of queries of 0 to 70",
    ),
    (
        [[0, 101, 0, 60], [100, 50, 60, 80]],
        "a number of queries of 101 in sequence 0; wanted a number of queries of 0 to 100",
    ),
    ([[0, -9, 0, 60], [80, 70, 60, 80]], "a number of queries of -9 in sequence 0"),
    (
        [[0, 70, 0, 60], [69, 70, 60, 80]],
        "a first query of 69 in sequence 1; wanted a first query of at least 70",
    ),
    (
        [[0, 70, 0, 61], [70, 70, 60, 80]],
        "a first key of 60 in sequence 1; wanted a first key of at least 61",
    ),
    ([[0, 70, i32::MAX, i32::MAX], [70, 70, 140, 0]], "a first key of 2147483647 in sequence 0"),
    ([[0, 70, 0, 60], [i32::MIN, i32::MIN, 60, 80]], "a first query of -2147483648 in sequence 1"),
    (
        [[0, 70, 0, 60], [70, 70, 60, i32::MAX]],
        "a number of keys of 2147483647 in sequence 1; wanted a number of keys of 0 to 80",
    ),
];

/// As above, where each sequence is the beginning of a batch.
const PADDED: [([Numbers4; 2], &str); 4] = [
    ([[-7, 100, 999, 90], [0, 0, 0, 0]], ""),
    (
        [[0, 101, 0, 90], [0, 1, 0, 1]],
        "a number of queries of 101 in sequence 0; wanted a number of queries of 0 to 100",
    ),
    (
        [[0, 100, 0, 90], [0, 1, 0, -1]],
        "a number of keys of -1 in sequence 1; wanted a number of keys of 0 to 90",
    ),
    ([[0, i32::MIN, 0, i32::MAX], [0, 5, 0, 5]], "of -2147483648 in sequence 0"),
];

/// Child: each of the sequences, packed and padded.
pub(super) fn that_do_not_fit(fake: &Fake, families: &[Family]) -> Outcome {
    fake.set_multiprocessors(MULTIPROCESSORS);
    emulate(fake, families)?;
    with_seeds(2, |stream| {
        for (is_packed, cases) in [(true, &PACKED[..]), (false, &PADDED[..])] {
            for (numbers, wanted) in every(3, "sequences that do not fit", cases) {
                check_numbers(stream, is_packed, numbers, wanted)
                    .map_err(|error| format!("{numbers:?}, packed: {is_packed}: {error}"))?;
            }
        }
        Ok(())
    })
}

/// Returns the layouts of queries, keys and values with margins in one memory each, and the memory's elements.
fn layouts(batch: usize) -> selvedge::Result<([Layout; 3], usize)> {
    let mut layouts = [Layout::contiguous(&[0])?; 3];
    for (layout, length) in layouts.iter_mut().zip([QUERIES, KEYS, KEYS]) {
        let row = (HEADS * DIMENSION) as isize;
        let strides = [length as isize * row, DIMENSION as isize, row, 1];
        *layout = Layout::strided(&[batch, HEADS, length, DIMENSION], &strides, MARGIN)?;
    }
    Ok((layouts, batch * QUERIES.max(KEYS) * HEADS * DIMENSION + 2 * MARGIN))
}

/// Elements in a layout are finite or not written, others are not written.
fn check_written(name: &str, memory: &[f16], layout: &Layout) -> Result<(), String> {
    let mut is_inside = vec![false; memory.len()];
    offsets(layout).into_iter().for_each(|offset| is_inside[offset] = true);
    match (0..memory.len()).find(|&at| {
        let element = memory[at];
        element.bits() != POISON && !(is_inside[at] && element.is_finite())
    }) {
        Some(at) => Err(format!("{name} at offset {at} is {}", memory[at])),
        None => Ok(()),
    }
}

fn check_numbers(stream: &Stream, is_packed: bool, numbers: &[Numbers4; 2], wanted: &str) -> Outcome {
    let (layouts, length) = layouts(if is_packed { 1 } else { 2 })?;
    // Memory outside of the arrays is NaN.
    let mut random = Numbers(7);
    let mut upload = |layout: &Layout| {
        let mut memory = vec![f16::NAN; length];
        for offset in offsets(layout) {
            memory[offset] = f16::from_f64(f64::from(random.next()) / 2f64.powi(31) - 1.0);
        }
        stream.upload(bytemuck::cast_slice::<f16, u8>(&memory))
    };
    let [q, k, v] = layouts.each_ref().map(&mut upload);
    let (q, k, v, gradient) = (q?, k?, v?, upload(&layouts[0])?);
    let sequences = stream.upload(numbers.as_flattened())?;
    let memory = Operands {
        sequences: Some(DeviceSlice::from(&sequences)),
        ..Operands::new(DeviceSlice::from(&q), DeviceSlice::from(&k), DeviceSlice::from(&v))
    };
    let (max_queries, max_keys) = (100, 90);
    let problem = Problem {
        band: Band::causal(),
        sequences: Some(Sequences { count: 2, is_packed, max_queries, max_keys }),
        ..Problem::new(f16::DTYPE, layouts[0], layouts[1], layouts[2])
    };
    let reports = |operation: &str| {
        let found = stream.synchronize().err().map_or(String::new(), |error| error.to_string());
        let is_right = if wanted.is_empty() {
            found.is_empty()
        } else {
            found.starts_with(operation) && found.contains(wanted)
        };
        // One report each: the next wait has none.
        if is_right && stream.synchronize().is_ok() {
            Ok(())
        } else {
            Err(format!("'{found}' in place of '{operation}: {wanted}'"))
        }
    };
    let mut result = poisoned::<f16>(stream, length)?;
    let rows = layouts[0].shape()[0] * HEADS * QUERIES;
    let mut lse = stream.upload(&vec![f32::NAN; rows + 64])?;
    forward(stream, &problem, memory, (result.slice_mut(..)?, &layouts[0]), lse.slice_mut(32..rows + 32)?)?;
    reports("attention::forward")?;
    check_written("the result", &elements::<f16>(stream, &result)?, &layouts[0])?;
    let found = stream.download(&lse)?;
    if !found[..32].iter().chain(&found[rows + 32..]).all(|element| element.is_nan()) {
        return Err("memory beside the LSE was written".into());
    }

    let mut gradients = poisoned::<f16>(stream, 3 * length)?;
    let mut written = layouts;
    for (index, layout) in written.iter_mut().enumerate() {
        let old = *layout;
        *layout = Layout::strided(old.shape(), old.strides(), old.offset() + index * length)?;
    }
    backward(
        stream,
        &problem,
        memory,
        (DeviceSlice::from(&result), &layouts[0]),
        DeviceSlice::from(&lse).slice(32..rows + 32)?,
        (DeviceSlice::from(&gradient), &layouts[0]),
        Gradients { memory: gradients.slice_mut(..)?, layouts: written },
    )?;
    reports("attention::backward")?;
    let found = elements::<f16>(stream, &gradients)?;
    for (index, name) in ["dQ", "dK", "dV"].into_iter().enumerate() {
        check_written(name, &found[index * length..][..length], &layouts[index])?;
    }
    Ok(())
}
