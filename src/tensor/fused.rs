//! [`Fused`], a function of elements as one kernel, and [`fuse`], the same for one call.
//!
//! A closure computes an [`Expr`], which is lowered once for each combination of dtypes and cached. Invariants: a cache
//! lookup takes no lock, and a number is never part of a cached expression.

use std::any::TypeId;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use super::axes::Axes;
use super::cached_operation::{AppendOnlyMap, OperandKind};
use super::evaluate::{OperandSource, broadcast};
use super::groups::{CompiledFunction, GroupAxes, output_shapes};
use super::in_place::{TensorMut, write_all};
use super::operand::{Inputs, TensorOperand};
use super::tensor::{Tensor, one_device};
use crate::error::{Error, Result};
use crate::fuse::{Explanation, Expr, Graph, Number, RowExplanation, dtype_of_number};
use crate::types::{DType, Layout, common_dtype};

const OPERATION: &str = "a fused run";

/// An elementwise function compiled to one kernel, which reads each input and writes each output once, however many operations
/// the function has. PyTorch's `torch.compile`.
///
/// A closure defines it, with [`Expr`]s as arguments. It runs on tensors and numbers of any dtypes, on the CPU and on CUDA
/// devices. The numbers of a run and the numbers in the closure are parameters of the kernel, so other values need no other
/// kernel. Reductions over groups make it a row program; see [`over`](Self::over).
///
/// ```
/// use selvedge::tensor::{Device, Fused, Tensor};
/// let device = Device::best();
/// let [a, b, c] = [[1.0f32, -2.0], [3.0, 4.0], [0.5, 0.5]].map(|row| Tensor::new(row, &device));
/// let f = Fused::new(|[a, b, c]| (a * b + c).relu());
/// assert_eq!(f.run([&a?, &b?, &c?])?.to_vec::<f32>()?, [3.5, 0.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// With several outputs, and a number that each run gives:
///
/// ```
/// use selvedge::tensor::{Device, Fused, Tensor};
/// let deviations = Fused::with_outputs(|[x, mean]| {
///     let deviation = x - mean;
///     [deviation, deviation.square()]
/// });
/// let x = Tensor::new([1.0f64, 2.0, 6.0], &Device::cpu())?;
/// let [deviation, square] = deviations.run_all((&x, 3.0))?;
/// assert_eq!(deviation.to_vec::<f64>()?, [-2.0, -1.0, 3.0]);
/// assert_eq!(square.to_vec::<f64>()?, [4.0, 1.0, 9.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct Fused<const INPUTS: usize, const OUTPUTS: usize = 1> {
    build: Box<Build<INPUTS, OUTPUTS>>,
    cache: AppendOnlyMap<(OperandKinds<INPUTS>, Stored<OUTPUTS>), CompiledFunction>,
    /// The last expression that has its run's numbers as literals.
    by_value: Mutex<Option<ByValue<INPUTS, OUTPUTS>>>,
    /// The axes of a group, for reductions over groups.
    axes: GroupAxes,
}

/// A function with its run's numbers as literals.
type ByValue<const INPUTS: usize, const OUTPUTS: usize> =
    (ByValueKey<INPUTS, OUTPUTS>, Arc<CompiledFunction>);

/// Kinds of the operands, dtypes of the outputs, and the bits of the numbers.
type ByValueKey<const INPUTS: usize, const OUTPUTS: usize> =
    (OperandKinds<INPUTS>, Stored<OUTPUTS>, Vec<[u64; 2]>);

type Build<const INPUTS: usize, const OUTPUTS: usize> =
    dyn for<'g> Fn([Expr<'g>; INPUTS]) -> [Expr<'g>; OUTPUTS] + Send + Sync;

/// A function of a graph and its inputs, which may fail.
pub(super) type BuildList<'b> = dyn for<'g> Fn(&'g Graph, &[Expr<'g>]) -> Result<Vec<Expr<'g>>> + 'b;

type OperandKinds<const INPUTS: usize> = [OperandKind; INPUTS];

/// The dtypes to cast outputs to, if any.
type Stored<const OUTPUTS: usize> = [Option<DType>; OUTPUTS];

/// The operands of a fused run: an array of tensors, or a tuple of tensors and numbers.
pub trait FusedOperands<'a, const COUNT: usize> {
    /// One by one.
    fn list(self) -> [TensorOperand<'a>; COUNT];
}

impl<'a, T: Into<TensorOperand<'a>>, const COUNT: usize> FusedOperands<'a, COUNT> for [T; COUNT] {
    fn list(self) -> [TensorOperand<'a>; COUNT] {
        self.map(Into::into)
    }
}

macro_rules! tuples {
    ($($count:literal: $($type:ident $name:ident),*;)*) => {$(
        impl<'a, $($type: Into<TensorOperand<'a>>),*> FusedOperands<'a, $count> for ($($type,)*) {
            fn list(self) -> [TensorOperand<'a>; $count] {
                let ($($name,)*) = self;
                [$($name.into()),*]
            }
        }
    )*};
}

tuples! {
    1: A a;
    2: A a, B b;
    3: A a, B b, C c;
    4: A a, B b, C c, D d;
    5: A a, B b, C c, D d, E e;
    6: A a, B b, C c, D d, E e, F f;
    7: A a, B b, C c, D d, E e, F f, G g;
    8: A a, B b, C c, D d, E e, F f, G g, H h;
}

impl<const INPUTS: usize> Fused<INPUTS> {
    /// Creates a function with one output.
    pub fn new(
        function: impl for<'g> Fn([Expr<'g>; INPUTS]) -> Expr<'g> + Send + Sync + 'static,
    ) -> Fused<INPUTS> {
        Fused::with_outputs(move |inputs| [function(inputs)])
    }

    /// Computes the output of these inputs, in the shape to which they broadcast.
    ///
    /// # Errors
    ///
    /// As [`run_all`](Self::run_all).
    pub fn run<'a>(&self, operands: impl FusedOperands<'a, INPUTS>) -> Result<Tensor> {
        let operands = operands.list();
        run(&self.compiled(&operands, [None])?, &operands, &self.axes)
    }
}

impl<const INPUTS: usize, const OUTPUTS: usize> Fused<INPUTS, OUTPUTS> {
    /// Creates a function with one or several outputs.
    pub fn with_outputs(
        function: impl for<'g> Fn([Expr<'g>; INPUTS]) -> [Expr<'g>; OUTPUTS] + Send + Sync + 'static,
    ) -> Fused<INPUTS, OUTPUTS> {
        Fused {
            build: Box::new(function),
            cache: AppendOnlyMap::new(),
            by_value: Mutex::new(None),
            axes: GroupAxes::Last,
        }
    }

    /// Sets the axes of a group for reductions such as [`Expr::sum_group`]. They are axes of the shape to which
    /// the inputs broadcast. Without this call a group is a row along the last axis.
    ///
    /// A function with such reductions is a [`RowProgram`](crate::fuse::RowProgram). An output that depends on
    /// inputs through reductions only has one value per group, and size 1 in the axes of the group.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Fused, Tensor};
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 6.0]], &Device::best())?;
    /// let shares = Fused::new(|[x]| x / x.sum_group());
    /// assert_eq!(shares.over(0).run([&x])?.to_vec::<f32>()?, [0.25, 0.25, 0.75, 0.75]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[must_use]
    pub fn over<'a>(mut self, axes: impl Into<Axes<'a>>) -> Fused<INPUTS, OUTPUTS> {
        self.axes = axes.into().into();
        self
    }

    fn compiled(
        &self,
        operands: &[TensorOperand<'_>; INPUTS],
        stored: Stored<OUTPUTS>,
    ) -> Result<Lowered<'_>> {
        // One by one: every run compares, and a comparison of whole arrays may become a call.
        let same = |key: &(OperandKinds<INPUTS>, Stored<OUTPUTS>)| {
            (0..INPUTS).all(|at| key.0[at] == OperandKind::of(&operands[at]))
                && (0..OUTPUTS).all(|at| key.1[at] == stored[at])
        };
        let cached = || {
            self.cache.find_or_add(same, || {
                let kinds = operands.each_ref().map(OperandKind::of);
                Ok(((kinds, stored), lower(&kinds, &[], &stored, &self.build)?))
            })
        };
        with_values(operands, cached, || self.by_value(operands, stored))
    }

    /// Returns the expression with these numbers as literals. It is lowered again only if the operands' kinds, the
    /// outputs' dtypes or the numbers differ from those of the last such run.
    #[cold]
    fn by_value(
        &self,
        operands: &[TensorOperand<'_>; INPUTS],
        stored: Stored<OUTPUTS>,
    ) -> Result<Arc<CompiledFunction>> {
        let kinds = operands.each_ref().map(OperandKind::of);
        let inputs = inputs(operands);
        let key = (kinds, stored, inputs.numbers().iter().map(|number| bits(*number)).collect());
        let last = || self.by_value.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, expression)) = &*last()
            && *known == key
        {
            return Ok(expression.clone());
        }
        let expression = Arc::new(lower(&kinds, inputs.numbers(), &stored, &self.build)?);
        let replaced = last().replace((key, expression.clone()));
        // The old expression may be the last owner of its kernels, so it is dropped without the lock.
        drop(replaced);
        Ok(expression)
    }

    /// Computes the outputs of these inputs, each in the shape to which the inputs broadcast.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for dtypes that an operation does not support, [`Error::InvalidArgument`] for shapes
    /// that do not broadcast or where no input is a tensor, [`Error::DeviceMismatch`] for tensors on several devices.
    pub fn run_all<'a>(&self, operands: impl FusedOperands<'a, INPUTS>) -> Result<[Tensor; OUTPUTS]> {
        let operands = operands.list();
        let compiled = self.compiled(&operands, [None; OUTPUTS])?;
        let inputs = inputs(&operands);
        let given = given(&compiled, &inputs);
        let outputs = compiled.evaluate(OPERATION, inputs.sources(), given, &self.axes)?;
        let found = outputs.len();
        outputs.try_into().map_err(|_| Error::LengthMismatch { operation: OPERATION, wanted: OUTPUTS, found })
    }

    /// As [`run_all`](Self::run_all), into existing outputs: `&mut Tensor`s or parts of them. They have one shape, to which the
    /// inputs broadcast, and dtypes that can hold the results.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Fused, Tensor};
    /// use selvedge::types::DType;
    /// let x = Tensor::new([1i32, 2, 3], &Device::cpu())?;
    /// let mut y = Tensor::zeros(&[2, 3], DType::I64, &Device::cpu())?;
    /// Fused::new(|[x]| x * x + 1).run_into([&x], [y.slice_mut(0, 1..)?])?;
    /// assert_eq!(y.to_vec::<i64>()?, [0, 0, 0, 2, 5, 10]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run_all`](Self::run_all), and for outputs that cannot hold the results or are of several shapes.
    pub fn run_into<'a, 'b>(
        &self,
        operands: impl FusedOperands<'a, INPUTS>,
        outputs: [impl Into<TensorMut<'b>>; OUTPUTS],
    ) -> Result<()> {
        let operands = operands.list();
        let mut outputs = outputs.map(Into::into);
        let compiled = self.compiled(&operands, outputs.each_ref().map(|output| Some(output.dtype())))?;
        let inputs = inputs(&operands);
        write_all(&mut outputs, |targets| {
            let given = given(&compiled, &inputs);
            compiled.evaluate_into(OPERATION, inputs.sources(), given, &self.axes, targets)
        })
    }

    /// Replaces outputs by functions of themselves: the first inputs are the elements of the outputs before the run, the other
    /// inputs are `others`. Elements that no other tensor shares stay at their address.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Fused, Tensor};
    /// let mut x = Tensor::new([1.0f32, 2.0], &Device::cpu())?;
    /// let mut y = Tensor::new([3.0f32, 5.0], &Device::cpu())?;
    /// let rotate = Fused::with_outputs(|[x, y, factor]| [y * factor, x]);
    /// rotate.run_in_place([&mut x, &mut y], [(-1.0).into()])?;
    /// assert_eq!((x.to_vec::<f32>()?, y.to_vec::<f32>()?), (vec![-3.0, -5.0], vec![1.0, 2.0]));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run_into`](Self::run_into); [`Error::LengthMismatch`] for another number of operands, and
    /// [`Error::InvalidArgument`] for an output with a value per group and for a function with sums over groups.
    pub fn run_in_place<'a, 'b, const OTHERS: usize>(
        &self,
        outputs: [impl Into<TensorMut<'b>>; OUTPUTS],
        others: [TensorOperand<'a>; OTHERS],
    ) -> Result<()> {
        let mut outputs = outputs.map(Into::into);
        outputs.iter_mut().try_for_each(TensorMut::make_unique)?;
        let stored = outputs.each_ref().map(|output| Some(output.dtype()));
        let compiled = {
            // The elements are shared while these tensors live, so they end before the run.
            let before = outputs.each_ref().map(TensorMut::current);
            let operands: Vec<TensorOperand<'_>> =
                before.iter().map(TensorOperand::from).chain(others).collect();
            let found = operands.len();
            let operands = operands.try_into().map_err(|_| Error::LengthMismatch {
                operation: OPERATION,
                wanted: INPUTS,
                found,
            })?;
            self.compiled(&operands, stored)?
        };
        let mut inputs = Inputs::<INPUTS>::default();
        (0..OUTPUTS).for_each(|output| inputs.push_source(OperandSource::Output(output)));
        others.iter().for_each(|operand| inputs.push(operand));
        write_all(&mut outputs, |targets| {
            let given = given(&compiled, &inputs);
            compiled.evaluate_into(OPERATION, inputs.sources(), given, &self.axes, targets)
        })
    }

    /// Returns the launches of a run on operands like these, with the kernel's text. For tensors on the CPU, which runs the same
    /// instructions, they are those of a device of compute capability 9.0.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Fused, Tensor};
    /// let x = Tensor::new([1.0f32; 8], &Device::cpu())?;
    /// let plan = Fused::new(|[x]| x.exp() + 1.0).explain([&x])?;
    /// assert!(plan.to_string().contains(".visible .entry fused"));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run_all`](Self::run_all).
    pub fn explain<'a>(&self, operands: impl FusedOperands<'a, INPUTS>) -> Result<Explanation> {
        let operands = operands.list();
        let compiled = self.compiled(&operands, [None; OUTPUTS])?;
        let CompiledFunction::Elementwise(expression) = &*compiled else {
            let wanted = "elementwise operations of one kernel; explain_groups describes others";
            return Err(Error::invalid(OPERATION, "a function of several kernels or reductions", wanted));
        };
        let (inputs, output, capability) = layouts(&operands)?;
        expression.explain(&inputs, &[output; OUTPUTS], capability)
    }

    /// As [`explain`](Self::explain), for a function with reductions over groups, or of elementwise operations that exceed the
    /// limits of one kernel: its kernels with the bytes that each reads and writes.
    ///
    /// # Errors
    ///
    /// As [`run_all`](Self::run_all); [`Error::InvalidArgument`] for elementwise operations of one kernel.
    pub fn explain_groups<'a>(&self, operands: impl FusedOperands<'a, INPUTS>) -> Result<RowExplanation> {
        let operands = operands.list();
        let compiled = self.compiled(&operands, [None; OUTPUTS])?;
        let (inputs, elements, capability) = layouts(&operands)?;
        let (program, axes) = match &*compiled {
            CompiledFunction::Rows(program) => (program, self.axes.of(elements.shape())),
            CompiledFunction::Several(program) => (program, Vec::new()),
            CompiledFunction::Elementwise(_) => {
                let wanted = "reductions or several kernels; explain describes elementwise operations";
                return Err(Error::invalid(OPERATION, "elementwise operations of one kernel", wanted));
            }
        };
        let shapes = output_shapes(OPERATION, program, elements.shape(), &axes)?;
        let outputs: Vec<Layout> = shapes.into_iter().map(Layout::from_shape).collect();
        program.explain(&inputs, &axes, &outputs, capability)
    }
}

/// Returns the layouts of the tensors, that of an output of their common shape, and the compute capability of their device,
/// or 9.0 for the CPU.
pub(super) fn layouts(operands: &[TensorOperand<'_>]) -> Result<(Vec<Layout>, Layout, (i32, i32))> {
    let tensors = || operands.iter().filter_map(TensorOperand::tensor);
    let device = one_device(OPERATION, tensors())?;
    let output = Layout::from_shape(*broadcast(OPERATION, tensors())?);
    let capability = device.as_cuda().map_or((9, 0), |device| device.compute_capability());
    Ok((tensors().map(|tensor| *tensor.layout()).collect(), output, capability))
}

impl<const INPUTS: usize, const OUTPUTS: usize> fmt::Debug for Fused<INPUTS, OUTPUTS> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fused({INPUTS} -> {OUTPUTS})")
    }
}

/// Computes an elementwise function as one kernel. [`Fused`] is the same as a value that several calls share.
///
/// A closure that captures nothing is lowered once for each combination of dtypes. A closure that captures values is lowered
/// at each call, so pass a number that changes as an operand: `fuse((&x, scale), |[x, scale]| x * scale)`.
///
/// ```
/// use selvedge::tensor::{Device, Tensor, fuse};
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &Device::best())?;
/// let row = Tensor::new([1.0f32, 3.0], &Device::best())?;
/// let distance = fuse([&x, &row], |[x, row]| (x - row).square().sqrt())?;
/// assert_eq!(distance.to_vec::<f32>()?, [0.0, 1.0, 2.0, 1.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// As [`Fused::run_all`].
pub fn fuse<'a, const INPUTS: usize, F>(
    operands: impl FusedOperands<'a, INPUTS>,
    function: F,
) -> Result<Tensor>
where
    F: for<'g> Fn([Expr<'g>; INPUTS]) -> Expr<'g> + 'static,
{
    let operands = operands.list();
    let kinds = operands.each_ref().map(OperandKind::of);
    let build: &dyn for<'g> Fn([Expr<'g>; INPUTS]) -> [Expr<'g>; 1] = &|inputs| [function(inputs)];
    let axes = GroupAxes::Last;
    if size_of::<F>() == 0 {
        // Its type is all that there is to it.
        static CACHE: AppendOnlyMap<(TypeId, Vec<OperandKind>), CompiledFunction> = AppendOnlyMap::new();
        let own = TypeId::of::<F>();
        let same = |key: &(TypeId, Vec<OperandKind>)| key.0 == own && key.1 == kinds;
        let make = || Ok(((own, kinds.to_vec()), lower(&kinds, &[], &[None], build)?));
        let by_value = || lower(&kinds, inputs(&operands).numbers(), &[None], build).map(Arc::new);
        run(&with_values(&operands, || CACHE.find_or_add(same, make), by_value)?, &operands, &axes)
    } else {
        // Made for this call alone, so the numbers may belong to it.
        let compiled = lower(&kinds, inputs(&operands).numbers(), &[None], build)?;
        run(&Lowered::Uncached(compiled.into()), &operands, &axes)
    }
}

/// An expression of a function: a cached one, whose numbers each run gives, or one for a single call, which has the
/// numbers as literals.
enum Lowered<'e> {
    Cached(&'e CompiledFunction),
    Uncached(Arc<CompiledFunction>),
}

impl Deref for Lowered<'_> {
    type Target = CompiledFunction;

    fn deref(&self) -> &CompiledFunction {
        match self {
            Lowered::Cached(expression) => expression,
            Lowered::Uncached(expression) => expression,
        }
    }
}

/// Returns the cached expression, or the one with the numbers as literals if the cached one would not use their values.
fn with_values<'e, const INPUTS: usize>(
    operands: &[TensorOperand<'_>; INPUTS],
    cached: impl FnOnce() -> Result<&'e CompiledFunction>,
    by_value: impl FnOnce() -> Result<Arc<CompiledFunction>>,
) -> Result<Lowered<'e>> {
    if holds_all(operands)? {
        let cached = cached()?;
        if !cached.compares_by_value() {
            return Ok(Lowered::Cached(cached));
        }
    }
    by_value().map(Lowered::Uncached)
}

/// Returns the bits of a number. Numbers of one kind with equal bits are the same number.
fn bits(number: Number) -> [u64; 2] {
    match number {
        Number::Bool(number) => [number.into(), 0],
        Number::Integer(number) => [number as u64, (number >> 64) as u64],
        Number::Real(number) => [number.to_bits(), 0],
        Number::Complex(number) => [number.re.to_bits(), number.im.to_bits()],
    }
}

/// Returns whether the numbers' dtypes, which are of the tensors', hold them.
#[inline]
pub(super) fn holds_all(operands: &[TensorOperand<'_>]) -> Result<bool> {
    let first = operands.iter().find_map(TensorOperand::tensor).map(Tensor::dtype);
    let plain = |operand: &TensorOperand<'_>| match (operand, first) {
        (TensorOperand::Tensor(tensor), Some(first)) => tensor.dtype() == first,
        (TensorOperand::Number(number), Some(first)) => {
            number.kind() as u8 <= first.kind() as u8 && number.fits(first)
        }
        _ => false,
    };
    if operands.iter().all(plain) {
        return Ok(true);
    }
    let common = common_dtype(operands.iter().filter_map(|operand| OperandKind::of(operand).dtype()))?;
    for operand in operands {
        if let TensorOperand::Number(number) = operand
            && !number.fits(dtype_of_number(number.kind(), common)?)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The numbers that a run is given: none where they belong to the expression.
fn given<'a, const INPUTS: usize>(expression: &Lowered<'_>, inputs: &'a Inputs<'_, INPUTS>) -> &'a [Number] {
    match expression {
        Lowered::Cached(_) => inputs.numbers(),
        Lowered::Uncached(_) => &[],
    }
}

fn lower<const INPUTS: usize, const OUTPUTS: usize>(
    kinds: &OperandKinds<INPUTS>,
    literals: &[Number],
    stored: &Stored<OUTPUTS>,
    build: &dyn for<'g> Fn([Expr<'g>; INPUTS]) -> [Expr<'g>; OUTPUTS],
) -> Result<CompiledFunction> {
    lower_list(kinds, literals, stored, CompiledFunction::new, &|_, inputs| {
        Ok(build(std::array::from_fn(|at| inputs[at])).to_vec())
    })
}

/// As [`lower`], with as many operands and outputs as there are at run time, and any compiler of the graph.
pub(super) fn lower_list<T>(
    kinds: &[OperandKind],
    literals: &[Number],
    stored: &[Option<DType>],
    compile: impl Fn(&Graph, &[Expr<'_>]) -> Result<T>,
    build: &BuildList<'_>,
) -> Result<T> {
    let graph = Graph::new();
    let common = common_dtype(kinds.iter().filter_map(|kind| kind.dtype()))?;
    let mut literals = literals.iter();
    let mut inputs = Vec::with_capacity(kinds.len());
    for kind in kinds {
        inputs.push(match *kind {
            OperandKind::Tensor(dtype) => graph.input(dtype),
            OperandKind::ZeroDim(dtype) => graph.zero_dim_input(dtype),
            OperandKind::Number(number) => {
                let dtype = dtype_of_number(number, common)?;
                match literals.next() {
                    Some(number) => graph.operand_number(*number, dtype),
                    None => graph.scalar(dtype),
                }
            }
        });
    }
    let mut outputs = build(&graph, &inputs)?;
    if stored.iter().any(Option::is_some) {
        // The first error of an operation, before what its outputs are for.
        compile(&graph, &outputs)?;
    }
    for (output, stored) in outputs.iter_mut().zip(stored) {
        let Some(stored) = *stored else { continue };
        if output.dtype().kind() as u8 > stored.kind() as u8 {
            let wanted = format!("an output that can hold {}", output.dtype());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found: stored.to_string() });
        }
        *output = output.cast(stored);
    }
    compile(&graph, &outputs)
}

fn inputs<'a, const INPUTS: usize>(operands: &[TensorOperand<'a>; INPUTS]) -> Inputs<'a, INPUTS> {
    let mut inputs = Inputs::default();
    operands.iter().for_each(|operand| inputs.push(operand));
    inputs
}

fn run<const INPUTS: usize>(
    compiled: &Lowered<'_>,
    operands: &[TensorOperand<'_>; INPUTS],
    axes: &GroupAxes,
) -> Result<Tensor> {
    let inputs = inputs(operands);
    compiled.evaluate_one(OPERATION, inputs.sources(), given(compiled, &inputs), axes)
}
