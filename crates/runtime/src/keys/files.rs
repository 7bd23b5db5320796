//! The files of suite `lola`, and a client's keys in two of them.
//!
//! A file is a magic word, a kind, the digest of the plan, the nonce of the client's keys,
//! and the very messages that cross the wire, without tags and lengths: the plan tells them.

use he::bfv::SecretKey;
use mpc::linear::lola::{self, Bodies};
use wire::{Error, Message, Packed, Result, Segment, tags};
use zeroize::Zeroizing;

use crate::plan::Plan;
use crate::step::keys::EvaluationKeys;

pub(super) const MAGIC: &[u8; 8] = b"tacit-he";
/// Where the kind stands.
pub(super) const KIND: usize = MAGIC.len();
pub(super) const HEADER: usize = KIND + 1 + 32 + 32;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Secret = 1,
    Keys = 2,
    Request = 3,
    Answer = 4,
    Sealed = 5,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Secret => "a secret key",
            Self::Keys => "evaluation keys",
            Self::Request => "a request",
            Self::Answer => "an answer",
            Self::Sealed => "an encrypted secret key",
        }
    }
}

/// A client's keys as two files.
pub struct KeyFiles {
    /// Stays with the client.
    pub secret: Zeroizing<Vec<u8>>,
    /// Goes to the server, once.
    pub evaluation: Vec<u8>,
}

impl KeyFiles {
    /// What a session needs of the files: the keys, and the messages with those of the server.
    pub(crate) fn opened(&self, plan: &Plan) -> Result<(EvaluationKeys, Vec<Bodies>)> {
        let keys = secret_of(plan, &self.secret)?;
        let (nonce, mut body) = opened(Kind::Keys, plan, &self.evaluation)?;
        if nonce != keys.nonce {
            return Err(Error::misuse("a secret and evaluation keys that do not belong together"));
        }
        let layouts = lola_of(plan)?.key_layouts()?;
        if runs(Kind::Keys, &layouts, body)?.len() != 1 {
            return Err(Error::peer(Kind::Keys.name(), "several"));
        }
        Ok((keys, decoded::<{ tags::LOLA_KEYS }>(&mut body, &layouts)?))
    }
}

/// The client's half out of the file with its secret.
pub(crate) fn secret_of(plan: &Plan, file: &[u8]) -> Result<EvaluationKeys> {
    let (nonce, body) = opened(Kind::Secret, plan, file)?;
    let digits: Zeroizing<Vec<i8>> =
        Zeroizing::new(body.iter().map(|byte| (*byte as i8).wrapping_sub(1)).collect());
    let lola = lola_of(plan)?;
    let secret = SecretKey::from_coefficients(lola.params(), &digits);
    let secret = secret.map_err(|e| Error::peer("a secret key", e.to_string()))?;
    Ok(EvaluationKeys { secret, codec: lola::Client::new(lola)?, nonce })
}

pub(crate) fn lola_of(plan: &Plan) -> Result<&lola::Plan> {
    plan.evaluated().ok_or_else(|| {
        Error::misuse("files are for models of suite lola; others need a server to talk to")
    })
}

pub(crate) fn header(kind: Kind, plan: &Plan, nonce: &[u8; 32]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.push(kind as u8);
    file.extend(plan.digest());
    file.extend(nonce);
    file
}

/// Nonce and body of a file of this kind and plan.
pub(crate) fn opened<'a>(kind: Kind, plan: &Plan, file: &'a [u8]) -> Result<([u8; 32], &'a [u8])> {
    let other = |got: &str| Error::peer(format!("a file with {}", kind.name()), got);
    let (head, body) = file.split_at_checked(HEADER).ok_or_else(|| other("a shorter one"))?;
    let rest = head.strip_prefix(MAGIC.as_slice()).ok_or_else(|| other("another format"))?;
    let (is, rest) = rest.split_first().ok_or_else(|| other("a shorter one"))?;
    if *is != kind as u8 {
        return Err(other("one with something else"));
    }
    let (digest, nonce) = rest.split_first_chunk::<32>().ok_or_else(|| other("a shorter one"))?;
    if *digest != plan.digest() {
        return Err(other("one of another model"));
    }
    Ok((nonce.try_into().map_err(|_| other("another format"))?, body))
}

/// The parts of a body, each as long as messages of these layouts; one at least.
pub(crate) fn runs<'a>(
    kind: Kind,
    layouts: &[Vec<Segment>],
    body: &'a [u8],
) -> Result<std::slice::ChunksExact<'a, u8>> {
    let each: u64 = layouts.iter().flatten().map(Segment::len).sum();
    let each = usize::try_from(each).map_err(|_| misuse_size())?;
    if body.is_empty() || each == 0 || !body.len().is_multiple_of(each) {
        let got = format!("{} bytes, not a multiple of {each}", body.len());
        return Err(Error::peer(kind.name(), got));
    }
    Ok(body.chunks_exact(each))
}

fn misuse_size() -> Error {
    Error::misuse("messages longer than memory")
}

/// The messages of these layouts at the start of a part, which then starts behind them.
pub(crate) fn decoded<const TAG: u8>(
    part: &mut &[u8],
    layouts: &[Vec<Segment>],
) -> Result<Vec<Packed<TAG>>> {
    let message = |layout: &Vec<Segment>| {
        let length = Packed::<TAG>::body_len(layout) as usize;
        let body = part.split_off(..length).unwrap_or_default();
        Packed::<TAG>::decode(body, layout)
    };
    layouts.iter().map(message).collect()
}
