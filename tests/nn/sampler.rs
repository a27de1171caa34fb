//! Samplers against plain formulas, log-probabilities, and stop strings.

use std::collections::BTreeMap;

use selvedge::nn::{
    Generation, Gpt, GptConfig, Initializer, LogProbabilities, Module, Sampler, SamplerOptions, StopFilter,
};
use selvedge::{Device, Error, Result};

/// Logits whose penalties are exact in f32.
const LOGITS: [f32; 8] = [2.0, 1.5, -0.5, 2.25, 0.0, -3.0, 1.75, f32::NEG_INFINITY];

/// The logits after the penalties, by their formulas.
fn penalized(options: &SamplerOptions, prompt: &[u32], drawn: &[usize]) -> Vec<f32> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for &id in drawn {
        *counts.entry(id).or_default() += 1;
    }
    let penalty = options.repetition_penalty as f32;
    let logit = |(id, &x): (usize, &f32)| {
        let is_earlier = prompt.contains(&(id as u32)) || drawn.contains(&id);
        let x = match (is_earlier, x > 0.0) {
            (false, _) => x,
            (true, true) => x / penalty,
            (true, false) => x * penalty,
        };
        match counts.get(&id) {
            Some(&count) => {
                x - options.presence_penalty as f32 - count as f32 * options.frequency_penalty as f32
            }
            None => x,
        }
    };
    LOGITS.iter().enumerate().map(logit).collect()
}

#[test]
fn penalties_change_logits_by_their_formulas() -> Result<()> {
    let none = SamplerOptions::default();
    let table = [
        SamplerOptions { repetition_penalty: 2.0, ..none },
        SamplerOptions { repetition_penalty: 0.5, ..none },
        SamplerOptions { presence_penalty: 0.5, ..none },
        SamplerOptions { presence_penalty: -0.5, ..none },
        SamplerOptions { frequency_penalty: 0.25, ..none },
        SamplerOptions { repetition_penalty: 2.0, presence_penalty: 0.5, frequency_penalty: 0.25, ..none },
    ];
    let prompt = [3u32, 5, 3, 900];
    for penalties in table {
        for (temperature, seed) in [(0.0, 1), (1.0, 1), (1.0, 2)] {
            let options = SamplerOptions { temperature, ..penalties };
            let mut sampler = Sampler::new(options, seed)?;
            sampler.read_prompt(&prompt);
            // The same seed draws from the logits of the formulas.
            let mut plain = Sampler::new(SamplerOptions { temperature, ..none }, seed)?;
            let mut drawn = Vec::new();
            for step in 0..40 {
                let wanted = plain.draw(&penalized(&options, &prompt, &drawn))?;
                assert_eq!(sampler.draw(&LOGITS)?, wanted, "{options:?}, step {step}");
                drawn.push(wanted);
            }
        }
    }
    Ok(())
}

/// Probabilities by the definitions: each limit takes ids out of a sorted list.
fn probabilities(options: &SamplerOptions) -> Vec<f64> {
    let weight = |id: usize| (f64::from(LOGITS[id]) / options.temperature).exp();
    let mut ids: Vec<usize> = (0..LOGITS.len()).collect();
    ids.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
    ids.truncate(options.top_k.unwrap_or(LOGITS.len()));
    let sum: f64 = ids.iter().map(|&id| weight(id)).sum();
    let mut before = 0.0;
    ids.retain(|&id| {
        let is_kept = before < options.top_p;
        before += weight(id) / sum;
        is_kept
    });
    let least = options.min_p * weight(ids[0]);
    ids.retain(|&id| weight(id) >= least);
    let sum: f64 = ids.iter().map(|&id| weight(id)).sum();
    (0..LOGITS.len()).map(|id| if ids.contains(&id) { weight(id) / sum } else { 0.0 }).collect()
}

#[test]
fn draws_have_the_probabilities_of_the_formulas() -> Result<()> {
    const DRAWS: usize = 4000;
    let all = SamplerOptions::default();
    let table = [
        all,
        SamplerOptions { temperature: 0.5, ..all },
        SamplerOptions { temperature: 3.0, top_k: Some(5), ..all },
        SamplerOptions { top_p: 0.7, ..all },
        SamplerOptions { min_p: 0.3, ..all },
        SamplerOptions { min_p: 0.5, temperature: 2.0, ..all },
        SamplerOptions { min_p: 1.0, ..all },
        SamplerOptions { top_k: Some(4), top_p: 0.9, min_p: 0.55, ..all },
    ];
    for options in table {
        let mut sampler = Sampler::new(options, 5)?;
        let mut counts = [0usize; LOGITS.len()];
        for _ in 0..DRAWS {
            counts[sampler.draw(&LOGITS)?] += 1;
        }
        for (id, (&count, wanted)) in counts.iter().zip(probabilities(&options)).enumerate() {
            let found = count as f64 / DRAWS as f64;
            // Five standard deviations.
            let tolerance = 5.0 * (wanted * (1.0 - wanted) / DRAWS as f64).sqrt();
            assert!((found - wanted).abs() <= tolerance, "{options:?}, id {id}: {found}, wanted {wanted}");
        }
    }
    Ok(())
}

#[test]
fn options_that_cannot_work_are_refused() {
    let all = SamplerOptions::default();
    let table = [
        (SamplerOptions { temperature: -0.5, ..all }, "temperature = -0.5"),
        (SamplerOptions { temperature: f64::NAN, ..all }, "temperature = NaN"),
        (SamplerOptions { top_k: Some(0), ..all }, "top_k = 0"),
        (SamplerOptions { top_p: 0.0, ..all }, "top_p = 0"),
        (SamplerOptions { top_p: 1.5, ..all }, "top_p = 1.5"),
        (SamplerOptions { min_p: -0.1, ..all }, "min_p = -0.1"),
        (SamplerOptions { min_p: 1.1, ..all }, "min_p = 1.1"),
        (SamplerOptions { min_p: f64::NAN, ..all }, "min_p = NaN"),
        (SamplerOptions { repetition_penalty: 0.0, ..all }, "repetition_penalty = 0"),
        (SamplerOptions { repetition_penalty: -1.0, ..all }, "repetition_penalty = -1"),
        (SamplerOptions { presence_penalty: f64::INFINITY, ..all }, "presence_penalty = inf"),
        (SamplerOptions { frequency_penalty: f64::NAN, ..all }, "frequency_penalty = NaN"),
    ];
    for (options, part) in table {
        let error = Sampler::new(options, 1).map(drop).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error} lacks {part}");
    }
}

#[test]
fn log_probabilities_are_those_of_the_softmax() -> Result<()> {
    let sum: f64 = LOGITS.iter().map(|&x| f64::from(x).exp()).sum();
    let log = |id: usize| (f64::from(LOGITS[id]).exp() / sum).ln();
    let found = LogProbabilities::new(&LOGITS, 2, 3)?;
    assert!((found.drawn - log(2)).abs() < 1e-14, "{found:?}");
    assert_eq!(found.top.iter().map(|&(id, _)| id).collect::<Vec<_>>(), [3, 0, 6]);
    assert!(found.top.iter().all(|&(id, value)| (value - log(id as usize)).abs() < 1e-14), "{found:?}");
    assert_eq!(
        LogProbabilities::new(&LOGITS, 7, 0)?,
        LogProbabilities { drawn: f64::NEG_INFINITY, top: vec![] }
    );
    assert_eq!(LogProbabilities::new(&LOGITS, 0, 99)?.top.len(), LOGITS.len());
    // Large logits do not overflow, and an infinite one has all of the probability.
    assert_eq!(LogProbabilities::new(&[1e38, -1e38], 0, 1)?.drawn, 0.0);
    assert_eq!(LogProbabilities::new(&[f32::INFINITY, 1.0], 0, 2)?.top, [(0, 0.0), (1, f64::NEG_INFINITY)]);
    for (logits, id, part) in [(&[1.0f32][..], 1, "id 1"), (&[], 0, "no logits"), (&[f32::NAN], 0, "NaN")] {
        let message = LogProbabilities::new(logits, id, 1).unwrap_err().to_string();
        assert!(message.contains(part), "{message} lacks {part}");
    }
    Ok(())
}

#[test]
fn a_generation_has_penalties_and_log_probabilities() -> Result<()> {
    let config = GptConfig { layers: 1, width: 16, heads: 2, context: 32, ..GptConfig::tiny(11) };
    let mut model = Gpt::new(config, &Initializer::new(&Device::cpu()).with_seed(3))?;
    model.eval();
    let options = SamplerOptions { presence_penalty: 1e6, ..SamplerOptions::greedy() };
    let generation = Generation::new(&model, &[1], Sampler::new(options, 1)?)?;
    assert!(generation.log_probabilities().is_none());
    let mut generation = generation.with_log_probabilities(2);
    let mut ids = Vec::new();
    for _ in 0..11 {
        let id = generation.next().expect("an endless iterator")?;
        let found = generation.log_probabilities().expect("log-probabilities");
        let is_likely = found.top.iter().find(|(top, _)| *top == id).is_none_or(|top| top.1 == found.drawn);
        assert!(found.top.len() == 2 && found.drawn < 0.0 && is_likely, "{found:?}");
        ids.push(id);
    }
    // No id comes twice while there are others.
    ids.sort_unstable();
    assert_eq!(ids, (0..11).collect::<Vec<_>>());
    // The repetition penalty concerns the prompt too.
    let options = SamplerOptions { repetition_penalty: 1e6, ..SamplerOptions::greedy() };
    let prompt: Vec<u32> = (0..10).collect();
    let mut sampler = Sampler::new(options, 1)?;
    sampler.read_prompt(&prompt);
    assert_eq!(sampler.draw(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5])?, 10);
    Ok(())
}

/// The text before a stop string, of a text that comes in parts of a length.
fn filtered(stops: &[&str], text: &str, piece: usize) -> Result<(String, bool)> {
    let mut filter = StopFilter::new(stops.iter().copied())?;
    let letters: Vec<char> = text.chars().collect();
    let mut found = String::new();
    for piece in letters.chunks(piece) {
        found += &filter.push(&piece.iter().collect::<String>());
        let is_shown = stops.iter().any(|stop| found.contains(stop));
        assert!(!is_shown, "{found} of {text} has one of {stops:?}");
    }
    let is_stopped = filter.is_stopped();
    assert!(!is_stopped || filter.push("more").is_empty());
    Ok((found + &filter.finish(), is_stopped))
}

#[test]
fn text_ends_before_a_stop_string_whatever_its_pieces_are() -> Result<()> {
    let table: [(&[&str], &str, &str, bool); 12] = [
        (&[], "all of it", "all of it", false),
        (&["x"], "", "", false),
        (&["STOP"], "a STOP b", "a ", true),
        (&["STOP"], "a STO", "a STO", false),
        (&["STOP"], "STSTOP", "ST", true),
        (&["aab"], "aaaab", "aa", true),
        (&["abab"], "ababab", "", true),
        // The first end counts, and then the longest string.
        (&["abcd", "bc"], "xabcd", "xa", true),
        (&["cd", "bcd"], "abcd", "a", true),
        (&["one", "two"], "a two, one", "a ", true),
        (&["é\n\n"], "caffé\né\n\nx", "caffé\n", true),
        (&["🙂🙂"], "a🙂b🙂🙂", "a🙂b", true),
    ];
    for (stops, text, wanted, is_stopped) in table {
        for piece in 1..=text.chars().count().max(1) {
            assert_eq!(filtered(stops, text, piece)?, (wanted.to_owned(), is_stopped), "{text}, {piece}");
        }
    }
    let error = StopFilter::new(["a", ""]).map(drop).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    assert!(error.to_string().contains("stop string 1 of no characters"), "{error}");
    // A character that may begin a stop string waits, and no other.
    let mut filter = StopFilter::new(["\n\nUser"])?;
    assert_eq!(filter.push("a\n"), "a");
    assert_eq!(filter.push("b\n\nUse"), "\nb");
    assert_eq!(filter.push("d"), "\n\nUsed");
    // A special token ends the text by its whole spelling.
    let mut filter = StopFilter::new(["<|im_end|>"])?;
    assert!(!filter.push_special("<|im_start|>") && !filter.is_stopped());
    assert!(filter.push_special("<|im_end|>") && filter.is_stopped());
    assert_eq!(filter.push("more"), "");
    Ok(())
}
