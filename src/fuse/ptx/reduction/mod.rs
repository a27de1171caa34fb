//! The PTX writer of reductions and scans. [`fold`] reads the inputs, [`merge`] merges the partial values of
//! a fold, [`scan`] emits scans, and [`chain`] scans of long rows. [`shared`] has values in
//! shared memory, and this file the other common parts.
//!
//! As for elementwise kernels, the module is PTX 8.0 for sm_60 or later with one entry, whose parameters are addresses
//! followed by one block, and its text depends only on the reduction and the key. No thread exits before the
//! last shuffle or barrier of its block: threads past the end repeat the last element and the last row and
//! store nothing.

mod chain;
mod fold;
mod merge;
mod rescale;
mod scan;
mod shared;

use std::ops::Range;

use super::{ENTRY, Name, Register, Writer, immediate, move_of};
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::{Program, Step, Value};
use crate::fuse::language::fold::bytes;
use crate::fuse::plan;
use crate::fuse::plan::compiled_reduction::CompiledReduction;
use crate::fuse::plan::reduction::{PlannedLaunch, ReductionKey, ReductionParameters, WARP};
use crate::fuse::plan::scan::words;
use crate::types::DType;

/// The registers of a folded value's parts; a value with one part has it twice.
pub(in crate::fuse) type Folded = [Name; 2];

/// A kernel under construction.
pub(in crate::fuse) struct KernelWriter<'a> {
    pub(in crate::fuse) writer: Writer<'a>,
    pub(in crate::fuse) compiled: &'a CompiledReduction,
    pub(in crate::fuse) parameters: ReductionParameters,
    pub(in crate::fuse) wide: bool,
    /// Bytes of shared memory.
    pub(in crate::fuse) shared: usize,
    /// A register with the start of shared memory, if one is kept.
    pub(in crate::fuse) start: Option<Name>,
    pub(in crate::fuse) addresses: Vec<Name>,
    /// The parameter with the address of the rows' codes, which follows the other addresses, if the kernel uses them.
    pub(in crate::fuse) codes: Option<Name>,
    /// By row of the thread, the factor of the elements of a sum of squares.
    pub(in crate::fuse) factors: Vec<Name>,
    /// The element at hand, for programs with coordinates.
    pub(in crate::fuse) position: ElementPosition,
}

/// The position of an element among all, and in the vector of adjacent elements that holds it.
#[derive(Debug, Clone, Default)]
pub(in crate::fuse) struct ElementPosition {
    /// A register of 64 bits with the position in row-major order.
    pub(in crate::fuse) number: Name,
    /// The index of the element in its vector, which begins at a multiple of its length.
    pub(in crate::fuse) element: usize,
    pub(in crate::fuse) vector: usize,
}

/// Returns the text of a kernel of the reduction.
pub(in crate::fuse) fn write(compiled: &CompiledReduction, launch: &PlannedLaunch) -> String {
    let PlannedLaunch { key, parameters, threads, .. } = launch;
    let (parameters, threads) = (*parameters, *threads);
    let (wide, is_ampere, partial) = match key {
        ReductionKey::Fold(key) => (key.wide, key.is_ampere, key.partial),
        ReductionKey::Merge(key) => (key.wide, key.is_ampere, key.partial),
        ReductionKey::Scan(key) => (key.wide, key.is_ampere, false),
    };
    // The elementwise writer needs a key, but only its instructions, loads and stores are used.
    let plain = plan::elementwise::KernelKey {
        iteration: plan::elementwise::Iteration::Flat,
        lanes: 1,
        rank: 0,
        access_patterns: Vec::new(),
        tail: false,
        is_ampere,
    };
    let scalars = plan::elementwise::ParameterLayout::new(&plain, compiled.scalars(), 0);
    let parts = compiled.rules.kinds.len();
    let results = match key {
        // The output, a counter, and the words of tiles and of groups.
        ReductionKey::Scan(key) if key.chained => 2 + 2 * words(&compiled.rules),
        _ if partial => parts,
        _ => 1,
    };
    let sources = if let ReductionKey::Merge(_) = key { parts } else { compiled.prologue.inputs.len() };
    let has_codes = match key {
        ReductionKey::Fold(key) => key.again || key.partial && compiled.rescaled.is_some(),
        ReductionKey::Merge(key) => key.again || key.stores_codes,
        ReductionKey::Scan(_) => false,
    };
    let name = |access: &'static str| move |index: usize| format!("{ENTRY}_{access}_{index}");
    let mut kernel = KernelWriter {
        writer: Writer::new(&compiled.element().program, &[], 0, &plain, scalars),
        compiled,
        parameters,
        wide,
        shared: 0,
        start: None,
        addresses: (0..sources).map(name("read")).chain((0..results).map(name("write"))).collect(),
        codes: has_codes.then(|| format!("{ENTRY}_codes")),
        factors: Vec::new(),
        position: ElementPosition::default(),
    };
    match key {
        ReductionKey::Fold(key) => kernel.fold(key),
        ReductionKey::Merge(key) => kernel.merge(key),
        ReductionKey::Scan(key) => kernel.scan(key),
    }
    // A scan keeps a tile in registers. Without this limit the assembler would spill some of them to fit more
    // blocks than requested. Other kernels leave all registers to loads in flight.
    let blocks = match key {
        ReductionKey::Scan(key) => format!(".minnctapersm {}\n", key.resident),
        _ => String::new(),
    };
    kernel.text(threads, &blocks, if is_ampere { 80 } else { 60 })
}

impl KernelWriter<'_> {
    pub(in crate::fuse) fn text(&self, threads: u32, blocks: &str, target: u32) -> String {
        let KernelWriter { writer, shared, .. } = self;
        let addresses: String =
            self.addresses.iter().chain(&self.codes).map(|name| format!(".param .u64 {name},\n")).collect();
        let shared = match shared {
            0 => String::new(),
            bytes => format!(".shared .align 128 .b8 shared[{bytes}];\n"),
        };
        // `st.async` needs 8.1.
        let version = if target < 90 { "8.0" } else { "8.1" };
        format!(
            ".version {version}\n.target sm_{target}\n.address_size 64\n.visible .entry {ENTRY}(\n{addresses}.param .align 8 \
             .b8 block[{}]\n)\n.maxntid {threads}\n{blocks}{{\n{}{shared}{}}}\n",
            self.parameters.bytes(),
            writer.declarations(),
            writer.body
        )
    }

    pub(in crate::fuse) fn result(&mut self, register: Register, mnemonic: &str, operands: &[&str]) -> Name {
        self.writer.result(register, mnemonic, operands)
    }

    pub(in crate::fuse) fn bits32(&mut self, mnemonic: &str, operands: &[&str]) -> Name {
        self.result(Register::Bits32, mnemonic, operands)
    }

    pub(in crate::fuse) fn predicate(&mut self, mnemonic: &str, operands: &[&str]) -> Name {
        self.result(Register::Predicate, mnemonic, operands)
    }

    pub(in crate::fuse) fn line(&mut self, text: impl AsRef<str>) {
        self.writer.line(text);
    }

    /// Emits the load of an operand's address.
    pub(in crate::fuse) fn base(&mut self, operand: usize) -> Name {
        let source = format!("[{}]", self.addresses[operand]);
        self.result(Register::Bits64, "ld.param.u64", &[&source])
    }

    /// Emits an index instruction at the key's width.
    pub(in crate::fuse) fn index(&mut self, narrow: &str, wide: &str, operands: &[&str]) -> Name {
        match self.wide {
            true => self.result(Register::Bits64, wide, operands),
            false => self.result(Register::Bits32, narrow, operands),
        }
    }

    pub(in crate::fuse) fn word(&mut self, at: usize) -> Name {
        self.index("ld.param.u32", "ld.param.u64", &[&format!("[block+{at}]")])
    }

    /// Widens a 32-bit register to an index.
    pub(in crate::fuse) fn widened(&mut self, name: &str) -> Name {
        match self.wide {
            true => self.result(Register::Bits64, "cvt.u64.u32", &[name]),
            false => name.to_owned(),
        }
    }

    /// Returns an index in a register of 64 bits.
    pub(in crate::fuse) fn in_64_bits(&mut self, index: &str) -> Name {
        match self.wide {
            true => index.to_owned(),
            false => self.result(Register::Bits64, "cvt.u64.u32", &[index]),
        }
    }

    pub(in crate::fuse) fn plus(&mut self, index: &str, offset: usize) -> Name {
        match offset {
            0 => index.to_owned(),
            _ => self.index("add.u32", "add.u64", &[index, &offset.to_string()]),
        }
    }

    /// Emits index · factor + other.
    pub(in crate::fuse) fn times_plus(&mut self, index: &str, factor: &str, other: &str) -> Name {
        self.index("mad.lo.u32", "mad.lo.u64", &[index, factor, other])
    }

    pub(in crate::fuse) fn is_below(&mut self, index: &str, limit: &str) -> Name {
        let mnemonic = if self.wide { "setp.lt.u64" } else { "setp.lt.u32" };
        self.predicate(mnemonic, &[index, limit])
    }

    pub(in crate::fuse) fn lesser(&mut self, index: &str, limit: &str) -> Name {
        self.index("min.u32", "min.u64", &[index, limit])
    }

    /// Emits quotient and remainder by the divisor at this parameter offset.
    pub(in crate::fuse) fn divide(&mut self, index: &str, at: usize) -> (Name, Name) {
        let step = self.parameters.word;
        let size = self.word(at);
        let quotient = match self.wide {
            true => self.result(Register::Bits64, "div.u64", &[index, &size]),
            false => {
                let (factor, shift) = (self.word(at + step), self.word(at + 2 * step));
                let high = self.bits32("mul.hi.u32", &[index, &factor]);
                let sum = self.bits32("add.u32", &[&high, index]);
                self.bits32("shr.u32", &[&sum, &shift])
            }
        };
        let whole = self.index("mul.lo.u32", "mul.lo.u64", &[&quotient, &size]);
        let rest = self.index("sub.u32", "sub.u64", &[index, &whole]);
        (quotient, rest)
    }

    /// Emits the rows and the segments of the block.
    fn block(&mut self, partial: bool, quotient_is_rows: bool) -> (Name, Option<Name>) {
        let block = self.bits32("mov.u32", &["%ctaid.x"]);
        self.block_of(&block, partial, quotient_is_rows)
    }

    /// Emits the rows and the segments of a block with this index.
    fn block_of(&mut self, block: &str, partial: bool, quotient_is_rows: bool) -> (Name, Option<Name>) {
        let block = self.widened(block);
        if !partial {
            return (block, None);
        }
        let (quotient, rest) = self.divide(&block, self.parameters.launch());
        if quotient_is_rows { (quotient, Some(rest)) } else { (rest, Some(quotient)) }
    }

    /// Decodes an index into coordinates of these dimensions.
    pub(in crate::fuse) fn decode(&mut self, index: &str, dimensions: std::ops::Range<usize>) -> Vec<Name> {
        let mut coordinates = Vec::with_capacity(dimensions.len());
        let mut rest = index.to_owned();
        let last = dimensions.end;
        for dimension in dimensions {
            if dimension + 1 == last {
                coordinates.push(rest);
                break;
            }
            let (quotient, coordinate) = self.divide(&rest, self.parameters.divisor(dimension));
            coordinates.push(coordinate);
            rest = quotient;
        }
        coordinates
    }

    /// Emits an operand's offset at coordinates of dimensions starting at `first`.
    pub(in crate::fuse) fn offset(
        &mut self,
        operand: usize,
        coordinates: &[Name],
        first: usize,
    ) -> Option<Name> {
        let mut offset: Option<Name> = None;
        for (dimension, coordinate) in coordinates.iter().enumerate() {
            let stride = self.word(self.parameters.stride(operand, first + dimension));
            offset = Some(match offset {
                None => self.index("mul.lo.u32", "mul.lo.u64", &[coordinate, &stride]),
                Some(sum) => self.times_plus(coordinate, &stride, &sum),
            });
        }
        offset
    }

    /// Emits the address `offset` elements of `size` bytes after a base.
    pub(in crate::fuse) fn address(&mut self, base: &str, offset: Option<&str>, size: usize) -> Name {
        let Some(offset) = offset else { return base.to_owned() };
        let mnemonic = if self.wide { "mad.lo.u64" } else { "mad.wide.s32" };
        self.result(Register::Bits64, mnemonic, &[offset, &size.to_string(), base])
    }

    /// Emits the steps of a program without a register in `known`, and returns the registers of all.
    pub(in crate::fuse) fn evaluate(
        &mut self,
        program: &Program,
        known: &[Name],
        wanted: &[bool],
        first_scalar: usize,
        load: &dyn Fn(u32, u32) -> Name,
    ) -> Vec<Name> {
        let mut names = known.to_vec();
        names.resize(wanted.len(), Name::new());
        self.steps(program, 0..wanted.len(), &mut names, wanted, first_scalar, load);
        names
    }

    /// Emits the needed steps of a range that have no register yet.
    fn steps(
        &mut self,
        program: &Program,
        range: Range<usize>,
        names: &mut [Name],
        wanted: &[bool],
        first_scalar: usize,
        load: &dyn Fn(u32, u32) -> Name,
    ) {
        let mut next = range.start;
        while next < range.end {
            let index = next;
            next += 1;
            let (step, kind) = program.steps[index];
            if let Step::Rare(rare) = step {
                let rare = &program.rares[rare as usize];
                next = rare.result_steps().end;
                let results: Vec<(usize, [Value; 2])> = rare
                    .result_steps()
                    .zip(rare.results.iter().copied())
                    .filter(|(result, _)| wanted[*result] && names[*result].is_empty())
                    .collect();
                if results.is_empty() {
                    continue;
                }
                for (result, [usual, _]) in &results {
                    let usual = names[usual.index()].clone();
                    let (_, kind) = program.steps[*result];
                    names[*result] = self.result(kind.into(), move_of(kind), &[&usual]);
                }
                let end = self.writer.unique();
                let condition = names[rare.condition.index()].clone();
                self.line(format!("@!{condition} bra $usual_{end};"));
                self.steps(program, rare.body.clone(), names, wanted, first_scalar, load);
                for (result, [_, other]) in &results {
                    let (_, kind) = program.steps[*result];
                    let text = format!("{} {}, {};", move_of(kind), names[*result], names[other.index()]);
                    self.line(text);
                }
                self.line(format!("$usual_{end}:"));
                continue;
            }
            if !wanted[index] || !names[index].is_empty() {
                continue;
            }
            names[index] = match step {
                Step::Load { input, part } => load(input, part),
                Step::Parameter { index, part } => {
                    self.writer.scalar(first_scalar as u32 + index, part, kind)
                }
                Step::Constant(bits) => immediate(bits, kind),
                Step::Apply(instruction, operands) => {
                    let name = |operand: Value| names[operand.index()].clone();
                    match self.writer.extreme_or_nan(program, Value(index as u32), name) {
                        Some(result) => result,
                        None => self.writer.apply(instruction, &operands.map(name)),
                    }
                }
                // Emitted with their body.
                Step::Rare(_) | Step::Result { .. } => continue,
                Step::Coordinate { .. } => self.position.number.clone(),
                Step::Group { count, .. } => {
                    let number = self.position.number.clone();
                    self.result(Register::Bits64, "shr.u64", &[&number, &count.trailing_zeros().to_string()])
                }
                Step::Pick { count, words, .. } => {
                    let (ElementPosition { number, element, vector }, count) =
                        (self.position.clone(), count as usize);
                    match vector.is_multiple_of(count) {
                        true => names[words[element % count].index()].clone(),
                        false => {
                            let words = words[..count].iter().map(|word| names[word.index()].clone());
                            self.writer.pick(&number, words.collect())
                        }
                    }
                }
            };
        }
    }

    /// Emits the combination of two values in order.
    pub(in crate::fuse) fn combine(&mut self, program: &Program, left: &Folded, right: &Folded) -> Folded {
        let wanted = self.writer.live(program);
        let side =
            |input: u32, part: u32| if input == 0 { &left[part as usize] } else { &right[part as usize] };
        let names = self.evaluate(program, &[], &wanted, 0, &|input, part| side(input, part).clone());
        program.outputs[0].map(|value| names[value.index()].clone())
    }

    pub(in crate::fuse) fn merged(&mut self, left: &Folded, right: &Folded) -> Folded {
        let compiled = self.compiled;
        self.combine(&compiled.rules.merge, left, right)
    }

    /// Emits the value that a folded value represents.
    pub(in crate::fuse) fn restored(&mut self, value: &Folded) -> Folded {
        let compiled = self.compiled;
        let Some(program) = &compiled.rules.restore else { return value.clone() };
        let wanted = program.live(program.outputs.iter().flatten().copied());
        let names = self.evaluate(program, &[], &wanted, 0, &|_, part| value[part as usize].clone());
        program.outputs[0].map(|value| names[value.index()].clone())
    }

    /// Merges adjacent pairs repeatedly, to one value. A value without a neighbour stays.
    pub(in crate::fuse) fn merge_neighbours(&mut self, mut values: Vec<Folded>) -> Folded {
        while values.len() > 1 {
            let pairs = values.chunks(2).map(|pair| match pair {
                [low, high] => self.merged(low, high),
                alone => alone[0].clone(),
            });
            values = pairs.collect();
        }
        values.swap_remove(0)
    }

    /// Merges the first half with the second repeatedly, to `left` values.
    pub(in crate::fuse) fn halve(&mut self, mut values: Vec<Folded>, left: usize) -> Vec<Folded> {
        while values.len() > left {
            let upper = values.split_off(values.len() / 2);
            values = values.iter().zip(&upper).map(|(low, high)| self.merged(low, high)).collect();
        }
        values
    }

    /// Returns the register kinds of a value's parts.
    pub(in crate::fuse) fn kinds(&self) -> Vec<RegisterKind> {
        self.compiled.rules.kinds.clone()
    }

    /// Selects a value, or the identity if the predicate is false.
    pub(in crate::fuse) fn or_identity(&mut self, value: &Folded, valid: &str) -> Folded {
        self.each_part(|kernel, part, kind| {
            let identity = immediate(kernel.compiled.rules.identity[part], kind);
            let mnemonic = format!("selp.{}", type_of(kind));
            kernel.result(kind.into(), &mnemonic, &[&value[part], &identity, valid])
        })
    }

    /// Returns a value in registers. The value of an expression may be a constant, such as the imaginary part of a real
    /// number, which shuffles do not take.
    pub(in crate::fuse) fn in_registers(&mut self, value: &Folded) -> Folded {
        self.each_part(|kernel, part, kind| match value[part].starts_with('%') {
            true => value[part].clone(),
            false => kernel.result(kind.into(), &format!("mov.{}", type_of(kind)), &[&value[part]]),
        })
    }

    pub(in crate::fuse) fn each_part(
        &mut self,
        mut each: impl FnMut(&mut Self, usize, RegisterKind) -> Name,
    ) -> Folded {
        let kinds = self.kinds();
        let names: Vec<Name> =
            kinds.into_iter().enumerate().map(|(part, kind)| each(self, part, kind)).collect();
        [names[0].clone(), names[names.len() - 1].clone()]
    }

    /// Returns the value of the thread `distance` further in the warp.
    pub(in crate::fuse) fn shuffled(&mut self, value: &Folded, distance: usize) -> Folded {
        self.exchanged(value, "down", &distance.to_string(), WARP as u32)
    }

    /// Returns the value of the partner, the thread whose number differs in the bit `distance`.
    pub(in crate::fuse) fn partners(&mut self, value: &Folded, distance: usize) -> Folded {
        self.exchanged(value, "bfly", &distance.to_string(), WARP as u32)
    }

    /// Returns the value of another thread of the warp, or of its segment of so many lanes.
    pub(in crate::fuse) fn exchanged(
        &mut self,
        value: &Folded,
        mode: &str,
        which: &str,
        segment: u32,
    ) -> Folded {
        let mnemonic = format!("shfl.sync.{mode}.b32");
        // The bits of a lane that stay, and the last lane.
        let clamp = ((WARP as u32 - segment) << 8 | 31).to_string();
        self.each_part(|kernel, part, kind| {
            if bytes(kind) == 4 {
                return kernel.result(kind.into(), &mnemonic, &[&value[part], which, &clamp, "-1"]);
            }
            let halves = [0; 2].map(|_| kernel.writer.register(Register::Bits32));
            kernel.line(format!("mov.b64 {{{}, {}}}, {};", halves[0], halves[1], value[part]));
            let halves = halves.map(|half| kernel.bits32(&mnemonic, &[&half, which, &clamp, "-1"]));
            kernel.result(kind.into(), "mov.b64", &[&format!("{{{}, {}}}", halves[0], halves[1])])
        })
    }

    /// Stores values of adjacent rows, starting at `row`, as partial values of group `group`.
    fn store_partial(&mut self, values: &[Folded], group: &str, row: &str) {
        let rows = self.word(self.parameters.rows());
        let index = self.times_plus(group, &rows, row);
        let first = self.addresses.len() - self.compiled.rules.kinds.len();
        for (part, kind) in self.kinds().into_iter().enumerate() {
            let base = self.base(first + part);
            let address = self.address(&base, Some(&index), bytes(kind));
            let elements: Vec<[Name; 2]> =
                values.iter().map(|value| [value[part].clone(), value[part].clone()]).collect();
            self.writer.store_vector(plain(kind), "", &address, &elements, false);
        }
    }

    /// Stores the results of one value or of adjacent ones in the innermost kept dimension.
    fn store_results(&mut self, values: &[Folded], coordinates: &[Name], operand: usize, vectors: bool) {
        let compiled = self.compiled;
        let (program, dtype) = (&compiled.epilogue.program, compiled.epilogue.outputs[0]);
        let outputs = program.outputs[0];
        let wanted = program.live(outputs.into_iter());
        let has_index = compiled.fold.has_index();
        let elements: Vec<[Name; 2]> = values
            .iter()
            .enumerate()
            .map(|(row, value)| {
                let mut value = self.restored(value);
                if let Some(factor) = self.factors.get(row) {
                    value[1].clone_from(factor);
                }
                let load = |_: u32, part: u32| value[if has_index { 1 } else { part as usize }].clone();
                let names = self.evaluate(program, &[], &wanted, compiled.prologue.scalars.len(), &load);
                outputs.map(|value| names[value.index()].clone())
            })
            .collect();
        let base = self.base(self.addresses.len() - 1);
        let offset = self.offset(operand, coordinates, 0);
        let address = self.address(&base, offset.as_deref(), dtype.size());
        if vectors {
            return self.writer.store_vector(dtype, "", &address, &elements, false);
        }
        for (index, element) in elements.iter().enumerate() {
            let address = match index {
                0 => address.clone(),
                _ => {
                    let stride = self.word(self.parameters.stride(operand, 0));
                    self.address(&address, Some(&stride), index * dtype.size())
                }
            };
            self.writer.store_single(dtype, "", &address, element, false);
        }
    }
}

/// Returns the type suffix of an untyped move, select, load or store of a register kind.
pub(in crate::fuse) fn type_of(kind: RegisterKind) -> &'static str {
    match kind {
        RegisterKind::Predicate | RegisterKind::Bits32 => "b32",
        RegisterKind::Bits64 => "b64",
        RegisterKind::Float32 => "f32",
        RegisterKind::Float64 => "f64",
    }
}

/// Returns a dtype whose elements have the form of a register kind.
fn plain(kind: RegisterKind) -> DType {
    match kind {
        RegisterKind::Predicate | RegisterKind::Bits32 => DType::U32,
        RegisterKind::Bits64 => DType::U64,
        RegisterKind::Float32 => DType::F32,
        RegisterKind::Float64 => DType::F64,
    }
}
