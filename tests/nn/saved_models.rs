//! Single checkpoints of any loop, and folders of a [`Gpt`]: bits that come back, and files that stay.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use selvedge::nn::{
    Activation, Adam, AdamW, Batch, ByteTokenizer, Checkpoint, Gpt, GptConfig, Initializer,
    LearningRateSchedule, Linear, Module, Optimizer, ScheduleShape, Sgd, Split, TextFile, TokenizedText,
    Trainer, TrainerOptions,
};
use selvedge::{DType, Device, Error, Result, Tensor};

/// A new folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("selvedge-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn linear(seed: u64) -> Linear {
    Linear::new(3, 2, &Initializer::new(&Device::cpu()).with_seed(seed)).expect("a layer")
}

fn learn(model: &Linear, optimizer: &mut dyn Optimizer, steps: usize) -> Result<()> {
    let x = selvedge::nn::Variable::new(Tensor::new([[1.0f32, -2.0, 0.5]], &Device::cpu())?);
    for _ in 0..steps {
        optimizer.zero_grad();
        model.forward(&x)?.square()?.sum_all()?.backward()?;
        optimizer.step()?;
    }
    Ok(())
}

fn bits(entries: &BTreeMap<String, Tensor>) -> Vec<(String, DType, Vec<u8>)> {
    let one = |(name, tensor): (&String, &Tensor)| {
        (name.clone(), tensor.dtype(), tensor.to_bytes().expect("bytes").to_vec())
    };
    entries.iter().map(one).collect()
}

#[test]
fn a_loop_that_continues_from_a_checkpoint_has_the_bits_of_one_that_goes_on() -> Result<()> {
    let folder = Folder::new("single-checkpoint");
    let path = folder.0.join("runs").join("first");
    let (whole, mut resumed) = (linear(1), linear(2));
    let mut optimizer = AdamW::new(whole.parameters(), 0.1)?;
    learn(&whole, &mut optimizer, 3)?;
    let mut checkpoint = Checkpoint::of(&whole, Some(&optimizer))?;
    checkpoint.info.step = 3;
    checkpoint.save(&path)?;
    learn(&whole, &mut optimizer, 3)?;
    // A second one takes the place of the first.
    Checkpoint::of(&whole, None)?.save(&path)?;
    checkpoint.save(&path)?;

    let mut other = AdamW::new(resumed.parameters(), 0.5)?;
    let checkpoint = Checkpoint::load(&path, &Device::cpu())?;
    assert_eq!((checkpoint.info.step, checkpoint.info.optimizer.as_str()), (3, "AdamW"));
    checkpoint.load_into(&mut resumed, Some(&mut other))?;
    learn(&resumed, &mut other, 3)?;
    assert_eq!(bits(&resumed.state_dict()), bits(&whole.state_dict()));
    assert_eq!(bits(&other.state_dict()?), bits(&optimizer.state_dict()?));
    assert_eq!(fs::read_dir(folder.0.join("runs")).expect("the folder").count(), 1);
    Ok(())
}

#[test]
fn a_checkpoint_replaces_no_other_files() -> Result<()> {
    let folder = Folder::new("other-files");
    let checkpoint = Checkpoint::of(&linear(1), None)?;
    fs::write(folder.0.join("notes.txt"), "mine").expect("a file");
    for (path, wanted) in
        [(folder.0.clone(), "a folder of other files"), (folder.0.join("notes.txt"), "a file")]
    {
        match checkpoint.save(&path) {
            Err(Error::FileNotWritten { found, .. }) => assert_eq!(found, wanted),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(checkpoint.save("/"), Err(Error::FileNotWritten { .. })));
    assert_eq!(folder.names(), ["notes.txt"]);
    // An empty folder is none of other files.
    fs::create_dir(folder.0.join("empty")).expect("a folder");
    checkpoint.save(folder.0.join("empty"))?;
    assert_eq!(folder.names(), ["empty", "notes.txt"]);
    Ok(())
}

#[test]
fn a_checkpoint_that_made_way_is_read_until_the_new_one_is_there() -> Result<()> {
    let folder = Folder::new("made-way");
    let path = folder.0.join("run");
    let mut checkpoint = Checkpoint::of(&linear(1), None)?;
    checkpoint.info.step = 5;
    checkpoint.save(&path)?;
    // A process that is killed between both renames leaves this.
    fs::rename(&path, folder.0.join(".run.replaced")).expect("a rename");
    assert_eq!(Checkpoint::load(&path, &Device::cpu())?.info.step, 5);
    checkpoint.info.step = 6;
    checkpoint.save(&path)?;
    assert_eq!(Checkpoint::load(&path, &Device::cpu())?.info.step, 6);
    assert_eq!(folder.names(), ["run"]);
    Ok(())
}

#[test]
fn states_that_do_not_fit_change_nothing_and_name_both_sides() -> Result<()> {
    let mut model = linear(1);
    let mut optimizer = AdamW::new(model.parameters(), 0.1)?;
    learn(&model, &mut optimizer, 2)?;
    let checkpoint = Checkpoint::of(&model, Some(&optimizer))?;
    let mut adam = Adam::new(model.parameters(), 0.2)?;
    let message = checkpoint.load_into(&mut model, Some(&mut adam)).unwrap_err().to_string();
    assert!(
        message.contains("the state of the optimizer AdamW") && message.contains("that of Adam,"),
        "{message}"
    );
    let mut sgd = Sgd::new(model.parameters(), 0.2)?;
    let without = Checkpoint::of(&model, None)?;
    let message = without.load_into(&mut model, Some(&mut sgd)).unwrap_err().to_string();
    assert!(message.contains("without the state of an optimizer") && message.contains("Sgd"), "{message}");

    let mut other = AdamW::new(model.parameters(), 0.3)?;
    let before = (bits(&model.state_dict()), bits(&other.state_dict()?));
    let mut wrong = checkpoint.clone();
    let bias = wrong.parameters.remove("bias").expect("a bias");
    wrong.parameters.insert("shift".to_owned(), bias);
    let message = wrong.load_into(&mut model, Some(&mut other)).unwrap_err().to_string();
    assert!(message.contains("'bias' is missing") && message.contains("'shift' is extra"), "{message}");
    assert_eq!((bits(&model.state_dict()), bits(&other.state_dict()?)), before);
    Ok(())
}

#[test]
fn a_trainer_refuses_the_state_of_another_optimizer() -> Result<()> {
    let config = GptConfig { layers: 1, width: 8, heads: 2, context: 8, ..GptConfig::tiny(256) };
    let options = TrainerOptions { batch: 2, ..TrainerOptions::default() };
    let text = || TextFile::from_bytes("to be, or not to be, that is the question: ".repeat(9));
    let mut trainer = Trainer::new(config, text(), &ByteTokenizer, options, &Device::cpu())?;
    let mut checkpoint = trainer.checkpoint()?;
    assert_eq!(checkpoint.info.optimizer, "AdamW");
    checkpoint.info.optimizer = "Lion".to_owned();
    let message = trainer.resume(&checkpoint, false).unwrap_err().to_string();
    assert!(message.contains("Lion") && message.contains("AdamW"), "{message}");
    // A checkpoint of before has no name.
    checkpoint.info.optimizer = String::new();
    trainer.resume(&checkpoint, false)
}

#[test]
fn a_saved_gpt_has_its_bits_its_dtype_and_its_configuration() -> Result<()> {
    let folder = Folder::new("saved-gpt");
    let config = GptConfig {
        layers: 2,
        width: 8,
        heads: 2,
        context: 6,
        dropout: 0.25,
        activation: Activation::Silu,
        has_bias: false,
        has_tied_head: false,
        ..GptConfig::tiny(11)
    };
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let mut model = Gpt::new(config, &Initializer::new(&Device::cpu()).with_seed(1).with_dtype(dtype))?;
        model.save(folder.0.join("model"))?;
        let mut again = Gpt::load(folder.0.join("model"), &Device::cpu())?;
        assert_eq!((again.config(), again.dtype()), (&config, dtype));
        assert_eq!(bits(&again.state_dict()), bits(&model.state_dict()));
        model.eval();
        again.eval();
        let ids = |rows| Tensor::new(rows, &Device::cpu());
        let batch = Batch { inputs: ids([[1i64, 2, 3]])?, targets: ids([[2i64, 3, 4]])? };
        let losses = [model.loss(&batch)?, again.loss(&batch)?];
        assert!(losses[0].tensor().equal(&losses[1].tensor())?);
    }
    let missing = Gpt::load(folder.0.join("nothing"), &Device::cpu());
    assert!(matches!(missing, Err(Error::File { path, .. }) if path.ends_with("config.json")));
    fs::write(folder.0.join("model/config.json"), r#"{"model_type": "llama"}"#).expect("a file");
    let message = Gpt::load(folder.0.join("model"), &Device::cpu()).err().map(|error| error.to_string());
    assert!(message.is_some_and(|message| message.contains("config.json") && message.contains("vocab_size")));
    Ok(())
}

#[test]
fn ids_are_a_text_of_their_own_hash() -> Result<()> {
    let [first, second] = [[1u32, 2, 3], [1, 2, 4]].map(TokenizedText::from_ids);
    let (first, second) = (first?, second?);
    assert_eq!((first.len(), first.largest_id(), second.largest_id()), (3, 3, 4));
    assert_eq!(first.ids(first.range(Split::Training))?, [1, 2]);
    assert!(first.hash() != second.hash() && first.hash() == TokenizedText::from_ids(vec![1, 2, 3])?.hash());
    assert!(TokenizedText::from_ids([])?.is_empty());
    Ok(())
}

#[test]
fn options_take_a_schedule() {
    let schedule = LearningRateSchedule {
        shape: ScheduleShape::Wsd,
        peak: 0.25,
        minimum: 0.125,
        warmup_steps: 2,
        total_steps: 0,
    };
    let options = TrainerOptions { steps: 7, ..TrainerOptions::default() }.with_schedule(&schedule);
    assert_eq!(options.schedule(), LearningRateSchedule { total_steps: 7, ..schedule });
}
