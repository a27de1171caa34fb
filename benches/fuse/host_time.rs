//! The host's time for a run of few elements beside a bare `cuLaunchKernel` of the same kernel, and beside PyTorch.

use std::ffi::c_void;
use std::time::Instant;

use selvedge::driver::{Device, DeviceBuffer, Stream};
use selvedge::fuse::{DeviceInput, DeviceOutput, Expression, Graph, HostInput, HostOutput, Number};
use selvedge::tensor::{self, Fused, Tensor};
use selvedge::types::{DType, Layout};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Clock, Operand, Work};
use crate::harness::random::Random;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const BURST: usize = 256;
const COUNT: usize = 1024;

/// One, ten, and ten operations with a number that each run is given, into memory that is there; then tensors.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "fuse_host",
        "The host's time for an elementwise run",
        "The host's time for one run of a reused expression on 1024 elements, its operands bound again, as the mean over a \
         burst of 256; the stream is drained between bursts, outside the clock. The reference is the bare launch of the \
         same kernel with its parameters at hand. Both results are compared with the CPU's. Tensors allocate their \
         output at each run and drop it; so does PyTorch, but for the one operation into memory that is there. Its time is \
         that of the calls in Python.",
    )?;
    let stream = Device::new(0)?.stream()?;
    let layout = Layout::contiguous(&[COUNT])?;
    let mut random = Random::new(21);
    let data: Vec<Vec<f32>> = (0..3).map(|_| random.floats(COUNT)).collect();
    let arrays = data.iter().map(|data| stream.upload(data)).collect::<Result<Vec<_>, _>>()?;
    let mut output = stream.zeros::<f32>(COUNT)?;
    let mut wrong = Vec::new();

    let graph = Graph::new();
    let [a, b] = graph.inputs([DType::F32; 2]);
    let one = graph.expression(&[a + b])?;
    let graph = Graph::new();
    let (a, scale) = (graph.input(DType::F32), graph.scalar(DType::F32));
    let scaled = graph.expression(&[a * scale])?;
    let graph = Graph::new();
    let [a, b, c] = graph.inputs([DType::F32; 3]);
    let ten = ((((a * b + c).relu() * 2.0 - a).abs() + b).minimum(c) * 0.5).maximum(a);
    let ten = graph.expression(&[ten])?;
    let graph = Graph::new();
    let [a, b, c] = graph.inputs([DType::F32; 3]);
    let scale = graph.scalar(DType::F32);
    let given = ((((a * b + c).relu() * 2.0 - a).abs() + b).minimum(c) * scale).maximum(a);
    let given = graph.expression(&[given])?;

    let into = Some(("add", Some(Operand::nothing(DType::F32, layout))));
    for (name, expression, scalars, theirs) in [
        ("1 operation, 2 inputs", &one, &[][..], into),
        ("10 operations, 3 inputs", &ten, &[], None),
        ("10 operations, 3 inputs, a number given", &given, &[Number::Real(0.25)], None),
    ] {
        let subject = Figure { name, goal: 600.0, expression, data: &data, scalars, theirs };
        let step = &mut |last: bool| {
            run(expression, &stream, &arrays, scalars, &mut output, layout)?;
            Ok(if last { Some(stream.download(&output)?) } else { None })
        };
        wrong.extend(subject.measure(bare, options, &mut recorder, &stream, step)?);
    }

    let device = tensor::Device::cuda(0)?;
    let stream = device.stream()?;
    let upload = |data: &Vec<f32>| Tensor::from_slice(data, &[COUNT], &device);
    let tensors = data.iter().map(upload).collect::<Result<Vec<_>, _>>()?;
    let [a, b, c] = tensors.as_slice() else { return Err("three tensors are wanted".into()) };
    let function = Fused::new(|[a, b, c, scale]| {
        ((((a * b + c).relu() * 2.0 - a).abs() + b).minimum(c) * scale).maximum(a)
    });
    let quarter = &[Number::Real(0.25)][..];
    let operations: [(_, _, _, _, _, &Eager<'_>); 3] = [
        ("a + b of tensors", 400.0, &one, &[][..], Some(("a + b", None)), &|| a + b),
        ("a * 0.25 of a tensor", 400.0, &scaled, quarter, Some(("a * 0.25", None)), &|| a * 0.25),
        ("10 fused operations of tensors, a number given", 600.0, &given, quarter, None, &|| {
            function.run((a, b, c, 0.25))
        }),
    ];
    for (name, goal, expression, scalars, theirs, operation) in operations {
        let subject = Figure { name, goal, expression, data: &data, scalars, theirs };
        let step = &mut |last: bool| {
            let result = operation()?;
            Ok(if last { Some(result.to_vec::<f32>()?) } else { None })
        };
        wrong.extend(subject.measure(bare, options, &mut recorder, &stream, step)?);
    }

    options.pytorch().drop_operands();
    recorder.finish(&options.out)?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// An operation on tensors whose output it allocates.
type Eager<'a> = dyn Fn() -> selvedge::Result<Tensor> + 'a;

/// One run; its result where it is the last.
type Step<'a> = dyn FnMut(bool) -> Result<Option<Vec<f32>>, Failure> + 'a;

/// A measurement: runs of an expression of f32 on the first arrays of the data.
struct Figure<'a> {
    name: &'a str,
    goal: f64,
    expression: &'a Expression,
    data: &'a [Vec<f32>],
    scalars: &'a [Number],
    /// PyTorch's operation on as many arrays, and where its result goes.
    theirs: Option<(&'a str, Option<Operand>)>,
}

impl Figure<'_> {
    /// Adds the figure of a step; gives what is wrong with a result.
    fn measure(
        &self,
        bare: &Bare,
        options: &Options,
        recorder: &mut Recorder,
        stream: &Stream,
        step: &mut Step<'_>,
    ) -> Result<Option<String>, Failure> {
        let Figure { name, goal, expression, scalars, theirs, .. } = *self;
        let layout = Layout::contiguous(&[COUNT])?;
        let data = &self.data[..expression.inputs().len()];
        let capability = Device::new(0)?.compute_capability();
        let explanation = expression.explain(&vec![layout; data.len()], &[layout], capability)?;
        let [launch] = explanation.launches.as_slice() else { return Err("not one launch".into()) };
        let kernel = bare.kernel(&launch.ptx, "fused")?;
        let mut parameters = launch.parameters.clone();
        for (number, place) in scalars.iter().zip(scalar_places(expression)) {
            let Number::Real(number) = *number else { return Err("a number that is not real".into()) };
            parameters[place..place + 4].copy_from_slice(&(number as f32).to_le_bytes());
        }
        let mut addresses = Vec::new();
        for data in data {
            let address = bare.allocate(COUNT * 4)?;
            bare.upload_plain(address, &pairs(data))?;
            addresses.push(address);
        }
        let result = bare.allocate(COUNT * 4)?;
        addresses.push(result);

        let mut launches: Vec<*mut c_void> =
            addresses.iter_mut().map(|address| std::ptr::from_mut(address).cast()).collect();
        launches.push(parameters.as_mut_ptr().cast());
        let mut burst = || {
            let start = Instant::now();
            for _ in 0..BURST {
                step(false)?;
            }
            let taken = start.elapsed();
            stream.synchronize()?;
            Ok(taken.as_nanos() as f64 / BURST as f64)
        };
        let mut figure = turns(
            options.turns(20, 1000),
            &Subject {
                name,
                against: "cuLaunchKernel",
                unit: Unit::Nanoseconds,
                bytes: None,
                rule: Rule::Extra,
                goal: Some(goal),
            },
            &mut burst,
            || {
                let start = Instant::now();
                for _ in 0..BURST {
                    // SAFETY: the arguments are the kernel's addresses and its block of parameters.
                    unsafe { bare.launch(kernel, launch.blocks, launch.threads, &mut launches) }?;
                }
                let taken = start.elapsed();
                bare.synchronize()?;
                Ok(taken.as_nanos() as f64 / BURST as f64)
            },
        )?;
        if let Some((operation, output)) = theirs {
            let operands = vec![Operand::numbers(DType::F32, layout); data.len()];
            let work = Work { operation, operands: &operands, output, axes: &[] };
            options.pytorch().beside(recorder, &mut figure, &work, Clock::Host(BURST), burst)?;
        }
        recorder.add(figure);

        let mut wanted = vec![0.0f32; COUNT];
        let operands = data.iter().map(|data| HostInput::new(data, layout)).collect::<Result<Vec<_>, _>>()?;
        expression.run_host(&operands, scalars, &mut [HostOutput::new(&mut wanted, layout)?])?;
        let mut found = vec![0u64; COUNT / 2];
        bare.download_plain(&mut found, result)?;
        let own = step(true)?.is_some_and(|result| pairs(&result) == pairs(&wanted));
        let reference = found == pairs(&wanted);
        for address in addresses {
            bare.free(address)?;
        }
        Ok((!own || !reference).then(|| format!("{name}: own result {own}, reference's {reference}")))
    }
}

/// The positions of a run's scalars in the parameter block. These expressions name theirs before their own constants.
fn scalar_places(expression: &Expression) -> impl Iterator<Item = usize> {
    (0..expression.scalars().len()).map(|index| 16 * index)
}

/// As words, to compare and to send.
fn pairs(data: &[f32]) -> Vec<u64> {
    data.chunks_exact(2)
        .map(|pair| u64::from(pair[0].to_bits()) | u64::from(pair[1].to_bits()) << 32)
        .collect()
}

fn run(
    expression: &Expression,
    stream: &Stream,
    arrays: &[DeviceBuffer<f32>],
    scalars: &[Number],
    output: &mut DeviceBuffer<f32>,
    layout: Layout,
) -> Result<(), Failure> {
    let output = &mut [DeviceOutput::new(output, layout)?];
    match arrays {
        [a, b, ..] if expression.inputs().len() == 2 => {
            let inputs = [DeviceInput::new(a, layout)?, DeviceInput::new(b, layout)?];
            expression.run(stream, &inputs, scalars, output)?;
        }
        [a, b, c] => {
            let inputs =
                [DeviceInput::new(a, layout)?, DeviceInput::new(b, layout)?, DeviceInput::new(c, layout)?];
            expression.run(stream, &inputs, scalars, output)?;
        }
        _ => return Err("two or three inputs are wanted".into()),
    }
    Ok(())
}
