//! `checkpoint`: the gradients' bits of a run without it, fewer saved values, equal draws, and errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use selvedge::nn::{
    Dropout, FeedForward, FeedForwardOptions, Function, FunctionContext, Initializer, Linear, Module,
    MultiHeadAttention, MultiHeadAttentionOptions, Parameters, TransformerBlock, Variable, checkpoint,
    no_grad,
};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Error, Result, Tensor};

const WIDTH: usize = 8;

/// Blocks with dropout around one shared layer, which the head reads too.
struct Model {
    blocks: Vec<Arc<TransformerBlock>>,
    shared: Arc<Linear>,
    generator: Generator,
}

#[derive(Clone, Copy, PartialEq)]
enum Checkpointed {
    None,
    Blocks,
    Nested,
}

impl Model {
    fn new() -> Result<Model> {
        let initializer = Initializer::new(&Device::cpu()).with_seed(1);
        let generator = Generator::new(9);
        let block = |_| {
            let options = MultiHeadAttentionOptions { is_causal: true, ..MultiHeadAttentionOptions::new(2) };
            let attention =
                MultiHeadAttention::new(WIDTH, options, &initializer)?.with_dropout(0.2, &generator)?;
            let forward = FeedForward::new(WIDTH, FeedForwardOptions::default(), &initializer)?;
            Ok(Arc::new(
                TransformerBlock::new(attention, forward, &initializer)?.with_dropout(0.3, &generator)?,
            ))
        };
        Ok(Model {
            blocks: (0..3).map(block).collect::<Result<_>>()?,
            shared: Arc::new(Linear::new(WIDTH, WIDTH, &initializer)?),
            generator,
        })
    }

    fn forward(&self, x: &Variable, kind: Checkpointed) -> Result<Variable> {
        let mut x = x.clone();
        for block in &self.blocks {
            let (block, shared) = (block.clone(), self.shared.clone());
            let inner = move |x: &[Variable]| block.forward(&x[0]);
            x = match kind {
                Checkpointed::None => shared.forward(&inner(&[x])?)?,
                Checkpointed::Blocks => checkpoint(move |x: &[Variable]| shared.forward(&inner(x)?), &[&x])?,
                Checkpointed::Nested => {
                    let inner = Arc::new(inner);
                    let outer = move |x: &[Variable]| {
                        let inner = inner.clone();
                        shared.forward(&checkpoint(move |x: &[Variable]| inner(x), &[&x[0]])?)
                    };
                    checkpoint(outer, &[&x])?
                }
            };
        }
        self.shared.forward(&x)
    }
}

impl Module for Model {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        self.forward(input, Checkpointed::None)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let blocks = self.blocks.iter().enumerate().flat_map(|(index, block)| {
            block.named_parameters().into_iter().map(move |(name, x)| (format!("{index}.{name}"), x))
        });
        blocks.chain(self.shared.named_parameters()).collect()
    }
}

/// The bits of the result, of all gradients after two backwards, and the generator's place.
fn run(kind: Checkpointed, is_flat: bool) -> Result<(Vec<Vec<u8>>, u64)> {
    let model = Model::new()?;
    let parameters = model.parameters();
    let _flat = if is_flat { Some(Parameters::new(&model)?) } else { None };
    let input = Generator::new(3).randn(&[2, 5, WIDTH], DType::F32, &Device::cpu())?;
    let x = Variable::with_grad(input)?;
    let mut bits = Vec::new();
    for is_retained in [true, false] {
        let result = model.forward(&x, kind)?;
        bits.push(result.tensor().to_bytes()?);
        let loss = result.square()?.mean_all()?;
        if is_retained {
            loss.backward_retain_graph(None)?;
        }
        loss.backward()?;
    }
    for leaf in parameters.iter().chain([&x]) {
        bits.push(leaf.grad().expect("each leaf has a gradient").to_bytes()?);
    }
    Ok((bits, model.generator.state().offset))
}

#[test]
fn gradients_and_draws_have_the_bits_of_a_run_without_checkpoints() -> Result<()> {
    for is_flat in [false, true] {
        let wanted = run(Checkpointed::None, is_flat)?;
        assert!(wanted.1 > 0, "dropout draws");
        assert!(run(Checkpointed::Blocks, is_flat)? == wanted, "flat: {is_flat}");
        assert!(run(Checkpointed::Nested, is_flat)? == wanted, "nested, flat: {is_flat}");
    }
    Ok(())
}

/// Counts the records of an operation that live, and the most at one time.
#[derive(Default)]
struct Counts {
    live: AtomicUsize,
    peak: AtomicUsize,
}

/// 2 x, as one of the counted operations.
struct Counted(Arc<Counts>);

impl Counted {
    fn new(counts: &Arc<Counts>) -> Counted {
        let live = counts.live.fetch_add(1, Ordering::Relaxed) + 1;
        counts.peak.fetch_max(live, Ordering::Relaxed);
        Counted(counts.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Function for Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn forward(&self, context: &mut FunctionContext, inputs: &[&Tensor]) -> Result<Tensor> {
        context.save_input(0);
        inputs[0] * 2.0
    }

    fn backward(&self, _saved: &[Tensor], gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some((gradient * 2.0)?)])
    }
}

#[test]
fn one_checkpoint_at_a_time_has_saved_values() -> Result<()> {
    const PARTS: usize = 6;
    const OPERATIONS: usize = 5;
    for is_checkpointed in [false, true] {
        let counts = Arc::new(Counts::default());
        let x = Variable::with_grad(Tensor::ones(&[3], DType::F64, &Device::cpu())?)?;
        let mut y = x.clone();
        for _ in 0..PARTS {
            let counts = counts.clone();
            let part = move |x: &[Variable]| {
                (0..OPERATIONS).try_fold(x[0].clone(), |x, _| Variable::apply(Counted::new(&counts), &[&x]))
            };
            y = if is_checkpointed { checkpoint(part, &[&y])? } else { part(&[y])? };
        }
        let wanted = if is_checkpointed { (0, 1) } else { (PARTS * OPERATIONS, PARTS * OPERATIONS) };
        let found = (counts.live.load(Ordering::Relaxed), counts.peak.load(Ordering::Relaxed));
        assert_eq!(found, wanted, "after the forward");
        y.sum_all()?.backward()?;
        let peak = counts.peak.load(Ordering::Relaxed);
        assert_eq!(peak, if is_checkpointed { OPERATIONS } else { PARTS * OPERATIONS }, "in the backward");
        assert_eq!(counts.live.load(Ordering::Relaxed), 0, "after the backward");
        let gradient = x.grad().expect("a gradient").to_vec::<f64>()?;
        assert_eq!(gradient, [2f64.powi((PARTS * OPERATIONS) as i32); 3]);
    }
    Ok(())
}

#[test]
fn a_chain_of_checkpoints_recurses_neither_in_the_backward_nor_in_its_drop() -> Result<()> {
    let x = Variable::with_grad(Tensor::ones(&[1], DType::F64, &Device::cpu())?)?;
    let chain = || {
        let mut y = x.clone();
        for _ in 0..20_000 {
            y = checkpoint(|x| &x[0] + 0.5, &[&y])?;
        }
        Ok::<_, Error>(y)
    };
    chain()?.backward()?;
    assert_eq!(x.grad().expect("a gradient").to_vec::<f64>()?, [1.0]);
    drop(chain()?);
    Ok(())
}

#[test]
fn only_functions_of_variables_with_a_gradient_are_recorded() -> Result<()> {
    let tensor = || Tensor::ones(&[2], DType::F64, &Device::cpu());
    let (leaf, constant) = (Variable::with_grad(tensor()?)?, Variable::new(tensor()?));
    assert!(!checkpoint(|x| x[0].exp(), &[&constant])?.requires_grad());
    assert!(!no_grad(|| checkpoint(|x| x[0].exp(), &[&leaf]))?.requires_grad());
    assert!(!checkpoint(|x| x[0].gt(0.0), &[&leaf])?.requires_grad());
    // A leaf that the function reads beside its inputs, an input as the result, and a backward within no_grad.
    let captured = leaf.clone();
    let product = checkpoint(move |x| &x[0] * &captured, &[&constant])?;
    let same = checkpoint(|x| Ok(x[0].clone()), &[&leaf])?;
    assert!(!same.is_leaf());
    let sum = (product + &same)?.sum_all()?;
    no_grad(|| sum.backward())?;
    assert_eq!(leaf.grad().expect("a gradient").to_vec::<f64>()?, [2.0, 2.0]);
    Ok(())
}

#[test]
fn bad_recomputations_are_errors_and_leave_the_gradients() -> Result<()> {
    let device = Device::cpu();
    let leaf = || Variable::with_grad(Tensor::ones(&[2], DType::F64, &device)?);
    let fails = |result: Result<()>, x: &Variable, part: &str| {
        let error = result.expect_err(part);
        assert!(matches!(error, Error::Backward { .. } | Error::InvalidArgument { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}: wanted {part}");
        assert!(x.grad().is_none());
    };
    let update = |x: &Variable| no_grad(|| x.update(|elements| elements.add(1.0).map(|_| ())));

    let (x, weight) = (leaf()?, leaf()?);
    let captured = weight.clone();
    let product = |x: &Variable| {
        let weight = captured.clone();
        checkpoint(move |x| &x[0] * &weight, &[x])?.sum_all()
    };
    let result = product(&x)?;
    update(&weight)?;
    fails(result.backward(), &x, "changed in place");
    let result = product(&x)?;
    update(&x)?;
    fails(result.backward(), &weight, "changed in place");
    let (x, twice) = (leaf()?, leaf()?);
    let result = checkpoint(|x| x[0].exp(), &[&twice])?.sum_all()?;
    result.backward()?;
    fails(result.backward(), &x, "freed");

    // Functions whose second run differs.
    let counter = || Arc::new(AtomicUsize::new(0));
    let runs = counter();
    let other_shape = move |x: &[Variable]| match runs.fetch_add(1, Ordering::Relaxed) {
        0 => x[0].exp(),
        _ => x[0].exp()?.unsqueeze(0),
    };
    fails(checkpoint(other_shape, &[&x])?.sum_all()?.backward(), &x, "a second result of f64 of shape");
    let dropout = |second: usize| {
        let (runs, layer) = (counter(), Dropout::new(0.5, &Generator::new(1))?);
        let function = move |x: &[Variable]| {
            let count = if runs.fetch_add(1, Ordering::Relaxed) == 0 { 1 } else { second };
            (0..count).try_fold(x[0].exp()?, |x, _| layer.forward(&x))
        };
        checkpoint(function, &[&x])?.sum_all()
    };
    fails(dropout(2)?.backward(), &x, "random draw 2");
    fails(dropout(0)?.backward(), &x, "0 random draws");
    dropout(1)?.backward()?;
    x.zero_grad();
    let runs = counter();
    let failing = move |x: &[Variable]| match runs.fetch_add(1, Ordering::Relaxed) {
        0 => x[0].exp(),
        _ => x[0].reshape(&[3]),
    };
    let error = checkpoint(failing, &[&x])?.sum_all()?.backward().expect_err("2 elements are not 3");
    assert!(x.grad().is_none() && !error.to_string().is_empty());
    assert!(checkpoint(|x| x[0].reshape(&[3]), &[&x]).is_err());
    Ok(())
}
