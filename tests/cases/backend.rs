//! Worked numbers of every operation of `Backend`, which tests/nn runs on the CPU and tests/gpu/nn.rs on a device.

use selvedge::nn::Backend;
use selvedge::{DType, Result, Tensor};

/// Code for any backend, with operations that need no type of elements.
fn layer(backend: &dyn Backend, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    backend.relu(&backend.matmul(x, weight)?)
}

/// Checks the operations of a backend. Functions that are computed by approximation differ by at most `tolerance`, relative to the
/// larger of 1 and the value.
pub fn every_operation_has_its_value(backend: &impl Backend, tolerance: f64) -> Result<()> {
    let floats = |numbers: &[f64], shape: &[usize]| backend.from_slice(numbers, shape);
    let (a, b) = (floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?, floats(&[5.0, 6.0, 7.0, 8.0], &[2, 2])?);
    let (row, signs) = (floats(&[1.0, 4.0], &[2])?, floats(&[-2.0, 0.0, 3.0], &[3])?);
    let [index, labels] = [[1i64, 0, 1], [0, 1, 1]].map(|numbers| Tensor::new(numbers, &backend.device()));
    let (index, labels) = (index?, labels?);
    let logits = floats(&[0.0, 0.0, 0.0, 2.0, 1.0, 1.0], &[3, 2])?;
    let e = std::f64::consts::E;
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let gelu = |x: f64| x * (1.0 + (0.7978845608028654 * (x + 0.044715 * x * x * x)).tanh()) / 2.0;
    let loss = (2.0 * 2f64.ln() + (1.0 + (-2f64).exp()).ln()) / 3.0;
    let narrow = sigmoid(-2.0) / 3.0;
    let (both_loss, gradient) = backend.sparse_cross_entropy_with_gradient(&logits, &labels)?;
    let norms = backend.layer_norm_backward(&a, &floats(&[1.0, 0.0, 0.0, 2.0], &[2, 2])?, &row, 0.0)?;
    let [of_weight, of_bias] = [norms.weight, norms.bias].map(|sum| sum.expect("it is requested"));
    let cases: Vec<(&str, Tensor, Vec<f64>)> = vec![
        ("zeros", backend.zeros(&[2], DType::F64)?, vec![0.0; 2]),
        ("ones", backend.ones(&[2], DType::F64)?, vec![1.0; 2]),
        ("add", backend.add(&a, &row)?, vec![2.0, 6.0, 4.0, 8.0]),
        ("sub", backend.sub(&a, &row)?, vec![0.0, -2.0, 2.0, 0.0]),
        ("mul", backend.mul(&a, &row)?, vec![1.0, 8.0, 3.0, 16.0]),
        ("div", backend.div(&a, &row)?, vec![1.0, 0.5, 3.0, 1.0]),
        ("matmul", backend.matmul(&a, &b)?, vec![19.0, 22.0, 43.0, 50.0]),
        (
            "matmul of a view",
            backend.matmul(&backend.transpose(&a, 0, 1)?, &b)?,
            vec![26.0, 30.0, 38.0, 44.0],
        ),
        ("neg", backend.neg(&signs)?, vec![2.0, 0.0, -3.0]),
        ("abs", backend.abs(&signs)?, vec![2.0, 0.0, 3.0]),
        ("sqrt", backend.sqrt(&row)?, vec![1.0, 2.0]),
        ("exp", backend.exp(&backend.zeros(&[1], DType::F64)?)?, vec![1.0]),
        ("log", backend.log(&floats(&[1.0, e], &[2])?)?, vec![0.0, 1.0]),
        ("powf", backend.powf(&row, 1.5)?, vec![1.0, 8.0]),
        ("relu", backend.relu(&signs)?, vec![0.0, 0.0, 3.0]),
        ("sigmoid", backend.sigmoid(&signs)?, vec![sigmoid(-2.0), 0.5, sigmoid(3.0)]),
        ("tanh", backend.tanh(&signs)?, vec![(-2f64).tanh(), 0.0, 3f64.tanh()]),
        ("gelu", backend.gelu(&signs)?, vec![-0.04550026389635842, 0.0, 2.99595030590511]),
        ("gelu_tanh", backend.gelu_tanh(&signs)?, vec![gelu(-2.0), 0.0, gelu(3.0)]),
        ("softmax", backend.softmax(&floats(&[0.0, 3f64.ln()], &[2])?, 0)?, vec![0.25, 0.75]),
        ("sum", backend.sum(&a)?, vec![10.0]),
        ("sum_axis", backend.sum_axis(&a, 0)?, vec![4.0, 6.0]),
        ("mean", backend.mean(&a)?, vec![2.5]),
        ("mean_axis", backend.mean_axis(&a, -1)?, vec![1.5, 3.5]),
        ("max", backend.max(&a)?, vec![4.0]),
        ("max_axis", backend.max_axis(&a, 0)?, vec![3.0, 4.0]),
        ("argmax", backend.argmax(&a)?, vec![3.0]),
        ("argmax_axis", backend.argmax_axis(&a, 0)?, vec![1.0, 1.0]),
        ("reshape", backend.reshape(&a, &[-1])?, vec![1.0, 2.0, 3.0, 4.0]),
        ("contiguous", backend.contiguous(&backend.transpose(&a, 0, 1)?)?, vec![1.0, 3.0, 2.0, 4.0]),
        ("embedding", backend.embedding(&a, &index)?, vec![3.0, 4.0, 1.0, 2.0, 3.0, 4.0]),
        (
            "embedding_backward",
            backend.embedding_backward(&backend.ones(&[3, 2], DType::F64)?, &index, 3)?,
            vec![1.0, 1.0, 2.0, 2.0, 0.0, 0.0],
        ),
        ("layer_norm", backend.layer_norm(&a, &row, &row, 0.0)?, vec![0.0, 8.0, 0.0, 8.0]),
        // Two elements have a normalised distance of 1 from their mean, whatever they are.
        ("layer_norm_backward", norms.input, vec![0.0; 4]),
        ("layer_norm_backward's weight", of_weight, vec![-1.0, 2.0]),
        ("layer_norm_backward's bias", of_bias, vec![1.0, 2.0]),
        ("sparse_cross_entropy", backend.sparse_cross_entropy(&logits, &labels)?, vec![loss]),
        ("the loss with its gradient", both_loss, vec![loss]),
        ("its gradient", gradient, vec![-1.0 / 6.0, 1.0 / 6.0, narrow, -narrow, 1.0 / 6.0, -1.0 / 6.0]),
        ("a layer of any backend", layer(backend, &a, &backend.neg(&b)?)?, vec![0.0; 4]),
    ];
    for (name, found, wanted) in cases {
        let found = backend.to_vec::<f64>(&found.cast(DType::F64)?)?;
        let near = found.len() == wanted.len()
            && found
                .iter()
                .zip(&wanted)
                .all(|(found, wanted)| (found - wanted).abs() <= tolerance * wanted.abs().max(1.0));
        assert!(near, "{name}: {found:?}, not {wanted:?}");
    }
    let view = backend.transpose(&backend.zeros(&[2, 3], DType::F32)?, 0, 1)?;
    assert_eq!(
        (&backend.shape(&view)[..], backend.strides(&view), backend.dtype(&view)),
        (&[3, 2][..], vec![1, 3], DType::F32)
    );
    backend.synchronize()?;
    Ok(())
}
