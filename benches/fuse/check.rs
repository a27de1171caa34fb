//! Elements of a result on the device, held bit for bit against the CPU's.

use selvedge::driver::{DeviceBuffer, Stream};
use selvedge::fuse::{Expression, HostInput, HostOutput};
use selvedge::types::{DType, Layout};

use crate::harness::random::Random;
use crate::harness::report::Failure;

/// Places in the result from which on elements are compared, and how many at each: a vector's lanes are all seen.
const PLACES: usize = 32;
const AT_EACH: usize = 32;

/// An array in device memory.
pub type Array<'a> = (&'a DeviceBuffer<u8>, DType, Layout);

/// The first of a sample of elements that is not what the CPU computes of the same operands; none where all are.
pub fn difference(
    stream: &Stream,
    expression: &Expression,
    inputs: &[Array],
    output: Array,
) -> Result<Option<String>, Failure> {
    let (shape, count) = (*output.2.shape(), output.2.count());
    let mut random = Random::new(count as u64);
    let last = count - AT_EACH.min(count);
    let mut starts = vec![0, last];
    starts.resize_with(PLACES, || random.bits() as usize % (last + 1));
    let sample: Vec<usize> = starts.iter().flat_map(|&start| start..start + AT_EACH.min(count)).collect();

    let packed = Layout::contiguous(&[sample.len()])?;
    let fetched = inputs
        .iter()
        .map(|&(memory, dtype, layout)| fetch(stream, (memory, dtype, layout.expand(&shape)?), &sample))
        .collect::<Result<Vec<_>, _>>()?;
    let found = fetch(stream, output, &sample)?;
    let mut wanted = vec![0u64; found.len()];
    let operands = fetched
        .iter()
        .zip(inputs)
        .map(|(words, &(_, dtype, _))| HostInput::of_bytes(dtype, bytemuck::cast_slice(words), packed))
        .collect::<Result<Vec<_>, _>>()?;
    let result = HostOutput::of_bytes(output.1, bytemuck::cast_slice_mut(&mut wanted), packed)?;
    expression.run_host(&operands, &[], &mut [result])?;

    let size = output.1.size();
    let element = |words: &[u64], index: usize| {
        bytemuck::cast_slice::<u64, u8>(words)[index * size..(index + 1) * size].to_vec()
    };
    let differs = |&index: &usize| !same(output.1, &element(&found, index), &element(&wanted, index));
    Ok((0..sample.len()).find(differs).map(|index| {
        let (found, wanted) = (element(&found, index), element(&wanted, index));
        format!("element {} has the bytes {found:x?}, the CPU's has {wanted:x?}", sample[index])
    }))
}

/// Equal bits, or NaN on both sides in each part: what a NaN's sign and payload are is the machine's.
fn same(dtype: DType, found: &[u8], wanted: &[u8]) -> bool {
    let part = if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() };
    let is_nan = |bytes: &[u8]| match (bytes, dtype) {
        (&[a, b], DType::F16) => u16::from_le_bytes([a, b]) & 0x7fff > 0x7c00,
        (&[a, b], DType::BF16) => u16::from_le_bytes([a, b]) & 0x7fff > 0x7f80,
        (&[a, b, c, d], DType::F32 | DType::C64) => f32::from_le_bytes([a, b, c, d]).is_nan(),
        (bytes, DType::F64 | DType::C128) => {
            bytes.try_into().is_ok_and(|all| f64::from_le_bytes(all).is_nan())
        }
        _ => false,
    };
    let mut parts = found.chunks(part).zip(wanted.chunks(part));
    parts.all(|(found, wanted)| found == wanted || is_nan(found) && is_nan(wanted))
}

/// The elements at these places in the order of the array, one behind the other.
fn fetch(stream: &Stream, (memory, dtype, layout): Array, sample: &[usize]) -> Result<Vec<u64>, Failure> {
    let size = dtype.size();
    let mut words = vec![0u64; (sample.len() * size).div_ceil(8)];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    for (&index, element) in sample.iter().zip(bytes.chunks_exact_mut(size)) {
        let (mut rest, mut offset) = (index, layout.offset() as isize);
        for (&size, &stride) in layout.shape().iter().zip(layout.strides()).rev() {
            offset += (rest % size) as isize * stride;
            rest /= size;
        }
        let start = offset as usize * size;
        element.copy_from_slice(&stream.download(&memory.slice(start..start + size)?)?);
    }
    Ok(words)
}
