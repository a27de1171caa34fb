//! The text of an expression, such as `relu(a*b+c)` or `softmax(x)`, as nodes of a graph.
//!
//! ```text
//! sum     = product (('+' | '-') product)*
//! product = sign (('*' | '/') sign)*
//! sign    = '-' sign | atom
//! atom    = number | input | '(' sum ')' | function '(' sum (',' sum)* ')'
//! ```
//!
//! A function is an operation of `selvedge::fuse::Operation`, a reduction over groups, `at_group` (an element of a group at
//! an index), a dtype, which casts, or one of [`MACROS`]. Numbers take part in promotion by kind, as in Rust. Arithmetic of two numbers is computed while reading.

use selvedge::fuse::{Expr, Fold, Graph, Number, Operation};
use selvedge::types::DType;

use crate::output::printable;

/// The most parentheses, functions and signs within each other.
const DEEPEST: usize = 200;

/// The functions that consist of several operations, with their parameters and the axes of their groups.
const MACROS: [(&str, &str, DefaultAxes); 9] = [
    ("softmax", "x", DefaultAxes::Last),
    ("log_softmax", "x", DefaultAxes::Last),
    ("layer_norm", "x, weight, bias", DefaultAxes::Last),
    ("rms_norm", "x, weight", DefaultAxes::Last),
    ("normalize", "x", DefaultAxes::Last),
    ("standardize", "x", DefaultAxes::Last),
    ("batch_norm", "x, weight, bias", DefaultAxes::AllButChannels),
    ("group_norm", "x, weight, bias", DefaultAxes::OfChannelGroups),
    ("cross_entropy", "x, label", DefaultAxes::Last),
];

/// The axes of a function's groups, if the command line names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultAxes {
    Last,
    /// All axes but the second, for images of shape (N, C, …).
    AllButChannels,
    /// The axes from the third on, for images of shape (N, groups, C / groups, …).
    OfChannelGroups,
}

impl DefaultAxes {
    /// Returns the axes of a shape.
    pub fn of(self, rank: usize) -> Vec<isize> {
        let all = 0..rank as isize;
        match self {
            DefaultAxes::Last => all.rev().take(1).collect(),
            DefaultAxes::AllButChannels => all.filter(|axis| *axis != 1).collect(),
            DefaultAxes::OfChannelGroups => all.skip(2).collect(),
        }
    }
}

type Reduction = (&'static str, Fold, for<'g> fn(Expr<'g>) -> Expr<'g>);

/// The reductions over groups. A mean is checked as a sum.
const REDUCTIONS: [Reduction; 9] = [
    ("sum_group", Fold::Sum, |x| x.sum_group()),
    ("mean_group", Fold::Sum, |x| x.mean_group()),
    ("prod_group", Fold::Product, |x| x.prod_group()),
    ("max_group", Fold::Maximum, |x| x.max_group()),
    ("min_group", Fold::Minimum, |x| x.min_group()),
    ("argmax_group", Fold::ArgMaximum, |x| x.argmax_group()),
    ("argmin_group", Fold::ArgMinimum, |x| x.argmin_group()),
    ("any_group", Fold::Any, |x| x.any_group()),
    ("all_group", Fold::All, |x| x.all_group()),
];

/// The element of a group at an index.
const AT_GROUP: &str = "at_group";

/// An error at a character of the text.
#[derive(Debug, PartialEq, Eq)]
pub struct TextError {
    /// Characters before the error.
    at: usize,
    message: String,
}

impl TextError {
    /// Returns the message with the text and a mark below the character.
    pub fn show(&self, text: &str) -> String {
        // A line break or a tab would move the mark.
        let (line, column, indent) = (printable(text), self.at + 1, " ".repeat(self.at));
        format!("column {column}: {}\n  {line}\n  {indent}^", self.message)
    }
}

type Result<T> = std::result::Result<T, TextError>;

fn error<T>(at: usize, message: impl Into<String>) -> Result<T> {
    Err(TextError { at, message: message.into() })
}

/// An expression, with the names of its inputs in the order of their first use.
pub struct Parsed<'g> {
    pub output: Expr<'g>,
    pub inputs: Vec<String>,
    /// The functions of groups, with the axes of their groups.
    pub functions: Vec<(&'static str, DefaultAxes)>,
}

/// Adds the nodes of a text to a graph. `dtype_of` returns the dtype of an input.
pub fn parse<'g>(graph: &'g Graph, text: &str, dtype_of: impl Fn(&str) -> DType) -> Result<Parsed<'g>> {
    let (tokens, end) = tokens(text)?;
    let mut parser =
        Parser { graph, tokens, end, next: 0, depth: 0, inputs: Vec::new(), functions: Vec::new(), dtype_of };
    let value = parser.sum()?;
    if let Some((at, token)) = parser.peek() {
        return error(at, format!("found {}; wanted an operator or the end", token.name()));
    }
    let Value::Expr(output) = value else {
        return error(0, "found a number alone; wanted an expression with an input");
    };
    let inputs = parser.inputs.into_iter().map(|(name, _)| name).collect();
    Ok(Parsed { output, inputs, functions: parser.functions })
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(Number),
    Name(String),
    Symbol(char),
}

impl Token {
    fn name(&self) -> String {
        match self {
            Token::Number(_) => "a number".to_owned(),
            Token::Name(name) => format!("'{name}'"),
            Token::Symbol(symbol) => format!("'{symbol}'"),
        }
    }
}

/// Returns the tokens with the number of characters before each, and the number of all characters.
fn tokens(text: &str) -> Result<(Vec<(usize, Token)>, usize)> {
    let letters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let starts_number = letter.is_ascii_digit() || letter == '.';
        let mut end = at + 1;
        if letter.is_whitespace() {
            at = end;
            continue;
        } else if starts_number {
            let is_exponent = |end: usize| {
                matches!(letters.get(end), Some('+' | '-')) && matches!(letters.get(end - 1), Some('e' | 'E'))
            };
            while letters.get(end).is_some_and(|&letter| is_word(letter) || letter == '.') || is_exponent(end)
            {
                end += 1;
            }
        } else if is_word(letter) {
            while letters.get(end).is_some_and(|&letter| is_word(letter)) {
                end += 1;
            }
        } else if !"+-*/(),".contains(letter) {
            return error(at, format!("found '{letter}'; wanted a name, a number or one of + - * / ( ) ,"));
        }
        let word: String = letters.iter().skip(at).take(end - at).collect();
        let token = if starts_number {
            match (word.parse::<u64>(), word.parse::<f64>()) {
                (Ok(integer), _) => Token::Number(integer.into()),
                (_, Ok(real)) if real.is_finite() => Token::Number(real.into()),
                _ => return error(at, format!("found '{word}'; wanted a number such as 2, 0.5 or 1e-5")),
            }
        } else if is_word(letter) {
            Token::Name(word)
        } else {
            Token::Symbol(letter)
        };
        tokens.push((at, token));
        at = end;
    }
    Ok((tokens, letters.len()))
}

/// A value of the text.
#[derive(Clone, Copy)]
enum Value<'g> {
    Expr(Expr<'g>),
    Number(Number),
}

fn real(number: Number) -> f64 {
    match number {
        Number::Bool(value) => f64::from(u8::from(value)),
        Number::Integer(value) => value as f64,
        Number::Real(value) => value,
        Number::Complex(value) => value.re,
    }
}

/// Returns the result of an operator on two numbers. Integers stay integers, except in a quotient and beyond 64 bits.
fn of_numbers(operation: Operation, x: Number, y: Number) -> Number {
    if let (Number::Integer(x), Number::Integer(y)) = (x, y) {
        let result = match operation {
            Operation::Add => x.checked_add(y),
            Operation::Sub => x.checked_sub(y),
            Operation::Mul => x.checked_mul(y),
            _ => None,
        };
        let fits = |result: &i128| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(result);
        if let Some(result) = result.filter(fits) {
            return Number::Integer(result);
        }
    }
    let (x, y) = (real(x), real(y));
    Number::Real(match operation {
        Operation::Add => x + y,
        Operation::Sub => x - y,
        Operation::Mul => x * y,
        _ => x / y,
    })
}

struct Parser<'g, F> {
    graph: &'g Graph,
    tokens: Vec<(usize, Token)>,
    /// The characters of the text.
    end: usize,
    next: usize,
    depth: usize,
    inputs: Vec<(String, Expr<'g>)>,
    functions: Vec<(&'static str, DefaultAxes)>,
    dtype_of: F,
}

impl<'g, F: Fn(&str) -> DType> Parser<'g, F> {
    fn peek(&self) -> Option<(usize, &Token)> {
        self.tokens.get(self.next).map(|(at, token)| (*at, token))
    }

    /// Takes one of these symbols, if it is next.
    fn take(&mut self, symbols: &str) -> Option<(usize, char)> {
        let (at, symbol) = match self.peek() {
            Some((at, Token::Symbol(symbol))) if symbols.contains(*symbol) => (at, *symbol),
            _ => return None,
        };
        self.next += 1;
        Some((at, symbol))
    }

    fn wanted<T>(&self, wanted: &str) -> Result<T> {
        match self.peek() {
            Some((at, token)) => error(at, format!("found {}; wanted {wanted}", token.name())),
            None => error(self.end, format!("found the end; wanted {wanted}")),
        }
    }

    fn sum(&mut self) -> Result<Value<'g>> {
        let mut left = self.product()?;
        while let Some((at, symbol)) = self.take("+-") {
            let right = self.product()?;
            let operation = if symbol == '+' { Operation::Add } else { Operation::Sub };
            left = self.apply(at, operation, &[left, right])?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Value<'g>> {
        let mut left = self.sign()?;
        while let Some((at, symbol)) = self.take("*/") {
            let right = self.sign()?;
            let operation = if symbol == '*' { Operation::Mul } else { Operation::Div };
            left = self.apply(at, operation, &[left, right])?;
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Value<'g>> {
        if self.depth == DEEPEST {
            return self
                .wanted(&format!("at most {DEEPEST} parentheses, functions and signs within each other"));
        }
        self.depth += 1;
        let value = match self.take("-") {
            Some((at, _)) => {
                let value = self.sign()?;
                self.apply(at, Operation::Neg, &[value])
            }
            None => self.atom(),
        };
        self.depth -= 1;
        value
    }

    fn atom(&mut self) -> Result<Value<'g>> {
        if self.take("(").is_some() {
            let value = self.sum()?;
            return match self.take(")") {
                Some(_) => Ok(value),
                None => self.wanted("an operator or ')'"),
            };
        }
        let Some((at, token)) = self.peek() else { return self.wanted("an input, a number, '(' or '-'") };
        match token.clone() {
            Token::Number(number) => {
                self.next += 1;
                Ok(Value::Number(number))
            }
            Token::Name(name) => {
                self.next += 1;
                if self.take("(").is_some() { self.call(at, &name) } else { self.input(at, name) }
            }
            Token::Symbol(_) => self.wanted("an input, a number, '(' or '-'"),
        }
    }

    fn input(&mut self, at: usize, name: String) -> Result<Value<'g>> {
        if let Some((_, input)) = self.inputs.iter().find(|(known, _)| *known == name) {
            return Ok(Value::Expr(*input));
        }
        if is_function(&name) {
            return error(at, format!("found the function '{name}' as an input; wanted '(' after it"));
        }
        let input = self.graph.input((self.dtype_of)(&name));
        self.inputs.push((name, input));
        Ok(Value::Expr(input))
    }

    /// Reads the operands of a function after its parenthesis.
    fn call(&mut self, at: usize, name: &str) -> Result<Value<'g>> {
        if !is_function(name) {
            let macros = MACROS.map(|(name, ..)| name).join(", ");
            let wanted = format!(
                "an operation such as relu, a reduction such as sum_group, a dtype, or one of {macros}"
            );
            return error(at, format!("found the function '{name}'; wanted {wanted}"));
        }
        let mut operands = vec![self.sum()?];
        while self.take(",").is_some() {
            operands.push(self.sum()?);
        }
        if self.take(")").is_none() {
            return self.wanted("an operator, ',' or ')'");
        }
        if let Some(&operation) = Operation::ALL.iter().find(|operation| operation.name() == name) {
            return self.apply(at, operation, &operands);
        }
        let tensors = operands.iter().map(|operand| match operand {
            Value::Expr(expr) => Ok(*expr),
            Value::Number(_) => error(at, format!("found a number as an operand of {name}; wanted inputs")),
        });
        let operands = tensors.collect::<Result<Vec<Expr<'g>>>>()?;
        if let Some((name, parameters, axes)) = MACROS.iter().find(|(known, ..)| *known == name) {
            self.functions.push((name, *axes));
            return self.expand(at, name, parameters, &operands).map(Value::Expr);
        }
        if name == AT_GROUP {
            let [x, index] = operands[..] else {
                let found = operands.len();
                return error(at, format!("found {found} operands of {name}; wanted {name}(x, index)"));
            };
            if !index.dtype().is_integer() || x.dtype().is_complex() {
                let found = format!("found {name} of {} at an index of {}", x.dtype(), index.dtype());
                return error(at, format!("{found}; wanted an index of integers and no complex elements"));
            }
            Fold::Sum.result(x.dtype()).map_err(|refusal| TextError { at, message: refusal.to_string() })?;
            self.functions.push((AT_GROUP, DefaultAxes::Last));
            return Ok(Value::Expr(x.at_group(index)));
        }
        let [x] = operands[..] else {
            return error(at, format!("found {} operands of {name}; wanted 1", operands.len()));
        };
        if let Ok(dtype) = name.parse::<DType>() {
            return Ok(Value::Expr(x.cast(dtype)));
        }
        match REDUCTIONS.iter().find(|(known, ..)| *known == name) {
            Some((name, fold, reduce)) => {
                let checked = fold.result(x.dtype());
                checked.map_err(|refusal| TextError { at, message: refusal.to_string() })?;
                self.functions.push((name, DefaultAxes::Last));
                Ok(Value::Expr(reduce(x)))
            }
            None => error(at, format!("found the function '{name}'; wanted an operation")),
        }
    }

    /// Applies an operation to operands, of which at least one is no number except in arithmetic.
    fn apply(&self, at: usize, operation: Operation, operands: &[Value<'g>]) -> Result<Value<'g>> {
        let of_text = |error: selvedge::Error| TextError { at, message: error.to_string() };
        match (operation, operands) {
            (Operation::Neg, [Value::Number(x)]) => {
                return Ok(Value::Number(match *x {
                    Number::Integer(0) => Number::Real(-0.0),
                    Number::Integer(x) => Number::Integer(-x),
                    x => Number::Real(-real(x)),
                }));
            }
            (
                Operation::Add | Operation::Sub | Operation::Mul | Operation::Div,
                [Value::Number(x), Value::Number(y)],
            ) => return Ok(Value::Number(of_numbers(operation, *x, *y))),
            _ => {}
        }
        if operands.len() != operation.arity() {
            let (found, wanted) = (operands.len(), operation.arity());
            return error(at, format!("found {found} operands of {}; wanted {wanted}", operation.name()));
        }
        let mut common: Option<DType> = None;
        // The condition of `choose` does not take part in promotion.
        let is_condition = |index: usize| operation == Operation::Select && index == 0;
        for (index, operand) in operands.iter().enumerate() {
            if let (Value::Expr(expr), false) = (operand, is_condition(index)) {
                let dtype = common.map_or(Ok(expr.dtype()), |common| common.promote(expr.dtype()));
                common = Some(dtype.map_err(of_text)?);
            }
        }
        let Some(common) = common else {
            let name = operation.name();
            return error(at, format!("found {name} of numbers alone; wanted an input among its operands"));
        };
        let mut nodes = Vec::with_capacity(operands.len());
        for operand in operands {
            nodes.push(match *operand {
                Value::Expr(expr) => expr,
                Value::Number(number) => {
                    let dtype = common.promote_number(number.kind()).map_err(of_text)?;
                    if !number.fits(dtype) {
                        return error(
                            at,
                            format!("found a number that {dtype} does not hold; wanted a cast of the inputs"),
                        );
                    }
                    self.graph.number(number, dtype)
                }
            });
        }
        let dtypes: Vec<DType> = nodes.iter().map(|node| node.dtype()).collect();
        operation.signature(&dtypes).map_err(of_text)?;
        match nodes.split_first() {
            Some((first, others)) => Ok(Value::Expr(first.operation(operation, others))),
            None => error(at, "found no operands; wanted at least one"),
        }
    }

    /// Expands one of [`MACROS`], as the function on tensors computes it.
    fn expand(&mut self, at: usize, name: &str, parameters: &str, operands: &[Expr<'g>]) -> Result<Expr<'g>> {
        let wanted = parameters.split(", ").count();
        let (Some(&x), true) = (operands.first(), operands.len() <= wanted) else {
            let found = operands.len();
            return error(
                at,
                format!("found {found} operands; wanted {name}({parameters}), of which x is required"),
            );
        };
        let mut computed = operands;
        if name == "cross_entropy" {
            let [_, label] = operands else {
                return error(at, format!("found no label; wanted {name}({parameters})"));
            };
            if !label.dtype().is_integer() {
                let wanted = "wanted integers of --input, one for each group";
                return error(at, format!("found labels of {} in {name}; {wanted}", label.dtype()));
            }
            computed = &operands[..1];
        }
        if let Some(other) =
            computed.iter().map(|operand| operand.dtype()).find(|dtype| !is_computable(*dtype))
        {
            return error(at, format!("found {other} in {name}; wanted f16, bf16, f32 or f64"));
        }
        let weighted = |normalised: Expr<'g>| {
            let scaled = operands.get(1).map_or(normalised, |&weight| normalised * weight);
            operands.get(2).map_or(scaled, |&bias| scaled + bias).cast(x.dtype())
        };
        Ok(match name {
            "softmax" => {
                let powers = (x - x.max_group()).exp();
                powers * powers.sum_group().reciprocal()
            }
            "log_softmax" => {
                let shifted = x - x.max_group();
                shifted - shifted.exp().sum_group().log()
            }
            "normalize" => {
                let (sum, factor) = x.sum_of_squares_group();
                (x / (sum.sqrt() / factor).maximum(1e-12)).cast(x.dtype())
            }
            "standardize" => {
                let centred = x - x.mean_group();
                let (mean, factor) = centred.mean_of_squares_group();
                (centred / (mean.sqrt() / factor)).cast(x.dtype())
            }
            "cross_entropy" => {
                let largest = x.max_group();
                let total = (x - largest).exp().sum_group();
                total.log() - (x.at_group(operands[1]) - largest)
            }
            "layer_norm" | "batch_norm" | "group_norm" => {
                let centred = x - x.mean_group();
                weighted(centred * reciprocal_root(centred, 1e-5))
            }
            _ => {
                let epsilon = match x.dtype() {
                    DType::F16 => 2.0f64.powi(-10),
                    DType::BF16 => 2.0f64.powi(-7),
                    DType::F64 => f64::EPSILON,
                    _ => f64::from(f32::EPSILON),
                };
                weighted(x * reciprocal_root(x, epsilon))
            }
        })
    }
}

/// 1 / sqrt(mean(x²) + eps), as the tensors' normalisations compute it.
fn reciprocal_root(x: Expr<'_>, eps: f64) -> Expr<'_> {
    let (mean, factor) = x.mean_of_squares_group();
    let scaled = factor * eps * factor;
    let is_eps = scaled.is_infinite();
    is_eps.choose(x.graph().number(eps, mean.dtype()), mean + scaled).rsqrt() * is_eps.choose(1.0, factor)
}

fn is_computable(dtype: DType) -> bool {
    dtype.is_float() && !dtype.is_storage_only()
}

fn is_function(name: &str) -> bool {
    Operation::ALL.iter().any(|operation| operation.name() == name)
        || name == AT_GROUP
        || REDUCTIONS.iter().any(|(known, ..)| *known == name)
        || MACROS.iter().any(|(known, ..)| *known == name)
        || name.parse::<DType>().is_ok()
}
