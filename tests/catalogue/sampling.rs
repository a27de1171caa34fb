//! Rotary positions and top-k sampling.

use selvedge::catalogue::{rope_encoding, top_k_sampling};
use selvedge::tensor::Generator;
use selvedge::types::DType;

use crate::common::*;

#[test]
fn pairs_of_features_are_rotated_by_their_position() {
    for (length, width, offset) in [
        (1, 2, 0),
        (5, 8, 3),
        (257, 6, 100_000),
        (255, 2, 1),
        (256, 4, 0),
        (1, 254, 7),
        (2, 256, 0),
        (1, 258, 1),
    ] {
        let x = uniform(2 * length * width, 1);
        let angle = |t: usize, i: usize| (offset + t) as f64 * 10_000f64.powf(-2.0 * i as f64 / width as f64);
        let mut wanted = Vec::new();
        for (row, pairs) in x.chunks_exact(width).enumerate() {
            for (i, pair) in pairs.chunks_exact(2).enumerate() {
                let (sine, cosine) = angle(row % length, i).sin_cos();
                wanted.extend([pair[0] * cosine - pair[1] * sine, pair[1] * cosine + pair[0] * sine]);
            }
        }
        for (dtype, tolerance) in FLOATS {
            let input = tensor(&x, &[2, length, width]).cast(dtype).unwrap();
            let found = rope_encoding(&input, offset, 10_000.0).unwrap();
            assert_eq!((found.dtype(), found.shape()), (dtype, input.shape()));
            assert_close(&numbers(&found), &wanted, tolerance);
        }
    }
}

#[test]
fn only_the_k_largest_logits_are_drawn_by_their_probabilities() {
    // A vocabulary above 1024, whose exponentials overflow without the largest one.
    let mut logits = vec![0.0f32; 3000];
    for (token, logit) in [(2999, 900.0), (7, 899.0), (1500, 898.0)] {
        logits[token] = logit;
    }
    let rows = 300;
    let batch = tensor(&logits, &[1, 3000]).expand(&[rows, 3000]).unwrap();
    let draw = |seed| top_k_sampling(&batch, 2, 0.5, &Generator::new(seed)).unwrap();
    let tokens = draw(5);
    assert_eq!(tokens.shape()[..], [rows]);
    assert!(tokens.equal(&draw(5)).unwrap() && !tokens.equal(&draw(6)).unwrap());
    let tokens = tokens.to_vec::<i64>().unwrap();
    let share = tokens.iter().filter(|token| **token == 2999).count() as f64 / rows as f64;
    assert!(tokens.iter().all(|token| [7, 2999].contains(token)));
    let wanted = 1.0 / (1.0 + (-2.0f64).exp());
    assert!((share - wanted).abs() < 5.0 * (wanted * (1.0 - wanted) / rows as f64).sqrt(), "{share}");
    let one = top_k_sampling(&vector(&logits), 1, 1.0, &Generator::new(1)).unwrap();
    assert_eq!((one.rank(), one.item::<i64>().unwrap()), (0, 2999));
}

#[test]
fn draws_of_any_vocabulary_and_batch_are_among_the_k_largest() {
    for n in [1, 255, 256, 257] {
        for (rows, vocabulary) in [(1, n), (n, 5usize)] {
            for k in [1, vocabulary.div_ceil(2), vocabulary] {
                let logits = uniform(rows * vocabulary, 7);
                let drawn = top_k_sampling(&tensor(&logits, &[rows, vocabulary]), k, 1.0, &Generator::new(3));
                let drawn = drawn.unwrap();
                assert_eq!(drawn.shape()[..], [rows]);
                for (row, token) in logits.chunks(vocabulary).zip(drawn.to_vec::<i64>().unwrap()) {
                    let above = row.iter().filter(|x| **x > row[token as usize]).count();
                    assert!(above < k, "{above} of {vocabulary} logits are above the drawn one, k = {k}");
                }
            }
        }
    }
}

#[test]
fn wrong_logits_and_sequences_are_errors() {
    let generator = Generator::new(1);
    let logits = vector(&[1.0f32, 2.0]);
    assert_invalid(top_k_sampling(&logits, 0, 1.0, &generator), &["k = 0"]);
    assert_invalid(top_k_sampling(&logits, 3, 1.0, &generator), &["k = 3", "1 to 2"]);
    assert_invalid(top_k_sampling(&logits, 1, 0.0, &generator), &["temperature = 0"]);
    assert_invalid(top_k_sampling(&tensor(&[1.0], &[1, 1, 1]), 1, 1.0, &generator), &["[1, 1, 1]"]);
    assert!(top_k_sampling(&vector(&[f32::NAN, 1.0]), 1, 1.0, &generator).is_err());
    assert_dtype_error(top_k_sampling(&vector(&[1i64]), 1, 1.0, &generator));
    assert_invalid(rope_encoding(&tensor(&[1.0; 3], &[1, 3]), 0, 10_000.0), &["[1, 3]", "even width"]);
    assert_invalid(rope_encoding(&logits, 0, 10_000.0), &["[2]"]);
    assert_invalid(rope_encoding(&tensor(&[1.0; 2], &[1, 2]), 0, 0.0), &["base = 0"]);
    assert_dtype_error(rope_encoding(&tensor(&[1i32; 2], &[1, 2]).cast(DType::I32).unwrap(), 0, 10.0));
}
