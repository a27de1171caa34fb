//! Runs an expression as its PTX, through the interpreter, and on a device if there is one.

use std::sync::OnceLock;

use selvedge::Error;
use selvedge::driver::{Device, Stream};
use selvedge::fuse::{Expression, LaunchMemory, ReductionExplanation};

use super::arrays::Array;
use ptx_interpreter::{Kernel, Memory, Schedule};

/// Runs the PTX for a device. The run passes no scalars: expressions here contain their numbers.
pub fn as_ptx(
    expression: &Expression,
    inputs: &[Array],
    outputs: &mut [Array],
    capability: (i32, i32),
) -> Vec<String> {
    run(expression, inputs, outputs, capability, &[])
}

/// Runs the PTX like [`as_ptx`], with the memory of an output as the input of each pair.
pub fn in_place(
    expression: &Expression,
    inputs: &[Array],
    outputs: &mut [Array],
    pairs: &[(usize, usize)],
) -> Vec<String> {
    run(expression, inputs, outputs, (9, 0), pairs)
}

fn run(
    expression: &Expression,
    inputs: &[Array],
    outputs: &mut [Array],
    capability: (i32, i32),
    pairs: &[(usize, usize)],
) -> Vec<String> {
    let layouts = |arrays: &[Array]| arrays.iter().map(|array| array.layout).collect::<Vec<_>>();
    let explanation = expression.explain(&layouts(inputs), &layouts(outputs), capability).expect("a plan");
    let mut memory = Memory::default();
    let arrays: Vec<&Array> = inputs.iter().chain(outputs.iter()).collect();
    let mut addresses: Vec<u64> = arrays.iter().map(|array| memory.add(array.bytes.clone())).collect();
    for (input, output) in pairs {
        addresses[*input] = addresses[inputs.len() + output];
    }
    let sizes: Vec<usize> = arrays.iter().map(|array| array.dtype.size()).collect();
    let mut texts = Vec::new();
    for launch in explanation.launches {
        let mut parameters = Vec::new();
        for ((address, offset), size) in addresses.iter().zip(&launch.offsets).zip(&sizes) {
            parameters.extend((address + (offset * size) as u64).to_le_bytes());
        }
        parameters.extend(&launch.parameters);
        Kernel::read(&launch.ptx).run(launch.blocks, launch.threads, &parameters, &mut memory);
        texts.push(launch.ptx);
    }
    for (output, address) in outputs.iter_mut().zip(&addresses[inputs.len()..]) {
        output.bytes = memory.bytes(*address).to_vec();
    }
    texts
}

/// Runs the launches of a reduction or a scan in this order, with scratch memory that starts as bytes of
/// `scratch`.
pub fn run_reduction(
    explanation: ReductionExplanation,
    inputs: &[Array],
    output: &mut Array,
    scratch: u8,
    schedule: Schedule,
) -> Vec<String> {
    let mut memory = Memory::default();
    let addresses: Vec<u64> = inputs.iter().map(|input| memory.add(input.bytes.clone())).collect();
    let to = memory.add(output.bytes.clone());
    let scratch = memory.add(vec![scratch; explanation.scratch]);
    let mut texts = Vec::new();
    for launch in explanation.launches {
        let mut parameters = Vec::new();
        for (place, offset) in &launch.operands {
            let start = match place {
                LaunchMemory::Input(index) => addresses[*index],
                LaunchMemory::Output => to,
                LaunchMemory::Scratch => scratch,
            };
            parameters.extend((start + *offset as u64).to_le_bytes());
        }
        parameters.extend(&launch.parameters);
        let kernel = Kernel::read(&launch.ptx);
        kernel.run_as(schedule, launch.blocks, launch.threads, &parameters, &mut memory);
        texts.push(launch.ptx);
    }
    output.bytes = memory.bytes(to).to_vec();
    texts
}

/// Returns a stream of the first device, or the reason that there is none.
pub fn device() -> Result<&'static Stream, &'static Error> {
    static STREAM: OnceLock<Result<Stream, Error>> = OnceLock::new();
    STREAM.get_or_init(|| Device::new(0)?.stream()).as_ref()
}
