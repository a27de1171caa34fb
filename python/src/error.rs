//! Exceptions: `selvedge.Error` and its kinds, each of which is one of Python's own exceptions too.

use std::cell::RefCell;

use pyo3::exceptions::{
    PyArithmeticError, PyException, PyIndexError, PyMemoryError, PyOSError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use selvedge::Error;

/// The result of functions that Python calls.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// An error of the library, or an exception that Python raised already.
pub enum Failure {
    Library(Error),
    Python(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Library(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Library(error) => match taken(&error) {
                Some(raised) => raised,
                None => Python::attach(|py| raise(py, &error)),
            },
            Failure::Python(error) => error,
        }
    }
}

/// The operation of an error that a function of Python raised within the library.
const CALLBACK: &str = "a function of Python";

thread_local! {
    /// The last exception that a function of Python raised within the library on this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Returns the library's error for an exception of a function that the library calls. [`Failure`] becomes the exception again.
pub fn raised(exception: impl Into<PyErr>) -> Error {
    let exception = exception.into();
    let error = invalid(CALLBACK, exception.to_string(), "a function that returns");
    RAISED.set(Some(exception));
    error
}

/// Returns whether an exception is an error of the library.
pub fn is_of_library(py: Python<'_>, exception: &PyErr) -> bool {
    exceptions(py)
        .is_ok_and(|all| all.first().is_some_and(|(_, base)| exception.is_instance(py, base.bind(py))))
}

/// Returns the exception that an error stands for.
fn taken(error: &Error) -> Option<PyErr> {
    match error {
        Error::InvalidArgument { operation: CALLBACK, .. } => RAISED.take(),
        _ => None,
    }
}

/// Returns an error of an argument.
pub fn invalid(operation: &'static str, found: impl Into<String>, wanted: impl Into<String>) -> Error {
    Error::InvalidArgument { operation, found: found.into(), wanted: wanted.into() }
}

/// Returns an error of an argument's type.
pub fn wrong_type(operation: &'static str, found: impl Into<String>, wanted: impl Into<String>) -> Error {
    Error::DTypeMismatch { operation, wanted: wanted.into(), found: found.into() }
}

/// Returns the name of an object's type, for errors.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// The kinds of [`exceptions`], in their order.
#[derive(Clone, Copy)]
enum Kind {
    Error,
    Argument,
    IndexOutOfRange,
    Type,
    OutOfMemory,
    Arithmetic,
    File,
    Device,
}

fn kind(error: &Error) -> Kind {
    match error {
        Error::InvalidArgument { .. }
        | Error::LengthMismatch { .. }
        | Error::DeviceMismatch { .. }
        | Error::LaunchLimit { .. }
        | Error::UnknownName { .. } => Kind::Argument,
        Error::IndexOutOfRange { .. } | Error::OutOfRange { .. } => Kind::IndexOutOfRange,
        Error::DTypeMismatch { .. } | Error::ArgumentMismatch { .. } | Error::ArgumentCount { .. } => {
            Kind::Type
        }
        Error::OutOfMemory { .. } => Kind::OutOfMemory,
        Error::Overflow { .. } | Error::DivisionByZero { .. } => Kind::Arithmetic,
        Error::File { .. } | Error::FileNotWritten { .. } => Kind::File,
        Error::LibraryUnavailable { .. }
        | Error::MissingSymbol { .. }
        | Error::Driver { .. }
        | Error::Library { .. }
        | Error::KernelFault { .. }
        | Error::ContextLost { .. }
        | Error::TimedOut { .. }
        | Error::ResetFailed { .. }
        | Error::ForkedProcess
        | Error::NoDevice { .. } => Kind::Device,
        _ => Kind::Error,
    }
}

static EXCEPTIONS: PyOnceLock<Vec<(&'static str, Py<PyType>)>> = PyOnceLock::new();

/// Returns the exceptions with their names.
pub fn exceptions(py: Python<'_>) -> PyResult<&Vec<(&'static str, Py<PyType>)>> {
    EXCEPTIONS.get_or_try_init(py, || {
        let new = |name: &'static str, document: &str, bases: Bound<'_, PyTuple>| -> PyResult<_> {
            let members = PyDict::new(py);
            members.set_item("__module__", "selvedge")?;
            members.set_item("__doc__", document)?;
            let created = py.get_type::<PyType>().call1((name, bases, members))?;
            Ok((name, created.cast_into::<PyType>()?.unbind()))
        };
        let error = new("Error", "An error of selvedge.", PyTuple::new(py, [py.get_type::<PyException>()])?)?;
        let mut all = vec![error];
        let base = all[0].1.clone_ref(py);
        let kinds: [(&'static str, &str, Bound<'_, PyType>); 7] = [
            ("ArgumentError", "An invalid argument.", py.get_type::<PyValueError>()),
            ("IndexOutOfRangeError", "An index outside its dimension.", py.get_type::<PyIndexError>()),
            ("DTypeError", "An argument of a wrong type or dtype.", py.get_type::<PyTypeError>()),
            ("OutOfMemoryError", "The host or a device is out of memory.", py.get_type::<PyMemoryError>()),
            (
                "ExactArithmeticError",
                "An exact result that its type does not hold.",
                py.get_type::<PyArithmeticError>(),
            ),
            ("FileError", "A file that cannot be used.", py.get_type::<PyOSError>()),
            (
                "DeviceError",
                "A missing or lost device, or a failed call of a driver.",
                py.get_type::<PyRuntimeError>(),
            ),
        ];
        for (name, document, second) in kinds {
            all.push(new(name, document, PyTuple::new(py, [base.bind(py), &second])?)?);
        }
        Ok(all)
    })
}

fn exception(py: Python<'_>, kind: Kind, text: String) -> PyErr {
    match exceptions(py) {
        Ok(exceptions) => match exceptions.get(kind as usize) {
            Some((_, exception)) => PyErr::from_type(exception.bind(py).clone(), (text,)),
            None => PyRuntimeError::new_err(text),
        },
        Err(failure) => failure,
    }
}

/// Returns the exception of an error.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, kind(error), error.to_string())
}

/// Returns the exception of an index of more than 64 bits, which no dimension has.
pub fn index_beyond_64_bits(py: Python<'_>, index: &str) -> PyErr {
    let text = format!("an index: found {index}; wanted an integer of at most 64 bits");
    exception(py, Kind::IndexOutOfRange, text)
}
