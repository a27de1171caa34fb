//! Power input: what ranges of neurons receive in every burst.

use std::collections::HashSet;
use std::ops::Range;

use super::backend::Injection;
use super::network::Network;
use super::simulation::Simulation;
use crate::{Error, Result};

/// Ranges of neurons with their input. The inputs of overlapping ranges add up.
#[derive(Default)]
pub(super) struct PowerInput(Vec<(Range<u32>, Injection)>);

impl PowerInput {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the input of a burst.
    pub(super) fn injections(&self, network: &Network) -> Vec<Injection> {
        let all =
            self.0.iter().flat_map(|(ids, injection)| ids.clone().map(|id| Injection { id, ..*injection }));
        all.filter(|injection| !network.is_removed(injection.id)).collect()
    }

    /// Sets the input of each range, in place of an earlier one for exactly that range.
    fn set(&mut self, ranges: Vec<Range<u32>>, input: Injection) {
        let known: HashSet<&Range<u32>> = ranges.iter().collect();
        self.0.retain(|(ids, _)| !known.contains(ids));
        if input.thousandths != 0 {
            self.0.extend(ranges.into_iter().map(|ids| (ids, input)));
        }
    }
}

impl Simulation {
    /// Sets the input that neurons receive in every burst, in place of an earlier one for the same range; 0 ends it. Removed
    /// neurons receive none. The inputs of ranges that overlap add up.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a range outside the network or a potential as for [`inject`](Simulation::inject).
    pub fn set_power(&mut self, ids: Range<u32>, potential: f32) -> Result<()> {
        self.check_range(&ids)?;
        let input = Injection::new(ids.start, potential)?;
        self.power.set(vec![ids], input);
        Ok(())
    }

    /// Sets the input that the neurons of an area receive in every burst, in place of an earlier one for the area; 0 ends it.
    ///
    /// It is that of [`set_power`](Simulation::set_power) for each range of ids without a gap, so both add up where an area
    /// and another range overlap. [`Network::area`] finds an area by its name.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an area that the network does not have, or a potential as for
    /// [`inject`](Simulation::inject).
    pub fn set_area_power(&mut self, area: u32, potential: f32) -> Result<()> {
        self.check_area(area)?;
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for (id, _) in (0u32..).zip(&self.neurons.area).filter(|(_, of)| **of == area) {
            match ranges.last_mut().filter(|last| last.end == id) {
                Some(last) => last.end = id + 1,
                None => ranges.push(id..id + 1),
            }
        }
        let input = Injection::new(ranges.first().map_or(0, |ids| ids.start), potential)?;
        self.power.set(ranges, input);
        Ok(())
    }

    pub(super) fn check_area(&self, area: u32) -> Result<()> {
        let areas = self.network.areas().len();
        if area as usize >= areas {
            let wanted = format!("an area below {areas}");
            return Err(Error::invalid("an area of a network", format!("area {area}"), wanted));
        }
        Ok(())
    }

    /// Returns the power input: ranges and thousandths.
    pub(super) fn power_thousandths(&self) -> Vec<(Range<u32>, i64)> {
        self.power.0.iter().map(|(ids, injection)| (ids.clone(), injection.thousandths)).collect()
    }

    /// Replaces the power input by that of a file.
    pub(super) fn set_power_thousandths(&mut self, power: Vec<(Range<u32>, i64)>) -> Result<()> {
        let mut input = PowerInput::default();
        for (ids, thousandths) in power {
            self.check_range(&ids)?;
            input.0.push((ids.clone(), Injection { id: ids.start, thousandths }));
        }
        self.power = input;
        Ok(())
    }
}
