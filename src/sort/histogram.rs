//! Counts of elements of device memory in bins, by the kernels of `csrc/kernels/histogram.cu`.

use bytemuck::{Pod, Zeroable};

use crate::driver::{ByValue, DeviceSlice, DeviceSliceMut, Function, LaunchConfig, Stream};
use crate::error::{Error, Result};
use crate::images::{self, DeviceProperties, Entry};
use crate::types::{DType, Element};

use super::check_length;

const FAMILY: &str = "histogram";
const INDEX: [&str; 2] = ["histogram_index_i32", "histogram_index_i64"];
/// By the dtypes f16, bf16, f32 and f64.
const RANGE: [&str; 4] =
    ["histogram_range_f16", "histogram_range_bf16", "histogram_range_f32", "histogram_range_f64"];
const EDGES: [&str; 2] = ["histogram_edges_f32", "histogram_edges_f64"];

/// Threads of a block. This and the two constants below are those of `histogram.cu`.
const THREADS: u32 = 512;
/// Bytes of the elements in a tile.
const TILE_BYTES: usize = THREADS as usize * 4 * 16;
/// The shift that stands for counters in global memory.
const NO_COPIES: u32 = 32;

/// Dynamic shared memory that every device gives a block.
const MAX_SHARED: usize = 48 << 10;
/// The counters of a block that leave room for as many threads as a multiprocessor has.
const COUNTERS: usize = 8 << 10;
/// Blocks of a multiprocessor: those that fit at once.
const BLOCKS: usize = 2;
/// The most bins of [`count_in_range`] and [`count_between_edges`], whose kernels have bins of 32 bits.
pub const MAX_BINS: usize = u32::MAX as usize - 2;

/// Bins of equal width; exactly `Range` of `histogram.cu`. An estimate of a bin is the least and greatest number inside, a
/// base, a scale, and the margin below which its absolute error is.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct RangeRule {
    least: f64,
    width: f64,
    count: f64,
    wide: [f64; 5],
    narrow: [f32; 5],
    unused: u32,
}

/// Returns the least f32 that is not below `x`.
fn at_least(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) < x { near.next_up() } else { near }
}

impl RangeRule {
    /// The bounds are finite and increase.
    ///
    /// A position is (x - base) scale. Let u be the unit roundoff of the estimate, 2^-24 or 2^-53. The rounded base is off by
    /// |least| u, and by 0 in f64; the rounded scale, difference and product by a factor of 1 + u each; the f64 rule by
    /// less than 4 units of f64. So the position is off by count u (|least| / width + 3) at most, and in f64 by 7 count u; the
    /// margins are larger. An infinite margin makes every element unsure.
    fn new([least, most]: [f64; 2], bins: usize) -> RangeRule {
        let (width, count) = (most - least, bins as f64);
        let scale = count / width;
        let margin = count * 2f64.powi(-53) * 10.0;
        let is_usable = scale.is_normal() && width.is_normal() && margin < 0.5;
        let wide = [least, most, least, scale, if is_usable { margin } else { f64::INFINITY }];
        let margin = count * 2f64.powi(-24) * (least.abs() / width * 1.01 + 5.0);
        // Far from the bounds of f32 no operation overflows, and the error of a subnormal number is small beside the margin.
        let is_usable = is_usable
            && margin < 0.5
            && [scale, width].iter().all(|x| (1e-30..1e30).contains(x))
            && least.abs() < 1e30;
        let margin = if is_usable { margin as f32 } else { f32::INFINITY };
        let narrow = [at_least(least), -at_least(-most), least as f32, scale as f32, margin];
        RangeRule { least, width, count, wide, narrow, unused: 0 }
    }
}

fn function(stream: &Stream, entry: &'static str) -> Result<Function> {
    images::kernel(&stream.device(), FAMILY, Entry::Name(entry))
}

/// Returns the launch for `bytes` of elements, and the shift of the counters. The block has `reserved` bytes of shared
/// memory beside its counters.
fn configuration(stream: &Stream, bytes: usize, bins: usize, reserved: usize) -> Result<(LaunchConfig, u32)> {
    let properties = DeviceProperties::from_device(&stream.device())?;
    let most = BLOCKS * properties.multiprocessors as usize;
    // A counter of 32 bits has room for the elements of a block.
    let blocks = bytes.div_ceil(TILE_BYTES).clamp(1, most).max(bytes >> 30);
    let Ok(blocks) = i32::try_from(blocks) else {
        let wanted = format!("at most {} bytes", (i32::MAX as usize) << 30);
        return Err(Error::invalid("histogram", format!("{bytes} bytes of elements"), wanted));
    };
    let fits = bins <= MAX_SHARED && bins * size_of::<u32>() + reserved <= MAX_SHARED;
    let mut shift = if fits { 0 } else { NO_COPIES };
    while fits && shift < 5 && bins << (shift + 1) <= COUNTERS {
        shift += 1;
    }
    let counters = if fits { (bins << shift) * size_of::<u32>() } else { 0 };
    let config = LaunchConfig::new(blocks as u32, THREADS).shared((reserved + counters) as u32);
    Ok((config, shift))
}

/// Adds to each of the counts the number of indices that name it, as [`tally_host`](super::tally_host) does. Indices are
/// i32 or i64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for other indices, and the errors of loading an image and of a launch.
pub fn tally<'a, Index: Element>(
    stream: &Stream,
    indices: DeviceSlice<'a, Index>,
    counts: impl Into<DeviceSliceMut<'a, i64>>,
) -> Result<()> {
    const OPERATION: &str = "bincount";
    let counts = counts.into();
    let entry = match Index::DTYPE {
        DType::I32 => INDEX[0],
        DType::I64 => INDEX[1],
        other => {
            let (wanted, found) = ("indices of i32 or i64".to_owned(), other.to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
    };
    let (n, bins) = (indices.len(), counts.len());
    if n == 0 || bins == 0 {
        return Ok(());
    }
    let (config, shift) = configuration(stream, n * size_of::<Index>(), bins, 0)?;
    // SAFETY: the kernel reads n indices and writes to the counts below `bins`. The block's counters have their shared memory.
    unsafe {
        function(stream, entry)?.launch(stream, config, (indices, n as u64, counts, bins as u64, shift))
    }
}

fn check_bins(operation: &'static str, bins: usize) -> Result<()> {
    if bins <= MAX_BINS {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("{bins} bins"), format!("at most {MAX_BINS}")))
}

fn check_elements(operation: &'static str, dtype: DType, elements: &DeviceSlice<'_, u8>) -> Result<()> {
    let size = dtype.size();
    if elements.len().is_multiple_of(size) && elements.address().is_multiple_of(size as u64) {
        return Ok(());
    }
    let found = format!("{} bytes at address {:#x}", elements.len(), elements.address());
    Err(Error::invalid(operation, found, format!("whole and aligned elements of {dtype}")))
}

/// Adds to each of the counts the number of elements in its bin, of as many bins of equal width from `bounds[0]` to
/// `bounds[1]`.
///
/// The bin of x is floor((x - least) / (most - least) count), in f64, and at most the last one. Elements outside of the
/// bounds and NaN are in none. `elements` are the bytes of a contiguous array of f16, bf16, f32 or f64, aligned for its
/// dtype.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for other dtypes; [`Error::InvalidArgument`] for bytes that are not whole or aligned elements,
/// for bounds that are not finite or do not increase, for bounds of an infinite distance, and for more than
/// [`MAX_BINS`] counts; the errors of loading an image and of a launch.
pub fn count_in_range<'a>(
    stream: &Stream,
    dtype: DType,
    elements: impl Into<DeviceSlice<'a, u8>>,
    bounds: [f64; 2],
    counts: impl Into<DeviceSliceMut<'a, i64>>,
) -> Result<()> {
    const OPERATION: &str = "histc";
    let (elements, counts) = (elements.into(), counts.into());
    let entry = match dtype {
        DType::F16 => RANGE[0],
        DType::BF16 => RANGE[1],
        DType::F32 => RANGE[2],
        DType::F64 => RANGE[3],
        other => {
            let (wanted, found) = ("f16, bf16, f32 or f64".to_owned(), other.to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
    };
    check_elements(OPERATION, dtype, &elements)?;
    let [least, most] = bounds;
    if !(least < most && (most - least).is_finite()) {
        let found = format!("bounds {least} and {most}");
        return Err(Error::invalid(OPERATION, found, "finite bounds that increase, with a finite distance"));
    }
    let bins = counts.len();
    check_bins(OPERATION, bins)?;
    if elements.is_empty() || bins == 0 {
        return Ok(());
    }
    let (config, shift) = configuration(stream, elements.len(), bins, 0)?;
    let n = (elements.len() / dtype.size()) as u64;
    let rule = ByValue(RangeRule::new(bounds, bins));
    // SAFETY: as in `tally`; a bin is below the number of counts.
    unsafe {
        function(stream, entry)?.launch(stream, config, (elements, n, counts, bins as u64, shift, rule))
    }
}

/// Adds to each of the counts the number of elements between its two neighbours of `edges`, of which there is one more than
/// counts.
///
/// A bin holds its lower edge, and the last one its upper edge too. Elements outside and NaN are in none. Both arrays are
/// the bytes of contiguous f32 or f64, aligned for it. Edges are sorted and not NaN; those of other edges are in any bin.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for other dtypes, [`Error::InvalidArgument`] for bytes that are not whole or aligned elements
/// and for more than [`MAX_BINS`] counts, [`Error::LengthMismatch`] for another number of edges, and the errors of
/// loading an image and of a launch.
pub fn count_between_edges<'a>(
    stream: &Stream,
    dtype: DType,
    elements: impl Into<DeviceSlice<'a, u8>>,
    edges: impl Into<DeviceSlice<'a, u8>>,
    counts: impl Into<DeviceSliceMut<'a, i64>>,
) -> Result<()> {
    const OPERATION: &str = "histogram";
    let (elements, edges, counts) = (elements.into(), edges.into(), counts.into());
    let entry = match dtype {
        DType::F32 => EDGES[0],
        DType::F64 => EDGES[1],
        other => {
            let (wanted, found) = ("f32 or f64".to_owned(), other.to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
    };
    check_elements(OPERATION, dtype, &elements)?;
    check_elements(OPERATION, dtype, &edges)?;
    let (bins, size) = (counts.len(), dtype.size());
    check_bins(OPERATION, bins)?;
    check_length(OPERATION, edges.len() / size, bins + 1)?;
    if elements.is_empty() || bins == 0 {
        return Ok(());
    }
    // Copies of the edges only beside counters.
    let reserved = if edges.len() + bins * size_of::<u32>() <= MAX_SHARED { edges.len() } else { 0 };
    let (config, shift) = configuration(stream, elements.len(), bins, reserved)?;
    let (n, is_staged) = ((elements.len() / size) as u64, u32::from(reserved > 0));
    // SAFETY: as in `tally`; the block has shared memory for its copies of the edges too.
    unsafe {
        let arguments = (elements, n, counts, bins as u64, shift, edges, is_staged);
        function(stream, entry)?.launch(stream, config, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::entries;

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        let mut looked_up = [&INDEX[..], &RANGE, &EDGES].concat();
        looked_up.sort_unstable();
        assert_eq!(entries::declared(FAMILY, "sm_60"), looked_up);
    }

    #[test]
    fn bounds_in_f32_are_the_outermost_numbers_inside() {
        let third = 1.0 / 3.0;
        for (bounds, low, high) in [
            ([-1.0, 2.0], -1.0, 2.0),
            ([third, 3.0 * third + 1e-9], 0.333_333_34, 1.0),
            ([-third, third], -0.333_333_3, 0.333_333_3),
            ([-1e300, 1e300], f32::MIN, f32::MAX),
            ([1e-300, 1.0], f32::from_bits(1), 1.0),
        ] {
            let rule = RangeRule::new(bounds, 7);
            assert_eq!(rule.narrow[..2], [low, high], "{bounds:?}");
        }
    }

    #[test]
    fn estimates_without_room_for_their_error_are_not_used() {
        for (bounds, bins, narrow, wide) in [
            ([0.0, 1.0], 256, true, true),
            ([1e6, 1e6 + 1.0], 256, false, true),
            ([0.0, 1.0], 1 << 22, false, true),
            ([0.0, 1e-40], 4, false, true),
            ([-1e35, 1e35], 4, false, true),
            ([0.0, 1e-310], 4, false, false),
        ] {
            let rule = RangeRule::new(bounds, bins);
            let is_used = (rule.narrow[4] < 0.5, rule.wide[4] < 0.5);
            assert_eq!(is_used, (narrow, wide), "{bounds:?} in {bins}");
        }
    }
}
