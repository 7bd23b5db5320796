//! Parts of a layer's messages, sent and received in messages of about [`CHUNK`] bytes.

use ring::Seed;
use wire::{Channel, Packed, Result, Segment};

use crate::defect::defect;

/// A message is closed when it reaches this many bytes, so that sending,
/// computing and receiving overlap.
const CHUNK: u64 = 1 << 20;

/// Groups layouts into messages of about [`CHUNK`] bytes.
pub(in crate::linear) fn chunks(layouts: Vec<Vec<Segment>>) -> Vec<Vec<Segment>> {
    let mut messages: Vec<Vec<Segment>> = Vec::new();
    let mut filled = CHUNK;
    for layout in layouts {
        if filled >= CHUNK {
            messages.push(Vec::new());
            filled = 0;
        }
        filled += layout.iter().map(Segment::len).sum::<u64>();
        if let Some(message) = messages.last_mut() {
            message.extend(layout);
        }
    }
    messages
}

/// Sends parts of `layouts` in chunks, each part a few segments.
///
/// # Errors
/// What a part is, [`wire::Error::Internal`] for too few parts, [`wire::Error::Transport`].
pub(in crate::linear) fn send_chunks<const TAG: u8>(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
    mut parts: impl Iterator<Item = Result<Vec<Vec<u64>>>>,
) -> Result<()> {
    for layout in chunks(layouts) {
        let mut segments = Vec::with_capacity(layout.len());
        let mut rest = layout.iter();
        while rest.len() > 0 {
            let part = parts
                .next()
                .ok_or_else(|| defect("a layer sends fewer parts than its layouts"))??;
            segments.extend(rest.by_ref().take(part.len()).copied().zip(part));
        }
        channel.send(&Packed::<TAG>(segments))?;
    }
    Ok(())
}

/// The segments of messages with one tag, in order.
pub(in crate::linear) struct Received<const TAG: u8> {
    layouts: std::vec::IntoIter<Vec<Segment>>,
    segments: std::vec::IntoIter<Vec<u64>>,
}

impl<const TAG: u8> Received<TAG> {
    /// Nothing is received yet; parts of `layouts` come in chunks.
    pub(in crate::linear) fn new(layouts: Vec<Vec<Segment>>) -> Self {
        Self { layouts: chunks(layouts).into_iter(), segments: Vec::new().into_iter() }
    }

    /// The next segment, of the next message if there is none left.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] after the last, [`wire::Error::Peer`],
    /// [`wire::Error::Transport`].
    pub(in crate::linear) fn next(&mut self, channel: &mut Channel) -> Result<Vec<u64>> {
        if self.segments.len() == 0 {
            let layout = self.layouts.next();
            let layout =
                layout.ok_or_else(|| defect("a layer reads more ciphertexts than its layouts"))?;
            let message: Packed<TAG> = channel.receive(&layout)?;
            self.segments = message.into_values().collect::<Vec<_>>().into_iter();
        }
        self.segments.next().ok_or_else(|| defect("a message ends within a ciphertext"))
    }
}

/// A seed as the two words that are sent.
pub(in crate::linear) fn words_of(seed: &Seed) -> Vec<u64> {
    let (words, _) = seed.0.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The seed of the words that came.
pub(in crate::linear) fn seed_of(words: &[u64]) -> Seed {
    let mut seed = Seed([0; 16]);
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    seed.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    seed
}
