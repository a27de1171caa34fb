//! Expressions as a program writes them: a [`Graph`] that collects nodes, and [`Expr`], a node with operators.

use std::cell::RefCell;
use std::ops;

use num_complex::Complex;

use super::coordinate::Coordinate;
use super::expression::Expression;
use super::number::Number;
use super::operation::{Operation, Rule, with_operations};
use super::scalar::{by_value, dtype_of_numbers};
use crate::error::{Error, Result};
use crate::types::{DType, NumberKind};

/// A node's place in its graph.
pub(crate) type Place = u32;

/// What a node of a graph computes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Node {
    Input(u32),
    /// A scalar that each run is given, or a literal number of the expression, which lie behind those.
    Scalar(u32),
    Coordinate(u32),
    /// A random number of a coordinate: (coordinate, words of an element, which number), seed and offset.
    Random([u32; 3], [Place; 2]),
    /// A normally distributed number of random bits.
    Normal(Place),
    /// Where an index goes in a permutation: index, length and key.
    Permute([Place; 3]),
    Cast(Place),
    Apply(Operation, [Place; 3]),
}

#[derive(Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) nodes: Vec<(Node, DType)>,
    pub(crate) inputs: Vec<DType>,
    /// The scalars of each run, then the literals with their values, in the order of their making.
    pub(crate) scalars: Vec<(DType, Option<Number>)>,
    pub(crate) coordinates: Vec<Coordinate>,
    /// By node, whether it has no dimensions, or is a number, and so takes part by kind.
    zero_dim: Vec<bool>,
    /// True where an integer is compared with a given scalar of fractions.
    pub(crate) compares_by_value: bool,
    error: Option<Error>,
}

impl Nodes {
    fn push(&mut self, node: Node, dtype: DType) -> Place {
        let at = |place: &Place| self.zero_dim[*place as usize];
        self.zero_dim.push(match &node {
            Node::Cast(place) => at(place),
            Node::Apply(operation, places) => places[..operation.arity()].iter().all(at),
            _ => false,
        });
        self.nodes.push((node, dtype));
        self.nodes.len() as Place - 1
    }

    fn push_zero_dim(&mut self, node: Node, dtype: DType) -> Place {
        let place = self.push(node, dtype);
        self.zero_dim[place as usize] = true;
        place
    }

    fn operand(&self, place: Place) -> (DType, bool) {
        (self.dtype(place), self.zero_dim[place as usize])
    }

    /// The scalar that a node is, with its number where that is a literal.
    fn scalar(&self, place: Place) -> Option<Option<Number>> {
        match self.nodes[place as usize].0 {
            Node::Scalar(index) => Some(self.scalars[index as usize].1),
            _ => None,
        }
    }

    fn dtype(&self, place: Place) -> DType {
        self.nodes[place as usize].1
    }

    fn cast(&mut self, place: Place, dtype: DType) -> Place {
        if self.dtype(place) == dtype { place } else { self.push(Node::Cast(place), dtype) }
    }

    /// A number whose dtype is that of what is beside it.
    fn literal(&mut self, number: Number, dtype: DType) -> Place {
        self.scalars.push((dtype, Some(number)));
        self.push_zero_dim(Node::Scalar(self.scalars.len() as u32 - 1), dtype)
    }

    /// The place of a coordinate among the graph's, which has each once.
    fn coordinate(&mut self, coordinate: Coordinate) -> u32 {
        let known = self.coordinates.iter().position(|known| *known == coordinate);
        known.unwrap_or_else(|| {
            self.coordinates.push(coordinate);
            self.coordinates.len() - 1
        }) as u32
    }

    #[cold]
    fn refuse(&mut self, operation: &'static str, found: impl std::fmt::Display, wanted: &str) {
        self.error.get_or_insert_with(|| Error::invalid(operation, found, wanted));
    }

    /// The first error is kept for [`Graph::expression`]; the node stands for nothing then.
    fn apply(&mut self, operation: Operation, operands: &[Place]) -> Place {
        let dtypes: Vec<(DType, bool)> = operands.iter().map(|&place| self.operand(place)).collect();
        let signature = match operation.signature_of(&dtypes) {
            Ok(signature) => signature,
            Err(error) => {
                self.error.get_or_insert(error);
                return operands[0];
            }
        };
        let mut places = [self.cast(operands[0], signature.operands[0]); 3];
        for ((place, &operand), dtype) in places.iter_mut().zip(operands).zip(signature.operands).skip(1) {
            *place = self.cast(operand, dtype);
        }
        self.push(Node::Apply(operation, places), signature.result)
    }

    /// As [`apply`](Self::apply), on nodes and on numbers, which are used by their values.
    fn apply_given(
        &mut self,
        operation: Operation,
        mut places: Vec<Option<Place>>,
        mut numbers: Vec<Option<Number>>,
    ) -> Result<Place> {
        // The condition of a choice says nothing about its values.
        let values = usize::from(operation.rule() == Rule::Choice);
        let is_test = operation.rule() == Rule::Test;
        let literal = |nodes: &Nodes, place: Place| nodes.scalar(place).flatten();
        let arrays = || places.iter().skip(values).flatten().filter(|place| literal(self, **place).is_none());
        let has_arrays = arrays().next().is_some();
        let whole = |dtype: DType| dtype.is_integer() || dtype == DType::Bool;
        let is_whole = arrays().all(|&place| whole(self.dtype(place)));
        let given = |place: &&Place| self.scalar(**place) == Some(None) && !whole(self.dtype(**place));
        let compares_by_value =
            is_test && arrays().any(|place| given(&place)) && arrays().any(|&place| whole(self.dtype(place)));
        self.compares_by_value |= compares_by_value;
        for (place, number) in places.iter_mut().zip(&mut numbers) {
            let Some((at, value)) = place.and_then(|at| Some((at, literal(self, at)?))) else { continue };
            if has_arrays && (is_test && is_whole || !value.fits(self.dtype(at))) {
                (*place, *number) = (None, Some(value));
            }
        }
        let mut operation = operation;
        if numbers.iter().any(Option::is_some) {
            let arrays: Vec<(DType, bool)> =
                places.iter().skip(values).flatten().map(|&place| self.operand(place)).collect();
            let common = if arrays.is_empty() { None } else { Some(operation.common(&arrays)?) };
            operation = by_value(operation, &mut numbers, common)?;
            let kinds = numbers.iter().skip(values).flatten().map(|number| number.kind());
            let dtype = dtype_of_numbers(operation, kinds, common)?;
            for (at, (place, number)) in places.iter_mut().zip(numbers).enumerate() {
                let Some(number) = number else { continue };
                let is_truth = at < values || operation.rule() == Rule::Logic;
                *place = Some(self.literal(number, if is_truth { DType::Bool } else { dtype }));
            }
        }
        let places: Vec<Place> = places.into_iter().flatten().collect();
        Ok(self.apply(operation, &places))
    }
}

/// Collects the nodes of an expression.
///
/// ```
/// use selvedge::fuse::Graph;
/// use selvedge::types::DType;
/// let graph = Graph::new();
/// let [a, b, c] = graph.inputs([DType::F32; 3]);
/// let expression = graph.expression(&[(a * b + c).relu()])?;
/// assert_eq!(expression.outputs(), [DType::F32]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Graph(RefCell<Nodes>);

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// The next input: an array of this dtype, which a run is given in the order of these calls.
    pub fn input(&self, dtype: DType) -> Expr<'_> {
        let mut nodes = self.0.borrow_mut();
        nodes.inputs.push(dtype);
        let node = Node::Input(nodes.inputs.len() as u32 - 1);
        Expr { graph: self, place: nodes.push(node, dtype) }
    }

    /// As [`input`](Self::input), for a tensor without dimensions, which takes part by kind
    /// ([`DType::promote_zero_dim`]).
    pub fn zero_dim_input(&self, dtype: DType) -> Expr<'_> {
        let input = self.input(dtype);
        self.0.borrow_mut().zero_dim[input.place as usize] = true;
        input
    }

    /// A number of this dtype, which may not hold it: then what depends on the number's value by more than a comparison,
    /// `minimum`, `maximum` or `clamp` is an error of [`expression`](Self::expression).
    pub(crate) fn operand_number(&self, number: Number, dtype: DType) -> Expr<'_> {
        Expr { graph: self, place: self.0.borrow_mut().literal(number, dtype) }
    }

    /// Several inputs at once.
    pub fn inputs<const COUNT: usize>(&self, dtypes: [DType; COUNT]) -> [Expr<'_>; COUNT] {
        dtypes.map(|dtype| self.input(dtype))
    }

    /// The next scalar: one number for all elements, which each run is given in the order of these calls. It is a parameter
    /// of the kernel, so another value needs no other kernel.
    pub fn scalar(&self, dtype: DType) -> Expr<'_> {
        let mut nodes = self.0.borrow_mut();
        nodes.scalars.push((dtype, None));
        let node = Node::Scalar(nodes.scalars.len() as u32 - 1);
        Expr { graph: self, place: nodes.push(node, dtype) }
    }

    /// A number that belongs to the expression, of this dtype, which must hold it ([`Number::fits`]). Numbers beside an operator (`x * 2.0`) are made by themselves;
    /// they are parameters of the kernel too.
    pub fn number(&self, number: impl Into<Number>, dtype: DType) -> Expr<'_> {
        let mut nodes = self.0.borrow_mut();
        let place = nodes.literal(number.into(), dtype);
        nodes.zero_dim[place as usize] = false;
        Expr { graph: self, place }
    }

    /// An element's index along an axis of the outputs' shape, an i64. A negative axis counts from the last. How the outputs
    /// lie in memory does not matter; a shape that has no such axis is an error of the run.
    ///
    /// ```
    /// use selvedge::fuse::{Graph, HostOutput};
    /// use selvedge::types::{DType, Layout};
    /// let graph = Graph::new();
    /// let below = graph.index(0).ge(graph.index(1)).cast(DType::U8);
    /// let mut triangle = [7u8; 6];
    /// let layout = Layout::contiguous(&[2, 3])?;
    /// graph.expression(&[below])?.run_host(&[], &[], &mut [HostOutput::new(&mut triangle, layout)?])?;
    /// assert_eq!(triangle, [1, 0, 0, 1, 1, 0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    pub fn index(&self, axis: isize) -> Expr<'_> {
        self.coordinate(Coordinate::Axis(axis))
    }

    /// An element's place in the outputs' shape in row-major order, an i64: 0 for the first, one more for each next along the
    /// last axis. How the outputs lie in memory does not matter.
    pub fn position(&self) -> Expr<'_> {
        self.coordinate(Coordinate::Position)
    }

    /// `COUNT` random integers an element, u32 or u64, of Philox 4x32-10: 1, 2 or 4 words of 32 bits in all, the lower word of
    /// a u64 first.
    ///
    /// The key is `seed`. The stream is that of the blocks of 4 words that the generator gives for the counters `offset`,
    /// `offset` + 1 and so on (64 bits of the 128, the others 0); with w words an element, the one at
    /// [`position`](Self::position) p has words w · p to w · p + w - 1. So they depend on nothing but these, and a
    /// draw of n elements takes w · n / 4 blocks, rounded up. A block is computed once for the neighbours that share it,
    /// where a thread has them.
    ///
    /// `seed` and `offset` are u64 scalars of this graph; what else they are is an error of [`expression`](Self::expression),
    /// as are more words.
    ///
    /// ```
    /// use selvedge::fuse::{Graph, HostOutput};
    /// use selvedge::types::{DType, Layout};
    /// let graph = Graph::new();
    /// let (seed, offset) = (graph.scalar(DType::U64), graph.scalar(DType::U64));
    /// let [word] = graph.random(DType::U32, seed, offset);
    /// let mut words = [0u32; 4];
    /// let output = HostOutput::new(&mut words, Layout::contiguous(&[4])?)?;
    /// graph.expression(&[word])?.run_host(&[], &[0.into(), 0.into()], &mut [output])?;
    /// // The first of the published vectors.
    /// assert_eq!(words, [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    pub fn random<'g, const COUNT: usize>(
        &'g self,
        dtype: DType,
        seed: Expr<'g>,
        offset: Expr<'g>,
    ) -> [Expr<'g>; COUNT] {
        let mut nodes = self.0.borrow_mut();
        let places = [seed, offset].map(|scalar| {
            let known = std::ptr::eq(scalar.graph, self)
                && matches!(nodes.nodes[scalar.place as usize], (Node::Scalar(_), DType::U64));
            if !known {
                let wanted = "u64 scalars of the same graph as seed and offset";
                nodes.refuse("random words", "another expression", wanted);
            }
            if known { scalar.place } else { nodes.literal(Number::Integer(0), DType::U64) }
        });
        let words = COUNT * dtype.size() / 4;
        if !matches!((dtype, words), (DType::U32 | DType::U64, 1 | 2 | 4)) {
            let wanted = "u32 or u64, of 1, 2 or 4 words together";
            nodes.refuse("random words", format!("{COUNT} of {dtype} an element"), wanted);
        }
        // A place holder where that is an error.
        let words = if matches!(words, 1 | 2) { words as u32 } else { 4 };
        let coordinate = nodes.coordinate(super::lower::random::coordinate(words));
        std::array::from_fn(|number| {
            let node = Node::Random([coordinate, words, number as u32], places);
            Expr { graph: self, place: nodes.push(node, dtype) }
        })
    }

    fn coordinate(&self, coordinate: Coordinate) -> Expr<'_> {
        let mut nodes = self.0.borrow_mut();
        let node = Node::Coordinate(nodes.coordinate(coordinate));
        Expr { graph: self, place: nodes.push(node, DType::I64) }
    }

    /// The expression that computes these outputs. The graph can go on to grow, and give others.
    ///
    /// # Errors
    ///
    /// The first error of an operation in the graph, as [`Operation::signature`]; [`Error::InvalidArgument`] without
    /// outputs, or for an output of another graph.
    pub fn expression(&self, outputs: &[Expr<'_>]) -> Result<Expression> {
        let nodes = self.0.borrow();
        if let Some(error) = &nodes.error {
            return Err(error.clone());
        }
        if outputs.iter().any(|output| !std::ptr::eq(output.graph, self)) {
            return Err(Error::invalid("an expression", "an output of another graph", "outputs of this one"));
        }
        let places: Vec<Place> = outputs.iter().map(|output| output.place).collect();
        Expression::new(&nodes, &places)
    }
}

/// A node of a [`Graph`]: an array that an expression computes with. Operands of different dtypes are promoted.
///
/// Its methods are the operations of [`Operation`]; what they are given is an `Expr` or a number, which takes part by
/// its kind ([`DType::promote_number`]). An operation that has no meaning for its dtypes is reported by
/// [`Graph::expression`], as is an operand of another graph.
#[derive(Debug, Clone, Copy)]
pub struct Expr<'g> {
    graph: &'g Graph,
    place: Place,
}

/// What an operation of an [`Expr`] takes beside it: another one, or a number, which meets what the operation's other
/// operands have in common.
pub trait Operand<'g> {
    /// Which of the two.
    #[doc(hidden)]
    fn given(self) -> Given<'g>;
}

/// An operand as it was given.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum Given<'g> {
    /// A node.
    Expr(Expr<'g>),
    /// A number, which has no dtype yet.
    Number(Number),
}

impl<'g> Operand<'g> for Expr<'g> {
    fn given(self) -> Given<'g> {
        Given::Expr(self)
    }
}

/// The dtype of a number beside operands of these dtypes: by its kind beside what they have in common; where there are none,
/// that of its kind alone (bool, i64, f32 or c64).
///
/// # Errors
///
/// As [`DType::promote`] and [`DType::promote_number`].
pub(crate) fn dtype_of_number(number: NumberKind, beside: impl IntoIterator<Item = DType>) -> Result<DType> {
    let mut common: Option<DType> = None;
    for dtype in beside {
        common = Some(common.map_or(Ok(dtype), |common| common.promote(dtype))?);
    }
    common.unwrap_or(DType::Bool).promote_number(number)
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl<'g> Operand<'g> for $type {
            fn given(self) -> Given<'g> {
                Given::Number(self.into())
            }
        }

        numbers!(@operators $type: Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Remainder);
    )*};
    (@operators $type:ty: $($trait:ident $method:ident $operation:ident),*) => {$(
        impl<'g> ops::$trait<Expr<'g>> for $type {
            type Output = Expr<'g>;

            fn $method(self, right: Expr<'g>) -> Expr<'g> {
                right.apply(Operation::$operation, &[self.given(), right.given()])
            }
        }
    )*};
}

numbers! { bool i32 i64 u64 f32 f64 Complex<f32> Complex<f64> }

impl<'g> Expr<'g> {
    /// Its place, beside an expression of the same graph.
    fn place(self, beside: Expr<'g>) -> Place {
        if std::ptr::eq(self.graph, beside.graph) {
            return self.place;
        }
        let error = Error::invalid("an expression", "operands of two graphs", "operands of one graph");
        beside.graph.0.borrow_mut().error.get_or_insert(error);
        beside.place
    }

    /// An operation on operands of this graph.
    fn apply(self, operation: Operation, operands: &[Given<'g>]) -> Expr<'g> {
        let place = |operand: &Given<'g>| match *operand {
            Given::Expr(expr) => Some(expr.place(self)),
            Given::Number(_) => None,
        };
        let number = |operand: &Given<'g>| match *operand {
            Given::Expr(_) => None,
            Given::Number(number) => Some(number),
        };
        let places = operands.iter().map(place).collect();
        let numbers = operands.iter().map(number).collect();
        let mut nodes = self.graph.0.borrow_mut();
        let place = nodes.apply_given(operation, places, numbers).unwrap_or_else(|error| {
            nodes.error.get_or_insert(error);
            self.place
        });
        Expr { graph: self.graph, place }
    }

    /// An operation by its value, on this and the other operands.
    #[must_use]
    pub fn operation(self, operation: Operation, others: &[Expr<'g>]) -> Expr<'g> {
        let mut operands = vec![self.given()];
        operands.extend(others.iter().map(|other| other.given()));
        self.apply(operation, &operands)
    }

    /// The dtype.
    pub fn dtype(self) -> DType {
        self.graph.0.borrow().dtype(self.place)
    }

    /// In another dtype. Floats become integers by dropping the fraction and saturating (NaN is 0), integers keep their low
    /// bits, a complex number gives its real part, and a narrower float is rounded once.
    #[must_use]
    pub fn cast(self, dtype: DType) -> Expr<'g> {
        let place = self.graph.0.borrow_mut().cast(self.place, dtype);
        Expr { graph: self.graph, place }
    }
}

impl<'g> Expr<'g> {
    /// The number that belongs to these random bits in the standard normal distribution: of u32 an f32, of u64 an f64, the
    /// quantile at (bits + 1/2) / 2^32 or 2^64, within 3 units in the last place and the same on every device. A dtype
    /// that is neither is an error of [`Graph::expression`].
    #[must_use]
    pub fn normal(self) -> Expr<'g> {
        let mut nodes = self.graph.0.borrow_mut();
        let result = match nodes.dtype(self.place) {
            DType::U32 => DType::F32,
            DType::U64 => DType::F64,
            other => {
                nodes.refuse("normal numbers", format!("bits of {other}"), "u32 or u64");
                return self;
            }
        };
        Expr { graph: self.graph, place: nodes.push(Node::Normal(self.place), result) }
    }

    /// Where this index goes in the permutation of 0 to `length` that belongs to `key`, as a u64, as which all three are
    /// taken. It is computed, by a Feistel network of the fewest bits that hold the length, so there is no table; every key
    /// gives a permutation that looks random, not every permutation has a key. A length of 0 counts as 1, an index past the
    /// length as the last.
    ///
    /// ```
    /// use selvedge::fuse::{Graph, HostOutput};
    /// use selvedge::types::{DType, Layout};
    /// let graph = Graph::new();
    /// let [length, key] = [5u64, 7].map(|number| graph.number(number, DType::U64));
    /// let mut order = [0u64; 5];
    /// let output = HostOutput::new(&mut order, Layout::contiguous(&[5])?)?;
    /// graph.expression(&[graph.position().permuted(length, key)])?.run_host(&[], &[], &mut [output])?;
    /// order.sort_unstable();
    /// assert_eq!(order, [0, 1, 2, 3, 4]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[must_use]
    pub fn permuted(self, length: Expr<'g>, key: Expr<'g>) -> Expr<'g> {
        let places = [self.place, length.place(self), key.place(self)];
        let mut nodes = self.graph.0.borrow_mut();
        let places = places.map(|operand| nodes.cast(operand, DType::U64));
        Expr { graph: self.graph, place: nodes.push(Node::Permute(places), DType::U64) }
    }
}

macro_rules! methods {
    ($($variant:ident $name:ident $arity:tt $doc:literal;)*) => {
        impl<'g> Expr<'g> {
            $(methods!(@one $variant $name $arity $doc);)*
        }
    };
    (@one $variant:ident $name:ident 1 $doc:literal) => {
        #[doc = $doc]
        #[must_use]
        #[allow(clippy::should_implement_trait)]
        pub fn $name(self) -> Expr<'g> {
            self.apply(Operation::$variant, &[self.given()])
        }
    };
    (@one $variant:ident $name:ident 2 $doc:literal) => {
        #[doc = $doc]
        #[must_use]
        #[allow(clippy::should_implement_trait)]
        pub fn $name(self, y: impl Operand<'g>) -> Expr<'g> {
            self.apply(Operation::$variant, &[self.given(), y.given()])
        }
    };
    (@one $variant:ident $name:ident 3 $doc:literal) => {
        #[doc = $doc]
        #[must_use]
        pub fn $name(self, y: impl Operand<'g>, z: impl Operand<'g>) -> Expr<'g> {
            self.apply(Operation::$variant, &[self.given(), y.given(), z.given()])
        }
    };
}

with_operations!(methods);

macro_rules! operators {
    ($($trait:ident $method:ident $operation:ident;)*) => {$(
        impl<'g, T: Operand<'g>> ops::$trait<T> for Expr<'g> {
            type Output = Expr<'g>;

            fn $method(self, right: T) -> Expr<'g> {
                self.apply(Operation::$operation, &[self.given(), right.given()])
            }
        }
    )*};
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem Remainder;
    BitAnd bitand BitAnd;
    BitOr bitor BitOr;
    BitXor bitxor BitXor;
    Shl shl ShiftLeft;
    Shr shr ShiftRight;
}

impl<'g> ops::Neg for Expr<'g> {
    type Output = Expr<'g>;

    fn neg(self) -> Expr<'g> {
        self.apply(Operation::Neg, &[self.given()])
    }
}

impl<'g> ops::Not for Expr<'g> {
    type Output = Expr<'g>;

    fn not(self) -> Expr<'g> {
        self.apply(Operation::BitNot, &[self.given()])
    }
}
