//! Products that are set up while the ones before them end, beside the same products one after the other.

use half::bf16;
use selvedge::gemm::gemm;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, GEOMETRIC_MEAN};
use crate::harness::turns::{geometric_mean, pairs as turns, speed};
use crate::pair::{Shape, Sides};

const METHOD: &str = "Device time of one product, by events around a graph of several, all of which read and write the same \
     contiguous matrices of nearly normal numbers. The reference is the same kernels in such a graph, launched so that each \
     begins when the one before has ended. The results have equal bits.";

/// Squares that do not fill the card.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let sides = Sides::open(bare, options)?;
    let title = "Products that overlap the ones before them, bf16, small squares";
    let mut recorder = Recorder::new(bare, "gemm_programmatic", title, METHOD)?;
    let mut all = Vec::new();
    for size in [256, 512, 1024, 2048] {
        let pairs = times(&sides, options, Shape::new(size, size, size))?;
        recorder.add(speed(&format!("{size}"), IN_ORDER, &pairs, None)?);
        all.push(pairs);
    }
    recorder.add(speed(GEOMETRIC_MEAN, IN_ORDER, &geometric_mean(&all), None)?);
    recorder.finish(&options.out)
}

const IN_ORDER: &str = "the same, one after the other";

/// Microseconds (overlapping, in order) of one product in each round, after the results were compared.
fn times(sides: &Sides<'_>, options: &Options, shape: Shape) -> Result<Vec<(f64, f64)>, Failure> {
    let (Shape { m, n, k, .. }, stream) = (shape, &sides.stream);
    let [a, b] = sides.numbers::<bf16>(m * k, k * n)?;
    let (mut overlapping, mut in_order) = (stream.zeros::<bf16>(m * n)?, stream.zeros::<bf16>(m * n)?);
    let launches = shape.launches();
    let mut graphs = Vec::new();
    for (overlaps, c) in [(true, &mut overlapping), (false, &mut in_order)] {
        let product = shape.product().overlapping(overlaps);
        graphs.push(sides.record(launches, |stream, _| gemm(stream, &product, 1.0, &a, &b, 0.0, c))?);
    }
    let pairs = turns(
        options.turns(3, 22),
        || sides.time(&graphs[0], launches),
        || sides.time(&graphs[1], launches),
    )?;
    if stream.download(&overlapping)? != stream.download(&in_order)? {
        return Err(format!("{shape:?}: products that overlap have other bits").into());
    }
    Ok(pairs)
}
