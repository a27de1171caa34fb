//! [`Engine`], [`Choice`] of engines, and [`Unsupported`], the reason why an engine does not run.

use std::env;
use std::fmt;
use std::str::FromStr;

use super::algorithm::GemmAlgorithm;
use crate::error::{Error, Result};
use crate::types::DType;

/// A family of kernels that multiplies matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// Tensor cores of compute capability 9.0 with TMA loads: [`DType::F16`] and [`DType::BF16`], added in f32.
    Wgmma,
    /// Tensor cores of compute capability 8.0 and up, and 7.5 for [`DType::F16`]: [`DType::F16`] and [`DType::BF16`], added
    /// in f32, [`DType::F64`] and [`DType::C128`], added in their own type; of any alignment.
    Mma,
    /// Ordinary arithmetic: every device, every element type, any alignment.
    Simt,
    /// NVIDIA's library, if it is installed: floats and complex numbers. Runs on request only.
    Cublas,
}

impl Engine {
    /// Every engine, in order of preference.
    pub const ALL: [Engine; 4] = [Engine::Wgmma, Engine::Mma, Engine::Simt, Engine::Cublas];

    /// Its name in `SELVEDGE_GEMM`.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Wgmma => "wgmma",
            Engine::Mma => "mma",
            Engine::Simt => "simt",
            Engine::Cublas => "cublas",
        }
    }

    /// Returns true where its kernels are this crate's.
    pub const fn is_own(self) -> bool {
        !matches!(self, Engine::Cublas)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// The engines that a caller allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Choice {
    /// The best engine that supports the product, cuBLAS included. The bits of a result depend on the installed cuBLAS.
    Auto,
    /// The best of this crate's own engines. The bits of a result depend on this crate and the device alone.
    #[default]
    Own,
    /// This engine, or an error with the reason why it does not support the product.
    Only(Engine),
}

impl Choice {
    /// Returns the choice in `SELVEDGE_GEMM`; [`Choice::Own`] where it is not set or empty.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with its value and the valid ones.
    pub fn from_environment() -> Result<Choice> {
        match env::var_os("SELVEDGE_GEMM") {
            None => Ok(Choice::Own),
            Some(name) => name.to_string_lossy().parse(),
        }
    }

    pub(super) fn allows(self, engine: Engine) -> bool {
        match self {
            Choice::Auto => true,
            Choice::Own => engine.is_own(),
            Choice::Only(only) => only == engine,
        }
    }
}

impl FromStr for Choice {
    type Err = Error;

    /// Reads `own` (or nothing), `auto` or an engine's name.
    fn from_str(name: &str) -> Result<Choice> {
        match name {
            "" | "own" => return Ok(Choice::Own),
            "auto" => return Ok(Choice::Auto),
            _ => {}
        }
        let engine = Engine::ALL.into_iter().find(|engine| engine.name() == name);
        engine.map(Choice::Only).ok_or_else(|| {
            let names = Engine::ALL.map(Engine::name).join(", ");
            Error::invalid("SELVEDGE_GEMM", format!("'{name}'"), format!("own, auto, or an engine: {names}"))
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Auto => formatter.pad("auto"),
            Choice::Own => formatter.pad("own"),
            Choice::Only(engine) => engine.fmt(formatter),
        }
    }
}

/// Why an engine does not run a product.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Unsupported {
    /// The caller allows other engines only.
    NotAsked(Choice),
    /// It does not multiply this type into that one.
    Types(DType, DType),
    /// It needs k of 1 or more (alpha of 0 counts as a k of 0).
    NoDepth,
    /// Rows or matrices of this operand do not all begin at multiples of this many bytes.
    Alignment(char, u64),
    /// It does not conjugate this operand without transposing it.
    Conjugate(char),
    /// Results of this type have no epilogue.
    Epilogue(DType),
    /// Its epilogues do not have this.
    EpiloguePart(&'static str),
    /// No kernel configuration of this kind computes this product.
    Algorithm(GemmAlgorithm),
    /// Its algorithm depends on the number of rows, which a batch-invariant product excludes.
    BatchVariant,
    /// The engine cannot count this many.
    TooMany(&'static str),
    /// There is no image of its kernels for the device, its driver, or the overrides of the environment.
    Image(Error),
    /// The library cannot be loaded.
    Library(Error),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsupported::NotAsked(choice) => write!(formatter, "{choice} was asked for"),
            Unsupported::Types(operand, result) => {
                write!(formatter, "it does not multiply {operand} into {result}")
            }
            Unsupported::NoDepth => {
                formatter.write_str("it needs a depth k of at least 1, and an alpha other than 0")
            }
            Unsupported::Alignment(operand, bytes) => {
                write!(
                    formatter,
                    "it needs {operand} with all rows and matrices at multiples of {bytes} bytes"
                )
            }
            Unsupported::Epilogue(result) => {
                write!(formatter, "an epilogue needs a result of f16, bf16, f32 or f64, not {result}")
            }
            Unsupported::EpiloguePart(part) => write!(formatter, "its epilogues have no {part}"),
            Unsupported::Algorithm(algorithm) => {
                write!(formatter, "it does not have '{algorithm}' for this product")
            }
            Unsupported::BatchVariant => formatter
                .write_str("its bits depend on the number of rows, and batch invariance was asked for"),
            Unsupported::TooMany(what) => write!(formatter, "there are too many {what} for it"),
            Unsupported::Conjugate(operand) => {
                write!(formatter, "it does not conjugate {operand} without transposing it")
            }
            Unsupported::Image(error) | Unsupported::Library(error) => write!(formatter, "{error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_others_refused() {
        for choice in [Choice::Auto, Choice::Own].into_iter().chain(Engine::ALL.map(Choice::Only)) {
            assert_eq!(choice.to_string().parse::<Choice>().unwrap(), choice);
        }
        assert_eq!("".parse::<Choice>().unwrap(), Choice::Own);
        assert_eq!(Choice::default(), Choice::Own);
        for name in ["cutlass", "Own", "simt "] {
            let error = name.parse::<Choice>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{name}'")) && error.contains("wgmma, mma, simt"), "{error}");
        }
    }
}
