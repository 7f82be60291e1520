//! How hot records are.
//!
//! MOCC keeps an approximate counter for each page: the temperature is the logarithm of the number
//! of validation failures, raised by one with a probability that halves each time, so that hot
//! counters are hardly ever written. Kiln has no pages: counters are in an array, by the hash of a
//! record's address. The paper resets all of them from time to time; here each cools by itself, one
//! degree a period, and no worker goes over the array.

use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_platform::memory;
use kiln_platform::random::Random;
use kiln_storage::record::RecordRef;

/// From this temperature on a record is locked when it is met: about 30 failures in a short time.
pub(super) const HOT: u32 = 5;

/// Temperatures, shared by all workers.
pub struct Temperatures {
    /// The period of the last change in the upper half, the temperature then in the lower one.
    counters: Box<[AtomicU32]>,
}

impl Default for Temperatures {
    fn default() -> Temperatures {
        Temperatures {
            counters: (0..Temperatures::COUNTERS)
                .map(|_| AtomicU32::new(0))
                .collect(),
        }
    }
}

impl Temperatures {
    /// 64 KiB of counters.
    const COUNTERS: usize = 1 << 14;
    /// A period has so many epochs, about eighty milliseconds.
    const EPOCHS_PER_PERIOD: u64 = 8;

    /// The period that the epoch is in, as counters know it.
    pub(super) fn period(epoch: u64) -> u32 {
        u32::from((epoch / Self::EPOCHS_PER_PERIOD) as u16)
    }

    #[inline(always)]
    fn counter(&self, record: RecordRef) -> &AtomicU32 {
        let hash = memory::hash(record.address());
        &self.counters[(hash >> 50) as usize]
    }

    #[inline(always)]
    fn cooled(counter: u32, period: u32) -> u32 {
        // Negative for an attempt whose epoch is older than the last change.
        let elapsed = (period as u16).wrapping_sub((counter >> 16) as u16) as i16;
        (counter & 0xffff).saturating_sub(elapsed.max(0) as u32)
    }

    /// The record's temperature in this period.
    #[inline(always)]
    pub(super) fn of(&self, record: RecordRef, period: u32) -> u32 {
        // Relaxed: it is a hint.
        Self::cooled(self.counter(record).load(Ordering::Relaxed), period)
    }

    /// Counts a validation failure because of this record, approximately.
    pub(super) fn heat(&self, record: RecordRef, period: u32, random: &mut Random) {
        let counter = self.counter(record);
        let temperature = Self::cooled(counter.load(Ordering::Relaxed), period);
        if random.next_u64() & ((1 << temperature.min(20)) - 1) == 0 {
            // A raise that is lost to another one's at the same time is part of the approximation.
            counter.store(period << 16 | (temperature + 1), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_heat_and_time_cools() {
        let temperatures = Temperatures::default();
        let mut random = Random::from_seed(1);
        // SAFETY: temperatures only look at addresses.
        let record = unsafe { RecordRef::from_address(0x10_0000) };
        let period = Temperatures::period(8 * 0xffff);
        assert_eq!(temperatures.of(record, period), 0);
        for _ in 0..1_000 {
            temperatures.heat(record, period, &mut random);
        }
        let hot = temperatures.of(record, period);
        assert!((HOT..16).contains(&hot), "{hot} after 1,000 failures");
        // Periods begin anew at 0.
        let later = Temperatures::period(8 * 0x1_0001);
        assert_eq!(temperatures.of(record, later), hot - 2);
        assert_eq!(temperatures.of(record, later + 100), 0);
    }
}
