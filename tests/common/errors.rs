//! Checks of errors.

use selvedge::Error;

/// Checks for an invalid argument whose text has all of these.
#[track_caller]
pub fn assert_invalid<T: std::fmt::Debug>(result: selvedge::Result<T>, texts: &[&str]) {
    match result {
        Err(error @ Error::InvalidArgument { .. }) => {
            let text = error.to_string();
            assert!(texts.iter().all(|wanted| text.contains(wanted)), "{text}, wanted {texts:?}");
        }
        other => panic!("{other:?}"),
    }
}

/// Checks for an error about a dtype.
#[track_caller]
pub fn assert_dtype_error<T: std::fmt::Debug>(result: selvedge::Result<T>) {
    assert!(matches!(result, Err(Error::DTypeMismatch { .. })), "{result:?}");
}
