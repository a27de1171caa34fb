//! The device of a command, and the sentence that says why it is the CPU.

use selvedge::{Device, Error};

use crate::failure::{Failure, NO_DEVICE};
use crate::options::DeviceChoice;

/// Returns the device, and the reason for the CPU if it was not requested.
pub fn choose(choice: DeviceChoice) -> Result<(Device, Option<Error>), Failure> {
    match choice {
        DeviceChoice::Cpu => Ok((Device::cpu(), None)),
        DeviceChoice::Cuda(ordinal) => Ok((Device::cuda(ordinal)?, None)),
        DeviceChoice::Auto => match Device::cuda(0) {
            Ok(device) => Ok((device, None)),
            Err(error) if is_reason_for_the_cpu(&error) => Ok((Device::cpu(), Some(error))),
            Err(error) => Err(error.into()),
        },
    }
}

/// Returns `true` where there is nothing to run on. Every other error is a failure of the demonstration.
pub fn is_reason_for_the_cpu(error: &Error) -> bool {
    Failure::from(error.clone()).code == NO_DEVICE || matches!(error, Error::UnsupportedImage { .. })
}

/// The sentence for a run on the CPU because of this error.
pub fn reason_text(reason: &Error) -> String {
    match reason {
        Error::LibraryUnavailable { library, .. } => {
            format!(
                "No GPU is used: {library} could not be loaded (selvedge info lists the attempts, and what to do).\n"
            )
        }
        reason => format!("No GPU is used: {reason}.\n"),
    }
}
