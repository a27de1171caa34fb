//! Products of few tiles and a long k by parallel split-K: in graphs, and with equal bits on every run.

use selvedge::driver::Stream;
use selvedge::gemm::{DeviceProperties, Operation, Plan, Product, gemm};
use selvedge::types::DType;

use crate::support::{Numbers, Outcome};

/// m, n and k: slices of one depth, and a rest of k.
const SIZES: [(usize, usize, usize); 2] = [(24, 40, 1024), (33, 20, 1100)];

/// A product of random numbers, twice on the stream and twice by a graph that owns the partials: all have the same bits.
pub fn in_graphs(stream: &Stream) -> Outcome {
    for (m, n, k) in SIZES {
        let mut numbers = Numbers((m + n + k) as u64);
        let mut random = |count: usize| -> Vec<f32> {
            (0..count).map(|_| numbers.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0).collect()
        };
        let (a, b) = (stream.upload(&random(k * m))?, stream.upload(&random(k * n))?);
        let product = Product::new(m, n, k).a(Operation::Transpose);
        let properties = DeviceProperties::from_device(&stream.device())?;
        let plan = Plan::explain(&product, DType::F32, DType::F32, properties)?;
        assert!(plan.slices().len() > 1, "{plan}");
        let multiply = || -> selvedge::Result<_> {
            let mut c = stream.zeros::<f32>(m * n)?;
            gemm(stream, &product, 1.5, &a, &b, 0.0, &mut c)?;
            Ok(c)
        };
        let bits = |c: &_| -> selvedge::Result<Vec<u32>> {
            Ok(stream.download(c)?.into_iter().map(f32::to_bits).collect())
        };
        let wanted = bits(&multiply()?)?;
        assert!(wanted.iter().any(|bits| *bits != 0), "{plan}");
        assert_eq!(bits(&multiply()?)?, wanted, "again: {plan}");
        let (graph, c) = stream.capture(|_| multiply())?;
        let graph = graph.instantiate()?;
        for _ in 0..2 {
            graph.launch(stream)?;
            assert_eq!(bits(&c)?, wanted, "in a graph: {plan}");
        }
    }
    Ok(())
}
