//! The reductions over groups that an expression of a row program may contain.

use super::fold::Fold;
use super::graph::{Expr, Graph, Nodes};
use super::node::{IndexedGroup, Node, NodeIndex};
use super::operation::Operation;
use crate::driver::KernelError;
use crate::error::Error;
use crate::fuse::ir::number::Number;
use crate::types::DType;

/// The error of an index of [`Expr::at_group`].
static AT_GROUP: KernelError = KernelError::index_out_of_range("at_group");

/// Reductions over the group of each element. Their values broadcast over the group in later operations.
///
/// Only [`Graph::row_program`](crate::fuse::Graph::row_program) compiles them. The axes of a group are chosen by
/// each run, and are the same for all reductions of a program.
impl<'g> Expr<'g> {
    /// Returns the sum of a group, in the dtype of [`Fold::Sum`]; 0 for an empty group.
    ///
    /// f16 and bf16 are summed in f32, and the sum stays in f32 within the program; see
    /// [`RowProgram`](crate::fuse::RowProgram).
    #[must_use]
    pub fn sum_group(self) -> Expr<'g> {
        self.group(Fold::Sum)
    }

    /// Returns the mean of a group: its sum divided by its size; NaN for an empty group. Integers and bools are
    /// summed in f64, and their mean is f32.
    #[must_use]
    pub fn mean_group(self) -> Expr<'g> {
        let dtype = self.dtype();
        let is_fraction = dtype.is_float() || dtype.is_complex();
        let (work, result) = if is_fraction { (dtype, dtype) } else { (DType::F64, DType::F32) };
        let sum = self.converted(work).sum_group();
        let size = self.graph.0.borrow_mut().push(Node::GroupSize, work);
        (sum / Expr { graph: self.graph, node: size }).converted(result)
    }

    /// Returns Σ (s x)² of a group and the factor s. s is 1, or a power of two if the sum of squares is infinite or below the
    /// normal range, so that √(Σ (s x)²) / s neither overflows nor vanishes where the norm does not. Both are f32, or f64
    /// for elements of f64; the elements are real.
    #[must_use]
    pub fn sum_of_squares_group(self) -> (Expr<'g>, Expr<'g>) {
        if self.dtype().is_complex() {
            let found = format!("elements of {}", self.dtype());
            self.graph.0.borrow_mut().refuse("sum_of_squares_group", found, "real floats");
        }
        let both = self.group(Fold::SumOfSquares);
        (both.real(), both.imag())
    }

    /// Returns the mean of (s x)² in a group and the factor s, as [`sum_of_squares_group`](Self::sum_of_squares_group).
    #[must_use]
    pub fn mean_of_squares_group(self) -> (Expr<'g>, Expr<'g>) {
        let (sum, factor) = self.sum_of_squares_group();
        let dtype = sum.dtype();
        let size = self.graph.0.borrow_mut().push(Node::GroupSize, dtype);
        (sum / Expr { graph: self.graph, node: size }, factor)
    }

    /// Returns the product of a group, in the dtype of [`Fold::Product`]; 1 for an empty group.
    #[must_use]
    pub fn prod_group(self) -> Expr<'g> {
        self.group(Fold::Product)
    }

    /// Returns the largest element of a group, or NaN if any element is NaN. A run with empty groups returns an
    /// error.
    #[must_use]
    pub fn max_group(self) -> Expr<'g> {
        self.group(Fold::Maximum)
    }

    /// Returns the smallest element of a group, or NaN if any element is NaN. A run with empty groups returns an
    /// error.
    #[must_use]
    pub fn min_group(self) -> Expr<'g> {
        self.group(Fold::Minimum)
    }

    /// Returns the index of the largest element within its group in row-major order, as i64: the first of equal
    /// ones, and the first NaN if there is one. An operation on floats that takes the index without a
    /// [`cast`](Self::cast) is an error of [`Graph::row_program`](crate::fuse::Graph::row_program).
    #[must_use]
    pub fn argmax_group(self) -> Expr<'g> {
        self.group(Fold::ArgMaximum)
    }

    /// Returns the index of the smallest element within its group; see [`argmax_group`](Self::argmax_group).
    #[must_use]
    pub fn argmin_group(self) -> Expr<'g> {
        self.group(Fold::ArgMinimum)
    }

    /// Returns whether any element of a group is nonzero.
    #[must_use]
    pub fn any_group(self) -> Expr<'g> {
        self.group(Fold::Any)
    }

    /// Returns whether all elements of a group are nonzero.
    #[must_use]
    pub fn all_group(self) -> Expr<'g> {
        self.group(Fold::All)
    }

    /// Returns the index of each element within its group in row-major order, as i64.
    #[must_use]
    pub fn index_in_group(self) -> Expr<'g> {
        let node = self.graph.0.borrow_mut().push(Node::GroupIndex, DType::I64);
        Expr { graph: self.graph, node }
    }

    /// Returns the element of a group at an index in row-major order, such as the logarithm at a label. `index` has
    /// one value per group.
    ///
    /// An index that is negative or not below the size of the group is [`Error::IndexOutOfRange`]: of the run on the
    /// CPU, and on a device of the next call that waits ([`KernelError`]). There, the value of its group is 0.
    ///
    /// ```
    /// use selvedge::fuse::{Graph, HostInput, HostOutput};
    /// use selvedge::types::{DType, Layout};
    ///
    /// let graph = Graph::new();
    /// let (x, index) = (graph.input(DType::F32), graph.input(DType::I64));
    /// let program = graph.row_program(&[x.at_group(index)])?;
    /// let (matrix, column) = (Layout::contiguous(&[2, 2])?, Layout::contiguous(&[2, 1])?);
    /// let (x, mut chosen) = ([1.0f32, 2.0, 3.0, 4.0], [0.0f32; 2]);
    /// let mut run = |index: [i64; 2]| {
    ///     let inputs = [HostInput::new(&x, matrix)?, HostInput::new(&index, column)?];
    ///     program.run_host(&inputs, &[], &[-1], &mut [HostOutput::new(&mut chosen, column)?])
    /// };
    /// assert!(run([1, 2]).unwrap_err().to_string().contains("at_group: found index 2"));
    /// run([1, 0])?;
    /// assert_eq!(chosen, [2.0, 3.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[must_use]
    pub fn at_group(self, index: Expr<'g>) -> Expr<'g> {
        self.at_group_of(index, &AT_GROUP)
    }

    /// As [`at_group`](Self::at_group), with another error.
    #[must_use]
    pub(crate) fn at_group_of(self, index: Expr<'g>, error: &'static KernelError) -> Expr<'g> {
        let (dtype, found) = (self.dtype(), index.dtype());
        if !found.is_integer() || dtype.is_complex() {
            let found = format!("an index of {found} and elements of {dtype}");
            let wanted = "an index of integers and elements that are not complex";
            self.graph.0.borrow_mut().refuse(error.operation(), found, wanted);
            return self;
        }
        let of = if dtype == DType::Bool { self.cast(DType::U8) } else { self };
        // Adding -0 changes no float, so the sum has the bits of the element.
        let other = if dtype.is_float() { Number::Real(-0.0) } else { Number::Integer(0) };
        let index = index.cast(DType::I64);
        let chosen = self.index_in_group().eq(index).choose(of, self.graph.number(other, of.dtype()));
        let sum = chosen.sum_group();
        self.graph.0.borrow_mut().indexed.push(IndexedGroup { group: sum.node, index: index.node, error });
        sum.converted(dtype)
    }

    /// Returns the sum over all groups: one value for each index within a group, such as the gradient of a weight that
    /// all rows share. It is an output of a row program, and no operand of other operations. An output has size 1 in
    /// the axes that are not those of a group.
    ///
    /// f32 and f64 are summed in their dtype, f16 and bf16 in f32. The order of the sum depends on the number of groups
    /// alone: groups in row-major order, in chunks of 64 that begin with -0, then chunks by the tree of
    /// [`Reduction`](crate::fuse::Reduction). So the bits are the same on every device and for every layout.
    ///
    /// ```
    /// use selvedge::fuse::{Graph, HostInput, HostOutput};
    /// use selvedge::types::{DType, Layout};
    ///
    /// let graph = Graph::new();
    /// let x = graph.input(DType::F32);
    /// let shares = x / x.sum_group();
    /// let program = graph.row_program(&[shares, shares.sum_over_groups()])?;
    /// assert!(program.is_over_groups(1));
    /// let (matrix, row) = (Layout::contiguous(&[2, 2])?, Layout::contiguous(&[1, 2])?);
    /// let (mut result, mut sums) = ([0.0f32; 4], [0.0f32; 2]);
    /// program.run_host(
    ///     &[HostInput::new(&[1.0f32, 3.0, 2.0, 2.0], matrix)?],
    ///     &[],
    ///     &[-1],
    ///     &mut [HostOutput::new(&mut result, matrix)?, HostOutput::new(&mut sums, row)?],
    /// )?;
    /// assert_eq!((result, sums), ([0.25, 0.75, 0.5, 0.5], [0.75, 1.25]));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[must_use]
    pub fn sum_over_groups(self) -> Expr<'g> {
        let mut nodes = self.graph.0.borrow_mut();
        let dtype = match nodes.dtype(self.node) {
            DType::F64 => DType::F64,
            DType::F16 | DType::BF16 | DType::F32 => DType::F32,
            found => {
                let found = format!("elements of {found}");
                nodes.refuse("sum_over_groups", found, "f16, bf16, f32 or f64; cast them");
                return self;
            }
        };
        let node = nodes.push(Node::SumOverGroups(self.node), dtype);
        Expr { graph: self.graph, node }
    }

    fn group(self, fold: Fold) -> Expr<'g> {
        let mut nodes = self.graph.0.borrow_mut();
        match fold.result(nodes.dtype(self.node)) {
            Ok(result) => {
                let node = nodes.push(Node::Group(fold, self.node), result);
                Expr { graph: self.graph, node }
            }
            Err(error) => {
                nodes.error.get_or_insert(error);
                self
            }
        }
    }
}

impl Graph {
    /// Returns whether the graph contains reductions over groups.
    pub(crate) fn has_groups(&self) -> bool {
        self.0
            .borrow()
            .nodes
            .iter()
            .any(|(node, _)| matches!(node, Node::Group(..) | Node::GroupIndex | Node::SumOverGroups(_)))
    }
}

impl Nodes {
    /// Refuses the index of an extreme as an operand of a dtype that is not an integer.
    pub(in crate::fuse) fn refuse_index(&mut self, operation: Operation, operand: NodeIndex, dtype: DType) {
        let (Node::Group(fold, _), _) = self.nodes[operand as usize] else { return };
        if fold.has_index() && !dtype.is_integer() {
            let found = format!("the index of {}_group as an operand of {dtype}", fold.name());
            let wanted = "a value, such as that of max_group, or an explicit cast of the index";
            self.error.get_or_insert_with(|| Error::invalid(operation.name(), found, wanted));
        }
    }
}
