//! The batch that fits, in the error of a run that ran out of memory.

use selvedge::Error;
use selvedge::nn::Recompute;

use super::Meter;
use super::available::available;
use crate::failure::Failure;

/// Returns the failure of a run. If memory was short, it names the largest batch that fits, and those of more recomputation. The run
/// must have freed its memory.
pub fn explained(error: Error, meter: &Meter<'_>) -> Failure {
    let numbers = &meter.numbers;
    let sizes = (numbers.batch as u64, numbers.accumulation as u64);
    explained_by(error, sizes, numbers.recompute, |recompute, most| largest(meter, recompute, most))
}

/// As [`explained`], where `largest` returns the largest batch of a choice up to another one, 0 for none.
fn explained_by(
    error: Error,
    (batch, accumulation): (u64, u64),
    recompute: Recompute,
    largest: impl Fn(Recompute, u64) -> Result<u64, Error>,
) -> Failure {
    let is_memory = matches!(error, Error::OutOfMemory { .. });
    let mut failure = Failure::from(error);
    if is_memory {
        failure.message += &advice((batch, accumulation), recompute, largest)
            .unwrap_or_else(|_| format!("; use a --batch of less than {batch}"));
    }
    failure
}

fn advice(
    (batch, accumulation): (u64, u64),
    recompute: Recompute,
    largest: impl Fn(Recompute, u64) -> Result<u64, Error>,
) -> Result<String, Error> {
    let fitting = largest(recompute, batch - 1)?;
    let mut text = match fitting {
        0 => "; a batch of 1 does not fit either".to_owned(),
        _ => {
            let accumulation = batch.saturating_mul(accumulation).div_ceil(fitting);
            format!(
                "; a batch of {batch} does not fit, one of {fitting} does: --batch {fitting} --accumulation {accumulation} \
                 has at least as many ids a step"
            )
        }
    };
    let mut most = fitting;
    let more = Recompute::ALL.into_iter().skip_while(|choice| *choice != recompute).skip(1);
    for choice in more {
        let found = largest(choice, batch)?;
        if found > most {
            text += &format!("; --recompute {choice} allows a batch of {found}");
            most = found;
        }
    }
    if most == 0 {
        text += ": use a smaller --model or a shorter --context";
    }
    Ok(text)
}

/// Returns the largest batch up to another one that fits with a choice, on a device by its steps; 0 if none does.
fn largest(meter: &Meter<'_>, recompute: Recompute, most: u64) -> Result<u64, Error> {
    let measured = meter.choice(recompute)?;
    meter.device.trim()?;
    let room = available(&meter.device)?.map_or(most, |available| measured.largest_batch(available));
    let least = measured.largest_measured();
    let mut batch = room.max(least).min(most);
    // The pool's rounding and other work's memory are not on the line. A step that takes all of the host's memory may end the
    // process, so the CPU has a margin instead.
    while batch > least && !meter.device.is_cpu() {
        if meter.measure_if_it_fits(recompute, batch)?.is_some() {
            return Ok(batch);
        }
        batch = batch - (batch / 16).max(1);
    }
    Ok(batch)
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
    fn the_advice_names_the_batches_that_fit() {
        let message = |batch, recompute, fitting: [u64; 3]| {
            let largest = |choice, most| {
                let at = Recompute::ALL.iter().position(|other| *other == choice).unwrap();
                Ok(fitting[at].min(most))
            };
            explained_by(short(), (batch, 3), recompute, largest).message
        };
        let found = message(64, Recompute::Nothing, [20, 30, 90]);
        assert!(found.contains("one of 20 does: --batch 20 --accumulation 10 has at least"), "{found}");
        assert!(
            found.ends_with(
                "; --recompute feed-forward allows a batch of 30; --recompute blocks allows a batch of 64"
            ),
            "{found}"
        );
        let found = message(64, Recompute::FeedForward, [20, 30, 30]);
        assert!(found.contains("one of 30 does") && !found.contains("--recompute"), "{found}");
        let found = message(1, Recompute::Nothing, [0, 0, 2]);
        assert!(
            found.ends_with("a batch of 1 does not fit either; --recompute blocks allows a batch of 1"),
            "{found}"
        );
        let found = message(64, Recompute::Blocks, [0, 0, 0]);
        assert!(
            found.ends_with("does not fit either: use a smaller --model or a shorter --context"),
            "{found}"
        );
    }

    #[test]
    fn other_errors_and_measurements_that_fail_have_no_batch() {
        let broken =
            || Error::InvalidArgument { operation: "x", found: String::new(), wanted: String::new() };
        let found = explained_by(short(), (8, 1), Recompute::Nothing, |_, _| Err(broken())).message;
        assert!(found.ends_with("; use a --batch of less than 8"), "{found}");
        let found = explained_by(broken(), (8, 1), Recompute::Nothing, |_, _| Ok(1)).message;
        assert!(!found.contains("batch"), "{found}");
    }
}
