//! Kernels that loop over the rows of a chunk, and sum outputs over them in registers.
//!
//! A team of threads (a warp or a part of it, a block, a cluster, or the threads of some columns) takes a chunk of
//! consecutive rows, computes one after the other, and stores the sums of its columns to the chunk's row of a workspace.
//! A cluster copies the next row to shared memory meanwhile (`double_buffered`), because its barriers take longer.
//!
//! Invariants: threads that share a shuffle or a barrier make equally many iterations. A team without a chunk repeats
//! the last one and stores nothing. Slots of shared memory are written once an iteration, and the barrier of another stage or
//! another row separates their reads from the next writes.

use super::{RowWriter, Thread, write_sums, write_with_sums};
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::plan::compiled_rows::CompiledRows;
use crate::fuse::plan::reduction::{SEGMENT, WARP};
use crate::fuse::plan::rows_key::{RowKey, RowPlan};
use crate::fuse::plan::rows_sums::{CHUNK, CompiledSums, SumKey};
use crate::fuse::ptx::reduction::type_of;
use crate::fuse::ptx::{Name, immediate};
use crate::types::DType;

/// The sums over groups of a kernel.
#[derive(Default)]
pub(super) struct Sums {
    /// The first output that is summed; past all outputs without sums.
    pub(super) first: usize,
    /// By sum, the registers of each access of a thread and each of its elements.
    registers: Vec<Vec<Name>>,
    /// The accesses of an iteration that have been stored.
    pub(super) accesses: usize,
    /// The predicate that the row of an iteration exists, if that differs among threads of a warp.
    exists: Name,
}

impl Sums {
    /// Creates the sums of the outputs from `first` on.
    pub(super) fn new(first: usize) -> Sums {
        Sums { first, ..Sums::default() }
    }
}

fn kind_of(dtype: DType) -> RegisterKind {
    if dtype == DType::F64 { RegisterKind::Float64 } else { RegisterKind::Float32 }
}

impl RowWriter<'_> {
    /// Emits the loop over the rows of a chunk. `is_tiled` if blocks take columns of a row, rather than whole rows.
    pub(super) fn chunks(&mut self, is_tiled: bool) {
        let (key, kernel) = (self.key, &mut self.kernel);
        let shift = |count: usize| count.trailing_zeros().to_string();
        let index = kernel.bits32("mov.u32", &["%tid.x"]);
        let block = kernel.bits32("mov.u32", &["%ctaid.x"]);
        let block = kernel.widened(&block);
        let lane = kernel.bits32("and.b32", &[&index, &(key.threads - 1).to_string()]);
        let above = kernel.bits32("shr.u32", &[&index, &shift(key.threads)]);
        let leads = kernel.predicate("setp.eq.u32", &[&lane, "0"]);
        let wide_lane = kernel.widened(&lane);
        let mut first = kernel.index("mul.lo.u32", "mul.lo.u64", &[&wide_lane, &key.vector.to_string()]);
        let rows = kernel.word(kernel.parameters.rows());
        let chunks = kernel.plus(&rows, CHUNK - 1);
        let chunks = kernel.index("shr.u32", "shr.u64", &[&chunks, &shift(CHUNK)]);
        let last_chunk = kernel.index("sub.u32", "sub.u64", &[&chunks, "1"]);
        let (mut chunk, mut warp) = (block.clone(), Name::new());
        // The blocks of a cluster share a chunk.
        let mut rank = Name::new();
        if key.cluster > 1 {
            rank = kernel.index("and.b32", "and.b64", &[&block, &(key.cluster - 1).to_string()]);
            chunk = kernel.index("shr.u32", "shr.u64", &[&block, &shift(key.cluster)]);
        }
        let in_block = above.clone();
        if is_tiled {
            let (quotient, rest) = kernel.divide(&block, kernel.parameters.launch());
            let of_block = (key.threads * key.vector).to_string();
            first = kernel.times_plus(&rest, &of_block, &first);
            chunk = quotient;
        }
        // Threads of a warp may have chunks of different lengths.
        let varies = !is_tiled && key.rows_per_block > 1;
        let mut inside = Name::new();
        let mut shared = chunk.clone();
        if key.warps > 1 {
            let mut segment = kernel.widened(&above);
            warp = above;
            if !rank.is_empty() {
                segment = kernel.times_plus(&rank, &key.warps.to_string(), &segment);
                warp = match key.wide {
                    true => kernel.bits32("cvt.u32.u64", &[&segment]),
                    false => segment.clone(),
                };
            }
            first = kernel.times_plus(&segment, &SEGMENT.to_string(), &first);
        } else if key.rows_per_block > 1 {
            let across = kernel.widened(&above);
            chunk = kernel.times_plus(&chunk, &key.rows_per_block.to_string(), &across);
            inside = kernel.is_below(&chunk, &chunks);
            let taken = kernel.lesser(&chunk, &last_chunk);
            // The block is one warp, whose first chunk is the longest.
            shared = match varies {
                true => kernel.index("mul.lo.u32", "mul.lo.u64", &[&block, &key.rows_per_block.to_string()]),
                false => taken.clone(),
            };
            if !varies {
                chunk = taken;
            }
        }
        debug_assert!(!varies || key.threads * key.rows_per_block == WARP);
        let before = kernel.index("shl.b32", "shl.b64", &[&shared, &shift(CHUNK)]);
        let left = kernel.index("sub.u32", "sub.u64", &[&rows, &before]);
        let left = kernel.lesser(&left, &CHUNK.to_string());
        let start = kernel.index("shl.b32", "shl.b64", &[&chunk, &shift(CHUNK)]);
        let row = kernel.index("mov.u32", "mov.u64", &[&start]);
        let left = kernel.index("mov.u32", "mov.u64", &[&left]);
        self.thread = Thread { lane, warp, first: first.clone(), inside, leads, ..Thread::default() };
        self.begin_rows();
        self.arrive();
        let buffers = self.begin_ahead(&in_block, &row);
        self.clear_sums();
        self.wait();
        let width = if key.wide { "u64" } else { "u32" };
        let unique = self.kernel.writer.unique();
        self.kernel.line(format!("$row_{unique}:"));
        let mut item = row.clone();
        if varies {
            let kernel = &mut self.kernel;
            let exists = kernel.is_below(&row, &rows);
            let last = kernel.index("sub.u32", "sub.u64", &[&rows, "1"]);
            item = kernel.lesser(&row, &last);
            self.thread.inside = exists.clone();
            self.sums.exists = exists;
        }
        if let Some(buffers) = &buffers {
            self.next_ahead(buffers, &row, &left);
        }
        self.row(&item);
        self.held();
        if let Some(buffers) = &buffers {
            self.end_ahead(buffers);
        }
        self.end_row();
        self.kernel.line(format!("add.{width} {row}, {row}, 1;"));
        self.kernel.line(format!("sub.{width} {left}, {left}, 1;"));
        let again = self.kernel.predicate(&format!("setp.ne.{width}"), &[&left, "0"]);
        self.kernel.line(format!("@{again} bra $row_{unique};"));
        if varies {
            self.thread.inside = self.kernel.is_below(&chunk, &chunks);
        }
        self.store_sums(&first, &chunk);
    }

    /// Emits the registers of the sums, which begin with -0.
    fn clear_sums(&mut self) {
        let key = self.key;
        let count = key.rounds * key.accesses_per_round * key.vector;
        for output in self.sums.first..self.outputs.len() {
            let kind = kind_of(self.outputs[output].dtype);
            let bits = if kind == RegisterKind::Float64 { 1 << 63 } else { 1 << 31 };
            let (zero, mnemonic) = (immediate(bits, kind), format!("mov.{}", type_of(kind)));
            let registers = (0..count).map(|_| self.kernel.result(kind.into(), &mnemonic, &[&zero]));
            let registers = registers.collect();
            self.sums.registers.push(registers);
        }
    }

    /// Adds the elements of an access to the sums of an output.
    pub(super) fn add_to_sum(&mut self, at: usize, output: usize, all: &[Vec<Name>]) {
        let kind = kind_of(self.outputs[at].dtype);
        let value = self.output(output)[0].0;
        let bits = if kind == RegisterKind::Float64 { 1 << 63 } else { 1 << 31 };
        for (element, names) in all.iter().enumerate() {
            let slot = self.sums.accesses * self.key.vector + element;
            let sum = self.sums.registers[at - self.sums.first][slot].clone();
            let mut term = names[value.index()].clone();
            if !self.sums.exists.is_empty() {
                let (mnemonic, exists) = (format!("selp.{}", type_of(kind)), self.sums.exists.clone());
                term = self.kernel.result(kind.into(), &mnemonic, &[&term, &immediate(bits, kind), &exists]);
            }
            self.kernel.line(format!("add.rn.{} {sum}, {sum}, {term};", type_of(kind)));
        }
    }

    /// Stores the sums of a chunk to its row of the workspace.
    fn store_sums(&mut self, first: &str, chunk: &str) {
        let key = self.key;
        let inputs = self.operand_of.iter().flatten().count();
        let row = self.kernel.word(self.kernel.parameters.row());
        let schedule =
            (0..key.rounds).flat_map(|round| (0..key.accesses_per_round).map(move |group| (round, group)));
        for (access_index, (round, group)) in schedule.enumerate() {
            let access = self.access(first, round, group);
            let guard = match (self.thread.inside.clone(), access.valid.clone()) {
                (inside, valid) if inside.is_empty() && valid.is_empty() => String::new(),
                (one, other) if one.is_empty() || other.is_empty() => format!("@{one}{other} "),
                (inside, valid) => format!("@{} ", self.kernel.predicate("and.pred", &[&inside, &valid])),
            };
            let index = self.kernel.times_plus(chunk, &row, &access.index);
            for output in self.sums.first..self.outputs.len() {
                let dtype = self.outputs[output].dtype;
                let registers = &self.sums.registers[output - self.sums.first][access_index * key.vector..];
                let elements: Vec<[Name; 2]> =
                    registers[..key.vector].iter().map(|name| [name.clone(), name.clone()]).collect();
                let base = self.kernel.base(inputs + output);
                let address = self.kernel.address(&base, Some(&index), dtype.size());
                match key.vector {
                    1 => self.kernel.writer.store_single(dtype, &guard, &address, &elements[0], false),
                    _ => self.kernel.writer.store_vector(dtype, &guard, &address, &elements, false),
                }
            }
        }
    }
}

impl CompiledSums {
    /// Returns the text of a kernel.
    pub(in crate::fuse) fn text(&self, key: &SumKey, plan: &RowPlan) -> String {
        match key {
            SumKey::Fused(key) => match &self.fused {
                Some(program) => program.text_of_sums(key, plan, self.own.len()),
                None => String::new(),
            },
            SumKey::Terms(terms, key) => match &self.terms[*terms].stages {
                Some(stages) => {
                    let sums = self.terms[*terms].sums();
                    let fold = &*self.folds[sums.start];
                    write_sums(stages, &self.outputs[sums], fold, key, plan)
                }
                None => String::new(),
            },
            SumKey::Copy(sum, key) => {
                let (stages, fold) = (&self.copies[*sum], &*self.folds[*sum]);
                write_sums(stages, &self.outputs[*sum..=*sum], fold, key, plan)
            }
        }
    }
}

impl CompiledRows {
    /// Returns the text of the kernel of a program whose outputs from `first` on are summed over groups.
    fn text_of_sums(&self, key: &RowKey, plan: &RowPlan, first: usize) -> String {
        match &self.stages {
            Ok(stages) => write_with_sums(self, stages, key, plan, first),
            Err(_) => String::new(),
        }
    }
}
