//! The kernels of counts in bins without a GPU, held against the rule in f64 exactly.

use half::{bf16, f16};
use selvedge::driver::Stream;
use selvedge::sort::{count_between_edges, count_in_range, tally, tally_host};
use selvedge::types::Element;

use super::build::Family;
use super::sort::bytes;
use super::{Outcome, emulate, family, with_seeds};
use crate::support::Fake;

const HISTOGRAM: Family = family("histogram.cu", &[], 1, 1);

/// Elements of a tile of f32.
const TILE: usize = 8192;

/// A float with its exact value.
trait Float: Element + Into<f64> {
    fn nearest(x: f64) -> Self;
}

macro_rules! floats {
    ($($float:ty => $nearest:expr;)*) => {$(
        impl Float for $float {
            fn nearest(x: f64) -> Self {
                $nearest(x)
            }
        }
    )*};
}

floats! {
    f16 => f16::from_f64;
    bf16 => bf16::from_f64;
    f32 => |x| x as f32;
    f64 => |x| x;
}

/// The rule of `Tensor::histc`.
fn bin_in_range(x: f64, [least, most]: [f64; 2], bins: usize) -> Option<usize> {
    let bin = ((x - least) / (most - least) * bins as f64).floor().min(bins as f64 - 1.0);
    (x >= least && x <= most).then_some(bin as usize)
}

fn bin_between<Real: PartialOrd>(x: Real, edges: &[Real]) -> Option<usize> {
    let bins = edges.len() - 1;
    let is_inside = x >= edges[0] && x <= edges[bins];
    is_inside.then(|| (edges.iter().filter(|edge| **edge <= x).count() - 1).min(bins - 1))
}

/// Numbers around each edge of a range, outside of it, and special ones.
fn numbers<Real: Float>([least, most]: [f64; 2], bins: usize, count: usize) -> Vec<Real> {
    let edges = (0..=bins).map(|bin| least + (most - least) * bin as f64 / bins as f64);
    let near = edges.flat_map(|edge| [edge, edge * (1.0 + 1e-7), edge * (1.0 - 1e-7), edge * (1.0 + 1e-15)]);
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, least, most];
    let outside = [least - (most - least) / 3.0, most + (most - least) / 3.0];
    let spread = bytes(count * 2, 0xff)
        .chunks(2)
        .map(|pair| f64::from(pair[0]) / 256.0 + f64::from(pair[1]) / 65536.0)
        .map(|part| least + (most - least) * (part * 1.1 - 0.05))
        .collect::<Vec<_>>();
    near.chain(special).chain(outside).chain(spread).map(Real::nearest).collect()
}

fn same(counts: &[i64], wanted: &[i64], case: &dyn Fn() -> String) -> Outcome {
    if counts == wanted {
        return Ok(());
    }
    let at = counts.iter().zip(wanted).position(|(found, wanted)| found != wanted).unwrap_or(0);
    Err(format!("{}: bin {at} has {} and not {}", case(), counts[at], wanted[at]).into())
}

/// Counts elements behind some others, so that the first is not aligned for packs.
fn check_range<Real: Float>(
    stream: &Stream,
    elements: &[Real],
    bounds: [f64; 2],
    bins: usize,
    skipped: usize,
) -> Outcome {
    let mut wanted = vec![5; bins];
    for x in &elements[skipped..] {
        bin_in_range((*x).into(), bounds, bins).into_iter().for_each(|bin| wanted[bin] += 1);
    }
    let memory = stream.upload(bytemuck::cast_slice::<Real, u8>(elements))?;
    let mut counts = stream.upload(&vec![5i64; bins])?;
    let part = memory.slice(skipped * size_of::<Real>()..)?;
    count_in_range(stream, Real::DTYPE, part, bounds, &mut counts)?;
    let case = || format!("{} of {}, {bounds:?} in {bins}, behind {skipped}", elements.len(), Real::DTYPE);
    same(&stream.download(&counts)?, &wanted, &case)
}

fn check_edges<Real: Float + PartialOrd>(stream: &Stream, elements: &[Real], edges: &[f64]) -> Outcome {
    let edges: Vec<Real> = edges.iter().copied().map(Real::nearest).collect();
    let bins = edges.len() - 1;
    let mut wanted = vec![0; bins];
    for x in elements {
        bin_between(*x, &edges).into_iter().for_each(|bin| wanted[bin] += 1);
    }
    let memory = stream.upload(bytemuck::cast_slice::<Real, u8>(elements))?;
    let edge_memory = stream.upload(bytemuck::cast_slice::<Real, u8>(&edges))?;
    let mut counts = stream.zeros::<i64>(bins)?;
    count_between_edges(stream, Real::DTYPE, &memory, &edge_memory, &mut counts)?;
    same(&stream.download(&counts)?, &wanted, &|| {
        format!("{} of {}, {bins} edges", elements.len(), Real::DTYPE)
    })
}

fn check_indices<Index: Element + Into<i64>>(stream: &Stream, indices: &[Index], bins: usize) -> Outcome {
    let wide: Vec<i64> = indices.iter().map(|index| (*index).into()).collect();
    let mut wanted = vec![7; bins];
    tally_host(&wide, &mut wanted);
    let (memory, mut counts) = (stream.upload(indices)?, stream.upload(&vec![7i64; bins])?);
    tally(stream, memory.slice(..)?, &mut counts)?;
    same(&stream.download(&counts)?, &wanted, &|| format!("{} of {}", indices.len(), Index::DTYPE))
}

fn every_float(stream: &Stream, bounds: [f64; 2], bins: usize) -> Outcome {
    check_range(stream, &numbers::<f16>(bounds, bins, 300), bounds, bins, 0)?;
    check_range(stream, &numbers::<bf16>(bounds, bins, 300), bounds, bins, 1)?;
    check_range(stream, &numbers::<f32>(bounds, bins, 300), bounds, bins, 3)?;
    check_range(stream, &numbers::<f64>(bounds, bins, 300), bounds, bins, 1)
}

/// Child: counts of every dtype around the edges of bins and the sizes at which the kernels change.
pub fn histograms(fake: &Fake) -> Outcome {
    emulate(fake, &[HISTOGRAM])?;
    with_seeds(1, |stream| {
        // One copy of the counters a lane, fewer, one, and none; and estimates that have no room for their error.
        for bins in [1, 7, 256, 300, 5000, 9000, 13_000] {
            check_range(stream, &numbers::<f32>([-1.0, 2.0], bins, 300), [-1.0, 2.0], bins, 2)?;
        }
        for bounds in
            [[0.0, 1.0], [-3.0, 0.1], [1000.0, 1001.0], [1e6, 1e6 + 1.0], [1e-42, 1e-40], [-1e300, 1e300]]
        {
            every_float(stream, bounds, 10)?;
        }
        // Tiles and their surroundings, at the edges of bins in particular.
        for length in [0, 1, 3, 5, TILE - 1, TILE, TILE + 3, 2 * TILE + 5] {
            let elements = numbers::<f32>([0.0, 8.0], 64, length);
            check_range(stream, &elements[elements.len() - length..], [0.0, 8.0], 64, 0)?;
        }
        let edges: Vec<f32> = (0..3 * TILE).map(|at| (at % 77) as f32 / 7.0).collect();
        check_range(stream, &edges, [0.0, 10.0], 70, 1)?;
        check_range(stream, &vec![0f32; TILE + 9], [0.0, 1.0], 256, 0)?;
        check_range(stream, &numbers::<f16>([-4.0, 4.0], 100, 3 * TILE), [-4.0, 4.0], 100, 3)?;
        check_range(stream, &numbers::<f64>([-4.0, 4.0], 100, TILE), [-4.0, 4.0], 100, 0)?;

        let equal: Vec<f64> = (0..=300).map(|at| f64::from(at) / 100.0 - 1.0).collect();
        let uneven = [-1.0, -1.0, -0.5, 0.0, 0.001, 0.002, 1.5, 1.5, 2.0, 2.0];
        let infinite = [f64::NEG_INFINITY, -1.0, 0.0, 0.0, 1.0, f64::INFINITY];
        let many: Vec<f64> = (0..20_000).map(|at| f64::from(at) / 1e4).collect();
        for edges in [&equal[..], &uneven, &infinite, &[0.5, 0.5], &[-1.0, 2.0], &many[..7000], &many] {
            check_edges(stream, &numbers::<f32>([-1.0, 2.0], 300, 500), edges)?;
            check_edges(stream, &numbers::<f64>([-1.0, 2.0], 300, 500), edges)?;
        }
        check_edges(stream, &numbers::<f32>([-1.0, 2.0], 300, 2 * TILE), &uneven)?;

        let indices: Vec<i32> = bytes(TILE + 100, 0xff).into_iter().map(|byte| i32::from(byte) - 9).collect();
        let wide: Vec<i64> = indices.iter().map(|index| i64::from(*index) * 3_000_000_000).collect();
        for bins in [1, 100, 3000, 13_000] {
            check_indices(stream, &indices, bins)?;
            check_indices(stream, &wide, bins)?;
            check_indices(stream, &indices.iter().copied().map(i64::from).collect::<Vec<_>>(), bins)?;
        }
        Ok(())
    })
}
