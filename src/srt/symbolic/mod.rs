//! Symbolic expressions of exact numbers, constants and inputs, and their evaluation in batches.
//!
//! | file | contents |
//! |---|---|
//! | `compile` | the fused expression of a tree, and its runs |
//! | `gamma` | the gamma function as a fused expression |
//! | `power` | rational powers as fused expressions |
//!
//! Tests: `tests/srt/symbolic.rs`, `tests/parity/symbolic.rs`.

mod compile;
mod gamma;
mod power;

pub use compile::CompiledExpr;

use std::f64::consts::{E, PI};
use std::{fmt, ops};

use super::exact::{GoldenExact, GoldenInteger, Rational};
use super::{ESTAR, PHI, Q_DEFICIT};
use crate::error::Result;

/// A named constant of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Constant {
    /// π.
    Pi,
    /// e.
    E,
    /// φ.
    Phi,
    /// E* = e^π - π, [`ESTAR`].
    EStar,
    /// q, [`Q_DEFICIT`].
    Q,
}

impl Constant {
    /// Returns the nearest f64.
    pub fn value(self) -> f64 {
        match self {
            Constant::Pi => PI,
            Constant::E => E,
            Constant::Phi => PHI,
            Constant::EStar => ESTAR,
            Constant::Q => Q_DEFICIT,
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Constant::Pi => "π",
            Constant::E => "e",
            Constant::Phi => "φ",
            Constant::EStar => "E*",
            Constant::Q => "q",
        }
    }
}

/// An operation of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    Add,
    Sub,
    Mul,
    Div,
}

/// A function of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unary {
    Neg,
    Pow(Rational),
    Exp,
    Ln,
    Gamma,
    Sin,
    Cos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Integer(i128),
    Rational(Rational),
    Golden(GoldenExact),
    Constant(Constant),
    Input(usize),
    Unary(Unary),
    Binary(Binary),
}

/// A tree of numbers, inputs and functions.
///
/// Building evaluates nothing, except that an operator on two exact leaves of one kind (integers, rationals or elements of
/// Q(φ)) gives their exact result as a leaf, unless it overflows or divides by 0. Integers that do not divide give a
/// rational.
///
/// [`compile`](Self::compile) makes a fused expression for batches in f64. Domain errors give NaN, infinities follow IEEE:
/// ln 0 = -∞, ln of a negative number is NaN, x/0 is infinite, Γ is NaN at negative integers. A power with an even reduced
/// denominator of a negative base is NaN, one with an odd denominator the real root.
///
/// ```
/// use selvedge::srt::{Constant, SymExpr};
/// let x = SymExpr::input(0);
/// let f = (x.pow(2) + 1) * SymExpr::from(Constant::Pi);
/// assert_eq!(f.to_string(), "((x0^2 + 1) · π)");
/// assert_eq!(f.evaluate(&[2.0])?, 5.0 * std::f64::consts::PI);
/// assert_eq!((SymExpr::from(6) / 4).to_string(), "3/2");
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymExpr {
    /// In postfix order, so that no depth of a tree exhausts the stack.
    nodes: Vec<Node>,
}

impl SymExpr {
    fn leaf(node: Node) -> SymExpr {
        SymExpr { nodes: vec![node] }
    }

    fn exact(&self) -> Option<Node> {
        match self.nodes[..] {
            [node @ (Node::Integer(_) | Node::Rational(_) | Node::Golden(_))] => Some(node),
            _ => None,
        }
    }

    fn unary(mut self, unary: Unary) -> SymExpr {
        self.nodes.push(Node::Unary(unary));
        self
    }

    fn binary(mut self, binary: Binary, other: SymExpr) -> SymExpr {
        if let Some(node) = self.exact().zip(other.exact()).and_then(|(x, y)| folded(binary, x, y)) {
            return SymExpr::leaf(node);
        }
        self.nodes.extend(other.nodes);
        self.nodes.push(Node::Binary(binary));
        self
    }

    /// Returns input `slot`: column `slot` of the rows of a run.
    pub fn input(slot: usize) -> SymExpr {
        SymExpr::leaf(Node::Input(slot))
    }

    /// Returns self to a rational power.
    #[must_use]
    pub fn pow(&self, exponent: impl Into<Rational>) -> SymExpr {
        self.clone().unary(Unary::Pow(exponent.into()))
    }

    /// Returns e to the power self.
    #[must_use]
    pub fn exp(&self) -> SymExpr {
        self.clone().unary(Unary::Exp)
    }

    /// Returns the natural logarithm.
    #[must_use]
    pub fn ln(&self) -> SymExpr {
        self.clone().unary(Unary::Ln)
    }

    /// Returns the gamma function.
    #[must_use]
    pub fn gamma(&self) -> SymExpr {
        self.clone().unary(Unary::Gamma)
    }

    /// Returns the sine.
    #[must_use]
    pub fn sin(&self) -> SymExpr {
        self.clone().unary(Unary::Sin)
    }

    /// Returns the cosine.
    #[must_use]
    pub fn cos(&self) -> SymExpr {
        self.clone().unary(Unary::Cos)
    }

    /// Returns the number of leaves and functions.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of input slots: the highest one, plus 1.
    pub fn slots(&self) -> usize {
        let slot = |node: &Node| if let Node::Input(slot) = node { slot.saturating_add(1) } else { 0 };
        self.nodes.iter().map(slot).max().unwrap_or(0)
    }

    /// Evaluates the tree for one row of inputs, with the bits of a batch.
    ///
    /// # Errors
    ///
    /// As [`compile`](Self::compile) and [`CompiledExpr::run_rows`].
    pub fn evaluate(&self, inputs: &[f64]) -> Result<f64> {
        self.compile()?.evaluate(inputs)
    }
}

/// Returns the exact result of an operator on two leaves of one kind.
fn folded(binary: Binary, x: Node, y: Node) -> Option<Node> {
    Some(match (x, y) {
        (Node::Integer(x), Node::Integer(y)) => match binary {
            Binary::Add => Node::Integer(x.checked_add(y)?),
            Binary::Sub => Node::Integer(x.checked_sub(y)?),
            Binary::Mul => Node::Integer(x.checked_mul(y)?),
            Binary::Div => {
                let quotient = Rational::new(x, y).ok()?;
                quotient.to_integer().map_or(Node::Rational(quotient), Node::Integer)
            }
        },
        (Node::Rational(x), Node::Rational(y)) => Node::Rational(
            match binary {
                Binary::Add => x.checked_add(y),
                Binary::Sub => x.checked_sub(y),
                Binary::Mul => x.checked_mul(y),
                Binary::Div => x.checked_div(y),
            }
            .ok()?,
        ),
        (Node::Golden(x), Node::Golden(y)) => Node::Golden(
            match binary {
                Binary::Add => x.checked_add(y),
                Binary::Sub => x.checked_sub(y),
                Binary::Mul => x.checked_mul(y),
                Binary::Div => x.checked_div(y),
            }
            .ok()?,
        ),
        _ => return None,
    })
}

macro_rules! conversions {
    ($($type:ty => |$value:ident| $node:expr;)*) => {$(
        impl From<$type> for SymExpr {
            fn from($value: $type) -> SymExpr {
                SymExpr::leaf($node)
            }
        }
    )*};
}

conversions! {
    i32 => |number| Node::Integer(number.into());
    i64 => |number| Node::Integer(number.into());
    i128 => |number| Node::Integer(number);
    Rational => |number| Node::Rational(number);
    GoldenExact => |number| Node::Golden(number);
    GoldenInteger => |number| Node::Golden(number.into());
    Constant => |constant| Node::Constant(constant);
}

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl<T: Into<SymExpr>> ops::$trait<T> for SymExpr {
            type Output = SymExpr;

            fn $method(self, right: T) -> SymExpr {
                self.binary(Binary::$trait, right.into())
            }
        }
    )*};
}

operators! { Add add; Sub sub; Mul mul; Div div; }

impl ops::Neg for SymExpr {
    type Output = SymExpr;

    fn neg(self) -> SymExpr {
        self.unary(Unary::Neg)
    }
}

impl fmt::Display for SymExpr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stack: Vec<String> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let text = match node {
                Node::Integer(number) => number.to_string(),
                Node::Rational(number) => number.to_string(),
                Node::Golden(number) => format!("({number})"),
                Node::Constant(constant) => constant.symbol().to_owned(),
                Node::Input(slot) => format!("x{slot}"),
                Node::Unary(unary) => {
                    let operand = stack.pop().unwrap_or_default();
                    match unary {
                        Unary::Neg => format!("-({operand})"),
                        Unary::Pow(power) => {
                            // The operand's last node is the one before.
                            let is_compound = at > 0 && is_compound(&self.nodes[at - 1]);
                            let base = if is_compound { format!("({operand})") } else { operand };
                            match power.to_integer() {
                                Some(power) => format!("{base}^{power}"),
                                None => format!("{base}^({power})"),
                            }
                        }
                        Unary::Exp => format!("exp({operand})"),
                        Unary::Ln => format!("ln({operand})"),
                        Unary::Gamma => format!("Γ({operand})"),
                        Unary::Sin => format!("sin({operand})"),
                        Unary::Cos => format!("cos({operand})"),
                    }
                }
                Node::Binary(binary) => {
                    let (right, left) = (stack.pop().unwrap_or_default(), stack.pop().unwrap_or_default());
                    // The right operand's last node is the one before.
                    let is_factor = matches!(binary, Binary::Mul | Binary::Div);
                    let is_grouped = is_factor && at > 0 && is_fraction(&self.nodes[at - 1]);
                    let right = if is_grouped { format!("({right})") } else { right };
                    let symbol = match binary {
                        Binary::Add => "+",
                        Binary::Sub => "-",
                        Binary::Mul => "·",
                        Binary::Div => "/",
                    };
                    format!("({left} {symbol} {right})")
                }
            };
            stack.push(text);
        }
        formatter.write_str(&stack.pop().unwrap_or_default())
    }
}

/// Returns whether the node's text is a division: `a / 1/2` would read as (a / 1) / 2.
fn is_fraction(node: &Node) -> bool {
    matches!(node, Node::Rational(number) if number.to_integer().is_none())
}

/// Returns whether the text of an expression that ends with this node needs parentheses as the base of a power.
fn is_compound(node: &Node) -> bool {
    match node {
        Node::Integer(number) => *number < 0,
        Node::Rational(number) => is_fraction(node) || number.to_integer().is_some_and(|number| number < 0),
        Node::Unary(unary) => matches!(unary, Unary::Neg | Unary::Pow(_)),
        Node::Golden(_) | Node::Constant(_) | Node::Input(_) | Node::Binary(_) => false,
    }
}
