//! Arrays of any dtype and layout, CPU runs of an expression on them, and the comparison of two runs' memory.

use selvedge::driver::Stream;
use selvedge::fuse::{CpuBackend, DeviceInput, DeviceOutput, Expression, HostInput, HostOutput, Number};
use selvedge::types::{DType, Layout};

use super::value::{Value, read, same, write};

/// An array: a layout and the memory that holds it.
#[derive(Clone)]
pub struct Array {
    pub dtype: DType,
    pub layout: Layout,
    pub bytes: Vec<u8>,
}

/// Returns every offset of a layout, in row-major order.
pub fn offsets(layout: &Layout) -> Vec<usize> {
    if layout.is_contiguous() {
        return (layout.offset()..layout.offset() + layout.count()).collect();
    }
    let mut offsets = vec![layout.offset() as isize];
    for (&size, &stride) in layout.shape().iter().zip(layout.strides()) {
        offsets = offsets
            .iter()
            .flat_map(|offset| (0..size as isize).map(move |index| offset + index * stride))
            .collect();
    }
    offsets.into_iter().map(|offset| offset as usize).collect()
}

impl Array {
    /// Creates an array of cycling values, starting with the `start`th.
    pub fn new(dtype: DType, layout: Layout, values: &[Value], start: usize) -> Array {
        let size = dtype.size();
        // More memory than the layout needs, to detect stray writes.
        let mut bytes = vec![0xA5; (layout.end() + 3) * size];
        // Each value is encoded once: these loops are not optimized, and arrays have up to millions of elements.
        let count = layout.count();
        let cycle = (0..values.len().min(count)).flat_map(|index| {
            let mut element = vec![0; size];
            write(dtype, values[(start + index) % values.len()], &mut element);
            element
        });
        let cycle = cycle.collect::<Vec<u8>>().repeat(256.min(count / values.len() + 1));
        if layout.is_contiguous() && count > 0 {
            let mut rest = &mut bytes[layout.offset() * size..(layout.offset() + count) * size];
            while !rest.is_empty() {
                let (next, later) = rest.split_at_mut(cycle.len().min(rest.len()));
                next.copy_from_slice(&cycle[..next.len()]);
                rest = later;
            }
        } else {
            for (offset, from) in offsets(&layout).into_iter().zip((0..cycle.len()).step_by(size).cycle()) {
                bytes[offset * size..(offset + 1) * size].copy_from_slice(&cycle[from..from + size]);
            }
        }
        Array { dtype, layout, bytes }
    }

    pub fn elements(&self, layout: &Layout) -> Vec<Value> {
        let size = self.dtype.size();
        offsets(layout)
            .iter()
            .map(|offset| read(self.dtype, &self.bytes[offset * size..(offset + 1) * size]))
            .collect()
    }

    pub fn element_bytes(&self) -> Vec<&[u8]> {
        let size = self.dtype.size();
        offsets(&self.layout).iter().map(|offset| &self.bytes[offset * size..(offset + 1) * size]).collect()
    }
}

/// Copies bytes to an address that is aligned for any element.
pub fn aligned(bytes: &[u8]) -> Vec<u128> {
    let mut words = vec![0u128; bytes.len().div_ceil(16) + 1];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

/// Runs on a device; the outputs' memory is changed.
pub fn on_device(
    stream: &Stream,
    expression: &Expression,
    inputs: &[Array],
    outputs: &mut [Array],
) -> selvedge::Result<()> {
    let sources = inputs.iter().map(|input| stream.upload(&input.bytes)).collect::<Result<Vec<_>, _>>()?;
    let mut targets =
        outputs.iter().map(|output| stream.upload(&output.bytes)).collect::<Result<Vec<_>, _>>()?;
    let from = inputs
        .iter()
        .zip(&sources)
        .map(|(input, memory)| DeviceInput::of_bytes(input.dtype, memory, input.layout))
        .collect::<Result<Vec<_>, _>>()?;
    let mut to = outputs
        .iter()
        .zip(&mut targets)
        .map(|(output, memory)| DeviceOutput::of_bytes(output.dtype, memory, output.layout))
        .collect::<Result<Vec<_>, _>>()?;
    expression.run(stream, &from, &[], &mut to)?;
    for (output, memory) in outputs.iter_mut().zip(&targets) {
        output.bytes = stream.download(memory)?;
    }
    Ok(())
}

/// Runs on the CPU; the outputs' memory is changed.
pub fn on_host(expression: &Expression, inputs: &[Array], scalars: &[Number], outputs: &mut [Array]) {
    with_host(inputs, outputs, |inputs, outputs| {
        expression.run_host(inputs, scalars, outputs).expect("a run on the CPU");
    });
}

/// Runs on the CPU with one backend. Returns the number of flagged blocks, or the reason why the backend cannot.
pub fn on_host_with(
    backend: CpuBackend,
    expression: &Expression,
    inputs: &[Array],
    scalars: &[Number],
    outputs: &mut [Array],
) -> Result<usize, String> {
    with_host(inputs, outputs, |inputs, outputs| {
        expression.run_host_with(backend, inputs, scalars, outputs).expect("a run on the CPU")
    })
}

/// Calls `run` with the arrays as operands on the CPU.
pub fn with_host<T>(
    inputs: &[Array],
    outputs: &mut [Array],
    run: impl FnOnce(&[HostInput<'_>], &mut [HostOutput<'_>]) -> T,
) -> T {
    let sources: Vec<Vec<u128>> = inputs.iter().map(|input| aligned(&input.bytes)).collect();
    let mut targets: Vec<Vec<u128>> = outputs.iter().map(|output| aligned(&output.bytes)).collect();
    let of_host: Vec<HostInput<'_>> = inputs
        .iter()
        .zip(&sources)
        .map(|(input, words)| {
            let bytes = &bytemuck::cast_slice(words)[..input.bytes.len()];
            HostInput::of_bytes(input.dtype, bytes, input.layout).expect("an input")
        })
        .collect();
    let mut to_host: Vec<HostOutput<'_>> = outputs
        .iter()
        .zip(&mut targets)
        .map(|(output, words)| {
            let bytes = &mut bytemuck::cast_slice_mut(words)[..output.bytes.len()];
            HostOutput::of_bytes(output.dtype, bytes, output.layout).expect("an output")
        })
        .collect();
    let result = run(&of_host, &mut to_host);
    for (output, words) in outputs.iter_mut().zip(&targets) {
        let length = output.bytes.len();
        output.bytes.copy_from_slice(&bytemuck::cast_slice(words)[..length]);
    }
    result
}

/// Asserts that two runs left the same memory.
pub fn assert_same(what: &str, left: &[Array], right: &[Array], before: &[Array]) {
    if let Some(difference) = difference(left, right, before) {
        panic!("{what}: {difference}");
    }
}

/// Returns the first difference of the memory that two runs left: elements are equal up to the bits of NaN, and
/// everything else is unchanged.
pub fn difference(left: &[Array], right: &[Array], before: &[Array]) -> Option<String> {
    for ((left, right), before) in left.iter().zip(right).zip(before) {
        let size = left.dtype.size();
        // The same without a loop over the elements, which is not optimized.
        if left.layout.is_contiguous() && left.layout.count() > 0 && left.bytes == right.bytes {
            let elements = left.layout.offset() * size..(left.layout.offset() + left.layout.count()) * size;
            let outside = [0..elements.start, elements.end..left.bytes.len()];
            if outside.into_iter().all(|range| left.bytes[range.clone()] == before.bytes[range]) {
                continue;
            }
        }
        let mut inside = vec![false; left.bytes.len() / size];
        for (index, offset) in offsets(&left.layout).into_iter().enumerate() {
            inside[offset] = true;
            let range = offset * size..(offset + 1) * size;
            let (one, two) = (&left.bytes[range.clone()], &right.bytes[range]);
            if !same(left.dtype, one, two) {
                let (one, two) = (read(left.dtype, one), read(left.dtype, two));
                let element = format!("element {index} of {}", left.dtype);
                return Some(format!("{element} is {one:?} on the CPU and {two:?} in the other run"));
            }
        }
        for (offset, _) in inside.iter().enumerate().filter(|(_, inside)| !**inside) {
            let range = offset * size..(offset + 1) * size;
            if [left, right].iter().any(|run| run.bytes[range.clone()] != before.bytes[range.clone()]) {
                return Some(format!("offset {offset} was touched"));
            }
        }
    }
    None
}
