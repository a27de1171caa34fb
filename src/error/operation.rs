//! The names of operations in errors.

use super::Error;

impl Error {
    /// Returns the error of an operation that is made of others, under the name that the caller knows. Errors of the driver
    /// and of memory keep theirs.
    #[cold]
    pub(crate) fn in_operation(mut self, name: &'static str) -> Error {
        match &mut self {
            Error::DeviceMismatch { operation, .. }
            | Error::LengthMismatch { operation, .. }
            | Error::IndexOutOfRange { operation, .. }
            | Error::InvalidArgument { operation, .. }
            | Error::DTypeMismatch { operation, .. } => *operation = name,
            _ => {}
        }
        self
    }
}
