//! Scaled dot-product attention against loops in f64, worked numbers, and gradients against differences.

use selvedge::nn::{AttentionOptions, Variable, scaled_dot_product_attention};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Error, Result, Tensor, bf16};

use crate::cases::samples;
use crate::differences::check;

fn constant(numbers: &[f64], shape: &[usize]) -> Variable {
    Variable::new(Tensor::from_slice(numbers, shape, &Device::cpu()).unwrap())
}

fn numbers(variable: &Variable) -> Vec<f64> {
    variable.tensor().to_vec().unwrap()
}

fn causal() -> AttentionOptions {
    AttentionOptions { is_causal: true, ..AttentionOptions::default() }
}

fn with_mask(mask: Tensor, is_causal: bool) -> AttentionOptions {
    AttentionOptions { mask: Some(Variable::new(mask)), is_causal, ..AttentionOptions::default() }
}

/// A mask of bools of this shape in which about one of three elements is false, but no row's last.
fn bools(shape: &[usize]) -> Tensor {
    let last = shape[shape.len() - 1];
    let count = shape.iter().product::<usize>();
    let list: Vec<u8> = (0..count).map(|at| u8::from(at % 3 != 1 || at % last == last - 1)).collect();
    Tensor::from_slice(&list, shape, &Device::cpu()).unwrap().cast(DType::Bool).unwrap()
}

/// The sizes of a case: batch, query heads, key heads, query length, key length, head dimension, value dimension.
type Sizes = [usize; 7];

fn inputs([batch, heads, key_heads, length, key_length, width, value_width]: Sizes) -> Vec<Tensor> {
    vec![
        samples(1, &[batch, heads, length, width]),
        samples(2, &[batch, key_heads, key_length, width]),
        samples(3, &[batch, key_heads, key_length, value_width]),
    ]
}

/// Attention by its definition.
fn reference(sizes: Sizes, inputs: &[Tensor], options: &AttentionOptions) -> Vec<f64> {
    let [batch, heads, key_heads, length, key_length, width, value_width] = sizes;
    let [q, k, v] = [0, 1, 2].map(|at| inputs[at].to_vec::<f64>().unwrap());
    let scale = options.scale.unwrap_or(1.0 / (width as f64).sqrt());
    let full = [batch, heads, length, key_length];
    let mask = options.mask.as_ref().map(|mask| {
        let tensor = mask.tensor();
        let added = match tensor.dtype() == DType::Bool {
            true => tensor.choose(0.0, f64::NEG_INFINITY).unwrap().cast(DType::F64).unwrap(),
            false => tensor,
        };
        added.expand(&full).unwrap().to_vec::<f64>().unwrap()
    });
    let mut result = Vec::new();
    for (b, h, i) in
        (0..batch * heads * length).map(|at| (at / length / heads, at / length % heads, at % length))
    {
        let of_key = b * key_heads + h / (heads / key_heads);
        let score = |j: usize| {
            if options.is_causal && j + length > i + key_length {
                return f64::NEG_INFINITY;
            }
            let query = &q[((b * heads + h) * length + i) * width..][..width];
            let key = &k[(of_key * key_length + j) * width..][..width];
            let product: f64 = query.iter().zip(key).map(|(q, k)| q * k).sum();
            let added =
                mask.as_ref().map_or(0.0, |mask| mask[((b * heads + h) * length + i) * key_length + j]);
            scale * product + added
        };
        let powers: Vec<f64> = (0..key_length).map(|j| score(j).exp()).collect();
        let total: f64 = powers.iter().sum();
        for column in 0..value_width {
            let value = |j: usize| v[(of_key * key_length + j) * value_width + column];
            let sum: f64 = powers.iter().enumerate().map(|(j, power)| power * value(j)).sum();
            result.push(if total == 0.0 { 0.0 } else { sum / total });
        }
    }
    result
}

fn attention(x: &[Variable], options: &AttentionOptions) -> Result<Variable> {
    scaled_dot_product_attention(&x[0], &x[1], &x[2], options)
}

#[test]
fn attention_has_worked_values() {
    // With a query of 1 the probabilities are as 1 : 3 : 4.
    let keys = constant(&[0.0, 3f64.ln(), 4f64.ln()], &[1, 1, 3, 1]);
    let values = constant(&[8.0, 16.0, 24.0], &[1, 1, 3, 1]);
    let cases: [(&[f64], AttentionOptions, &[f64]); 6] = [
        (&[1.0, 0.0], AttentionOptions::default(), &[19.0, 16.0]),
        (&[2.0], AttentionOptions { scale: Some(0.5), ..AttentionOptions::default() }, &[19.0]),
        // The last query is at the last key's position.
        (&[1.0, 1.0], causal(), &[14.0, 19.0]),
        (&[1.0, 1.0, 1.0], causal(), &[8.0, 14.0, 19.0]),
        // The first query is before every key.
        (&[1.0, 1.0, 1.0, 1.0], causal(), &[0.0, 8.0, 14.0, 19.0]),
        (
            &[1.0, 1.0],
            with_mask(
                Tensor::new([[true, true, false], [false, false, false]], &Device::cpu()).unwrap(),
                false,
            ),
            &[14.0, 0.0],
        ),
    ];
    for (queries, options, wanted) in cases {
        let queries = constant(queries, &[1, 1, queries.len(), 1]);
        let found = numbers(&scaled_dot_product_attention(&queries, &keys, &values, &options).unwrap());
        let is_close = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-13 * (1.0 + b.abs()));
        assert!(found.len() == wanted.len() && is_close, "{options:?}: {found:?}, not {wanted:?}");
    }
}

#[test]
fn attention_and_its_gradients_agree_with_the_definition() {
    let cases: Vec<(Sizes, AttentionOptions)> = vec![
        ([2, 2, 2, 3, 3, 2, 2], AttentionOptions::default()),
        ([1, 2, 2, 3, 3, 2, 3], causal()),
        ([2, 4, 2, 2, 3, 2, 1], causal()),
        ([1, 3, 1, 3, 2, 2, 2], causal()),
        ([1, 2, 1, 1, 4, 2, 2], AttentionOptions { scale: Some(1.5), ..causal() }),
        ([2, 2, 1, 2, 3, 2, 2], with_mask(bools(&[2, 1, 2, 3]), false)),
        ([1, 2, 2, 3, 4, 2, 2], with_mask(bools(&[4]), true)),
        ([1, 2, 1, 3, 3, 2, 2], with_mask(samples(7, &[2, 1, 3]), true)),
        ([1, 2, 2, 2, 3, 1, 1], with_mask(samples(7, &[2, 3]), false)),
    ];
    for (sizes, options) in cases {
        let name = format!("{sizes:?} {options:?}");
        let inputs = inputs(sizes);
        let constants: Vec<Variable> = inputs.iter().cloned().map(Variable::new).collect();
        let result = attention(&constants, &options).unwrap();
        let [batch, heads, _, length, _, _, value_width] = sizes;
        assert_eq!(result.shape()[..], [batch, heads, length, value_width], "{name}");
        let wanted = reference(sizes, &inputs, &options);
        for (found, wanted) in numbers(&result).iter().zip(&wanted) {
            assert!((found - wanted).abs() < 1e-14, "{name}: {found}, not {wanted}");
        }
        check(&name, &inputs, |x| attention(x, &options));
    }
}

#[test]
fn a_mask_of_floats_has_a_gradient_of_its_own_shape() {
    for (shape, is_causal) in [(&[2, 1, 3][..], false), (&[3], true), (&[1, 2, 2, 3], false)] {
        let mut inputs = inputs([2, 2, 1, 2, 3, 2, 2]);
        inputs.push(samples(8, shape));
        check(&format!("a mask of shape {shape:?}"), &inputs, |x| {
            let mask = Some(x[3].clone());
            attention(x, &AttentionOptions { mask, is_causal, ..AttentionOptions::default() })
        });
        // Of the mask alone.
        check("a mask alone", &inputs[3..], |x| {
            let mask = Some(x[0].clone());
            let constants: Vec<Variable> = inputs[..3].iter().cloned().map(Variable::new).collect();
            attention(&constants, &AttentionOptions { mask, is_causal, ..AttentionOptions::default() })
        });
    }
}

#[test]
fn dropout_keeps_scaled_probabilities_and_its_gradient_follows_the_same_draw() {
    let generator = Generator::new(4);
    let state = generator.state();
    let options = AttentionOptions {
        dropout: 0.4,
        generator: Some(generator.clone()),
        is_causal: true,
        ..AttentionOptions::default()
    };
    check("dropout", &inputs([2, 4, 2, 3, 4, 2, 2]), |x| {
        generator.set_state(state);
        attention(x, &options)
    });
    // With values of 1 and equal scores, a result is the number of kept keys over 40 · 0.625.
    let x = constant(&[0.0; 40], &[1, 1, 40, 1]);
    let ones = constant(&[1.0; 40], &[1, 1, 40, 1]);
    let of = |dropout| {
        let options = AttentionOptions { dropout, is_causal: false, ..options.clone() };
        numbers(&scaled_dot_product_attention(&x, &x, &ones, &options).unwrap())
    };
    let found = of(0.375);
    let counts: Vec<f64> = found.iter().map(|y| y * 25.0).collect();
    assert!(counts.iter().all(|count| (count - count.round()).abs() < 1e-12), "{counts:?}");
    let total: f64 = counts.iter().sum();
    assert!((920.0..1080.0).contains(&total), "{total} of 1600 are kept");
    assert_ne!(of(0.375), found, "each call draws anew");
    assert_eq!(of(1.0), [0.0; 40]);
}

#[test]
fn attention_of_bf16_is_rounded_from_scores_in_f32() {
    // Scores of 256 and 256.5, which are one number in bf16.
    let of = |numbers: &[f64], shape: &[usize]| constant(numbers, shape).cast(DType::BF16).unwrap();
    let (query, keys) = (of(&[256.0, 1.0], &[1, 1, 1, 2]), of(&[1.0, 0.0, 1.0, 0.5], &[1, 1, 2, 2]));
    let options = AttentionOptions { scale: Some(1.0), ..AttentionOptions::default() };
    let result = attention(&[query, keys, of(&[0.0, 1.0], &[1, 1, 2, 1])], &options).unwrap();
    let found = result.tensor().cast(DType::F64).unwrap().item::<f64>().unwrap();
    assert!((found - 1.0 / (1.0 + (-0.5f64).exp())).abs() < 0.004, "{found}");

    let sizes = [1, 2, 1, 5, 7, 8, 4];
    let rounded: Vec<Tensor> = inputs(sizes).iter().map(|x| x.cast(DType::BF16).unwrap()).collect();
    let leaves: Vec<Variable> = rounded.iter().map(|x| Variable::with_grad(x.clone()).unwrap()).collect();
    let result = attention(&leaves, &causal()).unwrap();
    assert_eq!(result.dtype(), DType::BF16);
    let exact: Vec<Tensor> = rounded.iter().map(|x| x.cast(DType::F64).unwrap()).collect();
    let wanted = reference(sizes, &exact, &causal());
    for (found, wanted) in result.tensor().to_vec::<bf16>().unwrap().iter().zip(wanted) {
        assert!((found.to_f64() - wanted).abs() < 0.01, "{found}, not {wanted}");
    }
    result.sum_all().unwrap().backward().unwrap();
    assert!(leaves.iter().all(|leaf| leaf.grad().unwrap().dtype() == DType::BF16));
}

#[test]
fn attention_without_keys_queries_or_batch_is_zero_or_empty() {
    for (sizes, count) in [([1, 1, 1, 2, 0, 3, 2], 4), ([1, 1, 1, 0, 2, 3, 2], 0), ([0, 1, 1, 2, 2, 3, 2], 0)]
    {
        let leaves: Vec<Variable> =
            inputs(sizes).into_iter().map(|x| Variable::with_grad(x).unwrap()).collect();
        let result = attention(&leaves, &causal()).unwrap();
        assert_eq!(numbers(&result), vec![0.0; count], "{sizes:?}");
        result.sum_all().unwrap().backward().unwrap();
        for leaf in &leaves {
            let gradient = leaf.grad().unwrap();
            assert_eq!(gradient.shape(), &leaf.shape(), "{sizes:?}");
            assert!(gradient.to_vec::<f64>().unwrap().iter().all(|&x| x == 0.0), "{sizes:?}");
        }
    }
}

#[test]
fn attention_of_shapes_that_do_not_meet_names_them_all() {
    let zeros = |shape: &[usize]| constant(&vec![0.0; shape.iter().product()], shape);
    let base: [&[usize]; 3] = [&[2, 4, 3, 5], &[2, 2, 6, 5], &[2, 2, 6, 1]];
    let cases: [(usize, &[usize], &str); 6] = [
        (0, &[4, 3, 5], "four axes each: (batch, heads, length, head dimension)"),
        (2, &[1, 2, 6, 1], "equal batches"),
        (1, &[2, 2, 6, 4], "queries and keys of one head dimension"),
        (2, &[2, 2, 5, 1], "keys and values of equal heads and lengths"),
        (2, &[2, 4, 6, 1], "keys and values of equal heads and lengths"),
        (0, &[2, 3, 3, 5], "a number of key heads that divides the query heads"),
    ];
    for (place, shape, wanted) in cases {
        let mut shapes = base;
        shapes[place] = shape;
        let error = attention(&shapes.map(zeros), &AttentionOptions::default()).unwrap_err();
        let [q, k, v] = shapes;
        assert_eq!(
            error.to_string(),
            format!(
                "scaled_dot_product_attention: found queries of shape {q:?}, keys of shape {k:?} and values of shape \
                 {v:?}; wanted {wanted}"
            )
        );
    }
    let inputs = base.map(zeros);
    let mask = with_mask(bools(&[4, 3, 5]), false);
    assert_eq!(
        attention(&inputs, &mask).unwrap_err().to_string(),
        "scaled_dot_product_attention: found a mask of shape [4, 3, 5] for scores of shape [2, 4, 3, 6]; wanted a mask \
         that broadcasts to the scores"
    );
    let of_integers = with_mask(Tensor::zeros(&[6], DType::I32, &Device::cpu()).unwrap(), false);
    assert!(matches!(attention(&inputs, &of_integers), Err(Error::DTypeMismatch { .. })));
    let dropout = AttentionOptions { dropout: -0.5, ..AttentionOptions::default() };
    assert_eq!(
        attention(&inputs, &dropout).unwrap_err().to_string(),
        "scaled_dot_product_attention: found a dropout of -0.5; wanted one from 0 to 1"
    );
}
