//! [`Activation`], the functions of elements that epilogues have: each one is a row of a table.
//!
//! A row has the codes of the kernels' parameter, the function of cuBLASLt and the function of the CPU. The kernels' sources repeat
//! the codes and the numbers of [`gelu`]; a test here compares them. `tests/fake/emulated/activations.rs` compares the values of
//! the kernels with those of tensors' operations, and `tests/nn/linear_layers.rs` those of the CPU.

use crate::cublas::EpilogueFunction;

macro_rules! activations {
    ($($(#[doc = $doc:literal])* $name:ident $code:literal $derivative:literal $function:ident;)*) => {
        /// A function of each element.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Activation {
            /// x itself.
            #[default]
            None,
            $($(#[doc = $doc])* $name,)*
        }

        impl Activation {
            /// The functions other than [`None`](Self::None).
            pub const ALL: &[Activation] = &[$(Activation::$name),*];

            /// Returns the code of the kernels' parameter for the function, or for a product with its derivative. The
            /// derivative of no activation is 1, which is no epilogue either.
            pub(super) const fn code(self, is_derivative: bool) -> i32 {
                match (self, is_derivative) {
                    (Activation::None, _) => 0,
                    $((Activation::$name, false) => $code, (Activation::$name, true) => $derivative,)*
                }
            }

            /// Returns the function of cuBLASLt.
            pub(super) const fn function(self) -> EpilogueFunction {
                match self {
                    Activation::None => EpilogueFunction::None,
                    $(Activation::$name => EpilogueFunction::$name,)*
                }
            }
        }

        /// Floats, with the functions of the CPU.
        pub trait ActivationElement: Sized {
            /// Applies the function to each number of a row.
            fn activate(activation: Activation, row: &mut [Self]);
        }

        impl ActivationElement for f32 {
            fn activate(activation: Activation, row: &mut [f32]) {
                match activation {
                    Activation::None => {}
                    $(Activation::$name => row.iter_mut().for_each(|x| *x = host_f32::$function(*x)),)*
                }
            }
        }

        impl ActivationElement for f64 {
            fn activate(activation: Activation, row: &mut [f64]) {
                match activation {
                    Activation::None => {}
                    $(Activation::$name => row.iter_mut().for_each(|x| *x = host_f64::$function(*x)),)*
                }
            }
        }
    };
}

// The function, its code, the code of its derivative, and the function of the CPU.
activations! {
    /// max(x, 0). NaN stays NaN; the engine `cublas` may return 0 for it.
    Relu 1 3 relu;
    /// x / (1 + exp(-2 u)) with u = √(2/π) (x + 0.044715 x³), which is x (1 + tanh u) / 2. Into `f16` and `bf16` the engine
    /// `wgmma` may be off by 2⁻¹² of x beside the rounding.
    Gelu 2 4 gelu;
}

/// -2 u = x (CUBE x² + LINE), where u = √(2/π) (x + 0.044715 x³).
const CUBE: f64 = -0.071_354_816_272_600_25;
const LINE: f64 = -1.595_769_121_605_730_8;

macro_rules! host_functions {
    ($($module:ident $float:ty;)*) => {$(
        mod $module {
            /// NaN and -0 stay, as the kernels have it.
            #[inline(always)]
            pub fn relu(x: $float) -> $float {
                if x < 0.0 { 0.0 } else { x }
            }

            /// x / (1 + exp(-2 u)): gelu by the hyperbolic tangent.
            #[inline(always)]
            pub fn gelu(x: $float) -> $float {
                let exponent = x * (x * x * super::CUBE as $float + super::LINE as $float);
                x / (1.0 + exponent.exp())
            }
        }
    )*};
}

host_functions! { host_f32 f32; host_f64 f64; }

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::f64::consts::{LN_2, PI};

    use super::*;

    const GENERAL: &str = include_str!("../../csrc/kernels/epilogue.cuh");
    const FAST: &str = include_str!("../../csrc/kernels/wgmma_epilogue.cuh");

    /// Returns the text from a beginning to the end of the block that it opens.
    fn block<'a>(source: &'a str, beginning: &str) -> &'a str {
        let (_, rest) = source.split_once(beginning).unwrap_or_else(|| panic!("no '{beginning}'"));
        &rest[..rest.find('}').unwrap_or_else(|| panic!("'{beginning}' has no end"))]
    }

    /// Returns the numbers of a text that have a fraction of more than three digits.
    fn long_numbers(text: &str) -> Vec<f64> {
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let words = text.split(|c: char| !is_part(c) && c != '-');
        let words = words.filter(|word| word.split_once('.').is_some_and(|(_, digits)| digits.len() > 3));
        words.map(|word| word.parse().unwrap_or_else(|_| panic!("'{word}' is no number"))).collect()
    }

    #[test]
    fn the_codes_of_the_kernels_are_those_of_the_table() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/csrc/kernels");
        let mut found = BTreeSet::new();
        for file in std::fs::read_dir(folder).expect("the kernels' sources") {
            let source = std::fs::read_to_string(file.expect("a file").path()).expect("a text");
            for rest in
                ["activation == ", "activation >= "].iter().flat_map(|test| source.split(test).skip(1))
            {
                let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                found.insert(digits.parse::<i32>().expect("a code after the comparison"));
            }
        }
        let codes = |is_derivative| Activation::ALL.iter().map(move |of| of.code(is_derivative));
        let all: Vec<i32> = codes(false).chain(codes(true)).collect();
        assert_eq!(all, (1..=all.len() as i32).collect::<Vec<i32>>(), "derivatives follow functions");
        // The last derivative is the one of the kernels' `else`.
        assert_eq!(found.into_iter().collect::<Vec<i32>>(), all[..all.len() - 1]);

        for activation in Activation::ALL {
            let code = activation.code(false);
            let function = match activation {
                Activation::Relu => "x[i] = x[i] < 0 ? (Sum)0 : x[i];",
                Activation::Gelu => "x[i] = gelu(x[i]);",
                Activation::None => panic!("no function"),
            };
            let found = block(GENERAL, &format!("activation == {code}) {{"));
            assert!(found.contains(function), "{code} is not {activation:?}: {found}");
        }
        let [relu, gelu] = [Activation::Relu, Activation::Gelu];
        for text in [
            format!(
                "is_derivative(const Epilogue& epilogue) {{ return epilogue.activation >= {};",
                relu.code(true)
            ),
            format!("is_relu = parameters.epilogue.activation == {};", relu.code(true)),
            format!("is_gelu = epilogue.activation == {};", gelu.code(false)),
        ] {
            assert!(FAST.contains(&text), "no '{text}' in wgmma_epilogue.cuh");
        }
    }

    #[test]
    fn the_numbers_of_gelu_are_the_same_on_the_cpu_and_in_the_kernels() {
        let rate = (2.0 / PI).sqrt();
        assert_eq!(LINE, -2.0 * rate);
        assert!((CUBE / (LINE * 0.044_715) - 1.0).abs() < 1e-15);
        let cases: [(&str, &str, &[f64]); 4] = [
            (GENERAL, "inline f32 gelu(f32 x) {", &[CUBE / LN_2, LINE / LN_2]),
            (GENERAL, "inline f64 gelu(f64 x) {", &[CUBE, LINE]),
            (GENERAL, "inline f32 gelu_of_half_to_round(f32 half) {", &[-CUBE / 2.0, -LINE / 2.0]),
            (FAST, "inline f32 gelu_derivative(f32 x) {", &[CUBE / LN_2, LINE / LN_2, -3.0 * CUBE, -LINE]),
        ];
        for (source, function, wanted) in cases {
            let found = long_numbers(block(source, function));
            assert_eq!(found.len(), wanted.len(), "{function} {found:?}");
            let digits = if function.contains("f64") { 1e-15 } else { f64::from(f32::EPSILON) };
            for (found, wanted) in found.iter().zip(wanted) {
                assert!((found / wanted - 1.0).abs() <= digits, "{function} {found} in place of {wanted}");
            }
        }
    }
}
