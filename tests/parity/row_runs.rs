//! Runs of row programs: on the CPU, on a device, and of the texts of kernels in the interpreter. An output may replace
//! the elements of input 0, whose memory is then not read: the output's has the elements before.

use selvedge::driver::Stream;
use selvedge::fuse::{
    DeviceInput, DeviceOutput, HostInput, HostOutput, LaunchMemory, Number, RowExplanation, RowLaunches,
    RowMemory, RowProgram,
};
use selvedge::types::DType;

use super::arrays::{Array, aligned};
use ptx_interpreter::{Kernel, Memory, Schedule};

pub fn on_host(program: &RowProgram, inputs: &[Array], axes: &[isize], outputs: &mut [Array]) {
    on_host_with(program, (inputs, &[]), axes, outputs);
}

/// As [`on_host`], with scalars.
pub fn on_host_with(
    program: &RowProgram,
    (inputs, scalars): (&[Array], &[Number]),
    axes: &[isize],
    outputs: &mut [Array],
) {
    host_run(program, (inputs, scalars), axes, None, outputs).expect("a run on the CPU");
}

/// Runs on the CPU; the outputs' memory is changed.
pub fn try_on_host(
    program: &RowProgram,
    inputs: &[Array],
    axes: &[isize],
    replaced: Option<usize>,
    outputs: &mut [Array],
) -> selvedge::Result<()> {
    host_run(program, (inputs, &[]), axes, replaced, outputs)
}

fn host_run(
    program: &RowProgram,
    (inputs, scalars): (&[Array], &[Number]),
    axes: &[isize],
    replaced: Option<usize>,
    outputs: &mut [Array],
) -> selvedge::Result<()> {
    let sources: Vec<Vec<u128>> = inputs.iter().map(|input| aligned(&input.bytes)).collect();
    let mut targets: Vec<Vec<u128>> = outputs.iter().map(|output| aligned(&output.bytes)).collect();
    let taken = outputs.iter().zip(&mut targets).map(|(output, words)| {
        let bytes = &mut bytemuck::cast_slice_mut(words)[..output.bytes.len()];
        HostOutput::of_bytes(output.dtype, bytes, output.layout).expect("an output")
    });
    let mut taken: Vec<HostOutput<'_>> = taken.collect();
    let given = inputs.iter().zip(&sources).enumerate().map(|(number, (input, words))| match replaced {
        Some(at) if number == 0 => HostInput::output(at, &taken[at]),
        _ => {
            let bytes = &bytemuck::cast_slice(words)[..input.bytes.len()];
            HostInput::of_bytes(input.dtype, bytes, input.layout).expect("an input")
        }
    });
    let given: Vec<HostInput<'_>> = given.collect();
    program.run_host(&given, scalars, axes, &mut taken)?;
    for (output, words) in outputs.iter_mut().zip(&targets) {
        let length = output.bytes.len();
        output.bytes.copy_from_slice(&bytemuck::cast_slice(words)[..length]);
    }
    Ok(())
}

/// Runs the text of the one kernel after a change of it, for a compute capability and with an order of threads. Returns the
/// schedule and the text.
pub fn as_ptx(
    program: &RowProgram,
    (inputs, axes, replaced): (&[Array], &[isize], Option<usize>),
    outputs: &mut [Array],
    (capability, order): ((i32, i32), Schedule),
    change: &dyn Fn(String) -> String,
) -> (String, String) {
    let layouts = |arrays: &[Array]| arrays.iter().map(|array| array.layout).collect::<Vec<_>>();
    let mut plan = program.explain(&layouts(inputs), axes, &layouts(outputs), capability).expect("a plan");
    let [kernel] = &mut plan.kernels[..] else { panic!("{}", plan.schedule) };
    let RowLaunches::Rows(launch) = &mut kernel.launches else { panic!("{}", plan.schedule) };
    launch.ptx = change(std::mem::take(&mut launch.ptx));
    let text = launch.ptx.clone();
    run_plan(&plan, (inputs, replaced), outputs, order);
    (plan.schedule, text)
}

/// Checks that each fault is found, and that the text without one has the results of the CPU. A fault is a name, a part of the
/// text on compute capability 9.0, and what replaces it everywhere.
pub fn check_faults(
    program: &RowProgram,
    inputs: &[Array],
    axes: &[isize],
    before: &[Array],
    faults: &[(&str, &str, &str)],
) {
    let mut on_cpu = before.to_vec();
    on_host(program, inputs, axes, &mut on_cpu);
    for &(name, from, to) in [("no fault", "", "")].iter().chain(faults) {
        let change = |text: String| {
            assert!(text.contains(from), "no {from} in\n{text}");
            if from.is_empty() { text } else { text.replace(from, to) }
        };
        let mut found = before.to_vec();
        let order = ((9, 0), Schedule::IN_ORDER);
        let run = || as_ptx(program, (inputs, axes, None), &mut found, order, &change);
        // The interpreter panics at a race, at memory that nobody wrote, and at an access past the end.
        let is_refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
        let differs = is_refused || on_cpu.iter().zip(&found).any(|(left, right)| left.bytes != right.bytes);
        assert_eq!(differs, !from.is_empty(), "{name}");
    }
}

/// Runs the kernels of a plan in order in the interpreter. Temporary memory begins as bytes of 0xA5.
pub fn run_plan(
    plan: &RowExplanation,
    (inputs, replaced): (&[Array], Option<usize>),
    outputs: &mut [Array],
    order: Schedule,
) {
    let mut memory = Memory::default();
    let mut from: Vec<u64> = inputs.iter().map(|input| memory.add(input.bytes.clone())).collect();
    let to: Vec<u64> = outputs.iter().map(|output| memory.add(output.bytes.clone())).collect();
    let temporaries: Vec<u64> = plan.temporaries.iter().map(|&bytes| memory.add(vec![0xA5; bytes])).collect();
    if let Some(at) = replaced {
        from[0] = to[at];
    }
    for kernel in &plan.kernels {
        let address = |operand: &RowMemory| match *operand {
            RowMemory::Input(input) => from[input],
            RowMemory::Output(output) => to[output],
            RowMemory::Temporary(temporary) => temporaries[temporary],
        };
        let addresses: Vec<u64> = kernel.operands.iter().map(address).collect();
        match &kernel.launches {
            RowLaunches::Rows(launch) | RowLaunches::Check(launch) => {
                let offsets = launch.offsets.iter().map(|&offset| offset as u64);
                let starts = addresses.iter().zip(offsets.chain(std::iter::repeat(0)));
                let starts = starts.map(|(address, offset)| address + offset);
                let parameters = with_addresses(starts, &launch.parameters);
                let (grid, threads) = ((launch.blocks, launch.cluster), launch.threads);
                let text = Kernel::read(&launch.ptx);
                text.run_in_clusters(order, grid, threads, launch.shared, &parameters, &mut memory);
            }
            RowLaunches::Expression(explanation) => {
                // Temporary memory has an offset, too, if a kernel walks it in reverse order.
                let text = explanation.to_string();
                let of_operand = |line: &str| {
                    let line = line.strip_prefix("  input ").or_else(|| line.strip_prefix("  output "))?;
                    line.split(' ').next()?.parse::<DType>().ok().map(DType::size)
                };
                let sizes: Vec<usize> = text.lines().filter_map(of_operand).take(addresses.len()).collect();
                assert_eq!(sizes.len(), addresses.len(), "{text}");
                let [launch] = &explanation.launches[..] else { panic!("launches of {}", kernel.name) };
                assert_eq!(launch.offsets.len(), addresses.len(), "{}", kernel.name);
                let starts = addresses.iter().zip(&launch.offsets).zip(&sizes);
                let starts = starts.map(|((address, offset), size)| address + (offset * size) as u64);
                let parameters = with_addresses(starts, &launch.parameters);
                Kernel::read(&launch.ptx).run(launch.blocks, launch.threads, &parameters, &mut memory);
            }
            RowLaunches::Reduction(explanation) => {
                let [inputs @ .., output] = &addresses[..] else { panic!("{}", kernel.name) };
                let scratch = memory.add(vec![0xA5; explanation.scratch]);
                for launch in &explanation.launches {
                    let starts = launch.operands.iter().map(|(place, offset)| {
                        let start = match place {
                            LaunchMemory::Input(index) => inputs[*index],
                            LaunchMemory::Output => *output,
                            LaunchMemory::Scratch => scratch,
                        };
                        start + *offset as u64
                    });
                    let parameters = with_addresses(starts, &launch.parameters);
                    let text = Kernel::read(&launch.ptx);
                    text.run_as(order, launch.blocks, launch.threads, &parameters, &mut memory);
                }
            }
        }
    }
    for (output, address) in outputs.iter_mut().zip(&to) {
        output.bytes = memory.bytes(*address).to_vec();
    }
}

fn with_addresses(addresses: impl Iterator<Item = u64>, parameters: &[u8]) -> Vec<u8> {
    addresses.flat_map(u64::to_le_bytes).chain(parameters.iter().copied()).collect()
}

/// Runs on a device; the outputs' memory is changed.
pub fn on_device(
    stream: &Stream,
    program: &RowProgram,
    inputs: &[Array],
    axes: &[isize],
    replaced: Option<usize>,
    outputs: &mut [Array],
) -> selvedge::Result<()> {
    device_run(stream, program, (inputs, &[]), (axes, replaced), outputs)
}

/// As [`on_device`], with scalars.
pub fn on_device_with(
    stream: &Stream,
    program: &RowProgram,
    operands: (&[Array], &[Number]),
    axes: &[isize],
    outputs: &mut [Array],
) -> selvedge::Result<()> {
    device_run(stream, program, operands, (axes, None), outputs)
}

fn device_run(
    stream: &Stream,
    program: &RowProgram,
    (inputs, scalars): (&[Array], &[Number]),
    (axes, replaced): (&[isize], Option<usize>),
    outputs: &mut [Array],
) -> selvedge::Result<()> {
    let sources = inputs.iter().map(|input| stream.upload(&input.bytes)).collect::<Result<Vec<_>, _>>()?;
    let mut targets =
        outputs.iter().map(|output| stream.upload(&output.bytes)).collect::<Result<Vec<_>, _>>()?;
    let taken = outputs.iter().zip(&mut targets);
    let mut taken = taken
        .map(|(output, memory)| DeviceOutput::of_bytes(output.dtype, memory, output.layout))
        .collect::<Result<Vec<_>, _>>()?;
    let given = inputs.iter().zip(&sources).enumerate().map(|(number, (input, memory))| match replaced {
        Some(at) if number == 0 => Ok(DeviceInput::output(at, &taken[at])),
        _ => DeviceInput::of_bytes(input.dtype, memory, input.layout),
    });
    let given = given.collect::<Result<Vec<_>, _>>()?;
    program.run(stream, &given, scalars, axes, &mut taken)?;
    for (output, memory) in outputs.iter_mut().zip(&targets) {
        output.bytes = stream.download(memory)?;
    }
    Ok(())
}
