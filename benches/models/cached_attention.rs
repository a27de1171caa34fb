//! Attention of one query of each sequence against a cache, beside the driver's copy of as many bytes.

use half::bf16;
use selvedge::attention::{DecodeOperands, DecodeWorkspace, Problem, decode};
use selvedge::driver::DeviceSlice;
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::{DType, Layout};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::program::is_wanted;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

/// Query heads, key heads and head dimension of Llama 3 8B.
const HEADS: [usize; 2] = [32, 8];
const DIMENSION: usize = 128;
/// Launches of a graph, which is timed.
const LAUNCHES: usize = 16;
/// Bytes that are read before a cache is read again: more than the L2 cache holds.
const ROTATED: usize = 512 << 20;

/// Batches and lengths of the caches, and the shares of the copy's bandwidth to reach.
const CASES: [(usize, usize, Option<f64>); 5] =
    [(1, 8192, Some(0.8)), (64, 8192, Some(0.93)), (1, 1024, None), (64, 1024, None), (1, 131_072, None)];

const METHOD: &str = "Device time of one launch, by events around a graph of 16, beside cuMemcpyDtoDAsync of as many bytes (read and written) as a \
     launch reads of its cache. 32 query heads and 8 key heads of 128, bf16, one query of each sequence. Caches of 512 MB together take \
     turns, so that the L2 cache does not hold them.";

pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder =
        Recorder::new(bare, "decode_attention", "Attention of one query against a cache", METHOD)?;
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    for (batch, length, goal) in CASES {
        let name = format!("batch {batch}, {length} keys");
        if !is_wanted(&name) {
            continue;
        }
        let [heads, key_heads] = HEADS;
        let cache_elements = batch * key_heads * length * DIMENSION;
        let cache_bytes = 2 * cache_elements * size_of::<bf16>();
        let count = ROTATED.div_ceil(cache_bytes).max(2);
        let draw = |seed, elements| Generator::new(seed).randn(&[elements], DType::BF16, &device);
        let mut caches: Vec<[Tensor; 2]> = (0..count as u64)
            .map(|index| Ok([draw(2 * index, cache_elements)?, draw(2 * index + 1, cache_elements)?]))
            .collect::<selvedge::Result<_>>()?;
        let queries = draw(1000, batch * heads * DIMENSION)?;
        let mut result = Tensor::empty(&[batch * heads * DIMENSION], DType::BF16, &device)?;
        let of_queries = Layout::contiguous(&[batch, heads, 1, DIMENSION])?;
        let of_cache = Layout::contiguous(&[batch, key_heads, length, DIMENSION])?;
        let problem = Problem::new(DType::BF16, of_queries, of_cache, of_cache);
        let mut workspace = DecodeWorkspace::new(&stream, &problem)?;
        let source = Tensor::zeros(&[cache_bytes / 2], DType::U8, &device)?;
        let mut target = Tensor::zeros(&[cache_bytes / 2], DType::U8, &device)?;
        let from = source.device_slice::<u8>()?.address();
        let to = target.device_slice_mut::<u8>()?.address();
        let mut run = |index: usize| -> selvedge::Result<()> {
            let [keys, values] = &mut caches[index];
            let queries: DeviceSlice<'_, bf16> = queries.device_slice()?;
            let operands = DecodeOperands {
                queries: queries.reinterpret()?,
                keys: keys.device_slice_mut::<bf16>()?.reinterpret()?,
                values: values.device_slice_mut::<bf16>()?.reinterpret()?,
                lengths: None,
                new: None,
                angles: None,
            };
            let to = result.device_slice_mut::<bf16>()?.reinterpret()?;
            decode(&stream, &problem, operands, (to, &of_queries), &mut workspace)
        };
        run(0)?;
        let (graph, ()) = stream.capture(|_| (0..LAUNCHES).try_for_each(|index| run(index % count)))?;
        let graph = graph.instantiate()?;
        let subject = Subject {
            name: &name,
            against: "cuMemcpyDtoDAsync of as many bytes",
            unit: Unit::Microseconds,
            bytes: Some((cache_bytes as u64, (cache_bytes / 2 * 2) as u64)),
            rule: Rule::Speed,
            goal,
        };
        let one = |milliseconds: f64| milliseconds * 1e3 / LAUNCHES as f64;
        let figure = turns(
            options.turns(3, 30),
            &subject,
            // SAFETY: the streams live until the end of this function.
            || Ok(one(unsafe { bare.device_time(stream.as_raw(), || Ok(graph.launch(&stream)?)) }?)),
            || {
                let copy = || bare.copy(to, from, cache_bytes / 2);
                // SAFETY: as above.
                Ok(one(unsafe { bare.device_time(bare.stream, || (0..LAUNCHES).try_for_each(|_| copy())) }?))
            },
        )?;
        let rate = cache_bytes as f64 / figure.own.median / 1e6;
        println!("  {name}: {:.1} us, {rate:.2} TB/s", figure.own.median);
        recorder.add(figure);
    }
    recorder.finish(&options.out)
}
