//! The functions of the catalogue that read and write each element once: information measures, neurons, oscillators, gates and
//! rotary positions.

use selvedge::catalogue::{
    StdpParameters, cnot, discretize, entropy_production, free_energy, gaussian_accuracy,
    gaussian_kl_divergence, hadamard, histogram_2d, kl_divergence, kuramoto_step, leaky_integrate_fire,
    measurement_probabilities, order_parameter, pauli_x, phase_gate, reservoir_update, rope_encoding,
    shannon_entropy, stdp_update,
};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Operand, Work};
use crate::harness::random::Random;
use crate::harness::report::Failure;
use crate::harness::tensor_bench::{self, TensorBench, same_bits};

/// The share of the copy's speed to reach.
const GOAL: Option<f64> = Some(0.85);
/// The length of a row.
const ROW: usize = 4096;
/// Elements of a vector, and rows, in the comparison with the CPU.
const FEW: usize = 1 << 16;
const FEW_ROWS: usize = 2;

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let bytes = options.bytes()?;
    let recorder = Recorder::new(
        bare,
        "catalogue",
        "Functions of numerical models",
        "Device time of one function on tensors, by events around four runs, on operands of 2^28 f32 from half to two or 2^27 c64, \
         and of as many of the driver's own copies of as many bytes: each input and output once. Functions of one row compute \
         one result from all elements, the others one for each row of 4096. The results of the first elements are compared \
         with the CPU's, bit for bit. PyTorch does the same to tensors of its own, of the same sizes and distribution; \
         most by torch.compile.",
    )?;
    let mut words = vec![0; 1 << 20];
    Random::new(37).fill(&mut words);
    tensor_bench::measure(bare, options, recorder, (bytes * 2, &words), |bench| {
        let generator = Generator::new(37);
        let device = bench.device;
        let operand = || generator.uniform(0.5, 2.0, &[bytes / 4], DType::F32, &device);
        let all = [operand()?, operand()?, operand()?, operand()?];
        elementwise(bench, &all)?;
        measures(bench, &all)?;
        counts(bench, &all)?;
        drop(all);
        gates(bench, &generator.randn(&[bytes / 8], DType::C64, &device)?)
    })
}

/// One function: its name, the operation of PyTorch, the bytes that an element reads and writes, and the goal.
struct Subject<'a> {
    name: &'a str,
    operation: &'a str,
    bytes: usize,
    goal: Option<f64>,
}

impl<'a> Subject<'a> {
    fn new(name: &'a str, operation: &'a str, bytes: usize) -> Subject<'a> {
        Subject { name, operation, bytes, goal: GOAL }
    }
}

type Run = fn(&[Tensor]) -> selvedge::Result<Vec<Tensor>>;

/// One function of operands of one shape, in turns with the copy and with PyTorch's. `axes` are numbers for PyTorch.
fn figure(
    bench: &mut TensorBench,
    subject: &Subject,
    operands: &[Tensor],
    axes: &[usize],
    run: Run,
) -> Result<(), Failure> {
    let first: Vec<Tensor> = operands
        .iter()
        .map(|x| x.narrow(0, 0, x.shape()[0].min(if x.rank() == 1 { FEW } else { FEW_ROWS })))
        .collect::<selvedge::Result<_>>()?;
    let here: Vec<Tensor> = first.iter().map(|x| x.to(&Device::cpu())).collect::<selvedge::Result<_>>()?;
    for (here, there) in run(&here)?.iter().zip(&run(&first)?) {
        same_bits(subject.name, here, there)?;
    }
    let theirs: Vec<Operand> = operands.iter().map(|x| Operand::numbers(x.dtype(), *x.layout())).collect();
    let work = Work { operation: subject.operation, operands: &theirs, output: None, axes };
    let moved = operands.first().map_or(0, Tensor::count) * subject.bytes;
    bench.figure((subject.name, moved, subject.goal), &work, || run(operands).map(drop))
}

/// The operands as rows.
fn in_rows(operands: &[Tensor], length: usize) -> selvedge::Result<Vec<Tensor>> {
    operands.iter().map(|x| x.reshape(&[-1, length as isize])).collect()
}

/// Neurons, oscillators and rotary positions, whose results have the shape of the operands.
fn elementwise(bench: &mut TensorBench, all: &[Tensor; 4]) -> Result<(), Failure> {
    let lif: Run = |x| {
        let (state, spikes) = leaky_integrate_fire(&x[0], &x[1], 0.1, 0.9)?;
        Ok(vec![state, spikes])
    };
    let subject = Subject::new("leaky integration with spikes", "leaky_integrate_fire", 13);
    figure(bench, &subject, &all[..2], &[], lif)?;
    let subject = Subject::new("reservoir update", "reservoir_update", 12);
    figure(bench, &subject, &all[..2], &[], |x| Ok(vec![reservoir_update(&x[0], &x[1], 0.1)?]))?;

    let rows = in_rows(all, ROW)?;
    let kuramoto: Run = |x| Ok(vec![kuramoto_step(&x[0], &x[1], None, 1.5, 0.05)?]);
    let subject = Subject::new("Kuramoto step, rows of 4096", "kuramoto_step", 12);
    figure(bench, &subject, &rows[..2], &[], kuramoto)?;
    // The sums are complete before the step, so one row is read twice.
    let subject = Subject { goal: None, ..Subject::new("Kuramoto step, one row", "kuramoto_step", 12) };
    figure(bench, &subject, &all[..2], &[], kuramoto)?;

    let heads = all[0].reshape(&[-1, 1024, 128])?;
    let subject = Subject::new("rotary positions, 1024 of 128", "rope_encoding", 8);
    figure(bench, &subject, &[heads], &[], |x| Ok(vec![rope_encoding(&x[0], 0, 10_000.0)?]))?;

    // The neurons' spikes and times are small.
    let weights = &rows[0];
    let neurons = |count: usize| -> selvedge::Result<[Tensor; 2]> {
        let times = all[1].narrow(0, 0, count)?;
        Ok([times.gt(1.0)?, times])
    };
    let ([pre, pre_times], [post, post_times]) = (neurons(ROW)?, neurons(weights.shape()[0])?);
    let parameters = StdpParameters { learning_rate: 0.1, tau: 20.0 };
    let run = || stdp_update(weights, [&pre, &post], [&pre_times, &post_times], parameters);
    let few = FEW_ROWS.min(weights.shape()[0]);
    let first = |x: &Tensor| x.narrow(0, 0, few)?.to(&Device::cpu());
    let cpu = Device::cpu();
    let wanted = stdp_update(
        &first(weights)?,
        [&pre.to(&cpu)?, &first(&post)?],
        [&pre_times.to(&cpu)?, &first(&post_times)?],
        parameters,
    )?;
    same_bits("spike-timing plasticity", &wanted, &run()?.narrow(0, 0, few)?)?;
    let theirs = [weights, &pre_times, &post_times].map(|x| Operand::numbers(x.dtype(), *x.layout()));
    let work = Work { operation: "stdp_update", operands: &theirs, output: None, axes: &[] };
    bench.figure(("spike-timing plasticity", 8 * weights.count(), GOAL), &work, || run().map(drop))
}

/// Measures of rows.
fn measures(bench: &mut TensorBench, all: &[Tensor; 4]) -> Result<(), Failure> {
    let functions: [(&str, &str, usize, Run); 7] = [
        ("Shannon entropy", "shannon_entropy", 1, |x| Ok(vec![shannon_entropy(&x[0])?])),
        ("KL divergence", "kl_divergence", 2, |x| Ok(vec![kl_divergence(&x[0], &x[1])?])),
        ("free energy", "free_energy", 3, |x| Ok(vec![free_energy(&x[0], &x[1], &x[2])?])),
        ("Gaussian accuracy", "gaussian_accuracy", 2, |x| Ok(vec![gaussian_accuracy(&x[0], &x[1])?])),
        ("Gaussian KL divergence", "gaussian_kl_divergence", 4, |x| {
            Ok(vec![gaussian_kl_divergence([&x[0], &x[1]], [&x[2], &x[3]])?])
        }),
        ("order parameter", "order_parameter", 1, |x| {
            let order = order_parameter(&x[0])?;
            Ok(vec![order.magnitude, order.phase])
        }),
        ("entropy production", "entropy_production", 1, |x| Ok(vec![entropy_production(&x[0], 0.5)?])),
    ];
    let rows = in_rows(all, ROW)?;
    for (title, operation, count, run) in functions {
        for (shape, operands) in [("rows of 4096", &rows[..count]), ("one row", &all[..count])] {
            let name = format!("{title}, {shape}");
            figure(bench, &Subject::new(&name, operation, 4 * count), operands, &[], run)?;
        }
    }
    Ok(())
}

/// Bins and histograms, which check their elements before they count.
fn counts(bench: &mut TensorBench, all: &[Tensor; 4]) -> Result<(), Failure> {
    let subject = Subject { goal: None, ..Subject::new("bins of floats", "discretize", 12) };
    figure(bench, &subject, &all[..1], &[], |x| Ok(vec![discretize(&x[0], 16, Some((0.5, 2.0)))?]))?;
    let subject = Subject { goal: None, ..Subject::new("joint histogram of 16 x 16", "histogram_2d", 8) };
    figure(bench, &subject, &all[..2], &[], |x| Ok(vec![histogram_2d(&x[0], &x[1], 16, Some((0.5, 2.0)))?]))
}

/// Gates on one state.
fn gates(bench: &mut TensorBench, state: &Tensor) -> Result<(), Failure> {
    let gates: [(&str, &str, usize, &[usize], Run); 6] = [
        ("Hadamard gate on qubit 3", "hadamard", 16, &[3], |x| Ok(vec![hadamard(&x[0], 3)?])),
        ("Hadamard gate on qubit 12", "hadamard", 16, &[12], |x| Ok(vec![hadamard(&x[0], 12)?])),
        ("Pauli X gate on qubit 3", "pauli_x", 16, &[3], |x| Ok(vec![pauli_x(&x[0], 3)?])),
        ("phase gate on qubit 3", "phase_gate", 16, &[3], |x| Ok(vec![phase_gate(&x[0], 3, 0.5)?])),
        ("controlled not of qubits 3 and 12", "cnot", 16, &[], |x| Ok(vec![cnot(&x[0], 3, 12)?])),
        ("measurement probabilities", "measurement_probabilities", 12, &[], |x| {
            Ok(vec![measurement_probabilities(&x[0])?])
        }),
    ];
    for (name, operation, bytes, axes, run) in gates {
        figure(bench, &Subject::new(name, operation, bytes), std::slice::from_ref(state), axes, run)?;
    }
    Ok(())
}
