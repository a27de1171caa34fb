//! `Backend` on the CPU: every operation against worked numbers, and operands on the backend's own device.

use selvedge::nn::{Backend, Cpu, Cuda, TransferCounts};
use selvedge::{DType, Device, Error, Result, Tensor};

/// Code for any backend, with operations that need no type of elements.
fn layer(backend: &dyn Backend, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    backend.relu(&backend.matmul(x, weight)?)
}

#[test]
fn every_operation_has_its_value() -> Result<()> {
    let cpu = Cpu::new();
    let floats = |numbers: &[f64], shape: &[usize]| cpu.from_slice(numbers, shape);
    let (a, b) = (floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?, floats(&[5.0, 6.0, 7.0, 8.0], &[2, 2])?);
    let (row, signs) = (floats(&[1.0, 4.0], &[2])?, floats(&[-2.0, 0.0, 3.0], &[3])?);
    let [index, labels] = [[1i64, 0, 1], [0, 1, 1]].map(|numbers| Tensor::new(numbers, &Device::cpu()));
    let (index, labels) = (index?, labels?);
    let logits = floats(&[0.0, 0.0, 0.0, 2.0, 1.0, 1.0], &[3, 2])?;
    let e = std::f64::consts::E;
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let gelu = |x: f64| x * (1.0 + (0.7978845608028654 * (x + 0.044715 * x * x * x)).tanh()) / 2.0;
    let loss = (2.0 * 2f64.ln() + (1.0 + (-2f64).exp()).ln()) / 3.0;
    let narrow = sigmoid(-2.0) / 3.0;
    let (both_loss, gradient) = cpu.sparse_cross_entropy_with_gradient(&logits, &labels)?;
    let norms = cpu.layer_norm_backward(&a, &floats(&[1.0, 0.0, 0.0, 2.0], &[2, 2])?, &row, 0.0)?;
    let [of_weight, of_bias] = norms.parameters.expect("they are requested");
    let cases: Vec<(&str, Tensor, Vec<f64>)> = vec![
        ("zeros", cpu.zeros(&[2], DType::F64)?, vec![0.0; 2]),
        ("ones", cpu.ones(&[2], DType::F64)?, vec![1.0; 2]),
        ("add", cpu.add(&a, &row)?, vec![2.0, 6.0, 4.0, 8.0]),
        ("sub", cpu.sub(&a, &row)?, vec![0.0, -2.0, 2.0, 0.0]),
        ("mul", cpu.mul(&a, &row)?, vec![1.0, 8.0, 3.0, 16.0]),
        ("div", cpu.div(&a, &row)?, vec![1.0, 0.5, 3.0, 1.0]),
        ("matmul", cpu.matmul(&a, &b)?, vec![19.0, 22.0, 43.0, 50.0]),
        ("matmul of a view", cpu.matmul(&cpu.transpose(&a, 0, 1)?, &b)?, vec![26.0, 30.0, 38.0, 44.0]),
        ("neg", cpu.neg(&signs)?, vec![2.0, 0.0, -3.0]),
        ("abs", cpu.abs(&signs)?, vec![2.0, 0.0, 3.0]),
        ("sqrt", cpu.sqrt(&row)?, vec![1.0, 2.0]),
        ("exp", cpu.exp(&cpu.zeros(&[1], DType::F64)?)?, vec![1.0]),
        ("log", cpu.log(&floats(&[1.0, e], &[2])?)?, vec![0.0, 1.0]),
        ("powf", cpu.powf(&row, 1.5)?, vec![1.0, 8.0]),
        ("relu", cpu.relu(&signs)?, vec![0.0, 0.0, 3.0]),
        ("sigmoid", cpu.sigmoid(&signs)?, vec![sigmoid(-2.0), 0.5, sigmoid(3.0)]),
        ("tanh", cpu.tanh(&signs)?, vec![(-2f64).tanh(), 0.0, 3f64.tanh()]),
        ("gelu", cpu.gelu(&signs)?, vec![-0.04550026389635842, 0.0, 2.99595030590511]),
        ("gelu_tanh", cpu.gelu_tanh(&signs)?, vec![gelu(-2.0), 0.0, gelu(3.0)]),
        ("softmax", cpu.softmax(&floats(&[0.0, 3f64.ln()], &[2])?, 0)?, vec![0.25, 0.75]),
        ("sum", cpu.sum(&a)?, vec![10.0]),
        ("sum_axis", cpu.sum_axis(&a, 0)?, vec![4.0, 6.0]),
        ("mean", cpu.mean(&a)?, vec![2.5]),
        ("mean_axis", cpu.mean_axis(&a, -1)?, vec![1.5, 3.5]),
        ("max", cpu.max(&a)?, vec![4.0]),
        ("max_axis", cpu.max_axis(&a, 0)?, vec![3.0, 4.0]),
        ("argmax", cpu.argmax(&a)?, vec![3.0]),
        ("argmax_axis", cpu.argmax_axis(&a, 0)?, vec![1.0, 1.0]),
        ("reshape", cpu.reshape(&a, &[-1])?, vec![1.0, 2.0, 3.0, 4.0]),
        ("contiguous", cpu.contiguous(&cpu.transpose(&a, 0, 1)?)?, vec![1.0, 3.0, 2.0, 4.0]),
        ("embedding", cpu.embedding(&a, &index)?, vec![3.0, 4.0, 1.0, 2.0, 3.0, 4.0]),
        (
            "embedding_backward",
            cpu.embedding_backward(&cpu.ones(&[3, 2], DType::F64)?, &index, 3)?,
            vec![1.0, 1.0, 2.0, 2.0, 0.0, 0.0],
        ),
        ("layer_norm", cpu.layer_norm(&a, &row, &row, 0.0)?, vec![0.0, 8.0, 0.0, 8.0]),
        // Two elements have a normalised distance of 1 from their mean, whatever they are.
        ("layer_norm_backward", norms.input, vec![0.0; 4]),
        ("layer_norm_backward's weight", of_weight, vec![-1.0, 2.0]),
        ("layer_norm_backward's bias", of_bias, vec![1.0, 2.0]),
        ("sparse_cross_entropy", cpu.sparse_cross_entropy(&logits, &labels)?, vec![loss]),
        ("the loss with its gradient", both_loss, vec![loss]),
        ("its gradient", gradient, vec![-1.0 / 6.0, 1.0 / 6.0, narrow, -narrow, 1.0 / 6.0, -1.0 / 6.0]),
        ("a layer of any backend", layer(&cpu, &a, &cpu.neg(&b)?)?, vec![0.0; 4]),
    ];
    for (name, found, wanted) in cases {
        let found = cpu.to_vec::<f64>(&found.cast(DType::F64)?)?;
        let near = found.len() == wanted.len()
            && found.iter().zip(&wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-12);
        assert!(near, "{name}: {found:?}, not {wanted:?}");
    }
    let view = cpu.transpose(&cpu.zeros(&[2, 3], DType::F32)?, 0, 1)?;
    assert_eq!(
        (&cpu.shape(&view)[..], cpu.strides(&view), cpu.dtype(&view)),
        (&[3, 2][..], vec![1, 3], DType::F32)
    );
    cpu.synchronize()?;
    Ok(())
}

#[test]
fn bad_operands_are_typed_errors_and_own_operands_move_nowhere() -> Result<()> {
    let cpu = Cpu::new().with_automatic_transfers(true);
    let (x, y) = (cpu.ones(&[2], DType::F32)?, cpu.ones(&[3], DType::F32)?);
    let faults = [
        cpu.add(&x, &y),
        cpu.softmax(&x, 1),
        cpu.embedding(&x, &y),
        cpu.embedding_backward(&cpu.sum(&x)?, &x, 1),
        cpu.embedding_backward(&y, &x, 1),
        cpu.sparse_cross_entropy(&x, &y),
        cpu.layer_norm(&x, &y, &y, 0.0),
        cpu.from_slice(&[1.0f32], &[2]),
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let error = fault.expect_err(&format!("case {number}"));
        assert!(!error.to_string().is_empty());
    }
    assert!(cpu.transfers().are_enabled() && !Cpu::new().transfers().are_enabled());
    assert_eq!(cpu.transfers().counts(), TransferCounts::default());
    if !Cuda::is_available() {
        let error = Cuda::new(0).map(drop).expect_err("no device");
        assert!(!matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
    Ok(())
}
