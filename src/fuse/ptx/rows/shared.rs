//! Rows in shared memory: their copy from global memory, the addresses of arrays, and values that stages save there.

use super::element::Access;
use super::once::segments_of_row;
use super::{ROW, RowWriter};
use crate::fuse::plan::reduction::{LANES, SEGMENT, WARP};
use crate::fuse::plan::rows_storage::{RowCopy, RowStorage, SharedArray, SharedRow};
use crate::fuse::ptx::reduction::{KernelWriter, type_of};
use crate::fuse::ptx::{Name, Register, StateSpace, Writer};

/// Bytes of a line, which is the largest asynchronous copy.
const LINE: usize = 16;

/// The offset in shared memory of a thread's access.
#[derive(Default, Clone)]
pub(super) struct Slot {
    /// The address of the segment.
    pub(super) segment: Name,
    /// The number of accesses to the segment before the first of the thread in this round.
    pub(super) index: Name,
}

impl<'a> RowWriter<'a> {
    pub(super) fn shared_row(&self) -> Option<&'a SharedRow> {
        match &self.key.storage {
            RowStorage::Shared(row) | RowStorage::SharedDoubleBuffered(row) => Some(row),
            RowStorage::Registers | RowStorage::Reread => None,
        }
    }

    /// Emits the address of the warp's first segment, and those of the lines that contain the row of an operand.
    pub(super) fn begin_shared(&mut self, warp: &str) {
        let Some(row) = self.shared_row() else { return };
        let kernel = &mut self.kernel;
        let start = kernel.bits32("mov.u32", &[ROW]);
        self.thread.slot = kernel.bits32("mad.lo.u32", &[warp, &row.stride.to_string(), &start]);
        self.misalignments = vec![Name::new(); row.operands.len()];
        for (operand, array) in row.operands.iter().enumerate() {
            if matches!(array.map(|array| array.copy), Some(RowCopy::Lines(_))) {
                let low = kernel.bits32("cvt.u32.u64", &[&self.bases[operand]]);
                self.misalignments[operand] = kernel.bits32("and.b32", &[&low, &(LINE - 1).to_string()]);
            }
        }
    }

    /// Returns the address in shared memory of a thread's access to an array.
    fn array_address(&mut self, array: SharedArray, slot: &Slot, access: usize) -> Name {
        let kernel = &mut self.kernel;
        let width = array.width.to_string();
        let mut address = kernel.bits32("mad.lo.u32", &[&slot.index, &width, &slot.segment]);
        if let RowCopy::Lines(operand) = array.copy {
            address = kernel.bits32("add.u32", &[&address, &self.misalignments[operand]]);
        }
        match array.offset + access * WARP * array.width {
            0 => address,
            bytes => kernel.bits32("add.u32", &[&address, &bytes.to_string()]),
        }
    }

    /// Returns the operands that are copied to shared memory.
    fn copied(&self) -> Vec<(usize, SharedArray)> {
        let mut arrays = self.shared_row().map(arrays_of).unwrap_or_default();
        arrays.retain(|(operand, _)| !self.is_output(*operand));
        arrays
    }

    /// Emits the copies of the warp's segments.
    pub(super) fn begin_copies(&mut self) {
        let Some(row) = self.shared_row() else { return };
        let (key, width) = (self.key, if self.key.wide { "u64" } else { "u32" });
        let arrays = self.copied();
        if arrays.is_empty() {
            return;
        }
        // The one warp of a row has its one segment.
        let warp = if key.warps == 1 { "0" } else { &self.thread.warp };
        let kernel = &mut self.kernel;
        let from = kernel.index("mov.u32", "mov.u64", &[&self.thread.first]);
        let segment = kernel.bits32("mov.u32", &[warp]);
        let at = kernel.bits32("mov.u32", &[&self.thread.slot]);
        let unique = kernel.writer.unique();
        kernel.line(format!("$copy_{unique}:"));
        let slot = Slot { segment: at.clone(), index: self.thread.lane.clone() };
        for &(operand, array) in &arrays {
            match array.copy {
                RowCopy::Lines(_) => self.copy_lines(operand, array, &slot, &segment),
                _ => self.copy_elements(operand, array, &slot, &from),
            }
        }
        let kernel = &mut self.kernel;
        if key.warps > 1 {
            let segments = segments_of_row(kernel);
            let step = key.warps * key.cluster;
            kernel.line(format!("add.{width} {from}, {from}, {};", step * SEGMENT));
            kernel.line(format!("add.u32 {segment}, {segment}, {step};"));
            kernel.line(format!("add.u32 {at}, {at}, {};", key.warps * row.stride));
            let again = kernel.predicate("setp.lt.u32", &[&segment, &segments]);
            kernel.line(format!("@{again} bra $copy_{unique};"));
        }
    }

    /// Emits the wait for the copies. Afterwards each thread may read its elements.
    pub(super) fn end_copies(&mut self) {
        let arrays = self.copied();
        let is = |wanted: fn(RowCopy) -> bool| arrays.iter().any(|(_, array)| wanted(array.copy));
        let kernel = &mut self.kernel;
        if is(|copy| copy != RowCopy::Registers) {
            kernel.line("cp.async.wait_all;");
        }
        if is(|copy| matches!(copy, RowCopy::Lines(_))) {
            kernel.line("bar.warp.sync -1;");
        }
    }

    /// Copies the elements of each thread in a segment.
    pub(super) fn copy_elements(&mut self, operand: usize, array: SharedArray, slot: &Slot, from: &str) {
        let (key, stages) = (self.key, self.stages);
        let dtype = stages.operand_dtype(operand, self.reductions.len());
        let mut loaded = Vec::new();
        for access in 0..key.rounds * key.accesses_per_round {
            let of_thread =
                self.access(from, access / key.accesses_per_round, access % key.accesses_per_round);
            let source = self.address(operand, &of_thread, dtype.size());
            let target = self.array_address(array, slot, access);
            let (guard, fills) = (of_thread.guard().to_owned(), self.fills_missing());
            let writer = &mut self.kernel.writer;
            if array.copy == RowCopy::Registers {
                let load = |writer: &mut Writer<'_>| {
                    writer.load_raw_vector(StateSpace::Global, dtype, &source, key.vector)
                };
                let raw = writer.guarded(&guard, load);
                loaded.push((target, raw, guard));
                continue;
            }
            let (cache, width) = (if array.width == LINE { "cg" } else { "ca" }, array.width);
            let copy = format!("cp.async.{cache}.shared.global [{target}], [{source}], {width}");
            if fills && !guard.is_empty() {
                let read = writer.result(Register::Bits32, "selp.b32", &[&width.to_string(), "0", &guard]);
                writer.line(format!("{copy}, {read};"));
                continue;
            }
            writer.guarded(&guard, |writer| writer.line(format!("{copy};")));
        }
        for (target, raw, guard) in loaded {
            let store = |writer: &mut Writer<'_>| writer.store_raw_vector(dtype, &target, &raw, key.vector);
            self.kernel.writer.guarded(&guard, store);
        }
    }

    /// Copies the lines that contain a segment. Bytes past the row have any value.
    fn copy_lines(&mut self, operand: usize, array: SharedArray, slot: &Slot, segment: &str) {
        let size = array.width / self.key.vector;
        let bytes = SEGMENT * size;
        let kernel = &mut self.kernel;
        let lane = kernel.bits32("mul.lo.u32", &[&self.thread.lane, &LINE.to_string()]);
        let begin = kernel.bits32("mad.lo.u32", &[segment, &bytes.to_string(), &lane]);
        let count = row_in_32_bits(kernel);
        let end = kernel.bits32("mad.lo.u32", &[&count, &size.to_string(), &self.misalignments[operand]]);
        let rest = kernel.bits32("sub.u32", &[&end, &begin]);
        let base = kernel.result(Register::Bits64, "and.b64", &[&self.bases[operand], "-16"]);
        let begin = kernel.result(Register::Bits64, "cvt.u64.u32", &[&begin]);
        let source = kernel.result(Register::Bits64, "add.u64", &[&base, &begin]);
        let target = kernel.bits32("add.u32", &[&slot.segment, &lane]);
        // One more line, because the first may begin before the segment.
        let lines = bytes / LINE + 1;
        for first in (0..lines).step_by(WARP) {
            let last = (first * LINE + LINE - 1).to_string();
            let mut whole = kernel.predicate("setp.lt.s32", &[&last, &rest]);
            if lines - first < WARP {
                let inside = (lines - first).to_string();
                let inside = kernel.predicate("setp.lt.u32", &[&self.thread.lane, &inside]);
                whole = kernel.predicate("and.pred", &[&whole, &inside]);
            }
            let skipped = first * LINE;
            kernel.line(format!(
                "@{whole} cp.async.cg.shared.global [{target}+{}], [{source}+{skipped}], {LINE};",
                array.offset + skipped
            ));
        }
        self.copy_last_line((size, lines), (&base, &end), (slot, array.offset), segment);
    }

    /// Copies the elements of a row's last line, if it is not whole and one of the `lines` of the segment. No copy reads past
    /// the end of the row, which may be that of the memory.
    fn copy_last_line(
        &mut self,
        (size, lines): (usize, usize),
        (base, end): (&str, &str),
        (slot, offset): (&Slot, usize),
        segment: &str,
    ) {
        let kernel = &mut self.kernel;
        let whole = kernel.bits32("and.b32", &[end, "-16"]);
        let rest = kernel.bits32("and.b32", &[end, &(LINE - 1).to_string()]);
        let before = kernel.bits32("mul.lo.u32", &[segment, &(SEGMENT * size).to_string()]);
        let at = kernel.bits32("sub.u32", &[&whole, &before]);
        let lane_offset = kernel.bits32("mul.lo.u32", &[&self.thread.lane, &size.to_string()]);
        // As unsigned numbers, lines before the segment are large.
        let is_here = kernel.predicate("setp.lt.u32", &[&at, &(lines * LINE).to_string()]);
        let exists = kernel.predicate("setp.lt.u32", &[&lane_offset, &rest]);
        let guard = kernel.predicate("and.pred", &[&is_here, &exists]);
        let from = kernel.bits32("add.u32", &[&whole, &lane_offset]);
        let from = kernel.result(Register::Bits64, "cvt.u64.u32", &[&from]);
        let from = kernel.result(Register::Bits64, "add.u64", &[base, &from]);
        let to = kernel.bits32("add.u32", &[&slot.segment, &at]);
        let to = kernel.bits32("add.u32", &[&to, &lane_offset]);
        let (kind, register) = match size {
            8 => ("b64", Register::Bits64),
            4 => ("b32", Register::Bits32),
            2 => ("u16", Register::Bits32),
            _ => ("u8", Register::Bits32),
        };
        let element = kernel.writer.register(register);
        kernel.line(format!("@{guard} ld.global.{kind} {element}, [{from}];"));
        kernel.line(format!("@{guard} st.shared.{kind} [{to}+{offset}], {element};"));
    }

    fn is_output(&self, operand: usize) -> bool {
        operand >= self.operand_of.iter().flatten().count()
    }

    /// Returns the address in shared memory of an access to an operand that is there.
    pub(super) fn address_in_shared(&mut self, operand: usize, access: usize) -> Option<Name> {
        let array = self.shared_row()?.operand(operand)?;
        let slot = self.slot.clone();
        Some(self.array_address(array, &slot, access))
    }

    /// Emits the copies of a segment's outputs from shared to global memory, by whole lines where the row has all of their
    /// elements. `segment` is its number in the row.
    pub(super) fn copy_outputs(&mut self, segment: &str) {
        let Some(row) = self.shared_row() else { return };
        let mut arrays = arrays_of(row);
        arrays.retain(|(operand, _)| self.is_output(*operand));
        if arrays.is_empty() {
            return;
        }
        self.kernel.line("bar.warp.sync -1;");
        for (operand, array) in arrays {
            self.copy_output(operand, array, segment);
        }
    }

    fn copy_output(&mut self, operand: usize, array: SharedArray, segment: &str) {
        let bytes = SEGMENT * array.width;
        let (lane, phase) = (self.thread.lane.clone(), self.misalignments[operand].clone());
        let (inside, slot) = (self.thread.inside.clone(), self.slot.segment.clone());
        let kernel = &mut self.kernel;
        let begin = kernel.bits32("mul.lo.u32", &[segment, &bytes.to_string()]);
        let count = row_in_32_bits(kernel);
        let count = kernel.bits32("mul.lo.u32", &[&count, &array.width.to_string()]);
        let rest = kernel.bits32("sub.u32", &[&count, &begin]);
        // A warp may have no segment.
        let rest = kernel.bits32("max.s32", &[&rest, "0"]);
        let rest = kernel.bits32("min.s32", &[&rest, &bytes.to_string()]);
        // Bytes of the array: the row has those from `phase` to `end`.
        let end = kernel.bits32("add.u32", &[&phase, &rest]);
        let base = kernel.result(Register::Bits64, "and.b64", &[&self.bases[operand], "-16"]);
        let begin = kernel.result(Register::Bits64, "cvt.u64.u32", &[&begin]);
        let base = kernel.result(Register::Bits64, "add.u64", &[&base, &begin]);
        let first = kernel.bits32("mul.lo.u32", &[&lane, &LINE.to_string()]);
        let guarded = |kernel: &mut KernelWriter<'a>, mut guard: Name| {
            if !inside.is_empty() {
                guard = kernel.predicate("and.pred", &[&guard, &inside]);
            }
            guard
        };
        let lines = bytes / LINE + 1;
        for skipped in (0..lines).step_by(WARP) {
            let at = kernel.bits32("add.u32", &[&first, &(skipped * LINE).to_string()]);
            let until = kernel.bits32("add.u32", &[&at, &LINE.to_string()]);
            let begins = kernel.predicate("setp.le.u32", &[&phase, &at]);
            let ends = kernel.predicate("setp.le.u32", &[&until, &end]);
            let is_whole = kernel.predicate("and.pred", &[&begins, &ends]);
            let guard = guarded(kernel, is_whole);
            let from = kernel.bits32("add.u32", &[&slot, &at]);
            let offset = kernel.result(Register::Bits64, "cvt.u64.u32", &[&at]);
            let to = kernel.result(Register::Bits64, "add.u64", &[&base, &offset]);
            let words: Vec<Name> = (0..4).map(|_| kernel.writer.register(Register::Bits32)).collect();
            let words = words.join(", ");
            kernel.line(format!("@{guard} ld.shared.v4.b32 {{{words}}}, [{from}+{}];", array.offset));
            kernel.line(format!("@{guard} st.global.v4.b32 [{to}], {{{words}}};"));
        }
        // Eight threads have the elements before the first whole line, and eight those after the last one.
        let last = kernel.bits32("and.b32", &[&end, "-16"]);
        let past = kernel.bits32("add.u32", &[&phase, &(LINE - 1).to_string()]);
        let whole = kernel.bits32("and.b32", &[&past, "-16"]);
        let is_first = kernel.predicate("setp.lt.u32", &[&lane, "8"]);
        let line = kernel.bits32("selp.b32", &["0", &last, &is_first]);
        let lane_in_line = kernel.bits32("and.b32", &[&lane, "7"]);
        let at = kernel.bits32("mad.lo.u32", &[&lane_in_line, &array.width.to_string(), &line]);
        let least = kernel.bits32("selp.b32", &[&phase, &whole, &is_first]);
        let most = kernel.bits32("min.u32", &[&whole, &end]);
        let most = kernel.bits32("selp.b32", &[&most, &end, &is_first]);
        let begins = kernel.predicate("setp.le.u32", &[&least, &at]);
        let ends = kernel.predicate("setp.lt.u32", &[&at, &most]);
        let exists = kernel.predicate("and.pred", &[&begins, &ends]);
        let takes_part = kernel.predicate("setp.lt.u32", &[&lane, "16"]);
        let exists = kernel.predicate("and.pred", &[&exists, &takes_part]);
        let guard = guarded(kernel, exists);
        let from = kernel.bits32("add.u32", &[&slot, &at]);
        let offset = kernel.result(Register::Bits64, "cvt.u64.u32", &[&at]);
        let to = kernel.result(Register::Bits64, "add.u64", &[&base, &offset]);
        let element = kernel.writer.register(Register::Bits32);
        kernel.line(format!("@{guard} ld.shared.u16 {element}, [{from}+{}];", array.offset));
        kernel.line(format!("@{guard} st.global.u16 [{to}], {element};"));
    }

    /// Loads the values that an earlier stage saved for the elements of an access.
    pub(super) fn load_saved(&mut self, access: &mut Access, wanted: &[bool]) {
        let Some(row) = self.shared_row() else { return };
        let slot = self.slot.clone();
        for (step, arrays) in &row.saved {
            if !self.has[*step] || !wanted[*step] {
                continue;
            }
            let kind = self.stages.expression.program.steps[*step].1;
            let each = self.key.vector / arrays.len();
            for (chunk, &array) in arrays.iter().enumerate() {
                let address = self.array_address(array, &slot, access.number);
                let names: Vec<Name> =
                    (0..each).map(|_| self.kernel.writer.register(Register::from(kind))).collect();
                let (vector, list) = vector_of(&names);
                self.kernel.line(format!("ld.shared{vector}.{} {list}, [{address}];", type_of(kind)));
                for (element, name) in names.into_iter().enumerate() {
                    access.saved[chunk * each + element].push((*step, name));
                }
            }
        }
    }

    /// Stores the values of a stage that later ones need.
    pub(super) fn store_saved(&mut self, stage: usize, access: &Access, all: &[Vec<Name>]) {
        let Some(row) = self.shared_row() else { return };
        let slot = self.slot.clone();
        for (step, arrays) in &row.saved {
            if !self.saved[stage][*step] || self.has[*step] {
                continue;
            }
            let kind = self.stages.expression.program.steps[*step].1;
            let each = self.key.vector / arrays.len();
            for (elements, &array) in all.chunks(each).zip(arrays) {
                let address = self.array_address(array, &slot, access.number);
                let names: Vec<Name> = elements.iter().map(|names| names[*step].clone()).collect();
                let (vector, list) = vector_of(&names);
                self.kernel.line(format!("st.shared{vector}.{} [{address}], {list};", type_of(kind)));
            }
        }
    }

    /// Returns the number of a thread's first access to a segment in a round; in the first round it is `thread`.
    pub(super) fn index_in_segment(&mut self, round: &str, thread: &str) -> Name {
        let each = LANES / self.key.vector;
        self.kernel.bits32("mad.lo.u32", &[round, &each.to_string(), thread])
    }
}

/// Emits the number of elements of a row.
fn row_in_32_bits(kernel: &mut KernelWriter<'_>) -> Name {
    let count = kernel.word(kernel.parameters.row());
    match kernel.wide {
        true => kernel.bits32("cvt.u32.u64", &[&count]),
        false => count,
    }
}

/// Returns the operands with arrays.
pub(super) fn arrays_of(row: &SharedRow) -> Vec<(usize, SharedArray)> {
    let arrays = row.operands.iter().enumerate();
    arrays.filter_map(|(operand, array)| Some((operand, (*array)?))).collect()
}

fn vector_of(names: &[Name]) -> (String, String) {
    match names {
        [name] => (String::new(), name.clone()),
        names => (format!(".v{}", names.len()), format!("{{{}}}", names.join(", "))),
    }
}
