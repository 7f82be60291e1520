//! Takes messages out of many rings, without waiting for one cache line after the other.
//!
//! A message costs its receiver three lines that another core has written: the ring's counter, the
//! word, and the demand that it is about. One by one they would be waited for in full, and that is
//! most of what a CC worker does. So rings are looked at some at a time: first all their counters
//! are asked for, then the words of those that have any, then the demands. Messages of a ring stay
//! in their order.

use kiln_platform::atomic::prefetch;

use super::Demand;
use super::messages::MARKS;
use crate::shared::ring::Ring;

/// Rings that are looked at together: some more than lines that a core fetches at a time.
const RINGS: usize = 16;

/// What was found while looking.
#[derive(Default)]
pub struct Inbox<'a> {
    rings: [Option<&'a Ring>; RINGS],
    count: usize,
    has_done: bool,
}

impl<'a> Inbox<'a> {
    /// Looks at a ring, soon.
    #[inline]
    pub fn look(&mut self, ring: &'a Ring, handle: &mut impl FnMut(u64)) {
        ring.prefetch();
        self.rings[self.count] = Some(ring);
        self.count += 1;
        if self.count == RINGS {
            self.take(handle);
        }
    }

    /// Whether there was any message in the rings, which have all been looked at.
    #[inline]
    pub fn finish(mut self, handle: &mut impl FnMut(u64)) -> bool {
        self.take(handle);
        self.has_done
    }

    fn take(&mut self, handle: &mut impl FnMut(u64)) {
        let rings = self.rings[..self.count].iter_mut();
        for ring in rings {
            *ring = ring.filter(|ring| ring.has_word());
        }
        let mut messages = [0; RINGS];
        let rings = self.rings[..self.count].iter().flatten();
        let mut found = 0;
        for ring in rings.clone() {
            if let Some(message) = ring.pop() {
                prefetch((message & !MARKS) as *const Demand);
                messages[found] = message;
                found += 1;
            }
        }
        self.has_done |= found > 0;
        messages[..found].iter().copied().for_each(&mut *handle);
        // Few have a second one.
        for ring in rings {
            while let Some(message) = ring.pop() {
                handle(message);
            }
        }
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_all_rings_come_once_and_in_the_order_of_their_ring() {
        for count in [0, 1, RINGS - 1, RINGS, RINGS + 1, 3 * RINGS + 5] {
            let rings: Vec<Ring> = (0..count).map(|_| Ring::new(4)).collect();
            let mut sent = 0;
            for (number, ring) in rings.iter().enumerate() {
                for at in 0..number % 4 {
                    assert!(ring.push(message(number, at)));
                    sent += 1;
                }
            }
            let mut arrived = vec![Vec::new(); count];
            let mut handle = |message: u64| {
                arrived[(message >> 16) as usize].push(message);
            };
            let mut inbox = Inbox::default();
            rings.iter().for_each(|ring| inbox.look(ring, &mut handle));
            assert_eq!(inbox.finish(&mut handle), sent > 0);
            for (number, messages) in arrived.into_iter().enumerate() {
                let expected = (0..number % 4).map(|at| message(number, at));
                assert!(messages.into_iter().eq(expected), "ring {number}");
            }
            let mut again = Inbox::default();
            let mut none = |_| panic!("there is no message any more");
            rings.iter().for_each(|ring| again.look(ring, &mut none));
            assert!(!again.finish(&mut none));
        }
    }

    /// No demand is behind it: this test never follows it.
    fn message(ring: usize, at: usize) -> u64 {
        (ring as u64) << 16 | (at as u64) << 8
    }
}
