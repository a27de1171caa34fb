//! Chains of products, each of which reads what the one before it wrote, and writes where the one before that was read.
//!
//! Each is multiplied by a matrix that moves columns one on and changes the signs of some, so every element of the last result
//! is one of the first operand: an element that was read before it was there, or overwritten too early, is another one.

use half::bf16;
use selvedge::driver::{DeviceBuffer, Stream};
use selvedge::gemm::{Choice, Engine, GemmAlgorithm, Product, gemm};

use crate::support::Outcome;

/// A chain of products of `rows` x `columns` by `columns` x `columns`.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    pub rows: usize,
    pub columns: usize,
    pub products: usize,
    /// How they are multiplied; as `wgmma` likes without it.
    pub algorithm: Option<GemmAlgorithm>,
}

/// Every so many products a kernel of another kind comes between, and a fill of memory that is not used any more.
const BETWEEN: (usize, usize) = (11, 7);

impl Chain {
    /// Whole numbers that bf16 holds.
    fn first(&self) -> Vec<bf16> {
        let value = |index: usize| (index * 37 + index / self.columns * 5) % 251;
        (0..self.rows * self.columns).map(|index| bf16::from_f32(value(index) as f32 - 125.0)).collect()
    }

    fn sign(column: usize) -> f32 {
        if column.is_multiple_of(3) { -1.0 } else { 1.0 }
    }

    fn moves(&self) -> Vec<bf16> {
        let mut moves = vec![bf16::ZERO; self.columns * self.columns];
        for column in 0..self.columns {
            let to = (column + 1) % self.columns;
            moves[column * self.columns + to] = bf16::from_f32(Chain::sign(column));
        }
        moves
    }

    /// The last result.
    fn wanted(&self) -> Vec<bf16> {
        let (first, columns) = (self.first(), self.columns);
        let mut wanted = vec![bf16::ZERO; first.len()];
        for column in 0..columns {
            let sign: f32 = (0..self.products).map(|step| Chain::sign((column + step) % columns)).product();
            let to = (column + self.products) % columns;
            for row in 0..self.rows {
                wanted[row * columns + to] = bf16::from_f32(first[row * columns + column].to_f32() * sign);
            }
        }
        wanted
    }

    /// Multiplies, by three products on each stream in turn. The memory of a result that has been read is that of the one after
    /// the next.
    fn run(
        &self,
        streams: &[Stream],
        first: &DeviceBuffer<bf16>,
        moves: &DeviceBuffer<bf16>,
    ) -> selvedge::Result<DeviceBuffer<bf16>> {
        let product = Product::new(self.rows, self.columns, self.columns);
        let tensor_cores = match self.algorithm {
            Some(algorithm) => product.with_algorithm(algorithm),
            None => product.by(Choice::Only(Engine::Wgmma)),
        };
        let mut last: Option<DeviceBuffer<bf16>> = None;
        for step in 0..self.products {
            let stream = &streams[step / 3 % streams.len()];
            let mut next = stream.uninitialized(self.rows * self.columns)?;
            let product = match step % BETWEEN.0 {
                4 => product.by(Choice::Only(Engine::Mma)),
                _ => tensor_cores,
            };
            gemm(stream, &product, 1.0, last.as_ref().unwrap_or(first), moves, 0.0, &mut next)?;
            last = Some(next);
            if step % BETWEEN.1 == 5 {
                stream.fill(&mut stream.uninitialized(self.rows * self.columns)?, bf16::NAN)?;
            }
        }
        last.map_or_else(|| streams[0].uninitialized(0), Ok)
    }

    fn compare(&self, stream: &Stream, result: &DeviceBuffer<bf16>, what: &str) -> Outcome {
        let (found, wanted) = (stream.download(result)?, self.wanted());
        // By their bits, but for the sign of a zero, which a sum of zeros does not keep.
        let differs = |(found, wanted): (&bf16, &bf16)| found.to_f32() != wanted.to_f32();
        match found.iter().zip(&wanted).position(differs) {
            None => Ok(()),
            Some(at) => {
                let (row, column) = (at / self.columns, at % self.columns);
                let (found, wanted) = (found[at], wanted[at]);
                Err(format!("{self:?} {what}: {found} at ({row}, {column}), not {wanted}").into())
            }
        }
    }
}

/// The chain on several streams at a time, of which each has its own, and on all of them together.
pub fn on_streams(streams: &[Stream], chain: Chain) -> Outcome {
    let mut all = Vec::new();
    for stream in streams {
        all.push((stream.upload(&chain.first())?, stream.upload(&chain.moves())?));
        stream.synchronize()?;
    }
    let mut results = Vec::new();
    for (stream, (first, moves)) in streams.iter().zip(&all) {
        results.push(chain.run(std::slice::from_ref(stream), first, moves)?);
    }
    let across = all.first().map(|(first, moves)| chain.run(streams, first, moves)).transpose()?;
    for (stream, result) in streams.iter().zip(&results) {
        chain.compare(stream, result, "on a stream")?;
    }
    across.map_or(Ok(()), |result| chain.compare(&streams[0], &result, "across streams"))
}

/// The chain, across streams, as a graph that is launched several times and takes over another capture of the same.
pub fn in_graphs(streams: &[Stream], chain: Chain) -> Outcome {
    let stream = &streams[0];
    let (first, moves) = (stream.upload(&chain.first())?, stream.upload(&chain.moves())?);
    // Modules cannot be loaded during a capture, so they are loaded first.
    chain.run(streams, &first, &moves)?;
    let (graph, result) = stream.capture(|_| chain.run(streams, &first, &moves))?;
    let (other, other_result) = stream.capture(|_| chain.run(streams, &first, &moves))?;
    assert!(graph.nodes()?.len() >= chain.products, "{chain:?}: {:?}", graph.nodes()?);
    let mut graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(stream)?;
    }
    chain.compare(stream, &result, "in a graph")?;
    graph.update(other).map_err(selvedge::Error::from)?;
    graph.launch(stream)?;
    chain.compare(stream, &other_result, "in an updated graph")
}
