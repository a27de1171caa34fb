//! The second pass of [`Fold::SumOfSquares`](crate::fuse::Fold::SumOfSquares), for rows whose sum has left the range.
//!
//! A kernel multiplies elements by a factor before it squares them: 1 in the first pass. A kernel with whole rows jumps back and
//! takes other factors, if a row of its block needs one: threads that store a sum put its code in shared memory, and one barrier
//! with a vote tells the others. If a row takes several launches, the last one stores the code of each row in scratch memory, and
//! the same launches follow once more. They end at once where all codes are 0, which a word before the codes tells: the first launch
//! clears it, and threads that store another code set it. So a captured run is right whatever its elements.
//!
//! | code | sum of the first pass | factor |
//! |---|---|---|
//! | 0 | in the range, or NaN | 1 |
//! | 1 | infinite | 2^-90, of f64 2^-600 |
//! | 2 | below 2^-100, of f64 2^-960 | 2^90, of f64 2^600 |

use super::{Folded, KernelWriter, type_of};
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::language::fold::RescalingBits;
use crate::fuse::plan::reduction::AGAIN_BLOCKS;
use crate::fuse::ptx::{Name, immediate};

/// The passes over the rows of a block.
pub(super) struct Passes {
    label: String,
    /// 0 in the first pass, 1 in the second one.
    second: Name,
    /// The predicate that the thread stores a row with a code.
    rare: Name,
    /// The address in shared memory of the codes of the thread's rows.
    codes: Name,
}

/// A loop over the blocks of the first pass.
pub(super) struct Blocks {
    label: String,
    next: String,
    pub(super) block: Name,
}

impl KernelWriter<'_> {
    fn sum_kind(&self) -> RegisterKind {
        self.compiled.rules.kinds[0]
    }

    /// Emits factors of 1 for the rows of a thread.
    pub(super) fn unit_factors(&mut self, rows: usize) {
        let kind = self.sum_kind();
        let (one, mnemonic) =
            (immediate(RescalingBits::new(kind).one, kind), format!("mov.{}", type_of(kind)));
        self.factors = (0..rows).map(|_| self.result(kind.into(), &mnemonic, &[&one])).collect();
    }

    /// Emits the beginning of the passes over `rows` rows of each thread. `slot` is the index of the first one in the block.
    pub(super) fn begin_passes(&mut self, slot: &str, rows: usize, of_block: usize) -> Passes {
        self.unit_factors(rows);
        let offset = self.reserve(4 * of_block);
        let start = self.bits32("mov.u32", &["shared"]);
        let start = self.bits32("add.u32", &[&start, &offset.to_string()]);
        let codes = self.bits32("mad.lo.u32", &[slot, &(4 * rows).to_string(), &start]);
        let second = self.bits32("mov.u32", &["0"]);
        let label = format!("$pass_{}", self.writer.unique());
        self.line(format!("{label}:"));
        let rare = self.bits32("mov.u32", &["0"]);
        Passes { label, second, rare, codes }
    }

    /// Emits the code of a sum.
    fn code(&mut self, sum: &str) -> Name {
        let kind = self.sum_kind();
        let bits = RescalingBits::new(kind);
        let (infinity, least) = (immediate(bits.infinity, kind), immediate(bits.least, kind));
        let is_infinite = self.predicate(&format!("setp.eq.{}", type_of(kind)), &[sum, &infinity]);
        let is_small = self.predicate(&format!("setp.lt.{}", type_of(kind)), &[sum, &least]);
        let code = self.bits32("selp.b32", &["2", "0", &is_small]);
        self.bits32("selp.b32", &["1", &code, &is_infinite])
    }

    /// Stores the codes of the rows whose sums a thread has.
    pub(super) fn put_codes(&mut self, passes: &Passes, values: &[Folded]) {
        // Threads still read the codes in the second pass.
        let is_first = self.predicate("setp.eq.u32", &[&passes.second, "0"]);
        for (row, value) in values.iter().enumerate() {
            let code = self.code(&value[0]);
            self.line(format!("@{is_first} st.shared.b32 [{}+{}], {code};", passes.codes, 4 * row));
            self.line(format!("or.b32 {0}, {0}, {code};", passes.rare));
        }
    }

    /// Emits the jump to the second pass, if a row of the block needs one.
    pub(super) fn again(&mut self, passes: &Passes) {
        let is_second = self.predicate("setp.ne.u32", &[&passes.second, "0"]);
        self.line(format!("@{is_second} bra $end;"));
        let is_rare = self.predicate("setp.ne.u32", &[&passes.rare, "0"]);
        let any = self.predicate("bar.red.or.pred", &["0", &is_rare]);
        self.line(format!("@!{any} bra $end;"));
        self.line(format!("mov.u32 {}, 1;", passes.second));
        for row in 0..self.factors.len() {
            let source = format!("[{}+{}]", passes.codes, 4 * row);
            let code = self.bits32("ld.shared.b32", &[&source]);
            self.set_factor(row, &code);
        }
        self.line(format!("bra {};", passes.label));
        self.line("$end:");
    }

    fn set_factor(&mut self, row: usize, code: &str) {
        let (kind, factor) = (self.sum_kind(), self.factors[row].clone());
        let bits = RescalingBits::new(kind);
        for (at, bits) in bits.factors.into_iter().enumerate() {
            let is_code = self.predicate("setp.eq.u32", &[code, &(at + 1).to_string()]);
            self.line(format!("@{is_code} mov.{} {factor}, {};", type_of(kind), immediate(bits, kind)));
        }
    }

    /// Emits the address of the word that tells whether a row has a code.
    fn any_code(&mut self) -> Name {
        let source = format!("[{}]", self.codes.clone().unwrap_or_default());
        self.result(super::Register::Bits64, "ld.param.u64", &[&source])
    }

    /// Emits the beginning of a run: no row has a code.
    pub(super) fn clear_codes(&mut self) {
        let thread = self.bits32("mov.u32", &["%tid.x"]);
        let block = self.bits32("mov.u32", &["%ctaid.x"]);
        let either = self.bits32("or.b32", &[&thread, &block]);
        let is_first = self.predicate("setp.eq.u32", &[&either, "0"]);
        let (any, none) = (self.any_code(), self.bits32("mov.u32", &["0"]));
        self.line(format!("@{is_first} st.global.b32 [{any}], {none};"));
    }

    /// Emits the end of a launch of the second pass if no row has a code.
    pub(super) fn return_without_codes(&mut self) {
        let any = self.any_code();
        let any = self.bits32("ld.global.b32", &[&format!("[{any}]")]);
        let is_usual = self.predicate("setp.eq.u32", &[&any, "0"]);
        self.line(format!("@{is_usual} ret;"));
    }

    /// Emits the load of a row's code from scratch memory.
    fn load_code(&mut self, row: &str, next: usize) -> Name {
        let address = self.code_address(row);
        self.bits32("ld.global.b32", &[&format!("[{address}+{}]", 4 + 4 * next)])
    }

    fn code_address(&mut self, row: &str) -> Name {
        let base = self.any_code();
        self.address(&base, Some(row), 4)
    }

    /// Stores the code of a row whose sum this is, for the launches of a second pass.
    pub(super) fn store_code(&mut self, row: &str, value: &Folded) {
        self.unit_factors(1);
        let (code, address) = (self.code(&value[0]), self.code_address(row));
        self.line(format!("st.global.b32 [{address}+4], {code};"));
        let is_rare = self.predicate("setp.ne.u32", &[&code, "0"]);
        let any = self.any_code();
        self.line(format!("@{is_rare} st.global.b32 [{any}], {code};"));
    }

    /// Emits the end of a thread in the second pass over a row without a code, and the factor of others.
    pub(super) fn take_code(&mut self, row: &str) {
        self.unit_factors(1);
        let code = self.load_code(row, 0);
        let is_usual = self.predicate("setp.eq.u32", &[&code, "0"]);
        self.line(format!("@{is_usual} bra $exit;"));
        self.set_factor(0, &code);
    }

    /// Begins a loop over the blocks of the first pass.
    pub(super) fn begin_blocks(&mut self) -> Blocks {
        let block = self.bits32("mov.u32", &["%ctaid.x"]);
        let unique = self.writer.unique();
        let (label, next) = (format!("$block_{unique}"), format!("$next_{unique}"));
        self.line(format!("{label}:"));
        Blocks { label, next, block }
    }

    /// Emits the factors of the rows of a thread from `row` on, and the jump to the next block if no row of this one has a code.
    pub(super) fn take_codes(&mut self, blocks: &Blocks, row: &str, rows: usize) {
        self.unit_factors(rows);
        let any = self.bits32("mov.u32", &["0"]);
        for next in 0..rows {
            let code = self.load_code(row, next);
            self.line(format!("or.b32 {any}, {any}, {code};"));
            self.set_factor(next, &code);
        }
        let is_rare = self.predicate("setp.ne.u32", &[&any, "0"]);
        // It also separates the reads of shared memory for one block from the writes for the next one.
        let any = self.predicate("bar.red.or.pred", &["0", &is_rare]);
        self.line(format!("@!{any} bra {};", blocks.next));
    }

    /// Ends a loop over blocks.
    pub(super) fn end_blocks(&mut self, blocks: &Blocks) {
        let Blocks { label, next, block } = blocks;
        self.line(format!("{next}:"));
        self.line(format!("add.u32 {block}, {block}, {AGAIN_BLOCKS};"));
        let total = self.bits32("ld.param.u32", &[&format!("[block+{}]", self.parameters.blocks())]);
        let more = self.predicate("setp.lt.u32", &[block, &total]);
        self.line(format!("@{more} bra {label};"));
    }
}
