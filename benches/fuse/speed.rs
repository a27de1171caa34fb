//! The bandwidth of elementwise kernels beside the driver's copy of as many bytes, and beside PyTorch.

use selvedge::driver::{Device, DeviceBuffer, Stream};
use selvedge::fuse::{DeviceInput, DeviceOutput, Expr, Expression, Graph};
use selvedge::types::{DType, Layout, Slice};

use crate::Options;
use crate::check::{Array, difference};
use crate::harness::bare::{Address, Bare};
use crate::harness::beside_copy::Copies;
use crate::harness::machine::Recorder;
use crate::harness::pytorch::{Operand, Work};
use crate::harness::random::{Random, half_to_two};
use crate::harness::report::Failure;

/// The bytes of a sector, the unit in which memory is read.
const SECTOR: usize = 32;
/// The goals: contiguous memory, and other layouts.
pub const IN_LINE: f64 = 0.98;
const OTHERWISE: f64 = 0.9;
/// The goals of a transposed copy, of wide and of narrow elements.
const TRANSPOSED: f64 = 0.93;
const TRANSPOSED_NARROW: f64 = 0.85;

/// An array that is read.
type Input<'a> = (&'a DeviceBuffer<u8>, Layout);

/// The data that the figures share.
pub struct Bench<'a> {
    bare: &'a Bare,
    options: &'a Options,
    recorder: Recorder,
    stream: Stream,
    /// Random words, from which every array is made.
    words: Vec<u64>,
    random: Random,
    output: DeviceBuffer<u8>,
    /// The copy's, of twice an operand's bytes each.
    source: Address,
    target: Address,
    wrong: Vec<String>,
}

/// Makes the bench for operands of as many bytes as the options say, lets `figures` use it, and writes what it measured.
pub fn with_bench(
    bare: &Bare,
    options: &Options,
    (name, title, text): (&str, &str, &str),
    figures: impl FnOnce(&mut Bench<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let bytes = match &options.file {
        None => 1 << 30,
        Some(text) => text.to_string_lossy().parse::<usize>()?,
    };
    if bytes < 1 << 22 || !bytes.is_power_of_two() || bytes.trailing_zeros() % 2 != 0 {
        return Err(format!("--bytes {bytes}: a power of four from {} on is wanted", 1 << 22).into());
    }
    let recorder = Recorder::new(bare, name, title, text)?;
    let stream = Device::new(0)?.stream()?;
    let output = stream.zeros(bytes)?;
    let (source, target) = (bare.allocate(2 * bytes)?, bare.allocate(2 * bytes)?);
    let mut random = Random::new(11);
    let mut words = vec![0; bytes / 8];
    random.fill(&mut words);
    for half in 0..2 {
        bare.upload_plain(source + half * bytes as u64, &words)?;
    }
    let mut bench =
        Bench { bare, options, recorder, stream, words, random, output, source, target, wrong: Vec::new() };
    let figures = figures(&mut bench);
    bare.free(source)?;
    bare.free(target)?;
    options.pytorch().drop_operands();
    figures?;
    bench.recorder.finish(&options.out)?;
    if bench.wrong.is_empty() { Ok(()) } else { Err(bench.wrong.join("\n").into()) }
}

/// Every figure, dtype by dtype.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let what = (
        "fuse",
        "Elementwise expressions at the memory's speed",
        "Device time of one kernel, by events around four runs, on random operands of 1 GiB (for the strided one and \
         the transposed copy of bf16: a half), and of as many of the driver's own copies of as many bytes. Speeds count \
         every operand once, read or written: one that is broadcast by its own elements, a strided one by the sectors \
         that it lies in. A sample of each result is compared with the CPU's, bit for bit. PyTorch computes the same of its \
         own operands, of the same sizes, layouts and distribution, into memory that is there, or where it cannot, into \
         memory of its cache.",
    );
    with_bench(bare, options, what, |bench| {
        bench.single()?;
        for dtype in [DType::BF16, DType::F16, DType::F64, DType::C128] {
            let (a, b) = (bench.array(dtype)?, bench.array(dtype)?);
            bench.operations(dtype, &a, &b)?;
            if dtype == DType::BF16 {
                bench.transposed_copy(dtype, &a, TRANSPOSED_NARROW)?;
            }
        }
        Ok(())
    })
}

/// An expression of one output.
pub fn expression<const INPUTS: usize>(
    inputs: [DType; INPUTS],
    build: impl FnOnce([Expr<'_>; INPUTS]) -> Expr<'_>,
) -> Result<Expression, Failure> {
    let graph = Graph::new();
    let inputs = graph.inputs(inputs);
    Ok(graph.expression(&[build(inputs)])?)
}

/// The bytes that reading or writing an array moves.
fn traffic(dtype: DType, layout: &Layout) -> usize {
    let moving =
        || layout.shape().iter().zip(layout.strides()).filter(|(size, stride)| **size > 1 && **stride != 0);
    let elements: usize = moving().map(|(size, _)| *size).product();
    let apart = moving().map(|(_, stride)| stride.unsigned_abs()).min().unwrap_or(1);
    elements * (apart * dtype.size()).min(SECTOR.max(dtype.size()))
}

impl Bench<'_> {
    /// Random numbers of half to two, with either sign: no operation has a slow path for some of them. Integers have any
    /// bits.
    pub fn array(&mut self, dtype: DType) -> Result<DeviceBuffer<u8>, Failure> {
        let (kept, set) = half_to_two(dtype);
        let random = &mut self.random;
        self.words.fill_with(|| random.bits() & kept | set);
        Ok(self.stream.upload(bytemuck::cast_slice(&self.words))?)
    }

    /// f32, and c64 of the same memory.
    fn single(&mut self) -> Result<(), Failure> {
        use DType::{BF16, C64, F32};
        let (a, b, c) = (self.array(F32)?, self.array(F32)?, self.array(F32)?);
        let count = self.words.len() * 2;
        let whole = Layout::contiguous(&[count])?;
        let chain = expression([F32; 3], |[a, b, c]| (a * b + c).relu())?;
        let inputs = [(&a, whole), (&b, whole), (&c, whole)];
        self.figure(("relu(a * b + c), f32", "relu(a * b + c)"), &chain, &inputs, whole, IN_LINE)?;
        drop(c);
        self.operations(F32, &a, &b)?;
        self.operations(C64, &a, &b)?;

        let narrow = expression([F32], |[a]| a.cast(BF16))?;
        self.figure(("f32 as bf16", "copy"), &narrow, &[(&a, whole)], whole, IN_LINE)?;

        let add = expression([F32; 2], |[a, b]| a + b)?;
        let columns = 4096;
        let matrix = Layout::contiguous(&[count / columns, columns])?;
        let row = Layout::contiguous(&[columns])?;
        self.figure(("matrix + row, f32", "add"), &add, &[(&a, matrix), (&b, row)], matrix, OTHERWISE)?;
        let column = Layout::contiguous(&[count / columns, 1])?;
        self.figure(("matrix + column, f32", "add"), &add, &[(&a, matrix), (&b, column)], matrix, OTHERWISE)?;

        let half = Layout::contiguous(&[count / columns / 2, columns])?;
        let wide = Layout::contiguous(&[count / columns / 2, 2 * columns])?;
        let every_other = wide.slice(1, Slice::from(..).step(2))?;
        self.figure(("a + b[:, ::2], f32", "add"), &add, &[(&a, half), (&b, every_other)], half, OTHERWISE)?;
        let permuted = Layout::contiguous(&[count / (1 << 19), 512, 4, 256])?.permute(&[0, 2, 1, 3])?;
        let plain = Layout::from_shape(*permuted.shape());
        self.figure(("a + permuted b, f32", "add"), &add, &[(&a, plain), (&b, permuted)], plain, OTHERWISE)?;
        let side = 1 << (count.trailing_zeros() / 2);
        let square = Layout::contiguous(&[side, side])?;
        let turned = square.transpose(0, 1)?;
        self.figure(
            ("a + transposed b, f32", "add"),
            &add,
            &[(&a, square), (&b, turned)],
            square,
            OTHERWISE,
        )?;
        self.transposed_copy(F32, &a, TRANSPOSED)
    }

    /// The identity on the transposed of a square: of 16384 rows where an f32 fills an operand.
    fn transposed_copy(&mut self, dtype: DType, a: &DeviceBuffer<u8>, goal: f64) -> Result<(), Failure> {
        let side = 1 << ((self.words.len() * 2).trailing_zeros() / 2);
        let square = Layout::contiguous(&[side, side])?;
        let copy = expression([dtype], |[a]| a)?;
        let name = format!("transposed copy, {dtype}");
        self.figure((&name, "copy"), &copy, &[(a, square.transpose(0, 1)?)], square, goal)
    }

    /// Elements of an operand.
    pub fn count(&self, dtype: DType) -> usize {
        self.words.len() * 8 / dtype.size()
    }

    /// The operations that every dtype is measured with.
    fn operations(
        &mut self,
        dtype: DType,
        a: &DeviceBuffer<u8>,
        b: &DeviceBuffer<u8>,
    ) -> Result<(), Failure> {
        let whole = Layout::contiguous(&[self.words.len() * 8 / dtype.size()])?;
        let pair = [(a, whole), (b, whole)];
        for (name, operation, expression) in [
            ("a + b", "add", expression([dtype; 2], |[a, b]| a + b)?),
            ("a * b", "mul", expression([dtype; 2], |[a, b]| a * b)?),
            ("a / b", "div", expression([dtype; 2], |[a, b]| a / b)?),
        ] {
            self.figure((&format!("{name}, {dtype}"), operation), &expression, &pair, whole, IN_LINE)?;
        }
        if dtype.is_complex() {
            return Ok(());
        }
        let exponential = expression([dtype], |[a]| a.exp())?;
        self.figure((&format!("exp(a), {dtype}"), "exp"), &exponential, &pair[..1], whole, IN_LINE)
    }

    /// One expression in turns with the copy, and with PyTorch's operation. A figure whose result is wrong is no figure, and
    /// fails the benchmark at its end.
    pub fn figure(
        &mut self,
        (name, operation): (&str, &str),
        expression: &Expression,
        inputs: &[Input],
        layout: Layout,
        goal: f64,
    ) -> Result<(), Failure> {
        let dtype = expression.outputs()[0];
        let arrays: Vec<Array> = inputs
            .iter()
            .zip(expression.inputs())
            .map(|(&(memory, layout), &dtype)| (memory, dtype, layout))
            .collect();
        let moved = traffic(dtype, &layout)
            + arrays.iter().map(|(_, dtype, layout)| traffic(*dtype, layout)).sum::<usize>();
        let (stream, output) = (&self.stream, &mut self.output);
        // Elements that a run does not write are detected then.
        stream.fill(output, 0xffu8)?;
        let operands = arrays
            .iter()
            .map(|&(memory, dtype, layout)| DeviceInput::of_bytes(dtype, memory, layout))
            .collect::<Result<Vec<_>, _>>()?;
        let raw_stream = stream.as_raw();
        let copies = Copies { bare: self.bare, source: self.source, target: self.target };
        let mut run = || {
            let result = DeviceOutput::of_bytes(dtype, output, layout)?;
            Ok(expression.run(stream, &operands, &[], &mut [result])?)
        };
        let turns = self.options.turns(3, 30);
        // SAFETY: the stream lives as long as `self`.
        let mut figure = unsafe { copies.beside(turns, (name, moved, Some(goal)), raw_stream, &mut run)? };
        let theirs: Vec<Operand> =
            arrays.iter().map(|&(_, dtype, layout)| Operand::numbers(dtype, layout)).collect();
        let output = Some(Operand::nothing(dtype, layout));
        let work = Work { operation, operands: &theirs, output, axes: &[] };
        let mut pytorch = self.options.pytorch();
        // SAFETY: as above.
        unsafe {
            copies.pytorch_beside(&mut pytorch, &mut self.recorder, (&mut figure, &work), raw_stream, run)?;
        }
        match difference(&self.stream, expression, &arrays, (&self.output, dtype, layout))? {
            None => self.recorder.add(figure),
            Some(how) => {
                self.wrong.push(format!("{name}: {how}"));
                self.recorder.skip(format!("{name}: the result is wrong."));
            }
        }
        Ok(())
    }
}
