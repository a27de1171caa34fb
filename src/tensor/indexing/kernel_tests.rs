//! The kernels without a device: their sources compiled for the host and run thread by thread, against the CPU's own loops.
//!
//! It proves what they compute; that they compile for a device, and what they do there at once, are other tests' matter.
//! It needs a C++ compiler and says so where there is none.

#[path = "../../../tests/common/mod.rs"]
mod common;

use std::path::Path;
use std::process::Command;

use libloading::Library;

use super::host;
use super::scatter::Marks;
use super::space::{IndexSpace, IndexedOperand};
use crate::types::{DType, Layout};

/// The language of the kernels as far as they use it, and a loop over all threads.
const SHIM: &str = r#"
#define __device__
#define __global__
#define __launch_bounds__(threads)
#define asm(...) (lane = 0)
struct Place { unsigned x, y, z; };
static Place threadIdx, blockIdx, blockDim, gridDim;
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
static int __ffs(int word) { return __builtin_ffs(word); }
static unsigned __activemask() { return 1; }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
static void __threadfence_system() {}
static unsigned atomicCAS(unsigned* at, unsigned old, unsigned now) {
    const unsigned found = *at;
    if (found == old) *at = now;
    return found;
}
static void atomicMax(unsigned* at, unsigned value) { if (*at < value) *at = value; }
#include "kernels/gather.cu"
#include "kernels/scatter.cu"
#undef ENTRY
#include "kernels/scatter_mark.cu"
template <typename Kernel>
static void launch(unsigned blocks, unsigned threads, Kernel kernel) {
    gridDim.x = blocks;
    blockDim.x = threads;
    // Backwards, since their order says nothing.
    for (unsigned block = blocks; block-- > 0;)
        for (unsigned thread = threads; thread-- > 0;) {
            blockIdx.x = block;
            threadIdx.x = thread;
            kernel();
        }
}
extern "C" void run_gather(bool wide, const void* i, const void* a, void* e, const Space* s, u64 n, Report* r,
                           unsigned blocks, unsigned threads) {
    launch(blocks, threads, [&] { wide ? gather_i64(i, a, e, *s, n, r) : gather_i32(i, a, e, *s, n, r); });
}
extern "C" void run_scatter(bool wide, const void* i, void* a, const void* e, const Space* s, u64 n, Report* r,
                            unsigned blocks, unsigned threads) {
    launch(blocks, threads, [&] { wide ? scatter_i64(i, a, e, *s, n, r) : scatter_i32(i, a, e, *s, n, r); });
}
extern "C" void run_scatter_mark(bool wide, const void* i, u32* m, u64 first, u64 count, const Space* s, u64 n,
                                 Report* r, unsigned blocks, unsigned threads) {
    launch(blocks, threads, [&] {
        wide ? scatter_mark_i64(i, m, first, count, *s, n, r) : scatter_mark_i32(i, m, first, count, *s, n, r);
    });
}
extern "C" void run_scatter_last(bool wide, const void* i, void* a, const void* e, const u32* m, const Space* s,
                                 u64 n, unsigned blocks, unsigned threads) {
    launch(blocks, threads, [&] {
        wide ? scatter_last_i64(i, a, e, m, *s, n) : scatter_last_i32(i, a, e, m, *s, n);
    });
}
extern "C" void run_scatter_marked(const u32* m, void* a, const void* e, const Space* s, u64 n, unsigned blocks,
                                   unsigned threads) {
    launch(blocks, threads, [&] { scatter_marked(m, a, e, *s, n); });
}
"#;

type Copy =
    unsafe extern "C" fn(bool, *const u8, *const u8, *const u8, &IndexSpace, u64, *mut Report, u32, u32);
type Mark =
    unsafe extern "C" fn(bool, *const u8, *mut u32, u64, u64, &IndexSpace, u64, *mut Report, u32, u32);
type CopyLast =
    unsafe extern "C" fn(bool, *const u8, *mut u8, *const u8, *const u32, &IndexSpace, u64, u32, u32);
type CopyMarked = unsafe extern "C" fn(*const u32, *mut u8, *const u8, &IndexSpace, u64, u32, u32);

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Report {
    claimed: u32,
    complete: u32,
    operation: u32,
    axis: u32,
    index: i64,
    size: u64,
    apart: [u32; 24],
    taken: u32,
}

impl Report {
    /// Free, after so many others.
    fn after(count: u32) -> Report {
        Report { claimed: count, complete: count, taken: count, ..Report::default() }
    }
}

/// The paths of the kernels through a space: the condition that selects one, and its replacement that small spaces meet.
const PATHS: [[&str; 2]; 3] =
    [["space.near", "space.near"], ["space.near", "false"], ["n < 0x80000000u", "false"]];

/// The kernels for a unit of so many bits, which take one of the paths or the one before.
fn compiled(folder: &Path, bits: usize, path: usize) -> Option<Library> {
    // The folders of csrc, since a kernel's header includes one of csrc/include.
    let sources = common::repository().join("csrc");
    let (kernels, include) = (folder.join("kernels"), folder.join("include/selvedge"));
    std::fs::create_dir_all(&kernels).unwrap();
    std::fs::create_dir_all(&include).unwrap();
    std::fs::copy(sources.join("include/selvedge/report.cuh"), include.join("report.cuh")).unwrap();
    for name in ["types.cuh", "indexed.cuh", "gather.cu", "scatter.cu", "scatter_mark.cu"] {
        let text = std::fs::read_to_string(sources.join("kernels").join(name)).unwrap();
        let text = PATHS[..=path]
            .iter()
            .fold(text, |text, [from, to]| text.replace(&format!("if ({from})"), &format!("if ({to})")));
        std::fs::write(kernels.join(name), text).unwrap();
    }
    let (source, library) = (folder.join("shim.cpp"), folder.join(format!("kernels_{bits}_{path}.so")));
    std::fs::write(&source, SHIM).unwrap();
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fsanitize=undefined"]);
    command.args(["-fno-sanitize-recover=all", &format!("-DBITS={bits}"), "-o"]);
    let output = match command.arg(&library).arg(&source).output() {
        Ok(output) => output,
        Err(error) => {
            println!("no C++ compiler, so nothing is proven here: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: what was just compiled; loading it runs nothing.
    Some(unsafe { Library::new(&library).unwrap() })
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    /// A layout of this shape with gaps, reversed, or with an offset; and the elements that its memory has.
    fn layout(&mut self, sizes: &[usize]) -> (Layout, usize) {
        let step = 1 + self.below(2);
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        if self.below(3) == 0 {
            order.reverse();
        }
        let mut strides = vec![0; sizes.len()];
        let mut next = step as isize;
        for &axis in order.iter().rev() {
            strides[axis] = next;
            next *= sizes[axis] as isize + (self.below(4) == 0) as isize;
        }
        let layout = Layout::strided(sizes, &strides, self.below(3)).unwrap();
        let axes: Vec<isize> = (0..sizes.len() as isize).filter(|_| self.below(4) == 0).collect();
        let layout = layout.flip(&axes).unwrap();
        (layout, layout.end())
    }
}

fn operand(layout: &Layout) -> IndexedOperand {
    IndexedOperand::new(layout.strides(), layout.offset())
}

/// One copy by the kernels and by the CPU.
struct Case {
    bytes: usize,
    dtype: DType,
    indices: Vec<u8>,
    index: Layout,
    axis: usize,
    array: Layout,
    size: usize,
    elements: Layout,
    /// Bytes in front of the memory, so that it starts anywhere that an element may.
    shift: usize,
}

impl Case {
    fn draw(draws: &mut Draws) -> Case {
        let rank = 1 + draws.below(3);
        let sizes: Vec<usize> = (0..rank).map(|_| 1 + draws.below(6)).collect();
        let axis = draws.below(rank);
        let size = 1 + draws.below(5);
        let mut of_array = sizes.clone();
        of_array[axis] = size;
        let (array, _) = draws.layout(&of_array);
        let (elements, _) = draws.layout(&sizes);
        let bytes = [1, 2, 4, 8, 16][draws.below(5)];
        // Repeated along some of the axes, as an index of rows is.
        let mut of_index = sizes.clone();
        of_index.iter_mut().for_each(|size| *size = if draws.below(2) == 0 { 1 } else { *size });
        of_index[axis] = sizes[axis];
        let (index, end) = draws.layout(&of_index);
        let dtype = [DType::I32, DType::I64][draws.below(2)];
        let wrong = draws.below(3) == 0;
        let mut indices = Vec::new();
        for _ in 0..end {
            let value = draws.below(2 * size) as i64 - size as i64;
            let value = if wrong && draws.below(9) == 0 { value + 2 * size as i64 } else { value };
            match dtype {
                DType::I32 => indices.extend((value as i32).to_ne_bytes()),
                _ => indices.extend(value.to_ne_bytes()),
            }
        }
        let index = index.expand(elements.shape()).unwrap();
        let shift = [0, bytes, bytes / 2, 1][draws.below(4)];
        Case { bytes, dtype, indices, index, axis, array, size, elements, shift }
    }

    fn memory(&self, layout: &Layout, seed: u8) -> Vec<u8> {
        let count = layout.end() * self.bytes;
        (0..count).map(|byte| (byte as u8).wrapping_mul(31).wrapping_add(seed)).collect()
    }

    fn operands(&self) -> [IndexedOperand; 3] {
        [operand(&self.index), operand(&self.array).along(self.axis), operand(&self.elements)]
    }

    fn space(&self, operands: &[IndexedOperand]) -> IndexSpace {
        IndexSpace::new(self.index.shape(), operands, Some(self.bytes), (3, self.axis, self.size)).unwrap()
    }

    fn outside(&self) -> Option<i64> {
        host::Indices::new(&self.indices, self.dtype).first_outside(&self.index, self.size)
    }

    /// Checks that a kernel has reported an index out of range, if there is one, after `count` other reports.
    fn check_report(&self, report: &Report, count: u32, what: &str) {
        if self.outside().is_none() {
            assert_eq!(*report, Report::after(count), "{what}");
            return;
        }
        let size = self.size as i64;
        assert!(!(-size..size).contains(&report.index), "{what}: {report:?}");
        let (index, size) = (report.index, self.size as u64);
        let next = count.wrapping_add(1);
        let (free, axis) = (Report::after(count), self.axis as u32);
        let whole = Report { claimed: next, complete: next, operation: 3, axis, index, size, ..free };
        assert_eq!(*report, whole, "{what}");
    }
}

/// Memory that starts `shift` bytes behind a multiple of 16.
struct Shifted {
    words: Vec<u128>,
    shift: usize,
    bytes: usize,
}

impl Shifted {
    fn new(bytes: &[u8], shift: usize) -> Shifted {
        let mut shifted =
            Shifted { words: vec![0; (bytes.len() + shift).div_ceil(16) + 1], shift, bytes: bytes.len() };
        shifted.bytes_mut().copy_from_slice(bytes);
        shifted
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[self.shift..self.shift + self.bytes]
    }

    fn address(&self) -> u64 {
        self.words.as_ptr().addr() as u64 + self.shift as u64
    }
}

fn prove(path: usize, test: &str) {
    if common::is_left_out(&format!("tensor::indexing::kernel_tests::{test}"), "a C++ compiler") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut libraries = Vec::new();
    for bits in [8, 16, 32, 64, 128] {
        let Some(library) = compiled(folder.path(), bits, path) else { return };
        libraries.push(library);
    }
    let mut draws = Draws(17);
    let mut units = [0; 5];
    for round in 0..4000 {
        let case = Case::draw(&mut draws);
        let (blocks, threads) = (1 + draws.below(3) as u32, 1 + draws.below(33) as u32);
        let wide = case.dtype == DType::I64;
        let indices = host::Indices::new(&case.indices, case.dtype);
        let (array, elements) = (case.memory(&case.array, 1), case.memory(&case.elements, 100));
        let mut on_device =
            [Shifted::new(&array, case.shift), Shifted::new(&elements, [0, case.shift][draws.below(2)])];
        let addresses = [on_device[0].address(), on_device[1].address()];
        let space = case.space(&case.operands());
        let (in_units, unit) = space.in_units(addresses);
        let library = &libraries[unit.trailing_zeros() as usize];
        units[unit.trailing_zeros() as usize] += 1;
        let count = in_units.count() as u64;
        let of_index = Shifted::new(&case.indices, 0).words;
        let [array_at, elements_at] = addresses.map(|address| address as usize as *mut u8);
        let index_at = of_index.as_ptr().cast::<u8>();
        let taken = (round as u32).wrapping_sub(2000);
        let mut report = Report::after(taken);
        let what = format!("round {round}: {:?} {:?} {unit}", case.array, case.elements);
        match round % 3 {
            0 => {
                // The CPU's gather writes all of its memory, so its elements have no gaps.
                let dense = Layout::from_shape(*case.elements.shape());
                let mut wanted = vec![9; dense.count() * case.bytes];
                let operands = [case.operands()[0], case.operands()[1], operand(&dense)];
                host::gather(&case.space(&operands), indices, &array, &mut wanted);
                // SAFETY: the kernel's arguments, inside of memory that is this function's.
                unsafe {
                    let run = library.get::<Copy>(b"run_gather").unwrap();
                    run(
                        wide,
                        index_at,
                        array_at,
                        elements_at,
                        &in_units,
                        count,
                        &mut report,
                        blocks,
                        threads,
                    );
                }
                let found = on_device[1].bytes_mut().to_vec();
                let mut dense = dense_of(&found, &case.elements, case.bytes);
                assert_eq!(dense, wanted, "gather, {what}");
                // And nothing else: what is no element is as it was.
                dense.fill(0);
                let blank = |bytes: &[u8]| without(bytes, &case.elements, case.bytes);
                assert_eq!(blank(&found), blank(&elements), "gather beside its elements, {what}");
            }
            1 => {
                let mut wanted = array.clone();
                host::scatter(&space, indices, &mut wanted, &elements);
                let marks = Marks::new(&case.index, case.axis, case.size).unwrap();
                let moved = case.operands();
                let once = [operand(&marks.once), marks.marks, marks.position];
                let named = (3, case.axis, case.size);
                let marking = IndexSpace::new(marks.once.shape(), &once, None, named).unwrap().for_kernels();
                let mut memory = vec![0u32; marks.count];
                let sweeps = 1 + draws.below(3);
                let part = marks.count.div_ceil(sweeps) as u64;
                for sweep in 0..sweeps as u64 {
                    let reported: *mut Report = if sweep == 0 { &mut report } else { std::ptr::null_mut() };
                    // SAFETY: the kernel's arguments, inside of memory that is this function's.
                    unsafe {
                        let run = library.get::<Mark>(b"run_scatter_mark").unwrap();
                        run(
                            wide,
                            index_at,
                            memory.as_mut_ptr(),
                            sweep * part,
                            part,
                            &marking,
                            marking.count() as u64,
                            reported,
                            blocks,
                            threads,
                        );
                    }
                }
                let memory = memory.as_ptr();
                if draws.below(2) == 0 {
                    let [index, into, from] = moved;
                    let (full, _) =
                        case.space(&[index, into, from, marks.marks, marks.position]).in_units(addresses);
                    // SAFETY: as above.
                    unsafe {
                        let run = library.get::<CopyLast>(b"run_scatter_last").unwrap();
                        let count = full.count() as u64;
                        run(wide, index_at, array_at, elements_at, memory, &full, count, blocks, threads);
                    }
                } else {
                    let offsets = marks.by_targets(&moved, case.axis, case.bytes, named).unwrap();
                    let (offsets, unit) = offsets.in_units(addresses);
                    let library = &libraries[unit.trailing_zeros() as usize];
                    // SAFETY: as above.
                    unsafe {
                        let run = library.get::<CopyMarked>(b"run_scatter_marked").unwrap();
                        let count = offsets.count() as u64;
                        run(memory, array_at, elements_at, &offsets, count, blocks, threads);
                    }
                }
                assert_eq!(on_device[0].bytes_mut(), wanted, "scatter, {what}");
            }
            _ => {
                // One element for each offset: the first along the axis.
                let one = |layout: &Layout| layout.narrow(case.axis as isize, 0, 1).unwrap();
                let (index, elements_of) = (one(&case.index), one(&case.elements));
                let case = Case { index, elements: elements_of, indices: case.indices.clone(), ..case };
                let space = case.space(&case.operands());
                let mut wanted = array.clone();
                host::scatter(&space, indices, &mut wanted, &elements);
                let (in_units, unit) = space.in_units(addresses);
                let library = &libraries[unit.trailing_zeros() as usize];
                let count = in_units.count() as u64;
                // SAFETY: as above.
                unsafe {
                    let run = library.get::<Copy>(b"run_scatter").unwrap();
                    run(
                        wide,
                        index_at,
                        array_at,
                        elements_at,
                        &in_units,
                        count,
                        &mut report,
                        blocks,
                        threads,
                    );
                }
                assert_eq!(on_device[0].bytes_mut(), wanted, "scatter of single elements, {what}");
                case.check_report(&report, taken, &what);
                continue;
            }
        }
        case.check_report(&report, taken, &what);
    }
    assert!(units.iter().all(|count| *count > 50), "{units:?}");
}

/// A layout's elements in row-major order.
fn dense_of(memory: &[u8], layout: &Layout, bytes: usize) -> Vec<u8> {
    offsets(layout).flat_map(|offset| memory[offset * bytes..(offset + 1) * bytes].to_vec()).collect()
}

/// The memory with zeros for the layout's elements.
fn without(memory: &[u8], layout: &Layout, bytes: usize) -> Vec<u8> {
    let mut rest = memory.to_vec();
    offsets(layout).for_each(|offset| rest[offset * bytes..(offset + 1) * bytes].fill(0));
    rest
}

fn offsets(layout: &Layout) -> impl Iterator<Item = usize> + '_ {
    (0..layout.count()).map(|index| {
        let mut rest = index;
        let mut offset = layout.offset() as isize;
        for axis in (0..layout.rank()).rev() {
            offset += (rest % layout.shape()[axis]) as isize * layout.strides()[axis];
            rest /= layout.shape()[axis];
        }
        offset as usize
    })
}

#[test]
fn the_kernels_copy_what_the_cpu_copies() {
    prove(0, "the_kernels_copy_what_the_cpu_copies");
}

#[test]
fn the_kernels_for_far_places_do_too() {
    prove(1, "the_kernels_for_far_places_do_too");
}

#[test]
fn the_kernels_for_large_spaces_do_too() {
    prove(2, "the_kernels_for_large_spaces_do_too");
}
