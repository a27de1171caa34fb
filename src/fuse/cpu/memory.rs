//! Loads and stores of blocks through any layout.

use bytemuck::Pod;

use super::block::{Block, Lanes};
use crate::fuse::ir::program::parts;
use crate::fuse::plan::space::Space;
use crate::types::DType;

/// The memory of an operand.
#[derive(Clone)]
pub(in crate::fuse) struct HostOperand {
    pub(in crate::fuse) memory: *mut u8,
    pub(in crate::fuse) dtype: DType,
}

/// Calls `each` with (lane, lanes, offset, stride) for each run along the innermost dimension within the
/// `count` elements starting at linear index `start`.
#[inline(always)]
pub(super) fn for_each_run(
    space: &Space,
    operand: usize,
    start: usize,
    count: usize,
    mut each: impl FnMut(usize, usize, isize, isize),
) {
    let strides = space.strides(operand);
    let (mut lane, mut index) = (0, start);
    while lane < count {
        // A single dimension needs no division, which would cost several a block.
        let (along, mut rest) = match index < space.sizes[0] {
            true => (index, 0),
            false => (index % space.sizes[0], index / space.sizes[0]),
        };
        let length = (space.sizes[0] - along).min(count - lane);
        let mut offset = space.offsets[operand] as isize + along as isize * strides[0];
        for (size, stride) in space.sizes[1..].iter().zip(&strides[1..]) {
            offset += (rest % size) as isize * stride;
            rest /= size;
        }
        each(lane, length, offset, strides[0]);
        lane += length;
        index += length;
    }
}

/// Returns the offset of the first of `count` elements from `start` on, if they are contiguous.
#[inline(always)]
pub(super) fn contiguous_from(space: &Space, operand: usize, start: usize, count: usize) -> Option<isize> {
    if space.is_linear(operand) {
        return Some(space.offsets[operand] as isize + start as isize);
    }
    let left = space.sizes[0] - start % space.sizes[0];
    if left < count || count > 1 && space.strides(operand)[0] != 1 {
        return None;
    }
    let mut first = None;
    for_each_run(space, operand, start, count, |_, _, offset, _| first = Some(offset));
    first
}

impl HostOperand {
    /// Loads part `part` of `count` elements.
    ///
    /// # Safety
    ///
    /// The space's elements of `operand` must be within the memory, and nobody may write the elements that
    /// are read.
    #[inline(always)]
    pub(in crate::fuse) unsafe fn load(
        &self,
        space: &Space,
        operand: usize,
        part: usize,
        start: usize,
        count: usize,
        block: &mut Block,
    ) {
        macro_rules! convert {
            ($type:ty => $lane:ty: $convert:expr) => {{
                let spacing = parts(self.dtype) as isize;
                let memory = self.memory.cast_const().cast::<$type>().wrapping_add(part);
                let lanes = <$lane as Lanes>::of_mut(block, count);
                let convert = $convert;
                for_each_run(space, operand, start, count, |lane, length, offset, stride| {
                    let lanes = &mut lanes[lane..lane + length];
                    // SAFETY: the caller guarantees it.
                    unsafe {
                        gather(memory.wrapping_offset(offset * spacing), stride * spacing, lanes, convert)
                    };
                });
            }};
        }
        match self.dtype {
            DType::Bool => convert!(u8 => u32: |x| u32::from(x != 0)),
            DType::U8 | DType::F8E4M3 | DType::F8E5M2 => convert!(u8 => u32: u32::from),
            DType::I8 => convert!(i8 => u32: |x| x as u32),
            DType::U16 => convert!(u16 => u32: u32::from),
            DType::I16 => convert!(i16 => u32: |x| x as u32),
            DType::U32 | DType::I32 => convert!(u32 => u32: |x| x),
            DType::U64 | DType::I64 => convert!(u64 => u64: |x| x),
            DType::F16 => convert!(u16 => f32: widen_half),
            DType::BF16 => convert!(u16 => f32: |x| f32::from_bits(u32::from(x) << 16)),
            DType::F32 | DType::C64 => convert!(f32 => f32: |x| x),
            DType::F64 | DType::C128 => convert!(f64 => f64: |x| x),
        }
    }

    /// Stores `count` elements.
    ///
    /// # Safety
    ///
    /// As [`load`](Self::load), and nobody else may access the elements that are written.
    #[inline(always)]
    pub(in crate::fuse) unsafe fn store(
        &self,
        space: &Space,
        operand: usize,
        start: usize,
        count: usize,
        values: [&Block; 2],
    ) {
        macro_rules! convert {
            ($lane:ty => $type:ty: $convert:expr) => {{
                let spacing = parts(self.dtype) as isize;
                for part in 0..parts(self.dtype) {
                    let memory = self.memory.cast::<$type>().wrapping_add(part);
                    let lanes = <$lane as Lanes>::of(values[part], count);
                    for_each_run(space, operand, start, count, |lane, length, offset, stride| {
                        let lanes = &lanes[lane..lane + length];
                        // SAFETY: the caller guarantees it.
                        unsafe {
                            scatter(
                                memory.wrapping_offset(offset * spacing),
                                stride * spacing,
                                lanes,
                                $convert,
                            )
                        };
                    });
                }
            }};
        }
        match self.dtype {
            DType::Bool | DType::U8 | DType::I8 | DType::F8E4M3 | DType::F8E5M2 => {
                convert!(u32 => u8: |x| x as u8)
            }
            DType::U16 | DType::I16 => convert!(u32 => u16: |x| x as u16),
            DType::U32 | DType::I32 => convert!(u32 => u32: |x| x),
            DType::U64 | DType::I64 => convert!(u64 => u64: |x| x),
            DType::F16 => convert!(f32 => u16: narrow_half),
            DType::BF16 => convert!(f32 => u16: |x| (x.to_bits() >> 16) as u16),
            DType::F32 | DType::C64 => convert!(f32 => f32: |x| x),
            DType::F64 | DType::C128 => convert!(f64 => f64: |x| x),
        }
    }
}

/// Loads and converts elements that are `stride` apart.
///
/// # Safety
///
/// `lanes.len()` elements, `stride` apart, must be readable from `memory`.
#[inline(always)]
unsafe fn gather<T: Pod, L: Copy>(
    memory: *const T,
    stride: isize,
    lanes: &mut [L],
    convert: impl Fn(T) -> L,
) {
    if stride == 1 {
        for (index, lane) in lanes.iter_mut().enumerate() {
            // SAFETY: the caller guarantees it.
            *lane = convert(unsafe { memory.add(index).read() });
        }
        return;
    }
    for (index, lane) in lanes.iter_mut().enumerate() {
        // SAFETY: the caller guarantees it.
        *lane = convert(unsafe { memory.offset(index as isize * stride).read() });
    }
}

/// Converts and stores elements that are `stride` apart.
///
/// # Safety
///
/// `lanes.len()` elements, `stride` apart, must be writable from `memory`.
#[inline(always)]
unsafe fn scatter<T: Pod, L: Copy>(memory: *mut T, stride: isize, lanes: &[L], convert: impl Fn(L) -> T) {
    if stride == 1 {
        for (index, &lane) in lanes.iter().enumerate() {
            // SAFETY: the caller guarantees it.
            unsafe { memory.add(index).write(convert(lane)) };
        }
        return;
    }
    for (index, &lane) in lanes.iter().enumerate() {
        // SAFETY: the caller guarantees it.
        unsafe { memory.offset(index as isize * stride).write(convert(lane)) };
    }
}

/// Converts f16 to f32. It shifts the bits into place and scales the result, which also converts subnormal
/// numbers correctly.
#[inline(always)]
fn widen_half(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff);
    let number = (f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000)).to_bits();
    let number = if magnitude >= 0x7c00 { number | 0x7f80_0000 } else { number };
    f32::from_bits(number | u32::from(bits & 0x8000) << 16)
}

/// Converts an f32 that is already rounded to f16, or a NaN, to f16.
#[inline(always)]
fn narrow_half(x: f32) -> u16 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let normal = (magnitude.wrapping_sub(0x3800_0000) >> 13).min(0x7c00);
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let number = if magnitude < 0x3880_0000 { small } else { normal };
    let number = if x.is_nan() { 0x7fff } else { number };
    (number | bits >> 16 & 0x8000) as u16
}

/// Writes an element of `size` bytes `count` times.
///
/// # Safety
///
/// `from` has an element, and `to` has `count` elements.
#[cfg(target_arch = "x86_64")]
pub(in crate::fuse) unsafe fn spread(from: *const u8, to: *mut u8, size: usize, count: usize) {
    macro_rules! fill {
        ($type:ty) => {{
            let to = to.cast::<$type>();
            // SAFETY: the caller guarantees it.
            unsafe {
                let element = from.cast::<$type>().read_unaligned();
                (0..count).for_each(|index| to.add(index).write_unaligned(element));
            }
        }};
    }
    // A size that is known makes vector stores of the loop.
    match size {
        1 => fill!(u8),
        2 => fill!(u16),
        4 => fill!(u32),
        8 => fill!(u64),
        _ => fill!([u64; 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_come_and_go() {
        for bits in 0..=u16::MAX {
            let x = half::f16::from_bits(bits);
            let wide = widen_half(bits);
            if x.is_nan() {
                assert!(wide.is_nan() && half::f16::from_bits(narrow_half(wide)).is_nan());
            } else {
                assert_eq!(wide.to_bits(), x.to_f32().to_bits());
                assert_eq!(narrow_half(wide), bits);
            }
        }
    }
}
