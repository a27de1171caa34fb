//! `selvedge srt verify`: every worked number of the golden-ratio operations, on every device of this machine.

use selvedge::{DType, Device, driver};
use serde_json::{Value, json};

use super::worked::{Case, Numbers, cases};
use crate::device::{is_reason_for_the_cpu, reason_text};
use crate::failure::Failure;
use crate::output::{Progress, Report, Style, Table, counted};

/// One case on one device.
struct Outcome {
    operation: String,
    section: &'static str,
    class: String,
    device: String,
    /// The largest relative error, the absolute one next to 0; of integers, the largest difference.
    error: Option<f64>,
    /// The same in f32, of operations that have it.
    error_in_f32: Option<f64>,
    /// The reason why it failed.
    failure: Option<String>,
}

/// The reason for no CUDA device, and a sentence of it.
type Unverified = (String, String);
type Named = (String, Device);

/// Returns the report, and whether every number passed.
pub fn verify() -> Result<(Report, bool), Failure> {
    let (devices, reason) = devices()?;
    let cases = cases();
    let progress = Progress::of_steps("worked numbers", cases.len() as u64);
    let mut outcomes = Vec::new();
    for (done, case) in (1..).zip(&cases) {
        outcomes.extend(check(case, &devices));
        progress.set(done);
    }
    drop(progress);
    Ok(report(&outcomes, reason.as_ref()))
}

/// Returns the devices of this machine by name, the CPU first, and the reason if there is no CUDA device among them.
fn devices() -> Result<(Vec<Named>, Option<Unverified>), Failure> {
    let mut devices = vec![("CPU".to_owned(), Device::cpu())];
    let count = match driver::Device::count() {
        Ok(0) => {
            let reason = "the driver has no device".to_owned();
            let sentence = format!("No GPU is verified: {reason}.\n");
            return Ok((devices, Some((reason, sentence))));
        }
        Ok(count) => count,
        Err(error) if is_reason_for_the_cpu(&error) => {
            return Ok((devices, Some((error.to_string(), reason_text(&error)))));
        }
        Err(error) => return Err(error.into()),
    };
    for ordinal in 0..count {
        let name = format!("device {ordinal}, {}", driver::Device::new(ordinal)?.name());
        devices.push((name, Device::cuda(ordinal)?));
    }
    Ok((devices, None))
}

/// Computes a case on each device; the first is the CPU, with which the others must agree.
fn check(case: &Case, devices: &[Named]) -> Vec<Outcome> {
    let mut cpu: [Option<Numbers>; 2] = [None, None];
    let mut outcomes = Vec::new();
    for (name, device) in devices {
        let (mut errors, mut failure) = ([None, None], None);
        for ((dtype, cpu), error) in case.dtypes().iter().zip(&mut cpu).zip(&mut errors) {
            let (found_error, found_failure) = compare(case, device, *dtype, cpu);
            *error = found_error;
            failure = failure.or(found_failure);
        }
        let device = if case.is_on_host() { "host".to_owned() } else { name.clone() };
        let [error, error_in_f32] = errors;
        outcomes.push(Outcome {
            operation: case.operation.clone(),
            section: case.section,
            class: case.class.name(),
            device,
            error,
            error_in_f32,
            failure,
        });
        if case.is_on_host() {
            break;
        }
    }
    outcomes
}

/// Computes a case in one precision. Returns its error and the reason for a failure, and sets the CPU's numbers if there are
/// none.
fn compare(
    case: &Case,
    device: &Device,
    dtype: DType,
    cpu: &mut Option<Numbers>,
) -> (Option<f64>, Option<String>) {
    let found = match case.compute(device, dtype) {
        Ok(found) => found,
        Err(error) => return (None, Some(format!("{error}, in {dtype}"))),
    };
    let (error, good) = case.error(&found, dtype);
    let differs = cpu.as_ref().is_some_and(|cpu| !case.agrees(&found, cpu, dtype));
    let failure = match (good, differs) {
        (false, _) => Some(format!("found {found:?} in {dtype}; wanted {:?}", case.wanted)),
        (true, true) => Some(format!("found {found:?} in {dtype}; the CPU found {cpu:?}")),
        (true, false) => None,
    };
    cpu.get_or_insert(found);
    (Some(error), failure)
}

/// The text of an error in the table.
fn error_text(error: Option<f64>) -> String {
    match error {
        None => "-".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(error) => format!("{error:.1e}"),
    }
}

fn report(outcomes: &[Outcome], reason: Option<&Unverified>) -> (Report, bool) {
    let head = ["operation", "section", "class", "device", "largest error", "in f32", "passed"];
    let mut table = Table::with_head("<<<<>><", head);
    let (mut details, mut failed) = (String::new(), 0);
    for one in outcomes {
        table.row([
            one.operation.clone(),
            one.section.to_owned(),
            one.class.clone(),
            one.device.clone(),
            error_text(one.error),
            error_text(one.error_in_f32),
            if one.failure.is_none() { "yes" } else { "NO" }.to_owned(),
        ]);
        if let Some(failure) = &one.failure {
            failed += 1;
            details += &format!("{} on {}: {failure}\n", one.operation, one.device);
        }
    }
    let mut text = table.render(Style::of_stdout());
    if let Some((_, sentence)) = reason {
        text += &format!("\n{sentence}");
    }
    let checks = counted(outcomes.len() as u64, "result");
    text += &match failed {
        0 => format!("\nAll {checks} passed.\n"),
        failed => format!("\n{failed} of {checks} failed.\n{details}"),
    };
    let rows: Vec<Value> = outcomes
        .iter()
        .map(|one| {
            json!({
                "operation": one.operation,
                "section": one.section,
                "class": one.class,
                "device": one.device,
                "largest_error": one.error.filter(|error| error.is_finite()),
                "largest_error_in_f32": one.error_in_f32.filter(|error| error.is_finite()),
                "passed": one.failure.is_none(),
                "failure": one.failure,
            })
        })
        .collect();
    let json = json!({ "passed": failed == 0, "reason": reason.map(|(reason, _)| reason), "results": rows });
    (Report { text, json }, failed == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_is_shown_and_fails() {
        let devices = [("CPU".to_owned(), Device::cpu()), ("another".to_owned(), Device::cpu())];
        let mut case = cases().into_iter().find(|case| case.operation == "golden_inner").unwrap();
        let good = check(&case, &devices);
        assert!(good.len() == 2 && good.iter().all(|one| one.failure.is_none()));
        case.wanted = 10.9093097.into();
        let (report, good) = report(&check(&case, &devices[..1]), None);
        assert!(!good && report.text.contains("1 of 1 result failed"), "{}", report.text);
        assert!(report.text.contains("golden_inner on CPU: found") && report.json["passed"] == false);
        assert_eq!(report.json["results"][0]["class"], "T3");
    }

    #[test]
    fn a_device_that_disagrees_with_the_cpu_fails_by_its_class_and_precision() {
        let case = cases().into_iter().find(|case| case.operation == "phi_residual_gelu").unwrap();
        let Ok(Numbers::Floats(cpu)) = case.compute(&Device::cpu(), DType::F64) else { panic!("no floats") };
        let off = |factor: f64| Numbers::Floats(cpu.iter().map(|x| x * factor).collect());
        for (dtype, allowed, refused) in [(DType::F64, 5e-15, 5e-14), (DType::F32, 1e-6, 5e-6)] {
            assert!(case.agrees(&off(1.0 + allowed), &off(1.0), dtype), "{dtype}");
            assert!(!case.agrees(&off(1.0 + refused), &off(1.0), dtype), "{dtype}");
        }
        let outcomes = check(&case, &[("CPU".to_owned(), Device::cpu())]);
        assert!(outcomes[0].error_in_f32 > outcomes[0].error && outcomes[0].failure.is_none());
    }
}
