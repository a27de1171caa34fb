//! `OptimizerPair`: steps of both optimizers, their learning rates and states, and errors that leave both as they were.

use std::collections::BTreeMap;

use selvedge::nn::{Adam, AdamW, Lion, Muon, Optimizer, OptimizerPair, Sgd, Variable};
use selvedge::{DType, Device, Result, Tensor};

fn leaf(shape: &[usize]) -> Result<Variable> {
    Variable::with_grad(Tensor::ones(shape, DType::F32, &Device::cpu())?)
}

/// Gives each parameter the gradient of the sum of squares.
fn backward(parameters: &[Variable]) -> Result<()> {
    for parameter in parameters {
        parameter.zero_grad();
        parameter.square()?.sum_all()?.backward()?;
    }
    Ok(())
}

fn bits(entries: &BTreeMap<String, Tensor>) -> Result<Vec<(&String, Vec<u8>)>> {
    entries.iter().map(|(name, entry)| Ok((name, entry.to_bytes()?))).collect()
}

#[test]
fn a_pair_takes_the_steps_of_both_optimizers() -> Result<()> {
    let [matrix, bias, other_matrix, other_bias] = [leaf(&[2, 3])?, leaf(&[3])?, leaf(&[2, 3])?, leaf(&[3])?];
    let mut pair =
        OptimizerPair::new(Muon::new(vec![matrix.clone()], 0.1)?, AdamW::new(vec![bias.clone()], 0.2)?)?;
    let mut muon = Muon::new(vec![other_matrix.clone()], 0.1)?;
    let mut adamw = AdamW::new(vec![other_bias.clone()], 0.2)?;
    assert_eq!(pair.name(), "OptimizerPair");
    assert!(pair.parameters().iter().zip([&matrix, &bias]).all(|(found, wanted)| found.is_same(wanted)));
    let mut key = pair.capture_key();
    for step in 0..3 {
        backward(&[matrix.clone(), bias.clone(), other_matrix.clone(), other_bias.clone()])?;
        if step == 2 {
            // A parameter of the second without a gradient ends the captured runs.
            bias.zero_grad();
            other_bias.zero_grad();
        }
        pair.step()?;
        muon.step()?;
        adamw.step()?;
        for (found, wanted) in [(&matrix, &other_matrix), (&bias, &other_bias)] {
            assert_eq!(found.tensor().to_bytes()?, wanted.tensor().to_bytes()?, "step {step}");
        }
        assert_eq!(pair.capture_key() != key, step != 1, "step {step}");
        key = pair.capture_key();
    }
    let entries = pair.state_dict()?;
    let names: Vec<&str> = entries.keys().map(String::as_str).collect();
    let wanted =
        ["first.0.momentum_buffer", "first.learning_rate", "second.0.exp_avg", "second.0.exp_avg_sq"];
    assert_eq!(names, [&wanted[..], &["second.0.step", "second.learning_rate"]].concat());
    pair.zero_grad();
    assert!(matrix.grad().is_none());
    Ok(())
}

#[test]
fn a_learning_rate_of_a_pair_keeps_the_ratio() -> Result<()> {
    let pair = |first: f64, second: f64| {
        OptimizerPair::new(Sgd::new(vec![leaf(&[2])?], first)?, Lion::new(vec![leaf(&[3])?], second)?)
    };
    let second = |pair: &dyn Optimizer| pair.state_dict()?["second.learning_rate"].item::<f64>();
    let mut rates = pair(0.5, 0.125)?;
    for (rate, wanted) in [(1.0, 0.25), (0.0, 0.0), (2.0, 0.5)] {
        rates.set_learning_rate(rate);
        assert_eq!((rates.learning_rate(), second(&rates)?), (rate, wanted));
    }
    // Loaded rates have a ratio of their own.
    let mut loaded = pair(0.0, 0.0)?;
    loaded.load_state_dict(&rates.state_dict()?)?;
    loaded.set_learning_rate(4.0);
    assert_eq!(second(&loaded)?, 1.0);
    let text = pair(0.0, 0.5).map(drop).unwrap_err().to_string();
    assert!(
        text.starts_with("OptimizerPair: found learning rates of 0 and 0.5; wanted a first one above 0"),
        "{text}"
    );
    Ok(())
}

#[test]
fn a_parameter_in_both_optimizers_is_refused() -> Result<()> {
    let (x, y) = (leaf(&[2, 2])?, leaf(&[2, 2])?);
    let muon = Muon::new(vec![y.clone(), x.clone()], 0.1)?;
    let text = OptimizerPair::new(muon, AdamW::new(vec![x], 0.1)?).map(drop).unwrap_err().to_string();
    let wanted = "OptimizerPair: found parameter 1 of the Muon as parameter 0 of the AdamW; wanted each parameter in one optimizer";
    assert_eq!(text, wanted);
    Ok(())
}

#[test]
fn a_step_that_the_second_refuses_does_not_count_for_the_first() -> Result<()> {
    let (x, y) = (leaf(&[2])?, leaf(&[3])?);
    let mut pair = OptimizerPair::new(Adam::new(vec![x.clone()], 1e-3)?, AdamW::new(vec![y.clone()], 1.0)?)?;
    let steps = |pair: &dyn Optimizer| -> Result<Vec<i64>> {
        let entries = pair.state_dict()?;
        ["first.0.step", "second.0.step"].iter().map(|name| entries[*name].item()).collect()
    };
    backward(&[x.clone(), y.clone()])?;
    pair.step()?;
    let before = [x.tensor().to_bytes()?, y.tensor().to_bytes()?];
    // The second's rate is too large for a number.
    pair.set_learning_rate(1e308);
    let text = pair.step().unwrap_err().to_string();
    assert!(text.contains("AdamW: found a learning rate of inf"), "{text}");
    assert_eq!(steps(&pair)?, [1, 1]);
    assert_eq!([x.tensor().to_bytes()?, y.tensor().to_bytes()?], before);
    // Nor does the second count a step that the first cannot take.
    let mut pair = OptimizerPair::new(Adam::new(vec![x.clone()], 1e-3)?, AdamW::new(vec![y.clone()], 1.0)?)?;
    pair.step()?;
    pair.advance()?;
    x.zero_grad();
    assert!(pair.apply().is_err());
    assert_eq!(steps(&pair)?, [1, 1]);
    // A withdrawn step counts for neither.
    backward(&[x, y])?;
    pair.advance()?;
    pair.withdraw();
    assert_eq!(steps(&pair)?, [1, 1]);
    Ok(())
}

#[test]
fn a_state_that_either_refuses_changes_neither() -> Result<()> {
    let pair = || -> Result<_> {
        let parameters = [leaf(&[2, 2])?, leaf(&[3])?];
        let [x, y] = parameters.clone();
        let mut pair = OptimizerPair::new(Muon::new(vec![x], 0.1)?, AdamW::new(vec![y], 0.1)?)?;
        backward(&parameters)?;
        pair.step()?;
        Ok(pair)
    };
    let (mut found, mut other) = (pair()?, pair()?);
    other.step()?;
    other.set_learning_rate(0.5);
    let before = found.state_dict()?;
    let mut damaged = other.state_dict()?;
    damaged.remove("second.0.exp_avg");
    damaged.insert("0.step".to_owned(), Tensor::new(1i64, &Device::cpu())?);
    let text = found.load_state_dict(&damaged).unwrap_err().to_string();
    for part in ["'0.step' is extra", "of 'second.'", "'0.exp_avg' is missing"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("of 'first.'"), "{text}");
    assert_eq!(bits(&found.state_dict()?)?, bits(&before)?);
    found.load_state_dict(&other.state_dict()?)?;
    assert_eq!(bits(&found.state_dict()?)?, bits(&other.state_dict()?)?);
    Ok(())
}
