//! `selvedge classify policy`.

use selvedge::catalogue::{
    PolicyPredictions, choose_policy, expected_free_energy, policy_probabilities, sample_policy,
};
use selvedge::io::safetensors::SafetensorsFile;
use selvedge::tensor::Generator;
use selvedge::{DType, Error, Tensor};
use serde_json::json;

use crate::device::{self, reason_text};
use crate::failure::Failure;
use crate::options::ClassifyPolicyOptions;
use crate::output::{Report, Style, Table};

/// Computes the energies of the policies and chooses one.
pub fn choose(options: &ClassifyPolicyOptions) -> Result<Report, Failure> {
    let (device, reason) = device::choose(options.device)?;
    let mut file = SafetensorsFile::open(&options.predictions)?;
    let mut read = |name: &str| Tensor::read_safetensors_tensor(&mut file, name, &device);
    let predictions = PolicyPredictions {
        observations: read("observations")?,
        variances: read("variances")?,
        prior_variances: read("prior_variances")?,
        posterior_variances: read("posterior_variances")?,
    };
    let energy = expected_free_energy(&predictions, &read("preferred")?)?;
    let probabilities = policy_probabilities(&energy.total, options.gamma)?;
    let chosen = match options.sample {
        true => sample_policy(&energy.total, options.gamma, &Generator::new(options.seed))?,
        false => choose_policy(&energy.total)?,
    };

    let numbers = |tensor: &Tensor| tensor.cast(DType::F64)?.to_vec::<f64>();
    let columns = [&energy.risk, &energy.ambiguity, &energy.novelty, &energy.total, &probabilities];
    let [risk, ambiguity, novelty, total, probabilities] = {
        let mut all = [const { Vec::new() }; 5];
        for (numbers_of, column) in all.iter_mut().zip(columns) {
            *numbers_of = numbers(column)?;
        }
        all
    };
    let head = ["policy", "risk", "ambiguity", "novelty", "G", "probability"];
    let mut table = Table::with_head(">>>>>>", head);
    let rows = risk.iter().zip(&ambiguity).zip(&novelty).zip(&total).zip(&probabilities);
    for (policy, ((((risk, ambiguity), novelty), total), probability)) in rows.enumerate() {
        let numbers = [risk, ambiguity, novelty, total, probability].map(|number| format!("{number:.4}"));
        let [risk, ambiguity, novelty, total, probability] = numbers;
        table.row([policy.to_string(), risk, ambiguity, novelty, total, probability]);
    }
    let how = if options.sample { "drawn by its probability" } else { "the least expected free energy" };
    let mut text = table.render(Style::of_stdout());
    text += &format!("\npolicy {chosen}: {how}\n");
    if let Some(reason) = &reason {
        text += &format!("\n{}", reason_text(reason));
    }
    let json = json!({
        "policy": chosen,
        "is_sampled": options.sample,
        "risk": risk,
        "ambiguity": ambiguity,
        "novelty": novelty,
        "expected_free_energy": total,
        "probabilities": probabilities,
        "device": device.to_string(),
        "reason": reason.as_ref().map(Error::to_string),
    });
    Ok(Report { text, json })
}
