//! Transposition of tiles through shared memory.
//!
//! All global loads precede the first store to shared memory, so that they are in flight together. Loads past
//! the edges of the space repeat the last element and need no guard.
//!
//! Invariant: the block has read its whole tile before any of its threads stores, so an output may be an
//! input with the same layout.

use super::index::Indexing;
use super::memory::StateSpace;
use super::{Name, Register, Writer};
use crate::fuse::ir::program::parts;
use crate::fuse::plan::elementwise::{AccessPattern, BLOCK, Iteration};
use crate::fuse::plan::tile::{Access, Tile, chunk, rows_together};

/// The name of the block's shared memory.
const SHARED: &str = "staged";
/// The instruction count up to which rows are unrolled; more rows become a loop.
const MAX_UNROLLED: usize = 320;

/// The rows of a tile that a thread computes.
pub(super) struct Rows {
    /// The thread's first column within the tile.
    pub(super) column: Name,
    /// For each row of an iteration, the row within the tile.
    pub(super) rows: Vec<Name>,
}

/// The loaded elements of a staged input and their positions in the tile.
struct Loaded {
    operand: usize,
    access: Access,
    /// Each access: its column in the tile and its registers.
    accesses: Vec<(Name, Vec<Name>)>,
    row: Name,
}

impl Writer<'_> {
    /// Returns the rows of a tile that a thread computes in an iteration, and the number of iterations.
    pub(super) fn rows_of_tile(&self) -> (u32, u32) {
        let Iteration::Tiles(tile) = self.key.iteration else { return (1, 1) };
        let passes = tile.width * tile.height / BLOCK / self.key.lanes;
        let lanes = self.program.steps.len() * self.key.lanes as usize;
        let mut at_once = passes;
        while at_once > 1 && lanes * at_once as usize > MAX_UNROLLED {
            at_once /= 2;
        }
        (at_once, passes / at_once)
    }

    /// Returns the inputs in shared memory, with their access and offset.
    fn staged(&self, tile: Tile) -> Vec<(usize, Access, usize)> {
        let mut next = 0;
        let mut staged = Vec::new();
        for (operand, class) in self.key.access_patterns.iter().enumerate() {
            if let AccessPattern::Staged(access) = *class {
                staged.push((operand, access, next));
                next += tile.bytes(self.dtypes[operand].size());
            }
        }
        staged
    }

    fn of(&mut self, mnemonic: &str, operands: &[&str]) -> Name {
        self.result(Register::Bits32, mnemonic, operands)
    }

    fn plus(&mut self, name: &str, offset: u32) -> Name {
        if offset == 0 { name.to_owned() } else { self.of("add.u32", &[name, &offset.to_string()]) }
    }

    /// Emits `name · factor` for a power of two.
    fn times(&mut self, name: &str, factor: u32) -> Name {
        match factor {
            1 => name.to_owned(),
            _ => self.of("shl.b32", &[name, &factor.trailing_zeros().to_string()]),
        }
    }

    /// Emits remainder and quotient by a power of two.
    fn divide_by_power(&mut self, name: &str, size: u32) -> (Name, Name) {
        let remainder = self.of("and.b32", &[name, &(size - 1).to_string()]);
        (remainder, self.of("shr.u32", &[name, &size.trailing_zeros().to_string()]))
    }

    /// Stages the block's tile and computes the elements of the thread.
    pub(super) fn tiles(&mut self, indexing: &mut Indexing, block: &str, thread: &str, tile: Tile) {
        let rank = self.key.rank;
        let (rest, across) = self.divide(indexing, block, rank);
        let (planes, down) = self.divide(indexing, &rest, rank + 1);
        let origin = [self.times(&across, tile.width), self.times(&down, tile.height)];
        let outer = if rank > 2 { self.decode(indexing, &planes, 2, rank) } else { Vec::new() };
        self.stage(indexing, thread, tile, &origin, &outer);

        let lanes = self.key.lanes;
        let (column, row) = self.divide_by_power(thread, tile.width / lanes);
        let column = self.times(&column, lanes);
        let first = self.of("add.u32", &[&origin[0], &column]);
        let (width, height) = (self.size(indexing, 0), self.size(indexing, 1));
        self.exit_unless_below(&first, &width);
        let last = self.of("sub.u32", &[&height, "1"]);
        let (at_once, times) = self.rows_of_tile();
        let step = BLOCK * lanes / tile.width;
        let row = self.of("mov.u32", &[&row]);
        if times > 1 {
            self.line("$rows:");
        }
        let rows: Vec<Name> = (0..at_once).map(|index| self.plus(&row, index * step)).collect();
        for (index, row) in rows.iter().enumerate() {
            let wanted = self.of("add.u32", &[&origin[1], row]);
            let held = if index == 0 {
                self.exit_unless_below(&wanted, &height);
                indexing.inside.push(Name::new());
                wanted
            } else {
                indexing.inside.push(self.result(Register::Predicate, "setp.lt.u32", &[&wanted, &height]));
                self.of("min.u32", &[&wanted, &last])
            };
            let mut coordinates = vec![first.clone(), held];
            coordinates.extend_from_slice(&outer);
            indexing.coordinates.push(Some(coordinates));
        }
        indexing.rows = Some(Rows { column, rows });
        indexing.next = (times > 1).then(|| (row, at_once * step, tile.height));
    }

    /// Ends an iteration over rows.
    pub(super) fn next_rows(&mut self, indexing: &Indexing) {
        let Some((row, step, height)) = &indexing.next else { return };
        self.line(format!("add.u32 {row}, {row}, {step};"));
        let more = self.result(Register::Predicate, "setp.lt.u32", &[row, &height.to_string()]);
        self.line(format!("@{more} bra $rows;"));
    }

    /// Copies the tiles of the staged inputs to shared memory.
    fn stage(
        &mut self,
        indexing: &mut Indexing,
        thread: &str,
        tile: Tile,
        origin: &[Name; 2],
        outer: &[Name],
    ) {
        let staged: Vec<_> =
            self.staged(tile).into_iter().filter(|(operand, ..)| self.used(*operand)).collect();
        let bytes = self
            .staged(tile)
            .last()
            .map_or(0, |(operand, _, start)| start + tile.bytes(self.dtypes[*operand].size()));
        self.line(format!(".shared .align 128 .b8 {SHARED}[{bytes}];"));
        let mut loaded = Vec::with_capacity(staged.len());
        for &(operand, access, _) in &staged {
            loaded.push(match access {
                Access::Chunks => self.load_chunks(indexing, thread, tile, operand, origin, outer),
                Access::Singly => self.load_single(indexing, thread, tile, operand, origin, outer),
            });
        }
        for (loaded, &(.., start)) in loaded.iter().zip(&staged) {
            self.store_tile(tile, loaded, start);
        }
        self.line("bar.sync 0;");
    }

    /// Emits the address of a staged input's element, with its column clamped to the space.
    fn staged_address(
        &mut self,
        indexing: &mut Indexing,
        operand: usize,
        column: &str,
        of_row: &str,
    ) -> Name {
        let width = self.size(indexing, 0);
        let last = self.of("sub.u32", &[&width, "1"]);
        let column = self.of("min.u32", &[column, &last]);
        let stride = self.strides(indexing, operand)[0].clone();
        let offset = self.of("mad.lo.u32", &[&column, &stride, of_row]);
        let (bytes, base) = (self.dtypes[operand].size().to_string(), self.bases[operand].clone());
        self.result(Register::Bits64, "mad.wide.s32", &[&offset, &bytes, &base])
    }

    /// Emits the offset of a row of a staged input, including the outer dimensions.
    fn row_offset(
        &mut self,
        indexing: &mut Indexing,
        operand: usize,
        row: &str,
        last: u32,
        outer: &[Name],
    ) -> Name {
        let height = self.size(indexing, 1);
        let last = self.of("sub.u32", &[&height, &last.to_string()]);
        let row = self.of("min.u32", &[row, &last]);
        let strides = self.strides(indexing, operand);
        let mut offset = self.of("mul.lo.u32", &[&row, &strides[1]]);
        for (coordinate, stride) in outer.iter().zip(&strides[2..]) {
            offset = self.of("mad.lo.u32", &[coordinate, stride, &offset]);
        }
        offset
    }

    /// Loads 16 bytes an access. Eight lanes of a warp are adjacent along the input, which gives 128 bytes.
    fn load_chunks(
        &mut self,
        indexing: &mut Indexing,
        thread: &str,
        tile: Tile,
        operand: usize,
        origin: &[Name; 2],
        outer: &[Name],
    ) -> Loaded {
        let bytes = self.dtypes[operand].size();
        let (chunk, together) = (chunk(bytes), rows_together(bytes));
        let (lane, warp) = self.divide_by_power(thread, 32);
        let (along, across) = self.divide_by_power(&lane, 8);
        let warps_along = tile.height / (8 * chunk);
        let (warp_along, warp_across) = self.divide_by_power(&warp, warps_along);
        let row = self.of("mad.lo.u32", &[&warp_along, "8", &along]);
        let row = self.times(&row, chunk);
        let column = self.of("mad.lo.u32", &[&warp_across, "4", &across]);
        let column = self.times(&column, together);
        let wanted = self.of("add.u32", &[&origin[1], &row]);
        let of_row = self.row_offset(indexing, operand, &wanted, chunk, outer);
        let step = BLOCK / 32 / warps_along * 4 * together;
        let mut accesses = Vec::new();
        for first in (0..tile.width).step_by(step as usize) {
            let column = self.plus(&column, first);
            let mut names = Vec::new();
            for row in 0..together {
                let column = self.plus(&column, row);
                let wanted = self.of("add.u32", &[&origin[0], &column]);
                let address = self.staged_address(indexing, operand, &wanted, &of_row);
                let (register, kind, count) = match bytes {
                    8 | 16 => (Register::Bits64, "b64", 2),
                    _ => (Register::Bits32, "b32", 4),
                };
                names.extend(self.load_words(
                    StateSpace::Global,
                    register,
                    kind,
                    &address,
                    count,
                    16 / count,
                ));
            }
            accesses.push((column, names));
        }
        Loaded { operand, access: Access::Chunks, accesses, row }
    }

    /// Loads an element an access. Adjacent threads are adjacent along the input.
    fn load_single(
        &mut self,
        indexing: &mut Indexing,
        thread: &str,
        tile: Tile,
        operand: usize,
        origin: &[Name; 2],
        outer: &[Name],
    ) -> Loaded {
        let dtype = self.dtypes[operand];
        let (row, column) = self.divide_by_power(thread, tile.height);
        let wanted = self.of("add.u32", &[&origin[1], &row]);
        let of_row = self.row_offset(indexing, operand, &wanted, 1, outer);
        let mut accesses = Vec::new();
        for first in (0..tile.width).step_by((BLOCK / tile.height) as usize) {
            let column = self.plus(&column, first);
            let wanted = self.of("add.u32", &[&origin[0], &column]);
            let address = self.staged_address(indexing, operand, &wanted, &of_row);
            let (register, kind) = single(dtype.size() / parts(dtype));
            let part = dtype.size() / parts(dtype);
            let names = (0..parts(dtype))
                .map(|index| {
                    let source = format!("[{address}+{}]", index * part);
                    self.result(register, &format!("ld.global.{kind}"), &[&source])
                })
                .collect();
            accesses.push((column, names));
        }
        Loaded { operand, access: Access::Singly, accesses, row }
    }

    /// Emits the swizzle of row `row`: the bits by which it permutes a column's offset.
    fn swizzle_bits(&mut self, tile: Tile, operand: usize, access: Access, row: &str) -> Name {
        let (shift, mask) = tile.swizzle(self.dtypes[operand].size(), access);
        let swizzle = match shift {
            0 => row.to_owned(),
            _ => self.of("shr.u32", &[row, &shift.to_string()]),
        };
        let swizzle = self.of("and.b32", &[&swizzle, &mask.to_string()]);
        self.times(&swizzle, 16)
    }

    /// Emits the shared memory address of a row.
    fn shared_row(&mut self, tile: Tile, operand: usize, start: usize, row: &str) -> Name {
        let pitch = tile.width * self.dtypes[operand].size() as u32;
        let base = self.of("mov.u32", &[SHARED]);
        let base = self.plus(&base, start as u32);
        self.of("mad.lo.u32", &[row, &pitch.to_string(), &base])
    }

    /// Emits the offset of a column in a row.
    fn shared_column(&mut self, operand: usize, column: &str, swizzle: &str) -> Name {
        let offset = self.times(column, self.dtypes[operand].size() as u32);
        self.of("xor.b32", &[&offset, swizzle])
    }

    fn store_tile(&mut self, tile: Tile, loaded: &Loaded, start: usize) {
        let operand = loaded.operand;
        let dtype = self.dtypes[operand];
        let bytes = dtype.size();
        let pitch = tile.width as usize * bytes;
        let swizzle = self.swizzle_bits(tile, operand, loaded.access, &loaded.row);
        let row = self.shared_row(tile, operand, start, &loaded.row);
        for (column, names) in &loaded.accesses {
            let column = self.shared_column(operand, column, &swizzle);
            let address = self.of("add.u32", &[&row, &column]);
            if loaded.access == Access::Singly {
                let (_, kind) = single(bytes / parts(dtype));
                for (index, name) in names.iter().enumerate() {
                    let offset = index * (bytes / parts(dtype));
                    self.line(format!("st.shared.{kind} [{address}+{offset}], {name};"));
                }
                continue;
            }
            if let (16, [low, high]) = (bytes, &names[..]) {
                self.line(format!("st.shared.v2.b64 [{address}], {{{low}, {high}}};"));
                continue;
            }
            let kind = if bytes == 8 { "b64" } else { "b32" };
            for (index, word) in self.transposed(bytes, names).into_iter().enumerate() {
                self.line(format!("st.shared.{kind} [{address}+{}], {word};", index * pitch));
            }
        }
    }

    /// Transposes narrow elements: from words of columns to words of rows, each with one or several columns.
    fn transposed(&mut self, bytes: usize, names: &[Name]) -> Vec<Name> {
        let mut select = |left: &str, right: &str, how: &str| self.of("prmt.b32", &[left, right, how]);
        // Selectors in decimal: 0x5410 and 0x7632 take lower and upper halves, 0x5140 and 0x7362 alternate
        // bytes.
        let (low, high, first, second) = ("21520", "30258", "20800", "29538");
        let mut words = Vec::new();
        match (bytes, names) {
            (2, [left @ .., _, _, _, _]) => {
                for (left, right) in left.iter().zip(&names[4..]) {
                    words.push(select(left, right, low));
                    words.push(select(left, right, high));
                }
            }
            (1, _) => {
                for word in 0..4 {
                    let [a, b, c, d] = [0, 4, 8, 12].map(|column| names[column + word].as_str());
                    for half in [first, second] {
                        let (left, right) = (select(a, b, half), select(c, d, half));
                        words.push(select(&left, &right, low));
                        words.push(select(&left, &right, high));
                    }
                }
            }
            _ => words.extend_from_slice(names),
        }
        words
    }

    /// Loads the elements of a staged input in the thread's columns of one of its rows.
    pub(super) fn load_staged(&mut self, indexing: &Indexing, operand: usize, row: usize) -> Vec<[Name; 2]> {
        let (Iteration::Tiles(tile), AccessPattern::Staged(access), Some(rows)) =
            (self.key.iteration, self.key.access_patterns[operand], &indexing.rows)
        else {
            return Vec::new();
        };
        let found = self.staged(tile).into_iter().find(|(staged, ..)| *staged == operand);
        let start = found.map_or(0, |(_, _, start)| start);
        let (dtype, lanes) = (self.dtypes[operand], self.key.lanes as usize);
        let (row, column) = (rows.rows[row].clone(), rows.column.clone());
        let swizzle = self.swizzle_bits(tile, operand, access, &row);
        let base = self.shared_row(tile, operand, start, &row);
        let column = self.shared_column(operand, &column, &swizzle);
        let address = self.of("add.u32", &[&base, &column]);
        let at_once = (16 / dtype.size()).min(lanes);
        let mut elements = Vec::with_capacity(lanes);
        for access in 0..lanes / at_once {
            // Adjacent chunks stay adjacent under the same swizzle.
            let address = match access {
                0 => address.clone(),
                _ => self.of("xor.b32", &[&address, &(16 * access).to_string()]),
            };
            elements.extend(self.load_vector(StateSpace::Shared, dtype, &address, at_once));
        }
        elements
    }
}

/// Returns the register type and the memory type of a part of this size.
fn single(bytes: usize) -> (Register, &'static str) {
    match bytes {
        1 => (Register::Bits32, "u8"),
        2 => (Register::Bits32, "u16"),
        4 => (Register::Bits32, "b32"),
        _ => (Register::Bits64, "b64"),
    }
}
