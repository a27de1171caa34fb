//! Symbolic expressions and their batches.

use std::f64::consts::{E, PI};

use selvedge::Error;
use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::close;

fn constant(constant: Constant) -> SymExpr {
    constant.into()
}

fn exponent(numerator: i128, denominator: i128) -> Rational {
    Rational::new(numerator, denominator).unwrap()
}

#[test]
fn the_formulas_of_the_constants_give_them() {
    let [e, phi, pi] = [Constant::E, Constant::Phi, Constant::Pi].map(constant);
    let top = phi.clone() * 2 + e / (phi.pow(2) * 2);
    let q = top / (phi.pow(4) * constant(Constant::EStar));
    close(q.evaluate(&[]).unwrap(), Q_DEFICIT, 2.0 * f64::EPSILON);
    let estar = (pi.exp() - pi.clone()).evaluate(&[]).unwrap();
    assert!((estar - ESTAR).abs() <= 4e-15, "{estar}");
    // A sum that misses E* by 9.7e-11.
    let gamma = SymExpr::from(exponent(1, 4)).gamma();
    let sum = gamma.pow(2)
        + pi.clone() * (pi.clone() - 1)
        + SymExpr::from(exponent(35, 12)) * (-pi).exp()
        + SymExpr::from(exponent(55, 72)) * constant(Constant::Q).pow(4);
    let sum = sum.evaluate(&[]).unwrap();
    close(sum, 19.99909997928626, 1e-14);
    assert!((sum - ESTAR).abs() > 9e-11);
}

#[test]
fn exact_leaves_of_one_kind_fold_and_nothing_else() {
    let table = [
        (SymExpr::from(6) / 4, "3/2"),
        (SymExpr::from(6) / 3 - 5, "-3"),
        (SymExpr::from(exponent(1, 2)) + exponent(1, 3), "5/6"),
        (SymExpr::from(GoldenExact::PHI) * GoldenExact::PHI, "(1 + φ)"),
        (SymExpr::from(1) / 0, "(1 / 0)"),
        (SymExpr::from(i128::MAX) + 1, "(170141183460469231731687303715884105727 + 1)"),
        (SymExpr::from(1) + exponent(1, 2), "(1 + 1/2)"),
        (SymExpr::from(2).pow(3) + 1, "(2^3 + 1)"),
        (SymExpr::from(exponent(2, 1)).pow(3), "2^3"),
        (SymExpr::from(GoldenExact::PHI).pow(2), "(φ)^2"),
        ((SymExpr::input(0) + 1).pow(2).exp(), "exp((x0 + 1)^2)"),
        (constant(Constant::Pi) * 2 - SymExpr::input(1).sin(), "((π · 2) - sin(x1))"),
        (-(SymExpr::input(0).pow(exponent(-1, 2)).ln()), "-(ln(x0^(-1/2)))"),
    ];
    for (expression, text) in table {
        assert_eq!(expression.to_string(), text);
    }
    assert_eq!((SymExpr::from(1) / 0).evaluate(&[]).unwrap(), f64::INFINITY);
    let exact = SymExpr::from(GoldenExact::phi_pow(-40).unwrap());
    close(exact.evaluate(&[]).unwrap(), 4.370130339181067e-9, 1e-15);
}

#[test]
fn bases_of_powers_that_bind_weaker_have_parentheses() {
    let x = SymExpr::input(0);
    for (base, text) in [
        (-x.clone(), "(-(x0))^2"),
        (SymExpr::from(-2), "(-2)^2"),
        (SymExpr::from(exponent(-3, 1)), "(-3)^2"),
        (SymExpr::from(exponent(1, 2)), "(1/2)^2"),
        (SymExpr::from(exponent(-1, 2)), "(-1/2)^2"),
        (x.pow(3), "(x0^3)^2"),
        (x.pow(exponent(1, 3)), "(x0^(1/3))^2"),
    ] {
        assert_eq!(base.pow(2).to_string(), text);
    }
    assert_eq!((-x).pow(exponent(1, 3)).to_string(), "(-(x0))^(1/3)");
}

#[test]
fn fractions_on_the_right_of_a_product_or_a_quotient_have_parentheses() {
    let [x, half] = [SymExpr::input(0), exponent(1, 2).into()];
    for (expression, text) in [
        (x.clone() / half.clone(), "(x0 / (1/2))"),
        (x.clone() * exponent(-2, 3), "(x0 · (-2/3))"),
        (x.clone() / exponent(4, 2), "(x0 / 2)"),
        (half.clone() / x.clone(), "(1/2 / x0)"),
        (x.clone() - half.clone(), "(x0 - 1/2)"),
        (x.clone() / (SymExpr::from(1) / half.clone()), "(x0 / (1 / (1/2)))"),
        (x / half.pow(2), "(x0 / (1/2)^2)"),
    ] {
        assert_eq!(expression.to_string(), text);
    }
}

/// A reader of printed expressions with the usual precedence: signs and powers, products and quotients from left to
/// right, sums and differences from left to right.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn take(&mut self, token: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(token);
        if let Some(rest) = rest {
            self.0 = rest;
        }
        rest.is_some()
    }

    fn digits<T: std::str::FromStr<Err: std::fmt::Debug>>(&mut self) -> Option<T> {
        let text = self.0.trim_start();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        self.0 = if end == 0 { self.0 } else { &text[end..] };
        (end > 0).then(|| text[..end].parse().unwrap())
    }

    fn sum(&mut self) -> SymExpr {
        let mut left = self.product();
        loop {
            left = match () {
                () if self.take("+") => left + self.product(),
                () if self.take("-") => left - self.product(),
                () => return left,
            };
        }
    }

    fn product(&mut self) -> SymExpr {
        let mut left = self.factor();
        loop {
            left = match () {
                () if self.take("·") => left * self.factor(),
                () if self.take("/") => left / self.factor(),
                // The coefficient of φ in an element of Q(φ).
                () if self.0.starts_with(" φ") => left * self.factor(),
                () => return left,
            };
        }
    }

    fn factor(&mut self) -> SymExpr {
        if !self.take("-") {
            return self.power();
        }
        let number: Option<i128> = self.digits();
        number.map_or_else(|| -self.power(), |number| SymExpr::from(-number))
    }

    fn power(&mut self) -> SymExpr {
        let base = self.atom();
        if !self.take("^") {
            return base;
        }
        let is_grouped = self.take("(");
        let sign = if self.take("-") { -1 } else { 1 };
        let numerator: i128 = self.digits().unwrap();
        let denominator = if is_grouped && self.take("/") { self.digits().unwrap() } else { 1 };
        assert!(!is_grouped || self.take(")"), "{}", self.0);
        base.pow(exponent(sign * numerator, denominator))
    }

    fn atom(&mut self) -> SymExpr {
        type Function = fn(&SymExpr) -> SymExpr;
        let functions: [(&str, Function); 6] = [
            ("exp(", SymExpr::exp),
            ("ln(", SymExpr::ln),
            ("Γ(", SymExpr::gamma),
            ("sin(", SymExpr::sin),
            ("cos(", SymExpr::cos),
            ("(", SymExpr::clone),
        ];
        for (name, function) in functions {
            if self.take(name) {
                let operand = self.sum();
                assert!(self.take(")"), "{}", self.0);
                return function(&operand);
            }
        }
        let constants = [
            ("E*", Constant::EStar),
            ("e", Constant::E),
            ("π", Constant::Pi),
            ("φ", Constant::Phi),
            ("q", Constant::Q),
        ];
        for (symbol, number) in constants {
            if self.take(symbol) {
                return number.into();
            }
        }
        if self.take("x") {
            return SymExpr::input(self.digits().unwrap());
        }
        self.digits::<i128>().unwrap_or_else(|| panic!("{}", self.0)).into()
    }
}

#[test]
fn printed_expressions_read_back_as_the_same_ones() {
    let mut words = (0..).map(|i| noise_word(3, i) >> 33);
    let mut below = |limit: u64| words.next().unwrap() % limit;
    let mut evaluated = 0;
    for _ in 0..500 {
        let mut stack: Vec<SymExpr> = Vec::new();
        for _ in 0..14 {
            let choice = below(16);
            if stack.len() < 2 || choice < 5 {
                let fraction = exponent(below(19) as i128 - 9, below(5) as i128 + 1);
                stack.push(match choice % 5 {
                    // A whole fraction prints as an integer, which would read as one.
                    0 | 1 => fraction.to_integer().map_or(fraction.into(), SymExpr::from),
                    2 => SymExpr::input(below(2) as usize),
                    3 => SymExpr::from(below(9) as i64 - 4),
                    _ => [Constant::E, Constant::EStar, Constant::Phi, Constant::Q, Constant::Pi]
                        [below(5) as usize]
                        .into(),
                });
                continue;
            }
            let (y, x) = (stack.pop().unwrap(), stack.pop().unwrap());
            match choice {
                5..7 => stack.push(x + y),
                7..9 => stack.push(x - y),
                9..11 => stack.push(x * y),
                11..14 => stack.push(x / y),
                14 => stack.extend([x, -y]),
                _ => {
                    let power = exponent(below(7) as i128 - 3, below(3) as i128 + 1);
                    let function = [SymExpr::exp, SymExpr::ln, SymExpr::gamma, SymExpr::sin, SymExpr::cos];
                    stack.extend([x.pow(power), function[below(5) as usize](&y)]);
                }
            }
        }
        for expression in stack {
            let text = expression.to_string();
            let mut reader = Reader(&text);
            let read = reader.sum();
            assert_eq!(reader.0, "", "{text}");
            assert_eq!(read.to_string(), text);
            // A kernel refuses some trees with several Γ.
            let values = |f: &SymExpr| {
                let values = f.compile().unwrap().run_rows(&inputs(f)).ok()?.to_vec::<f64>().unwrap();
                Some(values.into_iter().map(f64::to_bits).collect::<Vec<_>>())
            };
            let wanted = values(&expression);
            assert_eq!(values(&read), wanted, "{text}");
            evaluated += usize::from(wanted.is_some());
        }
    }
    assert!(evaluated > 1000, "{evaluated}");
    // An element of Q(φ) reads as a sum.
    for (a, b) in [((1, 2), (3, 1)), ((-3, 1), (-5, 1)), ((0, 1), (-1, 3)), ((7, 5), (0, 1))] {
        let [a, b] = [a, b].map(|(numerator, denominator)| exponent(numerator, denominator));
        let expression = SymExpr::from(2) / SymExpr::from(GoldenExact::new(a, b)) - 1;
        let found = Reader(&expression.to_string()).sum().evaluate(&[]).unwrap();
        close(found, expression.evaluate(&[]).unwrap(), 1e-14);
    }
}

/// Rows of numbers for each input of an expression.
fn inputs(expression: &SymExpr) -> Tensor {
    let columns = expression.slots();
    let row = [0.75, -1.5].into_iter().take(columns);
    Tensor::from_vec(row.collect(), &[1, columns], &Device::cpu()).unwrap()
}

#[test]
fn domains_end_in_nan_or_infinities() {
    let x = SymExpr::input(0);
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    let table = [
        (x.ln(), 0.0, -infinite),
        (x.ln(), -1.0, nan),
        (SymExpr::from(1) / x.clone(), 0.0, infinite),
        (SymExpr::from(-1) / x.clone(), 0.0, -infinite),
        (x.clone() / x.clone(), 0.0, nan),
        (x.pow(-2), 0.0, infinite),
        (x.pow(0), nan, 1.0),
        (x.pow(exponent(1, 2)), -4.0, nan),
        (x.pow(exponent(3, 4)), -16.0, nan),
        (x.pow(exponent(3, 4)), 16.0, 8.0),
        (x.pow(exponent(1, 3)), -8.0, -2.0),
        (x.pow(exponent(2, 3)), -8.0, 4.0),
        (x.pow(exponent(-1, 3)), 0.0, infinite),
        (x.pow(3), -1.5, -3.375),
        (x.pow(-3), 2.0, 0.125),
        (x.pow(1001), -1.0, -1.0),
        (x.pow(exponent(3, 4)), -infinite, nan),
        (x.pow(exponent(-3, 4)), -infinite, nan),
        (x.pow(exponent(1, 2)), -infinite, nan),
        (x.pow(exponent((1 << 54) + 1, 2)), -1.0, nan),
        (x.pow(exponent((1 << 53) + 1, 1)), -1.0, -1.0),
        (x.pow(exponent((1 << 54) + 2, 1)), -1.0, 1.0),
        (x.pow(exponent(-(1 << 53) - 1, 1)), -0.0, -infinite),
        (x.gamma(), 0.0, infinite),
        (x.gamma(), -0.0, -infinite),
        (x.gamma(), -1.0, nan),
        (x.gamma(), -1e300, nan),
        (x.gamma(), -infinite, nan),
        (x.gamma(), infinite, infinite),
        (x.gamma(), 172.0, infinite),
        (x.gamma(), nan, nan),
        (x.sin(), infinite, nan),
        (x.cos(), 0.0, 1.0),
    ];
    for (expression, input, wanted) in table {
        let found = expression.evaluate(&[input]).unwrap();
        let equal = if wanted.is_finite() {
            (found - wanted).abs() <= 1e-14
        } else {
            found.to_bits() == wanted.to_bits()
        };
        assert!(
            equal || found.is_nan() && wanted.is_nan(),
            "{expression} of {input} is {found}, not {wanted}"
        );
    }
}

#[test]
fn gamma_is_accurate_on_both_sides_of_zero() {
    let gamma = SymExpr::input(0).gamma().compile().unwrap();
    let mut factorial = 1.0f64;
    let mut table: Vec<(f64, f64)> = vec![
        (0.25, 3.625609908221908),
        (0.5, PI.sqrt()),
        (-0.5, -2.0 * PI.sqrt()),
        (-1.5, 4.0 / 3.0 * PI.sqrt()),
        (1e-300, 1e300),
        // Γ(1/2 - n) = (-2)^n √π / (2n - 1)!!
        (-10.5, -2048.0 * PI.sqrt() / 13_749_310_575.0),
        (171.5, 9.483367566824795e307),
    ];
    for n in 1..=170 {
        table.push((f64::from(n), factorial));
        factorial *= f64::from(n);
    }
    let inputs: Vec<f64> = table.iter().map(|(x, _)| *x).collect();
    let rows = Tensor::from_slice(&inputs, &[inputs.len(), 1], &Device::cpu()).unwrap();
    let found = gamma.run_rows(&rows).unwrap().to_vec::<f64>().unwrap();
    for ((x, wanted), found) in table.into_iter().zip(found) {
        assert!((found - wanted).abs() <= 3e-14 * wanted.abs(), "Γ({x}) is {found}, not {wanted}");
    }
}

#[test]
fn batches_evaluate_rows_of_any_layout() {
    let [x, y] = [0, 1].map(SymExpr::input);
    let f = ((x.exp() + y.cos()) * constant(Constant::E) - x.clone() / 3).compile().unwrap();
    let values: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.21 - 3.0).collect();
    let columns = Tensor::from_slice(&values, &[2, 20], &Device::cpu()).unwrap();
    let found = f.run_rows(&columns.t().unwrap()).unwrap().to_vec::<f64>().unwrap();
    for (at, found) in found.into_iter().enumerate() {
        let (x, y) = (values[at], values[20 + at]);
        close(found, (x.exp() + y.cos()) * E - x / 3.0, 1e-13);
    }
    let constant = SymExpr::from(7).compile().unwrap();
    let empty = Tensor::zeros(&[3, 0], DType::F64, &Device::cpu()).unwrap();
    assert_eq!(constant.run_rows(&empty).unwrap().to_vec::<f64>().unwrap(), [7.0; 3]);
    let deep = (0..3000).fold(SymExpr::input(0), |sum, _| (sum + 1) - 1);
    assert_eq!(deep.evaluate(&[0.5]).unwrap(), 0.5);
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let f = (SymExpr::input(0) + SymExpr::input(1)).compile().unwrap();
    let rows = |columns| Tensor::zeros(&[2, columns], DType::F64, &Device::cpu()).unwrap();
    assert!(f.run_rows(&rows(2)).is_ok());
    for bad in [rows(1), rows(3), rows(2).reshape(&[-1]).unwrap()] {
        assert!(matches!(f.run_rows(&bad), Err(Error::InvalidArgument { .. })));
    }
    assert!(matches!(f.run_rows(&rows(2).cast(DType::F32).unwrap()), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(SymExpr::input(63).compile(), Err(Error::InvalidArgument { .. })));
    assert!(matches!(SymExpr::input(usize::MAX).compile(), Err(Error::InvalidArgument { .. })));
}

#[test]
fn trees_of_more_numbers_than_a_kernel_has_operands_run_as_several() {
    let many = (0..80).fold(SymExpr::input(0), |sum, number| sum + (number * 3 + 1));
    let rows = Tensor::from_slice(&[1.0, -0.5], &[2, 1], &Device::cpu()).unwrap();
    let found = many.compile().unwrap().run_rows(&rows).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(found, [9561.0, 9559.5]);
    assert_eq!(many.evaluate(&[1.0]).unwrap(), 9561.0);
}
