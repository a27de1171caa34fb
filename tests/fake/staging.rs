//! Large copies of plain memory: cut into chunks, right at every length, and whole again after every failure.
//!
//! The threshold is set low here, so that buffers of a few kilobytes are large.

use selvedge::Error;
use selvedge::driver::{Device, DeviceSliceMut, LaunchConfig, Stream};

use super::kernels::PTX;
use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const THRESHOLD: usize = 1000;
const SETTING: (&str, &str) = ("SELVEDGE_STAGING_BYTES", "1000");

const UPLOAD: &str = "cuMemcpyHtoDAsync_v2";
const DOWNLOAD: &str = "cuMemcpyDtoHAsync_v2";
const LOCK: &str = "cuMemHostAlloc";
const NOT_PERMITTED: i32 = 800;
const OUT_OF_MEMORY: i32 = 2;

fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|index| ((index + seed) * 31 % 251) as u8).collect()
}

/// Uploads and downloads by every function, and returns how many driver copies the first of each took.
fn there_and_back(fake: &Fake, stream: &Stream, length: usize, seed: usize) -> Result<(u64, u64), String> {
    let wanted = bytes(length, seed);
    let (uploads, downloads) = (fake.call_count(UPLOAD), fake.call_count(DOWNLOAD));
    let text = |error: Error| error.to_string();
    let mut buffer = stream.upload(&wanted).map_err(text)?;
    let uploads = fake.call_count(UPLOAD) - uploads;
    let found = stream.download(&buffer).map_err(text)?;
    let downloads = fake.call_count(DOWNLOAD) - downloads;
    let same = |what: &str, found: &[u8], wanted: &[u8]| match found == wanted {
        true => Ok(()),
        false => Err(format!("{what} of {length} bytes: other bytes arrived")),
    };
    same("download", &found, &wanted)?;
    let wanted = bytes(length, seed + 1);
    stream.copy_from_host(&wanted, &mut buffer).map_err(text)?;
    let mut found = vec![0; length];
    stream.copy_to_host(&buffer, &mut found).map_err(text)?;
    same("copy_to_host", &found, &wanted)?;
    // A part at an odd place.
    let part = length / 3..length;
    let mut found = vec![0; part.len()];
    stream.copy_to_host(&buffer.slice(part.clone()).map_err(text)?, &mut found).map_err(text)?;
    same("a part", &found, &wanted[part])?;
    Ok((uploads, downloads))
}

/// Asked only where no thread copies: the fake counts the copies of all threads.
fn nothing_under_way(fake: &Fake) -> Result<(), String> {
    match fake.pageable_pending() {
        0 => Ok(()),
        pending => Err(format!("{pending} copies of plain memory are still under way")),
    }
}

/// Child: every length, in both directions, on one thread and on several.
pub fn copies(fake: &Fake) -> Outcome {
    let (first, second) = (Device::new(0)?, Device::new(1)?);
    let stream = first.stream()?;
    for length in [1, 63, THRESHOLD - 1, THRESHOLD, THRESHOLD + 1, 4097, 12_345, 100_003] {
        let counts = there_and_back(fake, &stream, length, length)?;
        nothing_under_way(fake)?;
        let (direct, staged) = ((1, 1), counts.0 > 8 && counts.1 > 8);
        if (length < THRESHOLD && counts != direct) || (length >= THRESHOLD && !staged) {
            return Err(format!("{length} bytes took {counts:?} driver copies").into());
        }
    }
    let odd: Vec<[u8; 3]> = (0..2001u32).map(|index| [index as u8, (index >> 8) as u8, 7]).collect();
    if stream.download(&stream.upload(&odd)?)? != odd {
        return Err("elements of three bytes came back changed".into());
    }
    // Another stream's work is waited for, as by any operation.
    let other = first.stream()?;
    let mut buffer = stream.zeros::<u8>(5000)?;
    for round in 1..20 {
        other.fill(&mut buffer, round)?;
        if stream.download(&buffer)? != vec![round; 5000] {
            return Err("a download did not wait for the fill".into());
        }
        let mut copy = other.zeros::<u8>(5000)?;
        other.copy(&buffer, &mut copy)?;
        stream.copy_from_host(&[round + 100; 5000], &mut buffer)?;
        if stream.download(&copy)? != vec![round; 5000] {
            return Err("an upload did not wait for the copy before it".into());
        }
    }
    drop(buffer);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|index| {
                let device = if index % 2 == 0 { first } else { second };
                scope.spawn(move || -> Result<(), String> {
                    let stream = device.stream().map_err(|error| error.to_string())?;
                    for round in 0..10 {
                        there_and_back(fake, &stream, THRESHOLD + 777 * round, index + round)?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    nothing_under_way(fake)?;
    halves(&stream, &other)?;
    drop((stream, other));
    scenario::settle()?;
    scenario::check_end(fake)
}

/// Two threads copy to and from the halves of one buffer, each on its stream.
fn halves(first: &Stream, second: &Stream) -> Outcome {
    let length = 6001;
    let mut buffer = first.zeros::<u8>(2 * length)?;
    let (mut left, mut right) = buffer.split_at_mut(length)?;
    let part = |stream: &Stream, half: &mut DeviceSliceMut<'_, u8>, seed: usize| -> Result<(), Error> {
        for round in 0..20 {
            let wanted = bytes(length, seed + round);
            stream.copy_from_host(&wanted, half)?;
            assert_eq!(stream.download(half)?, wanted, "the other half's copies are in this one");
            stream.fill(half, round as u8)?;
            assert_eq!(stream.download(half)?, vec![round as u8; length]);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| part(second, &mut right, 100));
        part(first, &mut left, 0)?;
        other.join().map_err(|_| "a thread panicked")??;
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    assert_eq!(second.download(&buffer)?, [[19; 6001], [19; 6001]].concat());
    Ok(())
}

/// Child: what is page-locked already goes as it is.
pub fn locked(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let length = 10 * THRESHOLD;
    let mut buffer = stream.zeros::<u8>(length)?;
    let direct = |what: &str, copies: u64, wanted: bool| match (copies == 1) == wanted {
        true => Ok(()),
        false => Err(format!("{what} took {copies} driver copies")),
    };
    let mut count = fake.call_count(UPLOAD);
    let mut since = || {
        let before = std::mem::replace(&mut count, fake.call_count(UPLOAD));
        count - before
    };
    let mut pinned = device.pinned::<u8>(length)?;
    fake.host_write(&pinned);
    pinned.fill(3);
    stream.copy_from_host(&pinned, &mut buffer)?;
    direct("page-locked memory", since(), true)?;
    stream.copy_from_host(&pinned[17..17 + 2 * THRESHOLD], &mut buffer.slice_mut(..2 * THRESHOLD)?)?;
    direct("a part of it", since(), true)?;
    let registered = device.register(vec![4u8; length])?;
    stream.copy_from_host(&registered, &mut buffer)?;
    direct("a registered vector", since(), true)?;
    let vector = registered.into_vec()?;
    stream.copy_from_host(&vector, &mut buffer)?;
    direct("the vector that came back", since(), false)?;
    fake.host_write(&pinned);
    stream.copy_to_host(&buffer, &mut pinned)?;
    fake.host_read(&pinned);
    if pinned[..] != vector[..] {
        return Err("other bytes arrived".into());
    }
    drop((buffer, pinned, stream));
    scenario::settle()?;
    scenario::check_end(fake)
}

/// Child: failures in the middle leave nothing behind, and without page-locked memory the driver makes the copies.
pub fn failures(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let wanted = bytes(20_000, 1);
    let mut buffer = stream.zeros::<u8>(wanted.len())?;

    fake.fail(LOCK, 0, OUT_OF_MEMORY);
    let counts = there_and_back(fake, &stream, wanted.len(), 2)?;
    nothing_under_way(fake)?;
    fake.clear_failures();
    if counts != (1, 1) {
        return Err(format!("without page-locked memory: {counts:?} driver copies").into());
    }
    // The third chunk cannot be locked, nor after a trim: the ring has two.
    fake.fail(LOCK, 3, OUT_OF_MEMORY);
    fake.fail(LOCK, 4, OUT_OF_MEMORY);
    let counts = there_and_back(fake, &stream, wanted.len(), 3)?;
    nothing_under_way(fake)?;
    fake.clear_failures();
    if counts.0 < 8 || counts.1 < 8 {
        return Err(format!("with two chunks: {counts:?} driver copies").into());
    }

    let calls = [UPLOAD, DOWNLOAD, "cuEventRecord", "cuEventSynchronize", "cuStreamSynchronize"];
    for function in calls {
        for nth in [1, 2, 6] {
            fake.fail(function, nth, NOT_PERMITTED);
            let mut host = vec![9u8; wanted.len()];
            let up = stream.copy_from_host(&wanted, &mut buffer);
            let down = stream.copy_to_host(&buffer, &mut host);
            fake.clear_failures();
            let named = |result: &Result<(), Error>| match result {
                Ok(()) => true,
                Err(error) => error.to_string().contains(function.trim_end_matches("_v2")),
            };
            if !named(&up) || !named(&down) {
                return Err(format!("{function} refused: {up:?}, {down:?}").into());
            }
            // A stream is waited for once a copy; everything else is called for every chunk.
            if function != "cuStreamSynchronize" && up.is_ok() && down.is_ok() {
                return Err(format!("{function} was refused and nobody got an error").into());
            }
            there_and_back(fake, &stream, wanted.len(), nth as usize)?;
            nothing_under_way(fake)?;
        }
    }
    // A copy that could not be waited for keeps its chunks: those of another stream must not meet it.
    let other = device.stream()?;
    let apart = other.upload(&wanted)?;
    for function in ["cuStreamSynchronize", "cuCtxSynchronize"] {
        fake.fail(function, 1, NOT_PERMITTED);
    }
    if stream.copy_from_host(&wanted, &mut buffer).is_ok() {
        return Err("a wait was refused and nobody got an error".into());
    }
    fake.clear_failures();
    if other.download(&apart)? != wanted {
        return Err("another stream's copy met the one before".into());
    }
    drop((buffer, stream, apart, other));
    scenario::settle()?;
    scenario::check_end(fake)?;

    // A kernel that faults before the copy: the copy says so.
    let (stream, module) = (device.stream()?, device.load(PTX.as_bytes())?);
    let fault = module.function("fault_now")?;
    let mut buffer = stream.upload(&wanted)?;
    // SAFETY: the fake driver's kernel touches nothing.
    unsafe { fault.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer,))? };
    match stream.download(&buffer) {
        Err(Error::KernelFault { kernel, .. }) if kernel == "fault_now" => {}
        other => return Err(format!("the fault was seen as {:?}", other.map(drop)).into()),
    }
    match stream.upload(&wanted) {
        Err(Error::ContextLost { device: 0, .. }) => {}
        other => return Err(format!("after the loss: {other:?}").into()),
    }
    drop((buffer, fault, module, stream));
    there_and_back(fake, &Device::new(1)?.stream()?, wanted.len(), 5)?;
    nothing_under_way(fake)?;
    match fake.violations() {
        none if none.is_empty() => Ok(()),
        violations => Err(violations.join("\n").into()),
    }
}

/// Child: a setting that says nothing is an error that names it.
pub fn setting(_: &Fake) -> Outcome {
    match Device::new(0)?.stream()?.upload(&[1u8]) {
        Err(error) if error.to_string().contains("SELVEDGE_STAGING_BYTES") => Ok(()),
        other => Err(format!("a wrong setting answers {other:?}").into()),
    }
}

pub fn tests() -> Vec<Test> {
    let test = |name: &'static str, child: &'static str, setting: (&'static str, &'static str)| {
        Test::new(name, move || {
            for strict in ["0", "1"] {
                let settings = [setting, ("FAKE_STRICT", strict)];
                children::must_succeed(&Variant::new(12040), child, &[], &settings)?;
            }
            Ok(())
        })
    };
    vec![
        test("staging::copies_of_every_length", "staging_copies", SETTING),
        test("staging::page_locked_memory_goes_as_it_is", "staging_locked", SETTING),
        test("staging::failures_leave_nothing_behind", "staging_failures", SETTING),
        test("staging::a_wrong_setting_is_named", "staging_setting", ("SELVEDGE_STAGING_BYTES", "many")),
    ]
}
