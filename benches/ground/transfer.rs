//! Copies between pinned host memory and the device, beside `cuMemcpyHtoDAsync` and `cuMemcpyDtoHAsync`.

use std::time::Instant;

use selvedge::driver::{Device, Stream};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Figure, Rule, Unit};
use crate::harness::turns::{Subject, Turns, measure as turns};

/// Size, its name, how many copies a round times one after the other, rounds.
const SIZES: [(usize, &str, usize, usize); 4] = [
    (1 << 12, "4 KB", 64, 200),
    (1 << 20, "1 MB", 16, 100),
    (1 << 26, "64 MB", 1, 60),
    (1 << 30, "1 GB", 1, 20),
];
const POISON: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// Uploads and downloads of four sizes.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "transfer",
        "Copies between pinned memory and the device",
        "The host's time from the call to the end of the copy, waited for, as the mean over the copies of a round; \
         both sides from pinned memory of their own, in our case through an owned pinned buffer that the transfer's \
         handle gives back. Random data that changes every round; all of it is compared at the end.",
    )?;
    let device = Device::new(0)?;
    let stream = device.stream()?;
    for (bytes, name, copies, rounds) in SIZES {
        let size = Size { bytes, name, copies, turns: options.turns(5, rounds) };
        recorder.add(upload(bare, &device, &stream, &size)?);
        recorder.add(download(bare, &device, &stream, &size)?);
    }
    recorder.finish(&options.out)
}

struct Size {
    bytes: usize,
    name: &'static str,
    copies: usize,
    turns: Turns,
}

impl Size {
    fn subject<'a>(&self, name: &'a str, against: &'a str) -> Subject<'a> {
        Subject {
            name,
            against,
            unit: Unit::Microseconds,
            bytes: Some((self.bytes as u64, self.bytes as u64)),
            rule: Rule::Speed,
            goal: Some(0.99),
        }
    }

    fn each(&self, start: Instant) -> f64 {
        start.elapsed().as_secs_f64() * 1e6 / self.copies as f64
    }
}

/// Changes both ends, so that a copy which did not happen in this round is seen.
fn mark(words: &mut [u64], mark: u64) {
    if let [first, .., last] = words {
        (*first, *last) = (mark, !mark);
    }
}

fn upload(bare: &Bare, device: &Device, stream: &Stream, size: &Size) -> Result<Figure, Failure> {
    let words = size.bytes / 8;
    let mut pinned = device.pinned::<u64>(words)?;
    Random::new(size.bytes as u64).fill(&mut pinned);
    let mut buffer = stream.zeros::<u64>(words)?;
    let mut bare_pinned = bare.pinned(size.bytes)?;
    Random::new(!size.bytes as u64).fill(bare_pinned.words());
    let address = bare.allocate(size.bytes)?;

    // A transfer takes the pinned buffer and gives it back; between rounds it waits here.
    let mut idle = Some(pinned);
    let (mut own_round, mut bare_round) = (0u64, 0u64);
    let figure = turns(
        size.turns,
        &size.subject(&format!("upload {}", size.name), "cuMemcpyHtoDAsync"),
        || {
            let mut pinned = idle.take().ok_or("the pinned buffer was lost")?;
            own_round += 1;
            mark(&mut pinned, own_round);
            let start = Instant::now();
            for _ in 0..size.copies {
                pinned = stream.upload_async(pinned, &mut buffer)?.wait()?;
            }
            let each = size.each(start);
            idle = Some(pinned);
            Ok(each)
        },
        || {
            bare_round += 1;
            mark(bare_pinned.words(), bare_round);
            let start = Instant::now();
            for _ in 0..size.copies {
                bare.upload(address, &bare_pinned)?;
                bare.synchronize()?;
            }
            Ok(size.each(start))
        },
    )?;

    let sent = idle.ok_or("the pinned buffer was lost")?;
    if stream.download(&buffer)?[..] != sent[..] {
        return Err(format!("own upload of {}: the device holds other data", size.name).into());
    }
    drop((buffer, sent));
    let mut back = bare.pinned(size.bytes)?;
    bare.download(&mut back, address)?;
    bare.synchronize()?;
    if back.words() != bare_pinned.words() {
        return Err(format!("bare upload of {}: the device holds other data", size.name).into());
    }
    bare.free(address)?;
    bare.free_pinned(back)?;
    bare.free_pinned(bare_pinned)?;
    Ok(figure)
}

fn download(bare: &Bare, device: &Device, stream: &Stream, size: &Size) -> Result<Figure, Failure> {
    let words = size.bytes / 8;
    let mut data = vec![0u64; words];
    Random::new(size.bytes as u64 + 1).fill(&mut data);
    let buffer = stream.upload(&data)?;
    let pinned = device.pinned::<u64>(words)?;
    let mut bare_pinned = bare.pinned(size.bytes)?;
    bare_pinned.words().copy_from_slice(&data);
    let address = bare.allocate(size.bytes)?;
    bare.upload(address, &bare_pinned)?;
    bare.synchronize()?;
    bare_pinned.words().fill(POISON);

    let (first, last) = (data[0], data[words - 1]);
    let arrived = |side: &str, words: &[u64]| match words {
        [start, .., end] if (*start, *end) == (first, last) => Ok(()),
        _ => Err(format!("{side} download of {}: other data arrived", size.name)),
    };
    let mut idle = Some(pinned);
    let figure = turns(
        size.turns,
        &size.subject(&format!("download {}", size.name), "cuMemcpyDtoHAsync"),
        || {
            let mut pinned = idle.take().ok_or("the pinned buffer was lost")?;
            mark(&mut pinned, POISON);
            let start = Instant::now();
            for _ in 0..size.copies {
                pinned = stream.download_async(&buffer, pinned)?.wait()?;
            }
            let each = size.each(start);
            arrived("own", &pinned)?;
            idle = Some(pinned);
            Ok(each)
        },
        || {
            mark(bare_pinned.words(), POISON);
            let start = Instant::now();
            for _ in 0..size.copies {
                bare.download(&mut bare_pinned, address)?;
                bare.synchronize()?;
            }
            let each = size.each(start);
            arrived("bare", bare_pinned.words())?;
            Ok(each)
        },
    )?;

    let received = idle.ok_or("the pinned buffer was lost")?;
    if received[..] != data[..] || bare_pinned.words() != &data[..] {
        return Err(format!("download of {}: other data arrived", size.name).into());
    }
    bare.free(address)?;
    bare.free_pinned(bare_pinned)?;
    Ok(figure)
}
