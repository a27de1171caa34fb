//! The batch that fits, after a run that ran out of memory.

use selvedge::Error;

use crate::failure::Failure;

/// Steps that show whether a batch fits. The optimizer's state appears in the first one, after its gradients.
pub const STEPS: u64 = 2;

/// Returns the failure of a run. If memory was short, it names the largest of the halves of `batch`, quarters and so on whose
/// steps succeed; `steps` takes them with a new model. The run must have freed its memory.
pub fn explained(
    error: Error,
    (batch, accumulation): (u64, u64),
    steps: impl Fn(u64) -> Result<(), Error>,
) -> Failure {
    let is_memory = matches!(error, Error::OutOfMemory { .. });
    let mut failure = Failure::from(error);
    if is_memory {
        failure.message += &match largest(batch, steps) {
            Ok(Some(fitting)) => {
                let accumulation = batch.saturating_mul(accumulation).div_ceil(fitting);
                format!(
                    "; a batch of {batch} does not fit, one of {fitting} does: --batch {fitting} \
                     --accumulation {accumulation} has as many ids a step"
                )
            }
            Ok(None) => {
                "; a batch of 1 does not fit either: use a smaller --model or a shorter --context".to_owned()
            }
            Err(_) => format!("; use a --batch of less than {batch}"),
        };
    }
    failure
}

/// Returns the first batch below `batch`, by halves, that does not run out of memory.
fn largest(batch: u64, steps: impl Fn(u64) -> Result<(), Error>) -> Result<Option<u64>, Error> {
    let mut smaller = batch / 2;
    while smaller > 0 {
        match steps(smaller) {
            Ok(()) => return Ok(Some(smaller)),
            Err(Error::OutOfMemory { .. }) => smaller /= 2,
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short() -> Error {
        Error::OutOfMemory {
            device: None,
            requested: 1,
            free: 0,
            total: 0,
            cached: 0,
            live: 0,
            limit: None,
            holders: String::new(),
        }
    }

    #[test]
    fn the_advice_names_the_first_half_that_fits() {
        let message = |batch, most| {
            let steps = |batch| if batch > most { Err(short()) } else { Ok(()) };
            explained(short(), (batch, 3), steps).message
        };
        assert!(message(64, 20).ends_with("--batch 16 --accumulation 12 has as many ids a step"));
        assert!(message(7, 6).contains("one of 3 does: --batch 3 --accumulation 7 "));
        assert!(message(64, 0).contains("a batch of 1 does not fit either"));
        assert!(message(1, 1).contains("a batch of 1 does not fit either"));
        let broken =
            |_| Err(Error::InvalidArgument { operation: "x", found: String::new(), wanted: String::new() });
        assert!(explained(short(), (8, 1), broken).message.ends_with("; use a --batch of less than 8"));
        assert!(!explained(broken(1).unwrap_err(), (8, 1), |_| Ok(())).message.contains("batch"));
    }
}
