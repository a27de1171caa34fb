//! The products of the goals, shape by shape or by the geometric mean of several.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::gemm::{Choice, Engine, GemmResult};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, GEOMETRIC_MEAN};
use crate::harness::turns::{Goal, geometric_mean, speed};
use crate::pair::{Number, Shape, Sides, print_speeds};

const METHOD: &str = "Device time of one product, by events around a graph of several; random data, nearly normal; both \
     sides read the same operands, which are contiguous and row-major, and their results are compared. Ours runs with \
     the engines forced to be its own, before cuBLAS is opened for the first time.";

/// One report and what it is made with.
pub struct Part<'a> {
    pub sides: Sides<'a>,
    pub options: &'a Options,
    pub recorder: Recorder,
}

impl<'a> Part<'a> {
    pub fn new(bare: &'a Bare, options: &'a Options, name: &str, title: &str) -> Result<Part<'a>, Failure> {
        // First, for it checks what this process has not opened.
        let sides = Sides::open(bare, options)?;
        Ok(Part { sides, options, recorder: Recorder::new(bare, name, title, METHOD)? })
    }

    fn times<T: Number, C: GemmResult<T> + Number>(&self, shape: Shape) -> Result<Vec<(f64, f64)>, Failure> {
        let pairs = self.sides.measure::<T, C>(self.options, shape, 22)?;
        print_speeds(shape, &pairs);
        Ok(pairs)
    }

    fn one<T: Number, C: GemmResult<T> + Number>(
        &mut self,
        name: &str,
        shape: Shape,
        goal: Option<Goal>,
    ) -> Result<Vec<(f64, f64)>, Failure> {
        let pairs = self.times::<T, C>(shape)?;
        self.add(name, &pairs, goal)?;
        Ok(pairs)
    }

    pub fn add(&mut self, name: &str, pairs: &[(f64, f64)], goal: Option<Goal>) -> Result<(), Failure> {
        self.recorder.add(speed(name, &self.sides.against(), pairs, goal)?);
        Ok(())
    }

    pub fn finish(self) -> Result<(), Failure> {
        self.recorder.finish(&self.options.out)
    }
}

/// The layouts by their letters.
const LAYOUTS: [(&str, bool, bool); 4] =
    [("nn", false, false), ("nt", false, true), ("tn", true, false), ("tt", true, true)];

/// Large squares in every layout.
pub fn square(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut part = Part::new(bare, options, "gemm_square", "Products of large squares")?;
    let goal = Some(Goal(1.05, 0.98));
    for size in [4096, 8192] {
        for (name, a_transposed, b_transposed) in LAYOUTS {
            let shape = Shape { a_transposed, b_transposed, ..Shape::new(size, size, size) };
            part.one::<bf16, bf16>(&format!("bf16 {size} {name}"), shape, goal)?;
            part.one::<f16, f16>(&format!("f16 {size} {name}"), shape, goal)?;
        }
    }
    part.finish()
}

/// The widths of a small GPT, for 65536 tokens.
const GPT: [(usize, usize); 8] = [
    (768, 768),
    (2304, 768),
    (3072, 768),
    (50304, 768),
    (768, 3072),
    (2304, 3072),
    (3072, 3072),
    (50304, 3072),
];

/// A GPT's layers.
pub fn gpt(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let title = "Products of a GPT's layers, bf16, 65536 rows";
    let mut part = Part::new(bare, options, "gemm_gpt", title)?;
    let mut all = Vec::new();
    for (n, k) in GPT {
        all.push(part.one::<bf16, bf16>(&format!("65536 x {n} x {k}"), Shape::new(65536, n, k), None)?);
    }
    part.add(GEOMETRIC_MEAN, &geometric_mean(&all), Some(Goal(1.05, 1.0)))?;
    part.finish()
}

/// The gradients of those layers: of the input, and of the weights into f32.
pub fn gradients(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut part =
        Part::new(bare, options, "gemm_gradients", "Gradients of a GPT's layers, bf16, 65536 rows")?;
    let (mut inputs, mut weights) = (Vec::new(), Vec::new());
    for (n, k) in [(768, 768), (2304, 768), (3072, 768), (768, 3072)] {
        // dX = dY Wᵀ, with W stored as 768 rows of n.
        let shape = Shape { b_transposed: true, ..Shape::new(65536, k, n) };
        inputs.push(part.one::<bf16, bf16>(&format!("dX 65536 x {k} x {n}"), shape, None)?);
        // dW = Xᵀ dY.
        let shape = Shape { a_transposed: true, ..Shape::new(k, n, 65536) };
        weights.push(part.one::<bf16, f32>(&format!("dW {k} x {n} x 65536"), shape, None)?);
    }
    let goal = Some(Goal(1.02, 0.97));
    part.add(&format!("dX, {GEOMETRIC_MEAN}"), &geometric_mean(&inputs), goal)?;
    part.add(&format!("dW, {GEOMETRIC_MEAN}"), &geometric_mean(&weights), goal)?;
    part.finish()
}

/// Squares that do not fill the card.
pub fn small(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut part = Part::new(bare, options, "gemm_small", "Products of small squares, bf16")?;
    let mut all = Vec::new();
    for size in [256, 512, 1024, 2048] {
        all.push(part.one::<bf16, bf16>(&format!("{size}"), Shape::new(size, size, size), None)?);
    }
    part.add(GEOMETRIC_MEAN, &geometric_mean(&all), Some(Goal(1.0, 0.9)))?;
    part.finish()
}

/// Few rows times weights that are not in the cache.
pub fn skinny(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut part = Part::new(bare, options, "gemm_skinny", "Few rows times large weights, bf16")?;
    for (size, copies) in [(4096, 8), (16384, 2)] {
        for m in [1, 16, 64, 128] {
            let shape = Shape { copies, ..Shape::new(m, size, size) };
            part.one::<bf16, bf16>(&format!("{m} x {size} x {size}"), shape, Some(Goal(1.5, 1.15)))?;
        }
    }
    part.finish()
}

/// A batch whose results are most of what it moves.
pub fn batched(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut part = Part::new(bare, options, "gemm_batched", "A batch of products, bf16")?;
    let shape = Shape { batch: 64, ..Shape::new(1024, 1024, 64) };
    part.one::<bf16, bf16>("64 of 1024 x 1024 x 64", shape, Some(Goal(1.4, 1.1)))?;
    part.finish()
}

/// The kernels of cards before 9.0, on this one.
pub fn older(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut part = Part::new(bare, options, "gemm_older", "Products by mma.sync, the engine of older cards")?;
    let (choice, size) = (Choice::Only(Engine::Mma), 8192);
    for (name, a_transposed, b_transposed) in LAYOUTS {
        let shape = Shape { a_transposed, b_transposed, choice, ..Shape::new(size, size, size) };
        part.one::<bf16, bf16>(&format!("bf16 {size} {name}"), shape, Some(Goal(0.65, 0.5)))?;
    }
    part.finish()
}

/// f32 as IEEE has it, and the types that are wider.
pub fn plain(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut part = Part::new(bare, options, "gemm_plain", "Products in f32, f64 and complex numbers")?;
    for size in [1024, 2048, 4096, 8192] {
        part.one::<f32, f32>(&format!("f32 {size}"), Shape::new(size, size, size), Some(Goal(1.15, 1.0)))?;
    }
    let square = Shape::new(4096, 4096, 4096);
    part.one::<f64, f64>("f64 4096", square, Some(Goal(0.54, 0.45)))?;
    for size in [512, 1024, 2048, 8192] {
        let shape = Shape::new(size, size, size);
        part.one::<f64, f64>(&format!("f64 {size}"), shape, None)?;
        if size < 8192 {
            part.one::<Complex<f64>, Complex<f64>>(&format!("c128 {size}"), shape, None)?;
        }
    }
    part.one::<Complex<f32>, Complex<f32>>("c64 4096", square, Some(Goal(1.05, 0.85)))?;
    part.one::<Complex<f64>, Complex<f64>>("c128 4096", square, Some(Goal(0.54, 0.45)))?;
    part.finish()
}
