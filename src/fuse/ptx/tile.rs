//! Tiles through shared memory: what a block reads along the inputs and writes along the output.
//!
//! All loads from memory stand before the first store to shared memory, so that they are under way together. Past the
//! edges of the space they read the last element again, and so need no guard. What must stay true: the block has read
//! all of its tile when any of its threads stores, so that an output may be an input in the same layout.

use super::super::plan::{BLOCK, Class, Walk};
use super::super::program::parts;
use super::super::tile::{Access, Tile, chunk, rows_together};
use super::index::Places;
use super::memory::State;
use super::{Name, Register, Writer};

/// The shared memory of a block.
const SHARED: &str = "staged";
/// Instructions of rows that are written one behind the other; what is more is a loop.
const MOST_UNROLLED: usize = 320;

/// The rows of the output that a thread takes of a tile.
pub(super) struct Rows {
    /// The thread's first column within the tile.
    pub(super) column: Name,
    /// By row of an iteration, the row within the tile.
    pub(super) rows: Vec<Name>,
}

/// Elements of a staged input as they came from memory, with where they go.
struct Loaded {
    operand: usize,
    access: Access,
    /// Column and row in the tile of each part.
    pieces: Vec<(Name, Vec<Name>)>,
    row: Name,
}

impl Writer<'_> {
    /// How many rows of a tile a thread takes at once, and how many times.
    pub(super) fn rows_of_tile(&self) -> (u32, u32) {
        let Walk::Tiles(tile) = self.key.walk else { return (1, 1) };
        let passes = tile.width * tile.height / BLOCK / self.key.lanes;
        let lanes = self.program.steps.len() * self.key.lanes as usize;
        let mut at_once = passes;
        while at_once > 1 && lanes * at_once as usize > MOST_UNROLLED {
            at_once /= 2;
        }
        (at_once, passes / at_once)
    }

    /// The inputs that come through shared memory, and where each begins there.
    fn staged(&self, tile: Tile) -> Vec<(usize, Access, usize)> {
        let mut next = 0;
        let mut staged = Vec::new();
        for (operand, class) in self.key.classes.iter().enumerate() {
            if let Class::Staged(access) = *class {
                staged.push((operand, access, next));
                next += tile.bytes(self.dtypes[operand].size());
            }
        }
        staged
    }

    fn of(&mut self, mnemonic: &str, operands: &[&str]) -> Name {
        self.result(Register::Bits32, mnemonic, operands)
    }

    fn plus(&mut self, name: &str, number: u32) -> Name {
        if number == 0 { name.to_owned() } else { self.of("add.u32", &[name, &number.to_string()]) }
    }

    /// `name · factor`, a power of two.
    fn times(&mut self, name: &str, factor: u32) -> Name {
        match factor {
            1 => name.to_owned(),
            _ => self.of("shl.b32", &[name, &factor.trailing_zeros().to_string()]),
        }
    }

    /// Remainder and quotient by a power of two.
    fn part(&mut self, name: &str, size: u32) -> (Name, Name) {
        let remainder = self.of("and.b32", &[name, &(size - 1).to_string()]);
        (remainder, self.of("shr.u32", &[name, &size.trailing_zeros().to_string()]))
    }

    /// Which elements the thread takes, behind what brings its block's tile into shared memory.
    pub(super) fn tiles(&mut self, places: &mut Places, block: &str, thread: &str, tile: Tile) {
        let rank = self.key.rank;
        let (rest, across) = self.divide(places, block, rank);
        let (planes, down) = self.divide(places, &rest, rank + 1);
        let origin = [self.times(&across, tile.width), self.times(&down, tile.height)];
        let outer = if rank > 2 { self.decode(places, &planes, 2, rank) } else { Vec::new() };
        self.stage(places, thread, tile, &origin, &outer);

        let lanes = self.key.lanes;
        let (column, row) = self.part(thread, tile.width / lanes);
        let column = self.times(&column, lanes);
        let first = self.of("add.u32", &[&origin[0], &column]);
        let (width, height) = (self.size(places, 0), self.size(places, 1));
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
                places.inside.push(Name::new());
                wanted
            } else {
                places.inside.push(self.result(Register::Predicate, "setp.lt.u32", &[&wanted, &height]));
                self.of("min.u32", &[&wanted, &last])
            };
            let mut coordinates = vec![first.clone(), held];
            coordinates.extend_from_slice(&outer);
            places.coordinates.push(Some(coordinates));
        }
        places.rows = Some(Rows { column, rows });
        places.next = (times > 1).then(|| (row, at_once * step, tile.height));
    }

    /// The end of an iteration over rows.
    pub(super) fn next_rows(&mut self, places: &Places) {
        let Some((row, step, height)) = &places.next else { return };
        self.line(format!("add.u32 {row}, {row}, {step};"));
        let more = self.result(Register::Predicate, "setp.lt.u32", &[row, &height.to_string()]);
        self.line(format!("@{more} bra $rows;"));
    }

    /// Brings the staged inputs' tiles into shared memory.
    fn stage(&mut self, places: &mut Places, thread: &str, tile: Tile, origin: &[Name; 2], outer: &[Name]) {
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
                Access::Chunks => self.load_chunks(places, thread, tile, operand, origin, outer),
                Access::Singly => self.load_singly(places, thread, tile, operand, origin, outer),
            });
        }
        for (loaded, &(.., start)) in loaded.iter().zip(&staged) {
            self.store_tile(tile, loaded, start);
        }
        self.line("bar.sync 0;");
    }

    /// The address of an element of a staged input, by its coordinates in the space, held within it.
    fn staged_address(&mut self, places: &mut Places, operand: usize, column: &str, of_row: &str) -> Name {
        let width = self.size(places, 0);
        let last = self.of("sub.u32", &[&width, "1"]);
        let column = self.of("min.u32", &[column, &last]);
        let stride = self.strides(places, operand)[0].clone();
        let offset = self.of("mad.lo.u32", &[&column, &stride, of_row]);
        let (bytes, base) = (self.dtypes[operand].size().to_string(), self.bases[operand].clone());
        self.result(Register::Bits64, "mad.wide.s32", &[&offset, &bytes, &base])
    }

    /// The offset of a row of a staged input, and of the outer dimensions.
    fn row_offset(
        &mut self,
        places: &mut Places,
        operand: usize,
        row: &str,
        last: u32,
        outer: &[Name],
    ) -> Name {
        let height = self.size(places, 1);
        let last = self.of("sub.u32", &[&height, &last.to_string()]);
        let row = self.of("min.u32", &[row, &last]);
        let strides = self.strides(places, operand);
        let mut offset = self.of("mul.lo.u32", &[&row, &strides[1]]);
        for (coordinate, stride) in outer.iter().zip(&strides[2..]) {
            offset = self.of("mad.lo.u32", &[coordinate, stride, &offset]);
        }
        offset
    }

    /// 16 bytes an access: of a warp eight lanes are neighbours along the input, which makes 128 bytes.
    fn load_chunks(
        &mut self,
        places: &mut Places,
        thread: &str,
        tile: Tile,
        operand: usize,
        origin: &[Name; 2],
        outer: &[Name],
    ) -> Loaded {
        let bytes = self.dtypes[operand].size();
        let (chunk, together) = (chunk(bytes), rows_together(bytes));
        let (lane, warp) = self.part(thread, 32);
        let (along, across) = self.part(&lane, 8);
        let pieces_along = tile.height / (8 * chunk);
        let (warp_along, warp_across) = self.part(&warp, pieces_along);
        let row = self.of("mad.lo.u32", &[&warp_along, "8", &along]);
        let row = self.times(&row, chunk);
        let column = self.of("mad.lo.u32", &[&warp_across, "4", &across]);
        let column = self.times(&column, together);
        let wanted = self.of("add.u32", &[&origin[1], &row]);
        let of_row = self.row_offset(places, operand, &wanted, chunk, outer);
        let step = BLOCK / 32 / pieces_along * 4 * together;
        let mut pieces = Vec::new();
        for first in (0..tile.width).step_by(step as usize) {
            let column = self.plus(&column, first);
            let mut names = Vec::new();
            for row in 0..together {
                let column = self.plus(&column, row);
                let wanted = self.of("add.u32", &[&origin[0], &column]);
                let address = self.staged_address(places, operand, &wanted, &of_row);
                let (register, kind, count) = match bytes {
                    8 | 16 => (Register::Bits64, "b64", 2),
                    _ => (Register::Bits32, "b32", 4),
                };
                names.extend(self.load_pieces(State::Global, register, kind, &address, count, 16 / count));
            }
            pieces.push((column, names));
        }
        Loaded { operand, access: Access::Chunks, pieces, row }
    }

    /// An element an access: neighbouring threads are neighbours along the input.
    fn load_singly(
        &mut self,
        places: &mut Places,
        thread: &str,
        tile: Tile,
        operand: usize,
        origin: &[Name; 2],
        outer: &[Name],
    ) -> Loaded {
        let dtype = self.dtypes[operand];
        let (row, column) = self.part(thread, tile.height);
        let wanted = self.of("add.u32", &[&origin[1], &row]);
        let of_row = self.row_offset(places, operand, &wanted, 1, outer);
        let mut pieces = Vec::new();
        for first in (0..tile.width).step_by((BLOCK / tile.height) as usize) {
            let column = self.plus(&column, first);
            let wanted = self.of("add.u32", &[&origin[0], &column]);
            let address = self.staged_address(places, operand, &wanted, &of_row);
            let (register, kind) = single(dtype.size() / parts(dtype));
            let part = dtype.size() / parts(dtype);
            let names = (0..parts(dtype))
                .map(|index| {
                    let place = format!("[{address}+{}]", index * part);
                    self.result(register, &format!("ld.global.{kind}"), &[&place])
                })
                .collect();
            pieces.push((column, names));
        }
        Loaded { operand, access: Access::Singly, pieces, row }
    }

    /// The bits that row `row` of the tile turns around in a column's place.
    fn swizzled(&mut self, tile: Tile, operand: usize, access: Access, row: &str) -> Name {
        let (shift, mask) = tile.swizzle(self.dtypes[operand].size(), access);
        let turn = match shift {
            0 => row.to_owned(),
            _ => self.of("shr.u32", &[row, &shift.to_string()]),
        };
        let turn = self.of("and.b32", &[&turn, &mask.to_string()]);
        self.times(&turn, 16)
    }

    /// Where the first element of a row lies in shared memory.
    fn shared_row(&mut self, tile: Tile, operand: usize, start: usize, row: &str) -> Name {
        let pitch = tile.width * self.dtypes[operand].size() as u32;
        let base = self.of("mov.u32", &[SHARED]);
        let base = self.plus(&base, start as u32);
        self.of("mad.lo.u32", &[row, &pitch.to_string(), &base])
    }

    /// Where a column lies in a row.
    fn shared_column(&mut self, operand: usize, column: &str, turn: &str) -> Name {
        let place = self.times(column, self.dtypes[operand].size() as u32);
        self.of("xor.b32", &[&place, turn])
    }

    fn store_tile(&mut self, tile: Tile, loaded: &Loaded, start: usize) {
        let operand = loaded.operand;
        let dtype = self.dtypes[operand];
        let bytes = dtype.size();
        let pitch = tile.width as usize * bytes;
        let turn = self.swizzled(tile, operand, loaded.access, &loaded.row);
        let row = self.shared_row(tile, operand, start, &loaded.row);
        for (column, names) in &loaded.pieces {
            let column = self.shared_column(operand, column, &turn);
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
            for (index, word) in self.turned(bytes, names).into_iter().enumerate() {
                self.line(format!("st.shared.{kind} [{address}+{}], {word};", index * pitch));
            }
        }
    }

    /// By row of the tile the words, each of one or several columns, of columns of narrow elements.
    fn turned(&mut self, bytes: usize, names: &[Name]) -> Vec<Name> {
        let mut select = |left: &str, right: &str, how: &str| self.of("prmt.b32", &[left, right, how]);
        // Selectors as decimals: 0x5410 and 0x7632 take lower and upper halves, 0x5140 and 0x7362 alternate bytes.
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

    /// The elements of a staged input in the thread's columns of one of its rows.
    pub(super) fn load_staged(&mut self, places: &Places, operand: usize, row: usize) -> Vec<[Name; 2]> {
        let (Walk::Tiles(tile), Class::Staged(access), Some(rows)) =
            (self.key.walk, self.key.classes[operand], &places.rows)
        else {
            return Vec::new();
        };
        let found = self.staged(tile).into_iter().find(|(staged, ..)| *staged == operand);
        let start = found.map_or(0, |(_, _, start)| start);
        let (dtype, lanes) = (self.dtypes[operand], self.key.lanes as usize);
        let (row, column) = (rows.rows[row].clone(), rows.column.clone());
        let turn = self.swizzled(tile, operand, access, &row);
        let base = self.shared_row(tile, operand, start, &row);
        let column = self.shared_column(operand, &column, &turn);
        let address = self.of("add.u32", &[&base, &column]);
        let at_once = (16 / dtype.size()).min(lanes);
        let mut elements = Vec::with_capacity(lanes);
        for piece in 0..lanes / at_once {
            // Neighbouring chunks lie where their neighbours in the order would, turned alike.
            let address = match piece {
                0 => address.clone(),
                _ => self.of("xor.b32", &[&address, &(16 * piece).to_string()]),
            };
            elements.extend(self.load_vector(State::Shared, dtype, &address, at_once));
        }
        elements
    }
}

/// The register and the type of a part of so many bytes, of any meaning.
fn single(bytes: usize) -> (Register, &'static str) {
    match bytes {
        1 => (Register::Bits32, "u8"),
        2 => (Register::Bits32, "u16"),
        4 => (Register::Bits32, "b32"),
        _ => (Register::Bits64, "b64"),
    }
}
