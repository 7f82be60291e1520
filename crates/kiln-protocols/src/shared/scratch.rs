//! Row images of one attempt: memory that is handed out row by row and taken back at once.

use kiln_platform::atomic::AtomicU64;

/// A bump allocator of row images with stable addresses.
#[derive(Default)]
pub struct Scratch {
    chunks: Vec<Box<[AtomicU64]>>,
    /// The chunk that is being filled.
    current: usize,
    /// Words used in it.
    used: usize,
}

/// A row image: as many words as the row of its table. Its content is what an earlier attempt
/// left; only columns written since mean anything.
#[derive(Clone, Copy)]
pub struct RowImage {
    start: *const AtomicU64,
    words: usize,
}

impl RowImage {
    /// The image's words.
    ///
    /// # Safety
    /// The scratch that it came from has not been cleared or dropped since.
    #[inline(always)]
    pub unsafe fn words<'a>(self) -> &'a [AtomicU64] {
        // SAFETY: `take` handed out this many initialised words at a stable address.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }
}

impl Scratch {
    /// The usual chunk: 64 KiB.
    const CHUNK_WORDS: usize = 8 << 10;
    /// Chunks kept between attempts; what a rare large transaction needed beyond is given back.
    const CHUNKS_KEPT: usize = 16;

    /// An image of `words` words.
    #[inline]
    pub fn take(&mut self, words: usize) -> RowImage {
        loop {
            if let Some(chunk) = self.chunks.get(self.current) {
                if self.used + words <= chunk.len() {
                    let start = chunk[self.used..].as_ptr();
                    self.used += words;
                    return RowImage { start, words };
                }
                if self.used > 0 || self.current + 1 < self.chunks.len() {
                    self.current += 1;
                    self.used = 0;
                    continue;
                }
            }
            self.grow(words);
        }
    }

    #[cold]
    fn grow(&mut self, words: usize) {
        let chunk = (0..words.max(Self::CHUNK_WORDS))
            .map(|_| AtomicU64::new(0))
            .collect();
        self.chunks.push(chunk);
        self.current = self.chunks.len() - 1;
        self.used = 0;
    }

    /// Takes all images back.
    #[inline]
    pub fn clear(&mut self) {
        self.current = 0;
        self.used = 0;
        if self.chunks.len() > Self::CHUNKS_KEPT {
            self.chunks.truncate(Self::CHUNKS_KEPT);
        }
    }
}

// SAFETY: images are only reached through the scratch's owner.
unsafe impl Send for RowImage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_do_not_overlap_and_memory_is_reused() {
        let mut scratch = Scratch::default();
        for _ in 0..3 {
            let images: Vec<RowImage> = (1..400).map(|words| scratch.take(words)).collect();
            let mut ranges: Vec<(usize, usize)> = images
                .iter()
                .map(|image| (image.start as usize, image.start as usize + image.words * 8))
                .collect();
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            scratch.clear();
        }
        assert!(scratch.chunks.len() <= Scratch::CHUNKS_KEPT);
        let large = scratch.take(Scratch::CHUNK_WORDS * 3);
        assert_eq!(large.words, Scratch::CHUNK_WORDS * 3);
    }
}
