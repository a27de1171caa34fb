//! The cases of random row programs: their nodes and operands, made from a seed, and their text.

use std::fmt;

use selvedge::fuse::{Expr, Fold, Graph, Number, Operation, RowProgram};
use selvedge::types::{DType, Layout, Slice};

use super::super::random::Numbers;
use super::super::reductions::contiguous;

/// The dtypes of inputs and of casts, of which the first six are those of inputs.
const DTYPES: [DType; 8] =
    [DType::F32, DType::BF16, DType::F64, DType::F16, DType::I32, DType::C64, DType::I64, DType::Bool];

type Reduction = (&'static str, Fold, for<'g> fn(Expr<'g>) -> Expr<'g>);

/// The reductions, sums and means more often than others.
const REDUCTIONS: [Reduction; 11] = [
    ("sum_group", Fold::Sum, |x| x.sum_group()),
    ("mean_group", Fold::Sum, |x| x.mean_group()),
    ("max_group", Fold::Maximum, |x| x.max_group()),
    ("argmax_group", Fold::ArgMaximum, |x| x.argmax_group()),
    ("min_group", Fold::Minimum, |x| x.min_group()),
    ("prod_group", Fold::Product, |x| x.prod_group()),
    ("sum_group", Fold::Sum, |x| x.sum_group()),
    ("mean_group", Fold::Sum, |x| x.mean_group()),
    ("argmin_group", Fold::ArgMinimum, |x| x.argmin_group()),
    ("any_group", Fold::Any, |x| x.any_group()),
    ("all_group", Fold::All, |x| x.all_group()),
];

/// The operations on complex numbers whose zeros and infinities do not have the sign of a NaN, which depends on the hardware.
const OF_COMPLEX: [Operation; 9] = [
    Operation::Add,
    Operation::Sub,
    Operation::Mul,
    Operation::Neg,
    Operation::Real,
    Operation::Imag,
    Operation::Conj,
    Operation::Equal,
    Operation::NotEqual,
];

/// The elements of an input, which broadcast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Role {
    PerElement,
    PerGroup,
    AlongGroup,
    Single,
}

/// The memory of an operand, for any sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    Contiguous,
    /// Contiguous, from the second element of the memory on.
    Misaligned,
    /// Axes in another order.
    Permuted,
    Reversed,
    /// Every second element along the last axis.
    Stepped,
    /// Rows with a gap behind each.
    Padded,
}

/// A node; operands are the numbers of earlier nodes.
#[derive(Debug, Clone)]
pub enum Node {
    Input(usize),
    Number(f64, DType),
    /// A number that a run passes.
    Scalar(f64, DType),
    Apply(Operation, Vec<usize>),
    Cast(usize, DType),
    Reduce(usize, usize),
    /// The element at the index of the largest one of another node.
    AtLargest(usize, usize),
    Index,
    /// The element's position in the shape, modulo 10.
    Position,
    /// Elements of which dropout leaves three quarters, and its seed.
    Dropped(usize, usize),
    /// A uniform number from two random words, and its seed.
    Uniform(usize),
    /// An output alone.
    SumOverGroups(usize),
}

impl Node {
    pub fn operands(&self) -> Vec<usize> {
        match self {
            Node::Input(_) | Node::Number(..) | Node::Scalar(..) | Node::Index | Node::Position => Vec::new(),
            Node::Apply(_, operands) => operands.clone(),
            Node::Cast(of, _) | Node::Reduce(_, of) | Node::Uniform(of) | Node::SumOverGroups(of) => {
                vec![*of]
            }
            Node::AtLargest(of, by) | Node::Dropped(of, by) => vec![*of, *by],
        }
    }

    pub fn replace(&mut self, old: usize, new: usize) {
        let swap = |operand: &mut usize| {
            if *operand == old {
                *operand = new;
            }
        };
        match self {
            Node::Input(_) | Node::Number(..) | Node::Scalar(..) | Node::Index | Node::Position => {}
            Node::Apply(_, operands) => operands.iter_mut().for_each(swap),
            Node::Cast(of, _) | Node::Reduce(_, of) | Node::Uniform(of) | Node::SumOverGroups(of) => swap(of),
            Node::AtLargest(of, by) | Node::Dropped(of, by) => [of, by].into_iter().for_each(swap),
        }
    }
}

/// The nodes and shapes of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Variety {
    Basic,
    /// Also scalars of a run, random words, positions, sums over groups and more strided groups.
    Extended,
}

/// A row program with the operands of a run.
#[derive(Debug, Clone)]
pub struct Case {
    pub inputs: Vec<(DType, Role, Order)>,
    pub nodes: Vec<Node>,
    pub outputs: Vec<(usize, Order)>,
    pub sizes: Vec<usize>,
    pub axes: Vec<usize>,
    pub is_special: bool,
    pub capability: (i32, i32),
}

impl Case {
    /// Returns the case of a seed: the first one that is a program.
    pub fn new(seed: u64, variety: Variety) -> Case {
        let mut numbers = Numbers::new(seed * 7919 + 11);
        loop {
            let case = Case::random(&mut numbers, variety);
            // A reduction of numbers alone, and arithmetic on an index, are errors.
            if case.program().is_ok() {
                return case;
            }
        }
    }

    /// Returns nodes of which the last one of every part depends on a reduction.
    fn random(numbers: &mut Numbers, variety: Variety) -> Case {
        let order = |numbers: &mut Numbers| match numbers.below(9) {
            0 => Order::Misaligned,
            1 => Order::Permuted,
            2 => Order::Reversed,
            3 => Order::Stepped,
            4 => Order::Padded,
            _ => Order::Contiguous,
        };
        let is_extended = variety == Variety::Extended;
        let (sizes, axes) =
            if is_extended && numbers.below(3) == 0 { columns(numbers) } else { shape(numbers) };
        let main = DTYPES[numbers.below(6)];
        let mut inputs = vec![(main, Role::PerElement, order(numbers))];
        for _ in 0..numbers.below(4) {
            let roles = [Role::PerElement, Role::PerGroup, Role::AlongGroup, Role::Single];
            let dtype = if numbers.below(3) == 0 { DTYPES[numbers.below(6)] } else { main };
            inputs.push((dtype, roles[numbers.below(4)], order(numbers)));
        }
        let graph = Graph::new();
        let mut case = Case {
            nodes: Vec::new(),
            outputs: Vec::new(),
            is_special: numbers.below(3) == 0,
            capability: [(9, 0), (8, 0), (7, 5)][numbers.below(3)],
            inputs,
            sizes,
            axes,
        };
        let mut exprs: Vec<Expr<'_>> = Vec::new();
        for index in 0..case.inputs.len() {
            case.push(&graph, &mut exprs, Node::Input(index));
        }
        case.push(&graph, &mut exprs, Node::Number(if main == DType::I32 { 3.0 } else { 1.5 }, main));
        // The seed of all random words.
        let mut seed = None;
        if is_extended {
            let node = match numbers.below(2) {
                0 => Node::Scalar(7.0, DType::U64),
                _ => Node::Number(7.0, DType::U64),
            };
            seed = Some(case.nodes.len());
            case.push(&graph, &mut exprs, node);
        }
        for _ in 0..1 + numbers.below(3) {
            case.elementwise(&graph, &mut exprs, numbers, seed);
            case.reduction(&graph, &mut exprs, numbers);
        }
        case.elementwise(&graph, &mut exprs, numbers, seed);
        let last = case.nodes.len() - 1;
        case.outputs.push((last, order(numbers)));
        let reductions: Vec<usize> = (0..last).filter(|&at| case.is_reduction(at)).collect();
        for _ in 0..numbers.below(4) {
            let node = match numbers.below(2) {
                0 => reductions[numbers.below(reductions.len())],
                _ => last - numbers.below(last.min(6)),
            };
            case.outputs.push((node, order(numbers)));
        }
        if is_extended && numbers.below(2) == 0 {
            let depends = case.depends_on_positions();
            let fits = |&at: &usize| {
                !depends[at] && exprs[at].dtype().is_float() && !matches!(case.nodes[at], Node::Number(..))
            };
            let terms: Vec<usize> = (0..=last).filter(fits).collect();
            if !terms.is_empty() {
                // Late ones, which depend on reductions, more often.
                let at = numbers.below(terms.len()).max(numbers.below(terms.len()));
                case.push(&graph, &mut exprs, Node::SumOverGroups(terms[at]));
                case.outputs.push((case.nodes.len() - 1, order(numbers)));
            }
        }
        case
    }

    /// Returns for each node whether its elements depend on their positions in the shape, as random words do.
    fn depends_on_positions(&self) -> Vec<bool> {
        let mut depends: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let is_position = matches!(node, Node::Position | Node::Dropped(..) | Node::Uniform(_));
            depends.push(is_position || node.operands().iter().any(|&operand| depends[operand]));
        }
        depends
    }

    /// Returns whether contiguous rows have the elements of the same positions.
    pub fn has_positions_of_rows(&self) -> bool {
        let depends = self.depends_on_positions();
        let reads = self.outputs.iter().any(|&(output, _)| depends[output]);
        !reads || self.order_of_rows().is_sorted()
    }

    /// Returns the numbers that a run passes.
    pub fn scalars(&self) -> Vec<Number> {
        let nodes = self.nodes.iter().zip(self.needed());
        let scalars = nodes.filter_map(|(node, needed)| match node {
            Node::Scalar(number, _) if needed => Some(Number::Real(*number)),
            _ => None,
        });
        scalars.collect()
    }

    /// Returns the same case with numbers of the program instead of scalars.
    pub fn without_scalars(&self) -> Case {
        let mut case = self.clone();
        for node in &mut case.nodes {
            if let Node::Scalar(number, dtype) = *node {
                *node = Node::Number(number, dtype);
            }
        }
        case
    }

    fn is_reduction(&self, node: usize) -> bool {
        matches!(self.nodes[node], Node::Reduce(..) | Node::AtLargest(..))
    }

    fn push<'g>(&mut self, graph: &'g Graph, exprs: &mut Vec<Expr<'g>>, node: Node) {
        let expr = self.expr(graph, exprs, &node);
        exprs.push(expr);
        self.nodes.push(node);
    }

    fn expr<'g>(&self, graph: &'g Graph, exprs: &[Expr<'g>], node: &Node) -> Expr<'g> {
        match *node {
            Node::Input(index) => graph.input(self.inputs[index].0),
            Node::Number(number, dtype) => graph.number(number, dtype),
            Node::Scalar(_, dtype) => graph.scalar(dtype),
            Node::Apply(operation, ref operands) => {
                let operands: Vec<Expr<'g>> = operands.iter().map(|&operand| exprs[operand]).collect();
                operands[0].operation(operation, &operands[1..])
            }
            Node::Cast(of, dtype) => exprs[of].cast(dtype),
            Node::Reduce(reduction, of) => (REDUCTIONS[reduction].2)(exprs[of]),
            Node::AtLargest(of, by) => exprs[of].at_group(exprs[by].argmax_group()),
            Node::Index => exprs[0].index_in_group(),
            Node::Position => graph.position() % 10i64,
            Node::Dropped(of, seed) => {
                let [word] = graph.random(DType::U32, exprs[seed], graph.number(5u64, DType::U64));
                let zero = graph.number(0, exprs[of].dtype());
                word.ge(graph.number(1u64 << 30, DType::U32)).choose(exprs[of], zero)
            }
            Node::Uniform(seed) => {
                let [one, other] = graph.random(DType::U32, exprs[seed], graph.number(9u64, DType::U64));
                (one ^ other).cast(DType::F64) * 2f64.powi(-32)
            }
            Node::SumOverGroups(of) => exprs[of].sum_over_groups(),
        }
    }

    /// Adds a few nodes, of which the last uses the value of the last reduction, if there is one.
    fn elementwise<'g>(
        &mut self,
        graph: &'g Graph,
        exprs: &mut Vec<Expr<'g>>,
        numbers: &mut Numbers,
        seed: Option<usize>,
    ) {
        let reduction = (0..self.nodes.len()).rev().find(|&at| self.is_reduction(at));
        let wanted = self.nodes.len() + 1 + numbers.below(4);
        while self.nodes.len() < wanted {
            let count = self.nodes.len();
            let is_last = count + 1 == wanted;
            if numbers.below(12) == 0 && !is_last {
                self.push(graph, exprs, Node::Index);
                continue;
            }
            if let (Some(seed), false, 0) = (seed, is_last, numbers.below(5)) {
                let of = count - 1 - numbers.below(count);
                let main = self.inputs[0].0;
                let node = match numbers.below(5) {
                    0 => Node::Position,
                    1 => Node::Uniform(seed),
                    2 => Node::Dropped(of, seed),
                    _ => Node::Scalar(if main == DType::I32 { 5.0 } else { 2.5 }, main),
                };
                self.push(graph, exprs, node);
                continue;
            }
            let mut operands: Vec<usize> = (0..3).map(|_| count - 1 - numbers.below(count)).collect();
            if let (true, Some(reduction)) = (is_last, reduction) {
                operands[numbers.below(2)] = reduction;
            }
            let cast = DTYPES[numbers.below(8)];
            // Comparisons and functions of one operand are most of all operations.
            let arithmetic = [Operation::Add, Operation::Sub, Operation::Mul, Operation::Div];
            let operation = match numbers.below(2) {
                0 => arithmetic[numbers.below(4)],
                _ => Operation::ALL[numbers.below(Operation::ALL.len())],
            };
            operands.truncate(operation.arity());
            let dtypes: Vec<DType> = operands.iter().map(|&operand| exprs[operand].dtype()).collect();
            let is_complex = dtypes.iter().any(|dtype| dtype.is_complex());
            let is_exposed = match is_complex {
                true => !OF_COMPLEX.contains(&operation),
                false => matches!(operation, Operation::Copysign | Operation::Signbit),
            };
            if !is_exposed && operation.signature(&dtypes).is_ok() {
                self.push(graph, exprs, Node::Apply(operation, operands));
            } else if numbers.below(4) == 0 {
                self.push(graph, exprs, Node::Cast(operands[0], cast));
            }
        }
    }

    /// Adds a reduction of a late node, and a cast of an index to a dtype of numbers.
    fn reduction<'g>(&mut self, graph: &'g Graph, exprs: &mut Vec<Expr<'g>>, numbers: &mut Numbers) {
        loop {
            let count = self.nodes.len();
            let [of, by] = [0; 2].map(|_| count - 1 - numbers.below(count.min(4)));
            let dtype = exprs[of].dtype();
            if numbers.below(10) == 0 {
                let is_ordered = Fold::ArgMaximum.result(exprs[by].dtype()).is_ok();
                if is_ordered && Fold::Sum.result(dtype).is_ok() && !dtype.is_complex() {
                    return self.push(graph, exprs, Node::AtLargest(of, by));
                }
            }
            let reduction = numbers.below(REDUCTIONS.len());
            if REDUCTIONS[reduction].1.result(dtype).is_ok() {
                self.push(graph, exprs, Node::Reduce(reduction, of));
                if matches!(REDUCTIONS[reduction].1, Fold::ArgMaximum | Fold::ArgMinimum) {
                    let index = self.nodes.len() - 1;
                    self.push(graph, exprs, Node::Cast(index, DTYPES[numbers.below(5)]));
                }
                return;
            }
        }
    }

    /// Returns the nodes that the outputs depend on.
    pub fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        self.outputs.iter().for_each(|&(output, _)| needed[output] = true);
        for at in (0..self.nodes.len()).rev() {
            if needed[at] {
                self.nodes[at].operands().into_iter().for_each(|operand| needed[operand] = true);
            }
        }
        needed
    }

    pub fn program(&self) -> selvedge::Result<RowProgram> {
        let graph = Graph::new();
        let needed = self.needed();
        let mut exprs: Vec<Expr<'_>> = Vec::new();
        for (node, needed) in self.nodes.iter().zip(needed) {
            // All inputs stay, and others are numbers that no output reads.
            let kept = needed || matches!(node, Node::Input(_));
            let expr = if kept { self.expr(&graph, &exprs, node) } else { exprs[0] };
            exprs.push(expr);
        }
        let outputs: Vec<Expr<'_>> = self.outputs.iter().map(|&(output, _)| exprs[output]).collect();
        graph.row_program(&outputs)
    }

    /// Returns the sizes of an operand.
    pub fn sizes_of(&self, role: Role) -> Vec<usize> {
        let size = |(axis, &size): (usize, &usize)| {
            let is_folded = self.axes.contains(&axis);
            let is_whole = match role {
                Role::PerElement => true,
                Role::PerGroup => !is_folded,
                Role::AlongGroup => is_folded,
                Role::Single => false,
            };
            if is_whole { size } else { 1 }
        };
        self.sizes.iter().enumerate().map(size).collect()
    }

    /// Returns the layout of an operand with all kept axes as the first and all folded ones as the second of two.
    pub fn as_rows(&self, role: Role) -> Layout {
        let sizes = self.sizes_of(role);
        let of = |folded: bool| {
            let axes = (0..sizes.len()).filter(|axis| self.axes.contains(axis) == folded);
            axes.map(|axis| sizes[axis]).product()
        };
        contiguous(&[of(false), of(true)])
    }

    /// Returns this order of the axes as axes of rows.
    pub fn order_of_rows(&self) -> Vec<isize> {
        let all = || 0..self.sizes.len();
        let kept = all().filter(|axis| !self.axes.contains(axis));
        let folded = all().filter(|axis| self.axes.contains(axis));
        kept.chain(folded).map(|axis| axis as isize).collect()
    }
}

/// Returns sizes and the axes of a group.
fn shape(numbers: &mut Numbers) -> (Vec<usize>, Vec<usize>) {
    let lengths = [1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 100, 127, 128, 129, 256, 257, 1000, 1024, 1030];
    let small = [1, 2, 3, 4, 5, 8];
    let length = lengths[numbers.below(lengths.len())];
    let rows = 1 + numbers.below((1200 / length).clamp(2, 20));
    match numbers.below(8) {
        0 => (vec![length], vec![0]),
        1 => (vec![length, rows.min(9)], vec![0]),
        2 => (vec![small[numbers.below(6)], small[numbers.below(6)], length.min(130)], vec![1, 2]),
        3 => (vec![small[numbers.below(6)], rows.min(5), length.min(130)], vec![0, 2]),
        4 => (vec![small[numbers.below(6)], small[numbers.below(6)], 2, length.min(64)], vec![0, 2, 3]),
        _ => (vec![rows, length], vec![1]),
    }
}

/// Returns sizes and axes of strided groups: columns of a matrix, the channels of images, and groups around an axis.
fn columns(numbers: &mut Numbers) -> (Vec<usize>, Vec<usize>) {
    let lengths = [2, 3, 7, 16, 31, 32, 33, 64, 127, 128, 129, 300, 1000, 1030];
    let length = lengths[numbers.below(lengths.len())];
    let count = 1 + numbers.below((1500 / length).clamp(3, 40));
    let small = [1, 2, 3, 4, 5, 8];
    match numbers.below(4) {
        0 => (vec![small[numbers.below(4)], length.min(130), count.min(5)], vec![1]),
        1 => (vec![2, length.min(64), small[numbers.below(4)], small[numbers.below(4)]], vec![1]),
        2 => (vec![small[numbers.below(4)], 2, length.min(64), 1 + numbers.below(9)], vec![0, 2]),
        _ => (vec![length, count], vec![0]),
    }
}

impl Order {
    pub fn layout(self, sizes: &[usize]) -> Layout {
        let whole = contiguous(sizes);
        let last = sizes.len() - 1;
        let wide = |more: usize| {
            let mut wide = sizes.to_vec();
            wide[last] = more;
            contiguous(&wide)
        };
        let view = match self {
            Order::Contiguous => Ok(whole),
            Order::Misaligned => Layout::strided(sizes, whole.strides(), 1),
            Order::Permuted => {
                let reversed: Vec<usize> = sizes.iter().rev().copied().collect();
                let axes: Vec<isize> = (0..sizes.len() as isize).rev().collect();
                contiguous(&reversed).permute(&axes)
            }
            Order::Reversed => whole.flip(&[last as isize]),
            Order::Stepped => wide(2 * sizes[last]).slice(last as isize, Slice::from(1..).step(2)),
            Order::Padded => wide(sizes[last] + 4).slice(last as isize, Slice::from(..sizes[last] as isize)),
        };
        view.expect("a layout")
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { sizes, axes, capability: (major, minor), .. } = self;
        let values = if self.is_special { "special" } else { "plain" };
        writeln!(formatter, "shape {sizes:?}, axes {axes:?}, {values} values, sm_{major}{minor}")?;
        for (at, (node, _)) in
            self.nodes.iter().zip(self.needed()).enumerate().filter(|(_, (_, needed))| *needed)
        {
            let operands: Vec<String> = node.operands().iter().map(|operand| format!("v{operand}")).collect();
            let operands = operands.join(", ");
            write!(formatter, "v{at} = ")?;
            match node {
                Node::Input(index) => {
                    let (dtype, role, order) = self.inputs[*index];
                    writeln!(formatter, "input of {dtype}, {role:?}, {order:?}")?;
                }
                Node::Number(number, dtype) => writeln!(formatter, "{number} of {dtype}")?,
                Node::Apply(operation, _) => writeln!(formatter, "{}({operands})", operation.name())?,
                Node::Cast(_, dtype) => writeln!(formatter, "{dtype}({operands})")?,
                Node::Reduce(reduction, _) => {
                    writeln!(formatter, "{}({operands})", REDUCTIONS[*reduction].0)?
                }
                Node::AtLargest(..) => writeln!(formatter, "at_largest({operands})")?,
                Node::Index => writeln!(formatter, "index_in_group()")?,
                Node::Position => writeln!(formatter, "position() % 10")?,
                Node::Scalar(number, dtype) => writeln!(formatter, "scalar {number} of {dtype}")?,
                Node::Dropped(..) => writeln!(formatter, "dropped({operands})")?,
                Node::Uniform(_) => writeln!(formatter, "uniform({operands})")?,
                Node::SumOverGroups(_) => writeln!(formatter, "sum_over_groups({operands})")?,
            }
        }
        for (output, order) in &self.outputs {
            writeln!(formatter, "output v{output}, {order:?}")?;
        }
        Ok(())
    }
}

impl Case {
    /// Returns whether every node has operands of dtypes that it takes.
    pub fn is_valid(&self) -> bool {
        let graph = Graph::new();
        let mut exprs: Vec<Expr<'_>> = Vec::new();
        for node in &self.nodes {
            let dtype = |operand: &usize| exprs[*operand].dtype();
            let fits = match node {
                Node::Apply(operation, operands) => {
                    operation.signature(&operands.iter().map(dtype).collect::<Vec<_>>()).is_ok()
                }
                Node::Reduce(reduction, of) => REDUCTIONS[*reduction].1.result(dtype(of)).is_ok(),
                Node::AtLargest(of, by) => {
                    !dtype(of).is_complex() && Fold::ArgMaximum.result(dtype(by)).is_ok()
                }
                _ => true,
            };
            if !fits {
                return false;
            }
            exprs.push(self.expr(&graph, &exprs, node));
        }
        self.program().is_ok()
    }
}
