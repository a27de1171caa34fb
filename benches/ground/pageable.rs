//! Copies between plain host memory and the device, beside the bare driver's copies of pinned and of plain memory.

use std::time::Instant;

use selvedge::driver::{Device, DeviceBuffer, Stream};

use crate::Options;
use crate::harness::bare::{Address, Bare, Pinned};
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Figure, Rule, Unit};
use crate::harness::turns::{Subject, Turns, measure as turns};

/// Size, its name, rounds. The smaller ones show where cutting a copy into chunks begins to pay (16 MiB).
const SIZES: [(usize, &str, usize); 4] =
    [(1 << 24, "16 MiB", 60), (1 << 25, "32 MiB", 60), (1 << 27, "128 MiB", 40), (1 << 30, "1 GiB", 20)];
/// At this size the goal counts.
const GOAL_AT: usize = 1 << 30;
const PINNED: &str = "the bare driver's pinned copy";
const PLAIN: &str = "the bare driver's copy of plain memory";
const POISON: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// Uploads and downloads of four sizes.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "pageable",
        "Copies between plain memory and the device",
        "The host's time from the call to its end, by which the copy is done. Ours is from and to plain memory in all \
         figures; 'into a slice' writes memory that was written before, 'as a vector' makes a new vector each time, \
         its page faults included and its release not. Random data that changes every round; all of it is compared \
         at the end.",
    )?;
    let stream = Device::new(0)?.stream()?;
    for (bytes, name, rounds) in SIZES {
        let mut bench = Bench::new(bare, &stream, bytes, name, options.turns(5, rounds))?;
        let figures = bench.figures();
        bench.finish()?;
        for figure in figures? {
            recorder.add(figure);
        }
    }
    recorder.finish(&options.out)
}

/// Both sides' memory of one size.
struct Bench<'a> {
    bare: &'a Bare,
    stream: &'a Stream,
    name: &'static str,
    turns: Turns,
    data: Vec<u64>,
    buffer: DeviceBuffer<u64>,
    address: Address,
    pinned: Pinned,
}

/// Changes both ends, so that a copy which did not happen in this round is seen.
fn mark(words: &mut [u64], mark: u64) {
    if let [first, .., last] = words {
        (*first, *last) = (mark, !mark);
    }
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

impl<'a> Bench<'a> {
    fn new(
        bare: &'a Bare,
        stream: &'a Stream,
        bytes: usize,
        name: &'static str,
        turns: Turns,
    ) -> Result<Bench<'a>, Failure> {
        let mut data = vec![0u64; bytes / 8];
        Random::new(bytes as u64).fill(&mut data);
        let mut pinned = bare.pinned(bytes)?;
        pinned.words().copy_from_slice(&data);
        let buffer = stream.zeros::<u64>(data.len())?;
        stream.synchronize()?;
        Ok(Bench { bare, stream, name, turns, data, buffer, address: bare.allocate(bytes)?, pinned })
    }

    fn figures(&mut self) -> Result<Vec<Figure>, Failure> {
        Ok(vec![
            self.upload(false)?,
            self.upload(true)?,
            self.download_into(false)?,
            self.download_into(true)?,
            self.download(false)?,
            self.download(true)?,
        ])
    }

    fn finish(self) -> Result<(), Failure> {
        self.bare.free(self.address)?;
        self.bare.free_pinned(self.pinned)
    }

    fn subject<'b>(&self, name: &'b str, plain: bool) -> Subject<'b> {
        let bytes = size_of_val(&self.data[..]) as u64;
        Subject {
            name,
            against: if plain { PLAIN } else { PINNED },
            unit: Unit::Microseconds,
            bytes: Some((bytes, bytes)),
            rule: Rule::Speed,
            goal: (!plain && bytes == GOAL_AT as u64).then_some(0.8),
        }
    }

    /// Checks that the data came back: its ends in every round, all of it in the last.
    fn arrived(&self, what: &str, words: &[u64], all: bool) -> Result<(), Failure> {
        let (found, wanted) = match all {
            true => (words, &self.data[..]),
            false => (&words[words.len() - 1..], &self.data[self.data.len() - 1..]),
        };
        if found == wanted && words.first() == self.data.first() {
            return Ok(());
        }
        Err(format!("{what} of {}: other data arrived", self.name).into())
    }

    fn upload(&mut self, plain: bool) -> Result<Figure, Failure> {
        let beside = if plain { "plain" } else { "pinned" };
        let subject_name = format!("upload {}, beside {beside}", self.name);
        let subject = self.subject(&subject_name, plain);
        let Bench { bare, stream, address, .. } = *self;
        let (mut own_round, mut bare_round) = (0u64, 0u64);
        let mut bare_data = if plain { self.data.clone() } else { Vec::new() };
        let (data, buffer, pinned) = (&mut self.data, &mut self.buffer, &mut self.pinned);
        let figure = turns(
            self.turns,
            &subject,
            || {
                own_round += 1;
                mark(data, own_round);
                let start = Instant::now();
                stream.copy_from_host(data, buffer)?;
                Ok(micros(start))
            },
            || {
                bare_round += 1;
                if plain {
                    mark(&mut bare_data, bare_round);
                    let start = Instant::now();
                    bare.upload_plain(address, &bare_data)?;
                    return Ok(micros(start));
                }
                mark(pinned.words(), bare_round);
                let start = Instant::now();
                bare.upload(address, pinned)?;
                bare.synchronize()?;
                Ok(micros(start))
            },
        )?;
        // Both by the driver's pinned copy, which is not what is measured of ours.
        self.pinned.words().fill(POISON);
        self.bare.download(&mut self.pinned, self.buffer.address())?;
        self.bare.synchronize()?;
        if self.pinned.words() != &self.data[..] {
            return Err(format!("own upload of {}: the device holds other data", self.name).into());
        }
        // As many rounds as ours, so the same data.
        self.pinned.words().fill(POISON);
        self.bare.download(&mut self.pinned, self.address)?;
        self.bare.synchronize()?;
        if self.pinned.words() != &self.data[..] {
            return Err(format!("bare upload of {}: the device holds other data", self.name).into());
        }
        Ok(figure)
    }

    /// The reference's side of a download.
    fn bare_download(&mut self, plain: Option<&mut [u64]>) -> Result<f64, Failure> {
        let Some(words) = plain else {
            mark(self.pinned.words(), POISON);
            let start = Instant::now();
            self.bare.download(&mut self.pinned, self.address)?;
            self.bare.synchronize()?;
            return Ok(micros(start));
        };
        mark(words, POISON);
        let start = Instant::now();
        self.bare.download_plain(words, self.address)?;
        Ok(micros(start))
    }

    /// Into memory that was written before, on both sides.
    fn download_into(&mut self, plain: bool) -> Result<Figure, Failure> {
        let beside = if plain { "plain" } else { "pinned" };
        let name = format!("download {} into a slice, beside {beside}", self.name);
        let subject = self.subject(&name, plain);
        let (mut own, mut theirs) = (vec![POISON; self.data.len()], vec![POISON; self.data.len()]);
        let rounds = self.turns;
        let this = std::cell::RefCell::new(&mut *self);
        let figure = turns(
            rounds,
            &subject,
            || {
                let this = this.borrow();
                mark(&mut own, POISON);
                let start = Instant::now();
                this.stream.copy_to_host(&this.buffer, &mut own)?;
                let time = micros(start);
                this.arrived("own download", &own, false)?;
                Ok(time)
            },
            || this.borrow_mut().bare_download(plain.then_some(&mut theirs[..])),
        )?;
        self.arrived("own download", &own, true)?;
        self.bare_arrived(plain.then_some(&theirs[..]))?;
        Ok(figure)
    }

    /// As a new vector; the reference's memory is there already where it is pinned, and new where it is plain.
    fn download(&mut self, plain: bool) -> Result<Figure, Failure> {
        let beside = if plain { "plain" } else { "pinned" };
        let name = format!("download {} as a vector, beside {beside}", self.name);
        let subject = self.subject(&name, plain);
        let rounds = self.turns;
        let this = std::cell::RefCell::new(&mut *self);
        let figure = turns(
            rounds,
            &subject,
            || {
                let this = this.borrow();
                let start = Instant::now();
                let words = this.stream.download(&this.buffer)?;
                let time = micros(start);
                this.arrived("own download", &words, false)?;
                Ok(time)
            },
            || {
                if !plain {
                    return this.borrow_mut().bare_download(None);
                }
                let this = this.borrow();
                let start = Instant::now();
                let mut words = vec![0; this.data.len()];
                this.bare.download_plain(&mut words, this.address)?;
                let time = micros(start);
                this.arrived("bare download", &words, false)?;
                Ok(time)
            },
        )?;
        self.arrived("own download", &self.stream.download(&self.buffer)?, true)?;
        if !plain {
            self.bare_arrived(None)?;
        }
        Ok(figure)
    }

    fn bare_arrived(&mut self, plain: Option<&[u64]>) -> Result<(), Failure> {
        let found = match plain {
            Some(words) => words == &self.data[..],
            None => self.pinned.words() == &self.data[..],
        };
        if found { Ok(()) } else { Err(format!("bare download of {}: other data arrived", self.name).into()) }
    }
}
