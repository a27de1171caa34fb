//! What an error is held against.

/// Fails the test unless the result is an error of this shape.
macro_rules! assert_error {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {
        match $result {
            Err($pattern) $(if $guard)? => {}
            Err(error) => return Err(format!("{}:{}: another error: {error:?}", file!(), line!()).into()),
            Ok(_) => return Err(format!("{}:{}: no error, wanted {}", file!(), line!(), stringify!($pattern)).into()),
        }
    };
}
pub(crate) use assert_error;
