//! What suite `lola` keeps for a session: the client's secret, the server's copy of the keys
//! that it evaluates with, and those of clients who may come back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use he::bfv;
use mpc::linear::lola::{self, Bodies, Seeds, ServerKeys};
use ring::{Random, Seed};
use sha2::{Digest, Sha256};
use wire::{Channel, Cost, Error, Message, Packed, Result, Role, Segment, tags};

use super::files::KeyFiles;
use crate::plan::Plan;
use crate::step::keys::{EvaluationKeys, misuse};

/// Nonce and digest of the keys of a client.
type Name = Packed<{ tags::LOLA_KEYS_NAME }>;
/// Whether the server wants them sent.
type Wanted = Packed<{ tags::LOLA_KEYS_WANTED }>;

const NAME: Segment = Segment { count: 64, bits: 8 };
const WANTED: Segment = Segment { count: 1, bits: 1 };

/// In place of the digest of keys that never come back: they are not kept.
const FRESH: [u8; 32] = [0; 32];

/// Memory for the keys of clients who may come back, in bytes.
pub(crate) const CACHE_BYTES: usize = 1 << 30;

/// Seeds of the uniform halves of keys: from a hash of the client's nonce and the plan, so that
/// nobody can choose what they expand to.
pub(crate) fn seeds(plan: &Plan, nonce: &[u8; 32]) -> Seeds {
    let seed = |label: &[u8]| {
        let mut hash = Sha256::new();
        hash.update(b"tacit evaluation keys v1");
        hash.update(label);
        hash.update(nonce);
        hash.update(plan.digest());
        let mut seed = Seed([0; 16]);
        seed.0.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        seed
    };
    Seeds([seed(b"public"), seed(b"products"), seed(b"rotations")])
}

/// SHA-256 of messages with keys.
pub(crate) fn digest(messages: &[Bodies]) -> [u8; 32] {
    let mut hash = Sha256::new();
    messages.iter().for_each(|message| include(&mut hash, message));
    hash.finalize().into()
}

fn include(hash: &mut Sha256, message: &Bodies) {
    let mut body = Vec::new();
    message.encode(&mut body);
    hash.update(&body);
}

/// A fresh secret.
pub(crate) fn generate(plan: &Plan, rng: &mut Random) -> Result<EvaluationKeys> {
    let lola = plan.evaluated().ok_or_else(other)?;
    let secret = bfv::SecretKey::generate(lola.params(), rng).map_err(misuse)?;
    let mut nonce = [0; 32];
    rng.fill(&mut nonce);
    Ok(EvaluationKeys { secret, codec: lola::Client::new(lola)?, nonce })
}

/// The client's side of the setup: names its keys, its `own` or fresh ones, sends them if the
/// server asks. Fresh ones are made as they are sent, so that a nonce is all of their name.
pub(crate) fn client(
    channel: &mut Channel,
    plan: &Plan,
    own: Option<&KeyFiles>,
    rng: &mut Random,
) -> Result<Option<EvaluationKeys>> {
    let Some(lola) = plan.evaluated() else {
        return match own {
            None => Ok(None),
            Some(_) => Err(Error::misuse("keys of one's own are for models of suite lola")),
        };
    };
    let mut wanted = |nonce: [u8; 32], digest: [u8; 32]| {
        let name = nonce.into_iter().chain(digest).map(u64::from).collect();
        channel.send(&Name::new(vec![(NAME, name)]))?;
        let wanted: Wanted = channel.receive(&vec![WANTED])?;
        Ok::<_, Error>(wanted.concat() == [1])
    };
    if let Some(files) = own {
        let (keys, messages) = files.opened(plan)?;
        if wanted(keys.nonce, digest(&messages))? {
            messages.iter().try_for_each(|message| channel.send(message))?;
        }
        return Ok(Some(keys));
    }
    let keys = generate(plan, rng)?;
    if !wanted(keys.nonce, FRESH)? {
        return Err(Error::peer("a wish for fresh keys", "none"));
    }
    for message in lola::evaluation_keys(lola, &keys.secret, &seeds(plan, &keys.nonce), rng)? {
        channel.send(&message)?;
    }
    Ok(Some(keys))
}

/// The server's side.
pub(crate) fn server(
    channel: &mut Channel,
    plan: &Plan,
    cache: &Cache,
) -> Result<Option<Arc<ServerKeys>>> {
    let Some(lola) = plan.evaluated() else { return Ok(None) };
    let name: Name = channel.receive(&vec![NAME])?;
    let name: Vec<u8> = name.concat().into_iter().map(|byte| byte as u8).collect();
    let (nonce, promised) = name.split_first_chunk().ok_or_else(other)?;
    let fresh = promised == FRESH;
    let known = if fresh { None } else { cache.get(&name) };
    channel.send(&Wanted::new(vec![(WANTED, vec![u64::from(known.is_none())])]))?;
    if known.is_some() {
        return Ok(known);
    }
    let layouts = lola.key_layouts()?;
    let mut hash = Sha256::new();
    let messages = layouts.iter().map(|layout| {
        let message: Bodies = channel.receive(layout)?;
        if !fresh {
            include(&mut hash, &message);
        }
        Ok(message)
    });
    let keys = Arc::new(ServerKeys::new(lola, &seeds(plan, nonce), messages)?);
    if fresh {
        return Ok(Some(keys));
    }
    if <[u8; 32]>::from(hash.finalize()) != promised {
        return Err(Error::peer("the keys that were named", "others"));
    }
    cache.put(name, keys.clone(), lola.key_bytes());
    Ok(Some(keys))
}

/// What the setup costs a client whose keys the server does not have.
pub(crate) fn cost(plan: &Plan) -> Cost {
    let Some(lola) = plan.evaluated() else { return Cost::NONE };
    let name = Cost::message(Role::Client, Name::body_len(&[NAME]));
    let wanted = Cost::message(Role::Server, Wanted::body_len(&[WANTED]));
    name.then(wanted).then(lola.key_cost().unwrap_or(Cost::NONE))
}

/// Coefficients of the keys.
pub(crate) fn coefficients(plan: &Plan) -> usize {
    let layouts = plan.evaluated().and_then(|lola| lola.key_layouts().ok()).unwrap_or_default();
    layouts.iter().flatten().map(|segment| segment.count).sum()
}

fn other() -> Error {
    Error::misuse("a plan of another suite")
}

/// Evaluation keys of clients who may come back, by nonce and digest; within a quota those
/// longest not used go first.
pub struct Cache {
    quota: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    keys: HashMap<Vec<u8>, Entry>,
    bytes: usize,
    clock: u64,
}

struct Entry {
    keys: Arc<ServerKeys>,
    bytes: usize,
    used: u64,
}

impl Cache {
    pub(crate) fn new(quota: usize) -> Self {
        Self { quota, held: Mutex::default() }
    }

    fn get(&self, name: &[u8]) -> Option<Arc<ServerKeys>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.clock += 1;
        let now = held.clock;
        let entry = held.keys.get_mut(name)?;
        entry.used = now;
        Some(entry.keys.clone())
    }

    fn put(&self, name: Vec<u8>, keys: Arc<ServerKeys>, bytes: usize) {
        if bytes > self.quota {
            return;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while held.bytes + bytes > self.quota {
            let oldest = held.keys.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            held.bytes -= held.keys.remove(&oldest).map_or(0, |entry| entry.bytes);
        }
        held.clock += 1;
        let entry = Entry { keys, bytes, used: held.clock };
        if let Some(before) = held.keys.insert(name, entry) {
            held.bytes -= before.bytes;
        }
        held.bytes += bytes;
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self::new(CACHE_BYTES)
    }
}
