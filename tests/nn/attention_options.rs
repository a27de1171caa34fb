//! Attention's windows, soft caps, dropout and sequences of different lengths: values, gradients, bits and bad input.

use selvedge::attention::{
    Band, Dropout, HostGradients, HostOperands, Problem, Sequences, backward_host, forward_host,
};
use selvedge::nn::{AttentionOptions, Variable, scaled_dot_product_attention};
use selvedge::tensor::{self, Generator, SequenceLengths};
use selvedge::types::Layout;
use selvedge::{DType, Device, Error, Result, Tensor, set_threads};

use crate::attention_cases::{Case, Lengths, assert_close, cases, with_gradients};
use crate::cases::samples;
use crate::differences::check;

fn run(x: &[Variable], options: &AttentionOptions) -> Result<Variable> {
    scaled_dot_product_attention(&x[0], &x[1], &x[2], options)
}

#[test]
fn every_option_agrees_with_the_composed_form_in_f64() {
    for case in cases() {
        case.check(&Device::cpu()).unwrap_or_else(|error| panic!("{case:?}: {error}"));
    }
}

#[test]
fn both_forms_agree_with_the_definition() {
    let cpu = Device::cpu();
    for case in cases().into_iter().filter(|case| case.sizes[5] <= 64) {
        let case = Case { dtype: DType::F64, dropout: 0.0, ..case };
        let x = case.samples().unwrap();
        let wanted = case.definition(&x).unwrap();
        let operands = [&x[0], &x[1], &x[2]].map(|x| Variable::new(x.clone()));
        for options in [case.options(&cpu), case.composed_options(&cpu)] {
            let found = run(&operands, &options.unwrap()).unwrap().tensor();
            let wanted = Tensor::from_slice(&wanted, found.shape(), &cpu).unwrap();
            assert_close(&format!("{case:?}"), &found, &wanted, 1e-12, 0.0).unwrap();
        }
    }
}

#[test]
fn gradients_with_options_are_their_differences() {
    let cpu = Device::cpu();
    let windows = [Band::default(), Band { before: Some(1), after: Some(1) }];
    let mut count = 0;
    for (sizes, lengths) in [
        ([1, 2, 1, 4, 6, 3, 2], Lengths::Whole),
        ([1, 2, 2, 6, 6, 2, 2], Lengths::Packed),
        ([3, 2, 1, 3, 4, 2, 3], Lengths::Padded),
        ([1, 1, 1, 5, 3, 2, 1], Lengths::Whole),
    ] {
        for (window, soft_cap, dropout) in windows
            .iter()
            .flat_map(|window| [None, Some(0.5)].map(|soft_cap| (*window, soft_cap)))
            .flat_map(|(window, soft_cap)| [0.0, 0.25].map(|dropout| (window, soft_cap, dropout)))
        {
            let is_causal = count % 3 == 0;
            let case = Case { is_causal, window, soft_cap, dropout, lengths, ..Case::plain(sizes) };
            let [batch, heads, key_heads, queries, keys, width, value_width] = sizes;
            let inputs = [
                samples(1, &[batch, heads, queries, width]),
                samples(2, &[batch, key_heads, keys, width]),
                samples(3, &[batch, key_heads, keys, value_width]),
            ];
            check(&format!("{case:?}"), &inputs, |x| run(x, &case.options(&cpu)?));
            check(&format!("composed, {case:?}"), &inputs, |x| run(x, &case.composed_options(&cpu)?));
            count += 1;
        }
    }
}

#[test]
fn both_forms_drop_the_same_probabilities() {
    let cpu = Device::cpu();
    for (batch, lengths) in [(2, Lengths::Whole), (1, Lengths::Packed), (3, Lengths::Padded)] {
        let (queries, keys) = (39, 53);
        let case = Case { lengths, dropout: 0.375, ..Case::plain([batch, 2, 1, queries, keys, 4, keys]) };
        // With equal scores and values of the identity, the result is the probabilities.
        let zeros = |heads, length| Tensor::zeros(&[batch, heads, length, 4], DType::F64, &cpu).unwrap();
        let identity =
            Tensor::eye(keys, keys, DType::F64, &cpu).unwrap().expand(&[batch, 1, keys, keys]).unwrap();
        let x = [zeros(2, queries), zeros(1, keys), identity].map(Variable::new);
        let of = |options: Result<AttentionOptions>| {
            run(&x, &options.unwrap()).unwrap().tensor().to_vec::<f64>().unwrap()
        };
        let (found, composed) = (of(case.options(&cpu)), of(case.composed_options(&cpu)));
        let is_zero = |x: &f64| *x == 0.0;
        let differing = found.iter().zip(&composed).filter(|(a, b)| is_zero(a) != is_zero(b)).count();
        assert_eq!(differing, 0, "{lengths:?}");
        let all = of(Case { dropout: 0.0, ..case }.options(&cpu));
        let [of_all, kept] = [&all, &found].map(|x| x.iter().filter(|x| !is_zero(x)).count() as f64);
        assert!((kept / of_all - 0.625).abs() < 0.03, "{lengths:?}: {kept} of {of_all} are kept");
    }
}

#[test]
fn a_number_of_threads_changes_no_bits() {
    let cpu = Device::cpu();
    for (is_causal, dropout, heads) in [(false, 0.0, 3), (true, 0.2, 1)] {
        let sizes = [1, heads, 1, 700, 1100, 32, 32];
        let case = Case { is_causal, dropout, dtype: DType::F32, ..Case::plain(sizes) };
        let x = case.samples().unwrap().map(|x| x.cast(DType::F32).unwrap());
        let bits = || {
            let all = with_gradients(&x, &case.options(&cpu).unwrap()).unwrap();
            all.map(|x| x.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>())
        };
        set_threads(1);
        let wanted = bits();
        set_threads(2);
        let found = bits();
        set_threads(0);
        assert!(found == wanted && bits() == wanted, "{case:?}");
    }
}

/// The scores of 2^17 positions would take 64 GiB in f32.
#[test]
fn memory_grows_with_the_length_alone() {
    let cpu = Device::cpu();
    let length = 1 << 17;
    let draw = |seed| Generator::new(seed).randn(&[1, 1, length, 8], DType::F32, &cpu).unwrap();
    let x = [draw(1), draw(2), draw(3), draw(4)];
    let window = Band { before: Some(100), after: None };
    let options = AttentionOptions { is_causal: true, window, ..AttentionOptions::default() };
    let found = with_gradients(&x, &options).unwrap();
    // The first query reads the first key alone.
    let first = |x: &Tensor| x.narrow(2, 0, 1).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(first(&found[0]), first(&x[2]));
    // The last ones are those of the last keys.
    let last = |x: &Tensor, count| x.narrow(2, length - count, count).unwrap();
    let operands = [last(&x[0], 4), last(&x[1], 104), last(&x[2], 104)];
    let [q, k, v] = &operands;
    let wanted = q.scaled_dot_product_attention(k, v, &options.map_to_tensor()).unwrap();
    assert_close("last", &last(&found[0], 4), &wanted.cast(DType::F64).unwrap(), 1e-6, 0.0).unwrap();
    for x in &found {
        assert!(x.sum_all().unwrap().item::<f32>().unwrap().is_finite());
    }
}

/// Options of tensors with the same settings.
trait ToTensorOptions {
    fn map_to_tensor(&self) -> tensor::AttentionOptions;
}

impl ToTensorOptions for AttentionOptions {
    fn map_to_tensor(&self) -> tensor::AttentionOptions {
        let AttentionOptions { is_causal, window, scale, soft_cap, dropout, .. } = *self;
        let (generator, lengths) = (self.generator.clone(), self.lengths.clone());
        tensor::AttentionOptions {
            mask: None,
            is_causal,
            window,
            scale,
            soft_cap,
            dropout,
            generator,
            lengths,
        }
    }
}

#[test]
fn tensors_have_the_results_of_variables() {
    let cpu = Device::cpu();
    for case in cases().into_iter().step_by(7) {
        let x = case.samples().unwrap().map(|x| x.cast(case.dtype).unwrap());
        let options = || case.options(&cpu).unwrap();
        let operands = [&x[0], &x[1], &x[2]].map(|x| Variable::new(x.clone()));
        let wanted = run(&operands, &options()).unwrap().tensor();
        let found = x[0].scaled_dot_product_attention(&x[1], &x[2], &options().map_to_tensor()).unwrap();
        assert_eq!(found.to_bytes().unwrap(), wanted.to_bytes().unwrap(), "{case:?}");
    }
}

#[test]
fn infinite_scores_and_nan_stay_in_their_rows() {
    const INFINITY: f64 = f64::INFINITY;
    let cpu = Device::cpu();
    let keys = Tensor::from_slice(&[1.0f64, 2.0], &[1, 1, 2, 1], &cpu).unwrap();
    let values = Tensor::from_slice(&[3.0f64, 5.0], &[1, 1, 2, 1], &cpu).unwrap();
    let queries = [0.0, f64::NAN, -INFINITY, INFINITY, 0.0];
    let queries = Tensor::from_slice(&queries, &[1, 1, 5, 1], &cpu).unwrap();
    let x = [queries, keys, values].map(|x| Variable::with_grad(x).unwrap());
    let mask = Tensor::ones(&[1], DType::Bool, &cpu).unwrap();
    let composed = AttentionOptions { mask: Some(Variable::new(mask)), ..AttentionOptions::default() };
    for options in [AttentionOptions::default(), composed] {
        let found = run(&x, &options).unwrap().tensor().to_vec::<f64>().unwrap();
        // Scores of -∞ alone mask a row; those of ∞ alone have no softmax.
        assert_eq!([found[0], found[2], found[4]], [4.0, 0.0, 4.0]);
        assert!(found[1].is_nan() && found[3].is_nan(), "{found:?}");
    }
    // A key whose score is -∞ has a probability of 0.
    let keys = Variable::new(Tensor::from_slice(&[-INFINITY, 2.0], &[1, 1, 2, 1], &cpu).unwrap());
    let query = Variable::new(Tensor::from_slice(&[1.0], &[1, 1, 1, 1], &cpu).unwrap());
    let found = run(&[query, keys, x[2].clone()], &AttentionOptions::default()).unwrap();
    assert_eq!(found.tensor().item::<f64>().unwrap(), 5.0);
}

#[test]
fn positions_behind_padded_sequences_are_not_read() {
    let cpu = Device::cpu();
    let case = Case { lengths: Lengths::Padded, ..Case::plain([3, 2, 1, 20, 30, 8, 8]) };
    let x = case.samples().unwrap();
    let lengths = |of: [i64; 3]| Tensor::from_slice(&of, &[3, 1, 1, 1], &cpu).unwrap();
    let spoiled = |x: &Tensor, lengths: &Tensor| {
        let length = x.shape()[2];
        let position = Tensor::arange(0, length, 1, DType::I64, &cpu).unwrap().unsqueeze(-1).unwrap();
        position.lt(lengths).unwrap().choose(x, f64::NAN).unwrap()
    };
    let (queries, keys) = (lengths([20, 10, 0]), lengths([20, 30, 1]));
    let bad =
        [spoiled(&x[0], &queries), spoiled(&x[1], &keys), spoiled(&x[2], &keys), spoiled(&x[3], &queries)];
    for options in [case.options(&cpu), case.composed_options(&cpu)] {
        let options = options.unwrap();
        let (found, wanted) =
            (with_gradients(&bad, &options).unwrap(), with_gradients(&x, &options).unwrap());
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found.to_vec::<f64>().unwrap(), wanted.to_vec::<f64>().unwrap());
        }
    }
}

fn packed(query_offsets: &[usize], key_offsets: &[usize]) -> AttentionOptions {
    let (query_offsets, key_offsets) = (query_offsets.to_vec(), key_offsets.to_vec());
    let lengths = Some(SequenceLengths::Packed { query_offsets, key_offsets });
    AttentionOptions { lengths, ..AttentionOptions::default() }
}

fn padded(queries: Option<Tensor>, keys: Option<Tensor>) -> AttentionOptions {
    AttentionOptions {
        lengths: Some(SequenceLengths::Padded { queries, keys }),
        ..AttentionOptions::default()
    }
}

#[test]
fn options_that_cannot_be_name_both_sides() {
    let cpu = Device::cpu();
    let integers = |numbers: &[i64]| Some(Tensor::from_slice(numbers, &[numbers.len()], &cpu).unwrap());
    let with = |soft_cap: Option<f64>, dropout: f64| AttentionOptions {
        soft_cap,
        dropout,
        ..AttentionOptions::default()
    };
    let cases: Vec<(usize, AttentionOptions, &str)> = vec![
        (1, with(Some(-1.0), 0.0), "found a soft cap of -1; wanted a positive finite number"),
        (1, with(Some(0.0), 0.0), "found a soft cap of 0; wanted a positive finite number"),
        (1, with(Some(f64::NAN), 0.0), "found a soft cap of NaN; wanted a positive finite number"),
        (1, with(Some(f64::INFINITY), 0.0), "found a soft cap of inf; wanted a positive finite number"),
        (1, with(None, -0.1), "found a dropout of -0.1; wanted one from 0 to 1"),
        (1, with(None, 1.5), "found a dropout of 1.5; wanted one from 0 to 1"),
        (1, with(None, f64::NAN), "found a dropout of NaN; wanted one from 0 to 1"),
        (
            1,
            packed(&[0, 3, 2], &[0, 3, 7]),
            "found query offsets that fall from 3 to 2; wanted ascending offsets",
        ),
        (
            1,
            packed(&[0, 3, 5], &[0, 9, 7]),
            "found key offsets that fall from 9 to 7; wanted ascending offsets",
        ),
        (
            1,
            packed(&[0, 6], &[0, 7]),
            "found query offsets up to 6; wanted at most 5, the length of the array",
        ),
        (1, packed(&[0, 5], &[0, 8]), "found key offsets up to 8; wanted at most 7, the length of the array"),
        (1, packed(&[], &[0]), "found no query offsets; wanted one more than sequences"),
        (1, packed(&[0, 1, 2], &[0, 1]), "found 3 query offsets and 2 key offsets; wanted as many of both"),
        (2, packed(&[0, 5], &[0, 7]), "found packed sequences in a batch of 2; wanted a batch of 1"),
        (2, padded(integers(&[5]), None), "found query lengths of shape [1]; wanted shape (2)"),
        (
            2,
            padded(integers(&[5, 6]), None),
            "found a sequence length of 6; wanted one from 0 to 5, the length of the array",
        ),
        (
            2,
            padded(None, integers(&[-3, 6])),
            "found a sequence length of -3; wanted one from 0 to 7, the length of the array",
        ),
    ];
    let zeros = |sizes: &[usize]| Tensor::zeros(sizes, DType::F64, &cpu).unwrap();
    for (batch, options, wanted) in cases {
        let x =
            [zeros(&[batch, 2, 5, 4]), zeros(&[batch, 1, 7, 4]), zeros(&[batch, 1, 7, 4])].map(Variable::new);
        let mask = Some(Variable::new(Tensor::ones(&[1], DType::Bool, &cpu).unwrap()));
        for options in [options.clone(), AttentionOptions { mask, ..options.clone() }] {
            let error = run(&x, &options).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument { .. }), "{error:?}");
            assert_eq!(error.to_string(), format!("scaled_dot_product_attention: {wanted}"));
        }
    }
    let x = [zeros(&[1, 2, 5, 4]), zeros(&[1, 1, 7, 4]), zeros(&[1, 1, 7, 4])].map(Variable::new);
    let floats = padded(Some(Tensor::zeros(&[1], DType::F32, &cpu).unwrap()), None);
    assert!(matches!(run(&x, &floats), Err(Error::DTypeMismatch { .. })));
    let different = [x[0].cast(DType::F32).unwrap(), x[1].clone(), x[2].clone()];
    assert!(matches!(run(&different, &AttentionOptions::default()), Err(Error::DTypeMismatch { .. })));
    let whole = x.each_ref().map(|x| Variable::new(x.tensor().cast(DType::I32).unwrap()));
    assert!(matches!(run(&whole, &AttentionOptions::default()), Err(Error::DTypeMismatch { .. })));
}

#[test]
fn slices_that_do_not_fit_a_problem_are_errors() {
    let layout = Layout::contiguous(&[1, 1, 2, 2]).unwrap();
    let problem = Problem::new(DType::F32, layout, layout, layout);
    let memory = [0.5f32; 4];
    let operands = |sequences| HostOperands { queries: &memory, keys: &memory, values: &memory, sequences };
    let forward = |problem: &Problem, operands, length: usize, layout: &Layout, rows: usize| {
        forward_host(problem, operands, (&mut vec![0f32; length], layout), &mut vec![0f32; rows])
    };
    forward(&problem, operands(None), 4, &layout, 2).unwrap();
    let short = HostOperands { keys: &memory[..3], ..operands(None) };
    let repeated = Layout::strided(&[1, 1, 2, 2], &[0, 0, 0, 1], 0).unwrap();
    let other = Layout::contiguous(&[1, 1, 2, 1]).unwrap();
    let sequences = Sequences { count: 1, is_packed: true, max_queries: 2, max_keys: 2 };
    let with_sequences = Problem { sequences: Some(sequences), ..problem };
    forward(&with_sequences, operands(Some(&[0, 2, 1, 1])), 4, &layout, 2).unwrap();
    let wide = Problem { dtype: DType::F64, ..problem };
    let found: [(Result<()>, &str); 8] = [
        (forward(&wide, operands(None), 4, &layout, 2), "f64"),
        (forward(&problem, short, 4, &layout, 2), "in 3 elements"),
        (forward(&problem, operands(None), 3, &layout, 2), "in 3 elements"),
        (forward(&problem, operands(None), 4, &repeated, 2), "share no memory"),
        (forward(&problem, operands(None), 4, &other, 2), "shape [1, 1, 2, 2]"),
        (forward(&problem, operands(None), 4, &layout, 3), "3"),
        (forward(&with_sequences, operands(None), 4, &layout, 2), "four for each sequence"),
        (forward(&with_sequences, operands(Some(&[0, 3, 0, 2])), 4, &layout, 2), "of 2 queries and 2 keys"),
    ];
    for (result, wanted) in found {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("attention::forward_host") && error.contains(wanted), "{wanted}: {error}");
    }
    let mut gradients = [0f32; 4];
    let to = HostGradients { memory: &mut gradients, layouts: [layout; 3] };
    let result =
        backward_host(&problem, operands(None), (&memory, &layout), &[0.0; 3], (&memory, &layout), to);
    assert!(matches!(result, Err(Error::LengthMismatch { wanted: 2, found: 3, .. })));
}

#[test]
fn a_dropout_is_rounded_to_sixteen_bits() {
    let dropout = Dropout { seed: 1, offset: 0, threshold: 1 << 14 };
    assert_eq!(dropout.scale(), 4.0 / 3.0);
    assert_eq!(Dropout { threshold: 1 << 16, ..dropout }.scale(), 0.0);
    assert_eq!(Dropout::blocks(2, 3, 17, 16), 2 * 3 * 2 * 32);
}
