//! Token files of llm.c, nanoGPT and NumPy, and shuffled windows of them.

use std::path::{Path, PathBuf};

use selvedge::io::npy;
use selvedge::nn::{
    Batches, ByteTokenizer, Split, TextFile, TokenFiles, TokenFormat, TokenWriter, TokenizedText,
};
use selvedge::{DType, Device, Error};

fn fails<T: std::fmt::Debug>(result: selvedge::Result<T>, words: &[&str]) -> Error {
    let error = result.unwrap_err();
    let message = error.to_string();
    assert!(words.iter().all(|word| message.contains(word)), "{message} lacks one of {words:?}");
    error
}

fn written(path: &Path, format: TokenFormat, dtype: DType, ids: &[u32], shard: Option<u64>) -> Vec<PathBuf> {
    let mut writer = TokenWriter::create(path, format, dtype, shard).unwrap();
    ids.chunks(7).for_each(|ids| writer.write(ids).unwrap());
    assert_eq!(writer.len(), ids.len() as u64);
    writer.finish().unwrap()
}

const FORMATS: [(&str, TokenFormat, DType); 5] = [
    ("a.bin", TokenFormat::Llmc, DType::U16),
    ("b.bin", TokenFormat::Llmc, DType::U32),
    ("c.bin", TokenFormat::Raw, DType::U16),
    ("d.npy", TokenFormat::Npy, DType::U16),
    ("e.npy", TokenFormat::Npy, DType::U32),
];

#[test]
fn files_of_every_format_are_read_and_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let narrow: Vec<u32> = (0..1000).map(|at| at * 65_535 / 999).collect();
    let wide: Vec<u32> = narrow.iter().map(|&id| id * 3).collect();
    for (name, format, dtype) in FORMATS {
        let ids = if dtype == DType::U16 { &narrow } else { &wide };
        for shard in [None, Some(64), Some(1000)] {
            let paths = written(&folder.path().join(name), format, dtype, ids, shard);
            assert_eq!(paths.len(), shard.map_or(1, |ids| 1000usize.div_ceil(ids as usize)), "{name}");
            // SAFETY: nobody else writes the files.
            for files in [TokenFiles::read(&paths).unwrap(), unsafe { TokenFiles::map(&paths) }.unwrap()] {
                assert_eq!(&files.ids(0..1000).unwrap(), ids, "{name}");
                assert_eq!(files.ids(63..130).unwrap(), ids[63..130], "{name}");
                assert_eq!((files.len(), files.largest_id()), (1000, *ids.last().unwrap()));
                assert_eq!(files.ids(7..7).unwrap(), [0u32; 0]);
                fails(files.ids(999..1001), &["1001", "1000"]);
                let one = TokenFiles::read(&paths[..1]).unwrap();
                assert_eq!(one.hash() == files.hash(), paths.len() == 1, "{name}");
            }
        }
    }
    assert!(folder.path().join("a_000015.bin").exists() && !folder.path().join("a_000016.bin").exists());
    // A name with another dot keeps it.
    let dotted = written(&folder.path().join("v1.0.bin"), TokenFormat::Raw, DType::U16, &narrow, Some(600));
    assert_eq!(dotted, [folder.path().join("v1.0_000000.bin"), folder.path().join("v1.0_000001.bin")]);
    assert_eq!(TokenFiles::read(&dotted).unwrap().ids(0..1000).unwrap(), narrow);
    // The bytes of llm.c and nanoGPT, and an array that NumPy reads.
    let bytes = std::fs::read(folder.path().join("a.bin")).unwrap();
    let word = |at: usize| i32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().unwrap());
    assert_eq!((word(0), word(1), word(2), word(3), bytes.len()), (20_240_520, 1, 1000, 0, 1024 + 2000));
    let bytes = std::fs::read(folder.path().join("b.bin")).unwrap();
    let word = |at: usize| i32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().unwrap());
    assert_eq!((word(0), word(1), word(2), bytes.len()), (20_240_801, 7, 1000, 1024 + 4000));
    assert_eq!(std::fs::read(folder.path().join("c.bin")).unwrap()[..4], [0, 0, 65, 0]);
    let array = npy::read(folder.path().join("e.npy")).unwrap();
    assert_eq!((array.shape(), array.as_slice::<u32>().unwrap()), (&[1000][..], &*wide));
}

#[test]
fn damaged_files_are_errors_of_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    written(&path, TokenFormat::Llmc, DType::U16, &[1, 2, 3], None);
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8], words: &[&str]| {
        std::fs::write(&path, bytes).unwrap();
        // SAFETY: nobody else writes the file.
        for result in [TokenFiles::read([&path]), unsafe { TokenFiles::map([&path]) }] {
            assert!(matches!(fails(result, words), Error::File { .. }));
        }
    };
    refused(&whole[..whole.len() - 1], &["a.bin", "truncated", "1029", "1030", "3 ids"]);
    refused(&whole[..1000], &["truncated", "1000", "1024"]);
    refused(&whole[..6], &["truncated", "6 bytes", "1024"]);
    refused(&[&*whole, &[0; 2]].concat(), &["longer", "1032", "1030"]);
    let with = |at: usize, value: i32| {
        let mut bytes = whole.clone();
        bytes[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    refused(&with(1, 2), &["version 2", "version 1"]);
    refused(&with(2, -1), &["-1 ids"]);
    refused(&with(2, i32::MAX), &["truncated"]);
    refused(&with(2, 0)[..1024], &["no ids"]);
    refused(b"", &["no ids"]);
    refused(b"abc", &["truncated", "3 bytes", "20240520"]);
    let array = folder.path().join("f.npy");
    npy::write_slice(&array, &[1i64, 2], &[2]).unwrap();
    fails(TokenFiles::read([&array]), &["i64", "u16 or u32"]);
    npy::write_slice(&array, &[1u16, 2], &[1, 2]).unwrap();
    fails(TokenFiles::read([&array]), &["2 dimensions", "one dimension"]);
    fails(TokenFiles::read([folder.path()]), &["a folder"]);
    fails(TokenFiles::read([folder.path().join("none.bin")]), &["no such file"]);
    fails(TokenFiles::read::<&Path>([]), &["no files"]);
}

#[test]
fn a_writer_refuses_ids_that_do_not_fit_and_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    std::fs::write(&path, b"old").unwrap();
    let mut writer = TokenWriter::create(&path, TokenFormat::Raw, DType::U16, None).unwrap();
    fails(writer.write(&[1, 65_536]), &["65536", "65535", "u32"]);
    drop(writer);
    let writer = TokenWriter::create(&path, TokenFormat::Llmc, DType::U32, None).unwrap();
    assert!(writer.is_empty());
    fails(writer.finish(), &["no ids"]);
    fails(TokenWriter::create(&path, TokenFormat::Raw, DType::U32, None), &["u32", "header", "u16"]);
    fails(TokenWriter::create(&path, TokenFormat::Npy, DType::I64, None), &["i64", "u16 or u32"]);
    fails(TokenWriter::create(&path, TokenFormat::Npy, DType::U16, Some(0)), &["0 ids"]);
    let nowhere = folder.path().join("none/a.bin");
    let error = fails(TokenWriter::create(&nowhere, TokenFormat::Llmc, DType::U16, None), &["none/a.bin"]);
    assert!(matches!(error, Error::FileNotWritten { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

/// A text whose ids are positions.
fn positions(folder: &Path, count: u32, shard: u64) -> TokenizedText {
    let ids: Vec<u32> = (0..count).collect();
    let paths = written(&folder.join("p.bin"), TokenFormat::Llmc, DType::U32, &ids, Some(shard));
    TokenizedText::from_files(TokenFiles::read(&paths).unwrap()).unwrap().with_training_fraction(1.0).unwrap()
}

fn inputs(batches: &Batches, number: u64) -> Vec<i64> {
    let batch = batches.batch(number, &Device::cpu()).unwrap();
    let (inputs, targets) = (batch.inputs.to_vec::<i64>().unwrap(), batch.targets.to_vec::<i64>().unwrap());
    assert!(inputs.iter().zip(&targets).all(|(input, target)| input + 1 == *target));
    inputs
}

#[test]
fn a_shuffled_epoch_has_every_window_once() {
    let folder = tempfile::tempdir().unwrap();
    // 20 windows of 5 ids and two that are left out, over files whose borders cut windows.
    let text = positions(folder.path(), 103, 17);
    let batches = Batches::new(&text, Split::Training, 4, 5, 9).unwrap().shuffled();
    let starts = |epoch: u64| -> Vec<i64> {
        (0..5).flat_map(|at| inputs(&batches, epoch * 5 + at).into_iter().step_by(5)).collect()
    };
    let epochs: Vec<Vec<i64>> = (0..3).map(starts).collect();
    for epoch in &epochs {
        let mut sorted = epoch.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq((0..100).step_by(5)) && sorted != *epoch, "{epoch:?}");
    }
    assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
    let other = Batches::new(&text, Split::Training, 4, 5, 10).unwrap().shuffled();
    assert_ne!(inputs(&other, 0), inputs(&batches, 0), "seeds differ");
    assert_eq!(inputs(&batches, u64::MAX).len(), 20);
    // A batch may be larger than an epoch.
    let large = Batches::new(&text, Split::Training, 50, 5, 9).unwrap().shuffled();
    assert_eq!(inputs(&large, 0)[..100], (0..5).flat_map(|at| inputs(&batches, at)).collect::<Vec<_>>()[..]);
}

#[test]
fn a_shuffled_run_resumes_at_any_batch() {
    let folder = tempfile::tempdir().unwrap();
    let text = positions(folder.path(), 200, 200);
    let mut whole = Batches::new(&text, Split::Training, 3, 4, 1).unwrap().shuffled();
    let cpu = Device::cpu();
    let next = |batches: &mut Batches| batches.next_batch(&cpu).unwrap().inputs.to_vec::<i64>().unwrap();
    let all: Vec<_> = (0..30).map(|_| next(&mut whole)).collect();
    let mut resumed = Batches::new(&text, Split::Training, 3, 4, 1).unwrap().shuffled();
    resumed.set_position(17);
    let rest: Vec<_> = (17..30).map(|_| next(&mut resumed)).collect();
    assert_eq!(rest, all[17..]);
}

#[test]
fn ranks_share_the_windows_of_one_order() {
    let folder = tempfile::tempdir().unwrap();
    let text = positions(folder.path(), 300, 90);
    let of = |is_shuffled: bool| {
        let batches = Batches::new(&text, Split::Training, 6, 4, 2).unwrap();
        if is_shuffled { batches.shuffled() } else { batches }
    };
    for is_shuffled in [true, false] {
        for number in [0, 5, 40] {
            let alone = inputs(&of(is_shuffled), number);
            for ranks in [1, 2, 3, 6] {
                let shares = (0..ranks)
                    .flat_map(|rank| inputs(&of(is_shuffled).for_rank(rank, ranks).unwrap(), number));
                assert!(shares.eq(alone.iter().copied()), "{ranks} ranks");
            }
        }
    }
    fails(of(true).for_rank(2, 2), &["rank 2 of 2"]);
    fails(of(true).for_rank(0, 0), &["rank 0 of 0"]);
    fails(of(true).for_rank(0, 4), &["6 rows", "4 ranks", "multiple"]);
}

#[test]
fn token_files_are_the_text_that_was_encoded() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..400).map(|at| (at * 7 % 251) as u8).collect();
    let ids: Vec<u32> = bytes.iter().map(|&byte| byte.into()).collect();
    let paths = written(&folder.path().join("t.bin"), TokenFormat::Raw, DType::U16, &ids, Some(150));
    let files = TokenizedText::from_files(TokenFiles::read(&paths).unwrap()).unwrap();
    let text = TokenizedText::new(TextFile::from_bytes(bytes), &ByteTokenizer).unwrap();
    assert_eq!((files.len(), files.range(Split::Validation)), (400, text.range(Split::Validation)));
    assert_eq!(files.unigram_entropy(), text.unigram_entropy());
    let batch = |text: &TokenizedText| {
        let batches = Batches::new(text, Split::Training, 4, 16, 3).unwrap();
        batches.batch(2, &Device::cpu()).unwrap().inputs.to_vec::<i64>().unwrap()
    };
    assert_eq!(batch(&files), batch(&text));
    fails(Batches::new(&files, Split::Validation, 1, 40, 0), &["40 ids", "at least 41"]);
}

#[test]
fn other_files_are_the_validation_part() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, ids: std::ops::Range<u32>, format| {
        let ids: Vec<u32> = ids.collect();
        written(&folder.path().join(name), format, DType::U16, &ids, None)
    };
    let training = file("a.bin", 0..70, TokenFormat::Raw);
    let validation = file("b.npy", 70..100, TokenFormat::Npy);
    let read = |paths: &[PathBuf]| TokenFiles::read(paths).unwrap();
    let text = TokenizedText::from_parts(read(&training), read(&validation));
    assert_eq!((text.range(Split::Training), text.range(Split::Validation)), (0..70, 70..100));
    assert_eq!((text.len(), text.largest_id()), (100, 99));
    assert_eq!(text.ids(68..72).unwrap(), [68, 69, 70, 71]);
    fails(text.ids(99..101), &["101", "100"]);
    let batches = Batches::new(&text, Split::Training, 4, 8, 1).unwrap().shuffled();
    assert!((0..20).flat_map(|number| inputs(&batches, number)).all(|id| id < 69));
    // Another border is another text.
    let both = TokenizedText::from_files(read(&[training, validation].concat())).unwrap();
    assert_eq!(both.ids(0..100).unwrap(), text.ids(0..100).unwrap());
    assert_ne!(both.hash(), text.hash());
    let bytes = TokenizedText::new(TextFile::from_bytes("ab"), &ByteTokenizer).unwrap();
    assert_eq!((bytes.largest_id(), bytes.ids(0..2).unwrap()), (98, vec![97, 98]));
}
