//! Device times of a trace from CUPTI's records.
//!
//! [`CuptiTimes`] puts each record with the operation under whose number its driver call was made, and places it on the host's
//! clock, from which CUPTI's differs by an offset. The offset is measured by reading CUPTI's clock between two readings of the
//! host's; the narrowest of several tries counts, and half its width is the error.
//!
//! Invariants: work that overlaps other work of its stream (nodes of a graph, programmatic launches) is on a track of its own;
//! a record whose driver call belongs to no operation of the library is shown under CUPTI's number of its stream.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::cupti::{DeviceRecord, RecordedWork, Session};
use super::device_times::{Issued, RENEW, arrow};
use super::stream_work::WorkKind;
use crate::error::Result;
use crate::trace::{self, Arguments, Collected, Event, Phase, Track};

const TRIES: usize = 16;
/// A record without a number waits so many looks for it.
const MAX_LOOKS: u32 = 4;
/// The most operations whose descriptions wait for further records.
const MAX_WORKS: usize = 1 << 17;
/// The first track of streams that are not of the library.
const OTHER_STREAMS: u64 = 1 << 40;
/// The tracks of a stream differ by this.
const NEXT_TRACK: u64 = 1 << 32;

/// An operation under its number.
struct NumberedWork {
    issued: Issued,
    has_record: bool,
}

/// The host's time less CUPTI's, in nanoseconds.
#[derive(Clone, Copy)]
struct Offset {
    difference: i128,
    error: u64,
    measured: u64,
}

/// See the module's text.
pub(super) struct CuptiTimes {
    session: Session,
    offset: Option<Offset>,
    works: BTreeMap<u64, NumberedWork>,
    numbers: HashMap<u32, u64>,
    /// Records whose operation is unknown so far, with the number of looks.
    waiting: Vec<(DeviceRecord, u32)>,
    /// The end of the last event on each track of a stream, by device and stream.
    streams: BTreeMap<(i32, u64), Vec<u64>>,
    /// Operations without a record so far.
    pending: usize,
}

impl CuptiTimes {
    /// Starts a session.
    pub(super) fn start() -> Result<CuptiTimes> {
        let session = Session::start()?;
        Ok(CuptiTimes {
            session,
            offset: None,
            works: BTreeMap::new(),
            numbers: HashMap::new(),
            waiting: Vec::new(),
            streams: BTreeMap::new(),
            pending: 0,
        })
    }

    /// The source's name in the file.
    pub(super) fn name(&self) -> String {
        format!("CUPTI {}", self.session.version())
    }

    /// Takes an operation that was issued under a number. Returns how many older ones without a record were given up for it.
    pub(super) fn add(&mut self, number: u64, issued: Issued) -> u64 {
        self.pending += 1;
        self.works.insert(number, NumberedWork { issued, has_record: false });
        let mut given_up = 0;
        while self.works.len() > MAX_WORKS
            && let Some((_, old)) = self.works.pop_first()
        {
            given_up += usize::from(!old.has_record);
        }
        self.pending -= given_up;
        given_up as u64
    }

    /// Returns the operations without a record.
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Forgets the operations of lost contexts. Returns how many had no record.
    pub(super) fn forget_lost(&mut self) -> u64 {
        let mut without_record = 0;
        self.works.retain(|_, work| {
            let is_lost = work.issued.is_lost();
            without_record += usize::from(is_lost && !work.has_record);
            !is_lost
        });
        self.pending -= without_record;
        without_record as u64
    }

    /// Appends the events of finished work; with `last` of all that CUPTI has.
    pub(super) fn collect(&mut self, devices: &[i32], out: &mut Collected, last: bool) -> Result<()> {
        self.renew_offset(devices, &mut out.events)?;
        let Some(offset) = self.offset else { return Ok(()) };
        let new = self.session.flush(last)?;
        out.lost += self.session.dropped();
        self.numbers.extend(new.numbers);
        let mut records = std::mem::take(&mut self.waiting);
        records.extend(new.work.into_iter().map(|record| (record, 0)));
        records.sort_by_key(|(record, _)| record.start);
        for (record, looks) in records {
            let number = self.numbers.get(&record.correlation).copied();
            let is_known = number.is_some_and(|number| self.works.contains_key(&number));
            if !is_known && looks < MAX_LOOKS && !last {
                self.waiting.push((record, looks + 1));
                continue;
            }
            if record.start == 0 || record.end < record.start {
                // CUPTI had no memory for the times.
                out.lost += 1;
                continue;
            }
            self.place(number, record, offset, &mut out.events);
        }
        // Numbers of driver calls grow, and those of calls without device work are of no use.
        if self.numbers.len() > 2 * MAX_WORKS {
            let oldest = self.works.keys().next().copied().unwrap_or(u64::MAX);
            self.numbers.retain(|_, number| *number >= oldest);
        }
        Ok(())
    }

    /// Appends the event of a record, and the arrow from its operation's call to the first one.
    fn place(&mut self, number: Option<u64>, record: DeviceRecord, offset: Offset, out: &mut Vec<Event>) {
        let on_host = |time: u64| u64::try_from(i128::from(time) + offset.difference).unwrap_or(0);
        let (start, end) = (on_host(record.start), on_host(record.end));
        let device = i32::try_from(record.device).unwrap_or(i32::MAX);
        let work = number.and_then(|number| self.works.get_mut(&number));
        let (name, mut arguments, stream, launched) = match work {
            Some(work) => {
                let is_first = !std::mem::replace(&mut work.has_record, true);
                self.pending -= usize::from(is_first);
                let issued = &work.issued;
                let launched = is_first.then_some((issued.host, issued.launched));
                match (issued.work.kind, &record.work) {
                    // The bytes and operations are those of the whole call.
                    (WorkKind::Kernel, RecordedWork::Kernel { .. }) if is_first => {
                        (issued.work.name.clone(), issued.work.arguments.clone(), issued.stream, launched)
                    }
                    (WorkKind::Copy, RecordedWork::Copy { .. })
                    | (WorkKind::Fill, RecordedWork::Fill { .. }) => {
                        (issued.work.name.clone(), Arguments::new(), issued.stream, launched)
                    }
                    _ => (record.work.name(), Arguments::new(), issued.stream, launched),
                }
            }
            None => (record.work.name(), Arguments::new(), OTHER_STREAMS + u64::from(record.stream), None),
        };
        record.work.describe(&mut arguments);
        if record.node != 0 {
            arguments.push(("graph_node", record.node.into()));
        }
        let launch = launched.map_or(0, |(_, time)| time);
        // The clock's error puts no work before its launch.
        let start = start.max(launch);
        let end = end.max(start);
        let track = self.track(device, stream, (start, end), out);
        out.push(Event {
            phase: Phase::Complete { duration: end - start },
            category: record.work.category(),
            name,
            start,
            track: Some(track),
            arguments,
        });
        if let Some((host, launched)) = launched {
            arrow((launched, host), (start, track), out);
        }
    }

    /// Returns the first track of a stream that is free at the start, and names a new one.
    fn track(&mut self, device: i32, stream: u64, (start, end): (u64, u64), out: &mut Vec<Event>) -> Track {
        let ends = self.streams.entry((device, stream)).or_default();
        let index = ends.iter().position(|end| *end <= start).unwrap_or(ends.len());
        let track = Track::stream(device, stream + NEXT_TRACK * index as u64);
        match ends.get_mut(index) {
            Some(last) => *last = end,
            None => {
                ends.push(end);
                let mut name = match stream.checked_sub(OTHER_STREAMS) {
                    Some(number) => format!("stream {number} of CUPTI"),
                    None => format!("stream {stream}"),
                };
                if index > 0 {
                    name.push_str(&format!(", beside ({index})"));
                }
                out.push(Event::metadata("thread_name", track, vec![("name", name.into())]));
            }
        }
        track
    }

    fn renew_offset(&mut self, devices: &[i32], events: &mut Vec<Event>) -> Result<()> {
        if self.offset.is_some_and(|offset| trace::now().saturating_sub(offset.measured) < RENEW) {
            return Ok(());
        }
        let mut best: Option<Offset> = None;
        for _ in 0..TRIES {
            let before = trace::now();
            let time = self.session.now()?;
            let measured = trace::now();
            let error = (measured - before).div_ceil(2);
            if best.is_none_or(|best| error < best.error) {
                let difference = i128::from(before + error) - i128::from(time);
                best = Some(Offset { difference, error, measured });
            }
        }
        let Some(best) = best else { return Ok(()) };
        events.extend(devices.iter().map(|&device| {
            Event::metadata(
                "selvedge_calibration",
                Track::stream(device, 0),
                vec![
                    ("device", device.into()),
                    ("source", self.name().into()),
                    ("at_us", (best.measured as f64 / 1e3).into()),
                    ("error_us", (best.error as f64 / 1e3).into()),
                ],
            )
        }));
        self.offset = Some(best);
        Ok(())
    }
}

impl RecordedWork {
    fn category(&self) -> &'static str {
        match self {
            RecordedWork::Kernel { .. } => WorkKind::Kernel.device(),
            RecordedWork::Copy { .. } => WorkKind::Copy.device(),
            RecordedWork::Fill { .. } => WorkKind::Fill.device(),
        }
    }

    fn name(&self) -> Cow<'static, str> {
        match self {
            RecordedWork::Kernel { symbol, .. } => symbol.clone().into(),
            RecordedWork::Copy { .. } => "copy".into(),
            RecordedWork::Fill { .. } => "fill".into(),
        }
    }

    /// Appends the arguments that the operation's description has not.
    fn describe(&self, arguments: &mut Arguments) {
        let mut add = |name: &'static str, value: trace::Value| {
            if !arguments.iter().any(|(other, _)| *other == name) {
                arguments.push((name, value));
            }
        };
        match self {
            RecordedWork::Kernel { symbol, grid, block } => {
                add("symbol", symbol.clone().into());
                add("grid", (*grid).into());
                add("block", (*block).into());
            }
            RecordedWork::Copy { bytes } | RecordedWork::Fill { bytes } => add("bytes", (*bytes).into()),
        }
    }
}
