//! Kernel parameters, and the arguments that they accept.
//!
//! The rules are strict if the image gives a parameter's kind and lenient otherwise, so a refused argument is always a
//! mistake:
//!
//! | parameter | takes |
//! |---|---|
//! | [`Float`](ParameterKind::Float) | a float of its size |
//! | [`Integer`](ParameterKind::Integer) | an integer of its size; an address where it has 8 bytes, which is how compilers write plain pointers; a float of 1 or 2 bytes, because PTX has no such parameter type and passes their bits |
//! | [`Address`](ParameterKind::Address) | an address; an integer is refused, since it is more often a mistake than an address |
//! | [`Bytes`](ParameterKind::Bytes) | anything of its size: a struct, but also the scalar of a `__grid_constant__`, a half or complex number, a pointer in a struct |
//! | [`Unknown`](ParameterKind::Unknown) | anything of its size |
//!
//! A struct fits only `Bytes` and `Unknown`: compilers never pass one as a typed scalar. Images do not record pointees,
//! but a C++ kernel's name does (`declaration`).

use std::fmt;

use crate::error::{Error, Result};

/// The kind of a parameter according to the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParameterKind {
    /// `.f16`, `.f32` or `.f64`.
    Float,
    /// `.u8` to `.u64` and `.s8` to `.s64`. One of 8 bytes may hold an address.
    Integer,
    /// Marked as a pointer to global, constant or generic memory (`.ptr`).
    Address,
    /// An array of bytes: a struct by value.
    Bytes,
    /// Not recorded: a parameter of a cubin, or one typed as bits (`.b32`).
    Unknown,
}

/// One parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Parameter {
    /// The kind.
    pub kind: ParameterKind,
    /// The size in bytes.
    pub size: usize,
    /// The offset in the parameter space, in bytes.
    pub offset: usize,
}

/// The kind of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArgumentKind {
    /// A floating-point scalar.
    Float,
    /// An integer scalar, `bool` among them.
    Integer,
    /// A device address: a buffer, a slice or a raw address.
    Address,
    /// A struct by value.
    Bytes,
}

impl Parameter {
    /// Returns whether an argument of this kind and size, in bytes, fits. The module's table has the rules.
    pub fn accepts(&self, kind: ArgumentKind, size: usize) -> bool {
        use ParameterKind as P;
        size == self.size
            && match kind {
                ArgumentKind::Float => match self.kind {
                    P::Float | P::Bytes | P::Unknown => true,
                    P::Integer => size <= 2,
                    P::Address => false,
                },
                ArgumentKind::Integer => matches!(self.kind, P::Integer | P::Bytes | P::Unknown),
                ArgumentKind::Address => {
                    size == 8 && matches!(self.kind, P::Address | P::Integer | P::Bytes | P::Unknown)
                }
                ArgumentKind::Bytes => matches!(self.kind, P::Bytes | P::Unknown),
            }
    }

    /// Checks the kind and size of argument `index` of a launch of `kernel`.
    ///
    /// # Errors
    /// [`Error::ArgumentMismatch`] if [`accepts`](Self::accepts) returns false.
    pub fn check(&self, kernel: &str, index: usize, kind: ArgumentKind, size: usize) -> Result<()> {
        if self.accepts(kind, size) {
            return Ok(());
        }
        let hint = match (self.kind, kind) {
            (ParameterKind::Address, ArgumentKind::Integer) if size == 8 => {
                " (if it is a device address, pass RawAddress)"
            }
            (ParameterKind::Float | ParameterKind::Integer, ArgumentKind::Bytes) if size == self.size => {
                " (pass the scalar itself)"
            }
            _ => "",
        };
        Err(Error::ArgumentMismatch {
            kernel: kernel.to_owned(),
            index,
            wanted: self.to_string(),
            found: format!("{}{hint}", kind.describe(size)),
        })
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size;
        match self.kind {
            ParameterKind::Float => write!(f, "a float of {}", Bytes(size)),
            ParameterKind::Integer if size == 8 => f.write_str("an integer or address of 8 bytes"),
            ParameterKind::Integer => write!(f, "an integer of {}", Bytes(size)),
            ParameterKind::Address => write!(f, "an address of {}", Bytes(size)),
            ParameterKind::Bytes => write!(f, "a value of {}", Bytes(size)),
            ParameterKind::Unknown => write!(f, "{} of a kind that the image does not say", Bytes(size)),
        }
    }
}

impl ArgumentKind {
    /// Returns this kind and size in words, such as `a float of 4 bytes`.
    pub fn describe(self, size: usize) -> String {
        let kind = match self {
            ArgumentKind::Float => "a float",
            ArgumentKind::Integer => "an integer",
            ArgumentKind::Address => "an address",
            ArgumentKind::Bytes => "a struct",
        };
        format!("{kind} of {}", Bytes(size))
    }
}

/// A size with the right plural.
struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} byte{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}
