//! [`Activation`], the functions of elements that epilogues have: each one is a row of a table.
//!
//! A row has the function of the CPU, which is its name in the kernels too, and the function of cuBLASLt. The codes of the kernels'
//! parameter follow from the order of the rows. The header `csrc/kernels/activations.cuh` is written from the table; a test here
//! compares it, and the numbers of the kernels' functions. `tests/fake/emulated/activations.rs` compares the values of the kernels
//! with those of tensors' operations, and `tests/nn/linear_layers.rs` those of the CPU.

use crate::cublas::EpilogueFunction;

macro_rules! activations {
    ($($(#[doc = $doc:literal])* $name:ident $function:ident $of_library:expr;)*) => {
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

            /// Returns the name of the kernels' function.
            pub(super) const fn name(self) -> &'static str {
                match self {
                    Activation::None => "activation",
                    $(Activation::$name => stringify!($function),)*
                }
            }

            /// Returns the function of cuBLASLt, if it has one.
            pub(super) const fn function(self) -> Option<EpilogueFunction> {
                match self {
                    Activation::None => Some(EpilogueFunction::None),
                    $(Activation::$name => $of_library,)*
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

// The function, its name on the CPU and in the kernels, and the function of cuBLASLt.
activations! {
    /// max(x, 0). NaN stays NaN; the engine `cublas` may return 0 for it.
    Relu relu Some(EpilogueFunction::Relu);
    /// x / (1 + exp(-2 u)) with u = √(2/π) (x + 0.044715 x³), which is x (1 + tanh u) / 2, PyTorch's `gelu(approximate="tanh")`;
    /// NaN for minus infinity. Into `f16` and `bf16` the engine `wgmma` may be off by 2⁻¹² of x beside the rounding. The form by
    /// the error function, PyTorch's default, is no part of a product: [`Tensor::gelu`](crate::tensor::Tensor::gelu) computes it.
    GeluTanh gelu Some(EpilogueFunction::Gelu);
    /// x / (1 + exp(-x)), which is x (1 + tanh(x / 2)) / 2; NaN for minus infinity. Into `f16` and `bf16` the engine `wgmma` may be
    /// off by 2⁻¹² of x beside the rounding.
    Silu silu None;
}

impl Activation {
    /// Returns the code of the kernels' parameter for the function, or for a product with its derivative: functions have their
    /// codes in the table from 1 on, and derivatives follow. The derivative of no activation is 1, which is no epilogue either.
    pub(super) const fn code(self, is_derivative: bool) -> i32 {
        match self {
            Activation::None => 0,
            function if is_derivative => function as i32 + Activation::ALL.len() as i32,
            function => function as i32,
        }
    }
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

            /// x / (1 + exp(-2 u)): gelu in its tanh form.
            #[inline(always)]
            pub fn gelu(x: $float) -> $float {
                let exponent = x * (x * x * super::CUBE as $float + super::LINE as $float);
                x / (1.0 + exponent.exp())
            }

            /// x / (1 + exp(-x)).
            #[inline(always)]
            pub fn silu(x: $float) -> $float {
                x / (1.0 + (-x).exp())
            }
        }
    )*};
}

host_functions! { host_f32 f32; host_f64 f64; }

#[cfg(test)]
mod tests {
    use std::f64::consts::{LN_2, LOG2_E, PI};

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

    /// Returns the text of the kernels' header.
    fn header() -> String {
        let rows: Vec<String> = Activation::ALL.iter().map(|of| format!("ROW({})", of.name())).collect();
        let codes = |is_derivative: bool| -> String {
            let suffix = if is_derivative { "_derivative" } else { "" };
            let row =
                |of: &Activation| format!("    {}{suffix}_code = {},\n", of.name(), of.code(is_derivative));
            Activation::ALL.iter().map(row).collect()
        };
        let first = Activation::ALL.first().expect("a function").name();
        format!(
            "// The activations of epilogues. The test `the_header_of_the_kernels_is_written_from_the_table` of\n\
             // src/gemm/activation.rs writes this file from the table there if SELVEDGE_WRITE_ACTIVATIONS is set.\n\
             #pragma once\n\
             #include \"numbers.cuh\"\n\
             \n\
             // Each row is the name of a function of epilogue.cuh.\n\
             #define ACTIVATIONS(ROW) {rows}\n\
             \n\
             // The values of `Epilogue::activation`: the function of a sum, or a sum times the derivative at the pre-activation.\n\
             enum ActivationCode : i32 {{\n    no_activation = 0,\n{functions}{derivatives}    \
             first_derivative_code = {first}_derivative_code,\n}};\n",
            rows = rows.join(" "),
            functions = codes(false),
            derivatives = codes(true),
        )
    }

    #[test]
    fn the_header_of_the_kernels_is_written_from_the_table() {
        // Tests run in the repository's root, under cargo and in a bundle.
        let path = "csrc/kernels/activations.cuh";
        if std::env::var_os("SELVEDGE_WRITE_ACTIVATIONS").is_some() {
            std::fs::write(path, header()).expect("the header is written");
        }
        let found = std::fs::read_to_string(path).expect("the header");
        assert_eq!(found, header(), "set SELVEDGE_WRITE_ACTIVATIONS=1 to write it");
    }

    #[test]
    fn codes_are_distinct_and_the_sources_of_the_kernels_repeat_none() {
        let codes = |is_derivative| Activation::ALL.iter().map(move |of| of.code(is_derivative));
        let all: Vec<i32> = codes(false).chain(codes(true)).collect();
        assert_eq!(all, (1..=all.len() as i32).collect::<Vec<i32>>(), "derivatives follow functions");
        let mut comparisons = 0;
        for file in std::fs::read_dir("csrc/kernels").expect("the kernels' sources") {
            let source = std::fs::read_to_string(file.expect("a file").path()).expect("a text");
            for test in ["activation == ", "activation >= "] {
                for rest in source.split(test).skip(1) {
                    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next();
                    let name = name.unwrap_or_default();
                    assert!(
                        name.starts_with(|c: char| c.is_ascii_alphabetic()),
                        "'{test}{name}' is a number"
                    );
                    comparisons += 1;
                }
            }
        }
        assert!(comparisons > 3, "{comparisons} comparisons");
    }

    #[test]
    fn the_numbers_of_functions_are_the_same_on_the_cpu_and_in_the_kernels() {
        let rate = (2.0 / PI).sqrt();
        assert_eq!(LINE, -2.0 * rate);
        assert!((CUBE / (LINE * 0.044_715) - 1.0).abs() < 1e-15);
        let cases: [(&str, &str, &[f64]); 7] = [
            (GENERAL, "inline f32 gelu(f32 x) {", &[CUBE / LN_2, LINE / LN_2]),
            (GENERAL, "inline f64 gelu(f64 x) {", &[CUBE, LINE]),
            (GENERAL, "inline f32 gelu_of_half_to_round(f32 half) {", &[-CUBE / 2.0, -LINE / 2.0]),
            (GENERAL, "inline f32 silu(f32 x) {", &[-LOG2_E]),
            (FAST, "f32 derivative(f32 x) const {", &[CUBE / LN_2, -3.0 * CUBE]),
            (FAST, "return {0.0f,", &[-LOG2_E]),
            (FAST, "return {1e30f,", &[LINE / LN_2, -LINE]),
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
