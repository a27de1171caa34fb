//! Products with golden factors beside plain products, and a generation of the evolver.

use selvedge::srt::{Evolver, EvolverOptions, ProductMode, golden_commutator, mm, mm_phi, mm_tn, snap};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Clock, Operand, Work};
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const DEFAULT_SIZE: usize = 4096;
/// Runs between two events.
const RUNS: usize = 4;
/// The share of cuBLAS's speed in the two products of a bracket that counts as reached.
const OF_CUBLAS: f64 = 0.88;
/// Milliseconds of a generation.
const OF_GENERATION: f64 = 6.0;

type Product = fn(&Tensor, &Tensor) -> selvedge::Result<Tensor>;

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let size = DEFAULT_SIZE;
    let mut recorder = Recorder::new(
        bare,
        "srt_products",
        "Golden-ratio products and the evolver",
        "Device time of one product of square matrices of 4096 random f64, by events around four runs, in turns with plain \
         products of the same matrices by this library. PyTorch computes the two products of the commutator alone, by cuBLAS, \
         without their sum. A generation of the evolver has 4096 candidates of 4096 points; its \
         time is the host's, from the call to the report.",
    )?;
    let device = Device::cuda(0)?;
    let generator = Generator::new(43);
    let matrix = || generator.randn(&[size, size], DType::F64, &device);
    let (a, b) = (matrix()?, matrix()?);
    let plain: Product = |a, b| mm(a, b, ProductMode::Fast);
    let two: Product = |a, b| {
        mm(a, b, ProductMode::Fast)?;
        mm(b, a, ProductMode::Fast)
    };
    let rows: [(&str, &str, f64, Product, Product); 3] = [
        (
            "golden_commutator",
            "two plain products",
            1.10,
            |a, b| golden_commutator(a, b, ProductMode::Fast),
            two,
        ),
        ("mm_tn", "a plain product", 1.03, |a, b| mm_tn(a, b, ProductMode::Fast), plain),
        ("mm_phi", "a plain product", 1.03, |a, b| mm_phi(a, b, 3, ProductMode::Fast), plain),
    ];
    let stream = device.stream()?.as_raw();
    // SAFETY: the stream lives as long as the process.
    let milliseconds = |product: Product| unsafe {
        bare.device_time(stream, || {
            (0..RUNS).try_for_each(|_| product(&a, &b).map(drop).map_err(Failure::from))
        })
        .map(|taken| taken / RUNS as f64)
    };
    for (operation, against, longer, own, reference) in rows {
        let name = format!("{operation} of {size} x {size}, f64");
        let subject = Subject {
            name: &name,
            against,
            unit: Unit::Milliseconds,
            bytes: None,
            rule: Rule::Speed,
            goal: Some(1.0 / longer),
        };
        let turn = options.turns(3, 20);
        let mut figure = turns(turn, &subject, || milliseconds(own), || milliseconds(reference))?;
        let operands = [&a, &b].map(|x| Operand::numbers(x.dtype(), *x.layout()));
        let work = Work { operation, operands: &operands, output: None, axes: &[] };
        options.pytorch().beside(&mut recorder, &mut figure, &work, Clock::Device, || milliseconds(own))?;
        if let Some(beside) = &mut figure.beside {
            beside.resolve_at = Some(OF_CUBLAS);
        }
        recorder.add(figure);
    }
    options.pytorch().drop_operands();

    let point = snap(&generator.randn(&[size], DType::F64, &device)?, 100)?;
    let evolver_options = EvolverOptions { population: size, seed: 1, ..EvolverOptions::default() };
    let mut evolver = Evolver::new(&point, None, evolver_options)?;
    let subject = Subject {
        name: "a generation of 4096 candidates of 4096 points",
        against: "a plain product",
        unit: Unit::Milliseconds,
        bytes: None,
        rule: Rule::Own,
        goal: Some(OF_GENERATION),
    };
    let generation = || {
        let start = std::time::Instant::now();
        evolver.step()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    recorder.add(turns(options.turns(3, 20), &subject, generation, || milliseconds(plain))?);
    recorder.finish(&options.out)
}
