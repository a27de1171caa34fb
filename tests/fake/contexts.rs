//! Somebody else's `cuCtxSetCurrent` between any two of our calls: ours still go to the right context, and theirs is
//! current again afterwards.

use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

/// Child: the scenario once for each foreign context that is set before every entry.
pub fn child(fake: &Fake) -> Result<(), Box<dyn std::error::Error>> {
    // Once without, so that both devices exist.
    scenario::run(fake, &mut || {})?;
    let foreign = [
        fake.foreign_context(0),
        fake.foreign_context(1),
        // Our own contexts, as cudart would set them.
        fake.primary_context(0),
        fake.primary_context(1),
    ];
    for context in foreign {
        let mut changed = Vec::new();
        let mut entry = 0;
        fake.foreign_set(context);
        scenario::run(fake, &mut || {
            if fake.current_context() != context {
                changed.push(entry);
            }
            entry += 1;
            fake.foreign_set(context);
        })?;
        if !changed.is_empty() {
            return Err(
                format!("context {context:#x} was not current again after entries {changed:?}").into()
            );
        }
        if entry < 50 {
            return Err(format!("only {entry} entries").into());
        }
    }
    fake.foreign_set(0);
    scenario::settle()?;
    scenario::check_end(fake)
}

pub fn tests() -> Vec<Test> {
    vec![Test::new("contexts::a_foreign_context_survives_every_call", || {
        children::must_succeed(&Variant::new(12040), "contexts", &[], &[]).map(drop)
    })]
}
