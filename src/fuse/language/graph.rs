//! [`Graph`], which collects the nodes of an expression, and [`Expr`], a node with operators.

use std::cell::RefCell;
use std::ops;

use num_complex::Complex;

use super::node::{IndexedGroup, Node, NodeIndex, needed};
use super::operation::{Operation, Rule, with_operations};
use super::scalar::{by_value, dtype_of_numbers};
use crate::error::{Error, Result};
use crate::fuse::ir::coordinate::Coordinate;
use crate::fuse::ir::number::Number;
use crate::types::{DType, NumberKind};

#[derive(Debug, Clone, Default)]
pub(crate) struct Nodes {
    pub(crate) nodes: Vec<(Node, DType)>,
    pub(crate) inputs: Vec<DType>,
    /// The scalars that each run passes and the literals with their values, in the order of creation.
    pub(crate) scalars: Vec<(DType, Option<Number>)>,
    pub(crate) coordinates: Vec<Coordinate>,
    /// The reductions that choose an element of a group by an index.
    pub(in crate::fuse) indexed: Vec<IndexedGroup>,
    /// The nodes whose derivative is not that of the function they stand for: quotients that leave the zeros of a group out.
    pub(super) not_differentiable: Vec<NodeIndex>,
    /// For each node, whether it takes part in promotion by kind: it has no dimensions or is a number.
    zero_dim: Vec<bool>,
    /// True if an integer is compared with a real scalar that each run passes.
    pub(crate) compares_by_value: bool,
    pub(in crate::fuse) error: Option<Error>,
}

impl Nodes {
    pub(in crate::fuse) fn push(&mut self, node: Node, dtype: DType) -> NodeIndex {
        let at = |node: &NodeIndex| self.zero_dim[*node as usize];
        self.zero_dim.push(match &node {
            Node::Cast(node) => at(node),
            Node::Apply(operation, operand_nodes) => operand_nodes[..operation.arity()].iter().all(at),
            _ => false,
        });
        self.nodes.push((node, dtype));
        self.nodes.len() as NodeIndex - 1
    }

    fn push_zero_dim(&mut self, node: Node, dtype: DType) -> NodeIndex {
        let node = self.push(node, dtype);
        self.zero_dim[node as usize] = true;
        node
    }

    fn operand(&self, node: NodeIndex) -> (DType, bool) {
        (self.dtype(node), self.zero_dim[node as usize])
    }

    /// Returns the scalar that a node is, with its number if it is a literal.
    fn scalar(&self, node: NodeIndex) -> Option<Option<Number>> {
        match self.nodes[node as usize].0 {
            Node::Scalar(index) => Some(self.scalars[index as usize].1),
            _ => None,
        }
    }

    pub(in crate::fuse) fn dtype(&self, node: NodeIndex) -> DType {
        self.nodes[node as usize].1
    }

    pub(in crate::fuse) fn cast(&mut self, node: NodeIndex, dtype: DType) -> NodeIndex {
        if self.dtype(node) == dtype { node } else { self.push(Node::Cast(node), dtype) }
    }

    /// Adds a number with the dtype of the operands beside it.
    fn literal(&mut self, number: Number, dtype: DType) -> NodeIndex {
        self.scalars.push((dtype, Some(number)));
        self.push_zero_dim(Node::Scalar(self.scalars.len() as u32 - 1), dtype)
    }

    /// Returns the index of a coordinate, which the graph stores once.
    pub(in crate::fuse) fn coordinate(&mut self, coordinate: Coordinate) -> u32 {
        let known = self.coordinates.iter().position(|known| *known == coordinate);
        known.unwrap_or_else(|| {
            self.coordinates.push(coordinate);
            self.coordinates.len() - 1
        }) as u32
    }

    /// Returns whether a node may be the seed or the offset of random words: a u64 that all elements share.
    fn is_stream_number(&self, node: NodeIndex) -> bool {
        let is_shared = |index: usize| match self.nodes[index].0 {
            Node::Input(_) => self.zero_dim[index],
            Node::Scalar(_) | Node::Cast(_) | Node::Apply(..) => true,
            _ => false,
        };
        let needed = needed(self, &[node], |_| false);
        let mut used = needed.iter().enumerate().filter(|(_, needed)| **needed);
        self.dtype(node) == DType::U64 && used.all(|(index, _)| is_shared(index))
    }

    /// Returns the inputs that seeds and offsets of the needed random words depend on, each once, in order.
    pub(in crate::fuse) fn stream_inputs(&self, of: &[bool]) -> Vec<usize> {
        let words = self.nodes.iter().zip(of).filter(|(_, needed)| **needed);
        let numbers = words.filter_map(|(&(node, _), _)| match node {
            Node::Random(_, numbers) => Some(numbers),
            _ => None,
        });
        let used = needed(self, &numbers.flatten().collect::<Vec<_>>(), |_| false);
        let used = self.nodes.iter().zip(used).filter(|(_, used)| *used);
        let inputs = used.filter_map(|(&(node, _), _)| match node {
            Node::Input(input) => Some(input as usize),
            _ => None,
        });
        inputs.collect()
    }

    #[cold]
    pub(super) fn refuse(&mut self, operation: &'static str, found: impl std::fmt::Display, wanted: &str) {
        self.error.get_or_insert_with(|| Error::invalid(operation, found, wanted));
    }

    /// Adds an operation. The first error is stored for [`Graph::expression`], and the returned node is then
    /// a placeholder.
    fn apply(&mut self, operation: Operation, operands: &[NodeIndex]) -> NodeIndex {
        let dtypes: Vec<(DType, bool)> = operands.iter().map(|&node| self.operand(node)).collect();
        let signature = match operation.signature_of(&dtypes) {
            Ok(signature) => signature,
            Err(error) => {
                self.error.get_or_insert(error);
                return operands[0];
            }
        };
        for (&operand, dtype) in operands.iter().zip(signature.operands) {
            self.refuse_index(operation, operand, dtype);
        }
        let mut operand_nodes = [self.cast(operands[0], signature.operands[0]); 3];
        for ((node, &operand), dtype) in
            operand_nodes.iter_mut().zip(operands).zip(signature.operands).skip(1)
        {
            *node = self.cast(operand, dtype);
        }
        self.push(Node::Apply(operation, operand_nodes), signature.result)
    }

    /// Adds an operation on nodes and numbers. It uses the numbers by value.
    fn apply_mixed(
        &mut self,
        operation: Operation,
        mut operand_nodes: Vec<Option<NodeIndex>>,
        mut numbers: Vec<Option<Number>>,
    ) -> Result<NodeIndex> {
        // The condition of a choice does not take part in the promotion of its values.
        let values = usize::from(operation.rule() == Rule::Choice);
        let is_test = operation.rule() == Rule::Comparison;
        let literal = |nodes: &Nodes, node: NodeIndex| nodes.scalar(node).flatten();
        let arrays =
            || operand_nodes.iter().skip(values).flatten().filter(|node| literal(self, **node).is_none());
        let has_arrays = arrays().next().is_some();
        let whole = |dtype: DType| dtype.is_integer() || dtype == DType::Bool;
        let is_whole = arrays().all(|&node| whole(self.dtype(node)));
        let given = |node: &&NodeIndex| self.scalar(**node) == Some(None) && !whole(self.dtype(**node));
        let compares_by_value =
            is_test && arrays().any(|node| given(&node)) && arrays().any(|&node| whole(self.dtype(node)));
        self.compares_by_value |= compares_by_value;
        for (node, number) in operand_nodes.iter_mut().zip(&mut numbers) {
            let Some((at, value)) = node.and_then(|at| Some((at, literal(self, at)?))) else { continue };
            if has_arrays && (is_test && is_whole || !value.fits(self.dtype(at))) {
                (*node, *number) = (None, Some(value));
            }
        }
        let mut operation = operation;
        if numbers.iter().any(Option::is_some) {
            let arrays: Vec<(DType, bool)> =
                operand_nodes.iter().skip(values).flatten().map(|&node| self.operand(node)).collect();
            let common = if arrays.is_empty() { None } else { Some(operation.common(&arrays)?) };
            operation = by_value(operation, &mut numbers, common)?;
            let kinds = numbers.iter().skip(values).flatten().map(|number| number.kind());
            let dtype = dtype_of_numbers(operation, kinds, common)?;
            for (at, (node, number)) in operand_nodes.iter_mut().zip(numbers).enumerate() {
                let Some(number) = number else { continue };
                let is_truth = at < values || operation.rule() == Rule::Logic;
                *node = Some(self.literal(number, if is_truth { DType::Bool } else { dtype }));
            }
        }
        let operand_nodes: Vec<NodeIndex> = operand_nodes.into_iter().flatten().collect();
        Ok(self.apply(operation, &operand_nodes))
    }
}

/// A builder that collects the nodes of an expression.
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
pub struct Graph(pub(in crate::fuse) RefCell<Nodes>);

impl Graph {
    /// Creates an empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Adds an input: an array of this dtype. A run takes its inputs in the order of these calls.
    pub fn input(&self, dtype: DType) -> Expr<'_> {
        let mut nodes = self.0.borrow_mut();
        nodes.inputs.push(dtype);
        let node = Node::Input(nodes.inputs.len() as u32 - 1);
        Expr { graph: self, node: nodes.push(node, dtype) }
    }

    /// Adds an input without dimensions, which takes part in promotion by kind ([`DType::promote_zero_dim`]).
    pub fn zero_dim_input(&self, dtype: DType) -> Expr<'_> {
        let input = self.input(dtype);
        self.0.borrow_mut().zero_dim[input.node as usize] = true;
        input
    }

    /// Adds a number with a dtype that may not hold it. In that case only a comparison, `minimum`, `maximum`
    /// or `clamp` may use it; any other use is an error of [`expression`](Self::expression).
    pub(crate) fn operand_number(&self, number: Number, dtype: DType) -> Expr<'_> {
        Expr { graph: self, node: self.0.borrow_mut().literal(number, dtype) }
    }

    /// Adds several inputs.
    pub fn inputs<const COUNT: usize>(&self, dtypes: [DType; COUNT]) -> [Expr<'_>; COUNT] {
        dtypes.map(|dtype| self.input(dtype))
    }

    /// Adds a scalar: one number for all elements. Each run passes its scalars in the order of these calls. A
    /// scalar is a kernel parameter, so another value needs no other kernel.
    pub fn scalar(&self, dtype: DType) -> Expr<'_> {
        let mut nodes = self.0.borrow_mut();
        nodes.scalars.push((dtype, None));
        let node = Node::Scalar(nodes.scalars.len() as u32 - 1);
        Expr { graph: self, node: nodes.push(node, dtype) }
    }

    /// Adds a literal of this dtype, which must hold it ([`Number::fits`]). An operator with a number (`x *
    /// 2.0`) adds a literal by itself. Literals are kernel parameters too.
    pub fn number(&self, number: impl Into<Number>, dtype: DType) -> Expr<'_> {
        let mut nodes = self.0.borrow_mut();
        let node = nodes.literal(number.into(), dtype);
        nodes.zero_dim[node as usize] = false;
        Expr { graph: self, node }
    }

    /// Returns an element's index along an axis of the outputs' shape, as i64. A negative axis counts from
    /// the last. The memory layout of the outputs does not affect the index. A run whose shape has no such
    /// axis returns an error.
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

    /// Returns an element's position in the outputs' shape in row-major order, as i64. The first element has
    /// position 0, and neighbours along the last axis differ by 1. The memory layout of the outputs does not
    /// affect the position.
    pub fn position(&self) -> Expr<'_> {
        self.coordinate(Coordinate::Position)
    }

    /// Returns `COUNT` random integers for each element, u32 or u64, from Philox 4x32-10: 1, 2 or 4 words of
    /// 32 bits in all, with the lower word of a u64 first.
    ///
    /// The key is `seed`. The stream consists of the generator's blocks of 4 words for the counters `offset`,
    /// `offset` + 1 and so on (64 of the 128 bits; the others are 0). With w words an element, the element at
    /// [`position`](Self::position) p takes words w · p to w · p + w - 1. The words depend on nothing else,
    /// and a draw of n elements consumes w · n / 4 blocks, rounded up. A thread computes a block once for the
    /// neighbouring elements that share it.
    ///
    /// `seed` and `offset` are u64 scalars of this graph, [inputs without dimensions](Self::zero_dim_input), or
    /// expressions of these. An input lets a captured kernel read its offset in the stream from memory; a run
    /// passes it one element. Any other operand and any other number of words are errors of
    /// [`expression`](Self::expression).
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
        let operand_nodes = [seed, offset].map(|operand| {
            let known = std::ptr::eq(operand.graph, self) && nodes.is_stream_number(operand.node);
            if !known {
                let wanted = "a seed and an offset that are u64 scalars or inputs without dimensions of the same graph";
                nodes.refuse("random words", "an expression that is not", wanted);
            }
            if known { operand.node } else { nodes.literal(Number::Integer(0), DType::U64) }
        });
        let words = COUNT * dtype.size() / 4;
        if !matches!((dtype, words), (DType::U32 | DType::U64, 1 | 2 | 4)) {
            let wanted = "u32 or u64 with 1, 2 or 4 words of 32 bits an element";
            nodes.refuse("random words", format!("{COUNT} of {dtype} an element"), wanted);
        }
        // A placeholder in the error case.
        let words = if matches!(words, 1 | 2) { words as u32 } else { 4 };
        let coordinate = nodes.coordinate(super::lower::random::coordinate(words));
        std::array::from_fn(|number| {
            let node = Node::Random([coordinate, words, number as u32], operand_nodes);
            Expr { graph: self, node: nodes.push(node, dtype) }
        })
    }

    /// Stores the error of an operand of another graph.
    #[cold]
    pub(super) fn refuse_foreign(&self) {
        self.0.borrow_mut().refuse("an expression", "operands of two graphs", "operands of one graph");
    }

    fn coordinate(&self, coordinate: Coordinate) -> Expr<'_> {
        let mut nodes = self.0.borrow_mut();
        let node = Node::Coordinate(nodes.coordinate(coordinate));
        Expr { graph: self, node: nodes.push(node, DType::I64) }
    }

    /// Returns the nodes of outputs.
    ///
    /// # Errors
    ///
    /// The first error of an operation; [`Error::InvalidArgument`] without outputs, or for an output of another
    /// graph.
    pub(crate) fn checked(&self, operation: &'static str, outputs: &[Expr<'_>]) -> Result<Vec<NodeIndex>> {
        if let Some(error) = &self.0.borrow().error {
            return Err(error.clone());
        }
        if outputs.is_empty() {
            return Err(Error::invalid(operation, "no outputs", "at least one"));
        }
        if outputs.iter().any(|output| !std::ptr::eq(output.graph, self)) {
            return Err(Error::invalid(operation, "an output of another graph", "outputs of this one"));
        }
        Ok(outputs.iter().map(|output| output.node).collect())
    }
}

/// A node of a [`Graph`]: an array within an expression. Operands of different dtypes are promoted.
///
/// Its methods are the operations of [`Operation`]. They take an `Expr` or a number, which takes part in
/// promotion by kind ([`DType::promote_number`]). [`Graph::expression`] returns the error of an operation
/// that does not support its dtypes, and of an operand of another graph.
#[derive(Debug, Clone, Copy)]
pub struct Expr<'g> {
    pub(in crate::fuse) graph: &'g Graph,
    pub(in crate::fuse) node: NodeIndex,
}

/// An operand of an [`Expr`]'s operation: another `Expr`, or a number, which takes the dtype that the other
/// operands have in common.
pub trait ExprOperand<'g> {
    /// Converts to either kind of operand.
    #[doc(hidden)]
    fn node_or_number(self) -> NodeOrNumber<'g>;
}

/// A node or a number.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum NodeOrNumber<'g> {
    /// A node.
    Expr(Expr<'g>),
    /// A number, which has no dtype yet.
    Number(Number),
}

impl<'g> ExprOperand<'g> for Expr<'g> {
    fn node_or_number(self) -> NodeOrNumber<'g> {
        NodeOrNumber::Expr(self)
    }
}

/// Returns the dtype of a number beside operands of these dtypes: by kind beside their common dtype, and
/// without operands the default of the kind (bool, i64, f32 or c64).
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
        impl<'g> ExprOperand<'g> for $type {
            fn node_or_number(self) -> NodeOrNumber<'g> {
                NodeOrNumber::Number(self.into())
            }
        }

        numbers!(@operators $type: Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Remainder);
    )*};
    (@operators $type:ty: $($trait:ident $method:ident $operation:ident),*) => {$(
        impl<'g> ops::$trait<Expr<'g>> for $type {
            type Output = Expr<'g>;

            fn $method(self, right: Expr<'g>) -> Expr<'g> {
                right.apply(Operation::$operation, &[self.node_or_number(), right.node_or_number()])
            }
        }
    )*};
}

numbers! { bool i32 i64 u64 f32 f64 Complex<f32> Complex<f64> }

impl<'g> Expr<'g> {
    /// Returns the node's index if the graph of `beside` is its graph. Otherwise it stores an error.
    pub(in crate::fuse) fn node(self, beside: Expr<'g>) -> NodeIndex {
        if std::ptr::eq(self.graph, beside.graph) {
            return self.node;
        }
        beside.graph.refuse_foreign();
        beside.node
    }

    /// Adds an operation on operands of this graph.
    pub(crate) fn apply(self, operation: Operation, operands: &[NodeOrNumber<'g>]) -> Expr<'g> {
        let node = |operand: &NodeOrNumber<'g>| match *operand {
            NodeOrNumber::Expr(expr) => Some(expr.node(self)),
            NodeOrNumber::Number(_) => None,
        };
        let number = |operand: &NodeOrNumber<'g>| match *operand {
            NodeOrNumber::Expr(_) => None,
            NodeOrNumber::Number(number) => Some(number),
        };
        let operand_nodes = operands.iter().map(node).collect();
        let numbers = operands.iter().map(number).collect();
        let mut nodes = self.graph.0.borrow_mut();
        let node = nodes.apply_mixed(operation, operand_nodes, numbers).unwrap_or_else(|error| {
            nodes.error.get_or_insert(error);
            self.node
        });
        Expr { graph: self.graph, node }
    }

    /// Applies an operation given as a value.
    #[must_use]
    pub fn operation(self, operation: Operation, others: &[Expr<'g>]) -> Expr<'g> {
        let mut operands = vec![self.node_or_number()];
        operands.extend(others.iter().map(|other| other.node_or_number()));
        self.apply(operation, &operands)
    }

    /// Returns the graph, which has [`Graph::index`] and [`Graph::position`] for a closure that only gets expressions.
    pub fn graph(self) -> &'g Graph {
        self.graph
    }

    /// Returns the dtype.
    pub fn dtype(self) -> DType {
        self.graph.0.borrow().dtype(self.node)
    }

    /// Casts to a dtype. Floats convert to integers by truncation and saturation (NaN gives 0),
    /// integers keep their low bits, a complex number gives its real part, and a narrower float is rounded
    /// once.
    ///
    /// The result is always a number of the dtype. A cast of f16 or bf16 to its own dtype therefore rounds in a
    /// [`RowProgram`](crate::fuse::RowProgram), which computes such values in f32.
    #[must_use]
    pub fn cast(self, dtype: DType) -> Expr<'g> {
        let mut nodes = self.graph.0.borrow_mut();
        let is_narrow = matches!(dtype, DType::F16 | DType::BF16);
        let is_rounded = matches!(nodes.nodes[self.node as usize].0, Node::Input(_) | Node::Cast(_));
        let node = match nodes.dtype(self.node) == dtype && is_narrow && !is_rounded {
            true => nodes.push(Node::Cast(self.node), dtype),
            false => nodes.cast(self.node, dtype),
        };
        drop(nodes);
        Expr { graph: self.graph, node }
    }

    /// Casts to another dtype, and returns a value of the dtype as it is, in f32 within a row program.
    pub(super) fn converted(self, dtype: DType) -> Expr<'g> {
        let node = self.graph.0.borrow_mut().cast(self.node, dtype);
        Expr { graph: self.graph, node }
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
            self.apply(Operation::$variant, &[self.node_or_number()])
        }
    };
    (@one $variant:ident $name:ident 2 $doc:literal) => {
        #[doc = $doc]
        #[must_use]
        #[allow(clippy::should_implement_trait)]
        pub fn $name(self, y: impl ExprOperand<'g>) -> Expr<'g> {
            self.apply(Operation::$variant, &[self.node_or_number(), y.node_or_number()])
        }
    };
    (@one Select $name:ident 3 $doc:literal) => {
        methods!(@three Select $name $doc #[doc(alias = "where")]);
    };
    (@one $variant:ident $name:ident 3 $doc:literal) => {
        methods!(@three $variant $name $doc);
    };
    (@three $variant:ident $name:ident $doc:literal $(#[$alias:meta])?) => {
        #[doc = $doc]
        $(#[$alias])?
        #[must_use]
        pub fn $name(self, y: impl ExprOperand<'g>, z: impl ExprOperand<'g>) -> Expr<'g> {
            self.apply(Operation::$variant, &[self.node_or_number(), y.node_or_number(), z.node_or_number()])
        }
    };
}

with_operations!(methods);

macro_rules! operators {
    ($($trait:ident $method:ident $operation:ident;)*) => {$(
        impl<'g, T: ExprOperand<'g>> ops::$trait<T> for Expr<'g> {
            type Output = Expr<'g>;

            fn $method(self, right: T) -> Expr<'g> {
                self.apply(Operation::$operation, &[self.node_or_number(), right.node_or_number()])
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
        self.apply(Operation::Neg, &[self.node_or_number()])
    }
}

impl<'g> ops::Not for Expr<'g> {
    type Output = Expr<'g>;

    fn not(self) -> Expr<'g> {
        self.apply(Operation::BitNot, &[self.node_or_number()])
    }
}
