//! Batch invariance: the bits of a row of a product, and of a sequence's logits, beside any others. Shared by the CPU's tests and the
//! device suite.

use selvedge::gemm::batch_invariant;
use selvedge::nn::{
    Decoder, DecoderCache, DecoderConfig, FeedForward, FeedForwardOptions, Initializer, LayerNorm, Linear,
    Module, Variable, no_grad,
};
use selvedge::tensor::Generator;
use selvedge::types::DType;
use selvedge::{Device, Result, Tensor};

/// Compares rows of products of any number of rows with the same rows alone, at most 100 of them. B is stored by rows and by columns.
pub fn products(dtype: DType, sizes: &[[usize; 2]], rows: &[usize], device: &Device) -> Result<()> {
    let generator = Generator::new(5);
    let normal = |sizes: &[usize]| generator.randn(sizes, dtype, device);
    for &[k, n] in sizes {
        let most = rows.iter().copied().max().unwrap_or(1);
        let x = normal(&[most, k])?;
        for is_by_rows in [true, false] {
            let weight = match is_by_rows {
                true => normal(&[k, n])?,
                false => normal(&[n, k])?.t()?,
            };
            let product = |first: usize, count: usize| -> Result<Tensor> {
                batch_invariant(|| x.narrow(0, first, count)?.matmul(&weight))
            };
            // Rows of larger products are sampled.
            let step = most.div_ceil(100);
            let alone: Vec<(usize, Vec<u8>)> = (0..most)
                .step_by(step)
                .map(|row| Ok((row, product(row, 1)?.to_bytes()?)))
                .collect::<Result<_>>()?;
            for &count in rows {
                let first = (most - count) / 2;
                let all = product(first, count)?.to_bytes()?;
                for (row, alone) in alone.iter().filter(|(row, _)| (first..first + count).contains(row)) {
                    let found = all.chunks_exact(n * dtype.size()).nth(row - first);
                    assert!(
                        found == Some(alone),
                        "{dtype}, {count} rows of {k} times {n}, by rows {is_by_rows}: row {row} has other bits"
                    );
                }
            }
        }
    }
    Ok(())
}

/// The ids of a sequence: a prompt of a length of its own, and those that follow.
fn sequence(index: usize, longest: usize, vocab_size: usize) -> [Vec<i64>; 2] {
    let length = 1 + (index * 37 + 11) % longest;
    let ids = |count: usize, salt: usize| {
        (0..count).map(|at| ((index * 7919 + at * 104_729 + salt) % vocab_size) as i64).collect()
    };
    [ids(length, 3), ids(4, 17)]
}

/// Returns the bits of each sequence's logits after its prompt and each id that follows, of a batch that reads its prompts in parts.
fn bits(model: &Decoder, batch: &[usize], longest: usize, part: usize) -> Result<Vec<Vec<Vec<u8>>>> {
    let (vocab_size, device) = (model.config().vocab_size(), model.device());
    let sequences: Vec<[Vec<i64>; 2]> =
        batch.iter().map(|&index| sequence(index, longest, vocab_size)).collect();
    let mut cache = DecoderCache::batch_invariant();
    let mut found = vec![Vec::new(); batch.len()];
    let rows = |logits: Variable| -> Result<Vec<Vec<u8>>> {
        let bytes = logits.tensor().to_bytes()?;
        Ok(bytes.chunks_exact(bytes.len() / batch.len()).map(<[u8]>::to_vec).collect())
    };
    let length = sequences.iter().map(|[prompt, _]| prompt.len()).max().unwrap_or(0);
    for start in (0..length).step_by(part) {
        let size = part.min(length - start);
        let counts: Vec<usize> =
            sequences.iter().map(|[prompt, _]| prompt.len().saturating_sub(start).min(size)).collect();
        let ids = sequences
            .iter()
            .flat_map(|[prompt, _]| (start..start + size).map(|at| prompt.get(at).copied().unwrap_or(0)));
        let ids = Tensor::from_vec(ids.collect(), &[batch.len(), size], &device)?;
        let logits = rows(no_grad(|| model.prefill(&ids, &counts, &mut cache))?)?;
        for ((found, logits), [prompt, _]) in found.iter_mut().zip(logits).zip(&sequences) {
            if (start + 1..=start + size).contains(&prompt.len()) {
                found.push(logits);
            }
        }
    }
    for at in 0..4 {
        let ids = sequences.iter().map(|[_, following]| following[at]).collect();
        let ids = Tensor::from_vec(ids, &[batch.len(), 1], &device)?;
        let logits = rows(no_grad(|| model.forward_cached(&ids, &mut cache))?)?;
        found.iter_mut().zip(logits).for_each(|(found, logits)| found.push(logits));
    }
    Ok(found)
}

/// Compares the logits of sequences in batches of 1, 7 and 64, whose prompts are read at once and in parts.
pub fn logits(config: &str, dtype: DType, longest: usize, device: &Device) -> Result<()> {
    let initializer = Initializer::new(device).with_seed(3).with_dtype(dtype);
    let model = Decoder::new(DecoderConfig::from_json(config, None)?, &initializer)?;
    let all: Vec<usize> = (0..64).collect();
    let many = bits(&model, &all, longest, longest)?;
    for (name, batch, part) in [
        ("alone", 5..6, longest),
        ("alone, in parts", 6..7, longest / 3 + 1),
        ("alone, id by id", 9..10, 1),
        ("of 7", 8..15, longest),
        ("of 7, in parts", 20..27, longest / 2 - 1),
        ("of 64, in parts", 0..64, longest / 4 + 2),
    ] {
        let batch: Vec<usize> = batch.collect();
        for (found, &index) in bits(&model, &batch, longest, part)?.iter().zip(&batch) {
            for (step, (found, wanted)) in found.iter().zip(&many[index]).enumerate() {
                assert!(found == wanted, "{dtype}, {name}: sequence {index} has other bits in step {step}");
            }
        }
    }
    Ok(())
}

/// Compares layers of a batch's rows with the same layers of one sequence.
pub fn layers(dtype: DType, [batch, length]: [usize; 2], device: &Device) -> Result<()> {
    const WIDTH: usize = 256;
    let initializer = Initializer::new(device).with_seed(3).with_dtype(dtype);
    let norm = LayerNorm::new(&[WIDTH], &initializer)?;
    let packed = Linear::new(WIDTH, 3 * WIDTH, &initializer)?;
    let feed_forward = FeedForward::new(WIDTH, FeedForwardOptions::default(), &initializer)?;
    let part = length / 2 + 1;
    let x = Generator::new(5).randn(&[batch, length, WIDTH], dtype, device)?;
    let named: [(&str, &dyn Module); 3] =
        [("norm", &norm), ("packed projection", &packed), ("feed-forward", &feed_forward)];
    for (name, layer) in named {
        let run = |x: Tensor| batch_invariant(|| no_grad(|| layer.forward(&Variable::new(x))));
        let all = run(x.clone())?.tensor().narrow(0, 5, 1)?.narrow(1, 0, part)?;
        let alone = run(x.narrow(0, 5, 1)?.narrow(1, 0, part)?.contiguous()?)?.tensor();
        assert!(all.contiguous()?.to_bytes()? == alone.to_bytes()?, "{dtype}: {name} has other bits alone");
    }
    Ok(())
}
